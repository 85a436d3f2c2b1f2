"""A fact is stored whatever the embedder does, and found by its words at once."""

from typing import Any

import pytest

from app.embedded import Cluster
from app.main import create_app
from tests.clients import Memory, make_key
from tests.conftest import settings_for
from tests.openai_server import OpenAIServer
from tests.serving import running


def _settings(database: Cluster, endpoint: OpenAIServer, model: str) -> Any:
    return settings_for(
        database, embedding_url=endpoint.base_url, embedding_model=model, embedding_timeout_s=1, recall_deadline_ms=4000
    )


@pytest.mark.parametrize("script", ["402", "500", "html", "hang_up"])
def test_a_fact_whose_embedder_fails_is_stored_as_pending_and_found_by_its_words(
    database: Cluster, namespace: str, script: str
) -> None:  # C48, C50
    key = make_key(database, namespace)
    with OpenAIServer(dimensions=64) as endpoint:
        endpoint.embeddings = script
        app = create_app(_settings(database, endpoint, f"failing-{script.replace('_', '-')}"))
        with running(app) as url, Memory(url, key) as memory:
            written = memory.remember("The spare key is behind the copper kettle.", status=201)
            answer = memory.recall("copper kettle")
            ready = memory.get("/readyz")

    assert written["fact"]["embedding"] == "pending"
    assert [result["fact"]["id"] for result in answer["results"]] == [written["fact"]["id"]]
    assert answer["degraded"] == ["vector"]
    assert ready["status"] == "degraded"


def test_vectors_too_long_for_any_index_leave_the_fact_pending_instead_of_refusing_it(
    database: Cluster, namespace: str
) -> None:  # C112
    key = make_key(database, namespace)
    with (
        OpenAIServer(dimensions=4_096) as endpoint,
        running(create_app(_settings(database, endpoint, "wide"))) as url,
        Memory(url, key) as memory,
    ):
        written = memory.remember("The lease runs to the middle of 2031.", status=201)
        ready = memory.get("/readyz")

    assert written["fact"]["embedding"] == "pending"
    assert ready["unavailable"]["vector"] == "4096 dimensions are too many for an index"
