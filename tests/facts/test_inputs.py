"""Whatever is wrong with a request, a problem names the place and the bound, and nothing is written."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.clients import NEVER, Memory

ZERO_WIDTH = "\u200b\u2060"
LONE = "\ud800"


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = {"a": value}
    return value


TEXTS: list[tuple[Any, str]] = [
    ("", "1 or more"),
    ("   ", "visible"),
    (ZERO_WIDTH, "visible"),
    ("a\0b", "NUL"),
    (LONE, "surrogate"),
    (7, "string"),
    ([], "string"),
    ({}, "string"),
]
TIMES: list[tuple[Any, str]] = [
    ("2026-01-05T09:00:00", "offset"),
    ("2026-01-05", "offset"),
    ("yesterday", "RFC 3339"),
    ("", "RFC 3339"),
    ("2026-13-01T00:00:00Z", "RFC 3339"),
    ("0001-01-01T00:00:00+14:00", ""),
    ("9999-12-31T23:59:59-14:00", ""),
    (1767603600, ""),
    (1e400, ""),
    (True, ""),
]
REMEMBER: list[tuple[str, Any, str]] = [
    *(("/content", text, bound) for text, bound in [*TEXTS, ("x" * 20_001, "20000"), (None, "")]),
    *(("/subject", text, bound) for text, bound in [*TEXTS, ("x" * 501, "500")]),
    *(("/scope", text, bound) for text, bound in [*TEXTS, ("x" * 201, "200"), (None, "string")]),
    *(("/agent", text, bound) for text, bound in [*TEXTS, ("x" * 201, "200")]),
    *(("/valid_from", moment, bound) for moment, bound in TIMES),
    *(("/valid_to", moment, bound) for moment, bound in TIMES),
    *(("/observed_at", moment, bound) for moment, bound in TIMES),
    ("/kind", "digest", "state"),
    ("/kind", "retraction", "state"),
    ("/kind", "STATE", "state"),
    ("/kind", 1, "state"),
    ("/confidence", 1.2, "1"),
    ("/confidence", -0.1, "0"),
    ("/confidence", 90, "1"),
    ("/confidence", "high", "number"),
    ("/confidence", True, "number"),
    ("/confidence", [], "number"),
    ("/tags", "one", "list"),
    ("/tags", ["x"] * 65, "64"),
    ("/tags/0", [""], "1 or more"),
    ("/tags/1", ["a", ZERO_WIDTH], "visible"),
    ("/tags/0", ["x" * 101], "100"),
    ("/tags/0", ["a\0"], "NUL"),
    ("/tags/0", [1], "string"),
    ("/metadata", [], "object"),
    ("/metadata", {"a": "x" * 17_000}, "16384"),
    ("/metadata/a", {"a": "\0"}, "NUL"),
    ("/metadata", {"\0": 1}, "NUL"),
    ("/metadata/a", {"a": LONE}, "surrogate"),
    ("/metadata", nested(60), "deep"),
    ("/metadata", {"a": 10**30}, "integer"),
    ("/source", "user", "object"),
    ("/source/tier", {"tier": "god"}, "system"),
    ("/source/ref", {"ref": ""}, "1 or more"),
    ("/source/ref", {"ref": "x" * 2_001}, "2000"),
    ("/source/quote", {"quote": "x" * 20_001}, "20000"),
    ("/source/rank", {"rank": 1}, "known"),
    ("/supersedes", "x", "list"),
    ("/supersedes/0", ["abc"], "UUID"),
    ("/supersedes/0", [NEVER[:8]], "UUID"),
    ("/supersedes/0", [7], "UUID"),
    ("/supersedes", [NEVER] * 101, "100"),
    ("/reason", "", "1 or more"),
    ("/reason", "x" * 2_001, "2000"),
    ("/evidence", "x" * 20_001, "20000"),
    ("/force", "perhaps", "true"),
    ("/limt", 3, "known"),
    ("/id", NEVER, "known"),
    ("/namespace", "other", "known"),
    ("/superseded_by", NEVER, "known"),
]


def encoded(body: Any) -> bytes:

    return json.dumps(body).encode("utf-8", "surrogatepass")


def send(memory: Memory, path: str, body: Any, method: str = "POST") -> Any:
    """The problem that a JSON body is refused with; a lone surrogate travels as an escape."""
    answer = memory.http.request(method, path, content=encoded(body), headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text)
    assert answer.headers["Content-Type"] == "application/problem+json"
    return answer.json()


def named(problem: Any) -> list[tuple[str, str]]:
    return [(part["pointer"], part["detail"]) for part in problem.get("errors", [])]


def nothing_was_written(memory: Memory) -> bool:
    events = [event for event in memory.all("/v1/audit") if event["fact_id"]]
    return memory.texts() == [] and events == []


# C100, C102
@pytest.mark.parametrize(("pointer", "value", "bound"), REMEMBER, ids=lambda value: str(value)[:30])
def test_a_statement_out_of_bounds_is_refused(memory: Memory, pointer: str, value: Any, bound: str) -> None:
    field = pointer.split("/")[1]

    problem = send(memory, "/v1/facts", {"content": "Fine."} | {field: value})

    pointers = [place for place, _ in named(problem)]
    assert any(place == pointer or place.startswith(f"/{field}") for place in pointers), problem
    assert any(bound.lower() in detail.lower() for _, detail in named(problem)), problem
    assert nothing_was_written(memory)


@pytest.mark.parametrize(("pointer", "value", "bound"), REMEMBER[::7], ids=lambda value: str(value)[:30])
def test_a_batch_item_out_of_bounds_is_named_by_its_index(memory: Memory, pointer: str, value: Any, bound: str) -> None:
    field = pointer.split("/")[1]
    body = {"facts": [{"content": "Fine."}, {"content": "Bad."} | {field: value}]}

    problem = send(memory, "/v1/facts/batch", body)

    assert all(place.startswith(f"/facts/1/{field}") for place, _ in named(problem)), (problem, bound)
    assert nothing_was_written(memory)


@pytest.mark.parametrize("length", [1, 20_000])
def test_texts_up_to_the_bound_are_taken(memory: Memory, length: int) -> None:
    memory.remember("x" * length, status=201)
    memory.remember("é" * length, subject="s" * 500, scope="c" * 200, tags=["t" * 100] * 1, status=201)


# C102
@pytest.mark.parametrize(
    "content",
    [
        " ".join(f"{n:08x}" for n in range(2_200)),
        "w" * 5_000,
        "aGVsbG8gd29ybGQ" * 1_300,
        "日本" * 9_000,
        "👩‍👩‍👧" * 2_000,
        "a-b_c.d/e:" * 2_000,
    ],
    ids=["distinct words", "one word", "base64", "CJK", "emoji", "identifier"],
)
def test_odd_texts_are_kept_whole_and_once(memory: Memory, content: str) -> None:
    fact = memory.fact(content)

    assert fact["content"] == content
    assert memory.remember(content, status=200)["fact"]["id"] == fact["id"]
    assert memory.texts() == [content]


def test_a_subject_of_random_characters_up_to_the_bound_can_be_indexed(memory: Memory) -> None:
    subject = "".join(chr(0x4E00 + n * 37 % 20_000) for n in range(500))

    memory.remember("It holds.", subject=subject, scope=subject[:200], status=201)

    assert memory.texts(subject=subject) == ["It holds."]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"kind": "state"}, "subject_required"),
        ({"supersedes": [NEVER]}, "reason_required"),
        ({"valid_from": "2026-01-05T00:00:00Z", "valid_to": "2026-01-05T00:00:00Z"}, "window_empty"),
        ({"valid_from": "2026-01-05T00:00:00Z", "valid_to": "2026-01-04T00:00:00Z"}, "window_empty"),
    ],
)
def test_members_that_do_not_fit_together_are_refused(memory: Memory, body: dict[str, Any], code: str) -> None:
    problem = send(memory, "/v1/facts", {"content": "Fine."} | body)

    assert [part["code"] for part in problem["errors"]] == [code]
    assert nothing_was_written(memory)


def test_an_end_in_the_past_needs_a_beginning_before_it(memory: Memory) -> None:
    problem = send(memory, "/v1/facts", {"content": "Over.", "valid_to": "2020-01-01T00:00:00Z"})

    assert named(problem)[0][0] == "/valid_to"
    assert nothing_was_written(memory)


def test_an_end_in_the_past_may_follow_what_was_observed_then(memory: Memory) -> None:
    fact = memory.fact("Over.", valid_to="2020-01-02T00:00:00Z", observed_at="2020-01-01T00:00:00Z")

    assert (fact["valid_from"], fact["status"]) == ("2020-01-01T00:00:00Z", "expired")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"7",
        b'"text"',
        b'{"content": NaN}',
        b'{"content": "a", "content": "b"}',
        b'{"content": "\xff"}',
        b"[" * 5_000,
        b'{"content": "a"} trailing',
    ],
)
def test_a_body_that_is_no_statement_is_refused(memory: Memory, body: bytes) -> None:
    answer = memory.http.post("/v1/facts", content=body, headers={"Content-Type": "application/json"})

    assert 400 <= answer.status_code < 500
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert nothing_was_written(memory)


def test_a_body_over_the_limit_is_refused(memory: Memory) -> None:
    answer = memory.http.post("/v1/facts", content=b" " * 3_000_000, headers={"Content-Type": "application/json"})

    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert answer.json()["limit"] < 3_000_000


@pytest.mark.parametrize(
    "body", [{"facts": []}, {"facts": [{"content": "x"}] * 1_001}, {}, {"facts": {}}, {"facts": [None]}]
)
def test_a_batch_holds_one_to_a_thousand_statements(memory: Memory, body: Any) -> None:
    problem = send(memory, "/v1/facts/batch", body)

    assert named(problem)[0][0].startswith("/facts")
    assert nothing_was_written(memory)


def test_a_batch_that_is_not_atomic_stores_the_rest(memory: Memory) -> None:
    items: list[Any] = [{"content": f"Fact {n}."} for n in range(10)]
    items[6] = {"content": ""}
    items[3] = None

    whole = send(memory, "/v1/facts/batch", {"facts": items})
    assert nothing_was_written(memory)
    partly = memory.post("/v1/facts/batch", {"facts": items, "atomic": False}, status=200)

    assert whole["index"] == 3
    assert [item["index"] for item in partly["items"] if item["outcome"] == "rejected"] == [3, 6]
    assert (partly["created"], partly["rejected"]) == (8, 2)
    assert partly["items"][6]["problem"]["errors"][0]["pointer"] == "/facts/6/content"
    assert len(memory.texts()) == 8


# --- Lists -----------------------------------------------------------------------------------------------------

LISTS = ["/v1/facts", "/v1/subjects", "/v1/conflicts", "/v1/links", "/v1/audit", "/v1/keys", "/v1/subjects/x/history"]


# C103
@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("limit", ["0", "-1", "201", "1000000000", "9" * 40, "2.5", "abc", "", "null", "1e2", "NaN"])
def test_a_limit_out_of_bounds_is_refused_everywhere(memory: Memory, path: str, limit: str) -> None:
    answer = memory.http.get(path, params={"limit": limit})

    assert answer.status_code == 422
    assert named(answer.json())[0][0] == "query/limit"


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "!!", "W10", "eyJhIjoxfQ", "é", "W1wiYVwiXQ"])
def test_a_cursor_that_was_not_given_out_is_refused_everywhere(memory: Memory, path: str, cursor: str) -> None:
    answer = memory.http.get(path, params={"cursor": cursor})

    # An empty parameter is one that was not sent.
    assert answer.status_code == (422 if cursor else answer.status_code)
    assert answer.status_code < 500


@pytest.mark.parametrize("path", [*LISTS, "/v1/stats", "/v1/subjects/x"])
def test_an_unknown_parameter_is_refused_everywhere(memory: Memory, path: str) -> None:
    answer = memory.http.get(path, params={"limt": "3", "offset": "-1"})

    assert answer.status_code == 422
    assert {place for place, _ in named(answer.json())} == {"query/limt", "query/offset"}


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/v1/facts", {"scope": ""}),
        ("/v1/facts", {"scope": "x" * 201}),
        ("/v1/facts", {"subject": ZERO_WIDTH}),
        ("/v1/facts", {"kind": "retraction"}),
        ("/v1/facts", {"tier": "god"}),
        ("/v1/facts", {"since": "2026-01-05T09:00:00"}),
        ("/v1/facts", {"since": "yesterday"}),
        ("/v1/facts", {"tag": "x" * 101}),
        ("/v1/facts", {"scope": ["x"] * 101}),
        ("/v1/subjects", {"near": " "}),
        ("/v1/subjects", {"near_misses": "perhaps"}),
        ("/v1/conflicts", {"fact": "abc"}),
        ("/v1/conflicts", {"kind": "quarrel"}),
        ("/v1/links", {"fact": NEVER[:8]}),
        ("/v1/links", {"kind": "loves"}),
        ("/v1/audit", {"fact": "abc"}),
        ("/v1/audit", {"since": "2026-01-05T09:00:00"}),
        ("/v1/audit", {"action": ""}),
        ("/v1/stats", {"scope": ZERO_WIDTH}),
    ],
)
def test_a_filter_out_of_bounds_is_refused(memory: Memory, path: str, params: dict[str, Any]) -> None:
    answer = memory.http.get(path, params=params)

    assert answer.status_code == 422
    assert named(answer.json())[0][0].split("/")[:2] == ["query", next(iter(params))]


@pytest.mark.parametrize("path", ["/v1/facts?subject=%00", "/v1/subjects/%00", "/v1/facts/%ff", "/v1/audit?actor=%00"])
def test_a_url_that_cannot_be_read_is_refused(memory: Memory, path: str) -> None:
    assert memory.http.get(path).status_code in (400, 422)


# --- By id -----------------------------------------------------------------------------------------------------

BY_ID: list[tuple[str, str, Any]] = [
    ("GET", "/v1/facts/{id}", None),
    ("GET", "/v1/facts/{id}/history", None),
    ("POST", "/v1/facts/{id}/supersede", {"content": "New.", "reason": "x"}),
    ("POST", "/v1/facts/{id}/amend", {"content": "New.", "reason": "x"}),
    ("POST", "/v1/facts/{id}/forget", {"reason": "x"}),
    ("POST", "/v1/facts/{id}/restore", {"reason": "x"}),
    ("POST", "/v1/facts/{id}/pin", None),
    ("POST", "/v1/facts/{id}/unpin", None),
    ("POST", "/v1/conflicts/{id}/resolve", {"keep": "both", "reason": "x"}),
    ("POST", "/v1/links/{id}/demote", {"reason": "x"}),
    ("DELETE", "/v1/keys/{id}", None),
]


@pytest.mark.parametrize(("method", "path", "body"), BY_ID)
def test_an_id_that_is_none_is_refused_and_an_unknown_one_not_found(
    memory: Memory, method: str, path: str, body: Any
) -> None:
    for id_ in ("abc", NEVER[:8], "0", "-1", "null", NEVER + "0", "%20", "é"):
        answer = memory.http.request(method, path.format(id=id_), json=body)
        assert answer.status_code == 422, (id_, answer.text)
        assert named(answer.json())[0][0].startswith("path/")
    for id_ in (NEVER, "00000000-0000-0000-0000-000000000000"):
        assert memory.http.request(method, path.format(id=id_), json=body).status_code == 404


REASONED = [(path, body) for _, path, body in BY_ID if body is not None]


@pytest.mark.parametrize(("path", "body"), REASONED)
@pytest.mark.parametrize("reason", ["", "  ", ZERO_WIDTH, "x" * 2_001, "a\0", LONE, 7, None])
def test_a_reason_out_of_bounds_is_refused(memory: Memory, path: str, body: Any, reason: Any) -> None:
    problem = send(memory, path.format(id=NEVER), body | {"reason": reason})

    assert any(place == "/reason" for place, _ in named(problem))


@pytest.mark.parametrize(("path", "body"), REASONED)
def test_an_unknown_member_is_refused(memory: Memory, path: str, body: Any) -> None:
    problem = send(memory, path.format(id=NEVER), body | {"reasons": "x"})

    assert [place for place, _ in named(problem)] == ["/reasons"]


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("/v1/facts/{id}/supersede", {"reason": "x"}, ""),
        ("/v1/facts/{id}/supersede", {"reason": "x", "content": "New.", "by": NEVER}, ""),
        ("/v1/facts/{id}/supersede", {"reason": "x", "by": NEVER, "tags": ["a"]}, ""),
        ("/v1/facts/{id}/supersede", {"reason": "x", "by": "abc"}, "/by"),
        ("/v1/facts/{id}/supersede", {"reason": "x", "content": ""}, "/content"),
        ("/v1/facts/{id}/amend", {"reason": "x"}, "/content"),
        ("/v1/facts/{id}/amend", {"reason": "x", "content": "New.", "folds": ["abc"]}, "/folds/0"),
        ("/v1/facts/{id}/amend", {"reason": "x", "content": "New.", "folds": [NEVER] * 101}, "/folds"),
        ("/v1/facts/{id}/restore", {"reason": "x", "replace": "perhaps"}, "/replace"),
        ("/v1/conflicts/{id}/resolve", {"reason": "x"}, "/keep"),
        ("/v1/conflicts/{id}/resolve", {"reason": "x", "keep": "either"}, "/keep"),
        ("/v1/conflicts/{id}/resolve", {"reason": "x", "keep": None}, "/keep"),
        ("/v1/links", {"kind": "contradicts", "source_id": NEVER}, "/target_id"),
        ("/v1/links", {"kind": "contradicts", "source_id": "abc", "target_id": NEVER}, "/source_id"),
        ("/v1/freshness", {"ids": ["abc"]}, "/ids/0"),
        ("/v1/freshness", {"ids": []}, "/ids"),
        ("/v1/freshness", {}, "/ids"),
    ],
)
def test_a_body_that_says_too_little_or_too_much_is_refused(memory: Memory, path: str, body: Any, pointer: str) -> None:
    problem = send(memory, path.format(id=NEVER), body)

    assert pointer in [place for place, _ in named(problem)]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"description": ""}, "/description"),
        ({"description": "x" * 2_001}, "/description"),
        ({"aliases": "x"}, "/aliases"),
        ({"aliases": ["x"] * 51}, "/aliases"),
        ({"aliases": [ZERO_WIDTH]}, "/aliases/0"),
        ({"aliases": ["x" * 501]}, "/aliases/0"),
        ({"alias": ["x"]}, "/alias"),
    ],
)
def test_a_registration_out_of_bounds_is_refused(memory: Memory, body: Any, pointer: str) -> None:
    problem = send(memory, "/v1/subjects/theme", body, "PUT")

    assert named(problem)[0][0] == pointer
    assert memory.all("/v1/subjects") == []


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_an_idempotency_key_out_of_bounds_is_refused(memory: Memory, key: str) -> None:
    headers = [(b"Idempotency-Key", key.encode()), (b"Content-Type", b"application/json")]

    answer = memory.http.post("/v1/facts", content=b'{"content": "x"}', headers=headers)

    assert answer.status_code in (400, 422)
    assert nothing_was_written(memory)


def test_every_refusal_declares_itself(client_of: Callable[..., Memory]) -> None:
    answer = client_of(roles=["read"]).http.post("/v1/facts", json={"content": "x"})

    assert (answer.status_code, answer.json()["code"]) == (403, "role_forbidden")
    assert set(answer.json()) >= {"type", "title", "status", "detail", "instance", "code", "request_id"}
