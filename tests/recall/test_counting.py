"""Recalled facts are counted away from the request."""

import asyncio
import uuid
from typing import Any

import psycopg

from app.db import connect
from app.embedded import Cluster
from app.recall.counting import counting
from tests.clients import Memory


def count(database: Cluster, namespace: str, fact_ids: list[str], *, read_only: bool = False) -> None:
    async def run() -> None:
        async with (
            connect(database.api_dsn, size=1, timeout_s=10, statement_timeout_ms=10_000, name="test") as db,
            counting(db, read_only=read_only) as accesses,
        ):
            accesses.note(namespace, [uuid.UUID(id_) for id_ in fact_ids])

    asyncio.run(run())


def access_count(owner: psycopg.Connection[Any], fact_id: str) -> int:
    row = owner.execute("SELECT access_count FROM fact_use WHERE fact_id = %s", [fact_id]).fetchone()
    assert row
    return int(row[0])


def test_every_recall_counts_once_and_no_weight_changes(
    memory: Memory, database: Cluster, owner: psycopg.Connection[Any]
) -> None:
    fact = memory.fact("The copper kettle hides the spare key.")

    count(database, memory.namespace, [fact["id"], fact["id"]])

    assert access_count(owner, fact["id"]) == 2
    assert memory.get(f"/v1/facts/{fact['id']}")["weight"] == fact["weight"]


def test_a_read_only_service_counts_nothing(memory: Memory, database: Cluster, owner: psycopg.Connection[Any]) -> None:
    fact = memory.fact("The copper kettle hides the spare key.")

    count(database, memory.namespace, [fact["id"]], read_only=True)

    assert access_count(owner, fact["id"]) == 0


def test_a_fact_that_is_gone_does_not_stop_the_others(
    memory: Memory, database: Cluster, owner: psycopg.Connection[Any]
) -> None:
    fact = memory.fact("The copper kettle hides the spare key.")

    count(database, memory.namespace, [str(uuid.uuid4()), fact["id"]])

    assert access_count(owner, fact["id"]) == 1
