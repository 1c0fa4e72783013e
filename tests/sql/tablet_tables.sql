-- Foreign tables without a file: their rows are kept in tablets, in side tables of the extension. What statements do to them is
-- compared with the same done to an ordinary table.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SET gpuvm.force = on;
CREATE FUNCTION tt_state() RETURNS TABLE (tablets bigint, nrows bigint, dead_sets bigint, dead bigint) LANGUAGE sql AS $$
	SELECT count(*), coalesce(sum(nrows), 0), (SELECT count(*) FROM gpuvm.tablet_dead), (SELECT coalesce(sum(nrows), 0) FROM gpuvm.tablet_dead) FROM gpuvm.tablet_rows
$$;

-- every type that an ordinary table has
CREATE TYPE tt_mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE tt_pair AS (a int, b text);
CREATE DOMAIN tt_positive AS int CHECK (VALUE > 0);
CREATE TABLE tt_heap (id int, k int2, price numeric(10,2), name text, day date, maybe bigint, f float8, g float4, even bool, long text, list int[], o oid,
	mood tt_mood, pair tt_pair, pos tt_positive, u uuid, b bytea, j jsonb, r int4range, i interval, ts timestamptz, tm time, ch char(5), nm name, c "char", ip inet,
	p point, texts text[], n numeric, bits bit(5), cash money, tz timetz, x xml, oids oidvector);
INSERT INTO tt_heap SELECT i, i % 7, i * 0.25, 'name ' || i % 5, DATE '2020-01-01' + i % 400, CASE WHEN i % 10 = 0 THEN NULL ELSE i END, i / 3::float8, i / 7::float4, i % 2 = 0,
	'long ' || repeat(md5(i::text), i % 3), ARRAY[i, i + 1], i::oid, (enum_range(NULL::tt_mood))[i % 3 + 1], ROW(i, 'p' || i)::tt_pair, i, md5(i::text)::uuid,
	decode(md5(i::text), 'hex'), jsonb_build_object('a', i), int4range(i, i + 5), make_interval(days => i), TIMESTAMPTZ '2020-01-01 00:00Z' + make_interval(secs => i),
	TIME '00:00' + make_interval(secs => i), i::text, 'n' || i, (65 + i % 26)::"char", ('10.0.0.' || i % 250)::inet, point(i, -i),
	ARRAY['x' || i, NULL, repeat('y', i % 200)], i::numeric / 7, (i % 32)::bit(5), i::money, '10:00+02', ('<a>' || i || '</a>')::xml, '1 2 3'
	FROM generate_series(1, 2000) i;
INSERT INTO tt_heap (id) SELECT i FROM generate_series(2001, 2010) i;
-- values that the heap keeps elsewhere or compressed
INSERT INTO tt_heap (id, long, b) SELECT i, repeat('z', 100000), decode((SELECT string_agg(md5(n::text || i), '') FROM generate_series(1, 2000) n), 'hex') FROM generate_series(2011, 2013) i;
DO $$ BEGIN EXECUTE (SELECT format('CREATE FOREIGN TABLE tt (%s) SERVER gpuvm', string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum))
	FROM pg_attribute WHERE attrelid = 'tt_heap'::regclass AND attnum > 0); END $$;
INSERT INTO tt SELECT * FROM tt_heap;
CREATE VIEW tt_differences AS SELECT (SELECT count(*) FROM tt) - (SELECT count(*) FROM tt_heap) AS more,
	(SELECT count(*) FROM (SELECT md5(tt::text) AS m FROM tt EXCEPT ALL SELECT md5(tt_heap::text) FROM tt_heap) d) AS differ;
SET gpuvm.enabled = off;
SELECT * FROM tt_differences;
RESET gpuvm.enabled;
SELECT * FROM tt_differences;
SELECT * FROM tt_state();
SELECT id, long = repeat('z', 100000), length(b) FROM tt WHERE id > 2009 ORDER BY id;

-- on the virtual machine
SET gpuvm.require = vm;
SELECT count(*), sum(id), sum(price), min(name), max(day), count(maybe), count(*) FILTER (WHERE even), max(mood), min(ch) FROM tt;
SELECT k, count(*), sum(n) FROM tt WHERE maybe IS NOT NULL AND name LIKE '%1' GROUP BY k ORDER BY k;
SELECT id, name, list, pair, j, ts AT TIME ZONE 'UTC' AS ts FROM tt WHERE day = '2020-05-05' ORDER BY id DESC LIMIT 3;
SELECT h.name, count(*), sum(t.price) FROM tt h JOIN tt t ON h.id = t.maybe WHERE t.k < 3 GROUP BY h.name ORDER BY h.name;
SELECT tableoid::regclass, id FROM tt WHERE id = 5;
EXPLAIN (COSTS off) SELECT k, sum(price) FROM tt WHERE even GROUP BY k;
SELECT relation, rows, state, served FROM gpuvm.tables WHERE relation = 'tt'::regclass;
-- rows have ctids
SELECT count(DISTINCT ctid) = count(*) AS all_differ FROM tt;
RESET gpuvm.require;
DROP VIEW tt_differences;
DROP FOREIGN TABLE tt;
SELECT * FROM tt_state();

-- INSERT, UPDATE, DELETE, with what they return, against an ordinary table
CREATE FOREIGN TABLE tt (id int, k int DEFAULT 7, s text, twice int GENERATED ALWAYS AS (id * 2) STORED) SERVER gpuvm OPTIONS (persist 'on');
CREATE TABLE tt_same (id int, k int DEFAULT 7, s text, twice int GENERATED ALWAYS AS (id * 2) STORED);
CREATE PROCEDURE tt_both(statement text) LANGUAGE plpgsql AS $$
DECLARE
	a text;
	b text;
BEGIN
	EXECUTE format('WITH c AS (%s RETURNING *) SELECT count(*) || '' '' || coalesce(md5(string_agg(c::text, '' '' ORDER BY c::text)), ''-'') FROM c', replace(statement, '@', 'tt')) INTO a;
	EXECUTE format('WITH c AS (%s RETURNING *) SELECT count(*) || '' '' || coalesce(md5(string_agg(c::text, '' '' ORDER BY c::text)), ''-'') FROM c', replace(statement, '@', 'tt_same')) INTO b;
	IF a IS DISTINCT FROM b THEN RAISE WARNING 'returned % and %: %', a, b, statement; END IF;
	PERFORM set_config('gpuvm.require', 'vm', true);
	SELECT count(*) || ' ' || sum(id) || ' ' || sum(k) || ' ' || sum(twice) || ' ' || min(s) || ' ' || max(s) INTO a FROM tt;
	PERFORM set_config('gpuvm.require', 'any', true);
	SELECT count(*) || ' ' || sum(id) || ' ' || sum(k) || ' ' || sum(twice) || ' ' || min(s) || ' ' || max(s) INTO b FROM tt_same;
	IF a IS DISTINCT FROM b THEN RAISE WARNING 'is % and %: %', a, b, statement; END IF;
	IF EXISTS ((SELECT * FROM tt EXCEPT ALL SELECT * FROM tt_same) UNION ALL (SELECT * FROM tt_same EXCEPT ALL SELECT * FROM tt)) THEN
		RAISE WARNING 'rows differ: %', statement;
	END IF;
END$$;
CALL tt_both($$INSERT INTO @ (id, s) VALUES (1, 'a'), (2, NULL), (3, 'c')$$);
CALL tt_both($$INSERT INTO @ (id, k, s) SELECT i, i % 13, 's' || i % 11 FROM generate_series(4, 70000) i$$);
CALL tt_both($$INSERT INTO @ (id, s) SELECT id + 100000, s FROM @ WHERE k = 3$$);
CALL tt_both($$UPDATE @ SET s = s || '!', k = k + 1 WHERE id % 1000 = 5$$);
CALL tt_both($$UPDATE @ SET s = s || '!', k = k + 1 WHERE id % 1000 = 5$$);
CALL tt_both($$DELETE FROM @ WHERE k = 5 AND id < 30000$$);
CALL tt_both($$DELETE FROM @ WHERE id > 60000$$);
CALL tt_both($$UPDATE @ t SET k = o.k * 100 FROM @ o WHERE o.id = t.id + 1 AND t.id < 500$$);
CALL tt_both($$DELETE FROM @ t USING @ o WHERE o.id = t.id * 2 AND o.k = 3$$);
CALL tt_both($$UPDATE @ SET id = id$$);
CALL tt_both($$DELETE FROM @ WHERE ctid IN (SELECT min(ctid) FROM @ GROUP BY id) AND id < 10$$);
SELECT * FROM tt_state();
UPDATE tt SET s = 'changed' WHERE id IN (20, 21) RETURNING *;
DELETE FROM tt WHERE id IN (20, 21) RETURNING id, s, tableoid::regclass;
-- a row that several rows want to change is changed once; so are rows that two parts of a statement change
INSERT INTO tt VALUES (20, 1, 's');
UPDATE tt SET k = k + 1 FROM generate_series(1, 3) WHERE id = 20;
SELECT * FROM tt WHERE id = 20;
WITH u AS (UPDATE tt SET k = 50 WHERE id = 20 RETURNING k) SELECT (SELECT k FROM tt WHERE id = 20) AS old, k FROM u;
WITH d AS (DELETE FROM tt WHERE id = 20 RETURNING *), i AS (INSERT INTO tt (id) VALUES (-1) RETURNING *) SELECT (SELECT count(*) FROM tt WHERE id IN (20, -1)) AS before, d.id, i.id FROM d, i;
SELECT id, k FROM tt WHERE id IN (20, -1);

-- transactions
BEGIN;
DELETE FROM tt WHERE id > 10;
SELECT count(*) FROM tt;
SAVEPOINT s;
INSERT INTO tt SELECT generate_series(1, 10);
SELECT count(*) FROM tt;
SAVEPOINT s2;
TRUNCATE tt;
SELECT count(*) FROM tt;
ROLLBACK TO s2;
SELECT count(*) FROM tt;
ROLLBACK TO s;
SELECT count(*), max(id) FROM tt;
RELEASE s;
INSERT INTO tt VALUES (999999);
ROLLBACK;
SELECT count(*), max(id) FROM tt;
BEGIN READ ONLY;
INSERT INTO tt VALUES (1);
ROLLBACK;
BEGIN;
TRUNCATE tt;
INSERT INTO tt SELECT generate_series(1, 10);
PREPARE TRANSACTION 'tt';
COMMIT PREPARED 'tt';
SELECT count(*), max(id) FROM tt;
-- an error in the middle leaves nothing
INSERT INTO tt SELECT 10 / (3 - i) FROM generate_series(1, 5) i;
SELECT count(*) FROM tt;
-- cursors and prepared statements
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM tt ORDER BY id;
DECLARE r NO SCROLL CURSOR FOR SELECT id, random() >= 0 FROM tt;
FETCH 2 FROM c;
FETCH 2 FROM r;
SAVEPOINT s;
FETCH 1 FROM r;
ROLLBACK TO s;
DELETE FROM tt WHERE id < 8;
FETCH 2 FROM c;
FETCH 2 FROM r;
SELECT count(*) FROM tt;
COMMIT;
PREPARE q (int) AS SELECT count(*), sum(id) FROM tt WHERE id > $1;
PREPARE i AS INSERT INTO tt (id) VALUES ($1);
SET gpuvm.require = vm;
EXECUTE q (8);
EXECUTE i (100);
EXECUTE q (8);
EXECUTE i (200);
EXECUTE q (8);
RESET gpuvm.require;

-- COPY
COPY tt (id, s) FROM stdin;
300	three hundred
400	\N
\.
SELECT id, k, s, twice FROM tt WHERE id IN (300, 400);
COPY tt (id, s) FROM stdin;
500	x
none	x
\.
SELECT count(*) FROM tt WHERE id = 500;
COPY (SELECT id FROM tt WHERE id > 100 ORDER BY id) TO stdout;

-- columns come and go
ALTER FOREIGN TABLE tt ADD late int DEFAULT 5;
INSERT INTO tt (id) VALUES (600);
SELECT id, late FROM tt WHERE id > 300;
ALTER FOREIGN TABLE tt DROP k;
UPDATE tt SET late = 9 WHERE id = 300;
SET gpuvm.require = vm;
SELECT * FROM tt WHERE id > 200 ORDER BY id;
SELECT count(late), sum(twice) FROM tt;
RESET gpuvm.require;
ALTER FOREIGN TABLE tt ALTER s TYPE varchar;
SELECT count(s) FROM tt;
SELECT count(id) FROM tt;
ALTER FOREIGN TABLE tt ALTER s TYPE text;
-- Of char(n) and numeric(p, s) equal values are the same: all have one length, one scale.
CREATE FOREIGN TABLE tt_form (id int, c char(3), n numeric(8,2), v varchar(3)) SERVER gpuvm;
INSERT INTO tt_form VALUES (1, 'a', 1.5, 'a');
ALTER FOREIGN TABLE tt_form ALTER c TYPE char(6), ALTER v TYPE varchar(6);
INSERT INTO tt_form VALUES (2, 'a', 1.5, 'a');
SELECT count(DISTINCT c) FROM tt_form;
ALTER FOREIGN TABLE tt_form ALTER c TYPE char(3), ALTER n TYPE numeric(8,1);
SELECT sum(n) FROM tt_form WHERE id = 1;
ALTER FOREIGN TABLE tt_form ALTER n TYPE numeric(8,2);
DELETE FROM tt_form WHERE id = 2;
DROP FOREIGN TABLE tt_form;
SELECT count(s) FROM tt;
ALTER FOREIGN TABLE tt RENAME s TO renamed;
SELECT renamed FROM tt WHERE id = 300;

-- triggers see what they see of an ordinary table
CREATE FUNCTION tt_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE '% % % sees % rows of %', tg_when, tg_op, tg_level, (SELECT count(*) FROM tt WHERE id < 100), tg_table_name;
	IF tg_level = 'ROW' AND tg_op = 'INSERT' AND tg_when = 'BEFORE' THEN
		NEW.late := 77;
	END IF;
	RETURN coalesce(NEW, OLD);
END$$;
CREATE FUNCTION tt_trigger_in_block() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		RAISE NOTICE 'in a block: % rows', (SELECT count(*) FROM tt WHERE id < 100);
	EXCEPTION WHEN division_by_zero THEN NULL;
	END;
	RETURN NULL;
END$$;
CREATE TRIGGER a BEFORE INSERT OR UPDATE OR DELETE ON tt FOR EACH ROW EXECUTE FUNCTION tt_trigger();
CREATE TRIGGER b AFTER INSERT OR UPDATE OR DELETE ON tt FOR EACH ROW EXECUTE FUNCTION tt_trigger();
CREATE TRIGGER c AFTER INSERT OR UPDATE OR DELETE ON tt FOR EACH STATEMENT EXECUTE FUNCTION tt_trigger();
INSERT INTO tt (id) VALUES (50), (51);
UPDATE tt SET renamed = 'u' WHERE id = 50 RETURNING *;
DELETE FROM tt WHERE id IN (50, 51);
COPY tt (id) FROM stdin;
52
\.
DROP TRIGGER a ON tt;
DROP TRIGGER b ON tt;
DROP TRIGGER c ON tt;
CREATE TRIGGER d AFTER INSERT ON tt FOR EACH STATEMENT EXECUTE FUNCTION tt_trigger_in_block();
INSERT INTO tt (id) VALUES (53);
COPY tt (id) FROM stdin;
54
\.
SELECT count(*) FROM tt WHERE id = 54;
DROP TRIGGER d ON tt;
-- and so do functions within a statement
CREATE FUNCTION tt_count() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT count(*) FROM tt WHERE id BETWEEN 700 AND 800';
INSERT INTO tt (id) SELECT 700 + tt_count() FROM generate_series(1, 3);
SELECT id FROM tt WHERE id >= 700 ORDER BY id;

-- also where they have parallel plans, which were made before there was something to see
CREATE FOREIGN TABLE tt_few (i int) SERVER gpuvm;
CREATE TABLE tt_many AS SELECT generate_series(1, 1000) AS i;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
CREATE FUNCTION tt_matches() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN (SELECT count(*) FROM tt_many WHERE i IN (SELECT i FROM tt_few)); END $$;
INSERT INTO tt_few SELECT tt_matches() + 1 FROM generate_series(1, 4);
SELECT i FROM tt_few ORDER BY i;
RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
DROP FUNCTION tt_matches;
DROP FOREIGN TABLE tt_few;
DROP TABLE tt_many;

-- what foreign tables have not
MERGE INTO tt USING (VALUES (1)) v (a) ON id = a WHEN MATCHED THEN DELETE;
INSERT INTO tt (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET late = 1;
CREATE UNIQUE INDEX ON tt (id);
SELECT id FROM tt WHERE id = 700 FOR UPDATE;
-- rows that take no bytes
CREATE FOREIGN TABLE tt_null (a int, b text) SERVER gpuvm;
INSERT INTO tt_null SELECT FROM generate_series(1, 70000);
SET gpuvm.require = vm;
SELECT count(*), count(a) FROM tt_null;
RESET gpuvm.require;
DROP FOREIGN TABLE tt_null;
-- privileges
CREATE ROLE tt_reader;
GRANT SELECT ON tt TO tt_reader;
SET ROLE tt_reader;
SELECT count(*) FROM tt;
DELETE FROM tt;
INSERT INTO tt VALUES (1);
SELECT count(*) FROM gpuvm.tablet_rows;
RESET ROLE;

-- a partition, with rows that come and go by UPDATE
CREATE TABLE tt_parent (id int, v text) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE tt_low PARTITION OF tt_parent FOR VALUES FROM (0) TO (100) SERVER gpuvm;
CREATE TABLE tt_high PARTITION OF tt_parent FOR VALUES FROM (100) TO (200);
CREATE FOREIGN TABLE tt_top PARTITION OF tt_parent FOR VALUES FROM (200) TO (300) SERVER gpuvm OPTIONS (persist 'off');
INSERT INTO tt_parent SELECT i * 10, 'v' || i FROM generate_series(1, 29) i;
COPY tt_parent FROM stdin;
7	copied
207	copied
\.
UPDATE tt_parent SET id = id - 100, v = v || '!' WHERE id >= 100 AND id < 130;
DELETE FROM tt_parent WHERE id IN (30, 140, 250) RETURNING *;
-- no row leaves one by UPDATE, as none leaves a foreign table of another wrapper; none is beyond its bounds
UPDATE tt_parent SET id = id + 100 WHERE id = 7;
INSERT INTO tt_low VALUES (100, 'beyond');
SELECT tableoid::regclass, count(*), sum(id), min(v) FROM tt_parent GROUP BY 1 ORDER BY 1;
SELECT * FROM tt_low WHERE v LIKE '%!' OR v = 'copied' ORDER BY id;
TRUNCATE tt_parent;
SELECT count(*) FROM tt_parent;
DROP TABLE tt_parent;

-- statistics, import by hand
SELECT gpuvm.import('tt');
SELECT gpuvm.refresh('tt');
INSERT INTO tt (id) SELECT generate_series(1001, 3000);
SELECT gpuvm.refresh('tt');
SELECT gpuvm.release('tt');
ANALYZE tt;
SELECT reltuples = (SELECT count(*) FROM tt) AS right FROM pg_class WHERE oid = 'tt'::regclass;
-- gpuvm.files keeps nothing that is old
SET gpuvm.files = keep;
INSERT INTO tt (id) VALUES (5000);
SELECT max(id) FROM tt;
SET gpuvm.files = read;
SELECT gpuvm.release('tt');
EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) SELECT id FROM tt WHERE id = 5000;
RESET gpuvm.files;
-- the option says where new rows go
ALTER FOREIGN TABLE tt OPTIONS (SET persist 'off');
INSERT INTO tt (id) VALUES (6000);
SELECT count(*) FROM gpuvm.tablet_rows_unlogged;
UPDATE tt SET late = 3 WHERE id IN (5000, 6000);
SELECT id, late FROM tt WHERE id >= 5000 ORDER BY id;
-- TRUNCATE and DROP take all rows along
TRUNCATE tt;
SELECT count(*) FROM tt;
INSERT INTO tt (id) VALUES (1);
BEGIN;
DROP FOREIGN TABLE tt;
ROLLBACK;
SELECT id FROM tt;
CREATE SCHEMA tt_gone;
ALTER FOREIGN TABLE tt SET SCHEMA tt_gone;
DROP SCHEMA tt_gone CASCADE;
SELECT * FROM tt_state();
SELECT (SELECT count(*) FROM gpuvm.tablet_rows_unlogged) AS tablets, (SELECT count(*) FROM gpuvm.tablet_dead_unlogged) AS dead;

-- a second index of a side table, as REINDEX CONCURRENTLY has for a while
CREATE FOREIGN TABLE tt (id int) SERVER gpuvm;
INSERT INTO tt SELECT generate_series(1, 5);
BEGIN;
CREATE INDEX tt_second ON gpuvm.tablet_rows (relation, tablet);
INSERT INTO tt VALUES (6);
DELETE FROM tt WHERE id = 1;
DROP INDEX gpuvm.tablet_rows_index;
SELECT count(*), sum(id) FROM tt;
ROLLBACK;
DROP FOREIGN TABLE tt;

-- Numbers of tablets are nobody's lastval().
CREATE SEQUENCE tt_ids;
CREATE FOREIGN TABLE tt_numbered (id bigint DEFAULT nextval('tt_ids'), v int) SERVER gpuvm;
GRANT INSERT ON tt_numbered TO tt_reader;
GRANT USAGE ON SEQUENCE tt_ids TO tt_reader;
SET ROLE tt_reader;
INSERT INTO tt_numbered (v) VALUES (1), (2);
SELECT lastval();
RESET ROLE;
DELETE FROM tt_numbered WHERE id = 1;
SELECT lastval(), count(*) FROM tt_numbered;
DROP FOREIGN TABLE tt_numbered;
DROP SEQUENCE tt_ids;

DROP PROCEDURE tt_both;
DROP FUNCTION tt_state, tt_trigger, tt_trigger_in_block, tt_count;
DROP TABLE tt_heap, tt_same;
DROP TYPE tt_mood, tt_pair;
DROP DOMAIN tt_positive;
DROP ROLE tt_reader;
