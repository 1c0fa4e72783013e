-- Functions of the mathematical library, which gpuvmd and PostgreSQL share: to the last bit, and the same errors.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA math_functions;
SET search_path = math_functions;
SET gpuvm.force = on;
-- Devices leave it to the CPU.
SET gpuvm.device = cpu;

\set ECHO none
\i tests/sql/include/ask_many.sql
\set ECHO all

CREATE TABLE t (id int, x float8, y float8, r real, g int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, (i * 7919 % 10007 / 5003.5 - 1) * exp((i * 104729 % 1009 / 504.5 - 1) * 20), i * 31 % 997 / 50.0 - 10, i % 100 / 7.0, i % 10 FROM generate_series(1, 4000) i;
INSERT INTO t VALUES (4001, NULL, NULL, NULL, NULL), (4002, 0, 0, 0, 0), (4003, '-0', '-0', 1, 1), (4004, 1, 1, 1, 1), (4005, -1, -1, -1, 2), (4006, 'NaN', 'NaN', 'NaN', 3);
CREATE TABLE edge (id int, a float8, b float8) WITH (autovacuum_enabled = off);
INSERT INTO edge SELECT row_number() OVER (), a::float8, b::float8 FROM unnest(ARRAY['0', '-0', '1', '-1', '2', '-2', '0.5', '-0.5', '3', '-3', '1e300', '-1e300', '1e-300', '5e-324', '-5e-324', '710', '-746', '1.5707963267948966', 'Infinity', '-Infinity', 'NaN']) a,
	unnest(ARRAY['0', '-0', '1', '-1', '2', '-2', '0.5', '-0.5', '3', '-3', '1e300', '1e-300', '5e-324', '1023.5', 'Infinity', '-Infinity', 'NaN']) b;
SELECT gpuvm.import('t'), gpuvm.import('edge');
ANALYZE t;

-- Each value, as bits.
INSERT INTO queries (query) SELECT format('SELECT id, float8send(min(%s)) FROM t WHERE x IS NOT NULL GROUP BY id', f) FROM unnest(ARRAY['exp(y)', 'dexp(y / 3)', 'exp(r)', 'ln(abs(y) + 0.01)', 'dlog1(abs(x) + 1e-9)', 'log(abs(y) + 1)', 'log10(abs(y) + 1)', 'dlog10(r * r + 1e-300)',
	'cbrt(x)', '||/ y', 'dcbrt(y)', 'sin(y)', 'cos(x)', 'tan(y)', 'cot(y + 0.001)', 'asin(x / (abs(x) + 1))', 'acos(x / (abs(x) + 1))', 'atan(x)', 'atan2(x, y)', 'sinh(y)', 'cosh(x)', 'tanh(y)', 'asinh(x)', 'acosh(abs(x) + 1)', 'atanh(x / (abs(x) + 1))',
	'power(abs(y) + 0.5, y)', 'y ^ 2', 'pow(y, 3)', 'dpow(abs(x), 0.25)', 'power(2, y)', 'sqrt(exp(y) + 1)', 'degrees(atan2(y, x))']) f;
SELECT * FROM asked();

-- Of each number that is one of its own: by itself, so that an error ends one query.
INSERT INTO queries (query) SELECT format('SELECT id, float8send(max(%s)) FROM edge WHERE id = %s GROUP BY id', f, id)
FROM edge, unnest(ARRAY['power(a, b)', 'atan2(a, b)']) f;
INSERT INTO queries (query) SELECT format('SELECT id, float8send(max(%s(a))) FROM edge WHERE id = %s GROUP BY id', f, id)
FROM (SELECT min(id) AS id FROM edge GROUP BY a::text) e, unnest(ARRAY['exp', 'ln', 'log10', 'cbrt', 'sin', 'cos', 'tan', 'cot', 'asin', 'acos', 'atan', 'sinh', 'cosh', 'tanh', 'asinh', 'acosh', 'atanh']) f;
SELECT who, CASE who WHEN 'VM' THEN min(query) ELSE count(*) || ' queries' END AS queries FROM asked() GROUP BY who ORDER BY who COLLATE "C";

-- Where they are used: distances, histograms, curves; what is not computed raises nothing.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['count(*), sum(id) FROM t WHERE 2 * 6371 * asin(sqrt(sin(radians(y - 3) / 2) ^ 2 + cos(radians(y)) * cos(radians(3)) * sin(radians(r - 7) / 2) ^ 2)) < 500', 'floor(log(abs(x))), count(*) FROM t WHERE x <> 0 GROUP BY 1', 'round(ln(r + 1)), count(*), min(exp(y)) FROM t WHERE r >= 0 GROUP BY 1',
	'id FROM t WHERE CASE WHEN y > 0 THEN ln(y) > 1 END', 'id FROM t WHERE y > 0 AND ln(y) > 1.5', 'sum(id) FILTER (WHERE exp(y) > 10) FROM t', 'count(DISTINCT round(sin(y) * 10)) FROM t WHERE g > 2', 'id, x, y FROM t WHERE power(y, 2) + power(r, 2) < 10']) q;
SELECT * FROM asked();
SET gpuvm.require = cpu;
SELECT id, y FROM t WHERE g < 5 ORDER BY cos(y), id LIMIT 5;
SELECT g, count(*), max(floor(exp(r))) FROM t WHERE atan2(y, r) > 1 GROUP BY g ORDER BY g;
PREPARE near(float8) AS SELECT count(*) FROM t WHERE exp(-((y - $1) ^ 2)) > 0.5;
EXECUTE near(3);
EXECUTE near(-5.5);
-- An error is PostgreSQL's.
RESET gpuvm.require;
SELECT count(*) FROM t WHERE ln(y) > 1;
SELECT count(*) FROM t WHERE exp(x) > 1;
SELECT count(*) FROM t WHERE asin(y) > 1;
SELECT reason FROM gpuvm.why_not('SELECT count(*) FROM t WHERE sind(y) > 0');
SET client_min_messages = warning;
DROP SCHEMA math_functions CASCADE;
