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

-- COPY FREEZE into a table of another transaction is refused.
COPY facts FROM PROGRAM 'echo 6' (FREEZE);

-- A bit goes when the row changes, not when the transaction ends: who looks after the commit cannot find it set.
DROP TABLE facts;
CREATE TABLE facts (id int PRIMARY KEY, v int) WITH (autovacuum_enabled = off, fillfactor = 50);
INSERT INTO facts SELECT i, i FROM generate_series(1, 500) i;
VACUUM facts;
SELECT stamp('begun');
BEGIN;
UPDATE facts SET v = 0 WHERE id = 1;
SELECT blkno FROM pg_visibility_map('facts') WHERE NOT all_visible;
SAVEPOINT s;
DELETE FROM facts WHERE id = 500;
ROLLBACK TO s;
SELECT blkno FROM pg_visibility_map('facts') WHERE NOT all_visible;
ROLLBACK;
SELECT blkno FROM pg_visibility_map('facts') WHERE NOT all_visible;
SELECT stamp('aborted');
SELECT (compare('begun', 'aborted')).vm;
-- One bit that is set moves the LSN for all blocks of the map's page; pages that have not changed keep theirs.
SELECT array_agg((page_header(get_raw_page('facts', b))).lsn ORDER BY b) AS pages FROM generate_series(1, 3) b \gset
DELETE FROM facts WHERE id = 2;
VACUUM facts;
SELECT stamp('one bit');
SELECT (compare('aborted', 'one bit')).vm, array_agg((page_header(get_raw_page('facts', b))).lsn ORDER BY b) = :'pages'::pg_lsn[] AS pages_equal FROM generate_series(1, 3) b;
-- A HOT update clears the bit as any other does.
SELECT stamp('before HOT');
UPDATE facts SET v = -v WHERE id = 50;
SELECT t_ctid FROM heap_page_items(get_raw_page('facts', 0)) WHERE t_infomask2 & 16384 <> 0;
SELECT stamp('after HOT');
SELECT blkno FROM pg_visibility_map('facts') WHERE NOT all_visible;
SELECT compare('before HOT', 'after HOT');
-- Line pointers have gaps: those of dead rows, and of the chains' roots.
VACUUM facts;
SELECT lp, lp_flags FROM heap_page_items(get_raw_page('facts', 0)) WHERE lp_flags <> 1 ORDER BY lp;
SELECT count(*) = max(lp) AS none_missing FROM heap_page_items(get_raw_page('facts', 0)) WHERE lp_flags = 1;
-- Locks of every strength leave all-visible alone, and mark the page as changed.
VACUUM (FREEZE) facts;
SELECT stamp('before locks');
BEGIN;
SELECT id FROM facts WHERE id = 7 FOR KEY SHARE;
SELECT id FROM facts WHERE id = 8 FOR SHARE;
SELECT id FROM facts WHERE id = 9 FOR NO KEY UPDATE;
COMMIT;
SELECT stamp('after locks');
SELECT * FROM compare('before locks', 'after locks');
SELECT count(*) AS not_visible FROM pg_visibility_map('facts') WHERE NOT all_visible;
-- Freezing changes pages, but nothing that anybody sees: they will be read again.
UPDATE facts SET v = v WHERE id = 3;
VACUUM facts;
SELECT stamp('not frozen');
VACUUM (FREEZE) facts;
SELECT stamp('frozen again');
SELECT * FROM compare('not frozen', 'frozen again');
VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) facts;
SELECT stamp('nothing to freeze');
SELECT * FROM compare('frozen again', 'nothing to freeze');

-- VACUUM gives back pages at the end, and clears their bits without moving the LSN: the number of blocks tells.
SELECT stamp('long');
DELETE FROM facts WHERE id > 100;
SELECT count(*) AS bits FROM pg_visibility_map('facts') WHERE all_visible;
VACUUM (TRUNCATE off) facts;
SELECT stamp('swept');
SELECT (compare('long', 'swept')).vm, count(*) = count(*) FILTER (WHERE all_visible) AS all_visible FROM pg_visibility_map('facts');
VACUUM facts;
SELECT stamp('cut');
SELECT (compare('swept', 'cut')).vm, (SELECT count(*) FROM pg_visibility_map('facts')) AS blocks, pg_relation_size('facts', 'vm') > 0 AS map;
-- Pages that come in their place have no bit.
INSERT INTO facts SELECT i, i FROM generate_series(1001, 1300) i;
SELECT stamp('grown');
SELECT (compare('cut', 'grown')).vm, count(*) FILTER (WHERE all_visible) AS visible FROM pg_visibility_map('facts');
VACUUM facts;
SELECT stamp('grown and vacuumed');
SELECT (compare('grown', 'grown and vacuumed')).vm;
-- A map that was thrown away comes back with a higher LSN.
SELECT pg_truncate_visibility_map('facts');
SELECT pg_relation_size('facts', 'vm');
VACUUM facts;
SELECT stamp('new map');
SELECT * FROM compare('grown and vacuumed', 'new map');

-- timestamp becomes timestamptz under UTC with no trace in file, map and page.
SET timezone = 'UTC';
DROP TABLE facts;
CREATE TABLE facts (ts timestamp) WITH (autovacuum_enabled = off);
INSERT INTO facts VALUES ('2020-01-01');
VACUUM facts;
SELECT stamp('timestamp');
ALTER TABLE facts ALTER COLUMN ts TYPE timestamptz;
SELECT stamp('timestamptz');
SELECT * FROM compare('timestamp', 'timestamptz');
RESET timezone;

-- Rows of catalogs change in place, under a bit that stays.
VACUUM pg_class;
SELECT (regexp_match(ctid::text, '\((\d+),'))[1]::int AS block, reltuples AS before FROM pg_class WHERE oid = 'facts'::regclass \gset
SELECT (pg_visibility_map('pg_class', :block)).all_visible;
INSERT INTO facts SELECT now() FROM generate_series(1, 10);
ANALYZE facts;
SELECT reltuples <> :before AS changed FROM pg_class WHERE oid = 'facts'::regclass;
SELECT (pg_visibility_map('pg_class', :block)).all_visible;

SET client_min_messages = warning;
DROP SCHEMA platform CASCADE;
