-- What is remembered of imports, what becomes of it, and what the refresher makes of it.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA refresh_test;
SET search_path = refresh_test;
SET gpuvm.force = on;

CREATE VIEW imported AS
SELECT relation, columns, rows, state, changed_blocks, served, last_refresh BETWEEN now() - interval '1 hour' AND clock_timestamp() AS recent
FROM gpuvm.tables ORDER BY relation::text COLLATE "C";
CREATE VIEW remembered AS SELECT relation, columns FROM gpuvm.imports ORDER BY relation::text COLLATE "C";

-- Waits for what a background process does.
CREATE PROCEDURE wait_for(condition text) LANGUAGE plpgsql AS $$
DECLARE
	done bool;
BEGIN
	FOR i IN 1 .. 600 LOOP
		EXECUTE 'SELECT ' || condition INTO done;
		EXIT WHEN done;
		COMMIT;
		PERFORM pg_sleep(0.05);
	END LOOP;
	RAISE NOTICE '%', CASE WHEN done THEN 'it is so' ELSE 'in vain' END;
END $$;

-- A row is written with the import and follows its transaction.
CREATE TABLE t (a int, b int8, c text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i * 2, 'x' FROM generate_series(1, 1000) i;
SELECT gpuvm.import('t', '{b,a}');
SELECT * FROM remembered;
SELECT * FROM imported;
BEGIN;
SELECT gpuvm.import('t', '{a}');
SELECT * FROM remembered;
ROLLBACK;
SELECT * FROM remembered;
BEGIN;
SAVEPOINT s;
SELECT gpuvm.release('t');
SELECT * FROM remembered;
ROLLBACK TO s;
COMMIT;
SELECT * FROM remembered;
SELECT * FROM imported;

-- It follows the table's names, and its columns'.
ALTER TABLE t RENAME TO u;
CREATE SCHEMA refresh_other;
ALTER TABLE u SET SCHEMA refresh_other;
ALTER TABLE refresh_other.u RENAME COLUMN b TO bb;
SELECT * FROM remembered;
BEGIN;
ALTER TABLE refresh_other.u RENAME bb TO other;
SELECT * FROM remembered;
ROLLBACK;
SELECT * FROM remembered;
ALTER TABLE refresh_other.u SET SCHEMA refresh_test;
ALTER TABLE u RENAME TO t;
SET gpuvm.require = :device;
SELECT count(*), sum(a), sum(bb) FROM t;
RESET gpuvm.require;
-- One that is gone is left out when the table is imported again.
ALTER TABLE t DROP COLUMN bb;
SELECT state FROM imported WHERE relation = 't'::regclass;
SELECT gpuvm.refresh('t');
SELECT columns, rows, state FROM imported WHERE relation = 't'::regclass;
SET gpuvm.require = :device;
SELECT count(*), sum(a) FROM t;
RESET gpuvm.require;
-- All columns: those that are added later, too.
SELECT gpuvm.import('t');
ALTER TABLE t ADD COLUMN d float8 DEFAULT 0.5;
SELECT gpuvm.refresh('t');
SELECT * FROM remembered;
SELECT columns FROM imported WHERE relation = 't'::regclass;

-- Refresh reads what changed, vacuumed for it if need be.
INSERT INTO t (a) SELECT generate_series(1001, 1100);
UPDATE t SET d = 2 WHERE a <= 5;
DELETE FROM t WHERE a = 1000;
SELECT state, changed_blocks > 0 AS changed, served < 1 AS some_read FROM imported WHERE relation = 't'::regclass;
SELECT gpuvm.refresh('t') > 0 AS some;
SELECT state, changed_blocks, served, recent FROM imported WHERE relation = 't'::regclass;
SET gpuvm.require = :device;
SELECT count(*), sum(a), sum(d) FROM t;
RESET gpuvm.require;
SELECT gpuvm.refresh('t');

-- DROP forgets, ROLLBACK remembers; release forgets.
BEGIN;
DROP TABLE t;
SELECT * FROM remembered;
ROLLBACK;
SELECT * FROM remembered;
DROP TABLE t;
SELECT * FROM remembered;
CREATE TABLE t (a int, b int8) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i * 2 FROM generate_series(1, 1000) i;
SELECT gpuvm.import('t');
SELECT gpuvm.release('t');
SELECT * FROM remembered;
SELECT gpuvm.release('t');
SELECT gpuvm.refresh('t');

-- Neither can be prepared: what follows at commit would follow nowhere.
BEGIN;
SELECT gpuvm.release('t');
PREPARE TRANSACTION 'regress_gpuvm';
-- In a read-only transaction only memory changes.
\set VERBOSITY default
BEGIN READ ONLY;
SELECT gpuvm.import('t', vacuum => true);
COMMIT;
SELECT * FROM remembered;
SET gpuvm.require = :device;
SELECT sum(b) FROM t;
RESET gpuvm.require;
SELECT gpuvm.import('t');
BEGIN READ ONLY;
SELECT gpuvm.import('t');
SELECT gpuvm.release('t');
COMMIT;
SELECT * FROM remembered;
SELECT rows, state FROM imported;
SELECT gpuvm.refresh('t');
SELECT rows, state FROM imported;

-- Users read it, and write it by importing only. Rows by hand of what cannot be imported harm nothing.
CREATE ROLE regress_gpuvm_owner;
CREATE ROLE regress_gpuvm_other;
GRANT USAGE, CREATE ON SCHEMA refresh_test TO regress_gpuvm_owner, regress_gpuvm_other;
GRANT SELECT ON imported, remembered TO regress_gpuvm_owner;
SET ROLE regress_gpuvm_owner;
CREATE TABLE mine (a int) WITH (autovacuum_enabled = off);
INSERT INTO mine VALUES (1), (2);
SELECT count(*) FROM gpuvm.imports;
INSERT INTO gpuvm.imports VALUES ('mine');
DELETE FROM gpuvm.imports;
SELECT gpuvm.import('mine');
ALTER TABLE mine RENAME a TO b;
DROP TABLE mine;
RESET ROLE;
SELECT * FROM remembered;

-- A partitioned table stands for its leaves, which its owner imports whoever theirs is.
CREATE TABLE p (k int, v int8, w int2) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100) WITH (autovacuum_enabled = off);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200) PARTITION BY RANGE (k);
CREATE TABLE p2a (w int2, gone int, v int8, k int) WITH (autovacuum_enabled = off);
ALTER TABLE p2a DROP COLUMN gone;
ALTER TABLE p2 ATTACH PARTITION p2a FOR VALUES FROM (100) TO (200);
CREATE UNLOGGED TABLE p3 PARTITION OF p FOR VALUES FROM (200) TO (300);
INSERT INTO p SELECT i % 200, i, i % 7 FROM generate_series(1, 2000) i;
ALTER TABLE p OWNER TO regress_gpuvm_owner;
SET ROLE regress_gpuvm_other;
SELECT gpuvm.import('p');
SET ROLE regress_gpuvm_owner;
SELECT gpuvm.import('p', '{v,k}');
RESET ROLE;
SELECT * FROM remembered;
SELECT relation, columns, rows, state FROM imported WHERE relation::text LIKE 'p%';
DROP TABLE p3;
SET gpuvm.require = :device;
SELECT count(*), sum(v), sum(k) FROM p;
SELECT sum(v) FROM p2a WHERE k = 150;
RESET gpuvm.require;
SELECT gpuvm.import('p', '{v,none}');
SELECT gpuvm.release('p1');
INSERT INTO p SELECT 7, i, 0 FROM generate_series(1, 10) i;
SELECT gpuvm.refresh('p') > 0 AS some;
SET gpuvm.require = :device;
SELECT count(*), sum(v), sum(k) FROM p;
RESET gpuvm.require;
-- A leaf may have a row of its own, which then decides on its columns.
SELECT gpuvm.import('p1', '{w}');
SELECT * FROM remembered WHERE relation <> 't'::regclass;
SELECT gpuvm.release('p1');
SELECT * FROM remembered WHERE relation <> 't'::regclass;

-- The refresher: what DDL made useless is imported again, new partitions follow.
ALTER SYSTEM SET gpuvm.refresh = on;
ALTER SYSTEM SET gpuvm.refresh_naptime = 1;
SELECT pg_reload_conf();
-- imported by the refresher as soon as they are there
BEGIN;
CREATE TABLE p4 PARTITION OF p FOR VALUES FROM (400) TO (500) WITH (autovacuum_enabled = off);
INSERT INTO p SELECT 450, i, 0 FROM generate_series(1, 10) i;
COMMIT;
BEGIN;
TRUNCATE t;
INSERT INTO t SELECT i, -i FROM generate_series(1, 500) i;
COMMIT;
CALL wait_for($$(SELECT bool_and(state = 'current') AND count(*) = 4 FROM refresh_test.imported)$$);
SELECT relation, columns, rows, state FROM imported;
SET gpuvm.require = :device;
SELECT count(*), sum(a), sum(b) FROM t;
SELECT count(*), sum(v), sum(k) FROM p;
RESET gpuvm.require;
-- VACUUM of what changed: the rest is read again.
DELETE FROM t WHERE a % 50 = 0;
VACUUM t;
CALL wait_for($$(SELECT state = 'current' AND rows = 490 FROM refresh_test.imported WHERE relation = 'refresh_test.t'::regclass)$$);
SET gpuvm.require = :device;
SELECT count(*), sum(a), sum(b) FROM t;
RESET gpuvm.require;
-- A detached partition stays imported until it is released.
ALTER TABLE p DETACH PARTITION p4;
SELECT relation, state FROM imported;
SELECT gpuvm.release('p4');
SELECT gpuvm.release('p');
SELECT * FROM remembered;
SELECT relation, state FROM imported;
-- One that can no longer be imported is given up.
ALTER TABLE t SET UNLOGGED;
CALL wait_for($$(SELECT state LIKE 'not loaded: %' FROM refresh_test.imported WHERE relation = 'refresh_test.t'::regclass)$$);
SELECT relation, rows, state FROM imported;
SELECT loaded, substring(detail FROM 'it could not .*') FROM gpuvm.status() WHERE backend = 'refresher';
ALTER TABLE t SET LOGGED;
SELECT gpuvm.refresh('t');
SELECT relation, rows, state FROM imported;
SELECT loaded FROM gpuvm.status() WHERE backend = 'refresher';

-- Databases: a copy has its own tablets; the refresher makes way for commands that need a database for themselves.
SELECT current_database() AS here \gset
CREATE DATABASE regress_gpuvm_one TEMPLATE template0;
\c regress_gpuvm_one
SET client_min_messages = warning;
CREATE EXTENSION gpuvm;
CREATE TABLE t (a int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT generate_series(1, 1000);
SELECT gpuvm.import('t');
\c :here
CREATE DATABASE regress_gpuvm_two TEMPLATE regress_gpuvm_one;
ALTER DATABASE regress_gpuvm_one RENAME TO regress_gpuvm_three;
\c regress_gpuvm_two
SET gpuvm.force = on;
CREATE PROCEDURE wait_for(condition text) LANGUAGE plpgsql AS $$
DECLARE
	done bool;
BEGIN
	FOR i IN 1 .. 600 LOOP
		EXECUTE 'SELECT ' || condition INTO done;
		EXIT WHEN done;
		COMMIT;
		PERFORM pg_sleep(0.05);
	END LOOP;
END $$;
CALL wait_for($$(SELECT count(*) = 1 FROM gpuvm.tables WHERE state = 'current')$$);
SELECT relation, rows, state FROM gpuvm.tables;
SET gpuvm.require = :device;
SELECT sum(a) FROM t;
RESET gpuvm.require;
-- DROP EXTENSION frees the database's tablets.
DROP EXTENSION gpuvm;
CREATE EXTENSION gpuvm;
SELECT count(*) FROM gpuvm.tables;
\c :here
DROP DATABASE regress_gpuvm_two;
DROP DATABASE regress_gpuvm_three;

SET client_min_messages = warning;
ALTER SYSTEM RESET gpuvm.refresh;
ALTER SYSTEM RESET gpuvm.refresh_naptime;
SELECT pg_reload_conf();
DROP SCHEMA refresh_test, refresh_other CASCADE;
DROP ROLE regress_gpuvm_owner, regress_gpuvm_other;
SELECT count(*) FROM gpuvm.tables;
SELECT count(*) FROM gpuvm.imports;
