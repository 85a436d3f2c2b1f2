"""What held at another moment, as the store saw it at some moment."""

from sqlalchemy import TIMESTAMP, ColumnElement, Text, and_, bindparam, literal_column, or_, select
from sqlalchemy.sql import FromClause

from app.facts.model import facts_history, links

_NS = bindparam("namespace", type_=Text)
_TIME = TIMESTAMP(timezone=True)
_AS_OF, _KNOWN_AT = bindparam("as_of", type_=_TIME), bindparam("known_at", type_=_TIME)


def at_the_moment(view: FromClause, *, retired: bool) -> list[ColumnElement[bool]]:
    """What was true at `as_of` as the store saw it at `known_at`; intervals are half-open."""
    c = view.c
    held = [
        c.kind != literal_column("'retraction'"),
        c.recorded_at <= _KNOWN_AT,
        c.valid_from <= _AS_OF,
        or_(c.valid_to.is_(None), c.valid_to > _AS_OF),
        or_(c.stale_at.is_(None), c.stale_at > _KNOWN_AT),
        ~_was_retired_for_a_time(view),
    ]
    if retired:
        return [
            *held,
            c.superseded_by.is_not(None),
            or_(c.retired_at > _KNOWN_AT, c.ended_at > _AS_OF),
        ]
    return [*held, c.superseded_by.is_(None)]


def _was_retired_for_a_time(view: FromClause) -> ColumnElement[bool]:
    """Whether the store held then that the fact had been retired, and has undone that since."""
    successor = facts_history.alias("successor")
    return (
        select(literal_column("1"))
        .select_from(links.join(successor, and_(successor.c.namespace == _NS, successor.c.id == links.c.source_id)))
        .where(
            links.c.namespace == _NS,
            links.c.target_id == view.c.id,
            links.c.kind.in_([literal_column("'supersedes'"), literal_column("'amends'")]),
            links.c.drawn_at <= _KNOWN_AT,
            links.c.demoted_at > _KNOWN_AT,
            successor.c.valid_from <= _AS_OF,
        )
        .correlate(view)
        .exists()
    )
