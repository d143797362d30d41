"""Hostile notes and paths raise nothing, and take time in line with their size."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import REPOSITORY, World
from vaultmem.access.filters import NoteFilter
from vaultmem.base.times import iso, iso_from_ns, parse_time
from vaultmem.base.values import Signature
from vaultmem.notes.body.flat import read_flat
from vaultmem.notes.body.markdown import Outline, read_markdown
from vaultmem.notes.body.plain import Taken, take_plain, without_fences
from vaultmem.notes.links.resolve import resolve_path
from vaultmem.notes.parse import parse_canvas, parse_note
from vaultmem.recall.hits import hit_json
from vaultmem.sync.walk.exclude import PathFilter

REAL = [path.read_bytes() for path in sorted((REPOSITORY / "sample_vault").rglob("*.md"))]
MARKUP = st.text(alphabet=st.sampled_from(list("[]()!#|^$`~<>%\\*_-=: \n\tabK1/.\"'&{}")), max_size=120)


@settings(max_examples=1_500)
@given(st.one_of(st.text(max_size=200), MARKUP))
def test_any_text_is_a_note(text: str) -> None:
    assert_lines_are_there(text.encode("utf-8", "surrogatepass"), text)


def assert_lines_are_there(data: bytes, text: str) -> None:
    """What is read of a note stands in one of its lines."""
    note = parse_note(data, "n.md")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    assert all(0 <= link.line <= lines for link in note.links)
    assert all(1 <= heading.line <= lines for heading in note.headings)


@settings(max_examples=1_500)
@given(st.sampled_from(REAL), st.lists(st.tuples(st.integers(0, 5_000), st.binary(max_size=4)), max_size=6))
def test_any_mutation_of_a_real_note_is_a_note(data: bytes, changes: list[tuple[int, bytes]]) -> None:
    for place, piece in changes:
        at = place % (len(data) + 1)
        data = data[:at] + piece + data[at + len(piece) :]
    assert_lines_are_there(data, data.decode("utf-8", "replace"))


def read_by_the_parser_alone(body: str, first_line: int = 1) -> Outline:
    with (
        mock.patch("vaultmem.notes.body.markdown.read_flat", lambda unfenced, first_line: None),
        mock.patch("vaultmem.notes.body.markdown.take_plain", lambda unfenced: Taken(body, [])),
    ):
        return read_markdown(body, first_line)


@settings(max_examples=800)
@given(MARKUP, MARKUP, MARKUP)
def test_taking_out_what_is_plain_changes_nothing(one: str, two: str, three: str) -> None:
    filler = (
        "Plain words that hold nothing at all, one after the other, until there are enough of them to be skipped.\n"
    )
    body = f"{filler}\n{one}\n\n{filler}{filler}\n{two}\n\n- {filler}\n  {three}\n\n{filler}"
    assert read_markdown(body) == read_by_the_parser_alone(body)
    assert take_plain(without_fences(body)).rest.count("\n") in (0, body.count("\n"))


INDENTS = ["", "", "", "", " ", "  ", "   ", "    ", "\t", "      ", "\t\t"]
MARKS = ["", "", "", "- ", "* ", "+ ", "1. ", "2) ", "- [ ] ", "> ", "# ", "## ", "-", "- - ", "-\t", "-     ", "> - "]
TEXTS = [
    *"""
words
[[a]] and #tag
see [b](c.md) `x`
#tag
**[[d]]** x
*e* #f
[[g
h]] i
`j
k` [[l]]
x ^id
^id2
$m
n$ [[o]]
![[p]]
[q
r](s.md)
[t]: u.md
[^1]: #foot
a <b> #c
# d
2. e
<!-- f
g --> #h
<div>
</div>
<script>
```
```py
~~~
````
```a`b
$$
$$i$$
---
===
- - -
| a | b |
|---|---|
a | b
--- | ---
2024-01 #p
==q== #r
~~s~~
_t_ #u_
http://w#x #y
#
##
## z #
#a#b
""".strip().split("\n"),
    *("| [[j\\|k]] | #l |", "\\[[m]]", "n \\#o", "v  ", "- ", "\xa0#c", "\x0c#d"),
]
LINES = st.tuples(st.sampled_from(INDENTS), st.sampled_from(MARKS), st.sampled_from(TEXTS)).map("".join)
BREAKS = st.sampled_from(["\n", "\n", "\n", "\n\n", "\n\n", "\n \t\n"])


@settings(max_examples=3_000)
@given(st.lists(st.tuples(LINES, BREAKS), max_size=14))
def test_blocks_in_any_order_are_read_as_the_parser_alone_reads_them(lines: list[tuple[str, str]]) -> None:
    body = "".join(line + end for line, end in lines)
    assert read_markdown(body) == read_by_the_parser_alone(body)


MARGINAL = st.tuples(st.sampled_from(MARKS), st.sampled_from(TEXTS)).map("".join)


@settings(max_examples=1_500)
@given(
    st.lists(st.tuples(MARGINAL, st.sampled_from(["\n", "\n\n", "\n\n\n"])), max_size=9),
    st.sampled_from(["", "\n", "\n\n"]),
)
def test_blocks_at_the_margin_are_read_as_the_parser_alone_reads_them(lines: list[tuple[str, str]], lead: str) -> None:
    body = lead + "".join(line + end for line, end in lines)
    assert read_markdown(body) == read_by_the_parser_alone(body)


FLAT_TEXTS = [
    "words",
    "[[a]]",
    "see [[b|c]] and ![[d]]!",
    "[[e]]: f",
    "[[]]",
    "[[ | ]]",
    "[a [b] c]",
    "[[g\nh]]",
    "[[i|j](k)",
    "*l* _m_ **n**",
    "(o)",
    "==p==",
    "~~q~~",
    "2024-01 r",
    "3",
    "4. s",
    "a > b --> c",
    "x=y",
    "t #",
    "#u",
    "## v ##",
    "http://w",
    "[[x]](y)",
    "[[z#1]]",
    "{[[1]]}",
    "!![[2]]",
    "[[3]][[4]]",
    "\xa05",
    "6\t7",
    "| a",
]
FLAT_LINES = st.tuples(st.sampled_from(["", "", "# ", "## ", "- ", "* ", "1. ", "> "]), st.sampled_from(FLAT_TEXTS))


@settings(max_examples=1_500)
@given(
    st.lists(
        st.tuples(FLAT_LINES.map("".join), st.sampled_from(["\n", "\n\n", "\n```\n[[k]] # l\n```\n"])), max_size=5
    ),
    st.integers(1, 3),
)
def test_flat_bodies_are_read_as_the_parser_alone_reads_them(lines: list[tuple[str, str]], first_line: int) -> None:
    body = "".join(line + end for line, end in lines)
    flat = read_flat(without_fences(body), first_line)
    alone = read_by_the_parser_alone(body, first_line)
    assert flat is None or (tuple(flat.headings), tuple(flat.links)) == (alone.headings, alone.links)
    assert read_markdown(body, first_line) == alone


def test_most_notes_are_flat() -> None:
    body = (
        "# Of [[x]]\n\n```py\ny[[0]] # 1\n```\nText (so) with [[a]],\n- an item ![[b|c]]\n\n## Next\n2. *more* [[d]]\n"
    )
    flat = read_flat(without_fences(body), 4)
    assert flat is not None
    assert [(heading.level, heading.text, heading.line) for heading in flat.headings] == [
        (1, "Of [[x]]", 4),
        (2, "Next", 12),
    ]
    assert [(link.raw, link.line) for link in flat.links] == [
        ("[[x]]", 4),
        ("[[a]]", 9),
        ("![[b|c]]", 10),
        ("[[d]]", 13),
    ]


@pytest.mark.parametrize(
    "body",
    [
        "- words\n\n words\n\n    [[a]] and #tag\n",  # a paragraph between a list and code
        "  [t]: u.md\n\n [q\n   - \n",  # an indented underline
        "- $$\n \t\n  [[a]]\n  $$\n",  # math in an item, with a line of blanks
        "-\tw\n   1. x\n      - [ ] y\n    * *e* #f\n",  # an item half-way between two lists
        "   > x ^id\n\t\t> $$\n\n# $$",  # math that would end beyond its quote
    ],
)
def test_what_random_notes_found_stays_mended(body: str) -> None:
    assert read_markdown(body) == read_by_the_parser_alone(body)


def test_what_the_random_notes_hold_is_read() -> None:
    assert read_markdown("- $$\n \t\n  [[a]]\n  $$\n\nafter [[b]]\n").links[0].path == "b"
    assert read_markdown("   > x ^id\n\t\t> $$\n\n# $$").blocks == ("id",)
    assert [heading.text for heading in read_markdown(" [q\n   - \n").headings] == ["[q"]


@given(st.binary(max_size=300))
def test_any_bytes_are_a_canvas(data: bytes) -> None:
    assert all(link.kind == "canvas" and link.line == 0 for link in parse_canvas(data))


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_path_leads_out(path: str, source: str) -> None:
    files = ["a/Note.md", "Note.md"]
    found = resolve_path(path, source or "x.md", lambda name: [f for f in files if f.lower().endswith(name)])
    assert found.target is None or found.target in files or not path


@given(st.lists(st.text(min_size=1, max_size=12), max_size=4), st.text(min_size=1, max_size=30))
def test_any_pattern_is_a_filter(patterns: list[str], path: str) -> None:
    matches = PathFilter(patterns).matches(path)
    assert patterns or not matches


BOMBS = {
    "brackets": "[",
    "double brackets": "[[",
    "link openers": "[a](",
    "stars": "*a _b ",
    "ticks": "`a``b```c",
    "dollars": "$a ",
    "angles": "<a ",
    "comments": "<!-- ",
    "quotes": "> ",
    "images": "![",
    "closers": "]]",
    "pipes": "|a|b\n",
    "hashes": "#a#b ",
    "lists": "- ",
    "escapes": "\\[",
    "urls": "http://",
    "braces": "{{",
    "fences": "```\n",
    "math": "$$\n",
    "titles": '[a](b "',
}


@pytest.mark.parametrize("name", BOMBS)
def test_time_follows_the_size(name: str) -> None:
    def seconds(size: int) -> float:
        text = (BOMBS[name] * (size // len(BOMBS[name]) + 1))[:size]
        best = 60.0
        for _ in range(2):
            start = time.process_time()
            read_markdown(text)
            best = min(best, time.process_time() - start)
        return best

    small, large = seconds(20_000), seconds(80_000)
    assert large < max(0.5, small * 10), f"{small:.3f} s for 20 kB, {large:.3f} s for 80 kB"


STATS = st.integers(-(2**80), 2**80)


@given(STATS, STATS, STATS, st.integers(0, 2**64 - 1))
def test_any_stat_values_fit_into_the_index(size: int, mtime: int, ctime: int, inode: int) -> None:
    found = SimpleNamespace(st_size=size, st_mtime_ns=mtime, st_ctime_ns=ctime, st_ino=inode)
    signature = Signature.of(found)  # type: ignore[arg-type]
    assert all(-(2**63) <= value < 2**63 for value in signature)
    db = sqlite3.connect(":memory:")
    assert tuple(db.execute("SELECT ?, ?, ?, ?", signature).fetchone()) == signature
    assert parse_time(iso_from_ns(signature.mtime_ns)) is not None


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_inodes_stay_different(one: int, other: int) -> None:
    first, second = (
        Signature.of(SimpleNamespace(st_size=0, st_mtime_ns=0, st_ctime_ns=0, st_ino=n)) for n in (one, other)
    )  # type: ignore[arg-type]
    assert (first == second) == (one == other)


ODD_TIMES = [
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "2026-02-30",
    "0000",
    "1e9",
    "-1",
    "now",
    "24:00",
]
TIMES = st.one_of(st.sampled_from(ODD_TIMES), st.text(max_size=12), st.datetimes().map(str))


@given(TIMES)
def test_any_text_is_a_time_or_none(text: str) -> None:
    moment = parse_time(text)
    assert moment is None or parse_time(iso(moment)) is not None


ODD_YAML = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.tuples(st.sampled_from(["created", "updated", "date", "tags", "aliases", "title", "cao", "x"]), TIMES),
        max_size=4,
    ).map(lambda pairs: "".join(f"{name}: {value}\n" for name, value in pairs)),
    st.sampled_from(
        [
            f"n: 0x{'f' * 9_000}\n",
            "n: 1e999\n",
            'title: "\\uD83D"\n',
            'aliases: ["\\uDC08"]\n',
            "cao: {key: k, links: [{to: x, confidence: 1e999}]}\n",
            "cao: {links: [{to: x, confidence: .nan}]}\n",
            "? [a, b]\n: c\n",
            "a: &a [*a]\n",
        ]
    ),
)
ODD_NOTES = st.one_of(
    st.binary(max_size=80),
    ODD_YAML.map(lambda text: f"---\n{text}\n---\nbody\n".encode("utf-8", "surrogatepass")),
    TIMES.map(lambda text: f"## {text}\nsection\n".encode("utf-8", "surrogatepass")),
)
CANVAS = st.sampled_from(
    [
        '{"nodes":[{"type":"file","file":"\\ud83d.md"}]}',
        '{"nodes":[{"type":"text","text":"[[\\udc08]]"}]}',
        "[NaN",
        "{}",
    ]
)


@settings(max_examples=60)
@given(st.lists(st.tuples(ODD_NOTES, st.integers(-(2**40), 2**40)), min_size=1, max_size=6), CANVAS)
def test_no_note_stops_the_others(notes: list[tuple[bytes, int]], canvas: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.write("good.md", "# Good\n\nplain fact about pluto\n")
        world.write("board.canvas", canvas)
        for number, (data, seconds) in enumerate(notes):
            with suppress(OSError, OverflowError):  # a file system may not hold the time
                os.utime(world.write(f"odd{number}.md", data), (seconds, seconds))
        assert "good.md" in world.recall("pluto")
        assert world.is_verified() == []
        with world.open() as memory:
            hits = memory.list(NoteFilter(), 0).hits
            assert all(parse_time(hit.updated_at) and parse_time(hit.created_at) for hit in hits)
            json.dumps([hit_json(hit) for hit in hits], ensure_ascii=False, allow_nan=False).encode("utf-8")
            assert "note_unreadable" not in {row.finding.code for row in memory.findings()}
