-- Who uses gpuvmd now, and which tables were read.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE ROLE regress_gpuvm_user;
CREATE ROLE regress_gpuvm_other;
CREATE SCHEMA activity;
GRANT USAGE, CREATE ON SCHEMA activity TO regress_gpuvm_user;
SET search_path = activity;
SET gpuvm.force = on;
SET gpuvm.require = :device;

SET ROLE regress_gpuvm_user;
CREATE TABLE t (a int, b int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 10 FROM generate_series(1, 1000000) i;
SELECT gpuvm.import('t');
SELECT scans, last_scan FROM gpuvm.tables WHERE relation = 't'::regclass;

-- A cursor that is not read on holds its session.
BEGIN;
DECLARE c CURSOR FOR SELECT a, b FROM t WHERE b < 9;
SELECT count(*) FROM gpuvm.activity WHERE pid = pg_backend_pid();
FETCH 1 FROM c;
SELECT database = current_database() AS database, role, program ~ '^[0-9a-f]{16}$' AS program, state IN ('running', 'waiting for a processor', 'waiting for the client', 'ended') AS state,
	device, submitted BETWEEN now() AND clock_timestamp() AS submitted, rows_done, rows_to_do, memory
FROM gpuvm.activity WHERE pid = pg_backend_pid();
-- How far it is, and what it holds, is for who may see it of all.
RESET ROLE;
SELECT role, device = replace(:'device', 'vm', 'cpu') OR :'device' = 'vm' AS device, (:'device' = 'cuda' OR (rows_done BETWEEN 1 AND rows_to_do AND rows_to_do = 1000000)) AS rows, memory > 0 AS memory
FROM gpuvm.activity WHERE pid = pg_backend_pid();
SET ROLE regress_gpuvm_other;
SELECT count(*) FROM gpuvm.activity WHERE role <> 'regress_gpuvm_other';
SET ROLE regress_gpuvm_user;
CLOSE c;
SELECT count(*) FROM gpuvm.activity WHERE pid = pg_backend_pid();

-- Each program that read it counts, as a sequential scan, too.
SELECT count(*) FROM t;
SELECT x.a FROM t x JOIN t y ON x.a = y.a WHERE y.a = 77;
SELECT seq_scan, seq_tup_read FROM pg_stat_xact_all_tables WHERE relid = 't'::regclass;
COMMIT;
SELECT scans, last_scan > now() - interval '1 hour' AS last_scan FROM gpuvm.tables WHERE relation = 't'::regclass;
-- A new import begins at 0 only if the table was released.
SELECT gpuvm.import('t');
SELECT scans FROM gpuvm.tables WHERE relation = 't'::regclass;
SELECT gpuvm.release('t');
SELECT gpuvm.import('t');
SELECT scans, last_scan FROM gpuvm.tables WHERE relation = 't'::regclass;
-- What PostgreSQL answers does not count there.
SET gpuvm.require = 'any';
SET gpuvm.enabled = off;
SELECT count(*) FROM t;
SELECT scans FROM gpuvm.tables WHERE relation = 't'::regclass;

RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA activity CASCADE;
DROP ROLE regress_gpuvm_user, regress_gpuvm_other;
