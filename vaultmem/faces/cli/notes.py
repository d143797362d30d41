"""recall, list, show, links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from vaultmem.base.errors import UsageError
from vaultmem.faces.cli.common import All, Format, NoSync, Scope, ScopeId, is_json, note_filter, opened
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
    sort: Annotated[str, typer.Option("--sort", help="relevance, recency, score or usage.")] = "",
    max_chars: Annotated[int, typer.Option("--max-chars", help="Budget for all contents together (0: none).")] = 0,
    related: Annotated[bool, typer.Option("--related", help="Add what the hits relate to.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each hit is where it is.")] = False,
    all_: All = False,
    no_sync: NoSync = False,
    format_: Format = "table",
) -> None:
    """Find notes by their words."""
    from vaultmem.recall.hits import hit_json
    from vaultmem.recall.recall import RecallRequest

    as_json = is_json(format_)
    wanted = note_filter(scope, scope_id, type_, tag, path, where, everyone=all_)
    request = RecallRequest(query, wanted, limit, mode, sort, max_chars, include_related=related, explain=explain)
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
    _print_hits(found.hits)
    if not found.hits:
        print_line("no note matches" if query.strip() else "there is no note yet")
        if not all_ and scope_id is None:
            note("vaultmem: only your own project, session and agent were looked at; --all looks at all of them")
    elif found.truncated:
        print_line(f"{len(found.hits)} of {found.total} (--limit)")


def _print_hits(hits: Sequence[Any]) -> None:
    for position, hit in enumerate(hits, 1):
        mark = " (some of the words)" if hit.partial else " (related)" if hit.related else ""
        old = f" (superseded by {', '.join(hit.superseded_by)})" if hit.superseded_by else ""
        print_line(f"{position}. {hit.title}{mark}{old}")
        print_line(f"   {hit.path}   {_place(hit)}   {hit.key}")
        print_line(f"   {hit.snippet}")
        if hit.explain:
            _print_reasons(hit)


def _print_reasons(hit: Any) -> None:
    why = hit.explain
    old = ", superseded" if why["superseded"] else ""
    print_line(f"   score {hit.score:.4f}: {why['tier']}, words {why['lexical']}, age factor {why['age_factor']}{old}")
    for term in why["terms"]:
        print_line(f"   {term['word']}: {', '.join(term['places']) or 'not in the text'}")


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
    all_: Annotated[bool, typer.Option("--all", help="All notes, of all projects, sessions and agents.")] = False,
    query: Annotated[str | None, typer.Option("--query", help="With --explain: the query to explain.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Compare the order by time with that by relevance.")
    ] = False,
    no_sync: NoSync = False,
    format_: Format = "table",
) -> None:
    """List notes, newest first; with --query and --explain: say how recall would order them."""
    from vaultmem.recall.hits import hit_json

    if explain or query is not None:
        _explain(context, query, explain, note_filter(scope, scope_id, type_, everyone=all_), limit, format_)
        return
    as_json = is_json(format_)
    with opened(context) as memory:
        found = memory.list(
            note_filter(scope, scope_id, type_, tag, path, where, everyone=all_),
            0 if all_ else limit,
            sweep=not no_sync,
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


def _explain(context: typer.Context, query: str | None, explain: bool, wanted: Any, limit: int, format_: str) -> None:
    if query is None or not explain:
        raise UsageError("--query and --explain go together", 'Write: vaultmem list --query "your words" --explain')
    as_json = is_json(format_)
    limit = limit if _is_given(context, "limit") else 10
    with opened(context) as memory:
        found = memory.explain(query, wanted, limit)
    if as_json:
        print_json(found)
        return
    rows = [
        (
            one["relevance_rank"] or "-",
            one["recency_rank"] or "-",
            one["tier"],
            one["lexical"],
            one["recency_factor"],
            one["relevance"],
            one["injection"],
            one["key"] + (" (superseded)" if one["superseded"] else ""),
        )
        for one in found["candidates"]
    ]
    print_table(("RELEVANCE", "TIME", "TIER", "LEXICAL", "AGE", "SCORE", "INJECTION", "KEY"), rows)
    print_line(
        f"{found['pool']} in the pool, {found['all_term']} with all words, {found['partial']} with some; "
        f"overlap {found['overlap']}; lexical_degenerate {str(found['lexical_degenerate']).lower()}"
    )


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def show(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="KEY", help="A key, or a path in the vault.")],
    scope: Scope = "",
    scope_id: ScopeId = None,
    no_sync: NoSync = False,
    format_: Format = "table",
) -> None:
    """Show one whole note."""
    from vaultmem.recall.hits import hit_json

    as_json = is_json(format_)
    with opened(context) as memory:
        found = memory.show(name, note_filter(scope, scope_id, everyone=True), sweep=not no_sync)
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
        found = memory.links(name, note_filter(scope, scope_id, everyone=True), sweep=not no_sync)
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
