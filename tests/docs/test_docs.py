"""The documents are true: commands exist and are described, blocks run, generated pages are current."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, World, run_cli
from vaultmem.notes.findings import KINDS

DOCS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
SOURCES = sorted((REPOSITORY / "vaultmem").rglob("*.py"))


def command_paths() -> dict[tuple[str, ...], set[str]]:
    """Return every command with its options, read off the real command line."""
    import typer.main

    from vaultmem.faces.cli.app import app

    found: dict[tuple[str, ...], set[str]] = {}

    def walk(command: object, path: tuple[str, ...]) -> None:
        children = getattr(command, "commands", None)
        if children:
            for name, child in children.items():
                walk(child, (*path, name))
        else:
            found[path] = {option for parameter in command.params for option in parameter.opts}  # type: ignore[attr-defined]

    walk(typer.main.get_command(app), ())
    return found


COMMANDS = command_paths()
MENTION = re.compile(r"vaultmem ((?:[a-z]+)(?: (?:show|export|path|check|get|set|parse|resolve))?)((?: \[?--[a-z-]+)*)")


def mentioned(text: str) -> list[tuple[tuple[str, ...], str]]:
    found = []
    for match in MENTION.finditer(text):
        words = tuple(match.group(1).split())
        for length in (2, 1):
            if words[:length] in COMMANDS:
                found.append((words[:length], match.group(2)))
                break
        else:
            found.append((words, match.group(2)))
    return found


def in_code(text: str) -> str:
    return "\n".join(re.findall(r"`([^`\n]+)`", text) + re.findall(r"```\w*\n(.*?)```", text, re.DOTALL))


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_every_command_in_the_documents_exists(page: Path) -> None:
    for path, options in mentioned(in_code(page.read_text(encoding="utf-8"))):
        if path == ("graph",):
            continue
        assert path in COMMANDS, path
        for option in re.findall(r"--[a-z-]+", options):
            assert option in COMMANDS[path] | {"--home", "--read-only"}, (path, option)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_is_described(path: tuple[str, ...]) -> None:
    text = (REPOSITORY / "docs/commands.md").read_text(encoding="utf-8")
    assert f"vaultmem {' '.join(path)}" in text
    section = text
    for option in COMMANDS[path] - {"--help", "-h", "-o", "--output"}:
        if option.startswith("--"):
            assert option in section or option in text, option


def test_every_command_in_a_message_exists() -> None:
    for source in SOURCES:
        for text in re.findall(r'"(?:[^"\\\n]|\\.)*"', source.read_text(encoding="utf-8")):
            for path, options in mentioned(text):
                if "Run: vaultmem" in text or text.startswith('"vaultmem ') or "run: vaultmem" in text:
                    assert path in COMMANDS, (source.name, text)
                    for option in re.findall(r"--[a-z-]+", options):
                        assert option in COMMANDS[path], (source.name, text)


def test_every_next_step_of_a_finding_exists() -> None:
    for code, kind in KINDS.items():
        for path, options in mentioned(kind.next_step):
            assert path in COMMANDS, code
            assert all(option in COMMANDS[path] for option in re.findall(r"--[a-z-]+", options)), code


def test_the_findings_page_is_current() -> None:
    sys.path.insert(0, str(REPOSITORY / "docs"))
    try:
        from generate import findings_page
    finally:
        sys.path.pop(0)
    assert (REPOSITORY / "docs/findings.md").read_text(encoding="utf-8") == findings_page()


def test_ci_runs_what_the_readme_prints() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    blocks = [block.strip() for block in re.findall(r"```bash\n(.*?)```", readme, re.DOTALL)]
    assert (REPOSITORY / ".ci/run").read_text(encoding="utf-8").strip().splitlines()[-1] == blocks[1]
    assert "pip install vaultmem" not in readme


def test_the_quick_start_runs_as_it_stands(world: World) -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    block = re.findall(r"```bash\n(.*?)```", readme, re.DOTALL)[2]
    world.write("queue.md", "# queue\nWe decided to run NATS as the queue.\n")
    home = world.folder / "fresh"
    for line in block.strip().splitlines():
        words = shlex.split(line.replace("~/Notes", str(world.vault)))
        done = run_cli(home, *words[1:])
        assert done.code == 0, (line, done.err)
    assert (world.vault / "Agent Memory/deploy-window.md").exists()


def test_the_configuration_page_is_valid(tmp_path: Path) -> None:
    from vaultmem.settings.rules import check_document

    page = (REPOSITORY / "docs/configuration.md").read_text(encoding="utf-8")
    document = tomllib.loads(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0])
    checked = check_document(document, str(tmp_path / "h"), "/home/other")
    assert checked.problems == () and len(checked.vaults[0].mappings) == 3


def test_the_changelog_names_this_version() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"## [{project['version']}]" in (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "vaultmem", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"vaultmem {project['version']}"


def test_the_agents_page_shows_what_print_config_prints(tmp_path: Path) -> None:
    from vaultmem.faces.mcp.clients import CLIENTS

    page = (REPOSITORY / "docs/agents.md").read_text(encoding="utf-8")
    for client in CLIENTS:
        assert f"vaultmem mcp --print-config {client}" in page
        done = subprocess.run(
            [sys.executable, "-m", "vaultmem", "mcp", "--print-config", client],
            capture_output=True,
            text=True,
            check=True,
        )
        told = re.sub(r"(?<=[ \"])/\S+/vaultmem|^/\S+/vaultmem", "/path/to/vaultmem", done.stdout).strip()
        assert told in page, client


def test_the_benchmark_runs_as_documented(tmp_path: Path) -> None:
    """The command of docs/performance.md, with a small vault; figures are never judged here."""
    text = (REPOSITORY / "docs/performance.md").read_text(encoding="utf-8")
    command = re.findall(r"```bash\npython (bench/run.py) --notes [\d ]+\n```", text)
    assert command == ["bench/run.py"]
    figures = tmp_path / "results.json"
    small = ["--notes", "80", "--rounds", "1", "--saves", "3", "--idle", "0.2", "--json", str(figures)]
    done = subprocess.run(
        [sys.executable, *command, *small], cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(figures.read_text(encoding="utf-8"))["sizes"]["80"]
    assert found["recall@1"]["all"] > 0.9
    assert found["indexing"].keys() >= {"cold_ratio", "noop_ratio", "edit_ms", "moved_folder_s", "peak_rss_mb"}
    assert found["queries"]["common"]["p50_ms"] > 0
    assert "cold_ratio" in done.stdout


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_place_that_is_named_is_there(page: str) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    places = re.findall(r"`((?:[a-z_]+/)*[a-z_]+(?:\.py|/)|(?:tests|docs|bench)/[a-zA-Z_./]+)`", text)
    assert len(places) > 4
    for place in places:
        found = [base / place for base in (REPOSITORY, REPOSITORY / "vaultmem", REPOSITORY / "vaultmem/index")]
        found.append(REPOSITORY / "vaultmem/faces/cli" / place)
        assert any(path.exists() for path in found), place
