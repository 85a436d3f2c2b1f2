"""Recall at another moment: what was true then, and what the memory held then."""

from datetime import UTC, datetime

from tests.clients import Memory


def now() -> str:
    return datetime.now(UTC).isoformat()


def test_what_was_true_then_is_found_although_it_was_replaced(memory: Memory) -> None:
    memory.fact("The warden is Ilse.", subject="warden", valid_from="2020-01-01T00:00:00Z")
    memory.fact("The warden is Bodo.", subject="warden", valid_from="2022-06-01T00:00:00Z")

    assert memory.recalled("who is the warden") == ["The warden is Bodo."]
    assert memory.recalled("who is the warden", as_of="2021-03-01T00:00:00Z") == ["The warden is Ilse."]


def test_at_the_instant_of_the_change_only_the_newer_holds(memory: Memory) -> None:
    memory.fact("The warden is Ilse.", subject="warden", valid_from="2020-01-01T00:00:00Z")
    memory.fact("The warden is Bodo.", subject="warden", valid_from="2022-06-01T00:00:00Z")

    assert memory.recalled("who is the warden", as_of="2022-06-01T00:00:00Z") == ["The warden is Bodo."]
    assert memory.recalled("who is the warden", as_of="2022-05-31T23:59:59.999999Z") == ["The warden is Ilse."]


def test_what_the_memory_held_then_does_not_know_what_it_learned_later(memory: Memory) -> None:
    memory.fact("The warden is Ilse.", subject="warden", valid_from="2020-01-01T00:00:00Z")
    before = now()
    memory.fact("The warden is Bodo.", subject="warden", valid_from="2022-06-01T00:00:00Z")

    assert memory.recalled("who is the warden", known_at=before) == ["The warden is Ilse."]
    assert memory.recalled("who is the warden", as_of="2023-01-01T00:00:00Z", known_at=before) == [
        "The warden is Ilse."
    ]


def test_what_the_memory_held_then_does_not_know_that_a_retirement_was_undone_later(memory: Memory) -> None:
    ilse = memory.fact("The warden is Ilse.", subject="warden", valid_from="2020-01-01T00:00:00Z")
    memory.fact("The warden is Bodo.", subject="warden", valid_from="2022-06-01T00:00:00Z")
    between = now()
    memory.restore(ilse["id"], replace=True)

    assert memory.recalled("who is the warden", known_at=between) == ["The warden is Bodo."]
    assert memory.recalled("who is the warden", as_of="2021-03-01T00:00:00Z", known_at=between) == [
        "The warden is Ilse."
    ]
    assert memory.recalled("who is the warden") == ["The warden is Ilse."]


def test_what_the_memory_held_then_does_not_know_that_a_forgotten_fact_came_back(memory: Memory) -> None:
    fact = memory.fact("The bridge toll is two crowns.")
    memory.forget(fact["id"])
    between = now()
    memory.restore(fact["id"])

    assert memory.recalled("bridge toll", known_at=between) == []
    assert memory.recalled("bridge toll", known_at=now()) == ["The bridge toll is two crowns."]


def test_before_anything_was_known_nothing_is_found(memory: Memory) -> None:
    before = now()
    memory.fact("The warden is Ilse.", subject="warden", valid_from="2020-01-01T00:00:00Z")

    assert memory.recalled("who is the warden", known_at=before) == []


def test_a_window_is_half_open(memory: Memory) -> None:
    memory.fact(
        "The bridge toll is two crowns.",
        valid_from="2021-01-01T00:00:00Z",
        valid_to="2022-01-01T00:00:00Z",
    )

    assert memory.recalled("bridge toll", as_of="2021-01-01T00:00:00Z") == ["The bridge toll is two crowns."]
    assert memory.recalled("bridge toll", as_of="2022-01-01T00:00:00Z") == []
    assert memory.recalled("bridge toll") == []


def test_a_fact_of_the_past_says_what_became_of_it(memory: Memory) -> None:
    memory.fact("The warden is Ilse.", subject="warden", valid_from="2020-01-01T00:00:00Z")
    memory.fact("The warden is Bodo.", subject="warden", valid_from="2022-06-01T00:00:00Z")

    fact = memory.recall("who is the warden", as_of="2021-03-01T00:00:00Z")["results"][0]["fact"]

    assert fact["status"] == "superseded"
    assert fact["retired_at"] is not None


def test_planned_beginnings_and_ends_are_told_apart_from_what_holds(memory: Memory) -> None:
    memory.fact("The agency is Bluefin.", valid_from="2024-01-01T00:00:00Z", valid_to="2025-01-01T00:00:00Z")
    memory.fact("The agency will be Redfin.", valid_from="2031-01-01T00:00:00Z")
    memory.fact("The lease runs to the middle of 2031.", valid_to="2031-06-30T00:00:00Z")

    assert "agency" not in " ".join(memory.recalled("who is the agency"))
    assert memory.recalled("who is the agency", as_of="2024-06-01T00:00:00Z")[:1] == ["The agency is Bluefin."]
    assert memory.recalled("who is the agency", as_of="2031-02-01T00:00:00Z")[:1] == ["The agency will be Redfin."]
    assert memory.recalled("how long does the lease run") == ["The lease runs to the middle of 2031."]


def test_being_recalled_leaves_the_end_of_a_fact_where_it_is(memory: Memory) -> None:
    lease = memory.fact("The lease runs for a while.", valid_to="2999-06-30T00:00:00Z")

    for _ in range(10):
        memory.recall("how long does the lease run")

    held = memory.get(f"/v1/facts/{lease['id']}")
    kept = ("content", "valid_from", "valid_to", "status", "superseded_by")
    assert {name: held.get(name) for name in kept} == {name: lease.get(name) for name in kept}
