"""Consolidation is due where enough statements are new, and is noticed without a look at every fact."""

import asyncio
from datetime import timedelta

import psycopg
import pytest

from app.db import connect
from app.embedded import Cluster
from app.upkeep.consolidation import noticing
from app.upkeep.consolidation.asking import PROMPT_VERSION
from tests.clients import Memory
from tests.openai_server import OpenAIServer
from tests.upkeep.attempting import with_model


def due_in(database: Cluster, memory: Memory, threshold: int = 3) -> list[str]:
    """The scopes of the namespace in which consolidation is due."""

    async def ask() -> list[str]:
        async with (
            connect(database.worker_dsn, size=1, timeout_s=10, statement_timeout_ms=10_000, name="test-due") as db,
            db.reading() as conn,
        ):
            places = await noticing.due(conn, PROMPT_VERSION, threshold, timedelta(0))
        return sorted(scope or "" for namespace, scope in places if namespace == memory.namespace)

    return asyncio.run(ask())


def told(scope: str, count: int, said: str = "stands") -> list[dict[str, str]]:
    return [{"content": f"Crate {n} {said} in {scope}.", "scope": scope} for n in range(count)]


def asked_about(owner: psycopg.Connection[object], memory: Memory, *, scope: str, done: bool = True) -> None:
    """All facts of a scope as if the model had been asked about them."""
    owner.execute(
        "INSERT INTO consolidation_marks (namespace, fact_id, prompt_version, done_at)"
        " SELECT namespace, id, %s, CASE WHEN %s THEN now() END FROM ledger.facts WHERE namespace = %s AND scope = %s",
        [PROMPT_VERSION, done, memory.namespace, scope],
    )


def test_it_is_due_in_each_scope_that_has_enough(memory: Memory, database: Cluster) -> None:
    memory.batch(*told("attic", 3), *told("barn", 2), *told("cellar", 4))

    assert due_in(database, memory) == ["attic", "cellar"]


def test_what_was_asked_about_does_not_count(
    memory: Memory, database: Cluster, owner: psycopg.Connection[object]
) -> None:
    memory.batch(*told("attic", 30))
    asked_about(owner, memory, scope="attic")
    memory.batch(*told("attic", 2, "lies"))

    before = due_in(database, memory)
    memory.batch(*told("attic", 3, "leans"))

    assert (before, due_in(database, memory)) == ([], ["attic"])


def test_an_idle_scope_beside_a_busy_one_is_left_alone(
    memory: Memory, database: Cluster, owner: psycopg.Connection[object]
) -> None:
    memory.batch(*told("attic", 3))
    asked_about(owner, memory, scope="attic")
    memory.batch(*told("barn", 3))

    assert due_in(database, memory) == ["barn"]


def test_a_fact_left_unanswered_makes_it_due(
    memory: Memory, database: Cluster, owner: psycopg.Connection[object]
) -> None:
    memory.batch(*told("attic", 1))
    asked_about(owner, memory, scope="attic", done=False)

    assert due_in(database, memory) == ["attic"]


@pytest.mark.parametrize("kind", ["digest", "retraction"])
def test_what_is_no_statement_does_not_count(memory: Memory, database: Cluster, kind: str) -> None:
    if kind == "retraction":
        for item in memory.batch(*told("shared", 3))["items"]:
            memory.forget(item["fact"]["id"])
    else:
        fern, water = "The office plant is a fern.", "The office plant gets water on Mondays."
        with OpenAIServer() as server:
            server.replies = lambda body: {
                "actions": [
                    {"action": "digest", "sources": ["F1", "F2"], "text": f"{fern[:-1]} and gets water on Mondays."}
                ]
            }
            memory.batch(fern, water)
            with_model(database, server).attempt(memory, "consolidate")

    assert due_in(database, memory, threshold=1) == []
