"""Pruning removes what nobody used for long, lists exactly that beforehand, and leaves a stone for each."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from app.embedded import Cluster
from tests.clients import Memory, make_key
from tests.conftest import settings_for
from tests.upkeep.ageing import age
from tests.working import findings, run_job, working

OLD = 730


@pytest.fixture(autouse=True, scope="module")
def worker(database: Cluster) -> Iterator[None]:
    with working(settings_for(database, decay_every_h=0, prune_every_h=0)):
        yield


def ids(items: list[Any]) -> list[str]:
    return [item["fact_id"] for item in items]


def test_an_old_fact_that_nobody_used_is_removed(memory: Memory, database: Cluster) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    age(database, [fact["id"]], days=OLD)

    job = run_job(memory, "prune")

    assert job["counts"] == {"pruned": 1}
    memory.get(f"/v1/facts/{fact['id']}", status=404)


def test_a_fresh_fact_stays_whatever_it_weighs(memory: Memory, owner: psycopg.Connection[Any]) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    owner.execute(
        "UPDATE fact_use SET weight = 0, last_accessed_at = now() - interval '2 years' WHERE fact_id = %s", [fact["id"]]
    )

    job = run_job(memory, "prune")

    assert job["counts"] == {"pruned": 0}


def test_an_old_fact_that_was_recalled_stays(memory: Memory, database: Cluster, owner: psycopg.Connection[Any]) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    age(database, [fact["id"]], days=OLD)
    owner.execute("UPDATE fact_use SET weight = 0, last_accessed_at = now() WHERE fact_id = %s", [fact["id"]])

    job = run_job(memory, "prune")

    assert job["counts"] == {"pruned": 0}


def test_an_old_fact_that_was_stated_again_stays(memory: Memory, database: Cluster) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    age(database, [fact["id"]], days=OLD)
    memory.remember("The boiler is serviced by Kettil.")

    job = run_job(memory, "prune")

    assert job["counts"] == {"pruned": 0}


def test_a_pinned_fact_stays(memory: Memory, database: Cluster) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    memory.post(f"/v1/facts/{fact['id']}/pin", {})
    age(database, [fact["id"]], days=OLD)

    job = run_job(memory, "prune")

    assert job["counts"] == {"pruned": 0}


def test_facts_in_an_open_conflict_stay_until_it_is_resolved(
    memory: Memory, database: Cluster, owner: psycopg.Connection[Any]
) -> None:
    memory.policy(policy="suggest")
    one = memory.fact("Billing runs on Polar.", subject="billing")
    other = memory.remember("Billing runs on Paddle.", subject="billing")
    age(database, [one["id"], other["fact"]["id"]], days=OLD)

    during = run_job(memory, "prune")
    owner.execute("UPDATE links SET resolved_at = now() WHERE namespace = %s", [memory.namespace])
    after = run_job(memory, "prune")

    assert other["conflicts"]
    assert during["counts"] == {"pruned": 0}
    assert after["counts"] == {"pruned": 2}


def test_sources_stay_as_long_as_their_digest_does(
    memory: Memory, database: Cluster, owner: psycopg.Connection[Any]
) -> None:
    source = memory.fact("The boiler is serviced by Kettil.")
    digest = digest_of(memory, owner, source)
    age(database, [source["id"]], days=OLD)

    with_digest = run_job(memory, "prune")
    age(database, [digest], days=OLD)
    without = run_job(memory, "prune")

    assert with_digest["counts"] == {"pruned": 0}
    assert without["counts"] == {"pruned": 2}


def digest_of(memory: Memory, owner: psycopg.Connection[Any], source: Any) -> str:
    """The id of a digest made from a fact, as consolidation would make it."""
    digest = memory.fact("Kettil looks after the heating.")
    owner.execute("ALTER TABLE ledger.facts DISABLE TRIGGER facts_keep_immutable")
    owner.execute("UPDATE ledger.facts SET kind = 'digest' WHERE id = %s", [digest["id"]])
    owner.execute("ALTER TABLE ledger.facts ENABLE TRIGGER facts_keep_immutable")
    owner.execute(
        "INSERT INTO links (namespace, id, source_id, target_id, kind, drawn_by, drawn_at)"
        " VALUES (%s, gen_random_uuid(), %s, %s, 'derived_from', 'test', now())",
        [memory.namespace, digest["id"], source["id"]],
    )
    return str(digest["id"])


def test_the_middle_of_a_chain_stays_as_long_as_its_older_end_does(memory: Memory, database: Cluster) -> None:
    first = memory.fact("Billing runs on Lemon Squeezy.", subject="billing")
    middle = memory.supersede(first["id"], content="Billing runs on Polar.")["fact"]
    last = memory.supersede(middle["id"], content="Billing runs on Paddle.")["fact"]
    age(database, [middle["id"]], days=OLD)

    job = run_job(memory, "prune")

    assert job["counts"] == {"pruned": 0}
    assert {fact["id"] for fact in memory.history(last["id"])["facts"]} == {first["id"], middle["id"], last["id"]}


def test_a_chain_is_taken_off_from_its_oldest_end(memory: Memory, database: Cluster) -> None:
    first = memory.fact("Billing runs on Lemon Squeezy.", subject="billing")
    middle = memory.supersede(first["id"], content="Billing runs on Polar.")["fact"]
    last = memory.supersede(middle["id"], content="Billing runs on Paddle.")["fact"]
    age(database, [first["id"], middle["id"]], days=OLD)

    job = run_job(memory, "prune")

    assert job["counts"] == {"pruned": 2}
    assert [fact["id"] for fact in memory.history(last["id"])["facts"]] == [last["id"]]
    assert memory.texts() == ["Billing runs on Paddle."]


def test_a_receipt_stays_for_the_minimum_age_after_the_retirement(memory: Memory, database: Cluster) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    age(database, [fact["id"]], days=OLD)
    memory.forget(fact["id"])

    job = run_job(memory, "prune")

    assert job["counts"] == {"pruned": 0}
    memory.get(f"/v1/facts/{fact['id']}", status=410)


def test_a_forgotten_fact_goes_with_the_entry_that_ended_it(
    memory: Memory, database: Cluster, owner: psycopg.Connection[Any]
) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    memory.forget(fact["id"])
    rows = owner.execute("SELECT id::text FROM ledger.facts WHERE namespace = %s", [memory.namespace]).fetchall()
    age(database, [id_ for (id_,) in rows], days=OLD)

    job = run_job(memory, "prune")

    assert job["counts"] == {"pruned": 2}
    for table in ("ledger.facts", "chains", "links", "fact_use"):
        left = owner.execute(f"SELECT count(*) FROM {table} WHERE namespace = %s", [memory.namespace]).fetchone()
        assert left == (0,), table


def test_a_state_that_is_yet_to_come_stays(memory: Memory, database: Cluster) -> None:
    fact = memory.fact("Berths are let by Solveig.", subject="berths", valid_from="2999-01-01T00:00:00Z")
    age(database, [fact["id"]], days=OLD)

    job = run_job(memory, "prune")

    assert job["counts"] == {"pruned": 0}


def test_a_dry_run_lists_what_the_run_removes_and_a_second_run_removes_nothing(
    memory: Memory, database: Cluster
) -> None:
    mixed = [memory.fact(f"Shelf {n} holds crate {n}.", subject=f"shelf.{n}") for n in range(12)]
    heads = [memory.supersede(fact["id"], content=f"{fact['content']} It is sealed.")["fact"] for fact in mixed[:6]]
    age(database, [fact["id"] for fact in mixed], days=OLD)
    age(database, [heads[0]["id"], heads[3]["id"]], days=OLD)

    dry = run_job(memory, "prune", dry_run=True)
    untouched = len(memory.current())
    wet = run_job(memory, "prune")
    again = run_job(memory, "prune")

    planned, done = findings(memory, dry), findings(memory, wet)
    assert untouched == 12
    assert sorted(ids(planned)) == sorted(ids(done))
    assert set(ids(done)) == {fact["id"] for fact in [*mixed, heads[0], heads[3]]}
    assert {item["rule"] for item in planned + done} == {"unused/1"}
    assert again["counts"] == {"pruned": 0}


def test_a_removed_fact_leaves_a_stone_without_its_words(
    memory: Memory, database: Cluster, owner: psycopg.Connection[Any]
) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.", subject="boiler", scope="house/a")
    age(database, [fact["id"]], days=OLD)

    job = run_job(memory, "prune")

    stone = owner.execute(
        "SELECT actor, scope, detail, detail::text FROM audit_events WHERE fact_id = %s AND action = 'pruned'",
        [fact["id"]],
    ).fetchone()
    assert stone is not None
    assert stone[:2] == ("worker", "house/a")
    assert (stone[2]["rule"], stone[2]["job"], stone[2]["kind"]) == ("unused/1", job["id"], "state")
    assert "Kettil" not in stone[3]


def test_pruning_takes_the_words_out_of_the_counts(
    memory: Memory, database: Cluster, owner: psycopg.Connection[Any]
) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    age(database, [fact["id"]], days=OLD)

    run_job(memory, "prune")

    counted = owner.execute(
        "SELECT coalesce(sum(facts), 0)::int, coalesce(sum(tokens), 0)::int FROM term_counts WHERE namespace = %s",
        [memory.namespace],
    ).fetchone()
    assert counted == (0, 0)


def test_one_scope_may_be_pruned_alone(memory: Memory, database: Cluster) -> None:
    here = memory.fact("The boiler is serviced by Kettil.", scope="house/a")
    there = memory.fact("The boiler is serviced by Dagny.", scope="house/b")
    age(database, [here["id"], there["id"]], days=OLD)

    run_job(memory, "prune", scope="house/a")

    assert memory.texts() == ["The boiler is serviced by Dagny."]


def test_another_namespace_is_left_alone(memory: Memory, database: Cluster, service_url: str) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    age(database, [fact["id"]], days=OLD)
    with another(database, service_url) as other:
        run_job(other, "prune")

    assert memory.texts() == ["The boiler is serviced by Kettil."]


def another(database: Cluster, service_url: str) -> Memory:
    return Memory(service_url, make_key(database, "ns-other", roles=["read", "write", "curate"]), "ns-other")


def test_the_worker_cannot_delete_by_itself(database: Cluster) -> None:
    with psycopg.connect(database.worker_dsn, autocommit=True) as connection:
        connection.execute("SET palimpsest.removing = 'on'")

        for table in ("ledger.facts", "facts_history", "facts_active", "audit_events"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"DELETE FROM {table}")


def test_the_api_cannot_prune(as_api: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        as_api.execute("SELECT prune_facts('n', NULL, 1, 1, interval '0', ARRAY[]::uuid[], NULL, 'r')")
