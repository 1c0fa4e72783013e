# Values that are stored as they are, where memory is short: they take half of what is left
# at most, the widest column is left out first, and nothing else suffers.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('variable_memory', "gpuvm.memory = '64MB'");
my ($ret, $stdout, $stderr);

# Columns of 12 MB, 6 MB and 48 MB, of values that are all different.
$node->safe_psql('postgres', q{
	CREATE TABLE wide (id int, a text, b text, c text) WITH (autovacuum_enabled = off);
	ALTER TABLE wide ALTER c SET STORAGE EXTERNAL;
	INSERT INTO wide SELECT i, md5(i::text) || repeat('a', 80), md5(i::text) || repeat('b', 20), CASE WHEN i % 100 = 0 THEN (SELECT string_agg(md5(x::text), '') FROM generate_series(i, i + 1500) x) END
		FROM generate_series(1, 100000) i;
	CREATE TABLE small (a int, t text);
	INSERT INTO small SELECT i, i FROM generate_series(1, 1000) i;
});
my $empty = memory_used($node);
my $columns = q{SELECT columns FROM gpuvm.tables WHERE relation = 'wide'::regclass};

sub import_wide
{
	my ($what, $expected, $notice) = @_;

	($ret, $stdout, $stderr) = $node->psql('postgres', "SELECT gpuvm.import('wide')");
	is($ret, 0, "$what: imported");
	is($stdout, '100000', "$what: all rows");
	like($stderr, $notice, "$what: NOTICE");
	is($node->safe_psql('postgres', $columns), $expected, "$what: columns") if defined $expected;
	is($node->safe_psql('postgres', "SET gpuvm.force = on; SET gpuvm.require = $device; SELECT count(*), sum(id) FROM wide"), '100000|5000050000', "$what: the VM answers");
}

# The statistics tell of a and b; what c has in the TOAST table is found when it is copied.
$node->safe_psql('postgres', q{ANALYZE wide;
	UPDATE pg_statistic SET stadistinct = 2000000 WHERE starelid = 'wide'::regclass AND staattnum > 1});
my $left_out = qr/DETAIL:  Tablets cannot store the values of: "c" \(has values that take too much of "gpuvm.memory"\)/;
import_wide('found', '{id,a,b}', $left_out);
my $full = memory_used($node);
cmp_ok($full, '<', $empty + 30, 'what was tried takes nothing');
is($node->safe_psql('postgres', q{SET gpuvm.enabled = off; SELECT md5(string_agg(a || b, '' ORDER BY id)) FROM wide}),
	$node->safe_psql('postgres', qq{SET gpuvm.force = on; SET gpuvm.require = $device; SELECT md5(string_agg(a || b, '' ORDER BY id)) FROM wide}), 'values');
# Again, with the tablets of before still there.
import_wide('again', '{id,a,b}', $left_out);
is(memory_used($node), $full, 'importing again takes no more');

# Too much by its statistics: 100000 values of what a has.
$node->safe_psql('postgres', q{SELECT gpuvm.release('wide'); UPDATE pg_statistic SET stawidth = 1000 WHERE starelid = 'wide'::regclass AND staattnum = 2});
import_wide('too much by the statistics', '{id,b}', qr/DETAIL:  Tablets cannot store the values of: "a" \(.*"gpuvm.memory"\), "c" \(/);

# Nothing known: dictionaries are tried first, and what becomes of them depends on what is left.
$node->safe_psql('postgres', q{SELECT gpuvm.release('wide'); DELETE FROM pg_statistic WHERE starelid = 'wide'::regclass});
for my $what ('unknown', 'unknown, again')
{
	import_wide($what, undef, qr/"c" \(/);
}

# Others find room; a refresh that does not find it leaves blocks as they are.
$node->safe_psql('postgres', q{SELECT gpuvm.release('wide'); ANALYZE wide; UPDATE pg_statistic SET stadistinct = 2000000 WHERE starelid = 'wide'::regclass AND staattnum > 1;
	SELECT gpuvm.import('wide'); SELECT gpuvm.import('small')});
is($node->safe_psql('postgres', $columns), '{id,a,b}', 'half is left for others');
$node->safe_psql('postgres', q{UPDATE wide SET a = a || 'x'; VACUUM wide});
for my $i (1 .. 3)
{
	($ret, $stdout, $stderr) = $node->psql('postgres', "SELECT gpuvm.refresh('wide')");
	is($ret, 0, "refresh $i");
}
is($node->safe_psql('postgres', 'SET gpuvm.force = on; SELECT count(*), sum(length(a)), max(a) FROM wide'),
	$node->safe_psql('postgres', 'SET gpuvm.enabled = off; SELECT count(*), sum(length(a)), max(a) FROM wide'), 'the answer is right, whoever gives it');

# Nothing is left of any of it.
$node->safe_psql('postgres', q{SELECT gpuvm.release('wide'), gpuvm.release('small')});
is(memory_used($node), $empty, 'all is free again');
$node->stop;

done_testing();
