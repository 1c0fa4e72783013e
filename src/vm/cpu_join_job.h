/*
 * cpu_join_job.h: a join on the CPU (cpu_join.h), by way of the programs of one
 * cursor that join_split.h makes of its program. Private to cpu_join*.cc.
 *
 * A unit of cursor 0 goes through the levels a vector at a time. What comes into a
 * level is a batch of lanes (the Result of the program before); a level makes pairs
 * of them, up to a vector of these, and either the next level's batch takes what its
 * tail leaves of them, or they end there. Everything is kept in the state, so that a
 * unit can be left when its area is full and gone on with by any thread.
 *
 * Pairs of Seek are gathered: lanes' values and rows' values are copied to vectors
 * for the program. A nested loop instead takes a vector of lanes as it is and one row
 * after the other as constants (scalar columns), unless there are few lanes.
 */
#ifndef GPUVM_VM_CPU_JOIN_JOB_H
#define GPUVM_VM_CPU_JOIN_JOB_H

#include <algorithm>
#include <atomic>
#include <string>

#include "vm/cpu_hash_table.h"
#include "vm/cpu_join.h"
#include "vm/cpu_join_filter.h"
#include "vm/join_split.h"

namespace gpuvm::cpu_join {

constexpr uint32_t VECTOR = CPU_VECTOR_ROWS;
constexpr uint32_t BATCH_ROWS = 2 * VECTOR;	/* filled until there is a vector or more */
constexpr uint32_t NO_ROW = UINT32_MAX;
constexpr uint32_t ALL_RUNS = UINT32_MAX;
constexpr size_t NO_LEVEL = SIZE_MAX;
constexpr uint32_t JOIN_BINS = 256;	/* shares of the keys, of which a pass has some */

extern uint64_t join_room;	/* bytes that inner sides may take, if not 0. Tests set it */

constexpr uint32_t STOP_STEPS = 64;	/* vectors between looks at whether to stop */

/* A condition or a tail. */
struct Stage
{
	struct Column
	{
		bool		carried;	/* or payload */
		int			index;
	};

	std::unique_ptr<CpuProgram> program;
	std::vector<Column> columns;	/* by batch column */
	std::vector<ColumnChunk> chunks;
};

/* What is built of an inner side. Once all phases are over it does not change. */
struct InnerRows final : public JoinIndex
{
	uint64_t	memory() const override;

	std::vector<JoinColumn> columns;	/* keys, then payload */
	Pages		pages;			/* all of them */
	std::vector<JoinRun> runs;	/* of at least one row */
	uint64_t	reserved = 0;	/* rows */
	uint64_t	rows = 0;
	uint64_t	bytes = 0;		/* of the rows that are there */
	JoinTable	table;
	Pages		key_bits;		/* as in KeyFilter, if they were asked for by the join that built it */
};

/* Keys' words by value: one integer key has 2^shift of them in each of JOIN_BINS, or less. Others have none. */
struct ValueBins
{
	bool		any = false;
	uint64_t	lo = 0;
	int			shift = 0;

	/* Also of a word that no row has. */
	uint32_t	of(uint64_t word) const { return static_cast<uint32_t>(std::min<uint64_t>((word - lo) >> shift, JOIN_BINS - 1)); }
	uint64_t	width() const { return uint64_t(1) << shift; }
};

/* How a level's rows are dealt to passes: by the hash or the value of their keys, as all lanes are, or as they come. */
enum class Parting { Hash, Value, Tasks };

/* The rows of an inner cursor, as its build program leaves them. */
struct BuildSide
{
	struct Task
	{
		uint32_t	tablet;
		uint32_t	first, last;
		uint64_t	at;
		uint32_t	n;
		uint32_t	errors;
		uint32_t	total;		/* rows of all passes, if they were counted */
	};

	std::unique_ptr<CpuProgram> program;
	std::vector<ValueRange> ranges;	/* of the result columns */
	std::vector<Task> tasks;
	ValueBins	values;
	std::vector<uint32_t> bins;	/* if rows were counted: by task, Hash or Value, and JOIN_BINS; empty: there are no keys */
	uint64_t	bytes_a_row = 0;
	Pages		matched;		/* Full: bits, set by all states at once */
	uint64_t	matched_bytes = 0;
	std::string key;			/* as an index; empty: it is none */
	std::shared_ptr<InnerRows> building;	/* nullptr: it was an index before */
	std::shared_ptr<const InnerRows> built;	/* the same, or the index */

	uint64_t	bytes() const { return built->bytes + built->table.bytes() + matched_bytes; }
	bool nullable() const
	{
		return std::any_of(ranges.begin(), ranges.end(), [](const ValueRange &range) { return range.may_null; });
	}
};

/* Lanes on their way into a level. */
struct Batch
{
	std::vector<Type> types;
	std::vector<ResultColumnLayout> layout;
	std::unique_ptr<char, WorkerState::FreeDeleter> memory;
	uint32_t	rows = 0;

	char	   *values(int column) const { return memory.get() + layout[column].values; }
	uint64_t   *nulls(int column) const { return reinterpret_cast<uint64_t *>(memory.get() + layout[column].nulls); }
};

enum class Step { Pairs, Unmatched, Rest, Done };
enum class Progress { Ready, Exhausted, Full, Stopped };

struct LevelState
{
	Batch		in;
	std::unique_ptr<WorkerState> condition;
	std::unique_ptr<WorkerState> tail;
	std::vector<char *> condition_values, tail_values;	/* per batch column */
	std::vector<uint64_t *> condition_nulls, tail_nulls;
	std::unique_ptr<char, WorkerState::FreeDeleter> memory;

	Step		step = Step::Done;
	uint32_t	lane = 0;		/* the next */
	uint32_t	at = 0;			/* in what it found; of the run, when crossing and in Rest */
	uint32_t	round = 0;		/* sought: this round takes [round, round_end) of what each lane found, */
	uint32_t	round_end = 0;
	bool		more = false;	/* and some lane has more */
	bool		missing = false;	/* see JoinTable::probe() */
	uint32_t	run = 0;		/* crossing, Rest */
	uint32_t	run_end = 0;	/* Rest */
	uint32_t	vector = 0;		/* nested loop: its first lane */
	uint32_t	npairs = 0;
	uint32_t	lanes[VECTOR];
	uint32_t	rows[VECTOR];
	uint32_t	first[BATCH_ROWS];
	uint32_t	count[BATCH_ROWS];
	uint64_t	matched[BATCH_ROWS / 64];
};

class JoinState final : public CpuState
{
public:
	std::unique_ptr<WorkerState> first;
	std::unique_ptr<RowFilter> filter;	/* or none */
	std::vector<std::unique_ptr<LevelState>> levels;
	JoinStop   *stop = nullptr;
	uint32_t	until_stop = 0;
	uint64_t	pairs = 0;
	int			current = 0;	/* level that works; 0: none, rows of cursor 0 are next */

	/* the unit */
	size_t		rest = SIZE_MAX;	/* it is what full joins leave: the next level to look at, */
	uint32_t	rest_run = ALL_RUNS;	/* of one run or of all */
	const TabletHeader *tablet = nullptr;
	uint32_t	row = 0, last = 0;
	const MaskedRows *masked = nullptr;
	uint32_t	nmasked = 0;

	/* where its rows go */
	char	   *area = nullptr;
	uint32_t	capacity = 0;
	uint32_t	emitted = 0;

	bool		stopped()
	{
		if (stop == nullptr || until_stop-- > 0)
			return false;
		until_stop = STOP_STEPS;
		return stop->stopped();
	}
};

/* The first n lanes. */
void		lanes_below(uint64_t *live, uint32_t n);

class JoinProgram final : public CpuJoin
{
public:
	JoinProgram(const Program *program, const ParamValue *params, uint32_t nparams, const JoinCursor *cursors,
				const CodeMap *maps, const TextPattern *const *patterns, JoinIndexes *indexes, TextKeys *text_keys, bool may_pass, uint32_t shortages);

	uint32_t	begin_phase() override;
	bool		next_pass() override;
	void		run_task(uint32_t task, JoinStop *stop) override;
	const char *refusal() const override { return refusal_; }
	uint32_t	build_errors() const override { return build_errors_; }
	JoinFigures figures() const override { return figures_; }
	double		pairs_a_row() const override { return pairs_a_row_; }

	bool		can_skip(const TabletHeader *tablet) const override { return empty_ || first_->can_skip(tablet); }
	uint64_t	bytes_of(const TabletHeader *tablet) const override { return first_->bytes_of(tablet); }
	std::unique_ptr<CpuState> new_state() const override;
	CpuUnitOutcome run_rows(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
							char *area, uint32_t capacity, const MaskedRows *masked, uint32_t nmasked) const override;
	void		run_groups(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
						   const MaskedRows *masked, uint32_t nmasked) const override;
	void		set_stop(CpuState *state, JoinStop *stop) const override;
	void		set_spill(CpuState *state, Spill *spill) const override { end()->set_spill(end_state(state), spill); }
	uint64_t	pairs(const CpuState *state) const override { return static_cast<const JoinState *>(state)->pairs; }
	void		begin_unit(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
						   const MaskedRows *masked, uint32_t nmasked) const override;
	JoinPart	run_part(CpuState *state, char *area, uint32_t capacity) const override;
	uint32_t	rest_parts() const override;
	void		begin_rest(CpuState *state) const override;
	void		run_rest_groups(CpuState *state, uint32_t part) const override;

	void		merge(CpuState *into, CpuState *from) const override;
	uint32_t	begin_merge(CpuState *const *states, uint32_t n) const override;
	void		merge_part(CpuState *const *states, uint32_t n, uint32_t part) const override;
	uint32_t	finish(CpuState *state) const override { return end()->finish(end_state(state)); }
	uint64_t	ngroups(const CpuState *state) const override { return end()->ngroups(end_state(state)); }
	uint32_t	emit_groups(const CpuState *state, uint64_t from, char *area, uint32_t capacity) const override
	{
		return end()->emit_groups(end_state(state), from, area, capacity);
	}

private:
	struct Level
	{
		const JoinLevel *split;
		BuildSide	side;
		Stage		condition;
		Stage		tail;
		std::vector<ColumnSummary> carried;
		bool		loop;		/* a nested loop over vectors of lanes */
		bool		factor = false;	/* the number of a lane's rows is all that the end asks of them: pairs are not made */
	};

	static JoinState &of(CpuState *state) { return *static_cast<JoinState *>(state); }
	const CpuProgram *end() const { return levels_.back()->tail.program.get(); }
	CpuState   *end_state(const CpuState *state) const { return static_cast<const JoinState *>(state)->levels.back()->tail.get(); }
	bool		grouped() const { return program_->grouped; }

	void		split();
	bool		side_may_raise(const JoinStage &stage, const JoinCursor &cursor) const;
	static bool exists_only(const JoinLevel &split)
	{
		return !split.condition.present() && (split.kind == JoinKind::Semi || split.kind == JoinKind::Anti);
	}
	void		find_index(size_t level);
	void		keep_indexes();
	void		list_tasks(size_t level);
	void		take_pages(size_t level);
	void		task_rows(Level &level, BuildSide::Task &task);
	bool		rows_done();
	void		count_bytes();
	uint64_t	bytes_of_task(const BuildSide &side, const BuildSide::Task &task) const;

	/* cpu_join_passes.cc */
	uint64_t	memory_for(uint64_t wanted) const;
	uint64_t	room(uint64_t wanted) const;
	bool		counts_first() const;
	void		begin_counting();
	static void drop_rows(BuildSide *side);
	static uint64_t bytes_of_rows(const Level &level, uint64_t rows);
	static bool has_bins(const Level &level);
	static uint64_t rows_counted(const Level &level);
	static size_t bin_place(size_t task, Parting by) { return (task * 2 + (by == Parting::Value)) * JOIN_BINS; }
	uint32_t	bin_of(const Level &level, uint64_t word) const;
	static void choose_bins(Level &level);
	std::vector<uint64_t> bytes_of_parts(const Level &level, Parting by) const;
	uint64_t	bytes_counted(const Level &level) const;
	bool		is_parted(const Level &level) const { return parted_ != NO_LEVEL && levels_[parted_].get() == &level; }
	/* A pass has lanes and rows of its own then, not rows alone. */
	bool		is_parted_by_key(const Level &level) const { return is_parted(level) && by_ != Parting::Tasks; }
	uint32_t	pass_first() const { return pass_ == 0 ? 0 : pass_ends_[pass_ - 1]; }
	uint32_t	pass_end() const { return parted_ == NO_LEVEL ? 0 : pass_ends_[pass_]; }
	/* What full joins leave of the levels behind the parted one goes on in the last pass. */
	size_t		rest_levels() const { return pass_ + 1 < pass_ends_.size() ? parted_ + 1 : levels_.size(); }
	template <typename F>
	void		each_step(const Level &level, BuildSide::Task &task, RowFilter *filter, F f) const;
	void		count_rows_of(Level &level, size_t task);
	void		build_counted(Level &level, BuildSide::Task &task);
	uint32_t	rows_in_pass(const Level &level, size_t task) const;
	void		place_counted(size_t level);
	static std::vector<uint32_t> part(const std::vector<uint64_t> &counts, uint64_t most);
	void		plan_passes();
	bool		begin_counted();
	bool		try_parts(size_t level, uint64_t most);
	KeyFilter	pass_filter(size_t column) const;
	std::vector<KeyFilter> pass_filters(const Level &level) const;
	bool		is_other_pass(const TabletHeader *tablet) const;
	void		drop_lanes(const Level &level, LevelState &l, const JoinColumn *keys, size_t nkeys) const;

	void		lower();
	void		make_filters();
	static void fill_filter(const InnerRows &rows, const KeyFilter &filter, Pages *bits);
	void		lower_stage(size_t level, const JoinStage &from, Stage *to, uint64_t total_rows, bool scalars, bool tail);
	std::vector<ValueRange> result_ranges(const CpuProgram &program) const;

	void		make_batch(Batch *batch, const std::vector<int> &items) const;
	void		make_vectors(const Stage &stage, std::vector<char *> *values, std::vector<uint64_t *> *nulls, char **at) const;
	void		begin_level(JoinState &s, size_t level) const;
	Progress	advance(JoinState &s) const;
	Progress	advance_level(JoinState &s, size_t level) const;
	Progress	loop_rows(JoinState &s, size_t level) const;
	bool		is_factor(size_t level, uint64_t pairs) const;
	Progress	count_rows(JoinState &s, size_t level) const;
	bool		find_pairs(JoinState &s, size_t level) const;
	bool		cross_pairs(const Level &level, LevelState &l) const;
	bool		sought_pairs(const Level &level, LevelState &l) const;
	void		take_condition(JoinState &s, size_t level) const;
	bool		unmatched_lanes(const Level &level, LevelState &l) const;
	bool		unmatched_rows(const Level &level, LevelState &l) const;
	static void mark_row(const Level &level, uint32_t row);
	void		empty_batches(JoinState &s) const;
	void		gather(const Level &level, const Stage &stage, LevelState &l, WorkerState &w,
					   const std::vector<char *> &values, const std::vector<uint64_t *> &nulls) const;
	bool		has_room(const JoinState &s, size_t level) const;
	void		run_tail(JoinState &s, size_t level, uint32_t row, uint32_t n) const;
	void		set_row(const Level &level, const Stage &stage, WorkerState &w, uint32_t row) const;
	void		point_at_lanes(const Stage &stage, const Batch &in, WorkerState &w) const;
	uint32_t	errors_of(const JoinState &s) const;

	const Program *program_;
	const ParamValue *params_;
	uint32_t	nparams_;
	const CodeMap *maps_;
	TextKeys   *text_keys_;
	const JoinCursor *cursors_;
	JoinIndexes *indexes_;
	JoinSplit	split_;
	std::unique_ptr<CpuProgram> first_;
	std::vector<std::unique_ptr<Level>> levels_;
	std::vector<KeyFilter> filters_;
	const char *refusal_ = nullptr;
	uint32_t	build_errors_ = 0;
	JoinFigures figures_ = {};
	double		pairs_a_row_ = 1;
	bool		empty_ = false;	/* no row can come out, but for what Left and Anti let go on */
	std::vector<Type> result_types_;

	/* phases */
	enum class Phase { Begin, Count, NextPass, Rows, Tables, Done };
	Phase		phase_ = Phase::Begin;
	size_t		table_ = 0;		/* whose phase it is */
	std::vector<std::pair<size_t, size_t>> row_tasks_;	/* level, its task */

	/* passes */
	const bool	may_pass_;
	const uint32_t shortages_;	/* how often the job found no memory with all there is */
	bool		counted_ = false;	/* tasks know how many rows they have, and these lie close together */
	size_t		parted_ = NO_LEVEL;	/* the level that is built in passes, */
	Parting		by_ = Parting::Hash;	/* of it */
	int			parted_column_ = -1;	/* Value: cursor 0's that lanes' keys are, or -1 */
	static constexpr size_t NO_FILTER = SIZE_MAX;
	size_t		pass_filter_ = NO_FILTER;	/* of filters_, that leaves out what other passes have */
	std::vector<uint32_t> pass_ends_;	/* where each ends; empty: there is one, of all */
	size_t		pass_ = 0;
};

}  // namespace gpuvm::cpu_join

#endif
