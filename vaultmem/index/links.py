"""Links and edges in the index: written with their resolution, and resolved anew when a cause changed.

Where links lead is decided in `index.resolution`; here are only the tables it is asked with.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence

from vaultmem.base.values import Binding, CaoLink, Finding, Link
from vaultmem.index.operations import FileFacts, key_lookup
from vaultmem.index.resolution import LinkRow, Outline, Resolver, SourceLinks, Target, link_rows, read_outline
from vaultmem.index.rows import FINDING_INSERT, PreparedNote, cao_values, link_values
from vaultmem.notes.body.outline import subpath_line
from vaultmem.notes.links.resolve import lookup_name

_LINK_INSERT = f"INSERT INTO link VALUES (NULL,{','.join('?' * 18)})"
_EDGE_INSERT = f"INSERT INTO edge VALUES ({','.join('?' * 12)})"
_TARGET_SQL = (
    "SELECT f.id, f.path, f.kind, n.scope, n.scope_id, n.key, n.quarantine FROM file f LEFT JOIN note n ON n.id = f.id"
)


class StoredNames:
    """The files of the index (`resolution.Names`), each asked for once."""

    def __init__(self, connection: sqlite3.Connection, *, many: bool) -> None:
        """`many`: so much is to be resolved that the table of names is read at once."""
        self._connection = connection
        self._many = many
        self._named: dict[tuple[str, str], list[Target]] = {}
        self._by_id: dict[int, Target] = {}
        self._outlines: dict[int, Outline] = {}
        self.complete = False

    def file(self, file_id: int) -> Target:
        """Return a file by its row."""
        if file_id in self._by_id:
            return self._by_id[file_id]
        row = self._connection.execute(_TARGET_SQL + " WHERE f.id = ?", (file_id,)).fetchone()
        return _target(row)

    def named(self, vault: str, name: str) -> Sequence[Target]:
        """See `Names`."""
        if self._many and not self.complete:
            self._read_all()
        known = self._named.get((vault, name))
        if known is None and not self.complete:
            sql = _TARGET_SQL + " WHERE f.vault = ? AND f.name = ? ORDER BY f.path, f.raw_path"
            known = [_target(row) for row in self._connection.execute(sql, (vault, name))]
            self._named[vault, name] = known
        return known or ()

    def _read_all(self) -> None:
        self.complete = True
        sql = _TARGET_SQL.replace("SELECT ", "SELECT f.vault, f.name, ") + " ORDER BY f.path, f.raw_path"
        for vault, name, *row in self._connection.execute(sql):
            target = _target(row)
            self._named.setdefault((vault, name), []).append(target)
            self._by_id[target.id] = target

    def with_alias(self, vault: str, folded: str) -> Sequence[Target]:
        """See `Names`."""
        sql = (
            "SELECT n.id FROM alias a JOIN note n ON n.id = a.note_id WHERE a.vault = ? AND a.folded = ? "
            "AND n.quarantine = '' ORDER BY n.path"
        )
        return [self.file(row[0]) for row in self._connection.execute(sql, (vault, folded)).fetchall()]

    def with_key(self, binding: Binding, key: str) -> Target | None:
        """See `Names`."""
        sql = (
            "SELECT n.id FROM note n WHERE n.key = ? AND n.scope = ? AND n.scope_id = ? "
            "ORDER BY n.quarantine <> '', n.vault, n.path"
        )
        found = self._connection.execute(sql, (key, binding.scope, binding.scope_id or "")).fetchone()
        return self.file(found[0]) if found else None

    def has_subpath(self, target: Target, subpath: str) -> bool:
        """See `Names`."""
        outline = self._outlines.get(target.id)
        if outline is None:
            row = self._connection.execute("SELECT headings, blocks FROM note WHERE id = ?", (target.id,)).fetchone()
            outline = self._outlines[target.id] = read_outline(*row)
        return subpath_line(subpath, *outline) > 0


class LinkWriter:
    """Writes and resolves the links of one transaction; `added` and `removed` go into the digest."""

    def __init__(
        self, connection: sqlite3.Connection, *, many: bool = False, rejected: Collection[str] = frozenset()
    ) -> None:
        """`many`: so much is to be resolved that the table of names is read at once; `rejected`: edges by id."""
        self._connection = connection
        self._names = StoredNames(connection, many=many)
        self._resolver = Resolver(self._names, rejected)
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
        source = self._names.file(source_id)
        links = link_values(note.links) if note else [(link, lookup_name(link.path)) for link in facts.links]
        cao: Sequence[CaoLink] = cao_values(note.cao_links) if note else ()
        rows = link_rows(links, cao, source.binding, facts.file.vault)
        self._resolve_and_store(source, facts.file.vault, rows, facts.findings)

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
        source = self._names.file(source_id)
        rows = []
        for raw, link, path, subpath, display, kind, embed, line, key, lookup, rel in found:
            value = CaoLink(**json.loads(rel)) if rel else None
            if value is not None and lookup.startswith("=") and source.binding is not None:
                lookup = key_lookup(source.binding, value.to)
            rows.append(LinkRow(Link(raw, link, path, subpath, display, kind, bool(embed), line, key), lookup, value))
        findings = self._file_findings(source_id)
        self.remove(source_id)
        self._resolve_and_store(source, row[0], rows, findings)

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

    def store(self, sources: Iterable[SourceLinks]) -> None:
        """Write resolved links of sources that have none yet."""
        links, edges, findings, parts = [], [], [], []
        for source in sources:
            links += source.links
            edges += source.edges
            findings += source.findings
            parts.append((source.source_id, source.digest))
            self.added += int.from_bytes(source.digest, "big")
        self.link_rows += len(links)
        self.edge_rows += len(edges)
        for sql, rows in ((_LINK_INSERT, links), (_EDGE_INSERT, edges), (FINDING_INSERT, findings)):
            if rows:
                self._connection.executemany(sql, rows)
        self._connection.executemany("INSERT OR REPLACE INTO source_digest VALUES (?,?)", parts)

    def _resolve_and_store(
        self, source: Target, vault: str, rows: Sequence[LinkRow], findings: Sequence[Finding]
    ) -> None:
        found = self._resolver.links_of(source, vault, rows, findings)
        if found is not None:
            self.store((found,))

    def _file_findings(self, file_id: int) -> list[Finding]:
        sql = "SELECT code, severity, path, line, message FROM finding WHERE file_id = ?"
        return [Finding(*row) for row in self._connection.execute(sql, (file_id,))]


def _target(row: Sequence[object]) -> Target:
    binding = Binding(str(row[3]), str(row[4]) or None) if row[3] is not None else None
    shown = row[6] == ""
    return Target(int(str(row[0])), str(row[1]), str(row[2]), binding, str(row[5] or ""), shown)
