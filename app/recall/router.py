"""/v1/recall: ask the memory."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.auth import Caller, Reader
from app.errors import ScopeForbidden, responses
from app.recall import service
from app.recall.counting import Accesses
from app.recall.schemas import BatchRecallIn, BatchRecallOut, RecallIn, RecallOut, RecallParams
from app.state import Running

router = APIRouter(prefix="/v1/recall", tags=["Recall"])


@router.post(
    "",
    response_model=RecallOut,
    operation_id="recall",
    summary="Ask the memory",
    responses=responses(ScopeForbidden),
)
async def recall(body: RecallIn, caller: Reader, running: Running, request: Request) -> Response:
    """The current facts that best answer a question, whatever words it is asked in.

    Only what is current comes back. A question in the words of a fact that was retired finds what replaced
    it, and `replaces` names the retired one. `relevance` says how likely a fact answers, 0 to 1, so that
    *no match* can be told; with `min_relevance` such facts are left out. Facts that contradict each other
    say so in `conflicts_with`.
    """
    answer = await service.recall(running, caller, body)
    _count(request, caller, [answer])
    return _json(answer)


@router.get(
    "",
    response_model=RecallOut,
    operation_id="recallByUrl",
    summary="Ask the memory, by URL",
    responses=responses(ScopeForbidden),
)
async def recall_by_url(
    params: Annotated[RecallParams, Query()], caller: Reader, running: Running, request: Request
) -> Response:
    """The same as the POST, for a browser or a shell: `/v1/recall?q=when is the standup&k=3`."""
    answer = await service.recall(running, caller, params.asked())
    _count(request, caller, [answer])
    return _json(answer)


@router.post(
    "/batch",
    response_model=BatchRecallOut,
    operation_id="recallBatch",
    summary="Ask the memory several questions at once",
    responses=responses(ScopeForbidden),
)
async def recall_batch(body: BatchRecallIn, caller: Reader, running: Running, request: Request) -> Response:
    """Up to 32 questions, answered as if each had been asked alone, in order, and much faster."""
    answers = await service.recall_all(running, caller, body.queries)
    _count(request, caller, answers)
    return _json(BatchRecallOut.model_construct(answers=answers))


def _json(answer: RecallOut | BatchRecallOut) -> Response:
    # The models are built by us and need no second validation, and writing them out at once is much faster.
    return Response(answer.model_dump_json(), media_type="application/json")


def _count(request: Request, caller: Caller, answers: list[RecallOut]) -> None:
    accesses: Accesses = request.app.state.accesses
    accesses.note(caller.namespace, (result.fact.id for answer in answers for result in answer.results))
