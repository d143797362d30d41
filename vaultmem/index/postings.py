"""Checks of the full-text postings against the stored notes: what no integrity check of SQLite sees."""

from __future__ import annotations

import sqlite3

from vaultmem.index.engines.protocol import SearchEngine
from vaultmem.index.notes import STREAM_COLUMNS
from vaultmem.index.rows import full_text_columns, stream_columns


def posting_differences(connection: sqlite3.Connection, engine: SearchEngine) -> str:
    """Return in one line whether notes have other terms in the full-text table than their stored text gives, or "".

    The postings are compared with those of a fresh table made in memory.
    """
    fresh = sqlite3.connect(":memory:")
    try:
        engine.create(fresh)
        sql = f"SELECT id, key, {STREAM_COLUMNS} FROM note WHERE searchable ORDER BY id"
        for note_id, key, *fields in connection.execute(sql):
            engine.add(fresh, note_id, full_text_columns(stream_columns(*fields), key))
        before, after = engine.postings(connection), engine.postings(fresh)
    finally:
        fresh.close()
    differing = sum(1 for part in before.keys() | after.keys() if before.get(part) != after.get(part))
    return f"{differing} {engine.counted} have damaged search terms" if differing else ""
