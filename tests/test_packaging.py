"""What a person installs is whole: the wheel, and the image that is built from it."""

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from app.embedded import Cluster
from tests.cluster import own_database

ROOT = Path(__file__).parents[1]
PREFIX = "/opt/palimpsest"
PACKAGES = ("app", "migrations")


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile, instruction by instruction."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def stages() -> list[list[tuple[str, str]]]:
    """The same, by stage."""
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions():
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest))
    return found


BUILD, FINAL = stages()


def said(stage: list[tuple[str, str]], word: str) -> list[str]:
    return [rest for each, rest in stage if each == word]


def copy_sources(folder: Path) -> None:
    """What the build stage copies, into the folder that it works in."""
    for paths in said(BUILD, "COPY"):
        *sources, target = shlex.split(paths)
        for source in sources:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, folder / target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, folder / target)


def surroundings(folder: Path) -> dict[str, str]:
    """An environment with the image's `python` and `pip`, where dependencies come from this interpreter's own.

    So the build needs no network; that the dependencies can be installed is what running these tests has shown.
    """
    tools = folder / "tools"
    tools.mkdir()
    for name, command in {"python": "", "pip": "-m pip"}.items():
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n')
        (tools / name).chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    return kept | {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_ROOT_USER_ACTION": "ignore",
    }


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the Dockerfile's build stage fills, built by its own commands."""
    folder = tmp_path_factory.mktemp("image")
    source, prefix = folder / "source", folder / "prefix"
    source.mkdir()
    copy_sources(source)
    environment = surroundings(folder)
    for command in said(BUILD, "RUN"):
        built = subprocess.run(
            ["sh", "-ec", command.replace(PREFIX, str(prefix))],
            cwd=source,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert built.returncode == 0, built.stdout + built.stderr
    shutil.rmtree(source)
    return prefix


def palimpsest(prefix: Path, *arguments: str, **settings: str) -> str:
    """What the installed command prints, run in a folder that holds nothing of ours."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ended = subprocess.run(
        [str(prefix / "bin" / "palimpsest"), *arguments],
        cwd=prefix,
        env=environment | settings | {"PYTHONPATH": sysconfig.get_path("purelib")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def library(prefix: Path) -> Path:
    (found,) = prefix.glob("lib/python*/site-packages")
    return found


def files(folder: Path) -> set[str]:
    every = (path for package in PACKAGES for path in (folder / package).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)) for path in every if "__pycache__" not in path.parts}


@pytest.fixture
def empty(cluster: Cluster) -> Iterator[Cluster]:
    """A database that no migration ever ran on."""
    with own_database(cluster) as mine:
        yield mine


def test_every_file_of_the_packages_is_installed(installed: Path) -> None:
    shipped = files(library(installed))

    assert {"app/py.typed", "migrations/script.py.mako", "migrations/roles.sql", "migrations/env.py"} <= shipped
    assert shipped == files(ROOT)


def test_the_licence_is_installed(installed: Path) -> None:
    assert list(library(installed).glob("palimpsest-*.dist-info/licenses/LICENSE"))


def test_nothing_but_our_packages_is_installed(installed: Path) -> None:
    top = {path.name for path in library(installed).iterdir() if not path.name.endswith(".dist-info")}

    assert top == {*PACKAGES}


def test_the_installed_command_tells_its_version(installed: Path) -> None:
    assert re.fullmatch(r"palimpsest \d+\.\d+\.\d+\S*\n", palimpsest(installed, "version"))


def test_the_installed_command_describes_the_api(installed: Path) -> None:
    described = json.loads(palimpsest(installed, "openapi"))

    assert "/v1/facts" in described["paths"]


def test_the_installed_command_migrates_an_empty_database(installed: Path, empty: Cluster) -> None:
    palimpsest(installed, "migrate", MIGRATION_DATABASE_URL=empty.owner_dsn)

    with psycopg.connect(empty.api_dsn) as api:
        assert api.execute("SELECT count(*) FROM facts_active").fetchone() == (0,)


def test_no_installer_is_left_in_the_image(installed: Path) -> None:
    assert list((installed / "bin").glob("pip*")) == []


def test_the_user_of_the_image_can_read_what_was_installed(installed: Path) -> None:
    hidden = [path for path in library(installed).rglob("*") if not path.stat().st_mode & stat.S_IROTH]

    assert hidden == []


def test_the_image_runs_as_an_ordinary_user() -> None:
    (user,) = said(FINAL, "USER")

    assert user not in {"root", "0"}
    assert f"useradd --uid 10001 --gid {user}" in " ".join(said(FINAL, "RUN"))


def test_the_image_takes_only_what_was_built() -> None:
    assert said(FINAL, "COPY") == [f"--from=build {PREFIX} {PREFIX}"]
    assert re.search(r"\b(apt|apt-get|pip|curl|wget)\b", " ".join(said(FINAL, "RUN"))) is None


def test_the_image_tells_whether_it_is_ready() -> None:
    (check,) = said(FINAL, "HEALTHCHECK")

    assert "http://127.0.0.1:8000/readyz" in check


def test_the_image_serves_on_every_address_and_is_stopped_by_a_signal() -> None:
    (environment,) = said(FINAL, "ENV")
    (command,) = said(FINAL, "CMD")

    assert "PALIMPSEST_HOST=0.0.0.0" in environment
    # Through a shell, SIGTERM would not reach the service.
    assert json.loads(command) == ["palimpsest", "serve"]


def test_the_data_of_the_image_is_in_a_volume() -> None:
    (environment,) = said(FINAL, "ENV")
    (volume,) = said(FINAL, "VOLUME")

    assert f"PALIMPSEST_DATA_DIR={volume}" in environment
    assert f"--owner palimpsest --group palimpsest --mode 0700 {volume}" in " ".join(said(FINAL, "RUN"))


def test_what_the_image_is_built_from_is_not_ignored() -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {source for paths in said(BUILD, "COPY") for source in shlex.split(paths)[:-1]}

    assert copied == let_in


def test_ci_runs_the_line_of_the_readme() -> None:
    line = "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/pytest"

    assert f'newcomers_line="{line}"' in (ROOT / ".ci" / "run").read_text()
    assert line in (ROOT / "README.md").read_text().splitlines()
