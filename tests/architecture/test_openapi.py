"""The description of the API is committed, complete and stable."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.main import create_app
from app.settings import Settings

SNAPSHOT = Path(__file__).parents[2] / "openapi" / "openapi.json"
DESCRIBED: dict[str, Any] = create_app(Settings(_env_file=None)).openapi()
OPEN = ("/livez", "/readyz", "/metrics")


def operations() -> dict[str, dict[str, Any]]:
    """Every operation, by what it is called by."""
    return {
        f"{method.upper()} {path}": operation
        for path, methods in DESCRIBED["paths"].items()
        for method, operation in methods.items()
    }


OPERATIONS = operations()


def reached(node: Any, seen: set[str]) -> set[str]:
    """The names of the schemas that a piece of the description leads to."""
    for name in _references(node):
        if name not in seen:
            seen.add(name)
            reached(DESCRIBED["components"]["schemas"][name], seen)
    return seen


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield str(node["$ref"]).rpartition("/")[2]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def answered() -> set[str]:
    """The schemas that a successful answer may hold."""
    seen: set[str] = set()
    for operation in OPERATIONS.values():
        for status, response in operation["responses"].items():
            if status.startswith("2"):
                reached(response, seen)
    return seen


def test_the_committed_description_is_what_the_service_says() -> None:
    assert SNAPSHOT.exists(), "Write it with: palimpsest openapi > openapi/openapi.json"

    assert json.loads(SNAPSHOT.read_text()) == json.loads(json.dumps(DESCRIBED))


def test_no_two_operations_share_an_id() -> None:
    ids = [operation["operationId"] for operation in OPERATIONS.values()]

    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("called", OPERATIONS)
def test_an_operation_has_an_id_of_its_own_choice(called: str) -> None:
    # FastAPI would join the function's name, the path and the method with underscores.
    assert OPERATIONS[called]["operationId"].isalnum()


@pytest.mark.parametrize("called", OPERATIONS)
def test_an_operation_is_described_for_a_person(called: str) -> None:
    operation = OPERATIONS[called]
    known = {tag["name"] for tag in DESCRIBED["tags"]}

    assert operation["summary"]
    assert operation["description"]
    assert operation["tags"]
    assert set(operation["tags"]) <= known


@pytest.mark.parametrize("called", OPERATIONS)
def test_every_refusal_is_declared_as_a_problem(called: str) -> None:
    refusals = {status: r for status, r in OPERATIONS[called]["responses"].items() if not status.startswith("2")}

    assert refusals
    assert {tuple(response["content"]) for response in refusals.values()} == {("application/problem+json",)}


@pytest.mark.parametrize("called", [called for called in OPERATIONS if called.split()[1] not in OPEN])
def test_an_operation_asks_for_a_key(called: str) -> None:
    (scheme,) = OPERATIONS[called]["security"]

    assert {"401", "403"} <= OPERATIONS[called]["responses"].keys()
    assert [DESCRIBED["components"]["securitySchemes"][name]["scheme"] for name in scheme] == ["bearer"]


@pytest.mark.parametrize("name", sorted(answered()))
def test_what_goes_out_has_no_optional_members(name: str) -> None:
    schema = DESCRIBED["components"]["schemas"][name]
    members = schema.get("properties", {})

    assert {member for member, described in members.items() if "default" in described} == set()
    assert set(schema.get("required", [])) == set(members)
