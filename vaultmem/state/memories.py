"""The part of state.db that is about memories: who stored, how often read, what was forgotten, and the audit.

Everything is keyed by (scope, scope_id, key), never by a row of the index, so it survives a rebuild.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from vaultmem.base.values import Binding

Identity = tuple[str, str, str]
"""(scope, scope id or "", key)."""
AUDIT_ROWS = 200_000
"""Audit lines that are kept."""


def identity(binding: Binding, key: str) -> Identity:
    """Return a memory's identity as it is stored."""
    return binding.scope, binding.scope_id or "", key


class MemoryState:
    """Reads and writes of one open state.db; every method is one transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    # -- receipts and audit ---------------------------------------------------------------------

    def record_write(
        self, event: str, at: str, binding: Binding, key: str, *, session: str = "", provider: str = "", **detail: Any
    ) -> None:
        """Keep a content-free audit line of a change, and for a store who made it when."""
        self._db.execute("BEGIN IMMEDIATE")
        if event in ("memory_created", "memory_updated"):
            row = (*identity(binding, key), provider, session, at)
            self._db.execute("INSERT INTO receipt VALUES (NULL,?,?,?,?,?,?)", row)
        line = {"key": key, "scope": binding.scope, "scope_id": binding.scope_id or "", **detail}
        self._db.execute("INSERT INTO audit VALUES (NULL,?,?,?)", (at, event, json.dumps(line, sort_keys=True)))
        self._db.execute("DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?", (AUDIT_ROWS,))
        self._db.execute("COMMIT")

    def audit(self, limit: int = -1) -> list[tuple[str, str, str]]:
        """Return audit lines (time, event, detail as JSON), oldest first; `limit`: only the newest so many."""
        rows = self._db.execute("SELECT at, event, detail FROM audit ORDER BY id DESC LIMIT ?", (limit,)).fetchall()
        return [tuple(row) for row in reversed(rows)]

    def receipts(self, binding: Binding, key: str) -> list[tuple[str, str, str]]:
        """Return (provider, session, time) of every store to a memory, oldest first."""
        sql = "SELECT provider, session, at FROM receipt WHERE scope = ? AND scope_id = ? AND key = ? ORDER BY id"
        return [tuple(row) for row in self._db.execute(sql, identity(binding, key))]

    # -- access counts --------------------------------------------------------------------------

    def count_access(self, read: Iterable[Identity], at: str) -> None:
        """Add one to the count of each memory. Raises sqlite3.Error; a lost count loses nothing else."""
        rows = [(*item, at) for item in read]
        if not rows:
            return
        self._db.execute("PRAGMA synchronous = NORMAL")  # a count is not worth a flush to the disk
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(
                "INSERT INTO counter VALUES (?,?,?,1,?) ON CONFLICT DO UPDATE SET "
                "access_count = access_count + 1, last_accessed_at = excluded.last_accessed_at",
                rows,
            )
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self._db.execute("PRAGMA synchronous = FULL")

    def counts(self, wanted: Collection[Identity]) -> dict[Identity, int]:
        """Return the access counts of these memories; those without one are left out."""
        sql = "SELECT access_count FROM counter WHERE scope = ? AND scope_id = ? AND key = ?"
        found = {}
        for item in wanted:
            row = self._db.execute(sql, item).fetchone()
            if row is not None:
                found[item] = int(row[0])
        return found

    def most_read(self, limit: int) -> list[Identity]:
        """Return the identities with the highest counts."""
        sql = "SELECT scope, scope_id, key FROM counter ORDER BY access_count DESC, scope, scope_id, key LIMIT ?"
        return [tuple(row) for row in self._db.execute(sql, (limit,))]

    def adopt_counts(self, rows: Iterable[tuple[str, str, str, int, str]]) -> int:
        """Take over counts (scope, scope id, key, count, time) where we have none yet; return how many."""
        before = self._db.total_changes
        self._db.executemany("INSERT OR IGNORE INTO counter VALUES (?,?,?,?,?)", list(rows))
        return self._db.total_changes - before

    # -- forgotten keys -------------------------------------------------------------------------

    def forgotten(self) -> frozenset[Identity]:
        """Return the memories that were forgotten while their file stays."""
        rows = self._db.execute("SELECT scope, scope_id, key FROM deindexed")
        return frozenset((row[0], row[1], row[2]) for row in rows)

    def forget(self, binding: Binding, key: str, at: str) -> None:
        """Keep a memory out of every view from the next reconcile on."""
        self._db.execute("INSERT OR IGNORE INTO deindexed VALUES (?,?,?,?)", (*identity(binding, key), at))

    def unforget(self, binding: Binding, key: str) -> bool:
        """Undo `forget`; tell whether there was anything to undo."""
        sql = "DELETE FROM deindexed WHERE scope = ? AND scope_id = ? AND key = ?"
        return self._db.execute(sql, identity(binding, key)).rowcount > 0

    # -- aliases, decisions, notes to ourselves ---------------------------------------------------

    def aliases_of(self, project_id: str) -> list[str]:
        """Return other ids under which a project's memories may lie."""
        sql = "SELECT alias FROM project_alias WHERE project_id = ? ORDER BY alias"
        return [str(row[0]) for row in self._db.execute(sql, (project_id,))]

    def add_aliases(self, aliases: Mapping[str, tuple[str, str]], at: str) -> None:
        """Record alias → (project id, kind); a later record wins."""
        known = {
            row[0]: (row[1], row[2]) for row in self._db.execute("SELECT alias, project_id, kind FROM project_alias")
        }
        rows = [(alias, *value, at) for alias, value in aliases.items() if known.get(alias) != value]
        if rows:
            self._db.executemany("INSERT OR REPLACE INTO project_alias VALUES (?,?,?,?)", rows)

    def rejected_edges(self) -> frozenset[str]:
        """Return the ids of edges that a person rejected."""
        return frozenset(row[0] for row in self._db.execute("SELECT edge_id FROM decision WHERE status = 'rejected'"))

    def reject_edges(self, edge_ids: Sequence[str], at: str) -> int:
        """Record rejections; return how many are new."""
        before = self._db.total_changes
        self._db.executemany(
            "INSERT OR IGNORE INTO decision VALUES (?, 'rejected', ?)", [(edge_id, at) for edge_id in edge_ids]
        )
        return self._db.total_changes - before

    def note(self, name: str) -> str:
        """Return a value that we noted, or ""."""
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def set_note(self, name: str, value: str) -> None:
        """Note a value."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?,?)", (name, value))
