# Memory comes back to those who need it: from sessions that are idle, and from those that have gone.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

# with such a timeout nobody ends a gpuvmd that is stopped
my $node = new_node('memory_owners', "gpuvm.memory = '256MB'", 'max_connections = 120', "gpuvm.engine_timeout = '1h'");
my $log_start = -s $node->logfile;
create_big($node);

# What tables and sessions hold, in bytes, and what is spare, in MB.
sub bytes_used
{
	return $node->safe_psql('postgres', q{SELECT memory_cached FROM gpuvm.devices WHERE device = 'cpu'});
}

sub spare
{
	return $node->safe_psql('postgres',
		q{SELECT coalesce(substring(detail FROM '(\d+) MB spare'), '0') FROM gpuvm.status() WHERE backend = 'cpu'});
}

# Clients that run the query, one after another, and then nothing; returns once all have, but for those that fail
# and leave.
sub idle_clients
{
	my ($clients, $query) = @_;
	my $script = $node->basedir . '/idle.sql';
	my ($out, $err) = ('', '');

	unlink $script;
	append_to_file($script, "SELECT pg_advisory_lock(1);\n$query;\nSELECT pg_advisory_unlock(1);\n\\sleep 300 s\n");
	my $run = IPC::Run::start(
		[ 'env', 'PGAPPNAME=idle', "PGOPTIONS=-c gpuvm.force=on -c gpuvm.require=$device", 'pgbench', '-n',
			'-c', $clients, '-t', '1', '-h', $node->host, '-p', $node->port, '-f', $script, 'postgres' ],
		'<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout(10 * $PostgreSQL::Test::Utils::timeout_default));
	$node->poll_query_until('postgres',
		q{SELECT count(*) > 0 AND bool_and(state = 'idle' AND query ~ 'unlock') FROM pg_stat_activity
		  WHERE application_name = 'idle'})
	  or diag("clients that are not idle: $out$err");
	return $run;
}

sub idle_count
{
	return $node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'idle'});
}

# Idle sessions hold next to nothing, whatever their queries have needed.
my $empty = bytes_used();
my $run = idle_clients(100, 'SELECT id, l FROM big WHERE v = 7 AND id < 1000');
is(idle_count(), 100, 'a hundred sessions have run a query of rows, and are idle');
# what was spare a moment ago may be more
for (1 .. 100)
{
	last if bytes_used() - $empty + (spare() << 20) <= 32 << 20;
	usleep(100_000);
}
cmp_ok(bytes_used() - $empty + (spare() << 20), '<=', 32 << 20, 'they hold at most 32 MB, with what is spare');
is(with_vm($node, 'SELECT count(*) FROM (SELECT id, l FROM big WHERE v = 7 OFFSET 0) q'), '6000',
	'another session finds memory');
$run->kill_kill;
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'idle'});
is(bytes_used(), $empty, 'and when they have gone, nothing');

# Sessions that end while gpuvmd is stopped: their memory is back when it goes on, or when it was killed and reaped.
for my $signal ('CONT', 'KILL')
{
	my $pid = engine_pid($node);

	$run = idle_clients(40, 'SELECT id, l FROM big WHERE v = 7 AND id < 1000');
	is(idle_count(), 40, 'forty sessions have run a query');
	stop_engine($pid);
	$run->kill_kill;
	ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'idle'}),
		'they end while gpuvmd is stopped');
	cmp_ok(bytes_used(), '>=', $empty + 40 * 65536, 'what it may write to is not free');
	kill $signal, $pid;
	ok($node->poll_query_until('postgres', qq{SELECT memory_cached = $empty FROM gpuvm.devices WHERE device = 'cpu'}),
		"after SIG$signal nothing is lost");
	wait_for_new_engine($node, $pid) if $signal eq 'KILL';
	is(engine_pid($node), $pid, 'gpuvmd has gone on') if $signal eq 'CONT';
}
is(with_vm($node, 'SELECT count(*) FROM big WHERE v = 7'), '6000', 'queries are answered');
is(bytes_used(), $empty, 'and hold nothing');

# What is spare is anybody's: an import that finds no room otherwise gets it.
$node->safe_psql('postgres', q{
	CREATE TABLE fill AS SELECT hashint8extended(i, 1) a, hashint8extended(i, 2) b, hashint8extended(i, 3) c
	FROM generate_series(1, 2000000) i});
with_vm($node, 'SELECT count(*) FROM (SELECT id, l FROM big WHERE v <> 7 OFFSET 0) q');
cmp_ok(spare(), '>', 0, 'a query of rows leaves memory spare');
my @tables;
for my $rows (2000000, 200000, 20000)
{
	for my $i (1 .. 12)
	{
		my $table = "fill_${rows}_$i";

		$node->safe_psql('postgres', "CREATE TABLE $table AS SELECT * FROM fill LIMIT $rows");
		my ($ret, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT gpuvm.import('$table')");
		if ($ret != 0)
		{
			like($stderr, qr/ERROR:  53200: out of memory for imported tables\nDETAIL: .* reserved for the results of queries\./,
				"imports of $rows rows fill the memory");
			last;
		}
		push @tables, $table;
	}
}
is(spare(), 0, 'to the last of what was spare');

# But for what is reserved for results.
is(with_vm($node, 'SELECT count(*) FROM (SELECT v % 13, count(*) FROM big GROUP BY 1) q'), '13', 'groups find memory');
is(with_vm($node, 'SELECT count(*) FROM (SELECT id, l FROM big WHERE v = 7 OFFSET 0) q'), '6000', 'and so do rows');
$node->safe_psql('postgres', "SELECT gpuvm.release('$_')") for @tables;
is(bytes_used(), $empty, 'and leave it');

# A refresh in the background that would exceed its owner's quota leaves the table as it is, and gpuvm.tables says why.
my $state = q{SELECT state FROM gpuvm.tables WHERE relation = 'grows'::regclass};
$node->safe_psql('postgres', q{
	CREATE TABLE grows AS SELECT i AS a, hashint8extended(i, 1) AS b FROM generate_series(1, 50000) i});
$node->safe_psql('postgres', q{
	SELECT gpuvm.import('grows');
	INSERT INTO gpuvm.quotas SELECT role::regrole, bytes FROM gpuvm.memory WHERE role = current_user;
	INSERT INTO grows SELECT i, hashint8extended(i, 1) FROM generate_series(50001, 300000) i});
$node->safe_psql('postgres', 'VACUUM grows');
$node->append_conf('postgresql.conf', join("\n", refreshing()) . "\n");
$node->reload;
ok($node->poll_query_until('postgres', "SELECT state = 'table changed, not refreshed: quota of role \"' || current_user || '\" for imported tables is exceeded' FROM ($state) t"),
	'a refresh exceeds the quota') or diag($node->safe_psql('postgres', $state));
is(with_vm($node, 'SELECT count(*), sum(a) FROM grows WHERE a > 49990'), '250010|43750624955', 'the answers are right all the same');
is($node->safe_psql('postgres', 'SELECT bytes <= quota FROM gpuvm.memory WHERE role = current_user'), 't', 'nothing of it stays');
$node->safe_psql('postgres', 'UPDATE gpuvm.quotas SET bytes = 1000000000');
$node->safe_psql('postgres', q{SELECT gpuvm.refresh('grows')});
is($node->safe_psql('postgres', $state), 'current', 'with a larger quota it is refreshed');

crash_free($node, $log_start, 'the cluster never restarted');
$node->stop;
done_testing();
