"""Candidates of a recall and their order: tiers, ages, usage, scope precedence, supersedes.

Sort modes and constants: seed 001 and reference/recall.md ("Sort modes", "Superseded"). Where no
scope is asked for, session comes before project before global before agent before federated, within
the matches of all words and again within the partial ones: a partial match of a nearer scope does
not push out the note that has every word.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from vaultmem.base.clock import now
from vaultmem.base.times import parse_time
from vaultmem.base.values import SCOPES
from vaultmem.index.engines.expression import of_clauses
from vaultmem.index.engines.protocol import Filter, rounded
from vaultmem.index.engines.top_k import Counts, best
from vaultmem.index.queries import chunked
from vaultmem.ops.session import Session
from vaultmem.state.memories import Identity
from vaultmem.text.proximity import proximity_factor
from vaultmem.text.terms import Clause, Query

ALL_WORDS_TIER = 1
"""Up to this tier a match has every word of the query, as written or in some form."""
RERANKED = 40
"""How many of the best matches are looked at for nearness."""
MAX_PARTIAL_TERMS = 12
AGE_BASE, AGE_SHARE, AGE_DAYS = 0.85, 0.15, 30
"""The seed's age factor of native project memories: 0.85 + 0.15 / (1 + days / 30)."""
LEXICAL_SHARE, RECENCY_SHARE, USAGE_SHARE = 0.5, 0.3, 0.2
_PRECEDENCE = {scope: position for position, scope in enumerate(SCOPES)}


@dataclass(slots=True)
class Candidate:
    """A note that matches: `tier` 0 has every word as written; `partial` lacks some of them."""

    id: int
    lexical: float
    tier: int = 0
    partial: bool = False
    score: float = 0.0
    factor: float = 1.0
    binding: tuple[str, str] = ("", "")
    key: str = ""
    place: tuple[str, str] = ("", "")
    updated_at: str = ""
    native: bool = False
    superseded: bool = False
    count: int = 0

    @property
    def identity(self) -> Identity:
        """Scope, scope id and key."""
        return (*self.binding, self.key)

    @property
    def precedence(self) -> int:
        """The place of its scope in the order of recall."""
        return _PRECEDENCE.get(self.binding[0], len(SCOPES))

    @property
    def name(self) -> tuple[str, ...]:
        """What ties end by (design.md §5)."""
        return (*self.binding, self.key, *self.place)


@dataclass(slots=True)
class Pool:
    """Candidates before they are ordered and cut; `total` counts all matches of the tiers that were needed."""

    candidates: list[Candidate] = field(default_factory=list)
    total: int = 0


def pool_size(limit: int) -> int:
    """Return how many candidates are looked at for `limit` results (seed 001)."""
    return max(limit, min(200, max(50, 3 * limit)))


@dataclass(frozen=True, slots=True)
class _Tier:
    """One way to ask: all clauses or any of them."""

    clauses: tuple[Clause, ...]
    number: int
    any_clause: bool = False
    partial: bool = False


def _tiers(session: Session, query: Query, counts: Counts) -> Iterator[_Tier]:
    """Yield tiers from strict to loose, without repeats; later ones are only asked for if slots are left."""
    yield _Tier(query.exact, 0)
    if query.inflected != query.exact:
        yield _Tier(query.inflected, 1)
    if len(query.inflected) > 1:
        present = tuple(
            clause
            for clause in query.inflected[:MAX_PARTIAL_TERMS]
            if any(counts.of(session.database.engine, session.connection(), phrase) for phrase in clause)
        )
        if 0 < len(present) < len(query.inflected):
            yield _Tier(present, 2, partial=True)
    for number, clauses in ((3, query.partial), (4, query.loose)):
        if len(clauses) > 1 or clauses not in (query.exact, query.inflected):
            yield _Tier(clauses[:MAX_PARTIAL_TERMS], number, any_clause=True, partial=True)


def best_matches(session: Session, query: Query, where: Filter, limit: int, size: int, counts: Counts) -> Pool:
    """Return the best candidates by words: up to `size` with all of them, partial ones only for free slots."""
    connection, engine = session.connection(), session.database.engine
    pool = Pool()
    seen: set[int] = set()
    for tier in _tiers(session, query, counts):
        wanted = limit if tier.partial else size
        asked = max(RERANKED if len(query.words) > 1 else 0, wanted) + len(seen)
        known = 0 if tier.any_clause else len(seen)  # a looser tier of all clauses has every match of a stricter one
        matches = best(engine, connection, tier.clauses, tier.any_clause, where, asked, counts, known)
        pool.total = max(pool.total, matches.total)
        new = [row for row in matches.rows if row[0] not in seen]
        if len(tier.clauses) > 1 or tier.any_clause:  # the words of a single phrase are near anyway
            new = near_first(connection, query, new)
        found = [Candidate(note_id, score, tier.number, tier.partial) for note_id, score in new]
        if len(found) > wanted - len(seen):  # cut by score, ties by name
            describe(connection, found)
            found.sort(key=lambda one: (-one.lexical, one.name))
        found = found[: wanted - len(seen)]
        pool.candidates += found
        seen.update(one.id for one in found)
        if len(seen) >= limit:
            break
    return pool


def newest_matches(session: Session, query: Query, where: Filter, limit: int, by_scope: bool, counts: Counts) -> Pool:
    """Return matches of the strictest tiers by time, newest first, looser ones for the slots left."""
    connection, engine = session.connection(), session.database.engine
    pool = Pool()
    seen: set[int] = set()
    for tier in _tiers(session, query, counts):
        rows = engine.ranked(connection, of_clauses(tier.clauses, tier.any_clause), where)
        found = [Candidate(row[0], rounded(row[1]), tier.number, tier.partial) for row in rows if row[0] not in seen]
        describe(connection, found)
        order_by_time(found, by_scope)
        found = found[: limit - len(seen)]
        pool.candidates += found
        seen.update(one.id for one in found)
        pool.total = max(pool.total, len(rows))
        if len(seen) >= limit:
            break
    return pool


def newest(session: Session, where: Filter, limit: int, by_scope: bool) -> Pool:
    """Return the newest notes; `by_scope`: of the first scopes in the order of precedence."""
    connection = session.connection()
    total = connection.execute(f"SELECT count(*) FROM note n WHERE {where.sql}", where.parameters).fetchone()[0]
    pool = Pool(total=int(total))
    for scope in SCOPES if by_scope else ("",):
        left = limit - len(pool.candidates)
        if left <= 0:
            break
        condition = f"({where.sql}) AND n.scope = ?" if scope else where.sql
        values = (*where.parameters, *((scope,) if scope else ()))
        sql = (
            f"SELECT n.id FROM note n WHERE {condition} "
            "ORDER BY n.updated_at DESC, n.scope, n.scope_id, n.key, n.vault, n.path LIMIT ?"
        )
        pool.candidates += [Candidate(row[0], 0.0) for row in connection.execute(sql, (*values, left))]
    describe(connection, pool.candidates)
    return pool


def most_used(session: Session, where: Filter, limit: int) -> list[Candidate]:
    """Return the notes with the highest access counts."""
    connection = session.connection()
    found: list[Candidate] = []
    for scope, scope_id, key in session.state.memory.most_read(limit):
        sql = f"SELECT n.id FROM note n WHERE n.key = ? AND n.scope = ? AND n.scope_id = ? AND ({where.sql or '1'})"
        rows = connection.execute(sql, (key, scope, scope_id, *where.parameters))
        found += [Candidate(row[0], 0.0) for row in rows]
    describe(connection, found)
    return found


_FACTS = (
    "SELECT n.id, n.scope, n.scope_id, n.key, n.vault, n.path, n.updated_at, n.source_kind, EXISTS (SELECT 1 FROM "
    "edge e INDEXED BY edge_superseded WHERE e.scope = n.scope AND e.scope_id = n.scope_id AND e.target_key = n.key "
    "AND e.type = 'supersedes' AND e.status = 'active') FROM note n WHERE n.id IN "
)


def describe(connection: sqlite3.Connection, candidates: Collection[Candidate]) -> None:
    """Fill in what ordering needs of candidates that were not described yet."""
    missing = {one.id: one for one in candidates if not one.key}
    for batch in chunked(missing):
        for row in connection.execute(f"{_FACTS}({','.join('?' * len(batch))})", batch):
            one = missing[row[0]]
            one.binding, one.key, one.place = (row[1], row[2]), row[3], (row[4], row[5])
            one.updated_at, one.native, one.superseded = row[6], row[7] == "native", bool(row[8])


def near_first(
    connection: sqlite3.Connection, query: Query, rows: Sequence[tuple[int, float]]
) -> list[tuple[int, float]]:
    """Raise, of the best rows, those in which the words of a query stand near to each other."""
    if len(query.words) < 2 or len(rows) < 2:
        return list(rows)
    head = rows[:RERANKED]
    marks = ",".join("?" * len(head))
    sql = f"SELECT id, CAST(title || char(10) || body AS BLOB) FROM note WHERE id IN ({marks})"  # bytes: not decoded
    bodies = dict(connection.execute(sql, tuple(row[0] for row in head)))
    near = [(note_id, rounded(score * proximity_factor(bodies[note_id], query.words))) for note_id, score in head]
    return near + list(rows[RERANKED:])


# -- order ----------------------------------------------------------------------------------------


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
