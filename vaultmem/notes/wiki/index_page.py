"""Lines of a container's index.md: put in, taken out, read; the rest of the file is kept.

Pure. Source: reference/wiki-format.md, "index.md". The index is upstream's view of topics; ours is
index.db, so a line that is missing here hides nothing from us.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TITLE = "# CAO Memory Index"
_STAMP = re.compile(r"^<!-- Updated: .*-->$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: `path` is relative to the container's `wiki/` folder."""

    scope: str
    key: str
    path: str
    type: str
    tags: tuple[str, ...]
    tokens: int
    updated: str

    def line(self) -> str:
        """Return the line as upstream writes it."""
        tags = ",".join(self.tags)
        return f"- [{self.key}]({self.path}) — type:{self.type} tags:{tags} ~{self.tokens}tok updated:{self.updated}"


def with_entry(text: str, entry: Entry, now: str) -> str:
    """Return the index with this entry first in its section, and no other line of the same topic."""
    lines = _stamped(text, now)
    lines = [line for line in lines if not _is_of(line, entry.key, entry.path)]
    heading = f"## {entry.scope}"
    if heading in lines:
        lines.insert(lines.index(heading) + 1, entry.line())
    else:
        while lines and not lines[-1].strip():
            lines.pop()
        lines += ["", heading, entry.line()]
    return "\n".join(lines).rstrip("\n") + "\n"


def without_entry(text: str, key: str, path: str, now: str) -> str:
    """Return the index without the lines of a topic; equal text when there was none."""
    if not any(_is_of(line, key, path) for line in text.split("\n")):
        return text
    lines = [line for line in _stamped(text, now) if not _is_of(line, key, path)]
    return "\n".join(lines).rstrip("\n") + "\n"


def has_entry(text: str, key: str, path: str) -> bool:
    """Tell whether the index has a line of that topic."""
    return any(_is_of(line, key, path) for line in text.split("\n"))


def _is_of(line: str, key: str, path: str) -> bool:
    return line.startswith("- ") and f"[{key}](" in line and f"({path})" in line


def _stamped(text: str, now: str) -> list[str]:
    stamp = f"<!-- Updated: {now} -->"
    if not text.strip():
        return [_TITLE, stamp]
    if _STAMP.search(text):
        text = _STAMP.sub(stamp, text, count=1)
    return text.rstrip("\n").split("\n")
