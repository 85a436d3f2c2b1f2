"""The page for people works without the internet and behind a prefix."""

import re
from collections.abc import Iterator
from urllib.parse import urljoin

import httpx
import pytest
from fastapi import FastAPI

from app import docs, edge
from app.telemetry import Metrics
from tests.serving import running


def make_app() -> FastAPI:
    app = FastAPI(title="Palimpsest <&>", docs_url=None, redoc_url=None)
    docs.install(app)
    edge.install(app, Metrics())
    return app


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with running(make_app()) as url, httpx.Client(base_url=url) as client:
        yield client


def references(page: str) -> list[str]:
    return re.findall(r'(?:src|href|data-openapi)="([^"]*)"', page)


def test_the_page_loads_what_it_needs_from_this_service(client: httpx.Client) -> None:
    page = client.get("/docs")

    loaded = {reference: client.get(urljoin(str(page.url), reference)) for reference in references(page.text)}
    assert len(loaded) == 5
    assert {response.status_code for response in loaded.values()} == {200}
    assert {response.headers["content-type"].split(";")[0] for response in loaded.values()} == {
        "image/png",
        "text/css",
        "text/javascript",
        "application/json",
    }


def test_the_page_names_no_other_place(client: httpx.Client) -> None:
    page = client.get("/docs").text
    start = client.get("/docs/start.js").text

    assert "//" not in page.replace("<!doctype html>", "")
    assert "//" not in start


def test_the_stylesheet_loads_nothing_from_elsewhere(client: httpx.Client) -> None:
    css = client.get("/docs/swagger-ui.css").text

    assert set(re.findall(r"url\(\"?'?(\w+):", css)) <= {"data"}
    assert "@import" not in css


def test_the_browser_is_told_to_load_from_nowhere_else(client: httpx.Client) -> None:
    policy = client.get("/docs").headers["content-security-policy"]

    directives = dict(directive.strip().split(" ", 1) for directive in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["script-src"] == directives["connect-src"] == "'self'"
    assert "http" not in policy


def test_the_page_runs_no_inline_script(client: httpx.Client) -> None:
    page = client.get("/docs").text

    assert re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL) == ["", ""]
    assert not re.search(r"\son\w+=", page)


def test_the_key_is_remembered_and_trying_is_one_click_away(client: httpx.Client) -> None:
    start = client.get("/docs/start.js").text

    assert "persistAuthorization: true" in start
    assert "tryItOutEnabled: true" in start
    assert "validatorUrl: null" in start


def test_swagger_ui_is_new_enough_for_openapi_3_1(client: httpx.Client) -> None:
    version = re.search(r'PACKAGE_VERSION:"(\d+)\.', client.get("/docs/swagger-ui-bundle.js").text)

    assert version is not None
    assert int(version[1]) >= 5
    assert client.get("/openapi.json").json()["openapi"].startswith("3.1")


def test_the_title_is_escaped(client: httpx.Client) -> None:
    assert "<title>Palimpsest &lt;&amp;&gt;</title>" in client.get("/docs").text


def test_the_assets_are_kept_by_browsers_until_the_package_changes(client: httpx.Client) -> None:
    page = client.get("/docs").text

    for reference in references(page)[:2]:
        assert "?v=" in reference
        assert "immutable" in client.get(reference).headers["cache-control"]


def test_nothing_else_of_the_package_is_served(client: httpx.Client) -> None:
    assert client.get("/docs/__init__.py").status_code == 404
    assert client.get("/docs/../main.py").status_code == 404


def test_the_page_works_behind_a_prefix() -> None:
    with running(make_app(), root_path="/memory") as url, httpx.Client(base_url=url) as client:
        # The proxy takes the prefix off; the browser puts it before every relative reference.
        page = client.get("/docs").text
        seen = {urljoin("https://example.org/memory/docs", reference) for reference in references(page)}

        assert all(reference.startswith("https://example.org/memory/") for reference in seen)
        for reference in seen:
            assert client.get(reference.removeprefix("https://example.org/memory")).status_code == 200
