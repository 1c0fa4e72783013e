-- Correlated aggregates and NOT IN, in stages (gpuvm.whole_query) or by PostgreSQL's plan.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
-- What programs must run on: the device under test.
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA whole_correlated;
SET search_path = whole_correlated;
SET timezone = 'Europe/Berlin';

-- Outer rows: keys of many types, with duplicates, NULLs and some that no inner row has.
CREATE TABLE o (id int NOT NULL, k int, l int8, s int2, f float4, d float8, n numeric(8,2), t text, v varchar(8), c char(4), day date, x int, b bool)
	WITH (autovacuum_enabled = off);
INSERT INTO o SELECT i, nullif(i % 23, 4), nullif(i % 11, 2), i % 5, CASE i % 6 WHEN 0 THEN 'NaN'::float4 WHEN 1 THEN '-0' WHEN 2 THEN NULL ELSE i % 9 END,
	CASE i % 7 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN 0 WHEN 2 THEN NULL ELSE i % 9 END, nullif(i % 13, 7) * 0.5, 't' || i % 17, nullif('v' || i % 7, 'v3'),
	'c' || i % 6, date '2024-01-01' + i % 20, CASE WHEN i % 10 > 0 THEN i * 7 % 60 END, nullif(i % 3, 2) = 1 FROM generate_series(1, 100) i;
-- Inner rows: some groups have no value at all; a group that no outer row asks for (99) has values that raise errors.
CREATE TABLE i (id int NOT NULL, k int, l int8, s int2, f float4, d float8, n numeric(8,2), t text, v varchar(8), c char(4), day date, x int, y int, b bool)
	WITH (autovacuum_enabled = off);
INSERT INTO i SELECT i, nullif(i % 31, 6), nullif(i % 7, 3), i % 4, CASE i % 5 WHEN 0 THEN 'NaN'::float4 WHEN 1 THEN '-0' WHEN 2 THEN NULL ELSE i % 8 END,
	CASE i % 8 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN '-0' WHEN 2 THEN NULL ELSE i % 8 END, nullif(i % 17, 5) * 0.5, 't' || i % 19, 'v' || i % 9, 'c' || i % 8,
	date '2024-01-01' + i % 25, CASE WHEN i % 31 NOT IN (3, 8) AND i % 9 > 0 THEN i * 11 % 50 END, 1 + i % 3, i % 4 = 1 FROM generate_series(1, 700) i;
INSERT INTO i (id, k, x, y, d, t) VALUES (701, 99, 2147483647, 0, 1e308, 'no number'), (702, 99, 2147483647, 0, 1e308, '1');
CREATE TABLE e (LIKE i) WITH (autovacuum_enabled = off);
CREATE TABLE parted (k int, x int, y int) PARTITION BY RANGE (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (9) WITH (autovacuum_enabled = off);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (9) TO (40) WITH (autovacuum_enabled = off);
INSERT INTO parted SELECT i % 40, i, i % 45 FROM generate_series(1, 300) i;
-- One instant has two local times an hour apart: equality of timestamp with timestamptz has no groups.
CREATE TABLE local (ts timestamp, x int) WITH (autovacuum_enabled = off);
INSERT INTO local VALUES ('2024-03-31 02:30', 1), ('2024-03-31 03:30', 2), ('2024-03-31 04:30', 4);
CREATE TABLE zoned (ts timestamptz) WITH (autovacuum_enabled = off);
INSERT INTO zoned VALUES ('2024-03-31 01:30Z'), ('2024-03-31 02:30Z');
SET client_min_messages = warning;
SELECT sum(gpuvm.import(t)) FROM unnest('{o,i,e,parted_1,parted_2,local,zoned}'::regclass[]) t;
RESET client_min_messages;
ANALYZE o, i, e, parted, local, zoned;

-- Rows, or the error, as one word; read without anything around the query.
CREATE FUNCTION answer(query text, OUT answer text) LANGUAGE plpgsql AS $$
DECLARE
	rows text[] := '{}';
	one record;
BEGIN
	FOR one IN EXECUTE query LOOP
		rows := rows || one::text;
	END LOOP;
	answer := cardinality(rows) || ' rows ' || md5(coalesce((SELECT string_agg(r, '|' ORDER BY r COLLATE "C") FROM unnest(rows) r), ''));
EXCEPTION WHEN division_by_zero OR numeric_value_out_of_range OR invalid_text_representation OR cardinality_violation THEN
	answer := 'ERROR ' || SQLSTATE;
END
$$;
-- Is the answer PostgreSQL's own, and what gives it: stages, or a plan with or without a subplan?
CREATE FUNCTION ask(query text, OUT how text, OUT rows text) LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
	own text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		plan := plan || line || E'\n';
	END LOOP;
	how := CASE WHEN plan ~ 'Stages: ' THEN 'stages' WHEN plan ~ 'SubPlan' THEN 'subplan' WHEN plan !~ 'GpuVM' THEN 'PostgreSQL' WHEN plan ~ 'Join' THEN 'join' ELSE 'scan' END;
	rows := whole_correlated.answer(query);
	PERFORM set_config('gpuvm.enabled', 'off', true);
	own := whole_correlated.answer(query);
	PERFORM set_config('gpuvm.enabled', 'on', true);
	rows := CASE WHEN rows = own THEN regexp_replace(rows, 'rows .*', 'rows') ELSE format('%s, PostgreSQL has %s', rows, own) END;
END
$$;
CREATE TABLE queries (id int GENERATED ALWAYS AS IDENTITY, query text);
CREATE FUNCTION asked() RETURNS TABLE (how text, rows text, query text) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT a.how, a.rows, q.query FROM whole_correlated.queries q, whole_correlated.ask(q.query) a ORDER BY q.id;
	DELETE FROM whole_correlated.queries;
END
$$;
SET gpuvm.force = on;

-- Conditions that no row without a group meets: joins.
INSERT INTO queries (query) VALUES
	('SELECT * FROM o WHERE x < (SELECT avg(x) FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE x > (SELECT 0.2 * avg(x) FROM i WHERE o.k = i.k)'),
	('SELECT id FROM o WHERE (SELECT min(x) FROM i WHERE i.k = o.k AND i.s = o.s AND i.y > 1) < x AND b'),
	('SELECT id FROM o WHERE x BETWEEN (SELECT min(x) FROM i WHERE i.k = o.k) AND (SELECT max(x) FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE (SELECT min(x) FROM i WHERE i.k = o.k) + 0.5 < (SELECT avg(x) FROM i WHERE i.l = o.l)'),
	('SELECT id FROM o WHERE 3 < (SELECT count(*) FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE (SELECT count(x) FROM i WHERE i.k = o.k) BETWEEN 1 AND 3'),
	('SELECT b, count(*), sum(x) FROM o WHERE x < (SELECT avg(x) FROM i WHERE i.k = o.k) GROUP BY b HAVING count(*) > 1'),
	('SELECT DISTINCT x FROM o WHERE x < (SELECT max(x) FROM i WHERE i.k = o.k)'),
	('SELECT id, k FROM o WHERE x = (SELECT max(x) FROM i WHERE i.k = o.k) ORDER BY id DESC LIMIT 3'),
	('SELECT o.id, p.x FROM o JOIN parted p ON p.k = o.k WHERE p.x > (SELECT avg(x) FROM i WHERE i.k = o.k)'),
	('SELECT o.id, p.x FROM o LEFT JOIN parted p ON p.x = o.id WHERE o.x > (SELECT avg(x) FROM i WHERE i.k = p.k)'),
	('SELECT o.id, p.x FROM o JOIN parted p ON p.k = o.k AND p.x > (SELECT avg(x) FROM i WHERE i.k = o.k) JOIN local l ON l.x = o.s'),
	('SELECT count(*) FROM o WHERE x < (SELECT max(x) FROM parted WHERE parted.k = o.k)'),
	('SELECT count(*) FROM o WHERE x < (SELECT max(x) FROM e WHERE e.k = o.k)'),
	('SELECT id FROM o WHERE o.b = (SELECT bool_or(b) FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE x < (SELECT o.s * 0.5 + avg(i.x) - o.n FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE x < (SELECT least(max(i.x), 30) FROM i WHERE i.k = o.k)');
SELECT * FROM asked();

-- Where rows without a group count: left joins.
INSERT INTO queries (query) VALUES
	('SELECT id FROM o WHERE 0 = (SELECT count(*) FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE x > (SELECT count(*) FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE (SELECT sum(x) FROM i WHERE i.k = o.k) IS NULL'),
	('SELECT id FROM o WHERE b OR x > (SELECT avg(x) FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE x > (SELECT coalesce(sum(x), 7) FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE x > coalesce((SELECT sum(x) FROM i WHERE i.k = o.k), 7)'),
	('SELECT id FROM o WHERE x IS DISTINCT FROM (SELECT max(x) FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE NOT (x > (SELECT avg(x) FROM i WHERE i.k = o.k) AND b)'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.k = o.k), (SELECT sum(n) FROM i WHERE i.k = o.k) FROM o'),
	('SELECT id, (SELECT sum(x) * o.x / nullif(count(*), 3) FROM i WHERE i.k = o.k) AS q FROM o ORDER BY q, id LIMIT 20'),
	('SELECT id, CASE WHEN x > 5 THEN (SELECT 100 / (count(*) - 1) FROM i WHERE i.k = o.k AND i.y > 0) END FROM o WHERE k <> 4'),
	('SELECT DISTINCT (SELECT max(t) FROM i WHERE i.k = o.k) FROM o'),
	('SELECT id, sum((SELECT count(x) FROM i WHERE i.k = o.k)) OVER (ORDER BY id) FROM o'),
	('SELECT id, (SELECT max(x) FROM i WHERE i.k = o.k) FROM o WHERE x < (SELECT max(x) FROM i WHERE i.k = o.k)'),
	('SELECT id, (SELECT max(x) FROM i WHERE i.k = o.k) FROM o WHERE x < (SELECT count(*) FROM i WHERE i.k = o.k) AND b'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.k = p.k) FROM o LEFT JOIN parted p ON p.x = o.id'),
	('SELECT q.id, r.c FROM o q LEFT JOIN (SELECT id, (SELECT count(*) FROM i WHERE i.k = o.k) AS c FROM o WHERE id < 50) r ON q.id = r.id'),
	('SELECT q.id, r.id FROM o q LEFT JOIN (SELECT id FROM o WHERE x > (SELECT avg(x) FROM i WHERE i.k = o.k)) r ON q.id = r.id');
SELECT * FROM asked();

-- Keys: one equality, that of the groups.
INSERT INTO queries (query) VALUES
	('SELECT id, (SELECT max(x) FROM i WHERE i.l = o.k), (SELECT max(x) FROM i WHERE i.k = o.l), (SELECT max(x) FROM i WHERE o.k = i.s) FROM o'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.f = o.d), (SELECT count(*) FROM i WHERE o.f = i.d), (SELECT count(*) FROM i WHERE i.f = o.f) FROM o'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.n = o.n), (SELECT count(*) FROM i WHERE i.k = o.n) FROM o'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.t = o.t), (SELECT count(*) FROM i WHERE i.v = o.v), (SELECT count(*) FROM i WHERE i.c = o.c) FROM o'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.day = o.day), (SELECT count(*) FROM i WHERE i.b = o.b) FROM o'),
	('SELECT id, (SELECT count(*) FROM i WHERE (i.k, i.t) = (o.k, o.t)) FROM o'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.k = o.k AND i.k = o.s) FROM o'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.t COLLATE "C" = o.t) FROM o'),
	-- not these:
	('SELECT ts, (SELECT sum(x) FROM local WHERE local.ts = zoned.ts) FROM zoned'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.c::text = o.t) FROM o'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.k IS NOT DISTINCT FROM o.k) FROM o'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.k < o.k) FROM o'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.k + 1 = o.k) FROM o'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.k = o.k OR i.l = o.l) FROM o');
SELECT * FROM asked();

-- What the subquery reads.
CREATE VIEW joined_i AS SELECT i.k, i.x, p.x AS px FROM i JOIN parted p ON p.k = i.k;
CREATE VIEW hidden_i WITH (security_barrier) AS SELECT * FROM i WHERE y > 1;
INSERT INTO queries (query) VALUES
	('SELECT id FROM o WHERE x < (SELECT avg(i.x) FROM i, parted p WHERE i.k = o.k AND p.k = i.k)'),
	('SELECT id FROM o WHERE x < (SELECT avg(i.x) FROM i JOIN parted p USING (k) WHERE k = o.k)'),
	('SELECT id, (SELECT count(p.x) FROM i LEFT JOIN parted p ON p.x = i.id WHERE p.k = o.k) FROM o'),
	('SELECT id FROM o WHERE x < (SELECT max(px) FROM joined_i WHERE joined_i.k = o.k)'),
	('SELECT id FROM o WHERE 3 < (SELECT avg(c) FROM (SELECT k, l, count(*) AS c FROM i GROUP BY k, l) g WHERE g.k = o.k)'),
	('SELECT id FROM o WHERE x < (SELECT max(x) FROM i WHERE i.k = o.k AND i.l IN (SELECT k FROM parted WHERE x BETWEEN 280 AND 284))'),
	('SELECT id FROM o WHERE x < (SELECT max(x) FROM i WHERE i.k = o.k AND i.t LIKE ''t1%'' AND i.x < (SELECT avg(y) FROM parted p WHERE p.k = i.k))'),
	('SELECT id, (SELECT count(DISTINCT x) FROM i WHERE i.k = o.k), (SELECT sum(x) FILTER (WHERE y = 1) FROM i WHERE i.k = o.k) FROM o'),
	('SELECT id FROM o WHERE EXISTS (SELECT FROM i WHERE i.k = o.k AND i.x > (SELECT avg(y) FROM parted p WHERE p.k = i.k))'),
	('SELECT id FROM o WHERE k IN (SELECT k FROM i WHERE i.x > (SELECT avg(y) FROM parted p WHERE p.k = i.s)) AND b'),
	('WITH q AS (SELECT * FROM o WHERE x < (SELECT avg(x) FROM i WHERE i.k = o.k)) SELECT * FROM q UNION ALL SELECT * FROM q'),
	('SELECT id FROM o WHERE x > (SELECT max(x) FROM i WHERE i.k = o.k) UNION SELECT id FROM i WHERE x > (SELECT avg(x) FROM o WHERE i.k = o.k)'),
	('WITH RECURSIVE r(id, k) AS (SELECT id, k FROM o WHERE id < 5 UNION SELECT o.id, o.k FROM o, r WHERE o.id = r.id + 7 AND o.x < (SELECT max(x) FROM i WHERE i.k = o.k)) SELECT * FROM r'),
	('WITH q AS (SELECT k, x, id FROM i WHERE y > 1) SELECT id FROM q WHERE x > (SELECT avg(x) FROM q p WHERE p.k = q.k)'),
	('SELECT id FROM o WHERE x < (SELECT max(x) FROM i WHERE i.k = o.k AND i.x % 7 < 5 AND i.x / 2 > 3 AND i.x & 1 = 0 AND extract(year FROM i.day) = 2024)'),
	('SELECT id, CASE WHEN b THEN (SELECT max(x) FROM i WHERE i.k = o.k) ELSE (SELECT max(x) FROM i WHERE i.k < o.k) END FROM o'),
	('SELECT id FROM o WHERE (SELECT max(x) FROM i WHERE i.k = o.k) > (SELECT min(x) FROM i WHERE i.k < o.k)'),
	-- not these:
	('WITH q AS (SELECT k, x, id, 6 / (x - 50) FROM i WHERE y > 1) SELECT id FROM q WHERE x > (SELECT avg(x) FROM q p WHERE p.k = q.k)'),
	('SELECT id, (SELECT avg(x) FROM hidden_i WHERE hidden_i.k = o.k) FROM o'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.k = o.k GROUP BY i.b HAVING i.b) FROM o'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.k = o.k HAVING count(*) > 2) FROM o'),
	('SELECT id, (SELECT count(*) FROM i WHERE i.k = o.k LIMIT 0) FROM o'),
	('SELECT id, (SELECT sum(x * o.x) FROM i WHERE i.k = o.k) FROM o'),
	('SELECT id, (SELECT count(*) FROM (SELECT k FROM i WHERE i.k = o.k) s WHERE s.k = o.k) FROM o'),
	('SELECT id, (SELECT count(*) FROM (SELECT k FROM i ORDER BY id LIMIT 100) s WHERE s.k = o.k) FROM o'),
	('SELECT id, (SELECT count(*) FROM i JOIN LATERAL (SELECT i.x) l ON true WHERE i.k = o.k) FROM o'),
	('SELECT b, (SELECT count(*) FROM i WHERE i.b = o.b) FROM o GROUP BY b'),
	('SELECT o.id FROM o LEFT JOIN parted p ON p.k = o.k AND p.x > (SELECT avg(x) FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE x > (SELECT (SELECT max(i.x) FROM i WHERE i.k = o.k AND i.x < max(p.x)) FROM parted p WHERE p.k = o.k)');
SELECT * FROM asked();

-- Groups that no row asks for raise nothing (group 99 would), and what a row asks for does.
INSERT INTO queries (query) VALUES
	('SELECT id FROM o WHERE x < (SELECT sum(x + y) FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE x < (SELECT sum(x / y) FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE x < (SELECT sum(d) FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE x < (SELECT count(*) FROM i WHERE i.k = o.k AND 100 / i.y > 40)'),
	('SELECT id FROM o WHERE x < (SELECT max(x) FROM i WHERE i.k = o.k AND i.k = 1000 / o.s)'),
	('SELECT id FROM o WHERE (SELECT sum(x)::int FROM i WHERE i.k = o.k) > 0'),
	('SELECT id FROM o WHERE coalesce((SELECT sum(x)::int FROM i WHERE i.k = o.k), 1) > 0'),
	('SELECT id, (SELECT sum(x)::int FROM i WHERE i.k = o.k) FROM o'),
	('SELECT id, (SELECT sum(x)::int FROM i WHERE i.k = p.k) FROM (VALUES (1, 99), (2, 5)) p(id, k) ORDER BY id DESC LIMIT 1'),
	('SELECT * FROM (SELECT id, (SELECT sum(x)::int FROM i WHERE i.k = o.k) AS v FROM o) s WHERE v > 0'),
	('SELECT id FROM o WHERE 100 / (id + 1) < (SELECT avg(x) FROM i WHERE i.k = o.k)'),
	('SELECT o.id FROM o JOIN parted p ON p.k = o.k AND p.x < 5 WHERE 100 / (p.x - 40) < (SELECT avg(x) FROM i WHERE i.k = o.k)'),
	('SELECT (SELECT count(*) FROM o WHERE o.id = p.id AND 10 / p.y < (SELECT sum(x) FROM i WHERE i.k = o.k)) FROM (VALUES (1000, 0), (2, 1)) p(id, y)'),
	('SELECT q.id FROM (SELECT id, 10 / (s - 1) AS d, s FROM o) q JOIN parted p ON q.s > p.k + 1000 WHERE p.y < (SELECT max(x) FROM i WHERE i.k = q.d)'),
	('SELECT id, (SELECT sum(x)::int FROM i WHERE i.k = p.k) FROM (VALUES (1, 99)) p(id, k)'),
	('SELECT id, (SELECT 1 / count(*) FROM i WHERE i.k = o.k) FROM o'),
	('SELECT u FROM (SELECT t COLLATE "C" AS u FROM o WHERE id < 0) s WHERE u > '''' AND u NOT IN (SELECT w FROM (SELECT t COLLATE "POSIX" AS w FROM i) r WHERE w > '''')'),
	('SELECT id FROM o WHERE false AND x < (SELECT sum(1 / 0) FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE x < CASE WHEN true THEN 5 ELSE (SELECT sum(1 / 0) FROM i WHERE i.k = o.k) END'),
	('SELECT id FROM o WHERE x < (SELECT max(i.x) FROM i WHERE i.k = o.k AND random() < 2)'),
	('SELECT id FROM o WHERE x + 0 * random() < (SELECT max(d) FROM i WHERE i.k = o.k)'),
	('SELECT id FROM o WHERE x < (SELECT max(i.x) FROM i, generate_series(1, 2) WHERE i.k = o.k)');
SELECT * FROM asked();

-- NOT IN: antijoins, where neither side can be null.
CREATE TABLE nn (a int NOT NULL, b int8 NOT NULL, c int, t text NOT NULL) WITH (autovacuum_enabled = off);
INSERT INTO nn SELECT i * 3 % 39, i % 7, nullif(i % 5, 2), 't' || i % 12 FROM generate_series(1, 90) i;
CREATE TABLE family (a int NOT NULL) WITH (autovacuum_enabled = off);
CREATE TABLE child () INHERITS (family);
ALTER TABLE child ALTER a DROP NOT NULL;
INSERT INTO family VALUES (1), (3);
INSERT INTO child VALUES (5);
SELECT gpuvm.import('nn'), gpuvm.import('family');
ANALYZE nn, family, child;
INSERT INTO queries (query) VALUES
	('SELECT id FROM o WHERE id NOT IN (SELECT a FROM nn)'),
	('SELECT id FROM o WHERE id NOT IN (SELECT a FROM nn WHERE b > 3 AND t LIKE ''t1%'')'),
	('SELECT id FROM o WHERE id NOT IN (SELECT b FROM nn) AND b'),
	('SELECT id FROM o WHERE (id, id) NOT IN (SELECT a, b FROM nn)'),
	('SELECT id FROM o WHERE NOT id = ANY (SELECT a FROM nn WHERE a > 1000)'),
	('SELECT id FROM o WHERE k IS NOT NULL AND k NOT IN (SELECT a FROM nn)'),
	('SELECT o.id FROM o JOIN parted p ON p.k = o.k WHERE o.k NOT IN (SELECT a FROM nn)'),
	('SELECT id FROM o WHERE id NOT IN (SELECT c FROM nn WHERE c > 0)'),
	('SELECT id FROM o WHERE id NOT IN (SELECT DISTINCT a FROM nn)'),
	('SELECT id FROM o WHERE id <> ALL (SELECT a FROM nn)'),
	('SELECT id FROM o WHERE id NOT IN (SELECT count(*) FROM nn GROUP BY t)'),
	('SELECT id FROM o WHERE id NOT IN (SELECT a FROM (SELECT a FROM nn WHERE b = 2) s)'),
	('SELECT o.id FROM o LEFT JOIN parted p ON p.k = o.k WHERE o.id NOT IN (SELECT a FROM nn)'),
	('WITH r AS (SELECT a FROM nn) SELECT id FROM o WHERE id NOT IN (SELECT a FROM r WHERE a > 3)'),
	('WITH r AS (SELECT a FROM nn) SELECT id FROM o WHERE id NOT IN (SELECT r.a FROM r, r s WHERE r.a = s.a AND s.a > 3)'),
	('SELECT id FROM o WHERE id NOT IN (SELECT nn.a FROM e LEFT JOIN nn ON nn.a = e.k WHERE nn.b > 1)'),
	('SELECT b, count(*) FROM o WHERE id NOT IN (SELECT a FROM nn) AND x < (SELECT avg(x) FROM i WHERE i.k = o.k) GROUP BY b'),
	-- with nulls on one side, or both
	('SELECT id FROM o WHERE k NOT IN (SELECT a FROM nn)'),
	('SELECT id FROM o WHERE id NOT IN (SELECT c FROM nn)'),
	('SELECT id FROM o WHERE id NOT IN (SELECT nn.a FROM i LEFT JOIN nn ON nn.a = i.k)'),
	('SELECT o.id FROM o LEFT JOIN nn ON nn.a = o.k WHERE nn.a NOT IN (SELECT a FROM nn)'),
	('SELECT id FROM o WHERE id NOT IN (SELECT a FROM nn GROUP BY ROLLUP (a))'),
	('SELECT id FROM o WHERE id NOT IN (SELECT a FROM nn WHERE a > 0 GROUP BY ROLLUP (a))'),
	('SELECT id FROM o WHERE id NOT IN (SELECT g FROM (SELECT coalesce(c, 0) AS g FROM nn GROUP BY ROLLUP (coalesce(c, 0))) s)'),
	('SELECT id FROM o WHERE id NOT IN (SELECT a FROM family)'),
	-- not these:
	('SELECT id FROM o WHERE id > ALL (SELECT a FROM nn)'),
	('SELECT id FROM o WHERE NOT (id <> ALL (SELECT a FROM nn))'),
	('SELECT id FROM o WHERE b OR id NOT IN (SELECT a FROM nn)'),
	('SELECT id FROM o WHERE id NOT IN (SELECT a / (a - 36) FROM nn WHERE a <> 36)'),
	('SELECT id FROM o WHERE id NOT IN (SELECT a FROM nn WHERE nn.b = o.s)'),
	('SELECT id FROM o WHERE id NOT IN (SELECT a FROM nn ORDER BY a LIMIT 3)');
SELECT * FROM asked();
-- A plan does not outlive the constraint that it rests on.
PREPARE outside AS SELECT count(*) FROM o WHERE id NOT IN (SELECT a FROM nn);
EXECUTE outside;
ALTER TABLE nn ALTER a DROP NOT NULL;
INSERT INTO nn VALUES (NULL, 1, 1, 't');
EXECUTE outside;
DEALLOCATE outside;

-- Prepared statements, and a plan that is made once.
SET plan_cache_mode = force_generic_plan;
PREPARE above(int, numeric) AS SELECT count(*), sum(id) FROM o WHERE x > (SELECT $2 * avg(x) FROM i WHERE i.k = o.k AND i.y <> $1);
EXECUTE above(1, 0.5);
EXECUTE above(NULL, 0.5);
EXECUTE above(2, 1.5);
SET gpuvm.require = :device;
PREPARE half(int) AS SELECT count(*), sum(id) FROM o WHERE x > (SELECT 0.5 * avg(x) FROM i WHERE i.k = o.k AND i.y <> $1);
EXECUTE half(1);
EXECUTE half(NULL);
RESET plan_cache_mode;
RESET gpuvm.require;
SET gpuvm.enabled = off;
EXECUTE above(1, 0.5);
EXECUTE above(NULL, 0.5);
EXECUTE above(2, 1.5);
EXECUTE half(1);
EXECUTE half(NULL);
RESET gpuvm.enabled;
DEALLOCATE above;
-- Own changes are seen.
BEGIN;
INSERT INTO i (id, k, x, y) VALUES (703, 1, -10000, 1);
DELETE FROM i WHERE k = 2;
UPDATE o SET k = 31 WHERE id < 10;
SELECT * FROM ask('SELECT id, x, (SELECT min(x) FROM i WHERE i.k = o.k), (SELECT count(*) FROM i WHERE i.k = o.k) FROM o');
SELECT * FROM ask('SELECT id, x FROM o WHERE x > (SELECT avg(x) FROM i WHERE i.k = o.k)');
ROLLBACK;

-- Where rows are locked or changed PostgreSQL looks at them again, one by one.
-- How many subplans run for each row; nothing of stages, which have none.
CREATE FUNCTION subplans(query text, OUT n bigint) LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	n := 0;
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ '^ *Stages: ' THEN
			n := NULL;
		END IF;
		n := n + (line ~ '^ *SubPlan ')::int;
	END LOOP;
END
$$;
SELECT subplans('SELECT id FROM o WHERE x < (SELECT avg(x) FROM i WHERE i.k = o.k) FOR UPDATE') AS locked,
	subplans('UPDATE o SET x = 1 WHERE x < (SELECT avg(x) FROM i WHERE i.k = o.k)') AS changed,
	subplans('INSERT INTO e (id) SELECT id FROM o WHERE x < (SELECT avg(x) FROM i WHERE i.k = o.k)') AS inserted;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM o WHERE x < (SELECT avg(x) FROM i WHERE i.k = o.k);
FETCH 2 FROM c;
UPDATE o SET x = x + 1 WHERE CURRENT OF c RETURNING id;
DECLARE u CURSOR FOR SELECT id FROM o WHERE x < (SELECT avg(x) FROM i WHERE i.k = o.k) UNION ALL SELECT k FROM parted_1;
FETCH 2 FROM u;
UPDATE o SET x = x + 1 WHERE CURRENT OF u RETURNING id;
DECLARE d CURSOR FOR SELECT count(*), sum(x) FROM o WHERE o.x < (SELECT avg(x) FROM i WHERE i.k = o.k);
FETCH 2 FROM d;
DECLARE s SCROLL CURSOR FOR SELECT id, x, (SELECT count(*) FROM i WHERE i.k = o.k) FROM o ORDER BY id;
FETCH 2 FROM s;
FETCH LAST FROM s;
FETCH PRIOR FROM s;
ROLLBACK;

-- Who may read what is asked as before: of the subquery's tables, too, and of a view with its owner's rights.
CREATE ROLE gpuvm_correlated_reader;
GRANT USAGE ON SCHEMA whole_correlated TO gpuvm_correlated_reader;
GRANT SELECT ON o TO gpuvm_correlated_reader;
CREATE VIEW below AS SELECT id, x FROM o WHERE x < (SELECT avg(x) FROM i WHERE i.k = o.k);
GRANT SELECT ON below TO gpuvm_correlated_reader;
SET ROLE gpuvm_correlated_reader;
SELECT count(*) FROM o WHERE x < (SELECT avg(x) FROM i WHERE i.k = o.k);
SELECT count(*), sum(x) FROM below;
RESET ROLE;
GRANT SELECT (k, x) ON i TO gpuvm_correlated_reader;
SET ROLE gpuvm_correlated_reader;
SELECT count(*), sum(x) FROM o WHERE x < (SELECT avg(x) FROM i WHERE i.k = o.k);
SELECT count(*) FROM o WHERE x < (SELECT avg(x) FROM i WHERE i.k = o.k AND i.y > 1);
RESET ROLE;
-- Policies hide rows: nothing is moved.
ALTER TABLE i ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON i USING (y > 1);
SET ROLE gpuvm_correlated_reader;
SELECT subplans('SELECT id FROM o WHERE x < (SELECT avg(x) FROM i WHERE i.k = o.k)');
SELECT count(*), sum(x) FROM o WHERE x < (SELECT avg(x) FROM i WHERE i.k = o.k);
RESET ROLE;
ALTER TABLE i DISABLE ROW LEVEL SECURITY;

-- Many more, put together by a generator of its own, which gives the same on all versions of PostgreSQL.
SET gpuvm.force = on;
CREATE FUNCTION pick(INOUT seed bigint, VARIADIC choices text[], OUT choice text) LANGUAGE plpgsql AS $$
BEGIN
	seed := (seed * 1103515245 + 12345) % 2147483648;
	choice := choices[1 + seed / 65536 % array_length(choices, 1)];
END
$$;
-- A correlated aggregate, with its subquery's conditions.
CREATE FUNCTION make_scalar(INOUT seed bigint, OUT sql text) LANGUAGE plpgsql AS $$
DECLARE
	agg text;
	around text;
	source text;
	key text;
	more text;
BEGIN
	SELECT * FROM pick(seed, 'avg(i.x)', 'sum(i.x)', 'min(i.x)', 'max(i.x)', 'count(*)', 'count(i.x)', 'sum(i.n)', 'max(i.n)', 'min(i.s)', 'avg(i.l)',
		'count(DISTINCT i.x)', 'sum(i.x) FILTER (WHERE i.b)', 'sum(i.x + 1)') INTO seed, agg;
	SELECT * FROM pick(seed, '%s', '%s', '%s', '0.3 * %s', 'coalesce(%s, 5)', '%s + o.n', '-(%s)::numeric', 'CASE WHEN %s > 10 THEN 1 END', '(%s)::int') INTO seed, around;
	SELECT * FROM pick(seed, 'i', 'i', 'i', 'i JOIN parted q ON q.k = i.k', 'i LEFT JOIN parted q ON q.x = i.id', '(SELECT * FROM i WHERE y < 3) i') INTO seed, source;
	SELECT * FROM pick(seed, 'i.k = o.k', 'o.l = i.k', 'i.s = o.s AND i.k = o.k', 'i.t = o.t', 'i.v = o.v', 'o.day = i.day', 'i.b = o.b', 'i.n = o.n', 'i.d = o.f',
		'i.c = o.c AND i.k = o.s') INTO seed, key;
	SELECT * FROM pick(seed, '', '', '', ' AND i.y <> 2', ' AND i.t LIKE ''t1%''', ' AND i.x > 10', ' AND i.k IN (SELECT k FROM parted WHERE y > 20)', ' AND o.x > 3',
		' AND i.x IS NULL', ' AND false') INTO seed, more;
	sql := format('(SELECT %s FROM %s WHERE %s%s)', replace(around, '%s', agg), source, key, more);
END
$$;
-- A statement with two of them, a and b, in its condition and target list.
CREATE FUNCTION make_query(INOUT seed bigint, OUT sql text) LANGUAGE plpgsql AS $$
DECLARE
	a text;
	b text;
	condition text;
	source text;
	more text;
BEGIN
	SELECT * FROM make_scalar(seed) INTO seed, a;
	SELECT * FROM make_scalar(seed) INTO seed, b;
	SELECT * FROM pick(seed, 'o.x < {a}', '{a} >= o.x', '{a} = o.x', '{a} IS NULL', 'o.b OR {a} > o.x', 'NOT ({a} < o.x)', '{a} <= {b}', 'o.x BETWEEN {a} AND {b}',
		'{a} IN (1, 2, 3, 10)', '{a} IS DISTINCT FROM o.x', 'CASE WHEN o.b THEN {a} > 3 ELSE o.x > 5 END', '({a} > 5 OR {b} < 3)', 'coalesce({a}, {b}, 2) > o.x',
		'{a} > 0 AND {b} >= o.x') INTO seed, condition;
	SELECT * FROM pick(seed, 'o', 'o', 'o', 'o LEFT JOIN parted p ON p.x = o.id', 'parted p LEFT JOIN o ON o.k = p.k AND p.x < 40', 'o JOIN parted p ON o.id = p.x') INTO seed, source;
	SELECT * FROM pick(seed, '', '', ' AND o.x > 10', ' AND o.k IN (SELECT k FROM parted WHERE y < 9)', ' AND o.t LIKE ''t1%''', ' AND o.id NOT IN (SELECT a FROM nn)',
		' AND o.b') INTO seed, more;
	SELECT * FROM pick(seed, 'SELECT o.id, o.x FROM {from} WHERE {c}', 'SELECT o.id, o.x FROM {from} WHERE {c}', 'SELECT o.id, {a}, {b} FROM {from} WHERE {c}',
		'SELECT o.id, {a} AS a, {b} AS b FROM {from} WHERE true{more}', 'SELECT o.b, count(*), sum(o.x) FROM {from} WHERE {c} GROUP BY o.b',
		'SELECT z.id, s.a FROM o z LEFT JOIN (SELECT o.id, {a} AS a FROM {from} WHERE {c}) s ON s.id = z.id',
		'SELECT * FROM (SELECT o.id, {a} AS a FROM {from} WHERE true{more}) s WHERE a > 5 OR a IS NULL', 'SELECT * FROM (SELECT o.id, {a} AS a FROM {from}) s WHERE a > 5',
		'SELECT z.id FROM o z WHERE EXISTS (SELECT FROM {from} WHERE o.k = z.l AND {c})',
		'SELECT z.id FROM o z WHERE z.id NOT IN (SELECT o.id FROM {from} WHERE {c} AND o.id < 50)', 'SELECT DISTINCT {a} FROM {from} WHERE true{more}') INTO seed, sql;
	sql := replace(replace(replace(sql, '{c}', condition || more), '{more}', more), '{from}', source);
	sql := replace(replace(sql, '{a}', a), '{b}', b);
END
$$;
CREATE FUNCTION run_queries(seed bigint, n int) RETURNS TABLE (how text, queries bigint, different bigint, example text) LANGUAGE plpgsql AS $$
DECLARE
	sql text;
BEGIN
	FOR i IN 1 .. n LOOP
		SELECT * FROM make_query(seed) INTO seed, sql;
		INSERT INTO queries (query) VALUES (sql);
	END LOOP;
	RETURN QUERY SELECT a.how, count(*), count(*) FILTER (WHERE a.rows ~ 'PostgreSQL has'), min(a.rows || ': ' || q.query) FILTER (WHERE a.rows ~ 'PostgreSQL has')
		FROM whole_correlated.queries q, whole_correlated.ask(q.query) a GROUP BY a.how ORDER BY a.how;
	DELETE FROM queries;
END
$$;
SELECT how, queries > 3 AS some, different, example FROM run_queries(7, 30);
RESET gpuvm.force;

-- Costs decide: a row or two by an index, or thousands; a small part of the groups, or all.
RESET gpuvm.force;
CREATE TABLE many (id int PRIMARY KEY, k int NOT NULL, kind int NOT NULL, x int NOT NULL) WITH (autovacuum_enabled = off);
INSERT INTO many SELECT i, i % 9973, i * 31 % 1000, i * 7 % 1009 FROM generate_series(1, 60000) i;
CREATE INDEX ON many (k);
SELECT gpuvm.import('many');
ANALYZE many;
SELECT subplans('SELECT * FROM many o WHERE id = 5 AND x < (SELECT avg(x) FROM many i WHERE i.k = o.k)') AS one,
	subplans('SELECT * FROM many o WHERE x < (SELECT avg(x) FROM many i WHERE i.k = o.k)') AS all;
SELECT * FROM ask('SELECT sum(x) FROM many o WHERE kind < 20 AND x < (SELECT avg(x) FROM many i WHERE i.k = o.k)');
SELECT * FROM ask('SELECT sum(x) FROM many o WHERE kind < 999 AND x < (SELECT avg(x) FROM many i WHERE i.k = o.k)');
SELECT * FROM ask('SELECT sum(x) FROM many o WHERE kind < 20 AND x < (SELECT avg(x) FROM many i WHERE i.k = o.k)');
-- What is asked for is known of a relation, or of a list of keys.
SET gpuvm.force = on;
SELECT * FROM ask('SELECT * FROM many o WHERE k IN (SELECT k FROM parted WHERE x > 299) AND x < (SELECT avg(x) FROM many i WHERE i.k = o.k AND i.kind = o.kind)');
SELECT * FROM ask('SELECT id FROM many o WHERE k IN (SELECT k FROM parted WHERE x > 295) AND x <= (SELECT avg(x) FROM many i WHERE i.k = o.k AND i.kind = o.kind)');
SELECT * FROM ask('SELECT id, (SELECT count(*) FROM i WHERE i.k = p.k AND i.s = o.s) FROM o LEFT JOIN parted p ON p.x = o.id WHERE o.id < 90 AND p.k < 20');
-- A row of NULLs that an outer join makes asks, too.
SELECT * FROM ask('SELECT o.id, (SELECT count(*) FROM many i WHERE i.k = coalesce(o.s, 7)) FROM parted p LEFT JOIN o ON o.id = p.x WHERE coalesce(o.s, 1) = 1');
SELECT * FROM ask('SELECT o.id, p.x FROM o RIGHT JOIN parted p ON o.id = p.x WHERE o.id IS NULL AND 1 < (SELECT count(*) FROM many i WHERE i.k = coalesce(o.s, 7))');
RESET gpuvm.force;

-- PostgreSQL can make no full join of one side's condition: it is a left one by what WHERE says as it stands. One by keys, or by none, is joined in full.
SET gpuvm.force = on;
SELECT * FROM ask('SELECT o.id FROM nn FULL JOIN o ON o.s = 1 WHERE EXISTS (SELECT FROM parted p WHERE p.k = o.k AND (p.x > 4 OR EXISTS (SELECT FROM many m WHERE m.k = p.k AND m.kind = m.id)))');
SELECT * FROM ask('SELECT q.id FROM (SELECT o.* FROM nn FULL JOIN o ON o.s = 1) q WHERE EXISTS (SELECT FROM parted p WHERE p.k = q.k AND (p.x > 4 OR EXISTS (SELECT FROM many m WHERE m.k = p.k AND m.kind = m.id)))');
SELECT * FROM ask('SELECT o.id, (SELECT count(*) FROM i WHERE i.k = o.k) FROM nn FULL JOIN o ON nn.a = o.id AND o.s = 1');
SELECT * FROM ask('SELECT o.id, (SELECT count(*) FROM i WHERE i.k = o.k) FROM (SELECT FROM nn LIMIT 2) nn FULL JOIN o ON true');
RESET gpuvm.force;

DROP OWNED BY gpuvm_correlated_reader;
DROP ROLE gpuvm_correlated_reader;
