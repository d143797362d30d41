"""Read a body in which brackets are wikilinks and `#` are headings, whatever block they stand in: many notes are such.

Nothing is cut into blocks here. It is certain if every line starts as a paragraph, list item or heading
at the margin (`notes.body.plain`), no other sign is there that means something, and no link goes over a line;
`tests/properties/test_fuzz.py` holds this reading against the parser's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from vaultmem.base.values import Heading, Link
from vaultmem.notes.body.plain import HEADING, MARK, START, Unfenced
from vaultmem.notes.links.wikilinks import wikilink

_HARMLESS = b"()>~=\t"
"""Signs that mean something only together with others, or at the start of a line."""
_ODD_LINE = re.compile(rf"\n(?![A-Za-z\n])(?!\Z|{HEADING}(?:\n|\Z)|(?:{MARK})?{START})")
_HEADING_LINE = re.compile(r"\n(#{1,6})[ \t]+([^#\n]+)")
_WIKILINK = re.compile(r"\[\[([^\]\n]*)\]\]")


@dataclass(frozen=True, slots=True)
class Flat:
    """What is in a flat body, in order."""

    headings: list[Heading]
    links: list[Link]


def read_flat(body: Unfenced, first_line: int) -> Flat | None:
    """Return the headings and links of a body, None if it is not certain what they are.

    `first_line` is its 1-based line in the note.
    """
    telling = body.signs.translate(None, _HARMLESS)
    if not body.certain or telling.replace(b"[[]]", b"").strip(b"#"):
        return None
    if ":" in body.text and ("://" in body.text or "]:" in body.text):
        return None
    text = "\n" + body.text
    if _ODD_LINE.search(text) is not None:
        return None
    headings = _headings(text, first_line - 1)
    if telling.count(b"#") != sum(heading.level for heading in headings):
        return None
    links = _links(text, first_line - 1, telling.count(b"[") // 2)
    return Flat(headings, links) if links is not None else None


def _headings(text: str, line: int) -> list[Heading]:
    """Return the headings of a text that begins with a line end; `line` is the number of the line before it."""
    found, end = [], 0
    for match in _HEADING_LINE.finditer(text):
        line += text.count("\n", end, match.end())
        end = match.end()
        found.append(Heading(len(match[1]), match[2].strip(), line))
    return found


def _links(text: str, line: int, number: int) -> list[Link] | None:
    """Return the links of a text that begins with a line end, None if they are not `number` pairs of brackets."""
    found, end = [], 0
    for match in _WIKILINK.finditer(text):
        number -= 1
        start = match.start()
        line += text.count("\n", end, start)
        end = start
        link = wikilink(match[1], embed=text[start - 1] == "!", line=line)
        if link is not None:
            found.append(link)
    return None if number else found
