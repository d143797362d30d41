"""Blank out paragraphs that can hold nothing we look for, before the Markdown parser sees them.

A paragraph, list or table without any sign that could start or end a link, tag, heading, block
id, fence, HTML or math block changes neither what the rest means nor what is found; a one-letter
paragraph in its place keeps the structure (the first of several will do), and line numbers stay.
Cost: about a tenth of parsing.
"""

from __future__ import annotations

import re

_GAP = re.compile(r"\n[ \t]*(?:\n[ \t]*)*\n")
_SIGNS = ("[[", "](", "#", "^", "<", "$$", "```", "~~~", "-->", "?>", "]]>")
_UNDERLINE = re.compile(r"^ {0,3}(?:=+|-+)[ \t]*$", re.MULTILINE)
_LIST = re.compile(r"^[ \t>]*(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)", re.MULTILINE)


def blank_inert(body: str) -> str:
    """Return the body with inert paragraphs replaced; the number of lines is unchanged."""
    if len(body) < 200:
        return body
    pieces: list[str] = []
    start = 0
    after_plain = False
    for gap in _GAP.finditer(body):
        reduced = _reduced(body[start : gap.start()], gap.end(), gap.group(), body)
        plain = reduced.rstrip("\n") == "x"
        pieces.append(reduced[1:] if plain and after_plain else reduced)  # one such paragraph has closed all lists
        after_plain = plain or (after_plain and not reduced.strip("\n"))
        pieces.append("\n" * gap.group().count("\n") + gap.group().rpartition("\n")[2])
        start = gap.end()
    pieces.append(body[start:])
    return "".join(pieces)


def _reduced(chunk: str, next_start: int, gap: str, body: str) -> str:
    for sign in _SIGNS:
        if sign in chunk:
            return chunk
    if ("--" in chunk or "=" in chunk or "\n-" in chunk) and _UNDERLINE.search(chunk):
        return chunk
    next_indented = gap[-1] != "\n" or body[next_start : next_start + 1] in (" ", "\t")
    if next_indented and _LIST.search(chunk):
        return chunk
    lines = "\n" * chunk.count("\n")
    indented = chunk[:1] in (" ", "\t", "")
    return lines if indented else "x" + lines
