-- Values that no dictionary holds in order: ORDER BY, min and max, under collations of the C library and of ICU. Against PostgreSQL's answers.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA text_order;
SET search_path = text_order;
SET gpuvm.force = on;
-- Devices leave it to the CPU.
SET gpuvm.device = cpu;

\set ECHO none
\i tests/sql/include/ask_many.sql
\i tests/sql/include/vary.sql
\i tests/sql/include/ask_rows.sql
\set ECHO all

-- Where bytes, the C library and ICU differ: capitals, accents in two forms, digits, signs, blanks; and common beginnings, long values, empty ones, nulls.
CREATE COLLATION digits (provider = icu, locale = 'de-u-kn-true');
CREATE COLLATION upper_first (provider = icu, locale = 'en-u-kf-upper');
CREATE COLLATION plain_utf8 (provider = libc, locale = 'C.UTF-8');
CREATE TABLE t (id int, d int, k text, a text, c text COLLATE "C", p varchar COLLATE "POSIX", l text COLLATE plain_utf8, i text COLLATE "en-x-icu", g text COLLATE digits, s varchar(80) COLLATE upper_first, b char(30) COLLATE "en-x-icu", r bpchar, y bytea, u uuid, n name) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 40, 'k' || i % 5, v, v, v, v, v, v, left(v, 80), left(v, 30), left(v, 20) || repeat(' ', i % 3), convert_to(v, 'UTF8') || CASE i % 3 WHEN 0 THEN '\x00'::bytea WHEN 1 THEN '\x0000ff' ELSE '' END, md5((i % 3000)::text)::uuid, left(v, 20)
	FROM (SELECT i, CASE WHEN i % 23 = 0 THEN NULL WHEN i % 29 = 0 THEN '' ELSE (ARRAY['https://example.org/a/common/path/', 'Straße ', 'strasse', 'é', 'e' || chr(769), 'E', 'e', 'a b', 'A-B', 'ab', ' ', '_', chr(65536 + i % 9), '€', 'ch', 'cz'])[1 + i % 16] ||
		CASE i % 4 WHEN 0 THEN (i * 7919 % 6000)::text WHEN 1 THEN chr(192 + i % 250) || i % 100 WHEN 2 THEN ' ' || i % 1000 ELSE repeat('x', i % 300) || i END END AS v FROM generate_series(1, 12000) i) x;
SELECT vary('t', 'a', 'c', 'p', 'l', 'i', 'g', 's', 'b', 'r', 'y', 'u', 'n');
SELECT gpuvm.import('t');

-- Sorted: every column, either way, nulls at either end, all rows and the first ones.
INSERT INTO queries (query) SELECT format('SELECT %1$s, id FROM t ORDER BY %1$s %2$s, id %3$s', col, direction, rest) FROM unnest(ARRAY['a', 'c', 'p', 'l', 'i', 'g', 's', 'b', 'r', 'y', 'u', 'n']) col,
	unnest(ARRAY['', 'DESC', 'NULLS FIRST', 'DESC NULLS LAST']) direction, unnest(ARRAY['', 'LIMIT 50 OFFSET 7']) rest;
SELECT * FROM asked_rows();
-- With other keys, filters, expressions that hand the column on, other collations; groups, DISTINCT, joins and windows.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['id FROM t ORDER BY d, a, id', 'id FROM t ORDER BY d DESC, i DESC NULLS LAST, id LIMIT 100', 'id FROM t ORDER BY k, g DESC, c, id', 'id FROM t ORDER BY a, i, g, c DESC, y, u, n, id', 'id FROM t ORDER BY u, a DESC, id DESC LIMIT 333', 'id, d FROM t WHERE d < 5 AND a LIKE ''%e%'' ORDER BY i, id', 'id FROM t ORDER BY r, b DESC, id LIMIT 500',
	'id FROM t ORDER BY a COLLATE "en-x-icu", id', 'id, a FROM t ORDER BY a COLLATE "C" DESC, id LIMIT 10', 'id FROM t ORDER BY i COLLATE digits, id LIMIT 20', 'id FROM t WHERE false ORDER BY a', 'id FROM t WHERE a IS NULL ORDER BY a, id', 'a, count(*) FROM t GROUP BY a ORDER BY a', 'i, count(*) FROM t GROUP BY i ORDER BY i DESC LIMIT 10', 'g, d, sum(id) FROM t GROUP BY g, d ORDER BY d, g LIMIT 1000',
	'DISTINCT i FROM t ORDER BY i', 'DISTINCT u, k FROM t ORDER BY u DESC, k LIMIT 40', 'DISTINCT ON (i) i, id FROM t ORDER BY i, id', 'x.id, y.id FROM t x JOIN t y ON x.u = y.u AND x.d = 3 ORDER BY x.i, y.g DESC, x.id, y.id', 'x.a, y.a FROM t x LEFT JOIN t y ON x.id = y.id + 20 AND y.d = 1 ORDER BY y.a NULLS FIRST, x.id LIMIT 500',
	'id, row_number() OVER (ORDER BY i, id) FROM t', 'id, rank() OVER (PARTITION BY a ORDER BY id) FROM t', 'max(id), min(i) AS m FROM t GROUP BY d ORDER BY m, 1', 'd, max(c) AS m, min(a) FROM t GROUP BY d ORDER BY m DESC, d LIMIT 5']) q;
SELECT * FROM asked_rows();

-- Extremes.
INSERT INTO queries (query) SELECT format('SELECT min(%1$s), max(%1$s) FROM t', col) FROM unnest(ARRAY['a', 'c', 'p', 'l', 'i', 'g', 's', 'b']) col;
INSERT INTO queries (query) SELECT format('SELECT d, min(%1$s), max(%1$s), count(*) FROM t GROUP BY d', col) FROM unnest(ARRAY['a', 'c', 'p', 'l', 'i', 'g', 's', 'b']) col;
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['min(a), max(i) FILTER (WHERE d = 3), min(g) FILTER (WHERE id < 0) FROM t', 'u, min(a), max(i) FROM t GROUP BY u', 'a, min(i), max(c) FROM t GROUP BY a', 'd, k, max(g) FROM t GROUP BY ROLLUP (d, k)', 'k, min(a), count(DISTINCT i), max(DISTINCT i) FROM t GROUP BY k', 'min(a COLLATE "C"), max(a COLLATE "en-x-icu"), min(a COLLATE digits) FROM t', 'min(a), max(i) FROM t WHERE false',
	'd, max(a) FROM t WHERE id % 40 = 4 GROUP BY d', 'd, min(i) FROM t GROUP BY d HAVING count(*) > 10', 'x.d, min(y.i), max(x.g) FROM t x JOIN t y ON x.u = y.u GROUP BY x.d', 'x.d, max(y.a), min(y.i) FROM t x LEFT JOIN t y ON x.id = y.id + 20 AND y.d < 9 GROUP BY x.d', 'd, upper(min(a)), length(max(i)) FROM t GROUP BY d']) q;
SELECT * FROM asked();

-- What changed since: values of a delta are in the job's memory. Then all again in tablets.
UPDATE t SET a = a || '!', i = upper(i), g = '7' || g WHERE id % 300 = 3;
INSERT INTO t SELECT 20000 + i, i % 9, 'k9', v, v, v, v, v, v, v, v, v, v::bytea, md5(v)::uuid, v FROM (SELECT i, chr(40 + i % 90) || i v FROM generate_series(1, 500) i WHERE chr(40 + i % 90) <> '\') x;
DELETE FROM t WHERE id % 500 = 5;
\set changed 'INSERT INTO queries (query) SELECT ''SELECT '' || q FROM unnest(ARRAY[''a, id FROM t ORDER BY a, id'', ''i, id FROM t ORDER BY i DESC, id LIMIT 700'', ''g, id FROM t ORDER BY g, id'', ''y, id FROM t ORDER BY y NULLS FIRST, id'', ''d, min(a) AS m, max(i), min(g), max(s) FROM t GROUP BY d ORDER BY m, d'']) q;'
:changed
SELECT * FROM asked_rows();
SELECT gpuvm.refresh('t') \g /dev/null
:changed
SELECT * FROM asked_rows();

-- Long values, which differ at the end.
CREATE TABLE long (id int, c text COLLATE "C", i text COLLATE "en-x-icu", y bytea) WITH (autovacuum_enabled = off);
INSERT INTO long SELECT i, v, v, v::bytea FROM (SELECT i, CASE WHEN i % 50 = 0 THEN repeat('long ', 200000) ELSE repeat('a', i % 1100) END || i * 31 % 100 AS v FROM generate_series(1, 200) i) x;
SELECT vary('long', 'c', 'i', 'y');
SELECT gpuvm.import('long');
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['id FROM long ORDER BY c, id', 'id FROM long ORDER BY i DESC, id', 'id FROM long ORDER BY y, id LIMIT 3', 'id FROM long ORDER BY i, id LIMIT 20', 'id % 3, length(min(c)), length(max(i)), max(i) FROM long GROUP BY 1 ORDER BY 1']) q;
SELECT * FROM asked_rows();

-- A partitioned table's leaves.
CREATE TABLE parts (id int, i text COLLATE "en-x-icu") PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF parts FOR VALUES FROM (0) TO (6000) WITH (autovacuum_enabled = off);
CREATE TABLE part2 PARTITION OF parts FOR VALUES FROM (6000) TO (99999) WITH (autovacuum_enabled = off);
INSERT INTO parts SELECT id, i FROM t;
SELECT vary('part1', 'i'), vary('part2', 'i');
SELECT gpuvm.import('part1'), gpuvm.import('part2');
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['i, id FROM parts ORDER BY i, id', 'i, id FROM parts ORDER BY i DESC, id LIMIT 9']) q;
SELECT * FROM asked_rows();

-- Many rows, in several parts, of which some have values in common.
CREATE TABLE many WITH (autovacuum_enabled = off) AS SELECT t.id, t.c || k9 % 7 AS c, t.i || k9 % 7 AS i, t.a FROM t, generate_series(1, 9) k9;
SELECT vary('many', 'c', 'i', 'a');
SELECT gpuvm.import('many');
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['c, id FROM many ORDER BY c, id', 'i, id FROM many ORDER BY i DESC, id', 'a, id FROM many ORDER BY id % 3, a NULLS FIRST, id', 'i FROM many ORDER BY i LIMIT 70000', 'id % 100, min(i), max(c) FROM many GROUP BY 1 ORDER BY 1']) q;
SELECT * FROM asked_rows();

-- What stays with PostgreSQL, and why.
CREATE COLLATION unsure (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE others (id int, v text COLLATE unsure, f inet, r bpchar) WITH (autovacuum_enabled = off);
INSERT INTO others SELECT i, (ARRAY['a', 'A'])[1 + i % 2] || i % 100, ('10.0.' || i % 200 || '.1')::inet, 'a' || repeat(' ', i % 3) FROM generate_series(1, 1000) i;
SELECT vary('others', 'v', 'f', 'r');
SELECT gpuvm.import('others');
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['id FROM others ORDER BY v, id', 'id FROM others ORDER BY f, id', 'id FROM t ORDER BY a COLLATE unsure, id', 'id FROM t ORDER BY a USING ~<~, id']) q;
SELECT * FROM asked_rows();
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['id % 3, max(v) FROM others GROUP BY 1', 'max(f) FROM others', 'max(r) FROM others', 'max(a COLLATE unsure) FROM t']) q;
SELECT query, (SELECT string_agg(DISTINCT reason, '; ') FROM gpuvm.why_not(query)) AS reason FROM queries;
SELECT * FROM asked();
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY i DESC, g, id LIMIT 10;
EXPLAIN (COSTS OFF) SELECT d, min(i), max(a) FROM t GROUP BY d;
