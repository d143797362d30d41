"""Rows of the index as hits: the shape that recall, list and show give out."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from vaultmem.model import Hit
from vaultmem.text.snippets import SNIPPET_CHARS, make_snippet
from vaultmem.text.tokens import Query

_COLUMNS = (
    "n.id, n.key, n.scope, n.scope_id, n.source_kind, n.type, n.title, n.tags, n.body, n.path, n.vault, n.updated_at, "
    "n.created_at, n.properties"
)


def load_hits(
    connection: sqlite3.Connection, ids: Sequence[int], scores: dict[int, float], query: Query, max_body_chars: int
) -> dict[int, Hit]:
    """Return hits by note id; `max_body_chars` cuts the content (0: none is given)."""
    found: dict[int, Hit] = {}
    for start in range(0, len(ids), 400):
        batch = tuple(ids[start : start + 400])
        sql = f"SELECT {_COLUMNS} FROM note n WHERE n.id IN ({','.join('?' * len(batch))})"
        for row in connection.execute(sql, batch):
            found[row[0]] = _hit(row, scores.get(row[0], 0.0), query, max_body_chars)
    return found


def _hit(row: Sequence[Any], score: float, query: Query, max_body_chars: int) -> Hit:
    body = str(row[8])
    content = body.strip("\n")
    cut = len(content) > max_body_chars
    return Hit(
        key=row[1],
        scope=row[2],
        scope_id=row[3] or None,
        source_kind=row[4],
        type=row[5],
        title=row[6],
        tags=tuple(dict.fromkeys(json.loads(row[7]))),
        content=content[:max_body_chars] if cut else content,
        snippet=make_snippet(body, query, SNIPPET_CHARS),
        path=row[9],
        vault=row[10],
        score=score,
        updated_at=row[11],
        created_at=row[12],
        properties=json.loads(row[13]),
        content_truncated=cut,
    )


_RELATIONS = (
    "SELECT type, source_key FROM edge INDEXED BY edge_target WHERE scope = ? AND scope_id = ? AND target_key = ? "
    "AND status = 'active' AND type <> 'relates_to' UNION ALL "
    "SELECT type, target_key FROM edge INDEXED BY edge_from WHERE scope = ? AND scope_id = ? AND source_key = ? "
    "AND status = 'active' AND type = 'contradiction'"
)


def with_relations(connection: sqlite3.Connection, hit: Hit) -> Hit:
    """Add what supersedes the note and what contradicts it (active edges of its own scope)."""
    binding = (hit.scope, hit.scope_id or "")
    rows = connection.execute(_RELATIONS, (*binding, hit.key, *binding, hit.key)).fetchall()
    newer = sorted({row[1] for row in rows if row[0] == "supersedes"})
    against = sorted({row[1] for row in rows if row[0] == "contradiction"})
    if not newer and not against:
        return hit
    return replace(hit, superseded_by=tuple(newer), contradicts=tuple(against))


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
        "vault": hit.vault,
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
    }
    if not with_score:
        del row["score"]
    return row
