"""A digest never outlives its sources: it is revived, written anew from what is current, or dropped."""

from typing import Any

import psycopg
import pytest

from app.embedded import Cluster
from tests.clients import Memory
from tests.conftest import settings_for
from tests.openai_server import OpenAIServer
from tests.upkeep.attempting import Bench, digesting, shown, with_model
from tests.working import findings

FERN = "The office plant is a fern."
WATERED = "The office plant gets water on Mondays."
BOTH = "The office plant is a fern and gets water on Mondays."
CACTUS = "The office plant is a cactus."
ANEW = "The office plant is a cactus and gets water on Mondays."


@pytest.fixture
def bench(database: Cluster, server: OpenAIServer) -> Bench:
    return with_model(database, server)


@pytest.fixture
def sources(memory: Memory, bench: Bench, server: OpenAIServer) -> list[Any]:
    """Two facts and a digest over them."""
    made = [memory.fact(FERN), memory.fact(WATERED)]
    server.replies = digesting(BOTH, FERN, WATERED)
    bench.attempt(memory, "consolidate")
    assert memory.texts(kind="digest") == [BOTH]
    return made


def test_a_stale_digest_is_written_anew_from_what_is_current(
    memory: Memory, bench: Bench, server: OpenAIServer, sources: list[Any]
) -> None:
    (old,) = memory.current(kind="digest")
    memory.supersede(sources[0]["id"], content=CACTUS)
    server.replies = digesting(ANEW, CACTUS, WATERED)

    job = bench.attempt(memory, "rederive")

    (new,) = memory.current(kind="digest")
    assert new["content"] == ANEW
    assert memory.get(f"/v1/facts/{old['id']}", status=410)["head"] == new["id"]
    assert job["counts"]["rewritten"] == 1


def test_the_words_of_a_stale_digest_may_be_remembered(memory: Memory, sources: list[Any]) -> None:
    (digest,) = memory.current(kind="digest")
    memory.supersede(sources[0]["id"], content=CACTUS)
    assert memory.standing(digest["id"]) == ["stale"]

    said = memory.fact(BOTH)

    assert said["kind"] == "note"
    assert BOTH in memory.texts()


def test_the_words_of_a_stale_digest_may_be_restored(memory: Memory, bench: Bench, server: OpenAIServer) -> None:
    said = memory.fact(BOTH)
    memory.forget(said["id"])
    sources = [memory.fact(FERN), memory.fact(WATERED)]
    server.replies = digesting(BOTH, FERN, WATERED)
    bench.attempt(memory, "consolidate")
    memory.supersede(sources[0]["id"], content=CACTUS)

    memory.restore(said["id"])

    assert memory.standing(said["id"]) == ["active"]


def test_only_what_is_current_is_shown_for_it(
    memory: Memory, bench: Bench, server: OpenAIServer, sources: list[Any]
) -> None:
    memory.supersede(sources[0]["id"], content=CACTUS)
    server.replies = digesting(ANEW, CACTUS, WATERED)

    bench.attempt(memory, "rederive")

    assert {fact["text"] for fact in shown(server.calls_to("chat")[-1].body)} == {CACTUS, WATERED}


def test_a_digest_may_be_written_anew_in_the_same_words(
    memory: Memory, bench: Bench, server: OpenAIServer, sources: list[Any]
) -> None:
    reworded = "The plant in the office is a fern."
    memory.supersede(sources[0]["id"], content=reworded)
    server.replies = digesting(BOTH, reworded, WATERED)

    bench.attempt(memory, "rederive")

    assert memory.texts(kind="digest") == [BOTH]


def test_a_digest_with_one_source_left_is_dropped(
    memory: Memory, bench: Bench, server: OpenAIServer, sources: list[Any]
) -> None:
    (old,) = memory.current(kind="digest")
    memory.forget(sources[0]["id"])
    calls = len(server.calls_to("chat"))

    bench.attempt(memory, "rederive")

    gone = memory.get(f"/v1/facts/{old['id']}", status=410)
    assert gone["reason"] == "Fewer than two of its sources are current."
    assert len(server.calls_to("chat")) == calls
    assert memory.texts() == [WATERED]


def test_without_a_model_a_stale_digest_is_dropped(memory: Memory, database: Cluster, sources: list[Any]) -> None:
    (old,) = memory.current(kind="digest")
    memory.supersede(sources[0]["id"], content=CACTUS)

    Bench(database, settings_for(database)).attempt(memory, "rederive")

    assert "no language model" in memory.get(f"/v1/facts/{old['id']}", status=410)["reason"]
    assert set(memory.texts()) == {CACTUS, WATERED}


def test_a_digest_whose_source_came_back_is_current_again(
    memory: Memory, bench: Bench, server: OpenAIServer, sources: list[Any]
) -> None:
    memory.forget(sources[0]["id"])
    memory.post(f"/v1/facts/{sources[0]['id']}/restore", {"reason": "It still holds."})
    calls = len(server.calls_to("chat"))

    bench.attempt(memory, "rederive")

    assert memory.texts(kind="digest") == [BOTH]
    assert len(server.calls_to("chat")) == calls


def test_a_digest_whose_source_was_removed_does_not_come_back(
    memory: Memory, database: Cluster, owner: psycopg.Connection[Any], sources: list[Any]
) -> None:
    with owner.transaction():
        owner.execute("SET LOCAL palimpsest.removing = 'on'")
        owner.execute("DELETE FROM chains WHERE head_id = %s", [sources[0]["id"]])
        owner.execute("DELETE FROM ledger.facts WHERE id = %s", [sources[0]["id"]])
    assert memory.texts() == [WATERED]

    Bench(database, settings_for(database)).attempt(memory, "rederive")

    assert memory.texts() == [WATERED]


def test_a_digest_whose_sources_come_to_contest_each_other_is_dropped(
    memory: Memory, bench: Bench, server: OpenAIServer, sources: list[Any]
) -> None:
    link = {"kind": "contradicts", "source_id": sources[0]["id"], "target_id": sources[1]["id"], "reason": "Odd."}
    memory.post("/v1/links", link)
    server.replies = digesting(BOTH, FERN, WATERED)

    bench.attempt(memory, "rederive")

    assert set(memory.texts()) == {FERN, WATERED}


@pytest.mark.parametrize("script", ["429", "500", "hang_up"])
def test_a_model_that_is_down_leaves_the_digest_stale_for_later(
    memory: Memory, bench: Bench, server: OpenAIServer, sources: list[Any], script: str
) -> None:
    memory.supersede(sources[0]["id"], content=CACTUS)
    server.chat, server.replies = [script, "ok"], digesting(ANEW, CACTUS, WATERED)

    job = bench.attempt(memory, "rederive")
    assert job["status"] == "queued"
    assert memory.texts(kind="digest") == []
    job = bench.attempt(memory, "rederive", job=job)

    assert memory.texts(kind="digest") == [ANEW]


def test_an_answer_that_does_not_pass_the_gate_drops_the_digest(
    memory: Memory, bench: Bench, server: OpenAIServer, sources: list[Any]
) -> None:
    memory.supersede(sources[0]["id"], content=CACTUS)
    server.replies = digesting("The office plant is a cactus that Priya waters.", CACTUS, WATERED)

    job = bench.attempt(memory, "rederive")

    assert job["counts"]["dropped"] == 1
    assert set(memory.texts()) == {CACTUS, WATERED}


def test_a_digest_whose_source_changes_while_the_model_thinks_is_taken_up_once_more(
    memory: Memory, bench: Bench, server: OpenAIServer, sources: list[Any]
) -> None:
    (old,) = memory.current(kind="digest")
    palm, palm_watered = "The office plant is a palm.", "The office plant is a palm and gets water on Mondays."
    cactus = memory.supersede(sources[0]["id"], content=CACTUS)["fact"]

    def changing(body: Any) -> Any:
        memory.supersede(cactus["id"], content=palm)
        return digesting(ANEW, CACTUS, WATERED)(body)

    server.replies = changing
    first = bench.attempt(memory, "rederive")
    server.replies = digesting(palm_watered, palm, WATERED)
    bench.attempt(memory, "rederive")

    (new,) = memory.current(kind="digest")
    assert first["counts"]["overtaken"] == 1
    assert new["content"] == palm_watered
    assert memory.get(f"/v1/facts/{old['id']}", status=410)["head"] == new["id"]


def test_a_dry_run_says_what_would_become_of_it_and_changes_nothing(
    memory: Memory, bench: Bench, sources: list[Any]
) -> None:
    (old,) = memory.current(kind="digest")
    memory.forget(sources[0]["id"])

    job = bench.attempt(memory, "rederive", dry_run=True)

    assert [(found["action"], found["fact_id"]) for found in findings(memory, job)] == [("drop", old["id"])]
    assert memory.get(f"/v1/facts/{old['id']}/history")["facts"][0]["status"] == "stale"
