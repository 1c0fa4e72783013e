-- What owners' tables may take of gpuvm.memory: table gpuvm.quotas, which imports and refreshes obey and queries do not, and view gpuvm.memory.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE ROLE regress_gpuvm_limited;
CREATE ROLE regress_gpuvm_free;
CREATE ROLE regress_gpuvm_monitor IN ROLE pg_read_all_stats;
CREATE ROLE regress_gpuvm_granted;
CREATE SCHEMA quotas;
GRANT ALL ON SCHEMA quotas TO PUBLIC;
SET search_path = quotas;
SET gpuvm.tablet_size = '64kB';
SET gpuvm.force = on;

-- Whose memory it is, in pages of 64 kB.
CREATE VIEW mine AS SELECT kind, role, bytes / 65536 AS pages, quota, database_quota FROM gpuvm.memory
	WHERE database = current_database() AND role LIKE 'regress_gpuvm%' ORDER BY role;
GRANT SELECT ON mine TO PUBLIC;
CREATE FUNCTION fill(name text, rows int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE %I (id int, v int8) WITH (autovacuum_enabled = off)', name);
	EXECUTE format('INSERT INTO %I SELECT i, hashint8extended(i, 1) FROM generate_series(1, %s) i', name, rows);
END $$;

-- The superuser's, and whom that grants to.
SET ROLE regress_gpuvm_limited;
SELECT * FROM gpuvm.quotas;
INSERT INTO gpuvm.quotas VALUES ('regress_gpuvm_limited', 1000000000);
RESET ROLE;
GRANT SELECT, INSERT, UPDATE ON gpuvm.quotas TO regress_gpuvm_granted;
SET ROLE regress_gpuvm_granted;
INSERT INTO gpuvm.quotas VALUES ('regress_gpuvm_limited', 768 * 1024);
RESET ROLE;
\set VERBOSITY terse
INSERT INTO gpuvm.quotas VALUES ('regress_gpuvm_limited', 1);
INSERT INTO gpuvm.quotas VALUES ('regress_gpuvm_free', -1);
\set VERBOSITY default
SET ROLE regress_gpuvm_monitor;
SELECT * FROM gpuvm.quotas;
SELECT * FROM mine;

-- An import that does not fit: nothing of it stays, and what was there serves.
SET ROLE regress_gpuvm_limited;
SELECT fill('small', 5000), fill('large', 100000), fill('middle', 25000);
SELECT gpuvm.import('small');
SELECT * FROM mine;
SELECT gpuvm.import('large');
\set VERBOSITY sqlstate
SELECT gpuvm.import('large');
\set VERBOSITY default
SELECT * FROM mine;
SELECT gpuvm.import('middle');
SELECT * FROM mine;
-- A table that is imported again counts once, and also while a cursor reads what was there before.
BEGIN;
SET LOCAL gpuvm.require = :device;
DECLARE c CURSOR FOR SELECT id FROM middle WHERE v <> 0;
FETCH c;
SELECT gpuvm.import('middle', vacuum => false);
COMMIT;
SELECT * FROM mine;
SELECT gpuvm.release('middle');
-- So it is with what the same transaction has imported before.
SELECT fill('second', 25000);
VACUUM second;
BEGIN;
SELECT gpuvm.import('middle', vacuum => false);
SAVEPOINT s;
SELECT gpuvm.import('second', vacuum => false);
ROLLBACK TO s;
COMMIT;
SELECT relation FROM gpuvm.tables WHERE relation IN ('middle'::regclass, 'second'::regclass);
SELECT * FROM mine;

-- Each time that a transaction imports the same table again counts: all versions are there until it ends.
\set VERBOSITY terse
SELECT count(gpuvm.import('middle', vacuum => false)) FROM generate_series(1, 50);
\set VERBOSITY default
SELECT * FROM mine;

-- Whoever imports it, the table is its owner's; and others' tables are not.
RESET ROLE;
SELECT gpuvm.import('second');
SET ROLE regress_gpuvm_free;
SELECT fill('others', 100000);
SELECT gpuvm.import('others');
SELECT * FROM mine;
RESET ROLE;
ALTER TABLE second OWNER TO regress_gpuvm_free;
SELECT gpuvm.import('second');
SELECT * FROM mine;
SELECT gpuvm.release('second');

-- A refresh that grows beyond it leaves the table as it is; the answers are right all the same.
SET ROLE regress_gpuvm_limited;
INSERT INTO middle SELECT i, i FROM generate_series(25001, 60000) i;
VACUUM middle;
SELECT gpuvm.refresh('middle');
SELECT state, rows FROM gpuvm.tables WHERE relation = 'middle'::regclass;
SET gpuvm.require = :device;
SELECT count(*), sum(id), min(v) < 0 FROM middle WHERE id > 24990;
RESET gpuvm.require;
-- One that shrinks does not, whatever the quota has become.
RESET ROLE;
UPDATE gpuvm.quotas SET bytes = 1000;
SET ROLE regress_gpuvm_limited;
DELETE FROM middle WHERE id > 20000;
VACUUM middle;
SELECT gpuvm.refresh('middle') >= 0;
SELECT state, rows FROM gpuvm.tables WHERE relation = 'middle'::regclass;
SET gpuvm.require = :device;
SELECT count(*), sum(id) FROM middle WHERE id > 10;
SELECT id % 3 AS k, count(*) FROM middle GROUP BY 1 ORDER BY 1;
RESET gpuvm.require;
SELECT * FROM mine;

-- What queries load fails them no more than what is imported: PostgreSQL reads it.
RESET ROLE;
UPDATE gpuvm.quotas SET bytes = 1280 * 1024;
GRANT USAGE ON FOREIGN SERVER gpuvm TO regress_gpuvm_limited;
SET ROLE regress_gpuvm_limited;
SELECT gpuvm.release('middle');
CREATE FOREIGN TABLE stored (id int, v int8) SERVER gpuvm;
INSERT INTO stored SELECT i, hashint8extended(i, 2) FROM generate_series(1, 20000) i;
SET gpuvm.require = :device;
SELECT count(*), sum(id) FROM stored WHERE v <> 0;
RESET gpuvm.require;
INSERT INTO stored SELECT i, hashint8extended(i, 2) FROM generate_series(20001, 200000) i;
SELECT count(*), sum(id) FROM stored WHERE v <> 0;
SET gpuvm.require = :device;
\set VERBOSITY sqlstate
SELECT count(*), sum(id) FROM stored WHERE v <> 0;
\set VERBOSITY default
RESET gpuvm.require;
SELECT gpuvm.import('stored');
SELECT count(*), sum(id) FROM stored WHERE v <> 0;
SELECT pages <= 20 AS within_quota FROM mine;
DROP FOREIGN TABLE stored;

-- That of the database holds, too, for all together.
RESET ROLE;
INSERT INTO gpuvm.quotas SELECT NULL, sum(bytes) + 128 * 1024 FROM gpuvm.memory WHERE database = current_database();
\set VERBOSITY terse
INSERT INTO gpuvm.quotas VALUES (NULL, 1);
\set VERBOSITY default
SELECT fill('any_owner', 25000);
DO $$
DECLARE
	detail text;
BEGIN
	PERFORM gpuvm.import('any_owner');
EXCEPTION WHEN configuration_limit_exceeded THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RAISE NOTICE '%: %', replace(sqlerrm, current_database(), 'this database'), regexp_replace(detail, '\d{4,}', 'N', 'g');
END $$;
SET ROLE regress_gpuvm_limited;
SELECT fill('tiny', 100);
SELECT gpuvm.import('tiny');
\set VERBOSITY sqlstate
SELECT gpuvm.import('middle');
\set VERBOSITY default
RESET ROLE;
SELECT role, database_quota IS NOT NULL AS of_database FROM mine;
DELETE FROM gpuvm.quotas WHERE role IS NULL;
SELECT gpuvm.import('any_owner');
SELECT gpuvm.release('any_owner');

-- The view adds up, and tells others than pg_read_all_stats of their own alone.
SELECT sum(bytes) = pg_size_bytes(current_setting('gpuvm.memory')) AS adds_up FROM gpuvm.memory;
SELECT DISTINCT kind FROM gpuvm.memory ORDER BY kind;
BEGIN;
SELECT bytes AS tables_before FROM gpuvm.memory WHERE role = 'regress_gpuvm_free' \gset
SELECT sum(bytes) AS free_before FROM gpuvm.memory WHERE kind IN ('free', 'spare') \gset
SELECT gpuvm.import('quotas.second');
SELECT sum(bytes) = pg_size_bytes(current_setting('gpuvm.memory')) AS adds_up,
	sum(bytes) FILTER (WHERE role = 'regress_gpuvm_free') - :tables_before = :free_before - sum(bytes) FILTER (WHERE kind IN ('free', 'spare')) AS moved
	FROM gpuvm.memory;
ROLLBACK;
BEGIN;
SET LOCAL gpuvm.require = :device;
DECLARE rows_held CURSOR FOR SELECT id FROM others WHERE v <> 0;
MOVE 1 IN rows_held;
SELECT sum(bytes) = pg_size_bytes(current_setting('gpuvm.memory')) AS adds_up, sum(bytes) FILTER (WHERE kind = 'results') > 65536 AS results
	FROM gpuvm.memory;
COMMIT;
SET ROLE regress_gpuvm_monitor;
SELECT count(*) > 7 AS all_rows FROM gpuvm.memory;
SET ROLE regress_gpuvm_free;
SELECT kind, role FROM gpuvm.memory;
SET ROLE regress_gpuvm_granted;
SELECT kind, role FROM gpuvm.memory;
RESET ROLE;

-- Tables that are gone have nothing.
DELETE FROM gpuvm.quotas;
SET client_min_messages = warning;
DROP SCHEMA quotas CASCADE;
REVOKE ALL ON gpuvm.quotas FROM regress_gpuvm_granted;
REVOKE ALL ON FOREIGN SERVER gpuvm FROM regress_gpuvm_limited;
SELECT count(*) FROM gpuvm.memory WHERE role LIKE 'regress_gpuvm%';
DROP ROLE regress_gpuvm_limited, regress_gpuvm_free, regress_gpuvm_monitor, regress_gpuvm_granted;
