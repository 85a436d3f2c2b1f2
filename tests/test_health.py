"""What /readyz says of the vectors."""

from typing import Any

from app.embedded import Cluster
from app.main import create_app
from app.settings import Settings
from tests.clients import Memory, make_key
from tests.conftest import settings_for
from tests.openai_server import OpenAIServer
from tests.serving import running
from tests.working import run_job, working


def with_model(database: Cluster, server: OpenAIServer, model: str) -> Settings:
    """A model whose profile is known from the start."""
    return settings_for(
        database, embedding_url=server.base_url, embedding_model=model, embedding_dimensions=64, decay_every_h=0
    )


def ready(database: Cluster, settings: Settings) -> Any:
    """What a service that has just started says."""
    with running(create_app(settings)) as url, Memory(url, make_key(database, "default")) as client:
        return client.get("/readyz")


def test_vectors_of_another_model_are_told_until_all_facts_have_new_ones(
    fresh_database: Cluster, server: OpenAIServer
) -> None:
    before, after = (with_model(fresh_database, server, model) for model in ("stub-a", "stub-b"))
    key = make_key(fresh_database, "default", roles=["read", "write", "curate", "admin"])
    with running(create_app(before)) as url, Memory(url, key) as client:
        client.fact("The boiler is serviced by Kettil.", subject="boiler.service")
        with_its_own = client.get("/readyz")
        changed = ready(fresh_database, after)
        with working(after):
            run_job(client, "reembed")
    settled = ready(fresh_database, after)

    assert (with_its_own["status"], with_its_own["unavailable"]) == ("ok", {})
    assert changed["status"] == "degraded"
    assert list(changed["unavailable"]) == ["vector_of_some_facts"]
    assert not {"Kettil", "boiler", "stub-a"} & set(str(changed).replace("'", " ").replace(".", " ").split())
    assert (settled["status"], settled["unavailable"]) == ("ok", {})


def test_a_model_that_no_current_fact_is_left_to_is_not_told(fresh_database: Cluster, server: OpenAIServer) -> None:
    before, after = (with_model(fresh_database, server, model) for model in ("stub-a", "stub-b"))
    key = make_key(fresh_database, "default", roles=["read", "write", "curate"])
    with running(create_app(before)) as url, Memory(url, key) as client:
        client.forget(client.fact("The boiler is serviced by Kettil.")["id"])

    assert ready(fresh_database, after)["unavailable"] == {}
