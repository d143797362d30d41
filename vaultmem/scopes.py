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
from dataclasses import dataclass
from urllib.parse import unquote

from vaultmem.config import Config, environment_value
from vaultmem.config_rules import SCOPE_ID
from vaultmem.errors import ScopeError, UsageError
from vaultmem.model import SCOPES, Binding

GIT_WAIT_S = 2.0
_SCHEME = re.compile(r"^(?:git\+)?(?:ssh|git|https?)://", re.IGNORECASE)
_DEFAULT_PORT = re.compile(r"^([^/:]+):(?:22|80|443|9418)(?=/)")


@dataclass(frozen=True, slots=True)
class CallContext:
    """Where a call comes from; empty fields are unknown."""

    cwd: str = ""
    session: str = ""
    agent: str = ""


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
        return _clean(context.session)
    if scope == "agent":
        return _clean(context.agent)
    return project_id(config, context)


def _clean(name: str) -> str:
    kept = re.sub(r"-+", "-", re.sub(r"[^A-Za-z0-9_-]", "", name)).strip("-_")
    return kept[:128]


def project_id(config: Config, context: CallContext) -> str:
    """Return the project's id: setting, git remote, hash of the folder; "" when there is none."""
    if config.project_id:
        if not SCOPE_ID.match(config.project_id) or config.project_id in ("global", "federated"):
            raise ScopeError(
                "The configured project id is not valid", "Use letters, digits, dots, _ and - (at most 128)"
            )
        return config.project_id
    if not context.cwd:
        return ""
    folder = os.path.realpath(context.cwd)
    if not os.path.isdir(folder) or _gives_no_project(folder):
        return ""
    return normalised_remote(_git_remote(folder)) or hashlib.sha256(folder.encode()).hexdigest()[:12]


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
