-- Queries that end while they have a temporary file: whose it is then, and who closes it, is not the same in all versions of PostgreSQL.
\pset tuples_only on
\pset format unaligned
CREATE EXTENSION IF NOT EXISTS gpuvm;
ALTER SYSTEM SET gpuvm.engine_memory = '32MB';
SELECT pg_reload_conf();
SELECT pg_postmaster_start_time() || ' ' || pid AS start FROM pg_stat_activity WHERE backend_type = 'checkpointer' \gset
CREATE TABLE spilled AS SELECT hashint8extended(i, 1) AS k, i AS v FROM generate_series(1, 1000000) i;
SELECT gpuvm.import('spilled');
SET gpuvm.force = on;
SET gpuvm.require = cpu;
SELECT count(*) FROM (SELECT k, sum(v) AS s FROM spilled GROUP BY k ORDER BY s LIMIT 10) q;
SET temp_file_limit = '8MB';
SELECT count(*) FROM (SELECT k, sum(v) AS s FROM spilled GROUP BY k ORDER BY s LIMIT 10) q;
DO $$ BEGIN
	PERFORM k, sum(v) AS s FROM spilled GROUP BY k ORDER BY s LIMIT 10;
EXCEPTION WHEN configuration_limit_exceeded THEN
	RAISE NOTICE 'caught';
END $$;
RESET temp_file_limit;
SET statement_timeout = '1s';
SELECT count(*) FROM (SELECT a.k, b.v, count(*) AS n FROM spilled a JOIN spilled b ON a.v % 1000 = b.v % 1000 GROUP BY 1, 2 ORDER BY n LIMIT 10) q;
RESET statement_timeout;
BEGIN;
DECLARE c CURSOR FOR SELECT k, sum(v) AS s FROM spilled GROUP BY k;
FETCH 1 FROM c;
SAVEPOINT s;
SELECT 1 / 0;
ROLLBACK TO s;
MOVE 100 IN c;
CLOSE c;
ROLLBACK;
SELECT count(*) FROM (SELECT k, sum(v) AS s FROM spilled GROUP BY k ORDER BY s LIMIT 10) q;
SELECT 'the server is the same' FROM pg_stat_activity WHERE backend_type = 'checkpointer' AND pg_postmaster_start_time() || ' ' || pid = :'start';
