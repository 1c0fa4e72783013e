# Joins whose results are larger than gpuvm.memory, of which only a few rows are
# wanted, and that are canceled.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = new_node('large_results', "gpuvm.memory = '64MB'", 'max_parallel_workers_per_gather = 0');
my $log_start = -s $node->logfile;
$node->safe_psql('postgres', q{
	CREATE TABLE small_a (id int, x int, y int);
	CREATE TABLE small_b (LIKE small_a);
	CREATE TABLE large_a (id int, x int, y int);
	CREATE TABLE large_b (LIKE large_a);
	INSERT INTO small_a SELECT i, i * 37 % 201, i * 7919 % 3501 FROM generate_series(1, 3500) i;
	INSERT INTO small_b SELECT i, i * 53 % 199, i * 104729 % 3511 FROM generate_series(1, 3500) i;
	INSERT INTO large_a SELECT i, i::int8 * 7919 % 100003, i % 7 FROM generate_series(1, 100000) i;
	INSERT INTO large_b SELECT i, i::int8 * 104729 % 100019, i % 7 FROM generate_series(1, 100000) i;
	ANALYZE small_a, small_b, large_a, large_b;
	CREATE FUNCTION waited(pid int) RETURNS int LANGUAGE plpgsql AS $$
	DECLARE
		started timestamptz := clock_timestamp();
	BEGIN
		PERFORM pg_cancel_backend(pid);
		LOOP
			PERFORM pg_stat_clear_snapshot();
			EXIT WHEN EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = waited.pid AND state NOT IN ('active', 'fastpath function call'));
			PERFORM pg_sleep(0.002);
		END LOOP;
		RETURN extract(epoch FROM clock_timestamp() - started) * 1000;
	END $$;
	SELECT gpuvm.import('small_a'), gpuvm.import('small_b'), gpuvm.import('large_a'), gpuvm.import('large_b');
});
# A device that is compiled for the CPU has the right answers, and no haste.
my $patience = $ENV{GPUVM_TEST_CUDA_LIBRARY} ? 50 : 1;
my $force = "SET gpuvm.force = on; SET gpuvm.require = $device";
my $empty = memory_used($node);

# One program joins, or the test stops; what it says of itself.
sub plan_of
{
	my ($query) = @_;
	my $plan = $node->safe_psql('postgres', "$force; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query");

	like($plan, qr/^ *Join: (?:.*\n)*? *Device: /m, 'one program joins');
	unlike($plan, qr/(Nested Loop|Hash Join|Merge Join) \(actual|Fallback/, 'and PostgreSQL does not');
	return $plan;
}

# All rows of 3,500 x 3,500: 12.25 million, 196 MB and more of results in 64 MB.
my $rows = 'SELECT a.id, a.x, b.id AS other, b.y FROM small_a a CROSS JOIN small_b b';
my $sums = "SELECT count(*), sum(id), sum(x), sum(other), sum(y), sum(id::int8 * other), sum(x * y) FROM ($rows OFFSET 0) q";
# From the tables alone: a product of sums is the sum of products.
my $right = 'SELECT n * m, i * m, x * m, o * n, y * n, i * o, x * y FROM (SELECT count(*) AS n, sum(id) AS i, sum(x) AS x FROM small_a) a, (SELECT count(*) AS m, sum(id) AS o, sum(y) AS y FROM small_b) b';
like(plan_of($rows), qr/Custom Scan \(GpuVM\) \(actual rows=12250000 loops=1\)/, 'a cross join with all rows out');
is($node->safe_psql('postgres', "$force; $sums"), without($node, $right), 'every row once');
ok(wait_for_memory($node, $empty), 'and all memory is given back');

# Many rows of an equality join, their client slow: the engine waits, and others are served.
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe("$force; BEGIN");
$session->query_safe('DECLARE c CURSOR FOR SELECT a.id, b.id AS other, a.x, b.x AS y FROM large_a a JOIN large_b b USING (y)');
$session->query_safe('MOVE 100000 IN c');
my $count = 'SELECT count(*), sum(a.x) FROM small_a a JOIN small_b b USING (id)';
is($node->safe_psql('postgres', "$force; $count"), without($node, $count), 'while a cursor waits, others are served');
is($session->query_safe('FETCH 1 FROM c') =~ tr/|//, 3, 'the cursor goes on');
$session->query_safe('MOVE 100000 IN c; COMMIT');
$empty += 4;	# what a session that has run something keeps for its next results
ok(wait_for_memory($node, $empty), 'a cursor that is closed early gives its memory back');

# Ten rows of ten thousand million.
for my $few ('SELECT a.id, b.id FROM large_a a CROSS JOIN large_b b LIMIT 10', 'SELECT a.id, b.id FROM large_a a JOIN large_b b ON a.x < b.x LIMIT 10',
	'SELECT a.id, b.id FROM large_a a JOIN large_b b USING (y) LIMIT 10')
{
	my @ms;

	like(plan_of($few), qr/Limit \(actual rows=10 loops=1\)|Custom Scan \(GpuVM\) \(actual rows=10 /, $few);
	for (1 .. 3)
	{
		my $started = time;
		my $found = $node->safe_psql('postgres', "$force; $few");

		push @ms, 1000 * (time - $started);
		is(scalar(split /\n/, $found), 10, 'ten rows');
	}
	cmp_ok((sort { $a <=> $b } @ms)[0], '<', 1000 * $patience, sprintf('soon: %.0f ms, psql included', (sort { $a <=> $b } @ms)[0]));
	ok(wait_for_memory($node, $empty), 'nothing is left in memory');
}

# Canceled: among pairs that are only counted, among rows that come out, among partners of one key, in three relations.
my $backend = $session->query_safe('SELECT pg_backend_pid()');
for my $long ('SELECT count(*) FROM large_a a, large_b b, large_a c WHERE a.x < b.x AND b.y <= c.y AND a.id <> c.id',
	'SELECT count(*) FROM (SELECT a.id, b.id, random() FROM large_a a, large_b b OFFSET 0) q',
	'SELECT sum(a.x::int8 * b.x) FROM large_a a JOIN large_b b USING (y) JOIN large_a c USING (y)',
	'SELECT count(*) FROM large_a a WHERE NOT EXISTS (SELECT FROM large_b b WHERE b.y = a.y AND b.x + a.x < 0) AND a.x + a.y > -1')
{
	my (@ms, @next);

	for (1 .. 3)
	{
		$session->query_until(qr/submitted/, "\\echo submitted\n$long;\n");
		$node->poll_query_until('postgres', "SELECT query ~ 'large_a' AND (state <> 'active' OR clock_timestamp() - query_start > '300ms') FROM pg_stat_activity WHERE pid = $backend")
		  or die "not running: $long";
		# A GPU may be done by then.
		if (on_device() && $node->safe_psql('postgres', "SELECT state FROM pg_stat_activity WHERE pid = $backend") ne 'active')
		{
			$session->query('SELECT 1');
			next;
		}
		push @ms, $node->safe_psql('postgres', "SELECT waited($backend)");
		push @next, $node->safe_psql('postgres', "$force; SELECT clock_timestamp() AS t \\gset\nSELECT count(*) AS n FROM small_a a JOIN small_b b USING (id) \\gset\nSELECT extract(epoch FROM clock_timestamp() - :'t') * 1000");
		$session->query('SELECT 1');
		like($session->{stderr}, qr/canceling statement due to user request/, $long) if @ms == 1;
		$session->{stderr} = '';
	}
	next unless @ms;
	cmp_ok((sort { $a <=> $b } @ms)[0], '<', 200 * $patience, "canceled within 200 ms: @ms");
	cmp_ok((sort { $a <=> $b } @next)[0], '<', 200 * $patience, "and the engine is free at once: @next");
}
ok(wait_for_memory($node, $empty), 'canceled joins leave nothing in memory');

crash_free($node, $log_start, 'the cluster never restarted');
$session->quit;
$node->stop;
done_testing();
