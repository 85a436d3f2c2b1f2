"""The registered subjects of a namespace, their aliases, and the closed vocabulary."""

from collections.abc import Sequence

from sqlalchemy import Column, MetaData, Table, Text, bindparam, or_, select
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP

from app.db import Connection, Statement
from app.errors import AppError, UnknownSubject
from app.facts.fact import Draft, Rules
from app.facts.likeness import nearest

_METADATA = MetaData()
subjects = Table(
    "subjects",
    _METADATA,
    Column("namespace", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("description", Text),
    Column("registered_at", TIMESTAMP(timezone=True)),
    Column("registered_by", Text),
)
subject_aliases = Table(
    "subject_aliases",
    _METADATA,
    Column("namespace", Text, primary_key=True),
    Column("alias", Text, primary_key=True),
    Column("subject", Text),
)
_NS = bindparam("namespace", type_=Text)
_asked = bindparam("subjects", type_=ARRAY(Text)).any_()
_meant = (
    select(subject_aliases.c.subject)
    .where(subject_aliases.c.namespace == _NS, subject_aliases.c.alias == _asked)
    .scalar_subquery()
)
_aliases = Statement(
    select(subject_aliases.c.alias, subject_aliases.c.subject).where(
        subject_aliases.c.namespace == _NS,
        or_(subject_aliases.c.subject == _asked, subject_aliases.c.subject.in_(_meant)),
    )
)
_registered = Statement(select(subjects.c.subject).where(subjects.c.namespace == _NS, subjects.c.subject == _asked))
_every = Statement(select(subjects.c.subject).where(subjects.c.namespace == _NS).order_by(subjects.c.subject))


async def addresses(conn: Connection, namespace: str, asked: Sequence[str]) -> dict[str, list[str]]:
    """By subject, all names under which its facts stand: the one that counts first, then its aliases.

    Facts that were written under a name before it became an alias are still there.
    """
    rows = await _aliases.rows(conn, namespace=namespace, subjects=list(asked))
    meant = {row["alias"]: row["subject"] for row in rows}
    found = {}
    for subject in asked:
        known = meant.get(subject, subject)
        found[subject] = [known, *sorted(alias for alias, of in meant.items() if of == known)]
    return found


async def resolve(conn: Connection, namespace: str, drafts: Sequence[Draft], rules: Rules) -> dict[int, AppError]:
    """Put subjects in the place of their aliases; by position, the refusals of a closed vocabulary."""
    asked = list({draft.subject for draft in drafts if draft.subject is not None})
    if not asked:
        return {}
    names = await addresses(conn, namespace, asked)
    for draft in drafts:
        if draft.subject is not None:
            draft.subject, *draft.aliases = names[draft.subject]
    return await _refused(conn, namespace, drafts) if rules.closed_vocabulary else {}


async def _refused(conn: Connection, namespace: str, drafts: Sequence[Draft]) -> dict[int, AppError]:
    asked = list({draft.subject for draft in drafts if draft.subject is not None})
    rows = await _registered.rows(conn, namespace=namespace, subjects=asked)
    unknown = set(asked) - {row["subject"] for row in rows}
    if not unknown:
        return {}
    vocabulary = [row["subject"] for row in await _every.rows(conn, namespace=namespace)]
    return {
        draft.position: UnknownSubject(
            f"The subject {draft.subject!r} is not registered in this namespace.",
            nearest=nearest(draft.subject, vocabulary),
        )
        for draft in drafts
        if draft.subject is not None and draft.subject in unknown
    }
