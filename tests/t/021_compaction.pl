# Tablet tables are compacted in the background: small tablets become one, deleted rows go; whoever uses the table is not disturbed,
# nor is a prepared transaction; and a standby reads what becomes of it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'gpuvm'", 'autovacuum = off', 'max_worker_processes = 16', 'max_prepared_transactions = 5',
		'gpuvm.refresh_naptime = 1s', 'gpuvm.compact = off', "default_transaction_isolation = 'repeatable read'", GpuvmTest::device_conf()) . "\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION gpuvm');
wait_for_engine($node);
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
wait_for_engine($standby);

my $state = q{SELECT tablets, rows, dead_rows FROM gpuvm.tablet_tables WHERE relation = 't'::regclass};
my $sums = 'SELECT count(*), sum(id), max(v) FROM t';

sub set_compact
{
	my ($to) = @_;
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpuvm.compact = $to");
	$node->safe_psql('postgres', 'SELECT pg_reload_conf()');
	sleep 0.2;
}

sub fragment
{
	$node->safe_psql('postgres', join('', map { "INSERT INTO t SELECT i, 'v' || i FROM generate_series($_ * 10 + 1, $_ * 10 + 10) i;\n" } (1 .. 20)));
	$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 10 = 3');
}

# A look comes a naptime after the last one; what is not done in three is not done.
sub stays
{
	my ($expected, $name) = @_;
	sleep 3.5;
	is($node->safe_psql('postgres', $state), $expected, $name);
}

$node->safe_psql('postgres', 'CREATE FOREIGN TABLE t (id int, v text) SERVER gpuvm');
fragment();
my $before = $node->safe_psql('postgres', $sums);
stays('20|180|20', 'gpuvm.compact = off');

# someone reads, someone has written and not ended, someone is prepared
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
set_compact('on');
stays('20|180|20', 'not while a transaction has read the table');
is($reader->query_safe(q{SET gpuvm.require = 'any'; UPDATE t SET v = 'mine' WHERE id = 11; SELECT count(*) FROM t WHERE v = 'mine'}), '1', 'which can change it then');
stays('20|180|20', 'nor while it has');
$reader->query_safe(q{PREPARE TRANSACTION 'p'});
$reader->quit;
stays('20|180|20', 'nor while it is prepared');
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'p'});
$node->safe_psql('postgres', 'INSERT INTO t SELECT 1000, NULL WHERE false');
$node->poll_query_until('postgres', "$state", '1|180|0') or diag($node->safe_psql('postgres', $state));
is($node->safe_psql('postgres', $state), '1|180|0', 'then it is compacted');
is($node->safe_psql('postgres', $sums), $before, 'and has its rows');
is(with_vm($node, $sums), $before, 'for programs, too');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is(with_vm($standby, $sums), $before, 'and on a standby');
is($standby->safe_psql('postgres', $state), '1|180|0', 'where it is compacted by then');
my ($ret, $stdout, $stderr) = $standby->psql('postgres', q{SELECT gpuvm.compact('t')});
like($stderr, qr/cannot execute gpuvm.compact\(\) (in a read-only transaction|during recovery)/, 'which cannot do it itself');

# A compaction that is prepared: seen when it is committed, and a crash does not lose it.
set_compact('off');
fragment();
$before = $node->safe_psql('postgres', $sums);
$node->safe_psql('postgres', q{BEGIN ISOLATION LEVEL READ COMMITTED; SELECT gpuvm.compact('t'); PREPARE TRANSACTION 'c'});
is($node->safe_psql('postgres', $state), '21|360|20', 'a compaction that is prepared is not seen');
$node->stop('immediate');
$node->start;
wait_for_engine($node);
is($node->safe_psql('postgres', $state), '21|360|20', 'nor after a crash');
is(with_vm($node, $sums), $before, 'its rows are not there twice');
$node->safe_psql('postgres', q{COMMIT PREPARED 'c'});
is($node->safe_psql('postgres', $state), '1|360|0', 'COMMIT PREPARED');
is(with_vm($node, $sums), $before, 'and the rows are the same');

# Single rows beside a tablet of 4 MB, which is small enough to be put together with others, are put together without it.
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE busy (i int, v text) SERVER gpuvm; INSERT INTO busy SELECT i, repeat(md5(i::text), 4) FROM generate_series(1, 30000) i});
my $size = q{SELECT pg_total_relation_size('gpuvm.tablet_rows') + pg_total_relation_size('gpuvm.tablet_chunks')};
my $size_before = $node->safe_psql('postgres', $size);
set_compact('on');
for my $round (1 .. 5)
{
	$node->safe_psql('postgres', q{DO $$ BEGIN FOR i IN 1 .. 100 LOOP INSERT INTO busy VALUES (0, 'more'); COMMIT; END LOOP; END $$});
	ok($node->poll_query_until('postgres', q{SELECT tablets <= 8 FROM gpuvm.tablet_tables WHERE relation = 'busy'::regclass}), "single rows are put together, round $round");
}
set_compact('off');
cmp_ok($node->safe_psql('postgres', $size) - $size_before, '<', 2 * 1024 * 1024, 'a large tablet is not written again for a few rows');
is($node->safe_psql('postgres', q{SELECT count(*), sum(i) FROM busy}), '30500|450015000', 'and no row is lost');
$node->safe_psql('postgres', q{BEGIN ISOLATION LEVEL READ COMMITTED; SELECT gpuvm.compact('busy'); COMMIT});
is($node->safe_psql('postgres', q{SELECT tablets FROM gpuvm.tablet_tables WHERE relation = 'busy'::regclass}), '1', 'but for gpuvm.compact()');
$node->safe_psql('postgres', 'DROP FOREIGN TABLE busy');

# The worker writes where sessions begin by only reading, and a standby that does not answer keeps it from nothing.
fragment();
$node->safe_psql('postgres', q{ALTER SYSTEM SET default_transaction_read_only = on});
$node->safe_psql('postgres', q{SET default_transaction_read_only = off; ALTER SYSTEM SET synchronous_standby_names = 'nobody'});
set_compact('on');
$node->safe_psql('postgres', q{SET default_transaction_read_only = off; SET synchronous_commit = local; INSERT INTO t SELECT 1000, NULL WHERE false});
ok($node->poll_query_until('postgres', $state, '1|540|0'), 'under default_transaction_read_only');
($ret, $stdout, $stderr) = $node->psql('postgres', q{SET default_transaction_read_only = off; SET synchronous_commit = local; SET lock_timeout = '5s'; DELETE FROM t WHERE id = 11});
is($stderr, '', 'and with a synchronous standby that is not there, which nobody waits for');
$node->safe_psql('postgres', qq{SET default_transaction_read_only = off; SET synchronous_commit = local; ALTER SYSTEM RESET $_}) for ('synchronous_standby_names', 'default_transaction_read_only');
$standby->stop;
$node->stop;
done_testing();
