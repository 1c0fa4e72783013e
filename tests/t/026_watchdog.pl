# A gpuvmd that is stopped is noticed by who waits for it, and ended; one that is slow is not.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = new_node('watchdog', "gpuvm.memory = '256MB'", 'max_connections = 80');
my $log_start = -s $node->logfile;
$node->safe_psql('postgres', q{
	CREATE TABLE big AS SELECT hashint8(i) & 1048575 AS a, hashint8(i + 7) & 65535 AS b, hashint8extended(i, 3) AS c FROM generate_series(1, 400000) i;
	CREATE TABLE mid AS SELECT i AS a, hashint8(i) & 65535 AS b FROM generate_series(1, 20000) i;
	SELECT gpuvm.import('big'), gpuvm.import('mid');
});
my $query = 'SELECT count(*), sum(b) FROM big WHERE a > 1000';
my $expected = $node->safe_psql('postgres', "SET gpuvm.enabled = off; $query");
is(with_vm($node, $query), $expected, 'a query');
my $empty = memory_used($node);

# Sessions that wait get their answers without anybody's help: one without a timeout, one with, one that is new.
my $pid = engine_pid($node);
my @sessions = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 3;
for my $session (@sessions)
{
	$session->query_safe("SET gpuvm.force = on");
	is($session->query_safe($query), $expected, 'a session');
}
stop_engine($pid);
is($node->safe_psql('postgres', "SET gpuvm.force = on; $query"), $expected, 'a new session is answered while gpuvmd is stopped');
is($sessions[0]->query_safe($query), $expected, 'and one that had a session');
like(slurp_file($node->logfile, $log_start), qr/gpuvmd \(PID $pid\) is stopped and is terminated/, 'gpuvmd was ended');
$pid = wait_for_new_engine($node, $pid);
is(with_vm($node, $query), $expected, 'another one serves');

$_->query_safe($query) for @sessions;
stop_engine($pid);
$sessions[1]->query("SET statement_timeout = '20s'");
is($sessions[1]->query_safe($query), $expected, 'one with a timeout');
# A session that ends while gpuvmd is stopped loses nothing.
$pid = wait_for_new_engine($node, $pid);
$sessions[2]->query_safe($query);
stop_engine($pid);
$_->quit for @sessions;
ok(wait_for_memory($node, $empty), 'sessions that end meanwhile give their memory back');

# Many heavy queries whose time runs out, more than there are processors: gpuvmd is slow to stop them, and stays.
$pid = wait_for_new_engine($node, $pid);
is(with_vm($node, $query), $expected, 'a query after that');
$log_start = -s $node->logfile;
my $heavy = $node->basedir . '/heavy.sql';
append_to_file($heavy, "SELECT count(*) FROM mid x, mid y WHERE x.a < y.b + 3;\nSELECT b, a, c FROM big ORDER BY c, a LIMIT 1000;\n"
	. "SELECT count(*) FROM big x JOIN big y ON x.b = y.b AND x.a < y.a;\nSELECT a, count(*) FROM big GROUP BY a ORDER BY 2 DESC, 1 LIMIT 5;\n");
# a statement that fails ends a client of pgbench, so each has a process of its own
my @clients;
for my $i (1 .. 40)
{
	push @clients, IPC::Run::start([ 'psql', '-XqAt', '-d', $node->connstr('postgres') . " options='-c gpuvm.force=on -c statement_timeout=700ms'",
		'-f', $heavy, '-f', $heavy, '-f', $heavy ], '>', '/dev/null', '2>', '/dev/null');
}
$_->finish for @clients;
is(engine_pid($node), $pid, 'gpuvmd lives through cancels under load');
unlike(slurp_file($node->logfile, $log_start), qr/gpuvmd .* is terminated/, 'nobody ended it');
is(with_vm($node, $query), $expected, 'it serves');
ok(wait_for_memory($node, $empty), 'and nothing is left');
$node->stop;
done_testing();
