-- Import: what is copied, what is refused, when it is published and when it ends.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA import_test;
SET search_path = import_test;
SET gpuvm.force = on;

CREATE VIEW imported AS
SELECT relation, columns, rows, tablets, blocks = served_blocks AS whole, bytes > 0 AS has_bytes, state, changed_blocks
FROM gpuvm.tables ORDER BY relation::text COLLATE "C";

-- Every type, with and without NULLs.
CREATE TABLE types (id int PRIMARY KEY, b bool, s int2, i int4, l int8, f float4, d float8, day date,
	ts timestamp, tz timestamptz) WITH (autovacuum_enabled = off);
INSERT INTO types SELECT i, i % 3 = 0, i % 30000 - 15000, i * 7919 % 100003 - 50000, i * 1000000007::int8 - 4, i * 0.25, i * 0.125 - 9,
	date '1990-01-01' + i, timestamp '2001-02-03 04:05:06.789' + i * interval '1 hour',
	timestamptz '2020-06-01 00:00:00+00' - i * interval '1 minute' FROM generate_series(1, 3000) i;
INSERT INTO types (id) SELECT 3000 + i FROM generate_series(1, 1000) i;
INSERT INTO types VALUES (4001, true, -32768, -2147483648, -9223372036854775808, '-infinity', '-infinity', '-infinity', '-infinity', '-infinity'),
	(4002, false, 32767, 2147483647, 9223372036854775807, 'infinity', 'infinity', 'infinity', 'infinity', 'infinity'),
	(4003, NULL, 0, NULL, 0, 'NaN', 'NaN', 'epoch', 'epoch', 'epoch');
SELECT gpuvm.import('types');
SELECT * FROM imported;
SET gpuvm.require = :device;
SELECT count(*), count(b), count(s), count(i), count(l), count(f), count(d), count(day), count(ts), count(tz) FROM types;
SELECT * FROM types WHERE id % 397 = 0 OR id > 4000 ORDER BY id;
RESET gpuvm.require;
-- Text and statistics of the tablets: int8 is narrowed where its range allows, bounds are those of the finite values.
SELECT "column", type, nulls, min, max FROM gpuvm.tablets WHERE relation = 'types'::regclass AND tablet = 0;
SELECT sum(rows) / 10 AS rows, sum(data_bytes) > 0 AS data FROM gpuvm.tablets WHERE relation = 'types'::regclass;

-- Columns of other types are stored as they are, or, by value, left out, and say so; queries that compute with them stay with PostgreSQL.
CREATE DOMAIN small AS int4 CHECK (VALUE < 100);
CREATE DOMAIN place AS point;
CREATE TABLE mixed (a int, pt point, n numeric(8,2), b int8, r int4range, v varchar(10), dm small, arr point[], pl place, tm time, x xid, reg regclass)
	WITH (autovacuum_enabled = off);
INSERT INTO mixed SELECT i, '(1,2)', i, i, '[1,2)', 'v', i % 100, ARRAY[point '(1,2)'], '(3,4)', '12:00', '1', 'pg_class' FROM generate_series(1, 100) i;
SELECT gpuvm.import('mixed');
SELECT * FROM imported WHERE relation = 'mixed'::regclass;
SET gpuvm.require = :device;
SELECT sum(a), sum(b) FROM mixed;
SELECT count(pt) FROM mixed;
SELECT a, pt, r, arr, pl FROM mixed WHERE a % 40 = 1;
SELECT count(x) FROM mixed;
SELECT sum(a) FROM mixed WHERE pt <-> '(0,0)' > 1;
RESET gpuvm.require;
SELECT count(pt), sum(n) FROM mixed;

-- A list of columns.
SELECT gpuvm.import('mixed', ARRAY['b']);
SELECT columns FROM imported WHERE relation = 'mixed'::regclass;
SET gpuvm.require = :device;
SELECT sum(b) FROM mixed;
SELECT sum(a) FROM mixed;
RESET gpuvm.require;
SELECT gpuvm.import('mixed', '{b,a}');
SELECT columns FROM imported WHERE relation = 'mixed'::regclass;
SELECT gpuvm.import('mixed', ARRAY['a', 'x']);
SELECT gpuvm.import('mixed', ARRAY['a', 'nothing']);
SELECT gpuvm.import('mixed', ARRAY['a', 'ctid']);
SELECT gpuvm.import('mixed', ARRAY['a', 'a']);
SELECT gpuvm.import('mixed', ARRAY['a', NULL]);
SELECT gpuvm.import('mixed', vacuum => NULL);
SELECT gpuvm.import(NULL);
-- None of it changed what was there.
SELECT columns, rows FROM imported WHERE relation = 'mixed'::regclass;
-- No column at all: rows can still be counted.
SELECT gpuvm.import('mixed', '{}');
SET gpuvm.require = :device;
SELECT count(*) FROM mixed;
RESET gpuvm.require;
SELECT columns, rows FROM imported WHERE relation = 'mixed'::regclass;
SELECT gpuvm.release('mixed');

-- Relations of other kinds are refused.
\set VERBOSITY default
CREATE TEMP TABLE temporary AS SELECT 1 AS a;
SELECT gpuvm.import('temporary');
CREATE UNLOGGED TABLE unlogged (a int);
SELECT gpuvm.import('unlogged');
CREATE VIEW a_view AS SELECT 1 AS a;
SELECT gpuvm.import('a_view');
CREATE TABLE parent (k int, v int8) PARTITION BY RANGE (k);
CREATE INDEX types_index ON types (i);
SELECT gpuvm.import('types_index');
CREATE SEQUENCE a_sequence;
SELECT gpuvm.import('a_sequence');
CREATE FOREIGN DATA WRAPPER regress_gpuvm_fdw;
CREATE SERVER regress_gpuvm_server FOREIGN DATA WRAPPER regress_gpuvm_fdw;
CREATE FOREIGN TABLE a_foreign_table (a int) SERVER regress_gpuvm_server;
SELECT gpuvm.import('a_foreign_table');
SELECT gpuvm.import('pg_catalog.pg_class');
SELECT gpuvm.import('information_schema.sql_features');
-- A TOAST table has its table's OID in its name.
DO $$
BEGIN
	PERFORM gpuvm.import((SELECT reltoastrelid FROM pg_class WHERE oid = 'import_test.mixed'::regclass));
EXCEPTION WHEN wrong_object_type THEN
	RAISE NOTICE '%: refused', regexp_replace(SQLERRM, '\d+', 'N');
END $$;
CREATE MATERIALIZED VIEW unpopulated AS SELECT 1 AS a WITH NO DATA;
SELECT gpuvm.import('unpopulated');
SELECT gpuvm.import(0);
SELECT gpuvm.import('no_such_table');

-- Owners only.
CREATE ROLE regress_gpuvm_user;
GRANT USAGE ON SCHEMA import_test TO regress_gpuvm_user;
GRANT SELECT, INSERT, UPDATE ON types TO regress_gpuvm_user;
SET ROLE regress_gpuvm_user;
SELECT gpuvm.import('types');
SELECT gpuvm.refresh('types');
SELECT gpuvm.release('types');
RESET ROLE;
ALTER TABLE types OWNER TO regress_gpuvm_user;
SET ROLE regress_gpuvm_user;
SELECT gpuvm.import('types', ARRAY['id', 'i']);
SELECT gpuvm.release('types');
RESET ROLE;

-- Publication: at commit, and only then.
CREATE TABLE t (a int, b int8) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i * 2 FROM generate_series(1, 1000) i;
BEGIN;
SELECT gpuvm.import('t');
SELECT rows, state FROM imported WHERE relation = 't'::regclass;
ROLLBACK;
SELECT count(*) FROM imported WHERE relation = 't'::regclass;
BEGIN;
SELECT gpuvm.import('t');
COMMIT;
SELECT columns, rows, state FROM imported WHERE relation = 't'::regclass;
-- A savepoint that is rolled back takes its import, or its release, along; one that is released keeps it.
BEGIN;
SAVEPOINT s;
SELECT gpuvm.release('t');
ROLLBACK TO s;
SAVEPOINT s2;
SELECT gpuvm.import('t', ARRAY['a']);
ROLLBACK TO s2;
COMMIT;
SELECT columns, rows, state FROM imported WHERE relation = 't'::regclass;
BEGIN;
SAVEPOINT s;
SELECT gpuvm.import('t', ARRAY['a']);
RELEASE s;
SAVEPOINT s3;
SELECT gpuvm.import('t', ARRAY['b']);
ROLLBACK TO s3;
COMMIT;
SELECT columns, rows, state FROM imported WHERE relation = 't'::regclass;
-- The last one wins.
BEGIN;
SELECT gpuvm.release('t');
SELECT gpuvm.import('t', ARRAY['b']);
SELECT gpuvm.import('t');
COMMIT;
SELECT columns, rows, state FROM imported WHERE relation = 't'::regclass;
BEGIN;
SELECT gpuvm.import('t');
SELECT gpuvm.release('t');
COMMIT;
SELECT count(*) FROM imported WHERE relation = 't'::regclass;
SELECT gpuvm.release('t');
SELECT gpuvm.refresh('t');
-- A failed statement leaves nothing behind.
BEGIN;
SELECT gpuvm.import('t');
SELECT 1 / 0;
COMMIT;
SELECT count(*) FROM imported WHERE relation = 't'::regclass;

-- A relation made, truncated or rewritten in this transaction is not imported, and not served.
BEGIN;
CREATE TABLE fresh (a int);
INSERT INTO fresh VALUES (1);
SELECT gpuvm.import('fresh');
ROLLBACK;
BEGIN;
TRUNCATE t;
SELECT gpuvm.import('t');
ROLLBACK;
BEGIN;
SAVEPOINT s;
ALTER TABLE t ALTER COLUMN a TYPE int8;
SELECT gpuvm.import('t');
ROLLBACK;
SELECT gpuvm.import('t');

-- Refresh: nothing to do, then everything again.
SELECT gpuvm.refresh('t');
INSERT INTO t VALUES (1001, 2002);
SELECT rows, state, changed_blocks FROM imported WHERE relation = 't'::regclass;
SELECT gpuvm.refresh('t') BETWEEN 1 AND 500 AS a_block;
SELECT rows, state, changed_blocks FROM imported WHERE relation = 't'::regclass;
SELECT gpuvm.refresh('t');
-- The size of a tablet is a setting: many small ones hold the same rows.
CREATE TABLE wide AS SELECT i AS a, i::int8 * 1000003 AS b, i * 0.5::float8 AS c FROM generate_series(1, 20000) i;
SET gpuvm.tablet_size = '64kB';
SELECT gpuvm.import('wide');
SELECT rows, tablets > 3 AS several FROM imported WHERE relation = 'wide'::regclass;
SELECT sum(rows) / 3 AS rows, bool_and(rows > 0) AS none_empty, max(tablet) + 1 = count(*) / 3 AS numbered FROM gpuvm.tablets
WHERE relation = 'wide'::regclass;
SET gpuvm.require = :device;
SELECT count(*), sum(a), sum(b), sum(c), min(c), max(b) FROM wide;
RESET gpuvm.require;
RESET gpuvm.tablet_size;
DROP TABLE wide;

-- Dropped columns and columns added later.
ALTER TABLE t ADD COLUMN c int2 DEFAULT 7, ADD COLUMN d float8, ADD COLUMN e date DEFAULT '2020-02-29';
INSERT INTO t VALUES (1002, 2004, 1, 0.5, '1999-01-01');
ALTER TABLE t DROP COLUMN b;
SELECT state FROM imported WHERE relation = 't'::regclass;
SELECT gpuvm.import('t');
SELECT columns, rows, state FROM imported WHERE relation = 't'::regclass;
SET gpuvm.require = :device;
SELECT * FROM t WHERE a > 998 ORDER BY a;
SELECT c, d, e, count(*), sum(a) FROM t GROUP BY c, d, e ORDER BY c;
RESET gpuvm.require;
-- Adding a column with a default rewrites nothing. Rolled back and done otherwise, only the default tells.
CREATE TABLE added (a int) WITH (autovacuum_enabled = off);
INSERT INTO added SELECT generate_series(1, 10);
VACUUM added;
BEGIN;
ALTER TABLE added ADD COLUMN b int DEFAULT 5;
SELECT gpuvm.import('added');
ROLLBACK;
ALTER TABLE added ADD COLUMN b int DEFAULT 7;
SELECT count(*) FROM imported WHERE relation = 'added'::regclass;
SELECT sum(b) FROM added;
SELECT gpuvm.import('added');
BEGIN;
ALTER TABLE added DROP COLUMN b;
ALTER TABLE added ADD COLUMN b int DEFAULT 9;
SELECT sum(b) FROM added;
SAVEPOINT s;
SET LOCAL gpuvm.require = :device;
SELECT sum(b) FROM added;
ROLLBACK;
SET gpuvm.require = :device;
SELECT sum(b) FROM added;
RESET gpuvm.require;

-- timestamp to timestamptz under UTC rewrites nothing either.
SET timezone = 'UTC';
CREATE TABLE zoned (ts timestamp) WITH (autovacuum_enabled = off);
INSERT INTO zoned VALUES ('2020-01-01 12:00');
SELECT gpuvm.import('zoned');
ALTER TABLE zoned ALTER COLUMN ts TYPE timestamptz;
SELECT state FROM imported WHERE relation = 'zoned'::regclass;
SET timezone = 'America/New_York';
SELECT min(ts) FROM zoned;
SELECT gpuvm.import('zoned');
SET gpuvm.require = :device;
SELECT min(ts), max(ts) FROM zoned WHERE ts > '2020-01-01 06:00';
RESET gpuvm.require;
RESET timezone;

-- An empty table, and one whose rows have all been deleted.
CREATE TABLE empty (a int, f float4) WITH (autovacuum_enabled = off);
SELECT gpuvm.import('empty');
SET gpuvm.require = :device;
SELECT * FROM empty;
SELECT count(*), sum(a), min(f), avg(a) FROM empty;
SELECT a, count(*) FROM empty GROUP BY a;
RESET gpuvm.require;
INSERT INTO empty VALUES (1, 1);
SELECT count(*) FROM empty;
DELETE FROM empty;
SELECT gpuvm.import('empty');
SET gpuvm.require = :device;
SELECT count(*), sum(a) FROM empty;
RESET gpuvm.require;

-- Gaps in the line pointers: dead rows between live ones.
CREATE TABLE gaps (id int, v int) WITH (autovacuum_enabled = off, fillfactor = 90);
INSERT INTO gaps SELECT i, i FROM generate_series(1, 2000) i;
DELETE FROM gaps WHERE id % 7 = 3;
UPDATE gaps SET v = -v WHERE id % 11 = 5;
SELECT gpuvm.import('gaps');
SET gpuvm.require = :device;
SELECT count(*), sum(v), sum(id) FROM gaps;
RESET gpuvm.require;

-- Without a VACUUM a fresh table has no block that is known to be visible to all.
CREATE TABLE unvacuumed (a int) WITH (autovacuum_enabled = off);
INSERT INTO unvacuumed SELECT generate_series(1, 100);
SELECT gpuvm.import('unvacuumed', vacuum => false);
SELECT rows, state FROM imported WHERE relation = 'unvacuumed'::regclass;
SELECT count(*) FROM unvacuumed;
SELECT gpuvm.refresh('unvacuumed');
SELECT rows, state FROM imported WHERE relation = 'unvacuumed'::regclass;

-- Pages that nobody has initialized, as they are behind what many processes have loaded at once: nothing that each query has to look into.
CREATE TABLE extended (a int) WITH (autovacuum_enabled = off);
INSERT INTO extended SELECT generate_series(1, 1000);
CHECKPOINT;
SELECT format($$COPY (SELECT 1) TO PROGRAM 'cat >/dev/null; head -c 40960 /dev/zero >>%s'$$, pg_relation_filepath('extended')) AS extend \gset
:extend;
SELECT pg_relation_size('extended') > 5 * 8192 AS extended, gpuvm.import('extended');
SELECT rows, state FROM imported WHERE relation = 'extended'::regclass;
SET gpuvm.require = :device;
SELECT count(*), sum(a) FROM extended;
RESET gpuvm.require;
INSERT INTO extended SELECT generate_series(1001, 3000);
SELECT count(*), sum(a) FROM extended;
SELECT gpuvm.refresh('extended') > 0 AS refreshed;
SELECT rows, state FROM imported WHERE relation = 'extended'::regclass;
SET gpuvm.require = :device;
SELECT count(*), sum(a) FROM extended;
RESET gpuvm.require;

-- Materialised views.
CREATE MATERIALIZED VIEW mv AS SELECT a, a % 5 AS k FROM t;
SELECT gpuvm.import('mv');
SET gpuvm.require = :device;
SELECT k, count(*) FROM mv GROUP BY k ORDER BY k;
RESET gpuvm.require;
INSERT INTO t (a) VALUES (5000);
REFRESH MATERIALIZED VIEW mv;
SELECT state FROM imported WHERE relation = 'mv'::regclass;
SELECT count(*) FROM mv;
SELECT gpuvm.import('mv');
SET gpuvm.require = :device;
SELECT count(*) FROM mv;
RESET gpuvm.require;

-- Leaf partitions: those that are imported are scanned by the VM, the others by PostgreSQL.
CREATE TABLE leaf1 PARTITION OF parent FOR VALUES FROM (0) TO (100);
CREATE TABLE leaf2 PARTITION OF parent FOR VALUES FROM (100) TO (200);
INSERT INTO parent SELECT i % 200, i FROM generate_series(1, 2000) i;
SELECT gpuvm.import('leaf1');
SELECT count(*), sum(v) FROM parent;
SELECT gpuvm.import('leaf2');
SET gpuvm.require = :device;
SELECT count(*), sum(v) FROM parent;
SELECT k, count(*), sum(v) FROM parent WHERE k IN (99, 100) AND v > 500 GROUP BY k ORDER BY k;
SELECT sum(v) FROM leaf2 WHERE k = 150;
SELECT tableoid::regclass, count(*) FROM parent GROUP BY 1 ORDER BY 1;
RESET gpuvm.require;
ALTER TABLE parent DETACH PARTITION leaf2;
SET gpuvm.require = :device;
SELECT count(*), sum(v) FROM parent;
SELECT count(*), sum(v) FROM leaf2;
RESET gpuvm.require;
SELECT tableoid::regclass, count(*) FROM parent GROUP BY 1 ORDER BY 1;

-- Inheritance: the parent's own rows stay with PostgreSQL when its children are read too.
CREATE TABLE elders (a int) WITH (autovacuum_enabled = off);
CREATE TABLE children () INHERITS (elders) WITH (autovacuum_enabled = off);
INSERT INTO elders VALUES (1), (2);
INSERT INTO children VALUES (3), (4);
SELECT gpuvm.import('elders'), gpuvm.import('children');
SELECT sum(a) FROM elders;
SET gpuvm.require = :device;
SELECT sum(a) FROM ONLY elders;
SELECT sum(a) FROM children;
RESET gpuvm.require;

-- DROP frees what the registry holds.
DROP TABLE elders, children;
BEGIN;
DROP TABLE gaps;
ROLLBACK;
SET gpuvm.require = :device;
SELECT count(*) FROM gaps;
RESET gpuvm.require;
DROP TABLE gaps;
SELECT relation FROM imported;

-- Nothing is left of them.
SET client_min_messages = warning;
DROP SCHEMA import_test CASCADE;
DROP FOREIGN DATA WRAPPER regress_gpuvm_fdw CASCADE;
DROP ROLE regress_gpuvm_user;
SELECT count(*) FROM gpuvm.tables;
