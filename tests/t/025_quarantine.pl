# Who is blamed for the end of gpuvmd: the program whose thread crashed, and nobody for a kill.
# GPUVM_TEST_KILLS: how many kills (20).
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use POSIX qw(uname);
use Time::HiRes qw(usleep);

plan skip_all => 'threads are signalled by a system call whose number is not known here' unless (uname())[4] =~ /^(x86_64|aarch64)$/;
my $tgkill = $1 eq 'x86_64' ? 234 : 131;

my $node = new_node('quarantine');
create_big($node);
my $log_start = -s $node->logfile;
my $listed = 'SELECT count(*), count(*) FILTER (WHERE barred_until > now()) FROM gpuvm.quarantine';

sub threads
{
	my ($pid) = @_;

	return map { s{.*/}{}r } glob("/proc/$pid/task/*");
}

sub fallback
{
	my ($query) = @_;

	return $node->safe_psql('postgres', "SET gpuvm.force = on; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query") =~ /Fallback: (.*)/ ? $1 : 'none';
}

# -- kills: sixteen shapes of queries in four sessions, all the time ------------------
my @shapes = map { ("SELECT count(*), sum(l) FROM big WHERE v < 5$_", "SELECT v, count(*) FROM big WHERE id % 7 < $_ GROUP BY v",
		"SELECT count(*), sum(l) FROM (SELECT id, l FROM big WHERE v < 7$_ OFFSET 0) q", "SELECT max(a.id) FROM big a JOIN big b ON a.id = b.l WHERE a.v = $_") } (1 .. 4);
my @sessions = map { $node->background_psql('postgres') } (1 .. 4);
my $kills = 0;

is(fallback($_), 'none', "has a program: $_") for @shapes;
$_->query_safe('SET gpuvm.force = on; SET statement_timeout = 0') for @sessions;
for my $i (0 .. 3)
{
	# Statements without an end: gpuvmd is always at work on some of them.
	my $own = join('; ', map { "PERFORM * FROM ($_) q" } @shapes[ 4 * $i .. 4 * $i + 3 ]);

	$sessions[$i]->query_until(qr/started/, "\\echo started\nDO \$\$ BEGIN LOOP $own; EXIT WHEN EXISTS (SELECT FROM pg_class WHERE relname = 'enough'); END LOOP; END \$\$;\n");
}
for my $i (1 .. ($ENV{GPUVM_TEST_KILLS} || 20))
{
	my $pid = 0;

	# one that lived for less than a second is started with a delay that grows: only its first moments would be tested
	usleep(100_000) until ($pid = engine_pid($node)) > 0;
	usleep(($i % 10 == 0) ? 1_100_000 : 20_000 * ($i % 7));
	$kills += kill 'KILL', $pid;
}
$node->safe_psql('postgres', 'CREATE TABLE enough ()');
$_->quit for @sessions;
is($node->safe_psql('postgres', $listed), '0|0', "$kills kills are nobody's fault");
wait_for_engine($node);
is(fallback($_), 'none', "still runs: $_") for @shapes;

# What is sent to the process says nothing of the thread that it meets.
my $pid = wait_for_engine($node);
kill 'SEGV', $pid;
wait_for_new_engine($node, $pid);
is($node->safe_psql('postgres', $listed), '0|0', 'a signal from outside is nobody\'s fault');

# -- crashes: of the thread that runs a program, whose cursor is open -----------------
my $guilty = 'SELECT id, l FROM big WHERE v < 93';
my $neighbour = 'SELECT id, l FROM big WHERE v < 94';

sub open_cursor
{
	my ($query) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_safe("SET gpuvm.force = on; SET gpuvm.require = $device; BEGIN; DECLARE c CURSOR FOR $query");
	$session->query_safe('MOVE 10 IN c');
	# the rest is PostgreSQL's where the program is barred
	$session->query_safe('RESET gpuvm.require');
	return $session;
}

sub crash
{
	my ($signal) = @_;
	my $pid = wait_for_engine($node);
	my $beside = open_cursor($neighbour);
	my %before = map { $_ => 1 } threads($pid);
	my $session = open_cursor($guilty);
	my ($thread) = grep { !$before{$_} } threads($pid);

	die 'its session has no thread' unless defined $thread;
	syscall($tgkill, int($pid), int($thread), $signal) == 0 or die "tgkill: $!";
	wait_for_new_engine($node, $pid);
	is(fetch_rest($session), 558000 - 10 . '|0', 'every row once');
	is(fetch_rest($beside), 564000 - 10 . '|0', 'and beside it');
	$_->quit for $session, $beside;
	return;
}

SKIP:
{
	skip 'a device does not wait for its client', 1 if on_device();
	crash(11);
	is($node->safe_psql('postgres', q{SELECT hash ~ '^[0-9a-f]{16}$', engine, crashes, last_cause, now() - last_crash < '1 min', barred_until FROM gpuvm.quarantine}),
		't|cpu|1|SIGSEGV|t|', 'one crash of a program is known, and no other');
	is(fallback($guilty), 'none', 'and bars nothing');
	crash(8);
	is($node->safe_psql('postgres', q{SELECT crashes, last_cause, barred_until - last_crash FROM gpuvm.quarantine}), '2|SIGFPE|00:01:00', 'two bar it for a minute');
	is(fallback($guilty), 'quarantined', 'it does not run');
	is(fallback($neighbour), 'none', 'the one beside it does');
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "SET gpuvm.force = on; SET gpuvm.require = $device; $guilty");
	like($stderr, qr/gpuvm.require demands\nDETAIL:  PostgreSQL's own plan would run: quarantined/, 'gpuvm.require tells so');
	is($node->safe_psql('postgres', q{SELECT value > 0 FROM gpuvm.stats WHERE counter = 'fallbacks: quarantined'}), 't', 'and gpuvm.stats');
	ok($node->log_contains('gpuvmd was running program [0-9a-f]{16}', $log_start), 'and the server log');

	# Who may see it, and who may forgive.
	$node->safe_psql('postgres', 'CREATE ROLE nobody; CREATE ROLE monitor IN ROLE pg_read_all_stats');
	is($node->safe_psql('postgres', 'SET ROLE monitor; SELECT count(*) FROM gpuvm.quarantine'), '1', 'pg_read_all_stats sees it');
	for my $question ('SELECT * FROM gpuvm.quarantine', 'SELECT gpuvm.forgive()', 'SELECT * FROM gpuvm.list_quarantine()')
	{
		($ret, $stdout, $stderr) = $node->psql('postgres', "SET ROLE nobody; $question");
		like($stderr, qr/permission denied/, "others may not: $question");
	}
	($ret, $stdout, $stderr) = $node->psql('postgres', 'SET ROLE monitor; SELECT gpuvm.forgive()');
	like($stderr, qr/permission denied/, 'nor is it theirs to forgive');
	($ret, $stdout, $stderr) = $node->psql('postgres', q{SELECT gpuvm.forgive('17')});
	like($stderr, qr/is not the hash of a program/, 'what is no hash');
	is($node->safe_psql('postgres', q{SELECT gpuvm.forgive('00000000000000ff')}), '0', 'a program that is not known');
	is(fallback($guilty), 'quarantined', 'changes nothing');

	# The bar ends by itself; then a run without a crash is worth one crash.
	$node->poll_query_until('postgres', 'SELECT barred_until < now() FROM gpuvm.quarantine') or die 'the bar does not end';
	is(fallback($guilty), 'none', 'after a minute it runs');
	is($node->safe_psql('postgres', 'SELECT crashes FROM gpuvm.quarantine'), '1', 'and one of its crashes is forgotten');
	crash(11);
	is(fallback($guilty), 'quarantined', 'another bars it again');
	is($node->safe_psql('postgres', 'SELECT gpuvm.forgive(hash) FROM gpuvm.quarantine'), '1', 'it is forgiven');
	is($node->safe_psql('postgres', $listed), '0|0', 'and forgotten');
	is(fallback($guilty), 'none', 'and runs');
}

crash_free($node, $log_start, 'the cluster never restarted');
$node->stop;
done_testing();
