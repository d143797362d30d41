"""Files and notes in the index: their rows, terms, names and findings, written, replaced, marked and removed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from vaultmem.base.values import Finding, ParsedNote
from vaultmem.index import digest
from vaultmem.index.engines.protocol import SearchEngine
from vaultmem.index.operations import FileFacts, Mark, Put
from vaultmem.index.rows import (
    FINDING_INSERT,
    PreparedNote,
    finding_row,
    full_text_columns,
    prepare_note,
    stream_columns,
    times_with,
    with_parents,
)
from vaultmem.notes.keys import note_uid
from vaultmem.notes.links.wikilinks import fold
from vaultmem.settings.config import NATIVE_ID

_NOTE_INSERT = f"INSERT INTO note VALUES ({','.join('?' * 32)})"


class NoteWriter:
    """Writes the files and notes of one transaction; `added` and `removed` go into the digest."""

    def __init__(
        self, connection: sqlite3.Connection, engine: SearchEngine, prepared: Callable[[int], PreparedNote]
    ) -> None:
        self._connection = connection
        self._engine = engine
        self._prepared = prepared
        self.added = 0
        self.removed = 0

    def write_file(self, facts: FileFacts, file_id: int) -> int:
        """Write a file's row, a new one for `file_id` 0, and return its id."""
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
            self._connection.execute(
                "UPDATE file SET vault=?, raw_path=?, path=?, name=?, kind=?, mapping=?, excluded=?, size=?, "
                "mtime_ns=?, ctime_ns=?, inode=?, racy=?, content_hash=? WHERE id=?",
                (*values, file_id),
            )
            return file_id
        cursor = self._connection.execute(f"INSERT INTO file VALUES (NULL,{','.join('?' * 13)})", values)
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def drop(self, file_id: int) -> None:
        """Remove a file's row, its note and findings; its links are `LinkWriter`'s."""
        self._remove_note(file_id)
        self._connection.execute("DELETE FROM finding WHERE file_id = ?", (file_id,))
        self._connection.execute("DELETE FROM file WHERE id = ?", (file_id,))

    # -- notes ----------------------------------------------------------------------------------

    def _remove_note(self, note_id: int) -> None:
        row = self._connection.execute(
            f"SELECT searchable, note_digest, key, {STREAM_COLUMNS} FROM note WHERE id = ?", (note_id,)
        ).fetchone()
        if row is None:
            return
        if row[0]:
            columns = full_text_columns(stream_columns(*row[3:]), row[2])
            self._engine.remove(self._connection, note_id, columns)
        self._count(row[1], None)
        for table in ("alias", "tag"):
            self._connection.execute(f"DELETE FROM {table} WHERE note_id = ?", (note_id,))
        self._connection.execute("DELETE FROM note WHERE id = ?", (note_id,))

    def put(self, put: Put, note_id: int, *, is_new: bool) -> None:
        """Write the note and the findings of a file whose row is there; `is_new`: nothing has to give way."""
        facts = put.facts
        if not is_new:
            self._remove_note(note_id)
            self._connection.execute("DELETE FROM finding WHERE file_id = ?", (note_id,))
        findings = [*facts.findings, *([put.collision] if put.collision else [])]
        if not facts.file.holds_note:
            self._write_findings(note_id, facts.file.vault, findings)
            return
        note = self._prepared(facts.ref) if facts.ref >= 0 else EMPTY_NOTE
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
        self._connection.execute(_NOTE_INSERT, _in_order(values))
        if values["searchable"]:
            self._engine.add(self._connection, note_id, full_text_columns(streams, values["key"]))
            if aliases:
                rows = [(vault, alias, note_id) for alias in aliases]
                self._connection.executemany("INSERT INTO alias VALUES (?,?,?)", rows)
            if tags:
                self._connection.executemany("INSERT INTO tag VALUES (?,?)", [(tag, note_id) for tag in tags])
        self._write_findings(note_id, vault, findings)
        self._count(None, values["note_digest"])

    def _write_findings(self, file_id: int, vault: str, findings: Sequence[Finding]) -> None:
        if findings:
            self._connection.executemany(FINDING_INSERT, [finding_row(file_id, vault, found) for found in findings])

    def mark(self, mark: Mark) -> None:
        """Give an unchanged note another key or standing; its text is in the row."""
        row = self._connection.execute("SELECT * FROM note WHERE id = ?", (mark.file.id,)).fetchone()
        if row is None:
            return
        values: dict[str, Any] = dict(zip(_NOTE_FIELDS, row, strict=True))
        kept = self._connection.execute(
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
        self._connection.execute("DELETE FROM finding WHERE file_id = ?", (mark.file.id,))
        values["key"] = mark.key
        values["quarantine"] = mark.quarantine
        values["uid"] = note_uid(values["vault"], values["scope"], values["scope_id"] or None, mark.key)
        self._insert_note(values, findings, streams, sorted(set(aliases)), sorted(set(tags)))

    def _count(self, old: bytes | None, new: bytes | None) -> None:
        self.removed += int.from_bytes(old, "big") if old else 0
        self.added += int.from_bytes(new, "big") if new else 0


EMPTY_NOTE = prepare_note(ParsedNote("", None, (), (), (), (), (), (), None, (), "", 1, ()), "")

_NOTE_FIELDS = (
    *("id", "uid", "vault", "path", "rel", "key", "claimed_key", "scope", "scope_id", "source_kind", "type", "managed"),
    *("mapping", "title", "created_at", "updated_at", "token_estimate", "content_hash", "own_quarantine", "quarantine"),
    *("searchable", "note_digest", "fixed_hash", "body_line", "body_size", "tags", "aliases", "headings", "blocks"),
    *("sections", "properties", "body"),
)
_in_order = itemgetter(*_NOTE_FIELDS)
STREAM_COLUMNS = "title, path, aliases, tags, headings, properties, body"
_IN_DIGEST = (
    *("uid", "vault", "path", "rel", "key", "claimed_key", "scope", "scope_id", "source_kind", "mapping", "created_at"),
    *("updated_at", "content_hash", "own_quarantine", "quarantine", "fixed_hash", "body_size"),
)
_told_in_digest = itemgetter(*_IN_DIGEST)


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
        **dict(zip(_FROM_PREPARED, _from_prepared(prepared), strict=True)),
    }


_FROM_PREPARED = (
    *("type", "managed", "title", "token_estimate", "fixed_hash", "body_line", "tags", "aliases", "headings", "blocks"),
    *("sections", "properties", "body"),
)
TEXT_COLUMNS = tuple(name for name in _FROM_PREPARED if name != "fixed_hash")
"""Columns of a note that follow from its file's text alone, as a `PreparedNote` names them."""
_from_prepared = attrgetter(*_FROM_PREPARED)


def _note_digest(values: dict[str, Any], findings: Sequence[Finding]) -> bytes:
    rows = sorted((f.path, f.code, f.severity, f.line, f.message) for f in findings)
    return digest.row_hash("note", [*_told_in_digest(values), rows])
