"""The best matches of a query without scoring all of them, on any engine, exactly.

Scoring is what a query of common words pays for (2–3 µs a match); counting is nearly free. So with
many matches only those notes are scored in which a word stands out (`text.prominence`). Notes
without the marks that were looked for can't score above a bound; a first look at few notes tells
which bound is low enough, the second looks at just the notes that can reach above it.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from vaultmem.base.values import Binding
from vaultmem.index.engines.expression import Expression, all_of, any_of, of_clauses, phrases_of
from vaultmem.index.engines.protocol import K1, Filter, Row, SearchEngine, Statistics, inverse_frequency, rounded
from vaultmem.index.queries import bindings_present
from vaultmem.text.prominence import LEVELS, MARKS, TYPICAL_TOKENS
from vaultmem.text.terms import Clause, Phrase

BOUNDED_FROM = 1_500
"""So many matches (times the square of the clauses) are scored at once: that takes as long as finding bounds."""
FEW = 2_000
"""So many matches of phrases are all fetched in one pass, without counting them first."""
RARE = 400
"""Where any phrase will do, one in so few notes is looked for everywhere, not only where it stands out."""
_FIRST_LOOKS = (5.0, 2.0, 1.2)
"""The first look is at about so many times the notes that are wanted, if there are as many: about a millisecond."""
EVERYWHERE = -1
"""The level of a word that is looked for in all notes that have it; of use only where any word will do."""
_LIGHT = 0.02
"""A word that adds at most this share of what the heaviest adds (one in most notes) is not looked for."""
_WORTH = 0.5
"""Looking at prominent notes only must leave out at least the rest of the matches."""
_MOST_COUNTS = 50_000
_SIDE_BY_SIDE = 1 / 20
"""In so many of the notes with two words that have nothing to do with each other they stand side by side."""
_SPARE = 16
"""So many more than the limit are asked for, to see whether others tie with the last one."""
_ALL_NOTES = Filter()


class Counts:
    """In how many notes a phrase is, and whose notes there are, kept while the index says the same: words recur."""

    def __init__(self) -> None:
        self._digest = ""
        self._known: dict[Phrase, int] = {}
        self._bindings: frozenset[Binding] | None = None

    def refresh(self, digest: str) -> None:
        """Forget everything when the index has another digest, or when it has become much."""
        if digest != self._digest or len(self._known) > _MOST_COUNTS:
            self._known.clear()
            self._digest, self._bindings = digest, None

    def of(self, engine: SearchEngine, connection: sqlite3.Connection, phrase: Phrase) -> int:
        """Return the number of notes with a phrase."""
        known = self._known.get(phrase)
        if known is None:
            known = self._known[phrase] = engine.count(connection, phrase, _ALL_NOTES)
        return known

    def bindings(self, connection: sqlite3.Connection) -> frozenset[Binding]:
        """Return whose memories the index holds."""
        if self._bindings is None:
            self._bindings = frozenset(bindings_present(connection))
        return self._bindings


@dataclass(frozen=True, slots=True)
class Found:
    """Rows best first, and how many matches there are in all."""

    rows: list[Row]
    total: int


def best(
    engine: SearchEngine,
    connection: sqlite3.Connection,
    clauses: tuple[Clause, ...],
    any_clause: bool,
    where: Filter,
    limit: int,
    counts: Counts | None = None,
    known: int = 0,
) -> Found:
    """Return the `limit` best rows, with all rows that tie with the last one, and the number of matches.

    `counts` are those of this index as it is now (None: nothing is known of it yet); `known`: of so many
    matches the caller has the rows, and wants none where there are no more.
    """
    expression = of_clauses(clauses, any_clause)
    counts = counts or Counts()
    many = BOUNDED_FROM * len(clauses) ** 2
    # counting is nearly free but for phrases, where it takes as long as scoring
    adjacent = any(len(phrase.tokens) > 1 for phrase in phrases_of(expression))
    if adjacent and _likely_total(engine, connection, clauses, any_clause, counts) <= FEW:
        everything = engine.few(connection, expression, where, FEW)
        if everything is not None:
            rows = sorted(_rounded(everything), key=lambda row: -row[1])
            return Found(_with_ties(rows, limit), len(rows))
    if isinstance(expression, Phrase) and not where.sql:
        total = counts.of(engine, connection, expression)
    else:
        total = engine.count(connection, expression, where)
    if total <= known:
        return Found([], total)
    if total > max(many, limit):
        found = _Bounded(engine, connection, expression, any_clause, where, total, counts).best(limit)
        if found is not None:
            return Found(_with_ties(found, limit), total)
    wanted = limit + _SPARE
    while True:
        rows = _rounded(engine.ranked(connection, expression, where, wanted))
        if len(rows) < wanted or rows[limit - 1][1] != rows[-1][1]:
            return Found(_with_ties(rows, limit), total)
        wanted *= 4


def _likely_total(
    engine: SearchEngine,
    connection: sqlite3.Connection,
    clauses: tuple[Clause, ...],
    any_clause: bool,
    counts: Counts,
) -> float:
    """Return about how many notes match, as if words were independent of each other."""
    rows = engine.statistics(connection).rows
    if not rows:
        return 0.0
    shares = []
    for clause in clauses:
        share = 0.0
        for phrase in clause:
            parts = [Phrase((token,)) for token in phrase.tokens[:-1]]
            parts.append(Phrase(phrase.tokens[-1:], phrase.prefix))
            adjacent = _SIDE_BY_SIDE ** (len(parts) - 1) if phrase.tokens[0].isascii() else 1.0
            share += adjacent * math.prod(counts.of(engine, connection, part) / rows for part in parts)
        shares.append(share)
    return rows * (sum(shares) if any_clause else math.prod(shares))


def _rounded(rows: list[Row]) -> list[Row]:
    return [(rowid, rounded(value)) for rowid, value in rows]


def _with_ties(rows: list[Row], limit: int) -> list[Row]:
    least = rows[min(limit, len(rows)) - 1][1] if rows else 0.0
    return [row for row in rows if row[1] >= least]


@dataclass(slots=True)
class _Word:
    """A phrase of the expression: what it adds at most, and in how many notes it stands out, by level.

    `having` is the number of notes with it; `level` the one from which it is looked for: 0 the lowest,
    len(LEVELS) not at all, EVERYWHERE where it does not stand out too.
    """

    phrase: Phrase
    token: str
    having: int
    most: float
    bounds: list[float]
    marked: list[int]
    level: int = 0

    def bound(self, level: int) -> float:
        """Return what it adds at most to a note in which it does not stand out at a level."""
        if level == EVERYWHERE:
            return 0.0
        return self.bounds[level] if level < len(LEVELS) else self.most

    def number(self, level: int) -> int:
        """Return in how many notes it stands out from a level upwards."""
        return self.having if level == EVERYWHERE else sum(self.marked[level:])


class _Bounded:
    """One expression with many matches."""

    def __init__(
        self,
        engine: SearchEngine,
        connection: sqlite3.Connection,
        expression: Expression,
        any_clause: bool,
        where: Filter,
        total: int,
        counts: Counts,
    ) -> None:
        self.engine = engine
        self.connection = connection
        self.expression = expression
        self.any_clause = any_clause
        self.where = where
        self.total = total
        self.counts = counts
        self.rare: list[Phrase] = []
        self.words: list[_Word] = []
        self.extra = 0.0
        """What phrases that are not looked for add at most."""

    def best(self, limit: int) -> list[Row] | None:
        """Return rows, best first, of which the `limit` best (with ties) are those of all matches; None: no gain."""
        self._measure()
        first = self._first_look(limit)
        if first is None:
            return None
        some, rows = first
        least = rows[limit - 1][1]
        if some == self._looked_for() and least > self._sum_of_bounds():
            return rows
        if not self._lower_levels(least):
            return None
        rows = self._scored(self._looked_for())
        return rows if len(rows) >= limit else None

    # -- what is known of the words ---------------------------------------------------------------

    def _measure(self) -> None:
        statistics = self.engine.statistics(self.connection)
        for phrase in phrases_of(self.expression):
            having = self.counts.of(self.engine, self.connection, phrase)
            if not having:
                continue
            if self.any_clause and having <= RARE:
                self.rare.append(phrase)
                continue
            most = inverse_frequency(statistics.rows, having) * (K1 + 1)
            if phrase.prefix:
                self.extra += most
            else:
                self.words.append(self._word(phrase, having, most, statistics))
        heaviest = max((word.most for word in self.words), default=0.0)
        self.extra += sum(word.most for word in self.words if word.most < _LIGHT * heaviest)
        self.words = [word for word in self.words if word.most >= _LIGHT * heaviest]

    def _word(self, phrase: Phrase, having: int, most: float, statistics: Statistics) -> _Word:
        """Measure a word; a phrase stands out only where each of its tokens does, so one of them will do."""
        token = max(phrase.tokens, key=len)
        longer = max(1.0, statistics.mean_tokens / TYPICAL_TOKENS)
        values = [level / K1 * longer for level in LEVELS]
        marked = [self.counts.of(self.engine, self.connection, Phrase((mark + token,))) for mark in MARKS]
        return _Word(phrase, token, having, most, [most * x / (x + 1) for x in values], marked)

    # -- levels -----------------------------------------------------------------------------------

    def _first_look(self, limit: int) -> tuple[Expression, list[Row]] | None:
        """Return what was looked for, and few matches, whose `limit` best tell what is to be beaten; None: too few.

        Notes in which all words stand out tell most; where these are too few, those with any of them.
        """
        for joined, looked_for in ((math.prod, self._standing_out), (sum, self._looked_for)):
            level = self._level_with(limit, joined)
            if level >= 0:
                self._set_levels(level)
                some = looked_for()
                rows = self._scored(some)
                if len(rows) >= limit:
                    return some, rows
        return None

    def _level_with(self, limit: int, joined: Callable[[list[float]], float]) -> int:
        """Return the highest level with a good many notes, as if words were independent of each other; -1: none."""
        for times in _FIRST_LOOKS if self.words else ():
            for level in reversed(range(len(LEVELS))):
                shares = [word.number(level) / word.having for word in self.words]
                if joined(shares) * self.total >= times * limit:
                    return level
        return -1

    def _set_levels(self, level: int) -> None:
        for word in self.words:
            word.level = level

    def _sum_of_bounds(self) -> float:
        return rounded(self.extra + sum(word.bound(word.level) for word in self.words)) * (1 + 1e-8)

    def _lower_levels(self, least: float) -> bool:
        """Choose the levels that need the fewest notes looked at, with bounds below `least`; tell if it pays.

        Starting from the lowest levels, the step that spares the most notes for its bound goes first.
        """
        self._set_levels(EVERYWHERE if self.any_clause else 0)
        if self._sum_of_bounds() >= least:
            return False
        while True:
            steps = []
            for word in self.words:
                if word.level < len(LEVELS):
                    gain = word.number(word.level) - word.number(word.level + 1)
                    price = word.bound(word.level + 1) - word.bound(word.level)
                    steps.append((gain / max(price, 1e-12), word))
            for _, word in sorted(steps, key=lambda step: -step[0]):
                word.level += 1
                if self._sum_of_bounds() < least:
                    break
                word.level -= 1
            else:
                break
        return sum(word.number(word.level) for word in self.words) < _WORTH * self.total

    # -- rows -------------------------------------------------------------------------------------

    def _marks(self, word: _Word) -> list[Expression]:
        if word.level == EVERYWHERE:
            return [word.phrase]
        return [Phrase((mark + word.token,)) for mark in MARKS[word.level :]]

    def _standing_out(self) -> Expression:
        """Return the expression of notes in which every word stands out at its level."""
        return all_of(any_of(self._marks(word)) for word in self.words)

    def _looked_for(self) -> Expression:
        """Return what is looked for at the present levels."""
        return any_of([*self.rare, *(mark for word in self.words for mark in self._marks(word))])

    def _scored(self, some: Expression) -> list[Row]:
        """Return all matches with `some` of what is looked for, best first.

        Marks weigh nothing, but a phrase that is looked for everywhere stands in both halves and is counted
        twice: what it adds is taken off again.
        """
        rows = self.engine.ranked(self.connection, all_of([some, self.expression]), self.where)
        if not set(phrases_of(self.expression)).isdisjoint(phrases_of(some)):
            doubled = dict(self.engine.ranked(self.connection, some, self.where))
            rows = [(rowid, value - doubled.get(rowid, 0.0)) for rowid, value in rows]
        rows = _rounded(rows)
        rows.sort(key=lambda row: -row[1])
        return rows
