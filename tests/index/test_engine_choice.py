"""The engine is chosen by the settings; changing it changes neither answers nor the digest."""

from __future__ import annotations

import shutil
import sqlite3

from tests.conftest import REPOSITORY, World
from vaultmem.index.schema import index_path

QUERIES = ["incident", "pump failure", "what was decided on backups?", '"daily note"', "zzz", "the", "links tags"]


def answers(world: World) -> list[object]:
    """Return all hits with their scores, engine left out."""
    found: list[object] = []
    for query in QUERIES:
        result = world.cli("recall", query, "--format", "json", "--limit", "20")
        assert result.code == 0, result.err
        rows = result.json
        found.append((query, rows["total"], [(hit["path"], hit["score"], hit["partial"]) for hit in rows["hits"]]))
    return found


def test_another_engine_gives_the_same_answers(world: World) -> None:
    shutil.copytree(REPOSITORY / "sample_vault", world.vault, dirs_exist_ok=True)
    world.cli("reconcile")
    before, digest = answers(world), world.cli("status", "--format", "json").json["index_digest"]
    assert any(hits for _, _, hits in before)  # type: ignore[misc]
    assert world.cli("config", "set", "search.engine", "fts4").code == 0
    changed = world.cli("recall", "incident", "--format", "json")
    assert changed.json["engine"] == "fts4"
    assert "engine fts5" in changed.err
    assert answers(world) == before
    status = world.cli("status", "--format", "json").json
    assert (status["engine"], status["index_digest"]) == ("fts4", digest)
    assert world.is_verified() == []
    assert "ok   index" in world.cli("doctor").out
    world.cli("config", "set", "search.engine", "auto")
    assert world.cli("recall", "incident", "--format", "json").json["engine"] == "fts5"
    assert answers(world) == before


def test_damaged_postings_of_the_second_engine_are_seen(world: World) -> None:
    world.engine = "fts4"
    world.configure()
    world.write("a.md", "# a\nheron pump\n")
    world.reconcile()
    connection = sqlite3.connect(index_path(str(world.home)))
    connection.execute("DELETE FROM fts_segdir")
    connection.commit()
    connection.close()
    assert world.recall("heron") == ["a.md"]
    assert world.is_verified() == []


def test_the_index_of_an_earlier_version_does_not_stay(world: World) -> None:
    world.write("a.md", "# a\nheron\n")
    old = world.home / "index-v1.db"
    old.write_bytes(b"of another version")
    assert world.recall("heron") == ["a.md"]
    assert not old.exists()
