"""The one table of finding codes: severity, effect, meaning, repair, next step.

Codes and severities are upstream's (reference/vault.md, "Findings") with our changes there.
docs/findings.md is generated from this table.
"""

from __future__ import annotations

from dataclasses import dataclass

from vaultmem.base.values import Finding, Severity


@dataclass(frozen=True, slots=True)
class FindingKind:
    """What a code means.

    `quarantines`: the note is shown by no view. `lasting`: follows from the files, so it is part
    of the index; other findings come from an event and are stored with their run.
    """

    severity: Severity
    meaning: str
    fix: str
    next_step: str
    quarantines: bool = False
    lasting: bool = True


_EDIT = "Edit the note in Obsidian; it is read again at once"
_STATUS = "vaultmem reconcile"

KINDS: dict[str, FindingKind] = {
    "alias_ambiguous": FindingKind(
        "warn", "A link matches the aliases of several notes.", "Write the note's own name: `[[Note|alias]]`.", _EDIT
    ),
    "link_ambiguous": FindingKind(
        "warn",
        "A link fits several files equally well; the first by path is taken.",
        "Write more of the path: `[[Folder/Note]]`.",
        _EDIT,
    ),
    "link_dangling": FindingKind(
        "info",
        "A link leads to no file. A note that has the text as an alias does not count in Obsidian.",
        "Create the note, or correct the link.",
        _EDIT,
    ),
    "link_excluded": FindingKind(
        "info",
        "A link leads to a file that is excluded, unmapped or quarantined.",
        "Nothing, if the file is meant to stay out; else map its folder.",
        "vaultmem config path",
    ),
    "subpath_missing": FindingKind(
        "info",
        "The heading or block that a link names is not in the target note.",
        "Correct the part after `#`, or add the heading or `^block` there.",
        _EDIT,
    ),
    "attachment_ignored": FindingKind(
        "info",
        "A link leads to an attachment; it is recorded, but makes no relationship.",
        "Nothing.",
        "vaultmem links KEY",
    ),
    "link_limit_exceeded": FindingKind(
        "warn", "The note has more than 1,000 links; the rest is not recorded.", "Split the note.", _EDIT
    ),
    "link_target_invalid": FindingKind(
        "warn", "A link target is longer than 256 characters or holds control characters.", "Correct the link.", _EDIT
    ),
    "edge_limit_exceeded": FindingKind(
        "warn",
        "A note has more than 64 relationships of one type; the rest makes none.",
        "Split the note, or drop some links.",
        _EDIT,
    ),
    "cao_link_conflict": FindingKind(
        "warn",
        "Two `cao.links` rows name one target and type but differ otherwise; neither counts.",
        "Keep one of the rows.",
        _EDIT,
    ),
    "cao_link_invalid": FindingKind(
        "warn",
        "A row of `cao.links` is wrong; that row alone is left out.",
        "Write `to: key-or-[[Note]]`, and `type`, `status`, `confidence` only with allowed values.",
        _EDIT,
    ),
    "cao_member_unknown": FindingKind(
        "warn",
        "The `cao:` block has a member that this version does not know; it is kept and ignored.",
        "Check the spelling: key, type, managed, links.",
        _EDIT,
    ),
    "deindexed_retained": FindingKind(
        "info",
        "The memory was forgotten, and its file was left as it is; it stays out of every view.",
        "Bring it back with `vaultmem restore KEY`, or store to its key; or delete the note in Obsidian.",
        "vaultmem restore KEY",
        quarantines=True,
    ),
    "key_collision": FindingKind(
        "error",
        "Two notes of one scope claim the same `cao.key`. The file named after the key in the managed "
        "folder keeps it; without such a file all claimants are quarantined.",
        "Give one of the notes another key, or remove its `cao:` block.",
        _EDIT,
        quarantines=True,
    ),
    "key_invalid": FindingKind(
        "error", "`cao.key` may hold 1 to 60 of a-z, 0-9 and - only.", "Correct the key.", _EDIT, quarantines=True
    ),
    "invalid_cao_block": FindingKind(
        "error",
        "The `cao:` block is no mapping, or a known member has a wrong value.",
        "Correct the block.",
        _EDIT,
        quarantines=True,
    ),
    "frontmatter_malformed": FindingKind(
        "warn",
        "The properties are no valid YAML. As in Obsidian the note is read without them; the writer leaves "
        "it alone. If the block holds a `cao:` line, the note is quarantined, since its key can't be known.",
        "Correct the YAML at the line that is named.",
        _EDIT,
    ),
    "frontmatter_duplicate_key": FindingKind(
        "warn",
        "A property is there twice; Obsidian then reads no property at all, and so do we.",
        "Remove one of the two.",
        _EDIT,
    ),
    "frontmatter_too_large": FindingKind(
        "error",
        "The properties are larger than max_frontmatter_bytes.",
        "Move text into the body.",
        _EDIT,
        quarantines=True,
    ),
    "frontmatter_unsafe": FindingKind(
        "error",
        "The properties use YAML object tags, or anchors that expand beyond 10,000 nodes, or nest too deeply.",
        "Write the values out.",
        _EDIT,
        quarantines=True,
    ),
    "topic_malformed": FindingKind(
        "warn",
        "A topic file of the native wiki lacks its `# key` line or header comment, or they contradict its place. "
        "It is indexed all the same; type and tags may be missing.",
        "Write the two lines as docs/native-wiki.md shows them.",
        "Edit the topic file; it is read again at once",
    ),
    "property_ignored": FindingKind(
        "info",
        "`tags`, `aliases` or an old spelling (`tag`, `alias`) has a value that Obsidian does not read.",
        "Write a list: `tags: [a, b]`.",
        _EDIT,
    ),
    "note_too_large": FindingKind(
        "warn",
        "The note is larger than max_note_bytes and is not indexed.",
        "Split it, or raise max_note_bytes.",
        "vaultmem config path",
        quarantines=True,
    ),
    "plugin_format_excluded": FindingKind(
        "info",
        "A drawing of the Excalidraw plugin is no text and is not indexed.",
        "Nothing.",
        _STATUS,
        quarantines=True,
    ),
    "excluded_by_obsidian": FindingKind(
        "info",
        'Obsidian\'s own "Excluded files" leave these files out; they stay link targets.',
        "Change it in Obsidian, or set obsidian_excludes = false.",
        "vaultmem config path",
    ),
    "symlink_refused": FindingKind(
        "error",
        "Symbolic links are never followed.",
        "Put the file itself into the vault, or configure the link's target as a vault.",
        _STATUS,
    ),
    "hardlink_refused": FindingKind(
        "warn",
        "The file has a second name on disk (a hard link), maybe outside the vault; it is not opened.",
        "Copy the file, or set allow_hardlinks = true.",
        "vaultmem config path",
        quarantines=True,
    ),
    "non_regular_file_refused": FindingKind("warn", "A pipe, socket or device is never opened.", "Remove it.", _STATUS),
    "path_case_collision": FindingKind(
        "error",
        "Two paths differ in letter case or Unicode form only; on most systems they are one file.",
        "Rename one of them.",
        _STATUS,
        quarantines=True,
    ),
    "path_not_utf8": FindingKind(
        "warn",
        "The file's name is not UTF-8; it can't be shown or linked.",
        "Rename the file.",
        _STATUS,
        quarantines=True,
    ),
    "path_too_long": FindingKind(
        "warn",
        "The path is longer than 1,024 bytes or 64 folders deep and is skipped.",
        "Shorten it.",
        _STATUS,
        quarantines=True,
    ),
    "file_unreadable": FindingKind(
        "warn",
        "The system does not let us read this file or folder.",
        "Correct its permissions.",
        _STATUS,
        quarantines=True,
    ),
    "sync_artifact_skipped": FindingKind(
        "info",
        "A conflict copy, placeholder or temporary file of another program is not indexed.",
        "Merge it into the original in Obsidian, then delete it.",
        _STATUS,
        quarantines=True,
    ),
    "note_not_downloaded": FindingKind(
        "warn",
        "A cloud service keeps this note elsewhere; what is known of it stays.",
        "Download it in the file manager.",
        _STATUS,
    ),
    "note_unreadable": FindingKind(
        "error",
        "Reading the note failed in a way that we did not foresee; the others are read. The kind of fault is told.",
        "Look whether the note holds something odd, and report it to vaultmem's developers.",
        _EDIT,
        quarantines=True,
    ),
    "note_not_utf8": FindingKind("error", "The file is not UTF-8 text.", "Save it as UTF-8.", _EDIT, quarantines=True),
    "note_contains_nul": FindingKind("error", "The file holds a NUL byte.", "Remove it.", _EDIT, quarantines=True),
    "merge_conflict_markers": FindingKind(
        "error",
        "The note holds the markers of an unfinished merge; it is indexed, and the writer leaves it alone.",
        "Finish the merge.",
        _EDIT,
    ),
    "secret_detected": FindingKind(
        "error",
        "The note looks as if it held a secret; only the pattern's name is told.",
        "Take the secret out, or list the folder under secret_allow.",
        _EDIT,
        quarantines=True,
    ),
    "scope_id_invalid": FindingKind(
        "warn",
        'A sub-folder of a mapping with scope_id = "*" has a name that can\'t be a scope id.',
        "Use letters, digits, dots, _ and - in the folder's name.",
        _STATUS,
        quarantines=True,
    ),
    "mapping_folder_missing": FindingKind(
        "warn",
        "The folder of a mapping is not there or none of its notes is; what is known of it is kept.",
        "Mount or restore it; if the notes are meant to be gone, accept that.",
        "vaultmem reconcile --accept-removals",
        lasting=False,
    ),
    "mapping_folder_unreadable": FindingKind(
        "warn",
        "The folder of a mapping can't be opened; what is known of it is kept.",
        "Correct its permissions.",
        _STATUS,
        lasting=False,
    ),
    "mass_removal": FindingKind(
        "error",
        "More than half and more than 20 notes of a mapping vanished at once; what is known of them is kept.",
        "Restore them; if it was meant, accept that.",
        "vaultmem reconcile --accept-removals",
        lasting=False,
    ),
    "note_limit_exceeded": FindingKind(
        "warn",
        "The vault has more notes than max_notes; the rest is skipped.",
        "Raise max_notes.",
        "vaultmem config path",
    ),
    "byte_budget_exceeded": FindingKind(
        "warn",
        "The vault has more bytes than max_total_bytes; the rest is skipped.",
        "Raise max_total_bytes.",
        "vaultmem config path",
    ),
    "unstable_skipped": FindingKind(
        "warn",
        "The file changed while it was read; the old text is kept and the next run reads it again.",
        "Nothing.",
        _STATUS,
        lasting=False,
    ),
    "rename_ambiguous": FindingKind(
        "warn",
        "Several notes with the same text vanished or appeared at once; all got new identities.",
        "Give the notes a `cao.key` before moving them.",
        "vaultmem findings",
        lasting=False,
    ),
    "rename_with_edit_unresolved": FindingKind(
        "warn",
        "A note vanished and another with other text appeared; they count as two notes.",
        "Give the note a `cao.key` before moving it.",
        "vaultmem findings",
        lasting=False,
    ),
}


def finding(code: str, path: str, line: int, message: str, *, severity: Severity | None = None) -> Finding:
    """Return a finding of a known code (KeyError otherwise); `message` never holds note text."""
    return Finding(code, severity or KINDS[code].severity, path, line, message)


def next_step(code: str) -> str:
    """Return what a user does next about a finding of this code."""
    kind = KINDS[code]
    if kind.next_step == _EDIT:
        return kind.fix
    return f"{kind.fix} ({kind.next_step})"
