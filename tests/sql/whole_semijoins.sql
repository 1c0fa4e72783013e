-- A UNION ALL, or groups, below a join with a table that has a condition: what they take in is joined with that table's rows, too (gpuvm.whole_query).
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_semijoins;
SET search_path = whole_semijoins, public;

CREATE TABLE sales (id int PRIMARY KEY, day int, shop int, qty int, price numeric(10,2));
INSERT INTO sales SELECT i, nullif(i % 97, 0), i % 11, i % 7, (i * 37 % 10000) / 100.0 FROM generate_series(1, 5000) i;
CREATE TABLE returns (sale int, day bigint, shop int, qty int);
INSERT INTO returns SELECT i * 3, nullif(i % 89, 3), i % 13, 1 FROM generate_series(1, 1500) i;
CREATE TABLE days (day int PRIMARY KEY, week int NOT NULL, name text);
INSERT INTO days SELECT i, i / 7, 'day ' || i % 7 FROM generate_series(0, 99) i;
-- several rows of a key, and nulls
CREATE TABLE holidays (day int, country text, name text);
INSERT INTO holidays SELECT nullif(i * 7 % 50, 14), 'c' || i % 3, 'h' || i % 9 FROM generate_series(1, 60) i;
CREATE TABLE shops (shop int PRIMARY KEY, town text);
INSERT INTO shops SELECT i, 't' || i % 4 FROM generate_series(0, 9) i;
VACUUM ANALYZE sales, returns, days, holidays, shops;
SELECT gpuvm.import('sales'), gpuvm.import('returns'), gpuvm.import('days'), gpuvm.import('holidays'), gpuvm.import('shops');
-- changed since
INSERT INTO sales VALUES (6001, 15, 3, 1, 5), (6002, NULL, NULL, NULL, NULL);
UPDATE days SET week = 2 WHERE day = 90;

\i tests/sql/include/in_stages.sql
-- In stages, as PostgreSQL has it? And how many arms have a semijoin.
CREATE FUNCTION ask(query text, OUT stages bool, OUT semijoins int, OUT why text, OUT equal bool, OUT n int) LANGUAGE sql AS $$
SELECT t.stages > 0, (length(plan::text) - length(replace(plan::text, 'hash semi', ''))) / length('hash semi'), t.why,
	same_rows(got, expected), cardinality(got) FROM in_stages(query) t $$;

CREATE VIEW moves AS SELECT day, shop, qty FROM sales UNION ALL SELECT day::int, shop, -qty FROM returns UNION ALL SELECT s.day, s.shop, r.qty FROM sales s LEFT JOIN returns r ON r.sale = s.id;
CREATE VIEW guarded WITH (security_barrier) AS SELECT day, shop, qty FROM sales WHERE qty > 2 UNION ALL SELECT day, shop, qty FROM sales WHERE qty < 1;
-- the second arm's column is computed; only the two others are reduced
SELECT * FROM ask('SELECT m.shop, sum(m.qty), count(*) FROM moves m, days d WHERE m.day = d.day AND d.week = 2 GROUP BY 1');
-- of two tables; of one that has no condition; of one whose rows are not fewer
SELECT * FROM ask('SELECT s.town, d.name, sum(m.qty) FROM moves m JOIN days d USING (day) JOIN shops s USING (shop) WHERE d.week < 4 AND s.town > ''t1'' GROUP BY 1, 2');
SELECT * FROM ask('SELECT m.shop, sum(m.qty), count(*) FROM moves m, days d WHERE m.day = d.day GROUP BY 1');
SELECT * FROM ask('SELECT u.day, count(*) FROM (SELECT day FROM days WHERE week > 1 UNION ALL SELECT day FROM holidays) u JOIN sales s USING (day) WHERE s.qty = 3 GROUP BY 1');
-- keys that come several times, and nulls, do not multiply
SELECT * FROM ask('SELECT h.name, sum(m.qty), count(*) FROM moves m JOIN holidays h ON h.day = m.day WHERE h.country = ''c1'' GROUP BY 1');
SELECT * FROM ask('SELECT m.shop, count(*) FROM moves m WHERE m.day IN (SELECT day FROM holidays WHERE country = ''c2'') GROUP BY 1');
-- the condition's table is joined to another one first; the Union to another one, on its outer side
SELECT * FROM ask('SELECT h.country, count(*), sum(m.qty) FROM moves m JOIN (days d JOIN holidays h ON h.day = d.day AND d.week IN (1, 3)) ON m.day = d.day GROUP BY 1');
SELECT * FROM ask('SELECT d.name, x.town, count(*) FROM (SELECT m.day, m.shop, s.town FROM moves m LEFT JOIN shops s ON s.shop = m.shop AND s.town <> ''t2'') x JOIN days d ON d.day = x.day WHERE d.week = 5 GROUP BY 1, 2');
-- not where the Union's rows are kept without a partner, or nulls among them say something
SELECT * FROM ask('SELECT m.shop, count(*), count(d.day) FROM moves m LEFT JOIN days d ON m.day = d.day AND d.week = 2 GROUP BY 1');
SELECT * FROM ask('SELECT d.day, count(x.shop) FROM days d LEFT JOIN moves x ON x.day = d.day WHERE d.week = 2 GROUP BY 1');
SELECT * FROM ask('SELECT m.shop, count(*) FROM moves m WHERE NOT EXISTS (SELECT FROM holidays h WHERE h.day = m.day AND h.country = ''c0'') GROUP BY 1');
SELECT * FROM ask('SELECT h.name FROM holidays h WHERE h.country = ''c1'' AND (h.day NOT IN (SELECT day FROM moves WHERE shop = 3)) IS NOT FALSE');
SELECT * FROM ask('SELECT d.day FROM days d WHERE d.week BETWEEN 2 AND 4 AND NOT EXISTS (SELECT FROM moves m WHERE m.day = d.day AND m.shop = 3)');
SELECT * FROM ask('SELECT d.day FROM days d WHERE d.week BETWEEN 2 AND 4 AND EXISTS (SELECT FROM moves m WHERE m.day = d.day AND m.shop = 3)');
-- nor where other rows' count depends on those that go: LIMIT, different rows, windows; groups by the column do not
SELECT * FROM ask('SELECT d.name, count(*), sum(q) FROM (SELECT day, sum(qty) q FROM moves GROUP BY day UNION ALL SELECT day, count(*) FROM sales GROUP BY day) u JOIN days d USING (day) WHERE d.week = 2 GROUP BY 1');
SELECT * FROM ask('SELECT d.name, sum(r) FROM (SELECT day, row_number() OVER (ORDER BY id) r FROM sales UNION ALL SELECT day, 1 FROM sales) u JOIN days d USING (day) WHERE d.week = 2 GROUP BY 1');
-- a security barrier stays above what is asked
SELECT * FROM ask('SELECT g.shop, count(*) FROM guarded g JOIN days d USING (day) WHERE d.week = 2 GROUP BY 1');
-- a Union in a Union's arm, in a CTE that is read twice, with a parameter
SELECT * FROM ask('SELECT u.shop, count(*) FROM (SELECT day, shop FROM moves WHERE qty = 1 UNION ALL SELECT day, shop FROM sales) u JOIN days d USING (day) WHERE d.week = 3 GROUP BY 1');
SELECT * FROM ask('WITH u AS (SELECT day, shop FROM moves) SELECT a.n, b.n FROM (SELECT count(*) n FROM u JOIN days d USING (day) WHERE d.week = 1) a, (SELECT count(*) n FROM u JOIN days d USING (day) WHERE d.week = 2) b');
SELECT * FROM ask('SELECT m.shop, count(*) FROM moves m, days d WHERE m.day = d.day AND d.week = (SELECT max(week) / 3 FROM days) GROUP BY 1');
-- groups that are joined with few rows of a table: the rows of other keys are not grouped
SELECT * FROM ask('SELECT s.id, a FROM sales s JOIN days d USING (day) JOIN (SELECT day, avg(qty) a FROM sales GROUP BY day) g ON g.day = d.day AND s.qty > a WHERE d.week = 2');
SELECT * FROM ask('SELECT s.id FROM sales s JOIN days d USING (day) WHERE d.week = 2 AND s.qty > (SELECT avg(x.qty) FROM sales x WHERE x.day = d.day)');
-- by a column that is equal to the table's; of several keys; by two tables
SELECT * FROM ask('SELECT s.id FROM sales s WHERE s.day IN (SELECT day FROM days WHERE week = 2) AND s.qty > (SELECT avg(x.qty) FROM sales x WHERE x.day = s.day AND x.shop = s.shop)');
SELECT * FROM ask('SELECT g.day, g.shop, n FROM (SELECT day, shop, count(*) n FROM sales GROUP BY 1, 2) g JOIN days d USING (day) JOIN shops h USING (shop) WHERE d.week = 3 AND h.shop = 4');
-- of another type of integer, keys that come several times, nulls
SELECT * FROM ask('SELECT g.day, n FROM (SELECT day, count(*) n, sum(qty) q FROM returns GROUP BY day) g JOIN days d ON d.day = g.day WHERE d.week = 4');
SELECT * FROM ask('SELECT h.name, n FROM (SELECT day, count(*) n FROM sales GROUP BY day) g JOIN holidays h ON h.day = g.day WHERE h.name = ''h7'' AND h.country = ''c1''');
-- windows in partitions; a condition on the groups
SELECT * FROM ask('SELECT w.id, r FROM (SELECT id, day, rank() OVER (PARTITION BY day ORDER BY price) r FROM sales) w JOIN days d USING (day) WHERE d.week = 2 AND r < 4');
SELECT * FROM ask('SELECT g.day, n FROM (SELECT day, count(*) n FROM sales WHERE qty < 5 GROUP BY day HAVING sum(qty) > 70) g JOIN days d USING (day) WHERE d.week IN (2)');
-- not where most rows stay, the key is no column of a table, or what goes says something of the others: windows over all rows, LIMIT, grouping sets, kept groups
SELECT * FROM ask('SELECT g.day, n FROM (SELECT day, count(*) n FROM sales GROUP BY day) g JOIN days d USING (day) WHERE d.week >= 0');
SELECT * FROM ask('SELECT g.x, n FROM (SELECT day + 1 x, count(*) n FROM sales GROUP BY 1) g JOIN days d ON d.day = g.x WHERE d.week = 2');
SELECT * FROM ask('SELECT w.id, r FROM (SELECT id, day, rank() OVER (PARTITION BY day ORDER BY price) r, row_number() OVER (ORDER BY id) n FROM sales) w JOIN days d USING (day) WHERE d.week = 2 AND r < 4 AND n > 0');
SELECT * FROM ask('SELECT g.day, n FROM (SELECT day, count(*) n FROM sales GROUP BY day ORDER BY n DESC, day LIMIT 50) g JOIN days d USING (day) WHERE d.week = 2');
SELECT * FROM ask('SELECT g.day, n FROM (SELECT day, shop, count(*) n FROM sales GROUP BY ROLLUP (day, shop)) g JOIN days d USING (day) WHERE d.week = 2');
SELECT * FROM ask('SELECT g.day, n, d.name FROM (SELECT day, count(*) n FROM sales GROUP BY day) g LEFT JOIN days d ON d.day = g.day AND d.week = 2');
SELECT * FROM ask('SELECT d.day, n FROM (SELECT * FROM days WHERE week = 2) d LEFT JOIN (SELECT day, count(*) n FROM sales GROUP BY day) g USING (day)');
SELECT * FROM ask('SELECT d.day FROM days d WHERE d.week = 2 AND d.day NOT IN (SELECT day FROM sales WHERE day IS NOT NULL GROUP BY day HAVING count(*) > 51)');
-- groups of a security barrier's rows
SELECT * FROM ask('SELECT g.day, n FROM (SELECT day, count(*) n FROM guarded GROUP BY day) g JOIN days d USING (day) WHERE d.week = 2');
-- values that are equal and not the same; texts, also where several are equal to one
CREATE TABLE prices (n numeric, t text, v int);
INSERT INTO prices SELECT (i % 40)::text::numeric + CASE WHEN i % 3 = 0 THEN 0.00 ELSE 0 END, 'k' || i % 40, i FROM generate_series(1, 900) i;
CREATE TABLE few (n numeric PRIMARY KEY, t text, keep int);
INSERT INTO few SELECT i + 0.000, 'k' || i, i FROM generate_series(1, 60) i;
VACUUM ANALYZE prices, few;
SELECT gpuvm.import('prices'), gpuvm.import('few');
SELECT * FROM ask('SELECT g.n::int, c, s FROM (SELECT n, count(*) c, sum(v) s FROM prices GROUP BY n) g JOIN few f ON f.n = g.n WHERE f.keep IN (7, 9)');
SELECT * FROM ask('SELECT g.t, c, s FROM (SELECT t, count(*) c, sum(v) s FROM prices GROUP BY t) g JOIN few f ON f.t = g.t WHERE f.keep IN (7, 9)');
DROP SCHEMA whole_semijoins CASCADE;
