"""Makes facts older than the test, behind the back of the service."""

from collections.abc import Iterable

import psycopg

from app.embedded import Cluster


def age(database: Cluster, ids: Iterable[str], days: float) -> None:
    """Move everything that happened to these facts so many days into the past."""
    with psycopg.connect(database.superuser_dsn, autocommit=True) as connection:
        # Facts never change; only the replication role passes by the triggers that see to it.
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            """
            UPDATE ledger.facts SET
                recorded_at = recorded_at - %(by)s::interval, observed_at = observed_at - %(by)s::interval,
                valid_from = valid_from - %(by)s::interval, retired_at = retired_at - %(by)s::interval,
                ended_at = ended_at - %(by)s::interval
            WHERE id = ANY (%(ids)s::uuid[])
            """,
            {"by": f"{days} days", "ids": list(ids)},
        )
        connection.execute(
            """
            UPDATE fact_use SET
                last_accessed_at = last_accessed_at - %(by)s::interval,
                last_observed_at = last_observed_at - %(by)s::interval
            WHERE fact_id = ANY (%(ids)s::uuid[])
            """,
            {"by": f"{days} days", "ids": list(ids)},
        )
