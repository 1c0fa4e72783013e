-- Dictionaries in queries: types, rows that changed since, cursors, parameters, joins, policies, and what EXPLAIN says.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA dictionary;
SET search_path = dictionary;
SET gpuvm.force = on;
SET timezone = 'UTC';

\set ECHO none
\i tests/sql/include/ask_many.sql
\set ECHO all

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN word AS text CHECK (VALUE <> 'never');
CREATE TABLE types (id int, u uuid, e mood, w word, b bytea, ch "char", i interval, z timetz, bits bit(9), vb bit varying, j json, jb jsonb, ip inet, net cidr, m macaddr,
	m8 macaddr8, ints int[], words text[], nothing text, d int) WITH (autovacuum_enabled = off);
INSERT INTO types SELECT i, md5((i % 30)::text)::uuid, (ARRAY['sad', 'ok', 'happy'])[1 + i % 3]::mood, 'w' || i % 11, decode(md5((i % 40)::text), 'hex'), chr(65 + i % 26)::"char",
	make_interval(months => i % 3, days => i % 2 * 30, hours => i % 5), '12:00:00+01'::timetz + i % 10 * interval '1 hour', (i % 20)::bit(9), (i % 20)::bit(8)::varbit,
	json_build_object('k', i % 12), jsonb_build_object('k', i % 12), inet '10.0.0.0/8' + i % 25, set_masklen(inet '10.0.0.0', i % 9 + 8)::cidr, ('08:00:2b:01:02:0' || i % 10)::macaddr,
	('08:00:2b:01:02:03:04:0' || i % 10)::macaddr8, ARRAY[i % 4, NULL, i % 3], ARRAY['a' || i % 6, NULL, ''], NULL, i % 7
	FROM generate_series(1, 3000) i;
INSERT INTO types (id, d) SELECT i, i % 7 FROM generate_series(3001, 3100) i;
SELECT gpuvm.import('types');
ANALYZE types;

-- Each type: equality, order, an expression, as a key, in the output, the least and the greatest.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[
	$$id FROM types WHERE u = md5('3')::uuid$$, $$id FROM types WHERE u > '80000000-0000-0000-0000-000000000000'$$, $$count(*), u FROM types GROUP BY u$$, $$count(*), left(u::text, 1) FROM types GROUP BY 2$$, $$id, u FROM types WHERE d = 1$$,
	$$id FROM types WHERE e = 'ok'$$, $$id FROM types WHERE e > 'sad'$$, $$id FROM types WHERE e IN ('sad', 'happy')$$, $$count(*), e FROM types GROUP BY e$$, $$id, e FROM types WHERE e <> 'ok'$$, $$min(e), max(e) FROM types$$, $$count(*) FROM types WHERE e::text LIKE '%a%'$$, $$count(*), e::text || '!' FROM types GROUP BY 2$$,
	$$id FROM types WHERE w = 'w3'$$, $$count(*), w FROM types GROUP BY w$$, $$count(*), upper(w) FROM types GROUP BY 2$$, $$min(w), max(w) FROM types$$, $$id, w FROM types WHERE w LIKE 'w1%'$$,
	$$id FROM types WHERE b = decode(md5('5'), 'hex')$$, $$id FROM types WHERE b > '\x80'$$, $$count(*), b FROM types GROUP BY b$$, $$count(*), get_byte(b, 0) % 4 FROM types GROUP BY 2$$, $$count(*), encode(substring(b, 1, 1), 'hex') FROM types GROUP BY 2$$, $$id, b FROM types WHERE length(b) = 16 AND d = 2$$,
	$$id FROM types WHERE ch = 'C'$$, $$id FROM types WHERE ch > 'X'$$, $$count(*), ch FROM types GROUP BY ch$$, $$sum(ch::int) FROM types$$, $$id, ch FROM types WHERE d = 3$$,
	$$id FROM types WHERE i = '30 days'$$, $$id FROM types WHERE i > '1 month'$$, $$id, i FROM types WHERE d = 4$$, $$count(*), i FROM types GROUP BY i$$, $$max(i) FROM types$$, $$count(*), date_part('hour', i) FROM types GROUP BY 2$$, $$count(i), count(*) FROM types WHERE i IS NULL OR i < '2 months'$$,
	$$id FROM types WHERE z = '14:00:00+01'$$, $$count(*), z FROM types GROUP BY z$$, $$id, z FROM types WHERE z > '18:00:00+00'$$, $$min(z), max(z) FROM types$$,
	$$id FROM types WHERE bits = B'000000011'$$, $$count(*), bits FROM types GROUP BY bits$$, $$id, vb FROM types WHERE vb > B'00001'$$, $$count(*), vb FROM types GROUP BY vb$$, $$sum(bits::int) FROM types$$,
	$$id, j FROM types WHERE d = 5$$, $$count(j) FROM types WHERE j ->> 'k' = '3'$$, $$id, jb FROM types WHERE jb @> '{"k": 4}'$$, $$count(*), jb FROM types GROUP BY jb$$, $$count(*), jb ->> 'k' FROM types GROUP BY 2$$, $$sum((jb ->> 'k')::int) FROM types$$, $$count(*) FROM types WHERE jb = '{"k": 5}'$$,
	$$id FROM types WHERE ip = '10.0.0.7/8'$$, $$id FROM types WHERE ip << '10.0.0.0/30'$$, $$count(*), ip FROM types GROUP BY ip$$, $$id, host(ip) FROM types WHERE ip > '10.0.0.20/8'$$, $$min(ip), max(ip) FROM types$$, $$count(*), masklen(net) FROM types GROUP BY 2$$, $$count(*), net FROM types GROUP BY net$$,
	$$id, m FROM types WHERE m > '08:00:2b:01:02:05'$$, $$count(*), m FROM types GROUP BY m$$, $$count(*), m8 FROM types GROUP BY m8$$, $$id FROM types WHERE trunc(m) = '08:00:2b:00:00:00'$$,
	$$id, ints FROM types WHERE ints[1] = 2$$, $$id FROM types WHERE 2 = ANY (ints)$$, $$id FROM types WHERE ints @> '{1}'$$, $$count(*), ints FROM types GROUP BY ints$$, $$count(*), cardinality(ints) FROM types GROUP BY 2$$, $$id FROM types WHERE words[1] = 'a3'$$, $$id, words FROM types WHERE d = 6$$, $$count(*), array_to_string(words, '-') FROM types GROUP BY 2$$,
	$$count(nothing), count(*), min(nothing), max(nothing) FROM types$$, $$count(*), nothing FROM types GROUP BY nothing$$, $$id FROM types WHERE nothing = 'x'$$, $$id, nothing FROM types WHERE nothing IS NULL AND d = 1$$, $$count(*) FROM types WHERE coalesce(nothing, 'x') = 'x'$$]) q;
SELECT * FROM asked();

-- What depends on a setting is evaluated again.
CREATE FUNCTION with_setting(setting text, value text, query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config(setting, value, true);
	RETURN ask(query);
END $$;
SELECT with_setting('bytea_output', o, 'SELECT count(*), b::text FROM types GROUP BY 2'), with_setting('intervalstyle', s, 'SELECT count(*), i::text FROM types GROUP BY 2'),
	with_setting('extra_float_digits', f, 'SELECT count(*), (length(w) / 3::float8)::text FROM types GROUP BY 2')
FROM (VALUES ('hex', 'postgres', '1'), ('escape', 'iso_8601', '-3'), ('hex', 'postgres', '1')) v(o, s, f);
-- Nor does what reads a catalog stay what it was.
CREATE TEXT SEARCH CONFIGURATION parsing (COPY = simple);
SELECT ask($$SELECT count(*) FROM types WHERE to_tsvector('dictionary.parsing', w) @@ 'w3'::tsquery$$);
ALTER TEXT SEARCH CONFIGURATION parsing DROP MAPPING FOR asciiword, numword, word;
SELECT ask($$SELECT count(*) FROM types WHERE to_tsvector('dictionary.parsing', w) @@ 'w3'::tsquery$$);
-- Values that nobody asked for are too large for PostgreSQL, or all together for a session.
SELECT ask($$SELECT count(*) FROM types WHERE d < 0 AND length(repeat(repeat(w, 600000), 1000)) > 5$$);
SELECT ask($$SELECT length(max(repeat(u::text, 250000))) FROM types WHERE id < 3$$);
-- A record's field that has no value any more raises only where PostgreSQL comes to it.
CREATE FUNCTION later(given bool) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
	r record;
	n bigint[];
BEGIN
	IF given THEN
		SELECT 'w3'::text AS x, 4 AS i INTO r;
	END IF;
	SELECT ARRAY[count(*) FILTER (WHERE CASE WHEN w = '' THEN w = r.x ELSE true END), count(*) FILTER (WHERE d < 100 OR d = r.i)] INTO n FROM types;
	RETURN n;
END $$;
SELECT later(true), later(false);
-- Unsigned results.
SELECT ask('SELECT w, sum(1) FROM types WHERE (''42949672'' || length(w))::oid > 2000000000 GROUP BY w');

-- Rows that changed since: values that the dictionary has not.
CREATE TABLE changing (id int, t text, e mood, v varchar(8), d int) WITH (autovacuum_enabled = off);
INSERT INTO changing SELECT i, 'old' || i % 10, (ARRAY['sad', 'ok'])[1 + i % 2]::mood, CASE WHEN i % 5 > 0 THEN 'v' || i % 5 END, i % 3 FROM generate_series(1, 20000) i;
SELECT gpuvm.import('changing');
ANALYZE changing;
CREATE VIEW changing_queries AS SELECT 'SELECT ' || q AS query FROM unnest(ARRAY[
	$$id FROM changing WHERE t = 'new3'$$, $$id, t, e, v FROM changing WHERE t LIKE 'new%'$$, $$count(*), t FROM changing GROUP BY t$$, $$count(*), upper(t) FROM changing GROUP BY 2$$, $$count(*), left(t, 3), e FROM changing GROUP BY 2, 3$$, $$min(t), max(t), min(e), max(e) FROM changing$$,
	$$d, max(t), min(v) FROM changing GROUP BY d$$, $$count(*), length(t) FROM changing GROUP BY 2$$, $$max(upper(t)) FROM changing$$, $$count(*) FROM changing WHERE t > 'old5' OR e = 'happy'$$, $$coalesce(v, t), count(*) FROM changing GROUP BY v, t$$, $$count(*) FROM changing WHERE coalesce(v, 'none') = 'none'$$]) q;
INSERT INTO queries (query) SELECT query FROM changing_queries;
SELECT * FROM asked();
UPDATE changing SET t = 'new' || id % 4, e = 'happy', v = 'w' || id % 3 WHERE id % 500 = 1;
INSERT INTO changing VALUES (20001, 'zzz', NULL, NULL, 1), (20002, NULL, 'happy', '', 2), (20003, '', 'sad', 'aaa', 0);
INSERT INTO queries (query) SELECT query FROM changing_queries;
SELECT * FROM asked();
-- The same in a transaction that goes on changing them, and after a refresh.
BEGIN;
UPDATE changing SET t = 'newer' || id % 4 WHERE id % 1000 = 2;
INSERT INTO queries (query) SELECT query FROM changing_queries;
SELECT * FROM asked();
SAVEPOINT s;
DELETE FROM changing WHERE t = 'zzz';
SELECT ask('SELECT max(t), count(*) FROM changing');
ROLLBACK TO s;
SELECT ask('SELECT max(t), count(*) FROM changing');
COMMIT;
VACUUM changing;
SELECT gpuvm.refresh('changing') IS NOT NULL AS refreshed;
INSERT INTO queries (query) SELECT query FROM changing_queries;
SELECT * FROM asked();
-- What a session has evaluated stays: a refresh adds to it.
CREATE FUNCTION evaluated(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	result text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Entries Evaluated' THEN
			result := substring(line from '\d+');
		END IF;
	END LOOP;
	RETURN result;
END $$;
SELECT evaluated('SELECT count(*) FROM changing WHERE t ~ ''[0-5]$''') AS first, evaluated('SELECT count(*) FROM changing WHERE t ~ ''[0-5]$''') AS second;
INSERT INTO changing VALUES (20004, 'one5', 'sad', 'aaa', 0), (20005, 'two5', 'sad', 'aaa', 0);
SELECT evaluated('SELECT count(*) FROM changing WHERE t ~ ''[0-5]$''') AS delta, ask('SELECT count(*), max(id) FROM changing WHERE t ~ ''[0-5]$''');
VACUUM changing;
SELECT gpuvm.refresh('changing') IS NOT NULL AS refreshed;
SELECT evaluated('SELECT count(*) FROM changing WHERE t ~ ''[0-5]$''') AS refreshed, evaluated('SELECT count(*) FROM changing WHERE t ~ ''[0-5]$''') AS again,
	ask('SELECT count(*), max(id) FROM changing WHERE t ~ ''[0-5]$''');

-- A cursor that was open before a refresh goes on with its own dictionary and order.
BEGIN;
SET LOCAL gpuvm.require = :device;
DECLARE c CURSOR FOR SELECT d, max(t), min(t), max(upper(t)) FROM changing GROUP BY d ORDER BY d;
DECLARE r CURSOR FOR SELECT id, t, v FROM changing WHERE upper(t) LIKE 'OLD%' AND id < 8000;
FETCH 1 FROM c;
FETCH 2 FROM r;
INSERT INTO changing VALUES (20006, 'aaaa', 'sad', 'aaa', 0), (20007, 'zzzzz', 'sad', 'aaa', 1);
SELECT max(t), min(t), max(upper(t)) FROM changing;
FETCH 2 FROM c;
FETCH 3 FROM r;
MOVE 5000 IN r;
FETCH 1 FROM r;
ROLLBACK;

-- Parameters: other values in a prepared statement, of a subquery, in rescans.
PREPARE p(text, int) AS SELECT count(*), min(id) FROM changing WHERE t LIKE $1 || '%' AND d = $2;
SET gpuvm.require = :device;
SET plan_cache_mode = force_generic_plan;
EXECUTE p('old', 1);
EXECUTE p('old3', 2);
EXECUTE p(NULL, 2);
EXECUTE p('', 0);
SET plan_cache_mode = force_custom_plan;
EXECUTE p('old', 1);
EXECUTE p(NULL, 2);
RESET plan_cache_mode;
EXPLAIN (COSTS OFF) EXECUTE p('new', 1);
RESET gpuvm.require;
PREPARE list(text[]) AS SELECT count(*), min(id) FROM changing WHERE t = ANY ($1);
SET plan_cache_mode = force_generic_plan;
SET gpuvm.require = :device;
EXECUTE list('{old1,old2,none}');
EXECUTE list('{}');
EXECUTE list(NULL);
EXECUTE list('{NULL,old1}');
RESET gpuvm.require;
RESET plan_cache_mode;
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[
	$$count(*) FROM changing WHERE t = (SELECT max(t) FROM changing)$$, $$d, (SELECT count(*) FROM changing c WHERE c.t = 'old' || g.d) FROM generate_series(0, 4) g(d)$$,
	$$d, (SELECT max(c.t) FROM changing c WHERE c.d = g.d) FROM generate_series(0, 4) g(d)$$, $$d, (SELECT min(upper(c.t || g.d)) FROM changing c WHERE c.d = g.d) FROM generate_series(0, 4) g(d)$$, $$count(*) FROM changing WHERE v = current_user OR t = 'old1'$$]) q;
SELECT * FROM asked();

-- Joins: with what dictionary columns say in every place (dictionary_meet has those whose keys they are).
CREATE TABLE names (k int, name text, kind char(3)) WITH (autovacuum_enabled = off);
INSERT INTO names SELECT i, 'n' || i % 4, (ARRAY['a', 'b'])[1 + i % 2] FROM generate_series(0, 5) i;
SELECT gpuvm.import('names');
ANALYZE names;
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[
	$$c.id, c.t, n.name FROM changing c JOIN names n ON c.d = n.k WHERE c.t LIKE 'old1%'$$, $$n.name, count(*), max(c.t) FROM changing c JOIN names n ON c.d = n.k GROUP BY n.name$$, $$c.id, n.name, n.kind FROM changing c LEFT JOIN names n ON c.d = n.k AND n.name <> 'n1' WHERE c.id < 500$$,
	$$count(*) FROM changing c LEFT JOIN names n ON c.d = n.k AND n.kind = 'a' WHERE coalesce(n.name, 'none') = 'none'$$, $$c.id, c.t FROM changing c WHERE NOT EXISTS (SELECT 1 FROM names n WHERE n.k = c.d AND n.name > 'n0') AND c.id < 900$$,
	$$c.id, c.t, n.name FROM changing c FULL JOIN names n ON c.d = n.k WHERE c.id IS NULL OR c.id < 50$$, $$count(*) FROM changing c JOIN names n ON c.d = n.k WHERE c.v LIKE '%1' OR n.name LIKE '%2'$$, $$c.id, c.t FROM changing c WHERE c.d IN (SELECT k FROM names WHERE upper(name) = 'N1') AND c.id < 900$$,
	$$upper(n.name), left(c.t, 3), count(*) FROM changing c JOIN names n ON c.d = n.k GROUP BY 1, 2$$, $$count(*) FROM changing c JOIN names n ON c.t = n.name$$, $$count(*) FROM changing c JOIN changing b ON c.t = b.t WHERE b.id < 20$$, $$count(*) FROM changing c JOIN names n ON length(c.t) = n.k AND c.id < 100$$]) q;
SELECT * FROM asked();

-- A numeric that does not fit into 64 bits is no error: rows of a join wait until it is known that there is none.
CREATE TABLE factors (k int, t text, n numeric(18,0)) WITH (autovacuum_enabled = off);
INSERT INTO factors SELECT i, 'f' || i % 3, CASE WHEN i = 40000 THEN 999999999999999999 ELSE i END FROM generate_series(1, 40000) i;
SELECT gpuvm.import('factors');
ANALYZE factors;
SELECT ask('SELECT a.k, a.t, b.t FROM factors a JOIN factors b ON a.k = b.k WHERE a.n * b.n > 20 AND a.k < 40000'), ask('SELECT a.k, a.t, b.t FROM factors a JOIN factors b ON a.k = b.k WHERE a.n * b.n > 20');
BEGIN;
DECLARE f CURSOR FOR SELECT a.k, a.t, a.n * b.n AS product FROM factors a JOIN factors b ON a.k = b.k WHERE a.n * b.n > 20 ORDER BY a.k;
FETCH 1 FROM f;
FETCH LAST FROM f;
ROLLBACK;
SELECT ask('SELECT d, (SELECT max(a.t || b.t) FROM factors a JOIN factors b ON a.k = b.k WHERE a.n * b.n > g.d AND a.k < 100) FROM generate_series(0, 3) g(d)');

-- DISTINCT is a GROUP BY of everything.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[
	$$DISTINCT t FROM changing$$, $$DISTINCT t, d FROM changing WHERE id < 9000$$, $$DISTINCT upper(t) || 'x', d % 2 FROM changing$$, $$DISTINCT v FROM changing$$, $$DISTINCT d FROM changing$$, $$DISTINCT e, v FROM changing WHERE t LIKE 'old%'$$,
	$$DISTINCT n % 5 FROM factors WHERE k < 1000$$, $$DISTINCT n.name, c.d FROM changing c JOIN names n ON c.d = n.k$$, $$DISTINCT u, ch FROM types$$, $$DISTINCT d * 2.5 FROM types$$, $$DISTINCT nothing FROM types$$,
	$$DISTINCT i FROM types$$, $$DISTINCT ON (d) d, t FROM changing ORDER BY d, t, id$$, $$DISTINCT count(*) FROM changing GROUP BY t$$, $$count(*) FROM (SELECT DISTINCT t, d FROM changing) q$$, $$DISTINCT random() > 2 FROM changing$$,
	$$DISTINCT 1 FROM changing$$, $$DISTINCT t, 'x' FROM changing$$]) q;
SELECT * FROM asked();
SET gpuvm.require = :device;
SELECT DISTINCT left(t, 3) AS l, d FROM changing ORDER BY l DESC, d LIMIT 4;
RESET gpuvm.require;

-- Partitions (partitions_text has more).
CREATE TABLE parted (k int, t text, n int) PARTITION BY RANGE (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100) WITH (autovacuum_enabled = off);
CREATE TABLE parted_2 (k int, t text, n int) WITH (autovacuum_enabled = off);
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (100) TO (200);
INSERT INTO parted SELECT i % 200, 'p' || i % 7, i FROM generate_series(1, 1000) i;
SELECT gpuvm.import('parted_1'), gpuvm.import('parted_2');
ANALYZE parted;
SELECT ask(q) FROM unnest(ARRAY['SELECT count(*), t FROM parted GROUP BY t', 'SELECT count(*), t FROM parted WHERE k < 50 GROUP BY t', 'SELECT k, t FROM parted_2 WHERE t = ''p3''', 'SELECT count(*), sum(n) FROM parted WHERE k > 50', 'SELECT DISTINCT k FROM parted', 'SELECT DISTINCT t FROM parted']) q;
SET gpuvm.require = :device;
SELECT count(*), t FROM parted GROUP BY t ORDER BY t;
RESET gpuvm.require;

-- What a policy hides, no expression tells of: one that might raise is evaluated by PostgreSQL.
CREATE ROLE gpuvm_dictionary_reader;
CREATE TABLE secrets (id int, owner name, t text) WITH (autovacuum_enabled = off);
INSERT INTO secrets SELECT i, CASE WHEN i % 2 = 0 THEN 'gpuvm_dictionary_reader' ELSE 'postgres' END, CASE WHEN i % 2 = 0 THEN i % 5 || '' ELSE 'secret' END FROM generate_series(1, 1000) i;
SELECT gpuvm.import('secrets');
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secrets USING (owner = current_user);
GRANT USAGE ON SCHEMA dictionary TO gpuvm_dictionary_reader;
GRANT SELECT ON secrets TO gpuvm_dictionary_reader;
SET ROLE gpuvm_dictionary_reader;
SET gpuvm.require = :device;
SELECT count(*), min(t), max(t) FROM secrets;
SELECT count(*) FROM secrets WHERE t = '3' OR upper(t) = 'SECRET';
SELECT count(*) FROM secrets WHERE t LIKE '%e%';
SELECT count(*) FROM secrets WHERE t::int > 2;
RESET gpuvm.require;
SELECT count(*) FROM secrets WHERE t::int > 2;
EXPLAIN (COSTS OFF) SELECT count(*) FROM secrets WHERE t = '3';
RESET ROLE;
DROP OWNED BY gpuvm_dictionary_reader;
DROP ROLE gpuvm_dictionary_reader;

-- EXPLAIN.
EXPLAIN (COSTS OFF) SELECT upper(t), max(v) FROM changing WHERE t LIKE 'old%' GROUP BY upper(t);
EXPLAIN (COSTS OFF) SELECT c.id, upper(n.name) FROM changing c JOIN names n ON c.d = n.k WHERE c.t LIKE 'old1%' AND n.name <> 'n1';
CREATE FUNCTION said(query text, options text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	result json;
BEGIN
	EXECUTE format('EXPLAIN (FORMAT JSON, %s) %s', options, query) INTO result;
	RETURN result #> '{0,Plan}';
END $$;
SELECT plan -> 'Maps' AS maps, plan -> 'Map Entries Evaluated' AS entries, (plan ->> 'Map Time')::float8 >= 0 AS time
FROM said('SELECT lower(t), max(v) FROM changing WHERE t LIKE ''%d3%'' GROUP BY lower(t)', 'ANALYZE') plan;
SET client_min_messages = warning;
DROP SCHEMA dictionary CASCADE;
