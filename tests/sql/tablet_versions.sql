-- Tablet tables that change: what is loaded is shared between versions, and only what is new is read. gpuvm.refresh() says how many rows that are.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SET gpuvm.force = on;
CREATE FOREIGN TABLE tv (id int, k int, s text, v numeric(10,2)) SERVER gpuvm;
CREATE TABLE tv_same (id int, k int, s text, v numeric(10,2));
CREATE PROCEDURE tv_both(statement text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE replace(statement, '@', 'tv');
	EXECUTE replace(statement, '@', 'tv_same');
END$$;
-- rows that only one of the two has: on the machine, and row by row
CREATE FUNCTION tv_differences() RETURNS TABLE (on_machine bigint, row_by_row bigint) LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL gpuvm.require = vm;
	CREATE TEMPORARY TABLE tv_seen ON COMMIT DROP AS SELECT id, k, s, v FROM tv WHERE v IS NOT NULL OR id IS NOT NULL;
	SET LOCAL gpuvm.require = 'any';
	on_machine := (SELECT coalesce(sum(abs(n)), 0) FROM (SELECT sum(sign) AS n FROM (SELECT *, 1 AS sign FROM tv_seen UNION ALL SELECT *, -1 FROM tv_same) u GROUP BY id, k, s, v) g);
	SET LOCAL gpuvm.enabled = off;
	row_by_row := (SELECT coalesce(sum(abs(n)), 0) FROM (SELECT sum(sign) AS n FROM (SELECT *, 1 AS sign FROM tv UNION ALL SELECT *, -1 FROM tv_same) u GROUP BY id, k, s, v) g);
	SET LOCAL gpuvm.enabled = on;
	RETURN NEXT;
END$$;
CALL tv_both('INSERT INTO @ SELECT i, i % 10, ''s'' || i % 100, i * 0.25 FROM generate_series(1, 140000) i');
-- small tablets in memory: stored ones lie in several
SET gpuvm.tablet_size = '1MB';
SELECT gpuvm.import('tv');
SELECT gpuvm.refresh('tv');

-- what is added
CALL tv_both('INSERT INTO @ SELECT i, i % 10, ''new '' || i % 3, i FROM generate_series(140001, 140010) i');
SELECT gpuvm.refresh('tv');
SELECT * FROM tv_differences();
-- what is deleted is masked
CALL tv_both('DELETE FROM @ WHERE id BETWEEN 65000 AND 66000 OR id % 5000 = 1');
SELECT gpuvm.refresh('tv');
SELECT * FROM tv_differences();
SELECT rows FROM gpuvm.tables WHERE relation = 'tv'::regclass;
-- both; a few rows are not a tablet for ever
CALL tv_both('UPDATE @ SET s = s || ''!'', v = v + 1 WHERE id % 10000 = 7');
SELECT gpuvm.refresh('tv');
SELECT * FROM tv_differences();
DO $$ BEGIN
	FOR i IN 1 .. 30 LOOP
		CALL tv_both(format('INSERT INTO @ VALUES (%s, 1, ''x'', 1), (%s, 2, ''y'', 2)', -i, -i));
		PERFORM gpuvm.refresh('tv');
	END LOOP;
END $$;
SELECT count(DISTINCT tablet) < 5 AS few FROM gpuvm.tablets WHERE relation = 'tv'::regclass;
SELECT * FROM tv_differences();
-- an aggregate, a join and a row by row unit over masked rows
SET gpuvm.require = vm;
SELECT k, count(*), sum(v), min(id) FROM tv GROUP BY k ORDER BY k LIMIT 3;
SELECT count(*) FROM tv a JOIN tv b ON a.id = b.id WHERE b.id BETWEEN 64990 AND 66010;
RESET gpuvm.require;
SELECT count(*), sum(v / (65500 - id)) FROM tv WHERE id BETWEEN 64000 AND 67000;

-- a transaction's own changes, and what it takes back
BEGIN;
DELETE FROM tv WHERE id < 1000;
INSERT INTO tv VALUES (400000, 1, 'mine', 1);
SELECT gpuvm.refresh('tv'), (SELECT count(*) FROM tv WHERE id < 1000), (SELECT count(*) FROM tv WHERE id = 400000);
SAVEPOINT s;
DELETE FROM tv WHERE id BETWEEN 1000 AND 1999;
SELECT gpuvm.refresh('tv'), (SELECT count(*) FROM tv WHERE id < 2000 AND id > 0);
ROLLBACK TO s;
SELECT gpuvm.refresh('tv'), (SELECT count(*) FROM tv WHERE id < 2000 AND id > 0);
ROLLBACK;
SELECT gpuvm.refresh('tv');
SELECT * FROM tv_differences();

-- a tablet that has lost a good part is read again, from where its rows are
CALL tv_both('DELETE FROM @ WHERE id BETWEEN 1 AND 40000 AND id % 2 = 0');
SELECT gpuvm.refresh('tv') BETWEEN 1 AND 100000 AS part;
SELECT * FROM tv_differences();
-- a value that does not fit a column's form: everything is loaded, in another one
ALTER FOREIGN TABLE tv ALTER v TYPE numeric;
ALTER TABLE tv_same ALTER v TYPE numeric;
SELECT gpuvm.refresh('tv') > 110000 AS everything;
CALL tv_both('INSERT INTO @ VALUES (500000, 1, ''wide'', 1.12345)');
SELECT gpuvm.refresh('tv') > 110000 AS everything;
SELECT * FROM tv_differences();
-- most is gone
CALL tv_both('DELETE FROM @ WHERE id > 70000');
SELECT * FROM tv_differences();
TRUNCATE tv, tv_same;
SELECT * FROM tv_differences();
CALL tv_both('INSERT INTO @ VALUES (1, 1, ''again'', 1)');
SELECT * FROM tv_differences();
DROP FOREIGN TABLE tv;
-- nulls, few bytes, and of each stored tablet one row is left, for which a tablet has no room beside another one's
CREATE FOREIGN TABLE tv (b int8) SERVER gpuvm;
DO $$ BEGIN
	FOR i IN 1 .. 200 LOOP
		INSERT INTO tv SELECT NULL FROM generate_series(1, 8192);
		COMMIT;
	END LOOP;
END $$;
DELETE FROM tv WHERE ctid::text NOT LIKE '%,7)';
SET gpuvm.tablet_size = '64kB';
SELECT gpuvm.import('tv');
SELECT tablets, rows FROM gpuvm.tables WHERE relation = 'tv'::regclass;
SELECT count(*), count(b) FROM tv;
DROP FOREIGN TABLE tv;
DROP TABLE tv_same;
DROP PROCEDURE tv_both;
DROP FUNCTION tv_differences;
