"""Faults that users of such tools reported: each enabled case, step by step, and what must hold.

Expected always (README of the cases): no traceback, no foreign byte changed, and after the last step
the incremental index equals a rebuilt one.
"""

from __future__ import annotations

import json
import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases import agents, turn2, watching  # noqa: F401  register their judges
from tests.cases.registry import HOOKS, JUDGES, hook, judges
from tests.cases.runner import Run
from tests.conftest import DATA, World
from vaultmem.access.filters import NoteFilter
from vaultmem.base.errors import VaultmemError
from vaultmem.notes.parse import parse_note

FILES = sorted(path for path in (DATA / "cases").glob("*.yaml") if path.name != "not_run.yaml")
CASES = {case["id"]: case for path in FILES for case in yaml.safe_load(path.read_text(encoding="utf-8"))}
NOT_RUN = yaml.safe_load((DATA / "cases/not_run.yaml").read_text(encoding="utf-8")) or {}
MOST_NOT_RUN = 0
"""This number only ever falls."""


RUNS = [(case_id, "") for case_id in sorted(CASES.keys() - NOT_RUN.keys())]
RUNS += [(case["id"], "fts4") for case in yaml.safe_load((DATA / "cases/search.yaml").read_text(encoding="utf-8"))]
"""What is about finding is run on the second engine too."""


@pytest.mark.parametrize(
    ("case_id", "engine"), RUNS, ids=[f"{case_id}{engine and '-'}{engine}" for case_id, engine in RUNS]
)
def test_case(case_id: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, engine)
    run = Run(CASES[case_id], world, monkeypatch)
    run.set_up()
    try:
        run.go(HOOKS.get(case_id))
        JUDGES[case_id](run)
        assert world.is_verified() == []
    finally:
        run.close()


def test_the_list_of_cases_not_run_only_shrinks() -> None:
    assert len(NOT_RUN) <= MOST_NOT_RUN
    assert NOT_RUN.keys() <= CASES.keys()
    assert JUDGES.keys() == CASES.keys() - NOT_RUN.keys()
    assert all(NOT_RUN.values())


def states(run: Run, number: int = 0) -> list[tuple[str, str | None]]:
    return [(row["state"], row["target_path"]) for row in run.all("graph")[number].result.outgoing]


def keys_by_path(run: Run) -> dict[str, str]:
    with run.memory() as memory:
        return {hit.path: hit.key for hit in memory.list(NoteFilter(), 0).hits}


def sections(run: Run, path: str) -> list[str]:
    return [section.text for section in parse_note(run.raw(path), path).sections]


# -- paths and sync ---------------------------------------------------------------------------------


@hook("path-decomposed-name-is-the-same-note")
def _(run: Run, number: int) -> Any:
    return keys_by_path(run)


@judges("path-decomposed-name-is-the-same-note")
def _(run: Run) -> None:
    path = unicodedata.normalize("NFC", "Notes/Łódź café.md")
    before, after = run.step("check").result, keys_by_path(run)
    assert {unicodedata.normalize("NFC", name): key for name, key in after.items()} == before
    assert unicodedata.normalize("NFD", path) in after, "shown as it is on disk"
    with run.memory() as memory:
        assert [row["source_path"] for row in memory.links(path, NoteFilter()).incoming] == ["Notes/link.md"]


@judges("path-case-twins-do-not-overwrite")
def _(run: Run) -> None:
    assert run.codes()["path_case_collision"] == {"Notes/Finance/Budget.md", "Notes/finance/budget.md"}
    assert set(run.step("recall").paths) == {"Notes/Budget - draft.md", "Notes/Budget-draft.md"}
    moved = run.step("reconcile", 1).result
    assert (moved.moved, moved.added, moved.removed) == (1, 0, 0)


@judges("path-non-latin-key-is-not-empty")
def _(run: Run) -> None:
    results = [step.result for step in run.all("store")]
    assert len({result.path for result in results}) == 4 and len(run.step("list").result.hits) == 4
    with run.memory() as memory:
        from vaultmem.memories.store import StoreRequest

        again = memory.store(StoreRequest("支付服务只在周二上线", scope="project", scope_id="p"))
    assert (again.path, again.action) == (results[0].path, "unchanged")


@judges("path-percent-hash-emoji-dots")
def _(run: Run) -> None:
    found = set(run.step("recall").paths)
    hidden = {"Notes/.drafts/hidden.md", "Notes/link.md"}
    written = {unicodedata.normalize("NFC", path) for path in run.case["setup"]["files"]}
    assert found == written - hidden
    # `[b](<C# tips.md>)` is cut at `#` as every link is (RES-hash-in-name), so it leads nowhere in Obsidian
    targets = [target for _, target in states(run)]
    assert targets[:3] == ["Notes/50% plan.md", "Notes/50% plan.md", "Notes/v1.2.3.md"]


@judges("path-folder-link-to-itself")
def _(run: Run) -> None:
    assert [hit.path for hit in run.step("list").result.hits] == ["Notes/one.md"]
    assert run.codes()["symlink_refused"] == {"Notes/man", "Notes/sub/up", "Notes/dead.md", "Notes/twin.md"}


@judges("sync-conflict-copies-are-not-memories")
def _(run: Run) -> None:
    assert set(run.step("recall").paths) == {"Notes/Oncall.md", "Notes/How we solve a sync-conflict.md"}
    assert run.codes()["sync_artifact_skipped"] == {
        path
        for path in run.case["setup"]["files"]
        if "Oncall" in path and path != "Notes/Oncall.md" and "/." not in path
    }
    assert all(run.place(path).exists() for path in run.case["setup"]["files"])


@hook("sync-icloud-placeholder-is-neither-gone-nor-free")
def _(run: Run, number: int) -> Any:
    note, placeholder = run.place("Agent/oncall.md"), run.place("Agent/.oncall.md.icloud")
    if number == 0:
        note.rename(run.world.folder / "kept")
        placeholder.write_bytes(b"x" * 180)
        return None
    refused = not note.exists()
    (run.world.folder / "kept").rename(note)
    placeholder.unlink()
    run.do_reconcile("")
    return refused


@judges("sync-icloud-placeholder-is-neither-gone-nor-free")
def _(run: Run) -> None:
    between = run.step("reconcile", 1).result
    assert (between.removed, between.held) == (0, 0)
    store = run.step("store")
    assert store.error is not None and "cloud" in str(store.error) and run.step("check", 1).result
    assert run.do_recall('{query: "Maria"}').hits[0].path == "Agent/oncall.md"


@judges("sync-git-markers-are-not-content")
def _(run: Run) -> None:
    text = run.case["do"][1].partition(": ")[2]
    assert run.step("store").error is not None
    assert run.text("Agent/limits.md") == yaml.safe_load(text)
    assert any("Agent/limits.md" in paths for code, paths in run.codes().items() if code != "link_dangling")
    run.put("Notes/talk.md", "# talk\n\n```\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n```\nmarkers explained\n")
    run.do_reconcile("")
    assert run.do_recall('{query: "explained"}').hits[0].path == "Notes/talk.md"
    assert "Notes/talk.md" not in run.codes().get("merge_conflict_markers", set())


# -- recovery, deletion, encoding, size ----------------------------------------------------------------


@hook("rec-the-named-repair-command-exists")
def _(run: Run, number: int) -> Any:
    import sqlite3

    import vaultmem.index.apply as apply

    if number == 0:
        run.do_reconcile("")

        def fail(*arguments: object, **named: object) -> None:
            raise sqlite3.OperationalError("attempt to write a readonly database")

        run.monkeypatch.setattr(apply.Applier, "apply", fail)
        return None
    run.monkeypatch.undo()
    error: Any = run.step("store").error
    return run.world.cli(*error.repair_command.split()[1:]).code


@judges("rec-the-named-repair-command-exists")
def _(run: Run) -> None:
    error: Any = run.step("store").error
    assert error is not None and error.completed_phases == ("note",) and error.path == "Agent/t.md"
    assert run.step("check", 1).result == 0
    assert run.step("recall").paths.count("Agent/t.md") == 1


@hook("rec-corrupt-search-index-is-noticed")
def _(run: Run, number: int) -> Any:
    index = next(run.world.home.glob("index-v*.db"))
    answers = []
    for way in range(3):
        data = index.read_bytes()
        middle = len(data) // 2 // 4096 * 4096
        index.write_bytes(
            (data[:middle] + b"\xa5" * 4096 + data[middle + 4096 :], data[: len(data) // 2], b"text " * 5_000)[way]
        )
        answers.append(run.world.cli("recall", "indigo", "--all"))
        run.world.cli("reconcile")
    return answers


@judges("rec-corrupt-search-index-is-noticed")
def _(run: Run) -> None:
    assert all("Notes/a.md" in answer.out for answer in run.step("check").result)
    assert all("Notes/a.md" in step.paths for step in run.all("recall"))
    with run.memory() as memory:  # one posting changed: a query can't see it, `rebuild --verify` and `doctor` do
        connection = memory._session.connection()
        row = connection.execute("SELECT rowid FROM fts WHERE fts MATCH 'indigo'").fetchone()
        connection.execute(
            "INSERT INTO fts(fts, rowid, title, aliases, key, tags, headings, body) "
            "VALUES ('delete', ?, '', '', '', '', '', 'indigo')",
            row,
        )
    assert run.world.cli("rebuild", "--verify").code == 1
    assert run.world.cli("doctor").code == 3
    assert run.world.cli("rebuild").code == 0


@hook("del-vanished-root-is-not-a-mass-deletion")
def _(run: Run, number: int) -> Any:
    away = run.world.folder / "away"
    if number == 0:
        run.world.vault.rename(away)
        return None
    found = [sorted(run.do_recall('{query: "amber", limit: 10}').hits, key=lambda hit: hit.path)]
    run.world.vault.mkdir()  # the second run: an empty folder in its place
    held = run.do_reconcile("")
    empty = list(run.world.vault.iterdir()) == []
    run.world.vault.rmdir()
    away.rename(run.world.vault)
    run.do_reconcile("")
    return found, held, empty


@judges("del-vanished-root-is-not-a-mass-deletion")
def _(run: Run) -> None:
    between = run.step("reconcile", 1).result
    assert (between.held, between.removed) == (3, 0)
    found, held, empty = run.step("check", 1).result
    assert len(found[0]) == 3 and held.removed == 0 and empty
    assert sorted(run.step("recall", 1).paths) == ["Agent/c.md", "Notes/a.md", "Notes/b.md"]


@hook("del-a-deleted-note-stays-deleted")
def _(run: Run, number: int) -> Any:
    return None  # nothing of ours runs in the background


@judges("del-a-deleted-note-stays-deleted")
def _(run: Run) -> None:
    assert run.step("recall", 0).paths == ["Agent/temp-fact.md"] and run.step("recall", 1).paths == []
    assert not run.place("Agent/temp-fact.md").exists()
    assert [hit.path for hit in run.step("list").result.hits] == ["Notes/n.md"]
    run.do_store('{key: temp-fact, scope: project, content: "anew"}')
    assert "staging" not in run.text("Agent/temp-fact.md")


@judges("del-external-delete-leaves-no-ghost")
def _(run: Run) -> None:
    assert run.step("recall").paths == []
    assert states(run) == [("dangling", None)]
    for arguments in (
        ("list", "--all"),
        ("graph", "show", "--format", "json"),
        ("recall", "harbour", "--all", "--mode", "metadata"),
    ):
        assert "Secret plan" not in run.world.cli(*arguments).out
    run.do_rebuild("")
    data = b"".join(path.read_bytes() for path in run.world.home.glob("index-v*"))
    assert b"zeppelin" not in data


@judges("enc-latin1-note-is-never-damaged")
def _(run: Run) -> None:
    for path in ("Agent/strassen.md", "Notes/photo.md"):
        import base64

        assert run.raw(path) == base64.b64decode(run.case["setup"]["files"][path]["bytes_b64"])
    error = run.step("store").error
    assert error is not None and "not UTF-8" in str(error) and "Agent/strassen.md" in str(error)
    assert {"Agent/strassen.md", "Notes/photo.md"} <= run.codes()["note_not_utf8"]
    assert run.step("recall", 0).paths == ["Notes/fine.md"] and run.step("recall", 1).paths == []


@judges("enc-one-huge-paragraph")
def _(run: Run) -> None:
    assert run.step("recall", 0).paths == ["Notes/small.md"]
    assert run.codes()["note_too_large"] == {"Notes/log.md", "Notes/stars.md"}


# -- search -------------------------------------------------------------------------------------------


@judges("search-hyphenated-id-is-not-an-exclusion")
def _(run: Run) -> None:
    first, second, third = (step.paths for step in run.all("recall"))
    assert first[0] == third[0] == "Notes/Retry budget.md" and set(first) >= set(second)


@judges("search-punctuation-is-data")
def _(run: Run) -> None:
    found = [step.paths for step in run.all("recall")]
    assert found[:8] == [["Notes/Shell.md"]] * 8 and all(step.error is None for step in run.steps)
    assert found[9] == found[10] == found[11] == found[12] == ["Notes/Shell.md"]


@judges("search-two-character-cjk-word")
def _(run: Run) -> None:
    assert [step.paths for step in run.all("recall")] == [
        ["Notes/投资.md"],
        ["Notes/散歩.md"],
        ["Notes/회의.md"],
        ["Notes/投资.md"],
    ]


@judges("search-accents-fold-but-exact-wins")
def _(run: Run) -> None:
    first, second = (step.paths for step in run.all("recall"))
    assert set(first) == set(second) == {"Notes/a.md", "Notes/b.md", "Notes/c.md"} and first[2] == "Notes/c.md"


@hook("search-limit-counts-what-the-caller-may-see")
def _(run: Run, number: int) -> Any:
    data = run.raw("Shared/noise.md")
    for copy in range(1, 301):
        run.place(f"Shared/noise-{copy:03}.md").write_bytes(data)
    return run.do_reconcile("")


@judges("search-limit-counts-what-the-caller-may-see")
def _(run: Run) -> None:
    found = run.step("recall")
    assert len(found.paths) == 5 and all(path.startswith("Work/") for path in found.paths) and found.result.total == 5


# -- identity, security -------------------------------------------------------------------------------


@hook("id-copied-note-carries-the-same-id")
def _(run: Run, number: int) -> Any:
    data = run.raw("Agent/cooling.md")
    for name, time in (("cooling copy.md", 2_000_000_000), ("aaa.md", 1_000_000_000)):
        run.place(f"Agent/{name}").write_bytes(data)
        os.utime(run.place(f"Agent/{name}"), (time, time))
    return data


@judges("id-copied-note-carries-the-same-id")
def _(run: Run) -> None:
    assert run.codes()["key_collision"] == {"Agent/cooling copy.md", "Agent/aaa.md"}
    assert run.step("recall", 1).paths == ["Agent/cooling.md"]
    assert run.step("store").result.path == "Agent/cooling.md"
    for copy in ("Agent/cooling copy.md", "Agent/aaa.md"):
        assert run.raw(copy) == run.step("check").result


@hook("sec-link-out-of-the-vault")
def _(run: Run, number: int) -> Any:
    return run.world.cli("graph", "export", "--to", "obsidian", "-o", str(run.world.folder / "export"))


@judges("sec-link-out-of-the-vault")
def _(run: Run) -> None:
    assert run.step("check").result.code == 0
    everything = b"".join(p.read_bytes() for p in (run.world.folder / "export").iterdir())
    everything += b"".join(p.read_bytes() for p in run.world.home.rglob("*") if p.is_file())
    assert b"canary-441" not in everything and run.step("recall").paths == []
    assert run.text("@outside/keys.md") == "# keys\ncanary-4410\n" and run.place("Agent/target.md").is_symlink()
    assert run.step("store").error is not None
    assert run.codes()["symlink_refused"] == {"Notes/innocent.md", "Notes/folder", "Agent/target.md"}


# -- frontmatter --------------------------------------------------------------------------------------


def keeps_lines(run: Run, path: str) -> None:
    old = run.case["setup"]["files"][path]
    lines = iter(run.text(path).split("\n"))
    for line in old.split("\n"):
        assert not line or any(line == found for found in lines), line


@judges("fm-one-append-leaves-the-rest-of-the-block")
def _(run: Run) -> None:
    keeps_lines(run, "Agent/deploy-window.md")
    assert sections(run, "Agent/deploy-window.md") == ["Not in the week of a release."]


@judges("fm-quotes-and-long-values-survive")
def _(run: Run) -> None:
    keeps_lines(run, "Agent/reading-list.md")
    assert len(sections(run, "Agent/reading-list.md")) == 2
    assert run.do_recall('{query: "appendix"}').hits[0].path == "Agent/reading-list.md"


@judges("fm-broken-yaml-is-never-replaced")
def _(run: Run) -> None:
    assert run.text("Agent/broken.md") == run.case["setup"]["files"]["Agent/broken.md"]
    error = run.step("store").error
    assert error is not None and "Agent/broken.md:3" in str(error) and "Obsidian" in str(error)
    assert run.codes()["frontmatter_malformed"] == {"Agent/broken.md"}
    assert "Notes/healthy.md" in keys_by_path(run)


@judges("fm-crlf-note-gets-no-second-block")
def _(run: Run) -> None:
    hit = run.step("recall").result.hits[0]
    assert (hit.path, hit.title) == ("Agent/win-note.md", "From Windows")
    text = run.text("Agent/win-note.md")
    assert text.count("---\r\n") == 2 and "\n" not in text.replace("\r\n", "")
    keeps_lines(run, "Agent/win-note.md")


@judges("fm-closing-fence-at-end-of-file")
def _(run: Run) -> None:
    assert states(run) == [("alias", "Notes/props-only.md"), ("alias", "Notes/props-crlf.md")]
    assert run.step("recall").paths[0] == "Notes/props-only.md"


@judges("fm-dates-go-through-json")
def _(run: Run) -> None:
    found = run.world.cli("recall", "quarterly", "--all", "--format", "json")

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is no strict JSON")

    properties = json.loads(found.out, parse_constant=refuse)["hits"][0]["properties"]
    assert properties["created"] == "2026-05-24" and "2026-02-30" in properties["history"]


HOOKS["fm-dates-go-through-json"] = lambda run, number: None


@judges("fm-yaml-one-point-one-surprises")
def _(run: Run) -> None:
    hit = run.step("recall").result.hits[0]
    assert hit.path == "Notes/codes.md"
    assert not {"true", "false", "True", "False", "None", "1000.0", "15"} & set(hit.tags)
    # the case also wants `0777` to work as an alias; Obsidian reads it as a number, so it is none (FM-leading-zero)
    assert states(run) == [("alias", "Notes/codes.md"), ("dangling", None)]


@judges("fm-one-odd-tag-must-not-stop-the-run")
def _(run: Run) -> None:
    everything, gardening, soil, sign = (step.paths for step in run.all("recall"))
    assert len(everything) == 3 and gardening == sign == ["Notes/odd-tags.md"] and soil == []
    assert "Notes/string-tags.md" in run.codes()["property_ignored"]


@judges("fm-lone-rule-at-the-top-is-body")
def _(run: Run) -> None:
    found = set(run.step("recall").paths)
    assert {"Notes/rule.md", "Notes/late.md"} <= found
    named = {path for paths in run.codes().values() for path in paths}
    assert "Notes/two-rules.md" in found | named


# -- links --------------------------------------------------------------------------------------------


@judges("link-brackets-in-code-are-not-links")
def _(run: Run) -> None:
    rows = run.step("graph").result.outgoing
    assert [row["target_path"] for row in rows] == ["Notes/Target.md"] * 2
    assert [row["line"] for row in rows] == [10, 14]


@judges("link-escaped-pipe-in-a-table")
def _(run: Run) -> None:
    rows = run.step("graph").result.outgoing
    assert [row["target_path"] for row in rows] == ["Notes/parts/Gear.md"] * 3
    assert [row["display"] for row in rows[:2]] == ["the gear", "teeth"]
    assert rows[1]["embed"] and rows[1]["subpath"] == "#Teeth" and not rows[1]["subpath_missing"]


@judges("link-better-target-appears-later")
def _(run: Run) -> None:
    assert states(run, 0) == [("resolved", "Notes/far/away/Beacon.md"), ("dangling", None)]
    # `Notes/Beacon.md` is not at the root: of two files below no folder of the source the shorter path wins
    assert states(run, 1) == [("resolved", "Notes/Beacon.md"), ("resolved", "Notes/area/Lamp.md")]
    assert states(run, 2) == [("resolved", "Notes/far/away/Beacon.md"), ("resolved", "Notes/area/Lamp.md")]


@judges("link-outside-rename-is-a-rename")
def _(run: Run) -> None:
    assert run.step("reconcile", 1).result.moved == 1
    assert run.text("Notes/Uses.md") == "# Uses\nSee [[Alpha]].\n" and not run.place("Notes/Alpha.md").exists()
    assert run.codes()["link_dangling"] == {"Notes/Uses.md"}


@judges("link-embed-cycle-ends")
def _(run: Run) -> None:
    assert run.step("recall").paths == ["Notes/B.md"]
    with run.memory() as memory:
        assert len(memory.graph().nodes) == 3


HOOKS["link-embed-cycle-ends"] = lambda run, number: run.world.cli(
    "graph", "export", "--to", "json", "-o", str(run.world.folder / "g.json")
)
HOOKS["fm-one-odd-tag-must-not-stop-the-run"] = lambda run, number: None


# -- writing, concurrency, retention ------------------------------------------------------------------

CLOCK = "2026-11-30T12:00:00Z"


@hook("rec-database-replaced-notes-come-back")
def _(run: Run, number: int) -> Any:
    for path in run.world.home.glob("index-v*"):
        path.unlink()


@judges("rec-database-replaced-notes-come-back")
def _(run: Run) -> None:
    assert len(run.step("recall", 0).paths) == 2  # the note and the global topic: agent memory is the agent's
    found = run.world.cli("list", "--all", "--format", "json").json["hits"]
    assert {(hit["scope"], hit["scope_id"]) for hit in found} == {
        ("project", "p"),
        ("global", None),
        ("agent", "reviewer"),
    }


@judges("wr-same-fact-three-times")
def _(run: Run) -> None:
    stores = [step.result for step in run.all("store")]
    assert [result.action for result in stores] == ["created", "unchanged", "unchanged", "updated"]
    assert {result.key for result in stores} == {"pool"}
    assert [text[-11:] for text in sections(run, "Agent/pool.md")] == ["tements off", "ON since v2"]
    assert run.step("recall").paths == ["Agent/pool.md"]


@judges("wr-append-lands-where-it-belongs")
def _(run: Run) -> None:
    for path, old in run.case["setup"]["files"].items():
        text = run.text(path)
        pieces = [line for line in old.split("\n") if line.strip()]
        at = 0
        for piece in pieces:
            at = text.index(piece, at) + len(piece)
        assert len(sections(run, path)) == 2, path
        assert len(parse_note(run.raw(path), path).frontmatter or {}) == 1  # our own block only
    assert not any(step.error for step in run.all("store"))
    # an open fence swallows nothing: the section is read, and the fence is still the person's
    assert "```\nnever closed\n" in run.text("Agent/open-fence.md")


@judges("exc-what-obsidian-hides-is-hidden")
def _(run: Run) -> None:
    found = set(run.step("recall").paths)
    assert "Notes/ok.md" in found
    hidden = ("Archive/", "Private/", "Draw/", ".trash/")
    assert not [path for path in found if path.startswith(hidden)]
    assert {state for state, _ in states(run)} <= {"dangling", "excluded"}
    assert "diary.md" not in json.dumps(run.step("graph").result.outgoing)
    assert run.step("status").result["vaults"][0]["excluded"] == {"exclude": 2, "excluded_by_obsidian": 1}


STORER = """
import sys
from vaultmem.memory import open_memory
from vaultmem.memories.store import StoreRequest
from vaultmem.access.scopes import CallContext
home, number = sys.argv[1], sys.argv[2]
for turn in range(25):
    with open_memory(home, context=CallContext(project="p")) as memory:
        memory.store(StoreRequest(f"entry {number}-{turn:02}", "daily", "project", "p"))
"""


@hook("con-appends-to-one-topic")
def _(run: Run, number: int) -> Any:
    import subprocess
    import sys

    processes = [
        subprocess.Popen([sys.executable, "-c", STORER, str(run.world.home), str(one)], stderr=subprocess.PIPE)
        for one in range(8)
    ]
    return [process.communicate(timeout=240)[1].decode() for process in processes]


@judges("con-appends-to-one-topic")
def _(run: Run) -> None:
    assert run.step("check").result == [""] * 8
    found = sections(run, "Agent/daily.md")
    assert sorted(found) == sorted(f"entry {one}-{turn:02}" for one in range(8) for turn in range(25))
    for one in range(8):
        own = [text for text in found if text.startswith(f"entry {one}-")]
        assert own == sorted(own)


@hook("con-editor-saves-between-read-and-write")
def _(run: Run, number: int) -> Any:
    import vaultmem.memories.writer as write

    real = write.publish
    human = "# rules\n\nRule one, as the human wrote it anew.\n"
    saved: list[bool] = []

    def publish(*arguments: Any, **named: Any) -> str:
        temp = real(*arguments, **named)
        if not saved:
            saved.append(True)
            run.do_replace(f"Agent/rules.md: {json.dumps(human)}")
        return temp

    if number == 0:
        run.monkeypatch.setattr(write, "publish", publish)
        return run.do_store('{key: rules, scope: project, content: "from the agent"}')
    return run.monkeypatch.undo()


@judges("con-editor-saves-between-read-and-write")
def _(run: Run) -> None:
    run.do_store('{key: rules, scope: project, content: "from the agent again"}')
    text = run.text("Agent/rules.md")
    assert "as the human wrote it anew" in text and "\nRule one.\n" not in text


@hook("con-locked-database-does-not-lose-the-note")
def _(run: Run, number: int) -> Any:
    import sqlite3
    import threading

    run.do_reconcile("")
    db = sqlite3.connect(next(run.world.home.glob("index-v*.db")), isolation_level=None, check_same_thread=False)
    db.execute("BEGIN IMMEDIATE")
    if number == 0:
        threading.Timer(3.0, lambda: (db.execute("ROLLBACK"), db.close())).start()
        return None
    try:
        return run.do_store('{key: k2, scope: project, content: "copper is dear"}')
    except VaultmemError as error:
        return error
    finally:
        db.execute("ROLLBACK")
        db.close()


@judges("con-locked-database-does-not-lose-the-note")
def _(run: Run) -> None:
    from vaultmem.base.errors import MemoryPartialWriteError

    assert run.step("store").error is None and "Agent/k.md" in run.step("recall").paths
    error = run.step("check", 1).result
    assert isinstance(error, MemoryPartialWriteError) and error.completed_phases == ("note",)
    assert run.world.cli(*error.repair_command.split()[1:]).code == 0
    assert sections(run, "Agent/k2.md") == ["copper is dear"]


@hook("con-kill-during-apply")
def _(run: Run, number: int) -> Any:
    for one in range(500):
        run.put(f"Notes/n{one}.md", f"# n{one}\nbasalt {one}\n")


def kill_during_apply(run: Run, rest: str) -> None:
    import random

    from tests.sync.test_crash import kill_after

    source = random.Random(11)
    for turn in range(6):
        command = ("store", f"basalt {turn}", "--key", "t", "--scope-id", "p") if turn % 2 else ("reconcile",)
        kill_after(run.world, source.uniform(0.15, 1.2), *command)


Run.do_kill = kill_during_apply  # type: ignore[attr-defined]


@judges("con-kill-during-apply")
def _(run: Run) -> None:
    assert run.text("Agent/t.md").rstrip().startswith(("---", "# t")) and "# t\n\nbasalt\n" in run.text("Agent/t.md")
    run.do_store('{key: t, scope: project, content: "basalt at the end"}')
    assert not list(run.world.vault.rglob(".vaultmem-*"))
    assert len(run.step("recall").paths) == 100


@judges("con-one-bad-record-does-not-stop-all")
def _(run: Run) -> None:
    found = {hit.key: hit for hit in run.step("recall").result.hits}
    assert found["fine"].tags == ("a-b", "c") and any(hit.path == "Notes/good.md" for hit in found.values())
    assert run.codes()["topic_malformed"] == {"global/wiki/global/broken.md", "global/wiki/global/empty.md"}


@hook("ret-protected-types-survive-the-real-run")
def _(run: Run, number: int) -> Any:
    run.monkeypatch.setenv("VAULTMEM_NOW", CLOCK)
    run.world.configure('folder = "Notes"\nscope = "global"', managed="")
    with run.memory() as memory:
        return memory.retention()


@judges("ret-protected-types-survive-the-real-run")
def _(run: Run) -> None:
    assert [row["key"] for row in run.step("check").result["expired"]] == ["old-note"]
    assert run.step("cleanup").result["expired"] == run.step("check").result["expired"]
    assert {hit.key for hit in run.step("list").result.hits} == {"old-feedback", "old-user", "fresh-tail"}


@hook("ret-never-deletes-vault-notes")
def _(run: Run, number: int) -> Any:
    run.monkeypatch.setenv("VAULTMEM_NOW", CLOCK)
    for path in run.world.vault.rglob("*.md"):
        os.utime(path, (1_704_067_200, 1_704_067_200))


@judges("ret-never-deletes-vault-notes")
def _(run: Run) -> None:
    assert run.step("cleanup").result["expired"] == []
    for path, text in run.case["setup"]["files"].items():
        assert run.text(path) == text


@hook("ret-age-is-counted-in-utc")
def _(run: Run, number: int) -> Any:
    found = []
    for zone in ("Asia/Shanghai", "America/Los_Angeles", "Pacific/Kiritimati"):
        answer = run.world.cli("recall", "clock", "--sort", "recency", "--all", "--format", "json", TZ=zone)
        found.append([(hit["path"], hit["updated_at"], hit["created_at"]) for hit in answer.json["hits"]])
    return found


@judges("ret-age-is-counted-in-utc")
def _(run: Run) -> None:
    found = run.step("check").result
    assert found[0] == found[1] == found[2] and found[0]
    assert all(time.endswith("Z") for _, *times in found[0] for time in times)
    assert ("Notes/n.md", "2026-11-29T23:30:00Z") in {(path, created) for path, _, created in found[0]}
