"""The logical digest: one number for what an index says, whatever its rows' ids are.

The digest is the sum modulo 2^256 of a sha256 for each note (its fields and findings), each
source of links (its links and edges) and each finding of the scan; so it is kept with every
change, and equal for equal answers (design.md §5, "Digest").
"""

from __future__ import annotations

import hashlib
import marshal
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

MODULUS = 1 << 256
_FORMAT = 2
"""Of marshal: the last that writes equal values equally, whether or not they are one object. A third of JSON's time."""


def row_hash(kind: str, values: Sequence[Any]) -> bytes:
    """Return the hash of one row of texts, numbers, None, and lists and tuples of such."""
    return hashlib.sha256(marshal.dumps((kind, *values), _FORMAT)).digest()


def total(parts: Iterable[bytes]) -> int:
    """Return the sum of hashes."""
    return sum(int.from_bytes(part, "big") for part in parts) % MODULUS


def stored_digest(connection: sqlite3.Connection) -> str:
    """Return the digest that is kept with every change, as 64 hex digits."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'digest'").fetchone()
    return str(row[0]) if row else "0" * 64


def summed_digest(connection: sqlite3.Connection) -> str:
    """Return the digest as the sum over the rows' own hashes; equals the stored one if all is well."""
    value = total(row[0] for row in connection.execute("SELECT note_digest FROM note"))
    value += total(row[0] for row in connection.execute("SELECT digest FROM source_digest"))
    value += total(scan_finding_hash(row) for row in connection.execute(SCAN_FINDINGS))
    return f"{value % MODULUS:064x}"


SCAN_FINDINGS = "SELECT vault, path, code, severity, line, message FROM finding WHERE file_id IS NULL"


def scan_finding_hash(row: Sequence[Any]) -> bytes:
    """Return the hash of a finding that belongs to no file row."""
    return row_hash("finding", list(row))
