"""A worker that is killed in the middle of a job loses it to the next one, and the job comes out as if it had lived."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from app.embedded import Cluster
from app.settings import Settings
from app.upkeep.consolidation.service import LARGEST_BATCH
from tests.clients import Memory
from tests.conftest import served, settings_for
from tests.openai_server import OpenAIServer
from tests.upkeep.ageing import age
from tests.upkeep.attempting import Bench, pairing, proposals, shown
from tests.working import finished, killable, until, working

# Twelve things of which two statements are made each: more than one question holds.
THINGS = (
    "amber piano,attic,Astrid;beige sofa,cellar,Bertil;crimson drill,garage,Cecilie;denim ladder,barn,Dagny;"
    "ebony clock,hall,Espen;fuchsia kayak,boathouse,Frida;golden lamp,study,Gunnar;hazel bench,garden,Hedda;"
    "ivory printer,office,Ivar;jade kettle,kitchen,Jorunn;khaki tent,loft,Kettil;lilac mirror,bathroom,Liv"
)
POSTGRES = "The event store runs on Postgres."
REPLICA = "We also added a read replica to the event store."


def statements() -> list[str]:
    """Two statements about each thing: where it stands, and whose it is."""
    told = []
    for thing in THINGS.split(";"):
        name, room, owner = thing.split(",")
        told += [f"The {name} stands in the {room}.", f"The {name} belongs to {owner}."]
    return told


@pytest.fixture
def settings(fresh_database: Cluster, server: OpenAIServer) -> Settings:
    """Nothing runs but what is asked for."""
    return settings_for(
        fresh_database,
        embedding_url=server.base_url,
        embedding_model="stub-a",
        embedding_timeout_s=60,
        llm_url=server.base_url,
        llm_model="scripted",
        llm_timeout_s=60,
        job_lease_s=3,
        decay_every_h=0,
        prune_every_h=0,
        review_every_h=0,
    )


@pytest.fixture
def client(fresh_database: Cluster, settings: Settings, namespace: str) -> Iterator[Memory]:
    """A service without a worker."""
    with served(settings, fresh_database, namespace) as client:
        yield client


# --- What a job is caught in -----------------------------------------------------------------------------------

Hindrance = Callable[[Cluster, OpenAIServer], AbstractContextManager[Callable[[], Any]]]


@contextmanager
def a_locked_row(database: Cluster, _server: OpenAIServer) -> Iterator[Callable[[], Any]]:
    """Nobody gets on who wants to write the use of facts."""
    with psycopg.connect(database.owner_dsn) as holder, psycopg.connect(database.superuser_dsn, autocommit=True) as eye:
        holder.execute("SELECT FROM fact_use FOR UPDATE")
        yield lambda: eye.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE usename = 'memory_worker' AND datname = current_database() AND wait_event_type = 'Lock'"
        ).fetchone()


@contextmanager
def a_silent_embedder(_database: Cluster, server: OpenAIServer) -> Iterator[Callable[[], Any]]:
    """Nobody gets on who wants a vector."""
    asked = len(server.calls_to("embeddings"))
    server.embeddings = "timeout"
    yield lambda: len(server.calls_to("embeddings")) > asked
    server.embeddings = "ok"


def a_silent_model(*, after: int) -> Hindrance:
    """Nobody gets on who has had so many answers."""

    @contextmanager
    def hindrance(_database: Cluster, server: OpenAIServer) -> Iterator[Callable[[], Any]]:
        asked = len(server.calls_to("chat"))
        server.chat = ["ok"] * after + ["timeout"]
        yield lambda: len(server.calls_to("chat")) > asked + after
        server.chat = "ok"

    return hindrance


@dataclass(frozen=True)
class Scene:
    """Where a worker is killed."""

    client: Memory
    database: Cluster
    server: OpenAIServer
    settings: Settings

    def kill_a_worker_in(self, hindrance: Hindrance, kind: str, **wanted: Any) -> Any:
        """The job after a first worker was killed in the middle of it and a second one took it up by itself.

        The same is then asked for once more, so that whatever could be done twice would be.
        """
        with hindrance(self.database, self.server) as caught, killable(self.settings) as process:
            job = self.client.post("/v1/jobs", {"kind": kind} | wanted, status=202)
            until(caught, seconds=90, what=f"the middle of the job {kind}")
            assert self.client.get(f"/v1/jobs/{job['id']}")["status"] == "running"
            process.kill()
            process.wait()
        later = self.client.post("/v1/jobs", {"kind": kind} | wanted, status=202)
        with working(self.settings):
            done, after = finished(self.client, job), finished(self.client, later)
        assert (done["status"], done["attempts"]) == ("succeeded", 2), done
        assert (after["status"], after["attempts"]) == ("succeeded", 1), after
        return done

    def set_up(self, **changed: Any) -> Bench:
        """Where jobs that come before are run."""
        return Bench(self.database, self.settings.model_copy(update=changed), self.server)


@pytest.fixture
def scene(client: Memory, fresh_database: Cluster, server: OpenAIServer, settings: Settings) -> Scene:
    return Scene(client, fresh_database, server, settings)


# --- By kind ---------------------------------------------------------------------------------------------------


def test_decay_halves_a_weight_once(scene: Scene) -> None:
    boiler, roof = scene.client.fact("Kettil services the boiler."), scene.client.fact("Dagny services the roof.")
    age(scene.database, [boiler["id"], roof["id"]], days=30)

    scene.kill_a_worker_in(a_locked_row, "decay")

    assert [round(fact["weight"], 3) for fact in scene.client.current()] == [0.5, 0.5]


def test_prune_removes_what_is_unused_and_leaves_one_stone_each(scene: Scene) -> None:
    old = [scene.client.fact(text)["id"] for text in ("Kettil services the boiler.", "Dagny services the roof.")]
    young = scene.client.fact("Sunniva services the lift.")
    age(scene.database, old, days=730)

    scene.kill_a_worker_in(a_locked_row, "prune")

    assert [fact["id"] for fact in scene.client.current()] == [young["id"]]
    assert sorted(event["fact_id"] for event in scene.client.all("/v1/audit", action="pruned")) == sorted(old)


def test_embed_pending_gives_every_fact_its_vector(scene: Scene) -> None:
    scene.server.embeddings = "500"
    scene.client.batch("Kettil services the boiler.", "Dagny services the roof.")

    scene.kill_a_worker_in(a_silent_embedder, "embed_pending")

    assert [fact["embedding"] for fact in scene.client.current()] == ["ready", "ready"]


def test_reembed_gives_every_fact_a_vector_of_the_new_model(scene: Scene) -> None:
    scene.client.batch("Kettil services the boiler.", "Dagny services the roof.")
    changed = Scene(
        scene.client, scene.database, scene.server, scene.settings.model_copy(update={"embedding_model": "stub-b"})
    )

    changed.kill_a_worker_in(a_silent_embedder, "reembed")

    with psycopg.connect(scene.database.owner_dsn) as owner:
        profiles = owner.execute("SELECT embedding_profile, count(*) FROM ledger.facts GROUP BY 1").fetchall()
    assert profiles == [("stub-b-64", 2)]


def test_consolidation_asks_about_no_fact_twice_and_puts_each_into_one_digest(scene: Scene) -> None:
    scene.client.policy(policy="explicit", consolidate_may_retire=True)
    texts = statements()
    scene.client.batch(*texts)
    scene.server.replies = pairing

    job = scene.kill_a_worker_in(a_silent_model(after=1), "consolidate", scope="shared")

    digests = scene.client.current(kind="digest")
    assert sorted(scene.client.texts(kind="note")) == sorted(texts)
    assert sorted(sources_of(scene, digests)) == sorted(fact["id"] for fact in scene.client.current(kind="note"))
    assert len(digests) == len(texts) // 2
    answered, killed, again = (shown(call.body) for call in scene.server.calls_to("chat"))
    assert again == killed
    # What is new comes first in a question, what stands around it after that.
    assert [fact["text"] for fact in answered[:LARGEST_BATCH]] == texts[:LARGEST_BATCH]
    assert job["calls"] == 3


def sources_of(scene: Scene, digests: list[Any]) -> list[str]:
    """The facts that these digests were made from, each as often as it is in one."""
    links = [(digest, link) for digest in digests for link in scene.client.history(digest["id"])["links"]]
    return [
        link["target_id"]
        for digest, link in links
        if link["kind"] == "derived_from" and link["source_id"] == digest["id"]
    ]


def test_review_takes_a_wrong_retirement_back_once_and_leaves_a_right_one(scene: Scene) -> None:
    scene.client.policy(policy="explicit")
    wrongly = scene.client.fact(POSTGRES)
    scene.client.supersede(wrongly["id"], content=REPLICA)
    rightly = scene.client.fact("The stand-up is at 9:30.")
    scene.client.supersede(rightly["id"], content="The stand-up is at 9:00.")
    scene.server.replies = lambda body: {"ended": True, "quote": shown(body)[0]["new"]}

    job = scene.kill_a_worker_in(a_silent_model(after=0), "review", apply=True)

    assert sorted(scene.client.texts()) == sorted([POSTGRES, REPLICA, "The stand-up is at 9:00."])
    assert scene.client.actions(wrongly["id"]).count("restored") == 1
    assert [(made["kind"], made["verdict"]) for made in proposals(scene.client, job)] == [("demotion", "applied")]


def test_rederive_writes_each_stale_digest_anew_once(scene: Scene) -> None:
    texts = statements()[:4]
    scene.client.batch(*texts)
    scene.server.replies = pairing
    scene.set_up(consolidate_min_facts=4).attempt(scene.client, "consolidate")
    stale = scene.client.current(kind="digest")
    moved = {text: text.replace("stands in the", "stands in the new") for text in texts if "stands in" in text}
    for fact in scene.client.current(kind="note"):
        if fact["content"] in moved:
            scene.client.supersede(fact["id"], content=moved[fact["content"]])

    job = scene.kill_a_worker_in(a_silent_model(after=1), "rederive")

    written = scene.client.current(kind="digest")
    heads = [scene.client.get(f"/v1/facts/{digest['id']}", status=410)["head"] for digest in stale]
    assert sorted(heads) == sorted(digest["id"] for digest in written)
    assert sorted(sources_of(scene, written)) == sorted(fact["id"] for fact in scene.client.current(kind="note"))
    assert (len(written), job["calls"]) == (2, 3)
