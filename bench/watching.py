"""How long after a save a note can be found while `vaultmem watch` runs, and what the watcher costs at rest (Linux)."""

from __future__ import annotations

import os
import sqlite3
import statistics
import subprocess
import sys
import time
from pathlib import Path

from indexing import Figures, session_for

SAVES = 60
IDLE_S = 20.0


def watch_figures(vault: Path, home: Path, saves: int = SAVES, idle_s: float = IDLE_S) -> Figures:
    """Return the distribution of save → searchable in milliseconds, and the share of a CPU at rest in per cent."""
    with session_for(vault, home) as session:
        session.reconciler.run()
        index = session.database.path
        (home / "config.toml").write_text(
            f'[[vault]]\nid = "bench"\nroot = "{vault}"\nmax_notes = 2000000\n'
            '[[vault.mapping]]\nfolder = "."\nscope = "global"\n',
            encoding="utf-8",
        )
    watcher = subprocess.Popen(
        [sys.executable, "-m", "vaultmem", "--home", str(home), "watch"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    target = vault / "bench watched.md"
    try:
        connection = sqlite3.connect(index, isolation_level=None)
        latencies = []
        for number in range(saves + 1):
            word = f"watchedword{number}"
            save(target, f"# watched\n{word}\n")
            took = until_found(connection, word)
            if number:  # the first one waits for the watcher to be up
                latencies.append(1000 * took)
            time.sleep(0.15)
        before = cpu_seconds(watcher.pid)
        time.sleep(idle_s)
        idle = (cpu_seconds(watcher.pid) - before) / idle_s
        connection.close()
    finally:
        watcher.terminate()
        watcher.wait(20)
        target.unlink(missing_ok=True)
    latencies.sort()
    return {
        "median_ms": statistics.median(latencies),
        "p90_ms": latencies[int(0.9 * len(latencies))],
        "p99_ms": latencies[int(0.99 * len(latencies))],
        "max_ms": latencies[-1],
        "idle_cpu_percent": 100 * idle,
    }


def save(target: Path, text: str) -> None:
    """Save as an editor does: a new file, renamed over the old one."""
    beside = target.with_name(".bench watched.tmp")
    beside.write_text(text, encoding="utf-8")
    beside.replace(target)


def until_found(connection: sqlite3.Connection, word: str, wait_s: float = 60.0) -> float:
    """Return the seconds until the word is in the full-text table."""
    start = time.perf_counter()
    while time.perf_counter() - start < wait_s:
        if connection.execute("SELECT 1 FROM fts WHERE fts MATCH ? LIMIT 1", (f'"{word}"',)).fetchone():
            return time.perf_counter() - start
        time.sleep(0.001)
    raise TimeoutError(f"{word} was not indexed within {wait_s:.0f} s")


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
