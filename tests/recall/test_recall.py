"""Recall over a real service."""

from tests.clients import Memory


def test_a_question_finds_its_fact(memory: Memory) -> None:
    memory.fact("Team standup is at 9:30 in the Oak room.")
    memory.fact("Deploys to production need two approvals.")

    assert memory.recalled("when is the standup", k=1) == ["Team standup is at 9:30 in the Oak room."]
