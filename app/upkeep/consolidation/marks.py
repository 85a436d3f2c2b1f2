"""Which facts the model was asked about, and by which prompt: marks that hold no text."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    TIMESTAMP,
    Column,
    Integer,
    MetaData,
    Table,
    Text,
    Uuid,
    bindparam,
    cast,
    func,
    literal_column,
    null,
    select,
)
from sqlalchemy.dialects.postgresql import insert as pg_insert

from app.db import Connection, Statement
from app.facts.model import facts_history

MOST_FAILURES = 3

marks = Table(
    "consolidation_marks",
    MetaData(),
    Column("namespace", Text, primary_key=True),
    Column("fact_id", Uuid, primary_key=True),
    Column("prompt_version", Text),
    Column("failures", Integer),
    Column("done_at", TIMESTAMP(timezone=True)),
)
_NS = bindparam("namespace", type_=Text)
_IDS = bindparam("ids", type_=ARRAY(Uuid))
_VERSION = bindparam("version", type_=Text)
_standing = select(
    facts_history.c.namespace,
    facts_history.c.id,
    _VERSION,
    literal_column("0"),
    cast(null(), TIMESTAMP(timezone=True)),
).where(facts_history.c.namespace == _NS, facts_history.c.id == func.any(_IDS))
_insert = pg_insert(marks).from_select(
    ["namespace", "fact_id", "prompt_version", "failures", "done_at"], _standing.order_by(facts_history.c.id)
)
_begin = Statement(
    _insert.on_conflict_do_update(
        index_elements=[marks.c.namespace, marks.c.fact_id],
        set_={
            "prompt_version": _insert.excluded.prompt_version,
            "failures": literal_column("0"),
            "done_at": null(),
        },
        where=marks.c.prompt_version != _insert.excluded.prompt_version,
    )
)
_finish = Statement(
    marks.update()
    .where(marks.c.namespace == _NS, marks.c.fact_id == func.any(_IDS), marks.c.prompt_version == _VERSION)
    .values(done_at=func.now())
)
_fail = Statement(
    marks.update()
    .where(
        marks.c.namespace == _NS,
        marks.c.fact_id == func.any(_IDS),
        marks.c.prompt_version == _VERSION,
        marks.c.done_at.is_(None),
    )
    .values(failures=marks.c.failures + literal_column("1"))
)
_done = Statement(
    select(marks.c.fact_id).where(
        marks.c.namespace == _NS,
        marks.c.fact_id == func.any(_IDS),
        marks.c.prompt_version == _VERSION,
        marks.c.done_at.is_not(None),
    )
)


async def begin_marks(conn: Connection, namespace: str, ids: Sequence[UUID], version: str) -> None:
    """Note that these facts are to be asked about; they stay wanted until that was done."""
    await _begin.run(conn, namespace=namespace, ids=list(ids), version=version)


async def mark_done(conn: Connection, namespace: str, ids: Sequence[UUID], version: str) -> None:
    await _finish.run(conn, namespace=namespace, ids=list(ids), version=version)


async def mark_failed(conn: Connection, namespace: str, ids: Sequence[UUID], version: str) -> None:
    """Count a failure of each; after three a fact is left alone until the prompt changes."""
    await _fail.run(conn, namespace=namespace, ids=list(ids), version=version)


async def done_among(conn: Connection, namespace: str, ids: Sequence[UUID], version: str) -> set[UUID]:
    rows = await _done.rows(conn, namespace=namespace, ids=list(ids), version=version)
    return {row["fact_id"] for row in rows}
