-- Timestamps with time zone as local time, and back, in programs: the zone is a table that is made when execution starts.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA time_zone;
SET search_path = time_zone;
SET gpuvm.force = on;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, MDY';
SET IntervalStyle = 'postgres';

\set ECHO none
\i tests/sql/include/ask.sql
\set ECHO all

-- Every half hour of the weeks in which zones did what they do, of what lies between every 11th, a microsecond before too; times of seven centuries; infinities, nulls and what no table has are in tables of their own.
CREATE TABLE t (id int, ts timestamptz, lt timestamp, d date) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT 2 * row_number() OVER (ORDER BY u) + k, u - k * interval '1 microsecond', (u AT TIME ZONE 'UTC') - k * interval '1 microsecond', (u AT TIME ZONE 'UTC')::date
	FROM (SELECT h FROM generate_series(timestamptz '2011-03-01', timestamptz '2012-01-02', interval '30 minutes') WITH ORDINALITY s (h, n)
			WHERE n % 11 = 0 OR to_char(h, 'MMDD') SIMILAR TO '(031[0-7]|032[5-9]|033_|040[1-7]|073_|080[1-4]|092[2-9]|093_|100[1-5]|102[8-9]|103_|110[1-9]|122[7-9]|123_|010_)' UNION ALL
		SELECT timestamptz '1800-01-01' + i * interval '1 day 22 hours 13 minutes 7 seconds' FROM generate_series(1, 130000, 40) i UNION ALL
		SELECT generate_series(timestamptz '1995-01-01', timestamptz '1995-01-03', interval '30 minutes')) q (u), generate_series(0, 1) k;
INSERT INTO t VALUES (-1, NULL, NULL, NULL);
CREATE TABLE infinite (id int, ts timestamptz, lt timestamp, d date) WITH (autovacuum_enabled = off);
INSERT INTO infinite VALUES (1, 'infinity', 'infinity', 'infinity'), (2, '-infinity', '-infinity', '-infinity'), (3, '2020-07-01', '2020-07-01', '2020-07-01'), (4, NULL, NULL, NULL);
CREATE TABLE far (id int, ts timestamptz, lt timestamp, d date) WITH (autovacuum_enabled = off);
INSERT INTO far VALUES (1, '294276-12-31', '294276-12-31', '294276-12-31'), (2, '4713-11-24 BC', '4713-11-24 BC', '4713-11-24 BC'), (3, '2700-07-01', '2700-07-01', '5874897-12-31'), (4, '2020-07-01', '2020-07-01', '2020-07-01');
SELECT gpuvm.import('t'), gpuvm.import('infinite'), gpuvm.import('far');

-- Zones with gaps, overlaps, days that were skipped, halves of hours, rules for ever, and none.
CREATE FUNCTION in_zones(expressions text[], conditions text[], zones text[]) RETURNS TABLE (zone text, n bigint, "by" text, equal bool) LANGUAGE plpgsql AS $$
DECLARE z text; e text; a record;
BEGIN
	CREATE TEMP TABLE asked (zone text, who text, same bool) ON COMMIT DROP;
	FOREACH z IN ARRAY zones LOOP
		PERFORM set_config('timezone', z, false);
		FOREACH e IN ARRAY expressions LOOP
			a := ask(format('SELECT count(*), sum(hashtextextended(v::text, id)::numeric) FROM (SELECT id, %s AS v FROM t OFFSET 0) q', e));
			INSERT INTO asked VALUES (z, a."by", a.equal);
		END LOOP;
		FOREACH e IN ARRAY conditions LOOP
			a := ask(format('SELECT count(*), sum(id) FROM t WHERE %s', e));
			INSERT INTO asked VALUES (z, a."by", a.equal);
		END LOOP;
	END LOOP;
	RETURN QUERY SELECT min(k.zone), count(*), k.who, k.same FROM asked k GROUP BY array_position(zones, k.zone), k.who, k.same ORDER BY array_position(zones, k.zone), 3, 4;
	PERFORM set_config('timezone', 'UTC', false);
END $$;
SELECT * FROM in_zones(ARRAY['ts::timestamp', 'ts::date', 'ts::time', 'lt::timestamptz', 'd::timestamptz', 'lt::time', 'date_trunc(''day'', ts)', 'date_trunc(''hour'', ts)', 'date_trunc(''week'', ts)', 'date_trunc(''year'', ts)',
		'extract(hour FROM ts)', 'extract(isodow FROM ts)', 'extract(second FROM ts)', 'date_part(''doy'', ts)', 'ts + interval ''1 month''', 'ts - interval ''1 day 2 hours''', 'ts + interval ''1 year 3 days -5 minutes'''],
	ARRAY['ts < d', 'd >= ts', 'ts = lt', 'lt <= ts', 'ts <> lt', 'ts > date ''2011-05-06''', 'timestamp ''2011-10-30 01:30'' >= ts', 'ts::date = date ''2011-03-27'''],
	ARRAY['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Australia/Lord_Howe', 'Pacific/Apia', 'EST5EDT,M3.2.0,M11.1.0', '<+05>-5', '-03:30', 'Europe/Dublin', 'Africa/Casablanca', 'Europe/Moscow', 'XYZ-167']);

-- The same as groups, keys of joins and outputs.
SET TimeZone = 'Europe/Berlin';
SELECT expression, "by", equal FROM ask_each('SELECT %s AS v, count(*), min(id) FROM t GROUP BY 1', 'date_trunc(''month'', ts)', 'ts::date', 'extract(hour FROM ts)', 'ts::time', 'date_part(''month'', ts)');
SELECT expression, "by", equal FROM ask_each('SELECT id, %s AS v FROM t WHERE id BETWEEN 100 AND 300', 'ts::timestamp', 'date_trunc(''day'', ts)', 'lt::timestamptz', 'ts + interval ''1 mon 1 day''');
SELECT "by", equal FROM ask('SELECT count(*), sum(a.id), sum(b.id) FROM t a JOIN t b ON a.ts::date = b.d AND a.id = b.id');
SELECT "by", equal FROM ask('SELECT a.id, count(b.id) FROM infinite a LEFT JOIN t b ON b.ts < a.d GROUP BY a.id');

-- Zones that constants name.
SELECT expression, "by", equal FROM ask_each('SELECT count(*), sum(id) FROM t WHERE %s < timestamp ''2011-06-01 12:00''', 'ts AT TIME ZONE ''America/New_York''', 'ts AT TIME ZONE ''est''', 'ts AT TIME ZONE ''EST5EDT''',
	'ts AT TIME ZONE ''+03:30''', 'ts AT TIME ZONE interval ''-3 hours 30 minutes''', 'ts AT TIME ZONE ''MSK''', 'ts AT TIME ZONE ''nowhere''', 'ts AT TIME ZONE (''Asia/'' || CASE WHEN id % 2 = 0 THEN ''Tokyo'' ELSE ''Seoul'' END)', 'ts AT TIME ZONE interval ''1 day''');
SELECT expression, "by", equal FROM ask_each('SELECT count(*), sum(id) FROM t WHERE %s < timestamptz ''2011-06-01 12:00''', 'lt AT TIME ZONE ''America/New_York''', 'lt AT TIME ZONE ''EST''', 'lt AT TIME ZONE interval ''05:30:00.5''',
	'date_trunc(''day'', ts, ''Asia/Tokyo'')', 'date_trunc(''minute'', ts, ''Asia/Kolkata'')', 'date_trunc(''month'', ts, ''MSK'')');

-- Infinities stay what they are, or are PostgreSQL's; so is what lies beyond a table.
SELECT expression, "by", equal FROM ask_each('SELECT id, %s AS v FROM infinite', 'ts::timestamp', 'ts::date', 'ts::time', 'lt::time', 'lt::timestamptz', 'd::timestamptz', 'date_trunc(''day'', ts)', 'extract(year FROM ts)', 'ts + interval ''1 month''', 'ts < d', 'lt = ts');
SELECT expression, "by", equal FROM ask_each('SELECT id, %s AS v FROM far', 'ts::timestamp', 'ts::date', 'lt::timestamptz', 'd::timestamptz', 'date_trunc(''day'', ts)', 'ts > d', 'lt <= ts');
SET TimeZone = 'Asia/Kolkata';
SELECT expression, "by", equal FROM ask_each('SELECT id, %s AS v FROM far WHERE id > 1', 'ts::timestamp', 'lt::timestamptz', 'date_trunc(''century'', ts)');
-- A plan that is kept is right when TimeZone changes.
SET plan_cache_mode = force_generic_plan;
PREPARE days(date) AS SELECT count(*), min(ts), max(ts) FROM t WHERE ts::date = $1 AND ts >= $1;
SET TimeZone = 'Pacific/Apia';
SET gpuvm.require = :'device';
EXECUTE days('2011-12-29');
EXECUTE days('2011-12-30');
EXECUTE days('2011-12-31');
SET TimeZone = 'America/New_York';
EXECUTE days('2011-12-30');
EXECUTE days('2011-03-13');
RESET gpuvm.require;
SET gpuvm.enabled = off;
EXECUTE days('2011-12-30');
EXECUTE days('2011-03-13');
SET TimeZone = 'Pacific/Apia';
EXECUTE days('2011-12-29');
EXECUTE days('2011-12-30');
EXECUTE days('2011-12-31');
RESET gpuvm.enabled;

-- What depends on more than the zone stays with PostgreSQL.
SELECT expression, "by", equal FROM ask_each('SELECT %s AS v, count(*) FROM t GROUP BY 1', 'to_char(ts, ''YYYY'')', 'ts::text', 'extract(julian FROM ts)', 'extract(timezone FROM ts)', 'ts - timestamptz ''2000-01-01''', 'ts::timetz');
EXPLAIN (COSTS OFF) SELECT date_trunc('day', ts), count(*) FROM t WHERE (ts AT TIME ZONE 'Asia/Tokyo')::date = '2011-05-05' GROUP BY 1;

SET client_min_messages = warning;
DROP SCHEMA time_zone CASCADE;
