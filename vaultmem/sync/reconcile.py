"""Drive scan, plan and apply: the one place where the index is made equal to the files.

Order of a run: writer's lock, scan, guards (a missing file is not yet a deletion), read what
changed, plan, state.db, index. A run that is killed anywhere leaves the old index or the new one,
and the next run completes it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from unicodedata import normalize

from vaultmem.base.clock import now
from vaultmem.base.garbage import rare_collections
from vaultmem.base.locks import file_lock
from vaultmem.base.progress import Work
from vaultmem.base.times import iso
from vaultmem.base.values import Finding
from vaultmem.index.database import IndexDatabase, beside
from vaultmem.index.operations import FileFacts, KnownFile, Plan
from vaultmem.index.queries import IndexView, count_left_out, known_signatures, known_signatures_at
from vaultmem.index.schema import read_meta
from vaultmem.notes.findings import finding
from vaultmem.settings.config import Config
from vaultmem.settings.rules import VaultConfig, is_below
from vaultmem.state.memories import Identity
from vaultmem.state.state import Held, StateStore
from vaultmem.sync.decisions import Judgements
from vaultmem.sync.grace import look_again
from vaultmem.sync.plan.collisions import Rules
from vaultmem.sync.plan.plan import plan_changes
from vaultmem.sync.removals import RemovalGuard
from vaultmem.sync.walk.walk import VaultScan, scan_paths, scan_vault

if TYPE_CHECKING:
    from vaultmem.sync.read.read import Readers

LOCK_WAIT_S = 30.0


@dataclass(slots=True)
class ReconcileResult:
    """What a run did; the fields are those of `vaultmem.reconcile/1` (design.md §8)."""

    generation: int = 0
    scanned: int = 0
    unchanged: int = 0
    added: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    held: int = 0
    quarantined: int = 0
    links: int = 0
    edges: int = 0
    findings: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    applied: bool = True
    operations: list[dict[str, str]] = field(default_factory=list)
    held_mappings: list[Held] = field(default_factory=list)
    events: list[Finding] = field(default_factory=list)


def config_fingerprint(config: Config) -> str:
    """Return a hash of all that decides what files mean; a change makes every file be read again."""
    parts = [
        [
            v.id,
            v.root,
            v.managed_folder,
            v.exclude,
            v.secret_allow,
            v.secret_gate,
            v.allow_hardlinks,
            v.obsidian_excludes,
            v.max_note_bytes,
            v.max_notes,
            v.max_frontmatter_bytes,
            v.max_total_bytes,
            v.mapped_away,
            [[m.folder, m.scope, m.scope_id, m.index] for m in v.mappings],
            _app_json(v),
        ]
        for v in config.sources
    ]
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _app_json(vault: VaultConfig) -> list[str]:
    from vaultmem.base.files import open_root
    from vaultmem.sync.walk.walk import obsidian_filters

    try:
        fd = open_root(vault.root)
    except OSError:
        return []
    try:
        return list(obsidian_filters(fd))
    finally:
        os.close(fd)


def rules_of(config: Config, forgotten: frozenset[Identity] = frozenset()) -> Rules:
    """Return what planning must know of the configuration and of what was forgotten.

    The first mapping of a binding hashes the path below the mapping, later ones `vault/path`
    (design.md §3), so that two mappings of one binding never give one key.
    """
    rel_of: dict[tuple[str, int], tuple[str, str]] = {}
    managed: list[tuple[str, str, str, str | None]] = []
    first: set[tuple[str, str | None]] = set()
    for vault in config.sources:
        if vault.native:  # no key is ever taken twice there: a path is one binding's one topic
            rel_of[vault.id, 0] = ("", "")
            continue
        for position, mapping in enumerate(vault.mappings):
            prefix = "" if mapping.folder == "." else mapping.folder + "/"
            if (mapping.scope, mapping.scope_id) in first:
                rel_of[vault.id, position] = ("", f"{vault.id}/")
            else:
                rel_of[vault.id, position] = (prefix, "")
                first.add((mapping.scope, mapping.scope_id))
            if mapping.writable:
                managed.append((vault.id, mapping.folder, mapping.scope, mapping.scope_id))
    return Rules(rel_of, managed_patterns=tuple(managed), forgotten=forgotten, native=config.native.id)


class Reconciler:
    """Makes one home's index equal to its files."""

    def __init__(self, config: Config, state: StateStore, database: IndexDatabase) -> None:
        self.config = config
        self.state = state
        self.database = database

    def lock_path(self) -> str:
        """Return the path of the writer's lock."""
        return os.path.join(self.config.home, "locks", "writer.lock")

    def run(
        self,
        *,
        dry_run: bool = False,
        full: bool = False,
        accept_removals: bool = False,
        only: Mapping[str, Collection[str]] | None = None,
        work: Work | None = None,
        wait_s: float = LOCK_WAIT_S,
    ) -> ReconcileResult:
        """Reconcile all vaults, or only these vault-relative paths by vault, and return what was done.

        Raises LockBusy, IndexUnavailable, StateUnavailable.
        """
        with file_lock(self.lock_path(), wait_s=wait_s, what="writing to the index"):
            return self.run_locked(
                dry_run=dry_run, full=full, accept_removals=accept_removals, only=only, work=work or Work()
            )

    def run_locked(
        self,
        *,
        dry_run: bool = False,
        full: bool = False,
        accept_removals: bool = False,
        only: Mapping[str, Collection[str]] | None = None,
        work: Work | None = None,
    ) -> ReconcileResult:
        """The same, for a caller that holds the writer's lock."""
        started = time.monotonic()
        work = work or Work()
        connection = self.database.connection()
        fingerprint = config_fingerprint(self.config)
        full = full or read_meta(connection, "config") != fingerprint
        only = {} if full and not dry_run else only  # what files mean has changed: all must be read
        scans = self._scan_only(only) if only else self._scan(full)
        if only and self._concerns_the_whole(scans):
            scans, only = self._scan(False), None
        if not accept_removals and any(scan.gone for scan in scans):
            look_again(self.config.sources, scans)
        held, gone = RemovalGuard(self.config, self.state, connection).judge(scans, accept_removals)
        result = ReconcileResult(scanned=sum(scan.files for scan in scans))
        result.held_mappings, result.held = held, sum(item.notes for item in held)
        candidates = sum(len(scan.changed) for scan in scans)
        plan = Plan()
        judgements = Judgements(self.state.memory, connection)
        meta = judgements.meta | ({"config": fingerprint} if not only else {})
        if candidates or gone or judgements.changed:
            with rare_collections(), self._target(candidates, dry_run) as target:
                plan = target._plan_and_apply(scans, gone, judgements, meta, dry_run, work, result, only or None)
        elif not dry_run:
            self._write_findings_only(scans, meta, only or None)
        self._fill(result, plan, candidates)
        result.events = list(plan.events)
        if not dry_run:
            self._record(scans, plan, result, held, partial=bool(only))
        result.applied = not dry_run
        result.seconds = round(time.monotonic() - started, 3)
        return result

    # -- scan and guards ------------------------------------------------------------------------

    def _scan(self, full: bool) -> list[VaultScan]:
        connection = self.database.connection()
        scans = []
        for vault in self.config.sources:
            known = known_signatures(connection, vault.id)
            scans.append(scan_vault(vault, dict.fromkeys(known) if full else known))
        return scans

    def _scan_only(self, only: Mapping[str, Collection[str]]) -> list[VaultScan]:
        connection = self.database.connection()
        return [
            scan_paths(vault, known_signatures_at(connection, vault.id, only.get(vault.id, ())), only.get(vault.id, ()))
            for vault in self.config.sources
        ]

    def _concerns_the_whole(self, scans: Sequence[VaultScan]) -> bool:
        """Tell whether what was seen at some paths changes what is counted over a whole vault (budgets, filters)."""
        connection = self.database.connection()
        for vault, scan in zip(self.config.sources, scans, strict=True):
            if scan.left_out or count_left_out(connection, vault.id, scan.gone):
                return True
            new = sum(1 for file in scan.changed if file.kind == "note" and file.raw_path not in scan.known)
            if new and not vault.native and (vault.max_total_bytes or self._notes(vault.id) + new > vault.max_notes):
                return True
        return False

    def _notes(self, vault: str) -> int:
        """Return how many notes a vault has, or at least that many where that is quicker to tell."""
        connection = self.database.connection()
        highest = int(connection.execute("SELECT coalesce(max(id), 0) FROM file").fetchone()[0])
        if highest < self.config.vault(vault).max_notes // 2:
            return highest
        sql = "SELECT count(*) FROM file WHERE vault = ? AND kind = 'note'"
        return int(connection.execute(sql, (vault,)).fetchone()[0])

    # -- plan and apply -------------------------------------------------------------------------

    @contextmanager
    def _target(self, files: int, dry_run: bool) -> Iterator[Reconciler]:
        """Give whose index is written: ours, or in a large first load a private one, which then takes its place.

        That is quicker, since a private index needs no journal.
        """
        from vaultmem.index.apply import MANY_LINKS

        if dry_run or files <= MANY_LINKS or self.database.is_private or self.database.is_built():
            yield self
            return
        with beside(self.database) as fresh:
            yield Reconciler(self.config, self.state, fresh)
            self.database.replace_with(fresh)

    def _plan_and_apply(
        self,
        scans: Sequence[VaultScan],
        gone: list[KnownFile],
        judgements: Judgements,
        meta: dict[str, str],
        dry_run: bool,
        work: Work,
        result: ReconcileResult,
        only: Mapping[str, Collection[str]] | None,
    ) -> Plan:
        # the parser is imported only when there is something to parse: start-up of commands counts
        from vaultmem.index.apply import Applier
        from vaultmem.sync.read.file_facts import PreparedStore
        from vaultmem.sync.read.read import Readers

        total = sum(len(scan.changed) for scan in scans)
        store = PreparedStore(total)
        connection = self.database.connection()
        rules = rules_of(self.config, judgements.forgotten)
        known = IndexView(connection)  # before anything is written early
        applier = Applier(connection, self.database.engine, store.get, judgements.rejected)
        loads = known.is_empty and not dry_run
        readers = Readers(store, keep_links=loads)
        try:
            early = applier.begin_load(total, rules.likely_put) if loads else None
            plan = plan_changes(
                self._read(scans, readers, work, early.take if early is not None else lambda part: None),
                gone,
                known,
                self.state.remembered() if known.is_empty else self.state,
                rules,
                judgements.rejudge,
                judgements.relink(),
            )
            if dry_run:
                result.operations = plan.operations()
                return plan
            self.state.record(plan.identities, plan.first_seen)
            findings = {scan.vault: self._findings_of(scan, only) for scan in scans if scan.reachable}
            applier.apply(plan, findings, meta, work.counter("indexing", 2 * len(plan.puts)), readers)
            return plan
        finally:
            applier.abort()
            readers.close()
            store.close()

    def _read(
        self,
        scans: Sequence[VaultScan],
        readers: Readers,
        work: Work,
        ready: Callable[[Sequence[FileFacts]], None],
    ) -> list[FileFacts]:
        progress = work.counter("reading", sum(len(scan.changed) for scan in scans))
        facts: list[FileFacts] = []
        for vault, scan in zip(self.config.sources, scans, strict=True):
            if scan.changed:
                facts += readers.read(vault, scan.changed, progress, ready)
        return facts

    def _write_findings_only(
        self, scans: Sequence[VaultScan], meta: dict[str, str], only: Mapping[str, Collection[str]] | None
    ) -> None:
        """Keep the scan's findings where nothing else changed; writes only if they did."""
        connection = self.database.connection()
        found = {scan.vault: self._findings_of(scan, only) for scan in scans if scan.reachable}
        changed = {vault: new for vault, new in found.items() if _sorted(new) != _sorted(self._stored_findings(vault))}
        if not changed and all(read_meta(connection, key) == value for key, value in meta.items()):
            return
        from vaultmem.index.apply import Applier, no_notes

        Applier(connection, self.database.engine, no_notes).apply(Plan(), changed, meta)

    def _findings_of(self, scan: VaultScan, only: Mapping[str, Collection[str]] | None) -> list[Finding]:
        """Return the findings that a scan leaves: all are its own, or, after a look at some paths, those there."""
        if only is None:
            return scan.findings
        paths = only.get(scan.vault, ())
        stored = [(normalize("NFC", old.path), old) for old in self._stored_findings(scan.vault)]
        kept = [old for place, old in stored if not any(is_below(place, path) for path in paths)]
        return kept + [new for new in scan.findings if new.path]

    def _stored_findings(self, vault: str) -> list[Finding]:
        sql = "SELECT code, severity, path, line, message FROM finding WHERE file_id IS NULL AND vault = ?"
        return [Finding(*row) for row in self.database.connection().execute(sql, (vault,))]

    # -- result ---------------------------------------------------------------------------------

    def _fill(self, result: ReconcileResult, plan: Plan, candidates: int) -> None:
        kinds = Counter(put.kind for put in plan.puts if put.facts.file.holds_note)
        result.added, result.changed, result.moved = kinds["added"], kinds["changed"], kinds["moved"]
        result.removed = sum(1 for drop in plan.drops if drop.file.binding is not None)
        result.unchanged = max(0, result.scanned - len(plan.puts))
        connection = self.database.connection()
        result.generation = int(read_meta(connection, "generation", "0"))
        result.quarantined = _count(connection, "SELECT count(*) FROM note WHERE quarantine <> ''")
        result.links = int(read_meta(connection, "links", "0"))
        result.edges = int(read_meta(connection, "edges", "0"))
        counts = {"error": 0, "warn": 0, "info": 0}
        for severity, number in connection.execute("SELECT severity, count(*) FROM finding GROUP BY severity"):
            counts[severity] += number
        for item in (*plan.events, *(finding(h.code, "", 0, "") for h in result.held_mappings)):
            counts[item.severity] += 1
        result.findings = counts

    def _record(
        self, scans: Sequence[VaultScan], plan: Plan, result: ReconcileResult, held: list[Held], *, partial: bool
    ) -> None:
        if not partial:
            self.state.set_held([scan.vault for scan in scans], held)
        if plan.puts or plan.drops or plan.events:
            summary: dict[str, object] = {
                "added": result.added,
                "changed": result.changed,
                "moved": result.moved,
                "removed": result.removed,
            }
            self.state.record_run(iso(now()), summary, [replace(e, vault=e.vault or "") for e in plan.events])


def _sorted(findings: Sequence[Finding]) -> list[tuple[object, ...]]:
    return sorted((f.path, f.code, f.severity, f.line, f.message) for f in findings)


def _count(connection: sqlite3.Connection, sql: str) -> int:
    return int(connection.execute(sql).fetchone()[0])
