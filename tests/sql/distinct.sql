-- DISTINCT aggregates: a program for each argument, whose groups are counted or aggregated by a second one.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA distinct_aggregates;
SET search_path = distinct_aggregates;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/ask.sql
\set ECHO all

CREATE TABLE t (id int, g int, h text, s int2, i int4, l int8, f float8, r float4, n numeric(10,2), b bool, c text, d date, ts timestamptz, u uuid, o oid) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT k, nullif(k % 7, 6), (ARRAY['x', 'y', NULL])[k % 3 + 1], nullif(k % 11, 3), nullif(k * 7919 % 1009, 5), k * 104729::int8 % 10007 - 5000, nullif(k % 13, 4) * 0.25, k % 5 * 1.5, (k % 313) / 100.0,
	CASE k % 3 WHEN 0 THEN true WHEN 1 THEN false END, nullif('w' || k % 123, 'w7'), date '2020-01-01' + k % 400, timestamptz '2024-01-01 00:00+00' + k % 97 * interval '1 hour', md5((k % 17)::text)::uuid, k % 29 FROM generate_series(1, 5000) k;
INSERT INTO t (id) VALUES (0), (0);
CREATE TABLE other (id int, g int, c text, v int) WITH (autovacuum_enabled = off);
INSERT INTO other SELECT k, k % 5, 'w' || k % 50, k % 77 FROM generate_series(1, 3000, 2) k;
CREATE TABLE empty (LIKE t) WITH (autovacuum_enabled = off);
SELECT gpuvm.import('t'), gpuvm.import('other'), gpuvm.import('empty');
ANALYZE t, other;

-- Without GROUP BY a count is the number of groups.
SELECT * FROM ask_each('SELECT %s FROM t', 'count(DISTINCT id)', 'count(DISTINCT s)', 'count(DISTINCT i)', 'count(DISTINCT l)', 'count(DISTINCT f)', 'count(DISTINCT r)', 'count(DISTINCT n)', 'count(DISTINCT b)', 'count(DISTINCT c)',
	'count(DISTINCT d)', 'count(DISTINCT ts)', 'count(DISTINCT u)', 'count(DISTINCT o)', 'count(DISTINCT i + s)', 'count(DISTINCT upper(c))', 'count(DISTINCT n * 2)', 'count(DISTINCT CASE WHEN b THEN i END)', 'count(DISTINCT 1)', 'count(DISTINCT NULL::int)');
SELECT * FROM ask_each('SELECT %s FROM t', 'count(DISTINCT i) FILTER (WHERE g > 2)', 'count(DISTINCT i) FILTER (WHERE false)', 'count(DISTINCT c) FILTER (WHERE h = $$x$$ AND b)', 'count(DISTINCT i), count(DISTINCT c), count(*), sum(l)',
	'count(DISTINCT i), count(DISTINCT i) FILTER (WHERE b), count(i)', 'count(DISTINCT i) * 2 + count(DISTINCT c)', 'count(DISTINCT i), max(DISTINCT i), min(DISTINCT c), bool_or(DISTINCT b)');
SELECT * FROM ask_each('SELECT count(DISTINCT i), count(DISTINCT c) FROM t WHERE %s', 'g = 2', 'i IS NULL', 'false', 'id < 0', 'c LIKE $$w1%%$$ AND NOT b', 'id = (SELECT max(id) FROM other)');
SELECT * FROM ask_each('SELECT %s FROM empty', 'count(DISTINCT i)', 'count(DISTINCT i), sum(DISTINCT i), count(*)', 'sum(DISTINCT i), avg(DISTINCT n)');
-- Sums of different values.
SELECT * FROM ask_each('SELECT %s FROM t', 'sum(DISTINCT s)', 'sum(DISTINCT i), avg(DISTINCT i)', 'sum(DISTINCT l), avg(DISTINCT l), count(DISTINCT l)', 'sum(DISTINCT n), avg(DISTINCT n)', 'sum(DISTINCT f), avg(DISTINCT r)', 'stddev(DISTINCT i), var_pop(DISTINCT n)',
	'variance(DISTINCT l)', 'bit_xor(DISTINCT i), bit_and(DISTINCT i), bit_or(DISTINCT s)', 'every(DISTINCT b)', 'sum(DISTINCT i) FILTER (WHERE g = 1), sum(i) FILTER (WHERE g = 1)', 'sum(DISTINCT i % 10), count(*)');
-- With GROUP BY.
SELECT * FROM ask_each('SELECT g, %s FROM t GROUP BY g', 'count(DISTINCT i)', 'count(DISTINCT c)', 'count(DISTINCT i), sum(DISTINCT i), avg(DISTINCT i)', 'count(DISTINCT i), count(*)', 'count(DISTINCT c), count(DISTINCT d), count(DISTINCT n), sum(l)', 'count(DISTINCT g)',
	'sum(DISTINCT n), max(c)', 'count(DISTINCT i) FILTER (WHERE id < 30)', 'count(DISTINCT i) FILTER (WHERE id < 3), sum(DISTINCT i) FILTER (WHERE id < 3), count(DISTINCT c)', 'max(DISTINCT c), count(DISTINCT c)', 'count(DISTINCT f), count(DISTINCT u)');
SELECT * FROM ask('SELECT h, b, count(DISTINCT i), count(*) FROM t GROUP BY h, b');
SELECT * FROM ask('SELECT upper(h), count(DISTINCT lower(c)), count(DISTINCT substr(c, 2, 1)) FROM t GROUP BY upper(h)');
SELECT * FROM ask('SELECT n, d, count(DISTINCT i), count(DISTINCT c), count(*) FROM t GROUP BY n, d');
SELECT * FROM ask('SELECT f, count(DISTINCT i), count(*) FROM t GROUP BY f');
SELECT * FROM ask('SELECT g, count(DISTINCT i) FROM t GROUP BY g HAVING count(DISTINCT i) > 600 AND count(*) > 700');
SELECT * FROM ask('SELECT g FROM t GROUP BY g ORDER BY count(DISTINCT c), g LIMIT 3');
SELECT * FROM ask('SELECT g, count(DISTINCT i) FROM empty GROUP BY g');
SELECT * FROM ask('SELECT sum(cd), count(*) FROM (SELECT g, h, count(DISTINCT i) cd FROM t GROUP BY g, h) q');
SELECT * FROM ask('SELECT count(*) FROM (SELECT g, count(DISTINCT i) FROM t GROUP BY g) q');
-- Over joins.
SELECT * FROM ask('SELECT count(DISTINCT t.i), count(DISTINCT o.c) FROM t JOIN other o USING (id)');
SELECT * FROM ask('SELECT o.g, count(DISTINCT t.i), count(DISTINCT o.v), count(*) FROM t JOIN other o USING (id) GROUP BY o.g');
SELECT * FROM ask('SELECT t.g, count(DISTINCT o.v), count(DISTINCT t.i) FILTER (WHERE o.v IS NULL) FROM t LEFT JOIN other o ON o.id = t.id AND o.v < 40 GROUP BY t.g');
SELECT * FROM ask('SELECT count(DISTINCT t.i) FROM t WHERE EXISTS (SELECT FROM other o WHERE o.id = t.id AND o.v < 10)');
SELECT * FROM ask('SELECT count(DISTINCT t.i), count(DISTINCT o.v) FROM (SELECT * FROM t WHERE g = 1) t FULL JOIN other o ON o.id = t.id');

-- What stays with PostgreSQL, and why.
SELECT * FROM ask_each('SELECT %s FROM t', 'count(DISTINCT (i, s))', 'count(DISTINCT i ORDER BY i)', 'array_agg(DISTINCT b)', 'count(DISTINCT c COLLATE "C")', 'string_agg(DISTINCT h, $$,$$)');
-- A key that is -0 and 0: which of the two is shown, the machine does not know; counted, they are one.
CREATE TABLE zeroes (g int, f float8, r float4) WITH (autovacuum_enabled = off);
INSERT INTO zeroes VALUES (1, 0, '-0'), (1, '-0', 0), (1, 'NaN', 'NaN'), (1, 'NaN', 'NaN'), (2, '-0', 'inf'), (2, NULL, '-inf');
SELECT gpuvm.import('zeroes');
SELECT * FROM ask_each('SELECT %s FROM zeroes', 'count(DISTINCT f), count(DISTINCT r)', 'sum(DISTINCT f) FILTER (WHERE f = 0)');
SELECT * FROM ask('SELECT g, count(DISTINCT f), count(DISTINCT r), count(*) FROM zeroes GROUP BY g');
SELECT * FROM ask('SELECT f, count(DISTINCT g), count(*) FROM zeroes GROUP BY f');
-- An error of any program is PostgreSQL's to raise, or not to.
SELECT * FROM ask('SELECT count(*), count(DISTINCT 1 / (i - 7)) FROM t');
SELECT * FROM ask('SELECT count(*), count(DISTINCT 1 / (i - 7)) FILTER (WHERE i <> 7) FROM t');
SELECT * FROM ask('SELECT g, sum(l), sum(DISTINCT 1 / (i - 7)) FROM t GROUP BY g');
SELECT * FROM ask('SELECT stddev(DISTINCT l * 1000000) FROM t');

-- Changed rows are in all programs.
BEGIN;
INSERT INTO t (id, g, i, c) SELECT k, 3, 100000 + k % 10, 'new' || k % 3 FROM generate_series(1, 40) k;
DELETE FROM t WHERE id % 2 = 0;
SELECT * FROM ask('SELECT g, count(DISTINCT i), count(DISTINCT c), count(*) FROM t GROUP BY g');
SELECT * FROM ask('SELECT count(DISTINCT i), count(DISTINCT c) FROM t');
ROLLBACK;
-- Prepared, again and again, and with a parameter that changes from row to row.
PREPARE p(int, text) AS SELECT g, count(DISTINCT i + $1), count(DISTINCT c) FILTER (WHERE c > $2), count(*) FROM t WHERE id > $1 GROUP BY g ORDER BY g;
SET plan_cache_mode = force_generic_plan;
SET gpuvm.require = 'vm';
EXECUTE p(4900, 'w5');
EXECUTE p(4990, 'w9');
SELECT v.x, (SELECT count(DISTINCT i) * 1000 + count(DISTINCT c) FROM t WHERE g = v.x) FROM (VALUES (1), (2), (NULL), (1), (9)) v(x) ORDER BY v.x;
BEGIN;
DECLARE cur CURSOR FOR SELECT g, count(DISTINCT i), sum(DISTINCT s) FROM t GROUP BY g ORDER BY g;
FETCH 2 FROM cur;
INSERT INTO t (id, g, i) VALUES (-1, 2, -1);
FETCH ALL FROM cur;
ROLLBACK;
RESET gpuvm.require;
RESET plan_cache_mode;

-- What EXPLAIN shows.
EXPLAIN (COSTS OFF) SELECT count(DISTINCT i) FROM t WHERE g = 1;
EXPLAIN (COSTS OFF) SELECT g, count(DISTINCT i) FROM t GROUP BY g;
EXPLAIN (COSTS OFF) SELECT o.g, count(DISTINCT t.i), count(DISTINCT o.v) FILTER (WHERE t.b), count(*) FROM t JOIN other o USING (id) GROUP BY o.g;
EXPLAIN (COSTS OFF, VERBOSE) SELECT g, count(*), sum(DISTINCT i) FROM t GROUP BY g;
CREATE FUNCTION explained(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		CONTINUE WHEN line !~ 'Program \d|VM Rows|^ *Fallback|Custom';
		RETURN NEXT line;
	END LOOP;
END $$;
SELECT * FROM explained('SELECT g, count(*), count(DISTINCT i) FROM t GROUP BY g');
SELECT opcode, p1, p2, p3 FROM gpuvm.disassemble('SELECT count(*), sum(DISTINCT i) FROM t');

-- Leaves of a partitioned table are read as one.
CREATE TABLE parted (k int, g int, v int) PARTITION BY RANGE (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000) WITH (autovacuum_enabled = off);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (1000) TO (3000) WITH (autovacuum_enabled = off);
INSERT INTO parted SELECT k, k % 4, k % 37 FROM generate_series(0, 2999) k;
SELECT gpuvm.import('parted_1'), gpuvm.import('parted_2');
SELECT * FROM ask('SELECT g, count(DISTINCT v), count(*) FROM parted GROUP BY g');
SELECT * FROM ask('SELECT count(DISTINCT v), count(DISTINCT k) FROM parted WHERE k < 1500');

-- Every aggregate that PostgreSQL answers for random filters.
SELECT count(*), bool_and(equal) AS equal, string_agg(DISTINCT "by", ', ') AS "by" FROM generate_series(1, 40) k, ask(format(
	'SELECT %s, count(DISTINCT i) FILTER (WHERE id %% %s = 0), count(DISTINCT c), sum(DISTINCT s + %s), count(*) FILTER (WHERE i > %s) FROM t WHERE l > %s GROUP BY 1',
	(ARRAY['g', 'h', 's', 'd', 'b'])[k % 5 + 1], k + 1, k, k * 20, k * 250 - 5000));

DROP SCHEMA distinct_aggregates CASCADE;
