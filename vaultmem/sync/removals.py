"""A missing file is not yet a deletion: which vanished notes are held, and which really go.

A mapping whose folder can't be opened, of which nothing is found, or that lost most of its notes at
once is held: its rows stay as they are until it returns or the user says that it was meant
(design.md §5).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

from vaultmem.base.clock import now
from vaultmem.base.times import iso
from vaultmem.index.operations import KnownFile
from vaultmem.index.queries import IndexView, known_signatures, vaults_present
from vaultmem.settings.config import Config
from vaultmem.settings.rules import VaultConfig, is_below
from vaultmem.state.state import Held, StateStore
from vaultmem.sync.walk.walk import VaultScan

MASS_REMOVAL_MIN = 20
"""More than this many and more than half of a mapping's notes gone at once is no plain deletion."""


class RemovalGuard:
    """Judges what a scan did not see."""

    def __init__(self, config: Config, state: StateStore, connection: sqlite3.Connection) -> None:
        self._config = config
        self._state = state
        self._connection = connection

    def judge(self, scans: Sequence[VaultScan], accept: bool) -> tuple[list[Held], list[KnownFile]]:
        """Return what is held back and which rows really go; see design.md §5."""
        view = IndexView(self._connection)
        held: list[Held] = []
        gone: list[KnownFile] = []
        kept_before = {(item.vault, item.folder) for item in self._state.held()}
        for vault, scan in zip(self._config.sources, scans, strict=True):
            missing = list(view.files_at(vault.id, sorted(scan.gone)).values())
            missing = [row for row in missing if row.path not in scan.placeholders]
            if not scan.reachable:
                scan.changed.clear()
                if accept or (vault.native and not self._notes_of(vault.id)):  # a home without a native wiki
                    continue
                held += self._hold_vault(vault, self._notes_of(vault.id))
                continue
            held += self._unreadable_mappings(vault, scan)
            unreadable = [row for row in missing if any(is_below(row.path, f) for f in scan.unreadable)]
            missing = [row for row in missing if row not in unreadable]
            kept, lost = self._hold_mappings(vault, scan, missing, accept, kept_before)
            held += kept
            gone += lost
        gone += self._rows_of_other_vaults()
        return held, sorted(gone, key=lambda row: (row.vault, row.path, row.raw_path))

    def _notes_of(self, vault: str, mapping: int | None = None) -> int:
        sql = "SELECT count(*) FROM note WHERE vault = ?" + ("" if mapping is None else " AND mapping = ?")
        arguments = (vault,) if mapping is None else (vault, mapping)
        return int(self._connection.execute(sql, arguments).fetchone()[0])

    def _unreadable_mappings(self, vault: VaultConfig, scan: VaultScan) -> list[Held]:
        """Mappings whose folder is there and can't be opened."""
        return [
            Held(
                vault.id,
                mapping.folder,
                "mapping_folder_unreadable",
                self._notes_of(vault.id, position),
                iso(now()),
                f"the folder {mapping.folder} can't be opened; its notes are kept",
            )
            for position, mapping in enumerate(vault.mappings)
            if ("" if mapping.folder == "." else mapping.folder) in scan.unreadable
        ]

    def _hold_vault(self, vault: VaultConfig, notes: int) -> list[Held]:
        message = f"the vault's root {vault.root} can't be opened"
        return [Held(vault.id, ".", "mapping_folder_missing", notes, iso(now()), message)]

    def _hold_mappings(
        self,
        vault: VaultConfig,
        scan: VaultScan,
        missing: list[KnownFile],
        accept: bool,
        kept_before: set[tuple[str, str]],
    ) -> tuple[list[Held], list[KnownFile]]:
        """Split missing rows of one vault into those of held mappings and real removals."""
        by_mapping: dict[int, list[KnownFile]] = {}
        lost: list[KnownFile] = []
        positions = self._mapping_positions(missing)
        for row in missing:
            if row.binding is None:
                lost.append(row)
            else:
                by_mapping.setdefault(positions[row.id], []).append(row)
        held: list[Held] = []
        arrived: dict[int, list[str]] = {}
        for file in scan.changed if missing else ():
            if file.raw_path not in scan.known:
                arrived.setdefault(file.mapping, []).append(file.path.rpartition("/")[2])
        for position, rows in sorted(by_mapping.items()):
            known = self._notes_of(vault.id, position)
            folder = vault.mappings[position].folder if position < len(vault.mappings) else "."
            code, message = _removal_guard(
                rows, known, folder, scan, (vault.id, folder) in kept_before, arrived.get(position, ())
            )
            if code and not accept:
                held.append(Held(vault.id, folder, code, len(rows), iso(now()), message))
            else:
                lost += rows
        return held, lost

    def _mapping_positions(self, rows: Sequence[KnownFile]) -> dict[int, int]:
        connection = self._connection
        return {
            row.id: int(connection.execute("SELECT mapping FROM note WHERE id = ?", (row.id,)).fetchone()[0])
            for row in rows
            if row.binding is not None
        }

    def _rows_of_other_vaults(self) -> list[KnownFile]:
        """Return rows of vaults that are not configured any more: these do go."""
        connection = self._connection
        names = {vault.id for vault in self._config.sources}
        others = [name for name in vaults_present(connection) if name not in names]
        view = IndexView(connection)
        return [row for name in others for row in view.files_at(name, known_signatures(connection, name)).values()]


def _removal_guard(
    rows: Sequence[KnownFile], known: int, folder: str, scan: VaultScan, was_held: bool, arrived: Collection[str]
) -> tuple[str, str]:
    """Return (finding code, message) when missing notes may not be deleted ones, else ("", "")."""
    if folder not in scan.folders:
        return "mapping_folder_missing", f"the folder {folder} is not there; {known} notes are kept"
    names = set(arrived)
    really = [row for row in rows if row.path.rpartition("/")[2] not in names]
    if len(arrived) >= len(rows):  # as many came as went: a renamed or rewritten folder
        return "", ""
    if len(really) == known and (known > 1 or was_held):
        return "mapping_folder_missing", f"none of the {known} notes of {folder} is there; they are kept"
    if len(really) > MASS_REMOVAL_MIN and 2 * len(really) > known:
        return "mass_removal", f"{len(really)} of {known} notes of {folder} vanished at once; they are kept"
    return "", ""
