"""What an agent is told before its first question: what hangs on `memory.context`."""

from __future__ import annotations

from vaultmem.access.session import Session
from vaultmem.context.block import context_block


class Context:
    """The context of an open home for the caller of its session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def block(self) -> str:
        """Return the `<cao-memory>` block, "" when there is nothing to say."""
        return context_block(self._session)
