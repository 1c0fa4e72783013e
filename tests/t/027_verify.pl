# gpuvm.verify() finds what has changed in memory, in whichever part of an imported table, and what was wrong when it was sealed.
# What a refresh or an import meets of it is made anew, or it is an error.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('verify', "gpuvm.memory = '64MB'");
my @memory = memory_files($node);
ok(@memory > 0, 'the arena is a file of the postmaster');

# A kind of column each: values as they are, codes of a dictionary, references to values.
$node->safe_psql('postgres', q{
	CREATE TABLE t (a int8, b int8, code text, v text);
	INSERT INTO t SELECT hashint8extended(i, 1), i * 1099511627776, CASE i % 2 WHEN 0 THEN 'needle in the dictionary' ELSE 'hay' END,
		CASE i WHEN 77 THEN 'needle among the values' ELSE 'hay ' || hashint8extended(i, 2) END
	FROM generate_series(1, 3000) i;
	ALTER TABLE t ALTER v SET STATISTICS 0;
	SELECT gpuvm.import('t', '{a,b,code}');
	CREATE TABLE u AS SELECT i, repeat('needle among the values ', 500) || i AS v FROM generate_series(1, 50) i;
	SELECT gpuvm.import('u');
});
is($node->safe_psql('postgres', q{SELECT string_agg("column", ' ' ORDER BY "column") FROM gpuvm.tablets WHERE relation = 't'::regclass}),
	'a b code', 'one tablet of three columns');
is(verify('t') . verify('u'), '', 'nothing is wrong');

# What a tablet, a dictionary or the list of tablets says of itself.
my ($tablet) = places('GPVT', sub { my ($at) = @_; return unpack('S', content($at, 6, 2)) == 3 });
my ($dictionary) = places('GPVD', sub { return 1 });
my ($version) = places('GPVV', sub { my ($at) = @_; return unpack('L', content($at, 4, 4)) == 3 });
ok(defined $tablet && defined $dictionary && defined $version, 'they are found in memory');
my @chunks = map { content($tablet, 128 + 64 * $_, 64) } 0 .. 2;
my $data = unpack('Q', substr($chunks[0], 40, 8));

my $value = 'values do not match their checksum';
changed($tablet, $data + 8 * 1234, 't', "t|0|a|$value", 'a value');
changed($tablet, $data + 8 * 4000, 't', "t|0|a|$value", 'the padding behind the values');
changed($tablet, 128 + 64 * 2 + 16, 't', undef, 'a base');
changed($tablet, 128 + 64 + 32, 't', "t|0|b|$value", 'a maximum');
changed($tablet, 24, 't', "t|0||header or block map do not match their checksum", 'the first block');
changed($tablet, unpack('Q', content($tablet, 40, 8)), 't', "t|0||header or block map do not match their checksum", 'the LSN of a block');
changed($tablet, unpack('Q', content($tablet, 112, 8)), 't', "t|0||header or block map do not match their checksum", 'a checksum');
changed($tablet, 10, 't', undef, 'the size');
changed($tablet, 0, 't', "t|0||the tablet has no magic number", 'the magic number');
changed($version, 24, 't', "t|||the list of tablets and blocks does not match its checksum", 'the number of rows');
changed($version, unpack('Q', content($version, 56, 8)), 't', "t|||the list of tablets and blocks does not match its checksum", 'a stamp');
changed($version, unpack('Q', content($version, 64, 8)), 't', "t|||the list of tablets and blocks does not match its checksum", 'a block that is served');
changed($version, 126, 't', "t|||the list of tablets and blocks does not match its checksum", 'where something is');
changed($dictionary, unpack('L', content($dictionary, 4, 4)) * 8 + 200, 't', "t||code|the dictionary does not match its checksum", 'of a dictionary');
my ($entry) = places('needle in the dictionary', sub { my ($at) = @_; return $at->[1] > $dictionary->[1] && $at->[1] < $dictionary->[1] + 4096 });
changed($entry, 3, 't', "t||code|the dictionary does not match its checksum", 'a value of a dictionary');
my ($image) = places('needle among the values needle', sub { return 1 });
changed($image, 30, 'u', "u|0|v|$value", 'a value of variable length');
is(verify('t') . verify('u'), '', 'what was changed back is as it was');

# A tablet that is wrong from the beginning has the right checksum: what it says of its values tells.
my $old = content($tablet, $data + 8 * 5, 8);
put($tablet, $data + 8 * 5, pack('q', 9223372036854775807));
seal(0);
is(verify('t'), 't|0|a|statistics are not those of the values', 'a value beyond the maximum');
put($tablet, $data + 8 * 5, pack('q', 0));
seal(0);
is(verify('t'), '', 'a value within the range is no problem of the tablet');
is(verify('t', 'true'), 't|0|a|the tablet has another value than the heap', 'but not the table\'s');
is($node->safe_psql('postgres', q{SELECT "row" FROM gpuvm.verify('t', true)}),
	$node->safe_psql('postgres', 'SELECT ctid FROM t OFFSET 5 LIMIT 1'), 'and the row is named');
put($tablet, $data + 8 * 5, $old);
seal(0);
is(verify('t', 'true'), '', 'the value that it was');

# A refresh goes on from nothing that has changed, so that nothing wrong gets a right checksum: it copies the table anew.
mended(sub { return (newest('GPVT', 3, 88), $data + 8 * 1234) }, 'values');
mended(sub { return (newest('GPVT', 3, 88), 24) }, 'where the tablet\'s blocks begin');
mended(sub { my $dictionary = newest('GPVD', undef, 48); return ($dictionary, first_character($dictionary)) },
	'a value of the dictionary');
mended(sub { my $dictionary = newest('GPVD', undef, 48); return ($dictionary, used_slot($dictionary) + 3) }, 'where a value is found');

# What names the tablets and dictionaries cannot be gone on from, nor what it names be freed: that is an error, however often.
for my $offset (5, 6, 24, 45, 47, 93, 94)
{
	refused(sub { return (version_of_t(), $offset) }, "byte $offset of the list of tablets");
}
refused(sub { my $version = version_of_t(); return ($version, unpack('Q', content($version, 64, 8))) }, 'which blocks are served');
for my $offset (2, 6, 20, 27, 30, 34, 40, 44, 90)
{
	refused(sub { return (newest('GPVD', undef, 48), $offset) }, "byte $offset of a dictionary");
}
# what does not change what is freed need not be changed back
$version = version_of_t();
flip($version, unpack('Q', content($version, 64, 8)));
my $used = tables_bytes();
for my $round (1 .. 3)
{
	like(($node->psql('postgres', q{\set VERBOSITY verbose
		SELECT gpuvm.refresh('t')}))[2], qr/ERROR:  XX001: what says where tablets of table "t" are does not match its checksum\n.*HINT:  gpuvm.release\(\)/s,
		'a refresh refuses');
	like(($node->psql('postgres', q{SELECT gpuvm.import('t', '{a,b,code}')}))[2], qr/ERROR:  what says where tablets/, 'an import, too');
}
$node->safe_psql('postgres', q{SELECT gpuvm.release('t')});
$node->safe_psql('postgres', q{SELECT gpuvm.import('t', '{a,b,code}')});
is(verify('t', 'true'), '', 'once it is released an import copies it anew');
is(tables_bytes(), $used, 'and nothing stays behind');

# The refresher mends, too.
$node->safe_psql('postgres', 'UPDATE t SET a = a WHERE b = 1099511627776; VACUUM t');
flip(newest('GPVT', 3, 88), $data + 8 * 1234);
isnt(verify('t'), '', 'a value has changed');
my $log = -s $node->logfile;
$node->append_conf('postgresql.conf', "gpuvm.refresh = on\ngpuvm.refresh_naptime = 1s");
$node->reload;
ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM gpuvm.verify('t')}), 'in the background too');
$node->append_conf('postgresql.conf', 'gpuvm.refresh = off');
$node->reload;
my $logged = slurp_file($node->logfile, $log);
like($logged, qr/WARNING:  tablets of table "t" do not match their checksums/, 'the log tells');
# of the worker, whose lines name no application; a look that comes between the old copy and the new finds no table, which is one of ours
unlike($logged, qr/\] ERROR/, 'it is no error');
is(verify('t', 'true'), '', 'what is there is right');

# Partitions that have a dictionary together do not go on from it.
$node->safe_psql('postgres', q{
	CREATE TABLE p (a int, code text) PARTITION BY RANGE (a);
	CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000);
	CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (2000);
	INSERT INTO p SELECT i, 'code ' || i % 3 FROM generate_series(0, 1999) i;
	SELECT gpuvm.import('p');
});
$dictionary = newest('GPVD', 3, 48);
flip($dictionary, first_character($dictionary));
is(verify('p'), join("\n", map { "$_||code|the dictionary does not match its checksum" } 'p1', 'p2'), 'a dictionary of both has changed');
my (undef, undef, $stderr) = $node->psql('postgres', q{SELECT gpuvm.import('p1')});
like($stderr, qr/WARNING:  dictionary of column "code" of other partitions than "p1" does not match its checksum/, 'an import tells');
is(verify('p'), 'p2||code|the dictionary does not match its checksum', 'and makes its own');
$node->safe_psql('postgres', q{UPDATE p SET code = 'new' WHERE a % 1000 = 7; SELECT gpuvm.refresh('p')});
is(verify('p', 'true'), '', 'a refresh too');
is(with_vm($node, 'SELECT code, count(*) FROM p GROUP BY code ORDER BY code'), without($node, 'SELECT code, count(*) FROM p GROUP BY code ORDER BY code'),
	'which they have together');

# A tablet table's grows with what is loaded, and its tablets are shared.
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE f (a int, code text) SERVER gpuvm;
	INSERT INTO f SELECT i, 'code ' || i % 3 FROM generate_series(1, 20000) i;
	SELECT gpuvm.import('f');
});
$dictionary = newest('GPVD', 3, 48);
flip($dictionary, first_character($dictionary));
is(verify('f'), 'f||code|the dictionary does not match its checksum', 'a dictionary of a tablet table has changed');
(undef, undef, $stderr) = $node->psql('postgres', q{INSERT INTO f VALUES (0, 'new'); SELECT gpuvm.refresh('f')});
like($stderr, qr/WARNING:  tablets of table "f" do not match their checksums/, 'a refresh tells');
is(verify('f'), '', 'and makes it anew');
is(with_vm($node, 'SELECT code, count(*) FROM f GROUP BY code ORDER BY code'), without($node, 'SELECT code, count(*) FROM f GROUP BY code ORDER BY code'),
	'which is right');
for my $part (24, 32, 40)
{
	$tablet = newest('GPVT', 2, 88);
	# the first block, and what is behind the offsets of rows and keys
	flip($tablet, $part == 24 ? 24 : unpack('Q', content($tablet, $part, 8)) + 8);
	isnt(verify('f'), '', "a tablet of a tablet table has changed, by $part");
	(undef, undef, $stderr) = $node->psql('postgres', qq{INSERT INTO f VALUES (-$part, 'code 1'); SELECT gpuvm.refresh('f')});
	like($stderr, qr/WARNING:  tablets of table "f" do not match their checksums/, 'a refresh tells');
	is(verify('f'), '', 'and makes it anew');
	is(with_vm($node, 'SELECT sum(a), count(*) FROM f'), without($node, 'SELECT sum(a), count(*) FROM f'), 'which is right');
}
$node->stop;
done_testing();

# What is found: table, tablet, column, problem.
sub verify
{
	my ($table, $heap) = @_;

	$heap //= 'false';
	return $node->safe_psql('postgres', qq{SELECT part, tablet, "column", problem FROM gpuvm.verify('$table', $heap)});
}

# A byte is changed, found (undef: whatever is said of it) and changed back. No query runs meanwhile.
sub changed
{
	my ($place, $offset, $table, $problem, $name) = @_;
	my $found;

	flip($place, $offset);
	$found = verify($table);
	if (defined $problem) { is($found, $problem, "$name has changed") }
	else { isnt($found, '', "$name has changed") }
	flip($place, $offset);
	return;
}

# A byte is changed where the function says; a refresh, which has a row and a new value to take in, tells and mends.
sub mended
{
	my ($where, $name) = @_;
	my ($place, $offset, $stderr, $used);

	$node->safe_psql('postgres', q{SELECT gpuvm.import('t', '{a,b,code}')});
	$used = tables_bytes();
	($place, $offset) = $where->();
	flip($place, $offset);
	isnt(verify('t'), '', "$name: changed");
	(undef, undef, $stderr) = $node->psql('postgres', q{SET gpuvm.enabled = off; UPDATE t SET a = a + 1, code = 'code ' || a WHERE b = 1099511627776;
		SELECT gpuvm.refresh('t')});
	like($stderr, qr/WARNING:  tablets of table "t" do not match their checksums/, "$name: a refresh tells");
	is(verify('t', 'true'), '', "$name: what it makes is the table's");
	is(with_vm($node, 'SELECT sum(a), max(code) FROM t'), without($node, 'SELECT sum(a), max(code) FROM t'), "$name: and answers");
	is(tables_bytes(), $used, "$name: nothing stays behind");
	return;
}

# The same, but it is an error until the byte is what it was.
sub refused
{
	my ($where, $name) = @_;
	my ($place, $offset) = $where->();
	my $used = tables_bytes();

	flip($place, $offset);
	for my $statement ("SELECT gpuvm.refresh('t')", "SELECT gpuvm.import('t', '{a,b,code}')")
	{
		my (undef, undef, $stderr) = $node->psql('postgres', "SET gpuvm.enabled = off; UPDATE t SET a = a + 1 WHERE b = 1099511627776; $statement");

		like($stderr, qr/ERROR:  what says where tablets of table "t" are does not match its checksum/, "$name: $statement refuses");
	}
	flip($place, $offset);
	is(tables_bytes(), $used, "$name: nothing stays behind");
	$node->safe_psql('postgres', q{SELECT gpuvm.refresh('t')});
	is(verify('t', 'true'), '', "$name: changed back");
	return;
}

# What tablets, dictionaries and lists of them take, in bytes.
sub tables_bytes
{
	return $node->safe_psql('postgres', q{SELECT sum(bytes) FROM gpuvm.memory WHERE kind IN ('tables', 'imports')});
}

# The one in use: another one that is found has been freed, and nobody sees that it changes.
sub version_of_t
{
	for my $found (places('GPVV', sub { my ($at) = @_; return unpack('L', content($at, 4, 4)) == 3 }))
	{
		my $seen;

		flip($found, 24);
		$seen = verify('t') ne '';
		flip($found, 24);
		return $found if $seen;
	}
	die 'no version';
}

# The last one that was made, by the serial number at `order`, of so many columns or entries.
sub newest
{
	my ($magic, $count, $order) = @_;
	my %at = (GPVT => [ 6, 'S' ], GPVD => [ 4, 'L' ]);
	my ($offset, $type) = @{ $at{$magic} };
	my @found = places($magic, sub { my ($at) = @_; return !defined $count || unpack($type, content($at, $offset, 4)) == $count });

	die "no $magic" unless @found;
	return (sort { unpack('Q', content($b, $order, 8)) <=> unpack('Q', content($a, $order, 8)) } @found)[0];
}

# Of a dictionary's first text.
sub first_character
{
	my ($dictionary) = @_;

	return unpack('Q', content($dictionary, unpack('Q', content($dictionary, 56, 8)), 8)) + 4;
}

# The first of a dictionary's hash slots that leads to an entry.
sub used_slot
{
	my ($dictionary) = @_;
	my $slots = unpack('Q', content($dictionary, 64, 8));

	for my $i (0 .. unpack('L', content($dictionary, 8, 4)) - 1)
	{
		return $slots + 8 * $i if unpack('Q', content($dictionary, $slots + 8 * $i, 8)) != 0;
	}
	die 'no slot in use';
}

# The arena's files, open.
sub memory_files
{
	my ($node) = @_;
	my $pid = slurp_file($node->data_dir . '/postmaster.pid');
	my @files;

	$pid =~ s/\n.*//s;
	for my $fd (glob("/proc/$pid/fd/*"))
	{
		next unless (readlink($fd) // '') =~ m{^/memfd:gpuvm};
		open(my $file, '+<:raw', $fd) or die "cannot open $fd: $!";
		push @files, $file;
	}
	return @files;
}

# Where the bytes are, as a file and an offset, of those places that the condition wants.
sub places
{
	my ($bytes, $wanted) = @_;
	my @found;

	for my $file (@memory)
	{
		my $size = -s $file;

		for (my $begin = 0; $begin < $size; $begin += 1 << 20)
		{
			my $part = content([ $file, $begin ], 0, (1 << 20) + 64);

			for (my $at = 0; ($at = index($part, $bytes, $at)) >= 0 && $at < 1 << 20; $at++)
			{
				push @found, [ $file, $begin + $at ] if $wanted->([ $file, $begin + $at ]);
			}
		}
	}
	return @found;
}

sub content
{
	my ($place, $offset, $length) = @_;
	my $bytes;

	sysseek($place->[0], $place->[1] + $offset, 0) or die $!;
	defined sysread($place->[0], $bytes, $length) or die $!;
	return $bytes;
}

sub put
{
	my ($place, $offset, $bytes) = @_;

	sysseek($place->[0], $place->[1] + $offset, 0) or die $!;
	syswrite($place->[0], $bytes) == length($bytes) or die $!;
	return;
}

sub flip
{
	my ($place, $offset) = @_;

	put($place, $offset, content($place, $offset, 1) ^ "\x10");
	return;
}

# Gives a column of values, without nulls, the checksum of what it is now, and the tablet (store/checksum.cc).
sub seal
{
	my ($column) = @_;
	my $chunk = content($tablet, 128 + 64 * $column, 64);
	my ($data, $bytes) = unpack('QQ', substr($chunk, 40, 16));
	my $header = content($tablet, 0, 128);
	my ($ncols, $checksums) = (unpack('S', substr($header, 6, 2)), unpack('Q', substr($header, 112, 8)));
	my $keys = 128 + 64 * $ncols;

	# of the values the thirds count, in words of 8 bytes, and what is left
	my $values = content($tablet, $data, $bytes);
	my $third = int($bytes / 24) * 8;
	my $crc = crc32c(0xffffffff, $chunk);
	$crc = crc32c($crc, pack('L*', map { crc32c(0xffffffff, substr($values, $_ * $third, $third)) } 0 .. 2));
	put($tablet, $checksums + 4 * $column, pack('L', crc32c($crc, substr($values, 3 * $third)) ^ 0xffffffff));

	# of the header without the count of references and itself
	substr($header, 104, 8) = "\0" x 8;
	$keys = content($tablet, $keys, $checksums + 4 * $ncols - $keys);
	put($tablet, 108, pack('L', crc32c(0xffffffff, $header . $keys) ^ 0xffffffff));
	return;
}

# Continues a CRC-32C, without its final step.
sub crc32c
{
	my ($crc, $bytes) = @_;
	my @table = map { my $c = $_; $c = $c & 1 ? $c >> 1 ^ 0x82f63b78 : $c >> 1 for 1 .. 8; $c } 0 .. 255;

	$crc = $crc >> 8 ^ $table[($crc ^ $_) & 255] for unpack('C*', $bytes);
	return $crc;
}
