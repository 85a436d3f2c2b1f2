"""Makes a store of facts in one domain and multi-hop questions over it, from a seed."""

import re
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from bench.chains_domains import Domain, Relation
from bench.chains_names import pool


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its answer, and the facts that lead to it, in order."""

    text: str
    answer: str
    chain: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """Facts in the order they were written, and the questions over them."""

    name: str
    facts: list[str]
    questions: list[Question]


Edge = tuple[int, str, str]
Step = tuple[Edge, str]


def make_store(domain: Domain, *, scale: float, questions: int, seed: int) -> Store:
    """A store of about `350 * scale` facts and `questions` questions of 2 to 4 hops."""
    rng = Random(f"{domain.name}/{scale}/{seed}")
    taken: set[str] = set()
    names = {kind: pool(kind, max(3, int(size * scale)), rng, taken) for kind, size in domain.sizes.items()}
    edges = [edge for number, relation in enumerate(domain.relations) for edge in _edges(number, relation, names, rng)]
    stated = {edge: _state(domain, edge, rng) for edge in edges}
    facts = list(stated.values())
    facts += [_remark(domain, names, rng) for _ in range(len(edges) // 4)]
    rng.shuffle(facts)
    return Store(domain.name, facts, _ask(domain, stated, questions, rng))


def _edges(number: int, relation: Relation, names: dict[str, list[str]], rng: Random) -> list[Edge]:
    """One object for most subjects. Within one kind everybody is the object once at most, else the inverse misleads."""
    subjects = list(names[relation.source])
    if relation.source != relation.target:
        return [(number, name, rng.choice(names[relation.target])) for name in subjects if rng.random() < 0.8]
    rng.shuffle(subjects)
    step = 2 if relation.mutual else 1
    pairs = list(pairwise(subjects))[::step]
    return [(number, *pair) for pair in pairs if rng.random() < 0.8]


def _state(domain: Domain, edge: Edge, rng: Random) -> str:
    number, subject, target = edge
    shape = rng.choice(domain.relations[number].facts)
    return _sentence(shape.format(s=subject, o=target) + rng.choice(domain.tails))


def _remark(domain: Domain, names: dict[str, list[str]], rng: Random) -> str:
    """A fact that mentions entities and answers nothing."""
    shape = rng.choice(domain.remarks)
    return _sentence(re.sub(r"\{(\w+)\}", lambda slot: rng.choice(names[slot[1]]), shape))


def _sentence(text: str) -> str:
    """Collapses the articles that a shape and a name both bring, and starts with a capital where that is safe."""
    text = re.sub(r"\b[Tt]he the\b", "the", re.sub(r"\b([Tt]he) The\b", r"\1", text))
    return text[0].upper() + text[1:] if text.startswith("the ") else text


def _ask(domain: Domain, stated: dict[Edge, str], count: int, rng: Random) -> list[Question]:
    leaving: dict[str, list[Step]] = {}
    for edge in stated:
        leaving.setdefault(edge[1], []).append((edge, edge[2]))
        if domain.relations[edge[0]].mutual:
            leaving.setdefault(edge[2], []).append((edge, edge[1]))
    starts = sorted(leaving)
    made: dict[str, Question] = {}
    while len(made) < count:
        chain = _walk(leaving, rng.choice(starts), rng.choice((2, 2, 3, 3, 4)), rng)
        if chain is not None:
            start = chain[0][0][1] if chain[0][0][1] != chain[0][1] else chain[0][0][2]
            text = _question(domain, start, chain, rng)
            made[text] = Question(text, chain[-1][1], tuple(stated[edge] for edge, _ in chain))
    return list(made.values())


def _walk(leaving: dict[str, list[Step]], start: str, hops: int, rng: Random) -> list[Step] | None:
    """A chain that visits no entity twice, or None where the walk ends early."""
    chain: list[Step] = []
    seen = {start}
    here = start
    for _ in range(hops):
        ways = [step for step in leaving.get(here, []) if step[1] not in seen]
        if not ways:
            return None
        chain.append(rng.choice(ways))
        here = chain[-1][1]
        seen.add(here)
    return chain


def _question(domain: Domain, start: str, chain: list[Step], rng: Random) -> str:
    phrase = start
    for (number, _, _), _ in chain[:-1]:
        phrase = rng.choice(domain.relations[number].phrases).format(x=phrase)
    asked = rng.choice(domain.relations[chain[-1][0][0]].asks).format(x=phrase)
    return re.sub(r"\bthe [Tt]he\b", "the", asked)
