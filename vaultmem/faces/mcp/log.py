"""The server's log: what was called and how it ended, never a word of a memory, a query or a key."""

from __future__ import annotations

import logging
import os
from logging.handlers import RotatingFileHandler

from vaultmem.base.files import ensure_private_folder

LOG_BYTES = 1_000_000
LOG_FILES = 3


def log_path(home: str) -> str:
    """Return the path of the log file."""
    return os.path.join(home, "logs", "mcp.log")


class CallLog:
    """A rotating file of lines `time pid event outcome detail`; a log that can't be written is left out."""

    def __init__(self, home: str) -> None:
        self._logger = logging.Logger("vaultmem.mcp")
        try:
            ensure_private_folder(os.path.join(home, "logs"))
            handler = RotatingFileHandler(log_path(home), maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8")
        except OSError:
            return
        handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(message)s"))
        self._logger.addHandler(handler)

    def line(self, event: str, outcome: str, detail: str = "") -> None:
        """Write a line; the words must be ours (names of tools, of error classes, times)."""
        self._logger.info("%s %s %s", event, outcome, detail)


def silence_libraries() -> None:
    """Keep logs and warnings of libraries off standard error: they quote what they were given."""
    import warnings

    logging.raiseExceptions = False
    logging.getLogger().addHandler(logging.NullHandler())
    warnings.simplefilter("ignore")
