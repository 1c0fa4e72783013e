-- Joins of more relations, full joins, LIMIT, policies, partitions, and what the planner makes of many orders.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA joins_many;
SET search_path = joins_many;
-- What programs must run on: the device under test.
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset

-- A star: a table with seven dimensions; and eight small tables with NULLs, duplicates, NaN and -0.
CREATE TABLE fact (id int, d1 int, d2 int2, d3 int8, d4 int, d5 int, d6 int, d7 int, v float8) WITH (autovacuum_enabled = off);
CREATE TABLE keyed (id int NOT NULL, k int, s int) WITH (autovacuum_enabled = off);
INSERT INTO keyed SELECT i, nullif(i % 9, 3), i % 5 FROM generate_series(0, 60) i;
INSERT INTO fact SELECT i, i % 10, nullif(i % 20, 3), i % 30, i % 5, nullif(i % 7, 6), i % 9, i % 11, i * 0.5 FROM generate_series(1, 5000) i;
CREATE FUNCTION small_rows(n int, m int) RETURNS TABLE (id int, k int, s int2, l int8, f float4, d float8, day date, ts timestamp) LANGUAGE sql AS $$
	SELECT i - 1, nullif(i % m, 2), i % (m + 1), nullif(i % m, 4), CASE i % 5 WHEN 0 THEN 'NaN'::float4 WHEN 1 THEN '-0' WHEN 2 THEN NULL ELSE i % m END,
		CASE i % 4 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN '0' ELSE i % m END, date '2000-01-01' + i % m, timestamp '2000-01-01' + i % m * interval '12 hours'
	FROM generate_series(1, n) i
$$;
DO $$ BEGIN
	FOR i IN 1 .. 9 LOOP
		EXECUTE format('CREATE TABLE t%s WITH (autovacuum_enabled = off) AS SELECT * FROM small_rows(%s, %s)', i, 8 + i * 3, 2 + i);
	END LOOP;
END $$;
CREATE TABLE none WITH (autovacuum_enabled = off) AS SELECT * FROM t1 WHERE false;
CREATE TABLE away WITH (autovacuum_enabled = off) AS SELECT * FROM t1;
CREATE TABLE left_parts (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE left_1 PARTITION OF left_parts FOR VALUES FROM (0) TO (50) WITH (autovacuum_enabled = off);
CREATE TABLE left_2 PARTITION OF left_parts FOR VALUES FROM (50) TO (100) WITH (autovacuum_enabled = off);
CREATE TABLE right_parts (k int, w int) PARTITION BY RANGE (k);
CREATE TABLE right_1 PARTITION OF right_parts FOR VALUES FROM (0) TO (50) WITH (autovacuum_enabled = off);
CREATE TABLE right_2 PARTITION OF right_parts FOR VALUES FROM (50) TO (100) WITH (autovacuum_enabled = off);
INSERT INTO left_parts SELECT i % 100, i FROM generate_series(1, 1000) i;
INSERT INTO right_parts SELECT i * 7 % 100, i FROM generate_series(1, 300) i;
SELECT sum(gpuvm.import(t)) FROM unnest('{fact,keyed,t1,t2,t3,t4,t5,t6,t7,t8,t9,none,left_1,left_2,right_1,right_2}'::regclass[]) t;
ANALYZE fact, keyed, t1, t2, t3, t4, t5, t6, t7, t8, t9, none, away, left_parts, right_parts;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/joined.sql
\i tests/sql/include/answers.sql
\set ECHO all
CREATE TABLE queries (n serial, joins int, query text);

INSERT INTO queries (joins, query) VALUES
	-- chains and stars of four to eight
	(3, 'SELECT t1.id, t4.id AS other FROM t1 JOIN t2 ON t1.k = t2.s JOIN t3 ON t2.k = t3.id JOIN t4 ON t3.s = t4.id'),
	(4, 'SELECT t1.id, t5.id AS other FROM t1 JOIN t2 USING (id) JOIN t3 USING (id) JOIN t4 USING (id) JOIN t5 ON t5.id = t4.k'),
	(7, 'SELECT count(*), sum(f.v) FROM fact f JOIN t1 ON f.d1 = t1.id JOIN t2 ON f.d2 = t2.id JOIN t3 ON f.d3 = t3.id JOIN t4 ON f.d4 = t4.id
		JOIN t5 ON f.d5 = t5.id JOIN t6 ON f.d6 = t6.id JOIN t7 ON f.d7 = t7.id'),
	(7, 'SELECT t1.s, t2.s AS other, count(*), sum(f.id) FROM fact f JOIN t1 ON f.d1 = t1.id JOIN t2 ON f.d2 = t2.id JOIN t3 ON f.d3 = t3.id
		JOIN t4 ON f.d4 = t4.id JOIN t5 ON f.d5 = t5.id JOIN t6 ON f.d6 = t6.id JOIN t7 ON f.d7 = t7.id WHERE t3.k < 4 AND t7.s <> 2 GROUP BY 1, 2'),
	(7, 'SELECT count(*), sum(t1.id + t8.id) FROM t1, t2, t3, t4, t5, t6, t7, t8 WHERE t1.id = t2.k AND t2.id = t3.k AND t3.id = t4.k AND t4.id = t5.k
		AND t5.id = t6.k AND t6.id = t7.k AND t7.id = t8.k'),
	(7, 'SELECT count(*) FROM t1 NATURAL JOIN t2 NATURAL JOIN t3 NATURAL JOIN t4 NATURAL JOIN t5 NATURAL JOIN t6 NATURAL JOIN t7 NATURAL JOIN t8'),
	(7, 'SELECT t1.id, t8.s FROM t1 JOIN t2 USING (id) JOIN t3 USING (id) JOIN t4 USING (id) JOIN t5 USING (id) JOIN t6 USING (id) JOIN t7 USING (id) JOIN t8 USING (id)'),
	-- outer joins, semijoins and antijoins among them
	(4, 'SELECT f.id, t1.id AS a, t2.id AS b, t3.l FROM fact f LEFT JOIN t1 ON f.d1 = t1.k LEFT JOIN t2 ON t1.s = t2.id AND t2.id < 5 LEFT JOIN t3 ON t3.id = t2.k
		LEFT JOIN t4 ON t4.id = t3.s WHERE f.id < 700'),
	(4, 'SELECT f.id, t1.id AS a FROM fact f JOIN t1 ON f.d1 = t1.k WHERE EXISTS (SELECT FROM t2 WHERE t2.k = f.d2) AND NOT EXISTS (SELECT FROM t3 WHERE t3.id = f.d3)
		AND EXISTS (SELECT FROM t4 WHERE t4.k = t1.s AND t4.id > f.d4)'),
	(5, 'SELECT count(*), sum(t2.id), min(t5.l) FROM fact f LEFT JOIN t1 ON f.d1 = t1.k JOIN t2 ON f.d2 = t2.id LEFT JOIN t3 ON t3.id = t1.id AND t3.k < f.d4
		JOIN t5 ON t5.s = f.d5 WHERE NOT EXISTS (SELECT FROM t4 WHERE t4.id = t1.k + t2.s)'),
	(3, 'SELECT t1.id, t2.id AS b, t3.id AS c, t4.id AS d FROM t1, t2, t3, t4 WHERE t1.id < t2.id AND t2.id < t3.id AND t3.id < t4.id AND t1.s + t4.s < 3'),
	(3, 'SELECT t1.id, none.id AS a FROM t1 JOIN t2 USING (k) LEFT JOIN none ON none.id = t2.id LEFT JOIN t3 ON t3.id = none.k'),
	-- keys of different types
	(3, 'SELECT t1.id, t2.id AS b, t3.id AS c, t4.id AS d FROM t1 JOIN t2 ON t1.f = t2.d JOIN t3 ON t3.ts = t2.day JOIN t4 ON t4.day = t3.ts AND t4.l = t1.s'),
	(2, 'SELECT count(*) FROM t7 JOIN t8 ON t7.day = t8.ts LEFT JOIN t9 ON t9.ts = t7.day'),
	-- all of a subquery, of a CTE, and a program that joins those of two
	(3, 'SELECT q.k, count(*) FROM (SELECT t1.k, t2.s FROM t1 JOIN t2 USING (id)) q JOIN t3 ON q.s = t3.id JOIN t4 ON t4.k = q.k GROUP BY q.k'),
	(3, 'WITH q AS (SELECT t1.k, t2.s FROM t1 JOIN t2 USING (id)) SELECT q.k, t4.id FROM q JOIN t3 ON q.s = t3.id JOIN t4 ON t4.k = q.k'),
	(3, 'SELECT q.n, r.n AS other FROM (SELECT t1.k, count(*) AS n FROM t1 JOIN t2 USING (k) GROUP BY 1) q JOIN (SELECT t3.k, count(*) AS n FROM t3 JOIN t4 USING (k) GROUP BY 1) r USING (k)'),
	-- conditions that read no relation
	(1, 'SELECT t1.id, t2.k FROM t1 JOIN t2 USING (id) WHERE (SELECT count(*) FROM t3) > 5'),
	(1, 'SELECT count(*), sum(t1.id) FROM t1 JOIN t2 USING (id) WHERE (SELECT count(*) FROM t3) < 5'),
	(2, 'SELECT t1.id, t4.s FROM t1 JOIN t2 USING (id) JOIN t4 USING (id) WHERE NOT EXISTS (SELECT FROM t3 WHERE t3.id = 100)'),
	(2, 'SELECT t1.k, count(*) FROM t1 LEFT JOIN t2 ON t1.id = t2.k AND (SELECT count(*) FROM t3) < 5 JOIN t4 ON t4.id = t1.s GROUP BY 1'),
	(1, 'SELECT t1.id, t2.id AS other FROM t1 LEFT JOIN t2 ON t1.k = t2.k WHERE EXISTS (SELECT FROM t3 WHERE t3.id = 100)'),
	(1, 'SELECT t1.id, t2.id AS other FROM t1 RIGHT JOIN t2 ON t1.k = t2.k AND (SELECT max(id) FROM t3) > 3 WHERE (SELECT max(id) FROM t4) > 3'),
	-- more than eight: the rows of as many as go drive another program
	(8, 'SELECT count(*) FROM fact f JOIN t1 ON f.d1 = t1.id JOIN t2 ON f.d2 = t2.id JOIN t3 ON f.d3 = t3.id JOIN t4 ON f.d4 = t4.id
		JOIN t5 ON f.d5 = t5.id JOIN t6 ON f.d6 = t6.id JOIN t7 ON f.d7 = t7.id JOIN t8 ON t8.id = t7.k + t6.k'),
	-- one relation is not imported
	(3, 'SELECT t1.id FROM t1 JOIN t2 USING (id) JOIN t3 USING (id) JOIN away USING (id)');
SET gpuvm.enabled = off;
CREATE TABLE expected AS SELECT n, answers(query) AS answer FROM queries;
RESET gpuvm.enabled;
SET gpuvm.require = :device;
SELECT q.query, joined(q.query), answers(q.query), e.answer FROM queries q JOIN expected e USING (n)
	WHERE (joined(q.query))[1] <> q.joins OR answers(q.query) IS DISTINCT FROM e.answer;
SELECT n, answer FROM expected ORDER BY n;
SET gpuvm.require = cpu;
EXPLAIN (COSTS OFF) SELECT f.id, t1.s, t2.l FROM fact f JOIN t1 ON f.d1 = t1.id LEFT JOIN t2 ON f.d2 = t2.id AND t2.s > t1.s
	WHERE EXISTS (SELECT FROM t3 WHERE t3.id = f.d3) AND NOT EXISTS (SELECT FROM t4 WHERE t4.k = f.d4 AND t4.id > t1.id) AND f.id < 100;

-- Full joins.
RESET gpuvm.require;
TRUNCATE queries RESTART IDENTITY;
INSERT INTO queries (joins, query) VALUES
	(1, 'SELECT t1.id, t1.k, t5.id AS other, t5.k AS k5 FROM t1 FULL JOIN t5 ON t1.k = t5.k'),
	(1, 'SELECT * FROM t1 FULL JOIN t5 USING (id, s)'),
	(1, 'SELECT t1.id, t5.id AS other FROM t1 FULL JOIN t5 ON t1.k = t5.k AND t1.id + t5.id > 20 AND t5.s < 3 AND t1.s > 1'),
	(1, 'SELECT t1.id, t5.id AS other FROM (SELECT * FROM t1 WHERE s > 1) t1 FULL JOIN (SELECT * FROM t5 WHERE l < 3) t5 ON t1.k = t5.k'),
	(1, 'SELECT t1.id, t5.id AS other FROM t1 FULL JOIN t5 ON t1.k = t5.k WHERE coalesce(t1.s, 0) + coalesce(t5.s, 0) < 4'),
	(1, 'SELECT t1.id, t5.id AS other FROM t1 FULL JOIN t5 ON t1.f = t5.d'),
	(1, 'SELECT t1.id, t5.id AS other FROM t1 FULL JOIN t5 ON t1.day = t5.ts'),
	(1, 'SELECT t1.id, none.id AS other FROM t1 FULL JOIN none USING (k)'),
	(1, 'SELECT t1.id, none.id AS other FROM none FULL JOIN t1 USING (k)'),
	(1, 'SELECT count(*), count(t1.id), count(t5.id), sum(t1.l), max(t5.d) FROM t1 FULL JOIN t5 ON t1.k = t5.k'),
	(1, 'SELECT t1.s, t5.s AS other, count(*), sum(t1.id + t5.id) FROM t1 FULL JOIN t5 ON t1.k = t5.k GROUP BY 1, 2'),
	(1, 'SELECT count(*) FROM fact f FULL JOIN t9 ON f.id = t9.id * 3'),
	(2, 'SELECT t1.id, t5.id AS b, t3.id AS c FROM t1 FULL JOIN t5 ON t1.k = t5.k FULL JOIN t3 ON t3.id = t5.s'),
	(2, 'SELECT t1.id, t5.id AS b, t3.id AS c FROM t1 FULL JOIN t5 USING (k) FULL JOIN t3 USING (k)'),
	(2, 'SELECT t1.id, t5.id AS b, t3.id AS c FROM t1 FULL JOIN t5 ON t1.k = t5.k LEFT JOIN t3 ON t3.id = t1.id AND t3.s < coalesce(t5.s, 3)'),
	(2, 'SELECT t1.id, t5.id AS b, t3.id AS c FROM t1 JOIN t3 ON t1.k = t3.k FULL JOIN t5 ON t1.s = t5.id AND t5.k < t3.s'),
	(3, 'SELECT t1.id, t5.id AS b, t3.id AS c, t4.id AS d FROM t1 LEFT JOIN t3 ON t1.k = t3.id FULL JOIN t5 ON t1.s = t5.id LEFT JOIN t4 ON t4.id = t5.k
		WHERE t4.id IS NULL OR t4.s > 0'),
	(1, 'SELECT t1.id, t5.id AS other FROM t1 FULL JOIN t5 ON t1.k = t5.k WHERE (SELECT count(*) FROM t3) < 5'),
	(2, 'SELECT t1.id, t5.id AS other FROM t1 FULL JOIN t5 ON t1.k = t5.k JOIN t3 ON t3.id = coalesce(t1.id, t5.id) WHERE (SELECT count(*) FROM t3) < 5'),
	(2, 'SELECT t1.id, t5.id AS other FROM t1 FULL JOIN t5 ON t1.k = t5.k JOIN t3 ON t3.id = coalesce(t1.id, t5.id) WHERE (SELECT count(*) FROM t3) > 5'),
	-- an inner side that is a join: the other way round, if some column of the outer one is never null
	(2, 'SELECT a.id, t1.id AS b, t3.id AS c FROM keyed a LEFT JOIN (t1 JOIN t3 ON t1.s = t3.id) ON a.k = t1.k'),
	(2, 'SELECT a.id, t1.id AS b, t3.id AS c FROM keyed a LEFT JOIN (t1 JOIN t3 ON t1.s = t3.id) ON a.k = t1.k AND a.s + t3.s > 3 WHERE a.id > 5 AND t1.id IS NULL'),
	(3, 'SELECT a.s, count(*), count(t3.id) FROM keyed a LEFT JOIN (t1 JOIN t3 ON t1.s = t3.id) ON a.k = t3.k JOIN t2 ON t2.id = a.id GROUP BY a.s'),
	(2, 'SELECT t1.id, t5.id AS b FROM t1 FULL JOIN t5 ON t1.k = t5.k WHERE NOT EXISTS (SELECT FROM t3 WHERE t3.id = t1.id + 5)'),
	(2, 'SELECT t5.k, count(*), count(t1.k) FROM t1 FULL JOIN t5 ON t1.k = t5.k WHERE EXISTS (SELECT FROM t3 WHERE t3.id = coalesce(t1.id, t5.id)) GROUP BY 1');
SET gpuvm.enabled = off;
TRUNCATE expected;
INSERT INTO expected SELECT n, answers(query) AS answer FROM queries;
RESET gpuvm.enabled;
SET gpuvm.require = :device;
SELECT q.query, joined(q.query), answers(q.query), e.answer FROM queries q JOIN expected e USING (n)
	WHERE (joined(q.query))[1] <> q.joins OR answers(q.query) IS DISTINCT FROM e.answer;
SELECT n, answer FROM expected ORDER BY n;
SET gpuvm.device = cpu;
SET gpuvm.require = cpu;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*), count(t1.id), count(t5.id) FROM t1 FULL JOIN t5 ON t1.id = t5.id + 5 AND t1.s < 5;
RESET gpuvm.device;
RESET gpuvm.require;
-- Sides that have changed.
BEGIN;
UPDATE t1 SET k = 3 WHERE id < 4;
DELETE FROM t5 WHERE id = 7;
INSERT INTO t5 SELECT * FROM small_rows(3, 6);
CREATE TEMP TABLE changed ON COMMIT DROP AS SELECT n, answers(query) AS answer FROM queries;
SET LOCAL gpuvm.enabled = off;
SELECT count(*) AS same FROM queries JOIN changed USING (n) WHERE answers(query) = answer;
ROLLBACK;

-- Ranges: a sorted table, looked up by one bound or two. PostgreSQL guesses that few rows lie between two bounds, many beyond one.
RESET gpuvm.require;
CREATE TABLE points (id int, i int, l int8, f float4, d float8, day date, ts timestamp) WITH (autovacuum_enabled = off);
INSERT INTO points SELECT i, nullif(i * 37 % 501, 7), i * 13 % 499 * 10000000000, CASE i % 50 WHEN 0 THEN 'NaN'::float4 WHEN 1 THEN '-0' WHEN 2 THEN 0 WHEN 3 THEN NULL ELSE i % 300 * 0.5 END,
	CASE i % 60 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' ELSE i % 301 * 0.5 END, date '2000-01-01' + i % 400, timestamp '2000-01-01' + i % 400 * interval '1 day'
	FROM generate_series(1, 700) i;
CREATE TABLE spans (id int NOT NULL, a int2, b int, l int8, x float8, y float8, since date, until timestamp) WITH (autovacuum_enabled = off);
INSERT INTO spans SELECT i, i * 7 % 480, i * 7 % 480 + i % 4 - 1, i * 5 % 400 * 10000000000, CASE i % 20 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN '-0' WHEN 2 THEN NULL ELSE i % 150 END,
	CASE i % 20 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN 0 ELSE i % 150 + 1 END, date '2000-01-01' + i % 380, timestamp '2000-01-02 12:00' + i % 380 * interval '1 day' FROM generate_series(1, 4000) i;
SELECT gpuvm.import('points'), gpuvm.import('spans');
ANALYZE points, spans;
CREATE FUNCTION means(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	found text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ '^ *Join: ' THEN
			found := concat_ws(', ', found, substring(line FROM 'Join: (.*?) (inner|left|semi|anti|full)'));
		END IF;
	END LOOP;
	RETURN found;
END $$;
TRUNCATE queries RESTART IDENTITY;
ALTER TABLE queries ADD means text;
INSERT INTO queries (means, query) VALUES
	('range', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON p.i BETWEEN s.a AND s.b'),
	('range', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON p.i > s.a AND s.b > p.i'),
	('range', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON p.i >= s.a AND p.i < s.b AND p.l > s.l'),
	('range', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON p.l BETWEEN s.l AND s.l + s.b'),
	('range', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON p.f BETWEEN s.x AND s.y'),
	('range', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON p.d >= s.x AND p.d < s.y'),
	('range', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON p.d > s.x AND p.d <= s.y'),
	('range', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON p.ts BETWEEN s.since AND s.until'),
	('range', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON p.day BETWEEN s.since AND s.since + 1'),
	('nested loop', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON p.day BETWEEN s.since AND s.until'),
	('range', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON p.i + 1 BETWEEN s.a AND s.b WHERE p.id > 50 AND s.id > 100'),
	('range', 'SELECT s.id, p.id AS other FROM spans s LEFT JOIN points p ON p.i BETWEEN s.a AND s.b AND p.id > s.id'),
	('range', 'SELECT s.id, p.id AS other FROM spans s LEFT JOIN points p ON p.i BETWEEN s.a AND s.b WHERE p.id IS NULL OR p.id < 500'),
	('range', 'SELECT s.id FROM spans s WHERE EXISTS (SELECT FROM points p WHERE p.i BETWEEN s.a AND s.b)'),
	('range', 'SELECT s.id FROM spans s WHERE NOT EXISTS (SELECT FROM points p WHERE p.i BETWEEN s.a AND s.b)'),
	('range', 'SELECT s.id FROM spans s WHERE EXISTS (SELECT FROM points p WHERE p.i > s.a * 100)'),
	('range', 'SELECT s.id FROM spans s WHERE NOT EXISTS (SELECT FROM points p WHERE p.d > s.x)'),
	('range', 'SELECT s.id FROM spans s WHERE EXISTS (SELECT FROM points p WHERE p.i BETWEEN s.a AND s.b AND p.l > s.l)'),
	('range, hash', 'SELECT p.id, s.id AS other, t1.l FROM points p JOIN spans s ON p.i BETWEEN s.a AND s.b LEFT JOIN t1 ON t1.id = p.id'),
	('nested loop', 'SELECT p.id, n.id AS other FROM points p JOIN none n ON p.i BETWEEN n.k AND n.s'),
	-- bounds of a difference
	('range', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON abs(p.i - s.a) < 3'),
	('range', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON 2 >= @ (s.a - p.i) AND p.l > s.l'),
	('range', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON p.i - s.b > -2 AND p.i - s.b <= 1'),
	('range', 'SELECT s.id, p.id AS other FROM spans s LEFT JOIN points p ON p.i - s.a BETWEEN 1 AND 2'),
	('range', 'SELECT s.id FROM spans s WHERE NOT EXISTS (SELECT FROM points p WHERE abs(s.a - p.i) < 1)'),
	('range', 'SELECT count(*) FROM points p JOIN spans s ON p.i - s.b > 400'),
	('nested loop', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON abs(p.l - s.l) < 20000000000'),
	('nested loop', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON abs(p.i - s.a) > 477'),
	-- one bound: a nested loop, but where pairs are only counted
	('nested loop', 'SELECT p.id, s.id AS other FROM points p JOIN spans s ON p.i < s.a AND p.id < 20'),
	('range', 'SELECT count(*) FROM points p JOIN spans s ON p.i < s.a'),
	('range', 'SELECT count(*), count(s.b) FROM points p JOIN spans s ON p.d >= s.x'),
	('range', 'SELECT count(*), sum(s.id), min(s.since) FROM points p JOIN spans s ON s.x > p.d WHERE s.b > 30'),
	('range', 'SELECT s.a % 10, count(*), max(s.l) FROM points p JOIN spans s ON p.d BETWEEN s.x AND s.y GROUP BY 1'),
	('nested loop', 'SELECT count(*) FROM points p, spans s'),
	('hash', 'SELECT count(*), sum(p.id) FROM points p JOIN spans s ON p.i = s.a'),
	('hash', 'SELECT p.id % 7, count(*), avg(p.i), bool_or(p.id > 5) FROM points p JOIN spans s ON p.i = s.a GROUP BY 1'),
	('nested loop', 'SELECT count(*), sum(p.l + s.l) FROM points p JOIN spans s ON p.i <> s.a');
SET gpuvm.enabled = off;
TRUNCATE expected;
INSERT INTO expected SELECT n, answers(query) AS answer FROM queries;
RESET gpuvm.enabled;
SET gpuvm.require = cpu;
SELECT q.query, q.means, means(q.query), answers(q.query), e.answer FROM queries q JOIN expected e USING (n)
	WHERE means(q.query) <> q.means OR answers(q.query) IS DISTINCT FROM e.answer;
SELECT n, answer FROM expected ORDER BY n;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*), sum(p.id) FROM points p JOIN spans s ON p.i BETWEEN s.a AND s.b WHERE s.id > 5;
SELECT opcode, p1, p2, p3, comment FROM gpuvm.disassemble('SELECT p.id, s.id FROM points p JOIN spans s ON p.i > s.a AND p.i <= s.b');
-- A pair that is out of range may have a difference that is out of its type's range, which PostgreSQL tells.
SET gpuvm.require = 'any';
CREATE TABLE far (id int, x int) WITH (autovacuum_enabled = off);
INSERT INTO far SELECT i, CASE i WHEN 3000 THEN 2147483647 ELSE -i END FROM generate_series(1, 3000) i;
SELECT gpuvm.import('far');
SELECT means('SELECT count(*) FROM far a JOIN spans b ON abs(a.x - b.b) < 3'), means('SELECT count(*) FROM far a JOIN far b ON abs(a.x - b.x) < 3');
SELECT count(*) FROM far a JOIN far b ON abs(a.x - b.x) < 3;
SET gpuvm.require = cpu;
SELECT count(*) FROM far a JOIN far b ON abs(a.x - b.x) < 3;

-- LIMIT ends a join early: the engine knows it, where nothing above needs more rows.
SET gpuvm.require = :device;
CREATE FUNCTION limits(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ 'VM Limit' THEN
			RETURN NEXT trim(line);
		END IF;
	END LOOP;
END $$;
SELECT limits('SELECT f.id, g.id FROM fact f, fact g LIMIT 10');
SELECT limits('SELECT f.id, g.id FROM fact f, fact g LIMIT 10 OFFSET 100');
SELECT limits('SELECT id FROM fact WHERE d1 = 5 LIMIT 3');
SELECT limits('SELECT f.d1, count(*) FROM fact f, t1 GROUP BY f.d1 ORDER BY 2 LIMIT 10');
SELECT limits('SELECT count(*) FROM fact f, t1 GROUP BY f.d1 LIMIT 10');
SELECT limits('SELECT DISTINCT f.id FROM fact f, t1 LIMIT 10');
SELECT limits('SELECT f.id, generate_series(1, f.d1) FROM fact f, t1 LIMIT 10');
SELECT limits('SELECT f.id, g.id FROM fact f, fact g LIMIT (SELECT 10)');
SELECT limits('SELECT f.id FROM fact f JOIN away ON f.id = away.id LIMIT 10');
SELECT limits('SELECT f.id FROM fact f ORDER BY f.id FETCH FIRST 3 ROWS WITH TIES');
SELECT limits('(SELECT id FROM fact UNION ALL SELECT id FROM t1) LIMIT 5');
SELECT count(*) FROM (SELECT f.id FROM fact f, fact g WHERE f.id <> g.id LIMIT 10) q;
SELECT count(*) FROM (SELECT f.id FROM fact f, fact g WHERE f.id <> g.id LIMIT 100000 OFFSET 50000) q;
SELECT count(*) FROM (SELECT f.id FROM fact f JOIN t1 ON f.d1 = t1.id LIMIT 100000) q;
SELECT count(*) FROM (SELECT f.id FROM fact f LIMIT 4999) q;
SELECT count(*) FROM ((SELECT id FROM fact UNION ALL SELECT id FROM t1) LIMIT 5005) q;
RESET gpuvm.require;

-- Partitionwise joins: the join of the whole is offered beside.
SET enable_partitionwise_join = on;
SET gpuvm.require = :device;
SELECT joined('SELECT l.v, r.w FROM left_parts l JOIN right_parts r USING (k)');
SELECT count(*), sum(l.v), sum(r.w) FROM left_parts l JOIN right_parts r USING (k);
SELECT count(*), sum(v) FROM (SELECT l.v, r.w FROM left_parts l LEFT JOIN right_parts r ON l.k = r.k AND l.v < r.w OFFSET 0) q;
RESET enable_partitionwise_join;
SELECT count(*), sum(l.v), sum(r.w) FROM left_parts l JOIN right_parts r USING (k);
RESET gpuvm.require;

-- The genetic search: programs join as much as they can of the order that it ends with.
SET geqo_threshold = 3;
SELECT joined('SELECT count(*) FROM fact f JOIN t1 ON f.d1 = t1.id JOIN t2 ON f.d2 = t2.id JOIN t3 ON f.d3 = t3.id JOIN t4 ON f.d4 = t4.id');
SELECT count(*), sum(f.v) FROM fact f JOIN t1 ON f.d1 = t1.id JOIN t2 ON f.d2 = t2.id JOIN t3 ON f.d3 = t3.id JOIN t4 ON f.d4 = t4.id;
RESET geqo_threshold;
SELECT count(*), sum(f.v) FROM fact f JOIN t1 ON f.d1 = t1.id JOIN t2 ON f.d2 = t2.id JOIN t3 ON f.d3 = t3.id JOIN t4 ON f.d4 = t4.id;
SET join_collapse_limit = 1;
SELECT joined('SELECT count(*) FROM t1 JOIN (t2 JOIN t3 ON t2.s = t3.id) ON t1.k = t2.id');
RESET join_collapse_limit;

-- Row-level security and views with a security barrier: a policy's conditions before anything that could raise for, or tell of, other rows.
CREATE TABLE secret (id int, k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO secret SELECT i, i % 10, i - 30 FROM generate_series(1, 50) i;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON secret USING (id < 20);
CREATE VIEW barrier WITH (security_barrier) AS SELECT id, k, v FROM secret WHERE id BETWEEN 5 AND 25;
CREATE ROLE joins_many_reader;
GRANT USAGE ON SCHEMA joins_many TO joins_many_reader;
GRANT SELECT ON fact, t1, t2, secret, barrier TO joins_many_reader;
SELECT gpuvm.import('secret');
SET ROLE joins_many_reader;
SET gpuvm.require = :device;
SELECT joined('SELECT t1.id FROM t1 JOIN secret s ON t1.id = 10 / s.v');
SELECT count(*) FROM t1 JOIN secret s ON t1.id = 10 / s.v;
SELECT count(*) FROM t1 JOIN secret s ON t1.id < 10 / s.v;
SELECT count(*) FROM t1 JOIN secret s ON t1.k = s.k WHERE 10 / s.v > -5;
SELECT count(*) FROM t1 LEFT JOIN secret s ON t1.k = s.k AND 10 / s.v > -5 JOIN t2 ON t2.id = t1.k;
SELECT count(*) FROM t1 WHERE EXISTS (SELECT FROM secret s WHERE s.k = t1.id AND 10 / s.v > -5);
SELECT count(*) FROM secret a JOIN secret b ON a.k = b.k AND a.id <> b.id AND 10 / (a.v + b.v + 15) > -100;
RESET gpuvm.require;
SELECT count(*) FROM t1 JOIN barrier b ON t1.k = b.k WHERE 10 / b.v > -5;
SET gpuvm.require = cpu;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM t1 JOIN secret s ON t1.id = 10 / s.v;
RESET ROLE;
RESET gpuvm.require;

-- What stays with PostgreSQL, and why.
\set ECHO none
\i tests/sql/include/why.sql
\set ECHO all
SELECT why('SELECT count(*) FROM t1 JOIN t2 USING (id) JOIN t3 USING (id) JOIN away TABLESAMPLE SYSTEM (100) USING (id)');
SELECT why('SELECT count(*) FROM t1 JOIN t2 USING (id) JOIN t3 ON cosd(t3.id) < t1.id');
SELECT joined('SELECT count(*) FROM t1 JOIN t2 USING (id) JOIN t3 ON cosd(t3.id) < t1.id');

SET client_min_messages = warning;
DROP SCHEMA joins_many CASCADE;
DROP ROLE joins_many_reader;
