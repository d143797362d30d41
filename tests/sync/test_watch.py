"""The watcher as a real process: what it sees, how others ask it, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import World
from vaultmem.memory import Memory
from vaultmem.sync.reconcile import config_fingerprint
from vaultmem.sync.watch.lease import Lease, is_caught_up, who_watches

LONG = "The pump needs oil every forty hours, and a new belt each spring; the manual is in the shed.\n"


class Watcher:
    """`vaultmem watch --format json` on a world."""

    def __init__(self, world: World, **environment: str) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("VAULTMEM_", "CAO_"))}
        self.world = world
        self.process = subprocess.Popen(
            [sys.executable, "-m", "vaultmem", "--home", str(world.home), "watch", "--format", "json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**clean, **environment},
        )

    def wait_until_told(self, seconds: float = 20) -> None:
        """Wait until it says that it holds the lease and the index is equal to the files."""
        until = time.monotonic() + seconds
        while who_watches(str(self.world.home)).holder != self.process.pid:
            assert time.monotonic() < until and self.process.poll() is None, self.process.poll()
            time.sleep(0.01)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, list[dict[str, Any]], str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err


@pytest.fixture
def watching(world: World) -> Iterator[Callable[..., Watcher]]:
    """Start watchers that end with the test."""
    started: list[Watcher] = []

    def start(**environment: str) -> Watcher:
        started.append(Watcher(world, **environment))
        started[-1].wait_until_told()
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def caught_up(world: World, seconds: float = 10) -> bool:
    """Ask the watcher, as a reader does."""
    until = time.monotonic() + seconds
    with world.open() as memory:
        while not is_caught_up(memory.config.home, config_fingerprint(memory.config), 2.0):
            if time.monotonic() > until:
                return False
    return True


def found_unswept(world: World, word: str) -> list[str]:
    from vaultmem.recall.recall import RecallRequest

    with world.open() as memory:
        return [hit.path for hit in memory.recall(RecallRequest(word), sweep=False).hits]


def test_saves_renames_and_removals_are_followed(world: World, watching: Callable[..., Watcher]) -> None:
    world.write("sub/deep/a.md", f"# a\nsaffron\n{LONG}")
    watcher = watching()
    world.write("b.md", "# b\nturmeric\n")
    assert caught_up(world) and found_unswept(world, "turmeric") == ["b.md"]
    for word in ("alpha", "bravo", "charlie"):  # an editor's atomic saves
        temp = world.write("b.md~", f"# b\n{word}\n")
        temp.replace(world.vault / "b.md")
        assert caught_up(world) and found_unswept(world, word) == ["b.md"]
    (world.vault / "sub").rename(world.vault / "new")
    assert caught_up(world) and found_unswept(world, "saffron") == ["new/deep/a.md"]
    world.write("new/deep/a.md", f"# a\ncinnamon\n{LONG}")
    assert caught_up(world) and found_unswept(world, "cinnamon") == ["new/deep/a.md"]
    outside = world.folder / "outside"
    outside.mkdir()
    (outside / "c.md").write_text("# c\nnutmeg\n", encoding="utf-8")
    outside.rename(world.vault / "moved in")
    assert caught_up(world) and found_unswept(world, "nutmeg") == ["moved in/c.md"]
    (world.vault / "b.md").unlink()
    assert caught_up(world) and found_unswept(world, "charlie") == []
    code, batches, errors = watcher.end()
    assert code == 0 and "Traceback" not in errors
    assert all(batch["schema"] == "vaultmem.reconcile/1" for batch in batches)
    assert any(batch["moved"] == 1 for batch in batches)
    assert world.is_verified() == []


def test_a_burst_is_followed(world: World, watching: Callable[..., Watcher]) -> None:
    watching()
    for number in range(3_000):
        world.write(f"f{number % 30}/n{number}.md", f"# n{number}\nbasalt\n")
    assert caught_up(world, 60)
    with world.open() as memory:
        assert memory.status()["vaults"][0]["notes"] == 3_000
    assert world.is_verified() == []


def test_a_root_that_vanishes_and_returns_is_watched_again(world: World, watching: Callable[..., Watcher]) -> None:
    world.write("a.md", "# a\nsaffron\n")
    watching()
    away = world.folder / "away"
    world.vault.rename(away)
    until = time.monotonic() + 10
    while not world.open()._session.state.held():
        assert time.monotonic() < until
        time.sleep(0.05)
    assert found_unswept(world, "saffron") == ["a.md"], "kept"
    away.rename(world.vault)
    world.write("b.md", "# b\nturmeric\n")
    assert caught_up(world) and found_unswept(world, "turmeric") == ["b.md"]
    assert not world.open()._session.state.held()


def test_commands_ask_the_watcher_and_answer_what_was_just_saved(
    world: World, watching: Callable[..., Watcher]
) -> None:
    watching()
    for number in range(5):
        world.write("a.md", f"# a\nword{number}x\n")
        assert world.recall(f"word{number}x") == ["a.md"]
    status = world.cli("status", "--format", "json").json["watch"]
    assert status["mode"] == "events" and status["holder"]


def test_one_watches_and_another_takes_over(world: World, watching: Callable[..., Watcher]) -> None:
    first = watching()
    second = Watcher(world)
    try:
        assert second.process.stderr is not None
        told = [second.process.stderr.readline() for _ in range(2)]
        assert f"process {first.process.pid} is watching; standing by" in told[1]
        first.process.kill()
        started = time.monotonic()
        second.wait_until_told()
        assert time.monotonic() - started < 5 + 5, "5 s, and what a busy machine adds"
        world.write("a.md", "# a\nsaffron\n")
        assert caught_up(world) and found_unswept(world, "saffron") == ["a.md"]
    finally:
        assert second.end(signal.SIGINT)[0] == 130


def test_without_events_it_polls_and_says_why(world: World, watching: Callable[..., Watcher]) -> None:
    watcher = watching(VAULTMEM_WATCH="poll")
    status = world.cli("status", "--format", "json").json["watch"]
    assert (status["mode"], status["reason"]) == ("polling", "VAULTMEM_WATCH asks for polling")
    assert "polling" in world.cli("status").out
    world.write("a.md", "# a\nsaffron\n")
    assert world.recall("saffron") == ["a.md"], "commands compare the files themselves"
    code, _, errors = watcher.end()
    assert code == 0 and errors.count("watching by polling") == 1


def test_a_changed_configuration_is_taken_up(world: World, watching: Callable[..., Watcher]) -> None:
    world.write("left/a.md", "# a\nsaffron\n")
    watching()
    world.configure(top='exclude = ["left/**"]')
    assert caught_up(world) and found_unswept(world, "saffron") == []


def test_many_reconfigurations_leak_no_descriptors(world: World) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc")
    rounds = 1_000 if os.environ.get("VAULTMEM_TEST_PROFILE") == "long" else 30

    def one(memory: Memory) -> None:
        stop = threading.Event()
        thread = threading.Thread(target=memory.watch, args=(stop, lambda result: None, lambda text: None))
        thread.start()
        until = time.monotonic() + 20
        while who_watches(str(world.home)).mode != "events":
            assert time.monotonic() < until
            time.sleep(0.002)
        stop.set()
        thread.join(20)
        assert not thread.is_alive()

    def count() -> int:
        with world.open() as memory:
            one(memory)
        return len(os.listdir("/proc/self/fd"))

    first = count()
    assert [count() for _ in range(rounds)][-1] <= first + 2


def test_a_cookie_is_not_answered_by_a_watcher_that_has_gone(world: World) -> None:
    world.reconcile()
    with world.open() as memory:
        fingerprint = config_fingerprint(memory.config)
        lease = Lease(str(world.home))
        assert lease.acquire() and not Lease(str(world.home)).acquire()
        lease.tell("events", "", fingerprint)
        assert not is_caught_up(str(world.home), fingerprint, 0.05)
        lease.release()
        assert who_watches(str(world.home)).mode == "none"
        assert not is_caught_up(str(world.home), fingerprint, 0.05)
