"""What every write shares: the switches, indexing the one file, and telling how far a broken write got."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vaultmem.access.session import Session
from vaultmem.base.errors import MemoryPartialWriteError, StoreRefused, VaultmemError
from vaultmem.base.values import WriteResult
from vaultmem.memories.destinations import Place


def check_switches(session: Session) -> None:
    """Raise StoreRefused when nothing may be written."""
    if session.config.read_only:
        raise StoreRefused("Nothing is written in read-only mode", "Start it without --read-only")
    if not session.config.enabled:
        raise StoreRefused("Memory is switched off", "Set memory.enabled = true, or unset VAULTMEM_ENABLED")


def index_now(session: Session, *places: Place) -> None:
    """Bring the index up to date for some files; the caller holds the writer's lock."""
    only: dict[str, list[str]] = {}
    for place in places:
        only.setdefault(place.source.id, []).append(place.path)
    session.reconciler.run_locked(only=only, accept_removals=True)


@contextmanager
def partial_write(result: WriteResult, done: tuple[str, ...], repair: str) -> Iterator[Callable[[str], None]]:
    """Turn a failure after the first durable phase into MemoryPartialWriteError; call with each phase that is done."""
    phases = list(done)
    try:
        yield phases.append
    except (VaultmemError, sqlite3.Error, OSError) as error:
        raise MemoryPartialWriteError(
            result.key,
            result.scope,
            result.scope_id,
            result.path,
            tuple(phases),
            repair,
            str(error).splitlines()[0],
        ) from None
