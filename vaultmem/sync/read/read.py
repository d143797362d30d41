"""Read changed files: here for few, in reader processes for many; those can also resolve the links they read.

Processes are plain children with pipes (`sync.read.processes`), so it does not matter how our own program was
started. What a process that failed should have done is done here.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any

from vaultmem.base.values import SourceFile
from vaultmem.index.operations import FileFacts
from vaultmem.index.resolution import Resolved
from vaultmem.settings.rules import VaultConfig
from vaultmem.sync.read.file_facts import FactsReader, PreparedStore
from vaultmem.sync.read.requests import Feed, ReaderProcess

PARALLEL_FROM = 600
"""Fewer files are read faster than processes start."""
MAX_READERS = 4
_CHUNK = 48

Ready = Callable[[Sequence[FileFacts]], None]


class Readers:
    """The readers of one run; `close` ends their processes, if any were started."""

    def __init__(self, store: PreparedStore, *, keep_links: bool = False) -> None:
        """What is parsed goes to `store`; with `keep_links` processes also keep the links for `resolve`."""
        self._store = store
        self._keep_links = keep_links
        self._processes: list[ReaderProcess] = []
        self._readers_of: list[ReaderProcess | None] = []
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
                self._processes.append(ReaderProcess(self._keep_links))

    def _read_parallel(
        self, vault: VaultConfig, files: Sequence[SourceFile], progress: Callable[[int], None], ready: Ready
    ) -> list[FileFacts]:
        chunks = [files[start : start + _CHUNK] for start in range(0, len(files), _CHUNK)]
        first_refs = [self._store.reserve(len(chunk)) for chunk in chunks]
        results: list[list[FileFacts] | None] = [None for _ in chunks]
        readers: list[ReaderProcess | None] = [None for _ in chunks]
        told = 0
        here = FactsReader(vault, self._store)
        feed = Feed(self._processes, vault, list(zip(first_refs, chunks, strict=True)))
        try:
            for number, process, answer in feed.answers():
                if answer is None:
                    results[number] = here.read_all(chunks[number])
                else:
                    results[number], readers[number] = answer[0], process
                    self._store.put_all(first_refs[number], answer[1])
                progress(len(chunks[number]))
                while told < len(chunks) and (part := results[told]) is not None:
                    ready(part)
                    told += 1
        finally:
            feed.end()
            here.close()
        self._readers_of += readers
        return [facts for result in results if result is not None for facts in result]

    def resolve(self, table: Sequence[tuple[Any, ...]], rejected: Collection[str]) -> Iterator[Resolved]:
        """Resolve the links of all files that processes have read; `table` holds `resolution.name_rows`.

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
