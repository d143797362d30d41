"""Recall: a query to ranked hits, within what a reader may see.

Tiers (design.md §6): notes with every term as written, then with every term in some form, then,
only for the slots left, notes with some of them. Mode `metadata` matches substrings of the note,
its title, tags, aliases and key, as upstream does; `hybrid` is the tiers above, so a Latin word
is never found inside another word (cases/search.yaml, search-two-character-cjk-word).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from vaultmem.errors import UsageError
from vaultmem.index.search import Filter
from vaultmem.model import Hit
from vaultmem.ops.filters import NoteFilter, combine, filter_sql
from vaultmem.ops.hits import load_hits, with_relations
from vaultmem.ops.session import Session
from vaultmem.sync.fresh import look_at_files, repair
from vaultmem.text.proximity import proximity_factor
from vaultmem.text.tokens import Clause, Query, parse_query
from vaultmem.visibility import Purpose, all_terms_are_visible, may_show

MODES = ("hybrid", "bm25", "metadata")
SORTS = ("relevance", "recency")
MAX_LIMIT = 100
_PARTIAL_TERMS = 12
_RERANKED = 40
"""How many of the best matches are looked at for nearness."""


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


@dataclass(slots=True)
class _Found:
    """Note ids in order, with scores, and which of them match in part only."""

    ids: list[int] = field(default_factory=list)
    scores: dict[int, float] = field(default_factory=dict)
    partial: set[int] = field(default_factory=set)
    total: int = 0


def recall(session: Session, request: RecallRequest, *, sweep: bool = True) -> RecallResult:
    """Return the hits of a request. Raises UsageError for unknown modes, sorts and limits."""
    checked = _checked(request)
    return session.read(lambda: _recall(session, checked), sweep=sweep)


def _checked(request: RecallRequest) -> RecallRequest:
    if request.mode not in MODES:
        raise UsageError(f'Unknown mode "{request.mode}"', f"Use one of: {', '.join(MODES)}")
    if request.sort and request.sort not in SORTS:
        raise UsageError(f'Unknown sort "{request.sort}"', f"Use one of: {', '.join(SORTS)}")
    if not 1 <= request.limit <= MAX_LIMIT:
        raise UsageError(f"limit is {request.limit}", f"Use 1 to {MAX_LIMIT}")
    if request.max_chars < 0:
        raise UsageError(f"max-chars is {request.max_chars}", "Use 1 or more")
    asks = bool(parse_query(request.query)) if request.mode != "metadata" else bool(request.query.split())
    sort = request.sort or ("relevance" if asks else "recency")
    return replace(request, sort=sort if asks else "recency")


def _recall(session: Session, request: RecallRequest) -> RecallResult:
    query = parse_query(request.query)
    found = _search(session, request, query)
    warnings = list(session.warnings)
    repaired: set[str] = set()
    look = look_at_files(session.config, session.connection(), found.ids)
    if look.stale and repair(session.reconciler, look.stale):
        repaired = {path for paths in look.stale.values() for path in paths}
        found = _search(session, request, query)
        look = look_at_files(session.config, session.connection(), found.ids)
    unknown = look.unknown | look.stale_ids
    if unknown:
        warnings.append("some notes could not be compared with their files; their text is from the index")
    hits = []
    loaded = load_hits(session.connection(), found.ids, found.scores, query, session.config.max_recall_body_chars)
    for note_id in found.ids:
        hit = with_relations(session.connection(), loaded[note_id])
        state = "unknown" if note_id in unknown else "repaired" if hit.path in repaired else "fresh"
        hits.append(replace(hit, freshness=state, partial=note_id in found.partial))
    kept = _within_budget(hits, request.max_chars)
    return RecallResult(
        request.query,
        request.mode,
        request.sort,
        session.database.engine.name,
        found.total,
        found.total > len(kept),
        tuple(kept),
        tuple(warnings),
    )


def _search(session: Session, request: RecallRequest, query: Query) -> _Found:
    where = combine(may_show(session.config, request.purpose), filter_sql(request.filter))
    if request.mode == "metadata" and request.query.split():
        return _by_substring(session, request, where)
    if not query:
        return _newest(session, request, where)
    if all_terms_are_visible(request.purpose) and request.filter == NoteFilter():
        where = Filter()
    if request.sort == "recency":
        return _by_time(session, request, query, where)
    return _by_relevance(session, request, query, where)


@dataclass(frozen=True, slots=True)
class _Tier:
    """One way to ask: all clauses or any of them; `partial` marks what it finds as partial."""

    clauses: tuple[Clause, ...]
    any_clause: bool = False
    partial: bool = False


def _tiers(session: Session, query: Query) -> Iterator[_Tier]:
    """Yield tiers from strict to loose, without repeats; later ones are only asked for if slots are left."""
    yield _Tier(query.exact)
    if query.inflected != query.exact:
        yield _Tier(query.inflected)
    if len(query.inflected) > 1:
        present = tuple(
            clause
            for clause in query.inflected[:_PARTIAL_TERMS]
            if session.database.engine.count(session.connection(), (clause,), False, Filter())
        )
        if 0 < len(present) < len(query.inflected):
            yield _Tier(present, partial=True)
    for clauses in (query.partial, query.loose):
        if len(clauses) > 1 or clauses not in (query.exact, query.inflected):
            yield _Tier(clauses[:_PARTIAL_TERMS], any_clause=True, partial=True)


def _by_relevance(session: Session, request: RecallRequest, query: Query, where: Filter) -> _Found:
    connection, engine = session.connection(), session.database.engine
    found = _Found()
    for tier in _tiers(session, query):
        pool = max(_RERANKED, 2 * request.limit) if len(query.words) > 1 else request.limit
        rows = engine.best(connection, tier.clauses, tier.any_clause, where, pool + len(found.ids))
        new = _near_first(session, query, [row for row in rows if row[0] not in found.scores])
        for note_id, score in _ordered(session, new)[: request.limit - len(found.ids)]:
            found.ids.append(note_id)
            found.scores[note_id] = score
            if tier.partial:
                found.partial.add(note_id)
        many = len(rows) >= pool
        count = engine.count(connection, tier.clauses, tier.any_clause, where) if many else len(rows)
        found.total = max(found.total, count)
        if len(found.ids) >= request.limit:
            break
    return found


def _near_first(session: Session, query: Query, rows: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Raise notes in which the words of a query stand near to each other."""
    if len(query.words) < 2 or len(rows) < 2:
        return rows
    marks = ",".join("?" * len(rows))
    bodies = dict(
        session.connection().execute(
            f"SELECT id, title || char(10) || body FROM note WHERE id IN ({marks})", tuple(row[0] for row in rows)
        )
    )
    return [(note_id, round(score * proximity_factor(bodies[note_id], query.words), 9)) for note_id, score in rows]


def _ordered(session: Session, rows: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Order by score, then by scope, scope id, key and path (design.md §5: the same on every run)."""
    tied = len({score for _, score in rows}) < len(rows)
    names = _names(session, (note_id for note_id, _ in rows)) if tied else {}
    return sorted(rows, key=lambda row: (-row[1], names.get(row[0], ())))


def _names(session: Session, ids: Iterable[int]) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    wanted = list(ids)
    for start in range(0, len(wanted), 400):
        batch = tuple(wanted[start : start + 400])
        sql = f"SELECT id, scope, scope_id, key, vault, path FROM note WHERE id IN ({','.join('?' * len(batch))})"
        found.update({row[0]: tuple(row[1:]) for row in session.connection().execute(sql, batch)})
    return found


def _by_time(session: Session, request: RecallRequest, query: Query, where: Filter) -> _Found:
    """Matches of a tier by time, newest first; looser tiers fill the slots left."""
    found = _Found()
    connection, engine = session.connection(), session.database.engine
    for tier in _tiers(session, query):
        total = engine.count(connection, tier.clauses, tier.any_clause, where)
        if not total:
            continue
        rows = dict(engine.best(connection, tier.clauses, tier.any_clause, where, total))
        new = [note_id for note_id in rows if note_id not in found.scores]
        for note_id in _newest_of(session, new)[: request.limit - len(found.ids)]:
            found.ids.append(note_id)
            found.scores[note_id] = rows[note_id]
            if tier.partial:
                found.partial.add(note_id)
        found.total = max(found.total, total)
        if len(found.ids) >= request.limit:
            break
    return found


def _newest_of(session: Session, ids: list[int]) -> list[int]:
    rows: list[tuple[str, tuple[str, ...], int]] = []
    for start in range(0, len(ids), 400):
        batch = tuple(ids[start : start + 400])
        sql = (
            f"SELECT id, updated_at, scope, scope_id, key, vault, path FROM note "
            f"WHERE id IN ({','.join('?' * len(batch))})"
        )
        rows += [(row[1], tuple(row[2:]), row[0]) for row in session.connection().execute(sql, batch)]
    rows.sort(key=lambda row: row[1])
    rows.sort(key=lambda row: row[0], reverse=True)
    return [row[2] for row in rows]


def _newest(session: Session, request: RecallRequest, where: Filter) -> _Found:
    connection = session.connection()
    total = connection.execute(f"SELECT count(*) FROM note n WHERE {where.sql}", where.parameters).fetchone()[0]
    sql = (
        f"SELECT n.id FROM note n WHERE {where.sql} "
        "ORDER BY n.updated_at DESC, n.scope, n.scope_id, n.key, n.vault, n.path LIMIT ?"
    )
    ids = [row[0] for row in connection.execute(sql, (*where.parameters, request.limit))]
    return _Found(ids, dict.fromkeys(ids, 0.0), set(), total)


def _by_substring(session: Session, request: RecallRequest, where: Filter) -> _Found:
    """Every blank-separated term is a substring of body, title, tags, aliases or key; newest first."""
    terms = request.query.split()
    haystack = (
        "lower(n.body || char(10) || n.title || char(10) || n.tags || char(10) || n.aliases || char(10) || n.key)"
    )
    condition = " AND ".join(f"instr({haystack}, ?) > 0" for _ in terms)
    wanted = combine(where, Filter(condition, tuple(term.lower() for term in terms)))
    return _newest(session, request, wanted)


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
