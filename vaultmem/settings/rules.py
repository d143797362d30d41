"""What a valid config.toml is: every problem at once, each with its TOML path and a suggestion.

Pure apart from looking whether a vault's root exists. Source: design.md §3 and
reference/vault.md, "Configuration" (names and limits).
"""

from __future__ import annotations

import difflib
import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

VAULT_ID = re.compile(r"^[a-z0-9][a-z0-9-]{0,31}$")
SCOPE_ID = re.compile(r"^(?!\.+$)[a-zA-Z0-9._-]{1,128}$")
RESERVED_IDS = ("global", "federated", "logs")
"""Names of containers of the native wiki that no project id may have."""
MAPPED_SCOPES = ("global", "project", "agent")
ENGINES = ("auto", "fts5", "fts4")
GATES = ("reject", "warn")
WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class MappingConfig:
    """A folder of a vault and the scope that its notes belong to; "." is the whole vault."""

    folder: str
    scope: str
    scope_id: str | None = None
    index: bool = True
    inject: bool = False
    writable: bool = False


@dataclass(frozen=True, slots=True)
class VaultConfig:
    """One vault. `root` is resolved once; sizes in bytes; patterns as `sync.walk.exclude` reads them."""

    id: str
    root: str
    managed_folder: str = ""
    exclude: tuple[str, ...] = ()
    secret_allow: tuple[str, ...] = ()
    secret_gate: str = "reject"
    allow_hardlinks: bool = False
    obsidian_excludes: bool = True
    max_note_bytes: int = 262_144
    max_notes: int = 200_000
    max_frontmatter_bytes: int = 16_384
    max_total_bytes: int = 0
    mappings: tuple[MappingConfig, ...] = ()
    configured_root: str = ""
    native: bool = False
    mapped_away: tuple[tuple[str, str | None], ...] = ()
    """Of the native wiki: bindings (id "*": all of a scope) that a vault holds, whose topics are not shown."""


@dataclass(slots=True)
class CheckedDocument:
    """The values of a document, and all its problems."""

    vaults: tuple[VaultConfig, ...] = ()
    enabled: bool = True
    project_id: str = ""
    adopted: str = ""
    engine: str = "auto"
    max_recall_body_chars: int = 4096
    lifecycle_enabled: bool = False
    explain_enabled: bool = True
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class _Table:
    """Typed access to one TOML table that notes every problem instead of raising."""

    data: Mapping[str, Any]
    where: str
    problems: list[str]
    known: set[str] = field(default_factory=set)

    def problem(self, key: str, text: str) -> None:
        self.problems.append(f"{self.where}{'.' if self.where else ''}{key}: {text}")

    def value(self, key: str, kind: type, default: Any, says: str) -> Any:
        self.known.add(key)
        found = self.data.get(key, default)
        if found is default or (isinstance(found, kind) and (kind is bool or not isinstance(found, bool))):
            return found
        self.problem(key, f"is {type(found).__name__}, must be {says}")
        return default

    def text(self, key: str, default: str = "") -> str:
        return str(self.value(key, str, default, "a text in quotes"))

    def flag(self, key: str, default: bool) -> bool:
        return bool(self.value(key, bool, default, "true or false"))

    def number(self, key: str, default: int, low: int, high: int) -> int:
        found = int(self.value(key, int, default, f"a whole number from {low} to {high}"))
        if not low <= found <= high:
            self.problem(key, f"is {found}, must be from {low} to {high}")
            return default
        return found

    def choice(self, key: str, default: str, allowed: tuple[str, ...]) -> str:
        found = self.text(key, default)
        if found not in allowed:
            self.problem(key, f'is "{found}", must be one of {", ".join(allowed)}{_near(found, allowed)}')
            return default
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.value(key, list, [], "a list of texts")
        good = tuple(item for item in found if isinstance(item, str))
        if len(good) != len(found):
            self.problem(key, "must hold texts only")
        return good

    def close(self) -> None:
        for key in self.data:
            if key not in self.known:
                self.problem(key, f"is not a setting{_near(key, tuple(self.known))}")


def _near(word: str, allowed: tuple[str, ...]) -> str:
    match = difflib.get_close_matches(word, allowed, n=1)
    return f' (did you mean "{match[0]}"?)' if match else ""


def check_document(document: Mapping[str, Any], home: str, user_home: str) -> CheckedDocument:
    """Return the values of a parsed config.toml with all its problems, in file order.

    `home` is our own folder and `user_home` the person's: a vault may be neither.
    """
    problems: list[str] = []
    top = _Table(document, "", problems)
    memory = _table(top, "memory")
    search = _table(top, "search")
    checked = CheckedDocument(
        enabled=memory.flag("enabled", True),
        project_id=memory.text("project_id"),
        adopted=_adopted(memory),
        max_recall_body_chars=memory.number("max_recall_body_chars", 4096, 1, 65_536),
        engine=search.choice("engine", "auto", ENGINES),
        lifecycle_enabled=_table(memory, "lifecycle").flag("enabled", False),
        explain_enabled=memory.flag("explain_enabled", True),
    )
    if checked.project_id and not SCOPE_ID.match(checked.project_id):
        memory.problem("project_id", "may hold letters, digits, dots, _ and - only (at most 128)")
    memory.close()
    search.close()
    vaults = [_check_vault(table, home, user_home) for table in _tables(top, "vault", "vault")]
    top.close()
    _check_unique_ids(vaults, problems)
    checked.vaults = tuple(vault for vault in vaults if vault.id and vault.root)
    checked.problems = tuple(problems)
    return checked


def _adopted(memory: _Table) -> str:
    folder = memory.text("adopted")
    if folder and not os.path.isabs(folder):
        memory.problem("adopted", f'"{folder}" must be the absolute path of a CAO home')
        return ""
    return folder


def _table(parent: _Table, key: str) -> _Table:
    found = parent.value(key, dict, {}, "a table")
    return _Table(found, f"{parent.where}{'.' if parent.where else ''}{key}", parent.problems)


def _tables(parent: _Table, key: str, where: str) -> list[_Table]:
    found = parent.value(key, list, [], f"a list of tables ([[{where}]])")
    tables = []
    for position, item in enumerate(found):
        name = f"{parent.where}{'.' if parent.where else ''}{key}[{position}]"
        if isinstance(item, dict):
            tables.append(_Table(item, name, parent.problems))
        else:
            parent.problems.append(f"{name}: must be a table")
    return tables


def _check_unique_ids(vaults: list[VaultConfig], problems: list[str]) -> None:
    seen: dict[str, int] = {}
    for position, vault in enumerate(vaults):
        if vault.id and vault.id in seen:
            problems.append(f'vault[{position}].id: "{vault.id}" is taken by vault[{seen[vault.id]}]')
        seen.setdefault(vault.id, position)
    for position, vault in enumerate(vaults):
        for other_position, other in enumerate(vaults[:position]):
            if vault.root and other.root and _overlaps(vault.root, other.root):
                problems.append(
                    f"vault[{position}].root: overlaps the root of vault[{other_position}]; "
                    "map folders of one vault instead"
                )


def _overlaps(one: str, other: str) -> bool:
    return one == other or one.startswith(other + os.sep) or other.startswith(one + os.sep)


def _check_vault(table: _Table, home: str, user_home: str) -> VaultConfig:
    vault_id = table.text("id")
    if not VAULT_ID.match(vault_id):
        table.problem("id", "must be 1 to 32 of a-z, 0-9 and -, starting with a letter or digit")
    root = _check_root(table, home, user_home)
    managed = _check_folder(table, "managed_folder", table.text("managed_folder")) or ""
    if managed == ".":
        table.problem("managed_folder", 'must be a folder inside the vault, such as "Agent Memory"')
    exclude = table.texts("exclude")
    secret_allow = table.texts("secret_allow")
    for key, patterns in (("exclude", exclude), ("secret_allow", secret_allow)):
        for pattern in patterns:
            if not pattern or pattern.startswith("/") or {".", ".."} & set(pattern.split("/")):
                table.problem(key, f'"{pattern}" must be relative to the vault, without . or ..')
    mappings = tuple(_check_mapping(item) for item in _tables(table, "mapping", "vault.mapping"))
    vault = VaultConfig(
        id=vault_id if VAULT_ID.match(vault_id) else "",
        root=root,
        managed_folder=managed,
        exclude=exclude,
        secret_allow=secret_allow,
        secret_gate=table.choice("secret_gate", "reject", GATES),
        allow_hardlinks=table.flag("allow_hardlinks", False),
        obsidian_excludes=table.flag("obsidian_excludes", True),
        max_note_bytes=table.number("max_note_bytes", 262_144, 1, 1_048_576),
        max_notes=table.number("max_notes", 200_000, 1, 2_000_000),
        max_frontmatter_bytes=table.number("max_frontmatter_bytes", 16_384, 1, 65_536),
        max_total_bytes=table.number("max_total_bytes", 0, 0, 1 << 50),
        mappings=mappings,
        configured_root=table.text("root"),
    )
    table.close()
    _check_mappings(table, vault)
    return vault


def _check_root(table: _Table, home: str, user_home: str) -> str:
    root = table.text("root")
    if not root:
        table.problem("root", "is missing: give the absolute path of the vault")
        return ""
    if not os.path.isabs(root):
        table.problem("root", f'"{root}" must be an absolute path')
        return ""
    real = os.path.realpath(root)
    if real in (os.path.realpath(user_home), os.sep):
        table.problem("root", f'"{root}" is a whole home or disk; give the vault\'s own folder')
        return ""
    if _overlaps(real, os.path.realpath(home)):
        table.problem("root", f'"{root}" and vaultmem\'s own folder {home} lie inside each other')
        return ""
    return real


def _check_folder(table: _Table, key: str, folder: str) -> str | None:
    """Return the folder in NFC without a trailing slash, or None after noting the problem."""
    text = unicodedata.normalize("NFC", folder)
    if text in ("", "."):
        return text
    parts = text.rstrip("/").split("/")
    if "\\" in text or "\0" in text or any(part in ("", ".", "..") for part in parts):
        table.problem(key, f'"{folder}" must be a path inside the vault with / between folders')
        return None
    if any(part.startswith(".") for part in parts):
        table.problem(key, f'"{folder}": Obsidian does not see folders that start with a dot')
        return None
    return "/".join(parts)


def _check_mapping(table: _Table) -> MappingConfig:
    folder = _check_folder(table, "folder", table.text("folder"))
    if folder == "":
        table.problem("folder", 'is missing: give a folder, or "." for the whole vault')
    scope = table.text("scope")
    if scope not in MAPPED_SCOPES:
        table.problem(
            "scope",
            f'is "{scope}", must be one of {", ".join(MAPPED_SCOPES)}'
            f"{_near(scope, MAPPED_SCOPES)} (session and federated can't be mapped)",
        )
    scope_id = table.text("scope_id") or None
    if scope == "global" and scope_id is not None:
        table.problem("scope_id", "global memory has no id: leave it out")
    elif scope in ("project", "agent") and scope_id is None:
        table.problem("scope_id", f'{scope} needs an id, or "*" to make each sub-folder one')
    elif scope_id not in (None, WILDCARD) and not SCOPE_ID.match(str(scope_id)):
        table.problem("scope_id", "may hold letters, digits, dots, _ and - only (at most 128)")
    mapping = MappingConfig(
        folder=folder or ".",
        scope=scope,
        scope_id=scope_id,
        index=table.flag("index", True),
        inject=table.flag("inject", False),
        writable=table.flag("writable", False),
    )
    for key in ("inject", "writable"):
        if getattr(mapping, key) and not mapping.index:
            table.problem(key, "needs index = true")
    table.close()
    return mapping


def _check_mappings(table: _Table, vault: VaultConfig) -> None:
    """Check what only holds between the mappings of one vault."""
    managed = vault.managed_folder
    if not vault.mappings:
        table.problem("mapping", "is missing: add a [[vault.mapping]] with folder and scope")
    folders: dict[str, int] = {}
    wildcards: set[str] = set()
    for position, mapping in enumerate(vault.mappings):
        where = f"mapping[{position}]"
        folded = mapping.folder.lower()
        if folded in folders:
            table.problem(f"{where}.folder", f'"{mapping.folder}" is mapped by mapping[{folders[folded]}] too')
        folders.setdefault(folded, position)
        if mapping.scope_id == WILDCARD:
            if mapping.scope in wildcards:
                table.problem(f"{where}.scope_id", f'"*" is allowed once for scope {mapping.scope}')
            wildcards.add(mapping.scope)
        if mapping.writable and not managed:
            table.problem(f"{where}.writable", "needs managed_folder: the only folder that is written")
        elif mapping.writable and not is_below(mapping.folder, managed):
            table.problem(f"{where}.writable", f'"{mapping.folder}" is not inside managed_folder "{managed}"')
    if managed and vault.mappings and not any(m.writable for m in vault.mappings):
        table.problem("managed_folder", f'no mapping inside "{managed}" is writable')


NATIVE_MAPPING = MappingConfig(".", "global")
NATIVE_MAX_TOPIC_BYTES = 1_048_576


def native_source(source_id: str, root: str, vaults: tuple[VaultConfig, ...]) -> VaultConfig:
    """Return the native wiki as one more source; bindings of topics follow from their folders, not from mappings."""
    away = {(m.scope, m.scope_id) for vault in vaults for m in vault.mappings}
    return VaultConfig(
        id=source_id,
        root=root,
        obsidian_excludes=False,
        max_note_bytes=NATIVE_MAX_TOPIC_BYTES,
        max_notes=2_000_000,
        mappings=(NATIVE_MAPPING,),
        native=True,
        mapped_away=tuple(sorted(away, key=lambda pair: (pair[0], pair[1] or ""))),
    )


def covers(mapped: tuple[str, str | None], scope: str, scope_id: str | None) -> bool:
    """Tell whether a mapped (scope, id) is that of a binding; ids of projects compare without letter case."""
    if mapped[0] != scope:
        return False
    return mapped[1] in (WILDCARD, scope_id) or (
        scope == "project" and (mapped[1] or "").lower() == (scope_id or "").lower()
    )


def is_below(path: str, folder: str) -> bool:
    """Tell whether a vault-relative path is `folder` or lies below it ("." is the root)."""
    return folder in (".", "") or path == folder or path.startswith(folder + "/")
