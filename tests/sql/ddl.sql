-- DDL in every form: the answers are right at once, in the transaction and after its end, and where tablets
-- still fit, or are made again, they come from the virtual machine.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA ddl;
CREATE SCHEMA ddl_other;
SET search_path = ddl;
SET gpuvm.force = on;
SET timezone = 'UTC';

\set ECHO none
\i tests/sql/include/ask_vm.sql
\set ECHO all
CREATE VIEW imported AS SELECT relation, columns, rows, state FROM gpuvm.tables ORDER BY relation::text COLLATE "C";

CREATE TABLE t (id int, v int, ts timestamp, s varchar(10)) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 10, timestamp '2020-01-01' + i * interval '1 hour', 'x' FROM generate_series(1, 1000) i;
CREATE INDEX t_id ON t (id);
SET client_min_messages = warning;
SELECT gpuvm.import('t');
PREPARE q AS SELECT * FROM ask('SELECT count(*), sum(v), max(ts) FROM t WHERE id > 10');
EXECUTE q;

-- What changes neither the file nor what the columns are made of.
ALTER TABLE t ALTER COLUMN v SET DEFAULT 5;
ALTER TABLE t ALTER COLUMN v SET STATISTICS 50, ALTER COLUMN v SET (n_distinct = 10);
ALTER TABLE t ALTER COLUMN s SET STORAGE PLAIN;
EXECUTE q;
ALTER TABLE t ALTER COLUMN v SET NOT NULL, ADD CONSTRAINT positive CHECK (id > 0);
CREATE UNIQUE INDEX t_id2 ON t (id);
ALTER TABLE t ADD CONSTRAINT t_unique UNIQUE USING INDEX t_id2;
ALTER TABLE t SET (fillfactor = 50), SET (parallel_workers = 2);
ALTER TABLE t REPLICA IDENTITY FULL, CLUSTER ON t_id, DISABLE TRIGGER ALL;
ALTER TABLE t DROP CONSTRAINT t_unique, ALTER COLUMN v DROP NOT NULL;
ANALYZE t;
REINDEX TABLE t;
EXECUTE q;
COMMENT ON TABLE t IS 'x';
GRANT SELECT ON t TO PUBLIC;
CREATE TYPE pair AS (id int, v int, ts timestamp, s varchar(10));
ALTER TABLE t OF pair;
EXECUTE q;
ALTER TABLE t NOT OF;
CREATE STATISTICS st ON id, v FROM t;
CREATE RULE r AS ON INSERT TO t DO ALSO NOTHING;
DROP RULE r ON t;
EXECUTE q;
SELECT * FROM imported;

-- Names.
ALTER TABLE t RENAME COLUMN v TO w;
SELECT * FROM ask('SELECT count(*), sum(w) FROM t');
ALTER TABLE t RENAME TO u;
SELECT * FROM ask('SELECT count(*), sum(w) FROM u');
ALTER TABLE u SET SCHEMA ddl_other;
SELECT * FROM ask('SELECT count(*), sum(w) FROM ddl_other.u');
-- another table under the old name
CREATE TABLE t (id int, v int) WITH (autovacuum_enabled = off);
INSERT INTO t VALUES (1, 1);
SELECT * FROM ask('SELECT count(*), sum(v) FROM t');
ALTER SCHEMA ddl_other RENAME TO ddl_renamed;
SELECT * FROM ask('SELECT count(*), sum(w) FROM ddl_renamed.u');
-- two that change places
BEGIN;
ALTER TABLE t RENAME TO old;
ALTER TABLE ddl_renamed.u SET SCHEMA ddl;
ALTER TABLE u RENAME TO t;
ALTER TABLE t RENAME COLUMN w TO v;
EXECUTE q;
COMMIT;
EXECUTE q;
DROP TABLE old;
-- columns that change places
ALTER TABLE t RENAME COLUMN id TO x;
ALTER TABLE t RENAME COLUMN v TO id;
ALTER TABLE t RENAME COLUMN x TO v;
SELECT * FROM ask('SELECT count(*), sum(v), max(id) FROM t');
ALTER TABLE t RENAME COLUMN id TO x;
ALTER TABLE t RENAME COLUMN v TO id;
ALTER TABLE t RENAME COLUMN x TO v;
EXECUTE q;

-- Columns that come and go, kept and rolled back. Only the default tells one from the other.
BEGIN;
ALTER TABLE t ADD COLUMN c int DEFAULT 5;
SELECT * FROM ask('SELECT sum(c), count(*) FROM t');
SELECT gpuvm.import('t');
SELECT * FROM ask('SELECT sum(c), count(*) FROM t');
ROLLBACK;
EXECUTE q;
ALTER TABLE t ADD COLUMN c int DEFAULT 7;
SELECT * FROM ask('SELECT sum(c), count(*) FROM t');
SELECT gpuvm.refresh('t');
SELECT * FROM ask('SELECT sum(c), count(*) FROM t');
ALTER TABLE t DROP COLUMN c;
EXECUTE q;
ALTER TABLE t ADD COLUMN c int DEFAULT 9;
SELECT * FROM ask('SELECT sum(c), count(*) FROM t');
SELECT gpuvm.refresh('t');
SELECT * FROM ask('SELECT sum(c), count(*) FROM t');
ALTER TABLE t ALTER COLUMN c SET DEFAULT 11;
INSERT INTO t (id) VALUES (1001);
SELECT * FROM ask('SELECT sum(c), count(*) FROM t');
BEGIN;
ALTER TABLE t DROP COLUMN c;
EXECUTE q;
ROLLBACK;
SELECT * FROM ask('SELECT sum(c), count(*) FROM t');
ALTER TABLE t ADD COLUMN g int GENERATED ALWAYS AS (id * 2) STORED, ADD COLUMN i int GENERATED ALWAYS AS IDENTITY, ADD COLUMN r float8 DEFAULT random();
SELECT * FROM ask('SELECT sum(g), sum(i), count(r) FROM t');
SELECT gpuvm.refresh('t');
SELECT * FROM ask('SELECT sum(g), sum(i), count(r) FROM t');
ALTER TABLE t ALTER COLUMN g DROP EXPRESSION, ALTER COLUMN i DROP IDENTITY, ALTER COLUMN i DROP NOT NULL, DROP COLUMN r;
SELECT gpuvm.refresh('t');
SELECT * FROM ask('SELECT sum(g), sum(i) FROM t');

-- Types: with a rewrite, and without one.
BEGIN;
ALTER TABLE t ALTER COLUMN v TYPE int8 USING v * 1000000000000;
EXECUTE q;
ROLLBACK;
EXECUTE q;
ALTER TABLE t ALTER COLUMN v TYPE int8 USING v * 1000000000000;
EXECUTE q;
SELECT gpuvm.refresh('t');
EXECUTE q;
ALTER TABLE t ALTER COLUMN v TYPE int USING v / 1000000000000;
ALTER TABLE t ALTER COLUMN s TYPE varchar(20);
EXECUTE q;
ALTER TABLE t ALTER COLUMN ts TYPE timestamptz;
EXECUTE q;
SET timezone = 'America/New_York';
SELECT gpuvm.refresh('t');
EXECUTE q;
SELECT * FROM ask('SELECT min(ts) FROM t');
SET timezone = 'UTC';
EXECUTE q;
ALTER TABLE t ALTER COLUMN v TYPE text;
SELECT * FROM ask('SELECT count(*), max(v), min(id) FROM t');
ALTER TABLE t ALTER COLUMN v TYPE int USING v::int;
SELECT gpuvm.refresh('t');
EXECUTE q;

-- New files.
BEGIN;
TRUNCATE t;
EXECUTE q;
INSERT INTO t (id, v) SELECT i, 3 FROM generate_series(1, 50) i;
EXECUTE q;
SAVEPOINT s;
TRUNCATE t;
EXECUTE q;
ROLLBACK TO s;
EXECUTE q;
ROLLBACK;
EXECUTE q;
CLUSTER t;
EXECUTE q;
SELECT gpuvm.refresh('t');
EXECUTE q;
VACUUM FULL t;
EXECUTE q;
SELECT gpuvm.refresh('t');
EXECUTE q;
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_gpuvm_space LOCATION '';
ALTER TABLE t SET TABLESPACE regress_gpuvm_space;
EXECUTE q;
SELECT gpuvm.refresh('t');
EXECUTE q;
ALTER TABLE t SET TABLESPACE pg_default;
DROP TABLESPACE regress_gpuvm_space;
EXECUTE q;
ALTER TABLE t SET UNLOGGED;
EXECUTE q;
SELECT gpuvm.refresh('t');
ALTER TABLE t SET LOGGED;
EXECUTE q;
SELECT gpuvm.refresh('t');
EXECUTE q;
TRUNCATE t RESTART IDENTITY CASCADE;
EXECUTE q;
INSERT INTO t (id, v) SELECT i, 4 FROM generate_series(1, 100) i;
EXECUTE q;
SELECT gpuvm.refresh('t');
EXECUTE q;

-- What this transaction has filled may be filled further without a trace: it is not imported.
BEGIN;
TRUNCATE t;
COPY t (id, v) FROM PROGRAM 'seq -f "%g	1" 1 100' (FREEZE);
DO $$ BEGIN
	PERFORM gpuvm.import('t');
EXCEPTION WHEN object_not_in_prerequisite_state THEN
	RAISE WARNING '%', SQLERRM;
END $$;
COPY t (id, v) FROM PROGRAM 'seq -f "%g	2" 101 110' (FREEZE);
EXECUTE q;
COMMIT;
EXECUTE q;
SELECT gpuvm.refresh('t');
EXECUTE q;

-- The value of a column that rows lack is part of what tablets are made of.
CREATE TABLE lacking (id int) WITH (autovacuum_enabled = off);
INSERT INTO lacking SELECT generate_series(1, 100);
ALTER TABLE lacking ADD COLUMN c int DEFAULT 7;
SELECT gpuvm.import('lacking');
SELECT * FROM ask('SELECT sum(c) FROM lacking');
CREATE TABLE donor (id int);
INSERT INTO donor VALUES (1);
ALTER TABLE donor ADD COLUMN c int DEFAULT 8;
SET allow_system_table_mods = on;
UPDATE pg_attribute a SET attmissingval = b.attmissingval FROM pg_attribute b
WHERE a.attrelid = 'lacking'::regclass AND a.attname = 'c' AND b.attrelid = 'donor'::regclass AND b.attname = 'c';
RESET allow_system_table_mods;
SELECT * FROM ask('SELECT sum(c) FROM lacking');
SELECT gpuvm.refresh('lacking');
SELECT * FROM ask('SELECT sum(c) FROM lacking');
DROP TABLE lacking, donor;

-- Inheritance and partitions.
CREATE TABLE parent (id int, v int) WITH (autovacuum_enabled = off);
CREATE TABLE child (id int, v int) WITH (autovacuum_enabled = off);
INSERT INTO parent SELECT i, 1 FROM generate_series(1, 10) i;
INSERT INTO child SELECT i, 2 FROM generate_series(1, 10) i;
SELECT gpuvm.import('child');
ALTER TABLE child INHERIT parent;
SELECT * FROM ask('SELECT sum(v) FROM child');
SELECT * FROM ask('SELECT sum(v) FROM parent');
ALTER TABLE parent ADD COLUMN w int DEFAULT 6;
SELECT * FROM ask('SELECT sum(v), sum(w) FROM parent');
ALTER TABLE child NO INHERIT parent;
SELECT * FROM ask('SELECT sum(v), sum(w) FROM parent');
DROP TABLE parent;

CREATE TABLE p (k int, v int8) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100) WITH (autovacuum_enabled = off);
CREATE TABLE p2 (v int8, k int) WITH (autovacuum_enabled = off);
INSERT INTO p1 SELECT i, i FROM generate_series(0, 99) i;
INSERT INTO p2 SELECT i, i FROM generate_series(100, 199) i;
SELECT gpuvm.import('p');
SELECT gpuvm.import('p2');
PREPARE parts AS SELECT * FROM ask('SELECT count(*), sum(v), max(k) FROM p');
EXECUTE parts;
BEGIN;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (100) TO (200);
EXECUTE parts;
ROLLBACK;
EXECUTE parts;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (100) TO (200);
EXECUTE parts;
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (200) TO (300) WITH (autovacuum_enabled = off);
EXECUTE parts;
INSERT INTO p SELECT i, i FROM generate_series(200, 249) i;
EXECUTE parts;
SELECT gpuvm.refresh('p');
EXECUTE parts;
UPDATE p SET k = k - 100 WHERE k = 150;
EXECUTE parts;
ALTER TABLE p ADD COLUMN w int DEFAULT 3;
EXECUTE parts;
SELECT * FROM ask('SELECT sum(w) FROM p');
SELECT gpuvm.refresh('p');
SELECT * FROM ask('SELECT sum(w) FROM p');
ALTER TABLE p DETACH PARTITION p1;
EXECUTE parts;
SELECT * FROM ask('SELECT count(*), sum(v) FROM p1');
ALTER TABLE p DETACH PARTITION p3 CONCURRENTLY;
EXECUTE parts;
TRUNCATE p;
EXECUTE parts;
DROP TABLE p2;
EXECUTE parts;
SELECT relation FROM imported;

-- Owners and row security.
CREATE ROLE regress_gpuvm_ddl;
GRANT USAGE, CREATE ON SCHEMA ddl TO regress_gpuvm_ddl;
ALTER TABLE t OWNER TO regress_gpuvm_ddl;
EXECUTE q;
SET ROLE regress_gpuvm_ddl;
EXECUTE q;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
EXECUTE q;
ALTER TABLE t FORCE ROW LEVEL SECURITY;
EXECUTE q;
CREATE POLICY tenth ON t USING (id % 10 = 0);
EXECUTE q;
ALTER POLICY tenth ON t USING (id % 10 = 1);
EXECUTE q;
DROP POLICY tenth ON t;
EXECUTE q;
ALTER TABLE t NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY;
EXECUTE q;
REVOKE ALL ON t FROM regress_gpuvm_ddl;
EXECUTE q;
RESET ROLE;
ALTER TABLE t OWNER TO CURRENT_USER;
REVOKE ALL ON SCHEMA ddl FROM regress_gpuvm_ddl;
DROP ROLE regress_gpuvm_ddl;

-- The end of a table.
BEGIN;
DROP TABLE t;
SELECT relation FROM imported;
ROLLBACK;
EXECUTE q;
BEGIN;
DROP TABLE t;
CREATE TABLE t (id int, v int, ts timestamp) WITH (autovacuum_enabled = off);
INSERT INTO t VALUES (50, 1, '2020-02-02');
EXECUTE q;
COMMIT;
EXECUTE q;
SELECT relation FROM imported;
DROP SCHEMA ddl_renamed CASCADE;
DROP SCHEMA ddl CASCADE;
SELECT count(*) FROM gpuvm.tables;
