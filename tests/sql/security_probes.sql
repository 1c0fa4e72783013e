-- Who may not see a row learns nothing of its values from EXPLAIN ANALYZE or a view: each statement below is asked twice, once so that its condition holds
-- for hidden rows and once so that it does for none, and must look the same.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE ROLE regress_gpuvm_owner;
CREATE ROLE regress_gpuvm_prober;
CREATE SCHEMA probes AUTHORIZATION regress_gpuvm_owner;
GRANT USAGE ON SCHEMA probes TO PUBLIC;
SET search_path = probes;
SET gpuvm.tablet_size = '64kB';
SET gpuvm.force = on;

SET ROLE regress_gpuvm_owner;
-- Every tenth row is the prober's; the others' secrets are above 5000, and rise.
CREATE TABLE vault (id int, owner int, secret int8, note text, amount numeric(12, 2)) WITH (autovacuum_enabled = off);
INSERT INTO vault SELECT i, CASE WHEN i % 10 = 0 THEN 1 ELSE 2 END, CASE WHEN i % 10 = 0 THEN i % 1000 ELSE i + 5000 END,
	CASE WHEN i % 10 = 0 THEN 'open ' || i % 7 ELSE 'note ' || i % 100 END, i / 100.0 FROM generate_series(1, 40000) i;
CREATE TABLE years (id int, owner int, secret int8) PARTITION BY RANGE (id);
CREATE TABLE years1 PARTITION OF years FOR VALUES FROM (0) TO (20001) WITH (autovacuum_enabled = off);
CREATE TABLE years2 PARTITION OF years FOR VALUES FROM (20001) TO (50000) WITH (autovacuum_enabled = off);
INSERT INTO years SELECT id, owner, secret FROM vault;
CREATE TABLE public_rows (id int, label text) WITH (autovacuum_enabled = off);
INSERT INTO public_rows SELECT i, 'label ' || i % 5 FROM generate_series(1, 10000) i;
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM vault WHERE owner = 1;
CREATE VIEW plain AS SELECT id, secret FROM vault WHERE owner = 1;
CREATE VIEW sums AS SELECT owner, count(*) AS n, max(secret) AS top FROM vault GROUP BY owner;
CREATE TABLE changed (LIKE vault) WITH (autovacuum_enabled = off);
INSERT INTO changed SELECT * FROM vault;
SELECT gpuvm.import(t) FROM unnest('{vault,years,public_rows,changed}'::regclass[]) t;
-- No ANALYZE: what its estimates tell is PostgreSQL's own.
UPDATE changed SET secret = secret WHERE id % 500 = 1;
ALTER TABLE vault ENABLE ROW LEVEL SECURITY;
ALTER TABLE years ENABLE ROW LEVEL SECURITY;
ALTER TABLE changed ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON vault TO regress_gpuvm_prober USING (owner = 1);
CREATE POLICY own ON years TO regress_gpuvm_prober USING (owner = 1);
CREATE POLICY own ON changed TO regress_gpuvm_prober USING (owner = 1);
GRANT SELECT ON vault, years, changed, public_rows TO regress_gpuvm_prober;
-- may be read as the views' owner reads them only
CREATE TABLE closed (LIKE vault) WITH (autovacuum_enabled = off);
INSERT INTO closed SELECT * FROM vault;
SELECT gpuvm.import('closed');
CREATE VIEW closed_barrier WITH (security_barrier) AS SELECT * FROM closed WHERE owner = 1;
CREATE VIEW closed_plain AS SELECT * FROM closed WHERE owner = 1;
GRANT SELECT ON barrier, plain, closed_barrier, closed_plain TO regress_gpuvm_prober;

RESET ROLE;
CREATE TABLE statements (n int, statement text);
INSERT INTO statements SELECT row_number() OVER (), s FROM unnest(ARRAY[
	'SELECT count(*) FROM vault WHERE secret > $1',
	'SELECT * FROM vault WHERE secret > $1',
	'SELECT owner, count(*), sum(amount) FROM vault WHERE secret > $1 GROUP BY owner',
	'SELECT note, count(*) FROM vault WHERE secret > $1 GROUP BY note HAVING count(*) > 2',
	'SELECT id, secret FROM vault WHERE secret > $1 ORDER BY amount, id LIMIT 5',
	'SELECT DISTINCT note FROM vault WHERE secret > $1',
	'SELECT upper(note) FROM vault WHERE secret > $1',
	'SELECT count(*) FROM vault WHERE secret > $1 AND note LIKE ''note 9%''',
	'SELECT count(*) FROM vault v JOIN public_rows p USING (id) WHERE secret > $1',
	'SELECT p.label, sum(v.amount) FROM vault v JOIN public_rows p USING (id) WHERE secret > $1 GROUP BY p.label',
	'SELECT count(*) FROM vault a JOIN vault b ON a.secret = b.secret WHERE a.secret > $1',
	'SELECT count(*) FROM public_rows p LEFT JOIN vault v ON v.id = p.id AND v.secret > $1',
	'SELECT count(*) FROM public_rows p WHERE EXISTS (SELECT FROM vault v WHERE v.id = p.id AND secret > $1)',
	'SELECT count(*) FROM public_rows p WHERE NOT EXISTS (SELECT FROM vault v WHERE v.id = p.id AND secret > $1)',
	'SELECT count(*) FROM public_rows p JOIN (SELECT id % 100 AS k, count(*) AS n FROM vault WHERE secret > $1 GROUP BY 1) v ON v.k = p.id',
	'SELECT id FROM vault WHERE secret > $1 UNION ALL SELECT id FROM public_rows WHERE id < 3',
	'SELECT owner, sum(n) FROM (SELECT owner, 1 AS n FROM vault WHERE secret > $1 UNION ALL SELECT id, 2 FROM public_rows WHERE id < 3) u GROUP BY owner',
	'SELECT id, rank() OVER (PARTITION BY owner ORDER BY amount) FROM vault WHERE secret > $1',
	'SELECT sum(n) FROM (SELECT id, count(*) OVER (PARTITION BY note) AS n FROM vault WHERE secret > $1) w',
	'WITH w AS (SELECT note, sum(amount) AS s FROM vault WHERE secret > $1 GROUP BY note) SELECT count(*) FROM w a JOIN w b ON a.s >= b.s AND a.note = b.note',
	'SELECT count(*) FROM public_rows WHERE id > (SELECT coalesce(max(secret), 0) FROM vault WHERE secret > $1)',
	'SELECT owner, note, count(*) FROM vault WHERE secret > $1 GROUP BY ROLLUP (owner, note)',
	'SELECT count(DISTINCT note) FROM vault WHERE secret > $1',
	'SELECT count(*) FROM years WHERE secret > $1',
	'SELECT owner, count(*) FROM years WHERE secret > $1 GROUP BY owner',
	'SELECT count(*), sum(amount) FROM changed WHERE secret > $1',
	'SELECT * FROM changed WHERE secret > $1',
	'SELECT count(*) FROM barrier WHERE secret > $1',
	'SELECT count(*) FROM plain WHERE secret > $1',
	'SELECT count(*) FROM closed_barrier WHERE secret > $1',
	'SELECT * FROM closed_plain WHERE secret > $1',
	'SELECT count(*) FROM closed_plain v JOIN public_rows p USING (id) WHERE secret > $1']) s;
GRANT SELECT ON statements TO PUBLIC;

-- What the current user is shown of a statement, but for times, estimates and the number that it compares with.
CREATE FUNCTION shown(statement text, bound int, options text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	part text;
	line text;
BEGIN
	FOR part IN EXECUTE format('EXPLAIN (ANALYZE, %s) ', options) || replace(statement, '$1', bound::text) LOOP
		FOREACH line IN ARRAY regexp_split_to_array(part, E'\n') LOOP
			CONTINUE WHEN line ~ 'Time"?:|Memory|Buffers|Planning:|(Startup|Total) Cost';
			line := regexp_replace(line, '\(cost=[^)]*\) ?|actual time=[0-9.]+ *', '', 'g');
			RETURN NEXT regexp_replace(line, '\m(9000|900000)\M', 'bound', 'g');
		END LOOP;
	END LOOP;
END $$;
-- All that views and status() show, a line a row.
CREATE FUNCTION views() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	name text;
BEGIN
	FOREACH name IN ARRAY '{activity,tables,tablets,devices,import_progress,tablet_tables,memory,imports}'::text[] LOOP
		RETURN QUERY EXECUTE format('SELECT %L || '': '' || to_jsonb(v) - ''{scans,last_scan}''::text[] FROM gpuvm.%s v', name, name);
	END LOOP;
	-- the refresher says what it does, whoever asks
	RETURN QUERY SELECT detail FROM gpuvm.status() WHERE backend <> 'refresher';
END $$;
CREATE FUNCTION probe(statement text, bound int, options text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	before jsonb := (SELECT jsonb_object_agg(counter, value) FROM gpuvm.stats);
	views text[] := ARRAY(SELECT v FROM views() v);
BEGIN
	RETURN QUERY SELECT * FROM shown(statement, bound, options);
	RETURN QUERY SELECT format('%s: +%s', counter, value - (before ->> counter)::bigint) FROM gpuvm.stats
		WHERE value <> (before ->> counter)::bigint;
	RETURN QUERY SELECT v FROM views() v WHERE v <> ALL (views);
END $$;
-- The lines that differ between the two bounds; none, but that a statement had fewer than five lines.
CREATE FUNCTION differences(options text) RETURNS TABLE (n int, line text) LANGUAGE plpgsql AS $$
DECLARE
	one record;
	hits text[];
	misses text[];
BEGIN
	FOR one IN SELECT * FROM statements s ORDER BY s.n LOOP
		-- what is kept for the next execution is there
		PERFORM FROM shown(one.statement, 9000, options);
		PERFORM FROM shown(one.statement, 900000, options);
		hits := ARRAY(SELECT * FROM probe(one.statement, 9000, options));
		misses := ARRAY(SELECT * FROM probe(one.statement, 900000, options));
		RETURN QUERY SELECT one.n, 'hit: ' || h FROM unnest(hits) h WHERE h <> ALL (misses);
		RETURN QUERY SELECT one.n, 'miss: ' || m FROM unnest(misses) m WHERE m <> ALL (hits);
		IF cardinality(hits) < 5 THEN
			RETURN QUERY SELECT one.n, h FROM unnest(hits) h;
		END IF;
	END LOOP;
END $$;

-- Plans, too: of tables whose hidden rows differ in their greatest values, and in how many values there are.
SET ROLE regress_gpuvm_owner;
CREATE TABLE twin1 (id int, owner int, secret int8, note text, amount numeric(12, 2)) WITH (autovacuum_enabled = off);
INSERT INTO twin1 SELECT i, CASE WHEN i % 10 = 0 THEN 1 ELSE 2 END, i % 1000, CASE WHEN i % 10 = 0 THEN 'open 0' ELSE 'note ' || i % 3 END, i % 100
FROM generate_series(1, 20000) i;
CREATE TABLE twin2 (LIKE twin1) WITH (autovacuum_enabled = off);
INSERT INTO twin2 SELECT id, owner, CASE WHEN owner = 1 THEN secret ELSE secret + 4000000000 END,
	CASE WHEN owner = 1 THEN note ELSE 'n' || lpad(to_hex(id), 5, '0') END, CASE WHEN owner = 1 THEN amount ELSE 99999999 - amount END FROM twin1;
SELECT gpuvm.import(t) FROM unnest('{twin1,twin2}'::regclass[]) t;
ALTER TABLE twin1 ENABLE ROW LEVEL SECURITY;
ALTER TABLE twin2 ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON twin1 TO regress_gpuvm_prober USING (owner = 1);
CREATE POLICY own ON twin2 TO regress_gpuvm_prober USING (owner = 1);
CREATE VIEW behind1 WITH (security_barrier) AS SELECT * FROM twin1 WHERE owner = 1;
CREATE VIEW behind2 WITH (security_barrier) AS SELECT * FROM twin2 WHERE owner = 1;
GRANT SELECT ON twin1, twin2, behind1, behind2 TO regress_gpuvm_prober;
-- which are inlined when the statement is planned
CREATE FUNCTION inlined1() RETURNS SETOF twin1 LANGUAGE sql STABLE AS 'SELECT * FROM twin1';
CREATE FUNCTION inlined2() RETURNS SETOF twin2 LANGUAGE sql STABLE AS 'SELECT * FROM twin2';
RESET ROLE;
CREATE FUNCTION plan_of(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE 'EXPLAIN (VERBOSE) ' || statement;
END $$;
CREATE FUNCTION different_plans() RETURNS TABLE (statement text) LANGUAGE plpgsql AS $$
DECLARE
	one text;
	source text;
BEGIN
	FOREACH one IN ARRAY ARRAY[
		'SELECT stddev(secret::numeric + 3036955500) FROM $1',
		'SELECT sum(secret * secret), avg(secret) FROM $1',
		'SELECT sum(amount * amount) FROM $1',
		'SELECT variance(amount), sum(amount / 3) FROM $1',
		'SELECT sum(round(amount * secret, 1)) FROM $1',
		'SELECT count(*) FROM $1 WHERE upper(note) = ''OPEN 0''',
		'SELECT upper(note), count(*) FROM $1 GROUP BY 1',
		'SELECT * FROM $1 ORDER BY note, id LIMIT 3',
		'SELECT max(note) FROM $1 WHERE note LIKE ''%o%''',
		'SELECT count(*) FROM $1 a JOIN $1 b ON a.note = b.note AND a.id = b.id',
		'SELECT count(DISTINCT lower(note)) FROM $1',
		'SELECT note || owner::text, count(*) FROM $1 GROUP BY 1',
		'SELECT id, rank() OVER (ORDER BY note) FROM $1'] LOOP
		FOREACH source IN ARRAY '{twin,behind,inlined}'::text[] LOOP
			statement := replace(one, '$1', source);
			CONTINUE WHEN source = 'inlined' AND one LIKE '%$1 a JOIN%';
			IF array(SELECT regexp_replace(p, '(twin|behind|inlined)1', '\1', 'g') FROM plan_of(replace(one, '$1', source || '1' || CASE source WHEN 'inlined' THEN '()' ELSE '' END)) p) <>
				array(SELECT regexp_replace(p, '(twin|behind|inlined)2', '\1', 'g') FROM plan_of(replace(one, '$1', source || '2' || CASE source WHEN 'inlined' THEN '()' ELSE '' END)) p) THEN
				RETURN NEXT;
			END IF;
		END LOOP;
	END LOOP;
END $$;
SET ROLE regress_gpuvm_prober;
SELECT * FROM different_plans();
SET ROLE regress_gpuvm_owner;
SELECT count(*) > 5 AS differ FROM different_plans() WHERE statement LIKE '%twin%';
-- Who may not read a table sees no program over it.
SET ROLE regress_gpuvm_prober;
SELECT * FROM gpuvm.disassemble('SELECT stddev(secret::numeric + 1) FROM closed');
SELECT * FROM gpuvm.why_not('SELECT stddev(secret::numeric + 1) FROM closed');
RESET ROLE;

SET gpuvm.require = :device;
SET ROLE regress_gpuvm_prober;
SELECT * FROM differences('VERBOSE');
SELECT * FROM differences('COSTS OFF, BUFFERS');
SELECT * FROM differences('VERBOSE, FORMAT JSON');
SET gpuvm.whole_query = off;
RESET gpuvm.require;
SELECT * FROM differences('VERBOSE');
RESET gpuvm.whole_query;
SET gpuvm.require = :device;
-- Who may see all rows is shown what differs.
SET ROLE regress_gpuvm_owner;
SELECT count(DISTINCT n) FROM differences('VERBOSE') WHERE line ~ 'VM Rows In|Tablets|VM Rows Out';

-- Views: what tells of others, or of hidden rows, is null.
SET ROLE regress_gpuvm_prober;
SELECT counter FROM gpuvm.stats WHERE value IS NULL;
SELECT relation, rows, bytes IS NOT NULL AS bytes, state FROM gpuvm.tables ORDER BY relation::text COLLATE "C";
SELECT DISTINCT relation, type, rows IS NULL AS rows, bytes IS NULL AS bytes, data_bytes IS NULL AS data_bytes, min, max FROM gpuvm.tablets
WHERE relation <> 'public_rows'::regclass ORDER BY relation;
SELECT device, memory_working, memory_pinned, jobs_done, bytes_moved FROM gpuvm.devices WHERE index = 0;
SELECT detail ~ 'MB' AS memory FROM gpuvm.status() WHERE backend = 'cpu';
SELECT * FROM gpuvm.translations;
-- One's own queries are counted, and nobody else's.
RESET ROLE;
CREATE FUNCTION mine() RETURNS bigint LANGUAGE sql AS $$ SELECT value FROM gpuvm.stats WHERE counter = 'queries' $$;
SET ROLE regress_gpuvm_prober;
SELECT mine() AS before \gset
SELECT count(*) FROM vault;
SELECT mine() - :before AS queries;
\connect -
SET search_path = probes;
SET ROLE regress_gpuvm_prober;
SELECT mine();
RESET ROLE;
GRANT pg_read_all_stats TO regress_gpuvm_prober;
SET ROLE regress_gpuvm_prober;
SELECT mine() > 100 AS all, (SELECT bool_and(value IS NOT NULL) FROM gpuvm.stats) AS volumes,
	(SELECT memory_pinned IS NOT NULL FROM gpuvm.devices WHERE index = 0) AS memory;
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA probes CASCADE;
DROP ROLE regress_gpuvm_owner, regress_gpuvm_prober;
