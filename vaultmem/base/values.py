"""Frozen values that the rooms hand to each other; no behaviour beyond small derived facts.

Values that come by the hundred thousand are named tuples, which are made and compared in C.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

Severity = Literal["error", "warn", "info"]
LinkState = Literal["resolved", "dangling", "ambiguous", "alias", "excluded", "attachment"]
LinkKind = Literal["wikilink", "markdown", "frontmatter", "canvas", "cao"]
SourceKind = Literal["native", "vault"]

SCOPES = ("session", "project", "global", "agent", "federated")
"""All scopes in the order of recall precedence (reference/memory-facts.md, "Scopes")."""

TYPES = ("project", "user", "feedback", "reference")
LINK_TYPES = ("relates_to", "contradiction", "supersedes")
EDGE_STATUSES = ("active", "proposal", "rejected", "superseded", "deleted")


class Binding(NamedTuple):
    """Whose memory a folder is: a scope, and an id where the scope needs one."""

    scope: str
    scope_id: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a user should know about a file.

    `path` is relative to the vault (empty: the vault as a whole); `line` counts from 1, 0 means none.
    """

    code: str
    severity: Severity
    path: str
    line: int
    message: str
    vault: str = ""


class Signature(NamedTuple):
    """The stat values that must all be equal for a file to count as unchanged (design.md §5)."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> Signature:
        """Return the signature of stat values, each brought into the 64 bits that the index can hold.

        A time beyond the year 2262 or before 1677 becomes the last that fits (the inode change time still
        tells edits apart); an inode number keeps its bits.
        """
        inode = found.st_ino if found.st_ino <= _MAX_INT else found.st_ino - (1 << 64)
        return cls(_held(found.st_size), _held(found.st_mtime_ns), _held(found.st_ctime_ns), inode)


_MAX_INT = (1 << 63) - 1


def _held(number: int) -> int:
    return max(-_MAX_INT, min(_MAX_INT, number))


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that the scan saw: `raw_path` opens it, `path` (NFC, POSIX, relative) names it.

    `kind`: note | canvas | other (other files only lend their names to link resolution).
    `binding` is None for files outside every mapping or excluded from it; `excluded_by` says why.
    """

    vault: str
    path: str
    raw_path: str
    kind: str
    signature: Signature
    binding: Binding | None
    mapping: int
    excluded_by: str = ""

    @property
    def holds_note(self) -> bool:
        """Whether the file is a note of some scope."""
        return self.kind == "note" and self.binding is not None

    def with_signature(self, signature: Signature) -> SourceFile:
        """Return the file as it was when it was read; nearly always that is as it was seen."""
        return self if signature == self.signature else replace(self, signature=signature)


class Heading(NamedTuple):
    """A heading with its text as written (markup kept) and its 1-based line."""

    level: int
    text: str
    line: int


class Link(NamedTuple):
    """A link as written in a note.

    `link` is the target as Obsidian records it, `path` is `link` without `subpath`;
    `key` is the property path of a frontmatter link, else "".
    """

    raw: str
    link: str
    path: str
    subpath: str
    display: str
    kind: LinkKind
    embed: bool
    line: int
    key: str = ""


@dataclass(frozen=True, slots=True)
class CaoLink:
    """One valid row of `cao.links` (reference/vault.md, "The cao: block")."""

    to: str
    type: str
    status: str
    origin: str
    confidence: float | None
    line: int


@dataclass(frozen=True, slots=True)
class CaoBlock:
    """The valid part of a note's `cao:` block; absent members are None or empty."""

    key: str | None = None
    type: str | None = None
    managed: bool = False
    links: tuple[CaoLink, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A dated section of a managed note or topic: UTC time text, first line (1-based), body text."""

    time: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class ParsedNote:
    """Everything that a note's text says, apart from where its links lead.

    `body` is the text after the properties block with line ends as `\\n`; `body_line` the 1-based
    line where it starts. `frontmatter` is None when there is no usable block.
    `quarantine` names the finding code that keeps the note out of every view, or is "".
    """

    title: str
    frontmatter: Mapping[str, Any] | None
    aliases: tuple[str, ...]
    frontmatter_tags: tuple[str, ...]
    body_tags: tuple[str, ...]
    headings: tuple[Heading, ...]
    links: tuple[Link, ...]
    blocks: tuple[str, ...]
    cao: CaoBlock | None
    sections: tuple[Section, ...]
    body: str
    body_line: int
    findings: tuple[Finding, ...]
    quarantine: str = ""

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags without `#`: properties first, then the body, repeats kept."""
        return self.frontmatter_tags + self.body_tags


class Resolution(NamedTuple):
    """Where a link leads: state, way (`path|name|alias|""`), target path and equal candidates."""

    state: LinkState
    via: str
    target: str | None
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """One note as recall, list and show give it (design.md §8, "JSON")."""

    key: str
    scope: str
    scope_id: str | None
    source_kind: SourceKind
    type: str
    title: str
    tags: tuple[str, ...]
    content: str
    snippet: str
    path: str
    vault: str
    score: float
    updated_at: str
    created_at: str
    freshness: str = "fresh"
    superseded_by: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    related: bool = False
    content_truncated: bool = False
    partial: bool = False
    lifecycle_status: str = ""
    explain: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a store, delete or restore did; `action` as in design.md §7."""

    action: str
    key: str
    scope: str
    scope_id: str | None
    source_kind: SourceKind
    path: str
    vault: str = ""
    warnings: tuple[str, ...] = ()
    similar: tuple[str, ...] = ()
    created_at: str = ""
