"""Whose memory a folder is: by the mappings of a vault, or by the native wiki's layout. Pure."""

from __future__ import annotations

from vaultmem.base.values import Binding
from vaultmem.notes.wiki.topics import binding_of_folder
from vaultmem.settings.rules import SCOPE_ID, WILDCARD, VaultConfig, covers, is_below


def mapping_of(vault: VaultConfig, folder: str) -> tuple[int, Binding | None, str]:
    """Return (mapping position, binding, why it has none) of a folder: the deepest mapping wins.

    Below a mapping with scope_id "*" the first sub-folder is the id; a name that can't be one
    leaves the folder without a binding rather than in a wider scope.
    """
    if vault.native:
        return _native_mapping(vault, folder)
    best = sorted(
        (
            position
            for position, item in enumerate(vault.mappings)
            if is_below(folder or ".", item.folder) or item.folder == "."
        ),
        key=lambda position: -len(vault.mappings[position].folder) if vault.mappings[position].folder != "." else 0,
    )
    for position in best:
        mapping = vault.mappings[position]
        if mapping.scope_id != WILDCARD:
            return position, Binding(mapping.scope, mapping.scope_id), "" if mapping.index else "index_off"
        below = folder if mapping.folder == "." else folder[len(mapping.folder) + 1 :]
        name = below.split("/")[0] if below else ""
        if name:
            if SCOPE_ID.match(name):
                return position, Binding(mapping.scope, name), "" if mapping.index else "index_off"
            return position, None, "scope_id_invalid"
    return -1, None, "unmapped"


def _native_mapping(vault: VaultConfig, folder: str) -> tuple[int, Binding | None, str]:
    """The same for the native wiki: upstream's layout says whose topics a folder holds."""
    binding = binding_of_folder(folder)
    if binding is None:
        return 0, None, "unmapped"
    if binding.scope_id is not None and not SCOPE_ID.match(binding.scope_id):
        return 0, None, "scope_id_invalid"
    if any(covers(mapped, binding.scope, binding.scope_id) for mapped in vault.mapped_away):
        return 0, None, "mapped_away"
    return 0, binding, ""
