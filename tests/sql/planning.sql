-- Planning takes no power of the depth of what is nested, and can be cancelled.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA planning;
SET search_path = planning;
CREATE TABLE t (a int, b int, v numeric(10,2), name text, ts timestamp) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i % 50, i % 7, i, 'x' || i % 20, '2024-01-01'::timestamp + i * interval '1 hour' FROM generate_series(1, 500) i;
CREATE TABLE parts (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (25) WITH (autovacuum_enabled = off);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (25) TO (50) WITH (autovacuum_enabled = off);
INSERT INTO parts SELECT i % 50, i % 7 FROM generate_series(1, 500) i;
ANALYZE t, parts;
SELECT gpuvm.import('t');
SELECT gpuvm.import('parts_1'), gpuvm.import('parts_2');
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
SET gpuvm.force = on;
SET max_stack_depth = '7MB';

-- Around `base`, so many times; # is the number of the level.
CREATE FUNCTION nested(n int, around text, base text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..n LOOP
		base := replace(replace(around, '#', i::text), '{}', base);
	END LOOP;
	RETURN base;
END $$;
CREATE FUNCTION chained(n int, part text, between_them text) RETURNS text LANGUAGE sql AS
	'SELECT string_agg(replace($2, ''#'', i::text), $3 ORDER BY i) FROM generate_series(1, $1) i';
-- What of it runs in programs, if it is planned at all.
CREATE FUNCTION planned(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	programs int := 0;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		programs := programs + (line LIKE '%Custom Scan (GpuVM)%')::int;
	END LOOP;
	RETURN CASE WHEN programs > 0 THEN 'with programs' ELSE 'without' END;
END $$;

-- Each of these took minutes, or gigabytes, and no timeout ended it.
SET statement_timeout = '60s';
SELECT planned(nested(100, 'SELECT a FROM t WHERE a IN ({})', 'SELECT a FROM t'));
SELECT planned(nested(60, 'SELECT a FROM parts WHERE a IN ({})', 'SELECT a FROM parts'));
SELECT planned(nested(60, 'SELECT a FROM t WHERE a NOT IN ({})', 'SELECT a FROM t'));
SELECT planned(nested(60, 'SELECT a FROM t x# WHERE EXISTS (SELECT FROM ({}) q WHERE q.a = x#.b)', 'SELECT a FROM t'));
SELECT planned(nested(60, 'SELECT q.a, max(q.b) AS b FROM t, ({}) q WHERE q.a = t.a GROUP BY q.a', 'SELECT a, b FROM t'));
SELECT planned(nested(60, 'SELECT a, max(b) AS b FROM ({}) q GROUP BY a', 'SELECT a, b FROM parts'));
SELECT planned('SELECT count(*) FROM t WHERE ' || chained(10, 'v > (SELECT avg(u.v) FROM t u WHERE u.a = t.a AND u.b > -#)', ' AND '));
SELECT planned('SELECT count(*) FROM t WHERE ' || nested(2000, 'coalesce({}, b)', 'a') || ' > 0');
SELECT planned('SELECT count(*) FROM t WHERE ' || nested(2000, 'coalesce({}, 1 / b)', 'a') || ' > 0');
SELECT planned('SELECT count(*) FROM t WHERE ' || nested(1000, 'CASE WHEN {} > # THEN b ELSE a END', 'a') || ' > 0');
SELECT planned('SELECT count(*) FROM t WHERE ' || nested(1000, 'CASE {} WHEN # THEN b ELSE a END', 'a') || ' > 0');
SELECT planned('SELECT count(*) FROM t WHERE ' || nested(1000, 'nullif({}, #)', 'a') || ' > 0');
SELECT planned('SELECT count(*) FROM t WHERE ' || nested(1000, '({} / (1 + v))', 'v') || ' > 0');
SELECT planned('SELECT count(*) FROM t WHERE ' || nested(1000, '({} + b * interval ''1 day'')', 'ts') || ' > now()::timestamp');
SELECT planned('SELECT count(*) FROM t WHERE ' || chained(1000, '(a = # AND b <> #)', ' OR '));
SELECT planned('SELECT count(*) FROM t t0 ' || chained(29, 'JOIN t t# ON t#.a = t0.a', ' '));
-- What is computed of a value twice doubles with each level, where it is put in the place of its name.
SET gpuvm.whole_query = on;
SELECT planned(nested(60, 'SELECT a + a AS a, count(*) AS b FROM (SELECT a + a AS a FROM ({}) p) q GROUP BY a', 'SELECT a, b FROM t'));
SELECT planned(nested(60, 'SELECT a + a AS a FROM ({} OFFSET 0) q', 'SELECT a FROM t'));
SELECT planned('SELECT count(*) FROM t WHERE ' || chained(1000, '(a = # AND b <> #)', ' OR '));
RESET gpuvm.whole_query;
RESET statement_timeout;

-- Nested within the limits, all levels are programs, and answers are right.
SET gpuvm.require = :device;
SELECT count(*) FROM t WHERE a IN (SELECT a FROM t WHERE a IN (SELECT a FROM parts WHERE a IN (SELECT b FROM t)));
SELECT count(*), sum(coalesce(coalesce(coalesce(nullif(a, 3), nullif(b, 3)), b), 1)) FROM t WHERE nullif(nullif(nullif(a, 1), 2), 3) > 3;
SELECT sum(CASE CASE a WHEN 1 THEN 2 ELSE b END WHEN 2 THEN 3 WHEN 4 THEN 5 ELSE a END) FROM t;
RESET gpuvm.require;

-- Cancelled while it is planned.
\set VERBOSITY terse
SET statement_timeout = '5ms';
SELECT planned(nested(150, 'SELECT a FROM t WHERE a NOT IN ({})', 'SELECT a FROM t'));
SELECT planned('SELECT count(*) FROM t WHERE ' || chained(100, 'v > (SELECT avg(u.v) FROM t u WHERE u.a = t.a AND u.b > -#)', ' AND '));
RESET statement_timeout;
SELECT count(*) FROM t;
SET client_min_messages = warning;
DROP SCHEMA planning CASCADE;
