"""All platform differences of files: confined opens, atomic publishing.

Paths below a root are opened component by component with O_NOFOLLOW, so no link can lead
out (design.md §10). Publishing is write to a temporary file, fsync, rename, fsync of the
folder (reference/libraries.md, "atomic write").
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from vaultmem.base.errors import FileRefused, StoreRefused

try:  # absent on native Windows, where writing is refused
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

TEMP_PREFIX = ".vaultmem-"
TEMP_SUFFIX = ".tmp"
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class FileBytes:
    """A file's bytes with the stat before reading, and whether it stayed the same meanwhile."""

    data: bytes
    stat: os.stat_result
    stable: bool


def open_root(root: str) -> int:
    """Open a root folder and return its descriptor. Raises OSError."""
    return os.open(root, os.O_RDONLY | _DIRECTORY | getattr(os, "O_CLOEXEC", 0))


def open_folder(root_fd: int, rel_path: str, *, create: bool = False) -> int:
    """Open a folder below `root_fd` without following any link; the caller closes it.

    Raises FileRefused for a link or escape, FileNotFoundError when it is absent
    (unless `create`), OSError otherwise.
    """
    parts = _parts(rel_path)
    fd, arrived = os.dup(root_fd), False
    try:
        for part in parts:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=fd)
            step = _open_at(fd, part, os.O_RDONLY | _DIRECTORY, rel_path)
            os.close(fd)
            fd = step
        arrived = True
    finally:
        if not arrived:
            os.close(fd)
    return fd


def _parts(rel_path: str) -> list[str]:
    parts = [part for part in rel_path.split("/") if part not in ("", ".")]
    if ".." in parts or rel_path.startswith("/") or "\0" in rel_path:
        raise FileRefused(f"{rel_path!r} leaves its root")
    return parts


def _open_at(fd: int, name: str, flags: int, rel_path: str, mode: int = 0o600) -> int:
    try:
        return os.open(name, flags | NOFOLLOW, mode, dir_fd=fd)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise FileRefused(f"{rel_path} is a symbolic link") from None
        if error.errno == errno.ENOTDIR and _is_link(fd, name):
            raise FileRefused(f"{rel_path} goes through a symbolic link") from None
        raise


def _is_link(fd: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(name, dir_fd=fd).st_mode)
    except OSError:
        return False


def read_file(root_fd: int, rel_path: str, max_bytes: int) -> FileBytes | None:
    """Read a regular file below `root_fd`; None when it is larger than `max_bytes`.

    Raises FileRefused for links, escapes and anything that is no regular file, OSError else.
    """
    folder, _, name = rel_path.rpartition("/")
    folder_fd = open_folder(root_fd, folder) if folder else os.dup(root_fd)
    try:
        _parts(name)
        fd = _open_at(folder_fd, name, os.O_RDONLY | _NONBLOCK, rel_path)
    finally:
        os.close(folder_fd)
    try:
        return _read_fd(fd, rel_path, max_bytes)
    finally:
        os.close(fd)


def _read_fd(fd: int, rel_path: str, max_bytes: int) -> FileBytes | None:
    before = os.fstat(fd)
    if not stat.S_ISREG(before.st_mode):
        raise FileRefused(f"{rel_path} is not a regular file")
    if before.st_size > max_bytes:
        return None
    data = os.read(fd, before.st_size + 1)
    if len(data) != before.st_size:  # a short read, or the file is growing
        pieces = [data]
        while piece := os.read(fd, 1 << 16):
            pieces.append(piece)
            if sum(map(len, pieces)) > max_bytes:
                return None
        data = b"".join(pieces)
    after = os.fstat(fd)
    stable = len(data) == after.st_size and _stamp(before) == _stamp(after)
    return FileBytes(data, before, stable)


def _stamp(result: os.stat_result) -> tuple[int, int, int, int]:
    return result.st_size, result.st_mtime_ns, result.st_ctime_ns, result.st_ino


def fsync_folder(folder_fd: int) -> None:
    """Make a rename in that folder durable; file systems that can't are passed over."""
    with suppress(OSError):
        os.fsync(folder_fd)


def publish(folder_fd: int, name: str, data: bytes, *, like: os.stat_result | None) -> str:
    """Write `data` to a temporary file beside `name`, fsynced; return its name.

    `like` lends mode and owner. The caller renames it with `rename_over` or drops it.
    """
    refuse_unsupported_platform()
    temp = f"{TEMP_PREFIX}{secrets.token_hex(8)}{TEMP_SUFFIX}"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOFOLLOW, 0o600, dir_fd=folder_fd)
    with ExitStack() as undo:
        undo.callback(drop_temp, folder_fd, temp)
        undo.callback(os.close, fd)
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if like is not None:
            os.fchmod(fd, stat.S_IMODE(like.st_mode))
            if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(OSError):  # only root may give a file away; the mode is kept anyway
                    os.fchown(fd, like.st_uid, like.st_gid)
            _copy_xattrs(folder_fd, name, fd)
        else:
            os.fchmod(fd, 0o666 & ~_umask())
        os.fsync(fd)
        undo.pop_all()
    os.close(fd)
    return temp


def rename_over(folder_fd: int, temp: str, name: str) -> None:
    """Atomically replace `name` by the temporary file and make it durable."""
    os.replace(temp, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    fsync_folder(folder_fd)


def link_new(folder_fd: int, temp: str, name: str) -> None:
    """Publish a temporary file under a name that must not exist (FileExistsError otherwise)."""
    try:
        os.link(temp, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.EEXIST:
            raise
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS):
            raise
        # a file system without hard links: O_EXCL keeps the promise, the content follows
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOFOLLOW, 0o600, dir_fd=folder_fd))
        os.replace(temp, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    else:
        os.unlink(temp, dir_fd=folder_fd)
    fsync_folder(folder_fd)


def move_between(from_fd: int, from_name: str, to_fd: int, to_name: str) -> bool:
    """Durably move a plain file to a name that must not exist; False when there is none to move."""
    try:
        if not stat.S_ISREG(os.stat(from_name, dir_fd=from_fd, follow_symlinks=False).st_mode):
            raise FileRefused(f"{from_name} is not a regular file")
        os.link(from_name, to_name, src_dir_fd=from_fd, dst_dir_fd=to_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    fsync_folder(to_fd)
    os.unlink(from_name, dir_fd=from_fd)
    fsync_folder(from_fd)
    return True


def read_home_file(path: str) -> str:
    """Return the text of a small file of our home, "" when there is none."""
    try:
        with open(path, "rb") as file:
            return file.read(16_777_216).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def drop_temp(folder_fd: int, temp: str) -> None:
    """Remove a temporary file that was not published."""
    with suppress(OSError):
        os.unlink(temp, dir_fd=folder_fd)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _copy_xattrs(folder_fd: int, name: str, fd: int) -> None:
    if not hasattr(os, "listxattr"):
        return
    try:
        source = os.open(name, os.O_RDONLY | NOFOLLOW, dir_fd=folder_fd)
    except OSError:
        return
    try:
        for attribute in os.listxattr(source):
            with suppress(OSError):
                os.setxattr(fd, attribute, os.getxattr(source, attribute))
    except OSError:
        pass
    finally:
        os.close(source)


def refuse_unsupported_platform() -> None:
    """Refuse writes where this module can't make them safe (design.md §3, "Platforms")."""
    if sys.platform == "win32" or fcntl is None:  # pragma: no cover
        raise StoreRefused("Writing notes is not supported on native Windows yet", "Use vaultmem inside WSL")


def ensure_private_folder(path: str) -> None:
    """Create a folder of our home with mode 0700. Raises OSError."""
    os.makedirs(path, mode=0o700, exist_ok=True)


def can_write_in(folder: str) -> bool:
    """Tell whether files can be made in a folder (false on a read-only file system, for root too)."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return os.access(folder, os.W_OK | os.X_OK)


def write_private_file(path: str, text: str) -> None:
    """Write a file of our home atomically and durably (mode 0600)."""
    folder = os.path.dirname(path)
    ensure_private_folder(folder)
    fd = os.open(folder, os.O_RDONLY | _DIRECTORY)
    try:
        temp = publish(fd, os.path.basename(path), text.encode("utf-8"), like=None)
        os.chmod(temp, 0o600, dir_fd=fd)
        rename_over(fd, temp, os.path.basename(path))
    finally:
        os.close(fd)


def replace_private_file(path: str, other: str) -> None:
    """Make a file of our home durable and rename it over `path`, which is in the same folder."""
    fd = os.open(other, os.O_RDWR | NOFOLLOW)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    folder_fd = os.open(os.path.dirname(path), os.O_RDONLY | _DIRECTORY)
    try:
        rename_over(folder_fd, os.path.basename(other), os.path.basename(path))
    finally:
        os.close(folder_fd)
