"""What decay, pruning and re-embedding cost: against plain SQL, and those who recall meanwhile.

    python -m bench.upkeep [--facts 100000] [--rounds 5]

The floor of decay is one UPDATE of all weights, that of a prune dry run one INSERT of the ids that are unused,
unpinned, uncontested and followed by nothing; both sides run in turns, with every weight due for a change. Recall is
asked over HTTP by four clients, idle and while each job runs, by a service with its worker inside. A fifth of the
facts has vectors of another model, so that re-embedding has something to do.
"""

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from uuid import UUID

import httpx
import psycopg
from pgvector.psycopg import register_vector
from uuid_utils.compat import uuid7

from app import embedded
from app.analyzer import analyze, tsvector_literal
from app.db import Database, connect
from app.embedding import LocalEmbedder
from app.schema import migrate
from app.settings import Settings
from app.upkeep import queries
from app.upkeep.decay import decay
from app.upkeep.jobs import Handler, JobRun
from app.upkeep.pruning import prune
from bench.service import service
from bench.writing import PROFILE, sentences

CLIENTS = 4
RECALLS = 400
HALF_LIFE_H = 720.0
_FACT = """
    INSERT INTO facts_active (namespace, id, chain_id, scope, kind, content, content_hash, source_tier, tags, metadata,
        valid_from, observed_at, recorded_at, embedding_profile, embedding, terms, term_length)
    VALUES ('default', %(id)s, %(id)s, 'shared', 'note', %(text)s, sha256(convert_to(%(text)s, 'UTF8')), 'observed',
        '{}', '{}', %(at)s, %(at)s, %(at)s, %(profile)s, %(vector)s, %(terms)s::tsvector, %(length)s)
"""
_USE = """
    INSERT INTO fact_use (namespace, fact_id, last_observed_at, last_accessed_at)
    VALUES ('default', %(id)s, %(at)s, %(used)s)
"""
_DECAY_FLOOR = """
    UPDATE fact_use AS u SET weight = exp(-ln(2.0::float8)
        * extract(epoch FROM now() - coalesce(u.last_accessed_at, f.recorded_at))::float8 / 3600 / 720)
    FROM facts_history AS f
    WHERE u.namespace = 'default' AND f.namespace = u.namespace AND f.id = u.fact_id AND NOT u.pinned
"""
_PRUNE_FLOOR = """
    INSERT INTO job_findings (namespace, run_id, action, fact_id)
    SELECT 'default', '00000000-0000-0000-0000-000000000000', 'prune', f.id
    FROM fact_use AS u JOIN facts_history AS f ON f.namespace = u.namespace AND f.id = u.fact_id
    WHERE u.namespace = 'default' AND NOT u.pinned AND f.recorded_at < now() - interval '30 days'
        AND exp(-ln(2.0::float8) * extract(epoch FROM now() - coalesce(u.last_accessed_at, f.recorded_at))::float8
            / 3600 / 720) < 0.01
        AND NOT EXISTS (SELECT FROM links AS l WHERE l.namespace = 'default' AND l.kind = 'contradicts'
            AND l.resolved_at IS NULL AND l.demoted_at IS NULL AND (l.source_id = f.id OR l.target_id = f.id))
        AND NOT EXISTS (SELECT FROM facts_history AS g WHERE g.namespace = 'default' AND g.superseded_by = f.id)
"""


def fill(dsn: str, facts: int) -> list[str]:
    """Facts recorded and last used at some time in the past two years; their texts."""
    rng, embedder, now = random.Random(1), LocalEmbedder(), datetime.now(UTC)
    texts = sentences(facts, 1)
    vectors = asyncio.run(embedder.embed_documents(texts))
    with psycopg.connect(dsn, autocommit=True) as conn:
        register_vector(conn)
        for start in range(0, facts, 1_000):
            rows = []
            for text, vector in zip(texts[start : start + 1_000], vectors[start : start + 1_000], strict=True):
                terms = analyze(text)
                at = now - timedelta(days=rng.uniform(0, 730))
                rows.append({
                    "id": uuid7(),
                    "text": text,
                    "at": at,
                    "used": rng.choice([None, now - (now - at) * rng.random()]),
                    "profile": PROFILE if rng.random() < 0.8 else "another-model-256",
                    "vector": vector,
                    "terms": tsvector_literal(terms),
                    "length": terms.length,
                })  # fmt: skip
            with conn.transaction(), conn.cursor() as cursor:
                cursor.executemany(_FACT, rows)
                cursor.executemany(_USE, rows)
        # Built at once, the index is ready sooner than if every row went into it.
        conn.execute("SELECT register_embedding_profile(%s, 256)", (PROFILE,))
    return texts


async def against_the_floor(worker_dsn: str, superuser_dsn: str, rounds: int) -> None:
    settings = Settings(_env_file=None)
    async with connect(worker_dsn, size=4, timeout_s=30, statement_timeout_ms=600_000, name="bench") as database:
        await compare("decay", _DECAY_FLOOR, decay, database, settings, superuser_dsn, rounds)
        await compare("prune dry run", _PRUNE_FLOOR, prune, database, settings, superuser_dsn, rounds)


async def compare(
    name: str, floor: str, handler: Handler, database: Database, settings: Settings, superuser_dsn: str, rounds: int
) -> None:
    taken: dict[str, list[float]] = {"floor": [], "ours": []}
    for _ in range(rounds):
        for side, seconds in taken.items():
            with psycopg.connect(superuser_dsn, autocommit=True) as superuser:
                superuser.execute("UPDATE fact_use SET weight = 1")
                superuser.execute("VACUUM ANALYZE fact_use")
            run = await new_run(database, settings, dry_run=handler is prune)
            started = time.perf_counter()
            if side == "ours":
                await handler(run)
            else:
                async with database.transaction() as conn:
                    await conn.execute(floor.encode())
            seconds.append(time.perf_counter() - started)
    plain, ours = (statistics.median(taken[side]) for side in ("floor", "ours"))
    print(f"{name:<14} {plain * 1e3:8.0f} ms plain SQL, {ours * 1e3:8.0f} ms ours: {ours / plain:.2f} times")


async def new_run(database: Database, settings: Settings, *, dry_run: bool) -> JobRun:
    values = {
        "namespace": "default",
        "id": uuid7(),
        "kind": "prune",
        "scope": None,
        "dry_run": dry_run,
        "automatic": False,
        "parameters": {},
        "requested_by": "bench",
        "request_id": None,
    }
    async with database.transaction() as conn:
        await queries.add_run(conn, values)
        await conn.execute("UPDATE job_runs SET status = 'cancelled', finished_at = now()")
    return JobRun(
        "default", UUID(str(values["id"])), "prune", None, dry_run, {}, 1, database, settings, LocalEmbedder()
    )


def beside_recall(url: str, texts: list[str]) -> None:
    with httpx.Client(base_url=url, timeout=120) as client:
        recall_times(url, texts, lambda: False)
        idle = [p95(recall_times(url, texts, lambda: False))]
        during: dict[str, float] = {}
        for kind in ("decay", "prune", "reembed"):
            with going_on(client, kind) as (running, rounds):
                busy = p95(recall_times(url, texts, running))
            during[f"{kind} ({rounds[0]} runs)"] = busy
        idle.append(p95(recall_times(url, texts, lambda: False)))
    print(f"recall p95, idle: {idle[0] * 1e3:.1f} ms before the jobs, {idle[1] * 1e3:.1f} ms after them")
    for kind, busy in during.items():
        print(f"{f'recall during {kind}':<28} p95 {busy * 1e3:7.1f} ms: {busy / min(idle):.2f} times the lower one")


@contextmanager
def going_on(client: httpx.Client, kind: str) -> Iterator[tuple[Callable[[], bool], list[int]]]:
    """The job, begun again as soon as it ends, until the block ends."""
    stop, rounds = Event(), [0]

    def keep_on() -> None:
        while not stop.is_set():
            job = client.post("/v1/jobs", json={"kind": kind, "dry_run": kind == "prune"}).raise_for_status().json()
            while job["status"] in ("queued", "running") and not stop.is_set():
                time.sleep(0.1)
                job = client.get(f"/v1/jobs/{job['id']}").json()
            rounds[0] += job["status"] == "succeeded"

    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(keep_on)
        try:
            yield lambda: rounds[0] == 0, rounds
        finally:
            stop.set()
            going.result()


def recall_times(url: str, texts: list[str], more: Callable[[], bool]) -> list[float]:
    """Seconds of recalls by several clients at once: so many at least, and as many as fit while there is `more`."""

    def ask(seed: int) -> list[float]:
        rng = random.Random(seed)
        taken: list[float] = []
        with httpx.Client(base_url=url, timeout=60) as client:
            while len(taken) < RECALLS // CLIENTS or (more() and len(taken) < 50 * RECALLS):
                words = " ".join(rng.sample(rng.choice(texts).split(), 5))
                started = time.perf_counter()
                client.post("/v1/recall", json={"query": words}).raise_for_status()
                taken.append(time.perf_counter() - started)
        return taken

    with ThreadPoolExecutor(CLIENTS) as pool:
        return [seconds for taken in pool.map(ask, range(CLIENTS)) for seconds in taken]


def p95(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=20)[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    os.environ |= {"DECAY_EVERY_H": "0", "PRUNE_EVERY_H": "0", "LOG_LEVEL": "warning"}
    with tempfile.TemporaryDirectory(prefix="palimpsest-bench-") as folder:
        data_dir = Path(folder) / "data"
        with embedded.running(data_dir) as cluster:
            migrate(cluster.owner_dsn)
            started = time.perf_counter()
            texts = fill(cluster.api_dsn, given.facts)
            print(f"{given.facts} facts written in {time.perf_counter() - started:.0f} s")
            asyncio.run(against_the_floor(cluster.worker_dsn, cluster.superuser_dsn, given.rounds))
            # As autovacuum does within a minute, and not in the middle of the measurement.
            with psycopg.connect(cluster.owner_dsn, autocommit=True) as owner:
                owner.execute("VACUUM ANALYZE")
            with service(None, data_dir) as url:
                beside_recall(url, texts)


if __name__ == "__main__":
    main()
