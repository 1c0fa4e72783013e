-- What a whole statement reads several times is computed once (gpuvm.whole_query).
SET gpuvm.device = 'cpu';
SET extra_float_digits = 0;
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_shared;
SET search_path = whole_shared, public;

CREATE TABLE sales (id int PRIMARY KEY, item int, shop int, qty int, price numeric(10,2), note text);
INSERT INTO sales SELECT i, nullif(i % 97, 0), i % 11, i % 7, (i * 37 % 10000) / 100.0, 'n' || i % 13 FROM generate_series(1, 20000) i;
INSERT INTO sales VALUES (20001, NULL, NULL, NULL, NULL, NULL), (20002, 5, NULL, 3, 1.5, 'n1');
CREATE TABLE items (item int PRIMARY KEY, kind int NOT NULL, name text);
INSERT INTO items SELECT i, i % 5, 'item ' || i % 20 FROM generate_series(1, 110) i;
CREATE TABLE nothing (item int, qty int);
VACUUM ANALYZE sales, items, nothing;
SELECT gpuvm.import('sales'), gpuvm.import('items'), gpuvm.import('nothing');

-- Nodes of the plan that are stages, with what they were in that execution.
CREATE FUNCTION stages_of(plan jsonb) RETURNS TABLE (node jsonb) LANGUAGE sql AS $$
	SELECT n FROM jsonb_path_query(plan, '$.**{0 to last} ? (exists(@."Node Type"))') n WHERE n->>'Custom Plan Provider' = 'GpuVM' AND n->'Device' IS NOT NULL
$$;

-- The rows, in their order, are those of PostgreSQL? How many stages gave them, and of those that several read: how often did they run, for how many?
CREATE FUNCTION ask(query text, OUT stages int, OUT shared text, OUT equal bool, OUT answer text, OUT why text) LANGUAGE plpgsql AS $$
DECLARE
	got text := '';
	plan jsonb;
	one record;
BEGIN
	PERFORM set_config('gpuvm.enabled', 'off', true), set_config('gpuvm.whole_query', 'off', true);
	answer := '';
	FOR one IN EXECUTE query LOOP
		answer := answer || one::text;
	END LOOP;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.whole_query', 'on', true), set_config('gpuvm.force', 'on', true);
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
	stages := substring(plan::text FROM '"Stages": (\d+)');
	SELECT string_agg(DISTINCT format('%s: runs %s, readers %s', node->>'Shared Stage', node->>'Actual Loops', node->>'Readers'), '; ') INTO shared
		FROM stages_of(plan) WHERE node->'Shared Stage' IS NOT NULL;
	IF stages IS NULL THEN
		SELECT max(reason) FILTER (WHERE node = 'Whole statement') INTO why FROM gpuvm.why_not(query);
	ELSE
		PERFORM set_config('gpuvm.require', 'cpu', true);
	END IF;
	FOR one IN EXECUTE query LOOP
		got := got || one::text;
	END LOOP;
	PERFORM set_config('gpuvm.require', 'any', true);
	equal := got = answer;
	answer := left(answer, 50);
END $$;

-- Read never, once, twice, and three times.
SELECT * FROM ask('WITH s AS (SELECT item, sum(qty) q FROM sales GROUP BY item) SELECT i.kind, count(*) FROM items i JOIN (SELECT DISTINCT item FROM sales) t USING (item) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('WITH s AS MATERIALIZED (SELECT item, sum(qty) q FROM sales GROUP BY item) SELECT i.kind, sum(q) FROM items i JOIN s USING (item) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('WITH s AS (SELECT item, sum(qty) q FROM sales GROUP BY item) SELECT a.item, a.q, b.q FROM s a JOIN s b ON a.item = b.item + 1 WHERE a.q > 618 ORDER BY 1 LIMIT 4');
SELECT * FROM ask('WITH s AS (SELECT item, shop, sum(qty) q, max(note) n FROM sales GROUP BY item, shop) SELECT a.item, a.q, b.q, c.q FROM s a JOIN s b USING (item) JOIN s c USING (item) WHERE a.shop = 1 AND b.shop = 2 AND c.shop = 3 AND a.q > b.q ORDER BY 1 LIMIT 4');
-- Each with columns of its own; nulls, duplicates, nothing.
SELECT * FROM ask('WITH s AS (SELECT item, shop, qty, price FROM sales JOIN items USING (item) WHERE kind = 2) SELECT a.q, b.n, c.p FROM (SELECT shop, sum(qty) q FROM s GROUP BY shop) a JOIN (SELECT shop, count(*) n FROM s GROUP BY shop) b USING (shop) LEFT JOIN (SELECT shop, max(price) p FROM s WHERE qty = 1 GROUP BY shop) c USING (shop) ORDER BY 1, 2, 3');
SELECT * FROM ask('WITH s AS (SELECT i.item, s.n FROM items i LEFT JOIN (SELECT item, nullif(count(*), 206) n FROM sales GROUP BY item) s USING (item)) SELECT count(*), count(a.n), sum(b.n) FROM s a LEFT JOIN s b ON a.n = b.n');
SELECT * FROM ask('WITH s AS (SELECT item, count(*) n FROM nothing GROUP BY item) SELECT count(*), count(a.n), sum(b.n) FROM items i LEFT JOIN s a USING (item) LEFT JOIN s b ON a.n = b.n');
SELECT * FROM ask('WITH s AS (SELECT item, sum(qty) q FROM sales GROUP BY item), t AS MATERIALIZED (SELECT q, item FROM s) SELECT a.q, b.q, c.q FROM t a JOIN t b ON a.item = b.item + 1 JOIN s c ON c.item = a.item WHERE a.q > 618 ORDER BY 1, 2 LIMIT 4');
-- Of UNION ALL.
SELECT * FROM ask('WITH u AS (SELECT shop k, qty q FROM sales WHERE shop < 3 UNION ALL SELECT kind, item FROM items) SELECT a.k, a.q, b.n FROM (SELECT k, sum(q) q FROM u GROUP BY k) a JOIN (SELECT k, count(*) n FROM u GROUP BY k) b USING (k) ORDER BY 1');
SELECT * FROM ask('WITH s AS (SELECT item, sum(qty) q FROM sales GROUP BY item) SELECT sum(q), count(*) FROM (SELECT item, q FROM s JOIN items USING (item) WHERE kind = 1 UNION ALL SELECT item, q FROM s JOIN items USING (item) WHERE kind = 3) u');
-- Arms that a reader's constants leave out: one stage for each of the others.
SELECT * FROM ask('WITH u AS (SELECT item, sum(qty) q, ''s'' t FROM sales GROUP BY item UNION ALL SELECT item, max(kind), ''i'' FROM items GROUP BY item) SELECT a.item, a.q, b.q FROM u a JOIN u b USING (item) WHERE a.t = ''s'' AND b.t = ''i'' AND a.q > 600 ORDER BY 1 LIMIT 5');
SELECT * FROM ask('WITH u AS (SELECT item, sum(qty) q, 1 t FROM sales GROUP BY item UNION ALL SELECT item, max(kind), 2 FROM items GROUP BY item UNION ALL SELECT shop, count(*), 3 FROM sales GROUP BY shop UNION ALL SELECT item, 0, NULL FROM nothing) SELECT a.item, a.q, a.t, b.q FROM u a JOIN u b USING (item) WHERE a.t IN (1, 3) AND b.t = 2 ORDER BY 1, 3 LIMIT 5');
SELECT * FROM ask('WITH u AS (SELECT item, sum(qty) q, 1 t FROM sales GROUP BY item UNION ALL SELECT item, max(kind), 2 FROM items GROUP BY item) SELECT count(*), sum(a.q), sum(b.q) FROM u a JOIN u b USING (item) WHERE a.t = 7 AND b.t = 2');
SELECT * FROM ask('WITH u AS (SELECT item, sum(qty) q, 1 t FROM sales GROUP BY item UNION ALL SELECT item, max(kind), 2 FROM items GROUP BY item) SELECT count(*), sum(a.q), sum(b.q) FROM u a JOIN u b USING (item) WHERE a.t = 1');
SELECT * FROM ask('SELECT t, count(*), sum(q) FROM (SELECT item, sum(qty) q, 1 t FROM sales GROUP BY item UNION ALL SELECT item, max(kind), 2 FROM items GROUP BY item UNION ALL SELECT shop, count(*), 3 FROM sales GROUP BY shop) u JOIN items USING (item) WHERE t <> 2 GROUP BY t ORDER BY 1');
SELECT * FROM ask('SELECT count(*), sum(q) FROM (SELECT item, sum(qty) q, 1 t FROM sales GROUP BY item UNION ALL SELECT item, max(kind), NULL FROM items GROUP BY item) u JOIN items USING (item) WHERE t IS NULL');
-- What none of the readers wants is not grouped.
SELECT * FROM ask('WITH s AS (SELECT item, shop, sum(qty) q, count(*) n FROM sales GROUP BY item, shop) SELECT a.item, a.q, b.q FROM s a JOIN s b USING (item) WHERE a.shop = 1 AND a.n > 2 AND b.shop = 2 ORDER BY 1 LIMIT 4');
SELECT * FROM ask('WITH s AS (SELECT item, shop, sum(qty) q, row_number() OVER (PARTITION BY shop ORDER BY sum(qty), item) n FROM sales GROUP BY item, shop) SELECT a.item, a.q, b.q, a.n FROM s a JOIN s b USING (item) WHERE a.shop = 1 AND b.shop = 2 AND a.item < 50 AND b.item < 60 ORDER BY 1 LIMIT 4');
SELECT * FROM ask('WITH s AS (SELECT item, shop, sum(qty) q FROM sales GROUP BY ROLLUP (item, shop)) SELECT a.item, a.q, b.q FROM s a JOIN s b USING (item) WHERE a.shop IS NULL AND b.shop = 2 ORDER BY 1 LIMIT 4');
SELECT * FROM ask('WITH s AS MATERIALIZED (SELECT item, shop, sum(qty) q FROM sales GROUP BY item, shop) SELECT count(*), sum(q) FROM s JOIN items USING (item) WHERE shop = 3 AND item > 20');
SELECT * FROM ask('WITH s AS (SELECT i.item, i.kind, s.n FROM items i LEFT JOIN (SELECT item, count(*) n FROM sales GROUP BY item) s USING (item)), t AS (SELECT kind, item, sum(n) n FROM s GROUP BY kind, item) SELECT a.kind, count(*), sum(b.n), (SELECT max(n) FROM t WHERE kind = 4) FROM t a JOIN t b ON a.item = b.item + 5 WHERE a.kind IN (1, 2) AND b.kind = 2 GROUP BY 1 ORDER BY 1');
EXPLAIN (COSTS OFF) WITH s AS (SELECT item, shop, sum(qty) q FROM sales GROUP BY item, shop) SELECT a.item, a.q, b.q FROM s a JOIN s b USING (item) WHERE a.shop = 1 AND b.shop = 2;
-- CTEs that read others, and subqueries that do, at several depths.
SELECT * FROM ask('WITH s AS (SELECT item, shop, sum(qty) q FROM sales GROUP BY item, shop), t AS (SELECT item, sum(q) q FROM s GROUP BY item) SELECT a.item, a.q, b.q, c.q FROM t a JOIN t b ON a.q = b.q JOIN s c ON c.item = b.item WHERE c.shop = 1 AND a.item < 3 ORDER BY 1, 2, 3, 4 LIMIT 5');
SELECT * FROM ask('WITH s AS (SELECT item, shop, sum(qty) q FROM sales GROUP BY item, shop), t AS (SELECT x.item, sum(x.q) q FROM s x JOIN s y ON x.item = y.item AND x.shop = y.shop + 1 GROUP BY x.item), u AS (SELECT t.item, t.q + v.q q FROM t JOIN t v ON t.item = v.item + 1) SELECT sum(a.q), count(*) FROM u a JOIN u b ON a.item = b.item');
SELECT * FROM ask('WITH s AS (SELECT item, sum(qty) q FROM sales GROUP BY item) SELECT i.kind, count(*) FROM items i WHERE i.item IN (SELECT item FROM s WHERE q > 610) AND NOT EXISTS (SELECT FROM s WHERE s.item = i.item AND s.q > 620) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('WITH s AS (SELECT item, sum(qty) q FROM sales GROUP BY item) SELECT s.item, i.kind FROM s JOIN items i USING (item) WHERE s.q = (SELECT max(q) FROM s) OR s.q = (SELECT min(q) FROM s WHERE q > 600) ORDER BY 1');
SELECT * FROM ask('WITH s AS (SELECT item, sum(qty) q FROM sales GROUP BY item) SELECT s.item, i.kind FROM s JOIN items i USING (item) WHERE s.q > (SELECT avg(t.q) FROM s t JOIN items j USING (item) WHERE j.kind = i.kind) ORDER BY 1 LIMIT 3');
-- Conditions on one table's rows are as well looked at by each reader.
SELECT * FROM ask('WITH s AS MATERIALIZED (SELECT * FROM sales WHERE shop = 3) SELECT i.kind, count(*) FROM s a JOIN s b ON a.id = b.id JOIN items i ON i.item = a.item JOIN (SELECT item FROM sales GROUP BY item) g ON g.item = i.item GROUP BY 1 ORDER BY 1');
-- Values that no stage can hand on.
SELECT * FROM ask('WITH s AS (SELECT i.item, i.kind, i.name || i.kind nk FROM items i JOIN (SELECT item FROM sales GROUP BY item) g USING (item)) SELECT count(*), count(a.nk) FROM s a JOIN s b ON a.item = b.item + 1');
-- Computed by volatile functions: once, by PostgreSQL.
SELECT stages, shared, why FROM ask('WITH s AS (SELECT item, sum(qty) + (random() * 0)::int q FROM sales GROUP BY item) SELECT count(*) FROM s a JOIN s b ON a.item = b.item');

-- Changes that are not committed: texts that no dictionary has, and rows that lead to no tablets.
BEGIN;
UPDATE sales SET qty = 100, note = 'changed ' || id % 3 WHERE id % 1000 = 0;
INSERT INTO items VALUES (500, 9, 'new'), (501, 9, NULL);
INSERT INTO sales VALUES (30000, 500, 1, 42, 9.99, 'quite new'), (30001, 501, 1, 43, NULL, 'quite new');
SELECT * FROM ask('WITH s AS (SELECT note, item, sum(qty) q FROM sales GROUP BY note, item) SELECT a.note, sum(a.q), count(b.q) FROM s a JOIN s b ON a.note = b.note AND a.item = b.item + 1 GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('WITH s AS (SELECT i.name, s.note, s.qty FROM sales s JOIN items i USING (item) WHERE s.qty > 5) SELECT a.name, a.n, b.n FROM (SELECT name, count(*) n FROM s GROUP BY name) a LEFT JOIN (SELECT note, count(*) n FROM s GROUP BY note) b ON a.name = b.note OR a.n = b.n ORDER BY 1, 2, 3 LIMIT 5');
ROLLBACK;

-- Errors are PostgreSQL's, and only those of rows that it computes.
SET gpuvm.whole_query = on;
SET gpuvm.force = on;
WITH s AS (SELECT item, sum(100 / qty) q FROM sales GROUP BY item) SELECT count(*), max(a.q) FROM s a JOIN s b ON a.item = b.item;
WITH s AS (SELECT item, count(*) n FROM sales GROUP BY item), t AS (SELECT item, 10 / (n - 206) q FROM s JOIN items USING (item)) SELECT count(*) FROM items i JOIN s USING (item) WHERE EXISTS (SELECT FROM nothing WHERE item IN (SELECT q FROM t) AND qty IN (SELECT q FROM t));
WITH s AS (SELECT item, count(*) n FROM sales GROUP BY item), t AS (SELECT item, 10 / (n - 206) q FROM s JOIN items USING (item)) SELECT count(*), max(a.q) FROM t a JOIN t b USING (item);

-- No room for result sets: the rows go through PostgreSQL, and are computed once nonetheless.
CREATE PROCEDURE wait_for_limit(mb int8) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 200 LOOP
		IF (SELECT CASE WHEN mb IS NULL THEN value > 1 << 20 ELSE value = mb << 20 END FROM gpuvm.stats WHERE counter = 'result bytes at most') THEN
			RETURN;
		END IF;
		PERFORM pg_sleep(0.05);
	END LOOP;
	RAISE EXCEPTION 'the setting has not been taken over';
END $$;
ALTER SYSTEM SET gpuvm.result_memory = 0;
SELECT pg_reload_conf();
CALL wait_for_limit(0);
CREATE FUNCTION shared_lines(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ '^ *(Stages|Fallback|Rows Stay|Shared Stage|Readers):|Custom Scan|rows of' THEN
			RETURN NEXT trim(regexp_replace(line, 'rows=\d+', 'rows=n'));
		END IF;
	END LOOP;
END $$;
SELECT * FROM shared_lines('WITH s AS (SELECT item, sum(qty) q FROM sales GROUP BY item) SELECT i.kind, sum(a.q), sum(b.q) FROM s a JOIN s b ON a.item = b.item + 1 JOIN items i ON i.item = a.item GROUP BY 1 ORDER BY 1');
WITH s AS (SELECT item, sum(qty) q FROM sales GROUP BY item) SELECT i.kind, sum(a.q), sum(b.q) FROM s a JOIN s b ON a.item = b.item + 1 JOIN items i ON i.item = a.item GROUP BY 1 ORDER BY 1;
ALTER SYSTEM RESET gpuvm.result_memory;
SELECT pg_reload_conf();
CALL wait_for_limit(NULL);

-- Plans that are kept, with parameters.
SET gpuvm.require = 'cpu';
SET plan_cache_mode = force_generic_plan;
PREPARE pairs(int, int) AS WITH s AS (SELECT item, sum(qty + $1) q FROM sales WHERE shop < $2 GROUP BY item) SELECT i.kind, sum(a.q), count(b.q) FROM s a LEFT JOIN s b ON a.item = b.item + 1 JOIN items i ON i.item = a.item GROUP BY 1 ORDER BY 1;
EXECUTE pairs(0, 3);
EXECUTE pairs(10, 5);
EXECUTE pairs(10, NULL);
UPDATE items SET kind = 7 WHERE item = 5;
EXECUTE pairs(0, 3);
UPDATE items SET kind = 0 WHERE item = 5;
RESET plan_cache_mode;
EXECUTE pairs(1, 3);
DEALLOCATE pairs;

-- Cursors, two of them at a time; and a function's loop.
BEGIN;
DECLARE c SCROLL CURSOR FOR WITH s AS (SELECT item, sum(qty) q FROM sales GROUP BY item) SELECT a.item, a.q, b.q FROM s a JOIN s b ON a.item = b.item + 1 ORDER BY 1;
FETCH 2 FROM c;
DECLARE d CURSOR FOR WITH s AS (SELECT shop, sum(qty) q FROM sales GROUP BY shop) SELECT a.shop, a.q, b.q FROM s a JOIN s b ON a.shop = b.shop + 1 ORDER BY 1;
FETCH 1 FROM d;
FETCH LAST FROM c;
FETCH 1 FROM d;
MOVE ABSOLUTE 0 IN c;
FETCH NEXT FROM c;
CLOSE c;
FETCH 1 FROM d;
SAVEPOINT a;
DECLARE e CURSOR FOR WITH s AS (SELECT shop, sum(qty) q FROM sales GROUP BY shop) SELECT a.shop, a.q, b.q FROM s a JOIN s b ON a.shop = b.shop + 1 ORDER BY 1;
FETCH 1 FROM e;
ROLLBACK TO a;
FETCH 1 FROM d;
COMMIT;
RESET gpuvm.require;

-- How it looks.
EXPLAIN (COSTS OFF) WITH s AS (SELECT item, sum(qty) q FROM sales GROUP BY item), t AS (SELECT s.item, s.q FROM s JOIN items USING (item) UNION ALL SELECT item, sum(qty) FROM nothing GROUP BY item) SELECT i.kind, sum(a.q), sum(b.q), sum(c.q) FROM s a JOIN t b ON a.item = b.item + 1 JOIN t c ON c.item = b.item JOIN items i ON i.item = a.item GROUP BY 1;
-- Nothing stays behind.
SELECT value FROM gpuvm.stats WHERE counter = 'result sets';
DROP SCHEMA whole_shared CASCADE;
