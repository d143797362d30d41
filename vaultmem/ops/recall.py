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

from vaultmem.base.clock import now
from vaultmem.base.errors import StateUnavailable, UsageError
from vaultmem.base.times import iso
from vaultmem.base.values import Hit
from vaultmem.index.engines.protocol import Filter
from vaultmem.ops.filters import NoteFilter, combine, filter_sql, reader_of
from vaultmem.ops.hits import load_hits, related_hits
from vaultmem.ops.ranking import (
    Pool,
    best_matches,
    describe,
    most_used,
    newest,
    newest_matches,
    order_by_relevance,
    order_by_score,
    order_by_usage,
    pool_size,
    with_counts,
)
from vaultmem.ops.reasons import explain_hit
from vaultmem.ops.session import Session
from vaultmem.sync.freshness import look_at_files, repair
from vaultmem.text.terms import Query, parse_query
from vaultmem.visibility import Purpose, Reader, all_terms_are_visible, may_show

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
    pool = _candidates(session, request, query)
    warnings = list(session.warnings)
    repaired: set[str] = set()
    look = look_at_files(session.config, session.connection(), [one.id for one in pool.candidates])
    if look.stale and repair(session.reconciler, look.stale):
        repaired = {path for paths in look.stale.values() for path in paths}
        pool = _candidates(session, request, query)
        look = look_at_files(session.config, session.connection(), [one.id for one in pool.candidates])
    unknown = look.unknown | look.stale_ids
    if unknown:
        warnings.append("some notes could not be compared with their files; their text is from the index")
    hits = _hits(session, request, query, pool, unknown, repaired)
    kept = _within_budget(hits, request.max_chars)
    if request.record_access:
        _count_access(session, kept)
    if request.include_related:
        kept += related_hits(session, kept, query, reader_of(session, request.filter), request.purpose)
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


def _candidates(session: Session, request: RecallRequest, query: Query) -> Pool:
    """Return the candidates in order, cut to the limit."""
    reader = reader_of(session, request.filter)
    where = combine(may_show(session.config, request.purpose, reader), filter_sql(request.filter))
    by_scope = not request.filter.scope
    pool = _pool(session, request, query, where, by_scope, reader)
    if request.sort == "recency":
        if session.config.lifecycle_enabled:
            pool.candidates.sort(key=lambda one: one.superseded)
        return pool
    describe(session.connection(), pool.candidates)
    if request.sort == "relevance":
        order_by_relevance(pool.candidates, by_scope)
    else:
        with_counts(pool.candidates, session.state.memory.counts([one.identity for one in pool.candidates]))
        if request.sort == "score":
            order_by_score(pool.candidates, by_scope)
        else:
            order_by_usage(pool.candidates, by_scope, session.config.lifecycle_enabled)
    del pool.candidates[request.limit :]
    return pool


def _pool(
    session: Session, request: RecallRequest, query: Query, where: Filter, by_scope: bool, reader: Reader
) -> Pool:
    size = request.limit if request.sort == "recency" else pool_size(request.limit)
    if request.mode == "metadata" and request.query.split():
        return newest(session, _substring(request, where), size, by_scope)
    if not query:
        if request.mode == "bm25":
            return Pool()
        pool = newest(session, where, size, by_scope)
        if request.sort == "usage":
            known = {one.id for one in pool.candidates}
            pool.candidates += [one for one in most_used(session, where, size) if one.id not in known]
        return pool
    counts = session.database.counts()
    wanted = replace(request.filter, everyone=False)
    if wanted == NoteFilter() and all_terms_are_visible(request.purpose, reader, counts.bindings(session.connection())):
        where = Filter()
    if request.sort == "recency":
        return newest_matches(session, query, where, request.limit, by_scope, counts)
    return best_matches(session, query, where, request.limit, size, counts)


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
