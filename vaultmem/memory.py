"""The facade that faces call: the core verbs as methods, satellites as attributes, no logic of its own.

    with open_memory() as memory:
        memory.recall(RecallRequest("kafka streams"))
        memory.graph.view()

Use cases and satellites are imported when they are called, since start-up of a command counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import TYPE_CHECKING, Any

from vaultmem.access.session import Session
from vaultmem.base.progress import Work
from vaultmem.settings.config import Config, load_config

if TYPE_CHECKING:
    from threading import Event

    from vaultmem.access.filters import NoteFilter
    from vaultmem.access.scopes import CallContext
    from vaultmem.base.values import WriteResult
    from vaultmem.context.context import Context
    from vaultmem.graph.graph import Graph
    from vaultmem.health.findings import FindingRow
    from vaultmem.health.rebuild import RebuildResult
    from vaultmem.memories.adopt import Adopted
    from vaultmem.memories.forget import ClearResult, ForgetRequest
    from vaultmem.memories.store import StoreRequest
    from vaultmem.recall.listing import LinksResult, ListResult, ShowResult
    from vaultmem.recall.recall import RecallRequest, RecallResult
    from vaultmem.sync.reconcile import ReconcileResult


class Memory:
    """An open home. Every method raises errors of `vaultmem.base.errors` only."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def config(self) -> Config:
        """The settings in force."""
        return self._session.config

    @property
    def notices(self) -> list[str]:
        """What was healed on the way: for a log or standard error, never part of a result."""
        return self._session.notices

    @property
    def warnings(self) -> list[str]:
        """What a reader should know about the answers so far."""
        return self._session.warnings

    def reconcile(
        self,
        *,
        dry_run: bool = False,
        full: bool = False,
        accept_removals: bool = False,
        only: dict[str, Collection[str]] | None = None,
    ) -> ReconcileResult:
        """Make the index equal to the files (`sync.reconcile`)."""
        self._session.config.require_vault()
        return self._session.reconcile(dry_run=dry_run, full=full, accept_removals=accept_removals, only=only)

    def rebuild(self, *, verify: bool = False) -> RebuildResult:
        """Build the index anew, or only compare it with a fresh one (`health.status.rebuild`)."""
        from vaultmem.health.rebuild import rebuild

        return rebuild(self._session, verify=verify)

    def status(self) -> dict[str, Any]:
        """Return how the home stands (`health.status`)."""
        from vaultmem.health.status import status

        return status(self._session)

    def scan(self) -> dict[str, Any]:
        """Return what a walk of the vaults sees, without reading notes (`health.scan`)."""
        from vaultmem.health.scan import scan

        return scan(self._session)

    def findings(self, code: str = "", severity: str = "", *, sweep: bool = True) -> list[FindingRow]:
        """Return findings (`health.findings`)."""
        from vaultmem.health.findings import all_findings

        return all_findings(self._session, code, severity, sweep=sweep)

    def recall(self, request: RecallRequest, *, sweep: bool = True) -> RecallResult:
        """Return ranked hits (`recall.recall`)."""
        from vaultmem.recall.recall import recall

        return recall(self._session, request, sweep=sweep)

    def list(self, wanted: NoteFilter, limit: int, *, sweep: bool = True) -> ListResult:
        """Return notes, newest first (`recall.listing`)."""
        from vaultmem.recall.listing import list_notes

        return list_notes(self._session, wanted, limit, sweep=sweep)

    def show(self, name: str, wanted: NoteFilter, *, sweep: bool = True) -> ShowResult:
        """Return one whole note (`recall.listing`)."""
        from vaultmem.recall.listing import show_note

        return show_note(self._session, name, wanted, sweep=sweep)

    def links(self, name: str, wanted: NoteFilter, *, sweep: bool = True) -> LinksResult:
        """Return a note's links (`recall.listing`)."""
        from vaultmem.recall.listing import note_links

        return note_links(self._session, name, wanted, sweep=sweep)

    def store(self, request: StoreRequest) -> WriteResult:
        """Store a text (`memories.store`)."""
        from vaultmem.memories.store import store

        return store(self._session, request)

    def forget(self, request: ForgetRequest) -> WriteResult:
        """Forget a memory (`memories.forget`)."""
        from vaultmem.memories.forget import forget

        return forget(self._session, request)

    def restore(self, key: str, scope: str = "project", scope_id: str | None = None) -> WriteResult:
        """Bring a forgotten memory back (`memories.forget`)."""
        from vaultmem.memories.forget import restore

        return restore(self._session, key, scope, scope_id)

    def clear(self, scope: str, scope_id: str | None = None, *, dry_run: bool = True) -> ClearResult:
        """Forget all topics and managed notes of a scope (`memories.forget`)."""
        from vaultmem.memories.forget import clear

        return clear(self._session, scope, scope_id, dry_run=dry_run)

    def retention(self, *, apply: bool = False) -> dict[str, Any]:
        """Move expired topics to the trash (`memories.retention`)."""
        from vaultmem.memories.retention import retention

        return retention(self._session, apply=apply)

    def repair(self, *, apply: bool = False) -> dict[str, Any]:
        """Make index.md and the index agree with the topic files (`memories.repair`)."""
        from vaultmem.memories.repair import repair

        return repair(self._session, apply=apply)

    def destinations(self) -> tuple[dict[str, Any], ...]:
        """Return where a store to each scope would go, and why (`memories.destinations_of_caller`)."""
        from vaultmem.memories.destinations import destinations

        return destinations(self._session)

    def begin_call(self, context: CallContext, *, sweep: bool = True) -> None:
        """Start a call of a long-running face: its context, and files compared anew unless `sweep` is False."""
        self._session.begin_call(context, sweep=sweep)

    @property
    def last_sweep_s(self) -> float | None:
        """Seconds that the comparison with the files took in this call; None when there was none."""
        return None if self._session.last_sync is None else self._session.last_sync.seconds

    def is_built(self) -> bool:
        """Tell whether there is a complete index."""
        return self._session.database.is_built()

    def watch(self, stop: Event, report: Callable[[ReconcileResult], None], notice: Callable[[str], None]) -> None:
        """Keep the index equal to the files until `stop` is set or config.toml changes (`sync.watch.keeper`)."""
        from vaultmem.sync.watch.keeper import watch

        watch(self._session, stop, report, notice)

    def is_watched(self) -> bool:
        """Tell whether a process watches this home by events."""
        from vaultmem.sync.watch.lease import who_watches

        return who_watches(self.config.home).mode == "events"

    def adopt(self) -> Adopted:
        """Take over what only an adopted CAO home's database knows (`memories.adopt`)."""
        from vaultmem.memories.adopt import adopt

        return adopt(self._session)

    def explain(self, query: str, wanted: NoteFilter, limit: int = 10) -> dict[str, Any]:
        """Compare recall by time with recall by relevance (`recall.comparison`)."""
        from vaultmem.recall.comparison import explain

        return explain(self._session, query, wanted, limit)

    @cached_property
    def graph(self) -> Graph:
        """The graph of notes: `memory.graph.view()`, `memory.graph.export(target)` (`graph.graph`)."""
        from vaultmem.graph.graph import Graph

        return Graph(self._session)

    @cached_property
    def context(self) -> Context:
        """What an agent is told before its first question: `memory.context.block()` (`context.context`)."""
        from vaultmem.context.context import Context

        return Context(self._session)

    def context_block(self) -> str:
        """Return the block of context for the start of an agent's session: `memory.context.block()`."""
        return self.context.block()

    def export_graph(self, target: str) -> tuple[int, int]:
        """Write the graph as an Obsidian folder; return (notes, changed files): `memory.graph.export(target)`."""
        return self.graph.export(target)

    def close(self) -> None:
        """Close the home."""
        self._session.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def open_memory(
    home: str | None = None, *, read_only: bool = False, context: CallContext | None = None, work: Work | None = None
) -> Memory:
    """Open a home (default: VAULTMEM_HOME, else the user's data folder).

    Raises ConfigError with every problem of config.toml. Nothing is read or written before a method is called.
    """
    return Memory(Session(load_config(home, read_only=read_only), context, work))
