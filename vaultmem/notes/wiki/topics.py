"""The native wiki's layout and texts: where a topic lies, what its file says, how it grows.

Pure. Source: reference/wiki-format.md ("Topic file", "See Also") and scopes-and-identity.md
("Identity of a memory"). The layout is upstream's, so that both programs can use one folder.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import replace

from vaultmem.base.values import TYPES, Binding, CaoBlock, Finding, ParsedNote
from vaultmem.notes.findings import finding
from vaultmem.notes.keys import is_key
from vaultmem.notes.parse import parse_note
from vaultmem.notes.sections import section_text
from vaultmem.settings.rules import RESERVED_IDS

_HEADER = re.compile(
    r"^<!-- id: ([0-9A-Za-z-]*) \| scope: ([a-z]*) \| type: ([a-z]*) \| tags: ?(.*?) ?-->[ \t]*$", re.MULTILINE
)
_HEADER_WINDOW = 2_048
_SEE_ALSO = re.compile(
    r"^## See Also[ \t]*\n(?:[ \t]*\n|- \[[a-z0-9-]{1,60}\]\([^)\n]*\)[ \t]*(?:\n|\Z))*",
    re.MULTILINE,
)


def container_of(binding: Binding) -> str:
    """Return the top folder of a binding's topics, the one that holds its index.md below `wiki/`."""
    if binding.scope == "project":
        return str(binding.scope_id)
    return "federated" if binding.scope == "federated" else "global"


def topic_folder(binding: Binding) -> str:
    """Return the folder of a binding's topic files, relative to the memory folder."""
    folder = f"{container_of(binding)}/wiki/{binding.scope}"
    return f"{folder}/{binding.scope_id}" if binding.scope in ("session", "agent") else folder


def topic_path(binding: Binding, key: str) -> str:
    """Return the path of a topic file, relative to the memory folder."""
    return f"{topic_folder(binding)}/{key}.md"


def binding_of_folder(folder: str) -> Binding | None:
    """Return whose topics a folder of the memory folder holds, None when it holds none."""
    parts = folder.split("/")
    if len(parts) == 3 and parts[1] == "wiki":
        if parts[0] == parts[2] and parts[0] in ("global", "federated"):
            return Binding(parts[0])
        if parts[2] == "project" and parts[0] not in RESERVED_IDS:
            return Binding("project", parts[0])
    if len(parts) == 4 and parts[:2] == ["global", "wiki"] and parts[2] in ("session", "agent"):
        return Binding(parts[2], parts[3])
    return None


def parse_topic(data: bytes, path: str) -> ParsedNote:
    """Read a topic file's bytes; `path` is relative to the memory folder.

    Heading and header line become key, type and tags, and are no text; nor is the See Also block,
    which is written from relationships and says nothing of its own.
    """
    name = path.rpartition("/")[2]
    stem = name[:-3]
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    header = _HEADER.search(text[:_HEADER_WINDOW])
    plain = _blank_frame(text, stem, header)
    note = parse_note(data if _is_broken(data) else plain.encode(), name)
    type_ = header.group(3) if header and header.group(3) in TYPES else "project"
    tags = tuple(tag.strip() for tag in header.group(4).split(",") if tag.strip()) if header else ()
    findings = [*note.findings, *_header_findings(text, stem, path, header)]
    return replace(
        note,
        title=stem,
        frontmatter=None,
        frontmatter_tags=tags,
        cao=CaoBlock(key=stem if is_key(stem) else None, type=type_, managed=True),
        findings=tuple(findings),
    )


def _is_broken(data: bytes) -> bool:
    try:
        return "\0" in data.decode("utf-8")
    except UnicodeDecodeError:
        return True


def _blank_frame(text: str, stem: str, header: re.Match[str] | None) -> str:
    """Blank out heading, header line and See Also; lines keep their numbers."""
    if header is not None:
        text = text[: header.start()] + text[header.end() :]
    if text.startswith(f"# {stem}\n") or text == f"# {stem}":
        text = text[len(stem) + 2 :]
    return _SEE_ALSO.sub(lambda match: "\n" * match.group().count("\n"), text)


def _header_findings(text: str, stem: str, path: str, header: re.Match[str] | None) -> list[Finding]:
    if header is None:
        return [finding("topic_malformed", path, 2, "its header comment can't be read, so type and tags are not known")]
    binding = binding_of_folder(path.rpartition("/")[0])
    line = text.count("\n", 0, header.start()) + 1
    if binding is not None and header.group(2) != binding.scope:
        told = f"its header says scope {header.group(2) or 'nothing'}, its folder {binding.scope}; the folder counts"
        return [finding("topic_malformed", path, line, told)]
    if text.split("\n", 1)[0].rstrip() != f"# {stem}":
        return [finding("topic_malformed", path, 1, f"its first line is not `# {stem}`; the file's name counts")]
    return []


def new_topic(binding: Binding, key: str, type_: str, tags: Sequence[str], time: str, content: str) -> str:
    """Return the text of a fresh topic with its first section."""
    return f"# {key}\n{_header_line(str(uuid.uuid4()), binding.scope, type_, tags)}\n\n{section_text(time, content)}"


def updated_topic(text: str, binding: Binding, type_: str | None, tags: Sequence[str], time: str, content: str) -> str:
    """Return the text with a section added; its id stays, tags are merged, See Also is cut (it is written anew)."""
    header = _HEADER.search(text[:_HEADER_WINDOW])
    if header is not None:
        old = [tag.strip() for tag in header.group(4).split(",") if tag.strip()]
        merged = list(dict.fromkeys([*old, *tags]))
        known = header.group(3) if header.group(3) in TYPES else "project"
        line = _header_line(header.group(1) or str(uuid.uuid4()), binding.scope, type_ or known, merged)
        text = text[: header.start()] + line + text[header.end() :]
    text = without_see_also(text)
    if text and not text.endswith("\n"):
        text += "\n"
    blank = "" if not text or text.endswith("\n\n") else "\n"
    return text + blank + section_text(time, content)


def _header_line(topic_id: str, scope: str, type_: str, tags: Sequence[str]) -> str:
    return f"<!-- id: {topic_id} | scope: {scope} | type: {type_} | tags: {','.join(tags)} -->"


def without_see_also(text: str) -> str:
    """Return a topic's text without its See Also block."""
    return _SEE_ALSO.sub("", text).rstrip("\n") + "\n" if _SEE_ALSO.search(text) else text


def with_see_also(text: str, binding: Binding, keys: Sequence[str]) -> str:
    """Return a topic's text with a See Also block of these keys (none: without one).

    The paths resolve on disk: topics of a binding lie side by side (known-gaps.md, 49).
    """
    bare = without_see_also(text)
    if not keys:
        return bare
    folder = topic_folder(binding).rpartition("/")[2]
    lines = "".join(f"- [{key}](../{folder}/{key}.md)\n" for key in keys)
    return f"{bare}\n## See Also\n{lines}"
