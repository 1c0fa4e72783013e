-- Joins of whole statements in stages (gpuvm.whole_query): full ones, marks of IN and EXISTS in conditions, subqueries of at most one row.
SET gpuvm.device = 'cpu';
SET extra_float_digits = 0;
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_marks;
SET search_path = whole_marks, public;

CREATE TABLE a (id int PRIMARY KEY, k int, g int, t text, v varchar(10));
INSERT INTO a SELECT i, nullif(i % 37, 0), i % 5, nullif('t' || i % 9, 't4'), 'v' || i % 4 FROM generate_series(1, 1000) i;
INSERT INTO a VALUES (1001, NULL, NULL, NULL, NULL), (1002, 36, 0, 't1', 'v1');
CREATE TABLE b (id int PRIMARY KEY, k int, g int, t text, v varchar(10));
INSERT INTO b SELECT i, nullif(i % 53, 7), i % 3, nullif('t' || i % 11, 't5'), 'v' || i % 6 FROM generate_series(20, 300) i;
CREATE TABLE whole_keys (k int NOT NULL, g int NOT NULL);
INSERT INTO whole_keys SELECT i % 20, i % 3 FROM generate_series(1, 60) i;
CREATE TABLE nothing (k int, g int, t text);
VACUUM ANALYZE a, b, whole_keys, nothing;
SELECT gpuvm.import('a'), gpuvm.import('b'), gpuvm.import('whole_keys'), gpuvm.import('nothing');
INSERT INTO b VALUES (5001, 35, 1, 'new', 'new'), (5002, NULL, 1, NULL, NULL);

\i tests/sql/include/in_stages.sql
-- Are the rows PostgreSQL's, and how many stages gave them; else why not?
CREATE FUNCTION ask(query text, OUT stages int, OUT equal bool, OUT n int, OUT why text) LANGUAGE sql AS $$
SELECT stages, same_rows(got, expected), cardinality(got), why FROM in_stages(query) $$;

-- Full joins: of tables and of groups, with conditions on either side, and rows above.
SELECT * FROM ask('SELECT x.k, x.n, y.k, y.n FROM (SELECT k, count(*) n FROM a GROUP BY k) x FULL JOIN (SELECT k, count(*) n FROM b GROUP BY k) y ON x.k = y.k');
SELECT * FROM ask('SELECT sum(CASE WHEN x.k IS NOT NULL AND y.k IS NULL THEN 1 ELSE 0 END), sum(CASE WHEN x.k IS NULL AND y.k IS NOT NULL THEN 1 ELSE 0 END), sum(CASE WHEN x.k IS NOT NULL AND y.k IS NOT NULL THEN 1 ELSE 0 END) FROM (SELECT k, g FROM a GROUP BY k, g) x FULL JOIN (SELECT k, g FROM b GROUP BY k, g) y ON x.k = y.k AND x.g = y.g');
SELECT * FROM ask('SELECT count(*), count(x.k), count(y.k) FROM (SELECT k, count(*) n FROM a GROUP BY k) x FULL JOIN b y ON x.k = y.k AND y.g = 1 AND x.n > 26');
SELECT * FROM ask('SELECT x.k, y.id FROM (SELECT k, count(*) n FROM a GROUP BY k) x FULL JOIN (SELECT * FROM b WHERE g = 1) y ON x.k = y.k WHERE x.k IS NULL OR x.k > 30');
SELECT * FROM ask('SELECT x.k, y.id FROM (SELECT k, count(*) n FROM a GROUP BY k) x FULL JOIN b y ON x.k = y.k WHERE y.id IS NULL');
SELECT * FROM ask('SELECT count(*), sum(x.c), sum(y.d), count(y.c) FROM (SELECT k, 1 AS c FROM a GROUP BY k) x FULL JOIN (SELECT k + 0 k, 2 AS d, 1 AS c FROM b GROUP BY k) y ON x.k = y.k');
SELECT * FROM ask('SELECT z.g, count(*), count(x.k), sum(y.n) FROM (SELECT k, count(*) n FROM a GROUP BY k) x FULL JOIN (SELECT k, count(*) n FROM b GROUP BY k) y ON x.k = y.k JOIN whole_keys z ON z.k = coalesce(x.k, y.k) GROUP BY z.g');
-- One instant may have two local times: groups by these are no groups of instants.
SET timezone = 'Europe/Berlin';
CREATE TABLE local_times (ts timestamp, x int);
INSERT INTO local_times VALUES ('2024-03-31 02:30', 1), ('2024-03-31 03:30', 2), ('2024-03-31 04:30', 4);
CREATE TABLE instants (ts timestamptz);
INSERT INTO instants VALUES ('2024-03-31 01:30Z'), ('2024-03-31 02:30Z');
SELECT gpuvm.import('local_times'), gpuvm.import('instants');
SELECT * FROM ask('SELECT ts, (SELECT sum(x) FROM local_times WHERE local_times.ts = instants.ts) FROM instants');
SELECT * FROM ask('SELECT count(*) FROM instants WHERE 2 < (SELECT sum(x) FROM local_times WHERE local_times.ts = instants.ts)');
RESET timezone;

-- The merged key of a full join is a key of the next: a value that may come of either side.
SELECT * FROM ask('SELECT t, z.k, q.i, q.j FROM nothing z FULL JOIN (SELECT coalesce(x.t, y.t) t, x.id i, y.id j FROM a x FULL JOIN b y ON x.t = y.t AND x.id = y.id) q USING (t)');
SELECT * FROM ask('SELECT count(*), count(x.k), count(y.k) FROM (SELECT k FROM nothing GROUP BY k) x FULL JOIN (SELECT k FROM b GROUP BY k) y ON x.k = y.k');
SELECT * FROM ask('SELECT count(*), count(x.k), count(y.k) FROM (SELECT k FROM a GROUP BY k) x FULL JOIN (SELECT k FROM nothing GROUP BY k) y ON x.k = y.k');

-- IN and EXISTS that are parts of conditions: true, false, and null.
SELECT * FROM ask('SELECT id FROM a WHERE g = 1 OR k IN (SELECT k FROM b)');
SELECT * FROM ask('SELECT g, count(*) FROM a WHERE id < 50 OR k NOT IN (SELECT k FROM b) GROUP BY g');
SELECT * FROM ask('SELECT g, count(*) FROM a WHERE id < 50 OR k NOT IN (SELECT k FROM b WHERE k IS NOT NULL) GROUP BY g');
SELECT * FROM ask('SELECT g, count(*) FROM a WHERE (k IN (SELECT k FROM b)) IS NULL GROUP BY g');
SELECT * FROM ask('SELECT g, count(*) FROM a WHERE (k IN (SELECT k FROM nothing)) IS FALSE GROUP BY g');
SELECT * FROM ask('SELECT g, count(*) FROM a WHERE (k NOT IN (SELECT k FROM whole_keys)) IS TRUE OR id < 3 GROUP BY g');
SELECT * FROM ask('SELECT g, count(*) FROM a WHERE id < 9 OR t IN (SELECT t FROM b WHERE g = 2) GROUP BY g');
SELECT * FROM ask('SELECT g, count(*) FROM a WHERE id < 9 OR (v IN (SELECT v FROM b)) IS NOT TRUE GROUP BY g');
SELECT * FROM ask('SELECT count(*) FROM a WHERE id < 50 OR EXISTS (SELECT FROM b WHERE b.k = a.k AND b.g = 2)');
SELECT * FROM ask('SELECT count(*) FROM a WHERE id < 50 OR NOT EXISTS (SELECT FROM b WHERE b.k = a.k AND b.t = a.t)');
SELECT * FROM ask('SELECT a.g, count(*) FROM a WHERE (k IN (SELECT k FROM b WHERE b.g = a.g)) IS NULL GROUP BY a.g');
SELECT * FROM ask('SELECT a.g, count(*) FROM a WHERE (k NOT IN (SELECT k FROM b WHERE b.g = a.g)) OR id = 7 GROUP BY a.g');
SELECT * FROM ask('SELECT count(*) FROM a WHERE id < 5 OR k IN (SELECT k FROM b WHERE g = 1) OR EXISTS (SELECT FROM whole_keys w WHERE w.k = a.g)');
SELECT * FROM ask('SELECT count(*) FROM a WHERE id < 5 OR (k, g) IN (SELECT k, g FROM b)');

CREATE VIEW ab AS SELECT id, k, g, t, v FROM a UNION ALL SELECT id, k, g, t, v FROM b;
-- Values of subqueries of at most one row: none is null, several are an error.
SELECT * FROM ask('SELECT g, count(*) FROM ab a WHERE k > (SELECT k FROM b WHERE id = 60) GROUP BY g');
SELECT * FROM ask('SELECT g, count(*) FROM ab a WHERE k = (SELECT DISTINCT k + 1 FROM whole_keys WHERE k = 3) GROUP BY g');
SELECT * FROM ask('SELECT g, count(*) FROM ab a WHERE (k = (SELECT k FROM b WHERE id = -1)) IS NULL GROUP BY g');
SELECT * FROM ask('SELECT g, count(*) FROM ab a WHERE t = (SELECT t FROM b WHERE id = 21) GROUP BY g');
SELECT * FROM ask('SELECT g, count(*) FROM ab a WHERE v = (SELECT v FROM b WHERE id = 21) GROUP BY g');
SELECT * FROM ask('SELECT g, count(*) FROM ab a WHERE k BETWEEN (SELECT DISTINCT k FROM whole_keys WHERE k = 3) AND (SELECT 2 * max(k) FROM whole_keys) GROUP BY g');
SELECT * FROM ask('SELECT k, count(*) FROM ab a GROUP BY k HAVING count(*) > (SELECT min(g) + 26 FROM b)');
SELECT * FROM ask('SELECT k, sum(id) FROM ab a GROUP BY k HAVING sum(id) > (SELECT 2 * sum(id) / count(*) FROM b) OR k = (SELECT k FROM b WHERE id = 60)');
SELECT * FROM ask('SELECT a.g, count(*), sum((SELECT b.g FROM b WHERE b.id = a.k)) FROM ab a GROUP BY a.g');
SELECT * FROM ask('SELECT a.g, count(*) FROM ab a WHERE a.g < (SELECT w.k FROM whole_keys w WHERE w.k = a.k GROUP BY w.k) GROUP BY a.g');
SELECT * FROM ask('SELECT a.g, count(*) FROM ab a WHERE a.id < 60 AND a.g < (SELECT b.k FROM b WHERE b.id = a.id AND b.g = 1) GROUP BY a.g');
-- where several rows are met that nobody asks for: PostgreSQL's plan answers, or raises
SET gpuvm.whole_query = on;
SET gpuvm.force = on;
SELECT count(*) FROM ab a WHERE k = (SELECT k FROM b WHERE g = 1);
SELECT g, count(*) FROM ab a WHERE k > 1000 AND k < (SELECT k FROM b WHERE g = 1) GROUP BY g;
SELECT count(*) FROM a WHERE k < (SELECT b.id FROM b WHERE b.k = a.k);
SELECT count(*) FROM a WHERE k > 1000 AND k < (SELECT b.id FROM b WHERE b.k = a.k);
DROP SCHEMA whole_marks CASCADE;
