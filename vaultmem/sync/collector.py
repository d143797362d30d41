"""The garbage collector while many files are taken in: that makes many objects and hardly a cycle.

Looking at them all again and again costs an eighth of the time; reference counts free nearly all.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY_FILES = 600
_NEW_OBJECTS = 100_000
"""New objects between two looks of the collector; Python's own default is 700."""


def look_rarely() -> None:
    """Let the collector look rarely from now on."""
    gc.set_threshold(_NEW_OBJECTS)


@contextmanager
def rare_collections(files: int) -> Iterator[None]:
    """Let it look rarely for as long as `files` files are taken in, if they are many."""
    kept = gc.get_threshold()
    if files >= MANY_FILES:
        look_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*kept)
