"""Two notes, one name: which of them keeps a key or a path, and who is held back.

Pure, a part of planning. Rules (reference/vault.md, "Identity"): notes whose paths are equal without
letter case are both quarantined; of several notes that claim a key the one named after it in the
managed folder keeps it, else none does; a derived key always gives way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from vaultmem.base.values import Binding, Finding
from vaultmem.index.operations import FileFacts, IdentityChange, KnownFile, Mark, Put
from vaultmem.notes.findings import finding
from vaultmem.notes.keys import derived_key
from vaultmem.notes.links.wikilinks import fold

Planned = Mapping[tuple[Binding, str], Sequence[Put]]
"""Notes that are to be written, by binding and key."""


class Known(Protocol):
    """What the plan asks the index for; every answer is of the state before the run."""

    @property
    def is_empty(self) -> bool:
        """Whether the index holds no file."""

    def files_at(self, vault: str, raw_paths: Collection[str]) -> dict[str, KnownFile]:
        """Return the rows of these files by raw path."""

    def notes_with_key(self, binding: Binding, key: str) -> list[KnownFile]:
        """Return the notes of that key in a binding, by path."""

    def files_named(self, vault: str, name: str) -> list[KnownFile]:
        """Return the files of that folded name in a vault, by path."""

    def link_sources(self, lookups: Collection[str]) -> set[int]:
        """Return the row ids of sources of links with one of these lookups."""

    def link_sources_to(self, ids: Collection[int]) -> set[int]:
        """Return the row ids of sources of links that lead to one of these files."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the plan must know of the configuration: paths that keys and managed notes have."""

    rel_of: dict[tuple[str, int], tuple[str, str]]
    """(vault, mapping) to (prefix that is cut from the path, prefix that is put before it)."""
    managed_patterns: tuple[tuple[str, str, str, str | None], ...] = ()
    """(vault, folder, scope, scope_id or "*") of writable mappings."""
    forgotten: frozenset[tuple[str, str, str]] = frozenset()
    """(scope, scope_id, key) of memories that were forgotten while their file stays."""
    native: str = ""
    """Source of topics: keys have no capitals there, and the names of sessions that differ in case stay apart."""

    def rel(self, vault: str, mapping: int, path: str) -> str:
        """Return the path that a derived key hashes."""
        cut, put = self.rel_of[vault, mapping]
        return put + path[len(cut) :]

    def likely_put(self, facts: FileFacts) -> Put:
        """Return what planning makes of a new file unless other files or state.db have a say."""
        file = facts.file
        if not file.holds_note:
            return Put(facts, 0)
        rel = self.rel(file.vault, file.mapping, file.path)
        key = facts.claimed_key or derived_key(rel)
        return Put(facts, 0, rel, key, facts.own_quarantine, file.signature.mtime_ns)

    def is_home_of(self, file: KnownFile | Put) -> bool:
        """Tell whether a note lies where our own note of its claimed key would lie."""
        if isinstance(file, Put):
            vault, path, key = file.facts.file.vault, file.facts.file.path, file.facts.claimed_key
            binding = file.facts.file.binding
        else:
            vault, path, key, binding = file.vault, file.path, file.claimed_key, file.binding
        for home, folder, scope, scope_id in self.managed_patterns:
            if vault != home or binding is None or binding.scope != scope:
                continue
            if scope_id == "*":
                folder = f"{folder}/{binding.scope_id}"
            elif scope_id != binding.scope_id:
                continue
            if path == f"{folder}/{key}.md":
                return True
        return False


def is_taken(known: Known, planned: Planned, leaving: Collection[int], binding: Binding, key: str, rel: str) -> bool:
    """Whether a note at another path has the key (twins that differ in Unicode form only share theirs)."""
    if any(put.rel != rel for put in planned.get((binding, key), ())):
        return True
    return any(row.id not in leaving and row.rel != rel for row in known.notes_with_key(binding, key))


class CollisionSettler:
    """Judges all groups of notes that a run touches; new identities are added to `changes`."""

    def __init__(
        self,
        known: Known,
        rules: Rules,
        planned: Planned,
        leaving: Collection[int],
        changes: list[IdentityChange],
    ) -> None:
        self._known = known
        self._rules = rules
        self._planned = planned
        self._leaving = leaving
        self._changes = changes
        self._settled: dict[int, Put] = {}
        self._marks: dict[int, Mark] = {}

    def settle(
        self, puts: list[Put], old_rows: Sequence[KnownFile], rejudge: Collection[tuple[Binding, str]] = ()
    ) -> tuple[list[Put], list[Mark]]:
        """Return the puts with their standing, and marks for unchanged notes whose standing changes."""
        twins = self._path_twins(puts, old_rows)
        groups: set[tuple[Binding, str]] = set(self._planned)
        groups |= {(row.binding, row.key) for row in old_rows if row.binding is not None}
        groups |= twins.groups | set(rejudge)
        for binding, key in sorted(groups, key=lambda group: (group[0].scope, group[0].scope_id or "", group[1])):
            self._settle_key(binding, key, twins)
        return [self._settled.get(id(put), put) for put in puts], list(self._marks.values())

    def _settle_key(self, binding: Binding, key: str, twins: _Twins) -> None:
        rows = [row for row in self._known.notes_with_key(binding, key) if row.id not in self._leaving]
        items: list[Put | KnownFile] = [*self._planned.get((binding, key), ()), *rows]
        claimants = [item for item in items if _claim(item) and not _own_quarantine(item) and not twins.has(item)]
        keeper = claimants[0] if len(claimants) == 1 else None
        if len(claimants) > 1:
            homes = [item for item in claimants if self._rules.is_home_of(item)]
            keeper = homes[0] if len(homes) == 1 else None
        paths = sorted(_shown_path(item) for item in claimants)
        for item in items:
            quarantine, collision = _own_quarantine(item), None
            if not quarantine and twins.has(item):
                quarantine, collision = "path_case_collision", _collision_of_paths(item, twins.paths(item))
            elif not quarantine and item in claimants and item is not keeper:
                quarantine, collision = "key_collision", _collision_of_keys(item, key, paths)
            gives_way = not quarantine and not _claim(item) and keeper is not None
            new_key = self._other_key(item, binding) if gives_way else key
            if not quarantine and (binding.scope, binding.scope_id or "", new_key) in self._rules.forgotten:
                quarantine, collision = "deindexed_retained", _forgotten(item, new_key, binding)
            if isinstance(item, Put):
                if (new_key, quarantine, collision) != (item.key, item.quarantine, item.collision):
                    self._settled[id(item)] = replace(item, key=new_key, quarantine=quarantine, collision=collision)
            elif quarantine or item.quarantine or new_key != key:
                self._marks[item.id] = Mark(item, new_key, quarantine, collision)

    def _other_key(self, item: Put | KnownFile, binding: Binding) -> str:
        """An authored key takes over a derived one: the derived note gets a suffix, for good."""
        suffix = 2
        while is_taken(
            self._known, self._planned, self._leaving, binding, key := derived_key(item.rel, suffix), item.rel
        ):
            suffix += 1
        self._changes.append(IdentityChange(binding, item.rel, key))
        return key

    def _path_twins(self, puts: Sequence[Put], old_rows: Sequence[KnownFile]) -> _Twins:
        """Find mapped notes whose paths are equal without letter case and Unicode form."""
        planned: dict[tuple[str, str], list[Put]] = defaultdict(list)
        for put in puts:
            if put.key:
                planned[put.facts.file.vault, fold(put.facts.file.path)].append(put)
        touched = set(planned) | {(row.vault, fold(row.path)) for row in old_rows if row.binding is not None}
        twins = _Twins()
        for vault, folded in sorted(place for place in touched if place[0] != self._rules.native):
            rows = [
                row
                for row in self._known.files_named(vault, folded.rpartition("/")[2])
                if row.binding is not None and row.id not in self._leaving and fold(row.path) == folded
            ]
            twins.add_group(planned.get((vault, folded), []), rows)
        return twins


class _Twins:
    """Notes whose paths collide, with the paths of their groups, and the key groups to judge again."""

    def __init__(self) -> None:
        self._paths: dict[int, list[str]] = {}
        self.groups: set[tuple[Binding, str]] = set()

    def add_group(self, puts: Sequence[Put], rows: Sequence[KnownFile]) -> None:
        self.groups |= {(row.binding, row.key) for row in rows if row.binding is not None}
        paths = sorted([put.facts.file.raw_path for put in puts] + [row.raw_path for row in rows])
        if len(paths) < 2:
            return
        for put in puts:
            self._paths[id(put)] = paths
        for row in rows:
            self._paths[-row.id] = paths

    def has(self, item: Put | KnownFile) -> bool:
        return _twin_id(item) in self._paths

    def paths(self, item: Put | KnownFile) -> list[str]:
        return self._paths[_twin_id(item)]


def _twin_id(item: Put | KnownFile) -> int:
    return id(item) if isinstance(item, Put) else -item.id


def _claim(item: Put | KnownFile) -> str:
    return item.facts.claimed_key if isinstance(item, Put) else item.claimed_key


def _own_quarantine(item: Put | KnownFile) -> str:
    return item.facts.own_quarantine if isinstance(item, Put) else item.own_quarantine


def _path(item: Put | KnownFile) -> str:
    return item.facts.file.path if isinstance(item, Put) else item.path


def _shown_path(item: Put | KnownFile) -> str:
    return item.facts.file.raw_path if isinstance(item, Put) else item.raw_path


def _collision_of_paths(item: Put | KnownFile, paths: list[str]) -> Finding:
    return finding("path_case_collision", _path(item), 0, f"these are one name on most systems: {', '.join(paths)}")


def _forgotten(item: Put | KnownFile, key: str, binding: Binding) -> Finding:
    place = f"--scope {binding.scope}" + (f" --scope-id {binding.scope_id}" if binding.scope_id else "")
    return finding("deindexed_retained", _path(item), 0, f"it was forgotten: vaultmem restore {key} {place}")


def _collision_of_keys(item: Put | KnownFile, key: str, paths: list[str]) -> Finding:
    return finding("key_collision", _path(item), 0, f"key {key} is claimed by: {', '.join(paths)}")
