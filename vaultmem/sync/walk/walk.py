"""The only walker: one pass over a vault's root, by descriptors, following no link.

Stat values alone are looked at; no note is opened here (the one file that is read is Obsidian's
app.json). Odd entries come out as findings, never as exceptions. design.md §5, "Scan".
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from vaultmem.base.errors import FileRefused
from vaultmem.base.files import TEMP_PREFIX, TEMP_SUFFIX, open_folder, open_root, read_file
from vaultmem.base.values import Binding, Finding, Signature, SourceFile
from vaultmem.notes.findings import finding
from vaultmem.settings.rules import VaultConfig
from vaultmem.sync.walk.bindings import mapping_of
from vaultmem.sync.walk.exclude import ObsidianFilter, PathFilter, is_sync_artifact, placeholder_target

MAX_PATH_BYTES = 1_024
MAX_DEPTH = 64
_APP_JSON = ".obsidian/app.json"
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
_CONTROL = {ord(c): f"\\x{ord(c):02x}" for c in map(chr, (*range(32), 127))}

Known = Mapping[str, tuple[int, int, int, int] | None]
"""Raw path to stat signature; None makes the file count as changed."""


@dataclass(slots=True)
class VaultScan:
    """What one walk saw.

    `changed`: new files and those with another signature, by path; `gone`: known raw paths that
    were not seen; `folders`: mapping folders that were entered; `unreadable`: folders that could
    not be; `placeholders`: paths whose content is in a cloud only; `known`: what was compared with;
    `left_out`: files that Obsidian's own filters leave out.
    """

    vault: str
    reachable: bool = True
    files: int = 0
    notes: int = 0
    changed: list[SourceFile] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    unreadable: set[str] = field(default_factory=set)
    placeholders: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    known: Known = field(default_factory=dict)
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class _Folder:
    """What holds for the files of one folder."""

    path: str
    raw_prefix: str
    binding: Binding | None
    mapping: int
    excluded: str
    depth: int


def display_path(path: str) -> str:
    """Return a path that is safe to print: control characters and bad bytes are spelled out."""
    return path.encode("utf-8", "backslashreplace").decode().translate(_CONTROL)


def obsidian_filters(root_fd: int) -> tuple[str, ...]:
    """Return `userIgnoreFilters` of the vault's app.json; () when there is none that can be read."""
    try:
        found = read_file(root_fd, _APP_JSON, 1_000_000)
        value = json.loads(found.data).get("userIgnoreFilters") if found else None
    except (OSError, FileRefused, ValueError, AttributeError, RecursionError):
        return ()
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def scan_vault(vault: VaultConfig, known: Known) -> VaultScan:
    """Walk the vault once and compare with `known`; the order of results is by path."""
    scan = VaultScan(vault.id, known=known)
    try:
        root_fd = open_root(vault.root)
    except OSError:
        scan.reachable = False
        return scan
    try:
        walker = _Walker(
            vault, known, scan, ObsidianFilter(obsidian_filters(root_fd) if vault.obsidian_excludes else ())
        )
        walker.walk(root_fd, walker.folder("", "", 0, ""))
    finally:
        os.close(root_fd)
    scan.gone = set(walker.pending)
    scan.changed.sort(key=lambda file: (file.path, file.raw_path))
    for text, count in sorted(walker.left_out.items()):
        scan.findings.append(
            finding(
                "excluded_by_obsidian", "", 0, f"{count} files are left out by Obsidian's filter {display_path(text)}"
            )
        )
    scan.findings.sort(key=lambda item: (item.path, item.code, item.message))
    return scan


def scan_paths(vault: VaultConfig, known: Known, paths: Collection[str]) -> VaultScan:
    """Look at some vault-relative paths only (files, or folders with all below them).

    `known` holds what is known at and below these paths. No finding of the vault as a whole is made.
    """
    scan = VaultScan(vault.id, known=known)
    try:
        root_fd = open_root(vault.root)
    except OSError:
        scan.reachable = False
        return scan
    try:
        walker = _Walker(
            vault, known, scan, ObsidianFilter(obsidian_filters(root_fd) if vault.obsidian_excludes else ())
        )
        for path in sorted(set(paths)):
            walker.look_at(root_fd, path)
    finally:
        os.close(root_fd)
    scan.gone = set(walker.pending)
    scan.changed.sort(key=lambda file: (file.path, file.raw_path))
    return scan


class _Walker:
    """The state of one walk."""

    def __init__(self, vault: VaultConfig, known: Known, scan: VaultScan, obsidian: ObsidianFilter) -> None:
        self.vault = vault
        self.known = known
        self.pending = dict(known)
        self.scan = scan
        self.exclude = PathFilter(vault.exclude)
        self.obsidian = obsidian
        self.left_out: dict[str, int] = {}
        self.mapping_folders = {mapping.folder for mapping in vault.mappings}
        self.total_bytes = 0

    def folder(self, path: str, raw_prefix: str, depth: int, excluded: str) -> _Folder:
        position, binding, reason = mapping_of(self.vault, path)
        if (
            not excluded
            and path
            and (self.exclude.matches_folder(path) or path.rpartition("/")[2].lower().startswith("_cao-"))
        ):
            excluded = "exclude"
        return _Folder(path, raw_prefix, binding, position, excluded or reason, depth)

    def look_at(self, root_fd: int, path: str) -> None:
        """Look at one path; its folders are opened one by one, none of them through a link."""
        parts = path.split("/")
        if "\0" in path:  # no file can have such a name
            return
        folder = self.folder("", "", 0, "")
        self.scan.folders.add(".")
        fd = os.dup(root_fd)
        try:
            for depth, part in enumerate(parts[:-1], 1):
                if part.startswith(".") or part in ("", ".."):
                    return
                try:
                    below = os.open(part, _FOLDER_FLAGS, dir_fd=fd)
                except PermissionError:  # there, and closed to us: what is below is not gone
                    self._unreadable(unicodedata.normalize("NFC", folder.raw_prefix + part))
                    return
                os.close(fd)
                fd = below
                raw = folder.raw_prefix + part
                folder = self.folder(unicodedata.normalize("NFC", raw), raw + "/", depth, self._inherited(folder))
                self.scan.folders.add(folder.path)
            self._look_at_name(fd, folder, parts[-1])
        except OSError:
            return  # what is not there is gone
        finally:
            os.close(fd)

    def _look_at_name(self, fd: int, folder: _Folder, name: str) -> None:
        with os.scandir(fd) as entries:
            for entry in entries:
                if entry.name == name or unicodedata.normalize("NFC", entry.name) == name:
                    self._entry(fd, entry, folder)

    def walk(self, fd: int, folder: _Folder) -> None:
        """Read one folder and the folders below it; `fd` stays open and belongs to the caller."""
        try:
            with os.scandir(fd) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            self._unreadable(folder.path)
            return
        if (folder.path or ".") in self.mapping_folders:
            self.scan.folders.add(folder.path or ".")
        for entry in listed:
            self._entry(fd, entry, folder)

    def _entry(self, fd: int, entry: os.DirEntry[str], folder: _Folder) -> None:
        name = entry.name
        if name[0] == ".":
            self._hidden(name, folder)
        elif entry.is_symlink():
            self._odd("symlink_refused", name, folder, "a symbolic link")
        elif entry.is_dir(follow_symlinks=False):
            self._enter(fd, name, folder)
        elif entry.is_file(follow_symlinks=False):
            self._file(entry, folder)
        else:
            self._odd("non_regular_file_refused", name, folder, "a pipe, socket or device")

    def _enter(self, fd: int, name: str, parent: _Folder) -> None:
        raw = parent.raw_prefix + name
        path = self._readable_path(raw, parent)
        if path is None:
            return
        if parent.depth + 1 > MAX_DEPTH:
            self._add("path_too_long", path, f"more than {MAX_DEPTH} folders deep", parent)
            return
        try:
            below = os.open(name, _FOLDER_FLAGS, dir_fd=fd)
        except OSError:
            self._unreadable(path)
            return
        try:
            self.walk(below, self.folder(path, raw + "/", parent.depth + 1, self._inherited(parent)))
        finally:
            os.close(below)

    @staticmethod
    def _inherited(folder: _Folder) -> str:
        return folder.excluded if folder.excluded == "exclude" else ""

    def _file(self, entry: os.DirEntry[str], folder: _Folder) -> None:
        try:
            stat = entry.stat(follow_symlinks=False)
        except OSError:  # gone between listing and stat: the next run sees it so
            return
        raw = folder.raw_prefix + entry.name
        signature = Signature.of(stat)
        self.scan.files += 1
        known = self.pending.pop(raw, None)
        is_note = not folder.excluded and entry.name[-3:].lower() == ".md"
        over = is_note and self._over_budget(stat.st_size)
        if known == signature and not over:
            if not self.obsidian.empty and not folder.excluded:  # counted as it would be if it were read again
                unchanged = raw if raw.isascii() else unicodedata.normalize("NFC", raw)
                if not self.exclude.matches_file(unchanged):
                    self._leave_out(unchanged)
            return
        path = self._readable_path(raw, folder)
        if path is None:
            return
        reason = over or self._excluded(entry.name, path, stat, folder)
        kind = "note" if path[-3:].lower() == ".md" else "canvas" if path.lower().endswith(".canvas") else "other"
        self.scan.changed.append(
            SourceFile(
                self.vault.id,
                path,
                raw,
                kind,
                signature,
                None if reason else folder.binding,
                folder.mapping,
                reason,
            )
        )

    def _over_budget(self, size: int) -> str:
        self.scan.notes += 1
        self.total_bytes += size
        if self.scan.notes > self.vault.max_notes:
            if self.scan.notes == self.vault.max_notes + 1:
                self.scan.findings.append(
                    finding("note_limit_exceeded", "", 0, f"more than max_notes = {self.vault.max_notes} notes")
                )
            return "note_limit_exceeded"
        if self.vault.max_total_bytes and self.total_bytes > self.vault.max_total_bytes:
            if not any(item.code == "byte_budget_exceeded" for item in self.scan.findings):
                self.scan.findings.append(
                    finding("byte_budget_exceeded", "", 0, f"more than max_total_bytes = {self.vault.max_total_bytes}")
                )
            return "byte_budget_exceeded"
        return ""

    def _excluded(self, name: str, path: str, stat: os.stat_result, folder: _Folder) -> str:
        """Return why a file gives no note, or ""; a finding code where the user should know."""
        if folder.excluded:
            return folder.excluded
        if self.exclude.matches_file(path):
            return "exclude"
        if self._leave_out(path):
            return "excluded_by_obsidian"
        if is_sync_artifact(name):
            return "sync_artifact_skipped"
        if name[-3:].lower() == ".md" and stat.st_nlink > 1 and not self.vault.allow_hardlinks:
            return "hardlink_refused"
        return ""

    def _leave_out(self, path: str) -> bool:
        """Count a file that Obsidian's own filters leave out; False for one that they do not."""
        left = "" if self.obsidian.empty else self.obsidian.match(path)
        if left:
            self.left_out[left] = self.left_out.get(left, 0) + 1
            self.scan.left_out += 1
        return bool(left)

    def _hidden(self, name: str, folder: _Folder) -> None:
        target = placeholder_target(name)
        if target:
            path = unicodedata.normalize("NFC", (folder.path + "/" if folder.path else "") + target)
            self.scan.placeholders.add(path)
            self._add("note_not_downloaded", path, "its content is in the cloud only", folder)

    def _readable_path(self, raw: str, folder: _Folder) -> str | None:
        """Return the NFC path, or None after a finding when it can't name a note."""
        if raw.isascii():
            path = raw
        else:
            try:
                raw.encode("utf-8")
            except UnicodeEncodeError:
                self._add("path_not_utf8", display_path(raw), "the name is not UTF-8", folder)
                return None
            path = unicodedata.normalize("NFC", raw)
        if len(raw) > MAX_PATH_BYTES // 4 and len(raw.encode("utf-8")) > MAX_PATH_BYTES:
            self._add("path_too_long", path[:100] + "…", f"the path is longer than {MAX_PATH_BYTES} bytes", folder)
            return None
        return path

    def _odd(self, code: str, name: str, folder: _Folder, message: str) -> None:
        path = self._readable_path(folder.raw_prefix + name, folder)
        if path is not None:
            self._add(code, path, message, folder, raw=folder.raw_prefix + name)

    def _add(self, code: str, path: str, message: str, folder: _Folder, raw: str = "") -> None:
        """Report an entry, unless it lies where nothing is shown; `raw` is its path as it is on disk."""
        if folder.excluded in ("exclude", "unmapped", "index_off", "mapped_away") or self.exclude.matches(path):
            return
        self.scan.findings.append(finding(code, raw or path, 0, message))

    def _unreadable(self, path: str) -> None:
        self.scan.unreadable.add(path)
        if not self.exclude.matches(path):
            self.scan.findings.append(finding("file_unreadable", path, 0, "the folder can't be opened"))


def names_in(folder: str | int) -> list[str]:
    """Return the names in a folder of our own; [] when it can't be read."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]
    except OSError:
        return []


def temporary_files(folder_fd: int) -> list[str]:
    """Return our own temporary files in a folder: left by a crash, to be swept by the writer."""
    return [name for name in names_in(folder_fd) if name.startswith(TEMP_PREFIX) and name.endswith(TEMP_SUFFIX)]


def is_open_folder(root: str, folder: str) -> bool:
    """Tell whether a folder of a vault can be opened now, without following links."""
    try:
        root_fd = open_root(root)
    except OSError:
        return False
    try:
        fd = open_folder(root_fd, "" if folder == "." else folder)
    except (OSError, FileRefused):
        return False
    finally:
        os.close(root_fd)
    os.close(fd)
    return True
