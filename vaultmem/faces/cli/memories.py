"""store, delete, restore, clear, retention, repair: the commands that change memories."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from vaultmem.base.errors import UsageError
from vaultmem.faces.cli.common import Format, ScopeId, is_json, opened
from vaultmem.faces.cli.output import note, print_json, print_line

Key = Annotated[str, typer.Argument(metavar="KEY", help="The memory's key.")]
InScope = Annotated[str, typer.Option("--scope", help="session, project, global, agent or federated.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]
Apply = Annotated[bool, typer.Option("--apply", help="Do it; without this only say what would be done.")]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    for command in (store, delete, restore, clear, retention, repair):
        app.command()(command)


def store(
    context: typer.Context,
    content: Annotated[str, typer.Argument(help='The text; "-" reads standard input.')],
    key: Annotated[str, typer.Option("--key", help="Key of the memory (default: from the text).")] = "",
    scope: Annotated[str, typer.Option("--scope", help="Where it belongs.")] = "project",
    scope_id: ScopeId = None,
    type_: Annotated[str | None, typer.Option("--type", help="project, user, feedback or reference.")] = None,
    tags: Annotated[str, typer.Option("--tags", help="Comma-separated tags.")] = "",
    format_: Format = "table",
) -> None:
    """Store a text, as a new note or topic or as a new section of one."""
    from vaultmem.memories.store import StoreRequest

    as_json = is_json(format_)
    text = _standard_input() if content == "-" else content
    request = StoreRequest(text, key, scope, scope_id, type_, tuple(t for t in tags.split(",") if t.strip()))
    with opened(context) as memory:
        result = memory.store(request)
    for warning in result.warnings:
        note(f"vaultmem: {warning}")
    _print_result(result, as_json)


def _standard_input() -> str:
    data = sys.stdin.buffer.read(1 << 20)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("Standard input is not UTF-8 text") from None


def _print_result(result: Any, as_json: bool) -> None:
    if as_json:
        print_json({"schema": "vaultmem.write/1", **_row(result)})
        return
    where = f" in {result.path}" if result.path else ""
    print_line(f"{result.action}: {result.key}{where}")


def _row(result: Any) -> dict[str, Any]:
    return {
        "action": result.action,
        "key": result.key,
        "scope": result.scope,
        "scope_id": result.scope_id,
        "source_kind": result.source_kind,
        "path": result.path,
        "vault": "" if result.source_kind == "native" else result.vault,
        "warnings": list(result.warnings),
        "similar": list(result.similar),
    }


def delete(
    context: typer.Context,
    key: Key,
    scope: InScope = "project",
    scope_id: ScopeId = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Erase a topic for good, its copies in the trash too.")
    ] = False,
    yes: Yes = False,
    format_: Format = "table",
) -> None:
    """Forget a memory: a topic goes to the trash; a note of a vault stays and leaves every view."""
    from vaultmem.memories.forget import ForgetRequest

    as_json = is_json(format_)
    with opened(context) as memory:
        if not dry_run and not yes:
            planned = memory.forget(ForgetRequest(key, scope, scope_id, dry_run=True))
            if planned.action != "absent":
                _ask(f"{planned.path}: {planned.action}?")
        result = memory.forget(ForgetRequest(key, scope, scope_id, dry_run, purge))
    _print_result(result, as_json)
    if result.action == "absent":
        note("vaultmem: there is no such memory in this scope")


def _ask(question: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError("This needs a yes, and there is no terminal to ask", "Add --yes, or --dry-run to look first")
    typer.confirm(question, abort=True)


def restore(
    context: typer.Context,
    key: Key,
    scope: InScope = "project",
    scope_id: ScopeId = None,
    format_: Format = "table",
) -> None:
    """Bring a forgotten memory back."""
    as_json = is_json(format_)
    with opened(context) as memory:
        result = memory.restore(key, scope, scope_id)
    _print_result(result, as_json)


def clear(
    context: typer.Context,
    scope: Annotated[str, typer.Option("--scope", help="Whose memories to forget.")],
    scope_id: ScopeId = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it; without this only say what would be done.")] = False,
    format_: Format = "table",
) -> None:
    """Forget all topics and managed notes of a scope; notes that people wrote stay as they are."""
    as_json = is_json(format_)
    with opened(context) as memory:
        found = memory.clear(scope, scope_id, dry_run=not yes)
    if as_json:
        rows = [_row(result) for result in found.results]
        print_json({"schema": "vaultmem.clear/1", "applied": yes, "results": rows, "left_alone": found.left_alone})
        return
    for result in found.results:
        print_line(f"{'' if yes else 'would be '}{result.action}: {result.key} in {result.path}")
    print_line(f"{len(found.results)} memories; {found.left_alone} notes of people left alone")
    if not yes and found.results:
        print_line("nothing was done; add --yes")


def retention(context: typer.Context, apply: Apply = False, format_: Format = "table") -> None:
    """Move old topics to the trash: session after 14 days, project after 90; user, feedback and vault notes never."""
    as_json = is_json(format_)
    with opened(context) as memory:
        found = memory.retention(apply=apply)
    if as_json:
        print_json(found)
        return
    for row in found["expired"]:
        print_line(f"{row['scope']}/{row['scope_id']}  {row['key']}  {row['age_days']} days  {row['path']}")
    if not found["expired"]:
        print_line("nothing is old enough")
    elif not found["applied"]:
        print_line(found["why_not"])
    else:
        print_line(f"{len(found['expired'])} topics moved to the trash; vaultmem restore KEY brings one back")


def repair(context: typer.Context, apply: Apply = False, format_: Format = "table") -> None:
    """Make the wiki's index.md files and the index agree with the topic files; no topic's text is changed."""
    as_json = is_json(format_)
    with opened(context) as memory:
        found = memory.repair(apply=apply)
    if as_json:
        print_json(found)
    else:
        counts = " ".join(f"{name}={found[name]}" for name in ("total", "repaired", "unchanged", "skipped", "failed"))
        print_line(f"memory_repair mode={'apply' if apply else 'dry-run'} {counts}")
        for row in found["actions"]:
            identity = f"{row['scope']}:{row['scope_id'] or '-'}:{row['key']}"
            print_line(f"{row['status']} {identity} [{row['action']}]: {row['message']}")
    if found["skipped"] or found["failed"]:
        raise typer.Exit(1)
