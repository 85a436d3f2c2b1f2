"""What recall says about its own answers."""

from datetime import UTC, datetime, timedelta

import pytest

from app.recall.ranking import K
from tests.clients import Memory


def days_ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


WAREHOUSES = [f"Warehouse {n} stores {thing}." for n, thing in enumerate(
    ("grain", "timber", "tiles", "cables", "paint", "pumps", "valves", "glass", "salt", "bolts"))]  # fmt: skip


def test_a_topic_that_the_memory_does_not_know_is_told_by_relevance(memory: Memory) -> None:
    memory.post("/v1/facts/batch", {"facts": [{"content": text} for text in WAREHOUSES]})

    unknown = memory.recall("zzqv unicorn insurance premium", k=5)["results"]
    known = memory.recall("which warehouse stores paint", k=5)["results"]

    assert len(unknown) == 5
    assert max(result["relevance"] for result in unknown) < 0.5 < known[0]["relevance"]


def test_a_floor_leaves_out_what_does_not_answer_and_counts_it(memory: Memory) -> None:
    memory.post("/v1/facts/batch", {"facts": [{"content": text} for text in WAREHOUSES]})

    answer = memory.recall("how do I bake bread", k=5, min_relevance=0.5)

    assert answer["results"] == []
    assert answer["suppressed"]["below_min_relevance"] == len(WAREHOUSES)


def test_an_old_exact_answer_leads_the_chatter_of_today(memory: Memory) -> None:
    chatter = [{"content": f"Noor ordered part {n} for the changing room."} for n in range(50)]
    memory.post("/v1/facts/batch", {"facts": chatter})
    memory.fact("Safe combination is changed by Noor each quarter.", observed_at=days_ago(40))

    found = memory.recalled("who changes the safe combination", k=1)

    assert found == ["Safe combination is changed by Noor each quarter."]


@pytest.mark.parametrize(("old", "new"), [("Verde", "Rosso"), ("Rosso", "Verde")])
def test_of_two_equal_facts_the_newer_leads(memory: Memory, old: str, new: str) -> None:
    memory.fact(f"The lunch spot is {new}.", observed_at=days_ago(0))
    memory.fact(f"The lunch spot is {old}.", observed_at=days_ago(300))

    assert memory.recalled("lunch spot") == [f"The lunch spot is {new}.", f"The lunch spot is {old}."]


def test_ties_keep_their_order_and_a_short_list_begins_a_long_one(memory: Memory) -> None:
    memory.post("/v1/facts/batch", {"facts": [{"content": f"Crate {n} holds bolts"} for n in range(12)]})

    lists = [memory.recalled("crate bolts", k=k) for k in (1, 3, 4, 4, 7, 12, 100)]

    assert len(lists[-1]) == 12
    assert all(found == lists[-1][: len(found)] for found in lists)


def test_an_explanation_lets_anybody_add_up_the_score(memory: Memory) -> None:
    memory.post("/v1/facts/batch", {"facts": [{"content": text} for text in WAREHOUSES]})

    answer = memory.recall("which warehouse stores paint and valves", explain=True)

    weights = answer["applied"]["weights"]
    for result in answer["results"]:
        places = {arm: place for arm, place in result["ranks"].items() if place}
        assert result["score"] == pytest.approx(sum(weights[arm] / (K + place) for arm, place in places.items()))


def test_without_explain_the_numbers_are_left_out(memory: Memory) -> None:
    memory.fact("Warehouse 7 stores paint.")

    answer = memory.recall("paint")

    assert answer["results"][0]["ranks"] is None
    assert answer["applied"]["terms"] is None


def test_a_contested_fact_says_so(memory: Memory) -> None:
    first = memory.fact("The push gate blocks the default branch.")
    second = memory.fact("The push gate does not block the default branch.")
    memory.post("/v1/links", {"kind": "contradicts", "source_id": first["id"], "target_id": second["id"]})

    results = memory.recall("push gate default branch")["results"]

    assert {r["fact"]["id"]: r["conflicts_with"] for r in results} == {
        first["id"]: [second["id"]],
        second["id"]: [first["id"]],
    }


def test_what_is_scheduled_or_expired_is_held_back_and_counted(memory: Memory) -> None:
    memory.fact("The summer timetable of the ferry holds.", valid_from=days_ago(-30))
    memory.fact("The winter timetable of the ferry holds.", valid_from=days_ago(90), valid_to=days_ago(30))
    memory.fact("The spring timetable of the ferry holds.")

    answer = memory.recall("timetable of the ferry")

    assert [r["fact"]["content"] for r in answer["results"]] == ["The spring timetable of the ferry holds."]
    assert (answer["suppressed"]["scheduled"], answer["suppressed"]["expired"]) == (1, 1)
