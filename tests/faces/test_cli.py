"""The command line as a real process: exit codes, JSON shapes, errors in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import World, run_cli


def filled(world: World) -> World:
    world.write(
        "Kiln.md",
        "---\naliases: [Oven]\ntags: [yard/tool]\ncao:\n  key: kiln\n---\n# Kiln\nFires at 1200 degrees. ^t\n",
    )
    world.write("Log.md", "# Log\nSee [[Kiln]], [[Oven]], [[Nowhere]], [[Kiln#Missing]] and ![[pic.png]].\n")
    world.write("pic.png", b"\x89PNG")
    return world


def keys_of(value: Any) -> set[str]:
    return set(value)


def test_json_shapes(world: World) -> None:
    filled(world)
    hit = {
        "key",
        "scope",
        "scope_id",
        "source_kind",
        "type",
        "title",
        "tags",
        "content",
        "snippet",
        "path",
        "vault",
        "score",
        "updated_at",
        "freshness",
        "superseded_by",
        "contradicts",
        "properties",
        "related",
    }
    found = world.cli("recall", "degrees", "--format", "json").json
    assert keys_of(found) >= {"schema", "query", "mode", "sort", "engine", "total", "truncated", "warnings", "hits"}
    assert found["schema"] == "vaultmem.recall/1" and keys_of(found["hits"][0]) >= hit
    listed = world.cli("list", "--format", "json").json
    assert listed["schema"] == "vaultmem.list/1" and "score" not in listed["hits"][0]
    shown = world.cli("show", "kiln", "--format", "json").json
    assert shown["schema"] == "vaultmem.show/1" and shown["path"] == "Kiln.md" and shown["findings"] == []
    links = world.cli("links", "Log.md", "--format", "json").json
    assert [row["state"] for row in links["outgoing"]] == ["resolved", "alias", "dangling", "resolved", "attachment"]
    assert keys_of(links["outgoing"][0]) >= {
        "target_path",
        "key",
        "kind",
        "embed",
        "subpath",
        "display",
        "line",
        "state",
        "via",
    }
    status = world.cli("status", "--format", "json").json
    assert keys_of(status) >= {"schema", "home", "engine", "index_digest", "watch", "vaults", "native", "findings"}
    assert keys_of(status["vaults"][0]) >= {
        "id",
        "root",
        "notes",
        "quarantined",
        "held",
        "links",
        "dangling",
        "last_reconcile",
        "stale",
    }
    rows = world.cli("findings", "--format", "json").json["findings"]
    assert {row["code"] for row in rows} == {"link_dangling", "subpath_missing", "attachment_ignored"}
    assert all(keys_of(row) >= {"code", "severity", "vault", "path", "line", "message", "next_step"} for row in rows)
    done = world.cli("reconcile", "--format", "json").json
    assert keys_of(done) >= {
        "schema",
        "generation",
        "scanned",
        "unchanged",
        "added",
        "changed",
        "moved",
        "removed",
        "held",
        "quarantined",
        "links",
        "edges",
        "findings",
        "seconds",
    }
    planned = world.cli("reconcile", "--dry-run", "--format", "json").json
    assert planned["operations"] == [] and planned["applied"] is False
    graph = world.cli("graph", "show", "--format", "json").json
    assert graph["schema"] == "vaultmem.graph/1" and len(graph["nodes"]) == 2
    stored = world.cli("store", "x", "--key", "k", "--scope", "global", "--format", "json").json
    assert keys_of(stored) >= {"schema", "action", "key", "scope", "scope_id", "source_kind", "path"}


def test_debug_parse_and_resolve(world: World) -> None:
    filled(world)
    parsed = run_cli(world.home, "debug", "parse", str(world.vault / "Kiln.md")).json
    assert parsed["schema"] == "vaultmem.parse/1" and parsed["aliases"] == ["Oven"] and parsed["blocks"] == ["t"]
    assert parsed["cao"]["key"] == "kiln" and parsed["headings"] == [{"level": 1, "text": "Kiln", "line": 7}]
    resolved = run_cli(world.home, "debug", "resolve", str(world.vault)).json
    assert [row["state"] for row in resolved["notes"]["Log.md"]] == [
        "resolved",
        "alias",
        "dangling",
        "resolved",
        "attachment",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("recall", "x", "--mode", "fuzzy"), 2, "hybrid"),
        (("recall", "x", "--sort", "luck"), 2, "relevance"),
        (("recall", "x", "--limit", "0"), 2, "1 to 100"),
        (("recall", "x", "--scope", "galaxy"), 2, "session, project"),
        (("list", "--type", "thing"), 2, "feedback"),
        (("show", "nothing-like-this"), 1, "vaultmem list"),
        (("list", "--format", "xml"), 2, "table or json"),
        (("findings", "--code", "no_such"), 2, "docs/findings.md"),
        (("recall", "x", "--where", "novalue"), 2, "name=value"),
        (("store", "  "), 2, "no content"),
        (("graph", "export", "--to", "pdf", "-o", "x"), 2, "obsidian or json"),
        (("debug", "parse", "/nowhere.md"), 2, "not there"),
        (("debug", "resolve", "/nowhere"), 2, "not a folder"),
        (("reconcile", "/elsewhere/x.md"), 2, "no configured vault"),
        (("init", "/nowhere/vault"), 2, "not a folder"),
        (("no-such-command",), 2, ""),
    ],
)
def test_bad_input_is_one_clear_line(world: World, arguments: tuple[str, ...], code: int, says: str) -> None:
    found = world.cli(*arguments)
    assert found.code == code and says in found.err and found.out == ""


def test_without_a_vault_the_next_step_is_named(tmp_path: Path) -> None:
    found = run_cli(tmp_path / "home", "recall", "x")
    assert found.code == 1 and "vaultmem init" in found.err


def test_five_errors_of_the_settings_at_once(world: World) -> None:
    (world.home / "config.toml").write_text(
        '[memory]\nenabeld = true\n[search]\nengine = "fts6"\n[[vault]]\nid = "Bad Id"\nroot = "relative"\n'
        'max_notes = 0\n[[vault.mapping]]\nfolder = "../x"\nscope = "session"\n',
        encoding="utf-8",
    )
    found = world.cli("config", "check")
    assert found.code == 1
    for text in (
        "memory.enabeld",
        'did you mean "enabled"',
        "search.engine",
        "vault[0].id",
        "vault[0].root",
        "vault[0].max_notes",
        "vault[0].mapping[0].folder",
        "vault[0].mapping[0].scope",
    ):
        assert text in found.err, text
    as_json = world.cli("config", "check", "--format", "json")
    assert len(as_json.json["problems"]) >= 7


def test_a_missing_root_and_an_unreadable_settings_file(world: World) -> None:
    world.vault.rmdir()
    found = world.cli("recall", "x")
    assert found.code == 0 and "can't be opened" in found.err
    (world.home / "config.toml").write_bytes(b"\xff\xfe")
    assert "UTF-8" in world.cli("status").err


def test_init_is_safe_to_repeat(tmp_path: Path) -> None:
    vault = tmp_path / "Mein Tresor ä"
    vault.mkdir()
    (vault / "a.md").write_text("# a\nheron\n", encoding="utf-8")
    home = tmp_path / "home"
    first = run_cli(home, "init", str(vault))
    assert first.code == 0 and "1 note searchable" in first.out and "provider" in first.out
    text = (home / "config.toml").read_text(encoding="utf-8")
    again = run_cli(home, "init", str(vault))
    assert again.code == 0 and "kept" in again.out
    other = run_cli(home, "init", str(vault), "--no-projects")
    assert other.code == 3 and "[[vault.mapping]]" in other.out
    assert (home / "config.toml").read_text(encoding="utf-8") == text
    assert list(vault.iterdir()) == [vault / "a.md"]


def test_strict_exits_3_when_notes_are_held_back(world: World) -> None:
    world.write("a.md", "password: hunter2hunter\n")
    assert world.cli("reconcile").code == 0
    assert world.cli("reconcile", "--strict").code == 3


def test_terminal_controls_of_names_and_notes_are_spelled_out(world: World) -> None:
    world.write("esc\x1b[31mred.md", "# red\nheron \x1b[2J \u202e reversed\n")
    world.write("new\nline.md", "heron\n")
    for arguments in (("recall", "heron"), ("list",), ("show", "new\nline.md"), ("findings",)):
        found = world.cli(*arguments)
        assert "\x1b" not in found.out + found.err and "\u202e" not in found.out


AUDIT = """
import sys
opened = []
def hook(event, args):
    if event in ("open", "os.open") and isinstance(args[0], (str, bytes)):
        opened.append(args[0] if isinstance(args[0], str) else args[0].decode())
sys.addaudithook(hook)
sys.argv = ["vaultmem", "--home", HOME, "reconcile"]
from vaultmem.faces.cli.app import main
try:
    main()
except SystemExit:
    pass
print([path for path in opened if path.endswith(".md")])
"""


def test_a_no_op_reconcile_opens_no_note(world: World) -> None:
    for number in range(50):
        world.write(f"n{number}.md", f"# {number}\n")
    world.reconcile()
    world.reconcile()  # files read right after they were written are read once more
    import time

    time.sleep(0.15)  # the racy window; nothing to wait on
    world.reconcile()
    done = subprocess.run(
        [sys.executable, "-c", AUDIT.replace("HOME", repr(str(world.home)))], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.strip().splitlines()[-1].replace("'", '"')) == []


def test_output_may_be_closed_early(world: World) -> None:
    for number in range(200):
        world.write(f"n{number}.md", f"# {number}\n")
    command = f"{sys.executable} -m vaultmem --home {world.home} list --all | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr and done.stdout.count("\n") == 1


def test_exports_resolve_and_are_byte_identical(world: World) -> None:
    filled(world)
    world.write("sub/Kiln.md", "# another [[Kiln]] with the same name: ?*\n")
    world.write("a|b.md" if sys.platform != "win32" else "ab.md", "[[Log]]\n")
    outputs = [world.folder / "one", world.folder / "two"]
    for output in outputs:
        assert world.cli("graph", "export", "--to", "obsidian", "-o", str(output)).code == 0
    trees = [{path.name: path.read_bytes() for path in output.iterdir()} for output in outputs]
    assert trees[0] == trees[1] and len(trees[0]) == 5
    resolved = run_cli(world.home, "debug", "resolve", str(outputs[0])).json
    states = [row["state"] for rows in resolved["notes"].values() for row in rows]
    assert states and set(states) == {"resolved"}


def test_an_export_removes_only_its_own_files(world: World) -> None:
    filled(world)
    output = world.folder / "out"
    world.cli("graph", "export", "--to", "obsidian", "-o", str(output))
    (output / "mine.md").write_text("mine", encoding="utf-8")
    (world.vault / "Log.md").unlink()
    world.cli("graph", "export", "--to", "obsidian", "-o", str(output))
    assert sorted(path.name for path in output.iterdir()) == ["Kiln.md", "mine.md", "vaultmem-export.json"]
    refused = world.cli("graph", "export", "--to", "obsidian", "-o", str(world.vault / "graph"))
    assert refused.code == 1 and not (world.vault / "graph").exists()
    full = world.folder / "full"
    full.mkdir()
    (full / "theirs.md").write_text("x", encoding="utf-8")
    assert world.cli("graph", "export", "--to", "obsidian", "-o", str(full)).code == 1


def test_the_sample_vault_shows_every_feature(tmp_path: Path) -> None:
    done = run_cli(tmp_path / "unused", "demo", "--keep", str(tmp_path / "demo"))
    assert done.code == 0
    for text in (
        "reconcile:",
        "secret_detected",
        "frontmatter_malformed",
        "link_dangling",
        "Use NATS for events",
        "store: created",
        "deploy-window",
        "graph export",
    ):
        assert text in done.out, text
    home = tmp_path / "demo/home"
    verified = run_cli(home, "rebuild", "--verify")
    assert verified.code == 0 and "identical" in verified.out
    shown = run_cli(home, "show", "decision-queue-rabbitmq", "--format", "json").json
    assert shown["superseded_by"] == ["decision-queue-nats"]
    against = run_cli(home, "show", "deploy-any-day", "--format", "json").json
    assert against["contradicts"] == ["deploy-weekdays"]
    export = run_cli(home, "debug", "resolve", str(tmp_path / "demo/graph")).json
    assert all(row["state"] == "resolved" for rows in export["notes"].values() for row in rows)
