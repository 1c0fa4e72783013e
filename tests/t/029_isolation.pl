# A wild write in gpuvmd reaches no table, and backends survive garbage in what it can write to.
# GPUVM_TEST_GARBAGE_SECONDS: how long at least (12), GPUVM_TEST_GARBAGE_SEED.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Fcntl qw(SEEK_SET);
use Time::HiRes qw(time usleep);

use constant { SEEK_DATA => 3, SEEK_HOLE => 4, ARENA_PAGE => 65536 };

my $seconds = $ENV{GPUVM_TEST_GARBAGE_SECONDS} || 12;
my $seed = $ENV{GPUVM_TEST_GARBAGE_SEED} || 24;
my $node = new_node('isolation', "gpuvm.memory = '256MB'", "gpuvm.engine_timeout = '500ms'");
my $log_start = -s $node->logfile;
my $engine = engine_pid($node);

plan skip_all => 'the system does not let a process write to the memory of another'
  unless open(my $its_memory, '+<', "/proc/$engine/mem");
close $its_memory;
srand($seed);
create_big($node);
$node->safe_psql('postgres', q{
	CREATE TABLE words (id int, k int, t text, long text, n numeric(12, 2), d date, j jsonb, a int[]);
	INSERT INTO words SELECT i, i % 500, 'word ' || i % 40, repeat(md5(i::text), 1 + i % 3), i / 7.0,
		date '2020-01-01' + i % 900,
		jsonb_build_object('id', i, md5(i::text), jsonb_build_array(i, 'a', null, i * 3)), ARRAY[i, i + 1, NULL, i % 7]
	FROM generate_series(1, 60000) i;
	ANALYZE words;
	CREATE TABLE changed (id int, long text);
	INSERT INTO changed SELECT i, repeat(md5(i::text), 2) FROM generate_series(1, 20000) i;
	ANALYZE changed});
# values that no dictionary would do for are handed over by where they lie
$node->safe_psql('postgres', q{
	UPDATE pg_statistic SET stadistinct = 2000000 FROM pg_attribute
	WHERE starelid = attrelid AND staattnum = attnum AND attrelid IN ('words'::regclass, 'changed'::regclass)
		AND attname IN ('long', 'j', 'a')});
$node->safe_psql('postgres', q{SELECT gpuvm.import('words'), gpuvm.import('changed')});
# rows that every job brings
$node->safe_psql('postgres', q{UPDATE changed SET long = repeat(md5(id::text), 3) WHERE id % 100 = 0});

my @queries = (
	'SELECT count(*), sum(l) FROM big WHERE v < 50',
	'SELECT v, count(*), max(id) FROM big GROUP BY v',
	'SELECT id, l FROM big WHERE v = 7',
	'SELECT id, l FROM big WHERE v < 40 ORDER BY l DESC LIMIT 300',
	'SELECT t, count(*), sum(n), min(d) FROM words GROUP BY t',
	'SELECT id, long, n, d FROM words WHERE k < 9',
	'SELECT id, j, a FROM words WHERE k < 30',
	'SELECT long, count(*) FROM words WHERE k = 77 GROUP BY long',
	'SELECT w.t, count(*), sum(b.l) FROM big b JOIN words w ON b.id = w.id WHERE w.k < 100 GROUP BY w.t',
	'SELECT b.id, w.long FROM big b JOIN words w ON b.id = w.id WHERE w.k = 3',
	'SELECT max(c), count(*) FROM (SELECT v, count(*) c FROM big WHERE id % 3 = 0 GROUP BY v) q JOIN words w ON w.k = q.v',
	'SELECT count(*), sum(length(long)) FROM (SELECT id, long FROM changed WHERE id > 10 OFFSET 0) q',
	'SELECT long, count(*) FROM changed WHERE id % 100 < 2 GROUP BY long',
	'SELECT id, rank() OVER (PARTITION BY k ORDER BY id) FROM words WHERE k < 20',
);
# One number for each answer, whatever the order of its rows.
my @questions = map { "SELECT coalesce(sum(hashtextextended(q::text, 0)), 0), count(*) FROM ($_) q" } @queries;
my @answers = map { without($node, $_) } @questions;

# -- what gpuvmd has mapped ------------------------------------------------------------

# The parts of the arena in its memory: [first address, end, offset in the arena, permissions].
sub mapping
{
	my ($pid) = @_;
	my @parts;

	for (split /\n/, slurp_file("/proc/$pid/maps"))
	{
		push @parts, [ hex $1, hex $2, hex $4, $3 ]
		  if m{^([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) \S+ \d+\s+/memfd:gpuvm arena};
	}
	return @parts;
}

# Those stretches of [from, to) of the arena that have memory: [from, to].
sub stretches
{
	my ($arena, $from, $to) = @_;
	my @found;

	while ($from < $to)
	{
		my $data = sysseek($arena, $from, SEEK_DATA);
		last if !defined $data || $data >= $to;
		my $hole = sysseek($arena, $data, SEEK_HOLE);
		$hole = $to if !defined $hole || $hole > $to;
		push @found, [ $data + 0, $hole + 0 ];
		$from = $hole;
	}
	return @found;
}

# Any bytes, or words such as states, counts and offsets are.
my @garbage =
  map { pack('C16', map { int rand 256 } 1 .. 16), pack('L4', map { int rand(2**int rand 33) } 1 .. 4) } 1 .. 500;

# As a wild write of gpuvmd's would be. False: the kernel refuses it.
sub wild_write
{
	my ($memory, $address) = @_;

	sysseek($memory, $address, SEEK_SET);
	return defined syswrite($memory, $garbage[ rand @garbage ]);
}

# Garbage in so many places that gpuvmd can write to and that have memory: its page of the header, Jobs, results and
# what jobs bring, as often in what is small as in what is large. How many there were.
sub spoil
{
	my ($pid, $count) = @_;
	my ($done, @targets) = (0);

	return 0 unless open(my $memory, '+<', "/proc/$pid/mem") and open(my $arena, '<', "/proc/$pid/fd/3");
	for my $part (grep { $_->[3] =~ /w/ } mapping($pid))
	{
		push @targets, map { [ $part->[0] + $_->[0] - $part->[2], $_->[1] - $_->[0] ] }
		  stretches($arena, $part->[2], $part->[2] + $part->[1] - $part->[0]);
	}
	for (1 .. (@targets ? $count : 0))
	{
		my ($address, $bytes) = @{ $targets[ rand @targets ] };

		$done++ if wild_write($memory, $address + int rand($bytes - 15));
	}
	return $done;
}

my $pid = engine_pid($node);
my @parts = mapping($pid);
my ($fixed, $refused) = (0, 0);

open(my $memory, '+<', "/proc/$pid/mem") or die "cannot open the memory of gpuvmd: $!";
open(my $arena, '<', "/proc/$pid/fd/3") or die "cannot open the arena: $!";
for my $part (grep { $_->[3] !~ /w/ } @parts)
{
	for my $stretch (stretches($arena, $part->[2], $part->[2] + $part->[1] - $part->[0]))
	{
		# each page of tablets, versions, dictionaries, and what PostgreSQL says in the header
		for (my $at = $stretch->[0]; $at + 16 <= $stretch->[1]; $at += ARENA_PAGE)
		{
			my $offset = $at + int rand((($stretch->[1] - $at < ARENA_PAGE) ? $stretch->[1] - $at : ARENA_PAGE) - 15);

			$fixed++;
			$refused++ unless wild_write($memory, $part->[0] + $offset - $part->[2]);
		}
	}
}
cmp_ok($fixed, '>', 100, 'most of the arena is mapped read-only');
is($refused, $fixed, 'and no write gets there');
is($parts[0][3], 'r--s', 'nor to what PostgreSQL says in the header');
is(with_vm($node, $questions[$_]), $answers[$_], "answered: $queries[$_]") for 0 .. $#queries;
close $memory;
close $arena;

# -- garbage in results that nobody has taken yet ---------------------------------------

my $patient = $node->background_psql('postgres', on_error_stop => 0);
my ($cursors, $places) = (0, 0);

$patient->query_safe("SET gpuvm.force = on; SET statement_timeout = '60s'");

my $backend = $patient->query('SELECT pg_backend_pid()');

my $end = time() + $seconds / 3;

while ($cursors == 0 || time() < $end)
{
	for my $query (grep { !/count|max/ } @queries)
	{
		# what gpuvmd says of devices may be garbage from the second time on: whoever runs the query, runs it
		usleep(20_000) until ($pid = engine_pid($node)) > 0;
		$patient->query("BEGIN; DECLARE c CURSOR FOR $query; FETCH 1 FROM c");
		$places += spoil($pid, 10**(1 + $cursors % 4));
		# whatever comes: right or wrong rows, or an error
		$patient->query(q{
			DO $$ DECLARE c refcursor := 'c'; r record;
			BEGIN LOOP FETCH c INTO r; EXIT WHEN NOT FOUND; PERFORM length(r::text); END LOOP; END $$});
		$patient->query('ROLLBACK');
		$cursors++;
	}
}
cmp_ok($places, ">", 100 * $cursors, "garbage where $cursors cursors have their rows");
is($patient->query('SELECT pg_backend_pid()'), $backend, 'the backend lives');
$patient->quit;
kill 'KILL', $pid;

# -- garbage where it can write, while sessions are at work ----------------------------
sub garbage_while_at_work
{
	$node->safe_psql('postgres', q{
		CREATE FUNCTION ask(question text) RETURNS void LANGUAGE plpgsql AS $$
		BEGIN
			EXECUTE 'SELECT count(*) FROM (' || question || ') q';
		EXCEPTION WHEN OTHERS THEN
			NULL;
		END $$});

	my @sessions = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 3;
	my $checker = $node->background_psql('postgres', on_error_stop => 0);

	for my $i (0 .. $#sessions)
	{
		my @mine = (@queries[ $i .. $#queries ], @queries[ 0 .. $i - 1 ]);
		my $asks = join('; ', map { "PERFORM ask(\$q\$$_\$q\$)" } @mine);
		my $enough = q{EXISTS (SELECT FROM pg_class WHERE relname = 'enough')};

		$sessions[$i]->query_safe('SET gpuvm.force = on; SET statement_timeout = 0');
		$sessions[$i]->query_until(qr/started/,
			"\\echo started\nDO \$\$ BEGIN LOOP $asks; EXIT WHEN $enough; END LOOP; END \$\$;\n");
	}
	$checker->query_safe("SET gpuvm.force = on; SET statement_timeout = '60s'");

	my ($rounds, $writes, $ends, $wrong, $lost) = (0, 0, 0, 0, 0);
	my $queries = q{SELECT value FROM gpuvm.stats WHERE counter = 'queries'};
	my $ran = $node->safe_psql('postgres', $queries);

	$end = time() + $seconds * 2 / 3;
	while (time() < $end)
	{
		my $now = engine_pid($node);

		if ($now == 0)
		{
			usleep(20_000);
			next;
		}
		$ends += $now != $pid;
		$pid = $now;
		$writes += spoil($pid, 10000);
		$rounds++;
		# what begins now has the right answer, whoever gives it
		my $i = $rounds % @questions;
		my $answer = $checker->query($questions[$i]);

		$lost++ if $answer eq '';
		$wrong++ if $answer ne '' && $answer ne $answers[$i];
		diag("round $rounds, seed $seed: $answer instead of $answers[$i] of: $queries[$i]") if $answer ne $answers[$i];
	}
	diag("$rounds rounds, $writes writes, gpuvmd ended $ends times");
	diag($node->safe_psql('postgres', q{SELECT counter, value FROM gpuvm.stats WHERE value > 0}));
	cmp_ok($writes, '>', 5000 * $rounds, "garbage in $rounds rounds");
	is($wrong, 0, 'no answer was wrong');
	is($lost, 0, 'none was missing');
	cmp_ok($node->safe_psql('postgres', $queries), '>', $ran, 'the machine was at work');
	$node->safe_psql('postgres', 'CREATE TABLE enough ()');
	$_->quit for @sessions, $checker;
	return;
}

SKIP:
{
	# there a job has been seen to wait for longer than its statement may take, while others kept gpuvmd at work
	skip 'on a device a session whose job is stuck waits until others rest', 1 if on_device();
	garbage_while_at_work();
}
ok(!$node->log_contains('was terminated by signal \d+:', $log_start), 'no backend crashed');
crash_free($node, $log_start, 'and the cluster never restarted');

# What may be left of it ends with gpuvmd.
usleep(20_000) until ($pid = engine_pid($node)) > 0;
kill 'KILL', $pid;
wait_for_new_engine($node, $pid);
is(with_vm($node, $questions[$_]), $answers[$_], "with a new gpuvmd: $queries[$_]") for 0 .. $#queries;
$node->stop;
done_testing();
