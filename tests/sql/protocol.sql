-- Which blocks are served: several pages of the visibility map, maps that go away or were never there, ends that
-- are cut off, tables without rows; and how much is read again.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE EXTENSION IF NOT EXISTS pg_visibility;
CREATE SCHEMA protocol;
SET search_path = protocol, public;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/ask_vm.sql
\set ECHO all
CREATE VIEW state AS
SELECT relation, rows, tablets, blocks - served_blocks AS unserved, changed_blocks, state FROM gpuvm.tables ORDER BY relation::text COLLATE "C";
-- By what a statement moved the counter.
CREATE TABLE noted AS SELECT * FROM gpuvm.stats WITH NO DATA;
CREATE PROCEDURE note() LANGUAGE sql AS $$ DELETE FROM noted; INSERT INTO noted SELECT * FROM gpuvm.stats $$;
CREATE FUNCTION moved(name text) RETURNS bigint LANGUAGE sql AS $$ SELECT n.value - o.value FROM gpuvm.stats n JOIN noted o USING (counter) WHERE counter = name $$;

-- Growth past the last page of the map that was known at the import: 32,672 blocks.
CREATE TABLE g (a int8, b int4, pad text) WITH (fillfactor = 10, autovacuum_enabled = off);
ALTER TABLE g ALTER pad SET STORAGE PLAIN;
INSERT INTO g SELECT i, i, repeat('x', 100) FROM generate_series(1, 1000) i;
SELECT gpuvm.import('g', '{a,b}');
PREPARE q AS SELECT * FROM ask('SELECT count(*), sum(a), sum(b) FROM g');
EXECUTE q;
INSERT INTO g SELECT i, i, repeat('y', 3500) FROM generate_series(1001, 34000) i;
SELECT pg_relation_size('g', 'vm') / current_setting('block_size')::int AS pages, pg_relation_size('g') / current_setting('block_size')::int > 32672 AS past;
EXECUTE q;
VACUUM g;
SELECT pg_relation_size('g', 'vm') / current_setting('block_size')::int AS pages;
EXECUTE q;
SELECT gpuvm.refresh('g');
SELECT * FROM state;
CALL note();
EXECUTE q;
SELECT moved('delta rows') AS delta, moved('restamped blocks') AS restamped;
-- One row at each end: a page of the map each.
UPDATE g SET b = b + 1 WHERE a IN (5, 33999);
CALL note();
EXECUTE q;
SELECT moved('delta blocks') BETWEEN 2 AND 8 AS few_read, moved('restamped blocks') AS restamped;
VACUUM g;
-- The call's commit writes the log, which says which blocks VACUUM has marked, and which the update after it has changed.
CALL note();
EXECUTE q;
SELECT moved('restamped blocks') BETWEEN 1 AND 1000 AS few_looked;
SET gpuvm.enabled = off;
UPDATE g SET b = b - 1 WHERE a = 5;
VACUUM g;
UPDATE g SET b = b - 1 WHERE a = 33999;
RESET gpuvm.enabled;
CALL note();
EXECUTE q;
SELECT moved('restamped blocks') BETWEEN 1 AND 1000 AS few_looked;
UPDATE g SET b = b + 1 WHERE a IN (5, 33999);
VACUUM g;
-- Of 16 MB of it, all blocks are looked at instead.
CREATE TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 20000);
DROP TABLE filler;
CALL note();
EXECUTE q;
SELECT moved('restamped blocks') > 30000 AS looked;
CALL note();
EXECUTE q;
SELECT moved('restamped blocks') AS looked_again, moved('delta blocks') BETWEEN 2 AND 8 AS few_read;
SELECT gpuvm.refresh('g') < 500 AS few_read;
CALL note();
EXECUTE q;
SELECT moved('restamped blocks') AS looked, moved('delta blocks') AS read;
-- The map goes away.
SELECT pg_truncate_visibility_map('g');
EXECUTE q;
UPDATE g SET b = b + 1 WHERE a % 1000 = 7;
EXECUTE q;
VACUUM g;
EXECUTE q;
SELECT gpuvm.refresh('g') < 5000 AS few_read;
EXECUTE q;
-- The end is cut off, and other rows come into blocks of the same numbers.
DELETE FROM g WHERE a > 500;
VACUUM g;
-- Again if a snapshot elsewhere, of a process that was starting, has kept the rows.
\set ECHO none
SELECT 'VACUUM g' FROM generate_series(1, 10), pg_sleep(0.1) WHERE pg_relation_size('g') / current_setting('block_size')::int >= 1000 \gexec
\set ECHO all
SELECT pg_relation_size('g') / current_setting('block_size')::int < 1000 AS cut;
EXECUTE q;
INSERT INTO g SELECT i, -i, repeat('y', 3500) FROM generate_series(1001, 3000) i;
EXECUTE q;
VACUUM g;
EXECUTE q;
SELECT gpuvm.refresh('g') > 0 AS some;
EXECUTE q;
SELECT rows, unserved, changed_blocks, state FROM state;
-- Nothing is left, and then one row.
DELETE FROM g;
VACUUM g;
EXECUTE q;
SELECT gpuvm.refresh('g');
SELECT * FROM state;
INSERT INTO g VALUES (1, 1, 'x');
EXECUTE q;
SELECT gpuvm.refresh('g');
EXECUTE q;
SELECT * FROM state;
DROP TABLE g;
DEALLOCATE q;

-- No map at all.
CREATE TABLE n (a int8, b int4) WITH (autovacuum_enabled = off);
INSERT INTO n SELECT i, i FROM generate_series(1, 1000) i;
SELECT pg_relation_size('n', 'vm');
SELECT gpuvm.import('n', vacuum => false);
PREPARE q AS SELECT * FROM ask('SELECT count(*), sum(a), sum(b) FROM n');
EXECUTE q;
INSERT INTO n SELECT i, i FROM generate_series(1, 1000) i;
EXECUTE q;
SELECT gpuvm.refresh('n');
EXECUTE q;
SELECT * FROM state;
DROP TABLE n;
DEALLOCATE q;

-- An empty table that is filled.
CREATE TABLE e (a int8, b int4) WITH (autovacuum_enabled = off);
SELECT gpuvm.import('e');
PREPARE q AS SELECT * FROM ask('SELECT count(*), sum(a), sum(b) FROM e');
EXECUTE q;
INSERT INTO e SELECT i, i FROM generate_series(1, 1000) i;
EXECUTE q;
SELECT gpuvm.refresh('e');
EXECUTE q;
-- Unchanged: nothing is read again, however often one asks.
SELECT gpuvm.refresh('e');
VACUUM (FREEZE) e;
CALL note();
EXECUTE q;
SELECT gpuvm.refresh('e');
EXECUTE q;
SELECT * FROM state;

DROP SCHEMA protocol CASCADE;
