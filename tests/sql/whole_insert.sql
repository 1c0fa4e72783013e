-- INSERT ... SELECT and CREATE TABLE AS, whose rows are made in stages (gpuvm.whole_query).
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA whole_insert;
SET search_path = whole_insert;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE t (id int NOT NULL, k int, x int, n numeric(8,2), day date) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, nullif(i % 23, 4), i * 7 % 60, i % 13 * 0.5, date '2024-02-20' + i % 60 FROM generate_series(1, 2000) i;
CREATE TABLE u (k int, y int) WITH (autovacuum_enabled = off);
INSERT INTO u SELECT nullif(i % 31, 6), i * 11 % 50 FROM generate_series(1, 700) i;
VACUUM ANALYZE t, u;
SELECT sum(gpuvm.import(t)) FROM unnest('{t,u}'::regclass[]) t;
CREATE TABLE target (a int, b numeric, c text DEFAULT 'none', id int GENERATED ALWAYS AS IDENTITY);
CREATE TABLE parted (a int, b numeric) PARTITION BY LIST (a);
CREATE TABLE parted_few PARTITION OF parted FOR VALUES IN (1, 2, 3);
CREATE TABLE parted_rest PARTITION OF parted DEFAULT;
CREATE TABLE counted (a int PRIMARY KEY, b numeric);

-- The rows of a table, without numbers that depend on their order.
CREATE FUNCTION rows_of(name text, OUT rows text[]) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SELECT coalesce(array_agg(r ORDER BY r), ''{}'') FROM (SELECT (to_jsonb(q) - ''id'')::text COLLATE "C" r FROM %I q) q', name) INTO rows;
END $$;
-- Inserts in PostgreSQL, and with stages forced: how many gave the rows, did another plan run, and is in the table what PostgreSQL put there?
CREATE FUNCTION try_insert(statement text, name text DEFAULT 'target', OUT stages int, OUT fallback text, OUT rows int, OUT equal bool) LANGUAGE plpgsql AS $$
DECLARE
	ran text;
	expected text[];
	got text[];
BEGIN
	PERFORM set_config('gpuvm.enabled', 'off', true);
	BEGIN
		EXECUTE statement;
		expected := rows_of(name);
		RAISE EXCEPTION SQLSTATE 'UNDO0';
	EXCEPTION WHEN SQLSTATE 'UNDO0' THEN
	WHEN OTHERS THEN
		expected := ARRAY[SQLSTATE];
	END;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.force', 'on', true);
	BEGIN
		EXECUTE 'EXPLAIN (FORMAT JSON) ' || statement INTO ran;
		stages := substring(ran FROM '"Stages": (\d+)');
		PERFORM set_config('gpuvm.require', CASE WHEN stages IS NULL THEN 'any' ELSE replace(current_setting('gpuvm.device'), 'auto', 'vm') END, true);
		EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || statement INTO ran;
		fallback := substring(ran FROM '"Fallback": "([^"]*)');
		got := rows_of(name);
		RAISE EXCEPTION SQLSTATE 'UNDO0';
	EXCEPTION WHEN SQLSTATE 'UNDO0' THEN
	WHEN OTHERS THEN
		got := ARRAY[SQLSTATE];
	END;
	rows := cardinality(expected);
	equal := got = expected;
END $$;

-- What PostgreSQL plans as a level: groups of groups, of several tables, by what no program computes; set operations, windows, sorted rows.
SELECT * FROM try_insert('INSERT INTO target SELECT g, avg(s) FROM (SELECT k % 5 g, sum(n) s FROM t GROUP BY k) q GROUP BY g');
SELECT * FROM try_insert('INSERT INTO target (c, b) SELECT to_char(day, ''YYYY-MM''), sum(n) FROM t GROUP BY 1');
SELECT * FROM try_insert('INSERT INTO target (a, b) SELECT k, s FROM (SELECT k, sum(n) s FROM t GROUP BY k) p JOIN (SELECT k, count(*) c FROM u GROUP BY k) q USING (k) GROUP BY k, s');
SELECT * FROM try_insert('INSERT INTO target (a) SELECT k FROM t INTERSECT SELECT y FROM u');
SELECT * FROM try_insert('INSERT INTO target (a, b) SELECT id, rank() OVER (PARTITION BY k ORDER BY n, id) FROM t');
SELECT * FROM try_insert('INSERT INTO target (a, b) SELECT p.k, p.s FROM (SELECT k, sum(n) s FROM t GROUP BY k) p JOIN u ON u.k = p.k ORDER BY p.s DESC, p.k, u.y LIMIT 30 OFFSET 3');
-- What PostgreSQL pulls up: joins with groups, subqueries that depend on the row, UNION ALL.
SELECT * FROM try_insert('INSERT INTO target (a, b) SELECT t.id, q.s FROM t JOIN (SELECT k, sum(y) s FROM u GROUP BY k) q ON q.k = t.k');
SELECT * FROM try_insert('INSERT INTO target (a, b) SELECT id, (SELECT max(y) FROM u WHERE u.k = t.k) FROM t');
SELECT * FROM try_insert('INSERT INTO target (a) SELECT id FROM t WHERE x < (SELECT avg(y) FROM u WHERE u.k = t.k)');
SELECT * FROM try_insert('INSERT INTO target (a) SELECT id FROM t WHERE k NOT IN (SELECT k FROM u WHERE k IS NOT NULL AND y > 30)');
SELECT * FROM try_insert('INSERT INTO target (a, b) SELECT k, count(*) FROM t GROUP BY k UNION ALL SELECT k, count(*) FROM u GROUP BY k');
SELECT * FROM try_insert('INSERT INTO target (a, b) SELECT t.id, q.y FROM t CROSS JOIN LATERAL (SELECT y FROM u WHERE u.k = t.k ORDER BY y LIMIT 1) q');
-- CTEs, of the statement or of the SELECT.
SELECT * FROM try_insert('WITH c AS (SELECT k, sum(n) s FROM t GROUP BY k) INSERT INTO target (a, b) SELECT p.k, q.s FROM c p JOIN c q ON p.k = q.k + 1');
SELECT * FROM try_insert('WITH c AS (SELECT k, sum(n) s FROM t GROUP BY k), d AS (SELECT k, s FROM c WHERE s > 3) INSERT INTO target (a, b) WITH e AS (SELECT * FROM d) SELECT p.k, q.s FROM c p JOIN e q ON p.k = q.k + 1');
SELECT * FROM try_insert('WITH c AS (SELECT k, sum(n) s FROM t GROUP BY k) INSERT INTO target (a, b) SELECT id, (SELECT max(s) FROM c WHERE c.k = t.k) FROM t');
SELECT * FROM try_insert('WITH c AS (SELECT k FROM t GROUP BY k) INSERT INTO target (a) WITH c AS (SELECT k + 1 AS k FROM c) SELECT p.k FROM c p JOIN c q USING (k)');
SELECT * FROM try_insert('WITH RECURSIVE r AS (SELECT 1 i UNION ALL SELECT i + 1 FROM r WHERE i < 5) INSERT INTO target (a, b) SELECT i, count(*) FROM r JOIN t ON t.k = i GROUP BY i');
-- Casts and constants, conflicts, partitions, the table that is read, RETURNING.
SELECT * FROM try_insert('INSERT INTO target (a, b, c) SELECT g, avg(s), ''constant'' FROM (SELECT k % 5 g, sum(x) s FROM t GROUP BY k) q GROUP BY g');
SELECT * FROM try_insert('INSERT INTO target (c, a) SELECT g, max(s) FROM (SELECT k % 5 g, sum(n) s FROM t GROUP BY k) q GROUP BY g');
SELECT * FROM try_insert('INSERT INTO counted SELECT k, sum(s) FROM (SELECT k, x, sum(n) s FROM t WHERE k IS NOT NULL GROUP BY k, x) q GROUP BY k ON CONFLICT (a) DO UPDATE SET b = counted.b + excluded.b', 'counted');
SELECT * FROM try_insert('INSERT INTO counted SELECT k, sum(s) FROM (SELECT k, x, sum(n) s FROM t GROUP BY k, x) q GROUP BY k', 'counted');
SELECT * FROM try_insert('INSERT INTO parted SELECT k, sum(s) FROM (SELECT k, x, sum(n) s FROM t GROUP BY k, x) q GROUP BY k', 'parted');
SELECT * FROM try_insert('INSERT INTO u SELECT k, sum(s) FROM (SELECT k, y, count(*) s FROM u GROUP BY k, y) q GROUP BY k', 'u');
SELECT * FROM try_insert('INSERT INTO target (a, b) SELECT k, sum(s) FROM (SELECT k, x, sum(n) s FROM t GROUP BY k, x) q GROUP BY k RETURNING a, b + id');
-- A subquery of the INSERT's own: it is planned as it stands.
SELECT * FROM try_insert('INSERT INTO target (a, b) SELECT k, sum(s) FROM (SELECT k, x, sum(n) s FROM t GROUP BY k, x) q GROUP BY k RETURNING (SELECT count(*) FROM u)');
SELECT * FROM try_insert('WITH i AS (INSERT INTO target (a, b) SELECT k, sum(s) FROM (SELECT k, x, sum(n) s FROM t GROUP BY k, x) q GROUP BY k RETURNING a) SELECT count(*) FROM i');
-- Errors are PostgreSQL's.
SELECT * FROM try_insert('INSERT INTO target (a) SELECT sum(s) FROM (SELECT k, 100 / (k - 22) s FROM t GROUP BY k) q');
SELECT * FROM try_insert('INSERT INTO target (a) SELECT sum(s) FROM (SELECT k, sum(id::int8 * 1000000000) s FROM t GROUP BY k) q');

-- Prepared, without being forced, and what is required.
CREATE TABLE many AS SELECT i AS id, i % 5000 AS k, i % 7 AS x, date '2024-01-01' + i % 600 AS day FROM generate_series(1, 100000) i;
VACUUM ANALYZE many;
SELECT gpuvm.import('many');
EXPLAIN (COSTS OFF) INSERT INTO target (a, b) SELECT x, avg(c) FROM (SELECT k, x, count(*) c FROM many GROUP BY k, x) q GROUP BY x;
EXPLAIN (COSTS OFF) INSERT INTO target (c, a) SELECT to_char(day, 'YYYY-MM'), count(*) FROM many GROUP BY 1;
SET gpuvm.require = :device;
INSERT INTO target (a, b) SELECT x, avg(c) FROM (SELECT k, x, count(*) c FROM many GROUP BY k, x) q GROUP BY x RETURNING a, round(b, 3);
PREPARE p(int) AS INSERT INTO target (a, b) SELECT x, avg(c) FROM (SELECT k, x, count(*) c FROM many WHERE id < $1 GROUP BY k, x) q GROUP BY x RETURNING a, round(b, 3);
SET plan_cache_mode = force_generic_plan;
EXECUTE p(20000);
EXECUTE p(NULL);
-- Rows that this transaction has inserted are seen by the next statement, and not by the one that inserts them.
BEGIN;
INSERT INTO many SELECT 0, k, count(*), max(day) FROM (SELECT k, x, max(day) AS day FROM many WHERE k < 5 GROUP BY k, x) q GROUP BY k;
INSERT INTO many SELECT 0, k, count(*), max(day) FROM (SELECT k, x, max(day) AS day FROM many WHERE k < 5 GROUP BY k, x) q GROUP BY k RETURNING k, x, day;
ROLLBACK;
-- CREATE TABLE AS and materialized views plan a SELECT.
CREATE TABLE made AS SELECT x, avg(c) AS a FROM (SELECT k, x, count(*) c FROM many GROUP BY k, x) q GROUP BY x;
CREATE MATERIALIZED VIEW seen AS SELECT to_char(day, 'YYYY') AS y, count(*) FROM many GROUP BY 1;
REFRESH MATERIALIZED VIEW seen;
SELECT x, round(a, 3) FROM made ORDER BY x;
SELECT * FROM seen ORDER BY y;
RESET gpuvm.require;
DROP SCHEMA whole_insert CASCADE;
