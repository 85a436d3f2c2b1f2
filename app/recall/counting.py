"""Counts which facts were recalled, away from the requests that recalled them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from uuid import UUID

import psycopg
import structlog
from sqlalchemy import TIMESTAMP, BigInteger, Text, Uuid, bindparam, column, func, update
from sqlalchemy.dialects.postgresql import ARRAY

from app.db import Database, Statement
from app.facts.model import fact_use

EVERY_S = 5.0
# A process that cannot write keeps no more than this; the counts only feed decay.
MOST_WAITING = 100_000

_seen = (
    func.unnest(
        bindparam("namespaces", type_=ARRAY(Text)),
        bindparam("ids", type_=ARRAY(Uuid)),
        bindparam("times", type_=ARRAY(BigInteger)),
    )
    .table_valued(column("namespace", Text), column("id", Uuid), column("times", BigInteger))
    .render_derived(name="seen")
)
_count = Statement(
    update(fact_use)
    .where(fact_use.c.namespace == _seen.c.namespace, fact_use.c.fact_id == _seen.c.id)
    .values(
        access_count=fact_use.c.access_count + _seen.c.times,
        last_accessed_at=func.greatest(
            fact_use.c.last_accessed_at, bindparam("moment", type_=TIMESTAMP(timezone=True))
        ),
    )
)


class Accesses:
    """Gathers recalled facts and writes their counts now and then. It never touches a fact itself."""

    def __init__(self, database: Database, *, read_only: bool = False) -> None:
        self._database = database
        self._read_only = read_only
        self._waiting: Counter[tuple[str, UUID]] = Counter()

    def note(self, namespace: str, ids: Iterable[UUID]) -> None:
        """Count a recall of these facts, later."""
        if not self._read_only and len(self._waiting) < MOST_WAITING:
            self._waiting.update((namespace, id_) for id_ in ids)

    async def write(self) -> int:
        """Write what has gathered; how many facts that was. What cannot be written waits for later."""
        taken, self._waiting = self._waiting, Counter()
        if not taken:
            return 0
        # Every process writes in the same order, so that none waits for another in a circle.
        rows = sorted(taken.items())
        try:
            async with self._database.transaction() as conn:
                return await _count.run(
                    conn,
                    namespaces=[namespace for (namespace, _), _ in rows],
                    ids=[id_ for (_, id_), _ in rows],
                    times=[times for _, times in rows],
                    moment=datetime.now(UTC),
                )
        except psycopg.Error as problem:
            self._waiting.update(taken)
            structlog.get_logger("app").warning("accesses_not_counted", facts=len(taken), cause=str(problem))
            return 0

    async def run(self) -> None:
        """Write every few seconds until cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            await self.write()


@asynccontextmanager
async def counting(database: Database, *, read_only: bool) -> AsyncIterator[Accesses]:
    """Accesses that are written every few seconds, and at the end what is left."""
    accesses = Accesses(database, read_only=read_only)
    writing = asyncio.create_task(accesses.run())
    try:
        yield accesses
    finally:
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
        await accesses.write()
