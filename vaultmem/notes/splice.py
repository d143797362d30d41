"""Edit a note's text without changing any other byte: our `cao:` block, tags, and a new section.

Frontmatter is edited as lines, never dumped again. After an edit the result is read again, and
refused unless every old line is still there in order and no other property changed.
Source: design.md §7, reference/vault.md "Reads and writes".
"""

from __future__ import annotations

import re
from typing import Any

from vaultmem.base.errors import NoteNotSafelyEditable
from vaultmem.notes.frontmatter import HANDLER, Block, read_block
from vaultmem.notes.sections import section_text

_TAGS_LINE = re.compile(r"^(tags[ \t]*:)(.*)$", re.IGNORECASE)
_PLAIN_TAG = re.compile(r"^[A-Za-z_][A-Za-z0-9_/-]*$")
_RESERVED = frozenset(("true", "false", "null", "yes", "no", "on", "off"))


def new_note(key: str, type_: str, tags: tuple[str, ...], created: str, content: str) -> str:
    """Return the text of a fresh managed note with its first section."""
    import frontmatter

    metadata: dict[str, Any] = {"tags": list(tags)} if tags else {}
    metadata["created"] = created
    metadata["cao"] = {"key": key, "type": type_, "managed": True}
    body = f"# {key}\n\n{section_text(created, content)}"
    return frontmatter.dumps(frontmatter.Post(body, **metadata), handler=HANDLER) + "\n"


def updated_note(
    text: str, path: str, key: str, type_: str | None, tags: tuple[str, ...], time: str, content: str
) -> tuple[str, tuple[str, ...]]:
    """Return the text with our block, the tags and a section added, and warnings.

    `text` keeps its BOM and line ends; added lines end as the others do. Raises
    NoteNotSafelyEditable when the properties can't be edited without risk.
    """
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    plain = text.removeprefix("\ufeff")
    eol = "\r\n" if "\r\n" in plain else "\n"
    block = read_block(plain)
    warnings: list[str] = []
    if block is None:
        head = "\n".join(["---", *_tag_lines(tags), *_cao_lines(key, type_ or "project"), "---", ""])
        edited = head.replace("\n", eol) + plain
    else:
        _refuse_unsafe(block, path)
        edited = _with_properties(plain, block, key, type_, tags, eol, warnings, path)
    edited = _with_section(edited, section_text(time, content), eol)
    _verify(plain, edited, block, path)
    return bom + edited, tuple(warnings)


def _refuse_unsafe(block: Block, path: str) -> None:
    if block.problem is not None:
        raise NoteNotSafelyEditable(
            f"{path}:{block.problem.line}: the properties can't be read ({block.problem.phrase}), "
            "so the note is left alone",
            "Correct them in Obsidian, then store again",
        )
    if block.text.strip() and block.data is None:
        raise NoteNotSafelyEditable(
            f"{path}:2: the properties are no mapping, so the note is left alone", "Correct them in Obsidian"
        )
    if "cao" in (block.data or {}) and not isinstance((block.data or {})["cao"], dict):
        raise NoteNotSafelyEditable(f"{path}: cao is no mapping, so the note is left alone", "Correct it in Obsidian")
    if re.search(r"(?m)^\s*[^#\s].*:\s*[&*]|^\{", block.text):
        raise NoteNotSafelyEditable(
            f"{path}:2: the properties use YAML anchors or braces that can't be edited safely",
            "Write them as plain lines in Obsidian",
        )


def _with_properties(
    text: str,
    block: Block,
    key: str,
    type_: str | None,
    tags: tuple[str, ...],
    eol: str,
    warnings: list[str],
    path: str,
) -> str:
    data = block.data or {}
    start = HANDLER.bounds(text)
    assert start is not None
    yaml_text = block.text
    cao = data.get("cao")
    if cao is None:
        if block.claims_cao:
            raise NoteNotSafelyEditable(f"{path}: the cao: line is empty", "Remove it, then store again")
        yaml_text = _ended(yaml_text, eol) + eol.join([*_cao_lines(key, type_ or "project"), ""])
    elif cao.get("key") != key:
        raise NoteNotSafelyEditable(
            f"{path}: its cao.key is not {key}, so it is another memory", "Store under its own key, or rename the file"
        )
    missing = tuple(tag for tag in tags if tag.lower() not in _known_tags(data))
    if missing:
        yaml_text = _with_tags(yaml_text, data, missing, eol, warnings)
    return text[: start[0]] + yaml_text + text[start[1] :]


def _known_tags(data: dict[str, Any]) -> set[str]:
    value = next((v for name, v in data.items() if name.lower() == "tags"), None)
    items = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return {str(item).removeprefix("#").lower() for item in items}


def _with_tags(yaml_text: str, data: dict[str, Any], tags: tuple[str, ...], eol: str, warnings: list[str]) -> str:
    """Add tags to the list as it is written: in brackets, as lines, or as a new property."""
    lines = yaml_text.split(eol)
    at = next((i for i, line in enumerate(lines) if _TAGS_LINE.match(line)), None)
    if at is None:
        return eol.join(_tag_lines(tags)) + eol + yaml_text
    found = _TAGS_LINE.match(lines[at])
    assert found is not None
    value = found.group(2)
    inner = re.match(r"^([ \t]*\[)([^\[\]#]*)(\][ \t]*(?:#.*)?)$", value)
    if inner:
        joint = ", " if inner.group(2).strip() else ""
        added = joint + ", ".join(map(_yaml_tag, tags))
        lines[at] = found.group(1) + inner.group(1) + inner.group(2).rstrip() + added + inner.group(3)
        return eol.join(lines)
    if not value.split("#")[0].strip() and at + 1 < len(lines):
        item = re.match(r"^([ \t]*)- ", lines[at + 1])
        if item:
            end = at + 1
            while end < len(lines) and re.match(r"^[ \t]*- ", lines[end]):
                end += 1
            lines[end:end] = [f"{item.group(1)}- {_yaml_tag(tag)}" for tag in tags]
            return eol.join(lines)
    warnings.append("the tags were not added: write `tags` as a list in Obsidian first")
    return yaml_text


def _yaml_tag(tag: str) -> str:
    plain = _PLAIN_TAG.match(tag) is not None and tag.lower() not in _RESERVED
    return tag if plain else '"' + tag.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _tag_lines(tags: tuple[str, ...]) -> list[str]:
    return [f"tags: [{', '.join(map(_yaml_tag, tags))}]"] if tags else []


def _cao_lines(key: str, type_: str) -> list[str]:
    quoted = f'"{key}"' if key[0] in "-0123456789" or key in _RESERVED else key
    return ["cao:", f"  key: {quoted}", f"  type: {type_}", "  managed: true"]


def _ended(text: str, eol: str) -> str:
    return text if not text or text.endswith("\n") else text + eol


def _with_section(text: str, section: str, eol: str) -> str:
    """Append a section after a blank line; what stands before it keeps every byte."""
    if text and not text.endswith("\n"):
        text += eol
    blank = "" if not text or text.endswith((eol + eol, "\n\n")) else eol
    return text + blank + section.replace("\n", eol)


def _verify(old: str, new: str, block: Block | None, path: str) -> None:
    """Refuse a result in which an old line is missing or another property changed."""
    added = iter(new.split("\n"))
    for line in old.split("\n"):
        if line.strip() and not any(
            line.rstrip("\r") == found.rstrip("\r") or _is_longer_tags(line, found) for found in added
        ):
            raise NoteNotSafelyEditable(f"{path}: the edit would have lost a line, so nothing was written")
    after = read_block(new)
    before = dict(block.data or {}) if block else {}
    now = dict(after.data or {}) if after and after.problem is None else None
    if now is None:
        raise NoteNotSafelyEditable(f"{path}: the properties would not be readable any more, so nothing was written")
    for data in (before, now):
        for name in [name for name in data if name == "cao" or name.lower() == "tags"]:
            del data[name]
    if before != now:
        raise NoteNotSafelyEditable(f"{path}: another property would have changed, so nothing was written")


def _is_longer_tags(old: str, new: str) -> bool:
    """Whether a line is the old `tags: […]` line with tags added before the bracket."""
    if not _TAGS_LINE.match(old) or "]" not in old:
        return False
    head, _, tail = old.rstrip("\r").partition("]")
    return new.startswith(head.rstrip()) and new.rstrip("\r").endswith("]" + tail)
