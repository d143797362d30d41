"""The tools: what each takes, says of itself and answers; no protocol here.

Arguments, defaults and results: reference/mcp-tools.md with the additions of memory-facts.md. A
failure is `{"success": false, "error": …}`, and the server marks it as an error for the client.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vaultmem.base.errors import MemoryPartialWriteError, VaultmemError
from vaultmem.base.values import SCOPES, TYPES
from vaultmem.faces.mcp.arguments import Argument, clean

if TYPE_CHECKING:
    from vaultmem.base.values import Hit
    from vaultmem.memory import Memory

_SCOPE = "Where the fact applies: session, project (default), global, agent or federated."


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool; `run` gets the open memory and clean arguments."""

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    run: Callable[[Memory, dict[str, Any]], dict[str, Any]]
    output: dict[str, str]
    writes: bool = False

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments; unknown ones are ignored, and named in `warnings`."""
        return {
            "type": "object",
            "properties": {argument.name: argument.schema() for argument in self.arguments},
            "required": [argument.name for argument in self.arguments if argument.required],
        }

    def output_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the answer; a failure has `success` and `error` only."""
        told = {name: _TYPES[kind] for name, kind in {**_ALWAYS, **self.output}.items()}
        return {"type": "object", "properties": told, "required": ["success"]}


_TYPES: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "text or null": {"type": ["string", "null"]},
    "flag": {"type": "boolean"},
    "number": {"type": "integer"},
    "object": {"type": "object"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "objects": {"type": "array", "items": {"type": "object"}},
}
_ALWAYS = {"success": "flag", "error": "text", "disabled": "flag", "warnings": "texts"}
_WHERE = {"key": "text", "scope": "text", "scope_id": "text or null", "action": "text"}
_PARTIAL = {"error_kind": "text", "partial_write": "object"}


def call(tool: Tool, memory: Memory, arguments: dict[str, Any] | None) -> dict[str, Any]:
    """Run a tool and return its answer; errors that a user can meet become answers."""
    try:
        if not memory.config.enabled:
            more: dict[str, Any] = {"memories": []} if tool.name == "memory_recall" else {}
            return {"success": False, "disabled": True, "error": "Memory is switched off (memory.enabled)", **more}
        values, unknown = clean(arguments, tool.arguments)
        answer = {"success": True, **tool.run(memory, values)}
    except MemoryPartialWriteError as error:
        return partial_write_answer(error)
    except VaultmemError as error:
        return {"success": False, "error": str(error)}
    warnings = [*answer.pop("warnings", ()), *(f"unknown argument ignored: {name}" for name in unknown)]
    if warnings:
        answer["warnings"] = list(dict.fromkeys(warnings))
    return answer


def partial_write_answer(error: MemoryPartialWriteError) -> dict[str, Any]:
    """Return the typed answer of a write that is durable in part."""
    return {
        "success": False,
        "error_kind": "memory_metadata_partial_write",
        "error": str(error),
        "partial_write": {
            "key": error.key,
            "scope": error.scope,
            "scope_id": error.scope_id,
            "file_path": error.path,
            "completed_phases": list(error.completed_phases),
            "repair_command": error.repair_command,
        },
    }


# -- the tools ------------------------------------------------------------------------------------


def _store(memory: Memory, values: dict[str, Any]) -> dict[str, Any]:
    from vaultmem.memories.store import StoreRequest

    request = StoreRequest(
        values["content"], values["key"], values["scope"], type=values["memory_type"] or None, tags=values["tags"]
    )
    done = memory.store(request)
    return {
        "key": done.key,
        "scope": done.scope,
        "scope_id": done.scope_id,
        "file_path": _file_path(memory, done.source_kind, done.path),
        "action": done.action,
        "similar": list(done.similar),
        "warnings": list(done.warnings),
    }


def _recall(memory: Memory, values: dict[str, Any]) -> dict[str, Any]:
    from vaultmem.access.filters import NoteFilter
    from vaultmem.recall.recall import RecallRequest

    request = RecallRequest(
        values["query"],
        NoteFilter(values["scope"], type=values["memory_type"]),
        values["limit"],
        values["search_mode"],
        values["sort_by"],
        include_related=values["include_related"],
    )
    found = memory.recall(request)
    return {
        "memories": [_memory(memory, hit) for hit in found.hits],
        "total": found.total,
        "warnings": list(found.warnings),
    }


def _forget(memory: Memory, values: dict[str, Any]) -> dict[str, Any]:
    from vaultmem.memories.forget import ForgetRequest

    done = memory.forget(ForgetRequest(values["key"], values["scope"]))
    return {
        "deleted": done.action != "absent",
        "action": done.action,
        "path": _file_path(memory, done.source_kind, done.path) if done.action != "absent" else None,
        "key": values["key"],
        "scope": done.scope,
        "scope_id": done.scope_id,
    }


def _restore(memory: Memory, values: dict[str, Any]) -> dict[str, Any]:
    done = memory.restore(values["key"], values["scope"])
    return {
        "restored": done.action == "restored",
        "action": done.action,
        "path": _file_path(memory, done.source_kind, done.path) if done.action != "absent" else None,
        "key": done.key,
        "scope": done.scope,
        "scope_id": done.scope_id,
    }


def _links(memory: Memory, values: dict[str, Any]) -> dict[str, Any]:
    from vaultmem.access.filters import NoteFilter

    found = memory.links(values["key"], NoteFilter(values["scope"]))
    names = ("key", "kind", "display", "subpath", "line", "state")
    return {
        "key": found.key,
        "path": found.path,
        "outgoing": [
            {"path": row["target_path"], "link": row["link"], **{name: row[name] for name in names}}
            for row in found.outgoing
        ],
        "incoming": [{"path": row["source_path"], **{name: row[name] for name in names}} for row in found.incoming],
    }


def _status(memory: Memory, values: dict[str, Any]) -> dict[str, Any]:
    places = {"read_only": memory.config.read_only, "stores_go_to": list(memory.destinations())}
    if not memory.is_built():
        return {"home": memory.config.home, **places}
    found = memory.status()
    return {
        "home": found["home"],
        "engine": found["engine"],
        "notes": sum(vault["notes"] for vault in found["vaults"]),
        "topics": found["native"]["topics"],
        "held_back": sum(vault["quarantined"] for vault in found["vaults"]),
        "findings": found["findings"],
        **places,
    }


def _file_path(memory: Memory, kind: str, path: str) -> str:
    """Return what upstream gives: absolute for a topic, relative to the vault for a note."""
    return os.path.join(memory.config.memory_root, path) if kind == "native" else path


def _memory(memory: Memory, hit: Hit) -> dict[str, Any]:
    is_vault = hit.source_kind == "vault"
    row: dict[str, Any] = {
        "key": hit.key,
        "content": hit.content,
        "memory_type": hit.type,
        "scope": hit.scope,
        "scope_id": hit.scope_id,
        "tags": ",".join(hit.tags),
        "title": hit.title,
        "file_path": _file_path(memory, hit.source_kind, hit.path),
        "source_kind": hit.source_kind,
        "source_path": hit.path if is_vault else None,
        "vault": hit.vault if is_vault else None,
        "indexed_at": hit.updated_at if is_vault else None,
        "index_freshness": ("stale" if hit.freshness == "unknown" else "fresh") if is_vault else None,
        "content_truncated": hit.content_truncated,
        "created_at": hit.created_at,
        "updated_at": hit.updated_at,
        "superseded_by": list(hit.superseded_by),
        "contradicts": list(hit.contradicts),
        "related": hit.related,
        "score": round(hit.score, 6),
    }
    if hit.lifecycle_status:
        row["lifecycle_status"] = hit.lifecycle_status
    return row


TOOLS = (
    Tool(
        "memory_store",
        "Store a memory",
        "Keep a fact, decision, preference or convention for later sessions: one to two sentences, conclusions rather "
        "than conversation. The same key and scope appends a dated entry; without a key one is made from the text. The "
        "answer names the key that was really used. After a partial write don't store again: run its repair_command.",
        (
            Argument("content", "text", "What to remember, as Markdown.", required=True),
            Argument("scope", "choice", _SCOPE, "project", choices=SCOPES),
            Argument("memory_type", "choice", "user, feedback, project (default) or reference.", "", choices=TYPES),
            Argument("key", "text", "Short name such as deploy-window; lower case, digits and hyphens."),
            Argument("tags", "tags", "Tags separated by commas, or a list."),
        ),
        _store,
        {**_WHERE, **_PARTIAL, "file_path": "text", "similar": "texts"},
        writes=True,
    ),
    Tool(
        "memory_recall",
        "Recall memories",
        'Look here before asking the user. Pass a few words as query and sort_by="relevance" to get the best matches; '
        "without a query the newest memories come. Without a scope everything that you may see is searched, nearer "
        "scopes first: session, project, global, agent, federated. The user's own Obsidian notes are found too.",
        (
            Argument("query", "text", "Words to look for; a part in double quotes is a phrase."),
            Argument("scope", "choice", "Only this scope (default: all that you may see).", "", choices=SCOPES),
            Argument("memory_type", "choice", "Only this type.", "", choices=TYPES),
            Argument("limit", "number", "How many, 1 to 100.", 10, low=1, high=100),
            Argument("search_mode", "choice", "How to match.", "hybrid", choices=("hybrid", "bm25", "metadata")),
            Argument(
                "sort_by",
                "choice",
                "relevance: best match first (recommended with a query).",
                "recency",
                choices=("recency", "score", "usage", "relevance"),
            ),
            Argument("include_related", "flag", "Add what the hits relate to.", False),
        ),
        _recall,
        {"memories": "objects", "total": "number"},
    ),
    Tool(
        "memory_forget",
        "Forget a memory",
        "Remove one memory that is wrong or no longer true. A topic goes to the trash; a note of the user's vault is "
        "never deleted, it only leaves recall. `action` says what was done; memory_restore undoes it.",
        (
            Argument("key", "text", "The memory's key.", required=True),
            Argument("scope", "choice", _SCOPE, "project", choices=SCOPES),
        ),
        _forget,
        {**_WHERE, **_PARTIAL, "deleted": "flag", "path": "text or null"},
        writes=True,
    ),
    Tool(
        "memory_restore",
        "Restore a memory",
        "Bring a forgotten memory back.",
        (
            Argument("key", "text", "The memory's key.", required=True),
            Argument("scope", "choice", _SCOPE, "project", choices=SCOPES),
        ),
        _restore,
        {**_WHERE, **_PARTIAL, "restored": "flag", "path": "text or null"},
        writes=True,
    ),
    Tool(
        "memory_links",
        "Links of a memory",
        "Show where a note links to and which notes link to it; use it to go from one hit to its neighbours.",
        (
            Argument("key", "text", "The memory's key, or its path.", required=True),
            Argument("scope", "choice", "Only this scope.", "", choices=SCOPES),
        ),
        _links,
        {"key": "text", "path": "text", "outgoing": "objects", "incoming": "objects"},
    ),
    Tool(
        "memory_status",
        "Status of the memory",
        "Say how many notes there are, what is held back, and where a store to each scope would go and why.",
        (),
        _status,
        {
            "home": "text",
            "building": "text",
            "engine": "text",
            "notes": "number",
            "topics": "number",
            "held_back": "number",
            "findings": "object",
            "read_only": "flag",
            "stores_go_to": "objects",
        },
    ),
)


def tools_for(read_only: bool) -> tuple[Tool, ...]:
    """Return the tools that are offered."""
    return tuple(tool for tool in TOOLS if not (read_only and tool.writes))
