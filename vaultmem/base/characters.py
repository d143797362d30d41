"""Characters beyond ASCII: most notes have a handful of them, so rules look at each of those once."""

from __future__ import annotations

from collections.abc import Callable

_ASCII = bytes(range(128))


def beyond_ascii(text: str) -> set[str]:
    """Return the distinct characters of a text that are not ASCII (by way of its bytes: a tenth of a regex's time)."""
    left = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return set(left.decode("utf-8", "surrogatepass"))


def whole(text: str) -> str:
    """Return a text in which two halves of a character (as JSON escapes them) are one, and a lone half is U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def rewritten(text: str, rule: Callable[[str], str]) -> str:
    """Return a text with `rule(character)` for each character beyond ASCII; the rule gives ASCII or the character."""
    if not text.isascii():
        for char in beyond_ascii(text):
            kept = rule(char)
            if kept != char:
                text = text.replace(char, kept)
    return text
