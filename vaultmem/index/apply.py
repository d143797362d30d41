"""Carry out a plan in one transaction; readers see the state before or after, nothing between.

Order inside: rows that go, rows that come or change, notes whose standing changed, then links.
Nothing is decided here but where links lead, by the pure rule of `notes.links.resolve`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from vaultmem.base.values import Finding
from vaultmem.index import digest
from vaultmem.index.engines.protocol import SearchEngine
from vaultmem.index.links import LinkWriter
from vaultmem.index.load import EarlyNotes
from vaultmem.index.notes import NoteWriter
from vaultmem.index.operations import FileFacts, Plan, Put
from vaultmem.index.queries import chunked
from vaultmem.index.resolution import Resolved, name_rows
from vaultmem.index.rows import PreparedNote
from vaultmem.index.schema import create_late_indexes, drop_late_indexes, read_meta, write_meta

MANY_LINKS = 1_000
"""From so many sources on, all names are read at once instead of one by one."""


class LinkReaders(Protocol):
    """Those who have read a load's files and still know their links."""

    def resolve(self, table: Sequence[tuple[Any, ...]], rejected: Collection[str]) -> Iterable[Resolved]:
        """Begin to resolve the links with these names (`name_rows`), and return what becomes of them."""


class Applier:
    """Applies plans to one open index."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        engine: SearchEngine,
        prepared: Callable[[int], PreparedNote],
        rejected: Collection[str] = frozenset(),
    ) -> None:
        self.connection = connection
        self.engine = engine
        self.prepared = prepared
        self._rejected = rejected
        self._notes = NoteWriter(connection, engine, prepared)
        self._added = 0
        self._removed = 0
        self._rows: dict[str, int] = {}
        self._bulk = False
        self._early: EarlyNotes | None = None

    def begin_load(self, files: int, likely: Callable[[FileFacts], Put]) -> EarlyNotes | None:
        """Begin the transaction of a load of `files` files into an empty index; None for a small one.

        Files and notes can be written from then on, as what `likely` tells; `apply` ends the transaction, or `abort`.
        """
        connection = self.connection
        if files <= MANY_LINKS:
            return None
        self.engine.prepare_bulk(connection)
        self._bulk = True
        connection.execute("BEGIN IMMEDIATE")
        drop_late_indexes(connection)
        self._early = EarlyNotes(self._notes, likely)
        return self._early

    def abort(self) -> None:
        """Undo what a load has begun, if anything."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")
        if self._bulk:
            self.engine.end_bulk(self.connection)
            self._bulk = False

    def apply(
        self,
        plan: Plan,
        scan_findings: Mapping[str, Sequence[Finding]],
        meta: dict[str, str],
        progress: Callable[[int], None] = lambda count: None,
        readers: LinkReaders | None = None,
    ) -> None:
        """Apply a plan with the scan's findings by vault and meta values. Raises sqlite3.Error (rolled back).

        In a load `readers` resolve links, and are left out where they can't.
        """
        connection = self.connection
        if not self._bulk:
            connection.execute("BEGIN IMMEDIATE")
        try:
            self._write(plan, scan_findings, progress, readers)
            if self._bulk:
                create_late_indexes(connection, of_links=True)
            self._finish(meta)
            connection.execute("COMMIT")
        finally:
            self.abort()

    def _write(
        self,
        plan: Plan,
        scan_findings: Mapping[str, Sequence[Finding]],
        progress: Callable[[int], None],
        readers: LinkReaders | None,
    ) -> None:
        many = len(plan.puts) + len(plan.relinks) > MANY_LINKS
        links = LinkWriter(self.connection, many=many, rejected=self._rejected)
        for drop in plan.drops:
            links.remove(drop.file.id)
            self._notes.drop(drop.file.id)
        ids = self._early.settle(plan.puts, progress) if self._early is not None else self._put_all(plan, progress)
        for mark in plan.marks:
            self._notes.mark(mark)
        settled = self._end_load(plan, ids, links, readers) if self._early is not None else set()
        for put, file_id in zip(plan.puts, ids, strict=True):
            if file_id not in settled:
                note = self.prepared(put.facts.ref) if put.facts.ref >= 0 else None
                links.write(file_id, put.facts, note, is_new=not put.file_id)
            progress(1)
        for source in plan.relinks:
            links.relink(source)
        for vault, found in scan_findings.items():
            self._replace_scan_findings(vault, found)
        self._removed += links.removed + self._notes.removed
        self._added += links.added + self._notes.added
        self._rows = {"links": links.link_rows, "edges": links.edge_rows}

    def _end_load(self, plan: Plan, ids: Sequence[int], links: LinkWriter, readers: LinkReaders | None) -> set[int]:
        """Make the notes' indexes while readers resolve links; write these, and return the ids of their sources."""
        table = name_rows(plan.puts, ids, self.prepared)
        parts = readers.resolve(table, self._rejected) if readers is not None else ()
        create_late_indexes(self.connection, of_links=False)
        settled: set[int] = set()
        for sources, done in parts:
            links.store(sources)
            settled.update(done)
        return settled

    def _put_all(self, plan: Plan, progress: Callable[[int], None]) -> list[int]:
        """Write the files and notes of a plan; return their ids in the order of `plan.puts`."""
        for put in plan.touched:
            self._notes.write_file(put.facts, put.file_id)
        for put in plan.puts:  # free the names first: moves may swap them
            if put.file_id:
                self.connection.execute("UPDATE file SET raw_path = ? WHERE id = ?", (f"\0{put.file_id}", put.file_id))
        ids = [self._notes.write_file(put.facts, put.file_id) for put in plan.puts]
        for put, file_id in zip(plan.puts, ids, strict=True):
            self._notes.put(put, file_id, is_new=not put.file_id)
            progress(1)
        return ids

    def _finish(self, meta: dict[str, str]) -> None:
        value = int(read_meta(self.connection, "digest", "0") or "0", 16)
        value = (value + self._added - self._removed) % digest.MODULUS
        write_meta(self.connection, "digest", f"{value:064x}")
        generation = int(read_meta(self.connection, "generation", "0")) + 1
        write_meta(self.connection, "generation", str(generation))
        for table, change in self._rows.items():
            write_meta(self.connection, table, str(int(read_meta(self.connection, table, "0")) + change))
        for key, text in meta.items():
            write_meta(self.connection, key, text)

    def _replace_scan_findings(self, vault: str, findings: Sequence[Finding]) -> None:
        new = sorted((vault, f.path, f.code, f.severity, f.line, f.message) for f in findings)
        old = sorted(tuple(row) for row in self.connection.execute(digest.SCAN_FINDINGS + " AND vault = ?", (vault,)))
        if new == old:
            return
        self._removed += digest.total(map(digest.scan_finding_hash, old))
        self._added += digest.total(map(digest.scan_finding_hash, new))
        self.connection.execute("DELETE FROM finding WHERE file_id IS NULL AND vault = ?", (vault,))
        for batch in chunked(new):
            self.connection.executemany("INSERT INTO finding VALUES (NULL,?,?,?,?,?,?)", batch)


def no_notes(ref: int) -> PreparedNote:
    """The lookup of prepared notes for plans that put none."""
    raise KeyError(ref)
