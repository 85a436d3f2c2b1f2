"""Subjects: what holds at an address, other names of it, and names that drifted apart."""

from collections.abc import Callable

import pytest

from tests.clients import Memory

MakeClient = Callable[..., Memory]


def test_subjects_are_listed_with_their_current_facts(memory: Memory) -> None:
    memory.batch(
        {"content": "It is dark.", "subject": "theme"},
        {"content": "It is light.", "subject": "theme"},
        {"content": "It was installed.", "subject": "theme", "kind": "event"},
        {"content": "Ghent.", "subject": "depot"},
        {"content": "No subject."},
    )
    memory.register("unused", description="Nothing yet.")

    listed = memory.all("/v1/subjects", limit=1)

    assert [(s["subject"], s["facts"], s["registered"]) for s in listed] == [
        ("depot", 1, False),
        ("theme", 2, False),
        ("unused", 0, True),
    ]


def test_a_subject_without_current_facts_is_not_listed(memory: Memory) -> None:
    fact = memory.fact("It is dark.", subject="theme")
    memory.forget(fact["id"])

    assert memory.all("/v1/subjects") == []
    assert memory.subject("theme")["current"] == []


def test_a_scope_narrows_the_list(memory: Memory) -> None:
    memory.fact("It is dark.", subject="theme", scope="a")
    memory.fact("Ghent.", subject="depot", scope="b")
    memory.register("unused")

    assert [s["subject"] for s in memory.all("/v1/subjects", scope="a")] == ["theme"]
    assert [s["subject"] for s in memory.all("/v1/subjects", scope=["a", "b"])] == ["depot", "theme"]


def test_a_subject_shows_its_current_value(memory: Memory) -> None:
    memory.fact("It is dark.", subject="Theme")
    new = memory.fact("It is light.", subject="theme")["id"]

    found = memory.subject("THEME")

    assert (found["subject"], found["facts"]) == ("theme", 1)
    assert [fact["id"] for fact in found["current"]] == [new]


@pytest.mark.parametrize("subject", ["a/b/c", "team.standup.time", "50% of it?", "日本.税率", "a b", "x&y=z#w"])
def test_a_subject_may_hold_any_visible_character(memory: Memory, subject: str) -> None:
    fact = memory.fact("It holds.", subject=subject)

    assert memory.subject(subject)["current"][0]["id"] == fact["id"]
    assert memory.get(f"/v1/subjects/{_quoted(subject)}/history")["items"][0]["id"] == fact["id"]


def _quoted(subject: str) -> str:
    return "".join(f"%{byte:02X}" for byte in subject.encode())


def test_an_unknown_subject_is_answered_with_the_nearest(memory: Memory) -> None:
    memory.fact("It is at nine.", subject="team.standup.time")

    problem = memory.subject("team.standup.tiem", status=404)

    assert (problem["code"], problem["nearest"]) == ("subject_not_found", ["team.standup.time"])
    assert memory.get("/v1/subjects/nothing/history", status=404)["code"] == "subject_not_found"


@pytest.mark.parametrize("blank", ["%20", "%E2%80%8B", "%00"])
def test_a_subject_without_a_visible_character_is_refused(memory: Memory, blank: str) -> None:
    assert memory.http.get(f"/v1/subjects/{blank}").status_code in (400, 422)


def test_the_history_of_a_subject_holds_everything_once_said_there(memory: Memory) -> None:
    first = memory.fact("It is dark.", subject="theme")["id"]
    second = memory.fact("It is light.", subject="theme")["id"]
    memory.forget(second, reason="There are no themes any more.")
    third = memory.fact("Themes came in May.", subject="theme", kind="event", valid_from="2020-05-01T00:00:00Z")

    history = memory.all("/v1/subjects/theme/history", limit=2)

    assert [(fact["id"], fact["status"]) for fact in history] == [
        (first, "superseded"),
        (second, "forgotten"),
        (third["id"], "active"),
    ]
    assert history[0]["superseded_by"] == second
    assert history[1]["reason"] == "There are no themes any more."


# --- Registering -----------------------------------------------------------------------------------------------


def test_a_subject_is_registered_and_described_anew(memory: Memory) -> None:
    made = memory.register("Theme", description="Light or dark.", aliases=["colours"], status=201)

    again = memory.register("theme", aliases=["Look"], status=200)

    assert (made["subject"], made["description"], made["aliases"]) == ("theme", "Light or dark.", ["colours"])
    assert (again["description"], again["aliases"]) == (None, ["look"])
    assert memory.subject("colours", status=404)["code"] == "subject_not_found"


def test_an_alias_leads_to_its_subject_for_readers_and_writers(memory: Memory) -> None:
    memory.register("theme", aliases=["colours"])

    first = memory.fact("It is dark.", subject="theme")["id"]
    answer = memory.remember("It is light.", subject="COLOURS")

    assert answer["fact"]["subject"] == "theme"
    assert [gone["id"] for gone in answer["superseded"]] == [first]
    assert memory.subject("colours")["subject"] == "theme"
    assert memory.texts(subject="colours") == ["It is light."]
    assert len(memory.all("/v1/subjects/colours/history")) == 2


def test_facts_written_before_an_alias_are_its_subjects_now(memory: Memory) -> None:
    old = memory.fact("It is dark.", subject="colours")["id"]
    memory.register("theme", aliases=["colours"])

    assert [fact["id"] for fact in memory.subject("theme")["current"]] == [old]
    assert memory.texts(subject="theme") == ["It is dark."]
    assert memory.remember("it is dark", subject="theme")["fact"]["id"] == old
    answer = memory.remember("It is light.", subject="theme")

    assert [gone["id"] for gone in answer["superseded"]] == [old]
    assert memory.restore(old, status=409)["head"] == answer["fact"]["id"]


def test_recall_finds_the_facts_of_a_subject_by_any_of_its_names(memory: Memory) -> None:
    memory.fact("The walls are dark.", subject="colours", kind="note")
    memory.register("theme", aliases=["colours"])
    memory.fact("The doors are light.", subject="theme")
    memory.fact("The roof is red.", subject="roof")

    for name in ("theme", "COLOURS"):
        for hops in (1, 2):
            found = memory.recalled("the colour of walls, doors and the roof", subject=name, hops=hops)
            assert sorted(found) == ["The doors are light.", "The walls are dark."]


def test_an_alias_belongs_to_one_subject(memory: Memory) -> None:
    memory.register("theme", aliases=["colours"])
    memory.register("depot")

    taken = memory.register("paint", aliases=["colours"], status=409)
    itself = memory.register("colours", status=409)
    registered = memory.register("theme", aliases=["depot"], status=409)

    assert [p["code"] for p in (taken, itself, registered)] == ["subject_taken"] * 3
    assert [p["subject"] for p in (taken, itself, registered)] == ["theme", "theme", "depot"]
    assert memory.subject("colours")["aliases"] == ["colours"]


@pytest.mark.parametrize(("roles", "status"), [(["read", "write"], 403), (["curate"], 201), (["admin"], 201)])
def test_registering_takes_a_role_for_it(client_of: MakeClient, roles: list[str], status: int) -> None:
    client_of(roles=roles).register("theme", status=status)


def test_registering_is_audited(memory: Memory) -> None:
    memory.register("theme", aliases=["colours"])
    memory.register("theme")

    events = [e for e in memory.all("/v1/audit") if e["action"].startswith("subject_")]
    assert [event["action"] for event in events] == ["subject_changed", "subject_registered"]
    assert events[1]["detail"] == {"subject": "theme", "aliases": ["colours"]}


def test_a_closed_vocabulary_takes_registered_subjects_and_names_the_nearest(memory: Memory) -> None:
    memory.register("team.standup.time", aliases=["standup"])
    memory.policy(closed_vocabulary=True)

    problem = memory.remember("It is at nine.", subject="team.standup.tiem", status=422)
    memory.remember("It is at nine.", subject="Team.Standup.Time", status=201)
    memory.remember("It is at ten.", subject="standup", status=201)
    memory.remember("No subject.", status=201)

    assert (problem["code"], problem["nearest"]) == ("unknown_subject", ["team.standup.time"])
    assert problem["errors"][0]["pointer"] == "/subject"
    assert sorted(memory.texts()) == ["It is at ten.", "No subject."]


def test_a_closed_vocabulary_refuses_one_item_of_a_batch(memory: Memory) -> None:
    memory.register("known")
    memory.policy(closed_vocabulary=True)
    items = [{"content": "One.", "subject": "known"}, {"content": "Two.", "subject": "unknown"}]

    whole = memory.batch(*items, status=422)
    partly = memory.batch(*items, atomic=False)

    assert (whole["index"], whole["errors"][0]["pointer"]) == (1, "/facts/1/subject")
    assert [item["outcome"] for item in partly["items"]] == ["created", "rejected"]


# --- Near misses -----------------------------------------------------------------------------------------------


def test_near_lists_the_subjects_that_look_most_alike(memory: Memory) -> None:
    for subject in ("team.standup.time", "team.standup.room", "depot.manager"):
        memory.fact("It holds.", subject=subject)

    near = memory.get("/v1/subjects", near="standup.time")["items"]

    assert [s["subject"] for s in near] == ["team.standup.time", "team.standup.room"]


def test_near_misses_report_names_that_drifted_apart(memory: Memory) -> None:
    for subject in ("team.standup.time", "team_standup_time", "depot.manager", "room.1", "room.2"):
        memory.fact("It holds.", subject=subject)

    report = memory.all("/v1/subjects", near_misses=True, limit=1)

    assert {s["subject"]: s["near_misses"] for s in report} == {
        "team.standup.time": ["team_standup_time"],
        "team_standup_time": ["team.standup.time"],
    }
    assert memory.subject("team.standup.time")["near_misses"] == ["team_standup_time"]


def test_near_and_near_misses_are_two_questions(memory: Memory) -> None:
    assert memory.get("/v1/subjects", near="x", near_misses=True, status=422)["errors"]
