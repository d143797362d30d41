"""How near to each other the words of a query stand in a text: a gentle factor on BM25.

BM25 alone lets a short note with the words far apart outrank a long one that is about them
together; measured on the planted two-word facts (bench/queries.py) the factor mends that.
"""

from __future__ import annotations

from collections.abc import Sequence

from vaultmem.text.lowered import Lowered

MAX_BOOST = 0.75
_NEAR_CHARS = 30
_FAR_CHARS = 300
_MAX_PLACES = 64


def proximity_factor(text: str | bytes, words: Sequence[str]) -> float:
    """Return 1 (far apart, or one word) to 1 + MAX_BOOST (side by side) for folded query words.

    `text` may be UTF-8 bytes, which saves decoding it.
    """
    wanted = list(dict.fromkeys(words))
    if len(wanted) < 2:
        return 1.0
    lowered = Lowered(text, wanted)
    encoded = [word.encode("utf-8", "surrogatepass") for word in wanted]
    if not all(word in lowered.data for word in encoded):
        return 1.0
    places: list[tuple[int, int]] = []
    for number, word in enumerate(encoded):
        found = lowered.places(word, _MAX_PLACES)
        if not found:
            return 1.0
        places += [(at, number) for at in found]
    window = _shortest_window(sorted(places), len(wanted))
    span = lowered.characters(*window) - sum(map(len, wanted[:-1]))
    near, far = _NEAR_CHARS * (len(wanted) - 1), _FAR_CHARS * (len(wanted) - 1)
    if span >= far:
        return 1.0
    return 1.0 + MAX_BOOST * min(1.0, (far - span) / (far - near))


def _shortest_window(places: list[tuple[int, int]], kinds: int) -> tuple[int, int]:
    """Return first and last start of the shortest window with every kind."""
    last: dict[int, int] = {}
    best = (0, 1 << 30)
    for at, kind in places:
        last[kind] = at
        if len(last) == kinds:
            start = min(last.values())
            if at - start < best[1] - best[0]:
                best = (start, at)
    return best
