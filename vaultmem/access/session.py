"""One open home: settings, state, index, and the promise that the index is complete and fresh.

Every use case gets a Session. It opens things lazily, heals a damaged index by a rebuild, and
says so in `notices` (for standard error; never part of a result).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from vaultmem.base.clock import now
from vaultmem.base.errors import IndexUnavailable, LockBusy
from vaultmem.base.files import can_write_in
from vaultmem.base.progress import Work
from vaultmem.base.times import iso
from vaultmem.base.values import Binding
from vaultmem.settings.config import Config

if TYPE_CHECKING:  # engines are imported when they are opened: start-up of a face counts
    from vaultmem.access.scopes import CallContext, ProjectIdentity
    from vaultmem.index.database import IndexDatabase
    from vaultmem.state.state import Held, StateStore
    from vaultmem.sync.reconcile import Reconciler, ReconcileResult

_Result = TypeVar("_Result")

QUICK_SWEEP_S = 0.015
"""Comparing the files takes less than asking a watcher does."""


class Session:
    """An open home; `close` it, or use it as a context manager."""

    def __init__(self, config: Config, context: CallContext | None = None, work: Work | None = None) -> None:
        self.config = config
        self.context = context or _context_from_environment()
        self.work = work or Work()
        self.notices: list[str] = []
        self.warnings: list[str] = []
        self.last_sync: ReconcileResult | None = None
        self._state: StateStore | None = None
        self._database: IndexDatabase | None = None
        self._synced = False
        self._sweep_s = 1.0  # not known yet
        self._project: ProjectIdentity | None = None

    @property
    def state(self) -> StateStore:
        """state.db, opened on first use. Raises StateUnavailable."""
        if self._state is None:
            from vaultmem.state.state import StateStore, state_path

            self._state = StateStore(state_path(self.config.home))
        return self._state

    @property
    def database(self) -> IndexDatabase:
        """The index, opened on first use. Raises IndexUnavailable."""
        if self._database is None:
            from vaultmem.index.database import IndexDatabase, choose_engine

            self._database = IndexDatabase(self.config.home, choose_engine(self.config.engine))
        return self._database

    @property
    def reconciler(self) -> Reconciler:
        """The reconciler of this home."""
        from vaultmem.sync.reconcile import Reconciler

        return Reconciler(self.config, self.state, self.database)

    def project(self) -> ProjectIdentity:
        """Who the project of the context is; what is known of its other ids is recorded for later recalls."""
        if self._project is None:
            from vaultmem.access.scopes import project_identity

            self._project = project_identity(self.config, self.context)
            aliases = {alias: (self._project.id, kind) for alias, kind in self._project.aliases.items()}
            if aliases and not self.config.read_only:
                with suppress(sqlite3.Error):
                    self.state.memory.add_aliases(aliases, iso(now()))
        return self._project

    def bindings(self) -> tuple[Binding, ...]:
        """Whose memories the caller may see: its own ids of each scope, and no one else's."""
        from vaultmem.access.scopes import lossless_id

        project = self.project()
        ids = [project.id, *project.aliases, *self.state.memory.aliases_of(project.id)] if project.id else []
        session, agent = lossless_id(self.context.session), lossless_id(self.context.agent)
        return (
            *([Binding("session", session)] if session else []),
            *(Binding("project", item) for item in dict.fromkeys(ids)),
            Binding("global"),
            *([Binding("agent", agent)] if agent else []),
            Binding("federated"),
        )

    def begin_call(self, context: CallContext, *, sweep: bool = True) -> None:
        """Start a call of a long-running face; without `sweep` the files are taken to be as they were."""
        if context != self.context:
            self.context, self._project = context, None
        self.notices.clear()
        self.warnings.clear()
        self.last_sync = None
        self._synced = self._synced and not sweep

    def connection(self) -> sqlite3.Connection:
        """The open index connection."""
        return self.database.connection()

    def sync(self, *, sweep: bool = True) -> None:
        """Make sure that the index is complete, and (with `sweep`) equal to the files now.

        An index that is absent, damaged or of other settings is always brought up first: empty is
        an answer only when it is final. A sweep that finds the writer busy is passed over with a warning.
        """
        self.config.require_vault()
        if self._synced:
            return
        complete = self.database.is_built()
        if self.database.healed:
            self.notices.append(f"{self.database.healed}: building it from your notes")
        if complete and not sweep:
            return
        if not can_write_in(self.config.home):
            self.warnings.append(f"{self.config.home} is read-only: this answer is from the index as it is")
            self._synced = True
            return
        if complete and self._is_watched():
            self._warn_of_held(self.state.held())
            self._synced = True
            return
        try:
            self.last_sync = self.reconcile(wait_s=2.0 if complete else 60.0)
        except LockBusy as error:
            if not complete:
                raise IndexUnavailable("The index is being built by another process", error.message) from None
            self.warnings.append(f"{error.message}; this answer is from before its changes")
            return
        self.database.healed = ""
        self._synced = True
        self._sweep_s = self.last_sync.seconds
        self._warn_of_held(self.last_sync.held_mappings)

    def _is_watched(self) -> bool:
        """Tell whether a watcher has applied all events until now; not asked where comparing is as quick."""
        from vaultmem.sync.reconcile import config_fingerprint
        from vaultmem.sync.watch.lease import is_caught_up

        return self._sweep_s > QUICK_SWEEP_S and is_caught_up(self.config.home, config_fingerprint(self.config))

    def _warn_of_held(self, held: Sequence[Held]) -> None:
        for one in held:
            self.warnings.append(
                f"{one.vault}: {one.message}. "
                "If the notes are meant to be gone, run: vaultmem reconcile --accept-removals"
            )

    def reconcile(self, **options: Any) -> ReconcileResult:
        """Reconcile (options of `Reconciler.run`); a damaged index is given up and built anew.

        Raises LockBusy, and IndexUnavailable when the index can't be written.
        """
        try:
            try:
                return self.reconciler.run(work=self.work, **options)
            except (sqlite3.DatabaseError, UnicodeDecodeError, json.JSONDecodeError) as error:
                if not _is_damage(error):
                    raise
                self.database.discard(str(error))
                self.notices.append(f"{self.database.healed}: building it from your notes")
                return self.reconciler.run(work=self.work)
        except sqlite3.Error as error:
            raise IndexUnavailable(
                f"The index can't be written: {error}",
                "Free space or correct permissions, then run: vaultmem reconcile",
            ) from None

    def read(self, action: Callable[[], _Result], *, sweep: bool = True) -> _Result:
        """Run a read on a complete index; a file that turns out damaged is rebuilt, and the read runs again."""
        try:
            self.sync(sweep=sweep)
            return action()
        except (sqlite3.DatabaseError, UnicodeDecodeError, json.JSONDecodeError) as error:
            if not _is_damage(error):
                raise IndexUnavailable(f"The index can't be read: {error}", "Run: vaultmem doctor") from None
            self.database.discard(str(error))
            self._synced = False
            self.sync()
            return action()

    def close(self) -> None:
        """Close what is open."""
        if self._database is not None:
            self._database.close()
        if self._state is not None:
            self._state.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _context_from_environment() -> CallContext:
    from vaultmem.access.scopes import context_from_environment

    return context_from_environment()


def _is_damage(error: Exception) -> bool:
    from vaultmem.index.database import is_damage

    return not isinstance(error, sqlite3.OperationalError) or is_damage(error)
