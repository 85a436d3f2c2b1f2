"""The client of an OpenAI-compatible chat endpoint."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import httpx
import structlog
from pydantic import SecretStr

from app.llm.answer import Reply, estimate_tokens, read_completion
from app.llm.failure import LlmFailure, failure_of

logger = structlog.get_logger(__name__)

Message = Mapping[str, str]


class LlmSettings(Protocol):
    """What of the settings this needs."""

    @property
    def llm_url(self) -> str | None: ...
    @property
    def llm_model(self) -> str | None: ...
    @property
    def llm_api_key(self) -> SecretStr | None: ...
    @property
    def llm_timeout_s(self) -> float: ...


class Meter(Protocol):
    """Counts what is spent. `reserve` may refuse the next call by raising; `used` adds its tokens afterwards."""

    async def reserve(self) -> None: ...
    async def used(self, tokens: int) -> None: ...


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The JSON Schema that an answer has to follow, where the endpoint can enforce one."""

    name: str
    schema: Mapping[str, Any]
    max_tokens: int

    def options(self) -> list[dict[str, Any]]:
        """From the strictest to the plainest: what endpoints refuse differs, and most refuse something."""
        named = {"name": self.name, "strict": True, "schema": self.schema}
        usual: dict[str, Any] = {"temperature": 0, "max_tokens": self.max_tokens}
        return [
            usual | {"response_format": {"type": "json_schema", "json_schema": named}},
            # Local servers enforce the schema here, and those that only know the type pass it over.
            usual | {"response_format": {"type": "json_object", "schema": self.schema}},
            usual | {"response_format": {"type": "json_object"}},
            usual,
            {},
        ]


class LanguageModel:
    """`POST {LLM_URL}/chat/completions`. Prompts, answers and the key never reach the log.

    An instance belongs to one event loop. It tries no call twice: its caller knows what a failure is worth.
    """

    REQUESTS = 4

    def __init__(self, settings: LlmSettings, url: str, model: str) -> None:
        self.model = model
        self._url = endpoint(url)
        self._timeout_s = settings.llm_timeout_s
        self._plainness = 0
        key = settings.llm_api_key
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key.get_secret_value().strip()}"} if key else {},
            timeout=self._timeout_s,
            limits=httpx.Limits(max_connections=self.REQUESTS),
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def ask(self, messages: Sequence[Message], form: AnswerForm, meter: Meter) -> Reply:
        """The whole answer to one question. Raises LlmFailure, and whatever the meter raises.

        An endpoint that refuses the schema is asked again without it, and that it did is remembered.
        """
        options = form.options()
        for plainness in range(self._plainness, len(options)):
            try:
                reply = await self._call(messages, options[plainness], meter)
            except LlmFailure as failure:
                if failure.cause in ("truncated", "unreadable"):
                    self._plainness = plainness
                if failure.cause != "rejected" or plainness + 1 == len(options):
                    raise
            else:
                self._plainness = plainness
                return reply
        raise AssertionError("the last option either returns or raises")

    async def _call(self, messages: Sequence[Message], options: Mapping[str, Any], meter: Meter) -> Reply:
        asked = "\n".join(message["content"] for message in messages)
        await meter.reserve()
        # What a call costs that brings no count is not known; the question at least was read.
        spent = estimate_tokens(asked)
        try:
            content = await self._post({"model": self.model, "messages": list(messages), **options})
            reply, finish = read_completion(content, asked)
            spent = reply.tokens
        except LlmFailure as failure:
            logger.warning("llm_failed", cause=failure.cause, detail=failure.detail, host=self._url.host)
            if failure.cause in ("unreachable", "unauthorized", "no_credit", "not_found", "rejected"):
                spent = 0
            raise
        finally:
            await meter.used(spent)
        if finish == "length":
            raise LlmFailure("truncated", "the answer was cut off at its longest")
        if finish == "content_filter":
            raise LlmFailure("unreadable", "the endpoint withheld the answer")
        return reply

    async def _post(self, body: Mapping[str, Any]) -> bytes:
        try:
            # The client's own time-outs start anew with each piece of an answer that trickles in.
            async with asyncio.timeout(self._timeout_s):
                response = await self._client.post(self._url, json=body)
        except (TimeoutError, httpx.TimeoutException):
            raise LlmFailure("timeout") from None
        except httpx.TransportError:
            raise LlmFailure("unreachable") from None
        except httpx.RequestError:
            raise LlmFailure("unreadable", "the body cannot be decoded") from None
        if failure := failure_of(response):
            raise failure
        return response.content


def endpoint(url: str) -> httpx.URL:
    """The address to post to: the base as given, with or without a slash or `/chat/completions` at its end."""
    parsed = httpx.URL(url.strip())
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError("LLM_URL must start with http:// or https:// and name a host")
    path = parsed.path.rstrip("/")
    return parsed.copy_with(path=path if path.endswith("/chat/completions") else f"{path}/chat/completions")


def build_llm(settings: LlmSettings) -> LanguageModel | None:
    """The model that the settings name; None where they name none."""
    if not settings.llm_url or not settings.llm_model:
        return None
    return LanguageModel(settings, settings.llm_url, settings.llm_model)
