"""Read changed files: here for few, in reader processes for many; those can also resolve the links they read.

Processes are plain children with pipes (`sync.child`), so it does not matter how our own program was
started. What a process that failed should have done is done here.
"""

from __future__ import annotations

import marshal
import os
import pickle
import queue
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any

from vaultmem.config_rules import VaultConfig
from vaultmem.index.resolution import Resolved, SourceLinks
from vaultmem.model import SourceFile
from vaultmem.operations import FileFacts
from vaultmem.sync.child import start_child
from vaultmem.sync.facts import FactsReader, PreparedStore
from vaultmem.sync.wire import facts_from, files_to_bytes

PARALLEL_FROM = 600
"""Fewer files are read faster than processes start."""
MAX_READERS = 4
_CHUNK = 48
_Answer = tuple[list[FileFacts], list[bytes]]
_FAILURES = (OSError, EOFError, ValueError, pickle.UnpicklingError)

Ready = Callable[[Sequence[FileFacts]], None]


class Readers:
    """The readers of one run; `close` ends their processes, if any were started."""

    def __init__(self, store: PreparedStore, *, keep_links: bool = False) -> None:
        """What is parsed goes to `store`; with `keep_links` processes also keep the links for `resolve`."""
        self._store = store
        self._keep_links = keep_links
        self._processes: list[_Process] = []
        self._readers_of: list[_Process | None] = []
        """Which process has read each chunk, in the order of reading; None: it was read here."""

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.close()
        self._processes.clear()

    def read(
        self,
        vault: VaultConfig,
        files: Sequence[SourceFile],
        progress: Callable[[int], None],
        ready: Ready = lambda facts: None,
    ) -> list[FileFacts]:
        """Return the facts of `files` in their order.

        `ready` is called with parts of the facts in that order, as soon as they are there.
        """
        to_open = sum(1 for file in files if file.kind != "other")
        count = min(MAX_READERS, os.cpu_count() or 1)
        if to_open >= PARALLEL_FROM and count >= 2 and not self._processes:
            self._start(count)
        if to_open < PARALLEL_FROM or not self._processes:
            reader = FactsReader(vault, self._store)
            try:
                facts = reader.read_all(files, progress)
            finally:
                reader.close()
            ready(facts)
            return facts
        return self._read_parallel(vault, files, progress, ready)

    def _start(self, count: int) -> None:
        with suppress(OSError):  # no more processes may be allowed, or Python be gone
            for _ in range(count):
                self._processes.append(_Process(self._keep_links))

    def _read_parallel(
        self, vault: VaultConfig, files: Sequence[SourceFile], progress: Callable[[int], None], ready: Ready
    ) -> list[FileFacts]:
        chunks = [files[start : start + _CHUNK] for start in range(0, len(files), _CHUNK)]
        first_refs = [self._store.reserve(len(chunk)) for chunk in chunks]
        todo: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(len(chunks)):
            todo.put(number)
        done: queue.SimpleQueue[tuple[int, _Process, _Answer | Exception | None]] = queue.SimpleQueue()

        def drive(process: _Process) -> None:
            """Feed one process; a chunk that it fails at is answered with None, and a fault of ours with itself."""
            process.use(vault)
            while True:
                try:
                    number = todo.get_nowait()
                except queue.Empty:
                    return
                try:
                    done.put((number, process, process.read(first_refs[number], chunks[number])))
                except Exception as error:  # noqa: BLE001  raised by the thread that waits
                    done.put((number, process, error))

        for process in self._processes:
            threading.Thread(target=drive, args=(process,), daemon=True).start()
        results: list[list[FileFacts] | None] = [None for _ in chunks]
        readers: list[_Process | None] = [None for _ in chunks]
        told = 0
        here = FactsReader(vault, self._store)
        try:
            for _ in chunks:
                number, process, answer = done.get()
                if isinstance(answer, Exception):
                    raise answer
                if answer is None:
                    results[number] = here.read_all(chunks[number], lambda count: None)
                else:
                    results[number], readers[number] = answer[0], process
                    self._store.put_all(first_refs[number], answer[1])
                progress(len(chunks[number]))
                while told < len(chunks) and (part := results[told]) is not None:
                    ready(part)
                    told += 1
        finally:
            here.close()
        self._readers_of += readers
        return [facts for result in results if result is not None for facts in result]

    def resolve(self, table: Sequence[tuple[Any, ...]], rejected: Collection[str]) -> Iterator[Resolved]:
        """Resolve the links of all files that processes have read; `table` holds `resolution.name_row` of all files.

        The processes begin at once; their answers come in the order of reading.
        """
        names = marshal.dumps(list(table))
        for process in self._processes:
            process.resolve(names, frozenset(rejected))
        return self._resolved()

    def _resolved(self) -> Iterator[Resolved]:
        for process in self._readers_of:
            answer = process.resolved() if process is not None else None
            if answer is not None:
                yield answer


class _Process:
    """One reader process; after a failure it does nothing more and answers None."""

    def __init__(self, keep_links: bool) -> None:
        self._child = start_child(keep_links)
        self._works = True

    def close(self) -> None:
        self._child.end()

    def use(self, vault: VaultConfig) -> None:
        """Read files of this vault from now on."""
        self._send(("use", vault))

    def read(self, first_ref: int, files: Sequence[SourceFile]) -> _Answer | None:
        self._send(("read", first_ref, files_to_bytes(files)))
        answer = self._receive()
        return None if answer is None else (facts_from(answer[0], files), answer[1])

    def resolve(self, names: bytes, rejected: frozenset[str]) -> None:
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
