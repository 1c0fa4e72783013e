/*
 * join_filter.cc: rows of cursor 0 without partner, found before `first` runs. See join.h, key_filter.h.
 *
 * Which levels' keys leave out how many rows is not known: some pads tell. They are asked again for pads
 * that come later, as long as no filter is worth it.
 */
#include "join.h"

#include <algorithm>

#include "failure.h"

namespace gpuvm {
namespace cuda {

constexpr uint32_t SAMPLE_PADS = 64;
constexpr uint64_t SMALL_KEY_BITS = 1 << 20;	/* 128 KB: an L1 cache has room for them */
constexpr double MOST_LEFT = 0.8;	/* with more rows left filters are not worth their time, */
constexpr double MOST_LEFT_OF_KEY = 0.95;	/* nor is one of them */
constexpr double MOST_PICKED = 0.5;	/* of more rows it is better to read whole columns */
constexpr uint64_t ROWS_OF_SIDE = 4;	/* outer rows, by inner rows that bits have to be set for */

/* Its number among the columns that `first` reads. */
uint32_t
JoinJob::column_of(uint16_t table_column) const
{
	const DeviceProgram &first = plan_->first();
	uint32_t	c = 0;

	while (c < first.ncolumns && first.columns[c].table_column != table_column)
		c++;
	return c;
}

/* The bits of the levels' keys. */
void
JoinJob::make_filters()
{
	if (!may_filter_)
		return;
	for (size_t i : plan_->filter_levels())
	{
		const Level &level = levels_[i];
		FilterKey	key = {};

		/* it has another pass's keys, too */
		if (i == split_)
			continue;
		key.column = column_of(static_cast<uint16_t>(plan_->filter_column(i)));
		if (filters_.size() == MAX_FILTER_KEYS || key.column == plan_->first().ncolumns ||
			(level.facts.live != 0 && level.side_rows > sources_[0]->work.rows / ROWS_OF_SIDE))
			continue;
		key.type = sources_[0]->work.columns[plan_->filter_column(i)].type;
		if (level.facts.live != 0)
		{
			key.side.lo = level.facts.lo;
			key.side.n = static_cast<uint64_t>(level.facts.hi) - static_cast<uint64_t>(level.facts.lo) + 1;
			if (key.side.n == 0 || key.side.n > MOST_KEY_BITS)
				continue;
		}
		if (level.facts.live != 0 && level.table.form != JoinForm::Identity)
		{
			const uint64_t bytes = bitmap_bytes(key.side.n);
			uint32_t   *bits = reinterpret_cast<uint32_t *>(try_allocate(bytes));

			if (bits == nullptr)
				continue;
			start();
			check(fill_key_bits(level.side.column[0], level.side_rows, key.side.lo, key.side.n, bits, lane_->stream), "marking keys");
			key.side.bits = bits;
		}
		filters_.push_back(key);
		filter_levels_.push_back(i);
	}
	make_picks();
	filter_.ncolumns = plan_->first().ncolumns;
	filter_.dead_column = column_of(DEAD_COLUMN);
}

/* The columns that a row of cursor 0 has where its program does not run. False: one of them is not read. */
bool
JoinJob::list_fetched()
{
	const Source &source = *sources_[0];

	fetched_.clear();
	for (int column : plan_->plain_first()->results)
	{
		fetched_.push_back(TableColumn{column_of(static_cast<uint16_t>(column)), source.work.columns[column].type});
		if (fetched_.back().column == source.program.ncolumns)
			return false;
	}
	return true;
}

/* Are all rows of cursor 0 there, one behind the other, and does its program do no more than hand on columns of each? Then these are fetched. */
bool
JoinJob::fetches_all()
{
	const PlainRows *plain = plan_->plain_first();
	const Source &source = *sources_[0];
	const std::vector<WorkTablet> &tablets = source.work.tablets;

	return plain != nullptr && plain->kept.empty() && !may_filter_ && source.work.dead_pads == 0 && source.feed->all_placed() &&
		source.feed->transfer() == Transfer::Cached && !tablets.empty() &&
		std::all_of(tablets.begin(), tablets.end() - 1, [](const WorkTablet &t) { return t.rows == uint64_t{t.npads} * TABLET_PAD_ROWS; }) &&
		tablets.back().rows + TABLET_PAD_ROWS > uint64_t{tablets.back().npads} * TABLET_PAD_ROWS && list_fetched();
}

/*
 * Where `first` only holds columns against intervals, these are filters, too, and what they all leave need not be run: it is fetched. Not
 * where a few rows may be enough.
 */
void
JoinJob::make_picks()
{
	const PlainRows *plain = plan_->plain_first();
	const Source &source = *sources_[0];
	const uint64_t together = std::min<uint64_t>(source.work.rows, uint64_t{FILTER_PARTS} * join_sizes.most_batch);	/* rows that are filtered */
	const uint64_t most = static_cast<uint64_t>(MOST_PICKED * static_cast<double>(together));
	std::vector<FilterKey> intervals;

	if (plain == nullptr || filters_.empty() || row_limit_ != 0 || !source.feed->all_placed() || source.feed->transfer() != Transfer::Cached ||
		filters_.size() + plain->kept.size() > MAX_FILTER_KEYS)
		return;
	for (const ColumnInterval &kept : plain->kept)
	{
		FilterKey	key = {};

		key.column = column_of(static_cast<uint16_t>(kept.column));
		key.type = source.work.columns[kept.column].type;
		key.side.lo = kept.lo;
		key.side.n = kept.lo > kept.hi ? 0 : static_cast<uint64_t>(kept.hi) - static_cast<uint64_t>(kept.lo) + 1;
		if (key.column == source.program.ncolumns || (key.side.n == 0 && kept.lo <= kept.hi))
			return;
		intervals.push_back(key);
	}
	if (!list_fetched())
		return;
	picked_ = reinterpret_cast<uint32_t *>(try_allocate(std::max<uint64_t>(most, 1) * sizeof(uint32_t)));
	if (picked_ == nullptr)
		return;
	most_picked_ = static_cast<uint32_t>(most);
	filters_.insert(filters_.end(), intervals.begin(), intervals.end());
}

/* Asks pads among these what each filter leaves. */
void
JoinJob::choose_filter(uint32_t first, uint32_t npads)
{
	const uint32_t n = std::min(npads, SAMPLE_PADS);
	const FilterPads sample = {first, n, npads / n, n, false};
	std::vector<std::pair<double, size_t>> worth;	/* per filter: rows that it leaves out, by its cost */
	KeyFilter	one = filter_;
	double		left = 1, left_of_intervals = 1;

	start();
	for (size_t i = 0; i <= filters_.size(); i++)	/* with none: what is there */
	{
		one.nkeys = i < filters_.size();
		if (one.nkeys != 0)
			one.key[0] = filters_[i];
		check(filter_rows(one, sources_[0]->feed->table(), sample, filter_words_ + i * FILTER_PARTS, outcomes_->left[i], lane_->stream),
			  "counting rows");
	}
	(void) sync();

	const double rows = outcomes_->left[filters_.size()][0];

	for (size_t i = 0; i < filters_.size() && rows > 0; i++)
	{
		const double its = outcomes_->left[i][0] / rows;

		if (its > MOST_LEFT_OF_KEY && i < filter_levels_.size())
			continue;
		worth.emplace_back((1 - its) / (filters_[i].side.bits != nullptr && filters_[i].side.n > SMALL_KEY_BITS ? 2 : 1), i);
		(i < filter_levels_.size() ? left : left_of_intervals) *= its;
	}
	may_pick_ = picked_ != nullptr && left * left_of_intervals <= MOST_PICKED;
	if (!may_pick_ && left > MOST_LEFT)
		return;
	std::sort(worth.rbegin(), worth.rend());
	for (Level &level : levels_)
		level.filtered = false;
	for (const auto &[unused, i] : worth)
	{
		if (i >= filter_levels_.size() && !may_pick_)
			continue;
		filter_.key[filter_.nkeys++] = filters_[i];
		if (i < filter_levels_.size())
			levels_[filter_levels_[i]].filtered = true;
	}
}

/*
 * Brings the next pads: a slice, or, if all columns are on the device and rows are filtered, several. All that was
 * launched before is done with its own.
 */
void
JoinJob::open_slices(uint32_t most_pads)
{
	Source	   *source = sources_[0].get();
	const uint32_t first = source->next_pad, left = static_cast<uint32_t>(source->work.pads.size()) - first;
	uint32_t	n;
	bool		waits;

	if (held_ != 0)
		(void) sync();
	if (!filters_.empty())
		steps_.enter(JoinStep::Filter);
	source->feed->retire(first);
	slices_first_ = first;
	picks_ = false;
	slice_pads_ = n = bring_source(source, most_pads);
	slice_rows_[0] = n * TABLET_PAD_ROWS;
	if (!filters_.empty())
	{
		if (source->feed->all_placed() && source->feed->transfer() == Transfer::Cached)
		{
			n = std::min(left, n * FILTER_PARTS);
			source->feed->bring(first, n, &waits);
		}
		if (filter_.nkeys == 0)
			choose_filter(first, n);
		if (filter_.nkeys == 0)
			n = slice_pads_;
		else
		{
			uint64_t	rows = 0;

			start();
			check(filter_rows(filter_, source->feed->table(), FilterPads{first, n, 1, slice_pads_, true, may_pick_ ? picked_ : nullptr, most_picked_}, filter_words_,
							  outcomes_->left[0], lane_->stream), "filtering rows");
			(void) sync();
			std::copy_n(outcomes_->left[0], FILTER_PARTS, slice_rows_);
			for (uint32_t part : slice_rows_)
				rows += part;
			picks_ = may_pick_ && rows <= most_picked_;
			npicked_ = picks_ ? static_cast<uint32_t>(rows) : 0;
			steps_.filtered(static_cast<uint64_t>(n) * TABLET_PAD_ROWS, rows);
			if (static_cast<double>(rows) > MOST_LEFT * n * TABLET_PAD_ROWS)
				filter_.nkeys = 0;	/* these are; the next ones are asked again */
		}
	}
	if (fetches_all_)
	{
		picks_ = true;
		npicked_ = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{n} * TABLET_PAD_ROWS, source->work.rows - uint64_t{first} * TABLET_PAD_ROWS));
	}
	slices_end_ = first + n;
	steps_.enter(JoinStep::First);
}

}  // namespace cuda
}  // namespace gpuvm
