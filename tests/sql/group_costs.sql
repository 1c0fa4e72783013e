-- What PostgreSQL charges too little for does not keep groups from programs: the sort of an aggregate's DISTINCT, and regular expressions.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA group_costs;
SET search_path = group_costs;
SET max_parallel_workers_per_gather = 0;
SET work_mem = '4MB';
SET datestyle = 'ISO, MDY';
-- The costs of the CPU's machine, also where there is a device.
SET gpuvm.device = cpu;
SET gpuvm.require = cpu;

-- "phrase" is stored value by value, for its longest one; "url" is in a dictionary.
CREATE TABLE hits (id int, site int, url text, phrase text) WITH (autovacuum_enabled = off);
INSERT INTO hits SELECT k, k % 50, 'http://' || CASE j % 3 WHEN 0 THEN 'www.' ELSE '' END || 'host' || j % 97 || '.example/page?' || j, 'phrase ' || k * 7919 % 60013
FROM generate_series(1, 100000) k, LATERAL (SELECT k % 6007) l(j);
INSERT INTO hits VALUES (0, 50, 'none', repeat('long ', 2000));
SELECT gpuvm.import('hits');
VACUUM ANALYZE hits;

-- The nodes from the top to ours, and the answers of both.
CREATE FUNCTION asked(query text) RETURNS TABLE (nodes text, answer text) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
	answers text[];
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	plan := plan->0->'Plan';
	LOOP
		nodes := concat_ws(', ', nodes, coalesce(plan->>'Custom Plan Provider', plan->>'Node Type'));
		EXIT WHEN plan->>'Node Type' = 'Custom Scan' OR plan->'Plans' IS NULL;
		plan := plan->'Plans'->0;
	END LOOP;
	FOREACH answer IN ARRAY ARRAY['on', 'off'] LOOP
		PERFORM set_config('gpuvm.enabled', answer, true), set_config('gpuvm.require', CASE answer WHEN 'on' THEN 'cpu' ELSE 'any' END, true);
		EXECUTE 'SELECT string_agg(q::text, '';'' ORDER BY q::text) FROM (' || query || ') q' INTO answer;
		answers := answers || answer;
	END LOOP;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.require', 'cpu', true);
	answer := CASE WHEN answers[1] = answers[2] THEN 'the same: ' || left(answers[1], 60) ELSE 'DIFFERENT' END;
	RETURN NEXT;
END $$;
SELECT * FROM asked('SELECT count(DISTINCT phrase) FROM hits');
SELECT * FROM asked('SELECT site, count(DISTINCT phrase) FROM hits WHERE site < 4 GROUP BY site');
-- Behind a condition that few rows meet keys cost little.
SELECT * FROM asked('SELECT phrase, count(*) AS c FROM hits WHERE site = 7 GROUP BY phrase ORDER BY c DESC, phrase LIMIT 3');
SELECT * FROM asked('SELECT phrase, count(*) AS c FROM hits WHERE site IN (7, 8) AND id > 500 GROUP BY phrase HAVING count(*) = 1 AND max(id) % 500 = 7');
-- A regular expression for each entry, not for each row; and the extreme of a text, which sorts the entries.
\set host 'regexp_replace(url, ''^https?://(?:www\\.)?([^/]+)/.*$'', ''\\1'')'
SELECT format('SELECT %s AS k, count(*) AS c, min(url) FROM hits WHERE url <> '''' GROUP BY k HAVING count(*) > 1000', :'host') AS by_host \gset
SELECT * FROM asked(:'by_host');
SELECT * FROM asked(replace(:'by_host', 'count(*) AS c', 'count(DISTINCT site) AS c, avg(length(url))'));
-- Of texts without a dictionary once for each different one: groups of groups.
SELECT * FROM asked($$SELECT regexp_replace(phrase, '[^0-9]*(\d)', '\1') AS k, min(phrase), max(id), count(*), avg(length(phrase)) FROM hits WHERE site < 30 GROUP BY k HAVING count(*) > 1$$);
SELECT * FROM asked($$SELECT regexp_replace(phrase, '\d+', '') AS k, count(*), min(phrase), max(phrase) FILTER (WHERE id > 5) FROM hits GROUP BY k$$);

-- Few rows of many columns of all widths, with nulls: next to nothing is read of the others.
SELECT 'CREATE TABLE wide (id int, moment timestamp, yes bool, half real, whole float8, n numeric(10,2), c text' || string_agg(format(', i%s int, s%s smallint, l%s bigint', k, k, k), '' ORDER BY k) || ') WITH (autovacuum_enabled = off)'
FROM generate_series(1, 20) k \gexec
SELECT 'INSERT INTO wide SELECT k, timestamp ''2026-01-01'' + k * interval ''1 s'', nullif(k % 3, 0) = 1, nullif(k % 5, 0) * 0.5, k * 0.25, nullif(k % 7, 3) / 4.0, nullif(''c'' || k % 9, ''c4'')' ||
	string_agg(format(', CASE WHEN k %% %s <> 0 THEN k %% %s * %s - 1000 END, CASE WHEN k %% %s <> 1 THEN k %% %s END, CASE WHEN k %% %s <> 2 THEN k * %s::bigint END', k + 3, (k * 97) ^ (k / 8), k * k, k + 4, k * 5, k + 5, 10 ^ (k / 2)), '' ORDER BY k) ||
	' FROM generate_series(1, 30000) k' FROM generate_series(1, 20) k \gexec
SELECT gpuvm.import('wide');
VACUUM ANALYZE wide;
SELECT * FROM asked('SELECT * FROM wide WHERE id % 1499 = 3 OR id BETWEEN 2000 AND 2047');
SELECT * FROM asked('SELECT * FROM wide WHERE id % 200 = 3 ORDER BY moment DESC LIMIT 7');
SELECT * FROM asked('SELECT yes, half, whole, n, c, moment, i1 + s1 AS sum, i20 > 0 AS more, l20 FROM wide WHERE id % 499 = 3');

SET client_min_messages = warning;
DROP SCHEMA group_costs CASCADE;
