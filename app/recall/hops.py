"""Recall over several facts, against the store: each step of a chain is one statement."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.analyzer import quoted
from app.auth import Caller, tiers_from
from app.db import Row
from app.embedding import LocalEmbedder
from app.facts.visibility import Sight, sight_of
from app.recall import presenting, queries
from app.recall.chains import Chain, follow
from app.recall.evidence import Vocabulary
from app.recall.paths import Mention
from app.recall.question import Corpus
from app.recall.schemas import RecallIn, ResultOut
from app.recall.search import Wanted
from app.recall.source import Name
from app.state import Service
from app.wire import made

# As many facts at most are reached by chains; it must not depend on how many are asked for.
_MOST = 100


@lru_cache(maxsize=4)
def _vocabulary(embedder: LocalEmbedder) -> Vocabulary:
    return Vocabulary(embedder.embed_queries)


@lru_cache(maxsize=1)
def _of_words() -> LocalEmbedder:
    return LocalEmbedder()


async def _vocabulary_of(service: Service) -> Vocabulary:
    """Single words are measured by static vectors, also where an endpoint embeds texts: it would be sent hundreds."""
    if isinstance(service.embedder, LocalEmbedder):
        return _vocabulary(service.embedder)
    return _vocabulary(await asyncio.to_thread(_of_words))


@dataclass(frozen=True, slots=True)
class _Store:
    """The current facts that a caller may read, as the source of a chain search."""

    service: Service
    namespace: str
    sight: tuple[Sight, Mapping[str, Any]]

    async def mentioning(self, names: Sequence[Name], limit: int) -> list[list[Mention]]:
        # The connection is taken after the embedder has answered.
        near = [name.near for name in names if name.near is not None]
        vectors = iter(await self.service.embedder.embed_queries(near) if near else ())
        nearness = [None if name.near is None else next(vectors) for name in names]
        profile = self.service.embedder.profile
        wanted = [" & ".join(quoted(term) for term in name.terms) for name in names]
        async with self.service.database.reading() as conn:
            mentions = await queries.mentions(
                conn, self.namespace, self.sight, wanted, nearness, profile.name if profile else "", limit
            )
        held: list[list[Mention]] = [[] for _ in names]
        for place, mention in mentions:
            held[place].append(mention)
        return held

    async def frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """In how many facts in sight each term occurs; absent where in none."""
        async with self.service.database.reading() as conn:
            counts, _ = await queries.frequencies(conn, self.namespace, self.sight, terms)
        return {term: facts for term, (facts, _) in counts.items() if term}


async def results_by_chains(
    service: Service, caller: Caller, ask: RecallIn, wanted: Wanted, corpus: Corpus
) -> list[ResultOut]:
    """The facts that chains of at most `ask.hops` facts lead to, best first, with the ids that led there in `via`.

    Raises EmbedderUnavailable.
    """
    store = _Store(service, caller.namespace, wanted.sight)
    vocabulary = await _vocabulary_of(service)
    chains = await follow(ask.query, ask.hops, corpus, store, vocabulary, store.frequencies)
    likely = [chain for chain in chains if _relevance(chain) >= (ask.min_relevance or 0.0)]
    # Without a filter, every fact that a chain ends in is shown.
    likely = likely[: _MOST if wanted.filters else ask.k]
    async with service.database.reading() as conn:
        rows = await queries.current_facts(
            conn, caller.namespace, sight_of(caller.reads, None), [chain.facts[-1] for chain in likely]
        )
    held = {row["id"]: row for row in rows if _is_wanted(row, wanted)}
    return [_result(chain, held[chain.facts[-1]]) for chain in likely if chain.facts[-1] in held][: ask.k]


def _is_wanted(fact: Row, wanted: Wanted) -> bool:
    """Whether the fact that a chain ends in passes the filters; those on the way need not."""
    return (
        (wanted.subjects is None or fact["subject"] in wanted.subjects)
        and (not wanted.kinds or fact["kind"] in wanted.kinds)
        and (not wanted.tags or set(wanted.tags) <= set(fact["tags"]))
        and (wanted.min_tier is None or fact["source_tier"] in tiers_from(wanted.min_tier))
    )


def _relevance(chain: Chain) -> float:
    return round(min(max(chain.score, 0.0), 1.0), 4)


def _result(chain: Chain, row: Row) -> ResultOut:
    fact, replaces, conflicts = presenting.current_out(row)
    return made(
        ResultOut,
        fact=fact,
        score=chain.score,
        relevance=_relevance(chain),
        ranks=None,
        scores=None,
        forwarded_by=None,
        replaces=replaces,
        conflicts_with=conflicts,
        via=list(chain.facts[:-1]),
    )
