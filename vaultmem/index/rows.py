"""A parsed note made ready for the index: all that does not depend on its key, place or neighbours.

Preparing is pure and heavy (token streams, JSON, hashes), so it is done where notes are parsed,
which may be another process; `index.apply` then only adds identity and writes.
"""

from __future__ import annotations

import json
import marshal
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from vaultmem.base.times import iso, iso_from_ns, parse_time
from vaultmem.base.values import CaoLink, Finding, Link, ParsedNote
from vaultmem.index import digest
from vaultmem.index.engines.protocol import COLUMNS, WEIGHTS
from vaultmem.notes.links.resolve import lookup_name
from vaultmem.notes.links.wikilinks import fold
from vaultmem.notes.properties import SEPARATOR, property_text
from vaultmem.text.prominence import always_prominent, prominent_terms
from vaultmem.text.terms import document_stream

_CREATED = ("created", "created_at", "date created", "date")
_CAO_PROPERTY = re.compile(r"^cao\.links\.\d+\.to$")
_UPDATED = ("updated", "updated_at", "modified", "date modified", "last modified")


class PreparedNote(NamedTuple):
    """The fixed part of a note's row, its token streams, names and links, as plain values.

    `created` and `updated` are "" where the file's time counts; `streams` are those of the
    full-text columns but the key; `fixed_hash` covers what is read of the text (it goes into the digest).
    """

    title: str
    type: str
    managed: int
    created: str
    updated: str
    token_estimate: int
    body_line: int
    tags: str
    aliases: str
    headings: str
    blocks: str
    sections: str
    properties: str
    body: str
    streams: tuple[str, ...]
    fixed_hash: str
    folded_aliases: tuple[str, ...]
    nested_tags: tuple[str, ...]
    links: tuple[tuple[Any, ...], ...]
    cao_links: tuple[tuple[Any, ...], ...]

    def to_bytes(self) -> bytes:
        """Return the note as bytes for another process or a spool file of ours."""
        return marshal.dumps(tuple(self))


def link_values(links: Sequence[tuple[Any, ...]]) -> list[tuple[Link, str]]:
    """Return the links of `PreparedNote.links`, each with the folded name that its candidates are found by."""
    return [(Link._make(values[:-1]), values[-1]) for values in links]


def cao_values(rows: Sequence[tuple[Any, ...]]) -> list[CaoLink]:
    """Return the valid rows of `cao.links` of `PreparedNote.cao_links`."""
    return [CaoLink(*values) for values in rows]


def prepared_from(data: bytes) -> PreparedNote:
    """Return the note that `to_bytes` wrote (our own bytes only: marshal is no format for strangers)."""
    return PreparedNote._make(marshal.loads(data))


def prepare_note(note: ParsedNote, path: str) -> PreparedNote:
    """Return a parsed note ready for the index; `path` is its vault-relative path."""
    tags, aliases = _json(note.tags), _json(note.aliases)
    headings = _json([(h.level, h.text, h.line) for h in note.headings])
    blocks, sections = _json(note.blocks), _json([(s.time, s.line) for s in note.sections])
    properties = _json(note.frontmatter or {})
    body = note.body.replace("\0", "\ufffd")
    created, updated = note_times(note)
    streams = _streams(
        note.title,
        path,
        note.aliases,
        note.tags,
        [heading.text for heading in note.headings],
        property_text(note.frontmatter or {}),
        body,
    )
    type_ = note.cao.type if note.cao and note.cao.type else "project"
    managed = int(bool(note.cao and note.cao.managed))
    fixed = (
        note.title,
        type_,
        managed,
        created,
        updated,
        note.body_line,
        tags,
        aliases,
        headings,
        blocks,
        sections,
        properties,
    )
    return PreparedNote(
        title=note.title,
        type=type_,
        managed=managed,
        created=created,
        updated=updated,
        token_estimate=token_estimate(body),
        body_line=note.body_line,
        tags=tags,
        aliases=aliases,
        headings=headings,
        blocks=blocks,
        sections=sections,
        properties=properties,
        body=body,
        streams=streams,
        fixed_hash=digest.row_hash("fixed", fixed).hex(),
        folded_aliases=tuple(sorted({fold(alias) for alias in note.aliases})),
        nested_tags=tuple(sorted({parent for tag in note.tags for parent in with_parents(tag)})),
        links=tuple(
            (*link, lookup_name(link.path)) for link in note.links if not (link.key and _CAO_PROPERTY.match(link.key))
        ),
        cao_links=tuple(_cao_row(row) for row in (note.cao.links if note.cao else ())),
    )


def _cao_row(row: CaoLink) -> tuple[Any, ...]:
    return (row.to, row.type, row.status, row.origin, row.confidence, row.line)


def stream_columns(
    title: str, path: str, aliases: str, tags: str, headings: str, properties: str, body: str
) -> tuple[str, ...]:
    """Return the token streams of title, aliases, tags, headings, property values, body and prominent terms.

    Aliases, tags, headings and properties are JSON, as a note's row has them.
    """
    texts = [heading[1] for heading in json.loads(headings)]
    values = property_text(json.loads(properties))
    return _streams(title, path, json.loads(aliases), json.loads(tags), texts, values, body)


def _streams(
    title: str,
    path: str,
    aliases: Sequence[str],
    tags: Sequence[str],
    headings: Sequence[str],
    values: str,
    body: str,
) -> tuple[str, ...]:
    name = path.rpartition("/")[2]
    stem = name[:-3] if name.lower().endswith(".md") else name
    full_title = title if title == stem else f"{title}{SEPARATOR}{stem}"
    streams = (
        document_stream(full_title),
        document_stream(SEPARATOR.join(aliases)) if aliases else "",
        document_stream(" ".join(tags)) if tags else "",
        document_stream(SEPARATOR.join(headings)) if headings else "",
        document_stream(values) if values else "",
        document_stream(body),
    )
    return (*streams, prominent_terms(streams, _STREAM_WEIGHTS))


def full_text_columns(streams: Sequence[str], key: str) -> tuple[str, ...]:
    """Return the values of the full-text table's columns: the streams with the key in its place."""
    title, aliases, tags, headings, values, body, prominent = streams
    return title, aliases, key, tags, headings, values, body, f"{prominent} {always_prominent(key)}"


_STREAM_WEIGHTS = tuple(weight for name, weight in zip(COLUMNS, WEIGHTS) if name not in ("key", "prominent"))


def with_parents(tag: str) -> list[str]:
    """Return a folded tag and its parents: `a/b/c` is also an `a/b` and an `a`."""
    parts = fold(tag).split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


def note_times(note: ParsedNote) -> tuple[str, str]:
    """Return (created, updated) as UTC text from sections and properties; "" where neither says."""
    properties = {name.lower(): value for name, value in (note.frontmatter or {}).items()}
    updated = max((section.time for section in note.sections), default="") or _property_time(properties, _UPDATED)
    created = _property_time(properties, _CREATED) or (note.sections[0].time if note.sections else "")
    return created, updated


def times_with(prepared: PreparedNote, seen_ns: int) -> tuple[str, str]:
    """Return (created_at, updated_at) with the file's time where the note itself says nothing."""
    updated = prepared.updated or iso_from_ns(seen_ns)
    return prepared.created or updated, updated


def _property_time(properties: dict[str, Any], names: Sequence[str]) -> str:
    for name in names:
        value = properties.get(name)
        moment = parse_time(value) if isinstance(value, str) else None
        if moment is not None:
            return iso(moment)
    return ""


FINDING_INSERT = "INSERT INTO finding VALUES (?,?,?,?,?,?,?)"


def finding_row(file_id: int, vault: str, found: Finding) -> tuple[Any, ...]:
    """Return the row of a file's finding."""
    return file_id, vault, found.path, found.code, found.severity, found.line, found.message


def token_estimate(text: str) -> int:
    """Return about how many model tokens a text is: its UTF-8 bytes / 4 (reference/libraries.md)."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


def _json(value: Any) -> str:
    if not value:  # most notes have no aliases, block ids or sections, and an encoder is made for each call
        return "{}" if isinstance(value, dict) else "[]"
    return _ENCODER.encode(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
