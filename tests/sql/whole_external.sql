-- Statements in stages that read tables which are not imported, too (gpuvm.whole_query): PostgreSQL gives their rows.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA whole_external;
SET search_path = whole_external;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE o (id int NOT NULL, k int, x int, n numeric(8,2), t text) WITH (autovacuum_enabled = off);
INSERT INTO o SELECT i, nullif(i % 23, 4), i * 7 % 60, i % 13 * 0.5, 't' || i % 9 FROM generate_series(1, 3000) i;
CREATE TABLE i (k int, x int) WITH (autovacuum_enabled = off);
INSERT INTO i SELECT i % 30, i * 11 % 50 FROM generate_series(1, 2000) i;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE away (k int, name text, w numeric(6,1), free numeric, f float8, d date, c char(4), m mood, a int[], j jsonb, b bool) WITH (autovacuum_enabled = off);
INSERT INTO away SELECT nullif(i, 7), CASE WHEN i <> 9 THEN 't' || i % 5 END, i * 0.5, i / 3.0, CASE i WHEN 3 THEN 'NaN' ELSE i * 1.25 END, date '2024-01-01' + i, 'c' || i % 3,
	(ARRAY['sad', 'ok'])[i % 2 + 1]::mood, ARRAY[i], jsonb_build_object('i', i), i % 3 = 1 FROM generate_series(1, 40) i;
CREATE TABLE empty (LIKE away) WITH (autovacuum_enabled = off);
CREATE TABLE large (id int, t text) WITH (autovacuum_enabled = off);
INSERT INTO large SELECT i, 't' || i FROM generate_series(1, 20000) i;
CREATE TABLE family (k int) WITH (autovacuum_enabled = off);
CREATE TABLE child () INHERITS (family);
INSERT INTO family VALUES (1);
INSERT INTO child VALUES (2);
VACUUM ANALYZE o, i, away, empty, large, family, child;
SELECT sum(gpuvm.import(t)) FROM unnest('{o,i}'::regclass[]) t;

\i tests/sql/include/try_stages.sql
-- The rows are those of PostgreSQL? How many stages gave them, and did another plan run?
CREATE FUNCTION ask(query text, OUT stages int, OUT fallback text, OUT rows int, OUT equal bool) LANGUAGE sql AS $$
SELECT t.stages, t.fallback, cardinality(t.expected), ARRAY(SELECT unnest(t.got) COLLATE "C" ORDER BY 1) = ARRAY(SELECT unnest(t.expected) COLLATE "C" ORDER BY 1) FROM try_stages(query) t $$;

-- On either side of joins, in subqueries and CTEs, in set operations.
SELECT * FROM ask('SELECT a.name, count(*), sum(o.n) FROM o JOIN away a ON a.k = o.k WHERE o.x < (SELECT avg(x) FROM i WHERE i.k = o.k) GROUP BY a.name');
SELECT * FROM ask('SELECT a.name, (SELECT count(*) FROM i WHERE i.k = a.k) FROM away a');
SELECT * FROM ask('SELECT a.k FROM away a WHERE a.k NOT IN (SELECT k FROM i WHERE x > 40)');
SELECT * FROM ask('SELECT o.id FROM o WHERE o.k NOT IN (SELECT k FROM away)');
SELECT * FROM ask('SELECT o.id FROM o WHERE o.k NOT IN (SELECT k FROM away WHERE k IS NOT NULL AND w < 5)');
SELECT * FROM ask('SELECT o.id FROM o WHERE o.k NOT IN (SELECT k FROM empty)');
SELECT * FROM ask('SELECT k FROM o UNION SELECT k FROM away UNION SELECT k FROM i');
SELECT * FROM ask('SELECT k, t FROM o INTERSECT SELECT k, name FROM away');
SELECT * FROM ask('SELECT k FROM away EXCEPT SELECT k FROM o WHERE x > 50');
SELECT * FROM ask('SELECT a.name, o.t, max(a.w), sum(a.f), min(a.d) FROM away a LEFT JOIN (SELECT t, id, count(*) FROM o GROUP BY t, id) o ON o.t = a.name AND o.id < 30 GROUP BY 1, 2');
SELECT * FROM ask('SELECT count(*) FROM away, (SELECT k, count(*) FROM o GROUP BY k) o WHERE o.k < 5');
SELECT * FROM ask('SELECT * FROM away a JOIN (SELECT k, sum(x) s, avg(n) FROM o GROUP BY k) q USING (k)');
SELECT * FROM ask('SELECT a.d, to_char(a.d, ''YYYY-MM''), count(*) FROM away a JOIN o USING (k) GROUP BY 1, 2');
SELECT * FROM ask('WITH c AS (SELECT k, count(*) n FROM o GROUP BY k) SELECT x.k, y.n, a.w FROM c x JOIN c y ON x.k = y.k + 1 LEFT JOIN away a ON a.k = x.k');
SELECT * FROM ask('WITH w AS MATERIALIZED (SELECT k, w FROM away WHERE b) SELECT x.k, y.w, o.n FROM w x JOIN w y ON x.k = y.k + 3 JOIN (SELECT k, sum(n) n FROM o GROUP BY k) o ON o.k = x.k');
SELECT * FROM ask('SELECT a.k, l.id FROM away a, LATERAL (SELECT id FROM o WHERE o.k = a.k ORDER BY id LIMIT 2) l');
SELECT * FROM ask('SELECT o.k, l.name FROM (SELECT k, count(*) FROM o GROUP BY k) o, LATERAL (SELECT name FROM away WHERE away.k = o.k ORDER BY w LIMIT 1) l');
SELECT * FROM ask('SELECT a.k, sum(q.s) OVER (PARTITION BY a.name ORDER BY a.k) FROM away a JOIN (SELECT k, sum(x) s FROM o GROUP BY k) q USING (k)');
SELECT * FROM ask('SELECT a.name, a.c, count(*) FROM away a JOIN (SELECT k, max(x) x FROM o GROUP BY k) q USING (k) GROUP BY ROLLUP (1, 2)');
-- Values of all kinds, also such that programs only hand on; system columns; none at all.
SELECT * FROM ask('SELECT a.free, a.m, a.a, a.j, a.c, a.b, q.x FROM away a JOIN (SELECT k, max(x) x FROM o GROUP BY k) q USING (k)');
SELECT * FROM ask('SELECT sum(a.free), max(a.m) FROM away a JOIN (SELECT k, max(x) x FROM o GROUP BY k) q USING (k)');
SELECT * FROM ask('SELECT a.tableoid, q.x FROM away a JOIN (SELECT k, max(x) x FROM o GROUP BY k) q USING (k)');
SELECT * FROM ask('SELECT a.ctid, q.x FROM away a JOIN (SELECT k, max(x) x FROM o GROUP BY k) q USING (k)');
SELECT * FROM ask('SELECT q.x FROM away a, (SELECT k, max(x) x FROM o GROUP BY k) q');
SELECT * FROM ask('SELECT l.t, q.x FROM large l JOIN (SELECT id, max(x) x FROM o GROUP BY id) q USING (id) WHERE l.id > 2990');
SELECT * FROM ask('SELECT l.id, q.x FROM large l JOIN (SELECT t, max(x) x FROM o GROUP BY t) q USING (t)');
-- Errors.
SELECT * FROM ask('SELECT count(*) FROM away a JOIN (SELECT k, sum(100 / (x - 7)) s FROM o GROUP BY k) q USING (k)');
SELECT * FROM ask('SELECT 10 / (a.k - 3), q.s FROM away a JOIN (SELECT k, sum(x) s FROM o GROUP BY k) q USING (k)');
-- VALUES, functions and recursive CTEs, some of whose columns are read.
SELECT * FROM ask('SELECT v.b, count(*), sum(q.x) FROM (VALUES (1, ''a'', 2.5), (2, ''b'', 3.5), (3, NULL, 4.5)) v(a, b, c) JOIN (SELECT k, max(x) x FROM o GROUP BY k, t) q ON q.k = v.a AND q.x > v.c GROUP BY 1');
SELECT * FROM ask('SELECT v.a, q.k, grouping(v.a, q.k), sum(v.c), max(q.x) FROM (VALUES (1, 1, 10), (1, 2, 11), (2, 3, 12)) v(a, b, c), (SELECT k, max(x) x FROM o GROUP BY k) q GROUP BY GROUPING SETS ((v.a, q.k), ())');
SELECT * FROM ask('SELECT count(*) FROM (VALUES (1), (2)) v(a), (SELECT k FROM o GROUP BY k) q');
SELECT * FROM ask('SELECT k, count(*) FROM (SELECT k FROM o UNION ALL SELECT 7 UNION ALL VALUES (8), (9)) u GROUP BY k');
SELECT * FROM ask('SELECT q.k, f.b FROM (SELECT k, max(x) x FROM o GROUP BY k) q JOIN ROWS FROM (generate_series(1, 3), generate_series(5, 6)) WITH ORDINALITY f(a, b, c) ON f.c = q.k');
SELECT * FROM ask('WITH RECURSIVE r(i, j) AS (SELECT 1, 2 UNION ALL SELECT i + 1, j * 2 FROM r WHERE i < 9) SELECT r.j, q.x FROM r JOIN (SELECT k, max(x) x FROM o GROUP BY k) q ON q.k = r.j');
SELECT * FROM ask('WITH RECURSIVE r(i) AS (SELECT min(k) FROM o UNION ALL SELECT i + 1 FROM r WHERE i < 9) SELECT r.i, q.x FROM r JOIN (SELECT k, max(x) x FROM o GROUP BY k) q ON q.k = r.i');
-- Not these: other relations, and rows that a policy hides.
SELECT * FROM ask('SELECT a.k, q.s FROM away a TABLESAMPLE SYSTEM (100) JOIN (SELECT k, sum(x) s FROM o GROUP BY k) q USING (k)');
SELECT * FROM ask('SELECT a.k, q.s FROM family a JOIN (SELECT k, sum(x) s FROM o GROUP BY k) q USING (k)');
-- Columns that are not in the tablets: not imported, or numerics that the partitions show with different numbers of decimals.
CREATE TABLE partly (id int, n numeric, t text) WITH (autovacuum_enabled = off);
INSERT INTO partly SELECT i, i * 0.5, 'p' || i FROM generate_series(1, 500) i;
CREATE TABLE decimals (id int, n numeric) PARTITION BY RANGE (id);
CREATE TABLE decimals_1 PARTITION OF decimals FOR VALUES FROM (0) TO (300) WITH (autovacuum_enabled = off);
CREATE TABLE decimals_2 PARTITION OF decimals FOR VALUES FROM (300) TO (1000) WITH (autovacuum_enabled = off);
INSERT INTO decimals SELECT i, i * CASE WHEN i < 300 THEN 0.5 ELSE 0.50 END FROM generate_series(1, 500) i;
VACUUM ANALYZE partly, decimals;
SELECT gpuvm.import('partly', columns => '{id}'), gpuvm.import('decimals');
SELECT * FROM ask('SELECT q.x, p.n * 2 FROM partly p JOIN (SELECT id, max(x) x FROM o GROUP BY id) q USING (id)');
SELECT * FROM ask('SELECT p.t, q.x FROM partly p JOIN (SELECT id, max(x) x FROM o GROUP BY id) q USING (id)');
SELECT * FROM ask('SELECT p.id, q.x FROM partly p JOIN (SELECT id, max(x) x FROM o GROUP BY id) q USING (id)');
SELECT * FROM ask('SELECT o.id, 2.5 = d.n FROM o JOIN decimals d USING (id) WHERE to_char(o.n, ''9'') <> ''x''');
SELECT * FROM ask('SELECT o.id, d.id FROM o JOIN decimals d USING (id) WHERE to_char(o.n, ''9'') <> ''x''');

CREATE ROLE gpuvm_external_reader;
GRANT USAGE ON SCHEMA whole_external TO gpuvm_external_reader;
GRANT SELECT ON o, i TO gpuvm_external_reader;
GRANT SELECT (k, w) ON away TO gpuvm_external_reader;
SET ROLE gpuvm_external_reader;
SELECT stages IS NOT NULL AS stages, rows, equal FROM ask('SELECT a.k, a.w, q.s FROM away a JOIN (SELECT k, sum(x) s FROM o GROUP BY k) q USING (k)');
SELECT a.name, q.s FROM away a JOIN (SELECT k, sum(x) s FROM o GROUP BY k) q USING (k);
RESET ROLE;
ALTER TABLE away ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON away USING (k > 5);
SET ROLE gpuvm_external_reader;
SELECT * FROM ask('SELECT a.k, a.w, q.s FROM away a JOIN (SELECT k, sum(x) s FROM o GROUP BY k) q USING (k)');
RESET ROLE;
ALTER TABLE away DISABLE ROW LEVEL SECURITY;
DROP POLICY own ON away;

-- How it looks; what PostgreSQL reads, and why.
SET gpuvm.force = on;
SET gpuvm.device = 'cpu'; -- devices join in another order
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT a.name, q.s FROM away a JOIN (SELECT k, sum(x) s FROM o WHERE id < 500 GROUP BY k) q USING (k) WHERE a.w > 3;
RESET gpuvm.device;
SELECT * FROM gpuvm.why_not('SELECT a.name, q.s FROM away a JOIN (SELECT k, sum(x) s FROM o GROUP BY k) q USING (k)');
SET gpuvm.require = :device;
-- Changes of this transaction, those of others while a cursor is open, and a plan that is kept.
BEGIN;
INSERT INTO away (k, w) VALUES (8, 1000);
DELETE FROM away WHERE k = 10;
SELECT a.k, a.w, q.s FROM away a JOIN (SELECT k, sum(x) s FROM o GROUP BY k) q USING (k) WHERE a.k IN (8, 10) ORDER BY a.w;
DECLARE c CURSOR FOR SELECT a.k, a.w, q.s FROM away a JOIN (SELECT k, sum(x) s FROM o GROUP BY k) q USING (k) WHERE a.k > 19 ORDER BY a.k;
FETCH 1 FROM c;
DELETE FROM away WHERE k > 19;
FETCH ALL FROM c;
ROLLBACK;
SET plan_cache_mode = force_generic_plan;
PREPARE p(int) AS SELECT a.k, a.w, q.s FROM away a JOIN (SELECT k, sum(x) s FROM o WHERE id < $1 GROUP BY k) q USING (k) WHERE a.k = 8 AND a.w < $1;
EXECUTE p(100);
UPDATE away SET w = 7 WHERE k = 8;
EXECUTE p(100);
EXECUTE p(NULL);
ALTER TABLE away ADD more int DEFAULT 5;
EXECUTE p(200);
DEALLOCATE p;
INSERT INTO away (k, w) SELECT a.k, q.s FROM away a JOIN (SELECT k, sum(x) s FROM o WHERE id < 100 GROUP BY k) q USING (k) WHERE a.k < 4 RETURNING k, w;
PREPARE v(int, text) AS SELECT v.b, q.s FROM (VALUES ($1, $2), (3, 'three')) v(a, b) JOIN (SELECT k, sum(x) s FROM o GROUP BY k) q ON q.k = v.a ORDER BY 2;
EXECUTE v(1, 'one');
EXECUTE v(2, 'two');
DEALLOCATE v;
RESET gpuvm.require;
-- By cost: a few rows by an index are PostgreSQL's.
RESET gpuvm.force;
CREATE INDEX ON large (id);
CREATE INDEX ON o (id);
EXPLAIN (COSTS OFF) SELECT l.t, q.x FROM large l JOIN (SELECT id, max(x) x FROM o WHERE id = 5 GROUP BY id) q USING (id);
RESET ROLE;
DROP SCHEMA whole_external CASCADE;
DROP ROLE gpuvm_external_reader;
