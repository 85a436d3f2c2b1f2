"""Bad questions are refused with the name of the field; nothing is guessed."""

from typing import Any

import pytest

from tests.clients import Memory


def refused(memory: Memory, pointer: str, **body: Any) -> None:
    problem = memory.post("/v1/recall", {"query": "anything"} | body, status=422)

    assert pointer in [part["pointer"] for part in problem["errors"]]


@pytest.mark.parametrize("query", ["", "   ", "\n\t", "\u200b", "\u2060\ufeff", "a\u0000b", "x" * 4_001, None, 5])
def test_a_query_must_hold_something_and_not_too_much(memory: Memory, query: object) -> None:
    refused(memory, "/query", query=query)


@pytest.mark.parametrize("k", [0, -1, 101, 10**9, 2.5, 5.0, "5", True, None])
def test_k_is_a_whole_number_in_its_bounds(memory: Memory, k: object) -> None:
    refused(memory, "/k", k=k)


@pytest.mark.parametrize("floor", [-0.1, 1.1, 2, "0.5", True])
def test_a_floor_is_a_number_between_0_and_1(memory: Memory, floor: object) -> None:
    refused(memory, "/min_relevance", min_relevance=floor)


@pytest.mark.parametrize("hops", [0, 5, "2", 1.5])
def test_hops_are_bounded(memory: Memory, hops: object) -> None:
    refused(memory, "/hops", hops=hops)


@pytest.mark.parametrize(
    ("field", "value", "pointer"),
    [
        ("scopes", [], "/scopes"),
        ("scopes", [""], "/scopes/0"),
        ("scopes", ["  "], "/scopes/0"),
        ("kinds", ["retraction"], "/kinds/0"),
        ("tags", [""], "/tags/0"),
        ("min_tier", "best", "/min_tier"),
        ("as_of", "2026-01-05T09:00:00", "/as_of"),
        ("known_at", "yesterday", "/known_at"),
        ("include", ["everything"], "/include/0"),
        ("format", "xml", "/format"),
        ("max_tokens", 0, "/max_tokens"),
        ("limt", 3, "/limt"),
    ],
)
def test_other_fields_are_checked(memory: Memory, field: str, value: object, pointer: str) -> None:
    refused(memory, pointer, **{field: value})


def test_the_url_form_takes_the_same_question(memory: Memory) -> None:
    memory.fact("Team standup is at 9:30.", tags=["calendar"])
    memory.fact("Lunch is at noon.", tags=["food"])

    answer = memory.get("/v1/recall", q="when is the standup", k=1, tag=["calendar"], explain=True)

    assert [result["fact"]["content"] for result in answer["results"]] == ["Team standup is at 9:30."]
    assert answer["applied"]["tags"] == ["calendar"]


@pytest.mark.parametrize(
    "params", [{}, {"q": " "}, {"q": "x", "k": "0"}, {"q": "x", "k": "2.5"}, {"q": "x", "limt": "3"}]
)
def test_the_url_form_is_checked_too(memory: Memory, params: dict[str, Any]) -> None:
    memory.get("/v1/recall", status=422, **params)


def test_a_batch_holds_1_to_32_questions(memory: Memory) -> None:
    memory.post("/v1/recall/batch", {"queries": []}, status=422)
    memory.post("/v1/recall/batch", {"queries": [{"query": "x"}] * 33}, status=422)
    memory.post("/v1/recall/batch", {"queries": [{"query": "x"}, {"query": " "}]}, status=422)


def test_a_batch_answers_each_question_as_if_asked_alone(memory: Memory) -> None:
    memory.batch({"content": "Team standup is at 9:30."}, {"content": "Deploys need two approvals."})
    queries = [{"query": "when is standup"}, {"query": "deploy approvals", "k": 1}, {"query": "((("}]

    answers = memory.post("/v1/recall/batch", {"queries": queries})["answers"]

    alone = [memory.post("/v1/recall", query) for query in queries]
    assert [a["results"] for a in answers] == [a["results"] for a in alone]


def test_a_full_batch_finds_every_answer(memory: Memory) -> None:
    facts = [f"Depot {n:02} is led by captain{n:02} of platoon{n:02}x." for n in range(32)]
    memory.batch(*({"content": text} for text in facts))
    padding = "somewhat lengthy wording that carries further words along"
    queries = [{"query": f"captain{n:02} {padding} platoon{n:02}x w{n}a w{n}b w{n}c", "k": 1} for n in range(32)]

    answers = memory.post("/v1/recall/batch", {"queries": queries})["answers"]

    assert [answer["results"][0]["fact"]["content"] for answer in answers] == facts
