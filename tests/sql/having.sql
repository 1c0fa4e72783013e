-- HAVING within the engine: a second program hands on the groups that pass, before they are sorted, limited or handed out.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA group_having;
SET search_path = group_having;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/ask_many.sql
-- What the plan says of groups, and how many came out.
CREATE FUNCTION shown(query text, OUT line text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		line := trim(replace(line, '->  ', ''));
		IF line ~ '^(VM Group|VM Program|VM Sort|VM Limit|VM Rows Out|Fallback)' THEN
			RETURN NEXT;
		END IF;
	END LOOP;
END $$;
\set ECHO all

CREATE TABLE sale (id int PRIMARY KEY, a int, b int2, l int8, n numeric(9, 2), d float8, f float4, t text, day date, at timestamptz, flag bool, wide numeric(18, 0)) WITH (autovacuum_enabled = off);
INSERT INTO sale SELECT k, k * 31 % 700, nullif(k % 9, 4), nullif(k::int8 * 7919 % 5000000000 - 2500000000, 5), (k % 4001 - 2000) / 4.0, CASE WHEN k % 701 = 0 THEN 'NaN' ELSE (k % 4001 - 2000) / 4.0 END, nullif(k % 50, 3) / 4.0,
	nullif((ARRAY['pear', 'apple', 'fig', 'plum', 'kiwi', 'none'])[1 + k % 6], 'none'), date '2020-01-01' + k % 40, timestamptz '2020-01-01 00:00+00' + k * interval '1 hour', nullif(k % 3, 1) = 0, 900000000000000000 + k FROM generate_series(1, 20000) k;
CREATE TABLE place (id int, name text, region int) WITH (autovacuum_enabled = off);
INSERT INTO place SELECT k, 'place ' || k % 23, nullif(k % 5, 4) FROM generate_series(0, 800) k;
CREATE TABLE empty (LIKE sale) WITH (autovacuum_enabled = off);
CREATE TABLE parts (k int, v int) PARTITION BY LIST (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1, 2) WITH (autovacuum_enabled = off);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (3, 4) WITH (autovacuum_enabled = off);
INSERT INTO parts SELECT 1 + i % 4, i % 777 FROM generate_series(1, 5000) i;
ANALYZE;
SELECT gpuvm.import('sale'), gpuvm.import('place'), gpuvm.import('empty'), gpuvm.import('parts');

-- Few of the groups come out.
SET gpuvm.require = vm;
SELECT * FROM shown('SELECT a, sum(n), avg(n) FROM sale GROUP BY a HAVING sum(n) > 600');
SELECT a, sum(n), avg(n), min(t), stddev(l), max(f), bool_or(flag) FROM sale GROUP BY a HAVING sum(n) > 690 ORDER BY a;
SELECT * FROM shown('SELECT t, b, count(*) FROM sale GROUP BY t, b HAVING count(*) > 1000000');
-- Sorted, and the first of them.
SELECT * FROM shown('SELECT a, sum(n), avg(n) FROM sale GROUP BY a HAVING count(flag) BETWEEN 19 AND 20 ORDER BY sum(n) DESC, a LIMIT 3');
SELECT a, sum(n), avg(n) FROM sale GROUP BY a HAVING count(flag) BETWEEN 19 AND 20 ORDER BY sum(n) DESC, a LIMIT 3;
-- What no program can ask is asked of the groups that are left; then LIMIT is PostgreSQL's.
SELECT * FROM shown('SELECT a, sum(n) FROM sale GROUP BY a HAVING avg(n) > 0 AND sum(n) < 100 ORDER BY sum(n) LIMIT 3');
SELECT a, sum(n) FROM sale GROUP BY a HAVING avg(n) > 0 AND sum(n) < 100 ORDER BY sum(n), a LIMIT 3;
-- Behind what may raise an error nothing is asked before it.
SELECT * FROM shown('SELECT a FROM sale GROUP BY a HAVING 1 / (avg(n) + 1000000) > 0 AND sum(n) + 1 - 1 + 1 > 601');
-- A join below, partitions, another plan's rows, and the program.
SELECT * FROM shown('SELECT p.region, s.a, sum(s.n) FROM place p JOIN sale s ON s.a = p.id WHERE p.name <> ''place 3'' GROUP BY p.region, s.a HAVING sum(s.n) > 600 AND p.region IS NOT NULL');
SELECT * FROM shown('SELECT v, count(*) FROM parts GROUP BY v HAVING count(*) > 6');
SELECT * FROM shown('SELECT x, count(*) FROM (SELECT a % 100 AS x FROM sale ORDER BY id LIMIT 10000) s GROUP BY x HAVING count(*) > 100');
SELECT opcode, p1, p2, p3, p4, comment FROM gpuvm.disassemble('SELECT a, avg(n), max(t) FROM sale GROUP BY a HAVING sum(n) > 600 AND max(day) > date ''2020-02-01''');
-- An initial plan's value, a condition from above a subquery, and groups that another program reads.
SET gpuvm.device = cpu;
SELECT * FROM shown('SELECT a, sum(n) FROM sale GROUP BY a HAVING sum(n) > (SELECT sum(n) * 0.001 + 650 FROM sale WHERE b = 3)');
RESET gpuvm.device;
SELECT a, sum(n) FROM sale GROUP BY a HAVING sum(n) > (SELECT sum(n) * 0.001 + 650 FROM sale WHERE b = 3) ORDER BY a;
SELECT * FROM shown('SELECT * FROM (SELECT a, sum(n) AS s FROM sale GROUP BY a) q WHERE s = (SELECT max(s) FROM (SELECT sum(n) AS s FROM sale GROUP BY a) r)') ORDER BY line;
SELECT * FROM shown('SELECT c, count(*) FROM (SELECT a, count(*) AS c FROM sale GROUP BY a HAVING sum(n) > 600) s GROUP BY c HAVING count(*) > 1');
SELECT * FROM shown('SELECT count(*) FROM (SELECT a FROM sale GROUP BY a HAVING sum(n) > 600) s');
-- Not with several programs, and not of one group.
SELECT * FROM shown('SELECT a, count(DISTINCT b) FROM sale GROUP BY a HAVING sum(n) > 690');
SELECT * FROM shown('SELECT a, t, count(*) FROM sale GROUP BY GROUPING SETS ((a), (t)) HAVING sum(n) > 690');
SELECT * FROM shown('SELECT count(*) FROM sale HAVING count(*) > 5');
-- A sum of more than 64 bits: all groups come out, and PostgreSQL looks at them. So it is if only the output has such a sum, or a parameter is no number of 64 bits.
SELECT * FROM shown('SELECT b, sum(wide) FROM sale GROUP BY b HAVING sum(wide) > 2000000000000000000000 ORDER BY b DESC LIMIT 2');
SELECT * FROM shown('SELECT b, sum(wide) FROM sale GROUP BY b HAVING sum(wide) > 2000000000000000000 ORDER BY b DESC LIMIT 2');
SELECT b, sum(wide) FROM sale GROUP BY b HAVING sum(wide) > 2000000000000000000000 ORDER BY b DESC LIMIT 2;
-- The session remembers that.
SELECT * FROM shown('SELECT b, sum(wide) FROM sale GROUP BY b HAVING sum(wide) > 2000000000000000000 ORDER BY b DESC LIMIT 2');
-- An error of a group that is not among the first.
SELECT a, count(*) FROM sale GROUP BY a HAVING 1 / (max(a) - (SELECT max(a) FROM sale)) <= 0 ORDER BY a LIMIT 2;
SELECT * FROM shown('SELECT b, sum(wide) FROM sale GROUP BY b HAVING count(*) > 2222 ORDER BY count(*), b LIMIT 1');
SELECT b, sum(wide), count(*) FROM sale GROUP BY b HAVING count(*) > 2222 ORDER BY count(*), b LIMIT 1;
SELECT a, sum(wide) FROM sale WHERE id < 8000 AND a < 5 GROUP BY a HAVING sum(wide) > 0 ORDER BY a;
RESET gpuvm.require;

-- Answers.
INSERT INTO queries (query) SELECT format('SELECT a, count(*), avg(n), max(l), sum(d), min(t) FROM sale GROUP BY a HAVING %s', h) FROM unnest(ARRAY['sum(n) > 100', 'sum(n) = 717.75', 'sum(b) > 110', 'sum(b) IS NULL', 'sum(l) < 0', 'NOT (sum(l) < 0)', 'min(b) = 0 OR max(l) > 2400000000',
	'max(n) >= 400.25', 'sum(d) > 100', 'sum(d) = ''NaN''', 'max(f) < 12', 'sum(f) > 100', 'bool_and(flag)', 'bool_or(flag) IS NOT TRUE', 'bit_or(b) = 15', 'max(day) > ''2020-01-30''', 'max(day) - min(day) > 30', 'max(at) > ''2022-01-01 00:00+01''', 'extract(hour FROM max(at)) = 5', 'count(l) <> count(*)',
	'a % 7 = 3 AND count(*) > 28', 'a IS NULL', 'sum(n) + sum(b) > 200', 'sum(n) * 2 < count(*)', 'CASE WHEN count(*) > 28 THEN sum(n) > 0 ELSE max(id) % 2 = 0 END', 'sum(n) IN (100, 717.75, -312.75)', 'coalesce(sum(b), 0) > 100', 'sum(n) > 100.001', 'avg(d) > 1', 'min(t) = ''fig''', 'sum(n) > 100 AND min(t) = ''apple'' AND count(*) > 20',
	'sum(n) BETWEEN 0 AND 50 AND avg(n) < 1', 'count(*) FILTER (WHERE flag) > 9', 'stddev(n) > 300 AND sum(n) < 0', 'variance(b) IS NOT NULL AND count(b) = 25', 'true', 'false', 'NULL', 'random() < 2 AND sum(n) > 0', '''2020-01-01''::date < current_date AND sum(n) > 0']) h;
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['t, b, sum(n) FROM sale GROUP BY t, b HAVING sum(n) > 0', 't, max(t), count(*) FROM sale GROUP BY t HAVING count(*) > 3333', 'b, at, count(*) FROM sale GROUP BY b, at HAVING max(id) % 100 = 3', 'd, f, count(*) FROM sale GROUP BY d, f HAVING count(*) = 1', 'id, t, n FROM sale GROUP BY id HAVING max(n) > 499', 'b, stddev(d) > 0, corr(d, f) < 2, avg(f) FROM sale WHERE d <> ''NaN'' GROUP BY b HAVING count(*) > 2221',
	'a, count(*) FROM empty GROUP BY a HAVING count(*) > 0', 'a, sum(n) FROM empty GROUP BY a HAVING sum(n) > (SELECT 5)', 'a, a + 1 FROM sale GROUP BY a HAVING sum(n) > 0 OR a < 5', 'DISTINCT a % 10 FROM sale GROUP BY a HAVING count(*) > 28', 'a % 10 AS x, sum(sum(n)) OVER (ORDER BY a % 10) FROM sale GROUP BY a % 10 HAVING sum(n) > 0',
	'p.name, count(*), sum(s.n) FROM place p LEFT JOIN sale s ON s.a = p.id GROUP BY p.name HAVING sum(s.n) > 0', 'p.id, count(s.id) FROM place p LEFT JOIN sale s ON s.a = p.id AND s.b > 2 GROUP BY p.id HAVING count(s.id) = 0', 'v, count(*) FROM parts WHERE k < 4 GROUP BY v HAVING count(*) > 5',
	'a FROM sale WHERE a IN (SELECT a FROM sale GROUP BY a HAVING sum(n) > 600) AND b = 3', 'v.x, q.a FROM (VALUES (600), (690), (NULL)) v (x), LATERAL (SELECT a FROM sale GROUP BY a HAVING sum(n) > v.x) q', 'max(s) FROM (SELECT a, sum(n) AS s FROM sale GROUP BY a HAVING count(*) > 28) q WHERE s < 0']) q;
SELECT * FROM asked();
-- Errors are PostgreSQL's, and only where it raises them.
INSERT INTO queries (query) SELECT format('SELECT a, count(*) FROM sale GROUP BY a HAVING %s', h) FROM unnest(ARRAY['100 / (count(*) - 28) > 1', 'count(*) > 28 AND 100 / (count(*) - 28) > 1', 'count(*) <> 28 AND 100 / (count(*) - 28) > 1', 'max(id) * 200000 > 5', 'sum(n) * 1000000000000000 * 1000000 > 5', 'max(b)::int2 * 30000::int2 > 7',
	'100 / (length(max(t)) - 4) > 1 AND sum(n) * 2 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 > 6000000', 'max(t)::int > 1 AND sum(n) * 2 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 > 6000000']) h;
SELECT * FROM asked();
-- Parameters, known and not.
PREPARE few(numeric, int) AS SELECT a, sum(n) FROM sale WHERE b <> $2 GROUP BY a HAVING sum(n) > $1 AND count(*) > $2 ORDER BY a;
SET gpuvm.require = vm;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE few(1150, 3);
EXECUTE few(1150, 3);
EXECUTE few(NULL, 3);
EXECUTE few(1250.005, 7);
EXECUTE few('NaN', 3);
EXECUTE few('-100000000000000000000000000000000000000', 28);
SELECT * FROM shown('EXECUTE few(''NaN'', 3)');
RESET plan_cache_mode;
EXECUTE few(1150, 3);
-- One run after another, of which the first does without the filter.
PREPARE wide(int) AS SELECT b, sum(wide) FROM sale WHERE id < $1 GROUP BY b HAVING sum(wide) > 900000000000000008 ORDER BY b LIMIT 3;
SET plan_cache_mode = force_generic_plan;
EXECUTE wide(1000);
EXECUTE wide(30);
RESET plan_cache_mode;
SELECT v.x, q.* FROM (VALUES (1000), (20), (2000), (3)) v (x), LATERAL (SELECT b, sum(wide) FROM sale WHERE id < v.x GROUP BY b HAVING sum(wide) > 0 AND b < 2) q ORDER BY v.x, q.b;
-- Changed rows, and groups that only these have.
BEGIN;
UPDATE sale SET n = 500 WHERE a < 3;
INSERT INTO sale (id, a, n) VALUES (30000, 1000, 9999.99), (30001, NULL, 9000);
DELETE FROM sale WHERE a = 5;
SELECT a, sum(n), count(*) FROM sale GROUP BY a HAVING sum(n) > 5000 ORDER BY sum(n), a;
SELECT * FROM shown('SELECT a, sum(n), count(*) FROM sale GROUP BY a HAVING sum(n) > 5000');
ROLLBACK;
-- By cost: not for a few groups, which are handed out as fast.
RESET gpuvm.force;
EXPLAIN (COSTS OFF) SELECT t, count(*) FROM sale GROUP BY t HAVING count(*) > 1;
EXPLAIN (COSTS OFF) SELECT id, sum(n) FROM sale GROUP BY id HAVING sum(n) > 600;
EXECUTE few(1150, 3);
DEALLOCATE ALL;
SET client_min_messages = warning;
DROP SCHEMA group_having CASCADE;
