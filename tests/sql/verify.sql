-- gpuvm.verify(): tablets against their checksums, and against the heap. What is corrupt is tests/t/027_verify.pl's.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE ROLE regress_gpuvm_owner;
CREATE ROLE regress_gpuvm_reader;
CREATE ROLE regress_gpuvm_other;
CREATE SCHEMA verify AUTHORIZATION regress_gpuvm_owner;
GRANT USAGE ON SCHEMA verify TO PUBLIC;
SET search_path = verify;
SET gpuvm.tablet_size = '64kB';
SET gpuvm.force = on;
SET ROLE regress_gpuvm_owner;

-- Every form of a column: plain ones of all widths, floats, numerics, wide ones, dictionaries, variable ones, nulls, none but nulls.
CREATE TABLE forms (i int, s int2, l int8, same int, b bool, r float4, f float8, n numeric(10, 2), w numeric, t text, v text, j jsonb, d date,
	nothing int) WITH (autovacuum_enabled = off);
INSERT INTO forms
SELECT i, i % 7, hashint8extended(i, 1), 5, i % 3 = 0, i / 3.0, CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-0' ELSE i / 7.0 END,
	i / 100.0, CASE WHEN i % 100 = 0 THEN 'NaN' ELSE i * 1e20::numeric(40) END, 'text ' || i % 10,
	CASE WHEN i % 4 <> 0 THEN repeat(i::text, i % 20) END, jsonb_build_object('a', i), date '2020-01-01' + i, NULL
FROM generate_series(1, 20000) i;
SELECT gpuvm.verify('forms');
SELECT gpuvm.import('forms');
SELECT count(DISTINCT tablet) > 3 AS tablets FROM gpuvm.tablets WHERE relation = 'forms'::regclass;
SELECT * FROM gpuvm.verify('forms');
SELECT * FROM gpuvm.verify('forms', heap => true);

-- Rows that have changed since are not what the tablets answer for; a refresh makes some of the tablets anew, and longer dictionaries.
UPDATE forms SET t = 'changed ' || i, v = NULL, l = -l WHERE i % 1000 = 0;
DELETE FROM forms WHERE i BETWEEN 3000 AND 3100;
INSERT INTO forms SELECT i, 1, i, 5, true, 1, 1, 1, 1e20, 'new ' || i, 'v', '[]', '2021-01-01', NULL FROM generate_series(20001, 21000) i;
SELECT * FROM gpuvm.verify('forms', heap => true);
SELECT gpuvm.refresh('forms') > 0 AS refreshed;
SELECT * FROM gpuvm.verify('forms', heap => true);
SET gpuvm.require = :device;
SELECT count(*), sum(i), count(DISTINCT t) FROM forms;
RESET gpuvm.require;
-- A query that re-stamps makes a version that differs in that.
UPDATE forms SET s = s WHERE i = 15000;
RESET ROLE;
VACUUM forms;
SET ROLE regress_gpuvm_owner;
SELECT count(*) FROM forms;
SELECT * FROM gpuvm.verify('forms', heap => true);
-- Without its former columns.
ALTER TABLE forms DROP COLUMN v, ADD COLUMN late int DEFAULT 7;
SELECT * FROM gpuvm.verify('forms');
SELECT * FROM gpuvm.verify('forms', heap => true);
SELECT gpuvm.import('forms');
SELECT * FROM gpuvm.verify('forms', heap => true);

-- An empty one.
CREATE TABLE empty (a int) WITH (autovacuum_enabled = off);
SELECT gpuvm.import('empty');
SELECT * FROM gpuvm.verify('empty', heap => true);

-- Partitions, those that are imported.
CREATE TABLE parts (a int, t text) PARTITION BY RANGE (a);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000) WITH (autovacuum_enabled = off);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1000) TO (2000) WITH (autovacuum_enabled = off);
INSERT INTO parts SELECT i, 'p' || i % 5 FROM generate_series(0, 1999) i;
SELECT * FROM gpuvm.verify('parts');
SELECT gpuvm.import('parts_2');
SELECT * FROM gpuvm.verify('parts', heap => true);
SELECT * FROM gpuvm.verify('parts_1');
SELECT gpuvm.import('parts');
SELECT * FROM gpuvm.verify('parts', heap => true);

-- Tables without a heap.
CREATE FOREIGN TABLE stored (a int, t text) SERVER gpuvm;
INSERT INTO stored SELECT i, 's' || i FROM generate_series(1, 5000) i;
DELETE FROM stored WHERE a % 10 = 0;
SELECT gpuvm.import('stored');
SELECT * FROM gpuvm.verify('stored');
SELECT * FROM gpuvm.verify('stored', heap => true);
-- As partitions they are looked at beside others, if they are imported, and not compared.
CREATE TABLE mixed (a int, t text) PARTITION BY RANGE (a);
CREATE TABLE mixed_1 PARTITION OF mixed FOR VALUES FROM (0) TO (1000) WITH (autovacuum_enabled = off);
CREATE FOREIGN TABLE mixed_2 PARTITION OF mixed FOR VALUES FROM (1000) TO (2000) SERVER gpuvm;
INSERT INTO mixed SELECT i, 'm' || i % 5 FROM generate_series(0, 1999) i;
SELECT gpuvm.import('mixed_2');
SELECT * FROM gpuvm.verify('mixed');
SELECT gpuvm.import('mixed');
SELECT * FROM gpuvm.verify('mixed', heap => true);
-- A column that tablets do not have the values of is nothing to compare, of a foreign table nothing to look for.
CREATE TABLE long (a int, t text) WITH (autovacuum_enabled = off);
ALTER TABLE long ALTER t SET STORAGE EXTERNAL;
INSERT INTO long VALUES (1, 'short'), (2, repeat('long', 300000));
CREATE FOREIGN TABLE long_stored (a int, t text) SERVER gpuvm;
INSERT INTO long_stored TABLE long;
SELECT gpuvm.import('long'), gpuvm.import('long_stored');
SELECT relation, columns FROM gpuvm.tables WHERE relation IN ('long'::regclass, 'long_stored'::regclass) ORDER BY relation::text;
SELECT * FROM gpuvm.verify('long', heap => true);
SELECT * FROM gpuvm.verify('long_stored');
SELECT * FROM gpuvm.verify('long_stored', heap => true);

-- Who may: the owner, and who may read all of it.
GRANT SELECT ON forms, parts TO regress_gpuvm_reader;
GRANT SELECT (i) ON forms TO regress_gpuvm_other;
SET ROLE regress_gpuvm_reader;
SELECT * FROM gpuvm.verify('forms', heap => true);
SELECT * FROM gpuvm.verify('parts');
SELECT * FROM gpuvm.verify('parts_1');
SET ROLE regress_gpuvm_other;
SELECT * FROM gpuvm.verify('forms');
SET ROLE regress_gpuvm_owner;
ALTER TABLE forms ENABLE ROW LEVEL SECURITY;
SELECT * FROM gpuvm.verify('forms');
SET ROLE regress_gpuvm_reader;
SELECT * FROM gpuvm.verify('forms');
RESET ROLE;
SELECT * FROM gpuvm.verify('forms');
SELECT * FROM gpuvm.verify('pg_class');
SELECT * FROM gpuvm.verify(0);
SELECT * FROM gpuvm.verify(NULL);

-- The version that it looks at stays until it ends; so does the table.
BEGIN;
SELECT * FROM gpuvm.verify('forms');
SELECT mode FROM pg_locks WHERE relation = 'forms'::regclass AND pid = pg_backend_pid();
COMMIT;

SET client_min_messages = warning;
DROP SCHEMA verify CASCADE;
DROP ROLE regress_gpuvm_owner, regress_gpuvm_reader, regress_gpuvm_other;
