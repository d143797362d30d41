"""Settings: config.toml and the environment, validated as a whole, as frozen values.

This is the only module that reads the environment. Rules of the values: `settings.rules`.
Source: design.md §3; limits from reference/vault.md, "Configuration".
"""

from __future__ import annotations

import os
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vaultmem.base.clock import stand_at
from vaultmem.base.errors import ConfigError, EnvironmentUnusable, NotConfigured
from vaultmem.settings.rules import MappingConfig, VaultConfig, check_document, native_source

CONFIG_NAME = "config.toml"
MEMORY_FOLDER = "memory"
NATIVE_ID = "@wiki"
"""The source id of the native wiki: no vault of a user can have it."""


@dataclass(frozen=True, slots=True)
class Config:
    """All settings in force.

    `home` is absolute; `vaults` in file order. `max_recall_body_chars` caps a body in recall.
    """

    home: str
    vaults: tuple[VaultConfig, ...] = ()
    enabled: bool = True
    project_id: str = ""
    adopted: str = ""
    engine: str = "auto"
    max_recall_body_chars: int = 4096
    read_only: bool = False
    lifecycle_enabled: bool = False
    explain_enabled: bool = True

    @property
    def memory_root(self) -> str:
        """The absolute path of the native wiki: ours, or that of an adopted CAO home."""
        return os.path.join(self.adopted or self.home, MEMORY_FOLDER)

    @property
    def native(self) -> VaultConfig:
        """The native wiki as a source."""
        return native_source(NATIVE_ID, self.memory_root, self.vaults)

    @property
    def sources(self) -> tuple[VaultConfig, ...]:
        """All that is read into the index: the vaults, then the native wiki."""
        return (*self.vaults, self.native)

    @property
    def path(self) -> str:
        """The absolute path of config.toml."""
        return os.path.join(self.home, CONFIG_NAME)

    def vault(self, vault_id: str) -> VaultConfig:
        """Return the vault (or native wiki) of that id; KeyError when it is not configured."""
        for vault in self.sources:
            if vault.id == vault_id:
                return vault
        raise KeyError(vault_id)

    @property
    def is_set_up(self) -> bool:
        """Whether a vault is configured, or there is a native wiki."""
        return bool(self.vaults) or os.path.isdir(self.memory_root)

    def require_vault(self) -> None:
        """Raise NotConfigured unless the home is set up."""
        if not self.is_set_up:
            raise NotConfigured(
                f"No vault is configured in {self.path}",
                "Run: vaultmem init PATH-OF-YOUR-VAULT, or, to keep memories without a vault: vaultmem init --native",
            )


def environment_value(*names: str) -> str:
    """Return the first non-empty environment variable of `names`, or ""."""
    for name in names:
        value = os.environ.get(name, "")
        if value:
            return value
    return ""


stand_at(lambda: environment_value("VAULTMEM_NOW"))  # for tests: nothing but settings reads the environment


def utf8_environment() -> dict[str, str]:
    """Return our environment with Python's UTF-8 mode switched on, for a process that takes our place."""
    return {**os.environ, "PYTHONUTF8": "1"}


def require_utf8_names() -> None:
    """Raise EnvironmentUnusable where Python can't tell file names, as in an ASCII locale without UTF-8 mode."""
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8":
        raise EnvironmentUnusable(
            f"Python reads file names as {encoding} here, so notes with other names would be missed",
            "Set PYTHONUTF8=1, or a UTF-8 locale such as LC_ALL=C.UTF-8",
        )


def default_home() -> str:
    """Return the home folder: VAULTMEM_HOME, else the platform's user data folder."""
    named = environment_value("VAULTMEM_HOME")
    if named:
        return os.path.abspath(os.path.expanduser(named))
    from platformdirs import user_data_dir  # slow import, needed only without VAULTMEM_HOME

    return user_data_dir("vaultmem", appauthor=False)


def _switch(text: str) -> bool:
    """Read an environment switch: 1, true, yes, on are true, any other text false."""
    return text.strip().lower() in {"1", "true", "yes", "on"}


def _flag(name: str, default: bool) -> bool:
    """Return a switch of the environment (ours, then CAO's), else the file's value."""
    text = environment_value(f"VAULTMEM_{name}", f"CAO_MEMORY_{name}")
    return _switch(text) if text else default


def read_document(path: str) -> dict[str, Any]:
    """Return the TOML document at `path` ({} when there is none); ConfigError when it is no TOML."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(path, (f"can't be read: {error.strerror}",)) from None
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise ConfigError(path, ("is not UTF-8 text",)) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(path, (f"is no valid TOML: {error}",)) from None


def load_config(home: str | None = None, *, read_only: bool = False) -> Config:
    """Return the settings of `home` (default: `default_home()`).

    A missing file means the defaults. Raises ConfigError with every problem of the file, EnvironmentUnusable.
    """
    require_utf8_names()
    folder = os.path.abspath(os.path.expanduser(home)) if home else default_home()
    path = os.path.join(folder, CONFIG_NAME)
    return config_from_document(read_document(path), folder, read_only=read_only)


def config_from_document(document: dict[str, Any], home: str, *, read_only: bool = False) -> Config:
    """Validate a parsed document and lay the environment over it. Raises ConfigError."""
    path = os.path.join(home, CONFIG_NAME)
    checked = check_document(document, home, os.path.expanduser("~"))
    project_id = environment_value("VAULTMEM_PROJECT_ID", "CAO_PROJECT_ID") or checked.project_id
    enabled_text = environment_value("VAULTMEM_ENABLED", "CAO_MEMORY_ENABLED")
    if checked.problems:
        raise ConfigError(path, checked.problems)
    return Config(
        home=home,
        vaults=checked.vaults,
        enabled=_switch(enabled_text) if enabled_text else checked.enabled,
        project_id=project_id,
        adopted=checked.adopted,
        engine=checked.engine,
        max_recall_body_chars=checked.max_recall_body_chars,
        read_only=read_only or _switch(environment_value("VAULTMEM_READ_ONLY")),
        lifecycle_enabled=_flag("LIFECYCLE_ENABLED", checked.lifecycle_enabled),
        explain_enabled=_flag("EXPLAIN_ENABLED", checked.explain_enabled),
    )


def new_document_text(vaults: list[tuple[VaultConfig, tuple[MappingConfig, ...]]]) -> str:
    """Return the text of a fresh config.toml with these vaults, commented for a person."""
    lines = [
        "# vaultmem settings. Check them with: vaultmem config check",
        "# The meaning of every key is in docs/configuration.md.",
        "",
        "[memory]",
        "enabled = true",
        "",
        "[search]",
        'engine = "auto"                      # auto | fts5 | fts4',
        "",
    ]
    for vault, mappings in vaults:
        lines += vault_lines(vault, mappings)
    return "\n".join(lines)


def vault_lines(vault: VaultConfig, mappings: tuple[MappingConfig, ...]) -> list[str]:
    """Return the TOML lines of one vault and its mappings."""
    lines = [
        "[[vault]]",
        f"id = {toml_text(vault.id)}",
        f"root = {toml_text(vault.root)}",
        f"managed_folder = {toml_text(vault.managed_folder)}   # the only folder that vaultmem writes",
        "exclude = [" + ", ".join(toml_text(item) for item in vault.exclude) + "]",
        "",
    ]
    for mapping in mappings:
        lines += ["[[vault.mapping]]", f"folder = {toml_text(mapping.folder)}"]
        lines.append(f"scope = {toml_text(mapping.scope)}")
        if mapping.scope_id is not None:
            lines.append(f"scope_id = {toml_text(mapping.scope_id)}")
        lines.append(f"index = {str(mapping.index).lower()}")
        lines.append(f"inject = {str(mapping.inject).lower()}")
        lines += [f"writable = {str(mapping.writable).lower()}", ""]
    return lines


def toml_text(value: str) -> str:
    """Return `value` as a basic TOML string."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}" for c in escaped) + '"'
