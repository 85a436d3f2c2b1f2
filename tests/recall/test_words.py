"""What is found by its words, whatever they are made of."""

import pytest

from tests.clients import Memory

TOOLS = "Build scripts are in C++ and call ./tools/gen_map.sh."
GIT = "Never run git clean -fdx in /srv/app/releases."
TENANT = "resolveTenantKey() throws when the header is absent."
NODE = "Pinned to node 22.4.1 and Go."


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        ("C++", TOOLS),
        ("gen_map", TOOLS),
        ("gen map", TOOLS),
        ("-fdx", GIT),
        ("/srv/app/releases", GIT),
        ("releases", GIT),
        ("tenant key", TENANT),
        ("resolveTenantKey", TENANT),
        ("22.4.1", NODE),
        ("Go", NODE),
    ],
)
def test_names_from_code_find_their_fact_first(memory: Memory, query: str, fact: str) -> None:
    for text in (TOOLS, GIT, TENANT, NODE):
        memory.fact(text)

    assert memory.recalled(query)[0] == fact


@pytest.mark.parametrize("asked", ["4.17b", "4.9", "4.1"])
def test_the_build_that_is_named_leads_its_twins(memory: Memory, asked: str) -> None:
    twins = [{"content": f"Changelog for build 4.{n} - minor fixes"} for n in range(1, 61)]
    named = {"content": "Changelog for build 4.17b - fixes the tax rounding"}
    memory.post("/v1/facts/batch", {"facts": [*twins, named]})

    assert f"build {asked} " in memory.recalled(f"build {asked}", k=3)[0]


@pytest.mark.parametrize("number", [4, 7, 12, 45])
def test_the_number_that_is_named_leads_those_that_look_like_it(memory: Memory, number: int) -> None:
    drawers = [f"Bolt {n} sits in drawer {'ABCDEFG'[n % 7]}." for n in range(300)]
    memory.batch(*drawers)

    assert memory.recalled(f"where does bolt {number} sit", k=1) == [drawers[number]]


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        ("蓝湖", "用户服务器部署在蓝湖机房"),
        ("折り紙", "昨日は折り紙の練習をした"),
        ("회의", "오늘 회의는 취소되었다"),
        ("Лесная", "Склад переехал на улицу Лесная"),
        ("cafe Muller", "Das Café Müller hat montags zu"),
    ],
)
def test_words_of_any_script_are_found_by_their_characters(memory: Memory, query: str, fact: str) -> None:
    texts = ["用户服务器部署在蓝湖机房", "昨日は折り紙の練習をした", "오늘 회의는 취소되었다"]
    for text in [*texts, "Склад переехал на улицу Лесная", "Das Café Müller hat montags zu"]:
        memory.fact(text)

    best = memory.recall(query, explain=True)["results"][0]

    assert best["fact"]["content"] == fact
    assert best["ranks"]["words"] == 1


TODO = "The bot's TODO: rotate keys in infra/prod (GB/s limit)."


@pytest.mark.parametrize(
    "query",
    [
        *("what's the bot's TODO", "TODO: rotate", "infra/prod", "GB/s", "!rotate & | :*", "-rotate"),
        *("keys AND", "NOT keys", "keys OR nothing", "'rotate'", "rotate:*", "(rotate"),
    ],
)
def test_punctuation_is_never_query_syntax(memory: Memory, query: str) -> None:
    memory.fact(TODO)
    memory.fact("Lunch is at noon.")

    assert memory.recalled(query)[0] == TODO


@pytest.mark.parametrize("query", ['"unbalanced', "O'", "<->", "(((", "%", "_", "\\\\", "OR", "'", "\\'", "👍"])
def test_odd_queries_are_answered(memory: Memory, query: str) -> None:
    memory.fact(TODO)

    assert memory.recall(query)["degraded"] == []


def test_a_query_of_stop_words_finds_the_facts_that_hold_them_and_no_others(memory: Memory) -> None:
    facts = [{"content": f"Shelf {n} holds grey boxes"} for n in range(30)]
    memory.post("/v1/facts/batch", {"facts": facts})
    memory.fact("Will is on call; The Who play on Saturday.")

    assert memory.recalled("will") == ["Will is on call; The Who play on Saturday."]
    assert memory.recalled("the who") == ["Will is on call; The Who play on Saturday."]
    assert memory.recalled("it") == []


def test_a_query_without_a_word_finds_nothing(memory: Memory) -> None:
    memory.fact(TODO)

    assert memory.recalled("((( <-> )))") == []


def test_what_is_not_so_is_told_from_what_is(memory: Memory) -> None:
    memory.fact("Plan A includes phone support.", subject="plan-a")
    memory.fact("Plan B does not include phone support.", subject="plan-b")

    found = memory.recalled("which plan does not include phone support", k=2)

    assert found == ["Plan B does not include phone support.", "Plan A includes phone support."]


def test_a_fact_is_found_by_its_words_in_the_next_request(memory: Memory) -> None:
    for n in range(20):
        memory.fact(f"Spare key number k{n}x is behind the copper kettle.")

        assert f"k{n}x" in memory.recalled(f"copper kettle spare key k{n}x", k=1)[0]


def test_a_long_query_is_answered(memory: Memory) -> None:
    memory.fact("The sluice gate is opened by Hannele.")
    padding = " ".join(f"padding{n}" for n in range(300))

    assert memory.recalled(f"{padding} who opens the sluice gate", k=1) == ["The sluice gate is opened by Hannele."]
