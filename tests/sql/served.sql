-- The planner knows how much tablets serve: what they do not is read from the heap, and costs what it takes there.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA served;
SET search_path = served;
-- The costs of the CPU's machine, also where there is a device; PostgreSQL's scans have two workers, whatever the size.
SET gpuvm.device = cpu;
SET work_mem = '4MB';
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 10;
SET jit = off;

-- Updates find room in their blocks, so that the share served is that of the rows that were left alone.
CREATE TABLE a (id int, k int, g int, v bigint) WITH (autovacuum_enabled = off, fillfactor = 45);
INSERT INTO a SELECT i, i * 7919 % 100003, i % 100, i % 12345 FROM generate_series(1, 100000) i;
CREATE TABLE b (LIKE a) WITH (autovacuum_enabled = off, fillfactor = 45);
INSERT INTO b SELECT * FROM a;
CREATE INDEX ON a (k);
SELECT gpuvm.import('a'), gpuvm.import('b');
VACUUM ANALYZE a, b;

-- Who has the plan, which has to run as planned, and whether the answer is the other's.
CREATE FUNCTION chosen(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
	who text;
	answers text[];
	answer text;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	who := CASE WHEN plan::text LIKE '%GpuVM%' THEN 'program' ELSE 'PostgreSQL' END;
	FOR i IN 0 .. 1 LOOP
		PERFORM set_config('gpuvm.enabled', (i = 1)::text, true),
			set_config('gpuvm.require', CASE WHEN i = 1 AND who = 'program' THEN 'cpu' ELSE 'any' END, true);
		EXECUTE 'SELECT string_agg(q::text, '';'' ORDER BY q::text) FROM (' || query || ') q' INTO answer;
		answers := answers || coalesce(answer, '');
	END LOOP;
	PERFORM set_config('gpuvm.require', 'any', true);
	RETURN who || CASE WHEN answers[1] = answers[2] THEN '' ELSE ', another answer' END;
END $$;
CREATE VIEW choices AS
SELECT (SELECT round(served::numeric, 2) FROM gpuvm.tables WHERE relation = 'a'::regclass) AS served,
	chosen('SELECT id, v FROM a WHERE g = 17') AS scan,
	chosen('SELECT * FROM a WHERE k < 4000') AS "index",
	chosen('SELECT g, sum(v) FROM a GROUP BY g') AS groups,
	chosen('SELECT a.id, b.v FROM a JOIN b ON a.k = b.k WHERE a.g < 50') AS "join",
	chosen('WITH x AS (SELECT k, sum(v) s FROM a GROUP BY k), y AS (SELECT k, max(v) m FROM b GROUP BY k)
SELECT count(*), sum(s + m) FROM x JOIN y USING (k)') AS stages;
SELECT * FROM choices;
CREATE FUNCTION cost(query text) RETURNS float LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' ->> 'Total Cost';
END $$;
SET gpuvm.force = on;
CREATE TABLE costs AS
SELECT query, cost(query), query LIKE 'WITH%' AS whole
FROM (VALUES ('SELECT sum(id), sum(v) FROM a'),
			 ('SELECT sum(id), sum(v), sum(id * v), sum(id * v + v), max(id - v), max(v - id), min(id + v) FROM a'),
			 ('WITH x AS (SELECT k, sum(v) s FROM a GROUP BY k), y AS (SELECT k, max(v) m FROM b GROUP BY k) SELECT count(*), sum(s + m) FROM x JOIN y USING (k)')) q(query);
RESET gpuvm.force;
UPDATE a SET v = v + 1 WHERE id <= 10000;
SELECT * FROM choices;
UPDATE a SET v = v + 1 WHERE id BETWEEN 10001 AND 50000;
UPDATE b SET v = v + 1 WHERE id <= 50000;
SELECT * FROM choices;
UPDATE a SET v = v + 1 WHERE id > 50000;
UPDATE b SET v = v + 1 WHERE id > 50000;
SELECT * FROM choices;
-- Rows that tablets do not serve any more are not computed with: of the same columns, it costs as much more whatever is computed.
SET gpuvm.force = on;
CREATE TABLE more AS SELECT *, cost(query) - cost AS delta FROM costs;
SELECT min(delta) > 1000 AS dearer, max(delta) - min(delta) < 1 AS equally FROM more WHERE NOT whole;
RESET gpuvm.force;
-- Stages are taken where they cost 0.8 of PostgreSQL's plan, but for what both read from the heap.
SELECT round(cost(query) - cost / 0.8 - delta) AS also FROM more WHERE whole;

-- Tablets of a file that is gone serve nothing.
VACUUM FULL b;
VACUUM b;
SELECT chosen('SELECT id, v FROM b WHERE g = 17');
-- The heap's blocks cost what its tablespace says.
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE served LOCATION '' WITH (seq_page_cost = 10);
CREATE TABLE slow (LIKE a) WITH (autovacuum_enabled = off, fillfactor = 45) TABLESPACE served;
INSERT INTO slow SELECT * FROM a;
SELECT gpuvm.import('slow');
VACUUM ANALYZE slow;
UPDATE slow SET v = v + 1;
SELECT chosen('SELECT id, v FROM slow WHERE g = 17');
DROP TABLE slow;
DROP TABLESPACE served;

-- The leaves of a partitioned table are one.
CREATE TABLE parts (LIKE a) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (50001) WITH (autovacuum_enabled = off, fillfactor = 45);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (50001) TO (100001) WITH (autovacuum_enabled = off, fillfactor = 45);
INSERT INTO parts SELECT * FROM a;
SELECT gpuvm.import('parts');
VACUUM ANALYZE parts;
SELECT chosen('SELECT id, v FROM parts WHERE g = 17');
UPDATE parts_2 SET v = v + 1;
SELECT chosen('SELECT id, v FROM parts WHERE g = 17'), chosen('SELECT id, v FROM parts WHERE id > 60000 AND g = 17');
UPDATE parts_1 SET v = v + 1;
SELECT chosen('SELECT id, v FROM parts WHERE g = 17');
-- How long their texts are is in their statistics.
CREATE TABLE texts (id int, t text) PARTITION BY RANGE (id);
CREATE TABLE texts_1 (gone int, id int, t text);
ALTER TABLE texts_1 DROP gone;
ALTER TABLE texts ATTACH PARTITION texts_1 FOR VALUES FROM (0) TO (10001);
CREATE TABLE texts_2 PARTITION OF texts FOR VALUES FROM (10001) TO (20001);
-- the long ones make the column variable
INSERT INTO texts SELECT i, repeat(i::text, CASE WHEN i % 10000 = 5 THEN 10000 ELSE 1 END) FROM generate_series(1, 20000) i;
SELECT gpuvm.import('texts');
VACUUM ANALYZE texts;
UPDATE texts SET t = t || 'x';
SELECT w.* FROM gpuvm.why_not('SELECT t FROM texts WHERE id % 1000 = 0') w WHERE w.reason LIKE '%memory%';
-- as if all were long
UPDATE pg_statistic SET stawidth = 20000 WHERE starelid = 'texts_1'::regclass AND staattnum = 3;
SELECT w.* FROM gpuvm.why_not('SELECT t FROM texts WHERE id % 1000 = 0') w WHERE w.reason LIKE '%memory%';

-- So it is said where a program is required.
SET gpuvm.require = cpu;
SELECT id, v FROM a WHERE g = 17;
RESET gpuvm.require;

-- A plan that is kept stays right; a refresh that brings much back has it made anew.
SET plan_cache_mode = force_generic_plan;
PREPARE sums(int) AS SELECT sum(v), count(*) FROM a WHERE g = $1;
CREATE FUNCTION kept() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) EXECUTE sums(17)' INTO plan;
	RETURN CASE WHEN plan::text LIKE '%GpuVM%' THEN 'program' ELSE 'PostgreSQL' END;
END $$;
SELECT kept();
EXECUTE sums(17);
VACUUM a;
-- whoever looks at the blocks first finds that they are not what tablets have
SET gpuvm.force = on;
SELECT sum(v), count(*) FROM a WHERE g = 17;
RESET gpuvm.force;
SELECT kept();
SELECT gpuvm.refresh('a');
SELECT kept();
EXECUTE sums(17);
UPDATE a SET v = v + 1;
SELECT kept();
EXECUTE sums(17);
-- One that brings back what is read in no time does not, however large a part it is: the plan has the costs of when it was made.
CREATE TABLE small (id int, v int) WITH (autovacuum_enabled = off);
INSERT INTO small SELECT i, i FROM generate_series(1, 10000) i;
SELECT gpuvm.import('small');
UPDATE small SET v = v + 1;
UPDATE a SET v = v + 1;
VACUUM a, small;
PREPARE small_sum AS SELECT sum(v) FROM small;
CREATE TABLE kept AS SELECT query, cost(query) FROM (VALUES ('EXECUTE small_sum'), ('EXECUTE sums(17)')) q(query);
SET cpu_tuple_cost = 1;
SELECT gpuvm.refresh('small') AS small, gpuvm.refresh('a') AS a;
SELECT query, cost(query) = cost AS kept FROM kept ORDER BY 1;
RESET cpu_tuple_cost;
RESET plan_cache_mode;

-- What is expected to take more than twice what may be is not begun with, wherever the rows would be read. Fewer columns fit.
CREATE TABLE wide (a bigint, b bigint, c bigint, d bigint, e bigint, f bigint, g bigint, h bigint) WITH (autovacuum_enabled = off);
INSERT INTO wide SELECT x, x, x, x, x, x, x, x % 100000000000 FROM generate_series(1, 700000) i, LATERAL (SELECT i * 10000000000 AS x) x;
SELECT gpuvm.import('wide');
VACUUM ANALYZE wide;
CREATE VIEW memory AS
SELECT chosen('SELECT h, sum(a + b + c + d + e + f + g) FROM wide GROUP BY h') AS "all", chosen('SELECT h, sum(a) FROM wide GROUP BY h') AS few;
SET max_parallel_workers_per_gather = 0;
-- old versions of rows lie in blocks that PostgreSQL takes to be as full as others, until ANALYZE
UPDATE wide SET h = 1 - h;
SELECT * FROM memory;
UPDATE wide SET h = 1 - h;
SELECT * FROM memory;
-- rows that were added do not
INSERT INTO wide SELECT * FROM wide;
SELECT * FROM memory;
CREATE VIEW reasons AS
SELECT kind, w.node, w.reason, w.hint
FROM (VALUES ('scan', 'SELECT * FROM wide WHERE a + b + c + d + e + f + g + h = 11'),
			 ('groups', 'SELECT h, sum(a + b + c + d + e + f + g) FROM wide GROUP BY h'),
			 ('join', 'SELECT count(*) FROM wide x JOIN wide y ON x.a = y.a AND x.b + x.c + x.d + x.e + x.f + x.g + x.h < y.h'),
			 ('stages', 'WITH s AS (SELECT h, sum(a + b + c + d + e + f + g) v FROM wide GROUP BY h) SELECT x.h, y.v FROM s x JOIN s y ON x.h = y.h + 1'),
			 ('groups of one column', 'SELECT h, sum(a) FROM wide GROUP BY h')) v(kind, query), gpuvm.why_not(query) w
WHERE w.reason LIKE '%memory%' ORDER BY 1, 2, 3;
SELECT * FROM reasons;
SET work_mem = '128MB';
SELECT * FROM memory;
SELECT * FROM reasons;

DROP SCHEMA served CASCADE;
