-- Joins in one program: the rows that PostgreSQL joins, and no others. More relations, full joins and so on: joins_many.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
-- What programs must run on: the device under test.
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA joins;
SET search_path = joins;

-- The grid paper's tables: a key, a uniform column and two that are almost normal, as int4 and float4.
CREATE TABLE test (id int4 PRIMARY KEY, uniformi int4 NOT NULL, normali5 int4 NOT NULL, normali20 int4 NOT NULL,
	uniformf float4 NOT NULL, normalf5 float4 NOT NULL, normalf20 float4 NOT NULL) WITH (autovacuum_enabled = off);
CREATE TABLE test1 (LIKE test INCLUDING ALL) WITH (autovacuum_enabled = off);
CREATE FUNCTION paper_rows(seed int) RETURNS SETOF test LANGUAGE sql AS $$
	SELECT i, (i * 37 + seed) % 201 - 100, n5, n20, ((i * 37 + seed) % 1601 - 800) * 0.125, n5 + i % 4 * 0.25, n20 + i % 8 * 0.125
	FROM (SELECT i, (i * 7 % 11 + (i + seed) * 13 % 9 + i * 29 % 7 - 12) AS n5,
		(i * 17 % 41 + (i + seed) * 31 % 37 + i * 43 % 23 - 50) AS n20 FROM generate_series(1, 3500) i) d
$$;
INSERT INTO test SELECT * FROM paper_rows(0);
INSERT INTO test1 SELECT * FROM paper_rows(12345);

-- Small tables with every kind of key: NULLs, duplicates, skew, NaN, -0, no rows, one row.
CREATE TABLE a (id int, s int2, k int, l int8, f float4, d float8, b bool, day date, ts timestamp) WITH (autovacuum_enabled = off);
CREATE TABLE b (LIKE a) WITH (autovacuum_enabled = off);
CREATE TABLE c (LIKE a) WITH (autovacuum_enabled = off);
CREATE FUNCTION key_rows(n int, m int) RETURNS SETOF a LANGUAGE sql AS $$
	SELECT i, nullif(i % m, 2), CASE WHEN i % 3 = 0 THEN 1 ELSE nullif(i % m * 2, 6) END, nullif(i % m, 5) * 4000000000,
		CASE i % 6 WHEN 0 THEN 'NaN'::float4 WHEN 1 THEN '-0' WHEN 2 THEN 0 WHEN 3 THEN NULL ELSE i % m END,
		CASE i % 7 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN 0 WHEN 2 THEN '-0' WHEN 3 THEN NULL ELSE i % m END,
		CASE i % 3 WHEN 0 THEN true WHEN 1 THEN false END, nullif(date '2000-01-01' + i % m, '2000-01-04'),
		timestamp '2000-01-01' + i % m * interval '1 day' FROM generate_series(1, n) i
$$;
INSERT INTO a SELECT * FROM key_rows(300, 17);
INSERT INTO b SELECT * FROM key_rows(120, 29);
INSERT INTO c SELECT * FROM key_rows(40, 7);
CREATE TABLE none (LIKE a) WITH (autovacuum_enabled = off);
CREATE TABLE one (LIKE a) WITH (autovacuum_enabled = off);
INSERT INTO one SELECT * FROM key_rows(8, 7) WHERE id = 8;
-- Partitions whose columns are in another order.
CREATE TABLE parted (k int, v int8) PARTITION BY RANGE (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10) WITH (autovacuum_enabled = off);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10) TO (40) WITH (autovacuum_enabled = off);
INSERT INTO parted SELECT i % 40, i FROM generate_series(1, 200) i;
CREATE TABLE away (k int, v text) WITH (autovacuum_enabled = off);
INSERT INTO away SELECT i, 'v' || i FROM generate_series(1, 20) i;
SET client_min_messages = warning;
SELECT sum(gpuvm.import(t)) FROM unnest('{test,test1,a,b,c,none,one,parted_1,parted_2}'::regclass[]) t;
RESET client_min_messages;
ANALYZE test, test1, a, b, c, none, one, parted, away;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/joined.sql
\i tests/sql/include/answers.sql
\set ECHO all
CREATE TABLE queries (n serial, joins int, query text);

-- The paper's ten queries.
INSERT INTO queries (joins, query) VALUES
	(1, 'SELECT test.id, test1.uniformi, test.normali5 FROM test, test1 WHERE test1.uniformi > 60 AND test.normali5 < 0'),
	(1, 'SELECT test.id, test1.uniformf, test.normalf5 FROM test, test1 WHERE test1.uniformf > 60.0 AND test.normalf5 < 0.0'),
	(1, 'SELECT test.id, test.uniformi, test1.uniformi FROM test, test1 WHERE (test.id - test1.id) < 5 AND (test.id - test1.id) > -5
		AND test.uniformi > test1.uniformi'),
	(1, 'SELECT test.id, test.uniformf, test1.uniformf FROM test, test1 WHERE (test.id - test1.id) < 5 AND (test.id - test1.id) > -5
		AND test.uniformf > test1.uniformf'),
	(1, 'SELECT test.id, test1.uniformi, test.normali20 FROM test, test1 WHERE (test1.uniformi < test.normali20)
		AND (test.normali20 + 40) > (test1.uniformi - 10)'),
	(1, 'SELECT test.id, test1.uniformf, test.normalf20 FROM test, test1 WHERE (test1.uniformf < test.normalf20)
		AND (test.normalf20 + 40.0) > (test1.uniformf - 10.0)'),
	(1, 'SELECT test.id, test.normali5, test1.normali20 FROM test, test1 WHERE test.normali5 = test1.normali5
		AND test.normali5 * test1.normali20 >= -5 AND test.normali5 * test1.normali20 <= 5'),
	(1, 'SELECT test.id, test.normalf5, test1.normalf20 FROM test, test1 WHERE test.normalf5 = test1.normalf5
		AND test.normalf5 * test1.normalf20 >= -5.0 AND test.normalf5 * test1.normalf20 <= 5.0'),
	(1, 'SELECT test.id, test1.uniformi, test.normali5, test.normali20 FROM test, test1 WHERE test1.uniformi >= -1 AND test1.uniformi <= 1
		OR test.normali5 >= -1 AND test.normali5 <= 1 OR test.normali20 >= -1 AND test.normali20 <= 1'),
	(1, 'SELECT test.id, test1.uniformf, test.normalf5, test.normalf20 FROM test, test1 WHERE test1.uniformf >= -1.0
		AND test1.uniformf <= 1.0 OR test.normalf5 >= -1.0 AND test.normalf5 <= 1.0 OR test.normalf20 >= -1.0 AND test.normalf20 <= 1.0');
SET gpuvm.require = cpu;
EXPLAIN (COSTS OFF) SELECT test.id, test1.uniformi, test.normali5 FROM test, test1 WHERE test1.uniformi > 60 AND test.normali5 < 0;
EXPLAIN (COSTS OFF) SELECT count(*) FROM test, test1 WHERE test.normali5 = test1.normali5 AND test.normali5 * test1.normali20 >= -5;
RESET gpuvm.require;
-- As counts, the aggregate in the same program; and with the rows of those that have fewer.
CREATE TABLE paper AS SELECT n, regexp_replace(query, '^SELECT .* FROM test, test1', 'SELECT count(*), sum(test.id), max(test1.id) FROM test, test1') AS counted,
	query FROM queries;
TRUNCATE queries;
SET gpuvm.require = :device;
SELECT n, (joined(counted))[1], (xpath('/table/row/p/text()', query_to_xml('SELECT p::text AS p FROM (' || counted || ') p', false, false, '')))[1] AS answer
	FROM paper ORDER BY n;
SELECT n, (joined(query))[1], answers(query) FROM paper WHERE n IN (1, 3, 4, 7, 8) ORDER BY n;
RESET gpuvm.require;

-- All kinds of join, of keys and of conditions.
INSERT INTO queries (joins, query) VALUES
	(1, 'SELECT a.id, b.id FROM a JOIN b ON a.k = b.k'),
	(1, 'SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k'),
	(1, 'SELECT a.id, b.id, b.l FROM a RIGHT JOIN b ON a.k = b.k AND a.id > 20'),
	(1, 'SELECT a.* FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k)'),
	(1, 'SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k)'),
	(1, 'SELECT a.id FROM a WHERE k IN (SELECT k FROM b WHERE id > 60)'),
	(1, 'SELECT * FROM a NATURAL JOIN b'),
	(1, 'SELECT * FROM a CROSS JOIN one'),
	-- conditions beside the keys, on one side, on both, and after the join
	(1, 'SELECT a.id, b.id FROM a JOIN b ON a.k = b.k AND a.id + b.id > 100 AND a.s < b.s'),
	(1, 'SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k AND a.id + b.id > 100'),
	(1, 'SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k AND a.id > 100 AND b.id > 100'),
	(1, 'SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k WHERE coalesce(b.s, 1) = 1'),
	(1, 'SELECT a.id, a.k, b.k, b.id FROM a LEFT JOIN b ON a.k = b.k AND b.s < a.s WHERE b.l IS NULL'),
	(1, 'SELECT a.id, b.id, b.d, b.ts FROM a LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL'),
	(1, 'SELECT a.id FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k AND b.id > a.id AND b.s <> a.s)'),
	(1, 'SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k AND b.id > a.id AND b.s <> a.s)'),
	-- no key at all
	(1, 'SELECT a.id, b.id FROM a, b WHERE a.id < b.id'),
	(1, 'SELECT a.id, b.id FROM a LEFT JOIN b ON a.id < b.s'),
	(1, 'SELECT a.id FROM a WHERE EXISTS (SELECT FROM b WHERE b.s > a.id)'),
	(1, 'SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.s > a.id)'),
	(1, 'SELECT a.id, b.id FROM a JOIN b ON a.k IS NOT DISTINCT FROM b.k'),
	(1, 'SELECT a.id, b.id FROM a JOIN b ON a.ts = b.day'),
	(1, 'SELECT a.id, b.id FROM a LEFT JOIN b ON false'),
	(1, 'SELECT a.id, b.id FROM a LEFT JOIN b ON a.b'),
	(1, 'SELECT FROM a, b WHERE a.id <> b.id'),
	-- keys of every type and of two, expressions as keys, several keys
	(1, 'SELECT a.id, b.id FROM a JOIN b ON a.s = b.s'),
	(1, 'SELECT a.id, b.id FROM a JOIN b ON a.s = b.k'),
	(1, 'SELECT a.id, b.id FROM a JOIN b ON a.l = b.s'),
	(1, 'SELECT a.id, b.id FROM a JOIN b ON a.l = b.l'),
	(1, 'SELECT a.id, a.f, b.id, b.f FROM a JOIN b ON a.f = b.f'),
	(1, 'SELECT a.id, a.f, b.id, b.d FROM a JOIN b ON a.f = b.d'),
	(1, 'SELECT a.id, a.d, b.id, b.d FROM a JOIN b ON a.d = b.d'),
	(1, 'SELECT a.id, b.id FROM a JOIN b ON a.b = b.b AND a.id < 20'),
	(1, 'SELECT a.id, b.id FROM a JOIN b ON a.day = b.day'),
	(1, 'SELECT a.id, b.id FROM a JOIN b ON a.ts = b.ts'),
	(1, 'SELECT a.id, b.id FROM a JOIN b ON a.id + 1 = b.id * 2'),
	(1, 'SELECT a.id, b.id FROM a JOIN b ON a.k = b.k AND a.s = b.s AND a.d = b.d'),
	(1, 'SELECT a.id, b.id FROM a JOIN b USING (s, k, b, day, ts)'),
	(1, 'SELECT a.id, b.id FROM a LEFT JOIN b ON a.f = b.d AND a.s = b.k'),
	-- sides without rows, with one, with themselves
	(1, 'SELECT a.id, none.id FROM a LEFT JOIN none USING (k)'),
	(1, 'SELECT a.id, none.id FROM none LEFT JOIN a USING (k)'),
	(1, 'SELECT a.id FROM a JOIN none USING (k)'),
	(1, 'SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM none WHERE none.k = a.k)'),
	(1, 'SELECT a.id, one.id FROM a LEFT JOIN one ON a.s = one.s'),
	(1, 'SELECT x.id, y.id FROM a x JOIN a y ON x.k = y.s'),
	(1, 'SELECT x.id FROM a x WHERE EXISTS (SELECT FROM a y WHERE y.k = x.k AND y.id <> x.id)'),
	-- three relations
	(2, 'SELECT a.id, b.id, c.id FROM a JOIN b ON a.k = b.k JOIN c ON b.s = c.s'),
	(2, 'SELECT a.id, b.id, c.id FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k AND c.id > b.id'),
	(2, 'SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON a.k = b.k AND b.id > 50 LEFT JOIN c ON c.k = b.s'),
	(2, 'SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON a.k = b.k AND b.id > 50 JOIN c ON c.k = a.s WHERE b.id IS NULL OR b.id > c.id'),
	(2, 'SELECT a.id, c.id FROM a JOIN c ON a.s = c.s WHERE EXISTS (SELECT FROM b WHERE b.k = a.k AND b.id > c.id)'),
	(2, 'SELECT a.id, c.id FROM a JOIN c ON a.s = c.s WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k AND b.s > c.s)'),
	(2, 'SELECT a.id FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k) AND NOT EXISTS (SELECT FROM c WHERE c.s = a.s AND c.id > a.id)'),
	(2, 'SELECT a.id FROM a WHERE EXISTS (SELECT FROM b WHERE b.s = a.k AND b.b = a.b) AND EXISTS (SELECT FROM c WHERE c.l = a.k)'),
	(2, 'SELECT a.id FROM a WHERE EXISTS (SELECT FROM b WHERE b.f = a.d) AND EXISTS (SELECT FROM c WHERE c.d = a.d AND c.b = a.b)'),
	(2, 'SELECT a.id, c.id, b.l FROM a LEFT JOIN b ON b.id = a.id AND NOT b.b LEFT JOIN c ON c.id = b.id AND c.s < a.s'),
	(2, 'SELECT x.id, y.id, z.id FROM c x, c y, c z WHERE x.id < y.id AND y.id < z.id AND x.s + y.s > z.s'),
	(2, 'SELECT a.id, b.id, one.id FROM a JOIN b USING (k), one WHERE one.s <> a.s'),
	-- aggregates and groups
	(1, 'SELECT count(*), sum(a.id), min(b.l), max(b.d), avg(a.s), bool_or(b.b) FROM a JOIN b USING (k)'),
	(1, 'SELECT count(*), count(b.id), sum(b.id) FILTER (WHERE a.s < 5) FROM a LEFT JOIN b ON a.k = b.k AND b.s < 9'),
	(1, 'SELECT a.k, b.s, count(*), sum(a.id + b.id) FROM a JOIN b USING (k) GROUP BY 1, 2'),
	(1, 'SELECT b.k, count(*) FROM a LEFT JOIN b ON a.s = b.k GROUP BY b.k HAVING count(*) > 3'),
	(1, 'SELECT a.s, count(*) FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k) GROUP BY a.s'),
	(1, 'SELECT count(*) FROM none, a'),
	(1, 'SELECT a.k, count(*) FROM a JOIN none USING (k) GROUP BY a.k'),
	(1, 'SELECT CASE WHEN b.s > 5 THEN a.s END, max(a.l - b.l) FROM a JOIN b ON a.k = b.k WHERE a.l IS NOT NULL GROUP BY 1'),
	(1, 'SELECT count(*) FROM (SELECT a.s, b.s FROM a JOIN b USING (k) GROUP BY 1, 2) q'),
	(2, 'SELECT a.s, c.s, count(*), sum(b.l) FROM a JOIN b ON a.k = b.k JOIN c ON c.s = a.s GROUP BY a.s, c.s'),
	(2, 'SELECT count(*), sum(x.id * y.id), min(z.id) FROM c x, c y, c z WHERE x.id < y.id AND y.id > z.id'),
	-- partitions, and what PostgreSQL does above and beside
	(1, 'SELECT a.id, p.v FROM a JOIN parted p ON a.k = p.k'),
	(1, 'SELECT p.k, count(*) FROM parted p LEFT JOIN a ON a.k = p.v GROUP BY p.k'),
	(1, 'SELECT a.id, b.id FROM a JOIN b USING (k) ORDER BY a.id DESC, b.id LIMIT 7'),
	(2, 'SELECT * FROM (SELECT a.id, b.id AS other FROM a JOIN b USING (k)) q JOIN away ON away.k = (q.id + q.other) % 20'),
	(2, 'SELECT (SELECT count(*) FROM a JOIN b USING (k) WHERE a.id < c.id) FROM c JOIN one ON one.s <= c.s'),
	(2, 'SELECT a.id FROM a JOIN b USING (k) UNION ALL SELECT count(*) FROM b JOIN c USING (s)'),
	(1, 'SELECT a.id, b.id FROM a JOIN b USING (k) WHERE a.id > (SELECT avg(id)::int FROM c) AND b.id < (SELECT max(id) FROM c)'),
	-- columns that are read first where few rows or none go, and then by all
	(1, 'SELECT max(100 / b.s) FILTER (WHERE a.id = -1), sum(b.s), min(b.s) FROM a JOIN b USING (k)'),
	(1, 'SELECT sum(a.id / b.s) FILTER (WHERE a.id < 3 AND b.s > 0), max(b.s), sum(a.s) FILTER (WHERE a.s > 1) FROM a LEFT JOIN b USING (k)'),
	(1, 'SELECT a.k, sum(CASE WHEN a.id = -1 THEN a.id / a.s WHEN a.id = -2 THEN b.id / b.s ELSE b.s END), min(a.s), max(b.s) FROM a FULL JOIN b USING (k) GROUP BY a.k'),
	(1, 'SELECT a.id, CASE WHEN a.id = -1 THEN a.k / b.s END, b.s, b.s + a.s FROM a JOIN b USING (k)'),
	(2, 'SELECT max(100 / b.s) FILTER (WHERE a.id = -1), sum(b.s), sum(c.s) FROM a JOIN b USING (k) JOIN c ON c.s = a.s AND c.id > 7 / (b.s + 10)');
SET gpuvm.enabled = off;
CREATE TABLE expected AS SELECT n, answers(query) AS answer FROM queries;
RESET gpuvm.enabled;
SET gpuvm.require = :device;
SELECT q.query, (joined(q.query))[1], answers(q.query), e.answer FROM queries q JOIN expected e USING (n)
	WHERE (joined(q.query))[1] <> q.joins OR answers(q.query) IS DISTINCT FROM e.answer;
SELECT n, answer FROM expected ORDER BY n;

-- Changed tables: on either side, on both, and a join that sees what it has changed itself.
RESET gpuvm.require;
UPDATE a SET k = 4, f = -f WHERE id % 50 = 3;
DELETE FROM b WHERE id BETWEEN 10 AND 12;
INSERT INTO b SELECT * FROM key_rows(8, 5);
\set ECHO none
\i tests/sql/include/differs.sql
\set ECHO all
SELECT * FROM differs(:'device');
BEGIN;
UPDATE c SET s = s + 1 WHERE id < 5;
INSERT INTO a SELECT * FROM key_rows(40, 11);
SELECT * FROM differs(:'device');
ROLLBACK;
SELECT * FROM differs(:'device');
SELECT gpuvm.refresh('a'), gpuvm.refresh('b');
SET gpuvm.require = :device;

-- Parameters, generic plans, rescans, cursors, LIMIT.
SET plan_cache_mode = force_generic_plan;
PREPARE p (int, int8) AS SELECT count(*), sum(a.id), sum(b.id) FROM a JOIN b ON a.k = b.k AND a.id + $1 > b.id WHERE b.l <= $2;
EXECUTE p (0, 40000000000);
EXECUTE p (-50, 0);
EXECUTE p (NULL, 0);
PREPARE gate (int) AS SELECT count(*) FROM a JOIN b ON a.k = b.k WHERE $1 = 5;
EXECUTE gate (5);
EXECUTE gate (4);
RESET plan_cache_mode;
SELECT c.id, (SELECT count(*) FROM a JOIN b USING (k) WHERE a.id < c.id AND b.s < 9) FROM c WHERE c.id < 6 ORDER BY 1;
SELECT c.id, q.* FROM c, LATERAL (SELECT a.id, b.id AS other FROM a JOIN b USING (k) WHERE a.id = c.id ORDER BY 1, 2 LIMIT 2) q WHERE c.id < 4 ORDER BY 1, 2, 3;
SELECT count(*) FROM (SELECT a.id FROM test a, test1 b LIMIT 10) q;
SELECT count(*) FROM (SELECT a.id FROM test a, test1 b OFFSET 12249990) q;
SELECT EXISTS (SELECT FROM test a, test1 b WHERE a.id > b.id), EXISTS (SELECT FROM test a, test1 b WHERE a.id + b.id < 2);
\set QUIET off
BEGIN;
DECLARE pairs CURSOR FOR SELECT a.id, b.id FROM test a, test1 b WHERE a.id <> b.id;
MOVE 100000 IN pairs;
DECLARE groups CURSOR FOR SELECT a.s, count(*) FROM a JOIN b USING (k) GROUP BY a.s ORDER BY a.s;
FETCH 2 FROM groups;
MOVE 100000 IN pairs;
FETCH 1 FROM groups;
MOVE ALL IN pairs;
COMMIT;
\set QUIET on

SET gpuvm.require = cpu;
-- Errors: PostgreSQL's own before the first row; a program's errors count for pairs that are left.
SELECT a.id FROM a JOIN b USING (k) WHERE 10 / (a.id - 7) > b.id - 1000;
SELECT count(*) FROM a JOIN b USING (k) WHERE 10 / (a.id - 7) > b.id - 1000;
SELECT count(*) FROM a JOIN b ON a.k = b.k AND 10 / (a.id - b.id) > 0;
SELECT count(*) FROM a JOIN b ON a.k = 10 / (b.id - 40);
SELECT count(*) FROM a JOIN b ON a.id = b.id + 1 AND 10 / (a.id - b.id) > 0;
SELECT count(*) FROM a LEFT JOIN b ON a.k = b.k AND CASE WHEN a.id <> b.id THEN 10 / (a.id - b.id) > 0 END;
-- After the first rows there is no way back: the SQLSTATE is PostgreSQL's. Many threads come to the error at once, before there are rows.
\set QUIET off
BEGIN;
SET LOCAL gpuvm.threads = 2;
DECLARE raising CURSOR FOR SELECT a.id FROM test a, test1 b WHERE b.id / (a.id - 3400) IS NOT NULL;
MOVE 1 IN raising;
MOVE ALL IN raising;
ROLLBACK;
\set QUIET on

-- What stays with PostgreSQL, and why.
RESET gpuvm.require;
\set ECHO none
\i tests/sql/include/why.sql
\set ECHO all
SELECT why('SELECT count(*) FROM a JOIN away TABLESAMPLE SYSTEM (100) USING (k)');
SELECT why('SELECT count(*) FROM a JOIN b ON a.k = b.k AND cosd(a.id) < b.id');
SELECT why('SELECT a.id FROM a JOIN b ON a.k = b.k AND a.ctid <> b.ctid');
SELECT why('SELECT a FROM a JOIN b ON a.k = b.k');
SELECT why('SELECT a.id, q.x FROM a LEFT JOIN (SELECT k, coalesce(10 / s, 5) AS x FROM b) q ON a.k = q.k');
SELECT why('SELECT a.id FROM a JOIN b USING (k) FOR UPDATE OF a');
SELECT why('UPDATE a SET s = b.s FROM b WHERE a.k = b.k');
SELECT why('SELECT a.id FROM a JOIN LATERAL (SELECT max(b.id) AS m FROM b WHERE b.k > a.k) q ON q.m > a.id');
SELECT why('SELECT count(*) FROM a JOIN b USING (k)');
RESET gpuvm.force;
SELECT why('SELECT count(*) FROM a JOIN away TABLESAMPLE SYSTEM (100) USING (k) WHERE a.id = 1');
SET gpuvm.force = on;
-- What EXPLAIN shows.
SET gpuvm.require = cpu;
EXPLAIN (COSTS OFF) SELECT x.id, b.id, c.id FROM a x LEFT JOIN b ON x.k = b.k AND b.id > x.id AND b.s < 5 JOIN c ON c.s = x.s
	WHERE x.id > 3 AND coalesce(b.s, 0) < 4;
EXPLAIN (COSTS OFF) SELECT a.s, count(*) FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k > a.k) GROUP BY a.s;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM test, test1 WHERE test.normali5 = test1.normali5 AND test1.id < 3000;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM test, test1 WHERE test.normali5 <> test1.normali20 AND test1.id < 3000;
-- Of many equal keys EXISTS looks at a few, and at more only if none of these will do.
CREATE FUNCTION pairs(query text) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Pairs: ' THEN
			RETURN substring(line FROM 'Pairs: (.*)');
		END IF;
	END LOOP;
	RETURN NULL;
END $$;
SELECT pairs('SELECT count(*) FROM test x WHERE EXISTS (SELECT FROM test1 y WHERE y.normali5 = x.normali5 AND y.id <> x.id)') < 5 * 3500 AS few,
	pairs('SELECT count(*) FROM test x WHERE NOT EXISTS (SELECT FROM test1 y WHERE y.normali5 = x.normali5 AND y.id <> x.id)') < 5 * 3500 AS few_too,
	pairs('SELECT count(*) FROM test x WHERE EXISTS (SELECT FROM test1 y WHERE y.id > 5 AND x.id > 0)') AS none;
SELECT count(*) FROM test x WHERE EXISTS (SELECT FROM test1 y WHERE y.normali5 = x.normali5 AND x.id + y.id > 6900);
SELECT count(*) FROM test x WHERE NOT EXISTS (SELECT FROM test1 y WHERE y.normali5 = x.normali5 AND x.id + y.id IN (3501, 3400));
SELECT count(*) FROM test x WHERE EXISTS (SELECT FROM none y WHERE x.id > 0);
SELECT count(*) FROM test x WHERE NOT EXISTS (SELECT FROM none y);
SELECT opcode, p1, p2, p3, comment FROM gpuvm.disassemble('SELECT test.id, test1.uniformi, test.normali5 FROM test, test1 WHERE test1.uniformi > 60 AND test.normali5 < 0');
SELECT opcode, p1, p2, p3, comment FROM gpuvm.disassemble('SELECT b.id, sum(a.l) FROM a LEFT JOIN b ON a.k = b.k AND b.s > 3 AND a.id > b.id WHERE a.s < 3 GROUP BY b.id');
RESET gpuvm.require;

SET client_min_messages = warning;
DROP SCHEMA joins CASCADE;
