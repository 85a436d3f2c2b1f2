"""The source of the service, parsed."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import app

ROOT = Path(__file__).parents[2]


@cache
def trees() -> dict[str, ast.Module]:
    """By its dotted name, every module of the service."""
    return {_name(path): ast.parse(path.read_text()) for path in sorted((ROOT / "app").rglob("*.py"))}


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def path_of(module: str) -> Path:
    """The file of a module of the service."""
    folder = ROOT.joinpath(*module.split("."))
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method in a module."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@cache
def modules() -> dict[str, ModuleType]:
    """By its dotted name, every module of the service, imported; the command line is read, never run."""
    found = (module.name for module in pkgutil.walk_packages(app.__path__, "app."))
    return {name: importlib.import_module(name) for name in found if not name.endswith("__main__")}
