-- count(DISTINCT ...) in stages (gpuvm.whole_query): groups of groups.
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_distinct;
SET search_path = whole_distinct, public;

CREATE TABLE t (a int, b int, c int8, v numeric(10,2), w int8, h int2, s text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT nullif(i % 3, 0), i % 4, nullif(i % 5, 2), nullif(i % 50, 7) / 10.0, nullif(i, 77), i % 20, nullif('s' || i % 4, 's1') FROM generate_series(1, 2000) i;
INSERT INTO t SELECT 7, 7 FROM generate_series(1, 2);
CREATE TABLE dim (k int, name text) WITH (autovacuum_enabled = off);
INSERT INTO dim SELECT i, 'name ' || i % 2 FROM generate_series(0, 7) i;
CREATE TABLE nothing (LIKE t) WITH (autovacuum_enabled = off);
CREATE TABLE special (k int, n numeric) WITH (autovacuum_enabled = off);
INSERT INTO special VALUES (1, 1), (1, 'NaN'), (2, 2.5), (2, 2.50), (3, NULL), (3, 3);
VACUUM ANALYZE t, dim, nothing, special;
SELECT sum(gpuvm.import(r)) FROM unnest('{t,dim,nothing,special}'::regclass[]) r;

-- How many stages gave the rows, and are they those of PostgreSQL?
CREATE FUNCTION ask(query text, OUT stages int, OUT rows int, OUT equal bool, OUT why text) LANGUAGE plpgsql AS $$
DECLARE
	answer text[] := '{}';
	got text[] := '{}';
	plan json;
	one record;
BEGIN
	PERFORM set_config('gpuvm.enabled', 'off', true), set_config('gpuvm.whole_query', 'off', true);
	FOR one IN EXECUTE query LOOP
		answer := answer || one::text;
	END LOOP;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.whole_query', 'on', true), set_config('gpuvm.force', 'on', true);
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	stages := substring(plan::text FROM '"Stages": (\d+)');
	IF stages IS NULL THEN
		SELECT reason INTO why FROM gpuvm.why_not(query) WHERE node LIKE 'Whole%' LIMIT 1;
	ELSE
		PERFORM set_config('gpuvm.require', 'cpu', true);
	END IF;
	FOR one IN EXECUTE query LOOP
		got := got || one::text;
	END LOOP;
	rows := cardinality(got);
	SELECT array_agg(x ORDER BY x) INTO got FROM unnest(got) x;
	SELECT array_agg(x ORDER BY x) IS NOT DISTINCT FROM got INTO equal FROM unnest(answer) x;
	PERFORM set_config('gpuvm.require', 'any', true), set_config('gpuvm.force', 'off', true), set_config('gpuvm.whole_query', 'off', true);
END
$$;

-- One row each, joined.
SELECT * FROM ask('SELECT * FROM (SELECT avg(v) m, count(v) n, count(DISTINCT v) d FROM t WHERE b < 3) x, (SELECT avg(v) m, count(v) n, count(DISTINCT v) d FROM t WHERE b > 1) y, (SELECT avg(v) m, count(*) n, count(DISTINCT v) d FROM nothing) z');
-- By keys; what is counted is one of them, a text, a number of which nulls are no value.
SELECT * FROM ask('SELECT d.k, d.name, x.n FROM (SELECT b, count(DISTINCT v) n FROM t GROUP BY b) x JOIN dim d ON d.k = x.b');
SELECT * FROM ask('SELECT d.k, x.* FROM (SELECT b, count(DISTINCT b) n, count(DISTINCT b) + 1 m, count(*) r FROM t GROUP BY b) x JOIN dim d ON d.k = x.b');
SELECT * FROM ask('SELECT d.k, x.* FROM (SELECT a, b, count(DISTINCT s) n, count(s) m, count(*) r FROM t GROUP BY a, b) x JOIN dim d ON d.k = x.b');
-- Beside all kinds of others.
SELECT * FROM ask('SELECT d.k, x.* FROM (SELECT b, count(DISTINCT c) n, sum(v) s1, sum(w) s2, sum(a) s3, sum(h) s4, min(a) x1, max(w) x2 FROM t GROUP BY b) x JOIN dim d ON d.k = x.b');
SELECT * FROM ask('SELECT d.k, x.* FROM (SELECT b, count(DISTINCT c) n, avg(v) s1, avg(w) s2, avg(a) s3, avg(h) s4 FROM t GROUP BY b) x JOIN dim d ON d.k = x.b');
SELECT * FROM ask('SELECT d.k, x.* FROM (SELECT b, count(DISTINCT c) n, avg(v) FILTER (WHERE a = 1) s1, count(*) FILTER (WHERE a > 1) s2, sum(a) FILTER (WHERE a > 9) s3 FROM t GROUP BY b) x JOIN dim d ON d.k = x.b');
SELECT * FROM ask('SELECT d.k, x.* FROM (SELECT count(DISTINCT c) n, avg(v) s1, count(*) s2, sum(a) s3, sum(v) s4, sum(w) s5, max(w) FROM nothing) x, dim d');
SELECT * FROM ask('SELECT d.k, x.* FROM (SELECT b, count(DISTINCT c) n, avg(v) s1 FROM nothing GROUP BY b) x RIGHT JOIN dim d ON d.k = x.b');
-- In conditions, and grouped again.
SELECT * FROM ask('SELECT d.k, x.n FROM (SELECT b, count(DISTINCT v) n, count(*) m FROM t GROUP BY b) x JOIN dim d ON d.k = x.b WHERE x.n > 24 AND x.m < 900');
SELECT * FROM ask('SELECT d.name, sum(x.n), max(x.m), count(DISTINCT x.n) FROM (SELECT b, count(DISTINCT v) n, count(*) m FROM t GROUP BY b) x JOIN dim d ON d.k = x.b GROUP BY d.name');
SELECT * FROM ask('SELECT b, n, rank() OVER (ORDER BY n) FROM (SELECT b, count(DISTINCT v) n FROM t GROUP BY b) x JOIN dim d ON d.k = x.b');
SELECT * FROM ask('SELECT a, b, count(DISTINCT c), avg(v) FROM t JOIN dim ON b = k GROUP BY ROLLUP (a, b)');
-- Equal numbers that print differently, and NaN.
SELECT * FROM ask('SELECT d.k, x.* FROM (SELECT k, count(DISTINCT n) n, sum(n) s FROM special GROUP BY k) x JOIN dim d USING (k)');
-- Not in stages: two columns, other aggregates of different values, extremes of numerics.
SELECT * FROM ask('SELECT d.k, x.* FROM (SELECT b, count(DISTINCT c) n, count(DISTINCT a) m FROM t GROUP BY b) x JOIN dim d ON d.k = x.b');
SELECT * FROM ask('SELECT d.k, x.* FROM (SELECT b, count(DISTINCT c) n, sum(DISTINCT c) m FROM t GROUP BY b) x JOIN dim d ON d.k = x.b');
SELECT * FROM ask('SELECT d.k, x.* FROM (SELECT b, count(DISTINCT c) n, max(v) m FROM t GROUP BY b) x JOIN dim d ON d.k = x.b');
SELECT * FROM ask('SELECT d.k, x.* FROM (SELECT b, count(DISTINCT c) FILTER (WHERE a = 1) n FROM t GROUP BY b) x JOIN dim d ON d.k = x.b');

\set VERBOSITY terse
DROP SCHEMA whole_distinct CASCADE;
