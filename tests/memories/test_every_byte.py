"""A store changes our block and adds our section, and no other byte, whatever a note's properties look like."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import World
from vaultmem.base.errors import StoreRefused
from vaultmem.memories.store import StoreRequest
from vaultmem.notes.frontmatter import read_block

PLAIN = [
    "zebra: last but first   # keep me",
    "created: 2026-03-18",
    "modified: 2026-03-18T10:00:00+02:00",
    "rating: 007",
    "on: yes",
    "version: 1.10",
    'quoted: "a: b # c"',
    "single: 'it''s'",
    "empty:",
    "nothing: ~",
    "flow: {a: 1, b: [2, 3]}",
    "list: [one, 'two', \"three\"]",
    "aliases: [Deploys, 'release window']",
    'aliases:\n  - Deploys\n  - "release window"',
    "aliases:\n- at the margin\n- again",
    "text: |\n  two\n    lines\n\n  after a blank",
    "folded: >-\n  one\n  two",
    "nested:\n  deep:\n    deeper: 1",
    "# only a comment",
    "",
    'link: "[[Note|alias]]"',
    "emoji: 🙂 ünï",
    "url: https://example.com/a?b=c#d",
    "tags: [ops/deploy, status/active]",
    "tags:\n  - ops\n  - 'two'",
    "tags: ops",
    "Tags: [Upper]",
    "key with blanks: x",
    "'quoted key': x",
    "cssclasses: []",
]
AWKWARD = [
    "---\n---\n",
    "---\n\n---\n# x\n",
    "---\ncao:\n  key: k\n  type: feedback   # mine\n  links:\n    - {to: other, type: supersedes}\n---\nbody\n",
    "---\ncao: {key: k, type: user}\n---\nbody\n",
    "---\ntitle: a\n---",
    "---\ntitle: a\n--- \nbody\n",
    "# no properties at all\n\n---\n\nrule\n",
    "",
    "\n\n\n",
    "body without an end",
    "---\nnot: closed\n# x\n",
    "---\ntitle: [broken\n---\nbody\n",
    "---\na: 1\na: 2\n---\nbody\n",
    "---\nx: &anchor y\nz: *anchor\n---\nbody\n",
    "---\ncao: text\n---\nbody\n",
    "---\ncao:\n---\nbody\n",
    "---\ncao:\n  key: other-key\n---\nbody\n",
    "---\n\ttab: x\n---\nbody\n",
    "---\n- a list\n---\nbody\n",
    "---\n{a: 1}\n---\nbody\n",
    "# k\n\n## 2026-01-01T00:00:00Z\nfirst\n\n## See Also\n- [x](x.md)\n\n\n",
    "%%comment%%\n<!-- html\nnot closed\n",
]


def check(text: str, eol: str, bom: str, end: str, tags: tuple[str, ...]) -> None:
    """Store to a note of this text; either it is refused untouched, or every old line is there in order."""
    folder = Path(tempfile.mkdtemp(prefix="vaultmem-test-"))
    try:
        world = World(folder)
        before = bom + (text + end).replace("\n", eol)
        path = world.write("Agent Memory/k.md", before)
        try:
            with world.open() as memory:
                result = memory.store(StoreRequest("What the agent adds.", "k", "global", tags=tags))
        except StoreRefused:
            assert path.read_bytes() == before.encode()
            return
        assert result.action in ("updated", "created")
        after = path.read_bytes().decode()
        compare(before, after, eol, bom)
        with world.open() as memory:
            assert memory.rebuild(verify=True).differences == []
    finally:
        shutil.rmtree(folder)


def compare(before: str, after: str, eol: str, bom: str) -> None:
    assert after.startswith(bom) and after.count("\ufeff") == before.count("\ufeff")
    old, new = before.split("\n"), after.split("\n")
    position = 0
    for number, line in enumerate(old):
        if number == len(old) - 1 and line == "":
            continue  # the file ended in a line end
        while new[position].rstrip("\r") != line.rstrip("\r") and not grown_tags(line, new[position]):
            position += 1
            assert position < len(new), line
        if number < len(old) - 1 and not grown_tags(line, new[position]):
            assert new[position] == line, line  # its line end too
        position += 1
    was, now = read_block(before.removeprefix("\ufeff")), read_block(after.removeprefix("\ufeff"))
    assert now is None or now.problem is None
    kept = {name: value for name, value in ((was.data if was else None) or {}).items() if name.lower() not in MINE}
    found = {name: value for name, value in ((now.data if now else None) or {}).items() if name.lower() not in MINE}
    assert kept == found
    assert after.rstrip("\r\n").endswith("What the agent adds.")
    added = [line for line in new if line.rstrip("\r") == "What the agent adds."]
    assert len(added) == 1 and (eol == "\n" or "\r\n" not in before or added[0].endswith("\r"))


MINE = ("cao", "tags")


def grown_tags(old: str, new: str) -> bool:
    return old.lower().startswith("tags") and new.lower().startswith("tags") and old.rstrip("\r")[:-1].rstrip() in new


@settings(max_examples=200)
@given(
    rows=st.lists(st.sampled_from(PLAIN), min_size=1, max_size=6, unique_by=lambda row: row.split(":")[0].lower()),
    body=st.sampled_from(["# k\n\ntext", "", "text\n\n\n", "```\nopen fence\n", "- a\n- b\n  "]),
    eol=st.sampled_from(["\n", "\r\n"]),
    bom=st.sampled_from(["", "\ufeff"]),
    end=st.sampled_from(["", "\n", "\n\n"]),
    tags=st.sampled_from([(), ("new",), ("one", "t/w")]),
)
def test_no_other_byte_changes(rows: list[str], body: str, eol: str, bom: str, end: str, tags: tuple[str, ...]) -> None:
    check("---\n" + "\n".join(rows) + "\n---\n" + body, eol, bom, end, tags)


@pytest.mark.parametrize("text", AWKWARD)
@pytest.mark.parametrize("eol", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_awkward_notes_are_edited_safely_or_not_at_all(text: str, eol: str) -> None:
    check(text, eol, "", "", ("new",))
