"""Take out what needs no block parser: paragraphs, headings and lists that can mean one thing only.

A body is cut at blank lines. A piece whose lines all start with plain words, list marks or `# `
at the margin is what it looks like, wherever it stands: its text is handed on as it is. A piece
without any sign of a link, tag, heading or block id is dropped. Each leaves a one-letter paragraph
(the first of several will do), which keeps the meaning of what is left, and line numbers stay.
Whatever is not certain stays for the parser; `tests/properties/test_fuzz.py` holds the two
readings against each other. Rules: CommonMark 0.31, sections 4 and 5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

_GAP = re.compile(r"\n[ \t]*(?:\n[ \t]*)*\n")
_SIGNS = ("[[", "](", "#", "^", "<", "$$", "```", "~~~", "-->", "?>", "]]>")
_UNDERLINE = re.compile(r"\n {0,3}(?:=+|-+)[ \t]*(?:\n|\Z)")
_LIST = re.compile(r"^[ \t>]*(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)", re.MULTILINE)

_SPANS = re.compile(r"^ {0,3}(?:```|~~~|\$\$|<)", re.MULTILINE)
"""A line that may begin a block in which other lines mean nothing: fence, math, HTML (CommonMark 4.5, 4.6)."""
_KEPT = b"[]()#^<>$`~=\t\\"
_NOT_KEPT = bytes(set(range(256)) - set(_KEPT))
_KEPT_OF_SIGNS = tuple((sign, bytes(code for code in sign.encode() if code in _KEPT)) for sign in _SIGNS)
_FENCE = re.compile(r"(`{3,}(?=[^`\n]*$)|~{3,}).*\n?", re.MULTILINE)

MARK = r"(?:[-+*]|[0-9]{1,9}[.)])(?: {1,4}|\t)"
START = (
    r"(?:[^\s#>*+\-=_|:~`$<0-9]|#[^#\s]|\*{1,2}[^\s*]|_{1,2}[^\s_]|`{1,2}[^`\s]|~~[^~\s]|==[^=\s]|\$[^$\s]|-[^\s\-:|]"
    r"|[0-9]+(?![0-9.)]))"
)
"""How a line starts that can't begin or end any block but a paragraph."""
HEADING = r"#{1,6}[ \t]+[^#\s][^#\n]*"
_PLAIN = re.compile(rf"(?:(?<![ \t]){HEADING}(?:\n(?![ \t])|\Z)|(?:{MARK})?{START}[^\n]*(?:\n[ \t]*|\Z))+")
"""Lines of such paragraphs, list items of one and headings; nothing indented after a heading, where it is code."""
_HEADING_LINE = re.compile(rf"^{HEADING}$", re.MULTILINE)
_OVER_LINES = ("`", "<", "$", "^", "](")
"""Signs whose meaning depends on where a paragraph ends."""
_NOT_FLAT = re.compile(r"^(?:[ \t]|[0-9]{1,9}[.)][ \t])", re.MULTILINE)
_INDENTED_ITEM = re.compile(r"^[ \t]+(?:[-+*]|[0-9]{1,9}[.)])[ \t]", re.MULTILINE)
_ORDERED = re.compile(r"^[ \t]*[0-9]{1,9}[.)][ \t]", re.MULTILINE)
_STEP = re.compile(r"^(?:([ \t]*)[-+*][ \t]+|#{1,6}[ \t])", re.MULTILINE)
_BULLET = re.compile(r"^[-+*][ \t]", re.MULTILINE)


class Piece(NamedTuple):
    """A stretch of inline text: its 0-based line in the body, and its level if it is a heading (else 0)."""

    line: int
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Taken:
    """`rest` is what the block parser must read ("" for nothing), with as many lines as the body had."""

    rest: str
    pieces: list[Piece]


class Unfenced(NamedTuple):
    """A body without its fenced code at the margin, as many lines as before.

    `signs` are its signs alone, in order (to look for each in the text is slower); up to `limit` a line
    means what it says, whatever stands before it.
    """

    text: str
    signs: bytes
    limit: int

    @property
    def certain(self) -> bool:
        """Whether no line of it may lie in a fence, math or HTML."""
        return self.limit >= len(self.text)


def without_fences(body: str) -> Unfenced:
    """Blank out the fenced code at the margin of a body (line ends `\\n`).

    A fence at the margin is one wherever it stands, but in another fence, math or HTML.
    """
    signs = _signs_of(body)
    spans = None
    if b"<" in signs or b"```" in signs or b"$$" in signs or b"~~~" in signs:
        spans = _SPANS.search(body)
    pieces: list[str] = []
    start = length = 0
    while spans is not None:
        fence = _FENCE.match(body, spans.start())
        if fence is None:
            break
        closing = _closing_fence(fence.group(1)[0], len(fence.group(1))).search(body, fence.end())
        end = closing.end() if closing else len(body)
        lines = body.count("\n", fence.start(), end)
        blank = "\nx" + "\n" * (lines - 1) if lines > 1 else body[fence.start() : end]
        pieces += [body[start : fence.start()], blank]
        length += fence.start() - start + len(blank)
        start = end
        spans = _SPANS.search(body, end)
    limit = length + (spans.start() if spans else len(body)) - start
    text = "".join([*pieces, body[start:]]) if pieces else body
    return Unfenced(text, _signs_of(text) if pieces else signs, limit)


def _signs_of(body: str) -> bytes:
    return body.encode("utf-8", "surrogatepass").translate(None, _NOT_KEPT)


@lru_cache(maxsize=32)
def _closing_fence(sign: str, length: int) -> re.Pattern[str]:
    return re.compile(rf"^ {{0,3}}{sign}{{{length},}}[ \t]*$", re.MULTILINE)


def take_plain(unfenced: Unfenced) -> Taken:
    """Take the plain pieces out of a body."""
    body = unfenced.text
    if unfenced.certain and (pieces := _all_plain(body, unfenced.signs)) is not None:
        return Taken("", pieces)
    taken: list[Piece] = []
    left: list[str] = []
    line = start = 0
    after_plain = True
    kept = False
    signs = tuple(sign for sign in _SIGNS if sign in body)
    for gap_start, gap_end in _gaps(body):
        chunk = body[start:gap_start]
        indented = body[gap_end : gap_end + 1] in (" ", "\t")
        if indented and (_LIST.search(chunk) or (chunk[:1] in (" ", "\t") and not after_plain)):
            reduced = chunk  # what follows may belong to a list
        else:
            reduced = _reduced(chunk, signs, line if start < unfenced.limit else -1, taken)
        content = reduced.strip("\n")
        kept = kept or content not in ("x", "")
        if content == "x" and after_plain:  # one such paragraph has closed all lists
            reduced = reduced.replace("x", "")
        after_plain = content == "x" or (after_plain and not content)
        left += [reduced, "\n" * body.count("\n", gap_start, gap_end)]
        line += chunk.count("\n") + body.count("\n", gap_start, gap_end)
        start = gap_end
    return Taken("".join(left) if kept else "", taken)


def _all_plain(body: str, signs_alone: bytes) -> list[Piece] | None:
    """Return the pieces of a body if it has neither indented nor underlined lines, and nothing in it needs the parser.

    This is most bodies, and they need a look at the pieces with signs only.
    """
    if body[:1] in (" ", "\t") or "\n " in body or (b"\t" in signs_alone and "\n\t" in body):
        return None
    if ("\n-" in body or b"=" in signs_alone) and _UNDERLINE.search(body):
        return None
    pieces: list[Piece] = []
    line = start = end = 0
    signs = [sign for sign, kept in _KEPT_OF_SIGNS if kept in signs_alone]
    places = {sign: at for sign in signs if (at := body.find(sign)) >= 0}
    over_lines = [sign for sign in _OVER_LINES if sign in body]
    while places:
        at = min(places.values())
        gap, above = body.rfind("\n\n", end, at), start
        start = gap + 2 if gap >= 0 else end
        end = body.find("\n\n", at)
        end = len(body) if end < 0 else end
        line += body.count("\n", above, start)
        text = body[start:end].strip("\n")
        found = _pieces(text, line + body.startswith("\n", start), over_lines) if _is_plain(text) else []
        if not found:
            return None
        pieces += found
        places = {sign: at if at >= end else body.find(sign, end) for sign, at in places.items()}
        places = {sign: at for sign, at in places.items() if at >= 0}
    return pieces


def _gaps(body: str) -> Iterator[tuple[int, int]]:
    for gap in _GAP.finditer(body):
        yield gap.span()
    yield len(body), len(body)


def _reduced(chunk: str, signs: tuple[str, ...], line: int, taken: list[Piece]) -> str:
    """Return what the parser must see of a piece; what is plain goes to `taken`, unless `line` is -1."""
    text = chunk.strip("\n")
    lead = len(chunk) - len(chunk.lstrip("\n"))
    if _has_sign(text, signs):
        pieces = _pieces(text, line + lead, _OVER_LINES) if line >= 0 and _is_plain(text) else []
        if not pieces:
            return chunk
        taken += pieces
    elif text[:1] in (" ", "\t", ""):
        return "\n" * chunk.count("\n")
    return "\n" * lead + "x" + "\n" * (chunk.count("\n") - lead)


def _has_sign(text: str, signs: tuple[str, ...]) -> bool:
    for sign in signs:
        if sign in text:
            return True
    return _UNDERLINE.search(text) is not None


def _is_plain(text: str) -> bool:
    if "]:" in text or _PLAIN.fullmatch(text) is None:
        return False
    indented = "\n " in text or "\n\t" in text
    return not indented or _INDENTED_ITEM.search(text) is None or _is_certain_list(text)


def _is_certain_list(text: str) -> bool:
    """Tell whether each item lies in the item above or beside one, not half-way (where parsers disagree)."""
    if _ORDERED.search(text):
        return False
    offsets = [0]
    for found in _STEP.finditer(text):
        if found.group(1) is None:
            offsets = [0]
            continue
        indent = len(found.group(1).expandtabs(4))
        fell_out = False
        while indent < offsets[-1]:
            offsets.pop()
            fell_out = True
        if indent - offsets[-1] < 4:
            offsets.append(len(found.group().expandtabs(4)))
        elif fell_out:
            return False
    return True


def _pieces(text: str, line: int, over_lines: Sequence[str]) -> list[Piece]:
    """Return the headings and stretches of a plain text; none where it is not certain which lines belong together.

    `over_lines`: those of `_OVER_LINES` that may be in it.
    """
    exact = any(sign in text for sign in over_lines)
    if exact and _NOT_FLAT.search(text):
        return []
    if text[0] != "#" and "\n#" not in text:
        return _paragraphs(text, line, exact)
    pieces: list[Piece] = []
    end = 0
    for found in _HEADING_LINE.finditer(text):
        pieces += _paragraphs(text[end : found.start()], line + text.count("\n", 0, end), exact)
        content = found.group().lstrip("#")
        level = len(found.group()) - len(content)
        pieces.append(Piece(line + text.count("\n", 0, found.start()), level, content.strip()))
        end = found.end() + 1
    return pieces + _paragraphs(text[end:], line + text.count("\n", 0, end), exact)


def _paragraphs(text: str, line: int, exact: bool) -> list[Piece]:
    if not text:
        return []
    if not exact:
        return [Piece(line, 0, text)]
    bounds = [0, *(found.start() for found in _BULLET.finditer(text) if found.start()), len(text)]
    return [
        Piece(line + text.count("\n", 0, start), 0, text[start:end].strip(" \t\n")) for start, end in pairwise(bounds)
    ]
