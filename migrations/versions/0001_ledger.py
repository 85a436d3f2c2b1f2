"""The ledger of facts, the views that are its only doors, and what stands around it."""

from migrations import execute

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

FACT_COLUMNS = """
    namespace, id, chain_id, scope, agent, kind, subject, content, content_hash,
    source_tier, source_ref, source_quote, confidence, tags, metadata,
    valid_from, valid_to, observed_at, recorded_at,
    superseded_by, retired_at, retired_as, ended_at, stale_at,
    embedding_profile, embedding, terms, term_length
"""

# A fact is born current, so the columns that end its life are not among those that may be inserted.
INSERTABLE = """
    namespace, id, chain_id, scope, agent, kind, subject, content, content_hash,
    source_tier, source_ref, source_quote, confidence, tags, metadata,
    valid_from, valid_to, observed_at, recorded_at,
    embedding_profile, embedding, terms, term_length
"""

UPDATABLE = """
    chain_id, tags, superseded_by, retired_at, retired_as, ended_at, stale_at, embedding_profile, embedding
"""

ROLES = """
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['memory_api', 'memory_worker'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
        END IF;
    END LOOP;
END
$$
"""

NAMESPACES = """
CREATE TABLE namespaces (
    name text PRIMARY KEY CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'),
    policy text NOT NULL DEFAULT 'auto_key'
        CHECK (policy IN ('explicit', 'suggest', 'auto_key', 'auto_inferred')),
    require_evidence boolean NOT NULL DEFAULT false,
    closed_vocabulary boolean NOT NULL DEFAULT false,
    consolidate_may_retire boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);
-- What the development mode works in.
INSERT INTO namespaces (name) VALUES ('default');
CREATE TABLE api_keys (
    id uuid PRIMARY KEY,
    namespace text NOT NULL REFERENCES namespaces,
    name text NOT NULL,
    prefix text NOT NULL UNIQUE,
    secret_hash bytea NOT NULL,
    roles text[] NOT NULL,
    read_scopes text[] NOT NULL,
    write_scopes text[] NOT NULL,
    max_tier text NOT NULL CHECK (max_tier IN ('system', 'user', 'observed', 'inferred')),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz
);
CREATE INDEX api_keys_by_namespace ON api_keys (namespace, created_at, id);
CREATE TABLE subjects (
    namespace text NOT NULL REFERENCES namespaces,
    subject text NOT NULL,
    description text,
    registered_at timestamptz NOT NULL DEFAULT now(),
    registered_by text NOT NULL,
    PRIMARY KEY (namespace, subject)
);
CREATE TABLE subject_aliases (
    namespace text NOT NULL,
    alias text NOT NULL,
    subject text NOT NULL,
    PRIMARY KEY (namespace, alias),
    FOREIGN KEY (namespace, subject) REFERENCES subjects (namespace, subject) ON DELETE CASCADE
);
CREATE TABLE embedding_profiles (
    name text PRIMARY KEY CHECK (name ~ '^[a-z0-9._-]{1,100}$'),
    dimensions integer NOT NULL CHECK (dimensions BETWEEN 1 AND 4000),
    registered_at timestamptz NOT NULL DEFAULT now()
);
"""

FACTS = """
CREATE SCHEMA ledger;
CREATE TABLE ledger.facts (
    namespace text NOT NULL REFERENCES namespaces,
    id uuid NOT NULL,
    chain_id uuid NOT NULL,
    scope text NOT NULL,
    agent text,
    kind text NOT NULL CHECK (kind IN ('state', 'event', 'note', 'digest', 'retraction')),
    subject text CHECK (subject <> ''),
    content text NOT NULL CHECK (content <> ''),
    content_hash bytea NOT NULL CHECK (octet_length(content_hash) = 32),
    source_tier text NOT NULL CHECK (source_tier IN ('system', 'user', 'observed', 'inferred')),
    source_ref text,
    source_quote text,
    confidence double precision CHECK (confidence BETWEEN 0 AND 1),
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    valid_from timestamptz NOT NULL,
    valid_to timestamptz,
    observed_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    superseded_by uuid,
    retired_at timestamptz,
    retired_as text CHECK (retired_as IN ('superseded', 'amended', 'forgotten')),
    ended_at timestamptz,
    stale_at timestamptz,
    embedding_profile text,
    embedding vector,
    terms tsvector NOT NULL,
    term_length integer NOT NULL,
    PRIMARY KEY (namespace, id),
    FOREIGN KEY (namespace, superseded_by) REFERENCES ledger.facts (namespace, id),
    CONSTRAINT facts_not_its_own_successor CHECK (superseded_by <> id),
    CONSTRAINT facts_retired_whole CHECK (
        num_nonnulls(superseded_by, retired_at, retired_as, ended_at) IN (0, 4)),
    CONSTRAINT facts_state_has_subject CHECK (kind <> 'state' OR subject IS NOT NULL),
    CONSTRAINT facts_embedding_whole CHECK ((embedding IS NULL) OR embedding_profile IS NOT NULL),
    CONSTRAINT facts_window CHECK (valid_to > valid_from)
) WITH (
    fillfactor = 90,
    -- The planner must know a store that was just filled, or it walks a scope where an index would do.
    autovacuum_analyze_threshold = 200, autovacuum_analyze_scale_factor = 0.05
);

-- A text stands current only once at an address. An event may happen again, and a fact with a window of its own
-- (scheduled or ending) may be followed by the same text in another window, so those are left to the write path.
CREATE UNIQUE INDEX facts_one_current_text ON ledger.facts
    (namespace, scope, coalesce(subject, ''), content_hash)
    WHERE superseded_by IS NULL AND valid_to IS NULL AND valid_from <= recorded_at
        AND kind NOT IN ('event', 'retraction');
CREATE INDEX facts_by_recency ON ledger.facts (namespace, recorded_at DESC, id DESC)
    WHERE superseded_by IS NULL;
CREATE INDEX facts_by_scope ON ledger.facts (namespace, scope, recorded_at DESC, id DESC)
    WHERE superseded_by IS NULL;
CREATE INDEX facts_by_subject ON ledger.facts (namespace, subject, scope, recorded_at DESC, id DESC)
    WHERE subject IS NOT NULL;
CREATE INDEX facts_by_text ON ledger.facts (namespace, content_hash, scope);
CREATE INDEX facts_by_chain ON ledger.facts (namespace, chain_id, recorded_at, id);
CREATE INDEX facts_by_successor ON ledger.facts (namespace, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX facts_without_embedding ON ledger.facts (namespace, recorded_at, id)
    WHERE embedding_profile IS NULL AND kind <> 'retraction';
CREATE INDEX facts_words ON ledger.facts USING gin (terms) WITH (fastupdate = off) WHERE superseded_by IS NULL;
CREATE INDEX facts_echo_words ON ledger.facts USING gin (terms) WITH (fastupdate = off)
    WHERE superseded_by IS NOT NULL;
"""

AROUND = """
CREATE TABLE chains (
    namespace text NOT NULL,
    chain_id uuid NOT NULL,
    head_id uuid NOT NULL,
    PRIMARY KEY (namespace, chain_id),
    FOREIGN KEY (namespace, head_id) REFERENCES ledger.facts (namespace, id)
);
CREATE INDEX chains_by_head ON chains (namespace, head_id);

CREATE TABLE links (
    namespace text NOT NULL,
    id uuid NOT NULL,
    source_id uuid NOT NULL,
    target_id uuid NOT NULL,
    kind text NOT NULL
        CHECK (kind IN ('supersedes', 'amends', 'derived_from', 'contradicts', 'relates_to', 'reasserts')),
    reason text,
    evidence text,
    rule text,
    conflict text,
    detail jsonb NOT NULL DEFAULT '{}',
    drawn_by text NOT NULL,
    drawn_at timestamptz NOT NULL,
    demoted_at timestamptz,
    demoted_by text,
    demotion_reason text,
    resolved_at timestamptz,
    resolved_by text,
    resolution text,
    PRIMARY KEY (namespace, id),
    FOREIGN KEY (namespace, source_id) REFERENCES ledger.facts (namespace, id) ON DELETE CASCADE,
    FOREIGN KEY (namespace, target_id) REFERENCES ledger.facts (namespace, id) ON DELETE CASCADE,
    CONSTRAINT links_not_to_itself CHECK (source_id <> target_id),
    CONSTRAINT links_retire_with_reason CHECK (kind NOT IN ('supersedes', 'amends') OR reason IS NOT NULL)
);
CREATE UNIQUE INDEX links_once ON links (namespace, source_id, target_id, kind)
    WHERE demoted_at IS NULL AND resolved_at IS NULL;
CREATE INDEX links_by_target ON links (namespace, target_id, kind);
CREATE INDEX links_by_source ON links (namespace, source_id, kind);
CREATE INDEX links_open_conflicts ON links (namespace, drawn_at DESC, id DESC)
    WHERE kind = 'contradicts' AND resolved_at IS NULL AND demoted_at IS NULL;

CREATE TABLE fact_use (
    namespace text NOT NULL,
    fact_id uuid NOT NULL,
    weight double precision NOT NULL DEFAULT 1,
    access_count bigint NOT NULL DEFAULT 0,
    last_accessed_at timestamptz,
    observed_count bigint NOT NULL DEFAULT 1,
    last_observed_at timestamptz NOT NULL,
    pinned boolean NOT NULL DEFAULT false,
    PRIMARY KEY (namespace, fact_id),
    FOREIGN KEY (namespace, fact_id) REFERENCES ledger.facts (namespace, id) ON DELETE CASCADE
) WITH (fillfactor = 70);

CREATE TABLE observations (
    namespace text NOT NULL,
    id uuid NOT NULL,
    fact_id uuid NOT NULL,
    agent text,
    source_tier text NOT NULL,
    source_ref text,
    source_quote text,
    confidence double precision,
    tags text[] NOT NULL,
    metadata jsonb NOT NULL,
    observed_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    PRIMARY KEY (namespace, id),
    FOREIGN KEY (namespace, fact_id) REFERENCES ledger.facts (namespace, id) ON DELETE CASCADE
);
CREATE INDEX observations_by_fact ON observations (namespace, fact_id, recorded_at, id);

CREATE TABLE audit_events (
    namespace text NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),
    actor text NOT NULL,
    action text NOT NULL,
    scope text,
    fact_id uuid,
    other_id uuid,
    request_id text,
    detail jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (namespace, id)
);
CREATE INDEX audit_events_by_fact ON audit_events (namespace, fact_id, id);

CREATE TABLE idempotency_keys (
    namespace text NOT NULL,
    route text NOT NULL,
    key text NOT NULL,
    request_hash bytea NOT NULL,
    status integer,
    response jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (namespace, route, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- Document frequencies of the words, appended by every write and folded by the worker: writers never wait for one
-- another on a common word, and the sum is exact at every moment. The empty term counts the facts of the scope.
CREATE TABLE term_counts (
    namespace text NOT NULL,
    scope text NOT NULL,
    term text NOT NULL,
    facts bigint NOT NULL,
    tokens bigint NOT NULL
) WITH (
    autovacuum_analyze_threshold = 2000, autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0.05
);
CREATE INDEX term_counts_by_term ON term_counts (namespace, term, scope) INCLUDE (facts, tokens);
"""

TRIGGERS = """
CREATE FUNCTION ledger.keep_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.namespace, NEW.id, NEW.scope, NEW.agent, NEW.kind, NEW.subject, NEW.content, NEW.content_hash,
        NEW.source_tier, NEW.source_ref, NEW.source_quote, NEW.confidence, NEW.metadata,
        NEW.valid_from, NEW.valid_to, NEW.observed_at, NEW.recorded_at)
       IS DISTINCT FROM
       (OLD.namespace, OLD.id, OLD.scope, OLD.agent, OLD.kind, OLD.subject, OLD.content, OLD.content_hash,
        OLD.source_tier, OLD.source_ref, OLD.source_quote, OLD.confidence, OLD.metadata,
        OLD.valid_from, OLD.valid_to, OLD.observed_at, OLD.recorded_at)
    THEN
        RAISE EXCEPTION 'a fact is never edited: append a new one that replaces it'
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.superseded_by IS NOT NULL AND NEW.superseded_by IS NOT NULL
        AND NEW.superseded_by <> OLD.superseded_by
    THEN
        RAISE EXCEPTION 'a retired fact keeps its successor: restore it first'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER facts_keep_immutable BEFORE UPDATE ON ledger.facts
    FOR EACH ROW EXECUTE FUNCTION ledger.keep_immutable();

CREATE FUNCTION ledger.refuse_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('palimpsest.removing', true), '') <> 'on' THEN
        RAISE EXCEPTION 'rows of % are never removed', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN OLD;
END
$$;
CREATE TRIGGER facts_refuse_removal BEFORE DELETE ON ledger.facts
    FOR EACH ROW EXECUTE FUNCTION ledger.refuse_removal();
CREATE FUNCTION ledger.refuse_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never removed', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER facts_refuse_truncate BEFORE TRUNCATE ON ledger.facts
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_truncate();

CREATE FUNCTION ledger.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER audit_events_refuse_change BEFORE UPDATE OR DELETE ON audit_events
    FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change();
CREATE TRIGGER audit_events_refuse_truncate BEFORE TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();

CREATE FUNCTION ledger.count_terms(fact ledger.facts, sign integer) RETURNS void
LANGUAGE sql SET search_path = public, pg_temp AS $$
    INSERT INTO public.term_counts (namespace, scope, term, facts, tokens)
    SELECT fact.namespace, fact.scope, term, sign, CASE WHEN term = '' THEN sign * fact.term_length ELSE 0 END
    FROM unnest(tsvector_to_array(fact.terms) || ARRAY['']) AS term
$$;

CREATE FUNCTION ledger.count_added() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO public.term_counts (namespace, scope, term, facts, tokens)
    SELECT f.namespace, f.scope, term, count(*), sum(CASE WHEN term = '' THEN f.term_length ELSE 0 END)
    FROM added AS f, unnest(tsvector_to_array(f.terms) || ARRAY['']) AS term
    WHERE f.kind <> 'retraction' AND f.superseded_by IS NULL
    GROUP BY f.namespace, f.scope, term;
    RETURN NULL;
END
$$;
CREATE TRIGGER facts_count_added AFTER INSERT ON ledger.facts
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ledger.count_added();

-- A digest must not outlive its sources: it leaves facts_active in the transaction that retires one of them.
CREATE FUNCTION ledger.follow_retirement() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF NEW.kind <> 'retraction' THEN
        PERFORM ledger.count_terms(NEW, CASE WHEN NEW.superseded_by IS NULL THEN 1 ELSE -1 END);
    END IF;
    IF NEW.superseded_by IS NOT NULL THEN
        UPDATE ledger.facts AS digest SET stale_at = NEW.retired_at
        FROM public.links AS l
        WHERE l.namespace = NEW.namespace AND l.target_id = NEW.id AND l.kind = 'derived_from'
            AND digest.namespace = l.namespace AND digest.id = l.source_id
            AND digest.kind = 'digest' AND digest.stale_at IS NULL;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER facts_follow_retirement AFTER UPDATE OF superseded_by ON ledger.facts
    FOR EACH ROW WHEN (OLD.superseded_by IS DISTINCT FROM NEW.superseded_by)
    EXECUTE FUNCTION ledger.follow_retirement();

CREATE FUNCTION ledger.count_removed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF OLD.kind <> 'retraction' AND OLD.superseded_by IS NULL THEN
        PERFORM ledger.count_terms(OLD, -1);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER facts_count_removed AFTER DELETE ON ledger.facts
    FOR EACH ROW EXECUTE FUNCTION ledger.count_removed();
"""

FUNCTIONS = """
-- Each embedding model has indexes of its own, so vectors of two models never meet in one.
CREATE FUNCTION register_embedding_profile(profile text, size integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    kept integer;
    stored text := CASE WHEN size > 2000 THEN 'halfvec' ELSE 'vector' END;
    suffix text := left(encode(sha256(convert_to(profile, 'UTF8')), 'hex'), 16);
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('palimpsest.embedding_profile', 0));
    SELECT dimensions INTO kept FROM embedding_profiles WHERE name = profile;
    IF kept = size THEN
        RETURN;
    ELSIF kept IS NOT NULL THEN
        RAISE EXCEPTION 'embedding profile % has % dimensions, not %', profile, kept, size
            USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO embedding_profiles (name, dimensions) VALUES (profile, size);
    EXECUTE format(
        'CREATE INDEX %I ON ledger.facts USING hnsw ((embedding::%s(%s)) %s_cosine_ops) '
        'WHERE superseded_by IS NULL AND embedding_profile = %L',
        'facts_vector_' || suffix, stored, size, stored, profile);
    EXECUTE format(
        'CREATE INDEX %I ON ledger.facts USING hnsw ((embedding::%s(%s)) %s_cosine_ops) '
        'WHERE superseded_by IS NOT NULL AND embedding_profile = %L',
        'facts_echo_vector_' || suffix, stored, size, stored, profile);
END
$$;
REVOKE EXECUTE ON FUNCTION register_embedding_profile FROM PUBLIC;
GRANT EXECUTE ON FUNCTION register_embedding_profile TO memory_api, memory_worker;

-- Folds the appended document frequencies, at most as many rows at once as it is told. Readers see the same sums
-- before and after, since both sides of the fold are one statement.
CREATE FUNCTION fold_term_counts(most integer) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    WITH crowded AS (
        SELECT namespace, scope, term FROM term_counts
        GROUP BY namespace, scope, term HAVING count(*) > 1
        ORDER BY count(*) DESC LIMIT most
    ), taken AS (
        DELETE FROM term_counts AS t
        WHERE t.ctid IN (
            SELECT c.ctid FROM term_counts AS c JOIN crowded USING (namespace, scope, term)
            FOR UPDATE OF c SKIP LOCKED)
        RETURNING t.namespace, t.scope, t.term, t.facts, t.tokens
    ), folded AS (
        INSERT INTO term_counts (namespace, scope, term, facts, tokens)
        SELECT namespace, scope, term, sum(facts), sum(tokens) FROM taken
        GROUP BY namespace, scope, term
        HAVING sum(facts) <> 0 OR sum(tokens) <> 0
        RETURNING 1
    )
    SELECT count(*) FROM taken
$$;
REVOKE EXECUTE ON FUNCTION fold_term_counts FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fold_term_counts TO memory_worker;
"""

VIEWS = f"""
-- What held when it was recorded holds now, even if the clock was set back in between.
CREATE VIEW facts_active AS
SELECT {FACT_COLUMNS}
FROM ledger.facts
WHERE superseded_by IS NULL AND kind <> 'retraction' AND stale_at IS NULL
    AND valid_from <= greatest(now(), recorded_at) AND (valid_to IS NULL OR valid_to > now());

CREATE VIEW facts_history AS
SELECT {FACT_COLUMNS},
    CASE
        WHEN superseded_by IS NOT NULL THEN retired_as
        WHEN stale_at IS NOT NULL THEN 'stale'
        WHEN valid_from > greatest(now(), recorded_at) THEN 'scheduled'
        WHEN valid_to <= now() THEN 'expired'
        ELSE 'active'
    END AS status
FROM ledger.facts;

CREATE VIEW fact_echoes AS
SELECT f.namespace, f.id, f.scope, c.head_id, f.retired_at, f.retired_as, f.source_tier, f.kind,
    f.embedding_profile, f.embedding, f.terms, f.term_length
FROM ledger.facts AS f
JOIN chains AS c ON c.namespace = f.namespace AND c.chain_id = f.chain_id
WHERE f.superseded_by IS NOT NULL AND f.kind <> 'retraction';
"""

GRANTS = f"""
REVOKE ALL ON SCHEMA ledger FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO memory_api, memory_worker;
GRANT SELECT ON alembic_version, facts_active, facts_history, fact_echoes, term_counts, embedding_profiles
    TO memory_api, memory_worker;
GRANT INSERT ({INSERTABLE}) ON facts_active TO memory_api, memory_worker;
GRANT UPDATE ({UPDATABLE}) ON facts_active, facts_history TO memory_api, memory_worker;
GRANT SELECT, INSERT ON chains, links, fact_use, observations, audit_events, idempotency_keys,
    namespaces, api_keys, subjects, subject_aliases TO memory_api, memory_worker;
GRANT UPDATE (head_id) ON chains TO memory_api, memory_worker;
GRANT UPDATE (demoted_at, demoted_by, demotion_reason, resolved_at, resolved_by, resolution)
    ON links TO memory_api, memory_worker;
GRANT UPDATE (weight, access_count, last_accessed_at, observed_count, last_observed_at, pinned)
    ON fact_use TO memory_api, memory_worker;
GRANT UPDATE (status, response), DELETE ON idempotency_keys TO memory_api, memory_worker;
GRANT UPDATE (policy, require_evidence, closed_vocabulary, consolidate_may_retire)
    ON namespaces TO memory_api, memory_worker;
GRANT UPDATE (revoked_at) ON api_keys TO memory_api, memory_worker;
GRANT UPDATE (description) ON subjects TO memory_api, memory_worker;
GRANT UPDATE (subject), DELETE ON subject_aliases TO memory_api, memory_worker;
"""


def upgrade() -> None:
    execute("SET LOCAL lock_timeout = '10s'")
    for part in (ROLES, NAMESPACES, FACTS, AROUND, TRIGGERS, FUNCTIONS, VIEWS, GRANTS):
        execute(part)


def downgrade() -> None:
    execute("DROP VIEW fact_echoes, facts_history, facts_active")
    execute("DROP SCHEMA ledger CASCADE")
    execute("DROP FUNCTION fold_term_counts(integer)")
    execute("DROP FUNCTION register_embedding_profile(text, integer)")
    execute(
        "DROP TABLE term_counts, idempotency_keys, audit_events, observations, fact_use, links, chains, "
        "embedding_profiles, subject_aliases, subjects, api_keys, namespaces"
    )
