/* window_emit.cu: functions of rows whose positions, frames and arguments are known. See window_kernels.h. */
#include "window.cuh"

namespace gpuvm {
namespace cuda {

namespace {

template <typename T>
GPUVM_D void
put(const RowColumn &to, uint32_t row, T value)
{
	reinterpret_cast<T *>(to.values)[row] = value;
}

/* emit(call, row, &errors) writes the row's value; false: it is null. A frame is that of a row. */
template <typename Emit>
__global__ void __launch_bounds__(WINDOW_THREADS)
emit_function(const __grid_constant__ WindowCallColumns call, const Emit emit, uint32_t *errors)
{
	const uint32_t end = (call.rows.n + 31) / 32 * 32;
	uint32_t	found = 0;

	for (uint32_t row = blockIdx.x * WINDOW_THREADS + threadIdx.x; row < end; row += gridDim.x * WINDOW_THREADS)
	{
		const bool	null = row < call.rows.n && !emit(call, row, &found);
		const uint32_t word = __ballot_sync(~0u, null);

		if (threadIdx.x % 32 != 0)
			continue;
		if (call.to.nulls != nullptr)
			call.to.nulls[row / 32] = word;
		if (call.to_high.nulls != nullptr)
			call.to_high.nulls[row / 32] = word;
	}
	add_errors(found, errors);
}

struct EmitPosition
{
	GPUVM_D bool operator()(const WindowCallColumns &call, uint32_t row, uint32_t *) const
	{
		const WindowRows &rows = call.rows;
		const uint32_t part = number_of(rows.parts, row), start = rows.parts.rows[part];
		const auto	peers = [&] { return number_of(rows.peers, row); };
		const auto	end = [&] { return end_of(rows.parts, part, rows.n); };

		switch (call.function.fn)
		{
			case WindowFn::RowNumber: put(call.to, row, window_row_number(row, start)); break;
			case WindowFn::Rank: put(call.to, row, window_rank(rows.peers.rows[peers()], start)); break;
			case WindowFn::DenseRank: put(call.to, row, window_rank(peers(), number_of(rows.peers, start))); break;
			case WindowFn::PercentRank: put(call.to, row, window_percent_rank(rows.peers.rows[peers()], start, end())); break;
			case WindowFn::CumeDist: put(call.to, row, window_cume_dist(end_of(rows.peers, peers(), rows.n), start, end())); break;
			default: put(call.to, row, window_ntile(row, start, end(), static_cast<uint64_t>(call.function.number))); break;
		}
		return true;
	}
};

struct EmitPicked
{
	GPUVM_D static void copy(const RowColumn &from, uint64_t row, const RowColumn &to, uint32_t at)
	{
		switch (type_natural_width(from.type))
		{
			case 1: put(to, at, row_value<uint8_t>(from, row)); break;
			case 2: put(to, at, row_value<uint16_t>(from, row)); break;
			case 4: put(to, at, row_value<uint32_t>(from, row)); break;
			default: put(to, at, row_value<uint64_t>(from, row)); break;
		}
	}

	GPUVM_D static uint64_t picked(const WindowCallColumns &call, uint32_t row)
	{
		const WindowRows &rows = call.rows;
		const WindowFn fn = call.function.fn;

		if (fn != WindowFn::Lag && fn != WindowFn::Lead)
			return window_row_of_frame(fn, static_cast<uint64_t>(call.function.number), rows.heads[row], rows.tails[row]);

		const uint32_t part = number_of(rows.parts, row);

		return window_row_at(row, fn == WindowFn::Lag ? -call.function.number : call.function.number, rows.parts.rows[part],
							 end_of(rows.parts, part, rows.n));
	}

	GPUVM_D bool operator()(const WindowCallColumns &call, uint32_t row, uint32_t *) const
	{
		const uint64_t from = picked(call, row);

		if (from != WINDOW_NO_ROW)
		{
			copy(call.argument, from, call.to, row);
			return !row_null(call.argument, from);
		}

		const uint64_t bits = window_default_bits(call.function.type, call.function.default_value);

		switch (type_natural_width(call.to.type))
		{
			case 1: put(call.to, row, static_cast<uint8_t>(bits)); break;
			case 2: put(call.to, row, static_cast<uint16_t>(bits)); break;
			case 4: put(call.to, row, static_cast<uint32_t>(bits)); break;
			default: put(call.to, row, bits); break;
		}
		return call.function.has_default != 0;
	}
};

/* Bits in the row's frame; all, if there are none. */
GPUVM_D uint32_t
count_of(const WindowCallColumns &call, const WindowBits &bits, uint32_t row)
{
	const uint32_t head = call.rows.heads[row], tail = call.rows.tails[row];

	return bits.bits == nullptr || head == tail ? tail - head : bits_before(bits, tail) - bits_before(bits, head);
}

struct EmitCount
{
	GPUVM_D bool operator()(const WindowCallColumns &call, uint32_t row, uint32_t *) const
	{
		put(call.to, row, static_cast<int64_t>(count_of(call, call.counted, row)));
		return true;
	}
};

struct EmitBool
{
	GPUVM_D bool operator()(const WindowCallColumns &call, uint32_t row, uint32_t *) const
	{
		const uint32_t counted = count_of(call, call.counted, row), trues = count_of(call, call.trues, row);

		put(call.to, row, static_cast<uint8_t>(call.function.fn == WindowFn::BoolAnd ? trues == counted : trues > 0));
		return counted > 0;
	}
};

GPUVM_D void
put_halves(const WindowCallColumns &call, uint32_t row, int128 value)
{
	put(call.to, row, wide_low(value));
	put(call.to_high, row, wide_high(value));
}

/* Sums of 128 bits wrap; their differences are right where they fit. */
template <typename Sum>
struct EmitSum
{
	GPUVM_D bool operator()(const WindowCallColumns &call, uint32_t row, uint32_t *errors) const
	{
		const Sum  *sums = reinterpret_cast<const Sum *>(call.sums);

		if (count_of(call, call.counted, row) == 0)
			return false;

		const uint128 before = static_cast<uint128>(static_cast<int128>(sums[call.rows.heads[row]]));
		const int128 sum = static_cast<int128>(static_cast<uint128>(static_cast<int128>(sums[call.rows.tails[row]])) - before);
		const bool	halves = call.function.type == Type::I128;

		if (halves ? !wide_fits(sum) : static_cast<int64_t>(sum) != sum)
			*errors |= ERR_INT_OVERFLOW;
		if (halves)
			put_halves(call, row, sum);
		else
			put(call.to, row, static_cast<int64_t>(sum));
		return true;
	}
};

template <typename Key>
struct EmitExtreme
{
	GPUVM_D static Key key_of(const WindowCallColumns &call, uint32_t row)
	{
		const uint32_t head = call.rows.heads[row], tail = call.rows.tails[row];

		if (call.keys.since != nullptr)
			return reinterpret_cast<const Key *>(call.keys.since)[tail - 1];
		return window_tree_least<Key>([&](int k) { return reinterpret_cast<const Key *>(call.keys.level[k]); }, head, tail);
	}

	GPUVM_D static void put_float(const WindowCallColumns &call, uint32_t row, int64_t value, uint32_t *errors)
	{
		const uint32_t zeroes = call.keys.zeroes != nullptr ? *call.keys.zeroes : 0;
		const double number = window_unordered(value, (zeroes & 2) != 0);

		if (call.function.type == Type::F32)
			put(call.to, row, static_cast<float>(number));
		else
			put(call.to, row, number);
		if (value == 0 && zeroes == 3)
			*errors |= ERR_AMBIGUOUS_ZERO;
	}

	GPUVM_D bool operator()(const WindowCallColumns &call, uint32_t row, uint32_t *errors) const
	{
		if (count_of(call, call.counted, row) == 0)
			return false;

		const Key	key = key_of(call, row);
		const Key	whole = call.keys.max ? ~key : key;
		/* below the rank lies the code */
		const Key	value = call.keys.ranked ? static_cast<Key>(static_cast<uint32_t>(whole)) : whole;

		switch (call.function.type)
		{
			case Type::I16: put(call.to, row, static_cast<int16_t>(value)); break;
			case Type::I32: put(call.to, row, static_cast<int32_t>(value)); break;
			case Type::I64: put(call.to, row, static_cast<int64_t>(value)); break;
			case Type::I128: put_halves(call, row, value); break;
			default: put_float(call, row, static_cast<int64_t>(value), errors); break;
		}
		return true;
	}
};

template <typename Emit>
cudaError_t
launch_emit(const WindowCallColumns &call, const Emit &emit, uint32_t *errors, cudaStream_t stream)
{
	return launch_kernel(&emit_function<Emit>, window_blocks_for(call.rows.n), WINDOW_THREADS, 0, stream, call, emit, errors);
}

}  // namespace

cudaError_t
emit_window_function(const WindowCallColumns &call, uint32_t *errors, cudaStream_t stream)
{
	switch (call.function.fn)
	{
		case WindowFn::Lag:
		case WindowFn::Lead:
		case WindowFn::FirstValue:
		case WindowFn::LastValue:
		case WindowFn::NthValue:
			return launch_emit(call, EmitPicked{}, errors, stream);
		case WindowFn::Count:
			return launch_emit(call, EmitCount{}, errors, stream);
		case WindowFn::Sum:
			return call.wide_sums ? launch_emit(call, EmitSum<int128>{}, errors, stream) : launch_emit(call, EmitSum<int64_t>{}, errors, stream);
		case WindowFn::Min:
		case WindowFn::Max:
			return call.keys.wide ? launch_emit(call, EmitExtreme<int128>{}, errors, stream) : launch_emit(call, EmitExtreme<int64_t>{}, errors, stream);
		case WindowFn::BoolAnd:
		case WindowFn::BoolOr:
			return launch_emit(call, EmitBool{}, errors, stream);
		default:
			return launch_emit(call, EmitPosition{}, errors, stream);
	}
}

}  // namespace cuda
}  // namespace gpuvm
