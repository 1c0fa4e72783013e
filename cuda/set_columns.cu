/* set_columns.cu: see set_columns.h. */
#include "set_columns.h"

#include <algorithm>

#include "kernel_launch.h"
#include "machine.cuh"
#include "tablet/wide_halves.h"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint32_t THREADS = 256;
constexpr uint32_t BLOCKS_WANTED = 2048;

struct StoreColumn
{
	const char *from;
	const uint32_t *from_nulls;	/* or nullptr */
	char	   *to;
	uint32_t   *to_nulls;		/* or nullptr */
	Type		type;			/* of `to` */
	bool		sum;			/* of `from` */
	SetForm		form;
};

/* Kernel parameters: columns that one launch stores. */
struct StoreColumns
{
	StoreColumn column[BATCH_COLUMNS];
};

/* What a thread has seen of a column. */
struct SeenValues
{
	uint64_t	not_least = 0, most = 0;
	uint32_t	nulls = 0, flags = 0, exp_lo = 0, exp_hi = 0;

	GPUVM_D void take_bits(uint64_t bits)
	{
		not_least = max(not_least, ~bits);
		most = max(most, bits);
		flags |= SET_HAS_VALUE;
	}

	GPUVM_D void take_float(uint64_t bits)
	{
		constexpr uint64_t sign = 0x8000000000000000u, infinity = 0x7ff0000000000000u, hidden = uint64_t{1} << 52;
		const uint64_t magnitude = bits & ~sign;

		if (magnitude >= infinity)
		{
			flags |= magnitude > infinity ? CHUNK_HAS_NAN : CHUNK_HAS_INF;
			return;
		}
		take_bits(bits & sign ? ~bits : bits | sign);
		if (magnitude == 0)
		{
			flags |= bits != 0 ? CHUNK_HAS_NEG_ZERO : 0;
			return;
		}

		/* mantissa * 2^exponent */
		const int	biased = static_cast<int>(magnitude >> 52), exponent = max(biased, 1) - 1075;
		const uint64_t mantissa = (magnitude & (hidden - 1)) | (biased != 0 ? hidden : 0);
		const int	lowest = exponent + __ffsll(static_cast<long long>(mantissa)) - 1;
		const int	above = exponent + 64 - __clzll(static_cast<long long>(mantissa));

		exp_lo = max(exp_lo, static_cast<uint32_t>(SET_EXP_ORIGIN - lowest));
		exp_hi = max(exp_hi, static_cast<uint32_t>(SET_EXP_ORIGIN + above));
	}

	/* By whole warps. */
	GPUVM_D void put(SetColumnFacts *facts)
	{
		for (int by = 16; by > 0; by /= 2)
		{
			not_least = max(not_least, __shfl_xor_sync(~0u, not_least, by));
			most = max(most, __shfl_xor_sync(~0u, most, by));
			exp_lo = max(exp_lo, __shfl_xor_sync(~0u, exp_lo, by));
			exp_hi = max(exp_hi, __shfl_xor_sync(~0u, exp_hi, by));
			flags |= __shfl_xor_sync(~0u, flags, by);
		}
		/* lane 0 has counted the nulls */
		if (threadIdx.x % 32 != 0)
			return;
		atomicMax(reinterpret_cast<unsigned long long *>(&facts->not_least), static_cast<unsigned long long>(not_least));
		atomicMax(reinterpret_cast<unsigned long long *>(&facts->most), static_cast<unsigned long long>(most));
		atomicMax(&facts->exp_lo, exp_lo);
		atomicMax(&facts->exp_hi, exp_hi);
		atomicAdd(&facts->nulls, nulls);
		atomicOr(&facts->flags, flags);
	}
};

/* An integer in the column's form. */
GPUVM_D uint64_t
sum_value(SetForm form, int128 sum, SeenValues *seen)
{
	const bool	fits = form == SetForm::Narrow ? sum == static_cast<int64_t>(sum) : wide_fits(sum);

	if (!fits)
		seen->flags |= SET_MISFIT;
	return static_cast<uint64_t>(form == SetForm::Low ? wide_low(sum) : form == SetForm::High ? wide_high(sum) : static_cast<int64_t>(sum));
}

/* The row's value, not null, as `to` has it. */
GPUVM_D uint64_t
taken_value(const StoreColumn &column, uint32_t row, SeenValues *seen)
{
	uint64_t	v;

	if (column.form != SetForm::Plain)
	{
		v = sum_value(column.form, column.sum ? reinterpret_cast<const int128 *>(column.from)[row] : reinterpret_cast<const int64_t *>(column.from)[row], seen);
		seen->take_bits(set_order_bits(static_cast<int64_t>(v)));
		return v;
	}
	switch (column.type)
	{
		case Type::Bool:
			v = reinterpret_cast<const uint8_t *>(column.from)[row];
			seen->take_bits(set_order_bits(v != 0));
			break;
		case Type::I16:
			v = reinterpret_cast<const uint16_t *>(column.from)[row];
			seen->take_bits(set_order_bits(static_cast<int16_t>(v)));
			break;
		case Type::I32:
			v = reinterpret_cast<const uint32_t *>(column.from)[row];
			seen->take_bits(set_order_bits(static_cast<int32_t>(v)));
			break;
		case Type::F32:
			v = reinterpret_cast<const uint32_t *>(column.from)[row];
			seen->take_float(static_cast<uint64_t>(__double_as_longlong(static_cast<double>(__uint_as_float(static_cast<uint32_t>(v))))));
			break;
		case Type::F64:
			v = reinterpret_cast<const uint64_t *>(column.from)[row];
			seen->take_float(v);
			break;
		default:
			v = reinterpret_cast<const uint64_t *>(column.from)[row];
			seen->take_bits(set_order_bits(static_cast<int64_t>(v)));
			break;
	}
	return v;
}

GPUVM_D void
write_value(char *to, int width, uint32_t i, uint64_t v)
{
	switch (width)
	{
		case 1: reinterpret_cast<uint8_t *>(to)[i] = static_cast<uint8_t>(v); break;
		case 2: reinterpret_cast<uint16_t *>(to)[i] = static_cast<uint16_t>(v); break;
		case 4: reinterpret_cast<uint32_t *>(to)[i] = static_cast<uint32_t>(v); break;
		default: reinterpret_cast<uint64_t *>(to)[i] = v; break;
	}
}

/* So many blocks a column, which share its rows; `padded` is a multiple of THREADS. */
__global__ void __launch_bounds__(THREADS)
store(const __grid_constant__ StoreColumns columns, const uint32_t *order, uint32_t n, uint32_t padded, uint32_t blocks_a_column,
	  SetColumnFacts *facts)
{
	const uint32_t number = blockIdx.x / blocks_a_column, step = blocks_a_column * THREADS;
	const StoreColumn &column = columns.column[number];
	const int	width = type_natural_width(column.type);
	SeenValues	seen;

	for (uint32_t i = blockIdx.x % blocks_a_column * THREADS + threadIdx.x; i < padded; i += step)
	{
		const bool	live = i < n;
		const uint32_t row = live && order != nullptr ? order[i] : i;
		const bool	null = live && column.from_nulls != nullptr && (column.from_nulls[row / 32] >> (row % 32) & 1) != 0;
		const uint32_t word = i / 32 * 32 < n ? __ballot_sync(~0u, null) : 0;

		write_value(column.to, width, i, live && !null ? taken_value(column, row, &seen) : 0);
		if (threadIdx.x % 32 != 0)
			continue;
		seen.nulls += static_cast<uint32_t>(__popc(word));
		if (column.to_nulls != nullptr)
			column.to_nulls[i / 32] = word;
	}
	/* a warp that had padding alone has seen nothing */
	if ((blockIdx.x % blocks_a_column * THREADS + threadIdx.x) / 32 * 32 < n)
		seen.put(facts + number);
}

}  // namespace

cudaError_t
store_set_columns(const RowSet &rows, const SetColumnSource *sources, const uint32_t *order, uint32_t n, const RowSet &to, SetColumnFacts *facts,
				  cudaStream_t stream)
{
	const uint32_t padded = static_cast<uint32_t>((n + uint64_t{TABLET_PAD_ROWS} - 1) / TABLET_PAD_ROWS * TABLET_PAD_ROWS);
	cudaError_t rc = cudaMemsetAsync(facts, 0, to.ncolumns * sizeof(SetColumnFacts), stream);

	for (uint32_t done = 0; done < to.ncolumns && rc == cudaSuccess; done += BATCH_COLUMNS)
	{
		const uint32_t ncolumns = std::min(to.ncolumns - done, BATCH_COLUMNS);
		const uint32_t blocks = std::min(padded / THREADS, std::max(1u, BLOCKS_WANTED / ncolumns));
		StoreColumns columns = {};

		for (uint32_t c = 0; c < ncolumns; c++)
		{
			const SetColumnSource &source = sources[done + c];
			const RowColumn &from = rows.column[source.column], &target = to.column[done + c];

			columns.column[c] = StoreColumn{from.values, from.nulls, target.values, target.nulls, target.type, source.sum, source.form};
		}
		rc = launch_kernel(store, blocks * ncolumns, THREADS, 0, stream, columns, order, n, padded, blocks, facts + done);
	}
	return rc;
}

}  // namespace cuda
}  // namespace gpuvm
