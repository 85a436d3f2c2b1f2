"""What every request meets before a route does: checks of the URL and the body, and headers on every answer."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message as MimeHeaders
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import AppError, BodyTooLarge, MalformedUrl, UnsupportedMediaType
from app.problems import invalid, problem_response
from app.telemetry import Metrics, RequestContext
from app.text import MalformedJson, read_json

MIB = 2**20
_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_DRAINED = 64 * MIB


@dataclass(frozen=True, slots=True)
class BodyRule:
    """What a path takes: at most `limit` bytes of this media type.

    JSON is read whole and checked before the route sees it; anything else is passed on as it arrives.
    """

    limit: int = 2 * MIB
    media_type: str = "application/json"


def install(
    app: Starlette,
    metrics: Metrics,
    rules: Mapping[str, BodyRule] | None = None,
    default: BodyRule | None = None,
) -> None:
    """Put everything that every request meets around the app, the innermost first."""
    app.add_middleware(BodyGuard, rules=rules, default=default)
    app.add_middleware(UrlGuard)
    app.add_middleware(RequestContext, metrics=metrics)
    app.add_middleware(SecurityHeaders)


class UrlGuard:
    """Refuses URLs that do not decode to clean text; the server would put replacement characters in their place."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (error := _url_error(scope)):
            await problem_response(error, scope)(scope, receive, send)
            return
        await self.app(scope, receive, send)


def _url_error(scope: Scope) -> MalformedUrl | None:
    parts = {"path": scope.get("raw_path") or b"", "query": scope["query_string"]}
    for name, raw in parts.items():
        if _BROKEN_ESCAPE.search(raw):
            return MalformedUrl(f"The {name} of the URL holds a % that two hexadecimal digits do not follow.")
        decoded = unquote_to_bytes(raw)
        if b"\0" in decoded:
            return MalformedUrl(f"The {name} of the URL holds a NUL character (%00).")
        try:
            decoded.decode()
        except UnicodeDecodeError:
            return MalformedUrl(f"The {name} of the URL is not UTF-8.")
    return None


class BodyGuard:
    """Refuses bodies that are too large, of another media type, or no strict JSON.

    `rules` are by path, without the root path; every other path takes `default`.
    """

    def __init__(
        self, app: ASGIApp, rules: Mapping[str, BodyRule] | None = None, default: BodyRule | None = None
    ) -> None:
        self.app = app
        self.rules = rules or {}
        self.default = default or BodyRule()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"].removeprefix(scope.get("root_path", "").rstrip("/"))
        rule = self.rules.get(path, self.default)
        counted = _Counted(receive, rule.limit)
        try:
            guarded = await _guarded(rule, Headers(scope=scope), scope["method"], counted)
        except AppError as error:
            await problem_response(error, scope)(scope, receive, send)
        except _Gone:
            return
        else:
            await self.app(scope, guarded, send)


async def _guarded(rule: BodyRule, headers: Headers, method: str, counted: "_Counted") -> Receive:
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > rule.limit:
        # A client that expects `100 Continue` waits for the answer before it sends anything.
        if "expect" not in headers:
            await counted.drain()
        raise _too_large(rule.limit)
    if method not in _WITH_BODY:
        return counted
    if rule.media_type != "application/json":
        _check_media_type(rule, headers)
        return counted
    body = await _read(counted)
    if body:
        _check_media_type(rule, headers)
        _check_json(body)
    return _Replayed(body, counted)


def _check_media_type(rule: BodyRule, headers: Headers) -> None:
    if "content-type" not in headers or not _is_utf8_of(rule.media_type, headers["content-type"]):
        raise UnsupportedMediaType(f"Send the body in UTF-8 as `Content-Type: {rule.media_type}`.")


@lru_cache(maxsize=64)
def _is_utf8_of(media_type: str, written: str) -> bool:
    content = MimeHeaders()
    content["content-type"] = written
    return content.get_content_type() == media_type and content.get_content_charset("utf-8") in {"utf-8", "utf8"}


def _check_json(body: bytes) -> None:
    try:
        read_json(body)
    except MalformedJson as error:
        raise invalid(error.faults) from None


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body may hold at most {limit} bytes here.", limit=limit)


async def _read(receive: Receive) -> bytes:
    chunks: list[bytes] = []
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        chunks.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(chunks)


class _Gone(Exception):
    """The client left before its body was complete."""


class _Counted:
    """Passes a body on as it arrives, up to its limit."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self.receive = receive
        self.limit = limit
        self.seen = 0

    async def __call__(self) -> Message:
        message = await self.receive()
        self.seen += len(message.get("body", b""))
        if self.seen > self.limit:
            if message.get("more_body", False):
                await self.drain()
            raise _too_large(self.limit)
        return message

    async def drain(self) -> None:
        """Read and drop what the client still sends; one that is cut off while it sends may never read the answer."""
        more, dropped = True, 0
        while more and dropped < _DRAINED:
            message = await self.receive()
            dropped += len(message.get("body", b""))
            more = message.get("more_body", False)


class _Replayed:
    """Gives a body that was read once more, then whatever comes after it."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self.body: bytes | None = body
        self.receive = receive

    async def __call__(self) -> Message:
        if self.body is None:
            return await self.receive()
        body, self.body = self.body, None
        return {"type": "http.request", "body": body, "more_body": False}


class SecurityHeaders:
    """Answers are what they say they are, and what the memory said is not kept by caches."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Content-Type-Options"] = "nosniff"
                if "/v1/" in scope["path"]:
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)
