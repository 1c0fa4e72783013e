-- Stages that read one set alone: rows of it are filtered, and computed of, by a stage and by the last one (gpuvm.whole_query).
SET gpuvm.device = 'cpu';
SET extra_float_digits = 0;
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_rows;
SET search_path = whole_rows, public;

CREATE TABLE sales (id int PRIMARY KEY, item int, shop int, qty int, price numeric(10,2), note text);
INSERT INTO sales SELECT i, nullif(i % 97, 0), i % 11, i % 7, (i * 37 % 10000) / 100.0, nullif('n' || i % 13, 'n4') FROM generate_series(1, 5000) i;
CREATE TABLE items (item int PRIMARY KEY, kind int NOT NULL, name text);
INSERT INTO items SELECT i, i % 5, nullif('item ' || i % 20, 'item 3') FROM generate_series(1, 110) i;
CREATE TABLE nothing (item int, qty int);
VACUUM ANALYZE sales, items, nothing;
SELECT gpuvm.import('sales'), gpuvm.import('items'), gpuvm.import('nothing');
-- changed rows have entries of their own
INSERT INTO items VALUES (111, 1, 'new'), (112, 1, NULL);
INSERT INTO sales VALUES (6001, 111, 3, 1, 5, 'm'), (6002, NULL, NULL, NULL, NULL, NULL);

\i tests/sql/include/in_stages.sql
-- Are the rows PostgreSQL's, and how many stages gave them; else why not?
CREATE FUNCTION ask(query text, OUT stages int, OUT equal bool, OUT n int, OUT why text) LANGUAGE sql AS $$
SELECT stages, same_rows(got, expected), cardinality(got), why FROM in_stages(query) $$;

CREATE VIEW sums AS SELECT item, sum(qty) q, sum(price) p, count(*) n, max(note) m FROM sales GROUP BY item;
-- by the last one
SELECT * FROM ask('SELECT a.item, a.q FROM (SELECT item, sum(qty) q FROM sales GROUP BY item OFFSET 0) a WHERE a.q > 150');
SELECT * FROM ask('SELECT q * 2 + n, upper(m) || 1 FROM sums WHERE q > 150 AND item < 50');
SELECT * FROM ask('SELECT u.k, u.q FROM (SELECT item k, sum(qty) q FROM sales GROUP BY item UNION ALL SELECT kind, count(*) FROM items GROUP BY kind) u WHERE u.q > 150 OR k IS NULL ORDER BY 1');
SELECT * FROM ask('SELECT t FROM (SELECT note t FROM sales UNION ALL SELECT name FROM items) u WHERE t >= ''item 8''');
SELECT * FROM ask('SELECT t, length(t) FROM (SELECT note t FROM sales WHERE qty = 1 UNION ALL SELECT note FROM sales WHERE qty = 3) u WHERE t < ''n2'' ORDER BY t LIMIT 5');
SELECT * FROM ask('SELECT 1 FROM (SELECT item k FROM items UNION ALL SELECT item FROM sales) u WHERE k = 7');
-- sorted, without rows, without a condition
SELECT * FROM ask('SELECT k, q FROM (SELECT item k, qty q FROM nothing UNION ALL SELECT item, qty FROM sales WHERE id > 4990) u ORDER BY q DESC, k LIMIT 3');
SELECT * FROM ask('SELECT k, q FROM (SELECT item k, qty q FROM nothing UNION ALL SELECT item, qty FROM nothing) u WHERE q > 1');
-- by a stage: for groups, for joins, for further rows
SELECT * FROM ask('SELECT i.kind, count(*), sum(u.q) FROM (SELECT k, q FROM (SELECT item k, sum(qty) q FROM sales GROUP BY item UNION ALL SELECT item, kind FROM items) v WHERE q % 2 = 0) u LEFT JOIN items i ON i.item = u.k GROUP BY 1');
SELECT * FROM ask('SELECT k, sum(q) FROM (SELECT item + 1 k, q + n q FROM sums WHERE q > 20 UNION ALL SELECT kind, item FROM items WHERE item < 50) u GROUP BY k');
SELECT * FROM ask('SELECT i.item, x.z FROM items i LEFT JOIN (SELECT item, q * 2 z FROM sums WHERE n > 50) x ON x.item = i.item WHERE i.item > 80');
SELECT * FROM ask('SELECT count(*), sum(z) FROM (SELECT z * 2 z FROM (SELECT item, q * 2 z FROM sums WHERE n > 50 UNION ALL SELECT item, kind FROM items) x WHERE z > 10 UNION ALL SELECT item FROM sales) y WHERE z < 1000');
-- years of one view against each other, as TPC-DS has it in its queries 4, 11 and 74
SELECT * FROM ask('WITH y AS (SELECT item, shop, sum(price) t, ''s'' kind FROM sales WHERE shop < 6 GROUP BY item, shop UNION ALL SELECT item, shop, sum(price), ''w'' FROM sales WHERE qty = 2 GROUP BY item, shop) SELECT a.item, a.t FROM y a, y b WHERE a.item = b.item AND a.kind = ''s'' AND b.kind = ''w'' AND a.shop = 1 AND b.shop = 2 AND a.t > 0 AND CASE WHEN a.t > 0 THEN b.t / a.t END > 0.1');

-- Errors of rows of a set lead to PostgreSQL's plan, which raises them, or not.
SET gpuvm.whole_query = on;
SET gpuvm.force = on;
SELECT k FROM (SELECT item k, sum(qty) q FROM sales GROUP BY item UNION ALL SELECT kind, 0 FROM items) u WHERE 10 / q > 1;
SELECT sum(k) FROM (SELECT 10 / q k FROM (SELECT item k, sum(qty) q FROM sales GROUP BY item UNION ALL SELECT kind, 0 FROM items) u WHERE k < 1000 UNION ALL SELECT item FROM items) v;
SELECT * FROM (SELECT k, q FROM (SELECT item k, sum(qty) q FROM sales GROUP BY item UNION ALL SELECT kind, 0 FROM items) u WHERE q <> 0 AND 1000 / q > 50) v ORDER BY 1, 2 LIMIT 3;
-- Rows that do not stay: they go through PostgreSQL's executor.
\c -
SET search_path = whole_rows, public;
SET gpuvm.device = 'cpu';
SET gpuvm.whole_query = on;
SET gpuvm.force = on;
CREATE TABLE deltas (k int, v text);
INSERT INTO deltas SELECT i % 5, 'value ' || i FROM generate_series(1, 200) i;
SELECT gpuvm.import('deltas');
INSERT INTO deltas SELECT i % 5, 'new ' || i FROM generate_series(1, 40) i;
SELECT count(*), min(v), max(v) FROM (SELECT v FROM deltas UNION ALL SELECT note FROM sales) u WHERE v > 'new 2';
SELECT v FROM (SELECT v FROM deltas WHERE k = 1 UNION ALL SELECT note FROM sales WHERE qty = 3) u WHERE v BETWEEN 'new 2' AND 'new 4' ORDER BY 1;
SET client_min_messages = warning;
-- A CTE of one row, whose value several conditions are held against.
SELECT * FROM ask('WITH a AS (SELECT avg(price * qty) m FROM sales) SELECT b.item, b.s FROM (SELECT item, sum(price * qty) s FROM sales GROUP BY 1 HAVING sum(price * qty) > (SELECT m FROM a)) b JOIN (SELECT item, count(*) n FROM sales GROUP BY 1 HAVING sum(price) > (SELECT m FROM a)) c USING (item)');
SELECT * FROM ask('WITH a AS (SELECT avg(price) m, count(*) n FROM (SELECT price, qty FROM sales UNION ALL SELECT kind, item FROM items) u) SELECT item FROM sums WHERE p > 20 * (SELECT m FROM a) AND p < (SELECT m * 60 FROM a) AND q < (SELECT n FROM a)');
SELECT * FROM ask('WITH a AS (SELECT max(qty) m FROM nothing) SELECT count(*) FROM sums WHERE q > (SELECT m FROM a) OR q < coalesce((SELECT m FROM a), 100)');
DROP SCHEMA whole_rows CASCADE;
