"""What a job is, and what its handler gets to work with.

A kind of job is one `Kind`: a name, a handler, and, where the worker itself should notice that there is something
to do, a `due` question. Kinds are listed in `app.upkeep.kinds`. A handler looks like this:

    async def rederive(run: JobRun) -> Counts:
        stale = ...                                # short reads: async with run.database.reading() as conn
        run.expect(len(stale))                     # progress; shown by GET /v1/jobs/{id}
        for digest in stale:
            answer = await llm.chat(...)           # no connection is held here
            await run.spend(calls=1, tokens=321)   # durable at once, for the budgets
            await run.database.run(write)          # one short transaction, with its own last look; in it,
                                                   # run.report(conn, [Finding(…)]) lists what was done
            run.advance(1, rederived=1)            # progress and counts
        return dict(run.counts)

It must be safe to run again from the start after a kill at any point, and beside itself for another scope. One
run of a (kind, namespace, scope) is active at a time. How it ends:

* it returns: `succeeded`, with the counts that it returns;
* it raises `JobFailed("…")`: `failed`, with that sentence as its error, which must hold no text of a fact;
* it raises `TryLater(seconds, "…")`: it is queued again and no attempt is used up, for what is down or too busy;
* the database fails under it: it is queued again while it has attempts left;
* any other exception: `failed`, with the type of the exception;
* it is cancelled by a call: `asyncio.CancelledError` is raised inside it, and it ends as `cancelled`.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from app.db import Connection, Database
from app.embedding import Embedder
from app.settings import Settings
from app.upkeep import attempts
from app.upkeep.model import Finding

KindName = Literal["decay", "prune", "consolidate", "review", "reembed", "embed_pending", "rederive"]
Status = Literal["queued", "running", "succeeded", "failed", "cancelled"]
Counts = Mapping[str, int]
Place = tuple[str, str | None]
"""A namespace, and a scope of it or None for all of it."""


class JobFailed(Exception):
    """The run cannot succeed; the sentence is shown to callers, so it holds no text of a fact."""


class TryLater(Exception):
    """What the run needs is not there now. `after_s` None means: wait longer each time, up to five minutes."""

    def __init__(self, reason: str, *, after_s: float | None = None) -> None:
        super().__init__(reason)
        self.after_s = after_s


@dataclass(slots=True)
class JobRun:
    """One attempt at a job. `parameters` are what the caller asked beyond the rest, such as `apply` or `mode`."""

    namespace: str
    id: UUID
    kind: str
    scope: str | None
    dry_run: bool
    parameters: Mapping[str, Any]
    attempt: int
    database: Database
    settings: Settings
    embedder: Embedder
    calls: int = 0
    tokens: int = 0
    done: int = 0
    total: int | None = None
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def mark(self) -> attempts.Mark:
        """What the statements of this attempt are addressed by."""
        return attempts.Mark(self.namespace, self.id, self.attempt)

    @property
    def standing(self) -> attempts.Standing:
        """How far this attempt is."""
        return attempts.Standing(dict(self.counts), {"done": self.done, "total": self.total})

    def expect(self, total: int) -> None:
        """Say how much there is to do, as far as that is known."""
        self.total = total

    def advance(self, done: int, **counts: int) -> None:
        """Note progress. It is written every few seconds and at the end."""
        self.done += done
        self.counts.update(counts)

    async def spend(self, *, calls: int, tokens: int) -> None:
        """Book calls and tokens at once, so that a budget holds over a kill as well."""
        async with self.database.reading() as conn:
            await attempts.spend(conn, self.namespace, self.id, calls, tokens)
        self.calls += calls
        self.tokens += tokens

    async def report(self, conn: Connection, findings: Sequence[Finding]) -> None:
        """List what was done, in the transaction that did it, or what would be."""
        await attempts.add_findings(conn, self.namespace, self.id, findings)


Handler = Callable[[JobRun], Awaitable[Counts]]
Due = Callable[[Connection, Settings], Awaitable[Sequence[Place]]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of job. `due` says where one is needed now; the worker asks every few seconds, so it must be cheap."""

    name: KindName
    handler: Handler
    due: Due | None = None
