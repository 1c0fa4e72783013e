/* join_plan.cc: see join_plan.h. */
#include "join_plan.h"

#include <algorithm>
#include <cstring>

#include "maps.h"
#include "vm/join_index.h"
#include "vm/operands.h"
#include "work.h"

namespace gpuvm {
namespace cuda {

bool		join_grids = true;

namespace {

constexpr uint64_t MOST_ROWS = uint64_t(1) << 62;

uint64_t
saturating_product(uint64_t a, uint64_t b)
{
	const uint128 p = static_cast<uint128>(a) * b;

	return p > MOST_ROWS ? MOST_ROWS : static_cast<uint64_t>(p);
}

/* Of the registers that Result takes. */
std::vector<ValueRange>
result_ranges(const Program *program, const ParamValue *params, const std::vector<ValueRange> &columns, const CodeMap *maps)
{
	std::vector<ValueRange> regs(PROGRAM_MAX_REGS), results;
	std::vector<uint32_t> errors(PROGRAM_MAX_OPS);

	analyze_ranges(program, params, columns.data(), regs.data(), errors.data(), maps);
	for (int i = program->parallel; i < program->converge; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode == Opcode::Result)
			for (int c = 0; c < op.p2; c++)
				results.push_back(regs[op.p1 + c]);
	}
	return results;
}

std::vector<ValueRange>
cursor_ranges(const DeviceCursor &cursor)
{
	std::vector<ValueRange> ranges;

	for (uint32_t c = 0; c < cursor.ncolumns; c++)
		ranges.push_back(column_range(cursor.columns[c]));
	return ranges;
}

SinkPath
cursor_path(const Program *program, const ParamValue *params, const DeviceCursor &cursor, const CodeMap *maps)
{
	std::vector<ValueRange> regs(PROGRAM_MAX_REGS);
	std::vector<uint32_t> errors(PROGRAM_MAX_OPS);

	analyze_ranges(program, params, cursor_ranges(cursor).data(), regs.data(), errors.data(), maps);
	return sink_path(program, errors.data());
}

const Program *
cursor_program(const JoinSplit &split, size_t cursor)
{
	return cursor == 0 ? split.first.program() : split.levels[cursor - 1].build.program();
}

}  // namespace

JoinCursors::JoinCursors(const DeviceJobRequest &request, const JoinSplit &split)
{
	for (size_t i = 0; i <= request.nothers; i++)
	{
		const DeviceCursor &from = i == 0 ? request : request.others[i - 1];

		const Program *program = cursor_program(split, i);
		const SinkPath path = cursor_path(program, request.params, from, request.maps);

		tablets_.emplace_back(from.tablets, from.tablets + from.ntablets);
		for (DeviceTabletRef &ref : tablets_.back())
			ref.skip = ref.skip || !may_reach_sink(program, path, request.params, tablet_chunks(ref.tablet), request.maps);
		cursors_.push_back(from);
		cursors_.back().tablets = tablets_.back().data();
	}
}

bool
JoinPlan::sought() const
{
	return std::all_of(split_.levels.begin(), split_.levels.end(), [](const JoinLevel &level) { return level.sought; });
}

LowerInput
JoinPlan::input(const Program *program, const std::vector<ColumnBinding> &columns, uint64_t total_rows, bool masked) const
{
	return LowerInput{program, params_.data(), columns.data(), static_cast<uint32_t>(columns.size()), total_rows,
		LowerOptions{0, true, shared_bytes_, masked}, maps_};
}

const char *
JoinPlan::make(const DeviceJobRequest &request, const JoinCursors &cursors, uint32_t shared_bytes)
{
	const char *reason;

	shared_bytes_ = shared_bytes;
	outer_rows_ = cursors[0].total_rows;
	levels_.clear();
	each_.clear();
	levels_.resize(split_.levels.size());
	for (size_t i = 0; i < levels_.size(); i++)
		levels_[i].split = &split_.levels[i];
	filter_columns_ = filter_columns(split_);
	for (size_t i = 0; i <= levels_.size(); i++)
	{
		std::vector<ColumnBinding> bindings;
		std::string key;
		auto		program = std::make_unique<DeviceProgram>();
		const std::vector<ValueRange> columns = cursor_ranges(cursors[i]);
		std::vector<ValueRange> ranges = result_ranges(cursor_program(split_, i), params_.data(), columns, maps_);

		if (i == 0)
		{
			first_raises_ = may_raise(cursor_program(split_, i), params_.data(), columns.data(), maps_);
			first_is_plain_ = plain_rows(cursor_program(split_, i), params_.data(), columns.data(), &plain_first_);
		}
		bind_columns(cursors[i], cursor_program(split_, i), &bindings, &key);
		/* What fails a filter is masked, too. */
		reason = lower(input(cursor_program(split_, i), bindings, cursors[i].total_rows,
							 masks_rows(cursors[i]) || (i == 0 && !filter_levels().empty())), program.get());
		if (reason)
			return reason;
		if (i == 0)
		{
			first_ = std::move(program);
			first_ranges_ = std::move(ranges);
			continue;
		}
		levels_[i - 1].build = std::move(program);
		levels_[i - 1].build_ranges = std::move(ranges);
		for (int item : split_.levels[i - 1].carried)
			levels_[i - 1].carried_types.push_back(split_.items[static_cast<size_t>(item)].type);
	}
	return nullptr;
}

/* What would be refused when pairs are there. */
static const char *
refusal_of(const Program *program)
{
	for (int i = 0; i < program->nops; i++)
		if (const char *refused = refused_operation(program->ops()[i]))
			return refused;
	return nullptr;
}

JoinPlan *
JoinPlan::of(const DeviceJobRequest &request, uint32_t shared_bytes, const char **reason)
{
	static thread_local std::unique_ptr<JoinPlan> last;
	std::string key(reinterpret_cast<const char *>(request.program), request.program->size);

	key.append(reinterpret_cast<const char *>(request.params), request.nparams * sizeof(ParamValue));
	key.append(reinterpret_cast<const char *>(&shared_bytes), sizeof(shared_bytes));
	if (!last || last->key_.compare(0, key.size(), key) != 0)
	{
		last = std::make_unique<JoinPlan>();
		last->source_.resize((request.program->size + 7) / 8);
		memcpy(last->source_.data(), request.program, request.program->size);
		last->params_.assign(request.params, request.params + request.nparams);
		split_join(reinterpret_cast<const Program *>(last->source_.data()), &last->split_, false);
		last->reason_ = last->split_.failure != nullptr ? last->split_.failure : refusal_of(request.program);
		last->key_ = key;
	}
	if (last->reason_ != nullptr)
	{
		*reason = last->reason_;
		last.reset();
		return nullptr;
	}

	last->cursors_.emplace(request, last->split_);

	const JoinCursors &cursors = *last->cursors_;

	for (size_t i = 0; i <= request.nothers; i++)
	{
		std::vector<ColumnBinding> bindings;

		bind_columns(cursors[i], cursor_program(last->split_, i), &bindings, &key);
	}
	append_map_key(request.maps, request.program->nmaps, &key);
	last->maps_ = request.maps;
	if (last->key_ != key)
	{
		const char *wrong = last->make(request, cursors, shared_bytes);

		if (wrong != nullptr)
		{
			*reason = wrong;
			last.reset();
			return nullptr;
		}
		last->key_ = key;
	}
	return last.get();
}

namespace {

/* Without results; what was computed for them alone is nothing. Its place stays, for jumps. */
void
drop_results(std::vector<uint64_t> *sealed)
{
	Program    *program = reinterpret_cast<Program *>(sealed->data());
	Op		   *ops = const_cast<Op *>(program->ops());
	std::vector<bool> read(PROGRAM_MAX_REGS);

	program->nresults = 0;
	for (int i = program->converge - 1; i > program->parallel; i--)
	{
		const OpForm form = form_of(ops[i]);
		const bool	value = (form >= OpForm::COLUMN && form <= OpForm::IN) || form == OpForm::COPY || form == OpForm::SELECT || form == OpForm::PICK;

		if (form == OpForm::RESULT)
			ops[i].p2 = 0;
		else if (value && !read[static_cast<size_t>(ops[i].p1)])
		{
			const int32_t reg = ops[i].p1;

			ops[i] = Op{};
			ops[i].opcode = Opcode::Integer;
			ops[i].type = Type::I32;
			ops[i].p1 = reg;
		}
		each_read(program, ops[i], [&](int r) { read[static_cast<size_t>(r)] = true; });
	}
}

}  // namespace

/*
 * The level's build program without results: how many rows it leaves, by the columns alone that its conditions read. nullptr: all
 * of them, or the device does not run it. Lowered when it is first asked for.
 */
const DeviceProgram *
JoinPlan::count_program(size_t level)
{
	PlannedLevel &planned = levels_[level];
	const JoinLevel &split = *planned.split;
	const DeviceCursor &cursor = cursors()[level + 1];
	std::vector<ColumnBinding> bindings;
	std::string key;

	if (planned.counts_known)
		return planned.counts.get();
	planned.counts_known = true;
	if (gpuvm::index_key(split, &key))
		return nullptr;
	planned.counting = split.build.sealed;
	drop_results(&planned.counting);
	bind_columns(cursor, planned.count_source(), &bindings, &key);

	auto		program = std::make_unique<DeviceProgram>();

	if (lower(input(planned.count_source(), bindings, cursor.total_rows, masks_rows(cursor)), program.get()) == nullptr)
		planned.counts = std::move(program);
	return planned.counts.get();
}

/* ---- filters ------------------------------------------------------------------------ */

std::vector<size_t>
JoinPlan::filter_levels() const
{
	std::vector<size_t> found;

	for (size_t i = 0; i < levels_.size() && !first_raises_; i++)
	{
		if (filter_columns_[i] >= 0)
			found.push_back(i);
		if (levels_[i].condition.may_raise || levels_[i].tail.may_raise)
			break;
	}
	return found;
}

bool
JoinPlan::raises_between(size_t first_level, size_t end_level) const
{
	for (size_t i = first_level; i < end_level; i++)
		for (const JoinStage *stage : {&split_.levels[i].condition, &split_.levels[i].tail})
		{
			std::vector<ValueRange> columns;

			for (int item : stage->columns)
				columns.push_back(full_range(split_.items[static_cast<size_t>(item)].type));
			if (stage->present() && may_raise(stage->program(), params_.data(), columns.data(), maps_))
				return true;
		}
	return false;
}

/* ---- programs over pairs --------------------------------------------------------- */

namespace {

/* The stage's program with its columns in the order that PairStage has them. */
void
order_columns(const JoinLevel &level, const JoinStage &from, PairStage *to)
{
	std::vector<int> place(from.columns.size());

	to->columns.clear();
	to->ncarried = 0;
	for (bool carried : {true, false})
		for (size_t i = 0; i < from.columns.size(); i++)
		{
			const auto	at = std::find(level.carried.begin(), level.carried.end(), from.columns[i]);

			if ((at != level.carried.end()) != carried)
				continue;
			place[i] = static_cast<int>(to->columns.size());
			if (carried)
				to->columns.push_back(StageColumnSource{true, static_cast<int>(at - level.carried.begin())});
			else
				to->columns.push_back(StageColumnSource{false, static_cast<int>(
					std::find(level.payload.begin(), level.payload.end(), from.columns[i]) - level.payload.begin() + level.key_types.size())});
			to->ncarried += carried;
		}
	to->sealed = from.sealed;

	Op		   *ops = const_cast<Op *>(to->source()->ops());

	for (int i = 0; i < to->source()->nops; i++)
		if (ops[i].opcode == Opcode::Column)
			ops[i].p2 = place[static_cast<size_t>(ops[i].p2)];
}

}  // namespace

/* Which columns does the tail hand on, and does it do anything else? */
void
JoinPlan::find_handed_on(const std::vector<ValueRange> &columns, const std::vector<ValueRange> &results, PairStage *tail) const
{
	PlainRows	rows;

	tail->handed_on.clear();
	for (size_t i = 0; i < results.size(); i++)
	{
		const int	column = result_column(tail->source(), static_cast<int>(i));

		if (column < 0 || columns[static_cast<size_t>(column)].type != results[i].type)
			break;
		tail->handed_on.push_back(column);
	}
	if (tail->handed_on.size() != results.size())
		tail->handed_on.clear();
	tail->plain = plain_rows(tail->source(), params_.data(), columns.data(), &rows) && rows.kept.empty() && tail->handed_on.size() == results.size();
}

const char *
JoinPlan::lower_stage(const PlannedLevel &level, const JoinStage &from, const std::vector<ColumnSummary> &carried, uint64_t total_rows,
					  bool grid, MarkKind mark, PairStage *to, std::vector<ValueRange> *results)
{
	const JoinLevel &split = *level.split;
	const bool	full = split.kind == JoinKind::Full, no_partner = full || split.kind == JoinKind::Left;
	std::vector<ColumnBinding> bindings;
	std::vector<ValueRange> ranges;

	order_columns(split, from, to);
	if (mark == MarkKind::Listed)
		drop_results(&to->sealed);
	for (const StageColumnSource &column : to->columns)
	{
		const size_t index = static_cast<size_t>(column.index);
		ColumnSummary summary = column.carried ? carried[index]
			: range_summary(level.build_ranges[index], split_.items[static_cast<size_t>(split.payload[index - split.key_types.size()])].type,
							no_partner);

		if (column.carried && full && results != nullptr)	/* a tail: inner rows come alone, too */
		{
			summary.flags |= CHUNK_HAS_NULLS;
			summary.null_count = 1;
		}
		summary.max_width = static_cast<uint8_t>(type_natural_width(summary.type));
		bindings.push_back(ColumnBinding{summary, summary.max_width});
		ranges.push_back(column_range(summary));
	}

	LowerInput	in = input(to->source(), bindings, total_rows, false);

	in.options.grid = grid;
	in.options.uniform_from = static_cast<uint16_t>(to->ncarried);
	in.options.mark = mark;
	to->program = std::make_unique<DeviceProgram>();

	to->may_raise = may_raise(to->source(), params_.data(), ranges.data(), maps_);
	if (results != nullptr)
	{
		*results = result_ranges(to->source(), params_.data(), ranges, maps_);
		find_handed_on(ranges, *results, to);
	}
	return lower(in, to->program.get());
}

/* Are the pairs listed that pass the comparisons that the tail begins with? Not where it has none: then tiles are as good. */
bool
JoinPlan::lists_pairs(PlannedLevel *level, const std::vector<ColumnSummary> &carried, uint64_t total_rows)
{
	if (lower_stage(*level, level->split->tail, carried, total_rows, true, MarkKind::Listed, &level->listing, nullptr) != nullptr)
		return false;

	const DeviceProgram &program = *level->listing.program;

	return std::any_of(program.ops + program.grid.loop_begin, program.ops + program.nops,
					   [](const DeviceOp &op) { return op.code != CODE_MARK && op.code != CODE_INNER_SUM && op.code != CODE_END; });
}

/* Sums of any kind can be made of so many rows. */
constexpr uint64_t SUMMED_ROWS = (uint64_t{1} << 31) - 3;

const char *
JoinPlan::lower_pairs(const std::vector<uint64_t> &each)
{
	std::vector<ValueRange> ranges = first_ranges_;
	uint64_t	rows = std::max<uint64_t>(outer_rows_, 1);

	if (each == each_)
		return pairs_reason_;
	each_ = each;
	pairs_reason_ = nullptr;
	for (size_t i = 0; i < levels_.size() && pairs_reason_ == nullptr; i++)
	{
		PlannedLevel &level = levels_[i];
		const JoinLevel &split = *level.split;
		const bool	marks = split.condition.present();
		const bool	every = split.kind == JoinKind::Inner || split.kind == JoinKind::Left || split.kind == JoinKind::Full;	/* its tail is over pairs */
		const uint64_t most = each[2 * i], alone = each[2 * i + 1];
		std::vector<ColumnSummary> carried;

		level.condition = PairStage();
		level.listing = PairStage();
		level.tail = PairStage();
		level.grid_condition = !split.sought && marks && join_grids;
		/* Without inner rows there is nothing but rows without a partner; those of Full have no tile. */
		level.grid_tail = !split.sought && !marks && every && split.kind != JoinKind::Full && most > 0 && join_grids;
		for (size_t c = 0; c < split.carried.size(); c++)
			carried.push_back(range_summary(ranges[c], split_.items[static_cast<size_t>(split.carried[c])].type, false));
		/* What no tile of pairs has room for goes by lists of them. */
		if (level.grid_condition)
			level.grid_condition = lower_stage(level, split.condition, carried, saturating_product(rows, most), true,
											   every ? MarkKind::Pairs : MarkKind::Rows, &level.condition, nullptr) == nullptr;
		if (marks && !level.grid_condition)
			pairs_reason_ = lower_stage(level, split.condition, carried, saturating_product(rows, most), false, MarkKind::Rows,
										&level.condition, nullptr);
		if (every)
			rows = std::min(saturating_product(rows, std::max<uint64_t>(most, 1)) + alone, MOST_ROWS);
		level.most_rows = rows;

		std::vector<ValueRange> results;

		level.grid_lists = level.grid_tail && split.kind == JoinKind::Inner && !(reinterpret_cast<const Program *>(source_.data())->grouped && i + 1 == levels_.size()) && lists_pairs(&level, carried, rows);
		if (level.grid_lists)
			level.grid_tail = false;
		if (level.grid_tail)
			level.grid_tail = lower_stage(level, split.tail, carried, rows, true, MarkKind::None, &level.tail, &results) == nullptr;
		if (pairs_reason_ == nullptr && !level.grid_tail)
			pairs_reason_ = lower_stage(level, split.tail, carried, rows, false, MarkKind::None, &level.tail, &results);
		/* A product of bounds is far more than a join of keys has: if sums need it, the job counts its pairs. */
		if (pairs_reason_ != nullptr && rows > SUMMED_ROWS && i + 1 == levels_.size())
		{
			level.most_rows = SUMMED_ROWS;
			pairs_reason_ = lower_stage(level, split.tail, carried, SUMMED_ROWS, false, MarkKind::None, &level.tail, &results);
		}
		ranges = std::move(results);
	}
	return pairs_reason_;
}

}  // namespace cuda
}  // namespace gpuvm
