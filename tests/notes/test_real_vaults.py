"""Agreement with what the real application recorded for two vaults (tests/data/vaults/SOURCES.md).

Run as a script it prints the table of docs/obsidian.md: python -m tests.notes.test_real_vaults
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import DATA
from vaultmem.health.debug import debug_resolve
from vaultmem.notes.parse import parse_canvas, parse_note

VAULTS = DATA / "vaults"
KINDS = ("resolved", "unresolved", "tags", "headings", "aliases", "blocks", "frontmatter")


def pairs(vault: str) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield (kind, path, expected, found) for everything that the dump says of a vault."""
    truth = json.loads((VAULTS / f"{vault}.truth.json").read_text(encoding="utf-8"))["notes"]
    resolved = debug_resolve(str(VAULTS / vault))["notes"]
    for path, said in truth.items():
        if "resolved" in said:
            rows = resolved[path]
            yield "resolved", path, said["resolved"], dict(Counter(r["target"] for r in rows if r["state"] in SURE))
            yield (
                "unresolved",
                path,
                said["unresolved"],
                dict(Counter(r["path"] for r in rows if r["state"] not in SURE)),
            )
        if path.endswith(".canvas"):
            assert parse_canvas((VAULTS / vault / path).read_bytes()) is not None
            continue
        note = parse_note((VAULTS / vault / path).read_bytes(), path.rpartition("/")[2])
        detail = said.get("detail", said)
        if "tags" in detail:
            yield "tags", path, [tag.removeprefix("#") for tag in detail["tags"]], list(note.tags)
        if "headings" in detail:
            yield "headings", path, detail["headings"], [[h.level, h.text] for h in note.headings]
        if "aliases" in detail:
            yield "aliases", path, detail["aliases"] or [], list(note.aliases)
        if "blocks" in detail:
            yield "blocks", path, sorted(detail["blocks"]), sorted(note.blocks)
        if "frontmatter" in detail:
            yield "frontmatter", path, detail["frontmatter"], note.frontmatter


SURE = ("resolved", "ambiguous", "attachment")


@pytest.mark.parametrize("vault", ["tasks-demo", "til-zh"])
def test_agreement(vault: str) -> None:
    totals: Counter[str] = Counter()
    wrong = []
    for kind, path, expected, found in pairs(vault):
        totals[kind] += 1
        if expected != found:
            wrong.append((kind, path, expected, found))
    assert totals and not wrong, wrong[:3]


def main() -> None:
    """Print the table."""
    for vault in ("tasks-demo", "til-zh"):
        rows = list(pairs(vault))
        for kind in KINDS:
            mine = [row for row in rows if row[0] == kind]
            if mine:
                good = sum(expected == found for _, _, expected, found in mine)
                print(f"{vault:12} {kind:12} {good}/{len(mine)}  {100 * good / len(mine):.1f} %")


if __name__ == "__main__":
    main()
