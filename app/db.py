"""Connections and statements: Core composes a statement once, psycopg's pool runs it."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, LiteralString, TypeVar, cast

from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection, AsyncRawCursor, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, args_row, dict_row
from psycopg.types.array import ListBinaryDumper
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import Dialect
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler

Connection = AsyncConnection[DictRow]
Row = DictRow
Parameters = Mapping[str, Any]

T = TypeVar("T")


class _BinaryArray(list[Any]):
    """An array that is sent in binary form. Some element must not be null, since the form names their type."""


def array_of_vectors(vectors: Sequence[Any]) -> list[Any]:
    """Vectors, some of them null, as a parameter: in binary form, since written as text each takes 0.2 ms."""
    return _BinaryArray(vectors) if any(vector is not None for vector in vectors) else list(vectors)


# SQLAlchemy leaves the constructor of its dialects untyped.
_NAMED: Dialect = PGDialect_psycopg()  # type: ignore[no-untyped-call]
_NUMBERED: Dialect = PGDialect_psycopg(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
_ATTEMPTS = 5

# The sentence is what the operator reads on the terminal, so it says what to change.
_READS_THE_LEDGER = """
    SELECT current_user AS role,
        (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
        OR has_schema_privilege(current_user, 'ledger', 'USAGE')
        OR EXISTS (
            SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE n.nspname = 'ledger' AND c.relkind IN ('r', 'p', 'v', 'm')
                AND (has_any_column_privilege(current_user, c.oid, 'SELECT')
                    OR pg_has_role(current_user, c.relowner, 'MEMBER')))
        AS privileged
"""


class PrivilegedRole(Exception):
    """The service was given a role that could read around the views."""


class Overtaken(Exception):
    """Another transaction changed what this one had looked at; it starts again and decides anew."""


class Statement:
    """A statement of SQLAlchemy Core, compiled once; runs on any connection with named parameters.

    It is sent with Postgres' own numbered placeholders, so that psycopg need not search a long text for names at
    every execution, and its rows come in binary form, which spares both sides the writing and reading of numbers.
    A connection prepares it when it has run a few times; with `prepare`, at once. A plan that was made for empty tables
    stays until there are statistics, so that is for statements that take longer to plan than to run.
    """

    __slots__ = ("_clause", "_names", "_numbered", "_prepare")

    def __init__(self, clause: ClauseElement, *, prepare: bool | None = None) -> None:
        compiled = cast("SQLCompiler", clause.compile(dialect=_NUMBERED))
        fixed = {name: value for name, value in compiled.params.items() if value is not None}
        if fixed:
            raise ValueError(f"bind these by name, or write them as literals: {sorted(fixed)}")
        self._clause = clause
        self._prepare = prepare
        self._numbered: LiteralString = compiled.string
        self._names: tuple[str, ...] = tuple(compiled.positiontup or ())

    @property
    def sql(self) -> LiteralString:
        """The text with named placeholders, as `EXPLAIN` takes it with the same parameters."""
        return self._clause.compile(dialect=_NAMED).string

    async def _executed(self, cursor: AsyncRawCursor[T], parameters: Parameters) -> AsyncRawCursor[T]:
        given = [parameters[name] for name in self._names]
        return await cursor.execute(self._numbered, given, prepare=self._prepare, binary=True)

    async def rows(self, conn: Connection, /, **parameters: Any) -> list[Row]:
        return await (await self._executed(AsyncRawCursor(conn), parameters)).fetchall()

    async def made(self, conn: Connection, make: Callable[..., T], /, **parameters: Any) -> list[T]:
        """What `make` makes of each row, given its columns in order: for many rows, cheaper than a mapping each."""
        cursor = AsyncRawCursor(conn, row_factory=args_row(make))
        return await (await self._executed(cursor, parameters)).fetchall()

    async def row(self, conn: Connection, /, **parameters: Any) -> Row | None:
        return await (await self._executed(AsyncRawCursor(conn), parameters)).fetchone()

    async def run(self, conn: Connection, /, **parameters: Any) -> int:
        """Execute for its effect; the number of rows that it touched."""
        return (await self._executed(AsyncRawCursor(conn), parameters)).rowcount

    async def run_many(self, conn: Connection, parameters: Sequence[Parameters]) -> None:
        """Execute once for each set of parameters, in one round trip (psycopg pipelines them)."""
        if parameters:
            async with AsyncRawCursor(conn) as cursor:
                await cursor.executemany(self._numbered, [[each[name] for name in self._names] for each in parameters])


# A unique violation here is a twin that committed first: at the second look it is found and reaffirmed. A foreign
# key violation is a fact that was pruned since it was looked at.
_RETRIED = (
    Overtaken,
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UniqueViolation,
    errors.ForeignKeyViolation,
)


@dataclass(frozen=True, slots=True)
class Database:
    """A pool of connections of one role.

    `reading` lends a connection in autocommit; `transaction` one inside a transaction that commits on leaving.
    Neither may be held while the network is awaited.
    """

    pool: AsyncConnectionPool[Connection]

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        async with self.pool.connection() as conn:
            yield conn

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        async with self.pool.connection() as conn, conn.transaction():
            yield conn

    async def run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run `work` in one transaction and commit it, again from the start where it met a deadlock."""
        for attempt in range(1, _ATTEMPTS):
            try:
                async with self.transaction() as conn:
                    return await work(conn)
            except _RETRIED:
                await asyncio.sleep(random.uniform(0, 0.02 * 2**attempt))
        async with self.transaction() as conn:
            return await work(conn)


def connection_string(url: str, *, statement_timeout_ms: int, name: str) -> str:
    """The DSN with the session options that every statement of ours relies on."""
    given: dict[str, Any] = conninfo_to_dict(url.replace("postgresql+psycopg://", "postgresql://"))
    options = (
        f"{given.pop('options', '') or ''} -c timezone=UTC -c jit=off -c statement_timeout={statement_timeout_ms}"
        " -c idle_in_transaction_session_timeout=60s"
        # An empty place for a word of a question is worth a notice to Postgres, hundreds of times a second.
        " -c client_min_messages=warning"
        " -c hnsw.iterative_scan=strict_order -c hnsw.ef_search=100"
        # Planning a recall takes as long as running it, and no statement of ours needs another plan for other values.
        " -c plan_cache_mode=force_generic_plan"
    )
    return make_conninfo(**given, options=options.strip(), application_name=name)


# The plan of a recall takes a megabyte of the backend's memory, so only so many statements are kept prepared.
_MOST_PREPARED = 40


async def _configure(conn: Connection) -> None:
    conn.prepared_max = _MOST_PREPARED
    await register_vector_async(conn)
    conn.adapters.register_dumper(_BinaryArray, ListBinaryDumper)


@asynccontextmanager
async def connect(
    url: str, *, size: int, timeout_s: float, statement_timeout_ms: int, name: str
) -> AsyncIterator[Database]:
    """Open a pool of at most `size` connections, refusing a role that can read `ledger.facts`."""
    pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
        connection_string(url, statement_timeout_ms=statement_timeout_ms, name=name),
        # The pool lends its connections in turn. Two at rest would both be cold; one stays warm, and more come and go.
        min_size=1,
        max_size=size,
        timeout=timeout_s,
        kwargs={"autocommit": True, "row_factory": dict_row},
        configure=_configure,
        open=False,
        name=name,
    )
    async with pool:
        await pool.wait(timeout=timeout_s)
        database = Database(pool)
        await refuse_privileged_role(database)
        yield database


async def refuse_privileged_role(database: Database) -> None:
    """Raise PrivilegedRole where the current role could name the base table, or become one that can."""
    async with database.reading() as conn:
        row = await (await conn.execute(_READS_THE_LEDGER)).fetchone()
    if row is None or row["privileged"]:
        role = "unknown" if row is None else row["role"]
        raise PrivilegedRole(
            f"The database role {role!r} can read ledger.facts directly, so retired facts could leak. "
            "Point DATABASE_URL at the role memory_api (and WORKER_DATABASE_URL at memory_worker)."
        )
