"""Which rows a caller may see, as a condition of a statement and the parameters that go with it."""

from collections.abc import Sequence
from typing import Any, Literal

from sqlalchemy import ColumnElement, Text, bindparam, column, exists, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY

from app.auth import Scopes

Sight = Literal["everything", "listed", "patterns"]


def sight_of(scopes: Scopes, asked: Sequence[str] | None) -> tuple[Sight, dict[str, Any]]:
    """How narrowly a statement must look, and what it binds. What was asked has been checked already."""
    if asked is not None:
        return "listed", {"scopes": list(asked)}
    if scopes.everything:
        return "everything", {}
    if not scopes.prefixes:
        return "listed", {"scopes": sorted(scopes.exact)}
    return "patterns", {"scopes": sorted(scopes.exact), "prefixes": list(scopes.prefixes)}


def within(scope: ColumnElement[Any], sight: Sight) -> list[ColumnElement[bool]]:
    """The condition on a scope column; none where everything is visible."""
    if sight == "everything":
        return []
    listed = scope == bindparam("scopes", type_=ARRAY(Text)).any_()
    if sight == "listed":
        return [listed]
    prefix = func.unnest(bindparam("prefixes", type_=ARRAY(Text))).table_valued(column("prefix", Text)).render_derived()
    below = exists(select(prefix.c.prefix).where(func.starts_with(scope, prefix.c.prefix)).correlate_except(prefix))
    return [or_(listed, below)]
