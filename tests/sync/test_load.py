"""The load of an empty index writes notes while it reads, and its readers resolve links: the end is what small steps
come to, also when readers fail."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import World
from vaultmem.access.filters import NoteFilter
from vaultmem.base.progress import Work
from vaultmem.index.database import IndexDatabase, choose_engine
from vaultmem.memory import open_memory
from vaultmem.notes.keys import derived_key

PLAIN = 1_150
BLOCK = "---\ncao:\n  key: {key}\n---\n# {key}\nheron {number}\n"


def awkward(world: World) -> None:
    """Write notes whose key, place or standing is only known when all of them are: what was written early is wrong."""
    world.write("one/claims.md", BLOCK.format(key="same-key", number=1))
    world.write("two/claims.md", BLOCK.format(key="same-key", number=2))
    world.write("one/victim.md", "# victim\nheron pump\n")
    world.write("two/thief.md", BLOCK.format(key=derived_key("one/victim.md"), number=3))
    world.write("three/Twin.md", "# twin\nheron\n")
    world.write("three/twin.md", "# twin\nheron\n")
    world.write("three/secret.md", "# keys\nAKIA" + "Q7ZX3RT5WV9YB2MN" + " heron\n")
    world.write("three/picture.png", b"\x89PNG")
    world.write("four/target.md", "---\naliases: [Other Name, Second]\n---\n# Part one\nheron ^block\n")
    world.write("four/other.md", "---\naliases: [other name]\n---\n# other\n")
    world.write(
        "four/links.md",
        "---\nup: '[[target]]'\ncao:\n  links:\n  - {to: '[[target]]', type: supersedes}\n  - {to: same-key}\n"
        f"  - {{to: {derived_key('four/other.md')}, type: contradiction}}\n---\n"
        "[[target#Part one]] [[target#No part]] [[target#^block]] [[#Own]] [[Other Name]] [[Second|s]] [[secret]] "
        "[[Twin]] ![[picture.png]] [m](four/target.md) [[four/target]] [[../one/victim]] [[nowhere]]\n# Own\n",
    )
    world.write("four/many.md", " ".join(f"[[n{number}]]" for number in range(80)))
    place = {"x": 0, "y": 0, "width": 9, "height": 9}
    file_card = {"id": "1", "type": "file", "file": "four/target.md", **place}
    text_card = {"id": "2", "type": "text", "text": "see [[target#Part one]] [[many]]", **place}
    world.write("four/board.canvas", json.dumps({"nodes": [file_card, text_card], "edges": []}))


def test_a_load_at_once_equals_small_steps(world: World) -> None:
    awkward(world)
    for number in range(0, PLAIN, 2):
        world.write(f"plain/n{number}.md", f"# n{number}\nheron {number} [[n{(number * 7) % PLAIN}]]\n")
    world.reconcile()
    for number in range(1, PLAIN, 2):
        world.write(f"plain/n{number}.md", f"# n{number}\negret {number} [[n{(number * 3) % PLAIN}]]\n")
    world.reconcile()
    assert world.is_verified() == []  # the fresh index it is compared with is loaded at once
    codes = world.codes()
    assert codes["key_collision"] == {"one/claims.md", "two/claims.md"}
    assert "secret_detected" in codes
    with world.open() as memory:
        hits = {hit.path: hit.key for hit in memory.list(NoteFilter(), 0).hits}
    assert hits["two/thief.md"] == derived_key("one/victim.md")
    assert hits["one/victim.md"] != derived_key("one/victim.md")
    assert world.recall("heron pump")[0] == "one/victim.md"


def test_a_load_that_fails_leaves_nothing(world: World) -> None:
    """A reader is interrupted in the middle: the next run begins anew, and nothing stays locked."""
    for number in range(PLAIN):
        world.write(f"n{number}.md", f"# n{number}\nheron\n")

    def interrupt(phase: str, done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with open_memory(str(world.home), work=Work(interrupt)) as memory, pytest.raises(KeyboardInterrupt):
        memory.reconcile()
    assert len(world.recall("heron", limit=100)) == 100
    assert world.is_verified() == []


def links_in_a_ring(world: World) -> None:
    awkward(world)
    for number in range(PLAIN):
        world.write(f"plain/n{number}.md", f"# n{number}\nheron {number} [[n{(number * 7) % PLAIN}]]\n")


def children() -> dict[int, bytes]:
    """The command lines of our children, by id; threads and processes may end while they are looked at."""
    found: dict[int, bytes] = {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            for pid in map(int, (task / "children").read_text().split()):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes()
    return found


@pytest.fixture(params=["forked", "started"])
def start(request: pytest.FixtureRequest) -> Iterator[str]:
    """How readers come to be: a process of two threads does not fork."""
    if request.param == "forked":
        yield request.param
        return
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    yield request.param
    end.set()
    thread.join()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are found in /proc")
@pytest.mark.parametrize("killed_after", [0.2, 1.0])
def test_readers_that_die_change_nothing(world: World, killed_after: float, start: str) -> None:
    """All are killed, while they read or when they are to resolve links: what they owe is done here."""
    links_in_a_ring(world)
    others = children()
    killed: dict[int, bytes] = {}

    def kill(phase: str, done: int, total: int) -> None:
        if phase == "reading" and done >= total * killed_after and not killed:
            killed.update({pid: line for pid, line in children().items() if pid not in others})
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    with open_memory(str(world.home), work=Work(kill)) as memory:
        memory.reconcile()
    assert killed
    if threading.active_count() == 1 or start == "started":
        ours = Path("/proc/self/cmdline").read_bytes()
        assert {line == ours for line in killed.values()} == {start == "forked"}
    assert children().keys() <= others.keys()
    assert world.is_verified() == []


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are found in /proc")
def test_readers_give_way_and_ctrl_c_is_not_theirs(world: World, start: str) -> None:
    """They are in our session, where a scheduler that shares by session heeds it, but not in our group."""
    links_in_a_ring(world)
    others = children()
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    nice: set[int] = set()  # of one that has just been started it may be ours yet
    places: set[tuple[bool, bool]] = set()

    def look(phase: str, done: int, total: int) -> None:
        if phase == "reading" and 0 < done < total:
            for pid in children().keys() - others.keys():
                nice.add(os.getpriority(os.PRIO_PROCESS, pid))
                places.add((os.getsid(pid) == os.getsid(0), os.getpgid(pid) == os.getpgid(0)))

    with open_memory(str(world.home), work=Work(look)) as memory:
        memory.reconcile()
    assert max(nice) == min(19, ours + 5) and places == {(True, False)}


def wait_for_rest(processes: set[int]) -> None:
    """Wait until processes read no file any more."""
    seen: list[str] = []
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        read = [Path(f"/proc/{pid}/io").read_text() for pid in sorted(processes)]
        if read == seen:
            return
        seen = read
        time.sleep(0.3)  # there is no event for it
    raise TimeoutError("readers go on and on")


@pytest.mark.skipif(not Path("/proc/self/io").is_file(), reason="what a process has read is found in /proc")
def test_readers_get_only_so_far_ahead(world: World) -> None:
    """While nobody takes what they have read, the last notes stay unread: memory would grow with the vault."""
    many = 3_000
    for number in range(many):
        world.write(f"n{number:05}.md", f"# n{number}\nheron\n")
    others = children()
    waited: list[int] = []

    def wait(phase: str, done: int, total: int) -> None:
        if phase == "reading" and done and not waited:
            readers = set(children()) - set(others)
            waited.extend(readers)
            wait_for_rest(readers)
            world.write(f"n{many - 1:05}.md", "# changed\negret\n")

    with open_memory(str(world.home), work=Work(wait)) as memory:
        memory.reconcile()
    assert len(waited) > 1
    with sqlite3.connect(f"file:{index_of(world)}?mode=ro", uri=True) as index:
        row = index.execute("SELECT body FROM note WHERE path = ?", (f"n{many - 1:05}.md",)).fetchone()
    assert "egret" in row[0]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors are found in /proc")
def test_a_forked_reader_holds_nothing_of_ours(world: World) -> None:
    """Neither a lock, a database nor standard output: only its two pipes and the vault's folder."""
    links_in_a_ring(world)
    held: dict[int, set[str]] = {}
    others = children()

    def look(phase: str, done: int, total: int) -> None:
        if phase == "reading" and not held:
            for pid in children().keys() - others.keys():
                opened = Path(f"/proc/{pid}/fd").iterdir()
                held[pid] = {os.readlink(link) for link in opened if os.path.lexists(link)}

    with open_memory(str(world.home), work=Work(look)) as memory:
        memory.reconcile()
    assert held
    for targets in held.values():
        assert {name for name in targets if not name.startswith(("pipe:", str(world.vault)))} <= {os.devnull}


@pytest.mark.parametrize("program", ["/bin/false", "/no/such/python", ""])
def test_no_reader_can_be_started(world: World, monkeypatch: pytest.MonkeyPatch, program: str, start: str) -> None:
    links_in_a_ring(world)
    monkeypatch.setattr(sys, "executable", program)
    if start == "forked":
        monkeypatch.setattr(os, "fork", no_more_processes)
    world.reconcile()
    monkeypatch.undo()
    assert world.is_verified() == []


def no_more_processes() -> int:
    raise BlockingIOError("no more processes")


def index_of(world: World) -> Path:
    return next(world.home.glob("index-v*.db"))


def empty_index(world: World) -> Path:
    """Open the index as any command does first, and close it; return its path."""
    database = IndexDatabase(str(world.home), choose_engine("auto"))
    database.connection()
    database.close()
    return index_of(world)


def test_a_first_load_takes_the_place_of_the_empty_file(world: World) -> None:
    links_in_a_ring(world)
    inode = empty_index(world).stat().st_ino
    with world.open() as memory:
        memory.reconcile()
        assert index_of(world).stat().st_ino != inode
        assert len(memory.list(NoteFilter(), 0).hits) >= PLAIN
    assert not list(world.home.glob("*.new*"))
    assert index_of(world).stat().st_mode & 0o777 == 0o600
    world.write("later.md", "# later\nbittern\n")
    assert world.recall("bittern") == ["later.md"]
    assert world.is_verified() == []


@pytest.mark.parametrize("command", ["reconcile", "rebuild"])
def test_an_index_that_others_have_open_stays_the_same_file(world: World, command: str) -> None:
    """What they have open shows the new index, too."""
    links_in_a_ring(world)
    path = empty_index(world)
    inode = path.stat().st_ino
    other = sqlite3.connect(path)
    assert other.execute("SELECT count(*) FROM note").fetchone() == (0,)
    assert world.cli(command).code == 0
    assert path.stat().st_ino == inode
    assert other.execute("SELECT count(*) FROM note").fetchone()[0] >= PLAIN
    other.close()
    assert world.is_verified() == []


def test_a_first_load_that_is_killed_is_done_by_the_next_command(world: World) -> None:
    links_in_a_ring(world)
    command = [sys.executable, "-m", "vaultmem", "--home", str(world.home), "reconcile"]
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not list(world.home.glob("*.new")):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert world.cli("recall", "heron", "--limit", "100", "--format", "json").json["total"] >= PLAIN
    assert not list(world.home.glob("*.new*"))
    assert world.cli("rebuild", "--verify").code == 0
