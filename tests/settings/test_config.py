"""Settings: single values, comments kept, nothing invalid is ever written; hostile paths."""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path

import pytest

from tests.conftest import World, run_cli
from vaultmem.base.errors import ConfigError
from vaultmem.settings.config import config_from_document, load_config


def test_get_and_set_keep_comments(world: World) -> None:
    path = world.home / "config.toml"
    path.write_text("# mine\n" + path.read_text(encoding="utf-8") + "# at the end\n", encoding="utf-8")
    before = path.read_text(encoding="utf-8")
    assert world.cli("config", "get", "vault.v.exclude").json == []
    assert world.cli("config", "set", "vault.v.exclude", '["Private/**"]').code == 0
    assert world.cli("config", "set", "memory.enabled", "false").code == 0
    assert world.cli("config", "set", "vault.v.mapping.0.inject", "true").code == 0
    after = path.read_text(encoding="utf-8")
    assert after.startswith("# mine\n") and "# at the end" in after
    assert all(line in after for line in before.splitlines())
    assert world.cli("config", "get", "vault.v.exclude").json == ["Private/**"]
    assert world.cli("config", "get", "memory.enabled").json is False
    assert world.cli("config", "get", "search.engine").json == "auto"
    assert world.cli("config", "get", "vault.v.max_notes").json == 200_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vault.v.max_notes", "0"),
        ("vault.v.root", "relative"),
        ("search.engine", "fts9"),
        ("memory.colour", "red"),
        ("vault.v.mapping.0.scope", "session"),
        ("vault.v.managed_folder", "../x"),
        ("vault.v.secret_gate", "maybe"),
    ],
)
def test_nothing_invalid_is_written(world: World, name: str, value: str) -> None:
    before = (world.home / "config.toml").read_bytes()
    found = world.cli("config", "set", name, value)
    assert found.code == 1 and name.split(".")[-1] in found.err
    assert (world.home / "config.toml").read_bytes() == before


@pytest.mark.parametrize("name", ["nothing", "vault.other.root", "vault.v", "vault.v.mapping.9.inject", "a..b"])
def test_unknown_places_are_usage_errors(world: World, name: str) -> None:
    assert world.cli("config", "set", name, "1").code == 2
    assert world.cli("config", "get", name).code == 2


def test_environment_overrides_the_file(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAO_MEMORY_ENABLED", "0")
    monkeypatch.setenv("CAO_PROJECT_ID", "theirs")
    config = load_config(str(world.home))
    assert (config.enabled, config.project_id) == (False, "theirs")
    monkeypatch.setenv("VAULTMEM_ENABLED", "yes")
    monkeypatch.setenv("VAULTMEM_PROJECT_ID", "ours")
    config = load_config(str(world.home))
    assert (config.enabled, config.project_id) == (True, "ours")


def test_several_vaults_and_nested_mappings(tmp_path: Path) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        (root / "Work/Secret").mkdir(parents=True)
        (root / "n.md").write_text(f"heron {root.name}\n", encoding="utf-8")
        (root / "Work/n.md").write_text("heron work\n", encoding="utf-8")
        (root / "Work/Secret/n.md").write_text("heron role\n", encoding="utf-8")
    home = tmp_path / "home"
    home.mkdir()
    text = "".join(
        f'[[vault]]\nid = "{root.name}"\nroot = "{root}"\n'
        '[[vault.mapping]]\nfolder = "."\nscope = "global"\n'
        '[[vault.mapping]]\nfolder = "Work"\nscope = "project"\nscope_id = "w"\n'
        '[[vault.mapping]]\nfolder = "Work/Secret"\nscope = "agent"\nscope_id = "reviewer"\n'
        for root in roots
    )
    (home / "config.toml").write_text(text, encoding="utf-8")
    found = run_cli(home, "list", "--all", "--format", "json").json["hits"]
    assert len({(hit["scope"], hit["scope_id"], hit["key"]) for hit in found}) == 6
    assert {(hit["vault"], hit["path"], hit["scope"]) for hit in found} == {
        (root.name, path, scope)
        for root in roots
        for path, scope in (("n.md", "global"), ("Work/n.md", "project"), ("Work/Secret/n.md", "agent"))
    }
    assert run_cli(home, "rebuild", "--verify").code == 0


def test_a_root_through_a_link_and_one_below_another(tmp_path: Path) -> None:
    real = tmp_path / "real vault ä"
    (real / "sub").mkdir(parents=True)
    (real / "a.md").write_text("heron\n", encoding="utf-8")
    (tmp_path / "link").symlink_to(real)
    found = run_cli(tmp_path / "home", "init", str(tmp_path / "link"))
    assert found.code == 0 and str(real) in (tmp_path / "home/config.toml").read_text(encoding="utf-8")
    again = run_cli(tmp_path / "home", "init", str(real / "sub"))
    assert again.code == 1 and "overlaps" in again.err


def test_an_empty_vault_and_the_wrong_places(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    assert "0 notes searchable" in run_cli(tmp_path / "home", "init", str(tmp_path / "vault")).out
    for place in ("/", os.path.expanduser("~"), str(tmp_path)):
        found = run_cli(tmp_path / "home2" if place != str(tmp_path) else tmp_path / "inner", "init", place)
        assert found.code in (1, 2) and found.err


PIECES = [
    "..",
    ".",
    "/",
    "\\",
    "\0",
    "~",
    "%2e%2e",
    "a",
    "ä",
    " ",
    "\n",
    "C:",
    "*",
    "Agent Memory",
    "?",
    "\u202e",
    "//",
    "x" * 300,
]


def test_hostile_paths_never_leave_the_roots(world: World, tmp_path: Path) -> None:
    canary = world.folder / "outside.md"
    canary.write_text("canary", encoding="utf-8")
    world.write("a.md", "heron\n")
    generator = random.Random(5)
    rounds = 10_000 if os.environ.get("VAULTMEM_TEST_PROFILE") == "long" else 2_000
    from vaultmem.access.filters import NoteFilter
    from vaultmem.base.errors import VaultmemError
    from vaultmem.base.files import open_root, read_file
    from vaultmem.memories.store import StoreRequest
    from vaultmem.settings.rules import SCOPE_ID
    from vaultmem.sync.reconcile import Reconciler

    with world.open() as memory:
        fd = open_root(str(world.vault))
        for round_ in range(rounds):
            text = "".join(generator.choice(PIECES) for _ in range(generator.randint(1, 6)))
            try:
                found = read_file(fd, text, 10_000)
                assert found is None or found.data != b"canary"
            except (VaultmemError, OSError, ValueError):
                pass
            if round_ % 40 == 0:
                for action in (
                    lambda t=text: memory.show(t, NoteFilter(), sweep=False),
                    lambda t=text: memory.store(StoreRequest("x", t, "global")),
                    lambda t=text: memory.store(StoreRequest("x", "k", "project", t)),
                    lambda t=text: memory.reconcile(only={"v": [t]}),
                ):
                    with contextlib.suppress(VaultmemError):
                        action()
            with_rule = {
                "vault": [{"id": "v", "root": str(world.vault), "mapping": [{"folder": text, "scope": "global"}]}]
            }
            try:
                config = config_from_document(with_rule, str(world.home))
                folder = config.vaults[0].mappings[0].folder
                assert ".." not in folder.split("/") and not folder.startswith("/")
            except ConfigError:
                pass
            assert SCOPE_ID.match(text) is None or "/" not in text
        os.close(fd)
        assert isinstance(memory._session.reconciler, Reconciler)
    assert canary.read_text(encoding="utf-8") == "canary"
    outside = {path for path in world.folder.iterdir() if path.name not in ("vault", "home", "outside.md")}
    assert outside == set()
    written = {path.relative_to(world.vault).parts[0] for path in world.vault.iterdir()}
    assert written <= {"a.md", "Agent Memory"}
