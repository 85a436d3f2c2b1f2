"""The search for chains by itself, over a few facts in memory."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from app.analyzer import analyze, query_words
from app.embedding import LocalEmbedder
from app.recall.chains import Chain, Name, follow
from app.recall.evidence import Vocabulary
from app.recall.paths import Mention
from app.recall.question import Corpus, terms_to_look_up

EMBEDDER = LocalEmbedder()
FACTS = (
    "The Blue Heron is skippered by Ingrid Solberg.",
    "Ingrid Solberg lives in Tromvik.",
    "The mayor of Tromvik is Anders Moe.",
    "The Grey Gull is skippered by Pavel Horak.",
    "Pavel Horak lives in Ostrava.",
)


class Shelf:
    """Facts by the terms that they hold, as a store would find them."""

    def __init__(self, facts: Sequence[str]) -> None:
        self.terms = [analyze(text) for text in facts]
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        self.mentions = [Mention(UUID(int=at + 1), text, moment) for at, text in enumerate(facts)]

    def corpus(self, question: str) -> Corpus:
        asked = terms_to_look_up(query_words(question))
        held = {term: sum(term in terms.counts for terms in self.terms) for term in asked}
        return Corpus(len(self.mentions), sum(terms.length for terms in self.terms), held)

    async def mentioning(self, names: Sequence[Name], limit: int) -> list[list[Mention]]:
        return [
            [
                mention
                for mention, terms in zip(self.mentions, self.terms, strict=True)
                if all(term in terms.counts for term in name.terms)
            ][:limit]
            for name in names
        ]


def chains(question: str, facts: Sequence[str] = FACTS, hops: int = 4) -> list[Chain]:
    shelf = Shelf(facts)
    found = follow(question, hops, shelf.corpus(question), shelf, Vocabulary(EMBEDDER.embed_queries))
    return asyncio.run(found)


def numbers(chain: Chain) -> list[int]:
    """The facts of a chain by their places, from 1 on."""
    return [fact.int for fact in chain.facts]


def test_the_best_chain_goes_from_the_name_in_the_question_to_the_answer() -> None:
    best = chains("Who is the mayor of the town where the skipper of the Blue Heron lives?")[0]

    assert numbers(best) == [1, 2, 3]


def test_a_question_for_one_fact_is_answered_by_a_chain_of_one() -> None:
    best = chains("Who is the skipper of the Grey Gull?")[0]

    assert numbers(best) == [4]


def test_no_chain_is_longer_than_the_hops_allowed() -> None:
    found = chains("Who is the mayor of the town where the skipper of the Blue Heron lives?", hops=2)

    assert max(len(chain.facts) for chain in found) == 2


def test_a_question_that_names_nothing_known_has_no_chains() -> None:
    assert chains("zzqv unicorn premium") == []


def test_each_fact_is_reached_by_one_chain_and_no_chain_visits_a_fact_twice() -> None:
    found = chains("Where does the skipper of the Blue Heron live?")

    assert len({chain.facts[-1] for chain in found}) == len(found)
    assert all(len(set(chain.facts)) == len(chain.facts) for chain in found)


@given(facts=st.permutations(FACTS), question=st.text(max_size=60) | st.sampled_from(FACTS))
@settings(max_examples=40, deadline=None)
def test_any_question_ends_with_scores_in_order_and_the_same_answer_twice(facts: list[str], question: str) -> None:
    first, second = chains(question, facts), chains(question, facts)

    assert first == second
    assert [chain.score for chain in first] == sorted((chain.score for chain in first), reverse=True)
    assert all(chain.score <= 1 for chain in first)
