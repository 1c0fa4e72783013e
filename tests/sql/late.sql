-- Late materialisation: what the output has and tablets have not is fetched from the heap, for the rows that come out.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
-- What programs must run on: the device under test.
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA late;
SET search_path = late;
\set ECHO none
\i tests/sql/include/ask_many.sql
\set ECHO all

-- Columns that are not imported: documents, arrays, texts in TOAST, one with a default that no row has stored, one behind a dropped one.
CREATE TABLE docs (id int, k int, gone int, doc jsonb, tags text[], long text, f float8) WITH (autovacuum_enabled = off);
INSERT INTO docs SELECT i, i * 7 % 100, i, jsonb_build_object('n', i, 'a', repeat('x', i % 50)), ARRAY['t' || i % 5, 'u' || i % 7],
	CASE WHEN i % 500 = 3 THEN repeat(md5(i::text), 400) WHEN i % 10 > 0 THEN 'long ' || i END, i * 0.25 FROM generate_series(1, 10000) i;
ALTER TABLE docs ALTER long SET STORAGE EXTERNAL;
UPDATE docs SET long = long || '!' WHERE long IS NOT NULL AND id % 3 = 0;
ALTER TABLE docs DROP COLUMN gone;
ALTER TABLE docs ADD COLUMN added text DEFAULT 'as it was';
UPDATE docs SET added = 'set' WHERE id % 20 = 7;
VACUUM docs;
CREATE TABLE small (id int, k int, note text, doc json) WITH (autovacuum_enabled = off);
INSERT INTO small SELECT i, i % 25, 'note ' || i, json_build_array(i, 'two') FROM generate_series(1, 60) i;
VACUUM small;
CREATE TABLE parted (k int, v int8, w text, doc jsonb) PARTITION BY RANGE (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (50) WITH (autovacuum_enabled = off);
CREATE TABLE parted_2 (k int, v int8, x int, w text, doc jsonb) WITH (autovacuum_enabled = off);
ALTER TABLE parted_2 DROP COLUMN x;
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (50) TO (100);
INSERT INTO parted SELECT i % 100, i, 'w' || i, to_jsonb(i) FROM generate_series(1, 3000) i;
VACUUM parted_1, parted_2;
SET client_min_messages = warning;
SELECT gpuvm.import('docs', columns => '{id,k,f}'), gpuvm.import('small', columns => '{id,k}'), gpuvm.import('parted_1', columns => '{k,v}'), gpuvm.import('parted_2', columns => '{k,v}');
RESET client_min_messages;
ANALYZE docs, small, parted;

-- By cost: few rows are fetched, many are read by PostgreSQL.
CREATE TABLE asked_of AS SELECT * FROM (VALUES
	(1, 'SELECT id, doc, tags FROM docs WHERE f = 77.75'),
	(2, 'SELECT * FROM docs WHERE k = 3 AND f < 200'),
	(3, 'SELECT long, added FROM docs WHERE id IN (3, 27, 503, 1003, 9999)'),
	(4, 'SELECT doc FROM docs WHERE k > 1000'),
	(5, 'SELECT doc ->> ''n'', tags[2], length(long), id FROM docs WHERE k = 3 AND f < 100'),
	(6, 'SELECT docs FROM docs WHERE k = 5 AND id < 900'),
	(7, 'SELECT xmin = xmax AS same, ctid, tableoid::regclass, added FROM docs WHERE k = 5 AND id < 900'),
	(8, 'SELECT id, long FROM docs ORDER BY f DESC LIMIT 5'),
	(9, 'SELECT doc FROM docs WHERE k < 50 ORDER BY k, id LIMIT 5'),
	(10, 'SELECT docs.id, docs.doc, small.note FROM docs JOIN small USING (k) WHERE docs.f < 20'),
	(11, 'SELECT docs.tags, small.doc FROM docs LEFT JOIN small ON docs.k = small.k AND small.id > 30 WHERE docs.f < 10'),
	(12, 'SELECT s.note, d.long, d.id FROM small s FULL JOIN docs d ON s.id = d.id WHERE coalesce(s.id, 0) > 55 OR d.f < 1'),
	(13, 'SELECT tags FROM docs WHERE EXISTS (SELECT FROM small WHERE small.id = docs.id AND small.k = 7)'),
	(14, 'SELECT note FROM small WHERE NOT EXISTS (SELECT FROM docs WHERE docs.k = small.k AND docs.id < 90)'),
	(15, 'SELECT a.doc, b.doc FROM docs a JOIN docs b ON a.id = b.k AND b.id < 40 ORDER BY b.f LIMIT 4'),
	(16, 'SELECT doc, w, tableoid::regclass FROM parted WHERE v % 211 = 7'),
	(17, 'SELECT p.w, s.note FROM parted p JOIN small s ON s.id = p.v'),
	(18, 'SELECT count(*), max(long) FROM docs WHERE k = 9 AND f < 500'),
	(19, 'SELECT doc FROM docs d WHERE k = 8 AND f < 700 ORDER BY long')) v (n, query);
SET gpuvm.require = :device;
EXPLAIN (COSTS OFF) SELECT id, doc, tags FROM docs WHERE f = 77.75;
EXPLAIN (COSTS OFF) SELECT docs.id, docs.doc, small.note FROM docs JOIN small USING (k) WHERE docs.f < 20;
RESET gpuvm.require;
EXPLAIN (COSTS OFF) SELECT id, doc, tags FROM docs WHERE f > 3;
SET gpuvm.force = on;
INSERT INTO queries (query) SELECT query FROM asked_of ORDER BY n;
SELECT * FROM asked();
-- What tablets do not have cannot be compared, grouped or sorted by them.
INSERT INTO queries (query) VALUES
	('SELECT id FROM docs WHERE long = ''long 2!'''),
	('SELECT added, count(*) FROM docs GROUP BY added'),
	('SELECT id, added FROM docs WHERE k = 1 ORDER BY added, id LIMIT 3'),
	('SELECT parted FROM parted WHERE v = 3');
SELECT * FROM asked();

-- Only rows that are asked for are fetched.
CREATE FUNCTION fetches(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Heap' THEN
			RETURN NEXT trim(line);
		END IF;
	END LOOP;
END $$;
SELECT fetches('SELECT id, long FROM docs ORDER BY f DESC LIMIT 5');
SELECT fetches('SELECT doc FROM docs WHERE k = 3 LIMIT 4');
SELECT fetches('SELECT docs.tags, small.doc FROM docs LEFT JOIN small ON docs.k = small.k AND small.id > 30 WHERE docs.f < 10');
-- A projection that wants none of it.
SELECT fetches('SELECT count(*) FROM (SELECT doc FROM docs WHERE k = 3 OFFSET 0) q');

-- Rows of the delta, own changes, versions in HOT chains; and values that have changed since.
BEGIN;
UPDATE docs SET added = 'in this transaction', doc = doc || '{"new": true}' WHERE id % 100 = 5;
UPDATE docs SET k = 3 WHERE id % 1000 = 8;
DELETE FROM docs WHERE id % 50 = 9;
INSERT INTO docs (id, k, long, f) SELECT 20000 + i, 3, repeat('z', 5000), i FROM generate_series(1, 20) i;
INSERT INTO queries (query) SELECT query FROM asked_of ORDER BY n;
SELECT * FROM asked();
ROLLBACK;
-- A cursor fetches the versions that were there when it was opened.
BEGIN;
SET LOCAL gpuvm.require = :device;
DECLARE cur CURSOR FOR SELECT id, added, left(long, 8) FROM docs WHERE k = 3 AND f < 100;
FETCH 2 FROM cur;
RESET gpuvm.require;
UPDATE docs SET added = 'changed', long = 'changed' WHERE k = 3;
UPDATE docs SET added = 'changed again' WHERE k = 3;
FETCH 2 FROM cur;
COMMIT;

-- A value may be null in whole rows, and rows of a table without columns that are imported.
CREATE TABLE one (a json, id int) WITH (autovacuum_enabled = off);
INSERT INTO one VALUES ('[1]', 1), (NULL, 2);
VACUUM one;
SELECT gpuvm.import('one', columns => '{id}') > 0 AS imported;
INSERT INTO queries (query) VALUES ('SELECT a FROM one'), ('SELECT one FROM one'), ('SELECT a, one, xmax FROM one WHERE id = 2'),
	('SELECT x.a, y.a FROM one x JOIN one y ON x.id <> y.id');
SELECT * FROM asked();

-- Units in which a program flags an error, here numbers of more than 64 bits, are evaluated from the heap, with all that is wanted of their rows.
CREATE TABLE units (id int, n numeric(18, 0), doc json) WITH (autovacuum_enabled = off);
INSERT INTO units SELECT i, CASE WHEN i > 30000 THEN 999999999999999999 ELSE i % 100 END, json_build_array(i) FROM generate_series(1, 60000) i;
VACUUM units;
SELECT gpuvm.import('units', '{id,n}');
CREATE TABLE answers AS SELECT id, doc::text, u::text AS whole, ctid AS tid, tableoid AS tab FROM units u WHERE n * n * n > 10;
SET gpuvm.enabled = off;
SELECT count(*) FROM answers;
SELECT count(*) FROM (SELECT * FROM answers EXCEPT SELECT id, doc::text, u::text, ctid, tableoid FROM units u WHERE n * n * n > 10) q;
RESET gpuvm.enabled;

-- Who may not read a column is told so, and a policy's rows alone come out.
CREATE ROLE late_reader;
GRANT USAGE ON SCHEMA late TO late_reader;
GRANT SELECT (id, k, doc) ON docs TO late_reader;
GRANT SELECT ON small TO late_reader;
ALTER TABLE small ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_small ON small TO late_reader USING (k < 3);
SET ROLE late_reader;
SET gpuvm.require = :device;
SELECT id, note FROM small WHERE id < 30 ORDER BY id;
SELECT doc ->> 'n' AS n FROM docs WHERE id = 7;
RESET gpuvm.require;
SELECT added FROM docs WHERE id = 7;
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA late CASCADE;
DROP ROLE late_reader;
