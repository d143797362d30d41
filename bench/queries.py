"""Recall by classes of queries, each beside the raw full-text statement; the two engines; answers to planted facts."""

from __future__ import annotations

import random
import sqlite3
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from indexing import Figures, session_for, timed
from vaults import JAPANESE, Fact, Words

from vaultmem.access.session import Session
from vaultmem.index.engines.expression import of_clauses
from vaultmem.index.engines.fts5 import Fts5Engine
from vaultmem.index.engines.protocol import Filter
from vaultmem.recall.question import pool_size
from vaultmem.recall.recall import RecallRequest, recall
from vaultmem.text.terms import parse_query

PER_CLASS = 20
LIMIT = 10


def classes(words: Words) -> dict[str, list[str]]:
    """Return queries by class; ranks of words are by how common they are."""
    source = random.Random(11)
    ranked = words.ranked

    def draw(*spans: tuple[int, int]) -> list[str]:
        return [" ".join(ranked[source.randrange(*span)] for span in spans) for _ in range(PER_CLASS)]

    rare, mid, common = (15_000, 30_000), (300, 3_000), (10, 60)
    return {
        "rare": draw(rare),
        "mid": draw(mid),
        "common": draw(common),
        "two": draw(common, mid),
        "two common": draw(common, common),
        "three": draw(common, mid, rare),
        "phrase": [f'"{text}"' for text in draw(common, common)],
        "question": [f"where is the {text} of this?" for text in draw(common, mid)],
        "japanese": ["".join(source.sample(JAPANESE, 1 + number % 2)) for number in range(PER_CLASS)],
        "no hit": [f"zzqx{number}" for number in range(PER_CLASS)],
    }


def raw(session: Session, text: str) -> None:
    """The floor: the ranked full-text statement for all words, and for any word where that finds too few."""
    query = parse_query(text)
    connection = session.connection()
    engine = Fts5Engine()
    found = engine.ranked(connection, of_clauses(query.exact, False), Filter(), pool_size(LIMIT))
    if len(found) < LIMIT and (len(query.exact) > 1 or query.partial != query.exact):
        engine.ranked(connection, of_clauses(query.partial, True), Filter(), pool_size(LIMIT))


def query_figures(session: Session, words: Words) -> dict[str, Figures]:
    """Return by class the p50 and p95 of recall and of the floor in milliseconds, warm."""
    found: dict[str, Figures] = {}
    for name, queries in classes(words).items():
        floors, ours = [], []
        for text in queries:
            base = best_of(partial(raw, session, text))
            own = best_of(partial(recall, session, RecallRequest(text, limit=LIMIT), sweep=False))
            floors.append(base)
            ours.append(own)
        found[name] = {
            "raw_p50_ms": statistics.median(floors),
            "raw_p95_ms": nearly_worst(floors),
            "p50_ms": statistics.median(ours),
            "p95_ms": nearly_worst(ours),
            "ratio_less_2ms": max(0.0, (statistics.median(ours) - 2.0) / statistics.median(floors)),
            "within": sum(own <= 1.5 * base + 2.0 for own, base in zip(ours, floors, strict=True)) / len(ours),
        }
    return found


def best_of(action: Callable[[], object], times: int = 5) -> float:
    """Return the median milliseconds of a warm call."""
    action()
    return 1000 * statistics.median(timed(action) for _ in range(times))


def nearly_worst(values: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return sorted(values)[int(len(values) * 0.95)]


def quality(session: Session, facts: Sequence[Fact]) -> Figures:
    """Return recall@1 of planted facts by kind, and over all."""
    right: dict[str, list[bool]] = defaultdict(list)
    for fact in facts:
        hits = recall(session, RecallRequest(fact.query, limit=5, record_access=False), sweep=False).hits
        right[fact.kind].append(bool(hits) and hits[0].path == fact.path)
    found = {kind: sum(values) / len(values) for kind, values in sorted(right.items())}
    every = [value for values in right.values() for value in values]
    return {"all": sum(every) / max(1, len(every)), **found}


def engine_figures(vault: Path, work: Path, words: Words) -> Figures:
    """Return FTS4 beside FTS5 and beside sqlite-fts4's own `rank_bm25`: a query of any of two common words."""
    homes = {}
    for engine in ("fts5", "fts4"):
        with session_for(vault, work / engine, engine) as session:
            seconds = timed(session.reconciler.run)
            connection = session.connection()
            expression = of_clauses(parse_query(" ".join(words.ranked[10:12])).partial, True)
            ranked = session.database.engine.ranked
            call = best_of(partial(ranked, connection, expression, Filter(), 50))
            requests = [RecallRequest(text) for text in classes(words)["two common"]]
            own = [best_of(partial(recall, session, request, sweep=False), 3) for request in requests]
            homes[engine] = (seconds, call, statistics.median(own))
            if engine == "fts4":
                theirs = best_of(partial(rank_bm25, connection, words), 3)
    return {
        "fts4_cold_to_fts5": homes["fts4"][0] / homes["fts5"][0],
        "fts5_any_two_common_ms": homes["fts5"][1],
        "fts4_any_two_common_ms": homes["fts4"][1],
        "rank_bm25_any_two_common_ms": theirs,
        "fts5_recall_two_common_ms": homes["fts5"][2],
        "fts4_recall_two_common_ms": homes["fts4"][2],
    }


def rank_bm25(connection: sqlite3.Connection, words: Words) -> None:
    """The library's own way: a Python callback for each hit."""
    from sqlite_fts4 import register_functions

    register_functions(connection)
    match = " OR ".join(f'"{word}"' for word in words.ranked[10:12])
    sql = "SELECT docid FROM fts WHERE fts MATCH ? ORDER BY rank_bm25(matchinfo(fts, 'pcnalx')) LIMIT 50"
    connection.execute(sql, (match,)).fetchall()
