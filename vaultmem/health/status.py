"""Status: how the home stands, in counts."""

from __future__ import annotations

import sqlite3
from typing import Any

from vaultmem.access.session import Session
from vaultmem.health.findings import finding_counts
from vaultmem.index import digest
from vaultmem.settings.config import NATIVE_ID
from vaultmem.sync.walk.walk import is_open_folder
from vaultmem.sync.watch.lease import who_watches


def status(session: Session) -> dict[str, Any]:
    """Return `vaultmem.status/1`; reads counts only, and heals nothing but a damaged index."""

    def action() -> dict[str, Any]:
        connection = session.connection()
        held = session.state.held()
        watching = who_watches(session.config.home)
        vaults = []
        for vault in session.config.vaults:
            one = _vault_row(connection, vault.id)
            one["root"] = vault.root
            one["held"] = sum(item.notes for item in held if item.vault == vault.id)
            one["last_reconcile"] = session.state.last_run()
            one["stale"] = not is_open_folder(vault.root, ".") or one["held"] > 0
            vaults.append(one)
        return {
            "schema": "vaultmem.status/1",
            "home": session.config.home,
            "engine": session.database.engine.name,
            "index_digest": digest.stored_digest(connection),
            "watch": {"mode": watching.mode, "holder": watching.holder, "reason": watching.reason},
            "vaults": vaults,
            "native": native_row(connection),
            "findings": finding_counts(session),
        }

    return session.read(action)


def _vault_row(connection: sqlite3.Connection, vault: str) -> dict[str, Any]:
    def count(sql: str) -> int:
        return int(connection.execute(sql, (vault,)).fetchone()[0])

    excluded = connection.execute(
        "SELECT excluded, count(*) FROM file WHERE vault = ? AND excluded <> '' AND kind = 'note' GROUP BY excluded",
        (vault,),
    )
    return {
        "id": vault,
        "notes": count("SELECT count(*) FROM note WHERE vault = ? AND quarantine = ''"),
        "quarantined": count("SELECT count(*) FROM note WHERE vault = ? AND quarantine <> ''"),
        "excluded": dict(excluded.fetchall()),
        "links": count("SELECT count(*) FROM link l JOIN file f ON f.id = l.source_id WHERE f.vault = ?"),
        "dangling": count(
            "SELECT count(*) FROM link l JOIN file f ON f.id = l.source_id "
            "WHERE f.vault = ? AND l.state IN ('dangling', 'alias')"
        ),
    }


def native_row(connection: sqlite3.Connection) -> dict[str, int]:
    """Return how many topics the native wiki has, and how many of scopes that a vault holds, which are not shown."""
    found = _vault_row(connection, NATIVE_ID)
    return {"topics": found["notes"], "hidden": found["excluded"].get("mapped_away", 0)}
