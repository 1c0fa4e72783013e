-- Joins of which PostgreSQL expects a row, and gets thousands: what a program can do with its rows is not left to nodes above it, which estimates alone make cheap.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA estimates;
SET search_path = estimates;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
-- The joins are to be programs, on GPUs too; what stands above them is the question.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;

-- x says what y and z are.
CREATE TABLE facts (id int, x int, y int, z int, c text) WITH (autovacuum_enabled = off);
INSERT INTO facts SELECT k, k % 100, k % 100, k % 100, 'c' || k * 7919 % 8000 FROM generate_series(1, 100000) k;
CREATE TABLE dim (x int, y int, z int) WITH (autovacuum_enabled = off);
INSERT INTO dim SELECT k % 100, k % 100, k % 100 FROM generate_series(1, 200) k;
SELECT gpuvm.import('facts'), gpuvm.import('dim');
VACUUM ANALYZE facts, dim;
-- The session has the texts' order.
SET gpuvm.force = on;
SELECT id, c FROM facts ORDER BY c, id LIMIT 2;
RESET gpuvm.force;

-- How many rows are expected, and what stands above them.
CREATE FUNCTION planned(query text) RETURNS TABLE (node text, rows text, sorted text, grouped text) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	plan := plan->0->'Plan';
	LOOP
		RETURN QUERY SELECT coalesce(plan->>'Custom Plan Provider', plan->>'Node Type'), CASE WHEN (plan->>'Plan Rows')::int8 < 10 THEN 'few' ELSE 'many' END, coalesce(plan->>'VM Sort Key', plan->>'Sort Key'), coalesce(plan->>'VM Group Key', plan->>'Group Key');
		EXIT WHEN plan->>'Node Type' = 'Custom Scan' OR plan->'Plans' IS NULL;
		plan := plan->'Plans'->0;
	END LOOP;
END $$;
\set joined 'facts f JOIN dim d ON f.x = d.x AND f.y = d.y AND f.z = d.z WHERE f.x + f.y = 14'
SELECT * FROM planned($$SELECT f.id, f.c FROM $$ || :'joined' || $$ ORDER BY f.c, f.id$$);
SELECT * FROM planned($$SELECT f.id, f.c FROM $$ || :'joined' || $$ ORDER BY f.c, f.id LIMIT 10$$);
SELECT * FROM planned($$SELECT DISTINCT f.id FROM $$ || :'joined');
SELECT * FROM planned($$SELECT f.id FROM $$ || :'joined' || $$ GROUP BY f.id$$);
SELECT * FROM planned($$SELECT DISTINCT f.id FROM $$ || :'joined' || $$ ORDER BY f.id$$);
SELECT f.id, f.c FROM :joined ORDER BY f.c, f.id LIMIT 3;
SELECT count(*), sum(id) FROM (SELECT DISTINCT f.id FROM :joined) q;

SET client_min_messages = warning;
DROP SCHEMA estimates CASCADE;
