"""The scripted server misbehaves as its scripts say, since other tests build on that."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import httpx
import pytest

from tests.openai_server import OpenAIServer, mix

REPLY = {"digests": [{"action": "merge", "sources": ["019aa000-0000-7000-8000-000000000001"], "text": "a [b]"}]}


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        running.replies = [REPLY]
        yield running


def chat(server: OpenAIServer, **more: Any) -> httpx.Response:
    body = {"model": "stub", "messages": [{"role": "user", "content": "What is new?"}], **more}
    return httpx.post(f"{server.base_url}/chat/completions", json=body)


def content(server: OpenAIServer, script: str) -> Any:
    server.chat = script
    return chat(server).json()["choices"][0]["message"]["content"]


def test_a_good_answer_carries_the_reply_and_its_cost(server: OpenAIServer) -> None:
    answer = chat(server).json()

    assert json.loads(answer["choices"][0]["message"]["content"]) == REPLY
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["total_tokens"] > 0


@pytest.mark.parametrize("script", ["fenced", "prose", "think", "trailing_comma", "truncated", "empty"])
def test_a_spoilt_answer_is_not_json_as_it_stands(server: OpenAIServer, script: str) -> None:
    spoilt = content(server, script)

    with pytest.raises(json.JSONDecodeError):
        json.loads(spoilt)


@pytest.mark.parametrize("script", ["fenced", "prose", "think"])
def test_a_wrapped_answer_still_holds_the_whole_reply(server: OpenAIServer, script: str) -> None:
    assert json.dumps(REPLY) in content(server, script)


def test_a_null_answer_has_no_content(server: OpenAIServer) -> None:
    assert content(server, "null") is None


def test_a_list_answer_wraps_the_reply(server: OpenAIServer) -> None:
    assert json.loads(content(server, "list")) == [REPLY]


def test_a_truncated_answer_says_so(server: OpenAIServer) -> None:
    server.chat = "truncated"

    assert chat(server).json()["choices"][0]["finish_reason"] == "length"


def test_wrong_ids_are_ids_that_were_never_shown(server: OpenAIServer) -> None:
    (digest,) = json.loads(content(server, "wrong_ids"))["digests"]

    assert digest["sources"] != REPLY["digests"][0]["sources"]
    assert digest["text"] == "a [b]"


def test_an_unknown_action_replaces_every_action(server: OpenAIServer) -> None:
    answer = json.loads(content(server, "unknown_action"))

    assert (answer["action"], answer["digests"][0]["action"]) == ("delete_all", "delete_all")


def test_a_server_without_schemas_refuses_only_that_format(server: OpenAIServer) -> None:
    server.chat = "no_json_schema"

    assert chat(server, response_format={"type": "json_schema"}).status_code == 400
    assert chat(server, response_format={"type": "json_object"}).status_code == 200


def test_replies_are_given_in_turn_and_the_last_for_ever(server: OpenAIServer) -> None:
    server.replies = ["first", "last"]

    assert [content(server, "ok") for _ in range(3)] == ["first", "last", "last"]


def test_a_failed_call_uses_up_no_reply(server: OpenAIServer) -> None:
    server.replies = ["first", "last"]
    server.chat = ["500", "429:3", "ok"]

    refused, limited, answered = chat(server), chat(server), chat(server)

    assert (refused.status_code, limited.headers["Retry-After"]) == (500, "3")
    assert answered.json()["choices"][0]["message"]["content"] == "first"


def test_a_reply_may_depend_on_the_request(server: OpenAIServer) -> None:
    server.replies = lambda body: {"asked": body["messages"][-1]["content"]}

    assert json.loads(content(server, "ok")) == {"asked": "What is new?"}


def test_every_call_is_noted_with_its_script(server: OpenAIServer) -> None:
    server.chat = "402"

    chat(server)

    (call,) = server.calls_to("chat")
    assert (call.script, call.body["model"]) == ("402", "stub")


def test_a_mix_is_the_same_for_the_same_seed() -> None:
    draws = [list(islice(mix(["ok", "500", "html"], seed), 30)) for seed in (1, 1, 2)]

    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize("script", ["fence", ["ok", "wrong_dims"]])
def test_a_script_that_does_not_exist_is_refused(server: OpenAIServer, script: str | list[str]) -> None:
    with pytest.raises(ValueError, match="no script of this name"):
        server.chat = script


def test_a_hang_up_gives_no_answer(server: OpenAIServer) -> None:
    server.chat = "hang_up"

    with pytest.raises(httpx.TransportError):
        chat(server)
