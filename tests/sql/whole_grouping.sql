-- Grouping sets in stages (gpuvm.whole_query): a UNION ALL of groups, of which the coarser are made of finer ones.
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_grouping;
SET search_path = whole_grouping, public;

CREATE TABLE t (a int, b int, c int8, v numeric(10,2), w int8, d date, s text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT nullif(i % 3, 0), i % 4, nullif(i % 5, 2), i / 10.0, nullif(i, 77), date '2024-01-01' + i % 9, nullif('s' || i % 4, 's1') FROM generate_series(1, 2000) i;
INSERT INTO t SELECT 7, 7 FROM generate_series(1, 2);
CREATE TABLE dim (k int, name text) WITH (autovacuum_enabled = off);
INSERT INTO dim SELECT i, 'name ' || i % 2 FROM generate_series(0, 7) i;
CREATE TABLE nothing (LIKE t) WITH (autovacuum_enabled = off);
VACUUM ANALYZE t, dim, nothing;
SELECT sum(gpuvm.import(r)) FROM unnest('{t,dim,nothing}'::regclass[]) r;

-- How many stages gave the rows (of the groups joined, since groups alone are one program), and are they those of PostgreSQL, and those that the algebra means?
CREATE FUNCTION ask(grouped text, OUT stages int, OUT rows int, OUT equal bool, OUT algebra bool, OUT why text) LANGUAGE plpgsql AS $$
DECLARE
	answer text[] := '{}';
	got text[] := '{}';
	meant text[] := '{}';
	plan json;
	one record;
	query text := 'SELECT x.*, z.k FROM (' || grouped || ') x LEFT JOIN dim z ON x.a = z.k';
BEGIN
	PERFORM set_config('gpuvm.enabled', 'off', true), set_config('gpuvm.whole_query', 'off', true);
	FOR one IN EXECUTE query LOOP
		answer := answer || one::text;
	END LOOP;
	FOR one IN EXECUTE gpuvm.algebra(query, as_sql => true, normalise => true) LOOP
		meant := meant || one::text;
	END LOOP;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.whole_query', 'on', true), set_config('gpuvm.force', 'on', true);
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	stages := substring(plan::text FROM '"Stages": (\d+)');
	SELECT reason INTO why FROM gpuvm.why_not(query) WHERE node LIKE 'Whole%' LIMIT 1;
	IF stages IS NOT NULL THEN
		PERFORM set_config('gpuvm.require', 'cpu', true);
		why := NULL;
	END IF;
	FOR one IN EXECUTE query LOOP
		got := got || one::text;
	END LOOP;
	SELECT coalesce(array_agg(x ORDER BY x), '{}') INTO got FROM unnest(got) x;
	rows := cardinality(got);
	SELECT coalesce(array_agg(x ORDER BY x), '{}') = got INTO equal FROM unnest(answer) x;
	SELECT coalesce(array_agg(x ORDER BY x), '{}') = got INTO algebra FROM unnest(meant) x;
	PERFORM set_config('gpuvm.require', 'any', true), set_config('gpuvm.force', 'off', true), set_config('gpuvm.whole_query', 'off', true);
END
$$;

-- A chain: sums of sums, extremes of extremes
SELECT * FROM ask('SELECT a, b, min(w), max(d), grouping(a, b) FROM t JOIN dim ON b = k GROUP BY ROLLUP (a, b)');
SELECT * FROM ask('SELECT a, b, c, min(w), bit_or(b), grouping(c, a), grouping(b) FROM t JOIN dim ON b = k GROUP BY CUBE (a, b, c)');
SELECT * FROM ask('SELECT a, b, sum(v), sum(w), bool_and(a > 1) FROM t JOIN dim ON b = k GROUP BY ROLLUP (a, b)');
-- from the rows: counts, what is averaged, sets of which none has all keys
SELECT * FROM ask('SELECT a, b, count(*), count(w), sum(b) FROM t JOIN dim ON b = k GROUP BY ROLLUP (a, b)');
SELECT * FROM ask('SELECT a, b, avg(v), count(DISTINCT c) FROM t JOIN dim ON b = k GROUP BY ROLLUP (a, b)');
SELECT * FROM ask('SELECT a, b, max(w) FROM t JOIN dim ON b = k GROUP BY GROUPING SETS ((a), (b))');
-- texts as keys
SELECT * FROM ask('SELECT min(b) AS a, s, name FROM t JOIN dim ON b = k GROUP BY ROLLUP (s, name)');
-- texts that are null in other sets: of no rows, beside groups of themselves, sorted and grouped again, in conditions, beside constants
SELECT * FROM ask('SELECT min(b) AS a, s, name FROM nothing JOIN dim ON b = k GROUP BY CUBE (s, name)');
SELECT * FROM ask('SELECT a, s, n, rank() OVER (PARTITION BY s ORDER BY n) r FROM (SELECT max(a) a, s, name, sum(w) n FROM t JOIN dim ON b = k GROUP BY ROLLUP (s, name)) g');
SELECT * FROM ask('SELECT max(a) a, s, count(*) n, min(name) m FROM (SELECT max(a) a, s, name FROM t JOIN dim ON b = k GROUP BY CUBE (s, name)) g GROUP BY s');
SELECT * FROM ask('SELECT a, s, name FROM (SELECT max(a) a, s, name FROM t JOIN dim ON b = k GROUP BY CUBE (s, name)) g WHERE s IS NULL OR name > s');
SELECT * FROM ask('SELECT a, s, name FROM (SELECT max(a) a, s, lower(name) AS name FROM t JOIN dim ON b = k GROUP BY GROUPING SETS (s, lower(name), ())) g');
SELECT * FROM ask('SELECT a, s FROM (SELECT a, s FROM t JOIN dim ON b = k UNION ALL SELECT a, NULL FROM t JOIN dim ON b = k UNION ALL SELECT k, name FROM dim) g WHERE s IS NULL OR s > ''b''');
SELECT * FROM ask('SELECT a, s FROM (SELECT a, NULL AS s FROM t JOIN dim ON b = k UNION ALL SELECT k, NULL FROM dim) g');
-- sets that stand twice; the empty one, of no rows, too
SELECT * FROM ask('SELECT a, b, min(w) FROM t JOIN dim ON b = k GROUP BY GROUPING SETS ((a, b), (a), (a), (), ())');
SELECT * FROM ask('SELECT a, b, min(w), count(*) FROM nothing JOIN dim ON b = k GROUP BY ROLLUP (a, b)');
SELECT * FROM ask('SELECT a, b, min(w), sum(v) FROM nothing JOIN dim ON b = k GROUP BY ROLLUP (a, b)');
SELECT * FROM ask('SELECT a, min(w) FROM nothing JOIN dim ON b = k GROUP BY GROUPING SETS ((a))');
-- keys are null in other sets: in HAVING, in expressions, to aggregates they are what they were
SELECT * FROM ask('SELECT a, b, min(w) FROM t JOIN dim ON b = k GROUP BY ROLLUP (a, b) HAVING a > 1');
SELECT * FROM ask('SELECT a, b, min(w) FROM t JOIN dim ON b = k GROUP BY ROLLUP (a, b) HAVING grouping(b) = 1 OR b IS NULL');
SELECT * FROM ask('SELECT a + 1 AS a, coalesce(b, -1), max(b), max(a), min(w) + grouping(a) FROM t JOIN dim ON b = k GROUP BY ROLLUP (a, b)');
SELECT * FROM ask('SELECT a, b, min(w) FROM t JOIN dim ON b = k GROUP BY a, ROLLUP (b, c) ORDER BY a, b, min(w), max(w) LIMIT 5');
-- below other nodes
SELECT * FROM ask('SELECT x.a, x.m, dim.name FROM (SELECT a, b, max(w) AS m FROM t JOIN dim ON b = k GROUP BY ROLLUP (a, b)) x LEFT JOIN dim ON x.b = k');
SELECT * FROM ask('SELECT g AS a, max(m) FROM (SELECT a, grouping(a) AS g, max(w) AS m FROM t JOIN dim ON b = k GROUP BY GROUPING SETS ((a), (b))) x GROUP BY ROLLUP (g)');
SELECT * FROM ask('SELECT a, b, min(w), rank() OVER (PARTITION BY grouping(a, b) ORDER BY min(w), a, b) FROM t JOIN dim ON b = k GROUP BY ROLLUP (a, b)');
SELECT * FROM ask('WITH x AS MATERIALIZED (SELECT a, b, max(w) AS m FROM t JOIN dim ON b = k GROUP BY ROLLUP (a, b)) SELECT y.a, z.m FROM x y JOIN x z ON y.a = z.a');

-- A constant as a key is null in the sets without it.
SELECT * FROM ask('SELECT a, 3 AS c, count(*) FROM t GROUP BY GROUPING SETS ((1), (1, 2))');
-- Two keys that are one expression: each is null in other sets. PostgreSQL tells the columns of the output by their expressions, but not those of a subquery.
SELECT * FROM ask('SELECT a, a AS again, count(*) FROM t GROUP BY ROLLUP (1, 2)');
SELECT * FROM ask('SELECT a, again, count(*), sum(n) FROM (SELECT a, a AS again, count(*) AS n FROM t GROUP BY ROLLUP (1, 2)) q GROUP BY a, again');
SELECT * FROM ask('SELECT a, again, m, rank() OVER (PARTITION BY again ORDER BY m, a) FROM (SELECT a, a AS again, max(w) AS m FROM t JOIN dim ON b = k GROUP BY GROUPING SETS ((1), (1, 2), ())) q');
SET gpuvm.force = on;
SET gpuvm.whole_query = on;
SELECT c, count(*) FROM (SELECT a, 3 AS c, count(*) FROM t GROUP BY GROUPING SETS ((1), (1, 2))) q GROUP BY c;
SELECT 4 - 1 AS c, count(*) FROM t GROUP BY GROUPING SETS ((1), ()) ORDER BY c;
RESET gpuvm.force;
RESET gpuvm.whole_query;
\set VERBOSITY terse
DROP SCHEMA whole_grouping CASCADE;
