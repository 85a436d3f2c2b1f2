"""The schema's history. Every revision is plain SQL, run by the owner."""

from alembic import op


def execute(sql: str) -> None:
    """Run a script of SQL as it stands; colons and percent signs in it are SQL, not parameters."""
    op.get_bind().connection.driver_connection.execute(sql)  # type: ignore[union-attr]
