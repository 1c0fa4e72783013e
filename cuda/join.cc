/* join.cc: the course of a join, and its memory. See join.h. */
#include "join.h"

#include <algorithm>

#include "cost.h"
#include "failure.h"

namespace gpuvm {
namespace cuda {

constexpr uint64_t SMALL_PAIRS = 100'000'000;
constexpr uint64_t WORDS_BYTES = 4096;	/* what is counted on the device, bitmaps apart */
static_assert(sizeof(KeyFacts) * PROGRAM_MAX_CURSORS + sizeof(JoinTableOutcome) * PROGRAM_MAX_CURSORS + sizeof(JoinOutcomes::left) + sizeof(uint32_t) +
			  sizeof(RowSetState) + 4 * 256 <= WORDS_BYTES,
			  "all of it finds room");

JoinSizes join_sizes;

JoinJob::Source::Source(CudaDevice *device, PinnedArena *arena, const DeviceCursor &cursor, const Program *source, const DeviceProgram &program)
	: program(program)
{
	list_rows(cursor, source, &work);
	feed = std::make_unique<TableFeed>(device, arena, program, work);
}

JoinJob::JoinJob(CudaDevice *device, PinnedArena *arena, const DeviceJobRequest &request, JoinPlan *plan, DeviceJobIo *io,
				 DeviceJobFigures *figures, JoinWay way)
	: DeviceJob(device, arena, request, io, figures), plan_(plan), cursors_(plan->cursors()), indexes_(device->residency()),
	  way_(way), row_limit_(request.norder == 0 ? request.row_limit : 0)
{
	levels_.resize(plan->levels().size());
	counters_.resize(levels_.size());
	for (size_t i = 0; i < levels_.size(); i++)
		levels_[i].plan = &plan->levels()[i];
	sources_.push_back(new_source(0));
	for (size_t i = 0; i < levels_.size(); i++)
	{
		if (device->keeps_indexes())
			levels_[i].key = index_key(*levels_[i].plan->split, *levels_[i].plan->build, cursors_[i + 1], request.transfer);
		/* Whether a side is reduced, and then is no index, is not known yet. */
		sources_.push_back(!way_.reduces && find_index(&levels_[i]) ? nullptr : new_source(i + 1));
	}
}

std::unique_ptr<JoinJob::Source>
JoinJob::new_source(size_t cursor)
{
	if (cursor != 0)
	{
		const PlannedLevel &level = *levels_[cursor - 1].plan;

		return std::make_unique<Source>(device_, arena_, cursors_[cursor], level.split->build.program(), *level.build);
	}

	auto		source = std::make_unique<Source>(device_, arena_, cursors_[0], plan_->split().first.program(), plan_->first());

	may_filter_ = source->work.rows >= join_sizes.filter_rows && !plan_->filter_levels().empty();
	if (may_filter_)
		mask_all(&source->work);
	return source;
}

/* Whatever happened, the device is done with the job before anything of it is freed. */
JoinJob::~JoinJob()
{
	drain();
	drop_pass_memory(&pass_table_);
	drop_pass_memory(&pass_space_);
	for (std::vector<std::unique_ptr<Source>> *sources : {&sources_, &counters_})
		for (std::unique_ptr<Source> &source : *sources)
			end_source(&source);
}

/* The device is done with it: its columns may make room for others. */
void
JoinJob::end_source(std::unique_ptr<Source> *source)
{
	if (*source == nullptr)
		return;
	figures_->bytes_moved += (*source)->feed->copied_bytes();
	release((*source)->dead_bits);
	source->reset();
}

/* In the order of their use. */
std::vector<JoinJob::Source *>
JoinJob::all_sources() const
{
	std::vector<Source *> all;

	for (const std::unique_ptr<Source> &source : counters_)
		all.push_back(source.get());
	for (size_t i = 1; i <= sources_.size(); i++)
		all.push_back(sources_[i % sources_.size()].get());
	all.erase(std::remove(all.begin(), all.end(), nullptr), all.end());
	return all;
}

/* ---- steps ------------------------------------------------------------------------ */

void
JoinJob::start()
{
	if (busy_)
		return;
	check(cudaEventRecord(lane_->slices[0].begin, lane_->stream), "recording an event");
	busy_ = true;
}

double
JoinJob::sync()
{
	float		ms = 0;

	start();
	check(cudaEventRecord(lane_->slices[0].end, lane_->stream), "recording an event");
	wait_for(lane_->slices[0].end);
	busy_ = false;
	check(cudaEventElapsedTime(&ms, lane_->slices[0].begin, lane_->slices[0].end), "measuring a step");
	figures_->device_ns += static_cast<uint64_t>(ms * 1e6);
	steps_.waited(ms * 1e6);
	if (stopped())
		throw Stopped();
	if (outcomes_->errors != 0)
		throw RowErrors{outcomes_->errors};
	return ms * 1e6;
}

void
JoinJob::fetch_errors()
{
	check(cudaMemcpyAsync(&outcomes_->errors, &lane_->scratch.state->errors, sizeof(uint32_t), cudaMemcpyDeviceToHost, lane_->stream),
		  "fetching errors");
}

uint32_t
JoinJob::appended(const RowSetState &outcome)
{
	if (outcome.errors != 0)
		throw RowErrors{outcome.errors};
	if (outcome.full != 0)
		throw Refusal{"a join's rows did not fit where there had to be room"};
	return outcome.nrows;
}

/* ---- the course --------------------------------------------------------------------- */

void
JoinJob::run()
{
	bool		placed = !way_.reduces;
	uint64_t	bytes = 0, dead = 0;

	device_->use();
	if (!way_.reduces)
		choose_counted();

	/* those of a reduced join begin one after the other, as they are read */
	const std::vector<Source *> sources = way_.reduces ? std::vector<Source *>() : all_sources();

	for (Source *source : sources)
	{
		source->feed->begin(request_.transfer);
		placed = placed && source->feed->all_placed();
		bytes += source->feed->bytes();
		dead += source->work.dead_pads * DEAD_PAD_BYTES;
	}
	for (const CachedIndex *index : indexes_.pinned)
		bytes += index->bytes;
	figures_->transfer = sources_[0]->feed->transfer();
	/* The lane of small jobs is not one to wait on. */
	begin(!row_join_ && placed && bytes <= SMALL_BYTES && request_.expected_pairs != 0 && request_.expected_pairs <= SMALL_PAIRS);
	outcomes_ = &lane_->outcomes->join;
	outcomes_->errors = 0;

	Carver		words(allocate(WORDS_BYTES + dead));

	facts_ = reinterpret_cast<KeyFacts *>(words.take(sizeof(KeyFacts) * PROGRAM_MAX_CURSORS));
	table_words_ = reinterpret_cast<JoinTableOutcome *>(words.take(sizeof(JoinTableOutcome) * PROGRAM_MAX_CURSORS));
	listed_ = reinterpret_cast<RowSetState *>(words.take(sizeof(RowSetState)));
	filter_words_ = reinterpret_cast<uint32_t *>(words.take(sizeof(outcomes_->left) + sizeof(uint32_t)));
	/* In the order of their use, each in a place of its own: none waits for another, and all may be there from the job before. */
	uint64_t	described = 0;

	for (Source *source : sources)
	{
		source->feed->use_lane(lane_, described);
		described = source->feed->table_end();
		if (source->work.dead_pads != 0)
			source->feed->use_dead_bits(words.take(source->work.dead_pads * DEAD_PAD_BYTES));
	}
	device_->make_table_room(lane_, described);
	start();
	send_maps();
	check(reset_state(lane_->scratch, lane_->stream), "starting the job");
	steps_.enter(JoinStep::Build);
	try
	{
		if (way_.reduces)
			reduce();
		mendable([&] { build(); });
		run_joined();
	}
	catch (const Refusal &r)
	{
		/* with smaller sides, and columns that are not kept, there may be room for the rest, too */
		if (r.memory && !way_.reduces)
			other_way_ = JoinWay{true, 1};
		throw;
	}
	catch (const RowErrors &e)
	{
		figures_->errors = e.errors;
		busy_ = true;			/* copies may be on their way for what is not run now: drain() waits for them */
	}
}

/* What finds no room here would find it in more passes. */
void
JoinJob::mendable(const std::function<void()> &step)
{
	try
	{
		step();
	}
	catch (const Refusal &r)
	{
		if (r.memory && way_.reduces && level_to_split() < levels_.size() && passes_ < MOST_PASSES)
			other_way_ = JoinWay{true, 2 * passes_};
		throw;
	}
}

void
JoinJob::run_joined()
{
	std::vector<uint64_t> each;
	const char *reason;

	steps_.enter(JoinStep::Plan);
	for (size_t i = 0; i < levels_.size(); i++)
	{
		const Level &level = levels_[i];
		uint64_t	most = level.side_rows, alone = level.plan->split->kind == JoinKind::Full ? most : 0;

		/* Of a pass to come it is not known whether its keys have one row each. */
		if (i == split_)
		{
			most = pass_list_[0].rows;
			alone = level.plan->split->kind == JoinKind::Full ? uint64_t{passes_} * most : 0;
		}
		else if (level.plan->split->sought)
			most = level.table.form == JoinForm::Empty ? 0 : finds_one(level) ? 1 : most;
		/* Few different bounds, so that a plan is of use once more. */
		for (uint64_t *n : {&most, &alone})
		{
			while ((*n & (*n - 1)) != 0)
				*n += *n & (~*n + 1);
			each.push_back(*n);
		}
	}
	reason = plan_->lower_pairs(each);
	if (reason != nullptr)
		throw Refusal{reason};

	const bool	nothing = empty_ || (sources_[0]->work.pads.empty() && !has_rest());

	if (!nothing)
	{
		make_filters();
		fetches_all_ = fetches_all();
		mendable([&]
		{
			choose_batch();
			if (way_.reduces)
				figures_->transfer = open_source(0)->feed->transfer();
		});
		describe();
	}
	if (!request_.program->grouped)
	{
		if (nothing)
			return;
		if (set_ == nullptr)
			map_areas();
		start();
		check(reset_rows(out_, lane_->stream), "starting the job");
		run_outer();
		steps_.enter(JoinStep::End);
		end_rows();
	}
	else if (uses_group_table(plan_->end()))
		run_groups(plan_->end(), plan_->pairs_bound(), sources_[0]->feed->missing_bytes(), nothing);
	else
		run_aggregates(plan_->end(), nothing);
}

/* ---- memory --------------------------------------------------------------------------- */

/* Rows or pairs that the job will hardly have more of. */
uint64_t
JoinJob::wanted_batch() const
{
	uint64_t	want = std::max<uint64_t>(sources_[0]->work.rows, 1), pairs = want;

	for (const Level &level : levels_)
	{
		/* What Seek finds is not known, but for this. */
		pairs = level.plan->split->sought ? std::max(pairs, std::min<uint64_t>(request_.expected_pairs, join_sizes.most_batch))
			: level.plan->grid_lists && request_.expected_pairs != 0 ? std::max(pairs, std::min<uint64_t>(request_.expected_pairs, join_sizes.most_batch))
			: level.plan->grid_tail && &level == &levels_.back() && request_.program->grouped ? pairs
			: std::min<uint64_t>(pairs * std::max(level.side_rows, 1u), join_sizes.most_batch);
		if (level.partnered != nullptr)
			pairs = std::max<uint64_t>(pairs, level.side_rows);
		want = std::max(want, pairs);
	}
	return want;
}

void
JoinJob::choose_batch()
{
	const uint64_t want = wanted_batch();

	batch_ = join_sizes.least_batch;
	while (batch_ < join_sizes.most_batch && batch_ < want)
		batch_ = std::min(batch_ * 2, join_sizes.most_batch);
	for (;; batch_ = std::max(batch_ / 2 / TABLET_PAD_ROWS * TABLET_PAD_ROWS, join_sizes.least_batch))
	{
		const bool	least = batch_ == join_sizes.least_batch;
		Carver		size;

		lay_out(&size);
		if (!least && size.taken() > device_->residency()->available() / 2)
			continue;

		char	   *memory = least ? allocate(size.taken()) : try_allocate(size.taken());

		if (memory == nullptr)
			continue;

		Carver		carver(memory);

		lay_out(&carver);
		return;
	}
}

/* Every part in its place; without memory they are only counted. */
void
JoinJob::lay_out(Carver *to)
{
	const DeviceProgram *before = &plan_->first();
	const uint64_t pads = batch_ / TABLET_PAD_ROWS;
	uint64_t	columns = 0, staging = fetches_all_ ? 0 : row_staging_bytes(*before, pads), temp = fetches_all_ ? 0 : append_temp_bytes(*before, pads);

	bit_pairs_ = static_cast<uint32_t>(std::min<uint64_t>(static_cast<uint64_t>(batch_) * join_sizes.marks,
														  ROW_SET_MAX_ROWS / TABLET_PAD_ROWS * TABLET_PAD_ROWS));
	pads_ = reinterpret_cast<DevicePad *>(to->take(pads * sizeof(DevicePad)));
	tablet_ = reinterpret_cast<DeviceTablet *>(to->take(sizeof(DeviceTablet)));
	chunks_ = reinterpret_cast<DeviceChunk *>(to->take(sizeof(DeviceChunk) * MAX_COLUMNS));
	for (Level &level : levels_)
	{
		const JoinLevel &split = *level.plan->split;
		char	   *memory = to->take(row_set_bytes(*before, batch_));

		if (memory != nullptr)
			level.in = row_set(*before, batch_, memory);
		level.inner_columns = reinterpret_cast<DeviceChunk *>(to->take(sizeof(DeviceChunk) * MAX_UNIFORMS));
		if (split_ < levels_.size() && &level == &levels_[split_])
		{
			JoinTable	any = {};

			/* those of passes to come */
			any.form = JoinForm::Hashed;
			level.probe = to->take(probe_bytes(any, probe_mode(level), batch_));
			memory = to->take(row_set_bytes(*before, batch_));
			if (memory != nullptr)
				level.spare = row_set(*before, batch_, memory);
		}
		else if (split.sought)
			level.probe = to->take(probe_bytes(level.table, probe_mode(level), batch_));
		level.matched = reinterpret_cast<uint32_t *>(to->take(bitmap_bytes(batch_)));
		level.scan = to->take(bit_scan_bytes(batch_));
		if (level.plan->grid_condition && keeps_rows(level))
		{
			level.pair_bits = reinterpret_cast<uint32_t *>(to->take(bitmap_bytes(bit_pairs_)));
			level.pair_scan = to->take(bit_scan_bytes(bit_pairs_));
		}
		for (const PairStage *stage : {&level.plan->condition, &level.plan->tail})
		{
			uint64_t	bytes = 0;

			for (const StageColumnSource &column : stage->columns)
				bytes += align_up(static_cast<uint64_t>(batch_) * static_cast<uint64_t>(type_natural_width(column_type(level, column))), 256) +
					bitmap_bytes(batch_);
			columns = std::max(columns, bytes);
		}
		before = level.plan->tail.program.get();
		if (before->nresults != 0 || !request_.program->grouped || &level != &levels_.back())
		{
			const bool	straight = takes_rows_straight(*before);

			staging = std::max(staging, straight ? straight_bytes(*before, pads) : row_staging_bytes(*before, pads));
			temp = std::max(temp, straight ? 0 : append_temp_bytes(*before, pads));
		}
	}
	for (int i = 0; i < 2; i++)
	{
		outer_[i] = reinterpret_cast<uint32_t *>(to->take(batch_ * sizeof(uint32_t)));
		inner_[i] = reinterpret_cast<uint32_t *>(to->take(batch_ * sizeof(uint32_t)));
	}
	bits_ = reinterpret_cast<uint32_t *>(to->take(bitmap_bytes(batch_)));
	bits_scan_ = to->take(bit_scan_bytes(batch_));
	columns_ = to->take(columns);
	staging_ = to->take(staging);
	temp_ = to->take(temp);
	if (!request_.program->grouped)
	{
		char	   *memory = to->take(row_set_bytes(plan_->end(), 2 * static_cast<uint64_t>(batch_)));

		if (memory != nullptr)
			out_ = row_set(plan_->end(), 2 * static_cast<uint64_t>(batch_), memory);
	}
}

/* What of the descriptions stays as it is. */
void
JoinJob::describe()
{
	std::vector<DevicePad> pads;

	for (uint32_t row = 0; row < batch_; row += TABLET_PAD_ROWS)
		pads.push_back(DevicePad{0, row});
	start();
	check(cudaMemcpyAsync(pads_, pads.data(), pads.size() * sizeof(DevicePad), cudaMemcpyHostToDevice, lane_->stream), "describing row sets");
	for (Level &level : levels_)
	{
		const PairStage &stage = level.plan->grid_condition ? level.plan->condition : level.plan->grid_lists ? level.plan->listing : level.plan->tail;
		DeviceChunk chunks[MAX_UNIFORMS];
		const uint32_t n = stage.program->grid.nuniforms;

		if ((!level.plan->grid_condition && !level.plan->grid_lists && !level.plan->grid_tail) || n == 0 || level.side_rows == 0)
			continue;
		for (uint32_t i = 0; i < n; i++)
			chunks[i] = row_set_chunk(level.side.column[stage.columns[stage.program->grid.uniforms[i].table_column].index]);
		check(cudaMemcpyAsync(level.inner_columns, chunks, n * sizeof(DeviceChunk), cudaMemcpyHostToDevice, lane_->stream),
			  "describing row sets");
	}
}

/* ---- running ---------------------------------------------------------------------------- */

void
JoinJob::run_all(const GroupTable *groups, const std::function<void()> &behind)
{
	groups_ = groups;
	if (!empty_)
		run_outer();
	start();
	if (counted_ != 0)
		launch_pairs(levels_.back().plan->tail, 1, nullptr, nullptr);
	behind();
	(void) sync();
	steps_.enter(JoinStep::End);
	for (int i = 0; counted_ != 0 && i < plan_->end().naggs; i++)
		lane_->outcomes->state.result[i].count *= counted_;
}

void
JoinJob::begin_again()
{
	sources_[0]->feed->restart();
	sources_[0]->next_pad = 0;
	slices_end_ = 0;
	held_ = 0;
	figures_->rows_in = figures_->pairs = rows_taken_ = 0;
	figures_->tablets_scanned = 0;
}

/* All of cursor 0. */
void
JoinJob::run_pass()
{
	Source	   *source = sources_[0].get();
	const uint32_t pads = batch_ / TABLET_PAD_ROWS;

	while (source->next_pad < source->work.pads.size())
	{
		const RowStaging staging = row_staging(plan_->first(), pads, staging_);

		if (source->next_pad >= slices_end_)
			open_slices(pads);
		if (picks_)
		{
			run_picked();
			continue;
		}

		const uint32_t n = std::min(slice_pads_, slices_end_ - source->next_pad);
		const uint32_t rows = slice_rows_[(source->next_pad - slices_first_) / slice_pads_];

		if (rows == 0)
		{
			count_work(source->work, *source->feed, source->next_pad, n, figures_);
			source->next_pad += n;
			continue;
		}
		if (held_ + rows > batch_)
			run_held();
		start();
		if (held_ == 0)
			check(reset_rows(levels_[0].in, lane_->stream), "emptying a row set");
		launch_source(source, n, staging, figures_);
		check(append_rows(plan_->first(), staging, n, levels_[0].in, temp_, &outcomes_->rows, lane_->stream), "collecting rows");
		held_ += rows;
		/* What comes next is unlikely to find room; with a limit of rows these may be enough. */
		if (filter_.nkeys == 0 || row_limit_ != 0)
			run_held();
	}
	if (held_ != 0)
		run_held();
}

/*
 * Once, or pass by pass. What levels up to the split one have for inner rows that had no partner goes on in each of them: it passes the split level,
 * or is its own. Those behind it know at the end.
 */
void
JoinJob::run_outer()
{
	const uint64_t rows_in = figures_->rows_in;
	const uint32_t tablets = figures_->tablets_scanned;

	figures_->passes = passes_;
	for (uint32_t pass = 0; pass < passes_; pass++)
	{
		if (pass != pass_)
			build_pass(pass);
		if (pass != 0)
		{
			(void) sync();
			sources_[0]->feed->restart();
			sources_[0]->next_pad = slices_end_ = 0;
			figures_->rows_in = rows_in;
			figures_->tablets_scanned = tablets;
		}
		steps_.enter(JoinStep::First);
		start();
		for (size_t i = 0; i < levels_.size(); i++)
			if (levels_[i].partnered != nullptr && (pass == 0 || i <= split_))
				check(cudaMemsetAsync(levels_[i].partnered, 0, bitmap_bytes(levels_[i].side_rows), lane_->stream), "marking rows");
		run_pass();
		steps_.enter(JoinStep::Levels);
		run_rest(0, split_ < levels_.size() ? split_ + 1 : levels_.size());
	}
	if (split_ < levels_.size())
		run_rest(split_ + 1, levels_.size());
}

/* Level 0 has what it is to take now. */
void
JoinJob::run_held()
{
	held_ = 0;
	(void) sync();
	steps_.enter(JoinStep::Levels);
	run_level(0, appended());
	steps_.enter(JoinStep::First);
}

/* What filters have left of the slices at hand; without a list all of a slice. */
void
JoinJob::run_picked()
{
	Source	   *source = sources_[0].get();
	const uint32_t first = source->next_pad;

	if (held_ != 0)
		run_held();
	count_work(source->work, *source->feed, first, slices_end_ - first, figures_);
	source->next_pad = slices_end_;
	for (uint32_t at = 0, n; at < npicked_; at += n)
	{
		n = std::min(batch_, npicked_ - at);
		if (at != 0)
			(void) sync();
		start();
		check(fetch_rows(source->feed->table(), source->program.ncolumns, first, fetched_.data(), picked_ != nullptr ? picked_ + at : nullptr, n,
						 levels_[0].in, lane_->stream),
			  "fetching rows");
		figures_->slices++;
		steps_.enter(JoinStep::Levels);
		running_picked_ = true;
		run_level(0, n);
		running_picked_ = false;
		steps_.enter(JoinStep::First);
	}
	/* What comes next takes the list. */
	if (source->next_pad < source->work.pads.size())
		(void) sync();
}

bool
JoinJob::has_rest() const
{
	return std::any_of(levels_.begin(), levels_.end(), [](const Level &level) { return level.partnered != nullptr; });
}

/*
 * Full joins: inner rows that were in no pair go on. What one of them leaves passes the
 * levels behind it before theirs is looked at.
 */
void
JoinJob::run_rest(size_t from, size_t end)
{
	for (size_t i = from; i < end; i++)
	{
		const Level &level = levels_[i];
		BitScan		scan;

		if (level.partnered == nullptr)
			continue;
		start();
		check(scan_bits(level.partnered, level.side_rows, false, level.partnered_scan, &scan, &outcomes_->total, lane_->stream), "selecting rows");
		(void) sync();

		const uint32_t left = outcomes_->total;

		for (uint32_t at = 0; at < left; at += batch_)
		{
			const uint32_t n = std::min(batch_, left - at);

			start();
			check(emit_rows(scan, at, n, inner_[0], lane_->stream), "selecting rows");
			run_tail(i, nullptr, inner_[0], n, Absent::Outer);
			(void) sync();
		}
	}
}

}  // namespace cuda
}  // namespace gpuvm
