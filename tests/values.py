"""Short named values for tests of pure rooms."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from vaultmem.base.values import Binding, Signature, SourceFile
from vaultmem.index.operations import FileFacts, KnownFile, key_lookup, lookups_of_path

GLOBAL = Binding("global")
SIGNATURE = Signature(100, 1_000, 1_000, 1)


def facts(path: str, **values: Any) -> FileFacts:
    """A readable note as the scan and the reader give it; its text is told by `content_hash`."""
    file = SourceFile(
        "v",
        path,
        values.pop("raw_path", path),
        values.pop("kind", "note"),
        SIGNATURE,
        values.pop("binding", GLOBAL),
        0,
        values.pop("excluded_by", ""),
    )
    defaults: dict[str, Any] = {"content_hash": f"hash of {path}", "body_size": 100, "outline": "([], [])", "ref": 0}
    return FileFacts(file, "ok", **{**defaults, **values})


def known(id_: int, path: str, key: str, **values: Any) -> KnownFile:
    """A note's row."""
    defaults: dict[str, Any] = {
        "vault": "v",
        "raw_path": path,
        "kind": "note",
        "mtime_ns": 1_000,
        "content_hash": f"hash of {path}",
        "rel": path,
        "binding": GLOBAL,
        "body_size": 100,
        "outline": "([], [])",
    }
    return KnownFile(id=id_, path=path, key=key, **{**defaults, **values})


class FakeIndex:
    """An index in memory, with what planning asks for."""

    def __init__(self, *rows: KnownFile, links: dict[int, tuple[set[str], set[int]]] | None = None) -> None:
        self.rows = rows
        self.links = links or {}
        self.is_empty = not rows

    def files_at(self, vault: str, raw_paths: Collection[str]) -> dict[str, KnownFile]:
        return {row.raw_path: row for row in self.rows if row.vault == vault and row.raw_path in raw_paths}

    def notes_with_key(self, binding: Binding, key: str) -> list[KnownFile]:
        return [row for row in self.rows if row.binding == binding and row.key == key]

    def files_named(self, vault: str, name: str) -> list[KnownFile]:
        return [row for row in self.rows if name in lookups_of_path(vault, row.path)[0].partition(":")[2]]

    def link_sources(self, lookups: Collection[str]) -> set[int]:
        return {source for source, (asked, _) in self.links.items() if asked & set(lookups)}

    def link_sources_to(self, ids: Collection[int]) -> set[int]:
        return {source for source, (_, targets) in self.links.items() if targets & set(ids)}


class FakeIdentities:
    """state.db's identities in memory."""

    def __init__(self, keys: dict[str, str] | None = None, seen: dict[tuple[str, str], int] | None = None) -> None:
        self.keys = keys or {}
        self.seen = seen or {}

    def key_of(self, binding: Binding, rel: str) -> str:
        return self.keys.get(rel, "")

    def first_seen(self, binding: Binding, rel: str, content_hash: str) -> int:
        return self.seen.get((rel, content_hash), 0)


__all__ = ["GLOBAL", "SIGNATURE", "FakeIdentities", "FakeIndex", "facts", "key_lookup", "known", "lookups_of_path"]
