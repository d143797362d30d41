"""One child process that runs `sync.read.reader_process`: a fork of ours where that is safe, else a new Python.

A fork has everything imported and is there in milliseconds; a new Python takes some 0.2 s. But a fork has
only the thread that forks, so what another thread has locked stays locked in it: it is taken where
there is one thread. And only on Linux, as the frameworks of macOS do not bear it (CPython, gh-77906).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO, NoReturn

from vaultmem.sync.read.reader_process import main
from vaultmem.sync.walk.walk import names_in

PIPE_BYTES = 1 << 20
"""What a pipe is to hold, so that a child need not wait for us to read; Linux lets anybody have as much."""


class Child:
    """A child's pipes, and its end; it ends by itself when its pipes are closed.

    `room`: bytes that `sink` takes for sure while the child does not read, 0 where that is not known.
    """

    def __init__(self, sink: IO[bytes], source: IO[bytes], process: subprocess.Popen[bytes] | int) -> None:
        self.sink = sink
        self.source = source
        self._process = process
        self.room = _widened(sink.fileno()) // 2  # it takes whole pages, and the last one may not be full
        _widened(source.fileno())

    def end(self) -> None:
        """Kill it, wait for it, and close its pipes."""
        if isinstance(self._process, int):
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._process, signal.SIGKILL)
                os.waitpid(self._process, 0)
        else:
            self._process.kill()
            self._process.wait()
        for pipe in (self.sink, self.source):
            with suppress(OSError):  # what it no longer takes is flushed here
                pipe.close()


def _widened(pipe: int) -> int:
    """Make a pipe hold more; return the bytes that it holds, 0 where that can't be had."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # a user may have only so much in pipes
            return fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return 0


def start_child(keep_links: bool) -> Child:
    """Start a worker. Raises OSError."""
    return _forked(keep_links) if _can_fork() else _spawned(keep_links)


def _can_fork() -> bool:
    """Tell whether this is Linux with one thread, those of other languages counted."""
    if sys.platform != "linux" or threading.active_count() != 1:
        return False
    try:
        return os.stat("/proc/self/task").st_nlink == 3  # ".", ".." and one folder for each thread
    except OSError:
        return False


def _spawned(keep_links: bool) -> Child:
    if not sys.executable:
        raise FileNotFoundError("Python can't tell where it is")
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; from vaultmem.sync.read.reader_process import main; "
        f"main({keep_links}, sys.stdin.buffer, sys.stdout.buffer)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,  # Ctrl-C is the parent's business
    )
    assert process.stdin is not None and process.stdout is not None
    return Child(process.stdin, process.stdout, process)


def _forked(keep_links: bool) -> Child:
    source, our_sink = os.pipe()
    try:
        our_source, sink = os.pipe()
    except OSError:
        os.close(source)
        os.close(our_sink)
        raise
    try:
        pid = os.fork()
        if pid == 0:
            _serve(source, sink, keep_links)
    except OSError:
        os.close(our_sink)
        os.close(our_source)
        raise
    finally:
        os.close(source)
        os.close(sink)
    return Child(open(our_sink, "wb"), open(our_source, "rb"), pid)


def _serve(source: int, sink: int, keep_links: bool) -> NoReturn:
    """Be the child: keep nothing that is open here but the two pipes, and never return to the parent's code.

    Locks and databases of the parent are closed as numbers, without their objects, so none is touched.
    """
    try:
        os.setpgid(0, 0)  # Ctrl-C is the parent's business; in a session of its own it would not give way to us
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        for name in names_in("/proc/self/fd"):
            if int(name) not in (source, sink):
                with suppress(OSError):
                    os.close(int(name))
        while (unused := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass  # standard streams lead nowhere
        os.close(unused)
        with open(source, "rb") as reader, open(sink, "wb") as writer:
            main(keep_links, reader, writer)
        os._exit(0)
    finally:
        os._exit(1)
