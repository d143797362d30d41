"""Terms of new notes, written while other notes are still being read: for the load of an empty index.

Reading is done by other processes and writing terms takes as long as all other writing, so the two
run side by side. A note's key is only settled by the plan; the one it will nearly always get is
written early, and `Applier` corrects the rest.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from vaultmem.index.rows import PreparedNote, full_text_columns
from vaultmem.index.search import SearchEngine
from vaultmem.operations import FileFacts


class EarlyTerms:
    """Row ids that are given in the order of reading, and the keys under which terms were written."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        engine: SearchEngine,
        prepared: Callable[[int], PreparedNote],
        key_of: Callable[[FileFacts], str],
    ) -> None:
        self._connection = connection
        self._engine = engine
        self._prepared = prepared
        self._key_of = key_of
        self.ids: dict[tuple[str, str], int] = {}
        """(vault, raw path) to row id."""
        self._written: dict[int, tuple[str, int]] = {}
        """Key and prepared note of the terms that are there and not settled yet, by row id."""

    def take(self, read: Sequence[FileFacts]) -> None:
        """Write the terms of notes that were read; call it in the order of the scan, inside the transaction."""
        for facts in read:
            row_id = self.ids[facts.file.vault, facts.file.raw_path] = len(self.ids) + 1
            is_note = facts.file.kind == "note" and facts.file.binding is not None
            if is_note and facts.status == "ok" and facts.ref >= 0 and not facts.own_quarantine:
                key = self._key_of(facts)
                columns = full_text_columns(self._prepared(facts.ref).streams, key)
                self._engine.add(self._connection, row_id, columns)
                self._written[row_id] = key, facts.ref

    def settle(self, row_id: int, key: str) -> bool:
        """Tell whether a note's terms are there under its key; those under another key are removed."""
        written = self._written.pop(row_id, None)
        if written is None or written[0] == key:
            return written is not None
        self._remove(row_id, *written)
        return False

    def end(self) -> None:
        """Remove the terms of notes that did not come to be."""
        for row_id, written in self._written.items():
            self._remove(row_id, *written)

    def _remove(self, row_id: int, key: str, ref: int) -> None:
        columns = full_text_columns(self._prepared(ref).streams, key)
        self._engine.remove(self._connection, row_id, columns)
