"""What keeps the worker's rounds short: questions left unanswered by index, and no index of a model that is gone."""

from migrations import execute

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

OPEN_MARKS = """
CREATE INDEX consolidation_marks_open ON consolidation_marks (namespace, fact_id) WHERE done_at IS NULL;
"""

FORGET_PROFILE = """
-- The other end of register_embedding_profile: once no fact has a vector of a model any more, its indexes would only
-- cost. False where it is still in use or not known. Dropping waits for every reader and writer of the facts, and
-- holds up those that come after it, so callers set a lock_timeout.
CREATE FUNCTION forget_embedding_profile(profile text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    suffix text := left(encode(sha256(convert_to(profile, 'UTF8')), 'hex'), 16);
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('palimpsest.embedding_profile', 0));
    IF EXISTS (SELECT FROM ledger.facts WHERE embedding_profile = profile) THEN
        RETURN false;
    END IF;
    DELETE FROM embedding_profiles WHERE name = profile;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    EXECUTE format('DROP INDEX IF EXISTS ledger.%I, ledger.%I',
        'facts_vector_' || suffix, 'facts_echo_vector_' || suffix);
    RETURN true;
END
$$;
REVOKE EXECUTE ON FUNCTION forget_embedding_profile FROM PUBLIC;
GRANT EXECUTE ON FUNCTION forget_embedding_profile TO memory_worker;
"""


def upgrade() -> None:
    execute("SET LOCAL lock_timeout = '10s'")
    for part in (OPEN_MARKS, FORGET_PROFILE):
        execute(part)


def downgrade() -> None:
    execute("DROP FUNCTION forget_embedding_profile")
    execute("DROP INDEX consolidation_marks_open")
