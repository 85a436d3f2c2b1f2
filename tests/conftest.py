"""One Postgres for the run, migrated once; each test gets a namespace of its own in a running service."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest

from app.embedded import Cluster
from app.main import create_app
from app.schema import migrate
from app.settings import Settings
from tests.clients import Memory, make_key
from tests.cluster import close_run, cluster_of_the_run, open_run, own_database
from tests.openai_server import OpenAIServer
from tests.serving import running


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        open_run()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        close_run()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with cluster_of_the_run() as found:
        yield found


@pytest.fixture(scope="session")
def database(cluster: Cluster) -> Iterator[Cluster]:
    """A migrated database for this worker process; its tests keep apart by namespace."""
    with own_database(cluster) as mine:
        migrate(mine.owner_dsn)
        yield mine


@pytest.fixture
def fresh_database(cluster: Cluster) -> Iterator[Cluster]:
    """A migrated database that nothing was ever written to."""
    with own_database(cluster) as mine:
        migrate(mine.owner_dsn)
        yield mine


def settings_for(database: Cluster, **more: Any) -> Settings:
    given: dict[str, Any] = {
        "database_url": database.api_dsn,
        "worker_database_url": database.worker_dsn,
        "migration_database_url": database.owner_dsn,
        "key_cache_s": 0,
        "log_level": "warning",
    }
    return Settings(_env_file=None, **(given | more))


@pytest.fixture(scope="session")
def service_url(database: Cluster) -> Iterator[str]:
    # A key from the start, so that no test runs in development mode by accident.
    make_key(database, "unused")
    app = create_app(settings_for(database))
    # FastAPI builds routes when they are first asked for, which two servers in one process must not do at once.
    app.openapi()
    with running(app) as url:
        yield url


@contextmanager
def served(settings: Settings, database: Cluster, namespace: str) -> Iterator[Memory]:
    """A client with every role in a namespace, of a service of its own without a worker."""
    key = make_key(database, namespace, roles=["read", "write", "curate", "admin"], max_tier="system")
    with running(create_app(settings)) as url, Memory(url, key, namespace) as client:
        yield client


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """A scripted endpoint that speaks the OpenAI protocol."""
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def namespace() -> str:
    return f"ns-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def memory(service_url: str, database: Cluster, namespace: str) -> Iterator[Memory]:
    """A client with every role in an empty namespace."""
    key = make_key(database, namespace, roles=["read", "write", "curate", "admin"], max_tier="system")
    with Memory(service_url, key, namespace) as client:
        yield client


@pytest.fixture
def client_of(service_url: str, database: Cluster, namespace: str) -> Iterator[Callable[..., Memory]]:
    """Makes clients with keys of their own; in the test's namespace unless told which."""
    with ExitStack() as opened:

        def make(within: str = namespace, **wanted: Any) -> Memory:
            return opened.enter_context(Memory(service_url, make_key(database, within, **wanted), within))

        yield make


@pytest.fixture
def stranger(client_of: Callable[..., Memory], namespace: str) -> Memory:
    """A client with every role in another namespace."""
    return client_of(f"other-{namespace}", roles=["read", "write", "curate", "admin"], max_tier="system")


@pytest.fixture
def owner(database: Cluster) -> Iterator[psycopg.Connection[Any]]:
    """A look behind the views."""
    with psycopg.connect(database.owner_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def as_api(database: Cluster) -> Iterator[psycopg.Connection[Any]]:
    """A connection with the API's role."""
    with psycopg.connect(database.api_dsn, autocommit=True) as connection:
        yield connection
