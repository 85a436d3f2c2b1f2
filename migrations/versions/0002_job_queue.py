"""The tables and functions of the job queue, as procrastinate ships them."""

from procrastinate.schema import SchemaManager

from migrations import execute

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# The API only defers jobs and reads how they fare; taking and finishing them is the worker's.
GRANTS = """
GRANT SELECT, INSERT ON procrastinate_jobs, procrastinate_events, procrastinate_periodic_defers TO memory_api;
GRANT SELECT, INSERT, UPDATE, DELETE
    ON procrastinate_jobs, procrastinate_events, procrastinate_periodic_defers, procrastinate_workers
    TO memory_worker;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO memory_api, memory_worker;
"""

REMOVE = """
DO $$
DECLARE
    made record;
BEGIN
    DROP TABLE procrastinate_events, procrastinate_periodic_defers, procrastinate_jobs, procrastinate_workers
        CASCADE;
    FOR made IN SELECT oid::regprocedure AS name FROM pg_proc
        WHERE proname LIKE 'procrastinate\\_%' AND pronamespace = 'public'::regnamespace
    LOOP
        EXECUTE 'DROP FUNCTION ' || made.name || ' CASCADE';
    END LOOP;
    FOR made IN SELECT typname AS name FROM pg_type
        WHERE typname LIKE 'procrastinate\\_%' AND typnamespace = 'public'::regnamespace AND typtype IN ('e', 'c')
    LOOP
        EXECUTE 'DROP TYPE IF EXISTS ' || quote_ident(made.name) || ' CASCADE';
    END LOOP;
END
$$
"""


def upgrade() -> None:
    execute("SET LOCAL lock_timeout = '10s'")
    execute(SchemaManager.get_schema())
    execute(GRANTS)


def downgrade() -> None:
    execute(REMOVE)
