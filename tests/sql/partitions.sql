-- Partitioned tables: one program over all leaves that were not pruned.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA partitions;
SET search_path = partitions;
SET gpuvm.force = on;

-- The machine's answer and PostgreSQL's, in one snapshot. The answer is the number of rows, where they are the same.
CREATE FUNCTION compared(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	vm text[];
	pg text[];
BEGIN
	PERFORM set_config('gpuvm.require', replace(current_setting('gpuvm.device'), 'auto', 'vm'), true);
	EXECUTE format('SELECT array_agg(q::text ORDER BY q::text) FROM (%s) q', query) INTO vm;
	PERFORM set_config('gpuvm.require', 'any', true), set_config('gpuvm.enabled', 'off', true);
	EXECUTE format('SELECT array_agg(q::text ORDER BY q::text) FROM (%s) q', query) INTO pg;
	PERFORM set_config('gpuvm.enabled', 'on', true);
	IF vm IS DISTINCT FROM pg THEN
		RETURN format('%s instead of %s', vm, pg);
	END IF;
	RETURN format('same, rows: %s', coalesce(array_length(pg, 1), 0));
END $$;
-- The device's name differs from machine to machine.
CREATE FUNCTION analyzed(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		RETURN NEXT regexp_replace(regexp_replace(line, '(Device: )(cpu|cuda).*', '\1virtual machine'), '(Tier: ).*', '\1(tier)');
	END LOOP;
END $$;
CREATE FUNCTION all_compared() RETURNS TABLE (query text, answer text) LANGUAGE sql AS $$
SELECT q, compared(q) FROM unnest(ARRAY[
	'SELECT count(*), sum(a), sum(b), min(c), max(day), count(d) FROM p',
	'SELECT id, a, b, c, d, day FROM p WHERE a = 3 OR c < 20',
	'SELECT a, count(*), sum(b), max(id) FROM p WHERE id > 700 GROUP BY a',
	'SELECT count(*) FROM (SELECT a, day FROM p GROUP BY a, day) q',
	'SELECT count(*) FROM p WHERE id BETWEEN 1500 AND 2500',
	'SELECT x.id, y.a FROM p x JOIN p y ON x.id = y.id + 1 WHERE y.a = 7',
	'SELECT id FROM p ORDER BY c DESC, id LIMIT 7',
	'SELECT id + a AS s FROM p WHERE d IS NULL']) q $$;

-- Columns in other places: dropped ones before them, in one leaf. Leaves of leaves, and a default that is empty.
CREATE TABLE p (id int, a int, b int8, c float8, t text, d int2, day date) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (1000) WITH (autovacuum_enabled = off);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (2000) PARTITION BY LIST (a);
CREATE TABLE p2a PARTITION OF p2 FOR VALUES IN (0, 1, 2, 3, 4) WITH (autovacuum_enabled = off);
CREATE TABLE p2b PARTITION OF p2 DEFAULT WITH (autovacuum_enabled = off);
CREATE TABLE p3 (gone text, id int, a int, gone2 int, b int8, c float8, t text, d int2, day date) WITH (autovacuum_enabled = off);
ALTER TABLE p3 DROP COLUMN gone, DROP COLUMN gone2;
ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (2000) TO (3000);
CREATE TABLE rest PARTITION OF p DEFAULT WITH (autovacuum_enabled = off);
INSERT INTO p SELECT i, i % 10, i * 3::int8, i / 4.0, 'x' || i, nullif(i % 50, 7), date '2000-01-01' + i % 30 FROM generate_series(1, 2999) i;
SET client_min_messages = warning;
SELECT gpuvm.import('p1'), gpuvm.import('p2a'), gpuvm.import('p2b'), gpuvm.import('p3');
RESET client_min_messages;
ANALYZE p;

-- A leaf is missing: each is scanned for itself.
EXPLAIN (COSTS OFF) SELECT count(*) FROM p WHERE a > 7;
SELECT * FROM gpuvm.why_not('SELECT count(*) FROM p WHERE a > 7');
-- Unless it is pruned.
EXPLAIN (COSTS OFF) SELECT count(*) FROM p WHERE a > 7 AND id BETWEEN 5 AND 2500;
SET client_min_messages = warning;
SELECT gpuvm.import('rest');
RESET client_min_messages;
EXPLAIN (COSTS OFF) SELECT count(*) FROM p WHERE a > 7;
EXPLAIN (COSTS OFF) SELECT id, b FROM p WHERE a > 7 AND id > 1200;
EXPLAIN (COSTS OFF) SELECT id + 1 FROM p WHERE a > 7 AND id < 1500 ORDER BY id LIMIT 3;
EXPLAIN (COSTS OFF) SELECT array_agg(c) FROM p WHERE id < 1500;
SELECT * FROM all_compared();
SELECT analyzed('SELECT id FROM p WHERE a = 1 AND id < 20');

-- Changed blocks in some of the leaves; rows that move from one to another.
UPDATE p SET a = a + 10 WHERE id % 500 = 5;
DELETE FROM p WHERE id % 777 = 0;
INSERT INTO p VALUES (5000, 3, 1, 1, 'new', NULL, '2001-01-01'), (-1, 3, 1, -1, 'new', 1, NULL);
UPDATE p SET id = id + 1000 WHERE id BETWEEN 990 AND 995;
SELECT * FROM all_compared();
SELECT analyzed('SELECT count(*), max(b) FROM p WHERE a < 100');
BEGIN;
DELETE FROM p WHERE a = 3;
SELECT * FROM all_compared();
ROLLBACK;
-- What is evaluated by PostgreSQL is evaluated with the partitioned table's columns.
SELECT compared('SELECT id, 60 / a AS q FROM p WHERE a <> 0 AND id > 2100');
SELECT id, 60 / (id - 2900) FROM p WHERE id > 2890;

-- Rows have their table and their place.
SELECT compared('SELECT o.id, o.x FROM (SELECT id, a * 2 AS x FROM p OFFSET 0) o WHERE o.x = 6');
BEGIN;
DECLARE c CURSOR FOR SELECT id, a FROM p WHERE b IN (21, 4521, 7521);
FETCH 1 FROM c;
UPDATE p SET a = 100 WHERE CURRENT OF c;
FETCH 1 FROM c;
DELETE FROM p WHERE CURRENT OF c;
FETCH 1 FROM c;
UPDATE p SET a = 101 WHERE CURRENT OF c;
SELECT tableoid::regclass, id, a FROM p WHERE id IN (7, 1507, 2507) ORDER BY id;
ROLLBACK;
SELECT tableoid::regclass, count(*) FROM p WHERE a = 3 GROUP BY 1 ORDER BY 1;
UPDATE p SET d = 1 WHERE id = 2000 RETURNING tableoid::regclass, id;
SELECT id FROM p WHERE id = 2001 FOR UPDATE;

-- Prepared: what is imported, attached, detached and dropped counts at once.
SET plan_cache_mode = force_generic_plan;
PREPARE within(int, int) AS SELECT count(*), sum(b) FROM p WHERE id > $1 AND id < $2;
PREPARE list(int, int) AS SELECT id FROM p WHERE a = 3 AND id > $1 AND id < $2 ORDER BY id;
\set vm 'SET gpuvm.require = ' :device '; EXECUTE within(1900, 4000); EXECUTE list(1990, 2020); RESET gpuvm.require'
\set pg 'SET gpuvm.enabled = off; EXECUTE within(1900, 4000); EXECUTE list(1990, 2020); RESET gpuvm.enabled'
EXPLAIN (COSTS OFF) EXECUTE list(1, 5000);
EXPLAIN (COSTS OFF) EXECUTE list(10, 20);
:vm;
:pg;
CREATE TABLE p4 (LIKE p);
INSERT INTO p4 SELECT i, 3, i, i, NULL, 1, NULL FROM generate_series(3000, 3099) i;
VACUUM p4;
SELECT gpuvm.import('p4');
:vm;
ALTER TABLE p ATTACH PARTITION p4 FOR VALUES FROM (3000) TO (4000);
EXPLAIN (COSTS OFF) EXECUTE list(1, 5000);
:vm;
:pg;
ALTER TABLE p DETACH PARTITION p2;
:vm;
:pg;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (1000) TO (2000);
DROP TABLE p4;
:vm;
:pg;
-- Under a running transaction's plan a leaf's tablets go, or come with other columns: PostgreSQL answers, and says so.
BEGIN;
SAVEPOINT s;
TRUNCATE p1;
SELECT count(*) FROM p;
SELECT analyzed('SELECT max(a) FROM p WHERE id < 1500');
ROLLBACK TO s;
SELECT count(*) FROM p;
COMMIT;
ALTER TABLE p ADD COLUMN e int DEFAULT 5;
SELECT sum(e), count(*) FROM p;
SET client_min_messages = warning;
SELECT gpuvm.import('p1'), gpuvm.import('p2a'), gpuvm.import('p2b'), gpuvm.import('p3');
SELECT gpuvm.import('rest', ARRAY['a', 'id']);
RESET client_min_messages;
SELECT * FROM gpuvm.why_not('SELECT sum(e), count(*) FROM p');
SELECT sum(e), count(*) FROM p;
SET client_min_messages = warning;
SELECT gpuvm.import('rest');
RESET client_min_messages;
:vm;
SELECT compared('SELECT sum(e), count(*) FROM p');
RESET plan_cache_mode;

-- Other ways to use the leaves.
SET enable_partitionwise_aggregate = on;
SET enable_partitionwise_join = on;
SELECT * FROM all_compared();
RESET enable_partitionwise_join;

-- Where a partition is not imported, PostgreSQL's groups of it stand beside ours of the others.
CREATE TABLE halves (half int, k int, v numeric(8,2), t text) PARTITION BY LIST (half);
CREATE TABLE halves_0 (t text, v numeric(8,2), half int, k int);
ALTER TABLE halves ATTACH PARTITION halves_0 FOR VALUES IN (0);
CREATE TABLE halves_1 PARTITION OF halves FOR VALUES IN (1, NULL);
INSERT INTO halves SELECT nullif(i % 2, i % 8), i % 11, nullif(i % 100, 5) / 4.0, 't' || i % 3 FROM generate_series(1, 3000) i;
VACUUM ANALYZE halves;
SELECT gpuvm.import('halves_0');
EXPLAIN (COSTS OFF) SELECT k + 1, half, count(*), sum(v) FROM halves WHERE v > 1 GROUP BY half, k + 1 HAVING sum(v) > 300;
SELECT compared('SELECT k + 1, half, count(*), sum(v), avg(v) FROM halves WHERE v > 1 GROUP BY half, k + 1 HAVING sum(v) > 300');
SELECT compared('SELECT half, count(DISTINCT k), max(t) FILTER (WHERE k < 4) FROM halves GROUP BY half');
SELECT compared('SELECT half, k, t, sum(v) FROM halves GROUP BY half, k, t ORDER BY sum(v) DESC, half, k, t LIMIT 5');
SELECT compared('SELECT k, sum(v) FROM halves GROUP BY k');
BEGIN;
UPDATE halves SET v = v + 1 WHERE k = 3;
SELECT compared('SELECT half, k, sum(v) FROM halves GROUP BY half, k');
ROLLBACK;
DROP TABLE halves;
RESET enable_partitionwise_aggregate;
CREATE INDEX ON p (id);
SELECT min(id), max(id) FROM p WHERE a = 3;
EXPLAIN (COSTS OFF) SELECT count(*) FROM p WHERE false;
SELECT * FROM gpuvm.why_not('UPDATE p SET a = 1 WHERE id = 5');
SELECT compared('SELECT a, count(*) FROM p GROUP BY ROLLUP (a)');
SELECT compared('SELECT id FROM p WHERE a = 5 UNION ALL SELECT id FROM p2a WHERE a = 4 UNION ALL SELECT id FROM p2 WHERE a = 4');
SELECT compared('SELECT q.a, (SELECT count(*) FROM p WHERE p.a = q.a AND p.id < 2100) FROM generate_series(0, 12) q (a)');

-- Policies and privileges are the partitioned table's.
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_gpuvm_reader;
RESET client_min_messages;
CREATE ROLE regress_gpuvm_reader;
GRANT USAGE ON SCHEMA partitions TO regress_gpuvm_reader;
GRANT SELECT (id, a) ON p TO regress_gpuvm_reader;
GRANT EXECUTE ON FUNCTION analyzed TO regress_gpuvm_reader;
ALTER TABLE p ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON p USING (id <= 1005);
SET ROLE regress_gpuvm_reader;
SET gpuvm.require = :device;
SELECT count(*), max(id) FROM p WHERE a < 100;
SELECT id FROM p WHERE id > 1000 ORDER BY id;
SELECT sum(b) FROM p;
SELECT count(*) FROM p1;
RESET gpuvm.require;
SELECT analyzed('SELECT count(*) FROM p WHERE a < 100');
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA partitions CASCADE;
DROP ROLE regress_gpuvm_reader;
