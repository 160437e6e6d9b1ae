"""The house keeps its shape: who may import whom, how long a file may be, and what is never written."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("hubgov", "spawner/hubgov_spawner", "extensions/hubgov_lab")
MAX_LINES = 600


def files() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


@cache
def nodes() -> tuple[tuple[str, ast.AST], ...]:
    """(file:line, node) of all the code there is."""
    return tuple(
        (f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}", node)
        for path in files()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def test_the_import_contracts_hold() -> None:
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("suffixes", [(".py",), (".ts", ".tsx")], ids=["python", "typescript"])
def test_no_file_is_too_long(suffixes: tuple[str, ...]) -> None:
    typescript = (ROOT / "extensions" / "lab" / "src").rglob("*")
    long = {
        str(path.relative_to(ROOT)): lines
        for path in (*files(), *typescript)
        if path.suffix in suffixes and (lines := len(path.read_text(encoding="utf-8").splitlines())) > MAX_LINES
    }
    assert not long


def test_nothing_is_left_unwritten() -> None:
    """Abstract methods are abstract by `abc`, not by NotImplementedError."""
    assert not [at for at, n in nodes() if isinstance(n, ast.Name) and n.id == "NotImplementedError"]


def test_no_exception_is_swallowed_whole() -> None:
    assert not [at for at, n in nodes() if isinstance(n, ast.ExceptHandler) and n.type is None]


def test_nothing_sleeps() -> None:
    """Waiting is for an event or a deadline; a pause, where one must be, is handed in."""
    sleeps = [
        at
        for at, n in nodes()
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and ast.unparse(n.func) == "time.sleep"
    ]
    named = [
        at
        for at, n in nodes()
        if isinstance(n, ast.ImportFrom) and n.module == "time" and any(a.name == "sleep" for a in n.names)
    ]
    assert not sleeps + named
