-- Dates, times and intervals in programs, and stable expressions, which are evaluated when execution starts.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA dates;
SET search_path = dates;
SET gpuvm.force = on;
SET TimeZone = 'America/New_York';
SET DateStyle = 'ISO, MDY';
SET IntervalStyle = 'postgres';

\set ECHO none
\i tests/sql/include/ask.sql
\set ECHO all

CREATE TABLE t (id int, d date, ts timestamp, tz timestamptz, ti time, n date) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT k, nullif(date '1999-12-20' + k * 13, '2001-01-01'), timestamp '2003-12-25 21:17:33.123456' + k * interval '17 hours 13 minutes 7.654321 seconds',
	timestamptz '2004-03-01 00:00+00' + k * interval '37 minutes 11.5 seconds', time '00:00' + k * interval '1 hour 7 minutes 0.75 seconds', NULL FROM generate_series(1, 1500) k;
-- Leap days, ends of months, years before Christ, the first and the last day of ISO years, midnight at both ends.
CREATE TABLE edge (id int, d date, ts timestamp, tz timestamptz, ti time) WITH (autovacuum_enabled = off);
INSERT INTO edge VALUES (1, '2000-02-29', '2000-02-29 23:59:59.999999', '2000-02-29 23:59:59.999999+00', '23:59:59.999999'), (2, '1900-02-28', '1900-02-28', '1900-02-28', '00:00'),
	(3, '0001-01-01 BC', '0001-01-01 00:00 BC', '0001-01-01 00:00+00 BC', '24:00'), (4, '0044-03-15 BC', '0044-03-15 12:00 BC', '0044-03-15 12:00 BC', '12:00'),
	(5, '2000-01-01', '2000-01-01', '2000-01-01', '00:00:00.000001'), (6, '1999-12-31', '1999-12-31 23:59:59', '1999-12-31 23:59:59', '23:59:59'),
	(7, '2004-12-31', '2004-12-31', '2004-12-31', NULL), (8, '2005-01-01', '2005-01-01 00:00:00.5', '2005-01-01', '01:00'), (9, '2008-12-29', '2008-12-29', NULL, '02:00'),
	(10, '2010-01-03', '2010-01-03', '2010-01-03', '03:00'), (11, '1969-12-31', '1969-12-31 23:59:59.75', '1969-12-31', '04:00'), (12, '4713-11-24 BC', '4713-11-24 00:00 BC', NULL, NULL),
	(13, '2001-01-31', '2001-01-31 10:00', NULL, NULL), (14, '2000-12-31', '2000-12-31', NULL, NULL), (15, NULL, NULL, NULL, NULL), (16, '1601-01-01', '1600-12-31 23:59', NULL, NULL),
	(17, '0101-01-01 BC', '0100-12-31 BC', NULL, NULL), (18, '1000-12-31', '1001-01-01', NULL, NULL);
CREATE TABLE infinite (id int, d date, ts timestamp, tz timestamptz) WITH (autovacuum_enabled = off);
INSERT INTO infinite VALUES (1, 'infinity', 'infinity', 'infinity'), (2, '-infinity', '-infinity', '-infinity'), (3, '2020-01-01', '2020-01-01', '2020-01-01'), (4, NULL, NULL, NULL);
CREATE TABLE far (id int, d date, ts timestamp) WITH (autovacuum_enabled = off);
INSERT INTO far VALUES (1, '5874897-12-31', '294276-12-31 23:59:59.999999'), (2, '4713-01-01 BC', '4713-11-24 00:00 BC'), (3, '294277-01-01', '294276-01-01');
SELECT gpuvm.import('t'), gpuvm.import('edge'), gpuvm.import('infinite'), gpuvm.import('far');

-- Fields, as numeric and as float8: of every field of each type.
CREATE FUNCTION fields(relation text, expression text, field_names text[]) RETURNS TABLE (field text, "by" text, equal bool, answer text) LANGUAGE sql AS $$
SELECT f, (a)."by", (a).equal, left((a).answer, 60) FROM (SELECT f, ask(format('SELECT %s AS v, count(*) FROM %s GROUP BY 1', format(expression, f), relation)) a FROM unnest(field_names) f OFFSET 0) q $$;
CREATE FUNCTION every_field() RETURNS text[] LANGUAGE sql AS $$ SELECT ARRAY['microseconds', 'milliseconds', 'second', 'minute', 'hour', 'day', 'month', 'quarter', 'year', 'decade', 'century',
	'millennium', 'week', 'isoyear', 'dow', 'isodow', 'doy', 'epoch', 'julian', 'timezone'] $$;
SELECT * FROM fields('edge', 'extract(%s FROM ts)', every_field());
SELECT * FROM fields('edge', 'extract(%s FROM d)', every_field());
SELECT * FROM fields('edge', 'extract(%s FROM ti)', every_field());
SELECT * FROM fields('edge', 'extract(%s FROM tz)', ARRAY['epoch', 'year']);
SELECT * FROM fields('edge', 'date_part(''%s'', ts)', every_field());
SELECT * FROM fields('edge', 'date_part(''%s'', d)', every_field());
SELECT * FROM fields('edge', 'date_part(''%s'', ti)', every_field());
SELECT * FROM fields('edge', 'date_part(''%s'', tz)', ARRAY['epoch', 'hour']);
SELECT * FROM fields('edge', 'date_trunc(''%s'', ts)', every_field());
SELECT * FROM fields('edge', 'date_trunc(''%s'', tz)', ARRAY['day']);
SELECT * FROM fields('t', 'extract(%s FROM ts)', ARRAY['year', 'month', 'week', 'isoyear', 'dow', 'quarter']);
SELECT * FROM ask_each('SELECT %s FROM t', 'sum(extract(second FROM ts)), avg(extract(epoch FROM ts))', 'sum(extract(milliseconds FROM ti)), max(extract(microseconds FROM ts))',
	'sum(extract(year FROM d)), min(extract(doy FROM d)), max(extract(isodow FROM d))', 'max(date_part(''second'', ts)), min(date_part(''epoch'', ts))', 'count(extract(day FROM n)), sum(extract(epoch FROM d))');
SELECT * FROM ask('SELECT extract(year FROM d) AS y, extract(month FROM d) AS m, count(*), max(d) FROM t GROUP BY 1, 2');
SELECT * FROM ask('SELECT extract(Year FROM d) AS y FROM t WHERE id < 30 GROUP BY 1');
-- Spelled otherwise, and not known.
SELECT * FROM fields('edge', 'date_part(''%s'', ts)', ARRAY['yr', 'Years', 'mon', 'us', 'msec', 'h', 'weeks', 'nonsense', '']);
SELECT * FROM ask('SELECT date_part(CASE WHEN id = 1 THEN ''year'' ELSE ''month'' END, ts) AS v FROM edge GROUP BY 1');

-- Sums with intervals.
SELECT * FROM ask_each('SELECT %s AS v, count(*) FROM edge GROUP BY 1',
	'd + interval ''1 month''', 'd - interval ''1 month''', 'd + interval ''1 year -1 day''', 'ts + interval ''1 month''', 'ts - interval ''13 months 1 day 1 second''', 'ts + interval ''0''',
	'ts + interval ''1000 years''', 'ts - interval ''100 days 5:06:07.000001''', 'interval ''2 days'' + d', 'interval ''1 month'' + ts', 'd + 3', 'd - 400', 'd - date ''2000-01-01''',
	'tz + interval ''90 minutes''', 'tz - interval ''1.5 seconds''', 'tz + interval ''1 day''', 'tz - interval ''1 month''', 'ti + interval ''1 hour''', 'ti - interval ''1 hour''', 'ti + interval ''25 hours''',
	'ti - interval ''100 days 1 minute''', 'ti + interval ''0''', 'd + ti', 'd + time ''10:30''', 'ts::date', 'd::timestamp', 'isfinite(d)', 'isfinite(ts)', 'isfinite(tz)', 'ts - interval ''4800 years''',
	'date_trunc(''month'', ts + interval ''10 days'')', 'extract(day FROM d + interval ''1 month'')', 'ts - ts');
SELECT * FROM ask_each('SELECT count(*), sum(id) FROM t WHERE %s',
	'd >= date ''2004-01-01'' AND d < date ''2004-01-01'' + interval ''3 months''', 'd + interval ''1 year'' > ts', 'ts < d + interval ''30 days''', 'extract(year FROM d) = 2004', 'extract(month FROM ts) IN (1, 2, 3)',
	'extract(dow FROM d) BETWEEN 1 AND 5', 'date_trunc(''year'', ts) = timestamp ''2005-01-01''', 'date_part(''hour'', ts) < 6.5', 'ti BETWEEN time ''08:00'' AND time ''17:30''', 'ti <> time ''24:00''', 'ti IN (time ''01:07:00.75'', time ''02:00'')',
	'tz > timestamptz ''2004-03-15 12:00+02''', 'tz - interval ''12 hours'' > timestamptz ''2004-03-15''', 'extract(epoch FROM tz) > 1079900000.5', 'd <> n', 'n IS NULL', 'greatest(d, date ''2010-01-01'') = d', 'd IN (date ''2000-02-10'', ''2000-02-23'')',
	'ts::date = d', 'extract(second FROM ts) > 33.5', 'extract(year FROM d) = extract(year FROM ts)', 'nullif(extract(quarter FROM d), 2) IS NULL');
-- A date with a timestamp that is a constant: at midnight, within a day, before 2000, without end.
SELECT op || ' ' || ts AS comparison, (a)."by", (a).equal, (a).answer
	FROM (SELECT op, ts, ask(format('SELECT count(*), sum(id) FROM edge WHERE d %1$s %2$L::timestamp AND id > 3 OR %2$L::timestamp %1$s d AND id %% 3 = 0', op, ts)) a
		FROM unnest(ARRAY['<', '<=', '=', '<>', '>=', '>']) op, unnest(ARRAY['2000-01-01', '2000-01-01 00:00:00.000001', '1999-12-31', '1999-12-31 23:59:59.999999', 'infinity', '-infinity', '0044-03-15 12:00 BC']) ts OFFSET 0) q;
SELECT * FROM ask_each('SELECT count(*), max(id) FROM infinite WHERE d %s timestamp ''2020-01-01 12:00''', '<', '<=', '=', '<>', '>', '>=', 'IS DISTINCT FROM');
SELECT * FROM ask_each('SELECT count(*), max(id) FROM far WHERE d %s timestamp ''2020-01-01 12:00''', '<', '<=', '=', '<>', '>', '>=');
SELECT * FROM ask('SELECT min(d), max(d), min(ts), max(ts), min(tz), max(tz), min(ti), max(ti), count(ti), min(n) FROM t');
SELECT * FROM ask('SELECT extract(quarter FROM d) AS q, min(ti), max(ti + interval ''1 hour''), count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT ti, d FROM t WHERE id < 20 GROUP BY ti, d');
-- Infinities and what is out of range: PostgreSQL answers or raises.
SELECT * FROM ask_each('SELECT %s AS v, count(*) FROM infinite GROUP BY 1', 'd + interval ''1 month''', 'ts - interval ''1 day''', 'tz + interval ''1 hour''', 'd + 1', 'extract(year FROM d)', 'extract(epoch FROM ts)', 'extract(month FROM ts)',
	'date_trunc(''month'', ts)', 'date_part(''year'', ts)', 'isfinite(d)', 'isfinite(ts)', 'isfinite(tz)', 'd - date ''2000-01-01''', 'd + time ''01:00''', 'ts::date');
SELECT * FROM ask_each('SELECT count(*), max(d) FROM infinite WHERE %s', 'extract(year FROM d) = 2020', 'isfinite(d) AND extract(year FROM d) = 2020', 'd < ts + interval ''1 day''', 'd = ''infinity''', 'ts > ''-infinity''');
SELECT * FROM ask_each('SELECT %s AS v FROM far GROUP BY 1', 'd + 1', 'ts + interval ''1 microsecond''', 'd + interval ''1 day''', 'ts - interval ''1 day''', 'extract(year FROM d)', 'extract(year FROM ts)', 'extract(epoch FROM ts)', 'ts + interval ''300000 years''',
	'd::timestamp', 'date_part(''epoch'', ts)', 'extract(julian FROM d)');
SELECT * FROM ask('SELECT count(*) FROM far WHERE id = 2 AND ts - interval ''1 second'' < ts');
SELECT * FROM ask('SELECT count(*) FROM far WHERE id = 3 OR d + interval ''1 day'' > ts');

-- Stable expressions, and parameters in expressions.
-- (What they say depends on the day.)
SELECT expression, "by", equal FROM ask_each('SELECT count(*) FROM t WHERE %s', 'd < now()::date', 'd < current_date - 3', 'd < current_date - interval ''1 year''', 'ts < localtimestamp - interval ''2 months''', 'tz < now() - interval ''1 day''', 'ts < date_trunc(''month'', now())::timestamp',
	'd = to_date(''2000-02-10'', ''YYYY-MM-DD'')', 'd < (''2004-01-'' || ''05'')::date', 'extract(year FROM d) = 2004 OR d = current_date', 'id < extract(year FROM now())::int - 2000', 'tz < timestamptz ''2004-03-15'' + interval ''1 day''', 'now() IS NOT NULL',
	'now() IS NULL OR id = 3', 'current_user = ''nobody'' OR id = 4', 'length(current_setting(''TimeZone'')) > id', 'd < clock_timestamp()::date', 'tz::date > d', 'tz < d', 'extract(year FROM d) < extract(year FROM now())', 'd < CASE WHEN now() IS NULL THEN date ''2001-01-01'' ELSE ''2002-01-01'' END');
-- One that raises: PostgreSQL raises, or does not, as it comes to it.
SELECT * FROM ask_each('SELECT count(*) FROM t WHERE %s', 'd = to_date(''2000-13-45'', ''YYYY-MM-DD'') AND id > 0', 'id < 0 AND d = to_date(''2000-13-45'', ''YYYY-MM-DD'')', 'id > 0 OR d = to_date(''x'' || id, ''YYYY'')');
PREPARE later(date, int, text) AS SELECT count(*), min(d) FROM t WHERE d > $1 + 1 AND d < $1 + $2 * interval '1 month' AND d <> $3::date;
SET plan_cache_mode = force_generic_plan;
SET gpuvm.require = :device;
EXECUTE later('2004-01-01', 3, '2004-02-02');
EXECUTE later('2005-01-01', 14, '2004-02-02');
EXECUTE later(NULL, 14, '2004-02-02');
EXECUTE later('infinity', 14, '2004-02-02');
EXECUTE later('2004-01-01', 3, 'not a date');
RESET gpuvm.require;
EXECUTE later('2004-01-01', 3, 'not a date');
SET gpuvm.enabled = off;
EXECUTE later('2004-01-01', 3, '2004-02-02');
EXECUTE later('2005-01-01', 14, '2004-02-02');
EXECUTE later('infinity', 14, '2004-02-02');
RESET gpuvm.enabled;
RESET plan_cache_mode;
-- The same plan in another time zone.
PREPARE today AS SELECT count(*) FROM t WHERE tz < date_trunc('day', timestamptz '2004-03-15 03:00+00') + interval '1 hour';
SET plan_cache_mode = force_generic_plan;
EXECUTE today;
SET TimeZone = 'Asia/Tokyo';
EXECUTE today;
SET gpuvm.enabled = off;
EXECUTE today;
RESET gpuvm.enabled;
DROP SCHEMA dates CASCADE;
