"""The language model's client against a server that misbehaves in every known way."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from typing import Any

import pytest

from app.llm import AnswerForm, LanguageModel, LlmFailure, Reply, build_llm, read_object
from app.settings import Settings
from tests.openai_server import OpenAIServer

FORM = AnswerForm("actions", {"type": "object"}, 100)
QUESTION = [{"role": "user", "content": "What is to be done?"}]


class Purse:
    """A meter that only counts."""

    def __init__(self) -> None:
        self.calls = self.tokens = 0

    async def reserve(self) -> None:
        self.calls += 1

    async def used(self, tokens: int) -> None:
        self.tokens += tokens


def settings(server: OpenAIServer, **more: Any) -> Settings:
    given: dict[str, Any] = {
        "llm_url": server.base_url,
        "llm_model": "scripted",
        "llm_api_key": "sk-test",
        "llm_timeout_s": 5,
    }
    return Settings(_env_file=None, **(given | more))


def ask(server: OpenAIServer, purse: Purse, times: int = 1, *, forgiving: bool = False, **more: Any) -> Reply:
    """The last of so many answers; those before it may be of no use where that is forgiven."""

    async def asking() -> Reply:
        llm = build_llm(settings(server, **more))
        assert llm is not None
        try:
            for _ in range(times - 1):
                with suppress(LlmFailure) if forgiving else nullcontext():
                    await llm.ask(QUESTION, FORM, purse)
            return await llm.ask(QUESTION, FORM, purse)
        finally:
            await llm.aclose()

    return asyncio.run(asking())


def failure(server: OpenAIServer, script: str, **more: Any) -> LlmFailure:
    server.chat = script
    with pytest.raises(LlmFailure) as caught:
        ask(server, Purse(), **more)
    return caught.value


def test_without_settings_there_is_no_model() -> None:
    assert build_llm(Settings(_env_file=None)) is None


def test_a_question_is_sent_with_key_model_and_schema() -> None:
    with OpenAIServer() as server:
        server.replies = [{"actions": []}]

        reply = ask(server, Purse())

        (call,) = server.calls_to("chat")
    assert read_object(reply.text, "actions") == {"actions": []}
    assert call.authorization == "Bearer sk-test"
    assert call.body["model"] == "scripted"
    assert call.body["temperature"] == 0
    assert call.body["response_format"]["json_schema"]["schema"] == {"type": "object"}


def test_tokens_are_the_endpoints_own_count() -> None:
    purse = Purse()
    with OpenAIServer() as server:
        reply = ask(server, purse)

    assert purse.calls == 1
    assert purse.tokens == reply.tokens > 0


@pytest.mark.parametrize("script", ["no_json_schema", "schema_crash"])
def test_an_endpoint_that_refuses_the_schema_is_asked_without_it_and_that_is_remembered(script: str) -> None:
    purse = Purse()
    with OpenAIServer() as server:
        server.chat = script

        ask(server, purse, times=2)

        formats = [call.body["response_format"]["type"] for call in server.calls_to("chat")]
    assert formats == ["json_schema", "json_object", "json_object"]
    assert purse.calls == 3


def test_a_form_that_brought_an_answer_of_no_use_was_taken_all_the_same() -> None:
    with OpenAIServer() as server:
        server.chat = ["no_json_schema", "truncated", "ok"]

        ask(server, Purse(), times=2, forgiving=True)

        formats = [call.body["response_format"]["type"] for call in server.calls_to("chat")]
    assert formats == ["json_schema", "json_object", "json_object"]


def test_a_request_that_is_refused_in_every_form_is_to_be_divided() -> None:
    with OpenAIServer() as server:
        refused = failure(server, "400")

        assert (refused.cause, refused.remedy) == ("rejected", "divide")
        assert len(server.calls_to("chat")) == 5


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("401", "unauthorized"),
        ("403", "unauthorized"),
        ("402", "no_credit"),
        ("quota", "no_credit"),
        ("404", "not_found"),
    ],
)
def test_what_only_another_setting_mends_is_not_tried_again(script: str, cause: str) -> None:
    with OpenAIServer() as server:
        found = failure(server, script)

        assert (found.cause, found.remedy) == (cause, "configure")
        assert len(server.calls_to("chat")) == 1


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("429", "rate_limited"),
        ("503", "rate_limited"),
        ("500", "server_error"),
        ("502", "server_error"),
        ("hang_up", "unreachable"),
    ],
)
def test_what_passes_by_itself_is_for_later(script: str, cause: str) -> None:
    with OpenAIServer() as server:
        found = failure(server, script)

        assert (found.cause, found.remedy) == (cause, "wait")
        assert len(server.calls_to("chat")) == 1


def test_an_answer_that_does_not_come_is_for_later() -> None:
    with OpenAIServer() as server:
        found = failure(server, "timeout", llm_timeout_s=0.2)

    assert (found.cause, found.remedy) == ("timeout", "wait")


def test_the_endpoints_own_pause_is_kept() -> None:
    with OpenAIServer() as server:
        assert failure(server, "429:7").retry_after == 7


def test_a_truncated_answer_is_recognised() -> None:
    with OpenAIServer() as server:
        server.replies = [{"actions": []}]

        assert failure(server, "truncated").cause == "truncated"


def test_a_page_of_html_is_no_answer() -> None:
    with OpenAIServer() as server:
        assert failure(server, "html").cause == "unreadable"


@pytest.mark.parametrize("script", ["ok", "fenced", "prose", "think"])
def test_the_object_is_found_in_fences_prose_and_thinking(script: str) -> None:
    reply = {"actions": [{"action": "digest", "sources": ["F1"], "text": "A {braced} text."}]}
    with OpenAIServer() as server:
        server.chat, server.replies = script, [reply]

        assert read_object(ask(server, Purse()).text, "actions") == reply


@pytest.mark.parametrize("script", ["trailing_comma", "list", "empty", "null"])
def test_a_spoilt_answer_is_an_error_and_not_an_empty_one(script: str) -> None:
    with OpenAIServer() as server:
        server.chat, server.replies = script, [{"actions": []}]

        reply = ask(server, Purse())

    with pytest.raises(LlmFailure):
        read_object(reply.text, "actions")


@pytest.mark.parametrize(
    "text",
    [
        "Sure {ok}, here: {}",
        '{"actions": [',
        '{"action": "digest"}',
        '{"actions": []} or rather {"actions": [1]}',
        "[" * 100_000,
    ],
)
def test_a_text_without_one_clear_object_is_an_error(text: str) -> None:
    with pytest.raises(LlmFailure):
        read_object(text, "actions")


def test_prose_with_braces_before_the_object_does_no_harm() -> None:
    assert read_object('Sure {ok}, here: {"actions": [1]}', "actions") == {"actions": [1]}


def test_thinking_that_only_ends_does_no_harm() -> None:
    assert read_object('maybe {"actions": []}</think>{"actions": [1]}', "actions") == {"actions": [1]}


@pytest.mark.parametrize("url", ["http://h/v1", "http://h/v1/", "http://h/v1/chat/completions", " http://h/v1 "])
def test_the_address_may_be_given_with_or_without_its_end(url: str) -> None:
    async def built() -> Sequence[object]:
        llm = LanguageModel(Settings(_env_file=None), url, "m")
        await llm.aclose()
        return [llm._url]

    assert [str(found) for found in asyncio.run(built())] == ["http://h/v1/chat/completions"]
