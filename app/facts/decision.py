"""What a statement does to what is held: the rules of the write path, pure and in their order.

The order is: the same text again reaffirms; an explicit retirement is checked; the namespace's policy decides about
the state at the same address; lexical cues look at the neighbours. An explicit retirement always beats an inferred
one, and whatever may not retire stays beside the new fact as a doubt.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from app.auth import Caller, Tier, rank
from app.errors import (
    EvidenceNotFound,
    EvidenceRequired,
    FactAlreadyRetired,
    FactNotFound,
    LowerTier,
    ReplacementScheduled,
    SelfSupersede,
    WindowEmpty,
)
from app.facts.detection import Finding, compare, dropped_values
from app.facts.fact import ConflictKind, Decision, Doubt, Draft, Fact, Retired, Rules
from app.facts.working import Working

AUTO_KEY = "auto_key/1"
EXPLICIT = "explicit"
_MOST_DOUBTS = 50
_WORD = re.compile(r"\w+")
_GLUE = frozenset(
    "a an the is are was were be been has have had do does did will and or of at in on to for from by with as it its "
    "this that now s".split()
)


def decide(draft: Draft, working: Working, rules: Rules, caller: Caller, now: datetime) -> Decision:
    """Apply the rules in their order. Raises an AppError where an explicit retirement cannot stand."""
    decision = Decision()
    if draft.tier_capped:
        decision.warnings.append(
            ("tier_capped", f"The key vouches for `{draft.source_tier}` at most, so that tier was stored.")
        )
    if draft.valid_to is not None and draft.valid_to <= _begins(draft, now):
        raise WindowEmpty
    same = working.same_text(draft, now)
    if draft.replaces:
        if _starts_later(draft, now):
            raise ReplacementScheduled
        _retire_as_told(draft, decision, working, rules, caller, same)
    if same is not None:
        decision.reaffirms = same
        _warn_of_later_start(draft, same, decision)
        return decision
    if _starts_later(draft, now):
        decision.warnings.append(("scheduled", "It becomes current at `valid_from`; until then it retires nothing."))
        return decision
    if draft.valid_to is not None and draft.valid_to <= now:
        decision.warnings.append(("ended", "Its validity has ended, so it takes its place in the past."))
        return decision
    _notice_reassertion(draft, decision, working)
    _apply_policy(draft, decision, working, rules)
    if rules.policy != "explicit" and draft.kind != "event":
        _look_around(draft, decision, working, rules)
    _doubt_reasserted(decision, working, caller)
    return decision


def _begins(draft: Draft, now: datetime) -> datetime:
    return draft.valid_from or min(draft.observed_at or now, now)


def _starts_later(draft: Draft, now: datetime) -> bool:
    return draft.valid_from is not None and draft.valid_from > now


def _warn_of_later_start(draft: Draft, same: Fact, decision: Decision) -> None:
    if draft.kind != "event" and draft.valid_from is not None and draft.valid_from < same.valid_from:
        since = same.valid_from.isoformat(timespec="seconds").replace("+00:00", "Z")
        detail = f"It is held from {since} on, and that stays. Forget it and remember it again to let it begin earlier."
        decision.warnings.append(("begins_later", detail))


# --- Told to retire --------------------------------------------------------------------------------------------


def find_target(id_: UUID, working: Working, caller: Caller) -> Fact:
    """The fact that a caller names: readable, writable and not yet retired, or the problem that says which."""
    fact = working.facts.get(id_)
    if fact is None or fact.kind == "retraction" or not caller.reads.admit(fact.scope):
        raise FactNotFound
    caller.must_write(fact.scope)
    if not fact.can_retire:
        raise FactAlreadyRetired(head=working.head_of(fact, caller.reads))
    return fact


def check_proof(evidence: str | None, texts: Iterable[str | None], rules: Rules) -> None:
    """Evidence must occur word for word in one of the texts; a namespace may insist on having some."""
    if evidence is None:
        if rules.require_evidence:
            raise EvidenceRequired
    elif not any(evidence in text for text in texts if text):
        raise EvidenceNotFound


def check_tier(replacement_tier: Tier, target: Fact, *, force: bool) -> bool:
    """Whether force was needed; raises LowerTier where it was needed and not given."""
    lower = rank(replacement_tier) < rank(target.source_tier)
    if lower and not force:
        raise LowerTier(
            f"The fact to retire comes from a `{target.source_tier}` source, its replacement from a "
            f"`{replacement_tier}` one. Send `force` to retire it all the same."
        )
    return lower


def _retire_as_told(
    draft: Draft, decision: Decision, working: Working, rules: Rules, caller: Caller, same: Fact | None
) -> None:
    check_proof(draft.evidence, (draft.content, draft.source_quote), rules)
    for id_ in dict.fromkeys(draft.replaces):
        target = find_target(id_, working, caller)
        if same is not None and same.id == target.id:
            raise SelfSupersede("The fact says the same already, so there is nothing to replace.", pointer="/content")
        forced = check_tier(draft.source_tier, target, force=draft.force)
        decision.retires.append(
            Retired(target, EXPLICIT, draft.reason or "", draft.evidence, draft.replaces_as, forced)
        )


# --- The same address ------------------------------------------------------------------------------------------


def _apply_policy(draft: Draft, decision: Decision, working: Working, rules: Rules) -> None:
    if draft.kind != "state" or rules.policy == "explicit":
        return
    told = {retired.fact.id for retired in decision.retires}
    for held in working.current_states(draft):
        if held.id not in told:
            judge_state(draft, held, decision, rules)


def judge_state(draft: Draft, held: Fact, decision: Decision, rules: Rules) -> None:
    """Decide what a state does to another one that is current at its address: retire it, doubt it, or nothing."""
    finding = compare(draft.content, held.content)
    if finding is None and not draft.kind_declared and _speak_of_different_things(draft, held):
        return
    if rules.policy == "suggest":
        decision.doubts.append(_doubt(held, finding, "value", "The same subject holds another statement."))
    elif hindrance := _hindrance(draft, held, finding):
        decision.doubts.append(hindrance)
    else:
        evidence = draft.content if rules.require_evidence else None
        reason = f"A newer statement was written at the subject {draft.subject!r}."
        decision.retires.append(Retired(held, AUTO_KEY, reason, evidence))


def _hindrance(draft: Draft, held: Fact, finding: Finding | None) -> Doubt | None:
    """What forbids a rule to retire the held fact: its date, its tier, or a detail that would be lost."""
    if is_older(draft, held):
        return _doubt(held, finding, "older", "The new statement is older than the one that is held.", force=True)
    if rank(draft.source_tier) < rank(held.source_tier):
        detail = f"The held statement comes from a `{held.source_tier}` source, the new one from a lower tier."
        return _doubt(held, finding, "lower_tier", detail, force=True)
    if dropped := dropped_values(draft.content, held.content):
        detail = f"The new statement says nothing about: {', '.join(dropped)}."
        return Doubt(held, "partial", detail, removed=dropped, added=finding.added if finding else ())
    return None


def _doubt(held: Fact, finding: Finding | None, kind: ConflictKind, detail: str, *, force: bool = False) -> Doubt:
    """The doubt that a finding raises; `kind` and `detail` where there is none, or where they matter more."""
    if finding is None:
        return Doubt(held, kind, detail)
    if force:
        return Doubt(held, kind, detail, finding.removed, finding.added, finding.rule)
    return Doubt(held, finding.kind, finding.detail, finding.removed, finding.added, finding.rule)


def is_older(draft: Draft, held: Fact) -> bool:
    """Whether the draft states an earlier moment than the held fact; a time that is left out means now."""
    starts = draft.valid_from or draft.observed_at
    if starts is not None and starts != held.valid_from:
        return starts < held.valid_from
    return draft.observed_at is not None and draft.observed_at < held.observed_at


def _speak_of_different_things(draft: Draft, held: Fact) -> bool:
    """Whether both texts name the subject itself and share no word about it, as two attributes of one entity do.

    `lena`: "Lena is head of payroll at Norvik", "Lena administers the Norvik calendar". Names and numbers are
    values, so sharing one does not make it the same question.
    """
    subject = set(_WORD.findall(draft.subject or ""))
    new, old = _words(draft.content), _words(held.content)
    if not subject or not subject <= new.keys() or not subject <= old.keys():
        return False
    shared = (new.keys() & old.keys()) - subject - _GLUE
    return not any(not (new[word] or old[word]) for word in shared)


def _words(text: str) -> dict[str, bool]:
    """The words of a text, and whether each is a value: a number, or a name by its capital inside the sentence."""
    words: dict[str, bool] = {}
    for position, match in enumerate(_WORD.finditer(text)):
        word = match.group()
        value = any(c.isdigit() for c in word) or (position > 0 and word[0].isupper())
        words[word.casefold()] = words.get(word.casefold(), False) or value
    return words


# --- Neighbours ------------------------------------------------------------------------------------------------


def _look_around(draft: Draft, decision: Decision, working: Working, rules: Rules) -> None:
    seen = {retired.fact.id for retired in decision.retires} | {doubt.fact.id for doubt in decision.doubts}
    for held in working.neighbours(draft):
        if held.id in seen or _addresses_differ(draft, held) or held.kind not in ("state", "note"):
            continue
        if len(decision.doubts) >= _MOST_DOUBTS:
            break
        finding = compare(draft.content, held.content)
        if finding is not None:
            seen.add(held.id)
            _judge_neighbour(draft, held, finding, decision, rules)


def _addresses_differ(draft: Draft, held: Fact) -> bool:
    return draft.subject is not None and held.subject is not None and held.subject not in draft.addresses


def _judge_neighbour(draft: Draft, held: Fact, finding: Finding, decision: Decision, rules: Rules) -> None:
    may_retire = (
        rules.policy == "auto_inferred"
        and finding.retires
        # A fact without a subject would leave the held one's subject without an answer.
        and (held.subject is None or held.subject in draft.addresses)
    )
    if not may_retire:
        decision.doubts.append(_doubt(held, finding, finding.kind, finding.detail))
    elif hindrance := _hindrance(draft, held, finding):
        decision.doubts.append(hindrance)
    else:
        evidence = draft.content if rules.require_evidence else None
        decision.retires.append(Retired(held, f"auto_inferred:{finding.rule}", finding.detail, evidence))


# --- Said before -----------------------------------------------------------------------------------------------


def _notice_reassertion(draft: Draft, decision: Decision, working: Working) -> None:
    if draft.kind != "event":
        decision.reasserts.extend(working.retired_with_same_text(draft))


def _doubt_reasserted(decision: Decision, working: Working, caller: Caller) -> None:
    """A text that was retired comes back: what replaced it is in doubt, unless this write retires that as well.

    What replaced it may stand in another scope; it is named, and quoted, only to a caller who may read it.
    """
    settled = {r.fact.id for r in decision.retires} | {d.fact.id for d in decision.doubts}
    for retired in decision.reasserts:
        head = working.head_fact(retired)
        if head is None or not head.is_current or not caller.reads.admit(head.scope):
            continue
        if head.id not in settled:
            settled.add(head.id)
            detail = "The new statement was retired before; this fact stands in its place."
            decision.doubts.append(Doubt(head, "reassertion", detail, (head.content,), (retired.content,)))
