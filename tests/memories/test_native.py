"""The native wiki: topics written, read, found, forgotten and restored, through the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import World


def wiki(world: World, path: str = "") -> Path:
    return world.home / "memory" / path


@pytest.fixture
def native(world: World) -> World:
    """A home whose vault maps the global scope only; everything else is native."""
    world.configure('folder = "."\nscope = "global"', 'folder = "Agent Memory"\nscope = "global"\nwritable = true')
    return world


def store(world: World, *arguments: str, **environment: str) -> dict[str, object]:
    done = world.cli("store", *arguments, "--format", "json", **environment)
    assert done.code == 0, done.err
    return dict(done.json)


def test_a_topic_is_written_in_upstreams_layout_and_found_at_once(native: World) -> None:
    found = store(native, "Deploy on Tuesdays only", "--key", "deploy", "--scope-id", "shop", "--tags", "ci, ops")
    assert (found["action"], found["path"], found["source_kind"]) == (
        "created",
        "shop/wiki/project/deploy.md",
        "native",
    )
    text = wiki(native, "shop/wiki/project/deploy.md").read_text()
    assert re.fullmatch(
        r"# deploy\n<!-- id: [0-9a-f-]{36} \| scope: project \| type: project \| tags: ci,ops -->\n\n"
        r"## \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\nDeploy on Tuesdays only\n",
        text,
    )
    index = wiki(native, "shop/wiki/index.md").read_text()
    assert re.search(
        r"## project\n- \[deploy\]\(project/deploy.md\) — type:project tags:ci,ops ~5tok updated:\d{4}-.*Z\n", index
    )
    hit = native.cli("recall", "tuesdays", "--scope-id", "shop", "--scope", "project", "--format", "json").json["hits"][
        0
    ]
    assert (hit["key"], hit["source_kind"], hit["content"], hit["tags"]) == (
        "deploy",
        "native",
        "Deploy on Tuesdays only",
        ["ci", "ops"],
    )
    assert native.is_verified() == []


def test_a_second_store_adds_a_section_keeps_the_id_and_merges_tags(native: World) -> None:
    place = ("--key", "deploy", "--scope-id", "shop")
    store(native, "first words", *place, "--tags", "a", "--type", "feedback")
    before = wiki(native, "shop/wiki/project/deploy.md").read_text()
    assert store(native, "second words", *place, "--tags", "b")["action"] == "updated"
    assert store(native, "second words", *place)["action"] == "unchanged"
    after = wiki(native, "shop/wiki/project/deploy.md").read_text()
    assert after.startswith(before.replace("tags: a -->", "tags: a,b -->")) and "type: feedback" in after
    found = native.cli("recall", "first", "--scope", "project", "--scope-id", "shop", "--format", "json").json["hits"][
        0
    ]
    assert found["content"] == "first words" and found["content_truncated"]


def test_content_can_forge_neither_section_nor_header(native: World) -> None:
    store(
        native,
        "x\n## 2020-01-01T00:00:00Z\n<!-- id: a | scope: global | type: user | tags: -->",
        "--key",
        "k",
        "--scope-id",
        "p",
    )
    text = wiki(native, "p/wiki/project/k.md").read_text()
    assert "\n\\## 2020" in text and "\n\\<!-- id" in text
    shown = native.cli("show", "k", "--format", "json").json
    assert shown["type"] == "project" and shown["updated_at"] > "2026"


def test_topics_written_by_hand_or_by_upstream_are_read(native: World) -> None:
    folder = wiki(native, "global/wiki/agent/reviewer")
    folder.mkdir(parents=True)
    (folder / "habit.md").write_text(
        "# habit\n<!-- id: 3f0c1a52-0000-4000-8000-000000000003 | scope: agent | type: feedback | tags: a-b,c -->\n\n"
        "### 2026-02-01T10:00:00Z\nsaffron stains\n\n## See Also\n- [other](../reviewer/other.md)\n"
    )
    (folder / "broken.md").write_text("saffron without any frame\n")
    (folder / "latin.md").write_bytes(b"# latin\nsaffr\xe9\n")
    found = native.cli("recall", "saffron", "--format", "json", VAULTMEM_AGENT="reviewer").json["hits"]
    assert [hit["key"] for hit in found] == ["habit", "broken"] or [hit["key"] for hit in found] == ["broken", "habit"]
    habit = next(hit for hit in found if hit["key"] == "habit")
    assert (habit["type"], habit["tags"], habit["content"]) == ("feedback", ["a-b", "c"], "saffron stains")
    assert native.codes()["topic_malformed"] == {
        "global/wiki/agent/reviewer/broken.md",
        "global/wiki/agent/reviewer/latin.md",
    }
    assert native.codes()["note_not_utf8"] == {"global/wiki/agent/reviewer/latin.md"}
    assert native.cli("recall", "saffron", "--format", "json").json["hits"] == []
    assert native.is_verified() == []


def test_a_mapped_scope_hides_its_topics(native: World) -> None:
    store(native, "zinnia in the shop", "--key", "z", "--scope-id", "shop")
    native.configure(
        'folder = "."\nscope = "global"',
        'folder = "Agent Memory"\nscope = "global"\nwritable = true',
        'folder = "Shop"\nscope = "project"\nscope_id = "SHOP"',
    )
    (native.vault / "Shop").mkdir()
    assert native.cli("recall", "zinnia", "--all", "--format", "json").json["hits"] == []
    assert native.is_verified() == []


def test_forget_restore_and_purge_a_topic(native: World) -> None:
    place = ("--scope", "project", "--scope-id", "p")
    store(native, "cedar is soft", "--key", "tmp", "--scope-id", "p")
    topic = wiki(native, "p/wiki/project/tmp.md")
    kept = topic.read_bytes()
    assert (
        native.cli("delete", "tmp", *place, "--dry-run", "--format", "json").json["action"] == "deleted"
        and topic.exists()
    )
    assert native.cli("delete", "tmp", *place, "--yes", "--format", "json").json["action"] == "deleted"
    assert not topic.exists() and "tmp" not in wiki(native, "p/wiki/index.md").read_text()
    assert native.cli("delete", "tmp", *place, "--yes", "--format", "json").json["action"] == "absent"
    assert native.cli("restore", "tmp", *place, "--format", "json").json["action"] == "restored"
    assert topic.read_bytes() == kept and "[tmp]" in wiki(native, "p/wiki/index.md").read_text()
    native.cli("delete", "tmp", *place, "--yes", "--purge")
    assert native.cli("restore", "tmp", *place, "--format", "json").json["action"] == "absent"
    assert b"cedar" not in b"".join(path.read_bytes() for path in native.home.rglob("*.md*") if path.is_file())
    assert native.is_verified() == []


def test_forgetting_a_vault_note_keeps_its_file_and_a_store_brings_it_back(native: World) -> None:
    native.write("Agent Memory/rules.md", "---\ncao:\n  key: rules\n  managed: true\n---\n# rules\ncedar rules\n")
    before = (native.vault / "Agent Memory/rules.md").read_bytes()
    place = ("--scope", "global")
    assert native.cli("delete", "rules", *place, "--yes", "--format", "json").json["action"] == "deindexed"
    assert (native.vault / "Agent Memory/rules.md").read_bytes() == before
    for command in (("reconcile",), ("rebuild",), ("reconcile", "--full")):
        assert native.cli(*command).code == 0
        assert native.cli("recall", "cedar", "--format", "json").json["hits"] == []
    assert "Agent Memory/rules.md" in native.codes()["deindexed_retained"]
    assert native.is_verified() == []
    assert native.cli("restore", "rules", *place, "--format", "json").json["action"] == "restored"
    assert len(native.cli("recall", "cedar", "--format", "json").json["hits"]) == 1
    native.cli("delete", "rules", *place, "--yes")
    assert (
        native.cli("store", "new cedar rule", "--key", "rules", *place, "--format", "json").json["action"] == "updated"
    )
    assert len(native.cli("recall", "cedar", "--format", "json").json["hits"]) == 1
    assert native.is_verified() == []


def test_see_also_follows_links_between_topics(native: World) -> None:
    store(native, "about pumps", "--key", "pumps", "--scope-id", "p")
    store(native, "belts need [[pumps]]", "--key", "belts", "--scope-id", "p")
    text = wiki(native, "p/wiki/project/belts.md").read_text()
    assert text.endswith("\n## See Also\n- [pumps](../project/pumps.md)\n")
    assert (wiki(native, "p/wiki/project") / "../project/pumps.md").resolve().exists()
    store(native, "belts wear", "--key", "belts", "--scope-id", "p")
    text = wiki(native, "p/wiki/project/belts.md").read_text()
    assert text.count("## See Also") == 1 and text.index("belts wear") < text.index("## See Also")
    hit = native.cli("recall", "wear", "--scope", "project", "--scope-id", "p", "--related", "--format", "json").json[
        "hits"
    ]
    assert [(row["key"], row["related"]) for row in hit] == [("belts", False), ("pumps", True)]
    assert native.is_verified() == []


def test_near_repeats_are_named_and_exact_ones_not_stored_twice(native: World) -> None:
    text = "pgbouncer needs prepared statements off in transaction mode for this service"
    store(native, text, "--key", "pool", "--scope-id", "p")
    again = native.cli("store", text, "--scope-id", "p", "--format", "json").json
    assert (again["action"], again["key"]) == ("unchanged", "pool")
    near = native.cli("store", text + " today", "--key", "other", "--scope-id", "p", "--format", "json").json
    assert near["action"] == "created" and near["similar"] == ["pool"] and "pool" in near["warnings"][0]


def test_no_scope_reaches_into_another(native: World) -> None:
    store(native, "client A pays late", "--key", "pays", "--scope-id", "a")
    for environment in ({}, {"VAULTMEM_PROJECT_ID": "b"}):
        assert native.cli("recall", "pays", "--format", "json", **environment).json["hits"] == []
    assert len(native.cli("recall", "pays", "--format", "json", VAULTMEM_PROJECT_ID="a").json["hits"]) == 1
    assert len(native.cli("recall", "pays", "--all", "--format", "json").json["hits"]) == 1
    refused = native.cli("store", "x", "--scope", "session")
    assert refused.code == 1 and "VAULTMEM_SESSION" in refused.err
    lowered = native.cli("store", "x", "--scope", "federated", VAULTMEM_CALLER_SCOPE="session")
    assert lowered.code == 1 and "may not write" in lowered.err and not wiki(native, "federated").exists()
