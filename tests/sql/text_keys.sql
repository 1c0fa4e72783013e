-- Columns of values that no dictionary holds as keys: of groups, of DISTINCT, of joins; and compared with each other. Against PostgreSQL's answers.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuvm;
RESET client_min_messages;
CREATE SCHEMA text_keys;
SET search_path = text_keys;
SET gpuvm.force = on;

\set ECHO none
\i tests/sql/include/ask_many.sql
\i tests/sql/include/vary.sql
\set ECHO all

-- Equal prefixes, empty values, nulls, values in one column only, long ones, and such as have a long header.
CREATE TABLE urls (id int, url text, host varchar(40), code char(8), raw bytea, u uuid, n name, d int, k text, cc text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO urls SELECT i, CASE WHEN i % 17 = 0 THEN NULL WHEN i % 19 = 0 THEN '' ELSE 'https://example.org/a/common/path/' || i * 7 % 900 || CASE i % 5 WHEN 0 THEN repeat('/x', 100) WHEN 1 THEN ' ' ELSE '' END END,
	CASE WHEN i % 11 > 0 THEN 'host' || i % 300 END, (ARRAY['a', 'b  ', 'ab', '', NULL])[1 + i % 5], CASE WHEN i % 7 > 0 THEN decode(md5((i % 500)::text), 'hex') END, CASE WHEN i % 9 > 0 THEN md5((i % 600)::text)::uuid END, 'n' || i % 250, i % 4, 'k' || i % 5,
	(ARRAY['é', 'e' || chr(769), 'E', 'e'])[1 + i % 4] || i % 50 FROM generate_series(1, 7000) i;
SELECT vary('urls', 'url', 'host', 'code', 'raw', 'u', 'n', 'cc');
SELECT gpuvm.import('urls');

-- Groups.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['url, count(*) FROM urls GROUP BY url', 'url, count(*), sum(id), min(d), avg(d), count(host) FROM urls GROUP BY url', 'host, count(*) FROM urls GROUP BY host', 'code, count(*) FROM urls GROUP BY code', 'raw, count(*) FROM urls GROUP BY raw',
	'u, max(id) FROM urls GROUP BY u', 'n, count(*) FROM urls GROUP BY n', 'cc, count(*) FROM urls GROUP BY cc', 'url, host, count(*) FROM urls GROUP BY url, host', 'd, url, count(*) FROM urls GROUP BY d, url', 'k, host, d, count(*) FROM urls GROUP BY k, host, d', 'url, u, raw, sum(d) FROM urls GROUP BY url, u, raw',
	'url FROM urls GROUP BY url', 'upper(url), length(url), count(*) FROM urls GROUP BY url', 'url, count(*) FROM urls WHERE d = 2 AND id > 100 GROUP BY url', 'url, count(*) FROM urls WHERE url LIKE ''%9%'' GROUP BY url', 'url, count(*) FROM urls GROUP BY url HAVING count(*) > 20', 'url, count(*) FROM urls WHERE false GROUP BY url',
	'url, count(*) FILTER (WHERE d = 1), sum(id) FILTER (WHERE host IS NULL) FROM urls GROUP BY url', 'url, d, count(*) FROM urls GROUP BY ROLLUP (url, d)', 'host, k, count(*), grouping(host, k) FROM urls GROUP BY CUBE (host, k)', 'url, code, count(*) FROM urls GROUP BY GROUPING SETS ((url), (code), ())',
	'url || ''x'', count(*) FROM urls GROUP BY url', 'host::text, count(*) FROM urls GROUP BY host::text', 'count(*) FROM (SELECT url FROM urls GROUP BY url) s', 'url COLLATE "C", count(*) FROM urls GROUP BY url COLLATE "C"']) q;
SELECT * FROM asked();
-- DISTINCT, of rows and of arguments.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['DISTINCT url FROM urls', 'DISTINCT u, host FROM urls', 'DISTINCT url, d FROM urls WHERE k = ''k1''', 'count(DISTINCT url) FROM urls', 'count(DISTINCT host), count(DISTINCT u), count(DISTINCT raw), count(*) FROM urls', 'd, count(DISTINCT url) FROM urls GROUP BY d',
	'k, count(DISTINCT url) FILTER (WHERE d > 1), count(DISTINCT host), sum(id) FROM urls GROUP BY k', 'url, count(DISTINCT d) FROM urls GROUP BY url', 'url, count(*), count(DISTINCT host), sum(DISTINCT d) FROM urls GROUP BY url', 'url, host, count(DISTINCT u), count(*) FROM urls GROUP BY url, host', 'u, count(DISTINCT url), count(*) FROM urls GROUP BY u',
	'host, d, count(DISTINCT url), max(id) FROM urls GROUP BY ROLLUP (host, d)', 'count(DISTINCT url) FROM urls WHERE url IS NULL', 'raw, count(DISTINCT cc) FILTER (WHERE d = 1), count(*) FROM urls GROUP BY raw']) q;
SELECT * FROM asked();
-- Compared with each other.
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['id FROM urls WHERE url = host', 'id FROM urls WHERE cc = url OR d = 3 AND cc <> url', 'id FROM urls WHERE url <> host', 'id FROM urls WHERE url IS DISTINCT FROM host', 'id FROM urls WHERE url IS NOT DISTINCT FROM host', 'count(*) FILTER (WHERE url = host), count(*) FROM urls', 'url = cc, count(*) FROM urls GROUP BY 1']) q;
SELECT * FROM asked();

-- Joins.
CREATE TABLE visits (id int, page text, host text, who uuid, code char(8), raw bytea, x char(3)) WITH (autovacuum_enabled = off);
INSERT INTO visits SELECT i, CASE WHEN i % 13 > 0 THEN 'https://example.org/a/common/path/' || i % 1200 || CASE i % 3 WHEN 0 THEN ' ' ELSE '' END WHEN i % 2 = 0 THEN '' END, 'host' || i % 400, md5((i % 800)::text)::uuid, (ARRAY['a', 'b', 'AB', ''])[1 + i % 4], decode(md5((i % 700)::text), 'hex'), 'a' FROM generate_series(1, 3000) i;
SELECT vary('visits', 'page', 'host', 'who', 'code', 'raw', 'x');
SELECT gpuvm.import('visits');
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['count(*) FROM urls JOIN visits ON page = url', 'v.id, l.id, page, url FROM visits v JOIN urls l ON page = url WHERE l.d = 1', 'v.id, l.id FROM visits v LEFT JOIN urls l ON page = url AND l.d = 1', 'count(*), count(l.id), count(v.id) FROM visits v FULL JOIN urls l ON page = url', 'l.id FROM urls l WHERE EXISTS (SELECT 1 FROM visits WHERE page = l.url)',
	'v.id FROM visits v WHERE NOT EXISTS (SELECT 1 FROM urls WHERE page = url)', 'id FROM urls WHERE url IN (SELECT page FROM visits)', 'count(*) FROM urls l JOIN visits v ON v.host = l.host AND v.who = l.u', 'count(*) FROM urls l JOIN visits v ON v.raw = l.raw AND l.d = v.id % 4', 'count(*) FROM urls l JOIN visits v USING (code) WHERE l.id < 200', 'page, count(*), sum(l.id) FROM visits v JOIN urls l ON page = url GROUP BY page',
	'l.k, v.host, count(*) FROM visits v JOIN urls l ON page = url GROUP BY l.k, v.host', 'l.d, count(DISTINCT page), count(DISTINCT v.host) FROM visits v JOIN urls l ON page = url GROUP BY l.d', 'a.id, b.id FROM visits a JOIN visits b ON a.page = b.page AND a.id < b.id', 'count(*) FROM visits v JOIN urls l ON v.id = l.id AND page <> url', 'count(*) FROM visits v JOIN urls l ON v.id = l.id WHERE page = url OR v.host = l.host',
	'count(*) FROM visits v JOIN urls l ON page = url JOIN visits w ON w.host = l.host', 'l.host, max(v.id) FROM urls l LEFT JOIN visits v ON v.page = l.url GROUP BY l.host', 'count(*) FROM visits v JOIN urls l ON v.id < 20 AND l.id < 30 AND (page <> url OR v.host = l.host)']) q;
SELECT * FROM asked();

-- What stays with PostgreSQL, and why: other forms, other lengths, values that may be equal without being the same.
CREATE COLLATION unsure (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE others (id int, b bpchar, ns text COLLATE unsure, m numeric, j jsonb, v interval) WITH (autovacuum_enabled = off);
INSERT INTO others SELECT i, 'a' || repeat(' ', i % 3), (ARRAY['a', 'A'])[1 + i % 2], (i % 10) / 3.0, jsonb_build_object('a', i % 10), i % 10 * '1 day'::interval FROM generate_series(1, 1000) i;
SELECT vary('others', 'b', 'ns', 'm', 'j', 'v');
SELECT gpuvm.import('others');
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['b, count(*) FROM others GROUP BY b', 'ns, count(*) FROM others GROUP BY ns', 'm, count(*) FROM others GROUP BY m', 'j, count(*) FROM others GROUP BY j', 'v, count(*) FROM others GROUP BY v', 'count(*) FROM others a JOIN others b ON a.ns = b.ns AND a.id = b.id', 'count(*) FROM urls l JOIN visits v ON v.x = l.code', 'count(*) FROM urls l JOIN urls m ON l.k = m.url',
	'count(*) FROM urls l JOIN urls m ON l.n = m.url', 'url || host, count(*) FROM urls GROUP BY url || host', 'id FROM urls WHERE url = k', 'id FROM urls WHERE url < host']) q;
SELECT query, (SELECT string_agg(DISTINCT left(reason, 80), '; ') FROM gpuvm.why_not(query)) AS reason FROM queries;
SELECT * FROM asked();

-- Changed blocks: values of a delta are in the job's memory, and several programs have a job each.
UPDATE urls SET url = url || '!' WHERE id % 900 = 3;
INSERT INTO urls SELECT 30000 + i, 'new ' || i % 20, 'newhost', 'n', '\x01', md5(i::text)::uuid, 'n', 5, 'k9', 'z' FROM generate_series(1, 300) i;
DELETE FROM urls WHERE id % 700 = 5;
INSERT INTO queries (query) SELECT 'SELECT ' || q FROM unnest(ARRAY['url, count(*) FROM urls GROUP BY url', 'DISTINCT url, host FROM urls', 'url, count(*), count(DISTINCT host), sum(DISTINCT d) FROM urls GROUP BY url', 'url, d, count(*), count(DISTINCT u) FROM urls GROUP BY CUBE (url, d)', 'count(*) FROM urls JOIN visits ON page = url', 'count(DISTINCT url) FROM urls', 'a.id, b.id FROM urls a JOIN urls b ON a.url = b.url AND a.id < b.id WHERE a.d > 3']) q;
SELECT * FROM asked();

-- While a cursor is at its groups, another query has the session's memory.
SET gpuvm.require = vm;
BEGIN;
DECLARE c CURSOR FOR SELECT url, count(*) FROM urls WHERE id > 30000 GROUP BY url;
FETCH 2 FROM c \g /dev/null
SELECT count(*) FROM (SELECT url FROM urls GROUP BY url) s;
SELECT count(*) FROM (SELECT DISTINCT host, page FROM visits) s;
CREATE TEMP TABLE seen (url text, n int8);
CREATE FUNCTION take(c refcursor) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	LOOP
		FETCH c INTO r;
		EXIT WHEN NOT FOUND;
		INSERT INTO seen VALUES (r.url, r.count);
	END LOOP;
END $$;
SELECT take('c');
-- one group has fewer rows, and may be among the two
SELECT count(*), min(n) >= 14 AND max(n) = 15 AS as_many, bool_and(url ~ '^new [0-9]+$') FROM seen;
COMMIT;
RESET gpuvm.require;

-- Of a megabyte each, alike but for their ends.
CREATE TABLE long (id int, t text) WITH (autovacuum_enabled = off);
ALTER TABLE long ALTER t SET STORAGE EXTERNAL;
INSERT INTO long SELECT i, repeat('x', 1000000) || i % 3 FROM generate_series(1, 12) i;
INSERT INTO long VALUES (20, repeat('x', 1000000)), (21, ''), (22, ''), (23, NULL);
SELECT gpuvm.import('long');
INSERT INTO queries (query) VALUES ('SELECT md5(t), count(*), sum(id) FROM long GROUP BY t'), ('SELECT count(DISTINCT t) FROM long'), ('SELECT a.id, b.id FROM long a JOIN long b ON a.t = b.t');
SELECT * FROM asked();

-- Several columns, in which no value comes twice, are of one table.
CREATE TABLE once (id int, a text, b varchar, c text) WITH (autovacuum_enabled = off);
INSERT INTO once SELECT i, 'a' || i, 'b' || i, 'c' || i FROM generate_series(1, 42) i;
SELECT vary('once', 'a', 'b', 'c');
SELECT gpuvm.import('once');
INSERT INTO queries (query) VALUES ('SELECT a, b, count(*) FROM once GROUP BY a, b'), ('SELECT DISTINCT a, b, c FROM once'), ('SELECT a, count(DISTINCT b), count(DISTINCT c) FROM once GROUP BY a'), ('SELECT count(*) FROM once x JOIN once y ON x.a = y.a AND x.b = y.b AND x.c = y.c');
SELECT * FROM asked();

-- Partitions.
CREATE TABLE parts (id int, t text) PARTITION BY RANGE (id);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts2 PARTITION OF parts FOR VALUES FROM (1000) TO (2000);
INSERT INTO parts SELECT i, CASE WHEN i % 9 > 0 THEN 'part ' || i % 100 END FROM generate_series(0, 1999) i;
SELECT vary('parts1', 't'), vary('parts2', 't');
SELECT gpuvm.import('parts1'), gpuvm.import('parts2');
INSERT INTO queries (query) VALUES ('SELECT t, count(*), sum(id) FROM parts GROUP BY t'), ('SELECT count(DISTINCT t) FROM parts'), ('SELECT a.id, b.id FROM parts a JOIN parts b ON a.t = b.t AND a.id = b.id + 100');
SELECT * FROM asked();

-- A column of another form than when the plan was made.
PREPARE formed AS SELECT left(url, 40) AS url, count(*) FROM urls WHERE id <= 100 GROUP BY urls.url ORDER BY md5(urls.url) LIMIT 3;
EXECUTE formed;
SELECT gpuvm.release('urls');
ALTER TABLE urls ALTER url SET (n_distinct = 0);
ANALYZE urls;
SELECT gpuvm.import('urls');
EXECUTE formed;

SELECT opcode, p1, p2, p3, comment FROM gpuvm.disassemble('SELECT page, count(*) FROM visits GROUP BY page');
DROP SCHEMA text_keys CASCADE;
