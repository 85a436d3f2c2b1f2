-- The three roles of the service and what the database must hold before the first migration. Run it with psql as a
-- superuser, connected to the service's database; run it again whenever a password changes. The passwords come from
-- the environment, so that they stand in no list of processes.
\set ON_ERROR_STOP on
\getenv owner_password MEMORY_OWNER_PASSWORD
\getenv api_password MEMORY_API_PASSWORD
\getenv worker_password MEMORY_WORKER_PASSWORD

BEGIN;
SELECT format('CREATE ROLE %I', missing)
FROM unnest(ARRAY['memory_owner', 'memory_api', 'memory_worker']) AS missing
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = missing) \gexec
ALTER ROLE memory_owner LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'owner_password';
ALTER ROLE memory_api LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'api_password';
ALTER ROLE memory_worker LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'worker_password';

REVOKE ALL ON DATABASE :"DBNAME" FROM PUBLIC;
GRANT CONNECT, TEMPORARY ON DATABASE :"DBNAME" TO memory_owner, memory_api, memory_worker;
GRANT CREATE ON DATABASE :"DBNAME" TO memory_owner;
GRANT USAGE, CREATE ON SCHEMA public TO memory_owner;

CREATE EXTENSION IF NOT EXISTS vector;
ALTER EXTENSION vector UPDATE;
COMMIT;
