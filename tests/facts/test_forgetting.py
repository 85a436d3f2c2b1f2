"""Forgetting retires without inventing a replacement; restoring undoes a wrong retirement."""

from tests.clients import NEVER, Memory
from tests.facts.test_superseding import chain

# --- Forget ----------------------------------------------------------------------------------------------------


# C03
def test_a_forgotten_fact_is_not_returned(memory: Memory) -> None:
    fact = memory.fact("Locker code for bay 4 is kept by Mireille.")

    answer = memory.forget(fact["id"], reason="Bay 4 was removed.")

    assert answer["outcome"] == "forgotten"
    assert answer["fact"]["status"] == "forgotten"
    assert memory.recalled("bay 4 locker code") == []
    assert memory.texts() == []


# C03
def test_forgetting_again_changes_nothing_and_keeps_the_first_reason(memory: Memory) -> None:
    fact = memory.fact("Held.")
    memory.forget(fact["id"], reason="First.")

    again = memory.forget(fact["id"], reason="Second.", status=200)

    assert (again["outcome"], again["fact"]["reason"]) == ("already_forgotten", "First.")
    assert memory.actions(fact["id"]) == ["remembered", "forgotten"]


# C03
def test_what_never_was_cannot_be_forgotten(memory: Memory) -> None:
    assert memory.forget(NEVER, status=404)["code"] == "fact_not_found"


def test_a_replaced_fact_cannot_be_forgotten(memory: Memory) -> None:
    first, second = chain(memory, "One.", "Two.")

    problem = memory.forget(first, status=409)

    assert (problem["code"], problem["head"]) == ("fact_already_retired", second)
    assert memory.history(first)["facts"][0]["status"] == "superseded"


# C19
def test_forgetting_the_head_of_a_chain_brings_nothing_back(memory: Memory) -> None:
    ids = chain(memory, "The CEO is Adler.", "The CEO is Brandt.", "The CEO is Cato.", subject="ceo")

    memory.forget(ids[-1])

    assert memory.recalled("who is the CEO") == []
    assert memory.standing(*ids) == ["superseded", "superseded", "forgotten"]
    history = memory.history(ids[0])
    assert history["head"] is None
    assert [fact["kind"] for fact in history["facts"]] == ["state"] * 3 + ["retraction"]
    assert memory.get(f"/v1/facts/{ids[0]}", status=410)["head"] is None


def test_the_entry_that_ends_a_life_is_no_fact(memory: Memory) -> None:
    fact = memory.fact("Held.")
    memory.forget(fact["id"], reason="It ended for good.")
    entry = memory.history(fact["id"])["facts"][-1]

    assert (entry["kind"], entry["content"], entry["status"]) == ("retraction", "It ended for good.", "forgotten")
    memory.get(f"/v1/facts/{entry['id']}", status=404)
    memory.forget(entry["id"], status=404)
    memory.restore(entry["id"], status=404)
    memory.supersede(entry["id"], content="New.", status=404)
    assert memory.standing(entry["id"]) == ["unknown"]
    assert memory.recalled("it ended for good") == []
    assert memory.get("/v1/stats")["by_status"] == {"forgotten": 1}


# C15
def test_a_forgotten_text_can_be_remembered_again(memory: Memory) -> None:
    first = memory.fact("Dashboard theme is dark.", subject="theme")["id"]
    memory.forget(first)

    answer = memory.remember("Dashboard theme is dark.", subject="theme", status=201)

    assert answer["outcome"] == "created"
    assert answer["fact"]["id"] != first
    links = memory.all("/v1/links", kind="reasserts")
    assert [(link["source_id"], link["target_id"]) for link in links] == [(answer["fact"]["id"], first)]
    assert memory.standing(first) == ["forgotten"]


# --- Restore ---------------------------------------------------------------------------------------------------


def test_a_fact_that_was_never_retired_cannot_be_restored(memory: Memory) -> None:
    fact = memory.fact("Held.")

    assert memory.restore(fact["id"], status=409)["code"] == "conflict"
    assert memory.restore(NEVER, status=404)["code"] == "fact_not_found"


def test_a_forgotten_fact_comes_back(memory: Memory) -> None:
    fact = memory.fact("Held.", subject="it", tags=["kept"])
    memory.forget(fact["id"])

    answer = memory.restore(fact["id"], reason="It was a mistake.", status=200)

    assert answer["fact"]["status"] == "active"
    assert answer["superseded"] == []
    assert memory.current(subject="it")[0]["tags"] == ["kept"]
    (link,) = memory.all("/v1/links", fact=fact["id"])
    assert (link["kind"], link["demotion_reason"]) == ("relates_to", "It was a mistake.")
    assert memory.actions(fact["id"]) == ["remembered", "forgotten", "restored"]


def test_a_replaced_fact_is_not_restored_while_its_subject_is_taken(memory: Memory) -> None:
    first, second = chain(memory, "One.", "Two.")

    problem = memory.restore(first, status=409)

    assert (problem["code"], problem["head"]) == ("address_taken", second)
    assert memory.standing(first, second) == ["superseded", "active"]


def test_restoring_in_the_place_of_another_retires_that_one(memory: Memory) -> None:
    first, second, third = chain(memory, "One.", "Two.", "Three.")

    answer = memory.restore(first, replace=True)

    assert [gone["id"] for gone in answer["superseded"]] == [third]
    assert memory.standing(first, second, third) == ["active", "superseded", "superseded"]
    assert memory.texts() == ["One."]
    assert memory.get(f"/v1/facts/{third}", status=410)["head"] == first
    history = memory.history(second)
    assert history["head"] == first
    assert {fact["id"] for fact in history["facts"]} == {first, second, third}


def test_restoring_leaves_the_replacement_where_the_subjects_differ(memory: Memory) -> None:
    first = memory.fact("One.", subject="one")["id"]
    second = memory.supersede(first, content="Two.", subject="two")["fact"]["id"]

    memory.restore(first, status=200)

    assert memory.standing(first, second) == ["active", "active"]
    assert [fact["id"] for fact in memory.history(first)["facts"]] == [first]


def test_restoring_the_same_text_twice_is_not_possible(memory: Memory) -> None:
    first = memory.fact("Said.")["id"]
    memory.forget(first)
    again = memory.fact("Said.")["id"]

    problem = memory.restore(first, status=409)
    memory.restore(first, replace=True, status=200)

    assert problem["head"] == again
    assert memory.standing(first, again) == ["active", "superseded"]


def test_a_restored_fact_can_be_replaced_again(memory: Memory) -> None:
    first, second = chain(memory, "One.", "Two.")
    memory.restore(first, replace=True)

    third = memory.supersede(first, content="Three.")["fact"]["id"]

    assert memory.standing(first, second) == ["superseded", "superseded"]
    assert memory.get(f"/v1/facts/{second}", status=410)["head"] == third


def test_restoring_the_middle_of_a_chain_takes_its_past_along(memory: Memory) -> None:
    first, second, third = chain(memory, "One.", "Two.", "Three.")
    memory.forget(third)

    memory.restore(second)

    assert memory.standing(first, second, third) == ["superseded", "active", "forgotten"]
    assert memory.get(f"/v1/facts/{first}", status=410)["head"] == second
    assert memory.get(f"/v1/facts/{third}", status=410)["head"] is None


def test_one_of_two_merged_facts_is_restored_alone(memory: Memory) -> None:
    one, other = memory.fact("One.")["id"], memory.fact("Other.")["id"]
    merged = memory.remember("Both.", supersedes=[one, other], reason="Merged.")["fact"]["id"]

    memory.restore(other)

    assert memory.standing(one, other, merged) == ["superseded", "active", "active"]
    assert memory.get(f"/v1/facts/{one}", status=410)["head"] == merged


# --- Pin -------------------------------------------------------------------------------------------------------


def test_a_retired_fact_cannot_be_pinned(memory: Memory) -> None:
    first, second = chain(memory, "One.", "Two.")

    problem = memory.post(f"/v1/facts/{first}/pin", status=409)

    assert (problem["code"], problem["head"]) == ("fact_already_retired", second)


def test_a_pinned_fact_can_be_replaced_and_its_replacement_is_not_pinned(memory: Memory) -> None:
    first = memory.fact("One.", subject="it")["id"]
    assert memory.post(f"/v1/facts/{first}/pin")["pinned"] is True

    second = memory.supersede(first, content="Two.")["fact"]

    assert second["pinned"] is False
    assert memory.standing(first) == ["superseded"]


def test_pinning_twice_is_one_event(memory: Memory) -> None:
    fact = memory.fact("One.")["id"]

    for verb in ("pin", "pin", "unpin", "unpin"):
        memory.post(f"/v1/facts/{fact}/{verb}", status=200)

    assert memory.actions(fact) == ["remembered", "pinned", "unpinned"]
