"""Fault cases of the watcher."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path
from typing import Any

from tests.cases.registry import hook, judges
from tests.cases.runner import Run
from vaultmem.sync.reconcile import ReconcileResult, config_fingerprint
from vaultmem.sync.watch.lease import is_caught_up, who_watches


class Told(list[str]):
    """What a watcher says, and the batches that it reports."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[ReconcileResult] = []


def start(run: Run) -> Told:
    """Watch in a thread until the case ends; return what it says."""
    notices = Told()
    stop = threading.Event()

    def keep() -> None:
        with run.memory() as memory:
            memory.watch(stop, notices.batches.append, notices.append)

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()

    def end() -> None:
        stop.set()
        thread.join(20)

    run.at_end.append(end)
    until = time.monotonic() + 20
    while who_watches(str(run.world.home)).mode == "none":
        assert time.monotonic() < until
        time.sleep(0.005)
    return notices


def do_watch(run: Run, rest: str) -> Any:
    if rest == "on":
        return start(run)
    while run.at_end:
        run.at_end.pop()()
    return None


Run.do_watch = do_watch  # type: ignore[attr-defined]


def caught_up(run: Run) -> None:
    with run.memory() as memory:
        home, fingerprint = memory.config.home, config_fingerprint(memory.config)
    until = time.monotonic() + 20
    while not is_caught_up(home, fingerprint, 2.0):
        assert time.monotonic() < until


def unswept(run: Run, query: str) -> list[str]:
    from vaultmem.recall.recall import RecallRequest

    caught_up(run)
    with run.memory() as memory:
        return [hit.path for hit in memory.recall(RecallRequest(query), sweep=False).hits]


@hook("watch-every-atomic-save-counts")
def _(run: Run, number: int) -> Any:
    for name in ("4913", "plan.md~", ".plan.md.swp"):
        run.put(f"Notes/{name}", "backup\n")
    return unswept(run, ("alpha", "bravo")[number])


@judges("watch-every-atomic-save-counts")
def _(run: Run) -> None:
    assert [step.result for step in run.all("check")] == [["Notes/plan.md"]] * 2
    assert unswept(run, "charlie") == run.step("recall").paths == ["Notes/plan.md"]
    assert unswept(run, "backup") == []


@judges("watch-folder-rename-then-edit")
def _(run: Run) -> None:
    assert run.step("recall").paths[0] == "Notes/new/deep/b.md"
    paths = {hit.path for hit in run.step("list").result.hits}
    assert {path for path in paths if path.startswith("Notes/")} == {"Notes/new/a.md", "Notes/new/deep/b.md"}


@judges("watch-touch-is-not-a-change")
def _(run: Run) -> None:
    assert [step.result.changed for step in run.all("reconcile")] == [2 * 0, 0, 0]
    assert run.step("reconcile", 0).result.added == 2


@hook("watch-same-size-same-time-edit")
def _(run: Run, number: int) -> Any:
    note: Path = run.place("Notes/port.md")
    before = note.stat()
    note.write_text("# port\nThe port is 9191.\n", encoding="utf-8")
    os.utime(note, ns=(before.st_atime_ns, before.st_mtime_ns))


@judges("watch-same-size-same-time-edit")
def _(run: Run) -> None:
    assert run.step("recall").paths == ["Notes/port.md"]


@hook("watch-backend-without-capacity")
def _(run: Run, number: int) -> Any:
    import watchfiles.main

    def no_capacity(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "OS file watch limit reached")

    run.monkeypatch.setattr(watchfiles.main, "RustNotify", no_capacity)
    return start(run)


@judges("watch-backend-without-capacity")
def _(run: Run) -> None:
    notices = run.step("check").result
    assert len(notices) == 1 and "OS file watch limit reached" in notices[0] and "polling" in notices[0]
    assert run.step("recall").paths == ["Notes/a.md"]
    assert run.step("status").result["watch"]["mode"] == "polling"
    assert "limit" in run.step("status").result["watch"]["reason"]


def everything(run: Run) -> dict[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {}
    for path in (run.world.vault, *sorted(run.world.vault.rglob("*"))):
        stat = path.stat()
        data = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (data, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
    return found


@hook("wr-indexing-writes-nothing")
def _(run: Run, number: int) -> Any:
    return everything(run)


@judges("wr-indexing-writes-nothing")
def _(run: Run) -> None:
    assert everything(run) == run.step("check").result
    for path in sorted(run.world.vault.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = everything(run)
    run.do_reconcile("")
    assert run.do_recall('{query: "frontmatter"}').hits
    assert everything(run) == before
