"""The error tree: each class says when it happens, and its message says what, where and what to do.

VaultmemError
  UsageError                 a wrong argument (exit 2)
  ConfigError                config.toml has problems (all of them are listed)
  EnvironmentUnusable        the locale keeps Python from reading file names
  NotConfigured              no vault is configured yet
  NoteNotFound               no note has that key or path
  ScopeError                 a scope or its id can't be used
    ScopeNotWritable         no writable folder is mapped to the scope
  StoreRefused               a write was refused and nothing was written
    SecretRefused            a secret was recognised
    NoteChangedSinceRead     another program keeps changing the file
    NoteNotSafelyEditable    the note can't be edited without risk to its bytes
  MemoryPartialWriteError    some phases of a write are done, one is not
  IndexUnavailable           the index can't be opened or built
  StateUnavailable           state.db is newer, damaged or not writable
  LockBusy                   another process holds the writer's lock
  FileRefused                a path leaves its root, is a link, or is no regular file
"""

from __future__ import annotations


class VaultmemError(Exception):
    """Base of all errors that a user can meet.

    `message` is one line (what, where); `next_step` is one line (what to do), maybe empty.
    """

    exit_code = 1

    def __init__(self, message: str, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message}. {self.next_step}" if self.next_step else self.message


class UsageError(VaultmemError):
    """An argument is of the wrong form or value."""

    exit_code = 2


class ConfigError(VaultmemError):
    """config.toml can't be used; `problems` has every fault with its TOML path."""

    def __init__(self, path: str, problems: tuple[str, ...]) -> None:
        self.path = path
        self.problems = problems
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        listed = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"{path}: {count}\n{listed}", "")

    def __str__(self) -> str:
        return f"{self.message}\nEdit the file, then run: vaultmem config check"


class EnvironmentUnusable(VaultmemError):
    """What surrounds the process (its locale) makes right answers impossible."""


class NotConfigured(VaultmemError):
    """No vault is configured in this home."""


class NoteNotFound(VaultmemError):
    """No visible note has the key or path that was asked for."""


class ScopeError(VaultmemError):
    """A scope or scope id is unknown, missing or can't be resolved."""


class ScopeNotWritable(ScopeError):
    """The scope is mapped to folders, and none of them takes writes."""


class StoreRefused(VaultmemError):
    """A write was refused before anything was changed."""


class SecretRefused(StoreRefused):
    """The secret gate recognised a secret; only the pattern's name is told."""

    def __init__(self, pattern: str, where: str) -> None:
        self.pattern = pattern
        super().__init__(
            f"{where} looks like a secret ({pattern}); nothing was written",
            "Take the secret out, or list the folder under secret_allow in config.toml",
        )


class NoteChangedSinceRead(StoreRefused):
    """The file changed between reading and publishing, several times in a row."""


class NoteNotSafelyEditable(StoreRefused):
    """The note's bytes can't be kept if it is edited, so it is left alone."""


class MemoryPartialWriteError(VaultmemError):
    """A write is durable in part; `completed_phases` says which, `repair_command` completes it."""

    def __init__(
        self,
        key: str,
        scope: str,
        scope_id: str | None,
        path: str,
        completed_phases: tuple[str, ...],
        repair_command: str,
        cause: str,
    ) -> None:
        self.key = key
        self.scope = scope
        self.scope_id = scope_id
        self.path = path
        self.completed_phases = completed_phases
        self.repair_command = repair_command
        done = ", ".join(completed_phases)
        super().__init__(
            f"{path}: the note is written ({done}), but a later step failed: {cause}",
            f"Don't store it again; run: {repair_command}",
        )


class IndexUnavailable(VaultmemError):
    """The index can't be opened, or can't be healed."""


class StateUnavailable(VaultmemError):
    """state.db can't be used; it is never replaced, since it can't be derived."""


class LockBusy(VaultmemError):
    """Another process holds a lock longer than we wait."""


class FileRefused(VaultmemError):
    """A path is not a regular file below its root."""
