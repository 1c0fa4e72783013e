-- Inner sides of joins that are kept: which, by whom they are found, and that nobody finds them when the table is another.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA join_indexes;
SET search_path = join_indexes;

-- How the first run of a query had its inner sides, and whether it and a second one answer as PostgreSQL does; none falls back.
CREATE FUNCTION how(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	whole text := format('SELECT count(*) || '' '' || md5(string_agg(q::text, '' '' ORDER BY q::text COLLATE "C")) FROM (%s OFFSET 0) q', query);
	mine text;
	theirs text;
	line text;
	lines text;
BEGIN
	PERFORM set_config('gpuvm.enabled', 'off', true);
	EXECUTE whole INTO theirs;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.require', replace(current_setting('gpuvm.device'), 'auto', 'vm'), true);
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ '^ *Indexes ' THEN
			lines := concat_ws(', ', lines, lower(regexp_replace(line, '^ *Indexes (\w+):', '\1')));
		END IF;
	END LOOP;
	EXECUTE whole INTO mine;
	PERFORM set_config('gpuvm.require', 'any', true);
	RETURN CASE WHEN mine IS DISTINCT FROM theirs THEN format('the answers differ: %s, but %s', theirs, mine) ELSE coalesce(lines, 'none') END;
END $$;

CREATE TABLE facts (id int, k int, day date, v int8) WITH (autovacuum_enabled = off);
INSERT INTO facts SELECT i, i * 7 % 500, date '2020-01-01' + i % 50, i FROM generate_series(1, 20000) i;
CREATE TABLE dims (k int, name text, w int, n int) WITH (autovacuum_enabled = off);
INSERT INTO dims SELECT i, 'name ' || i % 40, i * 3, nullif(i % 3, 0) FROM generate_series(0, 449) i;
CREATE TABLE days (day date, week int) WITH (autovacuum_enabled = off);
INSERT INTO days SELECT date '2020-01-01' + i, i / 7 FROM generate_series(0, 59) i;
CREATE TABLE parts (k int, w int) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (200) WITH (autovacuum_enabled = off);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (200) TO (1000) WITH (autovacuum_enabled = off);
INSERT INTO parts SELECT i, i * 5 FROM generate_series(0, 399) i;
SET client_min_messages = warning;
SELECT sum(gpuvm.import(t)) FROM unnest('{facts,dims,days,parts}'::regclass[]) t;
RESET client_min_messages;
ANALYZE facts, dims, days, parts;
SET gpuvm.force = on;
\set q 'SELECT count(*), sum(f.v), sum(d.w) FROM facts f JOIN dims d ON f.k = d.k'

-- Made once, and then found: by the same query, by others that read the same columns, in whatever order, whatever they ask of other tables.
SELECT how(:'q');
SELECT how(:'q');
SELECT how('SELECT f.id % 10, max(d.w) FROM facts f JOIN dims d ON f.k = d.k WHERE f.v > 3000 GROUP BY 1');
SELECT how('SELECT f.id, d.w FROM facts f LEFT JOIN dims d ON f.k = d.k WHERE f.id % 100 = 0');
-- Other columns, and rows of several tables.
SELECT how('SELECT d.name, count(*), sum(d.w) FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.name');
SELECT how('SELECT sum(d.w), d.name, count(*) FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.name');
SELECT how('SELECT y.week, sum(d.w) FROM facts f JOIN dims d ON f.k = d.k JOIN days y ON y.day = f.day GROUP BY y.week');
SELECT how('SELECT y.week, sum(d.w) FROM facts f JOIN dims d ON f.k = d.k JOIN days y ON y.day = f.day GROUP BY y.week');
SELECT how('SELECT count(*), sum(p.w) FROM facts f JOIN parts p ON f.k = p.k');
SELECT how('SELECT count(*), sum(p.w) FROM facts f JOIN parts p ON f.k = p.k');
-- Semi, anti and full joins: who found a partner is known to the query alone.
SELECT how('SELECT count(*), sum(f.v) FROM facts f WHERE EXISTS (SELECT FROM dims d WHERE d.k = f.k)');
SELECT how('SELECT count(*), sum(f.v) FROM facts f WHERE NOT EXISTS (SELECT FROM dims d WHERE d.k = f.k)');
SELECT how('SELECT count(*), count(f.k), count(d.k) FROM (SELECT * FROM facts WHERE id > 100) f FULL JOIN dims d ON f.k = d.k');
SELECT how('SELECT count(*), count(f.k), count(d.k) FROM (SELECT * FROM facts WHERE id > 100) f FULL JOIN dims d ON f.k = d.k');
SELECT how('SELECT count(*), count(f.k), count(d.k) FROM (SELECT * FROM facts WHERE id > 12000) f FULL JOIN dims d ON f.k = d.k');
-- Nested loops and ranges.
SELECT how('SELECT count(*), sum(d.w) FROM facts f JOIN days d0 ON f.day < d0.day JOIN dims d ON d.k = f.k');
SELECT how('SELECT count(*), sum(d.w) FROM facts f JOIN days d0 ON f.day < d0.day JOIN dims d ON d.k = f.k');

-- No index: a condition on the table, be its constant known or not.
SELECT how('SELECT count(*), sum(d.w) FROM facts f JOIN dims d ON f.k = d.k WHERE d.w > 30');
SELECT how('SELECT count(*), sum(d.w) FROM facts f JOIN dims d ON f.k = d.k WHERE d.w > 30');
SELECT how('SELECT count(*), sum(d.w) FROM facts f JOIN dims d ON f.k = d.k WHERE d.name LIKE ''%1''');
SELECT how('SELECT count(*), sum(y.week) FROM facts f JOIN (SELECT k, max(w) AS week FROM dims GROUP BY k OFFSET 0) y ON f.k = y.k');

-- Changed rows: none finds what was made of the old ones, and none is made of a part of the table.
UPDATE dims SET w = w + 1000 WHERE k = 7;
SELECT how(:'q');
SELECT how(:'q');
-- So it is with changes of one's own, and with those that came to nothing.
BEGIN;
DELETE FROM dims WHERE k < 100;
SELECT how(:'q');
ROLLBACK;
SELECT how(:'q');
VACUUM dims;
SELECT gpuvm.refresh('dims') IS NOT NULL AS refreshed;
SELECT how(:'q');
SELECT how(:'q');
-- Other rows under the same name; a release and an import that are rolled back.
TRUNCATE dims;
INSERT INTO dims SELECT i, 'name ' || i % 40, i * 5, nullif(i % 3, 0) FROM generate_series(0, 449) i;
SET client_min_messages = warning;
SELECT gpuvm.import('dims');
RESET client_min_messages;
SELECT how(:'q');
SELECT how(:'q');
BEGIN;
SELECT gpuvm.release('dims');
ROLLBACK;
SELECT how(:'q');
BEGIN;
SET LOCAL client_min_messages = error;
SELECT gpuvm.import('dims', vacuum => false);
SELECT how(:'q');
ROLLBACK;
SELECT how(:'q');
DELETE FROM parts_2 WHERE k > 300;
VACUUM parts_2;
SELECT gpuvm.refresh('parts_2') IS NOT NULL AS refreshed;
SELECT how('SELECT count(*), sum(p.w) FROM facts f JOIN parts p ON f.k = p.k');
SELECT how('SELECT count(*), sum(p.w) FROM facts f JOIN parts p ON f.k = p.k');
ALTER TABLE parts DETACH PARTITION parts_2;
SELECT how('SELECT count(*), sum(p.w) FROM facts f JOIN parts p ON f.k = p.k');

-- How much they take, and that there may be none.
SELECT loaded, regexp_replace(regexp_replace(detail, ', .*', ''), '\d+', 'n', 'g') FROM gpuvm.status() WHERE backend = 'indexes';
CREATE FUNCTION wait_for_limit(no_memory bool) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 200 LOOP
		IF (SELECT detail ~ 'of 0 MB' FROM gpuvm.status() WHERE backend = 'indexes') = no_memory THEN
			RETURN 'set';
		END IF;
		PERFORM pg_sleep(0.05);
	END LOOP;
	RETURN 'still not set';
END $$;
ALTER SYSTEM SET gpuvm.index_memory = 0;
SELECT pg_reload_conf();
SELECT wait_for_limit(true);
SELECT how(:'q');
SELECT how(:'q');
SELECT loaded FROM gpuvm.status() WHERE backend = 'indexes';
ALTER SYSTEM RESET gpuvm.index_memory;
SELECT pg_reload_conf();
SELECT wait_for_limit(false);
SELECT how(:'q') ~ '^(used|made) d$' AS again;
SELECT how(:'q');
ALTER SYSTEM SET gpuvm.index_memory = -2;
SET gpuvm.index_memory = 1;
-- Those of tablets that are gone go, too: when a job comes along, within a second.
CREATE FUNCTION number() RETURNS int LANGUAGE sql AS $$ SELECT substring(detail FROM '^\d+')::int FROM gpuvm.status() WHERE backend = 'indexes' $$;
CREATE FUNCTION fewer_than(n int) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 200 LOOP
		PERFORM count(*) FROM facts;
		IF number() < n THEN
			RETURN true;
		END IF;
		PERFORM pg_sleep(0.05);
	END LOOP;
	RETURN false;
END $$;
SET gpuvm.device = cpu;
SELECT how(:'q') ~ '^(used|made) d$' AS there;
SELECT number() AS before \gset
SELECT gpuvm.release('dims');
SELECT fewer_than(:before);
DROP SCHEMA join_indexes CASCADE;
