"""Does the index say what the files say: stored notes compared with their files, read anew.

An integrity check sees a damaged file, not one whose text and terms were changed together; the file of a
note, whose hash is stored with it, can tell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from vaultmem.access.session import Session
from vaultmem.base.values import Binding, Signature, SourceFile
from vaultmem.index.notes import TEXT_COLUMNS
from vaultmem.index.queries import chunked
from vaultmem.settings.config import Config
from vaultmem.sync.read.file_facts import FactsReader, PreparedStore

SAMPLE = 100
"""Notes that are always compared: some 50 ms of reading."""


def lying_notes(session: Session, *, everything: bool = False) -> tuple[int, int]:
    """Return how many notes have another text in the index than their unchanged files, and how many were compared.

    A sample of the notes is compared, all of them with `everything`. Files that changed since, or can't be
    read now, are no lies of the index.
    """
    limit = "" if everything else f"ORDER BY random() LIMIT {SAMPLE}"
    ids = [row[0] for row in session.connection().execute(f"SELECT id FROM note WHERE searchable {limit}").fetchall()]
    lying = 0
    for batch in chunked(ids):
        by_vault: dict[str, list[tuple[SourceFile, str, tuple[Any, ...]]]] = defaultdict(list)
        for file, content_hash, texts in _stored(session, batch):
            by_vault[file.vault].append((file, content_hash, texts))
        lying += sum(_lying(session.config, vault, rows) for vault, rows in by_vault.items())
    return lying, len(ids)


def _stored(session: Session, ids: list[int]) -> Iterator[tuple[SourceFile, str, tuple[Any, ...]]]:
    sql = (
        "SELECT f.vault, f.path, f.raw_path, f.size, f.mtime_ns, f.ctime_ns, f.inode, f.mapping, n.scope, n.scope_id, "
        f"f.content_hash, {', '.join('n.' + name for name in TEXT_COLUMNS)} FROM note n JOIN file f ON f.id = n.id "
        f"WHERE n.id IN ({','.join('?' * len(ids))})"
    )
    for row in session.connection().execute(sql, ids):
        binding = Binding(row[8], row[9] or None)
        file = SourceFile(row[0], row[1], row[2], "note", Signature(*row[3:7]), binding, row[7])
        yield file, row[10], row[11:]


def _lying(config: Config, vault: str, rows: list[tuple[SourceFile, str, tuple[Any, ...]]]) -> int:
    try:
        source = config.vault(vault)
        reader = FactsReader(source, PreparedStore(0))
    except (KeyError, OSError):  # not configured any more, or not there now: other checks tell
        return 0
    lying = 0
    with closing(reader):
        for facts, (_, content_hash, texts) in zip(reader.read_all(row[0] for row in rows), rows, strict=True):
            if facts.ref >= 0 and facts.content_hash == content_hash:
                prepared = reader.store.get(facts.ref)
                lying += tuple(getattr(prepared, name) for name in TEXT_COLUMNS) != texts
    return lying
