-- When PostgreSQL answers instead: errors in its own words, changed tables, snapshots, settings; and how one is told.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA fallback;
SET search_path = fallback;
SET gpuvm.force = on;

CREATE TABLE t (id int PRIMARY KEY, s int2, i int4, l int8, f float4, d float8, b bool, day date) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT k, k % 100, k % 10, k, k, k, k % 2 = 0, date '2000-01-01' + k FROM generate_series(1, 1000) k;
INSERT INTO t VALUES (1001, 32767, 2147483647, 9223372036854775807, 3e38, 1e308, NULL, '5874897-12-31'),
	(1002, -32768, -2147483648, -9223372036854775808, -3e38, -1e308, NULL, 'infinity'), (1003, 0, 0, 0, 0, 0, false, '-infinity');
SELECT gpuvm.import('t');

-- PostgreSQL raises its own errors, with gpuvm.require and without: the VM only flags them.
SELECT count(*) FROM t WHERE 10 / i > 1;
SELECT count(*) FROM t WHERE l % i = 1;
SELECT id FROM t WHERE 1.0::float8 / d > 0.5;
SELECT sum(f / (i - 5)) FROM t;
SELECT max(s * s) FROM t;
SET gpuvm.require = :device;
SELECT count(*) FROM t WHERE 10 / i > 1;
SELECT count(*) FROM t WHERE 10 % s = 1;
SELECT id FROM t WHERE 1.0::float8 / d > 0.5;
SELECT sum(i + 1) FROM t;
SELECT sum(i - 2) FROM t;
SELECT sum(-i) FROM t;
SELECT sum(abs(i)) FROM t;
SELECT sum(s + 1::int2) FROM t;
SELECT sum(s * 2::int2) FROM t;
SELECT sum(l * 2) FROM t;
SELECT sum(l + 1) FROM t;
SELECT sum(-l) FROM t;
SELECT count(*) FROM t WHERE l / (-1) < 0;
SELECT count(*) FROM t WHERE i / (-1) < 0;
SELECT count(*) FROM t WHERE f * 10::float4 > 0;
SELECT count(*) FROM t WHERE d * 10 > 0;
SELECT count(*) FROM t WHERE d + d > 0;
SELECT count(*) FROM t WHERE d * 1e-320 * 1e-320 > 0;
SELECT count(*) FROM t WHERE i::int2 > 0;
SELECT count(*) FROM t WHERE l::int4 > 0;
SELECT count(*) FROM t WHERE d::int4 > 0;
SELECT count(*) FROM t WHERE f::int8 > 0;
SELECT count(*) FROM t WHERE d::float4 > 0;
SELECT count(*) FROM t WHERE day + 1 > '2000-01-01';
SELECT count(*) FROM t WHERE day - 1 > '2000-01-01' AND id > 1000;
SELECT max(day - date '2000-01-01') FROM t;
SELECT count(*) FROM t WHERE day::timestamp > '2000-01-01';
SELECT sum(10 / i) FROM t GROUP BY b;
SELECT 10 / i AS q, count(*) FROM t GROUP BY 1;
-- Rows were handed out before the one that raises.
SELECT 100 / (1000 - id) FROM t WHERE id BETWEEN 998 AND 1001;
-- Errors that a condition, a CASE or a FILTER guards are none.
SELECT count(*) FROM t WHERE i <> 0 AND 10 / i > 1;
SELECT count(*) FROM t WHERE 10 / i > 1 AND i <> 0;
SELECT count(*) FROM t WHERE i = 0 OR 10 / i > 1;
SELECT count(*) FROM t WHERE CASE WHEN i = 0 THEN false ELSE 10 / i > 1 END;
SELECT count(*) FROM t WHERE CASE i WHEN 0 THEN 0 WHEN 1 THEN 7 ELSE 10 / i END > 1;
SELECT count(*) FROM t WHERE coalesce(nullif(i, i), CASE WHEN i = 0 THEN 5 END, 10 / i) > 1;
SELECT count(*) FROM t WHERE 10 / nullif(i, 0) > 1;
SELECT sum(10 / i) FILTER (WHERE i <> 0), count(*) FROM t;
SELECT sum(CASE WHEN id <= 1000 THEN s + 1::int2 END), sum(l * 2) FILTER (WHERE abs(d) < 1e10) FROM t;
SELECT sum(10 / i) FROM t WHERE i > 0;
SELECT count(*) FROM t WHERE NOT (i = 0 OR NOT (10 / i > 1));
SELECT count(*) FROM t WHERE (b AND i <> 0 AND 10 / i > 1) OR (id > 1000 AND i <> 0);
SELECT count(*) FROM t WHERE (b AND 10 / i > 1) IS NOT TRUE AND i <> 0;
-- Where LIMIT or EXISTS asks for no more, nobody has raised what the machine flags: PostgreSQL's plan gave the rows.
SELECT 100 / i FROM t WHERE id < 1003 AND id > 9 LIMIT 2;
SELECT id FROM t WHERE 100 / i > 5 LIMIT 1;
SELECT id FROM t WHERE i > 0 AND 10 / (i - 3) < 0 ORDER BY id LIMIT 1;
SELECT EXISTS (SELECT FROM t WHERE id < 1003 AND 100 / i > 5);
SELECT v.x, q.id FROM (VALUES (1), (2)) v(x), LATERAL (SELECT id FROM t WHERE 100 / i > 5 AND id >= v.x LIMIT 1) q;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t WHERE 100 / i > 5;
FETCH 1 FROM c;
ROLLBACK;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT t.id FROM t JOIN t u USING (id) WHERE 100 / t.i > 5 AND u.s < 20 AND u.i < 9;
FETCH 1 FROM c;
ROLLBACK;
RESET gpuvm.require;
SELECT id FROM t WHERE 100 / i > 5 AND id > 3 LIMIT 1;

-- What counts and what does not: the counters move by what a statement did.
CREATE TABLE counters AS SELECT * FROM gpuvm.stats WITH NO DATA;
CREATE FUNCTION moved() RETURNS TABLE (counter text) LANGUAGE sql AS
$$ SELECT n.counter FROM gpuvm.stats n JOIN counters o USING (counter) WHERE n.value > o.value AND n.counter NOT IN ('queries on cuda', 'bytes moved', 'restamped blocks') ORDER BY n.counter COLLATE "C" $$;
CREATE PROCEDURE note() LANGUAGE sql AS $$ DELETE FROM counters; INSERT INTO counters SELECT * FROM gpuvm.stats $$;
CALL note();
SELECT count(*) FROM t WHERE i > 5;
SELECT * FROM moved();
CALL note();
SELECT count(*) FROM t WHERE 10 / i > 1;
SELECT * FROM moved();
CALL note();
SELECT count(*) FROM counters;
SELECT * FROM moved();

-- A changed table: right answers at once. What tablets do not serve is read from the heap, and the program runs over both.
CREATE TABLE c (id int PRIMARY KEY, v int) WITH (autovacuum_enabled = off);
INSERT INTO c SELECT k, k FROM generate_series(1, 1000) k;
SELECT gpuvm.import('c');
PREPARE total AS SELECT count(*), sum(v) FROM c;
\set vm_total 'SET gpuvm.require = ' :device '; EXECUTE total; RESET gpuvm.require'
:vm_total;
CALL note();
INSERT INTO c VALUES (1001, 1001);
EXECUTE total;
SELECT * FROM moved();
:vm_total;
SET gpuvm.require = :device;
SELECT id, v FROM c WHERE id > 999 ORDER BY id;
RESET gpuvm.require;
UPDATE c SET v = -v WHERE id <= 10;
:vm_total;
DELETE FROM c WHERE id > 500;
:vm_total;
-- VACUUM sets the bits again, but not the stamp.
VACUUM c;
:vm_total;
SELECT gpuvm.import('c');
:vm_total;
-- Own uncommitted changes are seen, and not when they are rolled back.
BEGIN;
UPDATE c SET v = v + 1;
:vm_total;
ROLLBACK;
:vm_total;
SELECT gpuvm.import('c');
BEGIN;
SAVEPOINT s;
DELETE FROM c WHERE id = 100;
:vm_total;
ROLLBACK TO s;
:vm_total;
SAVEPOINT s;
INSERT INTO c VALUES (2000, 2000);
RELEASE s;
:vm_total;
ROLLBACK;
:vm_total;
-- Every block is changed, and rows of both kinds raise, or do not.
UPDATE c SET v = v;
:vm_total;
SELECT count(*) FROM c WHERE 1000 / (id - 100) > 3;
INSERT INTO c VALUES (3000, 0);
SELECT count(*) FROM c WHERE 1000 / v > 3;
SET gpuvm.require = :device;
SELECT count(*) FROM c WHERE v <> 0 AND 1000 / v > 3;
RESET gpuvm.require;
DELETE FROM c WHERE id = 3000;
-- Rows were handed out before the unit with the one that raises: PostgreSQL evaluates that unit up to it, without the rows of
-- changed blocks, whose old versions are still in the tablets.
CREATE TABLE raising (id int, v int) WITH (autovacuum_enabled = off);
INSERT INTO raising SELECT k, CASE WHEN k <> 49000 THEN k % 100 + 1 ELSE 0 END FROM generate_series(1, 50000) k;
SELECT gpuvm.import('raising');
CREATE TABLE before AS SELECT id, (ctid::text::point)[0] AS block FROM raising;
UPDATE raising SET v = v WHERE id IN (100, 40000, 48000);
CREATE FUNCTION until_error(OUT n bigint, OUT total bigint) LANGUAGE plpgsql AS $$
DECLARE
	c CURSOR FOR SELECT id FROM raising WHERE 1000 / v >= 0;
	id int;
BEGIN
	n := 0;
	total := 0;
	OPEN c;
	LOOP
		BEGIN
			FETCH c INTO id;
		EXCEPTION WHEN division_by_zero THEN
			RETURN;
		END;
		n := n + 1;
		total := total + id;
	END LOOP;
END $$;
SET gpuvm.threads = 1;
SELECT u.n = b.n AND u.total = b.total AS same, u.n BETWEEN 48000 AND 48999 AS many
FROM until_error() u, (SELECT count(*) AS n, sum(id) AS total FROM before
WHERE id < 49000 AND block NOT IN (SELECT block FROM before WHERE id IN (100, 40000, 48000))) b;
RESET gpuvm.threads;
-- Where reading the changed blocks costs more than another plan altogether, that one runs.
CREATE TABLE large (id int PRIMARY KEY, v int) WITH (autovacuum_enabled = off);
INSERT INTO large SELECT k, k FROM generate_series(1, 50000) k;
SELECT gpuvm.import('large');
ANALYZE large;
RESET gpuvm.force;
PREPARE part AS SELECT count(v), sum(v) FROM large WHERE id <= 5000;
SET gpuvm.require = :device;
EXECUTE part;
-- (plans are made anew after this)
RESET gpuvm.require;
EXECUTE part;
UPDATE large SET v = v + 1;
CALL note();
EXECUTE part;
SELECT * FROM moved();
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE part;
-- The planner knows how many blocks the tablets do not have at all.
DEALLOCATE part;
EXPLAIN (COSTS OFF) SELECT count(v), sum(v) FROM large WHERE id <= 5000;
SET gpuvm.force = on;
SELECT gpuvm.import('c');
-- REPEATABLE READ: the table as its snapshot has it.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SET LOCAL gpuvm.require = :device;
EXECUTE total;
EXECUTE total;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SET LOCAL gpuvm.require = :device;
EXECUTE total;
COMMIT;
-- A statement that changes the table it reads, and one that locks its rows.
EXPLAIN (COSTS OFF) UPDATE c SET v = 0 WHERE v = 17;
UPDATE c SET v = 0 WHERE v = 17;
SELECT gpuvm.import('c');
SELECT id FROM c WHERE id = 20 FOR UPDATE;
-- A row lock changes nothing that anybody sees.
:vm_total;

-- New files and new columns.
TRUNCATE c;
EXECUTE total;
INSERT INTO c SELECT k, k * 2 FROM generate_series(1, 300) k;
EXECUTE total;
SELECT gpuvm.import('c');
BEGIN;
TRUNCATE c;
INSERT INTO c VALUES (1, 5);
EXECUTE total;
ROLLBACK;
SET gpuvm.require = :device;
EXECUTE total;
RESET gpuvm.require;
CLUSTER c USING c_pkey;
CALL note();
EXECUTE total;
SELECT * FROM moved();
SELECT gpuvm.import('c');
VACUUM FULL c;
EXECUTE total;
SET gpuvm.require = :device;
EXECUTE total;
RESET gpuvm.require;
SELECT gpuvm.import('c');
ALTER TABLE c ALTER COLUMN v TYPE int8 USING v * 10;
DEALLOCATE total;
PREPARE total AS SELECT count(*), sum(v) FROM c;
EXECUTE total;
SELECT gpuvm.import('c');
SET gpuvm.require = :device;
EXECUTE total;
ALTER TABLE c RENAME COLUMN v TO w;
SELECT count(*), sum(w) FROM c;
ALTER TABLE c RENAME TO renamed;
SELECT count(*), sum(w) FROM renamed WHERE w > 100;
CREATE INDEX ON renamed (w);
SELECT count(*), sum(w) FROM renamed WHERE w > 100;
RESET gpuvm.require;
ALTER TABLE renamed SET UNLOGGED;
SELECT count(*), sum(w) FROM renamed;
ALTER TABLE renamed RENAME TO c;

-- Settings: turned off after planning, the device, and what they say.
SET gpuvm.enabled = off;
SELECT count(*) FROM t WHERE i > 5;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE i > 5;
SET gpuvm.require = :device;
SELECT count(*) FROM t WHERE i > 5;
RESET gpuvm.require;
RESET gpuvm.enabled;
BEGIN;
DECLARE early CURSOR FOR SELECT id FROM t WHERE i > 5 ORDER BY id;
SET LOCAL gpuvm.enabled = off;
FETCH 2 FROM early;
COMMIT;
SET gpuvm.require = cpu;
SELECT count(*) FROM t WHERE i > 5;
RESET gpuvm.require;
-- Without force a small table, or a look-up by its index, is left to PostgreSQL.
RESET gpuvm.force;
EXPLAIN (COSTS OFF) SELECT v FROM (SELECT i AS v, id FROM t) q WHERE id = 7;
SELECT node, reason, hint FROM gpuvm.why_not('SELECT i FROM t WHERE id = 7');
SET gpuvm.require = :device;
SELECT i FROM t WHERE id = 7;
RESET gpuvm.require;
SET gpuvm.force = on;

-- Released under a cached plan.
PREPARE again AS SELECT sum(i) FROM t WHERE id <= 1000;
SET plan_cache_mode = force_generic_plan;
EXECUTE again;
SELECT gpuvm.release('t');
EXECUTE again;
SET gpuvm.require = :device;
-- A table that is not imported is none of gpuvm's business.
EXECUTE again;
RESET gpuvm.require;
SELECT gpuvm.import('t', ARRAY['id', 'l']);
EXECUTE again;
SET gpuvm.require = :device;
EXECUTE again;
RESET gpuvm.require;

-- Who wants a few rows would wait for all of the changed blocks: there PostgreSQL's plan is cheaper, though not for all rows.
CREATE TABLE few (id int, a int) WITH (autovacuum_enabled = off);
INSERT INTO few SELECT k, k % 1000 FROM generate_series(1, 100000) k;
SELECT gpuvm.import('few');
ALTER TABLE few ALTER a SET STATISTICS 1000;	-- of all rows, not of a sample that is another each time
ANALYZE few;
DELETE FROM few WHERE id % 100 = 1;
CREATE FUNCTION answered(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	who text := 'PostgreSQL, planned';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF) ' || query LOOP
		who := coalesce(substring(line FROM 'Fallback: ([a-z ]*)'), CASE WHEN line ~ 'Delta Blocks' THEN 'VM' END, who);
	END LOOP;
	RETURN trim(who);
END $$;
RESET gpuvm.force;
SET max_parallel_workers_per_gather = 0;
SELECT q, answered(q) FROM unnest(ARRAY[
	'SELECT id FROM few WHERE a = 7',
	'SELECT id FROM few WHERE a = 7 LIMIT 10',
	'SELECT id FROM few WHERE a = 7 ORDER BY id LIMIT 10',
	'SELECT count(*) FROM few WHERE a = 7 LIMIT 1',
	'SELECT EXISTS (SELECT FROM few WHERE a = 7)']) q;

SET client_min_messages = warning;
DROP SCHEMA fallback CASCADE;
