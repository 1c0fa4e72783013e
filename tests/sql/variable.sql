-- Columns of values that no dictionary holds: in the output, tested for null, and compared with patterns. Against PostgreSQL's answers.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA variable;
SET search_path = variable;
SET gpuvm.force = on;
SET timezone = 'UTC';

\set ECHO none
\i tests/sql/include/ask_many.sql
\i tests/sql/include/vary.sql
\set ECHO all

CREATE TYPE pair AS (a int, b text);
CREATE TABLE words (id int, t text, v varchar(12), c char(6), b bytea, u uuid, k text, d int, ci text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO words SELECT i,
	CASE WHEN i % 13 = 0 THEN NULL ELSE (ARRAY['apple', 'Apple', 'APPLE', '', ' ', 'banana', 'Banana split', 'ß', 'straße', 'ä', 'Ä', 'a%b', 'a_b', 'a\b', 'zebra',
		'42', '-7', 'naïve', E'tab\there', E'two\nlines', '日本語', 'éa', 'eb', 'e' || chr(769) || 'a', 'apple  ', repeat('long', 300) || 'er', 'special requests sleep', 'a special case of requests'])[1 + i * 5 % 28] END,
	nullif((ARRAY['x', 'X', 'xy ', '', 'café', 'abc'])[1 + i % 6], 'abc'), (ARRAY['a', 'ab', 'abc', '', 'a b', NULL])[1 + i % 6],
	CASE WHEN i % 7 > 0 THEN decode(md5((i % 50)::text), 'hex') END, CASE WHEN i % 9 > 0 THEN md5((i % 60)::text)::uuid END, 'k' || i % 5, i % 4, (ARRAY['a', 'B', 'b'])[1 + i % 3]
	FROM generate_series(1, 12000) i;
SELECT vary('words', 't', 'v', 'c', 'b', 'u', 'ci');
SELECT gpuvm.import('words');

-- Rows and nulls.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['id, t FROM words', '* FROM words', 't FROM words', 't, v, c, b, u FROM words WHERE d = 2', 'id, upper(t), length(c), b || ''\x00'' FROM words WHERE id < 2000', 'id FROM words WHERE t IS NULL', 'id, t FROM words WHERE t IS NOT NULL AND d = 1',
	'count(*), count(t), count(v), count(c), count(b), count(u) FROM words', 'd, count(t) FROM words GROUP BY d', 'k, count(u) FILTER (WHERE t IS NULL) FROM words GROUP BY k', 'count(*) FROM words WHERE (t IS NULL) = (d > 1)', 'id, t FROM words WHERE d = 3 AND id % 100 = 7',
	'id, t FROM words WHERE id > 11990', 'v, ci FROM words WHERE false', 'id, coalesce(t, ''none'') FROM words WHERE d = 1', 'count(*) FROM words WHERE num_nulls(1) = 0 AND t IS NULL']) q;
SELECT * FROM asked();
-- Comparisons.
INSERT INTO queries (query) SELECT format('SELECT id, t FROM words WHERE %s', cond) FROM unnest(ARRAY[
	$$t = 'apple'$$, $$'apple' = t$$, $$t <> 'apple'$$, $$t = ''$$, $$t = 'not there'$$, $$t <> 'not there'$$, $$t = NULL$$, $$NOT t = 'apple'$$, $$t IS DISTINCT FROM 'apple'$$, $$t IS NOT DISTINCT FROM 'apple'$$, $$t IS NOT DISTINCT FROM NULL$$,
	$$t IN ('apple', 'zebra', 'nothing')$$, $$t NOT IN ('apple', 'zebra')$$, $$t NOT IN ('apple', NULL)$$, $$t IN ('apple', NULL)$$, $$t = ANY ('{apple,NULL,42}')$$, $$t <> ALL ('{apple,42}')$$, $$t = ANY ('{}')$$,
	$$t LIKE 'a%'$$, $$t LIKE '%a%'$$, $$t LIKE 'a_p%'$$, $$t NOT LIKE '%e'$$, $$t LIKE 'a\%b'$$, $$t LIKE 'a\\b'$$, $$t LIKE 'a!_b' ESCAPE '!'$$, $$t LIKE 'a%b' ESCAPE ''$$, $$t LIKE ''$$, $$t LIKE '%'$$, $$t LIKE '_'$$, $$t LIKE '___'$$, $$t LIKE '%%'$$, $$t LIKE '_%'$$, $$t LIKE '%_'$$,
	$$t LIKE '%special%requests%'$$, $$t NOT LIKE '%special%requests%'$$, $$t LIKE '%long%long%er'$$, $$t LIKE '%ß%'$$, $$t LIKE 'stra_e'$$, $$t LIKE '日_語'$$, $$t LIKE '%語'$$, $$t LIKE '_́%'$$, $$t LIKE E'%\n%'$$, $$t LIKE E'%\t%'$$, $$t LIKE '%  '$$, $$t LIKE '% %'$$, $$t LIKE '%e_%_e%'$$,
	$$starts_with(t, 'A')$$, $$t ^@ 'app'$$, $$t ^@ ''$$, $$t ^@ 'apple and more'$$, $$NOT starts_with(t, 'a')$$, $$v = 'x'$$, $$v = 'xy '$$, $$v <> 'xy'$$, $$v LIKE '%é'$$, $$v IN ('x', 'café')$$, $$v LIKE 'x_'$$,
	$$c = 'a'$$, $$c = 'a     '$$, $$c = 'a       '$$, $$c <> 'ab'$$, $$c LIKE 'a%'$$, $$c LIKE 'a'$$, $$c LIKE 'a     '$$, $$c IN ('a', 'abc ')$$, $$c = ''$$, $$c NOT IN ('a', 'ab')$$, $$v::bpchar = 'xy'$$, $$v::bpchar = 'xy  '$$,
	$$b = '\xc4ca4238a0b923820dcc509a6f75849b'$$, $$b <> ''$$, $$b LIKE '\xc4%'::bytea$$, $$b LIKE '%\\x84%'::bytea$$, $$u = 'c4ca4238-a0b9-2382-0dcc-509a6f75849b'$$, $$u <> 'c4ca4238-a0b9-2382-0dcc-509a6f75849b'$$, $$u IN ('c4ca4238-a0b9-2382-0dcc-509a6f75849b', 'c81e728d-9d4c-2f63-6f06-7f89cc14862c')$$,
	$$t IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', 'apple', 'eb', 'zebra', 'ß', '42', '-7', 'ä', 'Ä', '')$$, $$ci = 'a'$$, $$ci LIKE 'b'$$, $$t COLLATE "C" = 'apple'$$, $$t COLLATE "und-x-icu" LIKE 'a%'$$]) cond;
SELECT * FROM asked();
-- Within other expressions, and beside columns of other forms.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[$$id FROM words WHERE t LIKE 'a%' OR d = 3$$, $$id FROM words WHERE t LIKE 'a%' AND v = 'x'$$, $$id FROM words WHERE NOT (t LIKE 'a%' AND d = 3)$$, $$id FROM words WHERE t LIKE 'a%' AND t LIKE '%e' AND t <> 'apple'$$,
	$$id FROM words WHERE t = 'apple' OR t LIKE 'b%' OR t IS NULL$$, $$id FROM words WHERE CASE WHEN t LIKE 'a%' THEN d = 1 WHEN t IS NULL THEN d = 2 ELSE v = 'x' END$$, $$id FROM words WHERE CASE t WHEN 'apple' THEN true WHEN 'zebra' THEN false END$$, $$id FROM words WHERE (t LIKE 'a%') = (d > 1)$$,
	$$id FROM words WHERE (t LIKE '%a%') IS UNKNOWN$$, $$id FROM words WHERE (t = 'apple') IS NOT TRUE$$, $$id FROM words WHERE coalesce(t = 'apple', true)$$, $$id FROM words WHERE k LIKE '%3' AND t LIKE '%a%'$$, $$k, count(*) FROM words WHERE t LIKE '%a%' GROUP BY k$$,
	$$k, count(*) FILTER (WHERE t LIKE 'a%'), sum(id) FILTER (WHERE t IS NULL), sum(CASE WHEN v = 'x' THEN d ELSE 0 END), bool_or(u IS NULL) FROM words GROUP BY k$$, $$t LIKE 'a%', count(*) FROM words GROUP BY 1$$, $$t = 'apple', v IS NULL, count(*), min(id) FROM words GROUP BY 1, 2$$,
	$$count(nullif(t LIKE 'a%', false)) FROM words$$, $$id, d FROM words WHERE 100 / nullif(d, 0) > 1 AND t LIKE 'a%'$$, $$sum(100 / d) FROM words WHERE d > 0 AND t LIKE 'a%'$$, $$sum(CASE WHEN t LIKE 'a%' AND d > 0 THEN 100 / d END) FROM words$$, $$count(*) FROM (SELECT DISTINCT k, t LIKE 'a%' FROM words) s$$,
	$$k, count(DISTINCT d) FILTER (WHERE t LIKE 'a%'), count(t), sum(DISTINCT id % 7) FILTER (WHERE u IS NULL) FROM words GROUP BY k$$, $$count(DISTINCT t LIKE 'a%'), count(DISTINCT k) FROM words WHERE v <> 'x'$$, $$k, d, count(t), count(*) FILTER (WHERE t LIKE '%e') FROM words WHERE c LIKE 'a%' GROUP BY ROLLUP (k, d)$$]) q;
SELECT * FROM asked();

-- Parameters: null, several, of a subquery, and what PostgreSQL raises at.
CREATE FUNCTION asked_with(query text, VARIADIC params text[]) RETURNS TABLE (param text, equal bool, answer text) LANGUAGE plpgsql AS $$
DECLARE
	p text;
	theirs text;
BEGIN
	EXECUTE 'PREPARE asked_with(text) AS ' || query;
	SET LOCAL plan_cache_mode = force_generic_plan;
	FOREACH p IN ARRAY params LOOP
		SET LOCAL gpuvm.enabled = off;
		EXECUTE format('EXECUTE asked_with(%L)', p) INTO theirs;
		SET LOCAL gpuvm.enabled = on;
		PERFORM set_config('gpuvm.require', replace(current_setting('gpuvm.device'), 'auto', 'vm'), true);
		EXECUTE format('EXECUTE asked_with(%L)', p) INTO answer;
		SET LOCAL gpuvm.require = 'any';
		param := coalesce(p, 'NULL');
		equal := answer IS NOT DISTINCT FROM theirs;
		RETURN NEXT;
	END LOOP;
	DEALLOCATE asked_with;
END $$;
SELECT * FROM asked_with('SELECT count(*) FROM words WHERE t LIKE $1', 'a%', '%e', NULL, '', '%special%requests%', 'a\%b');
SELECT * FROM asked_with('SELECT count(*) FROM words WHERE t NOT LIKE $1 || ''%''', 'a', NULL, '');
SELECT * FROM asked_with('SELECT count(*) FROM words WHERE t = $1 OR v = $1', 'x', NULL, 'apple', '');
SELECT * FROM asked_with('SELECT count(*) FROM words WHERE t <> $1', 'x', NULL, 'apple');
SELECT * FROM asked_with('SELECT count(*) FROM words WHERE t IN ($1, ''zebra'', upper($1))', 'apple', NULL);
SELECT * FROM asked_with('SELECT count(*) FROM words WHERE c = $1::bpchar', 'ab', 'ab   ', NULL, 'abcdefghi');
SELECT * FROM asked_with('SELECT count(*) FROM words WHERE starts_with(t, $1) IS NOT TRUE', 'a', NULL);
INSERT INTO queries (query) SELECT 'SELECT id FROM words WHERE ' || q FROM unnest(ARRAY[$$t = (SELECT max(k) FROM words w WHERE false)$$, $$t = (SELECT 'app' || min(s) FROM unnest('{le,x}'::text[]) s)$$, $$t LIKE (SELECT '%e')$$, $$t = current_setting('search_path')$$, $$t = repeat('long', 300) || 'er'$$,
	$$t = repeat('x', 5000)$$, $$t LIKE repeat('x', 5000)$$]) q;
SELECT * FROM asked();
PREPARE escaped(text) AS SELECT count(*) FROM words WHERE t LIKE $1;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE escaped(repeat('x', 5000));
EXECUTE escaped('apple\');
SELECT id FROM words WHERE t LIKE 'apple\';
EXECUTE escaped('ap\');
RESET plan_cache_mode;

INSERT INTO queries (query) SELECT 'SELECT id FROM words WHERE ' || q FROM unnest(ARRAY[$$t LIKE 'a%' AND d = 1 AND u IS NOT NULL$$, $$t LIKE 'a%' AND 100 / (d + 1) > 0 AND d > 0$$, $$d > 0 AND t LIKE 'a%' AND 100 / d > 30$$]) q;
SELECT * FROM asked();

-- What stays with PostgreSQL, and why.
CREATE COLLATION unsure (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['id FROM words WHERE t < ''b''', 'id FROM words WHERE upper(t) = ''APPLE''',
	'id FROM words WHERE length(t) > 3', 'id FROM words WHERE t = k', 'id FROM words WHERE t ~ ''^a''', 'id FROM words WHERE t ILIKE ''A%''', 'id FROM words WHERE t || ''x'' = ''applex''', 'id FROM words WHERE ''apple'' LIKE t', 'id FROM words WHERE u > ''c4ca4238-a0b9-2382-0dcc-509a6f75849b''',
	'id FROM words WHERE t = ''apple'' COLLATE unsure', 'id FROM words WHERE t = random()::text', 'count(*) FROM words a JOIN words b ON a.t = b.k', 'count(*) FROM words a JOIN words b ON a.id = b.id AND a.t < b.v', 'string_agg(t, '','') FROM words WHERE id < 9', 'id FROM words WHERE coalesce(t, ''x'') = ''x''',
	'id FROM words WHERE nullif(t, ''x'') IS NULL', 'id FROM words WHERE greatest(t, ''m'') = ''m''', 'id FROM words WHERE t IN (SELECT k FROM words)', 'id FROM words WHERE t IN (' || (SELECT string_agg(quote_literal(i), ', ') FROM generate_series(1, 70) i) || ')']) q;
SELECT * FROM asked();
SELECT reason FROM gpuvm.why_not('SELECT min(t) FROM words');

-- Types that have no other form.
CREATE TABLE things (id int, n numeric, j json, jb jsonb, a int[], ta text[], r int4range, ts tsvector, tq tsquery, p point, pr pair, x xml, i inet, s pair[], nm name) WITH (autovacuum_enabled = off);
INSERT INTO things SELECT i, CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' WHEN 2 THEN i / 7.0 WHEN 3 THEN 10::numeric ^ (i % 80) ELSE i END, format('{"a": %s}', i)::json, jsonb_build_object('a', i, 'b', repeat('x', i % 3000)), ARRAY[i, NULL, i % 3], ARRAY['a', NULL, repeat('b', i % 200)],
	int4range(i, i + 5), to_tsvector('simple', 'word' || i || ' and ' || i % 7), ('word' || i)::tsquery, point(i, i % 3), ROW(i, 'x' || i)::pair, xmlelement(name e, i), ('10.0.0.' || i % 250)::inet, ARRAY[ROW(i, NULL)::pair], 'name' || i FROM generate_series(1, 3000) i;
UPDATE things SET n = n WHERE id % 11 = 0;
SELECT vary('things', 'j', 'jb', 'a', 'ta', 'i', 'nm');
SELECT gpuvm.import('things');
INSERT INTO queries (query) SELECT format('SELECT id, %s FROM things', col) FROM unnest(ARRAY['n', 'j', 'jb', 'a', 'ta', 'r', 'ts', 'tq', 'p', 'pr', 'x', 'i', 's', 'nm']) col;
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['id, n + 1, (pr).b, jb->''a'', a[1], upper(r), ts @@ tq FROM things WHERE id % 3 = 1', 'count(*), count(n), count(jb), count(pr), count(x) FROM things', 'id FROM things WHERE n IS NULL', 'sum(n) FROM things', 'id FROM things WHERE n > 3', 'id FROM things WHERE jb @> ''{"a": 3}''',
	'id FROM things WHERE ts @@ ''word5''', 'id FROM things WHERE pr = ROW(3, ''x3'')::pair', 'id FROM things WHERE i = ''10.0.0.3''', 'id FROM things WHERE a[1] = 3', 'id FROM things WHERE nm = ''name3''', 'r, count(*) FROM things GROUP BY r']) q;
SELECT * FROM asked();

-- Long values, and what was out of line.
CREATE TABLE long (id int, t text, e text) WITH (autovacuum_enabled = off);
ALTER TABLE long ALTER e SET STORAGE EXTERNAL;
INSERT INTO long SELECT i, CASE WHEN i % 10 > 0 THEN repeat(md5(i::text), i % 400) END, repeat(chr(97 + i % 26), i * 37 % 9000) FROM generate_series(1, 2000) i;
SELECT gpuvm.import('long');
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['id, t, e FROM long', 'id FROM long WHERE t LIKE ''%c4ca%''', 'id FROM long WHERE e LIKE ''%aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa''', 'id FROM long WHERE e = ''''', 'id FROM long WHERE t = ''''', 'count(t), count(e) FROM long']) q;
SELECT * FROM asked();

-- Joins.
CREATE TABLE orders (id int NOT NULL, word int, note text, amount int) WITH (autovacuum_enabled = off);
INSERT INTO orders SELECT i, i * 3 % 700, CASE WHEN i % 6 > 0 THEN 'note ' || i || repeat('.', i % 40) END, i % 50 FROM generate_series(1, 4000) i;
SELECT vary('orders', 'note');
SELECT gpuvm.import('orders');
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['o.id, o.note, w.t FROM orders o JOIN words w ON w.id = o.word', 'o.id, o.note, w.t, w.u FROM orders o LEFT JOIN words w ON w.id = o.word AND w.t LIKE ''a%''', 'o.id, o.note, w.id, w.t FROM orders o FULL JOIN words w ON w.id = o.id',
	'count(*), count(o.note), count(w.t) FROM orders o LEFT JOIN words w ON w.id = o.word', 'count(*) FROM orders o JOIN words w ON w.id = o.word WHERE o.note LIKE ''%9%'' AND w.t LIKE ''%a%''', 'w.d, count(*) FROM orders o JOIN words w ON w.id = o.word WHERE o.note LIKE ''%9%'' OR w.t = ''apple'' GROUP BY w.d',
	'count(*) FILTER (WHERE o.note LIKE ''%7%''), count(*) FILTER (WHERE w.t IS NULL), sum(CASE WHEN w.t LIKE ''a%'' THEN o.amount END) FROM orders o JOIN words w ON w.id = o.word', 'o.id, o.note FROM orders o WHERE EXISTS (SELECT 1 FROM words w WHERE w.id = o.word AND w.t LIKE ''%e'')',
	'o.id, o.note FROM orders o WHERE NOT EXISTS (SELECT 1 FROM words w WHERE w.id = o.word AND w.t LIKE ''%e'')', 'o.id, w.t FROM orders o LEFT JOIN words w ON w.id = o.word WHERE w.t LIKE ''a%'' OR w.t IS NULL', 'o.id, w.id, w.t FROM orders o JOIN words w ON o.id < 20 AND w.id < 30 AND (w.t LIKE ''a%'' OR o.note LIKE ''%1%'')',
	'o.id, w.id, w.v FROM orders o FULL JOIN words w ON w.id = o.id WHERE w.v LIKE ''x%'' OR o.note LIKE ''%3''', 'a.id, a.note, b.note FROM orders a JOIN orders b ON b.id = a.id + 1 WHERE (a.note LIKE ''%1%'') = (b.note LIKE ''%2%'')', 'o.id, w.t FROM orders o CROSS JOIN words w WHERE o.id = 3 AND w.t = ''apple''',
	'c.id, o.note, w.t FROM orders c LEFT JOIN (orders o JOIN words w ON w.id = o.word AND w.t LIKE ''%a%'') ON o.id = c.id']) q;
SELECT * FROM asked();

-- Changed blocks, LIMIT, cursors, rescans.
UPDATE words SET t = t || ' anew' WHERE id % 500 = 3;
INSERT INTO words SELECT 40000 + i, 'inserted ' || i, 'new', 'n', '\x01', md5(i::text)::uuid, 'k9', 9, 'z' FROM generate_series(1, 300) i;
DELETE FROM words WHERE id % 700 = 5;
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['* FROM words', 'id, t FROM words WHERE t LIKE ''%anew'' OR t LIKE ''inserted%''', 'count(*), count(t), count(*) FILTER (WHERE t IS NULL) FROM words', 'o.id, o.note, w.t FROM orders o JOIN words w ON w.id = o.word', 'o.id, w.id, w.t FROM orders o FULL JOIN words w ON w.id = o.word']) q;
SELECT * FROM asked();
INSERT INTO words SELECT 50000, repeat('more than a megabyte ', 60000), 'l', 'l', NULL, NULL, 'k1', 1, 'a';
INSERT INTO queries (query) VALUES ('SELECT id, length(t) FROM words WHERE d = 1'), ('SELECT id, v FROM words WHERE d = 1');
SELECT * FROM asked();
DELETE FROM words WHERE id = 50000;
SET gpuvm.require = vm;
SELECT count(*) FROM (SELECT id, t FROM words WHERE t LIKE 'a%' LIMIT 7) s;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, t, u FROM words WHERE t LIKE 'app%' OR id < 10 ORDER BY id;
FETCH 3 FROM c;
MOVE 100 FROM c;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
COMMIT;
RESET gpuvm.require;
INSERT INTO queries (query) VALUES ('SELECT i, (SELECT count(*) FROM words WHERE t LIKE ''%'' || i || ''%'') FROM generate_series(1, 3) i'), ('SELECT i, l.* FROM generate_series(1, 3) i, LATERAL (SELECT id, t FROM words WHERE t = ''inserted '' || i) l');
SELECT * FROM asked();

-- A row whose number is too large for the machine, in the middle: its unit comes from the heap.
CREATE TABLE units (id int, t text, m numeric(18,0)) WITH (autovacuum_enabled = off);
INSERT INTO units SELECT i, 'row ' || i, CASE WHEN i = 50000 THEN 999999999999999999 ELSE 1 + i % 3 END FROM generate_series(1, 60000) i;
SELECT vary('units', 't');
SELECT gpuvm.import('units');
CREATE FUNCTION from_heap(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'From Heap' THEN
			RETURN trim(line);
		END IF;
	END LOOP;
END $$;
SELECT from_heap('SELECT id, t FROM units WHERE m * m > 2');
CREATE TABLE found AS SELECT id, t FROM units WHERE m * m > 2;
SET gpuvm.enabled = off;
SELECT count(*), count(u.t), bool_and(f.t = u.t) FROM found f FULL JOIN (SELECT * FROM units WHERE m * m > 2 OFFSET 0) u USING (id);
RESET gpuvm.enabled;

-- Partitions: stored alike in all, or of no use.
CREATE TABLE parts (id int, t text) PARTITION BY RANGE (id);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts2 (gone int, id int, t text);
ALTER TABLE parts2 DROP gone;
ALTER TABLE parts ATTACH PARTITION parts2 FOR VALUES FROM (1000) TO (2000);
INSERT INTO parts SELECT i, CASE WHEN i % 9 > 0 THEN 'part ' || i END FROM generate_series(0, 1999) i;
SELECT vary('parts1', 't'), vary('parts2', 't');
SELECT gpuvm.import('parts1'), gpuvm.import('parts2');
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['* FROM parts', 'count(*), count(t) FROM parts WHERE t LIKE ''%99%''', 'id FROM parts WHERE t = ''part 1234''', 'tableoid::regclass, t FROM parts WHERE id > 1990']) q;
SELECT * FROM asked();
UPDATE parts SET t = t || '!' WHERE id % 300 = 1;
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['* FROM parts', 'id FROM parts WHERE t LIKE ''%!''']) q;
SELECT * FROM asked();

-- A plan that was made for another form.
PREPARE formed AS SELECT count(*) FROM orders WHERE note LIKE '%9%';
SELECT gpuvm.release('orders');
ALTER TABLE orders ALTER note SET (n_distinct = 0);
ANALYZE orders;
EXECUTE formed;
SELECT gpuvm.import('orders');
EXPLAIN (COSTS OFF) EXECUTE formed;
EXECUTE formed;

EXPLAIN (COSTS OFF) SELECT id, t FROM words WHERE t LIKE '%a%' AND c = 'a';
SELECT opcode, p1, p2, p3, p4, comment FROM gpuvm.disassemble('SELECT count(*) FROM words WHERE t LIKE ''%a%'' AND c = ''a''');

-- Texts are looked at last, but before what may raise.
SELECT opcode, p1, p2, p3 FROM gpuvm.disassemble('SELECT count(*) FROM words WHERE t LIKE ''%a%'' AND d = 1') WHERE opcode IN ('TextMatch', 'Ne');
SELECT opcode, p1, p2, p3 FROM gpuvm.disassemble('SELECT count(*) FROM words WHERE d = 1 AND t LIKE ''%a%'' AND 7 / id > 1 AND id > 5') WHERE opcode IN ('TextMatch', 'Ne', 'Le', 'Div');

DROP SCHEMA variable CASCADE;
