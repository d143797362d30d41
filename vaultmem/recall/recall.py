"""Recall: a query to ranked hits, within what a reader may see.

Tiers (design.md §6): notes with every term as written, then with every term in some form, then,
only for the slots left, notes with some of them. Mode `metadata` matches substrings of the note,
its title, tags, aliases and key, as upstream does; `hybrid` is the tiers above, so a Latin word
is never found inside another word (cases/search.yaml, search-two-character-cjk-word).
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import dataclass, field, replace
from unicodedata import normalize

from vaultmem.access.filters import NoteFilter, combine, reader_of
from vaultmem.access.session import Session
from vaultmem.access.visibility import Purpose, may_show
from vaultmem.base.clock import now
from vaultmem.base.errors import StateUnavailable, UsageError
from vaultmem.base.times import iso
from vaultmem.base.values import Hit
from vaultmem.index.engines.protocol import Filter
from vaultmem.recall.candidates import best_matches, describe, named, newest, newest_matches
from vaultmem.recall.explanation import explain_hit
from vaultmem.recall.hits import load_hits, related_hits
from vaultmem.recall.order import order_by_relevance, order_by_score, order_by_usage, with_counts
from vaultmem.recall.pool import Pool
from vaultmem.recall.question import Question, pool_size, question_of
from vaultmem.sync.freshness import Freshness, look_at_files, repair
from vaultmem.text.terms import Query, parse_query

MODES = ("hybrid", "bm25", "metadata")
SORTS = ("relevance", "recency", "score", "usage")
MAX_LIMIT = 100


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """What is asked for; an empty `sort` means relevance with a query and recency without."""

    query: str = ""
    filter: NoteFilter = field(default_factory=NoteFilter)
    limit: int = 10
    mode: str = "hybrid"
    sort: str = ""
    max_chars: int = 0
    purpose: Purpose = "recall"
    include_related: bool = False
    record_access: bool = True
    explain: bool = False


@dataclass(frozen=True, slots=True)
class RecallResult:
    """Hits in order; `total` counts all matches of the tiers that were needed."""

    query: str
    mode: str
    sort: str
    engine: str
    total: int
    truncated: bool
    hits: tuple[Hit, ...]
    warnings: tuple[str, ...] = ()


def recall(session: Session, request: RecallRequest, *, sweep: bool = True) -> RecallResult:
    """Return the hits of a request. Raises UsageError for unknown modes, sorts and limits."""
    query = parse_query(request.query)
    checked = _checked(request, query)
    return session.read(lambda: _recall(session, checked, query), sweep=sweep)


def _checked(request: RecallRequest, query: Query) -> RecallRequest:
    if request.mode not in MODES:
        raise UsageError(f'Unknown mode "{request.mode}"', f"Use one of: {', '.join(MODES)}")
    if request.sort and request.sort not in SORTS:
        raise UsageError(f'Unknown sort "{request.sort}"', f"Use one of: {', '.join(SORTS)}")
    if not 1 <= request.limit <= MAX_LIMIT:
        raise UsageError(f"limit is {request.limit}", f"Use 1 to {MAX_LIMIT}")
    if request.max_chars < 0:
        raise UsageError(f"max-chars is {request.max_chars}", "Use 1 or more")
    asks = bool(query) if request.mode != "metadata" else bool(request.query.split())
    sort = request.sort or ("relevance" if asks else "recency")
    return replace(request, sort="recency" if sort == "relevance" and not asks else sort)


def _recall(session: Session, request: RecallRequest, query: Query) -> RecallResult:
    """Terms → candidates → order → freshness → hits; each stage takes what the one before gave."""
    pool, look, repaired = _fresh_pool(session, request, query)
    warnings = list(session.warnings)
    unknown = look.unknown | look.stale_ids
    if unknown:
        warnings.append("some notes could not be compared with their files; their text is from the index")
    kept = _within_budget(_hits(session, request, query, pool, unknown, repaired), request.max_chars)
    if request.record_access:
        _count_access(session, kept)
    if request.include_related:
        shown = may_show(session.config, request.purpose, reader_of(session, request.filter))
        kept += related_hits(session.connection(), kept, query, shown, session.config.max_recall_body_chars)
    return RecallResult(
        request.query,
        request.mode,
        request.sort,
        session.database.engine.name,
        pool.total,
        pool.total > sum(1 for hit in kept if not hit.related),
        tuple(kept),
        tuple(warnings),
    )


def _fresh_pool(session: Session, request: RecallRequest, query: Query) -> tuple[Pool, Freshness, set[str]]:
    """Return ordered candidates that agree with their files, what could not be told, and the paths that were mended.

    Files that changed are taken up and everything is looked for once more; a second look only labels.
    """
    pool = _ordered(session, request, query)
    look = look_at_files(session.config, session.connection(), [one.id for one in pool.candidates])
    if not look.stale or not repair(session.reconciler, look.stale):
        return pool, look, set()
    repaired = {path for paths in look.stale.values() for path in paths}
    pool = _ordered(session, request, query)
    return pool, look_at_files(session.config, session.connection(), [one.id for one in pool.candidates]), repaired


def _ordered(session: Session, request: RecallRequest, query: Query) -> Pool:
    """Return the candidates in order, cut to the limit."""
    size = request.limit if request.sort == "recency" else pool_size(request.limit)
    question = question_of(session, query, request.filter, request.purpose, request.limit, size)
    pool = _found(session, request, question)
    lifecycle = session.config.lifecycle_enabled
    if request.sort == "recency":
        if lifecycle:
            pool.candidates.sort(key=lambda one: one.superseded)
        return pool
    describe(question.connection, pool.candidates)
    if request.sort == "relevance":
        order_by_relevance(pool.candidates, question.by_scope)
    else:
        with_counts(pool.candidates, session.state.memory.counts([one.identity for one in pool.candidates]))
        if request.sort == "score":
            order_by_score(pool.candidates, question.by_scope)
        else:
            order_by_usage(pool.candidates, question.by_scope, lifecycle)
    del pool.candidates[request.limit :]
    return pool


def _found(session: Session, request: RecallRequest, question: Question) -> Pool:
    """Return candidates of the mode that is asked for, in no order that counts yet but by time for recency."""
    connection, by_scope = question.connection, question.by_scope
    if request.mode == "metadata" and request.query.split():
        return newest(connection, _substring(request, question.where), question.size, by_scope=by_scope)
    if question.query:
        return newest_matches(question) if request.sort == "recency" else best_matches(question)
    if request.mode == "bm25":
        return Pool()
    pool = newest(connection, question.where, question.size, by_scope=by_scope)
    if request.sort == "usage":
        known = {one.id for one in pool.candidates}
        often = named(connection, question.where, session.state.memory.most_read(question.size))
        pool.candidates += [one for one in often if one.id not in known]
    return pool


def _hits(
    session: Session, request: RecallRequest, query: Query, pool: Pool, unknown: set[int], repaired: set[str]
) -> list[Hit]:
    connection = session.connection()
    lifecycle = session.config.lifecycle_enabled
    labels = {
        one.id: {
            "score": one.score or one.lexical,
            "freshness": "unknown" if one.id in unknown else "fresh",
            "partial": one.partial,
            "lifecycle_status": "superseded" if lifecycle and one.superseded else "",
        }
        for one in pool.candidates
    }
    loaded = load_hits(connection, list(labels), query, session.config.max_recall_body_chars, labels)
    hits = []
    for one in pool.candidates:
        hit = loaded[one.id]
        if repaired and hit.freshness == "fresh" and normalize("NFC", hit.path) in repaired:
            hit = replace(hit, freshness="repaired")
        hits.append(replace(hit, explain=explain_hit(connection, one, hit, query)) if request.explain else hit)
    return hits


def _count_access(session: Session, hits: list[Hit]) -> None:
    """Count what was returned; a count that can't be written never stops an answer."""
    read = [(hit.scope, hit.scope_id or "", hit.key) for hit in hits]
    with suppress(sqlite3.Error, StateUnavailable):
        session.state.memory.count_access(read, iso(now()))


def _substring(request: RecallRequest, where: Filter) -> Filter:
    """Every blank-separated term is a substring of body, title, tags, aliases or key."""
    terms = request.query.split()
    haystack = (
        "lower(n.body || char(10) || n.title || char(10) || n.tags || char(10) || n.aliases || char(10) || n.key)"
    )
    condition = " AND ".join(f"instr({haystack}, ?) > 0" for _ in terms)
    return combine(where, Filter(condition, tuple(term.lower() for term in terms)))


def _within_budget(hits: list[Hit], max_chars: int) -> list[Hit]:
    """Cut contents so that all together hold at most `max_chars` characters (0: no budget)."""
    if not max_chars:
        return hits
    kept: list[Hit] = []
    left = max_chars
    for hit in hits:
        if left <= 0:
            break
        cut = len(hit.content) > left
        kept.append(replace(hit, content=hit.content[:left], content_truncated=cut or hit.content_truncated))
        left -= len(kept[-1].content)
    return kept
