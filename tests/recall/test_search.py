"""Finding: what a query matches, and what ranks above what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import World
from vaultmem.access.filters import NoteFilter
from vaultmem.text.terms import document_stream, inflections, parse_query, query_tokens


def test_exact_forms_rank_above_inflected_ones(world: World) -> None:
    world.write("exact.md", "# one\nA long text about many things in which run is said once. " + "filler words " * 40)
    world.write("inflected.md", "# two\nrunning running running runs\n")
    assert world.recall("run") == ["exact.md", "inflected.md"]
    assert world.recall("running") == ["inflected.md", "exact.md"]


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("index", "indexes"),
        ("indexes", "index"),
        ("query", "queries"),
        ("queries", "query"),
        ("store", "storing"),
        ("stored", "stores"),
        ("stop", "stopped"),
        ("stopping", "stop"),
        ("box", "boxes"),
        ("note", "notes"),
        ("plan", "planned"),
    ],
)
def test_inflections_meet(asked: str, written: str) -> None:
    assert written in inflections(asked)


@pytest.mark.parametrize("word", ["university", "news", "bus", "thing", "sql", "v2"])
def test_words_that_only_look_inflected_are_not_cut(word: str) -> None:
    assert not {"universe", "new", "bu", "th", "sq"} & set(inflections(word))


def test_all_terms_before_partial_ones(world: World) -> None:
    world.write("both.md", "alpha " + "x " * 200 + "beta\n")
    world.write("one.md", "alpha alpha alpha alpha\n")
    with world.open() as memory:
        from vaultmem.recall.recall import RecallRequest

        hits = memory.recall(RecallRequest("alpha beta")).hits
    assert [(hit.path, hit.partial) for hit in hits] == [("both.md", False), ("one.md", True)]


def test_a_question_in_plain_words(world: World) -> None:
    world.write("a.md", "Ownership of the kern rollout belongs to Varga until the spring review.\n")
    world.write("b.md", "The rollout was late.\n")
    assert world.recall("who owns the kern rollout?")[0] == "a.md"


def test_words_near_to_each_other_rank_higher(world: World) -> None:
    world.write("far.md", "alpha one two three. " + "word " * 90 + "beta\n")
    world.write("near.md", "word " * 300 + "alpha beta go together\n")
    assert world.recall("alpha beta") == ["near.md", "far.md"]


def test_hyphens_are_no_exclusion(world: World) -> None:
    world.write("Retry budget.md", "# Retry budget\nRFC-027 caps retries at four per request.\n")
    world.write("Unrelated.md", "# Unrelated\nThe budget meeting was moved.\n")
    assert world.recall("RFC-027 retries")[0] == "Retry budget.md"
    assert set(world.recall("RFC-027 retries")) >= set(world.recall("RFC 027 retries"))
    assert world.recall("-027") == ["Retry budget.md"]


QUERIES = ["don't run", "deploy/prod.sh", "09:30", "NEAR", "tool NEAR keyword AND (", '"unbalanced cache', "v2*", "C++"]


def test_punctuation_is_data(world: World) -> None:
    world.write(
        "Shell.md",
        "# Shell\nDon't run deploy/prod.sh before 09:30; `NEAR` is a keyword in one tool only. "
        "C++ and C# builds share a cache (see v2*).\n",
    )
    for query in QUERIES:
        assert world.recall(query) == ["Shell.md"], query
    everything = [world.recall(query) for query in ("*", "''", "   ", "")]
    assert everything == [["Shell.md"]] * 4


def test_cjk_words_of_any_length(world: World) -> None:
    world.write("投资.md", "# 投资笔记\n本季度先做好止损计划，再谈收益。\n")
    world.write("散歩.md", "# 散歩メモ\nきょうは川沿いを歩いて写真をとった。\n")
    world.write("회의.md", "# 회의\n다음회의는수요일오전입니다.\n")
    world.write("start.md", "# start\n")
    for query, path in (
        ("止损", "投资.md"),
        ("川沿い", "散歩.md"),
        ("수요일", "회의.md"),
        ("收益", "投资.md"),
        ("益", "投资.md"),
    ):
        assert world.recall(query) == [path], query
    assert world.recall("art") == []


def test_accents_fold_but_exact_wins(world: World) -> None:
    world.write("a.md", "# Evenements\nLe calendrier des \u00e9v\u00e9nements est pr\u00eat.\n")
    world.write("b.md", "# Liste\nLe calendrier des e\u0301ve\u0301nements est vide.\n")
    world.write("c.md", "# Plain\nThe evenements file is an export.\n")
    assert set(world.recall("événements")[:2]) == {"a.md", "b.md"}
    assert set(world.recall("événements")) == set(world.recall("evenements")) == {"a.md", "b.md", "c.md"}


def test_filters_apply_before_the_limit(world: World) -> None:
    world.configure(
        'folder = "Work"\nscope = "project"\nscope_id = "p"', 'folder = "Shared"\nscope = "global"', managed=""
    )
    for number in range(5):
        world.write(f"Work/p{number}.md", f"# Cache {number}\ncache\n")
    for number in range(120):
        world.write(f"Shared/noise-{number}.md", "cache cache cache cache\n" * 20)
    with world.open() as memory:
        from vaultmem.recall.recall import RecallRequest

        found = memory.recall(RecallRequest("cache", NoteFilter(scope="project", scope_id="p"), limit=5))
    assert len(found.hits) == 5 and found.total == 5 and all(hit.path.startswith("Work/") for hit in found.hits)


@pytest.mark.parametrize(
    ("wanted", "paths"),
    [
        (NoteFilter(tags=("area",)), ["a.md"]),
        (NoteFilter(tags=("#AREA/one",)), ["a.md"]),
        (NoteFilter(tags=("are",)), []),
        (NoteFilter(paths=("sub",)), ["sub/b.md"]),
        (NoteFilter(paths=("*.md",)), ["a.md", "sub/b.md"]),
        (NoteFilter(where=("status=done",)), ["sub/b.md"]),
        (NoteFilter(where=("status=DONE", "n=3")), ["sub/b.md"]),
        (NoteFilter(where=("kinds=y",)), ["a.md"]),
        (NoteFilter(type="feedback"), ["a.md"]),
        (NoteFilter(scope="project"), []),
    ],
)
def test_filters(world: World, wanted: NoteFilter, paths: list[str]) -> None:
    world.write("a.md", "---\nkinds: [x, y]\ncao:\n  type: feedback\n---\nheron #area/one\n")
    world.write("sub/b.md", "---\nstatus: done\nn: 3\n---\nheron\n")
    assert sorted(world.recall("heron", filter=wanted)) == paths


def test_recency_and_metadata_modes(world: World) -> None:
    world.write("old.md", "---\nupdated: 2020-01-01\n---\nheron heron heron\n")
    world.write("new.md", "---\nupdated: 2026-01-01\n---\nheron\n")
    world.write("start.md", "---\nupdated: 2021-01-01\n---\nstart\n")
    assert world.recall("heron", sort="recency") == ["new.md", "old.md"]
    assert world.recall("tart", mode="metadata") == ["start.md"]
    assert world.recall("tart") == []
    assert world.recall("heron", mode="bm25") == ["old.md", "new.md"]


def test_camel_case_and_paths_are_found_in_parts(world: World) -> None:
    world.write("a.md", "Call parseYaml from src/readers/yaml_reader.py in HTTPServer.\n")
    for query in ("yaml", "parse", "parseYaml", "yaml_reader", "src/readers", "reader", "http server", "HTTPServer"):
        assert world.recall(query) == ["a.md"], query


def test_a_hit_is_compared_with_its_file_before_it_is_shown(world: World) -> None:
    world.write("a.md", "heron one\n")
    world.write("b.md", "heron two\n")
    world.reconcile()
    world.write("a.md", "egret one\n")
    (world.vault / "b.md").unlink()
    with world.open() as memory:
        from vaultmem.recall.recall import RecallRequest

        assert memory.recall(RecallRequest("heron"), sweep=False).hits == ()
        found = memory.recall(RecallRequest("egret"), sweep=False).hits
    assert [hit.path for hit in found] == ["a.md"]


@given(st.text(max_size=60))
def test_any_text_is_a_query(text: str) -> None:
    query = parse_query(text)
    for tier in (query.exact, query.inflected, query.partial, query.loose):
        for clause in tier:
            for phrase in clause:
                assert phrase.tokens and all(token and '"' not in token and " " not in token for token in phrase.tokens)


@given(st.text(max_size=80))
def test_what_is_written_is_what_is_asked_for(text: str) -> None:
    stream = document_stream(text).split("\u241f")[0]
    import re

    indexed = [token.lower() for token in re.findall(r"[A-Za-z0-9\u0080-\U0010ffff]+", stream)]
    for token in query_tokens(text):
        assert any(found == token or (len(token) == 1 and found.startswith(token)) for found in indexed), (
            token,
            indexed,
        )
