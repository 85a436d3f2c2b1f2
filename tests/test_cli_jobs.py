"""`palimpsest jobs`, run as a person runs it."""

import json
from pathlib import Path

import pytest

from app.embedded import Cluster
from tests.clients import make_key
from tests.commands import run


@pytest.fixture
def variables(fresh_database: Cluster) -> dict[str, str]:
    make_key(fresh_database, "default")
    return {
        "DATABASE_URL": fresh_database.api_dsn,
        "WORKER_DATABASE_URL": fresh_database.worker_dsn,
        "DECAY_EVERY_H": "0",
        "PRUNE_EVERY_H": "0",
    }


def test_a_job_is_started_done_and_listed(tmp_path: Path, variables: dict[str, str]) -> None:
    started = run("jobs", "start", "prune", "--dry-run", at=tmp_path, **variables)
    listed = run("jobs", "list", "--json", at=tmp_path, **variables)

    assert started.returncode == 0, started.stderr
    assert "is succeeded: prunable 0" in started.stdout
    jobs = [json.loads(line) for line in listed.stdout.splitlines()]
    assert [(job["kind"], job["status"], job["dry_run"]) for job in jobs if job["requested_by"] == "cli"] == [
        ("prune", "succeeded", True)
    ]


def test_a_job_may_be_left_to_a_worker_cancelled_and_shown(tmp_path: Path, variables: dict[str, str]) -> None:
    started = run("jobs", "start", "decay", "--no-wait", at=tmp_path, **variables)
    id_ = started.stdout.split()[3]
    cancelled = run("jobs", "cancel", id_, at=tmp_path, **variables)
    shown = run("jobs", "show", id_, "--json", at=tmp_path, **variables)

    assert started.stdout.strip() == f"The job decay {id_} is queued"
    assert cancelled.stdout.strip() == f"The job decay {id_} is cancelled"
    assert json.loads(shown.stdout)["attempts"] == 0


def test_a_kind_that_there_is_not_is_refused_in_a_sentence(tmp_path: Path, variables: dict[str, str]) -> None:
    refused = run("jobs", "start", "vacuum", at=tmp_path, **variables)

    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: kind: ")
