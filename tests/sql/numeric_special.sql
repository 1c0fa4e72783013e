-- NaN and infinities in numeric columns: what is computed with them is exactly PostgreSQL's.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA numeric_special;
SET search_path = numeric_special;
SET gpuvm.force = on;
\set VERBOSITY default
\set ECHO none
\i tests/sql/include/ask_all.sql
\set ECHO all

-- v: all three; n: NaN alone, of a prescribed scale; f: finite; w: large ones, and infinities; o: nothing but NaN; s: of 64 bits.
CREATE TABLE marks (id int, v numeric, n numeric(12, 2), f numeric(12, 2), w numeric, o numeric, s numeric(6, 1), g int) WITH (autovacuum_enabled = off);
INSERT INTO marks SELECT i, CASE WHEN i % 97 = 0 THEN 'NaN' WHEN i % 89 = 0 THEN 'Infinity' WHEN i % 83 = 0 THEN '-Infinity' WHEN i % 7 > 0 THEN (i - 1500) * 1.25 END,
	CASE WHEN i % 50 = 0 THEN 'NaN' ELSE (i % 20 - 10) * 0.5 END, i * 0.25, CASE WHEN i % 500 = 0 THEN '-Infinity' WHEN i % 501 = 0 THEN 'Infinity' ELSE (i - 1000) * 1e25 END,
	'NaN', i % 11 - 5, i % 5 FROM generate_series(1, 3000) i;
SELECT gpuvm.import('marks');
SELECT "column", type, scale, nulls FROM gpuvm.tablets WHERE relation = 'marks'::regclass;

SET gpuvm.require = :device;
SELECT id, v, n, w, o FROM marks WHERE id IN (1, 7, 50, 83, 89, 97, 500, 501) ORDER BY v, id;
SELECT sum(v), avg(v), sum(n), avg(n), sum(w), avg(w), sum(o), count(o) FROM marks;
SELECT sum(v), avg(v), sum(w), avg(w) FROM marks WHERE id BETWEEN 80 AND 90;
SELECT id % 200 AS bucket, sum(v), avg(v) FROM marks WHERE id % 200 IN (83, 89, 97, 3, 7) AND id < 200 GROUP BY 1 ORDER BY 1;
SELECT v + 1, v - v, v * s, v * 0, -v, v + w, 2 - v FROM marks WHERE id IN (1, 83, 86, 89, 97, 500) ORDER BY id;
SELECT n, count(*) FROM marks GROUP BY n ORDER BY n DESC LIMIT 3;
RESET gpuvm.require;

CREATE FUNCTION about_marks() RETURNS TABLE ("by" text, equal bool, query text) LANGUAGE sql AS $$
	SELECT * FROM ask_all(ARRAY[
		'SELECT id, v, n, w, o FROM marks ORDER BY id', 'SELECT v FROM marks ORDER BY v, id', 'SELECT id FROM marks ORDER BY n DESC, w, id', 'SELECT id FROM marks ORDER BY v + w NULLS FIRST, id',
		-- comparisons
		'SELECT count(*) FROM marks WHERE v = ''NaN''', 'SELECT count(*) FROM marks WHERE v <> ''NaN''', 'SELECT count(*) FROM marks WHERE v >= ''Infinity''', 'SELECT count(*) FROM marks WHERE v > ''-Infinity''',
		'SELECT count(*) FROM marks WHERE v < ''Infinity''', 'SELECT count(*) FROM marks WHERE v > 100.125', 'SELECT count(*) FROM marks WHERE v <= -100.125', 'SELECT count(*) FROM marks WHERE 0 < v', 'SELECT count(*) FROM marks WHERE v = 12.5',
		'SELECT count(*) FROM marks WHERE v IN (''NaN'', 1.25, ''-Infinity'', NULL)', 'SELECT count(*) FROM marks WHERE v NOT IN (''Infinity'', 1.25)', 'SELECT count(*) FROM marks WHERE n BETWEEN -1 AND ''NaN''',
		'SELECT count(*) FROM marks WHERE v < w', 'SELECT count(*) FROM marks WHERE v = w', 'SELECT count(*) FROM marks WHERE v > s', 'SELECT count(*) FROM marks WHERE n = o', 'SELECT count(*) FROM marks WHERE v IS DISTINCT FROM w',
		'SELECT count(*) FROM marks WHERE v IS NULL', 'SELECT count(*) FROM marks WHERE NOT (v > 0) OR n > 1', 'SELECT count(*) FROM marks WHERE v IS DISTINCT FROM ''NaN''',
		-- arithmetic
		'SELECT id, v + n, v - w, w - v, v * s, -v, v + s, 1.5 - n, v * -2, v * 0.00 FROM marks ORDER BY id', 'SELECT sum(v + n), sum(v - v), sum(-w), avg(v * s) FROM marks', 'SELECT sum(v * s), sum(w * s), sum(v + w) FROM marks WHERE id < 97',
		'SELECT count(*) FROM marks WHERE v + 1 > n * 2', 'SELECT count(*) FROM marks WHERE w + 1.125 = w', 'SELECT count(*) FROM marks WHERE v * s = ''NaN''', 'SELECT count(*), sum(f), max(f) FROM marks WHERE -v > 5',
		-- groups
		'SELECT g, sum(v), avg(v), count(v), sum(w), sum(n) FROM marks GROUP BY g ORDER BY g', 'SELECT id / 50, sum(v), avg(w) FROM marks GROUP BY 1 ORDER BY 1', 'SELECT v, count(*) FROM marks GROUP BY v ORDER BY v',
		'SELECT n, g, sum(v) FROM marks GROUP BY n, g ORDER BY n, g', 'SELECT v - v, count(*), sum(n) FROM marks GROUP BY 1 ORDER BY 1', 'SELECT DISTINCT n FROM marks ORDER BY n', 'SELECT count(DISTINCT v), count(DISTINCT n + v) FROM marks',
		'SELECT g, n, count(*), sum(w) FROM marks GROUP BY GROUPING SETS ((g, n), (n), ()) ORDER BY g NULLS LAST, n NULLS LAST, 3', 'SELECT g, sum(v) FILTER (WHERE id < 89), sum(v) FILTER (WHERE v < ''Infinity'') FROM marks GROUP BY g ORDER BY g',
		'SELECT n, count(*) FROM marks GROUP BY n HAVING sum(v) > 100 AND count(*) > 5 ORDER BY n', 'SELECT sum(v), avg(v), sum(n) FROM marks WHERE v IS NULL', 'SELECT sum(v) FROM marks WHERE id < 0',
		-- extremes
		'SELECT min(v), max(v), min(n), max(n), min(w), max(w), min(o), max(o), max(DISTINCT n) FROM marks', 'SELECT g, max(n), min(n) FROM marks WHERE id % 50 < g GROUP BY g HAVING max(n) > 0 ORDER BY 2 DESC, 1', 'SELECT g, min(v), max(v) FILTER (WHERE v < ''NaN''), max(-w), min(v + w) FROM marks GROUP BY g ORDER BY g', 'SELECT id / 50, max(v), min(w) FROM marks GROUP BY 1 ORDER BY 2, 1',
		-- rounding, and as other types
		'SELECT id, round(v), round(v, 1), trunc(v, 1), trunc(-v), ceil(v), floor(v), abs(v), round(v, -2), trunc(n, -1), round(w, -26), round(v * s, 2) FROM marks ORDER BY id', 'SELECT sum(round(v / 1, 1)) FROM marks WHERE id < 5',
		'SELECT sum(round(v)), max(abs(v)), avg(trunc(n)), sum(abs(w)) FROM marks WHERE id NOT IN (97, 194)', 'SELECT round(v, -3), count(*) FROM marks GROUP BY 1 ORDER BY 1', 'SELECT count(*) FROM marks WHERE ceil(n) > floor(v)',
		'SELECT sum(v::int), max(n::bigint), sum(round(v)::int2) FROM marks WHERE v < ''NaN'' AND v > ''-Infinity'' AND n < 100 AND abs(v) < 30000', 'SELECT id, v::float8, n::float8 FROM marks ORDER BY id', 'SELECT max(v::float8), min(v::float8) FROM marks',
		'SELECT id, sign(v), sign(w), v::numeric(12, 1), n::numeric(8, 0), (n * s)::numeric(15, 2) FROM marks WHERE abs(v) < ''Infinity'' OR v = ''NaN'' OR v IS NULL ORDER BY id', 'SELECT sign(v), count(*), sum(sign(n)) FROM marks GROUP BY 1 ORDER BY 1', 'SELECT sum(n::numeric(4, 1)), max(sign(-w)) FROM marks WHERE id < 50',
		-- of 64 bits, with constants that are none
		'SELECT count(*) FROM marks WHERE s <> ''NaN'' AND s < ''Infinity'' AND ''-Infinity'' < s', 'SELECT count(*) FROM marks WHERE s = ''NaN'' OR s IS DISTINCT FROM ''NaN''', 'SELECT sum(s) FROM marks WHERE s IN (1, ''NaN'', 2) OR s > ''NaN''',
		-- branches
		'SELECT sum(CASE WHEN g = 1 THEN v END), avg(CASE WHEN g = 1 THEN v ELSE 0 END), sum(CASE WHEN g > 1 THEN n ELSE 0.5 END), count(CASE WHEN v > n THEN v END) FROM marks WHERE id < 83', 'SELECT g, sum(CASE WHEN v < ''NaN'' THEN v ELSE 0 END) FROM marks GROUP BY g ORDER BY g',
		'SELECT id, CASE WHEN g = 1 THEN v WHEN g = 2 THEN n WHEN s > 0 THEN f END, coalesce(v, n), nullif(n, ''NaN''), nullif(v, f), greatest(v, n, f), least(v, n, f) FROM marks ORDER BY id', 'SELECT sum(coalesce(v, 0)), sum(coalesce(v, n)), avg(coalesce(nullif(n, ''NaN''), 1)) FROM marks',
		'SELECT sum(nullif(n, ''NaN'')), max(nullif(nullif(v, ''NaN''), ''Infinity'')), sum(greatest(v, n)) FROM marks', 'SELECT CASE g WHEN 1 THEN v WHEN 2 THEN -v ELSE v * s * 0.1 END IS NULL, count(*) FROM marks GROUP BY 1 ORDER BY 1', 'SELECT count(*) FROM marks WHERE coalesce(v, -1) > 0',
		'SELECT sum(CASE WHEN id > 2500 THEN w * s ELSE w END) FROM marks WHERE id % 501 > 0', 'SELECT sum(CASE WHEN 10 / s > 1 THEN v END) FROM marks WHERE s > 0',
		-- products
		'SELECT id, v * n, n * v, v * o, n * n, v * (n + 1), v * -n FROM marks ORDER BY id', 'SELECT sum(v * n), sum(n * n), avg(v * v) FROM marks WHERE id < 50', 'SELECT sum(w * f), sum(f * 1000000 * w) FROM marks WHERE id < 50', 'SELECT g, sum(v * 30000000000), sum(w * -3000000000) FROM marks WHERE abs(w) < 5e26 OR w = ''Infinity'' GROUP BY g ORDER BY g',
		-- statistics
		'SELECT var_pop(v), stddev(n), var_samp(w) FROM marks', 'SELECT var_pop(v), stddev(v), variance(n), stddev_pop(n), stddev_samp(w), var_pop(w), stddev(v * s), var_pop(-w + v) FROM marks WHERE id < 50', 'SELECT g, stddev(v), variance(v) FILTER (WHERE v < ''NaN'' AND v > ''-Infinity''), var_pop(w) FROM marks GROUP BY g ORDER BY g',
		'SELECT id, stddev(v), var_pop(v), var_pop(n), stddev_pop(w) FROM marks WHERE id BETWEEN 80 AND 100 GROUP BY id ORDER BY id', 'SELECT stddev(CASE WHEN g = 1 THEN v ELSE 0 END), var_pop(coalesce(n, 1.5)) FROM marks WHERE id < 50', 'SELECT var_pop(v) FROM marks WHERE v IS NULL', 'SELECT stddev(n) FROM marks WHERE id = 50',
		-- joins
		'SELECT count(*), sum(x.f) FROM marks x JOIN marks y ON x.v = y.v AND y.id < 200', 'SELECT count(*) FROM marks x JOIN marks y ON x.n = y.o AND y.id < 10', 'SELECT count(*) FROM marks x JOIN marks y ON x.v = y.w AND x.g = y.g',
		'SELECT x.id, y.v FROM marks x LEFT JOIN marks y ON x.n = y.v AND y.id < 300 WHERE x.id < 120 ORDER BY 1, 2', 'SELECT count(*) FROM marks x WHERE NOT EXISTS (SELECT FROM marks y WHERE y.v = x.n AND y.id < 300)',
		'SELECT sum(y.v), max(y.v) FROM marks x LEFT JOIN marks y ON x.id = y.id + 2950'])
$$;
SELECT * FROM about_marks();

-- Parameters of plans that are made once: one that is no number is PostgreSQL's.
SET plan_cache_mode = force_generic_plan;
PREPARE below(numeric) AS SELECT count(*) FROM marks WHERE v < $1;
PREPARE same(numeric) AS SELECT count(*) FROM marks WHERE v = $1;
PREPARE total AS SELECT sum(w) FROM marks;
PREPARE total_f AS SELECT sum(f), sum(-f) FROM marks;
SET gpuvm.require = :device;
EXECUTE below(1e3);
EXECUTE same(12.500);
EXECUTE total;
EXECUTE total_f;
RESET gpuvm.require;
SELECT count(*) FROM marks WHERE v::numeric(3, 1) > 0;
SELECT count(*) FROM marks WHERE v::numeric(12, 1) > 0 AND id < 90;
EXECUTE below('NaN');
EXECUTE same('Infinity');
-- where the codes of what is no number lie
EXECUTE below(3e35);
EXECUTE below(-3e35);

-- Changes: as they are read from the heap, and refreshed.
UPDATE marks SET v = CASE WHEN id % 100 = 0 THEN 'Infinity' ELSE v + 1 END, n = -n, w = w * -1 WHERE id % 50 = 0;
INSERT INTO marks SELECT 4000 + i, '-Infinity', NULL, i, 'NaN', 5, NULL, 0 FROM generate_series(1, 30) i;
DELETE FROM marks WHERE id % 77 = 0;
SELECT count(*) FILTER (WHERE "by" = 'VM') AS machine, count(*) FILTER (WHERE NOT equal) AS different FROM about_marks();
VACUUM marks;
SELECT gpuvm.refresh('marks');
SELECT count(*) FILTER (WHERE "by" = 'VM') AS machine, count(*) FILTER (WHERE NOT equal) AS different FROM about_marks();

-- A column of numbers alone gets the first NaN: changed rows are PostgreSQL's to read, refresh makes the column one of halves.
INSERT INTO marks (id, f) VALUES (5000, 'NaN');
SELECT * FROM ask_all(ARRAY['SELECT sum(f) FROM marks', 'SELECT sum(v) FROM marks']);
SELECT gpuvm.refresh('marks');
SELECT "column", type, scale FROM gpuvm.tablets WHERE relation = 'marks'::regclass AND "column" IN ('f', 's');
SET gpuvm.require = :device;
EXECUTE total_f;
SELECT sum(f) FILTER (WHERE id < 5000), avg(f), min(f), max(f) FROM marks;
SELECT g, min(n), max(n) FROM marks GROUP BY g ORDER BY max(n), min(n) DESC, g LIMIT 3;
RESET gpuvm.require;

-- One of halves gets the first NaN: the plan that was made for numbers falls back while it is among changed rows, and is made anew after a refresh.
CREATE TABLE large (id int, v numeric(38)) WITH (autovacuum_enabled = off);
INSERT INTO large SELECT i, i * 1e30 FROM generate_series(1, 1000) i;
SELECT gpuvm.import('large');
PREPARE of_large AS SELECT sum(v), sum(-v) FROM large;
SET gpuvm.require = :device;
EXECUTE of_large;
RESET gpuvm.require;
INSERT INTO large VALUES (1001, 'NaN');
EXECUTE of_large;
SELECT * FROM ask_all(ARRAY['SELECT sum(v) FROM large', 'SELECT sum(id) FROM large']);
SELECT gpuvm.refresh('large');
SET gpuvm.require = :device;
EXECUTE of_large;
RESET gpuvm.require;
DELETE FROM large WHERE v = 'NaN';
SELECT gpuvm.refresh('large');
SELECT * FROM ask_all(ARRAY['SELECT sum(v), sum(-v) FROM large']);
-- What fits no form that can be computed with stays out of tablets, which a refresh says, until the column is imported in another form.
CREATE TABLE scales (id int, v numeric) WITH (autovacuum_enabled = off);
INSERT INTO scales SELECT i, i * 1.5 FROM generate_series(1, 1000) i;
SELECT gpuvm.import('scales');
INSERT INTO scales VALUES (1001, 1.25);
SELECT gpuvm.refresh('scales');
SELECT * FROM ask_all(ARRAY['SELECT sum(v) FROM scales', 'SELECT sum(id) FROM scales']);
INSERT INTO scales VALUES (1002, 'NaN');
SELECT gpuvm.refresh('scales');
SELECT "column", type FROM gpuvm.tablets WHERE relation = 'scales'::regclass;
SELECT * FROM ask_all(ARRAY['SELECT v FROM scales ORDER BY id', 'SELECT sum(id) FROM scales']);
RESET plan_cache_mode;

-- Partitions, and tables without a heap.
CREATE TABLE parts (id int, v numeric) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20);
INSERT INTO parts SELECT i, CASE WHEN i = 15 THEN 'NaN' ELSE i::numeric END FROM generate_series(0, 19) i;
SELECT gpuvm.import('parts');
SELECT * FROM ask_all(ARRAY['SELECT sum(id) FROM parts', 'SELECT v FROM parts ORDER BY id', 'SELECT sum(v) FROM parts']);
CREATE FOREIGN TABLE stored (id int, v numeric(38, 2)) SERVER gpuvm;
INSERT INTO stored SELECT i, i * 2.5 FROM generate_series(1, 100) i;
SELECT * FROM ask_all(ARRAY['SELECT sum(v), max(v) FROM stored', 'SELECT v FROM stored ORDER BY v DESC LIMIT 3']);
INSERT INTO stored SELECT i, 'NaN' FROM generate_series(1, 10) i;
SELECT * FROM ask_all(ARRAY['SELECT sum(v), min(v), count(*) FROM stored', 'SELECT v FROM stored ORDER BY v DESC LIMIT 3']);
DELETE FROM stored WHERE v = 'NaN';
SELECT * FROM ask_all(ARRAY['SELECT sum(v), min(v), count(*) FROM stored', 'SELECT v FROM stored ORDER BY v DESC LIMIT 3']);
SELECT id, v FROM stored WHERE v < 5 OR 1 / id = 1 ORDER BY id;

DROP SCHEMA numeric_special CASCADE;
