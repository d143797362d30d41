"""Links and edges in the index: written with their resolution, and resolved anew when a cause changed.

The rule itself is `notes.resolve`; here are only the tables it is asked with. A link into a note
that no view shows has state `excluded`, one into a file that is no note `attachment`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vaultmem.edges import MAX_EDGES_PER_TYPE, Edge, LinkEnd, edges_of
from vaultmem.index import digest
from vaultmem.index.rows import PreparedNote
from vaultmem.model import Binding, CaoLink, Finding, Heading, Link, Resolution
from vaultmem.notes.findings import finding
from vaultmem.notes.markdown import subpath_line
from vaultmem.notes.resolve import DANGLING, lookup_name, resolve_path
from vaultmem.notes.wikilinks import fold, whole_wikilink, wikilink
from vaultmem.operations import FileFacts, key_lookup

_EDGE_INSERT = f"INSERT INTO edge VALUES ({','.join('?' * 12)})"


@dataclass(frozen=True, slots=True)
class _Target:
    """A file that links may lead to."""

    id: int
    path: str
    kind: str
    binding: Binding | None
    key: str
    shown: bool


class _Row(NamedTuple):
    """A link with what its resolution depends on; `rel` is its cao.links row, if it is one."""

    link: Link
    lookup: str
    rel: CaoLink | None


class LinkWriter:
    """Writes and resolves the links of one transaction; `added` and `removed` go into the digest."""

    def __init__(
        self, connection: sqlite3.Connection, *, many: bool = False, rejected: Collection[str] = frozenset()
    ) -> None:
        """`many`: so much is to be resolved that the table of names is read at once; `rejected`: edges by id."""
        self._rejected = rejected
        self._connection = connection
        self._names: dict[tuple[str, str], list[_Target]] = {}
        self._by_id: dict[int, _Target] = {}
        self._all_names = False
        self._alone: dict[tuple[str, str], tuple[Resolution, _Target | None]] = {}
        """What links lead to whose name only one file has, wherever they stand; by vault and path."""
        self._many = many
        self._outlines: dict[int, tuple[tuple[Heading, ...], tuple[str, ...]]] = {}
        self.added = 0
        self.removed = 0
        self.link_rows = 0
        self.edge_rows = 0

    def write(self, source_id: int, facts: FileFacts, note: PreparedNote | None, *, is_new: bool) -> None:
        """Write the links of a file that was read, in place of those that an old row has."""
        if not is_new:
            self.remove(source_id)
        if note is None and not facts.links and not facts.findings:
            return
        source = self._source(source_id)
        links = note.link_values() if note else [(link, lookup_name(link.path)) for link in facts.links]
        cao: Sequence[CaoLink] = note.cao_values() if note else ()
        self._store(
            source_id, source, _rows(links, cao, source.binding, facts.file.vault), facts.file.vault, facts.findings
        )

    def relink(self, source_id: int) -> None:
        """Resolve the links of an unchanged file again."""
        found = self._connection.execute(
            "SELECT raw, link, path, subpath, display, kind, embed, line, property, lookup, rel FROM link "
            "WHERE source_id = ? ORDER BY position",
            (source_id,),
        ).fetchall()
        row = self._connection.execute("SELECT vault, path FROM file WHERE id = ?", (source_id,)).fetchone()
        if row is None:
            return
        source = self._source(source_id)
        rows = []
        for raw, link, path, subpath, display, kind, embed, line, key, lookup, rel in found:
            value = CaoLink(**json.loads(rel)) if rel else None
            if value is not None and lookup.startswith("=") and source.binding is not None:
                lookup = key_lookup(source.binding, value.to)
            rows.append(_Row(Link(raw, link, path, subpath, display, kind, bool(embed), line, key), lookup, value))
        findings = self._file_findings(source_id)
        self.remove(source_id)
        self._store(source_id, source, rows, row[0], findings)

    def remove(self, source_id: int) -> None:
        """Remove the links and edges of a file."""
        row = self._connection.execute("SELECT digest FROM source_digest WHERE file_id = ?", (source_id,)).fetchone()
        if row is None:
            return
        self.removed += int.from_bytes(row[0], "big")
        self.link_rows -= self._connection.execute("DELETE FROM link WHERE source_id = ?", (source_id,)).rowcount
        self.edge_rows -= self._connection.execute("DELETE FROM edge WHERE source_id = ?", (source_id,)).rowcount
        self._connection.execute("DELETE FROM source_digest WHERE file_id = ?", (source_id,))
        self._connection.execute("DELETE FROM finding WHERE file_id = ? AND code = 'edge_limit_exceeded'", (source_id,))

    def _file_findings(self, file_id: int) -> list[Finding]:
        sql = "SELECT code, severity, path, line, message FROM finding WHERE file_id = ?"
        return [Finding(*row) for row in self._connection.execute(sql, (file_id,))]

    # -- storing --------------------------------------------------------------------------------

    def _store(
        self, source_id: int, source: _Target, rows: Sequence[_Row], vault: str, findings: Sequence[Finding]
    ) -> None:
        values = []
        logical = []
        ends: list[LinkEnd] = []
        for position, row in enumerate(rows):
            found, target, missing = self._resolve(row, source, vault)
            link = row.link
            rel = _rel_text(row.rel) if row.rel else ""
            candidates = json.dumps(found.candidates, ensure_ascii=False) if found.candidates else "[]"
            state = (found.state, found.via, int(missing), candidates)
            target_id = target.id if target else None
            values.append((source_id, position, *link, row.lookup, rel, *state[:2], target_id, *state[2:]))
            logical.append(
                [link.raw, link.link, link.kind, link.embed, link.line, link.key, rel, *state, found.target or ""]
            )
            end = _link_end(row, found, target, source)
            if end is not None:
                ends.append(end)
        if values:
            self.link_rows += len(values)
            self._connection.executemany(f"INSERT INTO link VALUES (NULL,{','.join('?' * 18)})", values)
        edges = self._store_edges(source_id, source, ends, vault)
        note_less = [] if source.binding else sorted((f.path, f.code, f.severity, f.line, f.message) for f in findings)
        if logical or edges or note_less:
            part = digest.row_hash("source", [vault, source.path, logical, edges, note_less])
            self._connection.execute("INSERT OR REPLACE INTO source_digest VALUES (?,?)", (source_id, part))
            self.added += int.from_bytes(part, "big")

    def _store_edges(self, source_id: int, source: _Target, ends: list[LinkEnd], vault: str) -> list[list[object]]:
        if source.binding is None or not source.shown or not ends:
            return []
        edges, cut = edges_of(source.binding, source.key, ends)
        if self._rejected:
            edges = tuple(edge._replace(status="rejected") if edge.id in self._rejected else edge for edge in edges)
        rows = [_edge_row(edge, source_id) for edge in edges]
        self._connection.executemany(_EDGE_INSERT, rows)
        self.edge_rows += len(rows)
        if cut:
            message = f"more than {MAX_EDGES_PER_TYPE} relationships of one type"
            found = finding("edge_limit_exceeded", source.path, 0, message)
            self._connection.execute(
                "INSERT INTO finding VALUES (?,?,?,?,?,?,?)",
                (source_id, vault, found.path, found.code, found.severity, found.line, found.message),
            )
        return [[row[0], *row[2:]] for row in rows] + ([[cut]] if cut else [])

    # -- resolving ------------------------------------------------------------------------------

    def _resolve(self, row: _Row, source: _Target, vault: str) -> tuple[Resolution, _Target | None, bool]:
        """Return (resolution as stored, target, whether the subpath is missing there)."""
        if row.lookup.startswith("="):
            return (*self._by_key(row, source), False)
        found, target = self._by_name(row, source, vault)
        if target is None or not row.link.subpath or found.state not in ("resolved", "ambiguous"):
            return found, target, False
        return found, target, not self._has_subpath(target, row.link.subpath)

    def _by_name(self, row: _Row, source: _Target, vault: str) -> tuple[Resolution, _Target | None]:
        path = row.link.path
        if row.link.kind == "canvas" and row.link.embed:
            return self._by_path("/" + path.lstrip("/"), row, source, vault)  # a card names its file from the root
        known = self._alone.get((vault, path))
        if known is None:
            known = self._by_path(path, row, source, vault)
            if self._all_names and "/" not in path and len(self._candidates(row, vault)) == 1:
                self._alone[vault, path] = known
        return known

    def _candidates(self, row: _Row, vault: str) -> list[_Target]:
        name = row.lookup.partition(":")[2]
        return [*self._named(vault, name), *self._named(vault, name + ".md")]

    def _by_path(self, path: str, row: _Row, source: _Target, vault: str) -> tuple[Resolution, _Target | None]:
        def files_named(name: str) -> list[str]:
            return [target.path for target in self._named(vault, name)]

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

    def _by_key(self, row: _Row, source: _Target) -> tuple[Resolution, _Target | None]:
        assert row.rel is not None
        if source.binding is None:
            return DANGLING, None
        sql = (
            "SELECT n.id, n.path, n.quarantine, n.vault FROM note n WHERE n.key = ? AND n.scope = ? AND n.scope_id = ? "
            "ORDER BY n.quarantine <> '', n.vault, n.path"
        )
        found = self._connection.execute(
            sql, (row.rel.to, source.binding.scope, source.binding.scope_id or "")
        ).fetchone()
        if found is None:
            return DANGLING, None
        target = _Target(found[0], found[1], "note", source.binding, row.rel.to, not found[2])
        state = Resolution("resolved" if target.shown else "excluded", "name", target.path)
        return state, target

    def _by_alias(self, path: str, vault: str) -> tuple[Resolution, _Target | None]:
        """A link that only an alias matches: no link in Obsidian, told with its likely target."""
        folded = fold(path)
        sql = (
            "SELECT n.id FROM alias a JOIN note n ON n.id = a.note_id WHERE a.vault = ? AND a.folded = ? "
            "AND n.quarantine = '' ORDER BY n.path"
        )
        found = [row[0] for row in self._connection.execute(sql, (vault, folded))]
        if not found:
            return DANGLING, None
        target = self._source(found[0])
        paths = tuple(self._source(note_id).path for note_id in found) if len(found) > 1 else ()
        return Resolution("alias", "alias", target.path, paths), target

    def _named(self, vault: str, name: str) -> list[_Target]:
        if self._many and not self._all_names:
            self._read_all_names()
        if self._all_names:
            return self._names.get((vault, name), [])
        known = self._names.get((vault, name))
        if known is None:
            sql = _TARGET_SQL + " WHERE f.vault = ? AND f.name = ? ORDER BY f.path, f.raw_path"
            known = [_target(row) for row in self._connection.execute(sql, (vault, name))]
            self._names[vault, name] = known
        return known

    def _read_all_names(self) -> None:
        self._all_names = True
        sql = _TARGET_SQL.replace("SELECT ", "SELECT f.vault, f.name, ") + " ORDER BY f.path, f.raw_path"
        for vault, name, *row in self._connection.execute(sql):
            target = _target(row)
            self._names.setdefault((vault, name), []).append(target)
            self._by_id[target.id] = target

    def _source(self, file_id: int) -> _Target:
        if file_id in self._by_id:
            return self._by_id[file_id]
        row = self._connection.execute(_TARGET_SQL + " WHERE f.id = ?", (file_id,)).fetchone()
        return _target(row)

    def _has_subpath(self, target: _Target, subpath: str) -> bool:
        outline = self._outlines.get(target.id)
        if outline is None:
            row = self._connection.execute("SELECT headings, blocks FROM note WHERE id = ?", (target.id,)).fetchone()
            headings = tuple(Heading(*item) for item in json.loads(row[0]))
            outline = self._outlines[target.id] = (headings, tuple(json.loads(row[1])))
        return subpath_line(subpath, *outline) > 0


_TARGET_SQL = (
    "SELECT f.id, f.path, f.kind, n.scope, n.scope_id, n.key, n.quarantine FROM file f LEFT JOIN note n ON n.id = f.id"
)


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


def _target(row: Sequence[object]) -> _Target:
    binding = Binding(str(row[3]), str(row[4]) or None) if row[3] is not None else None
    shown = row[6] == ""
    return _Target(int(str(row[0])), str(row[1]), str(row[2]), binding, str(row[5] or ""), shown)


def _rows(links: Sequence[tuple[Link, str]], cao: Sequence[CaoLink], binding: Binding | None, vault: str) -> list[_Row]:
    """Return the rows of a note: its links, those of `cao.links` as kind `cao`, and rows that name keys."""
    by_text = {row.to: row for row in cao if whole_wikilink(row.to) is not None}
    rows = [_Row(link, f"{vault}:{name}", None) for link, name in links]
    for row in cao:
        inner = whole_wikilink(row.to)
        if row.to in by_text and inner is not None:
            link_of_row = wikilink(inner, embed=False, line=row.line, kind="cao", key="cao.links")
            if link_of_row is not None:
                rows.append(_Row(link_of_row, f"{vault}:{lookup_name(link_of_row.path)}", row))
        elif binding is not None:
            rows.append(
                _Row(
                    Link(row.to, row.to, row.to, "", row.to, "cao", False, row.line, "cao.links"),
                    key_lookup(binding, row.to),
                    row,
                )
            )
    return rows


def _link_end(row: _Row, found: Resolution, target: _Target | None, source: _Target) -> LinkEnd | None:
    """Return the end of a relationship, or None: only shown notes of one binding have some."""
    if target is None or found.state not in ("resolved", "ambiguous") or target.binding != source.binding:
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
