"""markdown-it-py inline rules for what Obsidian reads inside a line: links, embeds, tags.

One rule a syntax, in the parser's own ruler; the rules push marker tokens and never render.
Each rule is linear in its text: a search that found nothing is not made again (`_Scan`).
Sources: conformance/README.md; Obsidian's help pages "Internal links", "Tags" and
"Basic formatting syntax"; CommonMark 0.31 for links, code spans and HTML.
"""

from __future__ import annotations

import re
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.helpers import parseLinkDestination, parseLinkTitle
from markdown_it.rules_inline import StateInline

LINK, TAG, SKIP = "vm_link", "vm_tag", "vm_skip"

_SPECIAL = re.compile(r"\\|`|!?\[|#|<|\$|://")
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
    """What is known of one inline text: where the next closers are, and its Markdown links."""

    __slots__ = ("found", "links", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: dict[str, tuple[int, int]] = {}
        self.links: dict[int, tuple[int, str, int]] | None = None

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


def _markdown_links(scan: _Scan) -> dict[int, tuple[int, str, int]]:
    """Find all inline links in one pass, inner ones first: a link in a label undoes the outer one."""
    text = scan.text
    closing_run = _closing_runs(text)
    links: dict[int, tuple[int, str, int]] = {}
    openers: list[int] = []
    pos = 0
    while (match := _BRACKETS.search(text, pos)) is not None:
        start, mark = match.start(), match.group()
        pos = match.end()
        if mark[0] == "`":
            pos = closing_run.get(start, pos)
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
    if "`" not in text:
        return {}
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


def _push(state: StateInline, kind: str, start: int, end: int, **meta: Any) -> None:
    token = state.push(kind, "", 0)
    token.meta = {"start": start, **meta}
    state.pos = end


def _scan_of(state: StateInline) -> _Scan:
    scan: _Scan = state.env["scan"]
    return scan


def _text(state: StateInline, silent: bool) -> bool:
    match = _SPECIAL.search(state.src, state.pos, state.posMax)
    end = match.start() if match else state.posMax
    if end == state.pos:
        return False
    state.pending += state.src[state.pos : end]
    state.pos = end
    return True


def _escape(state: StateInline, silent: bool) -> bool:
    start = state.pos
    if state.src[start] != "\\" or start + 1 >= state.posMax or state.src[start + 1] not in _ESCAPABLE:
        return False
    _push(state, SKIP, start, start + 2)
    return True


def _code_span(state: StateInline, silent: bool) -> bool:
    start = state.pos
    if state.src[start] != "`":
        return False
    if "runs" not in state.env:
        state.env["runs"] = _closing_runs(state.src)
    end = state.env["runs"].get(start, -1)
    if 0 <= end <= state.posMax:
        _push(state, SKIP, start, end)
        return True
    while state.pos < state.posMax and state.src[state.pos] == "`":
        state.pending += "`"
        state.pos += 1
    return True


def _wikilink(state: StateInline, silent: bool) -> bool:
    start = state.pos
    embed = state.src[start] == "!"
    opener = start + embed
    if not state.src.startswith("[[", opener):
        return False
    close = _scan_of(state).wikilink(opener)
    if close < 0 or close + 2 > state.posMax:
        return False
    _push(state, LINK, start, close + 2, form="wikilink", embed=embed, inner=state.src[opener + 2 : close])
    return True


def _markdown_link(state: StateInline, silent: bool) -> bool:
    start = state.pos
    embed = state.src[start] == "!"
    opener = start + embed
    if not state.src.startswith("[", opener):
        return False
    found = _scan_of(state).link_at(opener)
    if found is None or found[2] > state.posMax:
        return False
    label_end, destination, end = found
    label = state.src[opener + 1 : label_end]
    _push(
        state,
        LINK,
        start,
        end,
        form="markdown",
        embed=embed,
        destination=destination,
        label=label,
        raw=state.src[start:end],
    )
    if not embed and "#" in label:  # tags in the label count (Obsidian 1.13.7 readings)
        limit = state.posMax
        state.pos, state.posMax = opener + 1, label_end
        state.md.inline.tokenize(state)
        if state.pending:
            state.pushPending()
        state.pos, state.posMax = end, limit
    return True


def _tag(state: StateInline, silent: bool) -> bool:
    start = state.pos
    if state.src[start] != "#":
        return False
    before = state.pending[-1:]
    # blank, start of the text or of a token, or an emphasis mark (a token of its own in the app)
    if before and not (before.isspace() or before in "*_" or state.pending[-2:] in ("==", "~~", "%%")):
        return False
    match = _TAG_TEXT.match(state.src, start, state.posMax)
    if match is None:
        return False
    name = match.group(1)
    if before == "_":
        name = name.rstrip("_")
    name = name.rstrip("/")
    if not name or name.isdecimal():
        return False
    _push(state, TAG, start, match.end(), name=name)
    return True


def _angle(state: StateInline, silent: bool) -> bool:
    start, src = state.pos, state.src
    if src[start] != "<":
        return False
    for opening, closing in (("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>")):
        if src.startswith(opening, start):
            close = _scan_of(state).next(closing, start + len(opening))
            if close < 0 or close + len(closing) > state.posMax:
                return False
            _push(state, SKIP, start, close + len(closing))
            return True
    match = _AUTOLINK.match(src, start, state.posMax) or _HTML_TAG.match(src, start, state.posMax)
    if match is None:
        return False
    _push(state, SKIP, start, match.end())
    return True


def _math(state: StateInline, silent: bool) -> bool:
    start, src = state.pos, state.src
    if src[start] != "$":
        return False
    scan = _scan_of(state)
    if src.startswith("$$", start):
        close = scan.next("$$", start + 2)
        if close >= 0 and close + 2 <= state.posMax:
            _push(state, SKIP, start, close + 2)
            return True
        state.pending += "$$"
        state.pos += 2
        return True
    end = -1 if src[start + 1 : start + 2].isspace() else _math_end(scan, start, state)
    if end < 0 or end > state.posMax:
        return False
    _push(state, SKIP, start, end)
    return True


def _math_end(scan: _Scan, start: int, state: StateInline) -> int:
    """Return the end of inline math: its last `$` follows no blank and stands before no digit."""
    if state.env.get("no_math_after", len(scan.text)) <= start:
        return -1
    text, pos = scan.text, start + 1
    while (close := text.find("$", pos)) >= 0:
        if (
            close > start + 1
            and not text[close - 1].isspace()
            and not text[close + 1 : close + 2].isdigit()
            and text[close - 1] != "\\"
        ):
            return close + 1
        pos = close + 1
    state.env["no_math_after"] = start
    return -1


def _bare_url(state: StateInline, silent: bool) -> bool:
    start = state.pos
    if not state.src.startswith("://", start) or not _URL_SCHEME.search(state.pending[-12:]):
        return False
    match = _URL_REST.match(state.src, start + 3, state.posMax)
    _push(state, SKIP, start, match.end() if match else start + 3)
    return True


RULES = (
    ("text", _text),
    ("escape", _escape),
    ("backticks", _code_span),
    ("vm_wikilink", _wikilink),
    ("vm_markdown_link", _markdown_link),
    ("vm_tag", _tag),
    ("vm_angle", _angle),
    ("vm_math", _math),
    ("vm_url", _bare_url),
)


def install(md: MarkdownIt) -> None:
    """Replace the parser's inline rules by ours, in this order."""
    ruler = md.inline.ruler
    ruler.disable([rule.name for rule in ruler.__rules__], True)
    for name, rule in RULES:
        if any(existing.name == name for existing in ruler.__rules__):
            ruler.at(name, rule)
        else:
            ruler.push(name, rule)
    ruler.enableOnly([name for name, _ in RULES])
    md.inline.ruler2.enableOnly([])  # emphasis pairs: nothing that we read depends on them


def new_environment(text: str) -> dict[str, Any]:
    """Return the environment that one inline text is parsed with."""
    return {"scan": _Scan(text)}
