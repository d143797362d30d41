"""Both full-text engines give the same rows with the same scores, and the short cut of `best` changes nothing."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaultmem.index.engines.expression import of_clauses
from vaultmem.index.engines.fts4 import Fts4Engine
from vaultmem.index.engines.fts5 import Fts5Engine
from vaultmem.index.engines.protocol import Filter, SearchEngine, rounded
from vaultmem.index.engines.top_k import BOUNDED_FROM, Counts, best
from vaultmem.index.rows import full_text_columns, stream_columns
from vaultmem.text.terms import parse_query

ENGINES: tuple[SearchEngine, ...] = (Fts5Engine(), Fts4Engine())
NOTES = 5_000
COMMON = [f"{start}{end}" for start in ("ka", "lo", "mi", "nu", "re") for end in ("tan", "vel", "dor", "sig")]
RARE = [f"rare{number}" for number in range(60)]
OTHERS = ["日本語の検索", "東京", "café", "parseYaml", "snake_case_name", "stores", "storing", "store"]


def columns(source: random.Random, number: int) -> tuple[str, ...]:
    """Return the columns of a made-up note: common words with a long tail, of very different lengths."""
    words = [
        COMMON[min(int(source.paretovariate(0.7)) - 1, len(COMMON) - 1)] for _ in range(source.choice((4, 30, 300)))
    ]
    words += source.sample(RARE, source.randint(0, 2)) + source.sample(OTHERS, source.randint(0, 2))
    source.shuffle(words)
    title = " ".join(source.sample(COMMON, 2)) if number % 9 == 0 else f"note {number}"
    tags = json.dumps([source.choice(COMMON)] if number % 7 == 0 else [])
    headings = json.dumps([(1, source.choice(COMMON), 1)] if number % 5 == 0 else [])
    key = f"{source.choice(COMMON)}-{number}" if number % 11 == 0 else f"k{number}"
    return full_text_columns(stream_columns(title, f"n{number}.md", "[]", tags, headings, "{}", " ".join(words)), key)


@pytest.fixture(scope="module")
def tables() -> Iterator[dict[str, sqlite3.Connection]]:
    """One database an engine with the same notes, some of which were removed and put back as others."""
    made = {}
    for engine in ENGINES:
        source = random.Random(5)
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, scope TEXT)")
        engine.create(connection)
        connection.execute("BEGIN")
        for number in range(1, NOTES + 1):
            values = columns(source, number)
            engine.add(connection, number, values)
            connection.execute("INSERT INTO note VALUES (?, ?)", (number, "ab"[number % 2]))
            if number % 10 == 0:
                engine.remove(connection, number, values)
                engine.add(connection, number, columns(source, number + NOTES))
            if number % 17 == 0:
                engine.add(connection, number + NOTES, values)
                engine.remove(connection, number + NOTES, values)
        connection.execute("COMMIT")
        made[engine.name] = connection
    yield made
    for connection in made.values():
        connection.close()


queries = st.lists(st.sampled_from([*COMMON[:8] * 2, *COMMON, *RARE[:9], *OTHERS, "absent"]), min_size=1, max_size=4)
wheres = st.sampled_from([Filter(), Filter("n.scope = ?", ("a",))])


@given(queries, wheres, st.sampled_from([1, 10, 40, 51]))
def test_the_short_cut_is_exact_on_both_engines(
    tables: dict[str, sqlite3.Connection], words: list[str], where: Filter, limit: int
) -> None:
    query = parse_query(" ".join(words))
    known = {engine.name: Counts() for engine in ENGINES}
    for clauses, any_clause in (
        (query.exact, False),
        (query.inflected, False),
        (query.partial, True),
        (query.loose, True),
    ):
        answers = []
        for engine in ENGINES:
            connection = tables[engine.name]
            everything = engine.ranked(connection, of_clauses(clauses, any_clause), where)
            whole = [(rowid, rounded(score)) for rowid, score in everything]
            found = best(engine, connection, clauses, any_clause, where, limit, known[engine.name])
            assert found.total == len(whole)
            least = whole[:limit][-1][1] if whole else 0.0
            assert sorted(found.rows) == sorted(row for row in whole if row[1] >= least), (engine.name, clauses)
            assert [row[1] for row in found.rows] == sorted((row[1] for row in found.rows), reverse=True)
            answers.append(sorted(found.rows))
        assert answers[0] == answers[1]


def test_the_short_cut_is_taken(tables: dict[str, sqlite3.Connection]) -> None:
    """Common words are answered by scoring few of their matches: what the marks are for."""
    scored: list[str] = []
    connection = tables["fts5"]
    clauses = parse_query(COMMON[5]).exact
    connection.set_trace_callback(lambda sql: scored.append(sql) if "SELECT sz" in sql else None)
    found = best(ENGINES[0], connection, clauses, False, Filter(), 10)
    connection.set_trace_callback(None)
    assert found.total > BOUNDED_FROM
    assert 0 < len(scored) < found.total / 3


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_statistics_follow_removals(tables: dict[str, sqlite3.Connection], engine: SearchEngine) -> None:
    connection = tables[engine.name]
    statistics = engine.statistics(connection)
    assert statistics.rows == NOTES
    assert statistics.mean_tokens == ENGINES[0].statistics(tables["fts5"]).mean_tokens > 50
    assert engine.check(connection) == ""


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_a_removed_note_leaves_no_postings(engine: SearchEngine) -> None:
    source = random.Random(1)
    kept, gone = columns(source, 1), columns(source, 2)
    once, twice = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    for connection in (once, twice):
        engine.create(connection)
        engine.add(connection, 1, kept)
    engine.add(twice, 2, gone)
    engine.remove(twice, 2, gone)
    assert engine.postings(once) == engine.postings(twice)
    engine.remove(twice, 1, kept)
    assert engine.postings(twice) == {} != engine.postings(once)
