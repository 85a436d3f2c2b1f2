"""What a running service carries with it, and the dependencies through which routes reach it."""

from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request

from app.db import Database
from app.embedding import Embedder
from app.settings import Settings


@dataclass(slots=True)
class Service:
    """One process' share of the service. `unavailable` names what is missing right now, such as `vector`.

    `other_profiles` is when it was last looked, in monotonic seconds, whether facts have vectors of another profile.
    """

    settings: Settings
    database: Database
    embedder: Embedder
    registered_profiles: set[str] = field(default_factory=set)
    unavailable: dict[str, str] = field(default_factory=dict)
    other_profiles: tuple[float, bool] | None = None


# Dependencies are coroutines although they await nothing: FastAPI sends plain functions through a pool of threads,
# which takes longer than the statements of a small request.


async def _service(request: Request) -> Service:
    return cast("Service", request.app.state.service)


async def _database(request: Request) -> Database:
    return cast("Service", request.app.state.service).database


async def _request_id(request: Request) -> str | None:
    return cast("str | None", request.scope.get("state", {}).get("request_id"))


Running = Annotated[Service, Depends(_service)]
Db = Annotated[Database, Depends(_database)]
RequestId = Annotated[str | None, Depends(_request_id)]
