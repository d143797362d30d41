"""Scan: what a walk of the vaults sees now, without opening a note."""

from __future__ import annotations

from collections import Counter
from typing import Any

from vaultmem.access.session import Session
from vaultmem.sync.walk.walk import scan_vault


def scan(session: Session) -> dict[str, Any]:
    """Return `vaultmem.scan/1`: files by kind and binding, and what is left out and why."""
    session.config.require_vault()
    vaults = []
    for vault in session.config.sources:
        found = scan_vault(vault, {})
        if vault.native and not found.files:
            continue
        notes = Counter(
            f"{file.binding.scope}{'/' + file.binding.scope_id if file.binding.scope_id else ''}"
            for file in found.changed
            if file.kind == "note" and file.binding is not None
        )
        excluded = Counter(file.excluded_by for file in found.changed if file.kind == "note" and file.excluded_by)
        vaults.append(
            {
                "id": vault.id,
                "root": vault.root,
                "reachable": found.reachable,
                "files": found.files,
                "notes": dict(sorted(notes.items())),
                "excluded": dict(sorted(excluded.items())),
                "findings": [
                    {"code": f.code, "severity": f.severity, "path": f.path, "message": f.message}
                    for f in found.findings
                ],
            }
        )
    return {"schema": "vaultmem.scan/1", "vaults": vaults}
