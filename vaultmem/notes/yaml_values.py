"""YAML text to plain values, as Obsidian's reader (the npm package `yaml`, YAML 1.2) makes them, on libyaml's parser.

What libyaml takes otherwise (line ends of YAML 1.1, escaped halves of characters, blanks with tabs) is mended
on the way; what stays different is listed in docs/obsidian.md and tests/notes/test_yaml.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import yaml

MAX_NODES = 10_000
"""Expanded YAML nodes before a document counts as a bomb (reference/vault.md, frontmatter_unsafe)."""
MAX_DEPTH = 64
_PYTHON_TAG = "tag:yaml.org,2002:python/"
_TAG = "tag:yaml.org,2002:"
_STR = _TAG + "str"
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


class _Mark(NamedTuple):
    """A place in the YAML, counted from 0."""

    line: int
    column: int


class Unusable(Exception):
    """A block that can't become properties, with what is wrong and where (0-based mark)."""

    def __init__(self, code: str, phrase: str, mark: Any = None) -> None:
        self.code = code
        self.phrase = phrase
        self.mark = mark


def load_yaml(text: str) -> tuple[dict[str, Any] | None, Any]:
    """Return (properties or None, root node). Raises Unusable."""
    stand_ins = _stand_ins(text)
    text = text.translate(stand_ins) if stand_ins else text
    _check_depth(text)
    root = _compose(text)
    if stand_ins and root is not None:
        _restore(root, {ord(char): chr(code) for code, char in stand_ins.items()})
    if root is None:
        return None, None
    if "&" in text:
        _check_expansion(root)
    if not isinstance(root, yaml.MappingNode):
        _construct(root, 0)
        return None, root
    data = _construct(root, 0)
    return data or None, root


def _compose(text: str) -> Any:
    """Return the root node of YAML, None for none. Raises Unusable."""
    for _ in range(_MOST_PAIRED):
        try:
            return _checked(_node(text), text)
        except yaml.YAMLError as error:
            mended = _with_pairs(text, error) or _BLANK_LINE.sub("", _TAB_AFTER_DASH.sub(r"\1 ", text))
            if mended == text:
                raise _malformed(error) from None
            text = mended
        except (UnicodeEncodeError, ValueError, RecursionError):
            raise Unusable("frontmatter_malformed", "not valid YAML") from None
    raise Unusable("frontmatter_malformed", "too many escaped halves of characters")


def _checked(root: Any, text: str) -> Any:
    """Return the root, refusing a comment right behind a quoted text: YAML 1.2 wants a blank there."""
    for match in _QUOTE_HASH.finditer(text) if "#" in text else ():
        at = match.start() + 1
        if any(node.end_mark.index == at for node in _quoted_nodes(root)):
            mark = _Mark(text.count("\n", 0, at), at - text.rfind("\n", 0, at) - 1)
            raise Unusable("frontmatter_malformed", "a comment without a blank before it", mark)
    return root


def _node(text: str) -> Any:
    loader = _CoreLoader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _malformed(error: yaml.YAMLError) -> Unusable:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    phrase = str(getattr(error, "problem", None) or "not valid YAML")
    return Unusable("frontmatter_malformed", _without_text(phrase), mark)


_MOST_PAIRED = 100
"""So many quoted texts with escaped halves of characters are read; each costs a pass."""
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ESCAPED_HALVES = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?|u[dD][c-fC-F][0-9a-fA-F]{2}|.)", re.DOTALL
)
_TAB_AFTER_DASH = re.compile(r"^( *(?:- +)*-) *\t[ \t]*(?=\S)", re.MULTILINE)
_QUOTE_HASH = re.compile("[\"']#")
_BLANK_LINE = re.compile(r"^[ \t]*\t[ \t]*$", re.MULTILINE)
"""A line of blanks with a tab among them, which libyaml takes for indentation."""
_ODD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def _with_pairs(text: str, error: yaml.YAMLError) -> str:
    """Return YAML with the two escaped halves of a character in a quoted text as one, a lone half as U+FFFD; "": none.

    JSON and JavaScript write characters beyond U+FFFF so, and Obsidian's reader takes it; libyaml refuses it.
    """
    mark = getattr(error, "context_mark", None)
    if mark is None or "escape code" not in str(getattr(error, "problem", "")):
        return ""
    quoted = _QUOTED.match(text, mark.index)
    if quoted is None:
        return ""
    return text[: quoted.start()] + _ESCAPED_HALVES.sub(_paired, quoted.group()) + text[quoted.end() :]


def _paired(match: re.Match[str]) -> str:
    high, low = match.groups()
    if low is not None:
        return f"\\U{0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF):08X}"
    return "\\uFFFD" if len(match.group()) > 2 else match.group()


def _stand_ins(text: str) -> dict[int, str]:
    """Return for each character of a text that libyaml takes for a line end or refuses one that is not in the text.

    YAML 1.2 has two line ends, and Obsidian's reader takes any other character as it is.
    """
    if text.replace("\n", "").isprintable():  # most blocks: a third of the expression's time
        return {}
    odd = sorted(set(_ODD.findall(text)))
    free = (char for char in map(chr, chain(range(0xE000, 0xF900), range(0xF0000, 0xFFFFE))) if char not in text)
    return {ord(char): stand_in for char, stand_in in zip(odd, free)}


def _restore(root: Any, table: dict[int, str]) -> None:
    """Put the characters of a text back into the scalars below a node."""
    for node in _scalars(root):
        node.value = node.value.translate(table)


def _quoted_nodes(root: Any) -> Iterator[Any]:
    return (node for node in _scalars(root) if node.style in ("'", '"'))


def _scalars(root: Any) -> Iterator[Any]:
    """Yield the scalar nodes below a node, each once."""
    seen: set[int] = set()
    waiting = [] if root is None else [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            yield node
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
        else:
            waiting += [part for pair in node.value for part in pair]


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
                    raise Unusable("frontmatter_unsafe", f"nested deeper than {MAX_DEPTH}", event.start_mark)
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
            raise Unusable("frontmatter_unsafe", "an anchor contains itself", node.start_mark)
        open_nodes.add(id(node))
        total = 1
        if isinstance(node, yaml.SequenceNode):
            total += sum(size(item) for item in node.value)
        elif isinstance(node, yaml.MappingNode):
            total += sum(size(key) + size(value) for key, value in node.value)
        open_nodes.discard(id(node))
        if total > MAX_NODES:
            raise Unusable("frontmatter_unsafe", f"anchors expand to more than {MAX_NODES} values", node.start_mark)
        sizes[id(node)] = total
        return total

    size(root)


def _construct(node: Any, depth: int) -> Any:
    """Return the plain value of a node. Raises Unusable for duplicate keys and object tags."""
    if node.tag.startswith(_PYTHON_TAG):
        raise Unusable("frontmatter_unsafe", "an object tag", node.start_mark)
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [_construct(item, depth + 1) for item in node.value]
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _key_text(key_node, depth)
        if key in mapping:
            raise Unusable("frontmatter_duplicate_key", "the same property twice", key_node.start_mark)
        mapping[key] = _construct(value_node, depth + 1)
    return mapping


def _key_text(node: Any, depth: int) -> str:
    if isinstance(node, yaml.ScalarNode):
        return str(node.value) if node.tag == _STR else _as_key(_scalar(node))
    value = _construct(node, depth + 1)
    return "{ " + ", ".join(map(str, value)) + " }" if isinstance(value, dict) else str(value)


def _as_key(value: Any) -> str:
    """Return the property name that JavaScript makes of a scalar: numbers as numbers, nothing as ""."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)


def _scalar(node: Any) -> Any:
    if node.tag == _STR:
        return str(node.value)
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
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    if len(text) <= 16:
        return int(text[2:], base) if base != 10 else int(text)
    value = _as_float(text if base == 10 else int(text[2:], base))
    if value is None:
        return text
    return int(value) if abs(value) <= 2**53 else value


def _as_float(number: str | int) -> float | None:
    try:
        value = float(number)
    except (ValueError, OverflowError):
        return None
    return value if abs(value) < float("inf") else None
