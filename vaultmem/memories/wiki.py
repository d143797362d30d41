"""Writing the native wiki: topic and index.md under upstream's own lock files, and See Also.

CAO takes the same locks in the same order (topic, then index), so both programs can write one
folder (reference/wiki-format.md, "Store, in order"). Waits are bounded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vaultmem.access.session import Session
from vaultmem.base.clock import now
from vaultmem.base.files import ensure_private_folder, read_home_file
from vaultmem.base.locks import file_lock
from vaultmem.base.times import iso
from vaultmem.base.values import Binding
from vaultmem.memories.writer import write_note
from vaultmem.notes.wiki.index_page import Entry, has_entry, with_entry, without_entry
from vaultmem.notes.wiki.topics import container_of, parse_topic, topic_path, with_see_also
from vaultmem.settings.config import Config

LOCK_WAIT_S = 10.0


def conflicts_folder(config: Config) -> str:
    """Return the folder of our home that gets copies of other programs' late bytes."""
    return os.path.join(config.home, "conflicts")


@contextmanager
def topic_lock(config: Config, binding: Binding, key: str) -> Iterator[None]:
    """Hold the lock of one topic between processes. Raises LockBusy."""
    folder, _, name = topic_path(binding, key).rpartition("/")
    path = os.path.join(config.memory_root, folder, f".{name.removesuffix('.md')}.lock")
    with file_lock(path, wait_s=LOCK_WAIT_S, what=f"writing the topic {key}"):
        yield


def enter_in_index(config: Config, binding: Binding, key: str, type_: str, tags: tuple[str, ...], text: str) -> None:
    """Put a topic first in its section of the container's index.md; `text` is the new entry's."""
    stamp = iso(now())
    entry = Entry(binding.scope, key, _index_rel(binding, key), type_, tags, int(len(text.split()) * 1.3), stamp)
    _edit_index(config, binding, lambda old: with_entry(old, entry, stamp))


def take_from_index(config: Config, binding: Binding, key: str) -> None:
    """Remove a topic's line from the container's index.md."""
    _edit_index(config, binding, lambda old: without_entry(old, key, _index_rel(binding, key), iso(now())))


def is_in_index(config: Config, binding: Binding, key: str) -> bool:
    """Tell whether the container's index.md has a line of a topic."""
    path = os.path.join(config.memory_root, _index_path(binding))
    return has_entry(read_home_file(path), key, _index_rel(binding, key))


def _index_path(binding: Binding) -> str:
    return f"{container_of(binding)}/wiki/index.md"


def _index_rel(binding: Binding, key: str) -> str:
    return topic_path(binding, key).removeprefix(f"{container_of(binding)}/wiki/")


def _edit_index(config: Config, binding: Binding, change: Callable[[str], str]) -> None:
    path = _index_path(binding)
    folder = os.path.join(config.memory_root, path.rpartition("/")[0])
    ensure_private_folder(folder)

    def edit(old: bytes | None) -> bytes | None:
        before = old.decode("utf-8", "replace") if old else ""
        after = change(before)
        return None if after == before else after.encode("utf-8")

    with file_lock(os.path.join(folder, ".index.lock"), wait_s=LOCK_WAIT_S, what="writing the wiki's index"):
        write_note(config.native, path, edit, conflicts_folder(config))


def related_keys(session: Session, binding: Binding, key: str) -> list[str]:
    """Return the targets of a memory's active relates_to edges, as the index knows them."""
    sql = (
        "SELECT DISTINCT e.target_key FROM note s CROSS JOIN edge e ON e.source_id = s.id WHERE s.scope = ? AND "
        "s.scope_id = ? AND s.key = ? AND e.type = 'relates_to' AND e.status = 'active' "
        "ORDER BY e.confidence DESC, e.target_key"
    )
    rows = session.connection().execute(sql, (binding.scope, binding.scope_id or "", key))
    return [str(row[0]) for row in rows]


def refresh_see_also(session: Session, binding: Binding, key: str) -> bool:
    """Write a topic's See Also block from its relationships; tell whether the file changed."""
    config = session.config
    keys = related_keys(session, binding, key)

    def edit(old: bytes | None) -> bytes | None:
        if old is None or parse_topic(old, topic_path(binding, key)).quarantine:
            return None
        text = old.decode("utf-8")
        after = with_see_also(text, binding, keys)
        return None if after == text else after.encode("utf-8")

    written = write_note(config.native, topic_path(binding, key), edit, conflicts_folder(config))
    return written.action == "updated"
