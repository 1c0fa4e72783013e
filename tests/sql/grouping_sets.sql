-- GROUPING SETS, ROLLUP and CUBE: a program for each set.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA grouping_sets;
SET search_path = grouping_sets;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/ask.sql
\set ECHO all

CREATE TABLE t (id int, a int, b int, c text, d date, n numeric(8,2), f float8) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT k, nullif(k % 4, 3), nullif(k % 6, 5), nullif('c' || k % 3, 'c2'), date '2024-01-01' + k % 5, (k % 50) / 4.0, k % 3 * 0.5 FROM generate_series(1, 3000) k;
CREATE TABLE u (id int, name text) WITH (autovacuum_enabled = off);
INSERT INTO u SELECT k, 'n' || k % 4 FROM generate_series(1, 3000, 3) k;
CREATE TABLE empty (LIKE t) WITH (autovacuum_enabled = off);
SELECT gpuvm.import('t'), gpuvm.import('u'), gpuvm.import('empty');
ANALYZE t, u;

SELECT * FROM ask('SELECT a, b, count(*), sum(id) FROM t GROUP BY ROLLUP (a, b)');
SELECT * FROM ask('SELECT a, c, count(*), sum(n), avg(f), max(c) FROM t GROUP BY CUBE (a, c)');
SELECT * FROM ask('SELECT a, b, c, count(*) FROM t GROUP BY GROUPING SETS ((a, b), (c), ())');
SELECT * FROM ask('SELECT a, b, c, d, count(*) FROM t GROUP BY a, CUBE (b, c), ROLLUP (d)');
SELECT * FROM ask('SELECT a, count(*) FROM t GROUP BY GROUPING SETS ((a), (a), (), ())');
SELECT * FROM ask('SELECT a, b, count(*) FROM t GROUP BY DISTINCT ROLLUP (a, b), ROLLUP (a)');
SELECT * FROM ask('SELECT c, d, n, min(id) FROM t GROUP BY GROUPING SETS ((c, d), (n), (d))');
SELECT * FROM ask('SELECT b FROM t GROUP BY CUBE (b)');
SELECT * FROM ask('SELECT f, count(*) FROM t GROUP BY ROLLUP (f)');
-- One set, of which PostgreSQL drops what depends on the primary key.
CREATE TABLE g (id int PRIMARY KEY, a int, b int) WITH (autovacuum_enabled = off);
INSERT INTO g SELECT k, k % 4, nullif(k % 6, 5) FROM generate_series(1, 300) k;
SELECT gpuvm.import('g');
SELECT * FROM ask('SELECT id, a, b, grouping(id, a, b), grouping(b), count(*) FROM g WHERE id < 5 GROUP BY GROUPING SETS ((id, a, b))');
SELECT * FROM ask('SELECT id, a, grouping(a, id), count(*) FROM g WHERE id < 5 GROUP BY id, a HAVING grouping(a) = 0');
DROP TABLE g;
-- Keys that are expressions.
SELECT * FROM ask('SELECT a + b, upper(c), count(*) FROM t GROUP BY CUBE (a + b, upper(c))');
SELECT * FROM ask('SELECT extract(day FROM d) AS day, a * 2, count(*) FROM t GROUP BY ROLLUP (1, 2)');
SELECT * FROM ask('SELECT a, a + 1, coalesce(a, -1), count(*) FROM t GROUP BY ROLLUP (a)');
SELECT * FROM ask('SELECT CASE WHEN grouping(a) = 1 THEN -1 ELSE a END, c || $$!$$, count(*) + 1 FROM t GROUP BY CUBE (a, c)');
-- GROUPING(), HAVING, ORDER BY.
SELECT * FROM ask('SELECT grouping(a), grouping(b), grouping(b, a), grouping(a, b, a), a, b, sum(id) FROM t GROUP BY CUBE (a, b)');
SELECT * FROM ask('SELECT a, b, count(*) FROM t GROUP BY CUBE (a, b) HAVING grouping(a) = 0 AND count(*) > 130');
SELECT * FROM ask('SELECT a, count(*) FROM t GROUP BY ROLLUP (a) HAVING a IS NULL');
SELECT * FROM ask('SELECT a, b, sum(n) FROM t GROUP BY ROLLUP (a, b) ORDER BY grouping(a, b) DESC, sum(n) DESC LIMIT 5');
SELECT * FROM ask('SELECT a, c, count(*), rank() OVER (PARTITION BY grouping(a, c) ORDER BY count(*)) FROM t GROUP BY CUBE (a, c)');
-- A single set is plain grouping.
SELECT * FROM ask('SELECT grouping(a), grouping(a, b), a, b, count(*) FROM t GROUP BY a, b HAVING grouping(a) = 0');
SELECT * FROM ask('SELECT grouping(a), a, count(*) FROM t GROUP BY GROUPING SETS (a)');
-- Nothing to group: the empty set has its row all the same.
SELECT * FROM ask('SELECT a, b, count(*), sum(id), grouping(a) FROM empty GROUP BY CUBE (a, b)');
SELECT * FROM ask('SELECT a, count(*) FROM t WHERE id < 0 GROUP BY GROUPING SETS ((a), (), ())');
SELECT * FROM ask('SELECT a, count(*) FROM t WHERE id < 0 GROUP BY GROUPING SETS ((a))');
SELECT * FROM ask('SELECT count(*) FROM t GROUP BY ()');
-- DISTINCT and FILTER in sets.
SELECT * FROM ask('SELECT a, b, count(DISTINCT id % 100), sum(DISTINCT n), count(*) FROM t GROUP BY ROLLUP (a, b)');
SELECT * FROM ask('SELECT a, c, count(DISTINCT b) FILTER (WHERE id < 20), count(DISTINCT d), max(DISTINCT c) FROM t GROUP BY CUBE (a, c)');
SELECT * FROM ask('SELECT a, b, count(DISTINCT a), sum(a), count(b) FILTER (WHERE a = 1) FROM t GROUP BY CUBE (a, b)');
SELECT * FROM ask('SELECT DISTINCT a, grouping(b) FROM t GROUP BY CUBE (a, b)');
-- Joins, and what reads the result.
SELECT * FROM ask('SELECT u.name, t.a, count(*), sum(t.n) FROM t JOIN u USING (id) GROUP BY CUBE (u.name, t.a)');
SELECT * FROM ask('SELECT u.name, t.a, count(*) FROM t LEFT JOIN u USING (id) GROUP BY ROLLUP (u.name, t.a) HAVING count(*) > 100');
SELECT * FROM ask('SELECT q.a, count(*), sum(q.k) FROM (SELECT a, b, count(*) k FROM t GROUP BY ROLLUP (a, b)) q GROUP BY q.a');
SELECT * FROM ask('SELECT count(*) FROM (SELECT a, b FROM t GROUP BY CUBE (a, b)) q');
-- What stays with PostgreSQL.
SELECT * FROM ask('SELECT a, count(*) FROM t GROUP BY ROLLUP (a, 1 + 1)');
SELECT * FROM ask('SELECT a, (SELECT grouping(t.a)), count(*) FROM t GROUP BY ROLLUP (a)');
SELECT * FROM ask('SELECT a, array_agg(DISTINCT b) FROM t GROUP BY ROLLUP (a)');
SELECT split_part("by", ';', 1) AS "by", equal FROM ask('SELECT count(*) FROM t GROUP BY CUBE (a, b, c, d, n, f, id)');
-- A key twice: PostgreSQL tells the two apart.
SELECT split_part("by", '; Sort', 1) AS "by", equal, answer FROM ask('SELECT b, b, count(*) FROM t WHERE b < 2 GROUP BY ROLLUP (1, 2)');
SELECT split_part("by", '; Sort', 1) AS "by", equal FROM ask('SELECT a + 1, b, a + 1, count(*) FROM t GROUP BY GROUPING SETS ((1), (2, 3))');
-- An error in one of the programs, when others have run.
SELECT * FROM ask('SELECT a, 10 / b, count(*) FROM t GROUP BY GROUPING SETS ((a), (10 / b))');
SELECT * FROM ask('SELECT a, b, sum(1 / (CASE WHEN b = 0 AND a = 0 THEN 0 ELSE 1 END)) FROM t GROUP BY ROLLUP (a, b)');

-- Changed rows, prepared statements, rescans, cursors.
BEGIN;
INSERT INTO t VALUES (9001, 77, 1, 'new', NULL, 1, 1), (9002, 77, NULL, NULL, NULL, NULL, NULL);
DELETE FROM t WHERE id < 1000;
SELECT * FROM ask('SELECT a, c, count(*), sum(id) FROM t GROUP BY CUBE (a, c)');
ROLLBACK;
SET gpuvm.require = 'vm';
PREPARE p(int) AS SELECT a, grouping(a), count(*), sum(id + $1) FROM t WHERE id < $1 GROUP BY ROLLUP (a) ORDER BY 2, 1;
SET plan_cache_mode = force_generic_plan;
EXECUTE p(100);
EXECUTE p(0);
SELECT v.x, q.* FROM (VALUES (1), (NULL), (2)) v(x), LATERAL (SELECT c, count(*) FROM t WHERE a = v.x GROUP BY ROLLUP (c) ORDER BY c) q;
BEGIN;
DECLARE cur CURSOR FOR SELECT a, b, count(*) FROM t GROUP BY ROLLUP (a, b) ORDER BY grouping(a, b), a, b;
FETCH 3 FROM cur;
RESET gpuvm.require;
DELETE FROM t;
MOVE 9 IN cur;
FETCH ALL FROM cur;
ROLLBACK;
RESET gpuvm.require;

EXPLAIN (COSTS OFF) SELECT a, b, count(*) FROM t WHERE id > 7 GROUP BY ROLLUP (a, b);
EXPLAIN (COSTS OFF, FORMAT JSON) SELECT u.name, t.a, count(DISTINCT t.b) FROM t JOIN u USING (id) GROUP BY GROUPING SETS ((u.name), (t.a));
EXPLAIN (COSTS OFF, VERBOSE) SELECT a, count(*) FROM t GROUP BY GROUPING SETS ((a), ());

DROP SCHEMA grouping_sets CASCADE;
