"""Whether the process lives, and whether it can serve."""

from time import monotonic
from typing import Literal

from fastapi import APIRouter, Response
from psycopg.errors import QueryCanceled
from pydantic import BaseModel, Field
from sqlalchemy import Column, MetaData, Table, Text, bindparam, exists, func, literal_column, select

from app.db import Statement
from app.errors import DatabaseUnavailable, responses
from app.idempotency import Answer
from app.state import Running, Service

router = APIRouter(tags=["Operations"])
_ping = Statement(select(func.now().label("now")))

# How long an answer about the vectors of all facts serves, since finding none of another profile reads them all.
_LOOK_EVERY_S = 60.0
_OLD_VECTORS = "Some facts have vectors of another embedding profile: start a job of the kind `reembed`."
_METADATA = MetaData()
_profiles = Table("embedding_profiles", _METADATA, Column("name", Text))
_facts = Table("facts_active", _METADATA, Column("embedding_profile", Text))
_PROFILE = bindparam("profile", type_=Text)
# The table of profiles is tiny, and names another one only from a change of the model to the end of re-embedding.
_others = Statement(select(_profiles.c.name).where(_profiles.c.name != _PROFILE).limit(literal_column("1")))
_of_another = Statement(select(exists().where(_facts.c.embedding_profile != _PROFILE).label("found")))


class Live(BaseModel):
    """The process answers."""

    status: Literal["ok"]


class Ready(BaseModel):
    """What the service can do right now."""

    status: Literal["ok", "degraded"]
    database: Literal["ok"]
    embedder: str = Field(description="The embedding profile, or why there are no vectors at the moment.")
    consolidation: Literal["off", "configured"] = Field(
        description="`off`: no LLM is configured, so everything the service does is deterministic."
    )
    unavailable: dict[str, str] = Field(description="What is missing right now, and why.")


@router.get("/livez", response_model=Live, operation_id="live", summary="Is the process alive?")
async def live() -> Live:
    """Answers without asking anything else; a failure means that the process should be restarted."""
    return Live(status="ok")


@router.get(
    "/readyz",
    response_model=Ready,
    operation_id="ready",
    summary="Can it serve?",
    responses=responses(DatabaseUnavailable),
)
async def ready(running: Running) -> Response:
    """200 as long as facts can be written and found, even if only by their words (`degraded`); else 503."""
    async with running.database.reading() as conn:
        await _ping.rows(conn)
    missing = dict(running.unavailable)
    if failure := getattr(running.embedder, "last_failure", None):
        missing["vector"] = failure
    profile = running.embedder.profile
    if profile and await _are_of_another(running, profile.name):
        missing["vector_of_some_facts"] = _OLD_VECTORS
    settings = running.settings
    answer = Ready(
        status="degraded" if missing else "ok",
        database="ok",
        embedder=profile.name if profile else "not known before the endpoint's first answer",
        consolidation="configured" if settings.llm_url and settings.llm_model else "off",
        unavailable=missing,
    )
    return Answer(200, answer).response()


async def _are_of_another(running: Service, profile: str) -> bool:
    """Whether current facts have vectors of another profile, as of the last minute."""
    if running.other_profiles is not None and monotonic() - running.other_profiles[0] < _LOOK_EVERY_S:
        return running.other_profiles[1]
    async with running.database.reading() as conn:
        known = await _others.row(conn, profile=profile)
    running.other_profiles = monotonic(), known is not None and await _found(running, profile)
    return running.other_profiles[1]


async def _found(running: Service, profile: str) -> bool:
    """The look at the facts itself. Where it takes too long they count as found, since the other profile is known."""
    try:
        async with running.database.transaction() as conn:
            await conn.execute("SET LOCAL statement_timeout = '500ms'")
            row = await _of_another.row(conn, profile=profile)
    except QueryCanceled:
        return True
    return bool(row and row["found"])
