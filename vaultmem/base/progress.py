"""Progress of a run as a face may show it; apart, since faces name it before they need an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Work:
    """`report` gets a phase's name, how much is done, and how much there is."""

    report: Callable[[str, int, int], None] = lambda phase, done, total: None

    def counter(self, phase: str, total: int) -> Callable[[int], None]:
        """Return what takes how much more of a phase is done, and reports the sum."""
        done = 0

        def count(more: int) -> None:
            nonlocal done
            done += more
            self.report(phase, done, total)

        return count
