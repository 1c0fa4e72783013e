-- Conditions between stages that programs cannot evaluate (gpuvm.whole_query): PostgreSQL does, and what passes is loaded again. Variances between stages.
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_held;
SET search_path = whole_held, public;

CREATE TABLE sale (id int PRIMARY KEY, g int, k int, p numeric(10,2), s text) WITH (autovacuum_enabled = off);
INSERT INTO sale SELECT i, nullif(i % 7, 3), nullif(i % 50, 10), CASE WHEN i % 11 > 0 THEN (i * 37 % 1000) / 100.0 END, nullif('s' || i % 13, 's5') FROM generate_series(1, 2000) i;
INSERT INTO sale SELECT 2000 + i, 20 + i % 2, i, CASE WHEN i % 2 = 0 THEN 0 END, '' FROM generate_series(1, 6) i;
CREATE TABLE nothing (LIKE sale) WITH (autovacuum_enabled = off);
VACUUM ANALYZE sale, nothing;
SELECT sum(gpuvm.import(t)) FROM unnest('{sale,nothing}'::regclass[]) t;

\i tests/sql/include/try_stages.sql
-- The rows are those of PostgreSQL? How many stages gave them, is there a condition that PostgreSQL evaluates, and did another plan run?
CREATE FUNCTION ask(query text, ordered bool DEFAULT false, OUT stages int, OUT held bool, OUT fallback text, OUT rows int, OUT equal bool) LANGUAGE sql AS $$
SELECT t.stages, EXISTS (SELECT FROM gpuvm.why_not(query) WHERE node = 'Filter' AND reason <> ''), t.fallback, cardinality(t.expected), CASE WHEN ordered THEN t.got = t.expected ELSE ARRAY(SELECT unnest(t.got) COLLATE "C" ORDER BY 1) = ARRAY(SELECT unnest(t.expected) COLLATE "C" ORDER BY 1) END FROM try_stages(query) t $$;

-- Variances are counts and sums, carried through joins; they are shown with PostgreSQL's digits.
SELECT * FROM ask('SELECT a.g, a.s1, a.s2, a.s3, a.s4, b.n FROM (SELECT g, stddev_samp(k) AS s1, stddev_pop(id) AS s2, var_samp(k) AS s3, variance(p) AS s4 FROM sale GROUP BY g) a JOIN (SELECT g, count(*) AS n FROM sale GROUP BY g) b ON a.g = b.g');
SELECT * FROM ask('SELECT a.k, a.s1, a.s2, a.s3, a.s4, b.n FROM (SELECT k, stddev(p) AS s1, stddev_pop(p) AS s2, var_pop(p) AS s3, stddev(k::int2) AS s4 FROM sale GROUP BY k) a JOIN (SELECT k, count(*) AS n FROM sale GROUP BY k) b ON a.k = b.k');
SELECT * FROM ask('SELECT a.id, a.s1, a.s2, b.s FROM (SELECT id % 500 AS id, stddev_samp(id * 7919 % 1009) AS s1, stddev_samp(g) FILTER (WHERE k > 5) AS s2 FROM sale GROUP BY id % 500) a JOIN sale b ON a.id = b.id');
SELECT * FROM ask('SELECT a.g, a.v, b.n FROM (SELECT g, stddev_samp(DISTINCT k) AS v FROM sale GROUP BY g) a JOIN (SELECT g, count(*) AS n FROM sale GROUP BY g) b ON a.g = b.g');
-- Quotients of them are compared by PostgreSQL, before the rows are joined: as in TPC-DS 39.
SELECT * FROM ask('WITH v AS (SELECT g, k, sd, mean, CASE mean WHEN 0 THEN NULL ELSE sd / mean END AS cov FROM (SELECT g, k, stddev_samp(id % 97) * 1.000 AS sd, avg(id % 97) AS mean FROM sale GROUP BY g, k) t WHERE CASE mean WHEN 0 THEN 0 ELSE sd / mean END > 0.55)
	SELECT a.g, a.k, a.mean, a.cov, b.k, b.mean, b.cov FROM v a, v b WHERE a.g = b.g AND a.k = b.k + 7');
SELECT * FROM ask('WITH v AS (SELECT g, k, sd, mean, CASE mean WHEN 0 THEN NULL ELSE sd / mean END AS cov FROM (SELECT g, k, stddev_samp(id % 97) AS sd, avg(id % 97) AS mean FROM sale GROUP BY g, k) t WHERE CASE mean WHEN 0 THEN 0 ELSE sd / mean END > 0.55)
	SELECT a.g, a.k, a.mean, a.cov, b.k, b.mean, b.cov FROM v a, v b WHERE a.g = b.g AND a.k = b.k + 7 AND a.cov > 0.6 ORDER BY 1, 2, 3, 4, 5, 6, 7', true);
-- A group is compared with the average of others, and what passes is grouped again: as in TPC-DS 14.
SELECT * FROM ask('SELECT c, g, sum(total), sum(n) FROM (
	SELECT ''a'' AS c, g, k, sum(k * p) AS total, count(*) AS n FROM sale GROUP BY g, k HAVING sum(k * p) > (SELECT avg(x * y) FROM (SELECT k AS x, p AS y FROM sale UNION ALL SELECT id, p FROM sale) u)
	UNION ALL SELECT ''b'', g, k, sum(k * p), count(*) FROM sale WHERE id % 3 = 0 GROUP BY g, k HAVING sum(k * p) > (SELECT avg(x * y) FROM (SELECT k AS x, p AS y FROM sale UNION ALL SELECT id, p FROM sale) u)) t GROUP BY ROLLUP (c, g)');
-- What passes is grouped, sorted by a window, joined from outside, and joined with nothing.
SELECT * FROM ask('SELECT g, count(*), sum(total), min(k) FROM (SELECT g, k, sum(p) AS total, avg(p) AS mean, stddev(p) AS sd FROM sale GROUP BY g, k) t WHERE sd / nullif(mean, 0) > 0.5 GROUP BY g');
SELECT * FROM ask('SELECT g, k, rank() OVER (PARTITION BY g ORDER BY k) FROM (SELECT g, k, avg(p) AS mean, stddev(p) AS sd FROM sale GROUP BY g, k) t WHERE sd / nullif(mean, 0) > 0.5');
SELECT * FROM ask('SELECT s.id, t.k FROM sale s LEFT JOIN (SELECT * FROM (SELECT g, k, avg(p) AS mean, stddev(p) AS sd FROM sale GROUP BY g, k) u WHERE sd / nullif(mean, 0) > 0.5) t ON s.g = t.g AND s.k = t.k WHERE s.id < 300');
SELECT * FROM ask('SELECT count(*) FROM (SELECT g, k, avg(p) AS mean, stddev(p) AS sd FROM nothing GROUP BY g, k) t JOIN sale USING (g) WHERE sd / nullif(mean, 0) > 0.5');
SELECT * FROM ask('SELECT count(*), min(g) FROM (SELECT g, k, avg(p) AS mean, stddev(p) AS sd FROM sale GROUP BY g, k) t WHERE sd / nullif(mean, 0) > 1000');
-- An error leads to PostgreSQL's own plan.
SELECT * FROM ask('SELECT g, count(*) FROM (SELECT g, k, avg(p) AS mean, stddev(p) AS sd FROM sale GROUP BY g, k) t WHERE sd / (mean - mean) > 0.5 GROUP BY g');
SELECT * FROM ask('SELECT g, count(*) FROM (SELECT g, k, avg(p) AS mean, stddev(p) AS sd FROM sale GROUP BY g, k) t WHERE sd / (mean - mean * (g - g)) > 0.5 AND g < 10 GROUP BY g');
SELECT * FROM ask('SELECT g, count(*) FROM (SELECT g, k, avg(p) AS mean, stddev(p) AS sd FROM sale GROUP BY g, k) t WHERE sd / (CASE WHEN g = 1 THEN 0 ELSE mean END) > 0.5 AND g <> 1 GROUP BY g');

SET gpuvm.whole_query = on;
SET gpuvm.force = on;
EXPLAIN (COSTS OFF) SELECT g, count(*) FROM (SELECT g, k, avg(p) AS mean, stddev(p) AS sd FROM sale GROUP BY g, k) t WHERE sd / nullif(mean, 0) > 0.5 GROUP BY g;
SET gpuvm.require = cpu;
-- Again with other parameters.
SET plan_cache_mode = force_generic_plan;
PREPARE p(numeric) AS SELECT g, count(*) FROM (SELECT g, k, avg(p) AS mean, stddev(p) AS sd FROM sale GROUP BY g, k) t WHERE sd / nullif(mean, 0) > $1 GROUP BY g ORDER BY g;
EXECUTE p(0.5);
EXECUTE p(1.2);
EXECUTE p(NULL);
DROP SCHEMA whole_held CASCADE;
