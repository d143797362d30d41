"""Carry out a plan in one transaction; readers see the state before or after, nothing between.

Order inside: rows that go, rows that come or change, notes whose standing changed, then links.
Nothing is decided here but where links lead, by the pure rule of `notes.resolve`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from vaultmem.config import NATIVE_ID
from vaultmem.index import digest
from vaultmem.index.early import EarlyTerms
from vaultmem.index.links import LinkWriter
from vaultmem.index.queries import chunked
from vaultmem.index.rows import (
    PreparedNote,
    full_text_columns,
    prepare_note,
    stream_columns,
    times_with,
    with_parents,
)
from vaultmem.index.schema import create_late_indexes, drop_late_indexes, read_meta, write_meta
from vaultmem.index.search import SearchEngine
from vaultmem.model import Finding, ParsedNote
from vaultmem.notes.keys import note_uid
from vaultmem.notes.wikilinks import fold
from vaultmem.operations import Drop, FileFacts, Mark, Plan, Put

MANY_LINKS = 1_000
"""From so many sources on, all names are read at once instead of one by one."""
_NOTE_INSERT = f"INSERT INTO note VALUES ({','.join('?' * 32)})"


class Applier:
    """Applies plans to one open index."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        engine: SearchEngine,
        prepared: Callable[[int], PreparedNote],
        rejected: Collection[str] = frozenset(),
    ) -> None:
        self._rejected = rejected
        self.connection = connection
        self.engine = engine
        self.prepared = prepared
        self._added = 0
        self._removed = 0
        self._rows: dict[str, int] = {}
        self._bulk = False
        self._early: EarlyTerms | None = None

    def begin_load(self, files: int, key_of: Callable[[FileFacts], str]) -> EarlyTerms | None:
        """Begin the transaction of a load of `files` files into an empty index; None if it is none, or a small one.

        Terms can be written from then on; `apply` ends the transaction, or `abort`.
        """
        connection = self.connection
        if files <= MANY_LINKS or connection.execute("SELECT 1 FROM file LIMIT 1").fetchone() is not None:
            return None
        self.engine.prepare_bulk(connection)
        self._bulk = True
        connection.execute("BEGIN IMMEDIATE")
        drop_late_indexes(connection)
        self._early = EarlyTerms(connection, self.engine, self.prepared, key_of)
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
    ) -> None:
        """Apply a plan with the scan's findings by vault and meta values. Raises sqlite3.Error (rolled back)."""
        connection = self.connection
        if not self._bulk:
            connection.execute("BEGIN IMMEDIATE")
        try:
            self._write(plan, scan_findings, progress)
            if self._early is not None:
                self._early.end()
            if self._bulk:
                create_late_indexes(connection)
            self._finish(meta)
            connection.execute("COMMIT")
        finally:
            self.abort()

    def _write(
        self, plan: Plan, scan_findings: Mapping[str, Sequence[Finding]], progress: Callable[[int], None]
    ) -> None:
        many = len(plan.puts) + len(plan.relinks) > MANY_LINKS
        links = LinkWriter(self.connection, many=many, rejected=self._rejected)
        for drop in plan.drops:
            self._drop(drop, links)
        ids = self._write_files(plan)
        for put, file_id in zip(plan.puts, ids, strict=True):
            self._put_note(put, file_id)
            progress(1)
        for mark in plan.marks:
            self._mark(mark)
        for put, file_id in zip(plan.puts, ids, strict=True):
            note = self.prepared(put.facts.ref) if put.facts.ref >= 0 else None
            links.write(file_id, put.facts, note, is_new=not put.file_id)
            progress(1)
        for source in plan.relinks:
            links.relink(source)
        self._removed += links.removed
        self._added += links.added
        self._rows = {"links": links.link_rows, "edges": links.edge_rows}
        for vault, found in scan_findings.items():
            self._replace_scan_findings(vault, found)

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

    def _count(self, old: bytes | None, new: bytes | None) -> None:
        self._removed += int.from_bytes(old, "big") if old else 0
        self._added += int.from_bytes(new, "big") if new else 0

    # -- files ----------------------------------------------------------------------------------

    def _write_files(self, plan: Plan) -> list[int]:
        """Insert or update the file rows of puts; return their ids in the order of `plan.puts`."""
        ids: list[int] = []
        for put in plan.touched:
            self._write_file(put.facts, put.file_id)
        for put in plan.puts:  # free the names first: moves may swap them
            if put.file_id:
                self.connection.execute("UPDATE file SET raw_path = ? WHERE id = ?", (f"\0{put.file_id}", put.file_id))
        for put in plan.puts:
            ids.append(self._write_file(put.facts, put.file_id))
        return ids

    def _write_file(self, facts: FileFacts, file_id: int) -> int:
        file, signature = facts.file, facts.file.signature
        values = (
            file.vault,
            file.raw_path,
            file.path,
            fold(file.path.rpartition("/")[2]),
            file.kind,
            file.mapping,
            file.excluded_by,
            signature.size,
            signature.mtime_ns,
            signature.ctime_ns,
            signature.inode,
            int(facts.racy),
            facts.content_hash,
        )
        if file_id:
            self.connection.execute(
                "UPDATE file SET vault=?, raw_path=?, path=?, name=?, kind=?, mapping=?, excluded=?, size=?, "
                "mtime_ns=?, ctime_ns=?, inode=?, racy=?, content_hash=? WHERE id=?",
                (*values, file_id),
            )
            return file_id
        new_id = self._early.ids[file.vault, file.raw_path] if self._early is not None else None
        cursor = self.connection.execute(f"INSERT INTO file VALUES (?,{','.join('?' * 13)})", (new_id, *values))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _drop(self, drop: Drop, links: LinkWriter) -> None:
        self._remove_note(drop.file.id)
        links.remove(drop.file.id)
        self.connection.execute("DELETE FROM finding WHERE file_id = ?", (drop.file.id,))
        self.connection.execute("DELETE FROM file WHERE id = ?", (drop.file.id,))

    # -- notes ----------------------------------------------------------------------------------

    def _remove_note(self, note_id: int) -> None:
        row = self.connection.execute(
            f"SELECT searchable, note_digest, key, {STREAM_COLUMNS} FROM note WHERE id = ?", (note_id,)
        ).fetchone()
        if row is None:
            return
        if row[0]:
            columns = full_text_columns(stream_columns(*row[3:]), row[2])
            self.engine.remove(self.connection, note_id, columns)
        self._count(row[1], None)
        for table in ("alias", "tag"):
            self.connection.execute(f"DELETE FROM {table} WHERE note_id = ?", (note_id,))
        self.connection.execute("DELETE FROM note WHERE id = ?", (note_id,))

    def _put_note(self, put: Put, note_id: int) -> None:
        facts = put.facts
        if put.file_id:
            self._remove_note(note_id)
            self.connection.execute("DELETE FROM finding WHERE file_id = ?", (note_id,))
        findings = [*facts.findings, *([put.collision] if put.collision else [])]
        if facts.file.kind != "note" or facts.file.binding is None:
            self._write_findings(note_id, facts.file.vault, findings)
            return
        note = self.prepared(facts.ref) if facts.ref >= 0 else EMPTY_NOTE
        values = _note_values(put, note, note_id)
        self._insert_note(values, findings, note.streams, note.folded_aliases, note.nested_tags)

    def _insert_note(
        self,
        values: dict[str, Any],
        findings: Sequence[Finding],
        streams: Sequence[str],
        aliases: Sequence[str],
        tags: Sequence[str],
    ) -> None:
        """Insert a note's row, terms, names and findings; a quarantined note gets no terms and names."""
        note_id, vault = values["id"], values["vault"]
        values["searchable"] = int(not values["quarantine"])
        values["note_digest"] = _note_digest(values, findings)
        self.connection.execute(_NOTE_INSERT, tuple(values[name] for name in _NOTE_FIELDS))
        if values["searchable"]:
            if self._early is None or not self._early.settle(note_id, values["key"]):
                self.engine.add(self.connection, note_id, full_text_columns(streams, values["key"]))
            if aliases:
                rows = [(vault, alias, note_id) for alias in aliases]
                self.connection.executemany("INSERT INTO alias VALUES (?,?,?)", rows)
            if tags:
                self.connection.executemany("INSERT INTO tag VALUES (?,?)", [(tag, note_id) for tag in tags])
        self._write_findings(note_id, vault, findings)
        self._count(None, values["note_digest"])

    def _write_findings(self, file_id: int, vault: str, findings: Sequence[Finding]) -> None:
        if findings:
            self.connection.executemany(
                "INSERT INTO finding VALUES (?,?,?,?,?,?,?)",
                [(file_id, vault, f.path, f.code, f.severity, f.line, f.message) for f in findings],
            )

    def _mark(self, mark: Mark) -> None:
        """Give an unchanged note another key or standing; its text is in the row."""
        row = self.connection.execute("SELECT * FROM note WHERE id = ?", (mark.file.id,)).fetchone()
        if row is None:
            return
        values: dict[str, Any] = dict(zip(_NOTE_FIELDS, row, strict=True))
        kept = self.connection.execute(
            "SELECT path, code, severity, line, message FROM finding WHERE file_id = ? "
            "AND code NOT IN ('key_collision', 'path_case_collision', 'edge_limit_exceeded', 'deindexed_retained')",
            (mark.file.id,),
        ).fetchall()
        findings = [Finding(code, severity, path, line, message) for path, code, severity, line, message in kept]
        findings += [mark.collision] if mark.collision else []
        aliases = tuple(fold(alias) for alias in json.loads(values["aliases"]))
        tags = tuple(parent for tag in json.loads(values["tags"]) for parent in with_parents(tag))
        streams = stream_columns(*(values[name] for name in STREAM_COLUMNS.split(", ")))
        self._remove_note(mark.file.id)
        self.connection.execute("DELETE FROM finding WHERE file_id = ?", (mark.file.id,))
        values["key"] = mark.key
        values["quarantine"] = mark.quarantine
        values["uid"] = note_uid(values["vault"], values["scope"], values["scope_id"] or None, mark.key)
        self._insert_note(values, findings, streams, sorted(set(aliases)), sorted(set(tags)))

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


EMPTY_NOTE = prepare_note(ParsedNote("", None, (), (), (), (), (), (), None, (), "", 1, ()), "")

_NOTE_FIELDS = (
    *("id", "uid", "vault", "path", "rel", "key", "claimed_key", "scope", "scope_id", "source_kind", "type", "managed"),
    *("mapping", "title", "created_at", "updated_at", "token_estimate", "content_hash", "own_quarantine", "quarantine"),
    *("searchable", "note_digest", "fixed_hash", "body_line", "body_size", "tags", "aliases", "headings", "blocks"),
    *("sections", "properties", "body"),
)
STREAM_COLUMNS = "title, path, aliases, tags, headings, body"
_IN_DIGEST = (
    *("uid", "vault", "path", "rel", "key", "claimed_key", "scope", "scope_id", "source_kind", "mapping", "created_at"),
    *("updated_at", "content_hash", "own_quarantine", "quarantine", "fixed_hash", "body_size"),
)


def _note_values(put: Put, prepared: PreparedNote, note_id: int) -> dict[str, Any]:
    facts, file = put.facts, put.facts.file
    assert file.binding is not None
    created, updated = times_with(prepared, put.seen_ns)
    scope_id = file.binding.scope_id or ""
    return {
        "id": note_id,
        "uid": note_uid(file.vault, file.binding.scope, file.binding.scope_id, put.key),
        "vault": file.vault,
        "path": file.path,
        "rel": put.rel,
        "key": put.key,
        "claimed_key": facts.claimed_key,
        "scope": file.binding.scope,
        "scope_id": scope_id,
        "source_kind": "native" if file.vault == NATIVE_ID else "vault",
        "mapping": file.mapping,
        "created_at": created,
        "updated_at": updated,
        "content_hash": facts.content_hash,
        "own_quarantine": facts.own_quarantine,
        "quarantine": put.quarantine,
        "body_size": facts.body_size,
        **{name: getattr(prepared, name) for name in _FROM_PREPARED},
    }


_FROM_PREPARED = (
    *("type", "managed", "title", "token_estimate", "fixed_hash", "body_line", "tags", "aliases", "headings", "blocks"),
    *("sections", "properties", "body"),
)


def _note_digest(values: dict[str, Any], findings: Sequence[Finding]) -> bytes:
    rows = sorted((f.path, f.code, f.severity, f.line, f.message) for f in findings)
    return digest.row_hash("note", [*(values[name] for name in _IN_DIGEST), rows])
