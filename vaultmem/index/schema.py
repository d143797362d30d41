"""The tables of the index, and opening them; the file's name carries the schema's version.

design.md §6. The text of a note is stored once, in `note.body`; the full-text table holds only
postings (content-less) and is kept by `index.engines.protocol` engines.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import quote

from vaultmem.base.errors import IndexUnavailable

SCHEMA_VERSION = 6
"""Of the tables and of what notes give for them: how they are read, too (tests/index/test_reading_version.py)."""
BUSY_MS = 5_000
PAGE_BYTES = 8_192
"""Twice the default: most notes fit into a page, which saves a first index 3 % of its time and costs edits nothing."""
MAPPED_BYTES = 256 << 20
"""Of a file that is read through memory; one that is written would count as our memory, and be no faster."""

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE file (            -- every file that the scan saw, notes or not
    id INTEGER PRIMARY KEY,
    vault TEXT NOT NULL,
    raw_path TEXT NOT NULL,    -- as the system spells it (surrogateescape as latin-1 escapes)
    path TEXT NOT NULL,        -- NFC: identity
    name TEXT NOT NULL,        -- folded file name: what links are looked up by
    kind TEXT NOT NULL,        -- note | canvas | other
    mapping INTEGER NOT NULL,  -- position of its mapping, -1 for none
    excluded TEXT NOT NULL,    -- why it gives no note, or ''
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
    racy INTEGER NOT NULL,     -- read so soon after a change that the next run reads it once more
    content_hash TEXT NOT NULL,
    UNIQUE (vault, raw_path)
);
CREATE INDEX file_name ON file (vault, name);

CREATE TABLE note (            -- one row for each mapped note, quarantined ones too; long columns last
    id INTEGER PRIMARY KEY,    -- = file.id
    uid TEXT NOT NULL,
    vault TEXT NOT NULL, path TEXT NOT NULL,
    rel TEXT NOT NULL,         -- the path that its derived key hashes
    key TEXT NOT NULL, claimed_key TEXT NOT NULL,
    scope TEXT NOT NULL, scope_id TEXT NOT NULL,
    source_kind TEXT NOT NULL, type TEXT NOT NULL, managed INTEGER NOT NULL, mapping INTEGER NOT NULL,
    title TEXT NOT NULL,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, token_estimate INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    own_quarantine TEXT NOT NULL, quarantine TEXT NOT NULL,
    searchable INTEGER NOT NULL,        -- its terms are in the full-text table
    note_digest BLOB NOT NULL,
    fixed_hash TEXT NOT NULL,  -- of all that follows from the text alone
    body_line INTEGER NOT NULL, body_size INTEGER NOT NULL,
    tags TEXT NOT NULL, aliases TEXT NOT NULL, headings TEXT NOT NULL, blocks TEXT NOT NULL,
    sections TEXT NOT NULL, properties TEXT NOT NULL, body TEXT NOT NULL
);
CREATE INDEX note_key ON note (key, scope, scope_id);
CREATE INDEX note_quarantine ON note (vault) WHERE quarantine <> '';

CREATE TABLE alias (vault TEXT NOT NULL, folded TEXT NOT NULL, note_id INTEGER NOT NULL,
    PRIMARY KEY (vault, folded, note_id)) WITHOUT ROWID;

CREATE TABLE tag (folded TEXT NOT NULL, note_id INTEGER NOT NULL, PRIMARY KEY (folded, note_id)) WITHOUT ROWID;

CREATE TABLE link (
    id INTEGER PRIMARY KEY,
    source_id INTEGER NOT NULL, position INTEGER NOT NULL,
    raw TEXT NOT NULL, link TEXT NOT NULL, path TEXT NOT NULL, subpath TEXT NOT NULL, display TEXT NOT NULL,
    kind TEXT NOT NULL, embed INTEGER NOT NULL, line INTEGER NOT NULL, property TEXT NOT NULL,
    lookup TEXT NOT NULL,      -- vault and folded name (or scope and key): what its resolution depends on
    rel TEXT NOT NULL,         -- the cao.links row as JSON, or ''
    state TEXT NOT NULL, via TEXT NOT NULL, target_id INTEGER, subpath_missing INTEGER NOT NULL,
    candidates TEXT NOT NULL
);

CREATE TABLE edge (
    id TEXT NOT NULL, source_id INTEGER NOT NULL,
    scope TEXT NOT NULL, scope_id TEXT NOT NULL, source_key TEXT NOT NULL, target_key TEXT NOT NULL,
    type TEXT NOT NULL, origin TEXT NOT NULL, status TEXT NOT NULL, confidence REAL,
    attested TEXT NOT NULL, authored_origin TEXT NOT NULL
);

CREATE TABLE source_digest (   -- of each file's links, edges and (for files without a note) findings
    file_id INTEGER PRIMARY KEY, digest BLOB NOT NULL
);

CREATE TABLE finding (         -- lasting findings; those of links follow from the link rows
    file_id INTEGER,           -- NULL: of the scan as a whole
    vault TEXT NOT NULL, path TEXT NOT NULL, code TEXT NOT NULL, severity TEXT NOT NULL,
    line INTEGER NOT NULL, message TEXT NOT NULL
);
"""

_NOTE_INDEXES = """
CREATE INDEX note_mapping ON note (vault, mapping);
CREATE INDEX note_binding ON note (scope, scope_id, updated_at);
CREATE INDEX note_hash ON note (content_hash);
CREATE INDEX alias_note ON alias (note_id);
CREATE INDEX tag_note ON tag (note_id);
"""
_LINK_INDEXES = """
CREATE INDEX link_source ON link (source_id);
CREATE INDEX link_lookup ON link (lookup);
CREATE INDEX link_target ON link (target_id) WHERE target_id IS NOT NULL;
CREATE UNIQUE INDEX edge_id ON edge (id, source_id);
CREATE INDEX edge_source ON edge (source_id);
CREATE INDEX edge_superseded ON edge (scope, scope_id, target_key) WHERE type = 'supersedes' AND status = 'active';
CREATE INDEX edge_contradicts ON edge (scope, scope_id, source_key) WHERE type = 'contradiction' AND status = 'active';
CREATE INDEX edge_contradicted ON edge (scope, scope_id, target_key) WHERE type = 'contradiction' AND status = 'active';
CREATE INDEX finding_file ON finding (file_id);
"""
"""Indexes that a bulk load of an empty index does without: they are made when their tables are full, sorted."""


def index_path(home: str, version: int = SCHEMA_VERSION) -> str:
    """Return the path of the index of a schema version."""
    return os.path.join(home, f"index-v{version}.db")


def remove_older_indexes(home: str) -> None:
    """Delete the indexes of earlier versions: they only take space, and all they hold is in the notes."""
    for version in range(1, SCHEMA_VERSION):
        remove_index_files(index_path(home, version))


def connect(path: str, *, private: bool = False) -> sqlite3.Connection:
    """Open an index file, an empty one with all tables where there is none. Raises sqlite3.DatabaseError for damage.

    A `private` file is nobody else's and is given up after a crash: it needs no journal on disk, so each
    page is written once.
    """
    connection = sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
    with ExitStack() as undo, _damage_as_such():
        undo.callback(connection.close)
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute(f"PRAGMA journal_mode = {'MEMORY' if private else 'WAL'}")
        connection.execute(f"PRAGMA synchronous = {'OFF' if private else 'NORMAL'}")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -32768")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA mmap_size = {0 if private else MAPPED_BYTES}")
        if not is_complete(connection):
            _create_tables(connection)
        undo.pop_all()
    os.chmod(path, 0o600)
    return connection


@contextmanager
def _damage_as_such() -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError:  # what a damaged schema looks like to Python
        raise sqlite3.DatabaseError("malformed schema") from None


def connect_read_only(path: str) -> sqlite3.Connection:
    """Open an index in a folder that can't be written; nobody can change it there either."""
    if not os.path.exists(path):
        raise IndexUnavailable(f"There is no index at {path}, and its folder is read-only", "Make the folder writable")
    connection = sqlite3.connect(f"file:{quote(path)}?immutable=1", uri=True, isolation_level=None)
    if not is_complete(connection):
        connection.close()
        raise IndexUnavailable(f"The index {path} is of another version", "Make its folder writable")
    return connection


def _create_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    with ExitStack() as undo:
        undo.callback(_roll_back, connection)
        for statement in (_TABLES + _NOTE_INDEXES + _LINK_INDEXES).split(";\n"):
            if statement.strip():
                connection.execute(statement)
        connection.execute("INSERT INTO meta VALUES ('schema', ?)", (str(SCHEMA_VERSION),))
        connection.execute("COMMIT")
        undo.pop_all()


def _roll_back(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        connection.execute("ROLLBACK")


def drop_late_indexes(connection: sqlite3.Connection) -> None:
    """Drop the indexes that a bulk load does without (inside its transaction)."""
    for name in re.findall(r"CREATE (?:UNIQUE )?INDEX (\w+)", _NOTE_INDEXES + _LINK_INDEXES):
        connection.execute(f"DROP INDEX {name}")


def create_late_indexes(connection: sqlite3.Connection, *, of_links: bool) -> None:
    """Make them again, those of notes or those of links and findings."""
    for statement in (_LINK_INDEXES if of_links else _NOTE_INDEXES).split(";\n"):
        if statement.strip():
            connection.execute(statement)


def is_complete(connection: sqlite3.Connection) -> bool:
    """Tell whether the open file is an index of this version. Raises sqlite3.DatabaseError."""
    try:
        row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    except sqlite3.OperationalError:
        return False
    return row is not None and row[0] == str(SCHEMA_VERSION)


def remove_index_files(path: str) -> None:
    """Delete an index with its journal files; nothing in it can't be rebuilt."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            os.unlink(path + suffix)


def read_meta(connection: sqlite3.Connection, key: str, default: str = "") -> str:
    """Return a value of the meta table."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else default


def write_meta(connection: sqlite3.Connection, key: str, value: str) -> None:
    """Set a value of the meta table."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
