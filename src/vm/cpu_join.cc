/*
 * cpu_join.cc: join programs on the CPU (cpu_join.h), by way of the programs of
 * one cursor that join_split.h makes of them.
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
#include "vm/cpu_join.h"

#include <algorithm>
#include <cstring>

#include "vm/cpu_hash_table.h"
#include "vm/join_split.h"

namespace gpuvm {

namespace {

constexpr uint32_t VECTOR = CPU_VECTOR_ROWS;
constexpr uint32_t BATCH_ROWS = 2 * VECTOR;	/* filled until there is a vector or more */
constexpr uint32_t BUILD_ROWS = 64 * 1024;	/* a task */
constexpr uint64_t FEW_LANES = 256;	/* so many rows of cursor 0 are no vectors to loop over */
constexpr uint32_t NO_ROW = UINT32_MAX;
constexpr uint64_t HUGE_FROM = 4 << 20;
constexpr uint32_t FIRST_ROUND = 4;	/* rows that a lane which needs one match tries first; */
constexpr uint32_t NEXT_ROUND = 4;	/* the next round ends so many times as far */
constexpr uint32_t STOP_STEPS = 64;	/* vectors between looks at whether to stop */
constexpr uint64_t MOST_ROWS = uint64_t(1) << 62;

/* What is known of a value, as the summary of a column. */
ColumnSummary
summary_of(const ValueRange &range, Type type, bool nullable)
{
	ColumnSummary s = {};

	s.type = type;
	s.max_width = static_cast<uint8_t>(type_width(type));
	if (range.may_null || nullable)
	{
		s.flags |= CHUNK_HAS_NULLS;
		s.null_count = 1;
	}
	if (!range.may_value)
		s.flags |= CHUNK_ALL_NULL;
	if (type_is_float(type))
	{
		s.flags |= static_cast<uint16_t>((range.may_nan ? CHUNK_HAS_NAN : 0) | (range.may_inf ? CHUNK_HAS_INF : 0) | CHUNK_HAS_NEG_ZERO);
		s.exp_lo = static_cast<int16_t>(range.exp_lo);
		s.exp_hi = static_cast<int16_t>(range.exp_hi);
		memcpy(&s.min, &range.flo, sizeof(s.min));
		memcpy(&s.max, &range.fhi, sizeof(s.max));
	}
	else if (type == Type::Bool)
	{
		s.min = range.may_true && !range.may_false;
		s.max = range.may_true;
	}
	else
	{
		s.min = range.lo;
		s.max = range.hi;
	}
	return s;
}

ColumnChunk
chunk_of(const ColumnSummary &s)
{
	ColumnChunk c = {};

	c.type = s.type;
	c.encoding = Encoding::Fixed;
	c.width = static_cast<uint8_t>(type_width(s.type));
	c.flags = s.flags;
	c.null_count = static_cast<uint32_t>(s.null_count);
	c.exp_hi = s.exp_hi;
	c.exp_lo = s.exp_lo;
	c.min = s.min;
	c.max = s.max;
	return c;
}

uint64_t
saturating_product(uint64_t a, uint64_t b)
{
	const uint128 p = static_cast<uint128>(a) * b;

	return p > MOST_ROWS ? MOST_ROWS : static_cast<uint64_t>(p);
}

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
	};

	std::unique_ptr<CpuProgram> program;
	std::vector<ValueRange> ranges;	/* of the result columns */
	std::vector<JoinColumn> columns;	/* keys, then payload */
	Pages		memory;			/* all of them */
	std::vector<Task> tasks;
	std::vector<JoinRun> runs;	/* of at least one row */
	uint64_t	reserved = 0;	/* rows */
	uint64_t	rows = 0;
	uint64_t	bytes = 0;
	JoinTable	table;
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

enum class Step { Pairs, Unmatched, Done };
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
	uint32_t	at = 0;			/* in what it found; of the run, when crossing */
	uint32_t	round = 0;		/* sought: this round takes [round, round_end) of what each lane found, */
	uint32_t	round_end = 0;
	bool		more = false;	/* and some lane has more */
	uint32_t	run = 0;		/* crossing */
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
	std::vector<std::unique_ptr<LevelState>> levels;
	JoinStop   *stop = nullptr;
	uint32_t	until_stop = 0;
	uint64_t	pairs = 0;
	int			current = 0;	/* level that works; 0: none, rows of cursor 0 are next */

	/* the unit */
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

template <typename V>
void
gather_values(const char *from, const uint32_t *index, uint32_t n, char *to)
{
	const V    *v = reinterpret_cast<const V *>(from);
	V		   *d = reinterpret_cast<V *>(to);

	for (uint32_t i = 0; i < n; i++)
		d[i] = v[index[i]];
}

void
gather_column(int width, const char *from, const uint32_t *index, uint32_t n, char *to)
{
	switch (width)
	{
		case 1: gather_values<uint8_t>(from, index, n, to); break;
		case 4: gather_values<uint32_t>(from, index, n, to); break;
		default: gather_values<uint64_t>(from, index, n, to); break;
	}
}

void
lanes_below(uint64_t *live, uint32_t n)
{
	for (uint32_t w = 0; w < CPU_WORDS; w++)
		live[w] = n <= 64 * w ? 0 : low_bits(std::min(n - 64 * w, 64u));
}

class JoinProgram final : public CpuJoin
{
public:
	JoinProgram(const Program *program, const ParamValue *params, uint32_t nparams, const JoinCursor *cursors, uint64_t build_limit);

	uint32_t	begin_phase() override;
	void		run_task(uint32_t task) override;
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
	void		set_stop(CpuState *state, JoinStop *stop) const override { of(state).stop = stop; }
	uint64_t	pairs(const CpuState *state) const override { return static_cast<const JoinState *>(state)->pairs; }
	void		begin_unit(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
						   const MaskedRows *masked, uint32_t nmasked) const override;
	JoinPart	run_part(CpuState *state, char *area, uint32_t capacity) const override;

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
	};

	static JoinState &of(CpuState *state) { return *static_cast<JoinState *>(state); }
	const CpuProgram *end() const { return levels_.back()->tail.program.get(); }
	CpuState   *end_state(const CpuState *state) const { return static_cast<const JoinState *>(state)->levels.back()->tail.get(); }
	bool		grouped() const { return program_->grouped; }

	void		lay_out_side(size_t level);
	void		task_rows(Level &level, BuildSide::Task &task);
	bool		rows_done();
	void		lower();
	void		lower_stage(size_t level, const JoinStage &from, Stage *to, uint64_t total_rows, bool scalars);
	std::vector<ValueRange> result_ranges(const CpuProgram &program) const;

	void		make_batch(Batch *batch, const std::vector<int> &items) const;
	void		make_vectors(const Stage &stage, std::vector<char *> *values, std::vector<uint64_t *> *nulls, char **at) const;
	void		begin_level(JoinState &s, size_t level) const;
	Progress	advance(JoinState &s) const;
	Progress	advance_level(JoinState &s, size_t level) const;
	Progress	loop_rows(JoinState &s, size_t level) const;
	bool		find_pairs(JoinState &s, size_t level) const;
	bool		cross_pairs(const Level &level, LevelState &l) const;
	bool		sought_pairs(const Level &level, LevelState &l) const;
	void		take_condition(JoinState &s, size_t level) const;
	bool		unmatched_lanes(const Level &level, LevelState &l) const;
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
	const JoinCursor *cursors_;
	uint64_t	limit_;
	JoinSplit	split_;
	std::unique_ptr<CpuProgram> first_;
	std::vector<std::unique_ptr<Level>> levels_;
	const char *refusal_ = nullptr;
	uint32_t	build_errors_ = 0;
	JoinFigures figures_ = {};
	double		pairs_a_row_ = 1;
	bool		empty_ = false;	/* no row can come out, but for what Left and Anti let go on */
	std::vector<Type> result_types_;

	/* phases */
	enum class Phase { Begin, Rows, Tables, Done };
	Phase		phase_ = Phase::Begin;
	size_t		table_ = 0;		/* whose phase it is */
	std::vector<std::pair<size_t, size_t>> row_tasks_;	/* level, its task */
};

/* ---- making it --------------------------------------------------------------------------- */

JoinProgram::JoinProgram(const Program *program, const ParamValue *params, uint32_t nparams, const JoinCursor *cursors,
						 uint64_t build_limit)
	: program_(program), params_(params), nparams_(nparams), cursors_(cursors), limit_(build_limit)
{
	split_join(program, &split_);
	refusal_ = split_.failure;
	if (refusal_)
		return;
	first_ = std::make_unique<CpuProgram>(split_.first.program(), params, nparams, cursors[0].columns, cursors[0].ncols,
										  cursors[0].total_rows);
	for (size_t i = 0; i < split_.levels.size(); i++)
	{
		const JoinLevel &from = split_.levels[i];
		const JoinCursor &cursor = cursors[i + 1];

		levels_.push_back(std::make_unique<Level>());
		levels_[i]->split = &from;
		levels_[i]->side.program = std::make_unique<CpuProgram>(from.build.program(), params, nparams, cursor.columns,
																cursor.ncols, cursor.total_rows);
		levels_[i]->side.ranges = result_ranges(*levels_[i]->side.program);
		levels_[i]->loop = !from.sought && cursors[0].total_rows >= FEW_LANES
			&& (from.kind == JoinKind::Inner || from.condition.present());
	}
	result_types_.resize(program->nresults);
	program_result_types(program, result_types_.data());
}

std::vector<ValueRange>
JoinProgram::result_ranges(const CpuProgram &of) const
{
	std::vector<ValueRange> ranges;

	for (int i = of.program->parallel; i < of.program->converge; i++)
	{
		const Op   &op = of.program->ops()[i];

		if (op.opcode == Opcode::Result)
			for (int c = 0; c < op.p2; c++)
				ranges.push_back(of.ranges[op.p1 + c]);
	}
	return ranges;
}

/* Where the rows of each task will lie, if all are left. */
void
JoinProgram::lay_out_side(size_t level)
{
	BuildSide  &side = levels_[level]->side;
	const JoinCursor &cursor = cursors_[level + 1];
	const std::vector<Type> &types = side.program->result_types;
	bool		nullable = false;
	uint64_t	at = 0, bytes_a_row = 0;

	for (const ValueRange &range : side.ranges)
		nullable = nullable || range.may_null;
	for (uint32_t t = 0; t < cursor.tablets.size(); t++)
	{
		const JoinTablet &tablet = cursor.tablets[t];
		const uint32_t nrows = tablet.tablet->nrows;

		if (masked_count(tablet.masked, tablet.nmasked, 0, nrows) == nrows || side.program->can_skip(tablet.tablet))
			continue;
		figures_.build_bytes_read += side.program->bytes_of(tablet.tablet);
		for (uint32_t first = 0; first < nrows; first += BUILD_ROWS)
			side.tasks.push_back(BuildSide::Task{t, first, std::min(nrows, first + BUILD_ROWS), at + first, 0, 0});
		/* no two tasks share a word of nulls */
		at += nullable ? align_up(nrows, 64) : nrows;
	}
	side.reserved = at;
	for (size_t c = 0; c < types.size(); c++)
		bytes_a_row += static_cast<uint64_t>(type_width(types[c])) + (side.ranges[c].may_null ? 1 : 0);
	side.bytes = at * bytes_a_row;
	if (at >= NO_ROW - 1)
		refusal_ = "an inner side of the join has too many rows";
	else if (limit_ > 0 && side.bytes > limit_)
		refusal_ = "an inner side of the join takes more memory than it may";
	if (refusal_)
		return;

	std::vector<ResultColumnLayout> layout(types.size() + 1);
	const uint64_t bytes = result_layout(types.data(), static_cast<int>(types.size()),
										 static_cast<uint32_t>(align_up(at + 1, VECTOR)), layout.data());

	if (types.empty())
		return;
	side.memory = Pages(bytes, bytes >= HUGE_FROM);
	for (size_t c = 0; c < types.size(); c++)
		side.columns.push_back(JoinColumn{types[c], side.memory.as<char>() + layout[c].values,
										  side.ranges[c].may_null ? reinterpret_cast<uint64_t *>(side.memory.as<char>() + layout[c].nulls)
										  : nullptr});
}

void
JoinProgram::task_rows(Level &level, BuildSide::Task &task)
{
	BuildSide  &side = level.side;
	const JoinTablet &tablet = cursors_[level.split - split_.levels.data() + 1].tablets[task.tablet];
	std::unique_ptr<CpuState> state = side.program->new_state();
	WorkerState &s = static_cast<WorkerState &>(*state);
	std::vector<ResultColumnLayout> layout(side.columns.size() + 1);

	/* an area that begins with the task's first row */
	s.area = side.memory.as<char>();
	for (size_t c = 0; c < side.columns.size(); c++)
	{
		const JoinColumn &column = side.columns[c];

		layout[c].values = static_cast<uint64_t>(column.values - s.area) + task.at * type_width(column.type);
		layout[c].nulls = column.nulls ? static_cast<uint64_t>(reinterpret_cast<const char *>(column.nulls) - s.area) + task.at / 8 : 0;
	}
	s.layout = layout.data();
	s.emitted = 0;
	if (!side.program->bind(s, tablet.tablet))
		s.errors |= ERR_INT_OVERFLOW;
	else
		side.program->run_bound(s, task.first, task.last, tablet.masked, tablet.nmasked);
	task.n = s.emitted;
	task.errors = s.errors;
}

/* All rows are there: counts them, and begins the tables. False: there will be none. */
bool
JoinProgram::rows_done()
{
	for (std::unique_ptr<Level> &level : levels_)
	{
		BuildSide  &side = level->side;

		for (const BuildSide::Task &task : side.tasks)
		{
			build_errors_ |= task.errors;
			side.rows += task.n;
			if (task.n > 0)
				side.runs.push_back(JoinRun{task.at, task.n});
		}
		figures_.build_rows += side.rows;
		figures_.build_bytes += side.bytes;
		if (side.rows == 0 && (level->split->kind == JoinKind::Inner || level->split->kind == JoinKind::Semi))
			empty_ = true;
		if (level->split->sought)
			side.table.set_rows({side.columns.begin(), side.columns.begin() + level->split->key_types.size()}, side.runs);
	}
	return build_errors_ == 0;
}

uint32_t
JoinProgram::begin_phase()
{
	if (refusal_ || phase_ == Phase::Done)
		return 0;
	if (phase_ == Phase::Begin)
	{
		phase_ = Phase::Rows;
		for (size_t i = 0; i < levels_.size() && !refusal_; i++)
		{
			lay_out_side(i);
			for (size_t t = 0; t < levels_[i]->side.tasks.size(); t++)
				row_tasks_.emplace_back(i, t);
		}
		if (refusal_)
			return 0;
		if (!row_tasks_.empty())
			return static_cast<uint32_t>(row_tasks_.size());
	}
	if (phase_ == Phase::Rows)
	{
		phase_ = Phase::Tables;
		if (!rows_done())
		{
			phase_ = Phase::Done;
			return 0;
		}
	}
	for (; table_ < levels_.size(); table_++)
	{
		Level	   &level = *levels_[table_];

		if (!level.split->sought)
			continue;

		const uint32_t n = level.side.table.begin_phase();
		uint64_t	bytes = 0;

		for (const std::unique_ptr<Level> &of : levels_)
			bytes += of->side.bytes + of->side.table.bytes();
		figures_.build_bytes = bytes;
		if (limit_ > 0 && bytes > limit_)
		{
			refusal_ = "an inner side of the join takes more memory than it may";
			return 0;
		}
		if (n > 0)
			return n;
	}
	phase_ = Phase::Done;
	lower();
	return 0;
}

void
JoinProgram::run_task(uint32_t task)
{
	if (phase_ == Phase::Rows)
		task_rows(*levels_[row_tasks_[task].first], levels_[row_tasks_[task].first]->side.tasks[row_tasks_[task].second]);
	else
		levels_[table_]->side.table.run_task(task);
}

void
JoinProgram::lower_stage(size_t number, const JoinStage &from, Stage *to, uint64_t total_rows, bool scalars)
{
	const Level &level = *levels_[number];
	const JoinLevel &split = *level.split;
	std::vector<ColumnSummary> summaries;
	std::vector<uint8_t> scalar;

	for (int item : from.columns)
	{
		const auto	carried = std::find(split.carried.begin(), split.carried.end(), item);
		const bool	is_carried = carried != split.carried.end();
		const int	index = static_cast<int>(is_carried ? carried - split.carried.begin()
											 : std::find(split.payload.begin(), split.payload.end(), item) - split.payload.begin()
											 + split.key_types.size());

		to->columns.push_back(Stage::Column{is_carried, index});
		summaries.push_back(is_carried ? level.carried[index]
							: summary_of(level.side.ranges[index], split_.items[item].type, split.kind == JoinKind::Left));
		to->chunks.push_back(chunk_of(summaries.back()));
		scalar.push_back(scalars && !is_carried);
	}
	to->program = std::make_unique<CpuProgram>(from.program(), params_, nparams_, summaries.data(),
											   static_cast<uint32_t>(summaries.size()), total_rows, scalar.data());
}

/* The programs over pairs: what is known now bounds what they will see. */
void
JoinProgram::lower()
{
	std::vector<ValueRange> ranges = result_ranges(*first_);
	uint64_t	rows = std::max<uint64_t>(cursors_[0].total_rows, 1);

	for (size_t i = 0; i < levels_.size(); i++)
	{
		Level	   &level = *levels_[i];
		const JoinLevel &split = *level.split;
		const uint64_t each = split.sought ? level.side.table.max_matches() : level.side.rows;

		for (size_t c = 0; c < split.carried.size(); c++)
			level.carried.push_back(summary_of(ranges[c], split_.items[split.carried[c]].type, false));
		if (split.condition.present())
			lower_stage(i, split.condition, &level.condition, saturating_product(rows, std::max<uint64_t>(each, 1)), level.loop);
		if (!split.sought)
			pairs_a_row_ *= std::max<double>(1, static_cast<double>(each));
		if (split.kind == JoinKind::Inner || split.kind == JoinKind::Left)
			rows = saturating_product(rows, std::max<uint64_t>(each, 1));
		lower_stage(i, split.tail, &level.tail, rows, level.loop && split.kind == JoinKind::Inner);
		if (i + 1 < levels_.size())
			ranges = result_ranges(*level.tail.program);
	}
}

/* ---- a worker's state ---------------------------------------------------------------------- */

void
JoinProgram::make_batch(Batch *batch, const std::vector<int> &items) const
{
	for (int item : items)
		batch->types.push_back(split_.items[item].type);
	batch->layout.resize(items.size() + 1);

	const uint64_t bytes = result_layout(batch->types.data(), static_cast<int>(items.size()), BATCH_ROWS, batch->layout.data()) + 64;

	batch->memory.reset(static_cast<char *>(aligned_alloc(64, bytes)));
	if (!batch->memory)
		throw std::bad_alloc();
	memset(batch->memory.get(), 0, bytes);
}

/* Vectors to gather into, one for each column, from *at on. */
void
JoinProgram::make_vectors(const Stage &stage, std::vector<char *> *values, std::vector<uint64_t *> *nulls, char **at) const
{
	for (size_t i = 0; i < stage.columns.size(); i++)
	{
		values->push_back(*at);
		nulls->push_back(reinterpret_cast<uint64_t *>(*at + VECTOR * 8));
		*at += VECTOR * 8 + VECTOR / 8;
	}
}

std::unique_ptr<CpuState>
JoinProgram::new_state() const
{
	auto		state = std::make_unique<JoinState>();

	state->first = std::make_unique<WorkerState>(*first_);
	for (const std::unique_ptr<Level> &level : levels_)
	{
		auto		l = std::make_unique<LevelState>();
		const size_t bytes = (level->condition.columns.size() + level->tail.columns.size()) * (VECTOR * 8 + VECTOR / 8) + 64;

		make_batch(&l->in, level->split->carried);
		l->memory.reset(static_cast<char *>(aligned_alloc(64, bytes)));
		if (!l->memory)
			throw std::bad_alloc();
		memset(l->memory.get(), 0, bytes);

		char	   *at = l->memory.get();

		if (level->condition.program)
		{
			l->condition = std::make_unique<WorkerState>(*level->condition.program);
			level->condition.program->bind_vectors(*l->condition, level->condition.chunks.data());
			make_vectors(level->condition, &l->condition_values, &l->condition_nulls, &at);
		}
		l->tail = std::make_unique<WorkerState>(*level->tail.program);
		level->tail.program->bind_vectors(*l->tail, level->tail.chunks.data());
		make_vectors(level->tail, &l->tail_values, &l->tail_nulls, &at);
		state->levels.push_back(std::move(l));
	}
	return state;
}

/* ---- pairs ------------------------------------------------------------------------------------ */

/* Its batch is complete. */
void
JoinProgram::begin_level(JoinState &s, size_t number) const
{
	const Level &level = *levels_[number];
	LevelState &l = *s.levels[number];

	l.step = Step::Pairs;
	l.lane = l.at = l.run = l.vector = l.npairs = 0;
	memset(l.matched, 0, sizeof(l.matched));

	const bool	once = level.split->kind == JoinKind::Semi || level.split->kind == JoinKind::Anti;

	l.round = 0;
	l.round_end = once ? FIRST_ROUND : UINT32_MAX;
	l.more = false;
	if (!level.split->sought)
	{
		if (!level.condition.program && once)
		{
			/* any row will do */
			if (level.side.rows > 0)
				memset(l.matched, 0xff, sizeof(l.matched));
			l.step = Step::Unmatched;
		}
		return;
	}

	std::vector<JoinColumn> keys;

	for (int place : level.split->probe)
		keys.push_back(JoinColumn{l.in.types[place], l.in.values(place),
								  level.carried[place].null_count > 0 ? l.in.nulls(place) : nullptr});
	level.side.table.probe(keys.data(), l.in.rows, l.first, l.count);
	if (!level.side.table.exact())
		return;

	/* what only has to exist is known */
	if (!level.condition.program && once)
	{
		for (uint32_t i = 0; i < l.in.rows; i++)
			if (l.count[i] > 0)
				bit_set(l.matched, i);
		l.step = Step::Unmatched;
	}
}

/*
 * Fills lanes and rows from what the lanes found; false: there was nothing left. Lanes
 * that need one match try a few rows each, and more only where none of these was one.
 */
bool
JoinProgram::sought_pairs(const Level &level, LevelState &l) const
{
	const JoinTable &table = level.side.table;
	const uint32_t *order = table.order();
	const bool	once = level.split->kind == JoinKind::Semi || level.split->kind == JoinKind::Anti;
	uint32_t	n = 0;

	if (table.max_matches() <= 1 && table.exact())
	{
		/* one row or none a lane */
		const uint32_t end = std::min(l.in.rows, l.lane + VECTOR);

		for (uint32_t lane = l.lane; lane < end; lane++)
		{
			l.lanes[n] = lane;
			l.rows[n] = l.first[lane];
			n += l.count[lane];
		}
		l.lane = end;
		if (order)
			for (uint32_t i = 0; i < n; i++)
				l.rows[i] = order[l.rows[i]];
		l.npairs = n;
		return n > 0 || end < l.in.rows;
	}

	std::vector<JoinColumn> keys;

	if (!table.exact())
		for (int place : level.split->probe)
			keys.push_back(JoinColumn{l.in.types[place], l.in.values(place), nullptr});
	for (;;)
	{
		if (l.lane >= l.in.rows)
		{
			/* a round ends with its pairs: they may be matches */
			if (n > 0 || !l.more)
				break;
			l.round = l.round_end;
			l.round_end = l.round > UINT32_MAX / NEXT_ROUND ? UINT32_MAX : l.round * NEXT_ROUND;
			l.more = false;
			l.lane = 0;
			l.at = l.round;
		}

		const bool	done = once && bit_get(l.matched, l.lane);
		const uint32_t end = done ? 0 : std::min(l.count[l.lane], l.round_end);

		for (; l.at < end && n < VECTOR; l.at++)
		{
			const uint32_t row = order ? order[l.first[l.lane] + l.at] : l.first[l.lane] + l.at;

			l.lanes[n] = l.lane;
			l.rows[n] = row;
			n += keys.empty() || table.same_keys(row, keys.data(), l.lane);
		}
		if (l.at < end)
			break;
		l.more = l.more || (!done && end < l.count[l.lane]);
		l.lane++;
		l.at = l.round;
	}
	l.npairs = n;
	return n > 0;
}

/* The same, of every row. */
bool
JoinProgram::cross_pairs(const Level &level, LevelState &l) const
{
	const std::vector<JoinRun> &runs = level.side.runs;
	const bool	once = level.split->kind == JoinKind::Semi || level.split->kind == JoinKind::Anti;
	uint32_t	n = 0;

	for (; l.lane < l.in.rows && n < VECTOR; l.lane++, l.run = l.at = 0)
	{
		if (once && bit_get(l.matched, l.lane))
			continue;
		for (; l.run < runs.size() && n < VECTOR; l.run++, l.at = 0)
		{
			const JoinRun &run = runs[l.run];
			const uint32_t take = std::min(run.n - l.at, VECTOR - n);

			for (uint32_t i = 0; i < take; i++)
			{
				l.lanes[n] = l.lane;
				l.rows[n++] = static_cast<uint32_t>(run.at + l.at + i);
			}
			l.at += take;
			if (l.at < run.n)
				break;
		}
		if (l.run < runs.size())
			break;
	}
	l.npairs = n;
	return n > 0;
}

bool
JoinProgram::unmatched_lanes(const Level &level, LevelState &l) const
{
	const bool	want = level.split->kind == JoinKind::Semi;
	uint32_t	n = 0;

	for (; l.lane < l.in.rows && n < VECTOR; l.lane++)
	{
		l.lanes[n] = l.lane;
		l.rows[n] = NO_ROW;
		n += bit_get(l.matched, l.lane) == want;
	}
	l.npairs = n;
	return n > 0;
}

/* Copies the pairs' values to the stage's vectors. */
void
JoinProgram::gather(const Level &level, const Stage &stage, LevelState &l, WorkerState &w,
					const std::vector<char *> &values, const std::vector<uint64_t *> &nulls) const
{
	const uint32_t n = l.npairs;
	const bool	no_rows = n > 0 && l.rows[0] == NO_ROW;	/* all or none */
	const bool	in_place = n > 0 && l.lanes[0] % VECTOR == 0 && l.lanes[n - 1] - l.lanes[0] == n - 1
		&& level.split->sought && level.side.table.max_matches() <= 1;

	for (BoundColumn &bound : w.columns)
	{
		const int	number = static_cast<int>(bound.chunk - stage.chunks.data());
		const Stage::Column &column = stage.columns[number];
		const int	width = type_width(bound.chunk->type);
		const uint64_t *from_nulls = nullptr;
		const uint32_t *index = column.carried ? l.lanes : l.rows;

		bound.nulls = nullptr;
		if (column.carried)
		{
			const bool	nullable = level.carried[column.index].null_count > 0;

			if (in_place)
			{
				bound.data = l.in.values(column.index) + size_t(l.lanes[0]) * width;
				bound.nulls = nullable ? l.in.nulls(column.index) + l.lanes[0] / 64 : nullptr;
				continue;
			}
			gather_column(width, l.in.values(column.index), index, n, values[number]);
			from_nulls = nullable ? l.in.nulls(column.index) : nullptr;
		}
		else if (no_rows)
		{
			memset(values[number], 0, VECTOR * width);
			memset(nulls[number], 0xff, VECTOR / 8);
			bound.nulls = nulls[number];
		}
		else
		{
			gather_column(width, level.side.columns[column.index].values, index, n, values[number]);
			from_nulls = level.side.columns[column.index].nulls;
		}
		bound.data = values[number];
		if (from_nulls)
		{
			memset(nulls[number], 0, VECTOR / 8);
			for (uint32_t i = 0; i < n; i++)
				nulls[number][i / 64] |= static_cast<uint64_t>(bit_get(from_nulls, index[i])) << i % 64;
			bound.nulls = nulls[number];
		}
	}
}

/* Runs the condition over the pairs, and leaves those that match. */
void
JoinProgram::take_condition(JoinState &s, size_t number) const
{
	const Level &level = *levels_[number];
	LevelState &l = *s.levels[number];
	uint32_t	n = 0;

	if (level.condition.program)
	{
		WorkerState &w = *l.condition;

		gather(level, level.condition, l, w, l.condition_values, l.condition_nulls);
		lanes_below(w.live, l.npairs);
		level.condition.program->run_vector(w, 0);
		for (uint32_t i = 0; i < l.npairs; i++)
		{
			if (!bit_get(w.live, i))
				continue;
			l.lanes[n] = l.lanes[i];
			l.rows[n++] = l.rows[i];
		}
		l.npairs = n;
	}
	for (uint32_t i = 0; i < l.npairs; i++)
		bit_set(l.matched, l.lanes[i]);
}

/* ---- the nested loop ------------------------------------------------------------------------------ */

/* The vectors of lanes as they are. */
void
JoinProgram::point_at_lanes(const Stage &stage, const Batch &in, WorkerState &w) const
{
	for (BoundColumn &bound : w.columns)
	{
		const Stage::Column &column = stage.columns[bound.chunk - stage.chunks.data()];

		bound.data = in.values(column.index);
		bound.nulls = bound.chunk->null_count > 0 ? in.nulls(column.index) : nullptr;
	}
}

/* A row's values, as constants. */
void
JoinProgram::set_row(const Level &level, const Stage &stage, WorkerState &w, uint32_t row) const
{
	for (const ScalarColumn &scalar : stage.program->scalars)
	{
		const JoinColumn &column = level.side.columns[stage.columns[scalar.number].index];

		stage.program->set_scalar(w, scalar, column.values + size_t(row) * type_width(column.type),
								  column.nulls && bit_get(column.nulls, row));
	}
}

/*
 * For every vector of lanes and every row. Inner: runs the tail, as long as there is
 * room for what it leaves. Otherwise: the condition; Left collects what matches.
 */
Progress
JoinProgram::loop_rows(JoinState &s, size_t number) const
{
	const Level &level = *levels_[number];
	const std::vector<JoinRun> &runs = level.side.runs;
	const bool	inner = level.split->kind == JoinKind::Inner;
	const bool	once = level.split->kind == JoinKind::Semi || level.split->kind == JoinKind::Anti;
	LevelState &l = *s.levels[number];
	const Stage &stage = inner ? level.tail : level.condition;
	WorkerState &w = inner ? *l.tail : *l.condition;

	point_at_lanes(stage, l.in, w);
	l.npairs = 0;
	for (; l.vector < l.in.rows; l.vector += VECTOR, l.run = 0)
	{
		const uint32_t n = std::min(VECTOR, l.in.rows - l.vector);
		uint64_t	lanes[CPU_WORDS];

		lanes_below(lanes, n);
		for (; l.run < runs.size(); l.run++, l.at = 0)
			for (; l.at < runs[l.run].n; l.at++)
			{
				const uint32_t row = static_cast<uint32_t>(runs[l.run].at + l.at);

				if (inner)
				{
					if (!has_room(s, number))
						return Progress::Full;
					if (s.stopped())
						return Progress::Stopped;
					set_row(level, stage, w, row);
					memcpy(w.live, lanes, sizeof(lanes));
					run_tail(s, number, l.vector, n);
					s.pairs += n;
					continue;
				}
				if (l.npairs > 0 && l.npairs + n > VECTOR)
					return Progress::Ready;
				if (s.stopped())
					return Progress::Stopped;

				uint64_t   *matched = l.matched + l.vector / 64;
				uint64_t	some = 0;

				for (int i = 0; i < CPU_WORDS; i++)
					some |= w.live[i] = lanes[i] & ~(once ? matched[i] : 0);
				if (some == 0)
				{
					/* all have what they wanted */
					l.run = static_cast<uint32_t>(runs.size()) - 1;
					l.at = runs[l.run].n - 1;
					continue;
				}
				set_row(level, stage, w, row);
				s.pairs += bit_count(w.live, CPU_WORDS);
				stage.program->run_vector(w, l.vector);
				for (int i = 0; i < CPU_WORDS; i++)
				{
					matched[i] |= w.live[i];
					if (once)
						continue;
					for (uint64_t m = w.live[i]; m != 0; m &= m - 1)
					{
						l.lanes[l.npairs] = l.vector + 64 * i + static_cast<uint32_t>(__builtin_ctzll(m));
						l.rows[l.npairs++] = row;
					}
				}
			}
	}
	return l.npairs > 0 ? Progress::Ready : Progress::Exhausted;
}

/* ---- units ------------------------------------------------------------------------------------------ */

/* Is there room for a vector that the level's tail leaves whole? */
bool
JoinProgram::has_room(const JoinState &s, size_t level) const
{
	if (level + 1 < levels_.size())
		return s.levels[level + 1]->in.rows < VECTOR;
	return grouped() || s.emitted + VECTOR <= s.capacity;
}

/* Runs the tail over the lanes of its `live`, and puts what is left to where it goes. */
void
JoinProgram::run_tail(JoinState &s, size_t level, uint32_t row, uint32_t n) const
{
	LevelState &l = *s.levels[level];
	WorkerState &w = *l.tail;

	if (level + 1 < levels_.size())
	{
		Batch	   &to = s.levels[level + 1]->in;

		w.area = to.memory.get();
		w.layout = to.layout.data();
		w.emitted = to.rows;
		levels_[level]->tail.program->run_vector(w, row);
		to.rows = w.emitted;
	}
	else if (grouped())
	{
		w.rows_taken += n;
		levels_[level]->tail.program->run_vector(w, row);
	}
	else
	{
		ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];

		result_layout(result_types_.data(), static_cast<int>(result_types_.size()), s.capacity, layout);
		w.area = s.area;
		w.layout = layout;
		w.emitted = s.emitted;
		levels_[level]->tail.program->run_vector(w, row);
		s.emitted = w.emitted;
		w.layout = nullptr;
	}
}

/* The level's next pairs go through its tail. Ready: they did. */
Progress
JoinProgram::advance_level(JoinState &s, size_t number) const
{
	const Level &level = *levels_[number];
	const JoinKind kind = level.split->kind;
	LevelState &l = *s.levels[number];

	if (l.step == Step::Pairs && level.loop && kind == JoinKind::Inner)
	{
		const Progress progress = loop_rows(s, number);

		if (progress == Progress::Exhausted)
			l.step = Step::Done;
		return progress;
	}
	if (l.step == Step::Pairs && level.split->sought && l.lane >= l.in.rows && !l.more)
	{
		l.step = kind == JoinKind::Inner ? Step::Done : Step::Unmatched;
		l.lane = 0;
	}
	if (l.step == Step::Done)
		return Progress::Exhausted;
	if (!has_room(s, number))
		return Progress::Full;
	while (l.step != Step::Done)
	{
		if (s.stopped())
			return Progress::Stopped;
		if (l.step == Step::Pairs && level.loop)
		{
			const Progress progress = loop_rows(s, number);

			if (progress == Progress::Stopped)
				return progress;
			if (progress == Progress::Exhausted)
			{
				l.step = Step::Unmatched;
				l.lane = 0;
				continue;
			}
		}
		else if (l.step == Step::Pairs)
		{
			if (!(level.split->sought ? sought_pairs(level, l) : cross_pairs(level, l)))
			{
				l.step = kind == JoinKind::Inner ? Step::Done : Step::Unmatched;
				l.lane = 0;
				continue;
			}
			s.pairs += l.npairs;
			if (kind != JoinKind::Inner)
				take_condition(s, number);
			if (l.npairs == 0 || kind == JoinKind::Semi || kind == JoinKind::Anti)
				continue;
		}
		else if (!unmatched_lanes(level, l))
		{
			l.step = Step::Done;
			continue;
		}
		gather(level, level.tail, l, *l.tail, l.tail_values, l.tail_nulls);
		lanes_below(l.tail->live, l.npairs);
		run_tail(s, number, 0, l.npairs);
		return Progress::Ready;
	}
	return Progress::Exhausted;
}

/* Goes on with the unit: Exhausted at its end, Full where the area is. */
Progress
JoinProgram::advance(JoinState &s) const
{
	const int	nlevels = static_cast<int>(levels_.size());
	auto		enter = [&](int number) {
		s.current = number + 1;
		begin_level(s, number);
	};

	for (;;)
	{
		if (s.current == 0)
		{
			Batch	   &in = s.levels[0]->in;
			WorkerState &w = *s.first;

			while (in.rows < VECTOR && s.row < s.last)
			{
				const uint32_t end = std::min(s.last, s.row + VECTOR);

				w.area = in.memory.get();
				w.layout = in.layout.data();
				w.emitted = in.rows;
				first_->run_bound(w, s.row, end, s.masked, s.nmasked);
				in.rows = w.emitted;
				s.row = end;
			}
			if (in.rows == 0)
				return Progress::Exhausted;
			if (s.stopped())
				return Progress::Stopped;
			enter(0);
			continue;
		}

		const int	number = s.current - 1;
		const Progress progress = advance_level(s, number);
		Batch	   *next = number + 1 < nlevels ? &s.levels[number + 1]->in : nullptr;

		switch (progress)
		{
			case Progress::Stopped:
				return progress;
			case Progress::Full:
				if (!next)
					return progress;
				enter(number + 1);
				break;
			case Progress::Ready:
				if (next && next->rows >= VECTOR)
					enter(number + 1);
				break;
			case Progress::Exhausted:
				if (next && next->rows > 0)
				{
					enter(number + 1);
					break;
				}

				/* back to the level before, with an empty batch */
				Batch	   &in = s.levels[number]->in;

				for (size_t c = 0; c < in.types.size(); c++)
					memset(in.nulls(static_cast<int>(c)), 0, BATCH_ROWS / 8);
				in.rows = 0;
				s.current = number;
				break;
		}
		if (!grouped() && errors_of(s) != 0)
			return Progress::Exhausted;
	}
}

uint32_t
JoinProgram::errors_of(const JoinState &s) const
{
	uint32_t	errors = s.first->errors;

	for (const std::unique_ptr<LevelState> &l : s.levels)
		errors |= l->tail->errors | (l->condition ? l->condition->errors : 0);
	return errors;
}

void
JoinProgram::begin_unit(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
						const MaskedRows *masked, uint32_t nmasked) const
{
	JoinState  &s = of(state);

	s.tablet = tablet;
	s.row = first;
	s.last = std::min(last, tablet->nrows);
	s.masked = masked;
	s.nmasked = nmasked;
	s.current = 0;
	for (std::unique_ptr<LevelState> &l : s.levels)
	{
		/* of a unit that was not run to its end */
		if (l->in.rows > 0)
			for (size_t c = 0; c < l->in.types.size(); c++)
				memset(l->in.nulls(static_cast<int>(c)), 0, BATCH_ROWS / 8);
		l->in.rows = 0;
		if (!grouped())
		{
			l->tail->errors = 0;
			if (l->condition)
				l->condition->errors = 0;
		}
	}
	if (!grouped())
		s.first->errors = 0;
	if (!first_->bind(*s.first, tablet))
	{
		s.first->errors |= ERR_INT_OVERFLOW;
		s.row = s.last;
	}
}

JoinPart
JoinProgram::run_part(CpuState *state, char *area, uint32_t capacity) const
{
	JoinState  &s = of(state);
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
	const int	ncols = static_cast<int>(result_types_.size());

	result_layout(result_types_.data(), ncols, capacity, layout);
	for (int c = 0; c < ncols; c++)
		memset(area + layout[c].nulls, 0, capacity / 8);
	s.area = area;
	s.capacity = capacity;
	s.emitted = 0;

	const Progress progress = advance(s);
	const uint32_t errors = errors_of(s);

	s.area = nullptr;
	return JoinPart{errors ? 0 : s.emitted, errors, progress != Progress::Full || errors != 0};
}

CpuUnitOutcome
JoinProgram::run_rows(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
					  char *area, uint32_t capacity, const MaskedRows *masked, uint32_t nmasked) const
{
	begin_unit(state, tablet, first, last, masked, nmasked);

	const JoinPart part = run_part(state, area, capacity);

	/* units that may not fit are for run_part() */
	return CpuUnitOutcome{part.rows, part.done ? part.errors : ERR_INT_OVERFLOW};
}

void
JoinProgram::run_groups(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
						const MaskedRows *masked, uint32_t nmasked) const
{
	JoinState  &s = of(state);

	begin_unit(state, tablet, first, last, masked, nmasked);
	advance(s);
	s.levels.back()->tail->errors |= errors_of(s);
}

void
JoinProgram::merge(CpuState *into, CpuState *from) const
{
	end()->merge(end_state(into), end_state(from));
}

uint32_t
JoinProgram::begin_merge(CpuState *const *states, uint32_t n) const
{
	std::vector<CpuState *> ends;

	for (uint32_t i = 0; i < n; i++)
		ends.push_back(end_state(states[i]));
	return end()->begin_merge(ends.data(), n);
}

void
JoinProgram::merge_part(CpuState *const *states, uint32_t n, uint32_t part) const
{
	std::vector<CpuState *> ends;

	for (uint32_t i = 0; i < n; i++)
		ends.push_back(end_state(states[i]));
	end()->merge_part(ends.data(), n, part);
}

}  // namespace

std::unique_ptr<CpuJoin>
CpuJoin::create(const Program *program, const ParamValue *params, uint32_t nparams, const JoinCursor *cursors, uint64_t build_limit)
{
	return std::make_unique<JoinProgram>(program, params, nparams, cursors, build_limit);
}

}  // namespace gpuvm
