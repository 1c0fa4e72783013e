-- Left joins of which only rows without a partner are wanted are antijoins in stages, and what is known of the left side is known of the right one.
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_outer;
SET search_path = whole_outer, public;

CREATE TABLE sales (id int PRIMARY KEY, item int, shop int, qty int, note text);
INSERT INTO sales SELECT i, nullif(i % 97, 0), i % 11, i % 7, nullif('n' || i % 13, 'n4') FROM generate_series(1, 4000) i;
CREATE TABLE backs (sale int, item int, kind int NOT NULL, reason int, word text);
INSERT INTO backs SELECT nullif(i * 3, 300), i % 97, i % 4, nullif(i % 6, 2), nullif('w' || i % 5, 'w1') FROM generate_series(1, 900) i;
INSERT INTO backs SELECT * FROM backs LIMIT 50;
CREATE TABLE nothing (sale int, kind int NOT NULL);
VACUUM ANALYZE sales, backs, nothing;
SELECT gpuvm.import(t) >= 0 AS imported FROM unnest('{sales,backs,nothing}'::regclass[]) t GROUP BY 1;

\i tests/sql/include/in_stages.sql
-- Which joins has it in stages, and are the rows PostgreSQL's?
CREATE FUNCTION ask(query text, OUT joins text, OUT stages int, OUT n int, OUT equal bool, OUT why text) LANGUAGE sql AS $$
SELECT (SELECT string_agg(trim(m[1]), ', ' ORDER BY a.n) FROM (SELECT line, row_number() OVER () n FROM gpuvm.algebra(query) line) a, regexp_matches(a.line, '^ *(\w* ?Join)') m),
	stages, cardinality(got), same_rows(got, expected), why FROM in_stages(query) $$;

-- By a column of the condition; by one that is not null; not by one that may be.
SELECT * FROM ask('SELECT shop, s FROM (SELECT shop, sum(qty) s FROM sales LEFT JOIN backs ON sale = id AND backs.item = sales.item WHERE sale IS NULL GROUP BY shop) a JOIN (SELECT shop FROM sales GROUP BY shop) b USING (shop)');
SELECT * FROM ask('SELECT shop, count(*), count(b.kind), count(b.word) FROM sales LEFT JOIN backs b ON sale = id WHERE b.kind IS NULL GROUP BY shop UNION ALL SELECT 0, 1, 2, 3 FROM nothing');
SELECT * FROM ask('SELECT shop, count(*), count(b.kind) FROM sales LEFT JOIN backs b ON sale = id WHERE b.reason IS NULL GROUP BY shop UNION ALL SELECT 0, 1, 2 FROM nothing');
-- What is read of the right side is null: in the output, in expressions, as a key, sorted by.
SELECT * FROM ask('SELECT s.id, b.word, b.reason, coalesce(b.word, s.note) FROM sales s LEFT JOIN backs b ON b.sale = s.id WHERE b.sale IS NULL AND s.qty = 3 AND s.shop < 2 UNION ALL SELECT sale, NULL, kind, NULL FROM nothing');
SELECT * FROM ask('SELECT coalesce(b.reason, s.shop) k, sum(s.qty) FROM sales s LEFT JOIN backs b ON b.sale = s.id WHERE b.sale IS NULL GROUP BY 1 UNION ALL SELECT kind, sale FROM nothing ORDER BY 1');
SELECT * FROM ask('SELECT b.reason k, s.shop, sum(s.qty) FROM sales s LEFT JOIN backs b ON b.sale = s.id WHERE b.sale IS NULL GROUP BY 1, 2 UNION ALL SELECT kind, 1, sale FROM nothing');
SELECT * FROM ask('SELECT s.shop, count(*) FROM sales s LEFT JOIN backs b ON b.sale = s.id WHERE b.sale IS NULL AND b.reason IS NULL AND coalesce(b.kind, 7) = 7 GROUP BY 1 UNION ALL SELECT kind, sale FROM nothing');
-- Conditions that no such row meets; that a partner must meet, or the row itself.
SELECT * FROM ask('SELECT s.shop, count(*) FROM sales s LEFT JOIN backs b ON b.sale = s.id WHERE b.sale IS NULL AND b.kind = 1 GROUP BY 1 UNION ALL SELECT kind, sale FROM nothing');
SELECT * FROM ask('SELECT s.shop, count(*) FROM sales s LEFT JOIN backs b ON b.sale = s.id AND b.kind > s.qty AND s.shop > 3 AND b.word <> ''w2'' WHERE b.sale IS NULL GROUP BY 1 UNION ALL SELECT kind, sale FROM nothing');
SELECT * FROM ask('SELECT s.shop, count(*) FROM sales s LEFT JOIN backs b ON b.kind < s.qty WHERE b.sale IS NULL GROUP BY 1 UNION ALL SELECT kind, sale FROM nothing');
-- One above another, in a join, in its condition, below a group and a UNION ALL; of a full join; without rows.
SELECT * FROM ask('SELECT s.shop, count(*), count(c.kind) FROM sales s LEFT JOIN backs b ON b.sale = s.id LEFT JOIN backs c ON c.sale = s.id + 1 WHERE b.sale IS NULL AND c.sale IS NULL GROUP BY 1 UNION ALL SELECT kind, sale, 1 FROM nothing');
SELECT * FROM ask('SELECT s.shop, count(*), count(c.kind) FROM sales s LEFT JOIN (SELECT b.sale, b.kind FROM backs b LEFT JOIN nothing n ON n.sale = b.sale WHERE n.kind IS NULL) c ON c.sale = s.id WHERE c.sale IS NULL GROUP BY 1');
SELECT * FROM ask('SELECT s.shop, count(*) FROM sales s LEFT JOIN backs b ON b.sale = s.id JOIN sales t ON t.id = s.id + 1 AND b.sale IS NULL GROUP BY 1 UNION ALL SELECT kind, sale FROM nothing');
SELECT * FROM ask('SELECT k, n FROM (SELECT b.sale k, s.shop, count(*) n FROM sales s LEFT JOIN backs b ON b.sale = s.id GROUP BY 1, 2 UNION ALL SELECT sale, kind, 1 FROM nothing) u WHERE k IS NULL');
SELECT * FROM ask('SELECT s.shop, count(*), count(b.kind) FROM sales s FULL JOIN backs b ON b.sale = s.id WHERE b.sale IS NULL AND s.qty < 4 GROUP BY 1 UNION ALL SELECT kind, sale, 1 FROM nothing');
SELECT * FROM ask('SELECT s.shop, count(*) FROM sales s LEFT JOIN nothing n ON n.sale = s.id WHERE n.sale IS NULL GROUP BY 1 UNION ALL SELECT kind, sale FROM nothing');
SELECT * FROM ask('SELECT n.kind, count(*) FROM nothing n LEFT JOIN backs b ON b.sale = n.sale WHERE b.sale IS NULL GROUP BY 1 UNION ALL SELECT kind, sale FROM nothing');
-- An equality says of the right side what is known of the left one, below groups, too.
SELECT a FROM gpuvm.algebra('SELECT l.shop, l.q, r.q FROM (SELECT shop, sum(qty) q FROM sales GROUP BY shop) l LEFT JOIN (SELECT kind, count(*) q FROM backs GROUP BY kind) r ON r.kind = l.shop WHERE l.shop = 2') a;
SELECT * FROM ask('SELECT l.shop, l.q, r.q FROM (SELECT shop, sum(qty) q FROM sales GROUP BY shop) l LEFT JOIN (SELECT kind, count(*) q FROM backs GROUP BY kind) r ON r.kind = l.shop WHERE l.shop = 2');
SELECT * FROM ask('SELECT l.shop, l.q, r.q FROM (SELECT shop, sum(qty) q FROM sales GROUP BY shop) l LEFT JOIN (SELECT kind, count(*) q FROM backs GROUP BY kind) r ON r.kind = l.shop WHERE l.shop > 2 AND l.shop < 7');
SELECT * FROM ask('SELECT l.shop, l.q FROM (SELECT shop, sum(qty) q FROM sales GROUP BY shop) l WHERE NOT EXISTS (SELECT FROM (SELECT kind, count(*) q FROM backs GROUP BY kind) r WHERE r.kind = l.shop) AND l.shop BETWEEN 2 AND 7');

DROP SCHEMA whole_outer CASCADE;
