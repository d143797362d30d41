"""The order of candidates: ages, usage, scope precedence, supersedes.

Sort modes and constants: seed 001 and reference/recall.md ("Sort modes", "Superseded"). Where no
scope is asked for, session comes before project before global before agent before federated, within
the matches of all words and again within the partial ones: a partial match of a nearer scope does
not push out the note that has every word.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import datetime

from vaultmem.base.clock import now
from vaultmem.base.times import parse_time
from vaultmem.index.engines.protocol import rounded
from vaultmem.recall.pool import Candidate
from vaultmem.state.memories import Identity

ALL_WORDS_TIER = 1
"""Up to this tier a match has every word of the query, as written or in some form."""
AGE_BASE, AGE_SHARE, AGE_DAYS = 0.85, 0.15, 30
"""The seed's age factor of native project memories: 0.85 + 0.15 / (1 + days / 30)."""
LEXICAL_SHARE, RECENCY_SHARE, USAGE_SHARE = 0.5, 0.3, 0.2


def age_days(updated_at: str) -> float:
    """Return how old a time is in days; a future one is of age 0, a naive one is UTC."""
    moment = parse_time(updated_at)
    return max(0.0, (now() - moment).total_seconds() / 86_400) if isinstance(moment, datetime) else 0.0


def order_by_relevance(candidates: list[Candidate], by_scope: bool) -> None:
    """Sort by tier and words, native project memories with their age; `score` is what was sorted by.

    A superseded note comes last of those that have as many of the words, never below one that has fewer.
    """
    for one in candidates:
        is_aging = one.native and one.binding[0] == "project"
        one.factor = AGE_BASE + AGE_SHARE / (1 + age_days(one.updated_at) / AGE_DAYS) if is_aging else 1.0
        one.score = rounded(max(0.0, one.lexical) * one.factor)
    candidates.sort(
        key=lambda one: (
            one.partial,
            one.precedence if by_scope else 0,
            max(one.tier, ALL_WORDS_TIER),
            one.superseded,
            one.tier,
            -one.score,
            -one.lexical,
            one.name,
        )
    )


def order_by_time(candidates: list[Candidate], by_scope: bool) -> None:
    """Sort by time, newest first."""
    candidates.sort(key=lambda one: one.name)
    candidates.sort(key=lambda one: one.updated_at, reverse=True)
    if by_scope:
        candidates.sort(key=lambda one: one.precedence)


def order_by_score(candidates: list[Candidate], by_scope: bool) -> None:
    """Sort by the seed's composite of words, age and usage."""
    best = max((one.lexical for one in candidates), default=0.0)
    for one in candidates:
        lexical = max(0.0, one.lexical) / best if best > 0 else 0.0
        usage = min(1.0, math.log1p(max(0, one.count)) / math.log(101))
        recency = 1 / (1 + age_days(one.updated_at) / AGE_DAYS)
        one.score = rounded(LEXICAL_SHARE * lexical + RECENCY_SHARE * recency + USAGE_SHARE * usage)
    candidates.sort(key=lambda one: (-one.count, one.name))
    candidates.sort(key=lambda one: one.updated_at, reverse=True)
    candidates.sort(key=lambda one: (one.precedence if by_scope else 0, one.superseded, -one.score))


def order_by_usage(candidates: list[Candidate], by_scope: bool, lifecycle: bool) -> None:
    """Sort by access count, then time; superseded ones last in their scope with the lifecycle switched on."""
    candidates.sort(key=lambda one: one.name)
    candidates.sort(key=lambda one: one.updated_at, reverse=True)
    candidates.sort(
        key=lambda one: (one.precedence if by_scope else 0, one.superseded if lifecycle else False, -one.count)
    )


def with_counts(candidates: Collection[Candidate], counts: Mapping[Identity, int]) -> None:
    """Fill in access counts."""
    for one in candidates:
        one.count = counts.get(one.identity, 0)
