-- Whole statements in stages: what once gave other rows than PostgreSQL's.
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_faults;
SET search_path = whole_faults, public;

CREATE TABLE a (id int PRIMARY KEY, k int, x int);
INSERT INTO a SELECT i, nullif(i % 23, 0), nullif(i % 7, 3) FROM generate_series(1, 3000) i;
CREATE TABLE b (id int PRIMARY KEY, k int, n numeric(10,2));
INSERT INTO b SELECT i, nullif(i % 31, 5), (i % 90) / 10.0 FROM generate_series(1, 2000) i WHERE i % 31 NOT IN (3, 7, 11);
CREATE TABLE c (id int PRIMARY KEY, k int, v int);
INSERT INTO c SELECT i, i % 19, nullif(i % 11, 4) FROM generate_series(1, 400) i;
VACUUM ANALYZE a, b, c;
SELECT gpuvm.import('a'), gpuvm.import('b'), gpuvm.import('c');

\i tests/sql/include/in_stages.sql
-- Has the query stages, or why not? And are the rows PostgreSQL's?
CREATE FUNCTION ask(query text, OUT stages int, OUT equal bool, OUT nrows int, OUT why text) LANGUAGE sql AS $$
SELECT stages, same_rows(got, expected), cardinality(expected), why FROM in_stages(query) $$;

-- A subquery's LIMIT, where the statement itself has none.
SELECT * FROM ask('SELECT k, n FROM (SELECT p.k, sum(p.m) n FROM (SELECT k, x, count(*) m FROM a GROUP BY k, x) p JOIN c ON c.id = p.k GROUP BY p.k ORDER BY n DESC, p.k LIMIT 3) s');
SELECT * FROM ask('SELECT k, n + 1 FROM (SELECT p.k, sum(p.m) n FROM (SELECT k, x, count(*) m FROM a GROUP BY k, x) p JOIN c ON c.id = p.k GROUP BY p.k ORDER BY n DESC, p.k OFFSET 5) s');
SELECT * FROM ask('SELECT * FROM (SELECT p.k, p.m, c.v FROM (SELECT k, x, count(*) m FROM a GROUP BY k, x) p JOIN c ON c.id = p.k ORDER BY 1, 2, 3 LIMIT 4) s');
SELECT * FROM ask('SELECT * FROM (SELECT p.k, p.m, c.v FROM (SELECT k, x, count(*) m FROM a GROUP BY k, x) p JOIN c ON c.id = p.k ORDER BY 1, 2, 3 LIMIT 4) s LIMIT ALL');
SELECT * FROM ask('SELECT * FROM (SELECT p.k, p.m, c.v FROM (SELECT k, x, count(*) m FROM a GROUP BY k, x) p JOIN c ON c.id = p.k ORDER BY 1, 2, 3 LIMIT 4) s OFFSET 0');
SELECT * FROM ask('SELECT * FROM (SELECT p.k, p.m, c.v FROM (SELECT k, x, count(*) m FROM a GROUP BY k, x) p JOIN c ON c.id = p.k ORDER BY 1, 2, 3 LIMIT 4) s ORDER BY v LIMIT 2');
SELECT * FROM ask('SELECT * FROM (SELECT p.k, p.m, c.v FROM (SELECT k, x, count(*) m FROM a GROUP BY k, x) p JOIN c ON c.id = p.k ORDER BY 1, 2, 3) s');
SELECT * FROM ask('SELECT p.k, p.m, c.v FROM (SELECT k, x, count(*) m FROM a GROUP BY k, x) p JOIN c ON c.id = p.k ORDER BY 1, 2, 3 LIMIT 4 OFFSET 1');
-- A constant below a left join and the same one elsewhere, which is null in no row.
SELECT * FROM ask('SELECT p.k, sum(p.y), count(s.one), sum(s.n) FROM (SELECT k, min(x) + 1 AS y FROM a GROUP BY k) p LEFT JOIN (SELECT k, 1 AS one, n FROM b WHERE k < 4) s ON s.k = p.k GROUP BY p.k');
SELECT * FROM ask('SELECT p.k, sum(p.one), count(s.one), sum(s.n) FROM (SELECT k, min(x) y, 1 AS one FROM a GROUP BY k) p LEFT JOIN (SELECT b.k, 1 AS one, b.n FROM b JOIN c ON c.id = b.k WHERE b.k < 4) s ON s.k = p.k GROUP BY p.k');
SELECT * FROM ask('SELECT p.k, sum(p.y), count(s.one), count(s.two), count(s.again) FROM (SELECT k, min(x) + 1 AS y FROM a GROUP BY k) p LEFT JOIN (SELECT k, 1 AS one, 2 AS two, 1 AS again FROM b WHERE k < 4) s ON s.k = p.k AND s.one < s.two GROUP BY p.k');
SELECT * FROM ask('SELECT p.k, p.y, s.one FROM (SELECT k, x + 1 AS y FROM a WHERE id < 100) p LEFT JOIN (SELECT b.k, c.v, 1 AS one FROM b JOIN c ON c.id = b.id WHERE b.k < 4) s ON s.k = p.k AND s.v = p.y');
-- The same of what stages do not run yet: is the SQL that the algebra makes the same question?
CREATE FUNCTION translated(query text, OUT equal bool, OUT nrows int) LANGUAGE plpgsql AS $$
DECLARE
	one record;
	got text[] := '{}';
	answer text[] := '{}';
BEGIN
	PERFORM set_config('gpuvm.enabled', 'off', true);
	FOR one IN EXECUTE query LOOP
		answer := answer || one::text;
	END LOOP;
	FOR one IN EXECUTE (SELECT string_agg(sql, ' ') FROM gpuvm.algebra(query, as_sql => true) sql) LOOP
		got := got || one::text;
	END LOOP;
	nrows := cardinality(answer);
	equal := (SELECT array_agg(r ORDER BY r) FROM unnest(got) r) IS NOT DISTINCT FROM (SELECT array_agg(r ORDER BY r) FROM unnest(answer) r);
END $$;

-- A value of each row below an outer join in a subquery: computed for the rows outside of it, it would not be null.
SELECT * FROM translated('SELECT c.id, (SELECT s.m FROM a LEFT JOIN (SELECT b.id AS j, (SELECT d.v FROM c d WHERE d.id = c.k + 1) AS m FROM b) s ON s.j = a.id + 2 WHERE a.id = c.v) FROM c');
SELECT * FROM translated('SELECT c.id, (SELECT (SELECT d.v FROM c d WHERE d.id = c.k + 1) FROM a WHERE a.id = c.v) FROM c');
SELECT * FROM translated('SELECT c.id, l.m FROM c LEFT JOIN LATERAL (SELECT (SELECT max(d.v) FROM c d WHERE d.k = c.k) AS m FROM a WHERE a.id = c.v) l ON true');
SELECT * FROM translated('SELECT c.id, l.m FROM c CROSS JOIN LATERAL (SELECT s.m FROM a LEFT JOIN (SELECT b.id AS j, (SELECT max(d.v) FROM c d WHERE d.k = c.k) AS m FROM b) s ON s.j = a.id WHERE a.id = c.v) l');
SELECT * FROM translated('SELECT c.id, l.m FROM c CROSS JOIN LATERAL (SELECT s.m, a.id FROM a FULL JOIN (SELECT b.id AS j, (SELECT max(d.v) FROM c d WHERE d.k = c.k) AS m FROM b) s ON s.j = a.id) l WHERE c.id < 3');
SELECT * FROM translated('SELECT c.id FROM c WHERE EXISTS (SELECT FROM a LEFT JOIN (SELECT b.id AS j, (SELECT d.v FROM c d WHERE d.id = c.k + 1) AS m FROM b) s ON s.j = a.id + 2 WHERE a.k = c.v AND s.m IS NULL)');
-- Where a condition reads it alone, it is.
SELECT * FROM translated('SELECT c.id, (SELECT sum(a.x) FROM a WHERE a.k = c.v AND a.x > (SELECT max(d.v) - 8 FROM c d WHERE d.k = c.k)) FROM c');

-- A plan goes with a function that folding has put into it.
CREATE FUNCTION bump(i bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT i + 1';
CREATE FUNCTION big(i bigint) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT i > 130';
SET gpuvm.force = on;
SET gpuvm.whole_query = on;
SET gpuvm.require = 'cpu';
SET plan_cache_mode = force_generic_plan;
PREPARE sums AS SELECT sum(bump(p.n)), count(*) FROM (SELECT k, count(*) n FROM a GROUP BY k) p JOIN c ON c.id = p.k WHERE big(p.n) AND EXISTS (SELECT FROM b WHERE b.k = p.k AND big(b.n::int + 126));
EXECUTE sums;
CREATE OR REPLACE FUNCTION bump(i bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT i + 2';
EXECUTE sums;
CREATE OR REPLACE FUNCTION big(i bigint) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT i > 120';
EXECUTE sums;
DEALLOCATE sums;

-- An arm of UNION ALL that a condition leaves without rows, also without stages: forced, a scan of ours read its whole table.
RESET gpuvm.require;
SET gpuvm.whole_query = off;
SELECT q.n, count(*) FROM (SELECT v AS n, count(*) AS m FROM c GROUP BY 1 UNION ALL SELECT 1, v FROM c) q WHERE q.n <= 0 GROUP BY 1;
SET gpuvm.whole_query = on;
SELECT q.n, count(*) FROM (SELECT v AS n, count(*) AS m FROM c GROUP BY 1 UNION ALL SELECT 1, v FROM c) q WHERE q.n <= 0 GROUP BY 1;

-- Groups of one stage that fall back to a plan which reads a CTE.
SELECT * FROM ask('WITH m AS MATERIALIZED (SELECT * FROM b WHERE id % 3 = 0) SELECT c.v, count(*), sum(m.id) FROM m JOIN c ON c.id = m.id GROUP BY c.v');
WITH m AS MATERIALIZED (SELECT * FROM b WHERE id % 3 = 0) SELECT c.v, sum(10 / (m.k - 2)) FROM m JOIN c ON c.id = m.id GROUP BY c.v;

DROP SCHEMA whole_faults CASCADE;
