"""Store into the managed folder: what is written, and that nothing else is touched."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from pathlib import Path

import pytest

from tests.conftest import World, run_cli
from vaultmem.base.errors import (
    MemoryPartialWriteError,
    NoteNotSafelyEditable,
    ScopeError,
    ScopeNotWritable,
    SecretRefused,
    StoreRefused,
    UsageError,
)
from vaultmem.memories.store import StoreRequest
from vaultmem.notes.parse import parse_note


def store(world: World, content: str, key: str = "", **values: object) -> object:
    with world.open() as memory:
        return memory.store(StoreRequest(content, key, **{"scope": "global", **values}))  # type: ignore[arg-type]


def sections(world: World, path: str) -> list[str]:
    data = (world.vault / path).read_bytes()
    return [section.text for section in parse_note(data, path).sections]


def test_a_new_memory_is_a_note_that_is_found(world: World) -> None:
    result = store(
        world, "The deploy window is Tuesday.", "deploy-window", tags=("ops", "#two words"), type="reference"
    )
    assert (result.action, result.path) == ("created", "Agent Memory/deploy-window.md")  # type: ignore[attr-defined]
    text = world.read("Agent Memory/deploy-window.md")
    note = parse_note(text.encode(), "deploy-window.md")
    assert note.cao is not None and (note.cao.key, note.cao.type, note.cao.managed) == (
        "deploy-window",
        "reference",
        True,
    )
    assert note.tags == ("ops", "two-words")
    assert world.recall("deploy window") == ["Agent Memory/deploy-window.md"]
    assert world.is_verified() == []


def test_an_update_appends_a_section_and_a_repeat_changes_nothing(world: World) -> None:
    store(world, "first", "log")
    assert store(world, "second", "log").action == "updated"  # type: ignore[attr-defined]
    before = (world.vault / "Agent Memory/log.md").stat()
    assert store(world, "second", "log").action == "unchanged"  # type: ignore[attr-defined]
    after = (world.vault / "Agent Memory/log.md").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert sections(world, "Agent Memory/log.md") == ["first", "second"]


USER_NOTE = """\
---
zebra: last but first   # keep me here
tags: [ops/deploy, status/active]
created: 2026-03-18
aliases: ["Deploys", 'release window']
rating: 007
note: |
  two
    lines
---
# deploy-window

Tuesdays only."""


@pytest.mark.parametrize("eol", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["plain", "bom"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"], ids=["no-final-newline", "newline", "blank-lines"])
def test_every_byte_of_a_person_stays(world: World, eol: str, bom: str, end: str) -> None:
    text = bom + (USER_NOTE + end).replace("\n", eol)
    path = world.write("Agent Memory/deploy-window.md", text)
    path.chmod(0o640)
    store(world, "Not in the week of a release.", "deploy-window", tags=("new",))
    after = world.read("Agent Memory/deploy-window.md")
    assert path.stat().st_mode & 0o777 == 0o640
    lines = iter(after.split(eol))
    for line in text.split(eol):
        wanted = "tags: [ops/deploy, status/active, new]" if line.startswith("tags:") else line
        assert wanted == "" or any(wanted == found for found in lines), line
    assert after.count("---" + eol) == 2 and after.startswith(bom + "---")
    assert "\n" not in after.replace(eol, "")
    assert sections(world, "Agent Memory/deploy-window.md") == ["Not in the week of a release."]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no-newline", "# no-newline\n\n### 2026-01-01T00:00:00Z\nlast line without an end"),
        ("open-fence", "# open-fence\n\n### 2026-01-01T00:00:00Z\n```\nnever closed\n"),
        ("see-also", "# see-also\n\n### 2026-01-01T00:00:00Z\nbody\n\n## See Also\n- [x](x.md)\n"),
        ("human-tail", "# human-tail\n\n### 2026-01-01T00:00:00Z\nbody\n\n## My own heading\ntext\n\n- a list\n    "),
    ],
)
def test_an_append_lands_where_it_belongs(world: World, name: str, text: str) -> None:
    world.write(f"Agent Memory/{name}.md", text)
    store(world, "### 2020-01-01T00:00:00Z\n# fake\n---\n<!-- id: x -->\nsecond ```", name)
    after = world.read(f"Agent Memory/{name}.md")
    assert after.endswith("second ```\n") and text in after
    found = sections(world, f"Agent Memory/{name}.md")
    assert len(found) == 2 and "# fake" in found[1]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"# Stra\xdfe\n", NoteNotSafelyEditable),
        (b"# nul\0\n", NoteNotSafelyEditable),
        (b"---\nname: x\ntags: [a, b\n---\n# broken\n", NoteNotSafelyEditable),
        (b"---\na: 1\na: 2\n---\n# twice\n", NoteNotSafelyEditable),
        (b"---\na: &x [1]\nb: *x\n---\n# anchors\n", NoteNotSafelyEditable),
        (b"---\n<<<<<<< HEAD\ntags: [a]\n=======\ntags: [b]\n>>>>>>> other\n---\n# merge\n", NoteNotSafelyEditable),
        (b"# m\n\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n", NoteNotSafelyEditable),
        (b"---\ncao:\n  key: other\n---\n# other\n", NoteNotSafelyEditable),
        (b"---\n- a\n- b\n---\n# list\n", NoteNotSafelyEditable),
    ],
)
def test_a_note_that_can_not_be_edited_safely_is_left_alone(world: World, text: bytes, error: type[Exception]) -> None:
    path = world.write("Agent Memory/n.md", text)
    with pytest.raises(error, match="Agent Memory/n.md"):
        store(world, "new", "n")
    assert path.read_bytes() == text


def test_links_and_second_names_are_never_written_through(world: World) -> None:
    outside = world.folder / "outside.md"
    outside.write_text("# outside\n", encoding="utf-8")
    (world.vault / "Agent Memory").mkdir()
    (world.vault / "Agent Memory/linked.md").symlink_to(outside)
    os.link(outside, world.vault / "Agent Memory/hard.md")
    for key in ("linked", "hard"):
        with pytest.raises(StoreRefused):
            store(world, "overwrite?", key)
    assert outside.read_text(encoding="utf-8") == "# outside\n"
    assert (world.vault / "Agent Memory/linked.md").is_symlink()


def test_a_managed_folder_that_is_a_link_is_refused(world: World) -> None:
    elsewhere = world.folder / "elsewhere"
    elsewhere.mkdir()
    (world.vault / "Agent Memory").symlink_to(elsewhere)
    with pytest.raises(StoreRefused, match="link"):
        store(world, "x", "k")
    assert list(elsewhere.iterdir()) == []


def test_a_cloud_placeholder_is_not_a_free_name(world: World) -> None:
    world.write("Agent Memory/.oncall.md.icloud", b"x" * 180)
    with pytest.raises(StoreRefused, match="cloud"):
        store(world, "Jonas takes over.", "oncall")
    assert not (world.vault / "Agent Memory/oncall.md").exists()


def test_a_key_of_a_read_only_note_is_refused_with_its_path(world: World) -> None:
    world.write("Notes/a.md", "---\ncao:\n  key: taken\n---\n# a\n")
    with pytest.raises(StoreRefused, match="Notes/a.md"):
        store(world, "x", "taken")


@pytest.mark.parametrize("key", ["../../outside/secret", "..%2F..%2Fx", "a/../../b", "/etc/passwd", "..\\..\\x", "con"])
def test_keys_never_leave_the_folder(world: World, key: str) -> None:
    before = {path for path in world.folder.rglob("*") if "home" not in path.parts}
    with contextlib.suppress(UsageError, StoreRefused):
        store(world, "x", key)
    new = {path for path in world.folder.rglob("*") if "home" not in path.parts} - before
    assert all(world.vault / "Agent Memory" in (path, *path.parents) for path in new)


def test_non_latin_texts_get_keys_of_their_own(world: World) -> None:
    texts = ("支付服务只在周二上线", "回滚步骤写在运行手册里", "Платежи закрыты в субботу", "!!! ???")
    found = {store(world, text).path for text in texts}  # type: ignore[attr-defined]
    assert len(found) == 4 and all(len(Path(path).stem) > 3 for path in found)
    assert store(world, texts[0]).action == "unchanged"  # type: ignore[attr-defined]


def test_scopes_are_never_widened(world: World) -> None:
    with world.open(cwd="/") as memory, pytest.raises(ScopeError, match="VAULTMEM_PROJECT_ID"):
        memory.store(StoreRequest("client A pays late"))
    with world.open(cwd="/") as memory, pytest.raises(ScopeError):
        memory.store(StoreRequest("role note", scope="agent"))
    world.configure('folder = "Roles"\nscope = "agent"\nscope_id = "*"', managed="")
    (world.vault / "Roles").mkdir()
    with pytest.raises(ScopeNotWritable):
        store(world, "x", scope="agent", scope_id="reviewer")
    assert not (world.home / "memory").exists()
    assert list(world.vault.rglob("*.md")) == []


def test_a_project_gets_its_own_sub_folder(world: World) -> None:
    (world.folder / "project").mkdir()
    with world.open(cwd=str(world.folder / "project")) as memory:
        result = memory.store(StoreRequest("Use pytest.", "testing"))
    assert result.scope_id and result.path == f"Agent Memory/projects/{result.scope_id}/testing.md"
    assert world.recall("pytest", filter=_project(result.scope_id)) == [result.path]


def _project(scope_id: str) -> object:
    from vaultmem.access.filters import NoteFilter

    return NoteFilter(scope="project", scope_id=scope_id)


def test_secrets_are_refused_by_name(world: World) -> None:
    token = "ghp_" + "a1B2" * 9
    with pytest.raises(SecretRefused) as caught:
        store(world, f"use {token}", "k")
    assert token not in str(caught.value) and "github_pat" in str(caught.value)
    assert not (world.vault / "Agent Memory").exists()


def test_read_only_and_switched_off_write_nothing(world: World) -> None:
    assert run_cli(world.home, "--read-only", "store", "x", "--scope", "global").code == 1
    off = world.cli("store", "x", "--scope", "global", VAULTMEM_ENABLED="0")
    assert off.code == 1 and "switched off" in off.err
    assert list(world.vault.rglob("*.md")) == []


def test_a_change_between_reading_and_publishing_is_not_lost(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    path = world.write("Agent Memory/rules.md", "# rules\n\nRule one.\n")
    import vaultmem.memories.writer as write

    real, done = write.publish, []

    def publish_late(*arguments: object, **named: object) -> str:
        temp = real(*arguments, **named)  # type: ignore[arg-type]
        if not done:
            done.append(1)
            path.write_text("# rules\n\nRule two!\n", encoding="utf-8")
        return temp

    monkeypatch.setattr(write, "publish", publish_late)
    store(world, "The agent's section.", "rules")
    after = world.read("Agent Memory/rules.md")
    assert "Rule two!" in after and "Rule one." not in after and "The agent's section." in after


def test_bytes_written_late_through_the_old_file_are_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    path = world.write("Agent Memory/rules.md", "# rules\n\nRule one.\n")
    import vaultmem.memories.writer as write

    real = write.rename_over
    editor = path.open("r+b")

    def rename_then_write(*arguments: object) -> None:
        real(*arguments)  # type: ignore[arg-type]
        if not editor.closed:
            editor.write(b"# rules\n\nRule 1, late.\n")
            editor.close()

    monkeypatch.setattr(write, "rename_over", rename_then_write)
    store(world, "The agent's section.", "rules")
    after = world.read("Agent Memory/rules.md")
    assert "Rule 1, late." in after and "The agent's section." in after
    assert [kept.read_bytes() for kept in (world.home / "conflicts").iterdir()] == [b"# rules\n\nRule 1, late.\n"]


def test_a_failing_index_names_what_is_done_and_a_command_that_mends_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlite3

    from vaultmem.sync.reconcile import Reconciler

    world.write("a.md", "# a\n")
    world.reconcile()

    def fail(*arguments: object, **named: object) -> None:
        raise sqlite3.OperationalError("disk full")

    with world.open() as memory:
        memory.status()
        monkeypatch.setattr(Reconciler, "run_locked", fail)
        with pytest.raises(MemoryPartialWriteError) as caught:
            from vaultmem.memories.store import store as store_now

            store_now(memory._session, StoreRequest("teal", "t", "global"))
    monkeypatch.undo()
    assert caught.value.completed_phases == ("note",)
    command = caught.value.repair_command.split()[1:]
    assert world.cli(*command).code == 0
    assert world.recall("teal") == ["Agent Memory/t.md"]


def _store_many(home: str, worker: int) -> None:
    for number in range(10):
        run_cli(home, "store", f"entry {worker}-{number}", "--key", "daily", "--scope", "global")


def test_writers_in_several_processes_lose_nothing(world: World) -> None:
    world.write("Agent Memory/daily.md", "# daily\n")
    workers = [
        multiprocessing.get_context("spawn").Process(target=_store_many, args=(str(world.home), n)) for n in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = sections(world, "Agent Memory/daily.md")
    assert sorted(found) == sorted(f"entry {w}-{n}" for w in range(3) for n in range(10))
    for worker_number in range(3):
        mine = [text for text in found if text.startswith(f"entry {worker_number}-")]
        assert mine == [f"entry {worker_number}-{n}" for n in range(10)]
    assert not list((world.vault / "Agent Memory").glob(".vaultmem-*"))
    assert world.is_verified() == []
