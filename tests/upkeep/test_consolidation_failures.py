"""Consolidation when the model, the network or the budget fails: nothing is lost, and nothing is done twice."""

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
import pytest

from app.embedded import Cluster
from tests.clients import Memory
from tests.conftest import settings_for
from tests.openai_server import OpenAIServer, mix
from tests.upkeep.attempting import Bench, digesting, handle, proposals, shown, with_model
from tests.working import findings

FERN = "The office plant is a fern."
WATERED = "The office plant gets water on Mondays."
BOTH = "The office plant is a fern and gets water on Mondays."


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        running.replies = [{"actions": []}]
        yield running


@pytest.fixture
def bench(database: Cluster, server: OpenAIServer) -> Bench:
    return with_model(database, server)


@pytest.fixture
def plant(memory: Memory, server: OpenAIServer) -> list[Any]:
    """Two facts, and a model that would make a digest of them."""
    server.replies = digesting(BOTH, FERN, WATERED)
    return [memory.fact(FERN), memory.fact(WATERED)]


def calls(server: OpenAIServer) -> int:
    return len(server.calls_to("chat"))


def rooms(memory: Memory, count: int) -> list[str]:
    """Facts that have nothing to do with each other."""
    words = "Oak Elm Ash Fir Yew Box Bay Fig Nut Sloe Rowan Alder Birch Cedar Hazel Larch Maple Pine Poplar Willow"
    texts = [f"The {name} room has {number} chairs." for number, name in enumerate(words.split()[:count], 3)]
    memory.post("/v1/facts/batch", {"facts": [{"content": text} for text in texts]})
    return texts


# --- When it runs ----------------------------------------------------------------------------------------------


def test_without_a_model_the_job_fails_and_says_so(memory: Memory, database: Cluster) -> None:
    job = Bench(database, settings_for(database)).attempt(memory, "consolidate")

    assert job["status"] == "failed"
    assert "LLM_URL" in job["error"]


def test_fewer_new_facts_than_wanted_are_left_alone(memory: Memory, database: Cluster, server: OpenAIServer) -> None:
    bench = with_model(database, server, consolidate_min_facts=4)
    rooms(memory, 3)

    job = bench.attempt(memory, "consolidate")

    assert (job["status"], job["calls"], calls(server)) == ("succeeded", 0, 0)


def test_retired_facts_are_neither_counted_nor_shown(memory: Memory, bench: Bench, server: OpenAIServer) -> None:
    old = memory.fact("The Oak room has 3 chairs.")
    memory.forget(old["id"])
    rooms(memory, 2)[0]

    bench.attempt(memory, "consolidate")

    texts = [fact["text"] for call in server.calls_to("chat") for fact in shown(call.body)]
    assert len(texts) == 2


@pytest.mark.usefixtures("plant")
def test_a_second_run_over_unchanged_facts_makes_no_call(memory: Memory, bench: Bench, server: OpenAIServer) -> None:
    first = bench.attempt(memory, "consolidate")

    second = bench.attempt(memory, "consolidate")

    assert (first["calls"], second["calls"], calls(server)) == (1, 0, 1)
    assert first["tokens"] > 0


@pytest.mark.usefixtures("plant")
def test_a_dry_run_makes_no_call_and_lists_what_would_be_asked_about(
    memory: Memory, bench: Bench, server: OpenAIServer
) -> None:
    job = bench.attempt(memory, "consolidate", dry_run=True)

    assert {found["action"] for found in findings(memory, job)} == {"would_ask"}
    assert (job["counts"], calls(server)) == ({"would_ask": 2, "would_call": 1}, 0)


# --- Answers ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("plant")
@pytest.mark.parametrize("script", ["fenced", "prose", "think", "no_json_schema"])
def test_an_answer_in_wrappings_is_read(memory: Memory, bench: Bench, server: OpenAIServer, script: str) -> None:
    server.chat = script

    bench.attempt(memory, "consolidate")

    assert memory.texts(kind="digest") == [BOTH]


@pytest.mark.usefixtures("plant")
@pytest.mark.parametrize(
    "script", ["trailing_comma", "list", "empty", "null", "html", "truncated", "unknown_action", "400"]
)
def test_an_answer_that_cannot_be_read_is_no_empty_answer(
    memory: Memory, bench: Bench, server: OpenAIServer, script: str
) -> None:
    server.chat = script
    job = bench.attempt(memory, "consolidate")
    assert any(name.startswith("failed_") for name in job["counts"])
    assert set(memory.texts()) == {FERN, WATERED}

    server.chat = "ok"
    bench.attempt(memory, "consolidate")

    assert memory.texts(kind="digest") == [BOTH]


def test_a_batch_that_fails_is_halved_down_to_the_poison(memory: Memory, bench: Bench, server: OpenAIServer) -> None:
    texts = rooms(memory, 16)
    poison = texts[5]

    def reply(body: Mapping[str, Any]) -> Any:
        return "no JSON at all" if handle(body, poison) != "F999" else {"actions": []}

    server.replies = reply

    job = bench.attempt(memory, "consolidate")

    assert job["counts"]["unanswered"] == 1
    assert job["counts"]["asked"] == 15
    assert [found["action"] for found in findings(memory, job)] == ["unanswered"]
    assert calls(server) <= 9


def test_a_poison_is_tried_three_times_and_then_left_alone(memory: Memory, bench: Bench, server: OpenAIServer) -> None:
    texts = rooms(memory, 2)
    server.replies = lambda body: "no" if handle(body, texts[0]) != "F999" else {"actions": []}
    for _ in range(3):
        bench.attempt(memory, "consolidate")
    before = calls(server)

    job = bench.attempt(memory, "consolidate")

    assert job["calls"] == 0
    assert calls(server) == before
    assert set(memory.texts()) == set(texts)


def test_an_answer_that_is_cut_off_halves_the_batch(memory: Memory, bench: Bench, server: OpenAIServer) -> None:
    rooms(memory, 8)
    server.chat = ["truncated", "ok"]

    bench.attempt(memory, "consolidate")

    assert [len(shown(call.body)) for call in server.calls_to("chat")] == [8, 4, 4]


def test_an_endpoint_that_answers_nonsense_to_everything_is_not_asked_for_ever(
    memory: Memory, bench: Bench, server: OpenAIServer
) -> None:
    rooms(memory, 20)
    server.chat = "empty"

    job = bench.attempt(memory, "consolidate")

    assert calls(server) == 8
    assert job["counts"]["stopped"] == 1
    assert len(memory.current()) == 20


# --- The endpoint ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("plant")
@pytest.mark.parametrize("script", ["401", "402", "quota", "404"])
def test_what_only_another_setting_mends_ends_the_run(
    memory: Memory, bench: Bench, server: OpenAIServer, script: str
) -> None:
    server.chat = script

    job = bench.attempt(memory, "consolidate")

    assert job["status"] == "failed"
    assert (job["calls"], calls(server)) == (1, 1)
    server.chat = "ok"
    bench.attempt(memory, "consolidate")
    assert memory.texts(kind="digest") == [BOTH]


@pytest.mark.usefixtures("plant")
@pytest.mark.parametrize("script", ["429:1", "500", "503", "hang_up"])
def test_what_passes_by_itself_is_taken_up_again_and_burns_no_attempt(
    memory: Memory, bench: Bench, server: OpenAIServer, script: str, owner: psycopg.Connection[Any]
) -> None:
    server.chat = [script, "ok"]

    job = bench.attempt(memory, "consolidate")

    assert job["status"] == "queued"
    left = owner.execute("SELECT attempts_allowed - attempts FROM job_runs WHERE id = %s", [job["id"]]).fetchone()
    assert left == (5,)
    job = bench.attempt(memory, "consolidate", job=job)
    assert job["status"] == "succeeded"
    assert memory.texts(kind="digest") == [BOTH]


def test_facts_left_over_by_a_run_that_broke_off_do_not_wait_for_others(
    memory: Memory, database: Cluster, server: OpenAIServer
) -> None:
    bench = with_model(database, server, consolidate_min_facts=20, llm_calls_per_run=1)
    texts = rooms(memory, 20)
    extra = [f"The cellar shelf {letter} holds paint." for letter in "bcdefg"]
    memory.post("/v1/facts/batch", {"facts": [{"content": text} for text in extra]})
    bench.attempt(memory, "consolidate")

    bench.attempt(memory, "consolidate")

    asked = {fact["text"] for call in server.calls_to("chat") for fact in shown(call.body)}
    assert asked == {*texts, *extra}


# --- Budgets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"llm_calls_per_run": 1}, "1 calls a run"),
        ({"llm_tokens_per_run": 10}, "10 tokens a run"),
        ({"llm_calls_per_day": 1}, "1 calls a day"),
        ({"llm_tokens_per_day": 10}, "10 tokens a day"),
    ],
)
def test_a_budget_stops_the_run_and_says_so(
    memory: Memory, database: Cluster, server: OpenAIServer, setting: Any, told: str
) -> None:
    rooms(memory, 20)
    memory.post("/v1/facts/batch", {"facts": [{"content": f"Shelf {number} holds paint."} for number in range(8)]})
    bench = with_model(database, server, **setting)

    job = bench.attempt(memory, "consolidate")

    assert calls(server) == job["calls"] == 1
    assert job["counts"]["stopped"] == 1
    (stopped,) = [found for found in findings(memory, job) if found["action"] == "stopped"]
    assert told in stopped["detail"]["reason"]


def test_a_day_s_budget_holds_over_all_runs_of_a_namespace(
    memory: Memory, database: Cluster, server: OpenAIServer
) -> None:
    bench = with_model(database, server, llm_calls_per_day=2)
    for scope in ("a", "b", "c", "d"):
        for text in (FERN, WATERED):
            memory.remember(text, scope=scope)
    for scope in ("a", "b", "c", "d"):
        bench.attempt(memory, "consolidate", scope=scope)

    assert calls(server) == 2


# --- Meanwhile -------------------------------------------------------------------------------------------------


def test_a_source_that_is_forgotten_while_the_model_thinks_is_in_no_digest(
    memory: Memory, bench: Bench, server: OpenAIServer, plant: list[Any]
) -> None:
    whole = digesting(BOTH, FERN, WATERED)

    def reply(body: Mapping[str, Any]) -> Any:
        memory.forget(plant[0]["id"])
        return whole(body)

    server.replies = reply

    job = bench.attempt(memory, "consolidate")

    assert memory.texts() == [WATERED]
    (refused,) = proposals(memory, job)
    assert (refused["verdict"], refused["reason"]) == ("refused", "a source was retired meanwhile")


def test_a_source_that_is_replaced_while_the_model_thinks_is_asked_about_again(
    memory: Memory, bench: Bench, server: OpenAIServer, plant: list[Any]
) -> None:
    cactus, anew = "The office plant is a cactus.", "The office plant is a cactus and gets water on Mondays."
    whole = digesting(BOTH, FERN, WATERED)

    def reply(body: Mapping[str, Any]) -> Any:
        memory.supersede(plant[0]["id"], content=cactus)
        return whole(body)

    server.replies = reply
    bench.attempt(memory, "consolidate")
    server.replies = digesting(anew, cactus, WATERED)

    bench.attempt(memory, "consolidate")

    assert memory.texts(kind="digest") == [anew]


@pytest.mark.usefixtures("plant")
def test_no_connection_is_held_while_the_model_thinks(
    memory: Memory, bench: Bench, server: OpenAIServer, owner: psycopg.Connection[Any]
) -> None:
    seen: list[Any] = []

    def reply(body: Mapping[str, Any]) -> Any:
        seen.extend(
            owner.execute(
                "SELECT state FROM pg_stat_activity WHERE application_name = 'test-attempt' AND state <> 'idle'"
            ).fetchall()
        )
        return digesting(BOTH, FERN, WATERED)(body)

    server.replies = reply

    bench.attempt(memory, "consolidate")

    assert seen == []
    assert memory.texts(kind="digest") == [BOTH]


@pytest.mark.usefixtures("plant")
def test_two_runs_at_once_make_one_digest(memory: Memory, bench: Bench, server: OpenAIServer) -> None:
    both_asked = threading.Barrier(2, timeout=10)

    def reply(body: Mapping[str, Any]) -> Any:
        # The scripted server answers under a lock, so the two meet before it.
        return digesting(BOTH, FERN, WATERED)(body)

    server.replies = reply
    server.chat = "slow:0.5"

    def run() -> None:
        both_asked.wait()
        bench.attempt(memory, "consolidate")

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert memory.texts(kind="digest") == [BOTH]


# --- All at once -----------------------------------------------------------------------------------------------

FAILURES = (
    "500 503 429 hang_up 401 402 fenced prose think trailing_comma list empty null html truncated wrong_ids "
    "unknown_action no_json_schema 400".split()
)


def eager(body: Mapping[str, Any]) -> Any:
    """A model that merges neighbours, and that finds every fact contradicted by the one after the next."""
    told = shown(body)
    actions: list[Any] = []
    for one, other in zip(told[::2], told[1::2], strict=False):
        text = f"{one['text'].rstrip('.')}; {other['text']}"
        actions.append({"action": "digest", "sources": [one["id"], other["id"]], "text": text})
    for one, other in zip(told, told[2:], strict=False):
        claim = {"first": one["id"], "second": other["id"], "ended": one["id"], "evidence": other["text"]}
        quotes = {"first_quote": one["text"], "second_quote": other["text"]}
        actions.append({"action": "contradiction", "reason": "They differ."} | claim | quotes)
    return {"actions": actions}


def test_failures_at_random_lose_nothing_and_retire_nothing_wrongly(
    memory: Memory, database: Cluster, server: OpenAIServer, owner: psycopg.Connection[Any]
) -> None:
    memory.policy(policy="explicit", consolidate_may_retire=True)
    facts = [
        {"content": text}
        for number in range(60)
        for text in (
            f"Server rack{number} stands in hall {number % 7}.",
            f"Server rack{number} draws {number + 100} watts.",
        )
    ]
    memory.post("/v1/facts/batch", {"facts": facts})
    bench = with_model(database, server, consolidate_min_facts=20, llm_calls_per_run=20, llm_calls_per_day=1_000)
    server.replies = eager
    server.chat = mix(["ok"] * 45 + list(FAILURES), seed=11)

    job = None
    for _ in range(10):
        job = bench.attempt(memory, "consolidate", job=job if job and job["status"] == "queued" else None)
        assert job["calls"] <= 20
    server.chat = "ok"
    for _ in range(10):
        job = bench.attempt(memory, "consolidate", job=job if job and job["status"] == "queued" else None)
        if job["calls"] == 0:
            break

    assert job is not None
    assert job["calls"] == 0
    assert {fact["content"] for fact in facts} <= set(memory.texts())
    assert len(memory.current(kind="digest")) > 40
    left = owner.execute(
        """
        SELECT count(*) FROM facts_active AS f LEFT JOIN consolidation_marks AS m USING (namespace)
        WHERE f.namespace = %s AND f.kind <> 'digest' AND m.fact_id = f.id AND m.done_at IS NULL
        """,
        [memory.namespace],
    ).fetchone()
    assert left == (0,)
    shared = owner.execute(
        """
        SELECT l.target_id FROM links AS l
        JOIN facts_active AS d ON d.namespace = l.namespace AND d.id = l.source_id
        WHERE l.namespace = %s AND l.kind = 'derived_from' GROUP BY 1 HAVING count(*) > 1
        """,
        [memory.namespace],
    ).fetchall()
    assert shared == []


def test_a_service_without_a_model_refuses_the_job(memory: Memory) -> None:
    problem = memory.post("/v1/jobs", {"kind": "consolidate"}, status=409)

    assert problem["code"] == "llm_not_configured"
