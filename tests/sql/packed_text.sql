-- A few characters and the length of texts that no dictionary holds: compared, grouped by, joined by. Against PostgreSQL's answers.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA packed_text;
SET search_path = packed_text;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/ask_many.sql
\i tests/sql/include/vary.sql
\set ECHO all

CREATE DOMAIN code AS text;
CREATE TABLE words (id int, t text, v varchar(20), c char(15), b bytea, dom code, d int, k text, ci text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO words SELECT i, (ARRAY['apple', 'Apple', '', ' ', '  a', 'ä', 'äöü', '日本語', '🐘🐘', '🐘a🐘', 'ab', 'a', 'abcdefgh', 'abcdefghi', '€uro', 'e' || chr(769) || 'x', NULL, 'tail  ', E'a\nb', repeat('long', 300)])[1 + i * 7 % 20],
	(ARRAY['13-700', '31-200', '1', '', '13', NULL, 'é3-x'])[1 + i % 7], (10 + i % 25) || '-' || lpad((i % 1000)::text, 3, '0'), CASE WHEN i % 7 > 0 THEN decode(md5((i % 50)::text), 'hex') END, (ARRAY['x1', 'x2', 'y', NULL])[1 + i % 4], i % 4, 'k' || i % 5, (ARRAY['a ', 'B', 'b'])[1 + i % 3]
	FROM generate_series(1, 8000) i;
UPDATE words SET c = CASE WHEN id % 3 = 0 THEN NULL WHEN id % 3 = 1 THEN '' ELSE 'a' END WHERE id % 11 = 0;
VACUUM words;
SELECT vary('words', 't', 'v', 'c', 'b', 'dom', 'ci');
SELECT gpuvm.import('words');

-- Comparisons with constants.
INSERT INTO queries (query) SELECT format('SELECT id FROM words WHERE %s', cond) FROM unnest(ARRAY[
	$$substring(t from 1 for 2) = 'ap'$$, $$substring(t from 1 for 2) <> 'ap'$$, $$'ap' = left(t, 2)$$, $$substr(t, 2, 1) = 'p'$$, $$substring(t from 3 for 2) = ''$$, $$substring(t for 2) = 'äö'$$, $$substring(t from 0 for 3) = 'ap'$$, $$substring(t from -5 for 3) = ''$$, $$substring(t from 2147483647 for 2) = ''$$,
	$$left(t, 1) = '🐘'$$, $$left(t, 2) = '🐘🐘'$$, $$left(t, 2) = '🐘a'$$, $$left(t, 1) = '日'$$, $$left(t, 2) = 'é'$$, $$left(t, 2) = 'e' || chr(769)$$, $$left(t, 2) = ' '$$, $$left(t, 2) = '  '$$, $$left(t, 0) = ''$$, $$left(t, 2) = 'abc'$$, $$left(t, 2) = 'a very long constant'$$, $$left(t, 2) <> 'a very long constant'$$,
	$$left(t, 1) = NULL$$, $$left(t, 1) IS NULL$$, $$left(t, 1) IS NOT NULL$$, $$left(t, 1) IS DISTINCT FROM 'a'$$, $$left(t, 1) IS NOT DISTINCT FROM 'a'$$, $$NOT left(t, 1) = 'a'$$, $$left(t, 1) = 'a' OR d = 1$$, $$(left(t, 1) = 'a') IS UNKNOWN$$, $$CASE WHEN left(t, 1) = 'a' THEN d = 1 ELSE d = 2 END$$,
	$$left(t, 2) IN ('ap', 'ab', 'äö', 'nothing', '')$$, $$left(t, 2) NOT IN ('ap', 'ab')$$, $$left(t, 2) IN ('ap', NULL)$$, $$left(t, 2) NOT IN ('ap', NULL)$$, $$left(t, 2) = ANY ('{}')$$, $$left(t, 2) <> ALL ('{}')$$, $$left(t, 2) = ANY ('{ap,NULL}')$$, $$left(t, 2) IN ('too long for it', 'and this')$$,
	$$substring(v from 1 for 2) IN ('13', '31')$$, $$left(v, 3) = '13-'$$, $$left(v, 8) = '13-700'$$, $$left(v, 2)::varchar = '13'$$, $$left(dom, 2) = 'x1'$$,
	$$substring(c from 1 for 2) IN ('13', '31', '23', '29', '30', '18', '17')$$, $$substring(c from 1 for 2) = ''$$, $$substring(c from 1 for 2) = 'a'$$, $$substring(c from 1 for 2) = 'a '$$, $$substring(c::text from 4 for 3) = '005'$$, $$left(c, 8) = '13-003'$$, $$substring(c::varchar from 1 for 2) = '13'$$,
	$$left(ci, 2) = 'a '$$, $$left(t, 1) COLLATE "C" = 'a'$$, $$left(t COLLATE "und-x-icu", 1) = 'a'$$, $$left(t, 1) = left(v, 1)$$, $$left(t, 1) <> substr(t, 2, 1)$$,
	$$length(t) > 3$$, $$length(t) = 0$$, $$char_length(v) + d = 4$$, $$length(c) < 6$$, $$octet_length(c) = 15$$, $$octet_length(t) > length(t)$$, $$length(b) = 16$$, $$octet_length(b) IS NULL$$, $$character_length(c::text) = 1$$, $$length(dom) = 2$$]) cond;
SELECT * FROM asked();

-- Too many bytes for an integer: patterns are compared with constants; else PostgreSQL's plan answers.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[$$id FROM words WHERE left(t, 3) = 'abc'$$, $$id FROM words WHERE left(t, 8) = 'abcdefgh'$$, $$left(t, 3), count(*) FROM words WHERE id % 20 IN (0, 1) GROUP BY 1$$, $$id FROM words WHERE t LIKE 'abc%' AND left(t, 8) = 'abcdefgh'$$]) q;
SELECT * FROM asked();

-- Any characters compared with constants and parameters.
INSERT INTO queries (query) SELECT format('SELECT id FROM words WHERE %s', cond) FROM unnest(ARRAY[
	$$left(t, 9) = 'abcdefghi'$$, $$left(t, 9) = 'abcdefgh'$$, $$left(t, 3) = 'äöü'$$, $$left(t, 3) = 'äö'$$, $$left(t, 3) <> '日本語'$$, $$left(t, 3) = ''$$, $$left(t, 3) = '🐘🐘'$$, $$left(t, 4) = 'too long'$$, $$left(t, 3) = 'a%'$$, $$left(t, 3) IN ('app', 'äöü', '', '🐘a🐘')$$, $$left(t, 3) NOT IN ('app', 'äöü', NULL)$$,
	$$left(t, 3) IS NOT DISTINCT FROM '日本語'$$, $$left(t, 3) IS DISTINCT FROM '日本語'$$, $$left(t, 3) = NULL$$, $$left(t, -2) = 'app'$$, $$left(t, -2) = ''$$, $$left(t, -1) = 'äö'$$, $$left(t, -300) = ''$$, $$right(t, 1) = 'e'$$, $$right(t, 2) = '本語'$$, $$right(t, 3) = '🐘🐘'$$, $$right(t, 3) = ''$$, $$right(t, 0) = ''$$, $$right(t, 0) = 'a'$$, $$right(t, -1) = 'pple'$$, $$right(t, -2) = ''$$,
	$$substr(t, 2) = 'pple'$$, $$substr(t, 2) = ''$$, $$substr(t, 0) = 'äöü'$$, $$substring(t from 3) <> 'ü'$$, $$substr(t, 2, 3) = '本語'$$, $$substr(t, 3, 8) = ''$$, $$substr(t, -1, 5) = 'app'$$, $$substr(t, 200, 9) = 'longlongl'$$, $$right(c, 3) = '005'$$, $$right(c::text, 4) = '-005'$$, $$left(c, -1) = '13-00'$$, $$right(ci, 1) = ' '$$, $$right(v, 2)::varchar = '00'$$,
	$$left(lower(t), 4) = 'appl'$$, $$right(upper(t), 2) = 'LE'$$, $$substr(upper(t COLLATE "und-x-icu"), 2) = 'ÖÜ'$$, $$left(t, 3) = 'app' OR right(v, 3) = '700'$$, $$left(t, 3) = (SELECT 'app')$$, $$left(t, 3) IN ('1', '2', '3', '4', '5', '6', '7', '8', 'app') AND t < 'b'$$]) cond;
SELECT * FROM asked();
PREPARE begins(text) AS SELECT count(*) FROM words WHERE left(t, 3) = $1 OR right(v, 3) = $1;
SET plan_cache_mode = force_generic_plan;
SET gpuvm.require = vm;
EXECUTE begins('app');
EXECUTE begins('700');
EXECUTE begins('long');
EXECUTE begins(NULL);
RESET gpuvm.require;
RESET plan_cache_mode;

-- Keys and aggregates.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['left(t, 1), count(*) FROM words GROUP BY 1', 'left(t, 1), count(*) FROM words GROUP BY 1 HAVING left(t, 1) = ''a'' OR count(*) < 500', 'left(t, 2), d, count(*), sum(id) FROM words GROUP BY 1, 2', 'substring(c from 1 for 2) AS code, count(*), sum(d) FROM words GROUP BY code', 'DISTINCT left(t, 2) FROM words', 'DISTINCT left(v, 2), left(t, 1) FROM words',
	'left(v, 2)::varchar, count(*) FROM words GROUP BY 1', 'length(t), count(*) FROM words GROUP BY 1', 'length(c), octet_length(c), count(*) FROM words GROUP BY 1, 2', 'sum(length(t)), avg(octet_length(t)), min(length(b)), max(length(c)), count(left(t, 1)) FROM words', 'count(DISTINCT left(t, 2)) FROM words',
	'd, count(DISTINCT left(t, 2)), count(DISTINCT left(v, 1)) FROM words GROUP BY d', 'left(t, 1), count(DISTINCT left(v, 2)), count(DISTINCT d) FROM words GROUP BY 1', 'left(t, 1), left(v, 1), count(*) FROM words GROUP BY ROLLUP (1, 2)', 'left(t, 1), k, ci IS NULL, count(*) FROM words GROUP BY 1, 2, 3',
	'left(t, 1), count(*) FILTER (WHERE left(v, 2) = ''13''), sum(CASE WHEN left(c, 2) = ''13'' THEN d END) FROM words GROUP BY 1 HAVING count(*) > 5', 'left(t, 1) || ''!'', count(*) FROM words GROUP BY left(t, 1)', 'left(t, 1) = ''a'', count(*) FROM words GROUP BY 1', 'id, left(t, 3), length(v) FROM words WHERE left(t, 1) = ''a''']) q;
SELECT * FROM asked();
-- Their order is PostgreSQL's; what is ordered by texts is the CPU's.
SET gpuvm.device = cpu;
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['left(t, 1), count(*) FROM words GROUP BY 1 ORDER BY 1', 'left(t, 1), count(*) FROM words GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3', 'DISTINCT left(v, 2) FROM words ORDER BY 1']) q;
SELECT * FROM asked();
RESET gpuvm.device;
SET gpuvm.require = vm;
SELECT left(t, 1) AS begins, count(*) FROM words GROUP BY 1 ORDER BY left(t, 1) COLLATE "C";
SELECT comment FROM gpuvm.disassemble('SELECT count(*) FROM words WHERE substring(c from 1 for 2) = ''13''') WHERE opcode = 'TextPart';
RESET gpuvm.require;

-- Joins.
CREATE TABLE orders (id int NOT NULL, word int, note text, phone char(12)) WITH (autovacuum_enabled = off);
INSERT INTO orders SELECT i, i * 3 % 9000, CASE WHEN i % 6 > 0 THEN 'ä' || i END, (10 + i % 40) || '-x' FROM generate_series(1, 500) i;
SELECT vary('orders', 'note', 'phone');
SELECT gpuvm.import('orders');
CREATE TABLE codes (name text, n int) WITH (autovacuum_enabled = off);
INSERT INTO codes SELECT (10 + i)::text, i FROM generate_series(1, 20) i;
SELECT gpuvm.import('codes');
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['o.id, w.id FROM orders o JOIN words w ON w.id = o.word WHERE left(w.t, 1) = ''a''', 'o.id, w.id FROM orders o JOIN words w ON left(w.c, 2) = left(o.phone, 2) AND w.d = 1 AND o.id < 50', 'count(*) FROM orders o JOIN words w ON left(w.c, 2) = left(o.phone, 2)',
	'left(w.t, 1), left(o.note, 2), count(*) FROM orders o LEFT JOIN words w ON w.id = o.word AND left(w.v, 2) = ''13'' GROUP BY 1, 2', 'o.id FROM orders o WHERE EXISTS (SELECT 1 FROM words w WHERE w.id = o.word AND left(w.t, 1) = ''a'')', 'o.id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM words w WHERE w.id = o.word AND left(w.t, 1) = ''a'')',
	'o.id, w.id FROM orders o FULL JOIN words w ON w.id = o.word WHERE left(w.t, 1) = ''a'' OR length(o.note) = 3', 'o.id, w.id FROM orders o JOIN words w ON o.id < 20 AND w.id < 100 AND left(w.c, 2) < left(o.phone, 2)', 'o.id, w.id FROM orders o JOIN words w ON o.id < 20 AND w.id < 100 AND (left(w.c, 2) <> left(o.phone, 2) OR length(w.t) > o.id)',
	'count(*) FROM orders o JOIN words w ON length(w.t) = length(o.note)', 'left(w.t, 1), left(w.t, 2), substr(w.t, 2, 1), length(w.t), count(*) FROM orders o JOIN words w ON w.id = o.word GROUP BY 1, 2, 3, 4', 'count(*) FROM words a JOIN words b ON left(a.t, 2) = left(b.v, 2) AND a.id < 500', 'count(*) FROM words w JOIN codes c ON left(w.c, 2) = c.name', 'n, count(*) FROM codes JOIN (SELECT left(c, 2) AS code FROM words GROUP BY 1) s ON s.code = codes.name GROUP BY n',
	's.id FROM (SELECT id, t, c FROM words WHERE d = 1 OFFSET 0) s JOIN orders o ON left(s.c, 2) = left(o.phone, 2) AND o.id < 9']) q;
SELECT * FROM asked();
-- The subquery's keys are whole values.
INSERT INTO queries (query) VALUES ('SELECT left(s.c, 2), count(*), sum(length(s.c)) FROM (SELECT c, count(*) AS n FROM words GROUP BY c OFFSET 0) s GROUP BY 1');
SELECT * FROM asked();

-- TPC-H's Q22.
CREATE TABLE customer (c_custkey int NOT NULL, c_phone char(15), c_acctbal numeric(15,2)) WITH (autovacuum_enabled = off);
INSERT INTO customer SELECT i, (10 + i % 25) || '-' || lpad((i % 1000)::text, 3, '0') || '-' || lpad((i * 79 % 1000)::text, 3, '0') || '-' || lpad(i::text, 4, '0'), (i * 7919 % 1100000)::numeric / 100 - 999 FROM generate_series(1, 6000) i;
SELECT vary('customer', 'c_phone');
SELECT gpuvm.import('customer');
SET gpuvm.require = vm;
SET gpuvm.device = cpu;
EXPLAIN (COSTS OFF)
SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal FROM (SELECT substring(c_phone from 1 for 2) AS cntrycode, c_acctbal FROM customer
	WHERE substring(c_phone from 1 for 2) IN ('13', '31', '23', '29', '30', '18', '17') AND c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0.00 AND substring(c_phone from 1 for 2) IN ('13', '31', '23', '29', '30', '18', '17'))
	AND NOT EXISTS (SELECT * FROM orders WHERE word = c_custkey)) AS custsale GROUP BY cntrycode ORDER BY cntrycode;
RESET gpuvm.device;
SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal FROM (SELECT substring(c_phone from 1 for 2) AS cntrycode, c_acctbal FROM customer
	WHERE substring(c_phone from 1 for 2) IN ('13', '31', '23', '29', '30', '18', '17') AND c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0.00 AND substring(c_phone from 1 for 2) IN ('13', '31', '23', '29', '30', '18', '17'))
	AND NOT EXISTS (SELECT * FROM orders WHERE word = c_custkey)) AS custsale GROUP BY cntrycode ORDER BY cntrycode;
SET gpuvm.enabled = off;
SET gpuvm.require = 'any';
SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal FROM (SELECT substring(c_phone from 1 for 2) AS cntrycode, c_acctbal FROM customer
	WHERE substring(c_phone from 1 for 2) IN ('13', '31', '23', '29', '30', '18', '17') AND c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0.00 AND substring(c_phone from 1 for 2) IN ('13', '31', '23', '29', '30', '18', '17'))
	AND NOT EXISTS (SELECT * FROM orders WHERE word = c_custkey)) AS custsale GROUP BY cntrycode ORDER BY cntrycode;
RESET gpuvm.enabled;

-- Long values, and what was out of line; rows that changed.
CREATE TABLE long (id int, t text, e text) WITH (autovacuum_enabled = off);
ALTER TABLE long ALTER e SET STORAGE EXTERNAL;
INSERT INTO long SELECT i, CASE WHEN i % 10 > 0 THEN repeat(md5((i % 40)::text), i % 400) END, repeat(chr(200 + i % 26), i * 37 % 5000) FROM generate_series(1, 1500) i;
SELECT vary('long', 't', 'e');
SELECT gpuvm.import('long');
UPDATE long SET t = 'ä' || t, e = NULL WHERE id % 100 = 3;
INSERT INTO long SELECT i, 'zz' || i, repeat('ü', 3000) FROM generate_series(3000, 3100) i;
DELETE FROM long WHERE id % 70 = 5;
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['left(t, 2), left(e, 1), count(*) FROM long GROUP BY 1, 2', 'id FROM long WHERE left(t, 2) IN (''zz'', ''äc'')', 'sum(length(t)), sum(length(e)), sum(octet_length(e)), count(DISTINCT length(t)) FROM long', 'id FROM long WHERE substr(e, 2000, 1) = ''ü''']) q;
SELECT * FROM asked();

-- Partitions.
CREATE TABLE parts (id int, t text) PARTITION BY RANGE (id);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts2 (gone int, id int, t text);
ALTER TABLE parts2 DROP gone;
ALTER TABLE parts ATTACH PARTITION parts2 FOR VALUES FROM (1000) TO (2000);
INSERT INTO parts SELECT i, CASE WHEN i % 9 > 0 THEN i % 60 || ' part' END FROM generate_series(0, 1999) i;
SELECT vary('parts1', 't'), vary('parts2', 't');
SELECT gpuvm.import('parts1'), gpuvm.import('parts2');
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['left(t, 2), count(*) FROM parts GROUP BY 1', 'id FROM parts WHERE left(t, 2) IN (''13'', ''7 '')']) q;
SELECT * FROM asked();

-- What stays with PostgreSQL, and why.
CREATE COLLATION unsure (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['id FROM words WHERE left(t, d) = ''a''', 'id FROM words WHERE substr(t, 300) = ''a''', 'id FROM words WHERE left(t, 1) < ''b''', 'min(left(t, 1)) FROM words',
	'id FROM words WHERE left(t, 1) = ''a'' COLLATE unsure', 'left(t COLLATE unsure, 1), count(*) FROM words GROUP BY 1', 'id FROM words WHERE left(t, 1) = k', 'id FROM words WHERE left(t, 1) = t', 'id FROM words WHERE upper(left(t, 1)) = ''A''', 'id FROM words WHERE left(t, 1) LIKE ''a''', 'id FROM words WHERE coalesce(left(t, 1), ''a'') = ''a''', 'id FROM words WHERE left(t, 1) IN (''a'', k)', 'id FROM words WHERE left(t, 1) COLLATE unsure IN (''a'', ''b'')', 'id FROM words WHERE left(t, 2)::bpchar IN (''a'', '' '')', 'id FROM words WHERE left(t, 2)::bpchar = '' ''', 'id FROM words WHERE left(t, 1) = ALL (''{a,b}'')',
	'id FROM words WHERE substring(b from 1 for 2) = ''\xc4ca''', 'left(t, 9), count(*) FROM words GROUP BY 1']) q;
SELECT * FROM asked();
-- bytea that is called text, and what is compared with text that is called bytea, may have any bytes.
CREATE CAST (bytea AS text) WITHOUT FUNCTION;
CREATE CAST (text AS bytea) WITHOUT FUNCTION;
CREATE TABLE raw (id int, b bytea) WITH (autovacuum_enabled = off);
INSERT INTO raw SELECT i, convert_to((ARRAY['éa', '日本', 'ab', 'z'])[1 + i % 4], 'UTF8') FROM generate_series(1, 100) i;
SELECT vary('raw', 'b');
SELECT gpuvm.import('raw');
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['left(b::text, 1), count(*) FROM raw GROUP BY 1', 'id FROM raw WHERE left(b::text, 1) = ''é''', 'id FROM raw WHERE length(b::text) = 2', 'id FROM raw WHERE octet_length(b::text) = 3',
	'count(*) FROM words WHERE left(t, 1)::bytea = ''\x0061''', 'count(*) FROM words WHERE left(t, 1)::bytea = ''\x61''', 'id FROM words WHERE left(t, 1)::bytea <> ''\x00''',
	'id FROM words WHERE left(t, 3) = ''\xc3''::bytea::text', 'id FROM words WHERE right(t, 3) <> ''\xe697''::bytea::text', 'id FROM words WHERE lower(t) = ''\x6162c3''::bytea::text', 'id FROM words WHERE t ~ ''\xc3''::bytea::text', 'id FROM words WHERE lower(t)::bytea LIKE ''_''', 'id FROM words WHERE c::text::bytea LIKE ''\x5f''::bytea', 'id FROM words WHERE lower(t)::bytea = ''\x6162''']) q;
SELECT * FROM asked();
DROP CAST (bytea AS text);
DROP CAST (text AS bytea);

DROP SCHEMA packed_text CASCADE;
