"""The words of property values, which a search finds as Obsidian's own does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

ELSEWHERE = frozenset(("cao", "title", "aliases", "tags"))
"""Top-level properties that are no text of the person's, or have a place of their own in the index."""
SEPARATOR = " \u241f "
"""Stands between values, so that no phrase spans two of them."""


def property_text(properties: Mapping[str, Any]) -> str:
    """Return the values of a note's properties as one text; numbers and dates as written, yes and no left out.

    Names of properties are no text, at any depth.
    """
    if not properties:
        return ""
    return SEPARATOR.join(value for _, value in property_values(properties))


def property_values(properties: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (top-level name, text) for each value in order."""
    for name, value in properties.items():
        if name.lower() not in ELSEWHERE:
            for text in _texts(value):
                yield name, text


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value:
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
