#!/bin/bash
# Builds gpuvm and installs it into PostgreSQL's folders, if what is there differs.
# Without the right to write there, says what to run. The CUDA virtual machine is
# built for this machine's GPUs, if there are any; CUDA_ARCHS names others.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [ -z "${CUDA_ARCHS:-}" ]; then
	CUDA_ARCHS=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
		grep -xE '[0-9]+\.[0-9]+' | tr -d . | sort -un | xargs || true)
	if [ -n "$CUDA_ARCHS" ]; then
		export CUDA_ARCHS
	else
		unset CUDA_ARCHS
		export NVCC=
	fi
fi

mkdir -p build
echo "Building gpuvm ..."
if ! make -s -j"$(nproc)" all >build/make.log 2>&1; then
	tail -n 40 build/make.log >&2
	echo "the build failed; the whole output is in build/make.log" >&2
	exit 1
fi

libdir=$(pg_config --pkglibdir)
sharedir=$(pg_config --sharedir)/extension
installed() {
	local f
	for f in gpuvm.so gpuvmd; do
		cmp -s $f "$libdir/$f" || return 1
	done
	[ -z "$(make -s nvcc-path)" ] || cmp -s gpuvm_cuda.so "$libdir/gpuvm_cuda.so" || return 1
	for f in gpuvm.control sql/gpuvm--*.sql; do
		cmp -s "$f" "$sharedir/$(basename "$f")" || return 1
	done
}
if ! installed; then
	if [ ! -w "$libdir" ] || [ ! -w "$sharedir" ]; then
		echo "Please install gpuvm into PostgreSQL's folders first:" >&2
		echo "    sudo make install" >&2
		exit 1
	fi
	make -s install >build/make-install.log 2>&1 || { tail -n 20 build/make-install.log >&2; exit 1; }
fi
