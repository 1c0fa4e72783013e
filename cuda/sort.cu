/* sort.cu: see sort.h. */
#define CCCL_DISABLE_NVTX
#include <cub/device/device_radix_sort.cuh>

#include "sort.h"

#include <algorithm>

#include "kernel_launch.h"
#include "machine.cuh"
#include "vm/result_layout.h"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint32_t THREADS = 256;
constexpr uint32_t BLOCKS_WANTED = 1024;

/* Kernel parameters. */
struct SortColumns
{
	SortKeys	keys;
	RowColumn	column[SORT_MAX_KEYS];	/* by key */
};

SortColumns
sort_columns(const RowSet &rows, const SortKeys &keys)
{
	SortColumns columns = {keys, {}};

	for (uint32_t k = 0; k < keys.n; k++)
		columns.column[k] = rows.column[keys.keys[k].column];
	return columns;
}

uint32_t
blocks_for(uint32_t n)
{
	return std::min((n + THREADS - 1) / THREADS, BLOCKS_WANTED);
}

/* The row's value as result columns hold it. */
union SortValue
{
	uint64_t	bits;
	int128		sum;
};

GPUVM_D SortValue
column_value(const RowColumn &column, uint32_t row)
{
	SortValue	value;

	switch (column.type)
	{
		case Type::Bool: value.bits = reinterpret_cast<const uint8_t *>(column.values)[row]; break;
		case Type::I16: value.bits = static_cast<uint32_t>(static_cast<int32_t>(reinterpret_cast<const int16_t *>(column.values)[row])); break;
		case Type::I64: case Type::F64: value.bits = reinterpret_cast<const uint64_t *>(column.values)[row]; break;
		case Type::I128: value.sum = reinterpret_cast<const int128 *>(column.values)[row]; break;
		default: value.bits = reinterpret_cast<const uint32_t *>(column.values)[row]; break;
	}
	return value;
}

GPUVM_D bool
column_null(const RowColumn &column, uint32_t row)
{
	return column.nulls != nullptr && (column.nulls[row / 32] >> (row % 32) & 1) != 0;
}

GPUVM_D uint64_t
row_word(const SortColumns &columns, uint32_t row, uint32_t w)
{
	uint64_t	word = 0;

	for (uint32_t k = 0; k < columns.keys.n; k++)
	{
		const SortValue value = column_value(columns.column[k], row);

		word |= sort_key_word(columns.keys.keys[k], &value, column_null(columns.column[k], row), w);
	}
	return word;
}

/* Whole warps take part in put(). */
struct Bounds
{
	unsigned long long lo = ~0ull, hi = 0;

	GPUVM_D void take(unsigned long long bits)
	{
		lo = bits < lo ? bits : lo;
		hi = bits > hi ? bits : hi;
	}
	GPUVM_D void put(uint64_t *to_lo, uint64_t *to_hi)
	{
		for (int by = 16; by > 0; by /= 2)
		{
			const unsigned long long other_lo = __shfl_xor_sync(~0u, lo, by), other_hi = __shfl_xor_sync(~0u, hi, by);

			lo = other_lo < lo ? other_lo : lo;
			hi = other_hi > hi ? other_hi : hi;
		}
		if (threadIdx.x % 32 != 0)
			return;
		atomicMin(reinterpret_cast<unsigned long long *>(to_lo), lo);
		atomicMax(reinterpret_cast<unsigned long long *>(to_hi), hi);
	}
};

GPUVM_D void
put_any(bool mine, uint32_t *to)
{
	if (__any_sync(~0u, mine) && threadIdx.x % 32 == 0)
		atomicOr(to, 1u);
}

__global__ void __launch_bounds__(THREADS)
find_ranges(const __grid_constant__ SortColumns columns, uint32_t most, const RowSetState *counted, SortFacts *facts)
{
	const uint32_t n = counted != nullptr ? min(most, counted->nrows) : most;

	for (uint32_t k = 0; k < columns.keys.n; k++)
	{
		const SortKey &key = columns.keys.keys[k];
		Bounds		values, uppers;
		bool		nulls = false, wide = false;

		for (uint32_t row = blockIdx.x * THREADS + threadIdx.x; row < n; row += gridDim.x * THREADS)
		{
			const SortValue value = column_value(columns.column[k], row);
			bool		null = column_null(columns.column[k], row);
			const void *at = sort_value_at(key, &value, &null);

			if (null)
			{
				nulls = true;
				continue;
			}
			if (key.type == Type::I128)
			{
				const int64_t low = static_cast<int64_t>(value.sum);

				wide |= value.sum != low;
				uppers.take(static_cast<uint64_t>(sort_bits(value.sum) >> 64));
				values.take(sort_bits(low));
			}
			else
				values.take(static_cast<uint64_t>(sort_bits_at(key.type, at)));
		}
		values.put(&facts->lo[k], &facts->hi[k]);
		if (key.type == Type::I128)
			uppers.put(&facts->upper_lo[k], &facts->upper_hi[k]);
		put_any(nulls, &facts->nulls[k]);
		put_any(wide, &facts->wide[k]);
	}
}

__global__ void __launch_bounds__(THREADS)
count_leads(const __grid_constant__ SortColumns columns, uint32_t n, SortFacts *facts)
{
	__shared__ uint32_t leads[SORT_LEADS];

	for (uint32_t i = threadIdx.x; i < SORT_LEADS; i += THREADS)
		leads[i] = 0;
	__syncthreads();
	for (uint32_t row = blockIdx.x * THREADS + threadIdx.x; row < n; row += gridDim.x * THREADS)
		atomicAdd(&leads[row_word(columns, row, 0) >> (64 - SORT_LEADING_BITS)], 1u);
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < SORT_LEADS; i += THREADS)
		if (leads[i] != 0)
			atomicAdd(&facts->leads[i], leads[i]);
}

__global__ void __launch_bounds__(THREADS)
pick_rows(const __grid_constant__ SortColumns columns, uint32_t n, uint32_t lead, SortFacts *facts, uint32_t *rows)
{
	for (uint32_t row = blockIdx.x * THREADS + threadIdx.x; row < n; row += gridDim.x * THREADS)
		if (row_word(columns, row, 0) >> (64 - SORT_LEADING_BITS) <= lead)
			rows[atomicAdd(&facts->picked, 1u)] = row;
}

__global__ void __launch_bounds__(THREADS)
list_rows(uint32_t n, uint32_t *rows)
{
	for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS)
		rows[i] = i;
}

__global__ void __launch_bounds__(THREADS)
make_words(const __grid_constant__ SortColumns columns, const uint32_t *rows, uint32_t n, uint32_t w, uint64_t *words)
{
	for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS)
		words[i] = row_word(columns, rows[i], w);
}

/* The memory of a sort: words twice, numbers twice, CUB's. */
struct SortBytes
{
	uint64_t	words, numbers, temp;

	explicit SortBytes(uint32_t n) : words(align_up(uint64_t(n) * sizeof(uint64_t), 256)), numbers(align_up(uint64_t(n) * sizeof(uint32_t), 256)), temp(0)
	{
		cub::DoubleBuffer<uint64_t> keys(nullptr, nullptr);
		cub::DoubleBuffer<uint32_t> rows(nullptr, nullptr);
		size_t		bytes = 0;

		if (cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, rows, static_cast<int>(n), 0, 64, nullptr) == cudaSuccess)
			temp = align_up(std::max<uint64_t>(bytes, 1), 256);
	}
	uint64_t all() const { return temp == 0 ? 0 : 2 * words + 2 * numbers + temp; }
};

}  // namespace

cudaError_t
find_sort_ranges(const RowSet &rows, uint32_t n, bool counted, const SortKeys &keys, SortFacts *facts, cudaStream_t stream)
{
	cudaError_t rc = cudaMemsetAsync(facts, 0, sizeof(SortFacts), stream);

	if (rc == cudaSuccess)
		rc = cudaMemsetAsync(facts->lo, 0xff, sizeof(facts->lo), stream);
	if (rc == cudaSuccess)
		rc = cudaMemsetAsync(facts->upper_lo, 0xff, sizeof(facts->upper_lo), stream);
	return rc != cudaSuccess ? rc : launch_kernel(find_ranges, blocks_for(n), THREADS, 0, stream, sort_columns(rows, keys), n,
															  static_cast<const RowSetState *>(counted ? rows.state : nullptr), facts);
}

cudaError_t
count_sort_leads(const RowSet &rows, uint32_t n, const SortKeys &keys, SortFacts *facts, cudaStream_t stream)
{
	return launch_kernel(count_leads, blocks_for(n), THREADS, 0, stream, sort_columns(rows, keys), n, facts);
}

uint64_t
sort_rows_bytes(const SortKeys &, uint32_t n)
{
	return SortBytes(n).all();
}

cudaError_t
sort_rows(const RowSet &rows, uint32_t nrows, const SortKeys &keys, uint32_t n, uint32_t lead, SortFacts *facts, char *memory,
		  const uint32_t **order, const uint64_t **first_words, cudaStream_t stream)
{
	const SortBytes bytes(n);
	const SortColumns columns = sort_columns(rows, keys);
	cub::DoubleBuffer<uint64_t> words(reinterpret_cast<uint64_t *>(memory), reinterpret_cast<uint64_t *>(memory + bytes.words));
	char	   *at = memory + 2 * bytes.words;
	cub::DoubleBuffer<uint32_t> numbers(reinterpret_cast<uint32_t *>(at), reinterpret_cast<uint32_t *>(at + bytes.numbers));
	cudaError_t rc = n == nrows ? launch_kernel(list_rows, blocks_for(n), THREADS, 0, stream, n, numbers.Current())
		: launch_kernel(pick_rows, blocks_for(nrows), THREADS, 0, stream, columns, nrows, lead, facts, numbers.Current());

	at += 2 * bytes.numbers;
	for (uint32_t w = keys.nwords; w > 0 && rc == cudaSuccess; w--)
	{
		/* of the last word only the bits that there are */
		const int	unused = w == keys.nwords ? static_cast<int>(64 * keys.nwords - std::max(keys.bits, 1u)) : 0;
		size_t		temp_bytes = bytes.temp;

		rc = launch_kernel(make_words, blocks_for(n), THREADS, 0, stream, columns, static_cast<const uint32_t *>(numbers.Current()), n, w - 1, words.Current());
		if (rc == cudaSuccess)
			rc = cub::DeviceRadixSort::SortPairs(at, temp_bytes, words, numbers, static_cast<int>(n), unused, 64, stream);
	}
	*order = numbers.Current();
	*first_words = words.Current();
	return rc;
}

}  // namespace cuda
}  // namespace gpuvm
