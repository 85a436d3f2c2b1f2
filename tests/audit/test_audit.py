"""Every change of state leaves an event, which nobody changes and only those may read who may read the facts."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.clients import Memory

MakeClient = Callable[..., Memory]


def test_every_change_leaves_an_event_with_its_request(memory: Memory) -> None:
    answer = memory.http.post("/v1/facts", json={"content": "Held."}, headers={"X-Request-ID": "request-7"})
    fact = answer.json()["fact"]["id"]

    (event,) = memory.all("/v1/audit", fact=fact)

    assert (event["action"], event["actor"], event["request_id"]) == ("remembered", "key:tester", "request-7")
    assert (event["scope"], event["detail"]) == ("shared", {"kind": "note", "tier": "observed"})


def test_a_life_is_told_in_order(memory: Memory) -> None:
    fact = memory.fact("Held.", subject="it")["id"]
    memory.remember("held", subject="it")
    memory.post(f"/v1/facts/{fact}/pin")
    memory.post(f"/v1/facts/{fact}/unpin")
    memory.forget(fact)
    memory.restore(fact)
    new = memory.supersede(fact, content="New.")["fact"]["id"]

    assert memory.actions(fact) == [
        "remembered",
        "reaffirmed",
        "pinned",
        "unpinned",
        "forgotten",
        "restored",
        "superseded",
    ]
    assert memory.all("/v1/audit", fact=fact, action="superseded")[0]["other_id"] == new


def test_what_was_refused_leaves_no_event(memory: Memory) -> None:
    fact = memory.fact("Held.")["id"]

    memory.supersede(fact, by=fact, status=422)
    memory.supersede(fact, content="New.", evidence="elsewhere", status=422)

    assert [event["action"] for event in memory.all("/v1/audit") if event["fact_id"]] == ["remembered"]


def test_the_trail_is_filtered_and_paged(memory: Memory) -> None:
    for scope in ("a", "b"):
        for n in range(3):
            memory.fact(f"Fact {n}.", scope=scope)

    everything = memory.all("/v1/audit", action="remembered", limit=2)

    assert [event["id"] for event in everything] == sorted((e["id"] for e in everything), reverse=True)
    assert len(everything) == 6
    assert len(memory.all("/v1/audit", scope="a")) == 3
    assert len(memory.all("/v1/audit", scope=["a", "b"])) == 6
    assert memory.all("/v1/audit", actor="key:nobody") == []
    assert memory.all("/v1/audit", since="2999-01-01T00:00:00Z") == []
    since = everything[1]["at"]
    assert {e["id"] for e in memory.all("/v1/audit", since=since)} == {e["id"] for e in everything[:2]}


def test_events_about_the_namespace_have_no_scope(memory: Memory) -> None:
    memory.policy(policy="suggest")

    (event,) = memory.all("/v1/audit", action="namespace_changed")

    assert (event["scope"], event["fact_id"], event["detail"]) == (None, None, {"policy": "suggest"})
    assert "namespace_changed" not in [e["action"] for e in memory.all("/v1/audit", scope="shared")]


@pytest.mark.parametrize(("roles", "status"), [(["read", "write"], 403), (["curate"], 200), (["admin"], 200)])
def test_reading_the_trail_takes_a_role_for_it(client_of: MakeClient, roles: list[str], status: int) -> None:
    client_of(roles=roles).get("/v1/audit", status=status)


def test_the_trail_holds_no_text_of_a_fact(memory: Memory) -> None:
    fact = memory.fact("canary-8842 sleeps.", subject="it")["id"]
    memory.supersede(fact, content="canary-8842 wakes.", evidence="canary-8842")
    memory.policy(policy="suggest")
    memory.remember("canary-8842 eats.", subject="it", kind="state")

    assert "canary-8842" not in memory.http.get("/v1/audit").text


@pytest.mark.parametrize(
    "statement",
    ["UPDATE audit_events SET actor = 'x'", "DELETE FROM audit_events", "TRUNCATE audit_events"],
)
def test_even_the_owner_cannot_change_the_trail(memory: Memory, owner: psycopg.Connection[Any], statement: Any) -> None:
    memory.fact("Held.")

    with pytest.raises(psycopg.errors.RestrictViolation):
        owner.execute(statement)
