-- Columns that depend on what is grouped by: they are in no key and in no aggregate.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA any_value;
SET search_path = any_value;
SET gpuvm.force = on;
SET timezone = 'UTC';

\set ECHO none
\i tests/sql/include/ask_many.sql
\i tests/sql/include/vary.sql
\set ECHO all

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE customer (id int PRIMARY KEY, b bool, s int2, i int4, l int8, f float4, d float8, n numeric(12, 3), o numeric, t text, c char(6), m mood, day date, ts timestamptz, a int[], j text, u uuid, nothing int8)
	WITH (autovacuum_enabled = off);
INSERT INTO customer SELECT k, k % 3 = 0, nullif(k % 50 - 25, 7), nullif(k * 7919 % 2003 - 1001, 5), k * 104729::int8 - 9e9::int8,
	(ARRAY['NaN', 'Infinity', '-0', '1.5', NULL, '-1e30'])[1 + k % 6]::float4, (ARRAY['-0', '0', 'NaN', '-Infinity', '4e-324', '0.1', NULL])[1 + k % 7]::float8,
	(k % 200 - 100) * 0.125, k * 0.01, (ARRAY['pear', 'apple', 'Zebra', '', NULL])[1 + k % 5], (ARRAY['b', 'a ', 'c'])[1 + k % 3], (ARRAY['happy', 'sad', 'ok', NULL])[1 + k % 4]::mood,
	date '2000-01-01' + k, timestamptz '1999-12-31 23:00' + k * interval '1 hour', ARRAY[k % 3, k % 5], CASE WHEN k % 9 > 0 THEN repeat('text ' || k, 1 + k % 90) END, CASE WHEN k % 7 > 0 THEN md5(k::text)::uuid END, NULL
	FROM generate_series(1, 900) k;
CREATE TABLE sale (id int, customer int, other int, amount numeric(10, 2), g int) WITH (autovacuum_enabled = off);
INSERT INTO sale SELECT k, 1 + k * 31 % 1000, nullif(k * 17 % 1100, 3), k % 1000 / 4.0, k % 5 FROM generate_series(1, 20000) k;
SELECT vary('customer', 'j', 'u');
ANALYZE;
SELECT gpuvm.import('customer'), gpuvm.import('sale');

-- Every type, one relation and joins.
INSERT INTO queries (query) SELECT format('SELECT id, %s, count(*) FROM customer GROUP BY id', col) FROM unnest(ARRAY['b', 's', 'i', 'l', 'f', 'd', 'n', 'o', 't', 'c', 'm', 'day', 'ts', 'a', 'j', 'u', 'nothing', 'b, s, i, l, f, d', 'n, o, t, c, m, day', 'ts, a, j, u, nothing']) col;
INSERT INTO queries (query) SELECT format('SELECT c.id, %s, sum(amount), count(*) FROM customer c, sale s WHERE c.id = s.customer AND s.g <> 2 GROUP BY c.id', col)
	FROM unnest(ARRAY['b', 's', 'i', 'l', 'f', 'd', 'n', 'o', 't', 'c', 'm', 'day', 'ts', 'a', 'j', 'u', 'nothing', 'b, c.s, i, l, f, d', 'n, o, t, c, m, day', 'ts, a, j, u, nothing']) col;
SELECT * FROM asked();
-- The bits of floats: a zero's sign.
INSERT INTO queries (query) VALUES ('SELECT id, encode(float8send(d), ''hex''), encode(float4send(f), ''hex'') FROM customer GROUP BY id'),
	('SELECT c.id, encode(float8send(d), ''hex'') FROM customer c JOIN sale s ON c.id = s.customer GROUP BY c.id HAVING float8send(d) <> ''\x8000000000000000'' OR count(*) > 24');
SELECT * FROM asked();
-- Of a key that an outer join makes null there are nulls. Expressions, conditions, other keys, DISTINCT, grouping sets.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[
	'c.id, c.t, c.n, c.j, count(*) FROM sale s LEFT JOIN customer c ON c.id = s.other GROUP BY c.id',
	'c.id, c.t, c.d, c.u, count(s.id) FROM sale s RIGHT JOIN customer c ON c.id = s.other AND s.g = 1 GROUP BY c.id',
	'c.id, c.t, c.j, s.g, count(*) FROM sale s FULL JOIN customer c ON c.id = s.other GROUP BY c.id, s.g',
	'c.id, upper(t) || m::text, n * 2 + i, length(j), max(amount) FROM customer c, sale s WHERE c.id = s.customer GROUP BY c.id',
	'c.id, i + count(*), coalesce(t, ''none'') FROM customer c, sale s WHERE c.id = s.customer GROUP BY c.id HAVING i > 3 AND sum(amount) > 100 AND j LIKE ''%7%''',
	'c.id, g, i, sum(amount) FROM customer c, sale s WHERE c.id = s.customer GROUP BY c.id, g',
	'c.id, t, count(DISTINCT g), count(DISTINCT s.other) FILTER (WHERE g > 2), sum(amount) FROM customer c, sale s WHERE c.id = s.customer GROUP BY c.id',
	'c.id, g, t, n, j, sum(amount) FROM customer c, sale s WHERE c.id = s.customer GROUP BY GROUPING SETS ((c.id), (c.id, g))',
	'c.id, i, i + 1, i % 2, sum(amount) FROM customer c, sale s WHERE c.id = s.customer GROUP BY c.id, i + 1',
	'c.id, x.id, c.t, x.t, x.j, count(*) FROM customer c, sale s, customer x WHERE c.id = s.customer AND x.id = s.other GROUP BY c.id, x.id',
	'c.id, t, l FROM customer c WHERE EXISTS (SELECT FROM sale s WHERE s.customer = c.id AND g = 3) GROUP BY c.id',
	'id, t FROM customer WHERE false GROUP BY id', 'id, b, m, j FROM customer WHERE id = 77 GROUP BY id']) q;
SELECT * FROM asked();
-- The other columns are keys in the query's text, which PostgreSQL does not group by.
EXPLAIN (COSTS OFF) SELECT c.id, t, n, j, sum(amount) FROM customer c, sale s WHERE c.id = s.customer GROUP BY c.id, t, n, j;
INSERT INTO queries (query) VALUES ('SELECT c.id, t, n, j, sum(amount) FROM customer c, sale s WHERE c.id = s.customer GROUP BY c.id, t, n, j');
SELECT * FROM asked();
-- What is not in a tablet.
INSERT INTO queries (query) VALUES ('SELECT id, customer, count(*) FROM customer GROUP BY id'), ('SELECT id, ctid, count(*) FROM customer GROUP BY id');
SELECT * FROM asked();
-- Changed rows, in the table's delta.
UPDATE customer SET t = t || '!', j = 'new ' || id, d = -d, n = n + 1000 WHERE id % 40 = 1;
DELETE FROM customer WHERE id % 40 = 2;
INSERT INTO customer (id, t, j, d) SELECT k, 'more ' || k % 3, 'even more', '-0' FROM generate_series(950, 1010) k;
INSERT INTO queries (query) VALUES ('SELECT c.id, t, j, d, n, count(*) FROM customer c, sale s WHERE c.id = s.customer GROUP BY c.id'), ('SELECT id, t, j, encode(float8send(d), ''hex'') FROM customer GROUP BY id');
SELECT * FROM asked();
-- A partitioned table, whose leaves have dictionaries of one family, and references.
CREATE TABLE item (id int PRIMARY KEY, t text, v text, n numeric(8, 2), g int) PARTITION BY RANGE (id);
CREATE TABLE item1 PARTITION OF item FOR VALUES FROM (0) TO (1000);
CREATE TABLE item2 PARTITION OF item FOR VALUES FROM (1000) TO (3000);
INSERT INTO item SELECT k, 't' || k % 7, CASE WHEN k % 5 > 0 THEN repeat('v' || k, 3) END, k / 4.0, k % 10 FROM generate_series(0, 2999) k;
SELECT vary('item1', 'v'), vary('item2', 'v');
SELECT gpuvm.import('item1'), gpuvm.import('item2');
INSERT INTO queries (query) VALUES ('SELECT id, t, v, n, count(*) FROM item GROUP BY id'), ('SELECT a.id, a.t, a.v, a.n, count(*), sum(b.n) FROM item a JOIN item b ON a.id = b.g GROUP BY a.id');
SELECT * FROM asked();
-- A cursor keeps what it points at.
BEGIN;
DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT id, t, left(j, 9) AS j FROM customer WHERE id < 20 OR id > 1008 GROUP BY id ORDER BY id;
FETCH 3 FROM c;
SELECT gpuvm.release('customer');
FETCH LAST FROM c;
COMMIT;
FETCH PRIOR FROM c;
CLOSE c;

SELECT opcode, p1, p2, p3, p4, comment FROM gpuvm.disassemble('SELECT id, amount FROM sale GROUP BY id, amount');
ALTER TABLE sale ADD PRIMARY KEY (id);
SELECT gpuvm.import('sale');
SELECT opcode, p1, p2, p3, p4, comment FROM gpuvm.disassemble('SELECT id, amount FROM sale GROUP BY id');
DROP SCHEMA any_value CASCADE;
