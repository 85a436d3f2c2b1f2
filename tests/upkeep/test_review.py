"""Review takes up every retirement that stands, and takes back those that do not stand the test."""

from typing import Any

import psycopg
import pytest

from app.embedded import Cluster
from tests.clients import Memory
from tests.conftest import settings_for
from tests.openai_server import OpenAIServer
from tests.upkeep.attempting import Bench, proposals, with_model
from tests.working import findings

POSTGRES = "The event store runs on Postgres."
REPLICA = "We also added a read replica to the event store."


@pytest.fixture
def bench(database: Cluster) -> Bench:
    return Bench(database, settings_for(database))


def retire(memory: Memory, old: str, new: str, **more: Any) -> tuple[Any, Any]:
    """Two facts, the first retired by the second on somebody's word."""
    memory.policy(policy="explicit")
    held = memory.fact(old)
    return held, memory.supersede(held["id"], content=new, **more)["fact"]


def checks(memory: Memory, job: Any) -> list[list[str]]:
    return [found["detail"]["checks"] for found in findings(memory, job)]


@pytest.mark.parametrize(
    ("old", "new", "evidence", "found"),
    [
        (POSTGRES, REPLICA, None, ["only_adds"]),
        (POSTGRES, f"{REPLICA} It helps.", "also added a read replica", ["only_adds"]),
        (POSTGRES, "We're still on Postgres for the event store.", None, ["only_continues"]),
        (
            "We were planning the migration to Postgres.",
            "The migration to Postgres is running.",
            None,
            ["only_develops"],
        ),
    ],
)
def test_what_is_added_continued_or_developed_ends_nothing(
    memory: Memory, bench: Bench, old: str, new: str, evidence: str | None, found: list[str]
) -> None:
    retire(memory, old, new, **({"evidence": evidence} if evidence else {}))

    job = bench.attempt(memory, "review")

    assert checks(memory, job) == [found]
    assert job["counts"]["failing"] == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The event store runs on DynamoDB.", "We've moved off DynamoDB entirely for the event store."),
        ("The stand-up is at 9:30.", "The stand-up is at 9:00."),
        ("The push gate blocks the default branch.", "The push gate no longer blocks the default branch."),
        ("HQ is in Bergen.", "HQ is in Aarhus, and it also has a canteen."),
    ],
)
def test_a_state_that_ended_stands_the_test(memory: Memory, bench: Bench, old: str, new: str) -> None:
    retire(memory, old, new)

    job = bench.attempt(memory, "review")

    assert checks(memory, job) == []
    assert job["counts"] == {"reviewed": 1}


def test_a_retirement_by_key_stands_the_test(memory: Memory, bench: Bench) -> None:
    memory.remember("The stand-up is at 9:30.", subject="standup.time")
    memory.remember("The stand-up is at 9:00.", subject="standup.time")

    job = bench.attempt(memory, "review")

    assert job["counts"] == {"reviewed": 1}


def test_what_was_forgotten_with_a_reason_stands_the_test(memory: Memory, bench: Bench) -> None:
    memory.forget(memory.fact(POSTGRES)["id"], reason="We also forgot why.")

    job = bench.attempt(memory, "review")

    assert job["counts"] == {"reviewed": 1}


def test_evidence_that_is_not_there_and_a_lost_detail_fail(
    memory: Memory, bench: Bench, owner: psycopg.Connection[Any]
) -> None:
    memory.policy(policy="explicit")
    held = memory.fact("The stand-up is at 9:30 in the Oak room.", subject="standup")
    memory.supersede(held["id"], content="The stand-up is at 9:00.")
    owner.execute("UPDATE links SET rule = 'auto_key/1', evidence = 'moved' WHERE namespace = %s", [memory.namespace])

    job = bench.attempt(memory, "review")

    assert checks(memory, job) == [["evidence_not_verbatim", "detail_dropped"]]


def test_without_apply_nothing_changes_and_the_failing_ones_wait(memory: Memory, bench: Bench) -> None:
    old, new = retire(memory, POSTGRES, REPLICA)

    job = bench.attempt(memory, "review")

    (proposal,) = proposals(memory, job)
    assert (proposal["kind"], proposal["verdict"]) == ("demotion", "waiting")
    assert proposal["fact_ids"] == [old["id"], new["id"]]
    assert memory.texts() == [REPLICA]


def test_apply_demotes_the_link_and_brings_the_fact_back(memory: Memory, bench: Bench) -> None:
    old, _ = retire(memory, POSTGRES, REPLICA)

    job = bench.attempt(memory, "review", apply=True)

    assert set(memory.texts()) == {POSTGRES, REPLICA}
    assert job["counts"]["taken_back"] == 1
    (event,) = memory.get("/v1/audit", action="restored", fact=old["id"])["items"]
    assert event["actor"] == "worker:review"
    assert proposals(memory, job)[0]["verdict"] == "applied"


def test_a_second_review_finds_nothing_left(memory: Memory, bench: Bench) -> None:
    retire(memory, POSTGRES, REPLICA)
    bench.attempt(memory, "review", apply=True)

    job = bench.attempt(memory, "review", apply=True)

    assert job["counts"] == {}


def test_a_fact_whose_address_is_taken_stays_retired_and_is_listed(memory: Memory, bench: Bench) -> None:
    memory.policy(policy="explicit")
    held = memory.fact(POSTGRES, subject="event.store")
    memory.supersede(held["id"], content=REPLICA)

    job = bench.attempt(memory, "review", apply=True)

    assert memory.texts() == [REPLICA]
    (proposal,) = proposals(memory, job)
    assert proposal["verdict"] == "refused"
    assert "address_taken" in proposal["reason"]


def test_a_dry_run_lists_and_changes_nothing(memory: Memory, bench: Bench) -> None:
    retire(memory, POSTGRES, REPLICA)

    job = bench.attempt(memory, "review", dry_run=True, apply=True)

    assert [found["action"] for found in findings(memory, job)] == ["would_demote"]
    assert proposals(memory, job) == []
    assert memory.texts() == [REPLICA]


def test_reviewing_again_does_not_put_a_waiting_demotion_up_twice(
    memory: Memory, bench: Bench, owner: psycopg.Connection[Any]
) -> None:
    retire(memory, POSTGRES, REPLICA)
    bench.attempt(memory, "review")

    bench.attempt(memory, "review")

    kept = owner.execute("SELECT count(*) FROM proposals WHERE namespace = %s", [memory.namespace]).fetchone()
    assert kept == (1,)


def test_a_demotion_may_be_approved(memory: Memory, bench: Bench) -> None:
    retire(memory, POSTGRES, REPLICA)
    (proposal,) = proposals(memory, bench.attempt(memory, "review"))

    decided = memory.post(f"/v1/proposals/{proposal['id']}/approve", {})

    assert decided["verdict"] == "applied"
    assert set(memory.texts()) == {POSTGRES, REPLICA}


def test_a_rejected_demotion_is_left_alone_from_then_on(memory: Memory, bench: Bench) -> None:
    retire(memory, POSTGRES, REPLICA)
    (proposal,) = proposals(memory, bench.attempt(memory, "review"))
    memory.post(f"/v1/proposals/{proposal['id']}/reject", {"reason": "It did end."})

    job = bench.attempt(memory, "review", apply=True)

    assert job["counts"] == {"reviewed": 1, "kept_by_decision": 1}
    assert memory.texts() == [REPLICA]


def test_one_scope_may_be_reviewed_alone(memory: Memory, bench: Bench) -> None:
    retire(memory, POSTGRES, REPLICA)

    job = bench.attempt(memory, "review", scope="elsewhere")

    assert job["counts"] == {}


# --- With a model ----------------------------------------------------------------------------------------------


def test_a_model_s_doubt_about_somebody_s_word_waits_even_with_apply(
    memory: Memory, database: Cluster, server: OpenAIServer
) -> None:
    retire(memory, "The stand-up is at 9:30.", "The stand-up is at 9:00.")
    server.replies = [{"ended": False, "quote": None}]

    job = with_model(database, server).attempt(memory, "review", apply=True)

    (proposal,) = proposals(memory, job)
    assert (proposal["verdict"], proposal["model"]) == ("waiting", "scripted")
    assert memory.texts() == ["The stand-up is at 9:00."]


def test_a_model_s_doubt_takes_back_what_only_a_rule_retired(
    memory: Memory, database: Cluster, server: OpenAIServer
) -> None:
    memory.policy(policy="auto_inferred")
    memory.remember("The stand-up is at 9:30.")
    memory.remember("The stand-up is at 9:00.")
    assert len(memory.current()) == 1
    server.replies = [{"ended": False, "quote": None}]

    with_model(database, server).attempt(memory, "review", apply=True)

    assert len(memory.current()) == 2


@pytest.mark.parametrize(
    "reply", [{"ended": True, "quote": "at 9:00"}, {"ended": True, "quote": "it moved"}, {"ended": "no"}, "nonsense"]
)
def test_a_model_that_agrees_or_cannot_be_read_changes_nothing(
    memory: Memory, database: Cluster, server: OpenAIServer, reply: Any
) -> None:
    retire(memory, "The stand-up is at 9:30.", "The stand-up is at 9:00.")
    server.replies = [reply]

    job = with_model(database, server).attempt(memory, "review", apply=True)

    assert job["status"] == "succeeded"
    assert proposals(memory, job) == []
    assert memory.texts() == ["The stand-up is at 9:00."]


def test_the_budget_ends_the_asking_and_not_the_review(memory: Memory, database: Cluster, server: OpenAIServer) -> None:
    for room in ("Oak", "Elm", "Ash"):
        retire(memory, f"The {room} room seats 4.", f"The {room} room seats 6.")
    server.replies = [{"ended": True, "quote": "seats 6"}]

    job = with_model(database, server, llm_calls_per_run=1).attempt(memory, "review")

    assert job["counts"] == {"reviewed": 3, "stopped": 1}
    assert job["calls"] == 1
