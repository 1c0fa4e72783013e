-- Aggregation on the virtual machine: PostgreSQL's values, to the last digit where they are exact.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA aggregates;
SET search_path = aggregates;

CREATE TABLE n (id int, k int, s int2, i int4, l int8, f float4, d float8, b bool, day date, ts timestamp, tz timestamptz, nothing int8)
	WITH (autovacuum_enabled = off);
-- Floats are multiples of 1/8, so their sums are exact in any order.
INSERT INTO n SELECT k, k % 7, nullif(k % 41 - 20, 11), nullif(k * 7919 % 2003 - 1001, 5), nullif(k * 104729::int8 % 1000003 - 500001, 9),
	nullif(k % 33, 8) * 0.25 - 4, nullif(k % 57, 30) * 0.125 - 3, CASE k % 3 WHEN 0 THEN true WHEN 1 THEN false END,
	nullif(date '2000-01-01' + k % 400 - 200, '2000-01-05'), timestamp '2000-01-01' + (k % 97) * interval '7 hours',
	timestamptz '2000-01-01 00:00+00' - (k % 53) * interval '11 minutes', NULL
	FROM generate_series(1, 3000) k;
CREATE TABLE big (g int, l int8, i int4, s int2, d float8, f float4) WITH (autovacuum_enabled = off);
INSERT INTO big SELECT k % 3, 9223372036854775807 - k, 2147483647 - k, 32767, 1e12 + k, 16777216 FROM generate_series(1, 1000) k;
INSERT INTO big SELECT 4, -9223372036854775808 + k, -2147483648, -32768, -1e12, -16777216 FROM generate_series(1, 1000) k;
CREATE TABLE special (g int, f float4, d float8) WITH (autovacuum_enabled = off);
INSERT INTO special VALUES (1, 1, 1), (1, 'NaN', 'NaN'), (1, 2, 2), (2, 'infinity', 'infinity'), (2, 1, 1), (3, '-infinity', '-infinity'),
	(3, 'infinity', 'infinity'), (4, NULL, NULL), (5, 'NaN', 'NaN'), (5, NULL, NULL), (6, 5, 5), (6, NULL, NULL), (7, '-infinity', '-infinity'),
	(8, '-0', '-0'), (9, '0', '0');
CREATE TABLE zeroes (id int, f float4, d float8) WITH (autovacuum_enabled = off);
INSERT INTO zeroes VALUES (1, '-0', '0'), (2, '0', '-0'), (3, '-0', '-0');
CREATE TABLE empty (LIKE n) WITH (autovacuum_enabled = off);
SELECT gpuvm.import('n'), gpuvm.import('big'), gpuvm.import('special'), gpuvm.import('zeroes'), gpuvm.import('empty');

SET gpuvm.force = on;
SET gpuvm.require = :device;

-- Counts.
SELECT count(*), count(1), count(s), count(i), count(l), count(f), count(d), count(b), count(day), count(ts), count(tz), count(nothing) FROM n;
-- Sums and averages: types and digits of the results are PostgreSQL's.
SELECT sum(s), sum(i), sum(l), sum(f), sum(d), sum(nothing) FROM n;
SELECT avg(s), avg(i), avg(l), avg(f), avg(d), avg(nothing) FROM n;
SELECT pg_typeof(sum(s)) AS s, pg_typeof(sum(i)) AS i, pg_typeof(sum(l)) AS l, pg_typeof(sum(f)) AS f, pg_typeof(sum(d)) AS d,
	pg_typeof(avg(i)) AS ai, pg_typeof(avg(f)) AS af, pg_typeof(avg(d)) AS ad FROM n;
SELECT k, avg(s), avg(i), avg(l) FROM n GROUP BY k ORDER BY k;
-- Past int64: sum(int8) is numeric and never overflows; so does avg of it.
SELECT sum(l), avg(l), sum(i), avg(i), sum(s), avg(s) FROM big;
SELECT g, sum(l), avg(l), sum(i), avg(i), sum(s), avg(s) FROM big GROUP BY g ORDER BY g;
-- sums of more than 64 bits as keys of an order
SELECT g, sum(l) FROM big GROUP BY g ORDER BY sum(l) DESC;
SELECT g, sum(l) FROM big GROUP BY g ORDER BY sum(l), g LIMIT 2;
SELECT g, sum(i) FROM big GROUP BY g ORDER BY sum(i) DESC, g LIMIT 3;
SELECT g, sum(d), avg(d), sum(f), avg(f) FROM big GROUP BY g ORDER BY g;
SELECT avg(l), sum(l) FROM big WHERE l BETWEEN 9223372036854775800 AND 9223372036854775806;
-- One row, where the quotient is the value.
SELECT avg(s), avg(i), avg(l), avg(f), avg(d), sum(l), sum(f) FROM n WHERE id = 17;
SELECT avg(i) AS small, avg(i * 1000000) AS large, avg(l / 7) AS l, avg(s % 3::int2) AS s FROM n WHERE abs(i) < 2000;

-- Extremes of every type.
SELECT min(s), max(s), min(i), max(i), min(l), max(l) FROM n;
SELECT min(f), max(f), min(d), max(d) FROM n;
SELECT min(day), max(day), min(ts), max(ts), min(tz), max(tz), min(nothing), max(nothing) FROM n;
SELECT min(l), max(l), min(i), max(i), min(s), max(s) FROM big;
SELECT k, min(i), max(l), min(day), max(ts) FROM n GROUP BY k ORDER BY k;
-- NaN is above all; infinities.
SELECT g, min(f), max(f), min(d), max(d), count(d) FROM special GROUP BY g ORDER BY g;
SELECT g, sum(f), avg(f), sum(d), avg(d) FROM special GROUP BY g ORDER BY g;
SELECT min(d), max(d), sum(d) FROM special WHERE g = 1;
SELECT max(d) FROM special WHERE d < 'NaN' AND g IN (1, 6);
-- Booleans.
SELECT bool_and(b), bool_or(b), every(b) FROM n;
SELECT k % 3 AS g, bool_and(b), bool_or(b), every(i > -1000), bool_or(nothing = 1) FROM n GROUP BY 1 ORDER BY 1;
SELECT bool_and(s IS NOT NULL), bool_or(s > 19), bool_and(i BETWEEN -1001 AND 1001) FROM n;

-- FILTER.
SELECT count(*) FILTER (WHERE b), count(s) FILTER (WHERE NOT b), sum(i) FILTER (WHERE s > 0), avg(l) FILTER (WHERE b IS NULL),
	min(d) FILTER (WHERE k = 3), max(day) FILTER (WHERE k > 100), bool_or(b) FILTER (WHERE i > 0), sum(d) FILTER (WHERE false) FROM n;
SELECT k, count(*) FILTER (WHERE b) AS c, sum(i) FILTER (WHERE s > 0 AND b) AS s, avg(f) FILTER (WHERE f > 0) AS a,
	max(ts) FILTER (WHERE NULL) AS m FROM n WHERE id > 100 GROUP BY k ORDER BY k;
SELECT sum(i) FILTER (WHERE s > 0) AS a, sum(i) AS b, sum(i) FILTER (WHERE s <= 0) AS c FROM n;

-- No rows.
SELECT count(*), count(i), sum(s), sum(i), sum(l), sum(f), sum(d), avg(i), avg(d), min(day), max(ts), bool_and(b), bool_or(b) FROM empty;
SELECT count(*), count(i), sum(s), sum(i), sum(l), sum(f), sum(d), avg(i), avg(d), min(day), max(ts), bool_and(b), bool_or(b) FROM n WHERE id < 0;
SELECT k, count(*) FROM n WHERE id < 0 GROUP BY k;
SELECT k, count(*) FROM empty GROUP BY k;
-- Nothing but NULL.
SELECT count(*), count(nothing), sum(nothing), avg(nothing), min(nothing), max(nothing), bool_and(nothing > 0) FROM n;
SELECT k, count(nothing), sum(nothing), avg(nothing), min(nothing) FROM n GROUP BY k ORDER BY k;

-- GROUP BY each type; NULL is a group.
SELECT s, count(*), sum(id) FROM n GROUP BY s ORDER BY s;
SELECT i, count(*), sum(id) FROM n WHERE id < 20 OR i IS NULL GROUP BY i ORDER BY i;
SELECT l, count(*) FROM n WHERE id < 10 GROUP BY l ORDER BY l;
SELECT f, count(*), sum(id) FROM n GROUP BY f ORDER BY f;
SELECT d, count(*), sum(id) FROM n GROUP BY d ORDER BY d LIMIT 5;
SELECT b, count(*), sum(id) FROM n GROUP BY b ORDER BY b;
SELECT day, count(*), sum(id) FROM n WHERE day < '1999-06-20' OR day IS NULL GROUP BY day ORDER BY day;
SELECT ts, count(*) FROM n WHERE k = 1 GROUP BY ts ORDER BY ts LIMIT 4;
SELECT tz, count(*) FROM n GROUP BY tz ORDER BY tz LIMIT 4;
SELECT nothing, count(*) FROM n GROUP BY nothing;
-- NaN is one group, whatever its sign; infinities are groups.
SELECT d, count(*) FROM special WHERE g NOT IN (8, 9) GROUP BY d ORDER BY d;
SELECT -f AS f, count(*), count(f) FROM special WHERE g NOT IN (8, 9) GROUP BY 1 ORDER BY 1;
-- Expressions, several keys, no aggregate, constants.
SELECT i % 5 AS m, b, count(*), sum(l) FROM n GROUP BY i % 5, b ORDER BY 1, 2;
SELECT abs(s) AS a, s > 0 AS positive, k, count(*) FROM n WHERE abs(s) < 3 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
SELECT s, i FROM n WHERE id < 5 GROUP BY s, i ORDER BY s, i;
SELECT DISTINCT k, b FROM n ORDER BY k, b;
SELECT k + 1 AS k1, k * 2 AS k2, sum(i) + count(*) AS both, sum(i) / count(i) AS q FROM n GROUP BY k ORDER BY k;
SELECT 'all' AS what, k, 42 AS answer, count(*) FROM n GROUP BY k ORDER BY k LIMIT 2;
SELECT k, day - date '2000-01-01' AS days, count(*) FROM n WHERE day > '2000-07-15' GROUP BY k, day ORDER BY k, day LIMIT 5;
SELECT coalesce(b, false) AS b, CASE WHEN s > 0 THEN 1 WHEN s < 0 THEN -1 END AS sign, count(*) FROM n GROUP BY 1, 2 ORDER BY 1, 2;
SELECT count(*) FROM n GROUP BY k ORDER BY 1, k LIMIT 3;
-- Many groups: as many as rows, and their number.
SELECT count(*), min(c), max(c), sum(s) FROM (SELECT l, count(*) AS c, sum(i) AS s FROM n GROUP BY l) q;
SELECT count(*), sum(c) FROM (SELECT id, count(*) AS c FROM n GROUP BY id) q;
SELECT count(*), sum(c), max(c) FROM (SELECT i, s, k, count(*) AS c FROM n GROUP BY i, s, k) q;
SELECT i, s, count(*) FROM n GROUP BY i, s ORDER BY i, s LIMIT 3;

-- HAVING.
SELECT k, count(*), sum(i) FROM n GROUP BY k HAVING sum(i) > 0 ORDER BY k;
SELECT s, count(*) FROM n GROUP BY s HAVING count(*) > 73 AND s > 0 ORDER BY s;
SELECT k FROM n GROUP BY k HAVING avg(l) > 0 AND max(i) > 999 ORDER BY k;
SELECT count(*) FROM n HAVING count(*) > 10;
SELECT count(*) FROM n HAVING count(*) < 10;
SELECT sum(i) FROM n WHERE id < 0 HAVING count(*) = 0;
SELECT k, sum(i) FILTER (WHERE b) FROM n GROUP BY k HAVING count(*) FILTER (WHERE b) > 142 ORDER BY k;

-- Order and limit over groups.
SELECT k, sum(l) AS s FROM n GROUP BY k ORDER BY s DESC LIMIT 3;
SELECT s, count(*) AS c FROM n GROUP BY s ORDER BY c, s OFFSET 2 LIMIT 3;
-- The same aggregate more than once.
SELECT sum(i), sum(i) + 1 AS plus, avg(i), count(i), sum(i) / count(i) AS q, max(i) - min(i) AS range FROM n;

-- Both zeroes in one group: PostgreSQL prints the one that it met, so it is asked.
RESET gpuvm.require;
SELECT max(f), min(f), max(d), min(d) FROM zeroes;
SELECT f, count(*) FROM zeroes GROUP BY f;
SELECT d, count(*) FROM zeroes GROUP BY d;
SET gpuvm.require = :device;
SELECT min(f), max(d) FROM zeroes WHERE id = 3;
SELECT f, d, count(*) FROM zeroes WHERE id = 3 GROUP BY f, d;
SELECT sum(f), sum(d) FROM zeroes;

-- Float sums: exact and rounded once, so without PostgreSQL's loss of small terms among large ones ...
SELECT sum(x) FROM (SELECT d - 1e12 AS x FROM big WHERE g < 4) q;
CREATE TABLE lossy (f float4, d float8) WITH (autovacuum_enabled = off);
INSERT INTO lossy SELECT 1e8, 1e17 FROM generate_series(1, 10);
INSERT INTO lossy SELECT 0.5, 0.5 FROM generate_series(1, 1000);
INSERT INTO lossy SELECT -1e8, -1e17 FROM generate_series(1, 10);
SELECT gpuvm.import('lossy');
SELECT sum(f), sum(d) FROM lossy;
-- ... and PostgreSQL's own where that is asked for.
SET gpuvm.float_sums = off;
SELECT sum(f) FROM lossy;
SELECT avg(d) FROM lossy;
SELECT min(f), max(d) FROM lossy;
RESET gpuvm.require;
SELECT sum(d) FROM lossy;
RESET gpuvm.float_sums;
-- Sums that leave the range of the type are PostgreSQL's to refuse.
CREATE TABLE huge (g int, f float4, d float8) WITH (autovacuum_enabled = off);
INSERT INTO huge VALUES (1, 3e38, 1.7e308), (1, 3e38, 1.7e308), (2, 3e38, 1e200), (2, -3e38, -1e200), (3, 1, 1);
SELECT gpuvm.import('huge');
SELECT sum(f) FROM huge WHERE g = 1;
SELECT sum(d) FROM huge WHERE g = 1;
SELECT avg(d) FROM huge WHERE g = 1;
SELECT avg(d) FROM huge WHERE g = 2;
SELECT g, sum(f) FROM huge WHERE g > 1 GROUP BY g ORDER BY g;
SELECT g, sum(d), max(f) FROM huge GROUP BY g ORDER BY g;

-- What stays with PostgreSQL: its answers, and the reasons.
SELECT count(DISTINCT k), sum(DISTINCT i % 10) FROM n;
SELECT array_agg(k ORDER BY k) FROM n WHERE id < 10;
SELECT round(stddev(i), 6), round(variance(s), 6) FROM n;
SELECT k, b, count(*), grouping(k, b) FROM n WHERE k < 2 GROUP BY ROLLUP (k, b) ORDER BY 1, 2, 4;
SET gpuvm.require = :device;
SELECT count(DISTINCT s) FROM n;
SELECT bit_and(i) FROM n;

SET client_min_messages = warning;
DROP SCHEMA aggregates CASCADE;
