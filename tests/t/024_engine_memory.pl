# gpuvmd's own memory is bounded: jobs that do not fit side by side wait for each other, and what does not fit at all falls back.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

# join indexes would take the memory with them
my $node = new_node('engine_memory', "gpuvm.memory = '256MB'", "gpuvm.engine_memory = '80MB'", 'gpuvm.index_memory = 0',
	'gpuvm.device = cpu', 'gpuvm.force = on');

$node->safe_psql('postgres', q{
	CREATE TABLE wide AS SELECT hashint8extended(i, 1) AS k, i AS v FROM generate_series(1, 1000000) i;
	CREATE TABLE few AS SELECT i AS v FROM generate_series(1, 1000) i;
	SELECT gpuvm.import('wide'), gpuvm.import('few')});

my $groups = 'SELECT count(*), sum(n) FROM (SELECT k, sum(v) AS n FROM wide GROUP BY k OFFSET 0) q';
my $right = '1000000|500000500000';
my $join = 'SELECT count(*), sum(b.v) FROM wide a JOIN wide b ON a.k = b.k';
my $joins = "$join JOIN wide c ON c.k = b.k AND c.v = a.v";
my $wide = 'SELECT count(*) FROM (SELECT k, v, v * 2, v * 3, sum(v) FROM wide GROUP BY 1, 2, 3, 4 OFFSET 0) q';

sub setting
{
	my ($name, $value) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET $name = '$value'");
	$node->reload;
	# the supervisor has passed it on
	ok($node->poll_query_until('postgres', "SELECT current_setting('$name') = '$value'"), "$name = $value");
	$node->safe_psql('postgres', 'SELECT pg_sleep(0.3)');
	return;
}

is($node->safe_psql('postgres', "SET gpuvm.require = cpu; $groups"), $right, 'a million groups fit');
my ($peak) = $node->safe_psql("postgres", "EXPLAIN (ANALYZE) $groups") =~ /Rows Stay: .*Engine Memory: (\d+) kB/s;
cmp_ok($peak, '>', 24 * 1024, 'and EXPLAIN ANALYZE says how much they need');

# Six sessions, of which one fits at a time.
my $before = $node->safe_psql('postgres', q{SELECT value FROM gpuvm.stats WHERE counter = 'restarts for memory'});
my $script = $node->basedir . '/groups.sql';
append_to_file($script, "$groups;\n");
{
	local $ENV{PGOPTIONS} = '-c gpuvm.require=cpu';

	$node->command_checks_all([ 'pgbench', '-n', '-c', '6', '-t', '3', '-f', $script, 'postgres' ], 0,
		[qr{transactions actually processed: 18/18}], [qr/^((?!ERROR).)*$/s], 'of six sessions none falls back for want of memory');
}
cmp_ok($node->safe_psql('postgres', q{SELECT value FROM gpuvm.stats WHERE counter = 'restarts for memory'}), '>', $before,
	'they have waited for each other');

# A cursor that is not read on holds its memory for as long as it likes: nobody waits for that.
my $idle = $node->background_psql('postgres', on_error_stop => 0);
$idle->query_safe('SET gpuvm.require = cpu; BEGIN; DECLARE c CURSOR FOR
	SELECT a.k, b.k AS k2, a.v, b.v AS v2, a.v * 2 AS v3, a.v * 3 AS v4, a.k / 3 AS k3, b.k / 3 AS k4 FROM wide a JOIN wide b ON a.v = b.v');
$idle->query_safe('MOVE 1 IN c');
ok($node->poll_query_until('postgres', q{
		SELECT value >= 16 << 20 AND EXISTS (SELECT FROM gpuvm.activity WHERE state = 'waiting for the client')
		FROM gpuvm.stats WHERE counter = 'engine memory'}),
	'a cursor holds memory');
my $since = time;
is($node->safe_psql('postgres', $wide), 1000000, 'beside it what does not fit any more is answered');
cmp_ok(time - $since, '<', 30, 'and does not wait for it');
is($idle->query_safe('MOVE ALL IN c'), '', 'the cursor goes on');
$idle->query_safe('COMMIT');
$idle->quit;
is($node->safe_psql('postgres', "SET gpuvm.require = cpu; $groups"), $right, 'and leaves what it had');

# Rows that stay for another program of the query: there is room for those of one and a half.
setting('gpuvm.result_memory', '24MB');
my $not_stayed = q{SELECT value FROM gpuvm.stats WHERE counter = 'results that did not stay'};
my $both = $groups =~ s/count\(\*\)/count(k)/r;
my $engine = $node->safe_psql('postgres', q{SELECT substring(detail FROM 'PID ([0-9]+)') FROM gpuvm.status() WHERE backend = 'cpu'});
my $none = $node->safe_psql('postgres', $not_stayed);
append_to_file($node->basedir . '/both.sql', "$both;\n");
{
	local $ENV{PGOPTIONS} = '-c gpuvm.require=cpu';

	$node->command_checks_all([ 'pgbench', '-n', '-c', '6', '-t', '3', '-f', $node->basedir . '/both.sql', 'postgres' ], 0,
		[qr{transactions actually processed: 18/18}], [qr/^((?!ERROR).)*$/s], 'six sessions with rows that stay');
}
is($node->safe_psql('postgres', $not_stayed), $none, 'all of them stayed');
$idle = $node->background_psql('postgres', on_error_stop => 0);
$idle->query_safe('SET gpuvm.require = cpu; BEGIN; DECLARE c CURSOR FOR
	SELECT q.k, q.n, w.v FROM (SELECT k, sum(v) AS n FROM wide GROUP BY k OFFSET 0) q JOIN wide w ON w.v = q.n');
$idle->query_safe('MOVE 1 IN c');
cmp_ok($node->safe_psql('postgres', q{SELECT value FROM gpuvm.stats WHERE counter = 'result bytes'}), '>', 12 << 20,
	'a cursor that is not read keeps its rows');
$since = time;
like($node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF) $both"), qr/Rows Did Not Stay: out of memory for result sets/,
	'what finds no room beside it says so');
cmp_ok(time - $since, '<', 30, 'and does not wait for it');
is($node->safe_psql('postgres', $both), $right, 'the answer is right');
is($node->safe_psql('postgres', $not_stayed), $none + 2, 'and it is counted');
is($idle->query_safe('MOVE ALL IN c'), '', 'the cursor goes on');
$idle->query_safe('COMMIT');
$idle->quit;
like($node->safe_psql('postgres', "SET gpuvm.require = cpu; EXPLAIN (ANALYZE, COSTS OFF) $both"), qr/Rows Stay: 1000000/, 'and leaves what it had');
is($node->safe_psql('postgres', q{SELECT substring(detail FROM 'PID ([0-9]+)') FROM gpuvm.status() WHERE backend = 'cpu'}), $engine, 'by the same gpuvmd');

# Who waits for memory says so, and can be canceled.
setting('gpuvm.engine_memory', '56MB');
my $long = $node->background_psql('postgres', on_error_stop => 0);
$long->query_safe("SET application_name = 'long'");
$long->query_until(qr//, "SELECT count(*) FROM (SELECT a.k, count(*) FROM wide a, few b WHERE a.v <> b.v GROUP BY a.k OFFSET 0) q;\n");
ok($node->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM gpuvm.activity WHERE state = 'running')}) &&
	$node->poll_query_until('postgres', q{SELECT value > 30 << 20 FROM gpuvm.stats WHERE counter = 'engine memory'}),
	'a job that takes its time, and memory');
my $wait = $node->safe_psql('postgres', q{SELECT current_setting('server_version_num')::int >= 170000}) eq 't' ? 'GpuvmJob' : 'Extension';
ok($node->poll_query_until('postgres', qq{SELECT wait_event = '$wait' FROM pg_stat_activity WHERE application_name = 'long'}),
	'pg_stat_activity says what it waits for');
my $waits = $node->background_psql('postgres', on_error_stop => 0);
$waits->query_safe("SET application_name = 'waits'");
$waits->query_until(qr//, "$join;\n");
ok($node->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM gpuvm.activity WHERE state = 'waiting for memory')}),
	'another waits for its memory');
$since = time;
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'waits'});
ok($node->poll_query_until('postgres', q{SELECT state = 'idle' FROM pg_stat_activity WHERE application_name = 'waits'}),
	'and ends when it is canceled');
cmp_ok(time - $since, '<', 10, 'at once');
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'long'});
$node->poll_query_until('postgres', q{SELECT state = 'idle' FROM pg_stat_activity WHERE application_name = 'long'});
$_->quit for ($long, $waits);
is($node->safe_psql('postgres', "SET gpuvm.require = cpu; $join"), $right, 'nothing is kept for those that have gone');

# What does not fit, with nobody beside it.
setting('gpuvm.engine_memory', '32MB');
is($node->safe_psql('postgres', $joins), $right, 'what does not fit is answered');
my ($rc, $stdout, $stderr) = $node->psql('postgres', "SET gpuvm.require = cpu; $joins");
like($stderr, qr/out of memory/, 'by PostgreSQL');
is($node->safe_psql('postgres', 'SET gpuvm.require = cpu; SELECT count(*) FROM few WHERE v > 10'), '990', 'what fits, fits');
($rc, $stdout, $stderr) = $node->psql('postgres', "ALTER SYSTEM SET gpuvm.engine_memory = '8MB'");
like($stderr, qr/invalid value for parameter "gpuvm.engine_memory".*must be 0 or at least 32 MB/s, 'there is a least value');

$node->stop;
done_testing();
