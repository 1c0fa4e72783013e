\echo Use "CREATE EXTENSION gpuvm" to load this file. \quit

GRANT USAGE ON SCHEMA gpuvm TO PUBLIC;

-- What is remembered ------------------------------------------------------

-- import() and release() write it, the background worker that imports after a restart reads it.
CREATE TABLE gpuvm.imports (
	relation regclass PRIMARY KEY,
	columns name[]
);
COMMENT ON TABLE gpuvm.imports IS 'tables that were imported, and are imported again when the server starts';
COMMENT ON COLUMN gpuvm.imports.relation IS 'a table, or a partitioned table for all of its partitions';
COMMENT ON COLUMN gpuvm.imports.columns IS 'the columns imported; null: all that can be';
GRANT SELECT ON gpuvm.imports TO PUBLIC;
-- Rows of tables that are gone (dropped without gpuvm) would name others in the restored database.
SELECT pg_catalog.pg_extension_config_dump('gpuvm.imports', 'WHERE relation IN (SELECT oid FROM pg_catalog.pg_class)');

-- Whoever owns the extension changes it, and whom that grants to. One row a role, or (null) for all roles of the database together.
CREATE TABLE gpuvm.quotas (
	role regrole,
	bytes bigint NOT NULL CHECK (bytes >= 0)
);
CREATE UNIQUE INDEX quotas_role ON gpuvm.quotas (coalesce(role::oid, 0::oid));
COMMENT ON TABLE gpuvm.quotas IS 'what imported tables of this database may take of gpuvm.memory';
COMMENT ON COLUMN gpuvm.quotas.role IS 'the owner of the tables; null: all owners together';
COMMENT ON COLUMN gpuvm.quotas.bytes IS 'what they may take';
COMMENT ON INDEX gpuvm.quotas_role IS 'a role has one quota';
GRANT SELECT ON gpuvm.quotas TO pg_read_all_stats;
-- Rows of roles that are gone could not be restored.
SELECT pg_catalog.pg_extension_config_dump('gpuvm.quotas', 'WHERE role IS NULL OR role IN (SELECT oid FROM pg_catalog.pg_roles)');

-- Import -----------------------------------------------------------------

-- Ownership of the table is checked inside: EXECUTE can stay with PUBLIC.
CREATE FUNCTION gpuvm.import(relation regclass, columns name[] DEFAULT NULL, vacuum boolean DEFAULT true)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_import';
COMMENT ON FUNCTION gpuvm.import(regclass, name[], boolean) IS
	'copies a table, or the named columns of it, into tablets; returns the rows imported';

CREATE FUNCTION gpuvm.refresh(relation regclass)
RETURNS bigint
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_refresh';
COMMENT ON FUNCTION gpuvm.refresh(regclass) IS
	're-reads what changed in an imported table; returns the rows re-read';

CREATE FUNCTION gpuvm.release(relation regclass)
RETURNS void
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_release';
COMMENT ON FUNCTION gpuvm.release(regclass) IS
	'drops the tablets of a table, and forgets that it was imported';

-- Who may read all of the table may: EXECUTE can stay with PUBLIC.
CREATE FUNCTION gpuvm.verify(relation regclass, heap boolean DEFAULT false)
RETURNS TABLE (part regclass, tablet integer, first_block bigint, blocks bigint, "column" name, "row" tid, problem text)
LANGUAGE C VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_verify';
COMMENT ON FUNCTION gpuvm.verify(regclass, boolean) IS
	'checks the tablets of a table against checksums made at import, and their rows against the table''s; returns the problems';

-- File tables ------------------------------------------------------------

CREATE FUNCTION gpuvm.fdw_handler()
RETURNS fdw_handler
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_fdw_handler';
COMMENT ON FUNCTION gpuvm.fdw_handler() IS 'of the foreign data wrapper gpuvm_fdw';

CREATE FUNCTION gpuvm.fdw_validator(options text[], catalog oid)
RETURNS void
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_fdw_validator';
COMMENT ON FUNCTION gpuvm.fdw_validator(text[], oid) IS 'of the foreign data wrapper gpuvm_fdw';

CREATE FOREIGN DATA WRAPPER gpuvm_fdw HANDLER gpuvm.fdw_handler VALIDATOR gpuvm.fdw_validator;
COMMENT ON FOREIGN DATA WRAPPER gpuvm_fdw IS 'tables whose rows are those of a file, or are kept in tablets';
CREATE SERVER gpuvm FOREIGN DATA WRAPPER gpuvm_fdw;
COMMENT ON SERVER gpuvm IS 'files of this machine, and tablets, for CREATE FOREIGN TABLE ... SERVER gpuvm';
-- Which file is read is what is guarded (pg_read_server_files): the validator sees to it.
GRANT USAGE ON FOREIGN SERVER gpuvm TO PUBLIC;

-- Tablet tables ----------------------------------------------------------

-- Foreign tables without a file: the rows that a statement added, as a serialised tablet, and those that statements
-- have deleted, by their numbers. Nobody but the extension's code reads or writes them.
-- An image is in the row itself if it is small, otherwise in chunks that fill a page each. Columns that are added, and plain from
-- the beginning, leave the tables without TOAST tables.
CREATE TABLE gpuvm.tablet_rows (relation oid NOT NULL, tablet bigint NOT NULL, nrows integer NOT NULL);
ALTER TABLE gpuvm.tablet_rows ADD image bytea, ALTER image SET STORAGE PLAIN, ADD image_size integer NOT NULL, ADD size integer NOT NULL;
CREATE TABLE gpuvm.tablet_dead (relation oid NOT NULL, tablet bigint NOT NULL, nrows integer NOT NULL, rows bytea NOT NULL, id bigint NOT NULL);
CREATE TABLE gpuvm.tablet_chunks (tablet bigint NOT NULL, chunk integer NOT NULL);
ALTER TABLE gpuvm.tablet_chunks ADD bytes bytea NOT NULL, ALTER bytes SET STORAGE PLAIN;
CREATE UNLOGGED TABLE gpuvm.tablet_rows_unlogged (LIKE gpuvm.tablet_rows INCLUDING STORAGE);
CREATE UNLOGGED TABLE gpuvm.tablet_dead_unlogged (LIKE gpuvm.tablet_dead INCLUDING STORAGE);
CREATE UNLOGGED TABLE gpuvm.tablet_chunks_unlogged (LIKE gpuvm.tablet_chunks INCLUDING STORAGE);
CREATE INDEX tablet_rows_index ON gpuvm.tablet_rows (relation, tablet);
CREATE INDEX tablet_dead_index ON gpuvm.tablet_dead (relation, tablet);
CREATE INDEX tablet_rows_unlogged_index ON gpuvm.tablet_rows_unlogged (relation, tablet);
CREATE INDEX tablet_dead_unlogged_index ON gpuvm.tablet_dead_unlogged (relation, tablet);
CREATE INDEX tablet_chunks_index ON gpuvm.tablet_chunks (tablet, chunk);
CREATE INDEX tablet_chunks_unlogged_index ON gpuvm.tablet_chunks_unlogged (tablet, chunk);
CREATE SEQUENCE gpuvm.tablet_ids;
COMMENT ON SEQUENCE gpuvm.tablet_ids IS 'numbers of tablets and of sets of deleted rows, never used again';
COMMENT ON TABLE gpuvm.tablet_rows IS 'rows of tablet tables, as the statements that added them left them';
COMMENT ON TABLE gpuvm.tablet_dead IS 'which of them were deleted';
COMMENT ON TABLE gpuvm.tablet_chunks IS 'images of tablets that do not fit a row';
COMMENT ON TABLE gpuvm.tablet_rows_unlogged IS 'the same of tables with the option persist off';
COMMENT ON TABLE gpuvm.tablet_dead_unlogged IS 'which of those were deleted';
COMMENT ON TABLE gpuvm.tablet_chunks_unlogged IS 'images of those';

CREATE FUNCTION gpuvm.compact(relation regclass)
RETURNS bigint
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_compact';
COMMENT ON FUNCTION gpuvm.compact(regclass) IS
	'puts small tablets of a tablet table together, and takes deleted rows out of them; returns the rows rewritten';

CREATE FUNCTION gpuvm.list_tablet_tables()
RETURNS TABLE (relation regclass, tablets bigint, rows bigint, dead_rows bigint, dead_sets bigint, bytes bigint)
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_list_tablet_tables';
COMMENT ON FUNCTION gpuvm.list_tablet_tables() IS 'behind the view gpuvm.tablet_tables';

CREATE VIEW gpuvm.tablet_tables AS SELECT * FROM gpuvm.list_tablet_tables();
COMMENT ON VIEW gpuvm.tablet_tables IS 'tablet tables that have rows: how they are stored';

-- Questions about a query ------------------------------------------------

-- No search_path of their own: the names in the query are the caller's.
CREATE FUNCTION gpuvm.disassemble(query text)
RETURNS TABLE (address integer, opcode text, p1 bigint, p2 bigint, p3 bigint, p4 text, comment text)
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'gpuvm_disassemble';
COMMENT ON FUNCTION gpuvm.disassemble(text) IS
	'the program that a query would run on the virtual machine';

CREATE FUNCTION gpuvm.why_not(query text)
RETURNS TABLE (node text, reason text, hint text)
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'gpuvm_why_not';
COMMENT ON FUNCTION gpuvm.why_not(text) IS
	'why parts of a query stay with PostgreSQL, one row a reason';

CREATE FUNCTION gpuvm.algebra(query text, as_sql boolean DEFAULT false, normalise boolean DEFAULT true)
RETURNS SETOF text
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'gpuvm_algebra';
COMMENT ON FUNCTION gpuvm.algebra(text, boolean, boolean) IS
	'a query as gpuvm''s algebra has it, one operator a line, or as SQL';

-- State ------------------------------------------------------------------

CREATE FUNCTION gpuvm.status()
RETURNS TABLE (backend text, loaded boolean, detail text)
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_status';
COMMENT ON FUNCTION gpuvm.status() IS
	'the parts of gpuvm and its devices, whether each is there, and why';

CREATE FUNCTION gpuvm.ping()
RETURNS double precision
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_ping';
COMMENT ON FUNCTION gpuvm.ping() IS
	'microseconds that the empty program takes to the engine and back';

CREATE FUNCTION gpuvm.list_tables()
RETURNS TABLE (relation regclass, columns name[], rows bigint, tablets integer, blocks bigint,
			   served_blocks bigint, bytes bigint, state text, changed_blocks bigint,
			   served double precision, last_refresh timestamptz, scans bigint, last_scan timestamptz)
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_list_tables';
COMMENT ON FUNCTION gpuvm.list_tables() IS 'behind the view gpuvm.tables';

CREATE VIEW gpuvm.tables AS SELECT * FROM gpuvm.list_tables();
COMMENT ON VIEW gpuvm.tables IS 'imported tables of this database, and those that are remembered but not in memory';

CREATE FUNCTION gpuvm.list_tablets()
RETURNS TABLE (relation regclass, tablet integer, first_block bigint, blocks bigint, rows bigint, bytes bigint,
			   "column" name, type text, width integer, data_bytes bigint, nulls bigint, min text, max text, scale integer, entries bigint)
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_list_tablets';
COMMENT ON FUNCTION gpuvm.list_tablets() IS 'behind the view gpuvm.tablets';

CREATE VIEW gpuvm.tablets AS SELECT * FROM gpuvm.list_tablets();
COMMENT ON VIEW gpuvm.tablets IS 'tablets of the imported tables, one row a column';

CREATE FUNCTION gpuvm.list_memory()
RETURNS TABLE (kind text, database name, role name, bytes bigint, quota bigint, database_quota bigint, engine_bytes bigint)
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_list_memory';
COMMENT ON FUNCTION gpuvm.list_memory() IS 'behind the view gpuvm.memory';

CREATE VIEW gpuvm.memory AS SELECT * FROM gpuvm.list_memory();
COMMENT ON VIEW gpuvm.memory IS 'what gpuvm.memory is used for, by kind and owner, and the owners'' quotas; for others than pg_read_all_stats their own rows';

CREATE FUNCTION gpuvm.list_devices()
RETURNS TABLE (index integer, device text, name text, state text, reason text, threads integer,
			   compute_capability text, multiprocessors integer, memory_total bigint, memory_limit bigint,
			   memory_cached bigint, memory_working bigint, memory_pinned bigint, jobs_running bigint,
			   jobs_done bigint, jobs_refused bigint, bytes_moved bigint, evictions bigint)
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_list_devices';
COMMENT ON FUNCTION gpuvm.list_devices() IS 'behind the view gpuvm.devices';

CREATE VIEW gpuvm.devices AS SELECT * FROM gpuvm.list_devices();
COMMENT ON VIEW gpuvm.devices IS 'devices that programs can run on: 0 is the CPU';

CREATE FUNCTION gpuvm.list_activity()
RETURNS TABLE (pid integer, database name, role name, program text, state text, device text, submitted timestamptz,
			   rows_done bigint, rows_to_do bigint, memory bigint)
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_list_activity';
COMMENT ON FUNCTION gpuvm.list_activity() IS 'behind the view gpuvm.activity';

CREATE VIEW gpuvm.activity AS SELECT * FROM gpuvm.list_activity();
COMMENT ON VIEW gpuvm.activity IS 'what gpuvmd does for sessions now; for others than pg_read_all_stats their own role''s';

CREATE FUNCTION gpuvm.list_import_progress()
RETURNS TABLE (pid integer, relation regclass, phase text, blocks_total bigint, blocks_done bigint, rows bigint)
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_list_import_progress';
COMMENT ON FUNCTION gpuvm.list_import_progress() IS 'behind the view gpuvm.import_progress';

CREATE VIEW gpuvm.import_progress AS SELECT * FROM gpuvm.list_import_progress();
COMMENT ON VIEW gpuvm.import_progress IS 'imports that are running in this database';

CREATE FUNCTION gpuvm.list_stats()
RETURNS TABLE (counter text, value bigint)
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_list_stats';
COMMENT ON FUNCTION gpuvm.list_stats() IS 'behind the view gpuvm.stats';

CREATE VIEW gpuvm.stats AS SELECT * FROM gpuvm.list_stats();
COMMENT ON VIEW gpuvm.stats IS 'counters since the server started, or for others than pg_read_all_stats of this session';

CREATE FUNCTION gpuvm.list_translations()
RETURNS TABLE (outcome text, statements bigint, milliseconds double precision)
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_list_translations';
COMMENT ON FUNCTION gpuvm.list_translations() IS 'behind the view gpuvm.translations';

CREATE VIEW gpuvm.translations AS SELECT * FROM gpuvm.list_translations();
COMMENT ON VIEW gpuvm.translations IS 'statements that gpuvm.whole_query has had translated since the server started, by outcome';

CREATE FUNCTION gpuvm.list_quarantine()
RETURNS TABLE (hash text, engine text, crashes integer, last_cause text, last_crash timestamptz, barred_until timestamptz)
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_list_quarantine';
COMMENT ON FUNCTION gpuvm.list_quarantine() IS 'behind the view gpuvm.quarantine';

CREATE VIEW gpuvm.quarantine AS SELECT * FROM gpuvm.list_quarantine();
COMMENT ON VIEW gpuvm.quarantine IS 'programs that have ended gpuvmd, and until when they are not run';

CREATE FUNCTION gpuvm.forgive(hash text DEFAULT NULL)
RETURNS integer
LANGUAGE C VOLATILE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_forgive';
COMMENT ON FUNCTION gpuvm.forgive(text) IS
	'forgets that a program, or any, has ended gpuvmd; returns how many entries of gpuvm.quarantine are gone';

REVOKE EXECUTE ON FUNCTION gpuvm.list_translations(), gpuvm.list_quarantine(), gpuvm.forgive(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gpuvm.list_translations(), gpuvm.list_quarantine() TO pg_read_all_stats;
GRANT SELECT ON gpuvm.translations, gpuvm.quarantine TO pg_read_all_stats;

CREATE FUNCTION gpuvm.list_opcodes()
RETURNS TABLE (opcode integer, name text, form text, types text, synopsis text)
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'gpuvm_list_opcodes';
COMMENT ON FUNCTION gpuvm.list_opcodes() IS 'behind the view gpuvm.opcodes';

CREATE VIEW gpuvm.opcodes AS SELECT * FROM gpuvm.list_opcodes();
COMMENT ON VIEW gpuvm.opcodes IS 'the instruction set of the virtual machine';

GRANT SELECT ON gpuvm.activity, gpuvm.tables, gpuvm.tablets, gpuvm.tablet_tables, gpuvm.memory, gpuvm.devices, gpuvm.import_progress, gpuvm.stats, gpuvm.opcodes TO PUBLIC;
