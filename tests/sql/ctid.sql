-- Rows' ctids, and the tables that they are in: of scans, of joins' rows, sorted, and of rows that tablets do not have.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
-- What programs must run on: the device under test.
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA ctid;
SET search_path = ctid;
\set ECHO none
\i tests/sql/include/ask_many.sql
\set ECHO all

CREATE TABLE a (id int, k int, t text, f float8) WITH (autovacuum_enabled = off);
CREATE TABLE b (k int8, v int, id int) WITH (autovacuum_enabled = off);
CREATE TABLE c (id int, k int2) WITH (autovacuum_enabled = off);
INSERT INTO a SELECT i, i * 7 % 500, 't' || i % 9, i * 0.5 FROM generate_series(1, 20000) i;
INSERT INTO b SELECT nullif(i % 600, 17), i % 11, i FROM generate_series(1, 3000) i;
INSERT INTO c SELECT i, i % 40 FROM generate_series(1, 100) i;
-- rows with gaps between their line pointers
DELETE FROM a WHERE id % 3 = 0;
VACUUM a;
CREATE TABLE parted (k int, v int8, w text) PARTITION BY RANGE (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100) WITH (autovacuum_enabled = off);
CREATE TABLE parted_2 (x int, k int, v int8, w text) WITH (autovacuum_enabled = off);
ALTER TABLE parted_2 DROP COLUMN x;
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (100) TO (500);
INSERT INTO parted SELECT i % 500, i, 'w' || i % 5 FROM generate_series(1, 5000) i;
CREATE TABLE away (k int, v text) WITH (autovacuum_enabled = off);
INSERT INTO away SELECT i, 'v' || i FROM generate_series(1, 30) i;
SET client_min_messages = warning;
SELECT sum(gpuvm.import(t)) FROM unnest('{a,b,c,parted_1,parted_2}'::regclass[]) t;
RESET client_min_messages;
ANALYZE a, b, c, parted, away;
SET gpuvm.force = on;

EXPLAIN (VERBOSE, COSTS OFF) SELECT ctid, id FROM a WHERE f > 9000;
EXPLAIN (VERBOSE, COSTS OFF) SELECT a.ctid, b.ctid, b.tableoid::regclass FROM a JOIN b USING (k) WHERE v = 3;
CREATE TABLE asked_of AS SELECT * FROM (VALUES
	(1, 'SELECT ctid, id FROM a WHERE f > 9000'),
	(2, 'SELECT ctid FROM a'),
	(3, 'SELECT ctid, tableoid::regclass, * FROM a WHERE k BETWEEN 3 AND 200'),
	(4, 'SELECT tableoid FROM c'),
	(5, 'SELECT id, ctid::text, t FROM a WHERE t = ''t3'' ORDER BY f DESC, id LIMIT 50'),
	(6, 'SELECT ctid, id FROM a ORDER BY k, id'),
	-- joins: of the first relation, of others, of all
	(10, 'SELECT a.ctid, a.id, b.id FROM a JOIN b USING (k)'),
	(11, 'SELECT b.ctid, a.id FROM a JOIN b USING (k) WHERE a.f < 3000'),
	(12, 'SELECT a.ctid, b.ctid, c.ctid FROM a JOIN b USING (k) JOIN c ON c.k = b.v WHERE a.id < 500'),
	(13, 'SELECT a.ctid, b.ctid, a.tableoid::regclass, b.tableoid::regclass FROM a LEFT JOIN b ON a.k = b.k AND b.v < 3 WHERE a.id < 3000'),
	(14, 'SELECT a.ctid, b.ctid, b.tableoid FROM a FULL JOIN b ON a.k = b.k WHERE coalesce(a.id, b.id) < 2000'),
	(15, 'SELECT a.ctid FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k AND b.v = 4)'),
	(16, 'SELECT a.ctid, a.tableoid::regclass FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k AND b.v > a.id)'),
	(17, 'SELECT a.ctid, c.ctid FROM a, c WHERE a.id < 300 AND a.id + c.id > 250'),
	(18, 'SELECT x.ctid, y.ctid FROM c x JOIN c y ON x.id BETWEEN y.id AND y.id + 3'),
	(19, 'SELECT a.ctid, b.ctid FROM a JOIN b USING (k) WHERE a.id < 5000 ORDER BY a.f, b.id'),
	(20, 'SELECT a.ctid, b.ctid FROM a JOIN b USING (k) ORDER BY a.f DESC, b.id LIMIT 7'),
	(21, 'SELECT a.ctid, n FROM a JOIN (SELECT v, count(*) AS n FROM b GROUP BY v) g ON g.v = a.k'),
	(22, 'SELECT a.ctid, x FROM a, generate_series(1, 3) x WHERE a.k = x'),
	-- leaves of a partitioned table
	(30, 'SELECT ctid, tableoid::regclass, k FROM parted WHERE v % 7 = 2'),
	(31, 'SELECT p.ctid, p.tableoid::regclass, c.ctid FROM parted p JOIN c USING (k)'),
	(32, 'SELECT p.ctid, p.tableoid::regclass, c.ctid FROM c LEFT JOIN parted p ON p.k = c.id + 50 AND p.v > 2000'),
	(33, 'SELECT ctid, w, tableoid FROM parted ORDER BY w, v LIMIT 20')) v (n, query);
INSERT INTO queries (query) SELECT query FROM asked_of ORDER BY n;
SELECT * FROM asked();
-- What stays with PostgreSQL.
INSERT INTO queries (query) VALUES
	('SELECT xmin IS NULL, id FROM c'),
	('SELECT c FROM c'),
	('SELECT id FROM a WHERE ctid = ''(3,4)'''),
	('SELECT ctid, id FROM c ORDER BY ctid'),
	('SELECT away.ctid, c.ctid FROM c JOIN away USING (k)');
SELECT * FROM asked();

-- Rows that only the delta has: new ones, changed ones, own ones; and without those that have gone.
BEGIN;
UPDATE a SET k = k + 1, f = -f WHERE id % 50 = 1;
DELETE FROM b WHERE id % 31 = 4;
INSERT INTO b SELECT i % 100, 3, 5000 + i FROM generate_series(1, 200) i;
UPDATE parted SET k = 499 - k WHERE v % 100 = 1;
INSERT INTO queries (query) SELECT query FROM asked_of ORDER BY n;
SELECT * FROM asked();
COMMIT;
-- HOT chains: a row's ctid is that of its version, whatever became of it before and after.
CREATE TABLE hot (id int, n int) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO hot SELECT i, 0 FROM generate_series(1, 2000) i;
VACUUM hot;
SELECT gpuvm.import('hot') > 0 AS imported;
INSERT INTO queries (query) VALUES ('SELECT ctid, id, n FROM hot WHERE id < 1000'), ('SELECT x.ctid, y.ctid, y.n FROM hot x JOIN hot y USING (id)');
UPDATE hot SET n = 1 WHERE id % 4 = 0;
UPDATE hot SET n = 2 WHERE id % 8 = 0;
SELECT * FROM asked();
VACUUM hot;
INSERT INTO queries (query) VALUES ('SELECT ctid, id, n FROM hot WHERE id < 1000'), ('SELECT x.ctid, y.ctid, y.n FROM hot x JOIN hot y USING (id)');
SELECT * FROM asked();
SELECT gpuvm.refresh('hot') IS NOT NULL AS refreshed;
INSERT INTO queries (query) VALUES ('SELECT ctid, id, n FROM hot WHERE id < 1000'), ('SELECT x.ctid, y.ctid, y.n FROM hot x JOIN hot y USING (id)');
SELECT * FROM asked();

-- A row is found again by its ctid; cursors keep what they began with.
SET gpuvm.require = :device;
CREATE TABLE tids AS SELECT ctid AS t, id FROM a WHERE f BETWEEN -900 AND 900;
RESET gpuvm.require;
SELECT count(*), count(*) FILTER (WHERE a.id = tids.id) AS found FROM tids JOIN a ON a.ctid = tids.t;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SET LOCAL gpuvm.require = :device;
DECLARE cur CURSOR FOR SELECT ctid, id FROM c WHERE k = 3;
FETCH 1 FROM cur;
RESET gpuvm.require;
UPDATE c SET k = 4 WHERE k = 3;
FETCH ALL FROM cur;
COMMIT;
SET client_min_messages = warning;
DROP SCHEMA ctid CASCADE;
