"""The notes that match a question, tier by tier, with what ordering needs of them.

Each function takes a `Question` and gives candidates; nothing here knows of a session, or of what becomes of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from vaultmem.base.values import SCOPES
from vaultmem.index.engines.expression import of_clauses
from vaultmem.index.engines.protocol import Filter, rounded
from vaultmem.index.engines.top_k import best
from vaultmem.index.queries import chunked
from vaultmem.recall.order import order_by_time
from vaultmem.recall.pool import Candidate, Pool
from vaultmem.recall.question import Question
from vaultmem.state.memories import Identity
from vaultmem.text.proximity import proximity_factor
from vaultmem.text.terms import Clause, Query

RERANKED = 40
"""How many of the best matches are looked at for nearness."""
MAX_PARTIAL_TERMS = 12


@dataclass(frozen=True, slots=True)
class _Tier:
    """One way to ask: all clauses or any of them."""

    clauses: tuple[Clause, ...]
    number: int
    any_clause: bool = False
    partial: bool = False


def _tiers(question: Question) -> Iterator[_Tier]:
    """Yield tiers from strict to loose, without repeats; later ones are only asked for if slots are left."""
    query, counts = question.query, question.counts
    yield _Tier(query.exact, 0)
    if query.inflected != query.exact:
        yield _Tier(query.inflected, 1)
    if len(query.inflected) > 1:
        present = tuple(
            clause
            for clause in query.inflected[:MAX_PARTIAL_TERMS]
            if any(counts.of(question.engine, question.connection, phrase) for phrase in clause)
        )
        if 0 < len(present) < len(query.inflected):
            yield _Tier(present, 2, partial=True)
    for number, clauses in ((3, query.partial), (4, query.loose)):
        if len(clauses) > 1 or clauses not in (query.exact, query.inflected):
            yield _Tier(clauses[:MAX_PARTIAL_TERMS], number, any_clause=True, partial=True)


def best_matches(question: Question) -> Pool:
    """Return the best candidates by words: up to `size` with all of them, partial ones only for free slots."""
    connection, query, limit = question.connection, question.query, question.limit
    pool = Pool()
    seen: set[int] = set()
    for tier in _tiers(question):
        wanted = limit if tier.partial else question.size
        asked = max(RERANKED if len(query.words) > 1 else 0, wanted) + len(seen)
        known = 0 if tier.any_clause else len(seen)  # a looser tier of all clauses has every match of a stricter one
        matches = best(
            question.engine,
            connection,
            tier.clauses,
            tier.any_clause,
            question.in_full_text,
            asked,
            question.counts,
            known,
        )
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


def newest_matches(question: Question) -> Pool:
    """Return matches of the strictest tiers by time, newest first, looser ones for the slots left."""
    pool = Pool()
    seen: set[int] = set()
    for tier in _tiers(question):
        clauses = of_clauses(tier.clauses, tier.any_clause)
        rows = question.engine.ranked(question.connection, clauses, question.in_full_text)
        found = [Candidate(row[0], rounded(row[1]), tier.number, tier.partial) for row in rows if row[0] not in seen]
        describe(question.connection, found)
        order_by_time(found, question.by_scope)
        found = found[: question.limit - len(seen)]
        pool.candidates += found
        seen.update(one.id for one in found)
        pool.total = max(pool.total, len(rows))
        if len(seen) >= question.limit:
            break
    return pool


def newest(connection: sqlite3.Connection, where: Filter, limit: int, *, by_scope: bool) -> Pool:
    """Return the newest notes that a condition lets through; `by_scope`: of the first scopes in their order."""
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


def named(connection: sqlite3.Connection, where: Filter, memories: Sequence[Identity]) -> list[Candidate]:
    """Return these memories, as far as a condition lets them through, in their order."""
    found: list[Candidate] = []
    for scope, scope_id, key in memories:
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
