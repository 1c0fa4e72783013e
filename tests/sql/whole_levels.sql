-- Query levels that are run in stages below one that is not (gpuvm.whole_query).
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA whole_levels;
SET search_path = whole_levels;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE o (id int NOT NULL, k int, x int, n numeric(8,2), t text, d date) WITH (autovacuum_enabled = off);
INSERT INTO o SELECT i, nullif(i % 23, 4), i * 7 % 60, i % 13 * 0.5, 't' || i % 9, date '2024-01-01' + i % 700 FROM generate_series(1, 3000) i;
CREATE TABLE i (k int, x int) WITH (autovacuum_enabled = off);
INSERT INTO i SELECT i % 30, i * 11 % 50 FROM generate_series(1, 2000) i;
CREATE TABLE target (k int PRIMARY KEY, s bigint) WITH (autovacuum_enabled = off);
INSERT INTO target SELECT k, 0 FROM generate_series(0, 30) k;
VACUUM ANALYZE o, i, target;
SELECT sum(gpuvm.import(t)) FROM unnest('{o,i}'::regclass[]) t;
\i tests/sql/include/try_stages.sql
-- How many stages have the levels, does another plan run, and are the rows PostgreSQL's?
CREATE FUNCTION ask(query text, OUT levels int, OUT stages text, OUT fallback text, OUT rows int, OUT equal bool) LANGUAGE plpgsql AS $$
DECLARE
	t record;
BEGIN
	t := try_stages(query);
	SELECT count(*), string_agg(m[1], ', ') INTO levels, stages FROM regexp_matches(t.plan::text, '"Stages": (\d+)', 'g') m;
	fallback := t.fallback;
	rows := cardinality(t.expected);
	equal := ARRAY(SELECT unnest(t.got) COLLATE "C" ORDER BY 1) = ARRAY(SELECT unnest(t.expected) COLLATE "C" ORDER BY 1);
END $$;

-- What no program has is above them: aggregates and functions of rows, of sets, of each row anew.
SELECT * FROM ask('SELECT string_agg(q::text, '','' ORDER BY q::text) FROM (SELECT to_char(d, ''YYYY'') y, count(*) FROM o GROUP BY 1) q');
SELECT * FROM ask('SELECT array_agg(q.s ORDER BY q.k) FROM (SELECT k, sum(x) s FROM (SELECT k, max(x) x FROM o GROUP BY k, t) z GROUP BY k) q');
SELECT * FROM ask('SELECT unnest(ARRAY[q.s, q.k]) FROM (SELECT k, sum(x) s FROM (SELECT k, max(x) x FROM o GROUP BY k, t) z GROUP BY k) q');
SELECT * FROM ask('SELECT q.k, r.k FROM (SELECT k, count(*) c FROM (SELECT DISTINCT k, x FROM o) z GROUP BY k) q, (SELECT k, avg(x) a FROM (SELECT DISTINCT k, x FROM i) z GROUP BY k) r WHERE random() < 2 AND q.c > r.a');
-- CTEs, read once or twice; arms of a set operation; a subquery of one value.
SELECT * FROM ask('WITH c AS (SELECT k, sum(x) s FROM (SELECT k, max(x) x FROM o GROUP BY k, t) z GROUP BY k) SELECT array_agg(a.s ORDER BY a.k), array_agg(b.k ORDER BY a.k) FROM c a JOIN c b ON a.k = b.k + 1');
SELECT * FROM ask('SELECT array_agg(q.c ORDER BY q.k) FROM ((SELECT k, sum(x) c FROM o GROUP BY k) EXCEPT (SELECT k, sum(x) FROM i GROUP BY k)) q');
SELECT * FROM ask('SELECT generate_series(1, 2), (SELECT max(s) FROM (SELECT sum(x) s FROM o GROUP BY k) q)');
-- Not these: a condition that PostgreSQL hands down, what depends on the level around it, LIMIT within.
SELECT * FROM ask('SELECT unnest(ARRAY[s]) FROM (SELECT k, sum(x) s FROM (SELECT k, max(x) x FROM o GROUP BY k, t) z GROUP BY k) q WHERE k = 5');
SELECT * FROM ask('SELECT unnest(ARRAY[i.k]), q.s FROM i, LATERAL (SELECT sum(x) s FROM o WHERE o.k = i.k GROUP BY o.t) q WHERE i.x = 3');
SELECT * FROM ask('SELECT array_agg(s) FROM (SELECT k, sum(x) s FROM (SELECT * FROM o ORDER BY id LIMIT 10) o GROUP BY k ORDER BY k) q');
-- Errors are those of PostgreSQL's plan, also where only other rows raise.
SELECT * FROM ask('SELECT string_agg(q::text, '','') FROM (SELECT k, sum(100 / (x - 7)) s FROM (SELECT k, max(x) x FROM o GROUP BY k, id) z GROUP BY k) q');
SELECT * FROM ask('SELECT string_agg(q.s::text, '','' ORDER BY k) FROM (SELECT k, sum(100 / (x - 7)) s FROM (SELECT k, max(x) x FROM o WHERE x <> 7 GROUP BY k, id) z GROUP BY k) q');

-- Below statements that change tables, lock rows, or hand out a few rows at a time.
SET gpuvm.force = on;
SET gpuvm.require = :device;
UPDATE target SET s = q.s FROM (SELECT o.k, sum(i.x) s FROM o JOIN i USING (k) GROUP BY o.k) q WHERE q.k = target.k;
SELECT count(*) = 22 AS same FROM target JOIN (SELECT o.k, sum(i.x) s FROM o JOIN i USING (k) GROUP BY o.k) q USING (k, s);
DELETE FROM target WHERE k IN (SELECT k FROM (SELECT k, count(*) c FROM o GROUP BY k) q WHERE c > 130 UNION SELECT 3) RETURNING k;
SELECT target.k FROM target, (SELECT k, max(x) m FROM (SELECT k, t, sum(x) x FROM o GROUP BY k, t) q GROUP BY k) r WHERE r.k = target.k AND r.m > 290 ORDER BY 1 FOR UPDATE OF target;
BEGIN;
DECLARE c CURSOR FOR SELECT unnest(ARRAY[q.s, q.k]) FROM (SELECT k, sum(x) s FROM (SELECT k, max(x) x FROM o GROUP BY k, t) z GROUP BY k ORDER BY k) q;
FETCH 2 FROM c;
INSERT INTO o VALUES (0, 0, 1000);
FETCH 2 FROM c;
ROLLBACK;
RESET gpuvm.require;
-- A kept plan, with parameters and changed rows.
SET plan_cache_mode = force_generic_plan;
PREPARE p(int) AS SELECT array_agg(q::text ORDER BY q::text) FROM (SELECT o.k, sum(i.x) s FROM o JOIN i USING (k) WHERE o.id < $1 GROUP BY o.k) q;
SET gpuvm.require = :device;
EXECUTE p(4);
INSERT INTO i VALUES (1, 1000000);
EXECUTE p(4);
RESET gpuvm.require;
DEALLOCATE p;
SET gpuvm.device = 'cpu'; -- devices join in another order
EXPLAIN (COSTS OFF) SELECT array_agg(q.s) FROM (SELECT k, sum(x) s FROM (SELECT k, max(x) x FROM o GROUP BY k, t) z GROUP BY k) q;
SELECT * FROM gpuvm.why_not('SELECT array_agg(q.s) FROM (SELECT k, sum(x) s FROM (SELECT k, max(x) x FROM o GROUP BY k, t) z GROUP BY k) q');
RESET gpuvm.device;
DROP SCHEMA whole_levels CASCADE;
