"""What a new statement does to those that are held: it repeats, stands beside, replaces, or contradicts them."""

from typing import Any

import pytest

from tests.clients import Memory

POLICIES = ["explicit", "suggest", "auto_key", "auto_inferred"]


def pair(memory: Memory, first: str, second: str, **fields: Any) -> tuple[str, Any]:
    """The id of the first statement, and what remembering the second one answered."""
    return memory.fact(first, **fields)["id"], memory.remember(second, **fields)


# --- The same again --------------------------------------------------------------------------------------------


# C30
@pytest.mark.parametrize(
    "again",
    [
        "Printer 3 needs A3 paper.",
        "printer 3 NEEDS a3 paper",
        "  Printer  3 needs\tA3\npaper. ",
        "Printer 3 needs A3 paper!",
        "Ｐrinter 3 needs A3 paper.",
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_text_is_held_once(memory: Memory, policy: str, again: str) -> None:
    memory.policy(policy=policy)
    fact = memory.fact("Printer 3 needs A3 paper.")

    answer = memory.remember(again, status=200)

    assert (answer["outcome"], answer["fact"]["id"]) == ("reaffirmed", fact["id"])
    assert answer["fact"]["observed_count"] == 2
    assert answer["fact"]["content"] == "Printer 3 needs A3 paper."
    assert len(memory.current()) == 1


# C30
def test_a_batch_holds_the_same_text_once(memory: Memory) -> None:
    batch = memory.batch("Printer 3 needs A3 paper.", "printer 3 needs A3 paper", status=200)

    assert [item["outcome"] for item in batch["items"]] == ["created", "reaffirmed"]
    assert batch["items"][0]["fact"]["id"] == batch["items"][1]["fact"]["id"]
    assert memory.current()[0]["observed_count"] == 2


@pytest.mark.parametrize(
    ("composed", "other"),
    [("Café closes at six", "Cafe\u0301 closes at six"), ("STRASSE is closed", "straße is closed")],
)
def test_unicode_forms_and_case_do_not_make_another_text(memory: Memory, composed: str, other: str) -> None:
    memory.remember(composed)

    assert memory.remember(other)["outcome"] == "reaffirmed"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Café closes at six.", "Cafe closes at six."),
        ("日本の税率は10%です。", "日本の首都は東京です。"),
        ("Python 3.1 is supported.", "Python 3.2 is supported."),
        ("Team A deploys on Monday.", "Team B deploys on Monday."),
        ("The C++ guide is in the wiki.", "The C guide is in the wiki."),
        ("Tiếng Việt được hỗ trợ.", "Tiếng Anh được hỗ trợ."),
        ("Mood of the build is 🟢.", "Mood of the build is 🔴."),
    ],
)
def test_texts_that_differ_in_a_letter_digit_or_sign_are_two_facts(memory: Memory, one: str, other: str) -> None:
    first, answer = pair(memory, one, other)

    assert answer["outcome"] == "created"
    assert memory.standing(first) == ["active"]


def test_the_same_text_in_another_scope_or_subject_is_another_fact(memory: Memory) -> None:
    memory.remember("It is dark.", subject="theme", scope="a")

    assert memory.remember("It is dark.", subject="theme", scope="b")["outcome"] == "created"
    assert memory.remember("It is dark.", subject="sky", scope="a")["outcome"] == "created"
    assert memory.remember("It is dark.", scope="a")["outcome"] == "created"


@pytest.mark.parametrize("policy", POLICIES)
def test_a_text_is_held_once_however_often_it_also_happened(memory: Memory, policy: str) -> None:
    memory.policy(policy=policy)
    note = memory.fact("The backup ran.")
    memory.batch(*({"content": "The backup ran.", "kind": "event"} for _ in range(60)))

    assert memory.remember("The backup ran.", status=200)["fact"]["id"] == note["id"]


def test_a_text_is_held_once_however_many_subjects_share_it(memory: Memory) -> None:
    notes = [{"content": "It is done.", "subject": f"task.{n}", "kind": "note"} for n in range(60)]
    memory.batch(*notes)

    again = memory.batch(*notes)

    assert {item["outcome"] for item in again["items"]} == {"reaffirmed"}


def test_what_an_observation_adds_is_kept_as_a_revision(memory: Memory) -> None:
    fact = memory.fact("Held.", tags=["a"], source={"tier": "observed"}, metadata={"x": 1})["id"]

    answer = memory.remember(
        "Held.",
        tags=["b"],
        confidence=0.5,
        agent="crawler",
        metadata={"y": 2},
        source={"tier": "user", "ref": "mail/7", "quote": "held!"},
    )

    assert answer["fact"]["tags"] == ["a", "b"]
    (seen,) = memory.history(fact)["observations"]
    assert seen["source"] == {"tier": "user", "ref": "mail/7", "quote": "held!"}
    assert (seen["tags"], seen["confidence"], seen["agent"], seen["metadata"]) == (["b"], 0.5, "crawler", {"y": 2})
    assert memory.current(tag="b")[0]["source"]["tier"] == "observed"


def test_an_observation_that_says_less_adds_nothing(memory: Memory) -> None:
    fact = memory.fact("Held.", tags=["a", "b"], confidence=0.9, agent="crawler", metadata={"x": 1})

    answer = memory.remember("Held.", tags=["a"])

    assert memory.history(fact["id"])["observations"] == []
    assert answer["fact"]["tags"] == ["a", "b"]
    assert answer["fact"]["confidence"] == 0.9


def test_an_earlier_beginning_of_what_is_held_is_not_dropped_without_a_word(memory: Memory) -> None:
    held = memory.fact("The head office is in Graz.", subject="office")

    again = memory.remember("The head office is in Graz.", subject="office", valid_from="2020-01-01T00:00:00Z")

    assert again["fact"]["valid_from"] == held["valid_from"]
    assert [warning["code"] for warning in again["warnings"]] == ["begins_later"]


def test_an_event_may_happen_again(memory: Memory) -> None:
    first, answer = pair(memory, "Migration ran.", "Migration ran.", kind="event")

    assert answer["outcome"] == "created"
    assert answer["conflicts"] == []
    assert memory.standing(first) == ["active"]


def test_an_event_at_the_same_moment_is_the_same_event(memory: Memory) -> None:
    when = "2026-01-05T09:00:00Z"
    first, answer = pair(memory, "Migration ran.", "Migration ran.", kind="event", observed_at=when)

    assert (answer["outcome"], answer["fact"]["id"]) == ("reaffirmed", first)


def test_an_event_at_the_same_moment_is_found_among_many(memory: Memory) -> None:
    days = [f"2025-{month:02}-{day:02}T02:00:00Z" for month in (1, 2, 3) for day in range(1, 29)]
    events = [{"content": "The backup ran.", "kind": "event", "observed_at": day} for day in days]
    memory.batch(*events)

    again = memory.batch(*events)

    assert {item["outcome"] for item in again["items"]} == {"reaffirmed"}


@pytest.mark.parametrize("policy", POLICIES)
def test_an_event_retires_nothing_and_is_retired_by_nothing(memory: Memory, policy: str) -> None:
    memory.policy(policy=policy)
    state = memory.fact("Depot manager is Ilse.", subject="depot")["id"]
    event = memory.fact("Depot manager was Bram.", subject="depot", kind="event")["id"]

    later = memory.remember("Depot manager was Ilse.", subject="depot", kind="event")

    assert later["superseded"] == []
    assert memory.standing(state, event) == ["active", "active"]


# --- The same address ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["auto_key", "auto_inferred"])
def test_a_new_value_at_a_subject_replaces_the_old_one(memory: Memory, policy: str) -> None:
    memory.policy(policy=policy)
    old, answer = pair(memory, "Depot manager is Bram.", "Depot manager is Ilse.", subject="depot")

    assert answer["outcome"] == "superseded"
    assert answer["superseded"] == [{"id": old, "rule": "auto_key/1"}]
    assert memory.texts() == ["Depot manager is Ilse."]


def test_a_new_value_replaces_all_that_stand_at_its_subject_however_many(memory: Memory) -> None:
    memory.policy(policy="explicit")
    memory.batch(*({"content": f"The read cap is {n} calls.", "subject": "read.cap"} for n in range(250)))
    memory.policy(policy="auto_key")

    memory.remember("The read cap is 900 calls.", subject="read.cap")

    assert memory.texts() == ["The read cap is 900 calls."]


# C20
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Pro plan costs $99 a month.", "Pro plan costs $149 a month."),
        ("Release is on June 14.", "Release is on June 15."),
        ("Runs on v3.8.1.", "Runs on v3.8.2."),
    ],
)
@pytest.mark.parametrize("policy", ["suggest", "auto_key"])
def test_values_that_differ_in_a_number_are_never_taken_for_the_same(
    memory: Memory, policy: str, old: str, new: str
) -> None:
    memory.policy(policy=policy)
    first, answer = pair(memory, old, new, subject="it")

    touched = [c["fact_id"] for c in answer["conflicts"]] + [s["id"] for s in answer["superseded"]]
    assert touched == [first]
    assert memory.texts()[0] == new


# C06, C22
@pytest.mark.parametrize(
    ("said", "denied"),
    [
        ("Ivo enjoys horror films.", "Ivo cannot stand horror films."),
        ("Guests may use the office wifi.", "Guests may not use the office wifi."),
        ("Guests may use the office wifi.", "Guests may no longer use the office wifi."),
        ("Guests use the office wifi.", "Guests never use the office wifi."),
        ("Guests can use the office wifi.", "Guests can't use the office wifi."),
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_denial_is_never_lost(memory: Memory, policy: str, said: str, denied: str) -> None:
    memory.policy(policy=policy)

    first, answer = pair(memory, said, denied, subject="it")

    assert answer["outcome"] in ("created", "superseded")
    assert memory.texts()[0] == denied
    assert len(memory.history(first)["facts"]) + len(memory.current()) > 1


# C08
@pytest.mark.parametrize("policy", POLICIES)
def test_several_things_are_true_of_one_entity(memory: Memory, policy: str) -> None:
    memory.policy(policy=policy)
    texts = [
        "Lena is head of payroll at Norvik.",
        "Lena administers the Norvik calendar account.",
        "Lena drinks oolong.",
    ]

    answers = [memory.remember(text, subject="lena") for text in texts]

    assert [answer["superseded"] for answer in answers] == [[], [], []]
    assert [answer["conflicts"] for answer in answers] == [[], [], []]
    assert sorted(memory.texts()) == sorted(texts)


# C11
@pytest.mark.parametrize("policy", POLICIES)
def test_a_broader_restatement_does_not_bury_an_exception(memory: Memory, policy: str) -> None:
    memory.policy(policy=policy)
    first, answer = pair(
        memory,
        "Refunds need manager sign-off, except for orders under 20 euro.",
        "Refunds need manager sign-off.",
        subject="refunds",
    )

    assert answer["outcome"] == "created"
    assert memory.standing(first) == ["active"]
    assert any("20 euro" in text for text in memory.recalled("refund of a 12 euro order"))


def test_a_detail_that_would_be_lost_keeps_both(memory: Memory) -> None:
    first, answer = pair(
        memory,
        "Standup is at 9:30 in the Oak room, chaired by Priya.",
        "Standup moved to 9:00.",
        subject="standup",
    )

    (conflict,) = answer["conflicts"]
    assert (conflict["fact_id"], conflict["kind"]) == (first, "partial")
    assert {"Oak", "Priya"} <= {word for part in conflict["removed"] for word in part.split()}
    assert memory.standing(first) == ["active"]


def test_explicit_retires_nothing_and_says_nothing(memory: Memory) -> None:
    memory.policy(policy="explicit")
    first, answer = pair(memory, "Depot manager is Bram.", "Depot manager is Ilse.", subject="depot")

    assert (answer["outcome"], answer["superseded"], answer["conflicts"]) == ("created", [], [])
    assert memory.standing(first) == ["active"]


# C05
def test_suggest_retires_nothing_and_names_the_candidate(memory: Memory) -> None:
    memory.policy(policy="suggest")
    first, answer = pair(memory, "Depot manager is Bram.", "Depot manager is Ilse.", subject="depot")

    assert (answer["outcome"], answer["superseded"]) == ("created", [])
    assert [conflict["fact_id"] for conflict in answer["conflicts"]] == [first]
    assert memory.standing(first) == ["active"]


# C25
def test_a_conflict_names_the_differing_parts_and_stays(memory: Memory) -> None:
    memory.policy(policy="suggest")
    first, answer = pair(memory, "Read cap is 300 calls a minute.", "Read cap is 900 calls a minute.", subject="cap")

    (conflict,) = answer["conflicts"]
    assert (conflict["fact_id"], conflict["kind"]) == (first, "value")
    assert "300" in " ".join(conflict["removed"])
    assert "900" in " ".join(conflict["added"])
    (link,) = memory.all("/v1/links", kind="contradicts")
    assert link["id"] == conflict["link_id"]
    assert memory.conflicts()[0]["removed"] == conflict["removed"]


# C26
@pytest.mark.parametrize("policy", POLICIES)
def test_two_people_of_a_similar_name_stay_apart(memory: Memory, policy: str) -> None:
    memory.policy(policy=policy)
    memory.remember("Priya Nair leads the Lisbon office.", subject="priya-nair")

    answer = memory.remember("Priya Menon leads the Oslo office.", subject="priya-menon")

    assert (answer["superseded"], answer["conflicts"]) == ([], [])
    assert memory.recalled("which office does Priya Menon lead", k=1) == ["Priya Menon leads the Oslo office."]
    assert len(memory.recalled("which office does Priya lead")) == 2


def test_the_held_state_is_found_however_many_facts_look_more_alike(memory: Memory) -> None:
    held = memory.fact("Cache TTL is an hour.", subject="cache.ttl")["id"]
    memory.batch(*[{"content": f"Cache TTL of shard {n} is set elsewhere."} for n in range(50)])

    answer = memory.remember("Keep cached pages for a day.", subject="cache.ttl", kind="state")

    touched = [c["fact_id"] for c in answer["conflicts"]] + [s["id"] for s in answer["superseded"]]
    assert held in touched


@pytest.mark.parametrize(
    ("one", "same"),
    [
        ("Café.Opening", "cafe\u0301.opening"),
        ("ｃａｆｅ.opening", "CAFE.OPENING"),
        ("STRASSE", "straße"),
        (" a  b ", "A B"),
        ("cafe\u200d\u0301", "café"),
        ("a\u0345\u0301b", "A\u0345\u0301B"),
    ],
)
def test_a_subject_is_the_same_in_any_form(memory: Memory, one: str, same: str) -> None:
    first = memory.fact("It opens at nine.", subject=one, kind="state")["id"]

    answer = memory.remember("It opens at ten.", subject=same, kind="state")

    assert [retired["id"] for retired in answer["superseded"]] == [first]


# C43
def test_a_cue_word_alone_retires_nothing(memory: Memory) -> None:
    memory.policy(policy="auto_inferred")
    held = memory.fact("Imports are sorted by isort.")["id"]

    answer = memory.remember("Removed a no longer needed import from the parser.")

    assert answer["superseded"] == []
    assert memory.standing(held) == ["active"]


def test_a_statement_about_one_case_leaves_the_general_one(memory: Memory) -> None:
    memory.policy(policy="auto_inferred")
    held = memory.fact("The deploy target is Frankfurt.")["id"]

    answer = memory.remember("The deploy target for staging is Dublin.")

    assert answer["superseded"] == []
    assert memory.standing(held) == ["active"]


def test_only_auto_inferred_retires_without_a_subject(memory: Memory) -> None:
    outcomes = {}
    for policy in POLICIES:
        memory.policy(policy=policy)
        scope = f"scope-{policy}"
        memory.remember("The capital of Veldland is Orum.", scope=scope)
        outcomes[policy] = memory.remember("The capital of Veldland is Tarn.", scope=scope)["outcome"]

    assert outcomes == {
        "explicit": "created",
        "suggest": "created",
        "auto_key": "created",
        "auto_inferred": "superseded",
    }


# --- Said before -----------------------------------------------------------------------------------------------


# C15
def test_going_back_to_a_value_makes_a_new_fact_at_the_end_of_the_chain(memory: Memory) -> None:
    first = memory.fact("Dashboard theme is dark.", subject="theme")["id"]
    second = memory.supersede(first, content="Dashboard theme is light.")["fact"]["id"]

    answer = memory.supersede(second, content="Dashboard theme is dark.", status=201)

    third = answer["fact"]["id"]
    assert third not in (first, second)
    assert memory.standing(first, second, third) == ["superseded", "superseded", "active"]
    assert [fact["id"] for fact in memory.history(first)["facts"]] == [first, second, third]
    assert memory.recalled("dashboard theme") == ["Dashboard theme is dark."]
    links = memory.all("/v1/links", kind="reasserts")
    assert [(link["source_id"], link["target_id"]) for link in links] == [(third, first)]


def test_a_retired_text_that_comes_back_without_a_word_is_a_conflict_or_a_replacement(memory: Memory) -> None:
    memory.policy(policy="suggest")
    first = memory.fact("Dashboard theme is dark.")["id"]
    second = memory.supersede(first, content="Dashboard theme is light.")["fact"]["id"]

    answer = memory.remember("Dashboard theme is dark.", status=201)

    assert [conflict["fact_id"] for conflict in answer["conflicts"]] == [second]
    assert len(memory.all("/v1/links", kind="reasserts")) == 1


def test_a_retried_old_write_does_not_revive_what_was_replaced_since(memory: Memory) -> None:
    body = {"content": "Depot manager is Bram.", "subject": "depot"}
    first = memory.post("/v1/facts", body, Idempotency_Key="write-1")
    memory.remember("Depot manager is Ilse.", subject="depot")

    again = memory.post("/v1/facts", body, status=201, Idempotency_Key="write-1")

    assert again == first
    assert memory.texts() == ["Depot manager is Ilse."]
    assert memory.standing(first["fact"]["id"]) == ["superseded"]


# --- Time ------------------------------------------------------------------------------------------------------


def test_a_scheduled_fact_retires_nothing_yet(memory: Memory) -> None:
    held = memory.fact("Standup is at 9:30.", subject="standup")["id"]

    answer = memory.remember("Standup is at 9:00.", subject="standup", valid_from="2999-01-01T00:00:00Z")

    assert (answer["outcome"], answer["fact"]["status"]) == ("created", "scheduled")
    assert "scheduled" in [warning["code"] for warning in answer["warnings"]]
    assert memory.standing(held) == ["active"]
    assert memory.texts() == ["Standup is at 9:30."]
    assert memory.get(f"/v1/facts/{answer['fact']['id']}")["status"] == "scheduled"


def test_a_scheduled_fact_cannot_be_told_to_replace_what_still_holds(memory: Memory) -> None:
    held = memory.fact("Standup is at 9:30.", subject="standup")["id"]
    later = {"content": "Standup is at 9:00.", "valid_from": "2999-01-01T00:00:00Z"}

    problem = memory.supersede(held, **later, status=422)
    named = memory.remember(**later, supersedes=[held], reason="It moves.", status=422)

    assert problem["code"] == named["code"] == "replacement_scheduled"
    assert problem["errors"][0]["pointer"] == "/valid_from"
    assert memory.standing(held) == ["active"]
    assert memory.texts() == ["Standup is at 9:30."]


# C13
def test_a_backdated_state_takes_its_place_in_the_past(memory: Memory) -> None:
    now = memory.fact("Depot manager is Ilse.", subject="depot", valid_from="2026-02-01T00:00:00Z")["id"]

    answer = memory.remember("Depot manager is Bram.", subject="depot", valid_from="2023-05-01T00:00:00Z")

    assert [(conflict["fact_id"], conflict["kind"]) for conflict in answer["conflicts"]] == [(now, "older")]
    assert memory.standing(now) == ["active"]
    assert memory.recalled("depot manager")[0] == "Depot manager is Ilse."


# C13
def test_an_older_fact_replaces_a_newer_one_only_by_force(memory: Memory) -> None:
    newer = memory.fact("Depot manager is Ilse.", valid_from="2026-02-01T00:00:00Z")["id"]
    older = memory.fact("Depot manager is Bram.", valid_from="2023-05-01T00:00:00Z")["id"]

    assert memory.supersede(newer, by=older, status=409)["code"] == "target_is_newer"
    memory.supersede(newer, by=older, force=True, status=200)

    (event,) = memory.all("/v1/audit", fact=newer, action="superseded")
    assert event["detail"]["forced"] is True


def test_an_explicit_correction_works_whatever_its_dates(memory: Memory) -> None:
    newer = memory.fact("Depot manager is Ilse.", subject="depot", valid_from="2026-02-01T00:00:00Z")["id"]

    memory.supersede(newer, content="Depot manager is Bram.", valid_from="2023-05-01T00:00:00Z", status=201)

    assert memory.texts() == ["Depot manager is Bram."]


# C104
def test_the_dates_that_a_client_gives_are_kept(memory: Memory) -> None:
    answer = memory.remember("Audit is tomorrow.", observed_at="2026-01-05T10:00:00+02:00")

    assert answer["fact"]["observed_at"] == "2026-01-05T08:00:00Z"
    assert answer["fact"]["valid_from"] == "2026-01-05T08:00:00Z"
    result = memory.recall("when is the audit")["results"][0]["fact"]
    assert result["observed_at"] == "2026-01-05T08:00:00Z"
    assert result["recorded_at"] > "2026-01-05T08:00:00Z"


def test_an_expired_fact_is_not_current(memory: Memory) -> None:
    fact = memory.fact("The sale is on.", valid_from="2026-01-01T00:00:00Z", valid_to="2026-01-05T00:00:00Z")

    problem = memory.get(f"/v1/facts/{fact['id']}", status=410)

    assert fact["status"] == "expired"
    assert problem["reason"] == "Its validity ended."
    assert memory.texts() == []


@pytest.mark.parametrize("policy", POLICIES)
def test_what_has_ended_already_retires_nothing_that_holds(memory: Memory, policy: str) -> None:
    memory.policy(policy=policy)
    held = memory.fact("Standup is at 9:30.", subject="standup", valid_from="2020-01-01T00:00:00Z")["id"]

    answer = memory.remember(
        "Standup is at 9:00.", subject="standup", valid_from="2021-01-01T00:00:00Z", valid_to="2022-01-01T00:00:00Z"
    )

    assert (answer["outcome"], answer["conflicts"], answer["fact"]["status"]) == ("created", [], "expired")
    assert memory.standing(held) == ["active"]
