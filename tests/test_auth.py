"""Who calls is said by the key alone: the namespace, the roles, the scopes, the trust."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.auth import TIERS, Caller, Scopes, issue_key, rank, tiers_from
from tests.clients import NEVER, Memory

MakeClient = Callable[..., Memory]


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer nonsense",
        "Bearer pal_",
        "Bearer pal_000000000000_" + "x" * 43,
        "Basic dXNlcjpwYXNz",
        "bearer pal_é",
    ],
)
def test_a_request_without_a_valid_key_is_refused(service_url: str, header: str | None) -> None:
    headers = {} if header is None else {b"Authorization": header.encode()}

    answer = httpx.get(f"{service_url}/v1/facts", headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_key_with_a_wrong_secret_is_refused(memory: Memory) -> None:
    right = memory.http.headers["Authorization"]
    wrong = right[:-4] + ("aaaa" if not right.endswith("aaaa") else "bbbb")

    assert memory.http.get("/v1/facts", headers={"Authorization": wrong}).status_code == 401
    assert memory.http.get("/v1/facts", headers={"Authorization": right[:-1]}).status_code == 401


def test_a_revoked_key_stops_working(memory: Memory, client_of: MakeClient) -> None:
    other = client_of(name="to revoke")
    (key,) = (key for key in memory.all("/v1/keys") if key["name"] == "to revoke")

    assert memory.http.delete(f"/v1/keys/{key['id']}").status_code == 200
    assert memory.http.delete(f"/v1/keys/{key['id']}").json()["revoked_at"]

    assert other.get("/v1/facts", status=401)["code"] == "unauthorized"


def test_an_expired_key_stops_working(client_of: MakeClient) -> None:
    client = client_of(expires_at=datetime.now(UTC) - timedelta(seconds=1))

    assert client.get("/v1/facts", status=401)["code"] == "unauthorized"


REQUESTS: list[tuple[str, str, str]] = [
    ("read", "GET", "/v1/facts"),
    ("read", "GET", f"/v1/facts/{NEVER}"),
    ("read", "GET", f"/v1/facts/{NEVER}/history"),
    ("read", "POST", "/v1/recall"),
    ("read", "POST", "/v1/freshness"),
    ("read", "GET", "/v1/subjects"),
    ("read", "GET", "/v1/subjects/x"),
    ("read", "GET", "/v1/subjects/x/history"),
    ("read", "GET", "/v1/conflicts"),
    ("read", "GET", "/v1/links"),
    ("read", "GET", "/v1/stats"),
    ("write", "POST", "/v1/facts"),
    ("write", "POST", "/v1/facts/batch"),
    ("write", "POST", f"/v1/facts/{NEVER}/supersede"),
    ("write", "POST", f"/v1/facts/{NEVER}/amend"),
    ("write", "POST", f"/v1/facts/{NEVER}/forget"),
    ("write", "POST", f"/v1/facts/{NEVER}/pin"),
    ("write", "POST", f"/v1/facts/{NEVER}/unpin"),
    ("write", "POST", "/v1/links"),
    ("curate", "POST", f"/v1/facts/{NEVER}/restore"),
    ("curate", "POST", f"/v1/conflicts/{NEVER}/resolve"),
    ("curate", "POST", f"/v1/links/{NEVER}/demote"),
    ("admin", "GET", "/v1/keys"),
    ("admin", "POST", "/v1/keys"),
    ("admin", "DELETE", f"/v1/keys/{NEVER}"),
]


@pytest.mark.parametrize("role", ["read", "write", "curate", "admin"])
def test_each_route_takes_its_role_and_no_other(client_of: MakeClient, role: str) -> None:
    client = client_of(roles=[role])

    for needed, method, path in REQUESTS:
        answer = client.http.request(method, path, json={} if method == "POST" else None)
        refused = answer.status_code == 403 and answer.json()["code"] == "role_forbidden"
        assert refused == (needed != role), (needed, method, path, answer.text)


def test_the_namespace_comes_from_the_key(memory: Memory, stranger: Memory) -> None:
    fact = memory.fact("Held.")
    stranger.fact("Theirs.")

    assert fact["namespace"] == memory.namespace
    assert memory.texts() == ["Held."]
    assert stranger.texts() == ["Theirs."]


# --- Scopes and tiers ------------------------------------------------------------------------------------------

NAMES = st.text("ab/*", min_size=1, max_size=6)


@given(st.lists(NAMES, max_size=4), NAMES)
def test_a_pattern_admits_exactly_what_it_says(patterns: list[str], scope: str) -> None:
    admitted = any(
        pattern in ("*", scope) or (pattern.endswith("/*") and scope.startswith(pattern[:-1])) for pattern in patterns
    )
    # A name that ends in `/*` is a prefix, never a scope of that name.
    if not (scope.endswith("/*") and scope in patterns):
        assert Scopes.parse(patterns).admit(scope) == admitted


@pytest.mark.parametrize("cap", TIERS)
@pytest.mark.parametrize("asked", TIERS)
def test_a_tier_is_capped_by_the_keys_own(cap: str, asked: str) -> None:
    everything = Scopes.parse(["*"])
    caller = Caller("ns", "name", frozenset(), everything, everything, cap)  # type: ignore[arg-type]

    given = caller.capped(asked)  # type: ignore[arg-type]

    assert rank(given) == min(rank(asked), rank(cap))  # type: ignore[arg-type]


def test_tiers_from_a_lowest_on_are_those_trusted_as_much() -> None:
    assert tiers_from("observed") == ["system", "user", "observed"]
    assert tiers_from("system") == ["system"]


def test_keys_are_long_random_and_kept_as_a_hash() -> None:
    keys = [issue_key() for _ in range(100)]

    assert len({key.text for key in keys}) == 100
    assert all(key.text.startswith(f"pal_{key.prefix}_") for key in keys)
    assert all(len(key.text.split("_", 2)[2]) >= 43 for key in keys)
    assert all(key.text.encode() not in key.secret_hash for key in keys)
