"""Fault cases that need the MCP server or the context block."""

from __future__ import annotations

import json
import re
import threading
import time
from pathlib import Path
from typing import Any

import yaml

from tests.cases.registry import hook, judges
from tests.cases.runner import PROJECT, Run
from tests.faces.mcp_client import RawClient

AGENT = {"VAULTMEM_PROJECT_ID": PROJECT, "VAULTMEM_AGENT": PROJECT}


def tools_of(run: Run) -> dict[str, Any]:
    return {tool["name"]: tool for tool in run.server().request("tools/list")["result"]["tools"]}


# -- kind mcp ---------------------------------------------------------------------------------------


@hook("mcp-stdout-is-protocol")
def _(run: Run, number: int) -> Any:
    with RawClient(run.world.home, **AGENT, PYTHONWARNINGS="default", VAULTMEM_DEBUG="1") as client:
        for name in [tool["name"] for tool in client.request("tools/list")["result"]["tools"]]:
            client.call(name, {"content": "c", "key": "k", "query": "bronze"})
            client.call(name, {"content": "c", "key": "k", "scope": "galaxy", "limit": 0})
        started = time.monotonic()
        code = client.end()
        took = time.monotonic() - started
        return code, took, client.rest()


@judges("mcp-stdout-is-protocol")
def _(run: Run) -> None:
    code, took, (lines, errors) = run.step("check").result  # RawClient has parsed every line before
    assert (code, lines) == (0, []) and took < 2, "a second, and what a busy machine adds"
    assert "Traceback" not in errors


@judges("mcp-null-and-text-for-optional-numbers")
def _(run: Run) -> None:
    answers = [step.result for step in run.all("mcp")]
    for answer in (*answers[:3], answers[7]):
        assert [row["source_path"] for row in answer["memories"]] == ["Notes/a.md"]
    allowed = "Allowed: a whole number from 1 to 100"
    assert [answer["error"] for answer in answers[3:6]] == [
        f"limit is 0. {allowed}",
        f"limit is -3. {allowed}",
        f'limit is "many". {allowed}',
    ]
    assert answers[6]["error"].startswith('scope is "galaxy". Allowed: session, ')
    assert answers[7]["warnings"] == ["unknown argument ignored: unknown_option"]
    limit = tools_of(run)["memory_recall"]["inputSchema"]["properties"]["limit"]
    assert set(limit["type"]) == {"integer", "string", "null"} and (limit["minimum"], limit["maximum"]) == (1, 100)


@hook("mcp-start-answers-before-the-index-is-built")
def _(run: Run, number: int) -> Any:
    if number == 0:
        run.world.configure('folder = "Notes"\nscope = "global"', managed="")
        for one in range(20_000):
            folder = run.world.vault / f"Notes/f{one // 500}"
            folder.mkdir(exist_ok=True)
            (folder / f"n{one}.md").write_text(f"# note {one}\nspruce {one} [[n{one // 2}]]\n", encoding="utf-8")
        return None
    started = time.monotonic()
    names = tools_of(run)
    return names, time.monotonic() - started


@judges("mcp-start-answers-before-the-index-is-built")
def _(run: Run) -> None:
    names, took = run.step("check", 1).result
    assert len(names) == 6 and took < 10, "the SDK's own start, however big the vault is"
    answer = run.step("mcp").result
    if not answer["success"]:
        assert re.search(r"being built \((reading|indexing) \d+ of 200\d\d notes\)", answer["error"]), answer
    until = time.monotonic() + 120
    while not answer["success"] and time.monotonic() < until:
        assert "stores_go_to" in run.server().call("memory_status")
        answer = run.server().call("memory_recall", {"query": "maple"})
    assert [row["source_path"] for row in answer["memories"]] == ["Notes/a.md"]


@judges("mcp-list-argument-as-text")
def _(run: Run) -> None:
    wanted = {"svelte": ["svelte", "web-development"], "ops": ["ops", "release-train", "deploy"], "arr": ["one", "two"]}
    for key, tags in wanted.items():
        front = yaml.safe_load(run.text(f"Agent/{key}.md").split("---")[1])
        assert front["tags"] == tags
    assert run.step("recall").paths == ["Agent/svelte.md"] and run.step("recall", 1).paths == ["Agent/ops.md"]


@judges("mcp-forget-tells-the-truth")
def _(run: Run) -> None:
    done = [step.result or step.error for step in run.all("forget")]
    assert [getattr(one, "action", None) for one in done[:3]] == ["deindexed", "absent", "absent"]
    human = run.server().call("memory_forget", {"key": "human"})
    assert human["action"] in ("deindexed", "absent") and run.text("Notes/human.md") == "# human\ncedar\n"
    found = run.server().call("memory_recall", {"query": "cedar"})["memories"]
    assert "Agent/tmp.md" not in [row["source_path"] for row in found]


# -- security ---------------------------------------------------------------------------------------


@hook("sec-dots-in-tool-arguments")
def _(run: Run, number: int) -> Any:
    outside = run.place("@outside/secret.md")
    bad = [
        "../../outside/secret",
        "..%2F..%2Foutside%2Fsecret",
        "a/../../b",
        str(outside),
        "..\\..\\outside",
        "nul\0byte",
    ]
    answers: list[Any] = []
    for value in bad:
        for tool in ("memory_forget", "memory_restore", "memory_links"):
            answers.append(run.server().call(tool, {"key": value, "content": "x"}))
        answers.append(run.server().call("memory_recall", {"query": value, "scope": value}))
        if "\0" in value:
            continue  # no command line can carry it
        for command in (
            ("show", value),
            ("links", value),
            ("reconcile", value),
            ("recall", "x", "--path", value),
            ("recall", "x", "--scope", "agent", "--scope-id", value),
            ("store", "x", "--scope", "agent", "--scope-id", value),
            ("delete", value, "--yes"),
            ("restore", value),
        ):
            done = run.world.cli(*command, **AGENT)
            answers.append((done.code, done.out, done.err))
    return answers


@judges("sec-dots-in-tool-arguments")
def _(run: Run) -> None:
    assert run.text("@outside/secret.md") == "# secret\ncanary-7731\n"
    everything = json.dumps([step.result for step in run.steps], default=str)
    assert "canary-7731" not in everything
    for path in run.world.home.rglob("*"):
        if path.is_file():
            assert b"canary-7731" not in path.read_bytes(), path
    managed, wiki = run.world.vault / "Agent", run.world.home
    for path in run.world.folder.rglob("*"):
        known = path.name in ("a.md", "secret.md") and path.parent.name in ("Notes", "outside")
        assert path.is_dir() or known or managed in path.parents or wiki in path.parents, path
    for step in run.all("mcp"):
        answer = step.result
        assert answer["success"] or "key" in answer["error"] or "scope" in answer["error"]
        if answer["success"]:
            assert re.fullmatch(r"[a-z0-9-]+", answer["key"])


@hook("sec-note-text-stays-out-of-logs")
def _(run: Run, number: int) -> Any:
    run.monkeypatch.setenv("VAULTMEM_DEBUG", "1")
    run.server(**AGENT, VAULTMEM_DEBUG="1", PYTHONWARNINGS="default", PYTHONASYNCIODEBUG="1")


@judges("sec-note-text-stays-out-of-logs")
def _(run: Run) -> None:
    refused = run.step("store", 1).error
    assert refused is not None and "AWS" in str(refused).upper() and "canary" not in str(refused)
    answer = run.server().receive()
    assert answer["id"] == 9 and answer["result"]["isError"]
    secret = run.server().call("memory_store", {"scope": "federated", "content": "AKIAFAKEFAKEFAKE0000 canary-9006"})
    client = run.server()
    assert client.end() == 0
    told = [client.rest()[1], json.dumps(answer), secret["error"], str(refused)]
    told += [run.world.cli(*command, **AGENT).err for command in (("reconcile", "--full"), ("doctor",), ("findings",))]
    told += [run.world.cli("findings", "--format", "json").out]
    with run.memory() as memory:
        told += [str(row) for row in memory._session.state._db.execute("SELECT * FROM audit")]
    told += [path.read_text(encoding="utf-8") for path in (run.world.home / "logs").iterdir()]
    for text in told:
        assert "canary-900" not in text and "AKIA" not in text


@judges("sec-memory-can-not-close-its-own-block")
def _(run: Run) -> None:
    run.put("Notes/plain.md", "# plain\n<b>bold</b> where a < b\n")
    block = run.do_inject("")
    lines = block.split("\n")
    assert (lines[0], lines[1], lines[-1]) == ("<cao-memory>", "## Context from CAO Memory", "</cao-memory>")
    assert len(re.findall(r"<\s*/?\s*cao-memory", block, re.IGNORECASE)) == 2
    entries = lines[2:-1]
    assert all(re.match(r"- \[project\] [a-z0-9-]+: ", line) for line in entries) and len(entries) == 3
    assert any("<b>bold</b> where a < b" in line for line in entries)
    assert "canary-5555" in block, "the words stay, on one line that is an entry"


@hook("sec-no-fall-back-to-a-wider-scope")
def _(run: Run, number: int) -> Any:
    run.server(VAULTMEM_CWD=("/", "/tmp")[number])  # neither gives a project


@judges("sec-no-fall-back-to-a-wider-scope")
def _(run: Run) -> None:
    project, agent = (step.result["error"] for step in run.all("mcp")[:2])
    assert "VAULTMEM_PROJECT_ID" in project and "VAULTMEM_AGENT" in agent
    assert run.all("mcp")[2].result["memories"] == []
    assert not list(run.world.vault.rglob("*.md")) and not list(run.world.home.rglob("*.md"))


# -- concurrency and usage --------------------------------------------------------------------------


@hook("con-two-servers-one-vault")
def _(run: Run, number: int) -> Any:
    if number == 0:
        return None
    answers: list[list[dict[str, Any]]] = [[], []]

    def store(who: int) -> None:
        with RawClient(run.world.home, **AGENT) as client:
            for turn in range(20):
                for key in (f"k-{who}-{turn}", "log"):
                    content = f"entry {who}-{turn:02} of {key}"
                    answers[who].append(client.call("memory_store", {"key": key, "content": content}))

    threads = [threading.Thread(target=store, args=(who,)) for who in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@judges("con-two-servers-one-vault")
def _(run: Run) -> None:
    answers = run.step("check", 1).result
    assert all(answer["success"] for who in answers for answer in who), answers
    for who in range(2):
        for turn in range(20):
            assert f"entry {who}-{turn:02} of k-{who}-{turn}\n" in run.text(f"Agent/k-{who}-{turn}.md")
    log = run.text("Agent/log.md")
    assert len(re.findall(r"^entry \d-\d\d of log$", log, re.MULTILINE)) == 40
    assert len([hit for hit in run.step("list").result.hits if hit.path.startswith("Agent/")]) == 41


@hook("use-agent-recalls-count-like-human-ones")
def _(run: Run, number: int) -> Any:
    def count() -> int:
        with run.memory() as memory:
            return int(memory._session.state._db.execute("SELECT sum(access_count) FROM counter").fetchone()[0])

    if number == 1:
        state = run.world.home / "state.db"
        run.close()
        for path in run.world.home.glob("state.db*"):
            path.chmod(0o444)
        found = run.world.cli("recall", "walnut", "--all", "--format", "json")
        for path in run.world.home.glob("state.db*"):
            path.chmod(0o600)
        assert state.exists()
        return found
    counts = [count()]
    for path in run.world.home.glob("index-v*"):
        path.unlink()
    run.do_rebuild("")
    counts.append(count())
    run.put("Notes/a.md", "# a\nwalnut and more\n")
    run.do_reconcile("")
    counts.append(count())
    Path(run.world.vault, "Notes/a.md").rename(run.world.vault / "Notes/b.md")
    run.do_reconcile("")
    answer = run.world.cli("recall", "walnut", "--all", "--sort", "usage", "--format", "json").json
    assert [hit["path"] for hit in answer["hits"]] == ["Notes/b.md"]
    return [*counts, count() - 1]


@judges("use-agent-recalls-count-like-human-ones")
def _(run: Run) -> None:
    assert run.step("check").result == [3, 3, 3, 3]
    assert [hit["path"] for hit in run.step("check", 1).result.json["hits"]] == ["Notes/b.md"]
