-- Equal values of several columns have one reference, which leads into one of these: of the same table or another, imported or changed since.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA refs;
SET search_path = refs;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/ask_many.sql
\i tests/sql/include/vary.sql
\set ECHO all

CREATE TABLE a (id int, x inet, y cidr, j jsonb, k int[], t text, b varbit) WITH (autovacuum_enabled = off);
CREATE TABLE b (id int, dropped jsonb, x inet, z inet, j jsonb, l jsonb, k int[], t text, b bit(8)) WITH (autovacuum_enabled = off);
ALTER TABLE b DROP dropped;
CREATE FUNCTION add(first int, last int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO a SELECT i, ('10.0.0.' || i % 20)::inet, ('10.0.0.' || i % 25)::cidr, to_jsonb(i % 30), ARRAY[i % 9, i % 7], 't' || i % 40, (i % 256)::bit(8)
		FROM generate_series(first, last) i;
	INSERT INTO b SELECT i, ('10.0.0.' || i % 22)::inet, ('10.0.0.' || (i + 5) % 10)::inet, to_jsonb((i + 3) % 30), to_jsonb((i + 1) % 7), ARRAY[i % 7, i % 9],
		't' || (i + 7) % 44, ((i + 9) % 256)::bit(8) FROM generate_series(first, last) i;
$$;
SELECT add(1, 3000);
SELECT vary('a', 'x', 'y', 'j', 'k', 't', 'b'), vary('b', 'x', 'z', 'j', 'l', 'k', 't', 'b');
SELECT gpuvm.import('a'), gpuvm.import('b');

INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['x, y, count(*) FROM a GROUP BY 1, 2', 'y, x, min(id) FROM a GROUP BY 1, 2', 'x, z, count(*) FROM b GROUP BY 1, 2',
	'a.x, b.z, count(*) FROM a JOIN b USING (id) GROUP BY 1, 2', 'a.t, b.t, a.b, b.b, count(*) FROM a JOIN b USING (id) GROUP BY 1, 2, 3, 4',
	's.x, b.z, count(*) FROM b JOIN (SELECT DISTINCT id, x FROM a OFFSET 0) s USING (id) GROUP BY 1, 2',
	's.t, b.t, count(*) FROM b JOIN (SELECT id, x::text AS t FROM a OFFSET 0) s USING (id) GROUP BY 1, 2', 'a.x, b.j, a.k, b.t FROM a JOIN b USING (id)']) q;
CREATE TABLE again AS SELECT query FROM queries;
SELECT * FROM asked();
SELECT add(3001, 3500);
INSERT INTO queries (query) SELECT query FROM again;
SELECT * FROM asked();

DROP SCHEMA refs CASCADE;
