/* key_parts.cu: see key_parts.h. */
#include "key_parts.h"

#include <algorithm>

#include "join_keys.cuh"
#include "kernel_launch.h"
#include "launch.h"
#include "staged_columns.h"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint32_t THREADS = 256;
constexpr uint32_t WARPS = THREADS / 32;
constexpr uint32_t MOST_BLOCKS = 2048;

/* A column as it is staged: int2 is as wide as int4 there. */
struct StagedKey
{
	RowColumn	column;
	bool		cut;			/* it is such an int2 */
};

struct StagedKeys
{
	JoinKeys	keys;
	uint32_t	cut;			/* bit k: key k is one */
};

struct StagedTests
{
	PartRange	parts;
	StagedKeys	keys;
	uint32_t	ntests;
	struct
	{
		StagedKey	key;
		KeyBits		side;
	}			test[MAX_ROW_TESTS];
};

struct StagedRows
{
	uint32_t	ncolumns;
	uint32_t	nsegments;
	StagedColumn column[PROGRAM_MAX_COLUMNS];
};

GPUVM_D uint64_t
staged_word(const RowColumn &column, bool cut, uint32_t row)
{
	const uint64_t word = key_word(column, row);

	return cut ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int16_t>(word))) : word;
}

GPUVM_D bool
passes(const StagedTests &tests, uint32_t row)
{
	for (uint32_t i = 0; i < tests.ntests; i++)
	{
		const StagedKey &key = tests.test[i].key;
		const KeyBits &side = tests.test[i].side;
		const uint64_t at = staged_word(key.column, key.cut, row) - static_cast<uint64_t>(side.lo);

		if (key_null(key.column, row) || at >= side.n || (side.bits[at / 32] >> at % 32 & 1) == 0)
			return false;
	}
	return true;
}

GPUVM_D uint32_t
part_of(const JoinKeys &keys, uint32_t cut, uint32_t row)
{
	uint64_t	hash = 0;

	if (any_key_null(keys, row))
		return 0;
	for (uint32_t k = 0; k < keys.nkeys; k++)
		hash = mix(hash ^ staged_word(keys.key[k], cut >> k & 1, row));
	/* tables are made by a hash of one mix: this is to have nothing of it */
	return static_cast<uint32_t>(mix(hash + uint64_t{0x9e3779b97f4a7c15})) % KEY_PARTS;
}

__global__ void __launch_bounds__(THREADS)
count(const __grid_constant__ StagedKeys keys, const RowStaging staging, uint32_t nsegments, uint32_t *parts)
{
	__shared__ uint32_t of_block[KEY_PARTS];

	for (uint32_t i = threadIdx.x; i < KEY_PARTS; i += THREADS)
		of_block[i] = 0;
	__syncthreads();
	for (uint32_t segment = blockIdx.x * WARPS + threadIdx.x / 32; segment < nsegments; segment += gridDim.x * WARPS)
		for (uint32_t row = threadIdx.x % 32; row < staging.counts[segment]; row += 32)
			atomicAdd(&of_block[part_of(keys.keys, keys.cut, segment * staging.segment_rows + row)], 1u);
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < KEY_PARTS; i += THREADS)
		if (of_block[i] != 0)
			atomicAdd(&parts[i], of_block[i]);
}

template <typename T>
GPUVM_D void
move_staged(char *values, uint32_t from, uint32_t to, bool keeps)
{
	const T		v = reinterpret_cast<const T *>(values)[from];

	__syncwarp();
	if (keeps)
		reinterpret_cast<T *>(values)[to] = v;
	__syncwarp();
}

/* A warp a segment. Rows only move down, 32 at a time, so what they are written over has been read. */
__global__ void __launch_bounds__(THREADS)
keep(const __grid_constant__ StagedTests tests, const __grid_constant__ StagedRows rows, const RowStaging staging)
{
	const PartRange parts = tests.parts;
	const bool	parted = parts.first != 0 || parts.end != KEY_PARTS;
	const uint32_t lane = threadIdx.x % 32, segment = blockIdx.x * WARPS + threadIdx.x / 32;
	const uint64_t rows_staged = static_cast<uint64_t>(staging.nsegments) * staging.segment_rows;

	if (segment >= rows.nsegments)
		return;

	const uint32_t n = staging.counts[segment], base = segment * staging.segment_rows;
	uint32_t	kept = 0;

	for (uint32_t first = 0; first < n; first += 32)
	{
		const uint32_t row = base + first + lane;
		bool		keeps = first + lane < n;

		if (keeps && parted)
		{
			const uint32_t part = part_of(tests.keys.keys, tests.keys.cut, row);

			keeps = part >= parts.first && part < parts.end;
		}
		keeps = keeps && passes(tests, row);

		const uint32_t all = __ballot_sync(~0u, keeps), rank = static_cast<uint32_t>(__popc(all & ((1u << lane) - 1)));
		const uint32_t count = static_cast<uint32_t>(__popc(all)), to = base + kept + rank;

		for (uint32_t c = 0; c < rows.ncolumns; c++)
		{
			const StagedColumn &column = rows.column[c];
			char	   *values = staging.values + column.before * rows_staged;

			if (column.width == 8)
				move_staged<uint64_t>(values, row, to, keeps);
			else if (column.width == 4)
				move_staged<uint32_t>(values, row, to, keeps);
			else
				move_staged<uint8_t>(values, row, to, keeps);
			if (!column.nullable)
				continue;

			uint32_t   *nulls = reinterpret_cast<uint32_t *>(staging.nulls + column.nullable_before * (rows_staged / 8));
			const uint32_t null = nulls[row / 32] >> lane & 1, at = (base + kept) % 32;
			uint32_t	bits = keeps ? null << rank : 0u;

			for (int step = 16; step != 0; step /= 2)
				bits |= __shfl_xor_sync(~0u, bits, step);
			if (lane == 0)
			{
				uint32_t   *word = nulls + (base + kept) / 32;

				*word = (*word & ((1u << at) - 1)) | bits << at;
				if (at + count > 32)
					word[1] = bits >> (32 - at);
			}
			__syncwarp();
		}
		kept += count;
	}
	__syncwarp();
	if (lane == 0)
		staging.counts[segment] = kept;
}

__global__ void __launch_bounds__(THREADS)
add_bits(const StagedKey key, const RowStaging staging, uint32_t nsegments, int64_t lo, uint64_t n, uint32_t *bits)
{
	for (uint32_t segment = blockIdx.x * WARPS + threadIdx.x / 32; segment < nsegments; segment += gridDim.x * WARPS)
		for (uint32_t i = threadIdx.x % 32; i < staging.counts[segment]; i += 32)
		{
			const uint32_t row = segment * staging.segment_rows + i;
			const uint64_t at = staged_word(key.column, key.cut, row) - static_cast<uint64_t>(lo);

			/* many rows have one key: it is mostly there */
			if (!key_null(key.column, row) && at < n && (bits[at / 32] >> at % 32 & 1) == 0)
				atomicOr(&bits[at / 32], 1u << at % 32);
		}
}

__global__ void __launch_bounds__(THREADS)
mark(const __grid_constant__ JoinKeys keys, uint32_t nrows, PartRange range, uint32_t *bits)
{
	for (uint32_t word = blockIdx.x * WARPS + threadIdx.x / 32; word < (nrows + 31) / 32; word += gridDim.x * WARPS)
	{
		const uint32_t row = word * 32 + threadIdx.x % 32, part = row < nrows ? part_of(keys, 0, row) : KEY_PARTS;
		const uint32_t found = __ballot_sync(~0u, part >= range.first && part < range.end);

		if (threadIdx.x % 32 == 0)
			bits[word] = found;
	}
}

StagedKey
staged_key(const DeviceProgram &program, const RowStaging &staging, uint32_t result)
{
	const uint64_t rows_staged = static_cast<uint64_t>(staging.nsegments) * staging.segment_rows;
	const bool	cut = program.result_type[result] == Type::I16;
	StagedColumn columns[PROGRAM_MAX_COLUMNS];

	staged_columns(program, columns);

	const StagedColumn &column = columns[result];

	return StagedKey{RowColumn{staging.values + column.before * rows_staged,
			column.nullable ? reinterpret_cast<uint32_t *>(staging.nulls + column.nullable_before * (rows_staged / 8)) : nullptr,
			cut ? Type::I32 : program.result_type[result]}, cut};
}

StagedKeys
staged_keys(const DeviceProgram &program, const RowStaging &staging, uint32_t nkeys)
{
	StagedKeys	keys = {};

	keys.keys.nkeys = nkeys;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		const StagedKey key = staged_key(program, staging, k);

		keys.cut |= static_cast<uint32_t>(key.cut) << k;
		keys.keys.key[k] = key.column;
	}
	return keys;
}

uint32_t
segments_of(const RowStaging &staging, uint64_t npads)
{
	return static_cast<uint32_t>(npads * (TABLET_PAD_ROWS / staging.segment_rows));
}

uint32_t
blocks_for(uint64_t warps)
{
	return static_cast<uint32_t>(std::min<uint64_t>((warps + WARPS - 1) / WARPS, MOST_BLOCKS));
}

}  // namespace

cudaError_t
count_parts(const DeviceProgram &program, const RowStaging &staging, uint64_t npads, uint32_t nkeys, uint32_t *parts, cudaStream_t stream)
{
	const uint32_t nsegments = segments_of(staging, npads);

	return launch_kernel(&count, blocks_for(nsegments), THREADS, 0, stream, staged_keys(program, staging, nkeys), staging, nsegments, parts);
}

cudaError_t
keep_rows(const DeviceProgram &program, const RowStaging &staging, uint64_t npads, const RowTests &tests, cudaStream_t stream)
{
	StagedRows	rows = {};
	StagedTests	staged = {};

	rows.ncolumns = program.nresults;
	rows.nsegments = segments_of(staging, npads);
	staged_columns(program, rows.column);
	staged.parts = tests.parts;
	staged.keys = staged_keys(program, staging, tests.nkeys);
	staged.ntests = tests.ntests;
	for (uint32_t i = 0; i < tests.ntests; i++)
	{
		staged.test[i].key = staged_key(program, staging, tests.test[i].result);
		staged.test[i].side = tests.test[i].side;
	}
	return launch_kernel(&keep, (rows.nsegments + WARPS - 1) / WARPS, THREADS, 0, stream, staged, rows, staging);
}

cudaError_t
add_key_bits(const DeviceProgram &program, const RowStaging &staging, uint64_t npads, uint32_t result, int64_t lo, uint64_t n, uint32_t *bits,
			 cudaStream_t stream)
{
	const uint32_t nsegments = segments_of(staging, npads);

	return launch_kernel(&add_bits, blocks_for(nsegments), THREADS, 0, stream, staged_key(program, staging, result), staging, nsegments, lo, n, bits);
}

cudaError_t
mark_parts(const JoinKeys &keys, uint32_t nrows, PartRange range, uint32_t *bits, cudaStream_t stream)
{
	if (nrows == 0)
		return cudaSuccess;
	return launch_kernel(&mark, blocks_for((nrows + 31) / 32), THREADS, 0, stream, keys, nrows, range, bits);
}

}  // namespace cuda
}  // namespace gpuvm
