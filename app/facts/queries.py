"""The statements of the write path and of plain reads, each composed once."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from sqlalchemy import (
    ARRAY,
    TIMESTAMP,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    Uuid,
    and_,
    bindparam,
    cast,
    column,
    func,
    insert,
    literal_column,
    or_,
    select,
    true,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, TSQUERY, TSVECTOR
from sqlalchemy.dialects.postgresql import insert as pg_insert
from sqlalchemy.sql import FromClause
from sqlalchemy.sql.selectable import NamedFromClause

from app.db import Connection, Row, Statement
from app.facts.fact import Draft, Fact, Rules
from app.facts.model import (
    chains,
    fact_use,
    facts_active,
    facts_history,
    links,
    observations,
    term_counts,
)

_namespaces = Table(
    "namespaces",
    MetaData(),
    Column("name", Text),
    Column("policy", Text),
    Column("require_evidence", Boolean),
    Column("closed_vocabulary", Boolean),
)
_NS = bindparam("namespace", type_=Text)
_SAME_TEXT = 50
_SAME_ADDRESS = 100
_NEIGHBOURS = 40


def _array(name: str, kind: Any) -> ColumnElement[Any]:
    return bindparam(name, type_=ARRAY(kind))


def _rows(name: str, **columns: Any) -> NamedFromClause:
    """The rows of parallel arrays bound by the columns' names."""
    arrays = [_array(key, kind) for key, kind in columns.items()]
    wanted = [column(key, kind) for key, kind in columns.items()]
    return func.unnest(*arrays).table_valued(*wanted).render_derived(name=name)


# --- Reading facts ---------------------------------------------------------------------------------------------

FACT_FIELDS = (
    "namespace",
    "id",
    "chain_id",
    "scope",
    "agent",
    "kind",
    "subject",
    "content",
    "content_hash",
    "source_tier",
    "source_ref",
    "source_quote",
    "confidence",
    "tags",
    "metadata",
    "valid_from",
    "valid_to",
    "observed_at",
    "recorded_at",
    "superseded_by",
    "retired_at",
)


def fact_columns(view: FromClause) -> list[ColumnElement[Any]]:
    """What a Fact is read from: a view's columns, its use, and whether it has a vector."""
    return [
        *(view.c[name] for name in FACT_FIELDS),
        view.c.embedding_profile.is_not(None).label("embedded"),
        func.coalesce(fact_use.c.pinned, literal_column("false")).label("pinned"),
        func.coalesce(fact_use.c.weight, literal_column("1.0")).label("weight"),
        func.coalesce(fact_use.c.observed_count, literal_column("1")).label("observed_count"),
        func.coalesce(fact_use.c.last_observed_at, view.c.observed_at).label("last_observed_at"),
        (view.c.status if "status" in view.c else literal_column("'active'", Text)).label("status"),
    ]


def with_use(view: FromClause) -> FromClause:
    """The view beside the use of its facts."""
    return view.outerjoin(fact_use, and_(fact_use.c.namespace == view.c.namespace, fact_use.c.fact_id == view.c.id))


def to_fact(row: Row) -> Fact:
    return Fact(**row)


_current = Statement(
    select(*fact_columns(facts_active))
    .select_from(with_use(facts_active))
    .where(facts_active.c.namespace == _NS, facts_active.c.id == bindparam("id", type_=Uuid))
)
_past = Statement(
    select(*fact_columns(facts_history), facts_history.c.ended_at, chains.c.head_id, links.c.reason)
    .select_from(
        with_use(facts_history)
        .outerjoin(
            chains,
            and_(chains.c.namespace == facts_history.c.namespace, chains.c.chain_id == facts_history.c.chain_id),
        )
        .outerjoin(
            links,
            and_(
                links.c.namespace == facts_history.c.namespace,
                links.c.target_id == facts_history.c.id,
                links.c.source_id == facts_history.c.superseded_by,
                links.c.kind.in_([literal_column("'supersedes'"), literal_column("'amends'")]),
                links.c.demoted_at.is_(None),
            ),
        )
    )
    .where(facts_history.c.namespace == _NS, facts_history.c.id == bindparam("id", type_=Uuid))
    .limit(literal_column("1"))
)
_is_current = Statement(
    select(facts_active.c.id, facts_active.c.scope).where(
        facts_active.c.namespace == _NS, facts_active.c.id == bindparam("id", type_=Uuid)
    )
)


async def current_fact(conn: Connection, namespace: str, id_: UUID) -> Fact | None:
    row = await _current.row(conn, namespace=namespace, id=id_)
    return to_fact(row) if row else None


async def past_fact(conn: Connection, namespace: str, id_: UUID) -> tuple[Fact, str | None] | None:
    """A fact whatever became of it, with the end of its chain and the reason of its retirement."""
    row = await _past.row(conn, namespace=namespace, id=id_)
    if row is None:
        return None
    reason = row.pop("reason")
    row.pop("ended_at")
    return to_fact(row), reason


async def current_scope(conn: Connection, namespace: str, id_: UUID) -> str | None:
    """The scope of a fact if it is current."""
    row = await _is_current.row(conn, namespace=namespace, id=id_)
    return row["scope"] if row else None


# --- Before a write --------------------------------------------------------------------------------------------

_rules = Statement(
    select(
        _namespaces.c.policy,
        _namespaces.c.require_evidence,
        _namespaces.c.closed_vocabulary,
        func.clock_timestamp().label("now"),
    ).where(_namespaces.c.name == _NS)
)
_wanted = _rows("wanted", keys=BigInteger)
_lock = Statement(select(func.pg_advisory_xact_lock(_wanted.c["keys"]).label("locked")).select_from(_wanted))
_places = Statement(
    select(
        facts_history.c.scope,
        func.coalesce(
            facts_history.c.subject, func.encode(facts_history.c.content_hash, literal_column("'hex'"))
        ).label("place"),
    ).where(facts_history.c.namespace == _NS, facts_history.c.id == func.any(_array("ids", Uuid)))
)


async def rules_of(conn: Connection, namespace: str) -> tuple[Rules, datetime]:
    """The namespace's rules, and the database's clock: every replica tells the same time."""
    row = await _rules.row(conn, namespace=namespace)
    if row is None:
        raise LookupError(f"namespace {namespace!r} does not exist")
    now = row.pop("now")
    return Rules(**row), now


async def places_of(conn: Connection, namespace: str, ids: Sequence[UUID]) -> list[tuple[str, str]]:
    """Scope and place of facts, which never change, so that their locks can be taken before they are read."""
    return [(row["scope"], row["place"]) for row in await _places.rows(conn, namespace=namespace, ids=list(ids))]


async def lock(conn: Connection, keys: Sequence[int]) -> None:
    """Take advisory locks until the end of the transaction, in one order for everybody."""
    await _lock.rows(conn, keys=sorted(set(keys)))


def _loaded(view: FromClause, *more: ColumnElement[Any]) -> list[ColumnElement[Any]]:
    return [*fact_columns(view), *more]


_asked_text = _rows("asked", scopes=Text, hashes=LargeBinary)
_text_match = (
    select(*_loaded(facts_history))
    .select_from(with_use(facts_history))
    .where(
        facts_history.c.namespace == _NS,
        facts_history.c.content_hash == _asked_text.c.hashes,
        facts_history.c.scope == _asked_text.c.scopes,
        facts_history.c.kind != literal_column("'retraction'"),
    )
    .order_by(facts_history.c.superseded_by.is_(None).desc(), facts_history.c.recorded_at.desc())
    .limit(literal_column(str(_SAME_TEXT)))
    .lateral("same")
)
_asked_address = _rows("address", at_scopes=Text, at_subjects=Text)
_address_match = (
    select(*_loaded(facts_active))
    .select_from(with_use(facts_active))
    .where(
        facts_active.c.namespace == _NS,
        facts_active.c.scope == _asked_address.c.at_scopes,
        facts_active.c.subject == _asked_address.c.at_subjects,
        facts_active.c.kind == literal_column("'state'"),
    )
    .order_by(facts_active.c.recorded_at.desc(), facts_active.c.id.desc())
    .limit(literal_column(str(_SAME_ADDRESS)))
    .lateral("held")
)
_load = Statement(
    union_all(
        select(_text_match).select_from(_asked_text.join(_text_match, true())),
        select(_address_match).select_from(_asked_address.join(_address_match, true())),
        select(*_loaded(facts_history))
        .select_from(with_use(facts_history))
        .where(facts_history.c.namespace == _NS, facts_history.c.id == func.any(_array("ids", Uuid))),
    )
)
_heads = Statement(
    select(*_loaded(facts_history), chains.c.chain_id.label("of_chain"))
    .select_from(
        with_use(facts_history).join(
            chains,
            and_(chains.c.namespace == facts_history.c.namespace, chains.c.head_id == facts_history.c.id),
        )
    )
    .where(facts_history.c.namespace == _NS, chains.c.chain_id == func.any(_array("chain_ids", Uuid)))
)


async def load(conn: Connection, namespace: str, drafts: Sequence[Draft], ids: Sequence[UUID]) -> list[Fact]:
    """The facts that the drafts meet: the same text, the states at their addresses, and those named by id."""
    subjects = {(d.scope, subject) for d in drafts for subject in d.addresses if subject is not None}
    texts = {(d.scope, d.content_hash) for d in drafts}
    rows = await _load.rows(
        conn,
        namespace=namespace,
        scopes=[scope for scope, _ in texts],
        hashes=[text for _, text in texts],
        at_scopes=[scope for scope, _ in subjects],
        at_subjects=[subject for _, subject in subjects],
        ids=list(ids),
    )
    return [to_fact(row) for row in rows]


async def heads_of(conn: Connection, namespace: str, chain_ids: Sequence[UUID]) -> dict[UUID, Fact]:
    """By chain, the fact at its end, current or not."""
    rows = await _heads.rows(conn, namespace=namespace, chain_ids=list(chain_ids))
    return {row.pop("of_chain"): to_fact(row) for row in rows}


# --- Neighbours ------------------------------------------------------------------------------------------------

_frequencies = Statement(
    select(term_counts.c.scope, term_counts.c.term, cast(func.sum(term_counts.c.facts), BigInteger).label("facts"))
    .where(
        term_counts.c.namespace == _NS,
        term_counts.c.scope == func.any(_array("scopes", Text)),
        term_counts.c.term == func.any(_array("terms", Text)),
    )
    .group_by(term_counts.c.scope, term_counts.c.term)
)
_asked_words = _rows("asked", positions=Integer, in_scopes=Text, about=Text, words=Text)
_near = (
    select(*_loaded(facts_active))
    .select_from(with_use(facts_active))
    .where(
        facts_active.c.namespace == _NS,
        facts_active.c.scope == _asked_words.c.in_scopes,
        facts_active.c.kind.in_([literal_column("'state'"), literal_column("'note'")]),
        facts_active.c.terms.op("@@")(cast(_asked_words.c.words, TSQUERY)),
        or_(
            _asked_words.c.about.is_(None),
            facts_active.c.subject.is_(None),
            facts_active.c.subject == _asked_words.c.about,
        ),
    )
    .order_by(
        func.ts_rank(facts_active.c.terms, cast(_asked_words.c.words, TSQUERY)).desc(),
        facts_active.c.recorded_at.desc(),
        facts_active.c.id.desc(),
    )
    .limit(literal_column(str(_NEIGHBOURS)))
    .lateral("near")
)
_neighbours = Statement(
    select(_asked_words.c.positions.label("position"), _near).select_from(_asked_words.join(_near, true()))
)


async def frequencies(
    conn: Connection, namespace: str, scopes: Sequence[str], terms: Sequence[str]
) -> dict[tuple[str, str], int]:
    """In how many facts of a scope each term occurs; absent where in none."""
    rows = await _frequencies.rows(conn, namespace=namespace, scopes=list(scopes), terms=list(terms))
    return {(row["scope"], row["term"]): row["facts"] for row in rows}


async def neighbours(
    conn: Connection, namespace: str, drafts: Sequence[Draft], words: Sequence[str]
) -> list[tuple[int, Fact]]:
    """For each draft, the current facts of its scope that share most of its words (a tsquery)."""
    rows = await _neighbours.rows(
        conn,
        namespace=namespace,
        positions=[d.position for d in drafts],
        in_scopes=[d.scope for d in drafts],
        about=[d.subject for d in drafts],
        words=list(words),
    )
    return [(row.pop("position"), to_fact(row)) for row in rows]


# --- Writing ---------------------------------------------------------------------------------------------------

_BORN_WITH = tuple(name for name in FACT_FIELDS if name not in ("superseded_by", "retired_at"))
_DERIVED = ("embedding_profile", "embedding", "term_length")
# Rows that one statement inserts. The words of all of them are counted at once, and a statement of more rows would
# take longer to plan than it saves.
_TOGETHER = 50


@lru_cache(maxsize=2)
def _insert_facts(count: int) -> Statement:
    return Statement(insert(facts_active).values([_new_row(place) for place in range(count)]))


def _new_row(place: int) -> dict[str, Any]:
    return {
        **{
            name: bindparam(f"{name}_{place}")
            for name in (*_BORN_WITH, "embedding_profile", "embedding", "term_length")
        },
        "terms": cast(bindparam(f"terms_{place}", type_=Text), TSVECTOR),
    }


_insert_use = Statement(
    insert(fact_use).values(namespace=_NS, fact_id=bindparam("fact_id"), last_observed_at=bindparam("last_observed_at"))
)
_ended = _rows(
    "ended",
    ids=Uuid,
    successors=Uuid,
    moments=TIMESTAMP(timezone=True),
    ends=TIMESTAMP(timezone=True),
    ways=Text,
)
_retire = Statement(
    update(facts_history)
    .where(
        facts_history.c.namespace == _NS,
        facts_history.c.id == _ended.c.ids,
        facts_history.c.superseded_by.is_(None),
    )
    .values(
        superseded_by=_ended.c.successors,
        retired_at=_ended.c.moments,
        ended_at=_ended.c.ends,
        retired_as=_ended.c.ways,
    )
)
_move_head = Statement(
    update(chains)
    .where(chains.c.namespace == _NS, chains.c.head_id == bindparam("old_head", type_=Uuid))
    .values(head_id=bindparam("new_head", type_=Uuid))
)
_chain = pg_insert(chains).values(
    namespace=_NS, chain_id=bindparam("chain_id", type_=Uuid), head_id=bindparam("head_id", type_=Uuid)
)
_set_head = Statement(
    _chain.on_conflict_do_update(
        index_elements=[chains.c.namespace, chains.c.chain_id], set_={"head_id": _chain.excluded.head_id}
    )
)
_link = pg_insert(links).values(
    {
        name: bindparam(name)
        for name in (
            "namespace", "id", "source_id", "target_id", "kind", "reason", "evidence", "rule", "conflict",
            "drawn_by", "drawn_at",
        )
    }
    | {"detail": bindparam("detail", type_=JSONB)}
)  # fmt: skip
_insert_link = Statement(_link)
_observe = Statement(
    update(fact_use)
    .where(fact_use.c.namespace == _NS, fact_use.c.fact_id == bindparam("id", type_=Uuid))
    .values(
        observed_count=fact_use.c.observed_count + cast(bindparam("times", type_=BigInteger), BigInteger),
        last_observed_at=func.greatest(
            fact_use.c.last_observed_at, bindparam("moment", type_=TIMESTAMP(timezone=True))
        ),
    )
)
_insert_observation = Statement(
    insert(observations).values(
        {
            name: bindparam(name)
            for name in (
                "namespace", "id", "fact_id", "agent", "source_tier", "source_ref", "source_quote", "confidence",
                "tags", "metadata", "observed_at", "recorded_at",
            )
        }
    )
)  # fmt: skip
_set_tags = Statement(
    update(facts_history)
    .where(facts_history.c.namespace == _NS, facts_history.c.id == bindparam("fact_id", type_=Uuid))
    .values(tags=bindparam("new_tags", type_=ARRAY(Text)))
)


async def insert_facts(conn: Connection, facts: Sequence[tuple[Fact, Draft]]) -> None:
    """Append facts, with their use beside them."""
    whole = len(facts) - len(facts) % _TOGETHER
    for start in range(0, whole, _TOGETHER):
        await _insert_facts(_TOGETHER).run(conn, **_numbered(facts[start : start + _TOGETHER]))
    await _insert_facts(1).run_many(conn, [_numbered([pair]) for pair in facts[whole:]])
    await _insert_use.run_many(
        conn,
        [{"namespace": fact.namespace, "fact_id": fact.id, "last_observed_at": fact.observed_at} for fact, _ in facts],
    )


def _numbered(facts: Sequence[tuple[Fact, Draft]]) -> dict[str, Any]:
    rows = (_fact_parameters(fact, draft).items() for fact, draft in facts)
    return {f"{name}_{place}": value for place, row in enumerate(rows) for name, value in row}


def _fact_parameters(fact: Fact, draft: Draft) -> Mapping[str, Any]:
    return {name: getattr(fact, name) for name in _BORN_WITH} | {
        "metadata": Jsonb(fact.metadata),
        "embedding_profile": draft.embedding_profile,
        "embedding": draft.embedding,
        "terms": draft.terms_literal,
        "term_length": draft.term_length,
    }


async def retire(conn: Connection, namespace: str, rows: Sequence[tuple[UUID, UUID, datetime, datetime, str]]) -> int:
    """Point facts at their successors, those only that still stand; how many did."""
    ids, successors, moments, ends, ways = (list(column) for column in zip(*rows, strict=True))
    return await _retire.run(
        conn, namespace=namespace, ids=ids, successors=successors, moments=moments, ends=ends, ways=ways
    )


async def extend_chains(conn: Connection, namespace: str, steps: Sequence[tuple[Fact, UUID]]) -> None:
    """Make each successor the head of every chain that ended at the fact, in the order given."""
    for old, new in steps:
        await _set_head.run(conn, namespace=namespace, chain_id=old.chain_id, head_id=new)
        await _move_head.run(conn, namespace=namespace, old_head=old.id, new_head=new)


async def set_chain_head(conn: Connection, namespace: str, chain_id: UUID, head_id: UUID) -> None:
    """Say where a chain ends."""
    await _set_head.run(conn, namespace=namespace, chain_id=chain_id, head_id=head_id)


async def insert_links(conn: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    await _insert_link.run_many(conn, [{**row, "detail": Jsonb(row["detail"])} for row in rows])


async def observe_again(conn: Connection, namespace: str, rows: Sequence[tuple[UUID, int, datetime]]) -> None:
    """Count repeated observations of facts."""
    await _observe.run_many(
        conn,
        [{"namespace": namespace, "id": id_, "times": times, "moment": moment} for id_, times, moment in rows],
    )


async def insert_observations(conn: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    await _insert_observation.run_many(conn, [{**row, "metadata": Jsonb(row["metadata"])} for row in rows])


_register = Statement(
    select(
        func.register_embedding_profile(
            bindparam("profile", type_=Text), cast(bindparam("dimensions", type_=Integer), Integer)
        ).label("registered")
    )
)


async def register_profile(conn: Connection, profile: str, dimensions: int) -> None:
    """Make sure that the vectors of a profile have their indexes. Raises CheckViolation for another dimension."""
    await _register.rows(conn, profile=profile, dimensions=dimensions)


async def set_tags(conn: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    await _set_tags.run_many(conn, rows)
