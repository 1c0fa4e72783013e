/*
 * join.h: runs one job of several cursors on one device.
 *
 * The thread that runs the job drives it in steps: launches of the interpreter, which runs
 * the programs that the join was cut into (vm/join_split.h), and of what makes pairs
 * between them (row_set.h, join_table.h, pairs.h). A step's outcome, how many rows or pairs there
 * are, is waited for where the next one depends on it.
 *
 *   build     for each inner cursor: its rows, filtered, as a row set; a table of its keys. Where a row set for all
 *             that is read would take much of what is free, what the filter leaves is counted first. Both of an index
 *             (join_index.h) that a job before has built are there already; one that this job has built stays
 *   run       cursor 0's rows, some at a time, go through `first` into the row set
 *             of level 0; a level makes pairs of what comes in and its own rows, some at
 *             a time, and runs its tail over them: into the next level's row set, which is
 *             then taken through that level before this one goes on, or into the program's end
 *
 * Where levels leave few of cursor 0's rows, these are held against their keys first, before `first` runs (key_filter.h): what is left of
 * several slices then makes one batch. Where `first` is no more than intervals of columns, these are filters, too, and the rows that are left are
 * picked: listed, and their columns fetched (table_rows.h); it does not run. A picked row is known to have a partner in every level that it was held against.
 *
 * Where the inner sides find no room, the job is made anew, and its sides are **reduced** (join_reduce.cc): before any is built their rows are
 * counted, and those left out that no row meets. If they find no room even so, and nothing leaves before the end, there are several passes:
 * each has a part of the keys of one level (key_parts.h), and reads cursor 0.
 *
 * So everything has its size from the start: `batch` rows or pairs. A nested loop is launched
 * over tiles of pairs, without lists of them.
 *
 * Rows of the program's end gather in a row set and leave by full result buffers,
 * as parts of unit 0; or, sorted, when all are there. An error ends the job: before anything of a group is published,
 * and with what was handed over standing, as on the CPU.
 */
#ifndef GPUVM_CUDA_JOIN_H
#define GPUVM_CUDA_JOIN_H

#include <memory>
#include <optional>
#include <vector>

#include "job.h"
#include "job_scan.h"
#include "join_index.h"
#include "join_plan.h"
#include "join_steps.h"
#include "join_ways.h"
#include "key_parts.h"
#include "pairs.h"
#include "row_results.h"
#include "table_rows.h"
#include "transfer.h"
#include "work.h"

namespace gpuvm {
namespace cuda {

/* For tests: how much a join takes at a time. */
struct JoinSizes
{
	uint32_t	most_batch = 8 << 20;	/* rows or pairs; a multiple of TABLET_PAD_ROWS, as all of these */
	uint32_t	least_batch = 64 << 10;	/* with less room the job is refused */
	uint64_t	grid_pairs = uint64_t(1) << 31;	/* of a nested loop's first launch: its speed is not known */
	double		step_ns = 4e6;		/* that its later ones are to take */
	uint32_t	marks = 16;			/* bits for pairs of nested loops, by rows of a batch */
	uint64_t	filter_rows = 4 << 20;	/* fewer outer rows are not worth a filter */
	uint64_t	count_bytes = 64 << 20;	/* a smaller inner side is not worth counting, */
	uint64_t	count_share = 8;	/* nor one that takes less than this part of what is free */
};
extern JoinSizes join_sizes;

constexpr uint64_t STAGING_BYTES = 256ull << 20;	/* of a slice of inner rows */
constexpr uint32_t MOST_PASSES = 16;	/* that a job asks for: the CPU is no slower with more */

/* Hands out a piece of memory in parts; without memory it only counts. */
class Carver
{
public:
	explicit Carver(char *base = nullptr) : base_(base) {}
	char	   *take(uint64_t bytes)
	{
		char	   *at = base_ != nullptr ? base_ + taken_ : nullptr;

		taken_ = align_up(taken_ + bytes, 256);
		return at;
	}
	uint64_t	taken() const { return taken_; }

private:
	char	   *base_;
	uint64_t	taken_ = 0;
};

class JoinJob final : public DeviceJob
{
public:
	JoinJob(CudaDevice *device, PinnedArena *arena, const DeviceJobRequest &request, JoinPlan *plan, DeviceJobIo *io,
			DeviceJobFigures *figures, JoinWay way);
	~JoinJob() override;

	/* run() was refused: another way in which the inner sides may find room; nullopt: that is not why, or there is none. */
	const std::optional<JoinWay> &other_way() const { return other_way_; }

	void		run() override;
	std::string steps() override { return steps_.text(); }

private:
	/* A cursor's rows on their way to the device. */
	struct Source
	{
		Source(CudaDevice *device, PinnedArena *arena, const DeviceCursor &cursor, const Program *source, const DeviceProgram &program);

		const DeviceProgram &program;
		Work		work;
		std::unique_ptr<TableFeed> feed;
		char	   *dead_bits = nullptr;	/* that open_source() made */
		uint32_t	next_pad = 0;
	};

	struct Level
	{
		PlannedLevel *plan;
		std::string key;			/* its rows and table make an index of this key; empty: they do not */
		const CachedIndex *index = nullptr;	/* that there was */
		RowSet		side = {};		/* the inner rows */
		std::vector<uint32_t> parts;	/* rows of each part of the keys, if they were counted by them */
		uint64_t	most_rows = 0;	/* that these may be; */
		uint32_t	side_rows = 0;	/* they are */
		JoinTable	table = {};
		char	   *rows_memory = nullptr;	/* of both, if this job has built them */
		char	   *table_memory = nullptr;
		KeyFacts	facts = {};		/* of its keys */
		DeviceChunk *inner_columns = nullptr;	/* device: of the stage that is a grid */
		RowSet		in = {};		/* what comes in */
		RowSet		spare = {};		/* of the split level: takes turns with it */
		char	   *probe = nullptr;
		uint32_t   *matched = nullptr;	/* bits of rows of `in` */
		char	   *scan = nullptr;
		uint32_t   *pair_bits = nullptr;	/* cross_left(): of pairs, while the levels behind take them */
		char	   *pair_scan = nullptr;
		double		pair_ns = 0;	/* of a nested loop, rows that only pad counted, measured */
		bool		filtered = false;	/* picked rows have a partner */
		uint32_t   *partnered = nullptr;	/* full joins: bits of inner rows that were in a pair */
		char	   *partnered_scan = nullptr;
	};

	/* Until the device is done with the job. */
	struct IndexPins
	{
		explicit IndexPins(Residency *r) : residency(r) { pinned.reserve(PROGRAM_MAX_CURSORS); }
		~IndexPins() { residency->release(pinned); }
		IndexPins(const IndexPins &) = delete;
		IndexPins &operator=(const IndexPins &) = delete;

		Residency  *residency;
		std::vector<const CachedIndex *> pinned;
	};

	/* What a pair has nothing but nulls of. */
	enum class Absent
	{
		Neither,
		Inner,
		Outer,
	};

	/* An error of a row ends the job. */
	struct RowErrors
	{
		uint32_t	errors;
	};

	/* building: join_build.cc */
	void		build();
	struct BuildingTable
	{
		size_t		number;		/* of the level */
		JoinTablePlan plan;
		char	   *temp;
	};

	void		choose_counted();
	void		count_rows(const std::vector<size_t> &numbers);
	void		build_rows(const std::vector<size_t> &numbers);
	void		enqueue_rows(size_t number, uint32_t most, char *staging_memory);
	void		build_pass(uint32_t pass);
	char	   *pass_memory(Working *piece, uint64_t bytes);
	void		drop_pass_memory(Working *piece);
	/* reducing, and passes: join_reduce.cc */
	struct KeyEdge
	{
		size_t		level;
		uint32_t	key;		/* of its side, and result of its build program */
		size_t		cursor;		/* whose rows bring it to the level, */
		uint32_t	result;		/* as this result */
		int64_t		lo;
		uint64_t	n;			/* values that both may have, from lo on */
		bool		holds;		/* rows of the cursor that find no partner there come to nothing */
		std::optional<KeyBits> there, wanted;	/* values of the side; of the cursor's rows */
	};
	using KeySet = std::optional<KeyBits> KeyEdge::*;

	void		reduce();
	void		find_edges();
	bool		leaves_out(size_t cursor) const;
	bool		is_small(const KeyEdge &edge) const;
	bool		empties(size_t number) const;
	RowTests	tests_of(size_t cursor) const;
	bool		open_bits(KeyEdge *edge, KeySet set);
	void		close_bits(KeyEdge *edge, KeySet set);
	uint64_t	read_cursor(size_t cursor, const std::vector<KeyEdge *> &edges, KeySet set);
	void		fill_edges(size_t cursor, const std::vector<KeyEdge *> &edges, KeySet set);
	void		choose_passes();
	size_t		level_to_split() const;
	uint64_t	side_bytes(size_t number, uint32_t passes, uint64_t *temp) const;
	bool		may_split(size_t number) const;
	uint64_t	bytes_wanted(size_t split, uint32_t passes) const;
	bool		fit(size_t split, uint32_t passes) const;
	std::unique_ptr<Source> new_source(size_t cursor);
	Source	   *open_source(size_t cursor);
	void		close_source(size_t cursor);

	/* Levels before the split one have the same pairs in each pass. */
	void		count_pairs(size_t number, uint64_t pairs) { figures_->pairs += pass_ == 0 || number >= split_ ? pairs : 0; }
	uint32_t	admit(size_t number, uint32_t n);
	uint32_t	staged_pads(const Source &source, Carver *size) const;
	uint32_t	stage_slice(Source *source, const RowTests &tests, uint32_t most, const RowStaging &staging, DeviceJobFigures *figures);
	void		append_source(Source *source, const RowTests &tests, const RowSet &to, uint32_t most, char *staging_memory, RowSetState *outcome);
	void		end_source(std::unique_ptr<Source> *source);
	void		build_tables(const std::vector<size_t> &numbers);
	void		enqueue_table(BuildingTable *building);
	void		finish_tables(std::vector<BuildingTable> *building);
	JoinKeys	keys_of(const Level &level) const;
	bool		find_index(Level *level);
	void		take_index(size_t number);
	void		keep_index(size_t number);
	void		count_build(uint64_t bytes);
	uint32_t	bring_source(Source *source, uint32_t most_pads);
	void		launch_source(Source *source, uint32_t npads, const RowStaging &staging, DeviceJobFigures *figures);

	/* running */
	std::vector<Source *> all_sources() const;
	void		run_joined();
	void		mendable(const std::function<void()> &step);
	void		choose_batch();
	uint64_t	wanted_batch() const;
	void		lay_out(Carver *to);
	void		describe();
	void		run_all(const GroupTable *groups, const std::function<void()> &behind) override;
	void		begin_again() override;
	void		run_outer();
	void		run_pass();
	void		run_held();
	void		run_picked();
	void		run_rest(size_t from, size_t end);
	bool		has_rest() const;

	/* rows of cursor 0 that have no partner: join_filter.cc */
	uint32_t	column_of(uint16_t table_column) const;
	void		make_filters();
	void		make_picks();
	bool		list_fetched();
	bool		fetches_all();
	void		open_slices(uint32_t most_pads);
	void		choose_filter(uint32_t first, uint32_t npads);

	/* levels: join_levels.cc */
	void		run_level(size_t number, uint32_t n);
	void		seek(size_t number, uint32_t n);
	void		seek_all(size_t number, uint32_t n);
	void		hand_on(size_t number, const uint32_t *outer, const uint32_t *inner, uint32_t n, Absent absent);
	void		cross(size_t number, uint32_t n);
	void		cross_some(size_t number, uint32_t n);
	void		cross_left(size_t number, uint32_t n);
	uint32_t	limited_step(uint32_t most, uint32_t npads);
	void		cross_listed(size_t number, uint32_t n);
	std::vector<EmittedColumn> listed_rows(const Level &level) const;
	void		leave_listed(size_t number, uint32_t rows, size_t ahead);
	void		cross_tail(size_t number, uint32_t n);
	void		cross_lists(size_t number, uint32_t n);
	uint32_t	filter_pairs(Level *level, uint32_t n);
	void		run_pairs(size_t number, uint32_t n);
	void		run_marked(size_t number, const uint32_t *bits, uint32_t n, bool want);
	void		run_tail(size_t number, const uint32_t *outer, const uint32_t *inner, uint32_t n, Absent absent);
	const RowSet *prepare_tail(size_t number, uint32_t rows);
	void		end_tail(size_t number, uint64_t pairs);
	void		gathered(uint32_t rows, size_t ahead);
	void		fetch_state(const RowSetState *state);
	void		take_rows(uint64_t pairs);
	static ProbeMode probe_mode(const Level &level);
	static bool keeps_rows(const Level &level);
	void		mark_partners(const Level &level, const uint32_t *inner, uint32_t n);
	bool		only_counts(size_t number) const;
	static bool finds_one(const Level &level) { return level.table.unique && level.plan->split->range == 0; }
	cudaError_t probe_level(const Level &level, ProbeMode mode, uint32_t n, Probe *found);
	static Type column_type(const Level &level, const StageColumnSource &column);
	/* Do rows that leave wait until all are there, or many? */
	bool		gathers_all() const { return request_.norder > 0 || set_ != nullptr; }
	bool		ends_in_groups(size_t number) const { return number + 1 == levels_.size() && request_.program->grouped; }

	/* launches: join_launch.cc */
	GatherColumn source_of(const Level &level, const StageColumnSource &column, Absent absent) const;
	void		gather_columns(const Level &level, const PairStage &stage, const uint32_t *outer, const uint32_t *inner, uint32_t n,
							   Absent absent);
	void		launch_pairs(const PairStage &stage, uint32_t n, uint32_t *marks, const RowSet *to);
	void		launch_grid(const Level &level, const PairStage &stage, uint32_t outer_rows, uint32_t first, uint32_t n, uint32_t *marks, const RowSet *to,
							RowSetState *list = nullptr);
	void		launch(const DeviceProgram &program, SliceArgs args, uint64_t row_pads, const RowSet *to);
	uint32_t	grid_step(const Level &level, uint32_t outer_rows) const;
	void		upload(uint32_t nrows, const std::vector<DeviceChunk> &chunks);

	/* rows that leave */
	void		make_room(uint32_t rows);
	void		keep_first(uint32_t n);
	size_t		emit_ahead(const std::vector<EmittedColumn> &columns, uint64_t most, const RowSetState *state);
	size_t		emit_rows_out(const std::vector<EmittedColumn> &columns, uint32_t from, uint32_t end, const RowsAhead &ahead);
	uint32_t	hand_over(size_t n, uint32_t from, uint32_t end, bool last);
	std::vector<EmittedColumn> gathered_rows() const;
	void		flush(uint32_t from = 0, bool end = false);
	void		end_rows();

	/* steps */
	void		start();
	double		sync();			/* waits for all that is enqueued: how long it ran, ns. Throws Stopped, RowErrors */
	void		fetch_errors();	/* of launches, for the next sync() */
	uint32_t	appended() { return appended(outcomes_->rows); }	/* rows that a row set has, as the last append_rows() told. Throws RowErrors */
	uint32_t	appended(const RowSetState &outcome);

	JoinSteps	steps_;
	JoinPlan   *plan_;
	const JoinCursors &cursors_;
	IndexPins	indexes_;
	std::vector<std::unique_ptr<Source>> sources_;	/* nullptr: an index is there, or all was read */
	std::vector<std::unique_ptr<Source>> counters_;	/* of levels whose rows are counted first */
	std::vector<Level> levels_;
	const GroupTable *groups_ = nullptr;
	JoinOutcomes *outcomes_ = nullptr;	/* host; pinned */
	KeyFacts   *facts_ = nullptr;	/* device, of each level */
	JoinTableOutcome *table_words_ = nullptr;	/* the same */
	bool		empty_ = false;	/* no row can come out */
	uint32_t	limited_pads_ = 16;	/* of pairs, for the next launch of a nested loop where there is a limit of rows */
	uint64_t	counted_ = 0;	/* pairs that were not made, for only their number matters */

	/* passes, the largest first: what finds no room is refused before cursor 0 is read */
	struct Pass
	{
		PartRange	parts;
		uint32_t	rows;		/* of the split level */
	};

	const JoinWay way_;
	std::vector<KeyEdge> edges_;
	uint32_t	passes_ = 1;
	uint32_t	pass_ = 0;		/* whose rows the split level has */
	size_t		split_ = SIZE_MAX;	/* the level; none with one pass */
	Working		pass_table_ = {};	/* its table's memory, and what rows are staged and tables are built in: */
	Working		pass_space_ = {};	/* those of the largest pass, which others find enough */
	uint32_t	pass_pads_ = 0;	/* that are staged at a time */
	std::vector<Pass> pass_list_;
	std::optional<JoinWay> other_way_;
	uint64_t	build_bytes_ = 0;	/* of inner sides, as they are now */

	/* filters */
	bool		may_filter_ = false;	/* all of cursor 0's tablets have dead bits */
	std::vector<FilterKey> filters_;	/* that there are: of levels' keys, and behind them, where rows may be picked, those of `first` */
	std::vector<size_t> filter_levels_;	/* of the former */
	KeyFilter	filter_ = {};	/* those of them that are used, in order; none: rows are not filtered */
	uint32_t   *filter_words_ = nullptr;	/* device */
	RowSetState *listed_ = nullptr;	/* device: of lists that do not leave as they are */
	uint32_t   *picked_ = nullptr;	/* device: rows that filters left, of the slices at hand; nullptr: there is no such list */
	uint32_t	most_picked_ = 0, npicked_ = 0;
	std::vector<TableColumn> fetched_;	/* of a picked row, for level 0 */
	bool		fetches_all_ = false;	/* all rows are picked: there is no list, and it is known how many they are */
	bool		may_pick_ = false;	/* the filters that are used say all that `first` does */
	bool		picks_ = false;	/* what is left of the slices at hand is picked */
	bool		running_picked_ = false;	/* the levels see nothing but picked rows, and what came of them */

	/* pads of cursor 0 that were brought and filtered together: slices of `slice_pads` pads, and rows of each at most */
	uint32_t	slices_first_ = 0, slices_end_ = 0, slice_pads_ = 0;
	uint32_t	slice_rows_[FILTER_PARTS] = {};
	uint64_t	held_ = 0;		/* rows that level 0 has got, and not run, at most */

	/* what is used by one step after the other */
	uint32_t	batch_ = 0;
	uint32_t   *outer_[2] = {}, *inner_[2] = {};	/* lists of pairs */
	uint32_t	bit_pairs_ = 0;	/* that Level.pair_bits are for */
	uint32_t   *bits_ = nullptr;	/* of a batch of pairs */
	char	   *bits_scan_ = nullptr;
	char	   *columns_ = nullptr;	/* gathered */
	RowColumn	gathered_[MAX_COLUMNS];
	char	   *staging_ = nullptr;
	char	   *temp_ = nullptr;
	DevicePad  *pads_ = nullptr;	/* all of a row set's */
	DeviceTablet *tablet_ = nullptr;	/* the row set that is read, and behind it its chunks */
	DeviceChunk *chunks_ = nullptr;
	RowSet		out_ = {};		/* rows that leave */
	uint32_t	out_rows_ = 0;
	char	   *out_memory_ = nullptr;	/* of a row set that has grown */
	uint64_t	row_limit_;		/* with so many rows nothing more need be done; 0: all are needed, as with any order */
	uint32_t	part_ = 0;
};

}  // namespace cuda
}  // namespace gpuvm

#endif
