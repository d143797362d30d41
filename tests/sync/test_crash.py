"""Killed anywhere, the next run completes the work; damaged anywhere, the index heals or says so."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import World, run_cli


def many(world: World, count: int = 300) -> None:
    for number in range(count):
        world.write(
            f"f{number % 7}/n{number}.md",
            f"# n{number}\nbasalt {number} [[n{(number * 7) % count}]]\n" + "filler " * 50,
        )


KILLS = 60 if os.environ.get("VAULTMEM_TEST_PROFILE") == "long" else 6


def kill_after(world: World, seconds: float, *arguments: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "vaultmem", "--home", str(world.home), *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("command", ["reconcile", "rebuild"])
def test_kill_converges(world: World, command: str) -> None:
    many(world)
    start = time.monotonic()
    world.cli("reconcile")
    whole = time.monotonic() - start
    generator = random.Random(7)
    for round_ in range(KILLS):
        for number in range(0, 300, 5):
            world.write(f"f{number % 7}/n{number}.md", f"# n{number}\nbasalt round{round_} [[n{number + 1}]]\n")
        kill_after(world, generator.uniform(0.1, whole), command)
    assert world.cli("reconcile").code == 0
    assert world.cli("rebuild", "--verify").code == 0
    found = world.cli("recall", f"round{KILLS - 1}", "--limit", "100", "--format", "json").json
    assert found["total"] == 60
    assert not list(world.home.glob("*.new*"))


def test_interrupt_leaves_a_consistent_index(world: World) -> None:
    many(world, 1_500)
    ours = signal.signal(signal.SIGINT, signal.SIG_DFL)  # what runs in a shell's background inherits to ignore it
    process = subprocess.Popen(
        [sys.executable, "-m", "vaultmem", "--home", str(world.home), "reconcile"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGINT, ours)
    while process.poll() is None and not list(world.home.glob("*.new")):
        pass  # the load's own file is there only while it is loading
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert "Traceback" not in err and process.returncode == 130
    assert not list(world.home.glob("*.new*"))
    assert world.cli("reconcile").code == 0 and world.cli("rebuild", "--verify").code == 0


def damage(path: Path, generator: random.Random) -> str:
    size = path.stat().st_size
    way = generator.choice(["flip", "flip", "flip", "page", "truncate", "text", "empty", "delete"])
    if way == "flip":
        with path.open("r+b") as file:
            for _ in range(generator.randint(1, 40)):
                file.seek(generator.randrange(size))
                file.write(bytes([generator.randrange(256)]))
    elif way == "page":
        with path.open("r+b") as file:
            file.seek(4096 * generator.randrange(max(1, size // 4096)))
            file.write(os.urandom(4096))
    elif way == "truncate":
        os.truncate(path, generator.randrange(size))
    elif way == "text":
        path.write_text("this is no database\n" * 100, encoding="utf-8")
    elif way == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
    return way


def test_200_corruptions_are_never_a_wrong_nothing_found(world: World) -> None:
    for number in range(40):
        world.write(f"n{number}.md", f"# n{number}\nindigo word{number} [[n{number + 1}]]\n")
    world.reconcile()
    generator = random.Random(3)
    rounds = 200 if os.environ.get("VAULTMEM_TEST_PROFILE") == "long" else 60
    for round_ in range(rounds):
        with world.open() as memory:
            memory.rebuild()
        for journal in ("-wal", "-shm"):
            Path(str(next(world.home.glob("index-v*.db"))) + journal).unlink(missing_ok=True)
        way = damage(next(world.home.glob("index-v*.db")), generator)
        number = generator.randrange(40)
        assert f"n{number}.md" in world.recall(f"word{number}", limit=5), (round_, way)


def test_damage_by_the_command_line_is_told_on_standard_error(world: World) -> None:
    world.write("a.md", "# a\nindigo\n")
    world.reconcile()
    index = next(world.home.glob("index-v*.db"))
    index.write_text("not a database, " * 1000, encoding="utf-8")
    found = world.cli("recall", "indigo")
    assert "a.md" in found.out and "damaged" in found.err


def test_a_deleted_index_heals_and_says_so(world: World) -> None:
    world.write("a.md", "# a\nindigo\n")
    world.reconcile()
    for path in world.home.glob("index-v*"):
        path.unlink()
    found = world.cli("recall", "indigo", "--no-sync")
    assert "a.md" in found.out and "no index" in found.err


def test_a_changed_posting_is_found_by_verify(world: World) -> None:
    world.write("a.md", "# a\nindigo\n")
    world.write("b.md", "# b\nviolet\n")
    world.reconcile()
    with world.open() as memory:
        connection = memory._session.connection()
        row = connection.execute("SELECT rowid FROM fts WHERE fts MATCH 'indigo'").fetchone()
        connection.execute(
            "INSERT INTO fts(fts, rowid, title, aliases, key, tags, headings, body) "
            "VALUES ('delete', ?, '', '', '', '', '', 'indigo')",
            row,
        )
    found = world.cli("rebuild", "--verify")
    assert found.code == 1 and "postings" in found.out and "vaultmem rebuild" in found.err
    assert world.cli("rebuild").code == 0 and world.cli("rebuild", "--verify").code == 0


def test_a_newer_state_is_refused(world: World) -> None:
    import sqlite3

    world.write("a.md", "# a\n")
    world.reconcile()
    with sqlite3.connect(world.home / "state.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    found = run_cli(world.home, "recall", "a")
    assert found.code == 1 and "newer vaultmem" in found.err


def test_a_damaged_state_is_never_replaced(world: World) -> None:
    world.write("a.md", "# a\n")
    world.reconcile()
    state = world.home / "state.db"
    for journal in ("-wal", "-shm"):
        Path(str(state) + journal).unlink(missing_ok=True)
    state.write_text("no database " * 2000, encoding="utf-8")
    before = state.read_bytes()
    found = run_cli(world.home, "recall", "a")
    assert found.code == 1 and "state.db" in found.err and state.read_bytes() == before


def test_a_read_only_home_still_answers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write("a.md", "# a\nindigo\n")
    world.reconcile()
    monkeypatch.setattr("vaultmem.base.files.os.access", lambda *arguments: False)
    with world.open() as memory:
        from vaultmem.recall.recall import RecallRequest

        found = memory.recall(RecallRequest("indigo"))
        assert [hit.path for hit in found.hits] == ["a.md"] and "read-only" in found.warnings[0]
        assert memory.status()["vaults"][0]["notes"] == 1


def test_a_full_disk_is_one_line_and_the_next_run_completes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    from vaultmem.base.errors import IndexUnavailable
    from vaultmem.index.notes import NoteWriter

    world.write("a.md", "# a\nindigo\n")
    world.reconcile()
    world.write("b.md", "# b\nindigo\n")
    real = NoteWriter.put

    def full(*arguments: object, **named: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(NoteWriter, "put", full)
    with pytest.raises(IndexUnavailable, match="disk is full.*vaultmem reconcile"):
        world.reconcile()
    monkeypatch.setattr(NoteWriter, "put", real)
    assert sorted(world.recall("indigo")) == ["a.md", "b.md"]
    assert world.is_verified() == []


def test_two_writers_at_once_wait_for_each_other(world: World) -> None:
    many(world, 200)
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "vaultmem", "--home", str(world.home), command],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for command in ("reconcile", "rebuild", "reconcile")
    ]
    for process in processes:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert world.is_verified() == []
