-- Window functions in stages (gpuvm.whole_query): columns that gpuvmd appends to sorted rows of a stage.
SET gpuvm.device = 'cpu';
SET extra_float_digits = 0;
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_windows;
SET search_path = whole_windows, public;

CREATE TABLE w (id int PRIMARY KEY, g int, k int, v int2, b int8, p numeric(10,2), f float8, d date, ts timestamp, tz timestamptz, ok bool, s text, n text, c text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO w SELECT i, nullif(i % 7, 3), nullif(i % 50, 10), nullif(i * 37 % 100, 50), i * 1000003::int8, CASE WHEN i % 11 > 0 THEN (i * 37 % 10000) / 100.0 END, CASE WHEN i % 50 = 0 THEN 'NaN' ELSE i % 90 / 4.0 END,
		date '2024-01-01' + nullif(i % 100, 9), timestamp '2024-01-01' + i % 500 * interval '37 minutes', timestamptz '2024-03-01 00:00 UTC' + i % 300 * interval '3 hours', nullif(i % 3, 2) = 0,
		nullif('s' || i % 13, 's5'), md5((i % 700)::text) || 'é', chr(65 + i % 26 + i % 2 * 32)
	FROM generate_series(1, 3000) i;
INSERT INTO w VALUES (3001, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (3002, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (3003, 1, 1, 1, NULL, 99999999.99, '-infinity', 'infinity', '-infinity', 'infinity', true, '', '', '');
\set ECHO none
\i tests/sql/include/vary.sql
\set ECHO all
SELECT vary('w', 'n');
CREATE TABLE dim (k int, name text) WITH (autovacuum_enabled = off);
INSERT INTO dim SELECT i, 'name ' || i % 10 FROM generate_series(0, 60) i;
CREATE TABLE nothing (LIKE w) WITH (autovacuum_enabled = off);
VACUUM ANALYZE w, dim, nothing;
SELECT sum(gpuvm.import(t)) FROM unnest('{w,dim,nothing}'::regclass[]) t;

\i tests/sql/include/in_stages.sql
-- The rows are those of PostgreSQL? And how many stages gave them, with how many windows' columns (gpuvm.require: all on the engine named)?
CREATE FUNCTION ask(query text, OUT stages int, OUT windows int, OUT rows int, OUT equal bool, OUT why text) LANGUAGE sql AS $$
SELECT stages, (SELECT count(*) FROM regexp_matches(plan::text, '"c\d+ = ', 'g')), cardinality(expected), same_rows(got, expected), why FROM in_stages(query) $$;

-- Numbers of rows and of peers; nulls in keys are peers, too.
SELECT * FROM ask('SELECT id, row_number() OVER (PARTITION BY g ORDER BY k, id), rank() OVER (PARTITION BY g ORDER BY k), dense_rank() OVER (PARTITION BY g ORDER BY k NULLS FIRST) FROM w');
SELECT * FROM ask('SELECT id, percent_rank() OVER (ORDER BY f DESC), cume_dist() OVER (PARTITION BY ok ORDER BY p), ntile(7) OVER (PARTITION BY k ORDER BY id DESC) FROM w');
SELECT * FROM ask('SELECT id, count(*) OVER (), row_number() OVER (ORDER BY id) FROM w WHERE id < 5');
SELECT * FROM ask('SELECT count(*) OVER () FROM w WHERE g = 2');
-- Values of other rows: numbers, texts of dictionaries and of variable length, numerics with their decimals.
SELECT * FROM ask('SELECT id, lag(s) OVER x, lead(n, 2) OVER x, first_value(p) OVER x, last_value(d) OVER x, nth_value(c, 3) OVER x FROM w WINDOW x AS (PARTITION BY g ORDER BY v, id)');
SELECT * FROM ask('SELECT id, lag(k, 3, -1) OVER x, lead(d, 1, date ''2000-01-01'') OVER x, lag(p, 1, 0.50) OVER x, lag(k, -2) OVER x, lead(k, 0) OVER x FROM w WINDOW x AS (PARTITION BY g ORDER BY v, id)');
-- Aggregates: running, of whole partitions, of frames; averages have PostgreSQL's digits.
SELECT * FROM ask('SELECT id, sum(v) OVER x, sum(b) OVER x, sum(p) OVER x, avg(k) OVER x, avg(p) OVER x, avg(b) OVER x, count(p) OVER x FROM w WINDOW x AS (PARTITION BY g ORDER BY k)');
SELECT * FROM ask('SELECT id, sum(p) OVER (PARTITION BY k), avg(v) OVER (PARTITION BY g, k), min(f) OVER (PARTITION BY g), max(s) OVER (PARTITION BY k), min(c) OVER (PARTITION BY g), max(ts) OVER (PARTITION BY s) FROM w');
SELECT * FROM ask('SELECT id, bool_and(ok) OVER (PARTITION BY k), every(v > 50) OVER (PARTITION BY k ORDER BY id), bool_or(ok) FILTER (WHERE v > 20) OVER (PARTITION BY k) FROM w');
SELECT * FROM ask('SELECT id, count(*) FILTER (WHERE ok) OVER x, sum(k) FILTER (WHERE v > 1000) OVER x, max(k) FILTER (WHERE false) OVER x, max(k) FILTER (WHERE true) OVER x, count(1) OVER x FROM w WINDOW x AS (ORDER BY d)');
SELECT * FROM ask('SELECT id, sum(k) OVER (ORDER BY id ROWS 3 PRECEDING), max(p) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 5 FOLLOWING), first_value(id) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING) FROM w');
SELECT * FROM ask('SELECT id, count(*) OVER (ORDER BY k GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING), sum(v) OVER (PARTITION BY ok ORDER BY s DESC GROUPS 2 PRECEDING) FROM w');
-- RANGE: of each kind of key, with nulls and infinities, in both directions.
SELECT * FROM ask('SELECT id, count(*) OVER (ORDER BY k RANGE BETWEEN 2 PRECEDING AND 3 FOLLOWING), count(*) OVER (ORDER BY p DESC RANGE BETWEEN 1.505 PRECEDING AND 20 FOLLOWING), count(*) OVER (ORDER BY f RANGE 1.5 PRECEDING) FROM w');
SELECT * FROM ask('SELECT id, count(*) OVER (ORDER BY p RANGE BETWEEN 1.505 FOLLOWING AND 3.005 FOLLOWING), count(*) OVER (ORDER BY p RANGE BETWEEN 3.015 PRECEDING AND 1.495 PRECEDING), count(*) OVER (PARTITION BY k ORDER BY p RANGE BETWEEN 0.001 FOLLOWING AND 0.001 FOLLOWING), count(*) OVER (ORDER BY p DESC RANGE BETWEEN 0.004 FOLLOWING AND 2 FOLLOWING) FROM w');
SELECT * FROM ask('SELECT id, sum(k) OVER (ORDER BY d RANGE ''3 days'' PRECEDING), sum(k) OVER (ORDER BY ts RANGE BETWEEN ''1 day 2 hours'' PRECEDING AND CURRENT ROW), sum(k) OVER (ORDER BY tz NULLS FIRST RANGE BETWEEN ''7 hours'' PRECEDING AND ''1 hour'' FOLLOWING) FROM w');
SELECT * FROM ask('SELECT id, sum(k) OVER (ORDER BY d RANGE ''0 days'' PRECEDING), count(*) OVER (ORDER BY b RANGE BETWEEN CURRENT ROW AND 3000009 FOLLOWING) FROM w');
-- Texts as keys: of dictionaries, of variable length, and under another collation.
SELECT * FROM ask('SELECT id, rank() OVER (ORDER BY s), rank() OVER (ORDER BY n DESC), rank() OVER (PARTITION BY n ORDER BY c), dense_rank() OVER (ORDER BY c) FROM w');
SELECT * FROM ask('SELECT id, rank() OVER (ORDER BY c COLLATE "en-x-icu"), rank() OVER (ORDER BY c), dense_rank() OVER (ORDER BY s COLLATE "C" DESC) FROM w');
-- Several windows share a sort where the keys of one come first in those of another.
SELECT * FROM ask('SELECT id, rank() OVER (PARTITION BY g, k ORDER BY v, id), sum(v) OVER (PARTITION BY k), count(*) OVER (PARTITION BY k, g), row_number() OVER (PARTITION BY g, k ORDER BY v, id) FROM w');
SELECT * FROM ask('SELECT id, rank() OVER (PARTITION BY g ORDER BY v), rank() OVER (PARTITION BY g ORDER BY v DESC), rank() OVER (PARTITION BY g ORDER BY v NULLS FIRST) FROM w');
SELECT * FROM ask('SELECT id, rank() OVER (PARTITION BY 1 ORDER BY g, g, v), sum(v) OVER (PARTITION BY g ORDER BY g, 2) FROM w');
-- Windows over groups, joins, and below both; conditions on ranks; windows of windows.
SELECT * FROM ask('SELECT g, k, sum(v), sum(sum(v)) OVER (PARTITION BY g ORDER BY k), rank() OVER (ORDER BY sum(v) DESC), sum(v) * 100.0 / sum(sum(v)) OVER (PARTITION BY g) FROM w GROUP BY g, k');
SELECT * FROM ask('SELECT s, avg(sum(p)) OVER (PARTITION BY s), lag(sum(p)) OVER (ORDER BY s NULLS FIRST) FROM w GROUP BY s');
SELECT * FROM ask('SELECT w.id, dim.name, row_number() OVER (PARTITION BY dim.name ORDER BY w.id) FROM w JOIN dim USING (k) WHERE w.v < 30');
SELECT * FROM ask('SELECT w.id, dim.name, count(dim.k) OVER (PARTITION BY dim.name) FROM w LEFT JOIN dim ON dim.k = w.k AND dim.k < 20');
SELECT * FROM ask('SELECT * FROM (SELECT id, s, rank() OVER (PARTITION BY s ORDER BY p DESC, id) r FROM w) x WHERE r <= 3');
SELECT * FROM ask('SELECT d.name, x.id, x.r FROM (SELECT id, k, rank() OVER (PARTITION BY k ORDER BY b DESC) r FROM w) x JOIN dim d ON d.k = x.k WHERE r = 2');
SELECT * FROM ask('SELECT r, count(*), sum(v) FROM (SELECT v, ntile(5) OVER (ORDER BY id) r FROM w) x GROUP BY r');
SELECT * FROM ask('WITH x AS (SELECT g, k, sum(v) t, row_number() OVER (PARTITION BY g ORDER BY k) r FROM w GROUP BY g, k) SELECT a.g, a.k, a.t - b.t FROM x a JOIN x b ON a.g = b.g AND a.r = b.r + 1');
SELECT * FROM ask('SELECT id, sum(r) OVER (ORDER BY id) FROM (SELECT id, rank() OVER (PARTITION BY g ORDER BY v) r FROM w) x');
SELECT * FROM ask('SELECT id, r FROM (SELECT id, row_number() OVER (ORDER BY id) r FROM w WHERE v > 10) x ORDER BY id DESC LIMIT 5');
SELECT * FROM ask('SELECT DISTINCT k, count(*) OVER (PARTITION BY k) FROM w');
SELECT * FROM ask('SELECT id, rank() OVER (PARTITION BY g), sum(v) OVER (PARTITION BY g ORDER BY v), count(*) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM (SELECT * FROM w ORDER BY g, v, id) x');
-- No rows.
SELECT * FROM ask('SELECT id, rank() OVER (ORDER BY s), sum(p) OVER (PARTITION BY g), lag(n) OVER (ORDER BY id) FROM nothing');
SELECT * FROM ask('SELECT id, avg(p) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING) FROM w WHERE id < 0');
-- A sum of more than 64 bits, and what PostgreSQL raises for: its own plan.
SET gpuvm.force = on;
SET gpuvm.whole_query = on;
SELECT max(x) FROM (SELECT sum(b * 1000000000) OVER (ORDER BY id) x FROM w WHERE id <= 3000) y;
SELECT count(*) FROM (SELECT id, ntile(0) OVER (ORDER BY id) x FROM w) y WHERE x > 0;
SELECT count(*) FROM (SELECT id, sum(k) OVER (ORDER BY id ROWS BETWEEN -1 PRECEDING AND CURRENT ROW) x FROM w) y WHERE x > 0;
SELECT count(*) FROM (SELECT id, sum(k) OVER (ORDER BY k RANGE -1 PRECEDING) x FROM w) y WHERE x > 0;
PREPARE last_rows(int) AS SELECT id, r FROM (SELECT id, sum(id) OVER (ORDER BY id ROWS $1 PRECEDING) r FROM w) x WHERE id BETWEEN 10 AND 12 ORDER BY id;
SET plan_cache_mode = force_generic_plan;
EXECUTE last_rows(0);
EXECUTE last_rows(2);
EXECUTE last_rows(NULL);
RESET plan_cache_mode;
-- Over the rows of a full join, whose sides may be windows, too.
SELECT * FROM ask('SELECT coalesce(a.id, b.id) i, a.k, b.v, sum(a.k) OVER (ORDER BY coalesce(a.id, b.id)), max(b.v) OVER (ORDER BY coalesce(a.id, b.id) ROWS 2 PRECEDING) FROM (SELECT id, k FROM w WHERE id % 3 > 0) a FULL JOIN (SELECT id, v FROM w WHERE id % 2 > 0) b ON a.id = b.id');
SELECT * FROM ask('SELECT *, max(x) OVER (PARTITION BY g ORDER BY d ROWS UNBOUNDED PRECEDING) mx, max(y) OVER (PARTITION BY g ORDER BY d ROWS UNBOUNDED PRECEDING) my FROM (SELECT CASE WHEN a.g IS NOT NULL THEN a.g ELSE b.g END g, CASE WHEN a.d IS NOT NULL THEN a.d ELSE b.d END d, a.x, b.x y
	FROM (SELECT g, id / 10 d, sum(sum(v)) OVER (PARTITION BY g ORDER BY id / 10) x FROM w WHERE id % 7 > 2 AND g IS NOT NULL GROUP BY 1, 2) a FULL JOIN (SELECT g, id / 10 d, sum(sum(k)) OVER (PARTITION BY g ORDER BY id / 10) x FROM w WHERE id % 5 > 1 AND g IS NOT NULL GROUP BY 1, 2) b ON a.g = b.g AND a.d = b.d) j');
SELECT * FROM ask('SELECT g, n, rank() OVER (ORDER BY n, g) FROM (SELECT a.g, count(b.id) n FROM w a FULL JOIN w b ON a.id = b.id + 2900 GROUP BY 1) j');
-- What is refused, and why.
SELECT query, (SELECT max(reason) FILTER (WHERE node = 'Whole statement') FROM gpuvm.why_not(query)) FROM (VALUES
	('SELECT id, min(ok::text) OVER (ORDER BY id) FROM w'),
	('SELECT id, sum(f) OVER (ORDER BY id ROWS 1 PRECEDING) FROM w'),
	('SELECT id, stddev(k) OVER (ORDER BY id) FROM w'),
	('SELECT id, string_agg(s, '','') OVER (ORDER BY id) FROM w'),
	('SELECT id, lag(k, k) OVER (ORDER BY id) FROM w'),
	('SELECT id, lag(s, 1, ''none'') OVER (ORDER BY id) FROM w'),
	('SELECT id, row_number() OVER () FROM w'),
	('SELECT id, sum(k) OVER (ROWS 1 PRECEDING) FROM w'),
	('SELECT id, lag(id) OVER (PARTITION BY g) FROM (SELECT * FROM w ORDER BY g, v, id) x'),
	('SELECT id, max(n) OVER (PARTITION BY g) FROM w')) q(query);
-- Changed rows, and what EXPLAIN shows.
UPDATE w SET v = 7 WHERE id % 1000 = 1;
DELETE FROM w WHERE id = 17;
SELECT * FROM ask('SELECT id, rank() OVER (PARTITION BY g ORDER BY v), sum(v) OVER (PARTITION BY s) FROM w');
EXPLAIN (COSTS OFF) SELECT id, rank() OVER (PARTITION BY g ORDER BY v DESC), avg(v) FILTER (WHERE ok) OVER (PARTITION BY g), lag(s, 2) OVER (ORDER BY s, id),
	sum(k) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING) FROM w;
SELECT value FROM gpuvm.stats WHERE counter = 'result sets';
DROP SCHEMA whole_windows CASCADE;
