-- Statements that change tables or lock their rows: a program finds the rows, PostgreSQL changes or locks them.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
-- What programs must run on: the device under test.
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA dml;
SET search_path = dml;

CREATE TABLE t (id int PRIMARY KEY, k int, v int8, price numeric(10,2), name text, gone int, kind text DEFAULT 'none', twice int8 GENERATED ALWAYS AS (v * 2) STORED)
	WITH (autovacuum_enabled = off);
CREATE TABLE s (id int, k int NOT NULL, w int8, name text) WITH (autovacuum_enabled = off);
CREATE TABLE third (k int, x int) WITH (autovacuum_enabled = off);
CREATE TABLE away (id int, k int, w int8) WITH (autovacuum_enabled = off);
CREATE TABLE doc (id int, k int, body json) WITH (autovacuum_enabled = off);
CREATE TABLE sink (id int, k int, v int8, name text) WITH (autovacuum_enabled = off);
CREATE TABLE p (id int, k int, v int8, name text) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO (30) WITH (autovacuum_enabled = off);
CREATE TABLE p2 (name text, extra int, v int8, k int, id int) WITH (autovacuum_enabled = off);
ALTER TABLE p2 DROP COLUMN extra;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (30) TO (60);
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (60) TO (MAXVALUE) WITH (autovacuum_enabled = off);
-- Partitions with the same columns: where they are not changed, they are read by one program.
CREATE TABLE same (id int, k int, v int8) PARTITION BY RANGE (k);
CREATE TABLE same1 PARTITION OF same FOR VALUES FROM (MINVALUE) TO (5) WITH (autovacuum_enabled = off);
CREATE TABLE same2 PARTITION OF same FOR VALUES FROM (5) TO (MAXVALUE) WITH (autovacuum_enabled = off);
CREATE TABLE base (id int, v int) WITH (autovacuum_enabled = off);
CREATE TABLE derived (w int) INHERITS (base) WITH (autovacuum_enabled = off);
INSERT INTO t (id, k, v, price, name) SELECT i, i % 97, i * 3, i * 0.25, 'name ' || i % 13 FROM generate_series(1, 3000) i;
UPDATE t SET v = NULL WHERE id % 50 = 0;
ALTER TABLE t DROP COLUMN gone;
ALTER TABLE t ADD COLUMN later int DEFAULT 7;
INSERT INTO s SELECT i, i % 89, i * 10, 'name ' || i % 17 FROM generate_series(1, 500) i;
INSERT INTO third SELECT i, i * i FROM generate_series(1, 60) i;
INSERT INTO away SELECT i, i % 31, i FROM generate_series(1, 200) i;
INSERT INTO doc SELECT i, i % 9, json_build_object('id', i) FROM generate_series(1, 400) i;
INSERT INTO p SELECT i, i % 90, i, 'p' || i % 5 FROM generate_series(1, 1500) i;
INSERT INTO same SELECT i, i % 10, i FROM generate_series(1, 1000) i;
INSERT INTO base SELECT i, i FROM generate_series(1, 200) i;
INSERT INTO derived SELECT i, i, i FROM generate_series(201, 400) i;
SET client_min_messages = warning;
SELECT sum(gpuvm.import(r)) FROM unnest('{t,s,third,sink,p1,p2,p3,same1,same2,base,derived}'::regclass[]) r;
SELECT gpuvm.import('doc', '{id,k}');
RESET client_min_messages;
ANALYZE t, s, third, away, doc, sink, p, same, base, derived;
SET gpuvm.force = on;

-- What is in the tables, as PostgreSQL reads them.
CREATE FUNCTION contents() RETURNS text LANGUAGE plpgsql SET gpuvm.enabled = off SET gpuvm.require = 'any' AS $$
DECLARE
	tab text;
	one text;
	every text := '';
BEGIN
	FOREACH tab IN ARRAY '{t,s,third,away,doc,sink,p,p1,p2,p3,same,same1,base,made}'::text[] LOOP
		CONTINUE WHEN to_regclass(tab) IS NULL;
		EXECUTE format('SELECT count(*) || md5(string_agg(q::text, '' '' ORDER BY q::text COLLATE "C")) FROM %s q', tab) INTO one;
		every := every || coalesce(one, '-');
	END LOOP;
	RETURN every;
END $$;
-- Runs a statement and rolls it back: what it gives, and what is in the tables then.
CREATE FUNCTION tried(statement text, enabled bool, OUT gave text, OUT after text) LANGUAGE plpgsql AS $$
DECLARE
	n int8;
	returned text;
BEGIN
	PERFORM set_config('gpuvm.enabled', enabled::text, true);
	PERFORM set_config('gpuvm.require', CASE WHEN enabled THEN replace(current_setting('gpuvm.device'), 'auto', 'vm') ELSE 'any' END, true);
	BEGIN
		IF statement ILIKE '%RETURNING%' AND statement NOT ILIKE 'WITH%' OR statement ILIKE 'SELECT%' THEN
			EXECUTE format(CASE WHEN statement ILIKE 'SELECT%' THEN 'SELECT count(*), md5(string_agg(q::text, '' '' ORDER BY q::text COLLATE "C")) FROM (%s) q'
						   ELSE 'WITH q AS (%s) SELECT count(*), md5(string_agg(q::text, '' '' ORDER BY q::text COLLATE "C")) FROM q' END, statement)
				INTO n, returned;
		ELSE
			EXECUTE statement;
			GET DIAGNOSTICS n = ROW_COUNT;
		END IF;
		gave := concat_ws(' ', n, returned);
		after := contents();
		RAISE EXCEPTION USING ERRCODE = 'GV000';
	EXCEPTION
		WHEN SQLSTATE 'GV000' THEN
			NULL;
		WHEN object_not_in_prerequisite_state THEN
			GET STACKED DIAGNOSTICS gave = PG_EXCEPTION_DETAIL;
			gave := 'refused: ' || gave;
		WHEN OTHERS THEN
			gave := 'ERROR ' || SQLSTATE || ': ' || SQLERRM;
	END;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.require', 'any', true);
END $$;
-- Is what a statement does the same on the VM? With how many rows, and the nodes of its plan; or what does not run there.
CREATE FUNCTION changed(statement text) RETURNS TABLE (result text, nodes text) LANGUAGE plpgsql AS $$
DECLARE
	theirs record;
	mine record;
	line text;
	depth int;
	below int := 1000;
BEGIN
	nodes := '';
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
		depth := length(substring(line FROM '^ *'));
		/* without what stands below ours: their alternatives */
		IF depth <= below AND (line LIKE '%->%' OR nodes = '') THEN
			nodes := concat_ws(' < ', nullif(nodes, ''), trim(line, '-> '));
			below := CASE WHEN line LIKE '%(GpuVM)%' THEN depth ELSE 1000 END;
		END IF;
	END LOOP;
	nodes := replace(nodes, 'Custom Scan (GpuVM)', 'GpuVM');
	SELECT * INTO theirs FROM tried(statement, false);
	SELECT * INTO mine FROM tried(statement, true);
	result := CASE WHEN mine IS NOT DISTINCT FROM theirs THEN 'same: ' || regexp_replace(mine.gave, '^(\d+) [0-9a-f]{32}$', '\1 rows') WHEN mine.gave LIKE 'refused%' THEN mine.gave
			  ELSE format('different: %s, but %s', theirs.gave, mine.gave) END;
	RETURN NEXT;
END $$;
CREATE TABLE statements (n serial, statement text);
CREATE FUNCTION all_changed() RETURNS TABLE (statement text, result text, nodes text) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT q.statement, c.result, c.nodes FROM (SELECT * FROM statements ORDER BY n) q, LATERAL changed(q.statement) c;
	TRUNCATE statements;
END $$;
\pset format unaligned
\x on

-- One table: its own columns, other forms of values, values left as they are.
INSERT INTO statements (statement) VALUES
	('UPDATE t SET v = v + 1 WHERE k = 5'),
	('UPDATE t SET v = v + 1, name = upper(name), price = price * 2, k = -k WHERE v % 7 = 3 AND name LIKE ''%1%'''),
	('UPDATE t SET v = v + 3 WHERE v > 100 RETURNING *'),
	('UPDATE t SET kind = DEFAULT, later = NULL WHERE price BETWEEN 10 AND 90.5 RETURNING id, kind, later, twice'),
	('UPDATE t SET (k, v) = (v % 11, k) WHERE sqrt(id) < 20'),
	('UPDATE t SET v = 0'),
	('UPDATE t SET id = id + 10000 WHERE k < 10 RETURNING id - 10000'),
	('UPDATE t SET v = 1 WHERE v IS NULL OR name = ''name 3'''),
	('UPDATE t SET v = t.v + (t.*)::text::varchar(1)::bool::int WHERE false'),
	('UPDATE t SET v = 1 WHERE k = -1'),
	('DELETE FROM t WHERE v % 10 = 1'),
	('DELETE FROM t WHERE name = ''name 7'' RETURNING id, name, price'),
	('DELETE FROM t WHERE k < 50 RETURNING t'),
	('DELETE FROM t'),
	-- errors are PostgreSQL's
	('UPDATE t SET v = 1 WHERE 100 / (id - 1500) > 3'),
	('UPDATE t SET id = 1 WHERE k = 3'),
	('DELETE FROM t WHERE v / (k - 3) > 5'),
	('UPDATE t SET price = price * 1e9 WHERE k = 3');
SELECT * FROM all_changed();

-- Other tables beside: imported ones in one program, others joined by PostgreSQL.
INSERT INTO statements (statement) VALUES
	('UPDATE t SET v = s.w, name = s.name FROM s WHERE s.id = t.id'),
	('UPDATE t SET v = s.w FROM s WHERE s.id = t.id AND s.w > t.v RETURNING t.id, s.id, s.name'),
	('UPDATE t SET v = x FROM s, third WHERE s.id = t.id AND third.k = s.k'),
	('UPDATE t SET v = s.w FROM s LEFT JOIN third ON third.k = s.k WHERE s.id = t.id AND (x IS NULL OR x > 100)'),
	('UPDATE t SET v = o.v FROM t o WHERE o.id = t.id + 1 AND t.k = 4'),
	('UPDATE t SET v = o.v FROM t o WHERE o.id = t.id'),
	('UPDATE t SET v = a.w FROM away a WHERE a.id = t.id'),
	('UPDATE t SET v = q.w FROM (SELECT k, sum(w) AS w FROM s GROUP BY k) q WHERE q.k = t.id'),
	('UPDATE t SET v = q.w FROM (VALUES (1, 10), (2, 20), (3, 30)) q (id, w) WHERE q.id = t.id'),
	('UPDATE away SET w = s.w FROM s WHERE s.id = away.id'),
	('UPDATE away SET w = (SELECT sum(w) FROM s)'),
	('UPDATE t SET v = (SELECT count(*) FROM s WHERE s.k = t.k) WHERE id < 300'),
	('UPDATE t SET v = (SELECT sum(w) FROM s) WHERE v > (SELECT avg(w) FROM s)'),
	('UPDATE t SET v = 0 WHERE EXISTS (SELECT FROM s WHERE s.id = t.id AND s.w % 3 = 0)'),
	('UPDATE t SET v = 0 WHERE NOT EXISTS (SELECT FROM s WHERE s.k = t.k)'),
	('UPDATE t SET v = 0 WHERE k IN (SELECT k FROM third WHERE x % 2 = 0)'),
	('UPDATE t SET v = 0 WHERE k NOT IN (SELECT k FROM s WHERE w > 100)'),
	('DELETE FROM t USING s WHERE s.id = t.id AND s.w % 100 < t.v % 70'),
	('DELETE FROM t USING s, third WHERE s.id = t.id AND third.k = s.k RETURNING t.id, s.w, third.x'),
	('DELETE FROM t USING t o WHERE o.k = t.k AND o.id < t.id'),
	('DELETE FROM t USING s WHERE s.k > t.v'),
	('DELETE FROM t WHERE id IN (SELECT id FROM t WHERE v > 1000 ORDER BY v DESC, id LIMIT 10) RETURNING id'),
	('DELETE FROM t WHERE id IN (SELECT id FROM t WHERE v > 1000 ORDER BY id LIMIT 10 FOR UPDATE SKIP LOCKED) RETURNING id');
SELECT * FROM all_changed();

-- Scans that are run again while the rows are changed that they have found.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
INSERT INTO statements (statement) VALUES
	('UPDATE t SET v = a.w, k = t.k + 1 FROM away a WHERE a.id = t.id AND a.id < 20'),
	('DELETE FROM t USING away a WHERE a.k = t.k AND a.id < 50 AND t.v IS NOT NULL'),
	('UPDATE t SET v = -1 WHERE k IN (SELECT k FROM away WHERE id < 20)');
SELECT * FROM all_changed();
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
RESET enable_memoize;

-- MERGE.
INSERT INTO statements (statement) VALUES
	('MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.w'),
	('MERGE INTO t USING s ON t.id = s.id + 2900 WHEN MATCHED AND t.k % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = t.v + s.w WHEN NOT MATCHED AND s.w % 20 = 0 THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (id, k, v) VALUES (s.id + 2900, s.k, s.w)'),
	('MERGE INTO t USING (SELECT k, sum(w) AS w FROM s GROUP BY k) q ON t.id = q.k WHEN MATCHED THEN UPDATE SET v = q.w WHEN NOT MATCHED THEN INSERT (id, v) VALUES (-1 - q.k, q.w)'),
	('MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN DELETE'),
	('MERGE INTO sink USING t ON t.id = sink.id WHEN NOT MATCHED THEN INSERT VALUES (t.id, t.k, t.v, t.name)'),
	('MERGE INTO p USING s ON p.id = s.id WHEN MATCHED AND s.k > 40 THEN UPDATE SET k = 95 - p.k WHEN MATCHED THEN DELETE');
SELECT * FROM all_changed();

-- Partitioned tables, one scan for each partition that was not pruned; rows that move; and inheritance.
INSERT INTO statements (statement) VALUES
	('UPDATE p SET v = v + 1 WHERE v % 3 = 0'),
	('UPDATE p SET v = v + 1 WHERE v % 3 = 0 AND k > 70 RETURNING tableoid::regclass, *'),
	('UPDATE p SET k = 89 - k WHERE v < 700 RETURNING tableoid::regclass, id, k'),
	('UPDATE p SET v = s.w FROM s WHERE s.id = p.id AND s.w > 400'),
	('DELETE FROM p WHERE name = ''p3'' RETURNING tableoid::regclass, id, name'),
	('DELETE FROM p USING s WHERE s.id = p.id AND s.k = p.k'),
	('UPDATE t SET v = p.v FROM p WHERE p.id = t.id'),
	('UPDATE t SET v = same.v FROM same WHERE same.id = t.id RETURNING same.tableoid::regclass, t.id, same.k'),
	('UPDATE same SET v = -v FROM s WHERE s.id = same.id'),
	('DELETE FROM t USING same, p WHERE same.id = t.id AND p.id = t.id AND p.k = same.k'),
	('MERGE INTO t USING same ON same.id = t.id - 2500 WHEN MATCHED THEN UPDATE SET v = same.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (same.id + 20000, same.v)'),
	('UPDATE base SET v = -v WHERE v % 2 = 0'),
	('DELETE FROM ONLY base WHERE v > 150'),
	('DELETE FROM base WHERE v > 150 RETURNING tableoid::regclass, id');
SELECT * FROM all_changed();

-- Rows that go somewhere else, from one program.
INSERT INTO statements (statement) VALUES
	('INSERT INTO sink SELECT id, k, v, name FROM t WHERE v % 5 = 2'),
	('INSERT INTO sink SELECT t.id, s.k, t.v + s.w, s.name FROM t JOIN s ON s.id = t.id WHERE s.w > 1000 RETURNING *'),
	('INSERT INTO sink (k, v) SELECT k, sum(v) FROM t GROUP BY k RETURNING k, v'),
	('INSERT INTO t (id, k, v) SELECT id + 10000, k, v FROM t WHERE k = 5 RETURNING id'),
	('INSERT INTO t (id, k, v) SELECT id, k, w FROM s ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v + t.v WHERE t.k < 50'),
	('INSERT INTO t (id, k, v) SELECT id, k, w FROM s ON CONFLICT DO NOTHING'),
	('INSERT INTO p SELECT id, k, v, name FROM t WHERE id > 2900 RETURNING tableoid::regclass, *'),
	('CREATE TABLE made AS SELECT id, v * 2 AS d, name, price FROM t WHERE k < 9'),
	('CREATE MATERIALIZED VIEW made AS SELECT k, count(*), sum(price) FROM t GROUP BY k');
SELECT * FROM all_changed();

-- Columns that are not imported.
INSERT INTO statements (statement) VALUES
	('UPDATE doc SET body = json_build_object(''was'', body, ''k'', k) WHERE k = 4'),
	('UPDATE t SET name = doc.body->>''id'' FROM doc WHERE doc.id = t.id AND doc.k = 5 RETURNING t.id, t.name, doc.body'),
	('UPDATE doc SET body = to_json(t.name) FROM t WHERE t.id = doc.id AND t.v > 300'),
	('DELETE FROM doc WHERE k < 3 RETURNING body'),
	('WITH u AS (UPDATE doc SET body = ''[]'' WHERE k = 2) UPDATE doc SET body = json_build_array(body) WHERE k = 3 RETURNING doc.body'),
	('SELECT * FROM doc WHERE k = 6 FOR UPDATE');
SELECT * FROM all_changed();

-- Several changes in one statement: all see the tables as they were.
INSERT INTO statements (statement) VALUES
	('WITH d AS (DELETE FROM t WHERE k = 3 RETURNING *) INSERT INTO sink SELECT id, k, v, name FROM d'),
	('WITH u AS (UPDATE t SET v = v + 1 WHERE k < 20 RETURNING id) UPDATE t SET v = v - 1 WHERE k >= 90'),
	('WITH u AS (UPDATE s SET w = 0), d AS (DELETE FROM third) UPDATE t SET v = s.w + x FROM s, third WHERE s.id = t.id AND third.k = s.k'),
	('WITH u AS (UPDATE s SET w = -w RETURNING id, w) UPDATE t SET v = u.w FROM u WHERE u.id = t.id'),
	('WITH c AS (SELECT id, w FROM s WHERE w > 2000) DELETE FROM t USING c WHERE c.id = t.id'),
	('WITH c AS MATERIALIZED (SELECT id, w FROM s WHERE w > 2000) UPDATE t SET v = c.w FROM c WHERE c.id = t.id');
SELECT * FROM all_changed();
\x off
\pset format aligned
BEGIN;
WITH u AS (UPDATE t SET v = 0 WHERE k = 1 RETURNING id) SELECT count(*), sum(v) FROM t WHERE k = 1;
SELECT count(*), sum(v) FROM t WHERE k = 1;
ROLLBACK;
\pset format unaligned
\x on

-- Rows that are locked, with all strengths, and those that are locked beside rows that are not.
INSERT INTO statements (statement) VALUES
	('SELECT * FROM t WHERE k = 7 FOR UPDATE'),
	('SELECT id FROM t WHERE k = 7 FOR NO KEY UPDATE'),
	('SELECT id, name FROM t WHERE v % 100 < 10 FOR SHARE'),
	('SELECT id FROM t WHERE price > 700 FOR KEY SHARE'),
	('SELECT id FROM t WHERE k > 50 ORDER BY v DESC, id LIMIT 7 FOR UPDATE SKIP LOCKED'),
	('SELECT id FROM t WHERE k > 50 ORDER BY v DESC, id LIMIT 7 FOR UPDATE NOWAIT'),
	('SELECT t.id, s.w FROM t JOIN s ON s.id = t.id WHERE s.w > t.k FOR UPDATE'),
	('SELECT t.id, s.w FROM t JOIN s ON s.id = t.id WHERE s.w > t.k FOR UPDATE OF s'),
	('SELECT t.id, s.w FROM t JOIN s ON s.id = t.id WHERE s.w > t.k FOR UPDATE OF s FOR SHARE OF t'),
	('SELECT s.id, third.x FROM s LEFT JOIN third ON third.k = s.k FOR UPDATE OF s'),
	('SELECT p.* FROM p WHERE v % 50 = 0 FOR UPDATE'),
	('SELECT tableoid::regclass, same.* FROM same WHERE v % 7 = 0 FOR UPDATE'),
	('SELECT same.id, s.w FROM same JOIN s ON s.id = same.id FOR SHARE'),
	('SELECT p.id, s.w FROM p JOIN s ON s.id = p.id FOR UPDATE OF s'),
	('SELECT t.id, a.w FROM t JOIN away a ON a.id = t.id FOR UPDATE'),
	('SELECT q.id, t.v FROM (SELECT id FROM s WHERE w > 100 FOR SHARE) q JOIN t ON t.id = q.id');
SELECT * FROM all_changed();
\x off
\pset format aligned

-- Own changes before, also of a savepoint: the tables as the command finds them. Nothing is rolled back here.
SET gpuvm.require = :device;
BEGIN;
UPDATE t SET v = 5 WHERE k = 11 AND v IS NOT NULL;
SELECT count(*), sum(v) FROM t WHERE k = 11;
UPDATE t SET v = v + 1 WHERE v = 5;
SAVEPOINT before;
DELETE FROM t WHERE v = 6 AND id < 1000;
SELECT count(*), sum(v) FROM t WHERE v = 6;
ROLLBACK TO before;
UPDATE t SET v = v + 1 WHERE v = 6;
INSERT INTO t (id, k, v) SELECT -id, k, v FROM t WHERE v = 7;
UPDATE t SET v = v + 1 WHERE v = 7;
SELECT count(*), sum(v), count(*) FILTER (WHERE id < 0) AS own FROM t WHERE v = 8;
DELETE FROM t WHERE id < 0;
COMMIT;
SELECT count(*), sum(v) FROM t;
BEGIN ISOLATION LEVEL SERIALIZABLE;
WITH u AS (UPDATE t SET v = v + 1 WHERE k = 12 RETURNING id, v) SELECT count(*), sum(id), sum(v) FROM u;
ROLLBACK;

-- Prepared, with a plan for all values.
SET plan_cache_mode = force_generic_plan;
PREPARE add(int, int8) AS UPDATE t SET v = v + $2 WHERE k = $1;
EXPLAIN (COSTS OFF) EXECUTE add(1, 2);
EXECUTE add(1, 2);
EXECUTE add(13, 2);
EXECUTE add(NULL, 2);
SELECT gpuvm.import('t') > 0 AS imported;
EXECUTE add(1, -2);
RESET gpuvm.require;
SET gpuvm.enabled = off;
EXECUTE add(13, -2);
RESET gpuvm.enabled;
SET gpuvm.require = :device;
RESET plan_cache_mode;

-- Cursors: FOR UPDATE, WHERE CURRENT OF, and both in PL/pgSQL.
BEGIN;
DECLARE c CURSOR FOR SELECT id, v FROM t WHERE k = 20 AND id < 300 FOR UPDATE;
FETCH 1 FROM c;
RESET gpuvm.require;
UPDATE t SET v = -1 WHERE CURRENT OF c;
FETCH 1 FROM c;
DELETE FROM t WHERE CURRENT OF c;
FETCH 1 FROM c;
SELECT id, v FROM t WHERE k = 20 AND id < 400 ORDER BY id;
CLOSE c;
DECLARE c CURSOR FOR SELECT t.id, s.w FROM t JOIN s ON s.id = t.id WHERE t.k = 20 FOR UPDATE OF t;
FETCH 1 FROM c;
UPDATE t SET v = -2 WHERE CURRENT OF c;
SELECT count(*) FROM t WHERE v = -2;
UPDATE s SET w = -2 WHERE CURRENT OF c;
ROLLBACK;
CREATE FUNCTION each() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	r record;
	n int := 0;
BEGIN
	FOR r IN SELECT id, v FROM t WHERE k = 21 FOR UPDATE LOOP
		UPDATE t SET v = r.v + 1 WHERE id = r.id;
		n := n + 1;
	END LOOP;
	RETURN n;
END $$;
BEGIN;
SELECT each(), sum(v) FROM t WHERE k = 21;
SELECT sum(v) FROM t WHERE k = 21;
ROLLBACK;

-- Triggers: they change the row, leave it out, see the change as a whole, change other rows of the table.
CREATE TABLE log (what text, n int8, v int8);
CREATE FUNCTION before_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.id % 3 = 0 THEN
		RETURN NULL;
	END IF;
	IF TG_OP = 'DELETE' THEN
		RETURN OLD;
	END IF;
	NEW.v := NEW.v + 100000;
	RETURN NEW;
END $$;
CREATE FUNCTION after_statement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO log SELECT TG_OP || ' of ' || (SELECT count(*) FROM third), count(*), sum(v) FROM olds;
	RETURN NULL;
END $$;
CREATE TRIGGER a BEFORE UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION before_row();
CREATE TRIGGER b AFTER UPDATE ON t REFERENCING OLD TABLE AS olds FOR EACH STATEMENT EXECUTE FUNCTION after_statement();
CREATE TRIGGER c AFTER DELETE ON t REFERENCING OLD TABLE AS olds FOR EACH STATEMENT EXECUTE FUNCTION after_statement();
BEGIN;
SET LOCAL gpuvm.require = :device;
UPDATE t SET v = 1 WHERE k = 30;
DELETE FROM t WHERE k = 31;
RESET gpuvm.require;
SELECT * FROM log;
SELECT v, count(*) FROM t WHERE k IN (30, 31) GROUP BY v HAVING count(*) > 1 ORDER BY v;
ROLLBACK;
DROP TRIGGER a ON t;
DROP TRIGGER b ON t;
DROP TRIGGER c ON t;
CREATE FUNCTION others() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE t SET v = 0 WHERE k = OLD.k AND id <> OLD.id; RETURN NEW; END $$;
CREATE TRIGGER a BEFORE UPDATE ON t FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION others();
SELECT result FROM changed('UPDATE t SET v = 1 WHERE k = 32');
DROP TRIGGER a ON t;

-- Foreign keys, a check, a policy, views.
CREATE TABLE part (id int PRIMARY KEY, t int REFERENCES t ON DELETE CASCADE ON UPDATE CASCADE) WITH (autovacuum_enabled = off);
CREATE TABLE strict (t int REFERENCES t) WITH (autovacuum_enabled = off);
INSERT INTO part SELECT id, id FROM t WHERE k = 40;
INSERT INTO strict SELECT min(id) FROM t WHERE k = 41;
SELECT gpuvm.import('part') > 0 AS part, gpuvm.import('strict') > 0 AS strict;
BEGIN;
SET LOCAL gpuvm.require = :device;
UPDATE t SET id = -id WHERE k = 40;
SELECT count(*), count(*) FILTER (WHERE t < 0) AS own FROM part;
DELETE FROM t WHERE k = 40;
SELECT count(*) FROM part;
SAVEPOINT before;
DELETE FROM t WHERE k = 41;
ROLLBACK TO before;
INSERT INTO part SELECT id, id FROM t WHERE k = 42;
INSERT INTO part SELECT 10000 + id, 100000 + id FROM t WHERE k = 42;
ROLLBACK;
ALTER TABLE t ADD CHECK (v < 1000000);
SELECT result FROM changed('UPDATE t SET v = v + 1000000 WHERE k = 43');
CREATE VIEW low AS SELECT id, v, upper(name) AS name FROM t WHERE k < 10 WITH CHECK OPTION;
CREATE VIEW guarded WITH (security_barrier) AS SELECT id, k, v FROM t WHERE k < 10;
CREATE VIEW kinds AS SELECT k, sum(v) AS v FROM t GROUP BY k;
CREATE FUNCTION instead() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (TG_OP, OLD.k, NEW.v); RETURN NEW; END $$;
CREATE TRIGGER a INSTEAD OF UPDATE ON kinds FOR EACH ROW EXECUTE FUNCTION instead();
SELECT * FROM changed('UPDATE low SET v = 3 WHERE v > 500 RETURNING name');
SELECT * FROM changed('DELETE FROM guarded WHERE v > 500');
SELECT * FROM changed('UPDATE kinds SET v = 1 WHERE k < 3');
CREATE ROLE gpuvm_dml;
GRANT USAGE ON SCHEMA dml TO gpuvm_dml;
GRANT SELECT, UPDATE, DELETE ON t TO gpuvm_dml;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON t USING (k < 50) WITH CHECK (v < 1000);
SET ROLE gpuvm_dml;
BEGIN;
SET LOCAL gpuvm.require = :device;
UPDATE t SET v = 1 WHERE k IN (49, 50, 51);
SAVEPOINT before;
UPDATE t SET v = 1000 WHERE k = 49;
ROLLBACK TO before;
WITH d AS (DELETE FROM t WHERE k IN (49, 50) RETURNING k, v) SELECT k, v, count(*) FROM d GROUP BY k, v;
ROLLBACK;
RESET ROLE;
DROP POLICY mine ON t;
ALTER TABLE t DISABLE ROW LEVEL SECURITY;

-- What stays with PostgreSQL, and why.
SELECT node, reason FROM gpuvm.why_not('UPDATE p SET v = 1 WHERE k = 5');
SELECT node, reason FROM gpuvm.why_not('UPDATE t SET v = q.w FROM (SELECT k, sum(w) AS w FROM s GROUP BY k) q WHERE q.k = t.id');
SELECT node, reason FROM gpuvm.why_not('UPDATE t SET v = 0 WHERE EXISTS (SELECT FROM s WHERE s.id = t.id)');
SELECT node, reason FROM gpuvm.why_not('DELETE FROM t WHERE ctid = ''(0,1)''');
SET gpuvm.require = :device;
DELETE FROM t WHERE ctid = '(0,1)';
RESET gpuvm.force;
DELETE FROM t WHERE id = 77;
RESET gpuvm.require;
-- By cost: a scan by a program, a row by the index.
EXPLAIN (COSTS OFF) UPDATE t SET v = 1 WHERE id = 77;

SET client_min_messages = warning;
DROP SCHEMA dml CASCADE;
DROP ROLE gpuvm_dml;
