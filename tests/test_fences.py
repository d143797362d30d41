"""The fences between the rooms, held by reading the imports (design.md §2)."""

from __future__ import annotations

import ast
import re
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


def test_every_public_function_says_what_it_does() -> None:
    silent = []
    for path in FILES:
        for owner in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(owner, (ast.Module, ast.ClassDef)) or getattr(owner, "name", "").startswith("_"):
                continue
            silent += [
                f"{path.name}: {item.name}"
                for item in owner.body
                if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))
                and not item.name.startswith("_")
                and not ast.get_docstring(item)
            ]
    assert silent == []


def test_broad_handlers_are_few_and_say_why() -> None:
    broad = []
    for path in FILES:
        lines = path.read_text(encoding="utf-8").split("\n")
        for node in ast.walk(ast.parse("\n".join(lines))):
            names = {"Exception", "BaseException"}
            if isinstance(node, ast.ExceptHandler) and (node.type is None or ast.unparse(node.type) in names):
                broad.append(f"{path.name}:{node.lineno}")
                assert "# noqa: BLE001  " in lines[node.lineno - 1], broad[-1]
    assert len(broad) <= 7, broad


def test_only_index_and_state_import_sqlite_to_open_and_write() -> None:
    """Others name its types and errors; none but these two rooms write a statement that changes a database."""
    changing = re.compile(r"\"(?:INSERT|UPDATE|DELETE|CREATE|DROP|PRAGMA)\b")
    for path in FILES:
        if room_of(path) not in ("index", "state"):
            assert not changing.search(path.read_text(encoding="utf-8")), path


def test_no_room_is_a_heap() -> None:
    for folder in {path.parent for path in FILES}:
        modules = [path for path in FILES if path.parent == folder and path.name != "__init__.py"]
        assert len(modules) <= 13, f"{folder} holds {len(modules)} modules: make it two rooms"
