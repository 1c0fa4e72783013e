#!/bin/sh
# Builds and runs the engine experiments on a machine with a GPU and nvcc.
# usage: tests/bench/run_experiment.sh [vm] [sanitize] [latency]   (default: all)
# Tables go to standard output, CSV files and logs to $OUT (default: results/).
set -e
cd "$(dirname "$0")/../.."
parts="${*:-vm sanitize latency}"
out="${OUT:-results}"
build="${BUILD:-build/experiment}"
mkdir -p "$out" "$build"
flags="-std=c++17 -O3 --fmad=false -arch=sm_90 -Isrc -Icuda -Itests/bench"

pids=
for r in 4 8 16; do
	nvcc $flags -Xptxas -v -c "cuda/interpreter_$r.cu" -o "$build/interpreter_$r.o" 2>"$build/interpreter_$r.log" &
	pids="$pids $!"
done
nvcc $flags -c tests/bench/vm_experiment.cu -o "$build/vm_experiment.o" &
pids="$pids $!"
nvcc $flags -c cuda/launch.cu -o "$build/launch.o" &
pids="$pids $!"
for f in cuda/lower*.cc src/tablet/build.cc src/vm/program.cc src/vm/value_range.cc src/vm/verify.cc; do
	g++ -std=c++17 -O2 -Isrc -Icuda -c "$f" -o "$build/$(basename "$f" .cc).o" &
	pids="$pids $!"
done
for p in $pids; do wait "$p"; done
nvcc -arch=sm_90 -o "$build/vm_experiment" "$build"/vm_experiment.o "$build"/interpreter_*.o "$build"/launch.o \
	"$build"/lower*.o "$build"/build.o "$build"/program.o "$build"/value_range.o "$build"/verify.o
grep -hE "Used|spill" "$build"/interpreter_*.log

for part in $parts; do
	case $part in
	vm)
		nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem --format=csv,noheader
		"$build/vm_experiment" --rows 300000 --reps 1 >"$out/vm_small.txt" || { cat "$out/vm_small.txt"; exit 1; }
		timeout 240 "$build/vm_experiment" --csv "$out/vm_experiment.csv" ${VM_ARGS:-} | tee "$out/vm_experiment.txt"
		;;
	sanitize)
		for width in u8 i32 f64; do
			compute-sanitizer --tool memcheck "$build/vm_experiment" --rows 60000 --reps 1 --only $width 2>&1 |
				tail -n 3
		done
		;;
	latency)
		g++ -std=c++17 -O2 -Wall -Wextra -pthread -o "$build/latency_experiment" tests/bench/latency_experiment.cc
		"$build/latency_experiment" | tee "$out/latency.txt"
		nvcc $flags -o "$build/latency_experiment_cuda" tests/bench/latency_experiment.cu
		"$build/latency_experiment_cuda" ${PINNING_ARGS:-} | tee "$out/pinning.txt"
		;;
	*)
		echo "unknown part: $part" >&2
		exit 2
		;;
	esac
done
