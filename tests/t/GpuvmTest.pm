# What the TAP tests share: a node with gpuvm, and questions about its engine.
#
# GPUVM_TEST_DEVICE=cpu or cuda: the device that nodes use and tests require (any,
# if not given); GPUVM_TEST_CUDA_LIBRARY: the library to load for it.
package GpuvmTest;

use strict;
use warnings;
use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(new_node engine_pid stop_engine leave_waiting wait_for_engine wait_for_new_engine memory_used
  wait_for_memory refreshing wait_for_tables crash_free create_big fetch_rest without with_vm on_device $device);

# What tests set gpuvm.require to.
our $device = $ENV{GPUVM_TEST_DEVICE} || 'vm';

# A new node is a copy of the cluster that tests/setup/tap.sh made; one that initdb is told more of is made by it.
{
	no warnings 'redefine';
	my $run = \&PostgreSQL::Test::Utils::system_or_bail;

	*PostgreSQL::Test::Utils::system_or_bail = sub {
		my @command = @_;

		return $run->(@command) unless $ENV{INITDB_TEMPLATE} && "@command" =~ /^initdb -D (\S+) -A trust -N$/;
		return $run->('cp', '-RPp', $ENV{INITDB_TEMPLATE}, $1);
	};
}

# A running node with the extension in database postgres.
sub new_node
{
	my ($name, @conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init;
	# A background process that holds a snapshot would keep a VACUUM from marking blocks all-visible.
	$node->append_conf('postgresql.conf', join("\n",
			"shared_preload_libraries = 'gpuvm'", 'autovacuum = off', 'max_worker_processes = 16', 'restart_after_crash = on',
			'gpuvm.refresh = off', 'gpuvm.load_at_start = off', device_conf(), @conf) . "\n");
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION gpuvm');
	wait_for_engine($node);
	return $node;
}

sub device_conf
{
	my @conf;

	push @conf, "gpuvm.device = $device" if $device ne 'vm';
	push @conf, "gpuvm.cuda_library = '$ENV{GPUVM_TEST_CUDA_LIBRARY}'" if $ENV{GPUVM_TEST_CUDA_LIBRARY};
	return @conf;
}

# Are the tests to run on a GPU?
sub on_device
{
	return $device eq 'cuda';
}

# Settings of a node of which the refresher is tested.
sub refreshing
{
	return ('gpuvm.refresh = on', 'gpuvm.load_at_start = on', 'gpuvm.refresh_naptime = 1s');
}

# Waits until the background has imported the tables; what has changed since, and was not vacuumed, queries read themselves.
sub wait_for_tables
{
	my ($node, $database, @tables) = @_;

	for my $table (@tables)
	{
		$node->poll_query_until($database, "SELECT EXISTS (SELECT FROM gpuvm.tables WHERE relation = '$table'::regclass AND state IN ('current', 'table changed'))")
		  or die "$table is not imported: " . $node->safe_psql($database, 'SELECT * FROM gpuvm.tables');
	}
	return;
}

# 0 when none is running.
sub engine_pid
{
	my ($node) = @_;

	return $node->safe_psql('postgres',
		q{SELECT coalesce(substring(detail FROM 'PID (\d+)'), '0') FROM gpuvm.status() WHERE backend = 'cpu'});
}

sub wait_for_engine
{
	my ($node) = @_;

	$node->poll_query_until('postgres', q{SELECT loaded FROM gpuvm.status() WHERE backend = 'cpu'})
	  or die 'gpuvmd does not start';
	wait_for_device($node) if on_device();
	return engine_pid($node);
}

sub wait_for_device
{
	my ($node) = @_;

	$node->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM gpuvm.devices WHERE device LIKE 'cuda%' AND state = 'ready')})
	  or die 'no CUDA device gets ready: ' . $node->safe_psql('postgres', 'SELECT * FROM gpuvm.status()');
	return;
}

# Waits until gpuvmd runs under another process id than before; returns it.
sub wait_for_new_engine
{
	my ($node, $old) = @_;

	$node->poll_query_until('postgres',
		qq{SELECT loaded AND detail !~ 'PID $old,' FROM gpuvm.status() WHERE backend = 'cpu'})
	  or die 'gpuvmd does not come back';
	# One that lived for a second is started again at once, and not with a delay that grows.
	sleep 1;
	wait_for_device($node) if on_device();
	return engine_pid($node);
}

# Stops gpuvmd as SIGSTOP does, and waits until it stands: its threads run on until the main one
# has seen the signal, and would answer the next query.
sub stop_engine
{
	my ($pid) = @_;

	kill 'STOP', $pid;
	for my $i (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my @running = grep { slurp_file($_) !~ /\) [Tt] / } glob("/proc/$pid/task/*/stat");
		return unless @running;
		usleep(100_000);
	}
	die 'gpuvmd does not stop';
}

# Stops gpuvmd and submits a query in the session, whose backend's process id is given: it is certain to be waiting for gpuvmd.
sub leave_waiting
{
	my ($node, $session, $backend, $pid, $query) = @_;

	stop_engine($pid);
	$session->query_until(qr/submitted/, "\\echo submitted\n$query;\n");
	$node->poll_query_until('postgres', "SELECT wait_event = 'Extension' FROM pg_stat_activity WHERE pid = $backend")
	  or die "does not wait for gpuvmd: $query: " . $node->safe_psql('postgres', "SELECT row_to_json(a) FROM pg_stat_activity a WHERE pid = $backend");
	return;
}

# In MB.
sub memory_used
{
	my ($node) = @_;

	return $node->safe_psql('postgres',
		q{SELECT substring(detail FROM '(\d+) of \d+ MB') FROM gpuvm.status() WHERE backend = 'cpu'});
}

sub wait_for_memory
{
	my ($node, $mb) = @_;

	return $node->poll_query_until('postgres',
		qq{SELECT substring(detail FROM '(\\d+) of \\d+ MB')::int <= $mb FROM gpuvm.status() WHERE backend = 'cpu'});
}

# PostgreSQL's own answer, and the virtual machine's.
sub without
{
	my ($node, $query) = @_;

	return $node->safe_psql('postgres', "SET gpuvm.enabled = off; $query");
}

sub with_vm
{
	my ($node, $query) = @_;

	return $node->safe_psql('postgres', "SET gpuvm.force = on; SET gpuvm.require = $device; $query");
}

# Has the postmaster restarted its children since `offset` of the log?
sub crash_free
{
	my ($node, $offset, $name) = @_;

	ok(!$node->log_contains('terminating any other active server processes|all server processes terminated', $offset), $name);
	return;
}

# 600,000 rows, several units and tablets; sums that tell whether every row came once.
sub create_big
{
	my ($node) = @_;

	$node->safe_psql('postgres', q{
		CREATE TABLE big (id int, v int, l int8);
		INSERT INTO big SELECT i, i % 100, i * 2 FROM generate_series(1, 600000) i;
		ANALYZE big;
	});
	$node->safe_psql('postgres', q{SET gpuvm.tablet_size = '1MB'; SELECT gpuvm.import('big')});
	return;
}

# Fetches the rest of cursor c, which gives id and l of big, row by row: how many rows, and 0 if each l is its id's.
sub fetch_rest
{
	my ($session) = @_;

	$session->query_safe('CREATE TEMP TABLE rest (n int, wrong int8)');
	$session->query_safe(q{
		DO $$
		DECLARE
			c refcursor := 'c';
			r record;
			n int := 0;
			wrong int8 := 0;
		BEGIN
			LOOP
				FETCH c INTO r;
				EXIT WHEN NOT FOUND;
				n := n + 1;
				wrong := wrong + r.l - 2 * r.id;
			END LOOP;
			INSERT INTO rest VALUES (n, wrong);
		END $$});
	return $session->query_safe('SELECT n, wrong FROM rest');
}

1;
