-- Functions of numerics and money beyond arithmetic, with PostgreSQL's digits.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA numeric_functions;
SET search_path = numeric_functions;
SET gpuvm.force = on;
\set ECHO none
\i tests/sql/include/ask.sql
\set ECHO all
CREATE FUNCTION ask_all(queries text[]) RETURNS TABLE ("by" text, equal bool, answer text, query text) LANGUAGE sql VOLATILE AS $$
	SELECT a."by", a.equal, left(a.answer, 60), q FROM unnest(queries) WITH ORDINALITY AS u (q, n), LATERAL ask(q) a ORDER BY n
$$;

CREATE TABLE t (id int, m money, d money, w numeric(30, 3), n numeric(9, 2), f numeric) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT k, (k * 1.25)::money, CASE WHEN k % 9 > 0 THEN (k % 13 - 4)::money END, k * 12345678901234567890::numeric / 7, k % 17 * 0.37, CASE WHEN k % 10 = 0 THEN 'NaN' WHEN k % 10 = 5 THEN '-Infinity' ELSE (k % 7 + 1)::text END::numeric FROM generate_series(1, 2000) k;
SELECT gpuvm.import('t');

-- money: as numeric, of lc_monetary's decimals, and divided.
SELECT * FROM ask_all(ARRAY['SELECT sum(m::numeric), avg(m::numeric), max(m::numeric) FROM t', 'SELECT count(*) FROM t WHERE m::numeric > 100.005 AND d::numeric <> 3', 'SELECT id, m::numeric FROM t WHERE m::numeric BETWEEN 100 AND 102', 'SELECT id % 3, sum(m::numeric * n), sum(m::numeric / 3), avg(d::numeric) FROM t GROUP BY 1',
	'SELECT d::numeric, count(*) FROM t GROUP BY 1', 'SELECT count(*), min(m / d), max(m / d) FROM t WHERE d <> 0::money', 'SELECT count(*) FROM t WHERE m / 2::bigint::money > 3.5 AND m > 100.5::money', 'SELECT count(*) FROM t WHERE d <> 0::money AND m / d > 20']);
SELECT sum(m / d) FROM t;
PREPARE dear(numeric) AS SELECT count(*), sum(m::numeric) FROM t WHERE m::numeric > $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE dear(2000);
EXECUTE dear(2400.5);
RESET plan_cache_mode;

-- div(), scale(): the display scale.
SELECT * FROM ask_all(ARRAY['SELECT sum(div(n, 0.37)), sum(div(m::numeric, n + 1)), min(div(-n, 0.2)) FROM t', 'SELECT div(m::numeric, 70), count(*) FROM t GROUP BY 1', 'SELECT count(*) FROM t WHERE div(n, 2) = 1 OR div(id, n - 100) < -12', 'SELECT max(scale(n)), max(scale(m::numeric)), max(scale(n * m::numeric)), count(scale(d::numeric)), sum(scale(CASE WHEN id > 5 THEN n ELSE 1.5555 END)) FROM t',
	'SELECT sum(div(w, 3)) FROM t', 'SELECT count(scale(f)) FROM t']);
SELECT sum(div(n, n)) FROM t;

-- numeric(p, s) of numbers in two halves, of any p.
SELECT * FROM ask_all(ARRAY['SELECT sum(w::numeric(25, 1)), sum(w::numeric(30, 2)), sum(w::numeric(37, 5)), sum((-w)::numeric(27, 0)) FROM t', 'SELECT count(*) FROM t WHERE w::numeric(27, 0) > 12345678901234567890', 'SELECT sum(f::numeric(19, 1)), avg(f::numeric(25, 3)) FROM t WHERE id % 10 <> 5', 'SELECT sum(w::numeric(22, 1)) FROM t WHERE id < 500',
	'SELECT (w / 1000000000)::numeric(22, 9) FROM t WHERE id < 3', 'SELECT (w * 100000)::numeric(36, 4) FROM t WHERE id < 3']);
SELECT sum(w::numeric(22, 1)) FROM t;
SELECT sum((-w)::numeric(20, 1)) FROM t;

-- Several quotients of a column that has NaN and infinities.
SELECT * FROM ask_all(ARRAY['SELECT id % 10, sum(n / f), sum(m::numeric / f), sum(id / f) FROM t GROUP BY 1', 'SELECT id % 10, avg(f / (n + 1)), avg(n / f) FILTER (WHERE id > 7) FROM t GROUP BY 1']);
SET client_min_messages = warning;
DROP SCHEMA numeric_functions CASCADE;
