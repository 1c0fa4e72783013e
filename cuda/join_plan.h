/*
 * join_plan.h: a join program as a device runs it: the programs that split_join()
 * cuts it into, each lowered, over tablets or over the columns of row sets.
 *
 * The programs over cursors depend on these alone. Those over pairs are lowered
 * once the inner sides are there: how many pairs a row may give bounds what their
 * aggregates take in. A thread remembers its last plan, so a query that comes again
 * is not planned again.
 */
#ifndef GPUVM_CUDA_JOIN_PLAN_H
#define GPUVM_CUDA_JOIN_PLAN_H

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/device_abi.h"
#include "lower.h"
#include "vm/join_filter.h"
#include "vm/value_range.h"

namespace gpuvm {
namespace cuda {

/* For tests: are there launches over tiles of pairs? */
extern bool join_grids;

/* The tablets of each cursor as the zone maps leave them. */
class JoinCursors
{
public:
	JoinCursors(const DeviceJobRequest &request, const JoinSplit &split);

	const DeviceCursor &operator[](size_t i) const { return cursors_[i]; }

private:
	std::vector<std::vector<DeviceTabletRef>> tablets_;
	std::vector<DeviceCursor> cursors_;
};

/* A column of a stage over pairs: of what comes in, or of the inner row. */
struct StageColumnSource
{
	bool		carried;
	int			index;			/* of JoinLevel.carried; of the build program's results */
};

/* A condition or a tail. Its columns are in this order: carried ones, then the inner row's. */
struct PairStage
{
	std::vector<uint64_t> sealed;
	std::vector<StageColumnSource> columns;
	uint32_t	ncarried = 0;
	std::unique_ptr<DeviceProgram> program;
	bool		may_raise = false;
	bool		plain = false;	/* a tail that does no more than hand on columns */
	std::vector<int> handed_on;	/* of `columns`: a tail's results, if they are columns as they are; else empty */

	bool		present() const { return !sealed.empty(); }
	const Program *source() const { return reinterpret_cast<const Program *>(sealed.data()); }
};

struct PlannedLevel
{
	const JoinLevel *split;
	bool		grid_condition;	/* nested loops: what is launched over tiles of pairs */
	bool		grid_tail;		/* else over lists of pairs */
	bool		grid_lists;		/* which a launch over tiles makes, of the pairs that pass the tail's comparisons */
	std::unique_ptr<DeviceProgram> build;
	std::vector<ValueRange> build_ranges;	/* of its results */
	std::vector<uint64_t> counting;	/* count_program()'s source, */
	std::unique_ptr<DeviceProgram> counts;	/* and what it returns */
	bool		counts_known = false;
	std::vector<Type> carried_types;
	PairStage	condition;
	PairStage	listing;		/* the tail without results */
	PairStage	tail;
	uint64_t	most_rows = 0;	/* that may reach its tail; a job that finds more must end */

	const Program *count_source() const { return reinterpret_cast<const Program *>(counting.data()); }
};

class JoinPlan
{
public:
	/* nullptr, with the reason. Valid until the thread asks for another. Throws std::bad_alloc. */
	static JoinPlan *of(const DeviceJobRequest &request, uint32_t shared_bytes, const char **reason);

	/*
	 * Lowers what runs over pairs. `each`: of every level, how many pairs a row that comes in
	 * may give at most, and how many inner rows may go on alone. nullptr, or why not.
	 */
	const char *lower_pairs(const std::vector<uint64_t> &each);

	/* See there. Of the request at hand. */
	const DeviceProgram *count_program(size_t level);

	const JoinSplit &split() const { return split_; }
	const JoinCursors &cursors() const { return *cursors_; }	/* of the request at hand */
	const DeviceProgram &first() const { return *first_; }
	const std::vector<ValueRange> &first_ranges() const { return first_ranges_; }	/* of its results */
	const PlainRows *plain_first() const { return first_is_plain_ ? &plain_first_ : nullptr; }	/* what `first` does, if it is no more than that */
	std::vector<PlannedLevel> &levels() { return levels_; }
	const DeviceProgram &end() const { return *levels_.back().tail.program; }	/* its sinks are the job's */
	/* Are all rows sought? */
	bool		sought() const;
	uint64_t	pairs_bound() const { return levels_.back().most_rows; }
	/*
	 * Levels that cursor 0's rows can be held against before `first` runs (key_filter.h). Before lower_pairs() those that may
	 * be; behind it none that would leave out rows which raise an error on their way.
	 */
	std::vector<size_t> filter_levels() const;
	/* May rows raise an error on their way from `first`, or behind it, through these levels? */
	bool		raises_between(size_t first_level, size_t end_level) const;
	bool		first_raises() const { return first_raises_; }
	int			filter_column(size_t level) const { return filter_columns_[level]; }	/* cursor 0's, of such a level */

private:
	const char *make(const DeviceJobRequest &request, const JoinCursors &cursors, uint32_t shared_bytes);
	const char *lower_stage(const PlannedLevel &level, const JoinStage &from, const std::vector<ColumnSummary> &carried, uint64_t total_rows,
							bool grid, MarkKind mark, PairStage *to, std::vector<ValueRange> *results);
	void		find_handed_on(const std::vector<ValueRange> &columns, const std::vector<ValueRange> &results, PairStage *tail) const;
	bool		lists_pairs(PlannedLevel *level, const std::vector<ColumnSummary> &carried, uint64_t total_rows);
	LowerInput	input(const Program *program, const std::vector<ColumnBinding> &columns, uint64_t total_rows, bool masked) const;

	std::string key_;
	std::vector<uint64_t> source_;	/* the program */
	std::vector<ParamValue> params_;
	const CodeMap *maps_ = nullptr;	/* of the request at hand */
	uint32_t	shared_bytes_ = 0;
	uint64_t	outer_rows_ = 0;
	JoinSplit	split_;
	std::optional<JoinCursors> cursors_;
	std::unique_ptr<DeviceProgram> first_;
	bool		first_raises_ = false, first_is_plain_ = false;
	PlainRows	plain_first_;
	std::vector<int> filter_columns_;	/* vm/join_filter.h */
	std::vector<ValueRange> first_ranges_;
	std::vector<PlannedLevel> levels_;
	std::vector<uint64_t> each_;	/* that the pairs' programs are lowered for */
	const char *reason_ = nullptr;
	const char *pairs_reason_ = nullptr;
};

}  // namespace cuda
}  // namespace gpuvm

#endif
