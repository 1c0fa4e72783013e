/* cpu_window_rows.cc: where partitions and peers begin (cpu_window.h). */
#include "vm/cpu_window_job.h"

namespace gpuvm {

/* ---- bits --------------------------------------------------------------------------- */

void
BitCounts::allocate(uint64_t nrows)
{
	nrows_ = nrows;
	words_ = Pages((nrows / 64 + 1) * sizeof(uint64_t), false);
	before_ = Pages((nrows / 64 + 1) * sizeof(uint32_t), false);
	carries_.assign(size_t{window_blocks(nrows)} + 2, 0);
}

void
BitCounts::count(uint32_t block)
{
	const uint64_t first = uint64_t{block} * WINDOW_BLOCK_WORDS;
	/* the word behind the last row, too, if it is the block's: before() may be asked of it */
	const uint64_t end = std::min<uint64_t>(first + WINDOW_BLOCK_WORDS, nrows_ / 64 + 1);
	const uint64_t *words = words_.as<uint64_t>();
	uint32_t   *before = before_.as<uint32_t>();
	uint32_t	n = 0;

	for (uint64_t w = first; w < end; w++)
	{
		before[w] = n;
		n += static_cast<uint32_t>(__builtin_popcountll(words[w]));
	}
	carries_[block + 1] = n;
}

void
BitCounts::carry()
{
	for (size_t b = 1; b < carries_.size(); b++)
		carries_[b] += carries_[b - 1];
}

uint64_t
BitCounts::next_in_block(uint64_t row) const
{
	const uint64_t from = row + 1, end = std::min<uint64_t>((uint64_t{window_block(row)} + 1) * WINDOW_BLOCK_WORDS, nrows_ / 64 + 1);
	const uint64_t *words = words_.as<uint64_t>();

	if (window_block(from) != window_block(row))
		return NO_ROW;
	for (uint64_t w = from >> 6, word = words[w] & ~low_bits(from & 63);; word = words[w])
	{
		if (word != 0)
			return w * 64 + static_cast<uint32_t>(__builtin_ctzll(word));
		if (++w >= end)
			return NO_ROW;
	}
}

uint64_t
BitCounts::row_of(uint64_t n) const
{
	const size_t block = static_cast<size_t>(std::upper_bound(carries_.begin(), carries_.end(), n) - carries_.begin()) - 1;
	const uint64_t first = block * WINDOW_BLOCK_WORDS, end = std::min<uint64_t>(first + WINDOW_BLOCK_WORDS, nrows_ / 64 + 1);
	const uint32_t *before = before_.as<uint32_t>();
	const uint32_t left = static_cast<uint32_t>(n - carries_[block]);
	const uint64_t w = static_cast<uint64_t>(std::upper_bound(before + first, before + end, left) - before) - 1;
	uint64_t	word = words_.as<uint64_t>()[w];

	for (uint32_t i = before[w]; i < left; i++)
		word &= word - 1;
	return w * 64 + static_cast<uint32_t>(__builtin_ctzll(word));
}

/* ---- which rows differ from the one before ------------------------------------------- */

namespace {

template <typename T>
inline bool
differ(T a, T b)
{
	if constexpr (std::is_floating_point_v<T>)
		return !(a == b || (a != a && b != b));
	else
		return a != b;
}

/* Notes rows whose value or null differs from that of the row before; `null_before` and `before` are of the row before the first. */
template <typename T>
void
mark_differences(const T *values, const uint64_t *nulls, uint32_t nrows, T before, bool null_before, uint64_t *words)
{
	for (uint32_t first = 0; first < nrows; first += 64)
	{
		const uint32_t n = std::min(64u, nrows - first);
		uint64_t	bits = 0;

		for (uint32_t i = 0; i < n; i++)
		{
			bits |= uint64_t{differ(values[first + i], before)} << i;
			before = values[first + i];
		}

		const uint64_t null = nulls != nullptr ? nulls[first / 64] & low_bits(n) : 0;
		const uint64_t null_of_before = null << 1 | uint64_t{null_before};

		/* what lies under nulls may be anything */
		words[first / 64] |= ((bits & ~null & ~null_of_before) | (null ^ null_of_before)) & low_bits(n);
		null_before = null >> (n - 1) & 1;
	}
}

/* False: the row has none. */
bool
rank_of(const CodeMap &map, const WindowColumn &column, uint64_t row, int64_t *rank)
{
	const uint32_t code = window_value<uint32_t>(column, row);

	*rank = 0;
	if (window_null(column, row) || code >= map.nentries || (map.nulls != nullptr && bit_get(map.nulls, code)))
		return false;
	*rank = map.type == Type::I32 ? static_cast<const int32_t *>(map.values)[code] : static_cast<const int64_t *>(map.values)[code];
	return true;
}

/* From the value of the row before. */
bool
texts_differ(const TextOrder &order, const WindowColumn &column, uint64_t row)
{
	const bool	null = window_null(column, row), null_before = window_null(column, row - 1);

	if (null || null_before)
		return null != null_before;

	const uint64_t text = window_value<uint64_t>(column, row), before = window_value<uint64_t>(column, row - 1);

	return text != before && order.compare(text, before) != 0;
}

}  // namespace

void
WindowRows::mark(const WindowKey &key, uint32_t block, uint64_t *words) const
{
	const WindowColumn &column = columns_[key.column];
	const uint64_t first = window_first(block);
	const uint32_t nrows = window_block_rows(nrows_, block);

	if (key.text != nullptr)
	{
		for (uint32_t i = 0; i < nrows; i++)
			if (first + i > 0 && texts_differ(*key.text, column, first + i))
				bit_set(words, i);
		return;
	}
	if (key.ranks != nullptr)
	{
		std::vector<int64_t> ranks(nrows);
		std::vector<uint64_t> nulls(WINDOW_BLOCK_WORDS);
		int64_t		before = 0;
		const bool	null_before = first > 0 && !rank_of(*key.ranks, column, first - 1, &before);

		for (uint32_t i = 0; i < nrows; i++)
			if (!rank_of(*key.ranks, column, first + i, &ranks[i]))
				bit_set(nulls.data(), i);
		mark_differences(ranks.data(), nulls.data(), nrows, before, null_before, words);
		return;
	}
	with_window_type(column.summary.type, [&](auto sample) {
		using T = decltype(sample);
		const bool	null_before = first > 0 && window_null(column, first - 1);
		const T		before = first > 0 ? window_value<T>(column, first - 1) : T{};

		mark_differences(reinterpret_cast<const T *>(column.values[block]), column.nulls[block], nrows, before, null_before, words);
	});
}

/* ---- partitions and peers ------------------------------------------------------------- */

void
WindowRows::allocate()
{
	const size_t nblocks = window_blocks(nrows_);

	parts_.allocate(nrows_);
	peers_.allocate(nrows_);
	part_before_.assign(nblocks, 0);
	peer_before_.assign(nblocks, 0);
	part_after_.assign(nblocks + 1, nrows_);
	peer_after_.assign(nblocks + 1, nrows_);
}

void
WindowRows::prepare(uint32_t block)
{
	uint64_t   *parts = parts_.words(block), *peers = peers_.words(block);
	const uint32_t nwords = (window_block_rows(nrows_, block) + 63) / 64;

	for (uint32_t k = 0; k < spec_.npartition; k++)
		mark(spec_.keys[k], block, parts);
	if (block == 0)
		bit_set(parts, 0);
	memcpy(peers, parts, nwords * sizeof(uint64_t));
	for (uint32_t k = spec_.npartition; k < spec_.npartition + spec_.norder; k++)
		mark(spec_.keys[k], block, peers);
	parts_.count(block);
	peers_.count(block);
}

/* The last row of the block whose bit is set, or NO_ROW. */
static uint64_t
last_in_block(const BitCounts &bits, uint32_t block, uint32_t nrows)
{
	const uint64_t *words = bits.words(block);

	for (uint32_t w = (nrows + 63) / 64; w-- > 0;)
		if (words[w] != 0)
			return window_first(block) + w * 64 + 63 - static_cast<uint32_t>(__builtin_clzll(words[w]));
	return NO_ROW;
}

/* From what blocks say of themselves to what is known of their first rows. */
static void
carry_starts(const BitCounts &bits, uint64_t nrows, std::vector<uint64_t> *before, std::vector<uint64_t> *after)
{
	uint64_t	last = 0;

	for (uint32_t b = 0; b < before->size(); b++)
	{
		const uint64_t first = window_first(b), in_block = last_in_block(bits, b, window_block_rows(nrows, b));

		(*before)[b] = bits.get(first) ? first : last;
		last = in_block != NO_ROW ? in_block : last;
	}
	for (uint32_t b = static_cast<uint32_t>(before->size()); b-- > 0;)
	{
		const uint64_t first = window_first(b), next = bits.get(first) ? first : bits.next_in_block(first);

		(*after)[b] = next != NO_ROW ? next : (*after)[b + 1];
	}
}

void
WindowRows::carry()
{
	parts_.carry();
	peers_.carry();
	carry_starts(parts_, nrows_, &part_before_, &part_after_);
	carry_starts(peers_, nrows_, &peer_before_, &peer_after_);
}

bool
WindowRows::one_partition(uint32_t block) const
{
	return parts_.next_in_block(window_first(block)) == NO_ROW;
}

uint64_t
WindowRows::next(const BitCounts &bits, const std::vector<uint64_t> &after, uint64_t row) const
{
	const uint64_t next = bits.next_in_block(row);

	return next != NO_ROW ? next : after[window_block(row) + 1];
}

uint64_t
WindowRows::next_group(uint64_t row) const
{
	return next(peers_, peer_after_, row);
}

WindowPosition
WindowRows::begin(uint32_t block) const
{
	const uint64_t first = window_first(block);
	WindowPosition at;

	at.part_start = part_before_[block];
	at.part_end = next(parts_, part_after_, first);
	at.peer_start = peer_before_[block];
	at.peer_end = next_group(first);
	at.group = peers_.before(at.peer_start);
	at.part_group = peers_.before(at.part_start);
	return at;
}

void
WindowRows::step(uint64_t row, WindowPosition *at) const
{
	if (row < at->peer_end)
		return;
	at->peer_start = row;
	at->peer_end = next_group(row);
	at->group++;
	if (row < at->part_end)
		return;
	at->part_start = row;
	at->part_end = next(parts_, part_after_, row);
	at->part_group = at->group;
}

}  // namespace gpuvm
