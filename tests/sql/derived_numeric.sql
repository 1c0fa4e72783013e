-- Joins with groups whose columns are averages, quotients and large sums: their values are compared in two registers, what is shown of them are the values themselves.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA derived_numeric;
SET search_path = derived_numeric;
CREATE TABLE sale (id int PRIMARY KEY, k int, g int, price numeric(12,2), qty int, paid numeric, huge numeric(30,4)) WITH (autovacuum_enabled = off);
INSERT INTO sale SELECT i, nullif(i % 60, 7), i % 9, CASE WHEN i % 13 > 0 THEN (i * 7919) % 100000 / 100.0 END, 1 + i % 17, round((i * 31) % 5000 / 8.0, 3),
	((i % 700) - 350) * 123456789012345.6789 FROM generate_series(1, 4000) i;
CREATE TABLE seller (k int PRIMARY KEY, name text, quota numeric(14,2), share numeric(8,4)) WITH (autovacuum_enabled = off);
INSERT INTO seller SELECT i, 'seller ' || i, CASE WHEN i % 10 > 0 THEN 20000 + i * 300.5 END, i / 80.0 FROM generate_series(0, 70) i;
-- Partitions have what is longer than 64 bits by reference, what inherits in halves.
CREATE TABLE parted (k int, huge numeric(30,4), free numeric) PARTITION BY LIST (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE parted_2 PARTITION OF parted DEFAULT WITH (autovacuum_enabled = off);
INSERT INTO parted SELECT k, huge, paid FROM sale WHERE id <= 1000;
CREATE TABLE heir (k int, huge numeric(30,4)) WITH (autovacuum_enabled = off);
CREATE TABLE heir_1 () INHERITS (heir) WITH (autovacuum_enabled = off);
INSERT INTO heir_1 SELECT k, huge FROM sale WHERE id <= 1000;
SET client_min_messages = warning;
SELECT gpuvm.import('sale'), gpuvm.import('seller');
SELECT sum(gpuvm.import(t)) FROM unnest('{parted_1,parted_2,heir,heir_1}'::regclass[]) t;
RESET client_min_messages;
ANALYZE sale, seller, parted, heir, heir_1;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/answers.sql
\set ECHO all
-- Does a program do all of the join, or the aggregation above it?
CREATE FUNCTION joins(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	line text;
	found bool := false;
	plain bool := false;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		found := found OR line ~ '^ *Join: ';
		plain := plain OR (line ~ '(Hash Join|Merge Join|Nested Loop|Sort|Aggregate)' AND NOT found);
	END LOOP;
	RETURN found AND NOT plain;
END $$;
\set ECHO none
\i tests/sql/include/fallbacks.sql
\set ECHO all
CREATE TABLE queries (n int GENERATED ALWAYS AS IDENTITY, joins bool, query text);
INSERT INTO queries (joins, query) VALUES
	-- averages: compared, multiplied, shown, sorted by
	(true, 'SELECT count(*), sum(s.id) FROM sale s JOIN (SELECT k, avg(price) a FROM sale GROUP BY k) q ON q.k = s.k WHERE s.price > q.a'),
	(true, 'SELECT s.id, s.price, q.a FROM sale s JOIN (SELECT k, avg(price) a FROM sale GROUP BY k) q ON q.k = s.k WHERE s.price > 1.2 * q.a'),
	(true, 'SELECT s.id, q.a FROM sale s JOIN (SELECT k, avg(price) a FROM sale GROUP BY k) q ON q.k = s.k WHERE s.price > q.a ORDER BY q.a DESC, s.id LIMIT 20'),
	(true, 'SELECT s.id, q.* FROM sale s LEFT JOIN (SELECT k, avg(price) a, avg(qty) b, sum(price) / count(*) c FROM sale WHERE g < 5 GROUP BY k) q ON q.k = s.k AND s.qty > q.b AND s.price < q.c'),
	(false, 'SELECT s.id, q.a FROM sale s FULL JOIN (SELECT g * 11 AS k, avg(paid) a FROM sale GROUP BY g) q ON q.k = s.k AND s.paid < q.a'),
	(true, 'SELECT count(*) FROM sale s WHERE EXISTS (SELECT FROM (SELECT k, avg(price) a FROM sale GROUP BY k) q WHERE q.k = s.k AND q.a < s.price)'),
	(true, 'SELECT count(*) FROM sale s WHERE NOT EXISTS (SELECT FROM (SELECT k, avg(price) a FROM sale GROUP BY k) q WHERE q.k = s.k AND q.a < s.price)'),
	(true, 'SELECT sum(price) FROM sale s WHERE qty < (SELECT 0.4 * avg(qty) FROM sale t WHERE t.k = s.k)'),
	(true, 'SELECT s.g, count(*) FILTER (WHERE s.price > q.a), sum(CASE WHEN s.price > q.a THEN 1 ELSE 0 END) FROM sale s JOIN (SELECT k, avg(price) a FROM sale GROUP BY k) q ON q.k = s.k GROUP BY s.g'),
	(true, 'SELECT a.k, b.k, a.m, b.m FROM (SELECT k, avg(price) m FROM sale GROUP BY k) a JOIN (SELECT k, avg(price) m FROM sale GROUP BY k) b ON a.m = b.m'),
	(true, 'SELECT t.k, t.name, q.a FROM seller t JOIN (SELECT k, avg(price) a, sum(price) s FROM sale GROUP BY k) q ON q.k = t.k AND q.s BETWEEN t.quota - 3000 AND t.quota + 3000 AND q.a * t.share > 40'),
	(true, 'WITH q AS MATERIALIZED (SELECT k, avg(price) a FROM sale GROUP BY k) SELECT x.k, y.k, x.a FROM q x JOIN q y ON x.a > y.a WHERE x.k < 5'),
	-- rounded, least and greatest, or null, of several forms
	(true, 'SELECT s.id, q.a, s.price - q.a FROM sale s JOIN (SELECT k, round(avg(price), 2) a FROM sale GROUP BY k) q ON q.k = s.k WHERE s.price > q.a'),
	(true, 'SELECT s.g, sum(s.price - q.a) FROM sale s JOIN (SELECT k, round(avg(price), 1) a FROM sale GROUP BY k) q ON q.k = s.k GROUP BY s.g'),
	(true, 'SELECT s.id, q.x, q.y FROM sale s JOIN (SELECT k, coalesce(max(price), 0) x, CASE WHEN count(*) > 66 THEN min(paid) ELSE NULL END y FROM sale GROUP BY k) q ON q.k = s.k AND q.x > s.paid AND q.y < s.price'),
	(true, 'SELECT s.id, q.a FROM sale s JOIN (SELECT k, floor(avg(price)) a, nullif(ceil(max(price)), 990) b FROM sale GROUP BY k) q ON q.k = s.k AND q.a < s.price AND q.b > s.price + 100'),
	(true, 'SELECT s.id, q.a FROM sale s JOIN (SELECT id, avg(price) OVER (PARTITION BY g) a FROM sale) q USING (id) WHERE s.price > q.a'),
	-- more than 64 bits
	(true, 'SELECT s.id, q.m, q.t FROM sale s JOIN (SELECT k, max(huge) m, sum(huge) t FROM sale GROUP BY k) q ON q.k = s.k AND q.m = s.huge'),
	(true, 'SELECT s.id, q.a FROM sale s JOIN (SELECT g, sum(huge) a FROM sale GROUP BY g) q ON q.g = s.g AND s.huge > q.a'),
	(true, 'SELECT g, sum(q.m), count(q.m), max(q.m) FROM sale s JOIN (SELECT k, max(huge) m FROM sale GROUP BY k) q ON q.k = s.k GROUP BY g'),
	(false, 'SELECT s.id, q.m, q.t FROM sale s JOIN (SELECT k, max(huge) m, sum(huge) t, sum(free) f FROM parted GROUP BY k) q ON q.k = s.k AND q.m = s.huge'),
	(false, 'SELECT s.id, q.m FROM sale s JOIN (SELECT DISTINCT k, huge m FROM parted_1) q ON q.k = s.k AND q.m < s.huge'),
	(false, 'SELECT s.id, q.m FROM sale s JOIN (SELECT k, sum(huge) m FROM heir GROUP BY k) q ON q.k = s.k AND q.m < s.huge'),
	-- numbers that leave no room for a quotient's decimals: their averages are shown, and compared by PostgreSQL, as products are
	(true, 'SELECT s.id, q.a FROM sale s JOIN (SELECT k, avg(huge) a FROM sale GROUP BY k) q ON q.k = s.k'),
	(true, 'SELECT s.id, q.a FROM sale s JOIN (SELECT k, avg(huge) a, sum(huge) / count(*) b FROM sale GROUP BY k) q ON q.k = s.k AND s.huge > q.a AND s.huge > q.b'),
	(false, 'SELECT count(*) FROM sale s JOIN (SELECT k, sum(huge * huge) a FROM sale GROUP BY k) q ON q.k = s.k AND s.huge < q.a'),
	(true, 'SELECT s.id, q.a FROM sale s JOIN (SELECT k, round(avg(huge), 2) a, ceil(avg(huge)) b FROM sale GROUP BY k) q ON q.k = s.k AND s.huge > q.a AND s.huge > q.b'),
	-- what shows how many decimals each has, computed with, is PostgreSQL's
	(true, 'SELECT sum(q.a), max(q.a) FROM sale s JOIN (SELECT k, avg(price) a FROM sale GROUP BY k) q ON q.k = s.k WHERE s.price > q.a'),
	(true, 'SELECT q.a, count(*) FROM sale s JOIN (SELECT k, avg(price) a FROM sale GROUP BY k) q ON q.k = s.k WHERE s.price > q.a GROUP BY q.a');
SET gpuvm.enabled = off;
CREATE TABLE expected AS SELECT n, answers(query) AS answer FROM queries;
RESET gpuvm.enabled;
SELECT q.query, joins(q.query), answers(q.query), e.answer FROM queries q JOIN expected e USING (n) WHERE joins(q.query) <> q.joins OR answers(q.query) IS DISTINCT FROM e.answer;
SELECT n, answer FROM expected ORDER BY n;
SELECT q.n, b FROM queries q, fallbacks(q.query) b;
SET gpuvm.require = :device;
SELECT answers(query) FROM queries WHERE n IN (1, 3, 10, 19);
SELECT s.id, s.price, q.a FROM sale s JOIN (SELECT k, avg(price) a FROM sale GROUP BY k) q ON q.k = s.k WHERE s.price > 1.9 * q.a ORDER BY q.a, s.id LIMIT 5;
RESET gpuvm.require;
-- Too many decimals, NaN, in changed rows and in tablets: PostgreSQL answers.
SELECT count(*) FROM sale s JOIN (SELECT k, avg(price) / 1e12 a FROM sale GROUP BY k) q ON q.k = s.k WHERE s.price > q.a;
SELECT fallbacks('SELECT count(*) FROM sale s JOIN (SELECT k, avg(price) / 1e12 a FROM sale GROUP BY k) q ON q.k = s.k WHERE s.price > q.a');
INSERT INTO sale VALUES (5001, 1, 1, 'NaN', 1, 'NaN', 'NaN'), (5002, 70, 1, 0.01, 20000, 0.001, 1);
SELECT n, answers(query) FROM queries WHERE n IN (1, 2, 5, 18);
SET client_min_messages = warning;
SELECT gpuvm.import('sale');
RESET client_min_messages;
SELECT n, answers(query) FROM queries WHERE n IN (1, 2, 5, 18);
SELECT n, fallbacks(query) FROM queries WHERE n IN (1, 2, 5, 18);
SET gpuvm.enabled = off;
SELECT n, answers(query) FROM queries WHERE n IN (1, 2, 5, 18);
SELECT count(*) FROM sale s JOIN (SELECT k, avg(price) / 1e12 a FROM sale GROUP BY k) q ON q.k = s.k WHERE s.price > q.a;
RESET gpuvm.enabled;
SET client_min_messages = warning;
DROP SCHEMA derived_numeric CASCADE;
