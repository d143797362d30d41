"""Full-text engines behind one protocol: postings in, ranked rows out.

Both engines get our token stream (`text.tokens`) and split it alike; query text reaches them only
as quoted tokens. Scores are higher-is-better and rounded to 1e-9.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from vaultmem.text.tokens import Clause, Phrase

COLUMNS = ("title", "aliases", "key", "tags", "headings", "body")
WEIGHTS = (8.0, 8.0, 2.0, 6.0, 3.0, 1.0)
"""Column weights of BM25, tuned on the generator's planted facts (bench/recall.py)."""

HASH_BYTES = 1 << 20
BULK_HASH_BYTES = 32 << 20
"""Pending postings that FTS5 keeps before it writes a segment: its default, and for a bulk load."""
Row = tuple[int, float]


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on notes (`note n`) as SQL with its parameters; empty text means none."""

    sql: str = ""
    parameters: tuple[object, ...] = ()


class SearchEngine(Protocol):
    """What the index needs of a full-text engine."""

    name: str

    def create(self, connection: sqlite3.Connection) -> None: ...

    def add(self, connection: sqlite3.Connection, rowid: int, columns: Sequence[str]) -> None: ...

    def remove(self, connection: sqlite3.Connection, rowid: int, columns: Sequence[str]) -> None: ...

    def best(
        self, connection: sqlite3.Connection, clauses: tuple[Clause, ...], any_clause: bool, where: Filter, limit: int
    ) -> list[Row]: ...

    def count(
        self, connection: sqlite3.Connection, clauses: tuple[Clause, ...], any_clause: bool, where: Filter
    ) -> int: ...

    def prepare_bulk(self, connection: sqlite3.Connection) -> None: ...

    def end_bulk(self, connection: sqlite3.Connection) -> None: ...

    def check(self, connection: sqlite3.Connection) -> str: ...

    def optimize(self, connection: sqlite3.Connection) -> None: ...


class Fts5Engine:
    """SQLite's FTS5 with `bm25()` and column weights; postings only, no second copy of the text."""

    name = "fts5"

    def create(self, connection: sqlite3.Connection) -> None:
        """Make the empty table."""
        columns = ", ".join(COLUMNS)
        connection.execute(f"CREATE VIRTUAL TABLE fts USING fts5({columns}, content='', tokenize='ascii')")
        weights = ", ".join(str(weight) for weight in WEIGHTS)
        connection.execute("INSERT INTO fts(fts, rank) VALUES('rank', ?)", (f"bm25({weights})",))

    def add(self, connection: sqlite3.Connection, rowid: int, columns: Sequence[str]) -> None:
        """Add a note's terms."""
        connection.execute(
            "INSERT INTO fts(rowid, title, aliases, key, tags, headings, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (rowid, *columns),
        )

    def remove(self, connection: sqlite3.Connection, rowid: int, columns: Sequence[str]) -> None:
        """Remove a note's terms; `columns` must be those that were added."""
        connection.execute(
            "INSERT INTO fts(fts, rowid, title, aliases, key, tags, headings, body) "
            "VALUES ('delete', ?, ?, ?, ?, ?, ?, ?)",
            (rowid, *columns),
        )

    def best(
        self, connection: sqlite3.Connection, clauses: tuple[Clause, ...], any_clause: bool, where: Filter, limit: int
    ) -> list[Row]:
        """Return the `limit` best rows, and all rows that tie with the last one."""
        wanted = limit + 1
        while True:
            rows = self._ranked(connection, self._match(clauses, any_clause), where, wanted)
            if len(rows) < wanted or rows[limit - 1][1] != rows[-1][1]:
                return [row for row in rows if row[1] >= rows[min(limit, len(rows)) - 1][1]] if rows else []
            wanted *= 4

    def _ranked(self, connection: sqlite3.Connection, match: str, where: Filter, limit: int) -> list[Row]:
        if where.sql:
            sql = (
                f"SELECT fts.rowid, fts.rank FROM fts JOIN note n ON n.id = fts.rowid "
                f"WHERE fts MATCH ? AND {where.sql} ORDER BY fts.rank LIMIT ?"
            )
        else:
            sql = "SELECT rowid, rank FROM fts WHERE fts MATCH ? ORDER BY rank LIMIT ?"
        found = connection.execute(sql, (match, *where.parameters, limit)).fetchall()
        return [(rowid, round(-rank, 9)) for rowid, rank in found]

    def count(
        self, connection: sqlite3.Connection, clauses: tuple[Clause, ...], any_clause: bool, where: Filter
    ) -> int:
        """Return how many rows match."""
        match = self._match(clauses, any_clause)
        if where.sql:
            sql = f"SELECT count(*) FROM fts JOIN note n ON n.id = fts.rowid WHERE fts MATCH ? AND {where.sql}"
        else:
            sql = "SELECT count(*) FROM fts WHERE fts MATCH ?"
        return int(connection.execute(sql, (match, *where.parameters)).fetchone()[0])

    def prepare_bulk(self, connection: sqlite3.Connection) -> None:
        """Make a load into an empty table fast: large pending postings, no zeroing of freed pages."""
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("INSERT INTO fts(fts, rank) VALUES('hashsize', ?)", (BULK_HASH_BYTES,))

    def end_bulk(self, connection: sqlite3.Connection) -> None:
        """Return to normal work."""
        connection.execute("INSERT INTO fts(fts, rank) VALUES('hashsize', ?)", (HASH_BYTES,))
        connection.execute("PRAGMA secure_delete = ON")

    def check(self, connection: sqlite3.Connection) -> str:
        """Run the integrity check; return "" or what is wrong."""
        try:
            connection.execute("INSERT INTO fts(fts) VALUES('integrity-check')")
        except sqlite3.DatabaseError as error:
            return "" if "readonly" in str(error) else str(error)  # the check needs a file that can be written
        return ""

    def optimize(self, connection: sqlite3.Connection) -> None:
        """Merge the postings, so that removed terms are gone."""
        connection.execute("INSERT INTO fts(fts) VALUES('optimize')")

    def _match(self, clauses: tuple[Clause, ...], any_clause: bool) -> str:
        joined = [" OR ".join(map(self._phrase, clause)) for clause in clauses]
        if len(joined) == 1:
            return joined[0]
        return (" OR " if any_clause else " AND ").join(f"({part})" for part in joined)

    @staticmethod
    def _phrase(phrase: Phrase) -> str:
        return f'"{" ".join(phrase.tokens)}"' + (" *" if phrase.prefix else "")


def has_fts5() -> bool:
    """Tell whether this SQLite has FTS5."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5(a)")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True
