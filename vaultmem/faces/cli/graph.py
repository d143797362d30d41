"""graph show, graph export."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from vaultmem.base.errors import StoreRefused, UsageError
from vaultmem.faces.cli.common import Format, is_json, opened
from vaultmem.faces.cli.output import plural, print_json, print_line

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The graph of notes and its exports.")


@app.command()
def show(context: typer.Context, format_: Format = "table") -> None:
    """Show how many notes and relationships there are, and the notes with most of them."""
    as_json = is_json(format_)
    with opened(context) as memory:
        view = memory.graph()
    if as_json:
        print_json(view.as_json())
        return
    kinds = Counter(edge.type for edge in view.edges)
    print_line(
        f"{plural(len(view.nodes), 'note')}, "
        + (", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())) or "no edges")
    )
    degree = Counter(end for edge in view.edges for end in (edge.source, edge.target))
    paths = {node.id: node.path for node in view.nodes}
    for uid, number in sorted(degree.items(), key=lambda item: (-item[1], paths[item[0]]))[:10]:
        print_line(f"{number:5}  {paths[uid]}")


@app.command()
def export(
    context: typer.Context,
    to: Annotated[str, typer.Option("--to", help="obsidian or json.")],
    output: Annotated[str, typer.Option("-o", "--output", help="Folder (obsidian) or file (json).")],
    format_: Format = "table",
) -> None:
    """Write the graph as an Obsidian folder or a JSON file; the vault is only read."""
    as_json = is_json(format_)
    if to not in ("obsidian", "json"):
        raise UsageError(f'Unknown export "{to}"', "Use obsidian or json")
    with opened(context) as memory:
        if to == "obsidian":
            notes, changed = memory.export_graph(output)
        else:
            from vaultmem.graph.export import export_json

            view = memory.graph()
            notes, changed = len(view.nodes), 1
            _write_file(output, export_json(view), [vault.root for vault in memory.config.vaults])
    if as_json:
        print_json(
            {
                "schema": "vaultmem.export/1",
                "to": to,
                "output": os.path.abspath(output),
                "notes": notes,
                "changed": changed,
            }
        )
        return
    print_line(f"{plural(notes, 'note')} exported to {os.path.abspath(output)}")


def _write_file(output: str, text: str, forbidden: list[str]) -> None:
    real = os.path.realpath(output)
    for root in forbidden:
        if real.startswith(root + os.sep):
            raise StoreRefused(
                f"{output} lies in the vault {root}, which is never exported into", "Choose another file"
            )
    path = Path(real)
    path.parent.mkdir(parents=True, exist_ok=True)
    temp = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temp.write_text(text, encoding="utf-8", newline="\n")
    os.replace(temp, path)
