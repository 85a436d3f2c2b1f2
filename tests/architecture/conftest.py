"""Connections as each of the roles that the service runs under."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from app.embedded import Cluster


@pytest.fixture(params=["memory_api", "memory_worker"])
def role(request: pytest.FixtureRequest) -> str:
    """One runtime role after the other."""
    return str(request.param)


@pytest.fixture
def as_role(database: Cluster, role: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection with the runtime role."""
    dsn = {"memory_api": database.api_dsn, "memory_worker": database.worker_dsn}[role]
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection
