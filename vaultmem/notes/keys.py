"""Keys and ids of notes and edges: all are functions of paths and texts.

Source: reference/vault.md, "Identity"; memory-facts.md, "Scopes, keys, identity".
"""

from __future__ import annotations

import hashlib
import re

KEY = re.compile(r"^[a-z0-9-]{1,60}$")
_NOT_KEY = re.compile(r"[^a-z0-9]+")
_STEM_CHARS = 51


def is_key(text: object) -> bool:
    """Tell whether `text` is a valid authored key."""
    return isinstance(text, str) and KEY.match(text) is not None and not text.endswith("\n")


def derived_key(rel_path: str, suffix: int = 0) -> str:
    """Return the key of a note without an authored one: cleaned stem and 8 hex of its path's hash.

    `rel_path`: NFC, relative to the mapping, with `.md`. `suffix` (from 2) makes another key of
    the same form where the plain one is taken by a carried identity.
    """
    stem = rel_path.rpartition("/")[2]
    stem = stem[:-3] if stem.lower().endswith(".md") else stem
    slug = _NOT_KEY.sub("-", stem.lower()).strip("-") or "note"
    source = rel_path if suffix < 2 else f"{rel_path}\0{suffix}"
    digest = hashlib.sha256(source.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{slug[:_STEM_CHARS]}-{digest}"


def note_uid(vault: str, scope: str, scope_id: str | None, key: str) -> str:
    """Return the 64-hex identity of a note."""
    return hashlib.sha256("\0".join((vault, scope, scope_id or "", key)).encode()).hexdigest()


def stored_key(text: str) -> str:
    """Return the key that a caller's key text means: base name, lower case, a-z 0-9 - only, at most 60.

    Text that leaves nothing gets `note-<8 hex>`, so that non-Latin keys work (memory-facts.md).
    """
    cleaned = text.replace("\0", "").rpartition("/")[2].lower()
    slug = _slug(cleaned)
    return slug or f"note-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"


def automatic_key(content: str) -> str:
    """Return the key of a content stored without one: its first six words, or a hash of it."""
    slug = _slug("-".join(content.split()[:6]).lower())
    return slug or f"note-{hashlib.sha256(content.strip().encode('utf-8', 'replace')).hexdigest()[:8]}"


def _slug(text: str) -> str:
    kept = re.sub(r"[^a-z0-9-]", "", re.sub(r"\s+", "-", text))
    return re.sub(r"-+", "-", kept).strip("-")[:60].strip("-")
