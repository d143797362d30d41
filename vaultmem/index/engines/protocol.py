"""What the index needs of a full-text engine, and the constants of ranking that all engines share.

Engines get our token stream (`text.terms`) and split it alike: a token is a run of ASCII letters
and digits and of anything beyond ASCII. Query text reaches them only as quoted tokens. Both score
by the same formula, that of FTS5's `bm25()`: scores are higher-is-better and rounded to 9
significant digits, so that the order of additions never decides.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from vaultmem.index.engines.expression import Expression
from vaultmem.text.prominence import LENGTH_SHARE

COLUMNS = ("title", "aliases", "key", "tags", "headings", "properties", "body", "prominent")
WEIGHTS = (8.0, 8.0, 2.0, 6.0, 3.0, 2.0, 1.0, 0.0)
"""Column weights of BM25, tuned on planted facts (bench/); the marks of prominent terms score nothing."""
K1, B = 1.2, LENGTH_SHARE
"""BM25's constants, those of FTS5 (sqlite.org/fts5.html, "The bm25() function")."""
LEAST_IDF = 1e-6
Row = tuple[int, float]
"""Row id of a note and its score."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on notes (`note n`) as SQL with its parameters; empty text means none."""

    sql: str = ""
    parameters: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of the whole table: the number of rows, and the mean number of tokens of a row."""

    rows: int
    mean_tokens: float


class SearchEngine(Protocol):
    """What the index needs of a full-text engine."""

    name: str
    counted: str
    """What `postings` counts by: notes or terms."""

    def create(self, connection: sqlite3.Connection) -> None:
        """Make the empty full-text table `fts`."""

    def add(self, connection: sqlite3.Connection, rowid: int, columns: Sequence[str]) -> None:
        """Add a note's terms; `columns` are token streams in the order of `COLUMNS`."""

    def remove(self, connection: sqlite3.Connection, rowid: int, columns: Sequence[str]) -> None:
        """Remove a note's terms; `columns` must be those that were added."""

    def ranked(
        self, connection: sqlite3.Connection, expression: Expression, where: Filter, limit: int = -1
    ) -> list[Row]:
        """Return the best `limit` rows of an expression (-1: all), best first; scores are not rounded yet."""

    def few(self, connection: sqlite3.Connection, expression: Expression, where: Filter, most: int) -> list[Row] | None:
        """Return all rows of an expression in no order, or None if they are more than `most`."""

    def count(self, connection: sqlite3.Connection, expression: Expression, where: Filter) -> int:
        """Return how many rows match."""

    def statistics(self, connection: sqlite3.Connection) -> Statistics:
        """Return the number of rows and their mean length in tokens."""

    def prepare_bulk(self, connection: sqlite3.Connection) -> None:
        """Make a load into an empty table fast; `end_bulk` returns to normal work."""

    def end_bulk(self, connection: sqlite3.Connection) -> None:
        """Return to normal work."""

    def check(self, connection: sqlite3.Connection) -> str:
        """Run the integrity check; return "" or what is wrong in one line."""

    def postings(self, connection: sqlite3.Connection) -> dict[object, tuple[object, ...]]:
        """Return by note or term (`counted` says which) numbers that change with its postings."""

    def summary(self, connection: sqlite3.Connection) -> list[tuple[object, ...]]:
        """Return all postings summed, independent of row ids: equal tables give equal lists."""

    def optimize(self, connection: sqlite3.Connection) -> None:
        """Merge the postings, so that removed terms are gone."""


def inverse_frequency(rows: int, having: int) -> float:
    """Return BM25's IDF of a phrase that `having` of `rows` notes have, never 0 or less (as FTS5's `bm25()`)."""
    idf = math.log((rows - having + 0.5) / (having + 0.5))
    return idf if idf > 0 else LEAST_IDF


def rounded(score: float) -> float:
    """Return a score with the 9 significant digits that count."""
    return float(f"{score:.9g}")


def match_sql(what: str, match: str, where: Filter, row: str) -> tuple[str, tuple[object, ...]]:
    """Return a statement on matching rows (`row`: the table's row id) and its parameters."""
    if where.sql:
        sql = f"SELECT {what} FROM fts JOIN note n ON n.id = {row} WHERE fts MATCH ? AND {where.sql}"
    else:
        sql = f"SELECT {what} FROM fts WHERE fts MATCH ?"
    return sql, (match, *where.parameters)
