-- ORDER BY and LIMIT: rows and groups that come out sorted.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA order_by;
SET search_path = order_by;
SET gpuvm.force = on;

\set ECHO none
-- A plan in a line, down to our nodes, and what these sort by.
CREATE FUNCTION plan_text(node jsonb) RETURNS text LANGUAGE sql AS $$
SELECT CASE WHEN node->>'Node Type' = 'Custom Scan'
	THEN 'VM' || coalesce(' sorted by ' || (SELECT string_agg(k, ', ') FROM jsonb_array_elements_text(node->'VM Sort Key') k), '') || coalesce(' limit ' || (node->>'VM Limit'), '')
	ELSE (node->>'Node Type') || coalesce(' (' || (SELECT string_agg(order_by.plan_text(p), ', ') FROM jsonb_array_elements(node->'Plans') p) || ')', '') END $$;
CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
	RETURN order_by.plan_text(plan->0->'Plan');
END $$;
-- The plan, and whether the VM's rows are PostgreSQL's, in order; why there is no order in it.
CREATE FUNCTION ask(query text, OUT plan text, OUT equal text) LANGUAGE plpgsql AS $$
DECLARE
	whole text := format('SELECT count(*) || '' '' || coalesce(string_agg(q::text, '' ''), '''') FROM (%s) q', query);
	theirs text;
	mine text;
BEGIN
	PERFORM set_config('gpuvm.enabled', 'off', true);
	BEGIN
		EXECUTE whole INTO theirs;
	EXCEPTION WHEN OTHERS THEN
		theirs := SQLERRM;
	END;
	PERFORM set_config('gpuvm.enabled', 'on', true);
	plan := order_by.plan_of(query);
	IF plan NOT LIKE '%sorted by%' THEN
		plan := plan || coalesce('; ' || (SELECT string_agg(reason, '; ') FROM gpuvm.why_not(query) WHERE node LIKE 'Sort on%'), '');
	END IF;
	PERFORM set_config('gpuvm.require', replace(current_setting('gpuvm.device'), 'auto', 'vm'), true);
	BEGIN
		EXECUTE whole INTO mine;
	EXCEPTION
		WHEN object_not_in_prerequisite_state THEN
			GET STACKED DIAGNOSTICS equal = PG_EXCEPTION_DETAIL;
			PERFORM set_config('gpuvm.require', 'any', true);
			BEGIN
				EXECUTE whole INTO mine;
			EXCEPTION WHEN OTHERS THEN
				mine := SQLERRM;
			END;
		WHEN OTHERS THEN
			mine := SQLERRM;
	END;
	PERFORM set_config('gpuvm.require', 'any', true);
	equal := CASE WHEN mine IS NOT DISTINCT FROM theirs THEN coalesce(equal, 'yes') ELSE format('NO: %s, but %s', left(theirs, 200), left(mine, 200)) END;
END $$;
CREATE FUNCTION ask_each(template text, VARIADIC parts text[]) RETURNS TABLE (part text, plan text, equal text) LANGUAGE sql AS $$
SELECT e, (a).plan, (a).equal FROM (SELECT e, order_by.ask(format(template, e)) a FROM unnest(parts) e OFFSET 0) q $$;
\set ECHO all

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE mood ADD VALUE 'bored' BEFORE 'ok';
CREATE DOMAIN grade AS int CHECK (VALUE < 100000);
CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE t (id int, b bool, s int2, i int4, l int8, r float4, f float8, n numeric(12,2), d date, ti time, ts timestamp, tz timestamptz, m money, o oid, g grade,
	c text, v varchar(20), p char(6), nm name, ch "char", u uuid, e mood, by bytea, ip inet, tt timetz, iv interval, bi bit(5), a int[], co text COLLATE "C", ic text COLLATE "und-x-icu", bl text COLLATE blind) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT k, CASE k % 3 WHEN 0 THEN true WHEN 1 THEN false END, nullif(k * 37 % 211, 5) - 100, nullif(k * 7919 % 10007, 11) * (CASE WHEN k % 2 = 0 THEN -1 ELSE 1 END),
	k * 104729::int8 % 10007 * 10000000019 - 50000000000, (k % 101 - 50) * 0.37, nullif(k % 1013, 4) * 0.25 - 100, nullif(k % 313, 9) / 7.0 - 20, date '1990-01-01' + nullif(k * 31 % 20000, 7), time '00:00' + k * 37 % 86400 * interval '1 second',
	timestamp '2000-01-01' + (k * 7919 % 100003 - 50000) * interval '1 minute', timestamptz '2024-01-01 00:00+00' + k % 97 * interval '1 hour', (k % 77 - 30)::text::money, 4294967295 - k * 7 % 1000, k % 500,
	nullif(chr(97 + k % 26) || k % 123, 'w7'), CASE WHEN k % 7 > 0 THEN upper(chr(97 + k % 26)) || k % 50 ELSE chr(97 + k % 26) END, CASE WHEN k % 5 > 0 THEN chr(97 + k % 13) END, 'n' || k % 40, chr(65 + k % 60)::"char", md5((k % 57)::text)::uuid, (enum_range(NULL::mood))[k % 5 + 1],
	decode(md5((k % 33)::text), 'hex'), ('10.' || k % 7 || '.0.' || k % 250)::inet, timetz '10:00+00' + k % 50 * interval '1 minute', CASE k % 4 WHEN 0 THEN interval '1 month' WHEN 1 THEN interval '30 days' WHEN 2 THEN k % 90 * interval '1 day' END,
	(k % 32)::bit(5), ARRAY[k % 5, nullif(k % 3, 1)], CASE k % 2 WHEN 0 THEN 'x' ELSE 'X' END || k % 40, (ARRAY['côte', 'cote', 'coté', 'Cote', 'zebra', NULL])[k % 6 + 1], (ARRAY['Abc', 'aBC', 'b', 'B', NULL])[k % 5 + 1] FROM generate_series(1, 4000) k;
INSERT INTO t (id, s, i, l, r, f, n, d, ts, m) VALUES (0, -32768, -2147483648, -9223372036854775808, '-inf', '-inf', -9999999999.99, '-infinity', '-infinity', '-92233720368547758.08'),
	(-1, 32767, 2147483647, 9223372036854775807, 'inf', 'inf', 9999999999.99, 'infinity', 'infinity', '92233720368547758.07'), (-2, 0, 0, 0, 'NaN', 'NaN', 0, '2000-01-01', '2000-01-01', 0), (-3, 0, 0, 0, '-0', '-0', 0, '2000-01-01', '2000-01-01', 0), (-4, 0, 0, 0, 0, 0, 0.00, '2000-01-01', '2000-01-01', 0);
CREATE TABLE other (id int, w int, k text) WITH (autovacuum_enabled = off);
INSERT INTO other SELECT k, k % 300, 'k' || k % 20 FROM generate_series(1, 6000, 3) k;
CREATE TABLE empty (LIKE t) WITH (autovacuum_enabled = off);
SELECT gpuvm.import('t'), gpuvm.import('other'), gpuvm.import('empty');
VACUUM ANALYZE t, other;

-- Each type, both ways, nulls at both ends; and the first of them.
SELECT * FROM ask_each('SELECT id, %1$s FROM t ORDER BY %1$s, id', 'b', 's', 'i', 'l', 'r', 'f', 'n', 'd', 'ti', 'ts', 'tz', 'm', 'o', 'g', 'c', 'v', 'p', 'nm', 'ch', 'u', 'e', 'by', 'ip', 'tt', 'iv', 'bi', 'a', 'co', 'ic', 'bl');
SELECT * FROM ask_each('SELECT id, %1$s FROM t ORDER BY %1$s DESC, id', 'b', 's', 'i', 'l', 'r', 'f', 'n', 'd', 'c', 'v', 'p', 'u', 'e', 'iv', 'ic', 'bl');
SELECT * FROM ask_each('SELECT id, %1$s FROM t ORDER BY %1$s NULLS FIRST, id DESC LIMIT 700', 'b', 's', 'i', 'l', 'r', 'f', 'n', 'd', 'c', 'v', 'p', 'u', 'e', 'iv', 'ic', 'bl');
SELECT * FROM ask_each('SELECT id, %1$s FROM t ORDER BY %1$s DESC NULLS LAST, id LIMIT 10 OFFSET 20', 'b', 's', 'i', 'l', 'r', 'f', 'n', 'd', 'c', 'v', 'p', 'u', 'e', 'iv', 'ic', 'bl');
-- Several keys, mixed; keys that are not shown; conditions.
SELECT * FROM ask_each('SELECT id FROM t %s', 'ORDER BY b, s DESC, c NULLS FIRST, id', 'ORDER BY c COLLATE "C" DESC, id', 'ORDER BY v COLLATE "und-x-icu", co DESC, id', 'ORDER BY e DESC, p, n, f, d, i, l, id', 'WHERE i > 0 ORDER BY f, id LIMIT 50', 'WHERE c LIKE $$a%%$$ ORDER BY c, id DESC',
	'WHERE false ORDER BY id', 'WHERE id = 77 ORDER BY c', 'ORDER BY id LIMIT 1', 'ORDER BY id OFFSET 3990', 'ORDER BY id LIMIT 0', 'ORDER BY id LIMIT NULL OFFSET 4000', 'ORDER BY id LIMIT ALL', 'ORDER BY id LIMIT 5 OFFSET 100000', 'ORDER BY id LIMIT (SELECT 7)', 'ORDER BY b, s, i, l, r, f, n, d, id', 'ORDER BY b, s, i % 2, i % 3, i % 5, i % 7, i % 11, i % 13, i, l, r, f, n, d, c, e, id');
SELECT * FROM ask('SELECT * FROM t ORDER BY l, id DESC LIMIT 40');
SELECT * FROM ask('SELECT s FROM t ORDER BY s FETCH FIRST 3 ROWS WITH TIES');
SELECT * FROM ask('SELECT id, n FROM empty ORDER BY n LIMIT 4');
-- Expressions.
SELECT * FROM ask_each('SELECT id, %1$s AS x FROM t ORDER BY %1$s, id LIMIT 30', 'i + s', '-l % 1000', 'lower(v)', 'n * 2', 'extract(year FROM d)', 'c || v', 'b IS NULL', 'random() < 2');
SELECT * FROM ask('SELECT id FROM t ORDER BY i % 10, length(c) DESC, id LIMIT 30');
-- What is shown is computed above the sort, of columns that are not.
SELECT * FROM ask('SELECT id, s + s + s + s + s + s + s + s + s + s + s + s + length(c) AS x FROM t WHERE id > 0 ORDER BY i, id LIMIT 7');
SELECT * FROM ask('SELECT id FROM (SELECT id, s + s + s + s + s + s + s + s + s + s + s + s + length(c) AS x FROM t WHERE id > 0 ORDER BY i, id LIMIT 7) q WHERE x > -5000');
-- Errors are PostgreSQL's, whether the row would come out or not.
SELECT * FROM ask('SELECT id FROM t ORDER BY 10 / s, id LIMIT 5');
SELECT * FROM ask('SELECT id FROM t WHERE i / s > 0 ORDER BY id LIMIT 5');
-- Groups.
SELECT * FROM ask_each('SELECT g %% 50 AS k, %1$s AS x FROM t GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 12', 'count(*)', 'count(c)', 'sum(s)', 'sum(i)', 'sum(l)', 'sum(n)', 'sum(f)', 'min(d)', 'max(ts)', 'max(n)', 'min(c)', 'max(v)', 'max(e)', 'bool_or(b)', 'bit_and(i)', 'avg(i)', 'sum(m)', 'sum(i) + 1', 'count(DISTINCT s)', 'stddev(i)');
SELECT * FROM ask_each('SELECT %1$s AS k, count(*), sum(i) FROM t GROUP BY 1 ORDER BY 1', 'b', 's', 'f + 0', 'n', 'd', 'c', 'v', 'p', 'e', 'u', 'bi', 'ic', 'lower(v)', 'upper(c)', 'extract(month FROM d)', 's / 10', 'ts::date', 'c || v');
SELECT * FROM ask('SELECT c, e, sum(n) FROM t GROUP BY c, e ORDER BY sum(n) DESC NULLS LAST, c DESC, e LIMIT 9');
SELECT * FROM ask('SELECT c, e, sum(n) FROM t GROUP BY c, e ORDER BY e DESC, count(*), c');
SELECT * FROM ask('SELECT c, count(*) FROM t GROUP BY c HAVING sum(i) > 0 ORDER BY 2 DESC, 1 LIMIT 3');
SELECT * FROM ask('SELECT c, count(*) FROM t WHERE id < 0 GROUP BY c ORDER BY 2 DESC, 1 LIMIT 3');
SELECT * FROM ask('SELECT c, v, count(*) FROM t GROUP BY GROUPING SETS ((c), (v)) ORDER BY 3 DESC, 1, 2 LIMIT 3');
SELECT * FROM ask('SELECT b, e, generate_series(1, count(*) / 500) FROM t GROUP BY 1, 2 ORDER BY 1, 2, 3 LIMIT 10');
SELECT * FROM ask('SELECT min(c COLLATE "C") FROM t GROUP BY s ORDER BY min(c COLLATE "C") COLLATE "und-x-icu", count(*), min(id) LIMIT 10');
-- DISTINCT, DISTINCT ON, windows: what is below them comes sorted.
SELECT * FROM ask_each('SELECT %s', 'DISTINCT c, e FROM t ORDER BY e DESC, c LIMIT 20', 'DISTINCT s FROM t ORDER BY s', 'DISTINCT ON (c) c, id, i FROM t ORDER BY c, i DESC, id', 'DISTINCT ON (b, e) b, e, id FROM t ORDER BY e, b DESC, id LIMIT 4',
	'DISTINCT count(*) FROM t GROUP BY c ORDER BY 1', 'id, row_number() OVER (PARTITION BY e ORDER BY i DESC, id) FROM t ORDER BY 2, 1 LIMIT 50', 'id, sum(s) OVER (ORDER BY c, id) FROM t', 'c, sum(count(*)) OVER (ORDER BY c) FROM t GROUP BY c');
-- Joins.
SELECT * FROM ask_each('SELECT t.id, o.id AS oid, %1$s AS x FROM t JOIN other o ON o.w = t.g ORDER BY %1$s, t.id, o.id LIMIT 100', 't.c', 'o.k', 't.n', 'o.w', 't.id', 't.i + o.w');
SELECT * FROM ask('SELECT t.id, o.k, t.c FROM t LEFT JOIN other o ON o.id = t.id ORDER BY o.k NULLS FIRST, t.c DESC, t.id');
SELECT * FROM ask('SELECT t.id, o.id FROM t FULL JOIN other o ON o.id = t.id ORDER BY o.id DESC, t.id');
SELECT * FROM ask('SELECT id FROM t WHERE EXISTS (SELECT FROM other o WHERE o.id = t.id) ORDER BY f, id LIMIT 20');
SELECT * FROM ask('SELECT o.k, sum(t.n), count(*) FROM t JOIN other o ON o.id = t.id GROUP BY o.k ORDER BY 2 DESC, 1 LIMIT 5');
SELECT * FROM ask('SELECT a.id FROM t a JOIN t b ON b.id = a.id JOIN other o ON o.id = a.id ORDER BY b.l, a.id LIMIT 11');
-- Set operations and subqueries.
SELECT * FROM ask('(SELECT id FROM t ORDER BY i, id LIMIT 5) UNION ALL (SELECT id FROM t ORDER BY i DESC, id LIMIT 5)');
SELECT * FROM ask('SELECT q.id FROM (SELECT id, i FROM t UNION ALL SELECT id, w FROM other) q ORDER BY i, id LIMIT 9');
SELECT * FROM ask('SELECT id, (SELECT o.id FROM other o WHERE o.w = t.g ORDER BY o.id DESC LIMIT 1) FROM t WHERE id BETWEEN 1 AND 20 ORDER BY t.id');
SELECT * FROM ask('SELECT o.w, q.id FROM other o, LATERAL (SELECT id FROM t WHERE t.g = o.w ORDER BY t.i, t.id LIMIT 2) q WHERE o.id < 40 ORDER BY 1, 2');

-- What EXPLAIN shows.
EXPLAIN (COSTS OFF) SELECT id, c FROM t ORDER BY c COLLATE "C" DESC NULLS LAST, id LIMIT 5 OFFSET 2;
EXPLAIN (COSTS OFF) SELECT c, sum(n) FROM t WHERE i > 0 GROUP BY c ORDER BY 2 DESC, 1 LIMIT 5;

-- Parameters.
PREPARE firsts(int) AS SELECT id FROM t ORDER BY f DESC, id LIMIT $1;
EXECUTE firsts(3);
EXECUTE firsts(2);
SET plan_cache_mode = force_generic_plan;
EXECUTE firsts(3);
RESET plan_cache_mode;
-- Cursors: forward, back, and not for updates.
BEGIN;
DECLARE back CURSOR FOR SELECT id FROM t ORDER BY f, id;
FETCH 3 FROM back;
FETCH BACKWARD 1 FROM back;
DECLARE sorted SCROLL CURSOR FOR SELECT id, c FROM t ORDER BY c DESC, id;
FETCH 3 FROM sorted;
FETCH BACKWARD 2 FROM sorted;
FETCH LAST FROM sorted;
DECLARE plain NO SCROLL CURSOR FOR SELECT id FROM t ORDER BY i, id;
FETCH 2 FROM plain;
UPDATE t SET c = c WHERE CURRENT OF plain;
ROLLBACK;
-- What changed since is sorted with the rest.
INSERT INTO t (id, c, i, f) VALUES (5000, 'zzzz', 7, 1e10), (5001, 'aaaa', 8, NULL), (5002, NULL, 9, '-inf');
UPDATE t SET c = 'new ' || id, i = -i WHERE id BETWEEN 100 AND 110;
DELETE FROM t WHERE id % 1000 = 0;
SELECT * FROM ask_each('SELECT id, %1$s FROM t ORDER BY %1$s DESC, id LIMIT 300', 'c', 'i', 'f', 'v', 'iv');
SELECT * FROM ask('SELECT c, count(*) FROM t GROUP BY c ORDER BY c');
-- Values of variable length, which devices do not sort by.
CREATE TABLE long (id int, x text) WITH (autovacuum_enabled = off);
INSERT INTO long SELECT k, repeat(md5(k::text), 1 + k % 3) FROM generate_series(1, 3000) k;
ANALYZE long;
ALTER TABLE long ALTER x SET (n_distinct = 2000000);
ANALYZE long;
SELECT gpuvm.import('long');
SET gpuvm.device = cpu;
SELECT * FROM ask('SELECT id, x FROM long ORDER BY x, id LIMIT 5');
RESET gpuvm.device;
SELECT * FROM ask('SELECT id, x FROM long ORDER BY id DESC LIMIT 5');
-- Partitions.
CREATE TABLE parted (id int, k int, c text) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (2000);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (2000) TO (5000);
INSERT INTO parted SELECT n, n * 7919 % 1009, 'p' || n % 57 FROM generate_series(1, 4500) n;
SELECT gpuvm.import('parted');
VACUUM ANALYZE parted;
SELECT * FROM ask('SELECT * FROM parted ORDER BY c DESC, k, id LIMIT 40');
SELECT * FROM ask('SELECT c, sum(k) FROM parted GROUP BY c ORDER BY 2, 1 LIMIT 40');
-- A policy's rows: what the others have shows nowhere.
CREATE TABLE guarded (id int, who name, c text, iv interval) WITH (autovacuum_enabled = off);
INSERT INTO guarded SELECT k, CASE k % 2 WHEN 0 THEN 'order_by_user' ELSE 'nobody' END, 'c' || k * 31 % 1000, k % 7 * interval '1 day' FROM generate_series(1, 2000) k;
SELECT gpuvm.import('guarded');
VACUUM ANALYZE guarded;
CREATE ROLE order_by_user;
GRANT USAGE ON SCHEMA order_by TO order_by_user;
GRANT SELECT ON guarded TO order_by_user;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON guarded USING (who = current_user);
SET ROLE order_by_user;
SELECT * FROM ask('SELECT id, c FROM guarded ORDER BY c, id LIMIT 40');
SELECT * FROM ask('SELECT id, iv FROM guarded ORDER BY iv, id LIMIT 40');
RESET ROLE;

-- Dictionaries in the order of their bytes, eight at a time: values that begin others, all alike for long, with bytes above 127, empty; and those of a later refresh.
CREATE COLLATION plain_utf8 (provider = libc, locale = 'C.UTF-8');
CREATE TABLE alike (id int, c text COLLATE "C", l varchar COLLATE plain_utf8, i text COLLATE "en-x-icu") WITH (autovacuum_enabled = off);
INSERT INTO alike SELECT i, v, v, v FROM (SELECT i, left(repeat(CASE i % 3 WHEN 0 THEN 'новости ' WHEN 1 THEN 'aaaaaaaa' ELSE 'é' || chr(65536 + i % 5) END, 90), i % 701) || CASE WHEN i % 5 = 0 THEN '' ELSE (i * 31 % 97)::text END AS v FROM generate_series(1, 4000) i) x;
VACUUM ANALYZE alike;
SELECT gpuvm.import('alike');
EXPLAIN (COSTS OFF) SELECT id FROM alike ORDER BY l, c, i;
SELECT * FROM ask_each('SELECT id FROM alike ORDER BY %s', 'c, id', 'l, id', 'l DESC, id', 'i, id', 'l, id LIMIT 900', 'id % 7, c DESC, id');
INSERT INTO alike SELECT 5000 + i, v, v, v FROM (SELECT i, repeat('aaaaaaaa', i % 80) || chr(100 + i) AS v FROM generate_series(1, 200) i) x;
VACUUM ANALYZE alike;
SELECT gpuvm.refresh('alike') \g /dev/null
SELECT * FROM ask_each('SELECT id FROM alike ORDER BY %s', 'c, id', 'l, id', 'i, id LIMIT 900');
-- Where bytes decide ranks cost less than a sort of the rows.
CREATE TABLE few AS SELECT i AS id, v::text COLLATE plain_utf8 AS l FROM (SELECT i, 'phrase ' || i * 7919 % 20000 AS v FROM generate_series(1, 60000) i) x;
VACUUM ANALYZE few;
SELECT gpuvm.import('few');
SET gpuvm.force = off;
SELECT plan_of('SELECT l FROM few WHERE id > 5 ORDER BY l LIMIT 10');
SET gpuvm.force = on;

\set VERBOSITY terse
SET client_min_messages = warning;
DROP SCHEMA order_by CASCADE;
DROP ROLE order_by_user;
