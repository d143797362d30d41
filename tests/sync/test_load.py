"""The load of an empty index writes terms while it reads: it must come to what two small steps come to."""

from __future__ import annotations

import pytest

from tests.conftest import World
from vaultmem.memory import open_memory
from vaultmem.notes.keys import derived_key
from vaultmem.ops.filters import NoteFilter
from vaultmem.sync.progress import Work

PLAIN = 1_150
BLOCK = "---\ncao:\n  key: {key}\n---\n# {key}\nheron {number}\n"


def awkward(world: World) -> None:
    """Write notes whose key, place or standing is only known when all of them are: what was written early is wrong."""
    world.write("one/claims.md", BLOCK.format(key="same-key", number=1))
    world.write("two/claims.md", BLOCK.format(key="same-key", number=2))
    world.write("one/victim.md", "# victim\nheron pump\n")
    world.write("two/thief.md", BLOCK.format(key=derived_key("one/victim.md"), number=3))
    world.write("three/Twin.md", "# twin\nheron\n")
    world.write("three/twin.md", "# twin\nheron\n")
    world.write("three/secret.md", "# keys\nAKIA" + "Q7ZX3RT5WV9YB2MN" + " heron\n")
    world.write("three/picture.png", b"\x89PNG")


def test_a_load_at_once_equals_small_steps(world: World) -> None:
    awkward(world)
    for number in range(0, PLAIN, 2):
        world.write(f"plain/n{number}.md", f"# n{number}\nheron {number} [[n{(number * 7) % PLAIN}]]\n")
    world.reconcile()
    for number in range(1, PLAIN, 2):
        world.write(f"plain/n{number}.md", f"# n{number}\negret {number} [[n{(number * 3) % PLAIN}]]\n")
    world.reconcile()
    assert world.is_verified() == []  # the fresh index it is compared with is loaded at once
    codes = world.codes()
    assert codes["key_collision"] == {"one/claims.md", "two/claims.md"}
    assert "secret_detected" in codes
    with world.open() as memory:
        hits = {hit.path: hit.key for hit in memory.list(NoteFilter(), 0).hits}
    assert hits["two/thief.md"] == derived_key("one/victim.md")
    assert hits["one/victim.md"] != derived_key("one/victim.md")
    assert world.recall("heron pump")[0] == "one/victim.md"


def test_a_load_that_fails_leaves_nothing(world: World) -> None:
    """A reader is interrupted in the middle: the next run begins anew, and nothing stays locked."""
    for number in range(PLAIN):
        world.write(f"n{number}.md", f"# n{number}\nheron\n")

    def interrupt(phase: str, done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with open_memory(str(world.home), work=Work(interrupt)) as memory, pytest.raises(KeyboardInterrupt):
        memory.reconcile()
    assert len(world.recall("heron", limit=100)) == 100
    assert world.is_verified() == []
