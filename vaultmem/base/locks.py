"""Locks between processes, on files that stay (never unlink one: another may be waiting for it)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from vaultmem.base.errors import LockBusy
from vaultmem.base.files import NOFOLLOW, ensure_private_folder

try:  # absent on native Windows, where writing is refused
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]


@contextmanager
def file_lock(path: str, *, wait_s: float, what: str) -> Iterator[None]:
    """Hold an exclusive lock between processes; the lock file stays (never unlink it: race).

    Waits up to `wait_s` seconds, then raises LockBusy naming the holder's process id.
    """
    ensure_private_folder(os.path.dirname(path))
    fd = os.open(path, os.O_RDWR | os.O_CREAT | NOFOLLOW, 0o600)
    try:
        if not _acquire(fd, wait_s):
            holder = os.pread(fd, 64, 0).decode("ascii", "replace").strip() or "unknown"
            raise LockBusy(f"Another vaultmem process ({holder}) is {what}", "Wait for it to end, then try again")
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"pid {os.getpid()}".encode(), 0)
        yield
    finally:
        os.close(fd)


def try_lock(path: str) -> int | None:
    """Take an exclusive lock between processes without waiting; the descriptor holds it until it is closed."""
    ensure_private_folder(os.path.dirname(path))
    fd = os.open(path, os.O_RDWR | os.O_CREAT | NOFOLLOW, 0o600)
    if _acquire(fd, 0.0):
        return fd
    os.close(fd)
    return None


def is_locked(path: str) -> bool:
    """Tell whether a process holds the lock of that file."""
    try:
        fd = os.open(path, os.O_RDONLY | NOFOLLOW)
    except OSError:
        return False
    try:
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


_POLLED_WAIT_S = 0.1
"""Waits up to this long are polled; a thread that waits in the system costs more."""


def _acquire(fd: int, wait_s: float) -> bool:
    if fcntl is None:  # pragma: no cover
        return True
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if wait_s > _POLLED_WAIT_S:
                return _Waiter(fd).wait(wait_s)
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.002)


class _Waiter:
    """Waits for a lock in the system, which serves those who wait in their order.

    Polling would not: the lock goes to whoever asks next, so with many writers one that has just let
    go overtakes the others again and again. A wait that is given up can't be called off; its thread
    lets go of the lock as soon as it gets it.
    """

    def __init__(self, fd: int) -> None:
        self._fd = os.dup(fd)
        self._deciding = threading.Lock()
        self._done = threading.Event()
        self._acquired = self._given_up = False

    def wait(self, wait_s: float) -> bool:
        """Tell whether the lock was got in time; it then belongs to the descriptor that was given."""
        threading.Thread(target=self._block, daemon=True).start()
        try:
            self._done.wait(wait_s)
        finally:
            with self._deciding:
                self._given_up = not self._acquired
        return self._acquired

    def _block(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            with self._deciding:
                self._acquired = not self._given_up
        except OSError:
            pass
        finally:
            os.close(self._fd)  # the last descriptor of a wait that was given up: this lets go of the lock
            self._done.set()
