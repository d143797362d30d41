"""debug parse, debug resolve: how notes are read; no configuration is needed."""

from __future__ import annotations

from typing import Annotated

import typer

from vaultmem.faces.cli.common import is_json
from vaultmem.faces.cli.output import print_json, print_line

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="How notes are read (no configuration needed).")
JsonFormat = Annotated[str, typer.Option("--format", help="json or table.")]


@app.command()
def parse(file: Annotated[str, typer.Argument(help="A note.")], format_: JsonFormat = "json") -> None:
    """Show what is read out of one note."""
    from vaultmem.health.debug import debug_parse

    as_json = is_json(format_)
    found = debug_parse(file)
    if as_json:
        print_json(found)
        return
    print_line(f"title     {found['title']}")
    print_line(f"tags      {', '.join(found['tags'])}")
    print_line(f"aliases   {', '.join(found['aliases'])}")
    for heading in found["headings"]:
        print_line(f"heading   line {heading['line']}: {'#' * heading['level']} {heading['text']}")
    for link in found["links"]:
        print_line(f"link      line {link['line']}: {link['raw']}")
    for item in found["findings"]:
        print_line(f"{item['severity']:9} line {item['line']}: {item['code']}: {item['message']}")


@app.command()
def resolve(
    folder: Annotated[str, typer.Argument(help="A folder, taken as one vault.")], format_: JsonFormat = "json"
) -> None:
    """Show where the links of a folder's notes lead."""
    from vaultmem.health.debug import debug_resolve

    as_json = is_json(format_)
    found = debug_resolve(folder)
    if as_json:
        print_json(found)
        return
    for path, rows in found["notes"].items():
        for row in rows:
            print_line(f"{path}  {row['raw']}  {row['state']}  {row['target'] or ''}")
