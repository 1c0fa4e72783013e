/*
 * join_reduce.cc: inner sides that find no room: their rows are counted before any is built, less those that no row meets; and if they find
 * none even so, one of them is built and met in passes. See join.h.
 *
 * A key of a level comes from the rows of one cursor before it, mostly: an edge between that cursor and the level's side. Rows are held against
 * the values at the other end of their edges, where these are integers, as bits: first the sides from the last to the first, so that rows go which come
 * to nothing at a level behind; then all cursors in order, so that sides have no rows that nothing comes for. What is left of a cursor holds for
 * those after it. So each side is what joins all around it leave of it (a semijoin reduction), however large it was.
 *
 * All of it is a bound: a row too many finds no partner. So bits that find no room, and values of too wide a range, are left out.
 */
#include "join.h"

#include <algorithm>

#include "failure.h"
#include "vm/join_index.h"

namespace gpuvm {
namespace cuda {

constexpr uint64_t SMALL_SHARE = 4;	/* rows of a side, by those of a cursor that may leave few of them */
constexpr double MOST_KEPT = 0.8;	/* with more rows left the bits are of little use to others */

/* ---- cursors ---------------------------------------------------------------------- */

/*
 * Its columns are pinned from here on; what would leave too little for the rest is read slice by slice, and not kept. All that was enqueued is done; another's
 * description may be overwritten.
 */
JoinJob::Source *
JoinJob::open_source(size_t cursor)
{
	const uint64_t most = device_->residency()->available() / 2;

	sources_[cursor]->feed->begin(request_.transfer);
	if (request_.transfer == Transfer::Auto && sources_[cursor]->feed->bytes() > most)
	{
		close_source(cursor);
		sources_[cursor]->feed->begin(Transfer::Stream);
	}

	Source	   *source = sources_[cursor].get();

	device_->make_table_room(lane_, source->feed->table_end());
	source->feed->use_lane(lane_);
	if (source->work.dead_pads != 0)
	{
		source->dead_bits = allocate(source->work.dead_pads * DEAD_PAD_BYTES);
		source->feed->use_dead_bits(source->dead_bits);
	}
	return source;
}

/* So that it can be opened again. */
void
JoinJob::close_source(size_t cursor)
{
	end_source(&sources_[cursor]);
	sources_[cursor] = new_source(cursor);
}

/* All rows of a cursor, less those that fail its tests: how many there are; of a level that may be split, in each part. Sets the edges' bits. */
uint64_t
JoinJob::read_cursor(size_t cursor, const std::vector<KeyEdge *> &edges, KeySet set)
{
	Source	   *source = open_source(cursor);
	const DeviceProgram &program = source->program;
	const RowTests tests = tests_of(cursor);
	const uint32_t nkeys = cursor == 0 || !may_split(cursor - 1) ? 0 : static_cast<uint32_t>(levels_[cursor - 1].plan->split->key_types.size());
	Carver		size;
	const uint32_t most = staged_pads(*source, &size);
	char	   *memory = allocate(size.taken());
	const RowStaging staging = row_staging(program, most, memory);
	uint32_t   *parts = reinterpret_cast<uint32_t *>(allocate(KEY_PARTS * sizeof(uint32_t)));
	std::vector<uint32_t> counted(KEY_PARTS);
	DeviceJobFigures read = {};
	uint64_t	rows = 0;

	start();
	check(cudaMemsetAsync(parts, 0, KEY_PARTS * sizeof(uint32_t), lane_->stream), "counting keys");
	while (source->next_pad < source->work.pads.size())
	{
		const uint32_t n = stage_slice(source, tests, most, staging, &read);

		check(count_parts(program, staging, n, nkeys, parts, lane_->stream), "counting keys");
		for (const KeyEdge *edge : edges)
		{
			const KeyBits &bits = *(edge->*set);

			if (bits.n != 0)
				check(add_key_bits(program, staging, n, set == &KeyEdge::there ? edge->key : edge->result, bits.lo, bits.n,
								   const_cast<uint32_t *>(bits.bits), lane_->stream), "marking keys");
		}
		fetch_errors();
		(void) sync();
	}
	start();
	check(cudaMemcpyAsync(counted.data(), parts, KEY_PARTS * sizeof(uint32_t), cudaMemcpyDeviceToHost, lane_->stream), "counting keys");
	(void) sync();
	steps_.counted();
	release(reinterpret_cast<char *>(parts));
	release(memory);
	close_source(cursor);
	for (uint32_t part : counted)
		rows += part;
	if (cursor != 0)
	{
		levels_[cursor - 1].most_rows = rows;
		levels_[cursor - 1].parts = nkeys != 0 ? counted : std::vector<uint32_t>();
	}
	return rows;
}

/* ---- edges ------------------------------------------------------------------------ */

void
JoinJob::find_edges()
{
	for (size_t i = 0; i < levels_.size(); i++)
	{
		const PlannedLevel &level = *levels_[i].plan;
		const JoinLevel &split = *level.split;

		if (!split.sought || split.range != 0 || split.kind == JoinKind::Full)
			continue;
		for (size_t k = 0; k < split.key_types.size(); k++)
		{
			const KeySource from = key_source(plan_->split(), i, k);

			if (from.cursor < 0)
				continue;

			const size_t cursor = static_cast<size_t>(from.cursor);
			const ValueRange &there = level.build_ranges[k];
			const ValueRange &wanted = (cursor == 0 ? plan_->first_ranges() : levels_[cursor - 1].plan->build_ranges)[static_cast<size_t>(from.result)];
			const int64_t lo = std::max(there.lo, wanted.lo), hi = std::min(there.hi, wanted.hi);
			const uint64_t last = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo);

			if (!type_is_int(there.type) || !type_is_int(wanted.type) || (lo <= hi && last >= MOST_KEY_BITS))
				continue;

			KeyEdge		edge = {};

			edge.level = i;
			edge.key = static_cast<uint32_t>(k);
			edge.cursor = cursor;
			edge.result = static_cast<uint32_t>(from.result);
			edge.lo = lo;
			edge.n = lo <= hi && there.may_value && wanted.may_value ? last + 1 : 0;
			edge.holds = (split.kind == JoinKind::Inner || split.kind == JoinKind::Semi) &&
				(cursor == 0 ? !plan_->first_raises() : levels_[cursor - 1].plan->split->kind == JoinKind::Inner) &&
				!plan_->raises_between(cursor == 0 ? 0 : cursor - 1, i);
			edges_.push_back(edge);
		}
	}
}

/* What rows of a cursor have to be, by what is known now; in a pass of its level, to be in that. */
RowTests
JoinJob::tests_of(size_t cursor) const
{
	RowTests	tests;
	const auto	add = [&](uint32_t result, const KeyBits &side)
	{
		if (tests.ntests == MAX_ROW_TESTS)
			return;
		tests.test[tests.ntests].result = result;
		tests.test[tests.ntests++].side = side;
	};

	for (const KeyEdge &edge : edges_)
		if (edge.level + 1 == cursor && edge.wanted)
			add(edge.key, *edge.wanted);
		else if (edge.cursor == cursor && edge.holds && edge.there)
			add(edge.result, *edge.there);
	if (split_ < levels_.size() && cursor == split_ + 1)
	{
		tests.parts = pass_list_[pass_].parts;
		tests.nkeys = static_cast<uint32_t>(levels_[split_].plan->split->key_types.size());
	}
	return tests;
}

/* May a cursor have fewer rows than there are? */
bool
JoinJob::leaves_out(size_t cursor) const
{
	std::string key;

	if (tests_of(cursor).any())
		return true;
	if (cursor == 0)
		return plan_->plain_first() == nullptr || !plan_->plain_first()->kept.empty();
	return !gpuvm::index_key(*levels_[cursor - 1].plan->split, &key);
}

/* Are the cursor's rows few by those of the edge's side, which they may then leave few of? */
bool
JoinJob::is_small(const KeyEdge &edge) const
{
	return sources_[edge.cursor]->work.rows <= sources_[edge.level + 1]->work.rows / SMALL_SHARE;
}

/* Does a side without rows mean that nothing is run, and so nothing raised? Not if it has some that were left out. */
bool
JoinJob::empties(size_t number) const
{
	return tests_of(number + 1).ntests == 0 || !(plan_->first_raises() || plan_->raises_between(0, number));
}

bool
JoinJob::open_bits(KeyEdge *edge, KeySet set)
{
	const uint64_t bytes = bitmap_bytes(edge->n);
	uint32_t   *bits = edge->n != 0 ? reinterpret_cast<uint32_t *>(try_allocate(bytes)) : nullptr;

	if (edge->n != 0 && bits == nullptr)
		return false;
	if (bits != nullptr)
	{
		start();
		check(cudaMemsetAsync(bits, 0, bytes, lane_->stream), "marking keys");
	}
	edge->*set = KeyBits{bits, edge->lo, edge->n};
	return true;
}

void
JoinJob::close_bits(KeyEdge *edge, KeySet set)
{
	release(reinterpret_cast<const char *>((edge->*set)->bits));
	(edge->*set).reset();
}

/* Reads the cursor for these edges; they have no bits if it has most of its rows, and many. */
void
JoinJob::fill_edges(size_t cursor, const std::vector<KeyEdge *> &edges, KeySet set)
{
	const uint64_t all = sources_[cursor]->work.rows;
	std::vector<KeyEdge *> open;

	for (KeyEdge *edge : edges)
		if (open_bits(edge, set))
			open.push_back(edge);
	if (static_cast<double>(read_cursor(cursor, open, set)) <= MOST_KEPT * static_cast<double>(all))
		return;
	for (KeyEdge *edge : open)
		if (set == &KeyEdge::there || !is_small(*edge))
			close_bits(edge, set);
}

/* What a side has been held against makes it this job's alone, and no index. */
void
JoinJob::reduce()
{
	const auto	list = [&](const std::function<bool(const KeyEdge &)> &is_one)
	{
		std::vector<KeyEdge *> found;

		for (KeyEdge &edge : edges_)
			if (is_one(edge))
				found.push_back(&edge);
		return found;
	};

	find_edges();
	for (size_t i = levels_.size(); i-- > 0;)
	{
		const std::vector<KeyEdge *> edges = list([i](const KeyEdge &edge) { return edge.level == i && edge.holds; });

		if (!edges.empty() && leaves_out(i + 1))
			fill_edges(i + 1, edges, &KeyEdge::there);
	}
	for (size_t cursor = 0; cursor <= levels_.size(); cursor++)
	{
		const std::vector<KeyEdge *> edges = list([cursor](const KeyEdge &edge) { return edge.cursor == cursor; });

		if (cursor != 0)
			levels_[cursor - 1].most_rows = sources_[cursor]->work.rows;
		/* what cursor 0's program raises it may raise when all sides are there, and none is empty */
		if (cursor == 0 && (edges.empty() || plan_->first_raises()))
			continue;
		if (leaves_out(cursor) || std::any_of(edges.begin(), edges.end(), [&](const KeyEdge *edge) { return is_small(*edge); }))
			fill_edges(cursor, edges, &KeyEdge::wanted);
		if (cursor != 0 && tests_of(cursor).any())
			levels_[cursor - 1].key.clear();
	}
	choose_passes();
}

/* ---- passes ---------------------------------------------------------------------- */

bool
JoinJob::may_split(size_t number) const
{
	const JoinLevel &level = *levels_[number].plan->split;

	return level.sought && level.range == 0 && level.key_types.size() <= JOIN_MAX_KEYS;
}

/*
 * The largest level that is sought by equal keys. Groups, rows that leave sorted, and those of a set, of which nothing is left when the job
 * is refused, are handed out at the end: what a later pass finds no room for may still be run elsewhere. Other rows would have been handed out.
 */
size_t
JoinJob::level_to_split() const
{
	uint64_t	most = 0;
	size_t		found = SIZE_MAX;

	if (!request_.program->grouped && request_.norder == 0 && !request_.sink)
		return found;
	for (size_t i = 0; i < levels_.size(); i++)
	{
		uint64_t	temp;
		const uint64_t bytes = may_split(i) ? side_bytes(i, 1, &temp) : 0;

		if (bytes <= most)
			continue;
		most = bytes;
		found = i;
	}
	return found;
}

/* Of a side's rows and table in each of so many passes, and while the table is built. Its keys are taken to be of any value. */
uint64_t
JoinJob::side_bytes(size_t number, uint32_t passes, uint64_t *temp) const
{
	const Level &level = levels_[number];
	const JoinLevel &split = *level.plan->split;
	const uint64_t rows = std::min<uint64_t>((level.most_rows + passes - 1) / passes, ROW_SET_MAX_ROWS);
	JoinTablePlan plan = {};
	JoinKeys	keys = {};
	KeyFacts	facts = {INT64_MIN, INT64_MAX, 0, 0, 0};

	*temp = 0;
	if (split.sought && rows != 0)
	{
		keys.nkeys = static_cast<uint32_t>(std::min<size_t>(split.key_types.size(), JOIN_MAX_KEYS));
		for (uint32_t k = 0; k < keys.nkeys; k++)
			keys.key[k].type = split.key_types[k];
		facts.live = rows;
		plan_join_table(keys, static_cast<uint32_t>(rows), facts, split.range != 0, &plan);
		*temp = plan.temp_bytes;
	}
	return row_set_bytes(*level.plan->build, rows) + plan.table_bytes;
}

/* Of all sides at once, and while one is built. */
uint64_t
JoinJob::bytes_wanted(size_t split, uint32_t passes) const
{
	uint64_t	sides = 0, most_temp = std::min(STAGING_BYTES, device_->residency()->available() / 8);

	for (size_t i = 0; i < levels_.size(); i++)
	{
		uint64_t	temp;

		sides += side_bytes(i, i == split ? passes : 1, &temp);
		most_temp = std::max(most_temp, temp);
	}
	return sides + most_temp;
}

/* Groups and batches are to find room, too. */
bool
JoinJob::fit(size_t split, uint32_t passes) const
{
	const uint64_t room = device_->residency()->available();

	return bytes_wanted(split, passes) + room / 8 <= room;
}

/* As few as the sides find room in; where nothing can be split they have to find it in one. */
void
JoinJob::choose_passes()
{
	const size_t split = level_to_split();

	passes_ = split < levels_.size() ? way_.passes : 1;
	/* in the most of all it tries, and waits for other jobs' memory */
	while (split < levels_.size() && passes_ < MOST_PASSES && !fit(split, passes_))
		passes_ *= 2;
	if (passes_ == 1)
		return;
	/* its rows are counted by parts before they are those of a pass */
	if (levels_[split].parts.empty())
		(void) read_cursor(split + 1, {}, &KeyEdge::wanted);
	levels_[split].key.clear();
	split_ = split;
	for (uint32_t pass = 0; pass < passes_; pass++)
	{
		Pass		one = {PartRange{pass * KEY_PARTS / passes_, (pass + 1) * KEY_PARTS / passes_}, 0};

		for (uint32_t part = one.parts.first; part < one.parts.end; part++)
			one.rows += levels_[split].parts[part];
		figures_->build_rows += one.rows;
		pass_list_.push_back(one);
	}
	std::stable_sort(pass_list_.begin(), pass_list_.end(), [](const Pass &one, const Pass &other) { return one.rows > other.rows; });
}

}  // namespace cuda
}  // namespace gpuvm
