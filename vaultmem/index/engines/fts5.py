"""The engine on SQLite's FTS5: `bm25()` with column weights; postings only, no second copy of the text."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from vaultmem.index.engines.expression import Expression, written
from vaultmem.index.engines.protocol import COLUMNS, WEIGHTS, Filter, Row, Statistics, match_sql
from vaultmem.text.terms import Phrase

HASH_BYTES = 1 << 20
BULK_HASH_BYTES = 16 << 20
"""Pending postings that FTS5 keeps before it writes a segment: its default, and for a bulk load."""
_AVERAGES_ROW = 1
"""The record of fts_data that holds the number of rows and of tokens (fts5_index.c, "Averages Record")."""
_NAMES = ", ".join(COLUMNS)
_SCORE = f"bm25(fts, {', '.join(str(weight) for weight in WEIGHTS)})"
_MARKS = ", ".join("?" * len(COLUMNS))


class Fts5Engine:
    """SQLite's FTS5; use any number on any connections, it keeps no state."""

    name = "fts5"
    counted = "notes"

    def create(self, connection: sqlite3.Connection) -> None:
        """Make the empty table."""
        connection.execute(f"CREATE VIRTUAL TABLE fts USING fts5({_NAMES}, content='', tokenize='ascii')")

    def add(self, connection: sqlite3.Connection, rowid: int, columns: Sequence[str]) -> None:
        """Add a note's terms."""
        connection.execute(f"INSERT INTO fts(rowid, {_NAMES}) VALUES (?, {_MARKS})", (rowid, *columns))

    def remove(self, connection: sqlite3.Connection, rowid: int, columns: Sequence[str]) -> None:
        """Remove a note's terms; `columns` must be those that were added."""
        sql = f"INSERT INTO fts(fts, rowid, {_NAMES}) VALUES ('delete', ?, {_MARKS})"
        connection.execute(sql, (rowid, *columns))

    def ranked(
        self, connection: sqlite3.Connection, expression: Expression, where: Filter, limit: int = -1
    ) -> list[Row]:
        """Return the best rows of an expression, best first (-1: all of them); scores are not rounded yet.

        `bm25()` with its weights written out takes two thirds of the time of `ORDER BY rank`, which sorts
        positions along.
        """
        sql, values = match_sql(f"fts.rowid, {_SCORE} AS score", self._match(expression), where, "fts.rowid")
        found = connection.execute(f"{sql} ORDER BY score LIMIT ?", (*values, limit)).fetchall()
        return [(rowid, -score) for rowid, score in found]

    def few(self, connection: sqlite3.Connection, expression: Expression, where: Filter, most: int) -> list[Row] | None:
        """Return all rows of an expression in no order, or None if they are more than `most`."""
        sql, values = match_sql(f"fts.rowid, {_SCORE}", self._match(expression), where, "fts.rowid")
        found = connection.execute(sql, values).fetchmany(most + 1)
        return [(rowid, -score) for rowid, score in found] if len(found) <= most else None

    def count(self, connection: sqlite3.Connection, expression: Expression, where: Filter) -> int:
        """Return how many rows match."""
        sql, values = match_sql("count(*)", self._match(expression), where, "fts.rowid")
        return int(connection.execute(sql, values).fetchone()[0])

    def statistics(self, connection: sqlite3.Connection) -> Statistics:
        """Return the number of rows and their mean length, as `bm25()` sees them."""
        row = connection.execute("SELECT block FROM fts_data WHERE id = ?", (_AVERAGES_ROW,)).fetchone()
        numbers = _varints(row[0]) if row and row[0] else [0]
        rows = numbers[0]
        return Statistics(rows, sum(numbers[1:]) / rows if rows else 0.0)

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

    def postings(self, connection: sqlite3.Connection) -> dict[object, tuple[object, ...]]:
        """Return by row id how many terms a note has, and a sum over them and their positions."""
        sql = "SELECT doc, count(*), sum((offset + 1) * (unicode(term) + length(term))) FROM temp.terms GROUP BY doc"
        return {row[0]: (row[1], row[2]) for row in self._vocabulary(connection, sql)}

    def summary(self, connection: sqlite3.Connection) -> list[tuple[object, ...]]:
        """Return all postings summed by term and column, independent of row ids."""
        return self._vocabulary(
            connection,
            "SELECT t.term, t.col, count(*), sum((t.offset + 1) * (n.number % 1000003)) FROM temp.terms t JOIN "
            "(SELECT id, row_number() OVER (ORDER BY vault, path, uid) AS number FROM note) n ON n.id = t.doc "
            "GROUP BY t.term, t.col ORDER BY t.term, t.col",
        )

    def optimize(self, connection: sqlite3.Connection) -> None:
        """Merge the postings, so that removed terms are gone."""
        connection.execute("INSERT INTO fts(fts) VALUES('optimize')")

    @staticmethod
    def _vocabulary(connection: sqlite3.Connection, sql: str) -> list[tuple[object, ...]]:
        connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.terms USING fts5vocab(main, fts, instance)")
        rows = connection.execute(sql).fetchall()
        connection.execute("DROP TABLE temp.terms")
        return rows

    def _match(self, expression: Expression) -> str:
        return written(expression, _phrase)


def _phrase(phrase: Phrase) -> str:
    return f'"{" ".join(phrase.tokens)}"' + (" *" if phrase.prefix else "")


def _varints(data: bytes) -> list[int]:
    """Decode SQLite's big-endian variable-length integers (sqlite.org/fileformat.html §1.6)."""
    numbers: list[int] = []
    at = 0
    while at < len(data):
        value = 0
        for count in range(9):
            byte = data[at]
            at += 1
            if count == 8:
                value = value << 8 | byte
                break
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                break
        numbers.append(value)
    return numbers


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
