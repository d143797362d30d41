"""The `cao:` block of a note's properties: validated members, and findings for the rest.

Source: reference/vault.md, "The `cao:` block in a note's frontmatter".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vaultmem.base.values import LINK_TYPES, TYPES, CaoBlock, CaoLink, Finding
from vaultmem.notes.findings import finding
from vaultmem.notes.frontmatter import Block, line_of
from vaultmem.notes.keys import is_key

MAX_LINKS = 64
_STATUSES = ("active", "proposal", "rejected")
_MEMBERS = frozenset(("key", "type", "managed", "links"))
_LINK_MEMBERS = frozenset(("to", "type", "status", "origin", "confidence"))


@dataclass(frozen=True, slots=True)
class CaoReading:
    """The valid part of a block, its findings, and the code that quarantines the note ("" if none)."""

    block: CaoBlock | None
    findings: tuple[Finding, ...]
    quarantine: str = ""


def read_cao(block: Block) -> CaoReading:
    """Validate the `cao` property of a usable block; without one the reading is empty."""
    if block.data is None or "cao" not in block.data:
        return CaoReading(None, ())
    value = block.data["cao"]
    if not isinstance(value, dict):
        return _refused("invalid_cao_block", line_of(block, "cao"), "cao must be a mapping with key, type, links")
    findings = [
        finding("cao_member_unknown", "", line_of(block, "cao", name), "cao has a member that is not known")
        for name in value
        if name not in _MEMBERS
    ]
    key, kind, managed = value.get("key"), value.get("type"), value.get("managed", False)
    if "key" in value and not is_key(key):
        return _refused("key_invalid", line_of(block, "cao", "key"), "cao.key must be 1 to 60 of a-z, 0-9 and -")
    if "type" in value and kind not in TYPES:
        allowed = ", ".join(TYPES)
        return _refused("invalid_cao_block", line_of(block, "cao", "type"), f"cao.type must be one of {allowed}")
    if not isinstance(managed, bool):
        return _refused("invalid_cao_block", line_of(block, "cao", "managed"), "cao.managed must be true or false")
    rows, row_findings = _read_rows(block, value.get("links"))
    return CaoReading(CaoBlock(key, kind, managed, rows), tuple(findings + row_findings))


def _refused(code: str, line: int, message: str) -> CaoReading:
    return CaoReading(None, (finding(code, "", line, message),), code)


def _read_rows(block: Block, rows: Any) -> tuple[tuple[CaoLink, ...], list[Finding]]:
    """Return the valid rows of `cao.links`; a wrong row is left out and reported alone."""
    if rows is None:
        return (), []
    if not isinstance(rows, list):
        line = line_of(block, "cao", "links")
        return (), [finding("cao_link_invalid", "", line, "cao.links must be a list of mappings with `to`")]
    findings: list[Finding] = []
    links: list[CaoLink] = []
    for position, row in enumerate(rows[:MAX_LINKS]):
        line = line_of(block, "cao", "links", position)
        fault = _row_fault(row)
        if fault:
            findings.append(finding("cao_link_invalid", "", line, f"cao.links[{position}]: {fault}"))
            continue
        if set(row) - _LINK_MEMBERS:
            findings.append(
                finding("cao_member_unknown", "", line, f"cao.links[{position}] has a member that is not known")
            )
        confidence = row.get("confidence")
        links.append(
            CaoLink(
                to=row["to"].strip(),
                type=row.get("type", "relates_to"),
                status=row.get("status", "active"),
                origin=row.get("origin", "human"),
                confidence=None if confidence is None else float(confidence),
                line=line,
            )
        )
    if len(rows) > MAX_LINKS:
        line = line_of(block, "cao", "links", MAX_LINKS)
        findings.append(finding("cao_link_invalid", "", line, f"cao.links has more than {MAX_LINKS} rows"))
    kept, conflicts = _without_conflicts(links)
    return kept, findings + conflicts


def _row_fault(row: Any) -> str:
    """Return what is wrong with a row of `cao.links`, or ""."""
    if not isinstance(row, dict):
        return "must be a mapping with `to`"
    for member, fits, says in _ROW_RULES:
        if member in row and not fits(row[member]):
            return f"`{member}` {says}"
    return "" if "to" in row else "`to` is missing"


def _is_target(value: Any) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value.strip()) <= 256
        and not any(ord(char) < 32 or ord(char) == 127 for char in value)
    )


def _is_confidence(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1)


_ROW_RULES: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("to", _is_target, 'must be a key or "[[Note]]" of at most 256 characters'),
    ("type", lambda value: value in LINK_TYPES, f"must be one of {', '.join(LINK_TYPES)}"),
    ("status", lambda value: value in _STATUSES, f"must be one of {', '.join(_STATUSES)}"),
    ("origin", lambda value: isinstance(value, str) and 0 < len(value) <= 64, "must be a short text"),
    ("confidence", _is_confidence, "must be a number from 0 to 1"),
)


def _without_conflicts(links: list[CaoLink]) -> tuple[tuple[CaoLink, ...], list[Finding]]:
    """Drop rows that name one (target, type) with different facts; equal repeats count once."""
    groups: dict[tuple[str, str], list[CaoLink]] = {}
    for link in links:
        groups.setdefault((link.to, link.type), []).append(link)
    kept: list[CaoLink] = []
    findings: list[Finding] = []
    for group in groups.values():
        if len({(link.status, link.origin, link.confidence) for link in group}) == 1:
            kept.append(group[0])
        else:
            findings.append(
                finding("cao_link_conflict", "", group[1].line, "two cao.links rows name one target and type")
            )
    return tuple(kept), findings
