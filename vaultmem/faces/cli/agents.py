"""Commands for agents: the MCP server and its configuration."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Annotated

import typer

from vaultmem.base.errors import UsageError
from vaultmem.faces.cli.output import note


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(mcp)


def mcp(
    context: typer.Context,
    http: Annotated[bool, typer.Option("--http", help="Serve HTTP on this machine instead of stdio.")] = False,
    port: Annotated[int, typer.Option("--port", help="Port of --http; 0 takes a free one.")] = 8765,
    print_config: Annotated[
        str,
        typer.Option(
            "--print-config",
            metavar="CLIENT",
            help="Print a client's configuration: claude-code, claude-desktop, codex, kiro, cursor, vscode or bare.",
        ),
    ] = "",
) -> None:
    """Serve the memory to an agent's client (MCP) on standard input and output."""
    from vaultmem.settings.config import default_home

    options = context.obj
    if print_config:
        _print_config(print_config, options.home, options.read_only)
        return
    home = os.path.abspath(os.path.expanduser(options.home)) if options.home else default_home()
    if not 0 <= port <= 65535:
        raise UsageError(f"port is {port}", "Use 0 to 65535")
    from vaultmem.faces.mcp.server import serve_http, serve_stdio

    if http:
        serve_http(home, read_only=options.read_only, port=port)
    else:
        if sys.stdin.isatty():
            note("vaultmem: an MCP server speaks to a program, not to a person; see: vaultmem mcp --print-config bare")
        serve_stdio(home, read_only=options.read_only)


def _print_config(client: str, home: str | None, read_only: bool) -> None:
    from vaultmem.faces.mcp.clients import client_config
    from vaultmem.settings.config import environment_value

    named = home or environment_value("VAULTMEM_HOME")
    arguments = ["--home", os.path.abspath(os.path.expanduser(named))] if named else []
    arguments += ["--read-only"] if read_only else []
    place, text = client_config(client, command_path(), [*arguments, "mcp"])
    note(place)
    print(text)


def command_path() -> str:
    """Return the absolute path of the `vaultmem` that is running."""
    started = os.path.abspath(sys.argv[0])
    if os.path.basename(started).startswith("vaultmem") and os.access(started, os.X_OK):
        return started
    beside = os.path.join(os.path.dirname(sys.executable), "vaultmem")
    return beside if os.access(beside, os.X_OK) else shutil.which("vaultmem") or beside
