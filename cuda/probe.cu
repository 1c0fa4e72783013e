/* probe.cu: what outer rows find. See pairs.h. */
#include "pairs.h"

#include <algorithm>

#include "bit_scan.cuh"
#include "join_keys.cuh"
#include "kernel_launch.h"
#include "row_blocks.h"
#include "scan.cuh"

namespace gpuvm {
namespace cuda {

namespace {

/* ---- looking up ------------------------------------------------------------------ */

/* What this thread's rows, BLOCK_ROWS a block, have found. All threads of the block come here. */
GPUVM_D void
leave_found(const Probe &probe, const Found (&found)[LANE_ROWS])
{
	__shared__ uint32_t block_matched;
	__shared__ unsigned long long block_pairs;
	const uint32_t first = blockIdx.x * BLOCK_ROWS + threadIdx.x, lane = threadIdx.x % 32;
	uint32_t	matched = 0;
	unsigned long long pairs = 0;

	if (threadIdx.x == 0)
	{
		block_matched = 0;
		block_pairs = 0;
	}
	__syncthreads();
#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		const uint32_t row = first + k * THREADS;
		const uint32_t bits = __ballot_sync(~0u, row < probe.nrows && found[k].count != 0);

		matched += static_cast<uint32_t>(__popc(bits));
		pairs += found[k].count;
		if (row >= probe.nrows)
			continue;
		if (lane == 0)
			probe.matched_bits[row / 32] = bits;
		if (!lists_pairs(probe.mode))
			continue;
		/* Once written and read: the table is what the L2 cache is for. */
		__stcs(&probe.first[row], found[k].count != 0 ? found[k].first : NO_ROW);
		if (!probe.single)
			__stcs(&probe.count[row], found[k].count);
	}
	if (probe.mode == ProbeMode::Count)
	{
		for (int step = 16; step > 0; step /= 2)
			pairs += __shfl_xor_sync(~0u, pairs, step);
		if (lane == 0)
			atomicAdd(&block_pairs, pairs);
	}
	if (lane == 0 && matched != 0)
		atomicAdd(&block_matched, matched);
	__syncthreads();
	if (threadIdx.x == 0 && block_matched != 0)
	{
		atomicAdd(&probe.outcome->matched, block_matched);
		if (probe.mode == ProbeMode::Count)
			atomicAdd(reinterpret_cast<unsigned long long *>(&probe.outcome->npairs), block_pairs);
	}
}

/* V: the key as it lies there. */
template <JoinForm FORM, typename V>
__global__ void __launch_bounds__(THREADS)
look_up_slots(const __grid_constant__ JoinTable table, const RowColumn key, const __grid_constant__ Probe probe)
{
	const uint32_t first = blockIdx.x * BLOCK_ROWS + threadIdx.x;
	V			v[LANE_ROWS];
	bool		live[LANE_ROWS];
	Found		found[LANE_ROWS];

#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		const uint32_t row = first + k * THREADS;

		live[k] = row < probe.nrows && !key_null(key, row);
		v[k] = row < probe.nrows ? __ldcs(reinterpret_cast<const V *>(key.values) + row) : V();
	}
#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
		found[k] = live[k] ? find_slot<FORM>(table, static_cast<uint64_t>(static_cast<int64_t>(v[k]))) : FOUND_NOTHING;
	leave_found(probe, found);
}

template <typename Code>
__global__ void __launch_bounds__(THREADS)
look_up_hashed(const __grid_constant__ JoinTable table, const __grid_constant__ JoinKeys keys, const __grid_constant__ Probe probe)
{
	const uint32_t first = blockIdx.x * BLOCK_ROWS + threadIdx.x;
	Found		found[LANE_ROWS];

#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		const uint32_t row = first + k * THREADS;

		found[k] = FOUND_NOTHING;
		if (row < probe.nrows && !any_key_null(keys, row))
			found[k] = find_hashed<Code>(table, keys, row);
	}
	leave_found(probe, found);
}

template <typename Code>
GPUVM_D Found
find_range(const JoinTable &table, const KeyRange &range, uint32_t row)
{
	const Code *codes = static_cast<const Code *>(table.codes);
	uint32_t	from = 0, end = table.live;

	if ((range.lo.values != nullptr && key_null(range.lo, row)) || (range.hi.values != nullptr && key_null(range.hi, row)))
		return FOUND_NOTHING;
	if (range.lo.values != nullptr)
	{
		const Code	lo = ordered_code<Code>(range.lo, row);

		from = range.lo_strict ? upper_bound(codes, from, end, lo) : lower_bound(codes, from, end, lo);
	}
	if (range.hi.values != nullptr)
	{
		const Code	hi = ordered_code<Code>(range.hi, row);

		end = range.hi_strict ? lower_bound(codes, from, end, hi) : upper_bound(codes, from, end, hi);
	}
	return Found{from, end - from};
}

template <typename Code>
__global__ void __launch_bounds__(THREADS)
look_up_range(const __grid_constant__ JoinTable table, const __grid_constant__ KeyRange range, const __grid_constant__ Probe probe)
{
	const uint32_t first = blockIdx.x * BLOCK_ROWS + threadIdx.x;
	Found		found[LANE_ROWS];

#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		const uint32_t row = first + k * THREADS;

		found[k] = row < probe.nrows ? find_range<Code>(table, range, row) : FOUND_NOTHING;
	}
	leave_found(probe, found);
}

/* Of an empty table. */
__global__ void __launch_bounds__(THREADS)
look_up_nothing(const __grid_constant__ Probe probe)
{
	Found		found[LANE_ROWS];

	for (uint32_t k = 0; k < LANE_ROWS; k++)
		found[k] = FOUND_NOTHING;
	leave_found(probe, found);
}

/* The pairs of entry i; of the one behind the last: none. */
struct EntryCounts
{
	using Value = uint64_t;
	const uint32_t *count;
	const uint32_t *entry_row;	/* nullptr: entries are rows, and have a pair if they have no partner */
	const ProbeOutcome *outcome;
	uint32_t	nrows;

	GPUVM_HD Value operator()(uint32_t i) const
	{
		if (entry_row != nullptr)
			return i < outcome->matched ? count[entry_row[i]] : 0;
		return i >= nrows ? 0 : count[i] != 0 ? count[i] : 1;
	}
};

struct EmitEntry
{
	uint32_t   *entry_row;

	GPUVM_D void operator()(uint32_t at, uint32_t row) const { entry_row[at] = row; }
};

__global__ void
count_pairs(const __grid_constant__ Probe probe)
{
	probe.outcome->npairs = !probe.single ? probe.entry_begin[probe.nrows] : probe.mode == ProbeMode::Kept ? probe.nrows : probe.outcome->matched;
}

/* ---- memory ------------------------------------------------------------------------ */

/* Offsets of a probe's parts. */
struct ProbeParts
{
	uint64_t	bits, scan, first, count, entry_row, entry_begin, sums, sum_bytes, all;

	ProbeParts(bool single, ProbeMode mode, uint32_t nrows)
	{
		const uint64_t row_words = align_up(nrows * uint64_t{4}, 256);
		const bool	pairs = lists_pairs(mode), entries = pairs && !single;

		bits = 256;
		scan = bits + bitmap_bytes(nrows);
		first = scan + (mode == ProbeMode::Pairs ? bit_scan_bytes(nrows) : 0);
		count = first + (pairs ? row_words : 0);
		entry_row = count + (entries ? row_words : 0);
		entry_begin = entry_row + (entries && mode == ProbeMode::Pairs ? row_words : 0);
		sums = entry_begin + (entries ? align_up((nrows + uint64_t{1}) * sizeof(uint64_t), 256) : 0);
		sum_bytes = entries ? exclusive_sum_bytes<EntryCounts>(nrows + 1) : 0;
		all = sums + sum_bytes;
	}
};

bool
is_single(const JoinTable &table)
{
	return table.form == JoinForm::Empty || table.unique;
}

template <JoinForm FORM>
cudaError_t
launch_slots(const JoinTable &table, const JoinKeys &keys, const Probe &probe, uint32_t blocks, cudaStream_t stream)
{
	switch (keys.key[0].type)
	{
		case Type::Bool: return launch_kernel(&look_up_slots<FORM, uint8_t>, blocks, THREADS, 0, stream, table, keys.key[0], probe);
		case Type::I16: return launch_kernel(&look_up_slots<FORM, int16_t>, blocks, THREADS, 0, stream, table, keys.key[0], probe);
		case Type::I64: return launch_kernel(&look_up_slots<FORM, int64_t>, blocks, THREADS, 0, stream, table, keys.key[0], probe);
		default: return launch_kernel(&look_up_slots<FORM, int32_t>, blocks, THREADS, 0, stream, table, keys.key[0], probe);
	}
}

/* `look_up` launches a kernel of so many blocks that leaves what the rows find. */
template <typename LookUp>
cudaError_t
run_probe(const JoinTable &table, ProbeMode mode, uint32_t nrows, char *memory, Probe *to, ProbeOutcome *outcome, cudaStream_t stream, LookUp look_up)
{
	const bool	single = is_single(table);
	const ProbeParts parts(single, mode, nrows);
	Probe		probe = {};

	probe.mode = mode;
	probe.single = single;
	probe.nrows = nrows;
	probe.outcome = reinterpret_cast<ProbeOutcome *>(memory);
	probe.matched_bits = reinterpret_cast<uint32_t *>(memory + parts.bits);
	probe.first = reinterpret_cast<uint32_t *>(memory + parts.first);
	probe.count = reinterpret_cast<uint32_t *>(memory + parts.count);
	probe.entry_row = mode == ProbeMode::Pairs ? reinterpret_cast<uint32_t *>(memory + parts.entry_row) : nullptr;
	probe.entry_begin = reinterpret_cast<uint64_t *>(memory + parts.entry_begin);

	cudaError_t rc = cudaMemsetAsync(probe.outcome, 0, sizeof(ProbeOutcome), stream);

	if (rc == cudaSuccess && nrows > 0)
	{
		const uint32_t blocks = blocks_of(nrows);

		rc = table.form == JoinForm::Empty ? launch_kernel(&look_up_nothing, blocks, THREADS, 0, stream, probe) : look_up(probe, blocks);
		if (rc == cudaSuccess && mode == ProbeMode::Pairs)
		{
			BitScan		scan;

			rc = scan_bits(probe.matched_bits, nrows, true, memory + parts.scan, &scan, nullptr, stream);
			probe.before = scan.before;
			if (rc == cudaSuccess && !single)
				rc = emit_bits(scan, 0, nrows, EmitEntry{probe.entry_row}, stream);
		}
		if (rc == cudaSuccess && lists_pairs(mode) && !single)
		{
			uint64_t	sum_bytes = parts.sum_bytes;

			rc = exclusive_sum(memory + parts.sums, &sum_bytes, EntryCounts{probe.count, probe.entry_row, probe.outcome, nrows}, probe.entry_begin,
							   nrows + 1, stream);
		}
		if (rc == cudaSuccess && lists_pairs(mode))
			rc = launch_kernel(&count_pairs, 1, 1, 0, stream, probe);
	}
	if (rc == cudaSuccess)
		rc = cudaMemcpyAsync(outcome, probe.outcome, sizeof(ProbeOutcome), cudaMemcpyDefault, stream);
	*to = probe;
	return rc;
}

}  // namespace

uint64_t
probe_bytes(const JoinTable &table, ProbeMode mode, uint32_t nrows)
{
	return ProbeParts(is_single(table), mode, nrows).all;
}

cudaError_t
probe(const JoinTable &table, ProbeMode mode, const JoinKeys &keys, uint32_t nrows, char *memory, Probe *probe, ProbeOutcome *outcome,
	  cudaStream_t stream)
{
	return run_probe(table, mode, nrows, memory, probe, outcome, stream, [&](const Probe &p, uint32_t blocks)
	{
		switch (table.form)
		{
			case JoinForm::Identity: return launch_slots<JoinForm::Identity>(table, keys, p, blocks, stream);
			case JoinForm::Slots: return launch_slots<JoinForm::Slots>(table, keys, p, blocks, stream);
			case JoinForm::Ranges: return launch_slots<JoinForm::Ranges>(table, keys, p, blocks, stream);
			case JoinForm::Hashed:
				return table.narrow ? launch_kernel(&look_up_hashed<uint32_t>, blocks, THREADS, 0, stream, table, keys, p)
					: launch_kernel(&look_up_hashed<uint64_t>, blocks, THREADS, 0, stream, table, keys, p);
			default: return cudaErrorInvalidValue;
		}
	});
}

cudaError_t
probe_range(const JoinTable &table, ProbeMode mode, const KeyRange &range, uint32_t nrows, char *memory, Probe *probe, ProbeOutcome *outcome,
			cudaStream_t stream)
{
	return run_probe(table, mode, nrows, memory, probe, outcome, stream, [&](const Probe &p, uint32_t blocks)
	{
		if (table.form != JoinForm::Sorted)
			return cudaErrorInvalidValue;
		return table.narrow ? launch_kernel(&look_up_range<uint32_t>, blocks, THREADS, 0, stream, table, range, p)
			: launch_kernel(&look_up_range<uint64_t>, blocks, THREADS, 0, stream, table, range, p);
	});
}

}  // namespace cuda
}  // namespace gpuvm
