"""How fast a batch is written, against the same rows inserted by plain psycopg into the same tables and indexes.

    python -m bench.writing [--facts 1000] [--rounds 5]

Both sides run in turns on the same database, in scopes of their own. Ours is the whole HTTP request: validation,
analysis, embedding, rules, insert and answer. The floor is `executemany` of the same INSERT statements, with the
same rows prepared beforehand, in one transaction, under the API's role.
"""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import httpx
import psycopg
from pgvector.psycopg import register_vector
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from app import embedded
from app.analyzer import analyze, tsvector_literal
from app.embedding import LocalEmbedder
from bench.service import service

_FACTS = """
    INSERT INTO facts_active (namespace, id, chain_id, scope, kind, subject, content, content_hash, source_tier, tags,
        metadata, valid_from, observed_at, recorded_at, embedding_profile, embedding, terms, term_length)
    VALUES ('default', %s, %s, %s, 'note', NULL, %s, sha256(%s::bytea), 'observed', '{}', '{}', now(), now(), now(),
        %s, %s, %s::tsvector, %s)
"""
PROFILE = "wordllama-l2-supercat-256"
_USE = "INSERT INTO fact_use (namespace, fact_id, last_observed_at) VALUES ('default', %s, now())"
_AUDIT = """
    INSERT INTO audit_events (namespace, actor, action, scope, fact_id, detail)
    VALUES ('default', 'bench', 'remembered', %s, %s, %s)
"""
"""The floor's statements: what a write cannot do without."""


def sentences(count: int, seed: int) -> list[str]:
    """Different statements of nine to nineteen words, common and rare ones as in prose (Zipf over 5,000 words)."""
    letters = random.Random(0)
    syllables = [consonant + vowel for consonant in "bdfgklmnprstv" for vowel in "aeiou"]
    vocabulary = ["".join(letters.choices(syllables, k=letters.randint(1, 4))) for _ in range(5_000)]
    weights = [1 / rank for rank in range(1, len(vocabulary) + 1)]
    rng = random.Random(seed + 1)
    return [
        f"{' '.join(rng.choices(vocabulary, weights, k=rng.randint(9, 19)))} {seed}x{number}" for number in range(count)
    ]


def ours(client: httpx.Client, texts: list[str]) -> float:
    scope = f"ours-{uuid.uuid4().hex[:8]}"
    body = {"facts": [{"content": text, "scope": scope} for text in texts]}
    started = time.perf_counter()
    answer = client.post("/v1/facts/batch", json=body).raise_for_status().json()
    seconds = time.perf_counter() - started
    assert answer["created"] == len(texts)
    return seconds


def rows_for(texts: list[str], profile: str, vectors: Any) -> list[tuple[Any, ...]]:
    scope = f"floor-{uuid.uuid4().hex[:8]}"
    rows = []
    for text, vector in zip(texts, vectors, strict=True):
        terms, id_ = analyze(text), uuid7()
        literal = tsvector_literal(terms)
        rows.append((id_, id_, scope, text, text, profile, vector, literal, terms.length))
    return rows


def floor(conn: psycopg.Connection[Any], rows: list[tuple[Any, ...]]) -> float:
    started = time.perf_counter()
    with conn.transaction(), conn.cursor() as cursor:
        cursor.executemany(_FACTS, rows)
        cursor.executemany(_USE, [(row[0],) for row in rows])
        cursor.executemany(_AUDIT, [(row[2], row[0], Jsonb({})) for row in rows])
    return time.perf_counter() - started


async def _embed(embedder: LocalEmbedder, texts: list[str]) -> Any:
    return await embedder.embed_documents(texts)


def main() -> None:
    parser = argparse.ArgumentParser(description="Batch writes against plain psycopg.")
    parser.add_argument("--facts", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    embedder = LocalEmbedder()
    with tempfile.TemporaryDirectory(prefix="palimpsest-bench-") as folder:
        data_dir = Path(folder)
        with (
            service(None, data_dir) as url,
            httpx.Client(base_url=url, timeout=120) as client,
            embedded.running(data_dir) as cluster,
            psycopg.connect(cluster.api_dsn, autocommit=True) as conn,
        ):
            register_vector(conn)
            client.post("/v1/facts", json={"content": "The first fact."}).raise_for_status()
            mine, theirs = [], []
            for number in range(options.rounds):
                mine.append(ours(client, sentences(options.facts, 2 * number)))
                texts = sentences(options.facts, 2 * number + 1)
                vectors = asyncio.run(_embed(embedder, texts))
                theirs.append(floor(conn, rows_for(texts, PROFILE, vectors)))
    for name, seconds in (("ours", mine), ("plain psycopg", theirs)):
        rate = options.facts / statistics.median(seconds)
        each = ", ".join(f"{second:.2f}" for second in seconds)
        print(f"{name:<14} median {statistics.median(seconds):.2f} s, {rate:.0f} facts/s ({each})")
    print(f"ratio {statistics.median(theirs) / statistics.median(mine):.2f} of the floor's rows per second")


if __name__ == "__main__":
    main()
