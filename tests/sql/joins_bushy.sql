-- Joins whose inner side is a join: its rows become tablets, and a program reads them. Outer joins of what is computed below them.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA bushy;
SET search_path = bushy;
-- What programs must run on: the device under test.
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset

-- NULLs, duplicates, keys without partners on every side, numerics, texts with many and with few values; one that is not imported.
CREATE TABLE o (id int, k int, x int2, n numeric(8, 2), t text) WITH (autovacuum_enabled = off);
CREATE TABLE a (id int, k int8, v int, n numeric(8, 2)) WITH (autovacuum_enabled = off);
CREATE TABLE b (id int, w int, few text, many text) WITH (autovacuum_enabled = off);
CREATE TABLE c (id int, w int, day date) WITH (autovacuum_enabled = off);
INSERT INTO o SELECT i, nullif(i % 400, 7), i % 13, i % 90 * 0.25, 'word ' || i % 50 FROM generate_series(1, 3000) i;
INSERT INTO a SELECT i, nullif(i % 300, 11), nullif(i % 17, 5), i % 70 * 0.25 FROM generate_series(1, 2000) i;
INSERT INTO b SELECT i % 1500, nullif(i % 10, 4), 'word ' || i % 60, 'value ' || i FROM generate_series(1, 1700) i;
INSERT INTO c SELECT i, i % 10, date '2020-01-01' + i % 30 FROM generate_series(1, 40) i;
CREATE TABLE away AS SELECT * FROM b;
CREATE TABLE none AS SELECT * FROM a WHERE false;
SELECT sum(gpuvm.import(t)) FROM unnest('{o,a,b,c,none}'::regclass[]) t;
ANALYZE o, a, b, c, away, none;
SET gpuvm.force = on;

-- How many relations do programs join, how many programs do so, and how many joins are PostgreSQL's?
CREATE FUNCTION joined(query text) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
	line text;
	n int[] := '{0,0,0}';
	ours int := 0;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		n[1] := n[1] + (line ~ '^ *Join: ')::int;
		n[2] := n[2] + (line ~ '^ *Driver: ')::int;
		n[3] := n[3] + (line ~ 'Nested Loop|(Hash|Merge)( \w+)? Join|SubPlan' AND line !~ 'never executed')::int;
	END LOOP;
	RETURN n;
END $$;
\set ECHO none
\i tests/sql/include/answers.sql
\set ECHO all
CREATE FUNCTION lines(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query;
END $$;
CREATE TABLE queries (n serial, joins int[], query text);
INSERT INTO queries (joins, query) VALUES
	-- EXISTS and NOT EXISTS over a join: by keys of one of its relations, of both, and by no key
	('{2,2,0}', 'SELECT id FROM o WHERE EXISTS (SELECT FROM a JOIN b USING (id) WHERE a.k = o.k AND b.w = 3)'),
	('{2,2,0}', 'SELECT id FROM o WHERE NOT EXISTS (SELECT FROM a JOIN b USING (id) WHERE a.k = o.k AND b.w = 3)'),
	('{2,2,0}', 'SELECT id FROM o WHERE EXISTS (SELECT FROM a JOIN b USING (id) WHERE a.k = o.k AND b.w = o.x)'),
	('{2,2,0}', 'SELECT id FROM o WHERE NOT EXISTS (SELECT FROM a JOIN b USING (id) WHERE a.k = o.k AND b.few = o.t)'),
	('{2,2,0}', 'SELECT id FROM o WHERE NOT EXISTS (SELECT FROM a JOIN c ON a.v = c.id WHERE a.n > o.n AND c.w > o.x)'),
	('{2,2,0}', 'SELECT x, count(*), sum(n) FROM o WHERE EXISTS (SELECT FROM a LEFT JOIN b USING (id) WHERE a.k = o.k AND b.w IS NULL) GROUP BY x'),
	('{3,2,0}', 'SELECT count(*) FROM o WHERE EXISTS (SELECT FROM a JOIN b USING (id) JOIN c USING (w) WHERE a.k = o.k AND c.day < ''2020-01-05'')'),
	('{5,3,0}', 'SELECT o.id FROM o JOIN c ON o.x = c.id WHERE EXISTS (SELECT FROM a JOIN b USING (id) WHERE a.k = o.k) AND NOT EXISTS (SELECT FROM a JOIN b ON a.v = b.w WHERE a.id = o.id)'),
	-- outer joins; columns of the join's relations in what comes out, above conditions and groups
	('{2,2,0}', 'SELECT o.id, o.t, a.v, a.n, b.many FROM o LEFT JOIN (a JOIN b USING (id)) ON a.k = o.k AND b.w > 5'),
	('{2,2,0}', 'SELECT o.id, b.few FROM o LEFT JOIN (a JOIN b USING (id)) ON a.k = o.k AND b.w = o.x WHERE b.few IS NULL OR b.few > ''word 30'''),
	('{2,2,0}', 'SELECT b.few, count(*), count(a.v), sum(a.n), min(b.few), max(o.n) FROM o LEFT JOIN (a JOIN b USING (id)) ON a.k = o.k GROUP BY 1'),
	('{2,2,0}', 'SELECT count(*), sum(v) FROM o LEFT JOIN (a LEFT JOIN b USING (id)) ON a.k = o.k AND coalesce(b.w, 3) = 3'),
	('{2,1,0}', 'SELECT o.id, a.n, b.w FROM o LEFT JOIN (a FULL JOIN b USING (id)) ON a.k = o.k'),
	('{3,2,0}', 'SELECT count(*), sum(a.v), sum(b.w) FROM (o JOIN c ON o.x = c.w) FULL JOIN (a JOIN b USING (id)) ON o.k = a.k AND c.id = b.w'),
	('{3,3,0}', 'SELECT o.id, a.id AS other FROM o LEFT JOIN (a LEFT JOIN (b JOIN c USING (w)) ON a.id = b.id) ON a.k = o.k AND o.id < 100'),
	('{3,1,0}', 'SELECT o.id, a.id AS other FROM (o LEFT JOIN (a JOIN b USING (id)) ON o.k = a.k) JOIN c ON c.w = a.v AND c.id < 10'),
	-- no column of the join is needed; no row of it is there
	('{2,2,0}', 'SELECT count(*) FROM c LEFT JOIN (a JOIN b USING (id)) ON true'),
	('{2,2,0}', 'SELECT o.id, none.v, b.w FROM o LEFT JOIN (none JOIN b USING (id)) ON none.k = o.k'),
	('{2,2,0}', 'SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM none JOIN b USING (id) WHERE none.k = o.k)'),
	-- what a subquery computes below an outer join is null where it has no row, and only there: constants, values for null, keys and groups of others
	('{1,1,0}', 'SELECT o.id, q.linked, q.whole, q.v FROM o LEFT JOIN (SELECT *, true AS linked, coalesce(v, 7) AS whole FROM a) q ON q.k = o.k'),
	('{1,1,0}', 'SELECT q.here, q.whole, count(*), count(q.here), sum(q.whole) FROM o LEFT JOIN (SELECT k, 1 AS here, coalesce(v, -1) AS whole FROM a) q ON q.k = o.k GROUP BY 1, 2'),
	('{1,1,0}', 'SELECT o.id, coalesce(q.here, o.x) FROM o LEFT JOIN (SELECT k, 5 AS here FROM a) q ON q.k = o.k WHERE coalesce(q.here, o.x) > 4'),
	('{2,1,0}', 'SELECT o.id, b.w FROM o LEFT JOIN (SELECT k, coalesce(v, 3) AS whole FROM a WHERE id < 300) q ON q.k = o.k LEFT JOIN b ON b.id = q.whole'),
	('{1,1,0}', 'SELECT q.one, r.two, count(*) FROM (SELECT k, 1 AS one FROM o) q FULL JOIN (SELECT k, coalesce(v, 2) AS two FROM a) r USING (k) GROUP BY 1, 2'),
	('{1,1,0}', 'SELECT q.id, q.one, r.two FROM (SELECT id, k, 1 AS one FROM o) q FULL JOIN (SELECT k, v IS NULL AS two FROM a) r USING (k)'),
	('{1,1,0}', 'SELECT o.id, q.label, q.d FROM o LEFT JOIN (SELECT k, ''here''::text AS label, date ''2020-01-01'' AS d FROM a) q ON q.k = o.k'),
	('{1,1,0}', 'SELECT o.id, q.m, q.n FROM o LEFT JOIN (SELECT k, 1.50 AS m, coalesce(n, 0.00) AS n FROM a) q ON q.k = o.k'),
	('{2,2,0}', 'SELECT o.id, q.x FROM o LEFT JOIN (SELECT a.k, coalesce(b.w, a.v, -1) AS x FROM a LEFT JOIN b USING (id)) q ON q.k = o.k'),
	('{2,1,0}', 'SELECT o.id, q.x, c.w FROM c LEFT JOIN o ON o.id = c.id LEFT JOIN (SELECT k, coalesce(v, -1) AS x FROM a) q ON q.k = o.k AND q.x <> c.w'),
	('{1,1,0}', 'SELECT o.id, q.id AS other, q.here, q.x FROM o LEFT JOIN (SELECT id, k, 5 AS here, coalesce(v, -1) AS x FROM a) q ON q.k = o.k AND q.x <> o.x WHERE q.k IS NULL'),
	('{1,1,0}', 'SELECT o.id, q.here, q.w FROM o LEFT JOIN (SELECT few, w, 5 AS here FROM b WHERE id < 20) q ON q.few = o.t'),
	-- PostgreSQL joins what is not imported, and a program reads the rows
	('{2,2,0}', 'SELECT count(*) FROM o WHERE EXISTS (SELECT FROM away r JOIN away s USING (w) WHERE r.id = o.k AND s.id < 20)'),
	-- more than eight: the rows of some drive, or are joined to, the others
	('{10,3,0}', 'SELECT count(*) FROM c c1 JOIN c c2 USING (id) JOIN c c3 USING (id) JOIN c c4 USING (id) JOIN c c5 USING (id) LEFT JOIN (a JOIN b USING (id)) ON a.k = c1.id
		JOIN c c6 ON c6.id = c5.id JOIN c c7 ON c7.id = c6.id JOIN c c8 ON c8.w = c7.w JOIN c c9 ON c9.id = c8.id');
SET gpuvm.enabled = off;
CREATE TABLE expected AS SELECT n, answers(query) AS answer FROM queries;
RESET gpuvm.enabled;
SET gpuvm.require = :device;
SELECT q.query, joined(q.query), answers(q.query), e.answer FROM queries q JOIN expected e USING (n)
	WHERE joined(q.query) <> q.joins OR answers(q.query) IS DISTINCT FROM e.answer;
SELECT n, answer FROM expected ORDER BY n;
SET gpuvm.require = cpu;
EXPLAIN (COSTS OFF) SELECT o.x, count(*), min(b.few) FROM o LEFT JOIN (a JOIN b USING (id)) ON a.k = o.k AND a.n < o.n WHERE b.w IS DISTINCT FROM 3 GROUP BY o.x;

-- Changed rows of all of them.
RESET gpuvm.require;
BEGIN;
UPDATE a SET k = k + 1, v = 3 WHERE id % 5 = 0;
DELETE FROM b WHERE id % 7 = 0;
INSERT INTO o SELECT id + 10000, k, x, n, 'new ' || x FROM o WHERE id < 50;
SET LOCAL gpuvm.enabled = off;
CREATE TABLE changed AS SELECT n, answers(query) AS answer FROM queries;
SET LOCAL gpuvm.enabled = on;
SET LOCAL gpuvm.require = :device;
SELECT q.query, answers(q.query), e.answer FROM queries q JOIN changed e USING (n) WHERE answers(q.query) IS DISTINCT FROM e.answer;
SELECT count(*) FROM changed JOIN expected USING (n) WHERE changed.answer <> expected.answer;
ROLLBACK;

-- Parameters, in the child and above it; executed again, and again for each row of another plan.
SET gpuvm.require = :device;
PREPARE few(int, int) AS SELECT count(*), sum(o.n) FROM o WHERE o.x > $1 AND EXISTS (SELECT FROM a JOIN b USING (id) WHERE a.k = o.k AND b.w = $2);
SET plan_cache_mode = force_generic_plan;
EXECUTE few(3, 3);
EXECUTE few(5, 9);
SELECT v, (SELECT count(*) FROM o WHERE o.x < v AND EXISTS (SELECT FROM a JOIN b USING (id) WHERE a.k = o.k AND b.w = v)) FROM generate_series(1, 4) v;
BEGIN;
DECLARE slow CURSOR FOR SELECT o.id, a.v FROM o LEFT JOIN (a JOIN b USING (id)) ON a.k = o.k AND b.w = 3 WHERE o.id < 20 ORDER BY 1, 2;
FETCH 3 FROM slow;
FETCH 3 FROM slow;
COMMIT;

-- An error: PostgreSQL raises it where it evaluates the row, and only there. What a program flagged its own plan decides.
RESET gpuvm.require;
SELECT count(*) FROM o WHERE o.id < 0 AND EXISTS (SELECT FROM a JOIN b USING (id) WHERE a.k = o.k AND 10 / (a.v - 3) > 0);
SELECT count(*) FROM o LEFT JOIN (a JOIN b USING (id)) ON a.k = o.k AND 10 / (a.v - 3) > 0;
SELECT count(*) FROM none LEFT JOIN (a JOIN b ON a.id = b.id AND 10 / (a.v - b.w) > 0) ON a.k = none.k;
SET gpuvm.require = cpu;
SELECT count(*) FROM none LEFT JOIN (a JOIN b ON a.id = b.id AND 10 / (a.v - b.w) > 0) ON a.k = none.k;
RESET gpuvm.require;

SELECT line FROM lines('SELECT count(*) FROM none LEFT JOIN (a JOIN b ON a.id = b.id AND 10 / (a.v - b.w) > 0) ON a.k = none.k') line WHERE line ~ 'Driver|Fallback|never';

-- What is NOT NULL in a table alone may be null in one that inherits from it, and in a partition that is a foreign table.
CREATE TABLE parent (k int, v int);
CREATE TABLE heir () INHERITS (parent);
ALTER TABLE ONLY parent ALTER v SET NOT NULL;
CREATE TABLE parts (k int, v int NOT NULL) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (50);
INSERT INTO parent SELECT i, i FROM generate_series(1, 20) i;
INSERT INTO heir SELECT i, nullif(i, 15) FROM generate_series(10, 20) i;
INSERT INTO parts SELECT i, i FROM generate_series(1, 20) i;
ANALYZE parent, heir, parts;
CREATE TABLE family (n serial, query text);
INSERT INTO family (query) VALUES
	('SELECT parent.v, parent.k, a.v AS other FROM parent LEFT JOIN (a JOIN b USING (id)) ON a.k = parent.k'),
	('SELECT o.id, q.x FROM (SELECT parent.k, coalesce(a.v, parent.v, 7) AS x FROM a FULL JOIN parent ON a.k = parent.k + 10) q FULL JOIN o ON o.k = q.k'),
	('SELECT parts.v, parts.k, a.v AS other FROM parts LEFT JOIN (a JOIN b USING (id)) ON a.k = parts.k');
CREATE FUNCTION unlike() RETURNS TABLE (query text, ours text, answer text) LANGUAGE plpgsql AS $$
BEGIN
	FOR query IN SELECT f.query FROM family f ORDER BY n LOOP
		ours := answers(query);
		SET LOCAL gpuvm.enabled = off;
		answer := answers(query);
		SET LOCAL gpuvm.enabled = on;
		IF ours IS DISTINCT FROM answer THEN
			RETURN NEXT;
		END IF;
	END LOOP;
END $$;
SELECT n, joined(query) FROM family ORDER BY n;
SELECT * FROM unlike();

-- A side without rows, sought by a key: nulls of every width.
SET gpuvm.require = :'device';
SELECT count(*), count(none.id), count(none.k), count(none.n) FROM o LEFT JOIN none USING (k);
SELECT count(*), count(none.id), count(none.n), count(b.w) FROM o LEFT JOIN none ON none.k = o.k LEFT JOIN b ON b.id = o.id AND b.w > 3;
RESET gpuvm.require;

-- What stays with PostgreSQL, and why.
\set ECHO none
\i tests/sql/include/why.sql
\set ECHO all
SELECT why('SELECT o.id FROM o LEFT JOIN (a JOIN (SELECT id, max(w) AS w FROM b GROUP BY id) q USING (id)) ON a.k = o.k');
SELECT why('SELECT count(*) FROM o LEFT JOIN (a JOIN b ON a.id = b.id AND a.v < random() * 10) ON a.k = o.k');
SELECT why('SELECT count(*) FROM o LEFT JOIN (a JOIN b TABLESAMPLE SYSTEM (50) USING (id)) ON a.k = o.k');
SELECT why('SELECT a FROM o LEFT JOIN (a JOIN b USING (id)) ON a.k = o.k');

SET client_min_messages = warning;
DROP SCHEMA bushy CASCADE;
