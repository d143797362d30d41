"""Bytes of a note to a ParsedNote: the one place where the readers of this room come together.

Raises nothing for any input: whatever is wrong with a note comes out as findings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vaultmem.base.characters import whole
from vaultmem.base.values import Finding, Link, ParsedNote
from vaultmem.notes.body.markdown import read_inline_text, read_markdown
from vaultmem.notes.cao import CaoReading, read_cao
from vaultmem.notes.findings import KINDS, finding
from vaultmem.notes.frontmatter import Block, read_block
from vaultmem.notes.links.wikilinks import is_bad_target, whole_wikilink, wikilink
from vaultmem.notes.sections import read_sections, without_marked

MAX_LINKS = 1_000
"""Body links that are recorded of one note (reference/vault.md, link_limit_exceeded)."""
MAX_PROPERTY_DEPTH = 16
_BLANK = re.compile(r"\s")


def parse_note(data: bytes, name: str, *, max_frontmatter_bytes: int = 65_536) -> ParsedNote:
    """Read a note's bytes; `name` is its file name, whose stem is the title of a note without one.

    Bytes that are not UTF-8 are read with U+FFFD for what is wrong, and quarantine the note.
    """
    text, findings, quarantine = _decode(data)
    block = read_block(text, max_frontmatter_bytes)
    body_text = text[block.body_start :] if block else text
    body = body_text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in body_text else body_text
    body_line = block.body_line if block else 1
    outline = read_markdown(body, body_line)
    cao, block_quarantine = _block_findings(block, findings)
    properties = block.data if block else None
    aliases, tags = _aliases_and_tags(properties, findings)
    links, bad_links = _all_links(outline.links, properties, body_line)
    findings += bad_links
    if outline.conflict_line:
        findings.append(finding("merge_conflict_markers", "", outline.conflict_line, "a merge is not finished here"))
    if name.lower().endswith(".excalidraw.md") or (properties and "excalidraw-plugin" in properties):
        findings.append(finding("plugin_format_excluded", "", 1, "an Excalidraw drawing"))
        block_quarantine = block_quarantine or "plugin_format_excluded"
    indexed_body = without_marked(body)
    return ParsedNote(
        title=_title(properties, name),
        frontmatter=properties,
        aliases=aliases,
        frontmatter_tags=tags,
        body_tags=outline.tags,
        headings=outline.headings,
        links=links,
        blocks=outline.blocks,
        cao=cao,
        sections=read_sections(indexed_body, body_line),
        body=indexed_body,
        body_line=body_line,
        findings=tuple(findings),
        quarantine=quarantine or block_quarantine,
    )


def parse_canvas(data: bytes) -> tuple[Link, ...]:
    """Return the links of a canvas: file cards and links in text cards; () when it is no canvas.

    Source: the JSON Canvas specification 1.0; conformance cases RES-canvas-*.
    """
    import json

    try:
        nodes = json.loads(data.decode("utf-8-sig"), parse_constant=str).get("nodes")
    except (ValueError, AttributeError, RecursionError):
        return ()
    links: list[Link] = []
    for node in nodes if isinstance(nodes, list) else ():
        if not isinstance(node, dict):
            continue
        file, subpath, text = (value if isinstance(value := node.get(name), str) else "" for name in _CARD)
        if node.get("type") == "file" and file:
            file, subpath = whole(file), whole(subpath)
            links.append(Link(file + subpath, file + subpath, file, subpath, file, "canvas", True, 0))
        elif node.get("type") == "text":
            links += [link._replace(kind="canvas", line=0) for link in read_inline_text(whole(text))]
    return tuple(links[:MAX_LINKS])


_CARD = ("file", "subpath", "text")


def _decode(data: bytes) -> tuple[str, list[Finding], str]:
    """Return (text without BOM, findings, quarantine code)."""
    try:
        text, findings, quarantine = data.decode("utf-8"), [], ""
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        text = data.decode("utf-8", "replace")
        findings = [finding("note_not_utf8", "", line, "the file is not UTF-8 text")]
        quarantine = "note_not_utf8"
    if text.startswith("\ufeff"):
        text = text[1:]
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        findings.append(finding("note_contains_nul", "", line, "the file holds a NUL byte"))
        quarantine = quarantine or "note_contains_nul"
        text = text.replace("\0", "\ufffd")
    return text, findings, quarantine


def _block_findings(block: Block | None, findings: list[Finding]) -> tuple[Any, str]:
    """Add what is wrong with the block; return (cao block, quarantine code)."""
    if block is None:
        return None, ""
    problem = block.problem
    if problem is None:
        reading = _cao_of(block)
        findings += reading.findings
        return reading.block, reading.quarantine
    message = f"properties can't be read: {problem.phrase} (line {problem.line}, column {problem.column})"
    always = KINDS[problem.code].quarantines
    fatal = always or block.claims_cao
    findings.append(finding(problem.code, "", problem.line, message, severity="error" if fatal else None))
    return None, problem.code if fatal else ""


def _cao_of(block: Block) -> CaoReading:
    if block.data is None and block.claims_cao:
        return CaoReading(
            None, (finding("invalid_cao_block", "", 2, "the properties are no mapping"),), "invalid_cao_block"
        )
    return read_cao(block)


def _title(properties: Mapping[str, Any] | None, name: str) -> str:
    title = (properties or {}).get("title")
    if isinstance(title, str) and title.strip():
        return " ".join(title.split())
    return name[:-3] if name.lower().endswith(".md") else name


def _aliases_and_tags(
    properties: Mapping[str, Any] | None, findings: list[Finding]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the usable aliases and tags; what Obsidian does not read is reported.

    Rules: Obsidian's `parseFrontMatterStringArray`, `…Tags` and `…Aliases` (conformance FM-aliases-*,
    TAG-fm-*): only texts, trimmed; a tag with a blank is none; keys in any letter case.
    """
    if not properties:
        return (), ()
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    for name, value in properties.items():
        lower = name.lower()
        if lower == "aliases" and not aliases:
            aliases = tuple(text for text in _texts(value) if text)
            _report_ignored(name, value, len(aliases), findings)
        elif lower == "tags" and not tags:
            tags = tuple(tag for tag in map(_tag, _texts(value)) if tag)
            _report_ignored(name, value, len(tags), findings)
        elif lower in ("tag", "alias") and value:
            plural = "aliases" if lower == "alias" else "tags"
            findings.append(
                finding("property_ignored", "", 1, f"Obsidian does not read `{lower}` (since 1.9): use `{plural}`")
            )
    return aliases, tags


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value.strip()]
    return [item.strip() for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _tag(text: str) -> str:
    tag = text.removeprefix("#")
    return "" if _BLANK.search(tag) else tag


def _report_ignored(name: str, value: Any, kept: int, findings: list[Finding]) -> None:
    given = len(value) if isinstance(value, list) else int(value is not None)
    if kept < given:
        findings.append(
            finding("property_ignored", "", 1, f"{given - kept} of {given} values of `{name}` are not read by Obsidian")
        )


def _all_links(
    body_links: tuple[Link, ...], properties: Mapping[str, Any] | None, body_line: int
) -> tuple[tuple[Link, ...], list[Finding]]:
    findings: list[Finding] = []
    found = [*_property_links(properties or {}, "", 0), *body_links]
    good = [link for link in found if not is_bad_target(link.link)]
    if len(good) < len(found):
        line = next(link.line for link in found if is_bad_target(link.link))
        findings.append(
            finding("link_target_invalid", "", line, f"{len(found) - len(good)} links have too long or odd targets")
        )
    if len(good) > MAX_LINKS:
        findings.append(
            finding("link_limit_exceeded", "", body_line, f"{len(good)} links; the first {MAX_LINKS} are recorded")
        )
    return tuple(good[:MAX_LINKS]), findings


def _property_links(value: Any, key: str, depth: int) -> Iterator[Link]:
    """Yield the links of properties: values that are one whole wikilink (help: "Properties")."""
    if isinstance(value, str):
        inner = whole_wikilink(value) if "[[" in value else None
        link = wikilink(inner, embed=False, line=1, kind="frontmatter", key=key) if inner is not None else None
        if link is not None:
            yield link
    elif depth < MAX_PROPERTY_DEPTH and isinstance(value, dict):
        for name, item in value.items():
            if depth == 0 and name.lower() in ("tags", "aliases"):
                continue
            yield from _property_links(item, f"{key}.{name}" if key else name, depth + 1)
    elif depth < MAX_PROPERTY_DEPTH and isinstance(value, list):
        for position, item in enumerate(value):
            yield from _property_links(item, f"{key}.{position}", depth + 1)
