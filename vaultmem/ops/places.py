"""Where a memory is written: the managed folder of a vault, or the native wiki."""

from __future__ import annotations

from dataclasses import dataclass

from vaultmem.base.errors import ScopeError, ScopeNotWritable
from vaultmem.base.values import Binding, SourceKind
from vaultmem.notes.wiki.topics import topic_path
from vaultmem.settings.config import Config
from vaultmem.settings.rules import RESERVED_IDS, WILDCARD, VaultConfig, covers


@dataclass(frozen=True, slots=True)
class Place:
    """A file that holds a memory: `path` is relative to the source's root."""

    source: VaultConfig
    binding: Binding
    path: str

    @property
    def kind(self) -> SourceKind:
        """`native` or `vault`."""
        return "native" if self.source.native else "vault"


def is_mapped(config: Config, binding: Binding) -> bool:
    """Tell whether a vault holds the memories of a binding."""
    return any(
        covers((mapping.scope, mapping.scope_id), binding.scope, binding.scope_id)
        for vault in config.vaults
        for mapping in vault.mappings
    )


def place_of(config: Config, binding: Binding, key: str) -> Place:
    """Return where a memory of this binding and key is written.

    Raises ScopeNotWritable when its vault folders are all read-only: it never goes anywhere else.
    """
    read_only: list[str] = []
    for number, vault in enumerate(config.vaults):
        for position, mapping in enumerate(vault.mappings):
            if not covers((mapping.scope, mapping.scope_id), binding.scope, binding.scope_id):
                continue
            if mapping.writable:
                folder = mapping.folder + (f"/{binding.scope_id}" if mapping.scope_id == WILDCARD else "")
                return Place(vault, binding, f"{folder}/{key}.md")
            read_only.append(f"vault[{number}].mapping[{position}] ({mapping.folder})")
    if read_only:
        raise ScopeNotWritable(
            f"No writable folder is mapped to scope {binding.scope}: {', '.join(read_only)} is read-only",
            "Map a folder inside managed_folder to it with writable = true (vaultmem config path)",
        )
    return native_place(config, binding, key)


def native_place(config: Config, binding: Binding, key: str) -> Place:
    """Return where a memory lies, or would lie, in the native wiki. Raises ScopeError for a reserved id."""
    if binding.scope == "project" and binding.scope_id in RESERVED_IDS:
        raise ScopeError(f"The project id {binding.scope_id} is a folder name of the wiki", "Set another project id")
    return Place(config.native, binding, topic_path(binding, key))
