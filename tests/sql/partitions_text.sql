-- The leaves of a partitioned table have one family of dictionaries for each column, and so one program reads them all.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE SCHEMA partitions_text;
SET search_path = partitions_text;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/ask_many.sql
\set ECHO all

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE p (id int, a int, t text, v varchar(9), e mood) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (1000) WITH (autovacuum_enabled = off);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (2000) PARTITION BY LIST (a);
CREATE TABLE p2a PARTITION OF p2 FOR VALUES IN (0, 1, 2, 3, 4) WITH (autovacuum_enabled = off);
CREATE TABLE p2b PARTITION OF p2 DEFAULT WITH (autovacuum_enabled = off);
CREATE TABLE p3 (gone text, id int, a int, t text, v varchar(9), e mood) WITH (autovacuum_enabled = off);
ALTER TABLE p3 DROP COLUMN gone;
ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (2000) TO (3000);
CREATE TABLE rest PARTITION OF p DEFAULT WITH (autovacuum_enabled = off);
INSERT INTO p SELECT i, i % 10, CASE WHEN i % 17 > 0 THEN 't' || (i / 300) || '/' || i % 7 END, 'v' || (2999 - i) / 500, (ARRAY['sad', 'ok', 'happy'])[1 + i / 700 % 3]::mood FROM generate_series(1, 2999) i;
CREATE TABLE other (t text, n int) WITH (autovacuum_enabled = off);
INSERT INTO other SELECT 't' || i % 13 || '/' || i % 8, i FROM generate_series(1, 200) i;
-- One after the other, two in one transaction, one that is empty.
SELECT gpuvm.import('p1');
BEGIN;
SELECT gpuvm.import('p3'), gpuvm.import('p2b');
COMMIT;
SELECT gpuvm.import('p2a'), gpuvm.import('other'), gpuvm.import('rest');
ANALYZE p, other;

CREATE VIEW over_all AS SELECT 'SELECT ' || q AS query FROM unnest(ARRAY[
	$$count(*), t FROM p GROUP BY t$$, $$count(*), v, e FROM p GROUP BY v, e$$, $$id, t, v, e FROM p WHERE t LIKE 't3%'$$, $$min(t), max(t), min(v), max(e) FROM p$$, $$count(*), upper(t) FROM p GROUP BY 2$$, $$DISTINCT t FROM p WHERE id > 900$$, $$count(*) FROM p WHERE t = 't8/3' OR v = 'v1'$$,
	$$count(*), t FROM p WHERE id > 1500 GROUP BY t$$, $$count(*), t FROM p2 GROUP BY t$$, $$id, v FROM p2 WHERE t < 't5'$$, $$count(*) FROM p WHERE t < v$$, $$count(*), coalesce(t, v) FROM p GROUP BY 2$$, $$count(*), min(o.n) FROM p JOIN other o ON p.t = o.t$$, $$p.id, o.n FROM p JOIN other o ON p.t = o.t AND o.n = p.a$$,
	$$o.n FROM other o WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.t = o.t)$$, $$x.id, y.id FROM p x JOIN p y ON x.t = y.t AND x.id = y.id + 7$$, $$t, count(*) FROM p GROUP BY t HAVING count(*) > 20$$, $$length(t), count(*), max(v) FROM p GROUP BY 1$$, $$count(*) FROM (SELECT t, v FROM p GROUP BY t, v) q$$]) q;
INSERT INTO queries (query) SELECT query FROM over_all;
SELECT * FROM asked();

-- Values that are new, in some leaves or in all, and in none of the dictionaries.
BEGIN;
UPDATE p SET t = 'new', v = 'n' || id % 2 WHERE id % 400 = 7;
INSERT INTO p VALUES (5000, 3, 'rest', 'rest', NULL), (5001, 3, 'new', 'v1', 'ok'), (5002, 4, NULL, NULL, 'sad');
UPDATE p SET t = 'only p3' WHERE id = 2500;
INSERT INTO queries (query) SELECT query FROM over_all;
SELECT * FROM asked();
COMMIT;
-- Refreshed one by one: each goes on from the longest dictionary of all.
VACUUM p;
SELECT leaf, gpuvm.refresh(leaf) IS NOT NULL AS refreshed, (SELECT count(*) FROM over_all WHERE ask(query) = 'VM') AS vm FROM unnest('{p3,rest,p1,p2b,p2a}'::regclass[]) leaf;
-- The same value comes to two leaves, and another to each.
UPDATE p SET t = 'both' WHERE id IN (8, 2008);
UPDATE p SET t = 'p1 alone' WHERE id = 9;
UPDATE p SET t = 'p3 alone' WHERE id = 2009;
VACUUM p1;
SELECT gpuvm.refresh('p1') IS NOT NULL AS refreshed;
INSERT INTO queries (query) SELECT query FROM over_all;
SELECT * FROM asked();
VACUUM p3;
SELECT gpuvm.refresh('p3') IS NOT NULL AS refreshed;
INSERT INTO queries (query) SELECT query FROM over_all;
SELECT * FROM asked();

-- Imports that are not to be: what they would have added is in no family.
BEGIN;
UPDATE p2a SET t = 'never' WHERE id = 1001;
ROLLBACK;
BEGIN;
SELECT gpuvm.import('p2a'), gpuvm.import('p1');
ROLLBACK;
UPDATE p1 SET t = 'later' WHERE id = 11;
UPDATE p2b SET t = 'latest' WHERE id = 1005;
VACUUM p1, p2b;
BEGIN;
SAVEPOINT s;
SELECT gpuvm.import('p1');
ROLLBACK TO s;
SELECT gpuvm.import('p2b');
COMMIT;
INSERT INTO queries (query) SELECT query FROM over_all;
SELECT * FROM asked();
BEGIN;
SELECT gpuvm.import('p1');
SAVEPOINT s;
UPDATE p1 SET t = 'subtransaction' WHERE id = 12;
RELEASE s;
COMMIT;
INSERT INTO queries (query) SELECT query FROM over_all;
SELECT * FROM asked();

-- The leaf with the longest dictionary goes, and comes again; others have grown meanwhile.
UPDATE p3 SET t = 'longest ' || id % 5 WHERE id < 2050;
VACUUM p3;
SELECT gpuvm.refresh('p3') IS NOT NULL AS refreshed;
SELECT gpuvm.release('p3');
UPDATE p1 SET t = 'meanwhile ' || id % 3 WHERE id < 50;
VACUUM p1;
SELECT gpuvm.refresh('p1') IS NOT NULL AS refreshed;
SELECT gpuvm.import('p3');
INSERT INTO queries (query) SELECT query FROM over_all;
SELECT * FROM asked();
TRUNCATE p3;
INSERT INTO p SELECT i, i % 10, 'again ' || i % 4, 'v', 'ok' FROM generate_series(2000, 2400) i;
VACUUM p3;
SELECT gpuvm.import('p3');
INSERT INTO queries (query) SELECT query FROM over_all;
SELECT * FROM asked();

-- Attached after it was imported: its codes are its own, until it is imported anew. Detached, it goes its own way, and comes back.
CREATE TABLE p4 (id int, a int, t text, v varchar(9), e mood) WITH (autovacuum_enabled = off);
INSERT INTO p4 SELECT i, i % 10, 'p4 ' || i % 6, 'v' || i % 3, 'happy' FROM generate_series(3000, 3299) i;
SELECT gpuvm.import('p4');
ALTER TABLE p ATTACH PARTITION p4 FOR VALUES FROM (3000) TO (4000);
SELECT ask('SELECT count(*), t FROM p GROUP BY t'), ask('SELECT count(*), a FROM p GROUP BY a'), ask('SELECT count(*), t FROM p WHERE id < 3000 GROUP BY t');
SELECT reason FROM gpuvm.why_not('SELECT count(*), t FROM p GROUP BY t');
SELECT gpuvm.import('p4');
INSERT INTO queries (query) SELECT query FROM over_all;
SELECT * FROM asked();
ALTER TABLE p DETACH PARTITION p4;
UPDATE p4 SET t = 'detached' WHERE id = 3000;
UPDATE p1 SET t = 'attached' WHERE id = 13;
VACUUM p4, p1;
SELECT gpuvm.refresh('p4') IS NOT NULL AS p4, gpuvm.refresh('p1') IS NOT NULL AS p1;
ALTER TABLE p ATTACH PARTITION p4 FOR VALUES FROM (3000) TO (4000);
INSERT INTO queries (query) SELECT query FROM over_all;
SELECT * FROM asked();

-- A plan that is kept: a leaf gets another family under it, and one of its own columns another type.
SET plan_cache_mode = force_generic_plan;
PREPARE grouped AS SELECT t, count(*) FROM p GROUP BY t ORDER BY count(*) DESC, t COLLATE "C" LIMIT 3;
\set vm 'SET gpuvm.require = ' :device '; EXECUTE grouped; RESET gpuvm.require'
:vm;
UPDATE p SET t = 'most' WHERE id % 3 = 0;
:vm;
VACUUM p;
SELECT count(gpuvm.refresh(leaf)) FROM unnest('{p1,p4}'::regclass[]) leaf;
:vm;
RESET plan_cache_mode;
ALTER TABLE p ALTER COLUMN v TYPE text;
SELECT gpuvm.import('p1'), gpuvm.import('p2a'), gpuvm.import('p2b'), gpuvm.import('p3'), gpuvm.import('p4'), gpuvm.import('rest');
INSERT INTO queries (query) SELECT query FROM over_all;
SELECT * FROM asked();
-- All at once, and one that is added later.
SELECT count(gpuvm.release(leaf)) FROM unnest('{p1,p2a,p2b,p3,p4,rest}'::regclass[]) leaf;
SELECT gpuvm.import('p');
CREATE TABLE p5 PARTITION OF p FOR VALUES FROM (6000) TO (7000) WITH (autovacuum_enabled = off);
INSERT INTO p SELECT 6000 + i, i % 10, 't' || i % 5, 'p5 ' || i % 3, 'ok' FROM generate_series(1, 200) i;
SELECT gpuvm.import('p5');
INSERT INTO queries (query) SELECT query FROM over_all;
SELECT * FROM asked();
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY[$$count(DISTINCT t), count(DISTINCT upper(v)) FROM p$$, $$v, count(DISTINCT t), max(t) FROM p GROUP BY v$$, $$t, e, count(*) FROM p GROUP BY ROLLUP (t, e)$$, $$coalesce(t, v), count(DISTINCT a) FROM p GROUP BY 1$$]) q;
SELECT * FROM asked();
-- A numeric that is a scaled integer in one leaf, and stored value by value in the other.
CREATE TABLE n (id int, x numeric) PARTITION BY RANGE (id);
CREATE TABLE n0 PARTITION OF n FOR VALUES FROM (0) TO (100);
CREATE TABLE n1 PARTITION OF n FOR VALUES FROM (100) TO (200);
INSERT INTO n SELECT i, CASE WHEN i < 100 THEN i % 7 - 3.5 WHEN i % 2 = 0 THEN 1.25 ELSE 3 END FROM generate_series(0, 199) i;
SELECT gpuvm.import('n');
SET gpuvm.force = on;
SET gpuvm.require = 'vm';
SELECT count(*), sum(id) FROM n;
SET gpuvm.require = 'any';
SELECT sum(x) FROM n;
RESET gpuvm.force;
-- A leaf's values that fit a dictionary of their own, but not one that goes on from another leaf's.
CREATE TABLE large (id int, t text) PARTITION BY RANGE (id);
CREATE TABLE large1 PARTITION OF large FOR VALUES FROM (0) TO (4000) WITH (autovacuum_enabled = off);
CREATE TABLE large2 PARTITION OF large FOR VALUES FROM (4000) TO (9000) WITH (autovacuum_enabled = off);
INSERT INTO large SELECT i, repeat('x', 7800) || i FROM generate_series(0, 8999) i;
VACUUM large;
SELECT gpuvm.import('large1'), gpuvm.import('large2');
INSERT INTO queries (query) VALUES ('SELECT right(t, 2), count(*) FROM large2 GROUP BY 1');
SELECT * FROM asked();
SELECT reason FROM gpuvm.why_not('SELECT right(t, 2), count(*) FROM large GROUP BY 1');
-- And one's that fit none.
INSERT INTO large SELECT 4000 + i % 5000, repeat('y', 7800) || i FROM generate_series(1, 4000) i;
VACUUM large2;
SELECT gpuvm.import('large2');
SELECT reason FROM gpuvm.why_not('SELECT right(t, 2), count(*) FROM large GROUP BY 1');
INSERT INTO queries (query) VALUES ($$SELECT id FROM large2 WHERE t LIKE '%77'$$);
SELECT * FROM asked();
DROP TABLE large;
SET client_min_messages = warning;
DROP SCHEMA partitions_text CASCADE;
