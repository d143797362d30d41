"""List, show and links: looking at notes without ranking them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any
from unicodedata import normalize

from vaultmem.access.filters import NoteFilter, combine, filter_sql, reader_of
from vaultmem.access.session import Session
from vaultmem.access.visibility import Purpose, may_show
from vaultmem.base.errors import NoteNotFound, UsageError
from vaultmem.base.values import Finding, Hit
from vaultmem.health.findings import note_findings
from vaultmem.index.queries import ON_DISK
from vaultmem.recall.hits import load_hits
from vaultmem.sync.freshness import look_at_files
from vaultmem.text.terms import Query

ALL_CHARS = 1 << 40


@dataclass(frozen=True, slots=True)
class ListResult:
    """Notes, newest first; `total` counts all that the filter lets through."""

    total: int
    truncated: bool
    hits: tuple[Hit, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShowResult:
    """One whole note and what is reported about it."""

    hit: Hit
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LinksResult:
    """A note's links out and in, as `vaultmem.links/1` writes them."""

    key: str
    path: str
    outgoing: tuple[dict[str, Any], ...]
    incoming: tuple[dict[str, Any], ...]


def list_notes(session: Session, wanted: NoteFilter, limit: int, *, sweep: bool = True) -> ListResult:
    """Return notes by time, newest first. Raises UsageError for a bad limit (0 means all)."""
    if limit < 0:
        raise UsageError(f"limit is {limit}", "Use 1 or more, or 0 for all")

    def action() -> ListResult:
        where = combine(may_show(session.config, "list", reader_of(session, wanted)), filter_sql(wanted))
        connection = session.connection()
        total = connection.execute(f"SELECT count(*) FROM note n WHERE {where.sql}", where.parameters).fetchone()[0]
        sql = (
            f"SELECT n.id FROM note n WHERE {where.sql} "
            "ORDER BY n.updated_at DESC, n.scope, n.scope_id, n.key, n.vault, n.path LIMIT ?"
        )
        ids = [row[0] for row in connection.execute(sql, (*where.parameters, limit or -1))]
        loaded = load_hits(connection, ids, Query(), session.config.max_recall_body_chars)
        hits = tuple(loaded[note_id] for note_id in ids)
        return ListResult(total, total > len(hits), hits, tuple(session.warnings))

    return session.read(action, sweep=sweep)


def find_note(session: Session, name: str, wanted: NoteFilter, purpose: Purpose) -> int:
    """Return the id of the note with this key or path. Raises NoteNotFound, UsageError when several fit."""
    where = combine(may_show(session.config, purpose, reader_of(session, wanted)), filter_sql(wanted))
    sql = (
        f"SELECT n.id, n.scope, n.scope_id, n.key, n.path FROM note n WHERE {where.sql} AND (n.key = ? OR n.path = ?) "
        "ORDER BY n.key <> ?, n.scope, n.scope_id, n.vault, n.path"
    )
    rows = session.connection().execute(sql, (*where.parameters, name, normalize("NFC", name), name)).fetchall()
    if not rows:
        raise NoteNotFound(f"No visible note has the key or path {name}", "List what there is: vaultmem list")
    if len(rows) > 1 and len({(row[1], row[2]) for row in rows}) > 1:
        places = ", ".join(f"{row[1]}{'/' + row[2] if row[2] else ''}" for row in rows)
        raise UsageError(f"{name} is in several scopes: {places}", "Add --scope and --scope-id")
    return int(rows[0][0])


def show_note(session: Session, name: str, wanted: NoteFilter, *, sweep: bool = True) -> ShowResult:
    """Return one whole note by key or path. Raises NoteNotFound."""

    def action() -> ShowResult:
        note_id = find_note(session, name, wanted, "show")
        connection = session.connection()
        hit = load_hits(connection, [note_id], Query(), ALL_CHARS)[note_id]
        look = look_at_files(session.config, connection, [note_id])
        if look.unknown or look.stale_ids:
            hit = replace(hit, freshness="unknown")
        return ShowResult(hit, tuple(note_findings(connection, note_id)), tuple(session.warnings))

    return session.read(action, sweep=sweep)


def note_links(session: Session, name: str, wanted: NoteFilter, *, sweep: bool = True) -> LinksResult:
    """Return a note's links in both directions. Raises NoteNotFound."""

    def action() -> LinksResult:
        note_id = find_note(session, name, wanted, "links")
        connection = session.connection()
        key, path = connection.execute(f"SELECT n.key, {ON_DISK} FROM note n WHERE n.id = ?", (note_id,)).fetchone()
        shown = may_show(session.config, "links", None if wanted.everyone else session.bindings())
        outgoing = connection.execute(
            f"{_LINK_SQL.format(other='l.target_id', shown=shown.sql)} WHERE l.source_id = ? ORDER BY l.position",
            (*shown.parameters, note_id),
        ).fetchall()
        incoming = connection.execute(
            f"{_LINK_SQL.format(other='l.source_id', shown=shown.sql)} WHERE l.target_id = ? AND "
            "(n.id IS NOT NULL OR f.kind = 'canvas' AND f.excluded = '') ORDER BY f.vault, f.path, l.position",
            (*shown.parameters, note_id),
        ).fetchall()
        return LinksResult(
            key,
            path,
            tuple(_link(row, "target_path") for row in outgoing),
            tuple(_link(row, "source_path") for row in incoming),
        )

    return session.read(action, sweep=sweep)


_LINK_SQL = (
    "SELECT f.raw_path, n.key, l.kind, l.embed, l.subpath, l.display, l.line, l.state, l.via, l.link, l.raw, l.rel, "
    "l.subpath_missing, f.kind FROM link l LEFT JOIN file f ON f.id = {other} "
    "LEFT JOIN note n ON n.id = {other} AND {shown}"
)


def _link(row: tuple[Any, ...], place: str) -> dict[str, Any]:
    """Return a link as JSON; of a file that is not shown not even the path is told."""
    hidden = row[7] == "excluded"
    found = {
        place: None if hidden else row[0],
        "key": row[1],
        "kind": row[2],
        "embed": bool(row[3]),
        "subpath": row[4],
        "display": row[5],
        "line": row[6],
        "state": row[7],
        "via": row[8],
        "link": row[9],
        "raw": row[10],
        "subpath_missing": bool(row[12]),
    }
    if row[11]:
        rel = json.loads(row[11])
        found["relationship"] = {name: rel[name] for name in ("type", "status", "confidence")}
    return found
