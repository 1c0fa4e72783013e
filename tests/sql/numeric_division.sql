-- Quotients of numerics: digits, scale and rounding are numeric_div's, row by row.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA numeric_division;
SET search_path = numeric_division;
SET gpuvm.force = on;
\set VERBOSITY terse
\set ECHO none
\i tests/sql/include/ask_all.sql
\set ECHO all

-- 24,000 pairs: of all magnitudes, and about where weights and first digits change. Groups of one row show each quotient as it is.
CREATE FUNCTION spread(seed int, digits int, scale int) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE seed % 6 WHEN 0 THEN seed * 7919::numeric * 104729 * (seed % 8191) % 10::numeric ^ (1 + seed / 6 % digits) + 1
		WHEN 1 THEN 10::numeric ^ (seed / 6 % digits) WHEN 2 THEN greatest(10::numeric ^ (seed / 6 % digits) - 1, 1) WHEN 3 THEN 10::numeric ^ (seed / 6 % digits) + 1 WHEN 4 THEN (1 + seed % 9) * 10::numeric ^ (seed / 6 % digits)
		ELSE seed * 15485863::numeric * 32452843 % 10::numeric ^ digits + 1 END::int8 * 10::numeric ^ -scale * CASE WHEN seed % 7 < 3 THEN -1 ELSE 1 END
$$;
CREATE TABLE pairs (id int, a numeric(12, 2), b numeric(9, 3), c numeric(6, 6), e numeric(9), i int, s smallint, l bigint) WITH (autovacuum_enabled = off);
INSERT INTO pairs SELECT k, spread(k, 7, 2), spread(k / 3 + 5 * k, 6, 3), spread(7 * k + 1, 5, 6), spread(11 * k + k / 5, 8, 0), spread(k + 1, 6, 0), spread(k / 2, 4, 0), spread(3 * k + k / 7, 9, 0)
	FROM generate_series(1, 24000) k;
SELECT gpuvm.import('pairs');
SELECT * FROM ask_all(ARRAY['SELECT id, sum(a / b) FROM pairs GROUP BY id ORDER BY id', 'SELECT id, sum(b / a) FROM pairs GROUP BY id ORDER BY id', 'SELECT id, sum(a / e), sum(e / a) FROM pairs GROUP BY id ORDER BY id',
	'SELECT id, sum(c / b), sum(i / b) FROM pairs GROUP BY id ORDER BY id', 'SELECT id, sum(a / i), sum(b / s), sum(a / l) FROM pairs GROUP BY id ORDER BY id', 'SELECT id, sum(e::numeric / s), sum(i::numeric / l) FROM pairs GROUP BY id ORDER BY id',
	'SELECT id, sum(a / 7), sum(a / 100), sum(100 / b), sum(a / -0.003) FROM pairs GROUP BY id ORDER BY id', 'SELECT id, sum(a * b / 100), avg(a * c / s) FROM pairs GROUP BY id ORDER BY id']);

-- Wherever a quotient may stand.
SELECT * FROM ask_all(ARRAY['SELECT count(*) FROM pairs WHERE a / b > 10', 'SELECT count(*) FROM pairs WHERE a / b BETWEEN -1 AND 1.5', 'SELECT count(*) FROM pairs WHERE a / b = 1', 'SELECT count(*) FROM pairs WHERE a / b IN (1, 0.5, 10)', 'SELECT count(*) FROM pairs WHERE a / b > e / s',
	'SELECT count(*) FROM pairs WHERE a / 3 = 33.3333333333333333', 'SELECT count(*) FROM pairs WHERE a / b IS DISTINCT FROM b / a', 'SELECT id, a / b FROM pairs WHERE a / b < -100 ORDER BY a / b, id LIMIT 20', 'SELECT sum(a / b), avg(a / b), count(a / b), stddev(a / e) FROM pairs WHERE id < 2000',
	'SELECT s % 5, sum(a / b), avg(a / s), count(*) FILTER (WHERE a / b > 1), sum(a / b) FILTER (WHERE s > 100) FROM pairs GROUP BY 1 ORDER BY 1', 'SELECT sum(CASE WHEN b > 1 THEN a / b ELSE 0 END), sum(CASE WHEN i > 0 THEN a / i WHEN i < -5 THEN 1.5 END) FROM pairs',
	'SELECT sum(coalesce(a / nullif(b, 1), -1)), sum(coalesce(a / nullif(e, 100000000), 0.5)) FROM pairs', 'SELECT count(*) FROM pairs WHERE greatest(a / b, 1) > 2 AND least(b / a, i) < 100',
	'SELECT sum(a / b * 100), sum(100 * a / b), sum(1 - a / b), sum(a / b + i), sum(-(a / b)), sum(abs(a / s)), sum(a / b * b) FROM pairs', 'SELECT id, sum(a / b - a / s), sum(a / s * b) FROM pairs GROUP BY id ORDER BY id',
	'SELECT round(a / b, 2), count(*) FROM pairs GROUP BY 1 ORDER BY 1', 'SELECT sum(round(a / b)), sum(round(a / b, 3)), sum(round(a / b, -2)) FROM pairs', 'SELECT sum(round(a / s, 12)), sum(round(100 * a / b, 1)) FROM pairs', 'SELECT sum(round(a / b * 100, 1)) FROM pairs',
	'SELECT sum(trunc(a / b)), sum(trunc(a / b, 4)), sum(trunc(a / s, -1)) FROM pairs', 'SELECT sum(ceil(a / b)), sum(floor(a / b)), sum(sign(a / b)) FROM pairs', 'SELECT sum((a / b)::numeric(15, 3)), sum((a / s)::int) FROM pairs', 'SELECT sum((a / b)::bigint), sum((b / s)::numeric(5, 0)) FROM pairs',
	'SELECT min(round(a / b, 2)), max(floor(a / s)), min(ceil(e / b)) FROM pairs', 'SELECT id, round(a / b, 3), floor(a / b), ceil(a / b), trunc(b / a, 1), round(b / a), (a / s)::numeric(12, 4) FROM pairs ORDER BY round(a / b, 3), id LIMIT 1000',
	'SELECT count(*) FROM pairs x JOIN pairs y ON round(x.a / x.b) = y.s AND y.id < 100', 'SELECT sum(round(a / b, 2) / s), sum(round(a / s) * b / 100) FROM pairs', 'SELECT a % b, sum(mod(a, 7.5)) FROM pairs GROUP BY 1 ORDER BY 1']);

-- A rounding that decides, at both signs: 2/3, halves, and quotients that round to the next power of ten.
CREATE TABLE edges (id int, a numeric, b numeric) WITH (autovacuum_enabled = off);
INSERT INTO edges SELECT row_number() OVER (), a, b FROM unnest(ARRAY[0, 1, 2, 5, 9999, 10000, 10001, 99999, 1000000, 9999999, -1, -2, -5, -10001, -9999999, NULL]) a,
	unnest(ARRAY[1, 2, 3, 7, 8, 9999, 10000, 10001, 16384, 99999999, 100000000, 100000001, 32768, -3, -10000, -16384, NULL]) b;
SELECT gpuvm.import('edges');
SELECT * FROM ask_all(ARRAY['SELECT id, sum(a / b), sum(b / a) FROM edges WHERE a <> 0 GROUP BY id ORDER BY id', 'SELECT id, sum(a / b) FROM edges GROUP BY id ORDER BY id', 'SELECT id, round(a / b), round(a / b, 1), round(a / b, 15), trunc(a / b, 16), floor(a / b), ceil(a / b) FROM edges ORDER BY round(a / b), id']);

-- Division by zero: of rows that count.
UPDATE edges SET b = 0 WHERE id % 10 = 0;
SELECT gpuvm.import('edges');
SELECT sum(a / b) FROM edges;
SELECT count(*) FROM edges WHERE a / b > 0;
SELECT sum(round(a / b, 1)) FROM edges;
SELECT * FROM ask_all(ARRAY['SELECT sum(a / b) FROM edges WHERE b <> 0', 'SELECT sum(a / b) FILTER (WHERE b <> 0) FROM edges', 'SELECT count(*) FROM edges WHERE b <> 0 AND a / b > 1', 'SELECT sum(CASE WHEN b = 0 THEN 0 ELSE a / b END), avg(a / nullif(b, 0)) FROM edges',
	'SELECT count(*) FROM edges WHERE b = 0 OR a / b > 1', 'SELECT sum(round(a / nullif(b, 0), 2)) FROM edges']);

-- Divisors of which a few are tiny, and dividends that are next to nothing: what is summed up has room for all of them. Zero shows decimals that no limb has.
CREATE TABLE tiny (id int, a numeric(12, 2), b numeric(12, 6), c numeric(18, 9)) WITH (autovacuum_enabled = off);
INSERT INTO tiny SELECT k, CASE WHEN k % 900 = 1 THEN 99999999.99 WHEN k % 50 = 3 THEN 0 ELSE k % 7001 * 0.17 - 300 END, CASE WHEN k % 1000 = 7 THEN 0.000001 WHEN k % 1000 = 8 THEN -0.0003 WHEN k % 500 = 9 THEN 999999.999999 ELSE (k % 4999 + 1) * 0.25 END,
	CASE k % 4 WHEN 0 THEN 0.000000001 WHEN 1 THEN 999999999.999999999 WHEN 2 THEN -1 END FROM generate_series(1, 9000) k;
SELECT gpuvm.import('tiny');
SELECT * FROM ask_all(ARRAY['SELECT sum(a / b), avg(a / b), count(a / b) FROM tiny', 'SELECT id, sum(a / b), avg(b / a) FROM tiny WHERE a <> 0 GROUP BY id ORDER BY id', 'SELECT id, sum(a / c), avg(c / b), sum(c / 3) FROM tiny GROUP BY id ORDER BY id', 'SELECT id % 5, sum(b / c) FILTER (WHERE id > 100), avg(a / b) FILTER (WHERE b > 1) FROM tiny GROUP BY 1 ORDER BY 1',
	'SELECT sum(a / nullif(b, 0.25)), avg(b / nullif(a, 0)), sum(a * b / c) FROM tiny', 'SELECT id % 3, id % 2, sum(a / b), avg(c / b) FROM tiny GROUP BY ROLLUP (1, 2) ORDER BY 1, 2', 'SELECT id % 3, avg(a / b) FROM tiny GROUP BY 1 HAVING avg(a / b) > 0 ORDER BY avg(a / b)',
	'SELECT sum(x.a / y.b), avg(y.c / x.b) FROM tiny x JOIN tiny y ON x.id = y.id + 1', 'SELECT sum(a / b) FROM tiny WHERE id < 0', 'SELECT sum(a / (b * 0.000001)) FROM tiny']);

-- NaN and infinities.
CREATE TABLE specials (id int, a numeric(10, 2), b numeric, g int) WITH (autovacuum_enabled = off);
INSERT INTO specials SELECT row_number() OVER (), a, b, row_number() OVER () FROM unnest(ARRAY['NaN', NULL, '0', '1.50', '-2', '12345.67']::numeric[]) a, unnest(ARRAY['NaN', 'Infinity', '-Infinity', NULL, '1', '-7', '1000003']::numeric[]) b;
SELECT gpuvm.import('specials');
SELECT * FROM ask_all(ARRAY['SELECT id, sum(a / b) FROM specials GROUP BY id ORDER BY id', 'SELECT id, sum(b / a) FROM specials WHERE a <> 0 GROUP BY id ORDER BY id', 'SELECT id, sum(b / b), avg(a / a) FROM specials WHERE a <> 0 GROUP BY id ORDER BY id',
	'SELECT id, sum(b / 7), sum(100 / b) FROM specials WHERE a <> 0 GROUP BY id ORDER BY id', 'SELECT id, sum(b / -3), sum(1.5 / a) FROM specials WHERE a <> 0 GROUP BY id ORDER BY id', 'SELECT count(*) FROM specials WHERE a / b > 0', 'SELECT count(*) FROM specials WHERE a / b = ''NaN''', 'SELECT id, sum(round(a / b, 2)), sum(sign(a / b)) FROM specials GROUP BY id ORDER BY id', 'SELECT id, sum(-(a / b)) FROM specials GROUP BY id ORDER BY id', 'SELECT id, sum(a / b * a) FROM specials GROUP BY id ORDER BY id', 'SELECT g % 3, sum(a / b), avg(a / b), avg(b / 7) FROM specials GROUP BY 1 ORDER BY 1', 'SELECT sum(a / b) FROM specials WHERE a IS NULL OR b = ''Infinity'' AND a <> ''NaN'' OR b IS NULL']);
INSERT INTO specials VALUES (100, 1, 0, 0), (101, 'NaN', 0, 0);
SELECT gpuvm.refresh('specials');
SELECT sum(a / b) FROM specials WHERE id > 99;
SELECT * FROM ask_all(ARRAY['SELECT sum(a / b) FROM specials WHERE id > 100']);

-- Rows that have changed since, and what a plan knew before.
SET plan_cache_mode = force_generic_plan;
PREPARE quotients(numeric) AS SELECT count(*) FILTER (WHERE a / b > $1), sum(round(a / b, 2)) FROM pairs;
EXECUTE quotients(1.5);
UPDATE pairs SET a = a * 3, b = b + 1000 WHERE id % 100 = 0;
SELECT * FROM ask_all(ARRAY['SELECT id, sum(a / b) FROM pairs GROUP BY id ORDER BY id']);
SET gpuvm.enabled = off;
EXECUTE quotients(1.5);
RESET gpuvm.enabled;
EXECUTE quotients(1.5);
RESET plan_cache_mode;

-- Quotients whose decimals do not fit are PostgreSQL's, and so are those that are divided again.
SELECT * FROM ask_all(ARRAY['SELECT sum(a * c * c / e) FROM pairs', 'SELECT sum(e / (a * c * 0.000001)) FROM pairs']);
SELECT q, reason FROM unnest(ARRAY['SELECT sum(a / b / 3) FROM pairs', 'SELECT count(*) FROM pairs WHERE (a / b)::float8 > 1']) q, gpuvm.why_not(q);

-- Keys and extremes are shown as they are: with the decimals of the group's rows, or of the extreme.
CREATE TABLE rates (id int, a numeric(12, 2), i int, f numeric) WITH (autovacuum_enabled = off);
INSERT INTO rates SELECT k, nullif(k * 7919 % 1009, 500) * 0.25, 1 + k * 31 % 13, CASE WHEN k % 7 = 0 THEN 'NaN' WHEN k % 11 = 0 THEN 'Infinity' ELSE (k % 5 + 1)::text END::numeric FROM generate_series(1, 3000) k;
SELECT gpuvm.import('rates');
SELECT * FROM ask_all(ARRAY['SELECT max(a / b), min(a / b) FROM pairs', 'SELECT max(a / i), min(i / a), max(-(a / i)), min(a / 7) FROM rates WHERE a > 0', 'SELECT i, max(a / i), min(a / i), max(a / i) FILTER (WHERE id > 2990) FROM rates GROUP BY 1 ORDER BY 1',
	'SELECT id % 100, max(a / f), min(f / i) FROM rates GROUP BY 1 ORDER BY 1', 'SELECT max(a / i) FROM rates WHERE id < 0', 'SELECT i, max(a / i) FROM rates GROUP BY 1 HAVING max(a / i) > 30 ORDER BY max(a / i)', 'SELECT max(CASE WHEN i > 3 THEN a WHEN i > 1 THEN 2.5 END), min(CASE WHEN i > 3 THEN a / 7 ELSE 3 END) FROM rates',
	'SELECT a / 7, count(*), sum(id) FROM rates GROUP BY 1 ORDER BY 1', 'SELECT a / 7, count(*) FROM rates GROUP BY 1 ORDER BY 1 DESC LIMIT 5', 'SELECT f / 3, 1 + f / 3, count(*) FROM rates GROUP BY 1 ORDER BY 1', 'SELECT DISTINCT a / 7 * 100 FROM rates ORDER BY 1', 'SELECT a / 7, i, max(a / i) FROM rates WHERE a > 0 GROUP BY ROLLUP (1, 2) ORDER BY 1, 2',
	'SELECT a / 7, sum(id) FROM rates GROUP BY 1 HAVING sum(id) > 100 * (a / 7) ORDER BY 1', 'SELECT CASE WHEN i > 3 THEN a ELSE 1.75 END, count(*) FROM rates WHERE i > 3 GROUP BY 1 ORDER BY 1', 'SELECT count(DISTINCT a / i) FROM rates', 'SELECT count(*) FROM (SELECT DISTINCT a / i FROM rates) d', 'SELECT x.a / 3, max(y.a / x.i) FROM rates x JOIN rates y ON x.id = y.id + 5 GROUP BY 1 ORDER BY 1',
	'SELECT a / b, count(*) FROM pairs GROUP BY 1 ORDER BY 1, 2', 'SELECT max(a / b), sum(a / b / 3) FROM pairs']);
-- Of equal ones PostgreSQL shows the one that it meets first, or last: 1.5 is 3 / 2 with 16 decimals, and 1.5 / 1 with 20.
SELECT * FROM ask_all(ARRAY['SELECT a / i, count(*) FROM rates GROUP BY 1 ORDER BY 1, 2', 'SELECT max(a / i) FROM rates WHERE a / i <= 1.5', 'SELECT max(a / i) FROM rates WHERE a / i <= 1.5 AND i > 1', 'SELECT count(DISTINCT a / i), count(DISTINCT i) FROM rates', 'SELECT a / 7, count(DISTINCT i) FROM rates GROUP BY 1 ORDER BY 1']);

-- What is left to the planner is not executed twice again and again: a session remembers what gave way.
RESET gpuvm.force;
SET cpu_operator_cost = 10;
SELECT tries, "by" = 'Fallback: error flag' AS gave_way, equal FROM generate_series(1, 3) tries, LATERAL ask('SELECT sum(a * c * c / e) FROM pairs WHERE id > ' || 0 * tries) ORDER BY 1;
-- So does a plan that is kept; after 50 executions it is tried again.
CREATE FUNCTION fallback(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ '^ *Fallback: ' THEN
			RETURN ltrim(line);
		END IF;
	END LOOP;
	RETURN NULL;
END $$;
SET plan_cache_mode = force_generic_plan;
PREPARE kept(int) AS SELECT sum(a * c * c / e) FROM pairs WHERE id > $1;
SELECT string_agg(tries::text, ' ' ORDER BY tries), f FROM generate_series(1, 53) tries, LATERAL fallback('EXECUTE kept(' || 0 * tries || ')') f GROUP BY f ORDER BY 2;
SET gpuvm.enabled = off;
EXECUTE kept(0);
RESET gpuvm.enabled;
EXECUTE kept(0);
RESET plan_cache_mode;
RESET cpu_operator_cost;
DROP SCHEMA numeric_division CASCADE;
