"""Reconcile beside its floor: cold, nothing to do, one edit, a renamed folder; index size and peak memory.

    python bench/indexing.py cold VAULT HOME     one cold reconcile in a process of its own, figures as JSON

Times are in process, start-up excluded. Absolute seconds say little on a shared machine: the ratio to
the floor in the same run is the figure to quote.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import floor

from vaultmem.access.session import Session
from vaultmem.settings.config import Config
from vaultmem.settings.rules import MappingConfig, VaultConfig

RACY_S = 0.2
FOLDER_NOTES = 1_000
Figures = dict[str, float]


def session_for(vault: Path, home: Path, engine: str = "auto") -> Session:
    """Return a session on a vault mapped as a whole."""
    config = VaultConfig("bench", str(vault), mappings=(MappingConfig(".", "global"),), max_notes=2_000_000)
    return Session(Config(str(home), (config,), engine=engine))


def timed(action: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def cold_here(vault: Path, home: Path) -> Figures:
    """Reconcile a new home; return seconds and peak memory of this process and of its largest child."""
    with session_for(vault, home) as session:
        seconds = timed(session.reconciler.run)
    usage = resource.getrusage
    return {
        "seconds": seconds,
        "rss_mb": usage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "reader_rss_mb": usage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
    }


def cold(vault: Path, home: Path) -> Figures:
    """The same in a process of its own, so that its memory is its own."""
    command = [sys.executable, __file__, "cold", str(vault), str(home)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: Figures = json.loads(done.stdout)
    return found


def cold_figures(vault: Path, work: Path, rounds: int) -> Figures:
    """Return cold figures beside the floor; the last round's home stays at `work`/home."""
    floors, colds, ratios = [], [], []
    found: Figures = {}
    for number in range(rounds):
        database = work / f"floor{number}.db"
        base = floor.cold(str(vault), str(database))
        home = work / ("home" if number == rounds - 1 else f"home{number}")
        found = cold(vault, home)
        floors.append(base)
        colds.append(found["seconds"])
        ratios.append(found["seconds"] / base)
        floor_bytes = database.stat().st_size
        database.unlink()
    index = next((work / "home").glob("index-v*.db")).stat().st_size
    return {
        "cold_s": statistics.median(colds),
        "cold_floor_s": statistics.median(floors),
        "cold_ratio": statistics.median(ratios),
        "peak_rss_mb": found["rss_mb"],
        "reader_rss_mb": found["reader_rss_mb"],
        "index_mb": index / 1e6,
        "index_to_floor": index / floor_bytes,
    }


def change_figures(session: Session, vault: Path) -> Figures:
    """Return what it costs to find nothing, one edit, a moved folder; the vault is as before afterwards."""
    session.reconciler.run()
    time.sleep(RACY_S)
    session.reconciler.run()
    noops = [timed(session.reconciler.run) for _ in range(7)]
    walk = statistics.median(floor.bare_walk(str(vault)) for _ in range(7))
    noop = statistics.median(noops)
    edit, told = edit_cost(session, vault)
    return {
        "noop_ms": 1000 * noop,
        "walk_ms": 1000 * walk,
        "noop_ratio": max(0.0, noop - 0.02) / walk,
        "edit_ms": 1000 * edit,
        "edit_told_ms": 1000 * told,
        **moved_folder(session, vault, noop),
    }


def edit_cost(session: Session, vault: Path) -> tuple[float, float]:
    """Return the seconds of one edited note: (a whole run less a no-op run, a run that is told the path).

    The note is put back afterwards. A no-op run stands right beside each edit, so that drift of the
    machine hits both, and the least of each counts: in a large vault the walk swings by more than an
    edit costs. The path form is what a watcher asks for.
    """
    path = sorted(vault.rglob("*.md"))[0]
    only = {"bench": [path.relative_to(vault).as_posix()]}
    kept = path.read_bytes()
    edits, noops, told = [], [], []
    try:
        for number in range(11):
            path.write_bytes(kept + b"\nedited %d\n" % number)
            edits.append(timed(session.reconciler.run))
            time.sleep(RACY_S)
            session.reconciler.run()
            noops.append(timed(session.reconciler.run))
            path.write_bytes(kept + b"\nedited again %d\n" % number)
            told.append(timed(lambda: session.reconciler.run(only=only)))
    finally:
        path.write_bytes(kept)
        session.reconciler.run()
    return max(0.0, min(edits) - min(noops)), statistics.median(told)


def moved_folder(session: Session, vault: Path, noop: float) -> Figures:
    """Return the seconds of a renamed folder with 1,000 notes (all notes of a smaller vault), less a no-op run."""
    notes = sorted(vault.rglob("*.md"))[:FOLDER_NOTES]
    folder = vault / "bench folder"
    folder.mkdir()
    places = [(path, folder / f"{number:04} {path.name}") for number, path in enumerate(notes)]
    for path, target in places:
        path.rename(target)
    session.reconciler.run(accept_removals=True)
    renamed = folder.rename(vault / "bench renamed")
    seconds = timed(lambda: session.reconciler.run(accept_removals=True))
    for path, target in places:
        (renamed / target.name).rename(path)
    renamed.rmdir()
    session.reconciler.run(accept_removals=True)
    return {"moved_notes": float(len(notes)), "moved_folder_s": seconds - noop}


if __name__ == "__main__":
    print(json.dumps(cold_here(Path(os.path.abspath(sys.argv[2])), Path(sys.argv[3]))))
