"""Where two current facts answer one subject, the better one leads and each says that it is contested."""

from tests.clients import Memory


def test_the_newer_of_two_contested_facts_leads_although_the_older_one_is_worded_like_the_question(
    memory: Memory,
) -> None:  # C13
    newer = memory.fact("Ilse looks after it.", subject="depot.manager", valid_from="2026-02-01T00:00:00Z")
    older = memory.remember("The depot manager is Bram.", subject="depot.manager", valid_from="2023-05-01T00:00:00Z")

    results = memory.recall("who is the depot manager")["results"]

    assert [doubt["kind"] for doubt in older["conflicts"]] == ["older"]
    assert [result["fact"]["id"] for result in results] == [newer["id"], older["fact"]["id"]]
    assert results[0]["conflicts_with"] == [older["fact"]["id"]]
    assert results[0]["score"] >= results[1]["score"]


def test_a_guess_comes_below_what_a_more_trusted_source_said(memory: Memory) -> None:  # C28
    stated = memory.fact("Sol is vegan.", subject="diet", source={"tier": "user"})
    guess = memory.fact("The diet of Sol includes fish on Fridays.", subject="diet", source={"tier": "inferred"})

    results = memory.recall("Sol diet fish")["results"]

    assert [result["fact"]["id"] for result in results] == [stated["id"], guess["id"]]


def test_the_order_of_a_contested_pair_is_the_same_in_a_short_list(memory: Memory) -> None:
    memory.fact("Sol is vegan.", subject="diet", source={"tier": "user"})
    memory.fact("The diet of Sol includes fish on Fridays.", subject="diet", source={"tier": "inferred"})
    memory.fact("Sol rides a green bicycle.")

    longest = memory.recalled("Sol diet fish", k=10)

    assert [memory.recalled("Sol diet fish", k=k) for k in (1, 2, 3)] == [longest[:1], longest[:2], longest[:3]]
