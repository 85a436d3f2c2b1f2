"""The views show what the table holds, as they should, and no more."""

import secrets
import uuid
from typing import Any

import psycopg
import pytest
from psycopg import sql

from app.embedded import Cluster

VIEWS = ("facts_active", "facts_history")
PAST: dict[str, dict[str, Any]] = {
    "retired": {"successor": True, "retired_as": "superseded"},
    "amended": {"successor": True, "retired_as": "amended"},
    "forgotten": {"successor": True, "retired_as": "forgotten"},
    "a retraction": {"kind": "retraction"},
    "scheduled": {"valid_from": "now() + interval '1 hour'"},
    "expired": {"valid_to": "now() - interval '1 hour'", "valid_from": "now() - interval '2 hours'"},
    "stale": {"kind": "digest", "stale_at": "now()"},
}
STATUS = {"retired": "superseded", "a retraction": "active"}


def columns(owner: psycopg.Connection[Any], relation: str) -> dict[str, str]:
    """By name, the type of each column."""
    found = owner.execute(
        """SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
        WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped""",
        (relation,),
    )
    return dict(found.fetchall())


def insert(owner: psycopg.Connection[Any], namespace: str, **changes: Any) -> uuid.UUID:
    """A row of the table as the owner may write it; times are given as SQL."""
    id_ = uuid.uuid4()
    literal = {
        "namespace": namespace, "id": id_, "chain_id": id_, "scope": "shared", "kind": "note",
        "content": f"Text {id_}.", "content_hash": secrets.token_bytes(32), "source_tier": "user", "term_length": 1,
        "terms": "'text':1",
    }  # fmt: skip
    spoken = {"valid_from": "now()", "observed_at": "now()", "recorded_at": "now()"}
    successor = insert(owner, namespace) if changes.pop("successor", False) else None
    if successor is not None:
        literal["superseded_by"] = successor
        spoken |= {"retired_at": "now()", "ended_at": "now()"}
    literal |= {name: changes.pop(name) for name in ("kind", "retired_as") if name in changes}
    spoken |= changes
    values = [sql.Placeholder()] * len(literal) + [sql.SQL(moment) for moment in spoken.values()]
    statement = sql.SQL("INSERT INTO ledger.facts ({}) VALUES ({})").format(
        sql.SQL(", ").join(map(sql.Identifier, [*literal, *spoken])), sql.SQL(", ").join(values)
    )
    owner.execute(statement, list(literal.values()))
    return id_


@pytest.fixture
def written(owner: psycopg.Connection[Any], namespace: str) -> str:
    """A namespace to write rows in."""
    owner.execute("INSERT INTO namespaces (name) VALUES (%s)", (namespace,))
    return namespace


def shown(connection: psycopg.Connection[Any], view: str, id_: uuid.UUID) -> bool:
    return connection.execute(f"SELECT 1 FROM {view} WHERE id = %s", (id_,)).fetchone() is not None


def test_the_active_view_has_every_column_of_the_table(owner: psycopg.Connection[Any]) -> None:
    assert columns(owner, "facts_active") == columns(owner, "ledger.facts")


def test_the_history_adds_only_the_status(owner: psycopg.Connection[Any]) -> None:
    assert columns(owner, "facts_history") == columns(owner, "ledger.facts") | {"status": "text"}


def test_a_column_that_the_views_forgot_is_noticed(fresh_database: Cluster) -> None:
    with psycopg.connect(fresh_database.owner_dsn, autocommit=True) as owner:
        owner.execute("ALTER TABLE ledger.facts ADD COLUMN mood text")

        assert columns(owner, "facts_active") != columns(owner, "ledger.facts")


def test_echoes_carry_no_text(owner: psycopg.Connection[Any]) -> None:
    assert columns(owner, "fact_echoes").keys().isdisjoint({"content", "subject", "source_quote", "metadata", "tags"})


@pytest.mark.parametrize("view", [*VIEWS, "fact_echoes"])
def test_a_view_has_no_option_that_would_slow_or_break_it(owner: psycopg.Connection[Any], view: str) -> None:
    options = owner.execute("SELECT reloptions FROM pg_class WHERE oid = %s::regclass", (view,)).fetchone()

    assert options == (None,)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_facts_is_of_exactly_one_table(owner: psycopg.Connection[Any], view: str) -> None:
    tables = owner.execute(
        """SELECT DISTINCT d.refobjid::regclass::text FROM pg_rewrite AS r JOIN pg_depend AS d ON d.objid = r.oid
        WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
            AND r.ev_class = %s::regclass AND d.refobjid <> r.ev_class""",
        (view,),
    ).fetchall()

    assert tables == [("ledger.facts",)]


def test_the_active_view_takes_inserts_and_updates(owner: psycopg.Connection[Any]) -> None:
    found = owner.execute(
        """SELECT table_name, is_updatable, is_insertable_into FROM information_schema.views
        WHERE table_schema = 'public' AND table_name = ANY(%s) ORDER BY table_name""",
        (list(VIEWS),),
    ).fetchall()

    assert found == [("facts_active", "YES", "YES"), ("facts_history", "YES", "YES")]


def test_a_view_belongs_to_the_owner(owner: psycopg.Connection[Any]) -> None:
    owners = owner.execute(
        "SELECT DISTINCT viewowner FROM pg_views WHERE schemaname = 'public' AND viewname LIKE 'fact%'"
    ).fetchall()

    assert owners == [("memory_owner",)]


def test_a_current_fact_is_active(
    owner: psycopg.Connection[Any], as_api: psycopg.Connection[Any], written: str
) -> None:
    id_ = insert(owner, written)

    assert shown(as_api, "facts_active", id_)


@pytest.mark.parametrize("sort", PAST)
def test_what_is_not_current_is_hidden(
    owner: psycopg.Connection[Any], as_api: psycopg.Connection[Any], written: str, sort: str
) -> None:
    id_ = insert(owner, written, **PAST[sort])

    assert not shown(as_api, "facts_active", id_)
    assert shown(as_api, "facts_history", id_)


@pytest.mark.parametrize("sort", PAST)
def test_the_history_labels_every_fact(
    owner: psycopg.Connection[Any], as_api: psycopg.Connection[Any], written: str, sort: str
) -> None:
    id_ = insert(owner, written, **PAST[sort])

    row = as_api.execute("SELECT status FROM facts_history WHERE id = %s", (id_,)).fetchone()

    assert row == (STATUS.get(sort, sort),)


def test_a_clock_that_was_set_back_hides_nothing(
    owner: psycopg.Connection[Any], as_api: psycopg.Connection[Any], written: str
) -> None:
    later = "now() + interval '1 hour'"
    id_ = insert(owner, written, valid_from=later, observed_at=later, recorded_at=later)

    assert shown(as_api, "facts_active", id_)


def test_the_active_view_lets_the_vector_index_work(
    fresh_database: Cluster,
) -> None:
    with psycopg.connect(fresh_database.api_dsn, autocommit=True) as api:
        api.execute("SELECT register_embedding_profile('three', 3)")
        api.execute("SET enable_seqscan = off")
        plan = api.execute(
            """EXPLAIN SELECT id FROM facts_active WHERE embedding_profile = 'three'
            ORDER BY embedding::vector(3) <=> '[1,0,0]' LIMIT 5"""
        ).fetchall()

    assert any("Index Scan using facts_vector_" in line for (line,) in plan), plan
