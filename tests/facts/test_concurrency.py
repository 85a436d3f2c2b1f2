"""Many callers at once, through two servers that share one database."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import httpx
import pytest

from app.embedded import Cluster
from app.main import create_app
from tests.clients import Memory, make_key
from tests.conftest import settings_for
from tests.serving import running

Request = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module")
def twin_url(database: Cluster, service_url: str) -> Iterator[str]:
    """Another server on the same database."""
    assert service_url
    app = create_app(settings_for(database))
    app.openapi()
    with running(app) as url:
        yield url


@pytest.fixture
def at_once(
    database: Cluster, namespace: str, service_url: str, twin_url: str
) -> Iterator[Callable[[Sequence[Request]], list[httpx.Response]]]:
    """Sends POST requests at the same moment, by turns to one server and to the other."""
    key = make_key(database, namespace, roles=["read", "write", "curate"], max_tier="system")
    clients = [Memory(url, key, namespace) for url in (service_url, twin_url)]

    def send(requests: Sequence[Request]) -> list[httpx.Response]:
        ready = Barrier(len(requests))

        def one(number: int) -> httpx.Response:
            path, body = requests[number]
            ready.wait()
            return clients[number % 2].http.post(path, json=body)

        with ThreadPoolExecutor(len(requests)) as pool:
            return list(pool.map(one, range(len(requests))))

    yield send
    for client in clients:
        client.http.close()


AtOnce = Callable[[Sequence[Request]], list[httpx.Response]]


# C81
@pytest.mark.parametrize("fields", [{}, {"subject": "printer.3", "kind": "state"}])
def test_fifty_identical_writes_make_one_fact(memory: Memory, at_once: AtOnce, fields: dict[str, str]) -> None:
    answers = at_once([("/v1/facts", {"content": "Printer 3 needs A3 paper."} | fields)] * 50)

    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: 49}
    assert len({answer.json()["fact"]["id"] for answer in answers}) == 1
    (fact,) = memory.current()
    assert fact["observed_count"] == 50


# C81
def test_writes_that_differ_in_case_and_space_make_one_fact(memory: Memory, at_once: AtOnce) -> None:
    texts = ["Printer 3 needs A3 paper.", "printer 3 needs a3 paper", " PRINTER 3  needs A3 paper! "]

    answers = at_once([("/v1/facts", {"content": texts[n % 3]}) for n in range(30)])

    assert {answer.status_code for answer in answers} == {200, 201}
    assert len({answer.json()["fact"]["id"] for answer in answers}) == 1
    assert len(memory.current()) == 1


# C81
def test_two_scopes_keep_one_fact_each(memory: Memory, at_once: AtOnce) -> None:
    answers = at_once([("/v1/facts", {"content": "Held.", "scope": f"s{n % 2}"}) for n in range(30)])

    assert Counter(answer.status_code for answer in answers) == {201: 2, 200: 28}
    assert len(memory.texts(scope="s0")) == len(memory.texts(scope="s1")) == 1


# C82
@pytest.mark.parametrize("how", ["supersede", "write", "amend", "existing"])
def test_of_twenty_replacements_one_wins_and_the_rest_learn_the_head(memory: Memory, at_once: AtOnce, how: str) -> None:
    held = memory.fact("Workshop is in hall 1.", subject="room")["id"]
    contents = [f"Workshop is in hall {n}." for n in range(2, 22)]
    reason = {"reason": "Moved."}
    requests: list[Request]
    if how == "write":
        requests = [("/v1/facts", {"content": text, "supersedes": [held]} | reason) for text in contents]
    elif how == "existing":
        news = [memory.fact(text, subject=f"room.{n}")["id"] for n, text in enumerate(contents)]
        requests = [(f"/v1/facts/{held}/supersede", {"by": new} | reason) for new in news]
    else:
        requests = [(f"/v1/facts/{held}/{how}", {"content": text} | reason) for text in contents]

    answers = at_once(requests)

    won = 200 if how == "existing" else 201
    assert Counter(answer.status_code for answer in answers) == {won: 1, 409: 19}
    (winner,) = (answer.json()["fact"]["id"] for answer in answers if answer.status_code == won)
    refusals = [answer.json() for answer in answers if answer.status_code == 409]
    assert {(told["code"], told["head"]) for told in refusals} == {("fact_already_retired", winner)}
    assert [fact["id"] for fact in memory.history(held)["facts"]] == [held, winner]
    assert len(memory.current()) == (20 if how == "existing" else 1)


def test_of_twenty_who_forget_a_fact_one_does(memory: Memory, at_once: AtOnce) -> None:
    held = memory.fact("Held.")["id"]

    answers = at_once([(f"/v1/facts/{held}/forget", {"reason": f"Reason {n}."}) for n in range(20)])

    outcomes = Counter(answer.json()["outcome"] for answer in answers)
    assert outcomes == {"forgotten": 1, "already_forgotten": 19}
    assert len({answer.json()["fact"]["reason"] for answer in answers}) == 1
    assert memory.actions(held) == ["remembered", "forgotten"]


def test_twenty_values_for_one_subject_end_in_one_fact_and_one_chain(memory: Memory, at_once: AtOnce) -> None:
    texts = [f"Workshop is in hall {n}." for n in range(20)]

    answers = at_once([("/v1/facts", {"content": text, "subject": "room"}) for text in texts])

    assert {answer.status_code for answer in answers} == {201}
    (current,) = memory.current()
    history = memory.history(current["id"])
    assert history["head"] == current["id"]
    assert sorted(fact["content"] for fact in history["facts"]) == sorted(texts)
    following = [fact["superseded_by"] for fact in history["facts"]]
    assert following == [fact["id"] for fact in history["facts"][1:]] + [None]


def test_writing_while_two_facts_are_restored_leaves_one_value(memory: Memory, at_once: AtOnce) -> None:
    gone = [memory.fact(f"Workshop is in hall {n}.", subject="room")["id"] for n in (1, 2)]
    memory.forget(gone[1])
    restoring = [(f"/v1/facts/{id_}/restore", {"reason": "It holds.", "replace": True}) for id_ in gone]
    writing = [("/v1/facts", {"content": f"Workshop is in hall {n}.", "subject": "room"}) for n in range(3, 9)]

    answers = at_once([*writing[:3], *restoring, *writing[3:]])

    assert {answer.status_code for answer in answers} == {200, 201}
    assert len(memory.current()) == 1


def test_batches_in_opposite_orders_all_commit(memory: Memory, at_once: AtOnce) -> None:
    items = [{"content": f"Shelf {n} holds paint.", "subject": f"shelf.{n}"} for n in range(40)]
    turned = [{"content": f"Shelf {n} holds glue.", "subject": f"shelf.{n}"} for n in reversed(range(40))]

    answers = at_once([("/v1/facts/batch", {"facts": facts}) for facts in (items, turned) * 5])

    assert {answer.status_code for answer in answers} == {200}
    assert len(memory.current()) == 40


def test_of_two_batches_that_replace_the_same_fact_one_is_refused_whole(memory: Memory, at_once: AtOnce) -> None:
    held = memory.fact("Workshop is in hall 1.")["id"]
    batches = [
        [
            {"content": f"Batch {n} was here."},
            {"content": f"Workshop is in hall {n}.", "supersedes": [held], "reason": "Moved."},
        ]
        for n in (2, 3)
    ]

    answers = at_once([("/v1/facts/batch", {"facts": facts}) for facts in batches])

    assert sorted(answer.status_code for answer in answers) == [200, 409]
    refused = next(answer.json() for answer in answers if answer.status_code == 409)
    assert refused["index"] == 1
    assert refused["head"] in {fact["id"] for fact in memory.current()}
    assert len(memory.current()) == 2


def test_two_facts_cannot_replace_each_other_at_once(memory: Memory, at_once: AtOnce) -> None:
    for _ in range(5):
        one, other = memory.fact("One.")["id"], memory.fact("Other.")["id"]
        pairs = ((one, other), (other, one))
        claims = [{"by": by, "reason": "Changed.", "force": True} for _, by in pairs]

        answers = at_once([(f"/v1/facts/{at}/supersede", claim) for (at, _), claim in zip(pairs, claims, strict=True)])

        assert sorted(answer.status_code for answer in answers) == [200, 409]
        (current,) = memory.current()
        memory.forget(current["id"])


def test_the_same_request_sent_twice_at_once_is_carried_out_once(
    memory: Memory, service_url: str, twin_url: str
) -> None:
    key = memory.http.headers["Authorization"]
    body = {"content": "Migration ran.", "kind": "event"}

    def send(url: str) -> httpx.Response:
        headers = {"Authorization": key, "Idempotency-Key": "once"}
        return httpx.post(f"{url}/v1/facts", json=body, headers=headers, timeout=30)

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(send, [service_url, twin_url] * 5))

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["fact"]["id"] for answer in answers}) == 1
    assert [answer.headers.get("Idempotency-Replayed") for answer in answers].count("true") == 9
    assert len(memory.current()) == 1


# C85
def test_counting_reads_loses_no_amendment(memory: Memory, at_once: AtOnce) -> None:
    held = memory.fact("Workshop is in hall 1.", subject="room")["id"]
    recalls: list[Request] = [("/v1/recall", {"query": "where is the workshop"})] * 20
    amend: Request = (f"/v1/facts/{held}/amend", {"content": "Workshop is in hall 1, upstairs.", "reason": "Added."})

    answers = at_once([*recalls[:10], amend, *recalls[10:]])

    assert {answer.status_code for answer in answers} == {200, 201}
    assert memory.recalled("where is the workshop") == ["Workshop is in hall 1, upstairs."]


# C86
def test_a_thousand_quick_writes_have_ids_and_moments_of_their_own(memory: Memory) -> None:
    answer = memory.batch(*[f"Reading number {n}." for n in range(1000)], status=200)

    facts = [item["fact"] for item in answer["items"]]
    assert len({fact["id"] for fact in facts}) == 1000
    moments = [fact["recorded_at"] for fact in facts]
    assert moments == sorted(set(moments))
    assert memory.texts() == [fact["content"] for fact in facts][::-1]
