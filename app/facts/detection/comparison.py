"""The rules in their order, over the clauses of two statements."""

from dataclasses import replace

from app.facts.detection import lexicon
from app.facts.detection.changes import compare_change
from app.facts.detection.drops import dropped_in
from app.facts.detection.endings import compare_ending
from app.facts.detection.finding import Finding
from app.facts.detection.frames import Clause, Statement, parse
from app.facts.detection.polarity import compare_polarity
from app.facts.detection.rewordings import (
    compare_narrowing,
    compare_topic,
    inverted,
    topic_words,
)
from app.facts.detection.values import compare_values

#: Clauses read of a statement; more than these is prose rather than a fact.
MAX_CLAUSES = 8


def compare(new: str, held: str) -> Finding | None:
    """What a new statement says about a held one; None if they stand side by side.

    Lexical and deterministic: the texts alone decide. Bounded: at most `MAX_TOKENS` tokens and `MAX_CLAUSES` clauses
    of each are read.
    """
    if new == held:
        return None
    first, second = parse(new), parse(held)
    if _say_the_same(first, second):
        return None
    best: Finding | None = None
    for theirs in second.clauses[:MAX_CLAUSES]:
        for mine in first.clauses[:MAX_CLAUSES]:
            finding = _compare_clauses(mine, theirs)
            if finding is not None and finding.retires:
                return _guarded(finding, first, second)
            best = best or finding
    return best


def _say_the_same(new: Statement, held: Statement) -> bool:
    return len(new.clauses) == len(held.clauses) and all(
        mine.keys == theirs.keys and mine.denies == theirs.denies
        for mine, theirs in zip(new.clauses, held.clauses, strict=True)
    )


def _compare_clauses(new: Clause, held: Clause) -> Finding | None:
    if new.question or held.question or not (new.content and held.content):
        return None
    if new.keys == held.keys and new.denies == held.denies:
        return None
    if new.content.isdisjoint(held.content):
        return compare_topic(new, held)
    if polarity := compare_polarity(new, held):
        return polarity
    values = compare_values(new, held) or compare_values(inverted(new), inverted(held))
    if values == "quiet":
        return compare_ending(new, held)
    return (
        values
        or compare_change(new, held)
        or compare_ending(new, held)
        or compare_narrowing(new, held)
        or compare_topic(new, held)
    )


def _guarded(finding: Finding, new: Statement, held: Statement) -> Finding:
    """A statement of several clauses is not retired by what answers only one of them."""
    if new.truncated or held.truncated:
        return replace(finding, retires=False)
    if len(held.clauses) == 1:
        return finding
    lost = dropped_in(new, held)
    if not lost:
        return finding
    detail = f'{finding.detail} It says nothing about "{", ".join(lost)}".'
    return replace(finding, kind="partial", retires=False, detail=detail, removed=(*finding.removed, *lost))


def dropped_values(new: str, held: str) -> tuple[str, ...]:
    """The times, numbers, names, places and exceptions of `held` that `new` neither repeats nor replaces."""
    return dropped_in(parse(new), parse(held))


def key_terms(text: str) -> tuple[str, ...]:
    """The distinct comparison words of a statement, in order: what two statements with a finding share.

    Function words are left out unless the statement has no others.
    """
    statement = parse(text)
    terms: dict[str, None] = {}
    for clause in statement.clauses:
        for token in clause.tokens:
            if token.key in clause.content:
                terms.update(dict.fromkeys(topic_words(frozenset({token.key}))))
        terms.update(dict.fromkeys(sorted(topic_words(clause.content - set(clause.keys)))))
    if not terms:
        terms = dict.fromkeys(key for clause in statement.clauses for key in clause.keys if key not in lexicon.ARTICLES)
    return tuple(terms)
