# Statements whose rows programs find: many sessions that change the same rows, none of whose changes may be lost or done twice,
# beside VACUUM and refresh; and gpuvmd dying in the middle of a change.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('changes', "gpuvm.memory = '512MB'", 'max_connections = 40', 'synchronous_commit = off');
$node->safe_psql('postgres', q{
	CREATE TABLE counters (id int PRIMARY KEY, k int, n int8);
	CREATE TABLE steps (k int, d int8);
	CREATE TABLE queue (id int, k int);
	CREATE TABLE log (n int8);
	CREATE TABLE done (id int);
	INSERT INTO counters SELECT i, i % 20, 0 FROM generate_series(1, 2000) i;
	INSERT INTO steps SELECT i, i + 1 FROM generate_series(0, 19) i;
	INSERT INTO queue SELECT i, i % 7 FROM generate_series(1, 20000) i;
	SELECT gpuvm.import('counters'), gpuvm.import('steps'), gpuvm.import('queue');
	ANALYZE counters, steps, queue;
});

my %scripts = (
	# one table; what is changed says which rows are
	add => q{WITH u AS (UPDATE counters SET n = n + 1 WHERE k = :r AND n % 3 < 2 RETURNING 1) INSERT INTO log SELECT count(*) FROM u;},
	move => q{UPDATE counters SET k = (k + 1) % 20 WHERE k = :r AND n % 2 = 0 AND id % 50 = :r;},
	# a join
	join => q{WITH u AS (UPDATE counters c SET n = n + d FROM steps s WHERE s.k = c.k AND (s.k + s.d) % 20 = :r AND c.id % 3 = 0 RETURNING d) INSERT INTO log SELECT coalesce(sum(d), 0) FROM u;},
	merge => q{WITH l AS (SELECT FROM counters WHERE k = :r AND id % 4 = 0 FOR UPDATE) INSERT INTO log SELECT 0 FROM l LIMIT 1;
		MERGE INTO counters c USING steps s ON s.k = c.k AND c.k = :r AND c.id % 100 = 7 WHEN MATCHED AND n < 0 THEN DELETE WHEN MATCHED THEN DO NOTHING;},
	# rows that are taken, each by one
	take => q{WITH d AS (DELETE FROM queue WHERE id IN (SELECT id FROM queue WHERE k = :r % 7 AND id % 2 = 0 ORDER BY id LIMIT 5 FOR UPDATE SKIP LOCKED) RETURNING id) INSERT INTO done SELECT id FROM d;},
	delete => q{WITH d AS (DELETE FROM queue WHERE id BETWEEN :i AND :i + 20 AND id % 2 = 1 RETURNING id) INSERT INTO done SELECT id FROM d;},
	refresh => q{SELECT count(gpuvm.refresh(t)) FROM unnest('{counters,queue}'::regclass[]) t;},
	vacuum => q{VACUUM counters, queue;},
);
my %often = (add => 6, move => 3, join => 4, merge => 2, take => 5, delete => 4, refresh => 1, vacuum => 1);
my @files;
for my $name (sort keys %scripts)
{
	my $file = $node->basedir . "/$name.sql";

	append_to_file($file, "\\set r random(0, 19)\n\\set i random(1, 20000)\n$scripts{$name}\n");
	push @files, '-f', "$file\@$often{$name}";
}
for my $level ('read committed', 'repeatable read')
{
	my $before = $node->safe_psql('postgres', q{SELECT value FROM gpuvm.stats WHERE counter = 'queries'});

	local $ENV{PGOPTIONS} = "-c gpuvm.force=on -c gpuvm.require=vm -c default_transaction_isolation=" . $level =~ s/ /\\ /r;
	$node->command_ok([ 'pgbench', '-n', '-c', 6, '-j', 2, '-T', 8, '--max-tries', 1000, @files, 'postgres' ], "six sessions, $level: no errors");
	cmp_ok($node->safe_psql('postgres', q{SELECT value FROM gpuvm.stats WHERE counter = 'queries'}) - $before, '>', 100, 'programs ran');
	is(without($node, "SET gpuvm.require = 'any'; SELECT (SELECT sum(n) FROM counters) = (SELECT sum(n) FROM log), count(*) FROM counters"), 't|2000', 'no change is lost, none is done twice');
	is(without($node, "SET gpuvm.require = 'any'; SELECT count(*), count(DISTINCT id), sum(id) FROM (SELECT id FROM queue UNION ALL SELECT id FROM done) q"),
		'20000|20000|200010000', 'each row is taken once');
	cmp_ok(without($node, "SET gpuvm.require = 'any'; SELECT count(*) FROM done"), '>', 100, 'and many are');
}

# gpuvmd dies while a trigger of a row in the middle waits.
create_big($node);
$node->safe_psql('postgres', q{
	CREATE TABLE same AS SELECT id, l FROM big;
	SELECT gpuvm.import('same');
	ANALYZE same;
	CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$;
	CREATE TRIGGER wait BEFORE UPDATE ON big FOR EACH ROW WHEN (OLD.id = 200) EXECUTE FUNCTION wait();
});
for my $change ('UPDATE big SET l = l + 1 WHERE v < 80', 'UPDATE big SET l = same.l + 1 FROM same WHERE same.id = big.id AND v < 80')
{
	my $pid = engine_pid($node);
	my $holder = $node->background_psql('postgres');
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $backend = $session->query_safe("SET gpuvm.device = cpu; SET gpuvm.force = on; SELECT pg_backend_pid()");

	$holder->query_safe('SELECT pg_advisory_lock(1)');
	$session->query_until(qr/begun/, "BEGIN;\n\\echo begun\n$change;\n");
	$node->poll_query_until('postgres', "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $backend") or die 'no row waits';
	kill 'KILL', $pid;
	wait_for_new_engine($node, $pid);
	$holder->query_safe('SELECT pg_advisory_unlock(1)');
	is($session->query_safe(q{SET LOCAL gpuvm.enabled = off; SELECT count(*) FILTER (WHERE l = id * 2 + 1 AND v < 80), count(*) FILTER (WHERE l = id * 2 AND v >= 80) FROM big}),
		'480000|120000', "gpuvmd dies in the middle: every row once: $change");
	$session->query_safe('ROLLBACK');
	$holder->quit;
	$session->quit;
}
$node->stop;
done_testing();
