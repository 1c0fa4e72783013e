# Sessions that come and go beside imports: memory that one gives back must not
# be written to by the engine's thread that served it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuvmTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('reconnect', 'max_connections = 40', "gpuvm.tablet_size = '64kB'");

$node->safe_psql('postgres', q{
	CREATE TABLE two (v int); INSERT INTO two VALUES (1), (2);
	CREATE TABLE many AS SELECT i AS v FROM generate_series(1, 60000) i;
	SELECT gpuvm.import('two'), gpuvm.import('many');});

my $script = $node->basedir . '/sum.sql';
append_to_file($script, "SELECT 1 / (CASE WHEN sum(v) = 3 THEN 1 ELSE 0 END) FROM two;\n");

# A connection for each transaction; a wrong sum raises, and so ends a client.
local $ENV{PGOPTIONS} = "-c gpuvm.force=on -c gpuvm.require=$device";
my ($out, $err) = ('', '');
my $bench = IPC::Run::start(
	[ 'pgbench', '-n', '-C', '-c', '4', '-T', '8', '-h', $node->host, '-p', $node->port, '-f', $script, 'postgres' ],
	'<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout(60));

my $wrong = 0;
my $rounds = 0;
my $until = time + 7;
while (time < $until)
{
	my $sum = $node->safe_psql('postgres',
		q{SET gpuvm.require = 'any'; SELECT gpuvm.import('many', vacuum => false) <> 60000; SELECT sum(v) FROM many;});
	$wrong++ if $sum ne "f\n1800030000";
	$rounds++;
}
ok(eval { $bench->finish; 1 }, 'no client hangs') or $bench->kill_kill;

cmp_ok($rounds, '>', 5, 'tables were imported beside the clients');
is($wrong, 0, 'every import and every sum over it was right');
is($bench->result(0), 0, 'every client finished') or diag($err);
unlike($err, qr/ERROR|FATAL/, 'no client saw an error');
like($out, qr/number of transactions actually processed: \d{2,}/, 'the clients ran queries');

done_testing();
