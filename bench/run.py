"""Cold and no-op reconcile as ratios to the floor, and what else the budget names; one run, one table.

    python bench/run.py VAULT            a vault of your own (it is only read)
    python bench/run.py --notes 1000 10000 100000    generated ones, side by side

Figures are medians of several rounds, in process, start-up excluded. Absolute seconds say little on a
shared machine; the ratio to the floor in the same run is the figure to quote.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import floor

from vaultmem.config import Config
from vaultmem.config_rules import MappingConfig, VaultConfig
from vaultmem.ops.recall import RecallRequest, recall
from vaultmem.ops.session import Session

WORDS = 6_000


def generate(root: Path, notes: int) -> None:
    """Write a plain vault: about 2 KB a note, links, tags, lists, some properties."""
    source = random.Random(7)
    words = [f"w{number:x}" for number in range(WORDS)]
    names = [f"note {number}" for number in range(notes)]
    for number, name in enumerate(names):
        folder = root / f"f{number % 40}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = ["---", f"tags: [t{number % 50}]", f"title: {name}", "---"] if number % 2 else []
        lines.append(f"# {name}")
        for _ in range(source.randint(3, 9)):
            picked = " ".join(words[min(int(source.paretovariate(0.6)), WORDS - 1)] for _ in range(40))
            lines += ["", picked + ".", f"- see [[{source.choice(names)}]] and {picked[:40]}"]
        (folder / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def session_for(root: Path, home: Path) -> Session:
    """Return a session on a vault mapped as a whole."""
    vault = VaultConfig("bench", str(root), mappings=(MappingConfig(".", "global"),), max_notes=2_000_000)
    return Session(Config(str(home), (vault,)))


def timed(action: object) -> float:
    """Return the seconds of a call."""
    start = time.perf_counter()
    action()  # type: ignore[operator]
    return time.perf_counter() - start


def measure(root: Path, rounds: int) -> dict[str, float]:
    """Return all figures of one vault."""
    floors, colds = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            floors.append(floor.cold(str(root), os.path.join(folder, f"floor{number}.db")))
            home = Path(folder) / f"home{number}"
            with session_for(root, home) as session:
                colds.append(timed(session.reconciler.run))
            size = sum(path.stat().st_size for path in home.glob("index-v*"))
        with session_for(root, home) as session:
            session.reconciler.run()
            time.sleep(0.2)  # past the racy window
            session.reconciler.run()
            noop = statistics.median(timed(session.reconciler.run) for _ in range(5))
            walk = statistics.median(floor.bare_walk(str(root)) for _ in range(5))
            edit = edit_cost(session, root)
            queries = query_times(session)
    return {
        "notes": sum(1 for _ in root.rglob("*.md")),
        "floor_s": statistics.median(floors),
        "cold_s": statistics.median(colds),
        "cold_ratio": statistics.median(cold / base for cold, base in zip(colds, floors, strict=True)),
        "walk_s": walk,
        "noop_s": noop,
        "noop_ratio": (noop - 0.02) / walk,
        "edit_ms": 1000 * edit[0],
        "edit_told_ms": 1000 * edit[1],
        "query_p50_ms": queries[0],
        "query_p95_ms": queries[1],
        "index_mb": size / 1e6,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def edit_cost(session: Session, root: Path) -> tuple[float, float]:
    """Return the seconds of one edited note: (a whole run less a no-op run, a run that is told the path).

    The note is put back afterwards. The no-op runs stand right beside the edits, so that drift of the
    machine hits both; the path form is what a watcher asks for.
    """
    path = sorted(root.rglob("*.md"))[0]
    only = {"bench": [path.relative_to(root).as_posix()]}
    kept = path.read_bytes()
    costs, told = [], []
    try:
        for number in range(9):
            path.write_bytes(kept + b"\nedited %d\n" % number)
            total = timed(session.reconciler.run)
            time.sleep(0.12)
            session.reconciler.run()
            costs.append(total - timed(session.reconciler.run))
            path.write_bytes(kept + b"\nedited again %d\n" % number)
            told.append(timed(lambda: session.reconciler.run(only=only)))
    finally:
        path.write_bytes(kept)
        session.reconciler.run()
    return max(0.0, statistics.median(costs)), statistics.median(told)


def query_times(session: Session) -> tuple[float, float]:
    """Return (p50, p95) in milliseconds over words taken from the vault itself."""
    rows = (
        session.connection()
        .execute("SELECT substr(body, 200, 60) FROM note WHERE body_size > 400 LIMIT 200")
        .fetchall()
    )
    times = sorted(
        1000 * timed(lambda text=row[0]: recall(session, RecallRequest(" ".join(text.split()[1:3])), sweep=False))
        for row in rows
    )
    return (times[len(times) // 2], times[int(len(times) * 0.95)]) if times else (0.0, 0.0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vault", nargs="?")
    parser.add_argument("--notes", type=int, nargs="+", default=[1_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="write the figures here too")
    arguments = parser.parse_args()
    columns = []
    for notes in [0] if arguments.vault else arguments.notes:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "vault"
            if arguments.vault:
                shutil.copytree(
                    arguments.vault, root, symlinks=True, ignore=lambda d, n: [x for x in n if not _is_plain(d, x)]
                )
            else:
                generate(root, notes)
            columns.append(measure(root, arguments.rounds))
    show(columns)
    if arguments.json:
        Path(arguments.json).write_text(
            json.dumps({"python": sys.version, "sizes": columns}, indent=1) + "\n", encoding="utf-8"
        )


def show(columns: list[dict[str, float]]) -> None:
    """Print one column a size, and how the cost of one edit grows from the first to the last."""
    width = max(map(len, columns[0]))
    for name in columns[0]:
        print(
            f"{name:{width}}",
            *(f"{column[name]:12,.0f}" if name == "notes" else f"{column[name]:12.3f}" for column in columns),
        )
    for name in ("edit_ms", "edit_told_ms") if len(columns) > 1 else ():
        print(f"{name} grows from the first size to the last: {columns[-1][name] / max(columns[0][name], 1e-9):.2f} x")


def _is_plain(folder: str, name: str) -> bool:
    path = Path(folder) / name
    return path.is_symlink() or path.is_dir() or path.is_file()


if __name__ == "__main__":
    main()
