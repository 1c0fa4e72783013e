-- Images of stored tablets: where they lie (small ones in the tablet's row, others in chunks that fill a page each), and how values lie in them.
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
		coalesce(bool_and(CASE WHEN image IS NOT NULL THEN found = 0 AND length(image) = image_size - 4 ELSE found = ceil((image_size - 4) / 8064.0) AND bytes = image_size - 4 END), true)
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
SELECT min((image_size - 4) % 8064), max((image_size - 4) % 8064) FROM gpuvm.tablet_rows WHERE relation = 'ch'::regclass AND image IS NULL;
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
SELECT pg_relation_size('gpuvm.tablet_chunks_unlogged') - :size < 10 * 8192 AS used_again, (SELECT count(DISTINCT v) FROM ch) AS rows;

DROP FOREIGN TABLE ch;
SELECT (SELECT count(*) FROM gpuvm.tablet_chunks) AS logged, (SELECT count(*) FROM gpuvm.tablet_chunks_unlogged) AS unlogged;
DROP FUNCTION ch_state;
DROP TABLE ch_same;

-- Values that are passed by value take as few bytes as their range asks for, and come back to the last bit.
CREATE FOREIGN TABLE ch (spread numeric, i8 int8, i4 int4, i2 int2, c "char", b bool, f8 float8, f4 float4, d date, ts timestamp, o oid, nothing int8, t text) SERVER gpuvm;
CREATE TABLE ch_same (LIKE ch);
CREATE PROCEDURE ch_add(spread numeric, base numeric, nrows int) LANGUAGE plpgsql AS $$
DECLARE
	statement text := 'INSERT INTO @ SELECT $1, v::int8, greatest(least(v, 2147483647), -2147483648)::int4, greatest(least(v, 32767), -32768)::int2,
		chr((v % 100 + 101)::int)::"char", v % 2 = 0, CASE i WHEN 5 THEN ''-0'' WHEN 7 THEN ''NaN'' ELSE $1::float8 END, ($2 / 4)::float4,
		DATE ''2000-01-01'' + (v % 10000)::int, TIMESTAMP ''2000-01-01'' + make_interval(secs => (v % 1000000)::int), (abs(v) % 4294967296)::int8::oid, NULL, v
		FROM (SELECT i, CASE WHEN i % 11 = 10 THEN NULL WHEN i % 2 = 1 THEN $2 ELSE $2 + $1 END FROM generate_series(1, $3) i) r(i, v)';
BEGIN
	EXECUTE replace(statement, '@', 'ch') USING spread, base, nrows;
	EXECUTE replace(statement, '@', 'ch_same') USING spread, base, nrows;
END $$;
DO $$
DECLARE
	spread numeric;
	base numeric;
	nrows int;
BEGIN
	FOREACH spread IN ARRAY ARRAY[0, 1, 255, 256, 65535, 65536, 4294967295, 4294967296, 9223372036854775807, 18446744073709551615] LOOP
		FOREACH base IN ARRAY ARRAY[-9223372036854775808, -1, 0, 9223372036854775807 - spread] LOOP
			CONTINUE WHEN base + spread > 9223372036854775807 OR base < -9223372036854775808;
			FOREACH nrows IN ARRAY ARRAY[1, 2, 3, 10, 700] LOOP
				CALL ch_add(spread, base, nrows);
			END LOOP;
		END LOOP;
	END LOOP;
END $$;
CREATE FUNCTION ch_differ() RETURNS bigint LANGUAGE sql AS
	'SELECT count(*) FROM ((SELECT ch::text FROM ch EXCEPT ALL SELECT ch_same::text FROM ch_same) UNION ALL (SELECT ch_same::text FROM ch_same EXCEPT ALL SELECT ch::text FROM ch)) d';
SELECT count(*), ch_differ() FROM ch;
SET gpuvm.enabled = off;
SELECT count(*), ch_differ() FROM ch;
RESET gpuvm.enabled;
DELETE FROM ch WHERE i8 % 3 = 0;
DELETE FROM ch_same WHERE i8 % 3 = 0;
UPDATE ch SET i8 = i2, i4 = NULL WHERE i8 % 3 = 1;
UPDATE ch_same SET i8 = i2, i4 = NULL WHERE i8 % 3 = 1;
SELECT gpuvm.compact('ch') > 0 AS some, ch_differ();
SET gpuvm.enabled = off;
SELECT count(*), ch_differ() FROM ch;
RESET gpuvm.enabled;
DROP FOREIGN TABLE ch;
CREATE FOREIGN TABLE ch (i int8) SERVER gpuvm;
INSERT INTO ch SELECT 5000000000 FROM generate_series(1, 10000);
INSERT INTO ch SELECT -i % 256 FROM generate_series(1, 10000) i;
INSERT INTO ch SELECT i % 257 FROM generate_series(1, 10000) i;
INSERT INTO ch SELECT i % 10 * 1000000 FROM generate_series(1, 10000) i;
INSERT INTO ch SELECT i % 10 * 10000000000 FROM generate_series(1, 10000) i;
SELECT size, image_size, sum(size) OVER () > (SELECT bytes FROM gpuvm.tablet_tables WHERE relation = 'ch'::regclass) AS less FROM gpuvm.tablet_rows WHERE relation = 'ch'::regclass ORDER BY tablet;
DROP FOREIGN TABLE ch;
DROP TABLE ch_same;
DROP FUNCTION ch_differ;
DROP PROCEDURE ch_add;
