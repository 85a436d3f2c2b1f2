"""`palimpsest migrate`"""

from rich.console import Console

from app import schema
from app.cli.databases import DataDir, opened_for_migration, read_settings


def migrate(data_dir: DataDir = None) -> None:
    """Bring the database's schema up to date; several at once wait for each other.

    As MIGRATION_DATABASE_URL says, or in the embedded Postgres.
    """
    with opened_for_migration(read_settings(data_dir=data_dir)) as owner_url:
        before, after = schema.migrate(owner_url)
    if before == after:
        Console().print(f"The schema is up to date: {after}", highlight=False)
    else:
        Console().print(f"The schema was migrated: {before or 'empty'} → {after}", highlight=False)
