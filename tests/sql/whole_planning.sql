-- Statements that may be run in stages are planned once, without programs for parts of them; what only the alternative of stages reads is not run.
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_planning;
SET search_path = whole_planning, public;

CREATE TABLE t (a int, b int, v numeric(10,2)) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i % 50, i % 7, i FROM generate_series(1, 3000) i;
INSERT INTO t VALUES (NULL, NULL, NULL), (1, NULL, 2);
CREATE TABLE d (k int PRIMARY KEY, n int) WITH (autovacuum_enabled = off);
INSERT INTO d SELECT i, nullif(i % 5, 0) FROM generate_series(0, 40) i;
CREATE TABLE heap (k int);
INSERT INTO heap VALUES (3);
VACUUM ANALYZE t, d, heap;
SELECT gpuvm.import('t'), gpuvm.import('d');
SET gpuvm.whole_query = on;
SET gpuvm.force = on;

CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	stages text;
	programs int := 0;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		stages := coalesce(stages, substring(line FROM 'Stages: \d+'));
		programs := programs + (line LIKE '%Custom Scan (GpuVM)%')::int;
	END LOOP;
	RETURN coalesce(stages, programs || ' programs');
END $$;
CREATE FUNCTION answer(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	row record;
	result text := '';
BEGIN
	FOR row IN EXECUTE query LOOP
		result := result || row::text;
	END LOOP;
	RETURN result;
EXCEPTION WHEN division_by_zero OR cardinality_violation THEN
	RETURN SQLERRM;
END $$;
CREATE FUNCTION ask(query text) RETURNS TABLE (plan text, answer text, equal bool, why text) LANGUAGE plpgsql AS $$
DECLARE
	must text;
BEGIN
	plan := plan_of(query);
	answer := answer(query);
	must := current_setting('gpuvm.require');
	PERFORM set_config('gpuvm.require', 'any', false), set_config('gpuvm.enabled', 'off', false);
	equal := answer = answer(query);
	PERFORM set_config('gpuvm.enabled', 'on', false), set_config('gpuvm.require', must, false);
	SELECT string_agg(DISTINCT r.reason, '; ' ORDER BY r.reason) INTO why FROM gpuvm.why_not(query) r;
	RETURN NEXT;
END $$;

-- CTEs and values of subqueries are stages: that the alternative's plans of them read tables is no reason, and no violation.
SET gpuvm.require = 'cpu';
SELECT * FROM ask('WITH s AS MATERIALIZED (SELECT a, sum(v) q FROM t GROUP BY a) SELECT count(*), sum(y.q) FROM s x JOIN s y USING (a)');
SELECT * FROM ask('SELECT n, count(*) FROM d JOIN (SELECT a, count(*) c FROM t GROUP BY a) s ON s.a = k WHERE c > (SELECT min(b) FROM t) GROUP BY n ORDER BY n');
SELECT * FROM ask('SELECT count(*) FROM t WHERE b = 0 OR a IN (SELECT k FROM d)');
SELECT * FROM ask('SELECT n, count(*) FROM d JOIN (SELECT a FROM t WHERE a < 0 GROUP BY a) s ON s.a = k GROUP BY n');
-- LIMIT reads a value of PostgreSQL's.
\set VERBOSITY terse
SELECT answer('SELECT n, s.c FROM d JOIN (SELECT a, count(*) c FROM t GROUP BY a) s ON s.a = k ORDER BY k LIMIT (SELECT k FROM d WHERE n = 4 ORDER BY k OFFSET 1 LIMIT 1)');
RESET gpuvm.require;
SELECT * FROM ask('SELECT n, s.c FROM d JOIN (SELECT a, count(*) c FROM t GROUP BY a) s ON s.a = k ORDER BY k LIMIT (SELECT count(*) - 2999 FROM t)');

-- What the alternative would not compute raises nothing.
SELECT * FROM ask('WITH s AS (SELECT a, count(*) c FROM t GROUP BY a), r AS (SELECT a, 10 / (c - 60) q FROM s JOIN d ON k = a) SELECT count(*) FROM d JOIN s ON a = k WHERE EXISTS (SELECT FROM d e WHERE e.k < 0 AND e.k IN (SELECT q FROM r) AND e.n IN (SELECT q FROM r))');
SELECT * FROM ask('WITH s AS (SELECT a, count(*) c FROM t GROUP BY a) SELECT x.a, 10 / (y.c - 60) FROM s x JOIN s y USING (a)');

-- One program of few tables is planned as ever, also below a subquery; one of many tables only once.
SELECT * FROM ask('SELECT n, count(*) FROM t JOIN d ON k = a GROUP BY n ORDER BY n');
SELECT * FROM ask('SELECT n, count(*) FROM (SELECT a FROM t WHERE b > 2) q JOIN d ON k = a GROUP BY n ORDER BY n');
SELECT * FROM ask('SELECT d1.n, count(*) FROM t JOIN d d1 ON d1.k = a JOIN d d2 ON d2.k = a JOIN d d3 ON d3.k = b JOIN d d4 ON d4.k = b JOIN d d5 ON d5.k = b JOIN d d6 ON d6.k = a GROUP BY 1 ORDER BY 1');

-- Without stages parts of it are programs, and it is said why.
SELECT * FROM ask('SELECT n, q FROM d JOIN (SELECT a, sum(v) q FROM t GROUP BY a) s ON s.a = k JOIN heap USING (k)');
SELECT * FROM ask('SELECT n, string_agg(q::text, '','' ORDER BY q) FROM d JOIN (SELECT a, sum(v) q FROM t GROUP BY a) s ON s.a = k WHERE k < 3 GROUP BY n ORDER BY n');

-- A cursor whose current row may be changed finds it in a scan of its table.
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM d WHERE k IN (SELECT a FROM t WHERE b = 1) AND n = 3 FOR UPDATE;
FETCH 1 FROM c;
UPDATE d SET n = n WHERE CURRENT OF c;
ROLLBACK;

-- Planned again with other parameters, and with none of ours.
PREPARE p (int) AS SELECT n, sum(q) FROM d JOIN (SELECT a, sum(v) q FROM t WHERE b = $1 GROUP BY a) s ON s.a = k GROUP BY n ORDER BY n NULLS FIRST LIMIT 2;
EXECUTE p (1);
EXECUTE p (NULL);
SET plan_cache_mode = force_generic_plan;
EXECUTE p (1);
SET gpuvm.enabled = off;
EXECUTE p (1);
RESET gpuvm.enabled;
RESET plan_cache_mode;

-- What PostgreSQL does at once is looked at no further.
RESET gpuvm.force;
SELECT plan_of('SELECT * FROM d WHERE k = (SELECT max(k) FROM d WHERE k < 3)');
RESET gpuvm.whole_query;
DROP SCHEMA whole_planning CASCADE;
