"""Which facts are about one thing: what a digest may be made of, and what is shown to the model together."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from app.facts.detection import compare, key_terms
from app.facts.detection.frames import content_of, parse
from app.facts.fact import Fact

_SHARED_TERMS = 2
_LARGEST_CLUSTER = 8
# Words that are not names of anything: whoever says them means whoever speaks.
_SPEAKERS = frozenset("we i you they he she it our my your this that there everybody everyone one".split())


@dataclass(frozen=True, slots=True)
class Gist:
    """What a text is about: its distinct words, and the words in the grammatical subject of each clause."""

    terms: frozenset[str]
    subjects: tuple[frozenset[str], ...]
    content: frozenset[str]


@lru_cache(maxsize=20_000)
def gist(text: str) -> Gist:
    """The gist of a text."""
    clauses = parse(text).clauses
    subjects = tuple(content_of(clause.subject) - _SPEAKERS for clause in clauses)
    content = frozenset(word for clause in clauses for word in clause.content)
    return Gist(frozenset(key_terms(text)), subjects, content)


def family(subject: str | None) -> str | None:
    """The entity that a subject belongs to: `team.standup` for `team.standup.time`, the subject itself without dot."""
    return subject.rpartition(".")[0] or subject if subject is not None else None


def are_one_entity(one: Fact, other: Fact) -> bool:
    """Whether both facts speak of the same entity, as far as subjects and grammar tell.

    Different families of subjects are different entities. So are two texts whose grammatical subjects have nothing to
    do with each other: "Nils is …", "Petra is …"; but "The CTO is Petra" and "Petra is …" are one.
    """
    if one.subject is not None and other.subject is not None and family(one.subject) != family(other.subject):
        return False
    mine, theirs = gist(one.content), gist(other.content)
    speaking = [subject for subject in mine.subjects if subject]
    spoken_of = [subject for subject in theirs.subjects if subject]
    if not speaking or not spoken_of:
        return True
    return any(
        first & second or first <= theirs.content or second <= mine.content
        for first in speaking
        for second in spoken_of
    )


def are_related(one: Fact, other: Fact) -> bool:
    """Whether both are about the same thing: one family of subjects, or two distinct words in common."""
    if one.subject is not None and family(one.subject) == family(other.subject):
        return True
    return len(gist(one.content).terms & gist(other.content).terms) >= _SHARED_TERMS


def disagree(one: Fact, other: Fact) -> bool:
    """Whether the texts contradict or replace each other, by the rules of the write path."""
    return compare(one.content, other.content) is not None or compare(other.content, one.content) is not None


def hold_together(one: Fact, other: Fact) -> bool:
    """Whether both may be sources of one digest."""
    return (
        one.scope == other.scope and are_one_entity(one, other) and are_related(one, other) and not disagree(one, other)
    )


def clusters(facts: Sequence[Fact]) -> list[list[Fact]]:
    """Facts in groups whose members are all related with one another, in the order given; most stand alone.

    Each pair of a group is related, so that no chain of likenesses pulls unlike facts together.
    """
    found: list[list[Fact]] = []
    by_key: defaultdict[str, list[int]] = defaultdict(list)
    for fact in facts:
        keys = _keys(fact)
        near = Counter(index for key in keys for index in by_key[key])
        home = next((i for i, _ in near.most_common() if _belongs(fact, found[i])), None)
        if home is None:
            home = len(found)
            found.append([])
        found[home].append(fact)
        for key in keys:
            if not by_key[key] or by_key[key][-1] != home:
                by_key[key].append(home)
    return found


def _keys(fact: Fact) -> set[str]:
    keys = set(gist(fact.content).terms)
    if fact.subject is not None:
        keys.add(f"\0{family(fact.subject)}")
    return keys


def _belongs(fact: Fact, cluster: Sequence[Fact]) -> bool:
    return len(cluster) < _LARGEST_CLUSTER and all(are_related(fact, member) for member in cluster)


def pairs_in(ids: Iterable[UUID], contested: frozenset[frozenset[UUID]]) -> bool:
    """Whether two of the facts contest each other."""
    held = set(ids)
    return any(pair <= held for pair in contested)
