-- Subqueries that depend on no row: a program has their values before it starts, PostgreSQL when the first row asks for them.
-- One that raises does so only where a row asks.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA lazy_subqueries;
SET search_path = lazy_subqueries;
CREATE TABLE t (a int, g int, v numeric(10,2), name text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 5, i, 'n' || i % 7 FROM generate_series(1, 1000) i;
CREATE TABLE u (a int, x float8) WITH (autovacuum_enabled = off);
INSERT INTO u SELECT i, i FROM generate_series(1, 10) i;
CREATE TABLE nothing (a int, v numeric(10,2)) WITH (autovacuum_enabled = off);
ANALYZE t, u, nothing;
SELECT gpuvm.import('t'), gpuvm.import('u'), gpuvm.import('nothing');
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
SET gpuvm.force = on;

-- No row asks.
SELECT count(*) FROM t WHERE g < 0 AND v > (SELECT 1 / (count(*) - count(*)) FROM u);
SELECT count(*) FROM nothing WHERE v > (SELECT 1 / (count(*) - count(*)) FROM u);
SELECT a FROM t WHERE g < 0 AND v > (SELECT 1 / (count(*) - count(*)) FROM u);
SELECT a FROM t WHERE g < 0 AND v > (SELECT 1 / (count(*) - count(*)) FROM u) ORDER BY v LIMIT 3;
SELECT g, count(*) FROM t WHERE g < 0 AND v > (SELECT 1 / (count(*) - count(*)) FROM u) GROUP BY g;
SELECT count(*) FILTER (WHERE g < 0 AND v > (SELECT 1 / (count(*) - count(*)) FROM u)), sum(a) FROM t;
SELECT count(*) FROM t JOIN u USING (a) WHERE u.a < 0 AND t.v > u.a + (SELECT 1 / (count(*) - count(*)) FROM u);
SELECT count(*) FROM t LEFT JOIN u ON t.a = u.a AND u.a < 0 AND t.v > u.a + (SELECT 1 / (count(*) - count(*)) FROM u);
SELECT g, count(*) FROM t GROUP BY g HAVING count(*) < 0 AND count(*) > (SELECT 1 / (count(*) - count(*)) FROM u);
SELECT count(*) FROM t WHERE g < 0 AND name = (SELECT name FROM t);
SELECT count(*) FROM t WHERE g < 0 AND name LIKE (SELECT name FROM t);
SELECT count(*) FROM t WHERE a > 0 OR EXISTS (SELECT FROM u WHERE 1 / (a - a) > 0);
SELECT count(*) FROM t WHERE g < 0 AND EXISTS (SELECT FROM u WHERE 1 / (a - a) > 0);
WITH c AS MATERIALIZED (SELECT a - a AS zero FROM u) SELECT count(*) FROM t WHERE g < 0 AND v > (SELECT sum(1 / zero) FROM c);
SELECT count(*) FROM t WHERE g < 0 AND v > (SELECT sum(1 / (a - a)) FROM u WHERE x > (SELECT avg(x) FROM u));

-- A row asks.
SELECT count(*) FROM t WHERE g = 0 AND v > (SELECT 1 / (count(*) - count(*)) FROM u);
SELECT count(*) FILTER (WHERE g = 0 AND v > (SELECT 1 / (count(*) - count(*)) FROM u)) FROM t;
SELECT count(*) FROM t JOIN u USING (a) WHERE t.v > u.a - 1 + (SELECT 1 / (count(*) - count(*)) FROM u);
SELECT count(*) FROM t WHERE name = (SELECT name FROM t);
WITH c AS MATERIALIZED (SELECT a - a AS zero FROM u) SELECT count(*) FROM t WHERE v > (SELECT sum(1 / zero) FROM c);
-- What is volatile waits for a row.
WITH c AS MATERIALIZED (SELECT a - a AS zero FROM u WHERE random() >= 0) SELECT count(*) FROM t WHERE g < 0 AND v > (SELECT sum(1 / zero) FROM c);

-- The session goes on, in transactions, too.
BEGIN;
SELECT count(*) FROM t WHERE g < 0 AND v > (SELECT 1 / (count(*) - count(*)) FROM u);
SELECT count(*) FROM t;
COMMIT;
PREPARE p AS SELECT count(*) FROM t WHERE g < $1 AND v > (SELECT 1000 / (count(*) - $2) FROM u);
SET plan_cache_mode = force_generic_plan;
EXECUTE p (-1, 10);
EXECUTE p (5, 0);
EXECUTE p (5, 10);
EXECUTE p (5, 5);
RESET plan_cache_mode;
DEALLOCATE p;

-- What raises nothing is evaluated before the program starts; what may raise, and does not, by an executor of its own. Both run in programs.
SET gpuvm.require = :device;
SELECT count(*) FROM t WHERE v > (SELECT avg(v) FROM t);
SELECT count(*) FROM t WHERE v > (SELECT avg(x) FROM u);
SELECT count(*) FROM t WHERE v > (SELECT 1000 / count(*) FROM u);
WITH c AS MATERIALIZED (SELECT a FROM u) SELECT count(*) FROM t WHERE v > (SELECT 1000 / count(*) FROM c) AND a > (SELECT 1 / count(*) FROM c);
SELECT count(*) FROM t WHERE a = (SELECT a FROM u WHERE x = 7);
SELECT count(*) FROM t WHERE a = (SELECT a FROM u WHERE x = -7);
SELECT count(*) FROM t WHERE name = (SELECT name FROM t WHERE a = 8);
SELECT count(*) FROM t WHERE name LIKE (SELECT name || '%' FROM t WHERE a = 8);
SELECT count(*) FROM t WHERE a < 5 OR EXISTS (SELECT FROM u WHERE 1 / a > 1);
SELECT count(*) FROM t WHERE v > (SELECT sum(x) FROM u WHERE x > (SELECT avg(x) FROM u));
SELECT g, count(*) FROM t WHERE v > (SELECT stddev(x) FROM u) GROUP BY g HAVING count(*) > (SELECT 1000 / count(*) FROM u) ORDER BY g;
-- Once for each outer value that it depends on.
SELECT u.a, (SELECT count(*) FROM t WHERE t.v > (SELECT 100 / u.a)) FROM u WHERE u.a < 4 ORDER BY 1;
RESET gpuvm.require;

-- A function that somebody has written is called as often as PostgreSQL calls it.
CREATE SEQUENCE calls;
CREATE FUNCTION called(int) RETURNS int VOLATILE LANGUAGE sql AS 'SELECT $1 + 0 * nextval(''calls'')::int';
SELECT count(*) FROM t WHERE g < 0 AND v > (SELECT max(called(a)) FROM u);
SELECT is_called FROM calls;
SELECT count(*) FROM t WHERE v > (SELECT max(called(a)) FROM u);
SELECT last_value FROM calls;

SET client_min_messages = warning;
DROP SCHEMA lazy_subqueries CASCADE;
