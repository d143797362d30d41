"""Copy-paste configuration of MCP clients, with the absolute path of this `vaultmem`.

Desktop programs start servers without a shell's PATH, so a bare command name is not found.
Forms: the clients' own documentation (addresses in docs/agents.md).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

from vaultmem.base.errors import UsageError

NAME = "vaultmem"


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a TOML basic string allows what a JSON string has


def _servers(command: str, arguments: list[str]) -> str:
    return json.dumps({"mcpServers": {NAME: {"command": command, "args": arguments}}}, indent=2, ensure_ascii=False)


def _claude_code(command: str, arguments: list[str]) -> str:
    return f"claude mcp add --scope user {NAME} -- {shlex.join([command, *arguments])}"


def _codex(command: str, arguments: list[str]) -> str:
    listed = ", ".join(_toml(argument) for argument in arguments)
    return f"[mcp_servers.{NAME}]\ncommand = {_toml(command)}\nargs = [{listed}]"


def _vscode(command: str, arguments: list[str]) -> str:
    server = {"type": "stdio", "command": command, "args": arguments}
    return json.dumps({"servers": {NAME: server}}, indent=2, ensure_ascii=False)


def _bare(command: str, arguments: list[str]) -> str:
    return shlex.join([command, *arguments])


CLIENTS: dict[str, tuple[str, Callable[[str, list[str]], str]]] = {
    "claude-code": ("Run this command:", _claude_code),
    "claude-desktop": ("Settings > Developer > Edit Config (claude_desktop_config.json):", _servers),
    "codex": ("~/.codex/config.toml:", _codex),
    "kiro": ("~/.kiro/settings/mcp.json (or .kiro/settings/mcp.json in a workspace):", _servers),
    "cursor": ("~/.cursor/mcp.json (or .cursor/mcp.json in a project):", _servers),
    "vscode": (".vscode/mcp.json in a workspace (or: MCP: Open User Configuration):", _vscode),
    "bare": ("Start this command and speak MCP on its standard input and output:", _bare),
}


def client_config(client: str, command: str, arguments: list[str]) -> tuple[str, str]:
    """Return where the text goes, and the text. Raises UsageError for an unknown client."""
    if client not in CLIENTS:
        raise UsageError(f'Unknown client "{client}"', f"Use one of: {', '.join(CLIENTS)}")
    place, make = CLIENTS[client]
    return place, make(command, arguments)
