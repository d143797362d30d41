"""Where a store to each scope would go from here, and why: the answer to "why is my memory not there?"."""

from __future__ import annotations

from typing import Any

from vaultmem.base.errors import VaultmemError
from vaultmem.base.values import SCOPES, Binding
from vaultmem.ops.places import place_of
from vaultmem.ops.session import Session
from vaultmem.scopes import check_may_write, resolve_binding

_NAMED = {
    "setting": "the project id is set",
    "git": "from the git remote of the working folder",
    "folder": "from the path of the working folder, which has no git remote",
}


def destinations(session: Session) -> tuple[dict[str, Any], ...]:
    """Return a row a scope: `scope`, `scope_id`, `folder`, `vault`, `why`, or `error` where a store is refused."""
    return tuple(_destination(session, scope) for scope in SCOPES)


def _destination(session: Session, scope: str) -> dict[str, Any]:
    try:
        check_may_write(session.context, scope)
        binding = resolve_binding(session.config, session.context, scope)
        place = place_of(session.config, binding, "key")
    except VaultmemError as error:
        return {"scope": scope, "scope_id": None, "error": str(error)}
    return {
        "scope": scope,
        "scope_id": binding.scope_id,
        "source_kind": place.kind,
        "vault": "" if place.source.native else place.source.id,
        "folder": place.path.rpartition("/")[0],
        "why": _why(session, binding),
    }


def _why(session: Session, binding: Binding) -> str:
    if binding.scope == "project":
        return _NAMED.get(session.project().source, "")
    if binding.scope in ("session", "agent"):
        return f"the {binding.scope} is named by the caller's context"
    return "one for all"
