"""Development mode: who is let in while no key was ever made, and that it never comes back."""

import socket
from collections.abc import Iterator

import httpx
import pytest

from app.auth import is_loopback
from app.embedded import Cluster
from app.main import create_app
from app.schema import migrate
from tests.clients import Memory, make_key
from tests.cluster import own_database
from tests.conftest import settings_for
from tests.serving import running


@pytest.fixture(scope="module")
def keyless(cluster: Cluster) -> Iterator[Cluster]:
    """A migrated database in which no key was ever made."""
    with own_database(cluster) as mine:
        migrate(mine.owner_dsn)
        yield mine


@pytest.fixture(scope="module")
def open_url(keyless: Cluster) -> Iterator[str]:
    """A service that needs no key."""
    with running(create_app(settings_for(keyless))) as url:
        yield url


def test_without_keys_a_program_on_this_machine_may_do_everything(open_url: str) -> None:
    with Memory(open_url, None) as memory:
        fact = memory.fact("The stand-up is at 9:30.")

        assert fact["namespace"] == "default"
        memory.http.get("/v1/keys").raise_for_status()


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8000", "127.0.0.1", "127.9.9.9:80", "[::1]:8000", "me.localhost"]
)
def test_names_that_always_mean_this_machine_are_answered(open_url: str, host: str) -> None:
    assert httpx.get(f"{open_url}/v1/facts", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["rebound.example", "rebound.example:8000", "localhost.example", "127.0.0.1.example", "192.0.2.1", "[", ""]
)
def test_a_name_that_could_be_anybodys_is_refused(open_url: str, host: str) -> None:
    answer = httpx.get(f"{open_url}/v1/facts", headers={"Host": host})

    assert (answer.status_code, answer.json()["code"]) == (403, "loopback_only")


@pytest.mark.parametrize("origin", ["https://page.example", "http://127.0.0.1:1", "null"])
def test_a_page_of_another_origin_is_refused(open_url: str, origin: str) -> None:
    answer = httpx.post(f"{open_url}/v1/facts", json={"content": "It was the page."}, headers={"Origin": origin})

    assert (answer.status_code, answer.json()["code"]) == (403, "loopback_only")


def test_the_service_s_own_page_is_answered(open_url: str) -> None:
    answer = httpx.get(f"{open_url}/v1/facts", headers={"Origin": open_url})

    assert answer.status_code == 200


def test_another_interface_does_not_lead_in(keyless: Cluster) -> None:
    address = own_address()
    with running(create_app(settings_for(keyless)), host=address) as url:
        answer = httpx.get(f"{url}/v1/facts", headers={"Host": "localhost"})

    assert (answer.status_code, answer.json()["code"]) == (403, "loopback_only")


def own_address() -> str:
    """An address of this machine that others could reach."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.99", 9))  # Nothing is sent: it only chooses the interface.
        except OSError:
            pytest.skip("this machine has no address but the loopback one")
        address = str(probe.getsockname()[0])
    if is_loopback(address):
        pytest.skip("this machine has no address but the loopback one")
    return address


def test_revoking_the_last_key_does_not_open_the_service(fresh_database: Cluster) -> None:
    key = make_key(fresh_database, "default", roles=["admin"])
    with running(create_app(settings_for(fresh_database))) as url, Memory(url, key) as admin:
        (made,) = admin.get("/v1/keys")["items"]

        admin.http.delete(f"/v1/keys/{made['id']}").raise_for_status()

        assert httpx.get(f"{url}/v1/facts").status_code == 401
        assert admin.http.get("/v1/keys").status_code == 401
