"""The statement that finds what to review."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Integer, Text, Uuid, and_, bindparam, or_, select

from app.db import Connection, Statement
from app.facts import nearby
from app.facts.model import facts_history, links
from app.upkeep.model import word
from app.upkeep.review.checks import Claim

_SCOPE = bindparam("scope", type_=Text)
_page = Statement(
    select(
        links.c.id,
        links.c.kind,
        links.c.source_id,
        links.c.target_id,
        links.c.reason,
        links.c.evidence,
        links.c.rule,
    )
    .select_from(
        links.join(
            facts_history,
            and_(
                facts_history.c.namespace == links.c.namespace,
                facts_history.c.id == links.c.target_id,
                facts_history.c.superseded_by == links.c.source_id,
            ),
        )
    )
    .where(
        links.c.namespace == bindparam("namespace", type_=Text),
        links.c.kind.in_([word("supersedes"), word("amends")]),
        links.c.demoted_at.is_(None),
        facts_history.c.kind != word("digest"),
        or_(_SCOPE.is_(None), facts_history.c.scope == _SCOPE),
        links.c.id > bindparam("after", type_=Uuid),
    )
    .order_by(links.c.id)
    .limit(bindparam("limit", type_=Integer))
)


async def claims(conn: Connection, namespace: str, scope: str | None, after: UUID, limit: int) -> Sequence[Claim]:
    """Retirements that stand, in the order of their links, with both facts."""
    rows = await _page.rows(conn, namespace=namespace, scope=scope, after=after, limit=limit)
    ids = list({row[end] for row in rows for end in ("source_id", "target_id")})
    held = {fact.id: fact for fact in await nearby.load(conn, namespace, [], ids)}
    return [
        Claim(
            link_id=row["id"],
            kind=row["kind"],
            reason=row["reason"],
            evidence=row["evidence"],
            rule=row["rule"],
            old=held[row["target_id"]],
            new=held[row["source_id"]],
        )
        for row in rows
    ]
