"""Everything that a caller can be told no for: one tree, each leaf named for the fact and carrying its status."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pydantic import JsonValue

MEDIA_TYPE = "application/problem+json"

Responses = dict[int | str, dict[str, Any]]
Example = Mapping[str, JsonValue]


class AppError(Exception):
    """A refusal. `detail` says what was wrong in this case, `extensions` are further members of the problem.

    The class-level `detail` is the sentence used when a caller gives none, and the example in the OpenAPI file.
    `pointer` says which part of the request a 422 is about: `/content`, `query/limit`, `header/Idempotency-Key`.
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"
    title: ClassVar[str] = "Something failed inside the service"
    detail: str = "The service could not finish this request. The request id finds the reason in its log."
    pointer: str = ""
    example: ClassVar[Example] = {}
    headers: ClassVar[Mapping[str, str]] = {}

    def __init__(self, detail: str | None = None, /, *, pointer: str | None = None, **extensions: Any) -> None:
        self.detail = detail or type(self).detail
        self.pointer = type(self).pointer if pointer is None else pointer
        self.extensions: Mapping[str, Any] = extensions
        super().__init__(self.detail)


class BadRequest(AppError):
    status, code, title = 400, "bad_request", "The request cannot be read"
    detail = "The request cannot be read."


class MalformedUrl(BadRequest):
    code, title = "malformed_url", "The URL cannot be read"
    detail = "The path or query holds a broken percent-escape, bytes that are not UTF-8, or a NUL character."


class Unauthorized(AppError):
    status, code, title = 401, "unauthorized", "No valid key"
    detail = "Send a valid key as `Authorization: Bearer <key>`."
    headers: ClassVar[Mapping[str, str]] = {"WWW-Authenticate": "Bearer"}


class RoleForbidden(AppError):
    status, code, title = 403, "role_forbidden", "The key does not hold this role"
    detail = "This needs the role `curate`."


class ScopeForbidden(AppError):
    status, code, title = 403, "scope_forbidden", "The key does not open this scope"
    detail = "The key may not write to this scope."


class LoopbackOnly(AppError):
    status, code, title = 403, "loopback_only", "Without a key, only this machine is served"
    detail = "No key was made yet, so only this machine is served. Make one with `palimpsest keys create`."


class NotFound(AppError):
    status, code, title = 404, "not_found", "Not found"
    detail = "There is nothing at this address."


class FactNotFound(AppError):
    status, code, title = 404, "fact_not_found", "No such fact"
    detail = "This namespace holds no fact with this id."


class LinkNotFound(AppError):
    status, code, title = 404, "link_not_found", "No such link"
    detail = "This namespace holds no link with this id."


class SubjectNotFound(AppError):
    """Extension: `nearest`, subjects that look alike, best first."""

    status, code, title = 404, "subject_not_found", "Nothing is known at this subject"
    detail = "The subject is not registered and holds no fact; `nearest` lists the closest ones."
    example: ClassVar[Example] = {"nearest": ["team.standup.time"]}


class ProposalNotFound(NotFound):
    code, title = "proposal_not_found", "No such proposal"
    detail = "This namespace holds no proposal with this id."


class MethodNotAllowed(AppError):
    status, code, title = 405, "method_not_allowed", "Method not allowed"
    detail = "This address does not answer to this method; the Allow header lists those that it answers to."


class NotAcceptable(AppError):
    status, code, title = 406, "not_acceptable", "No representation that the caller accepts"
    detail = "This address answers in application/json."


class FactRetired(AppError):
    """Extensions: `head` (id or null), `retired_at`, `reason`."""

    status, code, title = 410, "fact_retired", "This fact is no longer current"
    detail = "This fact was retired; `head` is what stands in its place, if anything does."
    example: ClassVar[Example] = {
        "head": "019ad9a0-53f1-7b8e-a2f4-0c2d9f6f4b11",
        "retired_at": "2026-01-05T09:00:00Z",
        "reason": "The stand-up moved to 9:00.",
    }


class Conflict(AppError):
    status, code, title = 409, "conflict", "The present state does not allow this"
    detail = "The present state does not allow this."


class FactAlreadyRetired(Conflict):
    """Extension: `head` (id or null)."""

    code, title = "fact_already_retired", "This fact was already retired"
    detail = "Somebody retired this fact first; `head` is what stands now."
    example: ClassVar[Example] = {"head": "019ad9a0-53f1-7b8e-a2f4-0c2d9f6f4b11"}


class ReplacementRetired(Conflict):
    """Extension: `head` (id or null)."""

    code, title = "replacement_retired", "The replacement is itself retired"
    detail = "A retired fact cannot replace another one; `head` is what stands in its place."
    example: ClassVar[Example] = {"head": "019ad9a0-53f1-7b8e-a2f4-0c2d9f6f4b11"}


class TargetNewer(Conflict):
    code, title = "target_is_newer", "The fact to retire is newer than its replacement"
    detail = "The fact to retire is newer than its replacement. Send `force` to retire it all the same."


class LowerTier(Conflict):
    code, title = "lower_tier", "The replacement comes from a less trusted source"
    detail = "An `inferred` fact does not retire a `user` one. Send `force` to retire it all the same."


class AddressTaken(Conflict):
    """Extension: `head`, the id of the fact that is current at the address."""

    code, title = "address_taken", "The subject has another current fact"
    detail = "The subject has another current fact. Send `replace` to retire that one."
    example: ClassVar[Example] = {"head": "019ad9a0-53f1-7b8e-a2f4-0c2d9f6f4b11"}


class SubjectTaken(Conflict):
    """Extension: `subject`, the registered subject that has the name."""

    code, title = "subject_taken", "The name belongs to another subject"
    detail = "The name is an alias of another subject."
    example: ClassVar[Example] = {"subject": "team.standup.time"}


class LinkSettled(Conflict):
    code, title = "link_settled", "This link was settled before"
    detail = "This link was demoted or resolved before, or what it asserts no longer holds."


class ProposalDecided(Conflict):
    """Extension: `verdict`, what was decided."""

    code, title = "proposal_decided", "This proposal was decided before"
    detail = "Only a proposal that waits can be approved or rejected."
    example: ClassVar[Example] = {"verdict": "applied"}


class LlmNotConfigured(Conflict):
    code, title = "llm_not_configured", "No language model is configured"
    detail = "This job asks a language model, and none is configured: set LLM_URL and LLM_MODEL."


class BodyTooLarge(AppError):
    """Extension: `limit` in bytes."""

    status, code, title = 413, "body_too_large", "The body is too large"
    detail = "The body may hold at most 2097152 bytes here."
    example: ClassVar[Example] = {"limit": 2_097_152}


class UnsupportedMediaType(AppError):
    status, code, title = 415, "unsupported_media_type", "The body is in a form that is not read here"
    detail = "Send the body in UTF-8 as `Content-Type: application/json`."


class RequestInvalid(AppError):
    """Extension: `errors`, one entry for each thing that is wrong."""

    status, code, title = 422, "request_invalid", "The request is not valid"
    detail = "1 part of the request is not valid."
    example: ClassVar[Example] = {
        "errors": [
            {
                "pointer": "/content",
                "code": "string_too_long",
                "detail": "Must have at most 20000 characters.",
            }
        ]
    }


class CursorInvalid(AppError):
    status, code, title = 422, "cursor_invalid", "The cursor does not belong to this list"
    detail = "The cursor was made for other filters. Ask for the first page again."
    pointer = "query/cursor"


class SelfSupersede(AppError):
    status, code, title = 422, "self_supersede", "A fact cannot replace itself"
    detail = "A fact cannot replace itself."
    pointer = "/by"


class ReasonRequired(AppError):
    status, code, title = 422, "reason_required", "Retiring a fact needs a reason"
    detail = "Say in `reason` why the fact no longer holds."
    pointer = "/reason"


class EvidenceRequired(AppError):
    status, code, title = 422, "evidence_required", "Retiring a fact here needs evidence"
    detail = "This namespace asks for a verbatim quote as `evidence`."
    pointer = "/evidence"


class EvidenceNotFound(AppError):
    status, code, title = 422, "evidence_not_found", "The evidence is not in the text"
    detail = "`evidence` must occur word for word in the new content or in its `source.quote`."
    pointer = "/evidence"


class ReplacementScheduled(AppError):
    status, code, title = 422, "replacement_scheduled", "The replacement does not hold yet"
    detail = (
        "Until `valid_from` nothing would hold in its place. Write it alone; a state takes over when its time comes."
    )
    pointer = "/valid_from"


class WindowEmpty(AppError):
    status, code, title = 422, "window_empty", "The statement would never hold"
    detail = "`valid_to` must be later than `valid_from`, or than when it was observed where that is left out."
    pointer = "/valid_to"


class UnknownSubject(AppError):
    """Extension: `nearest`, registered subjects that look alike, best first."""

    status, code, title = 422, "unknown_subject", "The subject is not in the vocabulary"
    detail = "This namespace takes registered subjects only; `nearest` lists the closest ones."
    pointer = "/subject"
    example: ClassVar[Example] = {"nearest": ["team.standup.time"]}


class IdempotencyKeyReused(AppError):
    status, code, title = 422, "idempotency_key_reused", "The idempotency key was used for another request"
    detail = "This Idempotency-Key came before with another body. Use a new key for a new request."
    pointer = "header/Idempotency-Key"


class ValueNotStorable(AppError):
    status, code, title = 422, "value_not_storable", "The database cannot hold a value of this request"
    detail = "A value of this request is too large, or of a kind that the database cannot hold."


class Unavailable(AppError):
    """Nothing was written; the same request may be sent again after `Retry-After` seconds."""

    status, code, title = 503, "unavailable", "Not available right now"
    detail = "Not available right now. Nothing was written; try again."
    headers: ClassVar[Mapping[str, str]] = {"Retry-After": "1"}


class Overloaded(Unavailable):
    code, title = "overloaded", "Too much work at once"
    detail = "All database connections are busy, or the statement ran out of time. Nothing was written; try again."


class DatabaseUnavailable(Unavailable):
    code, title = "database_unavailable", "The database does not answer"
    detail = "The database does not answer. Nothing was written; try again."
    headers: ClassVar[Mapping[str, str]] = {"Retry-After": "5"}


# --- On the wire -----------------------------------------------------------------------------------------------


def document(error: AppError, *, instance: str, request_id: str) -> dict[str, Any]:
    """The members of the problem that tells a caller about this error."""
    members: dict[str, Any] = {
        "type": f"urn:palimpsest:problem:{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "instance": instance,
        "code": error.code,
        "request_id": request_id,
    }
    if error.status == 422:
        members["errors"] = [{"pointer": error.pointer, "code": error.code, "detail": error.detail}]
    return members | dict(error.extensions)


def responses(*errors: type[AppError]) -> Responses:
    """What a route may refuse, for its `responses=`: one entry per status, one named example per error."""
    declared: Responses = {}
    for error in errors:
        entry = declared.setdefault(error.status, declaration([]))
        entry["content"][MEDIA_TYPE]["examples"] |= _examples([error])
        entry["description"] = " · ".join(filter(None, [entry["description"], error.title]))
    return declared


def declaration(errors: Iterable[type[AppError]]) -> dict[str, Any]:
    """An OpenAPI response that holds a problem; the schema is put in place by `app.problems.declare_problems`."""
    errors = list(errors)
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        "description": " · ".join(error.title for error in errors),
        "content": {MEDIA_TYPE: {"schema": schema, "examples": _examples(errors)}},
    }


def _examples(errors: Iterable[type[AppError]]) -> dict[str, Any]:
    return {
        error.code: {
            "summary": error.title,
            "value": document(_exemplar(error), instance="/v1/facts", request_id="0f8c1c7e9a4b4d0f"),
        }
        for error in errors
    }


def _exemplar(error: type[AppError]) -> AppError:
    exemplar = error()
    exemplar.extensions = error.example
    return exemplar
