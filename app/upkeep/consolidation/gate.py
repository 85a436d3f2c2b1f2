"""The gate: what of the model's proposals may become anything. Pure, and asked again under locks before a write.

The model is not trusted with any of this, nor is a statement that tries to instruct it: whatever the prompt says,
only what passes here is carried out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal
from uuid import UUID

from app.auth import rank
from app.facts.addresses import content_hash, normalise_subject
from app.facts.detection import compare, dropped_values, normalise
from app.facts.detection.frames import parse
from app.facts.fact import ConflictKind, Fact
from app.upkeep.consolidation.actions import LONGEST_DIGEST, Classification, Contradiction, Digest
from app.upkeep.consolidation.asking import Shown
from app.upkeep.consolidation.cohesion import are_one_entity, are_related, disagree, family, gist

MOST_SOURCES = 12
_LONGER_THAN_SOURCES = 2

Pair = frozenset[UUID]


class Refused(Exception):
    """The gate's no, in a sentence without any text of a fact. With `again` the facts are asked about once more."""

    def __init__(self, reason: str, *, again: bool = False) -> None:
        super().__init__(reason)
        self.again = again


@dataclass(frozen=True, slots=True)
class Standing:
    """How the shown facts stand now, which of them contest each other, and which pairs were ever contested."""

    facts: Mapping[UUID, Fact]
    contested: frozenset[Pair] = frozenset()
    judged: frozenset[Pair] = frozenset()

    def current(self, id_: UUID) -> Fact | None:
        fact = self.facts.get(id_)
        return fact if fact is not None and fact.is_current and fact.kind != "retraction" else None


@dataclass(frozen=True, slots=True)
class NewDigest:
    """A digest that may be written."""

    text: str
    sources: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class NewConflict:
    """A contradiction that may be shown; `ended` is retired by the other one where the namespace allows it."""

    first: Fact
    second: Fact
    kind: ConflictKind
    reason: str
    ended: Fact | None
    evidence: str | None

    @property
    def successor(self) -> Fact:
        return self.second if self.ended is self.first else self.first


@dataclass(frozen=True, slots=True)
class NewSubject:
    """A kind and a subject that a note may get, once somebody approves."""

    fact: Fact
    kind: Literal["state", "event"]
    subject: str | None


# --- Digests ---------------------------------------------------------------------------------------------------


def admit_digest(action: Digest, shown: Shown, standing: Standing) -> NewDigest:
    """Raises Refused."""
    named = dict.fromkeys(shown.find(handle) for handle in action.sources)
    known = [id_ for id_ in named if id_ is not None]
    sources = [fact for id_ in known if (fact := standing.current(id_)) is not None]
    if len(sources) < len(known):
        raise Refused("a source was retired meanwhile", again=True)
    return check_digest(action.text, sources, standing)


def check_digest(text: str, sources: Sequence[Fact], standing: Standing) -> NewDigest:
    """A digest with these words over these current facts. Raises Refused."""
    if len(sources) < 2:
        raise Refused("fewer than two of its sources were shown")
    if len(sources) > MOST_SOURCES:
        raise Refused(f"more than {MOST_SOURCES} sources")
    if any(fact.kind == "digest" for fact in sources):
        raise Refused("a digest is never a source")
    if len({(fact.namespace, fact.scope) for fact in sources}) > 1:
        raise Refused("its sources are of several scopes")
    _check_cohesion(sources, standing)
    _check_words(text, sources)
    return NewDigest(text, tuple(sources))


def _check_cohesion(sources: Sequence[Fact], standing: Standing) -> None:
    if len({family(fact.subject) for fact in sources if fact.subject is not None}) > 1:
        raise Refused("its sources have different subjects")
    for one, other in combinations(sources, 2):
        if frozenset((one.id, other.id)) in standing.contested or disagree(one, other):
            raise Refused("its sources contradict each other")
        if not are_one_entity(one, other):
            raise Refused("its sources speak of different entities")
        if not are_related(one, other):
            raise Refused("its sources are not about one thing")


def _check_words(text: str, sources: Sequence[Fact]) -> None:
    longest = min(LONGEST_DIGEST, _LONGER_THAN_SOURCES * sum(len(fact.content) for fact in sources))
    if len(text) > longest or parse(text).truncated:
        raise Refused("its text is too long")
    if content_hash(normalise(text)) in {fact.content_hash for fact in sources}:
        raise Refused("it says no more than one of its sources")
    if invented(text, sources):
        raise Refused("it holds a name or a number that no source holds")
    terms = gist(text).terms
    if any(not terms & gist(fact.content).terms for fact in sources):
        raise Refused("it says nothing about one of its sources")
    if denies(text) != any(denies(fact.content) for fact in sources):
        raise Refused("it denies what no source denies, or the other way round")
    if any(compare(text, fact.content) is not None for fact in sources):
        raise Refused("it contradicts one of its sources")


def denies(text: str) -> bool:
    """Whether anything in a text is denied, or said to be over."""
    return any(clause.negations or clause.ended for clause in parse(text).clauses)


def invented(text: str, sources: Sequence[Fact]) -> list[str]:
    """The names and numbers of a text that occur in none of the sources."""
    held = {
        spelling
        for fact in sources
        for stated in (fact.content, (fact.subject or "").replace(".", " "))
        for clause in parse(stated).clauses
        for token in clause.tokens
        for spelling in (token.key, token.low)
    }
    return [
        token.low
        for clause in parse(text).clauses
        for token in clause.tokens
        if (token.kind not in ("word", "colon") or any(c.isdigit() for c in token.low))
        and held.isdisjoint((token.key, token.low))
    ]


# --- Contradictions --------------------------------------------------------------------------------------------


def admit_conflict(action: Contradiction, shown: Shown, standing: Standing) -> NewConflict:
    """Raises Refused."""
    ids = [shown.find(action.first), shown.find(action.second)]
    if None in ids or ids[0] == ids[1]:
        raise Refused("it does not name two facts that were shown")
    first, second = (standing.current(id_) for id_ in ids if id_ is not None)
    if first is None or second is None:
        raise Refused("one of the facts was retired meanwhile", again=True)
    if "digest" in (first.kind, second.kind):
        raise Refused("a digest contradicts nothing: its sources do")
    if frozenset((first.id, second.id)) in standing.judged:
        raise Refused("these two are contested already, or were before")
    if not _quoted(action.first_quote, first) or not _quoted(action.second_quote, second):
        raise Refused("a quote is not in the fact's own words")
    if _different_addresses(first, second) or not are_related(first, second):
        raise Refused("the facts are not about one thing")
    ended = _ended(action, shown, first, second)
    finding = compare(second.content, first.content) or compare(first.content, second.content)
    kind: ConflictKind = finding.kind if finding is not None else "value"
    return NewConflict(first, second, kind, action.reason, ended, action.evidence)


def _quoted(quote: str, fact: Fact) -> bool:
    return quote in fact.content or (fact.source_quote is not None and quote in fact.source_quote)


def _different_addresses(first: Fact, second: Fact) -> bool:
    return first.subject is not None and second.subject is not None and first.subject != second.subject


def _ended(action: Contradiction, shown: Shown, first: Fact, second: Fact) -> Fact | None:
    if action.ended is None:
        return None
    id_ = shown.find(action.ended)
    return next((fact for fact in (first, second) if fact.id == id_), None)


def check_retirement(conflict: NewConflict) -> str | None:
    """Why the model's word does not suffice to retire `ended`; None if it does.

    What the model claims must be borne out by an address or by the wording rules, and by a verbatim quote.
    """
    old, new = conflict.ended, conflict.successor
    if old is None:
        return "no fact is said to have ended"
    if old.kind == "event":
        return "an event is never retired by a rule"
    if old.pinned:
        return "the fact is pinned"
    if conflict.evidence is None or not _quoted(conflict.evidence, new):
        return "the evidence is not in the other fact's own words"
    if rank(new.source_tier) < rank(old.source_tier):
        return "the other fact comes from a less trusted source"
    if new.valid_from < old.valid_from:
        return "the other fact is older"
    if dropped_values(new.content, old.content):
        return "the other fact drops a detail of this one"
    finding = compare(new.content, old.content)
    if finding is not None and finding.retires:
        return None
    same_state = old.subject is not None and old.subject == new.subject and old.kind == new.kind == "state"
    return None if same_state and finding is not None else "the wording does not bear it out"


# --- Classifications -------------------------------------------------------------------------------------------


def admit_subject(
    action: Classification, shown: Shown, standing: Standing, vocabulary: frozenset[str], *, closed: bool
) -> NewSubject | None:
    """None where the note is to stay as it is. Raises Refused."""
    id_ = shown.find(action.fact)
    if id_ is None:
        raise Refused("it names no fact that was shown")
    fact = standing.current(id_)
    if fact is None:
        raise Refused("the fact was retired meanwhile", again=True)
    if fact.kind != "note":
        raise Refused("only notes are classified")
    if action.kind == "note":
        return None
    subject = normalise_subject(action.subject) if action.subject is not None else None
    if action.kind == "state" and not subject:
        raise Refused("a state needs a subject")
    if subject and closed and subject not in vocabulary:
        raise Refused("the subject is not in the vocabulary")
    return NewSubject(fact, action.kind, subject or None)
