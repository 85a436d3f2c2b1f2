"""The statements that find what a draft meets: its own text, its address, and facts which share its rarer words."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Boolean,
    Integer,
    LargeBinary,
    Text,
    Uuid,
    bindparam,
    cast,
    func,
    literal_column,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import TSQUERY

from app.db import Connection, Statement
from app.facts.fact import Draft, Fact
from app.facts.model import (
    facts_active,
    facts_history,
    term_counts,
)
from app.facts.queries import array_of, loaded, rows_of, to_fact, with_use

_NS = bindparam("namespace", type_=Text)
_NEIGHBOURS = 30
_SAME_TEXT = 50
# States at one address that a write looks at where it may only doubt them, and where it may retire them.
DOUBTED = 100
RETIRED = 1_000

_asked_text = rows_of(
    "asked",
    scopes=Text,
    subjects=Text,
    hashes=LargeBinary,
    as_events=Boolean,
    moments=TIMESTAMP(timezone=True),
)
_text_match = (
    select(*loaded(facts_history))
    .select_from(with_use(facts_history))
    .where(
        facts_history.c.namespace == _NS,
        facts_history.c.content_hash == _asked_text.c.hashes,
        facts_history.c.scope == _asked_text.c.scopes,
        facts_history.c.subject.is_not_distinct_from(_asked_text.c.subjects),
        facts_history.c.kind != literal_column("'retraction'"),
    )
    # However many there are, the one that repeating the text would reaffirm must be among them.
    .order_by(
        facts_history.c.superseded_by.is_(None).desc(),
        ((facts_history.c.kind == literal_column("'event'")) == _asked_text.c.as_events).desc(),
        func.coalesce(
            or_(
                facts_history.c.valid_from == _asked_text.c.moments,
                facts_history.c.observed_at == _asked_text.c.moments,
            ),
            literal_column("false"),
        ).desc(),
        facts_history.c.valid_to.is_(None).desc(),
        facts_history.c.recorded_at.desc(),
    )
    .limit(literal_column(str(_SAME_TEXT)))
    .lateral("same")
)
_asked_address = rows_of("address", at_scopes=Text, at_subjects=Text)
_address_match = (
    select(*loaded(facts_active))
    .select_from(with_use(facts_active))
    .where(
        facts_active.c.namespace == _NS,
        facts_active.c.scope == _asked_address.c.at_scopes,
        facts_active.c.subject == _asked_address.c.at_subjects,
        facts_active.c.kind == literal_column("'state'"),
    )
    .order_by(facts_active.c.recorded_at.desc(), facts_active.c.id.desc())
    .limit(bindparam("most", type_=Integer))
    .lateral("held")
)
_load = Statement(
    union_all(
        select(_text_match).select_from(_asked_text.join(_text_match, true())),
        select(_address_match).select_from(_asked_address.join(_address_match, true())),
        select(*loaded(facts_history))
        .select_from(with_use(facts_history))
        .where(facts_history.c.namespace == _NS, facts_history.c.id == func.any(array_of("ids", Uuid))),
    )
)

_frequencies = Statement(
    select(term_counts.c.scope, term_counts.c.term, cast(func.sum(term_counts.c.facts), BigInteger).label("facts"))
    .where(
        term_counts.c.namespace == _NS,
        term_counts.c.scope == func.any(array_of("scopes", Text)),
        term_counts.c.term == func.any(array_of("terms", Text)),
    )
    .group_by(term_counts.c.scope, term_counts.c.term)
)
_asked_words = rows_of("asked", positions=Integer, in_scopes=Text, about=Text, words=Text)
_near = (
    select(*loaded(facts_active))
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


async def load(
    conn: Connection, namespace: str, drafts: Sequence[Draft], ids: Sequence[UUID], most: int = DOUBTED
) -> list[Fact]:
    """The facts that the drafts meet: the same text, at most so many states at each address, and those named by id."""
    subjects = {(d.scope, subject) for d in drafts for subject in d.addresses if subject is not None}
    texts = {
        (d.scope, subject, d.content_hash, d.kind == "event", d.valid_from or d.observed_at)
        for d in drafts
        for subject in d.addresses
    }
    scopes, at, hashes, as_events, moments = zip(*texts, strict=True) if texts else ((),) * 5
    rows = await _load.rows(
        conn,
        namespace=namespace,
        scopes=list(scopes),
        subjects=list(at),
        hashes=list(hashes),
        as_events=list(as_events),
        moments=list(moments),
        at_scopes=[scope for scope, _ in subjects],
        at_subjects=[subject for _, subject in subjects],
        ids=list(ids),
        most=most,
    )
    return [to_fact(row) for row in rows]
