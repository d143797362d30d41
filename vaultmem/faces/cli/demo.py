"""The demo: the whole story on the packaged sample vault, in a folder of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib import resources
from pathlib import Path

from vaultmem.base.errors import UsageError
from vaultmem.faces.cli.output import plural, print_line


def run_demo(keep: str) -> None:
    """Copy the sample vault, reconcile, recall, store, recall again, export; say each step."""
    if keep:
        folder = Path(keep).expanduser().absolute()
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{keep} is not an empty folder", "Give a new folder with --keep")
        folder.mkdir(parents=True, exist_ok=True)
    else:
        folder = Path(tempfile.mkdtemp(prefix="vaultmem-demo-"))
    vault = folder / "vault"
    with resources.as_file(resources.files("vaultmem") / "sample_vault") as sample:
        source = sample if sample.is_dir() else Path(__file__).parents[3] / "sample_vault"
        shutil.copytree(source, vault)
    _tell(folder, vault)
    if not keep:
        shutil.rmtree(folder / "home", ignore_errors=True)


def _tell(folder: Path, vault: Path) -> None:
    from vaultmem.memories.store import StoreRequest
    from vaultmem.memory import open_memory
    from vaultmem.recall.recall import RecallRequest
    from vaultmem.settings.first_run import InitRequest, init_home

    home = str(folder / "home")
    init_home(home, InitRequest(str(vault)))
    with open_memory(home) as memory:
        print_line(f"1. A sample vault, copied to {vault}")
        result = memory.reconcile()
        print_line(
            f"2. reconcile: {plural(result.added, 'note')} and canvases read in {result.seconds:.2f} s, "
            f"{result.links} links, {result.edges} relationships"
        )
        rows = memory.findings()
        print_line(f"   what deserves a look ({plural(len(rows), 'finding')}; the first of each kind):")
        seen: set[str] = set()
        for row in rows:
            if row.finding.code not in seen:
                seen.add(row.finding.code)
                print_line(f"   - {row.finding.severity} {row.finding.code}: {row.finding.path}: {row.finding.message}")
        query = "why we chose this message queue"
        found = memory.recall(RecallRequest(query, limit=3))
        print_line(f'3. recall "{query}":')
        for hit in found.hits:
            print_line(f"   - {hit.title} ({hit.path}): {hit.snippet[:90]}")
        text = "The blue deploy window is Tuesday 10:00 UTC; announce it in the release channel first."
        stored = memory.store(
            StoreRequest(text, key="deploy-window", scope="global", type="reference", tags=("deploy",))
        )
        print_line(f"4. store: {stored.action} {stored.path} (the only folder that is ever written)")
        again = memory.recall(RecallRequest("blue deploy window", limit=1))
        print_line(f"5. recall again: {again.hits[0].title}: {again.hits[0].snippet[:90]}")
        export = folder / "graph"
        notes, _ = memory.export_graph(str(export))
        print_line(f"6. graph export: {plural(notes, 'note')} in {export}, ready to open in Obsidian")
    print_line("")
    print_line(f"Open {vault} in Obsidian to look around. For your own vault: vaultmem init PATH-OF-YOUR-VAULT")
    print_line(f"Remove the demo with: rm -r {os.fspath(folder)}")
