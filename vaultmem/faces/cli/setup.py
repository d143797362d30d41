"""init, demo, config."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Annotated

import typer

from vaultmem.base.errors import UsageError
from vaultmem.faces.cli.common import Format, is_json, opened
from vaultmem.faces.cli.output import note, plural, print_json, print_line

config_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The settings file.")


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command()(init)
    app.command()(demo)
    app.command()(doctor)


def init(
    context: typer.Context,
    vault: Annotated[str, typer.Argument(help="Folder of your Obsidian vault.")] = "",
    folder: Annotated[str, typer.Option("--folder", help="Map this folder only (default: the whole vault).")] = "",
    scope: Annotated[str, typer.Option("--scope", help="Scope of the folder: global, project or agent.")] = "",
    scope_id: Annotated[str, typer.Option("--scope-id", help="Id of the project or agent.")] = "",
    managed: Annotated[str, typer.Option("--managed", help="Folder in the vault that takes writes.")] = "Agent Memory",
    no_projects: Annotated[bool, typer.Option("--no-projects", help="No sub-folder for each project.")] = False,
    native: Annotated[
        bool, typer.Option("--native", help="No vault: memories are topics in vaultmem's own folder.")
    ] = False,
    adopt_cao: Annotated[
        str, typer.Option("--adopt-cao", help="Use the memories of this CAO home in place; VAULT may be left out.")
    ] = "",
) -> None:
    """Set a vault up: writes config.toml (never over an existing entry) and reads the notes."""
    from vaultmem.settings.first_run import InitRequest, init_home

    home = _home(context)
    if native and vault:
        raise UsageError("--native sets up a home without a vault", "Run `vaultmem init --native`, later `init VAULT`")
    if adopt_cao:
        _adopt(context, home, adopt_cao)
        if not vault:
            return
    if native:
        _init_native(context, home)
        return
    if not vault:
        raise UsageError(
            "There is no vault to set up",
            "Write: vaultmem init PATH-OF-YOUR-VAULT, or without one: vaultmem init --native",
        )
    request = InitRequest(vault, folder, scope, scope_id, managed, not no_projects)
    result = init_home(home, request)
    if result.action == "differs":
        print_line(f"{result.path} has other settings for this vault; they are kept. What init would write:")
        print(result.text)
        print_line("Edit the file, then run: vaultmem config check")
        raise typer.Exit(3)
    print_line(f"settings {'kept' if result.action == 'unchanged' else 'written'}: {result.path}")
    if not result.is_obsidian:
        print_line("this folder has no .obsidian yet; vaultmem works on plain Markdown folders as well")
    with opened(context) as memory:
        status = memory.status()
    row = next(item for item in status["vaults"] if item["id"] == result.vault_id)
    _say_what_matters(row, managed, no_projects, context.obj.home)
    _tell_hidden(status["native"]["hidden"])


def _init_native(context: typer.Context, home: str) -> None:
    from vaultmem.settings.first_run import init_native

    result = init_native(home)
    print_line(f"settings {'kept' if result.action == 'unchanged' else 'written'}: {result.path}")
    with opened(context) as memory:
        topics = memory.status()["native"]["topics"]
        print_line(f"{plural(topics, 'topic')} searchable by agents")
        print_line(f"stores go to: {memory.config.memory_root}")
    print_line("a vault can be added at any time: vaultmem init PATH-OF-YOUR-VAULT")


def _adopt(context: typer.Context, home: str, folder: str) -> None:
    """Point the settings at a CAO home and take over what only its database knows."""
    from vaultmem.memories.adopt import check_cao_home
    from vaultmem.settings.editing import set_setting

    set_setting(home, "memory.adopted", check_cao_home(folder))
    with opened(context) as memory:
        found = memory.adopt()
    print_line(f"settings written: {os.path.join(home, 'config.toml')}")
    print_line(
        f"{plural(found.topics, 'topic')} used in place; taken over: {plural(found.counts, 'access count')}, "
        f"{plural(found.rejected, 'rejected relationship')}, {plural(found.aliases, 'other project id')}"
    )
    if found.problem:
        print_line(found.problem)
    _tell_hidden(found.hidden)
    print_line("both programs can go on writing; the first `vaultmem retention --apply` only reports")


def _tell_hidden(topics: int) -> None:
    if topics:
        print_line(f"{plural(topics, 'topic')} of scopes that a vault holds are not shown: the vault's notes are")


def _say_what_matters(row: dict[str, object], managed: str, no_projects: bool, home: str | None) -> None:
    notes, back = int(str(row["notes"])), int(str(row["quarantined"]))
    print_line(f"{plural(notes, 'note')} searchable by agents, {back} held back (vaultmem findings)")
    where = f"{managed}/" if no_projects else f"{managed}/projects/<project>/ (project memory) and {managed}/ (global)"
    print_line(f"stores go to: {where}; no other file of the vault is ever written")
    command = shutil.which("vaultmem") or os.path.abspath(sys.argv[0])
    options = f" --home {home}" if home else ""
    print_line(f'next: {command}{options} recall "some words of a note"')
    print_line(
        "text that agents recall is sent to their model's provider: keep folders out with `exclude` in the settings"
    )


def demo(
    keep: Annotated[
        str, typer.Option("--keep", help="Use and keep this empty folder instead of a temporary one.")
    ] = "",
) -> None:
    """Run the whole story on a sample vault in a temporary home."""
    from vaultmem.faces.cli.demo import run_demo

    run_demo(keep)


def doctor(
    context: typer.Context,
    full: Annotated[bool, typer.Option("--full", help="Compare all notes with their files, not a sample.")] = False,
    format_: Format = "table",
) -> None:
    """Run every check at once; exit 3 when something needs attention."""
    from vaultmem.health.doctor import doctor as run_checks

    as_json = is_json(format_)
    checks = run_checks(context.obj.home, full=full)
    if as_json:
        rows = [{"check": c.name, "ok": c.ok, "message": c.message, "fix": c.fix} for c in checks]
        print_json({"schema": "vaultmem.doctor/1", "ok": all(c.ok for c in checks), "checks": rows})
    else:
        for check in checks:
            print_line(f"{'ok  ' if check.ok else 'FIX '} {check.name}: {check.message}")
            if check.fix:
                print_line(f"     {check.fix}")
    if not all(check.ok for check in checks):
        raise typer.Exit(3)


def _home(context: typer.Context) -> str:
    from vaultmem.settings.config import default_home

    home = context.obj.home
    return os.path.abspath(os.path.expanduser(home)) if home else default_home()


@config_app.command("path")
def config_path(context: typer.Context) -> None:
    """Print the path of config.toml."""
    from vaultmem.settings.config import CONFIG_NAME

    print_line(os.path.join(_home(context), CONFIG_NAME))


@config_app.command("get")
def config_get(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A setting, such as memory.enabled or vault.ID.exclude.")],
) -> None:
    """Print one setting as JSON."""
    from vaultmem.settings.editing import get_setting

    print_json(get_setting(_home(context), name))


@config_app.command("set")
def config_set(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A setting, such as memory.enabled or vault.ID.exclude.")],
    value: Annotated[str, typer.Argument(help="A TOML value, or a text.")],
) -> None:
    """Change one setting; comments stay, and a result that would not be valid is not written."""
    from vaultmem.settings.editing import set_setting

    if context.obj.read_only:
        raise UsageError("Nothing is written in read-only mode")
    set_setting(_home(context), name, value)
    print_line(f"{name} is set; notes are read again where that matters at the next command")


@config_app.command("check")
def config_check(context: typer.Context, format_: Format = "table") -> None:
    """Check config.toml and name every problem with its place."""
    from vaultmem.base.errors import ConfigError
    from vaultmem.settings.config import load_config

    as_json = is_json(format_)
    try:
        config = load_config(context.obj.home)
    except ConfigError as error:
        if as_json:
            print_json({"schema": "vaultmem.config/1", "path": error.path, "problems": list(error.problems)})
            raise typer.Exit(1) from None
        raise
    if as_json:
        print_json({"schema": "vaultmem.config/1", "path": config.path, "problems": []})
        return
    config.require_vault()
    print_line(f"{config.path}: no problem, {plural(len(config.vaults), 'vault')}")
    for vault in config.vaults:
        if not os.path.isdir(vault.root):
            note(f"vaultmem: {vault.id}: {vault.root} is not there now")
