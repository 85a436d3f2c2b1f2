"""From an exception to the problem that the caller reads, and the problems of the OpenAPI file."""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from psycopg import errors as pg
from psycopg_pool import PoolTimeout, TooManyRequests
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from app.errors import (
    MEDIA_TYPE,
    AppError,
    BadRequest,
    BodyTooLarge,
    DatabaseUnavailable,
    LoopbackOnly,
    MalformedUrl,
    MethodNotAllowed,
    NotFound,
    Overloaded,
    RequestInvalid,
    RoleForbidden,
    ScopeForbidden,
    Unauthorized,
    UnsupportedMediaType,
    ValueNotStorable,
    declaration,
    document,
)
from app.text import Fault
from app.validation import faults_of

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_OPERATIONS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})

# Another attempt may find a free connection, a released lock or a quieter machine.
_PASSING = (
    PoolTimeout,
    TooManyRequests,
    pg.QueryCanceled,
    pg.SerializationFailure,
    pg.DeadlockDetected,
    pg.LockNotAvailable,
    pg.TooManyConnections,
    pg.OutOfMemory,
    pg.DiskFull,
)
# The same request would fail for ever. ProgramLimitExceeded is an OperationalError to psycopg (an index row or a
# tsvector over Postgres' limit), yet no retry helps.
_HOPELESS = (
    pg.ProgramLimitExceeded,
    pg.CharacterNotInRepertoire,
    pg.UntranslatableCharacter,
    pg.DatetimeFieldOverflow,
    pg.NumericValueOutOfRange,
    pg.StringDataRightTruncation,
)
_UNREACHABLE = (psycopg.OperationalError, psycopg.InterfaceError, pg.ReadOnlySqlTransaction)


def install(app: FastAPI) -> None:
    """Answer every refusal with a problem. What is not listed here, `telemetry.RequestContext` answers with a 500."""
    handled: tuple[type[Exception], ...] = (AppError, RequestValidationError, HTTPException)
    for kind in (*handled, *_HOPELESS, *_UNREACHABLE):
        app.add_exception_handler(kind, _answer)


async def _answer(request: Request, exc: Exception) -> Response:
    error = as_error(exc)
    response = problem_response(error, request.scope)
    if isinstance(error, MethodNotAllowed):
        response.headers["Allow"] = ", ".join(_methods_at(request.scope))
    elif isinstance(exc, HTTPException):
        response.headers.update(exc.headers or {})
    return response


def problem_response(error: AppError, scope: Scope) -> Response:
    """The answer that tells the caller of `scope` about this error."""
    members = document(error, instance=_instance(scope), request_id=request_id(scope))
    return Response(to_json(members), error.status, dict(error.headers), MEDIA_TYPE)


def request_id(scope: Scope) -> str:
    """The id that `telemetry.RequestContext` gave this request."""
    return str(scope.get("state", {}).get("request_id", ""))


def _instance(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or scope["path"].encode("ascii", "replace")
    return raw.decode("ascii", "replace").partition("?")[0]


def _methods_at(scope: Scope) -> list[str]:
    # The router names the methods of the first route with this path only.
    router = scope["app"].router
    return [
        method
        for method in _METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in router.routes)
    ]


def as_error(exc: BaseException) -> AppError:
    """The refusal that stands for this exception; a plain `AppError` (500) where there is none.

    The exception's own words never reach the caller: they may hold statements, addresses or somebody's fact.
    """
    match exc:
        case AppError():
            return exc
        case RequestValidationError():
            return invalid(faults_of(exc))
        case HTTPException():
            return _from_status(exc.status_code)
    if isinstance(exc, _HOPELESS):
        return ValueNotStorable()
    if isinstance(exc, _PASSING):
        return Overloaded()
    return DatabaseUnavailable() if isinstance(exc, _UNREACHABLE) else AppError()


def _from_status(status: int) -> AppError:
    known: dict[int, type[AppError]] = {
        401: Unauthorized,
        403: RoleForbidden,
        404: NotFound,
        405: MethodNotAllowed,
        413: BodyTooLarge,
        415: UnsupportedMediaType,
        503: Overloaded,
    }
    if status in known:
        return known[status]()
    return AppError() if status >= 500 else BadRequest()


def invalid(parts: Sequence[Fault]) -> RequestInvalid:
    """The refusal that lists these faults; its detail repeats the first, for readers of one line."""
    first = parts[0]
    counted = f"{len(parts)} parts of the request are not valid. The first: " if len(parts) > 1 else ""
    detail = f"{counted}{first.pointer or 'The body'}: {first.detail}"
    listed = [{"pointer": part.pointer, "code": part.code, "detail": part.detail} for part in parts]
    return RequestInvalid(detail, errors=listed)


class ProblemPart(BaseModel):
    """One thing that is wrong with a request."""

    pointer: str = Field(
        description="Where: a JSON pointer into the body, or `query/…`, `path/…`, `header/…`.",
        examples=["/content", "query/limit"],
    )
    code: str = Field(description="What, for programs.", examples=["string_too_long"])
    detail: str = Field(description="What, for people.", examples=["Must have at most 20000 characters."])


class Problem(BaseModel):
    """Why a request was refused (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="Names the kind of problem.", examples=["urn:palimpsest:problem:fact_not_found"])
    title: str = Field(description="The kind of problem, in words.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What was wrong this time.")
    instance: str = Field(description="The path that was asked for.", examples=["/v1/facts"])
    code: str = Field(description="The kind of problem, for programs.", examples=["fact_not_found"])
    request_id: str = Field(description="Finds this request in the service's log.")
    errors: list[ProblemPart] | None = Field(
        default=None, description="With status 422: everything that is wrong with the request."
    )


_EVERYWHERE: Mapping[str, Sequence[type[AppError]]] = {
    "400": [MalformedUrl],
    "500": [AppError],
    "503": [Overloaded, DatabaseUnavailable],
}
_WITH_KEY: Mapping[str, Sequence[type[AppError]]] = {
    "401": [Unauthorized],
    "403": [RoleForbidden, ScopeForbidden, LoopbackOnly],
}
_WITH_BODY: Mapping[str, Sequence[type[AppError]]] = {"413": [BodyTooLarge], "415": [UnsupportedMediaType]}
_WITH_INPUT: Mapping[str, Sequence[type[AppError]]] = {"422": [RequestInvalid]}


def declare_problems(schema: dict[str, Any]) -> dict[str, Any]:
    """Put problems in place of FastAPI's own error schema, and declare those that every operation may meet."""
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    for stale in ("HTTPValidationError", "ValidationError"):
        schemas.pop(stale, None)
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= problem.pop("$defs") | {"Problem": problem}
    for path in schema.get("paths", {}).values():
        for method, operation in path.items():
            if method in _OPERATIONS:
                _declare(operation)
    return schema


def _declare(operation: dict[str, Any]) -> None:
    declared = operation.setdefault("responses", {})
    if "HTTPValidationError" in str(declared.get("422")):
        del declared["422"]
    possible = dict(_EVERYWHERE)
    possible |= _WITH_KEY if operation.get("security") else {}
    possible |= _WITH_BODY if "requestBody" in operation else {}
    possible |= _WITH_INPUT if "requestBody" in operation or operation.get("parameters") else {}
    for status, errors in possible.items():
        fresh = declaration(errors)
        if status not in declared:
            declared[status] = fresh
        elif MEDIA_TYPE in declared[status].get("content", {}):
            own = declared[status]["content"][MEDIA_TYPE].setdefault("examples", {})
            fresh_examples = fresh["content"][MEDIA_TYPE]["examples"]
            own |= {code: example for code, example in fresh_examples.items() if code not in own}
    operation["responses"] = dict(sorted(declared.items()))
