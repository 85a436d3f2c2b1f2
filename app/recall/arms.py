"""The arms of recall: one statement that finds what meets a question, and measures how well."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, LiteralString

from sqlalchemy import (
    ARRAY,
    REAL,
    TIMESTAMP,
    ColumnElement,
    Double,
    LargeBinary,
    Select,
    SmallInteger,
    Subquery,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import TSQUERY
from sqlalchemy.sql import FromClause
from sqlalchemy.sql.selectable import LateralFromClause

from app.db import Connection, Statement
from app.embedding import Profile
from app.facts.model import Vector, fact_echoes, facts_active, facts_history
from app.facts.visibility import within
from app.recall.asked import asked_by, of_question
from app.recall.moment import at_the_moment
from app.recall.queries import yielding
from app.recall.question import DEPTH, K1, B
from app.recall.shape import Shape
from app.recall.sightings import COLUMNS, Held, Sightings

# Retired facts that an arm brings at most: only those that meet the question well can lead to their heads.
ECHO_DEPTH = 30
# Retired facts that share words are looked through up to here, in the order in which they lie.
MOST_ECHOES_READ = 2_000
# pgvector's largest `vector` index; longer ones are indexed in half precision.
_MOST_FULL_PRECISION = 2_000

_NS = bindparam("namespace", type_=Text)
_TIME = TIMESTAMP(timezone=True)
# Weights of the labels D, C, B and A, which stand for 1, 2, 3 to 4, and 5 or more occurrences. `ts_rank` of a
# word at one position is its label's weight over the sum of 1/n².
_LABELS = literal_column("'{0.1666667,0.3333333,0.5833333,1}'::real[]", ARRAY(REAL))
_NO_BYTES = literal_column("''::bytea", LargeBinary)
# What stands where there is no retired fact: a row has no gaps.
_NO_ID = literal_column("'00000000-0000-0000-0000-000000000000'::uuid", Uuid)
_NO_TIME = literal_column("'epoch'::timestamptz", _TIME)
_NO_COSINE = literal_column("'NaN'::float8", Double)


def _filtered(view: FromClause, shape: Shape) -> list[ColumnElement[bool]]:
    c = view.c
    filters: dict[str, Callable[[], ColumnElement[bool]]] = {
        "subjects": lambda: c.subject == bindparam("subjects", type_=ARRAY(Text)).any_(),
        "kinds": lambda: c.kind == bindparam("kinds", type_=ARRAY(Text)).any_(),
        "tags": lambda: c.tags.contains(bindparam("tags", type_=ARRAY(Text))),
        "tiers": lambda: c.source_tier == bindparam("tiers", type_=ARRAY(Text)).any_(),
    }
    return [
        c.namespace == _NS,
        *within(c.scope, shape.sight),
        *(make() for name, make in filters.items() if name in shape.filters),
    ]


def _vector_of(view: FromClause, profile: Profile) -> ColumnElement[Any]:
    half = profile.dimensions > _MOST_FULL_PRECISION
    return cast(view.c.embedding, Vector(profile.dimensions, half=half))


def _distance(view: FromClause, profile: Profile) -> ColumnElement[float]:
    half = profile.dimensions > _MOST_FULL_PRECISION
    asked = cast(of_question("vector", Vector()), Vector(profile.dimensions, half=half))
    return _vector_of(view, profile).op("<=>", return_type=Double())(asked)


def _of_profile(view: FromClause, profile: Profile) -> ColumnElement[bool]:
    # Written out, because the index of a profile is partial and a bound value would keep the planner off it.
    return view.c.embedding_profile == literal_column(f"'{profile.name}'")


def _term(place: int) -> ColumnElement[Any]:
    return of_question(f"term_{place}", TSQUERY())


def _presence(view: FromClause, terms: int) -> ColumnElement[Any]:
    """BM25 as if every term occurred once: it chooses the candidates, which are weighed exactly later."""
    weight: ColumnElement[Any] = _number("0.0")
    for place in range(terms):
        worth: ColumnElement[Any] = of_question(f"weight_{place}", Double())
        weight = weight + case((view.c.terms.op("@@")(_term(place)), worth), else_=_number("0.0"))
    length = cast(view.c.term_length, Double) / of_question("average_length", Double())
    return weight / (_number(str(1 + K1 * (1 - B))) + _number(str(K1 * B)) * length)


def _number(digits: str) -> ColumnElement[Any]:
    return literal_column(f"{digits}::float8", Double())


# What is known of a text when it is found: from these it is measured and named.
_OF_TEXT = ("terms", "term_length", "embedding", "embedding_profile")
_OF_FACT = ("id", "scope", "subject", "observed_at", "recorded_at")


def _columns(source: FromClause, names: Sequence[str]) -> list[ColumnElement[Any]]:
    return [source.c[name] for name in names]


def _holds(view: FromClause, any_of: str) -> ColumnElement[bool]:
    return view.c.terms.op("@@")(of_question(any_of, TSQUERY()))


def _by_words(found: Select[Any], view: FromClause, newest: ColumnElement[Any], shape: Shape, depth: int) -> Subquery:
    order = (_presence(view, shape.terms).desc(), newest.desc(), view.c.id.desc())
    return found.order_by(*order).limit(literal_column(str(depth))).subquery()


def _by_vector(found: Select[Any], view: FromClause, profile: Profile, depth: int, *, exact: bool) -> Subquery:
    distance = _distance(view, profile)
    # Adding nothing keeps the index out, so every row that the predicates leave is compared.
    order = [distance + _number("0.0"), view.c.id.desc()] if exact else [distance]
    near = found.where(_of_profile(view, profile), view.c.embedding.is_not(None))
    return near.order_by(*order).limit(literal_column(str(depth))).subquery()


def _named(held: Held, text: FromClause, fact: FromClause, echo: FromClause | None = None) -> Select[Any]:
    """A finding: how it was found, which retired fact it stands for if any, the fact, and the text that met."""
    return select(
        literal_column(f"{held:d}::smallint", SmallInteger).label("held"),
        (echo.c.id if echo is not None else _NO_ID).label("echo_id"),
        (echo.c.retired_at if echo is not None else _NO_TIME).label("retired_at"),
        *_columns(fact, _OF_FACT),
        *_columns(text, _OF_TEXT),
    )


def _current(view: FromClause, where: Sequence[ColumnElement[bool]], shape: Shape) -> list[Select[Any]]:
    """The arms over what holds."""
    found = select(*_columns(view, _OF_FACT + _OF_TEXT)).where(*where)
    arms = []
    if shape.terms:
        worded = _by_words(found.where(_holds(view, "fetching")), view, view.c.recorded_at, shape, DEPTH)
        arms.append(_named(Held.WORDED, worded, worded))
    if shape.profile:
        near = _by_vector(found, view, shape.profile, DEPTH, exact=shape.exact)
        arms.append(_named(Held.NEAR, near, near))
    return arms


def _echoes(shape: Shape) -> list[Select[Any]]:
    """The arms over what was retired: each finding leads to the current fact at the end of its chain."""
    view = fact_echoes.alias("e")
    names = ("id", "head_id", "retired_at", *_OF_TEXT)
    found = select(*_columns(view, names)).where(view.c.namespace == _NS, *within(view.c.scope, shape.sight))
    arms = []
    if shape.terms:
        read = found.where(_holds(view, "echoing")).limit(literal_column(str(MOST_ECHOES_READ))).subquery()
        arms.append(_by_words(select(*read.c), read, read.c.retired_at, shape, ECHO_DEPTH))
    if shape.profile:
        arms.append(_by_vector(found, view, shape.profile, ECHO_DEPTH, exact=False))
    return [stands(echo, shape) for echo in arms for stands in (_forwarded, _forgotten)]


def _forwarded(echo: Subquery, shape: Shape) -> Select[Any]:
    head = facts_active.alias()
    stands = and_(head.c.id == echo.c.head_id, *_filtered(head, shape))
    return _named(Held.ECHO, echo, head, echo).join_from(echo, head, stands)


def _forgotten(echo: Subquery, shape: Shape) -> Select[Any]:
    """Retired texts whose chain ends in a retraction, so that nothing stands for them."""
    past, end = facts_history.alias(), facts_history.alias()
    return (
        _named(Held.FORGOTTEN, echo, past, echo)
        .join_from(echo, past, and_(past.c.id == echo.c.id, *_filtered(past, shape)))
        .join(end, and_(end.c.namespace == _NS, end.c.id == echo.c.head_id))
        .where(end.c.kind == literal_column("'retraction'"))
    )


def _out_of_window(shape: Shape) -> list[Select[Any]]:
    """Facts that share words and are not valid yet, or no longer, to be counted."""
    view = facts_history.alias("h")
    c = view.c
    # Each says what the status says, in the words of the index of the facts that have such a window.
    windows = {
        Held.SCHEDULED: and_(c.valid_from > c.recorded_at, c.valid_from > func.now()),
        Held.EXPIRED: and_(c.valid_to.is_not(None), c.valid_to <= func.now()),
    }
    found = select(*_columns(view, _OF_FACT + _OF_TEXT)).where(
        *_filtered(view, shape),
        c.superseded_by.is_(None),
        c.kind != literal_column("'retraction'"),
        _holds(view, "fetching"),
    )
    counted = [
        found.where(window, c.status == literal_column(f"'{held.name.lower()}'"))
        .limit(literal_column(str(DEPTH)))
        .subquery()
        for held, window in windows.items()
    ]
    return [_named(held, each, each) for held, each in zip(windows, counted, strict=True)]


def _findings(shape: Shape) -> list[Select[Any]]:
    if shape.past:
        view = facts_history.alias("h")
        return [
            arm
            for ended in (False, True)
            for arm in _current(view, [*_filtered(view, shape), *at_the_moment(view, retired=ended)], shape)
        ]
    view = facts_active.alias("f")
    findings = _current(view, _filtered(view, shape), shape) + _echoes(shape)
    return findings + (_out_of_window(shape) if shape.terms else [])


def _packed(found: FromClause, shape: Shape) -> LateralFromClause:
    """All that was found for a question in one row, as `Sightings` unpacks it."""
    cosine: ColumnElement[Any] = _NO_COSINE
    if shape.profile:
        similarity: ColumnElement[Any] = _number("1.0") - _distance(found, shape.profile)
        # A text that has no vector of its own may still be of the profile: the embedder looked at it in vain.
        cosine = func.coalesce(case((_of_profile(found, shape.profile), similarity)), _NO_COSINE)
    columns = [cosine if name == "cosine" else found.c[name] for name in COLUMNS]
    ranks = [func.ts_rank(_LABELS, found.c.terms, _term(place)) for place in range(shape.terms)]
    packed = [
        func.string_agg(func.record_send(func.row(*columns, *ranks)), _NO_BYTES).label("packed"),
        func.string_agg(yielding(found), _NO_BYTES).filter(found.c.subject.is_not(None)).label("yielding"),
    ]
    if shape.in_order:
        packed += [func.array_agg(found.c[name]).label(f"{name}s") for name in ("scope", "subject")]
    return select(*packed).select_from(found).lateral("seen")


@lru_cache(maxsize=512)
def _candidates(shape: Shape) -> Statement:
    asked = asked_by(shape)
    seen = _packed(union_all(*_findings(shape)).subquery("found"), shape)
    return Statement(select(asked.c.place, *seen.c).select_from(asked.join(seen, true())), prepare=True)


def text_of(shape: Shape) -> LiteralString:
    """The statement's SQL, so that its plan can be looked at."""
    return _candidates(shape).sql


async def candidates(
    conn: Connection, shape: Shape, parameters: Mapping[str, Any], questions: int = 1
) -> list[Sightings]:
    """What the arms find for each of so many questions. A fact that two arms find comes twice."""
    rows = {row.pop("place"): row for row in await _candidates(shape).rows(conn, **parameters)}
    return [
        Sightings.unpacked(row["packed"], row["yielding"], row.get("scopes"), row.get("subjects"), terms=shape.terms)
        for row in (rows[place] for place in range(questions))
    ]
