"""vaultmem: an Obsidian vault as the memory of people and their AI agents.

`open_memory()` gives a `Memory`; the values and errors that its methods take and give are here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from vaultmem.access.filters import NoteFilter
    from vaultmem.access.scopes import CallContext
    from vaultmem.base.errors import (
        ConfigError,
        IndexUnavailable,
        LockBusy,
        MemoryPartialWriteError,
        NotConfigured,
        NoteNotFound,
        ScopeError,
        StoreRefused,
        UsageError,
        VaultmemError,
    )
    from vaultmem.base.values import Finding, Hit, WriteResult
    from vaultmem.memories.store import StoreRequest
    from vaultmem.memory import Memory, open_memory
    from vaultmem.recall.recall import RecallRequest, RecallResult

_HOMES = {
    "vaultmem.base.errors": (
        "ConfigError",
        "IndexUnavailable",
        "LockBusy",
        "MemoryPartialWriteError",
        "NotConfigured",
        "NoteNotFound",
        "ScopeError",
        "StoreRefused",
        "UsageError",
        "VaultmemError",
    ),
    "vaultmem.memory": ("Memory", "open_memory"),
    "vaultmem.base.values": ("Finding", "Hit", "WriteResult"),
    "vaultmem.access.filters": ("NoteFilter",),
    "vaultmem.recall.recall": ("RecallRequest", "RecallResult"),
    "vaultmem.memories.store": ("StoreRequest",),
    "vaultmem.access.scopes": ("CallContext",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "CallContext",
    "ConfigError",
    "Finding",
    "Hit",
    "IndexUnavailable",
    "LockBusy",
    "Memory",
    "MemoryPartialWriteError",
    "NotConfigured",
    "NoteFilter",
    "NoteNotFound",
    "RecallRequest",
    "RecallResult",
    "ScopeError",
    "StoreRefused",
    "StoreRequest",
    "UsageError",
    "VaultmemError",
    "WriteResult",
    "open_memory",
]


def __getattr__(name: str) -> Any:
    """Import the public names when they are first asked for: start-up of commands counts."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'vaultmem' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_MODULE_OF[name]), name)
