/* cpu_sort.cc: the phases of a sort, and its rows on their way out (cpu_sort.h). */
#include "vm/cpu_sort.h"

#include <algorithm>
#include <cstring>

#include "core/bits.h"
#include "vm/code_map.h"
#include "vm/cpu_sort_keys.h"

namespace gpuvm {

constexpr uint64_t PART_ROWS = 32 * 1024;
constexpr int MOST_PART_BITS = 10;
constexpr uint64_t SLICE_ROWS = 128 * 1024;
constexpr uint64_t MOST_SLICES = 64;
constexpr uint64_t FEW_ROWS = 256;	/* are compared */
constexpr uint32_t LANES = 16;	/* that are classified side by side */
constexpr uint64_t HUGE_BYTES = 4 << 20;	/* from so many on */
constexpr uint64_t HEAP_BYTES = 64 << 10;	/* up to so many */

/* All of it is written before it is read. */
static Pages
pages(uint64_t bytes)
{
	return bytes <= HEAP_BYTES ? Pages::of_heap(bytes) : Pages(bytes, bytes >= HUGE_BYTES);
}

CpuSort::CpuSort(const Type *types, int ncols, const SortColumn *keys, uint32_t nkeys, uint64_t limit)
	: types_(types, types + ncols), layout_(static_cast<size_t>(ncols)), limit_(limit),
	rank_ranges_(nkeys), texts_(nkeys), has_nulls_(static_cast<size_t>(ncols))
{
	SortRange	ranges[SORT_MAX_KEYS];

	chunk_bytes_ = align_up(result_layout(types, ncols, SORT_CHUNK_ROWS, layout_.data()), 64);
	keys_.n = nkeys;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		SortKey    &key = keys_.keys[k];
		const CodeMap *map = keys[k].ranks;

		key.column = keys[k].column;
		key.type = map != nullptr ? map->type : types_[key.column];
		key.desc = keys[k].desc;
		key.nulls_first = keys[k].nulls_first;
		key.ranked = map != nullptr;
		key.text = keys[k].text != nullptr;
		texts_[k] = keys[k].text;
		any_texts_ = any_texts_ || key.text;
		if (map != nullptr)
		{
			key.nranks = map->nentries;
			key.ranks = map->values;
			key.no_rank = map->nulls;
			rank_ranges_[k] = SortRange{false, 1, 0};
			if (map->range.may_value)
				rank_ranges_[k] = SortRange{false, sort_bits(map->range.lo), sort_bits(map->range.hi)};
			/* as its type has it */
			if (map->range.may_value && key.type != Type::I64)
				rank_ranges_[k] = SortRange{false, sort_bits(static_cast<int32_t>(map->range.lo)), sort_bits(static_cast<int32_t>(map->range.hi))};
		}
		ranges[k] = map != nullptr ? rank_ranges_[k] : sort_range_of_type(key.type);
		ranges[k].may_null = true;
	}
	pack_sort_keys(&keys_, ranges);
	find_text_words();
	if (limit == 0 || limit > SORT_MOST_KEPT)
		return;
	keep_ = static_cast<uint32_t>(limit);
	room_ = static_cast<uint32_t>(align_up(2 * keep_ + 4 * CPU_VECTOR_ROWS, RESULT_PAD_ROWS));
	store_layout_.resize(types_.size());
	store_rows_bytes_ = align_up(result_layout(types, ncols, room_, store_layout_.data()), 64);
	store_row_bytes_ = (store_rows_bytes_ + room_ - 1) / room_ + keys_.nwords * sizeof(uint64_t);
}

/* ---- for SortRows ---------------------------------------------------------------------- */

/* Of a key that no row has yet. Ranks are those of the map. */
SortRange
CpuSort::empty_range(uint32_t key) const
{
	return keys_.keys[key].ranked ? rank_ranges_[key] : SortRange{false, ~uint128(0), 0};
}

void
CpuSort::widen(uint32_t key, const char *base, const ResultColumnLayout *layout, uint32_t n, SortRange *range) const
{
	const ResultColumnLayout &at = layout[keys_.keys[key].column];

	cpu_sort::widen_range(keys_.keys[key], base + at.values, reinterpret_cast<const uint64_t *>(base + at.nulls), n, range);
}

/* Of a row of a chunk or of what is like it. */
void
CpuSort::put_words(const char *base, uint32_t row, uint64_t *words)
{
	for (uint32_t k = 0; k < keys_.n; k++)
	{
		const SortKey &key = keys_.keys[k];
		const ResultColumnLayout &at = layout_[key.column];

		if (key.text)
			put_texts(k, base + at.values, reinterpret_cast<const uint64_t *>(base + at.nulls), row, 1, words, keys_.nwords);
		for (uint32_t w = 0; !key.text && w < keys_.nwords; w++)
			words[w] |= sort_key_word(key, base + at.values + row * static_cast<size_t>(type_width(types_[key.column])),
									  bit_get(reinterpret_cast<const uint64_t *>(base + at.nulls), row), w);
	}
}

/* Adds the key of rows [first, first + n) to their words (cpu_sort::put_keys). */
void
CpuSort::put_key(uint32_t key, const char *base, const ResultColumnLayout *layout, uint32_t first, uint32_t n, uint64_t *words, uint32_t nwords,
				 uint64_t *scratch)
{
	const ResultColumnLayout &at = layout[keys_.keys[key].column];
	const uint64_t *nulls = reinterpret_cast<const uint64_t *>(base + at.nulls);

	if (keys_.keys[key].text)
		put_texts(key, base + at.values, nulls, first, n, words, nwords);
	else
		cpu_sort::put_keys(keys_.keys[key], base + at.values, nulls, first, n, words, nwords, scratch);
}

void
CpuSort::make_store(SortRows::Store *store)
{
	store->memory = Pages(room_ * store_row_bytes_, false);
	store->base = store->memory.as<char>();
	store->words = reinterpret_cast<uint64_t *>(store->base + store_rows_bytes_);
}

void
CpuSort::add(std::unique_ptr<SortRows> rows)
{
	rows->finish();

	std::lock_guard<std::mutex> lock(mutex_);

	rows_.push_back(std::move(rows));
}

/* ---- elements ---------------------------------------------------------------------------- */

/* What was collected is one table, and its keys are packed for what it holds. False: it is to go into the file. */
bool
CpuSort::begin_keys()
{
	SortRange	ranges[SORT_MAX_KEYS];
	bool		spilled = false;

	for (uint32_t k = 0; k < keys_.n; k++)
		ranges[k] = empty_range(k);
	for (const std::unique_ptr<SortRows> &rows : rows_)
	{
		for (const SortRows::Chunk &chunk : rows->chunks_)
		{
			chunks_.push_back(chunk);
			first_.push_back(nrows_);
			nrows_ += chunk.nrows;
		}
		for (const SortRun &run : rows->runs_)
		{
			nrows_ += run.rows;
			spilled = true;
		}
		for (uint32_t k = 0; k < keys_.n; k++)
		{
			ranges[k].may_null = ranges[k].may_null || rows->ranges_[k].may_null;
			ranges[k].lo = std::min(ranges[k].lo, rows->ranges_[k].lo);
			ranges[k].hi = std::max(ranges[k].hi, rows->ranges_[k].hi);
		}
		for (size_t c = 0; c < types_.size(); c++)
			has_nulls_[c] |= rows->has_nulls_[c];
	}
	nout_ = limit_ > 0 ? std::min(limit_, nrows_) : nrows_;
	if (spilled)
		return false;
	pack_sort_keys(&keys_, ranges);
	find_text_words();
	row_bits_ = ceil_log2(chunks_.size()) + SORT_CHUNK_BITS;
	packed_ = keys_.bits + static_cast<uint32_t>(row_bits_) <= 64;
	part_bits_ = std::min(ceil_log2((nrows_ + PART_ROWS - 1) / PART_ROWS), MOST_PART_BITS);

	const uint64_t ties = packed_ ? 0 : (chunks_.size() << SORT_CHUNK_BITS) * (keys_.nwords - 1) * sizeof(uint64_t);

	if (refused_.load() != nullptr || nrows_ == 0)
		return true;
	/* the elements twice, and which part each belongs to */
	elements_ = pages(nrows_ * element_bytes());
	order_ = pages(nrows_ * element_bytes());
	find_readable_keys();
	if (ties > 0)
		ties_ = pages(ties);
	if (part_bits_ > 0)
		parts_of_ = pages(nrows_ * sizeof(uint16_t));
	return true;
}

/* Of the rows of a chunk. */
void
CpuSort::make_keys(uint64_t number)
{
	const SortRows::Chunk &chunk = chunks_[number];
	const uint32_t nwords = keys_.nwords;
	std::vector<uint64_t> block(packed_ ? 0 : CPU_VECTOR_ROWS * nwords);
	uint64_t	scratch[CPU_VECTOR_ROWS];

	for (uint32_t first = 0; first < chunk.nrows; first += CPU_VECTOR_ROWS)
	{
		const uint32_t n = std::min(chunk.nrows - first, CPU_VECTOR_ROWS);
		const uint64_t at = first_[number] + first, row = (number << SORT_CHUNK_BITS) + first;
		uint64_t   *words = packed_ ? &elements_.as<Packed>()[at].word : block.data();

		if (packed_)
			for (uint32_t i = 0; i < n; i++)
				words[i] = row + i;
		else
			std::fill(block.begin(), block.end(), 0);
		for (uint32_t k = 0; k < keys_.n; k++)
			put_key(k, chunk.base, layout_.data(), first, n, words, nwords, scratch);
		for (uint32_t i = 0; !packed_ && i < n; i++)
		{
			elements_.as<Pair>()[at + i] = Pair{words[i * nwords], row + i};
			if (nwords > 1)
				memcpy(ties_.as<uint64_t>() + (row + i) * (nwords - 1), words + i * nwords + 1, (nwords - 1) * sizeof(uint64_t));
		}
	}
}

/* ---- parts --------------------------------------------------------------------------------- */

/* Middles first, as a search meets them. */
static void
lay_out_tree(const std::vector<uint64_t> &sorted, size_t lo, size_t hi, size_t node, std::vector<uint64_t> *tree)
{
	if (lo >= hi)
		return;
	(*tree)[node] = sorted[(lo + hi) / 2];
	lay_out_tree(sorted, lo, (lo + hi) / 2, 2 * node, tree);
	lay_out_tree(sorted, (lo + hi) / 2 + 1, hi, 2 * node + 1, tree);
}

template <typename Element>
void
CpuSort::choose_splitters()
{
	const size_t nparts = size_t(1) << part_bits_;
	std::vector<uint64_t> sample(nparts * SORT_SAMPLES), splitters(nparts - 1);
	uint64_t	random = 1;

	for (uint64_t &word : sample)
	{
		random = random * 6364136223846793005u + 1442695040888963407u;
		word = elements_.as<Element>()[static_cast<uint64_t>(static_cast<uint128>(random) * nrows_ >> 64)].word;
	}
	std::sort(sample.begin(), sample.end());
	for (size_t i = 0; i < splitters.size(); i++)
		splitters[i] = sample[(i + 1) * SORT_SAMPLES];
	splitters_.resize(nparts);
	lay_out_tree(splitters, 0, splitters.size(), 1, &splitters_);
}

void
CpuSort::begin_classify()
{
	const uint64_t nslices = std::min((nrows_ + SLICE_ROWS - 1) / SLICE_ROWS, MOST_SLICES);

	if (any_texts_)
		choose_rows();
	else if (packed_)
		choose_splitters<Packed>();
	else
		choose_splitters<Pair>();
	for (uint64_t i = 0; i < nslices; i++)
		slices_.push_back(Slice{nrows_ * i / nslices, nrows_ * (i + 1) / nslices, std::vector<uint64_t>(size_t(1) << part_bits_)});
}

template <typename Element>
void
CpuSort::classify(Slice &slice)
{
	const Element *elements = elements_.as<Element>();
	const uint64_t *tree = splitters_.data();
	const uint32_t nparts = 1u << part_bits_;
	uint16_t   *parts = parts_of_.as<uint16_t>();
	uint64_t	first = slice.first;

	for (; first + LANES <= slice.end; first += LANES)
	{
		uint32_t	nodes[LANES];

		for (uint32_t i = 0; i < LANES; i++)
			nodes[i] = 1;
		for (int step = 0; step < part_bits_; step++)
			for (uint32_t i = 0; i < LANES; i++)
				nodes[i] = 2 * nodes[i] + (elements[first + i].word >= tree[nodes[i]]);
		for (uint32_t i = 0; i < LANES; i++)
		{
			parts[first + i] = static_cast<uint16_t>(nodes[i] - nparts);
			slice.places[nodes[i] - nparts]++;
		}
	}
	for (; first < slice.end; first++)
	{
		uint32_t	node = 1;

		for (int step = 0; step < part_bits_; step++)
			node = 2 * node + (elements[first].word >= tree[node]);
		parts[first] = static_cast<uint16_t>(node - nparts);
		slice.places[node - nparts]++;
	}
}

/* Where the parts begin, and each slice's rows in them. */
void
CpuSort::begin_scatter()
{
	uint64_t	at = 0;

	for (size_t part = 0; part < size_t(1) << part_bits_; part++)
	{
		part_first_.push_back(at);
		for (Slice &slice : slices_)
			at += std::exchange(slice.places[part], at);
	}
	part_first_.push_back(at);
}

template <typename Element>
void
CpuSort::scatter(Slice &slice)
{
	const Element *elements = elements_.as<Element>();
	const uint16_t *parts = parts_of_.as<uint16_t>();
	Element    *to = order_.as<Element>();

	for (uint64_t i = slice.first; i < slice.end; i++)
		to[slice.places[parts[i]]++] = elements[i];
}

/* ---- sorting a part -------------------------------------------------------------------------- */

/* Sorts by bits [from, to) of the words, a byte at a time; `spare` has room for as many. */
template <typename Element>
static void
sort_by_bytes(Element *elements, Element *spare, uint64_t n, unsigned from, unsigned to)
{
	Element    *there = elements;

	for (unsigned shift = from; shift < to; shift += 8)
	{
		uint64_t	places[256] = {};
		uint64_t	at = 0;

		for (uint64_t i = 0; i < n; i++)
			places[there[i].word >> shift & 255]++;
		for (uint64_t &place : places)
			at += std::exchange(place, at);
		for (uint64_t i = 0; i < n; i++)
			spare[places[there[i].word >> shift & 255]++] = there[i];
		std::swap(there, spare);
	}
	if (there != elements)
		memcpy(elements, there, n * sizeof(Element));
}

/* Rows [from, to) are equal in their first words. */
template <typename Element>
void
CpuSort::sort_ties(Element *from, Element *to)
{
	if constexpr (std::is_same_v<Element, Pair>)
	{
		const uint32_t nwords = keys_.nwords - 1;
		const uint64_t *ties = ties_.as<uint64_t>();

		for (Element *end; from < to; from = end)
		{
			for (end = from + 1; end < to && end->word == from->word; end++)
				;
			if (end - from > 1)
				std::sort(from, end, [=](const Pair &a, const Pair &b) {
					return sort_words_less(ties + a.row * nwords, ties + b.row * nwords, nwords);
				});
		}
	}
}

template <typename Element>
void
CpuSort::sort_part(uint32_t part)
{
	const uint64_t first = part_first_[part], n = part_first_[part + 1] - first;
	Element    *elements = order_.as<Element>() + first;
	const uint64_t row_mask = packed_ ? low_bits(static_cast<unsigned>(row_bits_)) : 0;
	uint64_t	differ = 0;

	for (uint64_t i = 0; i < n; i++)
		differ |= elements[i].word ^ elements[0].word;
	differ &= ~row_mask;
	if (differ != 0 && n <= FEW_ROWS)
		std::sort(elements, elements + n, [](const Element &a, const Element &b) { return a.word < b.word; });
	else if (differ != 0)
		sort_by_bytes(elements, elements_.as<Element>() + first, n, static_cast<unsigned>(__builtin_ctzll(differ)),
					  64 - static_cast<unsigned>(__builtin_clzll(differ)));
	if (keys_.nwords > 1)
		sort_ties(elements, elements + n);
}

/* ---- phases ------------------------------------------------------------------------------------ */

uint32_t
CpuSort::begin_phase()
{
	switch (phase_)
	{
		case Phase::Begin:
			try
			{
				if (!begin_keys())
					return begin_spill();
			}
			catch (const std::bad_alloc &)
			{
				if (spill_ == nullptr)
					throw;
				return begin_spill();
			}
			if (refused_.load() != nullptr || nrows_ == 0)
				return 0;
			phase_ = Phase::Keys;
			return static_cast<uint32_t>(chunks_.size());
		case Phase::Keys:
			if (part_bits_ > 0)
			{
				begin_classify();
				phase_ = Phase::Classify;
				return static_cast<uint32_t>(slices_.size());
			}
			std::swap(elements_, order_);
			part_first_ = {0, nrows_};
			phase_ = Phase::Sort;
			return 1;
		case Phase::Classify:
			begin_scatter();
			phase_ = Phase::Scatter;
			return static_cast<uint32_t>(slices_.size());
		case Phase::Scatter:
			phase_ = Phase::Sort;
			/* those whose rows are to leave */
			return static_cast<uint32_t>(std::lower_bound(part_first_.begin(), part_first_.end() - 1, nout_) - part_first_.begin());
		case Phase::Spill: case Phase::Merge:
			return begin_merge();
		default:
			phase_ = Phase::Done;
			return 0;
	}
}

void
CpuSort::run_task(uint32_t task)
{
	switch (phase_)
	{
		case Phase::Keys:
			make_keys(task);
			break;
		case Phase::Classify:
			any_texts_ ? classify_rows(slices_[task]) : packed_ ? classify<Packed>(slices_[task]) : classify<Pair>(slices_[task]);
			break;
		case Phase::Scatter:
			packed_ ? scatter<Packed>(slices_[task]) : scatter<Pair>(slices_[task]);
			break;
		case Phase::Spill:
			spill_rest(task);
			break;
		case Phase::Merge:
			merge_runs(task);
			break;
		default:
			any_texts_ ? sort_rows(task) : packed_ ? sort_part<Packed>(task) : sort_part<Pair>(task);
			break;
	}
}

}  // namespace gpuvm
