"""Read a note's body: headings, links, tags and block ids, in order, with their lines.

Blocks are markdown-it-py's (CommonMark and tables) with two rules of Obsidian's own: block math,
and footnotes that are no reference definitions. Inline text is parsed only where it can hold a
link or a tag. Facts: conformance/README.md and Obsidian's help, named at the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.rules_block import (
    StateBlock,
    blockquote,
    code,
    fence,
    heading,
    hr,
    html_block,
    list_block,
    reference,
    table,
)
from markdown_it.token import Token

from vaultmem.base.values import Heading, Link
from vaultmem.notes.body.flat import read_flat
from vaultmem.notes.body.inline import MarkdownLink, Tag, Wikilink, read_inline
from vaultmem.notes.body.plain import Piece, take_plain, without_fences
from vaultmem.notes.links.wikilinks import markdown_link, wikilink

MAX_NESTING = 100
"""Nesting of lists and quotes that is read; CommonMark's preset of 20 loses links silently."""

_MAY_BE_TAG = re.compile(r"#[^\s#]")
_BLOCK_ID = re.compile(r"(?:^|\s)\^([A-Za-z0-9-]+)\s*$")
_CONFLICT = re.compile(r"^<{7} .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outline:
    """What a body holds, in document order; `conflict_line` is 0 or the first merge marker's line."""

    headings: tuple[Heading, ...]
    links: tuple[Link, ...]
    tags: tuple[str, ...]
    blocks: tuple[str, ...]
    conflict_line: int


def _block_math(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """`$$` at a line's start opens math up to the next line with `$$` (help: "Math").

    Alone on its line it opens math even without such a line, up to the end of the note (seen in the app's own
    dump of a public vault: a formula whose opening `$$` ends a text line, and whose closing one then opens).
    """
    pos = state.bMarks[start] + state.tShift[start]
    if not state.src.startswith("$$", pos) or state.is_code_block(start):
        return False
    if "$$" in state.src[pos + 2 : state.eMarks[start]]:
        return False
    line = start + 1
    while line < end:
        if state.sCount[line] < state.blkIndent and not state.isEmpty(line):
            return False
        if "$$" in state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]:
            break
        line += 1
    else:
        if state.src[pos + 2 : state.eMarks[start]].strip():
            return False
        line = end - 1
    if silent:
        return True
    state.line = line + 1
    token = state.push("vm_math", "", 0)
    token.map = [start, state.line]
    return True


def _reference(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A reference definition, but not a footnote (`[^1]: text`), whose text is read as usual."""
    pos = state.bMarks[start] + state.tShift[start]
    if state.src.startswith("[^", pos) or state.src.startswith("[[", pos):
        return False
    return reference(state, start, end, silent)


def _paragraph(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A paragraph or an underlined heading in one pass (CommonMark 4.3 and 4.8).

    A paragraph gives an `inline` token alone.
    Other than the library's two rules it asks the interrupting rules only where the line's
    first character (or, for tables, the next line's) makes them possible.
    """
    parent, state.parentType = state.parentType, "paragraph"
    line, level = start + 1, 0
    while line < state.lineMax and not state.isEmpty(line):
        if state.sCount[line] - state.blkIndent <= 3 and state.sCount[line] >= 0:
            first = state.src[state.bMarks[line] + state.tShift[line]]
            if first in _INTERRUPTING or first == "=" or _starts_delimiter_row(state, line + 1):
                level = _underline_level(state, line, first)
                if level:
                    break
                rules = _INTERRUPTING.get(first, ())
                if any(rule(state, line, end, True) for rule in rules) or table(state, line, end, True):
                    break
        line += 1
    content = state.getLines(start, line, state.blkIndent, False).strip(" \t\n")
    state.parentType = parent
    state.line = line + 1 if level else line
    if level:
        state.push("heading_open", f"h{level}", 1).map = [start, state.line]
    token = state.push("inline", "", 0)
    token.content, token.map = content, [start, line]
    if level:
        state.push("heading_close", f"h{level}", -1)
    return True


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Ask only the rules that the first character makes possible; a paragraph is the rest.

    The library asks all of its rules at each block; the answers are the same.
    """
    if state.is_code_block(start):
        return code(state, start, end, silent)
    if _starts_delimiter_row(state, start + 1) and table(state, start, end, silent):
        return True
    for rule in _RULES_BY_FIRST.get(state.src[state.bMarks[start] + state.tShift[start]], ()):
        if rule(state, start, end, silent):
            return True
    return _paragraph(state, start, end, silent)


def _starts_delimiter_row(state: StateBlock, line: int) -> bool:
    """Tell whether a line can be the delimiter row of a table."""
    if line >= state.lineMax or state.isEmpty(line):
        return False
    return state.src[state.bMarks[line] + state.tShift[line]] in "|-:"


def _underline_level(state: StateBlock, line: int, first: str) -> int:
    if first not in "=-" or state.sCount[line] < state.blkIndent:
        return 0
    text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip(" \t")
    return (1 if first == "=" else 2) if text == first * len(text) else 0


_RULES_BY_FIRST: dict[str, tuple[Callable[[StateBlock, int, int, bool], bool], ...]] = {
    "`": (fence,),
    "~": (fence,),
    "$": (_block_math,),
    ">": (blockquote,),
    "*": (hr, list_block),
    "-": (hr, list_block),
    "_": (hr,),
    "+": (list_block,),
    "[": (_reference,),
    "<": (html_block,),
    "#": (heading,),
    **dict.fromkeys("0123456789", (list_block,)),
}
_INTERRUPTING = {first: rules for first, rules in _RULES_BY_FIRST.items() if first != "["}


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable("table")
    md.block.ruler.at("reference", _reference)
    md.block.ruler.before(
        "fence",
        "vm_block_math",
        _block_math,
        {"alt": ["paragraph", "reference", "blockquote", "list"]},
    )
    md.block.ruler.before("table", "vm_block", _block)
    return md


def read_markdown(body: str, first_line: int = 1) -> Outline:
    """Read the body of a note (line ends `\\n`); `first_line` is its 1-based line in the note.

    Raises nothing for any text; time is linear in the text.
    """
    unfenced = without_fences(body)
    flat = read_flat(unfenced, first_line)
    if flat is not None:
        return Outline(tuple(flat.headings), tuple(flat.links), (), (), 0)
    if "<<<<<<< " in body and ">>>>>>> " in body:  # where code is must be known
        pieces, tokens = [], _tokens(body)
    else:
        taken = take_plain(unfenced)
        pieces, tokens = taken.pieces, _tokens(taken.rest) if taken.rest else []
    if tokens:
        pieces = sorted([*pieces, *_pieces(tokens)], key=lambda piece: piece.line)
    headings: list[Heading] = []
    links: list[Link] = []
    tags: list[str] = []
    blocks: list[str] = []
    for line, level, text in pieces:
        if level:
            headings.append(Heading(level, " ".join(text.split("\n")).strip(), line + first_line))
        if "^" in text and (match := _BLOCK_ID.search(text)):
            blocks.append(match.group(1))
        if "[[" in text or "](" in text or ("#" in text and _MAY_BE_TAG.search(text)):
            _read_inline(text, line + first_line, links, tags)
    return Outline(tuple(headings), tuple(links), tuple(tags), tuple(blocks), _conflict_line(body, tokens, first_line))


def _tokens(body: str) -> list[Token]:
    tokens: list[Token] = []
    md = _parser()
    md.block.parse(body, md, {}, tokens)
    return tokens


def _pieces(tokens: list[Token]) -> Iterator[Piece]:
    """Yield the inline texts of block tokens; only headings at the margin of the note are headings of it."""
    for position, token in enumerate(tokens):
        if token.type == "inline":
            opener = tokens[position - 1] if position else token
            is_heading = opener.type == "heading_open" and opener.level == 0
            yield Piece(token.map[0] if token.map else 0, int(opener.tag[1]) if is_heading else 0, token.content)


def read_inline_text(text: str) -> tuple[Link, ...]:
    """Return the links of a text that is Markdown of its own, such as a canvas card."""
    return read_markdown(text.replace("\r\n", "\n")).links


def _read_inline(text: str, line: int, links: list[Link], tags: list[str]) -> None:
    for found in read_inline(text):
        if isinstance(found, Tag):
            tags.append(found.name)
            continue
        link = _link(found, line + text.count("\n", 0, found.start))
        if link is not None:
            links.append(link)


def _link(found: Wikilink | MarkdownLink, line: int) -> Link | None:
    if isinstance(found, Wikilink):
        return wikilink(found.inner, embed=found.embed, line=line)
    return markdown_link(found.raw, found.destination, found.label, embed=found.embed, line=line)


def _conflict_line(body: str, tokens: list[Token], first_line: int) -> int:
    """Return the line of the first merge marker outside code, or 0."""
    if "<<<<<<< " not in body or ">>>>>>> " not in body:
        return 0
    code = [token.map for token in tokens if token.type in ("fence", "code_block") and token.map]
    for match in _CONFLICT.finditer(body):
        line = body.count("\n", 0, match.start())
        if not any(start <= line < end for start, end in code):
            return line + first_line
    return 0
