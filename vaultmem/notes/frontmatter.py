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

from vaultmem.notes.yaml_values import Unusable, load_yaml

_OPEN = re.compile(r"---\r?\n")
_CLOSE = re.compile(r"(?<=\n)---(?:\r?\n|\Z)")
_CAO_LINE = re.compile(r"^cao\s*:", re.MULTILINE)


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
        data, _ = load_yaml(fm)
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
            raise Unusable("frontmatter_too_large", f"properties are larger than {max_bytes} bytes")
        data, root = load_yaml(yaml_text.replace("\r\n", "\n"))
    except Unusable as error:
        line = getattr(error.mark, "line", 0) + 2
        problem = Problem(error.code, line, getattr(error.mark, "column", 0) + 1, error.phrase)
    return Block(yaml_text, body_start, body_line, data, problem, root)


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
