"""scan, reconcile, rebuild, status, findings."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from vaultmem.base.errors import UsageError
from vaultmem.faces.cli.common import Format, NoSync, is_json, opened
from vaultmem.faces.cli.output import note, plural, print_json, print_line


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command()(scan)
    app.command()(reconcile)
    app.command()(rebuild)
    app.command()(status)
    app.command()(findings)


def scan(context: typer.Context, format_: Format = "table") -> None:
    """Show what a walk of the vaults sees, without opening a note."""
    as_json = is_json(format_)
    with opened(context) as memory:
        found = memory.scan()
    if as_json:
        print_json(found)
        return
    for vault in found["vaults"]:
        print_line(f"{vault['id']}  {vault['root']}")
        if not vault["reachable"]:
            print_line("  the folder can't be opened")
        for binding, number in vault["notes"].items():
            print_line(f"  {plural(number, 'note')} in {binding}")
        for reason, number in vault["excluded"].items():
            print_line(f"  {plural(number, 'note')} left out: {reason}")
        for row in vault["findings"]:
            print_line(f"  {row['severity']}  {row['code']}  {row['path']}  {row['message']}")


def reconcile(
    context: typer.Context,
    paths: Annotated[list[str] | None, typer.Argument(help="Only these files or folders.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be done.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 3 when there are errors or held notes.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Read every note again, whatever its times say.")] = False,
    accept_removals: Annotated[
        bool, typer.Option("--accept-removals", help="Notes that are missing are meant to be gone.")
    ] = False,
    format_: Format = "table",
) -> None:
    """Make the index equal to the vault's files."""
    as_json = is_json(format_)
    with opened(context) as memory:
        only = _only(memory.config, paths or [])
        result = memory.reconcile(dry_run=dry_run, full=full, accept_removals=accept_removals, only=only)
    if as_json:
        print_json(result_json(result, dry_run))
    else:
        _print_result(result, dry_run)
    if strict and (result.findings["error"] or result.held or result.quarantined):
        raise typer.Exit(3)


def _only(config: Any, paths: list[str]) -> dict[str, list[str]] | None:
    """Turn paths (absolute, relative to here, or to a vault) into vault-relative ones."""
    if not paths:
        return None
    only: dict[str, list[str]] = {}
    for path in paths:
        place = _place_in_vault(config, path)
        if place is None:
            raise UsageError(f"{path} is in no configured vault", "Give a path inside a vault (vaultmem status)")
        if place[1] == "":
            return None
        only.setdefault(place[0], []).append(place[1])
    return only


def _place_in_vault(config: Any, path: str) -> tuple[str, str] | None:
    import unicodedata

    absolute = os.path.abspath(path)
    for vault in config.vaults:
        for root in (vault.root, vault.configured_root):
            if absolute == root or absolute.startswith(root.rstrip(os.sep) + os.sep):
                return vault.id, unicodedata.normalize("NFC", os.path.relpath(absolute, root)).removeprefix(".")
    clean = os.path.normpath(path)
    if not os.path.isabs(path) and not clean.startswith(".."):
        for vault in config.vaults:
            if os.path.lexists(os.path.join(vault.root, clean)) or len(config.vaults) == 1:
                return vault.id, unicodedata.normalize("NFC", clean).removeprefix(".")
    return None


def result_json(result: Any, dry_run: bool) -> dict[str, Any]:
    """Return a run as `vaultmem.reconcile/1`."""
    names = (
        "generation",
        "scanned",
        "unchanged",
        "added",
        "changed",
        "moved",
        "removed",
        "held",
        "quarantined",
        "links",
        "edges",
        "findings",
        "seconds",
    )
    found: dict[str, Any] = {"schema": "vaultmem.reconcile/1", **{name: getattr(result, name) for name in names}}
    if dry_run:
        found["operations"] = result.operations
        found["applied"] = False
    return found


def _print_result(result: Any, dry_run: bool) -> None:
    if dry_run:
        for row in result.operations:
            extra = (
                f"  (from {row['from']})"
                if "from" in row
                else f"  ({row['quarantine']})"
                if row.get("quarantine")
                else ""
            )
            print_line(f"{row['op']:10} {row['path']}{extra}")
        print_line(f"{plural(len(result.operations), 'operation')}; nothing was changed (dry run)")
        return
    print_line(
        f"{result.scanned} files: {result.added} added, {result.changed} changed, {result.moved} moved, "
        f"{result.removed} removed, {result.unchanged} unchanged; {result.links} links, {result.edges} relationships "
        f"({result.seconds:.2f} s)"
    )
    if result.held:
        for item in result.held_mappings:
            note(f"vaultmem: {item.vault}: {item.message}. If that was meant: vaultmem reconcile --accept-removals")
    counts = result.findings
    if counts["error"] or counts["warn"] or result.quarantined:
        print_line(
            f"{plural(result.quarantined, 'note')} held back, {plural(counts['error'], 'error')}, "
            f"{plural(counts['warn'], 'warning')}: vaultmem findings"
        )


def rebuild(
    context: typer.Context,
    verify: Annotated[bool, typer.Option("--verify", help="Only compare the index with a fresh one.")] = False,
    format_: Format = "table",
) -> None:
    """Build the index anew from the notes, or check that it is what a fresh one would be."""
    as_json = is_json(format_)
    with opened(context) as memory:
        result = memory.rebuild(verify=verify)
    if as_json:
        print_json(
            {
                "schema": "vaultmem.rebuild/1",
                "verified": result.verified,
                "identical": not result.differences,
                "index_digest": result.digest,
                "differences": result.differences,
                "kept_old": result.kept_old,
            }
        )
    elif verify and not result.differences:
        print_line("identical: the index is what a fresh one would be")
    elif result.kept_old:
        print_line(result.kept_old)
    elif not verify:
        print_line(
            f"rebuilt: {plural(result.reconciled.scanned, 'file')}, {result.reconciled.links} links "
            f"({result.reconciled.seconds:.2f} s)"
        )
    if result.differences and not as_json:
        for text in result.differences:
            print_line(text)
        note("vaultmem: the index differs from a fresh one. Run: vaultmem rebuild")
    if result.differences:
        raise typer.Exit(1)
    if result.kept_old:
        raise typer.Exit(3)


def status(context: typer.Context, format_: Format = "table") -> None:
    """Show how the vaults and the index stand."""
    as_json = is_json(format_)
    with opened(context) as memory:
        found = memory.status()
    if as_json:
        print_json(found)
        return
    print_line(f"home     {found['home']}")
    print_line(f"engine   {found['engine']}   digest {found['index_digest'][:16]}")
    watching = found["watch"]
    if watching["holder"]:
        why = f": {watching['reason']}" if watching["reason"] else ""
        print_line(f"watched  by process {watching['holder']}, {watching['mode']}{why}")
    for vault in found["vaults"]:
        print_line(f"vault    {vault['id']}  {vault['root']}")
        print_line(
            f"         {plural(vault['notes'], 'note')} searchable, {vault['quarantined']} held back, "
            f"{vault['held']} missing but kept"
        )
        print_line(f"         {plural(vault['links'], 'link')}, {vault['dangling']} lead nowhere")
        for reason, number in sorted(vault["excluded"].items()):
            print_line(f"         {plural(number, 'note')} left out: {reason}")
    wiki = found["native"]
    if wiki["topics"] or wiki["hidden"] or not found["vaults"]:
        hidden = f", {wiki['hidden']} of scopes that a vault holds" if wiki["hidden"] else ""
        print_line(f"wiki     {plural(wiki['topics'], 'topic')} searchable{hidden}")
    counts = found["findings"]
    print_line(
        f"findings {plural(counts['error'], 'error')}, {plural(counts['warn'], 'warning')}, {counts['info']} notices"
        " (vaultmem findings)"
    )


def findings(
    context: typer.Context,
    code: Annotated[str, typer.Option("--code", help="Only this code.")] = "",
    severity: Annotated[str, typer.Option("--severity", help="error, warn or info.")] = "",
    no_sync: NoSync = False,
    format_: Format = "table",
) -> None:
    """Show what is wrong with which note, and what to do about it."""
    as_json = is_json(format_)
    with opened(context) as memory:
        rows = memory.findings(code, severity, sweep=not no_sync)
    if as_json:
        print_json(
            {
                "schema": "vaultmem.findings/1",
                "findings": [
                    {
                        "code": r.finding.code,
                        "severity": r.finding.severity,
                        "vault": r.finding.vault,
                        "path": r.finding.path,
                        "line": r.finding.line,
                        "message": r.finding.message,
                        "next_step": r.next_step,
                        "at": r.at,
                    }
                    for r in rows
                ],
            }
        )
        return
    if not rows:
        print_line("nothing to report")
    for row in rows:
        item = row.finding
        place = f"{item.path or item.vault}{':' + str(item.line) if item.line else ''}"
        when = f" [{row.at}]" if row.at else ""
        print_line(f"{item.severity:5} {item.code}{when}  {place}: {item.message}")
        print_line(f"      {row.next_step}")
