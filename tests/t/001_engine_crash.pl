# kill -9 of gpuvmd at every moment: answers stay right, gpuvmd comes back, the
# tablets still serve, and the cluster never restarts.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('engine_crash', 'gpuvm.engine_timeout = 0');
create_big($node);
# Kills gpuvmd from within a query, when it has handed out so many rows, and waits until it is dead.
# (In which order gpuvmd hands out rows is its own affair: a certain row may be the last.)
$node->safe_psql('postgres', q{
	CREATE SEQUENCE rows_once;
	CREATE SEQUENCE rows_twice;
	CREATE FUNCTION kill_engine() RETURNS int LANGUAGE plpgsql VOLATILE AS $$
	DECLARE
		pid text := (SELECT substring(detail FROM 'PID (\d+)') FROM gpuvm.status() WHERE backend = 'cpu');
	BEGIN
		IF pid IS NOT NULL THEN
			EXECUTE format('COPY (SELECT 1) TO PROGRAM %L',
				format('cat >/dev/null; kill -9 %s; while kill -0 %s 2>/dev/null; do sleep 0.01; done', pid, pid));
		END IF;
		RETURN NULL;
	END $$;
});

my $log_start = -s $node->logfile;
my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
my $aggregate = 'SELECT count(*), sum(l) FROM big WHERE v < 50';
my $expected = without($node, $aggregate);

# Before a query.
my $pid = engine_pid($node);
my $session = $node->background_psql('postgres');
$session->query_safe('SET gpuvm.force = on');
is($session->query_safe($aggregate), $expected, 'before any crash');
kill 'KILL', $pid;
# It may be dead already, or die in the middle of this.
is($session->query_safe($aggregate), $expected, 'right after a crash, in a session that was connected');
is($node->safe_psql('postgres', "SET gpuvm.force = on; $aggregate"), $expected, 'right after a crash, in a new session');
my $new = wait_for_new_engine($node, $pid);
isnt($new, $pid, 'gpuvmd comes back with another process id');
is(with_vm($node, $aggregate), $expected, 'the tablets still serve');
is($session->query_safe("SET gpuvm.require = $device; $aggregate"), $expected, 'and serve the session that was connected');
$session->query_safe('RESET gpuvm.require');

# During an aggregation: gpuvmd is stopped, so that the query is certain to be waiting for it.
$pid = $new;
my $backend = $session->query_safe('SELECT pg_backend_pid()');
leave_waiting($node, $session, $backend, $pid, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM big WHERE v < 50");
kill 'KILL', $pid;
my $plan = $session->query_safe('SELECT 1');
like($plan, qr/Fallback: engine away/, 'an aggregation in flight falls back, and says so');
like($plan, qr/Seq Scan on big \(actual rows=300000/, 'and PostgreSQL reads the rows');
$pid = wait_for_new_engine($node, $pid);
is($session->query_safe($aggregate), $expected, 'and its answer is right');
$session->quit;

# In the middle of a query that returns 540,000 rows; the rest comes from the new gpuvmd.
my $rows = q{SELECT count(*), count(DISTINCT id), sum(id), sum(l) FROM (SELECT id, l, %s FROM big WHERE v < 90 OFFSET 0) q};
my $all = without($node, sprintf($rows, '1'));
like($all, qr/^540000\|540000\|/, 'all rows without gpuvm');
is(with_vm($node, sprintf($rows, '1')), $all, 'a query that returns many rows');
my $once = sprintf($rows, q{CASE WHEN nextval('rows_once') = 200001 THEN kill_engine() END});
is(with_vm($node, $once), $all, 'a crash in its middle loses and repeats no row, and it stays on the virtual machine');
wait_for_new_engine($node, $pid);
is(with_vm($node, 'SELECT count(*) FROM big WHERE v = 3'), '6000', 'the tablets still serve');

# The same with values that are read where they lie, in tablets and in what changed since.
$node->safe_psql('postgres', q{
	CREATE SEQUENCE rows_texts;
	CREATE TABLE texts AS SELECT id, CASE WHEN id % 9 > 0 THEN 'text ' || id END AS t FROM big;
	ALTER TABLE texts ALTER t SET (n_distinct = 2000000);
	ANALYZE texts;
});
$node->safe_psql('postgres', q{SELECT gpuvm.import('texts')});
$node->safe_psql('postgres', q{UPDATE texts SET t = t || '!' WHERE id % 20000 = 1});
$pid = engine_pid($node);
my $texts = q{SELECT count(*), count(t), sum(hashtext(t)::bigint) FROM (SELECT id, t, %s FROM texts WHERE t IS NULL OR t LIKE 'text%%' OFFSET 0) q};
is(with_vm($node, sprintf($texts, q{CASE WHEN nextval('rows_texts') = 200001 THEN kill_engine() END})), without($node, sprintf($texts, '1')),
	'a crash in the middle of rows with texts');
wait_for_new_engine($node, $pid);

# In the middle of a cursor that streams.
$pid = engine_pid($node);
$session = $node->background_psql('postgres');
$session->query_safe("SET gpuvm.force = on; SET gpuvm.require = $device; BEGIN");
$session->query_safe('DECLARE c CURSOR FOR SELECT id, l FROM big WHERE v < 80');
$session->query_safe('MOVE 1000 IN c');
kill 'KILL', $pid;
is(fetch_rest($session), 480000 - 1000 . '|0', 'a cursor goes on over a crash: every row once');
$session->query_safe('COMMIT');
$session->quit;
wait_for_new_engine($node, $pid);

# Two kills in one query: they are not the program's fault, which goes on.
my $twice = 'SELECT count(*), count(DISTINCT id), sum(id), sum(l) FROM (SELECT id, l, %s FROM big WHERE v < 91 OFFSET 0) q';
is(with_vm($node, sprintf($twice, q{CASE WHEN nextval('rows_twice') IN (100001, 300001) THEN kill_engine() END})), without($node, sprintf($twice, '1')), 'two crashes in one query: every row once');
wait_for_engine($node);
is(with_vm($node, 'SELECT count(*) FROM (SELECT id, l FROM big WHERE v < 91 OFFSET 0) q'), '546000', 'the program still runs');
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpuvm.quarantine'), '0', 'and is not quarantined');

# Rows that stay in gpuvmd for another program are lost with it, while that hands out rows; and a program that runs for each row finds gpuvmd lost.
wait_for_engine($node);
my $held = q{SELECT sum(value) FROM gpuvm.stats WHERE counter IN ('result sets', 'result bytes')};
my $each = q{SELECT k, (SELECT count(*) FROM big JOIN (SELECT v, count(*) c FROM big GROUP BY v) s ON s.v = big.v AND s.c > k AND big.id < 1000)
	FROM (SELECT CASE WHEN i = 3 THEN coalesce(%s, i) ELSE i END AS k FROM generate_series(1, 4) i OFFSET 0) g};
is($node->safe_psql('postgres', 'SET gpuvm.force = on; ' . sprintf($each, 'kill_engine()')), without($node, sprintf($each, 'NULL::int')), 'gpuvmd is lost between two executions');
wait_for_engine($node);
is($node->safe_psql('postgres', $held), '0', 'nothing is left of them');
$pid = engine_pid($node);
$session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe('SET gpuvm.force = on; BEGIN; DECLARE c CURSOR FOR SELECT big.id FROM big JOIN (SELECT v, count(*) c FROM big GROUP BY v) s ON s.v = big.v; SELECT 1');
is($session->query_safe('FETCH 1 FROM c') =~ /^\d+$/, 1, 'a cursor has its first row');
isnt($session->query_safe($held), '0', 'and holds what it reads');
kill 'KILL', $pid;
wait_for_new_engine($node, $pid);
$session->query('MOVE ALL FROM c');
$session->query('ROLLBACK');
is($node->safe_psql('postgres', $held), '0', 'after its end nothing is held');
is(scalar($session->query($aggregate)), $expected, 'the session goes on');
$session->quit;

# A whole statement, in whose middle gpuvmd goes: before what several programs read is there, and while a cursor has rows of the last.
$pid = wait_for_engine($node);
my $whole = 'WITH s AS (SELECT v, count(*) c, sum(id) i FROM big GROUP BY v) SELECT a.v, a.c, b.i FROM s a JOIN s b ON a.v = b.v + 1 JOIN (SELECT DISTINCT v FROM big) d ON d.v = b.v';
my $settings = 'SET gpuvm.force = on; SET gpuvm.whole_query = on;';
my $ordered = "SELECT count(*), sum(v), sum(c), sum(i) FROM ($whole OFFSET 0) q";
$expected = without($node, $ordered);
like($node->safe_psql('postgres', "$settings EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $whole"), qr/Stages: 3.*Shared Stage: 1/s, 'a whole statement in stages');
$session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe($settings);
is($session->query_safe($ordered), $expected, 'a session that is connected');
$backend = $session->query_safe('SELECT pg_backend_pid()');
leave_waiting($node, $session, $backend, $pid, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $whole");
kill 'KILL', $pid;
like($session->query_safe('SELECT 1'), qr/Fallback: engine away/, 'falls back');
$pid = wait_for_new_engine($node, $pid);
is($session->query_safe($ordered), $expected, 'and its answer is right');
is($node->safe_psql('postgres', $held), '0', 'nothing is left of its rows');
$session->query_safe("BEGIN; DECLARE c CURSOR FOR $whole; SELECT 1");
is($session->query_safe('FETCH 1 FROM c') =~ /^\d+\|/, 1, 'a cursor has its first row');
kill 'KILL', $pid;
wait_for_new_engine($node, $pid);
$session->query('MOVE ALL FROM c');
$session->query('ROLLBACK');
is($node->safe_psql('postgres', $held), '0', 'after its end nothing is held');
is(scalar($session->query($ordered)), $expected, 'the session goes on');
$session->quit;

# Again and again: gpuvmd keeps coming back.
for my $i (1 .. 3)
{
	$pid = wait_for_engine($node);
	kill 'KILL', $pid;
	is($node->safe_psql('postgres', "SET gpuvm.force = on; SELECT count(*) + $i FROM big"), 600000 + $i, "crash $i");
	wait_for_new_engine($node, $pid);
}
is(with_vm($node, 'SELECT count(*) FROM big WHERE v = 4'), '6000', 'the tablets still serve');

is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $started, 'the postmaster is the same');
crash_free($node, $log_start, 'and never restarted its children');
ok($node->log_contains('gpuvmd \(PID \d+\) was terminated by signal 9', $log_start), 'the server log tells of the crashes');

$node->stop;
done_testing();
