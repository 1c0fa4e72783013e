-- Values of stages (gpuvm.whole_query) that are made of several columns: averages, quotients, sums shown with a scale of their own, wide sums.
SET gpuvm.device = 'cpu';
SET extra_float_digits = 0;
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_values;
SET search_path = whole_values, public;

CREATE TABLE facts (id int PRIMARY KEY, k int, g int, a smallint, b int, c bigint, p numeric(10,2), q numeric(12,4), f float8, note text);
INSERT INTO facts SELECT i, nullif(i % 41, 0), i % 7, i % 100 - 50, i * 7919 % 100003 - 50000, (i::bigint * 1000003) % 100000000007, (i * 37 % 10000) / 100.0 - 20,
	CASE WHEN i % 6 > 0 THEN (i * 131 % 100000) / 1000.0 END, (i % 1000) / 8.0, 'n' || i % 5 FROM generate_series(1, 6000) i;
INSERT INTO facts VALUES (6001, 5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (6002, 100, 1, NULL, NULL, NULL, NULL, NULL, NULL, 'n1');
CREATE TABLE dims (k int PRIMARY KEY, kind int NOT NULL, w numeric(6,3), n int);
INSERT INTO dims SELECT i, i % 4, nullif(i % 9, 0) / 4.0, i % 3 FROM generate_series(1, 60) i;
CREATE TABLE large (k int, n numeric(18,0), d numeric(18,2));
INSERT INTO large SELECT i % 3, 900000000000000000 + i, (i - 30) * 100000000000000.25 FROM generate_series(1, 60) i;
CREATE TABLE special (k int, n numeric);
INSERT INTO special VALUES (1, 1), (1, 'NaN'), (2, 2.5), (2, 3), (3, NULL);
CREATE TABLE nothing (k int, p numeric(10,2), b int);
VACUUM ANALYZE facts, dims, large, special, nothing;
SELECT gpuvm.import('facts'), gpuvm.import('dims'), gpuvm.import('large'), gpuvm.import('special'), gpuvm.import('nothing');
\i tests/sql/include/in_stages.sql
-- The rows, in their order, are those of PostgreSQL? And how many stages gave them (gpuvm.require: all of them on the engine named)?
CREATE FUNCTION ask(query text, OUT stages int, OUT equal bool, OUT answer text, OUT why text) LANGUAGE sql AS $$
SELECT stages, got = expected, left(array_to_string(expected, ''), 60), why FROM in_stages(query) $$;

-- Averages of groups that are joined: shown, compared, computed with, and averaged again; of integers, numerics and floats.
SELECT * FROM ask('SELECT d.k, s.m FROM (SELECT k, avg(a) m FROM facts GROUP BY k) s JOIN dims d USING (k) ORDER BY 1');
SELECT * FROM ask('SELECT d.kind, s.m, s.n, s.o, s.f FROM (SELECT k, avg(b) m, avg(c) n, avg(p) o, avg(f) f FROM facts GROUP BY k) s JOIN dims d USING (k) ORDER BY 1, 2, 3, 4 LIMIT 20');
SELECT * FROM ask('SELECT d.kind, count(*), max(s.k) FROM (SELECT k, avg(p) m FROM facts GROUP BY k) s JOIN dims d USING (k) WHERE s.m > 29 GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT f.id FROM facts f JOIN (SELECT k, avg(p) m FROM facts GROUP BY k) s ON f.k = s.k WHERE f.p > 1.3 * s.m AND f.id BETWEEN 150 AND 190 ORDER BY 1');
SELECT * FROM ask('SELECT d.kind, avg(s.m), sum(s.m) FROM (SELECT k, avg(p) m FROM facts GROUP BY k) s JOIN dims d USING (k) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT d.kind, avg(s.q), sum(s.q) FROM (SELECT k, sum(q) q FROM facts GROUP BY k) s JOIN dims d USING (k) GROUP BY 1 ORDER BY 1');
-- Of nothing, and where an outer join has no row.
SELECT * FROM ask('SELECT d.k, s.m, s.q FROM dims d LEFT JOIN (SELECT k, avg(a) m, avg(q) q FROM facts WHERE id > 5900 GROUP BY k) s USING (k) ORDER BY 1');
SELECT * FROM ask('SELECT d.k, s.m FROM dims d LEFT JOIN (SELECT k, avg(p) m, avg(b) FROM nothing GROUP BY k) s USING (k) ORDER BY 1 LIMIT 5');
SELECT * FROM ask('SELECT d.k, s.m, s.n FROM dims d, (SELECT avg(p) m, count(p) n FROM nothing) s ORDER BY 1 LIMIT 3');
SELECT * FROM ask('SELECT d.k, s.m FROM dims d LEFT JOIN (SELECT k, coalesce(avg(p), 7) m FROM facts WHERE id > 5900 GROUP BY k) s USING (k) ORDER BY 1');
SELECT * FROM ask('SELECT count(*) FROM dims d LEFT JOIN (SELECT k, avg(p) m FROM facts WHERE g < 3 GROUP BY k) s USING (k) WHERE s.m IS NULL OR s.m < 29.5');
-- With FILTER, and beside the sum and the count that it is made of.
SELECT * FROM ask('SELECT d.k, s.m, s.t, s.n, s.x FROM (SELECT k, avg(p) FILTER (WHERE g = 2) m, sum(p) t, count(p) n, avg(p) x FROM facts GROUP BY k) s JOIN dims d USING (k) ORDER BY 1');

-- Expressions over aggregates.
SELECT * FROM ask('SELECT d.k, s.r FROM (SELECT k, sum(p) / count(*) r FROM facts GROUP BY k) s JOIN dims d USING (k) ORDER BY 1');
SELECT * FROM ask('SELECT d.kind, sum(s.r) FROM (SELECT k, sum(a) + sum(b) r FROM facts GROUP BY k) s JOIN dims d USING (k) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT d.kind, sum(s.r) FROM (SELECT k, CASE WHEN count(*) > 146 THEN sum(p) ELSE 0 END r FROM facts GROUP BY k) s JOIN dims d USING (k) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT d.k, s.r, s.one FROM (SELECT k, k * 10 + max(g) r, 1 one FROM facts GROUP BY k) s JOIN dims d USING (k) ORDER BY 1 LIMIT 5');
SELECT * FROM ask('SELECT count(*), sum(s.one) FROM (SELECT 1 one FROM facts GROUP BY k) s JOIN dims d ON d.k = s.one');
-- Quotients of sums, compared with each other.
SELECT * FROM ask('SELECT x.k FROM (SELECT k, sum(p) s FROM facts WHERE g = 1 GROUP BY k) x JOIN (SELECT k, sum(p) s FROM facts WHERE g = 2 GROUP BY k) y USING (k) JOIN (SELECT k, sum(p) s FROM facts WHERE g = 3 GROUP BY k) z USING (k) WHERE CASE WHEN x.s > 0 THEN y.s / x.s END > CASE WHEN y.s > 0 THEN z.s / y.s END ORDER BY 1');

-- Sums of values that are shown with different numbers of decimals.
SELECT * FROM ask('SELECT d.k, s.r FROM (SELECT k, sum(CASE WHEN g > 5 THEN p ELSE 0 END) r FROM facts WHERE id < 60 GROUP BY k) s JOIN dims d USING (k) ORDER BY 1');
SELECT * FROM ask('SELECT d.kind, sum(s.r), avg(s.r), sum(s.r / d.w) FROM (SELECT k, sum(CASE WHEN g > 5 THEN p ELSE 0 END) r FROM facts WHERE id < 60 GROUP BY k) s JOIN dims d USING (k) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT d.k, s.r FROM (SELECT k, avg(CASE WHEN g > 5 THEN p ELSE q END) r FROM facts WHERE id < 90 GROUP BY k) s JOIN dims d USING (k) ORDER BY 1');
SELECT * FROM ask('SELECT d.k, s.r FROM (SELECT k, sum(p / 2) r FROM facts GROUP BY k) s JOIN dims d USING (k) WHERE s.r > 100 ORDER BY 1');
SELECT * FROM ask('SELECT d.k, s.r / t.r, s.r / 8 FROM (SELECT k, sum((p - q) / 40) r FROM facts GROUP BY k) s JOIN dims d USING (k) JOIN (SELECT k, sum(p / 2) r FROM facts GROUP BY k) t USING (k) WHERE s.r / t.r > -0.02 ORDER BY 1');
SELECT * FROM ask('SELECT d.k, s.r FROM (SELECT k, sum(p / 3) r FROM facts GROUP BY k) s JOIN dims d USING (k) ORDER BY 1');

-- UNION ALL of such.
SELECT * FROM ask('SELECT u.k, u.m FROM (SELECT k, avg(p) m FROM facts GROUP BY k UNION ALL SELECT g, avg(p) FROM facts WHERE a > 0 GROUP BY g) u JOIN dims d USING (k) ORDER BY 1, 2');
SELECT * FROM ask('SELECT d.kind, sum(u.s), avg(u.s) FROM (SELECT k, sum(p / 2) s FROM facts GROUP BY k UNION ALL SELECT g, sum(q / 2) FROM facts GROUP BY g) u JOIN dims d USING (k) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT d.kind, sum(u.s), count(*) FROM (SELECT k, p s FROM facts WHERE id < 500 UNION ALL SELECT k, q FROM facts WHERE id < 500 UNION ALL SELECT k, NULL FROM facts WHERE id < 9 UNION ALL SELECT k, 0 FROM facts WHERE id < 9) u JOIN dims d USING (k) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT d.k, u.s FROM (SELECT k, p s FROM facts WHERE id < 20 UNION ALL SELECT k, q FROM facts WHERE id < 20) u JOIN dims d USING (k) ORDER BY 1, 2');
SELECT * FROM ask('SELECT u.k, u.s / u.n FROM (SELECT k, sum(CASE WHEN g = 1 THEN p ELSE 0 END) s, count(*) n FROM facts GROUP BY k UNION ALL SELECT g, sum(CASE WHEN k = 1 THEN q ELSE 0 END), count(*) FROM facts GROUP BY g) u JOIN dims d USING (k) ORDER BY 1, 2');

-- Sums of more than 64 bits.
SELECT * FROM ask('SELECT d.k, l.s, l.t FROM (SELECT k, sum(n) s, sum(d) t FROM large GROUP BY k) l JOIN dims d USING (k) ORDER BY 1');
SELECT * FROM ask('SELECT d.k, l.m FROM (SELECT k, avg(n) m FROM large GROUP BY k) l JOIN dims d USING (k) ORDER BY 1');
SELECT * FROM ask('SELECT d.k FROM (SELECT k, sum(n) s FROM large GROUP BY k) l JOIN dims d USING (k) WHERE l.s > 18000000000000000500 ORDER BY 1');
SELECT * FROM ask('SELECT d.k, u.s FROM (SELECT k, sum(n) s FROM large GROUP BY k UNION ALL SELECT k, sum(c) FROM facts GROUP BY k) u JOIN dims d USING (k) WHERE k < 4 ORDER BY 1, 2');
SELECT * FROM ask('SELECT d.kind, sum(l.s) FROM (SELECT k, sum(n) s FROM large GROUP BY k) l JOIN dims d USING (k) GROUP BY 1 ORDER BY 1');

-- NaN is PostgreSQL's.
SELECT * FROM ask('SELECT d.k, s.m FROM (SELECT k, avg(n) m FROM special GROUP BY k) s JOIN dims d USING (k) ORDER BY 1');

-- What is computed of each group raises its error though the join asks for others.
SET gpuvm.whole_query = on;
SET gpuvm.force = on;
SELECT count(s.r) FROM (SELECT k, sum(p) / coalesce(k, 0) r FROM facts GROUP BY k) s JOIN dims d USING (k);
RESET gpuvm.force;
RESET gpuvm.whole_query;
SELECT * FROM ask('SELECT d.k, s.r FROM (SELECT k, sum(p) / nullif(count(*) - 147, 0) r FROM facts GROUP BY k) s JOIN dims d USING (k) ORDER BY 1');
-- Sums with more decimals than they are computed with, summed and added again.
SELECT * FROM ask('SELECT d.kind, sum(s.r), sum(s.r + d.w), avg(s.r) FROM (SELECT k, sum(b::numeric / 2) r FROM facts GROUP BY k) s JOIN dims d USING (k) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT d.kind, sum(s.r), sum(coalesce(s.r, 0) + d.w) FROM (SELECT k, sum(0.6::numeric / 2) r FROM facts GROUP BY k) s JOIN dims d USING (k) GROUP BY 1 ORDER BY 1');
-- Constants of more decimals than 64 bits hold, in conditions and elsewhere.
SELECT * FROM ask('SELECT d.k FROM (SELECT k, sum(p) s FROM facts GROUP BY k) s JOIN dims d USING (k) WHERE s.s > (50 / 100.0) * 8700 ORDER BY 1');
SELECT * FROM ask('SELECT d.k FROM (SELECT k, max(p) s FROM facts GROUP BY k) s JOIN dims d USING (k) WHERE s.s * (50 / 100.0) > 39.5 ORDER BY 1');
SELECT * FROM ask('SELECT d.kind, sum(s.s * (50 / 100.0)), sum(s.s + (50 / 100.0)) FROM (SELECT k, max(p) s FROM facts GROUP BY k) s JOIN dims d USING (k) GROUP BY 1 ORDER BY 1');
SELECT * FROM ask('SELECT d.kind, sum(s.s), sum(s.t) FROM (SELECT k, max(p) s, sum(p - coalesce(q, 0.0)) t FROM facts GROUP BY k) s JOIN dims d USING (k) GROUP BY 1 ORDER BY 1');
