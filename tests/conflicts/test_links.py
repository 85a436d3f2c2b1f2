"""Links say how facts hang together; taking one back undoes what it asserted."""

import pytest

from tests.clients import NEVER, Memory
from tests.facts.test_superseding import chain


def two(memory: Memory) -> tuple[str, str]:
    return memory.fact("One holds.")["id"], memory.fact("The other holds.")["id"]


def test_two_facts_are_linked_once(memory: Memory) -> None:
    one, other = two(memory)
    first = memory.link("relates_to", one, other, reason="Both are about it.", status=201)

    again = memory.link("relates_to", one, other, status=200)
    turned = memory.link("relates_to", other, one, status=200)

    assert again["id"] == turned["id"] == first["id"]
    assert [link["id"] for link in memory.all("/v1/links", fact=one)] == [first["id"]]


def test_a_declared_contradiction_is_a_conflict(memory: Memory) -> None:
    one, other = two(memory)

    link = memory.link("contradicts", one, other, reason="They cannot both hold.")

    (conflict,) = memory.conflicts()
    assert (conflict["id"], conflict["kind"], conflict["detail"]) == (
        link["id"],
        "declared",
        "They cannot both hold.",
    )
    assert memory.actions(one) == ["remembered", "contested"]


def test_a_fact_is_not_linked_to_itself(memory: Memory) -> None:
    one, _ = two(memory)

    assert memory.link("relates_to", one, one, status=422)["errors"][0]["code"] == "self_link"


@pytest.mark.parametrize("kind", ["supersedes", "amends", "derived_from", "reasserts", "loves"])
def test_links_that_end_a_life_are_not_drawn_by_hand(memory: Memory, kind: str) -> None:
    one, other = two(memory)

    assert memory.link(kind, one, other, status=422)["errors"][0]["pointer"] == "/kind"
    assert memory.all("/v1/links") == []


def test_a_link_needs_facts_that_exist(memory: Memory) -> None:
    one, _ = two(memory)

    assert memory.link("relates_to", one, NEVER, status=404)["code"] == "fact_not_found"
    assert memory.link("relates_to", NEVER, one, status=404)["code"] == "fact_not_found"


def test_a_retired_fact_contradicts_nothing_and_may_still_be_related(memory: Memory) -> None:
    first, second = chain(memory, "One.", "Two.")
    other = memory.fact("Other.")["id"]

    problem = memory.link("contradicts", other, first, status=409)
    memory.link("relates_to", other, first, status=201)

    assert problem["head"] == second


def test_evidence_of_a_link_is_in_one_of_its_facts(memory: Memory) -> None:
    one, other = two(memory)

    problem = memory.link("relates_to", one, other, evidence="neither says", status=422)
    link = memory.link("relates_to", one, other, evidence="other holds", status=201)

    assert problem["code"] == "evidence_not_found"
    assert link["evidence"] == "other holds"


def test_links_are_found_by_fact_and_kind(memory: Memory) -> None:
    first, second = chain(memory, "One.", "Two.")
    other = memory.fact("Other.")["id"]
    memory.link("relates_to", other, second)

    assert {link["kind"] for link in memory.all("/v1/links", limit=1)} == {"supersedes", "relates_to"}
    assert [link["target_id"] for link in memory.all("/v1/links", kind="supersedes")] == [first]
    assert {link["kind"] for link in memory.all("/v1/links", fact=other)} == {"relates_to"}
    assert len(memory.all("/v1/links", fact=second)) == 2


# --- Demote ----------------------------------------------------------------------------------------------------


def test_demoting_what_retired_a_fact_brings_it_back(memory: Memory) -> None:
    old, new = two(memory)
    memory.supersede(old, by=new)
    (link,) = memory.all("/v1/links", kind="supersedes")

    answer = memory.demote(link["id"], reason="The quote is about another team.")

    assert answer["restored"]["id"] == old
    assert (answer["link"]["kind"], answer["link"]["demoted_by"]) == ("relates_to", "key:tester")
    assert answer["link"]["demotion_reason"] == "The quote is about another team."
    assert memory.standing(old, new) == ["active", "active"]
    assert memory.all("/v1/links", kind="supersedes") == []
    assert memory.actions(old) == ["remembered", "superseded", "restored"]


def test_demoting_is_refused_while_the_address_is_taken(memory: Memory) -> None:
    first, second = chain(memory, "One.", "Two.")
    (link,) = memory.all("/v1/links", kind="supersedes")

    problem = memory.demote(link["id"], status=409)

    assert (problem["code"], problem["head"]) == ("address_taken", second)
    assert memory.standing(first, second) == ["superseded", "active"]


def test_demoting_an_amendment_brings_back_that_parent_only(memory: Memory) -> None:
    one, other = two(memory)
    merged = memory.amend(one, "Both hold.", folds=[other])["fact"]["id"]
    link = next(link for link in memory.all("/v1/links", kind="amends") if link["target_id"] == other)

    memory.demote(link["id"])

    assert memory.standing(one, other, merged) == ["amended", "active", "active"]


def test_a_demoted_contradiction_is_no_conflict(memory: Memory) -> None:
    one, other = two(memory)
    link = memory.link("contradicts", one, other)

    answer = memory.demote(link["id"])

    assert (answer["link"]["kind"], answer["restored"]) == ("relates_to", None)
    assert memory.conflicts() == []
    assert memory.actions(one)[-1] == "demoted"


def test_a_link_is_demoted_once(memory: Memory) -> None:
    one, other = two(memory)
    link = memory.link("relates_to", one, other)
    memory.demote(link["id"])

    assert memory.demote(link["id"], status=409)["code"] == "link_settled"
    assert memory.demote(NEVER, status=404)["code"] == "link_not_found"


def test_an_old_retirement_is_not_undone_after_a_later_one(memory: Memory) -> None:
    old, new = two(memory)
    memory.supersede(old, by=new)
    (link,) = memory.all("/v1/links", kind="supersedes")
    memory.demote(link["id"])
    third = memory.supersede(old, content="A third holds.")["fact"]["id"]

    memory.demote(link["id"], status=409)

    assert memory.get(f"/v1/facts/{old}", status=410)["head"] == third
