"""Properties mean what Obsidian's YAML reader (the npm package `yaml`) makes of them.

`tests/data/yaml_blocks.json` holds random blocks and what version 2.9.1 of the package gave for them. The
differences that are known are listed here and in docs/obsidian.md.
"""

from __future__ import annotations

import json

import pytest

from tests.conftest import DATA
from vaultmem.notes.frontmatter import Block, read_block


def read(yaml_text: str) -> Block:
    block = read_block(f"---\n{yaml_text}---\nbody\n")
    assert block is not None
    return block


def in_javascript(value: object) -> object:
    """Return a value with all numbers as floats, which is what JavaScript has."""
    if isinstance(value, dict):
        return {name: in_javascript(item) for name, item in value.items()}
    if isinstance(value, list):
        return [in_javascript(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def test_random_blocks_are_read_as_obsidians_reader_reads_them() -> None:
    rows = json.loads((DATA / "yaml_blocks.json").read_text(encoding="utf-8"))
    assert len(rows) > 1_500
    for text, expected in rows:
        block = read(text)
        if expected == "error":
            assert block.problem is not None, text
        else:
            assert block.problem is None, (text, block.problem)
            assert in_javascript(block.data) == in_javascript(expected), text


def test_the_halves_of_a_character_are_one() -> None:
    assert read('title: "\\uD83D\\uDC08 cat"\n').data == {"title": "\U0001f408 cat"}
    assert read('title: "a \\\\uD83D \\ud83d\\udc08"\n').data == {"title": "a \\uD83D \U0001f408"}
    many = "".join(f'k{n}: "\\uD83D\\uDC08"\n' for n in range(99))
    assert len(read(many).data or {}) == 99


@pytest.mark.parametrize("half", ["\\uD83D", "\\uDC08", "\\uDC08\\uD83D", "\\uD83Dx\\uDC08"])
def test_a_lone_half_can_be_shown(half: str) -> None:
    data = read(f'title: "{half} cat"\n').data
    assert data is not None and "\ufffd" in data["title"] and data["title"].endswith(" cat")
    data["title"].encode("utf-8")


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\x85", "\x07", "\x7f", "\x9f"])
def test_signs_that_are_no_line_ends_are_text(char: str) -> None:
    assert read(f"title: a{char}b\ntags: [x]\n").data == {"title": f"a{char}b", "tags": ["x"]}
    assert read(f'"k{char}": "a{char}b"\n').data == {f"k{char}": f"a{char}b"}


def test_stand_ins_are_never_signs_of_the_note() -> None:
    private = "".join(map(chr, range(0xE000, 0xE100)))
    assert read(f"title: {private}\u2028\n").data == {"title": f"{private}\u2028"}


@pytest.mark.parametrize("number", ["0x" + "f" * 15_000, "0o" + "7" * 15_000, "9" * 15_000])
def test_numbers_beyond_all_bounds_stay_text(number: str) -> None:
    data = read(f"n: {number}\n").data
    assert data == {"n": number} and json.loads(json.dumps(data)) == data


KNOWN_DIFFERENCES = {
    "`.inf`, `.nan` and numbers beyond all floats stay text": ("n: .inf\n", {"n": ".inf"}),
    "a property without a name is malformed": (": a\n", None),
    "a mapping as a name is written shorter": ("? k: x\n", {"{ k }": None}),
    "a list as a name inside a line is malformed": ("k: [a]: b\n", None),
    "an anchor that is given twice is malformed": ("k: [&x a, &x b]\n", None),
    "a quoted text or list may go on without being indented": ("k:\n  - 'a\n  b'\n", {"k": ["a b"]}),
}


@pytest.mark.parametrize("name", KNOWN_DIFFERENCES)
def test_what_differs_is_known(name: str) -> None:
    text, data = KNOWN_DIFFERENCES[name]
    assert read(text).data == data and (data is not None or read(text).problem is not None)


def test_the_differences_are_told_in_the_documents() -> None:
    page = (DATA.parent.parent / "docs/obsidian.md").read_text(encoding="utf-8").replace("\n  ", " ")
    for name in KNOWN_DIFFERENCES:
        assert name in page, name
