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
from app.recall.counting import Accesses
from app.settings import Settings
from tests.clients import Memory
from tests.conftest import served, settings_for
from tests.openai_server import OpenAIServer
from tests.upkeep.ageing import age
from tests.upkeep.attempting import Bench, pairing, proposals
from tests.working import finished, working

KINDS = ("decay", "prune", "embed_pending", "reembed")
ALL_OR_ONE = (None, "shared")
"""Every fact is in one scope: a job for all and a job for that scope work on the same facts, side by side."""


@pytest.fixture
def settings(fresh_database: Cluster, server: OpenAIServer) -> Settings:
    return settings_for(
        fresh_database,
        embedding_url=server.base_url,
        embedding_model="stub-b",
        decay_every_h=0,
        prune_every_h=0,
        review_every_h=0,
    )


@pytest.fixture
def asking(settings: Settings, server: OpenAIServer) -> Settings:
    """Workers that ask a model, which merges what is about one thing."""
    server.replies = pairing
    return settings.model_copy(update={"llm_url": server.base_url, "llm_model": "scripted"})


@pytest.fixture
def client(fresh_database: Cluster, namespace: str) -> Iterator[Memory]:
    """A service whose facts have vectors of another model than the workers make."""
    with served(settings_for(fresh_database), fresh_database, namespace) as client:
        yield client


@pytest.fixture
def asking_client(fresh_database: Cluster, asking: Settings, namespace: str) -> Iterator[Memory]:
    """A service beside workers that ask a model."""
    with served(asking, fresh_database, namespace) as client:
        client.policy(policy="explicit")
        yield client


def by_a_crowd(client: Memory, settings: Settings, kind: str, **wanted: Any) -> list[Any]:
    """Ten jobs of a kind once four workers have done them, half of them for the one scope that there is."""
    jobs = [
        client.post("/v1/jobs", {"kind": kind, "scope": scope} | wanted, status=202)
        for _ in range(5)
        for scope in ALL_OR_ONE
    ]
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(working(settings))
        done = [finished(client, job, seconds=120) for job in jobs]
    assert {(job["status"], job["error"]) for job in done} == {("succeeded", None)}
    return done


def pairs(count: int) -> list[str]:
    """Statements in pairs about one thing each."""
    return [f"Lamp{n} piano{n} {said}." for n in range(count // 2) for said in (f"stands in room{n}", f"is owner{n}'s")]


def sources_of_digests(client: Memory, database: Cluster) -> list[str]:
    """The facts that current digests were made from, each as often as it is in one."""
    with psycopg.connect(database.owner_dsn) as owner:
        rows = owner.execute(
            "SELECT l.target_id::text FROM links AS l JOIN facts_active AS d USING (namespace)"
            " WHERE l.namespace = %s AND l.kind = 'derived_from' AND l.source_id = d.id AND d.kind = 'digest'",
            [client.namespace],
        ).fetchall()
    return [row[0] for row in rows]


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


def test_ten_consolidations_put_each_of_500_facts_into_one_digest(
    asking_client: Memory, fresh_database: Cluster, asking: Settings
) -> None:
    texts = pairs(500)
    asking_client.batch(*texts)

    done = by_a_crowd(asking_client, asking, "consolidate")

    notes = asking_client.current(kind="note", limit=200)
    assert sorted(fact["content"] for fact in notes) == sorted(texts)
    assert sorted(sources_of_digests(asking_client, fresh_database)) == sorted(fact["id"] for fact in notes)
    assert sum(job["counts"].get("digest_applied", 0) for job in done) <= 250


def test_ten_rederivations_write_each_stale_digest_anew_once(
    asking_client: Memory, fresh_database: Cluster, asking: Settings, server: OpenAIServer
) -> None:
    client = asking_client
    client.batch(*pairs(500))
    Bench(fresh_database, asking, server).attempt(client, "consolidate")
    before = client.current(kind="digest", limit=200)
    moved = [fact for fact in client.current(kind="note", limit=200) if "stands" in fact["content"]][:60]
    client.batch(*[replaced(fact, fact["content"].replace("stands", "now stands")) for fact in moved])
    stale = {fact["id"] for fact in before} - {fact["id"] for fact in client.current(kind="digest", limit=200)}

    # Consolidation would by itself put what is new into digests of its own.
    by_a_crowd(client, asking.model_copy(update={"consolidate_min_facts": 1_000}), "rederive")

    written = {fact["id"] for fact in client.current(kind="digest", limit=200)} - {fact["id"] for fact in before}
    heads = [client.get(f"/v1/facts/{digest}", status=410)["head"] for digest in stale]
    assert (len(heads), sorted(heads)) == (len(moved), sorted(written))
    notes = client.current(kind="note", limit=200)
    assert sorted(sources_of_digests(client, fresh_database)) == sorted(fact["id"] for fact in notes)


def replaced(fact: Any, content: str) -> Any:
    return {"content": content, "supersedes": [fact["id"]], "reason": "It changed."}


def test_ten_reviews_take_each_of_125_wrong_retirements_back_once(client: Memory, settings: Settings) -> None:
    client.policy(policy="explicit")
    held = [item["fact"] for item in client.batch(*[f"Lamp{n} piano{n} is at {n}:30." for n in range(250)])["items"]]
    wrong, right = held[:125], held[125:]
    added = [replaced(fact, f"We also tuned lamp{n} piano{n}.") for n, fact in enumerate(wrong)]
    client.batch(*added, *[replaced(fact, fact["content"].replace(":30", ":00")) for fact in right])

    done = by_a_crowd(client, settings, "review", apply=True)

    current = {fact["id"] for fact in client.current(limit=200)}
    assert len(current) == 375
    assert {fact["id"] for fact in wrong} <= current
    restored = client.all("/v1/audit", action="restored", limit=200)
    assert sorted(event["fact_id"] for event in restored) == sorted(fact["id"] for fact in wrong)
    assert sum(job["counts"].get("taken_back", 0) for job in done) == len(wrong)
    verdicts = [made["verdict"] for job in done for made in proposals(client, job)]
    assert verdicts == ["applied"] * len(wrong)
