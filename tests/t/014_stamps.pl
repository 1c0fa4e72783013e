# Rows that change, and are vacuumed at once, while the background imports and refreshes their table: a process without a
# snapshot keeps no VACUUM from setting a bit of the visibility map again, so only the order in which it reads can be right.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $query = 'SELECT count(*), sum(v), sum(v * id) FROM t';
my $node = new_node('stamps', refreshing());
my $log_start = -s $node->logfile;

$node->safe_psql('postgres', q{
	CREATE TABLE t (id int PRIMARY KEY, v int8) WITH (fillfactor = 70);
	INSERT INTO t SELECT i, 0 FROM generate_series(1, 200000) i;
	SELECT gpuvm.import('t');
});

# Changes a block and makes it visible to all again, over and over: hardly any is changed twice, which would mend what had gone wrong.
sub change_for
{
	my ($seconds) = @_;
	my $end = time + $seconds;
	my $rounds = 0;

	while (time < $end)
	{
		$node->safe_psql('postgres', 'UPDATE t SET v = v + 1 WHERE id = ' . int(rand(200000)));
		$node->safe_psql('postgres', 'VACUUM t');
		$rounds++;
		sleep 0.02;
	}
	return $rounds;
}

sub check
{
	my ($what) = @_;

	wait_for_tables($node, 'postgres', 't');
	for my $i (1 .. 2)
	{
		is(with_vm($node, $query), without($node, $query), "$what: the answer is right, $i");
		sleep 1.2;				# the refresher looks again
	}
	return;
}

# Any later VACUUM that sets a bit makes queries look at the changed pages again: so changes end while the work goes on.
for my $round (1 .. 2)
{
	# It imports t, which is remembered.
	$node->restart;
	$node->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM gpuvm.tables WHERE relation = 't'::regclass AND state IN ('being imported', 'current'))})
	  or die 't is not imported';
	cmp_ok(change_for(1), '>', 0, "changes while it is imported, $round");
	check("import $round");
}
for my $round (1 .. 4)
{
	cmp_ok(change_for(1 + $round / 4), '>', 0, "changes while it is refreshed, $round");
	check("refresh $round");
}
crash_free($node, $log_start, 'the cluster never restarted');
$node->stop;
done_testing();
