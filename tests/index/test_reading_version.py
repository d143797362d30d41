"""Notes whose files did not change are not read again, so another reading of them needs another index file."""

from __future__ import annotations

import hashlib

from tests.conftest import REPOSITORY
from vaultmem.index.digest import row_hash
from vaultmem.index.rows import prepare_note
from vaultmem.index.schema import SCHEMA_VERSION
from vaultmem.notes.parse import parse_note

READINGS = {6: "0dccd0f613e06c1a4a9c55325bb24cae886d1db900d5d06da6b63568cd10b07e"}
"""Hash of how the notes in this repository are read, by schema version. Where it changes, so must the version."""


def test_another_reading_has_another_version() -> None:
    digest = hashlib.sha256()
    for folder in ("sample_vault", "tests/data/vaults"):
        for path in sorted((REPOSITORY / folder).rglob("*.md")):
            rel = path.relative_to(REPOSITORY).as_posix()
            prepared = prepare_note(parse_note(path.read_bytes(), path.name), rel)
            digest.update(repr((rel, prepared)).encode())
    assert READINGS.get(SCHEMA_VERSION) == digest.hexdigest()


def test_a_digest_is_of_values_not_of_objects() -> None:
    word = "interned"
    built = "".join(["inter", "ned"])
    assert built is not word
    once = row_hash("note", [word, [word, word], (1, None, True, 0.5), "\ud800é"])
    again = row_hash("note", [built, ["".join(["inter", "ned"]), built], (1, None, True, 1 / 2), "\ud800" + "é"])
    assert once == again == row_hash("no" + "te", [word, [built, word], (1, None, True, 0.5), "\ud800é"])
    assert once.hex() == "a71dad5459c8205eb32b138930d251b5b4dcb7d5826ea284ec6c2af1f3aa5d79"
    assert len({row_hash("a", values) for values in (["1"], [1], [True], [["1"]], ["1", ""], [None])}) == 6
