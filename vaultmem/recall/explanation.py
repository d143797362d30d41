"""Why a hit is where it is: its words with the lines that hold them, and the factors of its score."""

from __future__ import annotations

import sqlite3
from typing import Any

from vaultmem.base.values import Hit
from vaultmem.recall.pool import Candidate
from vaultmem.text.terms import Query, inflections

TIERS = ("every word as written", "every word in some form", "the words that exist", "some words", "parts of words")
_MAX_LINES = 3


def explain_hit(connection: sqlite3.Connection, one: Candidate, hit: Hit, query: Query) -> dict[str, Any]:
    """Return tier, lexical strength, age factor, count, whether superseded, and by word its places (path:line)."""
    body, first = connection.execute("SELECT body, body_line FROM note WHERE id = ?", (one.id,)).fetchone()
    lines = [line.lower() for line in body.split("\n")]
    return {
        "tier": TIERS[one.tier],
        "lexical": round(one.lexical, 4),
        "age_factor": round(one.factor, 4),
        "access_count": one.count,
        "superseded": one.superseded,
        "terms": [{"word": word, "places": _places(hit, lines, first, word)} for word in query.words],
    }


def _places(hit: Hit, lines: list[str], first: int, word: str) -> list[str]:
    forms = (word, *inflections(word)[:12])
    found = []
    if any(form in text.lower() for form in forms for text in (hit.title, *hit.tags)):
        found.append(f"{hit.path} (title or tags)")
    at = [number for number, line in enumerate(lines, first) if any(form in line for form in forms)]
    return found + [f"{hit.path}:{number}" for number in at[:_MAX_LINES]]
