-- Columns that are stored value by value: which become so, and what becomes of the values between an import and the release.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA variable_store;
SET search_path = variable_store;
SET gpuvm.force = on;
SET timezone = 'UTC';

\set ECHO none
\i tests/sql/include/ask_who.sql
\i tests/sql/include/vary.sql
\set ECHO all
CREATE VIEW imported AS
SELECT relation, columns, rows, state, blocks - served_blocks AS left FROM gpuvm.tables WHERE relation::text NOT LIKE '%.%' ORDER BY relation::text COLLATE "C";
CREATE VIEW memory AS SELECT memory_cached AS bytes FROM gpuvm.devices WHERE index = 0;
SELECT bytes AS before FROM memory \gset

-- Values of every length and place: null, empty, headers of one byte and of four, compressed, in a TOAST table, 1 MB; of types that have another form, and none.
CREATE TYPE pair AS (a int, b text);
CREATE TABLE kinds (id int, t text, e text, m text, v varchar(400), c char(300), n name, b bytea, u uuid, mac macaddr, i interval, num numeric, j json, jb jsonb, arr text[], ip inet,
	p point, r int8range, row pair, box box, vec tsvector, q tsquery, many int[], small text) WITH (autovacuum_enabled = off);
ALTER TABLE kinds ALTER e SET STORAGE EXTERNAL, ALTER m SET STORAGE MAIN;
CREATE FUNCTION fill(first int, last int) RETURNS void LANGUAGE sql AS $$
INSERT INTO kinds SELECT k, CASE WHEN k % 7 > 0 THEN repeat(chr(97 + k % 26), k % 300) END, CASE k % 50 WHEN 0 THEN repeat(md5(k::text), 100) WHEN 1 THEN NULL ELSE '' END,
	CASE WHEN k % 40 = 0 THEN repeat(md5(k::text), 60) ELSE 'm' || k END, repeat('ä€', k % 60), repeat('日', k % 100), 'name' || k,
	CASE WHEN k % 60 = 0 THEN decode(repeat(md5(k::text), 400), 'hex') ELSE decode(md5(k::text), 'hex') END, md5(k::text)::uuid, ('08:00:2b:00:' || lpad(to_hex(k / 256), 2, '0') || ':' || lpad(to_hex(k % 256), 2, '0'))::macaddr,
	make_interval(days => k), CASE WHEN k % 3 = 0 THEN 'NaN' WHEN k % 3 = 1 THEN k / 7.0 ELSE 10::numeric ^ (k % 90) END, json_build_object('k', k, 'x', repeat('y', k % 200)), jsonb_build_object('k', k, 'x', repeat('y', k % 200)),
	ARRAY['a' || k, NULL, repeat('z', k % 150)], inet '10.0.0.0' + k, point(k, -k), int8range(k, NULL), row(k, repeat('r', k % 130))::pair, box(point(k, k), point(0, 0)), to_tsvector('simple', 'a b' || k), to_tsquery('simple', 'a & b' || k),
	CASE WHEN k % 100 = 0 THEN (SELECT array_agg(x) FROM generate_series(1, 1500) x) ELSE ARRAY[k] END, 'few' || k % 3 FROM generate_series(first, last) k
$$;
SELECT fill(1, 3000);
INSERT INTO kinds (id, t) VALUES (3001, repeat('x', 126)), (3002, repeat('x', 127)), (3003, repeat('1MB ', 262144)), (3004, (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 32768) i)), (3005, ''), (3006, NULL);
SELECT vary('kinds', 't', 'e', 'm', 'v', 'c', 'n', 'b', 'u', 'mac', 'i', 'j', 'jb', 'arr', 'ip', 'many');
SELECT gpuvm.import('kinds');
SELECT * FROM imported;
SELECT "column", min(type) AS type, sum(rows) AS rows, sum(nulls) AS nulls, count(min) AS bounds FROM gpuvm.tablets WHERE relation = 'kinds'::regclass GROUP BY 1 ORDER BY 1;
SELECT ask('SELECT * FROM kinds WHERE id > 0'), ask('SELECT t FROM kinds'), ask('SELECT id, e, length(t) FROM kinds WHERE id > 2990'), ask('SELECT u, mac, i, p, box, n FROM kinds WHERE id % 10 = 3');
SELECT ask('SELECT count(t), count(e), count(num), count(p), count(row), count(*) FROM kinds'), ask('SELECT id FROM kinds WHERE t IS NULL AND q IS NOT NULL');

-- Columns that came later: rows without them have their default.
ALTER TABLE kinds ADD late text DEFAULT 'the default of a column that came later', ADD laterbox box DEFAULT '(1,2),(3,4)';
SELECT vary('kinds', 'late');
SELECT gpuvm.import('kinds');
SELECT ask('SELECT late, laterbox, id FROM kinds WHERE id > 0');

-- Rows of changed blocks are read for each query; refresh makes tablets of them, and of what older ones have.
SELECT fill(4001, 4500);
UPDATE kinds SET t = repeat('new', id % 500), p = point(0, id), u = NULL WHERE id % 97 = 0;
DELETE FROM kinds WHERE id % 89 = 0;
INSERT INTO kinds (id, t) VALUES (5000, repeat('new MB', 170000)), (5001, '');
SELECT ask('SELECT * FROM kinds WHERE id > 0'), ask('SELECT t FROM kinds'), ask('SELECT id, e, length(t) FROM kinds WHERE id > 2990'), ask('SELECT u, mac, i, p, box, n FROM kinds WHERE id % 10 = 3');
SELECT gpuvm.refresh('kinds') > 0 AS some;
SELECT * FROM imported;
SELECT ask('SELECT * FROM kinds WHERE id > 0'), ask('SELECT t FROM kinds'), ask('SELECT count(t), count(e), count(num), count(p), count(row), count(*) FROM kinds');
-- As often as it takes; a cursor keeps what it began with.
BEGIN;
DECLARE old CURSOR FOR SELECT id, right(t, 5) AS t, p, late FROM kinds WHERE id BETWEEN 4400 AND 4405;
FETCH 1 FROM old;
UPDATE kinds SET t = 'changed ' || id, late = NULL WHERE id > 4300;
SELECT ask('SELECT * FROM kinds WHERE id > 0');
FETCH ALL FROM old;
COMMIT;
SELECT gpuvm.refresh('kinds') > 0 AS some;
DELETE FROM kinds WHERE id % 2 = 0;
SELECT gpuvm.refresh('kinds') IS NOT NULL AS done;
VACUUM kinds;
SELECT ask('SELECT * FROM kinds WHERE id > 0');
SELECT gpuvm.refresh('kinds') > 0 AS some;
SELECT ask('SELECT * FROM kinds WHERE id > 0'), ask('SELECT t FROM kinds');
SELECT * FROM imported;

-- More than 1 MB: a query reads the block's rows and gives up, refresh leaves the block, an import leaves the column out.
INSERT INTO kinds (id, t, v) VALUES (6000, repeat('x', 1048577), 'v');
SELECT ask('SELECT id, v FROM kinds WHERE id > 0'), ask('SELECT id, t FROM kinds WHERE id > 0');
SELECT gpuvm.refresh('kinds') AS nothing;
SELECT * FROM imported;
SELECT ask('SELECT id, v FROM kinds WHERE id > 0'), ask('SELECT id, t FROM kinds WHERE id > 0');
SELECT gpuvm.import('kinds');
SELECT ask('SELECT id, v, p, late FROM kinds WHERE id > 0'), ask('SELECT id, t FROM kinds WHERE id > 0');
-- Left out, it stays so; the others are refreshed.
UPDATE kinds SET t = repeat('x', 1048576), v = 'w' WHERE id = 6000;
SELECT gpuvm.refresh('kinds') > 0 AS some;
SELECT ask('SELECT id, v, p, late FROM kinds WHERE id > 0'), ask('SELECT id, t FROM kinds WHERE id > 0');
SELECT gpuvm.import('kinds');
SELECT ask('SELECT id, v, p, late FROM kinds WHERE id > 0'), ask('SELECT id, t FROM kinds WHERE id > 0');
SELECT * FROM imported;

-- Of nothing: an empty table, nulls alone, values that come later.
CREATE TABLE none (id int, t text, p point) WITH (autovacuum_enabled = off);
SELECT vary('none', 't');
SELECT gpuvm.import('none');
SELECT ask('SELECT * FROM none');
INSERT INTO none SELECT i FROM generate_series(1, 10) i;
SELECT ask('SELECT * FROM none');
SELECT gpuvm.refresh('none');
SELECT ask('SELECT * FROM none WHERE p IS NULL'), ask('SELECT t, p FROM none');
INSERT INTO none VALUES (11, 't', '(1,2)');
SELECT ask('SELECT * FROM none WHERE p IS NULL'), ask('SELECT t, p FROM none');
SELECT gpuvm.refresh('none') > 0 AS some;
SELECT ask('SELECT * FROM none WHERE p IS NULL'), ask('SELECT t, p FROM none');
TRUNCATE none;
SELECT ask('SELECT t, p FROM none');

-- What the statistics do not tell is found when the values are copied, which begins anew: too many, too long ones, numerics that are none; of several columns.
CREATE TABLE many (id int, a text, b bytea, few text, n numeric, n2 numeric(10, 2), e "char") WITH (autovacuum_enabled = off);
INSERT INTO many SELECT i, 'a' || i, CASE WHEN i = 700000 THEN repeat('long', 3000)::bytea ELSE 'b' END, 'f' || i % 5, CASE WHEN i = 1100000 THEN 0.5 ELSE 1 END, CASE WHEN i = 3 THEN numeric 'NaN' ELSE i END, 'x' FROM generate_series(1, 1100000) i;
SELECT gpuvm.import('many');
SELECT "column", min(type) AS type, sum(rows) AS rows, count(min) > 0 AS bounds FROM gpuvm.tablets WHERE relation = 'many'::regclass GROUP BY 1 ORDER BY 1;
SELECT ask('SELECT * FROM many WHERE id % 1000 = 0'), ask('SELECT few, count(a), count(n) FROM many GROUP BY few'), ask('SELECT count(*) FROM many WHERE a = ''a77777'''), ask('SELECT n, n2 FROM many WHERE id < 10');
SELECT count(*), count(DISTINCT a), min(a), max(a), sum(length(a)) FROM (SELECT a FROM many OFFSET 0) s;
-- In all processes that copy.
CREATE TABLE wide (id int, t text, pad text) WITH (autovacuum_enabled = off, fillfactor = 10);
ALTER TABLE wide ALTER pad SET STORAGE PLAIN;
INSERT INTO wide SELECT i, CASE WHEN i = 29000 THEN repeat('t', 9000) ELSE 't' || i END, CASE WHEN i % 2 = 0 THEN repeat('p', 1200) || i END FROM generate_series(1, 30000) i;
SELECT pg_relation_size('wide') / 8192 >= 8192 AS large_enough;
SET max_parallel_maintenance_workers = 2;
SELECT gpuvm.import('wide');
SELECT "column", min(type) AS type, sum(rows) AS rows FROM gpuvm.tablets WHERE relation = 'wide'::regclass GROUP BY 1 ORDER BY 1;
SELECT ask('SELECT * FROM wide WHERE id > 0');
SELECT vary('wide', 't', 'pad');
SELECT gpuvm.import('wide');
SELECT ask('SELECT * FROM wide WHERE id > 0');
RESET max_parallel_maintenance_workers;

-- Leaves of a partitioned table with other forms of a column.
CREATE TABLE parts (k int, t text, u text) PARTITION BY RANGE (k);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM (0) TO (100) WITH (autovacuum_enabled = off);
CREATE TABLE parts_b PARTITION OF parts FOR VALUES FROM (100) TO (200) WITH (autovacuum_enabled = off);
INSERT INTO parts SELECT i % 200, 't' || i % 7, 'u' || i % 3 FROM generate_series(1, 2000) i;
SELECT vary('parts_b', 't');
SELECT gpuvm.import('parts');
SELECT relation, "column", min(type) AS type FROM gpuvm.tablets WHERE relation::text LIKE 'parts%' GROUP BY 1, 2 ORDER BY 1, 2;
SELECT ask('SELECT count(*), sum(k) FROM parts'), ask('SELECT u, count(*) FROM parts GROUP BY u'), ask('SELECT k, t FROM parts WHERE k < 90'), ask('SELECT k, t FROM parts WHERE k > 110');
SELECT ask('SELECT k, t FROM parts'), ask('SELECT count(*) FROM parts WHERE t = ''t3''');
SELECT vary('parts_a', 't');
SELECT gpuvm.import('parts');
SELECT ask('SELECT k, t FROM parts'), ask('SELECT count(*) FROM parts WHERE t = ''t3''');
INSERT INTO parts SELECT i % 200, 't' || i, 'u' FROM generate_series(1, 100) i;
SELECT ask('SELECT k, t FROM parts'), ask('SELECT count(*) FROM parts WHERE t = ''t3''');

-- All of it is free again, and what an import had that did not end.
SELECT count(gpuvm.release(relation)) FROM gpuvm.imports WHERE relation::regclass::text NOT LIKE '%.%';
\c -
SET search_path = variable_store;
CREATE PROCEDURE expect_free(bytes int8) LANGUAGE plpgsql AS $$
DECLARE
	used int8;
BEGIN
	-- the last session may not have ended
	FOR i IN 1 .. 200 LOOP
		SELECT m.bytes FROM memory m INTO used;
		EXIT WHEN used = expect_free.bytes;
		COMMIT;
		PERFORM pg_sleep(0.05);
	END LOOP;
	RAISE NOTICE '% bytes more are in use', used - bytes;
END $$;
CALL expect_free(:before);
SELECT gpuvm.import('wide', ARRAY['id']);
SELECT gpuvm.release('wide');
SELECT bytes AS before FROM memory \gset
BEGIN;
SELECT gpuvm.import('wide');
SELECT gpuvm.import('many');
ROLLBACK;
CALL expect_free(:before);
SET statement_timeout = '200ms';
SELECT gpuvm.import('many', vacuum => false);
RESET statement_timeout;
CALL expect_free(:before);

SET client_min_messages = warning;
DROP SCHEMA variable_store CASCADE;
