-- Texts in result sets (gpuvm.whole_query): codes of one dictionary in all arms of UNION ALL, constants and nulls among them.
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_codes;
SET search_path = whole_codes, public;

CREATE TABLE sales (id int, item int, shop int, price numeric(8,2), qty int);
INSERT INTO sales SELECT i, i % 50, nullif(i % 7, 0), nullif(i % 997, 0) / 100.0, nullif(i % 9, 0) FROM generate_series(1, 5000) i;
CREATE TABLE items (item int PRIMARY KEY, kind text, name char(8), hue text);
INSERT INTO items SELECT i, nullif('kind' || i % 5, 'kind4'), 'n' || i % 12, (ARRAY['red', 'green', 'blue'])[i % 3 + 1] FROM generate_series(0, 49) i;
CREATE TABLE others (item int, kind text, name char(8));
INSERT INTO others SELECT i, 'kind' || i % 8, 'm' || i % 4 FROM generate_series(0, 49) i;
VACUUM ANALYZE sales, items, others;
SELECT gpuvm.import('sales'), gpuvm.import('items'), gpuvm.import('others');
\i tests/sql/include/in_stages.sql
-- Are the rows those of PostgreSQL, and how many programs below others handed their rows to PostgreSQL?
CREATE FUNCTION rows_in_slots(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	line text;
	ours int := 0;
	stayed int := 0;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		ours := ours + (line ~ 'Custom Scan' AND line !~ 'never executed')::int;
		stayed := stayed + (line ~ '^ *Rows Stay: ')::int;
	END LOOP;
	RETURN ours - 1 - stayed;
END $$;
CREATE FUNCTION ask(query text, OUT stages int, OUT equal bool, OUT slots int, OUT answer text, OUT why text) LANGUAGE sql AS $$
SELECT s.stages, s.got = s.expected, rows_in_slots(query), left(array_to_string(s.expected, ''), 60), s.why FROM in_stages(query) s $$;

-- Codes of one column's dictionary that have passed other programs.
SELECT * FROM ask('SELECT kind, count(*) FROM (SELECT kind, shop FROM sales s JOIN items USING (item) GROUP BY 1, 2 HAVING sum(qty) > 50 UNION ALL SELECT kind, 9 FROM sales JOIN items USING (item) GROUP BY kind, shop HAVING count(*) > 80) u GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT kind, name FROM sales JOIN items USING (item) WHERE shop = 1 INTERSECT SELECT kind, name FROM sales JOIN items USING (item) WHERE qty = 3 ORDER BY 1, 2 LIMIT 7');
-- Of another column, or another table, they go through slots.
SELECT * FROM ask('SELECT kind, count(*) FROM (SELECT kind FROM sales JOIN items USING (item) UNION ALL SELECT hue FROM sales JOIN items USING (item)) u GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT kind, count(*) FROM (SELECT i.kind FROM sales JOIN items i USING (item) UNION ALL SELECT o.kind FROM sales JOIN others o USING (item)) u GROUP BY 1 ORDER BY 1');
-- Constants: each its own, one of several arms, one that a table has, too, and none.
SELECT * FROM ask('SELECT ch, sum(q) FROM (SELECT ''one'' ch, sum(qty) q FROM sales GROUP BY shop UNION ALL SELECT ''two'', sum(qty) FROM sales GROUP BY item UNION ALL SELECT ''three'', sum(id) FROM sales GROUP BY qty) u GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT ch, sum(q), count(*) FROM (SELECT ''one'' ch, sum(qty) q FROM sales GROUP BY shop UNION ALL SELECT ''two'', sum(qty) FROM sales GROUP BY item UNION ALL SELECT ''one'', sum(id) FROM sales GROUP BY qty) u GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT kind, count(*) FROM (SELECT ''kind1'' kind, shop FROM sales JOIN items USING (item) UNION ALL SELECT kind, qty FROM sales JOIN items USING (item) WHERE shop = 3 UNION ALL SELECT ''new'', 1 FROM sales JOIN items USING (item) WHERE qty = 4) u GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT x, count(*), min(y), max(y) FROM (SELECT NULL::text x, ''a'' y FROM sales JOIN items USING (item) UNION ALL SELECT NULL, ''b'' FROM sales JOIN others USING (item)) u GROUP BY 1');
-- In conditions, joins and orders.
SELECT * FROM ask('SELECT u.ch, count(*) FROM (SELECT ''kind1'' ch, item FROM sales WHERE shop = 2 UNION ALL SELECT ''kind2'', item FROM sales WHERE shop = 3) u JOIN items i ON i.kind = u.ch AND i.item = u.item GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT ch, kind, sum(q) s FROM (SELECT ''zz'' ch, kind, qty q FROM sales JOIN items USING (item) WHERE shop = 2 UNION ALL SELECT ''aa'', kind, qty FROM sales JOIN items USING (item) WHERE shop = 3) u WHERE ch < ''b'' OR kind > ''kind2'' GROUP BY 1, 2 ORDER BY 1 DESC, 2 NULLS FIRST LIMIT 6');
SELECT * FROM ask('SELECT a.ch, count(*), max(b.kind) FROM (SELECT ''x'' ch, item FROM sales UNION ALL SELECT ''y'', item FROM sales WHERE shop = 1) a JOIN (SELECT ''y'' ch, item, kind FROM items UNION ALL SELECT ''z'', item, kind FROM items) b USING (ch, item) GROUP BY 1');
-- Grouping sets, whose other keys are nulls, and what is made of a CTE's several times.
SELECT * FROM ask('SELECT kind, name, hue, sum(qty) FROM sales JOIN items USING (item) GROUP BY ROLLUP (kind, name, hue) ORDER BY 1 NULLS FIRST, 2 NULLS FIRST, 3 NULLS FIRST LIMIT 12');
SELECT * FROM ask('WITH u AS (SELECT ''s'' ch, shop k, sum(qty) q FROM sales GROUP BY shop UNION ALL SELECT ''i'', item, sum(qty) FROM sales GROUP BY item) SELECT a.ch, a.k, b.ch, a.q - b.q FROM u a JOIN u b ON a.k = b.k AND a.ch < b.ch ORDER BY 1, 2, 3');
SELECT * FROM ask('SELECT ch, k, lag(ch) OVER (ORDER BY q, ch, k), count(*) OVER (PARTITION BY ch) FROM (SELECT ''s'' ch, shop k, sum(qty) q FROM sales GROUP BY shop UNION ALL SELECT ''i'', item, sum(qty) FROM sales WHERE item < 5 GROUP BY item) u ORDER BY 1, 2, 3');
SELECT * FROM ask('SELECT k, first_value(ch) OVER (ORDER BY q, k), ch FROM (SELECT ''s'' ch, shop k, sum(qty) q FROM sales GROUP BY shop) u ORDER BY 1, 2, 3');
-- Windows ordered by sums that are shown with decimals of their own.
SELECT * FROM ask('SELECT kind, shop, s, rank() OVER (PARTITION BY kind ORDER BY s DESC) FROM (SELECT kind, shop, sum(coalesce(price * qty, 0)) s FROM sales JOIN items USING (item) GROUP BY 1, 2) g ORDER BY 1, 4, 2 LIMIT 20');
SELECT * FROM ask('SELECT kind, shop, s, rank() OVER (PARTITION BY kind ORDER BY s DESC) r, lag(s) OVER (PARTITION BY kind ORDER BY s DESC, shop) FROM (SELECT kind, shop, sum(coalesce(price * qty, 0)) s FROM sales JOIN items USING (item) WHERE qty IS NULL OR shop = 3 GROUP BY ROLLUP (kind, shop)) g ORDER BY 1, 4, 2');
SELECT * FROM ask('SELECT s, count(*) OVER (PARTITION BY s), dense_rank() OVER (ORDER BY s) FROM (SELECT item, sum(CASE WHEN qty = 8 THEN 1.50 WHEN qty IS NULL THEN 1.5 ELSE 0 END) s FROM sales GROUP BY 1) g ORDER BY 3, s::text LIMIT 20');
-- Texts and char(n) in one column: values that are equal without being the same are PostgreSQL's to group.
SET gpuvm.force = on;
SET gpuvm.require = 'any';
SELECT name, count(*) FROM (SELECT name FROM sales JOIN items USING (item) UNION ALL SELECT 'n3' FROM sales JOIN items USING (item) WHERE shop = 3) u GROUP BY 1 ORDER BY 1 LIMIT 7;
-- With parameters, and rows that have changed.
SET plan_cache_mode = force_generic_plan;
SET gpuvm.require = 'cpu';
PREPARE by_channel(text) AS SELECT ch, sum(q) FROM (SELECT $1 ch, sum(qty) q FROM sales GROUP BY shop UNION ALL SELECT 'i', sum(qty) FROM sales GROUP BY item) u GROUP BY 1 ORDER BY 1;
EXECUTE by_channel('a');
EXECUTE by_channel('i');
EXECUTE by_channel(NULL);
RESET plan_cache_mode;
BEGIN;
INSERT INTO items VALUES (50, 'fresh', 'n1', 'red');
INSERT INTO sales VALUES (9999, 50, 3, 1, 1);
SELECT kind, count(*) FROM (SELECT 'fresh' kind, shop FROM sales JOIN items USING (item) WHERE shop = 1 UNION ALL SELECT kind, qty FROM sales JOIN items USING (item) WHERE shop = 3) u GROUP BY 1 ORDER BY 1;
SELECT kind, count(*) FROM (SELECT kind, shop FROM sales JOIN items USING (item) GROUP BY 1, 2 HAVING count(*) > 0 UNION ALL SELECT kind, 9 FROM sales JOIN items USING (item) GROUP BY kind, shop HAVING count(*) > 0) u GROUP BY 1 ORDER BY 1;
ROLLBACK;
-- An arm without rows before one whose codes are new: what goes through slots then has what it had.
BEGIN;
INSERT INTO items VALUES (50, 'fresh', 'n1', 'red');
SELECT c0, c1, max(item) FROM (SELECT NULL::text c0, z.hue c1, z.item * 1.5 item FROM (SELECT kind, hue, item FROM items WHERE kind IS NOT NULL UNION ALL SELECT kind, hue, item FROM items WHERE name > 'n2') z WHERE z.hue = 'none'
	UNION ALL SELECT kind, NULL, item * 1.5 FROM items) w GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 3;
ROLLBACK;
-- Unions within unions, and constants of a type by value.
EXPLAIN (COSTS OFF) SELECT x, count(*) FROM (SELECT 'new' x FROM sales GROUP BY shop UNION ALL SELECT q.x FROM (SELECT kind x, 'u' y FROM items GROUP BY kind, hue UNION ALL SELECT 'x2', 'w' FROM sales GROUP BY shop UNION ALL SELECT CASE WHEN sum(qty) < 1.5 THEN 'x1' ELSE 'x3' END, 'v' FROM sales GROUP BY shop) q WHERE q.x <> 'x2') u GROUP BY x;
RESET gpuvm.require;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
SELECT * FROM ask('SELECT m, count(*), min(n) FROM (SELECT ''ok''::mood m, ''a'' n FROM sales GROUP BY shop UNION ALL SELECT ''sad'', ''b'' FROM sales GROUP BY qty UNION ALL SELECT ''ok'', ''c'' FROM sales GROUP BY item) u GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT m, count(*), min(n) FROM (SELECT ''ok''::mood m, ''a'' n FROM sales GROUP BY shop UNION ALL SELECT ''sad'', ''b'' FROM sales GROUP BY qty UNION ALL SELECT ''ok'', ''c'' FROM sales GROUP BY item) u GROUP BY 1 ORDER BY 1');
DROP SCHEMA whole_codes CASCADE;
