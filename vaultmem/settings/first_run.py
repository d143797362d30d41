"""First run: config.toml for a vault, with the mappings that make an agent's first store visible.

The defaults are those of design.md §3: the whole vault read-only as global memory, a managed
folder that takes writes, and a sub-folder in it for each project.
"""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import dataclass

from vaultmem.base.errors import UsageError
from vaultmem.base.files import ensure_private_folder, write_private_file
from vaultmem.settings.config import (
    CONFIG_NAME,
    config_from_document,
    load_config,
    new_document_text,
    read_document,
    vault_lines,
)
from vaultmem.settings.rules import WILDCARD, MappingConfig, VaultConfig

DEFAULT_MANAGED = "Agent Memory"


@dataclass(frozen=True, slots=True)
class InitRequest:
    """What `init` is asked for; `folder` and `scope` map a part of the vault only."""

    vault: str
    folder: str = ""
    scope: str = ""
    scope_id: str = ""
    managed: str = DEFAULT_MANAGED
    projects: bool = True


@dataclass(frozen=True, slots=True)
class InitResult:
    """What `init` did: `action` is created, added, unchanged or differs (nothing written)."""

    action: str
    path: str
    vault_id: str
    text: str
    is_obsidian: bool


def init_home(home: str, request: InitRequest, *, replace: bool = False) -> InitResult:
    """Write or extend config.toml; an existing entry of the vault is never changed unless `replace`.

    Raises UsageError for a bad path, ConfigError when the result would not be valid.
    """
    root = os.path.realpath(os.path.expanduser(request.vault))
    if not os.path.isdir(root):
        raise UsageError(f"{request.vault} is not a folder", "Give the path of your vault")
    path = os.path.join(home, CONFIG_NAME)
    document = read_document(path)
    existing = config_from_document(document, home).vaults if document else ()
    vault = VaultConfig(_free_id(root, existing), root, request.managed.strip("/"), configured_root=root)
    mappings = _mappings(request)
    is_obsidian = os.path.isdir(os.path.join(root, ".obsidian"))
    same = next((item for item in existing if item.root == root), None)
    if same is not None:
        equal = same.managed_folder == vault.managed_folder and same.mappings == mappings
        text = "\n".join(vault_lines(VaultConfig(same.id, root, vault.managed_folder), mappings))
        return InitResult("unchanged" if equal else "differs", path, same.id, text, is_obsidian)
    if document:
        with open(path, encoding="utf-8") as file:
            text = file.read().rstrip("\n") + "\n\n" + "\n".join(vault_lines(vault, mappings)) + "\n"
    else:
        text = new_document_text([(vault, mappings)]) + "\n"
    _check(text, home)
    ensure_private_folder(home)
    write_private_file(path, text)
    return InitResult("added" if document else "created", path, vault.id, text, is_obsidian)


def init_native(home: str) -> InitResult:
    """Set a home up that has no vault: config.toml, if there is none, and the folder of the native wiki.

    Raises ConfigError when the settings that are there can't be used, OSError.
    """
    config = load_config(home)
    text = new_document_text([]) + "\n"
    exists = os.path.exists(config.path)
    ensure_private_folder(home)
    ensure_private_folder(config.memory_root)
    if not exists:
        write_private_file(config.path, text)
    return InitResult("unchanged" if exists else "created", config.path, "", text, False)


def _check(text: str, home: str) -> None:
    import tomllib

    config_from_document(tomllib.loads(text), home)


def _free_id(root: str, existing: tuple[VaultConfig, ...]) -> str:
    plain = unicodedata.normalize("NFKD", os.path.basename(root)).encode("ascii", "ignore").decode().lower()
    base = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:28].strip("-") or "vault"
    taken = {vault.id for vault in existing}
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name


def _mappings(request: InitRequest) -> tuple[MappingConfig, ...]:
    managed = request.managed.strip("/")
    if request.folder or request.scope:
        return (_partial_mapping(request), *_managed_mappings(managed, request.projects))
    return (MappingConfig(".", "global"), *_managed_mappings(managed, request.projects))


def _partial_mapping(request: InitRequest) -> MappingConfig:
    return MappingConfig(request.folder.strip("/") or ".", request.scope or "global", request.scope_id or None)


def _managed_mappings(managed: str, projects: bool) -> tuple[MappingConfig, ...]:
    mappings = [MappingConfig(managed, "global", None, True, True, True)]
    if projects:
        mappings.append(MappingConfig(f"{managed}/projects", "project", WILDCARD, True, True, True))
    return tuple(mappings)
