-- Subqueries within joins: EXISTS over joins by different keys, EXISTS and IN as arms of OR, NOT IN where there are NULLs, LATERAL aggregates.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA subqueries;
SET search_path = subqueries;
-- What programs must run on: the device under test.
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset

-- NULLs, duplicates, keys without partners on every side, groups whose sum is no int8.
CREATE TABLE o (id int NOT NULL, k int, x int2, n numeric(8, 2), t text) WITH (autovacuum_enabled = off);
CREATE TABLE a (id int NOT NULL, k int8, v int, n numeric(8, 2)) WITH (autovacuum_enabled = off);
CREATE TABLE b (id int NOT NULL, w int, few text) WITH (autovacuum_enabled = off);
CREATE TABLE c (id int NOT NULL, w int, day date) WITH (autovacuum_enabled = off);
INSERT INTO o SELECT i, nullif(i % 400, 7), nullif(i % 13, 4), i % 90 * 0.25, 'word ' || i % 50 FROM generate_series(1, 900) i;
INSERT INTO a SELECT i, nullif(i % 300, 11), nullif(i % 17, 5), i % 70 * 0.25 FROM generate_series(1, 2000) i;
INSERT INTO b SELECT i % 1500, nullif(i % 10, 4), 'word ' || i % 60 FROM generate_series(1, 1700) i;
INSERT INTO c SELECT i, nullif(i % 10, 2), date '2020-01-01' + i % 30 FROM generate_series(1, 40) i;
CREATE TABLE none AS SELECT * FROM a WHERE false;
SELECT sum(gpuvm.import(t)) FROM unnest('{o,a,b,c,none}'::regclass[]) t;
ANALYZE o, a, b, c, none;
SET gpuvm.force = on;

-- How many programs run, and what joins, aggregates or evaluates for each row above them?
CREATE FUNCTION parts(query text) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
	line text;
	n int[] := '{0,0}';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		n[1] := n[1] + (line ~ 'Custom Scan \(GpuVM\).*actual')::int;
		n[2] := n[2] + (line ~ '(Nested Loop|(Hash|Merge)( \w+)? Join|Aggregate|Seq Scan).*actual')::int;
	END LOOP;
	RETURN n;
END $$;
\set ECHO none
\i tests/sql/include/answers.sql
\set ECHO all
CREATE TABLE queries (n serial, parts int[], query text);
INSERT INTO queries (parts, query) VALUES
	-- EXISTS over a join: its different keys, of one or of several columns, under several types
	('{2,0}', 'SELECT id FROM o WHERE EXISTS (SELECT FROM a JOIN b USING (id) WHERE a.k = o.k AND b.w > 3)'),
	('{2,0}', 'SELECT id FROM o WHERE NOT EXISTS (SELECT FROM a JOIN b USING (id) WHERE a.k = o.k AND b.w > 3)'),
	('{2,0}', 'SELECT count(*) FROM o WHERE EXISTS (SELECT a.v FROM a, b, c WHERE a.id = b.id AND c.w = b.w AND a.k = o.k AND o.t = b.few)'),
	('{2,0}', 'SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM a JOIN b USING (id) WHERE a.k = o.k + 1 AND b.w = o.x)'),
	('{3,0}', 'SELECT x, count(*) FROM o WHERE EXISTS (SELECT FROM a JOIN b USING (id) WHERE a.k = o.k) AND NOT EXISTS (SELECT FROM b LEFT JOIN c USING (w) WHERE b.few = o.t AND c.id IS NULL) GROUP BY x'),
	('{2,0}', 'SELECT count(*) FROM o JOIN c ON o.x = c.w AND EXISTS (SELECT FROM a JOIN b USING (id) WHERE a.k = o.k AND a.v = c.id)'),
	('{2,0}', 'SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM none JOIN b USING (id) WHERE none.k = o.k)'),
	-- as arms of OR, in CASE and as values: counts
	('{2,0}', 'SELECT id FROM o WHERE x > 10 OR EXISTS (SELECT FROM a WHERE a.k = o.k AND a.v > 14)'),
	('{3,0}', 'SELECT count(*) FROM o WHERE EXISTS (SELECT FROM a JOIN b USING (id) WHERE a.k = o.k AND b.w = 3) OR NOT EXISTS (SELECT FROM c WHERE c.w = o.x)'),
	('{3,0}', 'SELECT count(*), sum(x) FROM o WHERE x < 2 OR k IN (SELECT a.k FROM a WHERE v = 3)'),
	('{4,0}', 'SELECT count(*) FROM o WHERE (n > 20 OR k IN (SELECT k FROM a WHERE v > 9)) AND (x = 3 OR NOT EXISTS (SELECT FROM b WHERE b.few = o.t AND b.w = 7))'),
	('{2,0}', 'SELECT id, EXISTS (SELECT FROM a WHERE a.k = o.k AND v = 4) AS there FROM o'),
	('{2,0}', 'SELECT id, CASE WHEN EXISTS (SELECT FROM a WHERE a.k = o.k AND v = 4) THEN 1 ELSE 2 END AS there FROM o WHERE x = 3'),
	('{3,0}', 'SELECT count(*) FROM o WHERE x = 3 OR k IN (SELECT none.k FROM none)'),
	-- NOT IN: a null among the values, a null that is asked for, none of them, no value at all
	('{1,0}', 'SELECT id FROM o WHERE id NOT IN (SELECT v FROM a)'),
	('{1,0}', 'SELECT id FROM o WHERE k NOT IN (SELECT id FROM b)'),
	('{1,0}', 'SELECT id FROM o WHERE k NOT IN (SELECT v FROM a WHERE id < 5)'),
	('{1,0}', 'SELECT id FROM o WHERE k NOT IN (SELECT v FROM a WHERE id < 6)'),
	('{1,0}', 'SELECT id FROM o WHERE k NOT IN (SELECT k FROM none)'),
	('{1,0}', 'SELECT id FROM o WHERE k NOT IN (SELECT id FROM none)'),
	('{2,0}', 'SELECT count(*) FROM o WHERE k NOT IN (SELECT a.k FROM a JOIN b USING (id) WHERE b.w = 5)'),
	('{2,0}', 'SELECT count(*) FROM o WHERE x NOT IN (SELECT c.w FROM a JOIN c ON a.v = c.id WHERE a.n > 3)'),
	('{2,0}', 'SELECT x, count(*) FROM o WHERE k <> ALL (SELECT max(v) FROM a GROUP BY k) GROUP BY x'),
	('{2,0}', 'SELECT count(*) FROM o WHERE k NOT IN (SELECT count(*) FROM a GROUP BY k)'),
	-- LATERAL: aggregates of what belongs to each row; counts of nothing are 0
	('{2,0}', 'SELECT o.id, l.m, l.c FROM o, LATERAL (SELECT max(v) m, count(*) c FROM a WHERE a.k = o.k) l'),
	('{2,0}', 'SELECT o.id, l.s, l.c FROM o LEFT JOIN LATERAL (SELECT sum(n) s, count(v) c FROM a WHERE a.k = o.k AND a.v > 3) l ON true WHERE o.x = 3'),
	('{2,0}', 'SELECT o.id, l.c FROM o JOIN LATERAL (SELECT count(*) + 0.5 c, min(day) d FROM c WHERE c.w = o.x) l ON l.c < 4'),
	('{2,0}', 'SELECT o.x, sum(l.c), count(l.m) FROM o CROSS JOIN LATERAL (SELECT count(*) c, max(b.few) m FROM a JOIN b USING (id) WHERE a.k = o.k) l GROUP BY o.x'),
	('{3,0}', 'SELECT o.id, l.c, r.s FROM o LEFT JOIN LATERAL (SELECT count(*) c FROM a WHERE a.k = o.k) l ON true LEFT JOIN LATERAL (SELECT sum(w) s FROM b WHERE b.few = o.t) r ON true WHERE l.c > 0 OR r.s < 9'),
	('{3,0}', 'SELECT o.id, l.c, r.d FROM o, LATERAL (SELECT count(*) c FROM a WHERE a.k = o.k) l, LATERAL (SELECT l.c > max(w) d FROM b WHERE b.few = o.t) r'),
	('{2,0}', 'SELECT count(*), sum(l.c) FROM o JOIN c ON c.w = o.x, LATERAL (SELECT count(*) c FROM a WHERE a.k = o.k AND a.v = c.id) l'),
	('{2,0}', 'SELECT o.id, coalesce(l.m, -1) FROM c LEFT JOIN o ON o.id = c.id CROSS JOIN LATERAL (SELECT max(v) m, count(*) c FROM a WHERE a.k = o.k) l WHERE l.c = 0'),
	('{2,1}', 'SELECT l FROM o, LATERAL (SELECT max(v) m, count(*) c FROM a WHERE a.k = o.k) l WHERE o.id < 30'),
	('{2,1}', 'SELECT l FROM o, LATERAL (SELECT 1 one, max(v) m, o.t, max(v) again, count(*) c, 2 two FROM a WHERE a.k = o.k) l WHERE o.id < 30'),
	('{3,0}', 'SELECT q.id, (SELECT count(*) FROM c WHERE c.id = q.m) FROM (SELECT o.id, l.m FROM o, LATERAL (SELECT max(v) m FROM a WHERE a.k = o.k) l) q WHERE q.m < 9'),
	-- joins of groups with groups, of a CTE with itself, and what aggregates those
	('{3,0}', 'SELECT p.k, p.s, q.s AS other FROM (SELECT k, sum(v) s FROM a WHERE id < 1200 GROUP BY k) p JOIN (SELECT k, sum(v) s FROM a WHERE id > 700 GROUP BY k) q USING (k) WHERE q.s > p.s'),
	('{3,0}', 'SELECT count(*), sum(p.n), sum(q.m) FROM (SELECT x, count(*) n FROM o GROUP BY x) p FULL JOIN (SELECT w, max(id) m FROM b GROUP BY w) q ON p.x = q.w'),
	('{2,0}', 'WITH y AS MATERIALIZED (SELECT v, id % 2 AS half, sum(n) s FROM a GROUP BY 1, 2) SELECT p.v, p.s, q.s AS other FROM y p JOIN y q ON p.v = q.v AND p.half = 0 AND q.half = 1 WHERE p.s < q.s'),
	('{3,0}', 'SELECT p.few FROM (SELECT DISTINCT few FROM b WHERE w > 3) p WHERE NOT EXISTS (SELECT FROM (SELECT t, count(*) n FROM o GROUP BY t HAVING count(*) > 3) q WHERE q.t = p.few)');
SET gpuvm.enabled = off;
CREATE TABLE expected AS SELECT n, answers(query) AS answer FROM queries;
RESET gpuvm.enabled;
SET gpuvm.require = :device;
SELECT q.query, parts(q.query), answers(q.query), e.answer FROM queries q JOIN expected e USING (n)
	WHERE parts(q.query) <> q.parts OR answers(q.query) IS DISTINCT FROM e.answer;
SELECT n, answer FROM expected ORDER BY n;
SET gpuvm.require = cpu;
EXPLAIN (COSTS OFF) SELECT count(*) FROM o WHERE EXISTS (SELECT FROM a JOIN b USING (id) WHERE a.k = o.k);
EXPLAIN (COSTS OFF) SELECT o.x, sum(l.c) FROM o, LATERAL (SELECT count(*) c FROM a WHERE a.k = o.k) l GROUP BY o.x;

-- Changed rows of all of them.
RESET gpuvm.require;
BEGIN;
UPDATE a SET k = k + 1, v = 3 WHERE id % 5 = 0;
DELETE FROM b WHERE id % 7 = 0;
INSERT INTO o SELECT id + 10000, k, x, n, 'new ' || x FROM o WHERE id < 50;
INSERT INTO none SELECT * FROM a WHERE id < 5;
SET LOCAL gpuvm.enabled = off;
CREATE TABLE changed AS SELECT n, answers(query) AS answer FROM queries;
SET LOCAL gpuvm.enabled = on;
SET LOCAL gpuvm.require = :device;
SELECT q.query, answers(q.query), e.answer FROM queries q JOIN changed e USING (n) WHERE answers(q.query) IS DISTINCT FROM e.answer;
SELECT count(*) > 20 FROM changed JOIN expected USING (n) WHERE changed.answer <> expected.answer;
ROLLBACK;

-- PostgreSQL's, whose subquery is evaluated for each row.
SELECT answers('SELECT id FROM o WHERE (x, k) IN (SELECT v, k FROM a) OR x IS NULL');
SET gpuvm.enabled = off;
SELECT answers('SELECT id FROM o WHERE (x, k) IN (SELECT v, k FROM a) OR x IS NULL');
RESET gpuvm.enabled;
-- What NOT IN is told of is looked at when the statement runs.
SET gpuvm.require = :device;
PREPARE missing(int) AS SELECT count(*) FROM o WHERE k NOT IN (SELECT v FROM a WHERE id < $1);
SET plan_cache_mode = force_generic_plan;
EXECUTE missing(5);
EXECUTE missing(6);
EXECUTE missing(0);
RESET plan_cache_mode;
RESET gpuvm.require;

-- An error that no row asks for is none; one that a row asks for is.
SELECT o.id, l.m FROM o, LATERAL (SELECT max(10 / (v - 3)) m FROM a WHERE a.k = o.k) l WHERE o.id < 3 ORDER BY 1;
SELECT o.id, l.m FROM o, LATERAL (SELECT max(10 / (v - 3)) m FROM a WHERE a.k = o.k) l WHERE o.id < 4 ORDER BY 1;
SELECT count(*) FROM o, LATERAL (SELECT count(*) c FROM a WHERE a.k = o.k) l WHERE o.id = 350 AND 10 / (l.c - 7) IS NOT NULL;
SELECT count(*) FROM o WHERE o.id < 3 AND (o.x > 100 OR EXISTS (SELECT FROM a WHERE a.k = o.k AND 10 / (a.v - 3) > 0));
-- Nor is one that PostgreSQL never comes to, of constants alone: what EXISTS selects, what nobody reads.
SELECT count(*) FROM o WHERE EXISTS (SELECT 1 / 0 FROM a JOIN b USING (id) WHERE a.k = o.k AND EXISTS (SELECT 1 / 0 FROM c WHERE c.w = b.w));
SELECT count(*) FROM (SELECT k, x, 1 / 0 FROM o) s WHERE x = 1 OR EXISTS (SELECT FROM a WHERE a.k = s.k AND a.v = 3);

-- What stays with PostgreSQL.
CREATE FUNCTION nodes(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		plan := plan || line || E'\n';
	END LOOP;
	RETURN CASE WHEN plan ~ 'Stages: ' THEN 'stages' WHEN plan ~ 'SubPlan' THEN 'a subplan' WHEN plan ~ 'Nested Loop' THEN 'a nested loop' ELSE 'joins' END;
END $$;
SELECT nodes(q), q FROM unnest(ARRAY[
	'SELECT o.id, l.v FROM o, LATERAL (SELECT v FROM a WHERE a.k = o.k ORDER BY v LIMIT 1) l',
	'SELECT o.id, l.m FROM o, LATERAL (SELECT max(v) m FROM a WHERE a.k > o.k) l',
	'SELECT o.id, l.m FROM o LEFT JOIN LATERAL (SELECT max(v) m FROM a WHERE a.k = o.k) l ON l.m > 3',
	'SELECT c.id, l.m FROM c LEFT JOIN (o CROSS JOIN LATERAL (SELECT count(*) m FROM a WHERE a.k = o.k) l) ON o.x = c.id',
	'SELECT o.id, l.r FROM o, LATERAL (SELECT max(v * random()) r FROM a WHERE a.k = o.k) l',
	'SELECT count(*) FROM o WHERE (k, x) NOT IN (SELECT k, v FROM a)',
	'SELECT count(*) FROM o WHERE x = 1 OR k NOT IN (SELECT k FROM a)',
	'SELECT count(*) FROM o WHERE x = 1 OR EXISTS (SELECT FROM a WHERE a.k > o.k)']) q;

SET client_min_messages = warning;
DROP SCHEMA subqueries CASCADE;
