"""Questions whose answer lies several facts away."""

from tests.clients import Memory


def _crew(memory: Memory) -> dict[str, str]:
    texts = {
        "boat": "The Blue Heron is skippered by Ingrid Solberg.",
        "home": "Ingrid Solberg lives in Tromvik.",
        "mayor": "The mayor of Tromvik is Anders Moe.",
        "other": "The Grey Gull is skippered by Pavel Horak.",
        "elsewhere": "Pavel Horak lives in Ostrava.",
    }
    return {name: memory.fact(text)["id"] for name, text in texts.items()}


def test_a_chain_leads_to_the_fact_that_answers_and_names_the_facts_on_the_way(memory: Memory) -> None:
    ids = _crew(memory)

    first = memory.recall("Who is the mayor of the town where the skipper of the Blue Heron lives?", hops=3)["results"][
        0
    ]

    assert first["fact"]["id"] == ids["mayor"]
    assert first["via"] == [ids["boat"], ids["home"]]


def test_a_chain_goes_through_current_facts_only(memory: Memory) -> None:
    ids = _crew(memory)
    moved = memory.supersede(ids["home"], content="Ingrid Solberg lives in Havnes.")["fact"]["id"]

    results = memory.recall("Where does the skipper of the Blue Heron live?", hops=2)["results"]

    assert results[0]["fact"]["id"] == moved
    assert all(ids["home"] not in [result["fact"]["id"], *result["via"]] for result in results)


def test_a_chain_never_passes_through_a_scope_that_the_key_may_not_read(memory: Memory) -> None:
    memory.fact("The Blue Heron is skippered by Ingrid Solberg.", scope="open")
    hidden = memory.fact("Ingrid Solberg lives in Tromvik.", scope="closed")["id"]

    results = memory.recall("Where does the skipper of the Blue Heron live?", hops=3, scopes=["open"])["results"]

    assert all(hidden not in [result["fact"]["id"], *result["via"]] for result in results)


def test_a_short_list_of_chains_is_the_beginning_of_a_long_one(memory: Memory) -> None:
    _crew(memory)
    question = "Who is the mayor of the town where the skipper of the Blue Heron lives?"

    longest = memory.recalled(question, hops=3, k=5)

    assert [memory.recalled(question, hops=3, k=k) for k in (1, 2, 4)] == [longest[:1], longest[:2], longest[:4]]


def test_chains_are_not_followed_into_the_past_and_the_answer_says_so(memory: Memory) -> None:
    _crew(memory)

    answer = memory.recall("mayor of the skipper's town", hops=2, as_of="2999-01-01T00:00:00Z")

    assert answer["degraded"] == ["hops"]


def test_a_retired_fact_stands_right_below_what_replaced_it_in_a_list_of_chains_too(memory: Memory) -> None:
    ids = _crew(memory)
    memory.supersede(ids["home"], content="Ingrid Solberg lives in Havnes.")
    question = "Where does Ingrid Solberg, the skipper of the Blue Heron, live: in Tromvik?"

    shown = memory.recalled(question, hops=2, include=["retired"])

    assert "Ingrid Solberg lives in Tromvik." in shown
    assert shown.index("Ingrid Solberg lives in Tromvik.") == shown.index("Ingrid Solberg lives in Havnes.") + 1
