-- The order of joins of whole statements: by cost, and any other one (gpuvm.join_order_seed), give PostgreSQL's rows.
SET gpuvm.device = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA whole_joins;
SET search_path = whole_joins, public;

CREATE TABLE fact (id int PRIMARY KEY, a int, b int, c int, d int, qty int);
INSERT INTO fact SELECT i, nullif(i % 50, 0), i % 40, i % 30, nullif(i % 20, 3), i % 9 FROM generate_series(1, 20000) i;
CREATE TABLE back (id int, a int, b int, qty int, PRIMARY KEY (id, a));
INSERT INTO back SELECT i, i % 50, i % 40, i % 5 FROM generate_series(1, 20000, 7) i;
CREATE TABLE dim_a (a int PRIMARY KEY, kind int, up int);
INSERT INTO dim_a SELECT i, i % 5, nullif(i % 7, 2) FROM generate_series(0, 60) i;
CREATE TABLE dim_b (b int, kind int, name text);
INSERT INTO dim_b SELECT i % 35, i % 4, 'name ' || i % 3 FROM generate_series(0, 70) i;
INSERT INTO dim_b VALUES (NULL, NULL, NULL), (3, NULL, 'name 1');
CREATE TABLE ups (up int, name text);
INSERT INTO ups SELECT i, 'up ' || i FROM generate_series(0, 5) i;
CREATE TABLE nothing (a int, b int);
VACUUM ANALYZE fact, back, dim_a, dim_b, ups, nothing;
SELECT gpuvm.import(t) >= 0 AS imported FROM unnest('{fact,back,dim_a,dim_b,ups,nothing}'::regclass[]) t GROUP BY 1;

-- Its rows, sorted.
CREATE FUNCTION rows_of(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	found text[] := '{}';
	one record;
BEGIN
	FOR one IN EXECUTE query LOOP
		found := found || one::text;
	END LOOP;
	RETURN ARRAY(SELECT x FROM unnest(found) x ORDER BY x COLLATE "C");
END $$;

-- Is the answer PostgreSQL's in the cheapest order of joins, in how many random ones, and as the statement stands? Wherever there are stages they must run.
CREATE FUNCTION ask(query text, OUT stages int, OUT nrows int, OUT equal bool, OUT any_order int, OUT plain bool) LANGUAGE plpgsql AS $$
DECLARE
	want text[];
	plan text;
	same bool;
BEGIN
	PERFORM set_config('gpuvm.enabled', 'off', true);
	want := rows_of(query);
	nrows := cardinality(want);
	any_order := 0;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.whole_query', 'on', true), set_config('gpuvm.force', 'on', true);
	FOR i IN 0 .. 9 LOOP
		PERFORM set_config('gpuvm.join_order_seed', (CASE WHEN i < 9 THEN i ELSE 0 END)::text, true), set_config('gpuvm.normalise', (i < 9)::text, true);
		EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
		PERFORM set_config('gpuvm.require', CASE WHEN plan ~ '"Stages"' THEN 'cpu' ELSE 'any' END, true);
		same := rows_of(query) = want;
		PERFORM set_config('gpuvm.require', 'any', true);
		IF i = 0 THEN
			stages := (regexp_match(plan, '"Stages": (\d+)'))[1];
			equal := same;
		ELSIF i < 9 THEN
			any_order := any_order + (same AND plan ~ '"Stages"')::int;
		ELSE
			plain := same;
		END IF;
	END LOOP;
END $$;

-- A chain; a star with a dimension of a dimension; relations equal to each other, of which any two meet; keys of several columns.
SELECT * FROM ask('SELECT u.name, sum(s.q) FROM (SELECT a, sum(qty) q FROM fact GROUP BY a) s JOIN dim_a x ON x.a = s.a JOIN ups u ON u.up = x.up GROUP BY 1');
SELECT * FROM ask('SELECT y.kind, u.name, count(*), sum(s.q) FROM (SELECT a, b, sum(qty) q FROM fact GROUP BY a, b) s JOIN dim_a x ON x.a = s.a JOIN ups u ON u.up = x.up JOIN dim_b y ON y.b = s.b WHERE x.kind < 3 GROUP BY 1, 2');
SELECT * FROM ask('SELECT count(*), sum(s.q), sum(x.kind), sum(z.qty) FROM (SELECT a, sum(qty) q FROM fact GROUP BY a) s, dim_a x, dim_b y, back z WHERE s.a = x.a AND x.a = y.b AND y.b = z.a AND z.qty = 1');
SELECT * FROM ask('SELECT s.c, count(*), sum(z.qty) FROM (SELECT id, a, c, sum(qty) q FROM fact GROUP BY id, a, c) s JOIN back z ON z.id = s.id AND z.a = s.a JOIN dim_b y ON y.b = z.b AND y.kind < s.c GROUP BY 1');
-- A relation with two members of a class; a class of one relation twice; an equality of expressions.
SELECT * FROM ask('SELECT count(*), sum(s.q) FROM (SELECT a, b, sum(qty) q FROM fact GROUP BY a, b) s JOIN dim_a x ON x.a = s.a AND x.a = s.b JOIN dim_b y ON y.b = x.a');
SELECT * FROM ask('SELECT p.a, p.q, r.q FROM (SELECT a, sum(qty) q FROM fact GROUP BY a) p JOIN (SELECT a, sum(qty) q FROM back GROUP BY a) r ON p.a = r.a JOIN dim_a x ON x.a + 1 = r.a WHERE p.q > 10');
-- What depends on three relations, on none, and what nothing connects; a value that is computed before.
SELECT * FROM ask('SELECT count(*), min(s.q) FROM (SELECT a, b, sum(qty) q FROM fact GROUP BY a, b) s JOIN dim_a x ON x.a = s.a JOIN dim_b y ON y.b = s.b WHERE s.q + x.kind > y.kind * 100');
SELECT * FROM ask('SELECT s.a, u.name FROM (SELECT a, sum(qty) q FROM fact GROUP BY a) s CROSS JOIN ups u WHERE s.q > 1000 AND u.up < 2');
SELECT * FROM ask('SELECT x.kind, count(*) FROM (SELECT a, sum(qty) q FROM fact GROUP BY a) s JOIN dim_a x ON x.a = s.a WHERE s.q > (SELECT max(qty) FROM back) AND x.kind < (SELECT max(up) FROM ups) GROUP BY 1');
-- Nothing to join; more relations than a program reads; more than all trees are looked at of.
SELECT * FROM ask('SELECT count(*), sum(s.q) FROM (SELECT a, sum(qty) q FROM fact GROUP BY a) s JOIN nothing n ON n.a = s.a JOIN dim_a x ON x.a = n.a');
SELECT * FROM ask('SELECT count(*), sum(s.q) FROM (SELECT a, b, sum(qty) q FROM fact GROUP BY a, b) s JOIN dim_a a1 ON a1.a = s.a JOIN dim_a a2 ON a2.a = s.b JOIN dim_a a3 ON a3.a = a1.kind JOIN dim_a a4 ON a4.a = a2.kind JOIN ups u1 ON u1.up = a1.up JOIN ups u2 ON u2.up = a2.up JOIN ups u3 ON u3.up = a3.up JOIN ups u4 ON u4.up = a4.up');
SELECT * FROM ask('SELECT count(*), sum(s.q) FROM (SELECT a, sum(qty) q FROM fact GROUP BY a) s JOIN dim_a a1 ON a1.a = s.a JOIN dim_a a2 ON a2.a = a1.a JOIN dim_a a3 ON a3.a = a2.a JOIN dim_a a4 ON a4.a = a3.a JOIN dim_a a5 ON a5.a = a4.a JOIN dim_a a6 ON a6.a = a5.a JOIN dim_a a7 ON a7.a = a6.a JOIN dim_a a8 ON a8.a = a7.a JOIN dim_a a9 ON a9.a = a8.a JOIN ups u ON u.up = a9.up WHERE a5.kind = 1');
-- Outer joins, semijoins and antijoins, alone and among inner ones.
SELECT * FROM ask('SELECT x.kind, count(*), sum(s.q), count(z.n) FROM (SELECT a, sum(qty) q FROM fact GROUP BY a) s LEFT JOIN (SELECT a, count(*) n FROM back WHERE qty = 1 GROUP BY a) z ON z.a = s.a JOIN dim_a x ON x.a = s.a GROUP BY 1');
SELECT * FROM ask('SELECT x.kind, count(*) FROM (SELECT a, sum(qty) q FROM fact GROUP BY a) s JOIN dim_a x ON x.a = s.a WHERE EXISTS (SELECT FROM back z WHERE z.a = s.a AND z.qty = 3) AND NOT EXISTS (SELECT FROM dim_b y WHERE y.b = s.a AND y.kind = 1) GROUP BY 1');
-- Errors come from PostgreSQL's plan.
SET gpuvm.whole_query = on;
SET gpuvm.force = on;
SELECT count(*) FROM (SELECT a, sum(qty) q FROM fact GROUP BY a) s JOIN dim_a x ON x.a = 1 / (s.q - s.q);
RESET gpuvm.force;
RESET gpuvm.whole_query;
-- The settings are not for everybody.
CREATE ROLE joins_reader;
SET ROLE joins_reader;
SET gpuvm.join_order_seed = 1;
SET gpuvm.normalise = off;
RESET ROLE;
DROP ROLE joins_reader;
DROP SCHEMA whole_joins CASCADE;
