-- Comparisons with ALL and ANY values of a subquery that depends on the row, and LATERAL subqueries that group, or take the first rows of a key.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA whole_lateral;
SET search_path = whole_lateral;
CREATE TABLE t (id int PRIMARY KEY, k int, g int8, n numeric(10,2), s text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, nullif(i % 70, 9), i % 7, CASE WHEN i % 11 > 0 THEN (i * 7919) % 5000 / 100.0 END, 's' || i % 13 FROM generate_series(1, 700) i;
CREATE TABLE u (id int PRIMARY KEY, k int, g int, n numeric(10,2), s text, d date NOT NULL) WITH (autovacuum_enabled = off);
INSERT INTO u SELECT i, nullif(i % 60, 3), i % 5, CASE WHEN i % 17 > 0 THEN (i * 104729) % 6000 / 100.0 END, 's' || i % 19, date '2024-01-01' + i * 37 % 500 FROM generate_series(1, 3000) i;
SET client_min_messages = warning;
SELECT gpuvm.import('t'), gpuvm.import('u');
RESET client_min_messages;
ANALYZE t, u;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/answers.sql
\set ECHO all
-- Is nothing computed for each row?
CREATE FUNCTION is_join(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	line text;
	alternative int;
	depth int;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		depth := length(line) - length(ltrim(line));
		IF line ~ '^ *Stages: ' AND alternative IS NOT NULL THEN
			RETURN true;
		ELSIF line ~ 'Custom Scan' AND alternative IS NULL THEN
			alternative := depth;
		ELSIF alternative IS NOT NULL AND depth <= alternative THEN
			alternative := NULL;
		END IF;
		IF line ~ 'SubPlan|Nested Loop' AND alternative IS NULL THEN
			RETURN false;
		END IF;
	END LOOP;
	RETURN true;
END $$;
CREATE TABLE queries (n int GENERATED ALWAYS AS IDENTITY, joins bool, query text);
INSERT INTO queries (joins, query) VALUES
	-- ALL, ANY, NOT IN: nulls on both sides, no rows, several columns
	(true, 'SELECT id FROM t WHERE n > ALL (SELECT n FROM u WHERE u.k = t.k AND u.n IS NOT NULL)'),
	(true, 'SELECT id FROM t WHERE n >= ALL (SELECT n FROM u WHERE u.k = t.k AND u.g = 2)'),
	(true, 'SELECT id FROM t WHERE n <> ALL (SELECT n FROM u WHERE u.k = t.k AND u.g = t.g)'),
	(true, 'SELECT id FROM t WHERE n < ANY (SELECT n FROM u WHERE u.k = t.k AND u.id < t.id)'),
	(false, 'SELECT id FROM t WHERE n = ANY (SELECT n + t.g FROM u WHERE u.k = t.k)'),
	(true, 'SELECT id FROM t WHERE (g, s) IN (SELECT u.g, u.s FROM u WHERE u.k = t.k)'),
	(true, 'SELECT id FROM t WHERE (n, s) NOT IN (SELECT u.n, u.s FROM u WHERE u.k = t.k)'),
	(true, 'SELECT id FROM t WHERE id NOT IN (SELECT u.id FROM u WHERE u.n > t.n AND u.k = t.k)'),
	(true, 'SELECT count(*) FROM t a WHERE a.n >= ALL (SELECT b.n FROM t b WHERE b.k = a.k AND b.n IS NOT NULL)'),
	(true, 'SELECT id FROM t WHERE g > ALL (SELECT u.g FROM u, t x WHERE u.k = t.k AND x.id = u.id AND x.n > 40)'),
	(true, 'WITH c AS (SELECT k, max(n) AS n FROM u GROUP BY k) SELECT id FROM t WHERE n > ALL (SELECT c.n FROM c WHERE c.k = t.k)'),
	-- groups of each key
	(true, 'SELECT t.id, x.* FROM t CROSS JOIN LATERAL (SELECT g, count(*) c, sum(n) s FROM u WHERE u.k = t.k GROUP BY g) x'),
	(true, 'SELECT t.id, x.* FROM t LEFT JOIN LATERAL (SELECT u.g, max(n) m FROM u WHERE u.k = t.k AND u.g = t.g AND u.s < ''s15'' GROUP BY u.g HAVING count(*) > 2) x ON x.m > t.n'),
	(true, 'SELECT t.g, sum(x.c) FROM t, LATERAL (SELECT s, count(*) c FROM u WHERE t.k = u.k GROUP BY s) x WHERE x.s = t.s GROUP BY t.g'),
	(true, 'SELECT t.id, x.s FROM t JOIN u ON u.id = t.id CROSS JOIN LATERAL (SELECT v.s FROM u v WHERE v.k = u.k GROUP BY v.s) x WHERE x.s <> t.s'),
	-- first rows of each key
	(true, 'SELECT t.id, x.* FROM t CROSS JOIN LATERAL (SELECT id, d FROM u WHERE u.k = t.k ORDER BY d DESC, id LIMIT 3) x'),
	(true, 'SELECT t.id, x.* FROM t LEFT JOIN LATERAL (SELECT u.id, u.n FROM u WHERE u.k = t.k AND u.g < 3 ORDER BY u.n NULLS FIRST, u.id DESC LIMIT 1) x ON true'),
	(true, 'SELECT t.id, x.* FROM t LEFT JOIN LATERAL (SELECT u.id, u.n FROM u WHERE u.k = t.k ORDER BY u.d, u.id LIMIT 2) x ON x.n > t.n'),
	(true, 'SELECT t.id, x.* FROM t, LATERAL (SELECT s, sum(n) m FROM u WHERE u.k = t.k GROUP BY s ORDER BY sum(n) DESC NULLS LAST, s LIMIT 2) x WHERE t.g = 3'),
	(true, 'SELECT count(*), sum(x.n), sum(y.id) FROM t CROSS JOIN LATERAL (SELECT n, g FROM u WHERE u.k = t.k ORDER BY d, id LIMIT 1) x LEFT JOIN LATERAL (SELECT id FROM u WHERE u.g = x.g AND u.k = t.k ORDER BY id LIMIT 1) y ON true'),
	(true, 'SELECT t.id, x.id FROM t CROSS JOIN LATERAL (SELECT u.id FROM u JOIN t v USING (id) WHERE v.k = t.k ORDER BY u.id LIMIT 2) x'),
	(true, 'SELECT t.id, x.id FROM t CROSS JOIN LATERAL (SELECT id FROM u WHERE u.k = t.k ORDER BY id OFFSET 1 LIMIT 2) x WHERE t.id < 100'),
	(true, 'SELECT t.id, x.id FROM t LEFT JOIN LATERAL (SELECT id FROM u WHERE u.k = t.k ORDER BY id OFFSET 45 LIMIT 9223372036854775807) x ON true'),
	(true, 'SELECT t.id, x.id FROM t LEFT JOIN LATERAL (SELECT id FROM u WHERE u.k = t.k ORDER BY id LIMIT 0) x ON true'),
	(true, 'SELECT t.id, (SELECT u.s FROM u WHERE u.k = t.k ORDER BY u.d DESC, u.id LIMIT 1) FROM t'),
	(true, 'SELECT t.id, (SELECT u.n FROM u WHERE u.k = t.k AND u.g = t.g ORDER BY u.n DESC NULLS LAST, u.id LIMIT 1 OFFSET 1) FROM t'),
	(false, 'SELECT t.id FROM t WHERE t.n > (SELECT u.n FROM u WHERE u.k = t.k AND u.g < 4 ORDER BY u.d, u.id LIMIT 1)'),
	(true, 'SELECT t.id FROM t WHERE EXISTS (SELECT FROM u WHERE u.k = t.k ORDER BY u.d, u.id OFFSET 48 LIMIT 1)'),
	-- these are computed for each row: other limits, the whole row, the right side of an outer join, by an inequality
	(false, 'SELECT t.id, x.id FROM t CROSS JOIN LATERAL (SELECT id FROM u WHERE u.k = t.k ORDER BY d FETCH FIRST 1 ROW WITH TIES) x WHERE t.id < 100'),
	(false, 'SELECT t.id, x FROM t CROSS JOIN LATERAL (SELECT id, n FROM u WHERE u.k = t.k ORDER BY id LIMIT 2) x WHERE t.id < 100'),
	(false, 'SELECT t.id, x.id FROM t CROSS JOIN LATERAL (SELECT id FROM u WHERE u.k < t.g ORDER BY id LIMIT 2) x WHERE t.id < 100'),
	(true, 'SELECT t.id, x.q FROM t CROSS JOIN LATERAL (SELECT 60 / (1 + u.id) AS q FROM u WHERE u.k = t.k ORDER BY id LIMIT 2) x WHERE t.id < 100'),
	(true, 'SELECT id FROM t WHERE id < 100 AND n > ALL (SELECT max(n) FROM u WHERE u.k = t.k GROUP BY g)');
SET gpuvm.enabled = off;
CREATE TABLE expected AS SELECT n, answers(query) AS answer FROM queries;
RESET gpuvm.enabled;
SELECT q.query, is_join(q.query), answers(q.query), e.answer FROM queries q JOIN expected e USING (n) WHERE is_join(q.query) <> q.joins OR answers(q.query) IS DISTINCT FROM e.answer;
SELECT n, answer FROM expected ORDER BY n;
SET gpuvm.require = :device;
SELECT q.n, answers(query) = e.answer AS same FROM queries q JOIN expected e USING (n) WHERE joins ORDER BY n;
RESET gpuvm.require;
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE n > ALL (SELECT n FROM u WHERE u.k = t.k);
-- Changed rows, and parameters.
UPDATE u SET n = n + 1, k = k + 1 WHERE id % 40 = 0;
DELETE FROM t WHERE id % 30 = 0;
-- A negative LIMIT is an error, if a row comes to it.
SELECT t.id, x.id FROM t CROSS JOIN LATERAL (SELECT id FROM u WHERE u.k = t.k ORDER BY id LIMIT -1) x;
SELECT t.id, x.id FROM t CROSS JOIN LATERAL (SELECT id FROM u WHERE u.k = t.k ORDER BY id LIMIT -1) x WHERE t.id < 0;
PREPARE p (int) AS SELECT count(*), sum(x.id) FROM t CROSS JOIN LATERAL (SELECT id FROM u WHERE u.k = t.k AND u.g = $1 ORDER BY d, id LIMIT 2) x;
EXECUTE p (1);
EXECUTE p (NULL);
\set ECHO none
\i tests/sql/include/differs.sql
\set ECHO all
SELECT * FROM differs();
SET gpuvm.enabled = off;
EXECUTE p (1);
RESET gpuvm.enabled;
SET client_min_messages = warning;
DROP SCHEMA whole_lateral CASCADE;
