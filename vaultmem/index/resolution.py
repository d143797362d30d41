"""Links of one note to the rows that say where they lead, and to the relationships that follow.

Pure: what files there are is asked of `Names`, which is the index (`links.StoredNames`) or a table
of all files that a load hands to its readers (`HeldNames`). The rule for paths is `notes.links.resolve`.
A link into a note that no view shows has state `excluded`, one into a file that is no note `attachment`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from vaultmem.base.values import Binding, CaoLink, Finding, Heading, Link, Resolution
from vaultmem.index import digest
from vaultmem.index.operations import Put, key_lookup
from vaultmem.index.rows import PreparedNote, finding_row
from vaultmem.notes.body.outline import subpath_line
from vaultmem.notes.findings import finding
from vaultmem.notes.links.edges import MAX_EDGES_PER_TYPE, Edge, LinkEnd, edges_of
from vaultmem.notes.links.resolve import DANGLING, lookup_name, resolve_path
from vaultmem.notes.links.wikilinks import fold, whole_wikilink, wikilink


class Target(NamedTuple):
    """A file that links may lead to; `shown`: it is a note that views may show."""

    id: int
    path: str
    kind: str
    binding: Binding | None
    key: str
    shown: bool


class LinkRow(NamedTuple):
    """A link with what its resolution depends on; `rel` is its cao.links row, if it is one."""

    link: Link
    lookup: str
    rel: CaoLink | None


class SourceLinks(NamedTuple):
    """What is written for one source: rows of the tables link, edge and finding, and its part of the digest."""

    source_id: int
    links: list[tuple[Any, ...]]
    edges: list[tuple[Any, ...]]
    findings: list[tuple[Any, ...]]
    digest: bytes


Resolved = tuple[list[SourceLinks], list[int]]
"""What became of some sources: what is to be written, and the ids of all that are done with it."""


class Unsettled(Exception):
    """These names can't tell where a link leads; the index can."""


class Names(Protocol):
    """What resolution asks of the files that there are."""

    complete: bool
    """Whether looking at a name costs nothing, since all of them are in memory."""

    def named(self, vault: str, name: str) -> Sequence[Target]:
        """Return the files of that folded name in a vault, by path."""

    def with_alias(self, vault: str, folded: str) -> Sequence[Target]:
        """Return the shown notes with that folded alias in a vault, by path."""

    def with_key(self, binding: Binding, key: str) -> Target | None:
        """Return the note with that key in a binding, a shown one first."""

    def has_subpath(self, target: Target, subpath: str) -> bool:
        """Tell whether a note has the heading or block that a `#…` part means. Raises Unsettled."""


Outline = tuple[tuple[Heading, ...], tuple[str, ...]]
"""Headings and block ids of a note."""


def read_outline(headings: str, blocks: str) -> Outline:
    """Return what the columns of a note's row say (JSON)."""
    return tuple(Heading(*item) for item in json.loads(headings)), tuple(json.loads(blocks))


class HeldNames:
    """All files of a load in memory, with the headings of those that links with a heading may lead to."""

    complete = True

    def __init__(self, table: Iterable[Sequence[Any]]) -> None:
        """`table`: rows of `name_rows`, by vault and path."""
        self._named: dict[str, dict[str, list[Target]]] = {}
        self._aliased: dict[tuple[str, str], list[Target]] = {}
        self._at: dict[str, dict[str, Target]] = {}
        self._keyed: dict[tuple[Binding, str], Target] | None = None
        self._written: dict[int, tuple[str, str]] = {}
        self._outlines: dict[int, Outline] = {}
        bindings: dict[tuple[str, str], Binding] = {}
        for vault, raw_path, file_id, path, kind, place, key, shown, aliases, outline in table:
            binding = None
            if place is not None:
                binding = bindings.get(place) or bindings.setdefault(place, Binding(place[0], place[1] or None))
            target = Target(file_id, path, kind, binding, key, shown)
            self._at.setdefault(vault, {})[raw_path] = target
            self._named.setdefault(vault, {}).setdefault(lookup_name(path), []).append(target)
            if outline is not None:
                self._written[file_id] = outline
            for alias in aliases:
                self._aliased.setdefault((vault, alias), []).append(target)

    def at(self, vault: str, raw_path: str) -> Target | None:
        """Return the file at a place, None if the load left it out."""
        return self._at.get(vault, {}).get(raw_path)

    def named(self, vault: str, name: str) -> Sequence[Target]:
        """See `Names`."""
        return self._named[vault].get(name, ())

    def with_alias(self, vault: str, folded: str) -> Sequence[Target]:
        """See `Names`."""
        return self._aliased.get((vault, folded), ())

    def with_key(self, binding: Binding, key: str) -> Target | None:
        """See `Names`."""
        if self._keyed is None:  # most vaults have no links by key
            self._keyed = {}
            for files in self._at.values():
                for target in files.values():
                    known = self._keyed.get((target.binding, target.key)) if target.binding else None
                    if target.binding and (known is None or (target.shown and not known.shown)):
                        self._keyed[target.binding, target.key] = target
        return self._keyed.get((binding, key))

    def has_subpath(self, target: Target, subpath: str) -> bool:
        """See `Names`."""
        outline = self._outlines.get(target.id)
        if outline is None:
            if target.id not in self._written:
                raise Unsettled
            outline = self._outlines[target.id] = read_outline(*self._written[target.id])
        return subpath_line(subpath, *outline) > 0


def name_rows(
    puts: Sequence[Put], ids: Sequence[int], prepared: Callable[[int], PreparedNote]
) -> list[tuple[Any, ...]]:
    """Return what `HeldNames` keeps of the files of a load, as plain values."""
    asked = {name for put in puts for name in put.facts.asks_outlines_of}
    rows = []
    for put, file_id in zip(puts, ids, strict=True):
        outline = None
        if put.facts.ref >= 0 and not put.quarantine and _is_asked(put, asked):
            note = prepared(put.facts.ref)
            outline = (note.headings, note.blocks)
        rows.append((*_name_row(put, file_id), outline))
    return rows


def _is_asked(put: Put, asked: Collection[str]) -> bool:
    if not asked:
        return False
    name = lookup_name(put.facts.file.path)
    return name in asked or name.removesuffix(".md") in asked or "" in put.facts.asks_outlines_of


def _name_row(put: Put, file_id: int) -> tuple[Any, ...]:
    file = put.facts.file
    place = (file.binding.scope, file.binding.scope_id or "") if file.holds_note and file.binding else None
    shown = place is not None and not put.quarantine
    aliases = tuple({fold(alias) for alias in put.facts.aliases}) if shown else ()
    return file.vault, file.raw_path, file_id, file.path, file.kind, place, put.key, shown, aliases


class Resolver:
    """Resolves the links of sources with the names that there are; `rejected` are edges by id."""

    def __init__(self, names: Names, rejected: Collection[str] = frozenset()) -> None:
        self._names = names
        self._rejected = rejected
        self._alone: dict[tuple[str, str], tuple[Resolution, Target | None]] = {}
        """What links lead to whose name only one file has, wherever they stand; by vault and path."""

    def links_of(
        self, source: Target, vault: str, rows: Sequence[LinkRow], findings: Sequence[Finding]
    ) -> SourceLinks | None:
        """Return what is to be written for a source, None for nothing. Raises Unsettled.

        `findings` are the file's own: those of a file without a note count in its part of the digest.
        """
        values: list[tuple[Any, ...]] = []
        logical: list[list[Any]] = []
        ends: list[LinkEnd] = []
        for position, row in enumerate(rows):
            found, target, missing = self._resolve(row, source, vault)
            link = row.link
            rel = _rel_text(row.rel) if row.rel else ""
            candidates = json.dumps(found.candidates, ensure_ascii=False) if found.candidates else "[]"
            state = (found.state, found.via, int(missing), candidates)
            target_id = target.id if target else None
            values.append((source.id, position, *link, row.lookup, rel, *state[:2], target_id, *state[2:]))
            logical.append(
                [link.raw, link.link, link.kind, link.embed, link.line, link.key, rel, *state, found.target or ""]
            )
            end = _link_end(row, found, target, source)
            if end is not None:
                ends.append(end)
        edges, cut = self._edges(source, ends)
        told = [[row[0], *row[_BESIDE_ID:]] for row in edges] + ([[cut]] if cut else [])
        note_less = [] if source.binding else sorted((f.path, f.code, f.severity, f.line, f.message) for f in findings)
        if not (logical or told or note_less):
            return None
        part = digest.row_hash("source", [vault, source.path, logical, told, note_less])
        return SourceLinks(source.id, values, edges, _limit_finding(source, vault) if cut else [], part)

    def _edges(self, source: Target, ends: Sequence[LinkEnd]) -> tuple[list[tuple[Any, ...]], bool]:
        if source.binding is None or not source.shown or not ends:
            return [], False
        edges, cut = edges_of(source.binding, source.key, ends)
        if self._rejected:
            edges = tuple(edge._replace(status="rejected") if edge.id in self._rejected else edge for edge in edges)
        return [_edge_row(edge, source.id) for edge in edges], cut

    def _resolve(self, row: LinkRow, source: Target, vault: str) -> tuple[Resolution, Target | None, bool]:
        """Return (resolution as stored, target, whether the subpath is missing there)."""
        if row.lookup.startswith("="):
            return (*self._by_key(row, source), False)
        found, target = self._by_name(row, source, vault)
        if target is None or not row.link.subpath or found.state not in ("resolved", "ambiguous"):
            return found, target, False
        return found, target, not self._names.has_subpath(target, row.link.subpath)

    def _by_name(self, row: LinkRow, source: Target, vault: str) -> tuple[Resolution, Target | None]:
        path = row.link.path
        if row.link.kind == "canvas" and row.link.embed:
            return self._by_path("/" + path.lstrip("/"), row, source, vault)  # a card names its file from the root
        known = self._alone.get((vault, path))
        if known is None:
            known = self._by_path(path, row, source, vault)
            if self._names.complete and "/" not in path and len(self._candidates(row, vault)) == 1:
                self._alone[vault, path] = known
        return known

    def _candidates(self, row: LinkRow, vault: str) -> list[Target]:
        name = row.lookup.partition(":")[2]
        return [*self._names.named(vault, name), *self._names.named(vault, name + ".md")]

    def _by_path(self, path: str, row: LinkRow, source: Target, vault: str) -> tuple[Resolution, Target | None]:
        def files_named(name: str) -> list[str]:
            return [target.path for target in self._names.named(vault, name)]

        found = resolve_path(path, source.path, files_named)
        if found.target is None:
            return self._by_alias(path, vault)
        by_path = {target.path: target for target in self._candidates(row, vault)}
        target = source if found.target == source.path and not path else by_path.get(found.target, source)
        if target.kind != "note":
            return Resolution("attachment", found.via, found.target), target
        if not target.shown:
            return Resolution("excluded", found.via, found.target), target
        return found, target

    def _by_key(self, row: LinkRow, source: Target) -> tuple[Resolution, Target | None]:
        assert row.rel is not None
        target = self._names.with_key(source.binding, row.rel.to) if source.binding is not None else None
        if target is None:
            return DANGLING, None
        return Resolution("resolved" if target.shown else "excluded", "name", target.path), target

    def _by_alias(self, path: str, vault: str) -> tuple[Resolution, Target | None]:
        """A link that only an alias matches: no link in Obsidian, told with its likely target."""
        found = self._names.with_alias(vault, fold(path))
        if not found:
            return DANGLING, None
        paths = tuple(target.path for target in found) if len(found) > 1 else ()
        return Resolution("alias", "alias", found[0].path, paths), found[0]


def link_rows(
    links: Iterable[tuple[Link, str]], cao: Sequence[CaoLink], binding: Binding | None, vault: str
) -> list[LinkRow]:
    """Return the rows of a note: its links, those of `cao.links` as kind `cao`, and rows that name keys."""
    by_text = {row.to: row for row in cao if whole_wikilink(row.to) is not None}
    rows = [LinkRow(link, f"{vault}:{name}", None) for link, name in links]
    for row in cao:
        inner = whole_wikilink(row.to)
        if row.to in by_text and inner is not None:
            link_of_row = wikilink(inner, embed=False, line=row.line, kind="cao", key="cao.links")
            if link_of_row is not None:
                rows.append(LinkRow(link_of_row, f"{vault}:{lookup_name(link_of_row.path)}", row))
        elif binding is not None:
            link = Link(row.to, row.to, row.to, "", row.to, "cao", False, row.line, "cao.links")
            rows.append(LinkRow(link, key_lookup(binding, row.to), row))
    return rows


def _rel_text(row: CaoLink) -> str:
    return json.dumps(
        {
            "to": row.to,
            "type": row.type,
            "status": row.status,
            "origin": row.origin,
            "confidence": row.confidence,
            "line": row.line,
        }
    )


def _link_end(row: LinkRow, found: Resolution, target: Target | None, source: Target) -> LinkEnd | None:
    """Return the end of a relationship, or None: only shown notes of one binding have some."""
    if target is None or found.state not in ("resolved", "ambiguous"):
        return None
    if target.binding is not source.binding and target.binding != source.binding:
        return None
    if row.rel is None:
        return LinkEnd(target.key, False)
    return LinkEnd(target.key, True, row.rel.type, row.rel.status, row.rel.confidence, row.rel.origin)


def _edge_row(edge: Edge, source_id: int) -> tuple[object, ...]:
    return (
        edge.id,
        source_id,
        edge.binding.scope,
        edge.binding.scope_id or "",
        edge.source_key,
        edge.target_key,
        edge.type,
        edge.origin,
        edge.status,
        edge.confidence,
        edge.attested,
        edge.authored_origin,
    )


_BESIDE_ID = 8
"""From here on an edge's row holds what its id is not a hash of: status, confidence, attestation, authored origin."""


def _limit_finding(source: Target, vault: str) -> list[tuple[object, ...]]:
    message = f"more than {MAX_EDGES_PER_TYPE} relationships of one type"
    found = finding("edge_limit_exceeded", source.path, 0, message)
    return [finding_row(source.id, vault, found)]
