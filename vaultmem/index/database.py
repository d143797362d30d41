"""One home's index: opening it, healing it, and replacing it as a whole.

An index that is damaged or of no known form is removed and made anew (nothing in it can't be
rebuilt); `healed` then says so, and the caller reconciles before it answers. A seal (the file's
stat values when we last closed it) tells whether anything else wrote to the file; then it is
inspected once, so that damaged postings are never taken for "nothing found".
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from vaultmem.base.errors import IndexUnavailable
from vaultmem.base.files import can_write_in, ensure_private_folder, replace_private_file, write_private_file
from vaultmem.base.locks import file_lock
from vaultmem.index import digest
from vaultmem.index.engines.protocol import SearchEngine
from vaultmem.index.schema import (
    BUSY_MS,
    connect,
    connect_read_only,
    index_path,
    read_meta,
    remove_index_files,
    remove_older_indexes,
    write_meta,
)

if TYPE_CHECKING:
    from vaultmem.index.engines.top_k import Counts

TEMPORARY_SUFFIX = ".new"


class OtherEngine(sqlite3.DatabaseError):
    """The index was made with the engine that the message names."""


OPEN_WAIT_S = 15.0


def choose_engine(setting: str) -> SearchEngine:
    """Return the engine for a setting (`auto`, `fts5`, `fts4`). Raises IndexUnavailable when it is missing.

    `auto` takes FTS5, and FTS4 where this Python's SQLite has no FTS5.
    """
    from vaultmem.index.engines.fts5 import Fts5Engine, has_fts5

    if setting in ("auto", "fts5") and has_fts5():
        return Fts5Engine()
    if setting in ("auto", "fts4"):
        from vaultmem.index.engines.fts4 import Fts4Engine, has_fts4

        if has_fts4():
            return Fts4Engine()
    raise IndexUnavailable(
        f"The search engine {setting} is not available in this Python's SQLite ({sqlite3.sqlite_version})",
        "Set search.engine to auto, or use a Python whose sqlite3 has FTS5 or FTS4",
    )


MAX_INSPECTED_NOTES = 5_000
"""Above this the terms of every note are compared by `doctor` only: it takes as long as indexing."""


def inspect(connection: sqlite3.Connection, engine: SearchEngine) -> str:
    """Return what is wrong with an open index ("" if nothing): pages, postings, sums."""
    try:
        pages = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if pages != "ok":
            return str(pages)
        broken = engine.check(connection)
        if broken:
            return f"full-text table: {broken}"
        if digest.summed_digest(connection) != digest.stored_digest(connection):
            return "its rows do not add up"
        notes = connection.execute("SELECT count(*) FROM note").fetchone()[0]
        if notes <= MAX_INSPECTED_NOTES:
            from vaultmem.index.postings import posting_differences  # imports the tokenizer's room

            return posting_differences(connection, engine)
    except (sqlite3.DatabaseError, ValueError, TypeError) as error:
        return str(error)
    return ""


class IndexDatabase:
    """The open index of a home; use from one thread at a time."""

    def __init__(self, home: str, engine: SearchEngine, path: str = "") -> None:
        self.home = home
        self.engine = engine
        self.path = path or index_path(home)
        self.healed = ""
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._stamp_at_open = ""
        self._counts: Counts | None = None

    @property
    def is_private(self) -> bool:
        """Whether only this process knows the file, and gives it up after a crash."""
        return self.path.endswith(TEMPORARY_SUFFIX)

    def counts(self) -> Counts:
        """Return what is known of phrases in the index as it is now."""
        from vaultmem.index.engines.top_k import Counts  # commands that don't search do without

        if self._counts is None:
            self._counts = Counts()
        self._counts.refresh(read_meta(self.connection(), "digest"))
        return self._counts

    def connection(self) -> sqlite3.Connection:
        """Return the open connection, creating or healing the file. Raises IndexUnavailable."""
        if self._connection is not None and self._is_current():
            return self._connection
        self.close()
        if not can_write_in(os.path.dirname(self.path)):
            self._connection = connect_read_only(self.path)
            self._inode = os.stat(self.path).st_ino
            return self._connection
        ensure_private_folder(os.path.dirname(self.path))
        existed = os.path.exists(self.path)
        self._stamp_at_open = self._stamp() if existed else ""
        try:
            self._connection = self._open()
        except OtherEngine as error:
            self._replace(f"the index was made with the engine {error}, not {self.engine.name}")
        except sqlite3.DatabaseError as error:
            if (
                "locked" in str(error)
                or "readonly" in str(error)
                or "disk" in str(error)
                and "malformed" not in str(error)
            ):
                raise self._unavailable(error) from None
            self._replace_damaged(str(error))
        except OSError as error:
            raise self._unavailable(error) from None
        if not existed and not self.healed:
            self.healed = "there was no index yet"
            remove_older_indexes(self.home)
        assert self._connection is not None
        if existed and not self.healed and not self._is_sealed():
            wrong = inspect(self._connection, self.engine)
            if wrong:
                self.close()
                self._replace_damaged(wrong)
        return self._connection

    def _seal_path(self) -> str:
        return os.path.join(self.home, "locks", os.path.basename(self.path) + ".seal")

    def _stamp(self) -> str:
        stat = os.stat(self.path)
        return f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ino}"

    def _is_sealed(self) -> bool:
        if self._stamp_at_open == "":
            return True
        try:
            with open(self._seal_path(), encoding="ascii") as file:
                return file.read() == self._stamp_at_open
        except (OSError, UnicodeDecodeError):
            return False

    def _seal(self) -> None:
        """Note the file's stat values; without it the next opening inspects the file once."""
        with suppress(OSError):
            stamp = self._stamp()
            if stamp != self._stamp_at_open:
                write_private_file(self._seal_path(), stamp)

    def _is_current(self) -> bool:
        try:
            return os.stat(self.path).st_ino == self._inode
        except OSError:
            return False

    def _open_lock(self) -> AbstractContextManager[None]:
        """Held while a file is opened, made or put in the place of another: nobody opens one that is going."""
        return file_lock(os.path.join(self.home, "locks", "open.lock"), wait_s=OPEN_WAIT_S, what="opening the index")

    def _open(self) -> sqlite3.Connection:
        """Open the file; one process at a time makes it, and the others find it whole."""
        with self._open_lock():
            return self._open_locked()

    def _open_locked(self) -> sqlite3.Connection:
        connection = self._opened(connect(self.path, private=self.is_private))
        self._inode = os.stat(self.path).st_ino
        return connection

    def _opened(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        with ExitStack() as undo:
            undo.callback(connection.close)
            table = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'fts'").fetchone()
            if table is None:
                connection.execute("BEGIN IMMEDIATE")
                if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'fts'").fetchone() is None:
                    self.engine.create(connection)
                    write_meta(connection, "engine", self.engine.name)
                connection.execute("COMMIT")
            maker = read_meta(connection, "engine")
            if maker != self.engine.name:
                raise OtherEngine(maker)
            connection.execute("SELECT rowid FROM fts LIMIT 1").fetchone()
            undo.pop_all()
        return connection

    def _replace_damaged(self, reason: str) -> None:
        self._replace(f"the index was damaged ({reason})")

    def _replace(self, reason: str) -> None:
        self.healed = reason
        try:
            with self._open_lock():
                remove_index_files(self.path)
                self._connection = self._open_locked()
        except (sqlite3.Error, OSError) as error:
            raise self._unavailable(error) from None

    def _unavailable(self, error: Exception) -> IndexUnavailable:
        return IndexUnavailable(
            f"The index {self.path} can't be opened: {error}",
            "Check the free space and the permissions of the folder, then run: vaultmem doctor",
        )

    def is_built(self) -> bool:
        """Tell whether a whole reconcile has ended with this file: only then empty is an answer."""
        return read_meta(self.connection(), "config") != ""

    def discard(self, reason: str) -> None:
        """Give up a damaged file; the next connection is to a new, empty one."""
        self.close()
        remove_index_files(self.path)
        self.healed = f"the index was damaged ({reason})"

    def replace_with(self, other: IndexDatabase) -> None:
        """Make this index equal to a private one; readers see the old or the new one, nothing between.

        Its file takes the place of ours, or is copied into it where another process has ours open.
        Raises IndexUnavailable.
        """
        if not self._takes_file_of(other):
            source = other.connection()
            try:
                source.backup(self.connection())
                self.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except sqlite3.DatabaseError as error:
                self.discard(str(error))
                source.backup(self.connection())
        self.healed = ""

    def _takes_file_of(self, other: IndexDatabase) -> bool:
        connection = self.connection()
        with self._open_lock():
            if not self._is_current() or not _leaves_wal(connection):
                return False
            connection.close()
            self._connection = None
            other.close()
            try:
                replace_private_file(self.path, other.path)
                self._stamp_at_open = ""
                self._connection = self._open_locked()
            except (sqlite3.Error, OSError) as error:
                raise self._unavailable(error) from None
        return True

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            if not self.is_private and can_write_in(self.home):
                self._seal()


@contextmanager
def beside(database: IndexDatabase) -> Iterator[IndexDatabase]:
    """Give a second, empty, private index beside one, removed at the end; for the holder of the writer's lock."""
    path = database.path + TEMPORARY_SUFFIX
    remove_index_files(path)
    fresh = IndexDatabase(database.home, database.engine, path)
    try:
        yield fresh
    finally:
        fresh.close()
        remove_index_files(path)


def _leaves_wal(connection: sqlite3.Connection) -> bool:
    """Give up the file's WAL, which works only for its one connection; tell whether it did (sqlite.org/wal.html)."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        return bool(connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0] == "delete")
    except sqlite3.DatabaseError:  # locked by another, or damaged
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")


def is_damage(error: sqlite3.Error) -> bool:
    """Tell damage of the file from a passing condition (locked, full, read-only)."""
    text = str(error)
    return any(
        sign in text
        for sign in (
            "malformed",
            "corrupt",
            "not a database",
            "no such table",
            "no such column",
            "vtable constructor failed",
            "disk I/O",
        )
    )
