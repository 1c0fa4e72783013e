/* job_sort.cc: rows and groups that leave in an order (sort.h). See job.h. */
#include "job.h"

#include <algorithm>
#include <cstring>

#include "failure.h"
#include "row_results.h"

namespace gpuvm {
namespace cuda {

/* Fewer than one row in so many are looked for before they are sorted. */
constexpr uint32_t FEW = 4;
/* So many, or less, are sorted by one block. */
constexpr uint32_t SORTED_AT_ONCE = 4096;

/* The host looks at what it gave. */
void
DeviceJob::take_step(const std::function<void()> &step)
{
	begin_flight(*open_flight(0, 0));
	step();
	close_flight();
	(void) land();
}

/* What the request says of the keys; ranks lie on the device then. */
void
DeviceJob::send_ranks(const RowSet &rows, SortKeys *keys)
{
	uint64_t	bytes = 0;
	char	   *to = nullptr;

	keys->n = request_.norder;
	for (int pass = 0; pass < 2; pass++)
	{
		uint64_t	at = 0;

		for (uint32_t k = 0; k < keys->n; k++)
		{
			const JobOrderKey &from = request_.order[k];
			SortKey    &key = keys->keys[k];

			key.column = from.column;
			key.type = rows.column[from.column].type;
			key.desc = (from.flags & ORDER_DESC) != 0;
			key.nulls_first = (from.flags & ORDER_NULLS_FIRST) != 0;
			key.ranked = (from.flags & ORDER_RANKS) != 0;
			if (!key.ranked)
				continue;

			const CodeMap &map = request_.maps[from.map];
			const uint64_t values = map.nentries * static_cast<uint64_t>(type_width(map.type));
			const uint64_t bits = map.nulls != nullptr ? (static_cast<uint64_t>(map.nentries) + 63) / 64 * sizeof(uint64_t) : 0;

			key.type = map.type;
			key.nranks = map.nentries;
			if (pass == 1)
			{
				memcpy(ranks_.data() + at, map.values, values);
				key.ranks = to + at;
				if (bits != 0)
				{
					memcpy(ranks_.data() + at + align_up(values, 16), map.nulls, bits);
					key.no_rank = reinterpret_cast<const uint64_t *>(to + at + align_up(values, 16));
				}
			}
			at += align_up(values, 16) + align_up(bits, 16);
		}
		if (at == 0)
			return;
		if (pass == 0)
		{
			bytes = at;
			to = allocate(bytes);
			ranks_.resize(bytes);
		}
	}
	check(cudaMemcpyAsync(to, ranks_.data(), bytes, cudaMemcpyHostToDevice, lane_->stream), "sending ranks");
	figures_->bytes_moved += bytes;
}

/* Of sums those of the upper halves, if some do not fit 64 bits. */
static SortRange
found_range(const SortFacts &facts, Type type, uint32_t k)
{
	const bool	nulls = facts.nulls[k] != 0;

	if (type != Type::I128 || facts.lo[k] > facts.hi[k])
		return SortRange{nulls, facts.lo[k], facts.hi[k]};
	if (facts.wide[k] != 0)
		return SortRange{nulls, static_cast<uint128>(facts.upper_lo[k]) << 64, (static_cast<uint128>(facts.upper_hi[k]) << 64) | UINT64_MAX};

	/* sort_bits() of an I64 is its distance from the least one */
	const uint128 least = sort_bits(static_cast<int128>(INT64_MIN));

	return SortRange{nulls, least + facts.lo[k], least + facts.hi[k]};
}

/* How many rows have leading bits up to the least that so many are wanted of. */
uint32_t
DeviceJob::leading_rows(const SortFacts &facts, uint32_t wanted, uint32_t *lead)
{
	uint32_t	n = 0;

	for (*lead = 0; *lead < SORT_LEADS; (*lead)++)
	{
		n += facts.leads[*lead];
		if (n >= wanted)
			break;
	}
	return n;
}

void
DeviceJob::look_at_keys(const RowSet &rows, uint32_t nrows, bool counted)
{
	send_ranks(rows, &sort_keys_);
	sort_facts_ = reinterpret_cast<SortFacts *>(allocate(sizeof(SortFacts)));
	check(find_sort_ranges(rows, nrows, counted, sort_keys_, sort_facts_, lane_->stream), "looking at what is sorted");
	check(cudaMemcpyAsync(&lane_->outcomes->sort, sort_facts_, offsetof(SortFacts, leads), cudaMemcpyDeviceToHost, lane_->stream), "looking at what is sorted");
}

/* Packs the keys that were looked at. */
void
DeviceJob::pack_keys(SortRange *ranges)
{
	for (uint32_t k = 0; k < sort_keys_.n; k++)
		ranges[k] = found_range(lane_->outcomes->sort, sort_keys_.keys[k].type, k);
	pack_sort_keys(&sort_keys_, ranges);
}

void
DeviceJob::count_leads(const RowSet &rows, uint32_t nrows)
{
	take_step([&] {
		check(count_sort_leads(rows, nrows, sort_keys_, sort_facts_, lane_->stream), "counting what is sorted");
		check(cudaMemcpyAsync(&lane_->outcomes->sort, sort_facts_, sizeof(SortFacts), cudaMemcpyDeviceToHost, lane_->stream), "counting what is sorted");
	});
}

/* The n rows whose words begin with `lead` or less, or all. What comes next waits for it on the device: a flight is open. */
const uint32_t *
DeviceJob::sort_leading(const RowSet &rows, uint32_t nrows, uint32_t n, uint32_t lead, const uint64_t **words)
{
	const uint64_t bytes = sort_rows_bytes(sort_keys_, n);
	const uint32_t *order;

	if (bytes == 0)
		throw Refusal{"the device does not sort so many rows"};

	char	   *memory = allocate(bytes);

	begin_flight(*open_flight(0, 0));
	check(sort_rows(rows, nrows, sort_keys_, n, lead, sort_facts_, memory, &order, words, lane_->stream), "sorting");
	close_flight();
	return order;
}

/* Sorts the first `wanted` of the rows at least, whose keys were looked at: their numbers; nullptr where the job was stopped. */
const uint32_t *
DeviceJob::sort_first(const RowSet &rows, uint32_t nrows, uint32_t wanted)
{
	SortRange	ranges[SORT_MAX_KEYS];
	const uint64_t *words;
	uint32_t	n = nrows, lead = SORT_LEADS;

	pack_keys(ranges);
	if (wanted < nrows / FEW && nrows > SORTED_AT_ONCE)
	{
		count_leads(rows, nrows);
		if (stopped())
			return nullptr;
		n = leading_rows(lane_->outcomes->sort, wanted, &lead);
	}
	return sort_leading(rows, nrows, n, lead, &words);
}

/* What so many of the rows, whose keys were looked at, do not exceed. */
TopBound
DeviceJob::find_bound(const RowSet &rows, uint32_t nrows, uint32_t wanted)
{
	SortRange	ranges[SORT_MAX_KEYS];
	const uint64_t *words;
	uint32_t	lead, n;

	pack_keys(ranges);
	if (wanted > nrows)
		return TopBound{};
	count_leads(rows, nrows);
	if (stopped())
		return TopBound{};
	n = leading_rows(lane_->outcomes->sort, wanted, &lead);
	if (n - wanted <= top_sizes.most_spare)
		return last_of_words(sort_keys_, ranges, static_cast<uint64_t>(lead) << (64 - SORT_LEADING_BITS), SORT_LEADING_BITS);

	/* the leading bits say little: the very row's word */
	(void) sort_leading(rows, nrows, n, lead, &words);
	(void) land();
	take_step([&] {
		check(cudaMemcpyAsync(&lane_->outcomes->sort.lo[0], words + (wanted - 1), sizeof(uint64_t), cudaMemcpyDeviceToHost, lane_->stream), "finding a bound");
	});
	if (stopped())
		return TopBound{};
	return last_of_words(sort_keys_, ranges, lane_->outcomes->sort.lo[0], std::clamp<uint32_t>(sort_keys_.keys[0].end, 1, 64));
}

void
DeviceJob::sort_out(const RowSet &rows, uint32_t nrows)
{
	const uint32_t wanted = request_.row_limit != 0 ? static_cast<uint32_t>(std::min<uint64_t>(request_.row_limit, nrows)) : nrows;
	const uint32_t *order = nrows != 0 && request_.norder > 0 ? sort_first(rows, nrows, wanted) : nullptr;

	/* stopped, unless they come as they are */
	if (order == nullptr && nrows != 0 && request_.norder > 0)
		return;
	if (set_ != nullptr)
	{
		store_rows(rows, order, wanted);
		return;
	}
	emit_in_order(wanted, [&](uint64_t first, uint32_t m, char *area) {
		check(emit_row_set(rows, order, static_cast<uint32_t>(first), m, area, request_.capacity, lane_->stream), "emitting sorted rows");
	});
}

/* The groups become rows. */
void
DeviceJob::sort_groups(const DeviceProgram &program, const GroupTable &table, uint64_t ngroups)
{
	if (ngroups == 0)
		return;

	const RowSet rows = group_rows(program, table, ngroups);

	take_step([&] { look_at_keys(rows, static_cast<uint32_t>(ngroups), false); });
	(void) land();
	if (!stopped())
		sort_out(rows, static_cast<uint32_t>(ngroups));
}

}  // namespace cuda
}  // namespace gpuvm
