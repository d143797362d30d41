"""Changed files to facts: read, hash, parse, and judge each one; nothing is decided here.

Heavy parts of what was parsed are kept apart (`PreparedStore`), so that planning a whole vault
needs little memory.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from vaultmem.base.errors import FileRefused
from vaultmem.base.files import FileBytes, open_folder, open_root, read_file
from vaultmem.base.values import Finding, Severity, Signature, SourceFile
from vaultmem.index.operations import FileFacts, outline_of
from vaultmem.index.rows import PreparedNote, prepare_note, prepared_from
from vaultmem.notes.findings import KINDS, finding
from vaultmem.notes.links.resolve import lookup_name
from vaultmem.notes.parse import parse_canvas, parse_note
from vaultmem.notes.wiki.topics import parse_topic
from vaultmem.settings.rules import VaultConfig
from vaultmem.sync.walk.exclude import PathFilter
from vaultmem.text.secrets import find_secret

_TRIES = 3
_RACY_NS = 100_000_000
_RACY_COARSE_NS = 2_000_000_000
KEEP_IN_MEMORY = 20_000
"""Parsed notes that are kept as objects; more of them go to a temporary file."""


class PreparedStore:
    """Prepared notes by reference: in memory for few, in an anonymous temporary file for many."""

    def __init__(self, expected: int) -> None:
        self._kept: dict[int, PreparedNote | tuple[int, int]] = {}
        many = expected > KEEP_IN_MEMORY
        self._file = tempfile.TemporaryFile(prefix="vaultmem-") if many else None  # noqa: SIM115  closed by close()
        self._end = 0
        self._next = 0

    def reserve(self, count: int) -> int:
        """Return the first of `count` references that `put_all` will fill, or leave."""
        first = self._next
        self._next += count
        return first

    def put(self, note: PreparedNote) -> int:
        """Keep a note and return its reference."""
        ref = self.reserve(1)
        self._keep(ref, note)
        return ref

    def put_all(self, first: int, notes: Sequence[bytes]) -> None:
        """Keep notes as `PreparedNote.to_bytes` gave them, under references from `first` on."""
        for ref, data in enumerate(notes, first):
            self._keep(ref, data)

    def _keep(self, ref: int, note: PreparedNote | bytes) -> None:
        if self._file is None:
            self._kept[ref] = prepared_from(note) if isinstance(note, bytes) else note
            return
        data = note if isinstance(note, bytes) else note.to_bytes()
        self._file.seek(self._end)
        self._file.write(data)
        self._kept[ref] = (self._end, len(data))
        self._end += len(data)

    def get(self, ref: int) -> PreparedNote:
        """Return the note of a reference."""
        kept = self._kept[ref]
        if isinstance(kept, PreparedNote):
            return kept
        assert self._file is not None
        self._file.seek(kept[0])
        return prepared_from(self._file.read(kept[1]))

    def close(self) -> None:
        """Drop what was kept."""
        self._kept.clear()
        if self._file is not None:
            self._file.close()


class FactsReader:
    """Reads the changed files of one vault; of one call, the folder of the last file stays open for the next."""

    def __init__(self, vault: VaultConfig, store: PreparedStore) -> None:
        self.vault = vault
        self.store = store
        self._secret_allow = PathFilter(vault.secret_allow)
        self._root_fd = open_root(vault.root)
        self._folder: tuple[str, int] | None = None

    def close(self) -> None:
        """Close the root."""
        os.close(self._root_fd)

    def read_all(
        self, files: Iterable[SourceFile], progress: Callable[[int], None] = lambda count: None
    ) -> list[FileFacts]:
        """Return the facts of `files` in the same order; `progress` gets 1 for each.

        Never raises for what a file holds or is.
        """
        facts = []
        try:
            for file in files:
                facts.append(self._guarded(file))
                progress(1)
        finally:
            self._leave_folder()
        return facts

    def _guarded(self, file: SourceFile) -> FileFacts:
        """Return a file's facts; a fault that nobody foresaw is that file's alone."""
        try:
            return self._read(file)
        except Exception as error:  # noqa: BLE001  one note never stops the vault; what the fault says may hold its text
            found = finding("note_unreadable", file.path, 0, f"reading it failed ({type(error).__name__})")
            return FileFacts(file, "ok", own_quarantine="note_unreadable", findings=(found,))

    def _read(self, file: SourceFile) -> FileFacts:
        if file.excluded_by in KINDS and KINDS[file.excluded_by].quarantines and file.kind == "note":
            message = _EXCLUSION_MESSAGES.get(file.excluded_by, KINDS[file.excluded_by].meaning)
            found = finding(file.excluded_by, file.path, 0, message)
            return FileFacts(file, "ok", racy=_is_racy(file), findings=(found,))
        if file.kind == "other" or file.binding is None:
            return FileFacts(file, "ok", racy=_is_racy(file))
        try:
            content = self._stable_content(file)
        except FileNotFoundError:
            return FileFacts(file, "gone")
        except FileRefused:
            found = finding("symlink_refused", file.path, 0, "it became a link or no regular file")
            return FileFacts(file, "ok", own_quarantine="symlink_refused", findings=(found,))
        except OSError as error:
            found = finding("file_unreadable", file.path, 0, f"can't be read: {error.strerror}")
            return FileFacts(file, "unreadable", findings=(found,))
        if content is None:
            return self._too_large(file)
        if not content.stable:
            found = finding("unstable_skipped", file.path, 0, "it kept changing while it was read")
            return FileFacts(file, "unstable", findings=(found,))
        return self.judge(file.with_signature(_signature(content)), content.data)

    def _stable_content(self, file: SourceFile) -> FileBytes | None:
        folder, _, name = file.raw_path.rpartition("/")
        for attempt in range(_TRIES):
            found = read_file(self._enter_folder(folder), name, self._max_bytes(file))
            if found is None or found.stable:
                return found
            time.sleep(0.005 * (attempt + 1))
        return found

    def _enter_folder(self, path: str) -> int:
        if self._folder is None or self._folder[0] != path:
            self._leave_folder()
            self._folder = path, open_folder(self._root_fd, path)
        return self._folder[1]

    def _leave_folder(self) -> None:
        if self._folder is not None:
            os.close(self._folder[1])
            self._folder = None

    def _max_bytes(self, file: SourceFile) -> int:
        return self.vault.max_note_bytes if file.kind == "note" else 4 * 1_048_576

    def _too_large(self, file: SourceFile) -> FileFacts:
        if file.kind == "canvas":
            return FileFacts(file, "ok")
        size, limit = file.signature.size, self.vault.max_note_bytes
        found = finding("note_too_large", file.path, 0, f"{size} bytes are more than max_note_bytes = {limit}")
        return FileFacts(file, "ok", own_quarantine="note_too_large", findings=(found,))

    def judge(self, file: SourceFile, data: bytes) -> FileFacts:
        """Return the facts of a file whose bytes are `data`."""
        content_hash = hashlib.sha256(data).hexdigest()
        if file.kind == "canvas":
            return FileFacts(file, "ok", content_hash, _is_racy(file), links=parse_canvas(data))
        name = file.path.rpartition("/")[2]
        if self.vault.native:
            note = parse_topic(data, file.path)
        else:
            note = parse_note(data, name, max_frontmatter_bytes=self.vault.max_frontmatter_bytes)
        secret = self._secret_finding(file, data)
        quarantine = note.quarantine
        findings = [replace(item, path=file.path) for item in note.findings]
        if secret is not None:
            findings.append(secret)
            quarantine = quarantine or ("secret_detected" if secret.severity == "error" else "")
        return FileFacts(
            file=file,
            status="ok",
            content_hash=content_hash,
            racy=_is_racy(file),
            claimed_key=(note.cao.key or "") if note.cao else "",
            own_quarantine=quarantine,
            aliases=note.aliases,
            outline=outline_of(((found.level, found.text) for found in note.headings), note.blocks),
            body_size=len(note.body.encode("utf-8", "replace")),
            findings=tuple(findings),
            asks_outlines_of=tuple(sorted({lookup_name(link.path) for link in note.links if link.subpath})),
            ref=self.store.put(prepare_note(note, file.path)),
        )

    def _secret_finding(self, file: SourceFile, data: bytes) -> Finding | None:
        if self._secret_allow.matches(file.path):
            return None
        match = find_secret(data.decode("utf-8", "replace"))
        line = match.line if match else 0
        match = match or find_secret(file.path)
        if match is None:
            return None
        where = f"line {line}" if line else "the file's name"
        severity: Severity = "error" if self.vault.secret_gate == "reject" else "warn"
        return finding(
            "secret_detected", file.path, line, f"{where} looks like a secret ({match.pattern})", severity=severity
        )


_EXCLUSION_MESSAGES = {
    "sync_artifact_skipped": "a conflict copy or temporary file of another program",
    "hardlink_refused": "the file has a second name on disk (a hard link)",
    "scope_id_invalid": "its sub-folder's name can't be a scope id",
}


def _signature(content: FileBytes) -> Signature:
    return Signature.of(content.stat)


def _is_racy(file: SourceFile) -> bool:
    """Tell whether a later change could leave the same signature, as it was read too soon (git's rule).

    File systems with fine stamps tick at 10 ms or less, so 100 ms are enough there; where both
    stamps are whole seconds (FAT, HFS+) two seconds are taken, as design.md §5 says.
    """
    newest = max(file.signature.mtime_ns, file.signature.ctime_ns)
    coarse = file.signature.mtime_ns % 1_000_000_000 == 0 and file.signature.ctime_ns % 1_000_000_000 == 0
    if not coarse:
        newest = file.signature.ctime_ns
    return time.time_ns() - newest < (_RACY_COARSE_NS if coarse else _RACY_NS)
