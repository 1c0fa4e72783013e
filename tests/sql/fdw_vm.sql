-- File tables on the virtual machine: loaded by the first query, loaded anew when the file has changed; what the file
-- has, and nothing older, is the answer. Names of files are relative to the data directory.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SET gpuvm.force = on;
SET gpuvm.require = vm;
SET datestyle = 'ISO, MDY';
COPY (SELECT 1) TO PROGRAM 'rm -rf gpuvm_fdw_vm; mkdir gpuvm_fdw_vm; cat >/dev/null';
COPY (SELECT i, i % 7, i * 0.25, 'name ' || i % 5, DATE '2020-01-01' + i % 400, CASE WHEN i % 10 = 0 THEN NULL ELSE i END,
		i / 3::float8, i % 2 = 0, 'long ' || repeat(md5(i::text), i % 3), ARRAY[i, i + 1], i::oid
	  FROM generate_series(1, 20000) i) TO PROGRAM 'cat >gpuvm_fdw_vm/t.csv' (FORMAT csv, HEADER);
CREATE FOREIGN TABLE fdw_t (id int, k int2, price numeric(10,2), name text, day date, maybe bigint, f float8, even bool, long text, list int[], o oid)
	SERVER gpuvm OPTIONS (filename 'gpuvm_fdw_vm/t.csv', format 'csv', header 'true');
CREATE TABLE fdw_heap (LIKE fdw_t);
SET gpuvm.enabled = off;
RESET gpuvm.require;
INSERT INTO fdw_heap SELECT * FROM fdw_t;
RESET gpuvm.enabled;
SET gpuvm.require = vm;
SELECT relation FROM gpuvm.tables WHERE relation = 'fdw_t'::regclass;

-- the first query loads it
SELECT count(*), sum(id), sum(price), min(name), max(day), count(maybe), count(*) FILTER (WHERE even) FROM fdw_t;
SELECT relation, rows, state, served FROM gpuvm.tables WHERE relation = 'fdw_t'::regclass;
SELECT * FROM gpuvm.imports WHERE relation = 'fdw_t'::regclass;
-- all rows, as PostgreSQL has them in a table
CREATE TEMP TABLE fdw_seen AS SELECT * FROM fdw_t WHERE id > 0;
SELECT count(*) FROM ((TABLE fdw_seen EXCEPT ALL TABLE fdw_heap) UNION ALL (TABLE fdw_heap EXCEPT ALL TABLE fdw_seen)) d;
SELECT count(*), count(list), count(long) FROM fdw_seen;
SELECT k, count(*), sum(price), avg(f) > 0 AS positive FROM fdw_t WHERE maybe IS NOT NULL AND name LIKE '%1' GROUP BY k ORDER BY k;
SELECT id, name, long, list FROM fdw_t WHERE day = '2020-05-05' ORDER BY id DESC LIMIT 3;
SELECT ctid, tableoid::regclass, id FROM fdw_t WHERE id = 5;
SELECT DISTINCT name FROM fdw_t ORDER BY name;
EXPLAIN (COSTS off) SELECT k, sum(price) FROM fdw_t WHERE even GROUP BY k;

-- joins, also with imported tables
SELECT gpuvm.import('fdw_heap');
SELECT h.name, count(*), sum(t.price) FROM fdw_heap h JOIN fdw_t t ON h.id = t.maybe WHERE t.k < 3 GROUP BY h.name ORDER BY h.name;
SELECT count(*) FROM fdw_t a WHERE NOT EXISTS (SELECT 1 FROM fdw_t b WHERE b.id = a.maybe);
SELECT a.id, b.name FROM fdw_t a LEFT JOIN fdw_heap b ON a.id = b.id + 19998 WHERE a.id > 19997 ORDER BY 1;
SELECT count(*) FROM (SELECT name FROM fdw_t INTERSECT SELECT name FROM fdw_heap) s;

-- the file changes: the next query sees it, prepared or not
PREPARE p AS SELECT count(*), max(id), max(name) FROM fdw_t;
EXECUTE p;
COPY (SELECT 1) TO PROGRAM $$echo '20001,1,1.5,zzz,2020-01-01,1,1,t,x,{1},7' >>gpuvm_fdw_vm/t.csv; cat >/dev/null$$;
SELECT state FROM gpuvm.tables WHERE relation = 'fdw_t'::regclass;
EXECUTE p;
SELECT state FROM gpuvm.tables WHERE relation = 'fdw_t'::regclass;
-- a column of a plan gets another form
COPY (SELECT 1) TO PROGRAM $$echo '20002,1,NaN,zzz,2020-01-01,1,1,t,x,{1},7' >>gpuvm_fdw_vm/t.csv; cat >/dev/null$$;
PREPARE q AS SELECT count(*), max(price) FROM fdw_t WHERE id > 20000;
RESET gpuvm.require;
EXECUTE q;
COPY (SELECT 1) TO PROGRAM $$sed -i 's/NaN/2.5/' gpuvm_fdw_vm/t.csv; cat >/dev/null$$;
EXECUTE q;
SET gpuvm.require = vm;
SELECT count(*), max(price) FROM fdw_t WHERE id > 20000;
-- a cursor that is open goes on with what it began with
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM fdw_t WHERE id > 19990;
FETCH 2 FROM c;
COPY (SELECT 1) TO PROGRAM $$sed -i '20002,$d' gpuvm_fdw_vm/t.csv; cat >/dev/null$$;
SELECT count(*), max(id) FROM fdw_t;
FETCH ALL FROM c;
COMMIT;
-- replaced by another file
COPY (SELECT 1) TO PROGRAM $$head -n 11 gpuvm_fdw_vm/t.csv >gpuvm_fdw_vm/new.csv; mv gpuvm_fdw_vm/new.csv gpuvm_fdw_vm/t.csv; cat >/dev/null$$;
SELECT count(*), max(id) FROM fdw_t;
-- the same size and time of last modification, and other content
COPY (SELECT 1) TO PROGRAM $$cp -p gpuvm_fdw_vm/t.csv gpuvm_fdw_vm/old; p=$(grep -b '^9,' gpuvm_fdw_vm/t.csv | cut -d: -f1); printf 8 | dd of=gpuvm_fdw_vm/t.csv bs=1 seek=$p conv=notrunc 2>/dev/null; touch -r gpuvm_fdw_vm/old gpuvm_fdw_vm/t.csv; cat >/dev/null$$;
SELECT sum(id) FROM fdw_t;

-- other options, other columns, other settings
ALTER FOREIGN TABLE fdw_t OPTIONS (SET header 'false');
SELECT count(*), sum(id) FROM fdw_t;
ALTER FOREIGN TABLE fdw_t OPTIONS (SET header 'true');
ALTER FOREIGN TABLE fdw_t ALTER id TYPE text;
SELECT count(*), min(id), max(id) FROM fdw_t;
ALTER FOREIGN TABLE fdw_t ALTER id TYPE int;
SELECT count(*), sum(id) FROM fdw_t;
SET datestyle = 'ISO, DMY';
SELECT reason FROM gpuvm.why_not('SELECT count(*) FROM fdw_t');
SELECT count(*) FROM fdw_t;
RESET gpuvm.require;
SELECT count(*) FROM fdw_t;
SELECT gpuvm.import('fdw_t');
SET gpuvm.require = vm;
SELECT count(*) FROM fdw_t;
SET datestyle = 'ISO, MDY';
SELECT gpuvm.refresh('fdw_t');
SELECT gpuvm.refresh('fdw_t');

-- a line that cannot be read: COPY's error, at the query; what was loaded is still there for who asks for it
COPY (SELECT 1) TO PROGRAM $$cp -p gpuvm_fdw_vm/t.csv gpuvm_fdw_vm/old; echo 'x' >>gpuvm_fdw_vm/t.csv; cat >/dev/null$$;
SELECT count(*) FROM fdw_t;
RESET gpuvm.require;
SELECT count(*) FROM fdw_t;
SELECT id FROM fdw_t LIMIT 1;
SELECT gpuvm.import('fdw_t');
SELECT gpuvm.refresh('fdw_t');
SELECT reason FROM gpuvm.why_not('SELECT count(*) FROM fdw_t');
SELECT state FROM gpuvm.tables WHERE relation = 'fdw_t'::regclass;
SET gpuvm.files = keep;
SET gpuvm.require = vm;
SELECT count(*) FROM fdw_t;
SET gpuvm.files = read;
RESET gpuvm.require;
SELECT count(*) FROM fdw_t;
COPY (SELECT 1) TO PROGRAM $$rm gpuvm_fdw_vm/t.csv; cat >/dev/null$$;
SELECT count(*) FROM fdw_t;
RESET gpuvm.files;
SELECT count(*) FROM fdw_t;
COPY (SELECT 1) TO PROGRAM $$mv gpuvm_fdw_vm/old gpuvm_fdw_vm/t.csv; cat >/dev/null$$;
SET gpuvm.require = vm;
SELECT count(*) FROM fdw_t;

-- what PostgreSQL runs takes its rows out of the tablets, if they have the columns
RESET gpuvm.require;
CREATE FUNCTION fdw_rows_from(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) ' || query LOOP
		IF line ~ 'Rows From|Foreign Scan|Custom Scan' THEN
			RETURN NEXT regexp_replace(line, '^ *(-> )?', '');
		END IF;
	END LOOP;
END$$;
CREATE FUNCTION fdw_no_program(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
SELECT fdw_rows_from('SELECT * FROM fdw_t WHERE fdw_no_program(id) < 4');
SELECT * FROM fdw_t WHERE fdw_no_program(id) < 4;
SELECT t, maybe FROM fdw_t t WHERE fdw_no_program(id) > 9;
SELECT count(*) FROM fdw_t WHERE random() >= 0;
SELECT fdw_rows_from('SELECT 1 FROM fdw_t WHERE random() >= 0');
SELECT fdw_rows_from('SELECT * FROM (VALUES (1), (2)) v (x), LATERAL (SELECT count(*) FROM fdw_t WHERE fdw_no_program(id) = x) q');
SELECT x, n FROM (VALUES (1), (2)) v (x), LATERAL (SELECT count(*) AS n FROM fdw_t WHERE fdw_no_program(id) = x) q ORDER BY x;
SELECT fdw_rows_from('SELECT k, count(*) FROM fdw_t GROUP BY k');
SELECT gpuvm.import('fdw_t', '{id,k}');
SELECT fdw_rows_from('SELECT id FROM fdw_t WHERE fdw_no_program(k) = 1');
SELECT fdw_rows_from('SELECT name FROM fdw_t WHERE fdw_no_program(k) = 1');
SELECT fdw_rows_from('SELECT t FROM fdw_t t WHERE fdw_no_program(k) = 1');
SELECT gpuvm.release('fdw_t');
SET gpuvm.files = read;
SELECT fdw_rows_from('SELECT name FROM fdw_t');
RESET gpuvm.files;
-- a read-only transaction, a subtransaction that ends, and one that is rolled back
BEGIN READ ONLY;
SAVEPOINT s;
SELECT count(*) FROM fdw_t;
ROLLBACK TO s;
SELECT fdw_rows_from('SELECT id FROM fdw_t WHERE k > 3');
ROLLBACK;
SET gpuvm.require = vm;
SELECT count(*) FROM fdw_t;

-- an error of a row is PostgreSQL's, before and after rows have gone out
COPY (SELECT i, i FROM generate_series(1, 200000) i) TO PROGRAM 'cat >gpuvm_fdw_vm/e.csv' (FORMAT csv);
CREATE FOREIGN TABLE fdw_e (id int, v int) SERVER gpuvm OPTIONS (filename 'gpuvm_fdw_vm/e.csv', format 'csv');
SELECT count(*) FROM fdw_e WHERE 10 / (v - 199999) > 5;
BEGIN;
DECLARE c CURSOR FOR SELECT id, tableoid::regclass FROM fdw_e WHERE CASE WHEN v < 150000 THEN v % 50000 = 0 ELSE (v * 20000) > 0 END;
FETCH 1 FROM c;
-- Which of the rows left are met first, the threads decide.
FETCH ALL FROM c;
ROLLBACK;

-- what is not loaded, and why
CREATE DOMAIN fdw_positive AS int CHECK (VALUE > 0);
CREATE FOREIGN TABLE fdw_domain (id fdw_positive, v int) SERVER gpuvm OPTIONS (filename 'gpuvm_fdw_vm/e.csv', format 'csv');
SELECT reason FROM gpuvm.why_not('SELECT count(*) FROM fdw_domain');
SELECT gpuvm.import('fdw_domain');
BEGIN;
CREATE FOREIGN TABLE fdw_new (id int, v int) SERVER gpuvm OPTIONS (filename 'gpuvm_fdw_vm/e.csv', format 'csv');
SELECT reason FROM gpuvm.why_not('SELECT count(*) FROM fdw_new');
SELECT gpuvm.import('fdw_new');
ROLLBACK;
-- rows that may be looked at again are handed on whole
SELECT id FROM fdw_e WHERE id = 1 FOR UPDATE;
UPDATE fdw_heap h SET k = 99 FROM fdw_e e WHERE e.id = h.id AND e.v < 4;
RESET gpuvm.require;
SELECT count(*) FROM fdw_heap WHERE k = 99;

-- import, columns of it, release
SELECT gpuvm.import('fdw_e', '{v}');
SELECT relation, columns FROM gpuvm.imports WHERE relation = 'fdw_e'::regclass;
SELECT relation, columns FROM gpuvm.tables WHERE relation = 'fdw_e'::regclass;
SELECT DISTINCT reason FROM gpuvm.why_not('SELECT sum(id) FROM fdw_e');
SELECT gpuvm.release('fdw_e');
SELECT relation FROM gpuvm.tables WHERE relation = 'fdw_e'::regclass;
SET gpuvm.files = read;
RESET gpuvm.require;
SELECT sum(id) FROM fdw_e;
SELECT DISTINCT reason FROM gpuvm.why_not('SELECT sum(id) FROM fdw_e');
RESET gpuvm.files;
SET gpuvm.require = vm;
SELECT sum(id) FROM fdw_e;

-- a partition that is a file
CREATE TABLE fdw_parent (id int, v int) PARTITION BY RANGE (id);
CREATE TABLE fdw_part PARTITION OF fdw_parent FOR VALUES FROM (200001) TO (300000);
INSERT INTO fdw_part VALUES (200001, 5);
ALTER TABLE fdw_parent ATTACH PARTITION fdw_e FOR VALUES FROM (1) TO (200001);
SELECT gpuvm.import('fdw_part');
SELECT count(*), sum(v) FROM fdw_parent;
SELECT id, v, ctid, tableoid::regclass FROM fdw_parent WHERE id >= 200000 ORDER BY id;
-- below UNION ALL: whose privileges count
SELECT count(*), sum(v) FROM (SELECT id, v FROM fdw_e WHERE id < 3 UNION ALL SELECT id, v FROM fdw_parent) s;
-- rows of a heap may have columns fetched that are not imported, those of a file have none to fetch
ALTER TABLE fdw_parent ADD more json;
COPY (SELECT 200000, 5, '[1]') TO PROGRAM 'cat >gpuvm_fdw_vm/e.csv' (FORMAT csv);
RESET gpuvm.require;
SELECT gpuvm.import('fdw_part', '{id,v}');
SELECT gpuvm.import('fdw_e', '{id,v}');
SELECT id, more FROM fdw_parent WHERE v = 5 ORDER BY id;
SELECT fdw_parent FROM fdw_parent WHERE v = 5 ORDER BY id;
SELECT fdw_e, more, xmin FROM fdw_e WHERE v = 5;
SET gpuvm.require = vm;
INSERT INTO fdw_part VALUES (200002, 7);
SELECT count(*), sum(v) FROM fdw_parent;
COPY (SELECT 0, 9, '{}') TO PROGRAM 'cat >gpuvm_fdw_vm/e.csv' (FORMAT csv);
SELECT id, v FROM fdw_parent ORDER BY id;
RESET gpuvm.require;

-- labels of an enum type change places
CREATE TYPE fdw_light AS ENUM ('red', 'green');
COPY (SELECT CASE WHEN i <= 3 THEN 'red' ELSE 'green' END FROM generate_series(1, 8) i) TO PROGRAM 'cat >gpuvm_fdw_vm/l.csv' (FORMAT csv);
CREATE FOREIGN TABLE fdw_l (light fdw_light) SERVER gpuvm OPTIONS (filename 'gpuvm_fdw_vm/l.csv', format 'csv');
-- nothing is loaded for who may not read it
CREATE ROLE fdw_stranger;
SET ROLE fdw_stranger;
SELECT count(*) FROM fdw_l;
RESET ROLE;
DROP ROLE fdw_stranger;
SELECT state FROM gpuvm.tables WHERE relation = 'fdw_l'::regclass;
SET gpuvm.require = vm;
SELECT light, count(*) FROM fdw_l GROUP BY light ORDER BY light;
ALTER TYPE fdw_light RENAME VALUE 'red' TO 'amber';
ALTER TYPE fdw_light RENAME VALUE 'green' TO 'red';
ALTER TYPE fdw_light RENAME VALUE 'amber' TO 'green';
SELECT light, count(*) FROM fdw_l GROUP BY light ORDER BY light;
RESET gpuvm.require;
DROP FOREIGN TABLE fdw_l;
DROP TYPE fdw_light;

-- a domain gets a constraint, a column is generated no more: what was loaded before is not what the parser would say
COPY (SELECT i, '2020-02-02' FROM generate_series(1, 8) i) TO PROGRAM 'cat >gpuvm_fdw_vm/l.csv' (FORMAT csv);
CREATE DOMAIN fdw_small AS int;
CREATE FOREIGN TABLE fdw_l (id fdw_small, day date, twice int GENERATED ALWAYS AS (id * 2) STORED)
	SERVER gpuvm OPTIONS (filename 'gpuvm_fdw_vm/l.csv', format 'csv');
PREPARE l AS SELECT count(*), sum(id), count(twice), max(day) FROM fdw_l;
SET gpuvm.require = vm;
EXECUTE l;
RESET gpuvm.require;
ALTER DOMAIN fdw_small ADD CONSTRAINT fdw_not_large CHECK (VALUE < 8);
EXECUTE l;
SELECT reason FROM gpuvm.why_not('SELECT count(*) FROM fdw_l');
ALTER DOMAIN fdw_small DROP CONSTRAINT fdw_not_large;
SET gpuvm.require = vm;
EXECUTE l;
RESET gpuvm.require;
ALTER FOREIGN TABLE fdw_l ALTER COLUMN twice DROP EXPRESSION;
EXECUTE l;
DEALLOCATE l;
DROP FOREIGN TABLE fdw_l;
DROP DOMAIN fdw_small;

DROP TABLE fdw_parent;
DROP FOREIGN TABLE fdw_t, fdw_domain;
SELECT relation FROM gpuvm.tables WHERE relation::text LIKE 'fdw%';
DROP DOMAIN fdw_positive;
DROP FUNCTION fdw_no_program(int), fdw_rows_from(text);
DROP TABLE fdw_heap, fdw_seen;
COPY (SELECT 1) TO PROGRAM 'rm -r gpuvm_fdw_vm; cat >/dev/null';
