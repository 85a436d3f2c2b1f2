"""What the rest of the service knows about embedding: the space of the vectors, and an embedder's promise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import SecretStr

Vectors = NDArray[np.float32]
Cause = Literal[
    "timeout",
    "unauthorized",
    "payment_required",
    "not_found",
    "rejected",
    "rate_limited",
    "server_error",
    "bad_answer",
    "unreachable",
]


@dataclass(frozen=True, slots=True)
class Profile:
    """The vector space of an embedder: only vectors of one profile may be compared.

    The name stands for the model and for everything done to a text before it. `[a-z0-9._-]{1,100}`.
    """

    name: str
    dimensions: int


class EmbedderUnavailable(Exception):
    """No vectors now. `retry_after` is in seconds; `permanent` means that only a person can mend it.

    `rejected` is about the texts of this call (too long, too many), every other cause about the endpoint.
    """

    def __init__(self, cause: Cause, *, retry_after: float | None = None, permanent: bool = False) -> None:
        super().__init__(cause)
        self.cause: Cause = cause
        self.retry_after = retry_after
        self.permanent = permanent


class EmbeddingSettings(Protocol):
    """What an embedder needs to know. `embedding_timeout_s` bounds one request with all its retries."""

    @property
    def embedding_url(self) -> str | None: ...
    @property
    def embedding_model(self) -> str | None: ...
    @property
    def embedding_api_key(self) -> SecretStr | None: ...
    @property
    def embedding_dimensions(self) -> int | None: ...
    @property
    def embedding_timeout_s(self) -> float: ...
    @property
    def embedding_batch(self) -> int: ...
    @property
    def embedding_query_prefix(self) -> str: ...
    @property
    def embedding_document_prefix(self) -> str: ...


class Embedder(Protocol):
    """Gives float32 arrays of shape (texts, dimensions), rows of length 1, in the order of the texts.

    A text that has no vector (a blank one) gives a row of zeros: callers must store no vector for it,
    since the cosine distance to a zero vector is not a number. Raises `EmbedderUnavailable`.
    """

    @property
    def profile(self) -> Profile | None:
        """None as long as the dimensions are not configured and the endpoint has not answered yet."""

    @property
    def last_failure(self) -> Cause | None:
        """Why the latest call failed, or None if it did not."""

    async def embed_queries(self, texts: Sequence[str]) -> Vectors: ...
    async def embed_documents(self, texts: Sequence[str]) -> Vectors: ...
    async def aclose(self) -> None: ...


def unit_rows(rows: NDArray[np.floating[Any]]) -> Vectors:
    """Scales every row to length 1. A row of zeros stays as it is."""
    # Dividing by the largest component first keeps the squares of huge or tiny numbers in range.
    peaks = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled = rows / np.where(peaks > 0, peaks, 1)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return (scaled / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def batches(texts: Sequence[str], most_texts: int, most_characters: int) -> Iterator[Sequence[str]]:
    """Cuts the texts into runs of at most `most_texts` holding `most_characters` when padded to the longest.

    A text longer than that goes alone.
    """
    start = longest = 0
    for end, text in enumerate(texts):
        longest = max(longest, len(text))
        full = end - start == most_texts or (end - start + 1) * longest > most_characters
        if full and end > start:
            yield texts[start:end]
            start, longest = end, len(text)
    if start < len(texts):
        yield texts[start:]
