"""Snippets: the part of a note's text that holds most of what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vaultmem.text.lowered import Lowered
from vaultmem.text.terms import Query, inflections

SNIPPET_CHARS = 200


def make_snippet(
    body: str, query: Query, size: int = SNIPPET_CHARS, values: Callable[[], Iterable[tuple[str, str]]] = tuple
) -> str:
    """Return about `size` characters of one line of `body` around the query's words.

    Blanks are folded; a cut is marked by `…`. Without a match in it the first of `values` (name and text) that
    has a word is taken, else the text's start.
    """
    start = _best_start(body, query, size)
    if start < 0:
        for name, text in values() if query.words else ():
            if _best_start(text, query, size) >= 0:
                return _cut(f"{name}: {text}", 0, size)
        start = 0
    return _cut(body, start, size)


def _cut(body: str, start: int, size: int) -> str:
    begin = max(0, start - size // 4)
    while begin > 0 and begin < start and not body[begin - 1].isspace():
        begin += 1
    piece = " ".join(body[begin : begin + size * 2].split())
    cut = piece[:size].rstrip()
    if len(piece) > size and " " in cut and not piece[size].isspace():
        cut = cut[: cut.rfind(" ")] or cut
    before = "…" if begin > 0 else ""
    after = "…" if len(cut) < len(piece) or begin + size * 2 < len(body) else ""
    return before + cut + after


def _best_start(body: str, query: Query, size: int) -> int:
    """Return the offset where a window of `size` holds most different words of the query, -1 where none is."""
    if not query.words:
        return -1
    lowered = Lowered(body, query.words)
    places: list[tuple[int, str]] = []
    for word in query.words:
        for form in (word, *inflections(word)[:12]):
            encoded = form.encode("utf-8", "surrogatepass")
            at = lowered.find(encoded)
            for _ in range(8):
                if at < 0:
                    break
                places.append((at, word))
                at = lowered.find(encoded, at + 1)
            if places and places[-1][1] == word:
                break
    if not places:
        return -1
    places.sort()
    best, best_count = places[0][0], 0
    for position, (start, _) in enumerate(places):
        count = len({word for at, word in places[position : position + 32] if at < start + size})
        if count > best_count:
            best, best_count = start, count
    return lowered.characters(0, best)
