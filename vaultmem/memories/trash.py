"""What was forgotten or expired of the native wiki: `trash/<day>/<path in the wiki>`, kept for 30 days."""

from __future__ import annotations

import os

from vaultmem.sync.walk.walk import names_in

TRASH = "trash"


def trashed_copies(home: str, path: str) -> list[str]:
    """Return the trashed copies of a topic (all relative to `home`), newest first."""
    found = []
    for day in trash_days(home):
        folder, _, name = f"{TRASH}/{day}/{path}".rpartition("/")
        copies = [copy for copy in names_in(os.path.join(home, folder)) if _is_copy(copy, name)]
        found += [(day, _number(copy), f"{folder}/{copy}") for copy in copies]
    return [item[2] for item in sorted(found, reverse=True)]


def trash_days(home: str) -> list[str]:
    """Return the days of the trash, oldest first."""
    return sorted(names_in(os.path.join(home, TRASH)))


def free_place(home: str, path: str, day: str) -> str:
    """Return a path in the trash of a day that no copy has yet."""
    place = f"{TRASH}/{day}/{path}"
    number = 2
    found = place
    while os.path.lexists(os.path.join(home, found)):
        found = f"{place}.{number}"
        number += 1
    return found


def _is_copy(copy: str, name: str) -> bool:
    return copy == name or (copy.startswith(name + ".") and copy[len(name) + 1 :].isdecimal())


def _number(copy: str) -> int:
    number = copy.rpartition(".")[2]
    return int(number) if number.isdecimal() else 0


def trashed_in(home: str, folder: str) -> list[str]:
    """Return all files below a folder of the trash (relative to `home`); links are not followed."""
    found: list[str] = []
    for name in names_in(os.path.join(home, folder)):
        path = f"{folder}/{name}"
        full = os.path.join(home, path)
        if os.path.isdir(full) and not os.path.islink(full):
            found += trashed_in(home, path)
        else:
            found.append(path)
    return found
