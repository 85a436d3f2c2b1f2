"""Why a call brought no usable answer, and what may help."""

from typing import Literal

import httpx

Cause = Literal[
    "timeout",
    "unreachable",
    "rate_limited",
    "server_error",
    "unauthorized",
    "no_credit",
    "not_found",
    "redirected",
    "rejected",
    "truncated",
    "unreadable",
]
Remedy = Literal["configure", "wait", "divide"]

_LONGEST_PAUSE_S = 24 * 3600.0
_REMEDIES: dict[Cause, Remedy] = {
    "timeout": "wait",
    "unreachable": "wait",
    "rate_limited": "wait",
    "server_error": "wait",
    "unauthorized": "configure",
    "no_credit": "configure",
    "not_found": "configure",
    "redirected": "configure",
    "rejected": "divide",
    "truncated": "divide",
    "unreadable": "divide",
}


class LlmFailure(Exception):
    """A call that brought nothing. `retry_after` is in seconds, where the endpoint named them.

    `remedy` says what may help: `configure` (nothing but another setting or a paid bill: stop, do not try again),
    `wait` (the same call later), `divide` (this very question or its answer is at fault: ask for less).
    """

    def __init__(self, cause: Cause, detail: str = "", retry_after: float | None = None) -> None:
        self.cause = cause
        self.detail = detail
        self.retry_after = retry_after
        super().__init__(f"{cause}: {detail}" if detail else cause)

    @property
    def remedy(self) -> Remedy:
        return _REMEDIES[self.cause]


def failure_of(response: httpx.Response) -> LlmFailure | None:
    """What a status says; None for a success. The body's words are not kept: they may repeat a fact."""
    status = response.status_code
    if response.is_success:
        return None
    detail = f"HTTP {status}"
    if status == 429:
        return LlmFailure("no_credit", detail) if _is_quota(response) else _busy("rate_limited", response)
    if status in (500, 501) and b"response_format" in response.content:
        # Some servers answer so to a form that they do not know: llama-cpp-python's is one.
        return LlmFailure("rejected", detail)
    if status in (408, 425) or status >= 500:
        return _busy("rate_limited" if status == 503 else "server_error", response)
    if status in (401, 403):
        return LlmFailure("unauthorized", detail)
    if status == 402:
        return LlmFailure("no_credit", detail)
    if status in (404, 405, 410):
        return LlmFailure("not_found", detail)
    return LlmFailure("redirected" if status < 400 else "rejected", detail)


def _busy(cause: Cause, response: httpx.Response) -> LlmFailure:
    return LlmFailure(cause, f"HTTP {response.status_code}", _retry_after(response))


def _is_quota(response: httpx.Response) -> bool:
    """Whether a 429 means an empty account, which no waiting fills (the code that OpenAI's API documents)."""
    try:
        error = response.json()["error"]
        return "insufficient_quota" in (error.get("code"), error.get("type"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds of a Retry-After header; a date, which few endpoints send, counts as none."""
    try:
        seconds = float(response.headers.get("Retry-After", ""))
    except ValueError:
        return None
    return min(seconds, _LONGEST_PAUSE_S) if seconds >= 0 else None
