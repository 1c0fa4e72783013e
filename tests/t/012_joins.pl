# Joins when gpuvmd dies before, during and after the first rows, when their inner
# side is too large, and when they are canceled.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use IO::Socket::UNIX;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# On the CPU, which can go on with a join in the middle; 007 has what a device does.
$device = 'cpu';
my $node = new_node('joins', "gpuvm.memory = '64MB'", 'gpuvm.engine_timeout = 0', 'max_parallel_workers_per_gather = 0');
create_big($node);
$node->safe_psql('postgres', q{
	CREATE TABLE few (id int, g int);
	INSERT INTO few SELECT i, i % 10 FROM generate_series(1, 2000) i;
	CREATE TABLE wide (id int, a int8, b int8, c int8, d int8);
	INSERT INTO wide SELECT i, hashint8extended(i, 1), hashint8extended(i, 2), hashint8extended(i, 3), hashint8extended(i, 4) FROM generate_series(1, 600000) i;
	CREATE TABLE same AS SELECT id, l FROM big;
	CREATE TABLE fifty AS SELECT i AS id FROM generate_series(1, 50) i;
	ANALYZE few, wide, same, fifty;
	SELECT gpuvm.import('few'), gpuvm.import('wide'), gpuvm.import('same'), gpuvm.import('fifty');
});
my $log_start = -s $node->logfile;
my $force = 'SET gpuvm.force = on; SET gpuvm.require = cpu';

sub on_vm
{
	my ($query) = @_;

	return $node->safe_psql('postgres', "$force; $query");
}

# Before the first row: gpuvmd is stopped, so that the query is certain to be waiting for it.
my $pid = engine_pid($node);
my $session = $node->background_psql('postgres', on_error_stop => 0);
my $backend = $session->query_safe('SET gpuvm.force = on; SELECT pg_backend_pid()');
my $counted = 'SELECT count(*), sum(b.l) FROM big b JOIN same s USING (id) WHERE s.l > 10';
my $expected = without($node, $counted);
is($session->query_safe($counted), $expected, 'a join');
is(on_vm($counted), $expected, 'on the virtual machine');
leave_waiting($node, $session, $backend, $pid, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $counted");
kill 'KILL', $pid;
my $plan = $session->query_safe('SELECT 1');
like($plan, qr/Fallback: engine away/, 'a join in flight falls back');
like($plan, qr/Hash Join \(actual rows=599995/, 'and PostgreSQL joins');
$pid = wait_for_new_engine($node, $pid);

# After the first rows. A unit that came whole need not come again, and one that has not begun may come from the next gpuvmd.
$session->query_safe("$force; BEGIN");
$session->query_safe('DECLARE c CURSOR FOR SELECT b.id, s.l FROM big b JOIN same s ON s.id = b.id WHERE b.v < 80');
$session->query_safe('MOVE 1000 IN c');
kill 'KILL', $pid;
is(fetch_rest($session), 480000 - 1000 . '|0', 'a join whose units come whole goes on: every row once');
$session->query_safe('COMMIT; DROP TABLE rest');
$pid = wait_for_new_engine($node, $pid);

# A gpuvmd on its way out still takes connections and ends them. Here a child does so in its place, for ten of them.
my ($supervisor) = slurp_file("/proc/$pid/status") =~ /^PPid:\s+(\d+)/m;
$session->query_safe("$force; BEGIN");
$session->query_safe('DECLARE c CURSOR FOR SELECT b.id, s.l FROM big b JOIN same s ON s.id = b.id WHERE b.v < 70');
$session->query_safe('MOVE 1000 IN c');
kill 'STOP', $supervisor;
kill 'KILL', $pid;
chdir $node->data_dir or die;
unlink 'pg_stat_tmp/gpuvm.sock';
my $dying = IO::Socket::UNIX->new(Type => SOCK_STREAM, Local => 'pg_stat_tmp/gpuvm.sock', Listen => 5) or die "$!";
my $child = fork // die;
if ($child == 0)
{
	$SIG{ALRM} = sub { kill 'CONT', $supervisor; POSIX::_exit(1) };
	alarm 60;
	for (1 .. 10) { close($dying->accept); }
	kill 'CONT', $supervisor;
	POSIX::_exit(0);
}
close($dying);
is(fetch_rest($session), 420000 - 1000 . '|0', 'one that ends sessions at once is not the end: every row once');
waitpid($child, 0);
is($?, 0, 'it was asked');
$session->query_safe('COMMIT; DROP TABLE rest');
$pid = wait_for_new_engine($node, $pid);

# 1,024 rows of the first relation give more than all buffers hold: of such a unit something is always left. What was handed out of it comes again, for nothing.
sub fetch_pairs
{
	my ($rows) = @_;

	$session->query_safe("DO \$\$ DECLARE c refcursor := 'c'; r record; BEGIN FOR i IN 1 .. $rows LOOP FETCH c INTO r; EXIT WHEN NOT FOUND; INSERT INTO pairs VALUES (r.id, r.other); END LOOP; END \$\$");
}

for my $join ('JOIN few y USING (g)', 'LEFT JOIN few y ON y.g = x.g AND y.id % 3 = x.id % 3', 'CROSS JOIN fifty y', 'JOIN few y ON y.id BETWEEN x.id AND x.id + 200',
	'FULL JOIN few y ON y.g = x.g + 3 AND y.id % 2 = x.id % 2')
{
	my $query = "SELECT x.id, y.id AS other FROM few x $join";
	my $rows = $node->safe_psql('postgres', "SELECT count(*) FROM ($query) q");

	$session->query_safe('CREATE TEMP TABLE pairs (id int, other int)');
	$session->query_safe("BEGIN; DECLARE c CURSOR FOR $query");
	fetch_pairs(1000);
	kill 'KILL', $pid;
	fetch_pairs(500000);
	# by PostgreSQL: the next gpuvmd may not have started yet
	is($session->query_safe("SET LOCAL gpuvm.enabled = off; SET LOCAL gpuvm.require = 'any'; SELECT count(*), count(DISTINCT (id, other)), (SELECT count(*) FROM (TABLE pairs EXCEPT $query) q) FROM pairs"), "$rows|$rows|0",
		"after the end of gpuvmd, every row once: $join");
	$session->query_safe('COMMIT; DROP TABLE pairs');
	$pid = wait_for_new_engine($node, $pid);
}
my $pairs = 'SELECT count(*), sum(x.id::int8 * y.id) FROM few x JOIN few y USING (g)';
is(on_vm($pairs), without($node, $pairs), 'the tablets still serve');

# An inner side that is larger than the program may be is met in passes.
my $large = 'SELECT count(*), max(w.a), min(w.b), max(w.c), min(w.d) FROM big b JOIN wide w ON w.id = b.id AND w.a < b.l';
$expected = without($node, $large);
my $rows_of_large = 'SELECT b.id, w.a, w.b, w.c, w.d FROM big b JOIN wide w ON w.id = b.id AND w.a < b.l';
my $explain = "SET gpuvm.force = on; SET gpuvm.job_memory = '16MB'; EXPLAIN (ANALYZE)";
like($node->safe_psql('postgres', "$explain $large"), qr/Engine Memory: (\d{4}|1[0-6]\d{3}) kB.*Passes: [2-9]/s,
	'an inner side that is too large is met in passes');
is($node->safe_psql('postgres', "SET gpuvm.force = on; SET gpuvm.job_memory = '16MB'; $large"), $expected, 'and the answer is the same');
like($node->safe_psql('postgres', "$explain $rows_of_large"), qr/Passes: [2-9]/, 'also where rows leave');
like($node->safe_psql('postgres', "$explain SELECT sum(w.id) FROM big b JOIN few w ON w.id = b.id"), qr/^(?!.*(Fallback|Passes)).*Engine Time/s,
	'a small one is met at once');
like($node->safe_psql('postgres', "SET gpuvm.job_memory = '2MB'; SET gpuvm.force = on; EXPLAIN (ANALYZE) $large"),
	qr/Engine Memory: (\d{1,3}|1\d{3}|20[0-4]\d) kB.*Passes: [12]\d/s, 'within two megabytes, too');
like(($node->psql('postgres', "CREATE ROLE user1; SET ROLE user1; SET gpuvm.job_memory = '1GB'"))[2], qr/permission denied to set parameter "gpuvm.job_memory"/,
	'it is not for everybody to say how much that is');

# Canceled among many pairs.
for my $query ('SELECT count(*) FROM big x, big y WHERE x.v < y.v AND x.l > y.l', 'SELECT x.id, y.id FROM big x, big y WHERE x.v + y.v < 0')
{
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "$force; SET statement_timeout = 300; $query");
	like($stderr, qr/canceling statement due to statement timeout/, 'a join is canceled');
	my $ms = $node->safe_psql('postgres', "SET gpuvm.force = on; SELECT extract(epoch FROM clock_timestamp() - now())::int FROM few x JOIN few y USING (g) LIMIT 1");
	is($ms, '0', 'and gpuvmd is free for the next');
}

crash_free($node, $log_start, 'the cluster never restarted');
$node->stop;
done_testing();
