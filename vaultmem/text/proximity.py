"""How near to each other the words of a query stand in a text: a gentle factor on BM25.

BM25 alone lets a short note with the words far apart outrank a long one that is about them
together; measured on the planted two-word facts (bench/queries.py) the factor mends that.
"""

from __future__ import annotations

from collections.abc import Sequence

MAX_BOOST = 0.75
_NEAR_CHARS = 30
_FAR_CHARS = 300
_MAX_PLACES = 64


def proximity_factor(text: str, words: Sequence[str]) -> float:
    """Return 1 (far apart, or one word) to 1 + MAX_BOOST (side by side) for folded query words."""
    wanted = list(dict.fromkeys(words))
    if len(wanted) < 2:
        return 1.0
    lower = text.lower()
    places: list[tuple[int, int]] = []
    for number, word in enumerate(wanted):
        found = _places(lower, word)
        if not found:
            return 1.0
        places += [(at, number) for at in found]
    span = _shortest_span(sorted(places), len(wanted)) - sum(map(len, wanted[:-1]))
    near, far = _NEAR_CHARS * (len(wanted) - 1), _FAR_CHARS * (len(wanted) - 1)
    if span >= far:
        return 1.0
    return 1.0 + MAX_BOOST * min(1.0, (far - span) / (far - near))


def _places(text: str, word: str) -> list[int]:
    """Return offsets of a word (not of a part of a longer Latin word), at most a few."""
    places: list[int] = []
    whole = word.isascii()
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if whole and (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            end = at + 1
        else:
            places.append(at)
            if len(places) == _MAX_PLACES:
                break
        at = text.find(word, end)
    return places


def _shortest_span(places: list[tuple[int, int]], kinds: int) -> int:
    """Return the shortest distance between first and last start of a window with every kind."""
    last: dict[int, int] = {}
    best = 1 << 30
    for at, kind in places:
        last[kind] = at
        if len(last) == kinds:
            best = min(best, at - min(last.values()))
    return best
