"""Files and facts as plain values, for the pipes between us and a reader: marshal takes a fifth of pickle's time.

A reader gets what the scan saw of a file and gives back what it read of it, without what we know already.
"""

from __future__ import annotations

import marshal
from collections.abc import Sequence

from vaultmem.base.values import Binding, Finding, Link, Signature, SourceFile
from vaultmem.index.operations import FileFacts


def files_to_bytes(files: Sequence[SourceFile]) -> bytes:
    """Return files of one vault as bytes."""
    return marshal.dumps(
        [
            (
                file.vault,
                file.path,
                file.raw_path,
                file.kind,
                tuple(file.signature),
                None if file.binding is None else tuple(file.binding),
                file.mapping,
                file.excluded_by,
            )
            for file in files
        ]
    )


def files_from(data: bytes) -> list[SourceFile]:
    """Return the files that `files_to_bytes` was given."""
    return [
        SourceFile(
            vault,
            path,
            raw_path,
            kind,
            Signature._make(signature),
            None if binding is None else Binding._make(binding),
            mapping,
            excluded_by,
        )
        for vault, path, raw_path, kind, signature, binding, mapping, excluded_by in marshal.loads(data)
    ]


def facts_to_bytes(facts: Sequence[FileFacts]) -> bytes:
    """Return the facts of files that the other side has."""
    return marshal.dumps(
        [
            (
                fact.status,
                tuple(fact.file.signature),
                fact.content_hash,
                fact.racy,
                fact.claimed_key,
                fact.own_quarantine,
                fact.aliases,
                fact.outline,
                fact.body_size,
                [(f.code, f.severity, f.path, f.line, f.message) for f in fact.findings],
                [tuple(link) for link in fact.links],
                fact.asks_outlines_of,
                fact.ref,
            )
            for fact in facts
        ]
    )


def facts_from(data: bytes, files: Sequence[SourceFile]) -> list[FileFacts]:
    """Return the facts that `facts_to_bytes` was given; `files` are theirs, in the same order."""
    facts = []
    for file, values in zip(files, marshal.loads(data), strict=True):
        status, signature, content_hash, racy, claimed, quarantine, aliases, outline, size, *others = values
        findings, links, asks, ref = others
        read = file.with_signature(Signature._make(signature))
        told = tuple(Finding(*found) for found in findings)
        ends = tuple(Link._make(link) for link in links)
        same = (content_hash, racy, claimed, quarantine, aliases, outline, size)
        facts.append(FileFacts(read, status, *same, told, ends, asks, ref))
    return facts
