# No CUDA: the library is not there, or switched off, or none, or finds no driver.
# The server starts and answers all the same, and says what is missing and where a
# query ran instead.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Whatever this machine has: these tests say which library there is.
$GpuvmTest::device = 'vm';
delete $ENV{GPUVM_TEST_CUDA_LIBRARY};

my $node = new_node('cuda_absent', "gpuvm.cuda_library = '/nowhere/gpuvm_cuda.so'");
my $text = $node->basedir . '/text.so';
my $other = $node->basedir . '/other.so';

append_to_file($text, "This is no library.\n");
# A library, but not ours.
my ($libm) = grep { -f } glob '/lib/*-linux-gnu/libm.so.6 /usr/lib/*-linux-gnu/libm.so.6 /lib64/libm.so.6';
symlink($libm, $other) or die "symlink: $!";

for my $case (
	[ 'a library that is not there', '/nowhere/gpuvm_cuda.so', qr{/nowhere/gpuvm_cuda\.so|not installed} ],
	[ 'a file that is no library', $text, qr/\w/ ],
	[ 'another library', $other, qr/\w/ ],
	[ 'CUDA switched off', '', qr/gpuvm\.cuda_library/ ])
{
	my ($name, $library, $reason) = @$case;

	$node->adjust_conf('postgresql.conf', 'gpuvm.cuda_library', "'$library'");
	$node->restart;
	wait_for_engine($node);
	# gpuvmd serves before it has looked for devices.
	$node->poll_query_until('postgres', q{SELECT detail <> '' AND detail !~ 'starting|looking' FROM gpuvm.status() WHERE backend = 'cuda'})
	  or die 'gpuvm.status() does not say anything of CUDA';
	my $status = $node->safe_psql('postgres', q{SELECT loaded, detail FROM gpuvm.status() WHERE backend LIKE 'cuda%'});

	like($status, qr/^f\|.+$/, "$name: one sentence in gpuvm.status()");
	like($status, $reason, "which tells why: $status");
	is($node->safe_psql('postgres', q{SELECT count(*), min(index), min(device), bool_and(state = 'ready') FROM gpuvm.devices}),
		'1|0|cpu|t', 'the CPU is the only device');

	$node->safe_psql('postgres', q{
		CREATE TABLE IF NOT EXISTS t AS SELECT i, i % 10 AS v FROM generate_series(1, 50000) i;
		ANALYZE t;});
	$node->safe_psql('postgres', q{SELECT gpuvm.import('t')});
	my $detail = $node->safe_psql('postgres', q{SELECT detail FROM gpuvm.status() WHERE backend = 'cuda'});

	for my $query ('SELECT count(*), sum(i) FROM t WHERE v = 3', 'SELECT v, count(*) FROM t GROUP BY v ORDER BY v',
		'SELECT i FROM t WHERE v = 3 ORDER BY i LIMIT 5')
	{
		my $before = $node->safe_psql('postgres', q{SELECT value FROM gpuvm.stats WHERE counter = 'device refusals'});
		my $cuda = "SET gpuvm.force = on; SET gpuvm.device = cuda;";

		is($node->safe_psql('postgres', "$cuda SET gpuvm.require = vm; $query"), without($node, $query), "gpuvm.device = cuda: $query");
		is($node->safe_psql('postgres', q{SELECT value FROM gpuvm.stats WHERE counter = 'device refusals'}), $before + 1,
			'the refusal is counted');
		my $plan = $node->safe_psql('postgres', "$cuda EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query");

		like($plan, qr/Device: cpu\n\s+Device Fallback: \S.*\n/, 'EXPLAIN ANALYZE shows the device and why');
		unlike($plan, qr/^\s+Fallback:/m, 'the virtual machine answered');
		my ($ret, $stdout, $stderr) = $node->psql('postgres',
			"\\set VERBOSITY verbose\nSET gpuvm.force = on; SET gpuvm.require = cuda; $query");

		isnt($ret, 0, 'gpuvm.require = cuda raises');
		is($stdout, '', 'before any row');
		like($stderr, qr/ERROR:  55000: statement would not run as gpuvm.require demands\nDETAIL:  No device runs the program: \S.*\./,
			'55000, with the reason');
		$plan = $node->safe_psql('postgres', "SET gpuvm.force = on; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query");
		like($plan, qr/Device: cpu\n/, 'gpuvm.device = auto runs on the CPU');
		unlike($plan, qr/Fallback/, 'which is no fallback');
	}
	is($node->safe_psql('postgres', q{SELECT value FROM gpuvm.stats WHERE counter = 'queries on cuda'}), '0', 'nothing ran on a GPU');
	$node->safe_psql('postgres', q{SELECT gpuvm.release('t')});
}

# The library as it was installed, if it was: without a driver it says so, and with one the devices are there.
$node->adjust_conf('postgresql.conf', 'gpuvm.cuda_library', 'default');
$node->restart;
wait_for_engine($node);
$node->poll_query_until('postgres', q{SELECT bool_and(detail <> '' AND detail !~ 'starting|looking') FROM gpuvm.status() WHERE backend LIKE 'cuda%'})
  or die 'gpuvm.status() does not say anything of CUDA';
is($node->safe_psql('postgres', q{
	SELECT s.loaded = EXISTS (SELECT FROM gpuvm.devices WHERE index > 0) FROM gpuvm.status() s WHERE backend = 'cuda'}), 't',
	'gpuvm.status() and gpuvm.devices agree: ' . $node->safe_psql('postgres', q{SELECT detail FROM gpuvm.status() WHERE backend = 'cuda'}));
$node->stop;
done_testing();
