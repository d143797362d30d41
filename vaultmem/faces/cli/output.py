"""What commands print: results on standard output, everything else on standard error.

Text of notes and names of files are printed with control characters spelled out, so that no note
can move the cursor or colour the terminal.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

from vaultmem.base.progress import Work

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), *range(127, 160))}
_CONTROL[10] = "\\n"
_BIDI = {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_SAFE = {**_CONTROL, **_BIDI}


def safe(text: str) -> str:
    """Return a text that is one line and can't control a terminal."""
    return text.translate(_SAFE).encode("utf-8", "backslashreplace").decode()


def safe_block(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(safe(line) for line in text.split("\n"))


def print_json(value: Any) -> None:
    """Print one JSON document (strict: no NaN, no infinity)."""
    print(
        json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2, default=str)
        .encode("utf-8", "backslashreplace")
        .decode()
    )


def print_line(text: str = "") -> None:
    """Print one line of a result."""
    print(safe(text))


def note(text: str) -> None:
    """Print one line to standard error."""
    print(safe_block(text), file=sys.stderr)


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns as wide as their content; the last one is not padded."""
    cells = [[safe(cell) for cell in row] for row in rows]
    widths = [max([len(title), *(len(row[i]) for row in cells)]) for i, title in enumerate(header)]
    for row in [list(header), *cells]:
        padded = [cell.ljust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True)]
        print("  ".join([*padded, row[-1]]).rstrip())


def plural(number: int, word: str) -> str:
    """Return `1 note`, `2 notes`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


class _Bar:
    """A progress line on a terminal's standard error, shown only once work has taken a second."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._start = time.monotonic()
        self._last = 0.0
        self.shown = False

    def report(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._start < 1.0 or now - self._last < 0.1:
            return
        self._last = now
        share = done / total if total else 1.0
        filled = int(24 * share)
        self.shown = True
        self._write(f"\r{phase:9} [{'#' * filled}{'.' * (24 - filled)}] {done}/{total} ")

    def clear(self) -> None:
        if self.shown:
            self._write("\r" + " " * 60 + "\r")


@contextmanager
def progress() -> Any:
    """Give a Work that shows progress on a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield Work()
        return

    def write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    bar = _Bar(write)
    try:
        yield Work(bar.report)
    finally:
        bar.clear()
