-- Which plan is taken for a whole statement, unforced (gpuvm.whole_query): loops over rows that nobody has counted are mistrusted.
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_choice;
SET search_path = whole_choice, public;

CREATE TABLE sales (shop int, item int, year int, kind text, amount int);
INSERT INTO sales SELECT i % 50, i % 3000, 2000 + i % 7, 'k' || i % 3, i % 1000 FROM generate_series(1, 300000) i;
VACUUM ANALYZE sales;
SELECT gpuvm.import('sales');
SET gpuvm.whole_query = on;
CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN CASE WHEN plan::text LIKE '%"Stages"%' THEN 'stages' WHEN plan::text LIKE '%"Nested Loop"%' THEN 'loop' ELSE 'other' END;
END $$;
CREATE VIEW yearly AS SELECT item, year, kind, sum(amount) s FROM sales GROUP BY item, year, kind;
-- PostgreSQL expects a row of each year and kind of the CTE, and one more is compared with each of them
SELECT plan_of($$WITH y AS MATERIALIZED (SELECT item, year, kind, sum(amount) s FROM sales GROUP BY item, year, kind)
	SELECT count(*) FROM y a, y b, y c WHERE a.item = b.item AND b.item = c.item AND a.year = 2001 AND a.kind = 'k1' AND b.year = 2002 AND b.kind = 'k2' AND c.year = 2003 AND c.kind = 'k0' AND a.s < b.s AND b.s < c.s$$);
-- a few rows by an index stay PostgreSQL's
CREATE INDEX ON sales (item);
ANALYZE sales;
SELECT plan_of('SELECT count(*) FROM (SELECT item, sum(amount) FROM sales WHERE item = 5 GROUP BY item) a JOIN (SELECT item, max(amount) FROM sales WHERE item = 5 GROUP BY item) b USING (item)');
RESET gpuvm.whole_query;
DROP SCHEMA whole_choice CASCADE;
