"""Start-up as ratios: a command beside a one-command typer program, the MCP handshake beside a one-tool server.

    python bench/start.py

Real processes, taken in turns so that drift of the machine hits both; figures are medians.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ONE_COMMAND = """
import typer
app = typer.Typer()
@app.command()
def nothing() -> None: ...
app()
"""
ONE_TOOL = """
import asyncio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
async def tools(context, params):
    return types.ListToolsResult(tools=[types.Tool(name="x", description="x", input_schema={"type": "object"})])
async def call(context, params):
    return types.CallToolResult(content=[])
server = Server("one", on_list_tools=tools, on_call_tool=call)
async def main():
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
asyncio.run(main())
"""
REQUESTS: list[dict[str, object]] = [
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
]


def process_time(command: list[str]) -> float:
    """Return the seconds of a whole process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def handshake_time(command: list[str]) -> float:
    """Return the seconds from the start to the answer to initialize, tools/list included."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None and server.stdout is not None
        for request in REQUESTS:
            server.stdin.write(json.dumps({"jsonrpc": "2.0"} | request).encode() + b"\n")
        server.stdin.flush()
        while json.loads(server.stdout.readline()).get("id") != 2:
            pass
        took = time.perf_counter() - start
        server.stdin.close()
    return took


def ratio(measure: Callable[[list[str]], float], ours: list[str], floor: list[str], rounds: int) -> tuple[float, float]:
    """Return (median seconds of ours, median ratio to the floor)."""
    pairs = [(measure(ours), measure(floor)) for _ in range(rounds)]
    return statistics.median(own for own, _ in pairs), statistics.median(own / base for own, base in pairs)


def start_figures(rounds: int = 9) -> dict[str, float]:
    """Return the figures of start-up."""
    python = sys.executable
    with tempfile.TemporaryDirectory() as home:
        program, server = Path(home) / "one.py", Path(home) / "tool.py"
        program.write_text(ONE_COMMAND, encoding="utf-8")
        server.write_text(ONE_TOOL, encoding="utf-8")
        vaultmem = [python, "-m", "vaultmem", "--home", str(Path(home) / "home")]
        process_time([*vaultmem, "--version"])  # bytecode is there before anything is timed
        handshake_time([*vaultmem, "mcp"])
        start = ratio(process_time, [*vaultmem, "config", "path"], [python, str(program)], rounds)
        shake = ratio(handshake_time, [*vaultmem, "mcp"], [python, str(server)], rounds)
    return {
        "command_ms": 1000 * start[0],
        "command_ratio": start[1],
        "handshake_ms": 1000 * shake[0],
        "handshake_ratio": shake[1],
    }


if __name__ == "__main__":
    for name, value in start_figures().items():
        print(f"{name:16} {value:10.2f}")
