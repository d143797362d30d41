"""Who watches a home's folders: one process at a time, told to the others; and how they ask it.

The lease is a file lock, so it ends with its process, however that ends. A reader that wants to know
that all events before now are applied puts a cookie file where the watcher sees it: events come in
order, so when the watcher has taken the cookie away, everything before it is in the index (the way
of Watchman, "Query Synchronization"). Without an answer in time the reader compares the files itself.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass

from vaultmem.base.files import ensure_private_folder, read_home_file, write_private_file
from vaultmem.base.locks import is_locked, try_lock
from vaultmem.sync.walk.walk import names_in

COOKIE_WAIT_S = 0.3
FIRST_PAUSE_S = 0.001


@dataclass(frozen=True, slots=True)
class Watching:
    """What the holder tells: `mode` is events, polling or none; `reason` says why it polls."""

    mode: str = "none"
    holder: int | None = None
    reason: str = ""
    fingerprint: str = ""


def _lock_path(home: str) -> str:
    return os.path.join(home, "locks", "watch.lock")


def _told_path(home: str) -> str:
    return os.path.join(home, "locks", "watch.json")


def cookie_folder(home: str) -> str:
    """Return the folder of cookies."""
    return os.path.join(home, "locks", "cookies")


class Lease:
    """The right to watch a home."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._fd: int | None = None

    def acquire(self) -> bool:
        """Take the lease if no other process has it."""
        if self._fd is None:
            self._fd = try_lock(_lock_path(self._home))
            if self._fd is not None:
                ensure_private_folder(cookie_folder(self._home))
        return self._fd is not None

    def tell(self, mode: str, reason: str, fingerprint: str) -> None:
        """Say how it is watched, and which settings hold."""
        write_private_file(_told_path(self._home), json.dumps(asdict(Watching(mode, os.getpid(), reason, fingerprint))))

    def release(self) -> None:
        """Give the lease back."""
        if self._fd is not None:
            with suppress(OSError):
                os.unlink(_told_path(self._home))
            os.close(self._fd)
            self._fd = None


def who_watches(home: str) -> Watching:
    """Return what the present holder tells; mode `none` when there is none."""
    if not is_locked(_lock_path(home)):
        return Watching()
    try:
        return Watching(**json.loads(read_home_file(_told_path(home))))
    except (OSError, ValueError, TypeError):
        return Watching()


def is_caught_up(home: str, fingerprint: str, wait_s: float = COOKIE_WAIT_S) -> bool:
    """Ask a watcher by events that has the same settings whether all events until now are applied."""
    watching = who_watches(home)
    if watching.mode != "events" or watching.fingerprint != fingerprint:
        return False
    path = os.path.join(cookie_folder(home), secrets.token_hex(8))
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return False
    until, pause = time.monotonic() + wait_s, FIRST_PAUSE_S
    while os.path.exists(path):
        if time.monotonic() >= until:
            try:
                os.unlink(path)
            except FileNotFoundError:  # taken away in this moment
                return True
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, 0.01)
    return True


def cookies(home: str) -> list[str]:
    """Return the cookies that wait for an answer."""
    return names_in(cookie_folder(home))


def take_cookies(home: str, names: Collection[str]) -> None:
    """Answer: what was asked before is applied."""
    for name in names:
        with suppress(OSError):
            os.unlink(os.path.join(cookie_folder(home), name))
