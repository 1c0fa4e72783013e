-- ILIKE, regular expressions, and the case of texts that no dictionary holds, against PostgreSQL's answers.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA regex;
SET search_path = regex;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/ask_many.sql
\i tests/sql/include/vary.sql
\set ECHO all

CREATE TABLE words (id int, t text, v varchar(12), c char(6), ci text COLLATE "C", icu text COLLATE "und-x-icu", b bytea) WITH (autovacuum_enabled = off);
INSERT INTO words SELECT i,
	CASE WHEN i % 13 = 0 THEN NULL ELSE (ARRAY['apple', 'Apple', 'APPLE', '', ' ', 'banana', 'Banana split', 'ß', 'straße', 'ä', 'Ä', 'a%b', 'a_b', 'a\b', 'zebra', 'ÀÉÎ', 'àéî', 'K', 'k', 'ſ', 'İI', 'ı', 'Σας', 'σΑΣ', 'ǅ', 'ǆ',
		'42', '-7', '٣٤', 'naïve', E'tab\there', E'two\nlines', '日本語', 'éa', 'eb', 'e' || chr(769) || 'a', 'apple  ', '  apple', repeat('long', 300) || 'er', 'special requests sleep', 'a Special case of requests', 'x@example.com', '555-1234', '𐐀', '𐐨', '😀'])[1 + i * 5 % 46] END,
	nullif((ARRAY['x', 'X', 'xy ', '', 'café', 'CAFÉ', 'abc'])[1 + i % 7], 'abc'), (ARRAY['a', 'Ab', 'abc', '', 'a b', NULL])[1 + i % 6],
	(ARRAY['a', 'B', 'b', 'Ä', 'ä'])[1 + i % 5], (ARRAY['a', 'B', 'b', 'Ä', 'ä'])[1 + i % 5], 'abc'
	FROM generate_series(1, 3000) i;
SELECT vary('words', 't', 'v', 'c', 'ci', 'icu', 'b');
SELECT gpuvm.import('words');

INSERT INTO queries (query) SELECT format('SELECT id, t FROM words WHERE %s', cond) FROM unnest(ARRAY[
	$$t ILIKE 'apple'$$, $$t ILIKE 'A%'$$, $$t ILIKE '%Ä%'$$, $$t NOT ILIKE '%E'$$, $$t ILIKE 'STRASSE'$$, $$t ILIKE 'straße'$$, $$t ILIKE '_'$$, $$t ILIKE 'k'$$, $$t ILIKE 's'$$, $$t ILIKE 'i%'$$, $$t ILIKE 'σας'$$, $$t ILIKE 'ǆ'$$, $$t ILIKE '𐐀'$$, $$t ILIKE 'A\%B'$$, $$t ILIKE 'A!%B' ESCAPE '!'$$,
	$$t ILIKE '%SPECIAL%requests%'$$, $$ci ILIKE 'B'$$, $$ci ILIKE 'ä'$$, $$v ILIKE 'CAFÉ'$$, $$c ILIKE 'AB%'$$, $$c ILIKE 'ab    '$$, $$c::text ILIKE 'ab'$$, $$c::text LIKE 'Ab'$$, $$c::text = 'Ab'$$, $$c::text = 'Ab '$$, $$c::text ~ 'b$'$$, $$c ~ 'b$'$$, $$c ~ 'b *$'$$, $$c !~* 'B *$'$$,
	$$t ~ '^a'$$, $$t ~ 'a$'$$, $$t ~* '^A.*E$'$$, $$t !~ 'p+'$$, $$t !~* 'P{2}'$$, $$t ~ '\d'$$, $$t ~ '^\d+$'$$, $$t ~ '\w@\w'$$, $$t ~ '\yspecial\y'$$, $$t ~ '\mr'$$, $$t ~ '^(apple|banana|ß)$'$$, $$t ~ '[[:alpha:]]{5}'$$, $$t ~ '^[^a-z]*$'$$, $$t ~* 'ä'$$, $$t ~* 'k'$$, $$t ~ '(?i)APPLE'$$, $$t ~ '^.$'$$, $$t ~ ''$$,
	$$t ~ 'special.*requests'$$, $$t ~ 'a.b'$$, $$t ~ '^a_b$'$$, $$t ~ 'a.+e'$$, $$t SIMILAR TO 'a%'$$, $$t SIMILAR TO '%(an|pp)%'$$, $$t NOT SIMILAR TO '[A-Z]%'$$, $$icu ~ '^\w$'$$, $$icu ~* 'Ä'$$, $$ci ~* 'ä'$$, $$ci ~ '\w'$$, $$t ~ '^\s'$$, $$t ~ 'o\nl'$$, $$t ~ E'o\nl'$$, $$t ~ '(?n)^lines'$$, $$t ~ '(?x) a p p'$$, $$t ~ '***=a_b'$$, U&'t ~ ''[\07FF]''', U&'t !~ ''[^\07FE-\07FF]''', $$t ~ 'a(?!p)'$$,
	$$lower(t) = 'apple'$$, $$lower(t) <> 'apple'$$, $$'APPLE' = upper(t)$$, $$lower(t) IN ('apple', 'ä', 'àéî')$$, $$upper(t) NOT IN ('APPLE', 'Ä')$$, $$upper(t) LIKE 'B%'$$, $$lower(t) LIKE '%S%'$$, $$upper(t) ~ '^[A-Z]+$'$$, $$lower(t) ~* '^APP'$$, $$starts_with(lower(t), 'app')$$, $$trim(t) = 'apple'$$, $$rtrim(t) = 'apple'$$, $$ltrim(t) = 'apple'$$, $$trim(t) = ''$$,
	$$lower(trim(t)) = 'apple'$$, $$trim(upper(t)) = 'APPLE'$$, $$lower(c) = 'ab'$$, $$lower(c) = 'ab '$$, $$lower(v) = 'café'$$, $$lower(t) IS NOT DISTINCT FROM 'apple'$$, $$lower(t COLLATE "C") = 'Ä'$$, $$upper(t) = 'STRASSE'$$, $$upper(t) = 'STRAßE'$$, $$lower(t)::bpchar = 'apple   '::bpchar$$, $$ltrim(t)::bpchar <> 'apple '::bpchar$$, $$rtrim(t)::bpchar = 'apple '::bpchar$$, $$lower(t) = 'apple' OR t ~ 'z' AND id % 2 = 0$$, $$CASE WHEN t ~* '^b' THEN v ILIKE 'X' ELSE upper(ci) = 'B' END$$]) cond;
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[$$t ~ '^a', count(*), min(id) FROM words GROUP BY 1$$, $$count(*) FILTER (WHERE t ILIKE '%A%'), sum(CASE WHEN lower(t) = 'apple' THEN id END) FROM words$$, $$a.id, b.id FROM words a JOIN words b ON b.id = a.id + 1 WHERE a.t ILIKE '%A%' AND b.t ~ '[a-e]$'$$,
	$$a.id FROM words a WHERE a.id < 300 AND NOT EXISTS (SELECT 1 FROM words b WHERE b.id = a.id + 5 AND upper(b.t) = 'APPLE')$$]) q;
SELECT * FROM asked();

-- ICU makes several characters of some: all that have a case, and texts of such as their neighbours matter to.
CREATE TABLE letters (id int, t text, i text COLLATE "und-x-icu", n name) WITH (autovacuum_enabled = off);
INSERT INTO letters SELECT c, chr(c), chr(c), chr(c) FROM generate_series(32, 131071) c WHERE c NOT BETWEEN 55296 AND 57343 AND
	(c < 127 OR lower(chr(c) COLLATE "und-x-icu") <> chr(c) OR upper(chr(c) COLLATE "und-x-icu") <> chr(c) OR lower(chr(c)) <> chr(c) OR upper(chr(c)) <> chr(c));
SELECT setseed(0.25);
INSERT INTO letters SELECT -i, s, s, s FROM (SELECT i / 5 AS i, string_agg((ARRAY['a', 'I', 'i', 'J', 'İ', 'ı', U&'\0307', U&'\0300', U&'\0345', 'Σ', 'σ', 'ς', 'ά', 'υ', 'ΰ', 'ß', 'ẞ', 'ŉ', 'ǰ', 'ǅ', 'ﬃ', 'ᾳ', 'Ꭰ', 'ꭰ', '𐐀', U&'\00AD', '''', ' ', '.', 'é'])[1 + floor(random() * 30)::int], '' ORDER BY i) AS s
	FROM generate_series(1, 20000) i GROUP BY i / 5) r;
SELECT vary('letters', 't', 'i', 'n');
SELECT gpuvm.import('letters') > 4000 AS imported;
INSERT INTO queries (query) SELECT format('SELECT id FROM letters WHERE %s', cond) FROM unnest(ARRAY[$$i ILIKE '%SS%'$$, $$i ILIKE 'ß'$$, $$i ILIKE '_'$$, $$i ILIKE '__'$$, $$i ILIKE '%İ%'$$, $$i NOT ILIKE '%I_'$$, $$i ILIKE '%\%'$$, $$i ILIKE 'ǆ'$$, $$i ILIKE '%𐐀%'$$, $$i ILIKE '%Ꭰ%'$$, $$i ILIKE '%ΰ%'$$, $$t COLLATE "de-x-icu" ILIKE '%É%'$$, $$t COLLATE "nl-x-icu" ILIKE '%IJ%'$$,
	$$upper(i) = 'SS'$$, $$upper(i) = 'FFI'$$, $$upper(i) LIKE '_'$$, $$upper(i) LIKE '__'$$, $$upper(i) LIKE '___'$$, $$upper(i) LIKE '____'$$, $$upper(i) LIKE '%ΣI%'$$, $$upper(i) LIKE '%S'$$, $$upper(i) LIKE 'S%S'$$, $$upper(i) ~ 'I$'$$, $$upper(i) ~ '^(ʼN|J̌)$'$$, $$upper(i) ~ 'SS\M'$$, $$upper(i) ~ '[[:lower:]]'$$, $$upper(i) ~ '^\W*$'$$, $$lower(i) ~ '[[:upper:]]'$$, $$lower(i) ~ '^..$'$$, $$lower(i) = 'i̇'$$, $$lower(i) IN ('ǆ', 'k', 'å', 'ä')$$, $$lower(i) LIKE '%i̇%'$$,
	$$lower(t COLLATE "el-x-icu") LIKE '%ά%'$$, $$upper(t COLLATE "hy-x-icu") LIKE '%Վ'$$, $$upper(i) LIKE '%Վ'$$, $$btrim(upper(i)) = 'İ'$$, $$starts_with(upper(i), 'ΪI')$$, $$starts_with(lower(i COLLATE "de-x-icu"), 'ά')$$,
	$$n LIKE 'a%'$$, $$n NOT LIKE '%σ'$$, $$n LIKE '_'$$, $$n LIKE '%aI%'$$, $$n ILIKE 'i%'$$, $$n NOT ILIKE '%A%'$$, $$n ILIKE '%É%'$$, $$n COLLATE "und-x-icu" ILIKE '%É_'$$, $$n ~ '^.$'$$, $$n ~ 'a$'$$, $$n !~ '[a-z]'$$, $$n ~* 'I.'$$, $$n !~* '^É'$$, $$n::text = 'a'$$, $$n::text IN ('a', 'i', 'σ')$$, $$lower(n) = 'a'$$, $$upper(n::text) LIKE 'A%I'$$, $$starts_with(n::text, 'a')$$, $$n::text < 'b'$$, $$left(n::text, 2) = 'aI'$$, $$right(n::text, 1) = 'ς'$$, $$btrim(n) = 'a'$$]) cond;
SELECT * FROM asked();
INSERT INTO queries (query) SELECT format('SELECT id FROM letters WHERE %s', cond) FROM unnest(ARRAY[$$i ILIKE '%σ%'$$, $$lower(i) ~ 'ς'$$, $$lower(t COLLATE "tr-x-icu") = 'i'$$, $$upper(t COLLATE "az-x-icu") = 'i'$$, $$t COLLATE "lt-x-icu" ILIKE '%i%'$$, $$upper(t COLLATE "lt-x-icu") = 'I'$$, $$upper(t COLLATE "el-x-icu") = 'A'$$]) cond;
SELECT * FROM asked();

-- No collation is known where those of UNION ALL differ, at which PostgreSQL raises when it calls the function for a row.
INSERT INTO queries (query) SELECT format('SELECT id FROM (SELECT id, i AS x FROM letters UNION ALL SELECT id, ci FROM words) s WHERE id > 200000 AND %s', cond) FROM unnest(ARRAY[$$lower(x) COLLATE "C" = 'a'$$, $$left(upper(x), 2) COLLATE "C" = 'AB'$$, $$lower(x) IN ('a', 'b')$$, $$x ILIKE 'a'$$]) cond;
SELECT * FROM asked();

-- What stays with PostgreSQL, and why.
INSERT INTO queries (query) SELECT format('SELECT id, t FROM words WHERE %s', cond) FROM unnest(ARRAY[$$t ~ '(a)\1'$$, $$t ~ 'a(?=pp)'$$, $$t ~ '('$$, $$t ILIKE 'app\'$$, $$trim(t) LIKE 'a%'$$, $$trim(t) = ' apple'$$, $$lower(upper(t)) = 'x'$$, $$lower(t) ILIKE 'x'$$, $$lower(t) = v$$, $$t ~ v$$, $$'apple' ~ t$$, $$lower(t) IS NULL$$, $$lower(t) < 'b'$$,
	$$convert_from(b, 'UTF8') ~ 'a'$$, $$t ~ ('x' || repeat('(a|b)', 300) || '$')$$, $$t ILIKE '%a____________'$$, $$t ILIKE repeat('ab', 3000)$$]) cond;
SELECT * FROM asked();

-- Parameters: null, and such as no pattern can be made of, or PostgreSQL raises at.
PREPARE matching(text) AS SELECT count(*) FROM words WHERE t ~* $1 OR lower(v) = $1 OR t ILIKE $1;
SET plan_cache_mode = force_generic_plan;
SET gpuvm.require = vm;
EXECUTE matching('apple');
EXECUTE matching('X');
EXECUTE matching('^[a-c]');
EXECUTE matching(NULL);
RESET gpuvm.require;
EXECUTE matching('(a)\1');
EXECUTE matching('(');
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE matching('(p)\1');
RESET plan_cache_mode;

-- Patterns at random, of pieces that expressions are made of.
CREATE FUNCTION piece(VARIADIC from_these text[]) RETURNS text LANGUAGE sql AS 'SELECT from_these[1 + floor(random() * cardinality(from_these))::int]';
CREATE FUNCTION some_regex(depth int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	made text := piece('', '', '', '^');
BEGIN
	FOR i IN 0..floor(random() * 4)::int LOOP
		made := made || CASE WHEN depth > 0 AND random() < 0.3 THEN '(' || some_regex(depth - 1) || piece('', '', '|' || some_regex(depth - 1)) || ')'
			ELSE piece('a', 'b', 'A', 'p', 'e', 'ä', 'Ä', 'ß', 'k', ' ', '.', '.', '[a-c]', '[^a-p]', '[[:alpha:]]', '[[:digit:]_]', '\d', '\w', '\s', '\W', '\y', '\m', '$', '\.', '日', '[à-ï]') END || piece('', '', '', '', '*', '+', '?', '{2}', '{1,3}', '*?');
	END LOOP;
	RETURN made || piece('', '', '$');
END $$;
CREATE FUNCTION is_regex(regex text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN PERFORM regexp_match('', regex); RETURN true; EXCEPTION WHEN invalid_regular_expression THEN RETURN false; END $$;
SELECT setseed(0.5);
INSERT INTO queries (query) SELECT format('SELECT id FROM words WHERE %s %s %L', piece('t', 't', 't', 'v', 'ci', 'lower(t)', 'upper(t)'), piece('~', '~*', '!~'), r) FROM (SELECT some_regex(1) AS r FROM generate_series(1, 300)) s WHERE is_regex(r);
INSERT INTO queries (query) SELECT format('SELECT id FROM words WHERE %s %s %L', piece('t', 't', 'v', 'ci'), piece('ILIKE', 'NOT ILIKE'), string_agg(piece('%', '%', '_', 'A', 'p', 'B', 'é', 'Ä', 'ß', 'K', 'S', 'I', '\%', 'Σ'), '')) FROM generate_series(1, 400) i GROUP BY i / 4;
SELECT count(*) > 250 AS many FROM queries;
SELECT who, query FROM asked() WHERE who <> 'VM';

-- Changed rows.
UPDATE words SET t = 'ANEW ' || t WHERE id % 500 = 3;
INSERT INTO queries (query) SELECT 'SELECT id, t FROM words WHERE ' || q FROM unnest(ARRAY[$$t ILIKE 'anew%'$$, $$t ~ '^ANEW [a-z]'$$, $$upper(t) LIKE 'ANEW %E'$$]) q;
SELECT * FROM asked();

SET client_min_messages = warning;
DROP SCHEMA regex CASCADE;
