"""What a language model proposed and what became of it, and which facts it has seen."""

from migrations import execute

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE proposals (
    namespace text NOT NULL REFERENCES namespaces,
    id uuid NOT NULL,
    job_id uuid NOT NULL,
    scope text NOT NULL,
    kind text NOT NULL
        CHECK (kind IN ('digest', 'contradiction', 'retirement', 'classification', 'demotion', 'unreadable')),
    fact_ids uuid[] NOT NULL,
    link_id uuid,
    content jsonb NOT NULL DEFAULT '{}',
    rule text NOT NULL,
    model text,
    call_id uuid,
    tokens bigint NOT NULL DEFAULT 0,
    verdict text NOT NULL CHECK (verdict IN ('applied', 'refused', 'waiting', 'rejected')),
    reason text,
    result_id uuid,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    decided_at timestamptz,
    decided_by text,
    PRIMARY KEY (namespace, id)
);
CREATE INDEX proposals_by_job ON proposals (namespace, job_id, id);
CREATE INDEX proposals_by_fact ON proposals USING gin (fact_ids);
-- A retirement is put up for demotion once, however often it is reviewed.
CREATE UNIQUE INDEX proposals_one_demotion ON proposals (namespace, link_id)
    WHERE kind = 'demotion' AND verdict = 'waiting';

-- Which facts the model was asked about, by which prompt. Holds no text.
CREATE TABLE consolidation_marks (
    namespace text NOT NULL,
    fact_id uuid NOT NULL,
    prompt_version text NOT NULL,
    failures integer NOT NULL DEFAULT 0,
    done_at timestamptz,
    PRIMARY KEY (namespace, fact_id),
    FOREIGN KEY (namespace, fact_id) REFERENCES ledger.facts (namespace, id) ON DELETE CASCADE
);

CREATE INDEX facts_stale ON ledger.facts (namespace, scope, id)
    WHERE stale_at IS NOT NULL AND superseded_by IS NULL;
"""

TRIGGER = """
-- What was proposed over a fact repeats its words, so it loses them with the fact; and a digest that was made from
-- a removed fact is no longer current.
CREATE FUNCTION ledger.follow_removal() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE proposals SET content = '{}',
        verdict = CASE WHEN verdict = 'waiting' THEN 'refused' ELSE verdict END,
        reason = CASE WHEN verdict = 'waiting' THEN 'a fact was removed' ELSE reason END
        WHERE fact_ids @> ARRAY[OLD.id] AND namespace = OLD.namespace;
    UPDATE ledger.facts AS digest SET stale_at = now()
        FROM links AS l
        WHERE l.namespace = OLD.namespace AND l.target_id = OLD.id AND l.kind = 'derived_from'
            AND digest.namespace = l.namespace AND digest.id = l.source_id
            AND digest.kind = 'digest' AND digest.stale_at IS NULL AND digest.superseded_by IS NULL;
    RETURN OLD;
END
$$;
CREATE TRIGGER facts_follow_removal BEFORE DELETE ON ledger.facts
    FOR EACH ROW EXECUTE FUNCTION ledger.follow_removal();
"""

GRANTS = """
GRANT SELECT ON proposals, consolidation_marks TO memory_api;
GRANT UPDATE (verdict, reason, result_id, decided_at, decided_by, content) ON proposals TO memory_api;
GRANT SELECT, INSERT, UPDATE ON proposals, consolidation_marks TO memory_worker;
"""


def upgrade() -> None:
    execute("SET LOCAL lock_timeout = '10s'")
    for part in (TABLES, TRIGGER, GRANTS):
        execute(part)


def downgrade() -> None:
    execute("DROP TRIGGER facts_follow_removal ON ledger.facts")
    execute("DROP FUNCTION ledger.follow_removal")
    execute("DROP INDEX ledger.facts_stale")
    execute("DROP TABLE consolidation_marks, proposals")
