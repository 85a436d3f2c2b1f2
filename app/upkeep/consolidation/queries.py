"""The statements of consolidation: what is new, what stands around it, and which facts were asked about."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    Boolean,
    Column,
    Integer,
    MetaData,
    Table,
    Text,
    Uuid,
    and_,
    bindparam,
    cast,
    column,
    func,
    literal_column,
    or_,
    select,
    true,
    union,
)
from sqlalchemy.dialects.postgresql import TSQUERY

from app.analyzer import analyze, quoted
from app.db import Connection, Statement
from app.facts import nearby
from app.facts import queries as facts
from app.facts.fact import Fact
from app.facts.model import facts_active, facts_history, links
from app.upkeep.consolidation.marks import MOST_FAILURES, marks
from app.upkeep.model import word

_CONTEXT_PER_FACT = 3
_RAREST = 6
_MOST_SUBJECTS = 80

_META = MetaData()
_subjects = Table("subjects", _META, Column("namespace", Text), Column("subject", Text))
_namespaces = Table("namespaces", _META, Column("name", Text), Column("consolidate_may_retire", Boolean))

_NS = bindparam("namespace", type_=Text)
_SCOPE = bindparam("scope", type_=Text)
_IDS = bindparam("ids", type_=ARRAY(Uuid))
_VERSION = bindparam("version", type_=Text)
_statements = facts_active.c.kind.in_([word("state"), word("note"), word("event")])
_marked = and_(marks.c.namespace == facts_active.c.namespace, marks.c.fact_id == facts_active.c.id)
_never_asked = or_(marks.c.fact_id.is_(None), marks.c.prompt_version != _VERSION)
_unfinished = and_(
    marks.c.prompt_version == _VERSION,
    marks.c.done_at.is_(None),
    marks.c.failures < literal_column(str(MOST_FAILURES)),
)

# --- What is new -----------------------------------------------------------------------------------------------

_enough = or_(
    func.count().filter(_never_asked) >= bindparam("threshold", type_=Integer),
    func.count().filter(_unfinished) > literal_column("0"),
)
_scopes = Statement(
    select(facts_active.c.scope, func.count().label("facts"))
    .select_from(facts_active.outerjoin(marks, _marked))
    .where(facts_active.c.namespace == _NS, _statements, or_(_never_asked, _unfinished))
    .group_by(facts_active.c.scope)
    .having(_enough)
    .order_by(facts_active.c.scope)
)
_new = Statement(
    select(*facts.fact_columns(facts_active))
    .select_from(facts.with_use(facts_active).outerjoin(marks, _marked))
    .where(facts_active.c.namespace == _NS, facts_active.c.scope == _SCOPE, _statements, or_(_never_asked, _unfinished))
    .order_by(facts_active.c.recorded_at, facts_active.c.id)
    .limit(bindparam("limit", type_=Integer))
)


async def waiting_scopes(conn: Connection, namespace: str, version: str, threshold: int) -> dict[str, int]:
    """Scopes in which enough new facts have gathered, or some were left over; and how many in each."""
    rows = await _scopes.rows(conn, namespace=namespace, version=version, threshold=threshold)
    return {row["scope"]: row["facts"] for row in rows}


async def new_facts(conn: Connection, namespace: str, scope: str, version: str, limit: int) -> list[Fact]:
    """Current facts of a scope that this prompt was not asked about yet, oldest first. Digests are none."""
    rows = await _new.rows(conn, namespace=namespace, scope=scope, version=version, limit=limit)
    return [facts.to_fact(row) for row in rows]


# --- What stands around them -----------------------------------------------------------------------------------

_asked = (
    func.unnest(bindparam("words", type_=ARRAY(Text))).table_valued(column("words", Text)).render_derived(name="asked")
)
_near = (
    select(*facts.fact_columns(facts_active))
    .select_from(facts.with_use(facts_active))
    .where(
        facts_active.c.namespace == _NS,
        facts_active.c.scope == _SCOPE,
        _statements,
        facts_active.c.terms.op("@@")(cast(_asked.c.words, TSQUERY)),
        facts_active.c.id != func.all(_IDS),
    )
    .order_by(
        func.ts_rank(facts_active.c.terms, cast(_asked.c.words, TSQUERY)).desc(),
        facts_active.c.recorded_at.desc(),
        facts_active.c.id.desc(),
    )
    .limit(literal_column(str(_CONTEXT_PER_FACT)))
    .lateral("near")
)
_around = Statement(select(_near).select_from(_asked.join(_near, true())))
_current = Statement(
    select(*facts.fact_columns(facts_active))
    .select_from(facts.with_use(facts_active))
    .where(facts_active.c.namespace == _NS, facts_active.c.id == func.any(_IDS))
)
_lock_rows = Statement(
    select(facts_history.c.id)
    .where(facts_history.c.namespace == _NS, facts_history.c.id == func.any(_IDS))
    .order_by(facts_history.c.id)
    .with_for_update(read=True)
)
_conflicts = Statement(
    select(
        links.c.source_id,
        links.c.target_id,
        and_(links.c.resolved_at.is_(None), links.c.demoted_at.is_(None)).label("open"),
    ).where(
        links.c.namespace == _NS,
        links.c.kind == word("contradicts"),
        links.c.source_id == func.any(_IDS),
        links.c.target_id == func.any(_IDS),
    )
)
_touching = select(links.c.source_id).where(
    links.c.namespace == _NS, links.c.kind == word("derived_from"), links.c.target_id == func.any(_IDS)
)
_digests = Statement(
    select(links.c.source_id.label("digest_id"), links.c.target_id.label("fact_id"))
    .select_from(
        links.join(
            facts_history,
            and_(facts_history.c.namespace == links.c.namespace, facts_history.c.id == links.c.source_id),
        )
    )
    .where(
        links.c.namespace == _NS,
        links.c.kind == word("derived_from"),
        links.c.source_id.in_(_touching),
        facts_history.c.superseded_by.is_(None),
    )
)
_vocabulary = Statement(
    union(
        select(_subjects.c.subject).where(_subjects.c.namespace == _NS),
        select(facts_active.c.subject)
        .where(facts_active.c.namespace == _NS, facts_active.c.scope == _SCOPE, facts_active.c.subject.is_not(None))
        .distinct(),
    )
    .order_by(literal_column("1"))
    .limit(literal_column(str(_MOST_SUBJECTS)))
)
_may_retire = Statement(select(_namespaces.c.consolidate_may_retire).where(_namespaces.c.name == _NS))


async def around(conn: Connection, namespace: str, scope: str, given: Sequence[Fact]) -> list[Fact]:
    """Current facts of the scope that share rare words with the given ones, which are left out."""
    terms = {fact.id: list(analyze(fact.content).counts) for fact in given}
    held = await nearby.frequencies(conn, namespace, [scope], list({term for own in terms.values() for term in own}))
    words = []
    for own in terms.values():
        rare = sorted(own, key=lambda term: (held.get((scope, term), 0), term))[:_RAREST]
        words.append(" | ".join(quoted(term) for term in rare))
    rows = await _around.rows(
        conn, namespace=namespace, scope=scope, words=[w for w in words if w], ids=[fact.id for fact in given]
    )
    return list({fact.id: fact for fact in map(facts.to_fact, rows)}.values())


async def current_facts(conn: Connection, namespace: str, ids: Sequence[UUID]) -> list[Fact]:
    return [facts.to_fact(row) for row in await _current.rows(conn, namespace=namespace, ids=list(ids))]


async def lock_rows(conn: Connection, namespace: str, ids: Sequence[UUID]) -> None:
    """Keep facts from being retired until the transaction ends."""
    await _lock_rows.rows(conn, namespace=namespace, ids=list(ids))


async def contested_pairs(
    conn: Connection, namespace: str, ids: Sequence[UUID]
) -> tuple[frozenset[frozenset[UUID]], frozenset[frozenset[UUID]]]:
    """The pairs of these facts with an open conflict, and those that have or ever had one."""
    rows = await _conflicts.rows(conn, namespace=namespace, ids=list(ids))
    pairs = [(frozenset((row["source_id"], row["target_id"])), row["open"]) for row in rows]
    return frozenset(pair for pair, is_open in pairs if is_open), frozenset(pair for pair, _ in pairs)


async def digests_over(conn: Connection, namespace: str, ids: Sequence[UUID]) -> Mapping[UUID, frozenset[UUID]]:
    """The digests that stand and were made from any of these facts, with all of their sources."""
    found: defaultdict[UUID, set[UUID]] = defaultdict(set)
    for row in await _digests.rows(conn, namespace=namespace, ids=list(ids)):
        found[row["digest_id"]].add(row["fact_id"])
    return {digest: frozenset(sources) for digest, sources in found.items()}


async def vocabulary(conn: Connection, namespace: str, scope: str) -> list[str]:
    """The registered subjects and those in use in the scope, up to a number that fits a prompt."""
    return [row["subject"] for row in await _vocabulary.rows(conn, namespace=namespace, scope=scope)]


async def may_retire(conn: Connection, namespace: str) -> bool:
    """Whether the namespace lets consolidation retire facts."""
    row = await _may_retire.row(conn, namespace=namespace)
    return bool(row and row["consolidate_may_retire"])
