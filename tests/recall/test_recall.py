"""Recall over a real service."""

from app.embedded import Cluster
from tests.clients import Memory
from tests.conftest import served, settings_for


def test_a_question_finds_its_fact(memory: Memory) -> None:
    memory.fact("Team standup is at 9:30 in the Oak room.")
    memory.fact("Deploys to production need two approvals.")

    assert memory.recalled("when is the standup", k=1) == ["Team standup is at 9:30 in the Oak room."]


def test_many_questions_are_answered_over_a_single_connection(database: Cluster, namespace: str) -> None:
    with served(settings_for(database, pool_size=1, pool_timeout_s=2), database, namespace) as client:
        client.fact("Team standup is at 9:30 in the Oak room.")

        answers = client.post("/v1/recall/batch", {"queries": [{"query": "standup"}] * 32}, status=200)["answers"]

    assert [len(answer["results"]) for answer in answers] == [1] * 32
