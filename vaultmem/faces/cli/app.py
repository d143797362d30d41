"""The `vaultmem` command: global options, exit codes, and the one outermost error frame.

Exit codes: 0 done; 1 could not; 2 usage; 3 done, but something needs attention; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

import typer

from vaultmem import __version__
from vaultmem.base.errors import VaultmemError
from vaultmem.faces.cli import agents, debug, graph, memories, notes, setup, sync, watching

app = typer.Typer(
    name="vaultmem",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="An Obsidian vault as the memory of people and their AI agents.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@dataclass(slots=True)
class Globals:
    """Options that stand before the command."""

    home: str | None = None
    read_only: bool = False


def _version(value: bool) -> None:
    if value:
        print(f"vaultmem {__version__}")
        raise typer.Exit


@app.callback()
def global_options(
    context: typer.Context,
    home: Annotated[str | None, typer.Option(help="Folder of settings and index (default: VAULTMEM_HOME).")] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every command that writes notes.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """An Obsidian vault as the memory of people and their AI agents."""
    context.obj = Globals(home, read_only)


for group in (setup, sync, watching, notes, memories, agents):
    group.register(app)
app.add_typer(graph.app, name="graph")
app.add_typer(debug.app, name="debug", hidden=False)
app.add_typer(setup.config_app, name="config")


_UTF8 = ("-X", "utf8")


def _start_over_in_utf8() -> None:
    """Give way to a process in Python's UTF-8 mode where the locale makes names and arguments unreadable (PEP 540)."""
    if sys.getfilesystemencoding() == "utf-8" or not sys.executable or tuple(sys.orig_argv[1:3]) == _UTF8:
        return
    from vaultmem.settings.config import utf8_environment

    with suppress(OSError):  # then the settings say what is wrong
        os.execve(sys.executable, [sys.executable, *_UTF8, *sys.orig_argv[1:]], utf8_environment())


def main() -> None:
    """Run the command line and exit; no traceback reaches a user."""
    _start_over_in_utf8()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        status = app(standalone_mode=False)
        sys.stdout.flush()
        code = status if isinstance(status, int) else 0
    except VaultmemError as error:
        print(f"vaultmem: {error}".encode("utf-8", "backslashreplace").decode(), file=sys.stderr)
        code = error.exit_code
    except typer.Abort:
        print("vaultmem: stopped; nothing was changed", file=sys.stderr)
        code = 1
    except KeyboardInterrupt:
        print("vaultmem: interrupted; the index is consistent, run the command again to complete it", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:  # noqa: BLE001  the outermost frame: a bug becomes one line, not a traceback
        code = _unexpected(error)
    sys.exit(code)


def _unexpected(error: Exception) -> int:
    show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
    if isinstance(code, int):  # typer's own errors (usage, exit), whichever click it carries
        if callable(show):
            show()
        return code
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        print(f"vaultmem: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    if os.environ.get("VAULTMEM_DEBUG"):
        raise error
    print(
        f"vaultmem: an unexpected {type(error).__name__} (this is a bug). "
        "Run it again with VAULTMEM_DEBUG=1 and report what it prints",
        file=sys.stderr,
    )
    return 1
