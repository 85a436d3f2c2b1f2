"""Nothing of another namespace, nor of a scope that a key does not open, shows or can be touched."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.clients import NEVER, Memory

CANARY = "canary-8842"
MakeClient = Callable[..., Memory]


def answers(client: Memory, id_: str) -> dict[str, Any]:
    """What every request about one fact is answered with, the id and the request's own id left out."""
    mine = client.fact("Mine.", scope="south")["id"]
    reason = {"reason": "Because."}
    requests: dict[str, tuple[str, str, Any]] = {
        "get": ("GET", f"/v1/facts/{id_}", None),
        "history": ("GET", f"/v1/facts/{id_}/history", None),
        "supersede": ("POST", f"/v1/facts/{id_}/supersede", {"content": "New."} | reason),
        "superseded by mine": ("POST", f"/v1/facts/{id_}/supersede", {"by": mine} | reason),
        "mine superseded by it": ("POST", f"/v1/facts/{mine}/supersede", {"by": id_} | reason),
        "amend": ("POST", f"/v1/facts/{id_}/amend", {"content": "New."} | reason),
        "fold": ("POST", f"/v1/facts/{mine}/amend", {"content": "New.", "folds": [id_]} | reason),
        "forget": ("POST", f"/v1/facts/{id_}/forget", reason),
        "restore": ("POST", f"/v1/facts/{id_}/restore", reason),
        "pin": ("POST", f"/v1/facts/{id_}/pin", None),
        "unpin": ("POST", f"/v1/facts/{id_}/unpin", None),
        "write": ("POST", "/v1/facts", {"content": "New.", "scope": "south", "supersedes": [id_]} | reason),
        "contradict": ("POST", "/v1/links", {"kind": "contradicts", "source_id": mine, "target_id": id_}),
        "contradicted": ("POST", "/v1/links", {"kind": "contradicts", "source_id": id_, "target_id": mine}),
        "links": ("GET", f"/v1/links?fact={id_}", None),
        "conflicts": ("GET", f"/v1/conflicts?fact={id_}", None),
        "audit": ("GET", f"/v1/audit?fact={id_}", None),
        "freshness": ("POST", "/v1/freshness", {"ids": [id_]}),
    }
    found = {}
    for name, (method, path, body) in requests.items():
        answer = client.http.request(method, path, json=body)
        told = answer.json()
        told.pop("request_id", None)
        found[name] = (answer.status_code, str(told).replace(id_, "ID").replace(mine, "MINE"))
    assert client.standing(mine) == ["active"]
    return found


# C60
@pytest.mark.parametrize("wall", ["namespace", "scope"])
def test_a_foreign_fact_is_answered_like_one_that_never_was(
    memory: Memory, client_of: MakeClient, stranger: Memory, wall: str
) -> None:
    fact = memory.fact(f"{CANARY} dentist at noon.", scope="north", subject="dentist")["id"]
    south = stranger
    if wall == "scope":
        roles = ["read", "write", "curate", "admin"]
        south = client_of(roles=roles, read_scopes=["south"], write_scopes=["south"])
    before = memory.history(fact)

    assert answers(south, fact) == answers(south, NEVER)

    assert memory.history(fact) == before
    assert memory.actions(fact) == ["remembered"]


# C60
def test_a_batch_touches_only_what_the_key_opens(memory: Memory, client_of: MakeClient) -> None:
    fact = memory.fact("Theirs.", scope="north")["id"]
    south = client_of(read_scopes=["south"], write_scopes=["south"])
    mine = south.fact("Mine.", scope="south")["id"]
    replacing = {"scope": "south", "reason": "Because."}

    batch = south.batch(
        {"content": "New.", "supersedes": [mine]} | replacing,
        {"content": "Newer.", "supersedes": [fact]} | replacing,
        {"content": "Elsewhere.", "scope": "north"},
        atomic=False,
    )

    assert [item["outcome"] for item in batch["items"]] == ["superseded", "rejected", "rejected"]
    assert [item["problem"]["code"] for item in batch["items"][1:]] == ["fact_not_found", "scope_forbidden"]
    assert memory.standing(fact, mine) == ["active", "superseded"]


# C57
def test_no_read_shows_anything_of_a_closed_scope(memory: Memory, client_of: MakeClient) -> None:
    first = memory.fact(f"{CANARY} dentist at noon.", scope="alice", subject=f"{CANARY}.subject", tags=[CANARY])
    second = memory.remember(f"{CANARY} dentist at two.", scope="alice", subject=f"{CANARY}.subject")["fact"]
    memory.remember(f"{CANARY} dentist is closed.", scope="alice", subject=f"{CANARY}.subject", kind="note")
    mine = memory.fact("Bob's own.", scope="bob")["id"]
    memory.link("relates_to", mine, second["id"], reason=CANARY)
    everything = ["read", "write", "curate", "admin"]
    bob = client_of(roles=everything, read_scopes=["bob"], write_scopes=["bob"])

    shown = []
    for path, operations in bob.get("/openapi.json")["paths"].items():
        if "get" in operations and path.startswith("/v1") and "changes" not in path:
            filled = path.replace("{fact_id}", first["id"]).replace("{subject}", f"{CANARY}.subject")
            filled = filled.replace("{name}", bob.namespace)
            shown.append((path, bob.http.get(filled, params={"q": CANARY} if "recall" in path else None)))
    shown.append(("recall", bob.http.post("/v1/recall", json={"query": f"{CANARY} dentist", "include": ["retired"]})))
    shown.append(("freshness", bob.http.post("/v1/freshness", json={"ids": [first["id"], second["id"]]})))
    shown.append(("near", bob.http.get("/v1/subjects", params={"near": "canary"})))
    shown.append(("own history", bob.http.get(f"/v1/facts/{mine}/history")))

    for path, answer in shown:
        assert answer.status_code < 500, path
        text = answer.text.replace(f'"instance":"{answer.url.path}"', "").replace(str(answer.url.path), "")
        for secret in (CANARY, second["id"]):
            if path not in ("freshness", "near", "/v1/recall"):
                assert secret not in text, (path, answer.text)
            assert f"{secret} dentist" not in text, (path, answer.text)
    assert bob.get("/v1/stats")["by_scope"] == [{"scope": "bob", "current": 1, "retired": 0}]


def test_what_replaced_a_fact_in_a_closed_scope_is_not_told(memory: Memory, client_of: MakeClient) -> None:
    old = memory.fact("Standup is at 9:30.", scope="team")["id"]
    new = memory.fact(f"{CANARY}: standup is at 9:00.", scope="board")["id"]
    memory.supersede(old, by=new, reason="Moved.", evidence=CANARY)
    team = client_of(roles=["read", "write", "admin"], read_scopes=["team"], write_scopes=["team"])
    mine = team.fact("Mine.", scope="team")["id"]

    told = [
        team.http.get(f"/v1/facts/{old}").text,
        team.http.get(f"/v1/facts/{old}/history").text,
        team.http.get("/v1/links").text,
        team.http.get("/v1/audit").text,
        team.http.post("/v1/freshness", json={"ids": [old]}).text,
        team.http.post(f"/v1/facts/{old}/supersede", json={"content": "New.", "reason": "x"}).text,
        team.http.post(f"/v1/facts/{old}/forget", json={"reason": "x"}).text,
        team.http.post(f"/v1/facts/{old}/pin").text,
        team.http.post(f"/v1/facts/{mine}/supersede", json={"by": old, "reason": "x"}).text,
        team.http.post("/v1/links", json={"kind": "contradicts", "source_id": mine, "target_id": old}).text,
    ]

    assert team.standing(old) == ["superseded"]
    assert team.history(old)["facts"][0]["reason"] == "Moved."
    for text in told:
        assert CANARY not in text
        assert new not in text


def test_saying_again_what_a_closed_scope_replaced_names_nothing_there(memory: Memory, client_of: MakeClient) -> None:
    memory.policy(policy="suggest")
    old = memory.fact("Standup is at 9:30.", scope="team")["id"]
    new = memory.fact(f"{CANARY}: standup is at 9:00.", scope="board")["id"]
    memory.supersede(old, by=new)
    team = client_of(read_scopes=["team"], write_scopes=["team"])

    answer = team.remember("Standup is at 9:30.", scope="team", status=201)

    assert answer["conflicts"] == []
    assert CANARY not in str(answer)


def test_saying_again_what_another_scope_replaced_is_a_conflict_for_who_reads_both(memory: Memory) -> None:
    memory.policy(policy="suggest")
    old = memory.fact("Standup is at 9:30.", scope="team")["id"]
    new = memory.fact("Nobody meets any more.", scope="board")["id"]
    memory.supersede(old, by=new)

    answer = memory.remember("Standup is at 9:30.", scope="team", status=201)

    assert [(conflict["fact_id"], conflict["kind"]) for conflict in answer["conflicts"]] == [(new, "reassertion")]


# C19
def test_a_newer_value_in_a_closed_scope_does_not_bring_an_older_one_back(
    memory: Memory, client_of: MakeClient
) -> None:
    first = memory.fact("The CEO is Adler.", scope="team", subject="ceo")["id"]
    second = memory.supersede(first, content="The CEO is Brandt.")["fact"]["id"]
    third = memory.fact("The CEO is Cato.", scope="board", subject="ceo")["id"]
    memory.supersede(second, by=third)
    team = client_of(read_scopes=["team"], write_scopes=["team"])

    assert team.recalled("who is the CEO") == []
    assert team.texts() == []


# C58
def test_every_way_of_writing_keeps_the_scope(memory: Memory, client_of: MakeClient) -> None:
    clinic = client_of(read_scopes=["clinic"], write_scopes=["clinic"])
    single = clinic.fact("Single ward has six beds.", scope="clinic")["id"]
    clinic.batch({"content": "Batch ward has seven beds.", "scope": "clinic"})
    clinic.amend(single, "Single ward has six beds, two of them spare.")
    another = clinic.fact("Another ward has eight beds.", scope="clinic")["id"]
    clinic.supersede(another, content="Another ward has nine beds.")

    assert sorted(clinic.texts(scope="clinic")) == [
        "Another ward has nine beds.",
        "Batch ward has seven beds.",
        "Single ward has six beds, two of them spare.",
    ]
    assert len(clinic.recalled("ward beds", scopes=["clinic"])) == 3
    assert memory.texts(scope="shared") == []


def test_one_scope_never_overwrites_another(memory: Memory) -> None:
    first = memory.fact("Standup is at 9:30.", subject="standup", scope="team/a")["id"]

    answer = memory.remember("Standup is at 9:00.", subject="standup", scope="team/b")

    assert (answer["superseded"], answer["conflicts"]) == ([], [])
    assert memory.standing(first) == ["active"]
    for order in (["team/a", "team/b"], ["team/b", "team/a"]):
        assert [fact["scope"] for fact in memory.subject("standup", scope=order)["current"]] == order


@pytest.mark.parametrize(
    ("patterns", "admitted", "refused"),
    [
        (["team/*"], ["team/a", "team/a/b"], ["team", "teams/a", "other"]),
        (["shared"], ["shared"], ["Shared", "shared/a", "share"]),
        (["*"], ["anything", "team/a"], []),
        (["a", "b/*"], ["a", "b/c"], ["b", "a/c"]),
    ],
)
def test_a_key_opens_exact_scopes_and_everything_below_a_prefix(
    client_of: MakeClient, patterns: list[str], admitted: list[str], refused: list[str]
) -> None:
    client = client_of(read_scopes=patterns, write_scopes=patterns)

    for scope in admitted:
        client.remember(f"Held in {scope}.", scope=scope, status=201)
        assert client.texts(scope=scope) == [f"Held in {scope}."]
    for scope in refused:
        assert client.remember("Refused.", scope=scope, status=403)["code"] == "scope_forbidden"
        assert client.get("/v1/facts", scope=scope, status=403)["code"] == "scope_forbidden"
    assert sorted(client.texts()) == sorted(f"Held in {scope}." for scope in admitted)


def test_a_key_that_only_reads_a_scope_changes_nothing_there(memory: Memory, client_of: MakeClient) -> None:
    fact = memory.fact("Shared.", scope="shared")["id"]
    gone = memory.fact("Gone.", scope="shared")["id"]
    memory.forget(gone)
    reader = client_of(roles=["read", "write", "curate"], read_scopes=["*"], write_scopes=["mine"])
    mine = reader.fact("Mine.", scope="mine")["id"]

    reader.supersede(fact, content="New.", status=403)
    reader.supersede(fact, by=mine, status=403)
    reader.amend(fact, "New.", status=403)
    reader.amend(mine, "New.", folds=[fact], status=403)
    reader.forget(fact, status=403)
    reader.restore(gone, status=403)
    reader.post(f"/v1/facts/{fact}/pin", status=403)
    reader.remember("New.", scope="mine", supersedes=[fact], reason="Because.", status=403)
    reader.link("contradicts", fact, mine, status=403)

    assert memory.standing(fact, gone, mine) == ["active", "forgotten", "active"]
    assert memory.actions(fact) == ["remembered"]
