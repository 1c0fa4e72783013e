-- Values that no dictionary holds compared with <, <=, >, >= and BETWEEN, under collations of the C library and of ICU. Against PostgreSQL's answers.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA text_compare;
SET search_path = text_compare;
SET gpuvm.force = on;
-- Devices leave what is compared by a locale to the CPU.
SET gpuvm.device = cpu;

\set ECHO none
\i tests/sql/include/ask_many.sql
\i tests/sql/include/vary.sql
\set ECHO all

-- Where bytes, the C library and ICU differ: capitals, accents in two forms, digits, signs, blanks; and common beginnings, long values, empty ones, nulls.
CREATE COLLATION digits (provider = icu, locale = 'de-u-kn-true');
CREATE COLLATION plain_utf8 (provider = libc, locale = 'C.UTF-8');
CREATE COLLATION unsure (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE t (id int, d int, a text, c text COLLATE "C", p varchar COLLATE "POSIX", l text COLLATE plain_utf8, i text COLLATE "en-x-icu", g text COLLATE digits, b char(30) COLLATE "en-x-icu", r bpchar, y bytea, u uuid, n name, o text, w text COLLATE unsure) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 40, v, v, v, v, v, v, left(v, 30), left(v, 20) || repeat(' ', i % 3), convert_to(v, 'UTF8') || CASE i % 3 WHEN 0 THEN '\x00'::bytea WHEN 1 THEN '\x0000ff' ELSE '' END, md5((i % 2500)::text)::uuid, left(v, 20), CASE WHEN i % 3 = 0 THEN v ELSE v || i % 7 END, v
	FROM (SELECT i, CASE WHEN i % 23 = 0 THEN NULL WHEN i % 29 = 0 THEN '' ELSE (ARRAY['https://example.org/a/common/path/', 'Straße ', 'strasse', 'é', 'e' || chr(769), 'E', 'e', 'a b', 'A-B', 'ab', ' ', '_', chr(65536 + i % 9), '€', 'ch', 'cz'])[1 + i % 16] ||
		CASE i % 4 WHEN 0 THEN (i * 7919 % 3000)::text WHEN 1 THEN chr(192 + i % 250) || i % 100 WHEN 2 THEN ' ' || i % 1000 ELSE repeat('x', i % 300) END END AS v FROM generate_series(1, 6000) i) x;
SELECT vary('t', 'a', 'c', 'p', 'l', 'i', 'g', 'b', 'r', 'y', 'u', 'n', 'o', 'w');
SELECT gpuvm.import('t');

-- Every type and collation, every comparison, either way round.
INSERT INTO queries (query) SELECT format('SELECT id FROM t WHERE %s %s %L', col, op, x) FROM unnest(ARRAY['a', 'c', 'p', 'l', 'i', 'g', 'b', 'r', 'n']) col, unnest(ARRAY['<', '<=', '>', '>=']) op,
	unnest(ARRAY['', 'Straße ', 'e' || chr(769), 'cz  ', 'https://example.org/a/common/path/5', 'a b10', repeat('x', 3000)]) x;
INSERT INTO queries (query) SELECT format('SELECT id FROM t WHERE %s %s %L', col, op, x) FROM unnest(ARRAY['<', '<=', '>', '>=']) op, (VALUES ('y', '\x'), ('y', '\x6500'), ('y', '\x65'), ('y', '\xffff'), ('u', '80000000-0000-0000-0000-000000000000'), ('u', md5('77')::uuid::text)) v (col, x);
INSERT INTO queries (query) SELECT format('SELECT count(*) FROM t WHERE %L %s %s', 'e1', op, col) FROM unnest(ARRAY['a', 'i', 'g', 'b', 'n', 'c']) col, unnest(ARRAY['<', '<=', '>', '>=']) op;
SELECT * FROM asked();
-- Anywhere a condition stands; names beside texts, char(n) as text, other collations, other operators.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[$$id FROM t WHERE a BETWEEN 'b' AND 'é'$$, $$id FROM t WHERE i NOT BETWEEN 'b' AND 'é'$$, $$id FROM t WHERE c BETWEEN SYMMETRIC 'é' AND 'b'$$, $$id FROM t WHERE a < 'b' OR g > 'st' AND d < 20$$, $$id FROM t WHERE (i < 'b') IS NOT TRUE$$, $$id FROM t WHERE a > NULL$$, $$id FROM t WHERE NOT (i >= 'c')$$,
	$$d, count(*) FILTER (WHERE i < 'f'), sum(CASE WHEN g >= 'a b10' THEN id ELSE 0 END) FROM t GROUP BY d$$, $$i < 'f', count(*) FROM t GROUP BY 1$$, $$d, max(id) FROM t GROUP BY d HAVING count(*) FILTER (WHERE c < 'a') > 50$$, $$id, i < 'f', c < 'f' FROM t WHERE d = 3$$, $$x.id, y.id FROM t x JOIN t y ON x.u = y.u AND x.i < 'b' AND y.g > 'b' WHERE x.d = 3$$, $$x.id, y.id FROM t x LEFT JOIN t y ON x.id = y.id AND y.i > 'f' WHERE x.d = 1$$,
	$$id FROM t WHERE n < 'e'::name$$, $$id FROM t WHERE n >= 'e'::text$$, $$id FROM t WHERE c > 'e'::name$$, $$id FROM t WHERE n = 'ab 9'$$, $$id FROM t WHERE n <> 'ab 9'::text$$, $$id FROM t WHERE n COLLATE "en-x-icu" < 'e'$$, $$id FROM t WHERE b::text < 'ch '$$, $$id FROM t WHERE r::text > 'cz'$$, $$id FROM t WHERE b::text::bpchar < '  '$$, $$id FROM t WHERE r::text::bpchar > ' '$$, $$id FROM t WHERE a COLLATE "C" < 'e'$$, $$id FROM t WHERE c COLLATE digits < 'a b10'$$, $$id FROM t WHERE p::text COLLATE "en-x-icu" <= 'E'$$,
	$$id FROM t WHERE a ~<~ 'e'$$, $$id FROM t WHERE i ~>=~ 'e'$$, $$id FROM t WHERE b ~<=~ 'e'$$, $$id FROM t WHERE r ~>~ 'e'$$, $$id FROM t WHERE i < ANY (ARRAY['b', 'a', NULL])$$, $$id FROM t WHERE i > ALL (ARRAY['b', 'E'])$$, $$id FROM t WHERE w ~<~ 'e'$$]) q;
SELECT * FROM asked();
-- With each other.
INSERT INTO queries (query) SELECT format('SELECT id FROM t WHERE %s', cond) FROM unnest(ARRAY['a < o', 'a <= o', 'o > a', 'o >= a', 'a >= o', 'a COLLATE "en-x-icu" < o', 'o COLLATE "C" > a', 'c < p COLLATE "C"', 'c COLLATE digits < p', 'a::varchar > o', 'b COLLATE "en-x-icu" < r', 'b::text >= c COLLATE "C"', 'b COLLATE "C" > r', 'r <= b COLLATE digits', 'y < y', 'u <= u', 'n < n', 'i COLLATE digits > g',
	'(a < o) IS NULL', 'CASE WHEN a < o THEN d = 1 ELSE d = 2 END', 'a < o AND o < ''f''', 'a BETWEEN o AND p COLLATE "C"']) cond;
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[$$d, count(*) FILTER (WHERE a < o), count(*) FILTER (WHERE a COLLATE "C" >= o) FROM t GROUP BY d$$, $$a < o, count(*) FROM t GROUP BY 1$$, $$x.id, y.id FROM t x JOIN t y ON x.u = y.u AND x.i < y.i WHERE x.d = 3$$, $$x.id, y.id FROM t x LEFT JOIN t y ON x.u = y.u AND x.y > y.y WHERE x.d = 4$$, $$x.id FROM t x WHERE x.d = 5 AND EXISTS (SELECT FROM t y WHERE y.d = x.d AND y.g < x.g AND y.id <> x.id)$$,
	$$count(*) FROM t x, t y WHERE x.d = 3 AND y.d = 4 AND x.i < y.i$$, $$count(*) FROM t x, t y WHERE x.d = 3 AND y.d = 4 AND x.c >= y.p COLLATE "C"$$]) q;
SELECT * FROM asked();

-- bytea as text by a cast that costs nothing: what a collation makes of its zeroes is PostgreSQL's.
CREATE CAST (bytea AS text) WITHOUT FUNCTION;
INSERT INTO queries (query) SELECT format('SELECT id FROM t WHERE %s', cond) FROM unnest(ARRAY['y::text COLLATE "en-x-icu" < ''E1''', 'y::text COLLATE "en-x-icu" >= a', 'y::text COLLATE digits > o', 'y::text COLLATE "C" <= ''E1''']) cond;
SELECT * FROM asked();
DROP CAST (bytea AS text);

-- Parameters, in a plan that is kept: values, null, a subquery's.
CREATE FUNCTION asked_with(query text, VARIADIC params text[]) RETURNS TABLE (param text, answer text) LANGUAGE plpgsql AS $$
DECLARE
	p text;
	theirs text;
	mine text;
BEGIN
	EXECUTE 'PREPARE asked_with(text) AS ' || query;
	SET LOCAL plan_cache_mode = force_generic_plan;
	FOREACH p IN ARRAY params LOOP
		SET LOCAL gpuvm.enabled = off;
		EXECUTE format('EXECUTE asked_with(%L)', p) INTO theirs;
		SET LOCAL gpuvm.enabled = on;
		SET LOCAL gpuvm.require = cpu;
		EXECUTE format('EXECUTE asked_with(%L)', p) INTO mine;
		PERFORM set_config('gpuvm.require', 'any', true);
		RETURN QUERY SELECT left(p, 20), CASE WHEN mine = theirs THEN mine ELSE format('the answers differ: %s, but %s', theirs, mine) END;
	END LOOP;
	DEALLOCATE asked_with;
END $$;
SELECT * FROM asked_with('SELECT count(*) || '' '' || coalesce(sum(id), 0) FROM t WHERE c < $1', 'e', 'Straße', NULL, '', 'zz', repeat('x', 300));
SELECT * FROM asked_with('SELECT count(*) || '' '' || coalesce(sum(id), 0) FROM t WHERE n BETWEEN ''A'' AND $1::name', 'e', NULL, '', 'zz');
INSERT INTO queries (query) VALUES ('SELECT id FROM t WHERE c > (SELECT max(v) FROM (VALUES (''b''), (''cz1'')) v (v))'), ('SELECT id FROM t WHERE a COLLATE "en-x-icu" < (SELECT NULL::text)');
SELECT * FROM asked();

-- What changed since: values of a delta are in the job's memory. Then all again in tablets.
UPDATE t SET a = a || '!', i = upper(i), g = '7' || g WHERE id % 300 = 3;
INSERT INTO t (id, d, a, c, i, g, b, o, n) SELECT 20000 + i, i % 9, v, v, v, v, v, reverse(v), v FROM (SELECT i, chr(40 + i % 90) || i v FROM generate_series(1, 500) i) x;
DELETE FROM t WHERE id % 500 = 5;
\set changed 'INSERT INTO queries (query) SELECT ''SELECT id FROM t WHERE '' || q FROM unnest(ARRAY[''a < ''''E1'''''', ''i >= ''''E1'''''', ''g < ''''7e'''''', ''c BETWEEN ''''5'''' AND ''''e'''''', ''a < o'', ''o COLLATE digits > a'', ''b <= ''''ab'''''', ''n > ''''b'''''']) q;'
:changed
SELECT * FROM asked();
SELECT gpuvm.refresh('t') \g /dev/null
:changed
SELECT * FROM asked();

-- Long values, which differ at the end.
CREATE TABLE long (id int, c text COLLATE "C", i text COLLATE "en-x-icu", y bytea, o text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO long SELECT i, v, v, v::bytea, CASE WHEN i % 2 = 0 THEN v || 'x' ELSE left(v, -1) || 'x' END FROM (SELECT i, CASE WHEN i % 50 = 0 THEN repeat('long ', 200000) ELSE repeat('a', i % 1100) END || i * 31 % 100 AS v FROM generate_series(1, 200) i) x;
SELECT vary('long', 'c', 'i', 'y', 'o');
SELECT gpuvm.import('long');
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['id FROM long WHERE c < ''long long''', 'id FROM long WHERE i >= ''long long''', 'id FROM long WHERE y > repeat(''a'', 500)::bytea', 'id FROM long WHERE c < o', 'id FROM long WHERE i COLLATE digits > o']) q;
SELECT * FROM asked();
-- What stays with PostgreSQL, and why.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['id FROM t WHERE w < ''e''', 'id FROM t WHERE a COLLATE unsure < o', 'id FROM t WHERE lower(a) < ''e''', 'id FROM t WHERE a::bpchar < o::bpchar', 'id FROM t WHERE c::bpchar ~>=~ o::bpchar', 'id FROM t WHERE b::text <= r::text', 'id FROM long WHERE c < repeat(''a'', 5000)']) q;
SELECT * FROM asked();
-- Bytes are compared by any device, a collation by the CPU.
RESET gpuvm.device;
INSERT INTO queries (query) SELECT format('SELECT id FROM t WHERE %s', cond) FROM unnest(ARRAY['c < ''e''', 'p >= ''Straße''', 'l > ''e''', 'y <= ''\x6500''', 'u < ''80000000-0000-0000-0000-000000000000''', 'n BETWEEN ''A'' AND ''e''', 'a COLLATE "C" < o', 'y < y', 'u >= u', 'r::text <= b COLLATE "C"', 'n < n']) cond;
SELECT * FROM asked();

DROP SCHEMA text_compare CASCADE;
