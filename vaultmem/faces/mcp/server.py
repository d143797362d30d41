"""The protocol: tools, the context block as prompt and resource, over stdio or loopback HTTP.

The only module that imports the SDK. Handlers do nothing but hand calls to the worker thread; the
handshake needs neither the index nor the settings.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from vaultmem import __version__
from vaultmem.access.scopes import CallContext, context_from_environment
from vaultmem.base.errors import VaultmemError
from vaultmem.faces.mcp.log import CallLog, silence_libraries
from vaultmem.faces.mcp.roots import Roots
from vaultmem.faces.mcp.runtime import Runtime
from vaultmem.faces.mcp.tools import Tool, tools_for
from vaultmem.settings.config import environment_value

_Result = TypeVar("_Result")
Context = ServerRequestContext[Any, Any]

CONTEXT_URI = "vaultmem://context"
CONTEXT_PROMPT = "memory_context"
CONTEXT_TEXT = "The newest memories of this session, project and the user, for the start of a conversation."
PREPARE_AFTER_S = 0.2
"""The first build starts this long after the start, or with the first call: the handshake comes first."""
END_WAIT_S = 0.6
INSTRUCTIONS = (
    "The user's Obsidian notes and the memories of their agents. Call memory_recall with a few words and "
    'sort_by="relevance" before asking the user about preferences, decisions or history; call memory_store for facts '
    "that later sessions need."
)


class McpServer:
    """One server process: the handlers, and the worker thread that they use."""

    def __init__(self, home: str, *, read_only: bool, over_http: bool) -> None:
        self.log = CallLog(home)
        self.runtime = Runtime(home, read_only=read_only, log=self.log)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="vaultmem-calls")
        self._tools = {tool.name: tool for tool in tools_for(read_only)}
        self._ambient = _ambient_context(over_http)
        self.roots = Roots(keep=not over_http)
        self.server: Server[Any] = Server(
            "vaultmem",
            version=__version__,
            title="vaultmem",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_roots_list_changed=self.roots.changed,
        )

    # -- handlers ---------------------------------------------------------------------------------

    async def _list_tools(self, context: Context, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(tool) for tool in self._tools.values()])

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            known = ", ".join(self._tools)
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool {params.name[:80]!r}; there are: {known}")
        caller = await self._caller(context)
        answer = await self._in_worker(lambda: self.runtime.call(tool, params.arguments, caller))
        text = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace").decode()
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)],
            structured_content=json.loads(text),
            is_error=not answer["success"],
        )

    async def _list_resources(self, context: Context, params: Any) -> types.ListResourcesResult:
        resource = types.Resource(
            uri=CONTEXT_URI, name="context", title="Memory context", description=CONTEXT_TEXT, mime_type="text/markdown"
        )
        return types.ListResourcesResult(resources=[resource])

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        if str(params.uri) != CONTEXT_URI:
            raise MCPError(types.INVALID_PARAMS, f"Unknown resource; there is: {CONTEXT_URI}")
        block = await self._context_block(context)
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=CONTEXT_URI, mime_type="text/markdown", text=block)]
        )

    async def _list_prompts(self, context: Context, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[types.Prompt(name=CONTEXT_PROMPT, title="Memory context", description=CONTEXT_TEXT)]
        )

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != CONTEXT_PROMPT:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt; there is: {CONTEXT_PROMPT}")
        block = await self._context_block(context) or "There are no memories for this session yet."
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=block))
        return types.GetPromptResult(description=CONTEXT_TEXT, messages=[message])

    async def _context_block(self, context: Context) -> str:
        caller = await self._caller(context)
        try:
            return await self._in_worker(
                lambda: self.runtime.run(caller, lambda memory: memory.context_block() if memory.config.enabled else "")
            )
        except VaultmemError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from None

    async def _caller(self, context: Context) -> CallContext:
        folder = await self.roots.folder(context)
        return self._ambient if not folder else _in_folder(self._ambient, folder)

    async def _in_worker(self, action: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._worker, action)

    # -- life -------------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Start the first build a moment after the start."""
        await asyncio.sleep(PREPARE_AFTER_S)
        await self._in_worker(self.runtime.prepare)

    def leave(self, code: int = 0) -> NoReturn:
        """End the process: what runs may end within a moment; every write is safe to be cut off anywhere."""
        self.runtime.stop()
        try:
            fault = self._worker.submit(self.runtime.close).exception(END_WAIT_S)
        except (TimeoutError, RuntimeError) as error:  # busy, or no thread to be had: leaving must not fail
            fault = error
        if fault is not None:
            self.log.line("end", "not closed", type(fault).__name__)
        self.log.line("end", str(code))
        sys.stderr.flush()
        os._exit(code)  # threads that are busy, and the one that reads standard input, can't be ended otherwise


def _ambient_context(over_http: bool) -> CallContext:
    """Return the process's own context; over HTTP its working folder says nothing about a client."""
    found = context_from_environment()
    named = bool(environment_value("VAULTMEM_CWD"))
    return found if named or not over_http else _in_folder(found, "")


def _in_folder(context: CallContext, folder: str) -> CallContext:
    return replace(context, cwd=folder)


def _tool(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema(),
        output_schema=tool.output_schema(),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.writes,
            destructive_hint=tool.name == "memory_forget",
            idempotent_hint=tool.name != "memory_store",
            open_world_hint=False,
        ),
    )


def serve_stdio(home: str, *, read_only: bool) -> NoReturn:
    """Serve one client on standard input and output until the input ends; exit code 0."""
    from vaultmem.faces.mcp.stdio import serve

    silence_libraries()
    server = McpServer(home, read_only=read_only, over_http=False)
    server.log.line("start", "stdio", __version__)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, server.leave, 130 if number == signal.SIGINT else 0)
        preparing = asyncio.create_task(server.prepare())
        await serve(server.server)
        preparing.cancel()

    try:
        asyncio.run(main())
    except* OSError:  # the client has closed the pipe
        pass
    server.leave()


def serve_http(home: str, *, read_only: bool, port: int) -> None:
    """Serve clients on this machine at http://127.0.0.1:PORT/mcp until interrupted.

    Other names in Host and Origin are refused by the SDK (DNS rebinding).
    """
    import uvicorn

    silence_libraries()
    server = McpServer(home, read_only=read_only, over_http=True)
    server.log.line("start", "http", __version__)
    app = server.server.streamable_http_app(host="127.0.0.1")
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_config=None, access_log=False)

    async def main() -> None:
        listening = config.bind_socket()
        print(f"vaultmem: listening on http://127.0.0.1:{listening.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
        preparing = asyncio.create_task(server.prepare())
        await uvicorn.Server(config).serve(sockets=[listening])
        preparing.cancel()

    with suppress(KeyboardInterrupt):
        asyncio.run(main())
    server.leave()
