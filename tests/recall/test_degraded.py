"""What recall does when the embedder does not."""

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from app.embedded import Cluster
from app.main import create_app
from tests.clients import Memory, make_key
from tests.conftest import settings_for
from tests.openai_server import OpenAIServer
from tests.serving import running


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def remote(database: Cluster, namespace: str, model: OpenAIServer) -> Iterator[Memory]:
    """A client of a service whose embedder is the scripted endpoint."""
    settings = settings_for(
        database,
        embedding_url=model.base_url,
        embedding_model=f"scripted-{namespace}",
        embedding_timeout_s=30,
        recall_deadline_ms=4_000,
    )
    key = make_key(database, namespace, roles=["read", "write"])
    with running(create_app(settings)) as url, Memory(url, key, namespace) as client:
        yield client


@pytest.mark.parametrize("script", ["402", "401", "500", "timeout", "nan"])
def test_without_the_embedder_the_words_answer_and_the_lack_is_named(
    remote: Memory, model: OpenAIServer, script: str
) -> None:
    remote.fact("The copper kettle hides the spare key.")
    model.embeddings = script

    answer = remote.recall("where is the spare key")

    assert [result["fact"]["content"] for result in answer["results"]] == ["The copper kettle hides the spare key."]
    assert answer["degraded"] == ["vector"]


def test_chains_send_the_embedder_no_single_words(remote: Memory, model: OpenAIServer) -> None:
    remote.fact("The Blue Heron is skippered by Ingrid Solberg.")
    home = remote.fact("Ingrid Solberg lives in Tromvik.")
    question = "Where does the skipper of the Blue Heron live?"
    before = len(model.calls_to("embeddings"))

    first = remote.recall(question, hops=2)["results"][0]

    assert first["fact"]["id"] == home["id"]
    assert [call.body["input"] for call in model.calls_to("embeddings")[before:]] == [[question]]


def test_a_slow_embedder_does_not_hold_recall_up(remote: Memory, model: OpenAIServer) -> None:
    remote.fact("The copper kettle hides the spare key.")
    model.embeddings = "slow:25"
    started = time.monotonic()

    answer = remote.recall("where is the spare key")

    assert answer["degraded"] == ["vector"]
    assert time.monotonic() - started < 25


def test_a_fact_whose_vector_is_pending_is_found_by_its_words(remote: Memory, model: OpenAIServer) -> None:
    model.embeddings = "500"
    remote.fact("The copper kettle hides the spare key.")
    model.embeddings = "ok"

    result = remote.recall("copper kettle")["results"][0]

    assert result["fact"]["embedding"] == "pending"


def test_a_database_that_does_not_answer_in_time_gives_an_empty_answer_that_says_so(
    remote: Memory, owner: psycopg.Connection[Any]
) -> None:
    remote.fact("The copper kettle hides the spare key.")

    with owner.transaction():
        owner.execute("LOCK TABLE ledger.facts IN ACCESS EXCLUSIVE MODE")
        answer = remote.recall("where is the spare key")

    assert answer["results"] == []
    assert answer["degraded"] == ["deadline", "vector", "words"]
    assert remote.recalled("where is the spare key") == ["The copper kettle hides the spare key."]
