"""The one clock: UTC times for the whole package, replaceable through VAULTMEM_NOW for tests."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from vaultmem.config import environment_value


def now() -> datetime:
    """Return the present time in UTC, or the instant that VAULTMEM_NOW names (ISO 8601)."""
    fixed = environment_value("VAULTMEM_NOW")
    if fixed:
        parsed = parse_time(fixed)
        if parsed is not None:
            return parsed
    return datetime.fromtimestamp(time.time(), UTC)


def iso(moment: datetime) -> str:
    """Return `2026-11-30T09:00:00Z`: UTC, whole seconds (the headings' form, wiki-format.md)."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def iso_from_ns(time_ns: int) -> str:
    """Return the ISO text of a file time in nanoseconds; times outside the calendar become 1970."""
    try:
        return iso(datetime.fromtimestamp(time_ns / 1e9, UTC))
    except (OverflowError, ValueError, OSError):
        return "1970-01-01T00:00:00Z"


def parse_time(text: str) -> datetime | None:
    """Read an ISO 8601 date or time; one without an offset means UTC. None when it is no time."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC)
