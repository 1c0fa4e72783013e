/*
 * cpu_window_frames.cc: the frames of rows (cpu_window.h), as update_frameheadpos() and update_frametailpos() find
 * them. Within a partition neither end moves back, so RANGE and GROUPS offsets walk on from the row before; only a
 * block that begins within a partition has to search.
 */
#include "vm/cpu_window_job.h"
#include "vm/semantics.h"

namespace gpuvm {

WindowBound::WindowBound(const WindowSpec &spec, const WindowColumn *columns, const WindowRows *rows, bool is_end)
	: rows_(rows), mode_(spec.frame.mode), bound_(is_end ? spec.frame.end : spec.frame.start),
	  unit_(spec.frame.unit), is_end_(is_end), offset_(is_end ? spec.frame.end_offset : spec.frame.start_offset)
{
	if (mode_ != FrameMode::Range || !has_offset(bound_))
		return;

	const WindowKey &key = spec.keys[spec.npartition];

	column_ = &columns[key.column];
	less_ = is_end != key.desc;
	subtract_ = (bound_ == FrameBound::Preceding) != key.desc;
	nulls_first_ = key.nulls_first;
	any_nulls_ = window_has_nulls(*column_);
}

/* ---- GROUPS -------------------------------------------------------------------------- */

/* The first row of the first group that is far enough, and for an end of the group behind it. */
void
WindowBound::fill_groups(const WindowVector &vector, uint64_t *to)
{
	const uint64_t offset = static_cast<uint64_t>(offset_), behind = is_end_ ? 1 : 0;

	for (uint32_t i = 0; i < vector.n; i++)
	{
		const uint64_t group = vector.group[i], first = vector.part_group[i], end = vector.part_end[i];
		uint64_t	wanted = group + offset + behind;

		if (bound_ == FrameBound::Preceding)
			wanted = offset > group - first ? first : group - offset + behind;
		if (partition_ != vector.part_start[i])
		{
			partition_ = vector.part_start[i];
			/* the row's own group is known; a block that begins here may want one that is far away */
			if (wanted < group)
			{
				place_group_ = wanted;
				place_ = rows_->group_row(wanted);
			}
			else
			{
				place_group_ = group;
				place_ = vector.peer_start[i];
			}
		}
		for (; place_group_ < wanted && place_ < end; place_group_++)
			place_ = rows_->next_group(place_);
		to[i] = std::min(place_, end);
	}
}

/* ---- RANGE --------------------------------------------------------------------------- */

/*
 * What values are compared with: in_range_int4_int8() and others, where an overflow is as good as the true sum;
 * in_range_float8_float8(), in_range_date_interval() and in_range_timestamp_interval().
 */
template <typename T>
int128
WindowBound::limit_of(T base, uint32_t *errors) const
{
	if constexpr (std::is_floating_point_v<T>)
	{
		const double infinity = bits_double(0x7ff0000000000000u);
		const double from = static_cast<double>(base);
		double		offset;

		memcpy(&offset, &offset_, sizeof(offset));
		/* infinitely far from infinity: of numbers, all are within */
		if (offset == infinity && from == (subtract_ ? infinity : -infinity))
			return window_order(less_ ? infinity : -infinity);
		return window_order(subtract_ ? from - offset : from + offset);
	}
	else
	{
		const int128 sum = subtract_ ? static_cast<int128>(base) - offset_ : static_cast<int128>(base) + offset_;

		if (unit_ == RangeUnit::Date)
		{
			if (base == sem::DATE_NOBEGIN || base == sem::DATE_NOEND)
				return base;
			if (base >= sem::TS_LIMIT_DAYS || sum < sem::DATE_MIN || sum >= sem::TS_LIMIT_DAYS)
				*errors |= ERR_DATETIME_RANGE;
		}
		else if (unit_ == RangeUnit::Timestamp)
		{
			if (base == sem::TS_NOBEGIN || base == sem::TS_NOEND)
				return base;
			if (sum < sem::TS_MIN || sum >= sem::TS_LIMIT)
				*errors |= ERR_DATETIME_RANGE;
		}
		return sum;
	}
}

/* Is this row the bound of the current one, if none before is? */
template <typename T>
bool
WindowBound::stops(uint64_t row, bool current_null, int128 limit) const
{
	const bool	null = any_nulls_ && window_null(*column_, row);

	if (null || current_null)
	{
		if (is_end_)
			return nulls_first_ ? !null : !current_null;
		return nulls_first_ ? !null || current_null : null || !current_null;
	}

	const int64_t value = window_order(window_value<T>(*column_, row));

	return (less_ ? value <= limit : value >= limit) != is_end_;
}

template <typename T>
uint32_t
WindowBound::fill_range(const WindowVector &vector, uint64_t *to)
{
	uint32_t	errors = 0;

	for (uint32_t i = 0; i < vector.n; i++)
	{
		const uint64_t row = vector.first + i, start = vector.part_start[i], end = vector.part_end[i];

		/* peers have one frame */
		if (i > 0 && vector.peer_start[i] == vector.peer_start[i - 1])
		{
			to[i] = to[i - 1];
			continue;
		}

		const bool	null = any_nulls_ && window_null(*column_, row);
		const int128 limit = null ? 0 : limit_of(window_value<T>(*column_, row), &errors);

		if (partition_ != start)
		{
			partition_ = place_ = start;
			for (uint64_t last = row > start ? end : start; place_ < last;)
			{
				const uint64_t middle = place_ + (last - place_) / 2;

				if (stops<T>(middle, null, limit))
					last = middle;
				else
					place_ = middle + 1;
			}
		}
		while (place_ < end && !stops<T>(place_, null, limit))
			place_++;
		to[i] = place_;
	}
	return errors;
}

/* ---- all ----------------------------------------------------------------------------- */

uint32_t
WindowBound::fill(const WindowVector &vector, uint64_t *to)
{
	const uint32_t n = vector.n;
	const uint64_t offset = static_cast<uint64_t>(offset_), behind = is_end_ ? 1 : 0;
	uint32_t	errors = 0;

	if (bound_ == FrameBound::Unbounded)
		std::copy_n(is_end_ ? vector.part_end : vector.part_start, n, to);
	else if (bound_ == FrameBound::CurrentRow && mode_ != FrameMode::Rows)
		std::copy_n(is_end_ ? vector.peer_end : vector.peer_start, n, to);
	else if (bound_ == FrameBound::CurrentRow)
		for (uint32_t i = 0; i < n; i++)
			to[i] = vector.first + i + behind;
	else if (mode_ == FrameMode::Groups)
		fill_groups(vector, to);
	else if (mode_ == FrameMode::Range)
		with_window_type(column_->summary.type, [&](auto sample) { errors = fill_range<decltype(sample)>(vector, to); });
	else if (bound_ == FrameBound::Preceding)
		for (uint32_t i = 0; i < n; i++)
		{
			const uint64_t row = vector.first + i;

			to[i] = offset > row - vector.part_start[i] ? vector.part_start[i] : row - offset + behind;
		}
	else
		for (uint32_t i = 0; i < n; i++)
		{
			const uint64_t row = vector.first + i, left = vector.part_end[i] - row - behind;

			to[i] = offset > left ? vector.part_end[i] : row + offset + behind;
		}
	return errors;
}

}  // namespace gpuvm
