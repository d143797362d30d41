"""A sample of the conformance cases through the command line, as a real process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import run_cli
from tests.notes.test_conformance import NOTE_CASES, Case, load

SAMPLE = [case for case in NOTE_CASES if "note" in case][::24]
RESOLVED = [case for case in load("resolve") if isinstance(case["files"], dict) and "steps" not in case][::3]


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case["id"])
def test_parse(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "note.md"
    path.write_bytes(case["note"].encode())
    found = run_cli(tmp_path / "home", "debug", "parse", str(path)).json
    expect = case["expect"]
    links = [row for row in found["links"] if row["kind"] != "frontmatter"]
    for name, embed in (("links", False), ("embeds", True)):
        if name in expect:
            assert [row["link"] for row in links if row["embed"] is embed] == [row["link"] for row in expect[name]]
    for name in ("tags", "aliases", "frontmatter", "body"):
        if name in expect:
            assert found[name] == expect[name]
    if "headings" in expect:
        assert [[row["level"], row["text"]] for row in found["headings"]] == expect["headings"]


@pytest.mark.parametrize("case", RESOLVED, ids=lambda case: case["id"])
def test_resolve(case: Case, tmp_path: Path) -> None:
    for path, text in case["files"].items():
        target = tmp_path / "vault" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())
    found = run_cli(tmp_path / "home", "debug", "resolve", str(tmp_path / "vault"))
    assert json.loads(found.out)["schema"] == "vaultmem.resolve/1"
    for source, wanted in case["expect"].get("resolved", {}).items():
        targets = [row["target"] for row in found.json["notes"][source] if row["state"] not in ("dangling", "alias")]
        assert {path: targets.count(path) for path in targets} == wanted
