"""Typed reads of the index; nothing here decides what a reader may see."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from vaultmem.base.values import Binding
from vaultmem.index.operations import KnownFile, outline_of
from vaultmem.notes.links.wikilinks import fold

_FILE_COLUMNS = (
    "f.id, f.vault, f.path, f.raw_path, f.kind, f.mtime_ns, f.content_hash, f.excluded, "
    "n.rel, n.key, n.claimed_key, n.scope, n.scope_id, n.own_quarantine, n.quarantine, n.body_size, "
    "n.headings, n.blocks, n.aliases"
)
_FROM = "FROM file f LEFT JOIN note n ON n.id = f.id"
_CHUNK = 400


def chunked(items: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield lists of at most as many items as one statement takes."""
    batch: list[Any] = []
    for item in items:
        batch.append(item)
        if len(batch) == _CHUNK:
            yield batch
            batch = []
    if batch:
        yield batch


def _known_file(row: Sequence[Any]) -> KnownFile:
    binding = Binding(row[11], row[12] or None) if row[11] is not None else None
    return KnownFile(
        id=row[0],
        vault=row[1],
        path=row[2],
        raw_path=row[3],
        kind=row[4],
        mtime_ns=row[5],
        content_hash=row[6],
        excluded=row[7],
        rel=row[8] or "",
        key=row[9] or "",
        claimed_key=row[10] or "",
        binding=binding,
        own_quarantine=row[13] or "",
        quarantine=row[14] or "",
        body_size=row[15] or 0,
        outline=_outline(row[16], row[17]) if binding else "",
        aliases=tuple(json.loads(row[18])) if row[18] else (),
    )


def _outline(headings: str, blocks: str) -> str:
    return outline_of(((level, text) for level, text, _ in json.loads(headings)), json.loads(blocks))


ON_DISK = "(SELECT raw_path FROM file WHERE file.id = n.id)"
"""The path of `note n` as the file system spells it: what is shown must open the file (identity goes by `n.path`)."""


def as_on_disk(connection: sqlite3.Connection, vault: str, path: str) -> str:
    """Return a vault-relative NFC path as the file system spells it; unchanged where no such file is known."""
    if path.isascii():
        return path
    sql = "SELECT raw_path FROM file WHERE vault = ? AND name = ? AND path = ? ORDER BY raw_path"
    row = connection.execute(sql, (vault, fold(path.rpartition("/")[2]), path)).fetchone()
    return str(row[0]) if row else path


class IndexView:
    """What planning asks the index for (`sync.plan.plan.Known`)."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.is_empty = connection.execute("SELECT 1 FROM file LIMIT 1").fetchone() is None

    def files_at(self, vault: str, raw_paths: Collection[str]) -> dict[str, KnownFile]:
        """Return the rows of these files by raw path."""
        if self.is_empty:
            return {}
        found: dict[str, KnownFile] = {}
        for batch in chunked(raw_paths):
            marks = ",".join("?" * len(batch))
            sql = f"SELECT {_FILE_COLUMNS} {_FROM} WHERE f.vault = ? AND f.raw_path IN ({marks})"
            for row in self._connection.execute(sql, (vault, *batch)):
                found[row[3]] = _known_file(row)
        return found

    def notes_with_key(self, binding: Binding, key: str) -> list[KnownFile]:
        """Return the notes of that key in a binding, by path."""
        if self.is_empty:
            return []
        sql = (
            f"SELECT {_FILE_COLUMNS} FROM note n JOIN file f ON f.id = n.id "
            "WHERE n.key = ? AND n.scope = ? AND n.scope_id = ? ORDER BY f.vault, f.path, f.raw_path"
        )
        rows = self._connection.execute(sql, (key, binding.scope, binding.scope_id or ""))
        return [_known_file(row) for row in rows]

    def files_named(self, vault: str, name: str) -> list[KnownFile]:
        """Return the files of that folded name in a vault, by path."""
        if self.is_empty:
            return []
        sql = f"SELECT {_FILE_COLUMNS} {_FROM} WHERE f.vault = ? AND f.name = ? ORDER BY f.path, f.raw_path"
        return [_known_file(row) for row in self._connection.execute(sql, (vault, name))]

    def link_sources(self, lookups: Collection[str]) -> set[int]:
        """Return the sources of links with one of these lookups."""
        return self._sources("lookup", lookups)

    def link_sources_to(self, ids: Collection[int]) -> set[int]:
        """Return the sources of links that lead to one of these files."""
        return self._sources("target_id", ids)

    def _sources(self, column: str, values: Collection[Any]) -> set[int]:
        if self.is_empty:
            return set()
        found: set[int] = set()
        for batch in chunked(sorted(values)):
            marks = ",".join("?" * len(batch))
            sql = f"SELECT DISTINCT source_id FROM link WHERE {column} IN ({marks})"
            found.update(row[0] for row in self._connection.execute(sql, batch))
        return found


def vaults_present(connection: sqlite3.Connection) -> list[str]:
    """Return the ids of the sources that the index holds files of, whatever their number of files."""
    found: list[str] = []
    sql = "SELECT vault FROM file WHERE vault > ? ORDER BY vault LIMIT 1"
    while (row := connection.execute(sql, (found[-1] if found else "",)).fetchone()) is not None:
        found.append(str(row[0]))
    return found


def bindings_present(connection: sqlite3.Connection) -> list[Binding]:
    """Return whose memories the index holds; a step from one to the next, so it costs what there are of them."""
    found: list[Binding] = []
    scope, scope_id = "", ""
    further = "SELECT scope, scope_id FROM note WHERE scope = ? AND scope_id > ? ORDER BY scope_id LIMIT 1"
    beyond = "SELECT scope, scope_id FROM note WHERE scope > ? ORDER BY scope, scope_id LIMIT 1"
    while True:  # two steps: SQLite seeks only the first part of a row value
        row = (
            connection.execute(further, (scope, scope_id)).fetchone() or connection.execute(beyond, (scope,)).fetchone()
        )
        if row is None:
            return found
        scope, scope_id = row
        found.append(Binding(scope, scope_id or None))


def edge_sources(connection: sqlite3.Connection, edge_ids: Collection[str]) -> set[int]:
    """Return the files that these edges start from."""
    found: set[int] = set()
    for batch in chunked(sorted(edge_ids)):
        sql = f"SELECT source_id FROM edge WHERE id IN ({','.join('?' * len(batch))})"
        found.update(row[0] for row in connection.execute(sql, batch))
    return found


def known_signatures(connection: sqlite3.Connection, vault: str) -> dict[str, tuple[int, int, int, int] | None]:
    """Return what the scan compares with: raw path to signature, None where it must be read again."""
    sql = "SELECT raw_path, size, mtime_ns, ctime_ns, inode, racy FROM file WHERE vault = ?"
    return {row[0]: None if row[5] else (row[1], row[2], row[3], row[4]) for row in connection.execute(sql, (vault,))}


def known_signatures_at(
    connection: sqlite3.Connection, vault: str, paths: Collection[str]
) -> dict[str, tuple[int, int, int, int] | None]:
    """The same for the files at or below some vault-relative paths."""
    found: dict[str, tuple[int, int, int, int] | None] = {}
    sql = "SELECT raw_path, size, mtime_ns, ctime_ns, inode, racy FROM file WHERE vault = ? AND "
    for path in paths:
        name = fold(path.rpartition("/")[2])
        below = (path + "/", path + "0")  # "0" follows "/": the range of everything below
        rows = connection.execute(sql + "name = ? AND path = ?", (vault, name, path)).fetchall()
        rows += connection.execute(sql + "raw_path >= ? AND raw_path < ?", (vault, *below)).fetchall()
        found.update({row[0]: None if row[5] else (row[1], row[2], row[3], row[4]) for row in rows})
    return found


def count_left_out(connection: sqlite3.Connection, vault: str, raw_paths: Collection[str]) -> int:
    """Return how many of these files Obsidian's own filters left out."""
    sql = "SELECT count(*) FROM file WHERE vault = ? AND raw_path = ? AND excluded = 'excluded_by_obsidian'"
    return sum(int(connection.execute(sql, (vault, path)).fetchone()[0]) for path in raw_paths)
