"""Putting a checkup together: what was found, how bad that is, and what to do about it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from app.db import Connection
from app.facts.detection.endings import is_event
from app.facts.detection.frames import parse
from app.facts.likeness import near_misses
from app.facts.visibility import Sight
from app.upkeep.checkup import queries
from app.upkeep.checkup.schemas import CheckOut, CheckupOut, Severity

HIGHEST_RETIRED_SHARE = 0.2
SHOWN = 20
_NOTES = 500
_SUBJECTS = 5_000
_LATELY = timedelta(days=7)
_PRESENT = frozenset({"is", "are", "am", "s", "base"})

_Of = Literal["fact", "link", "job", "proposal"]
_CHECKS: Mapping[str, tuple[Severity, _Of, str]] = {
    "retirements_without_reason": ("warning", "link", "Review them: POST /v1/jobs with the kind `review`."),
    "retirements_without_evidence": (
        "work",
        "link",
        "Look whether each state really ended; demote the link if not: POST /v1/links/{id}/demote.",
    ),
    "open_conflicts": ("work", "link", "Settle them: POST /v1/conflicts/{id}/resolve."),
    "stale_digests": ("work", "fact", "The worker rebuilds or drops them: POST /v1/jobs with the kind `rederive`."),
    "facts_pending_embedding": ("work", "fact", "The worker embeds them: POST /v1/jobs with the kind `embed_pending`."),
    "several_states_at_a_subject": ("work", "fact", "Retire all but the one that holds, or give them subjects apart."),
    "near_duplicates": ("work", "fact", "Facts of the same words as an older one: supersede one by the other."),
    "unanswered_facts": ("work", "fact", "The model could not answer about these; they stay as they are."),
    "failed_jobs": ("warning", "job", "Read the job's error, then POST /v1/jobs/{id}/retry."),
    "waiting_proposals": ("work", "proposal", "Decide: POST /v1/proposals/{id}/approve or …/reject."),
    "dangling_successors": ("damage", "fact", "The successor is gone: POST /v1/facts/{id}/restore, or erase the fact."),
    "circular_chains": ("damage", "fact", "The replacements run in a circle: POST /v1/facts/{id}/restore for one."),
    "texts_current_twice": ("warning", "fact", "Forget all but one: POST /v1/facts/{id}/forget."),
    "retirements_without_claim": ("damage", "fact", "Nothing says why it was retired: POST /v1/facts/{id}/restore."),
    "chains_without_head": ("damage", "fact", "Nothing current is known to follow: POST /v1/facts/{id}/restore."),
}


async def checkup(conn: Connection, namespace: str, sight: tuple[Sight, Mapping[str, Any]]) -> CheckupOut:
    """Look at everything that the scopes in sight hold."""
    findings = []
    for name, (severity, of, advice) in _CHECKS.items():
        count, ids = await queries.find(conn, name, namespace, sight, SHOWN, _LATELY)
        findings.append(CheckOut(name=name, severity=severity, count=count, ids=ids, of=of, examples=[], advice=advice))
    notes = await queries.latest_notes(conn, namespace, sight, _NOTES)
    findings.append(_state_looking(notes))
    findings.append(_alike(await queries.subjects(conn, namespace, sight, _SUBJECTS)))
    totals = await queries.totals(conn, namespace, sight)
    share = totals["retired"] / totals["facts"] if totals["facts"] else 0.0
    findings.append(_retired_share(share, totals["retired"]))
    return CheckupOut(
        at=totals["at"],
        healthy=not any(found.count for found in findings if found.severity != "work"),
        facts=totals["facts"],
        retired=totals["retired"],
        retired_share=round(share, 4),
        recent_notes=len(notes),
        findings=findings,
    )


def _retired_share(share: float, retired: int) -> CheckOut:
    """The reversal condition of ADR-007: beyond a fifth, carrying the history costs more than it is worth."""
    return CheckOut(
        name="retired_share",
        severity="warning",
        count=retired if share > HIGHEST_RETIRED_SHARE else 0,
        ids=[],
        of="fact",
        examples=[],
        advice="More than a fifth of the facts is retired: prune earlier, or see who corrects so often.",
    )


def _state_looking(notes: Sequence[tuple[UUID, str]]) -> CheckOut:
    found = [(id_, text) for id_, text in notes if looks_like_state(text)]
    return CheckOut(
        name="state_looking_notes",
        severity="work",
        count=len(found),
        ids=[id_ for id_, _ in found[:SHOWN]],
        of="fact",
        examples=[],
        advice="Among the latest notes, these say how things stand: with a subject, a newer one would replace them.",
    )


def looks_like_state(text: str) -> bool:
    """Whether a text says how something stands now: in the present tense, neither asked nor told as an event."""
    for clause in parse(text).clauses:
        verb = clause.tokens[clause.verb] if clause.verb >= 0 else None
        if verb is not None and verb.form in _PRESENT and not clause.question and not is_event(clause):
            return True
    return False


def _alike(subjects: Sequence[str]) -> CheckOut:
    found = near_misses(subjects)
    return CheckOut(
        name="subjects_near_misses",
        severity="work",
        count=len(found),
        ids=[],
        of="subject",
        examples=[f"{subject} ~ {', '.join(others)}" for subject, others in list(found.items())[:SHOWN]],
        advice="These may mean the same: make one an alias of the other: PUT /v1/subjects/{subject}.",
    )


def lines(report: CheckupOut) -> Iterator[str]:
    """The report for a terminal: what was found, worst first, with what to do about it."""
    order: dict[Severity, int] = {"damage": 0, "warning": 1, "work": 2}
    yield f"{report.facts} facts, {report.retired} of them retired ({report.retired_share:.1%})."
    found = sorted((one for one in report.findings if one.count), key=lambda one: order[one.severity])
    for one in found:
        yield f"{one.severity:8}{one.count:7}  {one.name.replace('_', ' ')}. {one.advice}"
        yield from (f"{'':17}{shown}" for shown in [*map(str, one.ids[:3]), *one.examples[:3]])
    if not found:
        yield "Nothing to do."
