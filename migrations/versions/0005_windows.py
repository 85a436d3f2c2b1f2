"""Indexes of what depends on a moment: facts that begin or end at a time of their own, and retirements undone."""

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
        CREATE INDEX links_undone ON links (namespace, target_id)
            WHERE demoted_at IS NOT NULL AND kind IN ('supersedes', 'amends');
    """)


def downgrade() -> None:
    execute("DROP INDEX links_undone, ledger.facts_ending, ledger.facts_beginning")
