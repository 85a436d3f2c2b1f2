"""/v1/checkup: the health of the memory."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.auth import Reader
from app.errors import ScopeForbidden, responses
from app.facts.schemas import Scope
from app.facts.visibility import sight_of
from app.idempotency import Answer
from app.state import Db
from app.upkeep.checkup import service
from app.upkeep.checkup.schemas import CheckupOut

router = APIRouter(prefix="/v1", tags=["Upkeep"])


@router.get(
    "/checkup",
    response_model=CheckupOut,
    operation_id="checkup",
    summary="How healthy is the memory?",
    responses=responses(ScopeForbidden),
)
async def checkup(
    caller: Reader,
    db: Db,
    scope: Annotated[
        list[Scope] | None,
        Query(max_length=100, description="One or several scopes; by default all that the key may read."),
    ] = None,
) -> Response:
    """What is left to do (conflicts, proposals, retirements without evidence), what makes the memory worse (a large
    share of retired facts, failed jobs), and damage that nothing should make, each with a count, the first ids and
    what to do about it. Every check is listed, found or not.
    """
    sight = sight_of(caller.reads, caller.asked(scope))
    async with db.reading() as conn:
        report = await service.checkup(conn, caller.namespace, sight)
    return Answer(200, report).response()
