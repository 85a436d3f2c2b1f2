"""A fact is replaced once, by what is current, and every retirement can be followed and explained."""

from typing import Any

import pytest

from tests.clients import NEVER, Memory


def chain(memory: Memory, *texts: str, subject: str = "vpn") -> list[str]:
    """The ids of facts of which each superseded the one before."""
    ids = [memory.fact(texts[0], subject=subject)["id"]]
    for text in texts[1:]:
        ids.append(memory.supersede(ids[-1], content=text)["fact"]["id"])
    return ids


# --- What may replace what -------------------------------------------------------------------------------------


def test_a_fact_cannot_replace_itself(memory: Memory) -> None:
    fact = memory.fact("The VPN runs on WireGuard.")

    problem = memory.supersede(fact["id"], by=fact["id"], status=422)

    assert problem["code"] == "self_supersede"
    assert memory.standing(fact["id"]) == ["active"]


def test_a_replacement_cannot_say_what_the_fact_says(memory: Memory) -> None:
    fact = memory.fact("The VPN runs on WireGuard.", subject="vpn")

    problem = memory.supersede(fact["id"], content="the VPN  runs on wireguard", status=422)

    assert problem["code"] == "self_supersede"
    assert memory.texts() == ["The VPN runs on WireGuard."]


def test_a_retired_fact_cannot_replace_its_own_replacement(memory: Memory) -> None:
    first, second = chain(memory, "OpenVPN it is.", "WireGuard it is.")

    problem = memory.supersede(second, by=first, status=409)

    assert (problem["code"], problem["head"]) == ("replacement_retired", second)
    assert memory.standing(first, second) == ["superseded", "active"]


# C17
@pytest.mark.parametrize("closing", [0, 1, 2])
def test_a_chain_cannot_be_closed_at_any_depth(memory: Memory, closing: int) -> None:
    ids = chain(memory, "Driver 1.", "Driver 2.", "Driver 3.", "Driver 4.")

    memory.supersede(ids[-1], by=ids[closing], status=409)

    assert memory.texts() == ["Driver 4."]
    assert [fact["id"] for fact in memory.history(ids[0])["facts"]] == ids


def test_whoever_replaces_a_retired_fact_is_told_the_head(memory: Memory) -> None:
    first, _, third = chain(memory, "One.", "Two.", "Three.")

    problem = memory.supersede(first, content="Four.", status=409)

    assert (problem["code"], problem["head"]) == ("fact_already_retired", third)
    assert memory.texts() == ["Three."]


# C18
def test_a_retired_fact_cannot_replace_another(memory: Memory) -> None:
    held, gone = memory.fact("Held.")["id"], memory.fact("Gone.")["id"]
    memory.forget(gone)

    problem = memory.supersede(held, by=gone, status=409)

    assert (problem["code"], problem["head"]) == ("replacement_retired", None)
    assert memory.standing(held) == ["active"]


# C18
def test_a_replacement_that_does_not_exist_is_not_found(memory: Memory) -> None:
    fact = memory.fact("Held.")

    problem = memory.supersede(fact["id"], by=NEVER, status=404)

    assert problem["code"] == "fact_not_found"
    assert memory.standing(fact["id"]) == ["active"]


# C18
def test_a_fact_that_does_not_exist_cannot_be_replaced(memory: Memory) -> None:
    fact = memory.fact("Held.")

    assert memory.supersede(NEVER, by=fact["id"], status=404)["code"] == "fact_not_found"
    assert memory.supersede(NEVER, content="New.", status=404)["code"] == "fact_not_found"
    assert memory.texts() == ["Held."]


# C18
def test_the_beginning_of_an_id_is_no_id(memory: Memory) -> None:
    fact = memory.fact("Held.")

    problem = memory.supersede(fact["id"][:8], content="New.", status=422)

    assert problem["errors"][0]["pointer"] == "path/fact_id"
    assert memory.texts() == ["Held."]


# C18
def test_the_same_pair_again_is_no_new_claim(memory: Memory) -> None:
    old, new = memory.fact("Old.")["id"], memory.fact("New.")["id"]
    memory.supersede(old, by=new, reason="First.")

    answer = memory.supersede(old, by=new, reason="Second.", status=200)

    assert answer["fact"]["id"] == new
    assert memory.history(old)["facts"][0]["reason"] == "First."
    assert memory.actions(old) == ["remembered", "superseded"]


# C18
def test_a_second_successor_is_a_conflict(memory: Memory) -> None:
    old, new, other = (memory.fact(text)["id"] for text in ("Old.", "New.", "Other."))
    memory.supersede(old, by=new)

    problem = memory.supersede(old, by=other, status=409)

    assert problem["head"] == new
    assert memory.standing(old, new, other) == ["superseded", "active", "active"]


# C01
def test_a_replaced_fact_is_in_no_ordinary_read_and_in_the_history(memory: Memory) -> None:
    old = memory.fact("Web lookups go through Brightbox.")["id"]
    new = memory.fact("Web lookups go through Larkfeed.")["id"]

    memory.supersede(old, by=new)

    assert memory.recalled("web lookups go through Brightbox") == ["Web lookups go through Larkfeed."]
    assert memory.texts() == ["Web lookups go through Larkfeed."]
    assert memory.get("/v1/stats")["current"] == 1
    history = memory.history(old)
    assert [fact["id"] for fact in history["facts"]] == [old, new]
    assert history["facts"][0]["superseded_by"] == new
    assert memory.history(new) == history


def test_reading_a_replaced_fact_says_when_why_and_by_what(memory: Memory) -> None:
    first, _, third = chain(memory, "One.", "Two.", "Three.")

    problem = memory.get(f"/v1/facts/{first}", status=410)

    assert problem["head"] == third
    assert problem["reason"] == "It changed."
    assert problem["retired_at"].endswith("Z")


def test_several_facts_are_replaced_by_one_in_one_write(memory: Memory) -> None:
    ids = [memory.fact(text)["id"] for text in ("The door is red.", "The door is made of oak.")]

    answer = memory.remember("The door is red oak.", supersedes=ids, reason="Merged.")

    assert {retired["id"] for retired in answer["superseded"]} == set(ids)
    assert memory.standing(*ids) == ["superseded", "superseded"]
    history = memory.history(answer["fact"]["id"])
    assert [fact["content"] for fact in history["facts"]] == [
        "The door is red.",
        "The door is made of oak.",
        "The door is red oak.",
    ]


def test_a_merge_with_one_missing_fact_writes_nothing(memory: Memory) -> None:
    held = memory.fact("Held.")["id"]

    memory.remember("Merged.", supersedes=[held, NEVER], reason="Merged.", status=404)

    assert memory.texts() == ["Held."]
    assert memory.actions(held) == ["remembered"]


def test_a_merge_names_a_fact_twice_and_retires_it_once(memory: Memory) -> None:
    held = memory.fact("Held.")["id"]

    answer = memory.remember("New.", supersedes=[held, held], reason="Twice.")

    assert [retired["id"] for retired in answer["superseded"]] == [held]


def test_folding_facts_together_keeps_both_parents(memory: Memory) -> None:
    first = memory.fact("Standup is at 9:30 in the Oak room.")["id"]
    second = memory.fact("Priya chairs the standup.")["id"]

    merged = memory.amend(first, "Standup is at 9:00 in the Oak room, chaired by Priya.", folds=[second])

    assert memory.standing(first, second) == ["amended", "amended"]
    history = memory.history(merged["fact"]["id"])
    assert {fact["id"] for fact in history["facts"]} == {first, second, merged["fact"]["id"]}
    assert {link["kind"] for link in history["links"]} == {"amends"}
    assert history["head"] == merged["fact"]["id"]


def test_a_fact_that_was_folded_in_forwards_to_the_merged_one(memory: Memory) -> None:
    first, second = memory.fact("One.")["id"], memory.fact("Two.")["id"]
    merged = memory.amend(first, "One and two.", folds=[second])["fact"]["id"]
    last = memory.supersede(merged, content="Three.")["fact"]["id"]

    assert memory.get(f"/v1/facts/{second}", status=410)["head"] == last


def test_splitting_a_fact_keeps_both_halves_current(memory: Memory) -> None:
    whole = memory.fact("Standup is at 9:30 in the Oak room.")["id"]

    time = memory.amend(whole, "Standup is at 9:00.")["fact"]["id"]
    room = memory.fact("Standup is in the Oak room.")["id"]
    memory.link("relates_to", room, whole)

    assert memory.standing(time, room) == ["active", "active"]


def test_an_event_is_corrected_explicitly(memory: Memory) -> None:
    event = memory.fact("Migration 41 ran on Monday.", kind="event")["id"]

    answer = memory.supersede(event, content="Migration 41 ran on Tuesday.", reason="The log says so.")

    assert answer["fact"]["kind"] == "event"
    assert memory.texts() == ["Migration 41 ran on Tuesday."]


def test_a_replacement_takes_over_what_it_leaves_out(memory: Memory) -> None:
    old = memory.fact("It is dark.", subject="theme", scope="team/a", tags=["ui"])["id"]

    fact = memory.supersede(old, content="It is light.")["fact"]

    assert (fact["subject"], fact["scope"], fact["tags"], fact["kind"]) == ("theme", "team/a", ["ui"], "state")


def test_a_fact_at_another_subject_may_replace_one_explicitly(memory: Memory) -> None:
    old = memory.fact("It is dark.", subject="theme")["id"]

    answer = memory.supersede(old, content="It is light.", subject="dashboard.theme")

    assert answer["fact"]["subject"] == "dashboard.theme"
    assert memory.texts() == ["It is light."]


def test_told_to_replace_one_fact_the_write_leaves_another_alone(memory: Memory) -> None:
    held = memory.fact("Printer is in hall 1.", subject="printer")["id"]
    named = memory.fact("Scanner is in hall 1.", subject="scanner")["id"]

    answer = memory.remember("Scanner is in hall 2.", subject="scanner", supersedes=[named], reason="Moved.")

    assert answer["superseded"] == [{"id": named, "rule": "explicit"}]
    assert memory.standing(held, named) == ["active", "superseded"]


def test_what_the_rules_find_beside_a_named_fact_is_reported_and_stays(memory: Memory) -> None:
    memory.policy(policy="suggest")
    found = memory.fact("Read cap is 300 calls a minute.")["id"]
    named = memory.fact("Limits are written down in the wiki.")["id"]

    answer = memory.remember("Read cap is 900 calls a minute.", supersedes=[named], reason="Moved.")

    assert [conflict["fact_id"] for conflict in answer["conflicts"]] == [found]
    assert memory.standing(found, named) == ["active", "superseded"]


# --- Proof -----------------------------------------------------------------------------------------------------


def test_retiring_needs_a_reason(memory: Memory) -> None:
    fact = memory.fact("Held.")

    without = memory.post(f"/v1/facts/{fact['id']}/supersede", {"content": "New."}, status=422)
    blank = memory.supersede(fact["id"], content="New.", reason=" \u200b ", status=422)
    named = memory.remember("New.", supersedes=[fact["id"]], status=422)

    assert [problem["errors"][0]["pointer"] for problem in (without, blank)] == ["/reason", "/reason"]
    assert named["errors"][0]["code"] == "reason_required"
    assert memory.texts() == ["Held."]


@pytest.mark.parametrize(
    ("evidence", "status"),
    [("moved to 9:00", 201), ("as the calendar shows", 201), ("moved to  9:00", 422), ("Moved to 9:00", 422)],
)
def test_evidence_occurs_word_for_word_in_the_text_or_its_source(memory: Memory, evidence: str, status: int) -> None:
    fact = memory.fact("Standup is at 9:30.", subject="standup")

    memory.supersede(
        fact["id"],
        content="Standup moved to 9:00.",
        source={"quote": "It is at 9:00 as the calendar shows."},
        evidence=evidence,
        status=status,
    )

    assert memory.standing(fact["id"]) == ["superseded" if status == 201 else "active"]


def test_evidence_for_an_existing_fact_is_looked_for_in_that_fact(memory: Memory) -> None:
    old, new = memory.fact("Old.")["id"], memory.fact("The new one.")["id"]

    assert memory.supersede(old, by=new, evidence="something else", status=422)["code"] == "evidence_not_found"
    memory.supersede(old, by=new, evidence="new one")

    assert memory.history(old)["facts"][0]["evidence"] == "new one"


def test_a_namespace_may_insist_on_evidence(memory: Memory) -> None:
    memory.policy(require_evidence=True)
    fact = memory.fact("Held.")

    problem = memory.supersede(fact["id"], content="New.", status=422)
    memory.supersede(fact["id"], content="New.", evidence="New", status=201)

    assert problem["code"] == "evidence_required"


# C25
def test_the_history_says_who_retired_a_fact_when_by_which_rule_and_why(memory: Memory) -> None:
    first = memory.fact("Read cap is 300 calls a minute.", subject="cap")["id"]

    second = memory.remember("Read cap is 900 calls a minute.", subject="cap")["fact"]["id"]
    memory.supersede(second, content="There is no read cap.", reason="Lifted.", evidence="no read cap")

    by_rule, told, standing = memory.history(first)["facts"]
    assert (by_rule["retired_by"], by_rule["rule"], by_rule["superseded_by"]) == ("key:tester", "auto_key/1", second)
    assert by_rule["reason"]
    assert (told["rule"], told["reason"], told["evidence"]) == ("explicit", "Lifted.", "no read cap")
    assert told["retired_at"] == standing["recorded_at"]
    assert standing["retired_at"] is None


def test_an_automatic_retirement_has_its_evidence_where_that_is_required(memory: Memory) -> None:
    memory.policy(require_evidence=True)
    first = memory.fact("Read cap is 300 calls a minute.", subject="cap")["id"]

    memory.remember("Read cap is 900 calls a minute.", subject="cap")

    assert memory.history(first)["facts"][0]["evidence"] == "Read cap is 900 calls a minute."


# --- Chains ----------------------------------------------------------------------------------------------------


def test_the_history_is_the_same_from_every_member_of_a_chain(memory: Memory) -> None:
    ids = chain(memory, "One.", "Two.", "Three.")

    histories = [memory.history(id_) for id_ in ids]

    assert histories[0] == histories[1] == histories[2]
    assert [fact["id"] for fact in histories[0]["facts"]] == ids
    assert histories[0]["head"] == ids[-1]


def test_a_chain_of_a_thousand_has_a_head_and_a_history(memory: Memory) -> None:
    items = [{"content": f"Step {n}.", "subject": "counter"} for n in range(1000)]

    batch = memory.batch(*items, status=200)

    first, last = batch["items"][0]["fact"]["id"], batch["items"][-1]["fact"]["id"]
    assert batch["superseded"] == 999
    assert memory.get(f"/v1/facts/{first}", status=410)["head"] == last
    history = memory.history(first)
    assert [fact["content"] for fact in history["facts"]] == [item["content"] for item in items]
    assert history["head"] == last
    assert not history["truncated"]
    assert memory.texts() == ["Step 999."]


def test_a_batch_may_replace_what_it_wrote_itself(memory: Memory) -> None:
    batch = memory.batch(
        {"content": "Depot is in Ghent.", "subject": "depot"},
        {"content": "Depot is in Bruges.", "subject": "depot"},
    )

    assert [item["outcome"] for item in batch["items"]] == ["created", "superseded"]
    assert memory.texts() == ["Depot is in Bruges."]


def test_a_batch_may_go_back_to_what_it_replaced(memory: Memory) -> None:
    held = memory.fact("Theme is dark.", subject="theme")["id"]
    items = [{"content": f"Theme is {colour}.", "subject": "theme"} for colour in ("light", "dark", "light", "dark")]

    batch = memory.batch(*items, status=200)

    assert batch["superseded"] == 4
    ids = [held, *(item["fact"]["id"] for item in batch["items"])]
    assert memory.standing(*ids) == ["superseded"] * 4 + ["active"]
    assert [fact["id"] for fact in memory.history(held)["facts"]] == ids
    assert memory.texts() == ["Theme is dark."]


@pytest.mark.parametrize("before", [[], [None], ["Fine.", ""]])
def test_a_refused_item_of_a_batch_is_named_whatever_else_the_batch_holds(memory: Memory, before: list[Any]) -> None:
    held = memory.fact("Held.")["id"]
    bad = {"content": "One.", "supersedes": [held], "reason": "Changed.", "evidence": "Two."}

    partly = memory.batch(*before, bad, atomic=False, status=200)
    whole = memory.batch(*(item for item in before if item), bad, status=422)

    refused = partly["items"][-1]
    assert (refused["index"], refused["problem"]["index"]) == (len(before), len(before))
    assert refused["problem"]["errors"][0]["pointer"] == f"/facts/{len(before)}/evidence"
    at = sum(bool(item) for item in before)
    assert (whole["index"], whole["errors"][0]["pointer"]) == (at, f"/facts/{at}/evidence")


def test_two_items_of_a_batch_cannot_replace_the_same_fact(memory: Memory) -> None:
    held = memory.fact("Held.")["id"]
    items = [{"content": text, "supersedes": [held], "reason": "Changed."} for text in ("One.", "Two.")]

    refused = memory.batch(*items, status=409)
    partly = memory.batch(*items, atomic=False, status=200)

    assert (refused["code"], refused["index"]) == ("fact_already_retired", 1)
    assert [item["outcome"] for item in partly["items"]] == ["superseded", "rejected"]
    assert partly["items"][1]["problem"]["head"] == partly["items"][0]["fact"]["id"]
    assert memory.texts() == ["One."]
