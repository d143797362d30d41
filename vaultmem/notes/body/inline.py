"""What Obsidian reads inside a paragraph or heading: links, embeds, tags.

One rule a syntax, asked where its first sign stands; what no rule takes is text. markdown-it-py has
no part in it but for destinations and titles: nothing is rendered, so its tokens would be made for nothing.
Each rule is linear in its text: a search that found nothing is not made again (`_Scan`).
Sources: conformance/README.md; Obsidian's help pages "Internal links", "Tags" and
"Basic formatting syntax"; CommonMark 0.31 for links, code spans and HTML.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from markdown_it.helpers import parseLinkDestination, parseLinkTitle

_SPECIAL = re.compile(r"[\\`!\[#<$:]")
_ESCAPABLE = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_TAG_TEXT = re.compile(r"#([^\u2000-\u206F\u2E00-\u2E7F'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\\s]+)")
"""The characters of a tag, as published in blacksmithgu/obsidian-dataview (pull request 1608)."""
_HTML_TAG = re.compile(
    r"</?[A-Za-z][A-Za-z0-9-]*(?:\s+[A-Za-z_:][A-Za-z0-9_.:-]*(?:\s*=\s*(?:[^\s\"'=<>`]+|'[^']*'|\"[^\"]*\"))?)*\s*/?>"
)
_AUTOLINK = re.compile(r"<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^<>\x00-\x20]*|[\w.!#$%&'*+/=?^`{|}~-]+@[\w.-]+)>")
_URL_REST = re.compile(r"[^\s<>\[\]\"`|]*")
_URL_SCHEME = re.compile(r"(?:^|[^A-Za-z])(?:https?|ftp|file|obsidian)$")
_BRACKETS = re.compile(r"\\.|`+|\[\[|\[|\]", re.DOTALL)


class _Scan:
    """What is known of one inline text: where the next closers are, its Markdown links and code spans."""

    __slots__ = ("found", "links", "runs", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: dict[str, tuple[int, int]] = {}
        self.links: dict[int, tuple[int, str, int]] | None = None
        self.runs: dict[int, int] | None = None

    def next(self, needle: str, start: int) -> int:
        """Return where `needle` is next at or after `start`, or -1; amortised linear."""
        from_, at = self.found.get(needle, (0, -2))
        if at == -2 or start < from_ or -1 < at < start:
            at = self.text.find(needle, start)
            self.found[needle] = (start, at)
        return at

    def wikilink(self, start: int) -> int:
        """Return the offset of the `]]` that closes the `[[` at `start`, or -1.

        A line break or another `[[` before it ends the attempt (the inner one counts).
        """
        inner = start + 2
        close = self.next("]]", inner)
        if close < 0 or self.text.startswith("[", inner):
            return -1
        if self.text.find("\n", inner, close) >= 0 or self.text.find("[[", inner, close) >= 0:
            return -1
        return close

    def link_at(self, start: int) -> tuple[int, str, int] | None:
        """Return (label end, destination, end) of the Markdown link whose `[` is at `start`."""
        if self.links is None:
            self.links = _markdown_links(self) if "](" in self.text else {}
        return self.links.get(start)

    def code_end(self, start: int) -> int:
        """Return the end of the code span whose run of backticks is at `start`, or -1."""
        if self.runs is None:
            self.runs = _closing_runs(self.text)
        return self.runs.get(start, -1)


def _markdown_links(scan: _Scan) -> dict[int, tuple[int, str, int]]:
    """Find all inline links in one pass, inner ones first: a link in a label undoes the outer one."""
    text = scan.text
    links: dict[int, tuple[int, str, int]] = {}
    openers: list[int] = []
    pos = 0
    while (match := _BRACKETS.search(text, pos)) is not None:
        start, mark = match.start(), match.group()
        pos = match.end()
        if mark[0] == "`":
            pos = max(pos, scan.code_end(start))
        elif mark == "[[":
            close = scan.wikilink(start)
            if close >= 0:
                openers.clear()
                pos = close + 2
            else:
                openers.append(start)
                pos = start + 1
        elif mark == "[":
            openers.append(start)
        elif mark == "]" and openers:
            opener = openers.pop()
            target = _destination(text, pos) if text.startswith("(", pos) else None
            if target is not None:
                links[opener] = (start, target[0], target[1])
                pos = target[1]
                if not text.startswith("!", opener - 1) or opener == 0:
                    openers.clear()
    return links


def _closing_runs(text: str) -> dict[int, int]:
    """Map each backtick run's offset to the end of the next run of the same length."""
    ends: dict[int, int] = {}
    later: dict[int, int] = {}
    for match in reversed(list(re.finditer(r"`+", text))):
        length = match.end() - match.start()
        if length in later:
            ends[match.start()] = later[length]
        later[length] = match.end()
    return ends


def _destination(text: str, paren: int) -> tuple[str, int] | None:
    """Read `(destination "title")` at `paren`; return (destination, end) or None."""
    end = len(text)
    pos = _skip_blanks(text, paren + 1)
    found = parseLinkDestination(text, pos, end)
    destination = ""
    if found.ok:
        destination, pos = found.str, found.pos
    after = _skip_blanks(text, pos)
    if after > pos and after < end and text[after] in "\"'(":
        title = parseLinkTitle(text, after, end)
        if not title.ok:
            return None
        after = _skip_blanks(text, title.pos)
    if not text.startswith(")", after):
        return None
    return destination, after + 1


def _skip_blanks(text: str, pos: int) -> int:
    while pos < len(text) and text[pos] in " \t\n":
        pos += 1
    return pos


class Wikilink(NamedTuple):
    """A wikilink or embed: the offset of its first sign and the text between the brackets."""

    start: int
    embed: bool
    inner: str


class MarkdownLink(NamedTuple):
    """A Markdown link or image, as written (`raw`) and in parts."""

    start: int
    embed: bool
    raw: str
    destination: str
    label: str


class Tag(NamedTuple):
    """A tag, without its `#`."""

    start: int
    name: str


Found = Wikilink | MarkdownLink | Tag


class _Reading:
    """Where the reading of one text is: `pos` up to `end`, and from `mark` on plain text since the last find."""

    __slots__ = ("end", "found", "mark", "no_math_after", "pos", "scan", "src")

    def __init__(self, text: str) -> None:
        self.src = text
        self.pos = self.mark = 0
        self.end = len(text)
        self.found: list[Found] = []
        self.scan = _Scan(text)
        self.no_math_after = len(text)

    def take(self, end: int, found: Found | None = None) -> bool:
        """Go on at `end`, with what was found before it, if anything that is kept."""
        self.pos = self.mark = end
        if found is not None:
            self.found.append(found)
        return True


def read_inline(text: str) -> list[Found]:
    """Return the links and tags of an inline text, in order (a link before the tags in its label)."""
    reading = _Reading(text)
    _read(reading)
    return reading.found


def _read(reading: _Reading) -> None:
    src, end = reading.src, reading.end
    while (match := _SPECIAL.search(src, reading.pos, end)) is not None:
        reading.pos = match.start()
        for rule in _RULES[match.group()]:
            if rule(reading):
                break
        else:
            reading.pos += 1


def _escape(reading: _Reading) -> bool:
    start = reading.pos
    if start + 1 >= reading.end or reading.src[start + 1] not in _ESCAPABLE:
        return False
    return reading.take(start + 2)


def _code_span(reading: _Reading) -> bool:
    start = reading.pos
    end = reading.scan.code_end(start)
    if 0 <= end <= reading.end:
        return reading.take(end)
    while reading.pos < reading.end and reading.src[reading.pos] == "`":
        reading.pos += 1
    return True


def _wikilink(reading: _Reading) -> bool:
    start, src = reading.pos, reading.src
    embed = src[start] == "!"
    opener = start + embed
    if not src.startswith("[[", opener):
        return False
    close = reading.scan.wikilink(opener)
    if close < 0 or close + 2 > reading.end:
        return False
    return reading.take(close + 2, Wikilink(start, embed, src[opener + 2 : close]))


def _markdown_link(reading: _Reading) -> bool:
    start, src = reading.pos, reading.src
    embed = src[start] == "!"
    opener = start + embed
    if not src.startswith("[", opener):
        return False
    found = reading.scan.link_at(opener)
    if found is None or found[2] > reading.end:
        return False
    label_end, destination, end = found
    label = src[opener + 1 : label_end]
    reading.found.append(MarkdownLink(start, embed, src[start:end], destination, label))
    if not embed and "#" in label:  # tags in the label count (Obsidian 1.13.7 readings)
        limit, reading.end = reading.end, label_end
        reading.pos = reading.mark = opener + 1
        _read(reading)
        reading.end = limit
    return reading.take(end)


def _tag(reading: _Reading) -> bool:
    start, src = reading.pos, reading.src
    before = src[max(reading.mark, start - 2) : start]
    last = before[-1:]
    # blank, start of the text or of a token, or an emphasis mark (a token of its own in the app)
    if last and not (last.isspace() or last in "*_" or before in ("==", "~~", "%%")):
        return False
    match = _TAG_TEXT.match(src, start, reading.end)
    if match is None:
        return False
    name = match.group(1)
    if last == "_":
        name = name.rstrip("_")
    name = name.rstrip("/")
    if not name or name.isdecimal():
        return False
    return reading.take(match.end(), Tag(start, name))


def _angle(reading: _Reading) -> bool:
    start, src = reading.pos, reading.src
    for opening, closing in (("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>")):
        if src.startswith(opening, start):
            close = reading.scan.next(closing, start + len(opening))
            if close < 0 or close + len(closing) > reading.end:
                return False
            return reading.take(close + len(closing))
    match = _AUTOLINK.match(src, start, reading.end) or _HTML_TAG.match(src, start, reading.end)
    return match is not None and reading.take(match.end())


def _math(reading: _Reading) -> bool:
    start, src = reading.pos, reading.src
    if src.startswith("$$", start):
        close = reading.scan.next("$$", start + 2)
        if close >= 0 and close + 2 <= reading.end:
            return reading.take(close + 2)
        reading.pos += 2
        return True
    end = -1 if src[start + 1 : start + 2].isspace() else _math_end(reading, start)
    return 0 <= end <= reading.end and reading.take(end)


def _math_end(reading: _Reading, start: int) -> int:
    """Return the end of inline math: its last `$` follows no blank and stands before no digit."""
    if reading.no_math_after <= start:
        return -1
    text, pos = reading.src, start + 1
    while (close := text.find("$", pos)) >= 0:
        if (
            close > start + 1
            and not text[close - 1].isspace()
            and not text[close + 1 : close + 2].isdigit()
            and text[close - 1] != "\\"
        ):
            return close + 1
        pos = close + 1
    reading.no_math_after = start
    return -1


def _bare_url(reading: _Reading) -> bool:
    start, src = reading.pos, reading.src
    if not src.startswith("://", start) or not _URL_SCHEME.search(src[max(reading.mark, start - 12) : start]):
        return False
    match = _URL_REST.match(src, start + 3, reading.end)
    return reading.take(match.end() if match else start + 3)


_RULES: dict[str, tuple[Callable[[_Reading], bool], ...]] = {
    "\\": (_escape,),
    "`": (_code_span,),
    "!": (_wikilink, _markdown_link),
    "[": (_wikilink, _markdown_link),
    "#": (_tag,),
    "<": (_angle,),
    "$": (_math,),
    ":": (_bare_url,),
}
