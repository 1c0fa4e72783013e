-- Joins with what is no imported table: subqueries, CTEs, VALUES, functions and other tables, whose rows a program reads.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA derived;
SET search_path = derived;
CREATE TABLE f (id int, k int, v int, t text, n numeric(12,2), d date) WITH (autovacuum_enabled = off);
INSERT INTO f SELECT i, nullif(i % 40, 7), (i * 7919) % 1000, 'x' || i % 23, CASE WHEN i % 11 > 0 THEN (i % 777) / 7.0 END, date '2024-01-01' + i % 300
	FROM generate_series(1, 3000) i;
CREATE TABLE parted (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10) WITH (autovacuum_enabled = off);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10) TO (40) WITH (autovacuum_enabled = off);
INSERT INTO parted SELECT i % 40, i FROM generate_series(1, 200) i;
-- Not imported: numerics of two places and of any, texts of which f has some, nulls.
CREATE TABLE away (id int, k int, t text, n numeric(10,2), m numeric) WITH (autovacuum_enabled = off);
INSERT INTO away SELECT i, i % 50, 'x' || i % 31, i / 3.0, i / 8.0 FROM generate_series(1, 200) i;
INSERT INTO away VALUES (NULL, NULL, NULL, NULL, NULL), (NULL, 3, NULL, 1, NULL);
CREATE TABLE nothing (LIKE away) WITH (autovacuum_enabled = off);
SET client_min_messages = warning;
SELECT sum(gpuvm.import(t)) FROM unnest('{f,parted_1,parted_2}'::regclass[]) t;
RESET client_min_messages;
ANALYZE f, parted, away;
SET gpuvm.force = on;

-- How many plans' rows do the query's programs read, and why did one not run?
CREATE FUNCTION children(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	line text;
	n int := 0;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		n := n + (line ~ '^ *(Join|Driver|Relation): .*\(rows of child')::int;
	END LOOP;
	RETURN n;
END $$;
\set ECHO none
\i tests/sql/include/fallbacks.sql
\i tests/sql/include/answers.sql
\set ECHO all
CREATE TABLE queries (n int GENERATED ALWAYS AS IDENTITY, children int, query text);
INSERT INTO queries (children, query) VALUES
	-- subqueries that aggregate, by programs of their own
	(1, 'SELECT count(*), sum(f.v), sum(s.c) FROM f JOIN (SELECT k, count(*) c, max(v) m FROM f GROUP BY k HAVING count(*) > 10) s ON s.k = f.k WHERE s.m > f.v'),
	(1, 'SELECT f.id, s.c FROM f LEFT JOIN (SELECT k, count(*) c FROM f WHERE v > 990 GROUP BY k) s ON s.k = f.v'),
	(1, 'SELECT f.id, s.* FROM (SELECT k, count(*) c FROM f WHERE v > 990 GROUP BY k) s LEFT JOIN f ON s.k = f.v AND s.c < f.id'),
	(1, 'SELECT f.id, s.* FROM f FULL JOIN (SELECT v, count(*) c FROM f WHERE id < 200 GROUP BY v) s ON s.v = f.id'),
	(1, 'SELECT count(*) FROM f WHERE k IN (SELECT k FROM f GROUP BY k HAVING sum(v) > 36000)'),
	(1, 'SELECT f.k, sum(f.v) FROM f JOIN parted p ON p.k = f.k WHERE f.k IN (SELECT k FROM parted GROUP BY k HAVING count(*) > 4) GROUP BY f.k'),
	(2, 'SELECT count(*) FROM f JOIN (SELECT k, max(v) m FROM f GROUP BY k) a ON a.m = f.v JOIN (SELECT v, min(k) m FROM parted GROUP BY v) b ON b.m = a.k'),
	(2, 'SELECT f.id FROM f JOIN (SELECT f.k, count(*) c FROM f JOIN away ON away.k = f.v GROUP BY f.k) s ON s.k = f.k AND s.c > f.id'),
	-- other tables, on either side
	(1, 'SELECT f.id, away.* FROM f JOIN away ON away.k = f.k AND away.id > f.v'),
	(1, 'SELECT f.id, away.* FROM f RIGHT JOIN away ON away.k = f.v AND away.n > f.n'),
	(1, 'SELECT count(*) FROM f WHERE EXISTS (SELECT FROM away WHERE away.k = f.k AND away.id < f.v)'),
	(1, 'SELECT count(*) FROM f WHERE NOT EXISTS (SELECT FROM away WHERE away.k = f.k AND away.id > f.v)'),
	(1, 'SELECT f.id, n.* FROM f JOIN nothing n USING (k)'),
	(1, 'SELECT f.id, n.* FROM f LEFT JOIN nothing n USING (k)'),
	(1, 'SELECT p.v, away.t FROM parted p JOIN away USING (k)'),
	-- CTEs, VALUES, functions, unions
	(0, 'WITH c AS MATERIALIZED (SELECT k, count(*) c FROM f GROUP BY k) SELECT count(*), sum(a.c) FROM f JOIN c a ON a.k = f.k JOIN c b ON b.k = f.v'),
	(1, 'WITH c AS MATERIALIZED (SELECT k, sum(n) c FROM f WHERE k > 0 GROUP BY k) SELECT f.id, c.c FROM f JOIN c USING (k) WHERE c.c = (SELECT max(c) FROM c)'),
	(1, 'WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 100) SELECT count(*) FROM f JOIN r ON r.i = f.k'),
	(1, 'SELECT f.id, x.b FROM f JOIN (VALUES (1, 2.50), (3, 4.10), (5, NULL), (NULL, 7.00)) x (a, b) ON x.a = f.k AND f.n > x.b'),
	(1, 'SELECT f.id FROM f JOIN (VALUES (1, 2.5), (3, 4.100)) x (a, b) ON x.a = f.k AND f.n > x.b'),
	(1, 'SELECT f.id, x FROM f JOIN generate_series(1, 2000, 7) x ON x = f.v'),
	(3, 'SELECT count(*) FROM f JOIN (SELECT k FROM away WHERE id < 30 UNION SELECT k FROM f WHERE v < 100) s USING (k)'),
	-- UNION ALL, its arms tables, groups, constants, unions and what PostgreSQL reads: joined on either side, and aggregated
	(1, 'SELECT count(*), sum(u.v) FROM parted p JOIN (SELECT k, v FROM f WHERE v < 50 UNION ALL SELECT k, id FROM f WHERE v > 950) u USING (k)'),
	(1, 'SELECT p.v, u.* FROM parted p LEFT JOIN (SELECT k, count(*) c, sum(n) s FROM f GROUP BY k UNION ALL SELECT k, count(*), max(n) FROM f WHERE v < 300 GROUP BY k) u ON u.k = p.k AND u.s > p.v'),
	(4, 'SELECT f.id, u.* FROM (SELECT 1 AS k, 2.5 AS n UNION ALL SELECT k, n FROM f WHERE v < 20 UNION ALL (SELECT k, n FROM away UNION ALL SELECT 3, NULL)) u JOIN f ON f.k = u.k AND f.n > u.n'),
	(1, 'SELECT count(*) FROM f WHERE EXISTS (SELECT FROM (SELECT k, v FROM f UNION ALL SELECT k, v + 1 FROM parted) u WHERE u.v = f.id AND u.k < f.k)'),
	(2, 'SELECT count(*) FROM f WHERE v IN (SELECT id FROM f WHERE k = 3 UNION ALL SELECT id FROM away)'),
	(1, 'SELECT u.t, count(*), sum(u.n), min(u.n) FROM (SELECT t, n FROM f WHERE v < 500 UNION ALL SELECT lower(t), n FROM f WHERE k = 9) u GROUP BY u.t'),
	(3, 'SELECT s, count(*), sum(c) FROM (SELECT 1 AS s, k, count(*) c FROM f GROUP BY k UNION ALL SELECT 2, k, count(*) FROM parted GROUP BY k) u GROUP BY s'),
	(0, 'SELECT f.id, u.x FROM f JOIN (SELECT k, avg(n) x FROM f GROUP BY k UNION SELECT k, max(n) FROM f GROUP BY k) u ON u.k = f.k AND u.x < f.n'),
	(2, 'SELECT count(*) FROM (SELECT k, v FROM f UNION ALL SELECT k, 5 FROM f) a JOIN (SELECT k, v FROM parted UNION ALL SELECT id, 1 FROM f WHERE v < 100) b ON a.k = b.k AND a.v < b.v'),
	(0, 'SELECT count(*) FROM f JOIN (SELECT k, random() < 2 AS r FROM f UNION ALL SELECT k, true FROM parted) u ON u.k = f.k AND u.r WHERE f.v < 20'),
	-- aggregated alone, where a program makes them
	(1, 'WITH c AS MATERIALIZED (SELECT k, sum(n) c FROM f GROUP BY k) SELECT max(c), count(*), count(k) FROM c WHERE k > 3'),
	(0, 'SELECT y, count(*), max(x) FROM (SELECT k AS x, lower(t) AS y FROM f ORDER BY id LIMIT 100) s GROUP BY y'),
	(4, 'SELECT GROUPING(x), x, count(y), sum(z) FROM (SELECT k AS x, sum(n) AS y, count(DISTINCT v) AS z FROM f GROUP BY k) s GROUP BY ROLLUP (x)'),
	(0, 'SELECT t, count(*) FROM away GROUP BY t'),
	-- texts: in the dictionary and not, joined, compared, grouped
	(1, 'SELECT f.t, count(*), sum(away.id) FROM f JOIN away USING (t) WHERE f.k < 10 GROUP BY f.t'),
	(1, 'SELECT away.t, count(*), max(f.t) FROM f JOIN away USING (k) GROUP BY away.t'),
	(1, 'SELECT away.t, away.t || f.t, upper(away.t), f.id FROM f JOIN away USING (k) WHERE f.v < 100 AND away.t < f.t'),
	(2, 'SELECT f.id, s.t FROM f JOIN (SELECT k, max(t) t FROM away GROUP BY k) s ON s.k = f.k AND s.t LIKE ''x2%'' AND upper(s.t) <> upper(f.t)'),
	-- numerics: of a known scale computed with, of others handed on; compared without being shown, they may have fewer decimals
	(1, 'SELECT sum(f.n * away.n), sum(away.n), avg(away.n) FROM f JOIN away USING (k)'),
	(1, 'SELECT f.id, away.m FROM f JOIN away ON away.k = f.k AND away.n < f.n'),
	(1, 'SELECT f.id, s.x FROM f JOIN (SELECT k, sum(n) x FROM f GROUP BY k) s ON s.k = f.k WHERE f.n * 100 > s.x'),
	(1, 'SELECT f.k, sum(f.n * s.x) FROM f JOIN (SELECT k, max(n) x FROM f GROUP BY k) s ON s.k = f.k AND s.x < f.n * 2 GROUP BY f.k'),
	(1, 'SELECT f.id FROM f JOIN (SELECT k, 0.2 * avg(n) x FROM f WHERE n BETWEEN 20 AND 60 GROUP BY k) s ON s.k = f.k AND s.x > f.k'),
	-- rescans: what a child depends on changes, or does not
	(0, 'SELECT id, (SELECT count(*) FROM f JOIN (SELECT k, count(*) c FROM f WHERE v > away.id * 5 GROUP BY k) s ON s.k = f.k AND s.c > f.v) FROM away WHERE id < 20'),
	(0, 'SELECT id, (SELECT count(*) FROM f JOIN (SELECT k, count(*) c FROM f GROUP BY k) s ON s.k = f.k AND s.c > f.v + away.id) FROM away WHERE id < 20'),
	(0, 'SELECT id, (WITH c AS MATERIALIZED (SELECT k, count(*) c FROM f WHERE v > away.id * 5 GROUP BY k) SELECT count(*) FROM f JOIN c a ON a.k = f.k JOIN c b ON b.k = f.v)
		FROM away WHERE id < 20'),
	-- subqueries within
	(5, 'SELECT count(*), sum(s.c) FROM f JOIN (SELECT k, count(*) c FROM f WHERE v > (SELECT avg(id) FROM away) GROUP BY k) s ON s.k = f.k WHERE f.v < (SELECT max(id) FROM away)'),
	(3, 'SELECT count(*) FROM f JOIN (SELECT k, count(*) c FROM f WHERE EXISTS (SELECT FROM away WHERE id > 190) GROUP BY k) s ON s.k = f.k AND s.c > f.v'),
	(2, 'SELECT count(*) FROM f JOIN (SELECT min(id) a, max(k) b FROM away) s ON s.a < f.v AND s.b = f.k'),
	-- these stay with PostgreSQL: another answer each time, or what depends on the other side
	(0, 'SELECT count(*) FROM f JOIN (SELECT k, random() < 2 AS r FROM away) s ON s.k = f.k WHERE s.r'),
	(0, 'SELECT f.id, s.* FROM f LEFT JOIN LATERAL (SELECT count(*), max(random()) < 2 FROM away WHERE away.k = f.k) s ON true WHERE f.v < 100'),
	(0, 'SELECT count(*) FROM f JOIN away TABLESAMPLE SYSTEM (100) USING (k)');
SET gpuvm.enabled = off;
CREATE TABLE expected AS SELECT n, answers(query) AS answer FROM queries;
RESET gpuvm.enabled;
SELECT q.query, children(q.query), answers(q.query), e.answer FROM queries q JOIN expected e USING (n)
	WHERE children(q.query) <> q.children OR answers(q.query) IS DISTINCT FROM e.answer;
SELECT n, answer FROM expected ORDER BY n;
-- They ran where they were to.
SELECT q.n, b FROM queries q, fallbacks(q.query) b WHERE q.children > 0;
SET gpuvm.require = :device;
SELECT answers(query) FROM queries WHERE n IN (1, 5, 7, 20);
RESET gpuvm.require;

-- What does not fit, once the other plan has been run: its own plan answers, and what it has of subqueries and CTEs is as it was.
INSERT INTO queries (children, query) VALUES
	(1, 'SELECT count(*), sum(s.c) FROM f JOIN (SELECT k, count(*) c FROM f WHERE v > (SELECT avg(v) FROM f) GROUP BY k) s ON s.k = f.k WHERE f.n * f.n * f.n * f.n * f.n * f.n * f.n * f.n > s.c'),
	(1, 'SELECT f.id, s.c FROM f JOIN (SELECT k, count(*) c FROM f WHERE v > (SELECT avg(v) FROM f) AND EXISTS (SELECT FROM away WHERE id > 2) GROUP BY k) s ON s.k = f.k
		WHERE f.n * f.n * f.n * f.n * f.n * f.n * f.n * f.n > s.c'),
	(2, 'WITH c AS MATERIALIZED (SELECT k, count(*) c FROM f WHERE v > (SELECT avg(v) FROM f) GROUP BY k)
		SELECT count(*), sum(a.c) FROM f JOIN c a ON a.k = f.k JOIN c b ON b.k = f.v WHERE f.n * f.n * f.n * f.n * f.n * f.n * f.n * f.n > a.c'),
	(1, 'SELECT id, (SELECT count(*) FROM f JOIN (SELECT k, count(*) c FROM f WHERE v > away.id * 5 AND v > (SELECT avg(b.id + away.id) FROM away b) GROUP BY k) s ON s.k = f.k
		WHERE f.n * f.n * f.n * f.n * f.n * f.n * f.n * f.n > s.c) FROM away WHERE id < 5'),
	(1, 'SELECT count(*), sum(s.c) FROM f JOIN (SELECT k, count(*) c FROM f GROUP BY k) s ON s.k = f.k WHERE f.n * f.n * f.n * f.n * f.n * f.n * f.n * f.n > s.c'),
	(1, 'SELECT f.id FROM f JOIN (SELECT k % 3 AS k, avg(n) / 1e12 AS x FROM f GROUP BY k % 3) s ON s.k = f.k AND f.n < s.x');
\set ECHO none
\i tests/sql/include/differs.sql
\set ECHO all
SELECT * FROM differs();
SELECT q.n, children, b FROM queries q, fallbacks(q.query) b WHERE q.n > (SELECT max(n) FROM expected);

-- Changed tables, on either side.
UPDATE f SET k = 4, n = -n WHERE id % 50 = 3;
DELETE FROM away WHERE id BETWEEN 10 AND 12;
INSERT INTO away VALUES (7, 7, 'new', 7.77, 7.777);
SELECT * FROM differs();

-- Prepared statements, cursors, and a plan that is made anew.
SET plan_cache_mode = force_generic_plan;
PREPARE p (int) AS SELECT count(*), sum(s.c) FROM f JOIN (SELECT k, count(*) c FROM f WHERE v > $1 GROUP BY k) s ON s.k = f.k AND s.c > f.v;
EXECUTE p (10);
EXECUTE p (900);
EXECUTE p (NULL);
ALTER TABLE away ADD COLUMN more int DEFAULT 5;
PREPARE q AS SELECT count(*), sum(a.id) > 5 FROM f JOIN away a USING (k);
EXECUTE q;
ALTER TABLE away ALTER COLUMN id TYPE int8;
EXECUTE q;
RESET plan_cache_mode;
\set QUIET off
BEGIN;
DECLARE rows CURSOR FOR SELECT f.id, s.c FROM f JOIN (SELECT k, count(*) c FROM f GROUP BY k) s ON s.k = f.k;
MOVE 1000 IN rows;
UPDATE f SET k = NULL;
MOVE ALL IN rows;
ROLLBACK;
\set QUIET on

-- Values with different numbers of decimals, which something above the join looks at, are not the program's to hand on.
SELECT s.x, count(*) FROM f JOIN (VALUES (1, 2.5), (3, 4.125)) x (a, b) ON x.a = f.k AND f.n > x.b, LATERAL (SELECT x.b::text OFFSET 0) s (x) GROUP BY s.x ORDER BY s.x;

-- What a subquery raises is raised where PostgreSQL's own plan comes to its rows.
SELECT f.id, q.s FROM f LEFT JOIN (SELECT k, sum(1.0 / (v - v)) AS s FROM f GROUP BY k) q ON q.k = f.k WHERE f.id < -5;
SELECT count(q.s) FROM f LEFT JOIN (SELECT k, sum(1.0 / (v - v)) AS s FROM f GROUP BY k) q ON q.k = f.k;

-- Of what need not have an end PostgreSQL reads what LIMIT asks for.
SELECT children('WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT f.id FROM f JOIN r ON r.i = f.k LIMIT 3');

-- Without force the cheaper one runs.
RESET gpuvm.force;
SELECT children('SELECT count(*) FROM f JOIN away USING (k) WHERE f.id = 1');
SET gpuvm.force = on;

-- The plan says what it reads, and what gpuvm.require demands holds below it, too.
EXPLAIN (COSTS OFF) SELECT f.t, count(*) FROM f JOIN (SELECT k, max(t) t FROM f GROUP BY k) s ON s.k = f.k AND upper(s.t) > f.t JOIN away a ON a.id = f.id GROUP BY f.t;
SET gpuvm.require = :device;
SELECT sum(s.c) FROM f JOIN (SELECT k, count(*) c FROM f TABLESAMPLE SYSTEM (100) GROUP BY k) s USING (k);
RESET gpuvm.require;
SET client_min_messages = warning;
DROP SCHEMA derived CASCADE;
