-- Groups by what no program computes (gpuvm.whole_query): PostgreSQL computes it of finer groups, or of rows, between stages.
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_keys;
SET search_path = whole_keys, public;
SET timezone = 'Europe/Berlin';

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
CREATE TABLE nothing (LIKE t) WITH (autovacuum_enabled = off);
VACUUM ANALYZE t, dim, nothing;
SELECT sum(gpuvm.import(t)) FROM unnest('{t,dim,nothing}'::regclass[]) t;

\i tests/sql/include/try_stages.sql
-- The rows are those of PostgreSQL? How many stages gave them, and did another plan run?
CREATE FUNCTION ask(query text, ordered bool DEFAULT false, OUT stages int, OUT fallback text, OUT rows int, OUT equal bool) LANGUAGE sql AS $$
SELECT t.stages, t.fallback, cardinality(t.expected), CASE WHEN ordered THEN t.got = t.expected ELSE ARRAY(SELECT unnest(t.got) COLLATE "C" ORDER BY 1) = ARRAY(SELECT unnest(t.expected) COLLATE "C" ORDER BY 1) END FROM try_stages(query) t $$;

-- Keys, and every aggregate that has parts.
SELECT * FROM ask('SELECT to_char(day, ''YYYY-MM''), count(*), count(x), sum(x), sum(s), sum(l), sum(n), avg(x), avg(s), avg(l), avg(n) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT k::text, min(x), max(n), min(city), max(day), min(m), max(c), bool_and(b), bool_or(b), every(b), bit_and(x), bit_or(l) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT city || '', '' || country, count(*) FILTER (WHERE x > 3), sum(n) FILTER (WHERE b), avg(x) FILTER (WHERE k = 2) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT concat(city, k), country, count(*) FROM t WHERE x > 3 GROUP BY 1, 2 HAVING count(*) > 2');
SELECT * FROM ask('SELECT length(city), to_char(day, ''Mon''), count(*) FROM t GROUP BY 1, 2');
SELECT * FROM ask('SELECT upper(city) || k % 3, sum(x) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT c || ''|'', m::text || k, count(*) FROM t GROUP BY 1, 2');
SELECT * FROM ask('SELECT to_char(day, ''YYYY-MM'') AS month, sum(n) AS n FROM t GROUP BY 1 ORDER BY n DESC, month LIMIT 2');
SELECT * FROM ask('SELECT to_char(day, ''YYYY-MM''), sum(sum(x)) OVER (ORDER BY to_char(day, ''YYYY-MM'')) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT DISTINCT to_char(day, ''YYYY-MM''), city FROM t');
SELECT * FROM ask('SELECT DISTINCT city || country FROM t ORDER BY 1 DESC LIMIT 3');
SELECT * FROM ask('SELECT region || to_char(day, ''MM''), count(*), sum(t.n) FROM t JOIN dim USING (city) GROUP BY 1');
SELECT * FROM ask('SELECT region || country, count(*) FROM t LEFT JOIN dim USING (city) GROUP BY 1');
SELECT * FROM ask('WITH few AS (SELECT * FROM t WHERE k < 9) SELECT k::text, count(*) FROM few GROUP BY 1');
SELECT * FROM ask('SELECT d, count(*) FROM (SELECT to_char(day, ''DD'') AS d, sum(x) AS x FROM t GROUP BY 1) s WHERE x > 3 GROUP BY d');
SELECT * FROM ask('SELECT CASE WHEN x <> 0 THEN (10 / x)::text ELSE ''none'' END, count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT CASE concat(city, nullif(k % 2, 1)) WHEN ''c20'' THEN ''y'' WHEN city THEN ''z'' ELSE city END, count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT CASE k WHEN (''{1,2}''::text[]::int[])[1] THEN ''one'' WHEN (ARRAY[to_char(day, ''DD'')]::int[])[1] THEN ''day'' ELSE ''none'' END, count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT (10 / s)::text, count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT k::text, count(*) FROM t WHERE x = -1 GROUP BY 1');
SELECT * FROM ask('SELECT to_char(avg(x), ''9.99''), k::text FROM t GROUP BY 2');

-- What is DISTINCT is a key of the finer groups, too, and the condition that it is asked under.
SELECT * FROM ask('SELECT to_char(day, ''YYYY-MM''), count(DISTINCT x), sum(n), count(*), avg(x) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT k::text, count(DISTINCT city), count(DISTINCT x), sum(DISTINCT s) FROM t GROUP BY 1 HAVING count(DISTINCT x) > 2');
SELECT * FROM ask('SELECT k::text, count(DISTINCT city) FILTER (WHERE n > 3), string_agg(DISTINCT city, '','' ORDER BY city), array_agg(DISTINCT m) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT to_char(day, ''YYYY-MM''), count(DISTINCT to_char(day, ''DD'')), count(DISTINCT upper(city) || country) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT count(DISTINCT x), max(x), sum(DISTINCT n) FROM t WHERE city || country LIKE ''c2%''');
SELECT * FROM ask('SELECT count(DISTINCT x), sum(x) FROM t WHERE city || country = ''none''');
SELECT * FROM ask('SELECT k::text, count(DISTINCT 10 / s) FROM t WHERE s > 0 GROUP BY 1');
SELECT * FROM ask('SELECT k::text, count(DISTINCT 10 / s) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT k::text, count(DISTINCT (x, s)), count(DISTINCT 1) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT k::text, count(DISTINCT f) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT k::text, count(DISTINCT x), stddev(x) FROM t GROUP BY 1');

-- Days and hours of timestamps are fewer than these; clocks change in between.
SELECT * FROM ask('SELECT to_char(ts, ''YYYY-MM-DD''), count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT to_char(ts, ''FMDay HH24''), count(*), max(ts) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT to_char(tz, ''YYYY-MM-DD''), count(*), min(tz) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT to_char(tz, ''HH24''), count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT to_char(tz, ''DD OF''), count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT to_char(ts, ''HH24:MI''), count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT to_char(ts + interval ''1 day'', ''MM-DD''), count(*) FROM t GROUP BY 1');

SET timezone = 'Australia/Lord_Howe';
SELECT * FROM ask('SELECT to_char(tz + interval ''7 days'', ''MM-DD''), count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT to_char(tz, ''MM-DD''), count(*) FROM t GROUP BY 1');

SET timezone = 'America/Sao_Paulo';
SELECT * FROM ask('SELECT to_char(tz - interval ''5 years 161 days'', ''YYYY-MM-DD''), count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT to_char(tz - interval ''6 years 42 days'', ''YYYY-MM-DD''), count(*) FROM t GROUP BY 1');

SET timezone = 'Europe/Berlin';
-- Conditions that no program has are asked of the finer groups.
SELECT * FROM ask('SELECT count(*), count(x), sum(x), avg(x), min(city) FROM t WHERE to_char(day, ''MM'') = ''03''');
SELECT * FROM ask('SELECT count(*), count(x), sum(x), avg(x), min(city) FROM t WHERE to_char(day, ''MM'') = ''13''');
SELECT * FROM ask('SELECT k, count(*) FROM t WHERE city || country > ''c2'' AND x > 2 GROUP BY k');
SELECT * FROM ask('SELECT DISTINCT city FROM t WHERE k::text LIKE ''1%''');
SELECT * FROM ask('SELECT count(*) FROM t WHERE (k, s) < (9, 3)');
SELECT * FROM ask('SELECT count(*) FROM t JOIN dim USING (city) WHERE region || k = ''r11''');
SELECT * FROM ask('SELECT to_char(day, ''MM''), sum(x) FROM t WHERE k::text <> ''7'' GROUP BY 1 HAVING sum(x) > 5');
SELECT * FROM ask('SELECT count(*) FROM t WHERE random() < 2 AND k::text = ''7''');

-- CTEs, and levels in levels.
SELECT * FROM ask('WITH few AS MATERIALIZED (SELECT t.* FROM t JOIN dim USING (city)) SELECT s.*, few.id FROM (SELECT k::text, count(*) FROM few GROUP BY 1) s JOIN few ON few.id::text = s.k');
SELECT * FROM ask('WITH few AS (SELECT * FROM t WHERE k < 9) SELECT k::text, count(*) FROM few GROUP BY 1 UNION SELECT k::text, count(*) FROM t GROUP BY 1');
SELECT * FROM ask('WITH few AS (SELECT * FROM t WHERE k < 9), groups AS (SELECT city || k AS g, count(*) FROM few WHERE k::text <> ''3'' GROUP BY 1) SELECT * FROM groups JOIN groups g2 USING (g)');
SELECT * FROM ask('WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT DISTINCT i + length(city || country) - 3 FROM r JOIN t ON t.k = r.i WHERE i < 15) SELECT * FROM r');
SELECT * FROM ask('SELECT k::text, count(*) FROM (SELECT k, 1 / 0 FROM t) s GROUP BY 1');

-- Of rows, or refused: aggregates without parts, values that are equal and not the same, subqueries beside the groups.
SELECT * FROM ask('SELECT k::text, stddev(x) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT k::text, round(sum(f)) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT f::text, count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT free::text, count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT k::text, max(f) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT k::text, country, count(*) FROM t GROUP BY ROLLUP (1, 2)');
SELECT * FROM ask('SELECT k::text, (SELECT count(*) FROM dim) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT k::text, count(*) FROM t GROUP BY 1 ORDER BY 1 LIMIT (SELECT 3) OFFSET (SELECT 1)');
SELECT * FROM ask('SELECT k::text, sum(count(*)) OVER (ORDER BY k::text ROWS (SELECT 1) PRECEDING) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT count(*), sum(10 / s) FROM t WHERE s::text <> ''0''');
SELECT * FROM ask('SELECT count(*) FROM t WHERE s::text <> ''0'' AND 10 / (s + 1) > 2');
SELECT * FROM ask('SELECT sum((random() * 0)::int), k::text FROM t GROUP BY 2');

-- No rows, null keys, errors of rows that a condition leaves out, grouping sets.
SELECT * FROM ask('SELECT to_char(day, ''YYYY-MM''), count(*) FROM nothing GROUP BY 1');
SELECT * FROM ask('SELECT count(*), sum(x), max(day) FROM nothing WHERE to_char(day, ''MM'') = ''03''');
SELECT * FROM ask('SELECT DISTINCT to_char(NULL::date + x, ''MM''), nullif(k::text, ''7'') FROM t');
SELECT * FROM ask('SELECT (100 / s)::text, count(*) FROM t WHERE s <> 0 GROUP BY 1');
SELECT * FROM ask('SELECT (city || ''0'')::int, count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT (substr(city, 2) || k)::int, count(*) FROM t WHERE k > 5 GROUP BY 1');
SELECT * FROM ask('SELECT (city || k)::int, count(*) FROM t WHERE k > 5 AND id < 0 GROUP BY 1');
SELECT * FROM ask('SELECT (city || k)::int, count(*) FROM t WHERE k > 5 GROUP BY 1');
SELECT * FROM ask('SELECT to_char(day, ''MM''), city, grouping(to_char(day, ''MM'')), count(*) FROM t GROUP BY CUBE (1, 2)');
-- Below other stages: joins, windows, set operations, groups of groups.
SELECT * FROM ask('SELECT m, n, region FROM (SELECT to_char(day, ''YYYY-MM'') AS m, city, sum(n) AS n FROM t GROUP BY 1, 2) g JOIN dim USING (city)');
SELECT * FROM ask('SELECT m, n, rank() OVER (ORDER BY m) FROM (SELECT to_char(day, ''YYYY-MM-DD'') AS m, sum(n) AS n FROM t GROUP BY 1) g');
SELECT * FROM ask('SELECT to_char(day, ''MM'') FROM t GROUP BY 1 UNION SELECT to_char(day, ''DD'') FROM t GROUP BY 1 HAVING count(*) > 30');
SELECT * FROM ask('SELECT m, count(*), sum(n), max(c) FROM (SELECT to_char(day, ''Mon'') AS m, k, sum(n) AS n, count(*) AS c FROM t GROUP BY 1, 2) g GROUP BY m');
SELECT * FROM ask('WITH g AS (SELECT k::text AS kt, avg(n) AS a FROM t GROUP BY 1) SELECT g1.kt, g1.a, g2.a FROM g g1 JOIN g g2 ON g1.kt = g2.kt');
SELECT * FROM ask('SELECT to_char(day, ''MM'') AS m, count(*) AS n FROM t GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 2', true);
SELECT * FROM ask('SELECT length(concat(city, country)), sum(length(concat(city, k))), count(DISTINCT k) FROM t GROUP BY 1');
-- Columns that are no keys, where another stage reads them.
SELECT * FROM ask('SELECT id, rank() OVER (PARTITION BY to_char(day, ''YYYY-MM'') ORDER BY id) FROM t WHERE id < 500');
SELECT * FROM ask('SELECT m, count(*) FROM (SELECT to_char(day, ''MM'') AS m FROM t WHERE id < 300 UNION ALL SELECT region || ''!'' FROM dim) u GROUP BY m');
SELECT * FROM ask('SELECT d.city, s.m FROM dim d LEFT JOIN (SELECT city, to_char(day, ''MM'') AS m, coalesce(k::text, ''none'') AS kt FROM t WHERE id < 60) s ON d.city = s.city AND d.region < s.kt');
SELECT * FROM ask('SELECT t.id, g.n FROM t JOIN (SELECT k::text AS kt, count(*) AS n FROM t GROUP BY 1) g ON t.k::text = g.kt WHERE t.id < 300');
SELECT * FROM ask('SELECT id FROM t WHERE to_char(day, ''MM'') IN (SELECT substr(to_char(day, ''YYYY-MM''), 6) FROM t WHERE id < 10) AND id < 300');
SELECT * FROM ask('SELECT id, k FROM t WHERE NOT EXISTS (SELECT FROM dim WHERE dim.region = ''r'' || (t.k % 3)::text)');
-- Nulls of outer joins, values of all kinds, conditions above and below.
SELECT * FROM ask('SELECT d.city, d.region, coalesce(s.k::text, ''none''), s.kt FROM dim d LEFT JOIN (SELECT city, k, coalesce(k::text, ''none'') AS kt FROM t WHERE id < 60) s ON d.region || ''2'' = ''r'' || s.k::text');
SELECT * FROM ask('SELECT d.city, coalesce(s.k::text, ''none'') FROM dim d LEFT JOIN t s ON d.region = ''r'' || s.k::text AND s.id < 100');
SELECT * FROM ask('SELECT a.m, b.m, count(*) FROM (SELECT to_char(day, ''MM'') AS m, id FROM t WHERE id < 50) a FULL JOIN (SELECT to_char(day + 30, ''MM'') AS m, id FROM t WHERE id < 40) b ON a.m = b.m AND a.id = b.id GROUP BY 1, 2');
SELECT * FROM ask('SELECT id FROM t WHERE id < 200 AND k::text NOT IN (SELECT s::text FROM t WHERE id < 20)');
SELECT * FROM ask('SELECT id FROM t WHERE id < 200 AND k::text NOT IN (SELECT x::text FROM t WHERE id < 20)');
SELECT * FROM ask('SELECT c::text || k, min(c), max(m), count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT t.k::text || dim.region AS z, count(*), sum(t.n), avg(t.n), min(t.city) FROM t LEFT JOIN dim USING (city) WHERE to_char(day, ''MM'') <> ''03'' GROUP BY 1 HAVING sum(t.n)::text > ''1'' ORDER BY 1', true);
SELECT * FROM ask('SELECT x::text, sum(l), sum(n * x), avg(l), bit_or(s), bool_and(b) FROM t WHERE l::text <> ''0'' OR n::text IS NULL GROUP BY 1');
SELECT * FROM ask('SELECT a.m, count(*) FROM (SELECT n::text AS m, free FROM t) a JOIN (SELECT free::text AS m FROM t WHERE id < 10) b ON a.m = b.m GROUP BY 1');
SELECT * FROM ask('SELECT r, count(*) FROM (SELECT rank() OVER (PARTITION BY x::text ORDER BY to_char(day, ''YYYYMMDD''), id) AS r FROM t) q GROUP BY r');
SELECT * FROM ask('WITH w AS (SELECT to_char(day, ''MM'') AS m, k, x FROM t) SELECT a.m, count(*), max(b.x) FROM w a JOIN w b ON a.m = b.m AND a.k = b.k AND a.x < b.x GROUP BY 1');
SELECT * FROM ask('SELECT DISTINCT ON (to_char(day, ''MM'')) to_char(day, ''MM''), x FROM t ORDER BY 1, 2');
SELECT * FROM ask('SELECT to_char(day, ''MM''), x FROM t EXCEPT SELECT k::text, x FROM t');
SELECT * FROM ask('SELECT q.city, d.region FROM (SELECT city, stddev(n) AS sd, avg(x) AS a FROM t GROUP BY city HAVING count(*) > (SELECT count(*) FROM dim)) q JOIN dim d USING (city) WHERE sd / nullif(a, 0) > 0.3 AND sd > (SELECT avg(k) / 100 FROM t)');
SELECT * FROM ask('SELECT concat(m, m::text, b), count(*) FROM t GROUP BY 1');
SELECT * FROM ask('SELECT ARRAY[k, s]::text, count(*) FROM t GROUP BY 1');

-- A statement that is nothing but such groups; parameters.
SET gpuvm.force = on;
EXPLAIN (COSTS OFF) SELECT to_char(day, 'YYYY-MM'), sum(n), count(*) FROM t WHERE to_char(day, 'DD') > '15' GROUP BY 1;
SET gpuvm.require = cpu;
SET plan_cache_mode = force_generic_plan;
PREPARE p(text) AS SELECT to_char(day, $1), sum(n), count(*) FROM t GROUP BY 1 ORDER BY 1;
EXECUTE p('YYYY-MM');
EXECUTE p('YYYY');
EXECUTE p(NULL);
RESET gpuvm.require;

-- Whether it is taken is a matter of cost: the finer groups have to be fewer than rows.
RESET gpuvm.force;
CREATE TABLE many AS SELECT i AS id, i % 10 AS k, date '2024-02-20' + i % 60 AS day FROM generate_series(1, 200000) i;
VACUUM ANALYZE many;
SELECT gpuvm.import('many');
EXPLAIN (COSTS OFF) SELECT to_char(day, 'YYYY-MM'), count(*), avg(k) FROM many WHERE k::text < '3' GROUP BY 1;
EXPLAIN (COSTS OFF) SELECT id::text, count(*), avg(k) FROM many GROUP BY 1;

-- What a policy hides no stage reads.
CREATE ROLE gpuvm_keys_user;
GRANT USAGE ON SCHEMA whole_keys TO gpuvm_keys_user;
GRANT SELECT ON t TO gpuvm_keys_user;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON t USING (k > 5);
SET gpuvm.force = on;
SET ROLE gpuvm_keys_user;
SELECT k::text, count(*) FROM whole_keys.t WHERE country || k LIKE 'l1%' GROUP BY 1 ORDER BY 1 LIMIT 4;
RESET ROLE;
DROP SCHEMA whole_keys CASCADE;
DROP ROLE gpuvm_keys_user;
