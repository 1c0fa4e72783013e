/*
 * groups.cu: from a group table to result rows.
 *
 * finish_groups() lists the groups that there are, or only counts them, in one pass: a warp counts those
 * of a run of rows by ballots and takes as many places of the list by one
 * addition. Rows are emitted through the list, a thread a group, so that
 * neighbouring threads write neighbouring values of a column to the mapped area.
 */
#include "groups.h"

#include "group_table.cuh"
#include "kernel_launch.h"
#include "vm/float_sum.h"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint32_t THREADS = 256;
constexpr uint32_t MAX_BLOCKS = 1024;
constexpr uint32_t RUN = 16;	/* rows that a lane looks at for one place in the list */

/* Both zeroes in what PostgreSQL takes for one value (rule 16). */
constexpr uint32_t BOTH_ZEROES = SUM_NEG_ZERO | SUM_POS_ZERO;

template <typename V>
GPUVM_D V
cell(const char *row, uint16_t at)
{
	return *reinterpret_cast<const V *>(row + at);
}

GPUVM_D uint64_t
inputs_of(const GroupLayout &g, const GroupAgg &agg, const char *row)
{
	return g.inputs_wide ? cell<uint64_t>(row, agg.inputs) : cell<uint32_t>(row, agg.inputs);
}

GPUVM_D bool
is_present(const DeviceProgram &p, const GroupTable &table, uint64_t r)
{
	const char *row = table.rows + r * table.row_bytes;

	if (table.kind == GroupTableKind::Dense)
		return p.groups.present == CELL_NONE || cell<uint32_t>(row, p.groups.present) != 0;
	if (p.groups.nwords == 1)
		return *reinterpret_cast<const uint64_t *>(row + table.key_at) != 0;
	return *reinterpret_cast<const uint32_t *>(row + row_state_at(table, p.groups.nwords)) != 0;
}

/* -- aggregates ------------------------------------------------------------------------------ */

GPUVM_D uint64_t
code_of(const GroupAgg &agg, const char *row)
{
	return agg.kind == CellKind::Max64 || agg.kind == CellKind::Add64 ? cell<uint64_t>(row, agg.value) : cell<uint32_t>(row, agg.value);
}

GPUVM_D FloatSumInfo
sum_info(const GroupLayout &g, const GroupAgg &agg, const char *row)
{
	FloatSumInfo info = {};

	info.n = agg.inputs == CELL_NONE ? 1 : static_cast<int64_t>(inputs_of(g, agg, row));
	info.max_exp = agg.max_exp == CELL_NONE ? 0 : static_cast<int16_t>(cell<uint32_t>(row, agg.max_exp));
	info.flags = static_cast<uint8_t>(cell<uint32_t>(row, agg.flags) | agg.known_flags | (info.n != 0 ? FLOAT_SUM_SEEN : 0));
	return info;
}

/* The extreme's bits, from a code that is not 0: see ordered_bits(). */
GPUVM_D uint64_t
float_extreme(Type type, AggFn fn, uint64_t code)
{
	if (type == Type::F32)
	{
		uint32_t	c = static_cast<uint32_t>(fn == AggFn::Min ? ~code : code);

		return c & 0x80000000 ? c ^ 0x80000000 : ~c;
	}
	code = fn == AggFn::Min ? ~code : code;
	return code >> 63 ? code ^ 1ull << 63 : ~code;
}

/* The ErrorBits that only the whole of a group's rows shows. */
GPUVM_D uint32_t
end_errors(const DeviceProgram &p, const char *row)
{
	uint32_t	errors = 0;

	for (int i = 0; i < p.groups.naggs; i++)
	{
		const GroupAgg &agg = p.groups.aggs[i];
		AggFn		fn = p.agg_fn[i];
		Type		type = p.agg_type[i];

		if (!type_is_float(type) || agg.flags == CELL_NONE)
			continue;
		if (fn == AggFn::Sum)
			errors |= float_sum_may_overflow(sum_info(p.groups, agg, row), type) ? uint32_t(ERR_SUM_OVERFLOW) : 0;
		else if ((cell<uint32_t>(row, agg.flags) & BOTH_ZEROES) == BOTH_ZEROES &&
				 float_extreme(type, fn, code_of(agg, row)) << (type == Type::F32 ? 33 : 1) == 0)
			errors |= ERR_AMBIGUOUS_ZERO;
	}
	return errors;
}

struct Value
{
	uint64_t	lo, hi;
	bool		null;
};

GPUVM_D Value
int_sum(const GroupLayout &g, const GroupAgg &agg, const char *row)
{
	int128		sum;
	uint64_t	n = agg.inputs == CELL_NONE ? 1 : inputs_of(g, agg, row);

	if (agg.kind == CellKind::Wide)
		sum = static_cast<int128>((static_cast<uint128>(cell<uint64_t>(row, static_cast<uint16_t>(agg.value + 8))) << 32) + cell<uint64_t>(row, agg.value));
	else
		sum = static_cast<int128>(static_cast<uint128>(code_of(agg, row)));
	if (agg.bias != 0)
		sum += static_cast<int128>(agg.bias) * static_cast<int128>(n);
	return Value{static_cast<uint64_t>(sum), static_cast<uint64_t>(static_cast<uint128>(sum) >> 64), n == 0};
}

GPUVM_D Value
float_sum(const GroupLayout &g, const GroupAgg &agg, const char *row, int rest)
{
	FloatSumInfo info = sum_info(g, agg, row);
	int64_t		limbs[FLOAT_SUM_LIMBS + 3] = {};
	FloatSumWindow window = {0, FLOAT_SUM_LIMBS};

	if (agg.kind == CellKind::Add64)
		float_fixed_limbs(static_cast<int64_t>(cell<uint64_t>(row, agg.value)), agg.first, limbs);
	else
	{
		/* Room for the carries above. */
		window = FloatSumWindow{agg.first, agg.limbs + 3};
		for (int i = 0; i < agg.limbs; i++)
			limbs[i] = static_cast<int64_t>(cell<uint64_t>(row, static_cast<uint16_t>(agg.value + 8 * i)));
	}
	return Value{double_bits(float_sum_rest(info, limbs, window, rest)), 0, !(info.flags & FLOAT_SUM_SEEN)};
}

GPUVM_D Value
bits_value(const GroupLayout &g, AggFn fn, Type type, const GroupAgg &agg, const char *row)
{
	uint64_t	bits = cell<uint32_t>(row, agg.value) | (type == Type::I64 ? static_cast<uint64_t>(cell<uint32_t>(row, agg.high)) << 32 : 0);

	return Value{fn == AggFn::BitAnd ? ~bits : bits, 0, agg.inputs != CELL_NONE && inputs_of(g, agg, row) == 0};
}

GPUVM_D Value
agg_value(const DeviceProgram &p, int i, int rest, const char *row)
{
	const GroupAgg &agg = p.groups.aggs[i];
	AggFn		fn = p.agg_fn[i];
	Type		type = p.agg_type[i];

	switch (fn)
	{
		case AggFn::CountStar:
		case AggFn::Count:
			return Value{inputs_of(p.groups, agg, row), 0, false};
		case AggFn::Sum:
			return type_is_float(type) ? float_sum(p.groups, agg, row, rest) : int_sum(p.groups, agg, row);
		case AggFn::Min:
		case AggFn::Max:
		{
			uint64_t	code = code_of(agg, row);

			if (agg.zero_is_value ? agg.inputs != CELL_NONE && inputs_of(p.groups, agg, row) == 0 : code == 0)
				return Value{0, 0, true};
			if (type_is_float(type))
				return Value{float_extreme(type, fn, code), 0, false};
			return Value{fn == AggFn::Max ? code + static_cast<uint64_t>(agg.bias) : static_cast<uint64_t>(agg.bias) - code, 0, false};
		}
		case AggFn::BitAnd:
		case AggFn::BitOr:
		case AggFn::BitXor:
			return bits_value(p.groups, fn, type, agg, row);
		default:
		{
			uint32_t	seen = cell<uint32_t>(row, agg.value);

			return Value{fn == AggFn::BoolAnd ? seen == 1 : seen & 1, 0, seen == 0};
		}
	}
}

/* -- keys -------------------------------------------------------------------------------------- */

GPUVM_D uint64_t
key_word(const DeviceProgram &p, const GroupTable &table, uint32_t r, uint32_t word)
{
	uint64_t	stored;

	if (table.kind != GroupTableKind::Hashed)
		return r;
	stored = reinterpret_cast<const uint64_t *>(table.rows + static_cast<uint64_t>(r) * table.row_bytes + table.key_at)[word];
	if (p.groups.nwords > 1)
		return stored;
	return r == table.entries ? ~0ull : ~stored;
}

GPUVM_D Value
key_value(const DeviceProgram &p, const GroupTable &table, uint32_t r, int k)
{
	const GroupKey &key = p.groups.keys[k];
	uint64_t	digit = key_word(p, table, r, key.word) / key.stride;
	bool		null;

	if (key.null_word != KEY_NO_WORD)
		null = key_word(p, table, r, key.null_word) / key.null_stride % 2 != 0;
	else
	{
		/* 0: the word holds nothing else */
		uint64_t	radix = key.values + key.nullable;

		digit = key.values != 0 && radix != 0 ? digit % radix : digit;
		null = key.nullable && digit == key.values;
	}
	return Value{null ? 0 : static_cast<uint64_t>(key.lo) + digit, 0, null};
}

/* -- kernels ------------------------------------------------------------------------------------ */

/* Runs of the table's rows, or of a bitmap's words, are a warp's turn by turn. f(run) for the thread's. */
template <typename F>
GPUVM_D void
each_run(const GroupTable &table, uint64_t rows, F f)
{
	const uint32_t warps = gridDim.x * (THREADS / 32);
	const uint64_t runs = (rows + 32 * RUN - 1) / (32 * RUN);

	for (uint64_t run = blockIdx.x * (THREADS / 32) + threadIdx.x / 32; run < runs && !table.header->overflow; run += warps)
		f(run);
}

/* How many groups of a bitmap the warp counted: those that it did not list. */
GPUVM_D uint32_t
list_bits(const GroupTable &table)
{
	const uint32_t *bits = reinterpret_cast<const uint32_t *>(table.rows);
	const uint64_t words = bitmap_words(table.entries);
	const uint32_t lane = threadIdx.x % 32;
	uint32_t	counted = 0;

	each_run(table, words, [&](uint64_t run) {
		const uint64_t first = run * 32 * RUN + lane;
		uint32_t	word[RUN], mine = 0, before, at = 0;

#pragma unroll
		for (uint32_t i = 0; i < RUN; i++)
			word[i] = first + i * 32 < words ? bits[first + i * 32] : 0;
#pragma unroll
		for (uint32_t i = 0; i < RUN; i++)
			mine += static_cast<uint32_t>(__popc(word[i]));
		if (table.list == nullptr)
		{
			counted += mine;
			return;
		}
		before = mine;
		for (uint32_t d = 1; d < 32; d *= 2)
		{
			const uint32_t other = __shfl_up_sync(~0u, before, d);

			before += lane >= d ? other : 0;
		}
		if (lane == 31 && before > 0)
			at = atomicAdd(&table.header->ngroups, before);
		at = __shfl_sync(~0u, at, 31) + before - mine;
#pragma unroll
		for (uint32_t i = 0; i < RUN; i++)
			for (uint32_t left = word[i]; left != 0; left &= left - 1)
				table.list[at++] = static_cast<uint32_t>((first + i * 32) * 32) + static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1;
	});
	for (uint32_t d = 16; d > 0; d /= 2)
		counted += __shfl_xor_sync(~0u, counted, d);
	return counted;
}

/* The same for a table of rows, and the errors that ending their aggregates shows. */
GPUVM_D uint32_t
list_rows(const DeviceProgram &p, const GroupTable &table, uint32_t *errors)
{
	const uint64_t rows = table.entries + (table.kind == GroupTableKind::Hashed ? 1ull : 0);
	const uint32_t lane = threadIdx.x % 32;
	uint32_t	counted = 0;
	bool		fails_at_end = false;

	for (int i = 0; i < p.groups.naggs; i++)
		fails_at_end |= type_is_float(p.agg_type[i]) && p.groups.aggs[i].flags != CELL_NONE;
	each_run(table, rows, [&](uint64_t run) {
		uint64_t	first = run * 32 * RUN + lane;
		uint32_t	mine = 0, before = 0, total = 0, at = 0;

		for (uint32_t i = 0; i < RUN; i++)
		{
			uint64_t	r = first + i * 32;

			if (r < rows && is_present(p, table, r))
			{
				mine |= 1u << i;
				if (fails_at_end)
					*errors |= end_errors(p, table.rows + r * table.row_bytes);
			}
		}
		for (uint32_t i = 0; i < RUN; i++)
			total += __popc(__ballot_sync(~0u, mine >> i & 1));
		if (table.list == nullptr)
		{
			counted += total;
			return;
		}
		if (lane == 0 && total > 0)
			at = atomicAdd(&table.header->ngroups, total);
		at = __shfl_sync(~0u, at, 0);
		for (uint32_t i = 0; i < RUN; i++)
		{
			uint32_t	there = __ballot_sync(~0u, mine >> i & 1);

			if (mine >> i & 1)
				table.list[at + before + __popc(there & ((1u << lane) - 1))] = static_cast<uint32_t>(first + i * 32);
			before += __popc(there);
		}
	});
	return counted;
}

__global__ void __launch_bounds__(THREADS)
list_groups(const __grid_constant__ DeviceProgram p, const GroupTable table, const LaunchState *state, GroupOutcome *outcome)
{
	uint32_t	errors = 0;
	const uint32_t counted = table.kind == GroupTableKind::Bits ? list_bits(table) : list_rows(p, table, &errors);

	if (threadIdx.x % 32 == 0 && counted > 0)
		atomicAdd(&table.header->ngroups, counted);
	if (errors)
		atomicOr(&table.header->errors, errors);
	__threadfence();
	__syncthreads();
	if (threadIdx.x != 0 || atomicAdd(&table.header->blocks_done, 1u) != gridDim.x - 1)
		return;
	__threadfence();

	volatile GroupHeader *header = table.header;
	uint32_t	zeroes = header->key_zeroes;
	uint32_t	all = state->errors | header->errors;

	for (int k = 0; k < p.groups.nkeys; k++)
		all |= (zeroes >> (2 * k) & 3) == 3 ? uint32_t(ERR_AMBIGUOUS_ZERO) : 0;
	outcome->ngroups = header->ngroups;
	outcome->errors = all;
	outcome->overflow = header->overflow;
	__threadfence_system();
}

template <typename V>
GPUVM_D void
write(char *column, uint32_t i, uint64_t v)
{
	reinterpret_cast<V *>(column)[i] = static_cast<V>(v);
}

/* Where the result columns go. */
struct GroupColumns
{
	struct
	{
		char	   *values;
		uint32_t   *nulls;		/* nullptr: none is null */
		uint32_t	width;
	}			column[PROGRAM_MAX_COLUMNS];
};

/* Threads for whole words of the null bitmaps. */
__global__ void __launch_bounds__(THREADS)
emit_rows(const __grid_constant__ DeviceProgram p, const GroupTable table, const __grid_constant__ GroupColumns columns, uint64_t from, uint32_t n)
{
	const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
	const bool	there = i < n;
	const uint32_t r = there ? table.list[from + i] : 0;
	const char *row = table.rows + static_cast<uint64_t>(r) * table.row_bytes;

	for (int c = 0; c < p.nresults; c++)
	{
		const uint8_t source = p.groups.sources[c];
		char	   *values = columns.column[c].values;
		uint32_t   *null_words = columns.column[c].nulls;
		Value		v = {0, 0, false};

		if (there)
			v = source & GROUP_SOURCE_AGG ? agg_value(p, source & ~GROUP_SOURCE_AGG, p.groups.rests[c], row) : key_value(p, table, r, source);
		if (v.null)
			v.lo = v.hi = 0;
		if (there)
			switch (columns.column[c].width)
			{
				case 1:
					write<uint8_t>(values, i, v.lo);
					break;
				case 2:
					write<uint16_t>(values, i, v.lo);
					break;
				case 4:
					write<uint32_t>(values, i, v.lo);
					break;
				case 8:
					write<uint64_t>(values, i, v.lo);
					break;
				default:
					reinterpret_cast<ulonglong2 *>(values)[i] = ulonglong2{v.lo, v.hi};
					break;
			}

		uint32_t	nulls = __ballot_sync(~0u, v.null);

		if (threadIdx.x % 32 == 0 && null_words != nullptr && i < (n + RESULT_PAD_ROWS - 1) / RESULT_PAD_ROWS * RESULT_PAD_ROWS)
			null_words[i / 32] = nulls;
	}
}

}  // namespace

cudaError_t
finish_groups(const DeviceProgram &program, const GroupTable &table, const LaunchState *state, GroupOutcome *outcome, cudaStream_t stream)
{
	uint64_t	items = table.kind == GroupTableKind::Bits ? bitmap_words(table.entries) : table.entries + 1ull;
	uint64_t	blocks = (items + RUN * THREADS - 1) / (RUN * THREADS);

	return launch_kernel(list_groups, static_cast<uint32_t>(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS), THREADS, 0, stream, program,
						 table, state, outcome);
}

cudaError_t
emit_groups(const DeviceProgram &program, const GroupTable &table, uint64_t from, uint32_t n, char *area, uint32_t capacity, cudaStream_t stream)
{
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
	GroupColumns columns = {};

	if (n == 0)
		return cudaSuccess;
	result_layout(program.result_type, program.nresults, capacity, layout);
	for (int c = 0; c < program.nresults; c++)
	{
		columns.column[c].values = area + layout[c].values;
		columns.column[c].nulls = reinterpret_cast<uint32_t *>(area + layout[c].nulls);
		columns.column[c].width = static_cast<uint32_t>(type_width(program.result_type[c]));
	}
	return launch_kernel(emit_rows, (n + THREADS - 1) / THREADS, THREADS, 0, stream, program, table, columns, from, n);
}

cudaError_t
store_groups(const DeviceProgram &program, const GroupTable &table, uint32_t n, const RowSet &rows, cudaStream_t stream)
{
	GroupColumns columns = {};

	if (n == 0)
		return cudaSuccess;
	for (uint32_t c = 0; c < rows.ncolumns; c++)
	{
		columns.column[c].values = rows.column[c].values;
		columns.column[c].nulls = rows.column[c].nulls;
		columns.column[c].width = static_cast<uint32_t>(type_natural_width(rows.column[c].type));
	}
	return launch_kernel(emit_rows, (n + THREADS - 1) / THREADS, THREADS, 0, stream, program, table, columns, uint64_t{0}, n);
}

}  // namespace cuda
}  // namespace gpuvm
