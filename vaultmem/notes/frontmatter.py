"""The properties block: where it is, and what its YAML means in Obsidian.

Obsidian reads YAML 1.2 (eemeli/yaml): yes, no and dates stay text, a duplicate key makes the
whole block invalid, merge keys are plain keys. Where the block starts and ends: the reading of
`getFrontMatterInfo` in conformance/README.md and Obsidian's help page "Properties".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml
from frontmatter.default_handlers import BaseHandler

_OPEN = re.compile(r"---\r?\n")
_CLOSE = re.compile(r"(?<=\n)---(?:\r?\n|\Z)")
_CAO_LINE = re.compile(r"^cao\s*:", re.MULTILINE)
MAX_NODES = 10_000
"""Expanded YAML nodes before a document counts as a bomb (reference/vault.md, frontmatter_unsafe)."""
MAX_DEPTH = 64
_PYTHON_TAG = "tag:yaml.org,2002:python/"
_TAG = "tag:yaml.org,2002:"
_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _CoreLoader(_BaseLoader):  # type: ignore[misc]
    """The C parser with the scalars of YAML 1.2's core schema."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


def _add_scalar(tag: str, pattern: str, first: str) -> None:
    for char in [*first] or [""]:
        _CoreLoader.yaml_implicit_resolvers.setdefault(char, []).append((_TAG + tag, re.compile(pattern)))


_add_scalar("null", r"^(?:~|null|Null|NULL)$", "~nN")
_add_scalar("null", r"^$", "")
_add_scalar("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF")
_add_scalar("int", r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", "-+0123456789")
_add_scalar("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a block can't be used: a finding code, 1-based line and column in the note, and a phrase."""

    code: str
    line: int
    column: int
    phrase: str


@dataclass(frozen=True, slots=True)
class Block:
    """A note's properties block.

    `text` is the YAML between the fences, `body_start` the offset of the body in the note's text,
    `body_line` its 1-based line. `data` is None when the block is no mapping or has a problem.
    """

    text: str
    body_start: int
    body_line: int
    data: dict[str, Any] | None
    problem: Problem | None
    root: Any = None

    @property
    def claims_cao(self) -> bool:
        """Whether a line of the block starts with `cao:`, readable or not."""
        return _CAO_LINE.search(self.text) is not None


class _Unusable(Exception):
    """A block that can't become properties, with what is wrong and where (0-based mark)."""

    def __init__(self, code: str, phrase: str, mark: Any = None) -> None:
        self.code = code
        self.phrase = phrase
        self.mark = mark


class ObsidianHandler(BaseHandler):
    """python-frontmatter's handler interface with Obsidian's rules in place of its defaults."""

    FM_BOUNDARY = _OPEN
    START_DELIMITER = END_DELIMITER = "---"

    def detect(self, text: str) -> bool:
        """Tell whether the text starts with a closed properties block."""
        return self.bounds(text) is not None

    def bounds(self, text: str) -> tuple[int, int, int] | None:
        """Return offsets (YAML start, YAML end, body start), or None without a block."""
        opened = _OPEN.match(text)
        if opened is None:
            return None
        closed = _CLOSE.search(text, opened.end())
        return None if closed is None else (opened.end(), closed.start(), closed.end())

    def split(self, text: str) -> tuple[str, str]:
        """Return (YAML, body) with every byte of the body kept. ValueError without a block."""
        found = self.bounds(text)
        if found is None:
            raise ValueError("no properties block")
        return text[found[0] : found[1]], text[found[2] :]

    def load(self, fm: str) -> dict[str, Any]:
        """Return the properties; {} when the YAML is no mapping. Raises what `read_block` reports."""
        data, _ = _load(fm)
        return data or {}

    def export(self, metadata: dict[str, object], **kwargs: object) -> str:
        """Return YAML for a *new* note; an existing block is never dumped again (see write.py)."""
        dumped: str = yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True, width=10_000)
        return dumped.strip()


HANDLER = ObsidianHandler()


def read_block(text: str, max_bytes: int = 65_536) -> Block | None:
    """Return the properties block of a note's text (without BOM), or None when it has none.

    Never raises: what is wrong comes out as `problem` (`frontmatter_malformed`,
    `frontmatter_duplicate_key`, `frontmatter_unsafe` or `frontmatter_too_large`).
    """
    found = HANDLER.bounds(text)
    if found is None:
        return None
    start, end, body_start = found
    yaml_text = text[start:end]
    body_line = text.count("\n", 0, body_start) + 1
    data, root, problem = None, None, None
    try:
        if len(yaml_text.encode("utf-8", "surrogatepass")) > max_bytes:
            raise _Unusable("frontmatter_too_large", f"properties are larger than {max_bytes} bytes")
        data, root = _load(yaml_text.replace("\r\n", "\n"))
    except _Unusable as error:
        line = getattr(error.mark, "line", 0) + 2
        problem = Problem(error.code, line, getattr(error.mark, "column", 0) + 1, error.phrase)
    return Block(yaml_text, body_start, body_line, data, problem, root)


def _load(text: str) -> tuple[dict[str, Any] | None, Any]:
    """Return (properties or None, root node). Raises _Unusable."""
    _check_depth(text)
    try:
        loader = _CoreLoader(text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        phrase = str(getattr(error, "problem", None) or "not valid YAML")
        raise _Unusable("frontmatter_malformed", _without_text(phrase), mark) from None
    except (UnicodeEncodeError, ValueError, RecursionError):
        raise _Unusable("frontmatter_malformed", "not valid YAML") from None
    if root is None:
        return None, None
    if "&" in text:
        _check_expansion(root)
    if not isinstance(root, yaml.MappingNode):
        _construct(root, 0)
        return None, root
    data = _construct(root, 0)
    return data or None, root


def _without_text(phrase: str) -> str:
    """Drop what a parser message quotes of the note: findings never hold note text."""
    return re.sub(r"\s*(['\"]).*\1", "", phrase).strip() or "not valid YAML"


def _check_depth(text: str) -> None:
    """Refuse nesting that a recursive composer could choke on, by counting events first."""
    if text.count("[") + text.count("{") + text.count("- ") + text.count("? ") <= MAX_DEPTH:
        return
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_CoreLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    raise _Unusable("frontmatter_unsafe", f"nested deeper than {MAX_DEPTH}", event.start_mark)
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError:
        return  # the composer reports it with its place


def _check_expansion(root: Any) -> None:
    """Refuse documents whose aliases expand beyond MAX_NODES, or that contain themselves."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size(node: Any) -> int:
        known = sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in open_nodes:
            raise _Unusable("frontmatter_unsafe", "an anchor contains itself", node.start_mark)
        open_nodes.add(id(node))
        total = 1
        if isinstance(node, yaml.SequenceNode):
            total += sum(size(item) for item in node.value)
        elif isinstance(node, yaml.MappingNode):
            total += sum(size(key) + size(value) for key, value in node.value)
        open_nodes.discard(id(node))
        if total > MAX_NODES:
            raise _Unusable("frontmatter_unsafe", f"anchors expand to more than {MAX_NODES} values", node.start_mark)
        sizes[id(node)] = total
        return total

    size(root)


def _construct(node: Any, depth: int) -> Any:
    """Return the plain value of a node. Raises _Unusable for duplicate keys and object tags."""
    if node.tag.startswith(_PYTHON_TAG):
        raise _Unusable("frontmatter_unsafe", "an object tag", node.start_mark)
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [_construct(item, depth + 1) for item in node.value]
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _key_text(key_node, depth)
        if key in mapping:
            raise _Unusable("frontmatter_duplicate_key", "the same property twice", key_node.start_mark)
        mapping[key] = _construct(value_node, depth + 1)
    return mapping


def _key_text(node: Any, depth: int) -> str:
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    value = _construct(node, depth + 1)
    return "{ " + ", ".join(map(str, value)) + " }" if isinstance(value, dict) else str(value)


def _scalar(node: Any) -> Any:
    text, tag = str(node.value), node.tag[len(_TAG) :]
    if tag == "null":
        return None
    if tag == "bool":
        return text.lower() == "true"
    if tag == "int":
        return _number(text)
    if tag == "float":
        value = _as_float(text)
        return text if value is None else value
    return text


def _number(text: str) -> int | float | str:
    """Read an integer; beyond 2^53 it is rounded as in the app, beyond floats it stays text."""
    if text[:2] == "0o":
        return int(text[2:], 8)
    if text[:2] == "0x":
        return int(text[2:], 16)
    if len(text) <= 16:
        return int(text)
    value = _as_float(text)
    if value is None:
        return text
    return int(value) if abs(value) <= 2**53 else value


def _as_float(text: str) -> float | None:
    try:
        value = float(text)
    except (ValueError, OverflowError):
        return None
    return value if abs(value) < float("inf") else None


def line_of(block: Block, *path: str | int) -> int:
    """Return the 1-based line in the note of the value at `path`, or 1 when it is not there."""
    node = block.root
    line = 1
    for step in path:
        found = None
        if isinstance(node, yaml.MappingNode):
            found = next(((k, v) for k, v in node.value if str(k.value) == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            found = (node.value[step], node.value[step])
        if found is None:
            return line
        line = int(found[0].start_mark.line) + 2
        node = found[1]
    return line
