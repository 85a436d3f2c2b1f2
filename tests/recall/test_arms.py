"""The candidates' statement against a store too large to compare every fact, as the API's role."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import psycopg
import pytest
from pgvector.psycopg import register_vector

from app.analyzer import query_words
from app.db import Connection, connect
from app.embedded import Cluster
from app.embedding import Profile, Vectors
from app.recall import arms
from app.recall.question import DEPTH, question
from app.recall.search import Direction, Found, Sought, Wanted, corpus_of, search, statement_of
from app.schema import migrate
from tests.cluster import own_database

FACTS, SMALL = 4_000, 40
SPACE = Profile("arms-16", 16)
NAMESPACE = "arms"
NOW = datetime.now(UTC)
LATER = NOW + timedelta(minutes=1)
T = TypeVar("T")


def scope_of(n: int) -> str:
    """Ten scopes hold one per cent each, one holds the rest."""
    return f"small/{n // SMALL}" if n < 10 * SMALL else "big"


def vectors() -> Vectors:
    drawn = np.random.default_rng(7).normal(size=(FACTS, SPACE.dimensions))
    # What lies in the small scopes lies far from the question, so an index scan meets all else first.
    drawn[: 10 * SMALL, 0] -= 6
    unit: Vectors = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    return unit


QUESTION = np.eye(SPACE.dimensions, dtype=np.float32)[0]


@pytest.fixture(scope="module")
def store(cluster: Cluster) -> Iterator[Cluster]:
    """A database of its own with 4,000 facts, of which every tenth is tagged `tenth` and every 200th `rare`."""
    with own_database(cluster) as mine:
        migrate(mine.owner_dsn)
        fill(mine)
        yield mine


def fill(store: Cluster) -> None:
    with psycopg.connect(store.owner_dsn, autocommit=True) as owner:
        register_vector(owner)
        owner.execute("INSERT INTO namespaces (name) VALUES (%s)", [NAMESPACE])
        owner.execute("SELECT register_embedding_profile(%s, %s)", [SPACE.name, SPACE.dimensions])
        with owner.cursor() as cursor:
            cursor.executemany(INSERT, [row(n, vector) for n, vector in enumerate(vectors())])
        owner.execute("ANALYZE ledger.facts")


INSERT = """
    INSERT INTO ledger.facts (namespace, id, chain_id, scope, kind, content, content_hash, source_tier, tags,
        valid_from, observed_at, recorded_at, embedding_profile, embedding, terms, term_length)
    VALUES (%(namespace)s, %(id)s, %(id)s, %(scope)s, 'note', %(content)s,
        sha256(convert_to(%(content)s::text, 'UTF8')), 'user', %(tags)s, %(at)s, %(at)s, %(at)s,
        %(profile)s, %(vector)s, to_tsvector('simple', %(content)s::text), 3)
"""


def row(n: int, vector: Any) -> dict[str, Any]:
    tags = [tag for tag, every in (("tenth", 10), ("rare", 200)) if n % every == 0]
    return {
        "namespace": NAMESPACE,
        "id": uuid.UUID(int=n + 1),
        "scope": scope_of(n),
        "content": f"crate w{n % 50} n{n}",
        "tags": tags,
        "at": NOW - timedelta(seconds=FACTS - n),
        "profile": SPACE.name,
        "vector": vector,
    }


def with_connection(store: Cluster, work: Callable[[Connection], Awaitable[T]]) -> T:
    async def run() -> T:
        async with (
            connect(store.api_dsn, size=1, timeout_s=10, statement_timeout_ms=30_000, name="test") as db,
            db.reading() as conn,
        ):
            return await work(conn)

    return asyncio.run(run())


def wanted(**more: Any) -> Wanted:
    given: dict[str, Any] = {"namespace": NAMESPACE, "sight": ("everything", {})}
    return Wanted(**(given | more))


TOWARDS_QUESTION = Direction(SPACE, QUESTION)


async def sought(conn: Connection, query: str, want: Wanted, direction: Direction | None) -> Sought:
    words = query_words(query)
    corpus = await corpus_of(conn, want.namespace, want.sight, [words])
    return Sought(want, question(words, corpus), corpus, direction, NOW)


async def searched(conn: Connection, query: str, want: Wanted, direction: Direction | None = TOWARDS_QUESTION) -> Found:
    (found,) = await search(conn, [await sought(conn, query, want, direction)])
    return found


def found(store: Cluster, query: str, want: Wanted, direction: Direction | None = TOWARDS_QUESTION) -> Found:
    return with_connection(store, lambda conn: searched(conn, query, want, direction))


def nearest(ids: list[int], count: int) -> set[uuid.UUID]:
    """The facts among these with the highest cosine, compared one by one."""
    likeness = vectors() @ QUESTION
    return {uuid.UUID(int=n + 1) for n in sorted(ids, key=lambda n: -likeness[n])[:count]}


@pytest.mark.parametrize("number", range(10))
def test_a_small_scope_in_a_large_store_is_searched_whole(store: Cluster, number: int) -> None:
    scope = f"small/{number}"

    result = found(store, "nothing", wanted(sight=("listed", {"scopes": [scope]})))

    assert {one.id for one in result.ranked} == nearest([n for n in range(FACTS) if scope_of(n) == scope], SMALL)


@pytest.mark.parametrize(("tag", "every"), [("rare", 200), ("tenth", 10)])
def test_a_filter_over_the_index_gives_what_comparing_everything_gives(store: Cluster, tag: str, every: int) -> None:
    expected = nearest([n for n in range(FACTS) if n % every == 0], DEPTH)

    result = found(store, "nothing", wanted(tags=(tag,)))

    # The index is approximate by nature; a filter must not make it miss more.
    assert len(result.ranked) == len(expected)
    assert len({one.id for one in result.ranked} & expected) >= 0.95 * len(expected)


def test_questions_that_are_asked_together_are_answered_as_if_each_were_asked_alone(store: Cluster) -> None:
    asked: list[tuple[str, Wanted]] = [
        ("crate w7", wanted()),
        ("nothing", wanted(tags=("rare",))),
        ("crate w7 n7 n57 w8 w9 w10 w11 w12 w13 w14", wanted()),
        ("w9", wanted(sight=("listed", {"scopes": ["small/3"]}))),
    ]

    async def together(conn: Connection) -> list[Found]:
        return await search(conn, [await sought(conn, query, want, TOWARDS_QUESTION) for query, want in asked])

    assert [list(one.ranked) for one in with_connection(store, together)] == [
        list(found(store, query, want).ranked) for query, want in asked
    ]


def plan(store: Cluster, query: str, want: Wanted) -> str:
    """How Postgres runs the candidates' statement for this question, through the views, as the API's role."""

    async def explain(conn: Connection) -> str:
        shape, parameters = statement_of([await sought(conn, query, want, TOWARDS_QUESTION)], exact=False)
        cursor = await conn.execute("EXPLAIN " + arms.text_of(shape), parameters)
        return "\n".join(str(line["QUERY PLAN"]) for line in await cursor.fetchall())

    return with_connection(store, explain)


def test_words_and_vectors_are_found_through_their_indexes(store: Cluster) -> None:
    shown = plan(store, "crate w7", wanted())

    assert "facts_words" in shown
    assert "facts_vector_" in shown


def test_a_filter_does_not_drive_the_planner_off_the_indexes(store: Cluster) -> None:
    shown = plan(
        store, "crate w7", wanted(kinds=("note", "state"), min_tier="user", sight=("listed", {"scopes": ["big"]}))
    )

    assert "facts_words" in shown
    assert "facts_vector_" in shown


def test_facts_out_of_their_window_are_counted_through_indexes(store: Cluster) -> None:
    shown = plan(store, "crate w7", wanted())

    assert "facts_beginning" in shown
    assert "facts_ending" in shown


def test_where_there_are_no_vectors_a_rare_word_does_not_keep_out_those_that_share_a_common_one(
    store: Cluster,
) -> None:
    result = found(store, "crate w7", wanted(), direction=None)

    assert len(result.ranked) == DEPTH
    assert all(result.measured.share[one.best] == 1 for one in islice(result.ranked, FACTS // 50))


@pytest.fixture(scope="module")
def silent(store: Cluster) -> str:
    """A namespace with two facts, for one of which the embedder had no vector although it was asked."""
    with psycopg.connect(store.owner_dsn, autocommit=True) as owner:
        register_vector(owner)
        owner.execute("INSERT INTO namespaces (name) VALUES ('silent')")
        for n, vector in ((FACTS, None), (FACTS + 1, QUESTION)):
            owner.execute(INSERT, row(n, vector) | {"namespace": "silent"})
    return "silent"


@pytest.mark.parametrize("moment", [{}, {"as_of": LATER, "known_at": LATER}])
def test_a_fact_that_the_embedder_had_no_vector_for_is_found_by_its_words(
    store: Cluster, silent: str, moment: dict[str, datetime]
) -> None:
    result = found(store, f"crate n{FACTS}", wanted(namespace=silent, **moment))

    first, second = result.ranked
    assert first.id == uuid.UUID(int=FACTS + 1)
    assert np.isnan(result.measured.cosine[first.best])
    assert result.measured.cosine[second.best] == pytest.approx(1.0)


def test_rare_words_fetch_and_common_words_only_add(store: Cluster) -> None:
    result = found(store, "crate w7", wanted())

    assert result.asked.fetching == ("w7",)
    assert all(result.measured.share[one.best] == 1 for one in islice(result.ranked, 50))
