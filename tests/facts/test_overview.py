"""Freshness and statistics tell how facts stand, without their texts."""

from collections.abc import Callable

from tests.clients import NEVER, Memory
from tests.facts.test_superseding import chain


def test_freshness_tells_what_replaced_each_fact_and_why(memory: Memory) -> None:
    first, _, third = chain(memory, "One.", "Two.", "Three.")
    gone = memory.fact("Gone.")["id"]
    memory.forget(gone, reason="It ended.")
    later = memory.fact("Later.", valid_from="2999-01-01T00:00:00Z")["id"]
    over = memory.fact("Over.", valid_from="2020-01-01T00:00:00Z", valid_to="2021-01-01T00:00:00Z")["id"]

    answer = memory.post("/v1/freshness", {"ids": [first, third, gone, later, over, NEVER, first]})

    told = [(item["id"], item["status"], item["current"], item["head"], item["reason"]) for item in answer["items"]]
    assert told == [
        (first, "superseded", False, third, "It changed."),
        (third, "active", True, third, None),
        (gone, "forgotten", False, None, "It ended."),
        (later, "scheduled", False, None, None),
        (over, "expired", False, None, None),
        (NEVER, "unknown", False, None, None),
    ]
    assert [item["retired_at"] is not None for item in answer["items"]] == [True, False, True, False, False, False]
    assert (answer["current"], answer["outdated"], answer["unknown"]) == (1, 4, 1)


def test_freshness_of_a_thousand_facts_is_one_request(memory: Memory) -> None:
    batch = memory.batch(*[f"Reading {n}." for n in range(1000)])
    ids = [item["fact"]["id"] for item in batch["items"]]

    assert memory.post("/v1/freshness", {"ids": ids})["current"] == 1000
    assert memory.post("/v1/freshness", {"ids": [*ids, NEVER]}, status=422)["errors"][0]["pointer"] == "/ids"
    assert memory.post("/v1/freshness", {"ids": []}, status=422)["errors"][0]["pointer"] == "/ids"


def test_statistics_count_what_is_current_and_what_is_retired(memory: Memory) -> None:
    chain(memory, "One.", "Two.", "Three.", subject="it")
    memory.fact("A note.", scope="team")
    gone = memory.fact("Gone.", scope="team")["id"]
    memory.forget(gone)

    stats = memory.get("/v1/stats")

    assert (stats["current"], stats["retired"], stats["retired_share"]) == (2, 3, 0.6)
    assert stats["by_status"] == {"active": 2, "forgotten": 1, "superseded": 2}
    assert stats["by_kind"] == {"note": 1, "state": 1}
    assert stats["by_scope"] == [
        {"scope": "shared", "current": 1, "retired": 2},
        {"scope": "team", "current": 1, "retired": 1},
    ]
    assert memory.get("/v1/stats", scope="team")["current"] == 1


def test_statistics_of_an_empty_namespace_are_zero(memory: Memory) -> None:
    stats = memory.get("/v1/stats")

    assert (stats["current"], stats["retired"], stats["retired_share"], stats["by_scope"]) == (0, 0, 0.0, [])


def test_a_key_counts_only_what_it_may_read(memory: Memory, client_of: Callable[..., Memory]) -> None:
    memory.batch({"content": "One.", "scope": "a"}, {"content": "Two.", "scope": "b"})

    assert client_of(read_scopes=["a"]).get("/v1/stats")["current"] == 1
    assert client_of(read_scopes=["a"]).get("/v1/stats", scope="b", status=403)["code"] == "scope_forbidden"
