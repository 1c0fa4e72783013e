-- Tablet tables whose small tablets are put together, and whose deleted rows are dropped: by gpuvm.compact(). What is seen stays the same.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE ROLE tc_user;
RESET client_min_messages;
SET gpuvm.force = on;
CREATE FOREIGN TABLE tc (id int, s text, late int) SERVER gpuvm;
CREATE TABLE tc_same (id int, s text, late int);
CREATE FUNCTION tc_differ() RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FROM ((TABLE tc EXCEPT ALL TABLE tc_same) UNION ALL (TABLE tc_same EXCEPT ALL TABLE tc)) d
$$;
CREATE FUNCTION tc_both(statement text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE replace(statement, '@', 'tc');
	EXECUTE replace(statement, '@', 'tc_same');
END$$;
CREATE PROCEDURE tc_changes(first int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN first .. first + 19 LOOP
		PERFORM tc_both(format('INSERT INTO @ SELECT %s + n * 1000, repeat(n::text, n), CASE WHEN n %% 2 = 0 THEN n END FROM generate_series(1, 5) n', i));
		PERFORM tc_both(format('DELETE FROM @ WHERE id = %s', i + 2000));
		COMMIT;
	END LOOP;
END$$;
CALL tc_changes(1);
SELECT tablets, rows, dead_rows, dead_sets FROM gpuvm.tablet_tables WHERE relation = 'tc'::regclass;
SELECT gpuvm.import('tc');
SELECT gpuvm.compact('tc');
SELECT tablets, rows, dead_rows, dead_sets FROM gpuvm.tablet_tables WHERE relation = 'tc'::regclass;
SELECT tc_differ();
SET gpuvm.require = vm;
SELECT count(*), sum(id), max(s), count(late) FROM tc;
RESET gpuvm.require;
SELECT count(*), sum(id), max(s), count(late) FROM tc_same;
-- nothing left to do
SELECT gpuvm.compact('tc');

-- a column that is new, one that was dropped, all rows of a tablet gone
SELECT tc_both('ALTER TABLE @ ADD COLUMN more numeric');
SELECT tc_both('ALTER TABLE @ DROP COLUMN late');
SELECT tc_both('INSERT INTO @ VALUES (1, ''more'', 1.5)');
SELECT tc_both('DELETE FROM @ WHERE id = 1001');
SELECT gpuvm.compact('tc'), tc_differ();
SELECT tc_both('DELETE FROM @');
SELECT gpuvm.compact('tc'), tc_differ();
SELECT count(*) FROM gpuvm.tablet_tables WHERE relation = 'tc'::regclass;

-- seen by the transaction itself, and taken back
SELECT tc_both('INSERT INTO @ SELECT i, ''x'', i FROM generate_series(1, 10) i');
SELECT tc_both('INSERT INTO @ SELECT i, ''y'', i FROM generate_series(11, 20) i');
BEGIN;
DELETE FROM tc WHERE id > 15;
SELECT gpuvm.compact('tc');
SELECT count(*) FROM tc;
SAVEPOINT s;
INSERT INTO tc VALUES (30, 'z', 30);
SELECT gpuvm.compact('tc');
ROLLBACK TO s;
SELECT count(*), max(id) FROM tc;
ROLLBACK;
SELECT tablets, rows FROM gpuvm.tablet_tables WHERE relation = 'tc'::regclass;
SELECT tc_differ();
-- a cursor goes on with what it began with, but keeps the table from being compacted
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM tc;
FETCH 1 FROM c;
SAVEPOINT s;
SELECT gpuvm.compact('tc');
ROLLBACK TO s;
MOVE ALL c;
CLOSE c;
SELECT gpuvm.compact('tc');
COMMIT;
SELECT tc_differ();
-- nor in the middle of a statement that changes it
CREATE FUNCTION tc_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM gpuvm.compact(''tc''); RETURN NEW; END';
CREATE TRIGGER t AFTER INSERT ON tc FOR EACH ROW EXECUTE FUNCTION tc_trigger();
INSERT INTO tc VALUES (40, 'trigger', 0);
DROP TRIGGER t ON tc;

-- who may, and when
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT gpuvm.compact('tc');
ROLLBACK;
BEGIN READ ONLY;
SELECT gpuvm.compact('tc');
ROLLBACK;
SELECT gpuvm.compact('tc_same');
SET ROLE tc_user;
SELECT gpuvm.compact('tc');
SELECT count(*) FROM gpuvm.tablet_tables WHERE relation::text = 'tc';
RESET ROLE;
GRANT SELECT ON tc TO tc_user;
SET ROLE tc_user;
SELECT count(*) FROM gpuvm.tablet_tables WHERE relation::text = 'tc';
RESET ROLE;

-- rows that are not logged stay so; a type that is not what was stored is an error, and nothing is lost
ALTER FOREIGN TABLE tc OPTIONS (ADD persist 'off');
SELECT tc_both('INSERT INTO @ VALUES (50, ''off'', 1)');
SELECT tc_both('INSERT INTO @ VALUES (51, ''off'', 2)');
SELECT gpuvm.compact('tc');
SELECT tablets, rows FROM gpuvm.tablet_tables WHERE relation = 'tc'::regclass;
SELECT (SELECT count(*) FROM gpuvm.tablet_rows WHERE relation = 'tc'::regclass) AS logged, (SELECT count(*) FROM gpuvm.tablet_rows_unlogged) AS unlogged;
SELECT tc_both('DELETE FROM @ WHERE id = 50');
ALTER FOREIGN TABLE tc ALTER more TYPE text;
SELECT gpuvm.compact('tc');
ALTER FOREIGN TABLE tc ALTER more TYPE numeric;
SELECT tc_differ();

-- partitions
CREATE TABLE tc_all (id int, s text) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE tc_1 PARTITION OF tc_all FOR VALUES FROM (0) TO (100) SERVER gpuvm;
CREATE TABLE tc_2 PARTITION OF tc_all FOR VALUES FROM (100) TO (200);
INSERT INTO tc_all SELECT i, 'a' FROM generate_series(0, 150, 10) i;
INSERT INTO tc_all SELECT i, 'b' FROM generate_series(1, 150, 10) i;
SELECT gpuvm.compact('tc_all');
SELECT count(*) FROM tc_all;
-- not in the middle of a statement that reads it
SELECT gpuvm.compact('tc_1'), (SELECT count(*) FROM tc_1);

-- rows as they are stored in several tablets, by size and by number
SELECT tc_both('DELETE FROM @');
SELECT tc_both('INSERT INTO @ SELECT i, repeat(md5(i::text), 400), NULL FROM generate_series(1, 100) i') FROM generate_series(1, 8);
SELECT gpuvm.compact('tc'), tc_differ();
SELECT tablets, rows FROM gpuvm.tablet_tables WHERE relation = 'tc'::regclass;

DROP TABLE tc_all, tc_same;
DROP FOREIGN TABLE tc;
DROP FUNCTION tc_differ, tc_trigger, tc_both;
DROP PROCEDURE tc_changes;
DROP ROLE tc_user;
