"""Standard input and output as the transport, with every request answered before the end.

The SDK drops what is still running when the input ends; a client (or a pipe in a shell) that writes
its requests and closes its side still gets its answers here, for as long as they take a moment.
"""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

DRAIN_S = 0.7


class _Pending:
    """The requests that have no answer yet."""

    def __init__(self) -> None:
        self._ids: set[Any] = set()
        self._empty = anyio.Event()

    def came(self, message: Any) -> None:
        if getattr(message, "method", None) and getattr(message, "id", None) is not None:
            self._ids.add(message.id)

    def went(self, message: Any) -> None:
        if not getattr(message, "method", None):
            self._ids.discard(getattr(message, "id", None))
            if not self._ids:
                self._empty.set()

    async def none_left(self) -> None:
        while self._ids:
            self._empty = anyio.Event()
            await self._empty.wait()


async def serve(server: Server[Any]) -> None:
    """Serve until the input ends and what was asked is answered, or DRAIN_S has passed."""
    pending = _Pending()
    to_server, requests = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answers, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    async with stdio_server() as (read_stream, write_stream), anyio.create_task_group() as group:

        async def forward_requests() -> None:
            async with to_server:
                async for item in read_stream:
                    if isinstance(item, SessionMessage):
                        pending.came(item.message)
                    await to_server.send(item)
                with anyio.move_on_after(DRAIN_S):
                    await pending.none_left()

        async def forward_answers() -> None:
            async with write_stream, from_server:
                async for item in from_server:
                    await write_stream.send(item)
                    pending.went(item.message)

        group.start_soon(forward_requests)
        group.start_soon(forward_answers)
        await server.run(requests, answers, server.create_initialization_options())
        group.cancel_scope.cancel()
