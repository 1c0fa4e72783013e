-- Row security, privileges and ownership hold on the virtual machine as they do elsewhere.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
SELECT replace(current_setting('gpuvm.device'), 'auto', 'vm') AS device \gset
CREATE ROLE regress_gpuvm_owner;
CREATE ROLE regress_gpuvm_alice;
CREATE ROLE regress_gpuvm_bob;
CREATE SCHEMA security AUTHORIZATION regress_gpuvm_owner;
GRANT USAGE ON SCHEMA security TO PUBLIC;
SET search_path = security;
SET gpuvm.force = on;
SET gpuvm.require = :device;

SET ROLE regress_gpuvm_owner;
CREATE TABLE accounts (id int, owner_id int, secret int8, balance float8) WITH (autovacuum_enabled = off);
INSERT INTO accounts SELECT i, i % 3, i * 1000, i * 0.5 FROM generate_series(1, 900) i;
SELECT gpuvm.import('accounts');
GRANT SELECT ON accounts TO regress_gpuvm_alice;
GRANT SELECT (id, owner_id) ON accounts TO regress_gpuvm_bob;

-- Columns.
SET ROLE regress_gpuvm_bob;
SELECT owner_id, count(*), sum(id) FROM accounts GROUP BY owner_id ORDER BY owner_id;
SELECT sum(secret) FROM accounts;
SELECT count(*) FROM accounts WHERE secret > 5;
SELECT id FROM accounts WHERE secret = 1000;
SELECT count(*) FROM accounts;
SELECT relation, rows FROM gpuvm.tables;
-- What a column's statistics would tell is hidden with the column.
SELECT "column", nulls, min, max, data_bytes IS NOT NULL AS size FROM gpuvm.tablets ORDER BY "column" COLLATE "C";
SET ROLE regress_gpuvm_alice;
SELECT sum(secret) FROM accounts WHERE id <= 3;
SELECT "column", nulls, min, max, data_bytes IS NOT NULL AS size FROM gpuvm.tablets ORDER BY "column" COLLATE "C";

-- Row security: for others, not for the owner unless FORCE says so.
SET ROLE regress_gpuvm_owner;
ALTER TABLE accounts ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON accounts USING (owner_id = 1 AND id > 10);
SELECT count(*), sum(secret) FROM accounts;
SET ROLE regress_gpuvm_alice;
EXPLAIN (COSTS OFF) SELECT count(*), sum(secret) FROM accounts;
SELECT count(*), sum(secret) FROM accounts;
SELECT owner_id, count(*) FROM accounts GROUP BY owner_id;
SELECT * FROM accounts WHERE id < 20 ORDER BY id;
SELECT "column", nulls, min, max FROM gpuvm.tablets ORDER BY "column" COLLATE "C";
-- A condition of the query is evaluated on rows that the policy lets through, and on no others.
SELECT count(*) FROM accounts WHERE 1000 / (id - 3) IS NOT NULL;
SELECT count(*) FROM accounts WHERE 1000 / (id - 13) IS NOT NULL;
SET row_security = off;
SELECT count(*) FROM accounts;
RESET row_security;
SET ROLE regress_gpuvm_owner;
SELECT min(owner_id), max(owner_id) FROM accounts;
ALTER TABLE accounts FORCE ROW LEVEL SECURITY;
SELECT min(owner_id), max(owner_id), count(*) FROM accounts;
SELECT "column", min, max FROM gpuvm.tablets ORDER BY "column" COLLATE "C";
ALTER TABLE accounts NO FORCE ROW LEVEL SECURITY;
-- A policy that the VM cannot evaluate leaves the table to PostgreSQL.
CREATE POLICY named ON accounts TO regress_gpuvm_alice USING (cosd(owner_id) < 1.5 AND owner_id = 2);
SET ROLE regress_gpuvm_alice;
SELECT count(*) FROM accounts;
RESET gpuvm.require;
SELECT count(*) FROM accounts;
SELECT owner_id, count(*) FROM accounts GROUP BY owner_id ORDER BY 1;
SET gpuvm.require = :device;
SET ROLE regress_gpuvm_owner;
DROP POLICY named ON accounts;
-- One that depends on who asks is evaluated when execution starts.
CREATE POLICY named ON accounts TO regress_gpuvm_alice USING (current_user = 'regress_gpuvm_alice' AND owner_id = 2);
SET ROLE regress_gpuvm_alice;
SELECT owner_id, count(*) FROM accounts GROUP BY owner_id ORDER BY 1;
SET ROLE regress_gpuvm_owner;
DROP POLICY named ON accounts;
-- Plans are made again for another role.
PREPARE visible AS SELECT count(*) FROM accounts;
SET plan_cache_mode = force_generic_plan;
EXECUTE visible;
SET ROLE regress_gpuvm_alice;
EXECUTE visible;
SET ROLE regress_gpuvm_owner;
EXECUTE visible;
DEALLOCATE visible;
DROP POLICY mine ON accounts;
SET ROLE regress_gpuvm_alice;
SELECT count(*), sum(secret) FROM accounts;
SET ROLE regress_gpuvm_owner;
ALTER TABLE accounts DISABLE ROW LEVEL SECURITY;

-- A security barrier keeps a leaky function away from the rows that it hides.
CREATE VIEW visible_accounts WITH (security_barrier) AS SELECT * FROM accounts WHERE owner_id = 1 AND id < 10;
CREATE VIEW open_accounts AS SELECT * FROM accounts WHERE owner_id = 1 AND id < 10;
GRANT SELECT ON visible_accounts, open_accounts TO regress_gpuvm_bob;
CREATE FUNCTION leak(int8) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN RAISE NOTICE 'leaked %', $1; RETURN true; END $$;
GRANT EXECUTE ON FUNCTION leak(int8) TO PUBLIC;
SET ROLE regress_gpuvm_bob;
RESET gpuvm.require;
SELECT id FROM visible_accounts WHERE leak(secret) ORDER BY id;
SELECT count(*) FROM visible_accounts WHERE leak(secret);
SET gpuvm.require = :device;
SELECT sum(secret) FROM visible_accounts;
SELECT count(*) FROM visible_accounts WHERE 1000 / (secret - 3000) > -100000;
SELECT count(*) FROM visible_accounts WHERE 1000 / (secret - 4000) > -100000;
SELECT sum(secret) FROM open_accounts WHERE id > 2;

-- A function that may not be executed, although the VM would not call it.
RESET ROLE;
REVOKE EXECUTE ON FUNCTION pg_catalog.int4pl(int, int), pg_catalog.int4_sum(int8, int4), pg_catalog.sum(int4) FROM PUBLIC;
SET ROLE regress_gpuvm_alice;
SELECT count(*) FROM accounts WHERE id + 1 > 5;
SELECT sum(id) FROM accounts;
SELECT count(*) FROM accounts WHERE id - 1 > 5;
RESET ROLE;
GRANT EXECUTE ON FUNCTION pg_catalog.int4pl(int, int), pg_catalog.int4_sum(int8, int4), pg_catalog.sum(int4) TO PUBLIC;
SET ROLE regress_gpuvm_alice;
SELECT count(*) FROM accounts WHERE id + 1 > 5;
SELECT sum(id) FROM accounts;

-- Rows of changed blocks are read under the same rules as those in tablets.
SET ROLE regress_gpuvm_owner;
CREATE FUNCTION figures() RETURNS TABLE (figure text) LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT sum(secret) FROM security.accounts' LOOP
		figure := substring(line FROM '(Delta Blocks|Delta Rows|Blocks Served|VM Rows In)');
		IF figure IS NOT NULL THEN
			RETURN NEXT;
		END IF;
	END LOOP;
END $$;
INSERT INTO accounts VALUES (901, 1, 5000000, 1), (902, 2, 6000000, 1);
RESET gpuvm.require;
UPDATE accounts SET secret = secret + 1 WHERE id IN (4, 5);
SET gpuvm.require = :device;
ALTER TABLE accounts ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON accounts USING (owner_id = 1);
SELECT count(*), sum(secret) FROM accounts;
SELECT gpuvm.import('accounts', vacuum => false);
SET ROLE regress_gpuvm_alice;
SELECT count(*), sum(secret), max(secret) FROM accounts;
SELECT id, secret FROM accounts WHERE id < 8 OR id > 895 ORDER BY id;
-- the row that would divide by zero is in a changed block, and hidden
SELECT count(*) FROM accounts WHERE 1000 / (secret - 6000000) IS NOT NULL;
SELECT count(*) FROM accounts WHERE 1000 / (secret - 5000000) IS NOT NULL;
-- how many rows a changed block has is for those who may read the table
SELECT * FROM figures();
RESET gpuvm.require;
SELECT id FROM accounts WHERE security.leak(secret) AND id IN (4, 5, 901, 902);
SET gpuvm.require = :device;
SET ROLE regress_gpuvm_bob;
SELECT sum(secret) FROM accounts;
SELECT count(*), sum(id) FROM accounts WHERE id IN (4, 5, 901, 902);
RESET gpuvm.require;
SELECT id FROM visible_accounts WHERE leak(secret) ORDER BY id;
SET gpuvm.require = :device;
SET ROLE regress_gpuvm_owner;
DROP POLICY mine ON accounts;
ALTER TABLE accounts DISABLE ROW LEVEL SECURITY;
SET ROLE regress_gpuvm_alice;
SELECT * FROM figures();

-- Of equal values that are not the same those show that are seen, and the programs are the same whatever a policy hides: nobody may learn that way of a hidden one.
SET ROLE regress_gpuvm_owner;
CREATE TABLE waits (owner text, span interval, word bpchar) WITH (autovacuum_enabled = off);
INSERT INTO waits SELECT CASE i % 2 WHEN 0 THEN 'alice' ELSE 'bob' END, i % 5 * interval '1 day', 'w' || i % 3 FROM generate_series(1, 900) i;
INSERT INTO waits VALUES ('bob', '24:00:00', 'secret');
SELECT gpuvm.import('waits');
CREATE POLICY own ON waits USING (owner = 'alice');
GRANT SELECT, INSERT ON waits TO regress_gpuvm_alice;
RESET gpuvm.require;
SELECT count(*) FROM gpuvm.why_not('SELECT word, min(span) FROM waits WHERE word < ''x'' GROUP BY word');
ALTER TABLE waits ENABLE ROW LEVEL SECURITY;
SET ROLE regress_gpuvm_alice;
SELECT q AS query, reason FROM unnest(ARRAY['word, count(*) FROM waits GROUP BY word', 'DISTINCT span FROM waits', 'min(span) FROM waits', 'count(DISTINCT word) FROM waits']) q LEFT JOIN LATERAL gpuvm.why_not('SELECT ' || q) ON true;
SELECT word, count(*) FROM waits GROUP BY word ORDER BY word;
SET gpuvm.require = :device;
SELECT owner, count(*), max(owner), sum(span) FILTER (WHERE span > '1 day') FROM waits GROUP BY owner;
SELECT span, count(*), min(span), max(span) FROM waits GROUP BY span ORDER BY span;
SELECT v.made AS programs FROM (SELECT count(*) FILTER (WHERE opcode = 'Parallel') AS made FROM gpuvm.disassemble('SELECT span, max(word) FROM waits GROUP BY span')) v;
RESET ROLE;
DROP TABLE waits;
SET ROLE regress_gpuvm_alice;

-- Privileges are those of the time of execution.
PREPARE balance AS SELECT sum(balance) FROM accounts WHERE id < 5;
EXECUTE balance;
SET ROLE regress_gpuvm_owner;
REVOKE SELECT ON accounts FROM regress_gpuvm_alice;
SET ROLE regress_gpuvm_alice;
EXECUTE balance;
DEALLOCATE balance;
SELECT count(*) FROM accounts;
-- Nobody sees that other people's tables are imported, or may import, refresh or release them.
SELECT * FROM gpuvm.tables;
SELECT * FROM gpuvm.tablets;
SELECT gpuvm.import('accounts');
SELECT gpuvm.refresh('accounts');
SELECT gpuvm.release('accounts');
SELECT gpuvm.import('security.accounts', ARRAY['secret']);
-- Views run with their owner's privileges, and with their owner's only.
SET ROLE regress_gpuvm_owner;
GRANT SELECT ON visible_accounts TO regress_gpuvm_alice;
SET ROLE regress_gpuvm_alice;
SELECT count(*), sum(secret) FROM visible_accounts;
-- A function with its definer's rights imports for its definer.
SET ROLE regress_gpuvm_owner;
CREATE FUNCTION import_for_me() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$ SELECT gpuvm.import('security.accounts') $$;
SET ROLE regress_gpuvm_alice;
SELECT security.import_for_me();

RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA security CASCADE;
DROP ROLE regress_gpuvm_owner, regress_gpuvm_alice, regress_gpuvm_bob;
