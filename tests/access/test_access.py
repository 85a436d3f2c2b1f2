"""Keys and the rules of a namespace are for administrators, and every change of them is audited."""

from collections.abc import Callable

import psycopg
import pytest

from tests.clients import Memory

MakeClient = Callable[..., Memory]


def test_a_key_is_shown_once_and_works(memory: Memory, service_url: str) -> None:
    made = memory.post("/v1/keys", {"name": "scheduler", "roles": ["read", "write"]}, status=201)

    with Memory(service_url, made["key"], memory.namespace) as scheduler:
        fact = scheduler.fact("Held.")
    listed = memory.all("/v1/keys")

    assert fact["namespace"] == memory.namespace
    assert made["key"] not in str(listed)
    assert made["key"].split("_", 2)[2] not in str(listed)
    assert [key["name"] for key in listed] == ["tester", "scheduler"]
    assert memory.all("/v1/audit", fact=fact["id"])[0]["actor"] == "key:scheduler"


def test_the_secret_of_a_key_is_not_stored(memory: Memory, owner: psycopg.Connection[tuple[str]]) -> None:
    made = memory.post("/v1/keys", {"name": "scheduler"})["key"]

    (row,) = owner.execute("SELECT api_keys::text FROM api_keys WHERE prefix = %s", [made.split("_")[1]]).fetchall()

    assert made.split("_", 2)[2] not in row[0]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/name"),
        ({"name": ""}, "/name"),
        ({"name": "x" * 101}, "/name"),
        ({"name": "x", "roles": []}, "/roles"),
        ({"name": "x", "roles": ["god"]}, "/roles/0"),
        ({"name": "x", "read_scopes": []}, "/read_scopes"),
        ({"name": "x", "write_scopes": [" "]}, "/write_scopes/0"),
        ({"name": "x", "max_tier": "god"}, "/max_tier"),
        ({"name": "x", "expires_at": "2026-01-01T00:00:00"}, "/expires_at"),
        ({"name": "x", "namespace": "other"}, "/namespace"),
    ],
)
def test_a_key_out_of_bounds_is_refused(memory: Memory, body: dict[str, object], pointer: str) -> None:
    problem = memory.post("/v1/keys", body, status=422)

    assert problem["errors"][0]["pointer"] == pointer
    assert len(memory.all("/v1/keys")) == 1


def test_keys_of_another_namespace_are_not_there(memory: Memory, stranger: Memory) -> None:
    (theirs,) = stranger.all("/v1/keys")

    assert memory.http.delete(f"/v1/keys/{theirs['id']}").status_code == 404
    assert theirs["id"] not in {key["id"] for key in memory.all("/v1/keys")}
    assert stranger.texts() == []


def test_keys_come_in_pages_oldest_first(memory: Memory, client_of: MakeClient) -> None:
    for n in range(4):
        client_of(name=f"key {n}")

    assert [key["name"] for key in memory.all("/v1/keys", limit=2)] == ["tester", *(f"key {n}" for n in range(4))]


def test_making_and_revoking_keys_is_audited(memory: Memory) -> None:
    made = memory.post("/v1/keys", {"name": "scheduler"})
    memory.http.delete(f"/v1/keys/{made['id']}")

    events = [event for event in memory.all("/v1/audit") if event["detail"].get("key") == made["id"]]

    assert [event["action"] for event in events] == ["key_revoked", "key_created"]
    assert made["key"] not in str(events)


# --- Namespaces ------------------------------------------------------------------------------------------------


def test_a_namespace_begins_with_the_usual_rules(memory: Memory) -> None:
    assert memory.get(f"/v1/namespaces/{memory.namespace}") == {
        "name": memory.namespace,
        "policy": "auto_key",
        "require_evidence": False,
        "closed_vocabulary": False,
        "consolidate_may_retire": False,
    }


def test_a_change_leaves_the_rest_as_it_is(memory: Memory) -> None:
    memory.policy(policy="suggest", require_evidence=True)
    memory.policy(closed_vocabulary=True)

    rules = memory.get(f"/v1/namespaces/{memory.namespace}")

    assert (rules["policy"], rules["require_evidence"], rules["closed_vocabulary"]) == ("suggest", True, True)


@pytest.mark.parametrize("body", [{"policy": "yolo"}, {"require_evidence": "perhaps"}, {"name": "x"}, {"policy": None}])
def test_rules_out_of_bounds_are_refused(memory: Memory, body: dict[str, object]) -> None:
    answer = memory.http.patch(f"/v1/namespaces/{memory.namespace}", json=body)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == f"/{next(iter(body))}"
    assert memory.get(f"/v1/namespaces/{memory.namespace}")["policy"] == "auto_key"


def test_only_the_keys_own_namespace_is_there(memory: Memory, stranger: Memory) -> None:
    for name in (stranger.namespace, "nowhere"):
        memory.get(f"/v1/namespaces/{name}", status=404)
        assert memory.http.patch(f"/v1/namespaces/{name}", json={"policy": "explicit"}).status_code == 404

    assert stranger.get(f"/v1/namespaces/{stranger.namespace}")["policy"] == "auto_key"


def test_changing_the_rules_takes_an_administrator(client_of: MakeClient) -> None:
    client = client_of(roles=["read", "write", "curate"])

    answer = client.http.patch(f"/v1/namespaces/{client.namespace}", json={"policy": "explicit"})

    assert (answer.status_code, answer.json()["code"]) == (403, "role_forbidden")


def test_new_rules_leave_what_old_ones_retired(memory: Memory) -> None:
    old = memory.fact("Depot manager is Bram.", subject="depot")["id"]
    memory.remember("Depot manager is Ilse.", subject="depot")

    memory.policy(policy="explicit")

    assert memory.standing(old) == ["superseded"]
