"""Which file a link means: Obsidian's rule, in eight steps, as a pure function.

Source: conformance/README.md, "The resolution rule" (console readings of 1.13.7, dumps).
Where the app itself is not stable (equal standing and equal length), we take the first by
path, prefer equal letter case in one folder, and say that the link is ambiguous.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence

from vaultmem.base.values import Resolution
from vaultmem.notes.links.wikilinks import fold

FilesNamed = Callable[[str], Sequence[str]]
"""Folded file name (with extension) to the paths of the vault's files of that name."""

DANGLING = Resolution("dangling", "", None)


def lookup_name(path: str) -> str:
    """Return the folded last part of a link path: what its candidates are found by."""
    return fold(path.rpartition("/")[2])


def candidate_names(path: str) -> tuple[str, ...]:
    """Return the folded file names that a link path may mean, in the order they are tried."""
    name = lookup_name(path)
    if not name:
        return ()
    return (name, name + ".md") if "." in name else (name + ".md",)


def resolve_path(path: str, source: str, files_named: FilesNamed) -> Resolution:
    """Resolve the path part of a link seen in the note at `source` (vault-relative, NFC).

    Returns state `resolved` or `ambiguous` with the target, or `dangling`; excluded files and
    attachments are told apart by the caller, who knows them.
    """
    if not path:
        return Resolution("resolved", "path", source)
    candidates: Sequence[str] = ()
    matched_literally = False
    for name in candidate_names(path):
        candidates = files_named(name)
        if candidates:
            matched_literally = name == lookup_name(path)
            break
    if not candidates:
        return DANGLING
    wanted = fold(path) if matched_literally else fold(path) + ".md"
    if "/" not in path and len(candidates) == 1:
        return Resolution("resolved", "name", candidates[0])
    if wanted.startswith(("./", "../")):
        return _relative(wanted, source, candidates)
    rooted = wanted.startswith("/")
    exact = [c for c in candidates if fold(c) == wanted.removeprefix("/")]
    if exact:
        return _choice(exact, "path", path)
    if rooted:
        return DANGLING
    return _by_suffix(wanted, source, candidates, path)


def _relative(wanted: str, source: str, candidates: Sequence[str]) -> Resolution:
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(fold(source)), wanted))
    exact = [c for c in candidates if fold(c) == joined]
    return _choice(exact, "path", joined) if exact else DANGLING


def _by_suffix(wanted: str, source: str, candidates: Sequence[str], path: str) -> Resolution:
    """Candidates below the source's folder first, then the rest; the shortest path of a group wins."""
    ending = [c for c in candidates if fold(c).endswith(wanted)]
    folder = posixpath.dirname(fold(source))
    near = [c for c in ending if not folder or fold(c).startswith(folder + "/")]
    group = near or ending
    if not group:
        return DANGLING
    length = min(len(c) for c in group)
    return _choice([c for c in group if len(c) == length], "path" if "/" in path else "name", path)


def _choice(equal: list[str], via: str, path: str) -> Resolution:
    """Take one of equally good candidates: same letters first, then by path."""
    ordered = sorted(equal, key=lambda c: (path not in c, c))
    if len(ordered) == 1:
        return Resolution("resolved", via, ordered[0])
    return Resolution("ambiguous", via, ordered[0], tuple(sorted(equal)))
