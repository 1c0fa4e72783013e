-- UPDATE and DELETE of tablet tables whose scans and joins are programs, against an ordinary table and the same statements row by row.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SET gpuvm.force = on;
CREATE FOREIGN TABLE td (gone int, id int, k int, s text, n numeric, w numeric(38,2), a int[], day date, f float8) SERVER gpuvm;
CREATE TABLE td_same (id int, k int, s text, n numeric, w numeric(38,2), a int[], day date, f float8);
INSERT INTO td SELECT 1, i, i % 13, CASE WHEN i % 7 > 0 THEN 's' || i % 11 END, i * 0.25, i * 1e20, CASE WHEN i % 3 > 0 THEN ARRAY[i, NULL] END, '2020-01-01'::date + i % 100, i / 8.0 FROM generate_series(1, 140000) i;
ALTER FOREIGN TABLE td DROP gone;
ALTER FOREIGN TABLE td ADD later varchar(10);
INSERT INTO td_same SELECT id, k, s, n, w, a, day, f FROM td;
ALTER TABLE td_same ADD later varchar(10);
CREATE TABLE td_heap (id int, v int, s text);
INSERT INTO td_heap SELECT i * 10, i, 's' || i % 11 FROM generate_series(1, 500) i;
SELECT gpuvm.import('td'), gpuvm.import('td_heap');
-- @ is the table. What it returns, and what is there then, is the same.
CREATE FUNCTION td_differences() RETURNS bigint LANGUAGE sql AS $$
	SELECT coalesce(sum(abs(n)), 0)::bigint FROM (SELECT sum(sign) AS n FROM (SELECT *, 1 AS sign FROM (SELECT * FROM td OFFSET 0) s UNION ALL SELECT *, -1 FROM td_same) u
		GROUP BY id, k, s, u.n, w, a, day, f, later) g $$;
CREATE PROCEDURE td_both(statement text, returned text DEFAULT '*', engine text DEFAULT current_setting('gpuvm.require')) LANGUAGE plpgsql AS $$
DECLARE
	found text[];
	rows text;
BEGIN
	FOR i IN 0 .. 1 LOOP
		PERFORM set_config('gpuvm.require', CASE i WHEN 0 THEN engine ELSE 'any' END, true);
		EXECUTE format('WITH c AS (%s RETURNING %s) SELECT count(*) || '' '' || coalesce(md5(string_agg(c::text, '' '' ORDER BY c::text)), ''-'') FROM c',
					   replace(statement, '@', CASE i WHEN 0 THEN 'td' ELSE 'td_same' END), returned) INTO rows;
		found := found || rows;
	END LOOP;
	IF found[1] IS DISTINCT FROM found[2] THEN RAISE WARNING 'returned % and %: %', found[1], found[2], statement; END IF;
	IF split_part(found[1], ' ', 1)::int = 0 THEN RAISE WARNING 'no row is changed: %', statement; END IF;
	IF td_differences() > 0 THEN RAISE WARNING 'rows differ: %', statement; END IF;
END$$;
SET gpuvm.require = vm;
SET work_mem = '4MB';

EXPLAIN (COSTS off) UPDATE td SET k = k + 1 WHERE id % 1000 = 7;
EXPLAIN (COSTS off) DELETE FROM td WHERE id % 1000 = 7;
EXPLAIN (COSTS off) UPDATE td SET k = h.v FROM td_heap h WHERE h.id = td.id AND h.s = td.s;
CALL td_both('UPDATE @ SET k = k + 1 WHERE id % 1000 = 7');
CALL td_both('UPDATE @ SET s = s || ''!'', later = ''late'' WHERE id % 1000 IN (6, 7, 8)');
CALL td_both('UPDATE @ SET w = -w, n = NULL, a = a || 5 WHERE id BETWEEN 65530 AND 65545 OR id = 140000');
CALL td_both('DELETE FROM @ WHERE id % 100 = 9 AND s IS NOT NULL');
CALL td_both('DELETE FROM @ WHERE n > 30000 AND k = 3', 'id');
CALL td_both('UPDATE @ SET (s, f) = (''x'', f / 3) WHERE day = ''2020-03-03''', 'id, s, f, a');
-- a row that was changed has another place: programs and the scan row by row say the same of all of them
CREATE TEMPORARY TABLE td_places AS SELECT ctid AS place, id FROM td;
SET gpuvm.require = 'any';
SET gpuvm.enabled = off;
SELECT count(*), count(DISTINCT p.place), count(t.id) FROM td_places p LEFT JOIN td t ON t.ctid = p.place AND t.id = p.id;
RESET gpuvm.enabled;
SET gpuvm.require = vm;
SELECT t.id, t FROM td t WHERE id IN (6, 7, 65540) ORDER BY id;

-- joins, with itself and with an imported table; a row that several others want to change is changed once
CALL td_both('UPDATE @ t SET k = o.k * 100 FROM @ o WHERE o.id = t.id + 1 AND t.id < 500', 't.*');
CALL td_both('DELETE FROM @ t USING @ o WHERE o.id = t.id * 2 AND o.k = 4', 't.*, o.id');
CALL td_both('UPDATE @ t SET k = h.v, s = h.s FROM td_heap h WHERE h.id = t.id AND t.s IS DISTINCT FROM h.s', 't.*, h.*');
CALL td_both('UPDATE @ t SET k = -1 FROM td_heap h WHERE h.v < t.id AND t.id < 20', 't.id, k');
CALL td_both('DELETE FROM @ t USING td_heap h LEFT JOIN td_heap g ON g.id = h.id + 10 AND g.v % 2 = 0 WHERE h.id = t.id AND g.id IS NULL', 't.*, h.v, g.v');
CALL td_both('UPDATE @ SET k = 77 WHERE id IN (SELECT id + 1 FROM td_heap WHERE v > 400)');
CALL td_both('DELETE FROM @ WHERE EXISTS (SELECT FROM td_heap h WHERE h.id = @.id + 2) AND NOT EXISTS (SELECT FROM td_heap h WHERE h.v = @.k)');
-- the other way round: rows that are joined to the one that is changed are carried along whole
WITH u AS (UPDATE td_heap h SET v = v + 1 FROM td t WHERE t.id = h.id + 3 AND t.k < 5 RETURNING t, h.v) SELECT count(*) > 10 AS some, bool_and((t).k < 5 AND ((t).s IS NULL) = ((t).id % 7 = 0)) FROM u;
SELECT id, v FROM td_heap WHERE id = 20 FOR UPDATE;
SELECT t.id, h.v FROM td t JOIN td_heap h ON h.id = t.id + 7 WHERE t.id < 50 ORDER BY t.id FOR UPDATE;

-- what a statement sees are its snapshot's rows: not its own, nor what a trigger or function within it adds
CREATE FUNCTION td_adds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'DELETE' THEN
		INSERT INTO td (id, k, s) SELECT OLD.id, count(*), 'deleted ' || coalesce(OLD.s, 'null') FROM td WHERE id = OLD.id;
		RETURN OLD;
	END IF;
	NEW.s := concat(OLD.s, ' then ', NEW.s);
	RETURN CASE WHEN OLD.id % 2 = 0 THEN NEW END;
END$$;
CREATE TRIGGER td_adds BEFORE UPDATE OR DELETE ON td FOR EACH ROW EXECUTE FUNCTION td_adds();
BEGIN;
WITH c AS (UPDATE td SET s = 'new' WHERE id BETWEEN 100 AND 104 RETURNING id, s) SELECT * FROM c ORDER BY id;
WITH c AS (DELETE FROM td WHERE id BETWEEN 100 AND 102 RETURNING id, s) SELECT * FROM c ORDER BY id;
SELECT id, k, s FROM td WHERE id BETWEEN 100 AND 104 ORDER BY id, s;
ROLLBACK;
DROP TRIGGER td_adds ON td;
WITH d AS (DELETE FROM td WHERE id = 200 RETURNING *), u AS (UPDATE td SET k = 5 WHERE id IN (200, 201) RETURNING *)
SELECT (SELECT count(*) FROM td WHERE id IN (200, 201)) AS before, (SELECT count(*) FROM d) + (SELECT count(*) FROM u) AS once_each;
SELECT id, k FROM td WHERE id IN (200, 201) AND k = 5;
SET gpuvm.require = 'any';
DELETE FROM td_same WHERE id = 200;
UPDATE td_same SET k = 5 WHERE id = 201;
SELECT td_differences();
SET gpuvm.require = vm;

-- transactions: own changes, savepoints, what is taken back
BEGIN;
UPDATE td SET k = 1000 WHERE id < 300;
UPDATE td SET k = k + 1 WHERE k = 1000;
SELECT count(*), min(k), max(k) FROM td WHERE id < 300;
SAVEPOINT s;
DELETE FROM td WHERE k = 1001;
DELETE FROM td WHERE id < 300;
SELECT count(*) FROM td WHERE id < 310;
ROLLBACK TO s;
WITH c AS (DELETE FROM td WHERE id < 150 RETURNING *) SELECT count(*), min(k), max(k), count(s) FROM c;
ROLLBACK;
SET gpuvm.require = 'any';
SELECT td_differences();
SET gpuvm.require = vm;
-- a cursor keeps what it began with
BEGIN;
DECLARE c CURSOR FOR SELECT id, k FROM td WHERE id BETWEEN 400 AND 404 ORDER BY id;
FETCH 1 FROM c;
UPDATE td SET k = -5 WHERE id BETWEEN 400 AND 404;
FETCH 1 FROM c;
UPDATE td SET k = k - 1 WHERE k = -5 AND id <> 401;
FETCH ALL FROM c;
SELECT id, k FROM td WHERE k < -4 ORDER BY id;
ROLLBACK;
-- prepared statements: each execution changes what is there by then
PREPARE change(int, text) AS WITH c AS (UPDATE td SET k = k + 1, s = $2 WHERE id = $1 OR s = $2 RETURNING id, k) SELECT * FROM c ORDER BY id;
SET plan_cache_mode = force_generic_plan;
EXECUTE change(1000, 'once');
EXECUTE change(1001, 'once');
EXECUTE change(1002, 'once');
PREPARE cut(int) AS DELETE FROM td WHERE id < $1 AND s = 'once' RETURNING id, k;
EXECUTE cut(1002);
EXECUTE cut(1002);
EXECUTE cut(2000);
RESET plan_cache_mode;
SET gpuvm.require = 'any';
DELETE FROM td_same WHERE id BETWEEN 1000 AND 1002;
SELECT td_differences();

-- a row that raises an error in a program is PostgreSQL's, in its own words; one that need not be looked at does not
BEGIN;
UPDATE td SET k = 1 / (id - 50001) WHERE id BETWEEN 49999 AND 50003;
ROLLBACK;
CALL td_both('UPDATE @ SET k = CASE WHEN id <> 50001 THEN 7 / (id - 50001) END WHERE id BETWEEN 49999 AND 50003');
CALL td_both('DELETE FROM @ WHERE id BETWEEN 60000 AND 60100 AND (k = 0 OR 20 / k < 2)');
-- places after a compaction, and rows of tablets that have lost others
SELECT gpuvm.compact('td') > 0 AS compacted;
CALL td_both('UPDATE @ SET k = k + 1 WHERE id % 5000 = 4', engine => 'vm');
CALL td_both('DELETE FROM @ WHERE id % 2 = 0', 'id', engine => 'vm');
CALL td_both('UPDATE @ SET k = k + 1 WHERE id % 777 = 5', engine => 'vm');
CALL td_both('DELETE FROM @ WHERE id > 1000', engine => 'vm');
CALL td_both('UPDATE @ SET k = 0', engine => 'vm');

-- a column that tablets leave out: rows that are wanted whole are read one by one, and no others
PREPARE touch AS UPDATE td SET k = k + 1 WHERE id = 11 RETURNING k;
SET plan_cache_mode = force_generic_plan;
EXECUTE touch;
INSERT INTO td (id, s) VALUES (-1, (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 40000) i));
EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) EXECUTE touch;
EXECUTE touch;
SELECT node, reason FROM gpuvm.why_not('UPDATE td SET k = k + 1 WHERE id = 11');
SET gpuvm.require = vm;
DELETE FROM td WHERE id = 13;
EXECUTE touch;
SET gpuvm.require = 'any';
UPDATE td SET k = -11 WHERE id = 11 RETURNING id, k, s;
SELECT count(*), count(s), max(length(s)) FROM td WHERE id IN (-1, 11, 13);
RESET plan_cache_mode;

-- without gpuvm.force, a table of few rows is not loaded for each change of it; a large one is, if it has been loaded before
SET gpuvm.force = off;
SELECT node, reason FROM gpuvm.why_not('DELETE FROM td WHERE id = 1');
SELECT reason FROM gpuvm.why_not('SELECT FROM td WHERE id = 1');
CREATE FOREIGN TABLE td_large (id int, k int) SERVER gpuvm;
INSERT INTO td_large SELECT i, i FROM generate_series(1, 40000) i;
SELECT reason FROM gpuvm.why_not('DELETE FROM td_large WHERE id = 1');
SELECT gpuvm.import('td_large');
SET gpuvm.require = vm;
WITH c AS (DELETE FROM td_large WHERE id % 10000 = 1 RETURNING k) SELECT * FROM c ORDER BY k;
WITH c AS (UPDATE td_large SET k = k + 1 WHERE id % 10000 = 2 RETURNING id, k) SELECT * FROM c ORDER BY id;
WITH c AS (UPDATE td_large SET k = k + 1 WHERE k % 10000 = 3 RETURNING id, k) SELECT * FROM c ORDER BY id;
RESET gpuvm.require;
SET gpuvm.force = on;

-- partitions: some in tablets, one in a heap
CREATE TABLE td_parent (id int, k int, s text) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE td_part1 PARTITION OF td_parent FOR VALUES FROM (0) TO (100) SERVER gpuvm;
CREATE FOREIGN TABLE td_part2 (s text, k int, gone int, id int) SERVER gpuvm;
ALTER FOREIGN TABLE td_part2 DROP gone;
ALTER TABLE td_parent ATTACH PARTITION td_part2 FOR VALUES FROM (100) TO (200);
INSERT INTO td_parent SELECT i, i % 10, 's' || i % 3 FROM generate_series(0, 199) i;
SELECT gpuvm.import('td_part1'), gpuvm.import('td_part2');
SET gpuvm.require = vm;
EXPLAIN (COSTS off) UPDATE td_parent SET k = k + 100 WHERE id % 50 = 7;
WITH c AS (UPDATE td_parent SET k = k + 100 WHERE id % 50 = 7 RETURNING tableoid::regclass, *) SELECT * FROM c ORDER BY id;
WITH c AS (DELETE FROM td_parent p USING td_heap h WHERE h.id = p.id AND p.id % 50 = 10 RETURNING p.tableoid::regclass, p.*, h.v) SELECT * FROM c ORDER BY id;
WITH c AS (DELETE FROM td_parent WHERE k >= 100 RETURNING *) SELECT * FROM c ORDER BY id;
SET gpuvm.require = 'any';
CREATE TABLE td_part3 PARTITION OF td_parent FOR VALUES FROM (200) TO (300);
INSERT INTO td_parent SELECT i, i % 10, 's' || i % 3 FROM generate_series(200, 299) i;
SELECT gpuvm.import('td_part3');
SET gpuvm.require = vm;
EXPLAIN (COSTS off) DELETE FROM td_parent WHERE id % 50 = 7;
DELETE FROM td_parent WHERE id % 50 = 8;
-- where some rows are handed on whole, those of the heap have a null in their place
SET gpuvm.require = 'any';
WITH c AS (UPDATE td_parent SET k = k + 100 WHERE id % 50 = 9 RETURNING tableoid::regclass, *) SELECT * FROM c ORDER BY id;
SET gpuvm.require = 'any';
SET gpuvm.enabled = off;
SELECT count(*), sum(id), sum(k) FROM td_parent;
RESET gpuvm.enabled;
RESET gpuvm.force;
DROP TABLE td_parent, td_same, td_heap, td_places;
DROP FOREIGN TABLE td, td_large;
DROP FUNCTION td_differences, td_adds;
DROP PROCEDURE td_both;
