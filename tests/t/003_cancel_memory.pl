# Cancel, timeout, termination and memory that runs out, in imports and queries:
# nothing leaks, and the session goes on.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('cancel_memory', "gpuvm.memory = '64MB'", 'gpuvm.engine_timeout = 0');
my $log_start = -s $node->logfile;
$node->safe_psql('postgres', q{
	CREATE TABLE large (a int, b int8, c int8, d float8, t text);
	INSERT INTO large SELECT i, hashint8extended(i, 1), hashint8extended(i, 2), i, 'word ' || i % 50000 FROM generate_series(1, 600000) i;
	CREATE TABLE small (a int, b int);
	INSERT INTO small SELECT i, i % 10 FROM generate_series(1, 1000) i;
	SELECT gpuvm.import('small');
});
my $empty = memory_used($node);
my ($ret, $stdout, $stderr);

# An import that is canceled leaves nothing, at whatever moment that comes.
my $canceled = 0;
for my $ms (1, 3, 10, 20, 40, 60, 80, 100, 150, 200, 300)
{
	# a fresh visibility map, so that there is something to vacuum
	$node->safe_psql('postgres', 'UPDATE large SET a = a WHERE a % 10000 = 0');
	($ret, $stdout, $stderr) = $node->psql('postgres', "SET statement_timeout = $ms; SELECT gpuvm.import('large') > 0");
	if ($ret != 0)
	{
		like($stderr, qr/canceling statement due to statement timeout/, "import canceled after $ms ms");
		is($node->safe_psql('postgres', q{SELECT count(*) FROM gpuvm.tables WHERE relation = 'large'::regclass}), '0', 'it is not imported');
		$canceled++;
	}
	else
	{
		is($stdout, 't', "import ended within $ms ms");
		$node->safe_psql('postgres', "SELECT gpuvm.release('large')");
	}
	is(memory_used($node), $empty, 'nothing is left in memory');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM gpuvm.import_progress'), '0', 'nor in gpuvm.import_progress');
}
cmp_ok($canceled, '>', 0, 'some imports were canceled');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'gpuvm vacuum%'}), '0', 'no worker is left');

# One that is rolled back, and one that is released.
$node->safe_psql('postgres', "BEGIN; SELECT gpuvm.import('large'); ROLLBACK");
is(memory_used($node), $empty, 'a rolled back import leaves nothing in memory');
$node->safe_psql('postgres', "SELECT gpuvm.import('large')");
cmp_ok(memory_used($node), '>', $empty, 'an import takes memory');
my $full = memory_used($node);
$node->safe_psql('postgres', "SELECT gpuvm.import('large')");
is(memory_used($node), $full, 'importing again takes no more');

# A query that is canceled while gpuvmd works on it (it is stopped, to be certain of that).
my $pid = engine_pid($node);
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe("SET gpuvm.force = on; SET gpuvm.require = $device");
is($session->query_safe('SELECT count(*) FROM large WHERE a > 0'), '600000', 'a query');
my $backend = $session->query_safe('SELECT pg_backend_pid()');
leave_waiting($node, $session, $backend, $pid, "SELECT sum(b) FROM large");
$node->safe_psql('postgres', "SELECT pg_cancel_backend($backend)");
kill 'CONT', $pid;
$session->query('SELECT 1');
like($session->{stderr}, qr/canceling statement due to user request/, 'a query is canceled');
$session->{stderr} = '';
is($session->query_safe('SELECT count(*) FROM large WHERE a > 0'), '600000', 'the session goes on');
is(engine_pid($node), $pid, 'with the same gpuvmd');

# A query that is canceled while it hands out rows.
$session->query('SET statement_timeout = 300; SELECT a, pg_sleep(0.05) FROM large WHERE d > 5');
like($session->{stderr}, qr/canceling statement due to statement timeout/, 'a streaming query is canceled');
$session->{stderr} = '';
$session->query_safe('RESET statement_timeout');
is($session->query_safe('SELECT count(*) FROM (SELECT a FROM large WHERE d > 5 OFFSET 0) q'), '599995', 'the session goes on');
$session->quit;
ok(wait_for_memory($node, $full), 'a session that ends gives its memory back');

# A backend that is terminated in the middle of a cursor.
$session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe("SET gpuvm.force = on; SET gpuvm.require = $device; BEGIN");
$session->query_safe('DECLARE c CURSOR FOR SELECT * FROM large WHERE d > 5; MOVE 10 IN c');
$backend = $session->query_safe('SELECT pg_backend_pid()');
cmp_ok(memory_used($node), '>', $full, 'a cursor holds memory');
is($node->safe_psql('postgres', "SELECT pg_terminate_backend($backend, 10000)"), 't', 'it is terminated');
ok(wait_for_memory($node, $full), 'and its memory is free again');
eval { $session->quit };
# Tablets that a cursor still reads outlive their release, and no longer than the cursor.
$session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe("SET gpuvm.force = on; SET gpuvm.require = $device; BEGIN");
$session->query_safe('DECLARE c CURSOR FOR SELECT a FROM large WHERE d > 5; MOVE 10 IN c');
$node->safe_psql('postgres', "SELECT gpuvm.release('large')");
cmp_ok(memory_used($node), '>=', $full, 'released tablets stay for the cursor that reads them');
is(engine_pid($node), $pid, 'gpuvmd is the same');
$backend = $session->query_safe('SELECT pg_backend_pid()');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($backend, 10000)");
ok(wait_for_memory($node, $empty), 'and go with it');
eval { $session->quit };

# Memory that runs out in an import.
$node->safe_psql('postgres', 'CREATE TABLE wide AS SELECT a, b, c, b # c AS e, b # a AS f, b + 1 AS g, c + 1 AS h, b - 1 AS i, c - 1 AS j FROM large');
for my $i (1 .. 3)
{
	($ret, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT gpuvm.import('wide'), gpuvm.import('large'), gpuvm.import('wide', '{b,c,e,f,g}')");
	like($stderr, qr/ERROR:  53200: out of memory for imported tables\n(DETAIL:  .*\n)?HINT:  Increase "gpuvm.memory"/, "memory runs out ($i)");
	is(memory_used($node), $empty, 'and nothing of it stays');
}
# Where it runs out for dictionaries, while values become codes or when a dictionary is made of them, texts are kept as they are.
for my $rows (200000, 250000, 300000, 500000)
{
	$node->safe_psql('postgres', "CREATE TABLE texts AS SELECT 'a text of some length ' || i AS t, 'another ' || i AS u, i FROM generate_series(1, $rows) i");
	($ret, $stdout, $stderr) = $node->psql('postgres', "SELECT gpuvm.import('texts', '{t,u}')");
	is("$ret $stdout $stderr", "0 $rows ", "$rows texts are imported, whatever memory their dictionaries take");
	is(with_vm($node, "SELECT count(*) FROM texts WHERE t = 'a text of some length 7' AND u = 'another 7'"), '1', 'and serve');
	$node->safe_psql('postgres', 'DROP TABLE texts');
	is(memory_used($node), $empty, 'and nothing of it stays');
}
# Columns that take too much in whatever form are left out.
$node->safe_psql('postgres', q{CREATE TABLE texts AS SELECT repeat('a longer text ', 5) || i AS t, 'another ' || i AS u, i FROM generate_series(1, 500000) i});
for my $columns ('t,u', 'u,t,i')
{
	($ret, $stdout, $stderr) = $node->psql('postgres', "SELECT gpuvm.import('texts', '{$columns}')");
	is($ret, 0, "memory runs out for texts ($columns)");
	like($stderr, qr/NOTICE:  1 column of table "texts" is left out\nDETAIL:  .*: "t" \(has values that take too much of "gpuvm.memory"\)/, 'and the longest are left out');
	is(with_vm($node, "SELECT count(*) FROM texts WHERE u = 'another 7'"), '1', 'and no others');
	$node->safe_psql('postgres', "SELECT gpuvm.release('texts')");
	is(memory_used($node), $empty, 'and nothing of it stays');
}
$node->safe_psql('postgres', 'DROP TABLE texts');
is(with_vm($node, 'SELECT count(*), sum(a) FROM small WHERE b = 3'), '100|49800', 'what was imported serves');
$node->safe_psql('postgres', "SELECT gpuvm.import('large')");
is(with_vm($node, 'SELECT count(*) FROM large WHERE a > 0'), '600000', 'what fits is imported');
$node->safe_psql('postgres', "SELECT gpuvm.release('large')");
is(memory_used($node), $empty, 'and released');
# Dropping a table, its schema and its database frees its tablets.
$node->safe_psql('postgres', "CREATE SCHEMA s; CREATE TABLE s.t AS TABLE large; ");
$node->safe_psql('postgres', "SELECT gpuvm.import('s.t')");
cmp_ok(memory_used($node), '>', $empty, 'imported');
$node->safe_psql('postgres', 'DROP SCHEMA s CASCADE');
is(memory_used($node), $empty, 'dropped with its schema');
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION gpuvm; CREATE TABLE t AS SELECT hashint8extended(i, 1) AS a FROM generate_series(1, 400000) i');
$node->safe_psql('other', "SELECT gpuvm.import('t')");
cmp_ok(memory_used($node), '>', $empty, 'imported in another database');
$node->safe_psql('postgres', 'DROP DATABASE other');
is(memory_used($node), $empty, 'dropped with its database');

# Memory that runs out for a query's results: it falls back, and says so.
$node->safe_psql('postgres', "SELECT gpuvm.import('wide')");
{
	# cursors that are not read on fill what is left
	my @sessions;
	my $plan = '';
	for my $i (1 .. 20)
	{
		my $s = $node->background_psql('postgres', on_error_stop => 0);
		push @sessions, $s;
		$s->query_safe('SET gpuvm.force = on; BEGIN');
		$s->query_safe('DECLARE c CURSOR FOR SELECT * FROM wide WHERE b <> 5 OFFSET 0; MOVE 10 IN c');
		$plan = $s->query_safe('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM wide WHERE b <> 5');
		last if $plan =~ /Fallback/;
	}
	like($plan, qr/Fallback: (memory short|engine away \(gpuvm.memory is used up\))/, 'memory short for a query: it falls back, and says so');
	is($sessions[-1]->query_safe('SELECT count(*) FROM (SELECT * FROM wide WHERE b <> 5 OFFSET 0) q'), '600000', 'and is answered');
	$_->quit for @sessions;
}
$node->safe_psql('postgres', "SELECT gpuvm.release('wide')");
ok(wait_for_memory($node, $empty), 'nothing stays');

crash_free($node, $log_start, 'the cluster never restarted');
is(engine_pid($node), $pid, 'and gpuvmd is the same from the beginning');
$node->stop;
done_testing();
