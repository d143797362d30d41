"""Many processes store at once, one of them is killed, and an editor appends to the same notes: nothing is lost.

`VAULTMEM_TEST_PROFILE=long` makes it minutes instead of seconds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import World
from vaultmem.notes.parse import parse_note
from vaultmem.notes.wiki.topics import parse_topic

STORES = 100 if os.environ.get("VAULTMEM_TEST_PROFILE") == "long" else 6
STORER = """
import sys
from vaultmem.base.errors import NoteChangedSinceRead
from vaultmem.memory import open_memory
from vaultmem.memories.store import StoreRequest
home, number, key, scope, scope_id = sys.argv[1:6]
with open_memory(home) as memory:
    for turn in range(int(sys.argv[6])):
        text = f"entry {number}-{turn:03}"
        while True:
            try:
                memory.store(StoreRequest(text, key, scope, scope_id or None))
                break
            except NoteChangedSinceRead:  # the editor was faster three times: nothing was written, it says
                continue
        print(text, flush=True)  # it was accepted
"""


def start(world: World, number: int, key: str, scope: str, scope_id: str) -> subprocess.Popen[str]:
    arguments = [str(world.home), str(number), key, scope, scope_id, str(STORES)]
    return subprocess.Popen(
        [sys.executable, "-c", STORER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("native", [False, True], ids=["vault", "wiki"])
def test_every_accepted_store_and_every_byte_of_an_editor_is_there(world: World, native: bool) -> None:
    scope, scope_id, folder = (
        ("session", "s", world.home / "memory/global/wiki/session/s")
        if native
        else ("global", "", world.vault / "Agent Memory")
    )
    world.reconcile()
    processes = [start(world, one, "shared", scope, scope_id) for one in range(8)]
    processes += [start(world, 10 + one, f"own-{one}", scope, scope_id) for one in range(8)]
    shared = folder / "shared.md"
    lines: list[str] = []
    killed = False
    while any(process.poll() is None for process in processes):
        if shared.exists():
            lines.append(f"a person's line {len(lines)}")
            with shared.open("a", encoding="utf-8") as file:
                file.write(lines[-1] + "\n")
            if not killed:
                processes[3].send_signal(signal.SIGKILL)
                killed = True
        time.sleep(0.05)
    said = [process.communicate() for process in processes]
    assert [err for number, (_, err) in enumerate(said) if number != 3 and err] == []
    assert world.cli("reconcile").code == 0
    everything = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md")))
    for line in [text for out, _ in said for text in out.splitlines()] + lines:
        assert everything.count(f"{line}\n") == 1, line
    assert len([out for out, _ in said if len(out.splitlines()) == STORES]) >= 15
    for path in folder.glob("*.md"):
        data = path.read_bytes()
        note = parse_topic(data, f"global/wiki/session/s/{path.name}") if native else parse_note(data, path.name)
        assert note.sections and not note.quarantine
    assert not list(Path(folder).glob(".vaultmem-*")) and world.is_verified() == []
