-- Groups by keys of a known range, too many for a table of all their slots: together with their like or in any order, with nulls, of two columns.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA slots;
SET search_path = slots;
SET gpuvm.force = on;
SET work_mem = '64MB';

\set ECHO none
\i tests/sql/include/ask_many.sql
\set ECHO all

CREATE TABLE g (together int, far bigint, mixed int, holes int, a smallint, b int, skewed int, v int, n numeric(9, 2), f float8)
	WITH (autovacuum_enabled = off);
INSERT INTO g SELECT i / 3 * 5 - 1000, i / 3 * bigint '1000003', i::bigint * 7919 % 150001,
		CASE WHEN i % 50 > 0 THEN i / 4 * 3 END, i / 2000, nullif(i % 700, 7),
		CASE WHEN i % 10 < 9 THEN i % 3 ELSE i::bigint * 104729 % 400009 END, i % 1013 - 500, i % 997 / 7.0, i % 31 / 8.0
	FROM generate_series(1, 200000) i;
ANALYZE g;
SELECT gpuvm.import('g');

INSERT INTO queries (query) SELECT format('SELECT %s, count(*), sum(v), min(v), avg(n) FROM g %s GROUP BY %1$s', k, w)
	FROM unnest(ARRAY['together', 'far', 'mixed', 'holes', 'a, b', 'skewed', 'together, holes']) k, unnest(ARRAY['', 'WHERE v % 3 = 0']) w;
SELECT * FROM asked();

-- with rows that have changed since
UPDATE g SET v = v + 1, holes = NULL, together = -5000 WHERE v = 77;
DELETE FROM g WHERE v = 99;
INSERT INTO queries (query) SELECT format('SELECT %s, count(holes), max(f), sum(f), sum(n) FILTER (WHERE v > 0)
			FROM g WHERE mixed < 90000 AND v <> 5 GROUP BY %1$s', k)
	FROM unnest(ARRAY['together', 'far', 'mixed', 'holes', 'a, b', 'skewed']) k;
SELECT * FROM asked();

SET client_min_messages = warning;
DROP SCHEMA slots CASCADE;
