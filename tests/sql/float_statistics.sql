-- Functions of floats that are exact, and variances, covariances and regressions of floats, near to PostgreSQL's by the rule of docs/semantics.md.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA float_statistics;
SET search_path = float_statistics;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/ask.sql
\set ECHO all

-- Groups: around zero, far from it, over many magnitudes, of nulls, NaN, infinities, one row, one value, one that is no binary fraction, and what cannot be squared.
CREATE TABLE t (id int, g int, x float8, y float8, r float4) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 5, CASE i % 5 WHEN 0 THEN (i::int8 * 7919 % 1000 - 500) / 8.0 WHEN 1 THEN 1e9 + (i::int8 * 7919 % 1000) / 1024.0 WHEN 2 THEN (i * 31 % 17 - 8) * 10.0 ^ (i % 40 - 20)
	WHEN 3 THEN nullif(i::int8 * 104729 % 11, 3) / 3.0 ELSE 1e15 + i % 7 END, (i::int8 * 15485863 % 2000 - 700) / 16.0, (i::int8 * 611953 % 500) / 7.0 FROM generate_series(1, 5000) i;
INSERT INTO t VALUES (5001, 10, 'NaN', 1, 1), (5002, 10, 2, 3, 4), (5003, 11, 'infinity', 1, 1), (5004, 11, 1, 2, 3), (5005, 12, 7, 8, 9), (5006, 13, NULL, 1, 1), (5007, 13, 2, NULL, NULL);
INSERT INTO t SELECT 5010 + i, 14, 42, i, 5 FROM generate_series(1, 9) i;
INSERT INTO t SELECT 5020 + i, 15, i, -3, i FROM generate_series(1, 9) i;
CREATE TABLE wide (x float8, y float8) WITH (autovacuum_enabled = off);
INSERT INTO wide VALUES (1e200, 1), (-1e200, 2), (3, 3);
CREATE TABLE tenths (x float8, y float8) WITH (autovacuum_enabled = off);
INSERT INTO tenths SELECT 0.1, 0.1 FROM generate_series(1, 10);
SELECT gpuvm.import('t'), gpuvm.import('wide'), gpuvm.import('tenths');

-- To the last bit.
SELECT expression, "by", equal FROM ask_each('SELECT id, %s AS v FROM t WHERE x IS DISTINCT FROM ''NaN''', 'floor(x)', 'ceil(y)', 'ceiling(-y)', 'trunc(x)', 'round(y)', 'sign(x)', 'degrees(y)', 'radians(x)', 'sqrt(abs(x))', '|/ abs(y)', 'floor(r)', 'sqrt(r)', 'abs(x)');
SELECT expression, "by", equal FROM ask_each('SELECT count(*), max(id), sum(id) FROM t WHERE %s', 'sqrt(y * y) = abs(y)', 'floor(x) = x', 'round(y) <> trunc(y)', 'sign(x) < 0 OR sqrt(x) > 3', 'CASE WHEN y >= 0 THEN sqrt(y) > 4 END');
SELECT expression, "by", equal, answer FROM ask_each('SELECT sum(id) FROM t WHERE %s', 'sqrt(y) > 4', 'sqrt(-y * y) > 0', 'sind(y) > 0');

-- By the rule: a moment's error is at most 8 n 2^-53 of what its condition makes of it; n = 1000 a group here.
CREATE FUNCTION near(mine float8, theirs float8, slack float8) RETURNS bool LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN mine IS NULL OR theirs IS NULL THEN mine IS NULL AND theirs IS NULL WHEN abs(mine) < 'infinity' AND abs(theirs) < 'infinity' THEN abs(mine - theirs) <= slack ELSE mine = theirs END $$;
CREATE FUNCTION moments(by_group bool) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT format('SELECT %s AS g, count(*) AS n, var_pop(x) AS vpx, var_samp(x) AS vsx, variance(y) AS vsy, stddev(y) AS sdy, stddev_pop(x) AS sdx, stddev_samp(r) AS sdr, variance(r) AS vr, covar_pop(y, x) AS cp, covar_samp(y, x) AS cs, regr_sxx(y, x) AS sxx,
		regr_syy(y, x) AS syy, regr_sxy(y, x) AS sxy, regr_count(y, x) AS rn, regr_avgx(y, x) AS ax, regr_avgy(y, x) AS ay, regr_slope(r, y) AS sl, regr_intercept(r, y) AS ic, regr_r2(r, y) AS r2, corr(r, y) AS c FROM t WHERE %s', CASE WHEN by_group THEN 'g' ELSE '0' END,
		CASE WHEN by_group THEN 'true GROUP BY g' ELSE 'g < 5' END) $$;
CREATE FUNCTION compare(by_group bool) RETURNS TABLE (g int, n bigint, variances bool, deviations bool, covariances bool, averages bool, regression bool) LANGUAGE plpgsql AS $$
BEGIN
	-- These are more sums than a program of a device has: there the other virtual machine answers, by the same functions.
	PERFORM set_config('gpuvm.require', 'vm', true);
	EXECUTE 'CREATE TEMP TABLE mine ON COMMIT DROP AS ' || moments(by_group);
	PERFORM set_config('gpuvm.require', 'any', true), set_config('gpuvm.enabled', 'off', true);
	EXECUTE 'CREATE TEMP TABLE theirs ON COMMIT DROP AS ' || moments(by_group);
	EXECUTE format('CREATE TEMP TABLE size ON COMMIT DROP AS SELECT %s AS g, coalesce(sum(x * x), 0) AS xx, sum(y * y) AS yy FROM t %s', CASE WHEN by_group THEN 'g' ELSE '0' END, CASE WHEN by_group THEN 'GROUP BY g' ELSE 'WHERE g < 5' END);
	PERFORM set_config('gpuvm.enabled', 'on', true);
	RETURN QUERY SELECT m.g, m.n, near(m.vpx, p.vpx, ex / m.n) AND near(m.vsx, p.vsx, ex / greatest(m.n - 1, 1)) AND near(m.vsy, p.vsy, 1e-12 * p.vsy) AND near(m.vr, p.vr, 1e-12 * p.vr) AND near(m.sxx, p.sxx, ex) AND near(m.syy, p.syy, 1e-12 * p.syy),
		near(m.sdx, p.sdx, sqrt(ex / m.n)) AND near(m.sdy, p.sdy, 1e-12 * p.sdy) AND near(m.sdr, p.sdr, 1e-12 * p.sdr), near(m.cp, p.cp, exy / m.n) AND near(m.cs, p.cs, exy / greatest(m.n - 1, 1)) AND near(m.sxy, p.sxy, exy),
		m.rn = p.rn AND near(m.ax, p.ax, 1e-10 * sqrt(s.xx)) AND near(m.ay, p.ay, 1e-10 * sqrt(s.yy)),
		near(m.sl, p.sl, 1e-11 * abs(p.sl) + 1e-13) AND near(m.ic, p.ic, 1e-11 * abs(p.ic)) AND near(m.r2, p.r2, 1e-11) AND near(m.c, p.c, 1e-11)
		FROM mine m JOIN theirs p USING (g) JOIN size s USING (g), LATERAL (SELECT 8 * m.n * 2.0 ^ -53 AS u) q,
		LATERAL (SELECT u * sqrt(s.xx * greatest(p.sxx, 0)) + u * u * s.xx AS ex, u * (sqrt(s.xx * greatest(p.syy, 0)) + sqrt(s.yy * greatest(p.sxx, 0))) + u * u * sqrt(s.xx * s.yy) AS exy) w ORDER BY 1;
END $$;
SELECT * FROM compare(true);
SELECT * FROM compare(false);

-- What is not rounded is equal: exact fractions, NaN and infinities, one row, one value, no row.
SELECT "by", equal, answer FROM ask('SELECT g, var_pop(x), var_samp(x), stddev(x), stddev_pop(x) FROM t WHERE g >= 10 GROUP BY g');
SELECT "by", equal, answer FROM ask('SELECT g, corr(y, x), covar_pop(y, x), regr_slope(y, x), regr_r2(y, x), regr_intercept(y, x), regr_count(y, x) FROM t WHERE g >= 10 GROUP BY g');
SELECT "by", equal, answer FROM ask('SELECT var_pop(x), stddev(r), regr_count(y, x) FROM t WHERE g > 100');
SELECT "by", equal, answer FROM ask('SELECT corr(y, x), covar_samp(y, x), regr_avgx(y, x) FROM t WHERE g > 100');
SELECT "by", equal FROM ask('SELECT g, stddev(x) FILTER (WHERE id % 2 = 0), count(*) FROM t WHERE g IN (12, 14) GROUP BY g');
-- Where the mean is large, PostgreSQL's own rounding shows: of 1e15, 1e15 + 1 ... 1e15 + 6, and of tenths.
SET gpuvm.require = :'device';
SELECT round(var_pop(x)::numeric, 6) FROM t WHERE g = 4;
SELECT var_pop(x), stddev(x), corr(x, y), regr_r2(x, y) FROM tenths;
SET gpuvm.require = 'any';
SELECT round(var_pop((x - 1e15)::numeric), 6) FROM t WHERE g = 4;
-- What cannot be squared is PostgreSQL's to answer; so are DISTINCT values, and all of it without gpuvm.float_sums.
SELECT "by", equal, answer FROM ask('SELECT var_pop(x) FROM wide');
SELECT "by", equal FROM ask('SELECT stddev(DISTINCT r) FROM t WHERE g = 14');
SET gpuvm.float_sums = off;
SELECT "by", equal FROM ask('SELECT stddev(x) FROM t WHERE g = 14');
RESET gpuvm.float_sums;
EXPLAIN (COSTS OFF) SELECT g, corr(y, x), stddev(x) FROM t GROUP BY g;

SET client_min_messages = warning;
DROP SCHEMA float_statistics CASCADE;
