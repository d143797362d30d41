"""Notes whose files did not change are not read again, so another reading of them needs another index file."""

from __future__ import annotations

import hashlib

from tests.conftest import REPOSITORY
from vaultmem.index.rows import prepare_note
from vaultmem.index.schema import SCHEMA_VERSION
from vaultmem.notes.parse import parse_note

READINGS = {4: "ea1bab841be6b525217d24892deace1ced803a4f7e858758be150c053e9e7663"}
"""Hash of how the notes in this repository are read, by schema version. Where it changes, so must the version."""


def test_another_reading_has_another_version() -> None:
    digest = hashlib.sha256()
    for folder in ("sample_vault", "tests/data/vaults"):
        for path in sorted((REPOSITORY / folder).rglob("*.md")):
            rel = path.relative_to(REPOSITORY).as_posix()
            prepared = prepare_note(parse_note(path.read_bytes(), path.name), rel)
            digest.update(repr((rel, prepared)).encode())
    assert READINGS.get(SCHEMA_VERSION) == digest.hexdigest()
