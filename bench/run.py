"""All benchmarks as one command: generated vaults of several sizes, every figure beside its floor in the same run.

    python bench/run.py                                 1,000 and 10,000 notes, three rounds
    python bench/run.py --notes 1000 10000 100000       the sizes of docs/performance.md
    python bench/run.py --json results.json             where the figures go as JSON (default: bench/results.json)

One table is printed to standard output; progress goes to standard error.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

from indexing import change_figures, cold_figures, session_for
from queries import engine_figures, quality, query_figures
from start import start_figures
from vaults import Words, generate
from watching import IDLE_S, SAVES, watch_figures

Section = dict[str, Any]


def say(text: str) -> None:
    """Tell where we are."""
    print(text, file=sys.stderr, flush=True)


def measure(notes: int, rounds: int, work: Path, saves: int, idle_s: float) -> Section:
    """Return all figures of one size."""
    vault = work / "vault"
    say(f"{notes} notes: making the vault")
    facts = generate(vault, notes)
    words = Words(random.Random(7))
    say(f"{notes} notes: cold")
    found: Section = {"indexing": cold_figures(vault, work, rounds)}
    with session_for(vault, work / "home") as session:
        say(f"{notes} notes: changes")
        found["indexing"] |= change_figures(session, vault)
        say(f"{notes} notes: queries")
        found["queries"] = query_figures(session, words)
        found["recall@1"] = quality(session, facts)
    say(f"{notes} notes: watcher")
    found["watcher"] = watch_figures(vault, work / "home", saves, idle_s) if sys.platform == "linux" else {}
    if notes <= 10_000:
        say(f"{notes} notes: engines")
        found["engines"] = engine_figures(vault, work, words)
    return found


def rows_of(section: Section, prefix: str = "") -> dict[str, float]:
    """Return nested figures as one flat table."""
    rows: dict[str, float] = {}
    for name, value in section.items():
        if isinstance(value, dict):
            rows |= rows_of(value, f"{prefix}{name}: ")
        else:
            rows[prefix + name] = value
    return rows


def show(sizes: dict[int, Section], start: Section) -> None:
    """Print one column a size, how the cost of an edit grows with the size, and start-up."""
    tables = {notes: rows_of(section) for notes, section in sizes.items()}
    names = list(dict.fromkeys(name for table in tables.values() for name in table))
    width = max(map(len, names))
    print(f"{'notes':{width}}", *(f"{notes:>12,}" for notes in tables))
    for name in names:
        cells = (f"{table[name]:12.3f}" if name in table else " " * 12 for table in tables.values())
        print(f"{name:{width}}", *cells)
    first, last = list(tables.values())[0], list(tables.values())[-1]
    for name in ("indexing: edit_ms", "indexing: edit_told_ms") if len(tables) > 1 else ():
        print(f"{name}, last size to first: {last[name] / max(first[name], 1e-9):.2f}")
    for name, value in start.items():
        print(f"{'start: ' + name:{width}} {value:12.3f}")


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--saves", type=int, default=SAVES, help="saves that the watcher must follow")
    parser.add_argument("--idle", type=float, default=IDLE_S, help="seconds that the watcher is watched at rest")
    parser.add_argument("--json", default=str(Path(__file__).parent / "results.json"))
    arguments = parser.parse_args()
    sizes: dict[int, Section] = {}
    for notes in arguments.notes:
        with tempfile.TemporaryDirectory(prefix="vaultmem-bench-") as folder:
            sizes[notes] = measure(notes, arguments.rounds, Path(folder), arguments.saves, arguments.idle)
    say("start-up")
    start = start_figures(3 * arguments.rounds)
    show(sizes, start)
    machine = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version, "system": platform.platform()}
    text = json.dumps({"machine": machine, "sizes": sizes, "start": start}, indent=1)
    Path(arguments.json).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
