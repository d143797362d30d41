"""How Obsidian reads notes: every case of tests/data/conformance through the public functions.

Format of the cases: the README of the shared conformance folder; here a case's `expect` keys are
each one small check.
"""

from __future__ import annotations

import base64
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import yaml

from tests.conftest import DATA
from vaultmem.base.values import Link, ParsedNote
from vaultmem.notes.body.outline import subpath_line
from vaultmem.notes.links.resolve import resolve_path
from vaultmem.notes.links.wikilinks import fold, split_link
from vaultmem.notes.parse import parse_canvas, parse_note

Case = dict[str, Any]


def load(name: str) -> list[Case]:
    return list(yaml.safe_load((DATA / "conformance" / f"{name}.yaml").read_text(encoding="utf-8")))


def by_id(cases: list[Case]) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in cases]


NOTE_CASES = [case for name in ("links", "tags", "frontmatter", "parse") for case in load(name)]
OWN_CASES = load("own")


def same_links(found: Sequence[Link], expected: list[dict[str, Any]]) -> bool:
    return len(found) == len(expected) and all(
        getattr(link, name) == value for link, row in zip(found, expected, strict=True) for name, value in row.items()
    )


def body_links(note: ParsedNote, *, embed: bool) -> list[Link]:
    return [link for link in note.links if link.kind != "frontmatter" and link.embed is embed]


def property_links(note: ParsedNote) -> list[Link]:
    return [link for link in note.links if link.kind == "frontmatter"]


CHECKS: dict[str, Callable[[ParsedNote, Any], bool]] = {
    "links": lambda note, value: same_links(body_links(note, embed=False), value),
    "embeds": lambda note, value: same_links(body_links(note, embed=True), value),
    "frontmatter_links": lambda note, value: same_links(property_links(note), value),
    "links_include": lambda note, value: all(
        any(same_links([link], [row]) for link in body_links(note, embed=False)) for row in value
    ),
    "link_counts": lambda note, value: all(
        sum(link.link == text for link in note.links) == count for text, count in value.items()
    ),
    "paths": lambda note, value: [link.path for link in body_links(note, embed=False)] == value,
    "other_notes": lambda note, value: [link.path for link in note.links if link.path] == value,
    "tags": lambda note, value: list(note.tags) == value,
    "distinct_tags": lambda note, value: len({tag.lower() for tag in note.tags}) == value,
    "tags_start_with": lambda note, value: all(any(tag.startswith(text) for tag in note.tags) for text in value),
    "frontmatter_tags": lambda note, value: list(note.frontmatter_tags) == (value or []),
    "frontmatter": lambda note, value: note.frontmatter == value,
    "frontmatter_keys": lambda note, value: list(note.frontmatter or {}) == value,
    "error": lambda note, value: any(found.code.startswith("frontmatter_") for found in note.findings) is value,
    "body": lambda note, value: note.body == value,
    "headings": lambda note, value: [[h.level, h.text] for h in note.headings] == value,
    "headings_include": lambda note, value: all(row in [[h.level, h.text] for h in note.headings] for row in value),
    "blocks": lambda note, value: sorted(note.blocks) == sorted(value),
    "aliases": lambda note, value: list(note.aliases) == value,
    "heading_of_subpath": lambda note, value: all(
        subpath_line(row["subpath"], note.headings, note.blocks) == (0 if row["line"] is None else row["line"] + 1)
        for row in value
    ),
    "linktext": lambda note, value: all(split_link(row["text"]) == (row["path"], row["subpath"]) for row in value),
    "note_still_read": lambda note, value: isinstance(note.body, str) is value,
    "no_code_run": lambda note, value: value is True,
}


@pytest.mark.parametrize("case", by_id(NOTE_CASES + [case for case in OWN_CASES if "files" not in case]))
def test_note(case: Case) -> None:
    data = base64.b64decode(case["note_base64"]) if "note_base64" in case else case.get("note", "").encode()
    started = time.monotonic()
    note = parse_note(data, "note.md")
    seconds = time.monotonic() - started
    for name, value in case["expect"].items():
        if name == "max_seconds":
            assert seconds <= value
        else:
            assert CHECKS[name](note, value), (name, value, note)


def names_of(files: Any) -> dict[str, list[str]]:
    paths = sorted(unicodedata.normalize("NFC", path) for path in files)
    names: dict[str, list[str]] = {}
    for path in paths:
        if not any(part.startswith(".") for part in path.split("/")):
            names.setdefault(fold(path.rpartition("/")[2]), []).append(path)
    return names


@pytest.mark.parametrize("case", by_id(load("resolve") + [case for case in OWN_CASES if "files" in case]))
def test_resolution(case: Case) -> None:
    names = names_of(case["files"])

    def target(link: str, source: str) -> str | None:
        path = split_link(link)[0]
        return resolve_path(path, unicodedata.normalize("NFC", source), lambda name: names.get(name, [])).target

    for row in case["expect"].get("resolve", []):
        wanted = row.get("to_any", [row.get("to")])
        found = target(row["link"], row["from"])
        assert found in [path and unicodedata.normalize("NFC", path) for path in wanted]
    for source in {*case["expect"].get("resolved", {}), *case["expect"].get("unresolved", {})}:
        data = case["files"][source].encode()
        links = parse_canvas(data) if source.endswith(".canvas") else parse_note(data, source).links
        resolved: Counter[str] = Counter()
        unresolved: Counter[str] = Counter()
        for link in links:
            found = target(link.link, source)
            if found is None:
                unresolved[link.path] += 1
            else:
                resolved[found] += 1
        assert dict(resolved) == case["expect"].get("resolved", {}).get(source, dict(resolved))
        assert dict(unresolved) == case["expect"].get("unresolved", {}).get(source, dict(unresolved))


def test_no_case_is_lost() -> None:
    assert len(NOTE_CASES) + len(load("resolve")) >= 309
    assert len({case["id"] for case in NOTE_CASES}) == len(NOTE_CASES)
