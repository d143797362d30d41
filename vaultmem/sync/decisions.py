"""What people decided since the index was written: forgotten memories and rejected relationships.

Both live in state.db. The index notes which of them it has taken in (meta), so that a run knows what
to judge anew, whatever file changed or none, and a crash between the two databases heals itself.
"""

from __future__ import annotations

import json
import sqlite3

from vaultmem.base.values import Binding
from vaultmem.index.queries import edge_sources
from vaultmem.index.schema import read_meta
from vaultmem.state.memories import Identity, MemoryState


class Judgements:
    """The decisions in force, and which of them the index does not know yet."""

    def __init__(self, memory: MemoryState, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.forgotten: frozenset[Identity] = memory.forgotten()
        self.rejected: frozenset[str] = memory.rejected_edges()
        known_forgotten = json.loads(read_meta(connection, "forgotten", "[]"))
        known_rejected = json.loads(read_meta(connection, "rejected", "[]"))
        changed = self.forgotten ^ {(row[0], row[1], row[2]) for row in known_forgotten}
        self.rejudge = [(Binding(scope, scope_id or None), key) for scope, scope_id, key in sorted(changed)]
        self._judged_edges = self.rejected ^ set(known_rejected)

    @property
    def changed(self) -> bool:
        """Whether there is anything that the index does not know."""
        return bool(self.rejudge or self._judged_edges)

    @property
    def meta(self) -> dict[str, str]:
        """What the index notes once it has taken them in."""
        return {"forgotten": json.dumps(sorted(self.forgotten)), "rejected": json.dumps(sorted(self.rejected))}

    def relink(self) -> set[int]:
        """Return the files whose edges were judged anew."""
        return edge_sources(self._connection, self._judged_edges)
