"""Candidates of a recall: the values that its stages hand on."""

from __future__ import annotations

from dataclasses import dataclass, field

from vaultmem.base.values import SCOPES
from vaultmem.state.memories import Identity

_PRECEDENCE = {scope: position for position, scope in enumerate(SCOPES)}


@dataclass(slots=True)
class Candidate:
    """A note that matches: `tier` 0 has every word as written; `partial` lacks some of them."""

    id: int
    lexical: float
    tier: int = 0
    partial: bool = False
    score: float = 0.0
    factor: float = 1.0
    binding: tuple[str, str] = ("", "")
    key: str = ""
    place: tuple[str, str] = ("", "")
    updated_at: str = ""
    native: bool = False
    superseded: bool = False
    count: int = 0

    @property
    def identity(self) -> Identity:
        """Scope, scope id and key."""
        return (*self.binding, self.key)

    @property
    def precedence(self) -> int:
        """The place of its scope in the order of recall."""
        return _PRECEDENCE.get(self.binding[0], len(SCOPES))

    @property
    def name(self) -> tuple[str, ...]:
        """What ties end by (design.md §5)."""
        return (*self.binding, self.key, *self.place)


@dataclass(slots=True)
class Pool:
    """Candidates before they are ordered and cut; `total` counts all matches of the tiers that were needed."""

    candidates: list[Candidate] = field(default_factory=list)
    total: int = 0
