"""Which terms stand out in a note, and how much: what lets a query of common words skip most notes.

BM25 scores a term by x = f / (b0 + b1 · length / mean length), where f is its weighted frequency.
A note's *prominent* terms are those whose x, at a typical length in place of the mean, reaches a
level; they are indexed once more, behind a mark for the level. A note without a mark for a term
can't score above the level's bound for it, so when enough notes with marks score higher, none of
the others needs a look: the top of the list is exactly that of scoring every match (the idea of
MaxScore, Turtle & Flood 1995, and of impact tiers in an inverted index, with postings alone).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from math import ceil

from vaultmem.text.terms import stream_tokens

LEVELS = tuple(2.5 * 1.3**step for step in range(12))
"""Values of x from which a term gets the mark of that position."""
MARKS = "\u2016\u2017\u2020\u2021\u2022\u2023\u2030\u2031\u2032\u2033\u2034\u2035"
"""Punctuation, which `text.terms` takes out of notes and queries: no text can hold a mark of its own."""
TYPICAL_TOKENS = 300
LENGTH_SHARE = 0.75
"""BM25's b: how much of the length counts (Robertson & Zaragoza 2009; SQLite's FTS5 uses the same)."""


def prominent_terms(streams: Sequence[str], weights: Sequence[float]) -> str:
    """Return the marked terms of a note as a token stream; `streams` and the weights of their columns pair up."""
    sizes = [len(stream) for stream in streams]
    body = sizes.index(max(sizes))
    tokens = stream_tokens(streams[body])
    counts = Counter(tokens)
    length = len(tokens)
    raised: dict[str, float] = {}
    for position, stream in enumerate(streams):
        if position != body and stream:
            for token in stream_tokens(stream):
                raised[token] = raised.get(token, 0.0) + weights[position]
                length += 1
    norm = (1 - LENGTH_SHARE) + LENGTH_SHARE * length / TYPICAL_TOKENS
    weight = weights[body]
    least = LEVELS[0] * norm / weight
    often = ceil(least)  # whole numbers are compared in half the time
    frequency = {token: count * weight for token, count in counts.items() if count >= often}
    for token, extra in raised.items():
        total = extra + weight * counts[token]
        if total >= least * weight:
            frequency[token] = total
    return " ".join([_MARK_OF[bisect_right(LEVELS, total / norm)] + token for token, total in frequency.items()])


_MARK_OF = MARKS[:1] + MARKS  # at the edge of a level floating point may fall just short of it


def always_prominent(text: str) -> str:
    """Return the tokens of a text behind the highest mark: what is not known when the rest is weighed."""
    return " ".join(MARKS[-1] + token for token in dict.fromkeys(stream_tokens(text)))
