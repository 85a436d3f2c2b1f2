"""Idempotency keys: a request that is sent again gets the first answer, and nothing happens twice."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response
from psycopg.types.json import Jsonb
from pydantic import BaseModel
from pydantic_core import to_json
from sqlalchemy import (
    Column,
    DateTime,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    bindparam,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, insert

from app.auth import Caller
from app.db import Connection, Database, Statement
from app.errors import IdempotencyKeyReused
from app.text import CleanStr

REPLAYED = "Idempotency-Replayed"

idempotency_keys = Table(
    "idempotency_keys",
    MetaData(),
    Column("namespace", Text, primary_key=True),
    Column("route", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("request_hash", LargeBinary),
    Column("status", Integer),
    Column("response", JSONB),
    Column("created_at", DateTime(timezone=True)),
)
_mine = (
    idempotency_keys.c.namespace == bindparam("namespace", type_=Text),
    idempotency_keys.c.route == bindparam("route", type_=Text),
    idempotency_keys.c.key == bindparam("key", type_=Text),
)
_claim = Statement(
    insert(idempotency_keys)
    .values({name: bindparam(name) for name in ("namespace", "route", "key", "request_hash")})
    .on_conflict_do_nothing()
    .returning(idempotency_keys.c.key)
)
_stored = Statement(
    select(idempotency_keys.c.request_hash, idempotency_keys.c.status, idempotency_keys.c.response).where(*_mine)
)
_complete = Statement(
    update(idempotency_keys)
    .where(*_mine)
    .values(status=bindparam("new_status", type_=Integer), response=bindparam("new_response", type_=JSONB))
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is answered with."""

    status: int
    body: BaseModel | Any
    replayed: bool = False

    def response(self) -> Response:
        content = to_json(self.body, by_alias=True)
        headers = {REPLAYED: "true"} if self.replayed else None
        return Response(content, self.status, headers, media_type="application/json")


@dataclass(frozen=True, slots=True)
class Once:
    """Runs a request's transaction at most once for its Idempotency-Key, if it carries one.

    The key is claimed in the same transaction, so a request that fails leaves it free, and a twin that arrives
    meanwhile waits and then gets the same answer. A key belongs to one caller: two keys of a namespace may use
    the same text.
    """

    key: str | None
    route: str
    request_hash: bytes

    async def answer(
        self, database: Database, caller: Caller, work: Callable[[Connection], Awaitable[Answer]]
    ) -> Response:
        async def claimed(conn: Connection) -> Answer:
            if self.key is None:
                return await work(conn)
            mine = {
                "namespace": caller.namespace,
                "route": self.route,
                "key": f"{caller.key_id or caller.name}:{self.key}",
            }
            if await _claim.row(conn, **mine, request_hash=self.request_hash) is None:
                return await self._replay(conn, mine)
            answer = await work(conn)
            body = answer.body.model_dump(mode="json", by_alias=True)
            await _complete.run(conn, **mine, new_status=answer.status, new_response=Jsonb(body))
            return answer

        return (await database.run(claimed)).response()

    async def _replay(self, conn: Connection, mine: dict[str, str]) -> Answer:
        row = await _stored.row(conn, **mine)
        if row is None or row["request_hash"] != self.request_hash:
            raise IdempotencyKeyReused
        return Answer(row["status"], row["response"], replayed=True)


async def _once(
    request: Request,
    key: Annotated[
        CleanStr | None,
        Header(
            alias="Idempotency-Key",
            min_length=1,
            max_length=200,
            description="Any text of yours, new for each request: sent again with the same body within a day, the "
            "request is not carried out again and the first answer comes back.",
        ),
    ] = None,
) -> Once:
    body = await request.body() if key is not None else b""
    return Once(key, f"{request.method} {request.url.path}", hashlib.sha256(body).digest())


OnceDep = Annotated[Once, Depends(_once)]
