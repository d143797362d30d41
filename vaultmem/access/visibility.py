"""The chokepoint: what recall, list, show, graph, export and injection may show.

Every read of notes for a reader takes its condition from here. A quarantined note (broken,
secret-bearing, colliding, excluded) reaches no view; injection shows only what a mapping with
`inject = true` holds. design.md, invariant 5.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from vaultmem.base.values import Binding
from vaultmem.index.engines.protocol import Filter
from vaultmem.settings.config import Config

Purpose = Literal["recall", "list", "show", "links", "graph", "export", "inject"]


Reader = tuple[Binding, ...] | None
"""Whose memories a reader may see; None: an operator, who sees all."""


def may_show(config: Config, purpose: Purpose, reader: Reader = None) -> Filter:
    """Return the condition on `note n` that a purpose and a reader set."""
    if reader is None:
        return _of_purpose(config, purpose)
    if not reader:
        return Filter("0")
    mine = " OR ".join("(n.scope = ? AND n.scope_id = ?)" for _ in reader)
    values = tuple(value for binding in reader for value in (binding.scope, binding.scope_id or ""))
    purposes = _of_purpose(config, purpose)
    return Filter(f"{purposes.sql} AND ({mine})", (*purposes.parameters, *values))


def _of_purpose(config: Config, purpose: Purpose) -> Filter:
    if purpose != "inject":
        return Filter("n.quarantine = ''")
    allowed = [
        (vault.id, position)
        for vault in config.vaults
        for position, mapping in enumerate(vault.mappings)
        if mapping.inject and mapping.index
    ]
    places = " OR ".join(["n.source_kind = 'native'", *("(n.vault = ? AND n.mapping = ?)" for _ in allowed)])
    return Filter(f"n.quarantine = '' AND ({places})", tuple(value for place in allowed for value in place))


def all_terms_are_visible(purpose: Purpose, reader: Reader, present: Collection[Binding]) -> bool:
    """Tell whether every note in the full-text table may be shown: it holds no quarantined note's terms.

    `present`: the bindings that the index holds.
    """
    return purpose != "inject" and (reader is None or set(present) <= set(reader))
