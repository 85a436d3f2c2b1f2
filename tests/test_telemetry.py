"""Requests can be followed and counted, and what people told the memory stays out of logs and metrics."""

import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import StringIO
from typing import Any

import httpx
import psycopg
import pytest
import structlog
from fastapi import APIRouter, FastAPI, Request
from prometheus_client import Counter
from prometheus_client.parser import text_string_to_metric_families

from app import edge, problems, telemetry
from app.errors import FactNotFound
from app.telemetry import Metrics, configure_logging
from tests.serving import running

SECRET = "hunter-Blue-88"


def make_app(metrics: Metrics) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None)
    facts = APIRouter(prefix="/facts")

    @facts.get("/{fact_id}")
    async def show(fact_id: str) -> str:
        if fact_id == "none":
            raise FactNotFound
        structlog.get_logger("app.facts").info("shown")
        return fact_id

    @facts.post("/broken")
    async def break_down(request: Request) -> None:
        text = (await request.json())["content"]
        try:
            raise ValueError(text)
        except ValueError as error:
            raise psycopg.errors.CheckViolation(f"Failing row contains ({text}).") from error

    wrapper = APIRouter(prefix="/v1")
    wrapper.include_router(facts)
    app.include_router(wrapper)
    app.include_router(telemetry.router(metrics))
    problems.install(app)
    edge.install(app, metrics)
    return app


@contextmanager
def serving() -> Iterator[httpx.Client]:
    with running(make_app(Metrics())) as url, httpx.Client(base_url=url) as client:
        yield client


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with serving() as client:
        yield client


class Lines(StringIO):
    """The log of a service."""

    def of_ours(self) -> list[dict[str, Any]]:
        entries = [json.loads(line) for line in self.getvalue().splitlines()]
        return [entry for entry in entries if entry["logger"].startswith("app")]


@pytest.fixture
def lines() -> Iterator[Lines]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    lines = Lines()
    configure_logging("json", "INFO", lines)
    yield lines
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


@pytest.mark.parametrize("given", ["a", "agent-7.Run_3", "x" * 128])
def test_a_request_id_is_echoed(client: httpx.Client, given: str) -> None:
    response = client.get("/v1/facts/a", headers={"X-Request-ID": given})

    assert response.headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a\tb", "<script>", "é", '"a"', "a,b"])
def test_a_request_id_that_could_do_harm_is_replaced(client: httpx.Client, given: str) -> None:
    response = client.get("/v1/facts/a", headers={b"X-Request-ID": given.encode("latin-1")})

    assert response.headers["x-request-id"] not in {"", given}


def test_requests_at_the_same_time_keep_their_own_ids(client: httpx.Client) -> None:
    def echoed(number: int) -> str:
        answer: str = client.get("/v1/facts/none", headers={"X-Request-ID": f"r{number}"}).json()["request_id"]
        return answer

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(echoed, range(64)))

    assert answers == [f"r{number}" for number in range(64)]


def test_a_request_is_one_line_with_its_route_and_not_its_path(lines: Lines) -> None:
    with serving() as client:
        client.get("/v1/facts/none", params={"q": SECRET}, headers={"X-Request-ID": "r1"})

    (line,) = lines.of_ours()
    assert line | {"event": "request", "method": "GET", "route": "/v1/facts/{fact_id}", "status": 404} == line
    assert line["request_id"] == "r1"
    assert line["ms"] >= 0
    assert SECRET not in json.dumps(line)


def test_a_line_of_a_feature_carries_the_request_id(lines: Lines) -> None:
    with serving() as client:
        client.get("/v1/facts/a", headers={"X-Request-ID": "r2"})

    assert [(line["event"], line["request_id"]) for line in lines.of_ours()] == [
        ("shown", "r2"),
        ("request", "r2"),
    ]


def test_a_bug_is_logged_with_its_place_and_without_its_words(lines: Lines) -> None:
    with serving() as client:
        response = client.post("/v1/facts/broken", json={"content": SECRET})

    failed, request = lines.of_ours()
    assert failed["event"] == "request_failed"
    assert failed["error"] == "psycopg.errors.CheckViolation"
    assert failed["sqlstate"] == "23514"
    assert failed["cause"] == "builtins.ValueError"
    assert any("break_down" in frame for frame in failed["frames"])
    assert failed["request_id"] == request["request_id"] == response.json()["request_id"]


def test_no_line_of_any_library_holds_what_was_sent(lines: Lines) -> None:
    with serving() as client:
        client.post("/v1/facts/broken", json={"content": SECRET})
        client.get(f"/v1/facts/{SECRET}", params={"q": SECRET})
        client.get(f"/{SECRET}")

    text = lines.getvalue()
    assert "request_failed" in text
    assert SECRET not in text


def test_an_exception_that_a_library_logs_loses_its_words(lines: Lines) -> None:
    try:
        raise ValueError(SECRET)
    except ValueError:
        logging.getLogger("library").exception("It failed.")

    text = lines.getvalue()
    assert "builtins.ValueError" in text
    assert SECRET not in text


def test_the_console_format_is_for_people(lines: Lines) -> None:
    configure_logging("console", "WARNING", lines)
    structlog.get_logger("app").info("quiet")
    structlog.get_logger("app").warning("heard", place="here")

    assert "heard" in (text := lines.getvalue())
    assert "place=here" in text
    assert "quiet" not in text


def samples(client: httpx.Client, name: str) -> dict[tuple[str, ...], float]:
    text = client.get("/metrics").raise_for_status().text
    return {
        tuple(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


def test_requests_are_counted_by_route_template(client: httpx.Client) -> None:
    for fact_id in ("a", "b", "none"):
        client.get(f"/v1/facts/{fact_id}")

    counted = samples(client, "palimpsest_http_requests_total")
    assert counted["GET", "/v1/facts/{fact_id}", "2xx"] == 2
    assert counted["GET", "/v1/facts/{fact_id}", "4xx"] == 1


def test_made_up_paths_and_methods_make_no_new_series(client: httpx.Client) -> None:
    client.get("/metrics")
    before = samples(client, "palimpsest_http_requests_total").keys()
    for number in range(20):
        client.request(f"BREW{number}", f"/{number}")
        client.get(f"/v1/{number}/%ff")

    after = samples(client, "palimpsest_http_requests_total").keys()
    assert {labels[:2] for labels in after - before} == {("other", "unmatched"), ("GET", "unmatched")}


def test_two_apps_in_one_process_count_apart(client: httpx.Client) -> None:
    client.get("/v1/facts/a")

    with serving() as other:
        counted = samples(other, "palimpsest_http_requests_total")

    assert ("GET", "/v1/facts/{fact_id}", "2xx") not in counted


def test_a_feature_adds_its_own_metrics() -> None:
    metrics = Metrics()
    Counter("palimpsest_facts_total", "Facts.", registry=metrics.registry).inc(3)

    with running(make_app(metrics)) as url, httpx.Client(base_url=url) as client:
        assert samples(client, "palimpsest_facts_total") == {(): 3.0}
