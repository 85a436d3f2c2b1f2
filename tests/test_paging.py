"""A cursor continues the list that it was made for and no other."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from app import edge, problems
from app.errors import CursorInvalid
from app.paging import CursorParam, Limit, Page, decode_cursor, encode_cursor, page_of
from app.telemetry import Metrics
from tests.serving import running

MOMENT = datetime(2026, 1, 5, 9, 0, 0, 123456, tzinfo=UTC)
ID = UUID("019ad9a0-53f1-7b8e-a2f4-0c2d9f6f4b11")
FILTERS = {"list": "facts", "scope": "shared", "tag": None}


@given(
    st.datetimes(timezones=st.just(UTC)),
    st.uuids(),
    st.text().filter(lambda text: "\0" not in text),
    st.integers(-(2**63) + 1, 2**63 - 1),
)
def test_sort_keys_come_back_as_they_were(moment: datetime, id_: UUID, text: str, number: int) -> None:
    cursor = encode_cursor([moment, id_, text, number], FILTERS)

    assert decode_cursor(cursor, [datetime, UUID, str, int], FILTERS) == (moment, id_, text, number)


def test_a_cursor_fits_in_a_url_as_it_is() -> None:
    cursor = encode_cursor([MOMENT, ID, "наклейка/?&="], FILTERS)

    assert cursor.replace("-", "").replace("_", "").isalnum()


def test_a_filter_that_is_not_set_does_not_count() -> None:
    cursor = encode_cursor([ID], FILTERS)

    assert decode_cursor(cursor, [UUID], {"scope": "shared", "list": "facts"}) == (ID,)


@pytest.mark.parametrize(
    "filters", [{}, FILTERS | {"scope": "team"}, FILTERS | {"tag": "a"}, FILTERS | {"list": "links"}]
)
def test_a_cursor_of_another_list_is_refused(filters: dict[str, str | None]) -> None:
    cursor = encode_cursor([ID], FILTERS)

    with pytest.raises(CursorInvalid, match="other filters"):
        decode_cursor(cursor, [UUID], filters)


def forged(*values: Any) -> str:
    digest = json.loads(opened(encode_cursor([], FILTERS)))[0]
    return urlsafe_b64encode(json.dumps([digest, *values]).encode()).decode()


def opened(cursor: str) -> bytes:
    return urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "!",
        "a",
        "äöü",
        "AAAA",
        "bnVsbA",
        "W10",
        "e30",
        "NQ",
        "/etc/passwd",
        "a" * 5000,
        urlsafe_b64encode(b"[" * 9000).decode(),
    ],
)
def test_garbage_is_refused(cursor: str) -> None:
    with pytest.raises(CursorInvalid):
        decode_cursor(cursor, [datetime], FILTERS)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (datetime, 10**30),
        (datetime, -(10**18)),
        (datetime, "2026"),
        (datetime, True),
        (datetime, None),
        (UUID, "no"),
        (UUID, 7),
        (str, 7),
        (str, "a\0b"),
        (str, "\ud800"),
        (int, 2**63),
        (int, "7"),
        (int, 1.5),
        (int, False),
    ],
)
def test_a_forged_sort_key_is_refused(kind: type, value: object) -> None:
    with pytest.raises(CursorInvalid, match="cannot be read"):
        decode_cursor(forged(value), [kind], FILTERS)


def test_a_cursor_with_another_number_of_keys_is_refused() -> None:
    cursor = encode_cursor([MOMENT], FILTERS)

    with pytest.raises(CursorInvalid, match="cannot be read"):
        decode_cursor(cursor, [datetime, UUID], FILTERS)


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    app = FastAPI()
    rows = list(range(120))

    @app.get("/v1/numbers")
    def numbers(limit: Limit = 50, cursor: CursorParam = None) -> Page[str]:
        after = decode_cursor(cursor, [int], {"list": "numbers"})[0] if cursor is not None else -1
        fetched = [row for row in rows if row > after][: limit + 1]
        return page_of(fetched, limit, key=lambda row: [row], item=str, filters={"list": "numbers"})

    problems.install(app)
    edge.install(app, Metrics())
    with running(app) as url, httpx.Client(base_url=url) as client:
        yield client


def test_pages_together_are_the_list(client: httpx.Client) -> None:
    pages = list(walk(client, limit=50))

    assert [len(page) for page in pages] == [50, 50, 20]
    assert [item for page in pages for item in page] == [str(number) for number in range(120)]


@pytest.mark.parametrize("limit", [1, 40, 60, 120, 200])
def test_the_last_page_says_that_it_is_the_last(client: httpx.Client, limit: int) -> None:
    pages = list(walk(client, limit=limit))

    assert len(pages) == -(-120 // limit)


def walk(client: httpx.Client, limit: int) -> Iterator[list[str]]:
    params: dict[str, str | int] = {"limit": limit}
    while True:
        page = client.get("/v1/numbers", params=params).raise_for_status().json()
        yield page["items"]
        if page["next_cursor"] is None:
            return
        params["cursor"] = page["next_cursor"]


@pytest.mark.parametrize("cursor", ["garbage", "", "a" * 9000])
def test_a_bad_cursor_is_a_422_that_names_it(client: httpx.Client, cursor: str) -> None:
    response = client.get("/v1/numbers", params={"cursor": cursor})

    assert response.status_code == 422
    assert [part["pointer"] for part in response.json()["errors"]] == ["query/cursor"]


@pytest.mark.parametrize("limit", ["0", "-1", "201", "1000000000"])
def test_a_limit_outside_1_to_200_is_a_422(client: httpx.Client, limit: str) -> None:
    response = client.get("/v1/numbers", params={"limit": limit})

    assert response.status_code == 422
    assert [part["pointer"] for part in response.json()["errors"]] == ["query/limit"]
