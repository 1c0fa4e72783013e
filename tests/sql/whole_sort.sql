-- Order of whole statements (gpuvm.whole_query) by what is computed of aggregates: the last stage sorts.
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_sort;
SET search_path = whole_sort, public;

CREATE TABLE sale (id int PRIMARY KEY, g int, k int, q int, p numeric(10,2), f float8, s text, b bigint) WITH (autovacuum_enabled = off);
INSERT INTO sale SELECT i, nullif(i % 7, 3), nullif(i % 50, 10), nullif(i % 9, 4), CASE WHEN i % 11 > 0 THEN (i * 37 % 1000) / 100.0 - 3 END, i % 17 / 3.0, nullif('S' || i % 13, 'S5'),
	CASE WHEN i % 3 = 0 THEN 9000000000000000000 - i ELSE i END FROM generate_series(1, 2000) i;
INSERT INTO sale SELECT 2000 + i, 20 + i % 2, i, 0, CASE WHEN i % 2 = 0 THEN 0 END, NULL, '', NULL FROM generate_series(1, 6) i;
CREATE TABLE nothing (LIKE sale) WITH (autovacuum_enabled = off);
CREATE TABLE name (g int PRIMARY KEY, t text) WITH (autovacuum_enabled = off);
INSERT INTO name SELECT i, CASE WHEN i <> 2 THEN 'Name ' || i % 4 END FROM generate_series(0, 25) i;
VACUUM ANALYZE sale, nothing, name;
SELECT sum(gpuvm.import(t)) FROM unnest('{sale,nothing,name}'::regclass[]) t;

\i tests/sql/include/try_stages.sql
-- The rows are those of PostgreSQL, in its order? How many stages gave them, does PostgreSQL sort above them, and did another plan run?
CREATE FUNCTION ask(query text, OUT stages int, OUT sorted bool, OUT fallback text, OUT rows int, OUT equal bool) LANGUAGE sql AS $$
SELECT t.stages, top->>'Node Type' = 'Custom Scan' AND top->'VM Sort Key' IS NOT NULL, t.fallback, cardinality(t.expected), t.got = t.expected
FROM try_stages(query) t, LATERAL (SELECT CASE WHEN plan->0->'Plan'->>'Node Type' = 'Limit' THEN plan->0->'Plan'->'Plans'->0 ELSE plan->0->'Plan' END) p (top) $$;

-- Averages, of numerics, integers and floats; ties are decided by the next keys.
SELECT * FROM ask('SELECT g, q, avg(p) FROM sale GROUP BY g, q ORDER BY avg(p), g, q');
SELECT * FROM ask('SELECT g, q, avg(p) FROM sale GROUP BY g, q ORDER BY avg(p) DESC NULLS LAST, g DESC, q LIMIT 7 OFFSET 2');
SELECT * FROM ask('SELECT g, q FROM sale GROUP BY g, q ORDER BY avg(k), avg(p) NULLS FIRST, g, q');
SELECT * FROM ask('SELECT g, avg(f), avg(b) FROM sale GROUP BY g ORDER BY avg(f), g');
SELECT * FROM ask('SELECT g, avg(b) FROM sale GROUP BY g ORDER BY avg(b), g');
-- Sums, differences and quotients of aggregates.
SELECT * FROM ask('SELECT g, q, sum(p) - min(p) FROM sale GROUP BY g, q ORDER BY sum(p) - min(p), g, q');
SELECT * FROM ask('SELECT g, q, sum(k) * 100 / count(*) FROM sale GROUP BY g, q ORDER BY 3 DESC, g, q LIMIT 20');
SELECT * FROM ask('SELECT g, q, sum(p) * 100 / nullif(count(p), 0) AS r FROM sale GROUP BY g, q ORDER BY r, g, q');
SELECT * FROM ask('SELECT g, q, round(sum(p) / nullif(count(p), 0), 2) AS r FROM sale GROUP BY g, q ORDER BY r, g, q');
SELECT * FROM ask('SELECT g, q, p * 100 / sum(p) OVER (PARTITION BY g) AS r, id FROM sale WHERE g < 3 ORDER BY g, r, id LIMIT 50');
SELECT * FROM ask('SELECT g, q, sum(p), sum(p) * 100 / nullif(sum(sum(p)) OVER (PARTITION BY g), 0) AS r FROM sale GROUP BY g, q ORDER BY r DESC, g, q');
SELECT * FROM ask('SELECT g, coalesce(sum(q), 0) + coalesce(max(k), 0) AS r FROM sale GROUP BY g ORDER BY r, g');
-- Texts computed of keys, of which several groups may have one.
SELECT * FROM ask('SELECT substr(s, 1, 2) AS t, g, count(*) FROM sale GROUP BY s, g ORDER BY 1, 2, 3');
SELECT * FROM ask('SELECT lower(t), avg(p) FROM sale JOIN name ON sale.g = name.g GROUP BY t ORDER BY lower(t) DESC, avg(p)');
SELECT * FROM ask('SELECT lower(t) COLLATE "C" AS l, sum(q), avg(p) FROM sale JOIN name ON sale.g = name.g GROUP BY t ORDER BY l NULLS FIRST, 3');
-- Several sets of keys.
SELECT * FROM ask('SELECT g, q, avg(p), grouping(g, q) FROM sale GROUP BY ROLLUP (g, q) ORDER BY g, q, 4 LIMIT 40');
SELECT * FROM ask('SELECT g, q, avg(p) FROM sale GROUP BY ROLLUP (g, q) ORDER BY avg(p), g, q, grouping(q)');
SELECT * FROM ask('SELECT g, s, sum(k) FROM sale GROUP BY CUBE (g, s) ORDER BY sum(k) NULLS FIRST, g, s, grouping(g, s)');
-- HAVING, which may raise an error, though LIMIT stands above.
SELECT * FROM ask('SELECT g, q, sum(k) FROM sale GROUP BY g, q HAVING sum(k) / count(p) > 20 ORDER BY g, q LIMIT 5');
SELECT * FROM ask('SELECT g, q, sum(k) FROM sale WHERE g < 20 GROUP BY g, q HAVING sum(k) / count(p) > 20 ORDER BY g, q LIMIT 5');
SELECT * FROM ask('SELECT g, k, total FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM sale GROUP BY g, k) t WHERE CASE WHEN mean > 0 THEN abs(total - mean) / mean END > 0.1 ORDER BY total - mean, g, k LIMIT 9');
SELECT * FROM ask('SELECT g, k, total FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM sale GROUP BY g, k) t WHERE abs(total - mean) / mean > 0.1 ORDER BY total - mean, g, k LIMIT 3');
-- A key that raises an error, that of a row which LIMIT leaves out, too.
SELECT * FROM ask('SELECT g, q FROM sale GROUP BY g, q ORDER BY 100 / (count(p) - 3), g, q LIMIT 2');
SELECT * FROM ask('SELECT g, q FROM sale GROUP BY g, q ORDER BY avg(p) / min(q), g, q LIMIT 2');
-- The output raises an error for a row that LIMIT leaves out: PostgreSQL computes it before it sorts.
SELECT * FROM ask('SELECT g, q, 1 / (max(k) - 49) FROM sale GROUP BY g, q ORDER BY avg(p), g, q LIMIT 2');
SELECT * FROM ask('SELECT g, q, 1 / (max(k) - 49) FROM sale GROUP BY g, q ORDER BY g, q LIMIT 2');
SELECT * FROM ask('SELECT id, 1 / (k - 49) FROM (SELECT id, k, p, avg(p) OVER (PARTITION BY g) mean FROM sale) t WHERE p > 0 ORDER BY mean - p, id LIMIT 2');
SELECT * FROM ask('SELECT id, 1 / (k - 50) FROM (SELECT id, k, p, avg(p) OVER (PARTITION BY g) mean FROM sale) t WHERE p > 0 ORDER BY mean - p, id LIMIT 2');
SELECT * FROM ask('SELECT g, q, sum(p) / min(q) AS r FROM sale WHERE q > 0 GROUP BY g, q ORDER BY avg(k), g, q LIMIT 2');
-- No rows.
SELECT * FROM ask('SELECT g, avg(p) FROM nothing GROUP BY g ORDER BY avg(p), g');
SELECT * FROM ask('SELECT g, q, avg(p) FROM nothing GROUP BY ROLLUP (g, q) ORDER BY avg(p), g');

SET gpuvm.whole_query = on;
SET gpuvm.force = on;
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT g, q, avg(p) FROM sale GROUP BY g, q ORDER BY avg(p) DESC, g, q LIMIT 5;
EXPLAIN (COSTS OFF) SELECT g, q, sum(p) FROM sale GROUP BY g, q ORDER BY sum(p) DESC, g, q LIMIT 5;
-- Again with other parameters, and back.
SET plan_cache_mode = force_generic_plan;
PREPARE p(numeric) AS SELECT g, q, avg(p) FROM sale WHERE p > $1 GROUP BY g, q ORDER BY avg(p) DESC, g, q LIMIT 2;
EXECUTE p(0);
EXECUTE p(6.5);
EXECUTE p(NULL);
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT g, q, avg(p) FROM sale GROUP BY g, q ORDER BY avg(p) DESC, g, q;
FETCH 2 FROM c;
FETCH PRIOR FROM c;
MOVE ABSOLUTE 0 FROM c;
FETCH 2 FROM c;
COMMIT;
DROP SCHEMA whole_sort CASCADE;
