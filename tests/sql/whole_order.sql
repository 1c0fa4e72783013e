-- ORDER BY and LIMIT of whole statements in stages (gpuvm.whole_query): the last stage sorts.
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_order;
SET search_path = whole_order, public;

CREATE COLLATION backwards (provider = icu, locale = 'en-u-kf-upper');
CREATE COLLATION any_case (provider = icu, locale = 'en-u-ks-level2', deterministic = false);
CREATE TABLE sales (item int, qty int, price numeric(10,2), note text, odd text COLLATE any_case);
INSERT INTO sales SELECT nullif(i % 97, 0), i % 7, (i * 37 % 10000) / 100.0, nullif('n' || i % 13, 'n4'), (ARRAY['a', 'A', 'b'])[1 + i % 3] FROM generate_series(1, 5000) i;
CREATE TABLE items (item int PRIMARY KEY, kind int NOT NULL, name text, tag char(5));
INSERT INTO items SELECT i, i % 5, nullif((ARRAY['a', 'B', 'Z', 'é', 'aa'])[1 + i % 5] || i % 20, 'a5'), 't' || i % 3 FROM generate_series(1, 110) i;
VACUUM ANALYZE sales, items;
SELECT gpuvm.import('sales'), gpuvm.import('items');
-- rows of a delta have entries of their own
INSERT INTO items VALUES (111, 1, 'new', 'x'), (112, 1, NULL, NULL);
INSERT INTO sales VALUES (111, 3, 1.5, 'm', 'c'), (112, 3, 2.5, 'n0', 'B');

\i tests/sql/include/try_stages.sql
-- Are the rows, in their order, PostgreSQL's, did stages give them, and did the last one sort?
CREATE FUNCTION ask(query text, OUT stages int, OUT keys text, OUT vm_limit int, OUT equal bool) LANGUAGE plpgsql AS $$
DECLARE
	expected text := '';
	got text := '';
	plan json;
	one record;
BEGIN
	PERFORM set_config('gpuvm.enabled', 'off', true);
	FOR one IN EXECUTE query LOOP
		expected := expected || one::text;
	END LOOP;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.whole_query', 'on', true), set_config('gpuvm.force', 'on', true),
		set_config('gpuvm.require', 'cpu', true);
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	stages := substring(plan::text FROM '"Stages": (\d+)');
	keys := substring(plan::text FROM '"VM Sort Key": \[(.*?)\]');
	vm_limit := substring(plan::text FROM '"VM Limit": (\d+)');
	FOR one IN EXECUTE query LOOP
		got := got || one::text;
	END LOOP;
	PERFORM set_config('gpuvm.require', 'any', true);
	equal := got = expected;
END $$;

CREATE VIEW sums AS SELECT item, sum(qty) q, sum(price) p, count(*) n, max(note) m FROM sales GROUP BY item;
-- numbers, nulls, directions, limits
SELECT * FROM ask('SELECT i.item, s.q FROM sums s JOIN items i USING (item) ORDER BY s.q DESC, i.item');
SELECT * FROM ask('SELECT i.item, s.p FROM sums s RIGHT JOIN items i USING (item) ORDER BY s.p NULLS FIRST, i.item DESC LIMIT 9 OFFSET 2');
SELECT * FROM ask('SELECT i.item, s.p FROM sums s RIGHT JOIN items i USING (item) ORDER BY s.p DESC, i.item FETCH FIRST 3 ROWS WITH TIES');
SELECT * FROM ask('SELECT i.item, s.p FROM sums s JOIN items i USING (item) ORDER BY 2, 1 LIMIT 0');
-- texts: of a table, of a set, with a delta's entries, under other collations
SELECT * FROM ask('SELECT i.name, i.item, s.q FROM sums s JOIN items i USING (item) ORDER BY i.name DESC, 2');
SELECT * FROM ask('SELECT i.name, i.item, s.q FROM sums s JOIN items i USING (item) ORDER BY i.name COLLATE backwards NULLS FIRST, 2 LIMIT 20');
SELECT * FROM ask('SELECT i.tag, i.item, s.q FROM sums s JOIN items i USING (item) ORDER BY i.tag, i.item DESC LIMIT 20');
SELECT * FROM ask('SELECT u.note, u.n, u.q, i.item FROM (SELECT note, item, count(*) n, sum(qty) q FROM sales GROUP BY note, item) u JOIN items i USING (item) ORDER BY u.note, i.item LIMIT 40');
SELECT * FROM ask('SELECT u.note, u.n, u.q, i.item FROM (SELECT note, item, count(*) n, sum(qty) q FROM sales GROUP BY note, item) u JOIN items i USING (item) ORDER BY u.note COLLATE backwards DESC, i.item');
SELECT * FROM ask('SELECT note, count(*), sum(q) FROM (SELECT note, item, sum(qty) q FROM sales GROUP BY note, item) u GROUP BY note ORDER BY note NULLS FIRST');
SELECT * FROM ask('SELECT note, count(*), sum(q) FROM (SELECT note, item, sum(qty) q FROM sales GROUP BY note, item) u GROUP BY note ORDER BY 3 DESC, 2, 1 LIMIT 3');
-- values that are equal and look different
SELECT * FROM ask('SELECT lower(u.odd), u.n, i.item FROM (SELECT odd, item, count(*) n FROM sales GROUP BY odd, item) u JOIN items i USING (item) ORDER BY u.odd, i.item LIMIT 10');
-- computed keys: by the program, or above it
SELECT * FROM ask('SELECT s.q * 2 + i.item, i.item FROM sums s JOIN items i USING (item) ORDER BY 1, 2 LIMIT 30');
SELECT * FROM ask('SELECT i.item FROM sums s JOIN items i USING (item) ORDER BY s.q % 10, s.p DESC, i.item LIMIT 30');
SELECT * FROM ask('SELECT upper(i.name), i.item FROM sums s JOIN items i USING (item) ORDER BY 1, 2 LIMIT 30');
SELECT * FROM ask('SELECT i.name || s.q, i.item FROM sums s JOIN items i USING (item) ORDER BY 1, 2 LIMIT 30');
SELECT * FROM ask('SELECT i.kind, sum(s.q) * 1.0 / count(*) FROM sums s JOIN items i USING (item) GROUP BY 1 ORDER BY 2, 1');
SELECT * FROM ask('SELECT i.kind, sum(s.q) FROM sums s JOIN items i USING (item) GROUP BY 1 HAVING sum(s.p) > 1000 ORDER BY sum(s.n), 1 LIMIT 2');
-- DISTINCT
SELECT * FROM ask('SELECT DISTINCT i.kind, s.n FROM sums s JOIN items i USING (item) ORDER BY s.n DESC, 1 LIMIT 5');

SET gpuvm.force = on;
SET gpuvm.whole_query = on;
-- A computed key that raises for a row: PostgreSQL raises it.
SELECT i.item FROM sums s JOIN items i USING (item) ORDER BY 1 / (i.item - 50) LIMIT 3;
-- A limit that is not known yet, and one that changes: cursors and prepared statements.
PREPARE first(int) AS SELECT i.name, i.item, s.q FROM sums s JOIN items i USING (item) ORDER BY i.name DESC NULLS LAST, 2 LIMIT $1;
EXECUTE first(2);
EXECUTE first(4);
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT i.item, s.q FROM sums s JOIN items i USING (item) ORDER BY s.q DESC, 1 LIMIT 5;
FETCH 2 FROM c;
FETCH LAST FROM c;
FETCH FIRST FROM c;
COMMIT;
RESET gpuvm.whole_query;
-- Quotients of rows that the limit leaves out count, those of rows that other joins leave out do not.
SELECT * FROM ask('SELECT a.item, b.s / (a.s - 300) FROM (SELECT item, sum(qty)::numeric s FROM sales GROUP BY 1) a JOIN (SELECT item, sum(price) s FROM sales GROUP BY 1) b ON b.item = a.item + 1 JOIN items i ON i.item = b.item AND i.kind = 2 JOIN items j ON j.item = i.item + 5 WHERE a.s <> 300 ORDER BY 1 LIMIT 4');
SELECT * FROM ask('SELECT a.item, j.item / (a.s - 153)::numeric(10,0), b.s / (a.s - 153) FROM (SELECT item, sum(qty)::numeric s FROM sales GROUP BY 1) a JOIN (SELECT item, sum(price) s FROM sales GROUP BY 1) b ON b.item = a.item JOIN items i ON i.item = b.item JOIN items j ON j.item = i.item + 5 AND j.name = ''B6'' ORDER BY 1 LIMIT 4');
SELECT got = expected AS equal, got FROM (SELECT (try_stages('SELECT a.item, b.s / (a.s - 153) FROM (SELECT item, sum(qty)::numeric s FROM sales GROUP BY 1) a JOIN (SELECT item, sum(price) s FROM sales GROUP BY 1) b ON b.item = a.item ORDER BY 1 LIMIT 1')).*) t;
DROP SCHEMA whole_order CASCADE;
