"""Jobs are started, watched, called off and asked for again over HTTP."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from app.embedded import Cluster
from app.main import create_app
from tests.clients import Memory, make_key
from tests.conftest import settings_for
from tests.serving import running
from tests.working import finished, run_job, until, working


@pytest.fixture
def worker(database: Cluster) -> Iterator[None]:
    with working(settings_for(database, decay_every_h=0, prune_every_h=0)):
        yield


def with_key(memory: Memory, database: Cluster, **wanted: Any) -> Memory:
    """The same namespace through another key."""
    return Memory(str(memory.http.base_url), make_key(database, memory.namespace, **wanted), memory.namespace)


def listed(memory: Memory, **filters: str) -> list[Any]:
    """The first page of jobs."""
    answer = memory.http.get("/v1/jobs", params=filters)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def test_a_job_is_queued_and_says_where_to_ask_for_it(memory: Memory) -> None:
    answer = memory.http.post("/v1/jobs", json={"kind": "decay"})

    job = answer.json()
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert (job["status"], job["kind"], job["namespace"], job["scope"]) == ("queued", "decay", memory.namespace, None)
    assert (job["attempts"], job["calls"], job["tokens"], job["error"]) == (0, 0, 0, None)


@pytest.mark.usefixtures("worker")
def test_a_job_that_was_done_shows_its_counts_progress_and_times(memory: Memory) -> None:
    memory.fact("The boiler is serviced by Kettil.")

    job = run_job(memory, "decay")

    assert job["attempts"] == 1
    assert job["progress"] == {"done": 1, "total": 1}
    assert job["counts"] == {"changed": 0}
    assert job["created_at"] <= job["started_at"] <= job["finished_at"]


def test_the_same_request_with_an_idempotency_key_starts_one_job(memory: Memory) -> None:
    first = memory.post("/v1/jobs", {"kind": "decay"}, status=202, Idempotency_Key="once")
    second = memory.post("/v1/jobs", {"kind": "decay"}, status=202, Idempotency_Key="once")

    assert first["id"] == second["id"]
    assert len(memory.get("/v1/jobs")["items"]) == 1


def test_jobs_are_listed_newest_first_in_pages(memory: Memory) -> None:
    started = [memory.post("/v1/jobs", {"kind": "decay"}, status=202)["id"] for _ in range(5)]

    first = memory.get("/v1/jobs", limit=3)
    second = memory.get("/v1/jobs", limit=3, cursor=first["next_cursor"])

    assert [job["id"] for job in first["items"] + second["items"]] == started[::-1]
    assert second["next_cursor"] is None


def test_jobs_are_listed_by_kind_and_status(memory: Memory) -> None:
    decay = memory.post("/v1/jobs", {"kind": "decay"}, status=202)
    memory.post("/v1/jobs", {"kind": "prune"}, status=202)

    assert [job["id"] for job in listed(memory, kind="decay", status="queued")] == [decay["id"]]
    assert listed(memory, kind="decay", status="failed") == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"kind": "vacuum"}, "literal_error"),
        ({"kind": "decay", "when": "now"}, "extra_forbidden"),
        ({"kind": "decay", "apply": True}, "apply_is_for_review"),
        ({"kind": "prune", "mode": "propose"}, "mode_is_for_consolidate"),
        ({"kind": "decay", "scope": ""}, "string_too_short"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused(memory: Memory, body: Any, code: str) -> None:
    problem = memory.post("/v1/jobs", body, status=422)

    assert problem["errors"][0]["code"] == code


def test_a_job_in_another_namespace_is_not_started(memory: Memory) -> None:
    memory.post("/v1/jobs", {"kind": "decay", "namespace": "somebody-else"}, status=404)

    assert memory.get("/v1/jobs")["items"] == []


def test_starting_a_job_needs_a_curator_or_an_administrator(memory: Memory, database: Cluster) -> None:
    with with_key(memory, database, roles=["read", "write"]) as writer:
        writer.post("/v1/jobs", {"kind": "decay"}, status=403)
    with with_key(memory, database, roles=["admin"]) as admin:
        admin.post("/v1/jobs", {"kind": "decay"}, status=202)


def test_a_key_of_one_scope_starts_jobs_of_that_scope_only(memory: Memory, database: Cluster) -> None:
    with with_key(memory, database, roles=["read", "curate"], read_scopes=["a"], write_scopes=["a"]) as narrow:
        narrow.post("/v1/jobs", {"kind": "decay", "scope": "a"}, status=202)
        narrow.post("/v1/jobs", {"kind": "decay", "scope": "b"}, status=403)
        narrow.post("/v1/jobs", {"kind": "decay"}, status=403)


def test_a_key_sees_no_jobs_of_scopes_that_it_may_not_read(memory: Memory, database: Cluster) -> None:
    shared = memory.post("/v1/jobs", {"kind": "decay"}, status=202)
    here = memory.post("/v1/jobs", {"kind": "decay", "scope": "a"}, status=202)
    there = memory.post("/v1/jobs", {"kind": "decay", "scope": "b"}, status=202)

    with with_key(memory, database, roles=["read"], read_scopes=["a"]) as narrow:
        seen = [job["id"] for job in narrow.get("/v1/jobs")["items"]]
        narrow.get(f"/v1/jobs/{there['id']}", status=404)

    assert seen == [here["id"], shared["id"]]


def test_another_namespace_s_job_is_not_found(memory: Memory, database: Cluster) -> None:
    job = memory.post("/v1/jobs", {"kind": "decay"}, status=202)
    key = make_key(database, "ns-elsewhere", roles=["read", "curate"])

    with Memory(str(memory.http.base_url), key, "ns-elsewhere") as other:
        other.get(f"/v1/jobs/{job['id']}", status=404)
        other.get(f"/v1/jobs/{job['id']}/findings", status=404)
        other.post(f"/v1/jobs/{job['id']}/cancel", status=404)
        other.post(f"/v1/jobs/{job['id']}/retry", status=404)


def test_a_waiting_job_is_cancelled_and_never_run(memory: Memory, database: Cluster) -> None:
    job = memory.post("/v1/jobs", {"kind": "decay"}, status=202)
    cancelled = memory.post(f"/v1/jobs/{job['id']}/cancel", status=202)

    with working(settings_for(database, decay_every_h=0, prune_every_h=0)):
        run_job(memory, "decay")

    assert cancelled["status"] == "cancelled"
    assert memory.get(f"/v1/jobs/{job['id']}")["attempts"] == 0


@pytest.mark.usefixtures("worker")
def test_a_job_that_has_ended_is_neither_cancelled_nor_retried(memory: Memory) -> None:
    job = run_job(memory, "decay")

    memory.post(f"/v1/jobs/{job['id']}/cancel", status=409)
    memory.post(f"/v1/jobs/{job['id']}/retry", status=409)


@pytest.mark.usefixtures("worker")
def test_a_cancelled_job_can_be_asked_for_again(memory: Memory, database: Cluster) -> None:
    job = memory.post("/v1/jobs", {"kind": "decay", "scope": "a"}, status=202)
    memory.http.post(f"/v1/jobs/{job['id']}/cancel")
    stopped = finished(memory, job)

    if stopped["status"] == "cancelled":
        memory.post(f"/v1/jobs/{job['id']}/retry", status=202)

    assert finished(memory, job)["status"] == "succeeded"


def test_who_asked_for_a_job_is_in_the_audit_trail(memory: Memory, owner: psycopg.Connection[Any]) -> None:
    job = memory.post("/v1/jobs", {"kind": "prune", "dry_run": True}, status=202)
    memory.post(f"/v1/jobs/{job['id']}/cancel", status=202)
    memory.post(f"/v1/jobs/{job['id']}/retry", status=202)

    rows = owner.execute(
        "SELECT action, detail->>'job' FROM audit_events WHERE namespace = %s AND action LIKE 'job%%' ORDER BY id",
        [memory.namespace],
    ).fetchall()
    assert rows == [("job_requested", job["id"]), ("job_cancelled", job["id"]), ("job_retried", job["id"])]


def test_a_refused_request_leaves_no_job_in_the_queue(memory: Memory, owner: psycopg.Connection[Any]) -> None:
    memory.post("/v1/jobs", {"kind": "decay"}, status=202, Idempotency_Key="once")
    memory.post("/v1/jobs", {"kind": "prune"}, status=422, Idempotency_Key="once")

    queued = owner.execute(
        "SELECT count(*) FROM procrastinate_jobs WHERE args->>'namespace' = %s", [memory.namespace]
    ).fetchone()
    assert queued == (1,)


@pytest.mark.usefixtures("worker")
def test_a_job_whose_handler_breaks_fails_with_the_kind_of_error_and_no_text_of_a_fact(
    memory: Memory, owner: psycopg.Connection[Any]
) -> None:
    memory.fact("The boiler is serviced by Kettil.")
    owner.execute("ALTER FUNCTION decayed_weight RENAME TO decayed_weight_gone")
    try:
        job = finished(memory, memory.post("/v1/jobs", {"kind": "decay"}, status=202))
    finally:
        owner.execute("ALTER FUNCTION decayed_weight_gone RENAME TO decayed_weight")

    assert job["status"] == "failed"
    assert job["error"].startswith("UndefinedFunction (42883)")

    memory.post(f"/v1/jobs/{job['id']}/retry", status=202)
    retried = finished(memory, job)
    assert (retried["status"], retried["attempts"], retried["error"]) == ("succeeded", 2, None)


def test_one_job_of_a_kind_and_scope_runs_at_a_time(memory: Memory, database: Cluster) -> None:
    jobs = [memory.post("/v1/jobs", {"kind": "decay"}, status=202) for _ in range(10)]

    with (
        working(settings_for(database, decay_every_h=0, prune_every_h=0)),
        working(settings_for(database, decay_every_h=0, prune_every_h=0)),
    ):
        done = [finished(memory, job) for job in jobs]

    spans = sorted((job["started_at"], job["finished_at"]) for job in done)
    assert all(job["status"] == "succeeded" and job["attempts"] == 1 for job in done)
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans))


def test_the_schedule_asks_once_however_many_workers_keep_it(fresh_database: Cluster, namespace: str) -> None:
    # In a database of its own: the schedule serves every namespace, and other tests have left many.
    settings = settings_for(fresh_database, decay_every_h=1, prune_every_h=1)
    key = make_key(fresh_database, namespace)

    with (
        running(create_app(settings)) as url,
        Memory(url, key, namespace) as memory,
        working(settings),
        working(settings),
    ):
        until(lambda: {"decay", "prune"} <= {job["kind"] for job in listed(memory, status="succeeded")})
        asked = [(job["kind"], job["requested_by"]) for job in listed(memory) if job["kind"] in ("decay", "prune")]

    assert sorted(asked) == [("decay", "schedule"), ("prune", "schedule")]
