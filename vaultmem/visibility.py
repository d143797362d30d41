"""The chokepoint: what recall, list, show, graph, export and injection may show.

Every read of notes for a reader takes its condition from here. A quarantined note (broken,
secret-bearing, colliding, excluded) reaches no view; injection shows only what a mapping with
`inject = true` holds. design.md, invariant 5.
"""

from __future__ import annotations

from typing import Literal

from vaultmem.config import Config
from vaultmem.index.search import Filter

Purpose = Literal["recall", "list", "show", "links", "graph", "export", "inject"]


def may_show(config: Config, purpose: Purpose) -> Filter:
    """Return the condition on `note n` that a purpose sets."""
    if purpose != "inject":
        return Filter("n.quarantine = ''")
    allowed = [
        (vault.id, position)
        for vault in config.vaults
        for position, mapping in enumerate(vault.mappings)
        if mapping.inject and mapping.index
    ]
    if not allowed:
        return Filter("0")
    places = " OR ".join("(n.vault = ? AND n.mapping = ?)" for _ in allowed)
    return Filter(f"n.quarantine = '' AND ({places})", tuple(value for place in allowed for value in place))


def all_terms_are_visible(purpose: Purpose) -> bool:
    """Tell whether every note in the full-text table may be shown: it holds no quarantined note's terms."""
    return purpose != "inject"
