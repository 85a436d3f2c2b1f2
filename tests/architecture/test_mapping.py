"""The tables that the code declares are the tables that the database has."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import Table
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from app.facts.model import METADATA
from tests.architecture.source import modules

DIALECT: Any = PGDialect_psycopg()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves its constructor untyped.


def declared() -> Iterator[tuple[str, Table]]:
    """Every table that a module declares, once, and where."""
    seen = set()
    for name, module in modules().items():
        for value in vars(module).values():
            if isinstance(value, Table) and id(value) not in seen:
                seen.add(id(value))
                yield f"{name}.{value.name}", value


DECLARED = dict(declared())


def in_python(table: Table) -> dict[str, str]:
    return {column.name: column.type.compile(DIALECT).lower() for column in table.columns}


def in_database(owner: psycopg.Connection[Any], name: str) -> dict[str, str]:
    """By name, the type of each column; words of a closed list and other sorts of text count as text."""
    found = owner.execute(
        """SELECT a.attname, CASE WHEN t.typtype = 'e' OR t.typname IN ('varchar', 'name') THEN 'text'
            ELSE format_type(a.atttypid, a.atttypmod) END
        FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
        WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped""",
        (name,),
    )
    return dict(found.fetchall())


@pytest.mark.parametrize("name", METADATA.tables)
def test_the_model_has_every_column_of_the_table(owner: psycopg.Connection[Any], name: str) -> None:
    assert in_python(METADATA.tables[name]) == in_database(owner, name)


@pytest.mark.parametrize("name", DECLARED)
def test_what_a_module_declares_of_a_table_is_so(owner: psycopg.Connection[Any], name: str) -> None:
    table = DECLARED[name]

    assert in_python(table).items() <= in_database(owner, f"{table.schema or 'public'}.{table.name}").items()


@pytest.mark.parametrize("name", DECLARED)
def test_no_module_names_a_table_of_the_ledger(name: str) -> None:
    assert DECLARED[name].schema in {None, "pg_catalog"}
