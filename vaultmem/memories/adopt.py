"""Adopting a CAO home: its topics are used in place, and what only its database knows is taken over once."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass

from vaultmem.access.session import Session
from vaultmem.base.clock import now
from vaultmem.base.errors import UsageError
from vaultmem.base.times import iso
from vaultmem.base.values import Binding
from vaultmem.health.status import native_row
from vaultmem.notes.links.edges import VAULT_ORIGIN, edge_id
from vaultmem.state.cao import read_cao_state


@dataclass(frozen=True, slots=True)
class Adopted:
    """What was taken over, and how many topics are there and shown."""

    topics: int
    hidden: int
    counts: int
    rejected: int
    aliases: int
    problem: str = ""


def check_cao_home(folder: str) -> str:
    """Return the real path of a CAO home. Raises UsageError when it is none."""
    path = os.path.realpath(os.path.expanduser(folder))
    if not os.path.isdir(os.path.join(path, "memory")):
        raise UsageError(f"{folder} has no memory folder, so it is no CAO home", "Give the folder that holds memory/")
    return path


def adopt(session: Session) -> Adopted:
    """Take over counts, rejections and aliases of the adopted home; a second run adds only what is new."""
    problem = ""
    memory = session.state.memory
    time = iso(now())
    counts = rejected = aliases = 0
    try:
        found = read_cao_state(session.config.adopted)
    except sqlite3.Error as error:
        problem = f"its database can't be read ({error}); topics are used all the same, counts start at zero"
    else:
        counts = memory.adopt_counts(found.counts)
        ids = [edge_id(Binding(row[0], row[1] or None), *row[2:5], VAULT_ORIGIN) for row in found.rejected]
        rejected = memory.reject_edges(ids, time)
        memory.add_aliases({alias: (project, kind) for alias, project, kind in found.aliases}, time)
        aliases = len(found.aliases)
    session.sync()
    wiki = native_row(session.connection())
    return Adopted(wiki["topics"], wiki["hidden"], counts, rejected, aliases, problem)
