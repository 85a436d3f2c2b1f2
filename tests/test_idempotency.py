"""A request that is sent again gets the first answer, and nothing happens twice."""

from collections.abc import Callable

import pytest

from tests.clients import Memory

KEY = {"Idempotency-Key": "request-1"}


def test_a_repeated_request_gets_the_first_answer(memory: Memory) -> None:
    body = {"content": "Migration ran.", "kind": "event"}
    first = memory.http.post("/v1/facts", json=body, headers=KEY)

    again = memory.http.post("/v1/facts", json=body, headers=KEY)

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert len(memory.current()) == 1


def test_without_a_key_a_repeated_request_happens_twice(memory: Memory) -> None:
    for _ in range(2):
        memory.remember("Migration ran.", kind="event")

    assert len(memory.current()) == 2


def test_a_key_with_another_body_is_refused(memory: Memory) -> None:
    memory.http.post("/v1/facts", json={"content": "One."}, headers=KEY)

    answer = memory.http.post("/v1/facts", json={"content": "Two."}, headers=KEY)

    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    assert answer.json()["errors"][0]["pointer"] == "header/Idempotency-Key"
    assert memory.texts() == ["One."]


def test_a_refused_request_leaves_its_key_free(memory: Memory) -> None:
    fact = memory.fact("Held.")["id"]
    path = f"/v1/facts/{fact}/supersede"
    refused = memory.http.post(path, json={"by": fact, "reason": "x"}, headers=KEY)

    answer = memory.http.post(path, json={"content": "New.", "reason": "x"}, headers=KEY)

    assert (refused.status_code, answer.status_code) == (422, 201)


def test_a_key_belongs_to_one_route(memory: Memory) -> None:
    memory.http.post("/v1/facts", json={"content": "One."}, headers=KEY)

    answer = memory.http.post("/v1/facts/batch", json={"facts": [{"content": "Two."}]}, headers=KEY)

    assert answer.status_code == 200
    assert sorted(memory.texts()) == ["One.", "Two."]


def test_a_key_belongs_to_one_caller(memory: Memory, client_of: Callable[..., Memory], stranger: Memory) -> None:
    event = {"content": "Migration ran.", "kind": "event"}
    callers = [memory, client_of(), stranger]

    answers = [caller.http.post("/v1/facts", json=event, headers=KEY) for caller in callers]

    assert [answer.status_code for answer in answers] == [201, 201, 201]
    assert len({answer.json()["fact"]["id"] for answer in answers}) == 3


# C18
@pytest.mark.parametrize("verb", ["supersede", "amend", "forget"])
def test_a_repeated_retirement_is_one_event(memory: Memory, verb: str) -> None:
    fact = memory.fact("Held.")["id"]
    body = {"reason": "x"} | ({} if verb == "forget" else {"content": "New."})

    answers = [memory.http.post(f"/v1/facts/{fact}/{verb}", json=body, headers=KEY) for _ in range(3)]

    assert answers[0].json() == answers[1].json() == answers[2].json()
    assert answers[0].is_success
    assert len(memory.actions(fact)) == 2


@pytest.mark.parametrize("path", ["/v1/facts", "/v1/facts/batch", "/v1/links"])
def test_the_replayed_answer_is_that_of_the_first_moment(memory: Memory, path: str) -> None:
    one, other = memory.fact("One.")["id"], memory.fact("Other.")["id"]
    body = {
        "/v1/facts": {"content": "New."},
        "/v1/facts/batch": {"facts": [{"content": "New."}]},
        "/v1/links": {"kind": "relates_to", "source_id": one, "target_id": other},
    }[path]
    first = memory.http.post(path, json=body, headers=KEY)
    memory.forget(one)

    again = memory.http.post(path, json=body, headers=KEY)

    assert (again.status_code, again.json()) == (first.status_code, first.json())
