-- Rows of one program that another one reads stay in gpuvmd.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA sets;
SET search_path = sets;
CREATE TABLE a (id int, k int, b int2, v numeric(10,2), w numeric(15,2), f float8, r real, t text, d date, ok bool, big int8)
	WITH (autovacuum_enabled = off);
CREATE TABLE b (LIKE a) WITH (autovacuum_enabled = off);
CREATE TABLE dim (k int, name text) WITH (autovacuum_enabled = off);
CREATE TABLE plain (k int) WITH (autovacuum_enabled = off);
INSERT INTO a SELECT i, nullif(i % 400, 7), i % 7, CASE WHEN i % 11 > 0 THEN (i % 1000) / 10.0 END, 9000000000000.5 + i, CASE WHEN i % 50 = 0 THEN 'NaN' ELSE i / 7.0 END,
		i / 3.0, 'x' || i % 13, date '2024-01-01' + i % 300, i % 3 = 0, i * 1000003::int8
	FROM generate_series(1, 20000) i;
INSERT INTO b SELECT i, nullif(i % 600, 11), i % 5, (i % 700) / 10.0, -i, i / 9.0, i, 'x' || i % 17, date '2024-03-01' + i % 300, i % 2 = 0, -i
	FROM generate_series(1, 12000) i;
INSERT INTO dim SELECT i, 'name ' || i % 10 FROM generate_series(0, 499) i;
INSERT INTO plain SELECT i FROM generate_series(1, 20) i;
ANALYZE a, b, dim, plain;
SET client_min_messages = warning;
SELECT sum(gpuvm.import(t)) FROM unnest('{a,b,dim}'::regclass[]) t;
RESET client_min_messages;
SET gpuvm.force = on;

-- How many programs' rows stay where they are, and is anything left of them afterwards?
CREATE FUNCTION stay(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	line text;
	n int := 0;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		n := n + (line ~ '^ *Rows Stay: ')::int;
	END LOOP;
	RETURN n;
END $$;
CREATE PROCEDURE wait_for_limit(mb int8) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 200 LOOP
		IF (SELECT CASE WHEN mb IS NULL THEN value > 1 << 20 ELSE value = mb << 20 END FROM gpuvm.stats WHERE counter = 'result bytes at most') THEN
			RETURN;
		END IF;
		PERFORM pg_sleep(0.05);
	END LOOP;
	RAISE EXCEPTION 'the setting has not been taken over';
END $$;
CREATE FUNCTION rows_that_stay(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ '^ *Rows Stay: ' THEN
			RETURN NEXT trim(line);
		END IF;
	END LOOP;
END $$;
CREATE VIEW held AS SELECT sum(value) AS held FROM gpuvm.stats WHERE counter IN ('result sets', 'result bytes');
\set ECHO none
\i tests/sql/include/fallbacks.sql
\i tests/sql/include/answers.sql
\set ECHO all
CREATE TABLE queries (n int GENERATED ALWAYS AS IDENTITY, stay int, query text);
INSERT INTO queries (stay, query) VALUES
	-- UNION ALL below joins and aggregates
	(2, 'SELECT dim.name, sum(u.v), count(*), count(u.v) FROM (SELECT k, v FROM a UNION ALL SELECT k, v FROM b) u JOIN dim USING (k) GROUP BY dim.name'),
	(2, 'SELECT u.k, count(*), sum(u.b), max(u.d), bool_and(u.ok), sum(u.big), max(u.f), min(u.r) FROM (SELECT k, b, d, ok, big, f, r FROM a UNION ALL SELECT k, b, d, ok, big, f, r FROM b) u GROUP BY u.k'),
	(2, 'SELECT u.k, count(*) FROM (SELECT k, v FROM a UNION ALL SELECT k, v FROM b) u WHERE u.v > 60 GROUP BY u.k'),
	(3, 'SELECT count(*), sum(u.c) FROM (SELECT k, count(*) c FROM a GROUP BY k UNION ALL SELECT k, count(*) FROM b GROUP BY k UNION ALL SELECT k, count(*) FROM b WHERE id < 0 GROUP BY k) u JOIN dim USING (k)'),
	-- columns in another order, twice, and left out
	(2, 'SELECT count(*), sum(u.x), sum(u.y) FROM (SELECT k, id AS x, k AS y FROM a UNION ALL SELECT id, k, k FROM b) u JOIN dim USING (k)'),
	-- derived tables and CTEs, on either side
	(2, 'SELECT count(*), sum(x.c), sum(y.c), count(x.k), count(y.k) FROM (SELECT k, b, count(*) c FROM a GROUP BY k, b) x FULL JOIN (SELECT k, b, count(*) c FROM b GROUP BY k, b) y ON x.k = y.k AND x.b = y.b'),
	(1, 'SELECT a.id, s.c, s.s FROM a LEFT JOIN (SELECT k, count(*) c, sum(v) s FROM b GROUP BY k) s ON s.k = a.k AND s.c > a.b WHERE a.id < 3000'),
	(1, 'SELECT s.c, s.s, a.id FROM (SELECT k, count(*) c, sum(v) s FROM b GROUP BY k) s JOIN a ON s.k = a.k WHERE a.v < 3'),
	(1, 'SELECT count(*) FROM a WHERE k IN (SELECT k FROM b GROUP BY k HAVING sum(id) > 110000)'),
	(1, 'SELECT count(*) FROM a WHERE NOT EXISTS (SELECT FROM (SELECT k, max(id) m FROM b GROUP BY k) s WHERE s.k = a.k AND s.m > a.id)'),
	-- nested
	(2, 'SELECT count(*), sum(s.m) FROM dim JOIN (SELECT x.k, max(x.c) m, count(*) n FROM (SELECT k, b, count(*) c FROM a GROUP BY k, b) x JOIN b ON b.k = x.k GROUP BY x.k) s ON s.k = dim.k AND s.n > 3'),
	-- sums of numerics, of integers, of what is wide, and values as they are
	(1, 'SELECT a.id, s.sv, s.sb, s.si FROM a JOIN (SELECT k, sum(v) sv, sum(big) sb, sum(id) si FROM b GROUP BY k) s ON s.k = a.k WHERE s.sv > a.v * 20 AND a.id < 2000'),
	(1, 'SELECT count(*), sum(s.x) FROM dim JOIN (SELECT k, sum(w) x FROM a GROUP BY k) s ON s.k = dim.k'),
	(2, 'SELECT dim.name, sum(u.x) FROM dim JOIN (SELECT k, sum(w) x FROM a GROUP BY k UNION ALL SELECT k, sum(w) FROM b GROUP BY k) u USING (k) GROUP BY dim.name'),
	-- texts: codes go with their dictionary; of several dictionaries they do not
	(1, 'SELECT s.t, s.c, a.id FROM a JOIN (SELECT t, count(*) c, max(k) m FROM b GROUP BY t) s ON s.t = a.t AND s.m > a.id'),
	(1, 'SELECT upper(s.t), count(*) FROM dim JOIN (SELECT k, t, count(*) c FROM a GROUP BY k, t) s USING (k) WHERE s.t LIKE ''x1%'' GROUP BY upper(s.t)'),
	(2, 'SELECT u.t, count(*), max(upper(u.t)) FROM (SELECT t, k FROM a WHERE id < 5000 UNION ALL SELECT t, k FROM a WHERE v > 90) u JOIN dim USING (k) GROUP BY u.t'),
	(0, 'SELECT u.t, count(*) FROM (SELECT t, k FROM a UNION ALL SELECT t, k FROM b) u JOIN dim USING (k) GROUP BY u.t'),
	-- what PostgreSQL ends, or computes, passes through it
	(0, 'SELECT a.id, s.x FROM a JOIN (SELECT k, avg(v) x FROM b GROUP BY k) s ON s.k = a.k WHERE a.id < 100'),
	(0, 'SELECT sum(u.v) FROM dim JOIN (SELECT k, v FROM a UNION ALL SELECT k, 0 FROM b) u USING (k)'),
	(2, 'SELECT count(*) FROM dim JOIN (SELECT k FROM a UNION ALL SELECT k FROM plain) u USING (k)'),
	-- nothing
	(1, 'SELECT count(*), sum(s.c) FROM a LEFT JOIN (SELECT k, count(*) c FROM b WHERE id < 0 GROUP BY k) s ON s.k = a.k'),
	(2, 'SELECT count(*), sum(u.v) FROM (SELECT k, v FROM a WHERE id < 0 UNION ALL SELECT k, v FROM b WHERE id < 0) u JOIN dim USING (k)'),
	-- rescans: what the rows depend on changes, or does not
	(1, 'SELECT k, (SELECT count(*) FROM a JOIN (SELECT k, count(*) c FROM b WHERE id > plain.k * 500 GROUP BY k) s ON s.k = a.k AND s.c > a.b) FROM plain'),
	(1, 'SELECT k, (SELECT count(*) FROM a JOIN (SELECT k, count(*) c FROM b GROUP BY k) s ON s.k = a.k AND s.c > a.b + plain.k) FROM plain'),
	(2, 'SELECT p.k, x.* FROM plain p, LATERAL (SELECT count(*), sum(u.v) FROM (SELECT k, v FROM a WHERE id < p.k * 100 UNION ALL SELECT k, v FROM b) u JOIN dim USING (k)) x');
SET gpuvm.enabled = off;
CREATE TABLE expected AS SELECT n, answers(query) AS answer FROM queries;
RESET gpuvm.enabled;
SET gpuvm.require = :device;
SELECT n, query FROM queries JOIN expected e USING (n) WHERE answers(query) IS DISTINCT FROM answer ORDER BY n;
RESET gpuvm.require;
SELECT n, stay, stay(query) FROM queries WHERE stay(query) <> stay ORDER BY n;
SELECT * FROM held;

SELECT rows_that_stay('SELECT dim.name, sum(u.c) FROM (SELECT k, count(*) c FROM a GROUP BY k UNION ALL SELECT k, count(*) FROM b GROUP BY k) u JOIN dim USING (k) GROUP BY dim.name');

-- Rows that the tablets do not have are among them. (Texts that are new have codes of their own in each arm.)
BEGIN;
UPDATE a SET v = v + 1, t = 'new ' || t WHERE id % 97 = 0;
DELETE FROM b WHERE id % 89 = 0;
INSERT INTO b SELECT id + 100000, k, b, v, w, f, r, 'more', d, ok, big FROM b WHERE id < 500;
SET LOCAL gpuvm.enabled = off;
UPDATE expected e SET answer = answers(query) FROM queries q WHERE q.n = e.n;
SET LOCAL gpuvm.enabled = on;
SET LOCAL gpuvm.require = :device;
SELECT n, query FROM queries JOIN expected e USING (n) WHERE answers(query) IS DISTINCT FROM answer ORDER BY n;
SET LOCAL gpuvm.require = 'any';
SELECT n, stay, stay(query) FROM queries WHERE stay(query) <> stay ORDER BY n;
SELECT * FROM held;
ROLLBACK;

-- A cursor holds what it reads; its end, and that of a transaction that fails, leave nothing.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a.id, s.c FROM a JOIN (SELECT k, count(*) c FROM b GROUP BY k) s ON s.k = a.k ORDER BY a.id, s.c;
FETCH 2 FROM c;
SELECT held > 0 AS held FROM held;
SELECT count(*), sum(u.v) FROM (SELECT k, v FROM a UNION ALL SELECT k, v FROM b) u JOIN dim USING (k);
FETCH 1 FROM c;
FETCH BACKWARD 1 FROM c;
CLOSE c;
SELECT * FROM held;
DECLARE c CURSOR FOR SELECT a.id, s.c FROM a JOIN (SELECT k, count(*) c FROM b GROUP BY k) s ON s.k = a.k;
SAVEPOINT s;
DECLARE d CURSOR FOR SELECT count(*), sum(u.v) FROM (SELECT k, v FROM a UNION ALL SELECT k, v FROM b) u JOIN dim USING (k);
FETCH 1 FROM d;
SELECT 1 / 0;
ROLLBACK TO s;
SELECT * FROM held;
MOVE 10 FROM c;
SELECT held > 0 AS held FROM held;
ROLLBACK;
SELECT * FROM held;

-- Errors: those of PostgreSQL's plan are raised, and nothing else is.
SELECT sum(s.c) FROM dim JOIN (SELECT k, sum(id / (id - 5000)) c FROM a GROUP BY k) s USING (k);
SELECT sum(s.c) FROM dim JOIN (SELECT k, sum(id / (id - 5000)) c FROM a WHERE id <> 5000 GROUP BY k) s USING (k);
SELECT count(*), sum(u.x) FROM dim JOIN (SELECT k, id AS x FROM a WHERE 10 / (id - 7) < 5 UNION ALL SELECT k, id FROM b) u USING (k);
SELECT dim.k / (s.c - s.c) FROM dim JOIN (SELECT k, count(*) c FROM a GROUP BY k) s USING (k);
SELECT * FROM held;

-- Too little memory: the rows go as those of any other plan do.
ALTER SYSTEM SET gpuvm.result_memory = 0;
SELECT pg_reload_conf();
CALL wait_for_limit(0);
SELECT stay('SELECT count(*), sum(u.v) FROM (SELECT k, v FROM a UNION ALL SELECT k, v FROM b) u JOIN dim USING (k)');
ALTER SYSTEM SET gpuvm.result_memory = '1MB';
SELECT pg_reload_conf();
CALL wait_for_limit(1);
SELECT stay('SELECT count(*), sum(u.big), max(u.w), max(u.f), min(u.d) FROM (SELECT k, big, w, f, d FROM a UNION ALL SELECT k, big, w, f, d FROM b) u JOIN dim USING (k)');
SELECT stay('SELECT count(*), sum(u.v) FROM (SELECT k, v FROM a WHERE id < 10 UNION ALL SELECT k, v FROM b WHERE id < 10) u JOIN dim USING (k)');
SET gpuvm.require = :device;
SELECT count(*), sum(u.big), max(u.w), max(u.f), min(u.d) FROM (SELECT k, big, w, f, d FROM a UNION ALL SELECT k, big, w, f, d FROM b) u JOIN dim USING (k);
RESET gpuvm.require;
SELECT * FROM held;
ALTER SYSTEM RESET gpuvm.result_memory;
SELECT pg_reload_conf();
CALL wait_for_limit(NULL);
SET gpuvm.result_memory = 1;

-- A statement that is canceled leaves nothing.
SET statement_timeout = '300ms';
DO $$
BEGIN
	PERFORM count(*) FROM (SELECT x.k, count(*) c FROM a x JOIN a y ON x.b < y.b GROUP BY x.k) s JOIN dim USING (k);
	PERFORM pg_sleep(10);
EXCEPTION WHEN query_canceled THEN
	RAISE NOTICE 'canceled';
END $$;
RESET statement_timeout;
SELECT * FROM held;

SET client_min_messages = warning;
DROP SCHEMA sets CASCADE;
