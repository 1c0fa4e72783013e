/* cpu_window_floats.cc: exact sums of floats over frames (cpu_window.h). */
#include "vm/cpu_window_job.h"

namespace gpuvm {

/* ---- the sum of some rows ------------------------------------------------------------- */

void
FloatRange::clear()
{
	info_ = {};
	nan_ = infinite_[0] = infinite_[1] = not_negative_zero_ = 0;
	memset(limbs_, 0, sizeof(int64_t) * static_cast<size_t>(window_.count));
}

bool
FloatRange::add(double value, int sign)
{
	const int64_t n = info_.n;
	FloatSumInfo info = info_;
	const bool	fits = float_sum_add(&info, limbs_, window_, sign < 0 ? -value : value);

	info_.n = n + sign;
	info_.adds = info.adds;
	info_.max_exp = info.max_exp;
	if (value != value)
		nan_ += sign;
	else if (value - value != 0)
		infinite_[value < 0] += sign;
	if (double_bits(value) != 0x8000000000000000u)
		not_negative_zero_ += sign;
	return fits;
}

void
FloatRange::add(const FloatRange &other)
{
	float_sum_carry(limbs_, window_);
	float_sum_merge(&info_, limbs_, window_, other.info_, other.limbs_);
	nan_ += other.nan_;
	infinite_[0] += other.infinite_[0];
	infinite_[1] += other.infinite_[1];
	not_negative_zero_ += other.not_negative_zero_;
}

double
FloatRange::sum() const
{
	FloatSumInfo info = info_;
	int64_t		limbs[FLOAT_SUM_LIMBS];

	info.flags = static_cast<uint8_t>((info_.n > 0 ? FLOAT_SUM_SEEN : 0) | (nan_ > 0 ? FLOAT_SUM_NAN : 0) |
									  (infinite_[0] > 0 ? FLOAT_SUM_POS_INF : 0) | (infinite_[1] > 0 ? FLOAT_SUM_NEG_INF : 0) |
									  (not_negative_zero_ > 0 ? FLOAT_SUM_NOT_NEG_ZERO : 0));
	memcpy(limbs, limbs_, sizeof(int64_t) * static_cast<size_t>(window_.count));
	return float_sum_round(info, limbs, window_);
}

/* ---- the rows ------------------------------------------------------------------------- */

WindowFloats::WindowFloats(const WindowArgument &argument, uint64_t nrows, const WindowRows *rows)
	: WindowInput(argument, nrows), rows_(rows),
	  window_(float_sum_window(argument.column->summary.exp_lo, argument.column->summary.exp_hi))
{
}

uint64_t
WindowFloats::bytes() const
{
	return window_blocks(nrows_) * sizeof(FloatRange);
}

void
WindowFloats::allocate()
{
	blocks_.resize(window_blocks(nrows_));
}

void
WindowFloats::prepare(uint32_t block)
{
	const uint64_t first = window_first(block);

	/* others are in no frame from end to end */
	if (!rows_->one_partition(block))
		return;

	std::unique_ptr<FloatRange> sum(new FloatRange(window_));

	if (add_rows(first, first + block_rows(block), 1, sum.get()))
		blocks_[block] = std::move(sum);
}

/* Within a block. */
bool
WindowFloats::add_rows(uint64_t first, uint64_t end, int sign, FloatRange *to) const
{
	const uint32_t block = window_block(first);
	const WindowColumn &column = *argument_.column;
	const WindowColumn *filter = argument_.filter;
	bool		fits = true;

	auto		add_values = [&](const auto *values) {
		for (uint64_t row = first; row < end; row++)
		{
			if (window_null(column, row))
				continue;
			if (filter != nullptr && (window_null(*filter, row) || window_value<uint8_t>(*filter, row) == 0))
				continue;
			fits = to->add(static_cast<double>(values[window_offset(row)]), sign) && fits;
		}
	};

	if (type() == Type::F32)
		add_values(reinterpret_cast<const float *>(column.values[block]));
	else
		add_values(reinterpret_cast<const double *>(column.values[block]));
	/* the column's range is wrong, so nothing is known */
	if (!fits)
		errors_.fetch_or(ERR_SUM_OVERFLOW);
	return fits;
}

void
WindowFloats::add(uint64_t first, uint64_t end, int sign, FloatRange *to) const
{
	while (first < end)
	{
		const uint32_t block = window_block(first);
		const uint64_t last = std::min(end, window_first(block) + window_block_rows(nrows_, block));

		if (sign > 0 && first == window_first(block) && last - first == block_rows(block) && blocks_[block] != nullptr)
			to->add(*blocks_[block]);
		else
			(void) add_rows(first, last, sign, to);
		first = last;
	}
}

}  // namespace gpuvm
