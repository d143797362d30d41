"""Dated sections of managed notes and topic files: found, written and escaped.

A section is a line `## <UTC time>` and the text up to the next such line; `###` is read too
(reference/wiki-format.md, reference/vault.md "Reads and writes").
"""

from __future__ import annotations

import re
from typing import Any

from vaultmem.base.times import iso, parse_time
from vaultmem.base.values import Section

_TIME = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?"
_SECTION = re.compile(rf"## ({_TIME})[ \t]*$", re.MULTILINE)
"""The end of a section's heading: an expression that begins with letters is searched for ten times as fast."""
_FORGERY = re.compile(rf"^(\s{{0,3}})(#{{1,6}} {_TIME}[ \t]*$|---[ \t]*$|<!--|\s*<!-- id:)", re.MULTILINE)
_MARKED = re.compile(
    r"<!--\s*cao-(memory|learned):begin\s*-->.*?(?:<!--\s*cao-\1:end\s*-->|\Z)", re.DOTALL | re.IGNORECASE
)


def read_sections(body: str, first_line: int) -> tuple[Section, ...]:
    """Return the dated sections of a body in file order; times that are no times start none."""
    if "## " not in body:
        return ()
    marks = [
        (match, start, moment)
        for match in _SECTION.finditer(body)
        if (start := _line_start(body, match.start())) >= 0 and (moment := parse_time(match.group(1)))
    ]
    sections = []
    for position, (match, start, moment) in enumerate(marks):
        end = marks[position + 1][1] if position + 1 < len(marks) else len(body)
        line = body.count("\n", 0, start) + first_line
        sections.append(Section(iso(moment), line, body[match.end() : end].strip("\n")))
    return tuple(sections)


def _line_start(body: str, at: int) -> int:
    """Return where the line begins if nothing but one more `#` stands before `at`, else -1."""
    start = at - 1 if body[at - 1 : at] == "#" else at
    return start if start == 0 or body[start - 1] == "\n" else -1


def section_texts(body: str, body_line: int, sections: list[list[Any]]) -> list[str]:
    """Return the texts of a note's dated sections (`sections`: time and 1-based line of each), headings left out."""
    lines = body.split("\n")
    starts = [line - body_line for _, line in sections]
    return ["\n".join(lines[start + 1 : end]).strip("\n") for start, end in zip(starts, [*starts[1:], len(lines)])]


def section_text(time: str, content: str) -> str:
    """Return the lines of a new section, ending in one line end."""
    return f"## {time}\n{escape_content(content)}\n"


def escape_content(content: str) -> str:
    """Return content whose lines can't be read as section headings, fences or header comments."""
    text = content.replace("\r\n", "\n").replace("\r", "\n").strip("\n").rstrip()
    return _FORGERY.sub(lambda match: f"{match.group(1)}\\{match.group(2).lstrip()}", text)


def unescape_content(text: str) -> str:
    """Return the content that `escape_content` wrote."""
    return re.sub(rf"^(\s{{0,3}})\\(#{{1,6}} {_TIME}[ \t]*$|---[ \t]*$|<!--)", r"\1\2", text, flags=re.MULTILINE)


def without_marked(text: str) -> str:
    """Blank out what stands between cao-memory or cao-learned markers; lines keep their numbers."""
    if "<" not in text or "cao-" not in text:  # one sign is found many times as fast as several
        return text
    return _MARKED.sub(lambda match: "\n" * match.group().count("\n"), text)
