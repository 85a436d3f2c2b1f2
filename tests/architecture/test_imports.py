"""Which module may import which, and how large a piece may grow."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from tests.architecture.source import ROOT, functions, path_of, trees

LONGEST_MODULE = 300
LONGEST_FUNCTION = 60
LONGEST_MEDIAN = 12

# Modules that were longer when this was written, and how long they may stay. Lines may only leave this table.
LONGER = {
    "app.analyzer": 325,
    "app.errors": 350,
    "app.facts.router": 440,
    "app.facts.schemas": 385,
}


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the service and its contracts, to seed with violations."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "app", tmp_path / "app", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_every_import_contract_is_kept() -> None:
    checked = lint_imports(ROOT)

    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("app/utils.py", "", "stand on recall and facts"),
        ("app/facts/queries.py", "import app.recall.service", "stand on recall and facts"),
        ("app/facts/queries.py", "import app.facts.service", "Routers and tasks call services"),
        ("app/recall/router.py", "from app.facts.model import facts_history", "Only statements see the views"),
        ("app/facts/decision.py", "from sqlalchemy import select", "hold no SQL"),
        ("app/facts/service.py", "from fastapi import HTTPException", "Nothing below the routes knows HTTP"),
    ],
)
def test_a_seeded_violation_breaks_its_contract(copy: Path, module: str, line: str, broken: str) -> None:
    with (copy / module).open("a") as file:
        file.write(f"\n{line}\n")

    checked = lint_imports(copy)

    assert checked.returncode == 1
    assert any(broken in said and said.endswith("BROKEN") for said in checked.stdout.splitlines()), checked.stdout


@pytest.mark.parametrize("module", trees())
def test_a_module_is_short(module: str) -> None:
    lines = path_of(module).read_text().count("\n")

    assert lines <= LONGER.get(module, LONGEST_MODULE)


def test_a_module_that_became_short_left_the_table_of_longer_ones() -> None:
    assert [name for name in LONGER if path_of(name).read_text().count("\n") <= LONGEST_MODULE] == []


def test_no_function_is_long() -> None:
    long = {
        f"{name}.{function.name}": length
        for name, tree in trees().items()
        for function in functions(tree)
        if (length := (function.end_lineno or 0) - function.lineno + 1) > LONGEST_FUNCTION
    }

    assert long == {}


def test_most_functions_are_small() -> None:
    lengths = [(f.end_lineno or 0) - f.lineno + 1 for tree in trees().values() for f in functions(tree)]

    assert median(lengths) <= LONGEST_MEDIAN


def test_nothing_is_imported_inside_a_function() -> None:
    inside = [
        f"{name}:{node.lineno}"
        for name, tree in trees().items()
        for function in functions(tree)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]

    assert inside == []
