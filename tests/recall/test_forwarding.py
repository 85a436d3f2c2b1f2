"""A retired fact answers its old questions by pointing at what replaced it."""

from tests.clients import Memory

OLD = "We run Postgres for everything, including the job queue."
NEW = "Background work moved to RabbitMQ; the relational store no longer carries it."
QUESTION = "Do we use Postgres for the job queue?"


def fill(memory: Memory) -> None:
    texts = ("The job board lists two openings.", "Coffee is at ten.", "The Oak room has a projector.")
    memory.post("/v1/facts/batch", {"facts": [{"content": text} for text in texts]})


def test_the_old_words_find_the_new_fact(memory: Memory) -> None:
    fill(memory)
    old = memory.fact(OLD)
    memory.supersede(old["id"], content=NEW, reason="The queue outgrew the database.")

    first = memory.recall(QUESTION)["results"][0]

    assert first["fact"]["content"] == NEW
    assert first["forwarded_by"] == old["id"]
    assert [(r["id"], r["reason"]) for r in first["replaces"]] == [(old["id"], "The queue outgrew the database.")]


def test_a_chain_of_replacements_ends_at_its_head(memory: Memory) -> None:
    fill(memory)
    first = memory.fact(OLD)
    second = memory.supersede(first["id"], content="Jobs are rows of a table named work_items.")["fact"]
    memory.supersede(second["id"], content=NEW)

    answer = memory.recall(QUESTION, k=1)["results"][0]

    assert answer["fact"]["content"] == NEW
    assert {replaced["id"] for replaced in answer["replaces"]} == {first["id"], second["id"]}


def test_no_retired_text_comes_back(memory: Memory) -> None:
    fill(memory)
    memory.supersede(memory.fact(OLD)["id"], content=NEW)

    answer = memory.recall(QUESTION, k=100, explain=True)

    assert "Postgres" not in str([result["fact"] for result in answer["results"]])
    assert answer["suppressed"]["retired"] == 1


def test_a_better_current_fact_is_not_displaced(memory: Memory) -> None:
    memory.supersede(memory.fact(OLD)["id"], content=NEW)
    memory.fact("We use Postgres for the job queue of the billing service.")

    found = memory.recalled(QUESTION)

    assert found[0] == "We use Postgres for the job queue of the billing service."


def test_retired_facts_are_shown_on_request_right_below_their_head(memory: Memory) -> None:
    fill(memory)
    old = memory.fact(OLD)
    memory.supersede(old["id"], content=NEW, reason="The queue outgrew the database.")

    results = memory.recall(QUESTION, include=["retired"])["results"]
    texts = [result["fact"]["content"] for result in results]
    shown = results[texts.index(OLD)]["fact"]

    assert texts.index(OLD) == texts.index(NEW) + 1
    assert (shown["status"], shown["reason"]) == ("superseded", "The queue outgrew the database.")
    assert shown["retired_at"] is not None


def test_a_forgotten_fact_is_labelled_and_nothing_is_invented_in_its_place(memory: Memory) -> None:
    fill(memory)
    memory.forget(memory.fact(OLD)["id"], reason="It was a misunderstanding.")

    hidden = memory.recall(QUESTION)
    shown = memory.recall(QUESTION, include=["retired"])["results"][0]

    assert OLD not in [result["fact"]["content"] for result in hidden["results"]]
    assert hidden["suppressed"]["retired"] == 1
    assert (shown["fact"]["content"], shown["fact"]["status"]) == (OLD, "forgotten")
    assert (shown["fact"]["reason"], shown["replaces"]) == ("It was a misunderstanding.", [])


def test_many_retired_values_do_not_crowd_out_what_is_current(memory: Memory) -> None:
    values = [{"content": f"The harbour crane is painted shade {n}.", "subject": "crane.colour"} for n in range(200)]
    memory.post("/v1/facts/batch", {"facts": values})
    memory.fact("The harbour crane was painted by Eetu's crew.")

    found = memory.recalled("The harbour crane is painted shade 7.", k=5)

    assert set(found) == {
        "The harbour crane was painted by Eetu's crew.",
        "The harbour crane is painted shade 199.",
    }


def test_the_reason_of_a_retirement_is_no_memory(memory: Memory) -> None:
    plant = memory.fact("The office plant is a fern.")
    memory.forget(plant["id"], reason="Consolidation failed after the import and the prune.")

    assert memory.recalled("consolidation failed import prune") == []
    assert memory.recalled("consolidation failed import prune", include=["retired"]) == [plant["content"]]
