# What was imported is imported again in the background, after every kind of end:
# of the postmaster, of gpuvmd, of a backend in the midst of an import, of the
# refresher. Until then, and after, the answers are PostgreSQL's.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GpuvmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('reimport', refreshing());
create_big($node);
$node->safe_psql('postgres', q{
	CREATE TABLE some_columns (id int, v int, w float8, note text);
	INSERT INTO some_columns SELECT i, i % 7, i, 'x' FROM generate_series(1, 20000) i;
	SELECT gpuvm.import('some_columns', ARRAY['id', 'w']);
	CREATE TABLE parts (k int, v int8) PARTITION BY RANGE (k);
	CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
	CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1000) TO (2000);
	INSERT INTO parts SELECT i % 2000, i FROM generate_series(1, 20000) i;
	SELECT gpuvm.import('parts');
	CREATE TABLE worded (id int, t text, long text);
	ALTER TABLE worded ALTER long SET STORAGE EXTERNAL;
	INSERT INTO worded SELECT i, 'word ' || i % 300, repeat('long ' || i % 9, 500) FROM generate_series(1, 2000) i;
	SELECT gpuvm.import('worded');
	CREATE TABLE released (a int);
	INSERT INTO released VALUES (1);
	SELECT gpuvm.import('released');
	SELECT gpuvm.release('released');
});
my @tables = ('big', 'some_columns', 'parts_1', 'parts_2', 'worded');
my @queries = ('SELECT count(*), sum(l) FROM big WHERE v < 50', 'SELECT count(*), sum(id), max(w) FROM some_columns WHERE id > 100',
	'SELECT count(*), sum(v) FROM parts WHERE k % 3 = 0',
	q{SELECT count(*), sum(id), count(t) FROM worded WHERE t IN ('word 7', 'new 3') OR long LIKE '%long 5%'});

# Right at once, and from the VM once everything is back.
sub comes_back
{
	my ($what) = @_;
	my @expected = map { without($node, $_) } @queries;

	is($node->safe_psql('postgres', "SET gpuvm.force = on; $queries[$_]"), $expected[$_], "$what: right at once, query $_") for 0 .. $#queries;
	wait_for_tables($node, 'postgres', @tables);
	wait_for_engine($node);
	is(with_vm($node, $queries[$_]), $expected[$_], "$what: on the VM, query $_") for 0 .. $#queries;
	is($node->safe_psql('postgres', q{SELECT string_agg(c, ',' ORDER BY c) FROM (SELECT unnest(columns)::text FROM gpuvm.tables WHERE relation = 'some_columns'::regclass) q (c)}),
		'id,w', "$what: the columns that were named");
	is($node->safe_psql('postgres', q{SELECT count(*) FROM gpuvm.tables WHERE relation = 'released'::regclass}), '0', "$what: not what was released");
	return;
}

comes_back('at first');

# Rows that were changed after the import: the tablets of another life must not answer.
sub change
{
	$node->safe_psql('postgres', q{
		UPDATE big SET l = -l WHERE id % 1000 = 7;
		DELETE FROM some_columns WHERE id BETWEEN 500 AND 510;
		INSERT INTO parts VALUES (3, 3), (1999, 9);
		INSERT INTO worded SELECT id + 10000, 'new ' || id % 20, repeat(t || '. long ' || id, 200) FROM worded WHERE id % 100 = 50;
	});
	return;
}

$node->restart;
comes_back('restart');
change();
$node->stop('immediate');
$node->start;
comes_back('immediate shutdown');

# kill -9 of the postmaster. Its children go by themselves.
change();
$node->kill9;
for (my $i = 0; $i < 300 && !$node->start(fail_ok => 1); $i++)
{
	select(undef, undef, undef, 0.1);
	$node->stop('fast', fail_ok => 1);
}
comes_back('kill -9 of the postmaster');

# kill -9 of gpuvmd leaves the tablets, and the changed blocks' rows, where they are.
my $log_start = -s $node->logfile;
change();
my $pid = engine_pid($node);
kill 'KILL', $pid;
my @expected = map { without($node, $_) } @queries;
is($node->safe_psql('postgres', "SET gpuvm.force = on; $queries[$_]"), $expected[$_], "kill -9 of gpuvmd: right at once, query $_") for 0 .. $#queries;
wait_for_new_engine($node, $pid);
is(with_vm($node, $queries[$_]), $expected[$_], "kill -9 of gpuvmd: on the VM, query $_") for 0 .. $#queries;
crash_free($node, $log_start, 'kill -9 of gpuvmd: the cluster did not restart');

# A backend in the midst of an import.
$node->safe_psql('postgres', 'CREATE TABLE large AS SELECT i AS a, i % 7 AS b, i::float8 AS c, \'w\' || i % 90000 AS t FROM generate_series(1, 1000000) i');
change();
my $session = $node->background_psql('postgres', on_error_stop => 0);
my $backend = $session->query('SELECT pg_backend_pid()');
$log_start = -s $node->logfile;
$session->query_until(qr/started/, "\\echo started\nSELECT gpuvm.import('large');\n");
$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM gpuvm.import_progress WHERE pid = $backend") or die 'the import does not show';
kill 'KILL', $backend;
$node->wait_for_log(qr/database system is ready to accept connections/, $log_start);
$node->poll_query_until('postgres', 'SELECT true');
eval { $session->quit };
comes_back('kill -9 of a backend in an import');
is($node->safe_psql('postgres', q{SELECT count(*) FROM gpuvm.imports WHERE relation = 'large'::regclass}), '0', 'an import that did not end is not remembered');

# The refresher, while it imports. One that died is not started again at once, but another one comes.
$node->safe_psql('postgres', q{SELECT gpuvm.import('large')});
push @tables, 'large';
push @queries, 'SELECT count(*), sum(a), min(c) FROM large WHERE b <> 3';
$node->append_conf('postgresql.conf', 'gpuvm.refresh_cost_delay = 100ms');
change();
$node->restart;
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type LIKE '%refresher%' AND datname = 'postgres'})
  or die 'no refresher comes';
$backend = $node->safe_psql('postgres', q{SELECT min(pid) FROM pg_stat_activity WHERE backend_type LIKE '%refresher%' AND datname = 'postgres'});
$log_start = -s $node->logfile;
$node->append_conf('postgresql.conf', 'gpuvm.refresh_cost_delay = 0');
$node->reload;
kill 'KILL', $backend;
$node->wait_for_log(qr/database system is ready to accept connections/, $log_start);
$node->poll_query_until('postgres', 'SELECT true');
comes_back('kill -9 of the refresher');

# Released while it is being imported: the end of the import does not bring it back.
$node->append_conf('postgresql.conf', "gpuvm.refresh_cost_delay = 20ms\nvacuum_cost_limit = 1");
$node->restart;
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM gpuvm.import_progress WHERE relation = 'large'::regclass})
  or die 'the refresher does not import';
$node->safe_psql('postgres', q{SELECT gpuvm.release('large')});
is($node->safe_psql('postgres', q{SELECT count(*) FROM gpuvm.import_progress WHERE relation = 'large'::regclass}), '1', 'released while it is being imported');
$node->append_conf('postgresql.conf', "gpuvm.refresh_cost_delay = 0\nvacuum_cost_limit = 200");
$node->reload;
pop @tables;
pop @queries;
comes_back('released while it is being imported');
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE '%refresher%' AND datname = 'postgres'})
  or die 'the refresher stays';
is($node->safe_psql('postgres', q{SELECT count(*) FROM gpuvm.tables WHERE relation = 'large'::regclass}), '0', 'it stays released');

# A table that is locked when the others are imported comes later, also where nothing is refreshed.
$node->append_conf('postgresql.conf', "gpuvm.refresh = off\nmax_prepared_transactions = 2");
$node->restart;
$node->safe_psql('postgres', q{BEGIN; LOCK TABLE some_columns; PREPARE TRANSACTION 'locked'});
$node->restart;
wait_for_tables($node, 'postgres', 'big', 'parts_1', 'parts_2', 'worded');
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE '%refresher%' AND datname = 'postgres'})
  or die 'the refresher stays';
$node->safe_psql('postgres', q{COMMIT PREPARED 'locked'});
comes_back('a table that was locked');

# Nothing that died has left memory behind.
$node->safe_psql('postgres', "SELECT gpuvm.release('$_')") for 'big', 'some_columns', 'parts', 'worded';
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpuvm.tables'), '0', 'all released');
ok(wait_for_memory($node, 0), 'nothing is left in memory');
$node->stop;
done_testing();
