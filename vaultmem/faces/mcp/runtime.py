"""What stands behind the tools of a long-running server: one open memory, a keeper, a log; no protocol here.

Calls run one after another on the caller's one worker thread. Before a call the files are compared
anew (design.md §5, "Freshness"); where a comparison is slow, at most a fifth of the time goes to it,
and hits are compared with their files in any case. The first build runs beside, so that the
handshake never waits for it, and a call waits for it only briefly.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from vaultmem.base.errors import IndexUnavailable, LockBusy, VaultmemError
from vaultmem.base.files import ensure_private_folder
from vaultmem.base.progress import Work
from vaultmem.faces.mcp.tools import Tool, call
from vaultmem.memory import Memory, open_memory
from vaultmem.settings.config import Config, environment_value, load_config

if TYPE_CHECKING:
    from vaultmem.access.scopes import CallContext
    from vaultmem.faces.mcp.log import CallLog

_Result = TypeVar("_Result")

BUILD_WAIT_S = 4.0
"""How long a call waits for the first build; clients give up on a call after 30 to 60 s."""
RETRY_S = 0.5
STATUS = "memory_status"
"""The one tool that has something to say while the index is being built."""
FREE_SWEEP_S = 0.15
WATCH_AGAIN_S = 10.0
SWEEP_REST = 4
"""After a sweep that took t seconds (more than FREE_SWEEP_S), none for SWEEP_REST × t."""


class Keeper:
    """Brings the index up in a thread of its own, lets retention run, then watches the folders."""

    def __init__(self, home: str, read_only: bool, log: CallLog) -> None:
        self._home, self._read_only, self._log = home, read_only, log
        self._progress = ("", 0, 0)
        self._stopped = threading.Event()
        self.done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vaultmem-keeper", daemon=True)
        self._once = threading.Lock()

    def start(self) -> None:
        """Begin, unless it has begun."""
        with self._once:
            if self._thread.ident is None:
                self._thread.start()

    def stop(self) -> None:
        """Don't try again after what is being done now."""
        self._stopped.set()
        self.done.set()

    def describe(self) -> str:
        """Return how far it is, as `12 of 345 notes`."""
        phase, done, total = self._progress
        return f"{phase} {done} of {total} notes" if total else "reading the folders"

    def _report(self, phase: str, done: int, total: int) -> None:
        # applying counts each note twice (its rows, then its links): told as notes
        self._progress = (phase, done // 2, total // 2) if phase == "indexing" else (phase, done, total)

    def _run(self) -> None:
        started = time.monotonic()
        if self._tries("build", self._build):
            self._log.line("build", "done", f"{time.monotonic() - started:.1f}s")
        self.done.set()
        while not self._stopped.is_set() and environment_value("VAULTMEM_WATCH") != "off":
            if not self._tries("watch", self._watch):
                self._stopped.wait(WATCH_AGAIN_S)

    def _tries(self, what: str, action: Callable[[], None]) -> bool:
        try:
            action()
        except VaultmemError as error:  # the next call meets it too, and tells it
            self._log.line(what, "failed", type(error).__name__)
            return False
        except Exception as error:  # noqa: BLE001  a thread of ours must not print a traceback
            self._log.line(what, "failed", type(error).__name__)
            return False
        return True

    def _watch(self) -> None:
        with open_memory(self._home, read_only=self._read_only) as memory:
            memory.watch(self._stopped, lambda result: None, lambda text: self._log.line("watch", "notice"))

    def _build(self) -> None:
        with open_memory(self._home, read_only=self._read_only, work=Work(self._report)) as memory:
            while not self._stopped.is_set():
                try:
                    memory.status()
                    break
                except (LockBusy, IndexUnavailable):
                    if memory.is_built() or self._stopped.wait(RETRY_S):
                        raise
            if not (memory.config.read_only or self._stopped.is_set()):
                memory.retention(apply=True)


class Runtime:
    """One server's memory; use `run` and `call` from one thread at a time."""

    def __init__(self, home: str, *, read_only: bool, log: CallLog) -> None:
        self.home = home
        self._read_only = read_only
        self._log = log
        self._memory: Memory | None = None
        self._keeper: Keeper | None = None
        self._stamp: tuple[int, ...] | None = None
        self._swept_at = 0.0
        self._sweep_s = 0.0
        self._lock = threading.Lock()
        self._closed = False

    def prepare(self) -> None:
        """Start the first build, ahead of the first call. Raises nothing: what is wrong is told by a call."""
        try:
            self._current()
        except VaultmemError as error:
            self._log.line("start", "failed", type(error).__name__)

    def call(self, tool: Tool, arguments: dict[str, Any] | None, context: CallContext) -> dict[str, Any]:
        """Run a tool and return its answer; whatever goes wrong is an answer too."""
        started = time.monotonic()
        try:
            answer = self.run(context, lambda memory: call(tool, memory, arguments), waits=tool.name != STATUS)
            if tool.name == STATUS and answer["success"] and self._keeper and not self._keeper.done.is_set():
                answer["building"] = self._keeper.describe()
        except VaultmemError as error:
            answer = {"success": False, "error": str(error)}
        except Exception as error:  # noqa: BLE001  the outermost frame: a bug becomes an answer, without any text
            answer = {"success": False, "error": f"An unexpected {type(error).__name__} (this is a bug in vaultmem)"}
            self._log.line(tool.name, "bug", type(error).__name__)
        outcome = "ok" if answer["success"] else str(answer.get("error_kind", "refused"))
        self._log.line(tool.name, outcome, f"{(time.monotonic() - started) * 1000:.0f}ms")
        return answer

    def run(self, context: CallContext, action: Callable[[Memory], _Result], *, waits: bool = True) -> _Result:
        """Run an action on a complete and fresh memory. Raises IndexUnavailable while the first build takes longer."""
        memory = self._current()
        if memory.config.enabled and waits:
            self._wait_for_build(memory)
        memory.begin_call(context, sweep=self._sweep_is_due(memory))
        swept = time.monotonic()
        result = action(memory)
        if memory.last_sweep_s is not None:
            self._swept_at, self._sweep_s = swept, memory.last_sweep_s
        return result

    def _sweep_is_due(self, memory: Memory) -> bool:
        rest = SWEEP_REST * self._sweep_s if self._sweep_s > FREE_SWEEP_S else 0.0
        return time.monotonic() - self._swept_at >= rest or memory.is_watched()

    def _wait_for_build(self, memory: Memory) -> None:
        keeper = self._keeper
        assert keeper is not None
        keeper.start()
        until = time.monotonic() + BUILD_WAIT_S
        while not keeper.done.is_set() and not memory.is_built():
            left = until - time.monotonic()
            if left <= 0 or self._closed:
                raise IndexUnavailable(
                    f"The index is being built ({keeper.describe()}), so nothing was read or written",
                    "Ask again in a moment",
                )
            keeper.done.wait(min(left, 0.05))

    def _current(self) -> Memory:
        """Return the open memory; opened anew when config.toml has changed. Raises ConfigError."""
        with self._lock:
            config_path = os.path.join(self.home, "config.toml")
            stamp = _stamp(config_path)
            if self._memory is not None and stamp == self._stamp:
                return self._memory
            self._drop()
            config = load_config(self.home, read_only=self._read_only)
            _ready(config)
            self._memory = open_memory(self.home, read_only=self._read_only)
            self._stamp = stamp
            self._swept_at = 0.0
            self._keeper = Keeper(self.home, self._read_only, self._log)
            if config.enabled:
                self._keeper.start()
            return self._memory

    def _drop(self) -> None:
        if self._keeper is not None:
            self._keeper.stop()
        if self._memory is not None:
            self._memory.close()
        self._memory, self._keeper = None, None

    def stop(self) -> None:
        """End all waiting; from any thread."""
        self._closed = True
        keeper = self._keeper
        if keeper is not None:
            keeper.stop()

    def close(self) -> None:
        """Close the memory; from the thread of the calls."""
        with self._lock:
            self._drop()


def _ready(config: Config) -> None:
    """Make an unconfigured home usable: its native wiki needs no vault."""
    if config.enabled and not config.read_only and not config.vaults:
        ensure_private_folder(config.home)
        ensure_private_folder(config.memory_root)


def _stamp(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns
