-- Keys of types whose values may be equal without being the same, of columns that have no such values, until changes bring some (equal_values has more of these).
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA equal_keys;
SET search_path = equal_keys;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/ask_many.sql
\set ECHO all

CREATE TABLE t (id int, v interval, j jsonb, a int[], w text[], b bpchar, m numeric[], d int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 7 * interval '1 day', jsonb_build_object('k', i % 9), ARRAY[i % 5, NULL], ARRAY['x' || i % 3, ''], 'c' || i % 4, ARRAY[i % 6, 1.50], i % 3 FROM generate_series(1, 3000) i;
INSERT INTO t (id, d) VALUES (3001, 1);
SELECT gpuvm.import('t');
ANALYZE t;

CREATE TABLE kept (query text);
INSERT INTO kept SELECT 'SELECT ' || q FROM unnest(ARRAY['v, count(*) FROM t GROUP BY v', 'j, sum(id) FROM t GROUP BY j', 'a, max(id) FROM t WHERE d < 2 GROUP BY a', 'w, b, count(*) FROM t GROUP BY w, b', 'm, count(DISTINCT v), count(DISTINCT j) FROM t GROUP BY m',
	'DISTINCT b FROM t', 'DISTINCT v, j FROM t', 'count(DISTINCT a), count(DISTINCT m) FROM t', 'b, d, count(*), count(DISTINCT v) FROM t GROUP BY ROLLUP (b, d)', 'date_trunc(''month'', v + interval ''40 days''), count(*) FROM t GROUP BY 1', 'j -> ''k'', count(*) FROM t GROUP BY 1',
	'v, count(*) FROM t GROUP BY v HAVING v > ''3 days'' AND count(*) > 5', 'v, min(v), max(v) FROM t GROUP BY v', 'x.b, y.v, count(*) FROM t x JOIN t y ON x.v = y.v AND x.id = y.id GROUP BY x.b, y.v', 'v FROM t GROUP BY v ORDER BY v DESC NULLS FIRST LIMIT 3', 'count(*) FROM (SELECT v FROM t GROUP BY v) s']) q;
INSERT INTO queries (query) SELECT query FROM kept;
SELECT * FROM asked();

-- Values that only changed rows have.
INSERT INTO t VALUES (4000, '9 days', '{"k": 99}', '{7}', '{}', 'new', '{2.50}', 1), (4001, '8 days 12:00', '"x"', '{{1,2}}', '{x}', 'newer', '{}', 2);
DELETE FROM t WHERE v = '2 days';
INSERT INTO queries (query) SELECT query FROM kept;
SELECT * FROM asked();
SELECT gpuvm.refresh('t');
INSERT INTO queries (query) SELECT query FROM kept;
SELECT * FROM asked();
SET gpuvm.require = :device;
SELECT v, count(*) FROM t GROUP BY v ORDER BY v;
RESET gpuvm.require;

-- One that equals another: the one of the first row is shown.
INSERT INTO t VALUES (5000, '24:00:00', '{"k": 1.0}', '{7}', '{}', 'c1  ', '{1,1.5}', 1);
INSERT INTO queries (query) SELECT query FROM kept;
SELECT * FROM asked();
SELECT v, j, b, m, count(*) FROM t WHERE id IN (1, 5000) GROUP BY v, j, b, m;
-- Gone, and its column is served again after an import.
DELETE FROM t WHERE id = 5000;
SELECT gpuvm.import('t');
INSERT INTO queries (query) SELECT query FROM kept;
SELECT * FROM asked();

-- Without an order there are no ranks: no key.
SELECT reason FROM gpuvm.why_not('SELECT CASE WHEN d = 1 THEN v ELSE interval ''1 h'' END, count(*) FROM t GROUP BY 1');
SET client_min_messages = warning;
DROP SCHEMA equal_keys CASCADE;
