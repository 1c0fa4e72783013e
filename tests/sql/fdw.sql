-- Foreign tables of gpuvm_fdw, as PostgreSQL reads them: options, privileges, rows, errors, statistics.
-- Names of files are relative to the data directory.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SET gpuvm.enabled = off;
COPY (SELECT 1) TO PROGRAM 'rm -rf gpuvm_fdw; mkdir gpuvm_fdw; cat >/dev/null';
COPY (SELECT i, i % 7, i * 0.25, 'name ' || i % 5, DATE '2020-01-01' + i, CASE WHEN i % 10 = 0 THEN NULL ELSE i END
	  FROM generate_series(1, 1000) i) TO PROGRAM 'cat >gpuvm_fdw/plain.csv' (FORMAT csv, HEADER);

CREATE FOREIGN TABLE fdw_plain (id int, k int, price numeric(10,2), name text, day date, maybe bigint) SERVER gpuvm
	OPTIONS (filename 'gpuvm_fdw/plain.csv', format 'csv', header 'true');
SELECT count(*), sum(id), sum(price), min(name), max(day), count(maybe) FROM fdw_plain;
SELECT * FROM fdw_plain WHERE id <= 3;
SELECT k, count(*) FROM fdw_plain WHERE maybe IS NOT NULL GROUP BY k ORDER BY k;
SELECT tableoid::regclass, ctid FROM fdw_plain LIMIT 1;
SELECT count(*) FROM fdw_plain a JOIN fdw_plain b ON a.id = b.k;
EXPLAIN (COSTS off) SELECT * FROM fdw_plain WHERE k = 2;
-- parameters of a nested loop: the file is read again
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT v, n FROM (VALUES (1), (2)) AS v (v), LATERAL (SELECT count(*) AS n FROM fdw_plain WHERE k = v) q ORDER BY v;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
-- a cursor that goes forth only
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM fdw_plain;
FETCH 2 FROM c;
MOVE 500 FROM c;
FETCH 1 FROM c;
COMMIT;

-- COPY's options
COPY (SELECT 1) TO PROGRAM $$printf '1;x;"q;1"\n2;\\N;""\n3;"";\n' >gpuvm_fdw/odd.csv; cat >/dev/null$$;
CREATE FOREIGN TABLE fdw_odd (a int, b text, c text OPTIONS (force_not_null 'true')) SERVER gpuvm
	OPTIONS (filename 'gpuvm_fdw/odd.csv', format 'csv', delimiter ';', "null" '\N');
SELECT a, b, b IS NULL AS b_null, c, c IS NULL AS c_null FROM fdw_odd;
ALTER FOREIGN TABLE fdw_odd OPTIONS (DROP "null");
SELECT a, b, b IS NULL AS b_null, c, c IS NULL AS c_null FROM fdw_odd;
ALTER FOREIGN TABLE fdw_odd ALTER b OPTIONS (ADD force_null 'true');
SELECT a, b, b IS NULL AS b_null, c, c IS NULL AS c_null FROM fdw_odd;
COPY (SELECT 1) TO PROGRAM $$printf 'a|\344\na|\\n\n' >gpuvm_fdw/latin.txt; cat >/dev/null$$;
CREATE FOREIGN TABLE fdw_latin (a text, b text) SERVER gpuvm
	OPTIONS (filename 'gpuvm_fdw/latin.txt', delimiter '|', encoding 'LATIN1');
SELECT a, length(b), octet_length(b) FROM fdw_latin;
COPY (SELECT 7, 'seven'::text) TO PROGRAM 'cat >gpuvm_fdw/rows.bin' (FORMAT binary);
CREATE FOREIGN TABLE fdw_binary (a int, b text) SERVER gpuvm OPTIONS (filename 'gpuvm_fdw/rows.bin', format 'binary');
SELECT * FROM fdw_binary;
COPY (SELECT 1 WHERE false) TO PROGRAM 'cat >gpuvm_fdw/empty.csv';
CREATE FOREIGN TABLE fdw_empty (a int) SERVER gpuvm OPTIONS (filename 'gpuvm_fdw/empty.csv', format 'csv');
SELECT count(*), sum(a) FROM fdw_empty;

-- what is refused
CREATE FOREIGN TABLE fdw_bad (a int) SERVER gpuvm OPTIONS (format 'csv');
CREATE FOREIGN TABLE fdw_bad (a int) SERVER gpuvm OPTIONS (filename 'x', persist 'off');
CREATE FOREIGN TABLE fdw_bad (a int) SERVER gpuvm OPTIONS (persist 'maybe');
CREATE FOREIGN TABLE fdw_bad (a int) SERVER gpuvm OPTIONS (filename 'x', format 'xml');
CREATE FOREIGN TABLE fdw_bad (a int) SERVER gpuvm OPTIONS (filename 'x', quote '"');
CREATE FOREIGN TABLE fdw_bad (a int) SERVER gpuvm OPTIONS (filename 'x', program 'ls');
CREATE FOREIGN TABLE fdw_bad (a int OPTIONS (force_null 'maybe')) SERVER gpuvm OPTIONS (filename 'x');
CREATE FOREIGN TABLE fdw_bad (a int OPTIONS (filename 'x')) SERVER gpuvm OPTIONS (filename 'x');
ALTER SERVER gpuvm OPTIONS (filename 'x');
ALTER FOREIGN DATA WRAPPER gpuvm_fdw OPTIONS (format 'csv');
CREATE USER MAPPING FOR CURRENT_USER SERVER gpuvm OPTIONS (filename 'x');
INSERT INTO fdw_plain (id) VALUES (1);
UPDATE fdw_plain SET id = 2;
DELETE FROM fdw_plain;
TRUNCATE fdw_plain;
COPY fdw_plain FROM PROGRAM 'echo 1';
SELECT id FROM fdw_plain WHERE id = 1 FOR UPDATE;

-- errors are COPY's, with the line and the file
CREATE FUNCTION fdw_error(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	context text;
	state text;
BEGIN
	EXECUTE query;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, context = PG_EXCEPTION_CONTEXT, state = RETURNED_SQLSTATE;
	RETURN state || ': ' || message || ' | ' || split_part(context, 'SQL statement', 1);
END$$;
COPY (SELECT 1) TO PROGRAM $$printf '1,2\n3,x\n' >gpuvm_fdw/bad.csv; cat >/dev/null$$;
CREATE FOREIGN TABLE fdw_bad (a int, b int) SERVER gpuvm OPTIONS (filename 'gpuvm_fdw/bad.csv', format 'csv');
SELECT fdw_error('SELECT count(*) FROM fdw_bad');
COPY (SELECT 1) TO PROGRAM $$printf '1,2\n3,4\n5\n' >gpuvm_fdw/bad.csv; cat >/dev/null$$;
SELECT fdw_error('SELECT count(*) FROM fdw_bad');
COPY (SELECT 1) TO PROGRAM $$printf '1,2\n3,4,5\n' >gpuvm_fdw/bad.csv; cat >/dev/null$$;
SELECT fdw_error('SELECT count(*) FROM fdw_bad');
COPY (SELECT 1) TO PROGRAM $$rm gpuvm_fdw/bad.csv; cat >/dev/null$$;
SELECT fdw_error('SELECT count(*) FROM fdw_bad');
SELECT fdw_error('ANALYZE fdw_bad');
EXPLAIN (COSTS off) SELECT * FROM fdw_bad;
ALTER FOREIGN TABLE fdw_bad OPTIONS (SET filename 'gpuvm_fdw');
SELECT fdw_error('SELECT count(*) FROM fdw_bad');

-- who may: only who may read files says which, and any who may read the table reads it
CREATE ROLE fdw_reader;
CREATE ROLE fdw_definer;
GRANT pg_read_server_files TO fdw_definer;
GRANT SELECT ON fdw_plain TO fdw_reader;
CREATE SCHEMA fdw_theirs;
GRANT ALL ON SCHEMA fdw_theirs TO fdw_reader, fdw_definer;
SET ROLE fdw_reader;
SELECT count(*) FROM fdw_plain;
CREATE FOREIGN TABLE fdw_theirs.t (a int) SERVER gpuvm OPTIONS (filename 'gpuvm_fdw/empty.csv', format 'csv');
SET ROLE fdw_definer;
CREATE FOREIGN TABLE fdw_theirs.t (a int) SERVER gpuvm OPTIONS (filename 'gpuvm_fdw/empty.csv', format 'csv');
SELECT count(*) FROM fdw_theirs.t;
SELECT count(*) FROM fdw_plain;
RESET ROLE;
ALTER FOREIGN TABLE fdw_theirs.t OWNER TO fdw_reader;
SET ROLE fdw_reader;
ALTER FOREIGN TABLE fdw_theirs.t OPTIONS (SET filename 'gpuvm_fdw/plain.csv');
RESET ROLE;

-- statistics
ANALYZE fdw_plain;
SELECT reltuples FROM pg_class WHERE oid = 'fdw_plain'::regclass;
SELECT attname, null_frac::numeric(3,2), n_distinct FROM pg_stats WHERE tablename = 'fdw_plain' ORDER BY attname;
COPY (SELECT i, i % 3 FROM generate_series(1, 50000) i) TO PROGRAM 'cat >gpuvm_fdw/large.csv' (FORMAT csv);
CREATE FOREIGN TABLE fdw_large (id int, k int) SERVER gpuvm OPTIONS (filename 'gpuvm_fdw/large.csv', format 'csv');
ANALYZE fdw_large;
SELECT reltuples FROM pg_class WHERE oid = 'fdw_large'::regclass;
SELECT attname, n_distinct FROM pg_stats WHERE tablename = 'fdw_large' ORDER BY attname;

-- rows of a partition, constraints, generated columns and views
CREATE TABLE fdw_parent (id int, k int) PARTITION BY RANGE (id);
CREATE TABLE fdw_heap PARTITION OF fdw_parent FOR VALUES FROM (50001) TO (60000);
INSERT INTO fdw_heap VALUES (50001, 0), (50002, 1);
ALTER TABLE fdw_parent ATTACH PARTITION fdw_large FOR VALUES FROM (1) TO (50001);
SELECT k, count(*) FROM fdw_parent GROUP BY k ORDER BY k;
SELECT * FROM fdw_parent WHERE id BETWEEN 49999 AND 50001 ORDER BY id;

-- a folder of files
COPY (SELECT 1) TO PROGRAM $$mkdir gpuvm_fdw/folder; cd gpuvm_fdw/folder; printf 'id,"the name",id,\n1,a,2,3\n' >"One two.csv"; printf '1;2\n3;4\n' >plain.txt; printf 'a,b\n1,2\n' >two.csv; : >empty.csv; mkdir sub.csv; : >.csv; cat >/dev/null$$;
CREATE SCHEMA fdw_folder;
IMPORT FOREIGN SCHEMA "gpuvm_fdw/folder" FROM SERVER gpuvm INTO fdw_folder;
SELECT attrelid::regclass AS "table", attname, atttypid::regtype AS type FROM pg_attribute
	WHERE attrelid::regclass::text LIKE 'fdw_folder.%' AND attnum > 0 ORDER BY attrelid::regclass::text, attnum;
SELECT foreign_table_name, option_name, option_value FROM information_schema.foreign_table_options
	WHERE foreign_table_schema = 'fdw_folder' ORDER BY 1, 2;
SELECT * FROM fdw_folder."One two";
SELECT * FROM fdw_folder.two;
IMPORT FOREIGN SCHEMA "gpuvm_fdw/folder" LIMIT TO (plain, two) FROM SERVER gpuvm INTO fdw_folder OPTIONS (ending '.txt', header 'false', delimiter ';');
SELECT * FROM fdw_folder.plain;
IMPORT FOREIGN SCHEMA "gpuvm_fdw/none" FROM SERVER gpuvm INTO fdw_folder;
IMPORT FOREIGN SCHEMA "gpuvm_fdw" FROM SERVER gpuvm INTO fdw_folder OPTIONS (format 'text');
IMPORT FOREIGN SCHEMA "gpuvm_fdw" FROM SERVER gpuvm INTO fdw_folder OPTIONS (filename 'x');
-- names that columns cannot have, quotes within quotes, and a file whose name is none
COPY (SELECT 1) TO PROGRAM $$mkdir gpuvm_fdw/names; cd gpuvm_fdw/names; printf 'c2,,ctid\n1,2,3\n' >taken.csv; printf '"a""b","c,d"\n1,2\n' >quotes.csv; printf 'a\n1\n' >"$(printf '\377.csv')"; cat >/dev/null$$;
IMPORT FOREIGN SCHEMA "gpuvm_fdw/names" LIMIT TO (taken) FROM SERVER gpuvm INTO fdw_folder;
SELECT c2, c5, c3 FROM fdw_folder.taken;
IMPORT FOREIGN SCHEMA "gpuvm_fdw/names" EXCEPT (taken) FROM SERVER gpuvm INTO fdw_folder OPTIONS (header 'match');
SELECT "a""b", "c,d" FROM fdw_folder.quotes;
GRANT ALL ON SCHEMA fdw_folder TO fdw_reader;
SET ROLE fdw_reader;
IMPORT FOREIGN SCHEMA "gpuvm_fdw/folder" EXCEPT (two) FROM SERVER gpuvm INTO fdw_folder;
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA fdw_folder CASCADE;
RESET client_min_messages;

-- a cursor that begins to read in a subtransaction outlives it, also where the file is read again
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM fdw_plain;
DECLARE d CURSOR FOR SELECT i, (SELECT sum(k) FROM fdw_plain WHERE id > i) FROM generate_series(998, 1000) i;
FETCH d;
SAVEPOINT s;
FETCH c;
FETCH d;
ROLLBACK TO s;
FETCH c;
MOVE 900 FROM c;
FETCH c;
FETCH d;
COMMIT;

DROP SCHEMA fdw_theirs CASCADE;
DROP TABLE fdw_parent;
DROP FOREIGN TABLE fdw_plain, fdw_odd, fdw_latin, fdw_binary, fdw_empty, fdw_bad;
DROP FUNCTION fdw_error;
DROP ROLE fdw_reader;
DROP ROLE fdw_definer;
COPY (SELECT 1) TO PROGRAM 'rm -r gpuvm_fdw; cat >/dev/null';
