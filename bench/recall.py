"""How fast is recall? Over HTTP, next to the same statements run from psycopg, in one run.

    python -m bench.recall [--facts 18000] [--rounds 200]

A service with an embedded database is started and filled over HTTP with facts of our own making (people, places, works,
services). Then the same questions are asked one at a time, as the statements alone, in batches of 32, and with hops.
"""

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

import httpx
import psycopg

from app import embedded
from app.analyzer import query_words
from app.db import Connection, connect
from app.embedded import Cluster
from app.embedding import LocalEmbedder
from app.recall import arms, queries
from app.recall.question import question
from app.recall.search import Direction, Sought, Wanted, corpus_of, is_cheaper_exactly, statement_of
from app.recall.sightings import uuid_of
from bench.service import service

BATCH, QUESTIONS, K = 1_000, 100, 8
_NAMES = "Aino Bela Chidi Dilnoza Emre Farida Goran Hana Ivo Jamila Kofi Lena Mateo Nadia Omar Priya Rosa".split()
_SYLLABLES = "ka lo mi ra ten vor sel bri dun pal gor nis tha wex jol fre".split()
_QUALITIES = "Silent Golden Hollow Distant Broken Crimson Last Paper Winter Salt".split()
_THINGS = "River House Garden Engine Harbor Mirror Letter Forest Crown Bridge".split()
_STATEMENTS = (
    ("{p} is married to {q}.", "who is the spouse of {p}"),
    ("{w} was written by {p}.", "author of {w}"),
    ("{p} works for the water office of {l}.", "where does {p} work"),
    ("{w} was first performed in {l}.", "where was {w} first performed"),
    ("The chief engineer of {l} is {p}.", "who is chief engineer in {l}"),
    ("The depot at {l} opens at {h}:30.", "when does the {l} depot open"),
    ("Deploys of {s} to {l} run from branch release/{v}.", "which branch deploys {s} to {l}"),
    ("The on-call rota of {s} starts with {p} in week {h}.", "who is on call for {s} in week {h}"),
)


class World:
    """Draws facts and questions about them; the same seed draws the same ones."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def word(self, syllables: int = 3) -> str:
        return "".join(self.draw.choices(_SYLLABLES, k=syllables)).capitalize()

    def statement(self) -> tuple[str, str]:
        """A fact and a question that it answers."""
        draw = self.draw
        fact, asked = draw.choice(_STATEMENTS)
        slots = {
            "p": f"{draw.choice(_NAMES)} {self.word()}",
            "q": f"{draw.choice(_NAMES)} {self.word()}",
            "w": f"The {draw.choice(_QUALITIES)} {draw.choice(_THINGS)} of {self.word()}",
            "l": self.word(),
            "h": draw.randrange(1, 24),
            "s": f"{self.word(2).lower()}-api",
            "v": f"{draw.randrange(9)}.{draw.randrange(30)}",
        }
        return fact.format(**slots), asked.format(**slots)


def fill(client: httpx.Client, statements: list[tuple[str, str]]) -> float:
    """Write the facts; how many a second."""
    started = time.perf_counter()
    for at in range(0, len(statements), BATCH):
        facts = [{"content": fact} for fact, _ in statements[at : at + BATCH]]
        client.post("/v1/facts/batch", json={"facts": facts, "atomic": False}).raise_for_status()
    return len(statements) / (time.perf_counter() - started)


def timed(rounds: int, act: Callable[[int], object]) -> list[float]:
    """Milliseconds of each round, after a tenth of them unmeasured."""
    for n in range(rounds // 10):
        act(n)
    times = []
    for n in range(rounds):
        started = time.perf_counter()
        act(n)
        times.append((time.perf_counter() - started) * 1_000)
    return times


async def statements_alone(dsn: str, asked: list[str], rounds: int) -> list[float]:
    """Milliseconds of each round's statements: the frequencies, the candidates and the facts."""
    embedder = LocalEmbedder()
    options = {"size": 1, "timeout_s": 10.0, "statement_timeout_ms": 30_000, "name": "palimpsest-bench"}
    async with connect(dsn, **options) as database, database.reading() as conn:  # type: ignore[arg-type]
        times = [await _one(conn, embedder, asked[n % len(asked)]) for n in range(rounds + rounds // 10)]
    return times[rounds // 10 :]


async def _one(conn: Connection, embedder: LocalEmbedder, query: str) -> float:
    words, vectors = query_words(query), await embedder.embed_queries([query])
    wanted = Wanted(namespace="default", sight=("everything", {}))
    clock = time.perf_counter
    started = clock()
    corpus = await corpus_of(conn, wanted.namespace, wanted.sight, [words])
    spent = clock() - started
    assert embedder.profile is not None
    direction = Direction(embedder.profile, vectors[0])
    sought = Sought(wanted, question(words, corpus), corpus, direction, datetime.now(UTC))
    statement = statement_of([sought], exact=is_cheaper_exactly(wanted, corpus))
    started = clock()
    (seen,) = await arms.candidates(conn, *statement)
    spent += clock() - started
    ids = list(map(uuid_of, dict.fromkeys(seen.ids)))[:K]
    started = clock()
    await queries.current_facts(conn, wanted.namespace, wanted.sight, ids)
    return (spent + clock() - started) * 1_000


def run(client: httpx.Client, cluster: Cluster, facts: int, rounds: int) -> None:
    world = World(seed=1)
    statements = [world.statement() for _ in range(facts)]
    print(f"{facts} facts written at {fill(client, statements):.0f} a second over HTTP")
    # As autovacuum does within a minute, and not in the middle of the measurement.
    with psycopg.connect(cluster.owner_dsn, autocommit=True) as owner:
        owner.execute("VACUUM ANALYZE")
    picked = random.Random(2).sample(statements, QUESTIONS)
    asked = [query for _, query in picked]

    # The standard library's client takes a fraction of the time of httpx, so what is measured is the service.
    line = HTTPConnection(client.base_url.host, client.base_url.port)

    def post(path: str, body: object) -> None:
        line.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = line.getresponse()
        response.read()
        assert response.status == HTTPStatus.OK

    def ask(n: int, hops: int = 1) -> None:
        post("/v1/recall", {"query": asked[n % len(asked)], "k": K, "hops": hops})

    def ask_batch(n: int) -> None:
        post("/v1/recall/batch", {"queries": [{"query": asked[(n + m) % len(asked)], "k": K} for m in range(32)]})

    found = sum(_answered(client, query, fact) for fact, query in picked)
    print(f"answer among the first {K}: {found} of {len(picked)}")
    alone = asyncio.run(statements_alone(cluster.api_dsn, asked, rounds))
    single = timed(rounds, ask)
    alone += asyncio.run(statements_alone(cluster.api_dsn, asked, rounds))
    single += timed(rounds, ask)
    batch = timed(max(rounds // 8, 10), ask_batch)
    hops = timed(rounds // 2, lambda n: ask(n, 4))
    for name, times in (("recall over HTTP", single), ("its statements alone", alone), ("recall with 4 hops", hops)):
        cuts = statistics.quantiles(times, n=20)
        print(f"{name:<22} median {statistics.median(times):6.2f} ms   p95 {cuts[18]:6.2f} ms")
    ratio = statistics.median(single) / statistics.median(alone)
    print(
        f"HTTP over statements: {ratio:.2f}   4 hops over 1: {statistics.median(hops) / statistics.median(single):.2f}"
    )
    one, many = 1_000 / statistics.median(single), 32_000 / statistics.median(batch)
    print(f"questions a second: {one:.0f} one at a time, {many:.0f} in batches of 32 ({many / one:.1f} times)")


def _answered(client: httpx.Client, query: str, fact: str) -> bool:
    results = client.post("/v1/recall", json={"query": query, "k": K}).raise_for_status().json()["results"]
    return any(result["fact"]["content"] == fact for result in results)


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of recall.")
    parser.add_argument("--facts", type=int, default=18_000)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="palimpsest-bench-") as folder:
        data_dir = Path(folder) / "data"
        with (
            service(None, data_dir) as url,
            embedded.running(data_dir) as cluster,
            httpx.Client(base_url=url, timeout=120) as client,
        ):
            run(client, cluster, options.facts, options.rounds)


if __name__ == "__main__":
    main()
