"""Locks between processes: those who wait are served, those who give up leave nothing behind."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from vaultmem.base.errors import LockBusy
from vaultmem.base.locks import file_lock, is_locked

HOLDER = """
import sys
from vaultmem.base.locks import file_lock
with file_lock(sys.argv[1], wait_s=5, what="testing"):
    print("held", flush=True)
    sys.stdin.read()
"""


def hold(lock: Path) -> subprocess.Popen[str]:
    """Start a process that holds the lock until its input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize("wait_s", [0.05, 0.4])
def test_a_wait_that_is_given_up_names_the_holder_and_leaves_nothing(tmp_path: Path, wait_s: float) -> None:
    lock = tmp_path / "x.lock"
    holder = hold(lock)
    started = time.monotonic()
    with pytest.raises(LockBusy, match=f"pid {holder.pid}"), file_lock(str(lock), wait_s=wait_s, what="testing"):
        pass
    assert wait_s <= time.monotonic() - started < wait_s + 2
    holder.communicate("")
    with file_lock(str(lock), wait_s=5, what="testing"):
        assert is_locked(str(lock))
    assert not is_locked(str(lock))


def test_those_who_wait_get_it_one_at_a_time(tmp_path: Path) -> None:
    """Many waiters in threads of one process and a killed holder: each gets it, never two at once."""
    lock = tmp_path / "x.lock"
    holder = hold(lock)
    inside: list[int] = []
    order: list[int] = []

    def wait(number: int) -> None:
        with file_lock(str(lock), wait_s=30, what="testing"):
            inside.append(number)
            assert inside == [number]
            order.append(number)
            inside.remove(number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    holder.kill()
    for thread in threads:
        thread.join(30)
    assert sorted(order) == list(range(12))
    holder.communicate()
