"""The plan as tables of values; the ids name the rules at the head of sync/plan.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.values import FakeIdentities, FakeIndex, facts, known
from vaultmem.index.operations import Plan, lookups_of_path
from vaultmem.notes.keys import derived_key
from vaultmem.sync.plan.collisions import Rules
from vaultmem.sync.plan.plan import plan_changes

RULES = Rules({("v", 0): ("", "")}, managed_patterns=(("v", "Agent", "global", None),))


def plan(
    new: list[Any],
    gone: list[Any] | None = None,
    index: FakeIndex | None = None,
    identities: FakeIdentities | None = None,
) -> Plan:
    return plan_changes(new, gone or [], index or FakeIndex(), identities or FakeIdentities(), RULES)


def keys(result: Plan) -> dict[str, str]:
    return {put.facts.file.path: put.key for put in result.puts}


def test_path_is_identity() -> None:
    old = known(1, "a.md", "a-key")
    result = plan([facts("a.md", content_hash="other")], index=FakeIndex(old))
    assert keys(result) == {"a.md": "a-key"}
    assert result.puts[0].kind == "changed" and result.puts[0].file_id == 1


def test_a_new_note_gets_its_derived_key() -> None:
    assert keys(plan([facts("Notes/My Note.md")])) == {"Notes/My Note.md": derived_key("Notes/My Note.md")}
    assert derived_key("Notes/My Note.md").startswith("my-note-")


def test_equal_content_behind_another_stamp_is_touched_only() -> None:
    old = known(1, "a.md", "a-key", mtime_ns=5)
    result = plan([facts("a.md")], index=FakeIndex(old))
    assert not result.puts and len(result.touched) == 1
    assert [(seen.rel, seen.mtime_ns) for seen in result.first_seen] == [("a.md", 5)]


def test_move_by_content() -> None:
    old = known(1, "a.md", "a-key", content_hash="same")
    result = plan([facts("b.md", content_hash="same")], [old], FakeIndex(old))
    assert result.puts[0].moved_from == "a.md" and result.puts[0].key == "a-key" and result.puts[0].file_id == 1
    assert [(change.rel, change.key) for change in result.identities] == [("b.md", "a-key")]
    assert not result.drops


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        pytest.param(
            [known(1, "a.md", "ka", content_hash="s"), known(2, "b.md", "kb", content_hash="s")],
            [facts("c.md", content_hash="s")],
            "rename_ambiguous",
            id="two-left-one-came",
        ),
        pytest.param(
            [known(1, "a.md", "ka", content_hash="s")],
            [facts("b.md", content_hash="s"), facts("c.md", content_hash="s")],
            "rename_ambiguous",
            id="one-left-two-came",
        ),
        pytest.param([known(1, "a.md", "ka")], [facts("b.md")], "rename_with_edit_unresolved", id="renamed-and-edited"),
    ],
)
def test_unclear_moves_make_new_notes_and_an_event(old: list[Any], new: list[Any], code: str) -> None:
    result = plan(new, old, FakeIndex(*old))
    assert {event.code for event in result.events} == {code}
    assert all(key == derived_key(path) for path, key in keys(result).items())
    assert len(result.drops) == len(old)


def test_tiny_notes_are_no_evidence_of_a_move() -> None:
    old = known(1, "a.md", "a-key", content_hash="same", body_size=10)
    result = plan([facts("b.md", content_hash="same", body_size=10)], [old], FakeIndex(old))
    assert result.puts[0].kind == "added" and len(result.drops) == 1


def test_case_rename() -> None:
    old = known(1, "note.md", "k", body_size=3)
    result = plan([facts("Note.md", content_hash="edited too", body_size=3)], [old], FakeIndex(old))
    assert result.puts[0].key == "k" and result.puts[0].kind == "moved"


def test_derived_never_collides() -> None:
    carried = known(1, "b.md", derived_key("a.md"))
    result = plan([facts("a.md")], index=FakeIndex(carried))
    assert keys(result) == {"a.md": derived_key("a.md", 2)}
    assert [(change.rel, change.key) for change in result.identities] == [("a.md", derived_key("a.md", 2))]


def test_a_kept_identity_wins_over_the_derived_key() -> None:
    result = plan([facts("b.md")], identities=FakeIdentities({"b.md": "kept"}))
    assert keys(result) == {"b.md": "kept"}


def test_authored_collision_quarantines_all() -> None:
    result = plan([facts("a.md", claimed_key="k"), facts("b.md", claimed_key="k")])
    assert [put.quarantine for put in result.puts] == ["key_collision"] * 2
    assert "a.md, b.md" in result.puts[0].collision.message  # type: ignore[union-attr]


def test_authored_collision_spares_the_managed_original() -> None:
    result = plan([facts("Agent/k.md", claimed_key="k"), facts("a.md", claimed_key="k")])
    assert {put.facts.file.path: put.quarantine for put in result.puts} == {"Agent/k.md": "", "a.md": "key_collision"}


def test_a_collision_ends_when_one_claimant_goes() -> None:
    one = known(1, "a.md", "k", claimed_key="k", quarantine="key_collision")
    other = known(2, "b.md", "k", claimed_key="k", quarantine="key_collision")
    result = plan([], [other], FakeIndex(one, other))
    assert [(mark.file.path, mark.quarantine) for mark in result.marks] == [("a.md", "")]


def test_an_authored_key_takes_over_a_derived_one() -> None:
    derived = known(1, "a.md", derived_key("a.md"))
    result = plan([facts("b.md", claimed_key=derived_key("a.md"))], index=FakeIndex(derived))
    assert keys(result) == {"b.md": derived_key("a.md")}
    assert [(mark.file.path, mark.key) for mark in result.marks] == [("a.md", derived_key("a.md", 2))]


def test_path_twins_are_both_held_back() -> None:
    result = plan([facts("Memo.md"), facts("memo.md")])
    assert [put.quarantine for put in result.puts] == ["path_case_collision"] * 2


@pytest.mark.parametrize(
    ("new", "gone", "asked", "targets"),
    [
        pytest.param([facts("x/Beacon.md")], [], lookups_of_path("v", "Beacon.md")[1], None, id="a-name-appears"),
        pytest.param([], [known(5, "Beacon.md", "k")], None, 5, id="a-target-goes"),
        pytest.param([facts("n.md", aliases=("Lamp",))], [], "v:lamp", None, id="an-alias-appears"),
        pytest.param([facts("n.md", claimed_key="k")], [], "=global//k", None, id="a-key-appears"),
    ],
)
def test_relink_causes(new: list[Any], gone: list[Any], asked: str | None, targets: int | None) -> None:
    source = known(9, "Source.md", "s")
    links = {9: ({asked} if asked else set(), {targets} if targets else set())}
    result = plan(new, gone, FakeIndex(source, *gone, links=links))
    assert result.relinks == (9,)


def test_relink_for_nothing_else() -> None:
    source, target = known(9, "Source.md", "s"), known(5, "Target.md", "t")
    links = {9: ({"v:target"}, {5})}
    result = plan([facts("Target.md", content_hash="new text")], index=FakeIndex(source, target, links=links))
    assert result.relinks == ()


def test_equal_arguments_give_an_equal_plan_whatever_their_order() -> None:
    new = [facts("a.md", claimed_key="k"), facts("b.md", claimed_key="k"), facts("c.md")]
    assert plan(new).operations() == plan(list(reversed(new))).operations()
