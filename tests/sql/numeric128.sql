-- Numerics of more than 64 bits, stored in halves: what is computed with them is exactly PostgreSQL's.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA numeric128;
SET search_path = numeric128;
SET gpuvm.force = on;
\set VERBOSITY default
\set ECHO none
\i tests/sql/include/ask_all.sql
\set ECHO all

-- a: of both signs, some up to both ends; b: few different ones; u: of no type modifier; d: decimals alone; s: of 64 bits.
CREATE TABLE amounts (id int, a numeric(38, 4), b numeric(38), u numeric, d numeric(36, 36), s numeric(12, 2), g int) WITH (autovacuum_enabled = off);
INSERT INTO amounts SELECT i, (i * 12345678901234567890.1234 + i) * (CASE WHEN i % 2 = 0 THEN -1 ELSE 1 END) * (CASE WHEN i % 5 = 0 THEN 100000000 ELSE 1 END),
	CASE WHEN i % 7 > 0 THEN (i % 10 - 4) * 1e30 - i % 3 END, i * 1e20, i * 1e-36 * (CASE WHEN i % 3 = 0 THEN 1e30 ELSE -1 END), i * 1.25, i % 3
	FROM generate_series(1, 5000) i;
INSERT INTO amounts VALUES (5001, 1844674407370955.1616, 4611686018427387904, 9223372036854775808, 0.5, 1, 1),
	(5002, -1844674407370955.1616, -4611686018427387904, -9223372036854775808, -0.5, -1, 1), (5003, 0, 4611686018427387903, 1, 0, 0, 2),
	(5004, 0, -4611686018427387905, -1, 0, 0, 2);
SELECT gpuvm.import('amounts');
SELECT "column", type, scale, width, nulls, min, max FROM gpuvm.tablets WHERE relation = 'amounts'::regclass;
SELECT columns FROM gpuvm.tables WHERE relation = 'amounts'::regclass;

SET gpuvm.require = :device;
SELECT * FROM amounts WHERE id IN (1, 5, 6, 7, 5001, 5002, 5003, 5004) ORDER BY id;
SELECT count(*), count(a), count(b), sum(a), sum(b), sum(u), sum(d), avg(a), avg(b), avg(d) FROM amounts;
SELECT b, count(*), sum(a) FROM amounts GROUP BY b ORDER BY b DESC NULLS LAST LIMIT 5;
EXPLAIN (COSTS OFF) SELECT b, id FROM amounts WHERE a > 1e30 ORDER BY b, id DESC LIMIT 5;
SELECT b, id FROM amounts WHERE a > 1e30 ORDER BY b, id DESC LIMIT 5;
RESET gpuvm.require;

CREATE FUNCTION about_amounts() RETURNS TABLE ("by" text, equal bool, query text) LANGUAGE sql AS $$
	SELECT * FROM ask_all(ARRAY[
		'SELECT id, a, b, u, d FROM amounts ORDER BY id', 'SELECT a FROM amounts ORDER BY a, id', 'SELECT id FROM amounts ORDER BY d DESC, id',
		'SELECT id FROM amounts ORDER BY a + b NULLS FIRST, id',
		-- comparisons, with constants of more decimals and less, at the borders of halves
		'SELECT count(*) FROM amounts WHERE a > 12345678901234567890.12341', 'SELECT count(*) FROM amounts WHERE a <= -12345678901234567891.1234', 'SELECT count(*) FROM amounts WHERE 0 > a',
		'SELECT count(*) FROM amounts WHERE u = 9223372036854775808', 'SELECT count(*) FROM amounts WHERE u <> -9223372036854775808', 'SELECT count(*) FROM amounts WHERE u >= 9223372036854775807.5',
		'SELECT count(*) FROM amounts WHERE b < 4611686018427387904', 'SELECT count(*) FROM amounts WHERE b >= -4611686018427387904', 'SELECT count(*) FROM amounts WHERE b = 4611686018427387903',
		'SELECT count(*) FROM amounts WHERE b = 1.5', 'SELECT count(*) FROM amounts WHERE b IN (1e30 - 1, 2e30, -3e30 - 2, 4611686018427387904, NULL)', 'SELECT count(*) FROM amounts WHERE b NOT IN (1e30 - 1, 2e30)',
		'SELECT count(*) FROM amounts WHERE a BETWEEN -1e25 AND 1e25', 'SELECT count(*) FROM amounts WHERE a < b', 'SELECT count(*) FROM amounts WHERE a = u', 'SELECT count(*) FROM amounts WHERE a > s',
		'SELECT count(*) FROM amounts WHERE b IS DISTINCT FROM u', 'SELECT count(*) FROM amounts WHERE b IS NULL', 'SELECT count(*) FROM amounts WHERE NOT (a > 0) OR b > 1e30',
		-- arithmetic
		'SELECT sum(a + b), sum(a - b), sum(-b), sum(+b), sum(a + s), sum(a - 1.5), sum(1e25 - b) FROM amounts', 'SELECT sum(b * 3), sum(-2 * b), sum(b * s), avg(a * 1.5) FROM amounts WHERE id < 1000',
		'SELECT count(*) FROM amounts WHERE a + 1e20 > b * 2', 'SELECT count(*) FROM amounts WHERE (a + b) - b = a',
		'SELECT sum(b * 3000000000), sum(s * 100000000 * b), sum(b * (s - 4000000)) FROM amounts WHERE abs(b) < 1e20',
		-- rounding, at both signs and halves, and branches
		'SELECT id, round(a), round(a, 2), round(a, 6), round(a, -10), trunc(a, 1), trunc(a, -15), ceil(a), floor(a), abs(a), round(d, 20), ceil(d), trunc(d, 35), round(b, -18) FROM amounts ORDER BY id', 'SELECT sum(round(a + 0.5)), sum(round(-a - 0.5, 1)) FROM amounts',
		'SELECT round(a / 1, -25), count(*) FROM amounts GROUP BY 1 ORDER BY 1', 'SELECT round(a, -25), count(*), max(abs(b)) FROM amounts GROUP BY 1 ORDER BY 1', 'SELECT count(*) FROM amounts WHERE round(u * 0.01) = 1000000000000000000 OR floor(d * 10) = -5', 'SELECT sum(round(a, -22)::int) FROM amounts WHERE abs(a) < 1e9',
		'SELECT g, sum(CASE WHEN g = 1 THEN a WHEN b > 0 THEN s END), avg(CASE WHEN id % 2 = 0 THEN b ELSE 0 END), sum(coalesce(b, s)), max(CASE WHEN g = 2 THEN a ELSE -a END) FROM amounts GROUP BY g ORDER BY g',
		'SELECT id, coalesce(b, u), nullif(b, u), greatest(b, u, 0), least(b, u), CASE b WHEN 1e30 - 1 THEN u WHEN u THEN -b END FROM amounts ORDER BY id', 'SELECT coalesce(b, 0), count(*) FROM amounts GROUP BY 1 ORDER BY 1', 'SELECT count(*) FROM amounts WHERE greatest(a, b) > 1e30 OR CASE WHEN g = 1 THEN a ELSE b END IS NULL',
		'SELECT id, sign(a), sign(b), a::numeric(38, 2), (s * 3)::numeric(10, 1) FROM amounts ORDER BY id', 'SELECT sum((a - a + s)::numeric(18, 3)), sum(u::numeric(40)) FROM amounts WHERE id < 100',
		-- statistics
		'SELECT var_pop(a), stddev(b), variance(u), stddev_pop(a + b), var_samp(-b) FROM amounts', 'SELECT g, stddev(a), var_pop(b) FILTER (WHERE id < 1000), stddev_samp(u), count(*) FROM amounts GROUP BY g ORDER BY g', 'SELECT b, stddev(a) FROM amounts GROUP BY b ORDER BY stddev(a) DESC NULLS LAST, b LIMIT 5',
		'SELECT g, stddev(b) FROM amounts GROUP BY g HAVING stddev(b) > 1 ORDER BY g', 'SELECT id % 1000, variance(u) FROM amounts GROUP BY 1 ORDER BY 1',
		-- groups
		'SELECT b, count(*), sum(a) FROM amounts GROUP BY b ORDER BY b', 'SELECT b, g, avg(b), sum(s) FROM amounts GROUP BY b, g ORDER BY g, b DESC', 'SELECT a - a, count(*) FROM amounts GROUP BY a - a',
		'SELECT g, b, count(*) FROM amounts GROUP BY GROUPING SETS ((g, b), (b), ()) ORDER BY g NULLS LAST, b NULLS LAST, 3', 'SELECT DISTINCT b FROM amounts ORDER BY b', 'SELECT count(DISTINCT b) FROM amounts',
		'SELECT b, count(*) FROM amounts GROUP BY b HAVING count(*) > 100 AND sum(a) > 0 ORDER BY b', 'SELECT g, sum(b) FILTER (WHERE a > 0), count(*) FROM amounts GROUP BY g ORDER BY g',
		-- extremes
		'SELECT min(a), max(a), min(b), max(b), min(u), max(u), min(d), max(d), min(a + b), max(-b) FROM amounts', 'SELECT min(b), max(b) FROM amounts WHERE b IS NULL',
		'SELECT g, min(a), max(b), max(a - b) FILTER (WHERE id % 2 = 0), min(DISTINCT b) FROM amounts GROUP BY g ORDER BY g', 'SELECT b, min(a), max(d) FROM amounts GROUP BY b ORDER BY max(d) DESC, b LIMIT 7',
		'SELECT id % 1000, max(a) FROM amounts GROUP BY 1 ORDER BY 2 LIMIT 10', 'SELECT g, max(x.a) FROM amounts x JOIN amounts y USING (g, b) WHERE y.id < 50 GROUP BY g ORDER BY g',
		'SELECT g, max(b) FROM amounts GROUP BY g HAVING max(b) > 1e30 ORDER BY g', 'SELECT max(m) FROM (SELECT max(a) AS m FROM amounts GROUP BY g) q',
		-- joins
		'SELECT count(*), sum(x.a) FROM amounts x JOIN amounts y ON x.b = y.b AND y.id < 50', 'SELECT count(*) FROM amounts x JOIN amounts y ON x.a = y.u', 'SELECT count(*) FROM amounts x JOIN amounts y ON x.b + 1 = y.b AND x.g = y.g AND y.id < 100',
		'SELECT x.id, y.b FROM amounts x LEFT JOIN amounts y ON x.b = y.b AND y.id < 3 WHERE x.id < 20 ORDER BY 1', 'SELECT count(*) FROM amounts x WHERE EXISTS (SELECT FROM amounts y WHERE y.b = x.b AND y.id < 3)',
		'SELECT count(*) FROM amounts x WHERE NOT EXISTS (SELECT FROM amounts y WHERE y.b = x.b AND y.id < 3)', 'SELECT x.id, y.a FROM amounts x FULL JOIN amounts y ON x.id = y.id + 4990 WHERE y.id < 20 OR y.id IS NULL AND x.id > 4999 ORDER BY 1, 2'])
$$;
SELECT * FROM about_amounts();

-- Parameters of plans that are made once.
SET plan_cache_mode = force_generic_plan;
SET gpuvm.require = :device;
PREPARE below(numeric) AS SELECT count(*) FROM amounts WHERE a < $1;
PREPARE least(numeric) AS SELECT count(*) FROM amounts WHERE $1 <= u;
PREPARE same(numeric) AS SELECT count(*) FROM amounts WHERE u = $1;
PREPARE other(numeric) AS SELECT count(*) FROM amounts WHERE u <> $1;
EXECUTE below(-12345678901234567891.12335);
EXECUTE below(1e33);
EXECUTE least(-9223372036854775808.5);
EXECUTE least(9223372036854775807.5);
EXECUTE same(9223372036854775808.000);
EXECUTE same(9223372036854775808.5);
EXECUTE other(-9223372036854775808);
EXECUTE below(NULL);
RESET gpuvm.require;
EXECUTE below(1e40);
EXECUTE below('NaN');
EXECUTE below('-Infinity');
RESET plan_cache_mode;

-- What overflows falls back, and so does what is not there.
SELECT * FROM ask_all(ARRAY['SELECT sum(b * 100000000) FROM amounts', 'SELECT count(*) FROM amounts WHERE a * s > 0 AND b * 999999999 * 999999999 > 0', 'SELECT count(*) FROM amounts WHERE b * 3000000000 > 0']);
SELECT q, reason FROM unnest(ARRAY['SELECT var_pop(d) FROM amounts', 'SELECT count(*) FROM amounts WHERE a % 7 > 0', 'SELECT count(*) FROM amounts WHERE a::numeric(20, 2) > 0', 'SELECT count(*) FROM amounts WHERE a * b > 0', 'SELECT count(*) FROM amounts WHERE a > 1e40',
	'SELECT CASE WHEN g = 1 THEN a ELSE b END AS x FROM amounts ORDER BY x', 'SELECT g, count(DISTINCT a), sum(DISTINCT b) FROM amounts GROUP BY g', 'SELECT count(*) FROM amounts WHERE a::float8 > 0', 'SELECT count(*) FROM amounts WHERE a / 2 > 0']) q, gpuvm.why_not(q);

-- Of a CASE whose arms have different decimals, those of each row are shown: of its product with such a number, too. Where it is compared, they do not matter.
SELECT * FROM ask_all(ARRAY['SELECT max(b * CASE WHEN g = 1 THEN 1.25 ELSE 0 END) FROM amounts WHERE g <> 1', 'SELECT sum(b - CASE WHEN g = 1 THEN 1.25 ELSE 0 END) FROM amounts WHERE g <> 1',
	'SELECT b * CASE WHEN g = 1 THEN 1.25 ELSE 0 END, count(*) FROM amounts WHERE g <> 1 GROUP BY 1 ORDER BY 1', 'SELECT count(*), count(b * CASE WHEN g = 1 THEN 1.25 ELSE 0 END) FROM amounts WHERE b * CASE WHEN g = 1 THEN 1.25 ELSE 0 END >= 0']);

-- What such sums are joined as has 64 bits: it is known beforehand that they do not fit.
SELECT * FROM ask_all(ARRAY['SELECT count(*), sum(q.m), min(q.m) FROM (SELECT g, sum(u) AS m FROM amounts GROUP BY g) q JOIN amounts y ON y.id = q.g']);

-- More than 63 decimals are stored value by value: of values that 64 bits hold, those that halves hold, and no others.
CREATE TABLE decimals (id int, v numeric(100, 80), w numeric(100, 80), x numeric(63, 63)) WITH (autovacuum_enabled = off);
INSERT INTO decimals SELECT i, i * 1e-75, i * 1e-60, i * 1e-40 FROM generate_series(1, 5) i;
SELECT gpuvm.import('decimals');
SELECT "column", type, scale FROM gpuvm.tablets WHERE relation = 'decimals'::regclass;
SELECT * FROM ask_all(ARRAY['SELECT v, w, x FROM decimals ORDER BY id', 'SELECT sum(v), max(w) FROM decimals', 'SELECT sum(x), max(x) FROM decimals']);

-- Changes: as they are read from the heap, and refreshed.
UPDATE amounts SET a = a + 1, b = -b, u = u * 2 WHERE id % 50 = 0;
INSERT INTO amounts SELECT 6000 + i, i, NULL, -i * 5e35, i * 1e-30, NULL, 0 FROM generate_series(1, 30) i;
DELETE FROM amounts WHERE id % 77 = 0;
SELECT count(*) FILTER (WHERE "by" = 'VM') AS machine, count(*) FILTER (WHERE NOT equal) AS different FROM about_amounts();
VACUUM amounts;
SELECT gpuvm.refresh('amounts');
SELECT count(*) FILTER (WHERE "by" = 'VM') AS machine, count(*) FILTER (WHERE NOT equal) AS different FROM about_amounts();
-- At both ends of what halves have, and one past them, in a delta and refreshed.
CREATE TABLE ends (id int, v numeric(38), w numeric(38)) WITH (autovacuum_enabled = off);
INSERT INTO ends VALUES (1, 2::numeric ^ 124 - 1, 2::numeric ^ 64), (2, -(2::numeric ^ 124) + 2::numeric ^ 62, 1), (3, 0, 0), (4, NULL, NULL);
SELECT gpuvm.import('ends');
SET gpuvm.require = :device;
SELECT v, count(*) FROM ends GROUP BY v ORDER BY v;
SELECT sum(v), avg(v) FROM ends;
RESET gpuvm.require;
SELECT * FROM ask_all(ARRAY['SELECT sum(v + 1) FROM ends', 'SELECT sum(v - 1) FROM ends', 'SELECT sum(-v) FROM ends', 'SELECT sum(v + w) FROM ends WHERE id > 1', 'SELECT count(*) FROM ends WHERE v < 21267647932558653966460912964485513215']);
INSERT INTO ends VALUES (5, 2::numeric ^ 124, 5);
SELECT * FROM ask_all(ARRAY['SELECT sum(v) FROM ends', 'SELECT sum(w) FROM ends']);
VACUUM ends;
SELECT gpuvm.refresh('ends');
SELECT * FROM ask_all(ARRAY['SELECT sum(v) FROM ends', 'SELECT sum(w) FROM ends']);
SELECT gpuvm.import('ends');
SELECT "column", type FROM gpuvm.tablets WHERE relation = 'ends'::regclass;
SELECT * FROM ask_all(ARRAY['SELECT v FROM ends ORDER BY id', 'SELECT sum(v) FROM ends', 'SELECT sum(w) FROM ends']);
-- A plan that was made for another form.
SET plan_cache_mode = force_generic_plan;
PREPARE of_ends AS SELECT sum(w) FROM ends;
EXECUTE of_ends;
UPDATE ends SET w = 7 WHERE id = 1;
VACUUM ends;
SELECT gpuvm.import('ends');
SELECT "column", type FROM gpuvm.tablets WHERE relation = 'ends'::regclass;
EXECUTE of_ends;
UPDATE ends SET w = 1e30 WHERE id = 1;
VACUUM ends;
SELECT gpuvm.import('ends');
EXECUTE of_ends;
RESET plan_cache_mode;

-- Columns that were added, rows without them, values that another scale makes ones of variable length, and NaN does not.
ALTER TABLE ends ADD COLUMN more numeric DEFAULT 123456789012345678901234567890.5, ADD COLUMN nan numeric DEFAULT 1e30, ADD COLUMN scales numeric DEFAULT 1e30;
INSERT INTO ends VALUES (6, 6, 6, -1.5, 'NaN', 1.5);
VACUUM ends;
SELECT gpuvm.import('ends');
SELECT "column", type, scale FROM gpuvm.tablets WHERE relation = 'ends'::regclass;
SELECT * FROM ask_all(ARRAY['SELECT more, nan, scales FROM ends ORDER BY id', 'SELECT sum(more) FROM ends', 'SELECT sum(nan) FROM ends']);

-- A partition has its columns where the others have them: such values are stored value by value.
CREATE TABLE parts (id int, v numeric) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20);
CREATE TABLE parts_3 (id int, v numeric);
INSERT INTO parts SELECT i, i FROM generate_series(0, 19) i;
INSERT INTO parts_3 SELECT i, i * 1e30 FROM generate_series(20, 29) i;
SELECT gpuvm.import('parts');
SELECT gpuvm.import('parts_3');
SELECT * FROM ask_all(ARRAY['SELECT sum(id), sum(v) FROM parts', 'SELECT sum(v) FROM parts_3']);
ALTER TABLE parts ATTACH PARTITION parts_3 FOR VALUES FROM (20) TO (30);
SELECT gpuvm.import('parts_3');
SELECT * FROM ask_all(ARRAY['SELECT sum(id) FROM parts', 'SELECT sum(v) FROM parts']);

-- Tables without a heap.
CREATE FOREIGN TABLE stored (id int, v numeric(38, 2)) SERVER gpuvm;
INSERT INTO stored SELECT i, i * 1e20 FROM generate_series(1, 100) i;
SELECT * FROM ask_all(ARRAY['SELECT sum(v), max(v) FROM stored', 'SELECT v FROM stored ORDER BY v DESC LIMIT 3']);
INSERT INTO stored SELECT i, i * -1e25 FROM generate_series(1, 10) i;
DELETE FROM stored WHERE v = 1e21;
SELECT * FROM ask_all(ARRAY['SELECT sum(v), min(v), count(*) FROM stored', 'SELECT v FROM stored ORDER BY v DESC LIMIT 3']);
SELECT id, v FROM stored WHERE v < -9e25 OR 1 / id = 1 ORDER BY id;

-- Rows are locked and changed, fetched by a cursor; what a row does raises is raised.
SET gpuvm.require = :device;
UPDATE amounts SET s = 5 WHERE b = 1e30 - 1;
DELETE FROM amounts WHERE a > 1e32;
BEGIN;
DECLARE c CURSOR FOR SELECT id, a FROM amounts WHERE a > 0;
FETCH 3 FROM c;
ROLLBACK;
RESET gpuvm.require;
SELECT sum(1 / (id - 8)) FROM amounts WHERE b > 0;

-- Squares have twice the decimals, more than a result shows: PostgreSQL's.
CREATE TABLE small (g int, x numeric(38, 37), y numeric(38, 31)) WITH (autovacuum_enabled = off);
INSERT INTO small SELECT i % 3, i * 1e-30, i * 1e-25 FROM generate_series(1, 100) i;
VACUUM ANALYZE small;
SELECT gpuvm.import('small');
SELECT var_samp(x), var_samp(y) FROM small;
SELECT var_samp(y) FROM small;
SELECT count(*) FROM (SELECT g FROM small GROUP BY g HAVING stddev(x) > 1e-31) s JOIN small USING (g);

DROP SCHEMA numeric128 CASCADE;
