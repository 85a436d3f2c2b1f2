"""The questions that a statement answers, as rows in it: one for each, so that many cost hardly more than one."""

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg.types.json import Jsonb
from sqlalchemy import (
    ARRAY,
    CTE,
    ColumnElement,
    Double,
    Integer,
    Text,
    bindparam,
    cast,
    column,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, TSQUERY
from sqlalchemy.types import TypeEngine

from app.db import array_of_vectors
from app.facts.model import Vector
from app.recall.shape import Shape


def of_question(name: str, type_: TypeEngine[Any]) -> ColumnElement[Any]:
    """What is known of a question: its row in `asked`, which stands beside everything that is found for it."""
    return literal_column(f"asked.{name}", type_)


def asked_by(shape: Shape) -> CTE:
    """The questions, a row each; `place` tells which."""
    types: dict[str, TypeEngine[Any]] = {
        "average_length": Double(),
        **{name: TSQUERY() for name in ("fetching", "echoing", *(f"term_{place}" for place in range(shape.terms)))},
        **{f"weight_{place}": Double() for place in range(shape.terms)},
    }
    given = {name: Text() if isinstance(type_, TSQUERY) else type_ for name, type_ in types.items()}
    rows = func.jsonb_to_recordset(bindparam("questions", type_=JSONB)).table_valued(
        column("place", Integer), *(column(name, type_) for name, type_ in given.items())
    )
    questions = rows.render_derived(name="given", with_types=True)
    vectors = func.unnest(bindparam("vectors", type_=ARRAY(Vector()))).table_valued(
        column("vector", Vector()), with_ordinality="nth"
    )
    nth = vectors.render_derived(name="vectors")
    columns = [cast(questions.c[name], type_).label(name) for name, type_ in types.items()]
    asked = select(questions.c.place, nth.c.vector, *columns).select_from(
        questions.outerjoin(nth, nth.c.nth == questions.c.place + literal_column("1"))
    )
    # Materialized, so that a query is read once and not for every fact that it is held against.
    return asked.cte("asked").prefix_with("MATERIALIZED", dialect="postgresql")


def bound(questions: Sequence[Mapping[str, Any]], vectors: Sequence[Any]) -> dict[str, Any]:
    """What the rows are made of: for each question its terms and their weights, and its vector if it has one."""
    given = [{"place": place, **question} for place, question in enumerate(questions)]
    return {"questions": Jsonb(given), "vectors": array_of_vectors(vectors)}
