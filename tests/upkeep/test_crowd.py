"""Many workers and many triggers at once: nothing is done twice, lost or stuck."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest

from app.db import connect
from app.embedded import Cluster
from app.main import create_app
from app.recall.counting import Accesses
from app.settings import Settings
from tests.clients import Memory, make_key
from tests.conftest import settings_for
from tests.openai_server import OpenAIServer
from tests.serving import running
from tests.upkeep.ageing import age
from tests.working import finished, working

KINDS = ("decay", "prune", "embed_pending", "reembed")


@pytest.fixture
def settings(fresh_database: Cluster) -> Iterator[Settings]:
    with OpenAIServer() as server:
        yield settings_for(
            fresh_database, embedding_url=server.base_url, embedding_model="stub-b", decay_every_h=0, prune_every_h=0
        )


@pytest.fixture
def client(fresh_database: Cluster, namespace: str) -> Iterator[Memory]:
    """A service whose facts have vectors of another model than the workers make."""
    key = make_key(fresh_database, namespace, roles=["read", "write", "curate", "admin"], max_tier="system")
    with running(create_app(settings_for(fresh_database))) as url, Memory(url, key, namespace) as client:
        yield client


def count_accesses(database: Cluster, namespace: str, ids: list[str], times: int) -> None:
    async def count() -> None:
        async with connect(database.api_dsn, size=2, timeout_s=10, statement_timeout_ms=10_000, name="test") as db:
            accesses = Accesses(db)
            for _ in range(times):
                accesses.note(namespace, [UUID(id_) for id_ in ids])
                while not await accesses.write():
                    pass

    asyncio.run(count())


def test_ten_triggers_of_each_job_and_four_workers_over_500_facts(
    client: Memory, fresh_database: Cluster, settings: Settings, namespace: str
) -> None:
    batch = client.post("/v1/facts/batch", {"facts": [{"content": f"Crate {n} is on shelf {n}."} for n in range(500)]})
    ids = [item["fact"]["id"] for item in batch["items"]]
    used, unused = ids[:400], ids[400:]
    age(fresh_database, ids, days=730)
    count_accesses(fresh_database, namespace, used, times=1)
    jobs = [client.post("/v1/jobs", {"kind": kind}, status=202) for _ in range(10) for kind in KINDS]
    before = datetime.now(UTC)

    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(working(settings))
        count_accesses(fresh_database, namespace, used, times=20)
        done = [finished(client, job, seconds=120) for job in jobs]

    assert {(job["status"], job["error"]) for job in done} == {("succeeded", None)}
    assert sum(job["counts"].get("pruned", 0) for job in done) == len(unused)
    assert sum(job["counts"].get("embedded", 0) for job in done) >= len(used)
    with psycopg.connect(fresh_database.owner_dsn) as owner:
        assert counted(owner, namespace) == [(21, "stub-b-64", len(used))]
        stones = owner.execute("SELECT count(*) FROM audit_events WHERE action = 'pruned' AND at > %s", [before])
        assert stones.fetchone() == (len(unused),)


def counted(owner: psycopg.Connection[Any], namespace: str) -> list[Any]:
    """How often facts were accessed, of which profile their vectors are, and how many those are."""
    return owner.execute(
        "SELECT u.access_count, f.embedding_profile, count(*) FROM ledger.facts AS f"
        " JOIN fact_use AS u ON u.namespace = f.namespace AND u.fact_id = f.id"
        " WHERE f.namespace = %s GROUP BY 1, 2",
        [namespace],
    ).fetchall()
