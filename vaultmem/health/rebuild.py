"""Rebuild: making the index anew, and the proof that it is what a fresh one would be."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest

from vaultmem.access.session import Session
from vaultmem.base.errors import VaultmemError
from vaultmem.base.locks import file_lock
from vaultmem.base.values import Finding
from vaultmem.index import digest
from vaultmem.index.database import IndexDatabase, beside
from vaultmem.index.notes import TEXT_COLUMNS
from vaultmem.index.operations import FirstSeen, IdentityChange
from vaultmem.state.state import Held, StateStore
from vaultmem.sync.reconcile import LOCK_WAIT_S, Reconciler, ReconcileResult


@dataclass(slots=True)
class RebuildResult:
    """What a rebuild or its check found; `differences` is empty when the index is right."""

    verified: bool
    digest: str
    differences: list[str] = field(default_factory=list)
    reconciled: ReconcileResult | None = None
    kept_old: str = ""


def rebuild(session: Session, *, verify: bool = False) -> RebuildResult:
    """Build a fresh index beside the old one and swap it in, or (`verify`) only compare the two.

    While a mapping is held the old index is kept: the fresh one would lack its notes.
    """
    session.config.require_vault()
    with file_lock(session.reconciler.lock_path(), wait_s=LOCK_WAIT_S, what="writing to the index"):
        current = _reconciled(session) if not verify else None
        held = session.state.held()
        if held and not verify and current is not None:
            names = ", ".join(f"{item.vault}:{item.folder}" for item in held)
            return RebuildResult(
                False,
                digest.stored_digest(session.connection()),
                reconciled=current,
                kept_old=f"the old index is kept, since notes are missing for now: {names}",
            )
        with beside(session.database) as fresh:
            built = Reconciler(session.config, _Frozen(session.state.path), fresh).run_locked(work=session.work)
            new_digest = digest.stored_digest(fresh.connection())
            if verify:
                return RebuildResult(True, new_digest, _differences(session, fresh, new_digest))
            session.database.replace_with(fresh)
            return RebuildResult(False, new_digest, reconciled=built)


def _reconciled(session: Session) -> ReconcileResult:
    """Reconcile the old index first, so that guards are judged; a damaged one is given up."""
    try:
        return session.reconciler.run_locked(work=session.work)
    except sqlite3.DatabaseError as error:
        session.database.discard(str(error))
        return session.reconciler.run_locked(work=session.work)


class _Frozen(StateStore):
    """state.db as a rebuild sees it: what it keeps is read, and nothing of the rebuild is recorded."""

    def record(self, identities: Iterable[IdentityChange], times: Iterable[FirstSeen]) -> None:
        """Keep nothing."""

    def set_held(self, vaults: Iterable[str], held: Iterable[Held]) -> None:
        """Keep nothing."""

    def record_run(self, at: str, summary: dict[str, object], events: Iterable[Finding]) -> None:
        """Keep nothing."""


def _differences(session: Session, fresh: IndexDatabase, new_digest: str) -> list[str]:
    """Compare the home's index with a fresh one: digests, rows, postings."""
    found: list[str] = []
    try:
        connection = session.connection()
        if digest.stored_digest(connection) != new_digest:
            found.append("the digest differs from that of a fresh index")
        if digest.summed_digest(connection) != digest.stored_digest(connection):
            found.append("the rows do not add up to the stored digest")
        found += _row_differences(connection, fresh.connection()) or _told_differences(connection, fresh.connection())
        broken = session.database.engine.check(connection)
        if broken:
            found.append(f"the full-text table is damaged: {broken}")
        elif _summary(session.database) != _summary(fresh):
            found.append("the full-text postings differ from those of a fresh index")
    except (sqlite3.DatabaseError, VaultmemError) as error:
        found.append(f"the index can't be read: {error}")
    return found


def _summary(database: IndexDatabase) -> list[tuple[object, ...]]:
    return database.engine.summary(database.connection())


_NOTE_ROWS = "SELECT f.vault || ':' || f.raw_path, n.note_digest FROM note n JOIN file f ON f.id = n.id"
_LINK_ROWS = "SELECT f.vault || ':' || f.raw_path, d.digest FROM source_digest d JOIN file f ON f.id = d.file_id"


def _row_differences(old: sqlite3.Connection, new: sqlite3.Connection, most: int = 10) -> list[str]:
    found: list[str] = []
    for what, sql in (("note", _NOTE_ROWS), ("links", _LINK_ROWS)):
        before, after = dict(old.execute(sql).fetchall()), dict(new.execute(sql).fetchall())
        differing = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
        found += [f"{what} differ: {path}" for path in differing[:most]]
        if len(differing) > most:
            found.append(f"{what} differ: {len(differing) - most} more")
    return found


_SOURCE = "s.vault || ':' || s.raw_path"
_TOLD = (
    (
        "text differs",
        f"SELECT {_SOURCE}, {', '.join('n.' + name for name in TEXT_COLUMNS)}, n.key, n.scope, n.scope_id, "
        "n.quarantine, n.created_at, n.updated_at FROM note n JOIN file s ON s.id = n.id ORDER BY 1",
    ),
    (
        "links differ",
        f"SELECT {_SOURCE}, l.position, l.raw, l.link, l.display, l.kind, l.line, l.state, l.via, "
        "l.candidates, l.rel, t.raw_path FROM link l JOIN file s ON s.id = l.source_id "
        "LEFT JOIN file t ON t.id = l.target_id ORDER BY 1, 2",
    ),
    (
        "relationships differ",
        f"SELECT {_SOURCE}, e.id, e.source_key, e.target_key, e.type, e.status, e.confidence "
        "FROM edge e JOIN file s ON s.id = e.source_id ORDER BY 1, 2",
    ),
)


def _told_differences(old: sqlite3.Connection, new: sqlite3.Connection, most: int = 10) -> list[str]:
    """Compare what is shown, row by row, where the stored hashes are equal: they may have been left as they were."""
    found: list[str] = []
    for what, sql in _TOLD:
        pairs = zip_longest(old.execute(sql), new.execute(sql))
        differing = dict.fromkeys(str((one or other)[0]) for one, other in pairs if one != other)
        found += [f"{what}: {path}" for path in list(differing)[:most]]
    return found
