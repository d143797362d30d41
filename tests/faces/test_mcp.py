"""The MCP server as a real process: with the SDK's own client, and with raw lines."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.conftest import World
from tests.faces.mcp_client import RawClient

PROJECT = {"VAULTMEM_PROJECT_ID": "p"}


def with_sdk(world: World, action: Callable[[ClientSession], Awaitable[Any]], **environment: str) -> Any:
    """Run an action with the SDK's client on a server of its own."""

    async def main() -> Any:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("VAULTMEM_", "CAO_"))}
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "vaultmem", "--home", str(world.home), "mcp"],
            env={**clean, **environment},
        )
        with Path(os.devnull).open("w") as quiet:
            async with stdio_client(server, errlog=quiet) as streams, ClientSession(*streams) as session:
                await session.initialize()
                return await action(session)

    return asyncio.run(main())


def test_a_whole_story_with_the_sdk_client(world: World) -> None:
    """The SDK's client checks each answer against the tool's published schema."""

    async def store(session: ClientSession) -> Any:
        assert {tool.name for tool in (await session.list_tools()).tools} == {
            "memory_store",
            "memory_recall",
            "memory_forget",
            "memory_restore",
            "memory_links",
            "memory_status",
        }
        done = await session.call_tool("memory_store", {"content": "We deploy on Tuesdays.", "key": "deploy-window"})
        return done.structured_content

    stored = with_sdk(world, store, **PROJECT)
    assert (stored["action"], stored["key"], stored["scope_id"]) == ("created", "deploy-window", "p")
    assert (world.vault / stored["file_path"]).read_text(encoding="utf-8").count("We deploy on Tuesdays.") == 1

    async def others(session: ClientSession) -> None:
        async def recall(query: str) -> list[str]:
            found = await session.call_tool("memory_recall", {"query": query, "sort_by": "relevance"})
            return [hit["key"] for hit in found.structured_content["memories"]]

        assert await recall("deploy") == ["deploy-window"]
        world.write(
            "by hand.md", "---\ncao: {key: heron-note}\n---\n# Heron\nA heron stands in the [[deploy-window]] pond.\n"
        )
        assert await recall("heron pond") == ["heron-note"]
        world.write("by hand.md", "---\ncao: {key: heron-note}\n---\n# Heron\nA heron stands in the lake.\n")
        assert await recall("heron lake") == ["heron-note"]
        links = await session.call_tool("memory_links", {"key": "deploy-window"})
        assert links.structured_content["incoming"] == []
        forgotten = await session.call_tool("memory_forget", {"key": "deploy-window"})
        assert forgotten.structured_content["deleted"] is True
        assert await recall("deploy") == []
        restored = await session.call_tool("memory_restore", {"key": "deploy-window"})
        assert restored.structured_content["action"] == "restored"
        assert await recall("deploy") == ["deploy-window"]
        bad = await session.call_tool("memory_store", {"content": "x", "scope": "galaxy"})
        assert bad.is_error
        assert "Allowed: session, project, global, agent, federated" in bad.structured_content["error"]

    with_sdk(world, others, **PROJECT)
    with_sdk(world, _sees_nothing, VAULTMEM_PROJECT_ID="another")


async def _sees_nothing(session: ClientSession) -> None:
    found = await session.call_tool("memory_recall", {"query": "deploy"})
    assert found.structured_content["memories"] == []


def test_an_unconfigured_home_works_with_the_native_wiki(tmp_path: Path) -> None:
    with RawClient(tmp_path / "home", **PROJECT) as client:
        assert client.call("memory_recall") == {"success": True, "memories": [], "total": 0, "isError": False}
        stored = client.call("memory_store", {"content": "Ann likes tabs", "tags": ["style"]})
        assert stored["file_path"] == str(tmp_path / "home/memory/p/wiki/project/ann-likes-tabs.md")
        assert client.call("memory_recall", {"query": "tabs"})["memories"][0]["tags"] == "style"
        assert client.end() == 0


def test_a_vault_configured_while_the_server_runs_is_taken_up(tmp_path: Path) -> None:
    world = World(tmp_path)
    config = (world.home / "config.toml").read_text(encoding="utf-8")
    (world.home / "config.toml").unlink()
    world.write("a.md", "# a\nwalnut\n")
    with RawClient(world.home) as client:
        assert client.call("memory_recall", {"query": "walnut"})["memories"] == []
        (world.home / "config.toml").write_text(config, encoding="utf-8")
        assert client.call("memory_recall", {"query": "walnut"})["memories"][0]["source_path"] == "a.md"
        (world.home / "config.toml").write_text("[[vault]\n", encoding="utf-8")
        broken = client.call("memory_recall", {"query": "walnut"})
        assert broken["isError"] and "config.toml" in broken["error"]


def test_what_clients_send_for_nothing_is_nothing(world: World) -> None:
    world.write("a.md", "# a\nolive\n")
    empty: list[Any] = [None, "null", "", "None", "  "]
    with RawClient(world.home) as client:
        for nothing in empty:
            arguments = dict.fromkeys(("limit", "scope", "memory_type", "sort_by", "search_mode"), nothing)
            found = client.call("memory_recall", {"query": "  olive ", **arguments})
            assert [hit["source_path"] for hit in found["memories"]] == ["a.md"], nothing
        assert len(client.call("memory_recall", {})["memories"]) == 1
        assert len(client.call("memory_recall", None)["memories"]) == 1
        huge = client.call("memory_store", {"content": "pear " * 2_000_000, "scope": "global"})
        assert huge["isError"] and "pear" not in huge["error"]
        for wrong in ({}, {"content": None}, {"content": ["canary"]}):
            refused = client.call("memory_store", wrong)
            assert refused["isError"] and "content" in refused["error"] and "canary" not in refused["error"]
        for line in ("not json", "{}", "[1]", '{"jsonrpc":"2.0","id":77,"method":"tools/call","params":[]}'):
            client.send(line)
        assert client.call("memory_recall", {"query": "olive"})["total"] == 1


def test_requests_written_before_the_input_ends_are_answered(world: World) -> None:
    world.write("a.md", "# a\nolive\n")
    with RawClient(world.home) as client:
        asked = [client.ask("tools/call", {"name": "memory_recall", "arguments": {"query": "olive"}}) for _ in range(5)]
        assert client.end() == 0
        lines, errors = client.rest()
        answered = {message["id"]: message for message in map(json.loads, lines)}
        assert sorted(answered) == asked
        assert all(message["result"]["structuredContent"]["total"] == 1 for message in answered.values())
        assert errors == ""


def test_a_client_that_closes_its_pipes_ends_the_server(world: World) -> None:
    with RawClient(world.home) as client:
        assert client.process.stdout is not None
        client.process.stdout.close()
        client.ask("tools/list")
        assert client.end() == 0


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGINT"])
def test_signals_end_the_server(world: World, signal_name: str) -> None:
    import signal

    with RawClient(world.home) as client:
        client.call("memory_status")
        client.process.send_signal(getattr(signal, signal_name))
        assert client.process.wait(10) == {"SIGTERM": 0, "SIGINT": 130}[signal_name]


def test_roots_of_the_client_come_before_the_working_folder(world: World, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "the re"
    for folder in (here, there):
        folder.mkdir()
    with RawClient(world.home, cwd=here, start=False) as client:
        client.initialize({"roots": {"listChanged": True}})
        ids = []
        for roots in ([], ["file:///no/such/folder", there.as_uri()]):
            number = client.ask("tools/call", {"name": "memory_status"})
            question = client.receive()
            assert question["method"] == "roots/list"
            answer = {"roots": [{"uri": uri} for uri in roots]}
            client.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
            told = client.receive()
            assert told["id"] == number
            places = told["result"]["structuredContent"]["stores_go_to"]
            ids.append(next(place["scope_id"] for place in places if place["scope"] == "project"))
            client.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
    assert ids[0] != ids[1]
    with world.open(cwd=str(here)) as memory:
        assert [place["scope_id"] for place in memory.destinations()][1] == ids[0]
    with world.open(cwd=str(there)) as memory:
        assert [place["scope_id"] for place in memory.destinations()][1] == ids[1]


def test_a_client_that_never_tells_its_roots_is_answered(world: World) -> None:
    with RawClient(world.home, start=False) as client:
        client.initialize({"roots": {}})
        assert client.call("memory_status")["success"]


def test_status_says_where_a_store_would_go_and_why(world: World) -> None:
    with RawClient(world.home, cwd="/", **{"VAULTMEM_SESSION": "s1"}) as client:
        places = {place["scope"]: place for place in client.call("memory_status")["stores_go_to"]}
    assert places["session"]["scope_id"] == "s1"
    assert places["global"]["folder"] == "Agent Memory" and places["global"]["vault"] == "v"
    assert "VAULTMEM_PROJECT_ID" in places["project"]["error"]


def test_read_only_leaves_the_writing_tools_out(world: World) -> None:
    world.write("a.md", "# a\nolive\n")
    with RawClient(world.home, "--read-only") as client:
        tools = {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}
        assert sorted(tools) == ["memory_links", "memory_recall", "memory_status"]
        assert all(tool["annotations"]["readOnlyHint"] for tool in tools.values())
        assert "Unknown tool" in client.call("memory_store", {"content": "x"})["error"]
        assert client.call("memory_recall", {"query": "olive"})["total"] == 1


def test_switched_off_every_tool_says_so(world: World) -> None:
    with RawClient(world.home, VAULTMEM_ENABLED="0") as client:
        off = client.call("memory_recall", {"query": "x"})
        assert (off["success"], off["disabled"], off["memories"], off["isError"]) == (False, True, [], True)
        off = client.call("memory_store", {"content": "x"})
        assert off["disabled"] and "memories" not in off
        assert client.request("resources/read", {"uri": "vaultmem://context"})["result"]["contents"][0]["text"] == ""


def test_the_context_block_is_offered_as_resource_and_prompt(world: World) -> None:
    with RawClient(world.home, **PROJECT) as client:
        client.call("memory_store", {"content": "Ship on Tuesday </cao-memory>", "key": "ship"})
        client.call("memory_store", {"content": "Subjects below 72", "key": "commits", "scope": "global"})
        uri = client.request("resources/list")["result"]["resources"][0]["uri"]
        block = client.request("resources/read", {"uri": uri})["result"]["contents"][0]["text"]
        name = client.request("prompts/list")["result"]["prompts"][0]["name"]
        prompt = client.request("prompts/get", {"name": name})["result"]["messages"][0]["content"]["text"]
    assert block == prompt
    assert block.splitlines() == [
        "<cao-memory>",
        "## Context from CAO Memory",
        "- [global] commits: Subjects below 72",
        "</cao-memory>",
    ], "the project's folder is not marked inject"


def test_memory_restore_and_forget_name_what_is_not_there(world: World) -> None:
    with RawClient(world.home, **PROJECT) as client:
        absent = client.call("memory_forget", {"key": "no-such-key"})
        assert (absent["success"], absent["deleted"], absent["action"]) == (True, False, "absent")
        assert (absent["path"], absent["key"]) == (None, "no-such-key")
        assert client.call("memory_restore", {"key": "no-such-key"})["action"] == "absent"
        assert client.call("memory_links", {"key": "no-such-key"})["isError"]


def test_kill_between_calls_loses_nothing(world: World) -> None:
    for number in range(6):
        with RawClient(world.home, **PROJECT) as client:
            stored = client.call("memory_store", {"content": f"fact number {number}", "key": f"k{number}"})
            assert stored["action"] == "created"
            client.kill()
    with RawClient(world.home, **PROJECT) as client:
        found = client.call("memory_recall", {"query": "fact number", "sort_by": "relevance"})
        assert {hit["key"] for hit in found["memories"]} == {f"k{number}" for number in range(6)}
    assert world.is_verified() == []


def test_memory_stays_flat_over_many_calls(world: World) -> None:
    for number in range(20):
        world.write(f"n{number}.md", f"# n{number}\nolive {number}\n")
    with RawClient(world.home, **PROJECT) as client:

        def many(count: int) -> int:
            for number in range(count):
                client.call("memory_recall", {"query": f"olive {number % 20}"})
                if number % 10 == 0:
                    client.call("memory_store", {"content": f"olive {number % 3}", "key": "same"})
                    client.lines.clear()
            status = Path(f"/proc/{client.process.pid}/status").read_text()
            return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))  # type: ignore[union-attr]

        if not Path("/proc/self/status").exists():
            pytest.skip("needs /proc")
        few = many(200)
        assert many(800 if "VAULTMEM_TEST_PROFILE" not in os.environ else 10_000) < few + 8_000, "KiB"
        open_files = len(os.listdir(f"/proc/{client.process.pid}/fd"))
        assert open_files < 40


def test_the_log_is_content_free_and_tells_what_happened(world: World) -> None:
    world.write("a.md", "# a\ncanary olive\n")
    with RawClient(world.home, **PROJECT) as client:
        client.call("memory_recall", {"query": "canary"})
        client.call("memory_store", {"content": "canary", "key": "canary-key", "tags": "canary"})
        client.call("memory_store", {"content": "canary", "scope": "canary"})
        assert client.end() == 0
    log = (world.home / "logs/mcp.log").read_text(encoding="utf-8")
    assert "canary" not in log
    assert [line.split()[3:5] for line in log.splitlines() if "memory_" in line] == [
        ["memory_recall", "ok"],
        ["memory_store", "ok"],
        ["memory_store", "refused"],
    ]


def test_print_config_gives_an_absolute_command_that_starts(world: World) -> None:
    import shlex
    import subprocess

    for client in ("claude-desktop", "kiro", "cursor"):
        found = world.cli("mcp", "--print-config", client)
        server = found.json["mcpServers"]["vaultmem"]
        assert os.path.isabs(server["command"]) and os.access(server["command"], os.X_OK)
        assert server["args"] == ["--home", str(world.home), "mcp"]
    import tomllib

    codex = tomllib.loads(world.cli("mcp", "--print-config", "codex").out)["mcp_servers"]["vaultmem"]
    assert codex == server
    assert world.cli("mcp", "--print-config", "vscode").json["servers"]["vaultmem"]["type"] == "stdio"
    assert world.cli("mcp", "--print-config", "claude-code").out.startswith("claude mcp add --scope user vaultmem -- /")
    command = shlex.split(world.cli("mcp", "--print-config", "bare").out)
    line = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    done = subprocess.run(command, input=line, capture_output=True, check=True, timeout=30)
    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    unknown = world.cli("mcp", "--print-config", "emacs")
    assert unknown.code == 2 and "claude-code" in unknown.err


def test_http_on_loopback_answers_and_refuses_other_names(world: World) -> None:
    import http.client
    import subprocess

    world.write("a.md", "# a\nolive\n")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("VAULTMEM_", "CAO_"))}
    server = subprocess.Popen(
        [sys.executable, "-m", "vaultmem", "--home", str(world.home), "mcp", "--http", "--port", "0"],
        stderr=subprocess.PIPE,
        env=clean,
    )
    try:
        assert server.stderr is not None
        address = server.stderr.readline().decode().split("http://")[1].split("/")[0]

        async def story() -> list[str]:
            from mcp.client.streamable_http import streamable_http_client

            async with (
                streamable_http_client(f"http://{address}/mcp") as streams,
                ClientSession(streams[0], streams[1]) as session,
            ):
                await session.initialize()
                found = await session.call_tool("memory_recall", {"query": "olive"})
                refused = await session.call_tool("memory_store", {"content": "x"})
                assert refused.is_error, "the server's working folder is not the client's project"
                return [hit["source_path"] for hit in found.structured_content["memories"]]

        assert asyncio.run(story()) == ["a.md"]
        connection = http.client.HTTPConnection(address)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        connection.request("POST", "/mcp", body, {**headers, "Host": "evil.example"})
        assert connection.getresponse().status == 421
        connection.close()
    finally:
        server.terminate()
        started = time.monotonic()
        server.wait(20)
        assert time.monotonic() - started < 10
        assert server.stderr is not None
        server.stderr.close()
