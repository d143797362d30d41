"""The engine on SQLite's FTS4, for a Python whose SQLite lacks FTS5; sqlite-fts4 decodes `matchinfo()`.

Scores follow FTS5's formula (`index.engines.protocol`), so both engines give the same answers; sqlite-fts4's
own `rank_bm25` takes the IDF per column and orders otherwise (reference/libraries.md, "Search
engines"). FTS4 hands over counts, so every match is scored here, in bulk: common words cost more
than with FTS5 (docs/performance.md has the ratio).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from vaultmem.index.engines.expression import Expression, phrases_of, written
from vaultmem.index.engines.protocol import (
    COLUMNS,
    K1,
    WEIGHTS,
    B,
    Filter,
    Row,
    Statistics,
    inverse_frequency,
    match_sql,
)
from vaultmem.text.terms import Phrase

_NAMES = ", ".join(COLUMNS)
_MARKS = ", ".join("?" * len(COLUMNS))
_WIDTH = len(COLUMNS)
_BATCH = 4_096
_WEIGHED = tuple((position, weight) for position, weight in enumerate(WEIGHTS) if weight)


class Fts4Engine:
    """SQLite's FTS4 with external content that is empty but while a row is being removed."""

    name = "fts4"
    counted = "terms"

    def create(self, connection: sqlite3.Connection) -> None:
        """Make the empty table.

        FTS4 reads a row's text when the row is removed; `fts_going` lends it for that moment, so
        that no second copy of the text is kept (sqlite.org/fts3.html §6.2.2).
        """
        connection.execute(f"CREATE TABLE fts_going (docid INTEGER PRIMARY KEY, {_NAMES})")
        connection.execute(f"CREATE VIRTUAL TABLE fts USING fts4(content='fts_going', {_NAMES}, tokenize=simple)")

    def add(self, connection: sqlite3.Connection, rowid: int, columns: Sequence[str]) -> None:
        """Add a note's terms."""
        connection.execute(f"INSERT INTO fts(docid, {_NAMES}) VALUES (?, {_MARKS})", (rowid, *columns))

    def remove(self, connection: sqlite3.Connection, rowid: int, columns: Sequence[str]) -> None:
        """Remove a note's terms; `columns` must be those that were added."""
        connection.execute(f"INSERT INTO fts_going VALUES (?, {_MARKS})", (rowid, *columns))
        connection.execute("DELETE FROM fts WHERE docid = ?", (rowid,))
        connection.execute("DELETE FROM fts_going")

    def ranked(
        self, connection: sqlite3.Connection, expression: Expression, where: Filter, limit: int = -1
    ) -> list[Row]:
        """Return the best rows of an expression, best first (-1: all of them); scores are not rounded yet."""
        rows = self._scored(connection, expression, self._found(connection, expression, where).fetchall())
        rows.sort(key=lambda row: -row[1])
        return rows if limit < 0 else rows[:limit]

    def few(self, connection: sqlite3.Connection, expression: Expression, where: Filter, most: int) -> list[Row] | None:
        """Return all rows of an expression in no order, or None if they are more than `most`."""
        found = self._found(connection, expression, where).fetchmany(most + 1)
        return self._scored(connection, expression, found) if len(found) <= most else None

    def _found(self, connection: sqlite3.Connection, expression: Expression, where: Filter) -> sqlite3.Cursor:
        sql, values = match_sql("fts.docid, matchinfo(fts, 'lx')", self._match(expression), where, "fts.docid")
        return connection.execute(sql, values)

    def _scored(
        self, connection: sqlite3.Connection, expression: Expression, found: Sequence[tuple[int, bytes]]
    ) -> list[Row]:
        if not found:
            return []
        statistics = self.statistics(connection)
        having = (self.count(connection, phrase, Filter()) for phrase in phrases_of(expression))
        idfs = [inverse_frequency(statistics.rows, number) for number in having]
        return score(found, idfs, statistics.mean_tokens)

    def count(self, connection: sqlite3.Connection, expression: Expression, where: Filter) -> int:
        """Return how many rows match."""
        sql, values = match_sql("count(*)", self._match(expression), where, "fts.docid")
        return int(connection.execute(sql, values).fetchone()[0])

    def statistics(self, connection: sqlite3.Connection) -> Statistics:
        """Return the number of rows and their exact mean length (`matchinfo` rounds it per column)."""
        row = connection.execute("SELECT value FROM fts_stat WHERE id = 0").fetchone()
        numbers = _varints(row[0]) if row and row[0] else [0]
        rows = numbers[0]
        return Statistics(rows, sum(numbers[1 : 1 + _WIDTH]) / rows if rows else 0.0)

    def prepare_bulk(self, connection: sqlite3.Connection) -> None:
        """Make a load into an empty table fast: no zeroing of freed pages."""
        connection.execute("PRAGMA secure_delete = OFF")

    def end_bulk(self, connection: sqlite3.Connection) -> None:
        """Return to normal work."""
        connection.execute("PRAGMA secure_delete = ON")

    def check(self, connection: sqlite3.Connection) -> str:
        """Look at the table's form; FTS4's own check wants the text, so `postings` are compared instead."""
        try:
            connection.execute("SELECT count(*) FROM fts_segdir").fetchone()
            rows = connection.execute("SELECT count(*) FROM fts_docsize").fetchone()[0]
            if rows != self.statistics(connection).rows:
                return "its counts do not add up"
        except (sqlite3.DatabaseError, IndexError) as error:
            return str(error) or "its counts can't be read"
        return ""

    def postings(self, connection: sqlite3.Connection) -> dict[object, tuple[object, ...]]:
        """Return by term and column in how many notes it is, and how often."""
        return {(term, column): (notes, times) for term, column, notes, times in self.summary(connection)}

    def summary(self, connection: sqlite3.Connection) -> list[tuple[object, ...]]:
        """Return all postings summed by term and column, independent of row ids."""
        connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.terms USING fts4aux(main, fts)")
        rows = connection.execute(
            "SELECT term, col, documents, occurrences FROM temp.terms WHERE col <> '*' AND documents ORDER BY term, col"
        ).fetchall()
        connection.execute("DROP TABLE temp.terms")
        return rows

    def optimize(self, connection: sqlite3.Connection) -> None:
        """Merge the postings, so that removed terms are gone."""
        connection.execute("INSERT INTO fts(fts) VALUES('optimize')")

    def _match(self, expression: Expression) -> str:
        return written(expression, _phrase)


def score(found: Sequence[tuple[int, bytes]], idfs: Sequence[float], mean_tokens: float) -> list[Row]:
    """Return (row id, score) for rows with their `matchinfo(…, 'lx')`, in the order given.

    The layout: a length for each column, then for each phrase and column three numbers, the first
    of which is the frequency in this row (sqlite.org/fts3.html §4.3). Many rows are decoded at once
    and weighed column by column: a third of the time of going row by row.
    """
    rows: list[Row] = []
    for start in range(0, len(found), _BATCH):
        batch = found[start : start + _BATCH]
        scores = _batch_scores([blob for _, blob in batch], idfs, mean_tokens)
        rows += zip((docid for docid, _ in batch), scores, strict=True)
    return rows


def _batch_scores(blobs: Sequence[bytes], idfs: Sequence[float], mean_tokens: float) -> list[float]:
    from sqlite_fts4 import decode_matchinfo  # only this engine needs it

    numbers = decode_matchinfo(b"".join(blobs))
    stride = len(numbers) // len(blobs)
    flat, sloped = K1 * (1 - B), K1 * B / mean_tokens
    norms = [
        flat + sloped * sum(lengths) for lengths in zip(*(numbers[at::stride] for at in range(_WIDTH)), strict=True)
    ]
    scores = [0.0] * len(blobs)
    for phrase, idf in enumerate(idfs):
        frequencies = [0.0] * len(blobs)
        for column, weight in _WEIGHED:
            counts = numbers[_WIDTH + 3 * (phrase * _WIDTH + column) :: stride]
            if any(counts):
                frequencies = [f + weight * count for f, count in zip(frequencies, counts, strict=True)]
        factor = idf * (K1 + 1)
        scores = [total + factor * f / (f + norm) for total, f, norm in zip(scores, frequencies, norms, strict=True)]
    return scores


def _phrase(phrase: Phrase) -> str:
    return f'"{" ".join(phrase.tokens)}{"*" if phrase.prefix else ""}"'


def _varints(data: bytes) -> list[int]:
    """Decode FTS3's little-endian variable-length integers (fts3.c, "FTS3 varints")."""
    numbers: list[int] = []
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value = shift = 0
    return numbers


def has_fts4() -> bool:
    """Tell whether this SQLite has FTS4 with the enhanced query syntax (AND, OR and parentheses)."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts4(a, tokenize=simple)")
        connection.execute("INSERT INTO probe VALUES ('x y')")
        found = connection.execute("""SELECT count(*) FROM probe WHERE probe MATCH '("x" AND "y")'""").fetchone()[0]
        return int(found) == 1
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
