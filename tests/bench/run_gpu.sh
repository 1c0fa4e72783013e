#!/bin/bash
# Everything that has to be measured on a machine with a GPU, in parts with time
# limits. Results go to $OUT (default: results/), a folder for each part.
#
#   tests/bench/run_gpu.sh [PART ...]
#
#   build        make for this machine's GPUs, and install; always first
#   smoke        a query on the device, gpuvm.status(), gpuvm.devices
#   engine       kernel times against bytes and hand-written kernels (vm_experiment)
#   groups       GROUP BY in the engine, by number of groups (groups_experiment)
#   primitives   one program against one kernel a primitive
#   join_kernels the steps of a join in the engine, checked (join_kernels_experiment, key_filter_experiment)
#   latency      waking another process, pinned memory and a killed process
#   sanitize     compute-sanitizer's memcheck and racecheck over small tables
#   memcheck     regression tests (MEMCHECK_TESTS) over a server that runs under memcheck
#   papers       bench.py papers sphyraena virginian: one load of the data for all
#   groupby firsttouch concurrency breakeven import roundtrip changes dml cudadb     bench.py's workloads
#   joins        bench.py joins, each of JOIN_PARTS by itself within its own limit, PEER_SECONDS for a peer's query
#   tpch ssb dbmbench     bench.py's workloads at SCALE (10), with build/venv's tpcgen-cli in PATH
#   sessions     TPC-H at SCALE (10): what gpuvm.device = auto takes, idle and with 1 to 64 sessions for SECONDS_EACH (6)
#   device_memory  TPC-H at SCALE (10) with gpuvm.device_memory unlimited, 4 GB and 1.5 GB: times, and what did not run on the GPU, and why
#   tpcds        TPC-DS at SCALE (10), each query within PEER_SECONDS (10); with duckdb-extension-tpcds of DuckDB's version for its python
#   regress      regression and isolation suites on the device
#   diff         differential suite: PostgreSQL, CPU and CUDA virtual machine
#   changed      the same over tables that change
#   storm        consistency storm on the device, STORM_SECONDS (the limit less two minutes)
#
# Environment: ROWS (the workloads' own), RUNS (7), DEVICE (cuda), DIFF_QUERIES
# (10000), ENGINES (bench.py's), LIMIT (seconds a part, 480), SANITIZER (compute-sanitizer), SANITIZER_ROWS, JOIN_PARTS
# (all; names separated by spaces), JOIN_SCALE (1), PEER_SECONDS (3; 10 of tpcds).
# A private cluster is made (tests/setup/cluster.sh), unless SERVER_SETUP names a
# file that, when sourced, brings PostgreSQL and defines pgstart SETTING=VALUE ...,
# which starts a server with its socket in /tmp. The program that times SQLite is
# built beforehand where SQLite is: make build/sqlite_rows. Plots are made where matplotlib is:
#   for part in papers groupby primitives joins-*; do build/venv/bin/python tests/bench/plots.py results/$part docs/img; done
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

out=$(realpath -m "${OUT:-results}")
device=${DEVICE:-cuda}
limit=${LIMIT:-480}
parts=${*:-build smoke engine groups primitives papers groupby firsttouch concurrency}
jobs=$(nproc)
memcheck_tests="group_count filters aggregates distinct text text_compare text_keys packed_text numeric numeric128 numeric_queries numeric_division"
memcheck_tests="$memcheck_tests equal_values equal_keys intervals dictionary_meet grouping_sets joins joins_bushy order_by row_compare pairs value_order"
mkdir -p "$out"
# shellcheck disable=SC1090
[ -z "${SERVER_SETUP:-}" ] || . "$SERVER_SETUP"
python=python3
[ ! -x build/venv/bin/python ] || python=build/venv/bin/python
failed=

say() {
	echo "[$(date +%T)] $*"
}

# Output to a log and to the screen, its end at least.
run() {
	local name=$1
	shift
	say "$name: $*"
	timeout -k 15 "$limit" "$@" >"$out/$name.log" 2>&1
	local rc=$?
	tail -n "${TAIL:-40}" "$out/$name.log"
	if [ $rc != 0 ]; then
		failed="$failed $name"
		say "$name FAILED with exit status $rc"
	fi
	return $rc
}

archs() {
	nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | grep -xE '[0-9]+\.[0-9]+' | tr -d . | sort -un | xargs
}
# Joins of a millisecond and more say in the server's log where it went (cuda/README.md).
export GPUVM_LOG_JOINS=${GPUVM_LOG_JOINS:-1}
export CUDA_ARCHS="${CUDA_ARCHS:-$(archs)}"
[ -n "$CUDA_ARCHS" ] || unset CUDA_ARCHS

build_all() {
	make -s -j"$jobs" all && { [ "$device" = cpu ] || make -s -j"$jobs" cuda; } && make -s install
}

# A running server with what is installed; its socket's folder in $host.
host=
server_log=
need_server() {
	[ -z "$host" ] || return 0
	if [ -n "${SERVER_SETUP:-}" ]; then
		pgstart "shared_preload_libraries='gpuvm'" "gpuvm.memory='24GB'" "max_connections=200" "autovacuum=off" "gpuvm.refresh=off" \
			"max_prepared_transactions=10" || exit 1
		host=/tmp
		server_log=/tmp/postgres.log
	else
		# shellcheck disable=SC1091
		. tests/setup/cluster.sh
		cluster=$(cluster_place tmp_check/gpu)
		[ -e "$cluster/data" ] || cluster_init "$cluster" max_worker_processes=64 shared_buffers=1GB work_mem=256MB max_wal_size=8GB autovacuum=off \
			gpuvm.refresh=off max_prepared_transactions=10
		cluster_stop "$cluster"
		cluster_start "$cluster" || exit 1
		host=$(cluster_socket "$cluster")
		server_log=$cluster/server.log
	fi
	export PGHOST=$host PGPORT=5432 PGUSER=postgres
}

sql() {
	psql -X -h "$host" -p 5432 -U postgres "$@"
}

bench() {
	local name=$1
	shift
	need_server
	TAIL=${TAIL:-120} run "$name" "$python" tests/bench/bench.py "$@" --device "$device" --host "$host" --runs "${RUNS:-7}" \
		${ROWS:+--rows "$ROWS"} ${ENGINES:+--engines "$ENGINES"} --out "$out/$name"
	rm -f "$out/$name"/*.db
}

# Seconds for each part of the joins: what it takes to make its tables, and to measure.
declare -A join_limits=([paper]=50 [theta]=60 [relations]=60 [equality]=90 [star]=100 [sessions]=40 [figures]=100 [rows]=50)
joins() {
	local part peer whole=$limit
	for part in ${JOIN_PARTS:-paper theta relations equality star sessions rows figures}; do
		limit=${join_limits[$part]} peer=${PEER_SECONDS:-3}
		[ "$part" != figures ] || peer=2 # ten queries at each size
		[ "$limit" -le "$whole" ] || limit=$whole
		ENGINES=${ENGINES:-parallel,duckdb,gpuvm} RUNS=${RUNS:-5} bench "joins-$part" joins --parts "$part" --scale "${JOIN_SCALE:-1}" \
			--peer-seconds "$peer"
		[ "$part" != star ] || join_steps
	done
	limit=$whole
}

# Where the time of the last joins went, by step: GPUVM_LOG_JOINS, below.
join_steps() {
	grep 'join: [0-9]' "$server_log" | tail -n 12 | tee "$out/joins-star/steps.txt"
}

smoke() {
	need_server
	sql -v ON_ERROR_STOP=1 <<-SQL
		CREATE EXTENSION IF NOT EXISTS gpuvm;
		SELECT pg_sleep(3);
		SELECT * FROM gpuvm.status();
		SELECT * FROM gpuvm.devices;
		DROP TABLE IF EXISTS smoke;
		CREATE TABLE smoke AS SELECT i AS id, i % 1000 AS k, i * 0.5::float8 AS f FROM generate_series(1, 1000000) i;
		SELECT gpuvm.import('smoke');
		SET gpuvm.device = $device;
		SET gpuvm.require = $device;
		SET gpuvm.force = on;
		EXPLAIN (ANALYZE) SELECT count(*), sum(f) FROM smoke WHERE k > 500;
		EXPLAIN (ANALYZE) SELECT count(*), sum(f) FROM smoke WHERE k > 500;
		EXPLAIN (ANALYZE) SELECT * FROM smoke WHERE k = 7;
		EXPLAIN (ANALYZE) SELECT k, count(*), min(f) FROM smoke GROUP BY k;
	SQL
}

engine() {
	nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,memory.total --format=csv,noheader
	build/cuda/bench/vm_experiment --rows 300000 --reps 1 >"$out/vm_small.txt" || { cat "$out/vm_small.txt"; return 1; }
	build/cuda/bench/vm_experiment --auto ${VM_ROWS:+--rows "$VM_ROWS"} --csv "$out/vm_experiment.csv"
}

groups() {
	build/cuda/bench/groups_experiment --csv "$out/groups.csv"
}

primitives() {
	build/cuda/bench/primitives_experiment --rows 300000 --reps 1 >"$out/primitives_small.txt" || { cat "$out/primitives_small.txt"; return 1; }
	mkdir -p "$out/primitives"
	build/cuda/bench/primitives_experiment ${PRIMITIVES_ROWS:+--rows "$PRIMITIVES_ROWS"} --csv "$out/primitives/primitives.csv"
}

join_kernels() {
	build/cuda/bench/join_kernels_experiment ${JOIN_KERNEL_ARGS:-} && build/cuda/bench/key_filter_experiment ${KEY_FILTER_ARGS:-}
}

latency() {
	g++ -std=c++17 -O2 -Wall -Wextra -pthread -o build/latency_experiment tests/bench/latency_experiment.cc && build/latency_experiment &&
		build/cuda/bench/latency_experiment ${PINNING_ARGS:-}
}

sanitize() {
	local tool program rc=0
	for tool in memcheck racecheck; do
		for program in "vm_experiment --auto --reps 1 --only u8" "vm_experiment --auto --reps 1 --only i32" "vm_experiment --auto --reps 1 --only f64" \
			"primitives_experiment --reps 1" "groups_experiment --reps 1 --groups 52,10000"; do
			# shellcheck disable=SC2086
			timeout 150 "${SANITIZER:-compute-sanitizer}" --tool $tool --error-exitcode 1 build/cuda/bench/$program --rows "${SANITIZER_ROWS:-60000}" || rc=1
		done
	done
	return $rc
}

# Regression tests over a server of its own under the sanitizer, in the foreground of its user. It has more processes than the sanitizer's
# 10 connections; several sessions at a time made it hang even so. It writes its summary when the server has stopped.
memcheck() {
	local sanitizer dir tool daemon rc=0 tests=${MEMCHECK_TESTS:-$memcheck_tests}
	sanitizer=$(command -v "${SANITIZER:-compute-sanitizer}") || { echo "there is no ${SANITIZER:-compute-sanitizer}"; return 1; }
	# shellcheck disable=SC1091
	. tests/setup/cluster.sh
	dir=$(cluster_place tmp_check/memcheck)
	rm -f "$out"/memcheck.*.log
	cluster_drop "$dir" && cluster_init "$dir" max_worker_processes=16 shared_buffers=256MB autovacuum=off gpuvm.refresh=off max_prepared_transactions=10 || return 1
	as_server "$sanitizer" --tool memcheck --target-processes all --max-connections 1000 --log-file "$dir/memcheck.%p.log" \
		"$PG_BIN/postgres" -D "$dir/data" >"$dir/server.log" 2>&1 &
	tool=$!
	# shellcheck disable=SC2064
	trap "cluster_stop '$dir'" EXIT
	until cluster_psql "$dir" -q -c "SELECT 1" >/dev/null 2>&1; do
		kill -0 $tool 2>/dev/null || { tail -n 20 "$dir/server.log"; return 1; }
		sleep 1
	done
	# loads the kernels, which takes longer than a statement of the suite may
	cluster_psql "$dir" -q -v ON_ERROR_STOP=1 <<-'SQL' || return 1
		CREATE EXTENSION gpuvm;
		DO $$ BEGIN
			FOR i IN 1 .. 300 LOOP
				EXIT WHEN EXISTS (SELECT FROM gpuvm.status() WHERE backend LIKE 'cuda:%' AND loaded);
				PERFORM pg_sleep(1);
			END LOOP;
		END $$;
	SQL
	daemon=$(cluster_psql "$dir" -qAt -c "SELECT substring(detail FROM 'PID ([0-9]+)') FROM gpuvm.status() WHERE backend = 'cpu'")
	grep -q libsanitizer "/proc/$daemon/maps" || { echo "gpuvmd does not run under the sanitizer"; return 1; }
	PGHOST=$(cluster_socket "$dir") PGPORT=5432 PGUSER=postgres GPUVM_TEST_DEVICE=$device make installcheck REGRESS="$tests" ISOLATION= || rc=1
	cluster_stop "$dir"
	wait $tool
	cp "$dir"/memcheck.*.log "$dir/server.log" "$out/"
	grep -H "ERROR SUMMARY" "$dir"/memcheck.*.log || { echo "the sanitizer came to no summary"; rc=1; }
	! grep -h "ERROR SUMMARY" "$dir"/memcheck.*.log | grep -qv "ERROR SUMMARY: 0 errors" || rc=1
	return $rc
}

wait_for_all() {
	local pid rc=0
	for pid in "$@"; do
		wait "$pid" || rc=1
	done
	return $rc
}

regress() {
	need_server
	GPUVM_TEST_DEVICE=$device make installcheck
	local rc=$?
	[ $rc = 0 ] || cp regression.diffs "$out/" 2>/dev/null
	return $rc
}

# In shares at the same time, each with a seed and a database of its own. $1: more options.
differential() {
	local shares=4 engines=off,cpu pids=() s rc=0
	[ "$device" = cpu ] || engines=off,cpu,$device
	for s in $(seq $shares); do
		sql -q -c "DROP DATABASE IF EXISTS diff_$s" -c "CREATE DATABASE diff_$s"
		"$python" tests/diff/run --queries $((${DIFF_QUERIES:-10000} / shares)) --seed "$s" --host "$host" --database "diff_$s" --engines "$engines" "$@" \
			>"$out/diff_$s.txt" 2>&1 &
		pids+=($!)
	done
	wait_for_all "${pids[@]}" || rc=1
	tail -n 15 "$out"/diff_?.txt
	return $rc
}

# With autovacuum and the refresher.
storm() {
	local name rc
	sql -q -c "DROP DATABASE IF EXISTS storm" -c "CREATE DATABASE storm" -c "ALTER SYSTEM SET autovacuum = on" -c "ALTER SYSTEM SET autovacuum_naptime = 1" \
		-c "ALTER SYSTEM SET gpuvm.refresh = on" -c "ALTER SYSTEM SET gpuvm.refresh_naptime = 1" -c "SELECT pg_reload_conf()"
	"$python" tests/storm/run --seconds "${STORM_SECONDS:-$((limit - 120))}" --device "$device" --host "$host" --database storm --log "$server_log"
	rc=$?
	for name in autovacuum autovacuum_naptime gpuvm.refresh gpuvm.refresh_naptime; do
		sql -q -c "ALTER SYSTEM RESET $name"
	done
	sql -q -c "SELECT pg_reload_conf()"
	return $rc
}

experiments() {
	make -s -j"$jobs" cuda-bench
}

# run() calls functions in a shell of their own, with the time limit.
export -f say sql smoke engine groups primitives join_kernels latency sanitize memcheck wait_for_all regress differential storm experiments build_all
export out device jobs python limit server_log memcheck_tests
call() {
	local name=$1
	host=$host run "$name" bash -c "set -uo pipefail; host='$host'; need_server() { :; }; $2"
}

for part in $parts; do
	started=$SECONDS
	case $part in
		build) call build build_all || exit 1 ;;
		smoke) need_server; TAIL=150 call smoke smoke ;;
		engine | groups | primitives | join_kernels | latency | sanitize) call experiments experiments && TAIL=60 call "$part" "$part" ;;
		papers) bench papers papers sphyraena virginian ;;
		groupby | breakeven | import) bench "$part" "$part" ;;
		firsttouch | concurrency | roundtrip | changes | dml) ENGINES=gpuvm bench "$part" "$part" ;;
		cudadb) ENGINES=${ENGINES:-sqlite,gpuvm} bench "$part" "$part" ;;
		joins) joins ;;
		tpch | ssb | dbmbench) ENGINES=${ENGINES:-parallel,duckdb,gpuvm} RUNS=${RUNS:-5} bench "$part" "$part" --scale "${SCALE:-10}" --peer-seconds "${PEER_SECONDS:-3}" ;;
		sessions) ENGINES=gpuvm RUNS=${RUNS:-5} bench sessions sessions --scale "${SCALE:-10}" --seconds "${SECONDS_EACH:-6}" ;;
		device_memory) ENGINES=gpuvm RUNS=${RUNS:-3} bench "$part" "$part" --scale "${SCALE:-10}" --peer-seconds "${PEER_SECONDS:-10}" ;;
		tpcds) ENGINES=${ENGINES:-duckdb,gpuvm} RUNS=${RUNS:-3} bench "$part" "$part" --scale "${SCALE:-10}" --peer-seconds "${PEER_SECONDS:-10}" ;;
		memcheck) TAIL=60 call memcheck memcheck ;;
		regress) need_server; call regress regress ;;
		diff) need_server; call diff differential ;;
		changed) need_server; call changed "differential --changed" ;;
		storm) need_server; call storm storm ;;
		*) echo "unknown part: $part" >&2; exit 2 ;;
	esac
	say "$part: $((SECONDS - started)) s"
done
[ ! -f /tmp/postgres.log ] || cp /tmp/postgres.log "$out/server.log"
if [ -n "${cluster:-}" ]; then
	cp "$cluster/server.log" "$out/server.log"
	cluster_stop "$cluster"
fi
grep -h "\*\*missed\*\*\|MISSED" "$out"/*.log 2>/dev/null | sort -u | sed 's/^/missed: /'
if [ -n "$failed" ]; then
	echo "failed:$failed"
	exit 1
fi
echo "all parts done: $parts"
