"""The graph as values: visible notes as nodes, relationships and links as edges.

Read from the index only; nothing is computed here that a reader may not see (`access.visibility`).
Source: graph-and-care-facts.md, "Graph"; design.md §8, `graph export --to json`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from vaultmem.access.session import Session
from vaultmem.access.visibility import may_show
from vaultmem.index.queries import ON_DISK


@dataclass(frozen=True, slots=True)
class Node:
    """A visible note; `id` is its uid."""

    id: str
    key: str
    scope: str
    scope_id: str | None
    title: str
    type: str
    tags: tuple[str, ...]
    path: str
    vault: str


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """A relationship (`origin` vault), or a link that makes none (`origin` link: other scope, alias)."""

    source: str
    target: str
    type: str
    origin: str
    status: str
    confidence: float | None


@dataclass(frozen=True, slots=True)
class GraphView:
    """Nodes and edges, sorted; every end of an edge is a node."""

    nodes: tuple[Node, ...]
    edges: tuple[GraphEdge, ...]

    def as_json(self) -> dict[str, Any]:
        """Return `vaultmem.graph/1`."""
        return {
            "schema": "vaultmem.graph/1",
            "nodes": [
                {
                    "id": n.id,
                    "key": n.key,
                    "scope": n.scope,
                    "scope_id": n.scope_id,
                    "title": n.title,
                    "type": n.type,
                    "tags": list(n.tags),
                    "path": n.path,
                    "vault": n.vault,
                }
                for n in self.nodes
            ],
            "edges": [
                {
                    "source": e.source,
                    "target": e.target,
                    "type": e.type,
                    "origin": e.origin,
                    "status": e.status,
                    "confidence": e.confidence,
                }
                for e in self.edges
            ],
        }


def graph_view(session: Session) -> GraphView:
    """Return the graph of everything that may be exported."""

    def action() -> GraphView:
        shown = may_show(session.config, "graph")
        connection = session.connection()
        rows = connection.execute(
            f"SELECT n.id, n.uid, n.key, n.scope, n.scope_id, n.title, n.type, n.tags, {ON_DISK}, n.vault FROM note n "
            f"WHERE {shown.sql} ORDER BY n.scope, n.scope_id, n.key, n.vault, n.path",
            shown.parameters,
        ).fetchall()
        ids = {row[0]: row[1] for row in rows}
        by_key = {(row[3], row[4], row[2]): row[1] for row in rows}
        nodes = tuple(
            Node(
                row[1],
                row[2],
                row[3],
                row[4] or None,
                row[5],
                row[6],
                tuple(dict.fromkeys(json.loads(row[7]))),
                row[8],
                row[9],
            )
            for row in rows
        )
        edges: set[GraphEdge] = set()
        joined: set[tuple[str, str]] = set()
        for source_id, scope, scope_id, target, type_, origin, state, confidence in connection.execute(
            "SELECT source_id, scope, scope_id, target_key, type, origin, status, confidence FROM edge"
        ):
            other = by_key.get((scope, scope_id, target))
            if source_id in ids and other is not None:
                edges.add(GraphEdge(ids[source_id], other, type_, origin, state, confidence))
                joined.add((ids[source_id], other))
        for source_id, target_id in connection.execute(
            "SELECT DISTINCT source_id, target_id FROM link "
            "WHERE state IN ('resolved', 'ambiguous', 'alias') AND kind <> 'cao'"
        ):
            if source_id in ids and target_id in ids and source_id != target_id:
                pair = (ids[source_id], ids[target_id])
                if pair not in joined:
                    edges.add(GraphEdge(*pair, "links_to", "link", "active", None))
        ordered = sorted(edges, key=lambda e: (e.source, e.target, e.type, e.origin))
        return GraphView(nodes, tuple(ordered))

    return session.read(action)
