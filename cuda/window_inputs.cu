/* window_inputs.cu: arguments of aggregates made into what answers for frames. See window_kernels.h. */
#include "scan.cuh"
#include "window.cuh"

namespace gpuvm {
namespace cuda {

namespace {

__global__ void __launch_bounds__(WINDOW_THREADS)
mark_counted(const __grid_constant__ WindowArgumentColumns argument, bool truth, uint32_t n, uint32_t *bits)
{
	write_bits(n, bits, [&](uint32_t row) {
		return row_counts(argument, row) && (!truth || row_value<uint8_t>(argument.column, row) != 0);
	});
}

/* The value of a column of integers, or of both halves. */
GPUVM_HD int128
integer_at(const WindowArgumentColumns &argument, uint32_t row)
{
	if (argument.high.values != nullptr)
		return wide_value(row_value<int64_t>(argument.high, row), row_value<int64_t>(argument.column, row));
	switch (argument.column.type)
	{
		case Type::I16: return row_value<int16_t>(argument.column, row);
		case Type::I32: return row_value<int32_t>(argument.column, row);
		default: return row_value<int64_t>(argument.column, row);
	}
}

/* Behind the last row there is nothing. */
template <typename Sum>
struct Summand
{
	using Value = Sum;
	WindowArgumentColumns argument;
	uint32_t	n;

	GPUVM_HD Value operator()(uint32_t row) const
	{
		return row < n && row_counts(argument, row) ? static_cast<Sum>(integer_at(argument, row)) : 0;
	}
};

/* ---- keys -------------------------------------------------------------------------------- */

template <typename Key>
struct KeyOf
{
	using Value = Key;
	WindowArgumentColumns argument;
	bool		max;

	GPUVM_HD Value operator()(uint32_t row) const
	{
		Key			key = window_no_key<Key>();

		if (!row_counts(argument, row))
			return key;
		if (argument.ranks.values != nullptr)
			key = window_ranked_key<Key>(argument.ranks, row_value<uint32_t>(argument.column, row));
		else if (argument.column.type == Type::F32)
			key = window_order(row_value<float>(argument.column, row));
		else if (argument.column.type == Type::F64)
			key = window_order(row_value<double>(argument.column, row));
		else
			key = static_cast<Key>(integer_at(argument, row));
		return max ? ~key : key;
	}
};

struct PartitionOf
{
	using Value = uint32_t;
	WindowStarts parts;

	GPUVM_HD Value operator()(uint32_t row) const { return number_of(parts, row); }
};

struct LeastKey
{
	template <typename Key>
	GPUVM_HD Key operator()(const Key &a, const Key &b) const { return b < a ? b : a; }
};

struct SameNumber
{
	GPUVM_HD bool operator()(uint32_t a, uint32_t b) const { return a == b; }
};

/* Least keys since the partition's first row; without `temp`, what it needs. */
template <typename Key>
cudaError_t
scan_keys(void *temp, size_t *temp_bytes, const WindowArgumentColumns &argument, bool max, const WindowStarts &parts, uint32_t n, Key *to,
		  cudaStream_t stream)
{
	return cub::DeviceScan::InclusiveScanByKey(temp, *temp_bytes, Computed<PartitionOf>{PartitionOf{parts}, 0},
											   Computed<KeyOf<Key>>{KeyOf<Key>{argument, max}, 0}, to, LeastKey{}, static_cast<int>(n),
											   SameNumber{}, stream);
}

template <typename Key>
size_t
scan_temp_bytes(uint32_t n)
{
	size_t		bytes = 0;

	return scan_keys<Key>(nullptr, &bytes, {}, false, {}, n, nullptr, nullptr) == cudaSuccess ? std::max<size_t>(bytes, 1) : 0;
}

template <typename Key>
__global__ void __launch_bounds__(WINDOW_THREADS)
make_keys(const __grid_constant__ KeyOf<Key> of, uint32_t n, Key *to)
{
	for (uint32_t row = blockIdx.x * WINDOW_THREADS + threadIdx.x; row < n; row += gridDim.x * WINDOW_THREADS)
		to[row] = of(row);
}

/* `n`: keys of the level below. */
template <typename Key>
__global__ void __launch_bounds__(WINDOW_THREADS)
make_level(const Key *from, uint32_t n, Key *to)
{
	constexpr uint32_t nodes = WINDOW_TREE_NODES;

	for (uint32_t i = blockIdx.x * WINDOW_THREADS + threadIdx.x; i < (n + nodes - 1) / nodes; i += gridDim.x * WINDOW_THREADS)
		to[i] = window_least(from + i * nodes, from + min(n, i * nodes + nodes), window_no_key<Key>());
}

template <typename Key>
cudaError_t
make_tree(const WindowArgumentColumns &argument, uint32_t n, char *memory, WindowKeys *keys, cudaStream_t stream)
{
	const KeyOf<Key> of = {argument, keys->max};
	cudaError_t rc = launch_kernel(&make_keys<Key>, window_blocks_for(n), WINDOW_THREADS, 0, stream, of, n, reinterpret_cast<Key *>(memory));

	keys->level[0] = memory;
	for (int k = 1; n > 1 && rc == cudaSuccess; k++)
	{
		const uint32_t size = (n + WINDOW_TREE_NODES - 1) / WINDOW_TREE_NODES;
		const Key  *from = reinterpret_cast<const Key *>(memory);

		memory += align_up(n * sizeof(Key), 256);
		keys->level[k] = memory;
		rc = launch_kernel(&make_level<Key>, window_blocks_for(size), WINDOW_THREADS, 0, stream, from, n, reinterpret_cast<Key *>(memory));
		n = size;
	}
	return rc;
}

__global__ void __launch_bounds__(WINDOW_THREADS)
find_zeroes(const __grid_constant__ WindowArgumentColumns argument, uint32_t n, uint32_t *zeroes)
{
	const uint32_t end = (n + 31) / 32 * 32;
	uint32_t	found = 0;

	for (uint32_t row = blockIdx.x * WINDOW_THREADS + threadIdx.x; row < end; row += gridDim.x * WINDOW_THREADS)
	{
		if (row >= n || !row_counts(argument, row))
			continue;

		const double v = argument.column.type == Type::F32 ? static_cast<double>(row_value<float>(argument.column, row))
			: row_value<double>(argument.column, row);

		if (v == 0)
			found |= double_bits(v) != 0 ? 2 : 1;
	}
	add_errors(found, zeroes);
}

}  // namespace

cudaError_t
mark_window_rows(const WindowArgumentColumns &argument, bool truth, uint32_t n, const WindowBits &bits, cudaStream_t stream)
{
	const cudaError_t rc = launch_kernel(mark_counted, window_blocks_for(n + uint64_t{32}), WINDOW_THREADS, 0, stream, argument, truth, n, bits.bits);

	return rc != cudaSuccess ? rc : number_window_bits(bits, n, stream);
}

/* ---- sums -------------------------------------------------------------------------------- */

uint64_t
window_sums_temp_bytes(bool wide, uint32_t n)
{
	return wide ? exclusive_sum_bytes<Summand<int128>>(n + 1) : exclusive_sum_bytes<Summand<int64_t>>(n + 1);
}

cudaError_t
sum_window_rows(const WindowArgumentColumns &argument, bool wide, uint32_t n, char *sums, char *temp, cudaStream_t stream)
{
	uint64_t	bytes = window_sums_temp_bytes(wide, n);

	if (wide)
		return exclusive_sum(temp, &bytes, Summand<int128>{argument, n}, reinterpret_cast<int128 *>(sums), n + 1, stream);
	return exclusive_sum(temp, &bytes, Summand<int64_t>{argument, n}, reinterpret_cast<int64_t *>(sums), n + 1, stream);
}

/* ---- least keys --------------------------------------------------------------------------- */

static uint64_t
key_bytes(bool wide)
{
	return wide ? sizeof(int128) : sizeof(int64_t);
}

uint64_t
window_tree_bytes(bool wide, uint32_t n)
{
	uint64_t	bytes = 0;

	for (;; n = (n + WINDOW_TREE_NODES - 1) / WINDOW_TREE_NODES)
	{
		bytes += align_up(n * key_bytes(wide), 256);
		if (n <= 1)
			return bytes;
	}
}

uint64_t
window_keys_bytes(bool wide, uint32_t n)
{
	return n * key_bytes(wide);
}

uint64_t
window_keys_temp_bytes(bool wide, uint32_t n)
{
	return wide ? scan_temp_bytes<int128>(n) : scan_temp_bytes<int64_t>(n);
}

cudaError_t
make_window_tree(const WindowArgumentColumns &argument, uint32_t n, char *memory, WindowKeys *keys, cudaStream_t stream)
{
	return keys->wide ? make_tree<int128>(argument, n, memory, keys, stream) : make_tree<int64_t>(argument, n, memory, keys, stream);
}

cudaError_t
find_window_keys(const WindowArgumentColumns &argument, const WindowRows &rows, char *memory, char *temp, WindowKeys *keys, cudaStream_t stream)
{
	size_t		bytes = window_keys_temp_bytes(keys->wide, rows.n);

	keys->since = memory;
	if (keys->wide)
		return scan_keys(temp, &bytes, argument, keys->max, rows.parts, rows.n, reinterpret_cast<int128 *>(memory), stream);
	return scan_keys(temp, &bytes, argument, keys->max, rows.parts, rows.n, reinterpret_cast<int64_t *>(memory), stream);
}

cudaError_t
find_window_zeroes(const WindowArgumentColumns &argument, uint32_t n, uint32_t *zeroes, cudaStream_t stream)
{
	return launch_kernel(find_zeroes, window_blocks_for(n), WINDOW_THREADS, 0, stream, argument, n, zeroes);
}

}  // namespace cuda
}  // namespace gpuvm
