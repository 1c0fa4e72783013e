#!/bin/bash
# Installs what building and testing gpuvm needs on Debian 12, and nothing that
# is there already.
#
#   tests/setup/install.sh            build, demo and the test suites
#   tests/setup/install.sh --tpch     and the generator of TPC-H's data, in build/venv; without a package index a word, and no failure
#   tests/setup/install.sh --tpcds    and DuckDB with TPC-DS's queries beside the generator, in the same way
#   tests/setup/install.sh --packages --tpcds   of these what is Debian's only
#   tests/setup/install.sh --bench    and the bench driver's peers: SQLite, and DuckDB beside both
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
# Another version may make other rows, and what of each query runs where hangs on them.
tpch=(tpcgen-cli==4.0.0)
tpcds=("${tpch[@]}" duckdb==1.5.5 duckdb-extension-tpcds==1.5.5)
bench=no packages_only=no wheels=()
for arg in "$@"; do
	case $arg in
		--tpch) wheels+=("${tpch[@]}"); packages+=(python3-venv) ;;
		--tpcds) wheels+=("${tpcds[@]}"); packages+=(python3-venv) ;;
		--bench) bench=yes wheels+=("${tpcds[@]}" matplotlib); packages+=(python3-venv gcc libsqlite3-dev) ;;
		--packages) packages_only=yes ;;
		*) echo "usage: $0 [--packages] [--tpch] [--tpcds] [--bench]" >&2; exit 2 ;;
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

installed() {
	build/venv/bin/python - "$@" <<-'EOF' 2>/dev/null
		import importlib.metadata, sys
		for name, _, version in (wheel.partition("==") for wheel in sys.argv[1:]):
		    assert importlib.metadata.version(name) == (version or importlib.metadata.version(name))
	EOF
}
if [ $packages_only = no ] && [ ${#wheels[@]} -gt 0 ] && ! installed "${wheels[@]}"; then
	echo "Installing ${wheels[*]} into build/venv ..."
	mkdir -p build
	# Debian's own python3: psycopg2 belongs to it, whatever else is on the PATH.
	if ! { { [ -x build/venv/bin/python ] || /usr/bin/python3 -m venv --system-site-packages build/venv; } &&
		build/venv/bin/pip install -q --retries 1 --timeout 20 "${wheels[@]}"; } >build/install-wheels.log 2>&1; then
		echo "They could not be installed; see build/install-wheels.log"
		[ $bench = no ] || exit 1
	fi
fi
