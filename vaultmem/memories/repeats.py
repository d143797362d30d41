"""Near repeats of a text that is about to be stored: named to the caller, never merged.

Two texts are near when the Jaccard index of their token sets is at least 0.8, looked for among the
20 nearest memories of the same scope.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from vaultmem.access.session import Session
from vaultmem.base.values import Binding
from vaultmem.index.engines.protocol import Filter
from vaultmem.index.engines.top_k import best
from vaultmem.notes.sections import escape_content, section_texts
from vaultmem.text.terms import Phrase, document_stream

NEAREST = 20
NEAR = 0.8
_MAX_QUERY_TOKENS = 24


@dataclass(frozen=True, slots=True)
class Repeat:
    """A memory that says nearly the same; `equal`: its newest section is the same text."""

    key: str
    vault: str
    path: str
    equal: bool


def near_repeats(session: Session, binding: Binding, content: str) -> list[Repeat]:
    """Return memories of a binding with a section much like `content`, nearest first; managed ones only are equal."""
    text = escape_content(content).strip()
    tokens = set(document_stream(text).split())
    if not tokens:
        return []
    rarest = sorted(tokens, key=lambda token: (-len(token), token))[:_MAX_QUERY_TOKENS]
    clauses = tuple((Phrase((token,)),) for token in rarest)
    where = Filter("n.scope = ? AND n.scope_id = ?", (binding.scope, binding.scope_id or ""))
    connection = session.connection()
    found: list[tuple[float, Repeat]] = []
    nearest = best(session.database.engine, connection, clauses, True, where, NEAREST).rows[:NEAREST]
    for note_id, _ in nearest:
        row = connection.execute(
            "SELECT key, vault, path, body, body_line, sections, managed FROM note WHERE id = ?", (note_id,)
        ).fetchone()
        sections = section_texts(row[3], row[4], json.loads(row[5])) or [row[3].strip()]
        closest = max(_jaccard(tokens, set(document_stream(section).split())) for section in sections)
        if closest >= NEAR:
            found.append((closest, Repeat(row[0], row[1], row[2], bool(row[6]) and sections[-1].strip() == text)))
    return [repeat for _, repeat in sorted(found, key=lambda item: (-item[0], item[1].key))]


def _jaccard(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0
