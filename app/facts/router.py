"""/v1/facts: remember, read, replace, forget and restore."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from app.auth import Curator, Reader, Tier, Writer
from app.errors import (
    AddressTaken,
    Conflict,
    EvidenceNotFound,
    EvidenceRequired,
    FactAlreadyRetired,
    FactNotFound,
    FactRetired,
    IdempotencyKeyReused,
    LowerTier,
    ReplacementRetired,
    ReplacementScheduled,
    ScopeForbidden,
    SelfSupersede,
    TargetNewer,
    UnknownSubject,
    WindowEmpty,
    responses,
)
from app.facts import preparing, queries, reading, retiring, service, vocabulary
from app.facts.batches import BatchIn, drafts_of
from app.facts.fact import Fact
from app.facts.presenting import (
    batch_out,
    fact_out,
    link_out,
    observation_out,
    past_fact_out,
    remember_out,
)
from app.facts.schemas import (
    Agent,
    AmendIn,
    BatchOut,
    FactOut,
    ForgetIn,
    ForgetOut,
    HistoryOut,
    Kind,
    RememberIn,
    RememberOut,
    RestoreIn,
    RestoreOut,
    Scope,
    Subject,
    SupersededOut,
    SupersedeIn,
    Tag,
)
from app.facts.visibility import sight_of
from app.idempotency import Answer, OnceDep
from app.paging import USUAL, CursorParam, Limit, Page, decode_cursor, page_of
from app.state import Db, RequestId, Running
from app.text import Instant

LONGEST_HISTORY = 2_000

router = APIRouter(prefix="/v1/facts", tags=["Facts"])
FactId = Annotated[UUID, Path(description="The id of a fact.")]


@router.post(
    "",
    status_code=201,
    response_model=RememberOut,
    operation_id="remember",
    summary="Remember a statement",
    responses={
        200: {"model": RememberOut, "description": "The same statement was held already: it was reaffirmed."},
        **responses(
            ScopeForbidden,
            FactNotFound,
            FactAlreadyRetired,
            LowerTier,
            EvidenceNotFound,
            EvidenceRequired,
            ReplacementScheduled,
            WindowEmpty,
            UnknownSubject,
            IdempotencyKeyReused,
        ),
    },
)
async def remember(
    body: RememberIn, caller: Writer, running: Running, once: OnceDep, request_id: RequestId
) -> Response:
    """Append a statement. What it does to what is held depends on it and on the namespace's policy:

    * the same text is current at the same scope and subject: it is **reaffirmed** (200, the same id);
    * it names facts in `supersedes`: they are retired, with your `reason`;
    * it is a `state` and its subject has a current state: under the policy `auto_key` (the default) that one is
      retired, unless the new statement is older, less trusted, or would lose a detail; then both stay and the
      answer lists a conflict;
    * otherwise it is **created** (201) beside the others.

    Send the example as it stands, then again with `9:00` in the place of `9:30`: the first fact is superseded.
    """
    draft = preparing.statement(body, caller)
    await preparing.embed(running, [draft])

    async def work(conn: Any) -> Answer:
        (written,) = await service.remember(conn, caller, [draft], request_id)
        if isinstance(written, Exception):
            raise written
        return Answer(200 if written.outcome == "reaffirmed" else 201, remember_out(written))

    return await once.answer(running.database, caller, work)


@router.post(
    "/batch",
    response_model=BatchOut,
    operation_id="rememberBatch",
    summary="Remember many statements",
    responses=responses(
        ScopeForbidden, FactNotFound, FactAlreadyRetired, LowerTier, EvidenceNotFound, IdempotencyKeyReused
    ),
)
async def remember_batch(
    body: BatchIn, caller: Writer, running: Running, once: OnceDep, request: Request, request_id: RequestId
) -> Response:
    """Up to 1,000 statements, written in order in one transaction; a later one may replace an earlier one.

    With `atomic: true` (the default) one refused item refuses the whole batch, and the problem's `index` names it.
    With `atomic: false` every other item is stored, and the refused one's entry holds its problem.
    """
    results = drafts_of(body, caller)
    drafts = [item for item in results if not isinstance(item, Exception)]
    await preparing.embed(running, drafts)

    async def work(conn: Any) -> Answer:
        written = iter(await service.remember(conn, caller, drafts, request_id, atomic=body.atomic, batch=True))
        outcomes = [item if isinstance(item, Exception) else next(written) for item in results]
        return Answer(200, batch_out(outcomes, request.url.path, request_id or ""))

    return await once.answer(running.database, caller, work)


class ListFilters(BaseModel):
    """What a list of facts may be narrowed to."""

    model_config = {"extra": "forbid"}

    scope: list[Scope] | None = Field(default=None, max_length=100, description="One or several scopes, exactly.")
    subject: Subject | None = Field(default=None, description="The subject, whatever its case, or an alias of it.")
    kind: Kind | None = None
    tag: Tag | None = Field(default=None, description="A tag, exactly: `auth` finds neither `AUTH` nor `pre-auth`.")
    agent: Agent | None = None
    tier: Tier | None = None
    since: Instant | None = Field(default=None, description="Recorded at this time or later.")
    limit: Limit = USUAL
    cursor: CursorParam = None


@router.get(
    "",
    response_model=Page[FactOut],
    operation_id="listFacts",
    summary="List current facts",
    responses=responses(ScopeForbidden),
)
async def list_facts(caller: Reader, db: Db, filters: Annotated[ListFilters, Query()]) -> Response:
    """The current facts that the key may read, newest first. A retired, expired or scheduled one is never listed."""
    asked = caller.asked(filters.scope)
    given = filters.model_dump(exclude_none=True, exclude={"limit", "cursor", "scope"})
    described = {"list": "facts", "scope": asked, **{name: str(value) for name, value in given.items()}}
    after = decode_cursor(filters.cursor, (datetime, UUID), described) if filters.cursor else None
    async with db.reading() as conn:
        if subject := given.pop("subject", None):
            given["subjects"] = (await vocabulary.addresses(conn, caller.namespace, [subject]))[subject]
        facts = await reading.list_facts(
            conn,
            caller.namespace,
            sight_of(caller.reads, asked),
            given,
            after=after,
            limit=filters.limit + 1,
        )
    page = page_of(facts, filters.limit, key=lambda fact: (fact.recorded_at, fact.id), item=fact_out, filters=described)
    return Answer(200, page).response()


@router.get(
    "/{fact_id}",
    response_model=FactOut,
    operation_id="getFact",
    summary="Read a fact",
    responses=responses(FactNotFound, FactRetired),
)
async def get_fact(fact_id: FactId, caller: Reader, db: Db) -> Response:
    """A current fact. For one that was retired the answer is a 410 that names the `head`: what replaced it."""
    async with db.reading() as conn:
        fact = await queries.current_fact(conn, caller.namespace, fact_id)
        if fact is None:
            fact = await _scheduled_or_gone(conn, caller, fact_id)
    if not caller.reads.admit(fact.scope):
        raise FactNotFound
    return Answer(200, fact_out(fact)).response()


async def _scheduled_or_gone(conn: Any, caller: Reader, fact_id: UUID) -> Fact:
    found = await queries.past_fact(conn, caller.namespace, fact_id)
    if found is None or found[0].kind == "retraction" or not caller.reads.admit(found[0].scope):
        raise FactNotFound
    fact, reason = found
    if fact.status == "scheduled":
        return fact
    if fact.status in ("expired", "stale"):
        why = "Its validity ended." if fact.status == "expired" else "A source of this digest was retired."
        raise FactRetired(head=None, retired_at=_written_out(fact.valid_to), reason=why)
    head = await reading.head(conn, caller.namespace, fact.chain_id)
    visible = head is not None and caller.reads.admit(head[1])
    raise FactRetired(
        head=str(head[0]) if head is not None and visible else None,
        retired_at=_written_out(fact.retired_at),
        reason=reason,
    )


def _written_out(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None


@router.get(
    "/{fact_id}/history",
    response_model=HistoryOut,
    operation_id="getHistory",
    summary="How a fact came about, and what came of it",
    responses=responses(FactNotFound),
)
async def get_history(fact_id: FactId, caller: Reader, db: Db) -> Response:
    """The whole chain, oldest first, in both directions: each fact with who retired it, when, by which rule and why,
    and the links between them. Of a chain longer than 2,000 facts the newest are shown."""
    sight = sight_of(caller.reads, None)
    async with db.reading() as conn:
        rows = await reading.family(conn, caller.namespace, fact_id, sight, LONGEST_HISTORY + 1)
        if not any(row["id"] == fact_id for row in rows):
            found = await queries.past_fact(conn, caller.namespace, fact_id)
            if found is None or not caller.reads.admit(found[0].scope):
                raise FactNotFound
        shown = rows[:LONGEST_HISTORY][::-1]
        ids = [row["id"] for row in shown]
        links = await reading.links_of(conn, caller.namespace, ids, sight)
        observed = await reading.observations_of(conn, caller.namespace, ids)
    endings = [{name: row.pop(name) for name in ("retired_by", "reason", "evidence", "rule")} for row in shown]
    facts = [queries.to_fact(row) for row in shown]
    standing = [fact for fact in facts if fact.superseded_by is None and fact.kind != "retraction"]
    current = [fact.id for fact in standing if fact.is_current]
    history = HistoryOut.model_construct(
        head=current[-1] if current else None,
        facts=[past_fact_out(fact, ending) for fact, ending in zip(facts, endings, strict=True)],
        links=[link_out(link) for link in links],
        observations=[observation_out(row) for row in observed],
        truncated=len(rows) > LONGEST_HISTORY,
    )
    return Answer(200, history).response()


_RETIRING = (
    WindowEmpty,
    ReplacementScheduled,
    ScopeForbidden,
    FactNotFound,
    FactAlreadyRetired,
    ReplacementRetired,
    TargetNewer,
    LowerTier,
    SelfSupersede,
    EvidenceNotFound,
    EvidenceRequired,
    IdempotencyKeyReused,
)


@router.post(
    "/{fact_id}/supersede",
    status_code=201,
    response_model=RememberOut,
    operation_id="supersede",
    summary="Replace a fact",
    responses={
        200: {"model": RememberOut, "description": "Replaced by a fact that was current already (`by`)."},
        **responses(*_RETIRING),
    },
)
async def supersede(
    fact_id: FactId, body: SupersedeIn, caller: Writer, running: Running, once: OnceDep, request_id: RequestId
) -> Response:
    """Retire a fact and put another in its place: new `content`, or `by` the id of one that is current already.

    The replacement is written first and the old fact retired in the same transaction. Of two callers who replace
    the same fact at once, one succeeds and the other gets a 409 with the `head`.
    """
    if body.by is not None:
        by = body.by
        return await once.answer(
            running.database,
            caller,
            lambda conn: _answer(retiring.replace_with_fact(conn, caller, fact_id, by, body, request_id), 200),
        )
    return await _replace(fact_id, body, body.content or "", caller, running, once, request_id, "superseded")


@router.post(
    "/{fact_id}/amend",
    status_code=201,
    response_model=RememberOut,
    operation_id="amend",
    summary="Narrow or qualify a fact",
    responses=responses(*_RETIRING),
)
async def amend(
    fact_id: FactId, body: AmendIn, caller: Writer, running: Running, once: OnceDep, request_id: RequestId
) -> Response:
    """Write a merged text that keeps what was right and adds what narrows it. The old fact is folded into it, and so
    are those in `folds`: all of them stay in the history as its parents."""
    return await _replace(fact_id, body, body.content, caller, running, once, request_id, "amended")


async def _replace(
    fact_id: UUID,
    body: SupersedeIn | AmendIn,
    content: str,
    caller: Writer,
    running: Running,
    once: OnceDep,
    request_id: str | None,
    retired_as: Literal["superseded", "amended"],
) -> Response:
    draft = preparing.replacement(body, content, caller)
    await preparing.embed(running, [draft])
    return await once.answer(
        running.database,
        caller,
        lambda conn: _answer(
            retiring.replace_with_text(conn, caller, fact_id, draft, request_id, body=body, retired_as=retired_as),
            201,
        ),
    )


async def _answer(work: Any, status: int) -> Answer:
    return Answer(status, remember_out(await work))


@router.post(
    "/{fact_id}/forget",
    response_model=ForgetOut,
    operation_id="forget",
    summary="Forget a fact",
    responses=responses(ScopeForbidden, FactNotFound, FactAlreadyRetired, IdempotencyKeyReused),
)
async def forget(
    fact_id: FactId, body: ForgetIn, caller: Writer, running: Running, once: OnceDep, request_id: RequestId
) -> Response:
    """Retire a fact without a replacement. Its text stays in the history, with the reason. Forgetting it again
    changes nothing and keeps the first reason."""

    async def work(conn: Any) -> Answer:
        forgotten = await retiring.forget(conn, caller, fact_id, body.reason, request_id)
        found = await queries.past_fact(conn, caller.namespace, fact_id)
        reason = found[1] if found else body.reason
        return Answer(
            200,
            ForgetOut.model_construct(
                fact=past_fact_out(forgotten.fact, {"reason": reason, "rule": "explicit"}),
                outcome="already_forgotten" if forgotten.already else "forgotten",
            ),
        )

    return await once.answer(running.database, caller, work)


@router.post(
    "/{fact_id}/restore",
    response_model=RestoreOut,
    operation_id="restore",
    summary="Undo a wrong retirement",
    responses=responses(ScopeForbidden, FactNotFound, Conflict, AddressTaken, IdempotencyKeyReused),
)
async def restore(
    fact_id: FactId, body: RestoreIn, caller: Curator, running: Running, once: OnceDep, request_id: RequestId
) -> Response:
    """Make a retired fact current again. The link that retired it is demoted to `relates_to` and keeps its story.

    Where the subject has another current fact the answer is 409, unless `replace` says to retire that one.
    """

    async def work(conn: Any) -> Answer:
        fact, replaced = await retiring.restore(conn, caller, fact_id, body.reason, request_id, replace=body.replace)
        gone = [SupersededOut.model_construct(id=claim.fact.id, rule=claim.rule) for claim in replaced]
        return Answer(200, RestoreOut.model_construct(fact=fact_out(fact), superseded=gone))

    return await once.answer(running.database, caller, work)


@router.post(
    "/{fact_id}/pin",
    response_model=FactOut,
    operation_id="pin",
    summary="Keep a fact from decay and pruning",
    responses=responses(ScopeForbidden, FactNotFound, FactAlreadyRetired),
)
async def pin(fact_id: FactId, caller: Writer, db: Db, request_id: RequestId) -> Response:
    """A pinned fact keeps its weight and is never pruned. It can still be superseded; its replacement is not pinned."""
    return await _pin(fact_id, caller, db, request_id, pinned=True)


@router.post(
    "/{fact_id}/unpin",
    response_model=FactOut,
    operation_id="unpin",
    summary="Let a fact age again",
    responses=responses(ScopeForbidden, FactNotFound, FactAlreadyRetired),
)
async def unpin(fact_id: FactId, caller: Writer, db: Db, request_id: RequestId) -> Response:
    """The fact decays again from its last use on."""
    return await _pin(fact_id, caller, db, request_id, pinned=False)


async def _pin(fact_id: UUID, caller: Writer, db: Db, request_id: str | None, *, pinned: bool) -> Response:
    fact = await db.run(lambda conn: retiring.pin(conn, caller, fact_id, request_id, pinned=pinned))
    return Answer(200, fact_out(fact)).response()
