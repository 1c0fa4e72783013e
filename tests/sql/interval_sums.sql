-- Intervals that are computed of rows' values: added to times, compared, and their epoch.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA interval_sums;
SET search_path = interval_sums;
SET gpuvm.force = on;
SET timezone = 'Europe/Berlin';

\set ECHO none
\i tests/sql/include/ask.sql
\set ECHO all

CREATE TABLE t (id int, k int, s smallint, l bigint, f float8, n numeric(8,3), iv interval, ts timestamp, other timestamp, tz timestamptz, d date, ti time) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, nullif(i % 41 - 20, 7), i % 7 - 3, i % 1000 - 500, nullif((i % 997 - 400) / 37.0, 0), (i % 991 - 400) / 8.0,
	nullif(make_interval(i % 3 - 1, i % 14 - 7, 0, i % 40 - 20, i % 50 - 25, i % 7, i % 60 * 0.5), make_interval(-1, -7, 0, -20)),
	timestamp '2024-01-29' + i * interval '7 hours 11 min 3.000001 s', timestamp '2024-02-01' + i % 60 * interval '25 hours',
	timestamptz '2024-10-25 22:30' + i % 200 * interval '30 minutes', date '2024-01-25' + i % 70, time '00:00' + i % 100 * interval '811 s'
	FROM generate_series(1, 3000) i;
INSERT INTO t VALUES (4001, 1, 1, 1, 1, 1, '1 day', 'infinity', '-infinity', 'infinity', '2024-01-01', '24:00'), (4002, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
-- What has no timestamp, or no interval, is PostgreSQL's to refuse.
CREATE TABLE far (id int, k int, l bigint, f float8, y int, mo int, da int, tz timestamptz, ts timestamp) WITH (autovacuum_enabled = off);
INSERT INTO far SELECT i, 2147483647 - i, 9007199254740993 + i, 1e300 * i, 0, i, 1, '4713-01-01 00:00 BC', '294276-12-31 23:59:59' FROM generate_series(1, 4) i;
CREATE TABLE special (id int, f float8) WITH (autovacuum_enabled = off);
INSERT INTO special VALUES (1, 'NaN'), (2, 'infinity'), (3, '-infinity'), (4, 1e13), (5, -1e12), (6, 1e-300), (7, -0.0), (8, 0.0000005), (9, NULL);
SELECT gpuvm.import('t'), gpuvm.import('far'), gpuvm.import('special');

-- A column of intervals.
SELECT * FROM ask_each('SELECT count(*), min(x), max(x), sum(extract(epoch FROM x)) FROM (SELECT %s AS x FROM t WHERE id < 4000 OR id = 4002) s', 'ts + iv', 'ts - iv', 'tz + iv', 'tz - iv', 'd + iv', 'd - iv', 'ti + iv', 'ti - iv', 'ts + iv * 2', 'ts + (iv + interval $$1 month$$)');
-- Times a number, and numbers by name.
SELECT * FROM ask_each('SELECT count(x), min(x), max(x), sum(extract(epoch FROM x)) FROM (SELECT %s AS x FROM t WHERE id < 4000 OR id = 4002) s',
	'ts + k * interval $$1 day$$', 'ts - k * interval $$1 month$$', 'ts + interval $$1 year 2 mons -3 days 04:05:06.7$$ * k', 'tz + k * interval $$1 day$$', 'tz - s * interval $$1 month 1 hour$$', 'd + k * interval $$1 week$$', 'ti - k * interval $$17 minutes$$', 'ti + k * interval $$1 month$$',
	'ts + l * interval $$1 second$$', 'ts + f * interval $$1 day$$', 'ts - f * interval $$1 hour$$', 'tz + f * interval $$36 hours 1 day$$', 'ts + n * interval $$1 minute$$', 'ts + n * interval $$3 days$$', 'ts + f * interval $$1 month$$', 'ts + k * interval $$0$$', 'ts + 1.5 * k * interval $$1 day$$',
	'ts + make_interval(days => k)', 'd + make_interval(months => k, secs => f)', 'tz - make_interval(0, k, s, 0, k)', 'ti + make_interval(days => k, mins => s)', 'ts + make_interval(years => k, hours => s)',
	'ts + (k || $$ days$$)::interval', 'tz - (s || $$ month $$)::interval', 'd + (k || $$hours$$)::interval', 'ts + (l || $$ days$$)::interval', 'ts + (k || $$ quarters$$)::interval',
	'ts - (k * interval $$1 day$$ + iv)', 'ts + -(s * interval $$1 month$$ - interval $$1 hour$$)', 'ts + (other - ts)', 'd + (other - ts)', 'tz + (ti - time $$12:00$$)', 'ts + justify_days(iv)');
SELECT * FROM ask('SELECT id, ts + k * interval ''1 day'', other - iv, tz + s * interval ''1 month'' FROM t WHERE id % 500 = 1 OR id > 4000');
SELECT * FROM ask_each('SELECT date_trunc($$month$$, ts + k * interval $$1 day$$) AS m, count(*), sum(k) FROM t WHERE %s GROUP BY 1', 'id < 300', 'ts + k * interval $$1 day$$ < timestamp $$2024-04-01$$', 'id > 4000');
-- Compared, and their epoch.
SELECT * FROM ask_each('SELECT count(*), sum(id) FROM t WHERE id <> 4001 AND %s', 'other - ts > k * interval $$1 day$$', 'other - ts <= -(k * interval $$2 days$$)', 'k * interval $$1 day$$ > interval $$2 days 12 hours$$', 's * interval $$1 month$$ >= iv', 'iv < other - ts', 'make_interval(days => k) = interval $$3 days$$',
	'iv + (other - ts) > $$2 days$$', 'k * iv < $$1 month$$', 'ts + k * interval $$1 day$$ BETWEEN other AND other + interval $$2 days$$', 'ts >= other - make_interval(days => k)', 'tz > now() - (k || $$ days$$)::interval', 'f * interval $$1 day$$ > make_interval(hours => k)', 'tz + k * interval $$1 day$$ > timestamptz $$2024-10-30$$', '(k * interval $$1 day$$) IS NULL');
SELECT * FROM ask_each('SELECT %s FROM t WHERE id <> 4001', 'sum(extract(epoch FROM k * interval $$1 month 2 days$$)), avg(extract(epoch FROM make_interval(secs => f)))', 'sum(extract(epoch FROM (other - ts) + k * interval $$1 hour$$))', 'min(extract(epoch FROM iv * k)), max(extract(epoch FROM -iv + interval $$1 year$$))', 'max(extract(day FROM k * interval $$1 day$$))');
PREPARE since(interval) AS SELECT count(*), sum(id) FROM t WHERE ts + $1 > other AND tz - $1 < timestamptz '2024-10-28';
SET plan_cache_mode = force_generic_plan;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
SET gpuvm.require = :device;
EXECUTE since('1 month -3 days');
EXECUTE since('-1 month -3 days 10 hours');
EXECUTE since(NULL);
SET gpuvm.require = 'any';
SET gpuvm.enabled = off;
EXECUTE since('1 month -3 days');
EXECUTE since('-1 month -3 days 10 hours');
RESET gpuvm.enabled;
RESET plan_cache_mode;
-- Out of range, not a number: PostgreSQL's words.
SELECT * FROM ask_each('SELECT max(%s) FROM far', 'timestamp $$2024-01-01$$ + k * interval $$1 day$$', 'timestamp $$2024-01-01$$ + k * interval $$2 months$$', 'timestamp $$2024-01-01$$ + make_interval(days => k)', 'timestamp $$2024-01-01$$ + l * interval $$1 us$$',
	'timestamp $$2024-01-01$$ + f * interval $$1 day$$', 'ts + make_interval(secs => mo)', 'tz - make_interval(years => mo)', 'timestamp $$2024-01-01$$ + make_interval(years => k)', 'timestamp $$2024-01-01$$ - (k || $$ years$$)::interval');
SELECT * FROM ask_each('SELECT max(timestamp $$2024-01-01$$ + f * interval $$1 second$$), max(timestamp $$2024-01-01$$ + f * interval $$1 day$$) FROM special WHERE id = %s', '1', '2', '3', '4', '5', '6', '7', '8', '9');

-- Times that are made of numbers.
CREATE TABLE made (id int, e int, e8 bigint, f float8, n numeric(20,6), y int, m int, d int, o oid) WITH (autovacuum_enabled = off);
INSERT INTO made SELECT i, nullif(i * 1234567 - 1000000000, 0), i * 12345678901 - 9000000000000, i * 123.456789 - 77777.7, i * 98765.432101, 1996 + i % 30, i % 12 + 1, i % 28 + 1, i % 7 FROM generate_series(1, 1000) i;
INSERT INTO made VALUES (1001, NULL, NULL, NULL, NULL, 2024, 2, 29, NULL), (1002, 2147483647, 0, 0, 0, 9999, 12, 31, 4294967295), (1003, -2147483648, 1, -0.0, 1, 1, 1, 1, 0);
CREATE TABLE wrong (id int, f float8, y int, m int, d int) WITH (autovacuum_enabled = off);
INSERT INTO wrong VALUES (1, 'NaN', 2023, 2, 29), (2, 'infinity', 2023, 0, 1), (3, '-infinity', -1, 1, 1), (4, 1e13, 0, 1, 1), (5, -1e12, 2023, 13, 1), (6, 9224318015999, 2023, 1, 0), (7, 9224318016000, 2023, 4, 31), (8, -210866803200, 300000, 1, 1), (9, -210866803201, 2147483647, 1, 1), (10, 0, 2023, 12, -365), (11, 0, NULL, 13, 1),
	(12, -9222425352054.775390625, NULL, 13, 1);	-- is as microseconds what -infinity is stored as
SELECT gpuvm.import('made'), gpuvm.import('wrong');
SELECT * FROM ask_each('SELECT count(x), min(x), max(x), sum(extract(epoch FROM x)) FROM (SELECT %s AS x FROM made) s', 'to_timestamp(e)', 'to_timestamp(e8)', 'to_timestamp(e8 / 100)', 'to_timestamp(f)', 'to_timestamp(n)', 'to_timestamp(e8 / 1000.0)', 'to_timestamp(n / 1000)', 'to_timestamp(e * 1.5 / 1e6)', 'to_timestamp(e)::date', 'make_date(y, m, d)', 'make_date(y, 1, 1) + d', 'to_timestamp(e) AT TIME ZONE $$UTC$$');
SELECT * FROM ask_each('SELECT x, count(*) FROM (SELECT (%s)::float8 AS x FROM made WHERE id %% 100 < 3) s GROUP BY x', 'e8 / 1000.0', 'e / 100.00', 'n / 10', 'n / 1000000', 'e8 / 1e9', 'e8 * 1000000 / 1000.0');
SELECT * FROM ask('SELECT date_trunc(''year'', to_timestamp(e)), count(*) FROM made WHERE make_date(y, m, 1) >= date ''2010-03-01'' GROUP BY 1');
SELECT * FROM ask('SELECT sum(o::bigint), max(o::bigint + 1) FROM made');
SELECT * FROM ask_each('SELECT max(to_timestamp(f)) FROM wrong WHERE id = %s', '1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '12');
SELECT * FROM ask_each('SELECT max(make_date(y, m, d)) FROM wrong WHERE id = %s', '1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11');
-- Periods that overlap, where some ends are not known, or stand before the start.
CREATE TABLE period (id int, a timestamp, b timestamp, c timestamp, d timestamp, za timestamptz, zb timestamptz, da date, db date, ta time, tb time) WITH (autovacuum_enabled = off);
INSERT INTO period SELECT i, CASE WHEN i % 7 > 0 THEN t + i % 4 * iv END, CASE WHEN i / 7 % 5 > 0 THEN t + i / 4 % 4 * iv END, CASE WHEN i / 35 % 6 > 0 THEN t + i / 16 % 4 * iv END, CASE WHEN i / 210 % 5 > 0 THEN t + i / 64 % 4 * iv END,
	timestamptz '2024-10-26 12:00' + i % 40 * interval '1 hour', timestamptz '2024-10-27 12:00' + i % 3 * interval '1 hour', nullif(date '2024-10-25' + i % 5, date '2024-10-28'), date '2024-10-24' + i % 6, nullif(time '00:00' + i % 5 * interval '5 hours', '10:00'), time '11:00' + i % 3 * interval '1 hour'
	FROM generate_series(0, 3359) i, (VALUES (timestamp '2024-01-01', interval '1 day')) v(t, iv);
INSERT INTO period VALUES (5000, '-infinity', 'infinity', '2024-01-01', '2024-01-02'), (5001, 'infinity', 'infinity', '2024-01-01', 'infinity');
SELECT gpuvm.import('period');
SELECT * FROM ask_each('SELECT o, count(*), sum(id) FROM (SELECT id, %s AS o FROM period) s GROUP BY o', '(a, b) OVERLAPS (c, d)', '(c, d) OVERLAPS (a, b)', '(a, b) OVERLAPS (timestamp $$2024-01-01$$, timestamp $$2024-01-03$$)', '(a, NULL) OVERLAPS (c, d)', '(za, zb) OVERLAPS (timestamptz $$2024-10-27 14:30$$, timestamptz $$2024-10-27 14:45$$)',
	'(da, db) OVERLAPS (date $$2024-10-26$$, date $$2024-10-27$$)', '(ta, tb) OVERLAPS (time $$10:00$$, time $$12:00$$)', '(a, interval $$1 day$$) OVERLAPS (c, interval $$36 hours$$)', '(a, b) OVERLAPS (c, interval $$2 days$$)', '(da, db) OVERLAPS (a, b)');
SELECT * FROM ask('SELECT count(*), sum(id) FROM period WHERE (a, b) OVERLAPS (c, d) AND (za, zb) OVERLAPS (da, db)');
SELECT * FROM ask('SELECT count(*) FROM period p JOIN period q ON (p.a, p.b) OVERLAPS (q.a, q.b) WHERE p.id < 60 AND q.id < 200');
SET client_min_messages = warning;
DROP SCHEMA interval_sums CASCADE;
