"""Decide what the index must do, from what it knows, what the scan saw and what state.db keeps.

`plan_changes` is a pure function: equal arguments give an equal plan, in path order. It opens no
file and runs no SQL; `index.apply` carries the plan out. Where links lead is not decided here
either, only which notes' links must be looked at again.

Rules kept here (tests/sync/test_plan.py names them the same way):

- path-is-identity      a note without an authored key keeps the key of its path while it is there
- move-by-content       one vanished and one new note with the same unique text are one move
- case-rename           a path that changed in letter case only is the same note
- derived-never-collides a derived key that is taken gets a suffix, and state.db keeps it
- authored-collision    the file named after the key in the managed folder keeps it, else nobody
- relink-causes         names, targets, aliases and keys that changed; nothing else
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from vaultmem.base.values import Binding, Finding
from vaultmem.index.operations import (
    Drop,
    FileFacts,
    FirstSeen,
    IdentityChange,
    KnownFile,
    Mark,
    Plan,
    Put,
    alias_lookup,
    key_lookup,
    lookups_of_path,
)
from vaultmem.notes.findings import finding
from vaultmem.notes.keys import derived_key
from vaultmem.notes.links.wikilinks import fold
from vaultmem.sync.plan.collisions import CollisionSettler, Known, Rules, is_taken

MIN_RENAME_BYTES = 64
"""Smaller bodies are no evidence that two files are one note (reference/vault.md, "Identity")."""


class Identities(Protocol):
    """What state.db keeps of identities."""

    def key_of(self, binding: Binding, rel: str) -> str:
        """Return the key that a note without an authored one was given, or ""."""

    def first_seen(self, binding: Binding, rel: str, content_hash: str) -> int:
        """Return when a text was first seen at a path (nanoseconds), 0 if its file's time counts."""


def plan_changes(
    facts: Sequence[FileFacts],
    gone: Sequence[KnownFile],
    known: Known,
    identities: Identities,
    rules: Rules,
    rejudge: Collection[tuple[Binding, str]] = (),
    relink: Collection[int] = (),
) -> Plan:
    """Return what turns the known state into what was seen.

    `facts`: files that are new or changed, readable or not, sorted by path; `gone`: rows whose
    files are not there any more (removals that a guard holds back are not among them). `rejudge`:
    memories whose standing changed in state.db; `relink`: rows whose edges a person judged anew.
    """
    return _Planner(facts, gone, known, identities, rules).plan(rejudge, relink)


class _Planner:
    """One run of planning; each step adds to the lists of the plan."""

    def __init__(
        self, facts: Sequence[FileFacts], gone: Sequence[KnownFile], known: Known, identities: Identities, rules: Rules
    ) -> None:
        self.known = known
        self.identities = identities
        self.rules = rules
        self.facts = [fact for fact in facts if fact.status == "ok"]
        self.events: list[Finding] = [
            item for fact in facts if fact.status in ("unstable", "unreadable") for item in fact.findings
        ]
        self.old = self._old_rows(self.facts)
        self.gone = gone
        self.changes: list[IdentityChange] = []
        self.first_seen: list[FirstSeen] = []
        self.planned: dict[tuple[Binding, str], list[Put]] = defaultdict(list)
        self.leaving = {row.id for row in self.gone} | {row.id for row in self.old.values()}

    def _old_rows(self, facts: Iterable[FileFacts]) -> dict[tuple[str, str], KnownFile]:
        by_vault: dict[str, list[str]] = defaultdict(list)
        for fact in facts:
            by_vault[fact.file.vault].append(fact.file.raw_path)
        return {
            (vault, raw): row
            for vault, paths in sorted(by_vault.items())
            for raw, row in self.known.files_at(vault, paths).items()
        }

    def plan(self, rejudge: Collection[tuple[Binding, str]], relink: Collection[int]) -> Plan:
        moves = self._find_moves()
        touched, puts = self._identify(moves)
        moved_ids = {row.id for row in moves.values()}
        drops = [Drop(row) for row in self.gone if row.id not in moved_ids]
        for drop in drops:
            self._forget_identity(drop.file)
        old_rows = [*(drop.file for drop in drops), *self.old.values(), *self.gone]
        settler = CollisionSettler(self.known, self.rules, self.planned, self.leaving, self.changes)
        puts, marks = settler.settle(puts, old_rows, rejudge)
        relinks = self._relinks(puts, drops, marks, moves, relink)
        return Plan(
            puts=tuple(
                sorted(puts, key=lambda put: (put.facts.file.vault, put.facts.file.path, put.facts.file.raw_path))
            ),
            drops=tuple(sorted(drops, key=lambda drop: (drop.file.vault, drop.file.path))),
            marks=tuple(sorted(marks, key=lambda mark: (mark.file.vault, mark.file.path))),
            touched=tuple(touched),
            relinks=tuple(sorted(relinks)),
            identities=tuple(self.changes),
            first_seen=tuple(self.first_seen),
            events=tuple(self.events),
        )

    # -- moves ----------------------------------------------------------------------------------

    def _find_moves(self) -> dict[tuple[str, str], KnownFile]:
        """Return new files (vault, raw path) that are moved old ones, with the old row."""
        new = [
            f
            for f in self.facts
            if (f.file.vault, f.file.raw_path) not in self.old
            and f.file.binding is not None
            and f.file.kind == "note"
            and f.content_hash
        ]
        old = [row for row in self.gone if row.binding is not None and row.kind == "note"]
        moves: dict[tuple[str, str], KnownFile] = {}
        by_case = {(row.vault, fold(row.path)): row for row in old}
        used: set[int] = set()
        for fact in new:
            row = by_case.get((fact.file.vault, fold(fact.file.path)))
            if row is not None and row.id not in used and row.binding == fact.file.binding:
                moves[fact.file.vault, fact.file.raw_path] = row
                used.add(row.id)
        groups: dict[tuple[Binding | None, str], tuple[list[FileFacts], list[KnownFile]]] = {}
        for fact in new:
            if (fact.file.vault, fact.file.raw_path) not in moves:
                groups.setdefault((fact.file.binding, fact.content_hash), ([], []))[0].append(fact)
        for row in old:
            if row.id not in used and (row.binding, row.content_hash) in groups:
                groups[row.binding, row.content_hash][1].append(row)
        for (_, _), (arrived, left) in groups.items():
            self._match(arrived, left, moves, used)
        self._report_edits(new, old, moves, used)
        return moves

    def _match(
        self,
        arrived: list[FileFacts],
        left: list[KnownFile],
        moves: dict[tuple[str, str], KnownFile],
        used: set[int],
    ) -> None:
        if not left or left[0].body_size < MIN_RENAME_BYTES and not left[0].claimed_key:
            return
        if len(arrived) == 1 and len(left) == 1:
            moves[arrived[0].file.vault, arrived[0].file.raw_path] = left[0]
            used.add(left[0].id)
        elif not left[0].claimed_key:
            paths = ", ".join(sorted(fact.file.raw_path for fact in arrived))
            for row in left:
                self.events.append(_event("rename_ambiguous", row, f"may have become one of: {paths}"))

    def _report_edits(
        self, new: list[FileFacts], old: list[KnownFile], moves: dict[tuple[str, str], KnownFile], used: set[int]
    ) -> None:
        """One note left and one with other text came, in one scope: told, since it may be one note."""
        left = defaultdict(list)
        came = defaultdict(list)
        for row in old:
            if row.id not in used and not row.claimed_key:
                left[row.binding].append(row)
        for fact in new:
            if (fact.file.vault, fact.file.raw_path) not in moves and not fact.claimed_key:
                came[fact.file.binding].append(fact)
        for binding, rows in left.items():
            if len(rows) == 1 and len(came[binding]) == 1 and rows[0].content_hash != came[binding][0].content_hash:
                message = f"vanished while {came[binding][0].file.raw_path} appeared with other text"
                self.events.append(_event("rename_with_edit_unresolved", rows[0], message))

    # -- keys -----------------------------------------------------------------------------------

    def _identify(self, moves: dict[tuple[str, str], KnownFile]) -> tuple[list[Put], list[Put]]:
        """Return (touched, puts) with a key for each note; authored and carried keys go first."""
        touched: list[Put] = []
        puts: list[Put] = []
        derived: list[Put] = []
        for fact in self.facts:
            place = fact.file.vault, fact.file.raw_path
            old, origin = self.old.get(place), moves.get(place)
            if not fact.file.holds_note:
                if old is not None and old.binding is not None:
                    self._forget_identity(old)
                same = old is not None and old.binding is None and self._same(fact, old)
                if old is not None and same:
                    self.leaving.discard(old.id)
                (touched if same else puts).append(self._put(fact, old, origin))
                continue
            put = self._put(fact, old, origin)
            if old is not None and self._same(fact, old):
                self._remember(put)
                self.leaving.discard(old.id)
                touched.append(Put(fact, old.id, put.rel, old.key, old.quarantine, put.seen_ns, kind="touched"))
                continue
            key = fact.claimed_key or self._kept_key(put, old, origin)
            if key:
                self._plan_key(puts, put, key)
            else:
                derived.append(put)
        for put in derived:
            self._plan_key(puts, put, self._free_key(put))
        return touched, puts

    def _same(self, fact: FileFacts, old: KnownFile) -> bool:
        """Whether a changed signature has unchanged content, place and standing behind it."""
        return (
            fact.content_hash == old.content_hash
            and fact.file.path == old.path
            and fact.file.binding == old.binding
            and fact.file.excluded_by == old.excluded
            and fact.own_quarantine == old.own_quarantine
            and (old.binding is None or self._rel(fact) == old.rel)
            and (fact.ref >= 0 or not fact.findings)  # such findings tell sizes and reasons
        )

    def _rel(self, fact: FileFacts) -> str:
        return self.rules.rel(fact.file.vault, fact.file.mapping, fact.file.path)

    def _put(self, fact: FileFacts, old: KnownFile | None, origin: KnownFile | None) -> Put:
        row = old or origin
        kind = "moved" if origin is not None else "changed" if old is not None else "added"
        is_note = fact.file.holds_note
        rel = self._rel(fact) if is_note else ""
        seen = self._seen_ns(fact, rel, row) if is_note else 0
        return Put(
            fact, row.id if row else 0, rel, seen_ns=seen, moved_from=origin.raw_path if origin else "", kind=kind
        )

    def _seen_ns(self, fact: FileFacts, rel: str, row: KnownFile | None) -> int:
        """Return when this text was first seen: a touch or a move makes no note newer."""
        assert fact.file.binding is not None
        mtime_ns = fact.file.signature.mtime_ns
        kept = self.identities.first_seen(fact.file.binding, rel, fact.content_hash)
        if not kept and row is not None and row.binding is not None and row.content_hash == fact.content_hash:
            kept = self.identities.first_seen(row.binding, row.rel, row.content_hash) or row.mtime_ns
        return kept or mtime_ns

    def _remember(self, put: Put) -> None:
        """Note the time that counts where the file's own time says otherwise."""
        binding = put.facts.file.binding
        if binding is None or put.seen_ns == put.facts.file.signature.mtime_ns:
            return
        if self.identities.first_seen(binding, put.rel, put.facts.content_hash) != put.seen_ns:
            self.first_seen.append(FirstSeen(binding, put.rel, put.facts.content_hash, put.seen_ns))

    def _kept_key(self, put: Put, old: KnownFile | None, origin: KnownFile | None) -> str:
        """Return the key that a note without an authored one already has, or ""."""
        binding = put.facts.file.binding
        assert binding is not None
        if origin is not None and not origin.claimed_key and origin.binding == binding:
            self._forget_identity(origin)
            if origin.key != derived_key(put.rel):
                self.changes.append(IdentityChange(binding, put.rel, origin.key))
            return origin.key
        kept = self.identities.key_of(binding, put.rel)
        if kept:
            return kept
        if old is not None and not old.claimed_key and old.binding == binding and old.rel == put.rel:
            return old.key
        return ""

    def _free_key(self, put: Put) -> str:
        """Return the derived key, with a suffix if another note has it already."""
        binding = put.facts.file.binding
        assert binding is not None
        suffix = 1
        while is_taken(self.known, self.planned, self.leaving, binding, key := derived_key(put.rel, suffix), put.rel):
            suffix += 1
        if suffix > 1:
            self.changes.append(IdentityChange(binding, put.rel, key))
        return key

    def _plan_key(self, puts: list[Put], put: Put, key: str) -> None:
        fact = put.facts
        assert fact.file.binding is not None
        self._remember(put)
        full = Put(fact, put.file_id, put.rel, key, fact.own_quarantine, put.seen_ns, None, put.moved_from, put.kind)
        self.planned[fact.file.binding, key].append(full)
        puts.append(full)

    def _forget_identity(self, row: KnownFile) -> None:
        if row.binding is not None and self.identities.key_of(row.binding, row.rel):
            self.changes.append(IdentityChange(row.binding, row.rel, ""))

    # -- links ----------------------------------------------------------------------------------

    def _relinks(
        self,
        puts: list[Put],
        drops: list[Drop],
        marks: list[Mark],
        moves: dict[tuple[str, str], KnownFile],
        judged: Collection[int],
    ) -> set[int]:
        """Return the rows whose links may lead elsewhere now, beside those that are written anyway."""
        if self.known.is_empty:
            return set()
        lookups: set[str] = set()
        targets: set[int] = set()
        for put in puts:
            old = self.old.get((put.facts.file.vault, put.facts.file.raw_path))
            origin = moves.get((put.facts.file.vault, put.facts.file.raw_path))
            self._causes_of_put(put, old or origin, moved=origin is not None, lookups=lookups, targets=targets)
        for drop in drops:
            targets.add(drop.file.id)
            lookups.update(lookups_of_path(drop.file.vault, drop.file.path), _row_lookups(drop.file))
        for mark in marks:
            targets.add(mark.file.id)
            lookups.update(_row_lookups(mark.file))
            if mark.file.binding is not None:
                lookups.add(key_lookup(mark.file.binding, mark.key))
        found = self.known.link_sources(lookups) | self.known.link_sources_to(targets)
        found |= {mark.file.id for mark in marks} | set(judged)
        return found - {put.file_id for put in puts} - {drop.file.id for drop in drops}

    def _causes_of_put(
        self, put: Put, old: KnownFile | None, *, moved: bool, lookups: set[str], targets: set[int]
    ) -> None:
        fact = put.facts
        vault = fact.file.vault
        elsewhere = moved or (old is not None and old.path != fact.file.path)
        if old is None or elsewhere:
            lookups.update(lookups_of_path(vault, fact.file.path))
            if old is not None:
                lookups.update(lookups_of_path(vault, old.path))
                targets.add(old.id)
        new_lookups = {alias_lookup(vault, alias) for alias in fact.aliases}
        if put.key and fact.file.binding is not None:
            new_lookups.add(key_lookup(fact.file.binding, put.key))
        old_lookups = _row_lookups(old) if old is not None else set()
        standing = (put.key, fact.file.binding, put.quarantine, fact.file.excluded_by)
        if old is not None and (
            elsewhere or standing != (old.key, old.binding, old.quarantine, old.excluded)
        ):  # of several notes with one alias the paths decide, and all are told
            targets.add(old.id)
            lookups.update(new_lookups | old_lookups)
        else:
            lookups.update(new_lookups ^ old_lookups)
        if old is not None and old.outline != fact.outline:
            targets.add(old.id)


def _row_lookups(row: KnownFile) -> set[str]:
    found = {alias_lookup(row.vault, alias) for alias in row.aliases}
    if row.binding is not None:
        found.add(key_lookup(row.binding, row.key))
    return found


def _event(code: str, row: KnownFile, message: str) -> Finding:
    found = finding(code, row.raw_path, 0, message)
    return Finding(found.code, found.severity, found.path, found.line, found.message, row.vault)
