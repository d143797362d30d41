"""Make a vault of any size for the benchmarks: the same bytes for the same size and seed.

Words follow Zipf's law over a made-up vocabulary, lengths are log-normal; there are folders, links,
tags, headings, lists, code, properties, and some Japanese. Facts are planted, each with the question
that should find its note first, so that speed is never bought with worse answers.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from dataclasses import asdict, dataclass
from pathlib import Path

VOCABULARY = 30_000


def _listed(text: str) -> list[str]:
    return text.split()


FUNCTION_WORDS = _listed("the of and to a in is it that for on with as was at by an be this from or are")
ONSETS = _listed("b br c d dr f g gr h k kl l m n p pr r s st t tr v w")
VOWELS = _listed("a e i o u ai ea ou")
CODAS = ["", "", *_listed("n r l s m nd rk st")]
JAPANESE = _listed("検索 記憶 同期 設計 会議 記録 予算 計画 資料 変更 保存 共有 確認 整理 手順 作業")
FACTS = 240


@dataclass(frozen=True)
class Fact:
    """A question and the note that answers it."""

    kind: str
    query: str
    path: str


class Words:
    """Draws words by Zipf's law; rank 0 is the most common."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        syllables = ["".join(parts) for parts in itertools.product(ONSETS, VOWELS, CODAS)]
        made: dict[str, None] = {}
        while len(made) < VOCABULARY:
            made["".join(source.choices(syllables, k=2 + (len(made) > 3_000)))] = None
        self.ranked = list(made)
        weights = [1 / (rank + 3) for rank in range(VOCABULARY)]
        self.cumulative = list(itertools.accumulate(weights))

    def text(self, count: int) -> str:
        """Return running text: every third word is a function word."""
        content = self.source.choices(self.ranked, cum_weights=self.cumulative, k=count)
        little = self.source.choices(FUNCTION_WORDS, k=count // 3 + 1)
        for position, word in enumerate(little):
            content.insert(min(len(content), 3 * position), word)
        return " ".join(content)

    def unique(self) -> str:
        """Return a word that is in no other note."""
        return "".join(self.source.choices("bcdfgklmnprstvz", k=3)) + self.source.choice("aeiou") + f"q{self._next()}"

    def _next(self) -> str:
        self.number = getattr(self, "number", 0) + 1
        letters = ""
        number = self.number
        while number:
            number, digit = divmod(number, 20)
            letters += "bcdfghjklmnpqrstvwxz"[digit]
        return letters


def generate(root: Path, notes: int, seed: int = 7) -> list[Fact]:
    """Write a vault of so many notes, and `facts.json` beside it; return the facts."""
    source = random.Random(seed)
    words = Words(source)
    names = [
        f"{words.ranked[source.randrange(3_000)]} {words.ranked[source.randrange(9_000)]} {n}" for n in range(notes)
    ]
    folders = [
        f"{words.ranked[n]}/{words.ranked[n + 50]}" if n % 3 else words.ranked[n] for n in range(max(4, notes // 250))
    ]
    planted = set(source.sample(range(notes), min(FACTS, notes // 4)))
    facts: list[Fact] = []
    for number, name in enumerate(names):
        folder = folders[number % len(folders)]
        path = f"{folder}/{name}.md"
        lines = _note(source, words, names, name, number)
        if number in planted:
            facts.append(_plant(source, words, lines, path, len(facts)))
        target = root / path
        if number < len(folders):
            target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (root.parent / "facts.json").write_text(json.dumps([asdict(fact) for fact in facts]), encoding="utf-8")
    return facts


def _note(source: random.Random, words: Words, names: list[str], name: str, number: int) -> list[str]:
    """Return the lines of a note: properties in half of them, a heading, paragraphs, lists, now and then code."""
    lines: list[str] = []
    if number % 2:
        tags = f"tags: [{words.ranked[number % 40]}, area/{words.ranked[number % 7]}]"
        lines = ["---", tags, f"created: 2026-0{1 + number % 9}-1{number % 10}", "---"]
    lines += [f"# {name}", ""]
    left = int(min(2_000, max(15, math.exp(source.gauss(5.0, 0.8)))))
    while left > 0:
        size = min(left, source.randint(15, 60))
        left -= size
        lines += [words.text(size) + ".", ""]
        choice = source.random()
        if choice < 0.35:
            lines += [f"See [[{source.choice(names)}]] and [[{source.choice(names)}|{words.text(1)}]].", ""]
        elif choice < 0.5:
            lines += [f"- {words.text(6)}" for _ in range(3)] + [f"- [[{source.choice(names)}]] {words.text(4)}", ""]
        elif choice < 0.6:
            lines += [f"## {words.text(3)}", ""]
        elif choice < 0.63:
            lines += ["```python", f"{words.ranked[5]}_{words.ranked[9]} = {number}", "```", ""]
    if number % 33 == 0:
        lines += ["".join(source.choices(JAPANESE, k=30)), ""]
    return lines


def _plant(source: random.Random, words: Words, lines: list[str], path: str, number: int) -> Fact:
    """Put a fact into a note and return its question."""
    kind = ("rare", "pair", "inflected", "heading", "question", "japanese")[number % 6]
    unique, other = words.unique(), words.ranked[source.randrange(300, 3_000)]
    if kind == "rare":
        query, text = unique, f"The {unique} valve was set by {other}."
    elif kind == "pair":
        one = words.ranked[source.randrange(3_000, 12_000)]
        query, text = f"{one} {other}", f"{one} {other} {one} {other} are kept together here, {one} before {other}."
    elif kind == "inflected":
        query, text = f"{unique}s", f"A {unique} was ordered for {other}."
    elif kind == "heading":
        query, text = f"{unique} {other}", f"## {unique} of {other}"
    elif kind == "question":
        query, text = f"who owns the {unique} {other} plan?", f"Ownership of the {unique} {other} plan lies with Varga."
    else:
        rare = chr(0x9700 + number) + chr(0x9600 + number)
        query, text = rare, f"会議で{rare}の計画を確認した。"
    lines += [text, ""]
    return Fact(kind, query, path)
