"""The physical floor of indexing: walk, stat, read, hash, C YAML, one full-text transaction, nothing else.

Everything that vaultmem does beyond this (links, safety, durability, findings) is its own cost, so
figures are given as ratios to this floor, measured in the same run.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time

import yaml

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def walk(root: str) -> list[tuple[str, os.stat_result]]:
    """Return (path, stat) of every file below root, dot folders left out."""
    found: list[tuple[str, os.stat_result]] = []
    folders = [root]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    found.append((entry.path, entry.stat(follow_symlinks=False)))
    return found


def cold(root: str, database: str) -> float:
    """Return the seconds of a floor index of the vault at `root` into a new file."""
    start = time.perf_counter()
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE doc (id INTEGER PRIMARY KEY, path TEXT, hash TEXT, mtime INTEGER, size INTEGER)")
    connection.execute("CREATE VIRTUAL TABLE fts USING fts5(path, title, body)")
    with connection:
        for path, stat in walk(root):
            if not path.lower().endswith(".md") or stat.st_size > 262_144:
                continue
            with open(path, "rb") as file:
                data = file.read()
            digest = hashlib.sha256(data).hexdigest()
            text = data.decode("utf-8", "replace")
            title, body = path, text
            if text.startswith("---\n") and (end := text.find("\n---\n", 3)) > 0:
                body = text[end + 5 :]
                try:
                    properties = yaml.load(text[4:end], Loader=_Loader)
                    title = str(properties.get("title", path)) if isinstance(properties, dict) else path
                except (yaml.YAMLError, ValueError):
                    pass
            cursor = connection.execute(
                "INSERT INTO doc VALUES (NULL,?,?,?,?)", (path, digest, stat.st_mtime_ns, stat.st_size)
            )
            connection.execute(
                "INSERT INTO fts(rowid, path, title, body) VALUES (?,?,?,?)", (cursor.lastrowid, path, title, body)
            )
    connection.close()
    return time.perf_counter() - start


def bare_walk(root: str) -> float:
    """Return the seconds of a bare scandir and stat walk."""
    start = time.perf_counter()
    walk(root)
    return time.perf_counter() - start
