"""Every refusal is a problem that says what was wrong, and never more."""

import asyncio
import json
from collections.abc import Iterator
from typing import Annotated, Any
from uuid import UUID

import httpx
import psycopg
import pytest
from fastapi import FastAPI, Header, Query, Response
from fastapi.routing import APIRouter
from psycopg_pool import PoolTimeout
from pydantic import BaseModel, ConfigDict, Field

from app import edge, problems
from app.errors import (
    AppError,
    BodyTooLarge,
    EvidenceNotFound,
    FactAlreadyRetired,
    FactNotFound,
    FactRetired,
    LowerTier,
    Unauthorized,
    UnknownSubject,
    responses,
)
from app.telemetry import Metrics, RequestContext
from app.text import Instant, NonBlank
from tests.serving import running

FACT_ID = "019ad9a0-53f1-7b8e-a2f4-0c2d9f6f4b11"
SECRET = "hunter-Blue-88"
MEMBERS = {"type", "title", "status", "detail", "instance", "code", "request_id"}


class FactIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    content: Annotated[NonBlank, Field(max_length=20)]
    tags: list[Annotated[str, Field(max_length=3)]] = []
    valid_from: Instant | None = None
    confidence: float | int = Field(1.0, ge=0, le=1)


class Batch(BaseModel):
    facts: list[FactIn]


def raising(error: Exception) -> Any:
    async def endpoint() -> None:
        raise error

    return endpoint


FAILURES: dict[str, Exception] = {
    "retired": FactRetired(head=UUID(FACT_ID), retired_at="2026-01-05T09:00:00Z", reason="It moved."),
    "evidence": EvidenceNotFound(),
    "evidence-of-item": EvidenceNotFound(pointer="/facts/3/evidence"),
    "unauthorized": Unauthorized(),
    "bug": RuntimeError(SECRET),
    "down": psycopg.OperationalError(f"connection to {SECRET} failed"),
    "closed": psycopg.InterfaceError("the connection is closed"),
    "busy": PoolTimeout("no connection"),
    "serialization": psycopg.errors.SerializationFailure("could not serialize"),
    "deadlock": psycopg.errors.DeadlockDetected("deadlock"),
    "timeout": psycopg.errors.QueryCanceled("canceled"),
    "too-large": psycopg.errors.ProgramLimitExceeded("index row size"),
    "unique": psycopg.errors.UniqueViolation(f"Key (content)=({SECRET}) already exists."),
}


def make_app() -> FastAPI:
    facts = APIRouter(prefix="/facts", tags=["Facts"])

    @facts.post("", responses=responses(FactAlreadyRetired, LowerTier, UnknownSubject))
    def remember(
        fact: FactIn,
        idempotency_key: Annotated[str | None, Header(max_length=10)] = None,
    ) -> FactIn:
        return fact

    @facts.post("/batch")
    def remember_all(batch: Batch) -> Batch:
        return batch

    @facts.get("")
    def list_facts(limit: Annotated[int, Query(ge=1, le=200)] = 50) -> int:
        return limit

    @facts.get("/{fact_id}", responses=responses(FactNotFound, FactRetired))
    def show(fact_id: UUID) -> UUID:
        return fact_id

    app = FastAPI(docs_url=None, redoc_url=None, redirect_slashes=False)
    app.include_router(facts, prefix="/v1")
    for name, error in FAILURES.items():
        app.get(f"/v1/fail/{name}", include_in_schema=False)(raising(error))
    problems.install(app)
    edge.install(app, Metrics())
    return app


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with running(make_app()) as url, httpx.Client(base_url=url) as client:
        yield client


def problem(response: httpx.Response) -> dict[str, Any]:
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body.keys() >= MEMBERS
    assert body["status"] == response.status_code
    assert body["request_id"] == response.headers["x-request-id"]
    assert body["type"] == f"urn:palimpsest:problem:{body['code']}"
    return body


def faults(response: httpx.Response) -> dict[str, str]:
    assert response.status_code == 422
    return {part["pointer"]: part["code"] for part in problem(response)["errors"]}


def test_a_problem_names_the_path_that_was_asked_for(client: httpx.Client) -> None:
    response = client.get("/v1/fail/retired?q=secret")

    assert problem(response)["instance"] == "/v1/fail/retired"


def test_a_retired_fact_is_gone_and_points_at_its_head(client: httpx.Client) -> None:
    response = client.get("/v1/fail/retired")

    assert response.status_code == 410
    assert problem(response) | {"head": FACT_ID, "reason": "It moved."} == problem(response)


def test_a_422_of_our_own_says_which_part_of_the_request_it_is_about(client: httpx.Client) -> None:
    assert faults(client.get("/v1/fail/evidence")) == {"/evidence": "evidence_not_found"}
    assert faults(client.get("/v1/fail/evidence-of-item")) == {"/facts/3/evidence": "evidence_not_found"}


def test_only_a_422_lists_errors(client: httpx.Client) -> None:
    assert "errors" not in problem(client.get("/v1/fail/retired"))


def test_a_missing_key_is_told_how_to_send_one(client: httpx.Client) -> None:
    response = client.get("/v1/fail/unauthorized")

    assert problem(response)["code"] == "unauthorized"
    assert response.headers["www-authenticate"] == "Bearer"


def test_a_bug_is_a_500_that_says_nothing_of_the_inside(client: httpx.Client) -> None:
    response = client.get("/v1/fail/bug")

    assert response.status_code == 500
    assert problem(response)["code"] == "internal_error"
    assert SECRET not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"


def test_a_constraint_nobody_foresaw_is_a_500_without_the_row(client: httpx.Client) -> None:
    response = client.get("/v1/fail/unique")

    assert response.status_code == 500
    assert SECRET not in response.text


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        ("down", "database_unavailable"),
        ("closed", "database_unavailable"),
        ("busy", "overloaded"),
        ("serialization", "overloaded"),
        ("deadlock", "overloaded"),
        ("timeout", "overloaded"),
    ],
)
def test_a_database_that_cannot_answer_now_is_a_503_to_be_tried_again(
    client: httpx.Client, failure: str, code: str
) -> None:
    response = client.get(f"/v1/fail/{failure}")

    assert response.status_code == 503
    assert problem(response)["code"] == code
    assert int(response.headers["retry-after"]) >= 1
    assert SECRET not in response.text


def test_a_value_too_large_for_postgres_is_not_to_be_tried_again(client: httpx.Client) -> None:
    assert faults(client.get("/v1/fail/too-large")) == {"": "value_not_storable"}


def test_an_unknown_address_is_a_problem(client: httpx.Client) -> None:
    response = client.get("/v1/nowhere")

    assert response.status_code == 404
    assert problem(response)["code"] == "not_found"


def test_a_wrong_method_lists_all_the_right_ones(client: httpx.Client) -> None:
    response = client.delete("/v1/facts")

    assert response.status_code == 405
    assert problem(response)["code"] == "method_not_allowed"
    assert response.headers["allow"] == "GET, POST"


def test_a_trailing_slash_is_not_redirected(client: httpx.Client) -> None:
    assert client.get("/v1/facts/").status_code == 404


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, {"/content": "missing"}),
        ({"content": ""}, {"/content": "string_too_short"}),
        ({"content": " \u200b"}, {"/content": "blank"}),
        ({"content": SECRET * 2}, {"/content": "string_too_long"}),
        ({"content": 7}, {"/content": "string_type"}),
        ({"content": "a", "limt": SECRET}, {"/limt": "extra_forbidden"}),
        ({"content": "a", "a/b~c": 1}, {"/a~1b~0c": "extra_forbidden"}),
        ({"content": "a", "tags": ["abc", "abcd"]}, {"/tags/1": "string_too_long"}),
        ({"content": "a", "valid_from": "2026-01-05T09:00:00"}, {"/valid_from": "offset_required"}),
        ({"content": "a", "valid_from": 1767603600}, {"/valid_from": "time_invalid"}),
        ([], {"": "model_attributes_type"}),
        ("text", {"": "model_attributes_type"}),
        (None, {"": "missing"}),
    ],
)
def test_a_body_that_is_not_valid_names_the_place(client: httpx.Client, body: object, expected: dict[str, str]) -> None:
    response = client.post("/v1/facts", json=body)

    assert faults(response) == expected
    assert SECRET not in response.text


def test_a_union_branch_is_no_part_of_the_place(client: httpx.Client) -> None:
    response = client.post("/v1/facts", json={"content": "a", "confidence": SECRET})

    assert faults(response).keys() == {"/confidence"}
    assert SECRET not in response.text


def test_an_item_of_a_batch_is_named_by_its_number(client: httpx.Client) -> None:
    response = client.post("/v1/facts/batch", json={"facts": [{"content": "a"}, {"tags": []}]})

    assert faults(response) == {"/facts/1/content": "missing"}


def test_every_fault_is_listed_at_once(client: httpx.Client) -> None:
    response = client.post("/v1/facts", json={"tags": ["abcd"], "more": 1})

    assert faults(response).keys() == {"/content", "/tags/0", "/more"}
    assert problem(response)["detail"].startswith("3 parts of the request are not valid. The first: /content")


@pytest.mark.parametrize(("limit", "sentence"), [("0", "at least 1"), ("1000000000", "at most 200")])
def test_a_bound_is_named(client: httpx.Client, limit: str, sentence: str) -> None:
    response = client.get("/v1/facts", params={"limit": limit})

    assert faults(response).keys() == {"query/limit"}
    assert sentence in problem(response)["detail"]


@pytest.mark.parametrize("limit", ["2.5", "five", "", "1e3", "٣x"])
def test_a_limit_that_is_no_number_is_refused(client: httpx.Client, limit: str) -> None:
    assert faults(client.get("/v1/facts", params={"limit": limit})) == {"query/limit": "int_parsing"}


def test_the_longest_content_is_named_in_characters(client: httpx.Client) -> None:
    response = client.post("/v1/facts", json={"content": "a" * 21})

    assert problem(response)["errors"][0]["detail"] == "Must have at most 20 characters."


def test_a_path_and_a_header_are_named(client: httpx.Client) -> None:
    in_path = client.get(f"/v1/facts/{SECRET}")
    in_header = client.post("/v1/facts", json={"content": "a"}, headers={"Idempotency-Key": "k" * 11})

    assert faults(in_path) == {"path/fact_id": "uuid_parsing"}
    assert SECRET not in json.dumps(problem(in_path) | {"instance": ""})
    assert faults(in_header) == {"header/Idempotency-Key": "string_too_long"}


def test_an_error_keeps_its_class_sentence_until_it_is_given_another() -> None:
    assert FactNotFound().detail == FactNotFound.detail
    assert FactNotFound("No fact here.").detail == "No fact here."


def test_no_two_kinds_of_error_share_a_code() -> None:
    kinds: list[type[AppError]] = [AppError, *_below(AppError)]

    assert len({kind.code for kind in kinds}) == len(kinds)


def _below(kind: type[AppError]) -> list[type[AppError]]:
    return [leaf for child in kind.__subclasses__() for leaf in [child, *_below(child)]]


def test_a_route_declares_its_problems_with_one_example_each() -> None:
    schema = problems.declare_problems(make_app().openapi())

    remember = schema["paths"]["/v1/facts"]["post"]["responses"]
    assert remember["409"]["content"]["application/problem+json"]["examples"].keys() == {
        "fact_already_retired",
        "lower_tier",
    }
    assert remember["422"]["content"]["application/problem+json"]["examples"].keys() == {
        "unknown_subject",
        "request_invalid",
    }


def test_a_route_declares_what_every_route_may_answer() -> None:
    schema = problems.declare_problems(make_app().openapi())

    assert schema["paths"]["/v1/facts"]["get"]["responses"].keys() == {"200", "400", "422", "500", "503"}
    assert schema["paths"]["/v1/facts/batch"]["post"]["responses"].keys() >= {"413", "415", "422"}


def test_the_schema_knows_problems_and_none_of_the_frameworks_errors() -> None:
    schema = problems.declare_problems(make_app().openapi())

    assert "HTTPValidationError" not in json.dumps(schema)
    assert schema["components"]["schemas"].keys() >= {"Problem", "ProblemPart"}


def test_every_declared_example_is_a_problem() -> None:
    declared = responses(*_below(AppError))

    for response in declared.values():
        for example in response["content"]["application/problem+json"]["examples"].values():
            problems.Problem.model_validate(example["value"])
            assert ("errors" in example["value"]) == (example["value"]["status"] == 422)


def test_an_answer_that_fails_half_way_is_cut_short(caplog: pytest.LogCaptureFixture) -> None:
    async def half(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            start = Response(headers={"content-length": "9"}).raw_headers
            await send({"type": "http.response.start", "status": 200, "headers": start})
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
            raise RuntimeError(SECRET)

    with running(RequestContext(half, Metrics())) as url, pytest.raises(httpx.RemoteProtocolError):
        httpx.get(url)

    assert SECRET not in caplog.text


def test_errors_are_for_services_too_and_need_no_server() -> None:
    async def refuse() -> None:
        raise BodyTooLarge(limit=3)

    with pytest.raises(AppError) as caught:
        asyncio.run(refuse())

    assert caught.value.extensions == {"limit": 3}
