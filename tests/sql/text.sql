-- Text in programs: what PostgreSQL says of each entry of a dictionary, and codes that become values again.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA text;
SET search_path = text;
SET gpuvm.force = on;
SET timezone = 'UTC';

\set ECHO none
\i tests/sql/include/ask_many.sql
\set ECHO all

CREATE TABLE words (id int, t text, v varchar(12), c char(6), n name, ci text COLLATE "C", ui text COLLATE "und-x-icu", d int) WITH (autovacuum_enabled = off);
INSERT INTO words SELECT i,
	CASE WHEN i % 13 = 0 THEN NULL ELSE (ARRAY['apple', 'Apple', 'APPLE', '', ' ', 'banana', 'Banana split', 'ß', 'straße', 'ä', 'Ä', 'a%b', 'a_b', 'a\b', 'zebra',
		'42', '-7', 'naïve', E'tab\there', E'two\nlines', '日本語', 'éa', 'eb', 'e' || chr(769) || 'a', 'apple  ', repeat('long', 300)])[1 + i * 7 % 26] END,
	nullif((ARRAY['x', 'X', 'xy ', '', 'café', 'abc'])[1 + i % 6], 'abc'), (ARRAY['a', 'ab', 'abc', '', 'a b', NULL])[1 + i % 6], 'name' || i % 5,
	(ARRAY['a', 'B', 'b', 'A', 'Z', 'ä'])[1 + i % 6], (ARRAY['a', 'B', 'b', 'A', 'Z', 'ä'])[1 + i % 6], i % 4
	FROM generate_series(1, 5000) i;
SELECT gpuvm.import('words');
ANALYZE words;

-- Comparisons with constants.
INSERT INTO queries (query) SELECT format('SELECT id, t FROM words WHERE %s', cond) FROM unnest(ARRAY[
	$$t = 'apple'$$, $$'apple' = t$$, $$t <> 'apple'$$, $$t = ''$$, $$t = 'not there'$$, $$t <> 'not there'$$, $$t = NULL$$, $$NOT t = 'apple'$$, $$t IS NULL$$, $$t IS NOT NULL$$,
	$$t IS DISTINCT FROM 'apple'$$, $$t IS NOT DISTINCT FROM NULL$$, $$t IN ('apple', 'zebra', 'nothing')$$, $$t NOT IN ('apple', 'zebra')$$, $$t NOT IN ('apple', NULL)$$,
	$$t = ANY ('{apple,NULL,42}')$$, $$t <> ALL ('{apple,42}')$$, $$t < 'b'$$, $$t <= 'banana'$$, $$t > 'Z'$$, $$t >= 'ä'$$, $$t BETWEEN 'a' AND 'c'$$, $$t NOT BETWEEN 'a' AND 'c'$$,
	$$t < 'b' COLLATE "und-x-icu"$$, $$t > 'Z' COLLATE "C"$$, $$t BETWEEN 'a' AND 'c' COLLATE "de-x-icu"$$, $$t ~>=~ 'b'$$, $$t ^@ 'app'$$, $$starts_with(t, 'A')$$,
	$$t LIKE 'a%'$$, $$t LIKE '%a%'$$, $$t LIKE 'a_p%'$$, $$t NOT LIKE '%e'$$, $$t ILIKE 'APP%'$$, $$t NOT ILIKE '%Ä%'$$, $$t LIKE 'a\%b'$$, $$t LIKE 'a!_b' ESCAPE '!'$$, $$t LIKE ''$$, $$t LIKE '%'$$,
	$$t ~ '^[aA]pp'$$, $$t ~* '^app'$$, $$t !~ 'p{2}'$$, $$t !~* 'É'$$, $$t SIMILAR TO '(a|b)%'$$, $$t ~ '\d'$$, $$length(t) > 5$$, $$char_length(t) = 1$$, $$octet_length(t) <> length(t)$$, $$bit_length(t) > 40$$,
	$$lower(t) = 'apple'$$, $$upper(t) = 'APPLE'$$, $$initcap(t) = t$$, $$t = upper(t)$$, $$t = lower(t) AND t <> upper(t)$$, $$upper(t) LIKE 'A%' OR t IS NULL$$, $$substring(t, 1, 1) = 'a'$$, $$substring(t from 2) = 'pple'$$,
	$$substring(t from 'a(.)') = 'p'$$, $$left(t, 2) = 'ap'$$, $$right(t, 2) = 'le'$$, $$left(t, -2) = 'app'$$, $$trim(t) = ''$$, $$btrim(t, 'ae') = 'ppl'$$, $$ltrim(t) <> t$$, $$rtrim(t) <> t$$,
	$$t || '!' = 'apple!'$$, $$t || v = 'applex'$$, $$concat(t, '?') = '?'$$, $$replace(t, 'p', 'b') = 'abble'$$, $$strpos(t, 'p') = 2$$, $$position('na' in t) > 0$$, $$reverse(t) = 'elppa'$$, $$repeat(t, 2) = 'appleapple'$$,
	$$lpad(t, 7, '.') = '..apple'$$, $$translate(t, 'ap', 'AP') = 'APPle'$$, $$ascii(t) = 97$$, $$md5(t) < '8'$$, $$split_part(t, 'p', 1) = 'a'$$, $$overlay(t placing 'xx' from 1 for 1) = 'xxpple'$$, $$regexp_replace(t, '[aeiou]', '', 'g') = 'ppl'$$,
	$$coalesce(t, 'none') = 'none'$$, $$nullif(t, 'apple') IS NULL$$, $$greatest(t, 'm') = 'm'$$, $$least(t, 'm') = 'm'$$, $$CASE WHEN t LIKE 'a%' THEN 1 WHEN t IS NULL THEN 2 ELSE 3 END > 1$$, $$CASE t WHEN 'apple' THEN true WHEN 'zebra' THEN false END$$,
	$$CASE WHEN t LIKE 'a%' THEN d ELSE 0 END = 1$$, $$(t LIKE 'a%') = (d > 1)$$, $$t LIKE 'a%' OR d = 3$$, $$length(t) + d > 6$$, $$length(t) % 4 = d$$, $$(t LIKE '%a%') IS UNKNOWN$$, $$(t > 'b') IS NOT TRUE$$,
	$$t COLLATE "C" > 'a'$$, $$(t = 'apple') IS NOT FALSE AND d IN (1, 2)$$]) cond;
SELECT * FROM asked();
-- Other types of text, and collations that differ.
INSERT INTO queries (query) SELECT format('SELECT * FROM words WHERE %s', cond) FROM unnest(ARRAY[
	$$v = 'x'$$, $$v = 'xy '$$, $$v LIKE '%é'$$, $$v > 'x'$$, $$upper(v) = 'X'$$, $$v::text || '.' = 'x.'$$, $$v::varchar(1) = 'c'$$, $$length(v) = 3$$, $$v::char(3) = 'x'$$,
	$$c = 'a'$$, $$c = 'a     '$$, $$c <> 'ab'$$, $$c > 'a'$$, $$c LIKE 'a%'$$, $$c LIKE 'a'$$, $$c::text = 'a'$$, $$length(c) = 1$$, $$octet_length(c) = 6$$, $$c IN ('a', 'abc ')$$, $$c = ''$$, $$c || 'x' = 'ax'$$, $$c ~ '^a *$'$$, $$upper(c) = 'AB'$$,
	$$n = 'name3'$$, $$n > 'name2'$$, $$n LIKE '%1'$$, $$n::text = 'name0'$$, $$n = 'name1'::text$$,
	$$ci > 'a'$$, $$ui > 'a'$$, $$ui < 'b'$$, $$ui BETWEEN 'A' AND 'b'$$, $$ci BETWEEN 'A' AND 'b'$$, $$ci COLLATE "und-x-icu" > 'a'$$, $$ui COLLATE "C" > 'a'$$, $$lower(ui) = 'ä'$$, $$ui ILIKE 'Ä'$$, $$ui = 'a' OR ui > 'a'$$]) cond;
SELECT * FROM asked();

-- As keys and in the output.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[
	'count(*), t FROM words GROUP BY t', 'count(*), v FROM words GROUP BY v', 'count(*), c FROM words GROUP BY c', 'count(*), n FROM words GROUP BY n', 'count(*), t, v, c FROM words GROUP BY t, v, c',
	'count(*), upper(t) FROM words GROUP BY upper(t)', 'count(*), substring(t, 1, 1) FROM words GROUP BY 2', 'count(*), lower(t), d FROM words GROUP BY 2, 3', 'count(*), length(t) FROM words GROUP BY 2', 'count(*), t || ''!'' FROM words GROUP BY 2',
	'count(*), coalesce(t, ''none'') FROM words GROUP BY 2', 'count(*), CASE WHEN t LIKE ''a%'' THEN ''a'' WHEN t LIKE ''b%'' THEN ''b'' ELSE t END FROM words GROUP BY 2', 'count(*), t IS NULL, t LIKE ''a%'' FROM words GROUP BY 2, 3',
	'count(*), t || ''?'' FROM words GROUP BY t', 'upper(t), length(t), sum(id) FROM words GROUP BY t HAVING upper(t) > ''A''', 'left(t, 1), max(d) FROM words WHERE t <> '''' GROUP BY 1', 'count(t), count(upper(t)), count(nullif(t, ''apple'')) FROM words',
	'count(*) FILTER (WHERE t LIKE ''a%''), sum(length(t)), avg(length(t)), bool_or(t = ''zebra''), max(ascii(t)) FROM words', 'd, sum(CASE WHEN t = ''apple'' THEN id ELSE 0 END) FROM words GROUP BY d', 'count(*) FROM (SELECT t FROM words GROUP BY t) g',
	'd, count(*) FROM words WHERE t > ''b'' GROUP BY d', 'count(*), ui FROM words GROUP BY ui', 'count(*), ui COLLATE "C" FROM words GROUP BY ui COLLATE "C"', 'count(*), t::varchar(3) FROM words GROUP BY 2', 'count(*), c::text FROM words GROUP BY 2',
	'count(*), c::char(2) FROM words GROUP BY 2', 'count(*), left(c, 1) FROM words GROUP BY 2', 'upper(t), id FROM words WHERE id < 300', 'id, t || v || c FROM words WHERE d = 1', 'words FROM words WHERE id < 50', 'count(words) FROM words']) q;
SELECT * FROM asked();

-- The least and the greatest, under each collation's order.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[
	'min(t), max(t) FROM words', 'min(t), max(t) FROM words WHERE t <> ''''', 'd, min(t), max(t), count(*) FROM words GROUP BY d', 'v, min(t), max(c) FROM words GROUP BY v', 'min(v), max(v) FROM words', 'min(c), max(c) FROM words', 'min(n), max(n) FROM words',
	'min(ci), max(ci) FROM words', 'min(ui), max(ui) FROM words', 'min(ui COLLATE "C"), max(ui COLLATE "C") FROM words', 'min(t COLLATE "und-x-icu"), max(t COLLATE "de-x-icu"), max(t COLLATE "C") FROM words', 'min(upper(t)), max(lower(t)) FROM words',
	'max(substring(t, 2)) FROM words', 'min(t) FROM words WHERE t IS NULL', 'min(t) FROM words WHERE false', 'max(t) FILTER (WHERE d = 1) FROM words', 'd, max(ui), max(ci) FROM words GROUP BY d HAVING max(ui) > ''a''', 'min(t || ''x'') FROM words', 'max(coalesce(t, ''zzzz'')) FROM words',
	'min(length(t)), max(length(t)) FROM words', 'max(nullif(t, ''日本語'')) FROM words', 'd, min(CASE WHEN t LIKE ''a%'' THEN t END) FROM words GROUP BY d',
	'min(CASE WHEN t IS NULL THEN ''!'' ELSE t END), max(coalesce(upper(t), ''~'')) FROM words', 'd, min(greatest(t, ''a'')), max(coalesce(t, ''日本語語'')) FROM words GROUP BY d']) q;
SELECT * FROM asked();
SELECT min(ci), max(ci), min(ui), max(ui), min(ui COLLATE "C"), max(ui COLLATE "C") FROM words;

-- What raises, raises in PostgreSQL; what would raise for an entry that no row has at the end is PostgreSQL's, too.
INSERT INTO queries (query) SELECT format('SELECT id FROM words WHERE %s', cond) FROM unnest(ARRAY[
	$$t ~ '('$$, $$t LIKE 'a\'$$, $$t::int > 0$$, $$substring(t, 2, -1) = ''$$, $$t ~ '^-?[0-9]+$' AND t::int > 0$$, $$CASE WHEN t ~ '^-?[0-9]+$' THEN t::int > 0 END$$, $$10 / length(t) > 1$$, $$10 / nullif(length(t), 0) > 1$$, $$chr(length(t) - 1) = 'a'$$]) cond;
SELECT * FROM asked();
SELECT id FROM words WHERE t ~ '(';

-- What stays with PostgreSQL, and why.
CREATE FUNCTION mine(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1 || $1';
CREATE FUNCTION slow(text) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 > ''b''; END';
CREATE COLLATION unsure (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[
	'id FROM words WHERE slow(t)', 'id FROM words WHERE mine(t) = ''4242''', 'id FROM words WHERE t = v', 'id FROM words WHERE upper(t) = upper(v)', 'id FROM words WHERE t < v', 'id FROM words WHERE t = t', 'id FROM words WHERE t > (random() * 0)::text',
	'count(*) FROM words GROUP BY t COLLATE unsure', 'max(t COLLATE unsure) FROM words', 'id FROM words WHERE t COLLATE unsure = ''APPLE''', 'string_agg(t, '','' ORDER BY id) FROM words', 'id FROM words WHERE t = (SELECT max(t) FROM words)',
	'id FROM words w WHERE EXISTS (SELECT 1 FROM words o WHERE o.t = w.v AND o.id < 20)']) q;
SELECT * FROM asked();
SET client_min_messages = warning;
DROP SCHEMA text CASCADE;
