-- Conditions that programs cannot evaluate are told in floats where that is certain (gpuvm.whole_query): PostgreSQL is asked of the other rows.
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA float_filter;
SET search_path = float_filter, public;

-- Groups with nulls, zeros, one row, no variance, NaN and numbers of more than 64 bits.
CREATE TABLE sale (g int, a numeric(10,2), b int, d numeric(24,3), n numeric(8,2)) WITH (autovacuum_enabled = off);
INSERT INTO sale SELECT i % 200, CASE WHEN i % 13 > 0 THEN (i * 7919 % 20011 - 10000) / 100.0 END, nullif(i % 17 - 8, 5), (i * 104729::bigint % 1000003 - 500000) * 1e12, i % 5 * 0.25 FROM generate_series(1, 4000) i;
INSERT INTO sale SELECT 200 + i, 0, 0, 0, 0 FROM generate_series(1, 50) i;
INSERT INTO sale SELECT 300 + i % 40, 12.5, 3, 1e18, 1 FROM generate_series(1, 200) i;
INSERT INTO sale SELECT 400 + i % 20, i, i, i, 'NaN' FROM generate_series(1, 60) i;
INSERT INTO sale SELECT 500 + i % 100, i % 3 - 1, i % 2, (i % 3 - 1) * 1e-3, NULL FROM generate_series(1, 300) i;
CREATE TABLE name (g int, w text) WITH (autovacuum_enabled = off);
INSERT INTO name SELECT i, 'n' || i % 7 FROM generate_series(0, 700) i;
VACUUM ANALYZE sale, name;
SELECT sum(gpuvm.import(t)) FROM unnest('{sale,name}'::regclass[]) t;

\i tests/sql/include/try_stages.sql
-- Are the rows PostgreSQL's? How many stages gave them, is there a filter in floats, how many rows did that leave to PostgreSQL, and did another plan run?
CREATE FUNCTION ask(asked text, columns text DEFAULT 's.g', OUT stages int, OUT filter bool, OUT fallback text, OUT rows int, OUT equal bool) LANGUAGE sql AS $$
SELECT t.stages, t.plan::text LIKE '%Filter in float8%', t.fallback, cardinality(t.expected), ARRAY(SELECT unnest(t.got) COLLATE "C" ORDER BY 1) = ARRAY(SELECT unnest(t.expected) COLLATE "C" ORDER BY 1)
FROM try_stages(format('SELECT %s, w FROM (SELECT g, stddev_samp(b) AS sd, avg(a) AS m, avg(b) AS mb, sum(a) AS total, count(*) AS c FROM sale GROUP BY g HAVING %s) s JOIN name USING (g)', columns, asked)) t $$;

-- Quotients of quotients, roots, and what is computed with them.
SELECT h, ask.* FROM unnest(ARRAY[
	'avg(a) / nullif(avg(b), 0) > 0.5',
	'CASE avg(b) WHEN 0 THEN 0 ELSE stddev_samp(b) / avg(b) END > 1',
	'CASE WHEN avg(b) > 0 THEN abs(sum(a) - avg(a)) / avg(b) END > 0.1',
	'abs(avg(a) / nullif(sum(b), 0) - 1) >= 1',
	'sqrt(abs(avg(a))) * 1.000 < avg(b) / 3 + 2',
	'round(avg(a) / 3 / count(*), 3) <= -0.01',
	'ceil(avg(a) / 7) <> trunc(avg(a) / 7, 1)',
	'coalesce(avg(b), 0) + avg(a) / nullif(avg(b), 0) > 1',
	'NOT (stddev_samp(b) / nullif(avg(b), 0) > 0.5)',
	'stddev_samp(b) / nullif(avg(b), 0) > 0.5 OR avg(a) / nullif(avg(b), 0) < -3',
	'variance(b) / nullif(avg(b), 0) BETWEEN -5 AND 5',
	'avg(a) / nullif(avg(b), 0) IS NULL',
	'avg(a) / nullif(avg(b), 0) IS NOT NULL']) h, ask(h);

-- Values that are equal to what they are compared with, in PostgreSQL's decimals: floats cannot tell.
SELECT op, ask.* FROM unnest(ARRAY['<', '<=', '=', '<>', '>=', '>']) op,
	ask(format('avg(a) / nullif(avg(b), 0) %s ALL (ARRAY[%s::numeric])', op, (SELECT avg(a) / avg(b) FROM sale WHERE g = 3)));
SELECT op, ask.* FROM unnest(ARRAY['<', '<=', '=', '<>', '>=', '>']) op,
	ask(format('avg(a) / nullif(avg(b), 0) %s %s', op, (SELECT avg(a) / avg(b) FROM sale WHERE g = 3)));
SELECT op, ask.* FROM unnest(ARRAY['<', '<=', '=', '<>', '>=', '>']) op,
	ask(format('stddev_samp(b) / nullif(avg(b), 0) %s %s', op, (SELECT stddev_samp(b) / avg(b) FROM sale WHERE g = 4)));
SELECT op, ask.* FROM unnest(ARRAY['<', '<=', '=', '<>', '>=', '>']) op, ask(format('abs(avg(a) - sum(a)) / nullif(avg(a) / 2, 0) %s 0', op));

-- NaN, and numbers of more than 64 bits.
SELECT h, ask.* FROM unnest(ARRAY['avg(n) / nullif(avg(b), 0) / 2 > 0.01', 'avg(n) / nullif(avg(b), 0) / 2 < 0.01', 'sum(d) / 1e9 / nullif(avg(b), 0) > 0.01', 'avg(b) / nullif(sum(d), 0) / 2 > 0']) h, ask(h);

-- A null is compared, also one that comes later than PostgreSQL folds constants, and a constant that no float has.
SELECT q, t.stages, t.fallback, t.got = t.expected AS equal, t.got
FROM unnest(ARRAY['WITH v AS (SELECT g, avg(a) m, avg(b) d, NULL::numeric x FROM sale GROUP BY g) SELECT count(*) FROM v JOIN name USING (g) WHERE m / nullif(d, 0) / 3 > x',
	'SELECT count(*) FROM (SELECT g, avg(a) m, avg(b) d, 0.0 x FROM sale GROUP BY g UNION ALL SELECT g, avg(a), avg(b), NULL FROM sale GROUP BY g) v JOIN name USING (g) WHERE m / nullif(d, 0) / 3 > x']) q, try_stages(q) t;
SELECT h, ask.* FROM unnest(ARRAY['avg(a) / nullif(avg(b), 0) * 1e-400::numeric > 0', 'avg(a) / nullif(avg(b), 0) / 3 >= 1e-400::numeric']) h, ask(h);
-- Digits to round to that are null, or raise.
SELECT h, ask.* FROM unnest(ARRAY['round(avg(a) / 3 / count(*), scale(avg(n))) > -100', 'round(avg(a) / 3 / count(*), scale(avg(a) / avg(b))) > -100', 'round(avg(a) / 3 / count(*), scale(avg(a)) * 2000000000) > -100',
	'round(avg(a) / nullif(avg(b), 0) / 3, scale(avg(a) / nullif(avg(b), 0) / 3) * 2 + 1) > 0.5']) h, ask(h);
-- Nested as deep as this they are planned in time by their length.
SET statement_timeout = '10s';
SELECT ask.* FROM ask((WITH RECURSIVE e(n, x) AS (SELECT 0, 'avg(a) / nullif(avg(b), 0)' UNION ALL SELECT n + 1, format('nullif(%s, 3)', x) FROM e WHERE n < 40) SELECT x || ' > 0.5' FROM e WHERE n = 40));
SELECT ask.* FROM ask((SELECT string_agg(format('round(CASE WHEN avg(b) > %s THEN avg(a) / 3 / count(*) ELSE 1 END, 2)', i), ' * ') || ' > 0.5' FROM generate_series(1, 24) i));
RESET statement_timeout;

-- What is raised is raised: an error leads to PostgreSQL's own plan.
SELECT h, ask.* FROM unnest(ARRAY['avg(a) / avg(b) > 0.5', 'avg(a) / (avg(b) / 2) > 0.5 OR count(*) > 0', 'count(*) > 0 OR avg(a) / (avg(b) / 2) > 0.5', 'sqrt(avg(a) / nullif(avg(b), 0)) > 1', 'sqrt(avg(a) / 3) IS NOT NULL']) h, ask(h);

-- Columns that raise, of rows that a condition in floats leaves out, and of those that it leaves.
SELECT h, ask.* FROM unnest(ARRAY['avg(b) / 3 / count(*) > 0.1', 'avg(b) / 3 / count(*) > -1000']) h, ask(h, 's.g, s.total / s.mb');

-- Windows are sorted by quotients, which have more than 64 bits.
SELECT q, t.stages, t.fallback, cardinality(t.expected) AS rows, ARRAY(SELECT unnest(t.got) COLLATE "C" ORDER BY 1) = ARRAY(SELECT unnest(t.expected) COLLATE "C" ORDER BY 1) AS equal
FROM unnest(ARRAY['rank() OVER (ORDER BY avg(a))', 'dense_rank() OVER (ORDER BY avg(b) DESC NULLS LAST)', 'row_number() OVER (PARTITION BY avg(b) ORDER BY avg(a), g)', 'sum(count(*)) OVER (ORDER BY avg(a) NULLS FIRST)',
	'count(*) OVER (ORDER BY avg(a) RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)', 'rank() OVER (ORDER BY sum(d))']) q,
	try_stages(format('SELECT g, w, r FROM (SELECT g, %s AS r FROM sale GROUP BY g) s JOIN name USING (g)', q)) t;

-- A subquery's group whose keys are constants is one row, or none.
SELECT q, t.stages, t.fallback, t.got = t.expected AS equal, t.got
FROM unnest(ARRAY['SELECT count(*) FROM name WHERE g < (SELECT avg(b) * 100 FROM sale WHERE g = 3 GROUP BY g)', 'SELECT count(*) FROM name WHERE g < (SELECT count(*) FROM sale WHERE g = 3 GROUP BY g)',
	'SELECT count(*) FROM name WHERE (SELECT count(*) FROM sale WHERE g = -1 GROUP BY g) IS NULL', 'SELECT count(*) FROM name WHERE g < (SELECT sum(b) FROM sale WHERE g = 3 AND b = 1 GROUP BY b, g)',
	'SELECT count(*), (SELECT count(*) FROM sale WHERE g = 1 GROUP BY g) FROM name', 'SELECT count(*), coalesce((SELECT avg(a) / stddev(b) FROM sale WHERE g = -1 GROUP BY g), -1) FROM name',
	'SELECT count(*), coalesce((SELECT 100 / count(b) FROM sale WHERE g = -1 GROUP BY g), -1) FROM name', 'SELECT count(*) FROM name WHERE w = (SELECT ''n'' || max(b) FROM sale WHERE g = 3 GROUP BY g) OR w = (SELECT min(w) FROM name WHERE g = 5 GROUP BY g)',
	'SELECT count(*) FROM name WHERE g > (SELECT count(*) FROM sale WHERE g > 3 AND g < 5 GROUP BY g)', 'SELECT count(*) FROM name WHERE g > (SELECT count(*) FROM sale WHERE g > 3 GROUP BY g)']) q, try_stages(q) t;

-- HAVING is asked in PostgreSQL's order, the cheap conditions first.
SET gpuvm.force = on;
SELECT g, count(*) FROM sale GROUP BY g HAVING 1 / var_pop(a) <> 3 AND min(b) > 100;

SET gpuvm.whole_query = on;
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT s.g, w FROM (SELECT g FROM sale GROUP BY g HAVING CASE avg(b) WHEN 0 THEN 0 ELSE avg(a) / avg(b) END > 1) s JOIN name USING (g);
DROP SCHEMA float_filter CASCADE;
