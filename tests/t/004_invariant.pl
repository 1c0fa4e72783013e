# Never a stale answer: writers keep count and sum of a table constant in every
# transaction, while imports, refreshes, releases, VACUUM and kills of gpuvmd go
# on; readers that see another count or sum divide by zero.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('invariant', 'max_connections = 40');
$node->safe_psql('postgres', q{
	CREATE TABLE t (id int PRIMARY KEY, v int8) WITH (fillfactor = 70);
	INSERT INTO t SELECT i, 0 FROM generate_series(1, 20000) i;
	SELECT gpuvm.import('t');
});
my $log_start = -s $node->logfile;
my $right = 'CASE WHEN count(*) = 20000 AND sum(v) = 0 THEN 1 ELSE 0 END';
# An update that has waited for a row which was deleted meanwhile has nothing to update: the two keep out of each other's way.
my %scripts = (
	# updates, and rows that move to another page
	'01_update@2' => q{
		\set a random(1, 20000)
		\set b random(1, 20000)
		\sleep 40 ms
		BEGIN;
		SELECT pg_advisory_xact_lock_shared(1);
		UPDATE t SET v = v - 7 WHERE id = :a;
		UPDATE t SET v = v + 7 WHERE id = :b;
		END;},
	'02_replace@1' => q{
		\set a random(1, 19900)
		\sleep 90 ms
		BEGIN;
		SELECT pg_advisory_xact_lock(1);
		WITH gone AS (DELETE FROM t WHERE id BETWEEN :a AND :a + 50 RETURNING *) INSERT INTO t SELECT -id, v FROM gone WHERE id > 0;
		UPDATE t SET id = -id WHERE id < 0;
		END;},
	'03_rollback@1' => q{
		\set a random(1, 20000)
		\sleep 30 ms
		BEGIN;
		UPDATE t SET v = v + 1000 WHERE id = :a;
		ROLLBACK;},
	'04_import@4' => q{
		\sleep 5 ms
		SELECT gpuvm.import('t');},
	'05_refresh@1' => q{
		BEGIN;
		SELECT gpuvm.import('t');
		\sleep 10 ms
		ROLLBACK;},
	'06_vacuum@1' => q{
		\sleep 25 ms
		VACUUM t;},
	'07_release@1' => q{
		\sleep 150 ms
		SELECT gpuvm.release('t');
		SELECT gpuvm.import('t');},
	'08_groups@4' => "SET gpuvm.force = on;\nSELECT 1 / $right FROM t;\n",
	'09_rows@4' => "SET gpuvm.force = on;\nSELECT 1 / $right FROM (SELECT v FROM t WHERE id <> 0 OFFSET 0) q;\n",
	# its snapshot is older than what happens in its midst
	'10_repeatable@3' => qq{
		SET gpuvm.force = on;
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		SELECT 1 / $right FROM t;
		\\sleep 30 ms
		SELECT 1 / $right FROM t;
		SELECT 1 / $right FROM (SELECT v FROM t WHERE id <> 0 OFFSET 0) q;
		END;},
);
# Groups of clients, each with scripts of its own, at the same time.
sub run_bench
{
	my ($what, $seconds, $kill, @groups) = @_;
	my ($stdout, $stderr, @benches) = ('', '');

	while (my ($clients, $scripts) = splice(@groups, 0, 2))
	{
		my @files;

		for my $name (sort keys %$scripts)
		{
			my ($file, $weight) = split /@/, $name;
			my $path = "$PostgreSQL::Test::Utils::tmp_check/$what.$file";

			append_to_file($path, $scripts->{$name});
			push @files, '-f', "$path\@$weight";
		}
		push @benches, IPC::Run::start([ 'pgbench', '-n', '-T', $seconds, '-c', $clients, '-j', '1', '-h', $node->host, '-p', $node->port,
				'-M', 'simple', @files, 'postgres' ], '<', \undef, '>>', \$stdout, '2>>', \$stderr);
	}
	for my $i (1 .. ($kill ? 3 : 0))
	{
		sleep 3;
		my $pid = engine_pid($node);
		kill 'KILL', $pid if $pid;
	}
	$_->finish for @benches;
	is(scalar(grep { $_->result } @benches), 0, "$what: no reader saw anything else") or diag($stderr);
	unlike($stderr, qr/division by zero|aborted/, "$what: no client gave up") or diag($stderr);
	unlike($stdout, qr/number of failed transactions: [1-9]/, "$what: no transaction failed") or diag($stdout);
	wait_for_engine($node);
	return;
}

run_bench('imports', 10, 1, 12, \%scripts);
# With refreshes instead of imports, and no snapshot that lives for long: bits are set again a moment after they went, and
# then not for a while.
$node->safe_psql('postgres', "SELECT gpuvm.import('t')");
run_bench('refreshes', 10, 0,
	4, { map { $_ => $scripts{$_} } '01_update@2', '03_rollback@1', '08_groups@4', '09_rows@4' },
	1, { '06_vacuum@1' => "\\sleep 250 ms\nVACUUM t;\n" },
	1, { '11_refresh@1' => "\\sleep 5 ms\nSELECT gpuvm.refresh('t');\n" });

my %stats = map { split /\|/ } split /\n/, $node->safe_psql('postgres', 'SELECT * FROM gpuvm.stats');
cmp_ok($stats{'queries'}, '>', 20, 'the virtual machine answered: ' . $stats{'queries'});
cmp_ok($stats{'delta rows'}, '>', 20, 'with rows of changed blocks: ' . $stats{'delta rows'});
note("$_: $stats{$_}") for sort keys %stats;
$node->safe_psql('postgres', "SELECT gpuvm.import('t')");
is(with_vm($node, 'SELECT count(*), sum(v) FROM t'), '20000|0', 'at the end');
$node->safe_psql('postgres', "SELECT gpuvm.release('t')");
ok(wait_for_memory($node, 0), 'nothing is left in memory');
crash_free($node, $log_start, 'the cluster never restarted');
$node->stop;
done_testing();
