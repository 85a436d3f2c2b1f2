"""What can be checked of a retirement without asking anybody: was it a standing state, and did it end?

The two-part test and its counterexamples (what is added, what continues, what develops further) are those of the
verification sweep in Stele's "When facts conflict".
"""

from dataclasses import dataclass
from uuid import UUID

from app.auth import rank
from app.facts.decision import EXPLICIT
from app.facts.detection import compare, dropped_values, lexicon
from app.facts.detection.frames import parse
from app.facts.fact import Fact
from app.text import is_blank


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A retirement: the link that asserts it, what it retired and by what."""

    link_id: UUID
    kind: str
    reason: str | None
    evidence: str | None
    rule: str | None
    old: Fact
    new: Fact

    @property
    def by_rule(self) -> bool:
        """Whether a rule retired the fact, and not somebody's own word."""
        return self.rule is not None and self.rule != EXPLICIT


def faults(claim: Claim) -> list[str]:
    """What does not hold of a claim, as short names; empty for one that stands."""
    found = []
    if claim.reason is None or is_blank(claim.reason):
        found.append("no_reason")
    if claim.new.kind == "retraction":
        return found
    if claim.evidence is not None and not _verbatim(claim.evidence, claim.new):
        found.append("evidence_not_verbatim")
    if claim.kind == "supersedes":
        found.extend(_wording(claim))
    if claim.by_rule:
        found.extend(_rules(claim))
    return found


def _verbatim(quote: str, fact: Fact) -> bool:
    return quote in fact.content or (fact.source_quote is not None and quote in fact.source_quote)


def _wording(claim: Claim) -> list[str]:
    """Whether the words only add to, continue or develop what they are said to end."""
    finding = compare(claim.new.content, claim.old.content)
    if finding is not None and finding.retires:
        return []
    said = parse(claim.evidence if claim.evidence is not None else claim.new.content)
    if any(clause.ended for clause in said.clauses):
        return []
    found = []
    if any(clause.additive for clause in said.clauses):
        found.append("only_adds")
    if any(clause.still for clause in said.clauses):
        found.append("only_continues")
    if finding is None and _was_under_way(claim.old.content) and _share_words(claim):
        found.append("only_develops")
    return found


def _was_under_way(text: str) -> bool:
    """Whether a text says what was planned or begun, which goes on rather than ends."""
    return any(token.low in lexicon.UNFINISHED for clause in parse(text).clauses for token in clause.tokens)


def _share_words(claim: Claim) -> bool:
    old, new = (
        frozenset(word for clause in parse(fact.content).clauses for word in clause.content)
        for fact in (claim.old, claim.new)
    )
    return bool(old & new)


def _rules(claim: Claim) -> list[str]:
    """What no rule may do: these hold for every write, so they fail only where rules or facts were others then."""
    old, new = claim.old, claim.new
    found = []
    if old.kind == "event":
        found.append("event_retired_by_rule")
    if rank(new.source_tier) < rank(old.source_tier):
        found.append("less_trusted_source")
    if old.subject is not None and new.subject != old.subject:
        found.append("another_subject")
    if claim.kind == "supersedes" and dropped_values(new.content, old.content):
        found.append("detail_dropped")
    if claim.rule is not None and claim.rule.startswith("auto_inferred"):
        finding = compare(new.content, old.content)
        if finding is None or not finding.retires:
            found.append("polarity" if finding is not None and finding.kind == "polarity" else "not_borne_out")
    return found
