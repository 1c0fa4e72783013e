# Imports beside transactions that are open: what of a table is served that was loaded before or since, who is named where
# that is not all of it, and what every snapshot sees. A transaction of another database, however old, is none of its business.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('open_transactions', 'max_prepared_transactions = 5');
my $query = 'SELECT count(*), sum(v), min(id), max(id) FROM t WHERE id % 3 < 2';

$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_visibility;
	CREATE FUNCTION rows_of_t() RETURNS bigint STABLE LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT sum(v) FROM t); END';
	CREATE FUNCTION import_t() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN PERFORM gpuvm.import(''t''); RETURN 0; END';
	CREATE FUNCTION import_t_later() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN gpuvm.import(''t''); END';
});

sub load_t
{
	$node->safe_psql('postgres', q{
		DROP TABLE IF EXISTS t;
		CREATE TABLE t AS SELECT i AS id, i % 100 AS v, repeat('x', 80) AS filler FROM generate_series(1, 5000) i;
	});
	return;
}

sub served
{
	return $node->safe_psql('postgres', q{SELECT CASE served WHEN 0 THEN 'none' WHEN 1 THEN 'all' ELSE 'some' END FROM gpuvm.tables WHERE relation = 't'::regclass});
}

# Once nobody is in the way: what VACUUM or the import has marked is what every snapshot sees.
sub map_is_right
{
	my ($what) = @_;

	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_check_visible('t')}), '0', "$what: the visibility map is right");
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_check_frozen('t')}), '0', "$what: what is frozen, too");
	return;
}

# A transaction of each kind: its database, how it begins, and who it is called where it is in the way.
my %kinds = (
	'an xid' => [ 'BEGIN; SELECT pg_current_xact_id()', qr/of process \d+;/ ],
	'a snapshot' => [ 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1', qr/of process \d+;/ ],
	'a snapshot and an xid' => [ 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()', qr/of process \d+;/ ],
	'a prepared transaction' => [ q{BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'p'}, qr/of a prepared transaction;/ ]);
my @imports = (
	q{SELECT gpuvm.import('t')},
	q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT gpuvm.import('t'); COMMIT},
	q{BEGIN; SELECT 1; SELECT gpuvm.import('t'); COMMIT},
	q{DO $$ BEGIN PERFORM gpuvm.import('t'); END $$});
my $next = 0;

for my $kind (sort keys %kinds)
{
	for my $database ('postgres', 'other')
	{
		for my $when ('before', 'after')
		{
			my ($begin, $name) = @{ $kinds{$kind} };
			my $what = "$kind, database $database, begun $when the load";
			# VACUUM goes by a transaction of its own database, too
			my $expected = $database eq 'other' || $when eq 'after' ? 'all' : 'none';
			my $session = $node->background_psql($database);
			my ($ret, $stdout, $stderr);

			load_t() if $when eq 'after';
			$session->query_safe($begin);
			load_t() if $when eq 'before';
			($ret, $stdout, $stderr) = $node->psql('postgres', $imports[$next++ % @imports]);
			is($ret, 0, "$what: imported") or diag($stderr);
			is(served(), $expected, "$what: served");
			is(with_vm($node, $query), without($node, $query), "$what: on the VM") if $expected eq 'all';
			like($stderr, $name, "$what: named") if $expected eq 'none';
			unlike($stderr, qr/copied/, "$what: nothing to say") if $expected eq 'all';
			is($node->safe_psql('postgres', "SET gpuvm.force = on; $query"), without($node, $query), "$what: right");

			# changed while the transaction is open
			$node->safe_psql('postgres', 'UPDATE t SET v = v + 1 WHERE id % 500 = 0; DELETE FROM t WHERE id BETWEEN 1000 AND 1100');
			is($node->safe_psql('postgres', "SET gpuvm.force = on; $query"), without($node, $query), "$what: right after a change");
			$node->safe_psql('postgres', q{SELECT gpuvm.refresh('t')});
			is($node->safe_psql('postgres', "SET gpuvm.force = on; $query"), without($node, $query), "$what: right after a refresh");
			# rows that were deleted VACUUM removes only where no snapshot is in use, the refreshing session's either
			$node->safe_psql('postgres', 'VACUUM t');
			$node->safe_psql('postgres', q{SELECT gpuvm.refresh('t')});
			is(served(), $database eq 'other' ? 'all' : $when eq 'after' ? 'some' : 'none', "$what: served after VACUUM and a refresh");
			is($node->safe_psql('postgres', "SET gpuvm.force = on; $query"), without($node, $query), "$what: right after VACUUM and a refresh");

			$begin =~ /PREPARE/ ? $node->safe_psql($database, q{ROLLBACK PREPARED 'p'}) : $session->query_safe('COMMIT');
			$session->quit;
			$node->safe_psql('postgres', q{SELECT gpuvm.refresh('t')});
			is(served(), 'all', "$what: served in the end");
			is(with_vm($node, $query), without($node, $query), "$what: on the VM in the end");
			map_is_right($what);
		}
	}
}

# In other places of the session an older snapshot may be in use. Beside a transaction of another database that holds back
# the xmin of all of them, more is committed before the import: the older snapshot does not see it.
my $sum = 'SELECT sum(v) FROM t';
$node->safe_psql('postgres', q{BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'ended'});
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'ended'});
my $holder = $node->background_psql('other');
$holder->query_safe('BEGIN; SELECT pg_current_xact_id()');

sub add_rows
{
	$node->safe_psql('postgres', q{INSERT INTO t SELECT i, 1000, repeat('y', 80) FROM generate_series(5001, 6000) i});
	return;
}

load_t();
my $before = without($node, $sum);
my $session = $node->background_psql('postgres');
$session->query_safe('SET gpuvm.force = on; SET client_min_messages = warning');

$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
add_rows();
$session->query_safe(q{SELECT gpuvm.import('t')});
is($session->query_safe($sum), $before, 'REPEATABLE READ: what the snapshot sees');
is($node->safe_psql('postgres', "SET gpuvm.force = on; $sum"), $before + 1_000_000, 'REPEATABLE READ: what others see');
$session->query_safe('COMMIT');
is(served(), 'some', 'REPEATABLE READ: what the snapshot sees is served');
is($session->query_safe($sum), $before + 1_000_000, 'REPEATABLE READ: all in the end');

load_t();
$session->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT rows_of_t()');
add_rows();
$session->query_safe(q{SELECT gpuvm.import('t')});
is($session->query_safe('FETCH c'), $before, 'an open cursor: what it sees');
is($session->query_safe($sum), $before + 1_000_000, 'an open cursor: what later statements see');
$session->query_safe('COMMIT');

load_t();
my $snapshot = $session->query_safe('BEGIN; SELECT pg_export_snapshot()');
add_rows();
$session->query_safe(q{SELECT gpuvm.import('t')});
is($node->safe_psql('postgres', "SET gpuvm.force = on; BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '$snapshot'; $sum; COMMIT"),
	$before, 'an exported snapshot: what who has it sees');
$session->query_safe('COMMIT');

load_t();
$session->query_safe('BEGIN; SELECT pg_advisory_lock(1)');
my $caller = $node->background_psql('postgres');
$caller->query_safe('SET gpuvm.force = on; SET client_min_messages = warning');
$caller->query_until(qr/called/, "\\echo called\nSELECT import_t_later(), rows_of_t();\n\\echo returned\n");
$node->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)}) or die 'does not wait';
add_rows();
$session->query_safe('SELECT pg_advisory_unlock(1); COMMIT');
my $answer = $caller->query_until(qr/returned/, "\n");
like($answer, qr/\|$before$/m, 'a function: what the statement that calls it sees');
$caller->quit;
my ($ret, $stdout, $stderr) = $node->psql('postgres', 'SELECT import_t()');
like($stderr, qr/DETAIL:  .*The oldest snapshot in use is this session's/, 'a function beside the statement that calls it: said to be in the way');
$node->safe_psql('postgres', q{SELECT gpuvm.refresh('t')});
is(served(), 'all', 'refreshed by a statement of its own: served');
is(with_vm($node, $sum), $before + 1_000_000, 'and right');

# Several at once, and a part of it committed late, as synchronous_commit = off does.
load_t();
$node->safe_psql('postgres', q{SET synchronous_commit = off; CREATE TABLE u AS SELECT * FROM t});
$node->safe_psql('postgres', q{SELECT gpuvm.import('t'), gpuvm.import('u')});
is($node->safe_psql('postgres', q{SELECT count(*) FROM gpuvm.tables WHERE served = 1 AND relation IN ('t'::regclass, 'u'::regclass)}), '2', 'two in one statement');

# Beside writers, imported by several sessions: every answer is PostgreSQL's under the same snapshot.
$node->safe_psql('postgres', 'ALTER TABLE t ADD PRIMARY KEY (id)');
my $write = $node->basedir . '/write.sql';
my $import = $node->basedir . '/import.sql';
my $ask = $node->basedir . '/ask.sql';
append_to_file($write, "\\set i random(1, 5000)\nUPDATE t SET v = v + 1 WHERE id BETWEEN :i AND :i + 20;\n");
append_to_file($import, "SELECT gpuvm.import('t');\n");
append_to_file($ask, q{
	BEGIN ISOLATION LEVEL REPEATABLE READ;
	SELECT 1;
	SELECT gpuvm.import('t');
	SELECT sum(v) AS vm, count(*) AS n FROM t \gset
	SET LOCAL gpuvm.enabled = off;
	SELECT 1 / (sum(v) = :vm AND count(*) = :n)::int FROM t;
	COMMIT;
});
{
	local $ENV{PGOPTIONS} = '-c gpuvm.force=on -c client_min_messages=warning';
	$node->command_ok([ 'pgbench', '-n', '-c', 4, '-j', 1, '-T', 10, '--max-tries', 1000, '-f', "$write\@4", '-f', "$import\@1", '-f', "$ask\@2", 'postgres' ],
		'imports beside writers: no answer is wrong');
}
$holder->query_safe('COMMIT');
map_is_right('beside writers');

# A worker's import has no snapshot of a user's. A prepared transaction outlives the restart.
$holder->query_safe(q{BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'p'});
$holder->quit;
$session->quit;
load_t();
$node->safe_psql('postgres', q{SELECT gpuvm.import('t', vacuum => false)});
is(served(), 'none', 'not vacuumed: nothing is served');
$node->append_conf('postgresql.conf', 'gpuvm.load_at_start = on');
$node->restart;
wait_for_engine($node);
$node->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM gpuvm.tables WHERE relation = 't'::regclass AND blocks > 0)});
is(served(), 'all', 'imported in the background after a restart: served');
is(with_vm($node, $query), without($node, $query), 'and right');
$node->safe_psql('other', q{ROLLBACK PREPARED 'p'});
map_is_right('in the background');
$node->stop;
done_testing();
