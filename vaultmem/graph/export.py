"""One-way exports of the graph: JSON, and a folder that opens as an Obsidian vault.

Deterministic: two exports of one graph are byte-identical. A folder is written only if it is new,
empty or an export of ours (a manifest lists our files), and never inside a vault.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import frontmatter

from vaultmem.base.errors import StoreRefused, UsageError
from vaultmem.graph.view import GraphView, Node
from vaultmem.notes.frontmatter import HANDLER
from vaultmem.notes.links.wikilinks import fold

MANIFEST = "vaultmem-export.json"
FORMATS = ("json", "obsidian")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\/:*?\"<>|#^\[\]%]+")
_MAX_NAME_BYTES = 200


def export_json(view: GraphView) -> str:
    """Return the graph as JSON text."""
    return json.dumps(view.as_json(), ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def export_obsidian(view: GraphView) -> dict[str, str]:
    """Return the files of an Obsidian folder by name: a note a node, a wikilink an edge."""
    names = _file_names(view)
    outgoing: dict[str, list[tuple[str, str, str]]] = {}
    for edge in view.edges:
        outgoing.setdefault(edge.source, []).append((edge.type, edge.target, edge.status))
    files: dict[str, str] = {}
    for node in view.nodes:
        files[names[node.id] + ".md"] = _note_text(node, outgoing.get(node.id, []), names, view)
    return files


def _file_names(view: GraphView) -> dict[str, str]:
    """Return a file name for each node; equal ones get a piece of their id, whatever the order."""
    wanted = {node.id: _safe_name(node.title or node.key) for node in view.nodes}
    counts: dict[str, int] = {}
    for name in wanted.values():
        counts[fold(name)] = counts.get(fold(name), 0) + 1
    taken = {fold(name) for name in wanted.values() if counts[fold(name)] == 1}
    names: dict[str, str] = {}
    for node in view.nodes:
        name = wanted[node.id]
        if counts[fold(name)] > 1:
            length = 8
            while fold(f"{name} {node.id[:length]}") in taken:
                length += 4
            name = f"{name} {node.id[:length]}"
            taken.add(fold(name))
        names[node.id] = name
    return names


def _safe_name(title: str) -> str:
    name = _UNSAFE.sub(" ", title)
    name = re.sub(r"\s+", " ", name).strip(" .")
    while len(name.encode("utf-8")) > _MAX_NAME_BYTES:
        name = name[:-1].rstrip(" .")
    return name or "note"


def _note_text(node: Node, edges: list[tuple[str, str, str]], names: dict[str, str], view: GraphView) -> str:
    metadata: dict[str, object] = {
        "key": node.key,
        "scope": node.scope,
        "type": node.type,
        "source": f"{node.vault}/{node.path}",
    }
    if node.scope_id:
        metadata["scope_id"] = node.scope_id
    if node.tags:
        metadata["tags"] = list(node.tags)
    title = " ".join(node.title.replace("[[", "").replace("]]", "").split()) or node.key
    lines = [f"# {title}", ""]
    for type_, target, state in sorted(edges, key=lambda edge: (edge[0], names[edge[1]])):
        mark = "" if state == "active" else f" ({state})"
        lines.append(f"- {type_}{mark}: [[{names[target]}]]")
    post = frontmatter.Post("\n".join(lines).rstrip())
    post.metadata.update(metadata)
    return frontmatter.dumps(post, handler=HANDLER) + "\n"


def write_folder(files: dict[str, str], target: str, forbidden: list[str]) -> int:
    """Write an export into a folder; return how many files changed.

    Files of an earlier export that are not part of this one are removed; nobody else's file ever
    is. Raises StoreRefused when the folder holds other things, or lies in a vault (`forbidden`).
    """
    real = os.path.realpath(target)
    for root in forbidden:
        if real == root or real.startswith(root + os.sep) or root.startswith(real + os.sep):
            raise StoreRefused(f"{target} lies in {root}, which is never exported into", "Choose a folder elsewhere")
    folder = Path(target)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{target} is a file", "Give a folder with -o")
    ours = _listed(folder)
    if folder.exists() and any(folder.iterdir()) and ours is None:
        raise StoreRefused(f"{target} holds files that are not an export of vaultmem", "Choose an empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    changed = 0
    for name, text in files.items():
        path = folder / name
        if path.is_symlink() or not path.exists() or path.read_bytes() != text.encode("utf-8"):
            _replace(path, text)
            changed += 1
    for name in sorted((ours or set()) - files.keys()):
        (folder / name).unlink(missing_ok=True)
    manifest = json.dumps({"schema": "vaultmem.export/1", "files": sorted(files)}, ensure_ascii=False, indent=1) + "\n"
    _replace(folder / MANIFEST, manifest)
    return changed


def _listed(folder: Path) -> set[str] | None:
    """Return the files that our manifest in a folder lists, None without one."""
    try:
        listed = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return {
        name for name in listed if isinstance(name, str) and name == os.path.basename(name) and name.endswith(".md")
    }


def _replace(path: Path, text: str) -> None:
    temp = path.with_name(f".vaultmem-{os.getpid()}.tmp")
    temp.write_bytes(text.encode("utf-8"))
    os.replace(temp, path)
