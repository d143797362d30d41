"""The graph of an open home: what hangs on `memory.graph`."""

from __future__ import annotations

from vaultmem.access.session import Session
from vaultmem.graph.export import export_obsidian, write_folder
from vaultmem.graph.view import GraphView, graph_view


class Graph:
    """Questions to the graph, and its exports. Every method raises errors of `vaultmem.base.errors` only."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def view(self) -> GraphView:
        """Return nodes and edges of everything that may be exported."""
        return graph_view(self._session)

    def __call__(self) -> GraphView:
        """The same as `view()`: `memory.graph()` was a method once."""
        return self.view()

    def export(self, target: str) -> tuple[int, int]:
        """Write the graph as a folder for Obsidian; return (notes, changed files).

        Raises UsageError for a target inside a vault or our home, OSError.
        """
        config = self._session.config
        files = export_obsidian(self.view())
        roots = [vault.root for vault in config.vaults] + [config.home]
        return len(files), write_folder(files, target, roots)
