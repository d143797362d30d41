"""Relationships between notes: identity of an edge, and how links become edges.

Pure. Source: reference/vault.md, "The `cao:` block" (merging, limits) and
graph-and-care-facts.md, "Relationships" (identity without random parts).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from vaultmem.base.values import Binding

MAX_EDGES_PER_TYPE = 64
VAULT_ORIGIN = "vault"
BODY, FRONTMATTER = "body", "frontmatter"


class Edge(NamedTuple):
    """A relationship between two notes of one binding.

    `attested`: where it is written (`body`, `frontmatter`, `body+frontmatter`);
    `authored_origin`: the `origin` member of its `cao.links` row.
    """

    id: str
    binding: Binding
    source_key: str
    target_key: str
    type: str
    origin: str
    status: str
    confidence: float | None
    attested: str
    authored_origin: str = ""


class LinkEnd(NamedTuple):
    """What of a resolved link matters for edges: the target's key, and the `cao.links` row if any."""

    target_key: str
    from_cao: bool
    type: str = "relates_to"
    status: str = "active"
    confidence: float | None = None
    authored_origin: str = ""


def edge_id(binding: Binding, source: str, target: str, type_: str, origin: str) -> str:
    """Return the 32-hex identity of an edge, the same in every rebuild."""
    parts = (binding.scope, binding.scope_id or "", source, target, type_, origin)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def edges_of(binding: Binding, source_key: str, ends: Iterable[LinkEnd]) -> tuple[tuple[Edge, ...], bool]:
    """Return the edges of one source note, sorted, and whether the limit cut some off.

    `cao.links` rows go first, then body targets by key; a body link to the target of a
    relates_to row is the same edge, attested twice. No edge joins a note to itself.
    """
    rows: dict[tuple[str, str], LinkEnd] = {}
    body: set[str] = set()
    for end in ends:
        if end.target_key == source_key:
            continue
        if end.from_cao:
            rows.setdefault((end.type, end.target_key), end)
        else:
            body.add(end.target_key)
    for target in sorted(body):
        rows.setdefault(("relates_to", target), LinkEnd(target, False))
    edges: list[Edge] = []
    counts: dict[str, int] = {}
    cut = False
    for (type_, target), end in rows.items():
        counts[type_] = counts.get(type_, 0) + 1
        if counts[type_] > MAX_EDGES_PER_TYPE:
            cut = True
            continue
        in_body = target in body and type_ == "relates_to"
        attested = BODY if not end.from_cao else f"{BODY}+{FRONTMATTER}" if in_body else FRONTMATTER
        identity = edge_id(binding, source_key, target, type_, VAULT_ORIGIN)
        edges.append(
            Edge(
                identity,
                binding,
                source_key,
                target,
                type_,
                VAULT_ORIGIN,
                end.status,
                end.confidence,
                attested,
                end.authored_origin,
            )
        )
    return tuple(sorted(edges, key=lambda edge: edge.id)), cut
