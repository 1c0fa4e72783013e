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
-- Of days on most of which nothing was sold PostgreSQL expects a hundredth of the rows that there are, and looks something up for each of them.
CREATE TABLE days (day int PRIMARY KEY, year int);
INSERT INTO days SELECT i, i / 400 FROM generate_series(1, 40000) i;
CREATE TABLE orders (id int, line int, day int, amount int, PRIMARY KEY (id, line));
INSERT INTO orders SELECT i / 10, i % 10, 20000 + i % 500, i % 100 FROM generate_series(1, 200000) i;
CREATE TABLE backs (id int, line int, n int, PRIMARY KEY (id, line));
INSERT INTO backs SELECT i / 10, i % 10, i % 7 FROM generate_series(1, 200000, 3) i;
VACUUM ANALYZE days, orders, backs;
SELECT gpuvm.import('days'), gpuvm.import('orders'), gpuvm.import('backs');
SELECT plan_of($$SELECT u.n, count(*) FROM (SELECT b.n FROM orders o JOIN days d ON d.day = o.day AND d.year = 50 JOIN backs b ON b.id = o.id AND b.line = o.line WHERE o.amount < 50
	UNION ALL SELECT amount FROM orders WHERE day = 3) u GROUP BY u.n$$);
-- sorted by aggregates with DISTINCT, for which PostgreSQL charges nothing
SELECT plan_of('SELECT * FROM (SELECT count(DISTINCT amount), sum(day) FROM orders WHERE line < 5) a, (SELECT count(DISTINCT amount), sum(day) FROM orders WHERE line > 3) b');
-- what depends on rows that are counted stays: few of them are looked up
SELECT plan_of('SELECT o.day, b.n, s.m FROM orders o JOIN backs b ON b.id = o.id AND b.line = o.line LEFT JOIN (SELECT id, max(amount) m FROM orders WHERE id = 77 GROUP BY id) s ON s.id = o.id WHERE o.id = 77');
-- Groups by a part of a text: the order of all of its values takes longer than PostgreSQL does for a sort of the groups.
CREATE TABLE callers (id int PRIMARY KEY, phone text, amount int);
INSERT INTO callers SELECT i, 10 + i % 25 || '-' || i * 7919, i % 1000 - 100 FROM generate_series(1, 60000) i;
CREATE TABLE calls (caller int, day int);
INSERT INTO calls SELECT i % 40000, i % 500 FROM generate_series(1, 300000) i;
CREATE INDEX ON calls (caller);
VACUUM ANALYZE callers, calls;
SELECT gpuvm.import('callers'), gpuvm.import('calls');
SELECT plan_of($$SELECT substring(phone FROM 1 FOR 2) code, count(*), sum(amount) FROM callers WHERE substring(phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
	AND amount > (SELECT avg(amount) FROM callers WHERE amount > 0 AND substring(phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17'))
	AND NOT EXISTS (SELECT FROM calls WHERE calls.caller = callers.id) GROUP BY 1 ORDER BY 1$$);
-- A CTE is looked at once, however many read it, and however many read those.
DO $$
DECLARE
	query text := 'WITH c0 AS MATERIALIZED (SELECT item, sum(amount) s FROM sales GROUP BY item)';
BEGIN
	FOR i IN 1 .. 30 LOOP
		query := query || format(', c%s AS MATERIALIZED (SELECT a.item, a.s FROM c%s a JOIN c%s b USING (item))', i, i - 1, i - 1);
	END LOOP;
	EXECUTE 'EXPLAIN ' || query || ' SELECT count(*) FROM c30 a JOIN c30 b USING (item)';
END $$;
-- A stage reads changed rows, too: it has no other plan that could be better.
UPDATE sales SET amount = amount + 1 WHERE item < 50;
SELECT plan_of('SELECT s.item, s.s FROM (SELECT item, sum(amount) s FROM sales GROUP BY item) s JOIN (SELECT item, count(*) c FROM sales GROUP BY item) c USING (item) WHERE s.s > c.c');
SELECT count(*), sum(s.s) FROM (SELECT item, sum(amount) s FROM sales GROUP BY item) s JOIN (SELECT item, count(*) c FROM sales GROUP BY item) c USING (item) WHERE s.s > c.c;
SET gpuvm.enabled = off;
SELECT count(*), sum(s.s) FROM (SELECT item, sum(amount) s FROM sales GROUP BY item) s JOIN (SELECT item, count(*) c FROM sales GROUP BY item) c USING (item) WHERE s.s > c.c;
RESET gpuvm.enabled;
RESET gpuvm.whole_query;
DROP SCHEMA whole_choice CASCADE;
