"""Read changed files: here for few, in reader processes for many.

Processes are plain children with pipes (`sync.worker`), so it does not matter whether the platform
forks or spawns, nor how our own program was started. A reader that fails is replaced by reading here.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from vaultmem.config_rules import VaultConfig
from vaultmem.model import SourceFile
from vaultmem.operations import FileFacts
from vaultmem.sync.facts import FactsReader, PreparedStore

PARALLEL_FROM = 600
"""Fewer files are read faster than processes start."""
MAX_READERS = 4
_CHUNK = 48
_Answer = tuple[list[FileFacts], list[bytes]]


Ready = Callable[[Sequence[FileFacts]], None]


def read_files(
    vault: VaultConfig,
    files: Sequence[SourceFile],
    store: PreparedStore,
    progress: Callable[[int], None],
    ready: Ready = lambda facts: None,
) -> list[FileFacts]:
    """Return the facts of `files` in their order; what was parsed goes to `store`.

    `ready` is called with parts of the facts in that order, as soon as they are there.
    """
    to_open = sum(1 for file in files if file.kind != "other")
    readers = min(MAX_READERS, os.cpu_count() or 1)
    if to_open < PARALLEL_FROM or readers < 2 or not sys.executable:
        reader = FactsReader(vault, store)
        try:
            facts = reader.read_all(files, progress)
        finally:
            reader.close()
        ready(facts)
        return facts
    return _read_parallel(vault, files, store, progress, ready, readers)


def _read_parallel(
    vault: VaultConfig,
    files: Sequence[SourceFile],
    store: PreparedStore,
    progress: Callable[[int], None],
    ready: Ready,
    readers: int,
) -> list[FileFacts]:
    chunks = [files[start : start + _CHUNK] for start in range(0, len(files), _CHUNK)]
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(chunks)):
        todo.put(number)
    done: queue.SimpleQueue[tuple[int, _Answer | None]] = queue.SimpleQueue()
    processes = [_start() for _ in range(readers)]
    threads = [threading.Thread(target=_drive, args=(p, vault, chunks, todo, done), daemon=True) for p in processes]
    for thread in threads:
        thread.start()
    results: list[list[FileFacts] | None] = [None for _ in chunks]
    told = 0
    here = FactsReader(vault, store)
    try:
        for _ in chunks:
            number, answer = done.get()
            results[number] = (
                here.read_all(chunks[number], lambda count: None) if answer is None else _kept(answer, store)
            )
            progress(len(chunks[number]))
            while told < len(chunks) and (part := results[told]) is not None:
                ready(part)
                told += 1
    finally:
        here.close()
        for process in processes:
            process.kill()
            process.wait()
    return [facts for result in results if result is not None for facts in result]


def _kept(answer: _Answer, store: PreparedStore) -> list[FileFacts]:
    facts, notes = answer
    refs = [store.put(note) for note in notes]
    return [replace(fact, ref=refs[fact.ref]) if fact.ref >= 0 else fact for fact in facts]


def _start() -> subprocess.Popen[bytes]:
    code = f"import sys; sys.path[:] = {sys.path!r}; from vaultmem.sync.worker import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is the parent's business
    )


def _drive(
    process: subprocess.Popen[bytes],
    vault: VaultConfig,
    chunks: Sequence[Sequence[SourceFile]],
    todo: queue.SimpleQueue[int],
    done: queue.SimpleQueue[tuple[int, _Answer | None]],
) -> None:
    """Feed one reader; a chunk that it fails at is answered with None, as are all after that."""
    assert process.stdin is not None and process.stdout is not None
    working = True
    first = True
    while True:
        try:
            number = todo.get_nowait()
        except queue.Empty:
            return
        answer: _Answer | None = None
        if working:
            try:
                if first:
                    pickle.dump(vault, process.stdin)
                    first = False
                pickle.dump(list(chunks[number]), process.stdin, pickle.HIGHEST_PROTOCOL)
                process.stdin.flush()
                answer = pickle.load(process.stdout)
            except (OSError, EOFError, pickle.UnpicklingError):
                working = False
        done.put((number, answer))
