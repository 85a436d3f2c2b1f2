"""Recall over several facts, without a database: the search alone, over a store in memory."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.analyzer import analyze, query_words
from app.embedding import LocalEmbedder
from app.recall.chains import MOST_NAMES, Chain, follow
from app.recall.evidence import Vocabulary
from app.recall.paths import Mention
from app.recall.question import Corpus, terms_to_look_up
from app.recall.source import Name

HARBOUR = (
    "Captain Karim Curdsest commands the Blue Heron",
    "Karim Curdsest is married to Ilse Run",
    "Ilse Run was born in Traindwald",
    "Traindwald is a port in Honia",
    "The harbour minister of Honia is Hugo Nivneiv",
    "Captain Amara Dalm commands the Golden River",
    "Amara Dalm was born in Calberg",
    "Calberg is a port in Zustia",
    "The harbour minister of Zustia is Elif Weir",
    "The Blue Heron carries frozen squid",
    "The Golden River carries scrap copper",
    "Fog closed Traindwald on Monday",
)
TOWN = (
    "The Blue Heron is skippered by Ingrid Solberg.",
    "Ingrid Solberg lives in Tromvik.",
    "The mayor of Tromvik is Anders Moe.",
    "The Grey Gull is skippered by Pavel Horak.",
    "Pavel Horak lives in Ostrava.",
)
WIKI = (
    "billing-api is owned by Team Kestrel, as agreed in the March review",
    "Marta Feld leads Team Kestrel, as agreed in the March review",
    "billing-worker is owned by Team Otter, as agreed in the March review",
    "Jonas Brail leads Team Otter, as agreed in the March review",
    "Marta Feld lives in Norvik",
    "Jonas Brail lives in Port Norvik",
    "Norvik is a city in Denmark",
    "Port Norvik is a city in Sweden",
)


class Store:
    """Facts in a list. `calls` are the names of each call, in order."""

    def __init__(self, facts: Sequence[str], shuffled_by: int | None = None) -> None:
        start = datetime(2026, 1, 1, tzinfo=UTC)
        self.mentions = [Mention(UUID(int=at + 1), text, start + timedelta(hours=at)) for at, text in enumerate(facts)]
        self._terms = {mention.id: analyze(mention.content) for mention in self.mentions}
        self._shuffle = Random(shuffled_by).shuffle if shuffled_by is not None else list[Mention].copy
        self.calls: list[Sequence[Name]] = []

    async def mentioning(self, names: Sequence[Name], limit: int) -> list[list[Mention]]:
        self.calls.append(names)
        found = [[fact for fact in self.mentions if self._holds(fact, name)][:limit] for name in names]
        for facts in found:
            self._shuffle(facts)
        return found

    def _holds(self, fact: Mention, name: Name) -> bool:
        return self._terms[fact.id].counts.keys() >= set(name.terms)

    def corpus(self, question: str) -> Corpus:
        terms = terms_to_look_up(query_words(question))
        counts = asyncio.run(self.frequencies(terms))
        return Corpus(len(self.mentions), sum(held.length for held in self._terms.values()), counts)

    async def frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        return {term: sum(term in held.counts for held in self._terms.values()) for term in terms}

    def texts(self, chain: Chain) -> list[str]:
        by_id = {mention.id: mention.content for mention in self.mentions}
        return [by_id[fact] for fact in chain.facts]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(LocalEmbedder().embed_queries)


def chains_of(store: Store, question: str, vocabulary: Vocabulary, hops: int = 4) -> list[list[str]]:
    chains = asyncio.run(follow(question, hops, store.corpus(question), store, vocabulary, store.frequencies))
    return [store.texts(chain) for chain in chains]


@pytest.mark.parametrize(
    ("facts", "question", "steps"),
    [
        (TOWN, "Who is the skipper of the Grey Gull?", [3]),
        (TOWN, "Who is the mayor of the town where the skipper of the Blue Heron lives?", [0, 1, 2]),
        (HARBOUR, "Who is the captain of the Blue Heron?", [0]),
        (HARBOUR, "Who is the captain of the Blue Heron married to?", [0, 1]),
        (HARBOUR, "Where was the spouse of the captain of the Blue Heron born?", [0, 1, 2]),
        (HARBOUR, "Who is the harbour minister of the country of the port where Amara Dalm was born?", [6, 7, 8]),
    ],
)
def test_the_words_of_a_question_are_followed_from_its_name_outwards(
    facts: Sequence[str], question: str, steps: list[int], vocabulary: Vocabulary
) -> None:
    chains = chains_of(Store(facts), question, vocabulary)

    assert chains[0] == [facts[step] for step in steps]


def test_a_fact_is_entered_by_either_of_its_ends(vocabulary: Vocabulary) -> None:
    chains = chains_of(Store(HARBOUR), "What does the vessel that Amara Dalm commands carry?", vocabulary)

    assert chains[0] == [HARBOUR[5], HARBOUR[10]]


def test_identifiers_are_names(vocabulary: Vocabulary) -> None:
    chains = chains_of(Store(WIKI), "Who leads the team that owns billing-worker?", vocabulary)

    assert chains[0] == [WIKI[2], WIKI[3]]


def test_a_name_inside_a_longer_one_is_another_name(vocabulary: Vocabulary) -> None:
    chains = chains_of(Store(WIKI), "In which country is the city where Marta Feld lives?", vocabulary)

    assert chains[0] == [WIKI[4], WIKI[6]]


def test_a_set_phrase_at_the_end_of_many_facts_is_not_followed(vocabulary: Vocabulary) -> None:
    chains = chains_of(Store(WIKI), "Who leads the team that owns billing-api?", vocabulary)

    assert [WIKI[0], WIKI[3]] not in chains


def test_a_name_in_the_middle_of_a_long_text_is_found(vocabulary: Vocabulary) -> None:
    filler = "The minutes of this meeting are kept with the others. " * 40
    long = f"{filler}After a long debate Captain Karim Curdsest was given command of the Blue Heron. {filler}"
    facts = [long, *HARBOUR[1:]]

    chains = chains_of(Store(facts), "Where was the captain of the Blue Heron's wife born?", vocabulary)

    assert [long, HARBOUR[1], HARBOUR[2]] in chains


def test_one_hop_gives_single_facts(vocabulary: Vocabulary) -> None:
    chains = chains_of(Store(HARBOUR), "Who is the captain of the Blue Heron married to?", vocabulary, hops=1)

    assert chains
    assert all(len(chain) == 1 for chain in chains)


@pytest.mark.parametrize("question", ["Who commands the Crimson Tower?", "why?", "?!", ""])
def test_a_question_whose_name_nobody_knows_has_no_chains(question: str, vocabulary: Vocabulary) -> None:
    assert chains_of(Store(WIKI), question, vocabulary) == []


def test_an_empty_store_has_no_chains(vocabulary: Vocabulary) -> None:
    assert chains_of(Store([]), "Who commands the Blue Heron?", vocabulary) == []


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_the_source_is_asked_once_a_hop(hops: int, vocabulary: Vocabulary) -> None:
    store = Store(HARBOUR)

    chains_of(store, "Where was the spouse of the captain of the Blue Heron born?", vocabulary, hops)

    assert len(store.calls) == hops
    assert all(len(names) <= MOST_NAMES for names in store.calls)


def test_frequencies_save_lookups_and_change_no_best_chain(vocabulary: Vocabulary) -> None:
    question = "Where was the spouse of the captain of the Blue Heron born?"
    counting, blind = Store(HARBOUR), Store(HARBOUR)

    counted = chains_of(counting, question, vocabulary)
    chains = asyncio.run(follow(question, 4, blind.corpus(question), blind, vocabulary))

    assert blind.texts(chains[0]) == counted[0]
    assert sum(map(len, counting.calls)) < sum(map(len, blind.calls))


def test_no_fact_stands_in_a_chain_twice(vocabulary: Vocabulary) -> None:
    circle = ["Ada Holm admires Bo Lind", "Bo Lind admires Cy Wenn", "Cy Wenn admires Ada Holm"]

    chains = chains_of(Store(circle), "Whom does the idol of the idol of the idol of Ada Holm admire?", vocabulary)

    assert chains
    assert all(len(set(chain)) == len(chain) for chain in chains)


_people = st.sampled_from(["Ada Holm", "Bo Lind", "Cy Wenn", "Dee Marsh", "Port Ada", "team-7"])
_verbs = st.sampled_from(["admires", "works with", "was taught by", "is the deputy of", "lives near"])
_facts = st.lists(st.tuples(_people, _verbs, _people).map(" ".join), min_size=1, max_size=12, unique=True)


@settings(max_examples=60, deadline=None)
@given(facts=_facts, name=_people, seed=st.integers(0, 99), hops=st.integers(1, 4))
def test_the_order_in_which_facts_arrive_changes_nothing(
    facts: list[str], name: str, seed: int, hops: int, vocabulary: Vocabulary
) -> None:
    question = f"Who taught the deputy of the friend of {name}?"

    chains = chains_of(Store(facts), question, vocabulary, hops)

    assert chains_of(Store(facts, shuffled_by=seed), question, vocabulary, hops) == chains


@settings(max_examples=60, deadline=None)
@given(facts=_facts, name=_people, hops=st.integers(1, 4))
def test_each_fact_is_reached_by_one_chain_best_first(
    facts: list[str], name: str, hops: int, vocabulary: Vocabulary
) -> None:
    store = Store(facts)
    question = f"Where does the teacher of {name} live?"

    chains = asyncio.run(follow(question, hops, store.corpus(question), store, vocabulary, store.frequencies))

    scores = [chain.score for chain in chains]
    assert scores == sorted(scores, reverse=True)
    assert len({chain.facts[-1] for chain in chains}) == len(chains)
    assert all(1 <= len(chain.facts) <= hops for chain in chains)
    assert any(name in fact for fact in facts) <= bool(chains)


@settings(max_examples=80, deadline=None)
@given(question=st.text(max_size=80), facts=st.lists(st.text(min_size=1, max_size=80), max_size=6))
def test_any_text_is_read(question: str, facts: list[str], vocabulary: Vocabulary) -> None:
    chains = chains_of(Store([*facts, question]), question, vocabulary)

    assert all(chain[-1] in {*facts, question} for chain in chains)
