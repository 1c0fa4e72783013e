#!/bin/bash
# Runs TAP tests: tests/setup/tap.sh FILE ..., files of tests/t such as t/001_engine_crash.pl.
# The tests start servers, so they run as the server's user, in a folder that it can read
# and write; it stays when a test fails. GPUVM_TEST_CUDA_LIBRARY names a library of build/.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/setup/cluster.sh

place=$(as_server mktemp -d /tmp/gpuvm-tap.XXXXXX)
cp -r tests/t "$place/t"
library=
if [ -n "${GPUVM_TEST_CUDA_LIBRARY:-}" ]; then
	cp "$GPUVM_TEST_CUDA_LIBRARY" "$place/cuda.so"
	library=$place/cuda.so
fi
[ "$(id -u)" != 0 ] || chown -R postgres: "$place"
# Nodes are copies of one cluster: initdb takes a second of a processor. (PostgreSQL 17 knows the variable; GpuvmTest.pm tells older ones.)
as_server "$PG_BIN/initdb" -D "$place/template" -A trust -N >"$place/initdb.log" || exit 1
pgxs=$(dirname "$(pg_config --pgxs)")/../test
as_server env -u PGHOST -u PGPORT -u PGUSER TESTDIR="$place" PATH="$PG_BIN:$PATH" PGPORT=65432 FILES="$*" \
	INITDB_TEMPLATE="$place/template" GPUVM_TEST_CUDA_LIBRARY="$library" PERL5LIB="$pgxs/perl" PG_REGRESS="$pgxs/regress/pg_regress" \
	bash -c 'cd "$TESTDIR" && prove -v -j3 $FILES'
rc=$?
if [ $rc = 0 ]; then
	rm -rf "$place"
else
	# Why a test ended early is in its log alone.
	for log in "$place"/tmp_check/log/regress_log_*; do
		grep -HE -B 8 'Tests were run but no plan|exited with [0-9]+ (before|just after)' "$log" | sed 's|^.*/regress_log_||' | cut -c -300
	done
	echo "the servers' logs are in $place"
fi
exit $rc
