-- Years and months of age(a, b), against PostgreSQL: leap days, ends of months, times of day, years before Christ, zones whose clocks are set.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA ages;
SET search_path = ages;
SET gpuvm.force = on;
SET timezone = 'Europe/Berlin';

\set ECHO none
\i tests/sql/include/ask_many.sql
\set ECHO all

CREATE TABLE t (id int, d date, e date, a timestamp, b timestamp, u timestamptz, v timestamptz) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, date '1995-12-28' + i * 37 % 9000, date '2000-02-27' + i % 5, timestamp '1999-12-30 10:00' + i * 7919 % 100003 * interval '1 hour', timestamp '2004-02-28 09:59:59.999999' + i % 48 * interval '1 hour',
	timestamptz '2003-10-26 01:00+02' + i % 300 * interval '10 minutes', timestamptz '2003-10-26 00:30+02' + i * 31 % 300 * interval '10 minutes' + i % 7 * interval '1 month' FROM generate_series(1, 3000) i;
INSERT INTO t (id, d, e, a, b) SELECT 4000 + row_number() OVER (), CASE WHEN a < '2100-01-01' THEN a::date END, b::date, a, b FROM (SELECT a::timestamp, b::timestamp FROM unnest(ARRAY['2000-02-29', '2001-02-28 12:00', '2000-03-01', '2000-01-31', '2000-03-31 00:00:00.000001', '0001-01-01 BC', '0001-12-31 BC', '0001-01-01', '0044-03-15 BC', '1999-12-31 23:59:59.999999', '294276-01-01', '4713-01-01 BC']) a,
	unnest(ARRAY['2000-02-29', '2001-02-28', '2004-02-29', '2000-03-30', '2000-02-28 23:00', '0001-01-01', '0002-02-28 BC', '2000-12-31', '0005-01-31 BC']) b) s;
INSERT INTO t VALUES (5000, NULL, '2000-01-01', NULL, '2000-01-01', '2000-01-01', NULL);
SELECT gpuvm.import('t');
ANALYZE t;

INSERT INTO queries (query) SELECT format('SELECT %s AS v, count(*), sum(id) FROM t GROUP BY 1', f) FROM unnest(ARRAY['extract(year FROM age(a, b))', 'extract(month FROM age(a, b))', 'date_part(''year'', age(b, a))', 'date_part(''month'', age(b, a))', 'extract(year FROM age(e, d))', 'extract(month FROM age(d, e))',
	'extract(year FROM age(d, timestamp ''2004-02-29''))', 'extract(year FROM age(timestamptz ''2024-01-01'', d))', 'extract(year FROM age(a, b)) * 12 + extract(month FROM age(a, b))', 'extract(year FROM age(timestamp ''2024-02-29 12:00'', a))::int', 'width_bucket(extract(year FROM age(d, e)), 0, 30, 6)']) f;
INSERT INTO queries (query) SELECT format('SELECT %s AS v, count(*), sum(id) FROM t WHERE u > v + interval ''1 day'' GROUP BY 1', f) FROM unnest(ARRAY['extract(month FROM age(u, v))', 'extract(month FROM age(v, u))']) f;
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['count(*) FROM t WHERE extract(year FROM age(a, b)) >= 3', 'id, a, b FROM t WHERE extract(year FROM age(a, b)) = -2 AND extract(month FROM age(a, b)) < -5', 'avg(extract(year FROM age(e, d))) FROM t', 'count(*) FILTER (WHERE extract(year FROM age(d)) >= 18) FROM t',
	'count(*) FROM t WHERE CASE WHEN d > ''2005-01-01'' THEN date_part(''year'', age(d, e)) > 6 END', 'extract(month FROM age(u, v)), count(*) FROM t GROUP BY 1']) q;
SELECT * FROM asked();

SET gpuvm.require = :device;
SELECT extract(year FROM age(timestamp '2010-01-01', d)) AS years, count(*) FROM t WHERE id < 4000 GROUP BY 1 ORDER BY 1 LIMIT 4;
RESET gpuvm.require;
-- What is infinite is PostgreSQL's to tell, and so are the other fields, and times that a clock shows in another order.
INSERT INTO t (id, u, v) VALUES (5001, '2003-10-26 02:50+02', '2003-10-26 02:10+01');
INSERT INTO queries (query) SELECT format('SELECT count(*) FROM t WHERE id > 5000 AND extract(%s FROM age(%s)) = 0', f, o) FROM unnest(ARRAY['year', 'month']) f, unnest(ARRAY['u, v', 'v, u']) o;
SELECT * FROM asked();
INSERT INTO t VALUES (6000, 'infinity', '2000-01-01', 'infinity', '2000-01-01');
SELECT count(*) FROM t WHERE extract(year FROM age(a, b)) > 1;
SELECT reason FROM gpuvm.why_not('SELECT count(*) FROM t WHERE extract(day FROM age(a, b)) > 1') LIMIT 1;
SET client_min_messages = warning;
DROP SCHEMA ages CASCADE;
