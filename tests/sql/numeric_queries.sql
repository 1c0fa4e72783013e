-- Numerics in programs: the digits are PostgreSQL's, the display scale included.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA numeric_queries;
SET search_path = numeric_queries;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/ask.sql
\set ECHO all

CREATE TABLE t (id int, g int, a numeric(12,2), b numeric(9,4), n numeric(6,0), big numeric(18,2), i2 int2, i4 int4, i8 int8, nothing numeric(5,1))
	WITH (autovacuum_enabled = off);
-- Negative and zero, halves in both directions, nulls.
INSERT INTO t SELECT k, k % 5, nullif((k * 37 % 2001 - 1000) / 8.0, 5), nullif((k * 7919 % 20011 - 10005) / 10000.0, 0.5), nullif(k % 17 - 8, 3),
	(k::numeric * 104729 % 1000003 - 500001) * 1000000.25, k % 100 - 50, k * 31 % 1009 - 500, k::int8 * 1000003 % 100000007 - 50000000, NULL
	FROM generate_series(1, 2000) k;
INSERT INTO t VALUES (2001, 5, 0, 0, 0, 0, 0, 0, 0, NULL), (2002, 5, 0.5, 0.5, 1, 0.5, 1, 1, 1, NULL), (2003, 5, -0.5, -0.5, -1, -0.5, -1, -1, -1, NULL),
	(2004, 6, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (2005, 5, 1.25, 2.5, 2, 1.5, 2, 2, 2, NULL), (2006, 5, -1.25, -2.5, -2, -1.5, -2, -2, -2, NULL);
CREATE TABLE free (id int, x numeric, y numeric) WITH (autovacuum_enabled = off);
INSERT INTO free SELECT k, (k % 100 - 50) * 1.125, k % 7 FROM generate_series(1, 500) k;
-- Near the limits of 64 bits.
CREATE TABLE large (id int, x numeric(18,0), y numeric(18,9)) WITH (autovacuum_enabled = off);
INSERT INTO large VALUES (1, 999999999999999999, 999999999.999999999), (2, -999999999999999999, -999999999.999999999), (3, 1, 0.000000001), (4, NULL, NULL),
	(5, 3037000499, 3.037000499), (6, 9007199254740993, 9007199.254740993);
CREATE TABLE empty (a numeric(8,2)) WITH (autovacuum_enabled = off);
SELECT gpuvm.import('t'), gpuvm.import('free'), gpuvm.import('large'), gpuvm.import('empty');

-- Columns as they are.
SELECT * FROM ask('SELECT id, a, b, n, big, nothing FROM t WHERE id BETWEEN 1998 AND 2006');
SELECT * FROM ask('SELECT id, x, y FROM free WHERE id < 5');
SELECT * FROM ask('SELECT * FROM large WHERE x IS NOT NULL');
-- Expressions, as group keys: value and digits.
SELECT * FROM ask_each('SELECT %s AS v, count(*) FROM t WHERE id > 1950 GROUP BY 1',
	'a', 'a + b', 'a - b', 'b - a', 'a * b', '-a', '+a', 'abs(a)', '@ b', 'a + 1', '1 - a', 'a * 2', 'a * 1.10', 'a + 0.001', 'a * b * n', 'a % 3', 'a % 0.3', 'mod(b, 0.07)',
	'a % nullif(n, 0)', 'round(a)', 'round(a, 1)', 'round(b, 3)', 'round(a, 4)', 'round(a, 0)', 'round(a, -1)', 'round(a, -5)', 'trunc(a)', 'trunc(a, 1)', 'trunc(b, 2)', 'trunc(a, -2)',
	'ceil(a)', 'ceiling(b)', 'floor(a)', 'sign(a)', 'sign(b) * 2.5', 'i2::numeric', 'i4::numeric + a', 'i8::numeric * 0.5', 'a::int2', 'a::int', 'b::int8', 'n::int', 'a::float8', 'b::float8',
	'n::float8', 'a::numeric(10,1)', 'b::numeric(8,2)', 'a::numeric(20,6)', 'a::numeric', 'i4::numeric(8,3)', 'nothing', 'nothing + 1', 'nullif(a, 0)', 'nullif(n, a)',
	'greatest(a, -a)', 'least(b, round(b, 2)::numeric(9,4))', 'coalesce(a, 0.00)', 'coalesce(nothing, 1.5)', 'CASE WHEN n > 0 THEN a ELSE 0.00 END', 'CASE n WHEN 1 THEN a WHEN 2 THEN -a END',
	'CASE WHEN i4 > 0 THEN a * b END', 'a > b', 'a = round(a)', 'a IS NULL', 'a + b IS NOT NULL');
-- The same of unconstrained columns, whose values share one scale.
SELECT * FROM ask_each('SELECT %s AS v, count(*) FROM free WHERE id > 480 GROUP BY 1', 'x', 'y', 'x + y', 'x * y', 'round(x * y, 2)', 'x % nullif(y, 0)', 'trunc(x, 2)', '-y');
-- Conditions: operands of any scale.
SELECT * FROM ask_each('SELECT count(*), sum(id) FROM t WHERE %s',
	'a > 1.5', 'a >= -125', 'a < 1.505', 'a = 0.5', 'a = 0.500', 'a <> 0.505', '1.5 > a', 'a <= b', 'a = b', 'n = i2', 'a > i4', 'b < i8', 'a BETWEEN -1 AND 1.25', 'a IN (0.5, 1.25, 3)',
	'a IN (0.5, 1.255, 0.00001)', 'a NOT IN (0.5, -0.5, NULL)', 'a NOT IN (0.5, -0.5)', 'n IN (1, 2, 3)', 'a = ANY (ARRAY[0.5, b])', 'a IS DISTINCT FROM b', 'a IS DISTINCT FROM NULL', 'a IS NOT DISTINCT FROM 0.5',
	'nullif(a, b) IS NULL', 'CASE WHEN id % 2 = 0 THEN a ELSE 0 END > 1', 'coalesce(a, 0) = 0', 'greatest(a, b, n) > 100', 'least(a, 1) = 1', 'a * b > 50', 'abs(a - b) < 0.01', 'round(a) = 3', 'a > b * b',
	'nothing > 0', 'nothing IS NULL', 'a::int = 2', 'a::float8 > 2.5', 'a + b = b + a', 'i4::numeric / 1 > 3', 'a > 0.12345678901234567890123', 'a < ''NaN''', 'a < 1e30',
	'sign(a) = -1', 'a % 1 = 0', 'a / 2 > 1', 'sqrt(abs(a)) > 3', 'a > $$0$$::numeric');
-- Constants with more decimals than the column, on both sides of it.
SELECT op || ' ' || v AS comparison, (a)."by", (a).equal, (a).answer
	FROM (SELECT op, v, ask(format('SELECT count(*), sum(id) FROM t WHERE a %1$s %2$s OR (%2$s %1$s b AND id < 1000)', op, v)) a
		FROM unnest(ARRAY['<', '<=', '=', '<>', '>=', '>']) op, unnest(ARRAY['0.5049', '-0.5051', '0.00001', '-0.00001', '12345678901234567.89001']) v OFFSET 0) q;
-- Aggregates.
SELECT * FROM ask_each('SELECT %s FROM t',
	'sum(a), sum(b), sum(n), sum(big), sum(nothing)', 'avg(a), avg(b), avg(n), avg(big), avg(nothing)', 'min(a), max(a), min(b), max(b), min(nothing)', 'count(a), count(b + a), count(nothing)',
	'sum(a * b), avg(a * b)', 'sum(a + 1), avg(-a)', 'max(a + b), min(a * b)', 'sum(a) FILTER (WHERE n > 0), avg(b) FILTER (WHERE a IS NULL)', 'sum(a) / sum(b), sum(a) / count(*)',
	'round(avg(a), 3), sum(a)::int', 'sum(i4 * 0.5)', 'sum(a::int)', 'sum(a::float8 * 0)', 'variance(a), stddev(a)', 'var_pop(b), var_samp(b), stddev_pop(b), stddev_samp(b)', 'stddev(n), stddev(nothing)');
SELECT * FROM ask('SELECT g, sum(a), avg(a), min(b), max(n), count(*), stddev(a), var_pop(n) FROM t GROUP BY g');
SELECT * FROM ask('SELECT g, sum(a) FROM t GROUP BY g HAVING sum(a) > 0');
SELECT * FROM ask('SELECT n, count(*), sum(a * (1 - b)) FROM t GROUP BY n');
SELECT * FROM ask('SELECT a, b FROM t WHERE id > 1990 GROUP BY a, b');
SELECT * FROM ask('SELECT sum(a), avg(a), min(a), stddev(a), count(a) FROM empty');
SELECT * FROM ask('SELECT sum(a), avg(a) FROM t WHERE false OR id < 0');
SELECT * FROM ask('SELECT sum(a), avg(a), stddev(a), stddev_pop(a), variance(a) FROM t WHERE id = 7');
SELECT * FROM ask('SELECT DISTINCT a FROM t WHERE id > 1980');
-- A CASE whose arms have different scales: sums and averages show the greatest of those that were added.
SELECT * FROM ask_each('SELECT %s FROM t WHERE id > 1000',
	'sum(CASE WHEN n > 0 THEN a ELSE 0 END)', 'sum(CASE WHEN n > 100 THEN a ELSE 0 END)', 'sum(CASE WHEN n > 100 THEN a ELSE 0.0 END)', 'avg(CASE WHEN n > 0 THEN a ELSE 0 END)',
	'avg(CASE WHEN n > 100 THEN a ELSE 0 END)', 'sum(CASE WHEN n > 0 THEN a * (1 - b) ELSE 0 END)', '100.00 * sum(CASE WHEN n > 0 THEN a * (1 - b) ELSE 0 END) / sum(a * (1 - b))',
	'sum(CASE WHEN n > 0 THEN a WHEN n < -100 THEN b ELSE 1 END)', 'sum(CASE WHEN n > 100 THEN a WHEN n < -100 THEN b END)', 'sum(coalesce(nothing, b, 0))', 'sum(CASE WHEN n > 100 THEN b ELSE nothing END)',
	'sum(CASE WHEN n > 100 THEN b ELSE 0 END * 1.5)', 'sum(CASE WHEN n > 100 THEN b ELSE 2 END + n)', 'sum(CASE WHEN n > 0 THEN a ELSE 0 END) FILTER (WHERE i4 > 0)', 'sum(CASE WHEN i2 = 0 THEN a * (1 - b) ELSE 0 END) FILTER (WHERE i2 <> 0 AND id > 5000 % i2), avg(CASE WHEN n % i2 = 0 THEN a * b ELSE 1 END) FILTER (WHERE i2 > 45)',
	'stddev(CASE WHEN n > 0 THEN a ELSE 0 END)', 'variance(CASE WHEN n > 100 THEN a ELSE i2 END)', 'count(CASE WHEN n > 0 THEN a ELSE 0 END)', 'sum(round(CASE WHEN n > 0 THEN a ELSE 0 END, 1))',
	'sum(greatest(a, 0))', 'sum(-CASE WHEN n > 100 THEN a ELSE 7 END)');
SELECT * FROM ask('SELECT g, sum(CASE WHEN g = 2 THEN a WHEN g = 3 THEN b ELSE 0 END) FROM t GROUP BY g');
SELECT * FROM ask('SELECT CASE WHEN n > 0 THEN a ELSE 0 END AS v FROM t WHERE id > 1990 GROUP BY 1');
-- What does not fit 64 bits is PostgreSQL's; so are its errors.
SELECT * FROM ask_each('SELECT %s FROM large', 'sum(x)', 'sum(y), avg(x)', 'sum(x * 2)', 'sum(x * x)', 'sum(x * 100)', 'max(y * y)', 'max(x + y)', 'sum(x - 1)', 'stddev(x)', 'stddev(y)', 'max(x::float8)', 'max(y::float8)',
	'max(x::int8)', 'sum(round(y))', 'sum(round(x, 1))', 'sum(y::numeric(12,3))', 'min(-x)', 'max(abs(x))', 'max(x::numeric(10,0))', 'max(y::int2)');
SELECT * FROM ask_each('SELECT count(*) FROM large WHERE %s', 'x > 0.5', 'x > y', 'x * 10 > 5', 'x < 1e17', 'y = 0.0000000010', 'x + 1 > 0', 'x > 999999999999999999.5', 'x IN (1, 1e18)');
SELECT * FROM ask_each('SELECT %s AS v FROM t WHERE id > 1990 GROUP BY 1', 'a % 0', 'a % (n - n)', 'CASE WHEN n <> 0 THEN a % n END', 'a::int2 * 1000', 'b::numeric(4,4)', 'a::numeric(3,2)', '(a * 1000)::int2');
SELECT * FROM ask_each('SELECT count(*) FROM t WHERE %s', 'a % 0 = 1', 'n <> 0 AND a % n = 1', 'n = 0 OR a % n = 1', 'big::int = 1', 'big::int8 > 5');
-- Constants that no float8 holds, or that PostgreSQL cannot multiply. (Planning raised an error.)
SELECT * FROM ask_each('SELECT %s FROM t WHERE id > 1990', 'sum(round(a / 1e400, 2))', 'sum(coalesce(a, 1e-400) / 3)', 'sum(a / 1e-300)', 'stddev(a - 1e320 + 1e320)', 'sum(CASE WHEN n < 0 THEN a / 1e400 ELSE 1 END)');
SELECT * FROM ask_each('SELECT count(*) FROM t WHERE %s', 'a < 1e131071', 'a > -1e131070', 'big > -1e131071', 'NOT big < 1e131071', 'a < 1e-400', 'a / 1e400 = 0', 'a IN (1e400, 0.5)');
-- Parameters are rounded to the column's scale when execution starts, in the direction that the comparison asks for.
CREATE FUNCTION compared_with(p numeric) RETURNS text LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	counts text;
	quals text;
BEGIN
	SELECT count(*) FILTER (WHERE a < p) || ' ' || count(*) FILTER (WHERE a <= p) || ' ' || count(*) FILTER (WHERE a = p) || ' ' || count(*) FILTER (WHERE NOT a = p) || ' ' ||
		count(*) FILTER (WHERE p <> a) || ' ' || count(*) FILTER (WHERE p >= a) || ' ' || count(*) FILTER (WHERE p > a) || ' ' || count(*) FILTER (WHERE a * b BETWEEN p - 1.5 AND p * 2) INTO counts FROM t;
	SELECT count(*) || ' ' || coalesce(sum(id), 0) INTO quals FROM t WHERE a = p OR p = b;
	RETURN counts || ', ' || quals;
END $$;
CREATE FUNCTION parameter(p text, OUT "by" text, OUT equal bool, OUT answer text) LANGUAGE plpgsql AS $$
DECLARE
	got text;
BEGIN
	-- first, so that this is what is planned
	PERFORM set_config('gpuvm.require', replace(current_setting('gpuvm.device'), 'auto', 'vm'), true);
	BEGIN
		got := compared_with(p::numeric);
		"by" := 'VM';
	EXCEPTION WHEN object_not_in_prerequisite_state THEN
		GET STACKED DIAGNOSTICS "by" = PG_EXCEPTION_DETAIL;
		PERFORM set_config('gpuvm.require', 'any', true);
		got := compared_with(p::numeric);
	END;
	PERFORM set_config('gpuvm.require', 'any', true), set_config('gpuvm.enabled', 'off', true);
	answer := compared_with(p::numeric);
	PERFORM set_config('gpuvm.enabled', 'on', true);
	equal := got IS NOT DISTINCT FROM answer;
END $$;
SELECT p, (a)."by", (a).equal, (a).answer
	FROM (SELECT p, parameter(p) a FROM unnest(ARRAY['0.5', '0.505', '-0.505', '0', '1.25000', '-1000', '88888888', '1e15', '0.00000000000000000001', NULL]) p OFFSET 0) q;
PREPARE above(numeric) AS SELECT count(*) FROM t WHERE a > $1;
SET plan_cache_mode = force_generic_plan;
SET gpuvm.require = :device;
EXECUTE above(1.255);
EXECUTE above('NaN');
EXECUTE above('-Infinity');
EXECUTE above(1e30);
RESET gpuvm.require;
EXECUTE above('NaN');
EXECUTE above('-Infinity');
EXECUTE above(1e30);
RESET plan_cache_mode;
-- So is what a subquery gives that depends on no row.
SELECT * FROM ask_each('SELECT count(*), sum(id) FROM t WHERE %s', 'a > (SELECT avg(x) FROM free)', 'a = (SELECT max(a) FROM t)', 'b <= (SELECT avg(x) FROM free) * 0.001 AND a <> (SELECT min(x) FROM free)', 'a > (SELECT x FROM free WHERE id < 0)',
	'n = 1 OR a < (SELECT min(x) FROM free)', 'a > (SELECT x / y FROM free WHERE id = 7)', 'a > (SELECT x FROM free)', 'CASE WHEN n > 0 THEN a > (SELECT avg(x) FROM free) END');
SELECT * FROM ask('SELECT count(*) FROM t JOIN free ON t.a = free.x WHERE t.b < (SELECT avg(x) FROM free) AND free.y > (SELECT min(b) FROM t)');
-- Joins by numeric keys of different scales, and ranges.
SELECT * FROM ask('SELECT count(*), sum(t.id), sum(free.x) FROM t JOIN free ON t.a = free.x');
SELECT * FROM ask('SELECT count(*), sum(t.id) FROM t JOIN free ON t.n = free.y WHERE free.id < 20');
SELECT * FROM ask('SELECT count(*), sum(t.a) FROM t WHERE EXISTS (SELECT 1 FROM free WHERE free.x = t.a)');
SELECT * FROM ask('SELECT t.id, free.x FROM t LEFT JOIN free ON t.a = free.x AND free.id < 50 WHERE t.id > 1995');
SELECT * FROM ask('SELECT count(*) FROM t JOIN free ON t.a BETWEEN free.x - 0.0625 AND free.x + 0.0625 WHERE t.id > 1900');
SELECT * FROM ask('SELECT count(*) FROM t x JOIN t y ON x.a + 0.125 = y.b * 2');
-- Rows that came after the import.
INSERT INTO t VALUES (3001, 9, 7.25, 0.1234, 5, 1, 1, 1, 1, 1.5), (3002, 9, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT * FROM ask('SELECT id, a, b, nothing, a * b FROM t WHERE id > 2005');
SELECT * FROM ask('SELECT g, sum(a), avg(b), max(nothing) FROM t GROUP BY g');
INSERT INTO free VALUES (501, 1.5, 1);
SELECT * FROM ask('SELECT sum(x), sum(y) FROM free');
SELECT * FROM ask('SELECT sum(y) FROM free');
DROP SCHEMA numeric_queries CASCADE;
