-- Set operations in stages (gpuvm.whole_query): INTERSECT and EXCEPT are groups of all arms' rows.
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_setops;
SET search_path = whole_setops, public;

CREATE TABLE a (x int, t text, n numeric(8,2), d date);
CREATE TABLE b (x int, t text, n numeric(8,2), d date);
CREATE TABLE c (x bigint, t varchar(10), n numeric(9,3), d date);
CREATE TABLE nothing (x int, t text, n numeric(8,2), d date);
INSERT INTO a SELECT nullif(i % 7, 0), nullif('v' || i % 5, 'v2'), i % 9, date '2024-01-01' + i % 3 FROM generate_series(1, 2000) i;
INSERT INTO b SELECT nullif(i % 5, 0), nullif('v' || (i + 2) % 4, 'v2'), i % 4, date '2024-01-02' + i % 3 FROM generate_series(1, 1000) i;
INSERT INTO c SELECT nullif(i % 6, 0), 'v' || i % 9, i % 3, NULL FROM generate_series(1, 100) i;
VACUUM ANALYZE a, b, c, nothing;
SELECT gpuvm.import('a'), gpuvm.import('b'), gpuvm.import('c'), gpuvm.import('nothing');
-- a value that only a delta has
INSERT INTO b VALUES (77, 'new', 7.5, NULL);

\i tests/sql/include/in_stages.sql
-- Are the rows PostgreSQL's (in their order, where there is one)? And how many stages gave them, or why none.
CREATE FUNCTION ask(query text, ordered bool DEFAULT true, OUT stages int, OUT equal bool, OUT rows int, OUT why text) LANGUAGE sql AS $$
SELECT stages, CASE WHEN ordered THEN got = expected ELSE same_rows(got, expected) END, cardinality(expected), why FROM in_stages(query) $$;

-- Statements that are one, with nulls and duplicates, in order or not.
SELECT * FROM ask('SELECT x FROM a INTERSECT SELECT x FROM b ORDER BY 1');
SELECT * FROM ask('SELECT x FROM a EXCEPT SELECT x FROM b ORDER BY 1 DESC');
SELECT * FROM ask('SELECT x FROM b EXCEPT SELECT x FROM a', false);
SELECT * FROM ask('SELECT x, d FROM a INTERSECT SELECT x, d FROM b ORDER BY 2 DESC, 1 NULLS FIRST LIMIT 5 OFFSET 1');
SELECT * FROM ask('SELECT x, d FROM a EXCEPT SELECT x, d FROM b ORDER BY 2, 1');
SELECT * FROM ask('SELECT n FROM a INTERSECT SELECT n FROM b ORDER BY 1');
SELECT * FROM ask('SELECT x FROM a UNION SELECT x FROM b ORDER BY 1 LIMIT 3');
-- Texts of different dictionaries.
SELECT * FROM ask('SELECT t FROM a INTERSECT SELECT t FROM b ORDER BY 1');
SELECT * FROM ask('SELECT t, x FROM b EXCEPT SELECT t, x FROM a ORDER BY 1 DESC, 2');
SELECT * FROM ask('SELECT t FROM a UNION SELECT t FROM b ORDER BY 1 NULLS FIRST');
SELECT * FROM ask('SELECT t COLLATE "C" FROM a EXCEPT SELECT t FROM b WHERE x = 1 ORDER BY 1');
-- Arms of one kind are one group; of others they nest.
SELECT * FROM ask('SELECT x FROM a INTERSECT SELECT x FROM b INTERSECT SELECT x FROM b WHERE n > 1 ORDER BY 1');
SELECT * FROM ask('SELECT x FROM a EXCEPT SELECT x FROM b WHERE x < 3 EXCEPT SELECT x FROM b WHERE x = 4 ORDER BY 1');
SELECT * FROM ask('SELECT x FROM a EXCEPT (SELECT x FROM b EXCEPT SELECT x FROM b WHERE x < 3) ORDER BY 1');
SELECT * FROM ask('SELECT x FROM a INTERSECT (SELECT x FROM b EXCEPT SELECT x FROM b WHERE x < 3) ORDER BY 1');
SELECT * FROM ask('(SELECT x FROM a UNION SELECT x FROM b) EXCEPT SELECT x FROM b WHERE x > 2 ORDER BY 1');
SELECT * FROM ask('SELECT x FROM a UNION ALL (SELECT x FROM b INTERSECT SELECT x FROM a)', false);
-- Types that are made the same: arms of other forms.
SELECT * FROM ask('SELECT x FROM a INTERSECT SELECT x FROM c ORDER BY 1');
SELECT * FROM ask('SELECT n FROM a INTERSECT SELECT n FROM c ORDER BY 1');
SELECT * FROM ask('SELECT t FROM a INTERSECT SELECT t FROM c ORDER BY 1');
SELECT * FROM ask('SELECT x + 0.5 FROM a EXCEPT SELECT n FROM b ORDER BY 1');
-- Empty arms, constants, no columns that matter.
SELECT * FROM ask('SELECT x, t FROM nothing INTERSECT SELECT x, t FROM b', false);
SELECT * FROM ask('SELECT x, n FROM b EXCEPT SELECT x, n FROM nothing ORDER BY 1, 2');
SELECT * FROM ask('SELECT x, n FROM nothing EXCEPT SELECT x, n FROM b', false);
SELECT * FROM ask('SELECT x, 1 FROM a INTERSECT SELECT x, 2 FROM b', false);
SELECT * FROM ask('SELECT x, NULL FROM a WHERE x > 3 INTERSECT SELECT x, NULL FROM b ORDER BY 1');
-- Below other things, and above them.
SELECT * FROM ask('SELECT count(*), sum(x) FROM (SELECT x FROM a INTERSECT SELECT x FROM b) q');
SELECT * FROM ask('SELECT count(*) FROM (SELECT x, t FROM a EXCEPT SELECT x, t FROM b) q WHERE t > ''v1''');
SELECT * FROM ask('SELECT a.x, count(*) FROM a JOIN (SELECT x FROM a INTERSECT SELECT x FROM b) q ON a.x = q.x GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT x, count(*) FROM a WHERE x IN (SELECT x FROM b EXCEPT SELECT x FROM b WHERE n > 2) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT x, sum(n) FROM a GROUP BY x INTERSECT SELECT x, sum(n) FROM a WHERE n > 0 GROUP BY x ORDER BY 1');
SELECT * FROM ask('SELECT a.x, b.t FROM a JOIN b ON a.x = b.x AND a.n = b.n EXCEPT SELECT x, t FROM b WHERE x = 2 ORDER BY 1, 2');
-- ALL counts rows: PostgreSQL does.
SELECT * FROM ask('SELECT x FROM a INTERSECT ALL SELECT x FROM b ORDER BY 1');
-- An error of a row is PostgreSQL's.
SET gpuvm.force = on;
SET gpuvm.whole_query = on;
SELECT 10 / (x - 2) FROM a EXCEPT SELECT x FROM b;
-- Prepared, and under a cursor.
PREPARE both_(int) AS SELECT x FROM a WHERE n > $1 INTERSECT SELECT x FROM b WHERE n > $1 ORDER BY 1;
EXECUTE both_(2);
EXECUTE both_(7);
BEGIN;
DECLARE s SCROLL CURSOR FOR SELECT x FROM a EXCEPT SELECT x FROM b ORDER BY 1;
FETCH ALL FROM s;
FETCH PRIOR FROM s;
COMMIT;
CREATE VIEW rest AS SELECT x, t FROM a EXCEPT SELECT x, t FROM b;
SELECT * FROM ask('SELECT * FROM rest ORDER BY 1, 2');
-- How it looks.
EXPLAIN (COSTS OFF, VERBOSE) SELECT x AS first, d FROM a EXCEPT SELECT x, d FROM b ORDER BY 2 DESC;
SELECT gpuvm.algebra('SELECT x FROM a EXCEPT SELECT x FROM b EXCEPT SELECT x FROM nothing');
RESET gpuvm.whole_query;
DROP SCHEMA whole_setops CASCADE;
