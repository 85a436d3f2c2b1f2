"""Facts get their vectors later where they must, and all of them new ones when the model changes."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from app.embedded import Cluster
from app.main import create_app
from app.settings import Settings
from tests.clients import Memory, make_key
from tests.conftest import served, settings_for
from tests.openai_server import OpenAIServer
from tests.serving import running
from tests.working import findings, finished, run_job, until, working


def with_model(database: Cluster, server: OpenAIServer, model: str = "stub-a", **more: Any) -> Settings:
    return settings_for(
        database, embedding_url=server.base_url, embedding_model=model, decay_every_h=0, prune_every_h=0, **more
    )


def profiles(owner: psycopg.Connection[Any], namespace: str) -> dict[str | None, int]:
    """How many facts have a vector of each profile."""
    rows = owner.execute(
        "SELECT embedding_profile, count(*) FROM ledger.facts WHERE namespace = %s AND kind <> 'retraction'"
        " AND (embedding IS NOT NULL OR embedding_profile IS NULL) GROUP BY 1",
        [namespace],
    )
    return dict(rows.fetchall())


@pytest.fixture
def client(fresh_database: Cluster, server: OpenAIServer, namespace: str) -> Iterator[Memory]:
    """A service whose embedder is the scripted server; without a worker."""
    with served(with_model(fresh_database, server), fresh_database, namespace) as client:
        yield client


@pytest.fixture
def behind(fresh_database: Cluster) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(fresh_database.owner_dsn, autocommit=True) as connection:
        yield connection


def test_facts_written_while_the_embedder_is_down_get_their_vectors_when_it_is_back(
    client: Memory, behind: psycopg.Connection[Any], fresh_database: Cluster, server: OpenAIServer
) -> None:
    server.embeddings = "500"
    fact = client.fact("The boiler is serviced by Kettil.")
    server.embeddings = "ok"

    with working(with_model(fresh_database, server)):
        until(lambda: profiles(behind, client.namespace) == {"stub-a-64": 1})

    assert fact["embedding"] == "pending"
    assert client.get(f"/v1/facts/{fact['id']}")["embedding"] == "ready"


def test_a_job_waits_for_an_embedder_that_is_down_without_using_up_attempts(
    client: Memory, behind: psycopg.Connection[Any], fresh_database: Cluster, server: OpenAIServer
) -> None:
    server.embeddings = "503:1"
    client.fact("The boiler is serviced by Kettil.")

    with working(with_model(fresh_database, server, embedding_timeout_s=0.2)):
        job = client.post("/v1/jobs", {"kind": "embed_pending"}, status=202)
        waiting = until(lambda: (now := client.get(f"/v1/jobs/{job['id']}"))["error"] and now)
        server.embeddings = "ok"
        job = finished(client, job)

    assert waiting["status"] in ("queued", "running")
    assert "server_error" in waiting["error"]
    assert job["status"] == "succeeded"
    assert profiles(behind, client.namespace) == {"stub-a-64": 1}


def test_an_embedder_that_wants_no_more_of_us_fails_the_job_and_drops_nothing(
    client: Memory, behind: psycopg.Connection[Any], fresh_database: Cluster, server: OpenAIServer
) -> None:
    client.fact("The boiler is serviced by Kettil.")
    server.embeddings = "401"

    with working(with_model(fresh_database, server, model="stub-b", embedding_dimensions=64)):
        job = finished(client, client.post("/v1/jobs", {"kind": "reembed"}, status=202))

    assert job["status"] == "failed"
    assert "unauthorized" in job["error"]
    assert profiles(behind, client.namespace) == {"stub-a-64": 1}


def test_a_refused_text_is_found_out_and_the_others_get_their_vectors(
    client: Memory, behind: psycopg.Connection[Any], fresh_database: Cluster, server: OpenAIServer
) -> None:
    server.embeddings = "500"
    facts = [client.fact(f"Shelf {n} holds crate {n}.") for n in range(5)]
    refuse_texts_with(server, "Shelf 3")

    with working(with_model(fresh_database, server)):
        job = run_job(client, "embed_pending")
        until(lambda: profiles(behind, client.namespace) == {"stub-a-64": 4})

    rejected = client.get("/v1/jobs", kind="embed_pending")["items"]
    listed = [item["fact_id"] for run in rejected for item in findings(client, run)]
    assert job["status"] == "succeeded"
    assert listed == [facts[3]["id"]]


def refuse_texts_with(server: OpenAIServer, words: str) -> None:
    """From now on the server answers 400 where a text holds the words."""
    receive = server.receive

    def picky(endpoint: str, body: dict[str, Any], authorization: str | None) -> str:
        server.embeddings = "400" if any(words in text for text in body["input"]) else "ok"
        return receive(endpoint, body, authorization)

    server.receive = picky  # type: ignore[method-assign]


def test_another_model_of_the_same_length_gives_every_fact_a_new_vector(
    client: Memory, behind: psycopg.Connection[Any], fresh_database: Cluster, server: OpenAIServer
) -> None:
    old = client.fact("Billing runs on Lemon Squeezy.", subject="billing")
    client.supersede(old["id"], content="Billing runs on Polar.")
    client.fact("The boiler is serviced by Kettil.")

    with working(with_model(fresh_database, server, model="stub-b")):
        job = run_job(client, "reembed")

    assert job["counts"]["embedded"] == 3
    assert job["progress"] == {"done": 3, "total": 3}
    assert profiles(behind, client.namespace) == {"stub-b-64": 3}


def test_a_second_run_has_nothing_to_do(client: Memory, fresh_database: Cluster, server: OpenAIServer) -> None:
    client.fact("The boiler is serviced by Kettil.")

    with working(with_model(fresh_database, server, model="stub-b")):
        run_job(client, "reembed")
        asked = len(server.calls)
        job = run_job(client, "reembed")

    assert job["counts"] == {}
    assert len(server.calls) == asked


def test_a_dry_run_says_how_many_facts_have_vectors_of_which_model(
    client: Memory, behind: psycopg.Connection[Any], fresh_database: Cluster, server: OpenAIServer
) -> None:
    client.fact("The boiler is serviced by Kettil.")

    with working(with_model(fresh_database, server, model="stub-b")):
        job = run_job(client, "reembed", dry_run=True)

    assert job["counts"] == {"of stub-a-64": 1, "to_embed": 1}
    assert profiles(behind, client.namespace) == {"stub-a-64": 1}


@pytest.mark.parametrize(("length", "stored"), [(384, "vector"), (3072, "halfvec")])
def test_a_model_of_another_length_gets_an_index_of_its_own(
    client: Memory,
    behind: psycopg.Connection[Any],
    fresh_database: Cluster,
    server: OpenAIServer,
    length: int,
    stored: str,
) -> None:
    client.fact("The boiler is serviced by Kettil.")
    server.dimensions = length

    with working(with_model(fresh_database, server, model="stub-b")):
        run_job(client, "reembed")

    profile = f"stub-b-{length}"
    indexes = behind.execute(
        "SELECT count(*) FROM pg_indexes WHERE indexdef LIKE %s", [f"%::{stored}({length})%{profile}%"]
    ).fetchone()
    assert profiles(behind, client.namespace) == {profile: 1}
    assert indexes == (2,)


def test_a_model_too_long_for_any_index_is_refused_before_anything_changes(
    client: Memory, behind: psycopg.Connection[Any], fresh_database: Cluster, server: OpenAIServer
) -> None:
    client.fact("The boiler is serviced by Kettil.")
    before = behind.execute("SELECT count(*) FROM pg_indexes").fetchone()
    server.dimensions = 4096

    with working(with_model(fresh_database, server, model="stub-b")):
        job = finished(client, client.post("/v1/jobs", {"kind": "reembed"}, status=202))

    assert job["status"] == "failed"
    assert "4096" in job["error"]
    assert behind.execute("SELECT count(*) FROM pg_indexes").fetchone() == before
    assert profiles(behind, client.namespace) == {"stub-a-64": 1}


def vector_indexes(owner: psycopg.Connection[Any]) -> set[str]:
    """The profiles for which there are indexes."""
    known = owner.execute("SELECT name FROM embedding_profiles").fetchall()
    indexes = owner.execute("SELECT indexdef FROM pg_indexes WHERE indexdef LIKE '%hnsw%'").fetchall()
    assert len(indexes) == 2 * len(known)
    return {name for (name,) in known if sum(f"'{name}'" in text for (text,) in indexes) == 2}


def test_the_indexes_of_a_replaced_model_go_with_its_last_vector(
    client: Memory, behind: psycopg.Connection[Any], fresh_database: Cluster, server: OpenAIServer
) -> None:
    retired = client.fact("The boiler is serviced by Kettil.")
    client.supersede(retired["id"], content="The boiler is serviced by Dagny.")

    with working(with_model(fresh_database, server, model="stub-b")):
        job = run_job(client, "reembed")

    assert vector_indexes(behind) == {"stub-b-64"}
    assert job["counts"]["profiles_forgotten"] == 1


def test_the_indexes_of_a_replaced_model_stay_while_another_namespace_has_facts_of_it(
    client: Memory, behind: psycopg.Connection[Any], fresh_database: Cluster, server: OpenAIServer
) -> None:
    client.fact("The boiler is serviced by Kettil.")
    elsewhere = make_key(fresh_database, "elsewhere")
    with running(create_app(with_model(fresh_database, server))) as url, Memory(url, elsewhere, "elsewhere") as other:
        other.fact("The roof is serviced by Dagny.")

    with working(with_model(fresh_database, server, model="stub-b")):
        run_job(client, "reembed")

    assert vector_indexes(behind) == {"stub-a-64", "stub-b-64"}


def test_a_model_that_comes_back_gets_its_indexes_anew(
    client: Memory, behind: psycopg.Connection[Any], fresh_database: Cluster, server: OpenAIServer
) -> None:
    client.fact("The boiler is serviced by Kettil.")
    with working(with_model(fresh_database, server, model="stub-b")):
        run_job(client, "reembed")

    with working(with_model(fresh_database, server, model="stub-a")):
        run_job(client, "reembed")

    assert vector_indexes(behind) == {"stub-a-64"}
    assert client.recalled("boiler Kettil") == ["The boiler is serviced by Kettil."]


def test_facts_are_found_by_their_words_while_their_vectors_are_of_another_model(
    client: Memory, fresh_database: Cluster, server: OpenAIServer, namespace: str
) -> None:
    client.fact("The boiler is serviced by Kettil.")
    key = make_key(fresh_database, namespace)

    with (
        running(create_app(with_model(fresh_database, server, model="stub-b"))) as url,
        Memory(url, key, namespace) as changed,
    ):
        changed.fact("The roof is serviced by Dagny.")
        by_words = changed.recalled("boiler Kettil")

    assert by_words[0] == "The boiler is serviced by Kettil."


def test_a_fact_forgotten_while_its_vector_is_made_stays_forgotten(
    client: Memory, behind: psycopg.Connection[Any], fresh_database: Cluster, server: OpenAIServer
) -> None:
    server.embeddings = "500"
    fact = client.fact("The boiler is serviced by Kettil.")
    server.embeddings = "slow:1.5"
    asked = len(server.calls)

    with working(with_model(fresh_database, server)):
        until(lambda: len(server.calls) > asked)
        client.forget(fact["id"])
        until(lambda: profiles(behind, client.namespace) == {"stub-a-64": 1})

    assert client.texts() == []
    client.get(f"/v1/facts/{fact['id']}", status=410)


def test_a_fact_removed_while_its_vector_is_made_does_not_come_back(
    client: Memory, behind: psycopg.Connection[Any], fresh_database: Cluster, server: OpenAIServer
) -> None:
    server.embeddings = "500"
    fact = client.fact("The boiler is serviced by Kettil.")
    server.embeddings = "slow:1.5"
    asked = len(server.calls)

    with working(with_model(fresh_database, server)):
        job = client.post("/v1/jobs", {"kind": "embed_pending"}, status=202)
        until(lambda: len(server.calls) > asked)
        behind.execute("SET palimpsest.removing = 'on'")
        behind.execute("DELETE FROM ledger.facts WHERE id = %s", [fact["id"]])
        finished(client, job)

    assert behind.execute("SELECT count(*) FROM ledger.facts").fetchone() == (0,)
