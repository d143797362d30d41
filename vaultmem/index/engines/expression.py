"""Full-text expressions as values; each engine writes them in its own syntax."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from vaultmem.text.terms import Clause, Phrase


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part must match."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One part must match."""

    parts: tuple[Expression, ...]


Expression = Phrase | AllOf | AnyOf


def any_of(parts: Iterable[Expression]) -> Expression:
    """Return the alternatives, one alone as itself."""
    listed = tuple(dict.fromkeys(parts))
    return listed[0] if len(listed) == 1 else AnyOf(listed)


def all_of(parts: Iterable[Expression]) -> Expression:
    """Return the conjunction, one part alone as itself."""
    listed = tuple(parts)
    return listed[0] if len(listed) == 1 else AllOf(listed)


def of_clauses(clauses: tuple[Clause, ...], any_clause: bool) -> Expression:
    """Return what clauses ask for: all of them, or any."""
    if any_clause:
        return AnyOf(tuple(phrase for clause in clauses for phrase in clause))
    return all_of(clause[0] if len(clause) == 1 else AnyOf(clause) for clause in clauses)


def phrases_of(expression: Expression) -> list[Phrase]:
    """Return the phrases of an expression in order, repeats too: each of them scores."""
    if isinstance(expression, Phrase):
        return [expression]
    return [phrase for part in expression.parts for phrase in phrases_of(part)]


def written(expression: Expression, phrase: Callable[[Phrase], str]) -> str:
    """Return an expression as text, with AND, OR and parentheses; `phrase` writes the phrases."""
    if isinstance(expression, Phrase):
        return phrase(expression)
    sign = " AND " if isinstance(expression, AllOf) else " OR "
    parts = [written(part, phrase) for part in expression.parts]
    return "(" + sign.join(parts) + ")"
