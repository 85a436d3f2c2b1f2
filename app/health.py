"""Whether the process lives, and whether it can serve."""

from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field
from sqlalchemy import func, select

from app.db import Statement
from app.errors import DatabaseUnavailable, responses
from app.idempotency import Answer
from app.state import Running

router = APIRouter(tags=["Operations"])
_ping = Statement(select(func.now().label("now")))


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
    settings = running.settings
    answer = Ready(
        status="degraded" if missing else "ok",
        database="ok",
        embedder=profile.name if profile else "not known before the endpoint's first answer",
        consolidation="configured" if settings.llm_url and settings.llm_model else "off",
        unavailable=missing,
    )
    return Answer(200, answer).response()
