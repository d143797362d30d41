"""Checks of the full-text postings against the stored notes: what no integrity check of SQLite sees."""

from __future__ import annotations

import sqlite3
from typing import Any

from vaultmem.index.apply import STREAM_COLUMNS
from vaultmem.index.rows import full_text_columns, stream_columns
from vaultmem.index.search import Fts5Engine


def posting_differences(connection: sqlite3.Connection) -> int:
    """Return how many notes have other terms in the full-text table than their stored text gives.

    Counts of (note, column) postings are compared with those of a fresh table made in memory.
    """
    fresh = sqlite3.connect(":memory:")
    try:
        engine = Fts5Engine()
        engine.create(fresh)
        sql = f"SELECT id, key, {STREAM_COLUMNS} FROM note WHERE searchable ORDER BY id"
        for note_id, key, *fields in connection.execute(sql):
            engine.add(fresh, note_id, full_text_columns(stream_columns(*fields), key))
        before, after = _posting_sums(connection), _posting_sums(fresh)
    finally:
        fresh.close()
    return sum(1 for note_id in before.keys() | after.keys() if before.get(note_id) != after.get(note_id))


def _posting_sums(connection: sqlite3.Connection) -> dict[int, tuple[int, int]]:
    connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.terms USING fts5vocab(main, fts, instance)")
    sql = "SELECT doc, count(*), sum((offset + 1) * (unicode(term) + length(term))) FROM temp.terms GROUP BY doc"
    rows = {row[0]: (row[1], row[2]) for row in connection.execute(sql)}
    connection.execute("DROP TABLE temp.terms")
    return rows


def posting_summary(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return a summary of all postings that does not depend on row ids: terms with their counts by note path."""
    connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.terms USING fts5vocab(main, fts, instance)")
    sql = (
        "SELECT t.term, count(*), sum((t.offset + 1) * (n.number % 1000003)) FROM temp.terms t JOIN "
        "(SELECT id, row_number() OVER (ORDER BY vault, path, uid) AS number FROM note) n ON n.id = t.doc "
        "GROUP BY t.term, t.col ORDER BY t.term, t.col"
    )
    rows = connection.execute(sql).fetchall()
    connection.execute("DROP TABLE temp.terms")
    return rows
