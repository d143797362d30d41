"""A vanished note may be a save in two steps: the old file renamed away, the new one written a moment later.

Editors and sync tools leave up to some hundredths of a second between the two (fault case
t2-watch-save-by-renaming-away). A folder's own time tells when a file left it last, so only what left within
the grace is waited for, and a deletion of long ago costs nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence

from vaultmem.base.errors import FileRefused
from vaultmem.base.files import open_folder, open_root
from vaultmem.settings.rules import VaultConfig
from vaultmem.sync.walk.walk import VaultScan, scan_paths

GRACE_S = 0.15
_STEP_S = 0.004
MANY = 200
"""So many files that vanish at once are no save."""


def look_again(sources: Sequence[VaultConfig], scans: Sequence[VaultScan]) -> None:
    """Wait for notes that left their folders within the grace, and bring the scans up to date with what came back.

    One that is back is taken up at once: a person who saves again and again has it away most of the time.
    """
    missing = [_just_left(source, scan) for source, scan in zip(sources, scans, strict=True)]
    began = time.monotonic()
    while any(missing):
        time.sleep(_STEP_S)
        waited = time.monotonic() - began
        for source, scan, paths in zip(sources, scans, missing, strict=True):
            if paths:
                _take_up(source, scan, paths.keys())
            for path in [path for path, left in paths.items() if path not in scan.gone or waited > left]:
                del paths[path]


def _just_left(source: VaultConfig, scan: VaultScan) -> dict[str, float]:
    """Return the raw paths of notes that may come back, each with the seconds that are left of its grace."""
    gone = [path for path in scan.gone if path[-3:].lower() == ".md"]
    if not gone or len(gone) > MANY or not scan.reachable:
        return {}
    renamed = {file.signature.inode for file in scan.changed if file.kind == "note"}
    left: dict[str, float] = {}
    folders: dict[str, float] = {}
    try:
        root_fd = open_root(source.root)
    except OSError:
        return {}
    try:
        for path in gone:
            known = scan.known.get(path)
            if known is not None and known[3] in renamed:
                continue  # it is there under another name
            folder = path.rpartition("/")[0]
            if folder not in folders:
                folders[folder] = _seconds_left(root_fd, folder)
            if folders[folder] > 0:
                left[path] = folders[folder]
    finally:
        os.close(root_fd)
    return left


def _seconds_left(root_fd: int, folder: str) -> float:
    """Return what is left of the grace of files that left a folder last; 0 for a folder that is gone itself."""
    try:
        fd = open_folder(root_fd, folder)
    except (OSError, FileRefused):
        return 0.0
    try:
        ago = (time.time_ns() - os.fstat(fd).st_mtime_ns) / 1e9
    finally:
        os.close(fd)
    return GRACE_S - ago if 0 <= ago < GRACE_S else 0.0


def _take_up(source: VaultConfig, scan: VaultScan, paths: Collection[str]) -> None:
    """Look at some paths that were gone, and enter into the scan those that are there now."""
    again = scan_paths(source, {path: scan.known[path] for path in paths}, paths)
    back = set(paths) - again.gone
    if back:
        scan.gone -= back
        scan.files += again.files
        known = {file.raw_path for file in scan.changed}
        scan.changed += [file for file in again.changed if file.raw_path not in known]
        scan.changed.sort(key=lambda file: (file.path, file.raw_path))
