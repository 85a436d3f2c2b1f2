"""What the service says about itself: log lines, request ids and metrics. Fact text appears in none of them."""

import logging
import re
import secrets
import time
import traceback
from typing import Any, Literal, TextIO

import structlog
from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import choose_encoder
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.problems import as_error, problem_response

LogFormat = Literal["console", "json"]

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def configure_logging(form: LogFormat = "console", level: str = "INFO", stream: TextIO | None = None) -> None:
    """One format for our own lines and those of libraries, by default on standard error.

    It changes the whole process, so only the composition roots call it.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _without_words_of_exceptions,
                _renderer(form),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    _quiet_libraries()


def _renderer(form: LogFormat) -> structlog.typing.Processor:
    if form == "json":
        return structlog.processors.JSONRenderer()
    return structlog.dev.ConsoleRenderer(colors=False)


def _quiet_libraries() -> None:
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).handlers = []
        logging.getLogger(name).propagate = True
    # Its access log repeats raw URLs, and the question of a `GET /v1/recall?q=` is in one; ours names the route.
    access = logging.getLogger("uvicorn.access")
    access.handlers, access.propagate = [], False
    # At INFO these repeat the URL of every request that we send.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _without_words_of_exceptions(_logger: Any, _method: str, event: structlog.typing.EventDict) -> Any:
    info = event.pop("exc_info", None)
    exc = info[1] if isinstance(info, tuple) else info
    if isinstance(exc, BaseException):
        event.update(describe(exc))
    return event


def describe(exc: BaseException) -> dict[str, Any]:
    """An exception for the log: its types and places, without its words.

    Postgres quotes the failing row in its messages, and validators the input.
    """
    frames = traceback.extract_tb(exc.__traceback__)
    described: dict[str, Any] = {
        "error": f"{type(exc).__module__}.{type(exc).__qualname__}",
        "frames": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }
    if sqlstate := getattr(exc, "sqlstate", None):
        described["sqlstate"] = sqlstate
    if cause := exc.__cause__ or (None if exc.__suppress_context__ else exc.__context__):
        described["cause"] = f"{type(cause).__module__}.{type(cause).__qualname__}"
    return described


class Metrics:
    """The metrics of one app, in a registry of its own; features add theirs to `registry`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "palimpsest_http_requests_total",
            "Requests answered, by route template, method and class of status.",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "palimpsest_http_request_seconds",
            "Time from the first byte of a request to the last of its answer.",
            ["route", "method"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "palimpsest_http_requests_in_flight", "Requests being answered now.", registry=self.registry
        )
        ProcessCollector(registry=self.registry)

    def observe(self, route: str, method: str, status: int, seconds: float) -> None:
        method = method if method in _METHODS else "other"
        self.requests.labels(route, method, f"{status // 100}xx").inc()
        self.seconds.labels(route, method).observe(seconds)


def router(metrics: Metrics) -> APIRouter:
    """`GET /metrics`."""
    routes = APIRouter(tags=["Operations"])

    @routes.get(
        "/metrics",
        summary="Metrics for Prometheus",
        operation_id="metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    def show_metrics(request: Request) -> Response:
        """Counts and timings in Prometheus' text format. They hold routes and numbers, never names or texts."""
        encode, media_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(metrics.registry), headers={"Content-Type": media_type})

    return routes


class RequestContext:
    """Outermost: gives the request its id, answers what nothing else answered with a 500, logs one line, counts."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = _request_id(scope)
        answer = _Answer(send, request_id)
        started = time.perf_counter()
        with (
            structlog.contextvars.bound_contextvars(request_id=request_id),
            self.metrics.in_flight.track_inprogress(),
        ):
            try:
                await self._run(scope, receive, answer)
            finally:
                self._report(scope, answer.status, time.perf_counter() - started)

    async def _run(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        try:
            await self.app(scope, receive, answer)
        except Exception as exc:  # noqa: BLE001 - the last place where anything can still be answered.
            structlog.get_logger("app").error("request_failed", route=route_of(scope), **describe(exc))
            if answer.status is not None:
                # Half an answer is out. Breaking the connection is the only way left to say that it is not whole,
                # and the server logs what it is given here.
                raise AnswerCutShort from None
            await problem_response(as_error(exc), scope)(scope, receive, answer)

    def _report(self, scope: Scope, status: int | None, seconds: float) -> None:
        # 499 as in nginx: the client left before there was an answer.
        status, route = status or 499, route_of(scope)
        self.metrics.observe(route, scope["method"], status, seconds)
        structlog.get_logger("app").info(
            "request", method=scope["method"], route=route, status=status, ms=round(seconds * 1000, 2)
        )


class AnswerCutShort(RuntimeError):
    """An answer failed after its first bytes were sent; the log line before this one says why."""


class _Answer:
    """Sends an answer under the request's id and remembers its status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self.send = send
        self.request_id = request_id
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)["X-Request-ID"] = self.request_id
        await self.send(message)


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get("x-request-id", "")
    request_id = given if _ID.fullmatch(given) else secrets.token_hex(8)
    scope.setdefault("state", {})["request_id"] = request_id
    return request_id


def route_of(scope: Scope) -> str:
    """The route's template, such as `/v1/facts/{id}`; `unmatched` where no route answered."""
    # FastAPI keeps the template with the prefixes of the including routers beside the route; the route has its own.
    context = scope.get("fastapi", {}).get("effective_route_context")
    route = context or scope.get("route")
    return str(getattr(route, "path_format", None) or getattr(route, "path", None) or "unmatched")
