-- Statements as the algebra has them: what each construct becomes, what is refused, and that it means the same.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA algebra;
SET search_path = algebra;
\pset format unaligned
\pset tuples_only on

CREATE TABLE item (id int PRIMARY KEY, name text NOT NULL, price numeric(10,2), kind int) WITH (autovacuum_enabled = off);
CREATE TABLE sale (item int, qty int, day date, note text) WITH (autovacuum_enabled = off);
INSERT INTO item SELECT i, 'i' || i, i, nullif(i % 4, 3) FROM generate_series(1, 40) i;
INSERT INTO sale SELECT nullif(i % 50, 7), i % 6, date '2024-01-01' + i % 9, nullif(i % 5, 0)::text FROM generate_series(0, 199) i;
CREATE TABLE plain (id int, n int);
INSERT INTO plain SELECT i, i * 2 FROM generate_series(1, 5) i;
CREATE TABLE part (id int, n int) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10);
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (10) TO (20);
INSERT INTO part SELECT i, i % 3 FROM generate_series(0, 19) i;
SELECT gpuvm.import('item'), gpuvm.import('sale'), gpuvm.import('part_1');

-- The tree as translated, and after the rules; whether PostgreSQL gives the same rows for the statement and for both as SQL.
CREATE FUNCTION rows_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	rows text;
BEGIN
	EXECUTE format('SELECT string_agg(q::text, '' '' ORDER BY q::text) FROM (%s) q', query) INTO rows;
	RETURN rows;
END $$;
CREATE FUNCTION ask(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	translated text[];
	normalised text[];
BEGIN
	RETURN NEXT '-- ' || query;
	translated := ARRAY(SELECT gpuvm.algebra(query, normalise => false));
	normalised := ARRAY(SELECT gpuvm.algebra(query));
	RETURN QUERY SELECT unnest(translated);
	IF normalised <> translated THEN
		RETURN NEXT '=> normalised';
		RETURN QUERY SELECT unnest(normalised);
	END IF;
	IF rows_of(gpuvm.algebra(query, as_sql => true, normalise => false)) IS DISTINCT FROM rows_of(query) THEN
		RETURN NEXT 'DIFFERENT as translated';
	END IF;
	IF rows_of(gpuvm.algebra(query, as_sql => true)) IS DISTINCT FROM rows_of(query) THEN
		RETURN NEXT 'DIFFERENT as normalised';
	END IF;
EXCEPTION WHEN feature_not_supported THEN
	RETURN NEXT SQLERRM;
END $$;

-- Scans, conditions, projections; constants are folded, columns that nobody reads go.
SELECT ask($$SELECT name, price * (1 + 1) AS twice, name FROM item WHERE id > 2 + 3 AND NOT (kind = 1 OR kind = 2)$$);
SELECT ask($$SELECT 1 AS one WHERE true$$);
SELECT ask($$SELECT id FROM part WHERE n = 1$$);
SELECT gpuvm.import('part_2');
SELECT ask($$SELECT id FROM part WHERE n = 1$$);
SELECT ask($$SELECT i.id, p.n FROM item i, plain p WHERE i.id = p.id$$);
SELECT ask($$SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v (k, word) JOIN item ON id = k$$);
SELECT ask($$SELECT id, g FROM item, generate_series(1, 2) g WHERE id < 3$$);

-- Joins. Conditions go down, equalities say more of constants, outer joins become inner ones.
SELECT ask($$SELECT name, qty FROM item JOIN sale ON id = item WHERE id = 5 AND qty > 1$$);
SELECT ask($$SELECT name, qty FROM item LEFT JOIN sale ON id = item AND qty = 3 AND kind = 1 WHERE id < 5$$);
SELECT ask($$SELECT name, qty FROM item LEFT JOIN sale ON id = item WHERE qty = 3$$);
SELECT ask($$SELECT name, qty FROM sale RIGHT JOIN item ON id = item WHERE coalesce(qty, 0) = 0$$);
SELECT ask($$SELECT name, qty FROM item FULL JOIN sale ON id = item$$);
SELECT ask($$SELECT name, qty FROM item FULL JOIN sale ON id = item WHERE id > 30$$);
SELECT ask($$SELECT x, a.kind FROM (SELECT id AS x, kind FROM item) a FULL JOIN (SELECT item AS x FROM sale) b USING (x)$$);

-- Subqueries of conditions, with nulls.
SELECT ask($$SELECT id FROM item WHERE EXISTS (SELECT 1 / 0 FROM sale WHERE item = id AND qty > 4)$$);
SELECT ask($$SELECT id FROM item WHERE NOT EXISTS (SELECT FROM sale WHERE item = id AND qty < kind)$$);
SELECT ask($$SELECT id FROM item WHERE EXISTS (SELECT FROM sale WHERE qty > 100 LIMIT 3)$$);
SELECT ask($$SELECT id FROM item WHERE kind IN (SELECT qty FROM sale WHERE item = id)$$);
SELECT ask($$SELECT id FROM item WHERE id NOT IN (SELECT item FROM sale)$$);
SELECT ask($$SELECT id FROM item WHERE id NOT IN (SELECT item FROM sale WHERE item < 30)$$);
SELECT ask($$SELECT id FROM item WHERE kind NOT IN (SELECT qty FROM sale WHERE item = id)$$);
SELECT ask($$SELECT id FROM item WHERE (id, kind) NOT IN (SELECT item, qty FROM sale)$$);
SELECT ask($$SELECT id FROM item WHERE id > ALL (SELECT qty FROM sale WHERE item = kind)$$);
SELECT ask($$SELECT id FROM item WHERE NOT id > ALL (SELECT item FROM sale)$$);
SELECT ask($$SELECT id FROM item WHERE id = 3 OR id IN (SELECT item FROM sale WHERE qty = kind) OR EXISTS (SELECT FROM sale WHERE item = kind)$$);
SELECT ask($$SELECT id, kind = ANY (SELECT qty FROM sale WHERE item = id), kind <> ALL (SELECT item FROM sale) FROM item$$);

-- Subqueries of one value: bound if they refer to nothing outside, else a join, and counts of no rows are 0.
SELECT ask($$SELECT id FROM item WHERE price > (SELECT avg(qty) FROM sale)$$);
SELECT ask($$SELECT id, (SELECT count(*) FROM sale WHERE item = id), (SELECT max(qty) + 1 FROM sale WHERE item = kind) FROM item$$);
SELECT ask($$SELECT id, (SELECT name FROM item i WHERE i.id = item.kind) FROM item$$);
SELECT ask($$SELECT id, (SELECT item.kind FROM sale WHERE item = id AND qty = 2 AND day = '2024-01-02') FROM item$$);
SELECT ask($$SELECT id FROM item WHERE (id, kind) = (SELECT i.id, i.kind FROM item i WHERE i.id = item.id)$$);
SELECT ask($$SELECT name, (SELECT count(*) FROM sale WHERE item = max(i.id)), (SELECT sum(i.price)) FROM item i GROUP BY name$$);
SELECT ask($$SELECT id FROM item o WHERE EXISTS (SELECT FROM sale s WHERE s.item = o.id AND qty > (SELECT avg(qty) FROM sale WHERE item = o.kind))$$);

-- LATERAL.
SELECT ask($$SELECT id, s.* FROM item LEFT JOIN LATERAL (SELECT qty, kind AS k FROM sale WHERE item = id ORDER BY qty LIMIT 1) s ON true$$);
SELECT ask($$SELECT id, s.n FROM item, LATERAL (SELECT count(*) AS n FROM sale WHERE item = id) s WHERE s.n > 3$$);
SELECT ask($$SELECT id, s.n FROM item, LATERAL (SELECT qty, count(*) AS n FROM sale WHERE item = id GROUP BY qty) s$$);
SELECT ask($$SELECT id, v FROM item, LATERAL (VALUES (kind), (id)) l (v) WHERE v < 2$$);

-- Groups.
SELECT ask($$SELECT kind + 1, count(*), sum(price) FILTER (WHERE id > 3) FROM item GROUP BY kind + 1 HAVING kind + 1 < 3 AND count(*) > 2$$);
SELECT ask($$SELECT count(*), max(name) FROM item$$);
SELECT ask($$SELECT id, name, count(*) FROM item JOIN sale ON item = id GROUP BY id$$);
SELECT ask($$SELECT kind, id % 2, grouping(kind, id % 2), count(*) FROM item GROUP BY ROLLUP (kind, id % 2) HAVING kind < 2$$);
SELECT ask($$SELECT a, b, count(*) FROM (SELECT kind AS a, kind AS b FROM item) s GROUP BY GROUPING SETS ((a), (b), ())$$);
SELECT ask($$SELECT x, y, count(*) FROM (SELECT id AS x FROM item) a JOIN (SELECT item AS x, qty AS y FROM sale) b USING (x) GROUP BY x, y$$);
SELECT ask($$SELECT DISTINCT kind, kind + 1 FROM item ORDER BY kind$$);
SELECT ask($$SELECT count(DISTINCT kind), string_agg(name, ',' ORDER BY id) FROM item$$);

-- Windows, DISTINCT ON, ORDER BY, LIMIT.
SELECT ask($$SELECT id, rank() OVER w, sum(price) OVER (PARTITION BY kind ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM item WINDOW w AS (PARTITION BY kind ORDER BY price DESC NULLS LAST)$$);
SELECT ask($$SELECT * FROM (SELECT kind, sum(price) AS s, rank() OVER (PARTITION BY kind ORDER BY sum(price)) AS r FROM item GROUP BY kind, name) q WHERE kind = 1 AND r < 3$$);
SELECT ask($$SELECT DISTINCT ON (kind) kind, name FROM item ORDER BY kind, price DESC$$);
SELECT ask($$SELECT name FROM item ORDER BY price DESC, id LIMIT 3 OFFSET 1$$);
SELECT ask($$SELECT kind FROM item ORDER BY kind NULLS FIRST FETCH FIRST 2 ROWS WITH TIES$$);

-- Set operations, CTEs, views.
SELECT ask($$SELECT kind FROM item UNION ALL SELECT qty FROM sale UNION ALL SELECT 1.5$$);
SELECT ask($$SELECT kind FROM item UNION SELECT qty FROM sale ORDER BY 1$$);
SELECT ask($$SELECT * FROM (SELECT kind, id FROM item UNION ALL SELECT qty, item FROM sale) u WHERE kind = 2$$);
SELECT ask($$SELECT kind FROM item INTERSECT SELECT qty FROM sale EXCEPT SELECT 1$$);
SELECT ask($$WITH s AS (SELECT item, sum(qty) AS q, count(*) AS n FROM sale GROUP BY item) SELECT a.item, b.q FROM s a JOIN s b ON a.item = b.item + 1$$);
SELECT ask($$WITH s AS (SELECT item, sum(qty) AS q FROM sale GROUP BY item) SELECT q FROM s WHERE item = 4$$);
SELECT ask($$WITH s AS MATERIALIZED (SELECT item FROM sale) SELECT item FROM s WHERE item = 4$$);
SELECT gpuvm.algebra($$WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT id FROM item, r WHERE id = n$$);
CREATE VIEW cheap AS SELECT id, name, price FROM item WHERE price < 9;
CREATE VIEW hidden WITH (security_barrier) AS SELECT id, name, kind FROM item WHERE price < 9;
SELECT ask($$SELECT name FROM cheap WHERE id > 2$$);
-- A condition that may tell of rows stays above the barrier.
SELECT ask($$SELECT name FROM hidden WHERE id > 2 AND name ~ '3' AND kind / (id - 20) = 0$$);
SELECT gpuvm.algebra($$SELECT random() > 2, id FROM item ORDER BY id LIMIT 2$$);

-- Row security by levels; and who may not read a table does not see what becomes of it.
CREATE ROLE regress_gpuvm_reader;
GRANT USAGE ON SCHEMA algebra TO regress_gpuvm_reader;
GRANT SELECT ON sale TO regress_gpuvm_reader;
ALTER TABLE sale ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON sale USING (qty < 3);
SET ROLE regress_gpuvm_reader;
SELECT gpuvm.algebra($$SELECT note FROM sale WHERE note LIKE '3%' AND item = 4$$);
SELECT gpuvm.algebra($$SELECT name FROM item$$);
RESET ROLE;
ALTER TABLE sale DISABLE ROW LEVEL SECURITY;

-- Refused.
SELECT ask(q) FROM unnest(ARRAY['INSERT INTO plain SELECT 1', 'SELECT id FROM item FOR UPDATE', 'SELECT generate_series(1, id) FROM item', 'SELECT id FROM item WHERE random() < 2',
	'SELECT id FROM item TABLESAMPLE system (50)', 'SELECT item FROM item', 'SELECT g FROM item, generate_series(1, id) g', 'SELECT ARRAY(SELECT qty FROM sale)',
	'SELECT id FROM item a FULL JOIN sale ON id = item AND EXISTS (SELECT FROM plain)', 'SELECT (SELECT qty FROM sale LIMIT kind) FROM item',
	'SELECT kind FROM item INTERSECT ALL SELECT qty FROM sale', 'SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM item',
	'WITH x AS (DELETE FROM plain RETURNING id) SELECT id FROM x']) q;
SELECT gpuvm.algebra('VACUUM');
SELECT gpuvm.algebra('SELECT 1; SELECT 2');

-- Deep nesting takes no more than its depth: 200 levels of each kind.
SELECT count(*) > 200, max(length(line)) < 10000 FROM (SELECT gpuvm.algebra((SELECT repeat('SELECT id + id AS id, count(*) FROM (SELECT id + id AS id FROM (', 100) || 'SELECT id FROM item' || repeat(') a) b GROUP BY id', 100)))) q (line);
SELECT count(*) > 200, max(length(line)) < 10000 FROM (SELECT gpuvm.algebra('SELECT id FROM item WHERE ' || string_agg('EXISTS (SELECT FROM sale s' || i || ' WHERE item = ' || CASE WHEN i = 1 THEN 'id' ELSE 's' || i - 1 || '.item' END, ' AND ' ORDER BY i)
	|| repeat(')', 200)) FROM generate_series(1, 200) i) q (line);

-- Shadow mode: counted, and nothing else.
SELECT sum(statements) AS before FROM gpuvm.translations \gset
SET gpuvm.whole_query = shadow;
SELECT count(*) FROM item WHERE id IN (SELECT item FROM sale);
SELECT sum(n) FROM plain;
SELECT count(*) FROM (SELECT id, random() FROM item WHERE random() < 2) q;
SET gpuvm.whole_query = off;
SELECT count(*) FROM item;
SELECT sum(statements) - :before FROM gpuvm.translations;
SELECT statements FROM gpuvm.translations WHERE outcome = 'inconsistent algebra';
-- An error of folding is PostgreSQL's to raise, or not.
CREATE FUNCTION fails(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE NOTICE 'called'; RETURN 1 / $1; END $$;
SET gpuvm.whole_query = shadow;
SELECT count(*) FROM item WHERE id < 0 AND id = fails(1);
SELECT CASE WHEN id > 0 THEN id ELSE fails(0) END AS id FROM item WHERE id = 1;
SET gpuvm.whole_query = off;

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP SCHEMA algebra CASCADE;
DROP ROLE regress_gpuvm_reader;
