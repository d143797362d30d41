"""Link syntax: the text between the brackets into target, heading part and display.

Facts: Obsidian's help page "Internal links"; `parseLinktext` of its API (obsidian.d.ts);
conformance/README.md, "Facts most readers get wrong" (6, 7, 9).
"""

from __future__ import annotations

import re
import unicodedata

from vaultmem.base.values import Link, LinkKind

_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SCHEME = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.-]*:|//)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
MAX_TARGET_CHARS = 256
"""Longer link targets are refused (reference/vault.md, link_target_invalid)."""


def fold(text: str) -> str:
    """Return the form in which names are compared: composed, no-break spaces as blanks, lower case."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text.replace("\u00a0", " ")).lower()


def split_link(link: str) -> tuple[str, str]:
    """Cut a link text at the first `#` into path and subpath (which keeps its `#`)."""
    path, mark, rest = link.partition("#")
    return path.replace("\u00a0", " ").strip(), mark + rest if mark else ""


def default_display(link: str) -> str:
    """Return what Obsidian shows for a link without display text: parts joined by " > "."""
    return " > ".join(part for part in link.split("#") if part) or link


def split_wikilink(inner: str) -> tuple[str, str] | None:
    """Return (link, display) of the text inside `[[ ]]`, or None when it names nothing.

    Only the first bar splits, and a leading one does not (`[[|x]]` is a link named "|x").
    In tables the bar is written `\\|`.
    """
    text = inner.replace("\\|", "|").strip()
    bar = text.find("|", 1)
    link = text if bar < 0 else text[:bar].rstrip()
    if not link:
        return None
    display = text[bar + 1 :].strip() if bar >= 0 else ""
    return link, display or default_display(link)


def wikilink(inner: str, *, embed: bool, line: int, kind: LinkKind = "wikilink", key: str = "") -> Link | None:
    """Return the link of `[[inner]]` (`![[inner]]` when `embed`), or None when it is none."""
    parts = split_wikilink(inner)
    if parts is None:
        return None
    link, display = parts
    path, subpath = split_link(link)
    raw = f"{'!' if embed else ''}[[{inner}]]"
    return Link(raw, link, path, subpath, display, kind, embed, line, key)


def markdown_link(raw: str, destination: str, label: str, *, embed: bool, line: int) -> Link | None:
    """Return the link of a Markdown destination, percent-decoded; None for web links and empty ones."""
    if not destination or _SCHEME.match(destination):
        return None
    link = decode_percent(destination)
    path, subpath = split_link(link)
    return Link(raw, link, path, subpath, label, "markdown", embed, line)


def decode_percent(text: str) -> str:
    """Decode percent codes as UTF-8; a text with any bad code is taken as written."""
    if "%" not in text or _BAD_PERCENT.search(text):
        return text
    from urllib.parse import unquote_to_bytes

    try:
        return unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        return text


def whole_wikilink(value: str) -> str | None:
    """Return the inside of a property value that is exactly one wikilink, else None.

    Source: Obsidian's help page "Properties" (a link must be the whole, quoted value).
    """
    text = value.strip()
    if not (text.startswith("[[") and text.endswith("]]")) or len(text) < 5 or "\n" in text:
        return None
    inner = text[2:-2]
    return None if "[[" in inner or "]]" in inner else inner


def is_bad_target(link: str) -> bool:
    """Tell whether a target is too long or holds control characters."""
    return len(link) > MAX_TARGET_CHARS or _CONTROL.search(link) is not None
