"""The registered subjects of a namespace, their aliases, and the closed vocabulary."""

from collections.abc import Sequence
from difflib import get_close_matches

from sqlalchemy import Column, MetaData, Table, Text, bindparam, select
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP

from app.db import Connection, Statement
from app.errors import AppError, UnknownSubject
from app.facts.fact import Draft, Rules

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
_aliases = Statement(
    select(subject_aliases.c.alias, subject_aliases.c.subject).where(
        subject_aliases.c.namespace == _NS, subject_aliases.c.alias == _asked
    )
)
_registered = Statement(select(subjects.c.subject).where(subjects.c.namespace == _NS, subjects.c.subject == _asked))
_every = Statement(select(subjects.c.subject).where(subjects.c.namespace == _NS).order_by(subjects.c.subject))


async def canonical(conn: Connection, namespace: str, asked: Sequence[str]) -> dict[str, str]:
    """By alias, the subject that it stands for; a subject that is no alias is absent."""
    rows = await _aliases.rows(conn, namespace=namespace, subjects=list(asked))
    return {row["alias"]: row["subject"] for row in rows}


async def resolve(conn: Connection, namespace: str, drafts: Sequence[Draft], rules: Rules) -> dict[int, AppError]:
    """Put subjects in the place of their aliases; by position, the refusals of a closed vocabulary."""
    asked = list({draft.subject for draft in drafts if draft.subject is not None})
    if not asked:
        return {}
    aliases = await canonical(conn, namespace, asked)
    for draft in drafts:
        if draft.subject is not None:
            draft.subject = aliases.get(draft.subject, draft.subject)
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


def nearest(subject: str, vocabulary: Sequence[str]) -> list[str]:
    """The registered subjects that look most like it, best first, five at most."""
    return get_close_matches(subject, vocabulary, n=5, cutoff=0.4)
