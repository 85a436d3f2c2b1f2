"""Who calls: an API key becomes a Caller, which says the namespace, the roles, the scopes and the trust."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from ipaddress import ip_address
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit
from uuid import UUID

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from fastapi.security.base import SecurityBase
from sqlalchemy import Column, MetaData, Table, Text, Uuid, bindparam, exists, select
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, TIMESTAMP

from app.db import Database, Row, Statement
from app.errors import LoopbackOnly, RoleForbidden, ScopeForbidden, Unauthorized

Role = Literal["read", "write", "curate", "admin"]
Tier = Literal["system", "user", "observed", "inferred"]
ROLES: tuple[Role, ...] = get_args(Role)
TIERS: tuple[Tier, ...] = get_args(Tier)

DEVELOPMENT_NAMESPACE = "default"
_PREFIX_LENGTH = 12
_MARK = "pal_"

_keys = Table(
    "api_keys",
    MetaData(),
    Column("id", Uuid, primary_key=True),
    Column("namespace", Text),
    Column("name", Text),
    Column("prefix", Text),
    Column("secret_hash", BYTEA),
    Column("roles", ARRAY(Text)),
    Column("read_scopes", ARRAY(Text)),
    Column("write_scopes", ARRAY(Text)),
    Column("max_tier", Text),
    Column("expires_at", TIMESTAMP(timezone=True)),
    Column("revoked_at", TIMESTAMP(timezone=True)),
)
_by_prefix = Statement(select(_keys).where(_keys.c.prefix == bindparam("prefix")))
# A key that was revoked counts as well: revoking the last one must not open the service to everybody.
_any_key = Statement(select(exists().where(_keys.c.id.is_not(None)).label("found")))


def rank(tier: Tier) -> int:
    """How much a tier is trusted: higher is more."""
    return len(TIERS) - TIERS.index(tier)


def tiers_from(lowest: Tier) -> list[Tier]:
    """The tiers that are trusted at least as much as `lowest`."""
    return list(TIERS[: TIERS.index(lowest) + 1])


@dataclass(frozen=True, slots=True)
class Scopes:
    """Which scopes a key opens: all of them (`*`), exact names, and everything below a prefix (`team/*`)."""

    everything: bool
    exact: frozenset[str]
    prefixes: tuple[str, ...]

    @classmethod
    def parse(cls, patterns: Iterable[str]) -> "Scopes":
        given = list(patterns)
        return cls(
            everything="*" in given,
            exact=frozenset(p for p in given if not p.endswith("/*") and p != "*"),
            prefixes=tuple(sorted(p[:-1] for p in given if p.endswith("/*"))),
        )

    def admit(self, scope: str) -> bool:
        return self.everything or scope in self.exact or scope.startswith(self.prefixes or ("\0",))


@dataclass(frozen=True, slots=True)
class Caller:
    """The one who calls, as the key says; nothing of it comes from the request's body."""

    namespace: str
    name: str
    roles: frozenset[str]
    reads: Scopes
    writes: Scopes
    max_tier: Tier
    key_id: UUID | None = None

    @property
    def actor(self) -> str:
        """How the audit trail names the caller."""
        return f"key:{self.name}" if self.key_id else self.name

    def capped(self, tier: Tier) -> Tier:
        """The tier that this caller's word gets, at most the key's own."""
        return tier if rank(tier) <= rank(self.max_tier) else self.max_tier

    def must_write(self, scope: str) -> None:
        if not self.writes.admit(scope):
            raise ScopeForbidden(f"This key may not write to the scope {scope[:100]!r}.")

    def asked(self, scopes: Iterable[str] | None) -> list[str] | None:
        """The scopes to read, in the order asked; None where nothing was asked."""
        if scopes is None:
            return None
        wanted = list(dict.fromkeys(scopes))
        for scope in wanted:
            if not self.reads.admit(scope):
                raise ScopeForbidden(f"This key may not read the scope {scope[:100]!r}.")
        return wanted


DEVELOPER = Caller(
    namespace=DEVELOPMENT_NAMESPACE,
    name="development",
    roles=frozenset(ROLES),
    reads=Scopes.parse(["*"]),
    writes=Scopes.parse(["*"]),
    max_tier="system",
)


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key: the text is shown once, the rest is what the database keeps."""

    text: str
    prefix: str
    secret_hash: bytes


def issue_key() -> IssuedKey:
    """A key of 256 random bits. It needs no slow hash: there is nothing to guess."""
    prefix = secrets.token_hex(_PREFIX_LENGTH // 2)
    secret = secrets.token_urlsafe(32)
    return IssuedKey(f"{_MARK}{prefix}_{secret}", prefix, _hash(secret))


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _split(text: str) -> tuple[str, str] | None:
    prefix, separator, secret = text.removeprefix(_MARK).partition("_")
    if not text.startswith(_MARK) or not separator or len(prefix) != _PREFIX_LENGTH or not text.isascii():
        return None
    return prefix, secret


def _caller(row: Row) -> Caller:
    return Caller(
        namespace=row["namespace"],
        name=row["name"],
        roles=frozenset(row["roles"]),
        reads=Scopes.parse(row["read_scopes"]),
        writes=Scopes.parse(row["write_scopes"]),
        max_tier=row["max_tier"],
        key_id=row["id"],
    )


@dataclass(slots=True)
class KeyRing:
    """Looks keys up, and remembers what it found for a moment so that a request costs no second round trip.

    A key that was revoked elsewhere stops working within `keep_s` seconds.
    """

    database: Database
    keep_s: float
    _known: dict[str, tuple[float, Row]] = field(default_factory=dict)
    _open: tuple[float, bool] | None = None

    def forget(self) -> None:
        """Drop what is remembered, after keys were made or revoked in this process."""
        self._known.clear()
        self._open = None

    async def is_development(self) -> bool:
        """Whether no key was ever made, so that whoever reaches the loopback address may do everything."""
        if self._open is None or self._open[0] < time.monotonic():
            async with self.database.reading() as conn:
                row = await _any_key.row(conn)
            self._open = time.monotonic() + self.keep_s, not (row and row["found"])
        return self._open[1]

    async def caller(self, text: str) -> Caller:
        parts = _split(text)
        row = await self._row(parts[0]) if parts else None
        if parts is None or row is None or not hmac.compare_digest(row["secret_hash"], _hash(parts[1])):
            raise Unauthorized("The key is not known here. Send a valid one as `Authorization: Bearer <key>`.")
        if row["revoked_at"] is not None:
            raise Unauthorized("This key was revoked.")
        if row["expires_at"] is not None and row["expires_at"] <= datetime.now(row["expires_at"].tzinfo):
            raise Unauthorized("This key has expired.")
        return _caller(row)

    async def _row(self, prefix: str) -> Row | None:
        kept = self._known.get(prefix)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        async with self.database.reading() as conn:
            row = await _by_prefix.row(conn, prefix=prefix)
        if row is not None:
            self._known[prefix] = time.monotonic() + self.keep_s, row
        return row


_bearer = HTTPBearer(
    auto_error=False,
    description="A key made with `palimpsest keys create`. On a fresh install without keys, leave it empty.",
)


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Whether a host name or an IP address always means this machine, whatever a resolver says."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _must_be_local(request: Request) -> None:
    """Without keys, only this machine's own programs are served, and no web page that a browser here shows.

    A page may point a name of its own at 127.0.0.1 (DNS rebinding), which shows in `Host`, or send a form to
    the real address, which shows in `Origin`.
    """
    reached, _ = request.scope.get("server") or ("", None)
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    if not is_loopback(reached):
        raise LoopbackOnly
    if not is_loopback(_hostname(host)):
        raise LoopbackOnly("Until a key is made, the service goes by `localhost` and loopback addresses only.")
    if origin is not None and origin.partition("://")[2].lower() != host.lower():
        raise LoopbackOnly("Until a key is made, pages of other origins are refused.")


def _hostname(authority: str) -> str:
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        return ""


class _Requiring(SecurityBase):
    """A check that the caller holds one of the roles: one dependency, since FastAPI takes its time over each."""

    def __init__(self, *roles: Role) -> None:
        self.model, self.scheme_name = _bearer.model, _bearer.scheme_name
        self._roles = roles

    async def __call__(self, request: Request) -> Caller:
        caller = await _authenticated(request)
        if caller.roles.isdisjoint(self._roles):
            named = " or ".join(f"`{role}`" for role in self._roles)
            raise RoleForbidden(f"This needs a key with the role {named}.")
        return caller


async def _authenticated(request: Request) -> Caller:
    ring: KeyRing = request.app.state.keys
    if await ring.is_development():
        _must_be_local(request)
        return DEVELOPER
    credentials = await _bearer(request)
    if credentials is None:
        raise Unauthorized
    return await ring.caller(credentials.credentials)


Reader = Annotated[Caller, Depends(_Requiring("read"))]
Writer = Annotated[Caller, Depends(_Requiring("write"))]
Curator = Annotated[Caller, Depends(_Requiring("curate"))]
Admin = Annotated[Caller, Depends(_Requiring("admin"))]
Steward = Annotated[Caller, Depends(_Requiring("curate", "admin"))]
