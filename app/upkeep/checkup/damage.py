"""What nothing should ever make: statements that find damage which was done behind the back of the service."""

from typing import Any

from sqlalchemy import ColumnElement, Select, Table, Text, bindparam, exists, select

from app.facts.model import chains, facts_active, facts_history, links
from app.facts.visibility import Sight, within
from app.upkeep.model import word

_NS = bindparam("namespace", type_=Text)
_not_ended = facts_history.c.superseded_by.is_(None)
_retiring = links.c.kind.in_([word("supersedes"), word("amends")])


def facts_where(view: Table, sight: Sight, *conditions: ColumnElement[bool]) -> Select[Any]:
    """The ids of facts in sight for which the conditions hold."""
    return select(view.c.id).where(view.c.namespace == _NS, *within(view.c.scope, sight), *conditions)


def dangling(sight: Sight) -> Select[Any]:
    """Facts whose successor is gone."""
    successor = facts_history.alias("successor")
    found = exists().where(
        successor.c.namespace == facts_history.c.namespace, successor.c.id == facts_history.c.superseded_by
    )
    return facts_where(facts_history, sight, facts_history.c.superseded_by.is_not(None), ~found)


def circular(sight: Sight) -> Select[Any]:
    """Facts whose chain of replacements never comes to an end: walking back from all ends does not reach them."""
    ends = select(facts_history.c.id).where(facts_history.c.namespace == _NS, _not_ended)
    reached = ends.cte("reached", recursive=True)
    older = facts_history.alias("older")
    reached = reached.union(
        select(older.c.id)
        .select_from(older.join(reached, older.c.superseded_by == reached.c.id))
        .where(older.c.namespace == _NS)
    )
    unreached = ~exists().where(reached.c.id == facts_history.c.id)
    successor = facts_history.alias("successor")
    there = exists().where(
        successor.c.namespace == facts_history.c.namespace, successor.c.id == facts_history.c.superseded_by
    )
    return facts_where(facts_history, sight, facts_history.c.superseded_by.is_not(None), there, unreached)


def said_twice(sight: Sight) -> Select[Any]:
    """Facts that say the same as an older one at the same place, both without an end."""
    twin = facts_active.alias("twin")
    standing = [facts_active.c.valid_to.is_(None), facts_active.c.kind != word("event")]
    same = exists().where(
        twin.c.namespace == facts_active.c.namespace,
        twin.c.content_hash == facts_active.c.content_hash,
        twin.c.scope == facts_active.c.scope,
        twin.c.subject.is_not_distinct_from(facts_active.c.subject),
        twin.c.kind != word("event"),
        twin.c.valid_to.is_(None),
        twin.c.id < facts_active.c.id,
    )
    return facts_where(facts_active, sight, *standing, same)


def without_claim(sight: Sight) -> Select[Any]:
    """Retired facts without a link that says why."""
    claim = exists().where(
        links.c.namespace == facts_history.c.namespace,
        links.c.target_id == facts_history.c.id,
        links.c.source_id == facts_history.c.superseded_by,
        _retiring,
        links.c.demoted_at.is_(None),
    )
    return facts_where(facts_history, sight, facts_history.c.superseded_by.is_not(None), ~claim)


def wrong_heads(sight: Sight) -> Select[Any]:
    """Retired facts of a chain that does not lead to an end."""
    head = facts_history.alias("head")
    return facts_where(
        facts_history,
        sight,
        facts_history.c.superseded_by.is_not(None),
        ~exists().where(
            chains.c.namespace == facts_history.c.namespace,
            chains.c.chain_id == facts_history.c.chain_id,
            head.c.namespace == chains.c.namespace,
            head.c.id == chains.c.head_id,
            head.c.superseded_by.is_(None),
        ),
    )
