-- Groups by what no program computes: a program makes groups of its columns, PostgreSQL puts them together.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA rewrite_keys;
SET search_path = rewrite_keys;
SET timezone = 'Europe/Berlin';
SET max_parallel_workers_per_gather = 0;
SET gpuvm.whole_query = off;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE t (id int NOT NULL, k int, s int2, l int8, n numeric(8,2), free numeric, f float8, city text, country varchar(8), c char(4), m mood, day date, ts timestamp, tz timestamptz, b bool, x int)
	WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, nullif(i % 23, 4), i % 5, nullif(i % 11, 2) * 10000000000, nullif(i % 13, 7) * 0.5, i % 4 * 0.10, CASE i % 4 WHEN 0 THEN '-0'::float8 ELSE i % 3 END,
	nullif('c' || i % 7, 'c3'), 'l' || i % 3, 'x' || i % 6, (ARRAY['sad', 'ok', 'happy'])[i % 3 + 1]::mood, date '2024-02-20' + i % 60,
	CASE i % 50 WHEN 0 THEN 'infinity' WHEN 1 THEN NULL ELSE timestamp '2024-03-30' + i * interval '7 min' END,
	CASE i % 50 WHEN 0 THEN '-infinity' WHEN 1 THEN NULL ELSE timestamptz '2024-03-30' + i * interval '7 min' END, nullif(i % 3, 2) = 1, nullif(i % 10, 0)
	FROM generate_series(1, 2000) i;
CREATE TABLE dim (city text, region text) WITH (autovacuum_enabled = off);
INSERT INTO dim SELECT 'c' || i, 'r' || i % 2 FROM generate_series(0, 6) i;
SET client_min_messages = warning;
SELECT sum(gpuvm.import(t)) FROM unnest('{t,dim}'::regclass[]) t;
RESET client_min_messages;
ANALYZE t, dim;

-- Who makes groups: a program that PostgreSQL puts together (groups of groups), a program alone, or PostgreSQL; and is the answer PostgreSQL's own?
CREATE FUNCTION answer(query text, OUT answer text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'WITH q AS MATERIALIZED (' || query || ') SELECT count(*) || '' rows '' || md5(coalesce(string_agg(q::text, ''|'' ORDER BY q::text COLLATE "C"), '''')) FROM q'
	INTO answer;
EXCEPTION WHEN division_by_zero OR numeric_value_out_of_range THEN
	answer := 'ERROR ' || SQLSTATE;
END
$$;
CREATE FUNCTION ask(query text, OUT how text, OUT rows text) LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
	own text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		plan := plan || line || E'\n';
	END LOOP;
	how := CASE WHEN plan !~ 'GpuVM' THEN 'PostgreSQL' WHEN plan ~ 'key_groups' THEN 'groups of groups' WHEN plan ~ '(Aggregate|Unique).*GpuVM' THEN 'rows' ELSE 'groups' END;
	PERFORM set_config('gpuvm.require', CASE WHEN how = 'PostgreSQL' THEN 'any' ELSE replace(current_setting('gpuvm.device'), 'auto', 'vm') END, true);
	rows := answer(query);
	PERFORM set_config('gpuvm.require', 'any', true), set_config('gpuvm.enabled', 'off', true);
	own := answer(query);
	PERFORM set_config('gpuvm.enabled', 'on', true);
	rows := CASE WHEN rows = own THEN regexp_replace(rows, 'rows .*', 'rows') ELSE format('%s, PostgreSQL has %s', rows, own) END;
END
$$;
CREATE TABLE queries (id int GENERATED ALWAYS AS IDENTITY, query text);
CREATE FUNCTION asked() RETURNS TABLE (how text, rows text, query text) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT a.how, a.rows, q.query FROM rewrite_keys.queries q, rewrite_keys.ask(q.query) a ORDER BY q.id;
	DELETE FROM rewrite_keys.queries;
END
$$;
SET gpuvm.force = on;

-- Keys, and every aggregate that has parts.
INSERT INTO queries (query) VALUES
	('SELECT to_char(day, ''YYYY-MM''), count(*), count(x), sum(x), sum(s), sum(l), sum(n), avg(x), avg(s), avg(l), avg(n) FROM t GROUP BY 1'),
	('SELECT k::text, min(x), max(n), min(city), max(day), min(m), max(c), bool_and(b), bool_or(b), every(b), bit_and(x), bit_or(l) FROM t GROUP BY 1'),
	('SELECT city || '', '' || country, count(*) FILTER (WHERE x > 3), sum(n) FILTER (WHERE b), avg(x) FILTER (WHERE k = 2) FROM t GROUP BY 1'),
	('SELECT concat(city, k), country, count(*) FROM t WHERE x > 3 GROUP BY 1, 2 HAVING count(*) > 2'),
	('SELECT length(city), to_char(day, ''Mon''), count(*) FROM t GROUP BY 1, 2'),
	('SELECT upper(city) || k % 3, sum(x) FROM t GROUP BY 1'),
	('SELECT c || ''|'', m::text || k, count(*) FROM t GROUP BY 1, 2'),
	('SELECT to_char(day, ''YYYY-MM'') AS month, sum(n) AS n FROM t GROUP BY 1 ORDER BY n DESC, month LIMIT 2'),
	('SELECT to_char(day, ''YYYY-MM''), sum(sum(x)) OVER (ORDER BY to_char(day, ''YYYY-MM'')) FROM t GROUP BY 1'),
	('SELECT DISTINCT to_char(day, ''YYYY-MM''), city FROM t'),
	('SELECT DISTINCT city || country FROM t ORDER BY 1 DESC LIMIT 3'),
	('SELECT region || to_char(day, ''MM''), count(*), sum(t.n) FROM t JOIN dim USING (city) GROUP BY 1'),
	('SELECT region || country, count(*) FROM t LEFT JOIN dim USING (city) GROUP BY 1'),
	('WITH few AS (SELECT * FROM t WHERE k < 9) SELECT k::text, count(*) FROM few GROUP BY 1'),
	('SELECT d, count(*) FROM (SELECT to_char(day, ''DD'') AS d, sum(x) AS x FROM t GROUP BY 1) s WHERE x > 3 GROUP BY d'),
	('SELECT CASE WHEN x <> 0 THEN (10 / x)::text ELSE ''none'' END, count(*) FROM t GROUP BY 1'),
	('SELECT CASE concat(city, nullif(k % 2, 1)) WHEN ''c20'' THEN ''y'' WHEN city THEN ''z'' ELSE city END, count(*) FROM t GROUP BY 1'),
	('SELECT CASE k WHEN (''{1,2}''::text[]::int[])[1] THEN ''one'' WHEN (ARRAY[to_char(day, ''DD'')]::int[])[1] THEN ''day'' ELSE ''none'' END, count(*) FROM t GROUP BY 1'),
	('SELECT (10 / s)::text, count(*) FROM t GROUP BY 1'),
	('SELECT k::text, count(*) FROM t WHERE x = -1 GROUP BY 1'),
	('SELECT to_char(avg(x), ''9.99''), k::text FROM t GROUP BY 2');
SELECT * FROM asked();

-- What is DISTINCT is a key of the groups, too, and the condition that it is asked under.
INSERT INTO queries (query) VALUES
	('SELECT to_char(day, ''YYYY-MM''), count(DISTINCT x), sum(n), count(*), avg(x) FROM t GROUP BY 1'),
	('SELECT k::text, count(DISTINCT city), count(DISTINCT x), sum(DISTINCT s) FROM t GROUP BY 1 HAVING count(DISTINCT x) > 2'),
	('SELECT k::text, count(DISTINCT city) FILTER (WHERE n > 3), string_agg(DISTINCT city, '','' ORDER BY city), array_agg(DISTINCT m) FROM t GROUP BY 1'),
	('SELECT to_char(day, ''YYYY-MM''), count(DISTINCT to_char(day, ''DD'')), count(DISTINCT upper(city) || country) FROM t GROUP BY 1'),
	('SELECT count(DISTINCT x), max(x), sum(DISTINCT n) FROM t WHERE city || country LIKE ''c2%'''),
	('SELECT count(DISTINCT x), sum(x) FROM t WHERE city || country = ''none'''),
	('SELECT k::text, count(DISTINCT 10 / s) FROM t WHERE s > 0 GROUP BY 1'),
	('SELECT k::text, count(DISTINCT 10 / s) FROM t GROUP BY 1'),
	('SELECT k::text, count(DISTINCT (x, s)), count(DISTINCT 1) FROM t GROUP BY 1'),
	('SELECT k::text, count(DISTINCT f) FROM t GROUP BY 1'),
	('SELECT k::text, count(DISTINCT x), stddev(x) FROM t GROUP BY 1');
SELECT * FROM asked();

-- Days and hours of timestamps are fewer than these; clocks change in between.
INSERT INTO queries (query) VALUES
	('SELECT to_char(ts, ''YYYY-MM-DD''), count(*) FROM t GROUP BY 1'),
	('SELECT to_char(ts, ''FMDay HH24''), count(*), max(ts) FROM t GROUP BY 1'),
	('SELECT to_char(tz, ''YYYY-MM-DD''), count(*), min(tz) FROM t GROUP BY 1'),
	('SELECT to_char(tz, ''HH24''), count(*) FROM t GROUP BY 1'),
	('SELECT to_char(tz, ''DD OF''), count(*) FROM t GROUP BY 1'),
	('SELECT to_char(ts, ''HH24:MI''), count(*) FROM t GROUP BY 1'),
	('SELECT to_char(ts + interval ''1 day'', ''MM-DD''), count(*) FROM t GROUP BY 1');
SELECT * FROM asked();
SET timezone = 'Australia/Lord_Howe';
INSERT INTO queries (query) VALUES
	('SELECT to_char(tz + interval ''7 days'', ''MM-DD''), count(*) FROM t GROUP BY 1'),
	('SELECT to_char(tz, ''MM-DD''), count(*) FROM t GROUP BY 1');
SELECT * FROM asked();
SET timezone = 'America/Sao_Paulo';
INSERT INTO queries (query) VALUES
	('SELECT to_char(tz - interval ''5 years 161 days'', ''YYYY-MM-DD''), count(*) FROM t GROUP BY 1'),
	('SELECT to_char(tz - interval ''6 years 42 days'', ''YYYY-MM-DD''), count(*) FROM t GROUP BY 1');
SELECT * FROM asked();
SET timezone = 'Europe/Berlin';

-- Conditions that no program has.
INSERT INTO queries (query) VALUES
	('SELECT count(*), count(x), sum(x), avg(x), min(city) FROM t WHERE to_char(day, ''MM'') = ''03'''),
	('SELECT count(*), count(x), sum(x), avg(x), min(city) FROM t WHERE to_char(day, ''MM'') = ''13'''),
	('SELECT k, count(*) FROM t WHERE city || country > ''c2'' AND x > 2 GROUP BY k'),
	('SELECT DISTINCT city FROM t WHERE k::text LIKE ''1%'''),
	('SELECT count(*) FROM t WHERE (k, s) < (9, 3)'),
	('SELECT count(*) FROM t JOIN dim USING (city) WHERE region || k = ''r11'''),
	('SELECT to_char(day, ''MM''), sum(x) FROM t WHERE k::text <> ''7'' GROUP BY 1 HAVING sum(x) > 5'),
	('SELECT count(*) FROM t WHERE random() < 2 AND k::text = ''7''');
SELECT * FROM asked();

-- The groups stand a level deeper, as seen from CTEs of the levels around. What PostgreSQL never evaluates raises nothing.
INSERT INTO queries (query) VALUES
	('WITH few AS MATERIALIZED (SELECT t.* FROM t JOIN dim USING (city)) SELECT s.*, few.id FROM (SELECT k::text, count(*) FROM few GROUP BY 1) s JOIN few ON few.id::text = s.k'),
	('WITH few AS (SELECT * FROM t WHERE k < 9) SELECT k::text, count(*) FROM few GROUP BY 1 UNION SELECT k::text, count(*) FROM t GROUP BY 1'),
	('WITH few AS (SELECT * FROM t WHERE k < 9), groups AS (SELECT city || k AS g, count(*) FROM few WHERE k::text <> ''3'' GROUP BY 1) SELECT * FROM groups JOIN groups g2 USING (g)'),
	('WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT DISTINCT i + length(city || country) - 3 FROM r JOIN t ON t.k = r.i WHERE i < 15) SELECT * FROM r'),
	('SELECT k::text, count(*) FROM (SELECT k, 1 / 0 FROM t) s GROUP BY 1');
SELECT * FROM asked();

-- Left as they are: subqueries beside the groups; aggregates without parts, or whose rows' order shows; values that are equal and not the same; what may raise an error where PostgreSQL does not come to it.
INSERT INTO queries (query) VALUES
	('SELECT k::text, stddev(x) FROM t GROUP BY 1'),
	('SELECT k::text, round(sum(f)) FROM t GROUP BY 1'),
	('SELECT f::text, count(*) FROM t GROUP BY 1'),
	('SELECT free::text, count(*) FROM t GROUP BY 1'),
	('SELECT k::text, max(f) FROM t GROUP BY 1'),
	('SELECT k::text, country, count(*) FROM t GROUP BY ROLLUP (1, 2)'),
	('SELECT k::text, (SELECT count(*) FROM dim) FROM t GROUP BY 1'),
	('SELECT k::text, count(*) FROM t GROUP BY 1 ORDER BY 1 LIMIT (SELECT 3) OFFSET (SELECT 1)'),
	('SELECT k::text, sum(count(*)) OVER (ORDER BY k::text ROWS (SELECT 1) PRECEDING) FROM t GROUP BY 1'),
	('SELECT count(*), sum(10 / s) FROM t WHERE s::text <> ''0'''),
	('SELECT count(*) FROM t WHERE s::text <> ''0'' AND 10 / (s + 1) > 2'),
	('SELECT sum((random() * 0)::int), k::text FROM t GROUP BY 2');
SELECT * FROM asked();

-- Which plan is taken is a matter of cost: groups have to be fewer than rows.
RESET gpuvm.force;
CREATE TABLE many AS SELECT i AS id, i % 10 AS k, date '2024-02-20' + i % 60 AS day FROM generate_series(1, 200000) i;
ANALYZE many;
SELECT gpuvm.import('many');
EXPLAIN (COSTS OFF) SELECT to_char(day, 'YYYY-MM'), count(*), avg(k) FROM many WHERE k::text < '3' GROUP BY 1;
SET gpuvm.force = on;
EXPLAIN (VERBOSE, COSTS OFF) SELECT city || k, count(*), sum(x) FROM t WHERE k::text < '5' GROUP BY 1;

-- A policy's condition stands below.
CREATE ROLE gpuvm_keys_user;
GRANT USAGE ON SCHEMA rewrite_keys TO gpuvm_keys_user;
GRANT SELECT ON t TO gpuvm_keys_user;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON t USING (k > 5);
SET ROLE gpuvm_keys_user;
SELECT k::text, count(*) FROM rewrite_keys.t WHERE country || k LIKE 'l1%' GROUP BY 1 ORDER BY 1 LIMIT 4;
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA rewrite_keys CASCADE;
DROP ROLE gpuvm_keys_user;
