"""Bodies and URLs that cannot be kept are refused at the edge, with the place and the bound, never with a 5xx."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request

from app import edge, problems
from app.edge import BodyRule
from app.telemetry import Metrics
from tests.serving import running

NDJSON = "application/x-ndjson"
RULES = {"/v1/facts/batch": BodyRule(4000), "/v1/import": BodyRule(3000, NDJSON)}


def make_app() -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, redirect_slashes=False)

    @app.post("/v1/facts")
    @app.post("/v1/facts/batch")
    def remember(fact: dict[str, Any]) -> dict[str, Any]:
        return fact

    @app.post("/v1/facts/pin")
    def pin() -> str:
        return "pinned"

    @app.post("/v1/import")
    async def take(request: Request) -> int:
        return sum([len(chunk) async for chunk in request.stream()])

    @app.get("/v1/subjects/{subject}")
    def show(subject: str, q: str = "") -> list[str]:
        return [subject, q]

    problems.install(app)
    edge.install(app, Metrics(), RULES)
    return app


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with running(make_app()) as url, httpx.Client(base_url=url) as client:
        yield client


def post(
    client: httpx.Client, body: bytes | Iterator[bytes], path: str = "/v1/facts", **headers: str
) -> httpx.Response:
    return client.post(path, content=body, headers={"Content-Type": "application/json"} | headers)


def faults(response: httpx.Response) -> dict[str, str]:
    assert response.status_code == 422, response.text
    assert response.headers["content-type"] == "application/problem+json"
    return {part["pointer"]: part["code"] for part in response.json()["errors"]}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{", {"": "json_invalid"}),
        (b"not json", {"": "json_invalid"}),
        (b'{"a": 1} {"b": 2}', {"": "json_invalid"}),
        (b'{"a": "\x00"}', {"": "json_invalid"}),
        (b'{"a": "\xff"}', {"": "not_utf8"}),
        (b'{"a": "\xed\xa0\x80"}', {"": "not_utf8"}),
        ('{"a": 1}'.encode("utf-16"), {"": "not_utf8"}),
        (rb'{"a": "x\u0000y"}', {"/a": "nul_character"}),
        (
            rb'{"a": {"b\u0000": 1}}',
            {
                "/a": "nul_character",
            },
        ),
        (rb'{"a": ["ok", "\ud800"]}', {"/a/1": "lone_surrogate"}),
        (rb'{"a": {"\udc00": 1}}', {"/a": "lone_surrogate"}),
        (b'{"a": NaN}', {"/a": "not_finite"}),
        (b'{"a": [-Infinity]}', {"/a/0": "not_finite"}),
        (b'{"a": 1e999}', {"/a": "not_finite"}),
        (b'{"a": ' + b"9" * 5000 + b"}", {"/a": "not_finite"}),
        (b'{"a": 1, "b": 2, "a": 1}', {"/a": "duplicate_key"}),
        (b"[" * 65 + b"]" * 65, {"/0" * 64: "too_deep"}),
        (b"[" * 100_000 + b"]" * 100_000, {"": "too_deep"}),
        (b'{"a":' * 100_000, {"": "too_deep"}),
    ],
)
def test_a_body_that_is_not_strict_json_names_the_place(
    client: httpx.Client, body: bytes, expected: dict[str, str]
) -> None:
    assert faults(post(client, body)) == expected


@pytest.mark.parametrize(
    "body",
    [
        rb'{"a": "\ud83d\ude00"}',
        '{"a": "\U0001f600 עברית 中文"}'.encode(),
        b'\xef\xbb\xbf{"a": 1}',
        b'{"a": 1e308, "b": -9007199254740993}',
        b'{"a":' + b"[" * 63 + b"]" * 63 + b"}",
    ],
)
def test_unusual_but_whole_json_is_taken_as_it_is(client: httpx.Client, body: bytes) -> None:
    response = post(client, body)

    assert response.status_code == 200
    assert response.json() == json.loads(body.decode("utf-8-sig"))


def test_no_more_than_twenty_faults_are_listed(client: httpx.Client) -> None:
    body = json.dumps({"a": ["\0"] * 1000}).encode()

    assert len(faults(post(client, body))) == 20


def test_a_body_over_the_limit_is_told_the_limit(client: httpx.Client) -> None:
    response = post(client, b'"' + b"a" * (2 * edge.MIB) + b'"')

    assert response.status_code == 413
    assert response.json()["code"] == "body_too_large"
    assert response.json()["limit"] == 2_097_152
    assert "2097152" in response.json()["detail"]


def test_a_body_that_hides_its_length_is_counted(client: httpx.Client) -> None:
    response = post(client, (b"[" * 1024 for _ in range(3000)))

    assert response.status_code == 413


def test_a_body_far_over_the_limit_is_still_answered(client: httpx.Client) -> None:
    response = post(client, b"a" * (24 * edge.MIB))

    assert response.status_code == 413


def test_a_path_has_a_limit_of_its_own(client: httpx.Client) -> None:
    body = json.dumps({"a": "b" * 5000}).encode()

    assert post(client, body, "/v1/facts").status_code == 200
    assert post(client, body, "/v1/facts/batch").json()["limit"] == 4000


def test_a_path_keeps_its_limit_behind_a_prefix() -> None:
    body = json.dumps({"a": "b" * 5000}).encode()

    with running(make_app(), root_path="/memory") as url, httpx.Client(base_url=url) as client:
        response = post(client, body, "/v1/facts/batch")

    assert response.status_code == 413


def test_a_client_that_waits_to_be_told_to_continue_is_told_no_at_once(client: httpx.Client) -> None:
    address = (client.base_url.host, client.base_url.port or 80)
    head = "POST /v1/facts HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\nExpect: 100-continue\r\n\r\n"

    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(head.encode())
        answer = connection.recv(100)

    assert answer.startswith(b"HTTP/1.1 413")


def test_a_stream_is_passed_on_and_counted(client: httpx.Client) -> None:
    headers = {"Content-Type": NDJSON}

    taken = client.post("/v1/import", content=b"x" * 3000, headers=headers)
    refused = client.post("/v1/import", content=(b"x" * 1000 for _ in range(4)), headers=headers)

    assert taken.json() == 3000
    assert refused.status_code == 413
    assert refused.json()["limit"] == 3000


@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin-1",
        "",
        "json",
        "\xff",
    ],
)
def test_a_body_of_another_media_type_is_told_the_right_one(client: httpx.Client, media_type: str) -> None:
    response = client.post("/v1/facts", content=b"{}", headers={b"Content-Type": media_type.encode("latin-1")})

    assert response.status_code == 415
    assert "application/json" in response.json()["detail"]


def test_a_body_without_a_media_type_is_refused(client: httpx.Client) -> None:
    assert client.post("/v1/facts", content=b"{}").status_code == 415


def test_the_usual_charset_may_be_named(client: httpx.Client) -> None:
    headers = {"Content-Type": "Application/JSON; charset=UTF-8"}

    assert client.post("/v1/facts", content=b"{}", headers=headers).status_code == 200


def test_a_post_without_a_body_needs_no_media_type(client: httpx.Client) -> None:
    assert client.post("/v1/facts/pin").status_code == 200


@pytest.mark.parametrize(
    "target",
    [
        "/v1/subjects/a%00b",
        "/v1/subjects/%ff",
        "/v1/subjects/%ED%A0%80",
        "/v1/subjects/50%",
        "/v1/subjects/%zz",
        "/v1/subjects/a?q=%00",
        "/v1/subjects/a?q=%ff",
        "/v1/subjects/a?q=100%",
        "/v1/nowhere/%ff",
    ],
)
def test_a_url_that_does_not_decode_is_refused(client: httpx.Client, target: str) -> None:
    answer = raw(client, f"GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())

    assert answer.startswith(b"HTTP/1.1 400")
    assert b'"code":"malformed_url"' in answer


def test_a_url_in_any_script_is_read(client: httpx.Client) -> None:
    response = client.get("/v1/subjects/прайс 中", params={"q": "100% \U0001f600"})

    assert response.json() == ["прайс 中", "100% \U0001f600"]


def raw(client: httpx.Client, request: bytes) -> bytes:
    address = (client.base_url.host, client.base_url.port or 80)
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_answers_are_not_sniffed_nor_kept(client: httpx.Client) -> None:
    for response in (client.get("/v1/subjects/a"), client.get("/v1/nowhere"), post(client, b"{")):
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"


def test_a_client_that_leaves_in_the_middle_of_its_body_leaves_the_service_well(client: httpx.Client) -> None:
    address = (client.base_url.host, client.base_url.port or 80)
    head = "POST /v1/facts HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"

    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(head.encode())

    assert client.post("/v1/facts/pin").status_code == 200
