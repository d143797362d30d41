"""Reading a CAO home's database, once and read-only: access counts, rejected relationships, project aliases.

Tables: reference/scopes-and-identity.md ("memory_metadata", "Aliases") and relationships.md
("Table"). A table or column that is not there gives no rows; nothing is ever written.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from urllib.parse import quote

DATABASE = os.path.join("db", "cli-agent-orchestrator.db")


@dataclass(frozen=True, slots=True)
class CaoState:
    """What people and agents left there that can't be derived from topics.

    `counts`: scope, scope id or "", key, count, time; `rejected`: scope, scope id or "", source, target,
    type; `aliases`: alias, project id, kind.
    """

    counts: tuple[tuple[str, str, str, int, str], ...] = ()
    rejected: tuple[tuple[str, str, str, str, str], ...] = ()
    aliases: tuple[tuple[str, str, str], ...] = ()


def read_cao_state(home: str) -> CaoState:
    """Return what a CAO home's database keeps; empty when there is none. Raises sqlite3.Error for a damaged one."""
    path = os.path.join(home, DATABASE)
    if not os.path.isfile(path):
        return CaoState()
    db = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=5.0)
    try:
        counts = _rows(
            db,
            "SELECT scope, coalesce(scope_id, ''), key, access_count, coalesce(last_accessed_at, '') "
            "FROM memory_metadata WHERE access_count > 0",
        )
        rejected = _rows(
            db,
            "SELECT scope, coalesce(scope_id, ''), source_key, target_key, type FROM memory_relationships "
            "WHERE status IN ('rejected', 'deleted')",
        )
        aliases = _rows(db, "SELECT alias, project_id, kind FROM project_aliases")
    finally:
        db.close()
    return CaoState(
        tuple((str(r[0]), str(r[1]), str(r[2]), r[3], str(r[4])) for r in counts if isinstance(r[3], int)),
        tuple((str(r[0]), str(r[1]), str(r[2]), str(r[3]), str(r[4])) for r in rejected),
        tuple((str(r[0]), str(r[1]), str(r[2])) for r in aliases),
    )


def _rows(db: sqlite3.Connection, sql: str) -> list[tuple[object, ...]]:
    try:
        return db.execute(sql).fetchall()
    except sqlite3.OperationalError as error:
        if "no such" in str(error):
            return []
        raise
