"""Reads what an OpenAI-compatible embeddings endpoint answered."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from app.embedding.contract import EmbedderUnavailable


class _Row(BaseModel):
    model_config = ConfigDict(strict=True)

    index: int | None = None
    embedding: list[FiniteFloat] = Field(min_length=1)


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True)

    data: list[_Row]


def failure_of(response: httpx.Response) -> EmbedderUnavailable | None:
    """What an answer's status means for the caller, or None if it is a success."""
    status = response.status_code
    if response.is_success:
        return None
    if status in (401, 403):
        return EmbedderUnavailable("unauthorized", permanent=True)
    # OpenAI answers 429 to an account without credit too, and no wait mends that.
    if status == 402 or (status == 429 and b"insufficient_quota" in response.content):
        return EmbedderUnavailable("payment_required", permanent=True)
    if status == 404:
        return EmbedderUnavailable("not_found", permanent=True)
    if status == 408:
        return EmbedderUnavailable("timeout")
    if status == 429:
        return EmbedderUnavailable("rate_limited", retry_after=retry_after_s(response))
    if status >= 500:
        return EmbedderUnavailable("server_error", retry_after=retry_after_s(response))
    return EmbedderUnavailable("rejected" if status >= 400 else "bad_answer")


def retry_after_s(response: httpx.Response) -> float | None:
    """Seconds from now, from either form of the header (RFC 9110 §10.2.3)."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def read_rows(content: bytes, expected: int) -> NDArray[np.float64]:
    """The rows in the order of the texts: `expected` of them, finite and of one length, or `bad_answer`."""
    try:
        rows = _Answer.model_validate_json(content).data
    except ValidationError:
        raise EmbedderUnavailable("bad_answer") from None
    # Some servers leave the index out and answer in order.
    placed = {place if row.index is None else row.index: row.embedding for place, row in enumerate(rows)}
    sizes = {len(row.embedding) for row in rows}
    if len(rows) != expected or placed.keys() != set(range(expected)) or len(sizes) != 1:
        raise EmbedderUnavailable("bad_answer")
    return np.array([placed[place] for place in range(expected)], np.float64)
