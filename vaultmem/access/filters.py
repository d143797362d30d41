"""Filters of recall and list as conditions on notes; they apply before any limit.

Filters: scope and scope id, type, tags (a tag finds its sub-tags), path globs, and property
equality (`--where name=value`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from unicodedata import normalize

from vaultmem.access.scopes import check_scope, resolve_binding
from vaultmem.access.session import Session
from vaultmem.access.visibility import Reader
from vaultmem.base.errors import UsageError
from vaultmem.base.values import TYPES
from vaultmem.index.engines.protocol import Filter
from vaultmem.notes.links.wikilinks import fold


@dataclass(frozen=True, slots=True)
class NoteFilter:
    """What notes must be; empty fields do not filter.

    `everyone`: an operator's view of all projects, sessions and agents, not of the caller's own only.
    """

    scope: str = ""
    scope_id: str | None = None
    type: str = ""
    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    everyone: bool = False


def reader_of(session: Session, wanted: NoteFilter) -> Reader:
    """Return whose memories a read may see: the caller's own, those of a named id, or (None) all.

    A scope without an id means the caller's own id of it. Raises ScopeError when there is none to be had.
    """
    if wanted.everyone or wanted.scope_id is not None:
        return None
    mine = session.bindings()
    if not wanted.scope:
        return mine
    check_scope(wanted.scope)
    of_scope = tuple(binding for binding in mine if binding.scope == wanted.scope)
    return of_scope or (resolve_binding(session.config, session.context, wanted.scope),)


def combine(*filters: Filter) -> Filter:
    """Return the conjunction of conditions."""
    texts = [item.sql for item in filters if item.sql]
    parameters = tuple(value for item in filters if item.sql for value in item.parameters)
    return Filter(" AND ".join(f"({text})" for text in texts), parameters)


def filter_sql(wanted: NoteFilter) -> Filter:
    """Return the condition of a filter. Raises UsageError for unknown names and bad forms."""
    parts: list[Filter] = []
    if wanted.scope:
        parts.append(Filter("n.scope = ?", (check_scope(wanted.scope),)))
    if wanted.scope_id is not None:
        parts.append(Filter("n.scope_id = ?", (wanted.scope_id,)))
    if wanted.type:
        if wanted.type not in TYPES:
            raise UsageError(f'Unknown type "{wanted.type}"', f"Use one of: {', '.join(TYPES)}")
        parts.append(Filter("n.type = ?", (wanted.type,)))
    for tag in wanted.tags:
        folded = fold(tag.strip().removeprefix("#").rstrip("/"))
        parts.append(Filter("EXISTS (SELECT 1 FROM tag t WHERE t.note_id = n.id AND t.folded = ?)", (folded,)))
    if wanted.paths:
        globs = [_path_filter(path) for path in wanted.paths]
        parts.append(
            Filter(" OR ".join(item.sql for item in globs), tuple(v for item in globs for v in item.parameters))
        )
    parts += [_property_filter(text) for text in wanted.where]
    return combine(*parts)


def _path_filter(text: str) -> Filter:
    """A path is a glob if it holds one of `*?[`, else a note's path or a folder with all below it."""
    path = normalize("NFC", text.strip("/"))
    if re.search(r"[*?\[]", path):
        return Filter("n.path GLOB ?", (path,))
    return Filter("(n.path = ? OR substr(n.path, 1, ?) = ?)", (path, len(path) + 1, path + "/"))


def _property_filter(text: str) -> Filter:
    name, mark, value = text.partition("=")
    if not mark or not name.strip():
        raise UsageError(f'"{text}" is no property filter', "Write --where name=value")
    place = '$."' + name.strip().replace("\\", "\\\\").replace('"', '\\"') + '"'
    found = (
        "EXISTS (SELECT 1 FROM json_each(CASE json_type(n.properties, ?) WHEN 'array' "
        "THEN json_extract(n.properties, ?) "
        "ELSE json_array(json_extract(n.properties, ?)) END) p WHERE "
        "lower(CASE p.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE CAST(p.value AS TEXT) END) "
        "= lower(?))"
    )
    return Filter(found, (place, place, place, value.strip()))
