-- Where the images of stored tablets lie: small ones in the tablet's row, others in chunks that fill a page each.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SET gpuvm.force = on;

-- nothing of it in TOAST tables
SELECT relname, reltoastrelid <> 0 AS toast FROM pg_class WHERE relnamespace = 'gpuvm'::regnamespace AND relname ~ '^tablet_(rows|chunks)(_unlogged)?$' ORDER BY relname COLLATE "C";

CREATE FOREIGN TABLE ch (id int, v text) SERVER gpuvm;
CREATE TABLE ch_same (id int, v text);
-- tablets of table ch; whether each has the chunks that its size asks for, and nobody else has any; rows that differ from ch_same's
CREATE FUNCTION ch_state() RETURNS TABLE (inline bigint, chunked bigint, chunks bigint, as_expected bool, differ bigint) LANGUAGE sql AS $$
	WITH tablets AS (SELECT *, (SELECT count(*) FROM gpuvm.tablet_chunks c WHERE c.tablet = r.tablet) AS found,
			(SELECT sum(length(bytes)) FROM gpuvm.tablet_chunks c WHERE c.tablet = r.tablet) AS bytes FROM gpuvm.tablet_rows r WHERE relation = 'ch'::regclass)
	SELECT count(image), count(*) - count(image), coalesce(sum(found), 0),
		coalesce(bool_and(CASE WHEN image IS NOT NULL THEN found = 0 AND length(image) = size - 4 ELSE found = ceil((size - 4) / 8064.0) AND bytes = size - 4 END), true)
			AND (SELECT count(*) FROM gpuvm.tablet_chunks) = coalesce(sum(found), 0),
		(SELECT count(*) FROM ((TABLE ch EXCEPT ALL TABLE ch_same) UNION ALL (TABLE ch_same EXCEPT ALL TABLE ch)) d)
	FROM tablets
$$;

-- sizes about each limit
DO $$
DECLARE
	about int;
BEGIN
	FOREACH about IN ARRAY ARRAY[10, 1900, 8000, 16064, 80600] LOOP
		FOR n IN about .. about + 160 BY 8 LOOP
			INSERT INTO ch VALUES (n, repeat('x', n));
			INSERT INTO ch_same VALUES (n, repeat('x', n));
		END LOOP;
	END LOOP;
END $$;
SELECT * FROM ch_state();
SELECT min((size - 4) % 8064), max((size - 4) % 8064) FROM gpuvm.tablet_rows WHERE relation = 'ch'::regclass AND image IS NULL;
SET gpuvm.require = 'any';
SELECT count(*), sum(length(v)), sum(id) FROM ch WHERE id > 5;
RESET gpuvm.require;

-- what is rolled back leaves none, nor does compaction
BEGIN;
INSERT INTO ch SELECT i, md5(i::text) FROM generate_series(1, 30000) i;
SAVEPOINT s;
INSERT INTO ch SELECT i, md5(i::text) FROM generate_series(1, 30000) i;
ROLLBACK TO s;
SELECT inline, chunked, as_expected, differ FROM ch_state();
ROLLBACK;
SELECT * FROM ch_state();
SELECT gpuvm.compact('ch') > 0 AS some;
SELECT * FROM ch_state();
BEGIN;
INSERT INTO ch SELECT i, md5(i::text) FROM generate_series(1, 30000) i;
TRUNCATE ch;
SELECT inline, chunked, chunks FROM ch_state();
ROLLBACK;
SELECT * FROM ch_state();

-- VACUUM FULL, and an index that is made anew, beside which there is another one
VACUUM FULL gpuvm.tablet_chunks;
REINDEX TABLE CONCURRENTLY gpuvm.tablet_chunks;
BEGIN;
CREATE INDEX ch_second ON gpuvm.tablet_chunks (tablet, chunk);
INSERT INTO ch SELECT i, md5(i::text) FROM generate_series(1, 3000) i;
INSERT INTO ch_same SELECT i, md5(i::text) FROM generate_series(1, 3000) i;
DROP INDEX gpuvm.tablet_chunks_index;
SELECT * FROM ch_state();
ROLLBACK;
SELECT * FROM ch_state();

-- Who sees a tablet has its chunks, also deleted ones; what has gone is found out.
DELETE FROM gpuvm.tablet_chunks WHERE chunk = 1;
SELECT count(*) FROM ch WHERE v IS NOT NULL;
VACUUM gpuvm.tablet_chunks;
SET gpuvm.enabled = off;
DO $$ BEGIN PERFORM count(v) FROM ch; EXCEPTION WHEN data_corrupted THEN RAISE NOTICE '%', regexp_replace(SQLERRM, '\d+', 'N'); END $$;
RESET gpuvm.enabled;

-- Unlogged ones have tables of their own. Each chunk has a page, which is used again once VACUUM has been there.
ALTER FOREIGN TABLE ch OPTIONS (ADD persist 'off');
TRUNCATE ch;
SELECT count(*) AS logged FROM gpuvm.tablet_chunks;
INSERT INTO ch SELECT i, md5(i::text) FROM generate_series(1, 200000) i;
SELECT count(*) > 100 AS many, count(*) = count(DISTINCT (ctid::text::point)[0]) AS a_page_each FROM gpuvm.tablet_chunks_unlogged WHERE length(bytes) = 8064;
SELECT pg_relation_size('gpuvm.tablet_chunks_unlogged') AS size \gset
TRUNCATE ch;
SELECT count(*) FROM gpuvm.tablet_chunks_unlogged;
VACUUM (TRUNCATE off) gpuvm.tablet_chunks_unlogged;
INSERT INTO ch SELECT i, md5(i::text) FROM generate_series(1, 200000) i;
SELECT pg_relation_size('gpuvm.tablet_chunks_unlogged') = :size AS used_again, (SELECT count(DISTINCT v) FROM ch) AS rows;

DROP FOREIGN TABLE ch;
SELECT (SELECT count(*) FROM gpuvm.tablet_chunks) AS logged, (SELECT count(*) FROM gpuvm.tablet_chunks_unlogged) AS unlogged;
DROP FUNCTION ch_state;
DROP TABLE ch_same;
