"""Helpers of all tests: homes with vaults, the command line as a real process, Hypothesis profiles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from vaultmem.access.scopes import CallContext
from vaultmem.memory import Memory, open_memory

DATA = Path(__file__).parent / "data"
REPOSITORY = Path(__file__).parent.parent

settings.register_profile(
    "ci", max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
settings.register_profile("long", max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("VAULTMEM_TEST_PROFILE", "ci"))


@dataclass
class Result:
    """What a process printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run_cli(home: Path | str, *arguments: str, stdin: str | None = None, **environment: str) -> Result:
    """Run `vaultmem --home HOME …` as a real process."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("VAULTMEM_", "CAO_"))}
    done = subprocess.run(
        [sys.executable, "-m", "vaultmem", "--home", str(home), *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        input=stdin,
        check=False,
        timeout=120,
        env={**clean, "PYTHONIOENCODING": "utf-8", **environment},
        stdin=None if stdin is not None else subprocess.DEVNULL,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Result(done.returncode, done.stdout, done.stderr)


class World:
    """A home with one vault in a temporary folder; files are written as a person's editor would."""

    engine = ""
    """The search engine to configure; "" leaves it to vaultmem."""

    def __init__(self, folder: Path, engine: str = "") -> None:
        self.folder = folder
        self.engine = engine or self.engine
        self.vault = folder / "vault"
        self.home = folder / "home"
        self.vault.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(exist_ok=True)
        self.configure()

    def configure(self, *mappings: str, top: str = "", managed: str = "Agent Memory") -> None:
        """Write config.toml; each mapping is TOML lines. Default: the vault as global, managed folder writable."""
        if not mappings:
            mappings = (
                'folder = "."\nscope = "global"',
                f'folder = "{managed}"\nscope = "global"\nwritable = true\ninject = true',
                f'folder = "{managed}/projects"\nscope = "project"\nscope_id = "*"\nwritable = true',
            )
        search = f'[search]\nengine = "{self.engine}"\n' if self.engine else ""
        body = "\n".join(f"[[vault.mapping]]\n{mapping}" for mapping in mappings)
        (self.home / "config.toml").write_text(
            f'{search}[[vault]]\nid = "v"\nroot = "{self.vault}"\nmanaged_folder = "{managed}"\n{top}\n{body}\n',
            encoding="utf-8",
        )

    def write(self, path: str, text: str | bytes) -> Path:
        target = self.vault / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return target

    def read(self, path: str) -> str:
        return (self.vault / path).read_bytes().decode("utf-8")

    def open(self, **context: str) -> Memory:
        return open_memory(str(self.home), context=CallContext(**context) if context else None)

    def cli(self, *arguments: str, **named: Any) -> Result:
        return run_cli(self.home, *arguments, **named)

    def reconcile(self, **options: Any) -> Any:
        with self.open() as memory:
            return memory.reconcile(**options)

    def is_verified(self) -> list[str]:
        """Return the differences between the index and a fresh one ([] when it is right)."""
        with self.open() as memory:
            return memory.rebuild(verify=True).differences

    def recall(self, query: str, **options: Any) -> list[str]:
        """Return the paths of the hits."""
        from vaultmem.recall.recall import RecallRequest

        with self.open() as memory:
            return [hit.path for hit in memory.recall(RecallRequest(query, **options)).hits]

    def codes(self) -> dict[str, set[str]]:
        """Return the paths by finding code."""
        with self.open() as memory:
            found: dict[str, set[str]] = {}
            for row in memory.findings():
                found.setdefault(row.finding.code, set()).add(row.finding.path)
            return found


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An empty vault with the default mappings."""
    return World(tmp_path)


@pytest.fixture
def new_world(tmp_path: Path) -> Iterator[Callable[[], World]]:
    """A maker of worlds, for tests that need several."""
    count = 0

    def make() -> World:
        nonlocal count
        count += 1
        return World(tmp_path / str(count))

    yield make


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the machine reaches a test."""
    for name in list(os.environ):
        if name.startswith(("VAULTMEM_", "CAO_")) and name != "VAULTMEM_TEST_PROFILE":
            monkeypatch.delenv(name)
