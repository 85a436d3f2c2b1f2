"""The statements that find a draft's neighbours: current facts which share its rarer words."""

from collections.abc import Sequence

from sqlalchemy import (
    BigInteger,
    Integer,
    Text,
    bindparam,
    cast,
    func,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import TSQUERY

from app.db import Connection, Statement
from app.facts.fact import Draft, Fact
from app.facts.model import (
    facts_active,
    term_counts,
)
from app.facts.queries import array_of, loaded, rows_of, to_fact, with_use

_NS = bindparam("namespace", type_=Text)
_NEIGHBOURS = 40

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
