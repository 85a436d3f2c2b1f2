"""The web application: what it is made of, and the order in which a request meets it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI

from app import docs, edge, health, problems, telemetry
from app.access.router import router as access
from app.audit.router import router as audit
from app.auth import KeyRing
from app.conflicts.router import router as conflicts
from app.db import connect
from app.edge import BodyRule
from app.embedding import build_embedder
from app.facts.overview import router as overview
from app.facts.router import router as facts
from app.recall.counting import counting
from app.recall.router import router as recall
from app.settings import Settings
from app.state import Service
from app.subjects.router import router as subjects
from app.telemetry import Metrics
from app.upkeep.checkup.router import router as checkup
from app.upkeep.proposals.router import router as proposals
from app.upkeep.router import router as upkeep

DESCRIPTION = """
Memory for AI agents that never hands a retired fact back as if it were current.

Write statements with **remember**; when something changes, write what holds now. A fact's text is never edited: a
correction is a new fact, and the old one points at it. **Recall** and every list return only what is current;
**history** tells what was believed before, and why it changed.

On a fresh install without keys, everything works as it stands in the namespace `default`. With keys, press
*Authorize* and paste one.
"""

TAGS = [
    {"name": "Facts", "description": "Remember, read, replace, forget, restore."},
    {"name": "Recall", "description": "Ask in your own words; get what is still true."},
    {"name": "Subjects", "description": "The addresses of states: their current values, histories and aliases."},
    {"name": "Conflicts", "description": "Facts that contradict each other, and the links between facts."},
    {"name": "Upkeep", "description": "Decay, pruning, consolidation, review: jobs and what they would do."},
    {"name": "Access", "description": "Keys and namespaces."},
    {"name": "Operations", "description": "Health and metrics."},
]


def create_app(settings: Settings) -> FastAPI:
    """The application. It opens its connections when it starts and closes them when it stops."""
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if settings.database_url is None:
            raise ValueError("DATABASE_URL is not set")
        embedder = build_embedder(settings)
        async with connect(
            settings.database_url.get_secret_value(),
            size=settings.pool_size,
            timeout_s=settings.pool_timeout_s,
            statement_timeout_ms=settings.statement_timeout_ms,
            name="palimpsest-api",
        ) as database:
            app.state.service = Service(settings, database, embedder)
            app.state.keys = KeyRing(database, settings.key_cache_s)
            try:
                async with counting(database, read_only=settings.read_only) as app.state.accesses:
                    yield
            finally:
                await embedder.aclose()

    app = FastAPI(
        title="Palimpsest",
        version=version("palimpsest"),
        description=DESCRIPTION,
        openapi_tags=TAGS,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        root_path=settings.root_path,
        lifespan=lifespan,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )
    features = (facts, overview, recall, subjects, conflicts, audit, upkeep, proposals, checkup, access)
    for router in (*features, health.router, telemetry.router(metrics)):
        app.include_router(router)
    problems.install(app)
    docs.install(app)
    batches = {"/v1/facts/batch": BodyRule(settings.max_batch_bytes)}
    edge.install(app, metrics, batches, BodyRule(settings.max_body_bytes))
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """FastAPI's description, with problems in the place of its own error shapes and the version left out of ids."""
    if app.openapi_schema is None:
        app.openapi_schema = problems.declare_problems(FastAPI.openapi(app))
    return app.openapi_schema
