/*
 * cpu_aggregate.cc: init, step, merge and final of the aggregates.
 *
 * A group's state is a few bytes in its row; all bytes zero is the empty
 * state, so fresh memory needs no initialisation. Merging is associative and
 * commutative: counts and exact integers are added, extremes are compared,
 * flags are OR-ed.
 *
 * Min and Max keep an unsigned key of which the greatest wins (Min: the
 * complement), so that zero loses against all.
 */
#include <algorithm>
#include <cstring>

#include "tablet/wide_halves.h"
#include "vm/cpu_job.h"

namespace gpuvm {

namespace {

constexpr uint64_t SIGN = uint64_t(1) << 63;

int64_t &
int64_at(char *p)
{
	return *reinterpret_cast<int64_t *>(p);
}

int128 &
int128_at(char *p)
{
	return *reinterpret_cast<int128 *>(p);
}

uint64_t
extreme_key(int64_t ordered, bool max)
{
	const uint64_t u = static_cast<uint64_t>(ordered) ^ SIGN;

	return max ? u : ~u;
}

int64_t
ordered_of(uint64_t key, bool max)
{
	return static_cast<int64_t>((max ? key : ~key) ^ SIGN);
}

/* Of a number of halves: of both signs' keys none is 0. */
uint128
wide_key(int64_t high, int64_t low, bool max)
{
	const uint128 u = static_cast<uint128>(wide_value(high, low)) ^ uint128{1} << 127;

	return max ? u : ~u;
}

FloatSumInfo *
sum_info(const AggInfo &agg, char *state)
{
	return reinterpret_cast<FloatSumInfo *>(state + (agg.kind == AggKind::SumFixed ? 16 : 0));
}

int64_t *
sum_limbs(char *state)
{
	return reinterpret_cast<int64_t *>(state + sizeof(FloatSumInfo));
}

/* Which zeroes are among the lanes of the mask? Keys are ordered: -1 is -0. */
template <typename I>
uint8_t
zeroes_in(const I *keys, const uint64_t *mask)
{
	uint8_t		seen = 0;

	for (int w = 0; w < CPU_WORDS; w++)
		for (uint64_t m = mask[w]; m != 0; m &= m - 1)
		{
			const I		k = keys[64 * w + __builtin_ctzll(m)];

			seen |= (k == 0 ? EXTREME_POS_ZERO : 0) | (k == -1 ? EXTREME_NEG_ZERO : 0);
		}
	return seen;
}

/* Runs f(lane) over the selected lanes. */
template <typename F>
inline void
each(const uint16_t *lanes, uint32_t n, F f)
{
	if (n == CPU_VECTOR_ROWS)
		for (uint32_t i = 0; i < CPU_VECTOR_ROWS; i++)
			f(i);
	else
		for (uint32_t j = 0; j < n; j++)
			f(lanes[j]);
}

}  // namespace

/* The lanes that the aggregate takes; false when there are none. */
bool
CpuProgram::agg_mask(WorkerState &s, const AggInfo &agg, uint64_t *mask) const
{
	const uint64_t *nulls = agg.arg >= 0 ? s.regs[agg.arg].nulls : nullptr;
	const uint64_t *low_nulls = agg.low >= 0 ? s.regs[agg.low].nulls : nullptr;
	const uint64_t *filter = agg.filter >= 0 ? bits_of(s, agg.filter) : nullptr;
	const uint64_t *filter_nulls = agg.filter >= 0 ? s.regs[agg.filter].nulls : nullptr;
	uint64_t	some = 0;

	for (int w = 0; w < CPU_WORDS; w++)
	{
		uint64_t	m = s.live[w];

		if (nulls)
			m &= ~nulls[w];
		if (low_nulls)
			m &= ~low_nulls[w];
		if (filter)
			m &= filter[w] & ~(filter_nulls ? filter_nulls[w] : 0);
		mask[w] = m;
		some |= m;
	}
	return some != 0;
}

/*
 * Exact sum of the masked lanes: each level takes the parts that are multiples
 * of a grid 51 bits below the greatest magnitude, as integers. Two levels leave
 * nothing of most data; what three leave is added lane by lane.
 */
void
CpuProgram::sum_floats(WorkerState &s, const AggInfo &agg, const uint64_t *mask, char *state) const
{
	FloatSumInfo *info = sum_info(agg, state);
	int64_t    *limbs = sum_limbs(state);
	double	   *x = reinterpret_cast<double *>(s.scratch[0]);
	const void *values = values_of(s, agg.arg);
	const uint64_t greatest = kernels->sum_prepare(agg.type, values, mask, x);
	const int	biased = static_cast<int>(greatest >> 52);
	bool		plain = biased < 2040;

	/* all zeroes: their signs matter while nothing else was seen */
	if (plain && greatest == 0)
		plain = info->flags & FLOAT_SUM_NOT_NEG_ZERO;
	if (!plain)
	{
		for (int w = 0; w < CPU_WORDS; w++)
			for (uint64_t m = mask[w]; m != 0; m &= m - 1)
				float_sum_add(info, limbs, agg.window, x[64 * w + __builtin_ctzll(m)]);
		return;
	}
	info->n += kernels->count(mask);
	info->flags |= FLOAT_SUM_SEEN | FLOAT_SUM_NOT_NEG_ZERO;
	info->max_exp = std::max(info->max_exp, float_sum_exp(bits_double(greatest)));

	uint64_t	rest = greatest;

	for (int level = 0, e = std::max(biased - 1022, -900); level < 3 && rest != 0; level++, e -= 52)
	{
		const int64_t sum = kernels->sum_level(x, 3 * bits_double(static_cast<uint64_t>(e + 1023) << 52), &rest);

		float_sum_add_int(limbs, agg.window, sum, e - 51);
		float_sum_count_adds(info, limbs, agg.window, 1);
	}
	for (uint32_t i = 0; rest != 0 && i < CPU_VECTOR_ROWS; i++)
		if (x[i] != 0)
		{
			int			exponent;
			const int64_t m = float_sum_split(x[i], &exponent);

			float_sum_add_int(limbs, agg.window, m, exponent);
			float_sum_count_adds(info, limbs, agg.window, 1);
		}
}

/* Lanes that stand for several rows: counts, sums, parities; extremes and flags do not ask how many (false). */
bool
CpuProgram::step_weighted(WorkerState &s, const AggInfo &agg, const uint64_t *mask, bool grouped) const
{
	const uint32_t *weights = s.weights;
	char	   *const whole = grouped ? nullptr : s.table.as<char>() + agg.offset;
	const bool	count = agg.kind == AggKind::Count;
	const bool	wide = agg.kind == AggKind::SumInt128;
	const bool	parity = agg.fn == AggFn::BitXor;
	const void *v = nullptr;

	if (!count && !wide && !parity && agg.kind != AggKind::SumInt64)
		return false;
	if (!count)
		v = values_of(s, agg.arg);
	for (int w = 0; w < CPU_WORDS; w++)
		for (uint64_t m = mask[w]; m != 0; m &= m - 1)
		{
			const uint32_t i = 64 * w + static_cast<uint32_t>(__builtin_ctzll(m));
			const int64_t weight = weights[i];
			char	   *state = grouped ? s.group_row[i] + agg.offset : whole;

			if (count)
			{
				int64_at(state) += weight;
				continue;
			}

			const int64_t value = agg.type == Type::I64 ? static_cast<const int64_t *>(v)[i] : static_cast<const int32_t *>(v)[i];

			if (parity)
			{
				int64_at(state) ^= weight & 1 ? value : 0;
				state[8] = 1;
				continue;
			}

			const int128 sum = static_cast<int128>(value) * weight;

			if (wide)
				int128_at(state) += sum;
			else
				int64_at(state) += static_cast<int64_t>(sum);
			if (!grouped || agg.tracked)
				int64_at(state + (wide ? 16 : 8)) += weight;
		}
	return true;
}

/* Of references that lead to values; 0 is none. Equal values have equal bytes, so it does not matter which stays. */
static void
take_text(const AggInfo &agg, uint64_t reference, uint64_t *best)
{
	if (reference == 0 || reference == *best)
		return;

	const int	cmp = *best == 0 ? 0 : agg.order->compare(reference, *best);

	if (*best == 0 || (agg.fn == AggFn::MinText ? cmp < 0 : cmp > 0))
		*best = reference;
}

void
CpuProgram::step_texts(WorkerState &s, const AggInfo &agg, const uint64_t *mask, bool grouped) const
{
	constexpr uint32_t AHEAD = 16;
	const int64_t *references = static_cast<const int64_t *>(values_of(s, agg.arg));
	const uint32_t n = kernels->select(mask, s.rows);
	uint64_t   *const whole = reinterpret_cast<uint64_t *>(s.table.as<char>() + agg.offset);
	TextValue	value;

	for (uint32_t j = 0; j < n; j++)
	{
		const uint32_t i = s.rows[j];
		const uint64_t reference = static_cast<uint64_t>(references[i]);

		if (j + AHEAD < n)
			agg.order->prefetch(static_cast<uint64_t>(references[s.rows[j + AHEAD]]));
		if (agg.order->value(reference, &value))
			take_text(agg, reference, grouped ? reinterpret_cast<uint64_t *>(s.group_row[i] + agg.offset) : whole);
		else
			s.errors |= ERR_INT_OVERFLOW;	/* as TextKey has it */
	}
}

/* AggStep without Group: the vector's lanes into the one row. */
void
CpuProgram::step_whole(WorkerState &s, const AggInfo &agg) const
{
	uint64_t	mask[CPU_WORDS];
	char	   *state = s.table.as<char>() + agg.offset;

	if (!agg_mask(s, agg, mask) || (s.weights && step_weighted(s, agg, mask, false)))
		return;
	switch (agg.kind)
	{
		case AggKind::Count:
			int64_at(state) += kernels->count(mask);
			break;
		case AggKind::SumInt64:
		case AggKind::SumInt128:
			{
				const RegInfo &info = regs[agg.arg];
				BoundColumn *column = info.kind == RegKind::Column ? &s.columns[info.column] : nullptr;
				const int64_t n = kernels->count(mask);
				int128		sum;

				if (column && column->width < type_natural_width(info.type))
				{
					/* on the codes */
					column->touched = true;
					sum = static_cast<int128>(column->base) * n;
					if (column->width > 0)
						sum += kernels->sum_codes(column->width, column->data + static_cast<size_t>(s.row0) * column->width, mask);
				}
				else if (agg.type == Type::I64)
					sum = kernels->sum_int64(static_cast<const int64_t *>(values_of(s, agg.arg)), mask);
				else
					sum = kernels->sum_int32(static_cast<const int32_t *>(values_of(s, agg.arg)), mask);
				if (agg.kind == AggKind::SumInt64)
				{
					int64_at(state) += static_cast<int64_t>(sum);
					int64_at(state + 8) += n;
				}
				else
				{
					int128_at(state) += sum;
					int64_at(state + 16) += n;
				}
				break;
			}
		case AggKind::ExtremeWide:
			{
				const int64_t *high = static_cast<const int64_t *>(values_of(s, agg.arg));
				const int64_t *low = static_cast<const int64_t *>(values_of(s, agg.low));
				const bool	max = agg.fn == AggFn::MaxWide;
				uint128		best = *reinterpret_cast<uint128 *>(state);

				for (int w = 0; w < CPU_WORDS; w++)
					for (uint64_t m = mask[w]; m != 0; m &= m - 1)
					{
						const int	i = 64 * w + __builtin_ctzll(m);

						best = std::max(best, wide_key(high[i], low[i], max));
					}
				*reinterpret_cast<uint128 *>(state) = best;
				break;
			}
		case AggKind::ExtremeText:
			step_texts(s, agg, mask, false);
			break;
		case AggKind::Extreme:
			{
				const bool	max = agg.fn == AggFn::Max;
				const int	width = type_width(agg.type);
				const RegInfo &info = regs[agg.arg];
				uint64_t   *best = reinterpret_cast<uint64_t *>(state);
				uint8_t    *flags = reinterpret_cast<uint8_t *>(state + 8);

				/* The tablet's own extreme cannot change the result: do not look. */
				if (info.kind == RegKind::Column && type_is_int(agg.type) && (*flags & EXTREME_SEEN))
				{
					const ColumnChunk &chunk = *s.columns[info.column].chunk;

					if (extreme_key(max ? chunk.max : chunk.min, max) <= *best)
						break;
				}

				const void *v = values_of(s, agg.arg);
				const bool	all = kernels->count(mask) == CPU_VECTOR_ROWS;

				if (type_is_float(agg.type))
				{
					kernels->float_keys(agg.type, v, s.scratch[0]);
					v = s.scratch[0];
				}
				if (!all)
				{
					/* the losing value on all other lanes */
					if (width == 4)
						std::fill_n(reinterpret_cast<int32_t *>(s.scratch[1]), CPU_VECTOR_ROWS, max ? INT32_MIN : INT32_MAX);
					else
						std::fill_n(reinterpret_cast<int64_t *>(s.scratch[1]), CPU_VECTOR_ROWS, max ? INT64_MIN : INT64_MAX);
					kernels->blend(width, mask, v, s.scratch[1], s.scratch[2]);
				}

				const int64_t extreme = kernels->extreme(width, max, all ? v : s.scratch[2]);

				*best = std::max(*best, extreme_key(extreme, max));
				*flags |= EXTREME_SEEN;
				/* Zeroes count only where one could be the result. */
				if (type_is_float(agg.type) && (max ? extreme <= 0 : extreme >= -1))
					*flags |= width == 4 ? zeroes_in(static_cast<const int32_t *>(v), mask) : zeroes_in(static_cast<const int64_t *>(v), mask);
				break;
			}
		case AggKind::Bools:
			{
				const uint64_t *v = bits_of(s, agg.arg);

				for (int w = 0; w < CPU_WORDS; w++)
					*state |= ((v[w] & mask[w]) ? BOOL_SEEN_TRUE : 0) | ((~v[w] & mask[w]) ? BOOL_SEEN_FALSE : 0);
				break;
			}
		case AggKind::Bits:
			{
				const bool	wide = type_width(agg.type) == 8;
				const void *v = values_of(s, agg.arg);
				const int64_t flip = agg.fn == AggFn::BitAnd ? -1 : 0;
				int64_t		some = 0, odd = 0;

				for (uint32_t i = 0; i < CPU_VECTOR_ROWS; i++)
				{
					const int64_t taken = -static_cast<int64_t>(mask[i / 64] >> (i % 64) & 1);
					const int64_t x = wide ? static_cast<const int64_t *>(v)[i] : static_cast<const int32_t *>(v)[i];

					some |= (x ^ flip) & taken;
					odd ^= x & taken;
				}
				if (agg.fn == AggFn::BitXor)
					int64_at(state) ^= odd;
				else
					int64_at(state) |= some;
				state[8] = 1;
				break;
			}
		default:
			sum_floats(s, agg, mask, state);
			break;
	}
}

/* AggStep after Group: each lane into its group's row. */
void
CpuProgram::step_grouped(WorkerState &s, const AggInfo &agg) const
{
	uint64_t	mask[CPU_WORDS];

	if (s.naside > 0)
		note_values(s, agg);
	if (!agg_mask(s, agg, mask) || (s.weights && step_weighted(s, agg, mask, true)))
		return;
	if (s.naside > 0)
	{
		uint64_t	aside[CPU_WORDS], some = 0;

		for (int w = 0; w < CPU_WORDS; w++)
		{
			aside[w] = mask[w] & s.aside[w];
			mask[w] &= ~s.aside[w];
			some |= mask[w];
		}
		note_present(s, agg, aside);
		if (some == 0)
			return;
	}
	step_lanes(s, agg, mask);
}

/* The masked lanes, which all count. */
void
CpuProgram::step_lanes(WorkerState &s, const AggInfo &agg, const uint64_t *mask) const
{
	const int	offset = agg.offset;
	char	  **row = s.group_row;
	const uint32_t all = kernels->count(mask);
	const uint32_t n = all == CPU_VECTOR_ROWS ? all : kernels->select(mask, s.rows);
	const uint16_t *lanes = s.rows;

	switch (agg.kind)
	{
		case AggKind::Count:
			each(lanes, n, [=](uint32_t i) { int64_at(row[i] + offset)++; });
			break;
		case AggKind::SumInt64:
			{
				const void *v = values_of(s, agg.arg);

				if (agg.type == Type::I64)
					each(lanes, n, [=](uint32_t i) { int64_at(row[i] + offset) += static_cast<const int64_t *>(v)[i]; });
				else
					each(lanes, n, [=](uint32_t i) { int64_at(row[i] + offset) += static_cast<const int32_t *>(v)[i]; });
				if (agg.tracked)
					each(lanes, n, [=](uint32_t i) { int64_at(row[i] + offset + 8)++; });
				break;
			}
		case AggKind::SumInt128:
			{
				const void *v = values_of(s, agg.arg);

				if (agg.type == Type::I64)
					each(lanes, n, [=](uint32_t i) { int128_at(row[i] + offset) += static_cast<const int64_t *>(v)[i]; });
				else
					each(lanes, n, [=](uint32_t i) { int128_at(row[i] + offset) += static_cast<const int32_t *>(v)[i]; });
				if (agg.tracked)
					each(lanes, n, [=](uint32_t i) { int64_at(row[i] + offset + 16)++; });
				break;
			}
		case AggKind::ExtremeWide:
			{
				const int64_t *high = static_cast<const int64_t *>(values_of(s, agg.arg));
				const int64_t *low = static_cast<const int64_t *>(values_of(s, agg.low));
				const bool	max = agg.fn == AggFn::MaxWide;

				each(lanes, n, [=](uint32_t i) {
					uint128    *best = reinterpret_cast<uint128 *>(row[i] + offset);

					*best = std::max(*best, wide_key(high[i], low[i], max));
				});
				break;
			}
		case AggKind::ExtremeText:
			step_texts(s, agg, mask, true);
			break;
		case AggKind::Extreme:
			{
				const bool	floats = type_is_float(agg.type);
				const uint64_t flip = agg.fn == AggFn::Max ? SIGN : ~SIGN;
				const void *v = values_of(s, agg.arg);

				if (floats)
				{
					kernels->float_keys(agg.type, v, s.scratch[0]);
					v = s.scratch[0];
				}

				/* an untracked extreme of integers is never null, and has no zeroes to tell apart */
				if (!floats && !agg.tracked)
				{
					auto		take = [=](uint32_t i, int64_t ordered) {
						uint64_t   *best = reinterpret_cast<uint64_t *>(row[i] + offset);
						const uint64_t key = static_cast<uint64_t>(ordered) ^ flip;

						*best = key > *best ? key : *best;
					};

					if (agg.type == Type::I64)
						each(lanes, n, [=](uint32_t i) { take(i, static_cast<const int64_t *>(v)[i]); });
					else
						each(lanes, n, [=](uint32_t i) { take(i, static_cast<const int32_t *>(v)[i]); });
					break;
				}

				auto		take = [=](uint32_t i, int64_t ordered) {
					char	   *p = row[i] + offset;
					uint64_t   *best = reinterpret_cast<uint64_t *>(p);
					const uint64_t key = static_cast<uint64_t>(ordered) ^ flip;

					*best = key > *best ? key : *best;
					p[8] |= static_cast<char>(EXTREME_SEEN | (floats && ordered == 0 ? EXTREME_POS_ZERO : 0)
											  | (floats && ordered == -1 ? EXTREME_NEG_ZERO : 0));
				};

				if (type_width(agg.type) == 4)
					each(lanes, n, [=](uint32_t i) { take(i, static_cast<const int32_t *>(v)[i]); });
				else
					each(lanes, n, [=](uint32_t i) { take(i, static_cast<const int64_t *>(v)[i]); });
				break;
			}
		case AggKind::Bools:
			{
				const uint64_t *v = bits_of(s, agg.arg);

				each(lanes, n, [=](uint32_t i) { row[i][offset] |= bit_get(v, i) ? BOOL_SEEN_TRUE : BOOL_SEEN_FALSE; });
				break;
			}
		case AggKind::Bits:
			{
				const bool	wide = type_width(agg.type) == 8;
				const void *v = values_of(s, agg.arg);
				auto		value = [=](uint32_t i) {
					return wide ? static_cast<const int64_t *>(v)[i] : static_cast<const int32_t *>(v)[i];
				};

				if (agg.fn == AggFn::BitXor)
					each(lanes, n, [=](uint32_t i) { int64_at(row[i] + offset) ^= value(i); });
				else
				{
					const int64_t flip = agg.fn == AggFn::BitAnd ? -1 : 0;

					each(lanes, n, [=](uint32_t i) { int64_at(row[i] + offset) |= value(i) ^ flip; });
				}
				each(lanes, n, [=](uint32_t i) { row[i][offset + 8] = 1; });
				break;
			}
		case AggKind::SumFixed:
			{
				const double *x = reinterpret_cast<const double *>(s.scratch[0]);
				const int	exp_lo = agg.exp_lo;

				kernels->sum_prepare(agg.type, values_of(s, agg.arg), mask, reinterpret_cast<double *>(s.scratch[0]));
				each(lanes, n, [=](uint32_t i) {
					char	   *p = row[i] + offset;

					if (float_sum_note(reinterpret_cast<FloatSumInfo *>(p + 16), x[i]))
						int128_at(p) += float_fixed(x[i], exp_lo);
				});
				break;
			}
		default:
			{
				const double *x = reinterpret_cast<const double *>(s.scratch[0]);
				const FloatSumWindow window = agg.window;
				bool		fits = true;

				kernels->sum_prepare(agg.type, values_of(s, agg.arg), mask, reinterpret_cast<double *>(s.scratch[0]));
				each(lanes, n, [=, &fits](uint32_t i) {
					char	   *p = row[i] + offset;

					fits &= float_sum_add(reinterpret_cast<FloatSumInfo *>(p), sum_limbs(p), window, x[i]);
				});
				/* a tablet whose floats are not what its exponents say */
				if (!fits)
					s.errors |= ERR_SUM_OVERFLOW;
				break;
			}
	}
}

/* into += from, for the states in two rows. */
void
CpuProgram::merge_row(char *into, char *from) const
{
	for (const AggInfo &agg : aggs)
	{
		char	   *a = into + agg.offset, *b = from + agg.offset;

		switch (agg.kind)
		{
			case AggKind::Count:
				int64_at(a) += int64_at(b);
				break;
			case AggKind::SumInt64:
				int64_at(a) += int64_at(b);
				if (agg.tracked)
					int64_at(a + 8) += int64_at(b + 8);
				break;
			case AggKind::SumInt128:
				int128_at(a) += int128_at(b);
				if (agg.tracked)
					int64_at(a + 16) += int64_at(b + 16);
				break;
			case AggKind::ExtremeWide:
				*reinterpret_cast<uint128 *>(a) = std::max(*reinterpret_cast<uint128 *>(a), *reinterpret_cast<uint128 *>(b));
				break;
			case AggKind::ExtremeText:
				take_text(agg, *reinterpret_cast<uint64_t *>(b), reinterpret_cast<uint64_t *>(a));
				break;
			case AggKind::Extreme:
				*reinterpret_cast<uint64_t *>(a) = std::max(*reinterpret_cast<uint64_t *>(a), *reinterpret_cast<uint64_t *>(b));
				a[8] |= b[8];
				break;
			case AggKind::Bools:
				*a |= *b;
				break;
			case AggKind::Bits:
				if (agg.fn == AggFn::BitXor)
					int64_at(a) ^= int64_at(b);
				else
					int64_at(a) |= int64_at(b);
				a[8] |= b[8];
				break;
			case AggKind::SumFixed:
				int128_at(a) += int128_at(b);
				float_sum_merge_info(sum_info(agg, a), *sum_info(agg, b));
				break;
			default:
				float_sum_carry(sum_limbs(b), agg.window);
				float_sum_carry(sum_limbs(a), agg.window);
				float_sum_merge(sum_info(agg, a), sum_limbs(a), agg.window, *sum_info(agg, b), sum_limbs(b));
				break;
		}
	}
}

/* The ErrorBits that only the whole of a group's rows shows. */
uint32_t
CpuProgram::finish_row(char *row) const
{
	uint32_t	errors = 0;

	for (const AggInfo &agg : aggs)
	{
		char	   *state = row + agg.offset;

		if (agg.kind == AggKind::Extreme && type_is_float(agg.type))
		{
			const int64_t ordered = ordered_of(*reinterpret_cast<uint64_t *>(state), agg.fn == AggFn::Max);
			const uint8_t both = EXTREME_POS_ZERO | EXTREME_NEG_ZERO;

			if ((ordered == 0 || ordered == -1) && (state[8] & both) == both)
				errors |= ERR_AMBIGUOUS_ZERO;
		}
		else if ((agg.kind == AggKind::SumFixed || agg.kind == AggKind::SumLimbs)
				 && float_sum_may_overflow(*sum_info(agg, state), agg.type))
			errors |= ERR_SUM_OVERFLOW;
	}
	return errors;
}

/* Does finish_row() find anything to look at? */
bool
CpuProgram::can_fail_at_end() const
{
	for (const AggInfo &agg : aggs)
		if (type_is_float(agg.type) && (agg.kind == AggKind::Extreme || agg.kind == AggKind::SumFixed || agg.kind == AggKind::SumLimbs))
			return true;
	return false;
}

/* The final values of n groups, as rows from `at` on of a result column. */
void
CpuProgram::emit_agg(const AggInfo &agg, int rest, char *const *rows, uint32_t n, Type type, char *values, uint64_t *nulls, uint32_t at) const
{
	const size_t width = static_cast<size_t>(type_width(type));
	char	   *to = values + at * width;
	const int	offset = agg.offset;
	auto		emit_null = [=](uint32_t i) {
		bit_set(nulls, at + i);
		memset(to + i * width, 0, width);
	};

	switch (agg.kind)
	{
		case AggKind::Count:
			for (uint32_t i = 0; i < n; i++)
				memcpy(to + i * 8, rows[i] + offset, 8);
			break;
		case AggKind::SumInt64:
			for (uint32_t i = 0; i < n; i++)
			{
				const int128 sum = int64_at(rows[i] + offset);

				memcpy(to + i * sizeof(sum), &sum, sizeof(sum));
			}
			for (uint32_t i = 0; agg.tracked && i < n; i++)
				if (int64_at(rows[i] + offset + 8) == 0)
					emit_null(i);
			break;
		case AggKind::SumInt128:
			for (uint32_t i = 0; i < n; i++)
				memcpy(to + i * sizeof(int128), rows[i] + offset, sizeof(int128));
			for (uint32_t i = 0; agg.tracked && i < n; i++)
				if (int64_at(rows[i] + offset + 16) == 0)
					emit_null(i);
			break;
		case AggKind::ExtremeWide:
			for (uint32_t i = 0; i < n; i++)
			{
				const uint128 key = *reinterpret_cast<const uint128 *>(rows[i] + offset);
				const uint128 value = (agg.fn == AggFn::MaxWide ? key : ~key) ^ uint128{1} << 127;

				memcpy(to + i * sizeof(value), &value, sizeof(value));
				if (key == 0)
					emit_null(i);
			}
			break;
		case AggKind::ExtremeText:
			for (uint32_t i = 0; i < n; i++)
			{
				memcpy(to + i * width, rows[i] + offset, width);
				if (int64_at(rows[i] + offset) == 0)
					emit_null(i);
			}
			break;
		case AggKind::Extreme:
			for (uint32_t i = 0; i < n; i++)
			{
				const char *state = rows[i] + offset;
				const int64_t ordered = ordered_of(*reinterpret_cast<const uint64_t *>(state), agg.fn == AggFn::Max);
				int64_t		bits = ordered;

				if (agg.type == Type::F64)
					bits = ordered < 0 ? ordered ^ INT64_MAX : ordered;
				else if (agg.type == Type::F32)
					bits = ordered < 0 ? ordered ^ INT32_MAX : ordered;
				memcpy(to + i * width, &bits, width);
				if ((agg.tracked || type_is_float(agg.type)) && !(state[8] & EXTREME_SEEN))
					emit_null(i);
			}
			break;
		case AggKind::Bits:
			for (uint32_t i = 0; i < n; i++)
			{
				const int64_t v = int64_at(rows[i] + offset) ^ (agg.fn == AggFn::BitAnd ? -1 : 0);

				memcpy(to + i * width, &v, width);
				if (rows[i][offset + 8] == 0)
					emit_null(i);
			}
			break;
		case AggKind::Bools:
			for (uint32_t i = 0; i < n; i++)
			{
				const char	state = rows[i][offset];

				to[i] = agg.fn == AggFn::BoolAnd ? !(state & BOOL_SEEN_FALSE) : (state & BOOL_SEEN_TRUE) != 0;
				if (state == 0)
					emit_null(i);
			}
			break;
		default:
			for (uint32_t i = 0; i < n; i++)
			{
				char	   *state = rows[i] + offset;
				FloatSumInfo info = *sum_info(agg, state);
				int64_t		limbs[FLOAT_SUM_LIMBS] = {};
				FloatSumWindow window = {0, FLOAT_SUM_LIMBS};

				if (agg.kind == AggKind::SumFixed)
					float_fixed_limbs(int128_at(state), agg.exp_lo, limbs);
				else
				{
					window = agg.window;
					memcpy(limbs, sum_limbs(state), sizeof(int64_t) * window.count);
				}

				const double sum = float_sum_rest(info, limbs, window, rest);

				memcpy(to + i * sizeof(sum), &sum, sizeof(sum));
				if (!(info.flags & FLOAT_SUM_SEEN))
					emit_null(i);
			}
			break;
	}
}

}  // namespace gpuvm
