# File tables: what is remembered is loaded after a start; sessions that read a file while it is replaced see one version of
# it, never an older one than was there when they began; what does not fit the memory is read row by row.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = new_node('files', refreshing(), 'gpuvm.memory = 64MB');
my $log_start = -s $node->logfile;
my $file = $node->data_dir . '/versions.csv';

# All rows say which version of the file they are of.
sub write_version
{
	my ($version, $rows) = @_;
	$rows //= 2000 + int(rand(4000));

	open my $out, '>', "$file.new" or die $!;
	print $out "$_,$version\n" for (1 .. $rows);
	close $out;
	rename "$file.new", $file or die $!;
	return;
}

write_version(0);
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE versions (id int, v int) SERVER gpuvm OPTIONS (filename 'versions.csv', format 'csv', encoding 'UTF8');
	CREATE FOREIGN TABLE other (id int, v int) SERVER gpuvm OPTIONS (filename 'versions.csv', format 'csv', encoding 'UTF8');
	CREATE TABLE published (v int);
	INSERT INTO published VALUES (0);
	CREATE FUNCTION look() RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		known int;
		r record;
	BEGIN
		SELECT v INTO known FROM published;
		IF random() < 0.7 THEN
			SELECT min(v) AS least, max(v) AS most, count(*) = count(DISTINCT id) AS once INTO r FROM versions;
		ELSE
			SELECT min(v) AS least, max(v) AS most, count(*) = count(DISTINCT id) AS once INTO r FROM versions WHERE random() >= 0;
		END IF;
		IF r.least IS DISTINCT FROM r.most OR NOT r.once OR r.least < known THEN
			RAISE EXCEPTION 'version % to %, known %', r.least, r.most, known;
		END IF;
	END$$;
});
my $query = 'SELECT count(*), sum(v), sum(id) FROM versions';
is(with_vm($node, $query), without($node, $query), 'the first query loads the file');

# Readers' transactions are of one statement each (the function is volatile: each of its queries has a snapshot of its own).
append_to_file($node->basedir . '/look.sql', "SELECT look();\n");
my ($out, $err) = ('', '');
my $readers = IPC::Run::start(['pgbench', '-n', '-h', $node->host, '-p', $node->port, '-c', '4', '-T', '8', '-f', $node->basedir . '/look.sql', 'postgres'],
	'>', \$out, '2>', \$err);
my $end = time + 7;
my $version = 0;
while (time < $end)
{
	$version++;
	write_version($version);
	$node->safe_psql('postgres', "UPDATE published SET v = $version");
	sleep((0, 0.01, 0.1)[rand 3]);
}
IPC::Run::finish($readers);
cmp_ok($version, '>', 20, 'the file was replaced many times');
like($out, qr/number of transactions actually processed: [1-9]\d{2}/, 'and read many times');
unlike($err, qr/ERROR/, 'readers saw one version each, and no older one') or diag $err;
is(with_vm($node, $query), without($node, $query), 'the last version is loaded');

# The same while several processes load it: a part may be of another version than the one before it.
($out, $err) = ('', '');
$readers = IPC::Run::start(['psql', '-XAtq', '-h', $node->host, '-p', $node->port, '-v', 'ON_ERROR_STOP=1', '-f', '-', 'postgres'],
	'<', \("SELECT min(v) = max(v) AND count(*) = count(DISTINCT id) FROM versions;\n" x 12), '>', \$out, '2>', \$err);
for (1 .. 6)
{
	$version++;
	write_version($version, 1_000_000 + int(rand(100_000)));	# more than 8 MB, whatever the version
	sleep(0.1);
}
IPC::Run::finish($readers);
is($out . $err, "t\n" x 12, 'a large file is of one version');
is(with_vm($node, $query), without($node, $query), 'and the last one is loaded');
cmp_ok($node->safe_psql('postgres', q{SELECT count(DISTINCT tablet) FROM gpuvm.tablets WHERE relation = 'versions'::regclass}), '>', 1, 'in parts');
write_version(++$version);

# What gpuvm.import() has loaded is loaded after a start, without a query; what queries have loaded is not.
$node->safe_psql('postgres', q{SELECT gpuvm.import('versions')});
with_vm($node, 'SELECT count(*) FROM other');
$node->restart;
wait_for_tables($node, 'postgres', 'versions');
is($node->safe_psql('postgres', 'SELECT relation FROM gpuvm.tables'), 'versions', 'loaded after a start');
is(with_vm($node, $query), without($node, $query), 'and answers');
write_version($version + 1);
is(with_vm($node, $query), without($node, $query), 'and is loaded again when the file has changed');
$node->stop('immediate');
$node->start;
wait_for_tables($node, 'postgres', 'versions');
is(with_vm($node, $query), without($node, $query), 'loaded after a crash');

# The file is too large for the memory that there is: queries read it, and say why.
open my $large, '>', $node->data_dir . '/large.csv' or die $!;
print $large "$_,", $_ * 1099511627, "\n" for (1 .. 4_000_000);
close $large;
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE large (id int, v bigint) SERVER gpuvm OPTIONS (filename 'large.csv', format 'csv')});
$node->append_conf('postgresql.conf', "gpuvm.memory = 32MB\n");
$node->restart;
wait_for_engine($node);
is($node->safe_psql('postgres', 'SELECT count(*), sum(id) FROM large'), '4000000|8000002000000', 'a file that does not fit is read');
like($node->safe_psql('postgres', q{SELECT count(*) FROM large; SELECT reason FROM gpuvm.why_not('SELECT count(*) FROM large')}),
	qr/could not be loaded: out of memory for imported tables/, 'and the reason is there');
crash_free($node, $log_start, 'nothing crashed');
$node->stop;
done_testing();
