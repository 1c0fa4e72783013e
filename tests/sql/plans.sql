-- Scans by the virtual machine in every place where PostgreSQL puts a scan.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA plans;
SET search_path = plans;
-- Plans must not depend on statistics that nobody gathered.
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET enable_memoize = off;

CREATE TABLE t (id int PRIMARY KEY, k int, s int2, l int8, f float4, d float8, b bool, day date, ts timestamp, tz timestamptz)
	WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 20, i % 100, i * 3, i * 0.25, i * 0.5, i % 2 = 0, date '2000-01-01' + i % 50,
	timestamp '2000-01-01' + i * interval '1 hour', timestamptz '2000-01-01 00:00+00' + i * interval '1 hour' FROM generate_series(1, 2000) i;
CREATE TABLE u (k int, name text, v int) WITH (autovacuum_enabled = off);
INSERT INTO u SELECT i, 'name ' || i, i * i FROM generate_series(0, 9) i;
CREATE TABLE w (k int, x int) WITH (autovacuum_enabled = off);
INSERT INTO w SELECT i % 20, i FROM generate_series(1, 200) i;
-- Several units of rows, so that a cursor stops in the middle of a job.
CREATE TABLE big (id int, v int, l int8) WITH (autovacuum_enabled = off);
INSERT INTO big SELECT i, i % 100, i * 2 FROM generate_series(1, 150000) i;
SELECT gpuvm.import('t'), gpuvm.import('w'), gpuvm.import('big');
ANALYZE t, u, w, big;

SET gpuvm.force = on;
SET gpuvm.require = :device;

-- Prepared statements: generic plans, parameters of all types, and NULL.
SET plan_cache_mode = force_generic_plan;
PREPARE p_s (int2) AS SELECT count(*), sum(id) FROM t WHERE s = $1;
PREPARE p_i (int) AS SELECT count(*), sum(id) FROM t WHERE k < $1;
PREPARE p_l (int8) AS SELECT count(*), sum(id) FROM t WHERE l >= $1;
PREPARE p_f (float4) AS SELECT count(*), sum(id) FROM t WHERE f > $1;
PREPARE p_d (float8) AS SELECT count(*), sum(id) FROM t WHERE d < $1;
PREPARE p_b (bool) AS SELECT count(*), sum(id) FROM t WHERE b = $1;
PREPARE p_day (date) AS SELECT count(*), sum(id) FROM t WHERE day = $1 + 1;
PREPARE p_ts (timestamp) AS SELECT count(*), sum(id) FROM t WHERE ts < $1;
PREPARE p_tz (timestamptz) AS SELECT count(*), sum(id) FROM t WHERE tz <= $1;
EXECUTE p_s (7); EXECUTE p_s (-1); EXECUTE p_s (NULL);
EXECUTE p_i (3); EXECUTE p_i (NULL); EXECUTE p_i (2147483647);
EXECUTE p_l (5997); EXECUTE p_l (-9223372036854775808); EXECUTE p_l (NULL);
EXECUTE p_f (499.75); EXECUTE p_f ('NaN'); EXECUTE p_f ('-infinity'); EXECUTE p_f (NULL);
EXECUTE p_d (0.75); EXECUTE p_d ('NaN'); EXECUTE p_d (NULL);
EXECUTE p_b (true); EXECUTE p_b (NULL);
EXECUTE p_day ('2000-01-05'); EXECUTE p_day ('infinity'); EXECUTE p_day (NULL);
EXECUTE p_ts ('2000-01-01 03:00'); EXECUTE p_ts ('infinity'); EXECUTE p_ts (NULL);
EXECUTE p_tz ('2000-01-01 03:00+00'); EXECUTE p_tz (NULL);
-- Parameters that gate the whole statement, in keys, aggregates, lists, HAVING and output.
PREPARE gate (int) AS SELECT k, count(*) FROM t WHERE $1 = 5 GROUP BY k ORDER BY k LIMIT 2;
EXECUTE gate (5); EXECUTE gate (4); EXECUTE gate (NULL);
PREPARE gate_all (int) AS SELECT count(*) FROM t WHERE $1 = 5;
EXECUTE gate_all (5); EXECUTE gate_all (4);
PREPARE gate_rows (int) AS SELECT id FROM t WHERE $1 = 5 AND id < 3 ORDER BY id;
EXECUTE gate_rows (5); EXECUTE gate_rows (4);
PREPARE many (int, int, float8) AS SELECT k % $1 AS m, sum(s + $2), count(*) FILTER (WHERE d > $3), max(l) + $1 AS x FROM t
GROUP BY 1 HAVING count(*) > $2 ORDER BY 1;
EXECUTE many (3, 1, 900);
EXECUTE many (2, 999, 'infinity');
EXECUTE many (2, NULL, 1);
PREPARE listed (int, int) AS SELECT count(*), sum(id) FROM t WHERE k IN ($1, $2, 7) AND coalesce($2, k) = k;
EXECUTE listed (3, 5); EXECUTE listed (3, NULL);
PREPARE arrayed (int[]) AS SELECT count(*) FROM u WHERE k = ANY ($1);
EXECUTE arrayed ('{1,2}');
DEALLOCATE ALL;
-- now() and the like are read once.
SELECT count(*) FROM t WHERE tz < now() AND day < current_date AND ts < localtimestamp;
SELECT count(*) FROM t WHERE now() < '2000-01-01';

-- The plan follows what is imported.
RESET gpuvm.require;
PREPARE followed AS SELECT count(*), sum(x) FROM w WHERE k = 3;
EXECUTE followed;
EXPLAIN (COSTS OFF) EXECUTE followed;
SELECT gpuvm.release('w');
EXPLAIN (COSTS OFF) EXECUTE followed;
EXECUTE followed;
SELECT gpuvm.import('w');
EXPLAIN (COSTS OFF) EXECUTE followed;
SET gpuvm.enabled = off;
EXPLAIN (COSTS OFF) EXECUTE followed;
RESET gpuvm.enabled;
BEGIN;
SELECT gpuvm.release('w');
EXECUTE followed;
ROLLBACK;
SET gpuvm.require = :device;
EXECUTE followed;
DEALLOCATE followed;
RESET plan_cache_mode;

-- Joins: hash, merge, nested loop; outer, semi, anti.
SELECT u.name, count(*), sum(t.id) FROM t JOIN u USING (k) WHERE t.s < 50 GROUP BY u.name ORDER BY 1;
SET enable_hashjoin = off;
SELECT u.name, count(*), sum(t.id) FROM t JOIN u USING (k) WHERE t.s < 50 GROUP BY u.name ORDER BY 1 LIMIT 3;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT u.name, count(*), sum(w.x) FROM u JOIN w ON w.k > u.v GROUP BY u.name ORDER BY 1;
SELECT u.k, count(w.x) FROM u LEFT JOIN w ON w.k = u.v AND w.x < 50 GROUP BY u.k ORDER BY 1;
RESET enable_material;
RESET enable_mergejoin;
RESET enable_hashjoin;
SELECT a.id, b.x FROM t a JOIN w b ON a.id = b.x WHERE a.k = 7 AND b.x < 100 ORDER BY 1;
SELECT a.k, count(*) FROM w a JOIN w b USING (k) WHERE a.x < 30 AND b.x > 150 GROUP BY 1 ORDER BY 1;
SELECT u.k, u.name FROM u WHERE EXISTS (SELECT FROM w WHERE w.k = u.v AND x > 190) ORDER BY 1;
SELECT u.k FROM u WHERE NOT EXISTS (SELECT FROM t WHERE t.k = u.v) ORDER BY 1;
SELECT u.k, w.x FROM u FULL JOIN (SELECT * FROM w WHERE x < 5) w ON w.k = u.v ORDER BY 1, 2;
-- UNION, INTERSECT, EXCEPT, CTEs, subqueries in FROM, VALUES, window functions, DISTINCT ON.
SELECT k FROM t WHERE id < 4 UNION SELECT x FROM w WHERE x < 6 ORDER BY 1;
SELECT k FROM t WHERE id < 4 UNION ALL SELECT count(*)::int FROM w UNION ALL SELECT v FROM u WHERE k > 8 ORDER BY 1;
SELECT k FROM t INTERSECT SELECT x FROM w WHERE x > 15 ORDER BY 1;
SELECT x FROM w WHERE x < 30 EXCEPT SELECT k FROM t ORDER BY 1;
WITH a AS MATERIALIZED (SELECT k, sum(l) AS s FROM t GROUP BY k), b AS (SELECT k, max(x) AS m FROM w GROUP BY k)
SELECT a.k, s, m FROM a JOIN b USING (k) WHERE s > 600000 ORDER BY 1 LIMIT 3;
WITH RECURSIVE r AS (SELECT id, k FROM t WHERE id = 1 UNION ALL SELECT t.id, t.k FROM r JOIN t ON t.id = r.id * 3 WHERE t.id < 500)
SELECT * FROM r ORDER BY id;
SELECT sum(c), max(c) FROM (SELECT k, count(*) AS c FROM t WHERE b GROUP BY k) q;
SELECT k, x, rank() OVER (PARTITION BY k ORDER BY x DESC) FROM w WHERE x > 190 ORDER BY k, x;
SELECT k, sum(sum(x)) OVER (ORDER BY k) FROM w GROUP BY k ORDER BY k LIMIT 3;
SELECT DISTINCT ON (k) k, x FROM w WHERE k < 3 ORDER BY k, x DESC;
-- Initplans and correlated subplans: a scan that is run again for each row, with other parameters.
SELECT count(*), sum(id) FROM t WHERE id > (SELECT max(x) FROM w) AND k = (SELECT min(v) FROM u WHERE v > 1);
SELECT u.k, (SELECT count(*) FROM w WHERE w.k = u.k) AS c, (SELECT sum(t.id) FROM t WHERE t.s = u.v AND t.k = 1) AS s FROM u ORDER BY 1;
SELECT u.k, (SELECT x FROM w WHERE w.k = u.k AND x > u.v ORDER BY x LIMIT 1) AS first FROM u ORDER BY 1;
SELECT u.k, ARRAY(SELECT x FROM w WHERE w.k = u.k AND w.x < 50 ORDER BY x) AS xs FROM u ORDER BY 1;
SELECT k, count(*) FROM t WHERE l > (SELECT max(l) / 2 FROM t) GROUP BY k HAVING count(*) > (SELECT count(*) / 21 FROM t WHERE id < 1000) ORDER BY k LIMIT 2;
SELECT count(*) FROM t WHERE k IN (SELECT x FROM w WHERE x % 7 = 0);
-- LATERAL.
SELECT u.k, q.* FROM u, LATERAL (SELECT count(*) AS c, max(x) AS m FROM w WHERE w.k = u.k AND w.x > u.v) q ORDER BY 1;
SELECT u.k, q.x FROM u CROSS JOIN LATERAL (SELECT x FROM w WHERE w.k = u.k ORDER BY x DESC LIMIT 2) q ORDER BY 1, 2;
-- EXISTS and LIMIT stop early; OFFSET; LIMIT 0.
SELECT EXISTS (SELECT FROM big WHERE v = 42), EXISTS (SELECT FROM big WHERE v = 100);
SELECT count(*) FROM (SELECT id FROM big WHERE v < 50 LIMIT 17) q;
SELECT count(*) FROM (SELECT id FROM big WHERE v < 50 OFFSET 74990) q;
SELECT id FROM big LIMIT 0;
SELECT count(*) FROM (SELECT DISTINCT v FROM big LIMIT 7) q;
-- Every row once.
SELECT count(*), count(DISTINCT id), sum(id), min(id), max(id) FROM (SELECT id FROM big WHERE v <> 3 OFFSET 0) q;
-- No columns at all, columns more than once, expressions over them.
SELECT count(*) FROM (SELECT FROM big WHERE v = 5) q;
SELECT k, k, k + 1 AS k1, -k AS neg FROM w WHERE x = 5;
-- What the VM cannot scan is scanned by PostgreSQL, beside what it can.
RESET gpuvm.require;
SELECT count(*) FROM t WHERE k NOT IN (SELECT x FROM w WHERE x % 7 = 0);
SELECT count(*) FROM t TABLESAMPLE SYSTEM (100);
SELECT t.ctid, t.tableoid::regclass, t.k FROM t WHERE id = 1;
SELECT t FROM w t WHERE x = 1;
SELECT id FROM t WHERE k = 5 AND length(b::text) = 5 AND id < 100 ORDER BY id;
SELECT count(*) FROM t WHERE l > (SELECT avg(l) FROM t);
SET gpuvm.require = :device;

-- Cursors: FETCH, MOVE, several at once, scrolling, WITH HOLD.
\set QUIET off
BEGIN;
DECLARE c1 CURSOR FOR SELECT id, v FROM big WHERE v = 7 ORDER BY id;
DECLARE c2 SCROLL CURSOR FOR SELECT id FROM t WHERE k = 3 ORDER BY id;
DECLARE c3 CURSOR FOR SELECT k, count(*) FROM t GROUP BY k ORDER BY k;
DECLARE c4 NO SCROLL CURSOR FOR SELECT id FROM big WHERE v < 90;
FETCH 2 FROM c1;
FETCH 1 FROM c3;
MOVE 1000 IN c4;
FETCH 2 FROM c2;
FETCH BACKWARD 1 FROM c2;
FETCH LAST FROM c2;
MOVE 3 IN c1;
FETCH 1 FROM c1;
FETCH 2 FROM c3;
MOVE 60000 IN c4;
FETCH ABSOLUTE 5 FROM c2;
MOVE ALL IN c4;
FETCH 1 FROM c4;
CLOSE c1;
SELECT count(*) FROM big WHERE v < 90;
COMMIT;
-- A rolled back savepoint ends the cursors that it opened, and no others.
BEGIN;
DECLARE outer_cursor CURSOR FOR SELECT id FROM big WHERE v = 7 OFFSET 0;
MOVE 100 IN outer_cursor;
SAVEPOINT s;
DECLARE inner_cursor CURSOR FOR SELECT id FROM big WHERE v = 8 OFFSET 0;
MOVE 100 IN inner_cursor;
MOVE 100 IN outer_cursor;
ROLLBACK TO s;
MOVE ALL IN outer_cursor;
SELECT name FROM pg_cursors;
COMMIT;
-- An error in a subtransaction in the middle of a scan.
BEGIN;
DECLARE survivor CURSOR FOR SELECT id FROM big WHERE v = 7 OFFSET 0;
MOVE 1 IN survivor;
SAVEPOINT s;
SELECT count(*) FROM big WHERE 1 / v > 0;
ROLLBACK TO s;
MOVE ALL IN survivor;
COMMIT;
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT id FROM big WHERE v = 7 ORDER BY id;
FETCH 1 FROM held;
COMMIT;
FETCH 1 FROM held;
CLOSE held;
-- A cursor keeps its snapshot and its tablets, whatever happens to them after it was opened.
BEGIN;
DECLARE kept CURSOR FOR SELECT id FROM big WHERE v = 7 OFFSET 0;
MOVE 10 IN kept;
RESET gpuvm.require;
DELETE FROM big WHERE id > 1000;
SELECT gpuvm.release('big');
MOVE ALL IN kept;
ROLLBACK;
RESET gpuvm.require;
BEGIN;
DECLARE unopened CURSOR FOR SELECT id FROM big WHERE v = 7 OFFSET 0;
DELETE FROM big WHERE id > 1000;
MOVE ALL IN unopened;
ROLLBACK;
-- A program that flags an error after rows were handed out: PostgreSQL raises its own.
SELECT gpuvm.import('big');
BEGIN;
DECLARE raising CURSOR FOR SELECT id FROM big WHERE 10 / (149000 - id) IS NOT NULL OFFSET 0;
MOVE 5 IN raising;
MOVE ALL IN raising;
ROLLBACK;
\set QUIET on
-- WHERE CURRENT OF: the VM's rows have their ctid, and so have those of the alternative.
CREATE TABLE cur (a int, v int, c int) WITH (autovacuum_enabled = off);
INSERT INTO cur SELECT i, i, i FROM generate_series(1, 500) i;
SELECT gpuvm.import('cur');
SET gpuvm.require = :device;
BEGIN;
DECLARE c CURSOR FOR SELECT v FROM cur WHERE a = 107;
DECLARE d CURSOR FOR SELECT c, v FROM cur WHERE a = 307;
FETCH 1 FROM c;
FETCH 1 FROM d;
RESET gpuvm.require;
UPDATE cur SET v = -v WHERE CURRENT OF c;
DELETE FROM cur WHERE CURRENT OF d;
COMMIT;
SELECT * FROM cur WHERE a % 100 = 7 ORDER BY a;
BEGIN;
DECLARE c CURSOR FOR SELECT v FROM cur WHERE a = 108;
FETCH 1 FROM c;
UPDATE cur SET v = -v WHERE CURRENT OF c;
COMMIT;
SELECT * FROM cur WHERE v < 0 ORDER BY a;
-- PostgreSQL puts what can go back above a scan that cannot, and does not find the row below it: such a cursor is not ours, where its rows are a table's.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT v FROM cur WHERE a BETWEEN 109 AND 110;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
UPDATE cur SET v = -v WHERE CURRENT OF c;
SET gpuvm.require = :device;
DECLARE d SCROLL CURSOR FOR SELECT v FROM cur WHERE a IN (SELECT a FROM cur WHERE v = 300);
ROLLBACK;
SET gpuvm.require = :device;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT count(*) FROM cur;
FETCH 1 FROM c;
FETCH BACKWARD 1 FROM c;
DECLARE d SCROLL CURSOR FOR SELECT v FROM cur;
FETCH 1 FROM d;
ROLLBACK;

-- PL/pgSQL: loops, nested queries, exceptions, functions that query within a query.
CREATE FUNCTION loop_over(limit_v int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	r record;
	total bigint := 0;
BEGIN
	FOR r IN SELECT id, v FROM plans.big WHERE v < limit_v LOOP
		IF r.id % 10000 = 0 THEN
			total := total + (SELECT count(*) FROM plans.w WHERE x > r.v);
		END IF;
		total := total + 1;
		EXIT WHEN total > 100000;
	END LOOP;
	RETURN total;
END $$;
SELECT loop_over(3), loop_over(0), loop_over(1);
CREATE FUNCTION caught() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
	trouble text := '';
BEGIN
	FOR i IN 0..2 LOOP
		BEGIN
			SELECT count(*) INTO n FROM plans.t WHERE 10 / (k - i - 18) > 100;
			trouble := trouble || n || ';';
		EXCEPTION WHEN division_by_zero THEN
			trouble := trouble || SQLERRM || ';';
		END;
	END LOOP;
	RETURN trouble;
END $$;
SELECT caught();
CREATE FUNCTION of_k(int) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT sum(x) FROM plans.w WHERE k = $1';
CREATE FUNCTION of_k_plpgsql(key int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(x) FROM plans.w WHERE k = key); END $$;
SELECT k, of_k(k), of_k_plpgsql(k) FROM t WHERE id <= 10 ORDER BY k;
SELECT sum(of_k_plpgsql(k)) FROM t WHERE id % 100 = 3;
DO $$
DECLARE
	c1 CURSOR FOR SELECT id FROM plans.big WHERE v = 1;
	c2 CURSOR (key int) FOR SELECT id FROM plans.big WHERE v = key;
	a int; b int; n int := 0;
BEGIN
	OPEN c1; OPEN c2 (2);
	LOOP
		FETCH c1 INTO a; FETCH c2 INTO b;
		EXIT WHEN NOT FOUND;
		n := n + 1;
	END LOOP;
	RAISE NOTICE '% pairs', n;
END $$;

-- Into tables and out of the server.
CREATE TABLE made AS SELECT k, count(*) AS c, sum(l) AS s, avg(d) AS a FROM t GROUP BY k;
SELECT count(*), sum(c), sum(s), pg_typeof(min(a)) FROM made;
CREATE MATERIALIZED VIEW made_view AS SELECT id, f, ts FROM t WHERE b;
SELECT count(*), min(ts), max(f) FROM made_view;
INSERT INTO made SELECT k, max(x), 0, NULL FROM w WHERE x < 10 GROUP BY k;
INSERT INTO w SELECT k, id FROM t WHERE id > 1995;
SELECT count(*) FROM made;
COPY (SELECT id, b, day, ts, f FROM t WHERE id < 4 ORDER BY id) TO STDOUT;
COPY (SELECT k, sum(l) FROM t GROUP BY k ORDER BY k LIMIT 2) TO STDOUT (FORMAT csv, HEADER);
SELECT id, tz FROM t WHERE id = 3 \gset
\echo :id :tz
-- The changed rows come from PostgreSQL, the rows that say which ones from anywhere.
RESET gpuvm.require;
UPDATE u SET v = q.m FROM (SELECT k, max(id) AS m FROM t GROUP BY k) q WHERE q.k = u.k AND u.k < 2;
DELETE FROM u WHERE k IN (SELECT k FROM t WHERE id = 5);
MERGE INTO u USING (SELECT k, count(*) AS c FROM t WHERE k < 6 GROUP BY k) q ON u.k = q.k
WHEN MATCHED THEN UPDATE SET v = q.c WHEN NOT MATCHED THEN INSERT VALUES (q.k, 'new', q.c);
SELECT * FROM u ORDER BY k;

-- More registers than a program has.
SELECT string_agg(format('(id * %s)', i), ' + ') AS many FROM generate_series(1, 200) i \gset
SET gpuvm.require = cpu;
SELECT count(*) FROM t WHERE :many > 0;
SELECT id FROM t WHERE :many > 0;
SELECT sum(:many) FROM t;
RESET gpuvm.require;
SELECT count(*) FROM t WHERE :many > 0;

SET client_min_messages = warning;
DROP SCHEMA plans CASCADE;
