"""What the roles of the running service may do, and what nobody may."""

from typing import Any, LiteralString
from uuid import UUID

import psycopg
import pytest
from psycopg import errors

from tests.clients import Memory

LEDGER = """
    SELECT c.oid, n.nspname || '.' || c.relname AS name
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = 'ledger' AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
"""
VIEWS = ("facts_active", "facts_history", "fact_echoes")
IMMUTABLE = (
    "namespace", "id", "scope", "agent", "kind", "subject", "content", "content_hash", "source_tier", "source_ref",
    "source_quote", "confidence", "metadata", "valid_from", "valid_to", "observed_at", "recorded_at",
)  # fmt: skip
CHEATS = (
    "SELECT * FROM ledger.facts",
    "SELECT content FROM ledger.facts LIMIT 1",
    "SELECT 1 FROM facts_active WHERE EXISTS (SELECT FROM ledger.facts)",
    "TABLE ledger.facts",
    "COPY ledger.facts TO STDOUT",
    "INSERT INTO ledger.facts (content) VALUES ('x') RETURNING content",
    "UPDATE ledger.facts SET content = content RETURNING content",
    "DELETE FROM ledger.facts RETURNING content",
    "TRUNCATE ledger.facts",
    "LOCK TABLE ledger.facts",
    "DROP VIEW facts_active",
    "CREATE OR REPLACE VIEW facts_active AS SELECT * FROM facts_history",
    "ALTER VIEW facts_active SET (security_invoker = true)",
    "CREATE VIEW public.mine AS SELECT 1",
    "CREATE FUNCTION public.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE SCHEMA mine",
    "SET ROLE memory_owner",
    "SET SESSION AUTHORIZATION memory_owner",
    "SET session_replication_role = replica",
    "ALTER TABLE ledger.facts DISABLE TRIGGER ALL",
)


def column(connection: psycopg.Connection[Any], sql: LiteralString, *parameters: object) -> list[Any]:
    return [row[0] for row in connection.execute(sql, parameters)]


@pytest.fixture
def fact_id(memory: Memory) -> UUID:
    """A current fact."""
    return UUID(memory.fact("The office is in Lisbon.")["id"])


def test_a_runtime_role_has_no_privilege_in_the_ledger(owner: psycopg.Connection[Any], role: str) -> None:
    seen = column(
        owner,
        f"""SELECT l.name || ' ' || wanted FROM ({LEDGER}) AS l,
            unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS wanted
        WHERE has_table_privilege(%s, l.oid, wanted)""",
        role,
    )
    columns = column(
        owner,
        f"""SELECT l.name || ' ' || wanted FROM ({LEDGER}) AS l,
            unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) AS wanted
        WHERE has_any_column_privilege(%s, l.oid, wanted)""",
        role,
    )

    assert column(owner, f"SELECT name FROM ({LEDGER}) AS l") != []
    assert seen == []
    assert columns == []


def test_a_runtime_role_cannot_enter_the_ledger_or_create_anything(owner: psycopg.Connection[Any], role: str) -> None:
    enters = column(owner, "SELECT has_schema_privilege(%s, 'ledger', 'USAGE')", role)
    creates = column(owner, "SELECT nspname FROM pg_namespace WHERE has_schema_privilege(%s, oid, 'CREATE')", role)
    makes_schemas = column(owner, "SELECT has_database_privilege(%s, current_database(), 'CREATE')", role)

    assert enters == [False]
    assert creates == []
    assert makes_schemas == [False]


def test_a_runtime_role_is_an_ordinary_member_of_nothing(owner: psycopg.Connection[Any], role: str) -> None:
    member_of = column(
        owner, "SELECT rolname FROM pg_roles WHERE rolname <> %s AND pg_has_role(%s, oid, 'MEMBER')", role, role
    )
    special = owner.execute(
        "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls FROM pg_roles WHERE rolname = %s",
        (role,),
    ).fetchone()

    assert member_of == []
    assert special == (False, False, False, False, False)


def test_a_runtime_role_sees_no_statistics_of_the_ledger(as_role: psycopg.Connection[Any]) -> None:
    assert column(as_role, "SELECT tablename FROM pg_stats WHERE schemaname = 'ledger'") == []


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_query_around_the_views_is_refused(as_role: psycopg.Connection[Any], cheat: LiteralString) -> None:
    with pytest.raises(errors.InsufficientPrivilege), as_role.transaction():
        as_role.execute(cheat)


@pytest.mark.parametrize("view", VIEWS)
def test_a_runtime_role_reads_through_the_views(as_role: psycopg.Connection[Any], view: str) -> None:
    assert column(as_role, f"SELECT count(*) FROM {view} WHERE namespace = 'nobody'") == [0]


@pytest.mark.parametrize("view", ["facts_active", "facts_history"])
def test_a_runtime_role_may_update_only_what_ends_or_indexes_a_fact(
    owner: psycopg.Connection[Any], role: str, view: str
) -> None:
    updatable = column(
        owner,
        """SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0
            AND has_column_privilege(%s, attrelid, attnum, 'UPDATE') ORDER BY attname""",
        view,
        role,
    )

    assert {"superseded_by", "retired_at", "retired_as", "ended_at", "embedding", "embedding_profile"} <= set(updatable)
    assert set(updatable).isdisjoint(IMMUTABLE)


def test_a_fact_cannot_be_born_retired(owner: psycopg.Connection[Any], role: str) -> None:
    insertable = column(
        owner,
        """SELECT attname FROM pg_attribute WHERE attrelid = 'facts_active'::regclass AND attnum > 0
            AND has_column_privilege(%s, attrelid, attnum, 'INSERT')""",
        role,
    )

    assert {"content", "subject", "terms", "embedding"} <= set(insertable)
    assert set(insertable).isdisjoint({"superseded_by", "retired_at", "retired_as", "ended_at", "stale_at"})


def test_only_the_active_view_takes_new_facts(owner: psycopg.Connection[Any], role: str) -> None:
    takes = column(
        owner,
        "SELECT v FROM unnest(%s::text[]) AS v WHERE has_any_column_privilege(%s, v, 'INSERT')",
        list(VIEWS),
        role,
    )

    assert takes == ["facts_active"]


@pytest.mark.parametrize("view", ["facts_active", "facts_history"])
@pytest.mark.parametrize("name", IMMUTABLE)
def test_a_runtime_role_cannot_edit_a_fact(as_role: psycopg.Connection[Any], view: str, name: str) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        as_role.execute(f"UPDATE {view} SET {name} = {name}")


@pytest.mark.parametrize("view", ["facts_active", "facts_history"])
def test_a_runtime_role_cannot_delete_a_fact(as_role: psycopg.Connection[Any], view: str) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        as_role.execute(f"DELETE FROM {view}")


@pytest.mark.parametrize("table", ["chains", "links", "fact_use", "observations", "audit_events", "namespaces"])
def test_a_runtime_role_cannot_delete_what_stands_around_a_fact(as_role: psycopg.Connection[Any], table: str) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        as_role.execute(f"DELETE FROM {table}")


@pytest.mark.parametrize("statement", ["UPDATE audit_events SET actor = 'x'", "TRUNCATE audit_events"])
def test_a_runtime_role_cannot_rewrite_the_audit_trail(
    as_role: psycopg.Connection[Any], statement: LiteralString
) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        as_role.execute(statement)


@pytest.mark.parametrize("change", ["content = 'x'", "subject = 'x'", "valid_from = now()", "metadata = '[]'"])
def test_even_the_owner_cannot_edit_a_fact(owner: psycopg.Connection[Any], fact_id: UUID, change: str) -> None:
    with pytest.raises(errors.RestrictViolation, match="never edited"):
        owner.execute(f"UPDATE ledger.facts SET {change} WHERE id = %s", (fact_id,))


def test_even_the_owner_cannot_point_a_retired_fact_elsewhere(
    owner: psycopg.Connection[Any], memory: Memory, fact_id: UUID
) -> None:
    other = memory.fact("The office moved to Porto.")["id"]
    memory.forget(str(fact_id))

    with pytest.raises(errors.RestrictViolation, match="keeps its successor"):
        owner.execute("UPDATE ledger.facts SET superseded_by = %s WHERE id = %s", (other, fact_id))


@pytest.mark.parametrize("statement", ["DELETE FROM ledger.facts", "TRUNCATE ledger.facts CASCADE"])
@pytest.mark.usefixtures("fact_id")
def test_even_the_owner_cannot_remove_facts(owner: psycopg.Connection[Any], statement: LiteralString) -> None:
    with pytest.raises(errors.RestrictViolation, match="never removed"):
        owner.execute(statement)


@pytest.mark.parametrize(
    "statement", ["UPDATE audit_events SET actor = 'x'", "DELETE FROM audit_events", "TRUNCATE audit_events"]
)
@pytest.mark.usefixtures("fact_id")
def test_even_the_owner_cannot_rewrite_the_audit_trail(
    owner: psycopg.Connection[Any], statement: LiteralString
) -> None:
    with pytest.raises(errors.RestrictViolation, match="append-only"):
        owner.execute(statement)


def test_a_function_with_its_owners_rights_has_a_fixed_search_path_and_named_callers(
    owner: psycopg.Connection[Any],
) -> None:
    loose = column(
        owner,
        """SELECT p.oid::regprocedure::text FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE p.prosecdef AND n.nspname IN ('public', 'ledger') AND (
            NOT EXISTS (SELECT FROM unnest(p.proconfig) AS set WHERE set LIKE 'search_path=%%')
            OR (n.nspname = 'public' AND EXISTS (
                SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a WHERE a.grantee = 0)))""",
    )

    assert loose == []
