-- Conditions of the last stage that programs cannot evaluate (gpuvm.whole_query): PostgreSQL does, over the rows that it gives.
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_conditions;
SET search_path = whole_conditions, public;

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

-- Quotients of averages over windows, of groups: nulls and zeros are beside them.
SELECT * FROM ask('SELECT * FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM sale GROUP BY g, k) t WHERE CASE WHEN mean > 0 THEN abs(total - mean) / mean END > 0.1');
SELECT * FROM ask('SELECT * FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM sale GROUP BY g, k) t WHERE CASE WHEN mean > 0 THEN abs(total - mean) / mean END > 0.1 ORDER BY total - mean DESC, g, k LIMIT 7 OFFSET 2', true);
SELECT * FROM ask('SELECT * FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM sale GROUP BY g, k) t WHERE CASE WHEN mean > 0 THEN abs(total - mean) / mean END > 0.1 AND k < 20 AND total > 3 ORDER BY g, k', true);
-- Only what does not compile is held back; none of it is in the output.
SELECT * FROM ask('SELECT k FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM sale GROUP BY g, k) t WHERE CASE WHEN mean > 0 THEN abs(total - mean) / mean END > 0.1 AND k % 3 = 1');
SELECT * FROM ask('SELECT 1 FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM sale GROUP BY g, k) t WHERE CASE WHEN mean > 0 THEN abs(total - mean) / mean END > 0.1');
-- A CTE that is joined with itself.
SELECT * FROM ask('WITH v AS (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean, rank() OVER (PARTITION BY g ORDER BY k) AS rn FROM sale GROUP BY g, k)
	SELECT a.g, a.k, a.total, b.total, a.mean FROM v a JOIN v b ON a.g = b.g AND a.rn = b.rn + 1 WHERE CASE WHEN a.mean > 0 THEN abs(a.total - b.total) / a.mean END > 0.1 AND a.k > 5');
-- No rows, and none that pass.
SELECT * FROM ask('SELECT * FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM nothing GROUP BY g, k) t WHERE CASE WHEN mean > 0 THEN abs(total - mean) / mean END > 0.1');
SELECT * FROM ask('SELECT * FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM sale GROUP BY g, k) t WHERE CASE WHEN mean > 0 THEN abs(total - mean) / mean END > 1000');
-- An error of a condition leads to PostgreSQL's own plan, which raises it, or not.
SELECT * FROM ask('SELECT * FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM sale GROUP BY g, k) t WHERE abs(total - mean) / mean > 0.1');
SELECT * FROM ask('SELECT g, k FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM sale GROUP BY g, k) t WHERE abs(total - mean) / mean > 0.1 AND g < 10 ORDER BY g, k LIMIT 3', true);
SELECT * FROM ask('SELECT g FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM sale GROUP BY g, k) t WHERE abs(total - mean) / mean > 0.1 LIMIT 1');
-- Functions that do more than compute stay with PostgreSQL's plan.
CREATE FUNCTION twice(numeric) RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 2 * $1; END';
SELECT * FROM ask('SELECT g, k FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM sale GROUP BY g, k) t WHERE twice(mean) > total');

SET gpuvm.whole_query = on;
SET gpuvm.force = on;
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT * FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM sale GROUP BY g, k) t WHERE CASE WHEN mean > 0 THEN abs(total - mean) / mean END > 0.1 AND k < 3;
-- Again with other parameters, and from the beginning.
SET plan_cache_mode = force_generic_plan;
PREPARE p(numeric) AS SELECT g, k FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM sale GROUP BY g, k) t WHERE CASE WHEN mean > 0 THEN abs(total - mean) / mean END > $1 ORDER BY g, k LIMIT 2;
EXECUTE p(0.1);
EXECUTE p(0.9);
EXECUTE p(NULL);
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT g, k FROM (SELECT g, k, sum(p) AS total, avg(sum(p)) OVER (PARTITION BY g) AS mean FROM sale GROUP BY g, k) t WHERE CASE WHEN mean > 0 THEN abs(total - mean) / mean END > 0.1 ORDER BY g, k;
FETCH 2 FROM c;
MOVE ABSOLUTE 0 FROM c;
FETCH 2 FROM c;
COMMIT;
DROP SCHEMA whole_conditions CASCADE;
