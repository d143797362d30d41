"""Chunks of files to reader processes and back: each process always has one to read and one to come.

A thread for each process feeds it and waits for it. Processes may be faster than we are, so they get
only so far ahead, and memory stays flat.
"""

from __future__ import annotations

import marshal
import pickle
import queue
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from vaultmem.base.values import SourceFile
from vaultmem.index.operations import FileFacts
from vaultmem.index.resolution import Resolved, SourceLinks
from vaultmem.settings.rules import VaultConfig
from vaultmem.sync.read.messages import facts_from, files_to_bytes
from vaultmem.sync.read.processes import start_child

MOST_AHEAD = 32
"""Chunks that are asked for and not taken yet."""
Answer = tuple[list[FileFacts], list[bytes]]
"""The facts of a chunk, and its prepared notes as bytes."""
Chunk = tuple[int, Sequence[SourceFile]]
"""The first reference of its notes, and the files."""
_Done = tuple[int, "ReaderProcess", Answer | None]
_FAILURES = (OSError, EOFError, ValueError, pickle.UnpicklingError)


class Feed:
    """One pass of chunks through processes; `end` it in any case."""

    def __init__(self, processes: Sequence[ReaderProcess], vault: VaultConfig, chunks: Sequence[Chunk]) -> None:
        self._processes = processes
        self._chunks = chunks
        self._todo: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(len(chunks)):
            self._todo.put(number)
        self._done: queue.SimpleQueue[_Done | Exception] = queue.SimpleQueue()
        self._free = threading.Semaphore(MOST_AHEAD)
        for process in processes:
            threading.Thread(target=self._drive, args=(process, vault), daemon=True).start()

    def answers(self) -> Iterator[_Done]:
        """Yield each chunk's number with who has read it and what, as they come; None for what a process failed at.

        Raises a fault of ours that a thread met.
        """
        for _ in self._chunks:
            done = self._done.get()
            if isinstance(done, Exception):
                raise done
            yield done
            self._free.release()

    def end(self) -> None:
        """Ask for nothing more, so that the threads end."""
        while self._next() is not None:
            pass
        for _ in self._processes:
            self._free.release()

    def _next(self) -> int | None:
        """Return the next chunk to ask for, None if there is no more."""
        with suppress(queue.Empty):
            return self._todo.get_nowait()
        return None

    def _take(self) -> int | None:
        """The same, but not before there is room for its answer."""
        self._free.acquire()
        return self._next()

    def _drive(self, process: ReaderProcess, vault: VaultConfig) -> None:
        try:
            process.use(vault)
            asked: deque[int] = deque()
            number = self._take()
            while number is not None or asked:
                if number is not None and process.ask(self._chunks[number], ahead=len(asked)):
                    asked.append(number)
                    number = self._take()
                else:
                    first = asked.popleft()
                    self._done.put((first, process, process.answer(self._chunks[first])))
        except Exception as error:  # noqa: BLE001  raised by the thread that waits
            self._done.put(error)


class ReaderProcess:
    """One reader process; after a failure it does nothing more and answers None."""

    def __init__(self, keep_links: bool) -> None:
        self._child = start_child(keep_links)
        self._works = True

    def close(self) -> None:
        """End it."""
        self._child.end()

    def use(self, vault: VaultConfig) -> None:
        """Read files of this vault from now on."""
        self._send(("use", vault))

    def ask(self, chunk: Chunk, *, ahead: int) -> bool:
        """Ask for the facts of a chunk; False if it has to wait, with `ahead` requests not answered yet.

        One request may wait in the pipe, so that the process never waits for us. Both would wait for ever
        if the request did not fit in it while the process writes an answer.
        """
        if ahead > (1 if self._child.room else 0):
            return False
        request = files_to_bytes(chunk[1])
        if ahead and len(request) > self._child.room:
            return False
        self._send(("read", chunk[0], request))
        return True

    def answer(self, chunk: Chunk) -> Answer | None:
        """Return what was read of the chunk that was asked for first, None if the process has failed."""
        answer = self._receive()
        return None if answer is None else (facts_from(answer[0], chunk[1]), answer[1])

    def resolve(self, names: bytes, rejected: frozenset[str]) -> None:
        """Ask for the links of all that it has read: `names` are rows of `resolution.name_rows` as bytes."""
        self._send(("resolve", names, rejected))

    def resolved(self) -> Resolved | None:
        """Return what became of the next chunk that this process has read."""
        data = self._receive()
        if data is None:
            return None
        sources, settled = marshal.loads(data)
        return [SourceLinks._make(source) for source in sources], settled

    def _send(self, message: tuple[Any, ...]) -> None:
        if self._works:
            try:
                pickle.dump(message, self._child.sink, pickle.HIGHEST_PROTOCOL)
                self._child.sink.flush()
            except _FAILURES:
                self._works = False

    def _receive(self) -> Any:
        if self._works:
            try:
                return pickle.load(self._child.source)
            except _FAILURES:
                self._works = False
        return None
