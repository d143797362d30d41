"""After any sequence of edits the incremental index equals a fresh one, in digest and in answers.

A Hypothesis machine over real files; `VAULTMEM_TEST_PROFILE=long` runs ten thousand sequences.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.conftest import World
from vaultmem.access.filters import NoteFilter
from vaultmem.access.session import Session
from vaultmem.base.clock import now
from vaultmem.base.errors import VaultmemError
from vaultmem.base.times import iso
from vaultmem.health.rebuild import _differences, _Frozen
from vaultmem.index import digest
from vaultmem.index.database import beside
from vaultmem.memories.forget import ForgetRequest
from vaultmem.memories.store import StoreRequest
from vaultmem.recall.recall import RecallRequest
from vaultmem.sync.reconcile import Reconciler, config_fingerprint
from vaultmem.sync.watch.lease import is_caught_up

NAMES = ["Alpha", "alpha", "Beta", "Gamma note", "Ünï", "Delta.v1"]
FOLDERS = ["", "one/", "one/deep/", "two/", "Agent Memory/"]
PATHS = [folder + name + ".md" for folder in FOLDERS for name in NAMES]
KEYS = ["k-one", "k-two"]
TEXTS = st.sampled_from(["pump [[k-two]]", "heron oil", "belt [[Alpha]]"])
SCOPES = st.sampled_from(["global", "project"])
MAPPINGS = (
    'folder = "."\nscope = "global"',
    'folder = "Agent Memory"\nscope = "global"\nwritable = true\ninject = true',
)
"""Projects are not mapped, so that their memories are topics of the native wiki."""
WORDS = ["heron", "egret", "pump", "belt", "oil"]
LONG = "The pump needs oil every forty hours, and a new belt each spring; the manual is in the shed. "

paths = st.sampled_from(PATHS)
links = st.sampled_from(
    [
        "[[Alpha]]",
        "[[alpha]]",
        "[[Beta#Part]]",
        "[[one/Beta]]",
        "[[Nick]]",
        "[[Gamma note|g]]",
        "![[Ünï#^blk]]",
        "[[Nowhere]]",
        "[x](Delta.v1.md)",
        "[[#Part]]",
        "[[pic.png]]",
    ]
)


@st.composite
def notes(draw: st.DrawFn) -> str:
    lines: list[str] = []
    head: list[str] = []
    if draw(st.booleans()):
        if draw(st.booleans()):
            head.append("aliases: [Nick]")
        if draw(st.booleans()):
            head.append(f"tags: [{draw(st.sampled_from(['a', 'a/b', 'c']))}]")
        if draw(st.integers(0, 3)) == 0:
            head += ["cao:", f"  key: {draw(st.sampled_from(KEYS))}"]
            if draw(st.booleans()):
                target = draw(st.sampled_from([*KEYS, '"[[Alpha]]"', '"[[Beta]]"']))
                head += [
                    "  links:",
                    f"    - to: {target}",
                    f"      type: {draw(st.sampled_from(['relates_to', 'supersedes']))}",
                ]
        if draw(st.integers(0, 9)) == 0:
            head.append("broken: [")
        lines += ["---", *head, "---"]
    lines.append(draw(st.sampled_from(["# Title", "## Part", "text", "text ^blk"])))
    lines.append(" ".join(draw(st.lists(st.sampled_from(WORDS), max_size=4))))
    lines += draw(st.lists(links, max_size=3))
    if draw(st.booleans()):
        lines.append(LONG + draw(st.sampled_from(WORDS)))
    if draw(st.integers(0, 12)) == 0:
        lines.append("password: hunter2hunter")
    return "\n".join(lines) + "\n"


class VaultMachine(RuleBasedStateMachine):
    """Edits a vault as people and sync tools do, and reconciles at odd moments."""

    engine = ""

    @initialize(first=st.lists(st.tuples(paths, notes()), max_size=6), indexed=st.booleans())
    def start(self, first: list[tuple[str, str]], indexed: bool) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="vaultmem-test-"))
        self.world = World(self.folder, self.engine)
        self.world.configure(*MAPPINGS)
        self.vault = self.world.vault
        self.config = self.world.open().config
        self.fill()
        for path, text in first:
            self.world.write(path, text)
        if indexed:
            self.world.reconcile()

    def fill(self) -> None:
        """Write what a kind of machine begins with."""

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.check()
            shutil.rmtree(self.folder)

    def existing(self) -> list[str]:
        return sorted(path.relative_to(self.vault).as_posix() for path in self.vault.rglob("*.md") if path.is_file())

    def pick(self, number: int) -> str | None:
        found = self.existing()
        return found[number % len(found)] if found else None

    @rule(path=paths, text=notes())
    def write(self, path: str, text: str) -> None:
        self.world.write(path, text)

    @rule(number=st.integers(0, 99), extra=st.sampled_from(["heron\n", "[[Alpha]]\n", "## Part\n", "x ^blk\n"]))
    def append(self, number: int, extra: str) -> None:
        path = self.pick(number)
        if path:
            with (self.vault / path).open("a", encoding="utf-8") as file:
                file.write(extra)

    @rule(number=st.integers(0, 99))
    def same_size_same_time(self, number: int) -> None:
        path = self.pick(number)
        if path:
            target = self.vault / path
            stamp, data = target.stat(), target.read_bytes()
            target.write_bytes(
                data.replace(b"heron", b"egret") if b"heron" in data else data.replace(b"egret", b"heron")
            )
            os.utime(target, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    @rule(number=st.integers(0, 99), seconds=st.integers(1, 2_000_000_000))
    def touch(self, number: int, seconds: int) -> None:
        path = self.pick(number)
        if path:
            os.utime(self.vault / path, (seconds, seconds))

    @rule(number=st.integers(0, 99))
    def delete(self, number: int) -> None:
        path = self.pick(number)
        if path:
            (self.vault / path).unlink()

    @rule(number=st.integers(0, 99), to=paths)
    def rename(self, number: int, to: str) -> None:
        path = self.pick(number)
        if path and not (self.vault / to).exists():
            (self.vault / to).parent.mkdir(parents=True, exist_ok=True)
            (self.vault / path).rename(self.vault / to)

    @rule(one=st.integers(0, 99), other=st.integers(0, 99))
    def swap(self, one: int, other: int) -> None:
        first, second = self.pick(one), self.pick(other)
        if first and second and first != second:
            (self.vault / first).rename(self.folder / "swap")
            (self.vault / second).rename(self.vault / first)
            (self.folder / "swap").rename(self.vault / second)

    @rule(number=st.integers(0, 99), to=paths)
    def copy(self, number: int, to: str) -> None:
        path = self.pick(number)
        if path and not (self.vault / to).exists():
            (self.vault / to).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.vault / path, self.vault / to)

    @rule(number=st.integers(0, 99))
    def flip_unicode_form(self, number: int) -> None:
        path = self.pick(number)
        if path:
            other = "NFD" if unicodedata.is_normalized("NFC", path) else "NFC"
            target = self.vault / unicodedata.normalize(other, path)
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                (self.vault / path).rename(target)

    @rule(source=st.sampled_from(["one", "two", "one/deep"]), to=st.sampled_from(["three", "two/inner", "one"]))
    def move_folder(self, source: str, to: str) -> None:
        old, new = self.vault / source, self.vault / to
        if old.is_dir() and not new.exists() and not to.startswith(source + "/"):
            new.parent.mkdir(parents=True, exist_ok=True)
            old.rename(new)

    @rule(exclude=st.sampled_from(["", 'exclude = ["two/**"]', 'exclude = ["alpha.md"]']))
    def configure(self, exclude: str) -> None:
        self.world.configure(*MAPPINGS, top=exclude)
        self.config = self.world.open().config

    @rule(filters=st.sampled_from(["[]", '["one/"]']))
    def obsidian_setting(self, filters: str) -> None:
        self.world.write(".obsidian/app.json", f'{{"userIgnoreFilters": {filters}}}')

    @rule(present=st.booleans())
    def attachment(self, present: bool) -> None:
        if present:
            self.world.write("one/pic.png", b"x")
        else:
            (self.vault / "one/pic.png").unlink(missing_ok=True)

    @rule(accept=st.booleans())
    def reconcile(self, accept: bool) -> None:
        self.world.reconcile(accept_removals=accept)

    @rule(number=st.integers(0, 99))
    def reconcile_one(self, number: int) -> None:
        path = self.pick(number)
        if path:
            with self.world.open() as memory:
                memory.reconcile(only={"v": [unicodedata.normalize("NFC", path)]})

    @rule(
        key=st.sampled_from(KEYS), text=st.sampled_from(["pump [[k-two]]", "heron oil", "belt [[Alpha]]"]), scope=SCOPES
    )
    def store(self, key: str, text: str, scope: str) -> None:
        with self.world.open(project="p") as memory, suppress(VaultmemError):
            memory.store(StoreRequest(text, key, scope))

    @rule(key=st.sampled_from(KEYS), scope=SCOPES)
    def forget(self, key: str, scope: str) -> None:
        with self.world.open(project="p") as memory, suppress(VaultmemError):
            memory.forget(ForgetRequest(key, scope))

    @rule(key=st.sampled_from(KEYS), scope=SCOPES)
    def restore(self, key: str, scope: str) -> None:
        with self.world.open(project="p") as memory, suppress(VaultmemError):
            memory.restore(key, scope)

    @rule(key=st.sampled_from(KEYS), text=st.sampled_from(["## 2026-01-01T00:00:00Z\noil\n", "[[k-one]]\n"]))
    def edit_a_topic(self, key: str, text: str) -> None:
        topic = self.world.home / f"memory/p/wiki/project/{key}.md"
        if topic.exists():
            topic.write_text(topic.read_text(encoding="utf-8") + text, encoding="utf-8")

    def catch_up(self, session: Session) -> None:
        """Make the index equal to the files, all removals meant."""
        session.reconciler.run(accept_removals=True)

    @rule()
    def check(self) -> None:
        with Session(self.config) as session:
            self.catch_up(session)
            with beside(session.database) as fresh:
                Reconciler(self.config, _Frozen(session.state.path), fresh).run_locked()
                new = digest.stored_digest(fresh.connection())
                assert _differences(session, fresh, new) == []
                with pytest.MonkeyPatch.context() as patch:  # a score depends on the time: both are asked at one moment
                    patch.setenv("VAULTMEM_NOW", iso(now()))
                    answers = [self.answers(session)]
                    real, session._database = session._database, fresh
                    answers.append(self.answers(session))
                session._database = real
            assert answers[0] == answers[1]

    @staticmethod
    def answers(session: Session) -> list[object]:
        from vaultmem.recall.recall import recall

        found: list[object] = []
        for query in (*WORDS, "pump belt", "shed manual heron", "Title", "nick", ""):
            request = RecallRequest(query, NoteFilter(everyone=True), limit=20, record_access=False)
            hits = recall(session, request, sweep=False).hits
            found.append([(hit.path, hit.key, round(hit.score, 6), hit.updated_at, hit.superseded_by) for hit in hits])
        return found


VaultMachine.TestCase.settings = settings(stateful_step_count=14)
TestIncremental = VaultMachine.TestCase


def test_the_machine_notices_a_forgotten_relink(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of the test: without one cause of looking at links again the machine must fail."""
    import vaultmem.sync.plan.plan as plan

    monkeypatch.setattr(plan, "lookups_of_path", lambda vault, path: ())
    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            VaultMachine,
            settings=settings(
                max_examples=200, stateful_step_count=20, database=None, derandomize=True, phases=[Phase.generate]
            ),
        )


class CrowdedMachine(VaultMachine):
    """The same with over forty notes to begin with, and a folder that comes and goes (its mapping is held)."""

    def fill(self) -> None:
        for number in range(45):
            self.world.write(f"crowd/n{number}.md", f"# n{number}\n[[n{(number * 7) % 45}]] heron {LONG}{number}\n")
        self.world.write("Agent Memory/kept.md", f"# kept\n{LONG}\n")
        self.world.write("Agent Memory/kept two.md", f"# two\n[[kept]] {LONG}\n")

    @rule()
    def take_a_folder_away(self) -> None:
        for name in ("crowd", "Agent Memory"):
            if (self.vault / name).exists() and not (self.folder / name).exists():
                (self.vault / name).rename(self.folder / name)
                break

    @rule()
    def bring_it_back(self) -> None:
        for name in ("crowd", "Agent Memory"):
            if (self.folder / name).exists() and not (self.vault / name).exists():
                (self.folder / name).rename(self.vault / name)


CrowdedMachine.TestCase.settings = settings(stateful_step_count=10, max_examples=12)
TestCrowded = CrowdedMachine.TestCase


class SecondEngineMachine(VaultMachine):
    """The same on FTS4."""

    engine = "fts4"


SecondEngineMachine.TestCase.settings = settings(stateful_step_count=10, max_examples=12)
TestSecondEngine = SecondEngineMachine.TestCase


class WatchedMachine(VaultMachine):
    """The same, kept equal by a watcher: nothing is compared by command before it is checked."""

    def fill(self) -> None:
        self.stop = threading.Event()
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()

    def watch(self) -> None:
        while not self.stop.is_set():
            with self.world.open(project="p") as memory, suppress(VaultmemError):
                memory.watch(self.stop, lambda result: None, lambda text: None)

    def catch_up(self, session: Session) -> None:
        until = time.monotonic() + 30
        while not is_caught_up(self.config.home, config_fingerprint(self.config), 5.0):
            assert time.monotonic() < until, "the watcher does not catch up"
        if session.state.held():
            session.reconciler.run(accept_removals=True)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.check()
            self.stop.set()
            self.watcher.join(20)
            shutil.rmtree(self.folder)


WatchedMachine.TestCase.settings = settings(stateful_step_count=10, max_examples=12)
TestWatched = WatchedMachine.TestCase
