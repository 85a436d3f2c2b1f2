"""A state that was written ahead of its time takes effect when its time comes."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from app.db import connect
from app.embedded import Cluster
from app.upkeep.arrivals import settle
from tests.clients import Memory
from tests.upkeep.ageing import age

LATER = datetime.now(UTC) + timedelta(days=30)


def scheduled(memory: Memory, content: str, **fields: Any) -> Any:
    return memory.fact(content, valid_from=LATER.isoformat(), **fields)


def time_passes(database: Cluster, *facts: Any) -> None:
    """Let 31 days go by for these facts, and have the worker look."""
    age(database, [fact["id"] for fact in facts], days=31)
    look(database)


def look(database: Cluster) -> None:
    async def work() -> None:
        async with connect(
            database.worker_dsn, size=2, timeout_s=10, statement_timeout_ms=10_000, name="test-arrivals"
        ) as db:
            await settle(db, datetime(1, 1, 1, tzinfo=UTC))

    asyncio.run(work())


def test_it_retires_what_stood_at_its_address(memory: Memory, database: Cluster) -> None:
    old = memory.fact("Billing runs on Polar.", subject="billing")
    new = scheduled(memory, "Billing runs on Paddle.", subject="billing")

    time_passes(database, old, new)

    assert memory.texts() == ["Billing runs on Paddle."]
    retired = memory.get(f"/v1/facts/{old['id']}", status=410)
    assert retired["head"] == new["id"]
    assert "became valid" in retired["reason"]


@pytest.mark.parametrize(("before", "after"), [("billing", "payments"), ("payments", "billing")])
def test_it_retires_what_stands_at_another_name_of_its_subject(
    memory: Memory, database: Cluster, before: str, after: str
) -> None:
    old = memory.fact("Billing runs on Polar.", subject=before)
    new = scheduled(memory, "Billing runs on Paddle.", subject=after)
    memory.register("billing", aliases=["payments"])

    time_passes(database, old, new)

    assert memory.texts() == ["Billing runs on Paddle."]


def test_before_its_time_it_changes_nothing(memory: Memory, database: Cluster) -> None:
    memory.fact("Billing runs on Polar.", subject="billing")
    scheduled(memory, "Billing runs on Paddle.", subject="billing")

    look(database)

    assert memory.texts() == ["Billing runs on Polar."]


def test_the_retirement_is_the_worker_s_and_names_its_rule(
    memory: Memory, database: Cluster, owner: psycopg.Connection[Any]
) -> None:
    old = memory.fact("Billing runs on Polar.", subject="billing")
    new = scheduled(memory, "Billing runs on Paddle.", subject="billing")

    time_passes(database, old, new)

    row = owner.execute(
        "SELECT actor, action, detail->>'rule' FROM audit_events WHERE fact_id = %s AND other_id = %s",
        [old["id"], new["id"]],
    ).fetchone()
    assert row == ("worker", "superseded", "auto_key/1")


def test_what_a_write_would_only_doubt_it_doubts_as_well(memory: Memory, database: Cluster) -> None:
    old = memory.fact("Billing runs on Polar.", subject="billing", source={"tier": "system"})
    new = scheduled(memory, "Billing runs on Paddle.", subject="billing", source={"tier": "inferred"})

    time_passes(database, old, new)
    look(database)

    assert sorted(memory.texts()) == ["Billing runs on Paddle.", "Billing runs on Polar."]
    (conflict,) = memory.get("/v1/conflicts")["items"]
    assert conflict["kind"] == "lower_tier"


@pytest.mark.parametrize("policy", ["explicit", "suggest"])
def test_where_no_rule_may_retire_nothing_is_retired(memory: Memory, database: Cluster, policy: str) -> None:
    memory.policy(policy=policy)
    old = memory.fact("Billing runs on Polar.", subject="billing")
    new = scheduled(memory, "Billing runs on Paddle.", subject="billing")

    time_passes(database, old, new)

    assert sorted(memory.texts()) == ["Billing runs on Paddle.", "Billing runs on Polar."]


def test_the_latest_of_several_wins_however_late_the_worker_comes(memory: Memory, database: Cluster) -> None:
    first = memory.fact("Billing runs on Polar.", subject="billing")
    second = scheduled(memory, "Billing runs on Paddle.", subject="billing")
    third = memory.fact(
        "Billing runs on Fastspring.", subject="billing", valid_from=(LATER + timedelta(hours=1)).isoformat()
    )

    time_passes(database, first, second, third)

    assert memory.texts() == ["Billing runs on Fastspring."]


def test_a_doubt_that_somebody_settled_is_not_raised_again(memory: Memory, database: Cluster) -> None:
    old = memory.fact("Billing runs on Polar.", subject="billing", source={"tier": "system"})
    new = scheduled(memory, "Billing runs on Paddle.", subject="billing", source={"tier": "inferred"})
    time_passes(database, old, new)
    (conflict,) = memory.get("/v1/conflicts")["items"]
    memory.post(f"/v1/conflicts/{conflict['id']}/resolve", {"keep": "both", "reason": "One for each continent."})

    look(database)

    assert memory.get("/v1/conflicts")["items"] == []
    assert len(memory.texts()) == 2
