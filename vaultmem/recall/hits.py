"""Rows of the index as hits: the shape that recall, list and show give out."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from vaultmem.base.values import Hit
from vaultmem.index.engines.protocol import Filter
from vaultmem.index.queries import ON_DISK, chunked
from vaultmem.notes.properties import property_values
from vaultmem.notes.sections import section_texts
from vaultmem.text.snippets import SNIPPET_CHARS, make_snippet
from vaultmem.text.terms import Query, inflections

_COLUMNS = (
    f"n.id, n.key, n.scope, n.scope_id, n.source_kind, n.type, n.title, n.tags, n.body, {ON_DISK}, n.vault, "
    "n.updated_at, n.created_at, n.properties, n.body_line, n.sections"
)
WHOLE = 1 << 40
"""A budget of characters that means the whole note."""


def load_hits(
    connection: sqlite3.Connection,
    ids: Sequence[int],
    query: Query,
    max_body_chars: int,
    labels: Mapping[int, Mapping[str, Any]] | None = None,
) -> dict[int, Hit]:
    """Return hits by note id, with what supersedes and contradicts them.

    `max_body_chars` cuts the content (0: none is given); `labels`: further members of hits by id (score, freshness).
    """
    found: dict[int, Hit] = {}
    labels = labels or {}
    for batch in chunked(ids):
        relations = _relations(connection, batch)
        sql = f"SELECT {_COLUMNS} FROM note n WHERE n.id IN ({','.join('?' * len(batch))})"
        for row in connection.execute(sql, batch):
            more = {**labels.get(row[0], {}), **relations.get(row[0], {})}
            found[row[0]] = _hit(row, query, max_body_chars, more)
    return found


def _hit(row: Sequence[Any], query: Query, max_body_chars: int, more: dict[str, Any]) -> Hit:
    body = str(row[8])
    content, cut = body.strip("\n"), False
    if row[4] == "native" and max_body_chars < WHOLE:
        content, cut = matching_sections(body, row[14], json.loads(row[15]), query)
    cut = cut or len(content) > max_body_chars
    properties = json.loads(row[13])
    return Hit(
        key=row[1],
        scope=row[2],
        scope_id=row[3] or None,
        source_kind=row[4],
        type=row[5],
        title=row[6],
        tags=tuple(dict.fromkeys(json.loads(row[7]))),
        content=content[:max_body_chars],
        snippet=make_snippet(body, query, SNIPPET_CHARS, lambda: property_values(properties)),
        path=row[9],
        vault=row[10],
        updated_at=row[11],
        created_at=row[12],
        properties=properties,
        content_truncated=cut,
        **{"score": 0.0, **more},
    )


def matching_sections(body: str, body_line: int, sections: list[list[Any]], query: Query) -> tuple[str, bool]:
    """Return what a topic says to a query, and whether that is not all of it.

    Upstream answers with the last section whatever was asked (known-gaps.md, 15): here it is every
    section that holds a word of the query, and without a query (or such a section) the newest.
    """
    texts = section_texts(body, body_line, sections)
    if len(texts) < 2:
        return (texts[0] if texts else body.strip("\n")), False
    chosen = [number for number, text in enumerate(texts) if query.words and _holds(text.lower(), query)]
    if len(chosen) < 2:
        return texts[chosen[0] if chosen else -1], True
    parts = [f"## {sections[number][0]}\n{texts[number]}" for number in chosen]
    return "\n\n".join(parts), len(chosen) < len(texts)


def _holds(text: str, query: Query) -> bool:
    return any(form in text for word in query.words for form in (word, *inflections(word)[:12]))


_RELATED = (
    "SELECT DISTINCT n.id, e.confidence, e.target_key FROM note s CROSS JOIN edge e INDEXED BY edge_source ON "
    "e.source_id = s.id CROSS JOIN note n ON n.key = e.target_key AND n.scope = e.scope AND n.scope_id = e.scope_id "
    "WHERE s.scope = ? AND s.scope_id = ? AND s.key = ? AND e.type = 'relates_to' AND e.status = 'active' AND {shown} "
    "ORDER BY e.confidence IS NULL, e.confidence DESC, e.target_key"
)


def related_hits(
    connection: sqlite3.Connection, primaries: Sequence[Hit], query: Query, shown: Filter, max_body_chars: int
) -> list[Hit]:
    """Return what the primaries relate to, one level, in their order; nothing twice, and only what may be `shown`."""
    seen = {(hit.scope, hit.scope_id, hit.key) for hit in primaries}
    ids: list[int] = []
    for hit in primaries:
        values = (hit.scope, hit.scope_id or "", hit.key, *shown.parameters)
        ids += [row[0] for row in connection.execute(_RELATED.format(shown=f"({shown.sql})"), values)]
    loaded = load_hits(connection, list(dict.fromkeys(ids)), query, max_body_chars)
    extras: list[Hit] = []
    for note_id in dict.fromkeys(ids):
        hit = loaded[note_id]
        if (hit.scope, hit.scope_id, hit.key) not in seen:
            seen.add((hit.scope, hit.scope_id, hit.key))
            extras.append(replace(hit, related=True))
    return extras


_RELATIONS = " UNION ALL ".join(
    f"SELECT n.id, e.type, e.{theirs} FROM note n CROSS JOIN edge e INDEXED BY {index} ON e.scope = n.scope AND "
    f"e.scope_id = n.scope_id AND e.{own} = n.key AND e.type = '{kind}' AND e.status = 'active' "
    "WHERE n.id IN ({marks})"
    for kind, index, own, theirs in (
        ("supersedes", "edge_superseded", "target_key", "source_key"),
        ("contradiction", "edge_contradicted", "target_key", "source_key"),
        ("contradiction", "edge_contradicts", "source_key", "target_key"),
    )
)
"""Indexed by small indexes of just these edges: most notes have none."""


def _relations(connection: sqlite3.Connection, ids: Sequence[int]) -> dict[int, dict[str, tuple[str, ...]]]:
    """Return by note id what supersedes the note and what contradicts it (active edges of its own scope)."""
    found: dict[int, dict[str, set[str]]] = {}
    sql = _RELATIONS.format(marks=",".join(f"?{number}" for number in range(1, len(ids) + 1)))
    for note_id, kind, key in connection.execute(sql, ids):
        name = "superseded_by" if kind == "supersedes" else "contradicts"
        found.setdefault(note_id, {}).setdefault(name, set()).add(key)
    return {
        note_id: {name: tuple(sorted(keys)) for name, keys in relations.items()} for note_id, relations in found.items()
    }


def hit_json(hit: Hit, *, with_score: bool = True) -> dict[str, Any]:
    """Return a hit as design.md §8 writes it."""
    row: dict[str, Any] = {
        "key": hit.key,
        "scope": hit.scope,
        "scope_id": hit.scope_id,
        "source_kind": hit.source_kind,
        "type": hit.type,
        "title": hit.title,
        "tags": list(hit.tags),
        "content": hit.content,
        "snippet": hit.snippet,
        "path": hit.path,
        "vault": "" if hit.source_kind == "native" else hit.vault,
        "score": round(hit.score, 6),
        "updated_at": hit.updated_at,
        "created_at": hit.created_at,
        "freshness": hit.freshness,
        "superseded_by": list(hit.superseded_by),
        "contradicts": list(hit.contradicts),
        "properties": dict(hit.properties),
        "related": hit.related,
        "content_truncated": hit.content_truncated,
        "partial": hit.partial,
        **({"lifecycle_status": hit.lifecycle_status} if hit.lifecycle_status else {}),
        **({"explain": dict(hit.explain)} if hit.explain else {}),
    }
    if not with_score:
        del row["score"]
    return row
