-- Cases that a review found: each gave a wrong answer, or raised where PostgreSQL does not.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA review;
SET search_path = review;
CREATE TABLE t (a int, b int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 10 FROM generate_series(1, 1000) i;
CREATE TABLE u (x int);
INSERT INTO u VALUES (3), (4);
CREATE TABLE empty (a int);
SELECT gpuvm.import('t'), gpuvm.import('empty');
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
SET gpuvm.force = on;

-- A subquery runs when a parameter is bound, before the first row: not one that CASE,
-- COALESCE or FILTER guards. Here it returns two rows.
SELECT count(*) FROM t WHERE b = CASE WHEN (SELECT count(*) FROM u) = 1 THEN (SELECT x FROM u) ELSE 0 END;
SELECT count(*) FROM t WHERE CASE WHEN a > 2000 THEN b = (SELECT 1 / (min(x) - min(x)) FROM u) ELSE true END;
SELECT count(*) FROM t WHERE coalesce(a, (SELECT x FROM u)) > 500;
SELECT sum(a + (SELECT x FROM u)) FILTER (WHERE a > 2000) FROM t;
-- One that is needed anyway is no obstacle.
SET gpuvm.require = :device;
SELECT count(*), sum(a) FILTER (WHERE b > (SELECT min(x) FROM u)) FROM t WHERE b < (SELECT max(x) + 2 FROM u);
SELECT count(*) FROM t WHERE CASE (SELECT max(x) FROM u) WHEN 4 THEN b = 1 ELSE b = 2 END;
RESET gpuvm.require;

-- A condition without columns is evaluated once, without rows too.
SELECT count(*) FROM empty WHERE 1 / (SELECT 0) = 1;
SELECT count(*) FROM t WHERE 1 / (SELECT 1) = 1;

-- WHERE CURRENT OF where the alternative plan answers, below a condition without columns.
BEGIN;
UPDATE t SET b = 0 WHERE a = 1000;
DECLARE c NO SCROLL CURSOR FOR SELECT b FROM t WHERE a BETWEEN 10 AND 12 AND (SELECT true);
FETCH 2 FROM c;
UPDATE t SET b = 100 WHERE CURRENT OF c;
SELECT a FROM t WHERE b = 100;
ROLLBACK;

SET client_min_messages = warning;
DROP SCHEMA review CASCADE;
