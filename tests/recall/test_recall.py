"""Recall over a real service."""

from app.embedded import Cluster
from app.main import create_app
from tests.clients import Memory, make_key
from tests.conftest import settings_for
from tests.serving import running


def test_a_question_finds_its_fact(memory: Memory) -> None:
    memory.fact("Team standup is at 9:30 in the Oak room.")
    memory.fact("Deploys to production need two approvals.")

    assert memory.recalled("when is the standup", k=1) == ["Team standup is at 9:30 in the Oak room."]


def test_many_questions_are_answered_over_a_single_connection(database: Cluster, namespace: str) -> None:
    key = make_key(database, namespace, roles=["read", "write"])
    settings = settings_for(database, pool_size=1, pool_timeout_s=2)
    with running(create_app(settings)) as url, Memory(url, key, namespace) as client:
        client.fact("Team standup is at 9:30 in the Oak room.")

        answers = client.post("/v1/recall/batch", {"queries": [{"query": "standup"}] * 32}, status=200)["answers"]

    assert [len(answer["results"]) for answer in answers] == [1] * 32
