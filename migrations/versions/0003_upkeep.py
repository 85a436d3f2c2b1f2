"""Runs of jobs with what they found, and what decay, pruning and scheduled states need of the database."""

from migrations import execute

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

RUNS = """
CREATE TABLE job_runs (
    namespace text NOT NULL REFERENCES namespaces,
    id uuid NOT NULL,
    kind text NOT NULL
        CHECK (kind IN ('decay', 'prune', 'consolidate', 'review', 'reembed', 'embed_pending', 'rederive')),
    scope text,
    status text NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    dry_run boolean NOT NULL DEFAULT false,
    automatic boolean NOT NULL DEFAULT false,
    parameters jsonb NOT NULL DEFAULT '{}',
    requested_by text NOT NULL,
    request_id text,
    counts jsonb NOT NULL DEFAULT '{}',
    progress jsonb NOT NULL DEFAULT '{}',
    attempts integer NOT NULL DEFAULT 0,
    attempts_allowed integer NOT NULL DEFAULT 5,
    postponed integer NOT NULL DEFAULT 0,
    calls bigint NOT NULL DEFAULT 0,
    tokens bigint NOT NULL DEFAULT 0,
    error text,
    cancel_requested boolean NOT NULL DEFAULT false,
    lease_until timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at timestamptz,
    finished_at timestamptz,
    PRIMARY KEY (namespace, id)
) WITH (fillfactor = 80);
CREATE INDEX job_runs_by_age ON job_runs (namespace, created_at DESC, id DESC);
-- What the schedule asks for is asked once, however many workers keep the schedule and however long a run takes.
CREATE UNIQUE INDEX job_runs_one_automatic ON job_runs (namespace, kind, scope) NULLS NOT DISTINCT
    WHERE automatic AND status IN ('queued', 'running');

-- No foreign key: a list of 100,000 would be checked row by row. It is dropped together with its run.
CREATE TABLE job_findings (
    namespace text NOT NULL,
    run_id uuid NOT NULL,
    position bigint GENERATED ALWAYS AS IDENTITY,
    action text NOT NULL,
    scope text,
    fact_id uuid,
    other_id uuid,
    rule text,
    detail jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (namespace, run_id, position)
);

-- Only states wait for their time: when it comes they retire what stood at their address.
CREATE INDEX facts_scheduled ON ledger.facts (valid_from)
    WHERE kind = 'state' AND superseded_by IS NULL AND valid_from > recorded_at;
"""

WEIGHT = """
-- Half of the weight is gone after each half-life without access. A thousand half-lives are as good as for ever,
-- and beyond them exp() would fail with an underflow.
CREATE FUNCTION decayed_weight(last_used timestamptz, half_life_h double precision, moment timestamptz)
RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN exp(-ln(2.0::float8) * least(greatest(
    extract(epoch FROM moment - last_used)::float8 / 3600.0 / half_life_h, 0.0), 1000.0));
REVOKE EXECUTE ON FUNCTION decayed_weight FROM PUBLIC;
GRANT EXECUTE ON FUNCTION decayed_weight TO memory_api, memory_worker;
"""

# One statement says what may go, for the dry run, for the run, and for the last look under locks.
PRUNABLE = """
CREATE FUNCTION prunable_facts(
    in_namespace text, in_scope text, half_life_h double precision, below double precision, min_age interval,
    among uuid[]
) RETURNS TABLE (
    id uuid, chain_id uuid, scope text, kind text, superseded_by uuid, recorded_at timestamptz,
    retired_at timestamptz, retired_as text, last_used_at timestamptz, weight double precision
) LANGUAGE sql STABLE AS $$
    WITH RECURSIVE eligible AS MATERIALIZED (
        SELECT f.id, f.chain_id, f.scope, f.kind, f.superseded_by, f.recorded_at, f.retired_at, f.retired_as,
            coalesce(u.last_accessed_at, f.recorded_at) AS last_used_at,
            decayed_weight(coalesce(u.last_accessed_at, f.recorded_at), half_life_h, now()) AS weight
        FROM fact_use AS u
        JOIN facts_history AS f ON f.namespace = u.namespace AND f.id = u.fact_id
        WHERE u.namespace = in_namespace AND NOT u.pinned
            AND (among IS NULL OR u.fact_id = ANY (among))
            AND (in_scope IS NULL OR f.scope = in_scope)
            AND decayed_weight(coalesce(u.last_accessed_at, f.recorded_at), half_life_h, now()) < below
            AND f.recorded_at < now() - min_age
            AND f.valid_from <= now()
            AND (f.retired_at IS NULL OR f.retired_at < now() - min_age)
            AND (u.observed_count = 1 OR u.last_observed_at < now() - min_age)
            AND NOT EXISTS (
                SELECT FROM links AS l
                WHERE l.namespace = in_namespace AND l.kind = 'contradicts'
                    AND l.resolved_at IS NULL AND l.demoted_at IS NULL
                    AND (l.source_id = f.id OR l.target_id = f.id))
    ),
    -- What a fact needs to stay: whoever points at it as its successor, and a digest that was made from it.
    held AS (
        SELECT e.id, older.id AS by_id
        FROM eligible AS e
        JOIN facts_history AS older ON older.namespace = in_namespace AND older.superseded_by = e.id
        UNION ALL
        SELECT e.id, digest.id
        FROM eligible AS e
        JOIN links AS l ON l.namespace = in_namespace AND l.target_id = e.id AND l.kind = 'derived_from'
        JOIN facts_history AS digest ON digest.namespace = in_namespace AND digest.id = l.source_id
            AND digest.superseded_by IS NULL
    ),
    kept AS (
        SELECT h.id FROM held AS h WHERE NOT EXISTS (SELECT FROM eligible AS e WHERE e.id = h.by_id)
        UNION
        SELECT h.id FROM kept AS k JOIN held AS h ON h.by_id = k.id
    )
    SELECT * FROM eligible AS e WHERE NOT EXISTS (SELECT FROM kept AS k WHERE k.id = e.id)
$$;
REVOKE EXECUTE ON FUNCTION prunable_facts FROM PUBLIC;
GRANT EXECUTE ON FUNCTION prunable_facts TO memory_api, memory_worker;
"""

PRUNE = """
-- The only deletion besides an erasure. Locks come first, so that whatever was counted, linked or written
-- meanwhile is seen by the same rule once more. Every removed fact leaves a stone without its words.
CREATE FUNCTION prune_facts(
    in_namespace text, in_scope text, half_life_h double precision, below double precision, min_age interval,
    among uuid[], in_run uuid, in_rule text
) RETURNS TABLE (
    id uuid, chain_id uuid, scope text, kind text, superseded_by uuid, recorded_at timestamptz,
    retired_at timestamptz, retired_as text, last_used_at timestamptz, weight double precision
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF among IS NULL OR cardinality(among) > 10000 THEN
        RAISE EXCEPTION 'name at most 10000 facts' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM FROM ledger.facts AS f
        WHERE f.namespace = in_namespace AND f.id = ANY (among) ORDER BY f.id FOR UPDATE;
    PERFORM FROM fact_use AS u
        WHERE u.namespace = in_namespace AND u.fact_id = ANY (among) ORDER BY u.fact_id FOR UPDATE;
    -- Not as an option of the function: only a superuser may give one a setting that no module defines.
    PERFORM set_config('palimpsest.removing', 'on', true);
    -- A digest that goes with its sources: what follows their removal must not find it to change it once more.
    UPDATE ledger.facts AS d SET stale_at = now()
        WHERE d.namespace = in_namespace AND d.kind = 'digest' AND d.stale_at IS NULL AND d.id IN (
            SELECT p.id FROM prunable_facts(in_namespace, in_scope, half_life_h, below, min_age, among) AS p);
    RETURN QUERY
    WITH chosen AS MATERIALIZED (
        SELECT * FROM prunable_facts(in_namespace, in_scope, half_life_h, below, min_age, among)
    ), stones AS (
        INSERT INTO audit_events (namespace, actor, action, scope, fact_id, other_id, detail)
        SELECT in_namespace, 'worker', 'pruned', c.scope, c.id, c.superseded_by, jsonb_build_object(
            'rule', in_rule, 'job', in_run, 'chain_id', c.chain_id, 'kind', c.kind, 'weight', c.weight,
            'recorded_at', c.recorded_at, 'last_used_at', c.last_used_at, 'retired_at', c.retired_at,
            'retired_as', c.retired_as)
        FROM chosen AS c
    ), ends AS (
        DELETE FROM chains AS h USING chosen AS c WHERE h.namespace = in_namespace AND h.head_id = c.id
    ), gone AS (
        DELETE FROM ledger.facts AS f USING chosen AS c WHERE f.namespace = in_namespace AND f.id = c.id
        RETURNING f.id
    )
    SELECT c.* FROM chosen AS c JOIN gone AS g ON g.id = c.id;
    PERFORM set_config('palimpsest.removing', 'off', true);
END
$$;
REVOKE EXECUTE ON FUNCTION prune_facts FROM PUBLIC;
GRANT EXECUTE ON FUNCTION prune_facts TO memory_worker;
"""

GRANTS = """
GRANT SELECT, INSERT ON job_runs TO memory_api;
GRANT UPDATE (status, automatic, attempts_allowed, error, cancel_requested, finished_at) ON job_runs TO memory_api;
GRANT SELECT ON job_findings TO memory_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON job_runs, job_findings TO memory_worker;
"""


def upgrade() -> None:
    execute("SET LOCAL lock_timeout = '10s'")
    for part in (RUNS, WEIGHT, PRUNABLE, PRUNE, GRANTS):
        execute(part)


def downgrade() -> None:
    execute("DROP FUNCTION prune_facts, prunable_facts, decayed_weight")
    execute("DROP INDEX ledger.facts_scheduled")
    execute("DROP TABLE job_findings, job_runs")
