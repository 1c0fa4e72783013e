-- Intervals: sums and averages, differences of times, fields, and groups by types whose equal values need not be the same.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA intervals;
SET search_path = intervals;
SET gpuvm.force = on;
SET timezone = 'Europe/Berlin';

\set ECHO none
\i tests/sql/include/ask.sql
\set ECHO all

CREATE TABLE t (id int, g int, iv interval, a timestamp, b timestamp, za timestamptz, zb timestamptz, d date, ti time, tj time, jb jsonb, ints int[], texts text[], c bpchar, tz timetz) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT k, k % 5, nullif(make_interval(k % 3, k % 14 - 7, 0, k % 40 - 20, k % 50 - 25, k % 7, k * 0.000007), make_interval(0, 0, 0, -20)), timestamp '2024-02-25' + k * interval '7 hours 11 min 3.000001 s',
	nullif(k % 9, 3) * interval '17 hours' + timestamp '2024-03-01 10:00', timestamptz '2024-03-28' + k * interval '1 hour', timestamptz '2024-04-02 00:00:00.5', date '2024-03-01' + k % 7,
	time '00:00' + k * interval '37 s', nullif(time '10:00', time '00:00' + k % 13 * interval '2 hours'), jsonb_build_object('k', k % 4), ARRAY[k % 3, NULL], ARRAY['x' || k % 4, 'ä'], 'b' || k % 6, timetz '10:00+02' + k % 3 * interval '1 hour'
	FROM generate_series(1, 3000) k;
-- What is equal without being the same, infinite, or too large.
CREATE TABLE edge (id int, iv interval, jb jsonb, c bpchar, a timestamp, big interval) WITH (autovacuum_enabled = off);
INSERT INTO edge VALUES (1, '1 month', '1', 'a', '2024-01-01', '1500000000 days'), (2, '30 days', '1.0', 'a ', 'infinity', '1500000000 days'), (3, '2 days', '2', 'b', '4714-11-24 00:00:00 BC', '1 day'), (4, NULL, NULL, NULL, NULL, '150000000 years');
CREATE TABLE empty (LIKE t) WITH (autovacuum_enabled = off);
SELECT gpuvm.import('t'), gpuvm.import('edge'), gpuvm.import('empty');

-- Months, days and microseconds are added up one by one.
SELECT * FROM ask_each('SELECT %s FROM t', 'sum(iv), avg(iv)', 'sum(iv) FILTER (WHERE g = 2), avg(iv) FILTER (WHERE id < 0)', 'sum(iv * 2), avg(-iv), sum(iv + $$1 month -1 day$$)', 'sum(b - a), avg(b - a)', 'sum(zb - za), avg(za - zb)', 'min(b - a), max(b - a), count(b - a)',
	'avg(a - d)', 'sum(ti), avg(ti), sum(ti - tj), min(ti - tj), max(tj - ti)', 'avg(b - a) FILTER (WHERE b > a)', 'avg(b - a) > $$0$$', 'sum(DISTINCT iv)', 'count(DISTINCT iv), count(DISTINCT b - a)', 'min(iv), max(iv)');
SELECT * FROM ask('SELECT g, sum(iv), avg(iv), sum(b - a), max(b - a) FROM t GROUP BY g');
SELECT * FROM ask('SELECT g, avg(b - a) FROM t GROUP BY g HAVING avg(b - a) > interval ''-400 days'' AND max(b - a) > interval ''1 day''');
SELECT * FROM ask('SELECT sum(iv), avg(iv), sum(b - a), min(b - a) FROM empty');
SELECT * FROM ask('SELECT g, sum(iv), sum(b - a) FROM empty GROUP BY g');
-- Comparisons with constants and each other.
SELECT * FROM ask_each('SELECT count(*), sum(id) FROM t WHERE %s', 'b - a > $$3 days 5 hours$$', 'b - a < $$-1 month$$', 'b - a <= $$-2 years 1 day 0.5 s$$', 'b - a BETWEEN $$-10 days$$ AND $$240 hours$$', '$$1 day$$ > a - b', 'a - b = d - a', 'b - a <> a - b', 'zb - za >= $$0$$',
	'ti - tj < $$-1 hour$$', 'b - a IS NULL', '(b - a) IS NOT NULL AND NOT b - a > $$0$$', 'now() - za > $$1 day$$', 'b - a > iv', 'a - b > $$200000000 years$$::interval / 2', 'b - a IN ($$1 day$$, $$2 days$$)');
PREPARE late(interval, interval) AS SELECT count(*), sum(id) FROM t WHERE b - a > $1 AND b - a < $2 * 2;
SET plan_cache_mode = force_generic_plan;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
SET gpuvm.require = :device;
EXECUTE late('1 day 2 hours', '3 days');
EXECUTE late('-1 year 3 mons', '-3 mons');
EXECUTE late(NULL, '3 days');
SELECT count(*) FROM t WHERE b - a > (SELECT max(iv) FROM t) - interval '3 years';
SET gpuvm.enabled = off;
SET gpuvm.require = 'any';
EXECUTE late('1 day 2 hours', '3 days');
EXECUTE late('-1 year 3 mons', '-3 mons');
SELECT count(*) FROM t WHERE b - a > (SELECT max(iv) FROM t) - interval '3 years';
RESET gpuvm.enabled;
RESET gpuvm.require;
RESET plan_cache_mode;
-- Fields.
SELECT * FROM ask_each('SELECT %s FROM t', 'sum(extract(epoch FROM b - a)), avg(extract(epoch FROM a - b)), min(extract(epoch FROM ti - tj))', 'sum(extract(day FROM b - a)), max(extract(hour FROM b - a)), min(extract(minute FROM b - a)), sum(extract(second FROM b - a))',
	'sum(extract(milliseconds FROM b - a)), sum(extract(microseconds FROM b - a))', 'max(extract(hour FROM ti - tj)), min(extract(second FROM tj - ti))', 'max(extract(day FROM ti - tj))', 'max(extract(month FROM b - a))',
	'max(date_part($$epoch$$, b - a)), min(date_part($$epoch$$, tj - ti))', 'max(date_part($$day$$, b - a)), min(date_part($$second$$, b - a)), min(date_part($$milliseconds$$, ti - tj))',
	'sum(extract(epoch FROM iv)), avg(extract(epoch FROM iv))', 'sum(extract(year FROM iv)), sum(extract(month FROM iv)), sum(extract(day FROM iv)), sum(extract(quarter FROM iv))',
	'sum(extract(hour FROM iv)), sum(extract(minute FROM iv)), sum(extract(second FROM iv)), sum(extract(milliseconds FROM iv)), sum(extract(microseconds FROM iv))', 'sum(extract(decade FROM iv * 200)), max(extract(century FROM iv * 200)), max(extract(millennium FROM iv * 3000))',
	'max(date_part($$epoch$$, iv))', 'max(extract(week FROM iv))');
SELECT * FROM ask('SELECT extract(day FROM b - a), count(*), sum(g) FROM t WHERE id < 40 GROUP BY 1');
SELECT * FROM ask('SELECT extract(hour FROM iv), count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT id, extract(epoch FROM b - a), b - a FROM t WHERE extract(epoch FROM b - a) > 7000 AND id < 9');
-- Keys, and the order of rows.
SELECT * FROM ask_each('SELECT count(*), %s AS k FROM t GROUP BY k', 'iv', 'b - d', 'ti - time $$00:00:10$$', 'jb', 'ints', 'texts', 'c', 'jb -> $$k$$', 'ints[1:1]', 'tz', 'd - d::timestamp');
SELECT * FROM ask('SELECT DISTINCT jb, ints, c FROM t');
SELECT * FROM ask('SELECT g, count(DISTINCT jb), count(DISTINCT ints), count(DISTINCT c), count(DISTINCT b - d), count(*) FROM t GROUP BY g');
SELECT * FROM ask('SELECT jb, g, count(*) FROM t WHERE id < 50 GROUP BY ROLLUP (jb, g)');
SELECT * FROM ask('SELECT n, count(*) FROM (SELECT ints, count(*) AS n FROM t GROUP BY ints) s GROUP BY n');
SELECT * FROM ask('SELECT i, count(*) FROM (SELECT b - d AS i, jb FROM t GROUP BY 1, 2) s GROUP BY i');
EXPLAIN (COSTS OFF) SELECT iv, count(*) FROM t GROUP BY iv ORDER BY iv DESC LIMIT 3;
SELECT iv, count(*) FROM t GROUP BY iv ORDER BY iv DESC LIMIT 3;
EXPLAIN (COSTS OFF) SELECT b - d, count(*) FROM t GROUP BY 1 ORDER BY 1 LIMIT 3;
SELECT b - d, count(*) FROM t GROUP BY 1 ORDER BY 1 LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id, b - a FROM t ORDER BY b - a DESC NULLS LAST, id LIMIT 3;
SELECT id, b - a FROM t ORDER BY b - a DESC NULLS LAST, id LIMIT 3;
-- Bins of constant width.
SELECT * FROM ask_each('SELECT count(*), sum(id), %s AS k FROM t GROUP BY k', 'date_bin($$15 days$$, a, $$2024-06-01$$)', 'date_bin($$6 days 12:30$$, b, $$2024-03-01 10:00$$)', 'date_bin($$1 day$$, d::timestamp, $$2024-03-05$$)', 'date_bin($$2 weeks$$, za, $$2024-04-02 00:00:00.5$$)',
	'date_bin($$0.5 s$$, zb, $$-infinity$$)', 'date_bin($$1 month$$, a, $$2024-06-01$$)', 'date_bin($$0$$, a, $$2024-06-01$$)', 'width_bucket(id / 4.0, 10, 20, 4)', 'width_bucket(id::numeric, 1, 3000, 7)', 'width_bucket(id * 0.25, 700, 10.125, 9)', 'width_bucket(g::numeric, 1, 1, 9)',
	'width_bucket(g::numeric, 1, 4, 3)', 'width_bucket(nullif(g, 3) * 1.5, 4, 1.5, 3)', 'width_bucket(g::numeric, 1, 4, 0)', 'width_bucket(g::float8, 1, 4, 3)', 'width_bucket(id, 10, 2000, 49)', 'width_bucket(id / 7.0::float8, 400, 3, 90)', 'width_bucket(nullif(id, 5) * 0.1::float8, 0, 10, 90)', 'width_bucket(g, 4, 4, 9)', 'width_bucket(g::numeric, $$-infinity$$, 4, 3)');
SELECT * FROM ask('SELECT date_bin(''1 hour'', a, ''2024-01-01 00:30'') AS k, count(*) FROM edge GROUP BY 1');
-- Changed rows bring values that no dictionary has.
BEGIN;
INSERT INTO t (id, g, iv, jb, ints) VALUES (4000, 1, '1000 years', '"new"', '{7}'), (4001, 1, '1000 years', '"new"', '{}');
SELECT * FROM ask('SELECT sum(iv), count(DISTINCT jb), count(DISTINCT ints) FROM t');
SELECT * FROM ask('SELECT ints, count(*) FROM t GROUP BY ints');
ROLLBACK;
-- Equal values that are not the same: the first row's is shown.
SELECT * FROM ask_each('SELECT %s AS k, count(*) FROM edge GROUP BY k', 'iv', 'iv', 'jb', 'jb', 'c', 'c');
SELECT * FROM ask('SELECT count(DISTINCT iv), count(DISTINCT jb) FROM edge WHERE id > 1');
SELECT * FROM ask('SELECT iv, count(*) FROM edge WHERE id > 1 GROUP BY iv');
-- Infinite times have no difference, and sums have an end.
SELECT * FROM ask_each('SELECT %s FROM edge', 'max(a - timestamp $$2024-01-01$$)', 'max(timestamp $$-infinity$$ - a)', 'max(a - timestamp $$2024-01-01$$) FILTER (WHERE id <> 2)', 'sum(big)', 'avg(big) FILTER (WHERE id < 4)', 'sum(big) FILTER (WHERE id > 1)');
SELECT * FROM ask('SELECT count(*) FROM edge WHERE a - timestamp ''2024-01-01'' > interval ''1 day'' AND id <> 2');
DROP SCHEMA intervals CASCADE;
