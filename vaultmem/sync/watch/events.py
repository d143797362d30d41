"""What changed in the watched folders: events of the system as paths to look at, or "compare everything".

Events are hints only: paths are looked at by the scanner, content decides. Facts of the library:
reference/libraries.md, "watchfiles": a renamed or moved-in folder is told alone, a root that was
deleted and made again is silent for ever, its own filter hides too much. So roots are looked at every
tick, everything is compared from time to time, and where no events come the caller polls.
"""

from __future__ import annotations

import errno
import os
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from vaultmem.settings.rules import VaultConfig
from vaultmem.sync.walk.exclude import placeholder_target

TICK_MS = 250
DEBOUNCE_MS = 50
STEP_MS = 30
"""The library wakes this often: 10 ms cost more than 1 % of a CPU at rest, 30 ms less than half a per cent."""
GONE_GRACE_S = 0.15
"""A vanished file waits this long for its other half: a rename may come in two batches."""
MANY_PATHS = 1_000
"""Above this a comparison of everything is as cheap, and safe where the system dropped events."""
_NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "sshfs", "fuse.", "davfs", "vboxsf", "prl_fs", "vmhgfs", "drvfs", "ceph")


@dataclass(slots=True)
class Batch:
    """What to look at: vault-relative paths by source (`sweep`: everything), then which cookies to take."""

    sweep: bool = False
    only: dict[str, set[str]] = field(default_factory=dict)
    cookies: set[str] = field(default_factory=set)
    roots_changed: bool = False

    def is_empty(self) -> bool:
        """Tell whether nothing is to be done: a tick of the clock."""
        return not (self.sweep or self.only or self.cookies or self.roots_changed)


class EventsUnavailable(Exception):
    """The system gives no events for these folders; the text says why."""


def why_to_poll(sources: Sequence[VaultConfig], setting: str) -> str:
    """Return why events can't be relied on ("" when they can): the setting, or a file system without them."""
    if setting == "poll":
        return "VAULTMEM_WATCH asks for polling"
    mounts = _mounts()
    for source in sources:
        kind = next((kind for point, kind in mounts if _is_in(source.root, point)), "")
        if kind.startswith(_NETWORK):
            return f"{source.root} is on {kind}, which tells no changes of other machines"
    return ""


def _mounts() -> list[tuple[str, str]]:
    """Return (mount point, file system), the deepest first; Linux only."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
            rows = [line.split(" ") for line in file]
    except OSError:
        return []
    decoded = [(row[1].encode().decode("unicode_escape"), row[2]) for row in rows if len(row) > 2]
    return sorted(decoded, key=lambda row: -len(row[0]))


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class Events:
    """Batches of changes below the roots of some sources, with the cookies of readers among them."""

    def __init__(self, sources: Sequence[VaultConfig], cookie_folder: str, stop: threading.Event) -> None:
        self._sources = sources
        self._cookie_folder = cookie_folder
        self._stop = stop
        self._gone: dict[tuple[str, str], float] = {}

    def batches(self) -> Iterator[Batch]:
        """Yield batches (empty ones as ticks) until stopped or the roots change. Raises EventsUnavailable."""
        from watchfiles import watch

        before = self._identities()
        paths = [source.root for source in self._sources if before[source.id]]
        try:
            events = watch(
                *paths,
                self._cookie_folder,
                watch_filter=None,
                debounce=DEBOUNCE_MS,
                step=STEP_MS,
                rust_timeout=TICK_MS,
                yield_on_timeout=True,
                raise_interrupt=False,
                stop_event=self._stop,
                force_polling=False,
                ignore_permission_denied=True,
            )
            for changes in events:
                batch = self._batch(changes)
                batch.roots_changed = self._identities() != before
                yield batch
                if batch.roots_changed:
                    return
        except Exception as error:  # noqa: BLE001  the library raises its own kinds when a watch is refused
            raise EventsUnavailable(_in_words(error)) from None

    def _identities(self) -> dict[str, tuple[int, int] | None]:
        return {source.id: _identity(source.root) for source in self._sources}

    def _batch(self, changes: Iterable[tuple[int, str]]) -> Batch:
        batch = Batch()
        arrived: set[tuple[str, str]] = set()
        for change, path in changes:
            if _is_in(path, self._cookie_folder):
                if change != _DELETED:
                    batch.cookies.add(os.path.basename(path))
                continue
            for source in self._sources:
                if _is_in(path, source.root):
                    self._add(batch, source, os.path.relpath(path, source.root), change, arrived)
        self._settle(batch, arrived)
        if sum(map(len, batch.only.values())) > MANY_PATHS:
            batch.sweep = True
        return batch

    def _add(self, batch: Batch, source: VaultConfig, raw: str, change: int, arrived: set[tuple[str, str]]) -> None:
        *folders, name = raw.split("/")
        if raw == "." or raw == ".obsidian/app.json":
            batch.sweep = True
        elif any(folder.startswith(".") for folder in folders) or name.startswith("."):
            batch.sweep = batch.sweep or (not folders and name == ".obsidian") or bool(placeholder_target(name))
        elif not _is_text(raw):
            batch.sweep = True  # its finding stands under another spelling
        else:
            place = (source.id, unicodedata.normalize("NFC", raw))
            if change == _DELETED:
                self._gone.setdefault(place, time.monotonic())
            else:
                arrived.add(place)

    def _settle(self, batch: Batch, arrived: set[tuple[str, str]]) -> None:
        """Move into the batch what arrived, and what has been gone for long enough or must be told now."""
        due = time.monotonic() - GONE_GRACE_S
        told_now = bool(arrived or batch.cookies or batch.sweep)
        gone = [place for place, since in self._gone.items() if told_now or since <= due]
        for place in gone:
            del self._gone[place]
        for vault, path in (*arrived, *gone):
            batch.only.setdefault(vault, set()).add(path)


_DELETED = 3
"""`watchfiles.Change.deleted`; named here so that the library is imported only when it watches."""


def _in_words(error: Exception) -> str:
    """Return what the system said, and what to do where that is known."""
    said = str(error)[:200] or type(error).__name__
    if "limit" in said or getattr(error, "errno", None) in (errno.ENOSPC, errno.EMFILE):
        said += "; raise fs.inotify.max_user_watches and max_user_instances with sysctl"
    return said


def _identity(root: str) -> tuple[int, int] | None:
    try:
        found = os.stat(root)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_text(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
