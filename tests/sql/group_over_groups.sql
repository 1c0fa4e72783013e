-- Aggregations over subqueries that aggregate: one job, whose second program reads the groups of the first.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA group_over_groups;
SET search_path = group_over_groups;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/ask_many.sql
\set ECHO all

CREATE TABLE sale (id int PRIMARY KEY, a int, b int2, l int8, n numeric(9, 2), d float8, f float4, t text, day date, flag bool, wide numeric(18, 0)) WITH (autovacuum_enabled = off);
INSERT INTO sale SELECT k, k * 31 % 700, k % 9, nullif(k::int8 * 7919 % 5000000000 - 2500000000, 5), (k % 4001 - 2000) / 4.0, (k % 777) / 8.0, nullif(k % 50, 3) / 4.0,
	nullif((ARRAY['pear', 'apple', 'fig', 'plum', 'kiwi', 'none'])[1 + k % 6], 'none'), date '2020-01-01' + k % 40, k % 3 = 0, 900000000000000000 + k FROM generate_series(1, 20000) k;
CREATE TABLE place (id int, name text, region int) WITH (autovacuum_enabled = off);
INSERT INTO place SELECT k, 'place ' || k % 23, nullif(k % 5, 4) FROM generate_series(0, 800) k;
CREATE TABLE empty (LIKE sale) WITH (autovacuum_enabled = off);
ANALYZE;
SELECT gpuvm.import('sale'), gpuvm.import('place'), gpuvm.import('empty');

-- What the inner groups may hand on: keys, counts, extremes, booleans, bits, sums of floats.
INSERT INTO queries (query) SELECT format('SELECT x, count(*) FROM (SELECT a, %s AS x FROM sale GROUP BY a) s GROUP BY x', agg) FROM unnest(ARRAY['count(*)', 'count(l)', 'count(*) FILTER (WHERE flag)', 'min(b)', 'max(id)', 'min(l)', 'max(n)',
	'min(d)', 'max(f)', 'sum(d)', 'bool_and(flag)', 'bool_or(flag)', 'bit_or(b)', 'max(day)', 'a % 10']) agg;
INSERT INTO queries (query) SELECT format('SELECT %s FROM (SELECT t, b, count(*) AS c, min(l) AS l, max(n) AS n, max(d) AS d, min(day) AS day, bool_or(flag) AS flag FROM sale GROUP BY t, b) s', agg)
	FROM unnest(ARRAY['max(c), count(*)', 'sum(c), avg(c)', 'sum(l), min(l)', 'sum(n), avg(n), max(n)', 'sum(d), avg(d)', 'min(day), max(day)', 'bool_and(flag)', 'count(t), count(b)', 'stddev(c), variance(n)', 'sum(c) FILTER (WHERE flag), count(*) FILTER (WHERE b > 4)', 'sum(c * 2 + b)']) agg;
INSERT INTO queries (query) SELECT format('SELECT %s, sum(c), max(n) FROM (SELECT t, b, day, count(*) AS c, max(n) AS n FROM sale GROUP BY t, b, day) s GROUP BY 1', key) FROM unnest(ARRAY['t', 'b', 'day', 'c', 'n', 'c % 3', 'b + c', 'day - date ''2019-12-31''']) key;
SELECT * FROM asked();
-- Sums, as numbers of 64 bits; those that are not one are PostgreSQL's.
INSERT INTO queries (query) SELECT format('SELECT x, count(*), max(x), sum(x), avg(x) FROM (SELECT a %% 100 AS g, %s AS x FROM sale GROUP BY 1) s GROUP BY x', agg)
	FROM unnest(ARRAY['sum(b)', 'sum(id)', 'sum(l)', 'sum(n)', 'sum(n) FILTER (WHERE b = 3 AND a < 50)', 'sum(wide) FILTER (WHERE id % 2500 = 1)', 'sum(n * 3 + b)', 'sum(n) + sum(b)', 'sum(id) / 7']) agg;
INSERT INTO queries (query) SELECT format('SELECT %s FROM (SELECT t, b, sum(l) AS l, sum(n) AS n, sum(b) AS c, sum(wide) AS w, avg(n) AS a FROM sale GROUP BY t, b) s', agg)
	FROM unnest(ARRAY['max(l), sum(l)', 'avg(n), min(n), stddev(n)', 'sum(n) FILTER (WHERE c > 900)', 'count(l)']) agg;
INSERT INTO queries (query) VALUES ('SELECT t, sum(n), max(c) FROM (SELECT t, b, sum(n) AS n, sum(b) AS c FROM sale GROUP BY t, b HAVING sum(n) > 0) s GROUP BY t');
SELECT * FROM asked();
INSERT INTO queries (query) VALUES ('SELECT max(w) FROM (SELECT b, sum(wide) AS w FROM sale GROUP BY b) s'), ('SELECT max(c) FROM (SELECT b, sum(wide) AS w, sum(id) AS c FROM sale GROUP BY b) s');
SELECT * FROM asked();
-- Conditions: HAVING within, WHERE and HAVING above, expressions of the output, DISTINCT, joins below, dependent columns.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[
	'c, count(*) FROM (SELECT a, count(*) AS c FROM sale GROUP BY a HAVING max(b) > 7) s GROUP BY c', 'count(*) FROM (SELECT a, count(*) AS c FROM sale GROUP BY a HAVING count(*) > 28) s', 'count(*) FROM (SELECT a, count(*) AS c FROM sale GROUP BY a) s WHERE c > 28',
	'c, count(*) FROM (SELECT a, count(*) AS c, max(b) AS m FROM sale GROUP BY a) s WHERE m > 7 AND a % 2 = 0 GROUP BY c', 'c, count(*) FROM (SELECT a, count(*) AS c FROM sale GROUP BY a) s GROUP BY c HAVING count(*) > 100 ORDER BY c',
	'c, count(*) FROM (SELECT a % 50, count(*) * 2 + 1 AS c FROM sale GROUP BY a % 50) s GROUP BY c', 'DISTINCT c FROM (SELECT a, count(*) AS c FROM sale GROUP BY a) s', 'DISTINCT c, m FROM (SELECT a, count(*) AS c, min(t) IS NULL AS u, max(b) AS m FROM sale GROUP BY a) s WHERE c > 5',
	'c, count(*) FROM (SELECT place.id, count(sale.id) FROM place LEFT JOIN sale ON sale.a = place.id AND sale.b > 2 GROUP BY place.id) AS s (id, c) GROUP BY c',
	'region, max(c), sum(c) FROM (SELECT place.region, place.name, count(*) AS c FROM place JOIN sale ON sale.a = place.id GROUP BY place.region, place.name) s GROUP BY region',
	'name, count(*), max(c) FROM (SELECT place.region, place.name, count(*) AS c FROM place JOIN sale ON sale.a = place.id GROUP BY place.region, place.name) s GROUP BY name',
	't, max(n) FROM (SELECT id, t, n FROM sale GROUP BY id) s GROUP BY t', 'count(*), max(x) FROM (SELECT DISTINCT a, b AS x FROM sale) s WHERE x > 3', 'x, count(*) FROM (SELECT DISTINCT a, b AS x FROM sale) s GROUP BY x',
	'max(c) FROM (SELECT a, count(*) AS c FROM empty GROUP BY a) s', 'c, count(*) FROM (SELECT a, count(*) AS c FROM empty GROUP BY a) s GROUP BY c', 'count(*), sum(c) FROM (SELECT a, count(*) AS c FROM sale GROUP BY a HAVING count(*) > 1000000) s',
	'max(c) + 1, min(c) FROM (SELECT count(*) AS c, t FROM sale WHERE n > 3 GROUP BY t) s WHERE t IS NOT NULL', 'coalesce(t, ''no''), c FROM (SELECT t, count(*) AS c FROM sale GROUP BY t, b) s GROUP BY t, c',
	'count(*) FROM (SELECT c FROM (SELECT a, count(*) AS c FROM sale GROUP BY a) s GROUP BY c) r']) q;
SELECT * FROM asked();
-- What stays apart, and why: the inner groups are a program's still.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[
	'max(x) FROM (SELECT a, avg(b) AS x FROM sale GROUP BY a) s', 'x, count(*) FROM (SELECT a, min(t) AS x FROM sale GROUP BY a) s GROUP BY x', 'count(DISTINCT c) FROM (SELECT a, count(*) AS c FROM sale GROUP BY a) s', 'upper(t), max(c) FROM (SELECT t, b, count(*) AS c FROM sale GROUP BY t, b) s GROUP BY 1',
	'c, count(*) FROM (SELECT a, count(*) AS c FROM sale GROUP BY a LIMIT 1000) s GROUP BY c', 'c, b, count(*) FROM (SELECT b, a, count(*) AS c FROM sale GROUP BY a, b) s GROUP BY GROUPING SETS ((b), (c))', 'c, count(*) FROM (SELECT a, count(DISTINCT b) AS c FROM sale GROUP BY a) s GROUP BY c',
	'r, count(*) FROM (SELECT a, count(*) AS c, random() < 2 AS r FROM sale GROUP BY a) s GROUP BY r', 'max(r) FROM (SELECT a, row_number() OVER (ORDER BY a) AS r FROM sale GROUP BY a) s']) q;
SELECT * FROM asked();
-- One of the columns has the number in the groups that another has in the table: what the first program knows of that one's values is not this one's.
CREATE TABLE twins (u text, t text, b int) WITH (autovacuum_enabled = off);
INSERT INTO twins SELECT CASE WHEN k % 3 = 0 THEN 'p' ELSE 'q' END || k % 7, CASE WHEN k % 3 = 0 THEN 'q' ELSE 'p' END || k % 5, k % 7 FROM generate_series(1, 1000) k;
SELECT gpuvm.import('twins');
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['sum(c) FILTER (WHERE t LIKE ''p%''), sum(c) FROM (SELECT t, b, count(*) AS c FROM twins WHERE u LIKE ''p%'' GROUP BY t, b) s', 'sum(c) FILTER (WHERE t = ''p1''), sum(e) FROM (SELECT t, b, count(*) AS c, count(*) FILTER (WHERE u = ''p1'') AS e FROM twins GROUP BY t, b) s']) q;
SELECT * FROM asked();
EXPLAIN (COSTS OFF) SELECT c, count(*), sum(m) FROM (SELECT a, count(*) AS c, max(b) AS m FROM sale GROUP BY a HAVING max(b) > 7) s WHERE c > 2 GROUP BY c;
SELECT opcode, p1, p2, p3, p4, comment FROM gpuvm.disassemble('SELECT c, count(*), max(m) FROM (SELECT a, count(*) AS c, max(b) AS m FROM sale GROUP BY a HAVING max(b) > 7) s WHERE c > 2 GROUP BY c');
-- Parameters, and groups of changed rows.
PREPARE above(int) AS SELECT c, count(*) FROM (SELECT a, count(*) AS c FROM sale WHERE b <> $1 GROUP BY a) s WHERE c > $1 GROUP BY c ORDER BY c LIMIT 2;
EXECUTE above(8);
EXECUTE above(25);
PREPARE only_above(int8) AS SELECT c, count(*) FROM (SELECT a, count(*) AS c FROM sale GROUP BY a) s WHERE c <> $1 GROUP BY c ORDER BY c;
SET gpuvm.require = vm;
SET plan_cache_mode = force_generic_plan;
EXECUTE only_above(29);
RESET plan_cache_mode;
RESET gpuvm.require;
DEALLOCATE only_above;
UPDATE sale SET a = a + 100 WHERE id % 50 = 1;
DELETE FROM sale WHERE id % 60 = 2;
INSERT INTO queries (query) VALUES ('SELECT c, count(*), max(m) FROM (SELECT a, count(*) AS c, max(b) AS m FROM sale GROUP BY a) s GROUP BY c');
SELECT * FROM asked();
EXECUTE above(25);
DEALLOCATE above;
-- An error in the second program: PostgreSQL's own.
INSERT INTO queries (query) VALUES ('SELECT 100 / (c - 28), count(*) FROM (SELECT a, count(*) AS c FROM sale GROUP BY a) s GROUP BY 1'), ('SELECT x, count(*) FROM (SELECT a, max(id) * 200000 AS x FROM sale GROUP BY a) s GROUP BY x');
SELECT * FROM asked();
-- GROUPING() of what is grouped again.
INSERT INTO queries (query) VALUES ('SELECT a, grouping(a), count(*) FROM (SELECT a, b FROM sale GROUP BY a, b) s GROUP BY a');
SELECT * FROM asked();
-- Why not by one job: said where PostgreSQL aggregates.
SELECT * FROM gpuvm.why_not('SELECT max(x) FROM (SELECT a, avg(b) AS x FROM sale GROUP BY a) s');
SELECT * FROM gpuvm.why_not('SELECT count(DISTINCT c) FROM (SELECT a, count(*) AS c FROM sale GROUP BY a) s');
DROP SCHEMA group_over_groups CASCADE;
