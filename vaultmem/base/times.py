"""Times as text: UTC, ISO 8601, whole seconds (the form of section headings, wiki-format.md)."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(moment: datetime) -> str:
    """Return `2026-11-30T09:00:00Z`: UTC, whole seconds (the headings' form, wiki-format.md)."""
    return moment.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"


def iso_from_ns(time_ns: int) -> str:
    """Return the ISO text of a file time in nanoseconds; times outside the calendar become 1970."""
    try:
        return iso(datetime.fromtimestamp(time_ns / 1e9, UTC))
    except (OverflowError, ValueError, OSError):
        return "1970-01-01T00:00:00Z"


def parse_time(text: str) -> datetime | None:
    """Read an ISO 8601 date or time; one without an offset means UTC. None when it is no time that UTC can tell."""
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):  # an offset may lead out of the years 1 to 9999
        return None
