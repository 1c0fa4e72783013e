-- Comparisons of rows, as pages of results are asked for: (a, b) > (x, y). Against PostgreSQL's answers.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA row_compare;
SET search_path = row_compare;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/ask_many.sql
\i tests/sql/include/vary.sql
\set ECHO all

CREATE TABLE t (id int, a int, b int, f float8, n numeric(30, 4), m numeric, d date, ts timestamp, k text, s text COLLATE "C", u uuid, y bytea, r int[]) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, CASE WHEN i % 11 > 0 THEN i % 20 END, CASE WHEN i % 7 > 0 THEN i % 9 END, CASE i % 13 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' WHEN 2 THEN '-0' ELSE (i % 5)::float8 END, CASE WHEN i % 17 > 0 THEN i % 6 * 10000000000000000000.5 END, i % 4 + 0.25, date '2024-01-01' + i % 30,
	CASE WHEN i % 19 > 0 THEN timestamp '2024-01-01' + i % 50 * interval '7 hours' END, 'k' || i % 6, CASE WHEN i % 23 > 0 THEN chr(97 + i % 5) || i % 3000 END, md5((i % 40)::text)::uuid, convert_to(chr(97 + i % 3), 'UTF8'), ARRAY[i % 3, i % 2] FROM generate_series(1, 8000) i;
SELECT vary('t', 's', 'y');
SELECT gpuvm.import('t');

INSERT INTO queries (query) SELECT format('SELECT id FROM t WHERE %s %s %s', l, op, r) FROM unnest(ARRAY['<', '<=', '>', '>=']) op,
	(VALUES ('(a, b)', '(5, 4)'), ('(a, b, id)', '(5, 4, 4000)'), ('(a, b)', '(5, NULL)'), ('(a, b)', '(NULL::int, 4)'), ('(a, b)', '(b, a)'), ('(f, id)', '(''NaN'', 500)'), ('(f, n)', '(0, 20000000000000000001)'), ('(n, f, a)', '(10000000000000000000.5, 2, 7)'), ('(m, k)', '(2.25, ''k3'')'),
		('(d, ts)', '(''2024-01-10'', ''2024-01-07 08:00'')'), ('(d, a)', '(ts, b)'), ('(k, s)', '(''k2'', ''c5'')'), ('(s, k)', '(''c5'', ''k2'')'), ('(u, y, id)', '(md5(''7'')::uuid, ''b'', 100)'), ('(k, u)', '(''k3'', ''80000000-0000-0000-0000-000000000000'')'), ('(a::bigint, b)', '(id, a)'), ('(a + b, s)', '(12, ''b'')'),
		('(5, b)', '(a, 3)'), ('(a, b, f, n, k, s)', '(a, b, f, n, k, ''c'')'), ('(a, 100 / nullif(b, 0))', '(3, 12)')) v (l, r);
SELECT * FROM asked();
-- Anywhere a condition stands.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['id, (a, b) < (5, 4) FROM t', 'id FROM t WHERE NOT (a, b) < (5, 4)', 'id FROM t WHERE ((a, b) < (5, 4)) IS UNKNOWN', 'id FROM t WHERE (a, b) < (5, 4) OR (b, a) > (5, 4)', 'k, count(*) FILTER (WHERE (a, s) < (5, ''c'')) FROM t GROUP BY k', 'k, sum(CASE WHEN (a, b) >= (3, 3) THEN id ELSE 0 END) FROM t GROUP BY k',
	'(a, b) > (5, 4), count(*) FROM t GROUP BY 1', 'x.id, y.id FROM t x JOIN t y ON x.u = y.u AND (x.a, x.id) < (y.a, y.id) WHERE x.a = 3 AND y.a < 9', 'x.id, y.id FROM t x LEFT JOIN t y ON x.id = y.id + 1 AND (x.s, x.id) < (y.s, y.id) WHERE x.a = 3', 'k, max(a), min(b) FROM t GROUP BY k HAVING (max(a), min(b)) > (18, 0)', 'id FROM t WHERE CASE WHEN a > 0 THEN (100 / a, b) < (10, 5) END']) q;
-- A page after another.
INSERT INTO queries (query) SELECT format('SELECT %1$s, id FROM t WHERE (%1$s, id) > (%2$s, 3000) ORDER BY %1$s, id LIMIT 20', col, x) FROM (VALUES ('a', '7'), ('f', '2'), ('d', $$date '2024-01-05'$$), ('u', $$md5('7')::uuid$$)) v (col, x);
SELECT * FROM asked();
-- Only where the rows before are equal is what follows computed, and raises.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['id FROM t WHERE (a, 100 / b) > (50, 1)', 'id FROM t WHERE (a, 100 / b) > (3, 1)']) q;
SELECT * FROM asked();
-- What is compared is not computed: why not.
INSERT INTO queries (query) VALUES ('SELECT id FROM t WHERE (a, reverse(s)) < (3, ''x'')');
SELECT * FROM asked();

-- Parameters: each page is asked for by what the one before ended with.
PREPARE page(int, int) AS SELECT a, id FROM t WHERE (a, id) > ($1, $2) ORDER BY a, id LIMIT 4;
SET plan_cache_mode = force_generic_plan;
SET gpuvm.require = vm;
EXECUTE page(3, 0);
EXECUTE page(3, 63);
EXECUTE page(19, 7990);
EXECUTE page(NULL, 5);
PREPARE text_page(text, int) AS SELECT s, id FROM t WHERE (s, id) > ($1, $2) AND a < 10 ORDER BY s, id LIMIT 3;
SET gpuvm.device = cpu;
EXECUTE text_page('b', 0);
EXECUTE text_page('b1', 1);
EXECUTE text_page('e999', 0);
EXECUTE text_page(NULL, 0);
SELECT * FROM gpuvm.why_not('SELECT id FROM t WHERE (a, b) < (1, 2)');
RESET gpuvm.require;
DROP SCHEMA row_compare CASCADE;
