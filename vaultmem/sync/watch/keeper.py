"""Keep the index equal to the files while it runs: by events, or by polling where there are none.

One process holds the lease of a home (`sync.watch.lease`); the others stand by and take over within
STAND_BY_S of its end. Every batch of events is a reconcile of its paths; everything is compared at
the start, when a root comes or goes, and from time to time, since events can be lost (design.md §5).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from vaultmem.base.errors import LockBusy
from vaultmem.settings.config import Config, environment_value
from vaultmem.sync.reconcile import ReconcileResult, config_fingerprint
from vaultmem.sync.watch.events import Batch, Events, EventsUnavailable, why_to_poll
from vaultmem.sync.watch.lease import Lease, cookie_folder, cookies, take_cookies, who_watches

STAND_BY_S = 2.0
SWEEP_EVERY_S = 15.0
SWEEP_REST = 500
"""Seconds between comparisons of everything, at least; and at least so many times as long as the last one took."""
POLL_EVERY_S = 1.0
POLL_REST = 20
EVENTS_AGAIN_S = 60.0
"""After this long without events they are tried again."""


class Home(Protocol):
    """An open home, as far as it is to be kept: its settings, and a reconcile that heals a damaged index."""

    config: Config

    def reconcile(self, *, only: Mapping[str, Collection[str]] | None) -> ReconcileResult:
        """Make the index equal to all files, or to those at `only` (paths by source). Raises LockBusy."""


Report = Callable[[ReconcileResult], None]
Notice = Callable[[str], None]


class Watch:
    """Watches one home until it is stopped or config.toml changes."""

    def __init__(self, home: Home, stop: threading.Event, report: Report, notice: Notice) -> None:
        self._home = home
        self._stop = stop
        self._report = report
        self._notice = notice
        self._lease = Lease(home.config.home)
        self._config_path = os.path.join(home.config.home, "config.toml")
        self._config_stamp = _stamp(self._config_path)
        self._last_sweep = 0.0
        self._sweep_s = 0.0
        self._told = ""

    def run(self) -> None:
        """Watch; standing by while another process holds the lease. Raises what a reconcile raises."""
        try:
            told = False
            while not self._ended():
                if self._lease.acquire():
                    self._hold()
                    continue
                if not told:
                    self._notice(f"process {who_watches(self._home.config.home).holder} is watching; standing by")
                    told = True
                self._stop.wait(STAND_BY_S)
        finally:
            self._lease.release()

    def _ended(self) -> bool:
        return self._stop.is_set() or _stamp(self._config_path) != self._config_stamp

    def _hold(self) -> None:
        config = self._home.config
        reason = why_to_poll(config.sources, environment_value("VAULTMEM_WATCH"))
        if not reason:
            try:
                self._by_events()
                return
            except EventsUnavailable as error:
                reason = f"the system gives no events ({error})"
        self._poll(reason)

    # -- by events ------------------------------------------------------------------------------

    def _by_events(self) -> None:
        home = self._home.config.home
        events = Events(self._home.config.sources, cookie_folder(home), self._stop)
        first = True
        for batch in events.batches():
            if self._ended():
                return
            if first:  # what happened before the first event is found by comparing
                batch.sweep, first = True, False
                batch.cookies.update(cookies(home))
            rest = max(SWEEP_EVERY_S, SWEEP_REST * self._sweep_s)
            batch.sweep = batch.sweep or batch.roots_changed or time.monotonic() - self._last_sweep >= rest
            if not batch.is_empty() and self._apply(batch):
                self._tell("events", "")
                take_cookies(home, batch.cookies)

    def _apply(self, batch: Batch) -> bool:
        """Bring a batch into the index; False when another process was writing for too long."""
        if not batch.sweep and batch.only:
            result = self._reconcile({vault: sorted(paths) for vault, paths in batch.only.items()})
            batch.sweep = result is None or bool(result.held_mappings)  # what is held is recorded by a sweep
        return self._sweep() if batch.sweep else True

    def _sweep(self) -> bool:
        started = time.monotonic()
        result = self._reconcile(None)
        self._last_sweep = time.monotonic()
        if result is None:
            self._last_sweep = 0.0
            return False
        self._sweep_s = self._last_sweep - started
        return True

    def _reconcile(self, only: dict[str, list[str]] | None) -> ReconcileResult | None:
        try:
            result = self._home.reconcile(only=only)
        except LockBusy as error:
            self._notice(f"{error.message}; its changes are taken up by the next comparison")
            return None
        if result.added or result.changed or result.moved or result.removed:
            self._report(result)
        return result

    def _tell(self, mode: str, reason: str) -> None:
        """Tell other processes how it is watched, once the index is equal to the files."""
        fingerprint = config_fingerprint(self._home.config)
        told = f"{mode} {reason} {fingerprint}"
        if told != self._told:
            self._lease.tell(mode, reason, fingerprint)
            self._told = told
            if reason:
                self._notice(f"watching by polling: {reason}")

    # -- by polling -----------------------------------------------------------------------------

    def _poll(self, reason: str) -> None:
        until = time.monotonic() + EVENTS_AGAIN_S
        while not self._ended() and time.monotonic() < until:
            if self._sweep():
                self._tell("polling", reason)
            self._stop.wait(max(POLL_EVERY_S, POLL_REST * self._sweep_s))


def watch(home: Home, stop: threading.Event, report: Report, notice: Notice) -> None:
    """Keep the index equal to the files until `stop` is set or config.toml changes.

    `report` gets each reconcile that changed something, `notice` what a person should know.
    """
    home.config.require_vault()
    Watch(home, stop, report, notice).run()


def _stamp(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns
