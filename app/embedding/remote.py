"""The embedder that asks an OpenAI-compatible endpoint."""

import asyncio
import hashlib
import random
import re
from collections.abc import Sequence
from time import monotonic
from typing import Any

import httpx
import numpy as np
import structlog
from numpy.typing import NDArray

from app.embedding.answer import failure_of, read_rows
from app.embedding.breaker import Breaker
from app.embedding.contract import (
    Cause,
    EmbedderUnavailable,
    EmbeddingSettings,
    Profile,
    Vectors,
    batches,
    unit_rows,
)

logger = structlog.get_logger(__name__)

TRANSIENT: frozenset[Cause] = frozenset({"timeout", "unreachable", "rate_limited", "server_error"})


class RemoteEmbedder:
    """`POST {EMBEDDING_URL}/embeddings` of any server that speaks the OpenAI protocol.

    The model's name stands for the space: two endpoints that serve one name are taken to give the same
    vectors. Texts and key never reach the log. An instance belongs to one event loop.
    """

    BATCH_CHARACTERS = 65_536
    # Documents leave room for queries, since somebody waits for those.
    DOCUMENT_REQUESTS = 4
    QUERY_REQUESTS = 16
    DOCUMENT_ATTEMPTS = 4
    QUERY_ATTEMPTS = 2

    def __init__(self, settings: EmbeddingSettings, url: str, model: str, *, pause_s: float = 5.0) -> None:
        self._url = endpoint(url)
        self._model = model
        self._dimensions = settings.embedding_dimensions
        self._prefixes = (settings.embedding_query_prefix, settings.embedding_document_prefix)
        self._timeout_s = settings.embedding_timeout_s
        self._batch = settings.embedding_batch
        self._queries = asyncio.Semaphore(self.QUERY_REQUESTS)
        self._documents = asyncio.Semaphore(self.DOCUMENT_REQUESTS)
        self._breaker = Breaker(pause_s, self._timeout_s)
        self._profile = self._profile_of(self._dimensions) if self._dimensions else None
        key = settings.embedding_api_key
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key.get_secret_value().strip()}"} if key else {},
            timeout=self._timeout_s,
            limits=httpx.Limits(max_connections=self.DOCUMENT_REQUESTS + self.QUERY_REQUESTS),
        )

    @property
    def profile(self) -> Profile | None:
        return self._profile

    @property
    def last_failure(self) -> Cause | None:
        failure = self._breaker.last_failure
        return failure.cause if failure else None

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return await self._embed(texts, self._prefixes[0], self._queries, self.QUERY_ATTEMPTS)

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return await self._embed(texts, self._prefixes[1], self._documents, self.DOCUMENT_ATTEMPTS)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _embed(self, texts: Sequence[str], prefix: str, slots: asyncio.Semaphore, attempts: int) -> Vectors:
        # Most endpoints refuse an empty text, and with it the whole request.
        worded = [position for position, text in enumerate(texts) if text.strip()]
        prepared = [prefix + texts[position] for position in worded]
        parts = await self._parts(list(batches(prepared, self._batch, self.BATCH_CHARACTERS)), slots, attempts)
        rows = np.zeros((len(texts), self._profile.dimensions if self._profile else 0), np.float32)
        if parts:
            rows[worded] = unit_rows(np.concatenate(parts))
        return rows

    async def _parts(
        self, runs: list[Sequence[str]], slots: asyncio.Semaphore, attempts: int
    ) -> list[NDArray[np.float64]]:
        async def call(run: Sequence[str]) -> NDArray[np.float64]:
            async with slots:
                return await self._call(run, attempts)

        # The first run goes alone: it may be the breaker's one trial, and it spares a dead endpoint the rest.
        first = [await call(run) for run in runs[:1]]
        try:
            async with asyncio.TaskGroup() as group:
                rest = [group.create_task(call(run)) for run in runs[1:]]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return first + [task.result() for task in rest]

    async def _call(self, texts: Sequence[str], attempts: int) -> NDArray[np.float64]:
        ticket = self._breaker.check()
        try:
            rows = await self._try(texts, attempts)
        except EmbedderUnavailable as failure:
            logger.warning("embedding failed", cause=failure.cause, texts=len(texts), host=self._url.host)
            self._breaker.failed(failure, ticket)
            raise
        self._breaker.succeeded()
        return rows

    async def _try(self, texts: Sequence[str], attempts: int) -> NDArray[np.float64]:
        """One request, repeated after a pause where that may help, all within the time-out."""
        deadline = monotonic() + self._timeout_s
        attempt = 0
        while True:
            attempt += 1
            try:
                answer = await self._post(texts, deadline - monotonic())
                return self._accept(read_rows(answer, len(texts)))
            except EmbedderUnavailable as failure:
                pause = max(failure.retry_after or 0.0, backoff_s(attempt))
                worth_it = failure.cause in TRANSIENT and attempt < attempts
                if not worth_it or monotonic() + pause >= deadline:
                    raise
            await asyncio.sleep(pause)

    async def _post(self, texts: Sequence[str], seconds: float) -> bytes:
        body: dict[str, Any] = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        if self._dimensions:
            body["dimensions"] = self._dimensions
        try:
            # The client's own time-outs start anew with each piece of an answer that trickles in.
            async with asyncio.timeout(seconds):
                response = await self._client.post(self._url, json=body)
        except (TimeoutError, httpx.TimeoutException):
            raise EmbedderUnavailable("timeout") from None
        except httpx.TransportError:
            raise EmbedderUnavailable("unreachable") from None
        except httpx.RequestError:
            raise EmbedderUnavailable("bad_answer") from None
        if failure := failure_of(response):
            raise failure
        return response.content

    def _accept(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The first good answer settles the profile if the settings do not; all others must fit it."""
        profile = self._profile or self._profile_of(rows.shape[1])
        if rows.shape[1] != profile.dimensions:
            raise EmbedderUnavailable("bad_answer")
        self._profile = profile
        return rows

    def _profile_of(self, dimensions: int) -> Profile:
        return Profile(profile_name(self._model, dimensions, self._prefixes), dimensions)


def endpoint(url: str) -> httpx.URL:
    """The address to post to: the base as given, with or without a slash or `/embeddings` at its end."""
    parsed = httpx.URL(url.strip())
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError("EMBEDDING_URL must start with http:// or https:// and name a host")
    path = parsed.path.rstrip("/")
    return parsed.copy_with(path=path if path.endswith("/embeddings") else f"{path}/embeddings")


def profile_name(model: str, dimensions: int, prefixes: tuple[str, str]) -> str:
    """A slug of the model, with a short hash where the slug alone would not tell it from another."""
    slug = re.sub(r"[^a-z0-9._-]+", "-", model.lower())[:80]
    if slug == model and not any(prefixes):
        return f"{slug}-{dimensions}"
    digest = hashlib.sha256("\0".join((model, *prefixes)).encode()).hexdigest()[:6]
    return f"{slug}-{digest}-{dimensions}"


def backoff_s(attempt: int) -> float:
    """Seconds to wait after a failed attempt: 0.1, 0.2, 0.4 … 2, less up to half of it by chance."""
    return min(2.0, 0.1 * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)
