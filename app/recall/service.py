"""Recall: the rules between questions and their answers."""

import asyncio
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from app.analyzer import Word, query_words
from app.auth import Caller
from app.db import Connection
from app.embedding import EmbedderUnavailable
from app.facts import vocabulary
from app.facts.visibility import sight_of
from app.recall import context, presenting
from app.recall.answer import Page, facts_of, lines_of, results_of
from app.recall.hops import results_by_chains
from app.recall.question import Corpus, question, says_nothing
from app.recall.schemas import RecallIn, RecallOut, ResultOut, SuppressedOut
from app.recall.search import Direction, Found, Sought, Wanted, corpus_of, search
from app.state import Service

# The part of the deadline that the embedder may take, and what the words alone get once it has passed.
_FOR_THE_EMBEDDER = 0.5
_FOR_THE_WORDS = 0.25
# The connections that the questions of one request share; more would only wait for the same processors.
_SIDE_BY_SIDE = 3
# The fewest questions that are worth a connection more; all of one connection are answered by one statement.
_TOGETHER = 4


@dataclass(slots=True)
class _Asking:
    """One question on its way: what is known of it, what was found, and what it had to do without.

    `below` counts what was not relevant enough to be among the `results`; `chained` is what chains lead to.
    """

    ask: RecallIn
    words: Sequence[Word]
    scopes: Sequence[str] | None
    wanted: Wanted
    direction: Direction | None = None
    found: Found | None = None
    results: list[tuple[UUID, ResultOut]] = field(default_factory=list)
    chained: list[ResultOut] | None = field(default_factory=list)
    below: int = 0
    degraded: list[str] = field(default_factory=list)


async def recall(service: Service, caller: Caller, ask: RecallIn) -> RecallOut:
    """What the memory holds to be true about a question.

    Raises ScopeForbidden for a scope that the key may not read.
    """
    (answer,) = await recall_all(service, caller, [ask])
    return answer


async def recall_all(service: Service, caller: Caller, asks: Sequence[RecallIn]) -> list[RecallOut]:
    """The answers to several questions, in order. Those that are searched together share the deadline."""
    now = datetime.now(UTC)
    allowance = service.settings.recall_deadline_ms / 1_000
    askings = [_asking(caller, ask, now) for ask in asks]
    spent = await _direct(service, askings, allowance)
    waiting = [asking for asking in askings if asking.words]
    hopping = any(asking.ask.hops > 1 for asking in askings)
    following: asyncio.Task[None] | None = None
    try:
        async with service.database.reading() as conn:
            await _name(conn, caller, waiting)
            corpora = await _corpora(conn, caller, waiting, allowance - spent)
            chains = partial(_follow_all, service, caller, askings, corpora, allowance)
            if hopping and service.settings.pool_size > 1:
                # While one of the two waits for the database, the other goes on.
                following = asyncio.create_task(chains())
            await _find_all(service, caller, conn, _sought(waiting, corpora, now), allowance - spent, allowance)
        if hopping:
            await (following or chains())
    finally:
        if following:
            following.cancel()
    return [_answer(asking) for asking in askings]


async def _follow_all(
    service: Service, caller: Caller, askings: Sequence[_Asking], corpora: dict[str, Corpus], allowance: float
) -> None:
    for asking in askings:
        asking.chained = await _follow(service, caller, asking, corpora, allowance)


async def _follow(
    service: Service, caller: Caller, asking: _Asking, corpora: dict[str, Corpus], allowance: float
) -> list[ResultOut] | None:
    """What chains of facts lead to, where more than one hop is asked for; None where they could not be followed.

    Chains go through what holds now, and they need vectors and time.
    """
    corpus = corpora.get(repr(asking.wanted.sight))
    if asking.ask.hops == 1 or corpus is None or not asking.words:
        return []
    if asking.wanted.as_of is None:
        with suppress(EmbedderUnavailable, TimeoutError):
            async with asyncio.timeout(allowance):
                return await results_by_chains(service, caller, asking.ask, asking.wanted, corpus)
    return None


def _chains_first(chained: Sequence[ResultOut], direct: Sequence[tuple[UUID, ResultOut]], most: int) -> list[ResultOut]:
    """What chains lead to, then the rest; retired facts stay right below what replaced them."""
    reached = {result.fact.id for result in chained}
    below: defaultdict[UUID, list[ResultOut]] = defaultdict(list)
    rest: list[ResultOut] = []
    for head, result in direct:
        if head not in reached:
            rest.append(result)
        elif result.fact.id != head:
            below[head].append(result)
    first = (one for result in chained for one in (result, *below[result.fact.id]))
    return [*first, *rest][:most]


def _asking(caller: Caller, ask: RecallIn, now: datetime) -> _Asking:
    scopes = caller.asked(ask.scopes)
    past = ask.as_of is not None or ask.known_at is not None
    wanted = Wanted(
        namespace=caller.namespace,
        sight=sight_of(caller.reads, scopes),
        precedence=tuple(scopes or ()),
        subjects=(ask.subject,) if ask.subject else None,
        kinds=tuple(ask.kinds) if ask.kinds else None,
        tags=tuple(ask.tags) if ask.tags else None,
        min_tier=ask.min_tier,
        as_of=(ask.as_of or ask.known_at) if past else None,
        known_at=(ask.known_at or now) if past else None,
        retired="retired" in ask.include,
    )
    return _Asking(ask, query_words(ask.query), scopes, wanted)


async def _direct(service: Service, askings: Sequence[_Asking], allowance: float) -> float:
    """Give the questions their vectors where those mean something and can be had in time; the seconds it took."""
    meaning = [asking for asking in askings if not says_nothing(asking.words)]
    if not meaning:
        return 0.0
    started = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(allowance * _FOR_THE_EMBEDDER):
            vectors = await service.embedder.embed_queries([asking.ask.query for asking in meaning])
    except (EmbedderUnavailable, TimeoutError) as problem:
        service.unavailable["vector"] = problem.cause if isinstance(problem, EmbedderUnavailable) else "timeout"
        for asking in meaning:
            asking.degraded.append("vector")
    else:
        service.unavailable.pop("vector", None)
        profile = service.embedder.profile
        for asking, vector in zip(meaning, vectors, strict=True):
            # A row of zeros says that the text has no vector.
            asking.direction = Direction(profile, vector) if profile and vector.any() else None
    return asyncio.get_running_loop().time() - started


async def _name(conn: Connection, caller: Caller, askings: Sequence[_Asking]) -> None:
    """Let the questions that ask for a subject find it by any of its names."""
    asked = {asking.ask.subject for asking in askings if asking.ask.subject is not None}
    if not asked:
        return
    names = await vocabulary.addresses(conn, caller.namespace, sorted(asked))
    for asking in askings:
        if asking.ask.subject is not None:
            asking.wanted = replace(asking.wanted, subjects=tuple(names[asking.ask.subject]))


async def _corpora(conn: Connection, caller: Caller, askings: Sequence[_Asking], left: float) -> dict[str, Corpus]:
    """By the scopes in sight, what they hold of the words that are asked there; nothing where time ran out."""
    by_sight: dict[str, list[_Asking]] = {}
    for asking in askings:
        by_sight.setdefault(repr(asking.wanted.sight), []).append(asking)
    corpora = {}
    with suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, left)):
            for sight, group in by_sight.items():
                words = (asking.words for asking in group)
                corpora[sight] = await corpus_of(conn, caller.namespace, group[0].wanted.sight, words)
    return corpora


def _sought(askings: Sequence[_Asking], corpora: Mapping[str, Corpus], now: datetime) -> list[tuple[_Asking, Sought]]:
    """What to search for; nothing where there was no time to learn what the words weigh."""
    waiting = []
    for asking in askings:
        corpus, wanted = corpora.get(repr(asking.wanted.sight)), asking.wanted
        if corpus is None:
            asking.degraded.extend(["deadline", "words"])
        else:
            asked = question(asking.words, corpus)
            waiting.append((asking, Sought(wanted, asked, corpus, asking.direction, wanted.as_of or now)))
    return waiting


async def _find_all(
    service: Service,
    caller: Caller,
    conn: Connection,
    waiting: Sequence[tuple[_Asking, Sought]],
    left: float,
    allowance: float,
) -> None:
    """Find the results of every question, some at a time, on this connection and on a few more where there are many."""
    parts = min(_SIDE_BY_SIDE, max(1, len(waiting) // _TOGETHER))
    size = max(1, math.ceil(len(waiting) / parts))
    groups = [waiting[at : at + size] for at in range(0, len(waiting), size)]
    helping: list[asyncio.Task[None]] = []

    async def work(mine: Connection) -> None:
        while groups:
            await _find(mine, caller, groups.pop(0), left, allowance)

    async def work_beside() -> None:
        async with service.database.reading() as mine:
            helping.extend(task for task in beside if task is asyncio.current_task())
            await work(mine)

    beside = [asyncio.create_task(work_beside()) for _ in groups[1:]]
    try:
        await work(conn)
        # Those that still wait for a connection have nothing left to do, and one may never come: others like this
        # request hold them all and wait for one more.
        if helping:
            await asyncio.gather(*helping)
    finally:
        for task in beside:
            task.cancel()


async def _find(
    conn: Connection, caller: Caller, group: Sequence[tuple[_Asking, Sought]], left: float, allowance: float
) -> None:
    await _search(conn, group, left, allowance)
    pages = []
    for asking, _ in group:
        if asking.found:
            lines, asking.below = lines_of(asking.found, asking.ask)
            pages.append((asking, Page(asking.ask, asking.found, lines)))
    facts = await facts_of(conn, caller, [page for _, page in pages])
    for asking, page in pages:
        asking.results = results_of(page, facts)


async def _search(conn: Connection, group: Sequence[tuple[_Asking, Sought]], left: float, allowance: float) -> None:
    """Everything that the deadline leaves time for; the words alone, shortly, where it has passed."""
    with suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, left)):
            for (asking, _), found in zip(group, await search(conn, [one for _, one in group]), strict=True):
                asking.found = found
            return
    for asking, _ in group:
        asking.degraded.append("deadline")
    late = [(asking, replace(sought, direction=None)) for asking, sought in group if asking.direction is not None]
    for asking, _ in late:
        asking.degraded.append("vector")
    with suppress(TimeoutError):
        async with asyncio.timeout(allowance * _FOR_THE_WORDS):
            for (asking, _), found in zip(late, await search(conn, [one for _, one in late]), strict=True):
                asking.found = found
    for asking, _ in group:
        if asking.found is None:
            asking.degraded.append("words")


def _answer(asking: _Asking) -> RecallOut:
    ask, found = asking.ask, asking.found
    results = _chains_first(asking.chained or (), asking.results, ask.k)
    framed = ask.format == "context"
    shown = context.fitting(results, ask.max_tokens, framed=framed) if ask.max_tokens else results
    beyond = len(results) - len(shown)
    held_back = found.held_back if found else {}
    return RecallOut.model_construct(
        results=shown,
        context=context.block(shown, beyond) if framed else None,
        suppressed=SuppressedOut.model_construct(
            retired=held_back.get("retired", 0),
            scheduled=held_back.get("scheduled", 0),
            expired=held_back.get("expired", 0),
            below_min_relevance=asking.below,
            beyond_max_tokens=beyond,
        ),
        degraded=[*asking.degraded, *(["hops"] if asking.chained is None else [])],
        applied=presenting.applied_out(ask, asking.scopes, found.asked if found else None),
    )
