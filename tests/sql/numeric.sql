-- Numerics, and what else is stored as an integer: what tablets hold is exactly what the table holds, or the column is stored value by value.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA numeric_test;
SET search_path = numeric_test;
SET gpuvm.force = on;
\set VERBOSITY default

-- What a tablet has of each column: one row's values are its bounds.
CREATE VIEW stored AS SELECT relation, tablet, "column", type, scale, width, nulls, min, max FROM gpuvm.tablets;
CREATE FUNCTION differing(wide regclass) RETURNS TABLE (name text, value text, min text, max text) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE format('SELECT v.key, v.value, s.min, s.max FROM %s AS w, jsonb_each_text(to_jsonb(w)) v
		LEFT JOIN stored s ON s.relation = %L::regclass AND s."column" = v.key
		WHERE (v.value, v.value) IS DISTINCT FROM (s.min, s.max) ORDER BY v.key', wide, wide);
END $$;

\set ECHO none
\i tests/sql/include/ask_all.sql
\set ECHO all

-- Up to 18 digits and decimals, of either sign, digits and zeroes in any place.
DO $$
DECLARE
	columns text[];
	digits text;
	scale int;
BEGIN
	PERFORM setseed(0.25);
	FOR i IN 1 .. 600 LOOP
		digits := '';
		FOR d IN 1 .. 1 + floor(random() * 18)::int LOOP
			digits := digits || CASE WHEN random() < 0.4 THEN 0 WHEN random() < 0.3 THEN 9 ELSE floor(random() * 10)::int END;
		END LOOP;
		scale := floor(random() * 19)::int;
		columns := columns || format('%s::numeric AS c%s', CASE WHEN random() < 0.5 THEN '-' ELSE '' END ||
			CASE WHEN scale = 0 THEN digits
				WHEN scale < length(digits) THEN left(digits, -scale) || '.' || right(digits, scale)
				ELSE '0.' || lpad(digits, scale, '0') END, i);
	END LOOP;
	EXECUTE 'CREATE TABLE wide WITH (autovacuum_enabled = off) AS SELECT ' || array_to_string(columns, ', ');
END $$;
SELECT gpuvm.import('wide');
SELECT count(*), count(DISTINCT min), max(length(ltrim(min, '-'))), min(length(min)), count(*) FILTER (WHERE min LIKE '-%') > 200 AS negative
FROM stored WHERE relation = 'wide'::regclass;
SELECT * FROM differing('wide');
DROP TABLE wide;

-- At the ends, and around the digits of base 10000.
CREATE TABLE ends WITH (autovacuum_enabled = off) AS SELECT
	0::numeric AS zero, 0.00::numeric AS zeroes, 0.000000000000000000 AS zero18, -0.5 AS half, 0.0001 AS base, -0.00010 AS base5, 0.00001 AS below,
	9999 AS small, 9999::numeric AS digit, 10000::numeric AS two, 10000.0000 AS three, 100000000::numeric AS third, 1.0000 AS one, 1.00000 AS one5,
	12345.6789 AS aligned, 123456.789 AS shifted, 0.000000000000000001 AS least, -0.000000000000000001 AS minus_least,
	9223372036854775807::numeric AS most, -9223372036854775807::numeric AS minus_most, 9.223372036854775807 AS most18, -922337203685477.5807 AS most4,
	1000000000000000000::numeric AS power, -999999999999999999::numeric AS nines, 90000000000.00000001 AS apart;
SELECT gpuvm.import('ends');
SELECT * FROM differing('ends');

-- What is no integer: too many digits, no number, a scale of its own.
CREATE TABLE misfits (id int, over numeric, under numeric, decimals numeric, large numeric, larger numeric, nan numeric, inf numeric, minus_inf numeric,
	p_nan numeric(5, 2), p_large numeric(30, 2), scales numeric, late numeric, fits numeric) WITH (autovacuum_enabled = off);
INSERT INTO misfits SELECT i, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, CASE WHEN i > 100 THEN 1.5 END, i FROM generate_series(1, 1000) i;
INSERT INTO misfits VALUES (0, 9223372036854775808, -9223372036854775808, 0.0000000000000000001, repeat('9', 200)::numeric, 10 ^ 30000::numeric, 'NaN', 'inf', '-inf',
	'NaN', 1e20, 1.0, 1, 1);
SELECT gpuvm.import('misfits');
SELECT columns FROM gpuvm.tables WHERE relation = 'misfits'::regclass;
SELECT "column", type, min, max FROM stored WHERE relation = 'misfits'::regclass ORDER BY 1;
-- Queries that need none of them do not notice; those that do say why they run on PostgreSQL.
SET gpuvm.require = :device;
SELECT sum(id), count(*) FROM misfits;
SELECT count(*) FROM misfits WHERE over IS NULL;
SELECT id, over, under, decimals, length(large::text), length(larger::text), nan, inf, minus_inf, p_nan, p_large, scales, late, fits FROM misfits WHERE id IN (0, 1, 101);
SELECT sum(over), sum(length(large::text)) FROM misfits;
RESET gpuvm.require;
SELECT reason FROM gpuvm.why_not('SELECT sum(large) FROM misfits');
SELECT sum(over), sum(length(large::text)) FROM misfits;
-- Asked for by name, too.
SELECT gpuvm.import('misfits', '{id,nan,fits}');
SELECT columns FROM gpuvm.tables WHERE relation = 'misfits'::regclass;

-- Scales of the type: negative ones, and one that the domain has. Columns that are dropped, added, null everywhere.
CREATE DOMAIN price AS numeric(9, 2) CHECK (VALUE >= 0);
CREATE DOMAIN discount AS price;
CREATE TABLE kinds (gone numeric, a numeric(10, 4), b numeric(5, -2), c discount, d numeric, e numeric(4, 3), nothing numeric, none numeric(5, 1))
	WITH (autovacuum_enabled = off);
INSERT INTO kinds SELECT 1, i, i * 100, i, i % 10, 1.5, NULL, NULL FROM generate_series(1, 500) i;
ALTER TABLE kinds DROP COLUMN gone;
ALTER TABLE kinds ADD COLUMN added numeric DEFAULT 1.250, ADD COLUMN typed numeric(6, 2) DEFAULT -1.5, ADD COLUMN many numeric DEFAULT 9e30,
	ADD COLUMN lunch time DEFAULT '12:30', ADD COLUMN pay money DEFAULT 10.5, ADD COLUMN number oid DEFAULT 4294967295;
INSERT INTO kinds SELECT -i, i, i, NULL, 1, NULL, NULL, 2.500, -2, 1, time '24:00' - i * interval '1 second', -i, i FROM generate_series(1, 500) i;
SELECT gpuvm.import('kinds');
SELECT "column", type, scale, width, nulls, min, max FROM stored WHERE relation = 'kinds'::regclass;

-- As they were imported, with changes, and these taken, too.
CREATE FUNCTION about_kinds() RETURNS TABLE ("by" text, equal bool, query text) LANGUAGE sql AS $$
	SELECT * FROM ask_all(ARRAY['SELECT a, b, c, d, e, nothing, "none", added, typed FROM kinds ORDER BY 1, 2, 3, 4, 5, 7, 8, 9', 'SELECT lunch, pay, number FROM kinds ORDER BY 1, 2, 3',
		'SELECT sum(a), sum(b), sum(c), sum(d), sum(e), sum(nothing), sum("none"), sum(added), sum(typed), count(*) FROM kinds',
		'SELECT min(lunch), max(lunch), min(pay), max(pay), min(number), max(number) FROM kinds', 'SELECT many FROM kinds ORDER BY many', 'SELECT sum(many) FROM kinds'])
$$;
SELECT * FROM about_kinds();
UPDATE kinds SET a = a + 0.5, d = d + 1, e = -e, lunch = lunch - interval '1 hour', pay = pay * 2, number = 4294967290 WHERE b % 50 = 0;
ALTER TABLE kinds ALTER number SET DEFAULT 7;
SELECT * FROM about_kinds();
SELECT gpuvm.refresh('kinds');
SELECT * FROM about_kinds();
-- A delta with NaN, or another scale.
INSERT INTO kinds (d, typed) VALUES ('NaN', 'NaN');
INSERT INTO kinds (e, added) VALUES (1, 1.5);
SELECT * FROM ask_all('{SELECT sum(a) FROM kinds, SELECT sum(d) FROM kinds, SELECT max(typed) FROM kinds, SELECT sum(e) FROM kinds, SELECT added FROM kinds ORDER BY added}');

-- Blocks with nulls and without, dead rows, two scales in one process and the next.
CREATE TABLE holes (id int, v numeric(12, 3), w numeric) WITH (autovacuum_enabled = off);
INSERT INTO holes SELECT i, CASE WHEN i % 3 > 0 OR i > 5000 THEN i / 8.0 END, CASE WHEN i > 9000 THEN i + 0.5 END FROM generate_series(1, 10000) i;
DELETE FROM holes WHERE id % 5 = 0;
SELECT gpuvm.import('holes');
SELECT "column", sum(nulls) AS nulls, min(min::numeric), max(max::numeric) FROM stored WHERE relation = 'holes'::regclass GROUP BY 1 ORDER BY 1;
SELECT count(*) - count(v) AS nulls_v, count(*) - count(w) AS nulls_w, min(v), max(v), min(w), max(w) FROM holes;

-- A refresh takes what fits. The scale that no value has decided is decided by the first one.
SET plan_cache_mode = force_generic_plan;
CREATE TABLE later (id int, v numeric, t numeric(6, 2)) WITH (autovacuum_enabled = off);
SELECT gpuvm.import('later');
INSERT INTO later SELECT i, NULL, i FROM generate_series(1, 100) i;
SELECT gpuvm.refresh('later');
PREPARE of_any_scale AS SELECT min(v), max(v), sum(v), count(v) FROM later;
EXECUTE of_any_scale;
INSERT INTO later SELECT i, i / 10.0 :: numeric(6, 1), i FROM generate_series(101, 2000) i;
UPDATE later SET v = round(v, 1);
SELECT gpuvm.refresh('later');
SELECT "column", sum(nulls) AS nulls, min(min::numeric), max(max::numeric) FROM stored WHERE relation = 'later'::regclass GROUP BY 1 ORDER BY 1;
SELECT rows, changed_blocks, state FROM gpuvm.tables WHERE relation = 'later'::regclass;
EXECUTE of_any_scale;
RESET plan_cache_mode;
-- A block with a value that does not fit is left to be read from the table, however often it is looked at; the others are taken.
INSERT INTO later SELECT i, CASE WHEN i = 2500 THEN 0.25 ELSE i / 10.0 :: numeric(6, 1) END, 1 FROM generate_series(2001, 4000) i;
UPDATE later SET v = round(v, 1) WHERE id <> 2500;
SELECT gpuvm.refresh('later');
SELECT changed_blocks, state FROM gpuvm.tables WHERE relation = 'later'::regclass;
SELECT gpuvm.refresh('later');
SELECT changed_blocks, state FROM gpuvm.tables WHERE relation = 'later'::regclass;
SELECT * FROM ask_all('{SELECT count(*)\, sum(id) FROM later, SELECT sum(v) FROM later, SELECT id FROM later WHERE v > 399 ORDER BY id, SELECT sum(t) FROM later}');
DELETE FROM later WHERE id = 2500;
SELECT gpuvm.refresh('later');
SELECT changed_blocks, state FROM gpuvm.tables WHERE relation = 'later'::regclass;
SELECT "column", sum(nulls) AS nulls, min(min::numeric), max(max::numeric) FROM stored WHERE relation = 'later'::regclass GROUP BY 1 ORDER BY 1;
-- Anew, with two scales: value by value.
INSERT INTO later VALUES (5000, 0.25, 1);
SELECT gpuvm.import('later');
SELECT gpuvm.refresh('later');
SELECT columns, rows, state FROM gpuvm.tables WHERE relation = 'later'::regclass;

-- A page that is refused decides no scale.
CREATE TABLE undecided (id int, v numeric) WITH (autovacuum_enabled = off);
INSERT INTO undecided SELECT i, NULL FROM generate_series(1, 20000) i;
SELECT gpuvm.import('undecided');
UPDATE undecided SET v = CASE WHEN id = 1 THEN 1.5 ELSE 2.25 END;
VACUUM undecided;
SELECT gpuvm.refresh('undecided') > 19000 AS taken;
SELECT blocks - served_blocks < 5 AS served FROM gpuvm.tables WHERE relation = 'undecided'::regclass;
DROP TABLE undecided;

-- Partitions: a column may be of another form in one of them.
CREATE TABLE parts (k int, v numeric, t numeric(6, 2)) PARTITION BY RANGE (k);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM (0) TO (100) WITH (autovacuum_enabled = off);
CREATE TABLE parts_b (t numeric(6, 2), gone int, v numeric, k int) WITH (autovacuum_enabled = off);
ALTER TABLE parts_b DROP COLUMN gone;
ALTER TABLE parts ATTACH PARTITION parts_b FOR VALUES FROM (100) TO (200);
INSERT INTO parts SELECT i % 200, CASE WHEN i = 150 THEN 0.125 ELSE 0.25 END, i / 100.0 FROM generate_series(0, 1999) i;
SELECT gpuvm.import('parts');
SELECT relation, columns, rows, state FROM gpuvm.tables WHERE relation::text LIKE 'parts%' ORDER BY 1;
SELECT relation, "column", min(min::numeric), max(max::numeric) FROM stored WHERE relation::text LIKE 'parts%' GROUP BY 1, 2 ORDER BY 1, 2;
SELECT * FROM ask_all('{SELECT count(*)\, sum(t) FROM parts, SELECT sum(v) FROM parts, SELECT k\, v FROM parts ORDER BY k\, v, SELECT k\, v FROM parts WHERE k > 120 ORDER BY k\, v, SELECT k\, v FROM parts WHERE k < 80 ORDER BY k\, v}');
SELECT gpuvm.release('parts');
SELECT count(*) FROM gpuvm.tables WHERE relation::text LIKE 'parts%';

-- Bounds are shown to those who may see the rows.
CREATE ROLE regress_gpuvm_reader;
GRANT USAGE ON SCHEMA numeric_test TO regress_gpuvm_reader;
GRANT SELECT ON stored TO regress_gpuvm_reader;
GRANT SELECT (a, c) ON kinds TO regress_gpuvm_reader;
SET ROLE regress_gpuvm_reader;
SELECT "column", min, max, scale FROM gpuvm.tablets WHERE relation = 'kinds'::regclass;
RESET ROLE;
DROP OWNED BY regress_gpuvm_reader;
DROP ROLE regress_gpuvm_reader;

SET client_min_messages = warning;
DROP SCHEMA numeric_test CASCADE;
