"""Runs one attempt at a job in this process, with nothing else going on, and helps a scripted model to answer."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from app.db import connect
from app.embedded import Cluster
from app.embedding import build_embedder
from app.settings import Settings
from app.upkeep import queue
from app.upkeep.kinds import KINDS
from app.upkeep.runner import Runner
from tests.clients import Memory
from tests.conftest import settings_for
from tests.openai_server import OpenAIServer


@dataclass(frozen=True)
class Bench:
    """Where attempts are made: a database, settings, and the model's server."""

    database: Cluster
    settings: Settings
    server: OpenAIServer | None = None

    def attempt(self, memory: Memory, kind: Any, *, job: Any = None, **wanted: Any) -> Any:
        """The job after one attempt, which it may not have been the last of; `job` is one to be taken up again."""

        async def work() -> str:
            url = self.settings.worker_database_url
            assert url is not None
            embedder = build_embedder(self.settings)
            async with connect(
                url.get_secret_value(), size=4, timeout_s=10, statement_timeout_ms=30_000, name="test-attempt"
            ) as db:
                run_id = job["id"] if job else await self._enqueue(db, memory.namespace, kind, wanted)
                runner = Runner(db, self.settings, embedder, KINDS, timedelta(seconds=60), beat_s=5)
                await runner.attempt(memory.namespace, UUID(str(run_id)))
            await embedder.aclose()
            return str(run_id)

        return memory.get(f"/v1/jobs/{asyncio.run(work())}")

    @staticmethod
    async def _enqueue(db: Any, namespace: str, kind: Any, wanted: Mapping[str, Any]) -> str:
        given = dict(wanted)
        scope, dry_run = given.pop("scope", None), given.pop("dry_run", False)
        async with db.transaction() as conn:
            row = await queue.enqueue(
                conn, namespace, kind, requested_by="tester", scope=scope, dry_run=dry_run, parameters=given
            )
        assert row is not None
        return str(row["id"])


def with_model(database: Cluster, server: OpenAIServer, **more: Any) -> Bench:
    """Attempts that ask the scripted server."""
    given: dict[str, Any] = {
        "llm_url": server.base_url,
        "llm_model": "scripted",
        "llm_timeout_s": 5,
        "consolidate_min_facts": 2,
    }
    return Bench(database, settings_for(database, **(given | more)), server)


def shown(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The facts that a question shows."""
    asked = body["messages"][-1]["content"]
    lines = re.split(r"^=== \w+ ===$", asked, flags=re.MULTILINE)[1]
    return [json.loads(line) for line in lines.strip().splitlines()]


def handle(body: Mapping[str, Any], text: str) -> str:
    """The handle under which a question shows a text; one that was not shown where it does not."""
    return next((fact["id"] for fact in shown(body) if fact["text"] == text), "F999")


def digesting(text: str, *sources: str) -> Callable[[Mapping[str, Any]], Any]:
    """A model that proposes one digest over the facts with these texts."""

    def reply(body: Mapping[str, Any]) -> Any:
        return {
            "actions": [{"action": "digest", "sources": [handle(body, source) for source in sources], "text": text}]
        }

    return reply


def pairing(body: Mapping[str, Any]) -> Any:
    """A model that merges any two statements that begin with the same two words."""
    about: dict[str, list[dict[str, Any]]] = {}
    for fact in shown(body):
        if fact["kind"] != "digest":
            about.setdefault(" ".join(fact["text"].split()[:2]), []).append(fact)
    return {
        "actions": [
            {
                "action": "digest",
                "sources": [one["id"], other["id"]],
                "text": f"{one['text'].rstrip('.')}; {other['text']}",
            }
            for one, other in (pair for pair in about.values() if len(pair) == 2)
        ]
    }


def proposals(memory: Memory, job: Any, **filters: Any) -> list[Any]:
    """What a job proposed."""
    items: list[Any] = memory.get(f"/v1/jobs/{job['id']}/proposals", limit=200, **filters)["items"]
    return items
