"""How often recall over several facts finds the answer, on made-up stores and on FactConsolidation.

    python -m bench.chains                      all made-up stores, and FactConsolidation where it is at hand
    python -m bench.chains --scale 40           stores of about 16,000 facts
    python -m bench.chains --write bench/chains.own.jsonl

Offline: the search runs over lists in memory that answer as the statements of the service do.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import numpy as np

from app.analyzer import analyze, query_words
from app.embedding import LocalEmbedder, Vectors
from app.recall.chains import follow
from app.recall.evidence import Vocabulary
from app.recall.paths import Mention
from app.recall.question import Corpus, terms_to_look_up
from app.recall.source import Name
from bench.chains_domains import FLEET, WIKI
from bench.chains_domains2 import BIOLOGY, MUSEUM
from bench.chains_store import Question, Store, make_store

DOMAINS = (WIKI, FLEET, MUSEUM, BIOLOGY)
SHARED = Path(os.environ.get("PALIMPSEST_SHARED", Path(__file__).parents[1] / ".." / "shared"))
PROSE = Path(__file__).parent / "chains.prose.jsonl"
_START = datetime(2026, 1, 1, tzinfo=UTC)


class MemorySource:
    """A store in memory: facts by their terms, the nearest first where a name is in too many."""

    def __init__(self, facts: Sequence[str], vectors: Vectors, embedder: LocalEmbedder) -> None:
        self.mentions = [
            Mention(UUID(int=at + 1), text, _START + timedelta(minutes=at)) for at, text in enumerate(facts)
        ]
        self._vectors = vectors
        self._embedder = embedder
        self._holding: dict[str, set[int]] = {}
        self.words = 0
        for at, text in enumerate(facts):
            terms = analyze(text)
            self.words += terms.length
            for term in terms.counts:
                self._holding.setdefault(term, set()).add(at)
        self.calls = self.names = self.rows = 0

    def corpus(self, question: str) -> Corpus:
        """What the store knows of the terms of a question."""
        frequencies = {term: len(self._holding.get(term, ())) for term in terms_to_look_up(query_words(question))}
        return Corpus(len(self.mentions), self.words, frequencies)

    async def mentioning(self, names: Sequence[Name], limit: int) -> list[list[Mention]]:
        """As `Source` says."""
        found = [[self.mentions[at] for at in await self._nearest(name, limit)] for name in names]
        self.calls += 1
        self.names += len(names)
        self.rows += sum(map(len, found))
        return found

    async def frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """In how many facts the terms occur."""
        return {term: len(self._holding.get(term, ())) for term in terms}

    async def _nearest(self, name: Name, limit: int) -> list[int]:
        holding = sorted((self._holding.get(term, set()) for term in name.terms), key=len)
        held = sorted(set.intersection(*holding)) if holding else []
        if len(held) <= limit or name.near is None:
            return held[:limit]
        (near,) = await self._embedder.embed_queries([name.near])
        order = np.argsort(-(self._vectors[held] @ near), kind="stable")
        return [held[at] for at in order[:limit]]


@dataclass(slots=True)
class Tally:
    """What a run over one store came to: shares of the questions, milliseconds, and what was fetched."""

    name: str
    facts: int
    questions: int
    top1: float = 0.0
    any10: float = 0.0
    via: float = 0.0
    by_hops: dict[int, str] = field(default_factory=dict)
    median_ms: float = 0.0
    names_a_call: float = 0.0
    rows_a_call: float = 0.0


async def run(store: Store, hops: int, embedder: LocalEmbedder, vocabulary: Vocabulary) -> Tally:
    """Ask every question of a store."""
    source = MemorySource(store.facts, await embedder.embed_documents(store.facts), embedder)
    texts = {mention.id: mention.content for mention in source.mentions}
    tally = Tally(store.name, len(store.facts), len(store.questions))
    firsts: dict[int, list[bool]] = {}
    times = []
    for question in store.questions:
        began = time.thread_time()
        chains = await follow(question.text, hops, source.corpus(question.text), source, vocabulary, source.frequencies)
        times.append((time.thread_time() - began) * 1_000)
        hits = [_answers(texts[chain.facts[-1]], question) for chain in chains[:10]]
        tally.any10 += any(hits) / len(store.questions)
        tally.top1 += hits[:1] == [True] and 1 / len(store.questions)
        walked = [tuple(texts[fact] for fact in chain.facts) for chain in chains[:1]]
        tally.via += walked == [question.chain] and 1 / len(store.questions)
        firsts.setdefault(len(question.chain), []).append(hits[:1] == [True])
    tally.by_hops = {hops: f"{sum(first)}/{len(first)}" for hops, first in sorted(firsts.items())}
    tally.median_ms = float(np.median(times))
    tally.names_a_call = source.names / max(1, source.calls)
    tally.rows_a_call = source.rows / max(1, source.calls)
    return tally


def _answers(text: str, question: Question) -> bool:
    return any(answer.casefold() in text.casefold() for answer in question.answer.split("\n"))


def consolidated(asked: str) -> Store:
    """FactConsolidation with only the last fact of each subject, and its `single_hop` or `multi_hop` questions."""
    data = json.loads((SHARED / "data" / "factconsolidation-6k.json").read_text("utf-8"))
    last = {fact["subject"]: fact["text"] for fact in data["facts"]}
    questions = [Question(entry["question"], "\n".join(entry["answers"]), ()) for entry in data[asked]]
    return Store(f"FactConsolidation {asked}", list(last.values()), questions)


def written(path: Path) -> list[Store]:
    """The stores in a file of JSON lines."""
    stores = []
    for line in path.read_text("utf-8").splitlines():
        held = json.loads(line)
        questions = [Question(asked["text"], asked["answer"], tuple(asked["chain"])) for asked in held["questions"]]
        stores.append(Store(held["name"], held["facts"], questions))
    return stores


def _line(tally: Tally) -> str:
    return (
        f"{tally.name:28} {tally.facts:6} facts  top-1 {tally.top1:.2f}  any@10 {tally.any10:.2f}  "
        f"via {tally.via:.2f}  by hops {tally.by_hops}  {tally.median_ms:.1f} ms  "
        f"{tally.names_a_call:.0f} names and {tally.rows_a_call:.0f} rows a call"
    )


async def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--hops", type=int, default=4)
    parser.add_argument("--only", help="run only the stores whose name contains this")
    parser.add_argument("--write", type=Path, help="write the made-up stores as JSON lines instead")
    arguments = parser.parse_args()
    made = [
        make_store(domain, scale=arguments.scale, questions=arguments.questions, seed=arguments.seed)
        for domain in DOMAINS
    ]
    if arguments.write:
        arguments.write.write_text("".join(json.dumps(asdict(store)) + "\n" for store in made), "utf-8")
        return
    stores = [*written(PROSE), *made]
    if (SHARED / "data" / "factconsolidation-6k.json").exists():
        stores += [consolidated("multi_hop"), consolidated("single_hop")]
    embedder = LocalEmbedder()
    vocabulary = Vocabulary(embedder.embed_queries)
    for store in stores:
        if not arguments.only or arguments.only in store.name:
            print(_line(await run(store, arguments.hops, embedder, vocabulary)), flush=True)


if __name__ == "__main__":
    asyncio.run(_main())
