/* request.cc: copying and checking a job's request. */
#include "engine/request.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "tablet/build.h"
#include "vm/cpu_vm.h"

namespace gpuvm {

constexpr uint32_t PROGRAM_MAX_SIZE = sizeof(Program) + PROGRAM_MAX_OPS * sizeof(Op) +
	PROGRAM_MAX_AUX * sizeof(int64_t) + PROGRAM_MAX_NAMES;
constexpr size_t CHECKED_TABLETS_MAX = 1 << 20;
constexpr size_t CHECKED_CURSORS_MAX = 1 << 14;
constexpr uint32_t RESULT_AREA_ALIGN = 64;

/* ---- tablets --------------------------------------------------------------- */

/* What of a tablet's header never changes; backends count references in what follows. */
constexpr size_t HEADER_FIXED = offsetof(TabletHeader, refs);

static uint64_t
mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

/* Eight at a time: a word's turn takes longer than its way from memory. */
static uint64_t
fingerprint(const void *data, size_t bytes, uint64_t seed)
{
	const char *at = static_cast<const char *>(data);
	uint64_t	hash[8] = {seed, seed + 1, seed + 2, seed + 3, seed + 4, seed + 5, seed + 6, seed + 7};
	size_t		i = 0;

	for (; i + 8 <= bytes; i += 8)
	{
		uint64_t	word, &h = hash[i / 8 % 8];

		memcpy(&word, at + i, 8);
		h = mix(h, word);
	}
	for (int k = 1; k < 8; k++)
		hash[0] = mix(hash[0], hash[k]);
	return hash[0];
}

/*
 * Programs are lowered by the columns' summaries, and leave out the checks that their
 * ranges make needless, so a tablet must add nothing to them.
 */
static bool
matches_summary(const TabletHeader *tablet, const std::vector<ColumnSummary> &columns)
{
	const ColumnChunk *chunks = tablet_chunks(tablet);

	if (tablet->ncols != columns.size())
		return false;
	for (size_t i = 0; i < columns.size(); i++)
	{
		ColumnSummary with = columns[i];

		/* of several types among the tablets: no program can read it */
		if (columns[i].type == Type::None)
			continue;
		summarize_chunk(&with, chunks[i], false);
		with.null_count = columns[i].null_count;
		if (chunks[i].type != columns[i].type || memcmp(&with, &columns[i], sizeof(with)) != 0)
			return false;
	}
	return true;
}

static const char *
check_with_summary(const ArenaMap &arena, uint64_t offset, const TabletHeader *tablet, const std::vector<ColumnSummary> &columns)
{
	const char *wrong = check_tablet(tablet, arena.available(offset), offset);

	if (wrong == nullptr && !matches_summary(tablet, columns))
		wrong = "a tablet differs from the columns of the job's table";
	return wrong;
}

const char *
CheckedTablets::check(const ArenaMap &arena, uint64_t offset, const TabletHeader *tablet, uint64_t tablet_print,
					  const std::vector<ColumnSummary> &columns, uint64_t columns_print)
{
	if (tablet->serial == 0)
		return check_with_summary(arena, offset, tablet, columns);

	const Prints prints = {tablet_print, columns_print};
	bool		known, alike;

	{
		std::lock_guard<std::mutex> lock(mutex_);
		auto		it = prints_.find(offset);

		known = it != prints_.end() && it->second.tablet == prints.tablet;
		alike = known && it->second.columns == prints.columns;
	}
	if (alike)
		return nullptr;

	const char *wrong = !known ? check_with_summary(arena, offset, tablet, columns)
		: matches_summary(tablet, columns) ? nullptr : "a tablet differs from the columns of the job's table";

	if (wrong != nullptr)
		return wrong;

	std::lock_guard<std::mutex> lock(mutex_);

	if (prints_.size() >= CHECKED_TABLETS_MAX)
		prints_.clear();
	prints_[offset] = prints;
	return nullptr;
}

bool
CheckedTablets::knows(uint64_t print)
{
	std::lock_guard<std::mutex> lock(mutex_);

	return cursors_.count(print) != 0;
}

void
CheckedTablets::remember(uint64_t print)
{
	std::lock_guard<std::mutex> lock(mutex_);

	if (cursors_.size() >= CHECKED_CURSORS_MAX)
		cursors_.clear();
	cursors_.insert(print);
}

/* Gives each tablet its ranges, which must be ascending, disjoint, and within its rows. */
static const char *
read_masked(const ArenaMap &arena, const JobCursor &cursor, RequestCursor *request)
{
	if (cursor.nmasked == 0)
		return nullptr;

	const MaskedRows *at = arena.at<MaskedRows>(cursor.masked, cursor.nmasked * sizeof(MaskedRows));

	if (at == nullptr)
		return "the masked rows lie outside the arena";
	request->masked.assign(at, at + cursor.nmasked);

	const MaskedRows *before = nullptr;

	for (const MaskedRows &range : request->masked)
	{
		if (range.tablet >= request->tablets.size())
			return "masked rows are of a tablet that the job does not have";

		RequestTablet &tablet = request->tablets[range.tablet];

		if (range.first >= range.end || range.end > tablet.tablet->nrows)
			return "masked rows are not rows of their tablet";
		if (before != nullptr &&
			(range.tablet < before->tablet || (range.tablet == before->tablet && range.first < before->end)))
			return "masked rows are not in order";
		if (tablet.nmasked++ == 0)
			tablet.masked = &range;
		tablet.masked_rows += range.end - range.first;
		before = &range;
	}
	return nullptr;
}

void
put_columns(const ResultSet &set, size_t first, SetColumn *to)
{
	const size_t n = set.columns().size();

	for (size_t c = first; to != nullptr && c < n; c++)
	{
		const ColumnSummary &from = set.columns()[c];

		to[c - first] = SetColumn{from.min, from.max, from.null_count, from.type, 0, from.flags, from.exp_hi, from.exp_lo};
	}
}

void
list_set(const ResultSet &set, RequestCursor *cursor)
{
	cursor->columns = set.columns();
	cursor->total_rows = set.nrows();
	cursor->tablets.clear();
	for (const TabletHeader *tablet : set.tablets())
		cursor->tablets.push_back(RequestTablet{tablet, nullptr, 0, 0});
}

static const char *
read_set_cursor(const JobCursor &cursor, const SetStore &sets, RequestCursor *request)
{
	if (cursor.set > JOB_MAX_SETS || sets.find(cursor.set) == nullptr)
		return "a result set does not exist";
	if (cursor.ntablets != 0 || cursor.nmasked != 0)
		return "a result set has no other rows";
	request->set = sets.find(cursor.set);
	list_set(*request->set, request);
	return nullptr;
}

static const char *
read_cursor(const ArenaMap &arena, const JobCursor &cursor, const SetStore &sets, CheckedTablets *checked, RequestCursor *request)
{
	if (cursor.set != 0)
		return read_set_cursor(cursor, sets, request);

	const ColumnSummary *columns = arena.at<ColumnSummary>(cursor.columns, cursor.ncolumns * sizeof(ColumnSummary));
	const uint64_t *tablets = arena.at<uint64_t>(cursor.tablets, cursor.ntablets * sizeof(uint64_t));

	if (cursor.ncolumns > VERSION_MAX_COLS)
		return "the job's table has too many columns";
	if ((columns == nullptr && cursor.ncolumns > 0) || (tablets == nullptr && cursor.ntablets > 0))
		return "the job's table lies outside the arena";
	request->columns.assign(columns, columns + cursor.ncolumns);

	const std::vector<uint64_t> offsets(tablets, tablets + cursor.ntablets);
	const uint64_t columns_print = fingerprint(request->columns.data(), cursor.ncolumns * sizeof(ColumnSummary), cursor.ncolumns);

	std::vector<uint64_t> prints;
	uint64_t	print = columns_print;

	request->tablets.reserve(offsets.size());
	prints.reserve(offsets.size());
	for (uint64_t offset : offsets)
	{
		const TabletHeader *tablet = arena.at<TabletHeader>(offset, sizeof(TabletHeader), TABLET_ALIGN);

		if (tablet == nullptr)
			return "a tablet lies outside the arena";

		const size_t chunks = tablet->ncols * sizeof(ColumnChunk);

		if (arena.at<char>(offset, sizeof(TabletHeader) + chunks) == nullptr)
			return "a tablet reaches past the arena's end";
		request->tablets.push_back(RequestTablet{tablet, nullptr, 0, 0});
		request->total_rows += tablet->nrows;
		prints.push_back(fingerprint(tablet + 1, chunks, fingerprint(tablet, HEADER_FIXED, chunks)));
		if (tablet->serial != 0)
			print = mix(mix(print, offset), prints.back());
	}

	const bool	known = checked->knows(print);

	for (size_t i = 0; i < offsets.size(); i++)
	{
		const TabletHeader *tablet = request->tablets[i].tablet;
		const char *wrong = known && tablet->serial != 0 ? nullptr
			: checked->check(arena, offsets[i], tablet, prints[i], request->columns, columns_print);

		if (wrong != nullptr)
			return wrong;
	}
	if (!known)
		checked->remember(print);
	return read_masked(arena, cursor, request);
}

/* ---- program and parameters -------------------------------------------------- */

/* nullptr: it lies outside of the arena. */
static const Program *
copy_program(const ArenaMap &arena, uint64_t offset, uint32_t size, std::unique_ptr<uint64_t[]> *copy)
{
	const char *at = arena.at<char>(offset, size, alignof(Program));

	if (at == nullptr || size < sizeof(Program) || size > PROGRAM_MAX_SIZE)
		return nullptr;
	copy->reset(new uint64_t[(size + 7) / 8]);
	memcpy(copy->get(), at, size);
	return reinterpret_cast<const Program *>(copy->get());
}

static const char *
read_program(const ArenaMap &arena, uint64_t offset, uint32_t size, Request *request)
{
	request->program = copy_program(arena, offset, size, &request->program_copy);
	if (request->program == nullptr)
		return "the program lies outside the arena";

	std::vector<Type> types[PROGRAM_MAX_CURSORS];
	CursorSchema schemas[PROGRAM_MAX_CURSORS];
	int			ncursors = 1 + static_cast<int>(request->others.size());

	for (int i = 0; i < ncursors; i++)
	{
		const RequestCursor &cursor = i == 0 ? *request : request->others[i - 1];

		for (const ColumnSummary &column : cursor.columns)
			types[i].push_back(column.type);
		schemas[i] = CursorSchema{static_cast<uint32_t>(types[i].size()), types[i].data()};
	}
	return verify_program(request->program, size, schemas, ncursors);
}

/* The program that reads the groups of the one before, whose result columns are its cursor's. */
static const char *
read_stage(const ArenaMap &arena, uint64_t offset, uint32_t nstages, Request *request)
{
	if (nstages == 0)
		return nullptr;
	if (nstages > JOB_MAX_STAGES)
		return "the job has too many stages";

	const JobStage *at = arena.at<JobStage>(offset, nstages * sizeof(JobStage));

	if (at == nullptr)
		return "the job's stages lie outside the arena";

	const JobStage stage = *at;

	/* what is checked is what was read */
	std::atomic_signal_fence(std::memory_order_seq_cst);
	request->stage = copy_program(arena, stage.program, stage.program_size, &request->stage_copy);
	if (request->stage == nullptr)
		return "a stage's program lies outside the arena";
	if (!request->program->grouped)
		return "a stage reads a program that has no groups";

	Type		types[PROGRAM_MAX_COLUMNS] = {};
	const uint32_t ncols = request->program->nresults;

	stage_column_types(request->program, types);
	for (uint32_t i = 0; i < ncols; i++)
		if (types[i] < Type::Bool || types[i] > Type::F64)
			return "a stage reads a column that no table can have";

	const CursorSchema schema = {ncols, types};
	const char *wrong = verify_program(request->stage, stage.program_size, &schema, 1);

	if (wrong != nullptr)
		return wrong;
	for (int i = 0; i < request->stage->nops; i++)
	{
		if (reads_text(request->stage->ops()[i]))
			return "a stage has no texts to read";
		if (request->stage->ops()[i].opcode == Opcode::Rowid)
			return "the rows of a stage are nowhere";
	}
	return verify_params(request->stage, request->params, request->nparams);
}

/*
 * Maps stay where they are, as tablets do; they belong to the job alone. Their ranges
 * decide what is left out of checks, so all values are looked at.
 */
static const char *
read_maps(const ArenaMap &arena, uint64_t offset, uint32_t nmaps, Request *request)
{
	const JobMap *at = arena.at<JobMap>(offset, nmaps * sizeof(JobMap));

	if (at == nullptr && nmaps > 0)
		return "the job's maps lie outside the arena";

	const std::vector<JobMap> maps(at, at + nmaps);

	for (const JobMap &from : maps)
	{
		const size_t width = static_cast<size_t>(type_width(from.type));
		CodeMap		map = {from.type, from.has_null_entry == 1, from.nentries, nullptr, nullptr, {}};

		if (from.type < Type::Bool || from.type > Type::F64 || from.nentries > MAP_MAX_ENTRIES || from.has_null_entry > 1)
			return "a map is malformed";

		const size_t n = size_t(from.nentries) + from.has_null_entry;

		map.values = arena.at<char>(from.values, n * width, width);
		if (from.nulls != 0)
			map.nulls = arena.at<uint64_t>(from.nulls, (n + 63) / 64 * sizeof(uint64_t));
		if (n > 0 && (map.values == nullptr || (from.nulls != 0 && map.nulls == nullptr)))
			return "a map lies outside the arena";
		if (!map_values_fit(map))
			return "a map holds what its type cannot";
		map.range = map_range(map, 0, map.nentries);
		request->maps.push_back(map);
	}

	return nullptr;
}

static const char *
check_maps(const Request &request)
{
	const uint32_t nmaps = static_cast<uint32_t>(request.maps.size());
	const char *wrong = verify_maps(request.program, request.maps.data(), nmaps);

	return wrong != nullptr || request.stage == nullptr ? wrong : verify_maps(request.stage, request.maps.data(), nmaps);
}

/* Is the column of variable length wherever the cursor has rows? */
static bool
column_has_references(const RequestCursor &cursor, int column)
{
	if (cursor.set != nullptr)
		return (cursor.columns[static_cast<size_t>(column)].flags & COLUMN_VARIABLE) != 0;
	return std::all_of(cursor.tablets.begin(), cursor.tablets.end(), [=](const RequestTablet &of)
	{
		return tablet_chunks(of.tablet)[column].encoding == Encoding::Variable;
	});
}

/* Patterns are short and are copied: what they say decides where texts are read. */
static const char *
read_patterns(const ArenaMap &arena, uint64_t offset, uint32_t npatterns, Request *request)
{
	const uint64_t *at = arena.at<uint64_t>(offset, npatterns * sizeof(uint64_t));

	if (at == nullptr && npatterns > 0)
		return "the job's patterns lie outside the arena";

	const std::vector<uint64_t> offsets(at, at + npatterns);

	for (uint64_t from : offsets)
	{
		const TextPattern *pattern = arena.at<TextPattern>(from);
		const uint32_t size = pattern != nullptr ? pattern->size : 0;

		if (size < sizeof(TextPattern) || size > TEXT_AUTOMATON_MAX || arena.at<char>(from, size) == nullptr)
			return "a pattern lies outside the arena";

		std::unique_ptr<uint64_t[]> copy(new uint64_t[(size + 7) / 8]);

		memcpy(copy.get(), pattern, size);

		TextPattern *mine = reinterpret_cast<TextPattern *>(copy.get());
		const char *wrong = check_text_pattern(mine, size);

		if (wrong != nullptr)
			return wrong;
		if (mine->collation > request->text_orders.size())
			return "a text order is missing";
		/* of some locales, too, bytes decide */
		if (mine->collation != 0 && request->text_orders[mine->collation - 1u].by_bytes())
			mine->collation = 0;
		request->patterns.push_back(mine);
		request->pattern_copies.push_back(std::move(copy));
	}

	const char *wrong = verify_patterns(request->program, npatterns);

	/* no other column has anything to match */
	for (int i = 0; i < request->program->nops && wrong == nullptr; i++)
	{
		const Op   &op = request->program->ops()[i];

		if (!reads_text(op))
			continue;

		/* a set's lie elsewhere */
		const RequestCursor &cursor = op.p3 == 0 ? *request : request->others[op.p3 - 1];

		if (cursor.set != nullptr || !column_has_references(cursor, op.p2))
			wrong = "texts are read of a column that has none";
	}
	return wrong;
}

/* Is the register of cursors' references, or null? */
static bool
has_references(const Request &request, int reg)
{
	const Op   *op = request.program->ops();

	while (!((op->opcode == Opcode::Column || op->opcode == Opcode::Null) && op->p1 == reg))
		if (++op == request.program->ops() + request.program->nops)
			return false;
	return op->opcode == Opcode::Null || column_has_references(op->p3 == 0 ? request : request.others[op->p3 - 1], op->p2);
}

/* The groups that a stage reads have references, too, but their keys are made already. */
static const char *
read_text_keys(const ArenaMap &arena, Request *request)
{
	uint64_t	rows = request->total_rows;

	for (int i = 0; i < request->program->nops; i++)
		if (request->program->ops()[i].opcode == Opcode::TextKey && !has_references(*request, request->program->ops()[i].p2))
			return "keys are made of what is no column of texts";

	for (const RequestCursor &other : request->others)
		rows += other.total_rows;
	request->text_keys = make_text_keys(request->program, request->patterns.data(), reinterpret_cast<const char *>(arena.header()), arena.available(0), rows);
	if (request->text_keys != nullptr)
		request->text_keys->orders = request->text_orders;
	for (int i = 0; request->stage != nullptr && i < request->stage->nops; i++)
		if (request->stage->ops()[i].opcode == Opcode::TextKey || orders_texts(request->stage->ops()[i]))
			return "a stage compares texts";
	return nullptr;
}

/* Each is a collation that gpuvmd has, too. */
static const char *
read_text_orders(const ArenaMap &arena, const TextOrderSpec *specs, uint32_t n, Collators *collators, Request *request)
{
	for (uint32_t i = 0; i < n; i++)
	{
		const TextOrderSpec &spec = specs[i];
		const Collator *collator = nullptr;
		const char *wrong;

		if (spec.kind > TextOrderKind::Icu || !is_order_flags(spec.flags) || spec.attlen < -1 || spec.attlen == 0 ||
			spec.attlen > TEXT_KEY_MAX_LENGTH)
			return "texts are compared in an unknown way";
		if ((wrong = collators->find(spec, &collator)) != nullptr)
			return wrong;
		request->text_orders.emplace_back(spec, collator, reinterpret_cast<const char *>(arena.header()), arena.available(0));
	}
	return nullptr;
}

static const char *
check_text_orders(const Request &request)
{
	for (int i = 0; i < request.program->nops; i++)
	{
		const Op   &op = request.program->ops()[i];

		if (!orders_texts(op))
			continue;
		if (static_cast<uint64_t>(op.p4) >= request.text_orders.size())
			return "a text order is missing";
		if (!has_references(request, op.p2) || (op.opcode == Opcode::TextCompare && !has_references(request, op.p3)))
			return "what is compared is no column of texts";
	}
	return nullptr;
}

/* What results are sorted by. Maps are the job's; no program need know of them. */
static const char *
read_order(const JobOrderKey *keys, uint32_t norder, Request *request)
{
	Type		types[PROGRAM_MAX_COLUMNS] = {};

	if (norder > 0 && request->count_groups)
		return "the number of groups has no order";
	program_result_types(request->last(), types);
	for (uint32_t i = 0; i < norder; i++)
	{
		const JobOrderKey &key = keys[i];

		if (key.column >= request->last()->nresults)
			return "the job is sorted by a column that it does not have";
		if (types[key.column] < Type::Bool || types[key.column] > Type::I128 || (key.flags & ~(ORDER_DESC | ORDER_NULLS_FIRST | ORDER_RANKS | ORDER_TEXT)))
			return "the job is sorted in an unknown way";
		if ((key.flags & ORDER_TEXT) && ((key.flags & ORDER_RANKS) || types[key.column] != Type::I64 || key.map >= request->text_orders.size()))
			return "a text order is missing, or the job is sorted by texts that are none";
		if (!(key.flags & ORDER_RANKS))
			continue;
		if (key.map >= request->maps.size())
			return "a map is missing";

		const Type	ranks = request->maps[key.map].type;

		if (types[key.column] != Type::I32 || (ranks != Type::I32 && ranks != Type::I64))
			return "the job is sorted by the ranks of what has none";
	}
	request->order.assign(keys, keys + norder);
	return nullptr;
}

/* ---- result sets --------------------------------------------------------------- */

/* Which of a program's registers are references. Of a stage's columns nothing of the kind is known. */
static std::vector<bool>
reference_registers(const Request &request, const Program *program)
{
	std::vector<bool> regs(PROGRAM_MAX_REGS);

	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode == Opcode::TextKey)
			regs[static_cast<size_t>(op.p1)] = true;
		else if (op.opcode == Opcode::Column && op.type == Type::I64 && program == request.program)
			regs[static_cast<size_t>(op.p1)] = column_has_references(op.p3 == 0 ? request : request.others[op.p3 - 1], op.p2);
		else if (op.opcode == Opcode::Null && op.type == Type::I64)
			regs[static_cast<size_t>(op.p1)] = true;
	}
	return regs;
}

/* Which of the last program's results are. */
static std::vector<bool>
reference_results(const Request &request)
{
	const Program *program = request.last();
	const std::vector<bool> regs = reference_registers(request, program);
	const int64_t *sources = nullptr, *keys = nullptr;
	std::vector<bool> results(program->nresults), aggregates(PROGRAM_MAX_COLUMNS);

	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode == Opcode::AggOpen)
			sources = program->aux() + op.p3;
		else if (op.opcode == Opcode::Group)
			keys = program->aux() + op.p2;
		else if (op.opcode == Opcode::AggStep)
			aggregates[static_cast<size_t>(op.p1)] = agg_is_text(static_cast<AggFn>(op.p5));
		else if (op.opcode == Opcode::Result)
			for (int c = 0; c < op.p2; c++)
				results[static_cast<size_t>(c)] = regs[static_cast<size_t>(op.p1 + c)];
	}
	for (int c = 0; sources != nullptr && c < program->nresults; c++)
		results[static_cast<size_t>(c)] = sources[c] & RESULT_FROM_AGG ? aggregates[static_cast<uint32_t>(sources[c])]
			: keys != nullptr && regs[static_cast<size_t>(keys[sources[c]])];
	return results;
}

static const char *
read_sink(const ArenaMap &arena, const SetStore &sets, Request *request)
{
	const JobSink &sink = request->sink;
	const char *wrong;

	if (sink.set == 0)
		return nullptr;
	if (sink.set > JOB_MAX_SETS)
		return "the job's result set has an unknown number";
	if ((sets.find(sink.set) != nullptr) != (sink.append != 0))
		return sink.append != 0 ? "a result set does not exist" : "the job's result set exists already";
	if (sink.ncolumns > PROGRAM_MAX_COLUMNS)
		return "a result set has too many columns";
	if (request->nbuffers != 0 || request->count_groups || (request->row_limit != 0 && request->order.empty()))
		return "a result set is all that the program gives";
	request->shape = SetShape(request->last(), sink.columns, sink.ncolumns, reference_results(*request));
	if ((wrong = request->shape.check()) != nullptr)
		return wrong;
	if (sink.known != 0)
	{
		request->known = arena.open<SetColumn>(sink.known, sink.ncolumns * sizeof(SetColumn), alignof(SetColumn),
											   &request->uses);
		if (request->known == nullptr)
			return "what is to be known of the result set lies outside the arena";
	}
	if (sink.append == 0)
		return nullptr;
	request->append_to = sets.find(sink.set);
	if (!request->append_to->shape().same_types(request->shape))
		return "a result set has other columns than what is added to it";
	return nullptr;
}

/* Rows of sets are nowhere else. */
static const char *
check_set_cursors(const Request &request)
{
	for (int i = 0; i < request.program->nops; i++)
	{
		const Op   &op = request.program->ops()[i];

		if (op.opcode == Opcode::Rowid && (op.p3 == 0 ? request : request.others[op.p3 - 1]).set != nullptr)
			return "the rows of a result set are nowhere";
	}
	return nullptr;
}

/* ---- results ------------------------------------------------------------------- */

static const char *
read_buffers(const ArenaMap &arena, const Job *job, Request *request)
{
	Type		types[PROGRAM_MAX_COLUMNS] = {};

	if (request->sink.set != 0)
		return nullptr;
	if (request->nbuffers == 0 || request->nbuffers > JOB_MAX_BUFFERS ||
		request->capacity == 0 || request->capacity > TABLET_MAX_ROWS ||
		request->capacity % RESULT_PAD_ROWS != 0)
		return "the job's result buffers are malformed";
	program_result_types(request->last(), types);

	int			ncols = request->last()->nresults;

	if (request->count_groups)
	{
		if (!request->last()->grouped)
			return "a program of rows has no groups to count";
		types[0] = Type::I64;
		ncols = 1;
	}

	uint64_t	bytes = result_layout(types, ncols, request->capacity, nullptr);

	for (uint32_t i = 0; i < request->nbuffers; i++)
	{
		request->areas[i] = arena.open<char>(job->buffers[i].offset, bytes, RESULT_AREA_ALIGN, &request->uses);
		if (request->areas[i] == nullptr)
			return "a result buffer lies outside the arena";
	}
	return nullptr;
}

static bool
is_full_join(const Program *program)
{
	for (int i = program->parallel; i < program->converge; i++)
		if (program->ops()[i].opcode == Opcode::Match && static_cast<JoinKind>(program->ops()[i].p2) == JoinKind::Full)
			return true;
	return false;
}

static const char *
read_units(const ArenaMap &arena, uint64_t skip_units, uint32_t skip_bytes, Request *request)
{
	if (request->program->grouped && skip_units != 0)
		return "a grouped program has no units to skip";
	if ((!request->order.empty() || request->of_set || request->sink.set != 0) && skip_units != 0)
		return "the job has no units to skip";
	if (request->last()->grouped || request->sink.set != 0)
		return nullptr;
	if (request->unit_rows == 0 || request->unit_rows % CPU_VECTOR_ROWS != 0 ||
		request->unit_rows > request->capacity)
		return "the job's unit does not fit a result buffer";
	if (skip_units != 0)
	{
		const uint8_t *bits = arena.at<uint8_t>(skip_units, skip_bytes);

		if (bits == nullptr)
			return "the bitmap of units lies outside the arena";
		request->skip_units.assign(bits, bits + skip_bytes);

		/* what units matched is known to nobody but the job that ran them */
		for (uint8_t byte : request->skip_units)
		{
			if (byte != 0 && is_full_join(request->program))
				return "the units of a full join are run by one job";
			request->resumes = request->resumes || byte != 0;
		}
	}
	return nullptr;
}

const char *
read_request(const ArenaMap &arena, const Job *job, const SetStore &sets, CheckedTablets *checked, Collators *collators,
			 Request *request)
{
	uint64_t	program = job->program;
	uint32_t	program_size = job->program_size;
	JobCursor	cursors[PROGRAM_MAX_CURSORS];
	uint32_t	ncursors = job->ncursors;
	uint64_t	skip_units = job->skip_units;
	uint32_t	skip_bytes = job->skip_bytes;
	uint64_t	maps = job->maps;
	uint32_t	nmaps = job->nmaps;
	uint64_t	stages = job->stages;
	uint32_t	nstages = job->nstages;
	uint64_t	patterns = job->patterns;
	uint32_t	npatterns = job->npatterns;
	JobOrderKey order[JOB_MAX_ORDER];
	uint32_t	norder = job->norder;
	TextOrderSpec text_orders[PROGRAM_MAX_TEXT_ORDERS];
	uint32_t	ntext_orders = job->ntext_orders;
	uint64_t	window = job->window;
	const char *wrong;

	if (job->magic != JOB_MAGIC)
		return "the job is damaged";
	request->kind = job->kind;
	if (request->kind != JobKind::Run && request->kind != JobKind::Prepare && request->kind != JobKind::Window)
		return "the job's kind is unknown";
	if (request->kind != JobKind::Window && (ncursors < 1 || ncursors > (request->kind == JobKind::Run ? PROGRAM_MAX_CURSORS : 1)))
		return "the job has too few or too many cursors";
	memcpy(cursors, job->cursors, sizeof(cursors));
	request->expected_pairs = job->expected_pairs;
	request->nparams = job->nparams;
	if (request->nparams > PROGRAM_MAX_PARAMS)
		return "the job has too many parameters";
	memcpy(request->params, job->params, sizeof(request->params));
	if (nmaps > PROGRAM_MAX_MAPS)
		return "the job has too many maps";
	if (npatterns > PROGRAM_MAX_PATTERNS)
		return "the job has too many patterns";
	if (norder > JOB_MAX_ORDER)
		return "the job has too many order keys";
	memcpy(order, job->order, sizeof(order));
	if (ntext_orders > PROGRAM_MAX_TEXT_ORDERS)
		return "the job compares texts in too many ways";
	memcpy(text_orders, job->text_orders, sizeof(text_orders));
	request->device = job->device;
	if (request->device > Device::Cuda)
		return "the job's device is unknown";
	request->device_required = job->device_required != 0 && request->device == Device::Cuda;
	request->transfer = job->transfer;
	if (request->transfer > Transfer::Cached)
		return "the job's transfer is unknown";
	request->threads = job->threads;
	request->unit_rows = job->unit_rows;
	request->capacity = job->result_capacity;
	request->nbuffers = job->nbuffers;
	request->row_limit = job->row_limit;
	request->count_groups = job->count_groups != 0;
	request->sink = job->sink;
	request->resumes = job->resumes != 0;
	/* What was read above is what is checked below, whatever the backend writes meanwhile. */
	std::atomic_signal_fence(std::memory_order_seq_cst);

	if (request->kind == JobKind::Window)
	{
		if ((wrong = read_maps(arena, maps, nmaps, request)) == nullptr)
			wrong = read_text_orders(arena, text_orders, ntext_orders, collators, request);
		return wrong != nullptr ? wrong : read_window(arena, window, sets, request);
	}
	if (request->kind == JobKind::Prepare && cursors[0].set != 0)
		return "a result set needs no preparation";
	if ((wrong = read_cursor(arena, cursors[0], sets, checked, request)) != nullptr || request->kind == JobKind::Prepare)
		return wrong;
	request->of_set = request->set != nullptr;
	request->others.resize(ncursors - 1);
	for (uint32_t i = 1; i < ncursors; i++)
		if ((wrong = read_cursor(arena, cursors[i], sets, checked, &request->others[i - 1])) != nullptr)
			return wrong;
	if ((wrong = read_program(arena, program, program_size, request)) != nullptr ||
		(wrong = verify_params(request->program, request->params, request->nparams)) != nullptr ||
		(wrong = check_set_cursors(*request)) != nullptr ||
		(wrong = read_stage(arena, stages, nstages, request)) != nullptr ||
		(wrong = read_maps(arena, maps, nmaps, request)) != nullptr ||
		(wrong = check_maps(*request)) != nullptr ||
		(wrong = read_text_orders(arena, text_orders, ntext_orders, collators, request)) != nullptr ||
		(wrong = check_text_orders(*request)) != nullptr ||
		(wrong = read_patterns(arena, patterns, npatterns, request)) != nullptr ||
		(wrong = read_text_keys(arena, request)) != nullptr ||
		(wrong = read_order(order, norder, request)) != nullptr ||
		(wrong = read_sink(arena, sets, request)) != nullptr ||
		(wrong = read_buffers(arena, job, request)) != nullptr)
		return wrong;
	return read_units(arena, skip_units, skip_bytes, request);
}

}  // namespace gpuvm
