"""A checkup lists what is left to do, what makes the memory worse, and damage that was done behind its back."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from app.embedded import Cluster
from app.upkeep.checkup.schemas import CheckupOut
from app.upkeep.checkup.service import lines, looks_like_state
from tests.clients import Memory, make_key
from tests.conftest import settings_for
from tests.upkeep.attempting import Bench


def found(memory: Memory, name: str, **asked: Any) -> Any:
    """What a checkup says under this name."""
    report = memory.get("/v1/checkup", **asked)
    (finding,) = [finding for finding in report["findings"] if finding["name"] == name]
    return finding


def counts(memory: Memory) -> dict[str, int]:
    report = memory.get("/v1/checkup")
    return {finding["name"]: finding["count"] for finding in report["findings"] if finding["count"]}


def test_a_healthy_memory_has_nothing_to_do(memory: Memory) -> None:
    memory.remember("HQ is in Bergen.", subject="hq")
    memory.remember("The fern was watered.", kind="event")
    memory.remember("HQ is in Aarhus.", subject="hq", source={"quote": "HQ is in Aarhus."})
    for number in range(5):
        memory.remember(f"Batch {number} was shipped.", kind="event")

    report = memory.get("/v1/checkup")

    assert counts(memory) == {}
    assert report["healthy"] is True
    assert (report["facts"], report["retired"]) == (8, 1)


def test_retirements_without_evidence_are_listed(memory: Memory) -> None:
    old = memory.fact("HQ is in Bergen.")
    memory.supersede(old["id"], content="HQ is in Aarhus.")
    proven = memory.fact("The event store runs on DynamoDB.")
    memory.supersede(proven["id"], content="We moved the event store off DynamoDB.", evidence="off DynamoDB")
    memory.forget(memory.fact("The fern is green.")["id"])

    finding = found(memory, "retirements_without_evidence")

    assert (finding["count"], finding["of"]) == (1, "link")
    (link,) = [link for link in memory.history(old["id"])["links"] if link["kind"] == "supersedes"]
    assert finding["ids"] == [link["id"]]


def test_a_blank_reason_is_a_warning(memory: Memory, owner: psycopg.Connection[Any]) -> None:
    memory.forget(memory.fact("HQ is in Bergen.")["id"])
    owner.execute("UPDATE links SET reason = ' ' WHERE namespace = %s", [memory.namespace])

    assert found(memory, "retirements_without_reason")["count"] == 1
    assert memory.get("/v1/checkup")["healthy"] is False


@pytest.mark.parametrize(("kept", "warns"), [(4, False), (3, True)])
def test_more_than_a_fifth_retired_is_a_warning(memory: Memory, kept: int, *, warns: bool) -> None:
    memory.forget(memory.fact("HQ is in Bergen.")["id"])
    for number in range(kept):
        memory.remember(f"Batch {number} was shipped.", kind="event")

    report = memory.get("/v1/checkup")

    assert report["retired_share"] == 1 / (kept + 1)
    assert ("retired_share" in counts(memory)) is warns
    assert report["healthy"] is not warns


def test_open_conflicts_and_states_at_one_subject_are_work(memory: Memory) -> None:
    memory.policy(policy="suggest")
    memory.remember("HQ is in Bergen.", subject="hq")
    second = memory.remember("HQ is in Aarhus.", subject="hq")

    assert found(memory, "open_conflicts")["ids"] == [second["conflicts"][0]["link_id"]]
    assert found(memory, "several_states_at_a_subject")["ids"] == [second["fact"]["id"]]
    assert memory.get("/v1/checkup")["healthy"] is True


def test_facts_of_the_same_words_are_near_duplicates(memory: Memory) -> None:
    memory.policy(policy="explicit")
    memory.remember("The fern is watered on Mondays.")
    second = memory.fact("On Mondays, the fern is watered!")
    memory.remember("The fern is watered on Mondays.", scope="elsewhere")

    assert found(memory, "near_duplicates")["ids"] == [second["id"]]


def test_subjects_that_look_alike_are_listed(memory: Memory) -> None:
    memory.remember("It is at 9:00.", subject="team.standup.time")
    memory.remember("It is at 9:30.", subject="team.stand-up.time")

    finding = found(memory, "subjects_near_misses")

    assert finding["count"] == 2
    assert finding["examples"] == [
        "team.stand-up.time ~ team.standup.time",
        "team.standup.time ~ team.stand-up.time",
    ]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("HQ is in Bergen.", True),
        ("We use Polar for billing.", True),
        ("The user prefers dark mode.", True),
        ("We moved to Postgres.", False),
        ("The migration was run on Friday.", False),
        ("Should we deploy?", False),
        ("groceries: milk, bread", False),
    ],
)
def test_what_says_how_things_stand_looks_like_a_state(text: str, *, state: bool) -> None:
    assert looks_like_state(text) is state


def test_notes_that_look_like_states_are_counted_among_the_latest(memory: Memory) -> None:
    state = memory.fact("HQ is in Bergen.")
    memory.remember("We moved to Postgres.")
    memory.remember("The CTO is Petra.", subject="cto")

    report = memory.get("/v1/checkup")

    assert found(memory, "state_looking_notes")["ids"] == [state["id"]]
    assert report["recent_notes"] == 2


def test_a_failed_job_is_a_warning(memory: Memory, database: Cluster) -> None:
    job = Bench(database, settings_for(database)).attempt(memory, "consolidate")

    assert found(memory, "failed_jobs")["ids"] == [job["id"]]


def test_a_key_sees_the_findings_of_its_scopes_only(service_url: str, database: Cluster, memory: Memory) -> None:
    memory.remember("HQ is in Bergen.", scope="secret")
    memory.remember("The CTO is Petra.", scope="team/a")
    narrow = make_key(database, memory.namespace, name="narrow", roles=["read"], read_scopes=["team/*"])

    with Memory(service_url, narrow) as client:
        assert client.get("/v1/checkup")["facts"] == 1
        assert found(client, "state_looking_notes")["count"] == 1
        client.get("/v1/checkup", scope="secret", status=403)
    assert memory.get("/v1/checkup", scope="secret")["facts"] == 1


def damaged(database: Cluster, *statements: tuple[str, list[Any]]) -> None:
    """Behind the back of triggers and foreign keys."""
    with psycopg.connect(database.superuser_dsn, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        for statement, values in statements:
            connection.execute(statement, values)


_END = """
    UPDATE ledger.facts SET superseded_by = %s, retired_at = now(), ended_at = now(), retired_as = 'superseded'
    WHERE id = %s
"""


def _missing(one: Any, _: Any) -> list[tuple[str, list[Any]]]:
    return [(_END, ["01890000-0000-7000-8000-000000000000", one])]


def _circle(one: Any, other: Any) -> list[tuple[str, list[Any]]]:
    return [(_END, [other, one]), (_END, [one, other])]


@pytest.mark.parametrize(
    ("damage", "name", "count"),
    [(_missing, "dangling_successors", 1), (_circle, "circular_chains", 2), (_circle, "retirements_without_claim", 2)],
)
def test_damage_is_found_and_reads_go_on(
    memory: Memory,
    database: Cluster,
    damage: Callable[[Any, Any], list[tuple[str, list[Any]]]],
    name: str,
    count: int,
) -> None:
    one, other = memory.fact("HQ is in Bergen."), memory.fact("The CTO is Petra.")
    third = memory.fact("Lunch is at noon.")

    damaged(database, *damage(one["id"], other["id"]))

    assert found(memory, name)["count"] == count
    assert memory.get("/v1/checkup")["healthy"] is False
    assert third["content"] in memory.recalled("When is lunch?")


def test_the_report_reads_well_on_a_terminal(memory: Memory) -> None:
    memory.forget(memory.fact("HQ is in Bergen.")["id"])

    printed = list(lines(CheckupOut.model_validate(memory.get("/v1/checkup"))))

    assert printed[0] == "1 facts, 1 of them retired (100.0%)."
    assert printed[1].startswith("warning       1  retired share.")
