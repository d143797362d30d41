"""The only writer of notes: a new or longer file in the managed folder, published atomically.

A file is written only as the one that was read: its bytes are compared again right before the
rename, and the replaced inode is hashed again after it, so that bytes which another program wrote
late are published together with ours (design.md §7, "No byte is ever lost").
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from vaultmem.base.errors import FileRefused, NoteChangedSinceRead, StoreRefused
from vaultmem.base.files import (
    drop_temp,
    ensure_private_folder,
    fsync_folder,
    link_new,
    move_between,
    open_folder,
    open_root,
    publish,
    read_file,
    refuse_unsupported_platform,
    rename_over,
)
from vaultmem.settings.rules import VaultConfig
from vaultmem.sync.walk.walk import temporary_files

TRIES = 3
Edit = Callable[[bytes | None], bytes | None]
"""From the file's bytes (None: there is no file) to its new bytes, or None to leave it; may raise StoreRefused."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was published: `created`, `updated`, or `unchanged` when the edit left the file as it is."""

    action: str


def write_note(vault: VaultConfig, rel_path: str, edit: Edit, conflicts: str) -> Written:
    """Publish `edit` of a note in the vault's managed folder.

    `conflicts` is a folder of our home that gets a copy of late bytes of other programs. Raises
    StoreRefused (nothing written), NoteChangedSinceRead after three changed tries, OSError.
    """
    refuse_unsupported_platform()
    folder, _, name = rel_path.rpartition("/")
    refuse_outside(vault, folder, rel_path)
    if vault.native:
        ensure_private_folder(vault.root)
    root_fd = open_root(vault.root)
    try:
        try:
            folder_fd = open_folder(root_fd, folder, create=True)
        except FileRefused as error:
            raise StoreRefused(
                f"{error.message}, and links are never followed", "Replace the link by a folder"
            ) from None
        try:
            _sweep(folder_fd)
            return _write(vault, root_fd, folder_fd, rel_path, name, edit, conflicts)
        finally:
            os.close(folder_fd)
    finally:
        os.close(root_fd)


def refuse_outside(vault: VaultConfig, folder: str, rel_path: str) -> None:
    """Refuse a path that is not ours to write: of a vault only the managed folder is."""
    if vault.native:
        return
    if not vault.managed_folder or not (folder + "/").startswith(vault.managed_folder + "/"):
        raise StoreRefused(f"{rel_path} is outside the managed folder, and nothing else is ever written")


def move_topic(home: str, source: str, target: str) -> bool:
    """Move a topic between two folders of our own, both relative to `home`; False when it is not there.

    The target must not exist (FileExistsError). Both folders are flushed, so that the topic is in
    one place or the other after any crash. Raises FileRefused for links on the way.
    """
    home_fd = open_root(home)
    try:
        from_folder, _, from_name = source.rpartition("/")
        to_folder, _, to_name = target.rpartition("/")
        try:
            from_fd = open_folder(home_fd, from_folder)
        except FileNotFoundError:
            return False
        try:
            to_fd = open_folder(home_fd, to_folder, create=True)
            try:
                return move_between(from_fd, from_name, to_fd, to_name)
            finally:
                os.close(to_fd)
        finally:
            os.close(from_fd)
    finally:
        os.close(home_fd)


def remove_topic(home: str, path: str) -> bool:
    """Delete a file of our own (relative to `home`) for good; False when it is not there."""
    home_fd = open_root(home)
    try:
        folder, _, name = path.rpartition("/")
        try:
            folder_fd = open_folder(home_fd, folder)
            try:
                os.unlink(name, dir_fd=folder_fd)
                fsync_folder(folder_fd)
            finally:
                os.close(folder_fd)
        except FileNotFoundError:
            return False
        return True
    finally:
        os.close(home_fd)


def _sweep(folder_fd: int) -> None:
    """Drop our temporary files that a crash left here (the caller holds the writer's lock)."""
    for name in temporary_files(folder_fd):
        drop_temp(folder_fd, name)


def _write(
    vault: VaultConfig, root_fd: int, folder_fd: int, rel_path: str, name: str, edit: Edit, conflicts: str
) -> Written:
    for _ in range(TRIES):
        current = _read(vault, root_fd, folder_fd, rel_path, name)
        old = current[0] if current else None
        new = edit(old)
        if new is None:
            return Written("unchanged")
        if len(new) > vault.max_note_bytes:
            raise StoreRefused(
                f"{rel_path} would be larger than max_note_bytes ({vault.max_note_bytes})", "Store under another key"
            )
        temp = publish(folder_fd, name, new, like=current[1] if current else None)
        try:
            if current is None:
                with suppress(FileExistsError):
                    link_new(folder_fd, temp, name)
                    return Written("created")
                continue  # somebody made the file meanwhile: read it and append
            if _replace(vault, root_fd, folder_fd, rel_path, name, temp, current[0], edit, conflicts):
                return Written("updated")
        finally:
            drop_temp(folder_fd, temp)
    raise NoteChangedSinceRead(
        f"{rel_path} was changed by another program at every try, so nothing was written", "Store again"
    )


def _read(
    vault: VaultConfig, root_fd: int, folder_fd: int, rel_path: str, name: str
) -> tuple[bytes, os.stat_result] | None:
    """Return the bytes and stat of the file, None when there is none. Raises StoreRefused for odd files."""
    try:
        found = read_file(root_fd, rel_path, max(vault.max_note_bytes, 1_048_576) + 1)
    except FileNotFoundError:
        placeholder = f".{name}.icloud"
        with suppress(FileNotFoundError):
            os.stat(placeholder, dir_fd=folder_fd, follow_symlinks=False)
            raise StoreRefused(
                f"{rel_path} is in the cloud only (not downloaded)", "Download it, then store again"
            ) from None
        return None
    except FileRefused as error:
        raise StoreRefused(f"{error.message}, and is never written through", "Replace it by a plain note") from None
    if found is None:
        raise StoreRefused(f"{rel_path} is too large to be edited", "Store under another key")
    if found.stat.st_nlink > 1 and not vault.allow_hardlinks:
        raise StoreRefused(f"{rel_path} has a second name on disk (a hard link)", "Copy the note in Obsidian first")
    if not found.stat.st_mode & stat.S_IWUSR:
        raise StoreRefused(f"{rel_path} is write-protected", "Change its permissions, or store under another key")
    return found.data, found.stat


def _replace(
    vault: VaultConfig,
    root_fd: int,
    folder_fd: int,
    rel_path: str,
    name: str,
    temp: str,
    old: bytes,
    edit: Edit,
    conflicts: str,
) -> bool:
    """Rename over the file that was read; False when it is not that file any more."""
    keep_fd = os.open(name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC, dir_fd=folder_fd)
    try:
        if _all_bytes(keep_fd) != old:
            return False
        rename_over(folder_fd, temp, name)
        late = _all_bytes(keep_fd)
    finally:
        os.close(keep_fd)
    if late != old:
        _keep_copy(conflicts, name, late)
        both = edit(late)
        if both is not None:
            again = publish(folder_fd, name, both, like=os.stat(name, dir_fd=folder_fd))
            rename_over(folder_fd, again, name)
    return True


def _all_bytes(fd: int) -> bytes:
    pieces = []
    offset = 0
    while piece := os.pread(fd, 1 << 20, offset):
        pieces.append(piece)
        offset += len(piece)
    return b"".join(pieces)


def _keep_copy(conflicts: str, name: str, data: bytes) -> None:
    ensure_private_folder(conflicts)
    stamp = hashlib.sha256(data).hexdigest()[:12]
    path = os.path.join(conflicts, f"{stamp}-{secrets.token_hex(3)}-{name}")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
