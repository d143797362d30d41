"""The `<cao-memory>` block: the newest memories of a caller's session, project and global scope, one line each.

Simple form of reference/injection.md ("Selection"): 10 entries and 1,000 characters a scope, in that
order; nothing in a note can close the block, forge an entry or span lines (known-gaps.md, 31).
"""

from __future__ import annotations

import json
import re
import sqlite3

from vaultmem.access.session import Session
from vaultmem.access.visibility import may_show
from vaultmem.base.values import Binding
from vaultmem.notes.sections import section_texts
from vaultmem.recall.candidates import newest
from vaultmem.text.secrets import redact

SCOPES = ("session", "project", "global")
MAX_ENTRIES = 10
MAX_CHARS = 1_000
OPEN, CLOSE, HEADING = "<cao-memory>", "</cao-memory>", "## Context from CAO Memory"
_TAG = re.compile(r"<(?=\s*/?\s*cao-)", re.IGNORECASE)


def context_block(session: Session) -> str:
    """Return the block, "" when there is nothing to say. Counts no access."""
    return session.read(lambda: _block(session))


def _block(session: Session) -> str:
    lines: list[str] = []
    for scope in SCOPES:
        mine = tuple(binding for binding in session.bindings() if binding.scope == scope)
        lines += _of_scope(session, scope, mine) if mine else []
    return "\n".join([OPEN, HEADING, *lines, CLOSE]) if lines else ""


def _of_scope(session: Session, scope: str, mine: tuple[Binding, ...]) -> list[str]:
    where = may_show(session.config, "inject", mine)
    found = newest(session.connection(), where, MAX_ENTRIES, by_scope=False).candidates
    if session.config.lifecycle_enabled:
        found = [one for one in found if not one.superseded]
    connection = session.connection()
    lines: list[str] = []
    left = MAX_CHARS
    for one in found:
        line = entry(scope, one.key, _text(connection, one.id)[: session.config.max_recall_body_chars])
        if len(line) + 1 > left:
            break
        left -= len(line) + 1
        lines.append(line)
    return lines


def _text(connection: sqlite3.Connection, note_id: int) -> str:
    """Return what a memory says now: its newest dated section, else its body without the title's heading."""
    sql = "SELECT body, body_line, sections, title FROM note WHERE id = ?"
    body, body_line, sections, title = connection.execute(sql, (note_id,)).fetchone()
    said = section_texts(body, body_line, json.loads(sections))
    if said:
        return said[-1]
    first, _, rest = body.strip("\n").partition("\n")
    return str(rest if first.strip() == f"# {title}" and rest.strip() else body)


def entry(scope: str, key: str, content: str) -> str:
    """Return one line of the block: blanks folded, secrets redacted, tags of ours disarmed."""
    text = " ".join(redact(content)[0].split())
    return f"- [{scope}] {key}: {_TAG.sub('&lt;', text)}"
