/* cpu_join_build.cc: a join is made: its inner sides are built, then its programs over pairs are lowered. */
#include <algorithm>

#include "vm/cpu_join_job.h"
#include "vm/join_filter.h"

namespace gpuvm::cpu_join {

namespace {

constexpr uint32_t BUILD_ROWS = 64 * 1024;	/* a task */
constexpr uint64_t FEW_LANES = 256;	/* so many rows of cursor 0 are no vectors to loop over */
constexpr uint64_t HUGE_FROM = 4 << 20;
constexpr uint32_t PAGE_ROWS = 1024;	/* small pages begin and end with so many, or fewer */
constexpr uint64_t MOST_ROWS = uint64_t(1) << 62;

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

/* May it leave rows out? */
bool
leaves_out(const CpuProgram &program)
{
	for (const gpuvm::Step &step : program.steps)
		if ((step.kind == StepKind::Compare && !step.stores) || step.kind == StepKind::Branch || step.kind == StepKind::Invalid)
			return true;
	return false;
}

uint64_t
saturating_product(uint64_t a, uint64_t b)
{
	const uint128 p = static_cast<uint128>(a) * b;

	return p > MOST_ROWS ? MOST_ROWS : static_cast<uint64_t>(p);
}

}  // namespace

JoinProgram::JoinProgram(const Program *program, const ParamValue *params, uint32_t nparams, const JoinCursor *cursors,
						 const CodeMap *maps, const TextPattern *const *patterns, JoinIndexes *indexes,
						 TextKeys *text_keys, bool may_pass, uint32_t shortages)
	: program_(program), params_(params), nparams_(nparams), maps_(maps), text_keys_(text_keys), cursors_(cursors), indexes_(indexes),
	  may_pass_(may_pass), shortages_(shortages)
{
	figures_.passes = 1;
	split();
	refusal_ = split_.failure;
	if (refusal_)
		return;
	first_ = std::make_unique<CpuProgram>(split_.first.program(), params, nparams, cursors[0].columns, cursors[0].ncols,
										  cursors[0].total_rows, maps, nullptr, patterns, text_keys);
	for (size_t i = 0; i < split_.levels.size(); i++)
	{
		const JoinLevel &from = split_.levels[i];
		const JoinCursor &cursor = cursors[i + 1];

		levels_.push_back(std::make_unique<Level>());
		levels_[i]->split = &from;
		levels_[i]->side.program = std::make_unique<CpuProgram>(from.build.program(), params, nparams, cursor.columns,
																cursor.ncols, cursor.total_rows, maps, nullptr, patterns, text_keys);
		levels_[i]->side.ranges = result_ranges(*levels_[i]->side.program);
		levels_[i]->side.built = levels_[i]->side.building = std::make_shared<InnerRows>();
		levels_[i]->loop = !from.sought && cursors[0].total_rows >= FEW_LANES
			&& (from.kind == JoinKind::Inner || from.condition.present());
	}
	result_types_.resize(program->nresults);
	program_result_types(program, result_types_.data());
}

/* May the program of a side set an error, for all that is known of its columns? */
bool
JoinProgram::side_may_raise(const JoinStage &stage, const JoinCursor &cursor) const
{
	std::vector<ValueRange> columns;

	for (uint32_t c = 0; c < cursor.ncols; c++)
		columns.push_back(column_range(cursor.columns[c]));
	return gpuvm::may_raise(stage.program(), params_, columns.data(), maps_);
}

/* What reads one side alone is moved out of loops that there will be, where that may raise no error which no row would have met. */
void
JoinProgram::split()
{
	bool		moves = cursors_[0].total_rows >= FEW_LANES;

	split_join(program_, &split_, moves);
	if (!moves)
		return;
	moves = split_.failure == nullptr && !(split_.first.moved && side_may_raise(split_.first, cursors_[0]));
	for (size_t i = 0; moves && i < split_.levels.size(); i++)
		moves = !(split_.levels[i].build.moved && side_may_raise(split_.levels[i].build, cursors_[i + 1]));
	if (!moves)
		split_join(program_, &split_, false);
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

/* What the task's rows take, by pages. */
uint64_t
JoinProgram::bytes_of_task(const BuildSide &side, const BuildSide::Task &task) const
{
	const uint64_t rows = counted_ ? task.n : std::min<uint64_t>(align_up(task.n, PAGE_ROWS), task.last - task.first);

	return rows * side.bytes_a_row;
}

/* The tasks of an inner side, and where the rows of each will lie if all are left. */
void
JoinProgram::list_tasks(size_t level)
{
	BuildSide  &side = levels_[level]->side;
	InnerRows  &to = *side.building;
	const JoinCursor &cursor = cursors_[level + 1];
	const std::vector<Type> &types = side.program->result_types;
	const bool	nullable = side.nullable();
	uint64_t	at = 0;

	for (uint32_t t = 0; t < cursor.tablets.size(); t++)
	{
		const JoinTablet &tablet = cursor.tablets[t];
		const uint32_t nrows = tablet.tablet->nrows;

		if (masked_count(tablet.masked, tablet.nmasked, 0, nrows) == nrows || side.program->can_skip(tablet.tablet))
			continue;
		figures_.build_bytes_read += side.program->bytes_of(tablet.tablet);
		for (uint32_t first = 0; first < nrows; first += BUILD_ROWS)
			side.tasks.push_back(BuildSide::Task{t, first, std::min(nrows, first + BUILD_ROWS), at + first, 0, 0, 0});
		/* no two tasks share a word of nulls */
		at += nullable ? align_up(nrows, 64) : nrows;
	}
	to.reserved = at;
	for (size_t c = 0; c < types.size(); c++)
		side.bytes_a_row += static_cast<uint64_t>(type_width(types[c])) + (side.ranges[c].may_null ? 1 : 0);
	if (at >= NO_ROW - 1)
		refusal_ = "an inner side of the join has too many rows";
}

/* Memory for its rows. */
void
JoinProgram::take_pages(size_t level)
{
	const BuildSide &side = levels_[level]->side;
	InnerRows  &to = *side.building;
	const std::vector<Type> &types = side.program->result_types;
	std::vector<ResultColumnLayout> layout(types.size() + 1);
	const uint64_t bytes = result_layout(types.data(), static_cast<int>(types.size()),
										 static_cast<uint32_t>(align_up(to.reserved + 1, VECTOR)), layout.data());

	if (types.empty())
		return;
	/* where rows are left out, small pages are not taken between those that stay */
	to.pages = Pages(bytes, bytes >= HUGE_FROM && (counted_ || !leaves_out(*side.program)));
	for (size_t c = 0; c < types.size(); c++)
		to.columns.push_back(JoinColumn{types[c], to.pages.as<char>() + layout[c].values,
										side.ranges[c].may_null ? reinterpret_cast<uint64_t *>(to.pages.as<char>() + layout[c].nulls)
										: nullptr});
}

void
JoinProgram::task_rows(Level &level, BuildSide::Task &task)
{
	BuildSide  &side = level.side;

	if (counted_)
	{
		build_counted(level, task);
		return;
	}

	const JoinTablet &tablet = cursors_[level.split - split_.levels.data() + 1].tablets[task.tablet];
	std::unique_ptr<CpuState> state = side.program->new_state();
	WorkerState &s = static_cast<WorkerState &>(*state);
	const std::vector<JoinColumn> &columns = side.built->columns;
	std::vector<ResultColumnLayout> layout(columns.size() + 1);

	/* an area that begins with the task's first row */
	s.area = side.building->pages.as<char>();
	for (size_t c = 0; c < columns.size(); c++)
	{
		const JoinColumn &column = columns[c];

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

/* What is found as an index counts as if it had been built. */
void
JoinProgram::count_bytes()
{
	uint64_t	bytes = 0;

	for (const std::unique_ptr<Level> &level : levels_)
		bytes += level->side.bytes();
	figures_.build_bytes = std::max(figures_.build_bytes, bytes);
}

/* All rows are there: counts them, and begins the tables. False: there will be none. */
bool
JoinProgram::rows_done()
{
	for (size_t i = 0; i < levels_.size(); i++)
	{
		const std::unique_ptr<Level> &level = levels_[i];
		BuildSide  &side = level->side;

		if (pass_ > 0 && i != parted_)
			continue;
		for (const BuildSide::Task &task : side.tasks)
		{
			build_errors_ |= task.errors;
			side.building->rows += task.n;
			side.building->bytes += bytes_of_task(side, task);
			if (task.n > 0)
				side.building->runs.push_back(JoinRun{task.at, task.n});
		}
		figures_.build_rows += side.built->rows;
		if ((i == parted_ ? rows_counted(*level) : side.built->rows) == 0 && (level->split->kind == JoinKind::Inner || level->split->kind == JoinKind::Semi))
			empty_ = true;
		if (level->split->kind == JoinKind::Full && side.built->rows > 0)
		{
			side.matched = Pages(align_up(side.built->reserved, 64) / 8, false);
			side.matched_bytes = side.built->reserved / 8;
		}
		if (level->split->sought && side.building)
		{
			const std::vector<JoinColumn> &columns = side.built->columns;

			side.building->table.set_rows({columns.begin(), columns.begin() + static_cast<long>(level->split->key_types.size())},
										  side.built->runs, level->split->range != 0);
			if (counted_)
				side.building->table.set_compact();
			if (exists_only(*level->split))
				side.building->table.set_exists_only();
		}
	}
	count_bytes();
	return build_errors_ == 0;
}

uint32_t
JoinProgram::begin_phase()
{
	if (refusal_ || phase_ == Phase::Done)
		return 0;
	if (phase_ == Phase::Begin)
	{
		for (size_t i = 0; i < levels_.size() && !refusal_; i++)
		{
			find_index(i);
			if (levels_[i]->side.building)
				list_tasks(i);
			for (size_t t = 0; t < levels_[i]->side.tasks.size(); t++)
				row_tasks_.emplace_back(i, t);
		}
		if (refusal_)
			return 0;
		if (counts_first())
		{
			begin_counting();
			if (!row_tasks_.empty())
				return static_cast<uint32_t>(row_tasks_.size());
		}
		else
			for (size_t i = 0; i < levels_.size(); i++)
				if (levels_[i]->side.building)
					take_pages(i);
	}
	if (phase_ == Phase::Count && !begin_counted())
	{
		phase_ = Phase::Done;
		return 0;
	}
	if (phase_ < Phase::Rows)
	{
		phase_ = Phase::Rows;
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

		if (!level.split->sought || !level.side.building)
			continue;

		const uint32_t n = level.side.building->table.begin_phase();

		count_bytes();
		if (n > 0)
			return n;
	}
	phase_ = Phase::Done;
	if (pass_ == 0)
	{
		lower();
		keep_indexes();
	}
	return 0;
}

void
JoinProgram::run_task(uint32_t task, JoinStop *stop)
{
	if (phase_ == Phase::Count)
		count_rows_of(*levels_[row_tasks_[task].first], row_tasks_[task].second);
	else if (phase_ == Phase::Rows)
		task_rows(*levels_[row_tasks_[task].first], levels_[row_tasks_[task].first]->side.tasks[row_tasks_[task].second]);
	else
		levels_[table_]->side.building->table.run_task(task, stop);
}

void
JoinProgram::lower_stage(size_t number, const JoinStage &from, Stage *to, uint64_t total_rows, bool scalars,
						 bool tail)
{
	const Level &level = *levels_[number];
	const JoinLevel &split = *level.split;
	const bool	alone = tail && split.kind == JoinKind::Full;	/* there are rows without a lane, */
	const bool	no_row = alone || (tail && split.kind == JoinKind::Left);	/* lanes without a row */
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
		summaries.push_back(is_carried ? level.carried[index] : range_summary(level.side.ranges[index], split_.items[item].type, no_row));
		if (is_carried && alone)
		{
			summaries.back().flags |= CHUNK_HAS_NULLS;
			summaries.back().null_count = 1;
		}
		to->chunks.push_back(chunk_of(summaries.back()));
		scalar.push_back(scalars && !is_carried);
	}
	to->program = std::make_unique<CpuProgram>(from.program(), params_, nparams_, summaries.data(),
											   static_cast<uint32_t>(summaries.size()), total_rows, maps_, scalar.data(), nullptr, text_keys_);
}

/*
 * Is the level's inner row read by nobody? Then a lane's pairs are all alike, and where
 * they end in aggregates their number is enough.
 */
bool
JoinProgram::is_factor(size_t number, uint64_t pairs) const
{
	const Level &level = *levels_[number];
	const JoinLevel &split = *level.split;

	if (number + 1 < levels_.size() || split.kind != JoinKind::Inner || !grouped() || pairs >= MOST_ROWS
		|| (split.sought && !level.side.built->table.exact()))
		return false;
	for (int item : split.tail.columns)
		if (std::find(split.carried.begin(), split.carried.end(), item) == split.carried.end())
			return false;
	for (int i = program_->parallel; i < program_->converge; i++)
	{
		const Op   &op = program_->ops()[i];

		if (op.opcode == Opcode::AggStep && static_cast<AggFn>(op.p5) == AggFn::Sum && type_is_float(op.type))
			return false;
	}
	return true;
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
		const uint64_t inner_rows = i == parted_ ? rows_counted(level) : level.side.built->rows;	/* of all passes */
		const uint64_t each = split.sought && i != parted_ ? level.side.built->table.max_matches() : inner_rows;

		for (size_t c = 0; c < split.carried.size(); c++)
			level.carried.push_back(range_summary(ranges[c], split_.items[split.carried[c]].type, false));
		if (split.condition.present())
			lower_stage(i, split.condition, &level.condition, saturating_product(rows, std::max<uint64_t>(each, 1)), level.loop, false);
		if ((!split.sought || split.range != 0) && !is_factor(i, rows))
			pairs_a_row_ *= std::max<double>(1, static_cast<double>(each) / (split.sought ? 3 : 1));
		if (split.kind == JoinKind::Inner || split.kind == JoinKind::Left || split.kind == JoinKind::Full)
			rows = saturating_product(rows, std::max<uint64_t>(each, 1));
		if (split.kind == JoinKind::Full)
			rows += inner_rows;
		level.factor = is_factor(i, rows);
		level.loop = level.loop && !level.factor;
		lower_stage(i, split.tail, &level.tail, rows, level.loop && split.kind == JoinKind::Inner, true);
		if (i + 1 < levels_.size())
			ranges = result_ranges(*level.tail.program);
	}
	make_filters();
}

}  // namespace gpuvm::cpu_join
