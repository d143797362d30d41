"""Whose memory a call means: scope and scope id from arguments and context.

Source: reference/scopes-and-identity.md, "scope_id resolution" and "Project id chain". There is no
fallback to a wider scope, and the file system root, the home folder itself and the temporary
folder itself give no project (design.md §7).
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from vaultmem.base.errors import ScopeError, UsageError
from vaultmem.base.values import SCOPES, Binding
from vaultmem.settings.config import Config, environment_value
from vaultmem.settings.rules import RESERVED_IDS, SCOPE_ID

GIT_WAIT_S = 2.0
_SCHEME = re.compile(r"^(?:git\+)?(?:ssh|git|https?)://", re.IGNORECASE)
_DEFAULT_PORT = re.compile(r"^([^/:]+):(?:22|80|443|9418)(?=/)")


@dataclass(frozen=True, slots=True)
class CallContext:
    """Where a call comes from; empty fields are unknown.

    `project` names the project id outright; `caller_scope` lowers what the caller may write (empty: an operator).
    """

    cwd: str = ""
    session: str = ""
    agent: str = ""
    project: str = ""
    provider: str = ""
    caller_scope: str = ""


def context_from_environment() -> CallContext:
    """Return the context of this process: VAULTMEM_ and CAO_ variables, else the working folder."""
    cwd = environment_value("VAULTMEM_CWD")
    if not cwd:
        try:
            cwd = os.getcwd()
        except OSError:
            cwd = ""
    return CallContext(
        cwd=cwd,
        session=environment_value("VAULTMEM_SESSION", "CAO_SESSION_NAME"),
        agent=environment_value("VAULTMEM_AGENT", "CAO_AGENT_PROFILE"),
        provider=environment_value("VAULTMEM_PROVIDER", "CAO_PROVIDER"),
        caller_scope=environment_value("VAULTMEM_CALLER_SCOPE"),
    )


def check_scope(scope: str) -> str:
    """Return a known scope. Raises UsageError naming the allowed ones."""
    if scope not in SCOPES:
        raise UsageError(f'Unknown scope "{scope}"', f"Use one of: {', '.join(SCOPES)}")
    return scope


def resolve_binding(config: Config, context: CallContext, scope: str, scope_id: str | None = None) -> Binding:
    """Return the binding of a call. Raises UsageError for a bad name, ScopeError when no id is to be had."""
    check_scope(scope)
    if scope in ("global", "federated"):
        if scope_id:
            raise UsageError(f"{scope} memory has no scope id", "Leave --scope-id out")
        return Binding(scope)
    if scope_id is not None:
        if not SCOPE_ID.match(scope_id):
            raise UsageError("The scope id may hold letters, digits, dots, _ and - only (at most 128)")
        return Binding(scope, scope_id)
    found = _id_from_context(config, context, scope)
    if not found:
        raise ScopeError(f"No {scope} can be told from here, so nothing was read or written", _HOW_TO_SET[scope])
    return Binding(scope, found)


_HOW_TO_SET = {
    "project": "Run it inside a project's folder, or set VAULTMEM_PROJECT_ID or --scope-id",
    "session": "Set VAULTMEM_SESSION or --scope-id",
    "agent": "Set VAULTMEM_AGENT or --scope-id",
}


def _id_from_context(config: Config, context: CallContext, scope: str) -> str:
    if scope == "session":
        return lossless_id(context.session)
    if scope == "agent":
        return lossless_id(context.agent)
    return project_identity(config, context).id


def lossless_id(name: str) -> str:
    """Return the scope id of a session or agent name: itself where it can be one, so that no two names share one.

    Other names keep their usable characters and get 8 hex of their hash (known-gaps.md, 38).
    """
    if not name or SCOPE_ID.match(name):
        return name
    kept = re.sub(r"-+", "-", re.sub(r"[^A-Za-z0-9_-]", "", name)).strip("-_")[:100]
    return f"{kept or 'id'}.{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class ProjectIdentity:
    """A project's id ("": none), where it comes from, and other ids under which its memories may lie (id → kind)."""

    id: str = ""
    source: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)


def project_identity(config: Config, context: CallContext) -> ProjectIdentity:
    """Return who the project is: named outright, setting, git remote, hash of the folder.

    Raises ScopeError for a named id that can't be one.
    """
    folder = _project_folder(context)
    hashed = hashlib.sha256(folder.encode("utf-8", "surrogateescape")).hexdigest()[:12] if folder else ""
    by_folder = {hashed: "cwd_hash"} if hashed else {}
    named = context.project or config.project_id
    if named:
        if not SCOPE_ID.match(named) or named in RESERVED_IDS:
            raise ScopeError(
                "The configured project id is not valid", "Use letters, digits, dots, _ and - (at most 128)"
            )
        return ProjectIdentity(named, "setting", {alias: kind for alias, kind in by_folder.items() if alias != named})
    if not folder:
        return ProjectIdentity()
    remote = _git_remote(folder)
    found = normalised_remote(remote)
    if not found:
        return ProjectIdentity(hashed, "folder")
    upstream = upstream_remote(remote)
    if upstream and upstream != found and upstream not in RESERVED_IDS:
        by_folder[upstream] = "git_upstream"
    return ProjectIdentity(found, "git", by_folder)


def _project_folder(context: CallContext) -> str:
    """Return the real folder of a call, "" where none can be a project."""
    if not context.cwd:
        return ""
    folder = os.path.realpath(context.cwd)
    return folder if os.path.isdir(folder) and not _gives_no_project(folder) else ""


def upstream_remote(url: str) -> str:
    """Return the id that upstream gives a remote: a place where it may have stored this project's memories."""
    text = re.sub(r"^(?:git\+ssh|ssh|git|https?)://", "", url.strip().lower())
    text = text.partition("@")[2] if "@" in text else text
    colon, slash = text.find(":"), text.find("/")
    if colon >= 0 and (slash < 0 or colon < slash):
        text = text[:colon] + "/" + text[colon + 1 :]
    return re.sub(r"[^a-z0-9]+", "-", text.removesuffix(".git")).strip("-")[:128]


WRITE_RANKS = {"session": 0, "federated": 0, "project": 1, "agent": 1, "global": 2}
"""Who may write where: the same scope, or one of strictly lower rank (scopes-and-identity.md)."""


def check_may_write(context: CallContext, scope: str) -> None:
    """Raise ScopeError when the caller's own scope may not write that scope."""
    caller = context.caller_scope or "global"
    if caller not in WRITE_RANKS:
        raise ScopeError(f'The caller scope "{caller}" is unknown', f"Use one of: {', '.join(SCOPES)}")
    if caller != scope and WRITE_RANKS[caller] <= WRITE_RANKS[scope]:
        raise ScopeError(
            f"A caller of scope {caller} may not write {scope} memory", "Store it in the caller's own scope"
        )


def _gives_no_project(folder: str) -> bool:
    home = os.path.realpath(os.path.expanduser("~"))
    return folder in (os.path.abspath(os.sep), home, os.path.realpath(tempfile.gettempdir()))


def _git_remote(folder: str) -> str:
    try:
        found = subprocess.run(
            ["git", "-C", folder, "config", "--get", "remote.origin.url"],
            capture_output=True,
            timeout=GIT_WAIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.decode("utf-8", "replace").strip() if found.returncode == 0 else ""


def normalised_remote(url: str) -> str:
    """Return the id of a git remote: no scheme, credentials, default port, `.git`; "" for no URL.

    Equal repositories get equal ids whatever the spelling (known-gaps.md, 37).
    """
    text = unquote(url.strip()).lower()
    if not text or text.startswith(("/", ".")):
        return ""
    had_scheme = _SCHEME.match(text) is not None
    text = _SCHEME.sub("", text).split("?")[0].split("#")[0]
    host, slash, rest = text.partition("/")
    text = host.rpartition("@")[2] + slash + rest
    if had_scheme:
        text = _DEFAULT_PORT.sub(r"\1", text)
    text = text.replace(":", "/", 1).rstrip("/").removesuffix(".git")
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-")[:128]
