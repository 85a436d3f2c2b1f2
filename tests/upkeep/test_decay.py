"""Decay lowers the weight of what nobody uses, and touches nothing else."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from app.embedded import Cluster
from tests.clients import Memory
from tests.conftest import settings_for
from tests.upkeep.ageing import age
from tests.working import run_job, working


@pytest.fixture(autouse=True, scope="module")
def worker(database: Cluster) -> Iterator[None]:
    with working(settings_for(database, decay_every_h=0, prune_every_h=0)):
        yield


def test_the_weight_halves_with_every_half_life_since_the_last_access(memory: Memory, database: Cluster) -> None:
    one = memory.fact("The boiler is serviced by Kettil.")
    three = memory.fact("The roof is serviced by Dagny.")
    age(database, [one["id"]], days=30)
    age(database, [three["id"]], days=90)

    run_job(memory, "decay")

    assert memory.get(f"/v1/facts/{one['id']}")["weight"] == pytest.approx(0.5, rel=1e-4)
    assert memory.get(f"/v1/facts/{three['id']}")["weight"] == pytest.approx(0.125, rel=1e-4)


def test_decaying_twice_is_the_same_as_once(memory: Memory, database: Cluster) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    age(database, [fact["id"]], days=30)
    first = run_job(memory, "decay")
    weight = memory.get(f"/v1/facts/{fact['id']}")["weight"]

    second = run_job(memory, "decay")

    assert first["counts"] == {"changed": 1}
    assert second["counts"] == {"changed": 0}
    assert memory.get(f"/v1/facts/{fact['id']}")["weight"] == weight


def test_an_access_gives_the_weight_back(memory: Memory, database: Cluster, owner: psycopg.Connection[Any]) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    age(database, [fact["id"]], days=90)
    run_job(memory, "decay")

    owner.execute("UPDATE fact_use SET last_accessed_at = now() WHERE fact_id = %s", [fact["id"]])
    run_job(memory, "decay")

    assert memory.get(f"/v1/facts/{fact['id']}")["weight"] == pytest.approx(1, rel=1e-4)


def test_retired_facts_decay_as_well_and_stay_retired(
    memory: Memory, database: Cluster, owner: psycopg.Connection[Any]
) -> None:
    old = memory.fact("Billing runs on Lemon Squeezy.", subject="billing")
    new = memory.supersede(old["id"], content="Billing runs on Polar.")["fact"]
    age(database, [old["id"]], days=30)
    before = owner.execute("SELECT * FROM ledger.facts WHERE id = %s", [old["id"]]).fetchone()

    run_job(memory, "decay")

    weight = owner.execute("SELECT weight FROM fact_use WHERE fact_id = %s", [old["id"]]).fetchone()
    assert weight is not None
    assert weight[0] == pytest.approx(0.5, rel=1e-4)
    assert owner.execute("SELECT * FROM ledger.facts WHERE id = %s", [old["id"]]).fetchone() == before
    assert memory.get(f"/v1/facts/{old['id']}", status=410)["head"] == new["id"]


def test_a_pinned_fact_does_not_decay(memory: Memory, database: Cluster) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    memory.post(f"/v1/facts/{fact['id']}/pin", {})
    age(database, [fact["id"]], days=300)

    run_job(memory, "decay")

    assert memory.get(f"/v1/facts/{fact['id']}")["weight"] == 1


def test_an_unpinned_fact_decays_from_its_last_access(memory: Memory, database: Cluster) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    memory.post(f"/v1/facts/{fact['id']}/pin", {})
    age(database, [fact["id"]], days=30)
    run_job(memory, "decay")

    memory.post(f"/v1/facts/{fact['id']}/unpin", {})
    run_job(memory, "decay")

    assert memory.get(f"/v1/facts/{fact['id']}")["weight"] == pytest.approx(0.5, rel=1e-4)


def test_a_dry_run_counts_the_changes_and_makes_none(memory: Memory, database: Cluster) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    age(database, [fact["id"]], days=30)

    job = run_job(memory, "decay", dry_run=True)

    assert job["counts"] == {"changed": 1}
    assert memory.get(f"/v1/facts/{fact['id']}")["weight"] == 1


def test_one_scope_may_decay_alone(memory: Memory, database: Cluster) -> None:
    here = memory.fact("The boiler is serviced by Kettil.", scope="house/a")
    there = memory.fact("The boiler is serviced by Dagny.", scope="house/b")
    age(database, [here["id"], there["id"]], days=30)

    run_job(memory, "decay", scope="house/a")

    assert memory.get(f"/v1/facts/{here['id']}")["weight"] == pytest.approx(0.5, rel=1e-4)
    assert memory.get(f"/v1/facts/{there['id']}")["weight"] == 1


def test_ages_beyond_measure_do_not_fail(memory: Memory, database: Cluster) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    age(database, [fact["id"]], days=500_000)

    run_job(memory, "decay")

    assert memory.get(f"/v1/facts/{fact['id']}")["weight"] < 1e-100


def test_decay_does_not_count_as_an_access(memory: Memory, owner: psycopg.Connection[Any]) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    accessed = datetime.fromisoformat(fact["recorded_at"]) - timedelta(days=60)
    owner.execute("UPDATE fact_use SET last_accessed_at = %s WHERE fact_id = %s", [accessed, fact["id"]])

    run_job(memory, "decay")

    row = owner.execute(
        "SELECT last_accessed_at, access_count FROM fact_use WHERE fact_id = %s", [fact["id"]]
    ).fetchone()
    assert row == (accessed, 0)
