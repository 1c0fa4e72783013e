-- Values that are equal without being the same: a group shows its first row's, an extreme what PostgreSQL's keeps of equal ones.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA equal_values;
SET search_path = equal_values;
SET gpuvm.force = on;
-- plans of PostgreSQL's that show the first row's
SET enable_sort = off;
SET max_parallel_workers_per_gather = 0;

\set ECHO none
\i tests/sql/include/ask_many.sql
\set ECHO all

CREATE TABLE t (id int, g int, v interval, j jsonb, a numeric[], b bpchar, other interval) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 5, CASE i % 4 WHEN 0 THEN interval '1 mon' WHEN 1 THEN '30 days' WHEN 2 THEN '720:00' ELSE i % 7 * interval '1 day' END, (ARRAY['1.0', '1', '1.00', '{"a": 2.50}', '{"a": 2.5}'])[1 + i % 5]::jsonb,
	CASE WHEN i / 3 % 2 = 0 THEN ARRAY[1.0, 2, NULL] ELSE ARRAY[1, 2.00, NULL] END, 'a' || repeat(' ', i / 7 % 4), CASE WHEN i % 11 > 0 THEN make_interval(days => i % 3, hours => 24 * (i % 2)) END FROM generate_series(1, 3000) i;
SELECT gpuvm.import('t');
ANALYZE t;

CREATE TABLE kept (query text);
INSERT INTO kept SELECT 'SELECT ' || q FROM unnest(ARRAY['v, count(*) FROM t GROUP BY v', 'v, count(*) FROM t WHERE id > 1 GROUP BY v', 'v, count(*) FROM t WHERE id > 2 GROUP BY v', 'j, sum(id), min(v) FROM t WHERE id % 5 > 0 GROUP BY j', 'a, b, g, count(*) FROM t WHERE id > 40 GROUP BY a, b, g',
	'DISTINCT v FROM t WHERE g = 3', 'DISTINCT b, j FROM t WHERE id > 100', 'count(DISTINCT v), count(DISTINCT j), count(DISTINCT a), count(DISTINCT b), count(DISTINCT other) FROM t', 'g, count(DISTINCT j), sum(DISTINCT id) FROM t GROUP BY g',
	'g, min(v), max(v), min(a), max(a), min(b), max(b), min(other), max(other) FROM t GROUP BY g', 'min(v), max(v), min(a), max(a), min(b), max(b) FROM t WHERE id > 17', 'max(v) FILTER (WHERE id % 4 = 1), min(b) FILTER (WHERE id > 50), max(a) FROM t',
	'b, max(v) FILTER (WHERE id % 2 = 0), max(v) FROM t GROUP BY b', 'min(v), max(b) FROM t WHERE id < 0', 'v, b, grouping(v), count(*), max(b) FROM t GROUP BY GROUPING SETS ((v, b), v, b, ())', 'other, v, count(*) FROM t GROUP BY CUBE (other, v)',
	'v, count(*) FROM t GROUP BY v HAVING count(*) > 100 AND v > ''3 days''', 'v, min(id) FROM t GROUP BY v HAVING min(v) = max(v)', 'coalesce(v, ''30 days''), count(*) FROM t WHERE id > 4 GROUP BY 1', 'coalesce(other, ''2 days''), count(*) FROM t WHERE id > 10 GROUP BY 1',
	'v * 2, count(*) FROM t WHERE id > 1 GROUP BY 1', 'max(v + interval ''1 day'') FROM t', 'length(b::text), b, count(*) FROM t GROUP BY 1, 2', 'count(*) FROM (SELECT v FROM t GROUP BY v) s', 'c, count(*) FROM (SELECT v, count(*) AS c FROM t GROUP BY v) s GROUP BY c',
	'* FROM (SELECT v, count(*) AS c FROM t GROUP BY v) s WHERE c > 100', 'g, (SELECT max(v) FROM t s WHERE s.id % 5 = r.g AND s.id < 100) FROM t r WHERE id < 20']) q;
INSERT INTO queries (query) SELECT query FROM kept;
SELECT * FROM asked();
SET gpuvm.require = :device;
SELECT v, count(*), min(b), max(b) FROM t WHERE id > 1 GROUP BY v ORDER BY v;
SELECT v FROM t WHERE id > 1 GROUP BY v ORDER BY v DESC LIMIT 2;
SELECT DISTINCT j FROM t WHERE id > 3;
SELECT g, max(v), max(a), max(b) FROM t GROUP BY g ORDER BY g;
RESET gpuvm.require;
EXPLAIN (COSTS OFF) SELECT v, max(b) FROM t GROUP BY v;

-- Joins: any row of a group may be the first one that PostgreSQL meets. All keys are one row's.
CREATE TABLE d (g int PRIMARY KEY, n int, w interval) WITH (autovacuum_enabled = off);
INSERT INTO d SELECT i, i % 2, CASE WHEN i % 3 = 0 THEN interval '1 mon' ELSE '30 days' END FROM generate_series(0, 4) i;
SELECT gpuvm.import('d');
ANALYZE d;
CREATE FUNCTION none_else(query text, pairs text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n int;
	found int;
BEGIN
	PERFORM set_config('gpuvm.require', replace(current_setting('gpuvm.device'), 'auto', 'vm'), true);
	EXECUTE format('CREATE TEMP TABLE mine ON COMMIT DROP AS %s', query);
	PERFORM set_config('gpuvm.require', 'any', true), set_config('gpuvm.enabled', 'off', true);
	EXECUTE format('SELECT count(*), count(*) FILTER (WHERE (n, k::text, c) IN (%s)) FROM mine', pairs) INTO n, found;
	PERFORM set_config('gpuvm.enabled', 'on', true);
	DROP TABLE mine;
	RETURN format('%s groups, %s of which some row is', n, found);
END $$;
SELECT none_else('SELECT d.n, t.v AS k, count(*) AS c FROM t JOIN d USING (g) GROUP BY d.n, t.v', 'SELECT d.n, t.v::text, count(*) OVER (PARTITION BY d.n, t.v) FROM t JOIN d USING (g)');
SELECT none_else('SELECT d.n, t.v AS k, count(*) AS c FROM d LEFT JOIN t ON t.g = d.g AND t.id > 20 AND t.g <> 2 GROUP BY d.n, t.v', 'SELECT d.n, t.v::text, count(*) OVER (PARTITION BY d.n, t.v) FROM d LEFT JOIN t ON t.g = d.g AND t.id > 20 AND t.g <> 2') AS "a null is not compared";
SELECT none_else('SELECT d.n, max(t.v) AS k, count(*) AS c FROM t JOIN d USING (g) GROUP BY d.n', 'SELECT d.n, t.v::text, count(*) OVER (PARTITION BY d.n) FROM t JOIN d USING (g)');
INSERT INTO queries (query) VALUES ('SELECT count(*) FROM t JOIN d ON t.v = d.w'), ('SELECT d.n, count(DISTINCT t.v), count(DISTINCT w) FROM t JOIN d USING (g) GROUP BY d.n'), ('SELECT t.v, d.w, count(*) FROM t JOIN d USING (g) GROUP BY t.v, d.w');
SELECT * FROM asked();

-- Rows that an outer join makes have no place; all of a group's may be such. Of columns that a full join shows every one is asked for equal values.
CREATE TABLE part (g int, v interval, b bpchar) WITH (autovacuum_enabled = off);
INSERT INTO part VALUES (1, '1 mon', 'a'), (2, '1 day', 'b'), (3, '24:00', 'b '), (3, '30 days', 'a ');
CREATE TABLE single (g int, j jsonb) WITH (autovacuum_enabled = off);
INSERT INTO single VALUES (1, '1'), (2, '1');
CREATE TABLE none (LIKE t) WITH (autovacuum_enabled = off);
SELECT gpuvm.import('part'), gpuvm.import('single'), gpuvm.import('none');
INSERT INTO queries (query) VALUES ('SELECT coalesce(r.v, ''720:00''), count(*) FROM d LEFT JOIN part r ON r.g = d.g AND r.v < ''2 days'' AND r.g > 2 GROUP BY 1'), ('SELECT coalesce(r.b, ''a   ''), max(coalesce(r.v, ''30 days'')) FROM d LEFT JOIN part r ON r.g = d.g AND r.v < ''0'' GROUP BY 1'),
	('SELECT s.j, max(r.v) FROM single s FULL JOIN part r ON r.g = s.g GROUP BY s.j'), ('SELECT v, b, count(*), min(a) FROM none GROUP BY v, b'), ('SELECT coalesce(v, ''1 day''), count(*) FROM none GROUP BY 1'), ('SELECT max(v), min(b) FROM none');
SELECT * FROM asked();

-- Changed rows, by their place in the table: some are moved behind all others, some values are new.
UPDATE t SET id = id WHERE id % 3 = 1 AND id < 1000;
UPDATE t SET v = '15 days 360:00' WHERE id = 2;
INSERT INTO t SELECT i, i % 5, interval '30 days 00:00:00', '1.000', ARRAY[1.000, 2, NULL], 'a      ', '24:00' FROM generate_series(1, 30) i;
DELETE FROM t WHERE id IN (3, 4, 8, 12);
INSERT INTO queries (query) SELECT query FROM kept;
SELECT * FROM asked();
BEGIN;
DELETE FROM t WHERE id < 100 AND id <> 6;
SET LOCAL gpuvm.require = :device;
SELECT v, count(*) > 100 AS many FROM t GROUP BY v ORDER BY v LIMIT 3;
SELECT DISTINCT b FROM t;
ROLLBACK;
SELECT gpuvm.refresh('t');
INSERT INTO queries (query) SELECT query FROM kept;
SELECT * FROM asked();

-- Only a changed row's value is equal to another, in a session that has met none.
CREATE TABLE late (id int, v interval) WITH (autovacuum_enabled = off);
INSERT INTO late SELECT i, i % 9 * interval '1 day' FROM generate_series(1, 500) i;
SELECT gpuvm.import('late');
INSERT INTO queries (query) VALUES ('SELECT v, count(*) FROM late GROUP BY v');
SELECT * FROM asked();
BEGIN;
UPDATE late SET v = '24:00' WHERE id = 1;
INSERT INTO queries (query) VALUES ('SELECT v, count(*) FROM late GROUP BY v'), ('SELECT v, count(*) FROM late WHERE id < 12 GROUP BY v'), ('SELECT min(v), max(v) FROM late WHERE v > ''1 hour''');
SELECT * FROM asked();
ROLLBACK;
INSERT INTO queries (query) VALUES ('SELECT v, count(*) FROM late GROUP BY v');
SELECT * FROM asked();

-- Partitions, in their order.
CREATE TABLE p (k int, v interval, b bpchar) PARTITION BY LIST (k);
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2) WITH (autovacuum_enabled = off);
CREATE TABLE p0 PARTITION OF p FOR VALUES IN (0) WITH (autovacuum_enabled = off);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1) WITH (autovacuum_enabled = off);
INSERT INTO p SELECT i % 3, (ARRAY['1 mon', '30 days', '720:00'])[1 + i % 3]::interval, 'x' || repeat(' ', i % 3) FROM generate_series(1, 3000) i;
SELECT gpuvm.import('p2'), gpuvm.import('p1'), gpuvm.import('p0');
INSERT INTO kept SELECT 'SELECT ' || q || '/* of p */' FROM unnest(ARRAY['v, b, count(*) FROM p GROUP BY v, b', 'DISTINCT b FROM p WHERE k > 0', 'min(v), max(v), min(b), max(b) FROM p', 'v, max(b) FROM p WHERE k <> 1 GROUP BY v', 'k, b, count(*) FROM p GROUP BY k, b']) q;
INSERT INTO queries (query) SELECT query FROM kept WHERE query LIKE '%/* of p */';
SELECT * FROM asked();
UPDATE p SET b = b || ' ' WHERE k = 0;
UPDATE p SET v = '29 days 24:00' WHERE k = 2 AND b = 'x';
INSERT INTO queries (query) SELECT query FROM kept WHERE query LIKE '%/* of p */';
SELECT * FROM asked();
SET gpuvm.require = :device;
SELECT v, b || '.' AS b, count(*) FROM p GROUP BY p.v, p.b;
RESET gpuvm.require;

-- Below a policy: values of rows that it hides show nowhere, and nothing depends on them.
CREATE TABLE s (who name, v interval, j jsonb, b bpchar) WITH (autovacuum_enabled = off);
INSERT INTO s SELECT CASE WHEN i % 2 = 0 THEN 'regress_equal_values' ELSE 'somebody' END, CASE i % 4 WHEN 1 THEN interval '1 mon' WHEN 2 THEN '30 days' WHEN 0 THEN i % 5 * interval '1 day' ELSE '24:00' END,
	(ARRAY['1', '1.0', '2'])[1 + i % 3]::jsonb, 'a' || repeat(' ', i % 3) FROM generate_series(1, 2000) i;
SELECT gpuvm.import('s');
CREATE ROLE regress_equal_values;
GRANT USAGE ON SCHEMA equal_values TO regress_equal_values;
GRANT SELECT ON s, d TO regress_equal_values;
ALTER TABLE s ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON s USING (who = current_user);
SET ROLE regress_equal_values;
SET gpuvm.require = :device;
SELECT v, count(*) FROM s GROUP BY v ORDER BY v;
SELECT min(v), max(v), length(max(b)::text || '.'), count(DISTINCT v), count(DISTINCT b) FROM s;
SELECT b || '.' AS b, count(*), max(v) FROM s GROUP BY s.b;
SELECT min(nullif(v, '0')) AS "nulls are no values" FROM s;
SELECT s.v, count(*) FROM s JOIN d ON true WHERE d.g < 2 GROUP BY s.v HAVING count(*) > 400;
RESET gpuvm.require;
SELECT * FROM gpuvm.why_not('SELECT j, count(*) FROM s GROUP BY j') AS "jsonb is not compared";
SELECT * FROM gpuvm.why_not('SELECT s.v, d.w, count(*) FROM s JOIN d ON true GROUP BY s.v, d.w');
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA equal_values CASCADE;
DROP ROLE regress_equal_values;
