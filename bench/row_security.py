"""What row-level security on the facts would cost a recall, as a second wall between namespaces.

    python -m bench.row_security [--facts 18000] [--rounds 40]

The same three reads (by key, nearest vectors, words) run through facts_active under the API's role, in turns with and
without a policy that compares the namespace with a session setting. The setting is made anew before every read, as a
pooled connection would have to.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from pgvector.psycopg import register_vector

from app import embedded
from app.embedding import LocalEmbedder
from app.schema import migrate
from bench.writing import PROFILE, floor, rows_for, sentences

_POLICY = """
    CREATE POLICY one_namespace ON ledger.facts
    USING (namespace = current_setting('palimpsest.namespace', true))
    WITH CHECK (namespace = current_setting('palimpsest.namespace', true))
"""
_ON = "ALTER TABLE ledger.facts ENABLE ROW LEVEL SECURITY; ALTER TABLE ledger.facts FORCE ROW LEVEL SECURITY"
_OFF = "ALTER TABLE ledger.facts NO FORCE ROW LEVEL SECURITY; ALTER TABLE ledger.facts DISABLE ROW LEVEL SECURITY"
_READS = {
    "by key": "SELECT content FROM facts_active WHERE namespace = 'default' AND id = %(id)s",
    "vectors": """
        SELECT id FROM facts_active WHERE namespace = 'default' AND embedding_profile = 'wordllama-l2-supercat-256'
        ORDER BY embedding::vector(256) <=> %(vector)s LIMIT 100
    """,
    "words": """
        SELECT id FROM facts_active WHERE namespace = 'default' AND terms @@ %(words)s::tsquery
        ORDER BY ts_rank(terms, %(words)s::tsquery) DESC, recorded_at DESC, id DESC LIMIT 100
    """,
}


def fill(conn: psycopg.Connection[Any], facts: int) -> tuple[list[str], Any, list[Any]]:
    embedder = LocalEmbedder()
    conn.execute("SELECT register_embedding_profile(%s, 256)", (PROFILE,))
    texts = sentences(facts, 1)
    vectors = asyncio.run(embedder.embed_documents(texts))
    rows = rows_for(texts, PROFILE, vectors)
    for start in range(0, facts, 1_000):
        floor(conn, rows[start : start + 1_000])
    return texts, vectors, [row[0] for row in rows]


def timed(conn: psycopg.Connection[Any], read: str, parameters: dict[str, Any], *, walled: bool) -> float:
    started = time.perf_counter()
    if walled:
        conn.execute("SELECT set_config('palimpsest.namespace', 'default', false)")
    conn.execute(read, parameters).fetchall()
    return (time.perf_counter() - started) * 1_000


def compare(
    conn: psycopg.Connection[Any], toggle: Callable[[bool], None], rounds: int, asked: list[dict[str, Any]]
) -> None:
    taken: dict[tuple[str, bool], list[float]] = {(name, on): [] for name in _READS for on in (False, True)}
    for number in range(rounds):
        walled = bool(number % 2)
        toggle(walled)
        for parameters in asked:
            for name, read in _READS.items():
                taken[name, walled].append(timed(conn, read, parameters, walled=walled))
    for name in _READS:
        without, with_it = (statistics.median(taken[name, on]) for on in (False, True))
        print(f"{name:<8} {without:7.2f} ms without, {with_it:7.2f} ms with: {with_it / without - 1:+.0%}")


def _switch(owner: psycopg.Connection[Any], *, on: bool) -> None:
    owner.execute(_ON if on else _OFF)


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of row-level security.")
    parser.add_argument("--facts", type=int, default=18_000)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="palimpsest-bench-") as folder, embedded.running(Path(folder)) as cluster:
        migrate(cluster.owner_dsn)
        with (
            psycopg.connect(cluster.owner_dsn, autocommit=True) as owner,
            psycopg.connect(cluster.api_dsn, autocommit=True) as conn,
        ):
            owner.execute("INSERT INTO namespaces (name) VALUES ('default') ON CONFLICT DO NOTHING")
            register_vector(conn)
            texts, vectors, ids = fill(conn, options.facts)
            owner.execute("ANALYZE ledger.facts")
            owner.execute(_POLICY)
            asked = [
                {"id": ids[at], "vector": vectors[at], "words": " | ".join(texts[at].split()[:6])}
                for at in range(0, options.facts, max(1, options.facts // 10))
            ]
            compare(conn, lambda on: _switch(owner, on=on), options.rounds, asked)


if __name__ == "__main__":
    main()
