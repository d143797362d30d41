"""Write docs/findings.md from the one table of finding codes; `tests/docs` checks that it is current."""

from __future__ import annotations

from pathlib import Path

from vaultmem.notes.findings import KINDS

HEAD = """# Findings

`vaultmem findings` lists what deserves a look: the code, the file and line, what is meant, and what to do. A note that is *held
back* is shown by no view until it is mended. This page is generated from `vaultmem/notes/findings.py` by `docs/generate.py`.
"""


def findings_page() -> str:
    """Return the text of docs/findings.md."""
    parts = [HEAD]
    for code, kind in sorted(KINDS.items()):
        effect = "The note is held back." if kind.quarantines else ""
        source = "" if kind.lasting else "It is an event: told once, with its run."
        parts.append(f"## {code}\n\n*{kind.severity}.* {kind.meaning} {effect} {source}".rstrip())
        parts.append(f"**Mend it:** {kind.fix}")
        if kind.next_step.startswith("vaultmem"):
            parts.append(f"Then: `{kind.next_step}`")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("findings.md").write_text(findings_page(), encoding="utf-8")
