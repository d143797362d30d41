"""Upstream's known faults, with the better behaviour: the rows of its list that touch agents' memory.

The number in each name is the row of the list (parts A, B and D); rows of other rooms have their
tests there (4, 11, 12 and 18 in the fault cases and the crash tests, 20 to 23 in the conformance cases).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import World
from vaultmem.access.filters import NoteFilter
from vaultmem.access.scopes import CallContext
from vaultmem.base.errors import ScopeError, StoreRefused
from vaultmem.base.values import Hit
from vaultmem.memories.forget import ForgetRequest
from vaultmem.memories.store import StoreRequest
from vaultmem.memory import open_memory
from vaultmem.recall.recall import RecallRequest


@pytest.fixture
def mixed(world: World) -> World:
    """Global memories lie in the vault, all others in the native wiki."""
    world.configure('folder = "."\nscope = "global"', 'folder = "Agent Memory"\nscope = "global"\nwritable = true')
    return world


def hits(world: World, query: str = "", sort: str = "", **context: str) -> list[Hit]:
    with world.open(**(context or {"project": "p"})) as memory:
        return list(memory.recall(RecallRequest(query, NoteFilter(), sort=sort)).hits)


def put(world: World, content: str, key: str = "", scope: str = "project", **more: object) -> object:
    with world.open(project="p", session="s", agent="a") as memory:
        return memory.store(StoreRequest(content, key, scope, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize("scope", ["global", "project"])
def test_row_4_a_store_brings_a_forgotten_key_back(mixed: World, scope: str) -> None:
    put(mixed, "oil the pump", "pump", scope)
    with mixed.open(project="p") as memory:
        memory.forget(ForgetRequest("pump", scope))
    assert hits(mixed, "pump") == []
    put(mixed, "oil the pump weekly", "pump", scope)
    assert [hit.key for hit in hits(mixed, "weekly")] == ["pump"]


@pytest.mark.parametrize("scope", ["global", "project"])
def test_row_8_tags_merge_and_the_type_stays_unless_given(mixed: World, scope: str) -> None:
    put(mixed, "one", "k", scope, tags=("a",), type="feedback")
    put(mixed, "two", "k", scope)
    put(mixed, "three", "k", scope, tags=("b",))
    (hit,) = hits(mixed, "")
    assert (hit.tags, hit.type) == (("a", "b"), "feedback")


@pytest.mark.parametrize("text", ["支付服务只在周二上线", "Насос смазывают еженедельно", "café crème à emporter"])
def test_row_13_every_script_is_stored_and_found(mixed: World, text: str) -> None:
    put(mixed, text)
    put(mixed, "something else", "other")
    words = text.split()[0] if " " in text else text[:4]
    assert [hit.content for hit in hits(mixed, words)] == [text]


def test_row_14_a_topics_header_matches_nothing(mixed: World) -> None:
    put(mixed, "oil the pump", "k")
    for word in ("tags", "id", "scope", "type"):
        assert hits(mixed, word) == []


def test_row_15_the_sections_that_match_are_answered(mixed: World) -> None:
    for text in ("the pump needs oil", "the belt is new", "the shed is locked"):
        put(mixed, text, "machine")
    assert [hit.content for hit in hits(mixed, "oil")] == ["the pump needs oil"]
    assert "belt" in hits(mixed, "belt pump")[0].content and "pump" in hits(mixed, "belt pump")[0].content
    assert hits(mixed, "oil")[0].content_truncated


def test_row_16_a_query_is_answered_by_relevance(mixed: World) -> None:
    put(mixed, "copper pump copper pump manual", "exact")
    for number in range(3):
        put(mixed, f"one pump among many other words number {number}", f"later-{number}")
    assert hits(mixed, "copper pump")[0].key == "exact"


def test_row_17_one_key_in_two_scopes_is_two_memories(mixed: World) -> None:
    put(mixed, "oil here", "k", "project")
    put(mixed, "oil there", "k", "global")
    assert {(hit.key, hit.scope) for hit in hits(mixed, "oil")} == {("k", "project"), ("k", "global")}


def test_rows_19_and_36_a_project_keeps_its_memories_under_its_other_ids(mixed: World, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    with mixed.open(cwd=str(folder)) as memory:
        memory.store(StoreRequest("oil from before", "before"))
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", "git@host.example:a/b.git"], check=True)
    with mixed.open(cwd=str(folder)) as memory:
        memory.store(StoreRequest("oil from after", "after"))
    for scope in ("", "project"):
        with mixed.open(cwd=str(folder)) as memory:
            found = memory.recall(RecallRequest("oil", NoteFilter(scope))).hits
        assert {hit.key for hit in found} == {"before", "after"}
    with pytest.raises(ScopeError), mixed.open(project="p") as memory:
        memory.store(StoreRequest("x", "k", "project", "global"))


def test_row_32_key_tags_and_text_are_judged(mixed: World) -> None:
    secret = "AKIAFAKEFAKEFAKE0000"
    for scope in ("global", "project", "session", "federated"):
        for content, tags in ((f"key {secret}", ()), ("text", (secret,))):
            with pytest.raises(StoreRefused) as refused:
                put(mixed, content, "k", scope, tags=tags)
            assert secret not in str(refused.value)


def test_row_37_one_repository_has_one_id(mixed: World, tmp_path: Path) -> None:
    ids = set()
    for number, url in enumerate(
        [
            "git@host.example:a/b.git",
            "https://host.example/a/b",
            "https://user@host.example:443/a/b.git/",
            "ssh://git@host.example:22/a/b.git",
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", url], check=True)
        with mixed.open(cwd=str(folder)) as memory:
            ids.add(memory.destinations()[1]["scope_id"])
    assert len(ids) == 1


def test_row_38_no_two_sessions_share_memories(mixed: World) -> None:
    for name in ("team.a", "teama", "team a", "TEAMA"):
        with open_memory(str(mixed.home), context=CallContext(session=name)) as memory:
            memory.store(StoreRequest(f"oil of {name}", "k", "session"))
    for name in ("team.a", "teama", "team a", "TEAMA"):
        assert [hit.content for hit in hits(mixed, "oil", session=name)] == [f"oil of {name}"]


def test_row_39_the_answer_names_the_key_that_was_used(mixed: World) -> None:
    first = put(mixed, "one", "Prefer Pytest")
    second = put(mixed, "two", first.key)  # type: ignore[attr-defined]
    assert (first.action, second.action) == ("created", "updated")  # type: ignore[attr-defined]
    assert first.key == second.key  # type: ignore[attr-defined]


def test_row_43_anchors_and_unknown_members_do_not_hold_a_note_back(mixed: World) -> None:
    mixed.write("a.md", "---\nx: &one [1]\ny: *one\ncao:\n  key: anchored\n  later: yes\n---\n# a\nsaffron\n")
    assert [hit.key for hit in hits(mixed, "saffron")] == ["anchored"]


def test_row_62_every_change_leaves_a_content_free_line(mixed: World) -> None:
    put(mixed, "canary", "canary-key")
    with mixed.open(project="p") as memory:
        memory.forget(ForgetRequest("canary-key"))
        memory.restore("canary-key")
        lines = memory._session.state.memory.audit()
    assert [event for _, event, _ in lines] == ["memory_created", "memory_forgot", "memory_restored"]
    assert 'canary"' not in str(lines)
