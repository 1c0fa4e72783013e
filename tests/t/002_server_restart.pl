# Ends of the server: a backend that is killed while it imports, restarts in
# order and not, a server that does not preload gpuvm, single-user mode.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('server_restart');
create_big($node);
my $query = 'SELECT count(*), sum(l) FROM big WHERE v < 50';
my $expected = without($node, $query);
is(with_vm($node, $query), $expected, 'imported');

# Imported, served again.
sub import_serves
{
	my ($what) = @_;

	is($node->safe_psql('postgres', 'SELECT count(rows) FROM gpuvm.tables'), '0', "$what: the tablets are gone");
	is($node->safe_psql('postgres', "SET gpuvm.force = on; $query"), $expected, "$what: the answer is right");
	cmp_ok(memory_used($node), '<=', 1, "$what: nothing is left in memory");
	$node->safe_psql('postgres', "SELECT gpuvm.import('big')");
	is(with_vm($node, $query), $expected, "$what: import serves again");
	return;
}

sub engine_is_gone
{
	my ($pid, $what) = @_;

	for (my $i = 0; $i < 1800 && kill(0, $pid); $i++)
	{
		select(undef, undef, undef, 0.1);
	}
	ok(!kill(0, $pid), "$what: the old gpuvmd is gone");
	return;
}

# A backend that has imported, and not yet committed.
my $pid = engine_pid($node);
my $log_start = -s $node->logfile;
my $session = $node->background_psql('postgres', on_error_stop => 0);
my $backend = $session->query('SELECT pg_backend_pid()');
$session->query("BEGIN; SELECT gpuvm.import('big')");
kill 'KILL', $backend;
$node->wait_for_log(qr/database system is ready to accept connections/, $log_start);
$node->poll_query_until('postgres', 'SELECT true');
ok($node->log_contains('terminating any other active server processes', $log_start), 'kill -9 of a backend restarts the cluster, as always');
engine_is_gone($pid, 'kill -9 of a backend');
wait_for_engine($node);
import_serves('kill -9 of a backend');
eval { $session->quit };

# A backend in the middle of an import.
$pid = engine_pid($node);
$node->safe_psql('postgres', 'CREATE TABLE large AS SELECT i AS a, i % 7 AS b, i::float8 AS c FROM generate_series(1, 1500000) i');
$log_start = -s $node->logfile;
$session = $node->background_psql('postgres', on_error_stop => 0);
$backend = $session->query('SELECT pg_backend_pid()');
$session->query_until(qr/started/, "\\echo started\nSELECT gpuvm.import('large');\n");
$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM gpuvm.import_progress WHERE pid = $backend")
  or die 'the import does not show in gpuvm.import_progress';
kill 'KILL', $backend;
$node->wait_for_log(qr/database system is ready to accept connections/, $log_start);
$node->poll_query_until('postgres', 'SELECT true');
engine_is_gone($pid, 'kill -9 in an import');
wait_for_engine($node);
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpuvm.import_progress'), '0', 'kill -9 in an import: no progress is left');
import_serves('kill -9 in an import');
eval { $session->quit };
$node->safe_psql('postgres', 'DROP TABLE large');

# Restarts.
for my $mode ('fast', 'immediate')
{
	$pid = engine_pid($node);
	$node->stop($mode);
	engine_is_gone($pid, $mode);
	$node->start;
	wait_for_engine($node);
	import_serves("restart ($mode)");
}
# A session that streams does not keep the server from stopping.
$session = $node->background_psql('postgres', on_error_stop => 0);
$session->query('SET gpuvm.force = on; BEGIN; DECLARE c CURSOR FOR SELECT id FROM big WHERE v < 90; MOVE 10 IN c');
$pid = engine_pid($node);
$node->stop('fast');
engine_is_gone($pid, 'fast, with a cursor open');
eval { $session->quit };

# Single-user mode has no engine and no tablets: PostgreSQL answers.
my ($stdout, $stderr) = ('', '');
IPC::Run::run([ 'postgres', '--single', '-D', $node->data_dir, 'postgres' ], '<', \"$query\n", '>', \$stdout, '2>', \$stderr);
like($stdout, qr/count = "300000"/, 'single-user mode answers');
# postgres -C of a computed setting loads the library, beside a server that may be there.
$stdout = '';
IPC::Run::run([ 'postgres', '-C', 'shared_memory_size', '-D', $node->data_dir ], '>', \$stdout, '2>', \$stderr);
like($stdout, qr/^\d+\s*$/, 'postgres -C works');

# Not preloaded.
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->start;
my $ret;
($ret, $stdout, $stderr) = $node->psql('postgres', q{DROP EXTENSION gpuvm; CREATE EXTENSION gpuvm; SELECT loaded FROM gpuvm.status()});
is($stdout, 'f', 'without preloading CREATE EXTENSION works, and gpuvm.status() tells that nothing is loaded');
like($node->safe_psql('postgres', 'SELECT detail FROM gpuvm.status()'), qr/shared_preload_libraries/, 'and what to do');
for my $call (q{gpuvm.import('big')}, q{gpuvm.refresh('big')}, q{gpuvm.release('big')}, q{gpuvm.disassemble('SELECT 1')},
	q{gpuvm.why_not('SELECT 1')}, 'gpuvm.list_tables()', 'gpuvm.list_stats()')
{
	($ret, $stdout, $stderr) = $node->psql('postgres', "SELECT $call");
	like($stderr, qr/ERROR:  gpuvm must be loaded via "shared_preload_libraries"\nHINT:  Add gpuvm to "shared_preload_libraries" and restart the server\./,
		"$call without preloading");
}
is($node->safe_psql('postgres', "LOAD 'gpuvm'; SET gpuvm.force = on; $query"), $expected, 'queries run, with the library loaded in the session');
is($node->safe_psql('postgres', 'SELECT count(*) > 60 FROM gpuvm.opcodes'), 't', 'the instruction set can be read');
$node->stop;

# No free slot for the supervisor: a sentence in status(), and PostgreSQL's answers.
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'gpuvm'");
$node->adjust_conf('postgresql.conf', 'max_worker_processes', '0');
$node->start;
like($node->safe_psql('postgres', q{SELECT loaded::text || ': ' || detail FROM gpuvm.status() WHERE backend = 'cpu'}),
	qr/^false: .*max_worker_processes/, 'no worker slot: status() says so');
is($node->safe_psql('postgres', "SET gpuvm.force = on; $query"), $expected, 'no worker slot: the answer is right');
($ret, $stdout, $stderr) = $node->psql('postgres', "SELECT gpuvm.import('big')");
is($ret, 0, 'no worker slot: a vacuumed table can be imported');
is($node->safe_psql('postgres', "SET gpuvm.force = on; $query"), $expected, 'no worker slot: and queried');
$node->stop;

done_testing();
