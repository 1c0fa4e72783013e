-- UNION, INTERSECT and EXCEPT over rows of programs: arms without duplicates, and joins; CTEs that are read several times; IN over joins.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA setops;
SET search_path = setops;

\set ECHO none
\i tests/sql/include/ask.sql
\set ECHO all

CREATE TABLE t (id int PRIMARY KEY, g int, k int NOT NULL, c text NOT NULL, h text, d date NOT NULL, n numeric(10,2) NOT NULL, f float8, s int2 NOT NULL, l int8 NOT NULL, b bool) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, nullif(i % 17, 3), i % 50, 'w' || i % 23, (ARRAY['x', 'y', NULL])[i % 3 + 1], date '2024-01-01' + i % 40, (i % 31) / 4.0, nullif(i % 13, 4) * 0.25, i % 9, i * 3::int8, i % 2 = 0
	FROM generate_series(1, 20000) i;
CREATE TABLE u (id int PRIMARY KEY, g int, k int NOT NULL, c text NOT NULL, h text, d date NOT NULL, n numeric(10,2) NOT NULL, f float8, s int2 NOT NULL, l int8 NOT NULL, b bool) WITH (autovacuum_enabled = off);
INSERT INTO u SELECT i, nullif(i % 19, 5), i % 70 + 20, 'w' || i % 31, (ARRAY['y', 'z', NULL])[i % 3 + 1], date '2024-01-20' + i % 40, (i % 37) / 4.0, nullif(i % 11, 4) * 0.25, i % 12, i * 5::int8, NULL
	FROM generate_series(1, 9000) i;
CREATE TABLE v (LIKE t) WITH (autovacuum_enabled = off);
INSERT INTO v SELECT * FROM t WHERE id < 300;
CREATE TABLE empty (LIKE t) WITH (autovacuum_enabled = off);
-- Not imported.
CREATE TABLE away (id int, k int) WITH (autovacuum_enabled = off);
INSERT INTO away SELECT i, i % 30 FROM generate_series(1, 100) i;
CREATE TABLE parted (k int NOT NULL, x int) PARTITION BY RANGE (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10) WITH (autovacuum_enabled = off);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10) TO (60) WITH (autovacuum_enabled = off);
INSERT INTO parted SELECT i % 60, i % 7 FROM generate_series(1, 2000) i;
SET client_min_messages = warning;
SELECT sum(gpuvm.import(r)) FROM unnest('{t,u,v,empty,parted_1,parted_2}'::regclass[]) r;
RESET client_min_messages;
ANALYZE t, u, v, empty, away, parted;

-- What runs: nodes of programs as VM, and below them those whose rows they read.
CREATE FUNCTION shape(node json) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	vm bool := coalesce(node->>'Custom Plan Provider' = 'GpuVM', false);
	below text;
BEGIN
	SELECT string_agg(setops.shape(p), ', ' ORDER BY n) INTO below
		FROM (SELECT p, n, row_number() OVER (PARTITION BY p->>'Parent Relationship' IN ('InitPlan', 'SubPlan') ORDER BY n) AS m FROM json_array_elements(node->'Plans') WITH ORDINALITY q(p, n)) q
		-- the first is PostgreSQL's plan
		WHERE NOT vm OR m > 1 OR p->>'Parent Relationship' IN ('InitPlan', 'SubPlan');
	RETURN CASE WHEN vm THEN concat_ws(' ', 'VM', CASE WHEN (node->'Joins') IS NOT NULL THEN 'join' END, CASE WHEN (node->'VM Group Key') IS NOT NULL THEN 'groups' END,
			CASE WHEN (node->'VM Sort Key') IS NOT NULL THEN 'sorted' END)
		ELSE node->>'Node Type' END || coalesce(' (' || below || ')', '');
END $$;
CREATE FUNCTION shape(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN setops.shape(plan->0->'Plan');
END $$;
CREATE TABLE queries (n int GENERATED ALWAYS AS IDENTITY, query text);
-- The answers are PostgreSQL's, and the VM's (or whose, and why).
CREATE FUNCTION asked() RETURNS TABLE (query text, "by" text, shape text) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT q.query, a."by" || CASE WHEN a.equal THEN '' ELSE ', another answer' END, setops.shape(q.query) FROM setops.queries q, setops.ask(q.query) a ORDER BY q.n;
	DELETE FROM setops.queries;
END $$;
SET max_parallel_workers_per_gather = 0;

-- Forced: arms are groups, whatever it saves.
SET gpuvm.force = on;
INSERT INTO queries (query) VALUES
	('SELECT k FROM t UNION SELECT k FROM u'),
	('SELECT k, c FROM t UNION SELECT k, c FROM u WHERE id < 2000'),
	('SELECT g, h FROM t UNION SELECT g, h FROM u UNION SELECT g, h FROM v'),
	('SELECT k FROM t UNION SELECT k FROM away'),
	('SELECT n, d FROM t UNION SELECT n, d FROM u'),
	('SELECT k + 1, upper(c) FROM t WHERE b UNION SELECT k, c FROM u'),
	('SELECT k FROM t UNION SELECT x FROM parted'),
	('SELECT t.k, u.k FROM t JOIN u USING (id) UNION SELECT k, k FROM u'),
	('SELECT k FROM t UNION SELECT k FROM empty UNION SELECT 7'),
	-- ALL in the middle: what is above makes rows different
	('(SELECT k FROM t UNION ALL SELECT k FROM u) UNION SELECT k FROM v'),
	('(SELECT k FROM t INTERSECT ALL SELECT k FROM u) UNION SELECT k FROM v'),
	('SELECT k FROM t UNION ALL (SELECT k FROM u UNION SELECT k FROM v)'),
	('SELECT count(*), sum(k) FROM (SELECT k FROM t UNION SELECT k FROM u) q WHERE k > 10'),
	('SELECT k FROM t UNION SELECT k FROM u ORDER BY k DESC LIMIT 3'),
	('WITH q AS (SELECT k FROM t UNION SELECT k FROM u) SELECT max(k), count(*) FROM q'),
	('SELECT id FROM v WHERE k IN (SELECT k FROM t WHERE id < 10 UNION SELECT k FROM u WHERE id < 5)'),
	('SELECT (SELECT count(*) FROM (SELECT k FROM t UNION SELECT k FROM u WHERE u.id < v.id) q) FROM v WHERE id < 4');
SELECT * FROM asked();
-- These have all their duplicates: how often a row comes counts, types differ, or it is none of the rows' values alone.
INSERT INTO queries (query) VALUES
	('SELECT k FROM v UNION ALL SELECT k FROM v'),
	('SELECT k FROM t INTERSECT ALL SELECT k FROM u'),
	('SELECT k FROM t EXCEPT ALL SELECT k FROM u'),
	('(SELECT k FROM t EXCEPT ALL SELECT k FROM u) UNION SELECT k FROM v'),
	('SELECT k FROM t UNION SELECT l FROM v'),
	('SELECT k, row_number() OVER (ORDER BY id) FROM v UNION SELECT k, 1 FROM v'),
	('(SELECT k FROM t ORDER BY id LIMIT 5) UNION (SELECT k FROM u ORDER BY id LIMIT 5)'),
	('SELECT k, count(*) FROM t GROUP BY k UNION SELECT k, count(*) FROM u GROUP BY k'),
	('SELECT DISTINCT k FROM t UNION SELECT DISTINCT k FROM u');
SELECT * FROM asked();
WITH RECURSIVE r AS (SELECT k FROM v WHERE k < 3 UNION SELECT u.s::int FROM r JOIN u ON u.k = r.k + 20) SELECT count(*), sum(k) FROM r;
-- Why an arm has its duplicates.
SELECT DISTINCT node, reason FROM gpuvm.why_not('SELECT b, id::text COLLATE "C" FROM t UNION SELECT b, c FROM u');

-- INTERSECT and EXCEPT are joins where one of two columns has no nulls.
INSERT INTO queries (query) VALUES
	('SELECT k FROM t INTERSECT SELECT k FROM u'),
	('SELECT k FROM t EXCEPT SELECT k FROM u'),
	('SELECT k FROM u EXCEPT SELECT k FROM t ORDER BY k DESC'),
	('SELECT k, c, d FROM t INTERSECT SELECT k, c, d FROM u'),
	('(SELECT DISTINCT k FROM t ORDER BY k) INTERSECT (SELECT k FROM u ORDER BY id)'),
	('SELECT c, k FROM t EXCEPT SELECT c, k FROM u ORDER BY k, c LIMIT 10'),
	('SELECT k FROM t INTERSECT SELECT g FROM u'),
	('SELECT g FROM t EXCEPT SELECT k FROM u'),
	('SELECT g FROM t WHERE g IS NOT NULL INTERSECT SELECT g FROM u'),
	('SELECT n, s FROM t INTERSECT SELECT n, s FROM u'),
	('SELECT k FROM t INTERSECT SELECT k FROM u EXCEPT SELECT k FROM v WHERE k > 30'),
	('SELECT k FROM t EXCEPT SELECT k FROM u INTERSECT SELECT k FROM v'),
	('SELECT k FROM t INTERSECT SELECT k FROM empty'),
	('SELECT k FROM t EXCEPT SELECT k FROM empty'),
	('SELECT k FROM empty EXCEPT SELECT k FROM t'),
	('SELECT x, k FROM parted INTERSECT SELECT k, s FROM t'),
	('SELECT count(*), sum(k) FROM (SELECT k, s FROM t EXCEPT SELECT k, s FROM u) q'),
	('WITH w AS MATERIALIZED (SELECT k FROM u WHERE id < 100) SELECT k FROM t EXCEPT SELECT k FROM w WHERE k IS NOT NULL'),
	('SELECT t.k, u.s FROM t JOIN u USING (id) EXCEPT SELECT k, s FROM v'),
	('SELECT id, (SELECT count(*) FROM (SELECT k FROM t INTERSECT SELECT k FROM u) q WHERE q.k > away.k) FROM away WHERE id < 5');
SELECT * FROM asked();
-- Where nulls could meet nulls, rows with nulls have a set operation of their own.
INSERT INTO queries (query) VALUES
	('SELECT g FROM t INTERSECT SELECT g FROM u'),
	('SELECT g FROM t EXCEPT SELECT g FROM u ORDER BY g LIMIT 3'),
	('SELECT h FROM t EXCEPT SELECT h FROM u'),
	('SELECT h, g FROM u INTERSECT SELECT h, g FROM t'),
	('SELECT k, g, h FROM t EXCEPT SELECT k, g, h FROM u'),
	('SELECT g, f FROM t INTERSECT SELECT g, f FROM u'),
	('SELECT nullif(k, 3) FROM t EXCEPT SELECT nullif(k, 33) FROM u'),
	('SELECT * FROM (SELECT g FROM t EXCEPT SELECT g FROM u) q WHERE g IS NULL OR g > 3'),
	('WITH w AS MATERIALIZED (SELECT g FROM u WHERE id < 100) SELECT g FROM t EXCEPT SELECT g FROM w');
SELECT * FROM asked();
-- Equal values that do not look the same: PostgreSQL says which arm's come out.
CREATE TABLE n1 (id int PRIMARY KEY, n numeric NOT NULL, m numeric(8,1) NOT NULL, f float8 NOT NULL) WITH (autovacuum_enabled = off);
CREATE TABLE n2 (id int PRIMARY KEY, n numeric NOT NULL, m numeric(8,2) NOT NULL, f float8 NOT NULL) WITH (autovacuum_enabled = off);
INSERT INTO n1 SELECT i, i % 5 + 0.0, i % 5, CASE WHEN i % 5 = 0 THEN '-0'::float8 ELSE i % 5 END FROM generate_series(1, 3000) i;
INSERT INTO n2 SELECT i, i % 7 + 0.00, i % 7, i % 7 FROM generate_series(1, 70) i;
SELECT gpuvm.import('n1'), gpuvm.import('n2');
ANALYZE n1, n2;
INSERT INTO queries (query) VALUES
	('SELECT n FROM n1 INTERSECT SELECT n FROM n2'),
	('SELECT n FROM n2 INTERSECT SELECT n FROM n1'),
	('SELECT m FROM n1 INTERSECT SELECT m FROM n2'),
	('SELECT f FROM n1 WHERE id > 3 INTERSECT SELECT f FROM n2'),
	('SELECT f FROM n2 INTERSECT SELECT f FROM n1 WHERE id > 3'),
	('SELECT m FROM n1 EXCEPT SELECT m FROM n2 WHERE id % 7 > 2'),
	('SELECT n FROM n1 EXCEPT SELECT n FROM n2 WHERE id % 7 > 2'),
	('SELECT f FROM n1 UNION SELECT f FROM n2 ORDER BY f'),
	('SELECT m FROM n1 UNION SELECT m FROM n2 ORDER BY m');
SELECT * FROM asked();
-- They are no joins where a value of one type is compared with that of another, might raise, or is of several set operations.
INSERT INTO queries (query) VALUES
	('SELECT g FROM t INTERSECT SELECT g FROM u INTERSECT SELECT g FROM v'),
	('SELECT k FROM t INTERSECT SELECT l FROM u'),
	('SELECT 100 / (k + 1) FROM t INTERSECT SELECT k FROM u'),
	('SELECT k FROM t EXCEPT (SELECT k FROM u INTERSECT SELECT k FROM v)'),
	('(SELECT k FROM t UNION SELECT k FROM v) EXCEPT SELECT k FROM u'),
	('(SELECT k FROM t LIMIT 100000) EXCEPT SELECT k FROM u');
SELECT * FROM asked();
-- A condition that may raise is not moved below EXCEPT, wherever it stands: PostgreSQL never asks it of the rows that are taken away.
INSERT INTO queries (query) VALUES
	('SELECT * FROM (SELECT s FROM t EXCEPT SELECT s FROM u WHERE s = 3) q WHERE 1 / (s - 3) < 5'),
	('SELECT * FROM (SELECT 1 / (s - 3) AS x FROM (SELECT s FROM t EXCEPT SELECT s FROM u WHERE s = 3) q) r WHERE x < 5'),
	('WITH q AS (SELECT s FROM t EXCEPT SELECT s FROM u WHERE s = 3) SELECT * FROM q WHERE 1 / (s - 3) < 5'),
	('SELECT q.s, v.id FROM (SELECT s FROM t EXCEPT SELECT s FROM u WHERE s = 3) q JOIN v ON 1 / (q.s - 3) < 5 AND v.s = q.s'),
	('SELECT s, count(*) FROM (SELECT s FROM t EXCEPT SELECT s FROM u WHERE s = 3) q GROUP BY s HAVING 1 / (s - 3) < 5'),
	('SELECT * FROM (SELECT s FROM t EXCEPT SELECT s FROM u WHERE s = 3) q WHERE EXISTS (SELECT FROM v WHERE v.s = q.s AND 1 / (q.s - 3) < 5)'),
	('SELECT * FROM (SELECT s FROM t EXCEPT SELECT s FROM u WHERE s = 3) q WHERE 1 / (s - 3) IN (SELECT k FROM v WHERE k = 0)'),
	('SELECT * FROM (SELECT s FROM t EXCEPT SELECT s FROM u WHERE s = 3) q WHERE 1 / (s - 3) < (SELECT max(k) FROM v)'),
	-- these are joins
	('SELECT * FROM (SELECT s FROM t EXCEPT SELECT s FROM u WHERE s = 3) q WHERE s > 2'),
	('SELECT 1 / (s - 3) FROM (SELECT s FROM t EXCEPT SELECT s FROM u WHERE s = 3) q');
SELECT * FROM asked();
-- UNION below ORDER BY: sorted arms are merged.
INSERT INTO queries (query) VALUES
	('SELECT k, c FROM t UNION SELECT k, c FROM u ORDER BY c DESC, k LIMIT 20'),
	('SELECT k FROM t UNION (SELECT g FROM u UNION ALL SELECT k FROM v) ORDER BY k NULLS FIRST'),
	('SELECT g, h, d FROM t UNION SELECT g, h, d FROM u ORDER BY 2 DESC NULLS LAST, 3'),
	('SELECT k FROM t UNION SELECT k FROM away UNION SELECT 3 ORDER BY 1 OFFSET 5 LIMIT 4'),
	('SELECT t.k, max(u.n) AS m FROM t JOIN u USING (id) GROUP BY t.k UNION SELECT k, n FROM u ORDER BY m, k LIMIT 9'),
	('WITH w AS MATERIALIZED (SELECT k FROM u WHERE id < 50) SELECT * FROM (SELECT k FROM t UNION SELECT k FROM w ORDER BY k LIMIT 7) q'),
	('SELECT id, (SELECT max(k) FROM (SELECT k FROM t WHERE t.id < away.id UNION SELECT k FROM u WHERE u.id = away.id ORDER BY k LIMIT 4) q) FROM away WHERE id < 6'),
	('SELECT * FROM (SELECT k FROM t UNION SELECT k FROM u ORDER BY k) q WHERE k > 80'),
	-- not these
	('SELECT k FROM t UNION SELECT l FROM v ORDER BY 1 LIMIT 3'),
	('SELECT k FROM t UNION SELECT k FROM u EXCEPT SELECT k FROM v ORDER BY k'),
	('SELECT k, random() < 2 FROM t UNION SELECT k, b FROM v ORDER BY k, 2 LIMIT 3');
SELECT * FROM asked();

-- By cost: many duplicates, or none.
RESET gpuvm.force;
SET gpuvm.require = :device;
SELECT shape('SELECT k FROM t UNION SELECT k FROM u');
SELECT shape('SELECT id FROM t UNION SELECT k FROM u');
SELECT shape('SELECT id, l FROM t UNION SELECT id, l FROM u');
SELECT shape('SELECT k FROM t WHERE id % 5 = 2 UNION SELECT k FROM away');
SELECT shape('SELECT k, s FROM t INTERSECT SELECT k, s FROM u');
SELECT count(*), sum(k) FROM (SELECT k FROM t UNION SELECT k FROM u) q;
SELECT count(*), sum(id) FROM (SELECT id FROM t UNION SELECT k FROM u) q;
RESET gpuvm.require;
EXPLAIN (COSTS OFF) SELECT k FROM t UNION SELECT k FROM u;
SET gpuvm.force = on;
EXPLAIN (COSTS OFF) SELECT k, c FROM t UNION SELECT k, c FROM u ORDER BY c, k LIMIT 3;
EXPLAIN (COSTS OFF) SELECT k, c FROM t EXCEPT SELECT k, c FROM u ORDER BY k, c;

-- Changed rows, prepared statements, cursors.
BEGIN;
UPDATE t SET k = 1000 + id WHERE id IN (5, 6);
DELETE FROM u WHERE k = 45;
INSERT INTO queries (query) VALUES ('SELECT k FROM t UNION SELECT k FROM u'), ('SELECT k FROM t INTERSECT SELECT k FROM u'), ('SELECT k FROM t EXCEPT SELECT k FROM u');
SELECT * FROM asked();
ROLLBACK;
SET plan_cache_mode = force_generic_plan;
SET gpuvm.require = :device;
PREPARE p(int) AS SELECT count(*), sum(k) FROM (SELECT k FROM t WHERE id < $1 UNION SELECT k FROM u WHERE id < $1) q;
EXECUTE p(10);
EXECUTE p(100);
PREPARE e(int) AS SELECT k FROM t WHERE id < $1 EXCEPT SELECT k FROM u WHERE id > $1 ORDER BY k;
EXECUTE e(4);
EXECUTE e(8985);
RESET plan_cache_mode;
BEGIN;
DECLARE cur CURSOR FOR SELECT k FROM v WHERE k < 3 UNION SELECT k FROM u WHERE k > 88 ORDER BY k;
FETCH 2 FROM cur;
FETCH ALL FROM cur;
ROLLBACK;
RESET gpuvm.require;

-- A CTE that is read several times is that many subqueries, if each time has the same rows.
INSERT INTO queries (query) VALUES
	('WITH q AS (SELECT k, sum(n) AS x FROM t GROUP BY k) SELECT u.id, x FROM u JOIN q USING (k) WHERE x = (SELECT max(x) FROM q)'),
	('WITH q AS (SELECT k, count(*) AS x FROM t WHERE d > ''2024-01-10'' GROUP BY k) SELECT a.k, b.x FROM q a JOIN q b ON b.k = a.k JOIN u ON u.id = a.k'),
	('WITH q AS (SELECT k, max(c) AS x FROM t GROUP BY k) SELECT count(*) FROM q WHERE x > (SELECT min(x) FROM q)'),
	('WITH q AS (SELECT * FROM t WHERE id < 500) SELECT count(*) FROM q JOIN q r USING (k)'),
	-- not these: PostgreSQL would keep their rows, and which they are may differ
	('WITH q AS MATERIALIZED (SELECT k, sum(n) AS x FROM t GROUP BY k) SELECT count(*) FROM q WHERE x > (SELECT avg(x) FROM q)'),
	('WITH q AS (SELECT k, sum(f) AS x FROM t GROUP BY k) SELECT count(*) FROM q WHERE x = (SELECT max(x) FROM q)'),
	('WITH q AS (SELECT f, count(*) AS x FROM t GROUP BY f) SELECT count(*) FROM q WHERE x > (SELECT avg(x) FROM q)'),
	('WITH q AS (SELECT k, max(f) AS x FROM t GROUP BY k) SELECT count(*) FROM q WHERE x < (SELECT max(x) FROM q)'),
	('WITH q AS (SELECT id, k FROM t ORDER BY k, id LIMIT 50) SELECT count(*) FROM q JOIN q r USING (k)'),
	('WITH q AS (SELECT k, 1 / (k + 1) AS x FROM t GROUP BY k) SELECT count(*) FROM q WHERE x < (SELECT max(x) FROM q)');
SELECT * FROM asked();
-- Devices join in another order.
SET gpuvm.device = 'cpu';
INSERT INTO queries (query) VALUES
	('SELECT id, (WITH q AS (SELECT g, sum(k) AS x FROM t WHERE id < 1000 GROUP BY g) SELECT count(*) FROM q WHERE x > (SELECT avg(x) FROM q)) FROM away WHERE id < 3');
SELECT * FROM asked();
RESET gpuvm.device;
-- Nor these: a condition that may raise would be moved into them.
INSERT INTO queries (query) VALUES
	('WITH q AS (SELECT k, count(*) AS x FROM t WHERE d > ''2024-01-10'' GROUP BY k) SELECT a.k, b.x FROM q a JOIN q b ON b.k = a.k + 1 JOIN u ON u.id = a.k'),
	('WITH q AS (SELECT t.s FROM t JOIN v ON t.s = v.k AND v.k > 3 AND t.id < 100) SELECT count(*) FROM q a JOIN q b USING (s) WHERE 1 / (a.s - 3) < 5'),
	('WITH q AS (SELECT t.s, count(*) AS x FROM t JOIN v ON t.s = v.k AND v.k > 3 GROUP BY t.s) SELECT s FROM q WHERE 1 / (s - 3) < 5 AND x >= (SELECT max(x) FROM q)'),
	('WITH q AS (SELECT t.s, count(*) AS x FROM t JOIN v ON t.s = v.k AND v.k > 3 GROUP BY t.s) SELECT s FROM q WHERE 1 / (s - 3) < (SELECT max(x) FROM q)');
SELECT * FROM asked();
WITH q AS (SELECT k, random() AS x FROM v) SELECT count(*) FROM q a JOIN q b ON a.x = b.x AND a.k <> b.k;

-- IN over a join: the join's different values are a relation of their own.
INSERT INTO queries (query) VALUES
	('SELECT count(*), sum(id) FROM t WHERE k IN (SELECT u.k FROM u JOIN v ON v.id = u.id WHERE v.c < ''w2'')'),
	('SELECT count(*), sum(id) FROM t WHERE (k, s) IN (SELECT u.k, v.s FROM u JOIN v ON v.id = u.id)'),
	('SELECT t.id FROM t JOIN v USING (id) WHERE t.c IN (SELECT u.c FROM u, v WHERE v.k = u.k AND u.g = 3)'),
	('SELECT count(*) FROM t WHERE l IN (SELECT u.k FROM u LEFT JOIN v ON v.id = u.id WHERE v.id IS NULL)'),
	('SELECT count(*) FROM t WHERE g IN (SELECT u.g FROM u WHERE u.id IN (SELECT id FROM v WHERE b) AND u.n > (SELECT avg(n) FROM v WHERE v.k = u.k))'),
	('SELECT count(*) FROM v WHERE id < 20 AND k IN (SELECT u.k FROM u JOIN t USING (id) WHERE u.s > v.s AND u.id < 90)'),
	('SELECT count(*) FROM t WHERE k NOT IN (SELECT u.k FROM u JOIN v USING (id))'),
	('SELECT count(*) FROM t WHERE (k, s) NOT IN (SELECT u.k, v.s FROM u JOIN v USING (id))'),
	('SELECT count(*) FROM t WHERE b OR k IN (SELECT u.k FROM u JOIN v USING (id))'),
	('SELECT count(*) FROM t WHERE k IN (SELECT (random() * 0)::int + u.k FROM u JOIN v USING (id))');
SELECT * FROM asked();
-- It is none where it may raise: nobody may ask for its rows.
INSERT INTO queries (query) VALUES
	('SELECT id FROM empty WHERE k IN (SELECT 10 / (u.s - 3) FROM u JOIN v USING (id))'),
	('SELECT id FROM t WHERE id < 0 AND k IN (SELECT u.k FROM u JOIN v USING (id) WHERE 10 / (u.s - 3) > 0)');
SELECT * FROM asked();

DROP SCHEMA setops CASCADE;
