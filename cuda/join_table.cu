/* join_table.cu: see join_table.h. */
#include "join_table.h"

#define CCCL_DISABLE_NVTX
#include <cub/device/device_radix_sort.cuh>

#include <algorithm>

#include "join_keys.cuh"
#include "kernel_launch.h"
#include "pairs.h"
#include "row_blocks.h"
#include "vm/result_layout.h"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint32_t MEASURE_BLOCKS = 1024;	/* at most: each ends with atomics to the same words */
constexpr uint64_t SMALL_RANGE = 1 << 20;	/* slots that are worth it for any number of rows: 4 MB are cleared in the time of a launch or two */
constexpr uint64_t MOST_SLOTS = uint64_t{1} << 32;	/* key - lo has 32 bits */

bool
has_slots(const JoinKeys &keys)
{
	return keys.nkeys == 1 && (keys.key[0].type == Type::Bool || type_is_int(keys.key[0].type));
}

int
bits_for(uint64_t n)
{
	int			bits = 0;

	while (bits < 64 && (uint64_t{1} << bits) < n)
		bits++;
	return bits;
}

/* ---- measuring ------------------------------------------------------------------ */

__global__ void
no_facts(KeyFacts *facts)
{
	*facts = KeyFacts{INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 0};
}

template <typename F>
GPUVM_D int64_t
reduce_warp(int64_t v, F f)
{
	for (int step = 16; step > 0; step /= 2)
		v = f(v, static_cast<int64_t>(__shfl_xor_sync(~0u, static_cast<long long>(v), step)));
	return v;
}

GPUVM_D void
merge_facts(KeyFacts *to, const KeyFacts &from)
{
	if (from.live == 0)
		return;
	atomicMin(reinterpret_cast<long long *>(&to->lo), static_cast<long long>(from.lo));
	atomicMax(reinterpret_cast<long long *>(&to->hi), static_cast<long long>(from.hi));
	atomicMin(reinterpret_cast<long long *>(&to->least_offset), static_cast<long long>(from.least_offset));
	atomicMax(reinterpret_cast<long long *>(&to->most_offset), static_cast<long long>(from.most_offset));
	atomicAdd(reinterpret_cast<unsigned long long *>(&to->live), static_cast<unsigned long long>(from.live));
}

__global__ void __launch_bounds__(THREADS)
measure(const __grid_constant__ JoinKeys keys, uint32_t most_rows, const uint32_t *counted, bool slots, KeyFacts *facts)
{
	const uint32_t nrows = counted != nullptr ? *counted : most_rows;
	__shared__ KeyFacts of_block;
	KeyFacts	mine = {INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 0};

	if (threadIdx.x == 0)
		of_block = mine;
	__syncthreads();
	for (uint64_t row = blockIdx.x * THREADS + threadIdx.x; row < nrows; row += gridDim.x * THREADS)
	{
		const uint32_t r = static_cast<uint32_t>(row);
		const int64_t key = slots ? static_cast<int64_t>(key_word(keys.key[0], r)) : 0;
		const int64_t offset = static_cast<int64_t>(static_cast<uint64_t>(key) - row);

		if (any_key_null(keys, r))
			continue;
		mine.lo = min(mine.lo, key);
		mine.hi = max(mine.hi, key);
		mine.least_offset = min(mine.least_offset, offset);
		mine.most_offset = max(mine.most_offset, offset);
		mine.live++;
	}

	const auto	least = [](int64_t a, int64_t b) { return min(a, b); };
	const auto	most = [](int64_t a, int64_t b) { return max(a, b); };

	mine.lo = reduce_warp(mine.lo, least);
	mine.hi = reduce_warp(mine.hi, most);
	mine.least_offset = reduce_warp(mine.least_offset, least);
	mine.most_offset = reduce_warp(mine.most_offset, most);
	mine.live = static_cast<uint64_t>(reduce_warp(static_cast<int64_t>(mine.live), [](int64_t a, int64_t b) { return a + b; }));
	if (threadIdx.x % 32 == 0)
		merge_facts(&of_block, mine);
	__syncthreads();
	if (threadIdx.x == 0)
		merge_facts(facts, of_block);
}

/* ---- slots ------------------------------------------------------------------------ */

__global__ void __launch_bounds__(THREADS)
fill_slots(const __grid_constant__ JoinKeys keys, uint32_t nrows, int64_t lo, uint32_t *slots, JoinTableOutcome *words)
{
	const uint32_t first = blockIdx.x * BLOCK_ROWS + threadIdx.x;

#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		const uint32_t row = first + k * THREADS;

		if (row < nrows && !key_null(keys.key[0], row) &&
			atomicExch(&slots[key_word(keys.key[0], row) - static_cast<uint64_t>(lo)], row + 1) != 0)
			*static_cast<volatile uint32_t *>(&words->duplicates) = 1;
	}
}

/* ---- sorted rows -------------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS)
find_live(const __grid_constant__ JoinKeys keys, uint32_t nrows, uint32_t *bits)
{
	const uint32_t first = blockIdx.x * BLOCK_ROWS + threadIdx.x;

#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		const uint32_t row = first + k * THREADS;
		const uint32_t word = __ballot_sync(~0u, row < nrows && !any_key_null(keys, row));

		if (threadIdx.x % 32 == 0 && row < nrows)
			bits[row / 32] = word;
	}
}

/* `listed`: the rows are there, otherwise all are. */
template <JoinForm FORM, typename Code>
__global__ void __launch_bounds__(THREADS)
make_codes(const __grid_constant__ JoinKeys keys, uint32_t n, bool listed, bool exact, int64_t lo, uint32_t *rows, Code *codes)
{
	const uint32_t first = blockIdx.x * BLOCK_ROWS + threadIdx.x;

#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		const uint32_t i = first + k * THREADS;

		if (i >= n)
			break;

		const uint32_t row = listed ? rows[i] : i;

		if (!listed)
			rows[i] = row;
		if constexpr (FORM == JoinForm::Ranges)
			codes[i] = static_cast<Code>(key_word(keys.key[0], row) - static_cast<uint64_t>(lo));
		else if constexpr (FORM == JoinForm::Hashed)
			codes[i] = hash_code<Code>(keys, exact, row);
		else
			codes[i] = ordered_code<Code>(keys.key[0], row);
	}
}

/* Where slots begin and end, and what stands side by side. */
template <typename Code>
__global__ void __launch_bounds__(THREADS)
find_ranges(const __grid_constant__ JoinTable table, const Code *codes, JoinTableOutcome *words)
{
	const uint32_t first = blockIdx.x * BLOCK_ROWS + threadIdx.x, n = table.live;

#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		const uint32_t i = first + k * THREADS;

		if (i >= n)
			break;

		const Code	code = codes[i], before = i > 0 ? codes[i - 1] : 0, behind = i + 1 < n ? codes[i + 1] : 0;
		const Code	slot = code >> table.slot_shift;

		if (i == 0 || before >> table.slot_shift != slot)
			table.ranges[slot].x = i;
		if (i + 1 == n || behind >> table.slot_shift != slot)
			table.ranges[slot].y = i + 1;
		if (i == 0 || before != code)
			continue;
		if (*static_cast<volatile uint32_t *>(&words->duplicates) == 0)
			*static_cast<volatile uint32_t *>(&words->duplicates) = 1;
		if (!table.exact && !same_keys(table.keys, table.rows[i - 1], table.keys, table.rows[i]))
			*static_cast<volatile uint32_t *>(&words->collision) = 1;
	}
}

template <typename Code>
uint64_t
sort_bytes(uint32_t n, int bits)
{
	cub::DoubleBuffer<Code> codes(nullptr, nullptr);
	cub::DoubleBuffer<uint32_t> rows(nullptr, nullptr);
	size_t		bytes = 0;

	if (cub::DeviceRadixSort::SortPairs(nullptr, bytes, codes, rows, static_cast<int>(n), 0, bits, nullptr) != cudaSuccess)
		return 0;
	return align_up(bytes, 256);
}

/* Offsets of the parts: of the table's memory, and of the temporary memory. */
struct TableParts
{
	uint64_t	ranges = 0, rows = 0, codes = 0, table = 0;
	uint64_t	other_codes = 0, first_codes = 0, other_rows = 0, live_bits = 0, live_scan = 0, sort = 0, sort_bytes = 0, temp = 0;

	explicit TableParts(const JoinTablePlan &plan)
	{
		const uint64_t code_bytes = align_up(plan.live * uint64_t{plan.narrow ? 4u : 8u}, 256), row_bytes = align_up(plan.live * uint64_t{4}, 256);

		if (plan.form == JoinForm::Slots)
			table = align_up(plan.nslots * sizeof(uint32_t), 256);
		if (plan.form != JoinForm::Ranges && plan.form != JoinForm::Hashed && plan.form != JoinForm::Sorted)
			return;
		if (plan.form != JoinForm::Sorted)
			rows = align_up(plan.nslots * sizeof(uint2), 256);
		codes = rows + row_bytes;
		table = codes;
		other_rows = code_bytes;
		live_bits = other_rows + row_bytes;
		if (plan.form == JoinForm::Ranges)
		{
			/* whose codes nobody needs later */
			first_codes = live_bits;
			live_bits += code_bytes;
		}
		else
			table += code_bytes;
		live_scan = live_bits + (plan.has_nulls ? bitmap_bytes(plan.nrows) : 0);
		sort = live_scan + (plan.has_nulls ? bit_scan_bytes(plan.nrows) : 0);
		sort_bytes = plan.narrow ? cuda::sort_bytes<uint32_t>(plan.live, plan.code_bits) : cuda::sort_bytes<uint64_t>(plan.live, plan.code_bits);
		temp = sort + sort_bytes;
	}
};

void
plan_memory(JoinTablePlan *plan)
{
	const TableParts parts(*plan);

	plan->table_bytes = parts.table;
	plan->temp_bytes = parts.temp;
}

template <JoinForm FORM, typename Code>
cudaError_t
build_sorted(const JoinTablePlan &plan, const JoinKeys &keys, char *table_memory, char *temp, JoinTable *table, JoinTableOutcome *words,
			 cudaStream_t stream)
{
	const TableParts parts(plan);
	Code	   *codes = reinterpret_cast<Code *>(FORM == JoinForm::Ranges ? temp + parts.first_codes : table_memory + parts.codes);
	uint32_t   *rows = reinterpret_cast<uint32_t *>(table_memory + parts.rows);
	cub::DoubleBuffer<Code> sorted_codes(codes, reinterpret_cast<Code *>(temp + parts.other_codes));
	cub::DoubleBuffer<uint32_t> sorted_rows(rows, reinterpret_cast<uint32_t *>(temp + parts.other_rows));
	size_t		sort_bytes = parts.sort_bytes;
	cudaError_t rc = cudaSuccess;

	table->rows = rows;
	if (FORM != JoinForm::Ranges)
		table->codes = codes;
	if (FORM != JoinForm::Sorted)
	{
		table->ranges = reinterpret_cast<uint2 *>(table_memory + parts.ranges);
		rc = cudaMemsetAsync(table->ranges, 0, plan.nslots * sizeof(uint2), stream);
	}
	if (rc == cudaSuccess && plan.has_nulls)
	{
		uint32_t   *bits = reinterpret_cast<uint32_t *>(temp + parts.live_bits);
		BitScan		scan;

		rc = launch_kernel(&find_live, blocks_of(plan.nrows), THREADS, 0, stream, keys, plan.nrows, bits);
		if (rc == cudaSuccess)
			rc = scan_bits(bits, plan.nrows, true, temp + parts.live_scan, &scan, nullptr, stream);
		if (rc == cudaSuccess)
			rc = emit_rows(scan, 0, plan.live, rows, stream);
	}
	if (rc == cudaSuccess)
		rc = launch_kernel(&make_codes<FORM, Code>, blocks_of(plan.live), THREADS, 0, stream, keys, plan.live, plan.has_nulls, plan.exact, plan.lo,
						   rows, codes);
	if (rc == cudaSuccess)
		rc = cub::DeviceRadixSort::SortPairs(temp + parts.sort, sort_bytes, sorted_codes, sorted_rows, static_cast<int>(plan.live), 0,
											 plan.code_bits, stream);
	if (rc == cudaSuccess && sorted_rows.Current() != rows)
		rc = cudaMemcpyAsync(rows, sorted_rows.Current(), plan.live * sizeof(uint32_t), cudaMemcpyDeviceToDevice, stream);
	if (rc == cudaSuccess && FORM != JoinForm::Ranges && sorted_codes.Current() != codes)
		rc = cudaMemcpyAsync(codes, sorted_codes.Current(), plan.live * sizeof(Code), cudaMemcpyDeviceToDevice, stream);
	if (rc == cudaSuccess && FORM != JoinForm::Sorted)
		rc = launch_kernel(&find_ranges<Code>, blocks_of(plan.live), THREADS, 0, stream, *table, sorted_codes.Current(), words);
	return rc;
}

template <JoinForm FORM>
cudaError_t
build_any(const JoinTablePlan &plan, const JoinKeys &keys, char *table_memory, char *temp, JoinTable *table, JoinTableOutcome *words,
		  cudaStream_t stream)
{
	return plan.narrow ? build_sorted<FORM, uint32_t>(plan, keys, table_memory, temp, table, words, stream)
		: build_sorted<FORM, uint64_t>(plan, keys, table_memory, temp, table, words, stream);
}

}  // namespace

cudaError_t
measure_keys(const JoinKeys &keys, uint32_t nrows, KeyFacts *facts, KeyFacts *outcome, cudaStream_t stream, const uint32_t *counted)
{
	cudaError_t rc = launch_kernel(&no_facts, 1, 1, 0, stream, facts);

	if (rc == cudaSuccess && nrows > 0)
		rc = launch_kernel(&measure, std::min(blocks_of(nrows), MEASURE_BLOCKS), THREADS, 0, stream, keys, nrows, counted, has_slots(keys), facts);
	if (rc == cudaSuccess)
		rc = cudaMemcpyAsync(outcome, facts, sizeof(KeyFacts), cudaMemcpyDefault, stream);
	return rc;
}

void
plan_join_table(const JoinKeys &keys, uint32_t nrows, const KeyFacts &facts, bool sorted, JoinTablePlan *plan)
{
	uint32_t	bits = 0;

	for (uint32_t k = 0; k < keys.nkeys; k++)
		bits += 8 * static_cast<uint32_t>(type_natural_width(keys.key[k].type));
	*plan = JoinTablePlan{};
	plan->nrows = nrows;
	plan->live = static_cast<uint32_t>(facts.live);
	plan->has_nulls = plan->live < nrows;
	plan->narrow = bits <= 32;
	plan->exact = bits <= 64;
	plan->code_bits = plan->narrow ? 32 : 64;
	if (plan->live == 0)
	{
		plan->form = JoinForm::Empty;
		return;
	}

	const uint64_t range = static_cast<uint64_t>(facts.hi) - static_cast<uint64_t>(facts.lo) + 1;

	if (sorted)
		plan->form = JoinForm::Sorted;
	else if (has_slots(keys) && range != 0 && range <= std::min(MOST_SLOTS, std::max(SMALL_RANGE, 4 * facts.live)))
	{
		plan->form = facts.least_offset == facts.most_offset && !plan->has_nulls ? JoinForm::Identity : JoinForm::Slots;
		plan->lo = facts.lo;
		plan->nslots = range;
	}
	else
	{
		const int	slot_bits = std::max(4, bits_for(facts.live));

		plan->form = JoinForm::Hashed;
		plan->nslots = uint64_t{1} << slot_bits;
		plan->slot_shift = static_cast<uint8_t>(plan->code_bits - slot_bits);
	}
	plan_memory(plan);
}

cudaError_t
build_join_table(const JoinTablePlan &plan, const JoinKeys &keys, char *table_memory, char *temp_memory, JoinTable *table, JoinTableOutcome *words,
				 JoinTableOutcome *outcome, cudaStream_t stream)
{
	cudaError_t rc = cudaMemsetAsync(words, 0, sizeof(*words), stream);

	*table = JoinTable{};
	table->form = plan.form;
	table->narrow = plan.narrow;
	table->exact = plan.exact;
	table->slot_shift = plan.slot_shift;
	table->live = plan.live;
	table->lo = plan.lo;
	table->nslots = plan.nslots;
	table->keys = keys;
	if (rc == cudaSuccess)
		switch (plan.form)
		{
			case JoinForm::Slots:
				table->slots = reinterpret_cast<uint32_t *>(table_memory);
				rc = cudaMemsetAsync(table->slots, 0, plan.nslots * sizeof(uint32_t), stream);
				if (rc == cudaSuccess)
					rc = launch_kernel(&fill_slots, blocks_of(plan.nrows), THREADS, 0, stream, keys, plan.nrows, plan.lo, table->slots, words);
				break;
			case JoinForm::Ranges:
				rc = build_sorted<JoinForm::Ranges, uint32_t>(plan, keys, table_memory, temp_memory, table, words, stream);
				break;
			case JoinForm::Hashed:
				rc = build_any<JoinForm::Hashed>(plan, keys, table_memory, temp_memory, table, words, stream);
				break;
			case JoinForm::Sorted:
				rc = build_any<JoinForm::Sorted>(plan, keys, table_memory, temp_memory, table, words, stream);
				break;
			default:
				break;
		}
	if (rc == cudaSuccess)
		rc = cudaMemcpyAsync(outcome, words, sizeof(*words), cudaMemcpyDefault, stream);
	return rc;
}

JoinTableEnd
finish_join_table(const JoinTableOutcome &outcome, JoinTablePlan *plan, JoinTable *table)
{
	if (outcome.collision != 0)
		return JoinTableEnd::Collision;
	if (plan->form == JoinForm::Slots && outcome.duplicates != 0)
	{
		/* key - lo has a range of its own, whatever the key's type */
		plan->form = JoinForm::Ranges;
		plan->narrow = true;
		plan->slot_shift = 0;
		plan->code_bits = static_cast<uint8_t>(std::max(1, bits_for(plan->nslots)));
		plan_memory(plan);
		return JoinTableEnd::Again;
	}
	table->unique = plan->form != JoinForm::Sorted && outcome.duplicates == 0;
	return JoinTableEnd::Done;
}

}  // namespace cuda
}  // namespace gpuvm
