"""Conflicts that nobody can settle are shown with both sides until somebody does."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.clients import NEVER, Memory


def contested(memory: Memory, **fields: Any) -> tuple[str, str, str]:
    """Two current facts that contradict each other, the older first, and their link."""
    memory.policy(policy="suggest")
    old = memory.fact("Read cap is 300 calls a minute.", subject="cap", **fields)["id"]
    answer = memory.remember("Read cap is 900 calls a minute.", subject="cap", **fields)
    return old, answer["fact"]["id"], answer["conflicts"][0]["link_id"]


def test_a_conflict_is_listed_with_both_facts_and_what_differs(memory: Memory) -> None:
    old, new, link = contested(memory)

    (conflict,) = memory.conflicts()

    assert (conflict["id"], conflict["kind"]) == (link, "value")
    assert (conflict["fact"]["id"], conflict["other"]["id"]) == (new, old)
    assert conflict["detail"]
    assert conflict["drawn_by"] == "key:tester"


# C02
@pytest.mark.parametrize("end", ["supersede", "forget"])
def test_a_conflict_is_gone_as_soon_as_one_side_is(memory: Memory, end: str) -> None:
    old, new, _ = contested(memory)

    if end == "supersede":
        memory.supersede(old, by=new)
    else:
        memory.forget(new)

    assert memory.conflicts() == []
    assert len(memory.all("/v1/links", kind="contradicts")) == 1


def test_conflicts_are_found_by_scope_subject_fact_and_kind(memory: Memory) -> None:
    old, new, _ = contested(memory, scope="team/a")

    found: list[dict[str, Any]] = [
        {"scope": "team/a"},
        {"subject": "CAP"},
        {"fact": old},
        {"fact": new},
        {"kind": "value"},
        {"scope": "team/a", "subject": "cap", "fact": new, "kind": "value"},
    ]
    for filters in found:
        assert len(memory.conflicts(**filters)) == 1
    for filters in ({"scope": "team/b"}, {"subject": "cup"}, {"fact": NEVER}, {"kind": "unit"}):
        assert memory.conflicts(**filters) == []


def test_conflicts_come_in_pages_the_latest_first(memory: Memory) -> None:
    memory.policy(policy="suggest")
    for n in range(5):
        memory.remember(f"Cap of shelf {n} is 300 units.", subject=f"shelf.{n}")
        memory.remember(f"Cap of shelf {n} is 900 units.", subject=f"shelf.{n}")

    pages = memory.conflicts(limit=2)

    assert [pair["fact"]["subject"] for pair in pages] == [f"shelf.{n}" for n in (4, 3, 2, 1, 0)]


# --- Resolve ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", ["old", "new"])
def test_keeping_one_side_retires_the_other_by_it(memory: Memory, kept: str) -> None:
    old, new, link = contested(memory)
    keep, gone = (old, new) if kept == "old" else (new, old)

    answer = memory.resolve(link, keep, reason="The contract says so.")

    assert ([fact["id"] for fact in answer["kept"]], answer["superseded"]) == ([keep], [gone])
    assert [fact["id"] for fact in memory.current()] == [keep]
    assert memory.get(f"/v1/facts/{gone}", status=410)["head"] == keep
    assert memory.conflicts() == []
    ended = next(fact for fact in memory.history(gone)["facts"] if fact["id"] == gone)
    assert (ended["reason"], ended["rule"]) == ("The contract says so.", "explicit")
    assert memory.actions(gone)[-1] == "superseded"


def test_keeping_both_lists_the_pair_no_more(memory: Memory) -> None:
    old, new, link = contested(memory)

    answer = memory.resolve(link, "both", reason="Two endpoints.")

    assert answer["superseded"] == []
    assert (answer["link"]["resolution"], answer["link"]["resolved_by"]) == ("Two endpoints.", "key:tester")
    assert memory.standing(old, new) == ["active", "active"]
    assert memory.conflicts() == []
    assert memory.actions(new)[-1] == "resolved"


def test_a_conflict_is_settled_once(memory: Memory) -> None:
    old, _, link = contested(memory)
    memory.resolve(link, "both")

    problem = memory.resolve(link, old, status=409)

    assert problem["code"] == "link_settled"
    assert memory.standing(old) == ["active"]


def test_only_a_side_of_the_conflict_can_be_kept(memory: Memory) -> None:
    old, new, link = contested(memory)
    other = memory.fact("Unrelated.")["id"]

    for keep in (other, NEVER, "neither"):
        problem = memory.resolve(link, keep, status=422)
        assert problem["errors"][0]["pointer"] == "/keep"

    assert memory.standing(old, new) == ["active", "active"]


def test_only_a_conflict_can_be_resolved(memory: Memory) -> None:
    one, other = memory.fact("One.")["id"], memory.fact("Other.")["id"]
    link = memory.link("relates_to", one, other)["id"]

    assert memory.resolve(link, "both", status=404)["code"] == "link_not_found"
    assert memory.resolve(NEVER, "both", status=404)["code"] == "link_not_found"


def test_a_trusted_fact_may_lose_to_a_guess_by_decision_and_that_is_audited(memory: Memory) -> None:
    said = memory.fact("Sol is vegan.", subject="diet", kind="state", source={"tier": "user"})["id"]
    guess = memory.remember("Sol eats fish.", subject="diet", kind="state", source={"tier": "inferred"})

    memory.resolve(guess["conflicts"][0]["link_id"], guess["fact"]["id"])

    (event,) = memory.all("/v1/audit", fact=said, action="superseded")
    assert event["detail"]["forced"] is True


def test_evidence_of_a_decision_is_checked_like_any_other(memory: Memory) -> None:
    _, new, link = contested(memory)

    assert memory.resolve(link, new, evidence="not there", status=422)["code"] == "evidence_not_found"
    memory.policy(require_evidence=True)
    assert memory.resolve(link, new, status=422)["code"] == "evidence_required"
    memory.resolve(link, new, evidence="900 calls", status=200)


def test_a_restored_side_contradicts_again(memory: Memory) -> None:
    one, other = memory.fact("One holds.")["id"], memory.fact("The other holds.")["id"]
    link = memory.link("contradicts", one, other)["id"]
    memory.resolve(link, other)

    memory.restore(one)

    assert memory.standing(one, other) == ["active", "active"]
    assert [conflict["id"] for conflict in memory.conflicts()] == [link]


def test_settling_takes_the_role_for_it(memory: Memory, client_of: Callable[..., Memory]) -> None:
    _, new, link = contested(memory)
    writer = client_of(roles=["read", "write"])

    assert writer.resolve(link, new, status=403)["code"] == "role_forbidden"
    assert writer.demote(link, status=403)["code"] == "role_forbidden"
    assert len(memory.conflicts()) == 1


def test_recall_marks_both_sides_of_a_conflict(memory: Memory) -> None:
    old, new, _ = contested(memory)

    results = memory.recall("read cap")["results"]

    assert {result["fact"]["id"]: result["conflicts_with"] for result in results} == {new: [old], old: [new]}
