"""The parser's cost a note, against reading the file and C YAML alone, over all notes of some folders.

python bench/parse.py FOLDER [FOLDER …]
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from pathlib import Path

import yaml

from vaultmem.notes.parse import parse_note

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
ROUNDS = 5


def read_and_yaml(path: Path) -> bytes:
    """The floor: read, and parse the properties block if there is one."""
    data = path.read_bytes()
    if data.startswith(b"---\n") and (end := data.find(b"\n---", 3)) > 0:
        with contextlib.suppress(yaml.YAMLError, ValueError):
            yaml.load(data[4:end], Loader=_Loader)
    return data


def main() -> None:
    """Print medians in microseconds and their ratio."""
    paths = [path for folder in sys.argv[1:] for path in sorted(Path(folder).rglob("*.md")) if path.is_file()]
    floors, parses = [], []
    for path in paths:
        best_floor = best_parse = 1e9
        for _ in range(ROUNDS):
            start = time.perf_counter()
            data = read_and_yaml(path)
            middle = time.perf_counter()
            parse_note(data, path.name)
            best_floor = min(best_floor, middle - start)
            best_parse = min(best_parse, time.perf_counter() - middle)
        floors.append(best_floor * 1e6)
        parses.append(best_parse * 1e6)
    ratios = [parse / floor for parse, floor in zip(parses, floors, strict=True)]
    print(f"notes                {len(paths)}")
    print(f"floor  median us     {statistics.median(floors):.0f}")
    print(f"parse  median us     {statistics.median(parses):.0f}")
    print(f"parse / floor        {statistics.median(parses) / statistics.median(floors):.2f} (of the medians)")
    print(f"ratio a note         {statistics.median(ratios):.2f} (median of the ratios)")


if __name__ == "__main__":
    main()
