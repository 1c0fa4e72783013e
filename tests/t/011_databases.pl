# Databases that are dropped, renamed and copied while the refresher works in them,
# and the extension that is dropped: nothing waits for long, and memory comes back.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = new_node('databases', refreshing(), 'gpuvm.refresh_cost_delay = 100ms');
my $log_start = -s $node->logfile;
my $query = 'SELECT count(*), sum(v) FROM t WHERE id % 10 < 7';

# A database with so many changes that its refresh takes a while.
sub fill
{
	my ($database) = @_;

	$node->safe_psql($database, q{
		CREATE EXTENSION IF NOT EXISTS gpuvm;
		CREATE TABLE t (id int, v int8);
		INSERT INTO t SELECT i, i FROM generate_series(1, 200000) i;
		SELECT gpuvm.import('t');
	});
	return;
}

# Changes the table until a refresher is seen at work there; it may come and go between two looks.
sub refresher_in
{
	my ($database) = @_;

	for my $try (1 .. 10)
	{
		$node->safe_psql($database, 'UPDATE t SET v = v + 1');
		$node->safe_psql($database, 'VACUUM t');
		$node->safe_psql($database, "SET gpuvm.force = on; $query");
		for my $look (1 .. 50)
		{
			return if $node->safe_psql('postgres',
				"SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE '%refresher%' AND datname = '$database'") > 0;
		}
	}
	die "no refresher comes to $database";
}

# Runs a command that may not wait for sessions of a database.
sub quick
{
	my ($what, $command) = @_;
	my $begun = time;
	my ($ret, $stdout, $stderr) = $node->psql('postgres', $command);

	is($ret, 0, $what) or diag($stderr);
	cmp_ok(time - $begun, '<', 5, "$what: at once");
	return;
}

$node->safe_psql('postgres', 'CREATE DATABASE one; CREATE DATABASE two');
fill('one');
my $used = memory_used($node);
cmp_ok($used, '>', 0, 'memory is used');

# Who may not have the database for a command does not make the refresher leave it.
$node->safe_psql('postgres', 'CREATE ROLE nobody');
refresher_in('one');
for my $command ('DROP DATABASE one', 'ALTER DATABASE one RENAME TO mine', 'ALTER DATABASE one SET TABLESPACE pg_default', 'CREATE DATABASE mine TEMPLATE one')
{
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "SET ROLE nobody; $command");
	like($stderr, qr/must be owner|permission denied/, "$command: refused");
}
unlike(slurp_file($node->logfile, $log_start), qr/terminating background worker "gpuvm refresher"/, 'the refresher stayed');

# The copy has the original's object ids, file nodes and LSNs, and rows of its own.
refresher_in('one');
quick('CREATE DATABASE with a template that is refreshed', 'CREATE DATABASE copied TEMPLATE one');
$node->safe_psql('copied', 'UPDATE t SET v = 0 WHERE id <= 1000');
my %expected;
for my $database ('one', 'copied')
{
	$expected{$database} = $node->safe_psql($database, "SET gpuvm.enabled = off; $query");
	is($node->safe_psql($database, "SET gpuvm.force = on; $query"), $expected{$database}, "$database: right at once");
}
isnt($expected{one}, $expected{copied}, 'the two differ');
$node->safe_psql('copied', 'VACUUM t');
for my $database ('one', 'copied')
{
	wait_for_tables($node, $database, 't');
	is($node->safe_psql($database, "SET gpuvm.force = on; SET gpuvm.require = $device; $query"), $expected{$database}, "$database: on the VM");
}

refresher_in('one');
quick('ALTER DATABASE RENAME while it is refreshed', 'ALTER DATABASE one RENAME TO renamed');
$expected{one} = $node->safe_psql('renamed', "SET gpuvm.enabled = off; $query");
is($node->safe_psql('renamed', "SET gpuvm.force = on; SET gpuvm.require = $device; $query"), $expected{one}, 'renamed: on the VM');

refresher_in('renamed');
$node->safe_psql('postgres', 'SET allow_in_place_tablespaces = on; CREATE TABLESPACE elsewhere LOCATION \'\'');
quick('ALTER DATABASE SET TABLESPACE while it is refreshed', 'ALTER DATABASE renamed SET TABLESPACE elsewhere');
is($node->safe_psql('renamed', "SET gpuvm.force = on; $query"), $node->safe_psql('renamed', "SET gpuvm.enabled = off; $query"),
	'in another tablespace: right at once');

refresher_in('renamed');
quick('DROP DATABASE while it is refreshed', 'DROP DATABASE renamed');
quick('DROP DATABASE', 'DROP DATABASE copied');
ok(wait_for_memory($node, 0), 'the memory of dropped databases comes back') or diag(memory_used($node));

# One that is dropped in the midst of its import in the background.
$node->safe_psql('postgres', 'CREATE DATABASE three');
fill('three');
$node->restart;
wait_for_engine($node);
# or right behind it, where it is over between two looks
$node->poll_query_until('postgres', q{SELECT (SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type LIKE '%refresher%' AND datname = 'three')
	OR (SELECT substring(detail FROM '(\d+) of \d+ MB')::int > 0 FROM gpuvm.status() WHERE backend = 'cpu')})
  or die 'no refresher comes to three';
quick('DROP DATABASE while it is imported', 'DROP DATABASE three');
ok(wait_for_memory($node, 0), 'and nothing is left of it') or diag(memory_used($node));

# The extension.
fill('two');
my $session = $node->background_psql('two', on_error_stop => 0);
$session->query_safe("SET gpuvm.force = on; BEGIN; DECLARE c CURSOR FOR SELECT v FROM t; FETCH 1 FROM c");
$node->safe_psql('two', 'DROP EXTENSION gpuvm');
is($session->query('FETCH 1 FROM c') ne '', 1, 'a cursor outlives DROP EXTENSION');
$session->query('COMMIT');
$session->quit;
is($node->safe_psql('two', "SET gpuvm.force = on; $query"), $node->safe_psql('two', "SET gpuvm.enabled = off; $query"), 'DROP EXTENSION: PostgreSQL answers');
ok(wait_for_memory($node, 0), 'DROP EXTENSION: memory comes back') or diag(memory_used($node));
$node->safe_psql('two', 'BEGIN; CREATE EXTENSION gpuvm; SELECT gpuvm.import(\'t\'); ROLLBACK');
$node->safe_psql('two', 'CREATE EXTENSION gpuvm');
is($node->safe_psql('two', 'SELECT count(*) FROM gpuvm.imports'), '0', 'a new extension remembers nothing');
is($node->safe_psql('two', 'SELECT count(*) FROM gpuvm.tables'), '0', 'and has no tables');
crash_free($node, $log_start, 'the cluster never restarted');
$node->stop;
done_testing();
