-- timetz, interval, inet, cidr, macaddr, macaddr8, bit and varbit of so many values that no dictionary holds them: compared with constants and each other, and sorted by. Against PostgreSQL's answers.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA value_order;
SET search_path = value_order;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/ask_many.sql
\i tests/sql/include/vary.sql
\i tests/sql/include/ask_rows.sql
\set ECHO all

-- Values that are equal in a way and differ in another: zones of one instant, networks in each other, bits that begin alike, months and days.
CREATE TABLE t (id int, d int, tz timetz, tz2 timetz, iv interval, iv2 interval, ip inet, ip2 inet, net cidr, mac macaddr, mac2 macaddr, mac8 macaddr8, b bit(12), b2 bit(12), v varbit, v2 varbit) WITH (autovacuum_enabled = off);
SELECT setseed(0.5);
INSERT INTO t SELECT i, i % 7,
	(lpad((i * 7 % 25)::text, 2, '0') || CASE WHEN i * 7 % 25 = 24 THEN ':00:00' ELSE ':' || lpad((i % 60)::text, 2, '0') || ':00.000001' END || (ARRAY['+00', '-01', '+05:30', '-15:59', '+15:59', '+00:00:01'])[1 + i % 6])::timetz,
	((i % 24) || ':00:00' || (ARRAY['+00', '-01', '+01'])[1 + i % 3])::timetz,
	make_interval(months => (random() * 5 - 2)::int, days => (random() * 80 - 40)::int, secs => round((random() * 400000 - 200000)::numeric, (i % 3) * 3)),
	(ARRAY['1 mon', '30 days', '720:00:00', '29 days 24:00:00', '-1 mon', '-30 days', '178000000 years', '-178000000 years', '0', '1 year -12 mons', '-00:00:00.000001', '2562047788:00:54.775807', '-2562047788:00:54.775807'])[1 + i % 13]::interval,
	set_masklen(CASE WHEN i % 3 > 0 THEN ('10.' || i % 4 || '.' || i % 5 * 60 || '.' || (random() * 255)::int)::inet ELSE ('2001:db8:' || to_hex(i % 9) || '::' || to_hex(i % 300))::inet END, (random() * CASE WHEN i % 3 > 0 THEN 32 ELSE 128 END)::int),
	(ARRAY['10.0.0.0/8', '10.0.0.0/16', '10.0.0.0', '10.0.0.1/8', '::/0', '0.0.0.0/0', '::a00:0', '255.255.255.255', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '10.128.0.0/9', '10.128.0.0/10', '2001:db8::1/64', '2001:db8::/65'])[1 + i % 13]::inet,
	network(set_masklen(('10.' || i % 4 || '.' || i % 5 * 60 || '.0')::inet, 8 + i % 25)),
	('08:00:2b:' || lpad(to_hex(i % 256), 2, '0') || ':02:' || lpad(to_hex(i * 3 % 256), 2, '0'))::macaddr, (ARRAY['00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff', '08:00:2b:01:02:03', '7f:ff:ff:80:00:00', '80:00:00:7f:ff:ff'])[1 + i % 5]::macaddr,
	('08:00:2b:' || lpad(to_hex(i % 256), 2, '0') || ':02:' || lpad(to_hex(i * 3 % 256), 2, '0') || ':ff:80')::macaddr8,
	(i * 37 % 4096)::bit(12), (i * i % 4096)::bit(12), substring((i * 2654435761 % 281474976710656)::bit(48), 1, (random() * 48)::int)::varbit, (ARRAY['', '0', '1', '00', '10', '100000000', '10000000', '1000000000000000', '11111111'])[1 + i % 9]::varbit
	FROM generate_series(1, 3000) i;
UPDATE t SET tz = NULL, iv = NULL, ip = NULL, net = NULL, mac = NULL, b = NULL, v = NULL WHERE id % 17 = 0;
VACUUM t;
SELECT vary('t', 'tz', 'tz2', 'iv', 'iv2', 'ip', 'ip2', 'net', 'mac', 'mac2', 'mac8', 'b', 'b2', 'v', 'v2');
SELECT gpuvm.import('t');
CREATE FUNCTION value_of(c text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE format('SELECT (SELECT quote_literal(%1$s) || ''::'' || format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = ''t''::regclass AND attname = %1$L) FROM t WHERE id IN (5, 6, 7, 8, 9, 1000, 2000)', c); END $$;
SET gpuvm.enabled = off;
CREATE TEMP TABLE pairs AS SELECT c, v, row_number() OVER () AS n FROM unnest(ARRAY['tz', 'tz2', 'iv', 'iv2', 'ip', 'ip2', 'net', 'mac', 'mac2', 'mac8', 'b', 'b2', 'v', 'v2']) c, value_of(c) v;
RESET gpuvm.enabled;

-- With constants, and with each other.
INSERT INTO queries (query) SELECT format('SELECT id FROM t WHERE %s %s %s', c, op, v) FROM pairs, unnest(ARRAY['=', '<', '>=']) op;
INSERT INTO queries (query) SELECT format('SELECT id FROM t WHERE %s', CASE n % 5 WHEN 0 THEN format('%s <> %s', c, v) WHEN 1 THEN format('%s > %s', v, c) WHEN 2 THEN format('%s IN (%s, NULL)', c, v) WHEN 3 THEN format('%s <= %s', c, v) ELSE format('%s IS DISTINCT FROM %s', c, v) END) FROM pairs;
INSERT INTO queries (query) SELECT format('SELECT id FROM t WHERE %s %s %s', a, op, b) FROM (VALUES ('tz', 'tz2'), ('iv', 'iv2'), ('ip', 'ip2'), ('net', 'ip'), ('ip2', 'net'), ('mac', 'mac2'), ('b', 'b2'), ('v', 'v2')) p (a, b), unnest(ARRAY['<', '<=', '>', '>=', '=', '<>']) op;
INSERT INTO queries (query) SELECT 'SELECT id FROM t WHERE ' || q FROM unnest(ARRAY['tz BETWEEN ''10:00+00'' AND ''12:00-01''', 'iv > ''1 day'' AND iv < ''1 mon''', 'ip >= ''10.1.0.0/16'' OR d = 3', 'iv2 = ''30 days''', 'iv2 IN (''1 mon'', ''0'')', 'ip2 > ''10.0.0.0/8''::cidr', 'mac8 < macaddr8 ''08:00:2b:10:00:00:00:00''', 'b > B''100000000000''', 'v = B''10''', 'v2 > B''1''']) q;
SELECT * FROM asked();

-- In joins.
INSERT INTO queries (query) SELECT format('SELECT a.id, b.id FROM t a JOIN t b ON a.%s WHERE a.id < 40 AND b.id < 1500', q) FROM unnest(ARRAY['tz = b.tz2 AND a.ip < b.ip2', 'ip2 = b.ip2 AND a.v <= b.v2', 'net = b.ip', 'b = b.b2 AND a.tz2 > b.tz2', 'd = b.d AND a.iv = b.iv2', 'd = b.d AND a.iv2 < b.iv2 AND a.mac > b.mac2']) q;
SELECT * FROM asked();

-- In order, row by row, and the least and greatest. Devices leave it to the CPU.
SET gpuvm.device = cpu;
INSERT INTO queries (query) SELECT format('SELECT id FROM t ORDER BY %s, id', c) FROM (SELECT DISTINCT c FROM pairs) c;
INSERT INTO queries (query) SELECT format('SELECT id FROM t WHERE d < 5 ORDER BY d, %s DESC NULLS LAST, id LIMIT 300', c) FROM (SELECT DISTINCT c FROM pairs) c;
INSERT INTO queries (query) SELECT format('SELECT id FROM t ORDER BY %s %s, id LIMIT %s', c, CASE WHEN n % 2 = 0 THEN 'DESC' END, n) FROM (SELECT DISTINCT c FROM pairs) c, unnest(ARRAY[1, 40, 300, 777, 1234, 2000]) n;
INSERT INTO queries (query) SELECT format('SELECT %1$s, count(*) FROM t GROUP BY %1$s ORDER BY %1$s', c) FROM unnest(ARRAY['tz2', 'ip2', 'net', 'mac2', 'b2', 'v2']) c;
SELECT * FROM asked_rows();
INSERT INTO queries (query) SELECT format('SELECT d, min(%1$s), max(%1$s) FROM t GROUP BY d', c) FROM unnest(ARRAY['tz', 'tz2', 'ip', 'ip2', 'net']) c;
INSERT INTO queries (query) SELECT format('SELECT min(%1$s), max(%1$s) FILTER (WHERE d = 2) FROM t', c) FROM unnest(ARRAY['tz', 'tz2', 'ip', 'ip2', 'net']) c;
SELECT * FROM asked();

-- Parameters, and rows that changed.
PREPARE between_two(inet, inet, interval) AS SELECT count(*), min(ip) FROM t WHERE ip BETWEEN $1 AND $2 AND iv < $3;
SET plan_cache_mode = force_generic_plan;
SET gpuvm.require = vm;
EXECUTE between_two('10.0.0.0/8', '10.2.0.0', '1 mon');
EXECUTE between_two('2001:db8::/32', 'ffff::', '100 days');
EXECUTE between_two(NULL, '10.2.0.0', '1 mon');
RESET gpuvm.require;
SET gpuvm.enabled = off;
EXECUTE between_two('10.0.0.0/8', '10.2.0.0', '1 mon');
EXECUTE between_two('2001:db8::/32', 'ffff::', '100 days');
RESET gpuvm.enabled;
RESET plan_cache_mode;
UPDATE t SET ip = '10.9.9.9', tz = '23:59:59.999999-15:59', v = '1' WHERE id % 400 = 3;
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['id FROM t WHERE ip = ''10.9.9.9''', 'max(tz), min(ip) FROM t', 'id FROM t WHERE tz > ''23:59-15:59''']) q;
SELECT * FROM asked();
INSERT INTO queries (query) VALUES ('SELECT id FROM t WHERE v <= B''1'' ORDER BY v, id'), ('SELECT id FROM t ORDER BY ip DESC, id LIMIT 30'), ('SELECT id FROM t ORDER BY tz DESC, id LIMIT 30');
SELECT * FROM asked_rows();

-- What stays with PostgreSQL, and why: intervals that are equal without being the same.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['min(iv) FROM t', 'iv, count(*) FROM t GROUP BY iv', 'id FROM t WHERE ip << ''10.0.0.0/8''']) q;
SELECT * FROM asked();

SET client_min_messages = warning;
DROP SCHEMA value_order CASCADE;
