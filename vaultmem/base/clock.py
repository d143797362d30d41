"""The one clock: UTC times for the whole package; settings may name an instant that it stands at (VAULTMEM_NOW)."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from vaultmem.base.times import parse_time

_instant: Callable[[], str] = str


def stand_at(instant: Callable[[], str]) -> None:
    """Let `instant()` say at what time (ISO 8601) the clock stands; "" lets it run. Settings call this once."""
    global _instant
    _instant = instant


def now() -> datetime:
    """Return the present time in UTC, or the instant at which the clock stands."""
    fixed = _instant()
    moment = parse_time(fixed) if fixed else None
    return moment or datetime.fromtimestamp(time.time(), UTC)
