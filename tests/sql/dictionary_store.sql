-- Dictionaries: which values become codes, and what becomes of a dictionary between its import and its release.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA dictionary_store;
SET search_path = dictionary_store;
SET gpuvm.force = on;
SET timezone = 'UTC';

\set ECHO none
\i tests/sql/include/ask_who.sql
\set ECHO all
CREATE VIEW imported AS
SELECT relation, cardinality(columns) AS columns, rows, state FROM gpuvm.tables ORDER BY relation::text COLLATE "C";
CREATE VIEW memory AS SELECT memory_cached AS bytes FROM gpuvm.devices WHERE index = 0;
-- Before this session has run any query: what queries get, it keeps.
SELECT bytes AS before FROM memory \gset

-- Every type that is stored so; nulls, empty values, and values that are nearly equal.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN word AS text CHECK (VALUE <> 'never');
CREATE TABLE types (id int, t text, v varchar(20), c char(5), n name, ch "char", u uuid, b bytea, e mood, w word, i interval, z timetz,
	bits bit(9), varbits bit varying, j json, jb jsonb, ip inet, net cidr, m macaddr, m8 macaddr8, ints int[], words text[])
	WITH (autovacuum_enabled = off);
INSERT INTO types SELECT i, 'text ' || i % 50, repeat('x', i % 21), chr(97 + i % 26), 'name' || i % 9, chr(65 + i % 26)::"char",
	md5((i % 30)::text)::uuid, decode(md5((i % 40)::text), 'hex'), (ARRAY['sad', 'ok', 'happy'])[1 + i % 3]::mood, 'w' || i % 11,
	make_interval(months => i % 5, days => i % 7, secs => i % 3), '12:00:00+01'::timetz + i % 10 * interval '1 hour', (i % 20)::bit(9),
	(i % 20)::bit(8)::varbit, json_build_object('k', i % 12), jsonb_build_object('k', i % 12), inet '10.0.0.0/8' + i % 25, set_masklen(inet '10.0.0.0', i % 9 + 8)::cidr,
	('08:00:2b:01:02:0' || i % 10)::macaddr, ('08:00:2b:01:02:03:04:0' || i % 10)::macaddr8, ARRAY[i % 4, NULL, i % 3], ARRAY['a' || i % 6, NULL, '']
	FROM generate_series(1, 3000) i;
INSERT INTO types (id) SELECT i FROM generate_series(3001, 3400) i;
INSERT INTO types (id, t, v, c, n, b, w, varbits, words) VALUES (3401, '', '', '', '', '', '', '', '{}'), (3402, ' ', ' ', ' ', ' ', '\x00', ' ', B'0', '{""}'),
	(3403, 'a', 'a', 'a', 'a', '\x0000', 'a', B'00', '{NULL}'), (3404, 'a ', 'a ', 'a ', 'a ', '\x000000', 'a ', B'000', '{{1},{2}}'),
	(3405, 'ä', 'ä', 'ä', 'ä', '\xff', 'ä', B'1', '{ä}'), (3406, 'ä', 'ä', 'ä', 'ä', '\xffff', 'ä', B'11', '{ä}');
SELECT gpuvm.import('types');
SELECT * FROM imported;
SELECT "column", sum(rows) AS rows, sum(nulls) AS nulls, min(type) AS type, count(min) AS bounds FROM gpuvm.tablets
	WHERE relation = 'types'::regclass AND "column" <> 'id' GROUP BY "column" ORDER BY "column" COLLATE "C";
SELECT ask('SELECT * FROM types WHERE id > 0');
SELECT ask('SELECT * FROM types WHERE id > 3390');
SELECT ask('SELECT count(*), count(t), count(c), count(e), count(i), count(words) FROM types WHERE id > 5');
SELECT ask('SELECT count(*) FROM types WHERE t IS NULL'), ask('SELECT id, v, e, u FROM types WHERE u IS NOT NULL');
SELECT ask('SELECT t, count(*) FROM types GROUP BY t'), ask('SELECT e, u, count(*), sum(id) FROM types GROUP BY e, u');
SELECT ask('SELECT id FROM types WHERE t = ''text 7'''), ask('SELECT count(*) FROM types WHERE b = ''\x0000''');

-- Columns that older tuples lack.
ALTER TABLE types ADD COLUMN late text DEFAULT 'a default', ADD COLUMN none text, ADD COLUMN late_char "char" DEFAULT 'q';
INSERT INTO types (id, late) VALUES (3500, 'its own');
SELECT gpuvm.import('types');
SELECT ask('SELECT id, late, none, late_char FROM types WHERE id > 0'), ask('SELECT late, count(*) FROM types GROUP BY late');
SELECT gpuvm.release('types');

-- TOASTed and compressed values: one value has one code, however it is stored.
CREATE TABLE toasted (id int, way text, v text, b bytea) WITH (autovacuum_enabled = off);
ALTER TABLE toasted ALTER v SET STORAGE EXTENDED, ALTER b SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT i, 'compressed', repeat('abc' || i % 3, 1900), decode(repeat(md5((i % 3)::text), 240), 'hex') FROM generate_series(1, 50) i;
ALTER TABLE toasted ALTER v SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT i, 'external', repeat('abc' || i % 3, 1900), decode(repeat(md5((i % 3)::text), 240), 'hex') FROM generate_series(51, 100) i;
ALTER TABLE toasted ALTER v SET STORAGE PLAIN;
INSERT INTO toasted SELECT i, 'plain', repeat('abc' || i % 3, 1900), NULL FROM generate_series(101, 150) i;
INSERT INTO toasted SELECT i, 'short', repeat('abc', i % 20), repeat('abc', i % 50)::bytea FROM generate_series(151, 250) i;
ALTER TABLE toasted ALTER v SET STORAGE EXTENDED;
INSERT INTO toasted SELECT i, 'limit', repeat('x', 8188), NULL FROM generate_series(251, 252) i;
INSERT INTO toasted SELECT i, 'incompressible', (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 250) j), NULL FROM generate_series(253, 256) i;
SELECT way, bool_or(pg_column_size(v) < octet_length(v)) AS smaller, count(DISTINCT v) FROM toasted GROUP BY way ORDER BY way COLLATE "C";
SELECT gpuvm.import('toasted');
SELECT ask('SELECT * FROM toasted WHERE id > 0'), ask('SELECT v, count(*), sum(id) FROM toasted GROUP BY v'), ask('SELECT b, count(*) FROM toasted GROUP BY b');
-- And read from the heap, for one query, and by refresh.
INSERT INTO toasted SELECT 1000 + id, way, v, b FROM toasted WHERE id % 10 = 1;
INSERT INTO toasted VALUES (2000, 'new', repeat('new', 2000), repeat('newer', 1000)::bytea), (2001, 'new', repeat('new', 2000), '');
SELECT ask('SELECT * FROM toasted WHERE id > 0'), ask('SELECT v, count(*), sum(id) FROM toasted GROUP BY v'), ask('SELECT b, count(*) FROM toasted GROUP BY b');
SELECT gpuvm.refresh('toasted') > 0 AS some;
SELECT * FROM imported;
SELECT ask('SELECT * FROM toasted WHERE id > 0'), ask('SELECT v, count(*), sum(id) FROM toasted GROUP BY v'), ask('SELECT b, count(*) FROM toasted GROUP BY b');

-- One value that is too long: refresh leaves its block to be read, an import stores the column value by value.
INSERT INTO toasted VALUES (3000, 'long', repeat('x', 8189), NULL);
SELECT ask('SELECT id, v FROM toasted WHERE id > 0');
SELECT ask('SELECT id, way, b FROM toasted WHERE id > 0');
-- It is not read again as long as it may be the same.
BEGIN;
SELECT pg_stat_get_xact_blocks_fetched('toasted'::regclass) AS before_first \gset
SELECT gpuvm.refresh('toasted') > 0 AS some;
SELECT pg_stat_get_xact_blocks_fetched('toasted'::regclass) AS after_first \gset
SELECT gpuvm.refresh('toasted') > 0 AS some;
SELECT pg_stat_get_xact_blocks_fetched('toasted'::regclass) - :after_first < :after_first - :before_first AS fewer;
COMMIT;
SELECT rows, state, changed_blocks FROM gpuvm.tables WHERE relation = 'toasted'::regclass;
SELECT ask('SELECT id, v FROM toasted WHERE id > 0');
SELECT ask('SELECT id, way, b FROM toasted WHERE id > 0');
UPDATE toasted SET v = repeat('y', 1000000) WHERE id = 3000;
SELECT gpuvm.import('toasted');
SELECT columns FROM gpuvm.tables WHERE relation = 'toasted'::regclass;
SELECT ask('SELECT id, v FROM toasted WHERE id > 0');
SELECT ask('SELECT id, way, b FROM toasted WHERE id > 0');
INSERT INTO toasted VALUES (4000, 'later', 'short', NULL);
SELECT gpuvm.refresh('toasted') > 0 AS some;
SELECT columns FROM gpuvm.tables WHERE relation = 'toasted'::regclass;
SELECT ask('SELECT id, way, b FROM toasted WHERE id > 0');
DELETE FROM toasted WHERE id = 3000;
SELECT gpuvm.import('toasted');
SELECT columns FROM gpuvm.tables WHERE relation = 'toasted'::regclass;
SELECT ask('SELECT id, v FROM toasted WHERE id > 0');
DROP TABLE toasted;

-- New values: a longer dictionary of the same family, as often as it takes.
CREATE TABLE grows (id int, a text, b varchar(40)) WITH (autovacuum_enabled = off);
SELECT gpuvm.import('grows');
SELECT ask('SELECT a, count(*) FROM grows GROUP BY a'), ask('SELECT id, a, b FROM grows WHERE id > 0');
INSERT INTO grows SELECT i, NULL, NULL FROM generate_series(1, 100) i;
SELECT gpuvm.refresh('grows') > 0 AS some;
SELECT ask('SELECT a, count(*) FROM grows GROUP BY a'), ask('SELECT id, a, b FROM grows WHERE id > 0');
INSERT INTO grows SELECT i, 'value ' || i % 700, 'b' FROM generate_series(101, 3000) i;
SELECT ask('SELECT a, count(*) FROM grows GROUP BY a'), ask('SELECT id, a, b FROM grows WHERE id > 0');
SELECT gpuvm.refresh('grows') > 0 AS some;
SELECT ask('SELECT a, count(*) FROM grows GROUP BY a'), ask('SELECT id, a, b FROM grows WHERE id > 0');
INSERT INTO grows SELECT i, 'value ' || i, 'c' FROM generate_series(3001, 20000) i;
UPDATE grows SET a = upper(a) WHERE id % 1000 = 0;
DELETE FROM grows WHERE id % 1000 = 1;
SELECT ask('SELECT a, b, count(*) FROM grows GROUP BY a, b'), ask('SELECT id, a, b FROM grows WHERE id > 0');
SELECT gpuvm.refresh('grows') > 0 AS some;
SELECT rows, state FROM imported;
SELECT ask('SELECT a, b, count(*) FROM grows GROUP BY a, b'), ask('SELECT id, a, b FROM grows WHERE id > 0');
SELECT gpuvm.release('grows');

-- Too many values: known from the statistics, or found.
ALTER TABLE grows ALTER a SET (n_distinct = 2000000);
ANALYZE grows;
SELECT gpuvm.import('grows');
SELECT ask('SELECT id, b FROM grows WHERE id > 0');
SELECT ask('SELECT id, a FROM grows WHERE id > 0');
CREATE TABLE many (id int, t text, few text) WITH (autovacuum_enabled = off);
INSERT INTO many SELECT i, 'v' || i, 'v' || i % 10 FROM generate_series(1, 1200000) i;
SELECT gpuvm.import('many');
SELECT columns FROM gpuvm.tables WHERE relation = 'many'::regclass;
SELECT ask('SELECT few, count(*), sum(id) FROM many GROUP BY few');
-- Too large together: a refresh that cannot add to the dictionary makes another one, of what there is now.
CREATE TABLE large (id int, t text) WITH (autovacuum_enabled = off);
ALTER TABLE large ALTER t SET STORAGE PLAIN;
INSERT INTO large SELECT i, i || repeat('x', 7900) FROM generate_series(1, 5000) i;
SELECT gpuvm.import('large');
UPDATE large SET t = 'new' || t;
SELECT gpuvm.refresh('large');
SELECT columns, rows, state FROM gpuvm.tables WHERE relation = 'large'::regclass;
SELECT ask('SELECT id, t FROM large WHERE id % 100 = 0');
INSERT INTO large SELECT i, i || repeat('x', 7900) FROM generate_series(5001, 8500) i;
SELECT ask('SELECT id, t FROM large WHERE id % 100 = 0');
SELECT gpuvm.refresh('large');
SELECT columns, rows, state FROM gpuvm.tables WHERE relation = 'large'::regclass;
DROP TABLE large, grows;

-- Several processes fill one dictionary: each value has one code.
SELECT gpuvm.release('many');
CREATE TABLE wide (id int, a text, b text, pad text) WITH (autovacuum_enabled = off, fillfactor = 10);
ALTER TABLE wide ALTER pad SET STORAGE PLAIN;
INSERT INTO wide SELECT i, 'a' || i % 1000, 'b' || i / 3, CASE WHEN i % 2 = 0 THEN repeat('p', 1200) END FROM generate_series(1, 30000) i;
SELECT pg_relation_size('wide') / 8192 >= 8192 AS large_enough;
SET max_parallel_maintenance_workers = 2;
SELECT gpuvm.import('wide');
SELECT ask('SELECT a, count(*), sum(id) FROM wide GROUP BY a'), ask('SELECT b, count(*), sum(id) FROM wide GROUP BY b'), ask('SELECT id, a, b, pad FROM wide WHERE id > 0');
SELECT gpuvm.import('wide');
SELECT ask('SELECT a, count(*), sum(id) FROM wide GROUP BY a'), ask('SELECT b, count(*), sum(id) FROM wide GROUP BY b'), ask('SELECT id, a, b, pad FROM wide WHERE id > 0');
RESET max_parallel_maintenance_workers;
SELECT gpuvm.release('wide');

-- All of it is free again, and what an import had that did not end, whenever it ended.
\c -
SET search_path = dictionary_store;
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
-- What importing makes a session hold, it holds.
SELECT gpuvm.import('wide', ARRAY['id']);
SELECT gpuvm.release('wide');
SELECT bytes AS before FROM memory \gset
BEGIN;
SELECT gpuvm.import('wide');
ROLLBACK;
CALL expect_free(:before);
BEGIN;
SAVEPOINT s;
SELECT gpuvm.import('wide', ARRAY['id', 'a']);
ROLLBACK TO s;
CALL expect_free(:before);
COMMIT;
SET statement_timeout = '20ms';
SELECT gpuvm.import('many', vacuum => false);
RESET statement_timeout;
CALL expect_free(:before);
-- A dictionary goes with the last version that has it.
SELECT gpuvm.import('types');
SELECT bytes AS imported FROM memory \gset
INSERT INTO types (id, late) VALUES (3600, 'newer');
SELECT gpuvm.refresh('types') > 0 AS some;
-- (a program that found the row would leave buffers with the session)
SET gpuvm.enabled = off;
DELETE FROM types WHERE id = 3600;
RESET gpuvm.enabled;
SELECT gpuvm.refresh('types') > 0 AS some;
SELECT gpuvm.import('types');
CALL expect_free(:imported);
BEGIN;
SELECT gpuvm.import('types');
SELECT gpuvm.import('types', ARRAY['t', 'u']);
SELECT gpuvm.release('types');
COMMIT;
CALL expect_free(:before);
SELECT * FROM imported;

SET client_min_messages = warning;
DROP SCHEMA dictionary_store CASCADE;
