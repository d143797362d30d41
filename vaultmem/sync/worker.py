"""A reader process: file lists in on standard input, facts and prepared notes out on standard output.

It holds no lock and no database, and ends when its input does, so a killed parent leaves nothing behind.
"""

from __future__ import annotations

import gc
import pickle
import sys

from vaultmem.index.rows import PreparedNote
from vaultmem.sync.collector import look_rarely
from vaultmem.sync.facts import FactsReader, PreparedStore


class _Collected(PreparedStore):
    """Keeps notes as bytes until they are sent."""

    def __init__(self) -> None:
        super().__init__(0)
        self.notes: list[bytes] = []

    def put(self, note: PreparedNote | bytes) -> int:
        self.notes.append(note if isinstance(note, bytes) else note.to_bytes())
        return len(self.notes) - 1


def main() -> None:
    """Serve one parent: a vault's settings first, then lists of files."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    gc.freeze()
    look_rarely()
    vault = pickle.load(source)  # from our own parent, through a pipe that nobody else has
    store = _Collected()
    reader = FactsReader(vault, store)
    while True:
        try:
            files = pickle.load(source)
        except EOFError:
            return
        store.notes = []
        facts = [reader.read(file) for file in files]
        pickle.dump((facts, store.notes), sink, pickle.HIGHEST_PROTOCOL)
        sink.flush()
