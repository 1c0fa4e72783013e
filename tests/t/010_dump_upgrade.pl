# What is remembered of imports goes with pg_dump into another database, and with
# pg_upgrade into another cluster; there it is imported in the background.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('dumped', refreshing());
$node->safe_psql('postgres', q{
	CREATE SCHEMA "Odd Name";
	CREATE TABLE "Odd Name"."T" (id int, v int8, dropped int, w float4);
	ALTER TABLE "Odd Name"."T" DROP COLUMN dropped;
	INSERT INTO "Odd Name"."T" SELECT i, i * 3, i FROM generate_series(1, 10000) i;
	CREATE TABLE some_columns (id int, note text, w float8);
	INSERT INTO some_columns SELECT i, 'x', i FROM generate_series(1, 1000) i;
	CREATE TABLE parts (k int, v int8) PARTITION BY LIST (k);
	CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
	CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
	INSERT INTO parts SELECT 1 + i % 2, i FROM generate_series(1, 5000) i;
	CREATE MATERIALIZED VIEW seen AS SELECT id, v FROM "Odd Name"."T" WHERE id % 2 = 0;
	SELECT gpuvm.import('"Odd Name"."T"'), gpuvm.import('some_columns', ARRAY['w', 'id']), gpuvm.import('parts'), gpuvm.import('seen');
	CREATE TABLE gone (a int);
	SELECT gpuvm.import('gone');
	DROP TABLE gone;
	CREATE ROLE leaves;
	INSERT INTO gpuvm.quotas VALUES (current_user::regrole, 1000000000), (NULL, 2000000000), ('leaves', 0);
	DROP ROLE leaves;
});
my @tables = ('"Odd Name"."T"', 'some_columns', 'parts_1', 'parts_2', 'seen');
my @queries = ('SELECT count(*), sum(v), max(w) FROM "Odd Name"."T"', 'SELECT sum(id), max(w) FROM some_columns', 'SELECT k, count(*), sum(v) FROM parts GROUP BY k ORDER BY k',
	'SELECT count(*), sum(v) FROM seen');
my @expected = map { without($node, $_) } @queries;
my $remembered = 'SELECT relation, columns FROM gpuvm.imports ORDER BY relation::text COLLATE "C"';
my $rows = $node->safe_psql('postgres', $remembered);
is($rows, "\"Odd Name\".\"T\"|\nparts|\nseen|\nsome_columns|{id,w}", 'remembered') or diag($rows);

sub serves
{
	my ($what, $on, $database) = @_;

	is($on->safe_psql($database, $remembered), $rows, "$what: the same is remembered");
	is($on->safe_psql($database, 'SELECT bytes FROM gpuvm.quotas WHERE role = current_user::regrole OR role IS NULL ORDER BY bytes'),
		"1000000000\n2000000000", "$what: the same quotas hold");
	wait_for_tables($on, $database, @tables);
	for my $i (0 .. $#queries)
	{
		is($on->safe_psql($database, "SET gpuvm.force = on; SET gpuvm.require = $device; $queries[$i]"), $expected[$i], "$what: on the VM, query $i");
	}
	return;
}

serves('the original', $node, 'postgres');

# pg_dump, plain and custom, into databases of the same cluster.
my $tmp = $PostgreSQL::Test::Utils::tmp_check;
$node->safe_psql('postgres', 'CREATE DATABASE plain; CREATE DATABASE custom');
command_ok([ 'pg_dump', '-h', $node->host, '-p', $node->port, '-f', "$tmp/plain.sql", 'postgres' ], 'pg_dump');
command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-h', $node->host, '-p', $node->port, '-f', "$tmp/plain.sql", 'plain' ], 'restored by psql');
command_ok([ 'pg_dump', '-Fc', '-h', $node->host, '-p', $node->port, '-f', "$tmp/custom.dump", 'postgres' ], 'pg_dump -Fc');
command_ok([ 'pg_restore', '--exit-on-error', '-h', $node->host, '-p', $node->port, '-d', 'custom', "$tmp/custom.dump" ], 'restored by pg_restore');
serves('pg_dump and psql', $node, 'plain');
serves('pg_dump and pg_restore', $node, 'custom');
$node->safe_psql('postgres', "DROP DATABASE $_") for 'plain', 'custom';

# pg_upgrade; the binaries may be the same.
my $new = PostgreSQL::Test::Cluster->new('upgraded');
$new->init;
$new->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'gpuvm'", 'autovacuum = off', 'max_worker_processes = 16',
		refreshing(), GpuvmTest::device_conf()) . "\n");
$node->stop;
my $bindir = $node->config_data('--bindir');
chdir $tmp;
command_ok([ 'pg_upgrade', '--no-sync', '-d', $node->data_dir, '-D', $new->data_dir, '-b', $bindir, '-B', $bindir,
		'-s', $new->host, '-p', $node->port, '-P', $new->port ], 'pg_upgrade');
$new->start;
wait_for_engine($new);
serves('pg_upgrade', $new, 'postgres');
$new->safe_psql('postgres', q{UPDATE some_columns SET w = -w WHERE id <= 10; VACUUM some_columns});
is(with_vm($new, $queries[1]), without($new, $queries[1]), 'pg_upgrade: changes show');
$new->stop;
done_testing();
