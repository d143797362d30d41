"""Forget, restore and clear: a topic goes to the trash, a vault note stays and leaves every view.

Nothing of a vault is ever deleted here (reference/vault.md, "Reads and writes"); what was forgotten
comes back with `restore`, or by a store to its key.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from vaultmem.access.scopes import check_may_write, resolve_binding
from vaultmem.access.session import Session
from vaultmem.access.visibility import may_show
from vaultmem.base.clock import now
from vaultmem.base.errors import IndexUnavailable, StoreRefused, UsageError
from vaultmem.base.locks import file_lock
from vaultmem.base.times import iso
from vaultmem.base.values import Binding, WriteResult
from vaultmem.index.queries import ON_DISK
from vaultmem.memories.destinations import Place, native_place
from vaultmem.memories.phases import check_switches, index_now, partial_write
from vaultmem.memories.store import LOCK_WAIT_S
from vaultmem.memories.trash import free_place, trashed_copies
from vaultmem.memories.wiki import enter_in_index, take_from_index, topic_lock
from vaultmem.memories.writer import move_topic, remove_topic
from vaultmem.notes.keys import stored_key
from vaultmem.notes.wiki.topics import parse_topic
from vaultmem.settings.config import MEMORY_FOLDER
from vaultmem.state.memories import identity


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """What is to be forgotten; `purge` erases a topic and its copies in the trash for good."""

    key: str
    scope: str = "project"
    scope_id: str | None = None
    dry_run: bool = False
    purge: bool = False


@dataclass(frozen=True, slots=True)
class _Target:
    """What there is of a key: a topic file, and the path of a vault note."""

    binding: Binding
    key: str
    topic: Place
    has_topic: bool
    note: tuple[str, str, str]
    """Vault, path, and the path as it is on disk; empty where there is none."""

    @property
    def action(self) -> str:
        if self.has_topic:
            return "deleted_and_deindexed" if self.note[1] else "deleted"
        return "deindexed" if self.note[1] else "absent"

    def result(self, action: str) -> WriteResult:
        binding = self.binding
        vault, path = (self.topic.source.id, self.topic.path) if self.has_topic else (self.note[0], self.note[2])
        kind = self.topic.kind if self.has_topic or not path else "vault"
        return WriteResult(action, self.key, binding.scope, binding.scope_id, kind, path, vault)


def trash_base(session: Session) -> str:
    """Return the folder that holds both the wiki and its trash."""
    return os.path.dirname(session.config.memory_root)


def forget(session: Session, request: ForgetRequest) -> WriteResult:
    """Forget one memory and say what was done. Raises UsageError, ScopeError, StoreRefused, MemoryPartialWriteError."""
    check_switches(session)
    if not request.key.strip() or "\0" in request.key:
        raise UsageError("There is no key to forget")
    binding = resolve_binding(session.config, session.context, request.scope, request.scope_id)
    check_may_write(session.context, binding.scope)
    session.sync()
    with file_lock(session.reconciler.lock_path(), wait_s=LOCK_WAIT_S, what="writing"):
        target = _find(session, binding, stored_key(request.key))
        if request.dry_run:
            return target.result(target.action)
        if target.action == "absent":
            if request.purge and _purge_trash(session, target):
                return target.result("deleted")
            return target.result("absent")
        return _forget(session, target, request.purge)


def _find(session: Session, binding: Binding, key: str) -> _Target:
    topic = native_place(session.config, binding, key)
    has_topic = os.path.isfile(os.path.join(session.config.memory_root, topic.path))
    row = (
        session.connection()
        .execute(
            f"SELECT n.vault, n.path, {ON_DISK} FROM note n WHERE n.key = ? AND n.scope = ? AND n.scope_id = ? "
            "AND n.source_kind = 'vault' AND n.quarantine = '' ORDER BY n.vault, n.path",
            (key, binding.scope, binding.scope_id or ""),
        )
        .fetchone()
    )
    return _Target(binding, key, topic, has_topic, (row[0], row[1], row[2]) if row else ("", "", ""))


def _forget(session: Session, target: _Target, purge: bool) -> WriteResult:
    result = target.result(target.action)
    binding, key = target.binding, target.key
    time = iso(now())
    if not target.has_topic:
        session.state.memory.forget(binding, key, time)
        with partial_write(result, ("state",), "vaultmem reconcile"):
            index_now(session, Place(session.config.vault(target.note[0]), binding, target.note[1]))
            session.state.memory.record_write("memory_forgot", time, binding, key, action=result.action)
        return result
    with topic_lock(session.config, binding, key):
        if purge:
            remove_topic(trash_base(session), f"{MEMORY_FOLDER}/{target.topic.path}")
            _purge_trash(session, target)
        else:
            to_trash(session, target.topic)
        with partial_write(result, ("wiki",), "vaultmem repair --apply") as done:
            take_from_index(session.config, binding, key)
            done("index")
            if target.note[1]:
                session.state.memory.forget(binding, key, time)
                index_now(session, Place(session.config.vault(target.note[0]), binding, target.note[1]))
            index_now(session, target.topic)
            done("metadata")
            session.state.memory.record_write("memory_forgot", time, binding, key, action=result.action, purge=purge)
    return result


def to_trash(session: Session, topic: Place) -> bool:
    """Move a topic file to the trash of today; False when it is not there. The caller holds its lock."""
    base = trash_base(session)
    return move_topic(base, f"{MEMORY_FOLDER}/{topic.path}", free_place(base, topic.path, iso(now())[:10]))


def _purge_trash(session: Session, target: _Target) -> bool:
    base = trash_base(session)
    removed = [remove_topic(base, path) for path in trashed_copies(base, target.topic.path)]
    return any(removed)


def restore(session: Session, key: str, scope: str = "project", scope_id: str | None = None) -> WriteResult:
    """Bring a forgotten memory back; `absent` when there is nothing to bring back. Raises StoreRefused."""
    check_switches(session)
    binding = resolve_binding(session.config, session.context, scope, scope_id)
    check_may_write(session.context, binding.scope)
    session.sync()
    with file_lock(session.reconciler.lock_path(), wait_s=LOCK_WAIT_S, what="writing"):
        cleaned = stored_key(key)
        if identity(binding, cleaned) in session.state.memory.forgotten():
            return _unforget(session, binding, cleaned)
        return _from_trash(session, _find(session, binding, cleaned))


def _unforget(session: Session, binding: Binding, key: str) -> WriteResult:
    session.state.memory.unforget(binding, key)
    session.reconciler.run_locked()
    target = _find(session, binding, key)
    session.state.memory.record_write("memory_restored", iso(now()), binding, key)
    return target.result("restored")


def _from_trash(session: Session, target: _Target) -> WriteResult:
    base = trash_base(session)
    copies = trashed_copies(base, target.topic.path)
    if not copies:
        return target.result("absent")
    if target.has_topic:
        raise StoreRefused(
            f"A topic {target.key} is there again, and {copies[0]} would replace it",
            "Forget the new one first, or copy what you need from the trash by hand",
        )
    with topic_lock(session.config, target.binding, target.key):
        move_topic(base, copies[0], f"{MEMORY_FOLDER}/{target.topic.path}")
        found = _Target(target.binding, target.key, target.topic, True, target.note)
        result = found.result("restored")
        with partial_write(result, ("wiki",), "vaultmem repair --apply") as done:
            enter_again(session, target.topic, target.key)
            done("index")
            index_now(session, target.topic)
            done("metadata")
            session.state.memory.record_write("memory_restored", iso(now()), target.binding, target.key)
    return result


def enter_again(session: Session, topic: Place, key: str) -> None:
    """Put the index.md line of a topic that is there already."""
    with open(os.path.join(session.config.memory_root, topic.path), "rb") as file:
        note = parse_topic(file.read(session.config.native.max_note_bytes), topic.path)
    type_ = note.cao.type if note.cao and note.cao.type else "project"
    text = note.sections[-1].text if note.sections else ""
    enter_in_index(session.config, topic.binding, key, type_, note.frontmatter_tags, text)


@dataclass(frozen=True, slots=True)
class ClearResult:
    """What a clear did or would do, and how many notes of people it left alone."""

    results: tuple[WriteResult, ...]
    left_alone: int


def clear(session: Session, scope: str, scope_id: str | None = None, *, dry_run: bool = True) -> ClearResult:
    """Forget all topics and managed notes of a binding; notes that people wrote are left as they are."""
    check_switches(session)
    binding = resolve_binding(session.config, session.context, scope, scope_id)
    check_may_write(session.context, binding.scope)
    session.sync()
    if not session.database.is_built():
        raise IndexUnavailable("The index is not complete, so it is not known what there is", "vaultmem reconcile")
    shown = may_show(session.config, "list", (binding,))
    rows = (
        session.connection()
        .execute(f"SELECT n.key, n.managed FROM note n WHERE {shown.sql} ORDER BY n.key", shown.parameters)
        .fetchall()
    )
    ours = [row[0] for row in rows if row[1]]
    results = [forget(session, ForgetRequest(key, scope, scope_id, dry_run=dry_run)) for key in ours]
    return ClearResult(tuple(results), len(rows) - len(ours))
