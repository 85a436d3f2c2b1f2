"""Indexes of the facts that begin or end at a time of their own, so that recall counts those out of it at once."""

from migrations import execute

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    execute("SET LOCAL lock_timeout = '10s'")
    execute("""
        CREATE INDEX facts_beginning ON ledger.facts (namespace, valid_from)
            WHERE superseded_by IS NULL AND valid_from > recorded_at;
        CREATE INDEX facts_ending ON ledger.facts (namespace, valid_to)
            WHERE superseded_by IS NULL AND valid_to IS NOT NULL;
    """)


def downgrade() -> None:
    execute("DROP INDEX ledger.facts_ending, ledger.facts_beginning")
