"""What several command groups share: opening the memory, filters, formats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from vaultmem.base.errors import UsageError
from vaultmem.faces.cli.output import note, progress

Format = Annotated[str, typer.Option("--format", help="table or json.")]
Scope = Annotated[str, typer.Option("--scope", help="session, project, global, agent or federated.")]
ScopeId = Annotated[str | None, typer.Option("--scope-id", help="Id of the project, agent or session.")]
All = Annotated[bool, typer.Option("--all", help="All projects, sessions and agents, not your own only.")]
NoSync = Annotated[bool, typer.Option("--no-sync", help="Don't compare the vault's files first.")]


@contextmanager
def opened(context: typer.Context) -> Iterator[Any]:
    """Open the memory of the global options; notices and warnings go to standard error at the end."""
    from vaultmem.memory import open_memory

    options = context.obj
    with progress() as work, open_memory(options.home, read_only=options.read_only, work=work) as memory:
        try:
            yield memory
        finally:
            for text in memory.notices:
                note(f"vaultmem: {text}")
            for text in memory.warnings:
                note(f"vaultmem: {text}")


def is_json(format_: str) -> bool:
    """Tell whether JSON is asked for. Raises UsageError for unknown formats."""
    if format_ not in ("table", "json"):
        raise UsageError(f'Unknown format "{format_}"', "Use table or json")
    return format_ == "json"


def note_filter(
    scope: str = "",
    scope_id: str | None = None,
    type_: str = "",
    tags: list[str] | None = None,
    paths: list[str] | None = None,
    where: list[str] | None = None,
    *,
    everyone: bool = False,
) -> Any:
    """Return the filter of a read command."""
    from vaultmem.access.filters import NoteFilter

    return NoteFilter(scope, scope_id, type_, tuple(tags or ()), tuple(paths or ()), tuple(where or ()), everyone)
