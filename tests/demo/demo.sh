#!/bin/bash
# make demo [ROWS=5000000]: from a fresh checkout to the papers' queries, with
# PostgreSQL and with gpuvm, in a private cluster that stays for the user.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tests/setup/install.sh
tests/setup/build.sh
exec /usr/bin/python3 tests/demo/demo.py --rows "${ROWS:-5000000}"
