/*
 * build.cc: statistics, encodings, layout and writing of a tablet.
 *
 * Every pass over the rows is a plain loop over one column (`scan_*`, `narrow`),
 * compiled for AVX2 beside the baseline and without a branch on the data, so
 * that import is bound by reading the heap and not by this file. Nulls never
 * reach those loops: rows are taken 64 at a time, one word of the null bitmap,
 * and where the word is not zero the 64 values are copied and the nulls
 * overwritten with a value that changes nothing.
 *
 * Floats are scanned as integers: the bits of a float, those of a negative one
 * with the magnitude inverted, order as the floats do (-0 just below 0), which
 * gives exact minima that vectorise and keep NaN out by a mask.
 */
#include "tablet/build.h"

#include <cstring>

namespace gpuvm {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define GPUVM_LOOP __attribute__((optimize("O3", "no-trapping-math"), target_clones("avx2", "default"), noinline))
#else
#define GPUVM_LOOP __attribute__((noinline))
#endif

constexpr uint32_t WORD_ROWS = 64;

struct IntStats
{
	int64_t		min;
	int64_t		max;
};

/* In order keys (see above) and magnitude bits of the float's own width. */
struct FloatStats
{
	int64_t		key_min;		/* over all values */
	int64_t		key_max;
	int64_t		finite_min;		/* over the finite values */
	int64_t		finite_max;
	int64_t		magnitude;		/* greatest finite magnitude */
	int64_t		unit;			/* least value of a lowest set bit */
	int64_t		nans;			/* all ones if there is one */
	int64_t		infs;
	int64_t		neg_zeros;
};

template <typename T>
GPUVM_HD void
scan_ints(const T *values, uint32_t n, IntStats *stats)
{
	T			lo = values[0];
	T			hi = values[0];

	for (uint32_t i = 0; i < n; i++)
	{
		lo = values[i] < lo ? values[i] : lo;
		hi = values[i] > hi ? values[i] : hi;
	}
	if (lo < stats->min)
		stats->min = lo;
	if (hi > stats->max)
		stats->max = hi;
}

GPUVM_LOOP static void
scan_u8(const uint8_t *values, uint32_t n, IntStats *stats)
{
	scan_ints(values, n, stats);
}

GPUVM_LOOP static void
scan_i16(const int16_t *values, uint32_t n, IntStats *stats)
{
	scan_ints(values, n, stats);
}

GPUVM_LOOP static void
scan_i32(const int32_t *values, uint32_t n, IntStats *stats)
{
	scan_ints(values, n, stats);
}

GPUVM_LOOP static void
scan_i64(const int64_t *values, uint32_t n, IntStats *stats)
{
	scan_ints(values, n, stats);
}

template <typename F> struct FloatBits;
template <> struct FloatBits<float>
{
	using Int = int32_t;
	using Uint = uint32_t;
	static constexpr int mantissa = 23;
};
template <> struct FloatBits<double>
{
	using Int = int64_t;
	using Uint = uint64_t;
	static constexpr int mantissa = 52;
};

template <typename F>
GPUVM_HD void
scan_floats(const F *values, uint32_t n, FloatStats *stats)
{
	using Int = typename FloatBits<F>::Int;
	using Uint = typename FloatBits<F>::Uint;
	constexpr Int sign = static_cast<Int>(Uint(1) << (sizeof(F) * 8 - 1));
	constexpr Int magnitude_mask = ~sign;
	constexpr Int fraction_mask = static_cast<Int>((Uint(1) << FloatBits<F>::mantissa) - 1);
	constexpr Int inf = magnitude_mask & ~fraction_mask;
	constexpr Int greatest = magnitude_mask;

	Int			key_min = greatest,
				key_max = sign;
	Int			finite_min = greatest,
				finite_max = sign;
	Int			magnitude = 0,
				unit = greatest;
	Int			nans = 0,
				infs = 0,
				neg_zeros = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		Int			bits;

		memcpy(&bits, &values[i], sizeof(F));

		Int			abs_bits = bits & magnitude_mask;
		Int			key = bits ^ ((bits >> (sizeof(F) * 8 - 1)) & magnitude_mask);
		Int			finite = -static_cast<Int>(abs_bits < inf);
		Int			counts = finite & -static_cast<Int>(abs_bits != 0);
		Int			power_of_two = -static_cast<Int>((abs_bits & fraction_mask) == 0);

		/* |v| minus |v| with its lowest fraction bit cleared: exactly that bit's value */
		Int			cleared_bits = abs_bits & static_cast<Int>(static_cast<Uint>(abs_bits) - 1);
		F			whole;
		F			cleared;
		F			lowest;
		Int			unit_bits;

		memcpy(&whole, &abs_bits, sizeof(F));
		memcpy(&cleared, &cleared_bits, sizeof(F));
		lowest = whole - cleared;
		memcpy(&unit_bits, &lowest, sizeof(F));
		unit_bits = (unit_bits & ~power_of_two) | (abs_bits & power_of_two);
		unit_bits = (unit_bits & counts) | (greatest & ~counts);

		Int			low_key = (key & finite) | (greatest & ~finite);
		Int			high_key = (key & finite) | (sign & ~finite);
		Int			finite_abs = abs_bits & finite;

		key_min = key < key_min ? key : key_min;
		key_max = key > key_max ? key : key_max;
		finite_min = low_key < finite_min ? low_key : finite_min;
		finite_max = high_key > finite_max ? high_key : finite_max;
		magnitude = finite_abs > magnitude ? finite_abs : magnitude;
		unit = unit_bits < unit ? unit_bits : unit;
		nans |= -static_cast<Int>(abs_bits > inf);
		infs |= -static_cast<Int>(abs_bits == inf);
		neg_zeros |= -static_cast<Int>(bits == sign);
	}

	stats->key_min = key_min < stats->key_min ? key_min : stats->key_min;
	stats->key_max = key_max > stats->key_max ? key_max : stats->key_max;
	stats->finite_min = finite_min < stats->finite_min ? finite_min : stats->finite_min;
	stats->finite_max = finite_max > stats->finite_max ? finite_max : stats->finite_max;
	stats->magnitude = magnitude > stats->magnitude ? magnitude : stats->magnitude;
	stats->unit = unit < stats->unit ? unit : stats->unit;
	stats->nans |= nans;
	stats->infs |= infs;
	stats->neg_zeros |= neg_zeros;
}

GPUVM_LOOP static void
scan_f32(const float *values, uint32_t n, FloatStats *stats)
{
	scan_floats(values, n, stats);
}

GPUVM_LOOP static void
scan_f64(const double *values, uint32_t n, FloatStats *stats)
{
	scan_floats(values, n, stats);
}

template <typename T, typename W>
GPUVM_HD void
narrow(const T *from, uint32_t n, int64_t base, W *to)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = static_cast<W>(static_cast<W>(from[i]) - static_cast<W>(base));
}

#define GPUVM_NARROW(T, W) \
GPUVM_LOOP static void \
narrow_##T##_##W(const T *from, uint32_t n, int64_t base, W *to) \
{ \
	narrow(from, n, base, to); \
}

GPUVM_NARROW(int16_t, uint8_t)
GPUVM_NARROW(int32_t, uint8_t)
GPUVM_NARROW(int32_t, uint16_t)
GPUVM_NARROW(int64_t, uint8_t)
GPUVM_NARROW(int64_t, uint16_t)
GPUVM_NARROW(int64_t, uint32_t)
#undef GPUVM_NARROW

static uint64_t
round_up(uint64_t v, uint64_t a)
{
	return (v + a - 1) & ~(a - 1);
}

/*
 * Calls fn(first row, values, n) over the whole column; rows that are null
 * appear as `fill`. Runs without nulls are passed in place.
 */
template <typename T, typename Fn>
static void
for_each_run(const StagedColumn &column, uint32_t nrows, T fill, const Fn &fn)
{
	const T    *values = static_cast<const T *>(column.values);
	T			patched[WORD_ROWS];
	uint32_t	run = 0;		/* first row not yet passed */

	if (column.nulls)
	{
		for (uint32_t row = 0; row < nrows; row += WORD_ROWS)
		{
			uint64_t	word = column.nulls[row / WORD_ROWS];
			uint32_t	n = nrows - row < WORD_ROWS ? nrows - row : WORD_ROWS;

			if (word == 0)
				continue;
			if (row > run)
				fn(run, values + run, row - run);
			memcpy(patched, values + row, n * sizeof(T));
			for (; word; word &= word - 1)
				patched[__builtin_ctzll(word)] = fill;
			fn(row, static_cast<const T *>(patched), n);
			run = row + n;
		}
	}
	if (nrows > run)
		fn(run, values + run, nrows - run);
}

static uint32_t
count_nulls(const StagedColumn &column, uint32_t nrows)
{
	uint32_t	count = 0;

	if (!column.nulls)
		return 0;
	for (uint32_t i = 0; i < (nrows + WORD_ROWS - 1) / WORD_ROWS; i++)
		count += __builtin_popcountll(column.nulls[i]);
	return count;
}

static uint32_t
first_not_null(const StagedColumn &column, uint32_t nrows)
{
	uint32_t	row = 0;

	while (column.nulls && row < nrows && (column.nulls[row / WORD_ROWS] >> (row % WORD_ROWS) & 1))
		row++;
	return row;
}

template <typename T>
static void
plan_ints(const StagedColumn &column, uint32_t nrows, ColumnChunk *chunk,
		  void (*scan) (const T *, uint32_t, IntStats *))
{
	T			fill = static_cast<const T *>(column.values)[first_not_null(column, nrows)];
	IntStats	stats = {fill, fill};
	uint64_t	range;

	for_each_run<T>(column, nrows, fill, [&](uint32_t, const T *values, uint32_t n) { scan(values, n, &stats); });
	range = static_cast<uint64_t>(stats.max) - static_cast<uint64_t>(stats.min);

	chunk->min = stats.min;
	chunk->max = stats.max;
	chunk->width = range == 0 ? 0 : range <= 0xff ? 1 : range <= 0xffff ? 2 : range <= 0xffffffffu ? 4 : 8;
	if (chunk->width >= sizeof(T))
		chunk->width = sizeof(T);
	chunk->base = chunk->width == sizeof(T) ? 0 : stats.min;
}

/* Binary exponent of a positive finite float, given by its bits. */
template <typename F>
static int
exponent_of(int64_t bits)
{
	constexpr int mantissa = FloatBits<F>::mantissa;
	constexpr int bias = sizeof(F) == 4 ? 127 : 1023;
	int			biased = static_cast<int>(bits >> mantissa);

	if (biased > 0)
		return biased - bias;
	return 1 - bias - mantissa + (63 - __builtin_clzll(bits));	/* denormal */
}

/* The bits of the double that an order key stands for. */
template <typename F>
static int64_t
key_to_double_bits(int64_t key)
{
	using Int = typename FloatBits<F>::Int;
	constexpr Int magnitude_mask = static_cast<Int>(~(typename FloatBits<F>::Uint(1) << (sizeof(F) * 8 - 1)));
	Int			bits = static_cast<Int>(key);
	F			value;
	double		wide;
	int64_t		result;

	if (bits < 0)
		bits ^= magnitude_mask;
	memcpy(&value, &bits, sizeof(F));
	wide = value;
	memcpy(&result, &wide, sizeof(result));
	return result;
}

static const double no_min = __builtin_inf();
static const double no_max = -__builtin_inf();

static void
no_floats(ColumnChunk *chunk)
{
	memcpy(&chunk->min, &no_min, sizeof(double));
	memcpy(&chunk->max, &no_max, sizeof(double));
	chunk->exp_hi = INT16_MIN;
	chunk->exp_lo = INT16_MAX;
}

template <typename F>
static void
plan_floats(const StagedColumn &column, uint32_t nrows, ColumnChunk *chunk,
			void (*scan) (const F *, uint32_t, FloatStats *))
{
	const F    *values = static_cast<const F *>(column.values);
	uint32_t	first = first_not_null(column, nrows);
	FloatStats	stats = {};
	typename FloatBits<F>::Int bits;

	stats.key_min = stats.finite_min = stats.unit = INT64_MAX;
	stats.key_max = stats.finite_max = INT64_MIN;
	for_each_run<F>(column, nrows, values[first], [&](uint32_t, const F *run, uint32_t n) { scan(run, n, &stats); });

	chunk->width = sizeof(F);
	if (stats.key_min == stats.key_max)
	{
		memcpy(&bits, &values[first], sizeof(F));
		chunk->width = 0;
		chunk->base = static_cast<int64_t>(static_cast<typename FloatBits<F>::Uint>(bits));
	}
	if (stats.nans)
		chunk->flags |= CHUNK_HAS_NAN;
	if (stats.infs)
		chunk->flags |= CHUNK_HAS_INF;
	if (stats.neg_zeros)
		chunk->flags |= CHUNK_HAS_NEG_ZERO;

	no_floats(chunk);
	if (stats.finite_min <= stats.finite_max)
	{
		chunk->min = key_to_double_bits<F>(stats.finite_min);
		chunk->max = key_to_double_bits<F>(stats.finite_max);
	}
	if (stats.magnitude != 0)
	{
		chunk->exp_hi = static_cast<int16_t>(exponent_of<F>(stats.magnitude) + 1);
		chunk->exp_lo = static_cast<int16_t>(exponent_of<F>(stats.unit));
	}
}

/* Of the images' places, which plan_tablet moves to where the images will be. */
static void
plan_references(const StagedColumn &column, ColumnChunk *chunk)
{
	chunk->max = static_cast<int64_t>(column.nimages) - 1;
	chunk->width = chunk->max == 0 ? 0 : chunk->max <= 0xff ? 1 : chunk->max <= 0xffff ? 2 : 4;
}

static void
plan_chunk(const StagedColumn &column, uint32_t nrows, ColumnChunk *chunk)
{
	memset(chunk, 0, sizeof(*chunk));
	chunk->type = column.type;
	chunk->encoding = column.encoding;
	chunk->attnum = column.attnum;
	chunk->null_count = count_nulls(column, nrows);
	if (chunk->null_count > 0)
		chunk->flags |= CHUNK_HAS_NULLS;
	if (chunk->null_count == nrows)
	{
		chunk->flags |= CHUNK_ALL_NULL;
		if (type_is_float(column.type))
			no_floats(chunk);
		return;
	}
	if (column.encoding == Encoding::Variable)
	{
		plan_references(column, chunk);
		return;
	}

	switch (column.type)
	{
		case Type::Bool:
			plan_ints<uint8_t>(column, nrows, chunk, scan_u8);
			break;
		case Type::I16:
			plan_ints<int16_t>(column, nrows, chunk, scan_i16);
			break;
		case Type::I32:
			plan_ints<int32_t>(column, nrows, chunk, scan_i32);
			break;
		case Type::I64:
			plan_ints<int64_t>(column, nrows, chunk, scan_i64);
			break;
		case Type::F32:
			plan_floats<float>(column, nrows, chunk, scan_f32);
			break;
		case Type::F64:
			plan_floats<double>(column, nrows, chunk, scan_f64);
			break;
		default:
			__builtin_unreachable();	/* not a stored type */
	}
}

static bool
has_images(const ColumnChunk &chunk)
{
	return chunk.encoding == Encoding::Variable && !(chunk.flags & CHUNK_ALL_NULL);
}

static void
shift_references(ColumnChunk *chunk, uint64_t by)
{
	chunk->base = static_cast<int64_t>(static_cast<uint64_t>(chunk->base) + by);
	chunk->min = static_cast<int64_t>(static_cast<uint64_t>(chunk->min) + by);
	chunk->max = static_cast<int64_t>(static_cast<uint64_t>(chunk->max) + by);
}

void
place_tablet(TabletHeader *tablet, uint64_t offset)
{
	for (uint32_t i = 0; i < tablet->ncols; i++)
		if (has_images(tablet_chunks(tablet)[i]))
			shift_references(&tablet_chunks(tablet)[i], offset - tablet->place);
	tablet->place = offset;
}

uint64_t
plan_tablet(const StagedTablet &staged, TabletHeader *header, ColumnChunk *chunks)
{
	uint64_t	at;

	memset(header, 0, sizeof(*header));
	header->magic = TABLET_MAGIC;
	header->version = TABLET_VERSION;
	header->ncols = static_cast<uint16_t>(staged.ncols);
	header->nrows = staged.nrows;
	header->padded_rows = static_cast<uint32_t>(round_up(staged.nrows, TABLET_PAD_ROWS));
	header->first_block = staged.first_block;
	header->nblocks = staged.nblocks;
	header->nlps = staged.nlps;

	at = sizeof(TabletHeader) + uint64_t{staged.ncols} * sizeof(ColumnChunk);
	header->block_lsns = at;
	at += uint64_t{staged.nblocks} * sizeof(uint64_t);
	header->block_rows = at;
	at += (uint64_t{staged.nblocks} + 1) * sizeof(uint32_t);
	header->block_lps = at;
	at += uint64_t{staged.nblocks} * sizeof(uint32_t);
	header->lps = at;
	at += uint64_t{staged.nlps} * sizeof(uint16_t);
	header->checksums = round_up(at, sizeof(uint32_t));
	at = round_up(tablet_keys_end(header), TABLET_ALIGN);

	for (uint32_t i = 0; i < staged.ncols; i++)
	{
		ColumnChunk *chunk = &chunks[i];

		plan_chunk(staged.columns[i], staged.nrows, chunk);
		if (chunk->flags & CHUNK_HAS_NULLS)
		{
			chunk->nulls = at;
			at += header->padded_rows / 8;
		}
		if (chunk->width > 0)
		{
			chunk->data = at;
			chunk->data_bytes = uint64_t{header->padded_rows} * chunk->width;
			at += chunk->data_bytes;
		}
	}
	for (uint32_t i = 0; i < staged.ncols; i++)
	{
		ColumnChunk *chunk = &chunks[i];

		if (!has_images(*chunk))
			continue;
		if (header->var == 0)
			header->var = at;
		shift_references(chunk, at);
		at = round_up(at + variable_bytes(*chunk) + VARIABLE_SLACK, TABLET_ALIGN);
		header->var_bytes = at - header->var;
	}
	header->size = at;
	return at;
}

/* The array in the type's own width. A null row gets `fill`. */
template <typename T>
static void
write_plain(const StagedColumn &column, uint32_t nrows, T fill, char *to)
{
	T		   *out = reinterpret_cast<T *>(to);

	for_each_run<T>(column, nrows, fill, [&](uint32_t row, const T *values, uint32_t n)
	{
		memcpy(out + row, values, n * sizeof(T));
	});
}

template <typename T, typename W>
static void
write_codes(const StagedColumn &column, uint32_t nrows, int64_t base, char *to,
			void (*loop) (const T *, uint32_t, int64_t, W *))
{
	W		   *out = reinterpret_cast<W *>(to);

	for_each_run<T>(column, nrows, static_cast<T>(base), [&](uint32_t row, const T *values, uint32_t n)
	{
		loop(values, n, base, out + row);
	});
}

static void
write_chunk(const StagedColumn &column, uint32_t nrows, const ColumnChunk &chunk, char *to)
{
	if (chunk.width == type_natural_width(column.type))
	{
		/* min, not 0, stands under a null: it must lie within [min, max] */
		switch (column.type)
		{
			case Type::Bool:
				write_plain<uint8_t>(column, nrows, static_cast<uint8_t>(chunk.min), to);
				break;
			case Type::I16:
				write_plain<int16_t>(column, nrows, static_cast<int16_t>(chunk.min), to);
				break;
			case Type::I32:
				write_plain<int32_t>(column, nrows, static_cast<int32_t>(chunk.min), to);
				break;
			case Type::I64:
				write_plain<int64_t>(column, nrows, chunk.min, to);
				break;
			case Type::F32:
				write_plain<uint32_t>(column, nrows, 0, to);
				break;
			default:
				write_plain<uint64_t>(column, nrows, 0, to);
				break;
		}
	}
	else if (column.type == Type::I16)
		write_codes(column, nrows, chunk.base, to, narrow_int16_t_uint8_t);
	else if (column.type == Type::I32 && chunk.width == 1)
		write_codes(column, nrows, chunk.base, to, narrow_int32_t_uint8_t);
	else if (column.type == Type::I32)
		write_codes(column, nrows, chunk.base, to, narrow_int32_t_uint16_t);
	else
	{
		/* references are staged as what becomes their code */
		int64_t		base = column.encoding == Encoding::Variable ? 0 : chunk.base;

		if (chunk.width == 1)
			write_codes(column, nrows, base, to, narrow_int64_t_uint8_t);
		else if (chunk.width == 2)
			write_codes(column, nrows, base, to, narrow_int64_t_uint16_t);
		else
			write_codes(column, nrows, base, to, narrow_int64_t_uint32_t);
	}

	memset(to + uint64_t{nrows} * chunk.width, 0, chunk.data_bytes - uint64_t{nrows} * chunk.width);
}

void
write_tablet(const StagedTablet &staged, const TabletHeader &header, const ColumnChunk *chunks, uint64_t serial, char *to,
			 void (*written) (TabletHeader *tablet, uint32_t column))
{
	uint64_t	end;

	memcpy(to, &header, sizeof(header));
	reinterpret_cast<TabletHeader *>(to)->serial = serial;
	memcpy(to + sizeof(header), chunks, uint64_t{staged.ncols} * sizeof(ColumnChunk));
	memcpy(to + header.block_lsns, staged.block_lsns, uint64_t{staged.nblocks} * sizeof(uint64_t));
	memcpy(to + header.block_rows, staged.block_rows, (uint64_t{staged.nblocks} + 1) * sizeof(uint32_t));
	memcpy(to + header.block_lps, staged.block_lps, uint64_t{staged.nblocks} * sizeof(uint32_t));
	if (staged.nlps > 0)
		memcpy(to + header.lps, staged.lps, uint64_t{staged.nlps} * sizeof(uint16_t));
	end = header.lps + uint64_t{staged.nlps} * sizeof(uint16_t);
	memset(to + end, 0, round_up(tablet_keys_end(&header), TABLET_ALIGN) - end);

	for (uint32_t i = 0; i < staged.ncols; i++)
	{
		const ColumnChunk &chunk = chunks[i];

		if (chunk.flags & CHUNK_HAS_NULLS)
		{
			uint64_t	bytes = (staged.nrows + WORD_ROWS - 1) / WORD_ROWS * sizeof(uint64_t);

			memcpy(to + chunk.nulls, staged.columns[i].nulls, bytes);
			memset(to + chunk.nulls + bytes, 0, header.padded_rows / 8 - bytes);
		}
		if (chunk.width > 0)
			write_chunk(staged.columns[i], staged.nrows, chunk, to + chunk.data);
		if (has_images(chunk))
		{
			uint64_t	bytes = variable_bytes(chunk);

			memcpy(to + chunk.base, staged.columns[i].images, bytes);
			memset(to + chunk.base + bytes, 0, round_up(bytes + VARIABLE_SLACK, TABLET_ALIGN) - bytes);
		}
		if (written != nullptr)
			written(reinterpret_cast<TabletHeader *>(to), i);
	}
}

static double
as_double(int64_t bits)
{
	double		value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void
summarize_references(ColumnSummary *summary)
{
	summary->flags |= COLUMN_VARIABLE;
	summary->min = 0;
	summary->max = VARIABLE_MAX_REFERENCE;
}

void
summarize_chunk(ColumnSummary *summary, const ColumnChunk &chunk, bool first)
{
	constexpr uint16_t any = CHUNK_HAS_NULLS | CHUNK_HAS_NAN | CHUNK_HAS_INF | CHUNK_HAS_NEG_ZERO | COLUMN_LEFT_OUT | COLUMN_VARIABLE | COLUMN_WIDE;

	/* scale and dictionary are the table's, not the tablets' */
	if (first)
	{
		summary->type = chunk.type;
		summary->attnum = chunk.attnum;
		summary->max_width = chunk.width;
		summary->flags = chunk.flags;
		summary->exp_hi = chunk.exp_hi;
		summary->exp_lo = chunk.exp_lo;
		summary->min = chunk.min;
		summary->max = chunk.max;
		summary->null_count = chunk.null_count;
		if (chunk.encoding == Encoding::Variable)
			summarize_references(summary);
		return;
	}

	if (chunk.width > summary->max_width)
		summary->max_width = chunk.width;
	summary->flags = ((summary->flags | chunk.flags) & any) | (summary->flags & chunk.flags & CHUNK_ALL_NULL);
	if (chunk.exp_hi > summary->exp_hi)
		summary->exp_hi = chunk.exp_hi;
	if (chunk.exp_lo < summary->exp_lo)
		summary->exp_lo = chunk.exp_lo;
	summary->null_count += chunk.null_count;
	if (chunk.encoding == Encoding::Variable)
	{
		summarize_references(summary);
		return;
	}

	/* an all-null chunk of integers counts with the 0 that lies under its nulls */
	if (type_is_float(chunk.type)
		? as_double(chunk.min) < as_double(summary->min)
		: chunk.min < summary->min)
		summary->min = chunk.min;
	if (type_is_float(chunk.type)
		? as_double(chunk.max) > as_double(summary->max)
		: chunk.max > summary->max)
		summary->max = chunk.max;
}

/* Are [offset, offset + bytes) within the tablet, behind its meta area, and aligned? */
static bool
inside(const TabletHeader &header, uint64_t offset, uint64_t bytes, uint64_t align)
{
	uint64_t	meta = sizeof(TabletHeader) + uint64_t{header.ncols} * sizeof(ColumnChunk);

	return offset >= meta && offset % align == 0 && offset <= header.size && bytes <= header.size - offset;
}

/* Do the images lie in the variable area, with the bytes that may be read behind them? */
static const char *
check_images(const TabletHeader &header, const ColumnChunk &chunk)
{
	uint64_t	at = static_cast<uint64_t>(chunk.base) - header.place;
	uint64_t	bytes = variable_bytes(chunk);

	if (chunk.type != Type::I64 || chunk.width > 4)
		return "a variable-length column is not of references";
	if (!has_images(chunk))
		return chunk.min == 0 && chunk.max == 0 && chunk.width == 0 ? nullptr : "a variable-length column of nulls has images";
	if (bytes > VARIABLE_MAX_BYTES || header.var == 0 || at < header.var || at - header.var > header.var_bytes ||
		bytes + VARIABLE_SLACK > header.var_bytes - (at - header.var) || at % TABLET_ALIGN != 0)
		return "a column's images are outside the tablet's variable area";
	return nullptr;
}

static const char *
check_chunk(const TabletHeader &header, const ColumnChunk &chunk)
{
	bool		is_float = type_is_float(chunk.type);
	uint64_t	natural;
	uint64_t	range = static_cast<uint64_t>(chunk.max) - static_cast<uint64_t>(chunk.min);

	if (chunk.type != Type::Bool && !type_is_int(chunk.type) && !is_float)
		return "a column has a type that tablets do not store";
	if (chunk.encoding != Encoding::Fixed && chunk.encoding != Encoding::Variable)
		return "a column has an unknown encoding";
	natural = type_natural_width(chunk.type);

	if (chunk.null_count > header.nrows ||
		((chunk.flags & CHUNK_HAS_NULLS) != 0) != (chunk.null_count > 0) ||
		((chunk.flags & CHUNK_ALL_NULL) != 0) != (chunk.null_count == header.nrows))
		return "a column's null count does not match its flags";
	if (chunk.flags & CHUNK_HAS_NULLS
		? !inside(header, chunk.nulls, header.padded_rows / 8, TABLET_ALIGN)
		: chunk.nulls != 0)
		return "a column's null bitmap is outside the tablet";

	if (chunk.width != 0 && chunk.width != natural &&
		(is_float || chunk.width > natural || (chunk.width & (chunk.width - 1)) != 0))
		return "a column has an impossible width";
	if (chunk.data_bytes != uint64_t{header.padded_rows} * chunk.width)
		return "a column's data has the wrong size";
	if (chunk.width == 0
		? chunk.data != 0
		: !inside(header, chunk.data, chunk.data_bytes, TABLET_ALIGN))
		return "a column's data is outside the tablet";

	if (!is_float)
	{
		int64_t		lowest = chunk.type == Type::Bool ? 0 : -1 - static_cast<int64_t>(~0ull >> (65 - natural * 8));
		int64_t		highest = chunk.type == Type::Bool ? 1 : -1 - lowest;

		if (chunk.min > chunk.max || chunk.min < lowest || chunk.max > highest)
			return "a column's minimum and maximum are impossible";
		if (chunk.base != (chunk.width == natural ? 0 : chunk.min))
			return "a column has the wrong base";
		if (chunk.width < natural && range > (chunk.width == 0 ? 0 : ~0ull >> (64 - chunk.width * 8)))
			return "a column's range does not fit its width";
	}
	return chunk.encoding == Encoding::Variable ? check_images(header, chunk) : nullptr;
}

const char *
check_tablet(const TabletHeader *tablet, uint64_t available, uint64_t place)
{
	TabletHeader header;
	const uint32_t *block_rows;
	const uint32_t *block_lps;

	if (available < sizeof(TabletHeader))
		return "the tablet is shorter than its header";
	memcpy(&header, tablet, sizeof(header));
	if (header.magic != TABLET_MAGIC)
		return "the tablet has no magic number";
	if (header.version != TABLET_VERSION)
		return "the tablet has an unknown version";
	if (header.size > available)
		return "the tablet is longer than its memory";
	if (header.ncols > VERSION_MAX_COLS ||
		sizeof(TabletHeader) + uint64_t{header.ncols} * sizeof(ColumnChunk) > header.size)
		return "the tablet has too many columns";
	if (header.nrows == 0 || header.nrows > TABLET_MAX_ROWS ||
		header.padded_rows != round_up(header.nrows, TABLET_PAD_ROWS))
		return "the tablet has an impossible number of rows";
	/* a delta's tablet has no keys: the backend knows where its rows are */
	if ((header.nblocks == 0 && header.serial != 0) || header.first_block + uint64_t{header.nblocks} > 0xffffffffu)
		return "the tablet has an impossible number of blocks";
	if (!inside(header, header.block_rows, (uint64_t{header.nblocks} + 1) * sizeof(uint32_t), sizeof(uint32_t)) ||
		!inside(header, header.block_lsns, uint64_t{header.nblocks} * sizeof(uint64_t), sizeof(uint64_t)) ||
		!inside(header, header.block_lps, uint64_t{header.nblocks} * sizeof(uint32_t), sizeof(uint32_t)) ||
		!inside(header, header.lps, uint64_t{header.nlps} * sizeof(uint16_t), sizeof(uint16_t)) ||
		!inside(header, header.checksums, uint64_t{header.ncols} * sizeof(uint32_t), sizeof(uint32_t)))
		return "the tablet's keys are outside it";
	if (header.var != 0
		? !inside(header, header.var, header.var_bytes, TABLET_ALIGN) || header.place != place
		: header.var_bytes != 0)
		return "the tablet's variable area is outside it, or elsewhere";

	block_rows = tablet_at<uint32_t>(tablet, header.block_rows);
	block_lps = tablet_at<uint32_t>(tablet, header.block_lps);
	if ((header.nblocks > 0 && block_rows[0] != 0) || block_rows[header.nblocks] != header.nrows)
		return "the tablet's block map does not cover its rows";
	for (uint32_t i = 0; i < header.nblocks; i++)
	{
		uint32_t	n = block_rows[i + 1] - block_rows[i];

		if (block_rows[i + 1] < block_rows[i])
			return "the tablet's block map is not ascending";
		if (block_lps[i] != LPS_DENSE && (block_lps[i] > header.nlps || n > header.nlps - block_lps[i]))
			return "the tablet's line pointers are outside their array";
	}

	for (uint32_t i = 0; i < header.ncols; i++)
	{
		const char *wrong = check_chunk(header, tablet_chunks(tablet)[i]);

		if (wrong)
			return wrong;
	}
	return nullptr;
}

}  // namespace gpuvm
