"""Explain: how recall by time and recall by relevance would order the same memories, and why.

`cao.memory.explain/1` (seed 001; reference/recall.md, "Explain"). Nothing is counted or expanded, and
neither content, tags, paths, times nor counts are shown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vaultmem.access.filters import NoteFilter
from vaultmem.access.session import Session
from vaultmem.base.errors import StoreRefused, UsageError
from vaultmem.recall.candidates import best_matches, describe, newest_matches
from vaultmem.recall.order import AGE_BASE, AGE_DAYS, AGE_SHARE, order_by_relevance
from vaultmem.recall.pool import Candidate
from vaultmem.recall.question import pool_size, question_of
from vaultmem.text.terms import parse_query


def explain(session: Session, query: str, wanted: NoteFilter, limit: int = 10) -> dict[str, Any]:
    """Return the comparison. Raises UsageError for limits, StoreRefused when it is switched off."""
    if not session.config.enabled:
        raise StoreRefused("Memory is switched off", "Set memory.enabled = true, or unset VAULTMEM_ENABLED")
    if not session.config.explain_enabled:
        raise StoreRefused("Explaining is switched off", "Set memory.explain_enabled = true")
    if not 1 <= limit <= 100:
        raise UsageError(f"limit is {limit}", "Use 1 to 100")
    return session.read(lambda: _explain(session, query, wanted, limit))


def _explain(session: Session, query: str, wanted: NoteFilter, limit: int) -> dict[str, Any]:
    parsed = parse_query(query)
    question = question_of(session, parsed, wanted, "recall", limit, pool_size(limit))
    by_scope = question.by_scope
    pool: list[Candidate] = []
    default: list[Candidate] = []
    if parsed:
        pool, default = best_matches(question).candidates, newest_matches(question).candidates
    describe(question.connection, pool)
    best = max((one.lexical for one in pool), default=0.0)
    for one in pool:
        one.lexical = max(0.0, one.lexical) / best if best > 0 else 0.0
    order_by_relevance(pool, by_scope)
    if session.config.lifecycle_enabled:
        default.sort(key=lambda one: one.superseded)
    return {
        "schema": "cao.memory.explain/1",
        "query": query,
        "pool": len(pool),
        "all_term": sum(1 for one in pool if not one.partial),
        "partial": sum(1 for one in pool if one.partial),
        "recency_constants": {"base": AGE_BASE, "share": AGE_SHARE, "days": AGE_DAYS},
        "limit": limit,
        "overlap": _overlap(pool[:limit], default),
        "lexical_degenerate": bool(pool) and all(one.lexical <= 0 for one in pool),
        "eligibility_errors": [],
        "lifecycle_enabled": session.config.lifecycle_enabled,
        "candidates": _rows(session, pool, default, limit),
    }


def _overlap(first: list[Candidate], second: list[Candidate]) -> float | None:
    if not first and not second:
        return None
    same = {one.id for one in first} & {one.id for one in second}
    return round(len(same) / max(len(first), len(second)), 4)


def _rows(session: Session, pool: list[Candidate], default: list[Candidate], limit: int) -> list[dict[str, Any]]:
    by_words = {one.id: rank for rank, one in enumerate(pool, 1)}
    by_time = {one.id: rank for rank, one in enumerate(default, 1)}
    outside = [replace(one, lexical=0.0, score=0.0) for one in default if one.id not in by_words]
    shown = [one for one in pool if by_words[one.id] <= limit or one.id in by_time] + outside
    return [
        {
            "key": one.key,
            "scope": one.binding[0],
            "scope_id": one.binding[1] or None,
            "source_kind": "native" if one.native else "vault",
            "tier": "partial" if one.partial else "all_term",
            "lexical": round(one.lexical, 4),
            "recency_factor": round(one.factor, 4),
            "relevance": round(one.score, 4),
            "relevance_rank": by_words.get(one.id),
            "recency_rank": by_time.get(one.id),
            "recovered": by_words.get(one.id, limit + 1) <= limit and one.id not in by_time,
            "superseded": one.superseded,
            **_injection(session, one),
        }
        for one in shown
    ]


def _injection(session: Session, one: Candidate) -> dict[str, Any]:
    left_out = session.config.lifecycle_enabled and one.superseded
    return {"injection": "excluded" if left_out else "eligible", "exclusion_reasons": ["superseded"] * left_out}
