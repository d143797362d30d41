"""A client that speaks raw JSON-RPC lines to a real `vaultmem mcp` process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROTOCOL = "2025-06-18"


class RawClient:
    """One server process; answers are matched by id, every line must be JSON-RPC."""

    def __init__(
        self, home: Path | str, *options: str, cwd: Path | str | None = None, start: bool = True, **environment: str
    ) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("VAULTMEM_", "CAO_"))}
        self.lines: list[dict[str, Any]] = []
        self._number = 0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "vaultmem", "--home", str(home), *options, "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={**clean, **environment},
        )
        if start:
            self.initialized = self.initialize()

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            self.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                stream.close()

    def send(self, message: dict[str, Any] | str) -> None:
        assert self.process.stdin is not None
        text = message if isinstance(message, str) else json.dumps(message)
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the server ended: {self.process.wait()}"
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0", line
        self.lines.append(message)
        return dict(message)

    def ask(self, method: str, params: Any = None, **more: Any) -> int:
        """Send a request and return its id."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, **more}
        self.send(message if params is None else {**message, "params": params})
        return self._number

    def request(self, method: str, params: Any = None) -> dict[str, Any]:
        """Send a request and return its answer, a result or an error."""
        number = self.ask(method, params)
        while True:
            message = self.receive()
            if message.get("id") == number and "method" not in message:
                return message

    def initialize(self, capabilities: dict[str, Any] | None = None) -> dict[str, Any]:
        """Do the handshake."""
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": PROTOCOL, "capabilities": capabilities or {}, "clientInfo": client}
        answer = self.request("initialize", params)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call(self, tool: str, arguments: Any = None) -> dict[str, Any]:
        """Call a tool; return its structured answer with `isError` beside."""
        params = {"name": tool} if arguments is None else {"name": tool, "arguments": arguments}
        answer = self.request("tools/call", params)
        if "error" in answer:
            return {"success": False, "error": answer["error"]["message"], "isError": None}
        result = answer["result"]
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return {**result["structuredContent"], "isError": result["isError"]}

    def end(self, timeout: float = 20) -> int:
        """Close the server's input and return its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(timeout)

    def rest(self) -> tuple[list[str], str]:
        """Return the lines left on standard output, and all of standard error, after the end."""
        assert self.process.stdout is not None and self.process.stderr is not None
        return self.process.stdout.read().decode().splitlines(), self.process.stderr.read().decode()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
