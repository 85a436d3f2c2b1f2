"""What consolidation does to 500 facts while the model fails in every known way, and with a real if tiny model.

    python -m bench.consolidation [--facts 500] [--failing 0.3] [--seed 11]
    python -m bench.consolidation --llm-url http://127.0.0.1:8089/v1 --llm-model smollm2 --facts 40 --attempts 3

The first form asks a scripted server that merges whatever it is shown, sees contradictions everywhere and wants most
facts gone, and that fails at random; then the failures stop. The second asks an endpoint that runs already. Counted
is what became of the facts: none may be lost or retired, each may be in one digest at most.
"""

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from app import embedded
from app.db import Database, connect
from app.embedded import Cluster
from app.embedding import build_embedder
from app.facts import preparing
from app.facts import service as facts
from app.schema import migrate
from app.settings import Settings
from app.state import Service
from app.upkeep import queries, queue
from app.upkeep.consolidation.writing import draft_of, worker
from app.upkeep.kinds import KINDS
from app.upkeep.runner import Runner
from tests.openai_server import OpenAIServer, mix
from tests.upkeep.attempting import shown

NAMESPACE = "default"
MOST_ATTEMPTS = 60
FAILURES = (
    "500 503 429 hang_up 401 402 quota html trailing_comma list empty null truncated wrong_ids unknown_action 400 "
    "fenced prose think no_json_schema".split()
)
_STATE = """
    SELECT
        (SELECT count(*) FROM facts_active WHERE kind <> 'digest') AS current_facts,
        (SELECT count(*) FROM facts_history WHERE kind NOT IN ('digest', 'retraction') AND superseded_by IS NOT NULL)
            AS retired_facts,
        (SELECT count(*) FROM facts_active WHERE kind = 'digest') AS digests,
        (SELECT count(*) FROM (
            SELECT l.target_id FROM links AS l JOIN facts_active AS d ON d.id = l.source_id
            WHERE l.kind = 'derived_from' GROUP BY 1 HAVING count(*) > 1) AS shared) AS in_two_digests,
        (SELECT count(*) FROM facts_active AS f LEFT JOIN consolidation_marks AS m ON m.fact_id = f.id
            WHERE f.kind <> 'digest' AND m.done_at IS NULL) AS unasked
"""


_DIGESTS = """
    SELECT d.content, array_agg(s.content) AS sources
    FROM facts_active AS d JOIN links AS l ON l.source_id = d.id AND l.kind = 'derived_from'
    JOIN facts_history AS s ON s.id = l.target_id
    WHERE d.kind = 'digest' GROUP BY d.id, d.content ORDER BY d.id
"""


def statements(count: int) -> list[str]:
    """Facts in pairs about one thing each."""
    told = []
    for number in range((count + 1) // 2):
        told.append(f"Server rack{number} stands in hall {number % 7}.")
        told.append(f"Server rack{number} draws {number + 100} watts.")
    return told[:count]


def eager(body: Mapping[str, Any]) -> Any:
    """A model that merges neighbours, and finds every fact ended by the one after the next."""
    told = shown(body)
    actions: list[Any] = []
    for one, other in zip(told[::2], told[1::2], strict=False):
        text = f"{one['text'].rstrip('.')}; {other['text']}"
        actions.append({"action": "digest", "sources": [one["id"], other["id"]], "text": text})
    for one, other in zip(told, told[2:], strict=False):
        claim = {"first": one["id"], "second": other["id"], "ended": one["id"], "evidence": other["text"]}
        quotes = {"first_quote": one["text"], "second_quote": other["text"]}
        actions.append({"action": "contradiction", "reason": "They differ."} | claim | quotes)
    return {"actions": actions}


@contextmanager
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="palimpsest-bench-") as folder, embedded.running(Path(folder)) as found:
        migrate(found.owner_dsn)
        with psycopg.connect(found.owner_dsn, autocommit=True) as owner:
            owner.execute("UPDATE namespaces SET policy = 'explicit', consolidate_may_retire = true")
        yield found


async def fill(database: Database, settings: Settings, texts: list[str]) -> None:
    embedder = build_embedder(settings)
    drafts = [draft_of(text, "shared", "note", source_tier="observed") for text in texts]
    await preparing.embed(Service(settings, database, embedder), drafts)
    for position, draft in enumerate(drafts):
        draft.position = position
    await database.run(lambda conn: facts.remember(conn, worker(NAMESPACE, "bench"), drafts, None))
    await embedder.aclose()


async def attempt(database: Database, settings: Settings, run_id: UUID | None) -> Mapping[str, Any]:
    """One attempt at a run, a new one where none is named."""
    if run_id is None:
        async with database.transaction() as conn:
            row = await queue.enqueue(conn, NAMESPACE, "consolidate", requested_by="bench")
        if row is None:
            raise LookupError("a run that somebody asks for is always queued")
        run_id = row["id"]
    embedder = build_embedder(settings)
    await Runner(database, settings, embedder, KINDS, timedelta(minutes=5), beat_s=5).attempt(NAMESPACE, run_id)
    await embedder.aclose()
    async with database.reading() as conn:
        found = await queries.run(conn, NAMESPACE, run_id)
    if found is None:
        raise LookupError("the run is gone")
    return found


async def attempts(database: Database, settings: Settings, most: int) -> tuple[int, int, int]:
    """Attempts until a run has nothing to ask, at most so many; attempts, calls, and the most calls of one run."""
    calls, largest = 0, 0
    queued: UUID | None = None
    booked = 0
    for number in range(1, most + 1):
        row = await attempt(database, settings, queued)
        calls += row["calls"] - booked
        largest = max(largest, row["calls"])
        queued = row["id"] if row["status"] == "queued" else None
        if row["status"] == "succeeded" and row["calls"] == 0:
            return number, calls, largest
        booked = row["calls"] if queued else 0
    return most, calls, largest


async def measure(found: Cluster, given: argparse.Namespace, url: str, server: OpenAIServer | None) -> bool:
    settings = Settings(
        _env_file=None, llm_url=url, llm_model=given.llm_model, llm_timeout_s=given.timeout, log_level="error"
    )
    async with connect(
        found.worker_dsn, size=4, timeout_s=30, statement_timeout_ms=60_000, name="bench-consolidation"
    ) as database:
        await fill(database, settings, statements(given.facts))
        begun = time.perf_counter()
        if server is not None:
            ok = round(len(FAILURES) * (1 - given.failing) / given.failing)
            server.replies, server.chat = eager, mix(["ok"] * ok + FAILURES, seed=given.seed)
            tried, calls, largest = await attempts(database, settings, given.attempts // 2)
            print(f"failing {given.failing:.0%} of the time: {tried} attempts, {calls} calls, {largest} in one run")
            server.chat = "ok"
        tried, calls, largest = await attempts(database, settings, given.attempts)
        print(f"{'then well' if server else 'asked'}: {tried} attempts, {calls} calls, at most {largest} in one run")
        print(f"{time.perf_counter() - begun:.1f} s; the budget of a run is {settings.llm_calls_per_run} calls")
        async with database.reading() as conn:
            state = await (await conn.execute(_STATE)).fetchone()
            verdicts = await (
                await conn.execute(
                    "SELECT kind, verdict, reason, count(*) FROM proposals GROUP BY 1, 2, 3 ORDER BY 4 DESC"
                )
            ).fetchall()
            digests = await (await conn.execute(_DIGESTS)).fetchall()
    for row in verdicts:
        print(f"  {row['count']:6} {row['kind']} {row['verdict']}{': ' + row['reason'] if row['reason'] else ''}")
    if server is None:
        for row in digests:
            print(f"  digest: {row['content']!r} of {row['sources']}")
    return concluded(given.facts, dict(state or {}), digests)


def concluded(count: int, state: Mapping[str, Any], digests: Sequence[Mapping[str, Any]]) -> bool:
    """Print what became of the facts; whether nothing became of them that must not."""
    foreign = sum(bool(_numbers(row["content"]) - _numbers(" ".join(row["sources"]))) for row in digests)
    print(
        f"{count} facts: {state['current_facts']} current, {state['retired_facts']} retired, "
        f"{state['digests']} digests, {state['in_two_digests']} facts in two of them, "
        f"{foreign} digests with a number of their own, {state['unasked']} facts not answered about"
    )
    held = state["current_facts"] == count and not (state["retired_facts"] or state["in_two_digests"] or foreign)
    print("HELD: nothing lost, nothing retired, no digest that must not be" if held else "BROKEN")
    return held


def _numbers(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if any(letter.isdigit() for letter in word)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=500)
    parser.add_argument("--failing", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--attempts", type=int, default=MOST_ATTEMPTS)
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--llm-url")
    parser.add_argument("--llm-model", default="scripted")
    given = parser.parse_args()
    with cluster() as found:
        if given.llm_url:
            held = asyncio.run(measure(found, given, given.llm_url, None))
        else:
            with OpenAIServer() as server:
                held = asyncio.run(measure(found, given, server.base_url, server))
    sys.exit(not held)


if __name__ == "__main__":
    main()
