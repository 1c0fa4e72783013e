# A streaming replica: imports there, queries on the virtual machine while the
# primary writes, VACUUMs and truncates, conflicts as PostgreSQL has them, promotion.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'gpuvm'", 'autovacuum = off', 'max_worker_processes = 16',
		'max_connections = 40', 'gpuvm.refresh = off', 'gpuvm.load_at_start = off', 'hot_standby_feedback = off',
		'max_standby_streaming_delay = 200ms', GpuvmTest::device_conf()) . "\n");
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION gpuvm');
$primary->safe_psql('postgres', q{
	CREATE TABLE t (id int PRIMARY KEY, v int8) WITH (fillfactor = 70);
	INSERT INTO t SELECT i, 0 FROM generate_series(1, 20000) i;
	CREATE TABLE other (a int, b float8);
	INSERT INTO other SELECT i, i FROM generate_series(1, 5000) i;
	VACUUM t, other;
});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;
wait_for_engine($standby);

sub replay
{
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return;
}

sub equal
{
	my ($what, $query) = @_;

	replay();
	my $expected = without($primary, $query);
	is(with_vm($standby, $query), $expected, $what);
	return;
}

my $sum = 'SELECT count(*), sum(v), min(id), max(id) FROM t';
my $some = 'SELECT v, count(*) FROM t WHERE id % 100 = 3 GROUP BY v ORDER BY v';

# Import, and what it does not do there.
replay();
my ($ret, $stdout, $stderr) = $standby->psql('postgres', "SELECT gpuvm.import('t'), gpuvm.import('other')");
is($stdout, '20000|5000', 'import on a standby');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM gpuvm.imports'), '0', 'which is not remembered');
equal('imported', $sum);

# Everything that the primary does shows at once, as soon as it is replayed.
$primary->safe_psql('postgres', 'UPDATE t SET v = 5 WHERE id % 100 = 3');
equal('UPDATE', $sum);
equal('UPDATE, groups', $some);
$primary->safe_psql('postgres', 'BEGIN; DELETE FROM t WHERE id < 1000; ROLLBACK');
equal('rolled back', $sum);
$primary->safe_psql('postgres', 'DELETE FROM t WHERE id BETWEEN 3000 AND 4000; INSERT INTO t SELECT i, 1 FROM generate_series(20001, 21000) i');
equal('DELETE and INSERT', $sum);
$primary->safe_psql('postgres', 'VACUUM t');
equal('VACUUM', $sum);
$standby->safe_psql('postgres', "SELECT gpuvm.refresh('t')");
equal('refreshed', $sum);
$primary->safe_psql('postgres', 'VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) t; UPDATE t SET v = v + 1 WHERE id = 17; VACUUM t');
equal('VACUUM FREEZE', $some);
$primary->safe_psql('postgres', 'DELETE FROM t WHERE id > 10000');
$primary->safe_psql('postgres', 'VACUUM t');
equal('the end of the table cut off', $sum);
$primary->safe_psql('postgres', 'INSERT INTO t SELECT i, 2 FROM generate_series(10001, 20000) i; VACUUM t');
equal('grown again', $sum);
$standby->safe_psql('postgres', "SELECT gpuvm.refresh('t')");
equal('and refreshed', $sum);
$primary->safe_psql('postgres', 'ALTER TABLE other ADD COLUMN c int DEFAULT 4; TRUNCATE t; INSERT INTO t SELECT i, 0 FROM generate_series(1, 20000) i; VACUUM t');
replay();
is($standby->safe_psql('postgres', "SET gpuvm.force = on; $sum"), '20000|0|1|20000', 'TRUNCATE: right at once');
is($standby->safe_psql('postgres', 'SET gpuvm.force = on; SELECT sum(a), sum(c) FROM other'), '12502500|20000', 'ALTER TABLE: right at once');
$standby->safe_psql('postgres', "SELECT gpuvm.refresh('t'), gpuvm.refresh('other')");
equal('imported again', $sum);
equal('imported again, the new column', 'SELECT sum(a), sum(c), count(*) FROM other');

# A snapshot that still sees what VACUUM removes: the session is cancelled, or sees it.
my $log_start = -s $standby->logfile;
my $session = $standby->background_psql('postgres', on_error_stop => 0);
$session->query_safe("SET gpuvm.force = on; BEGIN ISOLATION LEVEL REPEATABLE READ; $some");
$primary->safe_psql('postgres', 'DELETE FROM t WHERE id % 100 = 3; ');
$primary->safe_psql('postgres', 'VACUUM t');
replay();
my $seen = eval { $session->query($some) } // '';
ok($seen eq '0|200' || $standby->log_contains('conflict with recovery', $log_start), 'an old snapshot sees its rows, or conflicts with recovery') or diag($seen);
eval { $session->quit };
equal('after the conflict', $some);

# A cursor over tablets beside a TRUNCATE that waits for its lock, and then cancels it.
$session = $standby->background_psql('postgres', on_error_stop => 0);
$session->query_safe('SET gpuvm.force = on; BEGIN; DECLARE c CURSOR FOR SELECT id FROM other o (id); FETCH 1 FROM c');
$primary->safe_psql('postgres', 'TRUNCATE other');
replay();
is(without($standby, 'SELECT count(*) FROM other'), '0', 'TRUNCATE beside an open cursor');
eval { $session->quit };
$primary->safe_psql('postgres', 'INSERT INTO other SELECT i, i FROM generate_series(1, 5000) i');

# Writers keep count and sum constant in every transaction; a reader that sees another divides by zero.
$primary->safe_psql('postgres', 'TRUNCATE t; INSERT INTO t SELECT i, 0 FROM generate_series(1, 20000) i; VACUUM t');
replay();
$standby->safe_psql('postgres', "SELECT gpuvm.import('t')");
$standby->append_conf('postgresql.conf', "hot_standby_feedback = on\nmax_standby_streaming_delay = 5s");
$standby->reload;
my $tmp = $PostgreSQL::Test::Utils::tmp_check;
append_to_file("$tmp/standby_write", q{
	\set a random(1, 20000)
	\set b random(1, 20000)
	\sleep 10 ms
	BEGIN;
	UPDATE t SET v = v - 7 WHERE id = :a;
	UPDATE t SET v = v + 7 WHERE id = :b;
	END;});
append_to_file("$tmp/standby_vacuum", "\\sleep 60 ms\nVACUUM t;\n");
my $right = 'CASE WHEN count(*) = 20000 AND sum(v) = 0 THEN 1 ELSE 0 END';
append_to_file("$tmp/standby_read", "SET gpuvm.force = on;\nSELECT 1 / $right FROM t;\nSELECT 1 / $right FROM (SELECT v FROM t WHERE id <> 0 OFFSET 0) q;\n");
append_to_file("$tmp/standby_repeat", qq{
	SET gpuvm.force = on;
	BEGIN ISOLATION LEVEL REPEATABLE READ;
	SELECT 1 / $right FROM t;
	\\sleep 30 ms
	SELECT 1 / $right FROM t;
	END;});
append_to_file("$tmp/standby_refresh", "\\sleep 40 ms\nSELECT gpuvm.refresh('t');\n");
my ($out1, $err1, $out2, $err2) = ('', '', '', '');
my @common = ('pgbench', '-n', '-T', '8', '-j', '1', '-h', $primary->host);
my $writers = IPC::Run::start([ @common, '-p', $primary->port, '-c', '3', '-f', "$tmp/standby_write\@8", '-f', "$tmp/standby_vacuum\@1", 'postgres' ],
	'<', \undef, '>', \$out1, '2>', \$err1);
my $readers = IPC::Run::start([ @common, '-p', $standby->port, '-c', '4', '--max-tries=1000', '-f', "$tmp/standby_read\@4", '-f', "$tmp/standby_repeat\@3",
		'-f', "$tmp/standby_refresh\@1", 'postgres' ], '<', \undef, '>', \$out2, '2>', \$err2);
$writers->finish;
$readers->finish;
ok(!$writers->result, 'the primary wrote') or diag($err1);
ok(!$readers->result, 'no reader on the standby saw anything else');
unlike($err2, qr/division by zero|aborted/, 'and none gave up') or diag($err2);
my %stats = map { split /\|/ } split /\n/, $standby->safe_psql('postgres', 'SELECT * FROM gpuvm.stats');
cmp_ok($stats{'queries'}, '>', 20, 'the virtual machine answered there: ' . $stats{'queries'});
cmp_ok($stats{'delta rows'}, '>', 0, 'with rows of changed blocks');
equal('at the end', $sum);

# Promotion: the same tablets answer, imports are remembered from now on.
$standby->promote;
is(with_vm($standby, $sum), '20000|0|1|20000', 'promoted: the tablets still answer');
$standby->safe_psql('postgres', q{UPDATE t SET v = 3 WHERE id = 5; DELETE FROM t WHERE id > 15000});
my $left = without($standby, $sum);
like($left, qr/^15000\|-?\d+\|1\|15000$/, 'promoted: own writes');
is(with_vm($standby, $sum), $left, 'promoted: own writes show');
$standby->safe_psql('postgres', q{VACUUM t});
is(with_vm($standby, $sum), $left, 'promoted: VACUUM');
$standby->safe_psql('postgres', q{SELECT gpuvm.import('t')});
is($standby->safe_psql('postgres', 'SELECT relation FROM gpuvm.imports'), 't', 'promoted: import is remembered');
$standby->safe_psql('postgres', "SELECT gpuvm.release(relation) FROM gpuvm.tables");
ok(wait_for_memory($standby, 0), 'nothing is left in memory');
$primary->stop;

# What the primary has remembered a standby imports at its start.
$standby->safe_psql('postgres', "SELECT gpuvm.import('t')");
$standby->backup('c');
my $second = PostgreSQL::Test::Cluster->new('second');
$second->init_from_backup($standby, 'c', has_streaming => 1);
$second->append_conf('postgresql.conf', join("\n", refreshing()) . "\n");
$second->start;
wait_for_engine($second);
wait_for_tables($second, 'postgres', 't');
is(with_vm($second, $sum), $left, 'a standby imports what its primary has remembered');
$second->stop;
$standby->stop;
done_testing();
