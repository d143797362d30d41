"""Debug views that need no configuration: how one note is read, where a folder's links lead."""

from __future__ import annotations

import os
from typing import Any

from vaultmem.base.errors import UsageError
from vaultmem.base.files import open_root, read_file
from vaultmem.base.values import Link
from vaultmem.notes.links.resolve import resolve_path
from vaultmem.notes.links.wikilinks import fold
from vaultmem.notes.parse import parse_canvas, parse_note
from vaultmem.settings.rules import MappingConfig, VaultConfig
from vaultmem.sync.walk.walk import scan_vault

MAX_BYTES = 16 * 1_048_576


def debug_parse(path: str) -> dict[str, Any]:
    """Return `vaultmem.parse/1` of a file. Raises UsageError when it is no readable file."""
    folder, name = os.path.split(os.path.abspath(path))
    try:
        fd = open_root(folder)
        try:
            found = read_file(fd, name, MAX_BYTES)
        finally:
            os.close(fd)
    except FileNotFoundError:
        raise UsageError(f"{path} is not there") from None
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None
    if found is None:
        raise UsageError(f"{path} is larger than {MAX_BYTES} bytes")
    note = parse_note(found.data, name)
    return {
        "schema": "vaultmem.parse/1",
        "title": note.title,
        "frontmatter": dict(note.frontmatter) if note.frontmatter is not None else None,
        "aliases": list(note.aliases),
        "tags": list(note.tags),
        "frontmatter_tags": list(note.frontmatter_tags),
        "headings": [{"level": h.level, "text": h.text, "line": h.line} for h in note.headings],
        "links": [_link(link) for link in note.links],
        "blocks": list(note.blocks),
        "cao": _cao(note.cao),
        "findings": [
            {"code": f.code, "severity": f.severity, "line": f.line, "message": f.message} for f in note.findings
        ],
        "body": note.body,
    }


def _link(link: Link) -> dict[str, Any]:
    row: dict[str, Any] = {
        "raw": link.raw,
        "link": link.link,
        "kind": link.kind,
        "embed": link.embed,
        "path": link.path,
        "subpath": link.subpath,
        "display": link.display,
        "line": link.line,
    }
    if link.kind == "frontmatter":
        row["key"] = link.key
    return row


def _cao(block: Any) -> dict[str, Any] | None:
    if block is None:
        return None
    return {
        "key": block.key,
        "type": block.type,
        "managed": block.managed,
        "links": [
            {"to": row.to, "type": row.type, "status": row.status, "origin": row.origin, "confidence": row.confidence}
            for row in block.links
        ],
    }


def debug_resolve(folder: str) -> dict[str, Any]:
    """Return `vaultmem.resolve/1` of a plain folder taken as one vault. Raises UsageError."""
    root = os.path.realpath(folder)
    if not os.path.isdir(root):
        raise UsageError(f"{folder} is not a folder")
    vault = VaultConfig(
        "debug",
        root,
        mappings=(MappingConfig(".", "global"),),
        allow_hardlinks=True,
        obsidian_excludes=False,
        max_notes=2_000_000,
    )
    scan = scan_vault(vault, {})
    names: dict[str, list[str]] = {}
    for file in scan.changed:
        names.setdefault(fold(file.path.rpartition("/")[2]), []).append(file.path)
    links: dict[str, tuple[Link, ...]] = {}
    aliases: dict[str, list[str]] = {}
    fd = open_root(root)
    try:
        for file in scan.changed:
            if file.kind == "other":
                continue
            found = read_file(fd, file.raw_path, MAX_BYTES)
            if found is None:
                continue
            if file.kind == "canvas":
                links[file.path] = parse_canvas(found.data)
                continue
            note = parse_note(found.data, file.path.rpartition("/")[2])
            links[file.path] = note.links
            for alias in note.aliases:
                aliases.setdefault(fold(alias), []).append(file.path)
    finally:
        os.close(fd)
    raw = {file.path: file.raw_path for file in scan.changed}
    return {
        "schema": "vaultmem.resolve/1",
        "notes": {
            raw[path]: [_on_disk(_resolved(link, path, names, aliases), raw) for link in found]
            for path, found in links.items()
        },
    }


def _on_disk(row: dict[str, Any], raw: dict[str, str]) -> dict[str, Any]:
    """Spell the paths of a row as they are on disk."""
    target = raw[row["target"]] if row["target"] is not None else None
    return {**row, "target": target, "candidates": [raw[path] for path in row["candidates"]]}


def _resolved(link: Link, source: str, names: dict[str, list[str]], aliases: dict[str, list[str]]) -> dict[str, Any]:
    path = "/" + link.path.lstrip("/") if link.kind == "canvas" and link.embed else link.path
    found = resolve_path(path, source, lambda name: names.get(name, []))
    state, via, target, candidates = found.state, found.via, found.target, list(found.candidates)
    if target is None and fold(link.path) in aliases:
        matching = sorted(aliases[fold(link.path)])
        state, via, target, candidates = "alias", "alias", matching[0], matching if len(matching) > 1 else []
    elif target is not None and not target.lower().endswith(".md"):
        state = "attachment"
    return {
        "raw": link.raw,
        "link": link.link,
        "path": link.path,
        "kind": link.kind,
        "embed": link.embed,
        "state": state,
        "via": via,
        "target": target,
        "candidates": candidates,
    }
