-- What the store relies on in PostgreSQL's visibility map, found by experiment. A
-- PostgreSQL that behaves otherwise must fail here, loudly, before it gives stale answers.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pageinspect;
CREATE EXTENSION IF NOT EXISTS pg_visibility;
RESET client_min_messages;
CREATE SCHEMA platform;
SET search_path = platform, public;

CREATE TABLE facts (id int, v int) WITH (autovacuum_enabled = off);
INSERT INTO facts SELECT i, i FROM generate_series(1, 100) i;
CREATE TABLE stamps (at text, vm pg_lsn, heap pg_lsn, node oid);
CREATE FUNCTION stamp(text) RETURNS void LANGUAGE sql AS $$
	INSERT INTO stamps SELECT $1, (page_header(get_raw_page('facts', 'vm', 0))).lsn, (page_header(get_raw_page('facts', 0))).lsn, pg_relation_filenode('facts')
$$;
CREATE FUNCTION compare(a text, b text, OUT vm text, OUT heap text, OUT file text) LANGUAGE sql AS $$
	SELECT CASE WHEN y.vm = x.vm THEN 'equal' WHEN y.vm > x.vm THEN 'moved' ELSE 'went back' END,
		CASE WHEN y.heap = x.heap THEN 'equal' WHEN y.heap > x.heap THEN 'moved' ELSE 'went back' END,
		CASE WHEN y.node = x.node THEN 'equal' ELSE 'new' END
	FROM stamps x, stamps y WHERE x.at = a AND y.at = b
$$;

-- A fresh table has no bits; VACUUM sets them, and the map's page gets an LSN.
SELECT count(*) AS bits FROM pg_visibility_map('facts') WHERE all_visible;
VACUUM facts;
SELECT all_visible, pd_all_visible FROM pg_visibility('facts');
SELECT stamp('vacuumed');
-- Each way to change a row clears the bit, and leaves the map's LSN.
INSERT INTO facts VALUES (101, 101);
SELECT stamp('inserted');
SELECT all_visible FROM pg_visibility_map('facts');
SELECT * FROM compare('vacuumed', 'inserted');
-- Setting it again moves the LSN.
VACUUM facts;
SELECT stamp('vacuumed again');
SELECT all_visible FROM pg_visibility_map('facts');
SELECT (compare('inserted', 'vacuumed again')).vm;
DELETE FROM facts WHERE id = 101;
SELECT stamp('deleted');
SELECT all_visible FROM pg_visibility_map('facts');
SELECT * FROM compare('vacuumed again', 'deleted');
VACUUM facts;
SELECT stamp('vacuumed a third time');
BEGIN;
UPDATE facts SET v = 0 WHERE id = 5;
ROLLBACK;
SELECT stamp('rolled back');
SELECT all_visible FROM pg_visibility_map('facts');
SELECT * FROM compare('vacuumed a third time', 'rolled back');
-- A VACUUM that has nothing to do changes nothing; freezing sets a bit, which moves the LSN.
VACUUM facts;
SELECT stamp('before');
VACUUM facts;
SELECT stamp('after');
SELECT * FROM compare('before', 'after');
VACUUM FREEZE facts;
SELECT stamp('frozen');
SELECT all_visible, all_frozen FROM pg_visibility_map('facts');
SELECT * FROM compare('after', 'frozen');
-- Locking a row clears the all-frozen bit alone, and leaves the map's LSN.
BEGIN;
SELECT id FROM facts WHERE id = 7 FOR UPDATE;
COMMIT;
SELECT stamp('locked');
SELECT all_visible, all_frozen FROM pg_visibility_map('facts');
SELECT (compare('frozen', 'locked')).vm;

-- Columns may change without a trace in file, map and page: the signature must tell.
BEGIN;
ALTER TABLE facts ADD COLUMN w int DEFAULT 5;
ROLLBACK;
ALTER TABLE facts ADD COLUMN w int DEFAULT 7;
SELECT stamp('column added');
SELECT * FROM compare('locked', 'column added');

-- COPY FREEZE adds rows to an all-visible page of a table of this transaction, and leaves map and LSN as they are.
BEGIN;
DROP TABLE facts;
CREATE TABLE facts (i int) WITH (autovacuum_enabled = off);
COPY facts FROM STDIN (FREEZE);
1
2
3
\.
SELECT stamp('copied');
SELECT all_visible FROM pg_visibility_map('facts');
COPY facts FROM STDIN (FREEZE);
4
5
\.
SELECT stamp('copied twice');
SELECT all_visible FROM pg_visibility_map('facts');
SELECT count(*) FROM facts;
SELECT (compare('copied', 'copied twice')).vm;
COMMIT;
VACUUM facts;
SELECT stamp('copied and vacuumed');
SELECT (compare('copied', 'copied and vacuumed')).vm;
-- TRUNCATE in the transaction that made the table keeps its file.
BEGIN;
CREATE TABLE twice (i int);
SELECT pg_relation_filenode('twice') AS node \gset
TRUNCATE twice;
SELECT pg_relation_filenode('twice') = :node AS same_file;
COMMIT;
TRUNCATE twice;
SELECT pg_relation_filenode('twice') = :node AS same_file;

SET client_min_messages = warning;
DROP SCHEMA platform CASCADE;
