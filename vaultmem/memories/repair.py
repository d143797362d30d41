"""Repair: index.md lines and the index are made to agree with the topic files, which win.

No topic's text is ever changed, nothing is deleted, and no text is taken from a database
(reference/maintenance.md, "Repair"; known-gaps.md, 5).
"""

from __future__ import annotations

import sqlite3
from typing import Any

from vaultmem.access.session import Session
from vaultmem.base.errors import VaultmemError
from vaultmem.base.locks import file_lock
from vaultmem.base.values import Binding
from vaultmem.memories.destinations import Place
from vaultmem.memories.forget import enter_again
from vaultmem.memories.phases import check_switches
from vaultmem.memories.store import LOCK_WAIT_S
from vaultmem.memories.wiki import is_in_index, topic_lock


def repair(session: Session, *, apply: bool = False) -> dict[str, Any]:
    """Return `vaultmem.repair/1`: what is, or with `apply` was, to be mended, and what only a person can.

    Raises StoreRefused when nothing may be written.
    """
    if apply:
        check_switches(session)
    planned = _index_changes(session, apply)
    actions = [*planned, *_wiki_changes(session, apply), *_malformed(session)]
    total = int(session.connection().execute("SELECT count(*) FROM note WHERE source_kind = 'native'").fetchone()[0])
    status = [row["status"] for row in actions]
    named = {(row["scope"], row["scope_id"], row["key"]) for row in actions}
    return {
        "schema": "vaultmem.repair/1",
        "applied": apply,
        "total": total,
        "repaired": status.count("repaired") + status.count("planned"),
        "unchanged": max(0, total - len(named)),
        "skipped": status.count("skipped"),
        "failed": status.count("failed"),
        "actions": actions,
    }


def _index_changes(session: Session, apply: bool) -> list[dict[str, Any]]:
    """Compare the index with the files, as a reconcile does."""
    before = session.reconcile(dry_run=True)
    rows = [
        _action("rebuild_index", "planned", Binding("", None), row["key"], f"{row['op']} {row['path']}")
        for row in before.operations
        if row["key"]  # files without a memory, such as index.md itself, only lend their names
    ]
    session.reconcile()
    return [{**row, "status": "repaired"} for row in rows] if apply else rows


def _wiki_changes(session: Session, apply: bool) -> list[dict[str, Any]]:
    sql = "SELECT scope, scope_id, key, path FROM note WHERE source_kind = 'native' ORDER BY scope, scope_id, key"
    rows = []
    for scope, scope_id, key, path in session.connection().execute(sql).fetchall():
        binding = Binding(scope, scope_id or None)
        if is_in_index(session.config, binding, key):
            continue
        status, message = "planned", f"{path} has no line in index.md"
        if apply:
            status, message = _enter(session, binding, key, path, message)
        rows.append(_action("rebuild_index", status, binding, key, message))
    return rows


def _enter(session: Session, binding: Binding, key: str, path: str, message: str) -> tuple[str, str]:
    try:
        with (
            file_lock(session.reconciler.lock_path(), wait_s=LOCK_WAIT_S, what="writing"),
            topic_lock(session.config, binding, key),
        ):
            enter_again(session, Place(session.config.native, binding, path), key)
        return "repaired", message
    except (VaultmemError, OSError, sqlite3.Error) as error:
        return "failed", str(error).splitlines()[0]


def _malformed(session: Session) -> list[dict[str, Any]]:
    sql = (
        "SELECT n.scope, n.scope_id, n.key, f.path, f.line, f.message FROM finding f JOIN note n ON n.id = f.file_id "
        "WHERE f.code = 'topic_malformed' ORDER BY f.path"
    )
    return [
        _action("malformed_header", "skipped", Binding(row[0], row[1] or None), row[2], f"{row[3]}:{row[4]}: {row[5]}")
        for row in session.connection().execute(sql)
    ]


def _action(action: str, status: str, binding: Binding, key: str, message: str) -> dict[str, Any]:
    return {
        "action": action,
        "status": status,
        "scope": binding.scope,
        "scope_id": binding.scope_id,
        "key": key,
        "message": message,
    }
