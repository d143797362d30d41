"""Runs a fault case: its setup as real files, its steps through the public faces.

Format: tests/data/cases (fields as in the shared README). Steps in words (`check …`) are given to the
case's own hook; what a case expects is judged by its function in test_cases.py.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import World
from tests.faces.mcp_client import RawClient
from vaultmem.access.filters import NoteFilter
from vaultmem.access.scopes import CallContext
from vaultmem.base.errors import VaultmemError
from vaultmem.base.values import Binding
from vaultmem.memories.forget import ForgetRequest
from vaultmem.memories.store import StoreRequest
from vaultmem.memory import open_memory
from vaultmem.notes.wiki.topics import topic_path
from vaultmem.recall.recall import RecallRequest

PROJECT = "p"


@dataclass
class Step:
    """A step that was run: its words and what came out (an error is a value here)."""

    text: str
    result: Any = None
    error: VaultmemError | None = None

    @property
    def paths(self) -> list[str]:
        return [hit.path for hit in self.result.hits]


@dataclass
class Run:
    """A case in a world of its own."""

    case: dict[str, Any]
    world: World
    monkeypatch: pytest.MonkeyPatch
    steps: list[Step] = field(default_factory=list)
    at_end: list[Callable[[], None]] = field(default_factory=list)
    _server: RawClient | None = None

    def step(self, start: str, number: int = 0) -> Step:
        """Return the n-th step whose words begin so."""
        return [step for step in self.steps if step.text.startswith(start)][number]

    def all(self, start: str) -> list[Step]:
        return [step for step in self.steps if step.text.startswith(start)]

    # -- setup ----------------------------------------------------------------------------------

    def set_up(self) -> None:
        setup = self.case.get("setup", {})
        config = setup.get("config", {})
        for name, value in config.get("env", {}).items():
            self.monkeypatch.setenv(name, value)
        managed = config.get("managed", "Agent")
        mapped = {**config.get("map", {"Notes": "project"}), managed: config.get("map", {}).get(managed, "project")}
        blocks = []
        for folder, scope in mapped.items():
            lines = [f'folder = "{folder or "."}"', f'scope = "{scope}"']
            lines += [f'scope_id = "{PROJECT}"'] if scope != "global" else []
            lines += ["writable = true"] if folder == managed else []
            lines += ["inject = true"]
            blocks.append("\n".join(lines))
        exclude = ", ".join(f'"{pattern}"' for pattern in config.get("exclude", []))
        self.world.configure(*blocks, managed=managed, top=f"exclude = [{exclude}]")
        for folder in {*mapped, *()}:
            (self.world.vault / folder).mkdir(parents=True, exist_ok=True)
        for path, content in setup.get("files", {}).items():
            self.put(path, content)

    def place(self, path: str) -> Path:
        if path.startswith("@outside/"):
            return self.world.folder / "outside" / path.removeprefix("@outside/")
        if path.startswith("@wiki/"):
            parts = path.removeprefix("@wiki/").removesuffix(".md").split("/")
            binding = Binding(parts[0], parts[1] if len(parts) == 3 else None)
            return self.world.home / "memory" / topic_path(binding, parts[-1])
        return self.world.vault / path

    def put(self, path: str, content: Any) -> None:
        target = self.place(path)
        if path.endswith("/"):
            target.mkdir(parents=True, exist_ok=True)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            target.write_bytes(content.encode())
        elif "bytes_b64" in content:
            target.write_bytes(base64.b64decode(content["bytes_b64"]))
        elif "symlink" in content:
            target.symlink_to(content["symlink"])
        else:
            target.write_bytes((content["repeat"] * content["times"]).encode())

    # -- steps ----------------------------------------------------------------------------------

    def go(self, hook: Callable[[Run, int], Any] | None) -> None:
        """Run all steps; `hook` gets the number of each `check` step (from 0)."""
        checks = 0
        for text in self.case["do"]:
            step = Step(text)
            self.steps.append(step)
            verb, _, rest = text.partition(" ")
            if verb == "check":
                assert hook is not None, f"{self.case['id']} needs a hook for: {text}"
                step.result = hook(self, checks)
                checks += 1
                continue
            try:
                step.result = getattr(self, f"do_{verb.replace('-', '_')}")(rest)
            except VaultmemError as error:
                step.error = error

    def memory(self) -> Any:
        return open_memory(str(self.world.home), context=CallContext(project=PROJECT, agent=PROJECT))

    def do_reconcile(self, rest: str) -> Any:
        with self.memory() as memory:
            return memory.reconcile()

    def do_rebuild(self, rest: str) -> Any:
        with self.memory() as memory:
            return memory.rebuild()

    def do_recall(self, rest: str) -> Any:
        arguments = yaml.safe_load(rest)
        wanted = NoteFilter(scope=arguments.get("scope", ""), tags=tuple(arguments.get("tags", ())))
        with self.memory() as memory:
            return memory.recall(RecallRequest(arguments["query"], wanted, arguments.get("limit", 10)))

    def do_store(self, rest: str) -> Any:
        arguments = yaml.safe_load(rest)
        tags = tuple(arguments.get("tags", ()))
        scope = arguments["scope"]
        scope_id = PROJECT if scope == "project" else None
        request = StoreRequest(arguments["content"], arguments.get("key", ""), scope, scope_id, tags=tags)
        with self.memory() as memory:
            return memory.store(request)

    def do_forget(self, rest: str) -> Any:
        arguments = yaml.safe_load(rest)
        with self.memory() as memory:
            return memory.forget(ForgetRequest(arguments["key"], arguments.get("scope", "project")))

    def server(self, **environment: str) -> RawClient:
        """Return the case's MCP server, started with the first call; other environments get one of their own."""
        if self._server is None or environment:
            named = environment or {"VAULTMEM_PROJECT_ID": PROJECT, "VAULTMEM_AGENT": PROJECT}
            self.close()
            self._server = RawClient(self.world.home, **named)
        return self._server

    def close(self) -> None:
        while self.at_end:
            self.at_end.pop()()
        if self._server is not None:
            self._server.__exit__()
            self._server = None

    def do_cleanup(self, rest: str) -> Any:
        with self.memory() as memory:
            return memory.retention(apply=True)

    def do_list(self, rest: str) -> Any:
        with self.memory() as memory:
            return memory.list(NoteFilter(), 0)

    def do_graph(self, rest: str) -> Any:
        with self.memory() as memory:
            return memory.links(_words(rest)[0], NoteFilter())

    def do_status(self, rest: str) -> Any:
        with self.memory() as memory:
            return memory.status()

    def do_mcp(self, rest: str) -> Any:
        tool, _, arguments = rest.partition(" ")
        return self.server().call(tool, yaml.safe_load(arguments))

    def do_mcp_raw(self, rest: str) -> None:
        self.server().send(rest)

    def do_inject(self, rest: str) -> str:
        with self.memory() as memory:
            return str(memory.context_block())

    def do_write(self, rest: str) -> None:
        path, _, text = rest.partition(": ")
        self.put(_words(path)[0], yaml.safe_load(text))

    def do_append(self, rest: str) -> None:
        path, _, text = rest.partition(": ")
        with self.place(_words(path)[0]).open("a", encoding="utf-8") as file:
            file.write(yaml.safe_load(text))

    def do_replace(self, rest: str) -> None:
        path, _, text = rest.partition(": ")
        target = self.place(_words(path)[0])
        temp = target.with_name("editor.new")
        # words may follow the text
        scalar = next(event for event in yaml.parse(text) if isinstance(event, yaml.ScalarEvent))
        temp.write_text(scalar.value, encoding="utf-8")
        temp.replace(target)

    def do_delete(self, rest: str) -> None:
        self.place(_words(rest)[0]).unlink()

    def do_touch(self, rest: str) -> None:
        os.utime(self.place(rest), (2_000_000_000, 2_000_000_000))

    def do_rename(self, rest: str) -> None:
        old, new = (_words(part)[0] for part in rest.split(" -> "))
        self.place(new).parent.mkdir(parents=True, exist_ok=True)
        self.place(old).rename(self.place(new))

    # -- looking --------------------------------------------------------------------------------

    def codes(self) -> dict[str, set[str]]:
        return self.world.codes()

    def text(self, path: str) -> str:
        return self.place(path).read_bytes().decode()

    def raw(self, path: str) -> bytes:
        return self.place(path).read_bytes()


def _words(text: str) -> list[str]:
    """Return a path, quoted (with escapes) or bare."""
    text = text.strip()
    return [yaml.safe_load(text)] if text.startswith('"') else [text]
