"""Proposals wait for a person where the job is told so, and what is approved goes the way of any write."""

from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

from app.embedded import Cluster
from tests.clients import Memory, make_key
from tests.openai_server import OpenAIServer
from tests.upkeep.attempting import Bench, digesting, handle, proposals, with_model

FERN = "The office plant is a fern."
WATERED = "The office plant gets water on Mondays."
BOTH = "The office plant is a fern and gets water on Mondays."
USED = "The event store runs on DynamoDB."
LEFT = "The event store has moved off DynamoDB to Postgres."
STANDUP = "The stand-up starts at 9:30."


@pytest.fixture
def bench(database: Cluster, server: OpenAIServer) -> Bench:
    return with_model(database, server)


@pytest.fixture
def waiting(memory: Memory, bench: Bench, server: OpenAIServer) -> Any:
    """A digest that waits."""
    memory.remember(FERN)
    memory.remember(WATERED)
    server.replies = digesting(BOTH, FERN, WATERED)
    (proposal,) = proposals(memory, bench.attempt(memory, "consolidate", mode="propose"))
    return proposal


def contradiction(body: Mapping[str, Any]) -> Any:
    claim = {"first": handle(body, USED), "second": handle(body, LEFT), "ended": handle(body, USED)}
    quotes = {"first_quote": "runs on DynamoDB", "second_quote": "moved off DynamoDB"}
    proof = {"reason": "It moved.", "evidence": "has moved off DynamoDB"}
    return {"actions": [{"action": "contradiction"} | claim | quotes | proof]}


def classified(memory: Memory, bench: Bench, server: OpenAIServer, kind: str, subject: str | None) -> Any:
    """The proposal to classify the stand-up."""
    memory.remember(STANDUP)
    memory.remember(FERN)
    server.replies = lambda body: {
        "actions": [{"action": "classify", "fact": handle(body, STANDUP), "kind": kind, "subject": subject}]
    }
    (proposal,) = proposals(memory, bench.attempt(memory, "consolidate"))
    return proposal


def approve(memory: Memory, proposal: Any, **expected: Any) -> Any:
    return memory.post(f"/v1/proposals/{proposal['id']}/approve", {}, **expected)


def test_a_proposal_is_kept_with_its_model_prompt_cost_and_verdict(memory: Memory, waiting: Any) -> None:
    assert memory.texts(kind="digest") == []
    assert waiting["verdict"] == "waiting"
    assert (waiting["model"], waiting["rule"]) == ("scripted", "consolidation/1")
    assert waiting["tokens"] > 0
    assert waiting["content"] == {"text": BOTH}


def test_an_approved_digest_is_written(memory: Memory, waiting: Any) -> None:
    decided = approve(memory, waiting)

    (digest,) = memory.current(kind="digest")
    assert (decided["verdict"], decided["result_id"]) == ("applied", digest["id"])
    assert decided["decided_by"] == "key:tester"
    assert digest["embedding"] == "ready"


def test_a_proposal_is_decided_once(memory: Memory, waiting: Any) -> None:
    approve(memory, waiting)

    problem = approve(memory, waiting, status=409)

    assert (problem["code"], problem["verdict"]) == ("proposal_decided", "applied")
    assert len(memory.current(kind="digest")) == 1


def test_a_rejected_proposal_is_never_carried_out(memory: Memory, waiting: Any) -> None:
    decided = memory.post(f"/v1/proposals/{waiting['id']}/reject", {"reason": "Not worth it."})

    assert (decided["verdict"], decided["reason"]) == ("rejected", "Not worth it.")
    approve(memory, waiting, status=409)
    assert memory.texts(kind="digest") == []


def test_an_approval_looks_at_the_facts_once_more(memory: Memory, waiting: Any) -> None:
    memory.forget(waiting["fact_ids"][0])

    decided = approve(memory, waiting)

    assert (decided["verdict"], decided["reason"]) == ("refused", "a source was retired meanwhile")
    assert memory.texts(kind="digest") == []


def test_a_proposal_loses_its_words_with_a_fact_that_is_removed(
    memory: Memory, waiting: Any, owner: psycopg.Connection[Any]
) -> None:
    with owner.transaction():
        owner.execute("SET LOCAL palimpsest.removing = 'on'")
        owner.execute("DELETE FROM chains WHERE head_id = %s", [waiting["fact_ids"][0]])
        owner.execute("DELETE FROM ledger.facts WHERE id = %s", [waiting["fact_ids"][0]])

    (proposal,) = proposals(memory, {"id": waiting["job_id"]})

    assert (proposal["content"], proposal["verdict"]) == ({}, "refused")


def test_an_approved_retirement_is_a_supersede_by_rule(memory: Memory, bench: Bench, server: OpenAIServer) -> None:
    memory.policy(policy="explicit", consolidate_may_retire=True)
    old, new = memory.fact(USED), memory.fact(LEFT)
    server.replies = contradiction
    (proposal,) = proposals(memory, bench.attempt(memory, "consolidate", mode="propose"))
    assert (proposal["kind"], proposal["verdict"]) == ("retirement", "waiting")

    approve(memory, proposal)

    assert memory.get(f"/v1/facts/{old['id']}", status=410)["head"] == new["id"]


def test_an_approved_contradiction_is_a_conflict(memory: Memory, bench: Bench, server: OpenAIServer) -> None:
    memory.policy(policy="explicit")
    memory.remember(USED)
    memory.remember(LEFT)
    server.replies = contradiction
    (proposal,) = proposals(memory, bench.attempt(memory, "consolidate", mode="propose"))
    assert memory.get("/v1/conflicts")["items"] == []

    approve(memory, proposal)

    assert len(memory.get("/v1/conflicts")["items"]) == 1


def test_a_classification_waits_and_its_approval_writes_the_text_at_its_subject(
    memory: Memory, bench: Bench, server: OpenAIServer
) -> None:
    proposal = classified(memory, bench, server, "state", "Team.Standup.Time")
    assert (proposal["verdict"], proposal["content"]) == ("waiting", {"kind": "state", "subject": "team.standup.time"})

    decided = approve(memory, proposal)

    (state,) = memory.current(subject="team.standup.time")
    assert (state["id"], state["content"], state["kind"]) == (decided["result_id"], STANDUP, "state")
    assert memory.texts().count(STANDUP) == 1
    assert memory.get(f"/v1/facts/{proposal['fact_ids'][0]}", status=410)["head"] == state["id"]


def test_an_approved_event_keeps_its_dates(memory: Memory, bench: Bench, server: OpenAIServer) -> None:
    proposal = classified(memory, bench, server, "event", None)
    note = memory.get(f"/v1/facts/{proposal['fact_ids'][0]}")

    approve(memory, proposal)

    (event,) = memory.current(kind="event")
    assert (event["valid_from"], event["observed_at"]) == (note["valid_from"], note["observed_at"])


@pytest.mark.parametrize(
    ("kind", "subject", "reason"),
    [("state", None, "a state needs a subject"), ("state", "\u200b\u200bx", None), ("note", None, None)],
)
def test_a_classification_that_says_nothing_is_no_proposal(
    memory: Memory, bench: Bench, server: OpenAIServer, kind: str, subject: str | None, reason: str | None
) -> None:
    memory.remember(STANDUP)
    memory.remember(FERN)
    server.replies = lambda body: {
        "actions": [{"action": "classify", "fact": handle(body, STANDUP), "kind": kind, "subject": subject}]
    }

    found = proposals(memory, bench.attempt(memory, "consolidate"), verdict="refused")

    assert [proposal["reason"] for proposal in found] == ([reason] if reason else [])


def test_a_subject_outside_a_closed_vocabulary_is_refused(memory: Memory, bench: Bench, server: OpenAIServer) -> None:
    memory.policy(closed_vocabulary=True)

    proposal = classified(memory, bench, server, "state", "team.standup.time")

    assert (proposal["verdict"], proposal["reason"]) == ("refused", "the subject is not in the vocabulary")


def test_a_proposal_of_another_namespace_or_a_hidden_scope_is_unknown(
    service_url: str, database: Cluster, memory: Memory, waiting: Any
) -> None:
    path = f"/v1/proposals/{waiting['id']}/approve"
    stranger = make_key(database, "somewhere-else", roles=["curate"])
    narrow = make_key(
        database, memory.namespace, name="narrow", roles=["curate"], read_scopes=["team/a"], write_scopes=["team/a"]
    )
    for key in (stranger, narrow):
        with Memory(service_url, key) as client:
            assert client.post(path, {}, status=404)["code"] == "proposal_not_found"


def test_deciding_needs_the_role_curate(service_url: str, database: Cluster, memory: Memory, waiting: Any) -> None:
    writer = make_key(database, memory.namespace, name="writer", roles=["read", "write"])
    with Memory(service_url, writer) as client:
        client.post(f"/v1/proposals/{waiting['id']}/approve", {}, status=403)


def test_proposals_come_in_pages(memory: Memory, bench: Bench, server: OpenAIServer) -> None:
    memory.remember(FERN)
    memory.remember(WATERED)
    server.replies = [{"actions": [{"action": "digest", "sources": ["F9"], "text": BOTH}] * 5}]
    job = bench.attempt(memory, "consolidate")
    seen: list[str] = []
    cursor = None
    while True:
        page = memory.get(f"/v1/jobs/{job['id']}/proposals", limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [proposal["id"] for proposal in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert len(seen) == len(set(seen)) == 5


def test_the_proposals_of_an_unknown_job_are_not_found(memory: Memory) -> None:
    memory.get("/v1/jobs/01890000-0000-7000-8000-000000000000/proposals", status=404)
