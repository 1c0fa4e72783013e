-- Values of two dictionaries meet: comparisons, joins, arms of CASE and COALESCE, orders over both.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA dictionary_meet;
SET search_path = dictionary_meet;
SET gpuvm.force = on;
SET timezone = 'UTC';

\set ECHO none
\i tests/sql/include/ask_many.sql
\set ECHO all

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN word AS text CHECK (VALUE <> 'never');
CREATE COLLATION unsure (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE a (id int, d int, t text, v varchar(12), c char(6), c6 char(6), n name, w word, e mood, e2 mood, u uuid, b bytea, i interval, j jsonb, ar text[], ci text COLLATE unsure, nothing text)
	WITH (autovacuum_enabled = off);
CREATE TABLE b (id int, d int, t text, v varchar(5), c char(9), c6 char(6), n name, w word, e mood, u uuid, b bytea, i interval, j jsonb, ar text[], ci text COLLATE unsure, nothing text)
	WITH (autovacuum_enabled = off);
INSERT INTO a SELECT i, i % 6, CASE WHEN i % 13 > 0 THEN (ARRAY['apple', 'Apple', '', ' ', 'banana', 'ß', 'ä', 'zebra', 'apple  ', 'only a', 'B', 'b', 'A'])[1 + i * 7 % 13] END,
	(ARRAY['apple', 'x', 'xy ', '', 'abc', NULL])[1 + i % 6], (ARRAY['a', 'ab', 'abc ', '', 'a b', NULL])[1 + i % 6], (ARRAY['a', 'ab', 'abc', '', 'only a'])[1 + i % 5], 'name' || i % 5, 'w' || i % 7,
	(ARRAY['sad', 'ok', 'happy'])[1 + i % 3]::mood, (ARRAY['happy', 'sad'])[1 + i % 2]::mood, md5((i % 9)::text)::uuid, decode(md5((i % 8)::text), 'hex'), make_interval(months => i % 3, days => i % 2 * 30),
	jsonb_build_object('k', (i % 5)::numeric), ARRAY['x' || i % 4, NULL], (ARRAY['A', 'a', 'B', 'c'])[1 + i % 4], NULL
	FROM generate_series(1, 600) i;
INSERT INTO b SELECT i, i % 5, CASE WHEN i % 11 > 0 THEN (ARRAY['zebra', 'apple', 'only b', ' ', 'banana', 'Ä', 'ä', '', 'apple ', 'C', 'b'])[1 + i * 5 % 11] END,
	(ARRAY['x', 'y', 'xy ', 'apple', NULL])[1 + i % 5], (ARRAY['ab', 'a b', 'abc', '', 'abcdefgh', NULL])[1 + i % 6], (ARRAY['ab', 'only b', '', NULL])[1 + i % 4], 'name' || i % 7, 'w' || i % 4 + 3,
	(ARRAY['happy', 'ok'])[1 + i % 2]::mood, md5((i % 12 + 3)::text)::uuid, decode(md5((i % 12 + 3)::text), 'hex'), make_interval(days => i % 4 * 30),
	jsonb_build_object('k', (i % 4 + 1)::numeric(5,2)), ARRAY['x' || i % 3, NULL], (ARRAY['a', 'C', 'b'])[1 + i % 3], CASE WHEN i > 100 THEN 'x' END
	FROM generate_series(1, 200) i;
SELECT gpuvm.import('a'), gpuvm.import('b');
ANALYZE a, b;

-- Two columns of one table, every comparison.
CREATE VIEW comparisons AS SELECT format('SELECT id FROM a WHERE %s %s %s', l, op, r) AS query
	FROM unnest(ARRAY['=', '<>', '<', '<=', '>', '>=', 'IS DISTINCT FROM', 'IS NOT DISTINCT FROM']) op,
	(VALUES ('t', 'v'), ('v', 't'), ('t', 'c'), ('c', 'c6'), ('c', 'v'), ('n', 't'), ('t', 'n'), ('n', 'n'), ('w', 't'), ('e', 'e2'), ('upper(t)', 'upper(v)'), ('t', 'lower(v)'), ('t || ''''', 't'),
		('t', 'nothing'), ('t COLLATE "C"', 'v'), ('t COLLATE "und-x-icu"', 'v'), ('ci', 't COLLATE unsure'), ('t', 't'), ('left(t, 1)', 'left(c, 1)'), ('coalesce(v, t)', 'c6'), ('coalesce(v, t)', '''apple''')) p(l, r);
INSERT INTO queries (query) SELECT query FROM comparisons;
SELECT * FROM asked();
-- Others that are one expression over both.
INSERT INTO queries (query) SELECT format('SELECT id FROM a WHERE %s', cond) FROM unnest(ARRAY[
	$$t IN (v, c6)$$, $$t NOT IN (v, 'apple')$$, $$t IN (v, NULL)$$, $$t BETWEEN v AND c6$$, $$nullif(t, v) IS NULL$$, $$nullif(t, v) = 'apple'$$, $$coalesce(nullif(t, v), 'none') = 'none'$$, $$NOT (t = v)$$, $$(t = v) IS UNKNOWN$$,
	$$t = v OR t = c6$$, $$t = v AND d > 2$$, $$CASE WHEN d > 2 THEN t ELSE v END = 'apple'$$, $$CASE WHEN d > 2 THEN t ELSE v END = c6$$, $$CASE WHEN d > 2 THEN t ELSE v END < CASE WHEN d > 3 THEN v ELSE t END$$,
	$$CASE WHEN d > 2 THEN t WHEN d > 1 THEN 'x' ELSE v END IN ('apple', 'x')$$, $$CASE d WHEN 1 THEN t WHEN 2 THEN v WHEN 3 THEN c6::text WHEN 4 THEN n::text ELSE w END = t$$, $$coalesce(v, t, 'none') = 'none'$$, $$coalesce(nothing, v) = t$$,
	$$CASE WHEN t = v THEN d = 1 ELSE d = 2 END$$, $$(CASE WHEN d > 2 THEN t END) IS NULL$$, $$greatest(t, v) = t$$, $$t || v = 'applex'$$, $$t LIKE v$$, $$c = c6$$, $$c6 = 'ab' AND c6 <> c$$, $$t <> ALL (ARRAY[v, c6])$$, $$random() > 2 OR t = v$$]) cond;
SELECT * FROM asked();

-- Compared with nulls alone, which are of no dictionary. (The planner crashed.)
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[
	$$id FROM a WHERE t < CASE WHEN d > 2 THEN NULL::text END$$, $$id FROM a WHERE t >= CASE WHEN d > 2 THEN NULL ELSE NULL::text END OR d = 1$$, $$count(*) FILTER (WHERE CASE WHEN d > 2 THEN NULL::text END > t), count(*) FROM a$$,
	$$count(*) FROM a WHERE CASE WHEN d > 2 THEN NULL::text END <= CASE WHEN d = 1 THEN NULL::text END$$, $$a.id FROM a JOIN b ON a.id = b.id AND a.t > CASE WHEN b.d > 2 THEN NULL::text END$$,
	$$id FROM a WHERE t = CASE WHEN d > 2 THEN NULL::text END$$, $$id FROM a WHERE t IS NOT DISTINCT FROM CASE WHEN d > 2 THEN NULL::text END$$, $$id FROM a WHERE CASE WHEN d > 2 THEN NULL::text END <> CASE WHEN d = 1 THEN NULL::text END$$,
	$$a.id FROM a JOIN b ON a.t = CASE WHEN b.d > 2 THEN NULL::text END$$, $$count(nullif(t, CASE WHEN d > 2 THEN NULL::text END)) FROM a$$, $$id FROM a WHERE t IN (v, CASE WHEN d > 2 THEN NULL::text END)$$]) q;
SELECT * FROM asked();

-- What is made of several dictionaries as a key and in the output.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[
	$$count(*), CASE WHEN d > 2 THEN t ELSE v END FROM a GROUP BY 2$$, $$count(*), coalesce(v, t) FROM a GROUP BY 2$$, $$count(*), coalesce(v, t, c6, 'none') FROM a GROUP BY 2$$, $$DISTINCT CASE WHEN d > 2 THEN t ELSE v END FROM a$$,
	$$count(*), CASE WHEN d > 2 THEN 'high' ELSE 'low' END FROM a GROUP BY 2$$, $$count(*), CASE WHEN d > 2 THEN 'high' WHEN d = 1 THEN t END FROM a GROUP BY 2$$, $$count(*), CASE WHEN d > 2 THEN upper(t) ELSE t END FROM a GROUP BY 2$$,
	$$count(*), nullif(t, v) FROM a GROUP BY 2$$, $$count(*), CASE d WHEN 1 THEN t WHEN 2 THEN v WHEN 3 THEN c6::text WHEN 4 THEN n::text ELSE w END FROM a GROUP BY 2$$, $$count(*), CASE WHEN d > 2 THEN e ELSE e2 END FROM a GROUP BY 2$$,
	$$count(*), CASE WHEN d > 2 THEN e WHEN d = 1 THEN 'ok' ELSE e2 END FROM a GROUP BY 2$$, $$count(*), CASE WHEN d > 2 THEN c ELSE c6 END FROM a GROUP BY 2$$, $$count(*), CASE WHEN d > 2 THEN CASE WHEN d > 3 THEN t ELSE v END ELSE CASE WHEN d = 0 THEN v ELSE n::text END END FROM a GROUP BY 2$$,
	$$count(*), CASE WHEN d > 2 THEN i END FROM a GROUP BY 2$$, $$count(*) FROM (SELECT DISTINCT coalesce(v, t), d FROM a) q$$, $$coalesce(v, t), max(t), min(v), sum(d) FROM a GROUP BY 1$$, $$d, count(coalesce(v, t)), count(nullif(t, v)), count(*) FILTER (WHERE t = v) FROM a GROUP BY d$$,
	$$min(coalesce(v, t)) FROM a$$, $$CASE WHEN d > 2 THEN t ELSE v END, id FROM a WHERE id < 50$$, $$count(*), CASE WHEN t = v THEN t ELSE 'other' END FROM a GROUP BY 2$$, $$count(*), CASE WHEN d > 2 THEN NULL ELSE t END FROM a GROUP BY 2$$,
	$$count(*), CASE WHEN d > 2 THEN current_user::text ELSE t END FROM a GROUP BY 2$$, $$count(*), CASE WHEN d > 2 THEN (SELECT min(v) FROM b) ELSE t END FROM a GROUP BY 2$$, $$count(*), CASE WHEN d > 2 THEN 'B' ELSE ci END FROM a GROUP BY 2$$]) q;
SELECT * FROM asked();

-- Several programs over the same dictionaries.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[
	$$coalesce(v, t), count(DISTINCT d), sum(d), count(*) FROM a GROUP BY 1$$, $$count(DISTINCT coalesce(v, t)) FROM a$$, $$d, count(DISTINCT coalesce(v, t)), count(DISTINCT t), max(v) FROM a GROUP BY d$$, $$coalesce(v, t), d, count(*) FROM a GROUP BY GROUPING SETS ((1), (d), ())$$,
	$$CASE WHEN d > 2 THEN t ELSE v END, c6, count(*), max(t) FROM a GROUP BY ROLLUP (1, 2)$$, $$a.t, count(DISTINCT b.v), count(DISTINCT coalesce(b.v, a.v)) FROM a JOIN b ON a.t = b.t GROUP BY a.t$$, $$count(DISTINCT t) FILTER (WHERE t <> v), count(DISTINCT d) FILTER (WHERE t < v) FROM a$$]) q;
SELECT * FROM asked();

-- Keys of joins, of each type, in both directions, and every kind of join.
INSERT INTO queries (query) SELECT format('SELECT a.id, b.id FROM a JOIN b ON a.%1$s = b.%1$s', col) FROM unnest(ARRAY['t', 'v', 'c', 'c6', 'n', 'w', 'e', 'u', 'b', 'i', 'j', 'ar', 'ci', 'nothing']) col;
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[
	$$a.id, b.id FROM b JOIN a ON b.v = a.t$$, $$a.id, b.id FROM a LEFT JOIN b ON a.t = b.t$$, $$a.id, b.id FROM a RIGHT JOIN b ON a.t = b.t$$, $$a.id, b.id, a.t, b.t FROM a FULL JOIN b ON a.t = b.t$$, $$a.id, b.id FROM a FULL JOIN b ON a.t = b.t AND a.d = b.d$$,
	$$a.id, a.t FROM a WHERE t IN (SELECT t FROM b)$$, $$a.id, a.t FROM a WHERE t IN (SELECT t FROM b WHERE d > 2)$$, $$a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.t = a.v AND b.d = a.d)$$, $$a.id, a.t FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.t = a.t)$$,
	$$a.id FROM a WHERE t NOT IN (SELECT t FROM b WHERE t IS NOT NULL)$$, $$b.id FROM b WHERE EXISTS (SELECT 1 FROM a WHERE b.t = upper(a.t))$$, $$a.id, b.id FROM a JOIN b ON upper(a.t) = upper(b.t)$$, $$a.id, b.id FROM a JOIN b ON a.t = b.v AND a.v = b.t$$, $$a.id, b.id FROM a JOIN b ON a.t = b.c$$,
	$$a.id, b.id FROM a JOIN b ON a.c = b.c6$$, $$a.id, b.id FROM a JOIN b ON a.n = b.t$$, $$a.id, b.id FROM a JOIN b ON a.id = b.id AND a.t < b.t$$, $$count(*) FROM a JOIN b ON a.t < b.t$$, $$count(*), min(a.id) FROM a JOIN b ON a.t BETWEEN b.t AND b.v$$, $$a.id, b.id FROM a JOIN b ON a.id = b.id WHERE a.t <> b.t$$,
	$$a.id, b.id FROM a LEFT JOIN b ON a.id = b.id AND a.t = b.t WHERE b.id IS NULL$$, $$a.id, x.id FROM a JOIN a x ON a.t = x.t AND a.id = x.id + 13$$, $$a.t, count(*), max(b.v) FROM a JOIN b ON a.t = b.t GROUP BY a.t$$, $$b.t, count(*) FROM a JOIN b ON a.t = b.t GROUP BY b.t$$,
	$$coalesce(a.t, b.t), count(*) FROM a FULL JOIN b ON a.t = b.t GROUP BY 1$$, $$coalesce(b.v, a.t), count(*) FROM a LEFT JOIN b ON a.t = b.t GROUP BY 1$$, $$CASE WHEN a.d > b.d THEN a.t ELSE b.t END, count(*) FROM a JOIN b ON a.id = b.id GROUP BY 1$$,
	$$DISTINCT CASE WHEN a.d > b.d THEN a.t ELSE b.t END, a.d FROM a JOIN b ON a.id = b.id$$, $$count(*) FROM a JOIN b ON a.t = b.t JOIN a x ON x.v = b.v AND x.id = a.id$$, $$count(*) FROM a JOIN b ON coalesce(a.v, a.t) = b.t$$, $$count(*) FROM a JOIN b ON CASE WHEN a.d > 2 THEN a.t ELSE a.v END = coalesce(b.t, b.v)$$,
	$$a.id, b.id FROM a, b WHERE (a.t = b.t OR a.v = b.v) AND a.id = b.id$$, $$a.id, b.id FROM a JOIN b ON a.t COLLATE "C" = b.t COLLATE "C"$$, $$a.id, b.id FROM a JOIN b ON a.id = b.id AND a.t COLLATE unsure = b.t COLLATE unsure$$, $$a.id, b.id FROM a JOIN b ON a.d = b.d AND a.t IS NOT DISTINCT FROM b.t$$,
	$$a.id FROM a JOIN b ON a.t || b.t = 'applezebra'$$, $$a.id, a.t FROM a WHERE (t, d) IN (SELECT t, d FROM b)$$]) q;
SELECT * FROM asked();

-- Rows that changed since: values that neither dictionary has, on either side, and the same on both; before and after they are refreshed.
CREATE VIEW meetings AS SELECT 'SELECT ' || q AS query FROM unnest(ARRAY[
	$$a.id, b.id FROM a JOIN b ON a.t = b.t$$, $$b.id, a.id FROM b JOIN a ON b.t = a.v$$, $$a.id, b.id FROM a FULL JOIN b ON a.t = b.t$$, $$a.id, a.t FROM a WHERE t IN (SELECT t FROM b)$$, $$a.id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.t = a.t)$$, $$id FROM a WHERE t = v$$, $$id FROM a WHERE t < v$$, $$id FROM a WHERE t >= v$$,
	$$count(*) FROM a JOIN b ON a.t > b.t$$, $$count(*), coalesce(v, t) FROM a GROUP BY 2$$, $$count(*), CASE WHEN d > 2 THEN t WHEN d = 1 THEN 'both new' ELSE v END FROM a GROUP BY 2$$, $$coalesce(a.t, b.t), count(*) FROM a FULL JOIN b ON a.t = b.t GROUP BY 1$$, $$a.id, b.id FROM a JOIN b ON upper(a.t) = upper(b.t)$$,
	$$count(*), CASE WHEN d > 2 THEN upper(t) ELSE lower(v) END FROM a GROUP BY 2$$, $$a.id, b.id FROM a JOIN b ON a.i = b.i AND a.id = b.id$$, $$count(*) FROM a JOIN b ON a.e = b.e$$, $$count(*), CASE WHEN d > 2 THEN e ELSE e2 END FROM a GROUP BY 2$$]) q;
SELECT ask(query) = 'VM' AS vm, count(*) FROM meetings GROUP BY 1;
BEGIN;
INSERT INTO a (id, d, t, v, i, e, e2) VALUES (1001, 1, 'new a', 'new a', '1 day', 'ok', 'happy'), (1002, 2, 'both new', 'zzz', '60 days', 'sad', 'sad'), (1003, 3, 'zebra', 'both new', NULL, NULL, 'ok'), (1004, 4, 'zzz', 'apple', '0', 'ok', NULL);
INSERT INTO queries (query) SELECT query FROM meetings;
SELECT * FROM asked();
INSERT INTO b (id, d, t, v, i, e) VALUES (1001, 1, 'new b', 'zzz', '1 day', 'ok'), (1002, 2, 'both new', 'new b', '2 months', 'sad'), (1003, 3, 'new a', 'zebra', NULL, NULL), (1004, 4, 'zzz', 'zzz', '0', 'ok');
UPDATE b SET t = 'both new' WHERE id = 3;
INSERT INTO queries (query) SELECT query FROM meetings;
SELECT * FROM asked();
COMMIT;
VACUUM a;
SELECT gpuvm.refresh('a') IS NOT NULL AS refreshed;
INSERT INTO queries (query) SELECT query FROM meetings;
SELECT * FROM asked();
VACUUM b;
SELECT gpuvm.refresh('b') IS NOT NULL AS refreshed;
INSERT INTO queries (query) SELECT query FROM meetings;
SELECT * FROM asked();
-- Values that no row has any more are in the dictionaries still, and in no answer.
DELETE FROM b WHERE t = 'both new';
INSERT INTO queries (query) SELECT query FROM meetings;
SELECT * FROM asked();

-- Plans that are kept while dictionaries grow and are made anew; parameters as arms, null among them.
PREPARE joined AS SELECT count(*), min(a.id), max(b.id) FROM a JOIN b ON a.t = b.t;
PREPARE armed(text, int) AS SELECT count(*), CASE WHEN d > $2 THEN $1 ELSE coalesce(v, t) END AS arm FROM a GROUP BY 2 ORDER BY CASE WHEN d > $2 THEN $1 ELSE coalesce(v, t) END COLLATE "C" NULLS FIRST LIMIT 3;
SET plan_cache_mode = force_generic_plan;
\set vm 'SET gpuvm.require = ' :device '; EXECUTE joined; EXECUTE armed(\'apple\', 2); EXECUTE armed(\'own\', 4); EXECUTE armed(NULL, 0); RESET gpuvm.require'
\set pg 'SET gpuvm.enabled = off; EXECUTE joined; EXECUTE armed(\'apple\', 2); EXECUTE armed(\'own\', 4); EXECUTE armed(NULL, 0); RESET gpuvm.enabled'
:vm;
:pg;
UPDATE a SET t = 'grown ' || id % 3 WHERE id % 50 = 1;
UPDATE b SET t = 'grown ' || id % 4 WHERE id % 40 = 1;
:vm;
:pg;
VACUUM a, b;
SELECT count(gpuvm.refresh(r)) FROM unnest('{a,b}'::regclass[]) r;
:vm;
:pg;
SELECT gpuvm.import('b');
:vm;
:pg;
RESET plan_cache_mode;

-- A cursor goes on with what the dictionaries were.
BEGIN;
SET LOCAL gpuvm.require = :device;
DECLARE c CURSOR FOR SELECT coalesce(v, t) AS k, count(*) FROM a GROUP BY 1 ORDER BY coalesce(v, t) COLLATE "C";
FETCH 2 FROM c;
INSERT INTO a (id, d, t) VALUES (2001, 1, '!'), (2002, 1, '~');
SELECT coalesce(v, t) AS k, count(*) FROM a GROUP BY 1 ORDER BY coalesce(v, t) COLLATE "C" LIMIT 3;
FETCH 3 FROM c;
ROLLBACK;
-- In rescans.
INSERT INTO queries (query) VALUES ($$SELECT g, (SELECT count(*) FROM a JOIN b ON a.t = b.t WHERE a.d = g) FROM generate_series(0, 5) g$$), ($$SELECT g, (SELECT min(CASE WHEN d = 1 THEN 1 ELSE 2 END) FROM a WHERE CASE WHEN d > g THEN t ELSE 'x' || g END = coalesce(v, 'x2')) FROM generate_series(0, 5) g$$);
SELECT * FROM asked();

-- What a policy hides, no order of other than leakproof types tells of.
CREATE ROLE gpuvm_meet_reader;
ALTER TABLE a ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON a USING (d < 3);
GRANT USAGE ON SCHEMA dictionary_meet TO gpuvm_meet_reader;
GRANT SELECT ON a, b TO gpuvm_meet_reader;
SET ROLE gpuvm_meet_reader;
SET gpuvm.require = :device;
SELECT count(*), max(d) FROM a WHERE t = v OR t < v;
SELECT count(*) FROM a JOIN b ON a.j = b.j;
RESET gpuvm.require;
RESET ROLE;
DROP POLICY few ON a;
ALTER TABLE a DISABLE ROW LEVEL SECURITY;
DROP OWNED BY gpuvm_meet_reader;
DROP ROLE gpuvm_meet_reader;

EXPLAIN (COSTS OFF) SELECT count(*), CASE WHEN a.d > 2 THEN a.t WHEN a.d > 1 THEN 'x' ELSE upper(b.v) END FROM a JOIN b ON a.t = b.t WHERE a.v < b.v GROUP BY 2;
SET client_min_messages = warning;
DROP SCHEMA dictionary_meet CASCADE;
