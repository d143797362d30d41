"""Which paths a vault leaves out: our globs, Obsidian's own list, and other programs' artifacts.

Globs: reference/vault.md, "Configuration" (`exclude`). Obsidian's `userIgnoreFilters`: a text is
a prefix, `/…/` an expression. Artifacts: the same page, `sync_artifact_skipped`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from vaultmem.notes.links.wikilinks import fold

_ARTIFACT = re.compile(
    r"\.sync-conflict-\d{8}-\d{6}|\([^()]*conflicted copy[^()]*\)|\((?:case )?conflict(?:\s[^()]*)?\)|_conflict-\d{8}|"
    r"^~\$|^\.~lock\.|~$|\.(?:tmp|swp|swo|swx|crdownload|part)$|^\._|^\.#|^#.*#$",
    re.IGNORECASE,
)


class PathFilter:
    """Tells whether a vault-relative path is matched by any of some glob patterns."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._folders: list[re.Pattern[str]] = []
        self._components: list[re.Pattern[str]] = []
        self._paths: list[re.Pattern[str]] = []
        for pattern in patterns:
            folded = fold(pattern)
            if folded.endswith("/"):
                name = folded.rstrip("/")
                (self._paths if "/" in name else self._folders).append(_glob(name))
            elif "/" in folded:
                self._paths.append(_glob(folded))
            else:
                self._components.append(_glob(folded))
        self.empty = not (self._folders or self._components or self._paths)

    def matches_folder(self, path: str) -> bool:
        """Tell whether a folder itself is matched; what lies below is then matched too."""
        folded = fold(path)
        name = folded.rpartition("/")[2]
        return any(pattern.fullmatch(name) for pattern in (*self._folders, *self._components)) or any(
            pattern.fullmatch(folded) or pattern.fullmatch(folded + "/\uffff") for pattern in self._paths
        )

    def matches_file(self, path: str) -> bool:
        """Tell whether a file is matched by its own name or path (folders are asked apart)."""
        if self.empty:
            return False
        folded = fold(path)
        name = folded.rpartition("/")[2]
        return any(pattern.fullmatch(name) for pattern in self._components) or any(
            pattern.fullmatch(folded) for pattern in self._paths
        )

    def matches(self, path: str) -> bool:
        """Tell whether a file or any folder above it is matched."""
        if self.empty:
            return False
        parts = path.split("/")
        folders = ("/".join(parts[:end]) for end in range(1, len(parts)))
        return any(map(self.matches_folder, folders)) or self.matches_file(path)


def _glob(pattern: str) -> re.Pattern[str]:
    pieces: list[str] = []
    position = 0
    while position < len(pattern):
        if pattern.startswith("**/", position):
            pieces.append("(?:.*/)?")
            position += 3
        elif pattern.startswith("**", position):
            pieces.append(".*")
            position += 2
        elif pattern[position] == "*":
            pieces.append("[^/]*")
            position += 1
        elif pattern[position] == "?":
            pieces.append("[^/]")
            position += 1
        else:
            pieces.append(re.escape(pattern[position]))
            position += 1
    return re.compile("".join(pieces), re.DOTALL)


class ObsidianFilter:
    """Obsidian's "Excluded files" (`userIgnoreFilters` of app.json)."""

    def __init__(self, filters: Iterable[str]) -> None:
        self._rules: list[tuple[str, re.Pattern[str]]] = []
        for text in filters:
            try:
                is_expression = len(text) > 2 and text.startswith("/") and text.endswith("/")
                source = text[1:-1] if is_expression else "^" + re.escape(text)
                self._rules.append((text, re.compile(source, re.IGNORECASE)))
            except re.error:  # Obsidian logs a bad expression and goes on
                continue
        self.empty = not self._rules

    def match(self, path: str) -> str:
        """Return the first filter that leaves the path out, or ""."""
        return next((text for text, rule in self._rules if rule.search(path)), "")


def is_sync_artifact(name: str) -> bool:
    """Tell whether a file name is that of a conflict copy or temporary file of another program."""
    return _ARTIFACT.search(name) is not None or _ARTIFACT.search(name.removesuffix(".md")) is not None


def placeholder_target(name: str) -> str:
    """Return the name that an iCloud placeholder (`.Name.md.icloud`) stands for, or ""."""
    if name.startswith(".") and name.endswith(".icloud") and len(name) > len(".icloud") + 1:
        return name[1 : -len(".icloud")]
    return ""
