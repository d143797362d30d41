"""The fences between the rooms, held by reading the imports (design.md §2)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "vaultmem"
FILES = sorted(PACKAGE.rglob("*.py"))

SATELLITES = {"relationships", "graph", "context", "care", "exchange", "learning", "turns", "team"}
RANKS = [
    {"base", ""},
    {"settings"},
    {"notes", "text"},
    {"index", "state"},
    {"sync"},
    {"access"},
    {"recall", "memories", "health"},
    SATELLITES,
    {"memory"},
    {"faces", "__main__"},
]
RANK_OF = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}
READS_RELATIONSHIPS = {(room, "relationships") for room in ("graph", "context", "care")}
PURE_ROOMS = ("notes", "text", "sync/plan")
PURE_MODULES = ("base/characters.py", "index/operations.py")
IMPURE = {"vaultmem.base.clock", "vaultmem.base.files", "vaultmem.base.locks", "vaultmem.settings.config"}
NOT_PURE = {"os", "sqlite3", "time", "logging", "io", "pathlib", "subprocess", "shutil", "tempfile", "socket"}


def room_of(path: Path) -> str:
    part = path.relative_to(PACKAGE).parts[0]
    return part.removesuffix(".py").replace("__init__", "")


def imports(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports at run time, wherever the import stands."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    own = RANK_OF[room_of(path)]
    for module in imports(path):
        if module.startswith("vaultmem."):
            room = module.split(".")[1]
            assert RANK_OF[room] <= own, f"{path.name} imports {module}"
            pair = (room_of(path), room)
            if SATELLITES.issuperset(pair) and pair not in READS_RELATIONSHIPS:
                assert room == room_of(path), f"satellites know nothing of each other: {path.name} imports {module}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_pure_rooms_import_no_io(path: Path) -> None:
    relative = path.relative_to(PACKAGE).as_posix()
    if relative.startswith(PURE_ROOMS) or relative in PURE_MODULES:
        assert not NOT_PURE & {module.split(".")[0] for module in imports(path)}
        databases = {name for name in imports(path) if name.startswith(("vaultmem.state", "vaultmem.index"))}
        assert databases <= {"vaultmem.index.operations"}
        assert not IMPURE & set(imports(path))


def test_only_index_and_state_open_databases() -> None:
    for path in FILES:
        if "connect(" in path.read_text(encoding="utf-8") and "sqlite3.connect" in path.read_text(encoding="utf-8"):
            assert room_of(path) in ("index", "state"), path


def calls(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def test_only_scan_lists_folders() -> None:
    listing = {"os.scandir", "os.listdir", "os.walk", "glob.glob", "os.fwalk"}
    for path in FILES:
        if path.relative_to(PACKAGE).as_posix() != "sync/walk/walk.py":
            assert not listing & calls(path), path


def test_only_config_reads_the_environment() -> None:
    allowed = {"settings/config.py", "faces/cli/app.py"}  # the latter only for VAULTMEM_DEBUG in its error frame
    for path in FILES:
        if path.relative_to(PACKAGE).as_posix() not in allowed:
            text = path.read_text(encoding="utf-8")
            assert "os.environ" not in text and "getenv(" not in text, path


def test_only_the_writer_publishes_notes() -> None:
    publishers = {path.relative_to(PACKAGE).as_posix() for path in FILES if "publish" in calls(path)}
    assert publishers == {"memories/writer.py", "base/files.py"}


def test_modules_and_functions_stay_small() -> None:
    long_functions = []
    total = 0
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 400, f"{path} has {text.count(chr(10))} lines: cut it"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                total += 1
                assert node.end_lineno is not None
                if node.end_lineno - node.lineno > 50:
                    long_functions.append(f"{path.name}:{node.name}")
    assert len(long_functions) <= total * 0.04, long_functions


def test_every_module_says_what_it_is_for() -> None:
    for path in FILES:
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path
