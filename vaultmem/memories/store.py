"""Store: one text into the memory of a scope, as a section of a note in the managed folder or of a wiki topic.

Order (design.md §7): gate, binding (never a wider one), writer's lock, section, atomic publish,
index of that file, receipt. A failure after publishing says which phases are done.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from vaultmem.access.scopes import check_may_write, resolve_binding
from vaultmem.access.session import Session
from vaultmem.base.clock import now
from vaultmem.base.errors import IndexUnavailable, NoteNotSafelyEditable, SecretRefused, StoreRefused, UsageError
from vaultmem.base.locks import file_lock
from vaultmem.base.times import iso
from vaultmem.base.values import TYPES, Binding, WriteResult
from vaultmem.index.queries import ON_DISK
from vaultmem.memories.destinations import Place, place_of
from vaultmem.memories.phases import check_switches, index_now, partial_write
from vaultmem.memories.repeats import near_repeats
from vaultmem.memories.wiki import conflicts_folder, enter_in_index, refresh_see_also, related_keys, topic_lock
from vaultmem.memories.writer import write_note
from vaultmem.notes.keys import automatic_key, stored_key
from vaultmem.notes.parse import parse_note
from vaultmem.notes.sections import escape_content
from vaultmem.notes.splice import new_note, updated_note
from vaultmem.notes.wiki.topics import new_topic, parse_topic, updated_topic, with_see_also
from vaultmem.state.memories import identity as memory_identity
from vaultmem.sync.walk.exclude import PathFilter
from vaultmem.text.secrets import find_secret

MAX_CONTENT_CHARS = 100_000
LOCK_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class StoreRequest:
    """What is to be stored; an empty key is made from the content, `type` None keeps the note's."""

    content: str
    key: str = ""
    scope: str = "project"
    scope_id: str | None = None
    type: str | None = None
    tags: tuple[str, ...] = ()


def store(session: Session, request: StoreRequest) -> WriteResult:
    """Store a text. Raises UsageError, ScopeError, StoreRefused, MemoryPartialWriteError, LockBusy."""
    _check(session, request)
    binding = resolve_binding(session.config, session.context, request.scope, request.scope_id)
    check_may_write(session.context, binding.scope)
    key = stored_key(request.key) if request.key else automatic_key(request.content)
    place = place_of(session.config, binding, key)
    if place.source.secret_gate == "reject" and not PathFilter(place.source.secret_allow).matches(place.path):
        _refuse_secrets(request, key)
    session.project()  # the ids of the project that are known now are found by later recalls
    _sync(session)
    with file_lock(session.reconciler.lock_path(), wait_s=LOCK_WAIT_S, what="writing"):
        similar = near_repeats(session, binding, request.content)
        same = next((one for one in similar if one.equal and (not request.key or one.key == key)), None)
        if same is not None and same.key != key:
            place, key = Place(session.config.vault(same.vault), binding, same.path), same.key
            return _result("unchanged", place, key, (f"it is stored already under the key {key}",), ())
        _refuse_foreign_note(session, place, key)
        names = tuple(one.key for one in similar if one.key != key)
        written = _write_native if place.source.native else _write
        return written(session, request, place, key, names)


def _check(session: Session, request: StoreRequest) -> None:
    check_switches(session)
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


def _refuse_foreign_note(session: Session, place: Place, key: str) -> None:
    """A key that a note elsewhere has can't be written here: that note is not ours to change."""
    row = (
        session.connection()
        .execute(
            f"SELECT {ON_DISK} FROM note n WHERE n.key = ? AND n.scope = ? AND n.scope_id = ? AND n.quarantine = '' "
            "AND n.path <> ?",
            (key, place.binding.scope, place.binding.scope_id or "", place.path),
        )
        .fetchone()
    )
    if row is not None:
        raise StoreRefused(
            f"The key {key} belongs to {row[0]}, which is not in the managed folder and is never written",
            "Edit that note in Obsidian, or store under another key",
        )


def _write(session: Session, request: StoreRequest, place: Place, key: str, similar: tuple[str, ...]) -> WriteResult:
    time = iso(now())
    tags = clean_tags(request.tags)
    warnings: list[str] = []
    forgotten = memory_identity(place.binding, key) in session.state.memory.forgotten()

    def edit(old: bytes | None) -> bytes | None:
        if old is None:
            return new_note(key, request.type or "project", tags, time, request.content).encode("utf-8")
        text = _editable_text(old, place.path)
        if _says_it_already(old, place, request.content):
            return None
        edited, warned = updated_note(text, place.path, key, request.type, tags, time, request.content)
        warnings[:] = warned
        return edited.encode("utf-8")

    written = write_note(place.source, place.path, edit, conflicts_folder(session.config))
    result = _result(_action(written.action, forgotten), place, key, tuple(warnings), similar)
    if result.action != "unchanged":
        with partial_write(result, ("note",), "vaultmem reconcile") as done:
            _bring_back(session, place.binding, key, forgotten)
            index_now(session, place)
            done("index")
            _record(session, place.binding, result, time)
    return result


def _write_native(
    session: Session, request: StoreRequest, place: Place, key: str, similar: tuple[str, ...]
) -> WriteResult:
    """Store into the wiki: topic, index.md, index, See Also, receipt; each phase is named if a later one fails."""
    config, binding = session.config, place.binding
    time = iso(now())
    tags = clean_tags(request.tags)
    forgotten = memory_identity(binding, key) in session.state.memory.forgotten()
    final = ""

    def edit(old: bytes | None) -> bytes | None:
        nonlocal final
        if old is None:
            text = new_topic(binding, key, request.type or "project", tags, time, request.content)
        else:
            before = _editable_text(old, place.path)
            final = before
            if _says_it_already(old, place, request.content):
                return None
            text = updated_topic(before, binding, request.type, tags, time, request.content)
            text = with_see_also(text, binding, related_keys(session, binding, key))
        final = text
        return text.encode("utf-8")

    with topic_lock(config, binding, key):
        written = write_note(place.source, place.path, edit, conflicts_folder(config))
        result = _result(_action(written.action, forgotten), place, key, (), similar)
        if result.action == "unchanged":
            return result
        with partial_write(result, ("wiki",), "vaultmem repair --apply") as done:
            note = parse_topic(final.encode("utf-8"), place.path)
            type_ = note.cao.type if note.cao and note.cao.type else "project"
            enter_in_index(config, binding, key, type_, note.frontmatter_tags, request.content)
            done("index")
            _bring_back(session, binding, key, forgotten)
            index_now(session, place)
            if refresh_see_also(session, binding, key):
                index_now(session, place)
            done("metadata")
            _record(session, binding, result, time)
    return result


def _action(written: str, forgotten: bool) -> str:
    return "restored" if forgotten and written == "unchanged" else written


def _result(action: str, place: Place, key: str, warnings: tuple[str, ...], similar: tuple[str, ...]) -> WriteResult:
    named = (f"much like what is stored under: {', '.join(similar)}",) if similar else ()
    binding = place.binding
    return WriteResult(
        action,
        key,
        binding.scope,
        binding.scope_id,
        place.kind,
        place.path,
        place.source.id,
        (*warnings, *named),
        similar,
    )


def _bring_back(session: Session, binding: Binding, key: str, forgotten: bool) -> None:
    """A store to a forgotten key makes it known again."""
    if forgotten:
        session.state.memory.unforget(binding, key)


def _record(session: Session, binding: Binding, result: WriteResult, time: str) -> None:
    session.state.memory.record_write(
        f"memory_{result.action}",
        time,
        binding,
        result.key,
        session=session.context.session,
        provider=session.context.provider,
    )


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


def _says_it_already(data: bytes, place: Place, content: str) -> bool:
    note = parse_topic(data, place.path) if place.source.native else parse_note(data, place.path.rpartition("/")[2])
    return bool(note.sections) and note.sections[-1].text.strip() == escape_content(content).strip()
