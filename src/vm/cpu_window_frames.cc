/*
 * cpu_window_frames.cc: the frames of rows (cpu_window.h), as update_frameheadpos() and update_frametailpos() find
 * them. Within a partition neither end moves back, so RANGE and GROUPS offsets walk on from the row before; only a
 * block that begins within a partition has to search.
 */
#include "vm/cpu_window_job.h"

namespace gpuvm {

WindowBound::WindowBound(const WindowSpec &spec, const WindowColumn *columns, const WindowRows *rows, bool is_end)
	: rows_(rows), mode_(spec.frame.mode), bound_(is_end ? spec.frame.end : spec.frame.start),
	  is_end_(is_end), offset_(is_end ? spec.frame.end_offset : spec.frame.start_offset)
{
	if (mode_ != FrameMode::Range || !has_offset(bound_))
		return;

	column_ = &columns[spec.keys[spec.npartition].column];
	range_ = window_range(spec, is_end);
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
		const uint64_t wanted = window_groups_bound(bound_, offset, behind, group, first);

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

/* Is this row the bound of the current one, if none before is? */
template <typename T>
bool
WindowBound::stops(uint64_t row, bool current_null, int128 limit) const
{
	const bool	null = any_nulls_ && window_null(*column_, row);

	const int64_t order = null ? 0 : window_order(window_value<T>(*column_, row));

	return window_range_stops(range_, null, current_null, order, limit);
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
		const int128 limit = null ? 0 : window_range_limit(range_, window_value<T>(*column_, row), &errors);

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
	else if (mode_ == FrameMode::Groups)
		fill_groups(vector, to);
	else if (mode_ == FrameMode::Range)
		with_window_type(column_->summary.type, [&](auto sample) { errors = fill_range<decltype(sample)>(vector, to); });
	else
		for (uint32_t i = 0; i < n; i++)
			to[i] = window_rows_bound(bound_, offset, behind, vector.first + i, vector.part_start[i], vector.part_end[i]);
	return errors;
}

}  // namespace gpuvm
