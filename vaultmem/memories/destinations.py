"""Where a memory is written: the managed folder of a vault, or the native wiki; and why it goes there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vaultmem.access.scopes import check_may_write, resolve_binding
from vaultmem.access.session import Session
from vaultmem.base.errors import ScopeError, ScopeNotWritable, VaultmemError
from vaultmem.base.values import SCOPES, Binding, SourceKind
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


_NAMED = {
    "setting": "the project id is set",
    "git": "from the git remote of the working folder",
    "folder": "from the path of the working folder, which has no git remote",
}


def destinations(session: Session) -> tuple[dict[str, Any], ...]:
    """Return a row a scope: `scope`, `scope_id`, `folder`, `vault`, `why`, or `error` where a store is refused."""
    return tuple(_destination(session, scope) for scope in SCOPES)


def _destination(session: Session, scope: str) -> dict[str, Any]:
    try:
        check_may_write(session.context, scope)
        binding = resolve_binding(session.config, session.context, scope)
        place = place_of(session.config, binding, "key")
    except VaultmemError as error:
        return {"scope": scope, "scope_id": None, "error": str(error)}
    return {
        "scope": scope,
        "scope_id": binding.scope_id,
        "source_kind": place.kind,
        "vault": "" if place.source.native else place.source.id,
        "folder": place.path.rpartition("/")[0],
        "why": _why(session, binding),
    }


def _why(session: Session, binding: Binding) -> str:
    if binding.scope == "project":
        return _NAMED.get(session.project().source, "")
    if binding.scope in ("session", "agent"):
        return f"the {binding.scope} is named by the caller's context"
    return "one for all"
