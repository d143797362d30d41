"""A plan as data: what is known of files, what was read of them, and the operations between.

`sync.plan.plan` makes these values, `index.apply` carries them out; neither decides for the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vaultmem.base.values import Binding, Finding, Link, SourceFile
from vaultmem.notes.links.wikilinks import fold


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a changed file is, in little: enough to plan with.

    `status`: ok | unstable (it changes while read: the old row stays) | gone (since it was seen: the old row stays
    too, as the next run sees whether it is meant or half of a save) | unreadable.
    `outline` is `outline_of` a note; `links` are those of a canvas. `ref` finds the prepared note in the
    PreparedStore (-1: none). `asks_outlines_of`: folded names in its links with a heading or block, "" for its own.
    """

    file: SourceFile
    status: str
    content_hash: str = ""
    racy: bool = False
    claimed_key: str = ""
    own_quarantine: str = ""
    aliases: tuple[str, ...] = ()
    outline: str = ""
    body_size: int = 0
    findings: tuple[Finding, ...] = ()
    links: tuple[Link, ...] = ()
    asks_outlines_of: tuple[str, ...] = ()
    ref: int = -1


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file row of the index; `note` fields are empty for files without a note."""

    id: int
    vault: str
    path: str
    raw_path: str
    kind: str
    mtime_ns: int
    content_hash: str
    excluded: str = ""
    rel: str = ""
    key: str = ""
    claimed_key: str = ""
    binding: Binding | None = None
    own_quarantine: str = ""
    quarantine: str = ""
    body_size: int = 0
    outline: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def visible(self) -> bool:
        """Whether the file is a note that views may show."""
        return self.binding is not None and not self.quarantine


@dataclass(frozen=True, slots=True)
class Put:
    """Write one file, and its note if it is one.

    `file_id` is the row to replace (a moved note keeps its row), 0 for a new one; `seen_ns` is
    the modification time that counts; `collision` a finding that other files bring about.
    """

    facts: FileFacts
    file_id: int
    rel: str = ""
    key: str = ""
    quarantine: str = ""
    seen_ns: int = 0
    collision: Finding | None = None
    moved_from: str = ""
    kind: str = "added"


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove a file's row with everything that belongs to it."""

    file: KnownFile


@dataclass(frozen=True, slots=True)
class Mark:
    """Change key or quarantine of a note whose file did not change."""

    file: KnownFile
    key: str
    quarantine: str
    collision: Finding | None


@dataclass(frozen=True, slots=True)
class IdentityChange:
    """A row of state.db's identity table to write, or to remove (`key` empty)."""

    binding: Binding
    rel: str
    key: str


@dataclass(frozen=True, slots=True)
class FirstSeen:
    """A row of state.db's times table: this text was first seen at that time."""

    binding: Binding
    rel: str
    content_hash: str
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Plan:
    """All operations of a run, each kind in path order; `touched` are rows with equal content."""

    puts: tuple[Put, ...] = ()
    drops: tuple[Drop, ...] = ()
    marks: tuple[Mark, ...] = ()
    touched: tuple[Put, ...] = ()
    relinks: tuple[int, ...] = ()
    identities: tuple[IdentityChange, ...] = ()
    first_seen: tuple[FirstSeen, ...] = ()
    events: tuple[Finding, ...] = ()

    def is_empty(self) -> bool:
        """Tell whether nothing is to be done."""
        return not (self.puts or self.drops or self.marks or self.touched)

    def operations(self) -> list[dict[str, str]]:
        """Return the operations as plain rows (`op`, `vault`, `path`, …), as `--dry-run` prints them."""
        rows = [
            {
                "op": "move" if put.moved_from else "put",
                "vault": put.facts.file.vault,
                "path": put.facts.file.raw_path,
                "key": put.key,
                **({"from": put.moved_from} if put.moved_from else {}),
                **({"quarantine": put.quarantine} if put.quarantine else {}),
            }
            for put in self.puts
            if put.facts.file.kind != "other"
        ]
        rows += [
            {"op": "drop", "vault": d.file.vault, "path": d.file.raw_path, "key": d.file.key}
            for d in self.drops
            if d.file.kind != "other"
        ]
        rows += [
            {
                "op": "quarantine" if m.quarantine else "mark",
                "vault": m.file.vault,
                "path": m.file.raw_path,
                "key": m.key,
                "quarantine": m.quarantine,
            }
            for m in self.marks
        ]
        return sorted(rows, key=lambda row: (row["vault"], row["path"], row["op"]))


def lookups_of_path(vault: str, path: str) -> tuple[str, ...]:
    """Return the link lookups that a file of this path may answer."""
    name = fold(path.rpartition("/")[2])
    names = (name, name[:-3]) if name.endswith(".md") else (name,)
    return tuple(f"{vault}:{item}" for item in names)


def key_lookup(binding: Binding, key: str) -> str:
    """Return the lookup of a `cao.links` row that names a key."""
    return f"={binding.scope}/{binding.scope_id or ''}/{key}"


def alias_lookup(vault: str, alias: str) -> str:
    """Return the link lookup that an alias may answer."""
    return f"{vault}:{fold(alias.rpartition('/')[2])}"


def outline_of(headings: Iterable[tuple[int, str]], blocks: Iterable[str]) -> str:
    """Return a text that changes when headings (level, text) or block ids do: what subpaths are checked against."""
    return repr((list(headings), sorted(blocks)))
