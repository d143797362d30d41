"""Fault cases of the second round: times, locales, lies, saves in two steps, words of properties."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from typing import Any

from tests.cases.registry import hook, judges
from tests.cases.runner import Run
from tests.cases.watching import caught_up
from vaultmem.base.times import parse_time
from vaultmem.index.rows import full_text_columns, stream_columns


@hook("t2-time-mtime-beyond-2262")
def _(run: Run, number: int) -> Any:
    os.utime(run.place("Notes/future.md"), (15_032_131_200, 15_032_131_200))
    return run.do_reconcile("")


@judges("t2-time-mtime-beyond-2262")
def _(run: Run) -> None:
    assert run.all("recall")[0].paths == ["Notes/good.md"] and run.all("recall")[1].paths == ["Notes/future.md"]
    (hit,) = run.all("recall")[1].result.hits
    assert parse_time(hit.updated_at) is not None
    assert run.step("status").result["vaults"][0]["notes"] == 2
    for command in (("reconcile",), ("reconcile", "--full"), ("list", "--all"), ("doctor",), ("rebuild",)):
        assert run.world.cli(*command).code == 0, command
    assert run.do_reconcile("").changed == 0


@judges("t2-fm-json-escaped-emoji")
def _(run: Run) -> None:
    (hit,) = run.step("recall").result.hits
    assert (hit.title, hit.tags) == ("\U0001f408 cat", ("pets",))
    assert "frontmatter_malformed" not in run.codes()
    run.put("Notes/half.md", '---\ntitle: "\\uD83D half"\n---\nlone half\n')
    found = run.world.cli("recall", "lone", "--all", "--format", "json").json
    assert found["hits"][0]["title"] == "\ufffd half"


@hook("t2-md-math-opened-at-the-end-of-a-line")
def _(run: Run, number: int) -> Any:
    run.put("@outside/block.md", "$$\nE = mc^2\n$$\n\n[[after]] #after\n")
    return [
        run.world.cli("debug", "parse", str(run.place(path))).json for path in ("Notes/formula.md", "@outside/block.md")
    ]


@judges("t2-md-math-opened-at-the-end-of-a-line")
def _(run: Run) -> None:
    formula, block = run.step("check").result
    run.do_reconcile("")
    assert (formula["links"], formula["tags"]) == ([], [])
    assert [link["path"] for link in block["links"]] == ["after"] and block["tags"] == ["after"]


@hook("t2-recovery-index-text-differs-from-its-hash")
def _(run: Run, number: int) -> Any:
    if number:
        return run.world.cli("doctor"), run.world.cli("doctor", "--full"), run.world.cli("rebuild", "--verify")
    db = sqlite3.connect(next(run.world.home.glob("index-v*.db")))
    columns = "id, key, title, path, aliases, tags, headings, properties, body"
    note_id, key, *fields = db.execute(f"SELECT {columns} FROM note").fetchone()
    old = full_text_columns(stream_columns(*fields), key)
    new = full_text_columns(stream_columns(*fields[:-1], fields[-1].replace("4431", "9999")), key)
    marks = ", ".join("?" * len(old))
    names = "title, aliases, key, tags, headings, properties, body, prominent"
    db.execute(f"INSERT INTO fts(fts, rowid, {names}) VALUES ('delete', ?, {marks})", (note_id, *old))
    db.execute(f"INSERT INTO fts(rowid, {names}) VALUES (?, {marks})", (note_id, *new))
    db.execute("UPDATE note SET body = replace(body, '4431', '9999')")
    db.commit()
    db.close()
    return None


@judges("t2-recovery-index-text-differs-from-its-hash")
def _(run: Run) -> None:
    sample, full, verified = run.step("check", 1).result
    for doctor in (sample, full):
        assert doctor.code == 3 and "1 of" in doctor.out and "another text" in doctor.out
        assert "vaultmem rebuild" in doctor.out
    assert verified.code == 1 and "text differs: v:Notes/a.md" in verified.out + verified.err
    assert run.world.cli("rebuild").code == 0
    assert run.world.cli("doctor").code == 0
    assert "4431" in run.do_recall("{query: port}").hits[0].content


@judges("t2-search-words-of-property-values")
def _(run: Run) -> None:
    for step in run.all("recall")[:3]:
        assert step.paths == ["Notes/plan.md"], step.text
    assert run.all("recall")[3].paths == ["Notes/long.md", "Notes/plan.md"]
    assert run.do_recall('{query: "2026-05"}').hits[0].path == "Notes/plan.md"
    assert run.do_recall("{query: quimby}").hits[0].snippet == "owner: [[Zed Quimby]]"
    run.put("Notes/key.md", "---\npassword: hunter2hunter\nowner: zebulon\n---\nplain\n")
    assert run.do_recall("{query: zebulon}").hits == () and run.do_recall("{query: hunter2hunter}").hits == ()


@judges("t2-search-superseded-exact-hit-above-weak-ones")
def _(run: Run) -> None:
    # the case writes `type: superseded_by` and `target`; the contract knows supersedes with `to`, from the newer note
    assert run.codes()["cao_link_invalid"] == {"Notes/old.md"}
    run.put("Notes/old.md", "# Rotation of the staging gateway\n\nweekly rotation of the staging gateway\n")
    run.put("Notes/new.md", "---\ncao:\n  links:\n    - {type: supersedes, to: '[[old]]'}\n---\n# New\n\ndaily\n")
    hits = run.do_recall('{query: "rotation staging gateway"}').hits
    assert [hit.path for hit in hits] == ["Notes/old.md", "Notes/weak1.md", "Notes/weak2.md"]
    assert len(hits[0].superseded_by) == 1 and hits[0].superseded_by[0].startswith("new-")
    run.put("Notes/other.md", "# Other\n\ngateway\n\nof a staging area\n\nwithout much rotation\n")
    hits = run.do_recall('{query: "rotation staging gateway"}').hits
    assert [hit.path for hit in hits][:2] == ["Notes/other.md", "Notes/old.md"]


@judges("t2-path-spelled-as-on-disk")
def _(run: Run) -> None:
    spelled = "Notes/Cafe\u0301.md"
    run.put("Notes/link.md", "[[Caf\u00e9]] and [[Cafe\u0301#gone]]\n")
    (run.world.vault / "Notes/odd\u0301.md").symlink_to("elsewhere")
    told = [run.step("recall").paths, [hit.path for hit in run.step("list").result.hits]]
    told += [run.do_recall("{query: coffee, tags: []}").hits[0].path]
    for command in (
        ("recall", "coffee", "--all"),
        ("list", "--all"),
        ("show", "Notes/Caf\u00e9.md"),
        ("show", spelled),
        ("links", "Notes/link.md"),
        ("findings",),
        ("graph", "export", "--to", "json", "-o", str(run.world.folder / "graph.json")),
        ("reconcile", "--dry-run", "--full"),
        ("debug", "resolve", str(run.world.vault)),
        ("scan",),
        ("recall", "coffee", "--path", "Notes/Caf\u00e9.md", "--all"),
    ):
        for options in ((), ("--format", "json")):
            if options and command[0] in ("graph", "debug"):
                continue
            done = run.world.cli(*command, *options)
            assert done.code in (0, 3), (command, done.err)
            told.append(json.dumps(json.loads(done.out), ensure_ascii=False) if done.out[:1] == "{" else done.out)
    told.append((run.world.folder / "graph.json").read_text(encoding="utf-8"))
    for text in map(str, told):
        assert "Caf\u00e9.md" not in text and "odd\u0301.md" in text or "\u00e9.md" not in text, text
    assert any(spelled in str(text) for text in told)
    assert (run.world.vault / run.step("recall").paths[0]).read_text(encoding="utf-8") == "coffee\n"
    assert "Notes/odd\u0301.md" in run.codes()["symlink_refused"]


@judges("t2-env-ascii-locale")
def _(run: Run) -> None:
    found = run.world.cli("recall", "\u00fcber", "--all", "--format", "json")
    assert (found.code, [hit["path"] for hit in found.json["hits"]]) == (0, ["Notes/\u00fcber.md"])
    assert run.world.cli("list", "--all").out.count("Notes/\u00fcber.md") == 1
    assert run.world.cli("rebuild", "--verify").code == 0


@hook("t2-watch-save-by-renaming-away")
def _(run: Run, number: int) -> Any:
    note, away = run.place("Notes/a.md"), run.place("Notes/a.md.bak")
    caught_up(run)
    answers: list[list[str]] = []
    stop = threading.Event()

    def keep_asking() -> None:
        while not stop.is_set():
            answers.append([hit.path for hit in run.do_recall("{query: fact}").hits])

    asking = threading.Thread(target=keep_asking)
    asking.start()
    try:
        for turn in range(50):
            note.rename(away)
            time.sleep(0.03)  # what an editor takes
            note.write_text(f"# A\n\nfact number {turn}\n", encoding="utf-8")
            time.sleep(0.01)
    finally:
        stop.set()
        asking.join()
    caught_up(run)
    assert "49" in run.do_recall("{query: fact}").hits[0].content
    note.unlink()
    since = time.monotonic()
    while run.do_recall("{query: fact}").hits:
        assert time.monotonic() - since < 30
    return answers, time.monotonic() - since


@judges("t2-watch-save-by-renaming-away")
def _(run: Run) -> None:
    answers, gone_after = run.step("check").result
    assert len(answers) > 5, len(answers)
    assert all(found == ["Notes/a.md"] for found in answers), answers
    assert gone_after < 5, "a second, and what a busy machine adds"
    (deletion,) = [batch for batch in run.step("watch on").result.batches if batch.removed] or [None]
    assert deletion is None or deletion.removed == 1
