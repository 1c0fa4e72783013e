# Roles share the processors, whoever has more sessions.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# devices have queues of their own
my $node = new_node('shares', "gpuvm.memory = '128MB'", 'gpuvm.device = cpu');
my $seconds = 4;
my $query = 'SELECT count(*) FROM pairs x, pairs y WHERE (x.a # y.b) & 7 = 3';
my $script = $node->basedir . '/heavy.sql';
$node->safe_psql('postgres', q{
	CREATE TABLE pairs AS SELECT i AS a, hashint4(i) & 16383 AS b FROM generate_series(1, 16000) i;
	SELECT gpuvm.import('pairs');
	CREATE ROLE greedy LOGIN;
	CREATE ROLE modest LOGIN;
	GRANT SELECT ON pairs TO greedy, modest;
});
append_to_file($script, "$query;\n");

# Clients of a role that run the query again and again.
sub start_clients
{
	my ($role, $clients) = @_;
	my $output = '';
	my $run = IPC::Run::start(
		[ 'env', 'PGOPTIONS=-c gpuvm.force=on -c gpuvm.require=cpu', 'pgbench', '-n', '-c', $clients, '-j', $clients, '-T', $seconds,
			'-h', $node->host, '-p', $node->port, '-U', $role, '-f', $script, 'postgres' ],
		'<', \undef, '>', \$output, '2>&1', IPC::Run::timeout(10 * $PostgreSQL::Test::Utils::timeout_default));

	return { run => $run, output => \$output };
}

# How many were done, once all have ended.
sub done
{
	my ($clients) = @_;

	$clients->{run}->finish;
	${$clients->{output}} =~ /transactions actually processed: (\d+)/ or die "pgbench says: ${$clients->{output}}";
	return $1;
}

is($node->safe_psql('postgres', "SET gpuvm.force = on; SET gpuvm.require = cpu; $query"), without($node, q{
		SELECT sum(x.n * y.n) FROM (SELECT a & 7 AS k, count(*) AS n FROM pairs GROUP BY 1) x,
			(SELECT b & 7 AS k, count(*) AS n FROM pairs GROUP BY 1) y WHERE x.k # y.k = 3}), 'the query');

# By turns, as other programs may have the processors meanwhile.
my ($alone, $beside, $others) = (0, 0, 0);
for my $round (1 .. 3)
{
	my $greedy;

	$alone += done(start_clients('modest', 1));
	$greedy = start_clients('greedy', 12);
	$beside += done(start_clients('modest', 1));
	$others += done($greedy);
}
note("alone $alone, beside twelve sessions of another role $beside, and those $others");
cmp_ok($alone, '>=', 10, 'one session alone does enough to count');
# Half of what it does alone, were the machine the test's own; a thirteenth, and helpers, where roles are not told apart: 0.3 of the half.
cmp_ok($beside, '>=', 0.45 * $alone / 2, 'beside twelve of another role it has much of half of that');
cmp_ok($others, '>=', 0.45 * $alone / 2, 'and so have those');

# The weight is not for everybody to set.
my ($ret, $stdout, $stderr) = $node->psql('postgres', 'SET ROLE modest; SET gpuvm.share = 1000');
like($stderr, qr/permission denied to set parameter "gpuvm.share"/, 'a role does not set its own share');
$node->safe_psql('postgres', 'ALTER ROLE modest SET gpuvm.share = 5');
is($node->safe_psql('postgres', 'SHOW gpuvm.share', connstr => $node->connstr('postgres') . ' user=modest'), '5', 'a superuser sets it');
$node->stop;
done_testing();
