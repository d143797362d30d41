"""Doctor: every check at once, each with what was found and the command or step that mends it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from vaultmem.access.session import Session
from vaultmem.base.errors import ConfigError, NotConfigured, VaultmemError
from vaultmem.health.findings import finding_counts
from vaultmem.health.stored_text import lying_notes
from vaultmem.index import digest
from vaultmem.index.database import MAX_INSPECTED_NOTES, choose_engine, inspect
from vaultmem.index.postings import posting_differences
from vaultmem.settings.config import Config, load_config
from vaultmem.sync.walk.walk import is_open_folder

MIN_FREE_BYTES = 100 * 1_048_576


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its name, whether all is well, what was found, and what to do ("" if nothing)."""

    name: str
    ok: bool
    message: str
    fix: str = ""


def doctor(home: str | None, *, full: bool = False) -> list[Check]:
    """Run every check; one that fails never keeps the others from running.

    `full`: all notes are compared with their files, not a sample of them.
    """
    checks = list(_check_machine())
    try:
        config = load_config(home)
    except ConfigError as error:
        checks.append(Check("settings", False, "; ".join(error.problems), "vaultmem config check"))
        return checks
    try:
        config.require_vault()
    except NotConfigured as error:
        checks.append(Check("settings", False, error.message, error.next_step))
        return checks
    checks.append(Check("settings", True, config.path))
    checks += _check_home(config)
    checks += _check_vaults(config)
    with Session(config) as session:
        checks += _check_databases(session, full)
    return checks


def _check_machine() -> Iterator[Check]:
    try:
        name = choose_engine("auto").name.upper()
        slower = "; without FTS5 queries of common words are slower" if name != "FTS5" else ""
        yield Check("search engine", True, f"{name} of SQLite {sqlite3.sqlite_version}{slower}")
    except VaultmemError as error:
        yield Check("search engine", False, error.message, error.next_step)
    import yaml

    fast = bool(getattr(yaml, "__with_libyaml__", False))
    yield Check("YAML", True, "C loader" if fast else "pure Python loader: reading is slower")


def _check_home(config: Config) -> Iterator[Check]:
    home = config.home
    if os.path.isdir(home) and not os.access(home, os.W_OK | os.X_OK):
        yield Check("home", False, f"{home} is not writable", f"Change its permissions: chmod u+rwx {home}")
        return
    existing = home
    while not os.path.isdir(existing):
        existing = os.path.dirname(existing)
    free = shutil.disk_usage(existing).free
    if free < MIN_FREE_BYTES:
        yield Check("home", False, f"only {free // 1_048_576} MB are free for {home}", "Free some space on that disk")
    else:
        yield Check("home", True, f"{home}, {free // 1_048_576} MB free")


def _check_vaults(config: Config) -> Iterator[Check]:
    for vault in config.vaults:
        name = f"vault {vault.id}"
        if not is_open_folder(vault.root, "."):
            yield Check(name, False, f"{vault.root} can't be opened", "Mount it, or correct root in the settings")
            continue
        missing = [
            mapping.folder
            for mapping in vault.mappings
            if not mapping.writable and not is_open_folder(vault.root, mapping.folder)
        ]
        if missing:
            yield Check(name, False, f"mapped folders are not there: {', '.join(missing)}", "vaultmem config path")
        else:
            yield Check(name, True, vault.root)
        managed = os.path.join(vault.root, vault.managed_folder)
        if vault.managed_folder and os.path.islink(managed):
            yield Check(name, False, f"{managed} is a link and is never written through", "Replace it by a folder")
        elif vault.managed_folder and os.path.isdir(managed) and not os.access(managed, os.W_OK):
            yield Check(name, False, f"{managed} is not writable, so stores fail", "Change its permissions")


def _check_databases(session: Session, full: bool) -> Iterator[Check]:
    try:
        held = session.state.held()
        yield Check("state.db", True, session.state.path)
    except VaultmemError as error:
        yield Check("state.db", False, error.message, error.next_step)
        return
    try:
        yield _check_index(session)
        yield _check_texts(session, full)
        counts = finding_counts(session)
    except (VaultmemError, sqlite3.DatabaseError) as error:
        yield Check("index", False, str(error), "vaultmem rebuild")
        return
    for item in held:
        message = f"{item.vault}: {item.message}"
        yield Check("missing notes", False, message, "vaultmem reconcile --accept-removals, if that was meant")
    errors = counts["error"]
    if errors:
        yield Check("notes", False, f"{errors} errors in notes, {counts['warn']} warnings", "vaultmem findings")
    else:
        yield Check("notes", True, f"no errors, {counts['warn']} warnings")


def _check_index(session: Session) -> Check:
    """Look at the file itself: its pages, its full-text table, and whether its rows add up."""
    if not os.path.exists(session.database.path):
        return Check("index", False, "it is not built yet", "vaultmem reconcile")
    connection = session.connection()
    if session.database.healed:
        return Check("index", False, session.database.healed, "vaultmem reconcile")
    wrong = inspect(connection, session.database.engine) or _lost_terms(session)
    if wrong:
        return Check("index", False, f"the file is damaged: {wrong}", "vaultmem rebuild")
    if not session.database.is_built():
        return Check("index", False, "it is not complete yet", "vaultmem reconcile")
    return Check("index", True, f"{session.database.path}, digest {digest.stored_digest(connection)[:16]}")


def _check_texts(session: Session, full: bool) -> Check:
    """Compare notes as the index has them with their files."""
    lying, compared = lying_notes(session, everything=full)
    told = f"{compared} notes" if full else f"a sample of {compared} notes (doctor --full: all)"
    if lying:
        found = f"{lying} of {told} have another text in the index than in their files"
        return Check("stored text", False, found, "vaultmem rebuild")
    return Check("stored text", True, f"{told} agrees with the files" if not full else f"{told} agree with their files")


def _lost_terms(session: Session) -> str:
    """Compare all postings with what the stored notes should have given, however many there are."""
    connection = session.connection()
    if connection.execute("SELECT count(*) FROM note").fetchone()[0] <= MAX_INSPECTED_NOTES:
        return ""  # `inspect` has done it
    return posting_differences(connection, session.database.engine)
