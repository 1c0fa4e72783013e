# A device that loses its context, has little memory, or is interrupted: answers
# stay right, and gpuvmd alone pays for it. With GPUVM_TEST_DEVICE=cuda only; what
# needs a device that fails on demand, only on an emulated one.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

plan skip_all => 'GPUVM_TEST_DEVICE is not cuda' if !on_device();

my @queries = (
	'SELECT count(*), sum(l), min(v), max(id) FROM big WHERE v < 50',
	'SELECT v, count(*), sum(id) FROM big GROUP BY v ORDER BY v LIMIT 5',
	'SELECT count(*) FROM (SELECT id / 3 FROM big GROUP BY 1) s',
	'SELECT count(*), sum(id), sum(l) FROM (SELECT id, l FROM big WHERE v = 17 OFFSET 0) q',
	'SELECT id, l FROM big WHERE v = 3 AND id > 300000 ORDER BY id LIMIT 3');

sub counter
{
	my ($node, $name) = @_;

	return $node->safe_psql('postgres', "SELECT value FROM gpuvm.stats WHERE counter = '$name'");
}

# -- a healthy device -----------------------------------------------------------
my $node = new_node('cuda_faults');
create_big($node);
my %right = map { $_ => without($node, $_) } @queries;
my $emulated = $node->safe_psql('postgres', q{SELECT name LIKE 'emulated%' FROM gpuvm.devices WHERE device LIKE 'cuda%' LIMIT 1}) eq 't';
my $log_start = -s $node->logfile;

for my $transfer ('auto', 'serial', 'stream', 'mapped', 'cached')
{
	is(with_vm($node, "SET gpuvm.transfer = $transfer; $_"), $right{$_}, "$transfer: $_") for @queries;
	next if $transfer eq 'auto';
	like($node->safe_psql('postgres', "SET gpuvm.force = on; SET gpuvm.require = cuda; SET gpuvm.transfer = $transfer; EXPLAIN (ANALYZE) $queries[0]"),
		qr/Device: cuda.*Transfer: $transfer\n/s, 'and EXPLAIN ANALYZE says so');
}
cmp_ok($node->safe_psql('postgres', q{SELECT sum(memory_cached) FROM gpuvm.devices WHERE index > 0}), '>', 0, 'columns are kept on the device');
cmp_ok($node->safe_psql('postgres', q{SELECT memory_pinned FROM gpuvm.devices WHERE index = 0}), '>', 0, 'and the arena is pinned');
cmp_ok(counter($node, 'queries on cuda'), '>', 20, 'gpuvm.stats counts the queries');

# Joins whose rows nobody takes: half of the device's lanes, and everybody else goes on.
$node->safe_psql('postgres', q{CREATE TABLE few AS SELECT i AS id FROM generate_series(1, 1500) i; SELECT gpuvm.import('few')});
my $pairs = 'SELECT a.id, b.id AS other FROM few a, few b WHERE a.id <> b.id';
my @idle;
for my $i (1 .. 4)
{
	push @idle, $node->background_psql('postgres', on_error_stop => 0);
	$idle[-1]->query_safe("SET gpuvm.force = on; SET gpuvm.require = cuda; BEGIN; DECLARE c CURSOR FOR $pairs");
	$idle[-1]->query_safe('MOVE 1 IN c');
}
# A cursor's, as a whole query's rows stay in the engine and wait for nobody.
my ($rc, $stdout, $stderr) = $node->psql('postgres', "SET gpuvm.force = on; SET gpuvm.require = cuda; BEGIN; DECLARE c CURSOR FOR $pairs; MOVE 1 IN c");
like($stderr, qr/other joins wait on the device for their rows to be taken/, 'a fifth cannot wait there');
is($node->safe_psql('postgres', "SET gpuvm.force = on; SELECT count(*) FROM ($pairs OFFSET 0) q"), 1500 * 1499, 'and is run elsewhere');
is(with_vm($node, $_), $right{$_}, "beside joins that wait: $_") for @queries;
for my $session (@idle)
{
	is($session->query_safe('MOVE ALL IN c'), '', 'they go on');
	$session->query_safe('COMMIT');
	$session->quit;
}
is(with_vm($node, "SELECT count(*) FROM ($pairs OFFSET 0) q"), 1500 * 1499, 'then there is room');
# Of those whose clients take their rows any number may come: they wait for each other.
my $script = $node->basedir . '/pairs.sql';
append_to_file($script, "$pairs AND b.id <= 40;\n");
{
	local $ENV{PGOPTIONS} = '-c gpuvm.force=on -c gpuvm.require=cuda';

	$node->command_checks_all([ 'pgbench', '-n', '-c', '8', '-t', '5', '-f', $script, 'postgres' ], 0,
		[qr{transactions actually processed: 40/40}], [qr/^((?!ERROR).)*$/s], 'eight sessions of joins that end in rows all run there');
}
# A device's rows have no order that the next gpuvmd could count off.
my $lost = $node->background_psql('postgres', on_error_stop => 0);
$lost->query_safe("SET gpuvm.force = on; SET gpuvm.require = cuda; BEGIN; DECLARE c CURSOR FOR $pairs");
$lost->query_safe('MOVE 1 IN c');
my $killed = engine_pid($node);
kill 'KILL', $killed;
$lost->query('MOVE ALL IN c');
like($lost->{stderr}, qr/a join cannot go on after its first rows/, 'gpuvmd lost in the midst of a join on the device');
$lost->quit;
wait_for_new_engine($node, $killed);

# Cancellation at any moment, within a bound.
my $pid = engine_pid($node);
my $bound = $emulated ? 5 : 0.05;
my $longest = 0;
my $canceled = 0;
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe("SET gpuvm.force = on; SET gpuvm.require = cuda");
for my $ms (1, 2, 3, 5, 8, 13, 21, 34)
{
	for my $query (@queries)
	{
		my $start = time;

		$session->query("SET statement_timeout = $ms; $query");
		my $over = time - $start - $ms / 1000;

		$longest = $over if $over > $longest;
		$canceled++ if $session->{stderr} =~ /statement timeout/;
		unlike($session->{stderr}, qr/ERROR:(?!  canceling statement due to statement timeout)/, "canceled after $ms ms or not at all");
		$session->{stderr} = '';
	}
}
$session->query_safe('RESET statement_timeout');
cmp_ok($longest, '<', $bound + 0.1, sprintf('%d were canceled, at most %.0f ms late', $canceled, $longest * 1000));
is($session->query_safe($_), $right{$_}, "after that: $_") for @queries;
$session->quit;
is(engine_pid($node), $pid, 'by the same gpuvmd');
crash_free($node, $log_start, 'the cluster never restarted');

# Cursors that are not read on do not keep the device from others, and go on where they were.
my @readers;
for my $i (1 .. 12)
{
	my $reader = $node->background_psql('postgres');

	$reader->query_safe("SET gpuvm.force = on; SET gpuvm.require = cuda; BEGIN");
	$reader->query_safe('DECLARE c CURSOR FOR SELECT id, l FROM big WHERE v < 95; MOVE 10 IN c');
	push @readers, $reader;
}
is(with_vm($node, "SET statement_timeout = '60s'; $_"), $right{$_}, "beside twelve open cursors: $_") for @queries;
for my $reader (@readers[ 0, 11 ])
{
	is(fetch_rest($reader), 570000 - 10 . '|0', 'a cursor hands out every row once');
}
$_->quit for @readers;

# Little device memory: columns make room, or the CPU takes over, and nobody sees an error.
$node->append_conf('postgresql.conf', "gpuvm.device_memory = '8MB'\n");
$node->restart;
wait_for_engine($node);
$node->safe_psql('postgres', q{SET gpuvm.tablet_size = '1MB'; SELECT gpuvm.import('big')});
for my $round (1, 2)
{
	for my $query (@queries)
	{
		is($node->safe_psql('postgres', "SET gpuvm.force = on; SET gpuvm.require = vm; $query"), $right{$query}, "8 MB of device memory: $query");
	}
}
is($node->safe_psql('postgres', q{SELECT bool_and(memory_cached + memory_working <= memory_limit) FROM gpuvm.devices WHERE index > 0}), 't',
	'the limit is kept');
$node->stop;

# -- a device that fails ---------------------------------------------------------
SKIP:
{
	skip 'the device is real', 1 if !$emulated;

	# The context is lost at a launch: gpuvmd ends, is started again, and the query is answered.
	local $ENV{GPUVM_EMULATED_FAIL_LAUNCH} = 4;
	my $broken = new_node('cuda_broken');

	create_big($broken);
	$log_start = -s $broken->logfile;
	my $first = engine_pid($broken);
	# A program at whose launch it is lost twice is kept from the device, and from nothing else.
	for my $i (1 .. 20)
	{
		wait_for_engine($broken);
		is($broken->safe_psql('postgres', "SET gpuvm.force = on; $queries[0]"), $right{ $queries[0] }, 'a program that loses the context');
		last if $broken->safe_psql('postgres', 'SELECT count(*) FROM gpuvm.quarantine WHERE crashes = 2') eq '1';
	}
	is($broken->safe_psql('postgres', q{SELECT engine, crashes, last_cause, barred_until > last_crash FROM gpuvm.quarantine}), 'cuda|2|device|t', 'is barred, and no other');
	wait_for_engine($broken);
	like($broken->safe_psql('postgres', "SET gpuvm.force = on; SET gpuvm.require = vm; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $queries[0]"),
		qr/Device: cpu\n *Device Fallback: quarantined/, 'it runs on the CPU');
	for my $query (@queries, @queries)
	{
		is($broken->safe_psql('postgres', "SET gpuvm.force = on; $query"), $right{$query}, "a context that is lost: $query");
	}
	$broken->poll_query_until('postgres',
		qq{SELECT loaded AND detail !~ 'PID $first,' FROM gpuvm.status() WHERE backend = 'cpu'}) or die 'gpuvmd does not come back';
	ok(1, 'gpuvmd was started again');
	like(slurp_file($broken->logfile, $log_start), qr/gpuvmd: device 0: .* failed: \S/, 'and the log says why');
	# A device that does so again and again is left alone.
	my $off = 0;
	for my $i (1 .. 100)
	{
		is($broken->safe_psql('postgres', "SET gpuvm.force = on; $queries[$i % @queries]"), $right{ $queries[ $i % @queries ] }, 'and again');
		$off = $broken->safe_psql('postgres', q{SELECT detail ~ 'is off' FROM gpuvm.status() WHERE backend = 'cuda'}) eq 't';
		last if $off;
		sleep 1 if $i % 4 == 0;
	}
	ok($off, 'until CUDA is switched off');
	is($broken->safe_psql('postgres', "SET gpuvm.force = on; SET gpuvm.require = vm; $_"), $right{$_}, "the CPU goes on: $_") for @queries;
	crash_free($broken, $log_start, 'the cluster never restarted');
	$broken->stop;
}
done_testing();
