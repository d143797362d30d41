"""A reader process: file lists in on one pipe, facts and prepared notes out on another.

It holds no lock and no database, and ends when its input does, so a killed parent leaves nothing behind.
Messages come from our own parent, through a pipe that nobody else has.
"""

from __future__ import annotations

import gc
import marshal
import os
import pickle
import sys
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

from vaultmem.base.garbage import look_rarely
from vaultmem.index.resolution import HeldNames, Resolver, Unsettled, link_rows
from vaultmem.index.rows import PreparedNote, cao_values, link_values
from vaultmem.settings.rules import VaultConfig
from vaultmem.sync.read.file_facts import FactsReader, PreparedStore
from vaultmem.sync.read.messages import facts_to_bytes, files_from

_NICE = 5
"""With it the parent, when it has something to do, gets three quarters of a processor that a reader wants, too."""


class _Collected(PreparedStore):
    """Keeps the notes of one chunk until they are sent."""

    def __init__(self) -> None:
        super().__init__(0)
        self._first_ref = 0
        self.notes: list[PreparedNote] = []

    def begin(self, first_ref: int) -> None:
        """Begin a chunk."""
        self._first_ref = first_ref
        self.notes = []

    def put(self, note: PreparedNote) -> int:
        self.notes.append(note)
        return self._first_ref + len(self.notes) - 1


class _Worker:
    def __init__(self, keep_links: bool) -> None:
        self._store = _Collected()
        self._keep_links = keep_links
        self._reader: FactsReader | None = None
        self._chunks: list[bytes] = []
        """The links of notes that were read, a chunk each."""

    def use(self, vault: VaultConfig) -> None:
        """Read files of this vault from now on."""
        if self._reader is not None:
            self._reader.close()
        self._reader = FactsReader(vault, self._store)

    def read(self, first_ref: int, files: bytes) -> tuple[bytes, list[bytes]]:
        """Return facts and prepared notes of a chunk of files."""
        assert self._reader is not None
        self._store.begin(first_ref)
        facts = self._reader.read_all(files_from(files))
        notes = self._store.notes
        if self._keep_links:
            sources = [(fact.file, notes[fact.ref - first_ref]) for fact in facts if fact.ref >= 0]
            kept = [(file.vault, file.raw_path, note.links, note.cao_links) for file, note in sources]
            self._chunks.append(marshal.dumps(kept))
        return facts_to_bytes(facts), [note.to_bytes() for note in notes]

    def resolve(self, table: bytes, rejected: Collection[str]) -> Iterator[bytes]:
        """Yield for each chunk that was read `resolution.Resolved` as bytes."""
        names = HeldNames(_taken(marshal.loads(table)))
        resolver = Resolver(names, rejected)
        for chunk in self._chunks:
            sources, settled = [], []
            for vault, raw_path, links, cao_links in marshal.loads(chunk):
                source = names.at(vault, raw_path)
                if source is None:
                    continue
                rows = link_rows(link_values(links), cao_values(cao_links), source.binding, vault)
                try:
                    found = resolver.links_of(source, vault, rows, ())
                except Unsettled:
                    continue
                settled.append(source.id)
                if found is not None:
                    sources.append(tuple(found))
            yield marshal.dumps((sources, settled))


def _taken(rows: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows in order and forget them: of a large vault there are many."""
    rows.reverse()
    while rows:
        yield rows.pop()


def _give_way() -> None:
    """Let the parent go first: while it writes what was read, more of it is of no use."""
    if hasattr(os, "nice"):
        os.nice(_NICE)


def main(keep_links: bool, source: BinaryIO, sink: BinaryIO) -> None:
    """Serve one parent until it closes the pipe; requests come from `source`, answers go to `sink`."""
    sys.stdout = sys.stderr
    _give_way()
    gc.freeze()
    look_rarely()
    worker = _Worker(keep_links)
    while True:
        try:
            request, *values = pickle.load(source)
        except EOFError:
            return
        if request == "use":
            worker.use(*values)
        elif request == "read":
            pickle.dump(worker.read(*values), sink, pickle.HIGHEST_PROTOCOL)
            sink.flush()
        else:
            for answer in worker.resolve(*values):
                pickle.dump(answer, sink, pickle.HIGHEST_PROTOCOL)
                sink.flush()
