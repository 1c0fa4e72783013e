/* window_rows.cu: partitions, peers and frames of rows. See window_kernels.h. */
#include "window.cuh"

namespace gpuvm {
namespace cuda {

namespace {

/* Does the key tell the row from the one before? */
GPUVM_D bool
key_differs(const RowColumn &column, const WindowRanks &ranks, uint32_t row)
{
	bool		null = row_null(column, row), null_before = row_null(column, row - 1), differ = false;

	if (ranks.values != nullptr)
	{
		int64_t		rank, rank_before;

		null = null || !ranks.find(row_value<uint32_t>(column, row), &rank);
		null_before = null_before || !ranks.find(row_value<uint32_t>(column, row - 1), &rank_before);
		if (!null && !null_before)
			return window_differ(rank, rank_before);
	}
	else if (!null && !null_before)
		with_window_type(column.type, [&](auto sample) {
			differ = window_differ(row_value<decltype(sample)>(column, row), row_value<decltype(sample)>(column, row - 1));
		});
	return null != null_before || differ;
}

__global__ void __launch_bounds__(WINDOW_THREADS)
mark_starts(const __grid_constant__ WindowKeyColumns keys, uint32_t first, uint32_t end, const uint32_t *also, uint32_t n, uint32_t *bits)
{
	write_bits(n, bits, [&](uint32_t row) {
		bool		starts = row == 0 || (also != nullptr && (also[row / 32] >> row % 32 & 1) != 0);

		for (uint32_t k = first; k < end && !starts; k++)
			starts = key_differs(keys.column[k], keys.ranks[k], row);
		return starts;
	});
}

/* ---- frames ------------------------------------------------------------------------------ */

/* Of a row. */
struct Place
{
	uint32_t	row, part_start, part_end;
	uint32_t	group, peer_start, peer_end;	/* only where peers are known */
};

GPUVM_D Place
place_of(const WindowRows &rows, uint32_t row)
{
	const uint32_t part = number_of(rows.parts, row);
	Place		place = {row, rows.parts.rows[part], end_of(rows.parts, part, rows.n), 0, row, row + 1};

	if (rows.peers.rows == nullptr)
		return place;
	place.group = number_of(rows.peers, row);
	place.peer_start = rows.peers.rows[place.group];
	place.peer_end = end_of(rows.peers, place.group, rows.n);
	return place;
}

GPUVM_D uint64_t
groups_bound(const WindowBoundary &boundary, const WindowRows &rows, const Place &place, uint64_t behind)
{
	const uint32_t first = number_of(rows.peers, place.part_start), end = bits_before(rows.peers.bits, place.part_end);
	const uint64_t wanted = window_groups_bound(boundary.bound, static_cast<uint64_t>(boundary.offset), behind, place.group, first);

	return wanted < end ? rows.peers.rows[wanted] : place.part_end;
}

/* The first row of the partition that stops the frame. */
template <typename T>
GPUVM_D uint64_t
range_bound(const WindowBoundary &boundary, const Place &place, uint32_t *errors)
{
	const RowColumn &column = boundary.column;
	const bool	current_null = row_null(column, place.row);
	const int128 limit = current_null ? 0 : window_range_limit(boundary.range, row_value<T>(column, place.row), errors);
	uint32_t	from = place.part_start, to = place.part_end;

	while (from < to)
	{
		const uint32_t middle = from + (to - from) / 2;
		const bool	null = row_null(column, middle);

		if (window_range_stops(boundary.range, null, current_null, null ? 0 : window_order(row_value<T>(column, middle)), limit))
			to = middle;
		else
			from = middle + 1;
	}
	return from;
}

GPUVM_D uint64_t
bound_of(const WindowBoundary &boundary, const WindowRows &rows, const Place &place, bool is_end, uint32_t *errors)
{
	const uint64_t behind = is_end ? 1 : 0;
	uint64_t	bound = 0;

	if (boundary.bound == FrameBound::Unbounded)
		return is_end ? place.part_end : place.part_start;
	if (boundary.mode == FrameMode::Rows)
		return window_rows_bound(boundary.bound, static_cast<uint64_t>(boundary.offset), behind, place.row, place.part_start, place.part_end);
	if (boundary.bound == FrameBound::CurrentRow)
		return is_end ? place.peer_end : place.peer_start;
	if (boundary.mode == FrameMode::Groups)
		return groups_bound(boundary, rows, place, behind);
	with_window_type(boundary.column.type, [&](auto sample) { bound = range_bound<decltype(sample)>(boundary, place, errors); });
	return bound;
}

__global__ void __launch_bounds__(WINDOW_THREADS)
find_frames(const __grid_constant__ WindowRows rows, const __grid_constant__ WindowBoundary start, const __grid_constant__ WindowBoundary end,
			uint32_t *errors)
{
	uint32_t	found = 0;

	for (uint32_t row = blockIdx.x * WINDOW_THREADS + threadIdx.x; row < rows.n; row += gridDim.x * WINDOW_THREADS)
	{
		const Place place = place_of(rows, row);
		const uint64_t head = bound_of(start, rows, place, false, &found), tail = bound_of(end, rows, place, true, &found);

		rows.heads[row] = static_cast<uint32_t>(head);
		rows.tails[row] = static_cast<uint32_t>(tail > head ? tail : head);
	}
	add_errors(found, errors);
}

cudaError_t
list_starts(const WindowStarts &starts, uint32_t n, cudaStream_t stream)
{
	const cudaError_t rc = number_window_bits(starts.bits, n, stream);

	return rc != cudaSuccess ? rc : emit_rows(BitScan{starts.bits.bits, 0, n, starts.bits.before}, 0, n, starts.rows, stream);
}

}  // namespace

/* ---- bits -------------------------------------------------------------------------------- */

static uint64_t
words_bytes(uint32_t n)
{
	return align_up((n / 32 + uint64_t{1}) * sizeof(uint32_t), 256);
}

uint64_t
window_bits_bytes(uint32_t n)
{
	return words_bytes(n) + bit_scan_bytes(n);
}

WindowBits
window_bits(uint32_t n, char *memory)
{
	return WindowBits{reinterpret_cast<uint32_t *>(memory), reinterpret_cast<uint32_t *>(memory + words_bytes(n))};
}

cudaError_t
number_window_bits(const WindowBits &bits, uint32_t n, cudaStream_t stream)
{
	BitScan		scan;

	return scan_bits(bits.bits, n, true, reinterpret_cast<char *>(bits.before), &scan, nullptr, stream);
}

cudaError_t
find_window_starts(const WindowKeyColumns &keys, uint32_t n, const WindowStarts &parts, const WindowStarts &peers, cudaStream_t stream)
{
	const uint32_t blocks = window_blocks_for(n + uint64_t{32}), *no_bits = nullptr;
	cudaError_t rc = launch_kernel(mark_starts, blocks, WINDOW_THREADS, 0, stream, keys, 0u, keys.npartition, no_bits, n, parts.bits.bits);

	if (rc == cudaSuccess)
		rc = list_starts(parts, n, stream);
	if (rc == cudaSuccess && peers.rows != nullptr)
		rc = launch_kernel(mark_starts, blocks, WINDOW_THREADS, 0, stream, keys, keys.npartition, keys.n, static_cast<const uint32_t *>(parts.bits.bits), n,
						   peers.bits.bits);
	return rc == cudaSuccess && peers.rows != nullptr ? list_starts(peers, n, stream) : rc;
}

cudaError_t
find_window_frames(const WindowRows &rows, const WindowBoundary &start, const WindowBoundary &end, uint32_t *errors, cudaStream_t stream)
{
	return launch_kernel(find_frames, window_blocks_for(rows.n), WINDOW_THREADS, 0, stream, rows, start, end, errors);
}

}  // namespace cuda
}  // namespace gpuvm
