"""Recall over random stores equals a plain reference of the same rules, written the slow and obvious way."""

import asyncio
import math
import uuid
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.analyzer import analyze, query_words
from app.embedding import LocalEmbedder
from app.recall.relevance import relevance
from tests.clients import Memory

WORDS = "copper kettle harbour crane lantern ledger orchard pepper quarry saddle timber violin".split()
NUMBERS = ("v1.2", "v1.3", "E4107", "7")
EMBEDDER = LocalEmbedder()


@dataclass(frozen=True)
class Told:
    """A fact of a random store: its text, its scope and tag, and whether it is forgotten or replaced afterwards."""

    text: str
    scope: str
    tag: str
    fate: str


texts = st.lists(st.sampled_from([*WORDS, *NUMBERS]), min_size=1, max_size=5, unique=True).map(
    lambda words: " ".join(sorted(words))
)
facts = st.builds(
    Told,
    text=texts,
    scope=st.sampled_from(["near", "far"]),
    tag=st.sampled_from(["red", "blue"]),
    fate=st.sampled_from(["kept", "kept", "kept", "forgotten", "replaced"]),
)
stores = st.lists(facts, min_size=1, max_size=14, unique_by=lambda fact: fact.text)


def vector(text: str) -> Any:
    return asyncio.run(EMBEDDER.embed_documents([text]))[0].astype(np.float64)


def occurrences(count: int) -> float:
    return {0: 0.0, 1: 1.0, 2: 2.0, 3: 3.5, 4: 3.5}.get(count, 6.0)


class Reference:
    """The rules of recall for one store and one question."""

    def __init__(self, live: list[dict[str, Any]], query: str) -> None:
        self.words = query_words(query)
        self.vector = vector(query)
        self.counts = {fact["id"]: analyze(fact["content"]) for fact in live}
        self.average = max(sum(terms.length for terms in self.counts.values()) / max(len(live), 1), 1.0)
        self.frequencies = Counter(term for terms in self.counts.values() for term in terms.counts)
        self.total = len(live)

    def weight(self, term: str) -> float:
        held = self.frequencies[term]
        return math.log(1 + (self.total - held + 0.5) / (held + 0.5))

    def measures(self, text: str) -> dict[str, float | None]:
        terms = analyze(text)
        asked = {term for word in self.words for term in word.parts + word.wholes}
        norm = 1.2 * (0.25 + 0.75 * terms.length / self.average)
        words = sum(
            self.weight(term) * often * 2.2 / (often + norm)
            for term in asked
            if (often := occurrences(terms.counts.get(term, 0)))
        )
        names = {name for word in self.words for name in word.identifiers}
        exact = sum(self.weight(name) for name in names if name in terms.counts)
        total = covered = 0.0
        for word in self.words:
            whole = any(term in terms.counts for term in word.wholes)
            for part in word.parts:
                total += self.weight(part)
                covered += self.weight(part) if whole or part in terms.counts else 0.0
        cosine = float(self.vector @ vector(text))
        likely = float(relevance(np.array([cosine]), np.array([covered / total]))[0])
        return {"vector": cosine, "words": words or None, "exact": exact or None, "relevance": likely}

    def order(self, current: list[dict[str, Any]], retired: list[tuple[str, str]]) -> list[tuple[float, str]]:
        """Scores and texts, best first; `retired` are pairs of a retired text and its head's id."""
        live = {fact["id"]: self.measures(fact["content"]) for fact in current}
        scores = {id_: self.score(measured, live, behind=False) for id_, measured in live.items()}
        for text, head in retired:
            if head in live:
                echoed = 0.999 * self.score(self.measures(text), live, behind=True)
                scores[head] = max(scores[head], echoed)
        by_id = {fact["id"]: fact for fact in current}
        ranked = sorted(current, key=lambda f: (scores[f["id"]], f["recorded_at"], f["id"]), reverse=True)
        return [(scores[fact["id"]], by_id[fact["id"]]["content"]) for fact in ranked]

    def score(self, mine: dict[str, Any], live: dict[str, dict[str, Any]], *, behind: bool) -> float:
        total = 0.04 / 61
        for arm, weight in (("vector", 1.0), ("words", 1.0), ("exact", 1.5), ("relevance", 1.0)):
            if mine[arm] is None:
                continue
            score = round(mine[arm], 6)
            others = [round(other[arm], 6) for other in live.values() if other[arm] is not None]
            place = 0.5 + sum(o >= score for o in others) if behind else 1 + sum(o > score for o in others)
            total += weight / (60 + place)
        return total


def tell(memory: Memory, store: list[Told]) -> tuple[str, list[dict[str, Any]], list[tuple[str, str]]]:
    """Write a store under fresh scopes; its current facts and its retired texts with their heads."""
    mark = uuid.uuid4().hex[:8]
    current: list[dict[str, Any]] = []
    retired: list[tuple[str, str]] = []
    drafts = [{"content": one.text, "scope": f"{mark}/{one.scope}", "tags": [one.tag]} for one in store]
    written = memory.batch(*drafts)["items"]
    for told, item in zip(store, written, strict=True):
        fact = item["fact"]
        if told.fate == "forgotten":
            memory.forget(fact["id"])
            continue
        if told.fate == "replaced":
            head = memory.supersede(fact["id"], content=f"{told.text} again", tags=[told.tag])["fact"]
            retired.append((told.text, head["id"]))
            fact = head
        current.append(fact)
    return mark, current, retired


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    store=stores, query=texts, tag=st.sampled_from([None, "red"]), scopes=st.sampled_from([["near"], ["near", "far"]])
)
def test_recall_is_what_the_rules_say(
    memory: Memory, store: list[Told], query: str, tag: str | None, scopes: list[str]
) -> None:
    mark, current, retired = tell(memory, store)
    asked = [f"{mark}/{scope}" for scope in scopes]
    seen = [fact for fact in current if fact["scope"] in asked]
    reference = Reference(seen, query)
    kept = [fact for fact in seen if tag is None or tag in fact["tags"]]
    expected = reference.order(kept, retired)

    lists = {
        k: memory.recall(query, scopes=asked, k=k, **({"tags": [tag]} if tag else {}))["results"] for k in (100, 3)
    }

    got = [(result["score"], result["fact"]["content"]) for result in lists[100]]
    assert [text for _, text in got] == [text for _, text in expected]
    assert [score for score, _ in got] == pytest.approx([score for score, _ in expected])
    assert lists[3] == lists[100][:3]
