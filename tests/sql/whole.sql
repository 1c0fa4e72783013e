-- Whole statements in stages (gpuvm.whole_query): programs read each other's rows, which stay in gpuvmd.
SET gpuvm.device = 'cpu';
SET extra_float_digits = 0;
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole;
SET search_path = whole, public;

CREATE TABLE sales (id int PRIMARY KEY, item int, shop int, qty int, price numeric(10,2), day date, note text);
INSERT INTO sales SELECT i, nullif(i % 97, 0), i % 11, i % 7, (i * 37 % 10000) / 100.0, date '2024-01-01' + i % 400, 'n' || i % 13 FROM generate_series(1, 20000) i;
INSERT INTO sales VALUES (20001, NULL, NULL, NULL, NULL, NULL, NULL), (20002, 5, NULL, 3, 1.5, NULL, 'n1');
CREATE TABLE items (item int PRIMARY KEY, kind int NOT NULL, name text);
INSERT INTO items SELECT i, i % 5, 'item ' || i % 20 FROM generate_series(1, 110) i;
CREATE TABLE nothing (item int, qty int);
CREATE TABLE plain (item int);
INSERT INTO plain VALUES (1), (2);
VACUUM ANALYZE sales, items, nothing, plain;
SELECT gpuvm.import('sales'), gpuvm.import('items'), gpuvm.import('nothing');

\i tests/sql/include/in_stages.sql
-- The rows, in their order, are those of PostgreSQL? And how many stages gave them (gpuvm.require: all of them on the engine named)?
CREATE FUNCTION ask(query text, OUT stages int, OUT equal bool, OUT answer text, OUT why text) LANGUAGE sql AS $$
SELECT stages, got = expected, left(array_to_string(expected, ''), 60), why FROM in_stages(query) $$;

-- Groups of groups, and joins of groups.
SELECT * FROM ask('SELECT i.kind, sum(s.q), count(*) FROM (SELECT item, sum(qty) q FROM sales GROUP BY item) s JOIN items i ON i.item = s.item GROUP BY i.kind ORDER BY 1');
SELECT * FROM ask('SELECT i.kind, avg(s.q), min(s.p) FROM (SELECT item, sum(qty) q, sum(price) p FROM sales WHERE shop < 5 GROUP BY item) s JOIN items i USING (item) GROUP BY i.kind HAVING sum(s.q) > 10 ORDER BY 1');
SELECT * FROM ask('SELECT i.name, s.q * 2 + 1, i.kind FROM (SELECT item, sum(qty) q FROM sales GROUP BY item) s JOIN items i ON i.item = s.item WHERE s.q > 615 ORDER BY s.q DESC, i.item LIMIT 7 OFFSET 1');
SELECT * FROM ask('SELECT a.item, a.n, b.n FROM (SELECT item, count(*) n FROM sales GROUP BY item) a JOIN (SELECT item, count(*) n FROM sales WHERE qty = 1 GROUP BY item) b ON a.item = b.item ORDER BY 1 LIMIT 5');
-- Nulls: of keys, of what is not there, and of aggregates of nothing.
SELECT * FROM ask('SELECT i.item, s.n, s.q FROM items i LEFT JOIN (SELECT item, count(*) n, sum(qty) q FROM sales WHERE shop = 3 AND qty < 2 GROUP BY item) s ON s.item = i.item WHERE i.item > 90 ORDER BY 1');
SELECT * FROM ask('SELECT count(*), count(s.n), sum(s.n) FROM items i LEFT JOIN (SELECT item, count(*) n FROM nothing GROUP BY item) s ON s.item = i.item');
SELECT * FROM ask('SELECT count(*), sum(s.n) FROM items i JOIN (SELECT item, count(*) n FROM nothing GROUP BY item) s ON s.item = i.item');
SELECT * FROM ask('SELECT i.item FROM items i WHERE NOT EXISTS (SELECT FROM (SELECT item, sum(qty) q FROM sales GROUP BY item) s WHERE s.item = i.item) ORDER BY 1');
SELECT * FROM ask('SELECT i.kind, count(*) FROM items i WHERE i.item IN (SELECT item FROM sales GROUP BY item HAVING count(*) > 206) GROUP BY 1 ORDER BY 1');
-- UNION ALL, and sums of it.
SELECT * FROM ask('SELECT k, sum(q), count(*) FROM (SELECT shop k, qty q FROM sales WHERE shop < 3 UNION ALL SELECT kind, item FROM items) u GROUP BY k ORDER BY 1');
SELECT * FROM ask('SELECT sum(q), count(*) FROM (SELECT sum(qty) q FROM sales GROUP BY item UNION ALL SELECT sum(item) FROM items GROUP BY kind) u');
SELECT * FROM ask('SELECT count(*), sum(q) FROM (SELECT item, qty q FROM nothing UNION ALL SELECT item, qty FROM sales WHERE qty = 6) u');
SELECT * FROM ask('SELECT t, count(*) FROM (SELECT note t FROM sales WHERE shop = 1 UNION ALL SELECT name FROM items) u GROUP BY t ORDER BY 2 DESC, 1 LIMIT 5');
-- CTEs, read once and several times.
SELECT * FROM ask('WITH s AS (SELECT item, sum(qty) q FROM sales GROUP BY item) SELECT a.item, a.q, b.q FROM s a JOIN s b ON a.item = b.item WHERE a.q > 618 ORDER BY 1 LIMIT 4');
SELECT * FROM ask('WITH s AS MATERIALIZED (SELECT item, count(*) n FROM sales GROUP BY item) SELECT i.kind, sum(n) FROM s JOIN items i USING (item) GROUP BY 1 ORDER BY 1');
-- A value that is computed before.
SELECT * FROM ask('SELECT i.kind, sum(s.q) FROM (SELECT item, sum(qty) q FROM sales GROUP BY item) s JOIN items i ON i.item = s.item WHERE s.q > (SELECT min(qty) FROM sales) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT kind, count(*) FROM items WHERE EXISTS (SELECT FROM sales WHERE qty = 6) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT kind, count(*) FROM items i JOIN (SELECT item FROM sales GROUP BY item) s USING (item) WHERE NOT EXISTS (SELECT FROM nothing) AND EXISTS (SELECT FROM sales WHERE qty = 6 OFFSET 0) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT count(*) FROM items i JOIN (SELECT item FROM sales GROUP BY item) s USING (item) WHERE EXISTS (SELECT FROM nothing n JOIN sales USING (item))');
-- Values of subqueries that are defined while a column that reads them is.
CREATE TABLE z (id int, x int);
INSERT INTO z SELECT i, i % 7 FROM generate_series(1, 50) i;
SELECT gpuvm.import('z');
SELECT * FROM ask('SELECT (SELECT count(DISTINCT x) FROM z) FROM z GROUP BY id::text HAVING count(*) = (SELECT count(*) FROM z)');
-- A subquery for each row.
SELECT * FROM ask('SELECT count(*), sum(id) FROM sales a WHERE id < 300 AND qty > (SELECT min(qty) FROM sales b WHERE b.item = a.item)');
-- What is computed above the last stage.
SELECT * FROM ask('SELECT upper(i.name) || s.q, now() IS NULL FROM (SELECT item, sum(qty) q FROM sales GROUP BY item) s JOIN items i ON i.item = s.item WHERE i.kind = 2 ORDER BY 1 LIMIT 3');
-- What is no case for stages: one program is all, or what they cannot do.
SELECT * FROM ask('SELECT i.kind, sum(s.qty) FROM sales s JOIN items i USING (item) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT i.kind, sum(s.a) FROM (SELECT item, avg(qty) a FROM sales GROUP BY item) s JOIN items i USING (item) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT count(*) FROM (SELECT item, sum(qty) q FROM sales GROUP BY item) s FULL JOIN items i USING (item)');
SELECT * FROM ask('SELECT count(*) FROM (SELECT item, sum(qty) q FROM sales GROUP BY item) s JOIN plain p USING (item)');

-- A view; and a policy, which keeps its rows to itself.
CREATE VIEW per_item AS SELECT item, sum(qty) q, count(*) n FROM sales GROUP BY item;
SELECT * FROM ask('SELECT i.kind, max(v.q) FROM per_item v JOIN items i USING (item) GROUP BY 1 ORDER BY 1');
CREATE ROLE whole_reader;
GRANT USAGE ON SCHEMA whole TO whole_reader;
GRANT SELECT ON items, sales TO whole_reader;
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
CREATE POLICY lower_kinds ON items USING (kind < 2);
SET ROLE whole_reader;
SELECT * FROM ask('SELECT i.kind, sum(s.q) FROM (SELECT item, sum(qty) q FROM sales GROUP BY item) s JOIN items i ON i.item = s.item GROUP BY i.kind ORDER BY 1');
RESET ROLE;
REVOKE SELECT ON items FROM whole_reader;
SET ROLE whole_reader;
SET gpuvm.whole_query = on;
SELECT i.kind, sum(s.q) FROM (SELECT item, sum(qty) q FROM sales GROUP BY item) s JOIN items i ON i.item = s.item GROUP BY i.kind;
RESET ROLE;
RESET gpuvm.whole_query;
ALTER TABLE items DISABLE ROW LEVEL SECURITY;

-- Changes that are not committed.
BEGIN;
UPDATE sales SET qty = 100 WHERE id % 1000 = 0;
DELETE FROM items WHERE item BETWEEN 10 AND 20;
INSERT INTO items VALUES (500, 9, 'new'), (501, 9, NULL);
INSERT INTO sales VALUES (30000, 500, 1, 42, 9.99, '2025-05-05', 'quite new'), (30001, 501, 1, 43, NULL, NULL, 'quite new');
SELECT * FROM ask('SELECT i.kind, sum(s.q), count(*) FROM (SELECT item, sum(qty) q FROM sales GROUP BY item) s JOIN items i ON i.item = s.item GROUP BY i.kind ORDER BY 1');
SELECT * FROM ask('SELECT t, count(*), sum(c) FROM (SELECT note t, qty c FROM sales UNION ALL SELECT name, item FROM items) u GROUP BY t ORDER BY t NULLS FIRST LIMIT 50');
SELECT * FROM ask('SELECT s.note, s.n, i.name FROM (SELECT note, max(item) m, count(*) n FROM sales GROUP BY note) s LEFT JOIN items i ON i.item = s.m ORDER BY 1, 2');
ROLLBACK;

-- Errors: those of PostgreSQL's plan only, in its words.
SET gpuvm.whole_query = on;
SET gpuvm.force = on;
SELECT i.kind, sum(s.q) FROM (SELECT item, sum(100 / qty) q FROM sales GROUP BY item) s JOIN items i ON i.item = s.item GROUP BY i.kind;
SELECT i.kind, sum(10 / (s.n - s.n)) FROM (SELECT item, count(*) n FROM sales GROUP BY item) s JOIN items i ON i.item = s.item GROUP BY i.kind;
-- A sum that bigint holds and its partial sums do, too, but not the product: numeric takes over.
CREATE FUNCTION fallback_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ '^ *(Stages|Fallback|Rows Stay):' THEN
			RETURN NEXT trim(line);
		END IF;
	END LOOP;
END $$;
CREATE TABLE large (k int, n numeric(18,0));
INSERT INTO large SELECT i % 3, 900000000000000000 FROM generate_series(1, 60) i;
SELECT gpuvm.import('large');
SELECT * FROM fallback_of('SELECT i.kind, sum(l.s) FROM (SELECT k, sum(n) s FROM large GROUP BY k) l JOIN items i ON i.item = l.k GROUP BY 1');
SELECT i.kind, sum(l.s) FROM (SELECT k, sum(n) s FROM large GROUP BY k) l JOIN items i ON i.item = l.k GROUP BY 1 ORDER BY 1;

-- Plans that are kept, with parameters.
SET gpuvm.require = 'cpu';
SET plan_cache_mode = force_generic_plan;
PREPARE per_kind(int, int) AS SELECT i.kind, sum(s.q) FROM (SELECT item, sum(qty + $1) q FROM sales WHERE shop < $2 GROUP BY item) s JOIN items i ON i.item = s.item GROUP BY i.kind ORDER BY 1;
EXECUTE per_kind(0, 3);
EXECUTE per_kind(10, 5);
EXECUTE per_kind(10, NULL);
UPDATE items SET kind = 7 WHERE item = 5;
EXECUTE per_kind(0, 3);
UPDATE items SET kind = 0 WHERE item = 5;
RESET plan_cache_mode;
EXECUTE per_kind(1, 3);
DEALLOCATE per_kind;

-- Cursors.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT i.item, s.q FROM (SELECT item, sum(qty) q FROM sales GROUP BY item) s JOIN items i ON i.item = s.item ORDER BY 1;
FETCH 2 FROM c;
FETCH LAST FROM c;
FETCH FIRST FROM c;
FETCH RELATIVE 3 FROM c;
DECLARE d CURSOR FOR SELECT i.kind, sum(s.q) FROM (SELECT item, sum(qty) q FROM sales GROUP BY item) s JOIN items i ON i.item = s.item GROUP BY 1 ORDER BY 1;
FETCH 1 FROM d;
FETCH NEXT FROM c;
FETCH 1 FROM d;
MOVE ABSOLUTE 0 IN c;
FETCH NEXT FROM c;
COMMIT;

-- How it looks.
EXPLAIN (COSTS OFF) SELECT i.kind, sum(u.q) FROM (SELECT item, sum(qty) q FROM sales GROUP BY item UNION ALL SELECT item, sum(qty) FROM nothing GROUP BY item) u JOIN items i ON i.item = u.item GROUP BY 1;
EXPLAIN (COSTS OFF, VERBOSE) SELECT i.name, s.q FROM (SELECT item, sum(qty) q FROM sales GROUP BY item) s JOIN items i ON i.item = s.item;
SELECT * FROM fallback_of('SELECT i.kind, sum(s.q) FROM (SELECT item, sum(qty) q FROM sales GROUP BY item) s JOIN items i ON i.item = s.item GROUP BY 1');
-- Nothing stays behind.
SELECT value FROM gpuvm.stats WHERE counter = 'result sets';
DROP SCHEMA whole CASCADE;
DROP ROLE whole_reader;
