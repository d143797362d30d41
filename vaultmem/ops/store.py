"""Store: one text into the memory of a scope, as a section of a note in the managed folder.

Order (design.md §7): gate, binding (never a wider one), writer's lock, section, atomic publish,
index of that file, receipt. A failure after publishing says which phases are done.
"""

from __future__ import annotations

import os
import re
import sqlite3
from dataclasses import dataclass

from vaultmem.clock import now
from vaultmem.config_rules import WILDCARD, MappingConfig, VaultConfig
from vaultmem.errors import (
    IndexUnavailable,
    MemoryPartialWriteError,
    NoteNotSafelyEditable,
    ScopeNotWritable,
    SecretRefused,
    StoreRefused,
    UsageError,
    VaultmemError,
)
from vaultmem.fs import file_lock
from vaultmem.model import TYPES, Binding, WriteResult
from vaultmem.notes.keys import automatic_key, stored_key
from vaultmem.notes.parse import parse_note
from vaultmem.notes.splice import new_note, updated_note
from vaultmem.notes.topic import escape_content
from vaultmem.ops.session import Session
from vaultmem.scopes import resolve_binding
from vaultmem.secrets import find_secret
from vaultmem.sync.exclude import PathFilter
from vaultmem.times import iso
from vaultmem.write import write_note

MAX_CONTENT_CHARS = 100_000
LOCK_WAIT_S = 30.0
REPAIR_COMMAND = "vaultmem reconcile"


@dataclass(frozen=True, slots=True)
class StoreRequest:
    """What is to be stored; an empty key is made from the content, `type` None keeps the note's."""

    content: str
    key: str = ""
    scope: str = "project"
    scope_id: str | None = None
    type: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    vault: VaultConfig
    mapping: MappingConfig
    binding: Binding
    path: str


def store(session: Session, request: StoreRequest) -> WriteResult:
    """Store a text. Raises UsageError, ScopeError, StoreRefused, MemoryPartialWriteError, LockBusy."""
    _check(session, request)
    binding = resolve_binding(session.config, session.context, request.scope, request.scope_id)
    key = stored_key(request.key) if request.key else automatic_key(request.content)
    place = _place(session, binding, key)
    if not PathFilter(place.vault.secret_allow).matches(place.path) and place.vault.secret_gate == "reject":
        _refuse_secrets(request, key)
    _sync(session)
    with file_lock(session.reconciler.lock_path(), wait_s=LOCK_WAIT_S, what="writing"):
        _refuse_foreign_note(session, place, key)
        return _write(session, request, place, key)


def _check(session: Session, request: StoreRequest) -> None:
    if session.config.read_only:
        raise StoreRefused("Nothing is written in read-only mode", "Start it without --read-only")
    if not session.config.enabled:
        raise StoreRefused("Memory is switched off", "Set memory.enabled = true, or unset VAULTMEM_ENABLED")
    if not request.content.strip():
        raise UsageError("There is no content to store")
    if len(request.content) > MAX_CONTENT_CHARS:
        raise UsageError(f"The content has {len(request.content)} characters", f"Store at most {MAX_CONTENT_CHARS}")
    if request.type is not None and request.type not in TYPES:
        raise UsageError(f'Unknown type "{request.type}"', f"Use one of: {', '.join(TYPES)}")
    if request.key and ("\0" in request.key or len(request.key) > 256):
        raise UsageError("The key holds a NUL byte or is longer than 256 characters")


def _sync(session: Session) -> None:
    """Know the newest notes, so that a key is not taken twice; an index that can't be written now may be old."""
    try:
        session.sync()
    except IndexUnavailable:
        if not session.database.is_built():
            raise


def clean_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return tags in a form that Obsidian accepts: no `#`, blanks as hyphens, no signs that end a tag."""
    cleaned = []
    for tag in tags:
        text = re.sub(r"\s+", "-", tag.strip().lstrip("#"))
        text = re.sub(r"[\u2000-\u206F\u2E00-\u2E7F'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\]", "", text).strip("/")
        if text and not text.isdecimal():
            cleaned.append(text)
    return tuple(dict.fromkeys(cleaned))


def _refuse_secrets(request: StoreRequest, key: str) -> None:
    for where, text in (
        ("The content", request.content),
        ("The key", request.key or key),
        ("A tag", " ".join(request.tags)),
    ):
        match = find_secret(text)
        if match is not None:
            raise SecretRefused(match.pattern, where)


def _place(session: Session, binding: Binding, key: str) -> _Place:
    """Return where a note of this binding and key is written. Raises ScopeNotWritable."""
    mapped: list[str] = []
    for vault in session.config.vaults:
        for position, mapping in enumerate(vault.mappings):
            if mapping.scope != binding.scope or mapping.scope_id not in (WILDCARD, binding.scope_id):
                continue
            if mapping.writable:
                folder = mapping.folder + (f"/{binding.scope_id}" if mapping.scope_id == WILDCARD else "")
                return _Place(vault, mapping, binding, f"{folder}/{key}.md")
            mapped.append(f"vault.mapping[{position}] ({mapping.folder})")
    if mapped:
        raise ScopeNotWritable(
            f"No writable folder is mapped to scope {binding.scope}: {', '.join(mapped)} is read-only",
            "Map a folder inside managed_folder to it with writable = true (vaultmem config path)",
        )
    raise ScopeNotWritable(
        f"No folder is mapped to scope {binding.scope}",
        "Map a folder inside managed_folder to it with writable = true (vaultmem config path)",
    )


def _refuse_foreign_note(session: Session, place: _Place, key: str) -> None:
    """A key that a note elsewhere has can't be written here: that note is not ours to change."""
    row = (
        session.connection()
        .execute(
            "SELECT path FROM note WHERE key = ? AND scope = ? AND scope_id = ? AND quarantine = '' AND path <> ?",
            (key, place.binding.scope, place.binding.scope_id or "", place.path),
        )
        .fetchone()
    )
    if row is not None:
        raise StoreRefused(
            f"The key {key} belongs to {row[0]}, which is not in the managed folder and is never written",
            "Edit that note in Obsidian, or store under another key",
        )


def _write(session: Session, request: StoreRequest, place: _Place, key: str) -> WriteResult:
    time = iso(now())
    tags = clean_tags(request.tags)
    warnings: list[str] = []

    def edit(old: bytes | None) -> bytes | None:
        if old is None:
            return new_note(key, request.type or "project", tags, time, request.content).encode("utf-8")
        text = _editable_text(old, place.path)
        if _says_it_already(old, place.path, request.content):
            return None
        edited, warned = updated_note(text, place.path, key, request.type, tags, time, request.content)
        warnings[:] = warned
        return edited.encode("utf-8")

    written = write_note(place.vault, place.path, edit, os.path.join(session.config.home, "conflicts"))
    result = WriteResult(
        written.action,
        key,
        place.binding.scope,
        place.binding.scope_id,
        "vault",
        place.path,
        place.vault.id,
        tuple(warnings),
    )
    if written.action != "unchanged":
        _index(session, result, time)
    return result


def _editable_text(data: bytes, path: str) -> str:
    """Return the text of a note that may be edited. Raises NoteNotSafelyEditable naming file and line."""
    note = parse_note(data, path.rpartition("/")[2])
    for found in note.findings:
        if found.code in ("note_not_utf8", "note_contains_nul", "merge_conflict_markers"):
            raise NoteNotSafelyEditable(
                f"{path}:{found.line}: {found.message} ({found.code}), so the note is left alone",
                "Correct it in Obsidian",
            )
    return data.decode("utf-8")


def _says_it_already(data: bytes, path: str, content: str) -> bool:
    note = parse_note(data, path.rpartition("/")[2])
    return bool(note.sections) and note.sections[-1].text.strip() == escape_content(content).strip()


def _index(session: Session, result: WriteResult, time: str) -> None:
    """Bring the index and the receipts up to date; the note itself is durable already."""
    phases = ["note"]
    try:
        session.reconciler.run_locked(only={result.vault: [result.path]})
        phases.append("index")
        binding = Binding(result.scope, result.scope_id)
        session.state.record_receipt(binding, result.key, "", session.context.session, time)
        session.state.record_audit(
            time,
            f"memory_{result.action}",
            {"key": result.key, "scope": result.scope, "scope_id": result.scope_id or ""},
        )
    except (VaultmemError, sqlite3.Error, OSError) as error:
        raise MemoryPartialWriteError(
            result.key,
            result.scope,
            result.scope_id,
            result.path,
            tuple(phases),
            REPAIR_COMMAND,
            str(error).splitlines()[0],
        ) from None
