"""Retention, repair, adoption, counts and explanations of memories, through the command line."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.conftest import World
from tests.memories.test_native import native, store, wiki  # noqa: F401

CLOCK = {"VAULTMEM_NOW": "2026-11-30T12:00:00Z"}


def topic(
    root: Path, key: str, time: str, scope: str = "project", place: str = "p/wiki/project", type_: str = "project"
) -> Path:
    path = root / place / f"{key}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    header = f"<!-- id: 3f0c1a52-0000-4000-8000-00000000{len(key):04d} | scope: {scope} | type: {type_} | tags:  -->"
    path.write_text(f"# {key}\n{header}\n\n## {time}\nwords about {key}\n")
    return path


def test_retention_counts_whole_days_in_utc_and_spares_what_is_protected(native: World) -> None:  # noqa: F811
    root = wiki(native)
    old = topic(root, "old", "2026-08-31T11:00:00Z")  # 91 days
    kept = [
        topic(root, "ninety", "2026-08-31T13:00:00Z"),  # 90 days and some hours
        topic(root, "feedback", "2020-01-01T00:00:00Z", type_="feedback"),
        topic(root, "user", "2020-01-01T00:00:00Z", type_="user"),
        topic(root, "always", "2020-01-01T00:00:00Z", "global", "global/wiki/global"),
        topic(root, "agents", "2020-01-01T00:00:00Z", "agent", "global/wiki/agent/a"),
        topic(root, "day14", "2026-11-16T11:00:00Z", "session", "global/wiki/session/s"),
    ]
    day15 = topic(root, "day15", "2026-11-15T11:00:00Z", "session", "global/wiki/session/s")
    headless = root / "p/wiki/project/headless.md"
    headless.write_text("# headless\n\n## 2020-01-01T00:00:00Z\nx\n")
    native.write("Agent Memory/ancient.md", "---\ncreated: 2001-01-01\nupdated: 2001-01-01\n---\nx\n")
    plan = native.cli("retention", "--format", "json", **CLOCK).json
    assert [row["key"] for row in plan["expired"]] == ["old", "day15"] and not plan["applied"] and old.exists()
    done = native.cli("retention", "--apply", "--format", "json", **CLOCK).json
    assert [row["key"] for row in done["expired"]] == ["old", "day15"] and done["applied"]
    assert not old.exists() and not day15.exists() and headless.exists() and all(path.exists() for path in kept)
    assert (native.vault / "Agent Memory/ancient.md").exists()
    assert (
        native.cli("restore", "old", "--scope-id", "p", "--format", "json").json["action"] == "restored"
        and old.exists()
    )
    assert native.is_verified() == []


def test_the_trash_is_emptied_after_thirty_days(native: World) -> None:  # noqa: F811
    topic(wiki(native), "old", "2020-01-01T00:00:00Z")
    native.cli("retention", "--apply", **CLOCK)
    assert list((native.home / "trash").rglob("*.md"))
    native.cli("retention", "--apply", VAULTMEM_NOW="2026-12-29T12:00:00Z")
    assert list((native.home / "trash").rglob("*.md"))
    native.cli("retention", "--apply", VAULTMEM_NOW="2027-01-05T12:00:00Z")
    assert not list((native.home / "trash").rglob("*.md"))


def test_repair_adopts_what_the_wikis_index_lacks_and_deletes_nothing(native: World) -> None:  # noqa: F811
    path = topic(wiki(native), "lost", "2026-08-31T11:00:00Z")
    before = path.read_bytes()
    plan = native.cli("repair", "--format", "json")
    assert plan.code == 0 and any(row["key"] == "lost" for row in plan.json["actions"])
    assert not (wiki(native) / "p/wiki/index.md").exists()
    done = native.cli("repair", "--apply", "--format", "json")
    assert done.code == 0 and done.json["failed"] == 0
    assert "[lost](project/lost.md)" in (wiki(native) / "p/wiki/index.md").read_text() and path.read_bytes() == before
    assert native.cli("repair", "--format", "json").json["actions"] == []
    (wiki(native) / "p/wiki/project/bad.md").write_text("no frame\n")
    bad = native.cli("repair", "--apply", "--format", "json")
    assert bad.code == 1 and bad.json["skipped"] == 1 and (wiki(native) / "p/wiki/project/bad.md").exists()


@pytest.fixture
def cao(tmp_path: Path) -> Path:
    """A CAO home with two topics and a database."""
    home = tmp_path / "cao"
    topic(home / "memory", "pumps", "2026-08-31T11:00:00Z")
    belts = topic(home / "memory", "belts", "2020-01-01T00:00:00Z")
    belts.write_text(belts.read_text() + "see [[pumps]]\n")
    (home / "db").mkdir()
    db = sqlite3.connect(home / "db/cli-agent-orchestrator.db")
    db.execute("CREATE TABLE memory_metadata (key, scope, scope_id, access_count, last_accessed_at)")
    db.execute("INSERT INTO memory_metadata VALUES ('pumps', 'project', 'p', 7, '2026-01-01')")
    db.execute("CREATE TABLE memory_relationships (scope, scope_id, source_key, target_key, type, status)")
    db.execute("INSERT INTO memory_relationships VALUES ('project', 'p', 'belts', 'pumps', 'relates_to', 'rejected')")
    db.execute("CREATE TABLE project_aliases (alias, project_id, kind)")
    db.execute("INSERT INTO project_aliases VALUES ('p', 'shop', 'cwd_hash')")
    db.commit()
    db.close()
    return home


def test_a_cao_home_is_adopted_in_place(world: World, cao: Path) -> None:
    before = {path: path.read_bytes() for path in cao.rglob("*") if path.is_file()}
    (world.home / "config.toml").unlink()
    done = world.cli("init", "--adopt-cao", str(cao))
    assert done.code == 0 and "2 topics" in done.out and "1 access count" in done.out and "1 rejected" in done.out
    assert {path: path.read_bytes() for path in before} == before
    found = world.cli("recall", "words", "--sort", "usage", "--format", "json", VAULTMEM_PROJECT_ID="shop").json["hits"]
    assert [hit["key"] for hit in found] == ["pumps", "belts"]  # 7 reads against none; found by the other id
    related = world.cli("recall", "belts", "--related", "--all", "--format", "json").json["hits"]
    assert not any(hit["related"] for hit in related)  # the relationship was rejected
    first = world.cli("retention", "--apply", "--format", "json", **CLOCK).json
    assert not first["applied"] and [row["key"] for row in first["expired"]] == ["belts", "pumps"]
    assert world.cli("store", "new words", "--key", "pumps", "--scope-id", "p").code == 0
    assert "new words" in (cao / "memory/p/wiki/project/pumps.md").read_text()
    assert (cao / "memory/p/wiki/project/.pumps.lock").exists() and world.is_verified() == []
    assert world.cli("init", "--adopt-cao", str(cao / "db")).code == 2


def counts(world: World) -> dict[str, int]:
    db = sqlite3.connect(world.home / "state.db")
    try:
        return dict(db.execute("SELECT key, access_count FROM counter").fetchall())
    finally:
        db.close()


def test_recall_counts_its_primary_rows_and_nothing_else_does(native: World) -> None:  # noqa: F811
    store(native, "about pumps", "--key", "pumps", "--scope", "global")
    store(native, "belts need [[pumps]]", "--key", "belts", "--scope", "global")
    for _ in range(3):
        found = native.cli("recall", "belts need", "--related", "--limit", "1", "--format", "json").json["hits"]
        assert [hit["key"] for hit in found] == ["belts", "pumps"]
    native.cli("list")
    native.cli("show", "belts")
    native.cli("list", "--query", "pumps", "--explain")
    assert counts(native) == {"belts": 3}
    native.cli("rebuild")
    native.write("Agent Memory/belts.md", (native.vault / "Agent Memory/belts.md").read_text() + "\nmore\n")
    native.cli("reconcile")
    assert counts(native) == {"belts": 3}
    by_use = native.cli("recall", "--sort", "usage", "--format", "json").json["hits"]
    assert [hit["key"] for hit in by_use] == ["belts", "pumps"]


def test_scopes_come_in_order_and_the_superseded_last(native: World) -> None:  # noqa: F811
    environment = {"VAULTMEM_PROJECT_ID": "p", "VAULTMEM_SESSION": "s", "VAULTMEM_AGENT": "a"}
    for scope in ("federated", "agent", "global", "project", "session"):
        store(native, f"quartz of the {scope}", "--key", f"q-{scope}", "--scope", scope, **environment)
    native.write(
        "new.md", "---\ncao:\n  key: newer\n  links:\n    - {to: q-global, type: supersedes}\n---\nquartz anew\n"
    )
    for sort in ("relevance", "score", "usage", "recency"):
        found = native.cli("recall", "quartz", "--sort", sort, "--format", "json", **environment).json["hits"]
        assert [hit["scope"] for hit in found] == ["session", "project", "global", "global", "agent", "federated"], sort
        if sort in ("relevance", "score"):
            assert [hit["key"] for hit in found][2:4] == ["newer", "q-global"]
    labelled = native.cli(
        "recall", "quartz", "--sort", "recency", "--format", "json", **environment, VAULTMEM_LIFECYCLE_ENABLED="1"
    ).json["hits"]
    assert labelled[-1]["key"] == "q-global" and labelled[-1]["lifecycle_status"] == "superseded"
    assert "lifecycle_status" not in labelled[0]


def test_old_project_topics_weigh_less_but_not_nothing(native: World) -> None:  # noqa: F811
    topic(wiki(native), "aged", "2025-11-30T12:00:00Z")
    found = native.cli(
        "recall", "words", "--scope-id", "p", "--scope", "project", "--explain", "--format", "json", **CLOCK
    ).json["hits"][0]
    assert found["explain"]["age_factor"] == pytest.approx(0.861, abs=0.001)
    assert found["explain"]["terms"] == [{"word": "words", "places": ["p/wiki/project/aged.md:5"]}]


def test_explain_compares_the_two_orders(native: World) -> None:  # noqa: F811
    native.write("a.md", "heron heron heron\n")
    native.write("b.md", "heron and much other text that has nothing to do with it at all\n")
    told = native.cli("list", "--query", "heron", "--explain", "--limit", "1", "--format", "json")
    found = told.json
    assert (found["schema"], found["pool"], found["all_term"], found["partial"]) == ("cao.memory.explain/1", 2, 2, 0)
    assert found["recency_constants"] == {"base": 0.85, "share": 0.15, "days": 30}
    assert {one["relevance_rank"] for one in found["candidates"]} <= {1, 2} and len(found["candidates"]) <= 2
    assert "much other text" not in json.dumps(found) and ".md" not in json.dumps(found)
    assert native.cli("list", "--query", "heron").code == 2 and native.cli("list", "--explain").code == 2
    off = native.cli("list", "--query", "heron", "--explain", CAO_MEMORY_EXPLAIN_ENABLED="false")
    assert off.code == 1 and "memory.explain_enabled" in off.err
