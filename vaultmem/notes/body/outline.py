"""Heading and block parts of links: where `#…` leads in a note's outline."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vaultmem.base.values import Heading

_HEADING_MARKS = re.compile(r"[!\"#$%&()*+,.:;<=>?@^`{|}~/\[\]\\\r\n]")
"""Signs that count as blanks when heading parts are compared (Obsidian's `stripHeading`)."""


def heading_form(text: str) -> str:
    """Return the form in which a heading and a link's heading part are compared."""
    return " ".join(_HEADING_MARKS.sub(" ", text).split()).lower()


def subpath_line(subpath: str, headings: Iterator[Heading] | tuple[Heading, ...], blocks: tuple[str, ...]) -> int:
    """Return the 1-based line of the heading that a `#…` part means, 0 for none.

    A block id that is there gives 1 (its line is not kept). Each further part of a chain must
    lie deeper than the one before (Obsidian's `resolveSubpath`).
    """
    parts = [part for part in subpath.split("#") if part]
    if not parts:
        return 1
    if len(parts) == 1 and parts[0].startswith("^"):
        wanted = parts[0][1:].strip().lower()
        return 1 if any(block.lower() == wanted for block in blocks) else 0
    position, level = 0, 0
    for found in headings:
        if found.level > level and heading_form(found.text) == heading_form(parts[position]):
            position, level = position + 1, found.level
            if position == len(parts):
                return found.line
    return 0
