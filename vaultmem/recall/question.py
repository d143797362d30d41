"""What a recall looks for, and in which notes: everything that finding candidates needs."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace

from vaultmem.access.filters import NoteFilter, combine, filter_sql, reader_of
from vaultmem.access.session import Session
from vaultmem.access.visibility import Purpose, all_terms_are_visible, may_show
from vaultmem.index.engines.protocol import Filter, SearchEngine
from vaultmem.index.engines.top_k import Counts
from vaultmem.text.terms import Query


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for, and where: an open index with what is known of it, the words, and whose notes may match.

    `where` is the condition of reader and filters; `in_full_text` the same for notes with a term (empty where all of
    them may be shown); `limit` hits are wanted, of `size` candidates; `by_scope`: nearer scopes go first.
    """

    connection: sqlite3.Connection
    engine: SearchEngine
    counts: Counts
    query: Query
    where: Filter
    in_full_text: Filter
    limit: int
    size: int
    by_scope: bool


def question_of(
    session: Session, query: Query, wanted: NoteFilter, purpose: Purpose, limit: int, size: int
) -> Question:
    """Return the question that a caller asks. Raises UsageError for bad filters, ScopeError."""
    reader = reader_of(session, wanted)
    where = combine(may_show(session.config, purpose, reader), filter_sql(wanted))
    connection, counts = session.connection(), session.database.counts()
    all_visible = replace(wanted, everyone=False) == NoteFilter() and all_terms_are_visible(
        purpose, reader, counts.bindings(connection)
    )
    in_full_text = Filter() if all_visible else where
    by_scope = not wanted.scope
    return Question(connection, session.database.engine, counts, query, where, in_full_text, limit, size, by_scope)


def pool_size(limit: int) -> int:
    """Return how many candidates are looked at for `limit` results (seed 001)."""
    return max(limit, min(200, max(50, 3 * limit)))
