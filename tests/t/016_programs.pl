# Several programs in one node: gpuvmd dies between them, the statement is cancelled, the groups are too many to put together.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('programs', "gpuvm.memory = '64MB'", 'gpuvm.engine_timeout = 0');
create_big($node);
my $log_start = -s $node->logfile;
my $full = memory_used($node);

# Sixteen programs, half of them with a second one over their groups.
my $many = q{SELECT count(*), sum(hashtext(q::text)::int8) FROM (SELECT v, id % 7 AS a, id % 11 AS b, grouping(v, id % 7, id % 11), count(*), sum(l),
	count(DISTINCT id % 1000) FROM big GROUP BY CUBE (v, id % 7, id % 11)) q};
my $expected = without($node, $many);
is(with_vm($node, $many), $expected, 'many programs');
my @programs = $node->safe_psql('postgres', "SET gpuvm.force = on; EXPLAIN $many") =~ /VM Program \d+/g;
is(scalar @programs, 16, 'are as many as they should be');
is(memory_used($node), $full, 'and leave nothing in memory');

# kill -9 at some moment: before the first row nothing was handed out, so PostgreSQL answers.
for my $ms (2, 20, 60, 120, 250)
{
	my $pid = wait_for_engine($node);
	my $session = $node->background_psql('postgres');

	$session->query_safe('SET gpuvm.force = on');
	$session->query_until(qr/submitted/, "\\echo submitted\n$many;\n");
	usleep($ms * 1000);
	kill 'KILL', $pid;
	like($session->query_safe('SELECT 1'), qr/^\Q$expected\E$/m, "a crash after $ms ms");
	$session->quit;
	wait_for_new_engine($node, $pid);
}

# Stopped until the statement is given up.
my $pid = wait_for_engine($node);
stop_engine($pid);
my ($ret, $stdout, $stderr) = $node->psql('postgres', "SET gpuvm.force = on; SET statement_timeout = '200ms'; $many");
kill 'CONT', $pid;
like($stderr, qr/canceling statement due to statement timeout/, 'a statement of many programs is cancelled');
is(engine_pid($node), $pid, 'which gpuvmd survives');
ok(wait_for_memory($node, $full), 'nothing of it stays');

# 200,000 groups of two programs: more than a quarter of gpuvm.memory. Where work_mem allows it, they are put together all the same.
my $groups = 'SELECT count(*), sum(c), sum(s), sum(d) FROM (SELECT id / 3 AS g, count(*) AS c, sum(l) AS s, count(DISTINCT v) AS d FROM big GROUP BY 1 OFFSET 0) q';
my $explain = "SET gpuvm.force = on; SET gpuvm.whole_query = off; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $groups";
$expected = without($node, $groups);
is($node->safe_psql('postgres', "SET gpuvm.force = on; $groups"), $expected, 'groups that take too much');
like($node->safe_psql('postgres', "SET work_mem = '4MB'; $explain"), qr/Fallback: memory short \(the groups of several programs/, 'are left to PostgreSQL');
is($node->safe_psql('postgres', "SET work_mem = '64MB'; SET gpuvm.require = $device; SET gpuvm.force = on; $groups"), $expected, 'and are not where work_mem is large');
ok(wait_for_memory($node, $full), 'nothing stays');

crash_free($node, $log_start, 'the cluster never restarted');
$node->stop;
done_testing();
