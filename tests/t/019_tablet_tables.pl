# Tablet tables: kill -9 of the server while transactions commit and the table is compacted, prepared transactions, a standby, and persist 'off', whose
# rows a crash takes.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

# GPUVM_TEST_CRASH_ROUNDS: more of them.
my $rounds = $ENV{GPUVM_TEST_CRASH_ROUNDS} || 4;
my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 'logical');
$node->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'gpuvm'", 'autovacuum = off', 'max_worker_processes = 16', 'max_connections = 40',
		'gpuvm.refresh = off', 'gpuvm.load_at_start = off', 'max_prepared_transactions = 5', 'fsync = on', 'checkpoint_timeout = 30s', GpuvmTest::device_conf()) . "\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION gpuvm');
wait_for_engine($node);

# Each transaction of writer w writes its number as `last` into a table of PostgreSQL's, and does the same to a tablet table and an
# ordinary one: rows come, change, and go. Whatever was committed is in both, and nothing else.
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE t (w int, n int, v text) SERVER gpuvm;
	CREATE TABLE same (w int, n int, v text);
	CREATE TABLE last (w int PRIMARY KEY, n int);
	CREATE FOREIGN TABLE lost (n int) SERVER gpuvm OPTIONS (persist 'off');
	CREATE TABLE heap_lost (n int);
	ALTER TABLE heap_lost SET UNLOGGED;
	CREATE PROCEDURE step(writer int, number int) LANGUAGE plpgsql AS $$
	DECLARE
		statement text;
	BEGIN
		FOREACH statement IN ARRAY ARRAY['INSERT INTO @ SELECT $1, $2, repeat(i::text, 20) FROM generate_series(1, 1 + $2 % 50) i',
			'UPDATE @ SET v = v || $2 WHERE w = $1 AND n = $2 - 1', 'DELETE FROM @ WHERE w = $1 AND n < $2 - 20'] LOOP
			EXECUTE replace(statement, '@', 't') USING writer, number;
			EXECUTE replace(statement, '@', 'same') USING writer, number;
		END LOOP;
		INSERT INTO last VALUES (writer, number) ON CONFLICT (w) DO UPDATE SET n = number;
	END$$;
});
my $differ = q{SELECT count(*) FROM ((TABLE t EXCEPT ALL TABLE same) UNION ALL (TABLE same EXCEPT ALL TABLE t)) d};
my $sums = 'SELECT count(*), sum(n), sum(w), min(v), max(v) FROM ';

# What a writer's process was told: the last number whose commit was acknowledged. The second one's UPDATE and DELETE find rows by programs, once the
# table is loaded and the engine there.
sub start_writer
{
	my ($writer, $first, $out) = @_;
	my $in = $node->basedir . "/writer$writer.sql";

	unlink $in;
	append_to_file($in, ($writer ? "SET gpuvm.force = on;\n" : '') . join('', map { my $n = $first + $_; "CALL step($writer, $n);\n\\echo done $n\n" } (0 .. 2999)));
	return IPC::Run::start(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', $in, '-d', $node->connstr('postgres')], '>', $out, '2>', "$in.err");
}

# Compacts the table again and again, between the writers' transactions.
sub start_compactor
{
	my $in = $node->basedir . '/compactor.sql';

	append_to_file($in, "SELECT gpuvm.compact('t') > 0 AND pg_sleep(0.02) IS NOT NULL;\n" x 1000) unless -e $in;
	return IPC::Run::start(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', $in, '-d', $node->connstr('postgres')], '>', $node->basedir . '/compactor.out', '2>', "$in.err");
}

my ($lost, $extra, $wrong, $vm_wrong, $refused, $compactions) = (0, 0, 0, 0, 0, 0);
my @next = (1, 1);
for my $round (1 .. $rounds)
{
	my @files = map { $node->basedir . "/writer$_.out" } (0, 1);
	my @writers = (start_compactor(), map { start_writer($_, $next[$_], $files[$_]) } (0, 1));

	sleep(0.2 + rand(0.6));
	if ($round % 2)
	{
		$node->stop('immediate');
	}
	else
	{
		# every process at once, as a power cut would
		my $postmaster = $node->safe_psql('postgres', q{SELECT pg_read_file('postmaster.pid')});
		my ($pid) = split /\n/, $postmaster;
		my @pids = split /\n/, $node->safe_psql('postgres', 'SELECT pid FROM pg_stat_activity');

		kill 'KILL', $pid, @pids;
		$node->{_pid} = undef;
		sleep 0.1 while kill 0, $pid;
	}
	eval { $_->finish } for @writers;
	for (my $try = 0; $try < 50; $try++)
	{
		last if $node->start(fail_ok => 1);
		sleep 0.2;
	}
	for my $writer (0, 1)
	{
		my @done = slurp_file($files[$writer]) =~ /done (\d+)/g;
		my $told = @done ? $done[-1] : $next[$writer] - 1;
		my $is = $node->safe_psql('postgres', "SELECT coalesce((SELECT n FROM last WHERE w = $writer), 0)");

		$refused += () = slurp_file($node->basedir . "/writer$writer.sql.err") =~ /ERROR/g;
		$lost++ if $is < $told;
		$extra++ if $is > $told + 1;
		$next[$writer] = $is + 1;
	}
	$compactions += () = slurp_file($node->basedir . '/compactor.out') =~ /t/g;
	$wrong++ if $node->safe_psql('postgres', "SET gpuvm.enabled = off; $differ") ne '0';
	$vm_wrong++ if $node->safe_psql('postgres', "SET gpuvm.force = on; $sums t") ne $node->safe_psql('postgres', "$sums same");
}
is($lost, 0, "$rounds crashes: nothing that was committed is lost");
is($extra, 0, 'and nothing is there that was not');
is($wrong, 0, 'the tablet table is as the ordinary one');
is($vm_wrong, 0, 'also for queries on the virtual machine, or before it is there');
cmp_ok($next[0] + $next[1], '>', $rounds, "$next[0] and $next[1] transactions");
cmp_ok($compactions, '>', $rounds, "beside $compactions compactions");
is($refused, 0, 'no transaction failed for them');
wait_for_engine($node);
is(with_vm($node, "$sums t"), without($node, "$sums same"), 'and loaded');

# A prepared transaction keeps its row locks over a crash.
$node->safe_psql('postgres', q{INSERT INTO t VALUES (7, 1, 'x'), (7, 2, 'y'); BEGIN; UPDATE t SET v = 'prepared' WHERE w = 7 AND n = 1; INSERT INTO t VALUES (7, 3, 'z'); PREPARE TRANSACTION 'p'});
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT n, v FROM t WHERE w = 7 ORDER BY n'), "1|x\n2|y", 'what is prepared is not seen');
my ($ret, $stdout, $stderr) = $node->psql('postgres', "SET lock_timeout = '300ms'; DELETE FROM t WHERE w = 7 AND n = 1");
like($stderr, qr/lock timeout/, 'another writer of the tablet waits for it');
$node->safe_psql('postgres', "COMMIT PREPARED 'p'");
is($node->safe_psql('postgres', 'SELECT n, v FROM t WHERE w = 7 ORDER BY n'), "1|prepared\n2|y\n3|z", 'COMMIT PREPARED');

# persist 'off': as an unlogged table
$node->safe_psql('postgres', 'INSERT INTO lost SELECT generate_series(1, 1000); INSERT INTO heap_lost SELECT generate_series(1, 1000); DELETE FROM lost WHERE n < 10');
$node->restart;
is($node->safe_psql('postgres', 'SELECT count(*) FROM lost'), '991', 'persist off: a restart in order keeps the rows');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT (SELECT count(*) FROM lost), (SELECT count(*) FROM heap_lost)'), '0|0', 'and a crash takes them');
$node->safe_psql('postgres', 'INSERT INTO lost VALUES (1)');
is($node->safe_psql('postgres', 'SELECT count(*) FROM lost'), '1', 'it is usable afterwards');

# Side rows have the OID of a table of this database: no subscriber of all tables may be given them.
$node->safe_psql('postgres', q{SELECT pg_create_logical_replication_slot('s', 'test_decoding'); CREATE TABLE told (n int)});
$node->safe_psql('postgres', $_) for 'INSERT INTO lost VALUES (2)', q{INSERT INTO t VALUES (7, 4, repeat('toasted', 10000))}, 'DELETE FROM t WHERE w = 7 AND n = 4', 'INSERT INTO told VALUES (1)';
my $told = $node->safe_psql('postgres', q{SELECT data FROM pg_logical_slot_get_changes('s', NULL, NULL) WHERE data LIKE 'table %'});
is($told, 'table public.told: INSERT: n[integer]:1', 'logical replication leaves side tables out');
$node->safe_psql('postgres', q{SELECT pg_drop_replication_slot('s')});

# A standby reads what is replayed.
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
wait_for_engine($standby);
$node->safe_psql('postgres', q{DELETE FROM t WHERE w = 0; INSERT INTO t SELECT 8, i, 'n' || i FROM generate_series(1, 70000) i; BEGIN; DELETE FROM t; ROLLBACK});
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is(with_vm($standby, "$sums t"), without($node, "$sums t"), 'on a standby, on the virtual machine');
is(without($standby, "$sums t"), without($node, "$sums t"), 'and row by row');
$node->safe_psql('postgres', q{UPDATE t SET n = n + 1 WHERE w = 8 AND n % 1000 = 0});
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is(with_vm($standby, "$sums t"), without($node, "$sums t"), 'also when it has changed');
($ret, $stdout, $stderr) = $standby->psql('postgres', 'SELECT count(*) FROM lost');
like($stderr, qr/cannot access temporary or unlogged relations during recovery/, 'a table with persist off cannot be read there');
$standby->promote;
is($standby->safe_psql('postgres', q{INSERT INTO t VALUES (9, 9, 'promoted'); SELECT count(*) FROM t WHERE w = 9}), '1', 'promoted, it can be written');
$standby->stop;
$node->stop;
done_testing();
