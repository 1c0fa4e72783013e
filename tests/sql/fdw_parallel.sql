-- Large files are loaded by several processes, each of which parses parts of the file: the rows, their order and the errors are
-- those of one process. Names of files are relative to the data directory.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SET gpuvm.force = on;
SET max_parallel_maintenance_workers = 2;
SET max_parallel_workers_per_gather = 0;
COPY (SELECT 1) TO PROGRAM 'rm -rf gpuvm_fdw_parallel; mkdir gpuvm_fdw_parallel; cat >/dev/null';
-- values with all that may end a line, or seem to: quotes, escapes, backslashes, line ends, end markers, several bytes a character
CREATE TABLE fdwp_rows AS SELECT i AS id, CASE i % 11 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN E'two\nlines' WHEN 3 THEN '"' || i || '"'
		WHEN 4 THEN E'\\' WHEN 5 THEN 'a,"b",''c''' WHEN 6 THEN E'\\.\n\\.' WHEN 7 THEN E'"\n"' WHEN 8 THEN E'''\n\\''' WHEN 9 THEN 'übergrößenträger'
		ELSE i::text END AS odd,
		repeat(chr(97 + i % 7), i % 90) AS filler, (i * 0.25)::numeric(10,2) AS price, DATE '2020-01-01' + i % 400 AS day
	FROM generate_series(1, 108000) i;

-- What is loaded, compared with the table; in how many parts, as each of them ends a tablet; are the tablets in the file's order?
CREATE FUNCTION fdwp_check(name regclass, OUT rows bigint, OUT right_ones bigint, OUT parts bigint, OUT ordered bool) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('gpuvm.require', 'vm', true);
	EXECUTE format('CREATE TEMP TABLE fdwp_seen ON COMMIT DROP AS SELECT * FROM %s', name);
	PERFORM set_config('gpuvm.require', 'any', true);
	SELECT count(*) INTO rows FROM fdwp_seen;
	SELECT count(*) INTO right_ones FROM fdwp_seen s JOIN fdwp_rows r USING (id)
		WHERE s.odd IS NOT DISTINCT FROM r.odd AND s.filler = r.filler AND s.price = r.price AND s.day = r.day;
	SELECT count(*), bool_and(first_block = coalesce(before_block, 0) AND min::int = coalesce(before, 0) + 1) INTO parts, ordered
		FROM (SELECT t.*, lag(max::int) OVER w AS before, lag(first_block + blocks) OVER w AS before_block
			  FROM gpuvm.tablets t WHERE relation = name AND "column" = 'id' WINDOW w AS (ORDER BY tablet)) t;
END$$;
\set columns '(id int, odd text, filler text, price numeric(10,2), day date)'

-- csv: loaded by a query, by gpuvm.import(), by one process
COPY fdwp_rows TO PROGRAM 'cat >gpuvm_fdw_parallel/plain.csv' (FORMAT csv, HEADER);
CREATE FOREIGN TABLE fdwp_csv :columns SERVER gpuvm OPTIONS (filename 'gpuvm_fdw_parallel/plain.csv', format 'csv', header 'match');
SELECT * FROM fdwp_check('fdwp_csv');
SELECT gpuvm.release('fdwp_csv');
SELECT gpuvm.import('fdwp_csv');
SELECT * FROM fdwp_check('fdwp_csv');
SELECT gpuvm.release('fdwp_csv');
SET max_parallel_maintenance_workers = 0;
SELECT * FROM fdwp_check('fdwp_csv');
RESET max_parallel_maintenance_workers;
-- columns of it, and lines that all end in CR LF, also within values
SELECT gpuvm.import('fdwp_csv', '{id,price}');
SELECT count(DISTINCT tablet), sum(rows) FILTER (WHERE "column" = 'id') FROM gpuvm.tablets WHERE relation = 'fdwp_csv'::regclass;
SELECT sum(id), sum(price) FROM fdwp_csv;
COPY fdwp_rows TO PROGRAM $$sed 's/$/\r/' >gpuvm_fdw_parallel/crlf.csv$$ (FORMAT csv, FORCE_QUOTE (odd, day));
CREATE FOREIGN TABLE fdwp_crlf :columns SERVER gpuvm OPTIONS (filename 'gpuvm_fdw_parallel/crlf.csv', format 'csv');
SELECT rows, parts, ordered FROM fdwp_check('fdwp_crlf');
SELECT count(*) FROM fdwp_crlf f JOIN fdwp_rows r USING (id) WHERE replace(f.odd, E'\r', '') IS DISTINCT FROM coalesce(r.odd, '') AND r.odd IS NOT NULL;
-- other quotes, and an escape of its own
COPY fdwp_rows TO PROGRAM 'cat >gpuvm_fdw_parallel/quotes.csv' (FORMAT csv, QUOTE '''', ESCAPE '\', DELIMITER ';', NULL '-');
CREATE FOREIGN TABLE fdwp_quotes :columns SERVER gpuvm
	OPTIONS (filename 'gpuvm_fdw_parallel/quotes.csv', format 'csv', quote '''', escape '\', delimiter ';', "null" '-');
SELECT * FROM fdwp_check('fdwp_quotes');
-- text: line ends within values, as COPY writes them, and behind a backslash
COPY fdwp_rows TO PROGRAM $$sed 's/\\n/\\\n/g' >gpuvm_fdw_parallel/plain.txt$$;
CREATE FOREIGN TABLE fdwp_text :columns SERVER gpuvm OPTIONS (filename 'gpuvm_fdw_parallel/plain.txt');
SELECT * FROM fdwp_check('fdwp_text');
-- encodings: by the option, by the setting, and one that is read by one process
COPY fdwp_rows TO PROGRAM 'cat >gpuvm_fdw_parallel/latin.csv' (FORMAT csv, ENCODING 'LATIN1');
CREATE FOREIGN TABLE fdwp_latin :columns SERVER gpuvm OPTIONS (filename 'gpuvm_fdw_parallel/latin.csv', format 'csv', encoding 'LATIN1');
SELECT * FROM fdwp_check('fdwp_latin');
ALTER FOREIGN TABLE fdwp_latin OPTIONS (DROP encoding);
SET client_encoding = 'LATIN1';
SELECT * FROM fdwp_check('fdwp_latin');
RESET client_encoding;
COPY fdwp_rows TO PROGRAM 'cat >gpuvm_fdw_parallel/chinese.csv' (FORMAT csv, ENCODING 'GB18030');
CREATE FOREIGN TABLE fdwp_chinese :columns SERVER gpuvm OPTIONS (filename 'gpuvm_fdw_parallel/chinese.csv', format 'csv', encoding 'GB18030');
SELECT * FROM fdwp_check('fdwp_chinese');

-- in transactions and subtransactions, and one that is rolled back
BEGIN ISOLATION LEVEL SERIALIZABLE;
SAVEPOINT s;
CREATE TABLE fdwp_other (a int);
SELECT gpuvm.import('fdwp_text', '{id}');
ROLLBACK TO s;
SELECT gpuvm.import('fdwp_text');
SELECT rows, right_ones, parts FROM fdwp_check('fdwp_text');
COMMIT;
BEGIN READ ONLY;
SELECT gpuvm.release('fdwp_text');
ROLLBACK;
SELECT sum(id) FROM fdwp_text;
SELECT gpuvm.release('fdwp_text');
\set VERBOSITY terse
SET statement_timeout = '10ms';
SELECT gpuvm.import('fdwp_text');
SELECT sum(id) FROM fdwp_text;
RESET statement_timeout;
\set VERBOSITY default
SELECT * FROM gpuvm.import_progress;
-- a leaf's dictionary goes on from another one's
CREATE TABLE fdwp_parent (id int, odd text, filler text, price numeric(10,2), day date) PARTITION BY RANGE (id);
ALTER TABLE fdwp_parent ATTACH PARTITION fdwp_text FOR VALUES FROM (1) TO (200000);
CREATE TABLE fdwp_leaf PARTITION OF fdwp_parent FOR VALUES FROM (200000) TO (300000);
INSERT INTO fdwp_leaf SELECT id + 200000, left(odd, 1), filler, price, day FROM fdwp_rows LIMIT 1000;
SELECT gpuvm.import('fdwp_leaf');
SET gpuvm.require = vm;
SELECT filler, count(*) FROM fdwp_parent WHERE length(filler) = 3 GROUP BY filler ORDER BY filler;
RESET gpuvm.require;

-- errors are those of one process: the first line that is wrong, with its number
COPY (SELECT 1) TO PROGRAM $$cd gpuvm_fdw_parallel; cat >/dev/null; (cat plain.csv; echo '1,x') >bad.csv$$;
CREATE FOREIGN TABLE fdwp_bad :columns SERVER gpuvm OPTIONS (filename 'gpuvm_fdw_parallel/bad.csv', format 'csv', header 'true');
SELECT gpuvm.import('fdwp_bad');
SELECT count(*) FROM fdwp_bad;
COPY (SELECT 1) TO PROGRAM $$cd gpuvm_fdw_parallel; cat >/dev/null; (cat plain.csv; echo '108001,x,x,x,x'; tail -n +2 plain.csv; echo '1,x') >bad.csv$$;
SELECT gpuvm.import('fdwp_bad');
COPY (SELECT 1) TO PROGRAM $$cd gpuvm_fdw_parallel; cat >/dev/null; (cat plain.csv; printf '108001,x,x,1,2020-01-01\r\n') >bad.csv$$;
SELECT gpuvm.import('fdwp_bad');
COPY (SELECT 1) TO PROGRAM $$cd gpuvm_fdw_parallel; cat >/dev/null; (cat plain.csv; printf '108001,"x,x,1,2020-01-01\n') >bad.csv$$;
SELECT gpuvm.import('fdwp_bad');
-- an end marker: what follows is not read
COPY (SELECT 1) TO PROGRAM $$cd gpuvm_fdw_parallel; cat >/dev/null; (cat plain.csv; printf '\\.\n'; echo '1,x'; cat plain.csv) >bad.csv$$;
SELECT * FROM fdwp_check('fdwp_bad');
-- what the parts have begun is gone when one process has read the file
SELECT gpuvm.import('fdwp_bad') AS rows, (SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'gpuvm file reader') AS readers;

-- a type whose input function may not run in other processes; lines as long as parts are; lines that end in CR; nothing
CREATE TYPE fdwp_own;
SET client_min_messages = warning;
CREATE FUNCTION fdwp_own_in(cstring) RETURNS fdwp_own LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION fdwp_own_out(fdwp_own) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
RESET client_min_messages;
CREATE TYPE fdwp_own (INPUT = fdwp_own_in, OUTPUT = fdwp_own_out, LIKE = int4);
CREATE FOREIGN TABLE fdwp_typed (id int, odd text, filler text, price numeric(10,2), day date, own fdwp_own[]) SERVER gpuvm
	OPTIONS (filename 'gpuvm_fdw_parallel/typed.csv', format 'csv');
COPY (SELECT *, ARRAY[id] FROM fdwp_rows) TO PROGRAM 'cat >gpuvm_fdw_parallel/typed.csv' (FORMAT csv);
SELECT gpuvm.import('fdwp_typed', '{id,price}');
SELECT count(DISTINCT tablet) FROM gpuvm.tablets WHERE relation = 'fdwp_typed'::regclass;
COPY (SELECT i, repeat(E'long "line"\n', CASE WHEN i % 3 = 0 THEN 80000 ELSE i END) FROM generate_series(1, 30) i) TO PROGRAM 'cat >gpuvm_fdw_parallel/long.csv' (FORMAT csv);
CREATE FOREIGN TABLE fdwp_long (id int, long text) SERVER gpuvm OPTIONS (filename 'gpuvm_fdw_parallel/long.csv', format 'csv');
SELECT gpuvm.import('fdwp_long');
SELECT count(DISTINCT tablet) > 1 AS parts FROM gpuvm.tablets WHERE relation = 'fdwp_long'::regclass;
SELECT count(*), sum(id), sum(length(long)), count(*) FILTER (WHERE long = repeat(E'long "line"\n', length(long) / 12)) FROM fdwp_long;
COPY (SELECT i, i FROM generate_series(1, 700000) i) TO PROGRAM $$tr '\n' '\r' >gpuvm_fdw_parallel/cr.csv$$ (FORMAT csv);
CREATE FOREIGN TABLE fdwp_cr (id int, v int) SERVER gpuvm OPTIONS (filename 'gpuvm_fdw_parallel/cr.csv', format 'csv');
SELECT gpuvm.import('fdwp_cr');
COPY (SELECT 1) TO PROGRAM ': >gpuvm_fdw_parallel/cr.csv; cat >/dev/null';
SELECT gpuvm.refresh('fdwp_cr');
SELECT count(*) FROM fdwp_cr;
-- numerics of different scales are found late: another attempt
COPY (SELECT i, CASE WHEN i > 200000 THEN '1.5' ELSE '1.25' END, md5(i::text) FROM generate_series(1, 220000) i) TO PROGRAM 'cat >gpuvm_fdw_parallel/forms.csv' (FORMAT csv);
CREATE FOREIGN TABLE fdwp_forms (id int, n numeric, t text) SERVER gpuvm OPTIONS (filename 'gpuvm_fdw_parallel/forms.csv', format 'csv');
SELECT gpuvm.import('fdwp_forms');
SELECT count(*), sum(n), count(*) FILTER (WHERE t = md5(id::text)) FROM fdwp_forms;

SET client_min_messages = warning;
DROP TABLE fdwp_parent, fdwp_rows;
DROP FOREIGN TABLE fdwp_csv, fdwp_crlf, fdwp_quotes, fdwp_latin, fdwp_chinese, fdwp_bad, fdwp_typed, fdwp_long, fdwp_cr, fdwp_forms;
DROP TYPE fdwp_own CASCADE;
DROP FUNCTION fdwp_check;
COPY (SELECT 1) TO PROGRAM 'rm -rf gpuvm_fdw_parallel; cat >/dev/null';
