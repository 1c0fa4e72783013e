-- Aggregates beyond sums: variances with PostgreSQL's digits, bits, and extremes of more types.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA aggregates_more;
SET search_path = aggregates_more;
SET gpuvm.force = on;
SET lc_monetary = 'C';

\set ECHO none
\i tests/sql/include/ask.sql
\set ECHO all

CREATE TABLE t (id int, g int, s int2, i int4, l int8, n numeric(8,3), b bool, o oid, m money, ti time, nothing int8, f float8) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT k, k % 7, nullif(k * 31 % 65536 - 32768, 11), nullif(k * 7919 % 2003 - 1001, 5), nullif(k * 104729::int8 % 1000003 - 500001, 9), (k % 200 - 100) * 0.125,
	CASE k % 3 WHEN 0 THEN true WHEN 1 THEN false END, (k::int8 * 2654435 % 4294967296)::oid, (k % 1000 - 300)::money / 4, time '00:00' + k * interval '37 seconds', NULL, k / 8.0 FROM generate_series(1, 3000) k;
CREATE TABLE wide (g int, s int2, i int4, l int8, n numeric) WITH (autovacuum_enabled = off);
INSERT INTO wide SELECT k % 2, 32767 - k % 3, 2147483647 - k, 3000000000 + k, 1000000.00 + k FROM generate_series(1, 1000) k;
INSERT INTO wide SELECT 2, -32768, -2147483648, -3000000000, -0.01 FROM generate_series(1, 10) k;
INSERT INTO wide VALUES (3, 5, 5, 5, 5.00), (4, NULL, NULL, NULL, NULL), (5, 7, 7, 7, 7.00), (5, 7, 7, 7, 7.00), (5, 7, 7, 7, 7.00), (6, 0, 0, 0, 0.00), (6, 1, 1, 1, 0.01);
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE words (id int, t text, c char(5), v varchar(8), tz timetz, sp interval, a inet, e mood, u uuid) WITH (autovacuum_enabled = off);
INSERT INTO words SELECT k, nullif((ARRAY['pear', 'apple', 'Zebra', 'zebra', 'äpfel', '', 'x'])[k % 7 + 1], 'x'), (ARRAY['b', 'a', 'c'])[k % 3 + 1], 'v' || k % 10, (ARRAY['10:00+02', '09:00+00', '23:00-05'])[k % 3 + 1]::timetz,
	(ARRAY['1 day', '-3 hours', '1 month'])[k % 3 + 1]::interval, (ARRAY['10.0.0.1', '192.168.0.0/16', '::1'])[k % 3 + 1]::inet, (ARRAY['happy', 'sad', 'ok'])[k % 3 + 1]::mood, NULL FROM generate_series(1, 300) k;
CREATE TABLE empty (LIKE t) WITH (autovacuum_enabled = off);
SELECT gpuvm.import('t'), gpuvm.import('wide'), gpuvm.import('words'), gpuvm.import('empty');

-- Variances and standard deviations.
SELECT * FROM ask_each('SELECT %s FROM t', 'var_pop(s), var_samp(s), variance(s)', 'stddev_pop(s), stddev_samp(s), stddev(s)', 'var_pop(i), var_samp(i), variance(i)', 'stddev_pop(i), stddev_samp(i), stddev(i)',
	'var_pop(l), var_samp(l), variance(l)', 'stddev_pop(l), stddev_samp(l), stddev(l)', 'var_pop(n), var_samp(n), variance(n)', 'stddev_pop(n), stddev_samp(n), stddev(n)', 'stddev(nothing), var_pop(nothing)',
	'stddev(i + s), variance(l * 2)', 'stddev(i) FILTER (WHERE b), var_pop(i) FILTER (WHERE id = 3), var_samp(i) FILTER (WHERE id = 3)', 'stddev(i) * 2 + avg(i), count(*)', 'variance(0), stddev(1)');
SELECT * FROM ask('SELECT g, stddev(s), variance(i), stddev_pop(l), var_pop(n) FROM t GROUP BY g');
SELECT * FROM ask('SELECT g, stddev(s), variance(i), avg(i), sum(i) FROM wide GROUP BY g');
SELECT * FROM ask('SELECT g, stddev(n), variance(n), var_pop(n), stddev_pop(n) FROM wide GROUP BY g');
SELECT * FROM ask('SELECT g, stddev(l), var_pop(l) FROM wide WHERE g > 1 GROUP BY g');
SELECT * FROM ask('SELECT variance(l) FROM wide WHERE l < 3000000010');
SELECT * FROM ask('SELECT variance(l * 4) FROM wide');
SELECT * FROM ask('SELECT stddev(i), var_pop(n), count(*) FROM empty');
SELECT * FROM ask('SELECT g, stddev(i) FROM t GROUP BY g HAVING stddev(i) > 578');
-- Bits.
SELECT * FROM ask_each('SELECT %s FROM t', 'bit_and(s), bit_or(s), bit_xor(s)', 'bit_and(i), bit_or(i), bit_xor(i)', 'bit_and(l), bit_or(l), bit_xor(l)', 'bit_and(nothing), bit_or(nothing), bit_xor(nothing)',
	'bit_and(i | 6), bit_or(i & 255), bit_xor(id)', 'bit_and(i) FILTER (WHERE i > 900), bit_or(s) FILTER (WHERE false)');
SELECT * FROM ask('SELECT g, bit_and(i | 9), bit_or(s), bit_xor(l) FROM t GROUP BY g');
SELECT * FROM ask('SELECT bit_and(i), bit_or(l), bit_xor(s) FROM empty');
SELECT pg_typeof(bit_and(s)) AS s, pg_typeof(bit_xor(l)) AS l, pg_typeof(stddev(i)) AS i, pg_typeof(sum(m)) AS m FROM t;
CREATE TABLE bits (id int, b bit(8), w bit(64), v bit varying, x bit(70)) WITH (autovacuum_enabled = off);
INSERT INTO bits SELECT k, nullif((k * 37 % 256)::bit(8), B'00000101'), (k::int8 * 7046029254386353)::bit(64), (k % 16)::bit(4)::bit varying, repeat('1', 70)::bit(70) FROM generate_series(1, 500) k;
SELECT gpuvm.import('bits');
SELECT * FROM ask_each('SELECT %s FROM bits', 'bit_and(b), bit_or(b), bit_xor(b)', 'bit_and(w), bit_or(w), bit_xor(w)', 'bit_and(b) FILTER (WHERE id > 490), bit_or(b) FILTER (WHERE false)', 'bit_or(DISTINCT b), bit_and(DISTINCT w)', 'bit_xor(DISTINCT b)', 'bit_or(v)', 'bit_or(x)', 'bit_or(b & B$$00001111$$)');
SELECT * FROM ask('SELECT id % 3, bit_and(b), bit_or(b), bit_xor(w) FROM bits GROUP BY 1');
-- Squares of more than 64 bits.
SELECT * FROM ask_each('SELECT %s FROM wide', 'stddev(l * 1000000), var_pop(l * -1000000)', 'stddev(n * 10000), variance(n * 1000000)', 'var_samp(l) FILTER (WHERE g = 2), stddev_pop(l) FILTER (WHERE g = 3)', 'stddev(l * 3000000000)', 'variance(DISTINCT l * 1000)');
SELECT * FROM ask('SELECT g, stddev(l * 1000), variance(n * 100000) FROM wide GROUP BY g');
-- Extremes, sums, counts of other types.
SELECT * FROM ask_each('SELECT %s FROM t', 'min(o), max(o)', 'min(m), max(m), sum(m)', 'min(ti), max(ti)', 'count(o), count(m), count(ti), count(nothing)', 'every(b), every(i IS NOT NULL OR i IS NULL)', 'min(o) FILTER (WHERE o > 4000000000)',
	'sum(m) FILTER (WHERE m < $$0$$::money), sum(m * 2), sum(m / 2)', 'max(m - $$1.50$$::money)', 'sum(nothing)');
SELECT * FROM ask_each('SELECT count(*) FROM t WHERE %s', 'o > 3000000000', 'o = 2654435', 'o IN (2654435, 5308870)', 'o IN (4294875830, 3000000000, 4292221395)', 'o = ANY ((SELECT array_agg(x) FROM (VALUES (4294875830::oid)) v(x))::oid[])', 'o >= (SELECT max(o) FROM t)', 'm > $$100.00$$::money', 'm BETWEEN $$-5$$::money AND $$5.25$$', 'm + m = m * 2', 'ti < $$12:00$$');
SELECT * FROM ask('SELECT g, min(o), max(m), sum(m), min(ti), every(b) FROM t GROUP BY g');
SELECT * FROM ask('SELECT m, count(*) FROM t WHERE m > $$170$$::money GROUP BY m');
SELECT * FROM ask('SELECT o FROM t WHERE id < 4 GROUP BY o');
SELECT * FROM ask('SELECT o, m, ti FROM t WHERE o > 4290000000');
SELECT * FROM ask('SELECT min(m), max(o), sum(m), min(ti) FROM empty');
-- Of dictionaries: by the order of the type.
SELECT * FROM ask_each('SELECT %s FROM words', 'min(t), max(t)', 'min(t COLLATE "C"), max(t COLLATE "C")', 'min(c), max(c)', 'min(v), max(v)', 'min(tz), max(tz)', 'min(a), max(a)', 'min(e), max(e)', 'count(t), count(c)', 'count(u)', 'max(upper(t))', 'min(t) FILTER (WHERE id > 10)',
	'max(length(t)), sum(length(t))', 'min(sp)');
SELECT * FROM ask('SELECT e, min(t), max(t), count(t), count(*) FROM words GROUP BY e');
SELECT * FROM ask('SELECT id % 4, max(e), min(a), max(tz) FROM words GROUP BY 1');
-- What stays with PostgreSQL.
SELECT * FROM ask_each('SELECT %s FROM t', 'count(DISTINCT i)', 'string_agg(i::text, $$,$$ ORDER BY id) FILTER (WHERE id < 3)', 'array_agg(i ORDER BY id) FILTER (WHERE id < 3)', 'percentile_cont(0.5) WITHIN GROUP (ORDER BY i)', 'mode() WITHIN GROUP (ORDER BY g)', 'regr_count(f, i)');
DROP SCHEMA aggregates_more CASCADE;
