"""Runs the migrations as the owner, all of them in one transaction."""

from alembic import context
from sqlalchemy import Connection

from app.facts.model import METADATA


def include_object(obj: object, name: str | None, kind: str, reflected: bool, compare_to: object) -> bool:
    """Keep views, and the tables of the job queue, out of autogenerate's comparison."""
    if kind == "table" and reflected and (name or "").startswith("procrastinate_"):
        return False
    return not getattr(obj, "info", {}).get("is_view", False)


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=METADATA, include_object=include_object)
    context.run_migrations()


run(context.config.attributes["connection"])
