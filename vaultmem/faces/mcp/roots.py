"""The folder that a client works in, by the protocol's roots: it comes before our own working folder (design.md §7)."""

from __future__ import annotations

import asyncio
import os
import sys
import warnings
from typing import Any
from urllib.parse import unquote, urlsplit

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.message import ServerMessageMetadata

ROOTS_WAIT_S = 2.0


class Roots:
    """Asks a client for its roots: once (`keep`) until it says that they changed, else with every call."""

    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        self._known: str | None = None

    async def changed(self, context: Any, params: Any) -> None:
        """The client's roots have changed."""
        self._known = None

    async def folder(self, context: ServerRequestContext[Any, Any]) -> str:
        """Return the first root that is a folder here, "" when there is none or the client doesn't answer."""
        if self._known is not None:
            return self._known
        found = await self._ask(context)
        if self._keep:
            self._known = found
        return found

    async def _ask(self, context: ServerRequestContext[Any, Any]) -> str:
        session = context.session
        able = session.client_capabilities is not None and session.client_capabilities.roots is not None
        if not able or not session.can_send_request:
            return ""
        # on HTTP the question must go out on the stream of the call that it belongs to
        related = ServerMessageMetadata(related_request_id=context.request_id)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # roots are deprecated, and what clients have
                async with asyncio.timeout(ROOTS_WAIT_S):
                    answer = await session.send_request(types.ListRootsRequest(), types.ListRootsResult, None, related)
        except Exception:  # noqa: BLE001  whatever a client does with the question, the call is answered
            return ""
        return next((folder for root in answer.roots if os.path.isdir(folder := folder_of(str(root.uri)))), "")


def folder_of(uri: str) -> str:
    """Return the path of a `file:` URI, "" for others."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return ""
    path = unquote(parts.path)
    if sys.platform == "win32":
        path = path.lstrip("/")
    return os.path.normpath(path) if os.path.isabs(path) and "\0" not in path else ""
