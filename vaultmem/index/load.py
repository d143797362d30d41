"""New notes, written while other notes are still being read: for the load of an empty index.

Reading is done by other processes and writing takes as long, so the two run side by side. A note's
key and standing are only settled by the plan; those that it will nearly always get are written
early, and what the plan decides otherwise is written anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vaultmem.index.notes import NoteWriter
from vaultmem.index.operations import FileFacts, Put


class EarlyNotes:
    """The notes of a load, as they were written early."""

    def __init__(self, writer: NoteWriter, likely: Callable[[FileFacts], Put]) -> None:
        self._writer = writer
        self._likely = likely
        self._written: dict[tuple[str, str], tuple[int, Put]] = {}
        """(vault, raw path) to row id and what was written."""

    def take(self, read: Sequence[FileFacts]) -> None:
        """Write notes that were read; call it in the order of the scan, inside the transaction."""
        for facts in read:
            if facts.status == "ok":
                put = self._likely(facts)
                file_id = self._writer.write_file(facts, 0)
                self._writer.put(put, file_id, is_new=True)
                self._written[facts.file.vault, facts.file.raw_path] = file_id, put

    def settle(self, puts: Sequence[Put], progress: Callable[[int], None]) -> list[int]:
        """Make what was written equal to a plan; return the row ids in the order of `puts`."""
        ids = []
        for put in puts:
            file_id, early = self._written.pop((put.facts.file.vault, put.facts.file.raw_path))
            if put != early:
                self._writer.put(put, file_id, is_new=False)
            ids.append(file_id)
            progress(1)
        for file_id, _ in self._written.values():
            self._writer.drop(file_id)
        return ids
