#!/bin/bash
# Installs what building and testing gpuvm needs on Debian 12, and nothing that
# is there already.
#
#   tests/setup/install.sh            build, demo and the test suites
#   tests/setup/install.sh --tpch     and TPC-H's generator of data, in build/venv; without a package index a word, and no failure
#   tests/setup/install.sh --bench    and the bench driver's peers: SQLite, and DuckDB beside TPC-H's generator
#
# As root it installs; as another user it says what to install and fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

packages=(
	g++ make
	postgresql-15 postgresql-server-dev-15	# the server, its headers and PGXS
	postgresql-contrib						# pageinspect and pg_visibility in tests
	libgtest-dev							# unit tests
	libboost-context-dev					# fibers: the CUDA machine's threads on a CPU
	libipc-run-perl							# TAP tests
	patch									# deliberate breaks
	python3 python3-psycopg2				# demo, differential suite, bench driver
)
tpchgen=tpchgen-cli==4.0.0	# another version may make other rows, and what of each query runs where hangs on them
bench=no tpch=no
for arg in "$@"; do
	case $arg in
		--tpch) tpch=yes; packages+=(python3-venv) ;;
		--bench) bench=yes; packages+=(python3-venv gcc libsqlite3-dev) ;;
		*) echo "usage: $0 [--tpch] [--bench]" >&2; exit 2 ;;
	esac
done

missing=()
for p in "${packages[@]}"; do
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done

if [ ${#missing[@]} -gt 0 ]; then
	if [ "$(id -u)" != 0 ]; then
		echo "Please install these packages first, as root:" >&2
		echo "    apt-get install ${missing[*]}" >&2
		exit 1
	fi
	echo "Installing ${missing[*]} ..."
	export DEBIAN_FRONTEND=noninteractive
	mkdir -p build
	if ! { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } >build/install.log 2>&1; then
		tail -n 20 build/install.log >&2
		echo "apt-get failed; the whole output is in build/install.log" >&2
		exit 1
	fi
fi

# Debian's own python3: psycopg2 belongs to it, whatever else is on the PATH.
make_venv() {
	[ -x build/venv/bin/python ] || { echo "Making build/venv ..."; /usr/bin/python3 -m venv --system-site-packages build/venv; }
}
if [ $bench = yes ]; then
	make_venv
	if ! build/venv/bin/python -c 'import duckdb, matplotlib' 2>/dev/null || [ ! -x build/venv/bin/tpchgen-cli ]; then
		echo "Installing DuckDB, matplotlib and TPC-H's data generator into build/venv ..."
		build/venv/bin/pip install -q duckdb matplotlib $tpchgen
	fi
elif [ $tpch = yes ] && [ ! -x build/venv/bin/tpchgen-cli ]; then
	mkdir -p build
	{ make_venv && build/venv/bin/pip install -q --retries 1 --timeout 20 $tpchgen; } >build/install-tpch.log 2>&1 ||
		echo "TPC-H's data generator could not be installed; see build/install-tpch.log"
fi
