"""state.db: identities, times, held mappings, events, counters, decisions, receipts, audit.

Nothing in it can be derived from files, so it is never rebuilt and never replaced: it migrates
forward after a copy, and a newer one is refused. Everything is keyed by scope, scope id and key
(or the path that a key is derived from), so that renaming a vault or moving a mapping loses nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from vaultmem.base.errors import StateUnavailable
from vaultmem.base.files import can_write_in, ensure_private_folder
from vaultmem.base.locks import file_lock
from vaultmem.base.values import Binding, Finding, Severity
from vaultmem.index.operations import FirstSeen, IdentityChange
from vaultmem.state.memories import MemoryState

SCHEMA_VERSION = 2
OPEN_WAIT_S = 15.0
EVENT_RUNS = 50
"""Runs whose events are kept."""

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE identity (scope TEXT NOT NULL, scope_id TEXT NOT NULL, rel TEXT NOT NULL, key TEXT NOT NULL,
    PRIMARY KEY (scope, scope_id, rel)) WITHOUT ROWID;
CREATE TABLE times (scope TEXT NOT NULL, scope_id TEXT NOT NULL, rel TEXT NOT NULL, content_hash TEXT NOT NULL,
    mtime_ns INTEGER NOT NULL, PRIMARY KEY (scope, scope_id, rel, content_hash)) WITHOUT ROWID;
CREATE TABLE held (vault TEXT NOT NULL, folder TEXT NOT NULL, code TEXT NOT NULL, notes INTEGER NOT NULL,
    since TEXT NOT NULL, message TEXT NOT NULL, PRIMARY KEY (vault, folder)) WITHOUT ROWID;
CREATE TABLE run (id INTEGER PRIMARY KEY, at TEXT NOT NULL, summary TEXT NOT NULL);
CREATE TABLE event (run_id INTEGER NOT NULL, code TEXT NOT NULL, severity TEXT NOT NULL, vault TEXT NOT NULL,
    path TEXT NOT NULL, line INTEGER NOT NULL, message TEXT NOT NULL);
CREATE TABLE counter (scope TEXT NOT NULL, scope_id TEXT NOT NULL, key TEXT NOT NULL,
    access_count INTEGER NOT NULL, last_accessed_at TEXT NOT NULL, PRIMARY KEY (scope, scope_id, key)) WITHOUT ROWID;
CREATE TABLE decision (edge_id TEXT PRIMARY KEY, status TEXT NOT NULL, at TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE deindexed (scope TEXT NOT NULL, scope_id TEXT NOT NULL, key TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (scope, scope_id, key)) WITHOUT ROWID;
CREATE TABLE receipt (id INTEGER PRIMARY KEY, scope TEXT NOT NULL, scope_id TEXT NOT NULL, key TEXT NOT NULL,
    provider TEXT NOT NULL, session TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE audit (id INTEGER PRIMARY KEY, at TEXT NOT NULL, event TEXT NOT NULL, detail TEXT NOT NULL)
"""
_SINCE_2 = """
CREATE TABLE project_alias (alias TEXT PRIMARY KEY, project_id TEXT NOT NULL, kind TEXT NOT NULL,
    created_at TEXT NOT NULL) WITHOUT ROWID
"""


def state_path(home: str) -> str:
    """Return the path of state.db."""
    return os.path.join(home, "state.db")


@dataclass(frozen=True, slots=True)
class Held:
    """A mapping whose notes are missing for now: its rows are kept until they return or are given up."""

    vault: str
    folder: str
    code: str
    notes: int
    since: str
    message: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """Keys by (scope, scope id, path) and times by (scope, scope id, path, content hash); see `StateStore`."""

    keys: dict[tuple[str, ...], str]
    times: dict[tuple[str, ...], int]

    def key_of(self, binding: Binding, rel: str) -> str:
        """See `StateStore.key_of`."""
        return self.keys.get((*_binding(binding), rel), "")

    def first_seen(self, binding: Binding, rel: str, content_hash: str) -> int:
        """See `StateStore.first_seen`."""
        return self.times.get((*_binding(binding), rel, content_hash), 0)


class StateStore:
    """One open state.db; every method is one transaction."""

    def __init__(self, path: str) -> None:
        """Open or create it. Raises StateUnavailable when it is newer, damaged or not writable."""
        self.path = path
        if not can_write_in(os.path.dirname(path)):
            self._open_read_only()
            return
        ensure_private_folder(os.path.dirname(path))
        existed = os.path.exists(path)
        try:
            if existed and os.path.getsize(path):
                self._open(existed)
            else:  # one process at a time makes it
                lock = os.path.join(os.path.dirname(path), "locks", "open.lock")
                with file_lock(lock, wait_s=OPEN_WAIT_S, what="making state.db"):
                    self._open(existed)
        except sqlite3.DatabaseError as error:
            raise StateUnavailable(
                f"{path} can't be used: {error}",
                "It holds what can't be rebuilt: restore it from a backup, or move it away to start without",
            ) from None
        with suppress(OSError):
            os.chmod(path, 0o600)

    def _open(self, existed: bool) -> None:
        self._db = sqlite3.connect(self.path, timeout=5.0, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._prepare(existed)

    def _open_read_only(self) -> None:
        try:
            self._db = sqlite3.connect(f"file:{quote(self.path)}?immutable=1", uri=True, isolation_level=None)
            self._db.execute("SELECT count(*) FROM held").fetchone()
        except sqlite3.DatabaseError as error:
            raise StateUnavailable(
                f"{self.path} can't be read: {error}", "Make its folder writable, then run: vaultmem doctor"
            ) from None

    def _prepare(self, existed: bool) -> None:
        version = int(self._db.execute("PRAGMA user_version").fetchone()[0])
        if version > SCHEMA_VERSION:
            self._db.close()
            raise StateUnavailable(
                f"{self.path} was written by a newer vaultmem (schema {version}, this one knows {SCHEMA_VERSION})",
                "Use the newer vaultmem",
            )
        if version == SCHEMA_VERSION:
            return
        if existed and version:
            shutil.copy2(self.path, f"{self.path}.v{version}.bak")
        self._db.execute("BEGIN IMMEDIATE")
        found = int(self._db.execute("PRAGMA user_version").fetchone()[0])
        for since, tables in ((1, _TABLES), (2, _SINCE_2)):
            for statement in tables.split(";\n") if found < since else ():
                self._db.execute(statement)
        self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    # -- identities and times (sync.plan.Identities) ----------------------------------------------

    def key_of(self, binding: Binding, rel: str) -> str:
        """Return the kept key of a path, or ""."""
        row = self._db.execute(
            "SELECT key FROM identity WHERE scope = ? AND scope_id = ? AND rel = ?", (*_binding(binding), rel)
        ).fetchone()
        return str(row[0]) if row else ""

    def first_seen(self, binding: Binding, rel: str, content_hash: str) -> int:
        """Return when (ns) this text was first seen at that path, if the file's own time says otherwise; else 0."""
        row = self._db.execute(
            "SELECT mtime_ns FROM times WHERE scope = ? AND scope_id = ? AND rel = ? AND content_hash = ?",
            (*_binding(binding), rel, content_hash),
        ).fetchone()
        return int(row[0]) if row else 0

    def remembered(self) -> Remembered:
        """Return both tables as they are now: one look for a whole vault."""
        keys = self._db.execute("SELECT scope, scope_id, rel, key FROM identity")
        times = self._db.execute("SELECT scope, scope_id, rel, content_hash, mtime_ns FROM times")
        return Remembered({tuple(place): key for *place, key in keys}, {tuple(text): time for *text, time in times})

    def record(self, identities: Iterable[IdentityChange], times: Iterable[FirstSeen]) -> None:
        """Write what a plan changes of identities and times; the same plan twice is harmless."""
        identities, times = list(identities), list(times)
        if not identities and not times:
            return
        self._db.execute("BEGIN IMMEDIATE")
        for change in identities:
            place = (*_binding(change.binding), change.rel)
            if change.key:
                self._db.execute("INSERT OR REPLACE INTO identity VALUES (?,?,?,?)", (*place, change.key))
            else:
                self._db.execute("DELETE FROM identity WHERE scope = ? AND scope_id = ? AND rel = ?", place)
        for seen in times:
            self._db.execute(
                "INSERT OR REPLACE INTO times VALUES (?,?,?,?,?)",
                (*_binding(seen.binding), seen.rel, seen.content_hash, seen.mtime_ns),
            )
        self._db.execute("COMMIT")

    # -- guards and events ----------------------------------------------------------------------

    def held(self) -> list[Held]:
        """Return the mappings that are held."""
        rows = self._db.execute("SELECT vault, folder, code, notes, since, message FROM held ORDER BY vault, folder")
        return [Held(*row) for row in rows]

    def set_held(self, vaults: Iterable[str], held: Iterable[Held]) -> None:
        """Replace what is held of these vaults; the time since when stays."""
        before = {(item.vault, item.folder): item.since for item in self.held()}
        wanted = list(held)
        names = list(vaults)
        if not before and not wanted:
            return
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("DELETE FROM held WHERE vault = ?", [(name,) for name in names])
        self._db.executemany(
            "INSERT OR REPLACE INTO held VALUES (?,?,?,?,?,?)",
            [(h.vault, h.folder, h.code, h.notes, before.get((h.vault, h.folder), h.since), h.message) for h in wanted],
        )
        self._db.execute("COMMIT")

    def record_run(self, at: str, summary: dict[str, object], events: Iterable[Finding]) -> None:
        """Keep a run that did something, with its events; old runs are dropped."""
        self._db.execute("BEGIN IMMEDIATE")
        cursor = self._db.execute("INSERT INTO run VALUES (NULL,?,?)", (at, json.dumps(summary)))
        run_id = int(cursor.lastrowid or 0)
        self._db.executemany(
            "INSERT INTO event VALUES (?,?,?,?,?,?,?)",
            [(run_id, e.code, e.severity, e.vault, e.path, e.line, e.message) for e in events],
        )
        self._db.execute("DELETE FROM event WHERE run_id <= ?", (run_id - EVENT_RUNS,))
        self._db.execute("DELETE FROM run WHERE id <= ?", (run_id - EVENT_RUNS,))
        self._db.execute("COMMIT")

    def events(self) -> list[tuple[str, Finding]]:
        """Return the events of recent runs, newest first, each with its time."""
        rows = self._db.execute(
            "SELECT r.at, e.code, e.severity, e.path, e.line, e.message, e.vault FROM event e JOIN run r "
            "ON r.id = e.run_id ORDER BY r.id DESC, e.vault, e.path, e.code"
        )
        return [(row[0], Finding(*row[1:])) for row in rows]

    def last_run(self) -> str:
        """Return the time of the last run that did something, or ""."""
        row = self._db.execute("SELECT at FROM run ORDER BY id DESC LIMIT 1").fetchone()
        return str(row[0]) if row else ""

    @property
    def memory(self) -> MemoryState:
        """What is kept of memories: receipts, counters, forgotten keys, aliases, decisions, audit."""
        return MemoryState(self._db)


def severity_of(text: str) -> Severity:
    """Return a stored severity as its type."""
    return "error" if text == "error" else "warn" if text == "warn" else "info"


def _binding(binding: Binding) -> tuple[str, str]:
    return binding.scope, binding.scope_id or ""
