# Groups and rows to be sorted that find no memory in gpuvmd go into temporary files, which are PostgreSQL's: where they lie,
# how large they may be, and that they go. Joins that find none are made in passes.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('spill', "gpuvm.memory = '256MB'", "gpuvm.engine_memory = '32MB'", 'gpuvm.index_memory = 0',
	'gpuvm.device = cpu', 'gpuvm.force = on', 'log_temp_files = 0');
my $tablespace = PostgreSQL::Test::Utils::tempdir;

$node->safe_psql('postgres', "CREATE TABLESPACE other LOCATION '$tablespace'");
$node->safe_psql('postgres', q{
	CREATE TABLE t AS SELECT hashint8extended(i, 1) AS k, (i * 7919::bigint % 1000003)::int AS r, i % 1000 AS f, i AS v,
		CASE WHEN i % 11 > 0 THEN (i % 700000) * 0.01 END AS n, 'name ' || i % 600000 AS x, CASE WHEN i % 7 > 0 THEN i / 3.0::float8 END AS d
	FROM generate_series(1, 1000000) i;
	ANALYZE t;
	SELECT gpuvm.import('t')});

# all temporary files there are
sub files
{
	return grep { !/^\./ } map { slurp_dir($_) } grep { -d } $node->data_dir . '/base/pgsql_tmp', glob("$tablespace/PG_*/pgsql_tmp");
}

my %queries = (
	'keys without order' => 'SELECT k, count(*) c, sum(v) s, min(r) m, max(n) n FROM t GROUP BY k',
	'keys with slots' => 'SELECT r, count(*) c, sum(v) s, avg(n) a, bool_and(f > 10) b FROM t GROUP BY r',
	'texts' => 'SELECT x, count(*) c, min(v) m, max(d) d, count(n) n FROM t GROUP BY x',
	'nulls, and two keys' => 'SELECT n, f, count(*) c, max(k) m FROM t GROUP BY n, f',
	'few groups, many rows' => 'SELECT f, r % 3 AS r3, count(*) c, sum(n) s FROM t GROUP BY 1, 2',
	'a join' => 'SELECT a.k, count(*) c, sum(b.v) s FROM t a JOIN t b ON a.v = b.r WHERE a.f < 300 GROUP BY a.k');

# The engine answers as PostgreSQL does.
sub answers
{
	my ($name, $query) = @_;

	is($node->safe_psql('postgres', "SET gpuvm.require = cpu; $query"), $node->safe_psql('postgres', "SET gpuvm.enabled = off; $query"), $name);
	return;
}

sub spills_much
{
	my ($name, $query) = @_;
	my ($memory, $spilled) = $node->safe_psql('postgres', "SET gpuvm.require = cpu; EXPLAIN (ANALYZE) $query")
		=~ /Engine Memory: (\d+) kB.*Spilled: (\d+) kB/s;

	cmp_ok($spilled // 0, '>', 10 * 1024, "$name: most were spilled");
	cmp_ok($memory // 99 * 1024, '<=', 32 * 1024, 'there was no more memory');
	return;
}

for my $name (sort keys %queries)
{
	answers($name, "SELECT count(*), sum(hash_record_extended(q, 1)::numeric) FROM ($queries{$name}) q");
}
for my $name ('keys without order', 'keys with slots', 'texts')
{
	spills_much($name, "SELECT * FROM ($queries{$name}) q ORDER BY c DESC LIMIT 10");
}
# of groups that another program reads
like($node->safe_psql('postgres', 'SET gpuvm.require = cpu; EXPLAIN (ANALYZE) SELECT f % 10, count(DISTINCT k) FROM t GROUP BY 1'),
	qr/Spilled: [1-9]\d{4,} kB/, 'two programs have a file');
unlike($node->safe_psql('postgres', "EXPLAIN (ANALYZE) SELECT f, count(*) FROM t GROUP BY f"), qr/Spilled/, 'few groups need no file');
cmp_ok($node->safe_psql('postgres', q{SELECT value FROM gpuvm.stats WHERE counter = 'bytes spilled'}), '>', 100 << 20, 'it is counted');
$node->poll_query_until('postgres', q{SELECT temp_files > 5 AND temp_bytes > 100 << 20 FROM pg_stat_database WHERE datname = 'postgres'})
	or fail('also in pg_stat_database');
is_deeply([ files() ], [], 'no file stays');

# Inner sides that do not fit are met in passes.
my %joins = (
	'groups' => 'SELECT a.f, count(*) c, sum(b.k) s, max(b.n) n FROM t a JOIN t b ON a.k = b.k GROUP BY a.f',
	'two keys' => 'SELECT a.f, count(*) c, max(b.d) s FROM t a JOIN t b ON a.k = b.k AND a.r = b.r GROUP BY a.f',
	'what is left' => 'SELECT a.f, count(*) c, count(b.v) b, sum(b.k) s FROM t a LEFT JOIN (SELECT * FROM t WHERE v % 20 > 0) b ON a.k = b.k GROUP BY a.f',
	'of both' => 'SELECT count(*) c, count(a.v) a, count(b.v) b, sum(a.v) s, max(b.r) m FROM t a FULL JOIN (SELECT * FROM t WHERE f > 9) b ON a.k = b.k',
	'what is not there' => 'SELECT f, count(*) c FROM t a WHERE NOT EXISTS (SELECT FROM t b WHERE b.k = a.k AND b.n > 1 AND b.d + b.r > a.f) GROUP BY f',
	'close keys, in order' => 'SELECT a.f, count(*) c, sum(b.k) s, max(b.d) d, max(b.n) n, min(b.r) r FROM t a JOIN t b ON a.v = b.v GROUP BY a.f',
	'close keys, what is left' => 'SELECT a.f, count(*) c, count(b.k) b, max(b.d) d, max(b.n) n, min(b.r) r
		FROM (SELECT f, CASE WHEN v % 13 > 0 THEN v * 2 - 5000 END AS w FROM t) a
		LEFT JOIN (SELECT * FROM t WHERE v % 20 > 0) b ON a.w = b.v GROUP BY a.f',
	'close keys, of both' => 'SELECT count(*) c, count(a.v) a, count(b.v) b, sum(a.v) s, max(b.r) m, sum(b.k) k, max(b.d) d, max(b.n) n
		FROM (SELECT * FROM t WHERE v > 9000) a
		FULL JOIN (SELECT r, v, k, n, d, nullif(r, v % 9000) AS w FROM t) b ON a.v = b.w',
	'close keys, behind a full join' => 'SELECT count(*) c, count(e.v) e, sum(a.v) a, sum(b.k) s, max(b.d) d, max(b.n) n, min(b.r) r FROM t a
		FULL JOIN (SELECT * FROM t WHERE f > 990) e ON a.r = e.r LEFT JOIN t b ON b.v = a.v',
	'a few values' => 'SELECT a.f, count(*) c, sum(b.k) s, max(b.d) d, max(b.n) n FROM (SELECT * FROM t WHERE v < 40000) a
		LEFT JOIN (SELECT CASE WHEN v < 100 THEN v * 20000000000 - 1000000000000 ELSE r % 300000 END AS w, k, d, n FROM t) b ON a.v = b.w GROUP BY a.f',
	'keys far apart' => 'SELECT a.f, count(*) c, sum(b.k) s FROM t a JOIN t b ON a.r * 12 = b.v * 12 GROUP BY a.f',
	'nulls' => 'SELECT a.f, count(*) c, count(b.v) b FROM t a LEFT JOIN t b ON a.n = b.d GROUP BY a.f',
	'and another' => 'SELECT a.f, count(*) c, sum(b.k) s, sum(e.r) r FROM t a JOIN t b ON a.k = b.k
		LEFT JOIN (SELECT * FROM t WHERE v < 100000) e ON e.v = b.r GROUP BY a.f',
	'rows' => 'SELECT a.k, a.f, b.v, b.n, b.d, b.x FROM t a JOIN t b ON a.k = b.k',
	'rows of close keys' => 'SELECT a.f, b.k, b.n, b.d, b.r, b.x FROM t a JOIN t b ON a.v = b.v',
	'rows without another' => 'SELECT a.v, b.x, b.k FROM t a LEFT JOIN (SELECT * FROM t WHERE v % 20 > 0) b ON a.k = b.k',
	'rows of both' => 'SELECT a.v, b.v AS w, b.r FROM t a FULL JOIN (SELECT * FROM t WHERE f > 9) b ON a.k = b.k',
	'rows that are not there' => 'SELECT k, x FROM t a WHERE NOT EXISTS (SELECT FROM t b WHERE b.k = a.k AND b.n > 1 AND b.d + b.r > a.f)',
	'rows by where they lie' => 'SELECT a.ctid, b.ctid AS c FROM t a JOIN t b ON a.k = b.k AND a.r = b.r',
	'rows in order' => 'SELECT a.k, b.v, b.n, b.d FROM t a JOIN t b ON a.k = b.k ORDER BY a.k, b.v',
	'the first rows' => 'SELECT a.k, b.v, b.n, b.x FROM t a JOIN t b ON a.k = b.k ORDER BY b.n DESC, a.k LIMIT 1000',
	'windows' => 'SELECT f, v, rank() OVER (PARTITION BY f ORDER BY n, d, r, v) AS r FROM (SELECT a.f, a.v, b.n, b.d, b.r FROM t a LEFT JOIN t b ON a.k = b.k
		WHERE a.f < 50) j',
	'groups that are spilled, too' => 'SELECT a.k, count(*) c, sum(b.k) s FROM t a JOIN t b ON a.k = b.k GROUP BY a.k');

for my $name (sort keys %joins)
{
	answers("join: $name", "SELECT count(*), sum(hash_record_extended(q, 1)::numeric) FROM ($joins{$name}) q");
	like($node->safe_psql('postgres', "SET gpuvm.require = cpu; EXPLAIN (ANALYZE) $joins{$name}"), qr/Passes: ([2-9]|\d\d)/, 'in passes');
}

is($node->safe_psql('postgres', "SET gpuvm.require = cpu; SELECT count(*) FROM ($joins{'rows'} LIMIT 1234) q"), 1234, 'some rows of passes');
# what a row raises is raised, whichever pass it is in
my $columns = 'b.k, b.n, b.x, b.d, b.v, b.f';
for my $join ('a JOIN t b ON 1000 / (a.r - 77) = b.v', 'a JOIN t b ON a.v * 3000 = b.v',
	'a LEFT JOIN t b ON a.k = b.k AND 1000 / (a.r - b.r + a.f - 77) > -2000',
	'a FULL JOIN t b ON a.v * 3000 = b.v', 'a JOIN t b ON a.k = b.k WHERE a.n / (b.n - 5) > -1000000')
{
	my ($expected, $stderr) = map { ($node->psql('postgres', "SET gpuvm.require = 'any'; $_; SELECT $columns FROM t $join"))[2] =~ s/^psql[^ ]* |\nCONTEXT.*//grs }
		'SET gpuvm.enabled = off', 'SET gpuvm.enabled = on';

	like($expected, qr/ERROR:  (division by zero|integer out of range)/, "an error of a row: $join");
	is($stderr, $expected, 'in passes, too');
}
is($node->safe_psql('postgres', "SET gpuvm.require = cpu; SELECT count(*) FROM ($joins{'rows'} LIMIT 60000) q"), 60000, 'as many as a sort would keep');
is($node->safe_psql('postgres', "SET gpuvm.require = cpu; SET gpuvm.job_memory = '8MB'; SELECT count(*) FROM (SELECT * FROM t ORDER BY n, k LIMIT 60000) q"),
	60000, 'the first ones, which are too many to be kept');
# nobody knows which rows are left where gpuvmd is lost
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $err = '';

	$session->query_safe("SET gpuvm.require = cpu; BEGIN; DECLARE c CURSOR FOR $joins{'rows'}");
	is(scalar(split(/\n/, $session->query_safe('FETCH 10 FROM c'))), 10, 'a cursor has rows of passes');
	kill 'KILL', $node->safe_psql('postgres', q{SELECT substring(detail FROM 'PID ([0-9]+)') FROM gpuvm.status() WHERE backend = 'cpu'});
	$session->query('FETCH ALL FROM c');
	like($session->{stderr}, qr/ERROR:  a join cannot go on after its first rows/, 'and none twice');
	$session->quit;
	ok($node->poll_query_until('postgres', q{SELECT detail LIKE '%is running%' FROM gpuvm.status() WHERE backend = 'cpu'}), 'gpuvmd runs again');
	$node->safe_psql('postgres', "SELECT gpuvm.import('t')");
}

# Rows to be sorted, of which ties are told apart by the last key.
my %sorts = (
	'one key' => 'SELECT k, v FROM t ORDER BY k',
	'nulls, descending' => 'SELECT n, d, v FROM t ORDER BY n DESC NULLS LAST, d NULLS FIRST, v',
	'texts in order' => 'SELECT x, v, k FROM t ORDER BY x DESC, v',
	'all but some' => 'SELECT r, k, v FROM t ORDER BY r, v OFFSET 1000 LIMIT 800000',
	'many groups' => 'SELECT k, count(*) c, sum(v) s FROM t GROUP BY k ORDER BY s DESC, k',
	'a sorted join' => 'SELECT a.k, a.v, b.n FROM t a JOIN t b ON a.v = b.r WHERE a.f < 500 ORDER BY a.k, b.v');

for my $name (sort keys %sorts)
{
	answers("sorted: $name", "SELECT count(*), sum(hashtextextended(z::text, i)::numeric) FROM (SELECT z, row_number() OVER () AS i FROM ($sorts{$name}) z) q");
	spills_much("sorted: $name", $sorts{$name});
}
{
	my (undef, undef, $err) = $node->psql('postgres',
		"\\set VERBOSITY verbose\nSET gpuvm.require = cpu; SET temp_file_limit = '10MB'; $sorts{'one key'}");

	like($err, qr/53400: temporary file size exceeds temp_file_limit \(10240kB\)/, 'temp_file_limit holds for sorts');
}
is_deeply([ files() ], [], 'no file of a sort stays');

# However much there is, it is enough.
for my $mb (36, 48, 56, 64, 80)
{
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpuvm.engine_memory = '${mb}MB'");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('gpuvm.engine_memory') = '${mb}MB'");
	$node->safe_psql('postgres', 'SELECT pg_sleep(0.3)');
	for my $name ('keys without order', 'keys with slots', 'texts')
	{
		is($node->safe_psql('postgres', "SET gpuvm.require = cpu; SELECT count(c) FROM ($queries{$name} ORDER BY c DESC LIMIT 10) q"), 10, "$name within $mb MB");
	}
}
$node->safe_psql('postgres', q{ALTER SYSTEM SET gpuvm.engine_memory = '32MB'});
$node->reload;
$node->safe_psql('postgres', 'SELECT pg_sleep(0.5)');

# Where, and how large.
my $query = "SET gpuvm.require = cpu; SELECT count(c + s + m + k) FROM ($queries{'keys without order'} ORDER BY c DESC LIMIT 10) q";
my $at = -s $node->logfile;

is($node->safe_psql('postgres', "SET temp_tablespaces = other; $query"), 10, 'in a tablespace');
like(slurp_file($node->logfile, $at), qr{temporary file: path "pg_tblspc/[^"]*pgsql_tmp/pgsql_tmp[^"]*", size [1-9][0-9]{7}}, 'as the log says');

my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nSET temp_file_limit = '10MB'; $query");

like($err, qr/53400: temporary file size exceeds temp_file_limit \(10240kB\)/, 'temp_file_limit holds');
is($node->safe_psql('postgres', "SET temp_file_limit = '1GB'; $query"), 10, 'and what is below it is answered');
is_deeply([ files() ], [], 'no file stays');

# Plans know what that costs.
for my $costly ($joins{'groups'}, $joins{'rows of close keys'}, $queries{'keys without order'}, $sorts{'one key'})
{
	my ($plenty, $little) = map { $node->safe_psql('postgres', "SET gpuvm.job_memory = '$_'; EXPLAIN $costly")
		=~ /^Custom Scan \(GpuVM\)  \(cost=[\d.]+\.\.([\d.]+)/ }
		'32MB', '4MB';

	cmp_ok($little // 0, '>', $plenty // 99e9, "with less memory it costs more: $costly");
}

# Whoever ends in the middle of it.
my $slow = "SELECT count(*) FROM (SELECT a.k, b.v, count(*) c FROM t a JOIN t b ON a.f = b.f GROUP BY 1, 2 ORDER BY c DESC LIMIT 10) q";

sub spills
{
	for (1 .. 600)
	{
		return 1 if files() > 0;
		select(undef, undef, undef, 0.05);
	}
	return 0;
}

for my $how ('cancel', 'end of the session', 'gpuvmd killed', 'backend killed')
{
	my $session = $node->background_psql('postgres', on_error_stop => 0, on_error_die => 0);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');

	$session->query_until(qr//, "$slow;\n");
	ok(spills(), "$how: a query spills");
	if ($how eq 'cancel')
	{
		$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	}
	elsif ($how eq 'end of the session')
	{
		$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	}
	elsif ($how eq 'gpuvmd killed')
	{
		kill 'KILL', $node->safe_psql('postgres', q{SELECT substring(detail FROM 'PID ([0-9]+)') FROM gpuvm.status() WHERE backend = 'cpu'});
		# PostgreSQL's own plan spills, too
		$node->safe_psql('postgres', "SELECT pg_sleep(0.3), pg_cancel_backend($pid)");
	}
	else
	{
		kill 'KILL', $pid;
		ok($node->poll_query_until('postgres', 'SELECT true'), 'the server starts again');
	}
	ok(eval
	{
		local $SIG{ALRM} = sub { die };
		alarm 60;
		select(undef, undef, undef, 0.1) while files() > 0;
		alarm 0;
		1;
	}, "$how: its file goes");
	eval { $session->quit };
}
ok($node->poll_query_until('postgres', q{SELECT detail LIKE '%is running%' FROM gpuvm.status() WHERE backend = 'cpu'}), 'gpuvmd runs again');
is($node->safe_psql('postgres', "SELECT gpuvm.import('t'); $query") =~ s/.*\n//sr, 10, 'queries spill again');
done_testing();
