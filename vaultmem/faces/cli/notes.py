"""recall, list, show, links, store."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from vaultmem.errors import UsageError
from vaultmem.faces.cli.common import Format, NoSync, Scope, ScopeId, is_json, note_filter, opened
from vaultmem.faces.cli.output import note, print_json, print_line, print_table, safe_block

Type = Annotated[str, typer.Option("--type", help="project, user, feedback or reference.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag; its sub-tags count too. May be repeated.")]
Paths = Annotated[list[str] | None, typer.Option("--path", help="A folder, a note or a glob. May be repeated.")]
Where = Annotated[list[str] | None, typer.Option("--where", help="property=value. May be repeated.")]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command()(recall)
    app.command("list")(list_)
    app.command()(show)
    app.command()(links)
    app.command()(store)


def recall(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help='Any text; "a quoted part" is a phrase.')] = "",
    scope: Scope = "",
    scope_id: ScopeId = None,
    type_: Type = "",
    tag: Tags = None,
    path: Paths = None,
    where: Where = None,
    limit: Annotated[int, typer.Option("--limit", help="1 to 100 hits.")] = 10,
    mode: Annotated[str, typer.Option("--mode", help="hybrid, bm25 or metadata.")] = "hybrid",
    sort: Annotated[str, typer.Option("--sort", help="relevance or recency.")] = "",
    max_chars: Annotated[int, typer.Option("--max-chars", help="Budget for all contents together (0: none).")] = 0,
    no_sync: NoSync = False,
    format_: Format = "table",
) -> None:
    """Find notes by their words."""
    from vaultmem.ops.hits import hit_json
    from vaultmem.ops.recall import RecallRequest

    as_json = is_json(format_)
    wanted = note_filter(scope, scope_id, type_, tag, path, where)
    request = RecallRequest(query, wanted, limit, mode, sort, max_chars)
    with opened(context) as memory:
        found = memory.recall(request, sweep=not no_sync)
    if as_json:
        print_json(
            {
                "schema": "vaultmem.recall/1",
                "query": found.query,
                "mode": found.mode,
                "sort": found.sort,
                "engine": found.engine,
                "total": found.total,
                "truncated": found.truncated,
                "warnings": list(found.warnings),
                "hits": [hit_json(hit) for hit in found.hits],
            }
        )
        return
    for position, hit in enumerate(found.hits, 1):
        mark = " (some of the words)" if hit.partial else ""
        old = f" (superseded by {', '.join(hit.superseded_by)})" if hit.superseded_by else ""
        print_line(f"{position}. {hit.title}{mark}{old}")
        print_line(f"   {hit.path}   {_place(hit)}   {hit.key}")
        print_line(f"   {hit.snippet}")
    shown = len(found.hits)
    if not shown:
        print_line("no note matches" if query.strip() else "there is no note yet")
    elif found.truncated:
        print_line(f"{shown} of {found.total} (--limit)")


def _place(hit: Any) -> str:
    return f"{hit.scope}{'/' + hit.scope_id if hit.scope_id else ''}"


def list_(
    context: typer.Context,
    scope: Scope = "",
    scope_id: ScopeId = None,
    type_: Type = "",
    tag: Tags = None,
    path: Paths = None,
    where: Where = None,
    limit: Annotated[int, typer.Option("--limit", help="How many (0: all).")] = 20,
    all_: Annotated[bool, typer.Option("--all", help="All notes.")] = False,
    no_sync: NoSync = False,
    format_: Format = "table",
) -> None:
    """List notes, newest first."""
    from vaultmem.ops.hits import hit_json

    as_json = is_json(format_)
    with opened(context) as memory:
        found = memory.list(
            note_filter(scope, scope_id, type_, tag, path, where), 0 if all_ else limit, sweep=not no_sync
        )
    if as_json:
        print_json(
            {
                "schema": "vaultmem.list/1",
                "total": found.total,
                "truncated": found.truncated,
                "warnings": list(found.warnings),
                "hits": [hit_json(hit, with_score=False) for hit in found.hits],
            }
        )
        return
    if not found.hits:
        print_line("no note")
        return
    print_table(
        ("UPDATED", "SCOPE", "KEY", "PATH"),
        [(hit.updated_at[:10], _place(hit), hit.key, hit.path) for hit in found.hits],
    )
    if found.truncated:
        print_line(f"{len(found.hits)} of {found.total} (--all)")


def show(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="KEY", help="A key, or a path in the vault.")],
    scope: Scope = "",
    scope_id: ScopeId = None,
    no_sync: NoSync = False,
    format_: Format = "table",
) -> None:
    """Show one whole note."""
    from vaultmem.ops.hits import hit_json

    as_json = is_json(format_)
    with opened(context) as memory:
        found = memory.show(name, note_filter(scope, scope_id), sweep=not no_sync)
    if as_json:
        row = {"schema": "vaultmem.show/1", **hit_json(found.hit, with_score=False)}
        row["findings"] = [
            {"code": f.code, "severity": f.severity, "line": f.line, "message": f.message} for f in found.findings
        ]
        print_json(row)
        return
    hit = found.hit
    print_line(hit.title)
    print_line(f"{hit.path}   {_place(hit)}   {hit.key}   {hit.type}   updated {hit.updated_at}")
    if hit.tags:
        print_line("tags: " + ", ".join(hit.tags))
    if hit.superseded_by:
        print_line("superseded by: " + ", ".join(hit.superseded_by))
    if hit.contradicts:
        print_line("contradicts: " + ", ".join(hit.contradicts))
    print_line()
    print(safe_block(hit.content))
    for item in found.findings:
        note(f"{item.severity}: line {item.line}: {item.message}")


def links(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="KEY", help="A key, or a path in the vault.")],
    scope: Scope = "",
    scope_id: ScopeId = None,
    no_sync: NoSync = False,
    format_: Format = "table",
) -> None:
    """Show where a note's links lead, and which notes link to it."""
    as_json = is_json(format_)
    with opened(context) as memory:
        found = memory.links(name, note_filter(scope, scope_id), sweep=not no_sync)
    if as_json:
        print_json(
            {
                "schema": "vaultmem.links/1",
                "key": found.key,
                "path": found.path,
                "outgoing": list(found.outgoing),
                "incoming": list(found.incoming),
            }
        )
        return
    for row in found.outgoing:
        target = row["target_path"] or ("(not shown)" if row["state"] == "excluded" else "(nowhere)")
        missing = "  (no such heading or block)" if row["subpath_missing"] else ""
        print_line(f"-> {row['raw']}  {row['state']}  {target}{row['subpath']}  line {row['line']}{missing}")
    for row in found.incoming:
        print_line(f"<- {row['source_path']}  {row['raw']}  line {row['line']}")
    if not found.outgoing and not found.incoming:
        print_line("no links")


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
    """Store a text in the managed folder, as a new note or as a new section of one."""
    from vaultmem.ops.store import StoreRequest

    as_json = is_json(format_)
    text = _standard_input() if content == "-" else content
    request = StoreRequest(text, key, scope, scope_id, type_, tuple(t for t in tags.split(",") if t.strip()))
    with opened(context) as memory:
        result = memory.store(request)
    for warning in result.warnings:
        note(f"vaultmem: {warning}")
    if as_json:
        print_json(
            {
                "schema": "vaultmem.write/1",
                "action": result.action,
                "key": result.key,
                "scope": result.scope,
                "scope_id": result.scope_id,
                "source_kind": result.source_kind,
                "path": result.path,
                "vault": result.vault,
                "warnings": list(result.warnings),
            }
        )
        return
    print_line(f"{result.action}: {result.key} in {result.path}")


def _standard_input() -> str:
    data = sys.stdin.buffer.read(1 << 20)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("Standard input is not UTF-8 text") from None
