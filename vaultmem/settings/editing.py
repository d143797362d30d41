"""Reading and changing single settings; a person's comments and layout in config.toml are kept.

A setting is named by its TOML path: `memory.enabled`, `vault.personal.exclude` (a vault by its id),
`vault.personal.mapping.0.inject` (a mapping by its position).
"""

from __future__ import annotations

import os
from typing import Any

from vaultmem.base.errors import UsageError
from vaultmem.base.files import write_private_file
from vaultmem.settings.config import CONFIG_NAME, config_from_document, read_document

MAX_VALUE_CHARS = 10_000


def get_setting(home: str, name: str) -> Any:
    """Return the value of a setting as the file has it, or as the default is. Raises UsageError."""
    document = read_document(os.path.join(home, CONFIG_NAME))
    found = _find(document, _steps(document, name), name)
    if found is not None:
        return found
    config = config_from_document(document, home)
    defaults = {
        "memory.enabled": config.enabled,
        "memory.project_id": config.project_id,
        "memory.adopted": config.adopted,
        "memory.explain_enabled": config.explain_enabled,
        "memory.lifecycle.enabled": config.lifecycle_enabled,
        "memory.max_recall_body_chars": config.max_recall_body_chars,
        "search.engine": config.engine,
    }
    if name in defaults:
        return defaults[name]
    parts = name.split(".")
    if len(parts) == 3 and parts[0] == "vault":
        vault = next((item for item in config.vaults if item.id == parts[1]), None)
        if vault is not None and parts[2] in type(vault).__dataclass_fields__:
            value = getattr(vault, parts[2])
            return list(value) if isinstance(value, tuple) else value
    raise UsageError(f"{name} is not a setting", "The settings are listed in docs/configuration.md")


def set_setting(home: str, name: str, text: str) -> Any:
    """Change a setting and return its new value; the file is checked as a whole before it is replaced.

    `text` is TOML (`true`, `5`, `["a"]`); anything that is no TOML value is taken as a text. Raises
    UsageError for an unknown place, ConfigError when the result would not be valid (nothing is written).
    """
    import tomlkit  # slow import, needed only to edit the file
    from tomlkit.exceptions import TOMLKitError

    if len(text) > MAX_VALUE_CHARS:
        raise UsageError(f"The value has more than {MAX_VALUE_CHARS} characters")
    path = os.path.join(home, CONFIG_NAME)
    read_document(path)  # names a file that is no TOML
    try:
        with open(path, encoding="utf-8") as file:
            document = tomlkit.parse(file.read())
    except FileNotFoundError:
        document = tomlkit.document()
    try:
        value = tomlkit.value(text)
    except TOMLKitError:
        value = tomlkit.item(text)
    steps = _steps(document, name)
    table: Any = document
    for step in steps[:-1]:
        if isinstance(step, str) and step not in table:
            table[step] = tomlkit.table()
        table = table[step]
    table[steps[-1]] = value
    result = tomlkit.dumps(document)
    config_from_document(tomlkit.parse(result).unwrap(), home)
    write_private_file(path, result)
    return value.unwrap() if hasattr(value, "unwrap") else value


def _steps(document: Any, name: str) -> list[str | int]:
    """Return the path of a name in the document: vault ids and mapping numbers become positions."""
    parts = name.split(".")
    if len(parts) < 2 or not all(parts):
        raise UsageError(f"{name} is not a setting", "Write it as in memory.enabled or vault.ID.exclude")
    if parts[0] != "vault":
        return list(parts)
    vaults = document.get("vault", [])
    position = next((i for i, vault in enumerate(vaults) if vault.get("id") == parts[1]), None)
    if position is None or len(parts) < 3:
        known = ", ".join(str(vault.get("id")) for vault in vaults) or "none"
        raise UsageError(f"No vault has the id {parts[1]}", f"Configured: {known}")
    steps: list[str | int] = ["vault", position, parts[2]]
    if parts[2] == "mapping":
        if len(parts) != 5 or not parts[3].isdigit() or int(parts[3]) >= len(vaults[position].get("mapping", [])):
            raise UsageError(f"{name} is not a setting", "Write it as in vault.ID.mapping.0.inject")
        steps += [int(parts[3]), parts[4]]
    elif len(parts) != 3:
        raise UsageError(f"{name} is not a setting", "Write it as in vault.ID.exclude")
    return steps


def _find(document: Any, steps: list[str | int], name: str) -> Any:
    value = document
    for step in steps:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value
