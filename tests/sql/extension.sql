-- The extension's objects, their privileges and comments, and the settings.
SET client_min_messages = warning;
DROP EXTENSION IF EXISTS gpuvm CASCADE;
RESET client_min_messages;
CREATE EXTENSION gpuvm;
\dx+ gpuvm
-- It lives in its own schema, and nowhere else.
CREATE SCHEMA elsewhere;
ALTER EXTENSION gpuvm SET SCHEMA elsewhere;
DROP SCHEMA elsewhere;
SELECT count(DISTINCT extname), count(*) FROM pg_extension WHERE extname = 'gpuvm';

-- Every object is commented, and every function but the two that read the caller's names has a fixed search_path.
CREATE VIEW members AS
SELECT d.classid, d.objid, d.objsubid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
WHERE e.extname = 'gpuvm' AND d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass;
SELECT pg_describe_object(classid, objid, 0) AS without_comment FROM members
WHERE obj_description(objid, classid::regclass::text) IS NULL
	AND classid IN ('pg_proc'::regclass, 'pg_class'::regclass) ORDER BY 1;
SELECT proname, provolatile AS v, proparallel AS p, proisstrict AS strict, prosecdef AS definer, proconfig
FROM pg_proc WHERE oid IN (SELECT objid FROM members WHERE classid = 'pg_proc'::regclass)
ORDER BY proname COLLATE "C";

-- What PUBLIC may do.
CREATE ROLE regress_gpuvm_nobody;
SELECT has_schema_privilege('regress_gpuvm_nobody', 'gpuvm', 'USAGE') AS usage,
	has_schema_privilege('regress_gpuvm_nobody', 'gpuvm', 'CREATE') AS create;
SELECT c.relname, has_table_privilege('regress_gpuvm_nobody', c.oid, 'SELECT') AS "select",
	has_table_privilege('regress_gpuvm_nobody', c.oid, 'INSERT,UPDATE,DELETE,TRUNCATE') AS write
FROM pg_class c WHERE c.oid IN (SELECT objid FROM members WHERE classid = 'pg_class'::regclass)
ORDER BY relname COLLATE "C";
SET ROLE regress_gpuvm_nobody;
SELECT count(*) FROM gpuvm.tables;
SELECT count(*) FROM gpuvm.tablets;
SELECT count(*) FROM gpuvm.import_progress;
SELECT count(*) FROM gpuvm.devices WHERE device = 'cpu';
SELECT bool_and(value >= 0) FROM gpuvm.stats;
SELECT counter FROM gpuvm.stats;
SELECT count(*) > 60 AS opcodes, count(*) = count(DISTINCT name) AS unique FROM gpuvm.opcodes;
SELECT name, form, types, synopsis FROM gpuvm.opcodes WHERE name IN ('Table', 'Column', 'Le', 'Result', 'Converge') ORDER BY 1;
SELECT loaded FROM gpuvm.status() WHERE backend = 'cpu';
RESET ROLE;
DROP ROLE regress_gpuvm_nobody;
DROP VIEW members;

-- Settings: kinds, bounds, and what is said of values that are not allowed.
SELECT name, vartype, context, unit, min_val, max_val, enumvals, boot_val FROM pg_settings
WHERE name LIKE 'gpuvm.%' AND name <> 'gpuvm.memory' ORDER BY name COLLATE "C";
SELECT name, vartype, context, unit, min_val, max_val, setting::int >= 16 AS at_least_16_mb FROM pg_settings
WHERE name = 'gpuvm.memory';
SELECT name FROM pg_settings WHERE name LIKE 'gpuvm.%' AND short_desc IS NULL;
SET gpuvm.enabled = maybe;
SET gpuvm.device = tpu;
SET gpuvm.require = everything;
SET gpuvm.transfer = pigeon;
SET gpuvm.jit = sometimes;
SET gpuvm.memory = 64;
SET gpuvm.device_memory = 64;
SET gpuvm.tablet_size = 63;
SET gpuvm.tablet_size = '2GB';
SET gpuvm.tablet_size = '64kB';
SHOW gpuvm.tablet_size;
SET gpuvm.threads = -1;
SET gpuvm.threads = 1025;
SET gpuvm.threads = 1;
SET gpuvm.forse = on;
ALTER SYSTEM SET gpuvm.memory = 15;
RESET ALL;

DROP EXTENSION gpuvm;
SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'gpuvm';
CREATE EXTENSION gpuvm;
