"""Freshness: is what a hit says still what its file says, and if not, mend it before answering.

Hits are stat-checked only (design.md §5, "Freshness"): equal signatures are fresh; a changed file
is reconciled and the query runs once more; a vanished one is dropped if its folder opens, else
told from the index with a warning. Never a loop: a second look only labels.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from vaultmem.base.errors import LockBusy
from vaultmem.base.files import open_root
from vaultmem.base.values import Signature
from vaultmem.settings.config import Config
from vaultmem.sync.reconcile import Reconciler
from vaultmem.sync.walk.walk import is_open_folder

REPAIR_WAIT_S = 0.05


@dataclass(slots=True)
class Freshness:
    """What a look at the files of some notes found: `stale` paths by vault, `unknown` note ids."""

    stale: dict[str, set[str]] = field(default_factory=dict)
    stale_ids: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)


def look_at_files(config: Config, connection: sqlite3.Connection, note_ids: Sequence[int]) -> Freshness:
    """Compare the notes' files with the signatures in the index."""
    found = Freshness()
    if not note_ids:
        return found
    marks = ",".join("?" * len(note_ids))
    sql = (
        f"SELECT id, vault, path, raw_path, size, mtime_ns, ctime_ns, inode FROM file WHERE id IN ({marks}) "
        "ORDER BY vault, path"
    )
    roots: dict[str, int | None] = {}
    try:
        for row in connection.execute(sql, tuple(note_ids)):
            root_fd = _root(config, row[1], roots)
            now = _signature(root_fd, row[3])
            if now == Signature(*row[4:8]):
                continue
            folder = row[2].rpartition("/")[0]
            if now is None and not is_open_folder(config.vault(row[1]).root, folder or "."):
                found.unknown.add(row[0])
            else:
                found.stale.setdefault(row[1], set()).add(row[2])
                found.stale_ids.add(row[0])
    finally:
        for fd in roots.values():
            if fd is not None:
                os.close(fd)
    return found


def _root(config: Config, vault: str, roots: dict[str, int | None]) -> int | None:
    if vault not in roots:
        try:
            roots[vault] = open_root(config.vault(vault).root)
        except OSError:
            roots[vault] = None
    return roots[vault]


def _signature(root_fd: int | None, raw_path: str) -> Signature | None:
    if root_fd is None:
        return None
    try:  # nothing is opened: a file behind a link has another signature, and is then looked at with care
        return Signature.of(os.stat(raw_path, dir_fd=root_fd, follow_symlinks=False))
    except OSError:
        return None


def repair(reconciler: Reconciler, stale: dict[str, set[str]]) -> bool:
    """Reconcile some paths now, waiting at most 50 ms for the writer's lock; tell whether it was done."""
    only: dict[str, Collection[str]] = dict(stale)
    try:
        reconciler.run(only=only, wait_s=REPAIR_WAIT_S)
    except (LockBusy, OSError):  # busy, or a home that can't be written
        return False
    return True
