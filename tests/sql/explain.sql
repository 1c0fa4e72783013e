-- EXPLAIN, gpuvm.disassemble() and gpuvm.why_not().
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA explain_test;
SET search_path = explain_test;

-- The device's name, times and sizes differ from machine to machine.
CREATE FUNCTION masked(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		line := regexp_replace(line, format('(Device: )%s(:\d+)?$', replace(current_setting('gpuvm.device'), 'auto', '(cpu|cuda)')),
			'\1virtual machine');
		line := regexp_replace(line, '(Tier: ).*', '\1(tier)');
		line := regexp_replace(line, 'Memory: \d+kB', 'Memory: (size)');
		RETURN NEXT line;
	END LOOP;
END $$;

CREATE TABLE test (id int4 NOT NULL, uniformi int4 NOT NULL, normali5 int4 NOT NULL, normali20 int4 NOT NULL,
	uniformf float4 NOT NULL, normalf5 float4 NOT NULL, normalf20 float4 NOT NULL, note text) WITH (autovacuum_enabled = off);
INSERT INTO test SELECT i, i % 199 - 99, i % 21 - 10, i % 81 - 40, i % 199 - 99, i % 21 - 10, i % 81 - 40, 'n' FROM generate_series(1, 3000) i;
CREATE TABLE other (id int, v float8) WITH (autovacuum_enabled = off);
INSERT INTO other SELECT i, i FROM generate_series(1, 100) i;
CREATE TABLE zeroes (f float4) WITH (autovacuum_enabled = off);
INSERT INTO zeroes VALUES ('-0'), ('0');
CREATE TABLE elsewhere (id int, v int);
SET client_min_messages = warning;
SELECT gpuvm.import('test'), gpuvm.import('other'), gpuvm.import('zeroes');
RESET client_min_messages;
ANALYZE test, other, elsewhere;
SET gpuvm.force = on;

EXPLAIN (COSTS OFF) SELECT id, uniformi, normali5 FROM test WHERE uniformi > 60 AND normali5 < 0;
EXPLAIN (COSTS OFF) SELECT max(normali5), min(normali5) FROM test;
EXPLAIN (COSTS OFF) SELECT normali5 % 3 AS m, uniformi > 0, count(*), avg(normalf5) FILTER (WHERE id > 5) FROM test
WHERE normali20 BETWEEN -5 AND 5 GROUP BY 1, 2 HAVING count(*) > 3 ORDER BY 1, 2 LIMIT 4;
EXPLAIN (COSTS OFF) SELECT t.id FROM test t JOIN elsewhere e USING (id) WHERE t.uniformi = 5;
EXPLAIN (COSTS OFF) SELECT count(*) FROM test;
-- The program, the settings.
EXPLAIN (COSTS OFF, VERBOSE) SELECT id, uniformi + 1 FROM test WHERE uniformi > 60 AND normali5 < 0;
EXPLAIN (COSTS OFF, VERBOSE) SELECT uniformi, sum(normali5) FROM test GROUP BY uniformi;
SELECT line LIKE '%gpuvm.force = ''on''%' AS shown FROM masked('SELECT count(*) FROM test', 'COSTS OFF, SETTINGS') line WHERE line LIKE 'Settings:%';
-- ANALYZE: what ran.
SELECT masked('SELECT id, uniformi FROM test WHERE uniformi > 60 AND normali5 < 0', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF');
SELECT masked('SELECT uniformi, count(*) FROM test WHERE id <= 1000 GROUP BY 1 ORDER BY 1 LIMIT 3', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF');
-- No value in any tablet can pass.
SELECT masked('SELECT id FROM test WHERE uniformi > 1000', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF');
-- A scan that is run for each row of another: sums over its runs.
SELECT masked('SELECT e.i, (SELECT count(*) FROM other WHERE id > e.i) FROM generate_series(1, 3) e (i)', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF');
-- A fallback is never silent.
SELECT masked('SELECT min(f) FROM zeroes', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF');
-- What tablets do not serve is read from the heap, and is shown.
BEGIN;
INSERT INTO other VALUES (101, 101);
SELECT masked('SELECT count(*) FROM other WHERE id > 50', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF');
ROLLBACK;
SELECT masked('SELECT sum(v) FROM other WHERE id > 50', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF');
SET client_min_messages = warning;
SELECT gpuvm.import('other');
RESET client_min_messages;
-- Costs, sizes and times appear where they are asked for.
SELECT regexp_replace(trim(line), '[0-9.]+', 'N', 'g') FROM masked('SELECT count(*) FROM test WHERE id > 5', 'ANALYZE, BUFFERS OFF') line
WHERE line ~ 'Bytes Read|Engine Time';
-- The other formats are well-formed, and hold the same.
CREATE FUNCTION as_json(query text, options text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	result json;
BEGIN
	EXECUTE format('EXPLAIN (FORMAT JSON, %s) %s', options, query) INTO result;
	RETURN result;
END $$;
CREATE FUNCTION as_xml(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('EXPLAIN (FORMAT XML, VERBOSE, COSTS OFF) %s', query) INTO result;
	RETURN result LIKE '%<Custom-Plan-Provider>GpuVM</Custom-Plan-Provider>%</Program>%';
END $$;
SELECT node ->> 'Node Type' AS type, node ->> 'Custom Plan Provider' AS provider, node ->> 'Relation Name' AS relation,
	node ->> 'VM Filter' AS filter, jsonb_typeof(node -> 'Program') AS program, node ->> 'VM Rows In' AS rows_in,
	node ->> 'VM Rows Out' AS rows_out, node ->> 'Device' ~ '^(cpu|cuda(:\d+)?)$' AS device, node -> 'Bytes Read' IS NOT NULL AS bytes,
	(node ->> 'Engine Time')::float8 >= 0 AS time,
	CASE WHEN node ->> 'Device' = 'cpu' THEN 'VM Threads' ELSE 'Bytes Moved,Device Time,Slices,Transfer' END =
	(SELECT string_agg(key, ',' ORDER BY key COLLATE "C") FROM jsonb_object_keys(node) key
	WHERE key IN ('VM Threads', 'Transfer', 'Slices', 'Bytes Moved', 'Device Time')) AS of_device, node ->> 'Fallback' AS fallback
FROM (SELECT as_json('SELECT id FROM test WHERE uniformi > 60', 'ANALYZE, VERBOSE') #> '{0,Plan}' AS node) q;
SELECT node ->> 'Relation' AS relation, node ->> 'VM Group Key' AS keys, node ->> 'VM Filter' AS filter
FROM (SELECT as_json('SELECT id % 2, note IS NULL FROM test GROUP BY 1, 2', 'COSTS OFF') #> '{0,Plan}' AS node) q;
SELECT node ->> 'Relation' AS relation, node ->> 'VM Group Key' AS keys, node ->> 'VM Filter' AS filter
FROM (SELECT as_json('SELECT id % 2, uniformi, count(*) FROM test WHERE id > 5 GROUP BY 1, 2', 'COSTS OFF') #> '{0,Plan}' AS node) q;
SELECT as_xml('SELECT id FROM test WHERE uniformi > 60');

-- The papers' filter, as their authors would have written it.
SELECT * FROM gpuvm.disassemble('SELECT id, uniformi, normali5 FROM test WHERE uniformi > 60 AND normali5 < 0');
SELECT address, opcode, p1, p2, p3, p4 FROM gpuvm.disassemble('SELECT id, normalf5, normalf20 FROM test WHERE normalf5 * normalf20 BETWEEN -5 AND 5');
SELECT address, opcode, p1, p2, p3, p4 FROM gpuvm.disassemble('SELECT sum(normalf20), avg(uniformi) FROM test WHERE uniformi > 0 OR normali5 = 0');
SELECT address, opcode, p1, p2, p3, p4 FROM gpuvm.disassemble('SELECT uniformi % 3, max(CASE WHEN normali5 <> 0 THEN 100 / normali5 END) FROM test GROUP BY 1');
-- Two scans, two programs; none.
SELECT count(*) FILTER (WHERE opcode = 'Table') AS tables, count(*) FILTER (WHERE opcode = 'Finish') AS finishes
FROM gpuvm.disassemble('SELECT count(*) FROM test t JOIN other o USING (id) WHERE t.uniformi > 5');
SELECT count(*) FROM gpuvm.disassemble('SELECT count(*) FROM elsewhere');
-- Every opcode that programs use is in the instruction set.
SELECT DISTINCT opcode FROM gpuvm.disassemble('SELECT uniformi % 3, max(CASE WHEN normali5 <> 0 THEN 100 / normali5 END) FROM test GROUP BY 1')
WHERE opcode NOT IN (SELECT name FROM gpuvm.opcodes);
-- It works whatever gpuvm.force is, and leaves that as it was.
SET gpuvm.force = off;
SELECT count(*) > 0 AS program FROM gpuvm.disassemble('SELECT id FROM test WHERE uniformi > 60');
SHOW gpuvm.force;
SELECT gpuvm.disassemble('SELECT 1; SELECT 2');
SELECT gpuvm.disassemble('');
SELECT gpuvm.disassemble('EXPLAIN SELECT 1');
SELECT gpuvm.disassemble('SELECT nothing FROM test');
SELECT gpuvm.why_not('TRUNCATE test');
SELECT gpuvm.why_not('SELECT $1');
SHOW gpuvm.force;

-- Why parts of a query stay with PostgreSQL.
SET gpuvm.force = on;
SELECT * FROM gpuvm.why_not('SELECT id FROM test WHERE uniformi > 60');
SELECT * FROM gpuvm.why_not('SELECT * FROM elsewhere');
SELECT * FROM gpuvm.why_not('SELECT note FROM test');
SELECT * FROM gpuvm.why_not('SELECT id FROM test WHERE note = ''n''');
SELECT * FROM gpuvm.why_not('SELECT id FROM test WHERE cosd(uniformf) > 3');
SELECT * FROM gpuvm.why_not('SELECT id FROM test WHERE sqrt(uniformi::numeric) > 3');
SELECT * FROM gpuvm.why_not('SELECT id FROM test WHERE random() < 0.5');
SELECT * FROM gpuvm.why_not('SELECT id FROM test WHERE ctid > ''(0,5)''');
SELECT * FROM gpuvm.why_not('SELECT test FROM test WHERE id > 5');
SELECT * FROM gpuvm.why_not('SELECT id FROM test t WHERE id IN (SELECT e.id FROM elsewhere e WHERE e.v > t.normali5) OR id = 3');
SELECT * FROM gpuvm.why_not('SELECT count(DISTINCT id) FROM test');
SELECT * FROM gpuvm.why_not('SELECT bit_and(id), string_agg(uniformf::text, NULL) FROM test');
SELECT * FROM gpuvm.why_not('SELECT string_agg(id::text, '','' ORDER BY id) FROM test');
SELECT * FROM gpuvm.why_not('SELECT note, count(*) FROM test GROUP BY note');
SELECT * FROM gpuvm.why_not('SELECT id, count(*) FROM test GROUP BY ROLLUP (id)');
SELECT * FROM gpuvm.why_not('SELECT id FROM test ORDER BY uniformi');
SELECT * FROM gpuvm.why_not('SELECT t.id, rank() OVER (ORDER BY o.v) FROM test t JOIN other o USING (id)');
SELECT * FROM gpuvm.why_not('UPDATE test SET id = id + 1 WHERE uniformi = 5');
SELECT * FROM gpuvm.why_not('DELETE FROM test WHERE uniformi = 5');
SELECT * FROM gpuvm.why_not('SELECT id FROM test WHERE uniformi = 5 FOR SHARE');
SELECT * FROM gpuvm.why_not('SELECT id FROM test TABLESAMPLE BERNOULLI (10)');
SELECT * FROM gpuvm.why_not('INSERT INTO elsewhere SELECT id, uniformi FROM test WHERE id > 17');
SET gpuvm.float_sums = off;
SELECT * FROM gpuvm.why_not('SELECT sum(normalf5) FROM test');
RESET gpuvm.float_sums;
SET gpuvm.enabled = off;
SELECT * FROM gpuvm.why_not('SELECT id FROM test WHERE uniformi > 60');
RESET gpuvm.enabled;

SET client_min_messages = warning;
DROP SCHEMA explain_test CASCADE;
