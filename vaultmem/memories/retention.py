"""Retention: old topics of sessions and projects go to the trash; nothing of a vault ever does.

Limits and exemptions: reference/scopes-and-identity.md, "Retention run" (a whole number of days
*greater* than the limit; types user and feedback never). The file itself is judged, not its row:
type and newest section are read again right before a topic is moved.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from vaultmem.access.session import Session
from vaultmem.base.clock import now
from vaultmem.base.errors import LockBusy, StoreRefused
from vaultmem.base.locks import file_lock
from vaultmem.base.times import iso, parse_time
from vaultmem.base.values import Binding
from vaultmem.memories.destinations import Place
from vaultmem.memories.forget import to_trash, trash_base
from vaultmem.memories.phases import check_switches, index_now
from vaultmem.memories.store import LOCK_WAIT_S
from vaultmem.memories.trash import TRASH, trash_days, trashed_in
from vaultmem.memories.wiki import take_from_index, topic_lock
from vaultmem.memories.writer import remove_topic
from vaultmem.notes.wiki.topics import parse_topic

LIMIT_DAYS = {"session": 14, "project": 90}
PROTECTED_TYPES = ("user", "feedback")
TRASH_DAYS = 30
_SEEN = "retention_reported"


def retention(session: Session, *, apply: bool = False) -> dict[str, Any]:
    """Return `vaultmem.retention/1`: the expired topics, moved to the trash with `apply`.

    On an adopted CAO home the first run only reports, whatever is asked. Raises StoreRefused, LockBusy.
    """
    if apply:
        check_switches(session)
    if not session.config.is_set_up:
        return _report([], False, "there is no memory yet")
    session.sync()
    expired = _expired(session)
    state = session.state.memory
    first_adopted = bool(session.config.adopted) and not state.note(_SEEN)
    if not apply or first_adopted:
        if first_adopted and apply:
            state.set_note(_SEEN, iso(now()))
        why = "nothing was done: the first run on an adopted home only reports; run it again" if apply else ""
        return _report(expired, False, why or "nothing was done; add --apply")
    with file_lock(session.reconciler.lock_path(), wait_s=LOCK_WAIT_S, what="writing"):
        moved = [row for row in expired if _move(session, row)]
    _empty_old_trash(session)
    return _report(moved, True, "")


def _report(rows: list[dict[str, Any]], applied: bool, why_not: str) -> dict[str, Any]:
    return {"schema": "vaultmem.retention/1", "applied": applied, "why_not": why_not, "expired": rows}


def _expired(session: Session) -> list[dict[str, Any]]:
    """Return the topics that are too old, by scope, id and key."""
    marks = ",".join("?" * len(LIMIT_DAYS))
    sql = (
        "SELECT n.scope, n.scope_id, n.key, n.path FROM note n WHERE n.source_kind = 'native' "
        f"AND n.scope IN ({marks}) ORDER BY n.scope, n.scope_id, n.key"
    )
    found = []
    for scope, scope_id, key, path in session.connection().execute(sql, tuple(LIMIT_DAYS)):
        age = _age_days(session, path)
        if age is not None and age > LIMIT_DAYS[scope]:
            found.append({"key": key, "scope": scope, "scope_id": scope_id, "path": path, "age_days": age})
    return found


def _age_days(session: Session, path: str) -> int | None:
    """Return the whole days since a topic's newest section; None for what never expires or can't be told."""
    try:
        with open(os.path.join(session.config.memory_root, path), "rb") as file:
            note = parse_topic(file.read(session.config.native.max_note_bytes), path)
    except OSError:
        return None
    times = [moment for section in note.sections if (moment := parse_time(section.time)) is not None]
    if not times or note.cao is None or note.cao.type in PROTECTED_TYPES:
        return None
    if any(item.code == "topic_malformed" for item in note.findings):  # its type can't be told, so it stays
        return None
    return max(0, (now() - max(times)) // timedelta(days=1))


def _move(session: Session, row: dict[str, Any]) -> bool:
    binding = Binding(row["scope"], row["scope_id"] or None)
    topic = Place(session.config.native, binding, row["path"])
    try:
        with topic_lock(session.config, binding, row["key"]):
            age = _age_days(session, row["path"])
            if age is None or age <= LIMIT_DAYS[row["scope"]] or not to_trash(session, topic):
                return False  # stored to meanwhile
            take_from_index(session.config, binding, row["key"])
            index_now(session, topic)
            session.state.memory.record_write("memory_expired", iso(now()), binding, row["key"], age_days=age)
            return True
    except (LockBusy, StoreRefused):  # somebody writes it, so it is not old
        return False


def _empty_old_trash(session: Session) -> None:
    """Erase copies that have been in the trash for longer than 30 days."""
    base = trash_base(session)
    oldest = (now() - timedelta(days=TRASH_DAYS)).date().isoformat()
    for day in trash_days(base):
        if len(day) == len(oldest) and day < oldest:
            for path in trashed_in(base, f"{TRASH}/{day}"):
                remove_topic(base, path)
