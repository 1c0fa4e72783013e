#!/bin/bash
# make check: builds and runs every suite, and closes with "N passed, N failed",
# the sum over all of them.
#
# A suite that runs nothing counts as one failure; a suite that cannot run here
# (no nvcc) is skipped, and says so. Logs are in build/check/.
# Environment: DIFF_QUERIES (1200), EMULATED_DIFF_QUERIES (80), STORM_SECONDS (20), TEST_PROGRAMS (20 random programs a
# test, 8 on the emulated device), SUITE_TIMEOUT (1200 seconds), SUITES (names separated by spaces; without it all but
# those that repeat others in another way, to be named: unit, without sanitizers; unit-cuda-tsan; experiment; emulated-more).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export TOGETHER=yes	# of tests' sources, several at a time are compiled
logs=build/check
jobs=$(nproc)
total_passed=0
total_failed=0
skipped=()
failed_suites=()	# "name|log"
cluster=
emulated_build=
unit_build=
declare -A tap tap_started	# by log: its process, and when it began
fetching=	# likewise

# Adds a suite's counts; its log is shown when something failed.
count() {
	local name=$1 passed=$2 failed=$3 rc=$4 log=$5
	if [ "$rc" != 0 ] && [ "$failed" = 0 ]; then
		failed=1
	fi
	if [ "$passed" = 0 ] && [ "$failed" = 0 ]; then
		echo "$name: nothing ran"
		failed=1
	fi
	if [ "$failed" != 0 ]; then
		echo "---- $name failed; the end of $log:"
		tail -n "${LOG_LINES:-60}" "$log"
		echo "----"
		failed_suites+=("$name|$log")
	fi
	total_passed=$((total_passed + passed))
	total_failed=$((total_failed + failed))
	printf '%-26s %6d passed, %d failed  (%d s)\n' "$name" "$passed" "$failed" $((SECONDS - suite_started))
}

# The names of what failed in a log, and then the first lines that say why; of a log that has neither its end.
failures_of() {
	local log=$1 lines=$2 names why
	names=$(sed -nE -e 's/^\[  FAILED  \] ([^ ,]+\.[^ ,]+).*/\1/p' -e 's/^(test )? *([^ ]+) +\.\.\. FAILED.*/\2/p' \
		-e '/^(not ok [0-9]|SHORT in |WRONG|that is less than )/p' "$log" | awk '!seen[$0]++')
	why=$(grep -hE -A 2 '(: Failure$|^DIFFERENCE|FAILED: )|: (fatal )?error: |ERROR: [A-Za-z]+Sanitizer|WARNING: ThreadSanitizer|runtime error: |^#   Failed|^#  +(got|expected): |^diff -U3 |error running SQL| timed out|^[0-9a-z_]+-.* at [^ ]+ line [0-9]+\.$|^[-+][^-+]|^[A-Za-z.0-9]*Error: ' "$log" |
		grep -vE '^(--$|--- |\+\+\+ |@@)' | awk '!seen[$0]++')
	if [ -z "$names$why" ]; then
		tail -n "$lines" "$log"
	elif [ -z "$names" ]; then
		head -n "$lines" <<<"$why"
	else
		{ head -n $(((lines + 1) / 2)) <<<"$names"; printf '%s\n' "$why"; } | head -n "$lines"
	fi
}

# Which suites failed and by what, in 25 lines at most: of a CI's log its end is read.
show_failures() {
	local n=${#failed_suites[@]} each i
	[ "$n" != 0 ] || return 0
	each=$((25 / n - 1))
	for ((i = 0; i < n && i < 24; i++)); do
		echo "FAILED: ${failed_suites[i]%|*} (${failed_suites[i]##*|})"
		[ $each -le 0 ] || failures_of "${failed_suites[i]##*|}" $each | cut -c -200 | sed 's/^/    /'
	done
	[ "$n" -le 24 ] || echo "FAILED: $((n - 24)) suites more"
}

wanted() {
	suite_started=$SECONDS
	[ -z "${SUITES:-}" ] || [[ " $SUITES " == *" $1 "* ]]
}

# A suite that runs only if it is named.
named() {
	suite_started=$SECONDS
	[[ " ${SUITES:-} " == *" $1 "* ]]
}

# Sums the numbers that a sed expression finds in a log.
sum_of() {
	sed -n "$1" "$2" | awk '{ n += $1 } END { print n + 0 }'
}

# What hangs is a failure, and does not take the time of all that follows.
bounded() {
	timeout -k 60 "${SUITE_TIMEOUT:-1200}" "$@"
}

# Name and make target.
gtest_suite() {
	local name=$1 target=$2 log=$logs/$2.log rc
	bounded make -j"$jobs" "$target" >"$log" 2>&1
	rc=$?
	count "$name" "$(sum_of 's/^\[  PASSED  \] \([0-9]*\) tests\{0,1\}\..*/\1/p' "$log")" \
		"$(sum_of 's/^\[  FAILED  \] \([0-9]*\) tests\{0,1\}, listed below.*/\1/p' "$log")" $rc "$log"
}

# pg_regress and pg_isolation_regress print the same lines.
regress_suite() {
	local name=$1 log=$logs/$2.log rc
	shift 2
	PGHOST=$(cluster_socket "$cluster") PGPORT=5432 PGUSER=postgres bounded make installcheck "$@" >"$log" 2>&1
	rc=$?
	if [ $rc != 0 ] && [ -s regression.diffs ]; then
		cat regression.diffs >>"$log"
	fi
	count "$name" "$(grep -cE '^(test )? *[^ ]+ +\.\.\. ok ' "$log")" "$(grep -cE '^(test )? *[^ ]+ +\.\.\. FAILED' "$log")" $rc "$log"
}

# Log, files of tests/t, and variables for the environment. It runs beside what comes next, until tap_suite() waits for it.
start_tap() {
	local name=$1 files=$2
	shift 2
	(
		bounded env "$@" tests/setup/tap.sh "$files" >"$logs/$name.log" 2>&1
		rc=$?
		echo $SECONDS >"$logs/$name.ended"
		exit $rc
	) &
	tap[$name]=$!
	tap_started[$name]=$SECONDS
}

# Name and log.
tap_suite() {
	local name=$1 log=$logs/$2.log rc
	[ -n "${tap[$2]:-}" ] || return 0
	wait "${tap[$2]}"
	rc=$?
	unset "tap[$2]"
	suite_started=$((SECONDS - $(<"$logs/$2.ended") + ${tap_started[$2]}))
	count "$name" "$(grep -cE '^ok [0-9]+' "$log")" "$(grep -cE '^not ok [0-9]+' "$log")" $rc "$log"
	grep '^the servers. logs' "$log"
	true
}

# Name, log, queries, engines, and more options.
diff_suite() {
	local name=$1 log=$logs/$2.log queries differences rc
	bounded tests/diff/run --queries "$3" --engines "$4" "${@:5}" --host "$(cluster_socket "$cluster")" >"$log" 2>&1
	rc=$?
	queries=$(sum_of 's/^\([0-9]*\) queries, [0-9]* differences, [0-9]* plans.*/\1/p' "$log")
	differences=$(sum_of 's/^[0-9]* queries, \([0-9]*\) differences, [0-9]* plans.*/\1/p' "$log")
	grep -E 'ran there|had a delta' "$log"
	count "$name" $((queries - differences)) "$differences" $rc "$log"
}

# docs/types.md says what the planner says.
support_suite() {
	local log=$logs/support.log rc
	/usr/bin/python3 docs/support.py --check --host "$(cluster_socket "$cluster")" >"$log" 2>&1
	rc=$?
	count "support table" $((rc == 0)) 0 $rc "$log"
}

# What suites far below need from other machines comes while the build has the processors.
fetch_data() {
	{
		tests/setup/install.sh --tpcds
		wanted postgres && tests/postgres/fetch.sh
	} >$logs/fetch.log 2>&1 &
	fetching=$!
}

fetched() {
	[ -z "$fetching" ] || wait "$fetching"
	fetching=
}

# PostgreSQL's own scripts, from Debian's source package. Name, log, options.
postgres_suite() {
	local name=$1 log=$logs/$2.log statements failures rc
	shift 2
	fetched
	if ! tests/postgres/fetch.sh >"$log" 2>&1; then
		tail -n 3 "$log"
		skipped+=("PostgreSQL's own scripts: no source package could be fetched")
		return
	fi
	bounded /usr/bin/python3 tests/postgres/run --host "$(cluster_socket "$cluster")" "$@" >>"$log" 2>&1
	rc=$?
	statements=$(sum_of 's/^\([0-9]*\) statements, [0-9]* failures.*/\1/p' "$log")
	failures=$(sum_of 's/^[0-9]* statements, \([0-9]*\) failures.*/\1/p' "$log")
	grep '^join: ' "$log"
	count "$name" $((statements - failures)) "$failures" $rc "$log"
}

# A workload of fixed queries: name, folder in tests, options.
workload_suite() {
	local name=$1 folder=$2 log=$logs/$2.log queries failures rc
	shift 2
	bounded "tests/$folder/run" --host "$(cluster_socket "$cluster")" "$@" >"$log" 2>&1
	rc=$?
	queries=$(sum_of 's/^\([0-9]*\) queries, [0-9]* failures.*/\1/p' "$log")
	failures=$(sum_of 's/^[0-9]* queries, \([0-9]*\) failures.*/\1/p' "$log")
	grep -E '^[0-9]+ queries, ' "$log"
	count "$name" $((queries - failures)) "$failures" $rc "$log"
}

# Suites whose data come from a package index: title and folder.
tpc_suite() {
	fetched
	if [ ! -x build/venv/bin/tpcgen-cli ] || { [ "$2" = tpcds ] && ! build/venv/bin/python -c "import duckdb_extension_tpcds" 2>/dev/null; }; then
		skipped+=("$1: what makes its data and queries could not be installed")
		return
	fi
	workload_suite "$1" "$2"
}

# Name, log, options. Writers beside readers that ask twice; in a cluster of its own, with autovacuum and the refresher.
storm_suite() {
	local name=$1 log=$logs/$2.log compared failures rc
	shift 2
	bounded tests/storm/run "$@" >"$log" 2>&1
	rc=$?
	compared=$(sum_of 's/^storm, .*; \([0-9]*\) comparisons, .*/\1/p' "$log")
	failures=$(sum_of 's/^storm, .* comparisons, \([0-9]*\) failures.*/\1/p' "$log")
	grep -E '^storm, ' "$log"
	count "$name" "$compared" "$failures" $rc "$log"
}

# A private cluster with these settings, in $cluster. No autovacuum and no refresher: whoever holds a
# snapshot keeps a VACUUM, and so an import, from finding rows visible to all.
make_cluster() {
	cluster=$(cluster_place "tmp_check/$1")
	cluster_drop "$cluster"
	shift
	if ! { cluster_init "$cluster" shared_buffers=256MB max_worker_processes=16 max_prepared_transactions=5 \
		autovacuum=off gpuvm.refresh=off "$@" && cluster_start "$cluster"; } >$logs/cluster.log 2>&1; then
		count "private cluster" 0 1 1 $logs/cluster.log
		cluster=
		return 1
	fi
}

# The whole server with the CUDA machine compiled for the CPU: the same tests on a "GPU".
emulated_suites() {
	[ -n "$emulated_build" ] || return 0
	suite_started=$SECONDS
	local log=$logs/emulated-build.log library tests=(ISOLATION=)
	if ! wait "$emulated_build"; then
		count "emulated library" 0 1 1 "$log"
		return
	fi
	library=$(cluster_place tmp_check/emulated.so)
	mkdir -p "$(dirname "$library")"
	cp build/emulated/gpuvm_cuda.so "$library"
	start_tap tap-emulated "t/*cuda_faults.pl" GPUVM_TEST_DEVICE=cuda GPUVM_TEST_CUDA_LIBRARY=build/emulated/gpuvm_cuda.so
	if make_cluster emulated gpuvm.cuda_library="$library"; then
		export GPUVM_TEST_DEVICE=cuda
		suite_started=$SECONDS
		# Time zones take as long there as a quarter of all others, and are the CPU's to test, as stores, files, changes and correlated subqueries are; unit tests have the device's. joins alone takes a quarter of the rest, and of its kin joins_many is enough. What follows takes most of what is left, and is the server's work, or its kin is asked (whole_*, distinct, numeric128, numeric_queries, dictionary, equal_keys, partitions): on a GPU all of them are.
		named emulated-more || tests+=("REGRESS=$(basename -s .sql -a tests/sql/*.sql | grep -vxE 'time_zone|dictionary_store|variable_store|whole_correlated|estimates|group_costs|fdw_parallel|tablet_.*|text_order|math_functions|joins|joins_bushy|dml|fdw_vm|whole_lateral|sets|having|derived|numeric_division|regex|variable|ctid|text_compare|refresh|costs|subqueries|equal_values|any_value|partitions_text|numeric_special|derived_numeric|security_probes|whole_external|plans|fallback|protocol|ddl|planning|whole_insert|whole_choice|activity|algebra|import|ages|quotas|group_slots' | tr '\n' ' ')")
		regress_suite "regression, emulated" regress-emulated "${tests[@]}"
		named emulated-more && regress_suite "isolation, emulated" isolation-emulated REGRESS=
		unset GPUVM_TEST_DEVICE
		named emulated-more && postgres_suite "PostgreSQL's own, emulated" postgres-emulated --device cuda join subselect case
		suite_started=$SECONDS
		diff_suite "differential, emulated" diff-emulated "$((${EMULATED_DIFF_QUERIES:-80} * 3))" off,cuda
		suite_started=$SECONDS
		diff_suite "types, emulated" diff-types-emulated "$((${EMULATED_DIFF_QUERIES:-80} * 3))" off,cuda --types --loaded
		suite_started=$SECONDS
		diff_suite "order, emulated" diff-order-emulated "${EMULATED_DIFF_QUERIES:-80}" off,cuda --order --loaded
		suite_started=$SECONDS
		diff_suite "subqueries, emulated" diff-subqueries-emulated "${EMULATED_DIFF_QUERIES:-80}" off,cuda --subqueries --loaded
		named emulated-more && diff_suite "changed, emulated" diff-changed-emulated "${EMULATED_DIFF_QUERIES:-80}" off,cuda --changed
		cluster_drop "$cluster"
		cluster=
	fi
	suite_started=$SECONDS
	storm_suite "storm, emulated" storm-emulated --seconds "$((${STORM_SECONDS:-20} / 2))" --rate 0.5 --device cuda --set gpuvm.cuda_library="$library"
}

# gpuvm_cuda.so for one architecture, and that it loads. ptxas takes most of the time: no GPU, no optimization.
cuda_suite() {
	wanted cuda || return 0
	if [ -z "$(make -s nvcc-path)" ]; then
		skipped+=("CUDA: no nvcc here, so gpuvm_cuda.so is neither compiled nor loaded")
		return
	fi
	export CUDA_ARCHS="${CUDA_ARCHS:-90}"
	nvidia-smi >/dev/null 2>&1 || export PTXAS_FLAGS=-O0 CUDA_UNRUN="interpreter_8 interpreter_16 window_inputs"
	gtest_suite "CUDA library" cuda-load
}

# Unit tests are compiled behind the emulated library, while servers leave a processor idle: they wait for their clients much of the time.
build_units() {
	local suite targets=()
	for suite in unit-asan unit-tsan unit-cuda; do
		wanted $suite && targets+=("$suite-built")
	done
	[ ${#targets[@]} != 0 ] || return 0
	{
		[ -z "$emulated_build" ] || tail --pid="$emulated_build" -f /dev/null
		nice -n 19 make -s -k -j"$jobs" "${targets[@]}"
	} >$logs/unit-build.log 2>&1 &
	unit_build=$!
}

# What did not compile says so here.
unit_suites() {
	[ -z "$unit_build" ] || wait "$unit_build"
	export GPUVM_TEST_PROGRAMS=${TEST_PROGRAMS:-20}
	named unit && gtest_suite "unit" unit
	wanted unit-asan && gtest_suite "unit (ASan, UBSan)" unit-asan
	wanted unit-tsan && gtest_suite "unit (TSan)" unit-tsan
	export GPUVM_TEST_PROGRAMS=${TEST_PROGRAMS:-8}
	wanted unit-cuda && gtest_suite "CUDA, emulated (ASan)" unit-cuda
	named unit-cuda-tsan && gtest_suite "CUDA, emulated (TSan)" unit-cuda-tsan
	experiment_suite
}

# The papers' queries as programs and as chains of primitives, against plain loops.
experiment_suite() {
	local log=$logs/experiment.log rc
	named experiment || return 0
	make -j"$jobs" experiment-emulated >"$log" 2>&1
	rc=$?
	count "experiment, emulated" "$(grep -cE '^[0-9]+( counted)? +[0-9]+ \|' "$log")" "$(grep -c '^WRONG' "$log")" $rc "$log"
}

finish() {
	[ -z "$cluster" ] || cluster_drop "$cluster"
}
trap finish EXIT

tests/setup/install.sh --packages --tpcds || exit 1
. tests/setup/cluster.sh	# asks pg_config, so not before
mkdir -p $logs
fetch_data

if wanted includes; then
	/usr/bin/python3 tests/setup/check_includes.py >$logs/includes.log 2>&1
	rc=$?
	count "include directions" $((rc == 0)) 0 $rc $logs/includes.log
fi
if wanted docs; then
	/usr/bin/python3 docs/opcodes.py --check >$logs/docs.log 2>&1
	rc=$?
	count "generated documents" $((rc == 0)) 0 $rc $logs/docs.log
fi
if wanted breaks; then
	applied=0
	: >$logs/breaks.log
	for patch in tests/breaks/*.patch; do
		patch -p1 --dry-run --force <"$patch" >>$logs/breaks.log 2>&1 && applied=$((applied + 1))
	done
	count "deliberate breaks apply" $applied $(($(ls tests/breaks/*.patch | wc -l) - applied)) 0 $logs/breaks.log
fi
cuda_suite

suite_started=$SECONDS
if ! tests/setup/build.sh >$logs/build.log 2>&1; then
	count "build" 0 1 1 $logs/build.log
else
	count "build" 1 0 0 $logs/build.log
	# Built while servers are tested, with what these leave of the processors.
	if wanted emulated || named emulated-more; then
		nice -n 19 make -s -j"$jobs" build/emulated/gpuvm_cuda.so >$logs/emulated-build.log 2>&1 &
		emulated_build=$!
	fi
	build_units
	if make_cluster check; then
		wanted regress && regress_suite "regression" regress ISOLATION=
		wanted isolation && regress_suite "isolation" isolation REGRESS=
		[ ! -e docs/types.md ] || { wanted docs && support_suite; }
		wanted diff && diff_suite "differential" diff "${DIFF_QUERIES:-1200}" off,cpu
		# Those that follow ask the same tables; who changes them comes last.
		wanted diff && suite_started=$SECONDS && diff_suite "differential, joins" diff-joins "$((${DIFF_QUERIES:-1200} / 2))" off,cpu --joins --loaded
		wanted diff && suite_started=$SECONDS && diff_suite "differential, order" diff-order "$((${DIFF_QUERIES:-1200} / 4))" off,cpu --order --loaded
		wanted diff && suite_started=$SECONDS && diff_suite "differential, subqueries" diff-subqueries "$((${DIFF_QUERIES:-1200} / 4))" off,cpu --subqueries --loaded
		wanted diff && suite_started=$SECONDS && diff_suite "differential, whole statements" diff-whole "$((${DIFF_QUERIES:-1200} / 4))" off,whole --subqueries --loaded
		wanted diff && suite_started=$SECONDS && diff_suite "differential, algebra" diff-algebra "$((${DIFF_QUERIES:-1200} / 8))" off,translated,algebra --subqueries --loaded
		wanted diff && suite_started=$SECONDS && diff_suite "differential, late columns" diff-late "$((${DIFF_QUERIES:-1200} / 4))" off,cpu --late --loaded
		wanted diff && suite_started=$SECONDS && diff_suite "differential, types" diff-types "$((${DIFF_QUERIES:-1200} / 2))" off,cpu --types --loaded
		wanted diff && suite_started=$SECONDS && diff_suite "differential, statements that change" diff-dml "$((${DIFF_QUERIES:-1200} / 8))" off,cpu --dml --loaded
		wanted diff && suite_started=$SECONDS && diff_suite "differential, changed" diff-changed "$((${DIFF_QUERIES:-1200} / 2))" off,cpu --changed
		wanted diff && suite_started=$SECONDS && diff_suite "differential, types changed" diff-types-changed "$((${DIFF_QUERIES:-1200} / 4))" off,cpu --types --changed
		wanted postgres && postgres_suite "PostgreSQL's own scripts" postgres
		wanted tpch && tpc_suite "TPC-H" tpch
		wanted tpcds && tpc_suite "TPC-DS" tpcds
		wanted ssb && suite_started=$SECONDS && workload_suite "Star Schema Benchmark" ssb
		cluster_drop "$cluster"
		cluster=
	fi
	wanted storm && storm_suite "consistency storm" storm --seconds "${STORM_SECONDS:-20}"
	# Its servers wait for one another much of the time: what the emulated device has to answer is asked meanwhile.
	wanted tap && start_tap tap "t/*.pl"
	emulated_suites
fi
unit_suites
# The last of them wait for most of their time, and would leave the processors idle.
tap_suite "TAP, emulated" tap-emulated
tap_suite "TAP" tap

for s in "${skipped[@]}"; do
	echo "skipped: $s"
done
show_failures
echo "$total_passed passed, $total_failed failed"
[ $total_failed = 0 ]
