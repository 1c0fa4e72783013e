-- Where PostgreSQL's own plan takes less, it is taken: few look-ups by an index, first rows, subqueries that are executed for each row.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
CREATE SCHEMA costs;
SET search_path = costs;
SET max_parallel_workers_per_gather = 0;
-- The costs of the CPU's machine, also where there is a device.
SET gpuvm.device = cpu;
CREATE TABLE account (id int PRIMARY KEY, region int NOT NULL, name text) WITH (autovacuum_enabled = off);
INSERT INTO account SELECT k, k % 40, 'account ' || k FROM generate_series(1, 3000) k;
CREATE TABLE event (id int PRIMARY KEY, account int NOT NULL, kind int NOT NULL, amount int NOT NULL) WITH (autovacuum_enabled = off);
INSERT INTO event SELECT k, 1 + k * 7 % 3000, k % 5, k * 11 % 1000 FROM generate_series(1, 30000) k;
CREATE INDEX ON event (account);
SELECT gpuvm.import('account'), gpuvm.import('event');
VACUUM ANALYZE account, event;

-- The plan in one line, and whether the answer is PostgreSQL's.
CREATE FUNCTION chosen(query text) RETURNS TABLE (nodes text, same bool) LANGUAGE plpgsql AS $$
DECLARE
	line text;
	answers text[];
	alternative int;
	depth int;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		depth := length(line) - length(ltrim(line));
		-- below a scan of ours stand its alternative and its children
		IF depth <= alternative THEN
			alternative := NULL;
		END IF;
		IF alternative IS NULL AND (depth = 0 OR line ~ '->') THEN
			nodes := concat_ws(', ', nodes, regexp_replace(ltrim(line, ' ->'), ' (using|on) .*', ''));
		END IF;
		IF line ~ 'Custom Scan' AND alternative IS NULL THEN
			alternative := depth;
		END IF;
	END LOOP;
	FOR i IN 0 .. 1 LOOP
		PERFORM set_config('gpuvm.enabled', (i = 1)::text, true);
		EXECUTE 'SELECT string_agg(q::text, '';'' ORDER BY q::text) FROM (' || query || ') q' INTO line;
		answers := answers || coalesce(line, '');
	END LOOP;
	same := answers[1] = answers[2];
	RETURN NEXT;
END $$;

-- Executed for each row: a program is started only where PostgreSQL takes longer than that.
SELECT * FROM chosen($$SELECT id, (SELECT sum(region) FROM (SELECT region FROM account a WHERE a.region = e.kind UNION ALL SELECT region FROM account a WHERE a.name = 'account ' || e.id) q) FROM event e WHERE id < 50$$);
SELECT * FROM chosen($$SELECT id, (SELECT sum(amount) FROM (SELECT amount FROM event v WHERE v.kind = a.id UNION ALL SELECT amount FROM event v WHERE v.amount = a.id) q) FROM account a WHERE id < 50$$);
SELECT * FROM chosen($$SELECT id, (SELECT max(a.id) FROM account a WHERE a.region < e.kind) FROM event e WHERE id < 50$$);
-- Look-ups by an index, for few keys and for all.
SELECT * FROM chosen($$SELECT a.id, q.* FROM account a, LATERAL (SELECT kind, count(*) FROM event e WHERE e.account = a.id GROUP BY kind) q WHERE a.id BETWEEN 100 AND 110$$);
SELECT * FROM chosen($$SELECT a.id, q.* FROM account a, LATERAL (SELECT kind, count(*) FROM event e WHERE e.account = a.id GROUP BY kind) q$$);
SELECT * FROM chosen($$SELECT a.id, (SELECT sum(amount) FROM event e WHERE e.account = a.id) FROM account a WHERE a.id BETWEEN 100 AND 110$$);
SELECT * FROM chosen($$SELECT a.id, (SELECT sum(amount) FROM event e WHERE e.account = a.id) FROM account a$$);
SELECT * FROM chosen($$SELECT sum(q.amount) FROM (SELECT account, amount FROM event UNION ALL SELECT account, amount FROM event) q JOIN account a ON a.id = q.account WHERE a.id BETWEEN 100 AND 110$$);
SELECT * FROM chosen($$SELECT * FROM event WHERE account IN (5, 500, 1000)$$);
SELECT * FROM chosen($$SELECT kind, sum(amount) FROM event JOIN account a ON a.id = account WHERE a.id < 20 GROUP BY kind$$);
SELECT * FROM chosen($$SELECT kind, sum(amount) FROM event JOIN account a ON a.id = account GROUP BY kind$$);
SELECT * FROM chosen($$SELECT id, CASE WHEN EXISTS (SELECT FROM event e WHERE e.account = a.id AND e.kind = 1) THEN 1 ELSE 0 END FROM account a WHERE id BETWEEN 100 AND 110$$);
SELECT nodes LIKE '%GpuVM%' AS program, same FROM chosen($$SELECT id, CASE WHEN EXISTS (SELECT FROM event e WHERE e.account = a.id AND e.kind = 1) THEN 1 ELSE 0 END FROM account a$$);
-- First rows.
SELECT * FROM chosen($$SELECT e.account FROM event e WHERE amount > ANY (SELECT amount FROM event v WHERE v.kind = e.kind) LIMIT 5$$);
SELECT nodes FROM chosen($$SELECT a.id FROM account a JOIN account b ON a.region = b.region LIMIT 5$$);
SELECT nodes FROM chosen($$SELECT a.id FROM account a JOIN account b ON a.region = b.region AND a.name < b.name LIMIT 5$$);
BEGIN;
DECLARE c CURSOR FOR SELECT a.region < b.region AS met FROM account a JOIN account b ON a.region < b.region;
FETCH 1 FROM c;
COMMIT;
-- A cursor: a screenful at once, where a program sorts first; a program, where it has one as soon.
CREATE TABLE entry (id int PRIMARY KEY, account int NOT NULL, kind int NOT NULL, amount int NOT NULL, other int NOT NULL) WITH (autovacuum_enabled = off);
INSERT INTO entry SELECT k, 1 + k * 7::bigint % 3000, k % 10, k % 10007, k * 104729::bigint % 200000 FROM generate_series(1, 200000) k;
CREATE INDEX ON entry (amount);
SELECT gpuvm.import('entry');
VACUUM ANALYZE entry;
EXPLAIN (COSTS OFF) DECLARE c NO SCROLL CURSOR FOR SELECT * FROM entry WHERE kind = 3 ORDER BY amount;
EXPLAIN (COSTS OFF) DECLARE c NO SCROLL CURSOR FOR SELECT e.id, a.name FROM entry e JOIN account a ON a.id = e.account WHERE a.region < 5 ORDER BY e.amount;
EXPLAIN (COSTS OFF) DECLARE c NO SCROLL CURSOR FOR SELECT * FROM entry WHERE kind + amount = 10;
SET cursor_tuple_fraction = 1;
EXPLAIN (COSTS OFF) DECLARE c NO SCROLL CURSOR FOR SELECT * FROM entry WHERE kind = 3 ORDER BY amount;
RESET cursor_tuple_fraction;
-- Look-ups for a few rows, aggregated, where a join of what programs read costs less for pages on a disk; and for many.
SELECT * FROM chosen($$SELECT sum(f.amount) FROM entry e JOIN entry f ON f.id = e.other WHERE e.amount BETWEEN 100 AND 115$$);
SELECT * FROM chosen($$SELECT sum(f.amount) FROM entry e JOIN entry f ON f.id = e.other WHERE e.amount BETWEEN 100 AND 9000$$);
-- A merge join by an index in another order than the table's: each row that it comes to is looked up.
CREATE INDEX ON entry (other);
SELECT * FROM chosen($$SELECT sum(f.amount) FROM entry e JOIN entry f ON f.other = e.amount WHERE e.id BETWEEN 9000 AND 9500$$);
-- Keys of two columns that depend on each other: PostgreSQL expects few pairs, and would look each up for the next relations.
CREATE TABLE product (id int PRIMARY KEY, name text NOT NULL) WITH (autovacuum_enabled = off);
INSERT INTO product SELECT k, 'product ' || k FROM generate_series(1, 10000) k;
CREATE TABLE stock (product int NOT NULL, place int NOT NULL, cost int NOT NULL, PRIMARY KEY (product, place)) WITH (autovacuum_enabled = off);
INSERT INTO stock SELECT 1 + k / 4, (k / 4 + k % 4 * 125) % 500, k % 97 FROM generate_series(0, 39999) k;
CREATE TABLE sale (product int NOT NULL, place int NOT NULL, entry int NOT NULL, amount int NOT NULL) WITH (autovacuum_enabled = off);
INSERT INTO sale SELECT 1 + k % 10000, (k % 10000 + k / 10000 % 4 * 125) % 500, 1 + k * 7919::bigint % 200000, k % 50 FROM generate_series(0, 199999) k;
CREATE INDEX ON sale (product, place);
SELECT gpuvm.import('product'), gpuvm.import('stock'), gpuvm.import('sale');
VACUUM ANALYZE product, stock, sale;
SELECT * FROM chosen($$SELECT e.kind, sum(s.amount * k.cost) FROM product p JOIN stock k ON k.product = p.id JOIN sale s ON s.product = k.product AND s.place = k.place JOIN entry e ON e.id = s.entry WHERE p.name LIKE '%77%' GROUP BY e.kind$$);
SELECT * FROM chosen($$SELECT e.kind, sum(s.amount * k.cost) FROM product p JOIN stock k ON k.product = p.id JOIN sale s ON s.product = k.product AND s.place = k.place JOIN entry e ON e.id = s.entry WHERE p.id IN (77, 78) GROUP BY e.kind$$);
-- Partitions that a parameter rules out when the plan runs, all of which PostgreSQL charges for.
CREATE TABLE daily (day int NOT NULL, n int NOT NULL) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE daily_%s PARTITION OF daily FOR VALUES FROM (%s) TO (%s) WITH (autovacuum_enabled = off)', p, p * 10, p * 10 + 10) FROM generate_series(0, 39) p
\set ECHO none
\gexec
\set ECHO all
INSERT INTO daily SELECT k % 400, k FROM generate_series(1, 20000) k;
SELECT gpuvm.import('daily');
VACUUM ANALYZE daily;
SET plan_cache_mode = force_generic_plan;
PREPARE a_day(int) AS SELECT sum(n) FROM daily WHERE day = $1;
PREPARE days(int, int) AS SELECT n FROM daily WHERE day >= $1 AND day < $2 ORDER BY n LIMIT 3;
PREPARE rest(int) AS SELECT count(*) AS rest FROM daily WHERE n > $1;
EXPLAIN (COSTS OFF) EXECUTE a_day(77);
EXECUTE a_day(77);
EXECUTE days(77, 79);
EXECUTE rest(77);
RESET plan_cache_mode;

DROP SCHEMA costs CASCADE;
