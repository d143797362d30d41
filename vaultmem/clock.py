"""The one clock: UTC times for the whole package, replaceable through VAULTMEM_NOW for tests."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from vaultmem.config import environment_value
from vaultmem.times import parse_time


def now() -> datetime:
    """Return the present time in UTC, or the instant that VAULTMEM_NOW names (ISO 8601)."""
    fixed = environment_value("VAULTMEM_NOW")
    moment = parse_time(fixed) if fixed else None
    return moment or datetime.fromtimestamp(time.time(), UTC)
