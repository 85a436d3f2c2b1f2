"""What an embedder promises, asked of the local model and of a scripted endpoint over a real socket."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import repeat
from pathlib import Path
from typing import TypeVar

import httpx
import numpy as np
import pytest
import structlog
from pydantic import SecretStr

from app.embedding import (
    EmbedderUnavailable,
    LocalEmbedder,
    Profile,
    RemoteEmbedder,
    Vectors,
    build_embedder,
)
from app.embedding.answer import retry_after_s
from app.embedding.contract import batches, unit_rows
from app.embedding.remote import endpoint, profile_name
from tests.openai_server import OpenAIServer

KETTLE = "The spare key is behind the copper kettle."
T = TypeVar("T")

STANDUP = "The team stand-up moved to nine thirty."


@dataclass(frozen=True)
class Settings:
    embedding_url: str | None = None
    embedding_model: str | None = None
    embedding_api_key: SecretStr | None = None
    embedding_dimensions: int | None = None
    embedding_timeout_s: float = 10.0
    embedding_batch: int = 64
    embedding_query_prefix: str = ""
    embedding_document_prefix: str = ""


@pytest.fixture(scope="module")
def local() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.fixture
def settings(server: OpenAIServer) -> Settings:
    return Settings(embedding_url=server.base_url, embedding_model="stub-a")


def with_remote(settings: Settings, use: Callable[[RemoteEmbedder], Awaitable[T]], pause_s: float = 60.0) -> T:
    """What `use` gives, run with an embedder of its own that is closed afterwards."""

    async def session() -> T:
        assert settings.embedding_url
        assert settings.embedding_model
        embedder = RemoteEmbedder(settings, settings.embedding_url, settings.embedding_model, pause_s=pause_s)
        try:
            return await use(embedder)
        finally:
            await embedder.aclose()

    return asyncio.run(session())


def queries(settings: Settings, *texts: str) -> Vectors:
    return with_remote(settings, lambda embedder: embedder.embed_queries(texts))


def documents(settings: Settings, *texts: str) -> Vectors:
    return with_remote(settings, lambda embedder: embedder.embed_documents(texts))


def failure(settings: Settings, *texts: str) -> EmbedderUnavailable:
    with pytest.raises(EmbedderUnavailable) as caught:
        documents(settings, *texts)
    return caught.value


async def failures(embedder: RemoteEmbedder, times: int) -> list[EmbedderUnavailable]:
    found = []
    for _ in range(times):
        with pytest.raises(EmbedderUnavailable) as caught:
            await embedder.embed_queries([KETTLE])
        found.append(caught.value)
    return found


def is_unit(rows: Vectors) -> bool:
    return bool(np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5))


# The local model


def test_the_local_model_gives_float32_unit_vectors_in_the_order_of_the_texts(local: LocalEmbedder) -> None:
    together = asyncio.run(local.embed_documents([KETTLE, STANDUP]))
    alone = asyncio.run(local.embed_documents([STANDUP]))

    assert (together.shape, str(together.dtype)) == ((2, 256), "float32")
    assert is_unit(together)
    assert np.array_equal(together[1], alone[0])


def test_a_related_sentence_is_nearer_than_an_unrelated_one(local: LocalEmbedder) -> None:
    query, kettle, standup = asyncio.run(local.embed_queries(["Where do we keep the key?", KETTLE, STANDUP]))

    assert query @ kettle > query @ standup


def test_a_text_has_the_same_vector_alone_and_in_a_batch_of_many_lengths(local: LocalEmbedder) -> None:
    texts = [f"{KETTLE} {'It is old. ' * (n % 50)}" for n in range(200)]

    together = asyncio.run(local.embed_documents(texts))

    assert np.array_equal(together[149], asyncio.run(local.embed_documents([texts[149]]))[0])


def test_line_breaks_and_repeated_blanks_do_not_change_a_local_vector(local: LocalEmbedder) -> None:
    plain, wrapped = asyncio.run(local.embed_documents([KETTLE, KETTLE.replace(" ", "\n  ")]))

    assert np.array_equal(plain, wrapped)


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000"])
def test_a_blank_text_gives_a_row_of_zeros_and_spoils_no_other(local: LocalEmbedder, blank: str) -> None:
    rows = asyncio.run(local.embed_documents([blank, KETTLE]))

    assert not rows[0].any()
    assert is_unit(rows[1:])


@pytest.mark.parametrize(
    "text", ["\U0001f600", "\u200b", "\x00", "\ue000", "\U0001f600" * 20_000, "x" * 20_000, "鍵" * 20_000]
)
def test_a_strange_or_long_text_gets_a_finite_vector(local: LocalEmbedder, text: str) -> None:
    rows = asyncio.run(local.embed_documents([text]))

    assert is_unit(rows)


def test_no_texts_give_no_rows(local: LocalEmbedder) -> None:
    assert asyncio.run(local.embed_documents([])).shape == (0, 256)


def test_a_large_local_batch_leaves_the_event_loop_free(local: LocalEmbedder) -> None:
    async def still_running_after_one_turn() -> bool:
        work = asyncio.create_task(local.embed_documents([KETTLE] * 3_000))
        await asyncio.sleep(0)
        running = not work.done()
        await work
        return running

    assert asyncio.run(still_running_after_one_turn())


def test_the_local_model_opens_no_connection_and_needs_no_cache(tmp_path: Path) -> None:
    program = """
import sys

def refuse(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        raise RuntimeError(f"network use: {event} {args}")

sys.addaudithook(refuse)
import asyncio
from app.embedding import LocalEmbedder
print(asyncio.run(LocalEmbedder().embed_documents(["a key", "a kettle"])).shape)
"""
    environment = {"HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[1]), "PATH": ""}

    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)

    assert (run.returncode, run.stdout, run.stderr) == (0, "(2, 256)\n", "")
    assert list(tmp_path.iterdir()) == []


# Choosing an embedder


def test_without_settings_the_local_model_is_used() -> None:
    assert build_embedder(Settings()).profile == Profile("wordllama-l2-supercat-256", 256)


def test_an_address_with_a_model_is_used_instead(settings: Settings) -> None:
    assert build_embedder(replace(settings, embedding_dimensions=64)).profile == Profile("stub-a-64", 64)


@pytest.mark.parametrize("half", [{"embedding_url": "http://127.0.0.1/v1"}, {"embedding_model": "stub-a"}])
def test_half_a_configuration_is_refused(half: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="EMBEDDING_URL and EMBEDDING_MODEL"):
        build_embedder(Settings(**half))  # type: ignore[arg-type]  # Only text fields are passed.


@pytest.mark.parametrize("url", ["localhost:8080/v1", "ftp://example.org", "/v1", "http://"])
def test_an_address_that_is_no_web_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="EMBEDDING_URL"):
        endpoint(url)


@pytest.mark.parametrize(
    ("base", "full"),
    [
        ("http://h/v1", "http://h/v1/embeddings"),
        ("http://h/v1/", "http://h/v1/embeddings"),
        ("http://h:81", "http://h:81/embeddings"),
        ("http://h/v1/embeddings", "http://h/v1/embeddings"),
        ("https://h/openai?api-version=1", "https://h/openai/embeddings?api-version=1"),
    ],
)
def test_the_address_is_taken_as_it_is_commonly_written(base: str, full: str) -> None:
    assert str(endpoint(base)) == full


@pytest.mark.parametrize("model", ["BAAI/bge-m3", "x" * 300, "模型", "a/b c:latest"])
def test_a_profile_name_is_a_slug_whatever_the_model_is_called(model: str) -> None:
    name = profile_name(model, 1024, ("", ""))

    assert len(name) <= 100
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")


def test_models_and_prefixes_that_differ_have_profiles_that_differ() -> None:
    names = {
        profile_name("a/b", 64, ("", "")),
        profile_name("a-b", 64, ("", "")),
        profile_name("A-b", 64, ("", "")),
        profile_name("a-b", 128, ("", "")),
        profile_name("a-b", 64, ("query: ", "")),
        profile_name("a-b", 64, ("", "query: ")),
    }

    assert len(names) == 6


# A healthy endpoint


def test_the_endpoint_gives_unit_vectors_that_are_near_where_words_are_shared(settings: Settings) -> None:
    rows = documents(settings, KETTLE, "the copper kettle", STANDUP)

    assert (rows.shape, str(rows.dtype)) == ((3, 64), "float32")
    assert is_unit(rows)
    assert rows[0] @ rows[1] > rows[0] @ rows[2]


def test_the_request_is_what_the_protocol_asks_for(server: OpenAIServer, settings: Settings) -> None:
    documents(replace(settings, embedding_api_key=SecretStr("sk-test\n")), KETTLE)

    (call,) = server.calls_to("embeddings")
    assert call.body == {"model": "stub-a", "input": [KETTLE], "encoding_format": "float"}
    assert call.authorization == "Bearer sk-test"


def test_dimensions_are_asked_for_only_if_they_are_configured(server: OpenAIServer, settings: Settings) -> None:
    rows = documents(replace(settings, embedding_dimensions=16), KETTLE)

    assert server.calls_to("embeddings")[0].body["dimensions"] == 16
    assert rows.shape == (1, 16)


def test_the_profile_is_known_from_the_first_answer_on(settings: Settings) -> None:
    async def before_and_after(embedder: RemoteEmbedder) -> list[Profile | None]:
        before = embedder.profile
        await embedder.embed_documents([KETTLE])
        return [before, embedder.profile]

    assert with_remote(settings, before_and_after) == [None, Profile("stub-a-64", 64)]


def test_prefixes_go_before_queries_and_documents(server: OpenAIServer, settings: Settings) -> None:
    prefixed = replace(settings, embedding_query_prefix="query: ", embedding_document_prefix="passage: ")

    queries(prefixed, KETTLE)
    documents(prefixed, KETTLE)

    sent = [call.body["input"] for call in server.calls_to("embeddings")]
    assert sent == [[f"query: {KETTLE}"], [f"passage: {KETTLE}"]]


def test_many_texts_are_sent_in_batches_and_come_back_in_order(server: OpenAIServer, settings: Settings) -> None:
    texts = [f"room {n}" for n in range(50)]

    rows = documents(replace(settings, embedding_batch=8), *texts)

    sizes = [len(call.body["input"]) for call in server.calls_to("embeddings")]
    assert sorted(sizes) == [2, 8, 8, 8, 8, 8, 8]
    assert np.allclose(rows, documents(settings, *texts), atol=1e-6)


def test_long_texts_are_sent_in_smaller_batches() -> None:
    texts = ["a" * 30, "b" * 30, "c" * 200, "d", "e"]

    assert [len(run) for run in batches(texts, most_texts=64, most_characters=100)] == [2, 1, 2]


def test_an_answer_in_another_order_is_put_in_order(server: OpenAIServer, settings: Settings) -> None:
    straight = documents(settings, KETTLE, STANDUP)

    server.embeddings = "shuffled"

    assert np.array_equal(documents(settings, KETTLE, STANDUP), straight)


def test_a_blank_text_is_not_sent_and_gives_a_row_of_zeros(server: OpenAIServer, settings: Settings) -> None:
    rows = documents(settings, " ", KETTLE)

    assert server.calls_to("embeddings")[0].body["input"] == [KETTLE]
    assert not rows[0].any()
    assert is_unit(rows[1:])


def test_no_texts_cause_no_call(server: OpenAIServer, settings: Settings) -> None:
    assert len(documents(settings)) == 0
    assert server.calls_to("embeddings") == []


def test_two_models_of_one_server_are_two_spaces(settings: Settings) -> None:
    one = documents(settings, KETTLE)
    other = documents(replace(settings, embedding_model="stub-b"), KETTLE)

    assert abs(float(one[0] @ other[0])) < 0.5


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_rows_of_any_magnitude_become_unit_vectors(scale: float) -> None:
    rows = unit_rows(np.array([[3.0, -4.0]]) * scale)

    assert np.allclose(rows, [[0.6, -0.8]])


# A failing endpoint


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("401", "unauthorized"),
        ("403", "unauthorized"),
        ("402", "payment_required"),
        ("quota", "payment_required"),
        ("404", "not_found"),
    ],
)
def test_a_refusal_that_only_a_person_can_mend_is_not_retried(
    server: OpenAIServer, settings: Settings, script: str, cause: str
) -> None:
    server.embeddings = script

    refused = failure(settings, KETTLE)

    assert (refused.cause, refused.permanent) == (cause, True)
    assert len(server.calls_to("embeddings")) == 1


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("wrong_count", "bad_answer"),
        ("wrong_index", "bad_answer"),
        ("nan", "bad_answer"),
        ("text", "bad_answer"),
        ("html", "bad_answer"),
        ("302", "bad_answer"),
        ("400", "rejected"),
        ("413", "rejected"),
    ],
)
def test_an_answer_that_another_try_would_not_change_is_not_retried(
    server: OpenAIServer, settings: Settings, script: str, cause: str
) -> None:
    server.embeddings = script

    refused = failure(settings, KETTLE, STANDUP)

    assert (refused.cause, refused.permanent) == (cause, False)
    assert len(server.calls_to("embeddings")) == 1


def test_an_answer_of_other_dimensions_than_configured_is_refused(server: OpenAIServer, settings: Settings) -> None:
    server.embeddings = "wrong_dims"

    assert failure(replace(settings, embedding_dimensions=64), KETTLE).cause == "bad_answer"


def test_an_answer_of_other_dimensions_than_before_is_refused(server: OpenAIServer, settings: Settings) -> None:
    server.embeddings = ["ok", "wrong_dims"]

    async def twice(embedder: RemoteEmbedder) -> list[EmbedderUnavailable]:
        await embedder.embed_queries([KETTLE])
        return await failures(embedder, 1)

    assert with_remote(settings, twice)[0].cause == "bad_answer"


@pytest.mark.parametrize("script", ["500", "503", "429", "429:0", "408", "hang_up"])
def test_a_passing_failure_is_retried(server: OpenAIServer, settings: Settings, script: str) -> None:
    server.embeddings = [script, "ok"]

    assert is_unit(documents(settings, KETTLE))
    assert len(server.calls_to("embeddings")) == 2


@pytest.mark.parametrize(
    ("script", "cause"), [("500", "server_error"), ("429", "rate_limited"), ("hang_up", "unreachable")]
)
def test_a_lasting_failure_is_given_up_after_a_few_tries(
    server: OpenAIServer, settings: Settings, script: str, cause: str
) -> None:
    server.embeddings = script

    refused = failure(settings, KETTLE)

    assert (refused.cause, refused.permanent) == (cause, False)
    assert len(server.calls_to("embeddings")) == RemoteEmbedder.DOCUMENT_ATTEMPTS


def test_a_query_is_given_up_sooner_than_a_document(server: OpenAIServer, settings: Settings) -> None:
    server.embeddings = "500"

    with_remote(settings, lambda embedder: failures(embedder, 1))

    assert len(server.calls_to("embeddings")) == RemoteEmbedder.QUERY_ATTEMPTS


def test_a_wait_longer_than_the_deadline_is_reported_instead_of_waited_for(
    server: OpenAIServer, settings: Settings
) -> None:
    server.embeddings = "429:60"

    limited = failure(settings, KETTLE)

    assert (limited.cause, limited.retry_after) == ("rate_limited", 60.0)
    assert len(server.calls_to("embeddings")) == 1


def limited_for_a_second() -> Iterator[str]:
    """Refuses every call within a second of the first one."""
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        yield "429:1"
    yield from repeat("ok")


def test_a_retry_waits_as_long_as_the_endpoint_asks(server: OpenAIServer, settings: Settings) -> None:
    server.embeddings = limited_for_a_second()

    documents(settings, KETTLE)

    assert [call.script for call in server.calls_to("embeddings")] == ["429:1", "ok"]


@pytest.mark.parametrize("script", ["timeout", "slow:30"])
def test_an_endpoint_that_does_not_answer_is_given_up(server: OpenAIServer, settings: Settings, script: str) -> None:
    server.embeddings = script

    assert failure(replace(settings, embedding_timeout_s=0.3), KETTLE).cause == "timeout"


def test_an_endpoint_that_is_not_there_is_unreachable(settings: Settings) -> None:
    with OpenAIServer() as gone:
        address = gone.base_url

    assert failure(replace(settings, embedding_url=address), KETTLE).cause == "unreachable"


def test_one_failed_batch_fails_the_call_and_stops_the_others(server: OpenAIServer, settings: Settings) -> None:
    server.embeddings = ["ok", "ok", "402"]

    refused = failure(replace(settings, embedding_batch=1), *[f"room {n}" for n in range(200)])

    assert refused.cause == "payment_required"
    assert len(server.calls_to("embeddings")) < 20


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("", None), ("soon", None), ("7", 7.0), ("-7", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0)],
)
def test_a_retry_after_header_is_read_in_either_form(header: str, seconds: float | None) -> None:
    assert retry_after_s(httpx.Response(429, headers={"Retry-After": header})) == seconds


def test_a_retry_after_date_counts_from_now() -> None:
    header = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)

    seconds = retry_after_s(httpx.Response(503, headers={"Retry-After": header}))

    assert seconds is not None
    assert 0 < seconds <= 100


# Leaving a failing endpoint alone


@pytest.mark.parametrize(("script", "calls"), [("402", 1), ("401", 1), ("429:60", 1), ("500", 6), ("html", 3)])
def test_a_failing_endpoint_is_left_alone_for_a_while(
    server: OpenAIServer, settings: Settings, script: str, calls: int
) -> None:
    server.embeddings = script

    found = with_remote(settings, lambda embedder: failures(embedder, 10))

    assert len(server.calls_to("embeddings")) == calls
    assert len({refused.cause for refused in found}) == 1
    assert found[-1].retry_after is not None


def test_a_text_that_the_endpoint_rejects_does_not_keep_others_from_it(
    server: OpenAIServer, settings: Settings
) -> None:
    server.embeddings = ["400"] * 5 + ["ok"]

    async def after_rejections(embedder: RemoteEmbedder) -> Vectors:
        await failures(embedder, 5)
        return await embedder.embed_queries([STANDUP])

    assert is_unit(with_remote(settings, after_rejections))


def test_a_recovered_endpoint_is_used_again_after_the_pause(server: OpenAIServer, settings: Settings) -> None:
    server.embeddings = ["402", "ok"]

    async def until_it_answers(embedder: RemoteEmbedder) -> tuple[str | None, Vectors, str | None]:
        await failures(embedder, 1)
        broken = embedder.last_failure
        await asyncio.sleep(0.06)
        return broken, await embedder.embed_queries([KETTLE]), embedder.last_failure

    broken, rows, mended = with_remote(settings, until_it_answers, pause_s=0.05)

    assert (broken, mended) == ("payment_required", None)
    assert is_unit(rows)


def test_a_call_of_many_batches_recovers_too(server: OpenAIServer, settings: Settings) -> None:
    server.embeddings = ["402", "ok"]

    async def then_many(embedder: RemoteEmbedder) -> Vectors:
        await failures(embedder, 1)
        await asyncio.sleep(0.06)
        return await embedder.embed_documents([f"room {n}" for n in range(12)])

    rows = with_remote(replace(settings, embedding_batch=2), then_many, pause_s=0.05)

    assert rows.shape == (12, 64)


def test_after_the_pause_one_call_tries_while_the_others_fail_at_once(server: OpenAIServer, settings: Settings) -> None:
    server.embeddings = ["402", "slow:0.3"]

    async def crowd(embedder: RemoteEmbedder) -> int:
        await failures(embedder, 1)
        await asyncio.sleep(0.06)
        asked = [embedder.embed_queries([KETTLE]) for _ in range(10)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        return sum(isinstance(answer, EmbedderUnavailable) for answer in answers)

    assert with_remote(settings, crowd, pause_s=0.05) == 9
    assert len(server.calls_to("embeddings")) == 2


def test_a_crowd_that_fails_together_counts_as_one_pause(server: OpenAIServer, settings: Settings) -> None:
    server.embeddings = ["402"] * 10 + ["ok"]

    async def crowd(embedder: RemoteEmbedder) -> Vectors:
        asked = [embedder.embed_queries([KETTLE]) for _ in range(10)]
        await asyncio.gather(*asked, return_exceptions=True)
        await asyncio.sleep(0.25)
        return await embedder.embed_queries([KETTLE])

    assert is_unit(with_remote(settings, crowd, pause_s=0.2))


def test_failures_are_logged_without_text_and_key(server: OpenAIServer, settings: Settings) -> None:
    server.embeddings = "402"

    with structlog.testing.capture_logs() as logs:
        failure(replace(settings, embedding_api_key=SecretStr("sk-secret")), KETTLE)

    assert [entry["cause"] for entry in logs] == ["payment_required"]
    assert "kettle" not in str(logs)
    assert "sk-secret" not in str(logs)
