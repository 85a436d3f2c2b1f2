"""Every read goes through a view: by permission, and by what the code can say at all."""

import ast
from collections.abc import Iterator

from fastapi import FastAPI, Request, Response
from psycopg import errors
from sqlalchemy import column, select, table

from app.db import Statement
from app.embedded import Cluster
from app.main import create_app
from app.state import Db
from tests.architecture.source import modules, trees
from tests.clients import Memory, make_key
from tests.conftest import settings_for
from tests.serving import running

# What may see facts that are no longer current, and why.
SEES_HISTORY = {
    "app.conflicts.queries": "a conflict that was settled names a fact that has been retired",
    "app.audit.reading": "the trail tells whose scope an event was about, also when the fact has been retired",
    "app.facts.freshness": "it tells which facts are no longer current",
    "app.facts.lifecycle": "it ends facts and undoes that",
    "app.facts.model": "it declares the view",
    "app.facts.nearby": "a write meets the same text and the facts that it names, whatever became of them",
    "app.facts.queries": "what became of one fact, and the heads of chains",
    "app.facts.reading": "history, and the answer that names what replaced a retired fact",
    "app.facts.storing": "it retires by the fact's id, whether or not the fact holds at this moment",
    "app.recall.arms": "recall as of another moment",
    "app.recall.moment": "what held at another moment",
    "app.recall.queries": "recall tells what each result replaces",
    "app.subjects.queries": "a subject's history",
    "app.upkeep.checkup.damage": "damage is done to what was retired",
    "app.upkeep.checkup.queries": "it counts what was retired, and retirements without proof",
    "app.upkeep.consolidation.marks": "a mark is made by the fact's id, whatever became of it",
    "app.upkeep.consolidation.queries": "it locks what it was shown, by id, and meets digests that went stale",
    "app.upkeep.decay": "weights of retired facts fall as well",
    "app.upkeep.digests.queries": "digests that went stale, since a source was retired",
    "app.upkeep.review.queries": "it tests retirements",
    "app.upkeep.embedding_jobs": "retired facts keep vectors, by which an old question finds them",
}


def statements() -> Iterator[tuple[str, Statement]]:
    """Every statement that a module composes when it is imported."""
    for name, module in modules().items():
        for key, value in vars(module).items():
            for statement in _found_in(value):
                yield f"{name}.{key}", statement


def _found_in(value: object) -> list[Statement]:
    if isinstance(value, Statement):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return [item for item in inside if isinstance(item, Statement)]


def strings(tree: ast.Module) -> Iterator[str]:
    """The strings of a module but for its docstrings."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def test_no_statement_names_the_ledger() -> None:
    composed = dict(statements())

    assert len(composed) > 20
    assert [name for name, statement in composed.items() if "ledger" in statement.sql] == []


def test_no_text_in_the_code_names_the_ledger() -> None:
    # app.db asks Postgres whether its own role could read the ledger, in order to refuse to start.
    naming = {
        name for name, tree in trees().items() if any(text == "ledger" or "ledger." in text for text in strings(tree))
    }

    assert naming == {"app.db"}


def says(node: ast.AST, name: str) -> bool:
    """Whether a piece of code imports, uses or spells a name."""
    match node:
        case ast.alias(name=said) | ast.Name(id=said) | ast.Attribute(attr=said):
            return said == name
        case ast.Constant(value=str() as text):
            return name in text
        case _:
            return False


def test_only_what_is_about_the_past_sees_the_history() -> None:
    seeing = {name for name, tree in trees().items() if any(says(node, "facts_history") for node in ast.walk(tree))}

    assert seeing == SEES_HISTORY.keys()


def add_cheating_route(app: FastAPI) -> None:
    """What a hurried colleague might add: a route that reads the table behind the views."""
    facts = table("facts", column("content"), schema="ledger")
    every = Statement(select(facts.c.content))

    @app.get("/v1/everything")
    async def everything(db: Db) -> list[str]:
        async with db.reading() as conn:
            return [row["content"] for row in await every.rows(conn)]


def test_a_route_that_reads_around_the_views_returns_nothing(database: Cluster, namespace: str) -> None:
    app = create_app(settings_for(database))
    add_cheating_route(app)
    key = make_key(database, namespace)

    with running(app) as url, Memory(url, key) as client:
        client.remember("The vault's code is 4711.")
        answer = client.http.get("/v1/everything")

    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "4711" not in answer.text


def test_such_a_route_is_stopped_by_a_missing_permission(database: Cluster, namespace: str) -> None:
    app = create_app(settings_for(database))
    raised: list[Exception] = []
    add_cheating_route(app)

    async def note(_: Request, error: Exception) -> Response:
        raised.append(error)
        return Response(status_code=403)

    app.add_exception_handler(errors.InsufficientPrivilege, note)

    with running(app) as url, Memory(url, make_key(database, namespace)) as client:
        client.http.get("/v1/everything")

    assert "permission denied for schema ledger" in str(raised[0])
