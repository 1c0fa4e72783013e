-- How many groups? Programs that hand out nothing but the number of their groups.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA group_count;
SET search_path = group_count;

CREATE TABLE t (id int NOT NULL, few int, many int, l int8, s int2, b bool, f float8, g float4, day date) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, nullif(i % 52, 7), i * 7919 % 20011, CASE WHEN i % 3 <> 0 THEN i / 2 * 4000000000 END, i % 5,
	CASE WHEN i % 3 < 2 THEN i % 3 = 0 END, CASE i % 4 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN '-0' ELSE i % 100 END,
	CASE WHEN i % 2 = 0 THEN i % 17 END, date '2020-01-01' + i % 400
FROM generate_series(1, 30000) i;
CREATE TABLE none (k int, v int);
CREATE TABLE nulls (k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO nulls SELECT NULL, i FROM generate_series(1, 100) i;
CREATE TABLE plain AS SELECT id, few FROM t WHERE id <= 100;
SET client_min_messages = warning;
SELECT gpuvm.import('t'), gpuvm.import('none'), gpuvm.import('nulls');
RESET client_min_messages;
ANALYZE t, none, nulls, plain;
SET gpuvm.force = on;

EXPLAIN (COSTS OFF) SELECT count(*) FROM (SELECT few, count(*), sum(id) FROM t GROUP BY few) s;
EXPLAIN (COSTS OFF) SELECT count(*) + 1 AS more FROM (SELECT few, b FROM t WHERE id > 5 GROUP BY few, b) s HAVING count(*) > 3;

-- Each answer is PostgreSQL's.
CREATE TABLE queries (n serial, query text);
INSERT INTO queries (query) VALUES
	('SELECT count(*) FROM (SELECT few, count(*), sum(id) FROM t GROUP BY few) s'),
	('SELECT count(*) FROM (SELECT many FROM t GROUP BY many) s'),
	('SELECT count(*) FROM (SELECT l, max(id) FROM t GROUP BY l) s'),
	('SELECT count(*) FROM (SELECT few, b, s FROM t GROUP BY few, b, s) s'),
	('SELECT count(*) FROM (SELECT f FROM t GROUP BY f) s'),
	('SELECT count(*) FROM (SELECT g, day FROM t GROUP BY g, day) s'),
	('SELECT count(*) FROM (SELECT id % 10 AS k, avg(f) FROM t WHERE id BETWEEN 100 AND 104 GROUP BY 1) s'),
	('SELECT count(*) FROM (SELECT few FROM t WHERE id < 0 GROUP BY few) s'),
	('SELECT count(*) FROM (SELECT few FROM t WHERE id < 0 AND many > 30 GROUP BY few, l) s'),
	('SELECT count(*) FROM (SELECT k FROM none GROUP BY k) s'),
	('SELECT count(*) FROM (SELECT k FROM nulls GROUP BY k) s'),
	('SELECT count(*) FROM (SELECT k FROM nulls GROUP BY k, v) s'),
	('SELECT count(*), count(*) * 2 AS twice FROM (SELECT few FROM t GROUP BY few) s'),
	('SELECT 1 AS one FROM (SELECT few FROM t GROUP BY few) s HAVING count(*) > 1000'),
	('SELECT count(*) + 5 AS c FROM (SELECT few FROM t GROUP BY few) s HAVING count(*) BETWEEN 2 AND 1000'),
	('SELECT count(*) FROM (SELECT few FROM t GROUP BY few) s LIMIT 1'),
	('SELECT p.id, (SELECT count(*) FROM (SELECT few FROM t WHERE t.id < p.id GROUP BY few) s) FROM plain p WHERE p.id % 20 = 3'),
	('SELECT a.count, b.count FROM (SELECT count(*) FROM (SELECT few FROM t GROUP BY few) s) a,
		(SELECT count(*) FROM (SELECT b FROM t GROUP BY b) s) b'),
	('WITH s AS (SELECT few FROM t GROUP BY few) SELECT count(*) FROM s'),
	('SELECT count(*) FROM (SELECT count(*) FROM (SELECT few FROM t GROUP BY few) s) t');
CREATE FUNCTION answers(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT string_agg(q::text, '' '' ORDER BY q::text) FROM (%s) q', query) INTO result;
	RETURN result;
END $$;
SET gpuvm.enabled = off;
CREATE TABLE expected AS SELECT n, answers(query) AS answer FROM queries;
RESET gpuvm.enabled;
SET gpuvm.require = :device;
SELECT n, answers(query) AS answer FROM queries ORDER BY n;
SELECT q.query, answers(q.query), e.answer FROM queries q JOIN expected e USING (n) WHERE answers(q.query) IS DISTINCT FROM e.answer;
PREPARE above(int) AS SELECT count(*) FROM (SELECT few FROM t WHERE id > $1 GROUP BY few) s;
SET plan_cache_mode = force_generic_plan;
EXECUTE above(29990);
EXECUTE above(30000);
EXECUTE above(NULL);
RESET plan_cache_mode;
RESET gpuvm.require;

-- Only the number of groups may be asked for, and each group must count; PostgreSQL counts the others.
CREATE FUNCTION counts_groups(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line LIKE '%VM Result: number of groups%' THEN
			RETURN true;
		END IF;
	END LOOP;
	RETURN false;
END $$;
SELECT counts_groups(query), query FROM (VALUES
	('SELECT count(*) FROM (SELECT few FROM t GROUP BY few) s'),
	('SELECT count(*) FILTER (WHERE few > 3) FROM (SELECT few FROM t GROUP BY few) s'),
	('SELECT count(few) FROM (SELECT few FROM t GROUP BY few) s'),
	('SELECT count(*), max(few) FROM (SELECT few FROM t GROUP BY few) s'),
	('SELECT few % 2, count(*) FROM (SELECT few FROM t GROUP BY few) s GROUP BY 1'),
	('SELECT count(*) FROM (SELECT few FROM t GROUP BY few HAVING count(*) > 576) s'),
	('SELECT count(*) FROM (SELECT few, count(*) AS n FROM t GROUP BY few) s WHERE n > 576'),
	('SELECT count(*) FROM (SELECT few FROM t GROUP BY few LIMIT 3) s'),
	('SELECT count(*) FROM (SELECT few FROM t GROUP BY few ORDER BY few OFFSET 50) s'),
	('SELECT count(*) FROM (SELECT few, random() < 2 FROM t GROUP BY few) s'),
	('SELECT count(*) FROM (SELECT generate_series(1, 3), few FROM t GROUP BY few) s'),
	('SELECT count(*) FROM (SELECT few FROM t GROUP BY few UNION ALL SELECT 1) s'),
	('SELECT count(*) FROM (SELECT few FROM t GROUP BY ROLLUP (few)) s'),
	('SELECT count(*) FROM (SELECT few FROM t GROUP BY few) s JOIN plain p USING (few)'),
	('SELECT count(*) FROM (SELECT count(*) FROM t) s'),
	('SELECT count(*) FROM (SELECT few FROM plain GROUP BY few) s')) AS q (query);
SELECT count(*) FROM (SELECT few FROM t GROUP BY few HAVING count(*) > 576) s;
SELECT count(*) FROM (SELECT few FROM t GROUP BY few LIMIT 3) s;
SELECT count(*) FROM (SELECT few, random() < 2 FROM t GROUP BY few) s;
-- A key that raises raises; which of -0 and 0 stands for both is PostgreSQL's to say, and a changed table its to read.
SELECT count(*) FROM (SELECT 10 / (id - 7) FROM t GROUP BY 1) s;
SELECT count(*) FROM (SELECT CASE WHEN f = 0 AND id % 8 = 1 THEN 0 ELSE f END FROM t GROUP BY 1) s;
SELECT count(*) FROM (SELECT f FROM t GROUP BY f) s;
BEGIN;
INSERT INTO t (id, few) VALUES (0, 1000);
SELECT count(*) FROM (SELECT few FROM t GROUP BY few) s;
ROLLBACK;

SET client_min_messages = warning;
DROP SCHEMA group_count CASCADE;
