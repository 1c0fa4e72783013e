# A coordinator: a partitioned table of which one partition is imported here and two are foreign tables of postgres_fdw, in another
# cluster, which has them imported. Conditions, joins and aggregates are pushed down; gpuvm.require makes sure that the virtual
# machine runs what arrives there, and what is left here. The answers are those of one ordinary table.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $here = new_node('coordinator');
my $there = new_node('data');
my ($host, $port) = ($there->host, $there->port);
my $columns = '(id int NOT NULL, part int NOT NULL, k int, price numeric(10,2), day date, note text)';
my $rows = q{SELECT i, i % 3, nullif(i % 50, 7), (i * 37 % 10007) / 100.0, date '2020-01-01' + i % 400, 'note ' || i % 20 FROM generate_series(1, 60000) i};

# -- both clusters, as docs/coordinator.md has them ----------------------------------------------------

$there->safe_psql('postgres', qq{
	CREATE ROLE reports LOGIN;
	CREATE TABLE sales $columns;
	INSERT INTO sales $rows;
	CREATE TABLE sales_1 $columns;
	CREATE TABLE sales_2 $columns;
	INSERT INTO sales_1 SELECT * FROM sales WHERE part = 1;
	INSERT INTO sales_2 SELECT * FROM sales WHERE part = 2;
	DROP TABLE sales;
	CREATE TABLE names (k int, name text);
	INSERT INTO names SELECT i, 'name ' || i % 9 FROM generate_series(0, 49) i;
	GRANT SELECT, INSERT, UPDATE, DELETE ON sales_1, sales_2, names TO reports;
	ALTER ROLE reports SET gpuvm.force = on;
	ALTER ROLE reports SET gpuvm.require = '$device';
});
$there->safe_psql('postgres', 'VACUUM ANALYZE');
$there->safe_psql('postgres', "SELECT gpuvm.import('sales_1'), gpuvm.import('sales_2'), gpuvm.import('names')");
$here->safe_psql('postgres', qq{
	CREATE EXTENSION postgres_fdw;
	CREATE SERVER data_1 FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres', async_capable 'true', fetch_size '10000', use_remote_estimate 'true');
	CREATE SERVER data_2 FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres', async_capable 'true', fetch_size '10000', use_remote_estimate 'true');
	CREATE USER MAPPING FOR PUBLIC SERVER data_1 OPTIONS (user 'reports', password_required 'false');
	CREATE USER MAPPING FOR PUBLIC SERVER data_2 OPTIONS (user 'reports', password_required 'false');
	CREATE TABLE sales $columns PARTITION BY LIST (part);
	CREATE TABLE sales_0 PARTITION OF sales FOR VALUES IN (0);
	CREATE FOREIGN TABLE sales_1 PARTITION OF sales FOR VALUES IN (1) SERVER data_1;
	CREATE FOREIGN TABLE sales_2 PARTITION OF sales FOR VALUES IN (2) SERVER data_2;
	CREATE FOREIGN TABLE names_1 (k int, name text) SERVER data_1 OPTIONS (table_name 'names');
	CREATE TABLE whole $columns;
	INSERT INTO whole $rows;
	INSERT INTO sales_0 SELECT * FROM whole WHERE part = 0;
	CREATE TABLE whole_names AS SELECT i AS k, 'name ' || i % 9 AS name FROM generate_series(0, 49) i;
	ALTER SYSTEM SET enable_partitionwise_aggregate = on;
	SELECT pg_reload_conf();
});
$here->safe_psql('postgres', 'VACUUM ANALYZE');
$here->safe_psql('postgres', "SELECT gpuvm.import('sales_0')");

# -- the same answers ------------------------------------------------------------------------------------

# On the coordinator's tables, with what is local on the machine, and on ordinary ones.
sub same
{
	my ($query, $name) = @_;
	my $plain = $query =~ s/\bsales_1 s\b/(SELECT * FROM whole WHERE part = 1) s/r =~ s/\bsales\b/whole/gr =~ s/\bnames_1\b/whole_names/gr;

	is(with_vm($here, $query), without($here, $plain), $name);
	return;
}

sub plan_of
{
	my ($query) = @_;

	return with_vm($here, "EXPLAIN (VERBOSE, COSTS OFF) $query");
}

my $totals = 'SELECT count(*), count(k), sum(price), avg(price), min(day), max(day) FROM sales';
my $groups = 'SELECT part, k, count(*), sum(price), avg(price) FROM sales WHERE day < date \'2020-06-01\' GROUP BY part, k ORDER BY part, k';
my $join = 'SELECT n.name, count(*), sum(s.price) FROM sales_1 s JOIN names_1 n USING (k) WHERE s.price > 20 GROUP BY n.name ORDER BY n.name';

same($totals, 'aggregates over partitions of both clusters');
same("$totals WHERE k BETWEEN 10 AND 20 AND note LIKE '%3'", 'conditions are pushed down');
same($groups, 'groups');
same($join, 'a join and its groups, on the other cluster');
same('SELECT * FROM sales WHERE price > 99.5 ORDER BY id', 'rows');
same('SELECT id, price FROM sales ORDER BY price DESC, id LIMIT 20', 'the first rows');
same('SELECT note, count(DISTINCT k), max(price) FROM sales GROUP BY note ORDER BY note', 'what PostgreSQL does not push down is done here');
same('SELECT count(*) FROM sales_1 s WHERE EXISTS (SELECT FROM names_1 n WHERE n.k = s.k AND n.name = \'name 3\')', 'a semijoin');
same('SELECT s.id, n.name FROM sales s JOIN names_1 n ON n.k = s.k AND s.id = n.k * 100 ORDER BY 1', 'a join of rows of both clusters');

like(plan_of($groups), qr/Custom Scan \(GpuVM\)\s+Output: [^\n]*\s+Relation: sales_0\s+[^\n]*\s+VM Group Key: part, k.*Relations: Aggregate on \(public\.sales_1\).*Relations: Aggregate on \(public\.sales_2\)/s,
	'each partition is grouped where it is');
like(plan_of($join), qr/^(?:Sort.*^  ->  )?Foreign Scan.*Relations: Aggregate on \(\(public\.sales_1 s\) INNER JOIN \(public\.names_1 n\)\)/ms, 'the join is one query of the other cluster');
like(plan_of('SELECT * FROM sales WHERE price > 99.5'), qr/Async Foreign Scan.*Async Foreign Scan/s, 'partitions are read at the same time');

# -- changes ---------------------------------------------------------------------------------------------------

$here->safe_psql('postgres', q{
	BEGIN;
	UPDATE sales SET price = price + 1 WHERE k = 11;
	UPDATE whole SET price = price + 1 WHERE k = 11;
	DELETE FROM sales WHERE id % 1000 = 5;
	DELETE FROM whole WHERE id % 1000 = 5;
	INSERT INTO sales VALUES (70000, 1, 3, 7.5, '2021-01-01', 'new'), (70001, 2, NULL, NULL, NULL, NULL), (70002, 0, 4, 1, NULL, 'new');
	INSERT INTO whole VALUES (70000, 1, 3, 7.5, '2021-01-01', 'new'), (70001, 2, NULL, NULL, NULL, NULL), (70002, 0, 4, 1, NULL, 'new');
	COMMIT;
});
same($totals, 'after changes through the coordinator');
same($groups, 'groups after changes');
same($join, 'a join after changes');
is($here->safe_psql('postgres', "BEGIN; UPDATE sales SET price = 0 WHERE part = 2; SELECT sum(price) FROM sales WHERE part = 2; ROLLBACK"), '0.00',
	"a transaction's own changes, on the other cluster");
same($totals, 'and they are gone');

# What makes sure of the machine over there.
$there->safe_psql('postgres', 'ALTER ROLE reports SET gpuvm.enabled = off');
my ($rc, $out, $err) = $here->psql('postgres', $totals);
like($err, qr/would not run as gpuvm\.require demands/, 'a query that the other machine does not run');
$there->safe_psql('postgres', 'ALTER ROLE reports RESET gpuvm.enabled');

# -- the other cluster's gpuvmd, and the cluster itself, go away ----------------------------------------------------

my $pid = engine_pid($there);
$there->safe_psql('postgres', 'ALTER ROLE reports RESET gpuvm.require');
kill 'KILL', $pid;
is($here->safe_psql('postgres', $totals), without($here, $totals =~ s/\bsales\b/whole/r), 'while the other gpuvmd is started again');
wait_for_new_engine($there, $pid);
$there->safe_psql('postgres', "ALTER ROLE reports SET gpuvm.require = '$device'");
same($totals, 'with the next gpuvmd');
$there->stop('immediate');
($rc, $out, $err) = $here->psql('postgres', $totals);
isnt($rc, 0, 'without the other cluster there is no answer');
like($err, qr/could not connect to server/, "but PostgreSQL's error");
$there->start;
wait_for_engine($there);
$there->safe_psql('postgres', "SELECT gpuvm.import('sales_1'), gpuvm.import('sales_2'), gpuvm.import('names')");
same($totals, 'and after its restart again');
done_testing();
