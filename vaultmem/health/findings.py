"""Findings: what is wrong with which file, with a next step each.

Findings of links are read off the link rows; the others are stored with their file, with the scan,
or (events) with the run in state.db.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace

from vaultmem.access.session import Session
from vaultmem.base.errors import UsageError
from vaultmem.base.values import Finding
from vaultmem.index.queries import as_on_disk
from vaultmem.notes.findings import KINDS, finding, next_step

SEVERITIES = ("error", "warn", "info")
_RANK = {name: position for position, name in enumerate(SEVERITIES)}


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding as shown: `at` is the time of its run for events, "" for lasting ones."""

    finding: Finding
    next_step: str
    at: str = ""


def all_findings(session: Session, code: str = "", severity: str = "", *, sweep: bool = True) -> list[FindingRow]:
    """Return lasting findings, held mappings and recent events; errors first, then by path.

    Raises UsageError for unknown codes and severities.
    """
    if code and code not in KINDS:
        raise UsageError(f'Unknown code "{code}"', "The codes are listed in docs/findings.md")
    if severity and severity not in SEVERITIES:
        raise UsageError(f'Unknown severity "{severity}"', f"Use one of: {', '.join(SEVERITIES)}")

    def action() -> list[FindingRow]:
        rows = [FindingRow(item, next_step(item.code)) for item in _lasting(session.connection())]
        rows += [FindingRow(item, next_step(item.code)) for item in _held(session)]
        rows += [FindingRow(item, next_step(item.code), at) for at, item in session.state.events()]
        kept = [row for row in rows if code in ("", row.finding.code) and severity in ("", row.finding.severity)]
        kept.sort(
            key=lambda row: (
                bool(row.at),
                _RANK[row.finding.severity],
                row.finding.vault,
                row.finding.path,
                row.finding.line,
                row.finding.code,
            )
        )
        return kept

    return session.read(action, sweep=sweep)


def finding_counts(session: Session) -> dict[str, int]:
    """Return how many lasting findings and held mappings there are, by severity."""
    counts = dict.fromkeys(SEVERITIES, 0)
    for severity, number in session.connection().execute("SELECT severity, count(*) FROM finding GROUP BY severity"):
        counts[severity] += number
    for kind, number in session.connection().execute(_LINK_COUNTS):
        counts[KINDS[kind].severity] += number
    for item in _held(session):
        counts[item.severity] += 1
    return counts


def note_findings(connection: sqlite3.Connection, note_id: int) -> list[Finding]:
    """Return the lasting findings of one file, those of its links included."""
    stored = connection.execute(f"{_STORED} WHERE g.file_id = ? ORDER BY g.line, g.code", (note_id,))
    found = [Finding(*row) for row in stored]
    return found + list(_of_links(connection, "WHERE l.source_id = ?", (note_id,)))


_STORED = (
    "SELECT g.code, g.severity, coalesce(f.raw_path, g.path), g.line, g.message, g.vault "
    "FROM finding g LEFT JOIN file f ON f.id = g.file_id"
)


def _held(session: Session) -> list[Finding]:
    return [
        replace(finding(item.code, "" if item.folder == "." else item.folder, 0, item.message), vault=item.vault)
        for item in session.state.held()
    ]


def _lasting(connection: sqlite3.Connection) -> Iterator[Finding]:
    for row in connection.execute(_STORED):
        yield Finding(*row)
    yield from _of_links(connection, "WHERE n.quarantine = '' AND (l.state <> 'resolved' OR l.subpath_missing)", ())


_LINK_KIND = (
    "CASE l.state WHEN 'dangling' THEN 'link_dangling' "
    "WHEN 'alias' THEN CASE l.candidates WHEN '[]' THEN 'link_dangling' ELSE 'alias_ambiguous' END "
    "WHEN 'ambiguous' THEN 'link_ambiguous' WHEN 'excluded' THEN 'link_excluded' "
    "WHEN 'attachment' THEN 'attachment_ignored' ELSE 'subpath_missing' END"
)
_LINK_COUNTS = (
    f"SELECT {_LINK_KIND} AS code, count(*) FROM link l JOIN note n ON n.id = l.source_id "
    "WHERE n.quarantine = '' AND (l.state <> 'resolved' OR l.subpath_missing) GROUP BY code"
)


def _of_links(connection: sqlite3.Connection, where: str, parameters: tuple[object, ...]) -> Iterator[Finding]:
    sql = (
        "SELECT s.vault, s.raw_path, l.line, l.link, l.state, l.subpath, l.subpath_missing, l.candidates, t.raw_path, "
        "l.lookup FROM link l JOIN file s ON s.id = l.source_id LEFT JOIN note n ON n.id = l.source_id "
        f"LEFT JOIN file t ON t.id = l.target_id {where}"
    )
    for vault, path, line, link, state, subpath, missing, candidates, target, lookup in connection.execute(
        sql, parameters
    ):
        equal = [as_on_disk(connection, vault, one) for one in json.loads(candidates)]
        code, message = _describe(link, state, subpath, bool(missing), equal, target, lookup)
        if code:
            yield replace(finding(code, path, line, message), vault=vault)


def _describe(
    link: str, state: str, subpath: str, missing: bool, candidates: list[str], target: str | None, lookup: str
) -> tuple[str, str]:
    """Return (code, message) of a link that deserves one, else ("", "")."""
    if state == "dangling":
        if lookup.startswith("="):
            return "link_dangling", f"no memory of this scope has the key {link}"
        return "link_dangling", f"[[{link}]] leads to no file"
    if state == "alias":
        if candidates:
            return "alias_ambiguous", f"[[{link}]] is an alias of several notes: {', '.join(candidates)}"
        stem = (target or "").rpartition("/")[2].removesuffix(".md")
        return "link_dangling", f"[[{link}]] is only an alias of {target}; write [[{stem}|{link}]]"
    if state == "ambiguous":
        return "link_ambiguous", f"[[{link}]] fits equally: {', '.join(candidates)}; {target} is taken"
    if state == "excluded":
        return "link_excluded", f"[[{link}]] leads to a file that is not shown"
    if state == "attachment":
        return "attachment_ignored", f"{target} is an attachment"
    if missing:
        return "subpath_missing", f"{target} has no {'block' if subpath.startswith('#^') else 'heading'} for {subpath}"
    return "", ""
